"""The lexicon: nouns, verbs, adjectives and expressions read from the tables.

Everything is computed once at import. An entry that is in few lists is repeated in them, so that all words
are about equally frequent in sentences.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jumok.datasets.english_korean import expressions, nouns, predicates
from jumok.datasets.english_korean.conjugation import Stem, conjugate, stem
from jumok.datasets.english_korean.english import VerbForms, plural_of, verb_forms
from jumok.datasets.english_korean.splits import combination_split

if TYPE_CHECKING:
    from collections.abc import Mapping

TENSES = ("present", "past", "future")
_STATIVE = frozenset(predicates.STATIVE_VERBS.split())


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun; a place also has an English preposition and may take "the"."""

    english: tuple[str, ...]  # the words of the singular
    plural: tuple[str, ...]
    korean: str
    counter: str  # Korean word after a number: 책 두 권
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
    honorific_stem: Stem | None  # 드시 of 먹다; None: the honorific is regular, the stem with -(으)시-
    subjects: frozenset[str]  # classes of nouns, such as "person" or "young", and single nouns: "=dog"
    human_subject: bool
    actors: tuple[Noun, ...]  # nouns other than people that can be the subject
    objects: tuple[Noun, ...] = ()
    places: tuple[Noun, ...] = ()
    manners: tuple[Expression, ...] = ()
    adpositions: tuple[str, str] = ("", "")  # English preposition and Korean particle of its place
    key: str = ""
    variety: int = 0  # distinct objects or places
    humble: Verb | None = None  # 드리다, used when an elder is the recipient
    times: frozenset[str] = frozenset()  # kinds of times that fit the verb
    tenses: tuple[str, ...] = TENSES  # of a statement
    is_repeatable: bool = False  # people repeat the action with the same thing: "I use my computer every day"
    is_creation: bool = False  # the verb creates its object: "bake a cake"
    has_generic_object: bool = False  # the object means the kind: "collect stones"
    object_places: Mapping[Noun, tuple[Noun, ...]] = field(default_factory=dict)  # object → places that fit

    @property
    def is_habitual(self) -> bool:
        """Whether the verb describes a state or something that people do regularly.

        A question with such a verb can be in the present.
        """
        return not self.times or bool(self.times & {"everyday", "weekly"})


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective and the nouns it can describe."""

    english: str
    stem: Stem
    before: tuple[str, ...]
    honorific_stem: Stem | None
    things: tuple[Noun, ...]
    key: str = ""
    variety: int = 0  # distinct things

    @property
    def attributive(self) -> str:
        """The Korean form before a noun: 예쁜, 새."""
        return self.stem.text if self.stem.kind == "determiner" else conjugate(self.stem, "는")

    @property
    def dictionary_form(self) -> str:
        """The Korean word: 예쁘다, 키가 크다, 새."""
        ending = "" if self.stem.kind == "determiner" else "다"
        return " ".join([*self.before, self.stem.text + ending])


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """An adverb, a time, a number or a spatial relation (`under`, 밑) in both languages.

    Only a time has tenses and a kind.
    """

    english: tuple[str, ...]
    korean: tuple[str, ...]
    tenses: frozenset[str] = field(default_factory=frozenset)
    kind: str = ""

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
_NOUN_NAMES = frozenset(entry.key for entry in NOUNS)
_NOUN_CLASSES = frozenset(name for entry in NOUNS for name in entry.classes)


def nouns_of(specification: str) -> tuple[Noun, ...]:
    """Return the nouns that a specification names, in table order.

    A specification has classes of nouns, and single nouns such as `=piano`.
    """
    items = specification.split()
    names = {item[1:].replace("_", " ") for item in items if item[0] == "="}
    classes = frozenset(item for item in items if item[0] != "=")
    unknown = (names - _NOUN_NAMES) | (classes - _NOUN_CLASSES)
    if unknown:
        raise ValueError(f"No noun and no class of nouns is called {', '.join(sorted(unknown))}.")
    return tuple(entry for entry in NOUNS if entry.key in names or entry.classes & classes)


def _read_expressions(table: str) -> tuple[Expression, ...]:
    return tuple(
        Expression(
            tuple(row[0].split()),
            tuple(row[1].split()),
            frozenset(" ".join(row[2:3]).split()),
            "".join(row[3:]),
        )
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
    """Repeat the nouns that are in few lists, so that all nouns are about equally frequent."""
    chances: dict[Noun, float] = {}
    for entries in lists:
        for entry in entries:
            chances[entry] = chances.get(entry, 0.0) + 1 / len(entries)
    return [
        tuple(entry for entry in entries for _ in range(max(1, min(6, round(1 / chances[entry])))))
        for entries in lists
    ]


def _split_stem(form: str, kind: str) -> tuple[tuple[str, ...], Stem]:
    """Return the words before the last word, and the stem of the last: (배가,) and 고프 for 배가 고프다."""
    *before, last = form.split()
    return tuple(before), stem(last, kind if "다" in last else "determiner")


def _read_honorific(form: str, kind: str) -> Stem | None:
    return stem(form, kind)._replace(honorific=True) if form else None


def _read_verbs(table: str, *, is_motion: bool = False) -> tuple[Verb, ...]:
    rows = _rows(table)
    objects = _balance([() if is_motion else nouns_of(row[3]) for row in rows])
    verbs = [_read_verb(row, entries, is_motion) for row, entries in zip(rows, objects, strict=True)]
    partners: dict[str, set[Noun]] = {}  # key of a verb → objects or places in all rows of the verb
    for verb in verbs:
        partners.setdefault(verb.key, set()).update(verb.objects or verb.places)
    return tuple(replace(verb, variety=len(partners[verb.key])) for verb in verbs)


def _read_verb(row: list[str], objects: tuple[Noun, ...], is_motion: bool) -> Verb:
    english, korean, subject_cell, object_cell, place_cell, manner_cell, honorific, time_cell = row
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
        human_subject=bool(subjects & {"person", "adult", "young", "elder", "seller", "tutor", "female"}),
        actors=tuple(entry for entry in nouns_of(subject_cell) if not entry.classes & {"person", "elder"}),
        objects=objects,
        places=places,
        manners=tuple(_MANNER_BY_KEY[name] for name in manner_cell.split()),
        adpositions=(object_cell.split()[0], object_cell.split()[1]) if is_motion else ("", ""),
        key=f"{first} {korean_stem.text}",
        times=_time_kinds(time_cell),
        tenses=_tenses_of(base, korean_stem, subject_cell),
        is_repeatable="again" in time_cell.split(),
        is_creation=is_listed(predicates.CREATION, base, korean_stem),
        has_generic_object=is_listed(predicates.KIND_VERBS, base, korean_stem),
        object_places=_places_of_objects(first, objects, places),
    )


def is_listed(names: str, english: str, korean: Stem) -> bool:
    """Return whether `names` has this verb or adjective, either as english or as english/korean."""
    return english in names.split() or f"{english}/{korean.text}다" in names.split()


def _time_kinds(cell: str) -> frozenset[str]:
    """Return the kinds of times of a cell with profiles and kinds.

    The flag "again" (`is_repeatable`) stays in the result. It matches no time.
    """
    profiles = expressions.TIME_PROFILES
    return frozenset(kind for name in cell.split() for kind in profiles.get(name, name).split())


def _tenses_of(base: str, korean: Stem, subjects: str) -> tuple[str, ...]:
    if is_listed(predicates.PAST_VERBS, base, korean):
        return ("past",)
    if is_listed(predicates.PAST_AND_FUTURE_VERBS, base, korean):
        return ("past", "future")
    can_be_future = (
        base not in _STATIVE
        and base not in predicates.PRESENT_AND_PAST_VERBS.split()
        and not any(entry.classes & {"animal"} for entry in nouns_of(subjects))
    )
    return TENSES if can_be_future else ("present", "past")


def _places_of_objects(
    name: str, objects: tuple[Noun, ...], places: tuple[Noun, ...]
) -> dict[Noun, tuple[Noun, ...]]:
    """Return the places of each object: books are bought at the bookstore, cakes at the bakery."""
    restrictions = [
        (nouns_of(place_cell), nouns_of(object_cell))
        for verbs, place_cell, object_cell in _rows(predicates.PLACES_OF_OBJECTS)
        if name in verbs.split()
    ]
    return {
        entry: tuple(
            place
            for place in places
            if all(entry in fitting for restricted, fitting in restrictions if place in restricted)
        )
        for entry in dict.fromkeys(objects)
    }


def _read_giving() -> tuple[Verb, ...]:
    """Read the verbs of giving. The column before the times is the humble form, used if an elder receives."""
    verbs = []
    for row in _rows(predicates.GIVING):
        (verb,) = _read_verbs(" | ".join([*row[:-2], "", row[-1]]))
        before, humble_stem = _split_stem(row[-2], "verb") if row[-2] else (verb.before, verb.stem)
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
TRAITS = _read_adjectives(predicates.TRAITS)
ATTRIBUTES = _read_adjectives(predicates.ATTRIBUTES)


def human_verbs(names: str) -> tuple[Verb, ...]:
    """Return the verbs with these English names and people as subjects.

    "play" is included only if it has an object.
    """
    bases = names.split()
    return tuple(
        verb
        for verb in (*TRANSITIVE, *INTRANSITIVE)
        if verb.human_subject and verb.forms.base in bases and (verb.forms.base != "play" or verb.objects)
    )


# A combination is held out only if its predicate occurs with at least 10 nouns, and its noun with at least 8
# predicates. A model that translates a held-out combination has then seen both words often.
_MIN_COMPLEMENTS, _MIN_PREDICATES = 10, 8
_NUM_PREDICATES = Counter(
    noun
    for partners in (
        *(adjective.things for adjective in ADJECTIVES),
        *(verb.objects or verb.places for verb in (*TRANSITIVE, *MOTION)),
    )
    for noun in set(partners)
)


def reserved_split(predicate: Verb | Adjective, noun: Noun) -> str:
    """Return the split that a combination is reserved for, or "train" if it may occur anywhere."""
    if predicate.variety < _MIN_COMPLEMENTS or _NUM_PREDICATES[noun] < _MIN_PREDICATES:
        return "train"
    return combination_split(predicate.key, noun.key)
