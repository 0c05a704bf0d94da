"""What somebody or something is like, and the weather."""

from __future__ import annotations

from jumok.corpus.english_korean.clauses import Clause, Complement, degree, expression, time_for
from jumok.corpus.english_korean.conjugation import Stem, conjugate, copula
from jumok.corpus.english_korean.lexicon import (
    ADJECTIVES,
    CHARACTERS,
    DEGREES,
    STATES,
    Adjective,
    Noun,
    nouns_of,
)
from jumok.corpus.english_korean.noun_phrases import (
    NounPhrase,
    human,
    place_phrase,
    someone,
    thing,
)
from jumok.corpus.english_korean.patterns.registry import pattern, state
from jumok.corpus.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.corpus.english_korean.verb_phrases import RAINS, SNOWS

PERSON = frozenset({"person"})


def ending(scene: Scene, *, question: bool = False) -> str:
    """How a main clause ends."""
    if scene.polite:
        return "polite"
    return "question" if question else "statement"


# --- adjectives ---------------------------------------------------------------------------------------------


def described_thing(scene: Scene, adjective: Adjective | None = None) -> tuple[NounPhrase, Adjective]:
    """A thing and an adjective that may be said of it."""
    adjective = adjective or scene.pick(ADJECTIVES)
    entry = scene.pick_new(adjective.things)
    scene.combine(adjective, entry)
    scene.used.add(adjective)
    return _definite(scene, entry), adjective


def feeling(scene: Scene, *, you: float = 0.0, question: bool = False) -> tuple[NounPhrase, Adjective]:
    """A person and how he or she is."""
    adjective = scene.pick(STATES if scene.chance(0.6) else _GENERAL_CHARACTERS)
    return someone(scene, PERSON, you=you, others=question), adjective


_GENERAL_CHARACTERS = tuple(entry for entry in CHARACTERS if entry.english != "famous")


@pattern(6)
def a_thing_is_like_this(scene: Scene) -> Sentence:
    """The apple is very sweet."""
    doer, adjective = described_thing(scene)
    negative = scene.chance(0.2)
    tense = scene.pick(("present", "present", "present", "past"))
    adverb = degree(scene) if not negative and scene.chance(0.4) else None
    return state(scene, Clause(doer, adjective, tense=tense, negative=negative, adverb=adverb))


@pattern(3)
def a_person_is_like_this(scene: Scene) -> Sentence:
    """I am tired today."""
    doer, adjective = feeling(scene, you=0.08)
    tense = scene.pick(("present", "present", "past"))
    negative = scene.chance(0.2)
    adverb = personal_degree(scene) if not negative and scene.chance(0.35) else None
    is_state = adjective in STATES
    when = [time_for(scene, tense)] if is_state and scene.chance(0.35) else []
    return state(scene, Clause(doer, adjective, when, tense=tense, negative=negative, adverb=adverb))


def personal_degree(scene: Scene) -> Complement:
    """very and really: nobody is "too healthy"."""
    return expression(scene.pick(DEGREES[:2]), 0, 90)


@pattern(1.5)
def compared(scene: Scene) -> Sentence:
    """The dog is bigger than the cat."""
    comparative, adjective = scene.pick(_COMPARATIVES)
    first = scene.pick_new(adjective.things)
    second = scene.pick_new(_COMPARABLE[adjective, first] or adjective.things)
    scene.combine(adjective, first)
    doer, other = _definite(scene, first), _definite(scene, second)
    clause = Clause(doer, adjective, tense=scene.pick(("present", "present", "past")))
    head = words(comparative.split())
    than = Word("than")
    clause.roles["verb"] = [head[-1]]
    more = Eojeol("더", (head[0],))
    korean = [*doer.topic(), *other.korean("보다", (than,)), *clause.korean_predicate(ending(scene))]
    korean.insert(len(korean) - 1, more)
    return Sentence([*doer.english, *clause.front, *head, than, *other.english], korean)


def _definite(scene: Scene, entry: Noun) -> NounPhrase:
    return (
        human(scene, entry)
        if "person" in entry.classes
        else thing(scene, entry, adjective=0.0, definite=True)
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


# What may be held against what: things that have a class in common.
_COMPARABLE = {
    (adjective, first): tuple(
        second
        for second in dict.fromkeys(adjective.things)
        if second is not first and first.classes & second.classes
    )
    for _, adjective in _COMPARATIVES
    for first in dict.fromkeys(adjective.things)
}


@pattern(1)
def the_most(scene: Scene) -> Sentence:
    """This is the most expensive camera."""
    adjective = scene.pick(_SUPERLATIVES)
    entry = scene.pick_new(_SHOWABLE[adjective])
    scene.combine(adjective, entry)
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


@pattern(1)
def somebody_looks(scene: Scene) -> Sentence:
    """The nurse looks tired."""
    adjective = scene.pick(STATES)
    doer = someone(scene, PERSON, others=True)
    tense = scene.pick(("present", "past"))
    adverb = personal_degree(scene) if scene.chance(0.4) else None
    clause = Clause(doer, adjective, tense=tense, mode="look")
    if adverb is None:
        return state(scene, clause)
    english = [*doer.english, clause.main[0], *adverb.english, *clause.main[1:]]
    clause.adverb = Complement([], adverb.korean, 0, 90)
    return Sentence(english, clause.korean(ending(scene)))


@pattern(1)
def something_becomes(scene: Scene) -> Sentence:
    """The room became dark."""
    adjective = scene.pick(_CHANGING)
    if adjective in ADJECTIVES:
        doer, _ = described_thing(scene, adjective)
    else:
        doer = someone(scene, PERSON)
    return state(scene, Clause(doer, adjective, tense=scene.pick(("past", "past", "future")), mode="become"))


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


def raining(
    scene: Scene, tense: str, *, time: float = 0.0, place: float = 0.0, question: bool = False
) -> Clause:
    """It rains; Korean says that rain comes."""
    it = NounPhrase([Word("it")], "", ())
    it.dropped = True
    complements = []
    if scene.chance(place):
        region = place_phrase(scene.pick_new(_REGIONS), "in")
        complements.append(Complement(region.english, region.korean("에"), 30, 30))
    if scene.chance(time):
        complements.append(time_for(scene, tense))
    return Clause(it, scene.pick((RAINS, SNOWS)), complements, tense=tense, question=question)


_REGIONS = nouns_of("region")


@pattern(1)
def it_rains(scene: Scene) -> Sentence:
    """It rained in Seoul yesterday."""
    tense = scene.pick(("present", "past", "future"))
    return state(scene, raining(scene, tense, time=0.8, place=0.4))


@pattern(1)
def the_weather_is(scene: Scene) -> Sentence:
    """The weather is cold today."""
    the, weather = words(["the", "weather"])
    phrase = NounPhrase([the, weather], "날씨", (weather,))
    phrase.possible = (the,)
    adjective = scene.pick(_WEATHER)
    tense = scene.pick(("present", "past"))
    when = [time_for(scene, tense)] if scene.chance(0.7) else []
    negative = scene.chance(0.2)
    adverb = degree(scene) if not negative and scene.chance(0.4) else None
    clause = Clause(phrase, adjective, when, tense=tense, negative=negative, adverb=adverb)
    early = [eojeol for complement in when for eojeol in complement.korean]
    late = list(adverb.korean) if adverb else []
    korean = [*early, *phrase.korean("이"), *late, *clause.korean_predicate(ending(scene))]
    return Sentence(clause.statement(), korean)


_WEATHER = (
    *(entry for entry in ADJECTIVES if entry.stem.text in ("덥", "춥", "따뜻하", "좋")),
    Adjective("bad", Stem("나쁘", "adjective"), (), None, (), "bad"),
    Adjective("cool", Stem("시원하", "adjective"), (), None, (), "cool"),
)
