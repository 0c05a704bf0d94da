r"""The text of a subtitle, separate from the codes that tell players how and where to show it.

    {\an8}<i>Where is he?</i>                      {\an8}<i>그는 어디 있어요?</i>
    - At {\b1}home{\b0}.                           - {\b1}집에{\b0}요.

Codes that style words move with the words. Other codes stay at the start of the words, or move with the word
to which they are attached. The lines of one speaker are one segment, and the translation is wrapped into the
same number of lines, or fewer if it has fewer words. A dash or a voice tag such as <v Ann> marks a new
speaker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from jumok.documents.html_markup import INLINE, HtmlMarkup, OpenNames, read_tokens
from jumok.documents.html_tokenizer import HtmlToken, TokenKind, tokenize
from jumok.documents.segment import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jumok.documents.document import SegmentTranslation

_LINE_BREAK = re.compile(r"<br\s*+/?>", re.IGNORECASE)
# Codes: {\an8} of SubStation, {i} and {y:i} of older formats, karaoke times. Other words in braces are text.
_CODE = r"\{(?:\\[^{}]*+|/?[bius]|[a-zA-Z]:[^{}]*+)\}|<\d++:[\d:.,]++>"
_MUSIC_NOTE = r"[♩♪♫♬]"
_DASH = r"[-‐–—]++(?!\d)"  # not before a digit, where it is a minus sign
_NOT_TEXT = re.compile(f"{_CODE}|{_MUSIC_NOTE}")
_STYLE = re.compile(r"\{\\([bius])([01])\}|\{(/?)([bius])\}")
# Tags and codes, which players do not show.
_HIDDEN = re.compile(rf"<[^<>]*+>|{_CODE}")
_VOICE = re.compile(r"\s*+<v[\s.>]", re.IGNORECASE)
# The pieces of a subtitle are separated by a line break, or by white space before a voice tag.
_BEFORE_PIECE = re.compile(r"(\n|(?<=\S)[ \t]*+(?=<v[\s.>]))", re.IGNORECASE)
_WORD = re.compile(rf"(?:<[^<>]*+>|{_CODE}|\S)++")
_SPEAKER_DASH = re.compile(rf"\s*+{_DASH}[ \t]*+")
_SPEAKER_START = re.compile(rf"\s*+(?:{_DASH}|{_MUSIC_NOTE})[ \t]*+(?=\S)")
_SENTENCE_END = re.compile(r"[^\w\s,;:]\s*$")


@dataclass(frozen=True, slots=True)
class Utterance:
    """The words of one speaker in a subtitle."""

    markup: HtmlMarkup
    num_lines: int
    space_before: str = ""
    """The white space before the words in the file."""
    has_entities: bool = False
    """Whether "&amp;" stands for "&" in the file, as in WebVTT."""

    @property
    def segments(self) -> list[str]:
        return self.markup.segments

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        filled = self.markup.fill(translations)
        if not self.has_entities:
            for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
                filled = filled.replace(entity, character)
        return "\n".join(_wrap(filled, self.num_lines))


@dataclass(frozen=True, slots=True)
class Cue:
    """A subtitle: the utterances of its speakers, and the unchanged text of the file (`raw`)."""

    utterances: list[Utterance]
    raw: str

    @property
    def segments(self) -> list[str]:
        return [text for utterance in self.utterances for text in utterance.segments]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        if [translation.text for translation in translations] == self.segments:
            return self.raw
        remaining = iter(translations)
        return "".join(
            utterance.space_before + utterance.fill([next(remaining) for _ in utterance.segments])
            for utterance in self.utterances
        )


def read_cue(text: str, *, has_entities: bool = False) -> Cue:
    """Split a subtitle into utterances.

    An utterance begins at a dash or a voice tag that marks a new speaker, or at a line of a song. If
    `has_entities` is true, "&amp;" stands for "&", as in WebVTT.
    """
    first, *separators_and_texts = _BEFORE_PIECE.split(_LINE_BREAK.sub("\n", text))
    # Pairs of white space and the text after it.
    pieces = [("", first), *zip(separators_and_texts[::2], separators_and_texts[1::2], strict=True)]
    tags = list(tokenize(text))
    opening_names, closing_names = (
        {_base_name(tag.name) for tag in tags if tag.kind is kind}
        for kind in (TokenKind.OPENING, TokenKind.CLOSING)
    )
    utterances = []
    open_tags: list[HtmlToken] = []
    for start, end in pairwise([*_speaker_starts([piece for _, piece in pieces]), len(pieces)]):
        speech = "".join(space + piece for space, piece in pieces[start:end]).removeprefix(pieces[start][0])
        num_lines = 1 + speech.count("\n")
        speech = speech if has_entities else speech.replace("&", "&amp;")
        if _VOICE.match(pieces[start][1]):  # a voice tag ends the text of the previous voice
            open_tags = [tag for tag in open_tags if tag.closing != "</v>"]
        tokens = [*open_tags, *_separate_dash(_tokenize(speech, opening_names & closing_names))]
        open_tags = _tags_without_end(tokens)
        utterances.append(Utterance(read_tokens(tokens), num_lines, pieces[start][0], has_entities))
    return Cue(utterances, text)


def _speaker_starts(pieces: Sequence[str]) -> Iterator[int]:
    """Yield 0, and the index of each piece that begins with a mark of a new speaker or a song.

    The marks are a voice tag after spoken text, and a dash or a music note after the end of a sentence. Once
    a speaker has begun with a dash or a note, every dash and note at the start of a piece counts.
    """
    last_piece = speech = ""  # the visible text of the last piece, and of the current speaker
    has_speakers = False
    for index, piece in enumerate(pieces):
        visible = _HIDDEN.sub("", piece)
        has_mark = _SPEAKER_START.match(visible) is not None
        has_voice = _VOICE.match(piece) is not None and bool(speech.strip())
        if index == 0 or has_voice or (has_mark and (has_speakers or _SENTENCE_END.search(last_piece))):
            has_speakers = has_speakers or has_mark
            speech = ""
            yield index
        last_piece = visible
        speech += visible


def _base_name(name: str) -> str:
    """Return `c` for `c.yellow`: </c> closes <c.yellow>."""
    return name.partition(".")[0]


def _tokenize(text: str, paired: set[str]) -> Iterator[HtmlToken]:
    """Tokenize as HTML. A tag that HTML does not define moves with its words if its name is in `paired`."""
    for token in tokenize(text):
        name = _base_name(token.name)
        if token.kind is TokenKind.TEXT:
            yield from _split_codes(token.raw)
        elif token.kind is TokenKind.OTHER or token.name in INLINE:
            yield token
        elif name in paired:
            yield HtmlToken(token.kind, token.raw, "span", f"</{name}>")
        else:
            yield HtmlToken(TokenKind.OTHER, token.raw)


def _split_codes(text: str) -> Iterator[HtmlToken]:
    start = 0  # of the text after the last code
    for match in _NOT_TEXT.finditer(text):
        if match.start() > start:
            yield HtmlToken(TokenKind.TEXT, text[start : match.start()])
        yield _code_token(match[0])
        start = match.end()
    if start < len(text):
        yield HtmlToken(TokenKind.TEXT, text[start:])


def _code_token(raw: str) -> HtmlToken:
    """Return a tag for a code that styles words, and a token of kind OTHER for any other code."""
    style = _STYLE.fullmatch(raw)
    if style is None:
        return HtmlToken(TokenKind.OTHER, raw)
    if style[1]:
        kind = TokenKind.OPENING if style[2] == "1" else TokenKind.CLOSING
        return HtmlToken(kind, raw, style[1], rf"{{\{style[1]}0}}")
    return HtmlToken(TokenKind.CLOSING if style[3] else TokenKind.OPENING, raw, style[4], f"{{/{style[4]}}}")


def _separate_dash(tokens: Iterable[HtmlToken]) -> Iterator[HtmlToken]:
    """Make a speaker's dash a separate token, which is not translated."""
    has_text = False
    for token in tokens:
        text = token.raw
        if token.kind is TokenKind.TEXT and not has_text and text.strip():
            has_text = True
            if dash := _SPEAKER_DASH.match(text):
                yield HtmlToken(TokenKind.OTHER, dash[0])
                text = text[dash.end() :]
        if text:
            yield token._replace(raw=text)


def _tags_without_end(tokens: Sequence[HtmlToken]) -> list[HtmlToken]:
    """Return the start tags without an end tag. They also enclose the words of the next speaker."""
    open_tags: list[HtmlToken] = []
    names = OpenNames()
    for token in tokens:
        if token.kind is TokenKind.OPENING:
            names.push(token.name)
            if len(open_tags) < MAX_DEPTH:
                open_tags.append(token)
        elif token.kind is TokenKind.CLOSING:
            names.close(token.name)
            del open_tags[len(names) :]
    return open_tags


def _wrap(text: str, num_lines: int) -> list[str]:
    """Wrap into at most `num_lines` lines of about the same visible length, without breaking a tag."""
    lines: list[list[str]] = [[]]
    width = _visible_length(text) / num_lines
    # The length of the last line. It starts at -1, because each word adds 1 for the space before the word,
    # and the first word has no space before it.
    length = -1
    for word in _WORD.findall(text):
        if lines[-1] and len(lines) < num_lines and length + _visible_length(word) / 2 > width:
            lines.append([])
            length = -1
        lines[-1].append(word)
        length += 1 + _visible_length(word)
    return [" ".join(words) for words in lines]


def _visible_length(text: str) -> int:
    return len(_HIDDEN.sub("", text))
