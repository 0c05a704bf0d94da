"""Markdown: paragraphs, headings, list items and table cells are segments.

Emphasis and links move with their words. Code, formulas, front matter, link targets, images and the lines
that begin or end an admonition (`> [!NOTE]`, `:::note`, `!!! note`) stay as they are. HTML blocks are read as
HTML. A translated paragraph is written on one line. If it has hard line breaks, each of them ends a segment
and a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from html import unescape
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from jumok.documents.document import DocumentFormat
from jumok.documents.html import HtmlFile
from jumok.documents.html_markup import VERBATIM, VOID, read_markup
from jumok.documents.marked_template import render_tags
from jumok.documents.message import pair_up
from jumok.documents.segment import (
    LINE_BREAK,
    Element,
    Segment,
    SegmentBuilder,
    Tag,
    has_letters,
    is_unchanged,
    place,
)
from jumok.documents.text_document import CompositeTemplate, line_end_of, read_text, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.text_document import TextTemplate

# The start of a line: first the marks of block quotes, list items and definitions, then a check box, then the
# mark of a heading or the label of a footnote.
_PREFIX = re.compile(
    r"(?P<containers>[ \t]*+(?:(?:>|[-*+:][ \t]|\d{1,9}[.)][ \t])[ \t]*+)*+)"
    r"(?:\[[ xX]\][ \t]++)?(?:#{1,6}[ \t]++|(?P<footnote>\[\^[^\]]++\]:[ \t]*+))?"
)
# If five or more spaces follow the mark, the content begins after the first space.
_CONTAINER_MARK = re.compile(r">|(?:[-*+:]|\d{1,9}[.)])(?: {1,4}(?! )| )")
_FENCE = re.compile(r"[ \t>]*(`{3,}(?=[^`]*$)|~{3,})")
_RULE = re.compile(r"[ \t>]*+(?:=++|(?:[-*_][ \t]*+){2,}+)[ \t]*+")
_TABLE_RULE = re.compile(r"[ \t>]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+")
# The first line of a formula between $$ marks. If `end` matches, the whole formula is on this line.
_MATH_BLOCK = re.compile(r"[ \t>]*+\$\$(?:(?!\$\$).)*+(?P<end>\$\$)?[ \t]*+")
# Admonitions of GitHub and Obsidian, of Docusaurus and Pandoc, and of MkDocs. MkDocs indents their content.
_ADMONITION = re.compile(
    r"[ \t]*+>[ \t>]*+\[![\w-]++\].*|[ \t>]*+:{3}.*"
    r"|[ \t>]*+(?P<indented>(?:!!!|\?{3}\+?)[ \t]*+[\w-]++(?:[ \t]++[\w-]++)*+(?:[ \t]++\".*\")?[ \t]*+)"
)
# The definition of a link's target, or of an abbreviation.
_DEFINITION = re.compile(r" {0,3}\*?\[(?!\^)([^\]]+)\]:")
_HTML_BLOCK = re.compile(
    r" {0,3}</?(?:address|article|aside|blockquote|center|details|dd|div|dl|dt|fieldset|figcaption|figure"
    r"|footer|form|h[1-6]|header|hr|iframe|li|main|nav|ol|p|pre|script|section|style|summary|table|tbody|td|textarea|tfoot|th"
    r"|thead|tr|ul)\b| {0,3}<!--| {0,3}</?[a-zA-Z][^<>]*>[ \t]*$",
    re.IGNORECASE,
)
# HTML blocks that end at an end mark. Blank lines do not end these blocks.
_RAW_HTML_BLOCK = re.compile(r" {0,3}<(?:(?:script|pre|style|textarea)(?=[\s>]|$)|(!--))", re.IGNORECASE)
_RAW_HTML_END = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)
_COMMENT_END = re.compile("-->")
_CELL_BAR = re.compile(r"((?<!\\)\|)")
_LINE_BREAK_TAG = re.compile(r"<br[ \t]*+/?>", re.IGNORECASE)
_HARD_BREAK = re.compile(r"(?:(?<! ) {2,}+|\\)$")


def _parse(text: str) -> CompositeTemplate:
    lines = split_lines(text.replace("\r\n", "\n"))
    reader = _BlockReader(lines)
    parts = reader.read()
    if not text.endswith("\n") and parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].removesuffix("\n")
    return CompositeTemplate(parts, line_end_of(text))


class _Item(NamedTuple):
    """A list item, a footnote or an admonition. Lines indented to `column` or further belong to the item."""

    num_quotes: int
    """The number of block quotes around the item."""
    column: int
    """The column at which the content of the item begins."""


class _BlockReader:
    """Reads blocks line by line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._parts: list[str | TextTemplate] = []
        # The labels of the definitions of link targets and abbreviations, casefolded.
        self._labels = frozenset(
            match[1].casefold() for line in lines if (match := _DEFINITION.match(line)) is not None
        )
        self._items: list[_Item] = []  # the open items, outermost first

    def read(self) -> list[str | TextTemplate]:
        index = self._copy_front_matter()
        after_blank = True
        while index < len(self._lines):
            line = self._lines[index]
            is_blank = not line.strip(" \t>")
            is_code = False
            if not is_blank:
                columns = _columns(line)
                self._leave_items(columns)
                is_code = after_blank and self._is_indented(columns)
            after_blank = is_blank or is_code
            fence = _fence_of(line)
            if fence is not None:
                self._enter_items(line)
                index = self._copy_fence(index, fence[1])
            elif is_blank or is_code or _DEFINITION.match(line) or _RULE.fullmatch(line):
                index = self._copy(index, index + 1)
            elif admonition := _ADMONITION.fullmatch(line):
                if admonition["indented"]:
                    *quotes, column = _columns(line)
                    self._items.append(_Item(len(quotes), column + 4))
                index = self._copy(index, index + 1)
            elif math := _MATH_BLOCK.fullmatch(line):
                index = self._copy(index, index + 1 if math["end"] else self._math_end(index))
            elif _HTML_BLOCK.match(line):
                index = self._read_html(index)
            elif index + 1 < len(self._lines) and self._is_table(index):
                index = self._read_table(index)
            else:
                index = self._read_paragraph(index)
        return self._parts

    def _is_indented(self, columns: Sequence[int]) -> bool:
        """Return whether a line with these columns is indented like code.

        Code is indented by four columns within its quotes and open items.
        """
        num_quotes, content_column = self._items[-1] if self._items else _Item(0, 0)
        for column in columns[num_quotes:]:
            if column >= content_column + 4:
                return True
            content_column = column + 2  # after a quote mark and a space
        return False

    def _leave_items(self, columns: Sequence[int]) -> None:
        """Remove the open items that end before a line with these columns."""
        while self._items:
            num_quotes, column = self._items[-1]
            if num_quotes < len(columns) and columns[num_quotes] >= column:
                break
            self._items.pop()

    def _copy(self, start: int, end: int) -> int:
        self._parts.append("".join(f"{line}\n" for line in self._lines[start:end]))
        return end

    def _copy_front_matter(self) -> int:
        if not self._lines or self._lines[0].rstrip() not in ("---", "+++"):
            return 0
        mark = self._lines[0].rstrip()
        ends = (index for index, line in enumerate(self._lines) if index and line.rstrip() in (mark, "..."))
        end = next(ends, None)
        return 0 if end is None else self._copy(0, end + 1)

    def _copy_fence(self, start: int, mark: str) -> int:
        closing = re.compile(rf"[ \t>]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*")
        end = start + 1
        while end < len(self._lines) and not closing.fullmatch(self._lines[end]):
            end += 1
        return self._copy(start, min(end + 1, len(self._lines)))

    def _math_end(self, start: int) -> int:
        """Return the end of a formula between $$ marks. An unclosed formula ends at the first blank line."""
        end = start + 1
        while end < len(self._lines) and self._lines[end].strip(" \t>"):
            end += 1
            if self._lines[end - 1].rstrip().endswith("$$"):
                break
        return end

    def _read_html(self, start: int) -> int:
        end = start
        raw_block = _RAW_HTML_BLOCK.match(self._lines[start])
        if raw_block is not None:
            end_mark = _COMMENT_END if raw_block[1] else _RAW_HTML_END
            while end < len(self._lines) and not end_mark.search(self._lines[end]):
                end += 1
            if end == len(self._lines):  # without an end mark, the block extends to the end of the file
                return self._copy(start, end)
            end += 1
        else:
            while end < len(self._lines) and self._lines[end].strip():
                end += 1
        self._parts += [HtmlFile(read_markup("\n".join(self._lines[start:end]))), "\n"]
        return end

    def _is_table(self, index: int) -> bool:
        has_rule = "|" in self._lines[index + 1] and _TABLE_RULE.fullmatch(self._lines[index + 1])
        return "|" in self._lines[index] and has_rule is not None

    def _read_table(self, index: int) -> int:
        while index < len(self._lines) and "|" in self._lines[index]:
            line = self._lines[index]
            if _TABLE_RULE.fullmatch(line):
                self._parts.append(line)
            else:
                for piece in _CELL_BAR.split(line):
                    self._add_text(piece, piece)
            self._parts.append("\n")
            index += 1
        return index

    def _read_paragraph(self, start: int) -> int:
        """Read lines up to a blank line or a line that begins another block."""
        first = self._lines[start]
        prefix = _prefix_of(first)
        self._enter_items(first)
        end = start + 1
        is_heading = "#" in prefix
        while not is_heading and end < len(self._lines) and self._continues(end, prefix):
            end += 1
        lines = [
            first[len(prefix) :],
            *(line[len(_prefix_of(line)) :] for line in self._lines[start + 1 : end]),
        ]
        position = start
        for index in range(start, end):
            if index + 1 == end or _HARD_BREAK.search(self._lines[index]):
                self._add_lines(position, index + 1, lines[position - start : index + 1 - start])
                position = index + 1
        return end

    def _enter_items(self, line: str) -> None:
        """Remember the list items and the footnote that begin in a line."""
        match = _PREFIX.match(line)
        containers = match["containers"].expandtabs(4) if match else ""
        num_quotes = 0
        for mark in _CONTAINER_MARK.finditer(containers):
            if mark[0] == ">":
                num_quotes += 1
            else:
                self._items.append(_Item(num_quotes, mark.end()))
        if match and match["footnote"]:
            self._items.append(_Item(num_quotes, len(containers) + 4))

    def _continues(self, index: int, prefix: str) -> bool:
        line = self._lines[index]
        line_prefix = _prefix_of(line)
        begins_other_block = (
            not line.strip(" \t>")
            or line_prefix.count(">") not in (0, prefix.count(">"))
            or re.search(r"[^\s>]", line_prefix)
            or _RULE.fullmatch(line)
            or _FENCE.match(line)
            or _ADMONITION.fullmatch(line)
            or _MATH_BLOCK.fullmatch(line)
            or _HTML_BLOCK.match(line)
        )
        return not begins_other_block

    def _add_lines(self, start: int, end: int, lines: Sequence[str]) -> None:
        """Add lines that are one segment. The prefix of the first line and a final hard break are copied."""
        prefix = _prefix_of(self._lines[start])
        last = _HARD_BREAK.search(lines[-1])
        hard_break = last[0] if last else ""
        raw = "\n".join(self._lines[start:end])[len(prefix) :].removesuffix(hard_break)
        text = " ".join(line.strip() for line in lines).removesuffix(hard_break).rstrip()
        self._parts.append(prefix)
        self._add_text(text, raw, begins_line="#" not in prefix)
        self._parts.append(f"{hard_break}\n")

    def _add_text(self, text: str, raw: str, *, begins_line: bool = False) -> None:
        builder = SegmentBuilder()
        _add_inline(builder, text, self._labels)
        segment = builder.finish(raw)
        line_break = _LINE_BREAK_TAG.search(text)
        inline = _Inline(segment, line_break[0] if line_break else "", begins_line)
        self._parts.append(inline if has_letters(segment.text) else raw)


def _prefix_of(line: str) -> str:
    match = _PREFIX.match(line)
    return match[0] if match else ""


def _fence_of(line: str) -> re.Match[str] | None:
    """Match the mark that opens a block of code, which may begin a list item or a quote."""
    prefix = _PREFIX.match(line)
    return _FENCE.match(line, prefix.end("containers") if prefix else 0)


def _columns(line: str) -> list[int]:
    """Return the column of each quote mark at the beginning of a line, and last the column of the text."""
    line = line.expandtabs(4)
    text_column = len(line) - len(line.lstrip(" >"))
    return [*(column for column in range(text_column) if line[column] == ">"), text_column]


@dataclass(frozen=True, slots=True)
class _Inline:
    """A segment with the inline markup of Markdown, and the tag that is written for its line breaks."""

    segment: Segment
    line_break: str
    begins_line: bool
    """Whether the segment is at the beginning of a line, where "#" or "1." would begin another block."""

    @property
    def segments(self) -> list[str]:
        return [self.segment.source]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        [translation] = translations
        if is_unchanged(self.segment, translation) and self.segment.raw is not None:
            return self.segment.raw
        pieces = _without_empty_emphasis(_without_outer_spaces(place(self.segment, translation)))
        written = render_tags(_join_text(pieces), _escape).replace(LINE_BREAK, self.line_break or " ")
        return _BLOCK_BEGIN.sub(r"\g<0>\\", written) if self.begins_line else written


def _without_outer_spaces(pieces: Iterable[str | Tag]) -> list[str | Tag]:
    """Move spaces at the start and end of emphasis outside the emphasis.

    Markdown would show the asterisks of `*home *`.
    """
    moved: list[str | Tag] = []
    for piece in pieces:
        last = moved[-1] if moved else None
        if isinstance(piece, Tag) and not piece.begins and _is_emphasis(piece) and isinstance(last, str):
            text = last.rstrip(" ")
            moved[-1:] = [*([text] if text else []), piece, *([" "] if text != last else [])]
        elif isinstance(piece, str) and piece[:1] == " " and isinstance(last, Tag) and last.begins:
            position = len(moved)
            while (
                position and isinstance(tag := moved[position - 1], Tag) and tag.begins and _is_emphasis(tag)
            ):
                position -= 1
            if position < len(moved):
                moved.insert(position, " ")
                piece = piece.lstrip(" ")
            moved += [piece] if piece else []
        else:
            moved.append(piece)
    return moved


def _is_emphasis(tag: Tag) -> bool:
    """Return whether a tag is a mark of emphasis, which is the same at the start and at the end."""
    return tag.element.opening == tag.element.closing


def _without_empty_emphasis(pieces: Iterable[str | Tag]) -> list[str | Tag]:
    """Leave out emphasis without words in the translation. Markdown would show its asterisks."""
    result: list[str | Tag] = []
    for piece in pieces:
        last = result[-1] if result else None
        closes = isinstance(piece, Tag) and not piece.begins and last == Tag(piece.element, True)
        if closes and isinstance(piece, Tag) and _is_emphasis(piece):
            result.pop()
        else:
            result.append(piece)
    return result


def _join_text(pieces: Iterable[str | Tag]) -> Iterator[str | Tag]:
    """Join adjacent texts. Whether a character needs a backslash depends on the characters next to it."""
    for kind, group in groupby(pieces, type):
        if kind is str:
            yield "".join(map(str, group))
        else:
            yield from group


# --- Inline -------------------------------------------------------------------------------------------------

_DESTINATION = (
    r"\(\s*+(?:<[^<>]*+>|(?:[^()\s]|\([^()\s]*+\))*+)"
    r"(?:\s++(?:\"[^\"]*\"|'[^']*'|\([^()]*+\)))?\s*+\)"
)
# Punctuation and emphasis marks at the end of an address do not belong to it.
_ADDRESS = r"https?://(?:[.,;:!?*_~'\"]*+[^\s<>().,;:!?*_~'\"])++"
# A formula between dollar signs contains no space, or contains one of the characters \ ^ _ =. This excludes
# prices ("$5 or $6") and variables ("$HOME/$USER", "${a}-${b}").
_MATH = (
    r"\$\$[^$`]++\$\$|(?<![0-9A-Za-z$])\$(?![\s{$])"
    r"(?:(?=[^$`\\^_=]*+[\\^_=])[^$`]++|[^$`\s]++)(?<![\s\\])\$(?![0-9A-Za-z_{$])"
)
_IMAGE = re.compile(r"!\[[^\[\]]*+\](?:\([^()]*+\)|\[[^\[\]]*+\])")
_VERBATIM_ELEMENT = rf"<(?P<name>{'|'.join(sorted(VERBATIM))})(?:\s[^<>]*+)?>[^<>]*+</(?P=name)>"
# The number of a footnote, or an exponent.
_REFERENCE = r"<sup(?:\s[^<>]*+)?>(?:[\d_]|[^\w<>])*+</sup>"
_TAG = re.compile(r"<(?P<end>/?)(?P<tag>[a-zA-Z][\w-]*+)(?:\s[^<>]*+)?>(?<!/>)")
_TOKEN = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)"
    r"|(?P<line_break><[bB][rR][ \t]*+/?>)"
    r"|(?P<code>(?P<ticks>`++).+?(?<!`)(?P=ticks)(?!`))"
    rf"|(?P<verbatim>{_VERBATIM_ELEMENT}|{_REFERENCE})"
    r"|(?P<atomic><(?:/?[a-zA-Z][^<>]*+|!--(?:(?!<!--).)*?--)>|\[\^[^\]\s]++\]"
    rf"|{_ADDRESS}|{_MATH}"
    r"|\{\{(?:(?!\{\{).)*?\}\}|\{%(?:(?!\{%).)*?%\}"
    rf"|!\[[^\[\]]*+\](?:{_DESTINATION}|\[[^\[\]]*+\]))"
    rf"|\[(?P<text>(?:{_IMAGE.pattern}|[^\[\]\\]|\\.)*+)\](?P<target>{_DESTINATION}|\[[^\[\]]*+\])?"
    r"|(?P<emphasis>\*\*\*|___|\*\*|__|~~|\*|_)"
)


def _add_inline(builder: SegmentBuilder, text: str, labels: frozenset[str]) -> None:
    matches = list(_TOKEN.finditer(text))
    tag_partners = pair_up([_tag_of(match) for match in matches])
    partners = tag_partners | _pair_emphasis(text, matches, tag_partners)
    position = 0
    for index, match in enumerate(matches):
        builder.add_text(text[position : match.start()])
        position = match.end()
        if match["escape"]:
            builder.add_text(match[0][1:])
        elif match["entity"]:
            builder.add_text(re.sub(r"[\t-\r]", " ", unescape(match[0])))
        elif match["line_break"]:
            builder.add_text(LINE_BREAK)
        elif match["atomic"] and index in partners:
            if partners[index] > index:
                builder.open_element(Element(match[0], matches[partners[index]][0]))
            else:
                builder.close_element()
        elif match["code"] or match["verbatim"] or match["atomic"]:
            builder.add_atomic(match[0])
        elif match["emphasis"]:
            if index not in partners:
                builder.add_text(match[0])
            elif partners[index] > index:
                builder.open_element(Element(match[0], match[0]))
            else:
                builder.close_element()
        else:
            _add_link(builder, match, labels)
    builder.add_text(text[position:])


def _add_link(builder: SegmentBuilder, match: re.Match[str], labels: frozenset[str]) -> None:
    label, target = match["text"], match["target"]
    if target and label and not _IMAGE.sub("", label).strip():  # a link around images only, such as a badge
        builder.add_atomic(match[0])
        return
    if target in (None, "[]"):
        if label.casefold() not in labels:
            builder.add_text("[")
            _add_inline(builder, label, labels)
            builder.add_text(f"]{target or ''}")
            return
        target = f"[{label}]"  # the text is translated, so the link must name its definition
    builder.open_element(Element("[", f"]{target}"))
    _add_inline(builder, label, labels)
    builder.close_element()


def _tag_of(match: re.Match[str]) -> tuple[str, bool] | None:
    """Return the name of an HTML tag, and whether the tag is a start tag. For other tokens, return None."""
    tag = _TAG.fullmatch(match["atomic"] or "")
    if tag is None or tag["tag"].lower() in VOID:
        return None
    return tag["tag"].lower(), not tag["end"]


def _pair_emphasis(
    text: str, matches: Sequence[re.Match[str]], tag_partners: Mapping[int, int]
) -> dict[int, int]:
    """Return the partner of each paired emphasis mark. Pairs and tags are properly nested."""
    partners: dict[int, int] = {}
    unpaired: list[tuple[str, int]] = []
    for index, match in enumerate(matches):
        mark = match["emphasis"]
        if tag_partners.get(index, -1) > index:
            unpaired.append(("<", index))
        elif index in tag_partners:
            while unpaired.pop()[1] != tag_partners[index]:
                pass
        if not mark:
            continue
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        inside_word = "_" in mark and before.isalnum() and after.isalnum()
        if unpaired and unpaired[-1][0] == mark and before.strip() and not inside_word:
            partner = unpaired.pop()[1]
            partners |= {index: partner, partner: index}
        elif after.strip() and not inside_word:
            unpaired.append((mark, index))
    return partners


# The beginning of a heading, a list item, a definition, a quote, a formula or an admonition, up to the
# position at which a backslash escapes it.
_BLOCK_BEGIN = re.compile(
    r"\A\s*+(?:(?=#{1,6}(?:\s|\Z)|[-+:](?:\s|\Z)|>|\$\$|:{3}|(?:!!!|\?{3}\+?)[ \t]*\w)"
    r"|[0-9]{1,9}(?=[.)](?:\s|\Z)))"
)
# Characters that would be markup without a backslash.
_MARKUP = re.compile(r"[\\`*\[\]<|]|(?<!\w)_|_(?!\w)|~(?=~)|(?<=~)~|&(?=#?[0-9A-Za-z]{1,32};)")


def _escape(text: str) -> str:
    escaped = _MARKUP.sub(r"\\\g<0>", text)
    return re.sub(_MATH, lambda match: match[0].replace("$", r"\$"), escaped)


MARKDOWN = DocumentFormat(
    (".md", ".markdown"),
    "text/markdown; charset=utf-8",
    partial(read_text, parse=_parse),
    syntax_characters=b"<&\n*_[`",
)
