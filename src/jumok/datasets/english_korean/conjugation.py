"""Korean conjugation: the form of a stem with an ending.

An ending is written as in a grammar. An ending that starts with 으 loses 으 after a vowel or ㄹ (으면: 가면,
살면, 먹으면). An ending that starts with 어 changes with the stem's vowel (어서: 가서, 먹어서, 해서).
으ㄹ, 으ㄴ, ㄴ다 and the past 어ㅆ다 close an open syllable (갈, 간, 간다, 갔다). After a consonant, ㄴ다
becomes 는다 (먹는다). After an adjective, 는 becomes 으ㄴ (예쁜), and ㄴ다 becomes 다 (예쁘다). Any other
ending is appended unchanged (고: 가고, 먹고).

An irregular stem changes by its class: ㅂ (추워), ㅂ오 (도와), ㄷ (들어), ㅅ (지어), ㅎ (빨개), 르 (몰라)
or 아니 (아니에요). The lexicon gives the class. A stem that ends in ㄹ or ㅡ loses this sound before some
endings (산다, 써). The lexicon does not mark these stems.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from jumok.datasets.english_korean.hangul import compose, decompose, final_of, with_final


class Stem(NamedTuple):
    """A stem, which takes endings. `kind` is "verb", "adjective" or "existence" (있다, 없다 and compounds).

    A "determiner" (새) takes no ending.
    """

    text: str
    kind: str
    irregular: str = ""  # its irregular class, or "" for a regular stem
    honorific: bool = False  # whether the text already ends in 시


def stem(dictionary_form: str, kind: str = "verb") -> Stem:
    """Read a lexicon entry: '먹다', or with its irregular class after a colon, '듣다:ㄷ'."""
    word, _, irregular = dictionary_form.partition(":")
    text = word.removesuffix("다")
    if text.endswith(("있", "없")):
        kind = "existence"
    return Stem(text, kind, irregular)


@cache
def with_honorific(plain: Stem) -> Stem:
    """Return the stem with -(으)시-: 가 → 가시, 먹 → 먹으시. 있으시다, 없으시다 conjugate as adjectives."""
    if plain.honorific:
        return plain
    kind = "adjective" if plain.kind == "existence" else plain.kind
    return Stem(conjugate(plain, "으시"), kind, honorific=True)


@cache
def conjugate(base: Stem, ending: str) -> str:
    """Return the form of a stem with an ending: (듣:ㄷ, 어요) → 들어요, (살, ㄴ다) → 산다."""
    if ending in ("ㄴ다", "ㄴ다고"):
        return _declarative(base, ending)
    if ending == "는" and base.kind == "adjective":
        return conjugate(base, "으ㄴ")  # the present relative form of an adjective: 예쁜
    if ending[0] == "어":
        return _vowel_ending(base, ending)
    if ending[0] == "으":
        return _optional_vowel_ending(base, ending[1:])
    if ending[0] in "니는":
        return _without_final(base.text, "ㄹ") + ending
    return base.text + ending


def _declarative(base: Stem, ending: str) -> str:
    """Append -ㄴ다 or -는다 to a verb, and -다 to an adjective or to 있다. `ending` is ㄴ다 or ㄴ다고."""
    rest = ending[1:]
    if base.kind != "verb":
        return base.text + rest
    open_text = _without_final(base.text, "ㄹ")
    if final_of(open_text):
        return f"{open_text}는{rest}"
    return with_final(open_text, "ㄴ") + rest


def _without_final(text: str, final: str) -> str:
    return with_final(text, "") if final_of(text) == final else text


def _optional_vowel_ending(base: Stem, rest: str) -> str:
    """Append an ending that starts with 으. `rest` is the ending without 으: 면, 시, ㄹ, ㄴ, 러, 려고."""
    text, irregular = base.text, base.irregular
    if irregular in ("ㅂ", "ㅂ오"):
        text = with_final(text, "") + "우"
    elif irregular == "ㅎ":
        text = with_final(text, "")
    elif irregular == "ㄷ":
        return _close(with_final(text, "ㄹ") + "으", rest)
    elif irregular == "ㅅ":
        return _close(with_final(text, "") + "으", rest)
    final = final_of(text)
    if final == "ㄹ":
        # ㄹ is dropped before ㄴ, ㄹ and ㅅ, but not before ㅁ and the syllables 러 and 려.
        return _close(with_final(text, "") if rest[0] in "ㄴㄹ시세십" else text, rest)
    return _close(text + "으" if final else text, rest)


def _close(text: str, rest: str) -> str:
    """Append the rest; a single consonant becomes the final of the last syllable."""
    if rest[0] in "ㄴㄹ":
        return with_final(text, rest[0]) + rest[1:]
    return text + rest


_CONTRACTED = {
    "ㅏ": "ㅏ",
    "ㅓ": "ㅓ",
    "ㅗ": "ㅘ",
    "ㅜ": "ㅝ",
    "ㅣ": "ㅕ",
    "ㅐ": "ㅐ",
    "ㅔ": "ㅔ",
    "ㅕ": "ㅕ",
    "ㅚ": "ㅙ",
}
_H_CONTRACTED = {"ㅏ": "ㅐ", "ㅓ": "ㅐ", "ㅑ": "ㅒ"}


def _vowel_ending(base: Stem, ending: str) -> str:
    """Append an ending that starts with 어. The ㅆ of the past closes the syllable with this vowel."""
    if base.honorific and ending == "어요":
        return base.text[:-1] + "세요"
    if base.irregular == "아니":  # 아니다 does not contract, and takes the copula's 에요
        return base.text + ("에요" if ending == "어요" else _uncontracted(ending))
    joined, rest = _with_vowel(base), ending[1:]
    if rest.startswith("ㅆ"):
        return with_final(joined, "ㅆ") + rest[1:]
    return joined + rest


def _uncontracted(ending: str) -> str:
    """Return an ending that starts with 어, with 었 as a syllable: 어ㅆ다 → 었다."""
    return "었" + ending[2:] if ending[1:2] == "ㅆ" else ending


def _with_vowel(base: Stem) -> str:
    """Return the stem with 아 or 어, contracted: 가, 와, 마셔, 해, 써, 도와, 몰라, 지어."""
    text, irregular = base.text, base.irregular
    if text.endswith("하"):
        return text[:-1] + "해"
    lead, vowel, final = decompose(text[-1])
    if irregular == "ㅂ오":
        return with_final(text, "") + "와"
    if irregular == "ㅂ":
        return with_final(text, "") + "워"
    if irregular == "ㅎ":
        return text[:-1] + compose(lead, _H_CONTRACTED[vowel])
    if irregular == "ㄷ":
        return with_final(text, "ㄹ") + _harmony(vowel)
    if irregular == "ㅅ":
        return with_final(text, "") + _harmony(vowel)
    if irregular == "르":
        previous = text[:-1]
        return with_final(previous, "ㄹ") + ("라" if _harmony(decompose(previous[-1])[1]) == "아" else "러")
    if final:
        return text + _harmony(vowel)
    if vowel == "ㅡ":
        harmony = _harmony(decompose(text[-2])[1]) if len(text) > 1 else "어"
        return text[:-1] + compose(lead, "ㅏ" if harmony == "아" else "ㅓ")
    if vowel in _CONTRACTED:
        return text[:-1] + compose(lead, _CONTRACTED[vowel])
    return text + "어"  # 쉬어: ㅟ does not contract


def _harmony(vowel: str) -> str:
    return "아" if vowel in "ㅏㅑㅗ" else "어"


_COPULA = {
    # ending: (after a consonant, after a vowel)
    "ㄴ다": ("이다", "이다"),
    "어ㅆ다": ("이었다", "였다"),
    "어요": ("이에요", "예요"),
    "어ㅆ어요": ("이었어요", "였어요"),
    "니": ("이니", "니"),
    "어ㅆ니": ("이었니", "였니"),
    "고": ("이고", "이고"),
    "어ㅆ고": ("이었고", "였고"),
    "지만": ("이지만", "이지만"),
    "어ㅆ지만": ("이었지만", "였지만"),
    "으면": ("이면", "이면"),
    "어서": ("이어서", "여서"),
    "ㄴ다고": ("이라고", "라고"),
    "는": ("인", "인"),
}

_HONORIFIC_COPULA = Stem("이시", "adjective", honorific=True)


@cache
def copula(noun: str, ending: str, honorific: bool = False) -> str:
    """Return a noun with 이다: (학생, 어요) → 학생이에요, (의사, 어ㅆ다) → 의사였다, honorific 의사이시다."""
    if honorific:
        return noun + conjugate(_HONORIFIC_COPULA, ending)
    after_consonant, after_vowel = _COPULA[ending]
    return noun + (after_consonant if final_of(noun) else after_vowel)
