"""What the grammar holds: its content words, and how many pairs it can give at least."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jumok.corpus.english_korean.clauses import STATIVE, TIMES_BY_TENSE
from jumok.corpus.english_korean.lexicon import (
    ADJECTIVES,
    ATTRIBUTES,
    CHARACTERS,
    DEGREES,
    FREQUENCIES,
    GIVING,
    INTRANSITIVE,
    MANNERS,
    MOTION,
    NOUNS,
    NUMBERS,
    RELATIONS,
    STATES,
    TIMES,
    TRANSITIVE,
    Noun,
    Verb,
)
from jumok.corpus.english_korean.verb_phrases import BECOMES, LOCATED, MODES, NEEDED, OWNED, RAINS

if TYPE_CHECKING:
    from jumok.corpus.english_korean.conjugation import Stem

__all__ = ["all_stems", "capacity", "content_words"]


@cache
def content_words() -> tuple[str, ...]:
    """Every content word as "english korean", each once: "dog 개", "play 켜다", "yesterday 어제"."""
    verbs = (*TRANSITIVE, *INTRANSITIVE, *MOTION, *GIVING)
    adjectives = (*ADJECTIVES, *STATES, *CHARACTERS, *ATTRIBUTES)
    adverbs = (*TIMES, *FREQUENCIES, *MANNERS, *DEGREES, *NUMBERS, *RELATIONS)
    entries = [
        *(f"{noun.key} {noun.korean}" for noun in NOUNS),
        *(" ".join([verb.forms.base, *verb.after, *verb.before, f"{verb.stem.text}다"]) for verb in verbs),
        *(
            " ".join([adjective.english, *adjective.before, f"{adjective.stem.text}다"])
            for adjective in adjectives
        ),
        *(" ".join([*adverb.english, *adverb.korean]) for adverb in adverbs),
    ]
    return tuple(dict.fromkeys(entries))


# Subjects counted for the bound: I, he, she, we, they, six names, and "the" with one or several people.
_PRONOUNS_AND_NAMES = 11
_PEOPLE = sum(1 for noun in NOUNS if "job" in noun.classes)


@cache
def capacity() -> int:
    """At least so many distinct pairs can be given.

    Counted is only the pattern "something is done sometime", without adjectives, possessors, elders and
    animals: subject × verb with object × polarity × times that go with the tense, in two styles.
    """
    subjects = _PRONOUNS_AND_NAMES + 2 * _PEOPLE
    times = sum(len(entries) for entries in TIMES_BY_TENSE.values())
    objects = sum(_object_phrases(verb) for verb in TRANSITIVE if _is_counted(verb))
    return subjects * objects * 2 * times * 2


def _is_counted(verb: Verb) -> bool:
    """Verbs that take a time, show their tense and are done by anybody."""
    is_clear = verb.forms.base != verb.forms.past
    return is_clear and "person" in verb.subjects and verb.forms.base not in STATIVE


def _object_phrases(verb: Verb) -> int:
    return sum(_determiners(noun) for noun in set(verb.objects))


def _determiners(noun: Noun) -> int:
    """a, the, this, that for what is counted; one way at least for the rest."""
    limited = noun.classes & {"person", "elder", "place", "definite", "transit", "keys", "bowed"}
    plain = noun.form == "count" and not limited
    return 4 if plain else 1


@cache
def all_stems() -> tuple[Stem, ...]:
    """Every stem that the grammar conjugates, each once."""
    humble = (verb.humble for verb in GIVING if verb.humble)
    verbs = (*TRANSITIVE, *INTRANSITIVE, *MOTION, *GIVING, *humble, LOCATED, NEEDED, OWNED, RAINS, BECOMES)
    adjectives = (*ADJECTIVES, *STATES, *CHARACTERS, *ATTRIBUTES)
    stems = [
        *(verb.stem for verb in verbs),
        *(adjective.stem for adjective in adjectives),
        *(verb.respectful for verb in verbs if verb.respectful),
        *(adjective.respectful for adjective in adjectives if adjective.respectful),
        *(mode.stem for mode in MODES.values() if mode.stem),
    ]
    return tuple(dict.fromkeys(stems))
