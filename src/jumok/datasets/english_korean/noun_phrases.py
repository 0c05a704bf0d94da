"""Noun phrases on both sides: pronouns, determiners, adjectives, numbers, possession, subjects.

Korean has no articles. What English says with "a" and "the" comes back in the subject's particle: a definite
subject of a main clause is its topic (은/는), an indefinite one is new (이/가).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jumok.corpus.english_korean.conjugation import conjugate
from jumok.corpus.english_korean.english import article
from jumok.corpus.english_korean.hangul import attach
from jumok.corpus.english_korean.lexicon import (
    ADJECTIVES,
    ATTRIBUTES,
    CHARACTERS,
    NOUNS,
    NUMBERS,
    Adjective,
    Noun,
    Verb,
    nouns_of,
)
from jumok.corpus.english_korean.scene import Eojeol, Scene, Word, words

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "PRONOUNS",
    "NounPhrase",
    "Pronoun",
    "counted",
    "human",
    "measured",
    "place_phrase",
    "pronoun_object",
    "pronoun_subject",
    "someone",
    "subject",
    "thing",
]


class NounPhrase:
    """English words, and Korean words of which the last takes a particle."""

    __slots__ = (
        "agreement",
        "before",
        "definite",
        "dropped",
        "english",
        "near",
        "possible",
        "respected",
        "sure",
        "text",
    )

    def __init__(self, english: list[Word], text: str, sure: Sequence[Word]) -> None:
        self.english = english
        self.text = text
        self.sure = sure
        self.possible: Sequence[Word] = ()
        self.before: list[Eojeol] = []
        self.agreement = "third"
        self.respected = False  # 께서 and -시-
        self.near = False  # the speaker or the hearer
        self.dropped = False  # a polite Korean sentence does not say "you"
        self.definite = True

    def korean(self, particle: str, also: Sequence[Word] = ()) -> list[Eojeol]:
        """The Korean words with a particle on the last; `also` are English words the particle stands for."""
        if self.dropped:
            return []
        possible = [*self.possible, *also] if also else self.possible
        text = attach(self.text, particle, self.respected) if particle else self.text
        return [*self.before, Eojeol(text, self.sure, possible)]

    def topic(self) -> list[Eojeol]:
        """As the subject of a main clause."""
        return self.korean("은" if self.definite else "이")


class Pronoun(NamedTuple):
    """A personal pronoun: its English cases, and its Korean in plain and in polite style."""

    subject: str
    object: str
    possessive: str
    plain: str
    polite: str
    agreement: str


PRONOUNS = {
    "I": Pronoun("I", "me", "my", "나", "저", "first"),
    "you": Pronoun("you", "you", "your", "너", "", "plural"),
    "he": Pronoun("he", "him", "his", "그", "그", "third"),
    "she": Pronoun("she", "her", "her", "그녀", "그녀", "third"),
    "we": Pronoun("we", "us", "our", "우리", "우리", "plural"),
    "they": Pronoun("they", "them", "their", "그들", "그들", "plural"),
}


def pronoun_subject(scene: Scene, name: str) -> NounPhrase:
    """A pronoun as a subject. In polite style "you" is not said, but honoured."""
    pronoun = PRONOUNS[name]
    scene.used.add(name)
    word = Word(pronoun.subject)
    phrase = NounPhrase([word], pronoun.polite if scene.polite else pronoun.plain, (word,))
    phrase.agreement = pronoun.agreement
    phrase.near = name in ("I", "we", "you")
    if name == "you" and scene.polite:
        phrase.dropped = phrase.respected = True
    return phrase


def pronoun_object(scene: Scene, name: str) -> NounPhrase:
    """A pronoun as an object."""
    pronoun = PRONOUNS[name]
    scene.used.add(name)
    word = Word(pronoun.object)
    return NounPhrase([word], pronoun.polite if scene.polite else pronoun.plain, (word,))


# Adjectives that may stand before each noun.
_DESCRIPTIONS: dict[Noun, tuple[Adjective, ...]] = {
    entry: tuple(
        adjective
        for adjective in (*ADJECTIVES, *CHARACTERS, *ATTRIBUTES)
        if entry in adjective.things and adjective.english not in ("far", "near")
    )
    for entry in NOUNS
}


def describe(scene: Scene, entry: Noun, probability: float) -> tuple[list[Word], list[Eojeol]]:
    """Perhaps an adjective before the noun, on both sides."""
    options = _DESCRIPTIONS[entry]
    if not options or not scene.chance(probability):
        return [], []
    adjective = scene.pick_new(options)
    scene.combine(adjective, entry)
    word = Word(adjective.english)
    korean = [Eojeol(text, (word,)) for text in adjective.before]
    korean.append(Eojeol(conjugate(adjective.stem, "는"), (word,)))
    return [word], korean


def _possessor(scene: Scene, entry: Noun) -> tuple[list[Word], list[Eojeol]]:
    """my, his, our, Minsu's … and their Korean; what everybody shares is 우리 rather than 내."""
    draw = scene.random()
    if draw < 0.25:
        name = str(scene.pick_new(_NAMES).english[0])
        word = Word(f"{name}'s")
        return [word], [Eojeol(_KOREAN_NAME[name] + "의", (word,))]
    name = "I" if draw < 0.65 else scene.pick(_POSSESSORS)
    if name in ("he", "she"):
        if SINGULAR in scene.used:
            name = "I"  # "Minsu … his" would have to be 자기 if he is meant
        else:
            scene.used.add(OWNER)
    if name == "you" and scene.polite:
        name = "we"  # a polite sentence cannot say 네
    pronoun = PRONOUNS[name]
    word = Word(pronoun.possessive)
    if name == "I" and "ours" in entry.classes:
        return [word], [Eojeol("우리", (word,))]
    korean = attach(pronoun.polite if scene.polite else pronoun.plain, "의")
    return [word], [Eojeol(korean, (word,))]


_POSSESSORS = ("he", "she", "we", "you", "he", "she")
_NAMES = nouns_of("name")
_KOREAN_NAME = {entry.english[0]: entry.korean for entry in _NAMES}
_DEMONSTRATIVES = {"this": "이", "that": "저"}
_PLURAL_DEMONSTRATIVES = {"these": "이", "those": "저"}


def _assembled(
    entry: Noun,
    determiner: tuple[list[Word], list[Eojeol]],
    description: tuple[list[Word], list[Eojeol]],
    *,
    plural: bool = False,
    marked: bool = False,
) -> NounPhrase:
    """Determiner, adjective and noun put together; `marked` adds 들."""
    head = words(entry.plural if plural else entry.english)
    (determiner_words, determiner_korean), (adjective_words, adjective_korean) = determiner, description
    text = entry.korean + "들" if marked else entry.korean
    phrase = NounPhrase([*determiner_words, *adjective_words, *head], text, head)
    phrase.before = determiner_korean + adjective_korean
    if not determiner_korean:
        phrase.possible = determiner_words  # "the" and "a" live in no word of their own
    phrase.respected = "elder" in entry.classes
    if plural or entry.form == "plural":
        phrase.agreement = "plural"
    return phrase


# Marks in `Scene.used`: a third person was the subject, his or her things were mentioned, "that" is taken.
SINGULAR, OWNER, CONJUNCTION = "a third person", "his or her", "that"

# Things of which nobody says "my" or "Minsu's".
_UNOWNED = frozenset({"film", "wild", "tiny", "shut", "heard", "plant", "food", "drink"})
_BARE = frozenset({"meal", "sport", "study"})
_ANY_WILL_DO = frozenset({"transit", "keys", "bowed"})
_ONLY_DEFINITE = frozenset({"definite", "place"})
_SPOKEN_WITH_THE = frozenset({"definite", "place", "keys", "bowed"})  # "play the piano"


def thing(
    scene: Scene,
    entry: Noun,
    *,
    adjective: float = 0.22,
    generic: bool = False,
    definite: bool = False,
    owned_by_others: bool = True,
) -> NounPhrase:
    """A thing with a determiner that suits it, perhaps with an adjective.

    `generic` speaks of the kind ("cats", "bread"), as after "like"; `definite` excludes "a"; without
    `owned_by_others` nobody's name or pronoun stands before it.
    """
    scene.used.add(entry)
    if entry.form == "name":
        return _assembled(entry, ([], []), ([], []))
    if generic:
        if entry.classes & _SPOKEN_WITH_THE:
            return _assembled(entry, ([Word("the")], []), ([], []))
        return _assembled(entry, ([], []), ([], []), plural=entry.form == "count")
    description = ([], []) if entry.classes & _BARE else describe(scene, entry, adjective)
    can_be_owned = owned_by_others and not entry.classes & _UNOWNED
    if entry.form != "count":
        return _uncounted(scene, entry, description, definite, can_be_owned)
    if entry.classes & _ONLY_DEFINITE:
        return _assembled(entry, ([Word("the")], []), description)
    draw = scene.random()
    if draw < 0.34 and not definite:
        return _indefinite(entry, description)
    if draw < 0.62 or entry.classes & _ANY_WILL_DO:
        return _assembled(entry, ([Word("the")], []), description)
    if draw < 0.78 and can_be_owned:
        return _assembled(entry, _possessor(scene, entry), description)
    if draw < 0.90:
        return _assembled(entry, _demonstrative(scene, _DEMONSTRATIVES), description)
    if draw < 0.95:
        determiner = _demonstrative(scene, _PLURAL_DEMONSTRATIVES)
        return _assembled(entry, determiner, description, plural=True, marked=True)
    living = "animal" in entry.classes
    return _assembled(entry, ([Word("the")], []), description, plural=True, marked=living)


def _indefinite(entry: Noun, description: tuple[list[Word], list[Eojeol]]) -> NounPhrase:
    first = description[0][0].text if description[0] else entry.english[0]
    phrase = _assembled(entry, ([Word(article(first))], []), description)
    phrase.definite = False
    return phrase


def _demonstrative(scene: Scene, table: dict[str, str]) -> tuple[list[Word], list[Eojeol]]:
    english, korean = scene.pick(tuple(table.items()))
    if english == "that" and CONJUNCTION in scene.used:
        english, korean = "this", table["this"]  # not "I think that that book …"
    word = Word(english)
    return [word], [Eojeol(korean, (word,))]


def _uncounted(
    scene: Scene,
    entry: Noun,
    description: tuple[list[Word], list[Eojeol]],
    definite: bool,
    can_be_owned: bool,
) -> NounPhrase:
    """bread, the bread, my shoes: no number, hence no "a"."""
    draw = scene.random()
    if entry.classes & _BARE or (draw < 0.5 and not definite):
        return _assembled(entry, ([], []), description)
    if draw < 0.75 or not can_be_owned:
        return _assembled(entry, ([Word("the")], []), description)
    return _assembled(entry, _possessor(scene, entry), description)


def human(scene: Scene, entry: Noun, *, adjective: float = 0.1, indefinite: float = 0.0) -> NounPhrase:
    """A person: a name, "my mother", "the kind nurse", "the students"."""
    scene.used.add(entry)
    if entry.form == "name":
        return _assembled(entry, ([], []), ([], []))
    if "kin" in entry.classes:
        return _assembled(entry, _possessor(scene, entry), ([], []))
    if "elder" in entry.classes:
        determiner = ([Word("the")], []) if scene.chance(0.5) else _possessor(scene, entry)
        return _assembled(entry, determiner, ([], []))
    description = describe(scene, entry, adjective)
    draw = scene.random()
    if draw < indefinite:
        return _indefinite(entry, description)
    if draw < 0.25:
        return _assembled(entry, _demonstrative(scene, _DEMONSTRATIVES), description)
    plural = draw < 0.45
    return _assembled(entry, ([Word("the")], []), description, plural=plural, marked=plural)


# Nouns for people, by what a verb asks of its subject.
_ADULTS = nouns_of("adult")
_CHILDREN = nouns_of("young")
_PERSONS = nouns_of("person")
_ELDERS = nouns_of("elder")


def someone(
    scene: Scene,
    subjects: frozenset[str],
    *,
    you: float = 0.0,
    indefinite: float = 0.0,
    others: bool = False,
) -> NounPhrase:
    """A person as a subject.

    `you` and `indefinite` are the probabilities of "you" and "a"; `others` leaves out "I" and "we", for
    nobody asks what he himself does.
    """
    if you and scene.chance(you):
        return pronoun_subject(scene, "you")
    draw = scene.random()
    if OWNER in scene.used:
        return pronoun_subject(scene, _unused_pronoun(scene, others, _PLURAL_PRONOUNS))
    if draw < 0.46:
        name = _unused_pronoun(scene, others, _COMMON_PRONOUNS)
        if name in ("he", "she"):
            scene.used.add(SINGULAR)
        return pronoun_subject(scene, name)
    scene.used.add(SINGULAR)
    if draw < 0.60:
        return human(scene, scene.pick_new(_NAMES))
    if draw < 0.72 and "young" not in subjects:
        return human(scene, scene.pick_new(_ELDERS))
    pool = _PERSONS if "person" in subjects else _CHILDREN if "young" in subjects else _ADULTS
    return human(scene, scene.pick_new(pool), indefinite=indefinite)


_COMMON_PRONOUNS = ("I", "I", "I", "he", "he", "she", "she", "we", "we", "they", "you")
_PLURAL_PRONOUNS = ("I", "I", "we", "they", "you")


def _unused_pronoun(scene: Scene, others: bool, names: tuple[str, ...]) -> str:
    """Any pronoun but one that was mentioned; a polite statement does not say "you"."""
    used = scene.used
    for _ in range(8):
        name = scene.pick(names)
        if name in used or (name == "you" and scene.polite):
            continue
        if name in ("I", "we") and (others or "I" in used or "we" in used):
            continue
        if name in ("he", "she") and SINGULAR in used:
            continue  # "Minsu …, and he": the same man?
        return name
    return "they"


def subject(
    scene: Scene,
    verb: Verb,
    *,
    you: float = 0.0,
    indefinite: float = 0.0,
    question: bool = False,
) -> NounPhrase:
    """Whoever can be the subject of a verb: a person, or an animal or thing among its actors."""
    if not verb.people:
        return thing(scene, scene.pick_new(verb.actors), adjective=0.1)
    return someone(scene, verb.subjects, you=you, indefinite=indefinite, others=question)


def counted(scene: Scene, entry: Noun) -> NounPhrase:
    """A number of things: two books, 책 두 권."""
    scene.used.add(entry)
    number = scene.pick(NUMBERS)
    plural = number.english[0] != "one"
    number_word = Word(number.english[0])
    head = words(entry.plural if plural else entry.english)
    phrase = NounPhrase([number_word, *head], entry.counter, (number_word,))
    phrase.before = [Eojeol(entry.korean, head), Eojeol(number.korean[0], (number_word,))]
    phrase.possible = head
    phrase.agreement = "plural" if plural else "third"
    phrase.definite = False
    return phrase


# How English measures what cannot be counted; Korean uses the noun's counter.
_MEASURES = {
    "잔": ("glass", "glasses"),
    "켤레": ("pair", "pairs"),
    "벌": ("pair", "pairs"),
    "그릇": ("bowl", "bowls"),
}
_IN_CUPS = frozenset({"coffee", "tea"})
MEASURABLE = tuple(
    entry for entry in NOUNS if entry.form in ("mass", "plural") and entry.counter in _MEASURES
)


def measured(scene: Scene, entry: Noun) -> NounPhrase:
    """Cups, bowls and pairs: two cups of coffee, 커피 두 잔."""
    scene.used.add(entry)
    number = scene.pick(NUMBERS[:5])
    single, several = ("cup", "cups") if entry.key in _IN_CUPS else _MEASURES[entry.counter]
    one = number.english[0] == "one"
    number_word, measure, of = words([number.english[0], single if one else several, "of"])
    head = words(entry.english)
    phrase = NounPhrase([number_word, measure, of, *head], entry.counter, (measure,))
    phrase.before = [Eojeol(entry.korean, head), Eojeol(number.korean[0], (number_word,))]
    phrase.possible = (of,)
    phrase.agreement = "third" if one else "plural"
    phrase.definite = False
    return phrase


def place_phrase(entry: Noun, preposition: str = "") -> NounPhrase:
    """A place with its English preposition: "at home", "to the library"."""
    lead = words([preposition] if preposition else [])
    if entry.key == "home" and preposition in ("to", "for"):
        lead = []  # "go home"
    the = [Word("the")] if entry.has_article else []
    head = words(entry.english)
    phrase = NounPhrase([*lead, *the, *head], entry.korean, head)
    phrase.possible = [*lead, *the]
    return phrase


def indefinite(scene: Scene, entry: Noun, *, adjective: float = 0.0) -> NounPhrase:
    """Some instance of it: a book, an old bag, milk, red shoes."""
    scene.used.add(entry)
    description = describe(scene, entry, adjective)
    if entry.form == "count":
        return _indefinite(entry, description)
    phrase = _assembled(entry, ([], []), description)
    phrase.definite = False
    return phrase


def owned(scene: Scene, entry: Noun, *, adjective: float = 0.15) -> NounPhrase:
    """Somebody's: my bag, Minsu's old bicycle."""
    scene.used.add(entry)
    return _assembled(entry, _possessor(scene, entry), describe(scene, entry, adjective))
