"""The lexicon: nouns, verbs, adjectives and expressions read from the tables.

Everything is computed once at import. The lists that sentences draw from repeat an entry that is in few
lists, which makes all words about equally frequent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from jumok.datasets.english_korean import expressions, nouns, predicates
from jumok.datasets.english_korean.conjugation import Stem, stem
from jumok.datasets.english_korean.english import VerbForms, plural_of, verb_forms
from jumok.datasets.english_korean.splits import combination_split

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
    "nouns_of",
    "reserved_split",
]


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun; a place also has an English preposition and may take "the"."""

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
    """A verb and the words it combines with. Lists may repeat an entry to make it more frequent."""

    forms: VerbForms
    after: tuple[str, ...]  # "to" in "listen to", "on" in "turn on"
    stem: Stem
    before: tuple[str, ...]  # Korean words before the stem: 보여 주다
    honorific_stem: Stem | None
    subjects: frozenset[str]  # "person", "adult", "young", "elder", "animal", or nouns
    human_subject: bool
    actors: tuple[Noun, ...]  # nouns other than people that can be its subject
    objects: tuple[Noun, ...] = ()
    places: tuple[Noun, ...] = ()
    manners: tuple[Expression, ...] = ()
    adpositions: tuple[str, str] = ("", "")  # English preposition and Korean particle of its place
    key: str = ""
    variety: int = 0  # distinct objects or places
    humble: Verb | None = None  # 드리다, used when an elder is the recipient


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective and the nouns it can describe."""

    english: str
    stem: Stem
    before: tuple[str, ...]
    honorific_stem: Stem | None
    things: tuple[Noun, ...]
    key: str = ""
    variety: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """An adverb, a time or a number: its words on both sides and the tenses it fits."""

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
    """Return the nouns of any of these classes, or named as `=piano`, in table order."""
    items = specification.split()
    names = {item[1:].replace("_", " ") for item in items if item[0] == "="}
    classes = frozenset(item for item in items if item[0] != "=")
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


def _balance(lists: list[tuple[Noun, ...]]) -> list[tuple[Noun, ...]]:
    """Repeat the nouns that are in few lists, so that all are about equally frequent."""
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


def _read_honorific(form: str, kind: str) -> Stem | None:
    return stem(form, kind)._replace(honorific=True) if form else None


def _read_verbs(table: str, *, is_motion: bool = False) -> tuple[Verb, ...]:
    rows = _rows(table)
    objects = _balance([() if is_motion else nouns_of(row[3]) for row in rows])
    return tuple(_read_verb(row, entries, is_motion) for row, entries in zip(rows, objects, strict=True))


def _read_verb(row: list[str], objects: tuple[Noun, ...], is_motion: bool) -> Verb:
    english, korean, subject_cell, object_cell, place_cell, manner_cell, honorific = row
    first, *irregular = english.split("/")
    base, *after = first.split("_")
    before, korean_stem = _split_stem(korean, "verb")
    honorific_stem = _read_honorific(honorific, "verb")
    subjects = frozenset(subject_cell.split())
    places = nouns_of(place_cell)
    return Verb(
        forms=verb_forms("/".join([base, *irregular])),
        after=tuple(after),
        stem=korean_stem,
        before=before,
        honorific_stem=honorific_stem,
        subjects=subjects,
        human_subject=bool(subjects & {"person", "adult", "young", "elder"}),
        actors=tuple(entry for entry in nouns_of(subject_cell) if not entry.classes & {"person", "elder"}),
        objects=objects,
        places=places,
        manners=tuple(_MANNER_BY_KEY[name] for name in manner_cell.split()),
        adpositions=(object_cell.split()[0], object_cell.split()[1]) if is_motion else ("", ""),
        key=f"{first} {korean_stem.text}",
        variety=len(set(objects or places)),
    )


def _read_giving() -> tuple[Verb, ...]:
    """Read verbs of giving: the last column is the humble form, used when an elder is the recipient."""
    verbs = []
    for row in _rows(predicates.GIVING):
        (verb,) = _read_verbs(" | ".join([*row[:-1], ""]))
        before, humble_stem = _split_stem(row[-1], "verb") if row[-1] else (verb.before, verb.stem)
        verbs.append(replace(verb, humble=replace(verb, stem=humble_stem, before=before)))
    return tuple(verbs)


def _read_adjectives(table: str) -> tuple[Adjective, ...]:
    rows = _rows(table)
    balanced = _balance([nouns_of(row[2]) for row in rows])
    adjectives = []
    for (english, korean, _, honorific), things in zip(rows, balanced, strict=True):
        before, korean_stem = _split_stem(korean, "adjective")
        honorific_stem = _read_honorific(honorific, "adjective")
        key = f"{english} {korean_stem.text}"
        adjectives.append(
            Adjective(english, korean_stem, before, honorific_stem, things, key, len(set(things)))
        )
    return tuple(adjectives)


TRANSITIVE = _read_verbs(predicates.TRANSITIVE)
INTRANSITIVE = _read_verbs(predicates.INTRANSITIVE)
MOTION = _read_verbs(predicates.MOTION, is_motion=True)
GIVING = _read_giving()
ADJECTIVES = _read_adjectives(predicates.ADJECTIVES)
STATES = _read_adjectives(predicates.STATES)
CHARACTERS = _read_adjectives(predicates.CHARACTERS)
ATTRIBUTES = _read_adjectives(predicates.ATTRIBUTES)


def human_verbs(names: str) -> tuple[Verb, ...]:
    """Return the verbs with these English names that have people as subjects; "play" only with an object."""
    bases = names.split()
    return tuple(
        verb
        for verb in (*TRANSITIVE, *INTRANSITIVE)
        if verb.human_subject and verb.forms.base in bases and (verb.forms.base != "play" or verb.objects)
    )


# A combination is held out only if each of its words occurs in at least this many combinations: a model must
# combine two words that it knows well, not guess.
_MIN_COMPLEMENTS, _MIN_PREDICATES = 10, 8
_PREDICATES_OF = Counter(
    noun
    for partners in (
        *(adjective.things for adjective in ADJECTIVES),
        *(verb.objects or verb.places for verb in (*TRANSITIVE, *MOTION)),
    )
    for noun in set(partners)
)


def reserved_split(predicate: Verb | Adjective, noun: Noun) -> str:
    """Return the split that a combination is reserved for, or "train" if it may occur anywhere."""
    if predicate.variety < _MIN_COMPLEMENTS or _PREDICATES_OF[noun] < _MIN_PREDICATES:
        return "train"
    return combination_split(predicate.key, noun.key)
