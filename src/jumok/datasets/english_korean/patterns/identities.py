"""Identity: "X is a nurse", "this is my bag".

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import (
    KOREAN_OBJECT_RANK,
    OBJECT_RANK,
    Clause,
    Complement,
)
from jumok.datasets.english_korean.conjugation import Stem, conjugate, copula, with_honorific
from jumok.datasets.english_korean.lexicon import Noun, nouns_of
from jumok.datasets.english_korean.noun_phrases import (
    NounPhrase,
    indefinite_phrase,
    owned_phrase,
    person_subject,
)
from jumok.datasets.english_korean.patterns.descriptions import PERSON, POINTERS, final_ending
from jumok.datasets.english_korean.patterns.sentence import make_statement
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.datasets.english_korean.verb_phrases import BECOME_VERB, COPULA

_COPULA_ENDINGS = {
    ("statement", "present"): "ㄴ다",
    ("statement", "past"): "어ㅆ다",
    ("polite", "present"): "어요",
    ("polite", "past"): "어ㅆ어요",
    ("question", "present"): "니",
    ("question", "past"): "어ㅆ니",
}
_IS_NOT = Stem("아니", "adjective", "아니")


def copula_eojeols(subject: NounPhrase, complement: NounPhrase, clause: Clause, final: str) -> list[Eojeol]:
    """Return the Korean of "X is Y": Y이다, or Y가 아니다."""
    suffix = _COPULA_ENDINGS[final, clause.tense]
    extra = [*clause.roles["be"], *subject.english] if subject.dropped else clause.roles["be"]
    if clause.negative:
        is_not = with_honorific(_IS_NOT) if subject.honorific else _IS_NOT
        last = Eojeol(conjugate(is_not, suffix), clause.roles["not"], extra)
        return [*subject.topic(), *complement.korean("이"), last]
    text = copula(complement.last_word, suffix, subject.honorific)
    possible = [*complement.possible, *extra]
    return [*subject.topic(), *complement.before, Eojeol(text, complement.sure, possible)]


def somebody_is_something(scene: Scene) -> Sentence:
    """My younger sister is a nurse."""
    scene.used.add("you")  # nobody tells people their own profession
    subject = person_subject(scene, PERSON, pool=_WITHOUT_PROFESSION)
    entry = scene.pick_new(_JOBS)
    tense = scene.pick(("present", "present", "past"))
    negative = scene.chance(0.25)
    is_described = tense == "present" and not negative
    complement = profession(scene, entry, subject, p_adjective=0.35 if is_described else 0.0)
    clause = Clause(subject, COPULA, tense=tense, negative=negative)
    english = [*clause.statement(), *complement.english]
    return Sentence(english, copula_eojeols(subject, complement, clause, final_ending(scene)))


def profession(scene: Scene, entry: Noun, subject: NounPhrase, *, p_adjective: float) -> NounPhrase:
    """Return "a nurse", "a famous singer", or "singers" after a plural subject. Korean has no plural here."""
    if subject.agreement == "plural" and subject.english[0].text != "you":
        head = words(entry.plural)
        return NounPhrase(head, entry.korean, head)
    return indefinite_phrase(scene, entry, p_adjective=p_adjective)


_JOBS = nouns_of("job")
# Nouns for people that do not name a profession.
_WITHOUT_PROFESSION = nouns_of(
    "=man =woman =friend =cousin =younger_brother =younger_sister =son =daughter =mother =father"
)


def somebody_becomes_something(scene: Scene) -> Sentence:
    """Minsu wants to become a doctor."""
    subject = person_subject(scene, PERSON, pool=_WITHOUT_PROFESSION)
    complement = profession(scene, scene.pick_new(_JOBS), subject, p_adjective=0.0)
    mode = scene.pick(("simple", "want"))
    tense = scene.pick(("past", "past", "future")) if mode == "simple" else scene.pick(("present", "past"))
    object_complement = Complement(
        complement.english, complement.korean("이"), OBJECT_RANK, KOREAN_OBJECT_RANK
    )
    return make_statement(scene, Clause(subject, BECOME_VERB, [object_complement], tense=tense, mode=mode))


def this_is(scene: Scene) -> Sentence:
    """This is my bag."""
    pointing, korean = scene.pick(POINTERS)
    word = Word(pointing)
    subject = NounPhrase([word], korean, (word,))
    entry = scene.pick_new(SHOWN_THINGS)
    complement = (
        owned_phrase(scene, entry) if scene.chance(0.5) else indefinite_phrase(scene, entry, p_adjective=0.25)
    )
    if complement.agreement == "plural":
        word.text = "these" if pointing == "this" else "those"
        subject.last_word += "들"
        subject.agreement = "plural"
    clause = Clause(subject, COPULA, negative=scene.chance(0.25))
    question = scene.chance(0.25) and not clause.negative
    eojeols = copula_eojeols(subject, complement, clause, final_ending(scene, question=question))
    if question:
        return Sentence([*clause.front, *subject.english, *complement.english], eojeols, "?")
    return Sentence([*clause.statement(), *complement.english], eojeols)


SHOWN_THINGS = nouns_of("goods portable small drawn shown")
