"""Replace special spaces (other than U+0020) and remove invisible characters in texts to translate.

    10 000 km, co­operate     a no-break space, a soft hyphen

Word processors and web pages use these characters to control line breaks. If a tokenizer has not seen such a
character in training, it encodes the character as bytes or as `<unk>`, and the model may translate the
sentence into nonsense. So special spaces are replaced by ordinary spaces, and invisible characters are
removed. Characters that the tokenizer has seen in training stay. Joiners (U+200C, U+200D) always stay,
because they are part of words and of emoji.
"""

from __future__ import annotations

import re

_SPACES = "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
)
_SPECIAL = re.compile(f"[{_SPACES}{_INVISIBLE}]")
_SPACES_OR_INVISIBLE = re.compile(f"[ {_SPACES}{_INVISIBLE}]+")
_ONE_INVISIBLE = re.compile(f"[{_INVISIBLE}]")
SPECIAL_CHARACTERS = tuple(sorted(_SPACES + _INVISIBLE))
"""The spaces that are not U+0020, except line breaks, and the invisible characters."""


def plain_spaces(text: str, seen: frozenset[str] = frozenset()) -> str:
    """Return the text with ordinary spaces in place of special spaces, and without invisible characters.

    Characters in `seen` stay. If a run of spaces has a special space that is not in `seen`, the run becomes a
    single ordinary space. If a character was replaced or removed, the text also loses the ordinary spaces at
    its ends.
    """
    if not _SPECIAL.search(text):
        return text

    def replace(run: re.Match[str]) -> str:
        visible = _ONE_INVISIBLE.sub(lambda match: match[0] if match[0] in seen else "", run[0])
        return visible if all(character == " " or character in seen for character in visible) else " "

    plain = _SPACES_OR_INVISIBLE.sub(replace, text)
    return text if plain == text else plain.strip(" ")


def plain_offsets(text: str) -> tuple[str, list[int]]:
    """Return a text like `plain_spaces(text)`, and the offset in `text` of each character and of the end.

    If the text has a special character, every run of spaces becomes one ordinary space, at the ends too.
    """
    if not _SPECIAL.search(text):
        return text, list(range(len(text) + 1))
    characters: list[str] = []
    offsets: list[int] = []
    for index, character in enumerate(text):
        if _ONE_INVISIBLE.match(character):
            continue
        is_space = character == " " or _SPECIAL.match(character) is not None
        if is_space and characters and characters[-1] == " ":
            continue
        characters.append(" " if is_space else character)
        offsets.append(index)
    return "".join(characters), [*offsets, len(text)]
