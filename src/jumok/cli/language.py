"""The language of the command line: Korean if the locale is Korean, else English.

The English text is the id of a message. The PO files in `korean/` have the translations; they are read only
if the language is Korean. The other packages contain English texts only. The command line translates texts
that their functions return, such as notes and reasons. Errors that they raise are always printed in English.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides, as in POSIX
_SEPARATORS = ("; ", ", ", ": ")
# Not compiled: English needs none of these, and start-up would be a millisecond slower.
_ENTRY = r'(?m)^msgid ((?:".*"\n)+)msgstr ((?:".*"\n?)+)'
_PLACEHOLDER = r"\{(\w+)\}"
_LETTER = "[A-Za-z]"
_QUOTED = r"""(?<!\w)(?:"[^"]*"|'[^']*'|`[^`]*`)(?!\w)"""
_OPEN_QUOTE = r"""(?<!\w)["'`](?=\w)"""
_WORD = r"(?<![^\s(])[a-z]{2,}(?![^\s,;:.)])"  # a word of prose; names and commands are quoted
_HANGUL = "[가-힣]"
_NO_TRANSLATIONS: Mapping[str, str] = {}

_messages = _NO_TRANSLATIONS  # of the command line: id → translation
_texts = _NO_TRANSLATIONS  # of the library and typer: template → translation


def choose_language(environment: Mapping[str, str]) -> None:
    """Choose the language by JUMOK_LANG (ko or en), or else by the name of the locale.

    The locale does not have to be installed.
    """
    global _messages, _texts
    _messages = _texts = _NO_TRANSLATIONS
    locale = next(filter(None, (environment.get(name) for name in _LOCALE_VARIABLES)), "")
    override = environment.get("JUMOK_LANG", "")
    language = override if override in ("ko", "en") else re.split("[_.@]", locale)[0]
    if language == "ko":
        _messages = read_translations("messages")
        texts = read_translations("library") | read_translations("typer")
        # Templates with more characters outside of placeholders are more specific. They are tried first.
        _texts = dict(sorted(texts.items(), key=lambda text: -len(re.sub(_PLACEHOLDER, "", text[0]))))


def use_english() -> None:
    """Choose English. JSON output is in English in every locale, because programs read it."""
    choose_language({})


def read_translations(name: str) -> dict[str, str]:
    """Return id → translation of the PO file of this name."""
    import json  # start-up

    text = (Path(__file__).parent / "korean" / f"{name}.po").read_text(encoding="utf-8")
    matches = re.finditer(_ENTRY, text)
    entries = ([map(json.loads, lines.splitlines()) for lines in match.groups()] for match in matches)
    translations = {"".join(key): "".join(value) for key, value in entries}
    del translations[""]  # the header
    return translations


def is_english() -> bool:
    """Return whether the language is English, so that no text is translated."""
    return _messages is _NO_TRANSLATIONS


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
    """Return a text of the library, or of typer, in the language of the user.

    If a part of the text has no translation, the whole text stays in English, to avoid a mixture.
    """
    if is_english() or not text:
        return text
    return _localise_completely(text) or text


def _localise_completely(text: str) -> str | None:
    """Return the translation of a text; None if a part of it is English prose without a translation.

    Splitting at separators is tried before a template whose placeholder would also match a separator: in "60%
    of the way from the start model to X, scored with beam 4", {weights} must match X only.
    """
    if text in _texts:
        return _texts[text]
    if not re.search(_LETTER, text):
        return text
    matches = [(match, target) for source, target in _texts.items() if (match := _match(source, text))]
    attempts = chain(
        (_fill(match, target) for match, target in matches if not _has_list(match)),
        (_localise_list(text, separator) for separator in _SEPARATORS),
        (_fill(match, target) for match, target in matches if _has_list(match)),
    )
    return next(filter(None, attempts), text if _is_data(text) else None)


def _match(template: str, text: str) -> re.Match[str] | None:
    return _pattern(template).fullmatch(text) if "{" in template else None


def _fill(match: re.Match[str], translation: str) -> str | None:
    """Return the translation of a template with the values of its match.

    Return None if one of the values cannot be translated.
    """
    values = {name: _localise_value(name, value) for name, value in match.groupdict().items()}
    return None if None in values.values() else translation.format(**values)


def _localise_value(name: str, value: str) -> str | None:
    kind = _kind(name)
    if kind == "noun":
        return _texts.get(value)
    return value if kind == "text" or not value else _localise_completely(value)


def _localise_list(text: str, separator: str) -> str | None:
    parts = _split(text, separator)
    if len(parts) == 1:
        return None
    localised = [_localise_completely(part) if part else part for part in parts]
    translated = [part for part in localised if part is not None]
    return separator.join(translated) if len(translated) == len(parts) else None


def _has_list(match: re.Match[str]) -> bool:
    """Return whether a value of the match is a list with one of the separators."""
    return any(len(_split(value, separator)) > 1 for value in match.groups() for separator in _SEPARATORS)


def _split(text: str, separator: str) -> list[str]:
    """Return the parts of a list. Do not split at separators inside brackets or quotation marks."""
    parts: list[str] = []
    is_open = False
    for part in text.split(separator):
        if is_open:
            parts[-1] += separator + part
        else:
            parts.append(part)
        rest = re.sub(_QUOTED, "", parts[-1])
        is_open = rest.count("(") > rest.count(")") or bool(re.search(_OPEN_QUOTE, rest))
    return parts


def _is_data(text: str) -> bool:
    """Whether a text is a name, a path, quoted, or in Korean already, rather than English prose."""
    rest = re.sub(_QUOTED, "", text)
    return " " not in text or bool(re.search(_HANGUL, rest)) or not re.search(_WORD, rest)


def _kind(name: str) -> str:
    """Return the beginning of a placeholder's name, which says what the placeholder matches (`_pattern`)."""
    return name.partition("_")[0]


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Return a pattern for the texts of a template: `as in {folder}` → `as\\ in\\ (?P<folder>.*?)`.

    The beginning of a placeholder's name says what it matches. "count" matches a number, and "share" a
    percentage. "noun" matches a text that has its own entry in the PO files. "text" matches a text of the
    user or of another program, which is not translated. Any other name matches data, or a text that
    `localise_text` can translate.
    """
    literals_and_names = re.split(_PLACEHOLDER, template)
    parts = [re.escape(literal) for literal in literals_and_names]
    kinds = {"count": "[0-9][0-9.,]*", "share": "[0-9][0-9.,]*%"}
    parts[1::2] = [f"(?P<{name}>{kinds.get(_kind(name), '.*?')})" for name in literals_and_names[1::2]]
    return re.compile("".join(parts), re.DOTALL)
