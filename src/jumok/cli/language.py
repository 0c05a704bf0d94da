"""The language of the command line: English, or Korean where the locale is Korean.

The English text is the id of a message; the PO files in `korean/` have the translations, and are read only if
the language is Korean. The library knows nothing of this: what it returns or raises is English, and the
command line translates what it shows of it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set counts, as in POSIX
_ENTRY = re.compile(r'^msgid ((?:".*"\n)+)msgstr ((?:".*"\n?)+)', re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NOTHING: Mapping[str, str] = {}

_messages = _NOTHING  # of the command line: id → translation
_texts = _NOTHING  # of the library and typer: what they write, with {placeholders} → translation


def choose_language(environment: Mapping[str, str]) -> None:
    """Choose the language by JUMOK_LANG (ko or en), or else by the locale, which need not be installed."""
    global _messages, _texts
    _messages = _texts = _NOTHING
    locale = next(filter(None, (environment.get(name) for name in _LOCALE_VARIABLES)), "")
    override = environment.get("JUMOK_LANG", "")
    language = override if override in ("ko", "en") else re.split("[_.@]", locale)[0]
    if language == "ko":
        _messages = read_translations("messages")
        texts = read_translations("library") | read_translations("typer")
        # A template with more words of its own is more specific, and comes first.
        _texts = dict(sorted(texts.items(), key=lambda text: -len(_PLACEHOLDER.sub("", text[0]))))


def use_english() -> None:
    """Choose English, for JSON: programs read it."""
    choose_language({})


def read_translations(name: str) -> dict[str, str]:
    """Return id → translation of the PO file of this name."""
    import json  # start-up

    text = (Path(__file__).parent / "korean" / f"{name}.po").read_text(encoding="utf-8")
    entries = (
        [map(json.loads, lines.splitlines()) for lines in match.groups()] for match in _ENTRY.finditer(text)
    )
    translations = {"".join(key): "".join(value) for key, value in entries}
    del translations[""]  # the header
    return translations


def is_english() -> bool:
    """Whether texts are shown as they are written in the code."""
    return _messages is _NOTHING


def localise(message: str, /, **values: object) -> str:
    """Return a message in the language of the user, with its values.

    The message is a literal: a test collects all of them, and finds those without a translation.
    """
    return _messages.get(message, message).format(**values)


def localise_help(text: str) -> str:
    """Return the help of a command or an option in the language of the user, paragraph by paragraph."""
    if is_english():
        return text
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return "\n\n".join(_messages.get(paragraph, paragraph) for paragraph in paragraphs)


def localise_text(text: str) -> str:
    """Return a text of the library, or of typer, in the language of the user; as it is if it is not known."""
    if is_english() or not text:
        return text
    if text in _texts:
        return _texts[text]
    for template, translation in _texts.items():
        if "{" in template and (match := _pattern(template).fullmatch(text)):
            values = {name: localise_text(value) for name, value in match.groupdict().items()}
            return translation.format(**values)
    for separator in ("; ", ", ", ": "):
        if separator in text:
            return separator.join(map(localise_text, text.split(separator)))
    return text


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Return a pattern for the texts of a template: `as in {folder}` → `as\\ in\\ (?P<folder>.*?)`.

    A placeholder whose name begins with "count" stands for a number, with "noun" for words.
    """
    literals_and_names = _PLACEHOLDER.split(template)
    parts = [re.escape(literal) for literal in literals_and_names]
    kinds = {"count": "[0-9][0-9.,]*", "noun": "[A-Za-z ]+"}
    parts[1::2] = [
        f"(?P<{name}>{kinds.get(name.partition('_')[0], '.*?')})" for name in literals_and_names[1::2]
    ]
    return re.compile("".join(parts), re.DOTALL)
