"""Properties of a language that files declare: its locale, its direction, and a font with its characters."""

from __future__ import annotations

_RIGHT_TO_LEFT = frozenset(["ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"])
# If a system does not have one of these fonts, Word and LibreOffice use another font of the same script.
_EAST_ASIAN_FONTS = {
    "ko": "Malgun Gothic",
    "ja": "Yu Mincho",
    "zh": "SimSun",
    "zh-tw": "PMingLiU",
    "zh-hant": "PMingLiU",
}
_LOCALES = """
ar-SA bg-BG cs-CZ da-DK de-DE el-GR en-US es-ES et-EE fa-IR fi-FI fr-FR he-IL hi-IN hu-HU id-ID it-IT ja-JP
ko-KR lt-LT lv-LV nl-NL no-NO pl-PL pt-PT ro-RO ru-RU sk-SK sl-SI sv-SE th-TH tr-TR uk-UA ur-PK vi-VN zh-CN
"""


def locale_of(language: str) -> str:
    """Return the code with a region, as office formats expect it (`ko-KR`).

    A code that has a region already, or whose region is not known, is returned unchanged.
    """
    return next((locale for locale in _LOCALES.split() if locale.startswith(f"{language}-")), language)


def is_same_language(code: str, other: str) -> bool:
    """Return whether two codes name the same language. Regions are ignored: `en` equals `en_US`."""
    return _primary(code) == _primary(other)


def _primary(code: str) -> str:
    return _normalised(code).partition("-")[0]


def _normalised(code: str) -> str:
    """Return `ko-kr` for `ko_KR`."""
    return code.lower().replace("_", "-")


def is_right_to_left(language: str) -> bool:
    return _primary(language) in _RIGHT_TO_LEFT


def is_east_asian(language: str) -> bool:
    return east_asian_font(language) != ""


def east_asian_font(language: str) -> str:
    """Return a font for an East Asian language, or "" for any other language."""
    return _EAST_ASIAN_FONTS.get(_normalised(language)) or _EAST_ASIAN_FONTS.get(_primary(language), "")
