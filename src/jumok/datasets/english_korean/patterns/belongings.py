"""Possession and need, and the questions "where", "how many" and "whose".

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import (
    KOREAN_OBJECT_RANK,
    KOREAN_PLACE_RANK,
    OBJECT_RANK,
    UNRANKED,
    Clause,
    Complement,
)
from jumok.datasets.english_korean.conjugation import copula
from jumok.datasets.english_korean.lexicon import Noun, nouns_of
from jumok.datasets.english_korean.noun_phrases import (
    NounPhrase,
    counted_phrase,
    indefinite_phrase,
    owned_phrase,
    person_subject,
    the_phrase,
)
from jumok.datasets.english_korean.patterns.descriptions import PERSON, POINTERS
from jumok.datasets.english_korean.patterns.identities import SHOWN_THINGS
from jumok.datasets.english_korean.patterns.places import floating_quantifier
from jumok.datasets.english_korean.patterns.sentence import make_question, make_statement
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.datasets.english_korean.verb_phrases import LOCATION_VERB, NEED_VERB, POSSESSION_VERB


def somebody_has(scene: Scene) -> Sentence:
    """I have a camera."""
    scene.used.add("you")  # nobody tells "you" what you have
    subject = person_subject(scene, PERSON)
    entry = scene.pick_new(_OWNED_THINGS)
    p_adjective = 0.0 if "person" in entry.classes else 0.25  # not "we have a tall friend"
    is_plural = _has_one_each(subject, entry)
    phrase = indefinite_phrase(scene, entry, p_adjective=p_adjective, plural=is_plural)
    object_complement = Complement(phrase.english, phrase.korean("이"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    negative, tense = scene.chance(0.3), scene.pick(("present", "present", "past"))
    return make_statement(
        scene, Clause(subject, POSSESSION_VERB, [object_complement], tense=tense, negative=negative)
    )


def _has_one_each(subject: NounPhrase, entry: Noun) -> bool:
    """Return whether each of several people has one: they may share a house, but not a ticket."""
    is_several = subject.agreement == "plural" and subject.english[0].text != "you"
    return is_several and entry.form == "count" and bool(entry.classes & _PERSONAL)


_PERSONAL = frozenset({"portable", "small", "clothes", "worn_finger", "lent", "tool_write"})
_OWNED_THINGS = nouns_of(
    "furniture =shirt =coat =pants worn_foot worn_head worn_hand worn_finger mended =book portable "
    "instrument pet =money =younger_brother =friend =cousin =son "
    "=daughter =horse =cow =bag =box =cup =knife =spoon =pencil =ball =toy =doll =map =picture =car =key"
)


def somebody_has_counted_things(scene: Scene) -> Sentence:
    """My friend has two cats."""
    scene.used.add("you")  # nobody tells "you" what you have
    subject = person_subject(scene, PERSON)
    entry = scene.pick_new(_COUNTED_THINGS)
    phrase = counted_phrase(scene, entry)
    object_complement = Complement(
        phrase.english, floating_quantifier(phrase), OBJECT_RANK, KOREAN_OBJECT_RANK
    )
    return make_statement(
        scene,
        Clause(
            subject, POSSESSION_VERB, [object_complement], tense=scene.pick(("present", "present", "past"))
        ),
    )


_COUNTED_THINGS = tuple(
    entry for entry in _OWNED_THINGS if entry.form == "count" and "kin" not in entry.classes
)


def somebody_needs(scene: Scene) -> Sentence:
    """I need an umbrella."""
    subject = person_subject(scene, PERSON)
    entry = scene.pick_new(_NEEDED_THINGS)
    p_adjective = 0.0 if "person" in entry.classes else 0.25
    is_plural = _has_one_each(subject, entry)
    phrase = indefinite_phrase(  # like a thing that is created, never "an old chair"
        scene, entry, p_adjective=p_adjective, created=True, plural=is_plural
    )
    object_complement = Complement(phrase.english, phrase.korean("이"), OBJECT_RANK, KOREAN_OBJECT_RANK)
    tense = scene.pick(("present", "present", "past", "future"))
    return make_statement(
        scene, Clause(subject, NEED_VERB, [object_complement], tense=tense, negative=scene.chance(0.25))
    )


_NEEDED_THINGS = nouns_of(
    "used =shirt =coat =pants worn_foot worn_head worn_hand furniture portable =money =medicine "
    "=water =car =bicycle =friend =doctor"
)


def where_is_it(scene: Scene) -> Sentence:
    """Where is my key?"""
    where = Word("where")
    if scene.chance(0.5):
        subject = _known_thing(scene, scene.pick_new(_SOUGHT_THINGS))
    else:
        subject = person_subject(scene, PERSON, p_you=0.1, exclude_first_person=True, pool=_SOUGHT_PEOPLE)
    clause = Clause(
        subject,
        LOCATION_VERB,
        [Complement([], [Eojeol("어디에", (where,))], UNRANKED, KOREAN_PLACE_RANK)],
        question=True,
    )
    sentence = make_question(scene, clause)
    return Sentence([where, *sentence.words], sentence.eojeols, "?")


def _known_thing(scene: Scene, entry: Noun) -> NounPhrase:
    """Return "my key" or "the key": nobody asks "where is this key?"."""
    if scene.chance(0.5):
        return owned_phrase(scene, entry)
    return the_phrase(scene, entry, p_adjective=0.2)


_SOUGHT_PEOPLE = nouns_of("kin =teacher =professor")  # nobody asks where "this doctor" is
_SOUGHT_THINGS = nouns_of("portable small goods")


def how_many(scene: Scene) -> Sentence:
    """How many books do you have?"""
    subject = person_subject(scene, PERSON, p_you=0.5, exclude_first_person=True)
    entry = scene.pick_new(_COUNTED_THINGS)
    how, many = words(["how", "many"])
    head = words(entry.plural)
    noun_phrase = NounPhrase(head, entry.korean, head)
    korean = [
        *noun_phrase.korean("이"),
        Eojeol("몇", (how, many)),
        Eojeol(entry.counter, (many,), [how, *head]),
    ]
    clause = Clause(
        subject, POSSESSION_VERB, [Complement([], korean, UNRANKED, KOREAN_OBJECT_RANK)], question=True
    )
    sentence = make_question(scene, clause)
    return Sentence([how, many, *head, *sentence.words], sentence.eojeols, "?")


def whose(scene: Scene) -> Sentence:
    """Whose umbrella is this?"""
    pointing, korean = scene.pick(POINTERS)
    entry = scene.pick_new(_COUNTABLE_SHOWN_THINGS)
    owner, verb, this = words(["whose", "is", pointing])
    head = words(entry.english)
    text = copula(entry.korean, "어요" if scene.polite else "니")
    eojeols = [Eojeol(korean + "은", (this,)), Eojeol("누구의", (owner,)), Eojeol(text, head, (verb,))]
    return Sentence([owner, *head, verb, this], eojeols, "?")


_COUNTABLE_SHOWN_THINGS = tuple(entry for entry in SHOWN_THINGS if entry.form == "count")
