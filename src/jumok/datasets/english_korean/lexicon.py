"""The lexicon: the tables read into words, and the lists of what goes with what.

Everything is computed once, when the module is imported. The lists a sentence draws from repeat an entry
more often when it has few other chances to appear, so that every word is about equally frequent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from jumok.corpus.english_korean import expressions, nouns, predicates
from jumok.corpus.english_korean.conjugation import Stem, stem
from jumok.corpus.english_korean.english import VerbForms, plural_of, verb_forms
from jumok.corpus.english_korean.splits import combination_split

__all__ = [
    "ADJECTIVES",
    "ATTRIBUTES",
    "CHARACTERS",
    "DEGREES",
    "FREQUENCIES",
    "GIVING",
    "INTRANSITIVE",
    "MANNERS",
    "MOTION",
    "NOUNS",
    "NUMBERS",
    "RELATIONS",
    "STATES",
    "TIMES",
    "TRANSITIVE",
    "Adjective",
    "Expression",
    "Noun",
    "Verb",
    "human_verbs",
    "kept_for",
    "nouns_of",
]


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun; a place also has its English preposition and says whether it takes "the"."""

    english: tuple[str, ...]
    plural: tuple[str, ...]
    korean: str
    counter: str
    classes: frozenset[str]
    form: str  # "count", "mass", "plural" or "name"
    preposition: str = ""
    has_article: bool = True

    @property
    def key(self) -> str:
        return " ".join(self.english)


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb and what it goes with. The lists are to be drawn from; they may repeat an entry."""

    forms: VerbForms
    after: tuple[str, ...]  # "to" in "listen to", "on" in "turn on"
    stem: Stem
    before: tuple[str, ...]  # Korean words that stand before the stem: 보여 주다
    respectful: Stem | None
    subjects: frozenset[str]  # "person", "adult", "young", "elder", "animal", or nouns
    people: bool
    actors: tuple[Noun, ...]  # nouns other than people that can do it
    objects: tuple[Noun, ...] = ()
    places: tuple[Noun, ...] = ()
    manners: tuple[Expression, ...] = ()
    joint: tuple[str, str] = ("", "")  # English preposition and Korean particle of its place
    key: str = ""
    variety: int = 0  # distinct objects or places
    humble: Verb | None = None  # 드리다, said when an elder receives


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective and the nouns it may be said of."""

    english: str
    stem: Stem
    before: tuple[str, ...]
    respectful: Stem | None
    things: tuple[Noun, ...]
    key: str = ""
    variety: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """An adverb, a time, a number: words on both sides, and the tenses it goes with."""

    english: tuple[str, ...]
    korean: tuple[str, ...]
    tenses: frozenset[str] = field(default_factory=frozenset)

    @property
    def key(self) -> str:
        return " ".join(self.english)


def _rows(table: str) -> list[list[str]]:
    separator = "|" if "|" in table else None
    return [[cell.strip() for cell in line.split(separator)] for line in table.strip().splitlines()]


def _read_noun(row: list[str], *, is_place: bool = False) -> Noun:
    name, korean, counter = row[:3]
    form = {"~": "mass", "+": "plural", "=": "name"}.get(name[0], "count")
    name = name.lstrip("~+=")
    singular, _, plural = name.partition("/")
    classes = [*row[5:], "place"] if is_place else row[3:]
    return Noun(
        english=tuple(singular.split("_")),
        plural=tuple((plural or plural_of(singular)).split("_")),
        korean=korean,
        counter=counter,
        classes=frozenset(classes),
        form=form,
        preposition=row[3] if is_place else "",
        has_article=row[4] == "the" if is_place else form != "name",
    )


def _read_nouns() -> tuple[Noun, ...]:
    tables = (nouns.PEOPLE, nouns.ANIMALS, nouns.FOOD, nouns.CULTURE, nouns.CLOTHES, nouns.THINGS)
    things = [_read_noun(row) for table in tables for row in _rows(table)]
    return (*things, *(_read_noun(row, is_place=True) for row in _rows(nouns.PLACES)))


NOUNS = _read_nouns()


def nouns_of(specification: str) -> tuple[Noun, ...]:
    """The nouns of any of these classes, or named as `=piano`, in the order of the tables."""
    wanted = specification.split()
    names = {item[1:].replace("_", " ") for item in wanted if item[0] == "="}
    classes = frozenset(item for item in wanted if item[0] != "=")
    return tuple(entry for entry in NOUNS if entry.key in names or entry.classes & classes)


def _read_expressions(table: str) -> tuple[Expression, ...]:
    return tuple(
        Expression(tuple(row[0].split()), tuple(row[1].split()), frozenset(" ".join(row[2:]).split()))
        for row in _rows(table)
    )


TIMES = _read_expressions(expressions.TIMES)
FREQUENCIES = _read_expressions(expressions.FREQUENCIES)
MANNERS = _read_expressions(expressions.MANNERS)
DEGREES = _read_expressions(expressions.DEGREES)
NUMBERS = _read_expressions(expressions.NUMBERS)
RELATIONS = _read_expressions(expressions.RELATIONS)

_MANNER_BY_KEY = {entry.key: entry for entry in MANNERS}


def _balanced(lists: list[tuple[Noun, ...]]) -> list[tuple[Noun, ...]]:
    """Repeat in each list the nouns that few lists offer, so that all become about equally frequent."""
    chances: dict[Noun, float] = {}
    for entries in lists:
        for entry in entries:
            chances[entry] = chances.get(entry, 0.0) + 1 / len(entries)
    return [
        tuple(entry for entry in entries for _ in range(max(1, min(6, round(1 / chances[entry])))))
        for entries in lists
    ]


def _split_stem(form: str, kind: str) -> tuple[tuple[str, ...], Stem]:
    *before, last = form.split()
    return tuple(before), stem(last, kind)


def _read_respectful(form: str, kind: str) -> Stem | None:
    return stem(form, kind)._replace(respectful=True) if form else None


def _read_verbs(table: str, *, joined: bool = False) -> tuple[Verb, ...]:
    rows = _rows(table)
    objects = _balanced([() if joined else nouns_of(row[3]) for row in rows])
    return tuple(_read_verb(row, found, joined) for row, found in zip(rows, objects, strict=True))


def _read_verb(row: list[str], objects: tuple[Noun, ...], joined: bool) -> Verb:
    english, korean, who, whom, where, how, respectful = row
    first, *irregular = english.split("/")
    base, *after = first.split("_")
    before, korean_stem = _split_stem(korean, "verb")
    respectful_stem = _read_respectful(respectful, "verb")
    subjects = frozenset(who.split())
    places = nouns_of(where)
    return Verb(
        forms=verb_forms("/".join([base, *irregular])),
        after=tuple(after),
        stem=korean_stem,
        before=before,
        respectful=respectful_stem,
        subjects=subjects,
        people=bool(subjects & {"person", "adult", "young", "elder"}),
        actors=tuple(entry for entry in nouns_of(who) if not entry.classes & {"person", "elder"}),
        objects=objects,
        places=places,
        manners=tuple(_MANNER_BY_KEY[name] for name in how.split()),
        joint=(whom.split()[0], whom.split()[1]) if joined else ("", ""),
        key=f"{first} {korean_stem.text}",
        variety=len(set(objects or places)),
    )


def _read_giving() -> tuple[Verb, ...]:
    """Verbs of giving: their last column is the humble form, used when an elder receives."""
    found = []
    for row in _rows(predicates.GIVING):
        (verb,) = _read_verbs(" | ".join([*row[:-1], ""]))
        before, humble_stem = _split_stem(row[-1], "verb") if row[-1] else (verb.before, verb.stem)
        found.append(replace(verb, humble=replace(verb, stem=humble_stem, before=before)))
    return tuple(found)


def _read_adjectives(table: str) -> tuple[Adjective, ...]:
    rows = _rows(table)
    balanced = _balanced([nouns_of(row[2]) for row in rows])
    found = []
    for (english, korean, _, respectful), things in zip(rows, balanced, strict=True):
        before, korean_stem = _split_stem(korean, "adjective")
        respectful_stem = _read_respectful(respectful, "adjective")
        key = f"{english} {korean_stem.text}"
        found.append(Adjective(english, korean_stem, before, respectful_stem, things, key, len(set(things))))
    return tuple(found)


TRANSITIVE = _read_verbs(predicates.TRANSITIVE)
INTRANSITIVE = _read_verbs(predicates.INTRANSITIVE)
MOTION = _read_verbs(predicates.MOTION, joined=True)
GIVING = _read_giving()
ADJECTIVES = _read_adjectives(predicates.ADJECTIVES)
STATES = _read_adjectives(predicates.STATES)
CHARACTERS = _read_adjectives(predicates.CHARACTERS)
ATTRIBUTES = _read_adjectives(predicates.ATTRIBUTES)


def human_verbs(names: str) -> tuple[Verb, ...]:
    """What people do, by English verbs: transitive and intransitive ones. "play" is to play something."""
    wanted = names.split()
    return tuple(
        verb
        for verb in (*TRANSITIVE, *INTRANSITIVE)
        if verb.people and verb.forms.base in wanted and (verb.forms.base != "play" or verb.objects)
    )


# A combination is held out only where both of its words keep this many others: what a model is then asked for
# is to combine two words that it knows well, not to guess.
_FEWEST_COMPLEMENTS, _FEWEST_PREDICATES = 10, 8
_PREDICATES_OF = Counter(
    noun
    for partners in (
        *(adjective.things for adjective in ADJECTIVES),
        *(verb.objects or verb.places for verb in (*TRANSITIVE, *MOTION)),
    )
    for noun in set(partners)
)


def kept_for(predicate: Verb | Adjective, noun: Noun) -> str:
    """The split that a combination is kept for, or "train" when it may occur anywhere."""
    if predicate.variety < _FEWEST_COMPLEMENTS or _PREDICATES_OF[noun] < _FEWEST_PREDICATES:
        return "train"
    return combination_split(predicate.key, noun.key)
