"""Descriptions of people and things, and the weather.

The docstring of a pattern is an example of its sentences.
"""

from __future__ import annotations

from dataclasses import replace

from jumok.datasets.english_korean import comparisons
from jumok.datasets.english_korean.clauses import (
    KOREAN_DEGREE_RANK,
    KOREAN_PLACE_RANK,
    KOREAN_TIME_RANK,
    PLACE_RANK,
    TIME_RANK,
    UNRANKED,
    Clause,
    Complement,
    degree,
    expression_complement,
    fitting_times,
    time_complement,
)
from jumok.datasets.english_korean.conjugation import Stem, copula
from jumok.datasets.english_korean.lexicon import (
    ADJECTIVES,
    DEGREES,
    STATES,
    TRAITS,
    Adjective,
    Noun,
    nouns_of,
)
from jumok.datasets.english_korean.noun_phrases import (
    NounPhrase,
    demonstrated_phrase,
    owned_phrase,
    person_phrase,
    person_subject,
    place_phrase,
    thing_phrase,
)
from jumok.datasets.english_korean.patterns.sentence import make_statement
from jumok.datasets.english_korean.scene import Eojeol, Scene, Sentence, Word, words
from jumok.datasets.english_korean.verb_phrases import RAIN_VERB, SNOW_VERB

PERSON = frozenset({"person"})


def final_ending(scene: Scene, *, question: bool = False) -> str:
    """Return `final`, what the main predicate's ending is for: "polite", "question" or "statement"."""
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
    subject = person_subject(scene, PERSON, p_you=p_you, exclude_first_person=question)
    # Nobody tells people that they are thirsty.
    is_listener = subject.english[0].text == "you" and not question
    has_trait = any(isinstance(entry, Adjective) for entry in scene.used)  # not "that tall child is tall"
    is_state = (has_trait or scene.chance(0.6)) and not is_listener
    return subject, scene.pick(STATES if is_state else _GENERAL_TRAITS)


_GENERAL_TRAITS = tuple(entry for entry in TRAITS if entry.english != "famous")


def thing_is_adjective(scene: Scene) -> Sentence:
    """The apple is very sweet."""
    subject, adjective = thing_and_adjective(scene)
    negative = scene.chance(0.2)
    tense = scene.pick(("present", "present", "present", "past"))
    has_degree = not negative and adjective.stem.irregular != "ㅎ"  # nothing is very yellow
    adverb = degree(scene, adjective) if has_degree and scene.chance(0.4) else None
    return make_statement(scene, Clause(subject, adjective, tense=tense, negative=negative, adverb=adverb))


def person_is_adjective(scene: Scene) -> Sentence:
    """I am tired today."""
    subject, adjective = person_and_state(scene, p_you=0.0 if scene.polite else 0.08)
    tense = scene.pick(("present", "present", "past"))
    if adjective not in STATES:
        tense = "present"  # people do not stop being tall
    negative = scene.chance(0.2)
    adverb = personal_degree(scene) if not negative and scene.chance(0.35) else None
    when = time_complement(scene, tense, _STATE_KINDS[adjective.english]) if scene.chance(0.35) else []
    sentence = make_statement(
        scene, Clause(subject, adjective, when, tense=tense, negative=negative, adverb=adverb)
    )
    if adverb and adjective.before:  # 키가 아주 크다, not 아주 키가 크다
        (very,) = adverb.korean
        sentence.eojeols.remove(very)
        sentence.eojeols.insert(-1, very)
    return sentence


# Kinds of times that fit a state of people. A trait takes no time.
_STATE_KINDS = {
    adjective.english: frozenset(kinds.split())
    for adjectives, kinds in ((STATES, "day morning night week now"), (TRAITS, ""))
    for adjective in adjectives
} | {
    "busy": frozenset({"day", "morning", "week", "weekday", "now", "everyday", "weekly"}),
    "hungry": frozenset({"morning", "night", "hour"}),
    "thirsty": frozenset({"morning", "night", "hour"}),
    "healthy": frozenset(),
    "sick": frozenset({"day", "week"}),
}


def personal_degree(scene: Scene) -> Complement:
    """Return "very" or "really": nobody is "too healthy"."""
    return expression_complement(scene.pick(DEGREES[:2]), UNRANKED, KOREAN_DEGREE_RANK)


def comparison(scene: Scene) -> Sentence:
    """The dog is bigger than the cat. My bag is heavier than Minsu's bag."""
    comparative, adjective, pairs, things = scene.pick(_COMPARISONS)
    scene.used.add(adjective)  # not "the tall boy is taller"
    if things and scene.chance(0.3):
        first = second = scene.pick_new(things)
        subject, other = _two_of_a_kind(scene, first)
    else:
        first, second = scene.pick_new(pairs)
        subject, other = _definite(scene, first), _definite(scene, second)
    scene.note_combination(adjective, first)
    is_lasting = adjective in TRAITS or "study" in first.classes
    tense = "present" if is_lasting else scene.pick(("present", "present", "past"))
    clause = Clause(subject, adjective, tense=tense)
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


def _two_of_a_kind(scene: Scene, entry: Noun) -> tuple[NounPhrase, NounPhrase]:
    """Return "this bag" and "that bag", or two bags with different owners."""
    if scene.chance(0.3):
        return demonstrated_phrase(scene, entry, "this"), demonstrated_phrase(scene, entry, "that")
    first = owned_phrase(scene, entry, p_adjective=0.0)
    second = owned_phrase(scene, entry, p_adjective=0.0)
    while second.english[0].text == first.english[0].text:
        second = owned_phrase(scene, entry, p_adjective=0.0)
    return first, second


_COMPARATIVE_FORMS = {
    "big": "bigger", "small": "smaller", "long": "longer", "short": "shorter", "heavy": "heavier",
    "light": "lighter", "fast": "faster", "slow": "slower", "cheap": "cheaper", "clean": "cleaner",
    "sweet": "sweeter", "easy": "easier", "quiet": "quieter", "bright": "brighter", "dark": "darker",
    "pretty": "prettier", "cute": "cuter", "expensive": "more expensive", "delicious": "more delicious",
    "difficult": "more difficult", "interesting": "more interesting", "important": "more important",
    "beautiful": "more beautiful", "spacious": "more spacious", "strong": "stronger", "kind": "kinder",
    "smart": "smarter", "tall": "taller", "diligent": "more diligent", "brave": "braver",
}  # fmt: skip


def _ordered_pairs(chains: str) -> list[tuple[Noun, Noun]]:
    """Return the pairs (more, less) of the chains. Two nouns of one level give a pair in each order."""
    pairs = []
    for chain in chains.split(";"):
        levels = [nouns_of(" ".join(f"={name}" for name in level.split())) for level in chain.split("<")]
        for i, level in enumerate(levels):
            lower = (entry for lesser in levels[:i] for entry in lesser)
            pairs += [(more, less) for less in lower for more in level]
            pairs += [(more, less) for more in level for less in level if more is not less]
    return pairs


def _read_comparisons() -> tuple[tuple[str, Adjective, tuple[tuple[Noun, Noun], ...], tuple[Noun, ...]], ...]:
    """Return each comparative with its adjective, pairs of nouns to compare, and things that have owners."""
    rows = []
    for line in comparisons.CHAINS.strip().splitlines():
        names, chains = line.split("|")
        for i, name in enumerate(names.split()):
            adjective = next(entry for entry in (*ADJECTIVES, *TRAITS) if entry.english == name)
            pairs = _ordered_pairs(chains)
            things = tuple(
                entry
                for entry in dict.fromkeys(adjective.things)
                if "goods" in entry.classes and entry.form == "count"
            )
            fitting = tuple(pairs if i == 0 else [(less, more) for more, less in pairs])
            rows.append((_COMPARATIVE_FORMS[name], adjective, tuple(dict.fromkeys(fitting)), things))
    return tuple(rows)


_COMPARISONS = _read_comparisons()


def superlative(scene: Scene) -> Sentence:
    """This is the most expensive camera."""
    adjective = scene.pick(_SUPERLATIVES)
    entry = scene.pick_new(_SHOWABLE_THINGS[adjective])
    scene.note_combination(adjective, entry)
    pointing, korean = scene.pick(POINTERS)
    first, verb, the, most, quality = words([pointing, "is", "the", "most", adjective.english])
    head = words(entry.english)
    text = copula(entry.korean, "어요" if scene.polite else "ㄴ다")
    eojeols = [
        Eojeol(korean + "은", (first,)),
        Eojeol("가장", (most,), (the,)),
        Eojeol(adjective.attributive, (quality,)),
        Eojeol(text, head, (verb, the)),
    ]
    return Sentence([first, verb, the, most, quality, *head], eojeols)


_LONG_ADJECTIVES = tuple(
    entry for entry in ADJECTIVES if _COMPARATIVE_FORMS.get(entry.english, "").startswith("more ")
)
_SHOWABLE_THINGS = {
    adjective: tuple(
        entry
        for entry in adjective.things
        if entry.form == "count" and not entry.classes & {"person", "place"}
    )
    for adjective in _LONG_ADJECTIVES
}
_SUPERLATIVES = tuple(adjective for adjective, things in _SHOWABLE_THINGS.items() if things)
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
    adjective, things = scene.pick(_CHANGING_ADJECTIVES)
    if things:
        entry = scene.pick_new(things)
        scene.note_combination(adjective, entry)
        subject = _definite(scene, entry)
        subject.definite = False  # a change is new information: 방이 어두워졌다
    else:
        subject = person_subject(scene, PERSON)
    is_predictable = adjective.english not in ("sad", "lonely", "tired")
    tense = scene.pick(("past", "past", "future")) if is_predictable else "past"
    return make_statement(scene, Clause(subject, adjective, tense=tense, mode="become"))


# Adjective → the things that it can describe after "become"; "" means people. A shirt does not become clean
# by itself.
_CHANGES = {
    "happy": "", "sad": "", "busy": "", "healthy": "", "lonely": "", "tired": "",
    "dirty": "room =shirt =coat =shoes =socks =river =car", "dark": "room =office", "bright": "room =office",
    "quiet": "=classroom =library =office =room =park", "noisy": "=classroom =restaurant =playground",
    "warm": "=room =classroom", "clean": "=room =kitchen =river =park",
    "expensive": "=fruit =vegetables =meat =fish =coffee", "cheap": "=fruit =vegetables =meat =fish",
}  # fmt: skip
_CHANGING_ADJECTIVES = tuple(
    (entry, nouns_of(_CHANGES[entry.english]) if _CHANGES[entry.english] else ())
    for entry in (*ADJECTIVES, *STATES)
    if entry.english in _CHANGES
)


# --- weather ------------------------------------------------------------------------------------------------


def weather_clause(scene: Scene, tense: str, *, p_time: float = 0.0, p_place: float = 0.0) -> Clause:
    """Return "it rains" or "it snows": 비가 오다, 눈이 오다 (rain comes, snow comes)."""
    it = NounPhrase([Word("it")], "", ())
    it.dropped = True
    complements = []
    if scene.chance(p_place):
        region = place_phrase(scene.pick_new(_REGIONS), "in")
        complements.append(Complement(region.english, region.korean("에"), PLACE_RANK, KOREAN_PLACE_RANK))
    verb = scene.pick((RAIN_VERB, SNOW_VERB))
    if scene.chance(p_time):
        kinds = _WEATHER_KINDS - {"now"}  # not "it rains today"
        complements += _weather_time(scene, tense, "in winter" if verb is SNOW_VERB else "in spring", kinds)
    return Clause(it, verb, complements, tense=tense)


def _weather_time(scene: Scene, tense: str, season: str, kinds: frozenset[str]) -> list[Complement]:
    """Return a time for a sentence about the weather; `season` is the only season that fits this weather.

    The weather of a season in the present is a general truth: 봄에는 비가 온다.
    """
    times = [
        entry
        for entry in fitting_times(kinds, tense)
        if entry.kind not in ("spring", "winter") or entry.key == season
    ]
    if not times:
        return []
    time = scene.pick(times)
    if tense == "present" and time.key == season:
        time = replace(time, korean=(f"{time.korean[0]}는",))
    return [expression_complement(time, TIME_RANK, KOREAN_TIME_RANK)]


_WEATHER_KINDS = frozenset({"day", "morning", "night", "week", "weekday", "now", "spring", "winter"})
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
    adjective = scene.pick(_WEATHER_ADJECTIVES)
    tense = scene.pick(("present", "past"))
    season = _WEATHER_SEASONS.get(adjective.english, "")
    when = _weather_time(scene, tense, season, _WEATHER_KINDS) if scene.chance(0.7) else []
    # After "in winter" or "in the morning", the sentence is not negated.
    negative = scene.chance(0.2) and not any(word.text == "in" for part in when for word in part.english)
    adverb = degree(scene, adjective) if not negative and scene.chance(0.4) else None
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


_WEATHER_ADJECTIVES = (
    *(entry for entry in ADJECTIVES if entry.stem.text in ("덥", "춥", "따뜻하", "좋")),
    Adjective("bad", Stem("나쁘", "adjective"), (), None, (), "bad"),
    Adjective("cool", Stem("시원하", "adjective"), (), None, (), "cool"),
)
_WEATHER_SEASONS = {"cold": "in winter", "warm": "in spring", "good": "in spring", "cool": "in spring"}
