"""The font that jumok ships, so that plots show Hangul on machines without a Korean font.

Pretendard 1.3.9, unchanged, has every Hangul syllable and the letters of Latin, Greek, Cyrillic and kana. Its
licence is the SIL Open Font License (`OFL.txt`). PyPI packages with a Korean font are not used, because they
are larger and depend on matplotlib, which is not needed for writing a PNG.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["FAMILY", "FILE"]

FAMILY = "Pretendard"
FILE = Path(__file__).with_name("Pretendard-Regular.ttf")
