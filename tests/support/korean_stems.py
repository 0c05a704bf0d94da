"""The stems of the English-Korean grammar whose forms are compared with forms by Kiwi, `kiwi_forms.json`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jumok.datasets.english_korean.lexicon import (
    ADJECTIVES,
    ATTRIBUTES,
    GIVING,
    INTRANSITIVE,
    MOTION,
    STATES,
    TRAITS,
    TRANSITIVE,
)
from jumok.datasets.english_korean.verb_phrases import (
    BECOME_VERB,
    LOCATION_VERB,
    MODES,
    NEED_VERB,
    POSSESSION_VERB,
    RAIN_VERB,
)

if TYPE_CHECKING:
    from jumok.datasets.english_korean.conjugation import Stem


@cache
def kiwi_stems() -> tuple[Stem, ...]:
    """Return the stems of the lexicon and of the modes, each once.

    The stems of single patterns (아니, 나쁘, 시원하, 생각하, 바라) and of negation (않, 못하, 없, 모르) are
    left out: `kiwi_forms.json` has none of their forms.
    """
    humble = (verb.humble for verb in GIVING if verb.humble)
    verbs = (
        *TRANSITIVE,
        *INTRANSITIVE,
        *MOTION,
        *GIVING,
        *humble,
        LOCATION_VERB,
        NEED_VERB,
        POSSESSION_VERB,
        RAIN_VERB,
        BECOME_VERB,
    )
    adjectives = (*ADJECTIVES, *STATES, *TRAITS, *ATTRIBUTES)
    stems = [
        *(verb.stem for verb in verbs),
        *(adjective.stem for adjective in adjectives),
        *(verb.honorific_stem for verb in verbs if verb.honorific_stem),
        *(adjective.honorific_stem for adjective in adjectives if adjective.honorific_stem),
        *(mode.stem for mode in MODES.values() if mode.stem),
    ]
    return tuple(dict.fromkeys(entry for entry in stems if entry.kind != "determiner"))
