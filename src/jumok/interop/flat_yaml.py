"""Parse the two kinds of YAML that Marian writes: flat settings, and vocabularies.

A YAML parser may reject a vocabulary, because tokens can contain line breaks such as NEL and U+2028. Here,
only "\\n" ends a line.
"""

from __future__ import annotations

import json
import re
from typing import Any

_ENTRY = re.compile(r"(?s)(.*):\s*(\d{1,9})\s*")
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = dict(zip("0abtnvfreN_LP", "\0\a\b\t\n\v\f\r\x1b\x85\xa0\u2028\u2029", strict=True))
_NUMBER = re.compile(r"-?\d{1,18}")


def parse_settings(text: str) -> dict[str, Any]:
    """Return flat settings: `key: value`, `key: [a, b]`, or a key that is followed by lines `- value`.

    If nothing follows a key, or only a line `[]` follows it, its value is [].
    """
    settings: dict[str, Any] = {}
    key = ""
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("- ") and isinstance(settings.get(key), list):
            settings[key].append(_parse_value(stripped[2:]))
        elif stripped == "[]" and isinstance(settings.get(key), list):
            continue
        elif ":" in stripped:
            name, _, rest = stripped.partition(":")
            key = _parse_value(name) if name.startswith(('"', "'")) else name
            settings[key] = _parse_value(rest) if rest.strip() else []
    return settings


def parse_vocabulary(text: str) -> dict[str, int]:
    """Return the id of each token, from lines `token: id` or a JSON object.

    Raise a ValueError if a line is not an entry, or if a token or an id occurs twice.
    """
    if text.lstrip().startswith("{"):
        return _to_vocabulary(json.loads(text, object_pairs_hook=list))
    entries: list[tuple[str, int]] = []
    complex_key: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if complex_key is None and line.startswith("? "):  # YAML writes long or unusual keys in this form
            complex_key = line[2:]
            continue
        line = complex_key + line if complex_key is not None else line
        complex_key = None
        if not line.strip():
            continue
        match = _ENTRY.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is not `token: id`: {line[:40]!r}")
        entries.append((_parse_token(match[1]), int(match[2])))
    if complex_key is not None:
        raise ValueError(f"the last token has no id: {complex_key[:40]!r}")
    return _to_vocabulary(entries)


def _to_vocabulary(entries: list[tuple[str, int]]) -> dict[str, int]:
    vocabulary = dict(entries)
    ids = list(vocabulary.values())
    if not all(isinstance(id_, int) and not isinstance(id_, bool) and id_ >= 0 for id_ in ids):
        raise ValueError("an id is not a whole number from 0 on")
    if len(vocabulary) < len(entries) or len(set(ids)) < len(ids):
        raise ValueError("a token or an id occurs twice")
    return vocabulary


def _parse_token(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _ESCAPE.sub(_unescape, text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 1:
        return _ESCAPES.get(escape, escape)
    code = int(escape[1:], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _parse_value(text: str) -> Any:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_parse_value(item) for item in text[1:-1].split(",") if item.strip()]
    if text.startswith(('"', "'")):
        return _parse_token(text)
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
