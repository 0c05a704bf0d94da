"""The content words of the grammar, and a lower bound on the number of pairs that it can generate."""

from __future__ import annotations

from functools import cache

from jumok.datasets.english_korean.clauses import fitting_times, may_be_owned
from jumok.datasets.english_korean.lexicon import (
    ADJECTIVES,
    ATTRIBUTES,
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
    TRAITS,
    TRANSITIVE,
    Noun,
    Verb,
)


@cache
def content_words() -> tuple[str, ...]:
    """Return every content word once as "english korean": "dog 개", "play 켜다", "yesterday 어제"."""
    verbs = (*TRANSITIVE, *INTRANSITIVE, *MOTION, *GIVING)
    adjectives = (*ADJECTIVES, *STATES, *TRAITS, *ATTRIBUTES)
    adverbs = (*TIMES, *FREQUENCIES, *MANNERS, *DEGREES, *NUMBERS, *RELATIONS)
    entries = [
        *(f"{noun.key} {noun.korean}" for noun in NOUNS),
        *(" ".join([verb.forms.base, *verb.after, *verb.before, f"{verb.stem.text}다"]) for verb in verbs),
        *(f"{adjective.english} {adjective.dictionary_form}" for adjective in adjectives),
        *(" ".join([*adverb.english, *adverb.korean]) for adverb in adverbs),
    ]
    return tuple(dict.fromkeys(entries))


@cache
def capacity() -> int:
    """Return a lower bound of the number of distinct pairs.

    It counts only the pattern "transitive with time" in the past and future: subject × verb with object ×
    time that fits verb and tense × polarity, in two styles. It counts neither adjectives, nor animals as
    subjects, nor the verbs that `_is_counted` leaves out.
    """
    objects_and_times = sum(
        _num_object_phrases(verb) * _num_times(verb) for verb in TRANSITIVE if _is_counted(verb)
    )
    return _num_subjects() * objects_and_times * 2 * 2


def _num_subjects() -> int:
    """Count I, he, she, we, they; names; my and our mother; the nurse, the nurses, this nurse, that nurse."""
    people = [noun for noun in NOUNS if noun.classes & {"person", "elder"}]
    return 5 + sum(
        1 if noun.form == "name" else 2 if noun.classes & {"kin", "elder"} else 4 for noun in people
    )


def _is_counted(verb: Verb) -> bool:
    """Return whether a verb shows its tense, allows every person as its subject, and allows several persons.

    "Wear", "take off" and "turn off" have a singular subject if their object is one thing.
    """
    shows_tense = verb.forms.base != verb.forms.past
    return shows_tense and "person" in verb.subjects and verb.forms.base != "wear" and "off" not in verb.after


def _num_times(verb: Verb) -> int:
    """Return the number of times in the past and future that fit the verb with every object."""
    return sum(
        len(fitting_times(verb.times, tense, is_meal=True)) for tense in verb.tenses if tense != "present"
    )


def _num_object_phrases(verb: Verb) -> int:
    return sum(_num_determiners(verb, noun) for noun in set(verb.objects))


def _num_determiners(verb: Verb, noun: Noun) -> int:
    """Return a lower bound of the number of determiners before an object.

    They are a, the, this, that and seven possessors. Some objects take only the first four, or only one.
    """
    is_limited = bool(noun.classes & {"person", "elder", "place", "definite", "transit", "instrument"})
    if noun.form != "count" or is_limited or verb.is_creation or verb.has_generic_object:
        return 1
    return 11 if may_be_owned(verb, noun) else 4
