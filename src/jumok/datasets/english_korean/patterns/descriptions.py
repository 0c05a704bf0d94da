"""Descriptions of people and things, and the weather."""

from __future__ import annotations

from jumok.datasets.english_korean.clauses import (
    KOREAN_DEGREE_RANK,
    KOREAN_PLACE_RANK,
    PLACE_RANK,
    UNRANKED,
    Clause,
    Complement,
    degree,
    expression_complement,
    time_complement,
)
from jumok.datasets.english_korean.conjugation import Stem, conjugate, copula
from jumok.datasets.english_korean.lexicon import (
    ADJECTIVES,
    CHARACTERS,
    DEGREES,
    STATES,
    Adjective,
    Noun,
    nouns_of,
)
from jumok.datasets.english_korean.noun_phrases import (
    NounPhrase,
    person_phrase,
    person_subject,
    place_phrase,
    thing_phrase,
)
from jumok.datasets.english_korean.patterns.sentence import make_statement
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.datasets.english_korean.verb_phrases import RAINS, SNOWS

PERSON = frozenset({"person"})


def final_ending(scene: Scene, *, question: bool = False) -> str:
    """Return the function of the last word of a main clause."""
    if scene.polite:
        return "polite"
    return "question" if question else "statement"


# --- adjectives ---------------------------------------------------------------------------------------------


def thing_and_adjective(scene: Scene, adjective: Adjective | None = None) -> tuple[NounPhrase, Adjective]:
    """Return a thing and an adjective that can describe it."""
    adjective = adjective or scene.pick(ADJECTIVES)
    entry = scene.pick_new(adjective.things)
    scene.note_combination(adjective, entry)
    scene.used.add(adjective)
    return _definite(scene, entry), adjective


def person_and_state(
    scene: Scene, *, p_you: float = 0.0, question: bool = False
) -> tuple[NounPhrase, Adjective]:
    """Return a person and a state or character trait."""
    adjective = scene.pick(STATES if scene.chance(0.6) else _GENERAL_CHARACTERS)
    return person_subject(scene, PERSON, p_you=p_you, exclude_first_person=question), adjective


_GENERAL_CHARACTERS = tuple(entry for entry in CHARACTERS if entry.english != "famous")


def thing_is_adjective(scene: Scene) -> Sentence:
    """The apple is very sweet."""
    subject, adjective = thing_and_adjective(scene)
    negative = scene.chance(0.2)
    tense = scene.pick(("present", "present", "present", "past"))
    adverb = degree(scene) if not negative and scene.chance(0.4) else None
    return make_statement(scene, Clause(subject, adjective, tense=tense, negative=negative, adverb=adverb))


def person_is_adjective(scene: Scene) -> Sentence:
    """I am tired today."""
    subject, adjective = person_and_state(scene, p_you=0.08)
    tense = scene.pick(("present", "present", "past"))
    negative = scene.chance(0.2)
    adverb = personal_degree(scene) if not negative and scene.chance(0.35) else None
    is_state = adjective in STATES
    when = [time_complement(scene, tense)] if is_state and scene.chance(0.35) else []
    return make_statement(
        scene, Clause(subject, adjective, when, tense=tense, negative=negative, adverb=adverb)
    )


def personal_degree(scene: Scene) -> Complement:
    """Return "very" or "really": nobody is "too healthy"."""
    return expression_complement(scene.pick(DEGREES[:2]), UNRANKED, KOREAN_DEGREE_RANK)


def comparison(scene: Scene) -> Sentence:
    """The dog is bigger than the cat."""
    comparative, adjective = scene.pick(_COMPARATIVES)
    first = scene.pick_new(adjective.things)
    second = scene.pick_new(_COMPARABLE[adjective, first] or adjective.things)
    scene.note_combination(adjective, first)
    subject, other = _definite(scene, first), _definite(scene, second)
    clause = Clause(subject, adjective, tense=scene.pick(("present", "present", "past")))
    head = words(comparative.split())
    than = Word("than")
    clause.roles["verb"] = [head[-1]]
    more = Eojeol("더", (head[0],))
    korean = [*subject.topic(), *other.korean("보다", (than,)), *clause.korean_predicate(final_ending(scene))]
    korean.insert(len(korean) - 1, more)
    return Sentence([*subject.english, *clause.front, *head, than, *other.english], korean)


def _definite(scene: Scene, entry: Noun) -> NounPhrase:
    return (
        person_phrase(scene, entry)
        if "person" in entry.classes
        else thing_phrase(scene, entry, p_adjective=0.0, definite=True)
    )


_COMPARATIVE_FORMS = {
    "big": "bigger", "small": "smaller", "long": "longer", "short": "shorter", "heavy": "heavier",
    "light": "lighter", "fast": "faster", "slow": "slower", "cheap": "cheaper", "clean": "cleaner",
    "sweet": "sweeter", "easy": "easier", "quiet": "quieter", "bright": "brighter", "dark": "darker",
    "pretty": "prettier", "cute": "cuter", "expensive": "more expensive", "delicious": "more delicious",
    "difficult": "more difficult", "interesting": "more interesting", "important": "more important",
    "beautiful": "more beautiful", "spacious": "more spacious", "strong": "stronger", "kind": "kinder",
    "smart": "smarter", "tall": "taller", "diligent": "more diligent", "brave": "braver",
}  # fmt: skip
_COMPARATIVES = tuple(
    (_COMPARATIVE_FORMS[entry.english], entry)
    for entry in (*ADJECTIVES, *CHARACTERS)
    if entry.english in _COMPARATIVE_FORMS
)


# Comparable things have a class in common.
_COMPARABLE = {
    (adjective, first): tuple(
        second
        for second in dict.fromkeys(adjective.things)
        if second is not first and first.classes & second.classes
    )
    for _, adjective in _COMPARATIVES
    for first in dict.fromkeys(adjective.things)
}


def superlative(scene: Scene) -> Sentence:
    """This is the most expensive camera."""
    adjective = scene.pick(_SUPERLATIVES)
    entry = scene.pick_new(_SHOWABLE[adjective])
    scene.note_combination(adjective, entry)
    pointing, korean = scene.pick(POINTERS)
    first, verb, the, most, quality = words([pointing, "is", "the", "most", adjective.english])
    head = words(entry.english)
    text = copula(entry.korean, "어요" if scene.polite else "ㄴ다")
    eojeols = [
        Eojeol(korean + "은", (first,)),
        Eojeol("가장", (most,), (the,)),
        Eojeol(conjugate(adjective.stem, "는"), (quality,)),
        Eojeol(text, head, (verb, the)),
    ]
    return Sentence([first, verb, the, most, quality, *head], eojeols)


_LONG_ADJECTIVES = tuple(
    entry for entry in ADJECTIVES if _COMPARATIVE_FORMS.get(entry.english, "").startswith("more ")
)
_SHOWABLE = {
    adjective: tuple(
        entry
        for entry in adjective.things
        if entry.form == "count" and not entry.classes & {"person", "place"}
    )
    for adjective in _LONG_ADJECTIVES
}
_SUPERLATIVES = tuple(adjective for adjective, things in _SHOWABLE.items() if things)
POINTERS = (("this", "이것"), ("that", "저것"))


def somebody_looks(scene: Scene) -> Sentence:
    """The nurse looks tired."""
    adjective = scene.pick(STATES)
    subject = person_subject(scene, PERSON, exclude_first_person=True)
    tense = scene.pick(("present", "past"))
    adverb = personal_degree(scene) if scene.chance(0.4) else None
    clause = Clause(subject, adjective, tense=tense, mode="look")
    if adverb is None:
        return make_statement(scene, clause)
    english = [*subject.english, clause.main[0], *adverb.english, *clause.main[1:]]
    clause.adverb = Complement([], adverb.korean, UNRANKED, KOREAN_DEGREE_RANK)
    return Sentence(english, clause.korean(final_ending(scene)))


def something_becomes(scene: Scene) -> Sentence:
    """The room became dark."""
    adjective = scene.pick(_CHANGING)
    if adjective in ADJECTIVES:
        subject, _ = thing_and_adjective(scene, adjective)
    else:
        subject = person_subject(scene, PERSON)
    return make_statement(
        scene, Clause(subject, adjective, tense=scene.pick(("past", "past", "future")), mode="become")
    )


_CHANGES = frozenset(
    (
        "happy",
        "sad",
        "busy",
        "healthy",
        "lonely",
        "dirty",
        "clean",
        "dark",
        "bright",
        "quiet",
        "noisy",
        "warm",
    )
)
_CHANGING = tuple(entry for entry in (*ADJECTIVES, *STATES) if entry.english in _CHANGES)


# --- weather ------------------------------------------------------------------------------------------------


def weather_clause(
    scene: Scene, tense: str, *, p_time: float = 0.0, p_place: float = 0.0, question: bool = False
) -> Clause:
    """Return "it rains" or "it snows": 비가 오다, 눈이 오다 (rain comes, snow comes)."""
    it = NounPhrase([Word("it")], "", ())
    it.dropped = True
    complements = []
    if scene.chance(p_place):
        region = place_phrase(scene.pick_new(_REGIONS), "in")
        complements.append(Complement(region.english, region.korean("에"), PLACE_RANK, KOREAN_PLACE_RANK))
    if scene.chance(p_time):
        complements.append(time_complement(scene, tense))
    return Clause(it, scene.pick((RAINS, SNOWS)), complements, tense=tense, question=question)


_REGIONS = nouns_of("region")


def it_rains(scene: Scene) -> Sentence:
    """It rained in Seoul yesterday."""
    tense = scene.pick(("present", "past", "future"))
    return make_statement(scene, weather_clause(scene, tense, p_time=0.8, p_place=0.4))


def the_weather_is(scene: Scene) -> Sentence:
    """The weather is cold today."""
    the, weather = words(["the", "weather"])
    phrase = NounPhrase([the, weather], "날씨", (weather,))
    phrase.possible = (the,)
    adjective = scene.pick(_WEATHER)
    tense = scene.pick(("present", "past"))
    when = [time_complement(scene, tense)] if scene.chance(0.7) else []
    negative = scene.chance(0.2)
    adverb = degree(scene) if not negative and scene.chance(0.4) else None
    clause = Clause(phrase, adjective, when, tense=tense, negative=negative, adverb=adverb)
    time_eojeols = [eojeol for complement in when for eojeol in complement.korean]
    adverb_eojeols = list(adverb.korean) if adverb else []
    korean = [
        *time_eojeols,
        *phrase.korean("이"),
        *adverb_eojeols,
        *clause.korean_predicate(final_ending(scene)),
    ]
    return Sentence(clause.statement(), korean)


_WEATHER = (
    *(entry for entry in ADJECTIVES if entry.stem.text in ("덥", "춥", "따뜻하", "좋")),
    Adjective("bad", Stem("나쁘", "adjective"), (), None, (), "bad"),
    Adjective("cool", Stem("시원하", "adjective"), (), None, (), "cool"),
)
