"""Decomposition and composition of Hangul syllables, and particles that depend on a word's last sound.

A precomposed syllable is 0xAC00 + (lead · 21 + vowel) · 28 + final; a final of 0 means an open syllable.
"""

from __future__ import annotations

from functools import cache

LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")

_FIRST, _LAST = 0xAC00, 0xD7A3

# Particle: (form after a consonant, form after a vowel). Particles not listed have one form. For 으로, ㄹ
# counts as a vowel.
_PARTICLES = {
    "은": ("은", "는"),
    "이": ("이", "가"),
    "을": ("을", "를"),
    "과": ("과", "와"),
    "으로": ("으로", "로"),
}

# Contractions of a pronoun with a particle.
_FUSED = {
    ("나", "이"): "내가",
    ("저", "이"): "제가",
    ("너", "이"): "네가",
    ("누구", "이"): "누가",
    ("나", "의"): "내",
    ("저", "의"): "제",
    ("너", "의"): "네",
    ("우리", "의"): "우리",
}

# Forms of particles after an honorific noun.
_HONORIFIC_PARTICLES = {"은": "께서는", "이": "께서", "에게": "께"}


def decompose(syllable: str) -> tuple[str, str, str]:
    """Return lead, vowel and final of a syllable: 간 → ㄱ, ㅏ, ㄴ."""
    code = ord(syllable) - _FIRST  # 588 = 21 · 28
    return LEADS[code // 588], VOWELS[code % 588 // 28], FINALS[code % 28]


def compose(lead: str, vowel: str, final: str = "") -> str:
    """Return the syllable of these sounds: ㄱ, ㅏ, ㄴ → 간."""
    return chr(_FIRST + (LEADS.index(lead) * 21 + VOWELS.index(vowel)) * 28 + FINALS.index(final))


def final_of(word: str) -> str:
    """Return the final consonant of a word's last syllable, '' if it ends in a vowel or is not Hangul."""
    code = ord(word[-1])
    return FINALS[(code - _FIRST) % 28] if _FIRST <= code <= _LAST else ""


def with_final(word: str, final: str) -> str:
    """Return the word with another final consonant in its last syllable: 가 + ㄴ → 간, 살 + '' → 사."""
    lead, vowel, _ = decompose(word[-1])
    return word[:-1] + compose(lead, vowel, final)


@cache
def attach(word: str, particle: str, honorific: bool = False) -> str:
    """Return a noun with its particle: 사과 + 을 → 사과를, 서울 + 으로 → 서울로, 나 + 이 → 내가."""
    if honorific and particle in _HONORIFIC_PARTICLES:
        return word + _HONORIFIC_PARTICLES[particle]
    fused = _FUSED.get((word, particle))
    if fused is not None:
        return fused
    if particle not in _PARTICLES:
        return word + particle
    after_consonant, after_vowel = _PARTICLES[particle]
    final = final_of(word)
    is_open = not final or (particle == "으로" and final == "ㄹ")
    return word + (after_vowel if is_open else after_consonant)
