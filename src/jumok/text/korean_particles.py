"""Korean particles: where a word's particle begins, and its form after another word.

    학생은 → 학생 + 은        교사 + 은 → 교사는        서울 + 으로 → 서울로

Many particles have one form after a consonant and another form after a vowel. The last sound of a word in
Hangul is exact. The last sound of a word in another script is derived from its last letter or digit.
"""

from __future__ import annotations

import re
from functools import cache

# (form after a consonant, form after a vowel). Each form is the beginning of the text after a noun. A longer
# form comes before its own prefixes, for example 이나 before 이.
ALTERNATIONS = (
    ("이었", "였"),
    ("이에요", "예요"),
    ("이야말로", "야말로"),
    ("이나마", "나마"),
    ("으로", "로"),
    ("이라", "라"),
    ("이란", "란"),
    ("이랑", "랑"),
    ("이든", "든"),
    ("이나", "나"),
    ("이며", "며"),
    ("이여", "여"),
    ("이다", "다"),
    ("이니", "니"),
    ("은", "는"),
    ("을", "를"),
    ("과", "와"),
    ("이", "가"),
    ("아", "야"),
)
_ONLY_AT_END = frozenset({"이", "가", "아", "야", "다", "니"})  # particles only at the end of a word
# After a vowel, the copula may keep its 이: both 의사이다 and 의사다 are correct.
_KEPT_AFTER_VOWEL = ("이다", "이니", "이라", "이란", "이며", "이든")
# Particles that have one form after every sound.
_ONE_FORM = (
    "(?:에게서|에게|에서|에|의|도|만|까지|부터|마다|처럼|보다|하고|한테서|한테|께서|께|밖에|뿐|조차|마저|같이|대로|만큼|커녕"
    "|입니다|입니까|인가|인데|인지|이고|이지만)"
)
# A second particle can follow 으로 or a particle with one form: 학생에게+는.
_SECOND = "(?:은|는|도|만|의|까지|부터|요|조차|마저|나|라도|이나)?"
# Particles that are never the end of a noun. The copula may follow these particles: 도서관에서다.
_NEVER_IN_NOUN = re.compile("(?<=.)(?:에게서?|에서|까지|부터|처럼|한테서?|께서)$")
# The copula before a noun, as in 학생인 친구. In 한국인 ("a Korean"), 인 is a part of the noun.
_ADNOMINAL = "인"
# The endings of the copula in the past tense: 이었+습니다, 였+다.
_COPULA_END = "(?:다|니|어|던|고|지만|습니다|습니까|으며|는데|어요)?"
_PLURAL = "들"

# Last letters and digits of words in other scripts that end in a consonant when they are read.
_CONSONANT_DIGITS = "013678"  # 영, 일, 삼, 육, 칠, 팔
_CONSONANT_LETTER_NAMES = "lmnr"  # of an acronym, read letter by letter: 엘, 엠, 엔, 알
_CONSONANT_LETTERS = "lmn"  # of any other word: Seoul, Tom; "ng" also ends in a consonant
_CONSONANT_LETTERS_AFTER_VOWEL = "bkpt"  # Kakaotalk ends in the vowel of 크, jumok in ㄱ
_READ_WITH_FINAL_L = frozenset("178lr")  # 일, 칠, 팔, 엘, 알


def ends_in_consonant(word: str) -> bool:
    """Return whether the last sound of a word is a consonant, according to its spelling."""
    return _final_consonant(word) != ""


def split_particle(word: str) -> tuple[str, str]:
    """Split a word into the noun and its particles ("" if there are none): 학생들은 → 학생, 들은."""
    for position in range(1, len(word)):
        stem, tail = word[:position], word[position:]
        if is_particle(stem, tail):
            noun = _NEVER_IN_NOUN.sub("", stem)
            return noun, word[len(noun) :]
    return word, ""


def is_particle(stem: str, tail: str) -> bool:
    """Return whether `tail` is one or more particles, in the form that particles have after `stem`."""
    if tail.startswith(_PLURAL) and (tail == _PLURAL or is_particle(_PLURAL, tail[1:])):
        return True
    consonant, is_l = ends_in_consonant(stem), _final_consonant(stem) == "ㄹ"
    return _pattern(consonant, is_l).fullmatch(tail) is not None


def noun_ends_before(noun: str, tail: str) -> bool:
    """Return whether a noun ends before `tail`: 한국 ends in 한국은, but not in 한국인 or 한국어."""
    return not tail or (tail != _ADNOMINAL and is_particle(noun, tail))


def adapt_particle(stem: str, tail: str, *, old_stem: str) -> str:
    """Change particles from the form after `old_stem` to the form after `stem`. Other tails stay."""
    consonant, old_consonant = ends_in_consonant(stem), ends_in_consonant(old_stem)
    for after_consonant, after_vowel in ALTERNATIONS:
        old_form = after_consonant if old_consonant else after_vowel
        form = after_consonant if consonant else after_vowel
        if after_consonant == "으로":
            old_form = "로" if _final_consonant(old_stem) == "ㄹ" else old_form
            form = "로" if _final_consonant(stem) == "ㄹ" else form
        if not old_consonant and after_consonant in _KEPT_AFTER_VOWEL and tail.startswith(after_consonant):
            return tail
        if tail.startswith(old_form) and (old_form not in _ONLY_AT_END or tail == old_form):
            if old_consonant and not consonant and after_consonant in _KEPT_AFTER_VOWEL:
                return tail
            return form + tail[len(old_form) :]
    return tail


@cache
def _pattern(consonant: bool, is_l: bool) -> re.Pattern[str]:
    """Return the pattern of the particles after a vowel, after ㄹ (`is_l`) or after another consonant."""
    forms = []
    for after_consonant, after_vowel in ALTERNATIONS:
        form = after_consonant if consonant else after_vowel
        if after_consonant == "으로":
            form = "로" if is_l else form
            forms.append(f"{form}(?:서|써|부터)?{_SECOND}")
        elif after_consonant == "이었":
            forms.append(form + _COPULA_END)
        elif after_consonant == "이라":
            forms.append(f"{form}(?:고|는|도|서|면)?")
        else:
            forms.append(form)
        if not consonant and after_consonant in _KEPT_AFTER_VOWEL:
            forms.append(after_consonant)
    return re.compile("|".join([*forms, _ONE_FORM + _SECOND, _ADNOMINAL]))


def _final_consonant(word: str) -> str:
    """Return the class of a word's last sound: "ㄹ" for ㄹ, "ㄱ" for any other consonant, "" for a vowel."""
    last = word.rstrip("\"'”’»)]").lower()[-2:]
    if not last:
        return ""
    code = ord(last[-1]) - 0xAC00
    if 0 <= code < 11_172:
        final = code % 28
        return "" if not final else "ㄹ" if final == 8 else "ㄱ"
    is_acronym = word[-1:].isupper()
    if last[-1].isdigit():
        has_consonant = last[-1] in _CONSONANT_DIGITS
    elif is_acronym:
        has_consonant = last[-1] in _CONSONANT_LETTER_NAMES
    elif last[-1] in _CONSONANT_LETTERS_AFTER_VOWEL:
        has_consonant = last[0] in "aeiou"
    else:
        has_consonant = last[-1] in _CONSONANT_LETTERS or last == "ng"
    if not has_consonant:
        return ""
    return "ㄹ" if last[-1] in _READ_WITH_FINAL_L else "ㄱ"
