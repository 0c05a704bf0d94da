"""Conjugate the stems of `support/korean_stems.py` with Kiwi, an independent program, and store the forms.

    PYTHONPATH=tests .venv/bin/python tests/datasets/english_korean/make_kiwi_fixture.py

Run this script by hand when the lexicon or the endings change. The tests read the stored forms and do not
need Kiwi.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from support.korean_stems import kiwi_stems

if TYPE_CHECKING:
    from jumok.datasets.english_korean.conjugation import Stem

FIXTURE = Path(__file__).with_name("kiwi_forms.json")

# An ending in our notation, and the morphemes that Kiwi joins to the stem. Endings that only continue one of
# these, such as ㄴ다고, are left out. The question ending 니 is left out, because Kiwi reads it as the
# conjunction (으)니. `test_korean_conjugation.py` has forms with 니 that were written by hand.
ENDINGS = {
    "ㄴ다": [("ᆫ다", "EF")],
    "어ㅆ다": [("었", "EP"), ("다", "EF")],
    "어요": [("어요", "EF")],
    "어ㅆ어요": [("었", "EP"), ("어요", "EF")],
    "고": [("고", "EC")],
    "어ㅆ고": [("었", "EP"), ("고", "EC")],
    "지": [("지", "EC")],
    "지만": [("지만", "EC")],
    "어ㅆ지만": [("었", "EP"), ("지만", "EC")],
    "으면": [("으면", "EC")],
    "으면서": [("으면서", "EC")],
    "으러": [("으러", "EC")],
    "으려고": [("으려고", "EC")],
    "어서": [("어서", "EC")],
    "어야": [("어야", "EC")],
    "어도": [("어도", "EC")],
    "어": [("어", "EC")],
    "으ㄹ": [("ᆯ", "ETM")],
    "으ㄴ": [("ᆫ", "ETM")],
    "는": [("는", "ETM")],
    "어ㅆ을": [("었", "EP"), ("을", "ETM")],
    "기": [("기", "ETN")],
    "으시": [("시", "EP"), ("고", "EC")],  # `main` removes the 고 again
    "어라": [("어라", "EF")],
    "자": [("자", "EF")],
}
VERB_ENDINGS = {"으러", "으려고", "어라", "자"}


def morpheme(stem: Stem) -> tuple[str, str]:
    """Return the stem in Kiwi's notation: VV or VA, with -I if it is irregular and -R if it is regular.

    A stem that ends in 르 has no suffix: with -I, Kiwi would conjugate it like 이르다, 이르러, a rarer class.
    """
    kind = "VV" if stem.kind == "verb" else "VA"
    if stem.irregular == "르":
        return stem.text, kind
    return stem.text, f"{kind}-{'I' if stem.irregular else 'R'}"


def main() -> None:
    """Write the fixture."""
    from kiwipiepy import Kiwi  # type: ignore[import-untyped]

    kiwi = Kiwi()
    forms = {}
    for stem in kiwi_stems():
        for ending, morphemes in ENDINGS.items():
            if ending in VERB_ENDINGS and stem.kind != "verb":
                continue
            if ending == "는" and stem.kind == "adjective":
                continue
            parts = [("다", "EF")] if ending == "ㄴ다" and stem.kind != "verb" else morphemes
            form = kiwi.join([morpheme(stem), *parts])
            forms[f"{stem.text}다 {stem.kind} {ending}"] = (
                form.removesuffix("고") if ending == "으시" else form
            )
    FIXTURE.write_text(
        json.dumps(forms, ensure_ascii=False, indent=0, sort_keys=True) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
