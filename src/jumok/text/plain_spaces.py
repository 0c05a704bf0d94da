"""Spaces that are not U+0020, and characters that are not visible, in texts to translate.

    10 000 km, co­operate     a no-break space, a soft hyphen

Word processors and web pages put them into texts for the sake of line breaks. A tokenizer that has seen none
in training encodes them as bytes or as `<unk>`, and the model translates a sentence that it knows into
nonsense. So a text is encoded with ordinary spaces instead, and without the invisible characters; those that
the tokenizer has seen stay. Joiners (U+200C, U+200D) are part of words and of emoji, and stay too.
"""

from __future__ import annotations

import re

_SPACES = "\t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_SPECIAL = re.compile(f"[{_SPACES}{_INVISIBLE}]")
_SPACES_OR_INVISIBLE = re.compile(f"[ {_SPACES}{_INVISIBLE}]+")
_ONE_INVISIBLE = re.compile(f"[{_INVISIBLE}]")
SPECIAL_CHARACTERS = tuple(character for character in map(chr, range(0x10000)) if _SPECIAL.match(character))
"""The spaces that are not U+0020, except line breaks, and the invisible characters."""


def plain_spaces(text: str, seen: frozenset[str] = frozenset()) -> str:
    """Return the text with ordinary spaces in place of others, and without invisible characters.

    Characters in `seen` stay. A run of spaces with one that does not stay becomes a single space.
    """
    if not _SPECIAL.search(text):
        return text

    def replace(run: re.Match[str]) -> str:
        visible = _ONE_INVISIBLE.sub(lambda one: one[0] if one[0] in seen else "", run[0])
        return visible if all(one == " " or one in seen for one in visible) else " "

    plain = _SPACES_OR_INVISIBLE.sub(replace, text)
    return text if plain == text else plain.strip(" ")


def plain_offsets(text: str) -> tuple[str, list[int]]:
    """Return the text with plain spaces, and the offset in `text` of each of its characters and its end."""
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
