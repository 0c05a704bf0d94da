"""What somebody or something is: a nurse, my bag."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import OBJECT, Clause, Complement
from jumok.corpus.english_korean.conjugation import Stem, conjugate, copula, honour
from jumok.corpus.english_korean.lexicon import Noun, nouns_of
from jumok.corpus.english_korean.noun_phrases import NounPhrase, indefinite, owned, someone
from jumok.corpus.english_korean.patterns.descriptions import PERSON, POINTERS, ending
from jumok.corpus.english_korean.patterns.registry import pattern, state
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.corpus.english_korean.verb_phrases import BECOMES, COPULA

_COPULA_ENDINGS = {
    ("statement", "present"): "ㄴ다",
    ("statement", "past"): "어ㅆ다",
    ("polite", "present"): "어요",
    ("polite", "past"): "어ㅆ어요",
    ("question", "present"): "니",
    ("question", "past"): "어ㅆ니",
}
_IS_NOT = Stem("아니", "adjective", "아니")


def being(doer: NounPhrase, complement: NounPhrase, clause: Clause, final: str) -> list[Eojeol]:
    """The Korean of "X is Y": Y이다, or Y가 아니다."""
    suffix = _COPULA_ENDINGS[final, clause.tense]
    extra = [*clause.roles["be"], *doer.english] if doer.dropped else clause.roles["be"]
    if clause.negative:
        is_not = honour(_IS_NOT) if doer.respected else _IS_NOT
        last = Eojeol(conjugate(is_not, suffix), clause.roles["not"], extra)
        return [*doer.topic(), *complement.korean("이"), last]
    text = copula(complement.text, suffix, doer.respected)
    possible = [*complement.possible, *extra]
    return [*doer.topic(), *complement.before, Eojeol(text, complement.sure, possible)]


@pattern(2.5)
def somebody_is_something(scene: Scene) -> Sentence:
    """My younger sister is a nurse."""
    doer = someone(scene, PERSON, you=0.05)
    entry = scene.pick_new(_JOBS)
    complement = profession(scene, entry, doer)
    tense = scene.pick(("present", "present", "past"))
    clause = Clause(doer, COPULA, tense=tense, negative=scene.chance(0.25))
    english = [*clause.statement(), *complement.english]
    return Sentence(english, being(doer, complement, clause, ending(scene)))


def profession(scene: Scene, entry: Noun, doer: NounPhrase) -> NounPhrase:
    """a nurse, a famous singer; after a plural "singers", which Korean leaves unmarked."""
    if doer.agreement == "plural" and doer.english[0].text != "you":
        head = words(entry.plural)
        return NounPhrase(head, entry.korean, head)
    return indefinite(scene, entry, adjective=0.25)


_JOBS = nouns_of("job")


@pattern(1)
def somebody_becomes_something(scene: Scene) -> Sentence:
    """Minsu wants to become a doctor."""
    doer = someone(scene, PERSON)
    complement = profession(scene, scene.pick_new(_JOBS), doer)
    mode = scene.pick(("simple", "want"))
    tense = scene.pick(("past", "future")) if mode == "simple" else scene.pick(("present", "past"))
    what = Complement(complement.english, complement.korean("이"), OBJECT, 60)
    return state(scene, Clause(doer, BECOMES, [what], tense=tense, mode=mode))


@pattern(1.5)
def this_is(scene: Scene) -> Sentence:
    """This is my bag."""
    pointing, korean = scene.pick(POINTERS)
    word = Word(pointing)
    doer = NounPhrase([word], korean, (word,))
    entry = scene.pick_new(SHOWN)
    complement = owned(scene, entry) if scene.chance(0.5) else indefinite(scene, entry, adjective=0.25)
    if complement.agreement == "plural":
        word.text = "these" if pointing == "this" else "those"
        doer.text += "들"
        doer.agreement = "plural"
    clause = Clause(doer, COPULA, negative=scene.chance(0.25))
    question = scene.chance(0.25) and not clause.negative
    eojeols = being(doer, complement, clause, ending(scene, question=question))
    if question:
        return Sentence([*clause.front, *doer.english, *complement.english], eojeols, "?")
    return Sentence([*clause.statement(), *complement.english], eojeols)


SHOWN = nouns_of("goods portable small drawn shown")
