"""What somebody has and needs, and the questions where, how many and whose."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import OBJECT, Clause, Complement
from jumok.corpus.english_korean.conjugation import copula
from jumok.corpus.english_korean.lexicon import nouns_of
from jumok.corpus.english_korean.noun_phrases import NounPhrase, counted, indefinite, someone, thing
from jumok.corpus.english_korean.patterns.descriptions import PERSON, POINTERS
from jumok.corpus.english_korean.patterns.identities import SHOWN
from jumok.corpus.english_korean.patterns.places import floated
from jumok.corpus.english_korean.patterns.registry import ask, pattern, state
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.corpus.english_korean.verb_phrases import LOCATED, NEEDED, OWNED


@pattern(2)
def somebody_has(scene: Scene) -> Sentence:
    """I have a camera."""
    doer = someone(scene, PERSON)
    entry = scene.pick_new(_OWNED_THINGS)
    phrase = indefinite(scene, entry, adjective=0.25)
    what = Complement(phrase.english, phrase.korean("이"), OBJECT, 60)
    negative, tense = scene.chance(0.3), scene.pick(("present", "present", "past"))
    return state(scene, Clause(doer, OWNED, [what], tense=tense, negative=negative))


_OWNED_THINGS = nouns_of("goods pet portable =money =younger_brother =friend =cousin =son =daughter =horse")


@pattern(1.2)
def somebody_has_so_many(scene: Scene) -> Sentence:
    """My friend has two cats."""
    doer = someone(scene, PERSON)
    entry = scene.pick_new(_COUNTED_THINGS)
    phrase = counted(scene, entry)
    what = Complement(phrase.english, floated(phrase), OBJECT, 60)
    return state(scene, Clause(doer, OWNED, [what], tense=scene.pick(("present", "present", "past"))))


_COUNTED_THINGS = tuple(
    entry for entry in _OWNED_THINGS if entry.form == "count" and "kin" not in entry.classes
)


@pattern(1.2)
def somebody_needs(scene: Scene) -> Sentence:
    """I need an umbrella."""
    doer = someone(scene, PERSON)
    entry = scene.pick_new(_NEEDED_THINGS)
    phrase = indefinite(scene, entry, adjective=0.25)
    what = Complement(phrase.english, phrase.korean("이"), OBJECT, 60)
    tense = scene.pick(("present", "present", "past", "future"))
    return state(scene, Clause(doer, NEEDED, [what], tense=tense, negative=scene.chance(0.25)))


_NEEDED_THINGS = nouns_of(
    "used clothes furniture portable =money =medicine =water =car =bicycle =friend =doctor"
)


@pattern(1)
def where_is_it(scene: Scene) -> Sentence:
    """Where is my key?"""
    where = Word("where")
    if scene.chance(0.5):
        doer = thing(scene, scene.pick_new(_LOST_THINGS), adjective=0.2, definite=True)
    else:
        doer = someone(scene, PERSON, you=0.1, others=True)
    clause = Clause(doer, LOCATED, [Complement([], [Eojeol("어디에", (where,))], 0, 30)], question=True)
    sentence = ask(scene, clause)
    return Sentence([where, *sentence.words], sentence.eojeols, "?")


_LOST_THINGS = nouns_of("portable small goods")


@pattern(1)
def how_many(scene: Scene) -> Sentence:
    """How many books do you have?"""
    doer = someone(scene, PERSON, you=0.5, others=True)
    entry = scene.pick_new(_COUNTED_THINGS)
    how, many = words(["how", "many"])
    head = words(entry.plural)
    noun_phrase = NounPhrase(head, entry.korean, head)
    korean = [
        *noun_phrase.korean("이"),
        Eojeol("몇", (how, many)),
        Eojeol(entry.counter, (many,), [how, *head]),
    ]
    clause = Clause(doer, OWNED, [Complement([], korean, 0, 60)], question=True)
    sentence = ask(scene, clause)
    return Sentence([how, many, *head, *sentence.words], sentence.eojeols, "?")


@pattern(0.8)
def whose(scene: Scene) -> Sentence:
    """Whose umbrella is this?"""
    pointing, korean = scene.pick(POINTERS)
    entry = scene.pick_new(_COUNTED_SHOWN)
    owner, verb, this = words(["whose", "is", pointing])
    head = words(entry.english)
    text = copula(entry.korean, "어요" if scene.polite else "니")
    eojeols = [Eojeol(korean + "은", (this,)), Eojeol("누구의", (owner,)), Eojeol(text, head, (verb,))]
    return Sentence([owner, *head, verb, this], eojeols, "?")


_COUNTED_SHOWN = tuple(entry for entry in SHOWN if entry.form == "count")
