"""Set the language that DOCX and PPTX files declare: proofing language, direction, and East Asian font.

The XML is edited as text. Attributes change, and elements with properties are added or removed.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.languages import east_asian_font, is_east_asian, is_right_to_left, locale_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.documents.zip_document import LanguageSetter


def ooxml_language_setter(name: str) -> LanguageSetter | None:
    """Return the function that sets the language of a part, or None if the part declares no language."""
    if name == "word/styles.xml":
        return partial(_edit, edit=_set_default_run)
    if name == "word/settings.xml":
        return partial(_edit, edit=_set_theme_language)
    if re.fullmatch(r"ppt/(slides|notesSlides)/[^/]+\.xml", name):
        return partial(_edit, edit=_set_slide)
    return None


def _edit(data: bytes, language: str, edit: Callable[[str, str], str]) -> bytes:
    try:
        return edit(data.decode(), language).encode()
    except UnicodeDecodeError:  # UTF-16, which no office program writes
        return data


def _language_attribute(language: str) -> str:
    """Return the attribute of <w:lang> for a language. Word has one attribute for each kind of script."""
    if is_east_asian(language):
        return "w:eastAsia"
    return "w:bidi" if is_right_to_left(language) else "w:val"


def _set_default_run(styles: str, language: str) -> str:
    """Set the language, the font and the direction that all runs and paragraphs inherit."""
    defaults = re.search(r"<w:docDefaults>.*?</w:docDefaults>", styles, re.DOTALL)
    if defaults is None:
        return styles
    block = defaults[0]
    if "<w:rPrDefault>" not in block:
        block = re.sub(r"<w:rPrDefault\s*/>", "", block)
        block = block.replace(
            "<w:docDefaults>", "<w:docDefaults><w:rPrDefault><w:rPr></w:rPr></w:rPrDefault>"
        )
    block = re.sub(r"(<w:rPrDefault>\s*)<w:rPr\s*/>", r"\1<w:rPr></w:rPr>", block)
    run = re.search(r"<w:rPrDefault>\s*<w:rPr>(.*?)</w:rPr>", block, re.DOTALL)
    if run is None:
        return styles
    properties = _set_element(run[1], "w:lang", _language_attribute(language), locale_of(language))
    if font := east_asian_font(language):
        properties = _set_east_asian_font(properties, font)
    properties = re.sub(r"<w:rtl\b[^<>]*/>", "", properties)
    if is_right_to_left(language):
        properties = properties.replace("<w:lang", "<w:rtl/><w:lang")
    block = block[: run.start(1)] + properties + block[run.end(1) :]
    block = re.sub(r"<w:bidi\b[^<>]*/>", "", block)
    if is_right_to_left(language):
        block = _set_right_to_left(block)
    styles = styles[: defaults.start()] + block + styles[defaults.end() :]
    return _set_in_all_styles(styles, language)


def _set_in_all_styles(styles: str, language: str) -> str:
    """Set the language and font in every style that declares them. LibreOffice repeats both in its styles."""
    attribute, font = _language_attribute(language), east_asian_font(language)
    styles = re.sub(rf'(<w:lang\b[^<>]*\s{attribute}=")[^"]*(?=")', rf"\g<1>{locale_of(language)}", styles)
    if font:
        styles = re.sub(r'(<w:rFonts\b[^<>]*\sw:eastAsia=")[^"]*(?=")', rf"\g<1>{font}", styles)
    return styles


def _set_east_asian_font(properties: str, font: str) -> str:
    """Set the font, unless the properties refer to the theme.

    If the properties refer to the theme, Word chooses a font of the theme for the language of the text.
    """
    if "w:eastAsiaTheme=" in properties:
        return properties
    if "<w:rFonts" in properties:
        return _set_element(properties, "w:rFonts", "w:eastAsia", font)
    return f'<w:rFonts w:eastAsia="{font}"/>{properties}'


def _set_right_to_left(block: str) -> str:
    if re.search(r"<w:pPrDefault>\s*<w:pPr>", block):
        return re.sub(r"(<w:pPrDefault>\s*<w:pPr>)", r"\1<w:bidi/>", block)
    block = re.sub(r"<w:pPrDefault\s*/>", "", block)
    return block.replace(
        "</w:docDefaults>", "<w:pPrDefault><w:pPr><w:bidi/></w:pPr></w:pPrDefault></w:docDefaults>"
    )


def _set_theme_language(settings: str, language: str) -> str:
    """Set the language for which Word chooses a font of the theme, if the settings name such a language."""
    if "<w:themeFontLang" not in settings:
        return settings
    return _set_element(settings, "w:themeFontLang", _language_attribute(language), locale_of(language))


def _set_slide(slide: str, language: str) -> str:
    """Set the language that runs of a slide declare, and the direction of its paragraphs."""
    slide = re.sub(
        r"""(<a:(?:rPr|endParaRPr|defRPr)\b[^<>]*?\slang=")[^"]*(?=")""",
        rf"\g<1>{locale_of(language)}",
        slide,
    )
    direction = "1" if is_right_to_left(language) else "0"
    slide = re.sub(r"""(<a:pPr\b[^<>]*?\srtl=")[^"]*(?=")""", rf"\g<1>{direction}", slide)
    if is_right_to_left(language):
        slide = re.sub(r"<a:pPr\b(?![^<>]*\srtl=)", '<a:pPr rtl="1"', slide)
        slide = re.sub(r"<a:p>(?!<a:pPr)", '<a:p><a:pPr rtl="1"/>', slide)
    return slide


def _set_element(text: str, name: str, attribute: str, value: str) -> str:
    """Set an attribute of the first element with this name. If there is none, add the element at the end."""
    element = re.search(rf"<{name}\b[^<>]*>", text)
    if element is None:
        return f'{text}<{name} {attribute}="{value}"/>'
    tag = re.sub(rf'\s{attribute}="[^"]*"', "", element[0])
    tag = re.sub(rf"^<{name}\b", f'<{name} {attribute}="{value}"', tag)
    return text[: element.start()] + tag + text[element.end() :]
