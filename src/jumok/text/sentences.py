"""Split a text into sentences to translate, and join the translations with the text between the sentences.

Most models are trained on single sentences, so a paragraph is split at the ends of its sentences. Line
breaks, indentation and lines without a letter or digit stay unchanged. For a model that was trained on
paragraphs, lines are not split. The Python API, the command line and the server all use this module, so that
they give the same translation.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Literal, get_args

from jumok.errors import RecipeError, suggest
from jumok.text.long_lines import sentence_separator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumok.text.words import Span

Sentences = Literal["split", "keep"]
"""How a text is divided. "split": each sentence is translated separately. "keep": lines are not split."""

MULTIPLE_SENTENCES = "multiple_sentences"
"""The name of a fact of the model card: the share of training sources with more than one sentence."""
# A model was trained on paragraphs if this share is at least the first number. A model was trained on single
# sentences if the share is less than the second number.
_MOSTLY_PARAGRAPHS, _SINGLE_SENTENCES = 0.5, 0.001

_SPACES_BETWEEN_SENTENCES = " \u00a0\u3000"  # the space, the no-break space and the ideographic space
# If a full stop is followed by an entity (&quot;), the sentence continues. Full-width punctuation needs no
# space after it. A run of full stops matches only from its first full stop, so that thousands of full stops
# take linear time.
_SENTENCE_END = re.compile(r"(?<![.?!…])[.?!…]++[\"'”’»)\]]*+\s++(?=[^&])|[。！？｡]++[”’」』）]*+\s*+")
_LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
# Most texts are one sentence. A search with this pattern recognises such texts quickly.
_MAY_SPLIT = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029。！？｡]|[.?!…][\"'”’»)\]]*+\s++\S")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
# In "Dr. Kim", "J. Kim" and "e.g. Kim", the full stop does not end a sentence. A full stop after "I" ends a
# sentence, as in "So do I. Do you?"
_ABBREVIATION = re.compile(
    r"(?:mrs?|ms|dr|prof|st|mt|vs|fig|vol|gen|col|capt|lt|sgt|rev|hon|sen|gov|messrs|mme|mlle|hr|fr|nr|bzw|ca"
    r"|sra?|dra|e\.g|i\.e|z\.b|d\.h|u\.a|u\.s|u\.k)",
    re.IGNORECASE,
)
_INITIAL = re.compile(r"[A-HJ-ZÀ-Þ]|(?:[A-Z]\.)+[A-Z]")
# The number of characters that are examined before a full stop. The limit keeps the time linear.
_MAX_ABBREVIATION = 12
# A sentence with more characters is split, so that a worker does not run out of memory.
_MAX_CHARACTERS = 1_000
_MAX_LINE = 10_000  # in the mode "keep", a line with more characters is split
_SPLIT_AFTER = (", ", "、", "，", " ")  # best first


def check_sentences(value: str) -> Sentences:
    """Return `value` if it is "split" or "keep". Otherwise, raise a RecipeError."""
    for known in get_args(Sentences):
        if value == known:
            return known  # type: ignore[no-any-return]
    known_values = get_args(Sentences)
    raise RecipeError(
        f"sentences is {' or '.join(known_values)}. Received: {value!r}.{suggest(value, known_values)}"
    )


def sentences_for_texts(facts: Mapping[str, object]) -> Sentences:
    """Return "keep" for a model that was trained on paragraphs, and "split" for any other model.

    `facts` are the facts of the model card.
    """
    share = facts.get(MULTIPLE_SENTENCES)
    return "keep" if isinstance(share, float) and share >= _MOSTLY_PARAGRAPHS else "split"


def sentences_for_scores(facts: Mapping[str, object]) -> Sentences:
    """Return how the lines of a test set are divided for a model with these facts in its card.

    Return "split" if the model was trained only on single sentences. Otherwise, or if the card does not have
    the fact, return "keep", because validation during training does not split lines.
    """
    share = facts.get(MULTIPLE_SENTENCES)
    return "split" if isinstance(share, float) and share < _SINGLE_SENTENCES else "keep"


def multiple_sentences_share(sources: Sequence[str]) -> float:
    """Return the share of texts that have more than one sentence."""
    return sum(len(sentence_spans(source)) > 1 for source in sources) / max(len(sources), 1)


def text_spans(text: str, sentences: Sentences = "split") -> list[Span]:
    """Return the start and end of each part of a text that is translated separately."""
    return sentence_spans(text) if sentences == "split" else line_spans(text)


def line_spans(text: str) -> list[Span]:
    """Return the start and end of each line that is not blank, without the surrounding white space.

    A line of more than `_MAX_LINE` characters is split.
    """
    parts = [part for line in _LINE.finditer(text) for part in _split_long(text, *line.span(), _MAX_LINE)]
    spans = [_trim(text, *part) for part in parts]
    return [(start, end) for start, end in spans if start < end]


def sentence_spans(text: str) -> list[Span]:
    """Return the start and end of each sentence, without the surrounding white space.

    A part without a letter or digit is not a sentence.
    """
    if len(text) <= _MAX_CHARACTERS and _MAY_SPLIT.search(text) is None:
        return [_trim(text, 0, len(text))] if _LETTER_OR_DIGIT.search(text) else []
    return [span for line in _LINE.finditer(text) for span in _spans_of_line(text, line.start(), line.end())]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text. A translation with `sentences="split"` translates these sentences."""
    return [text[start:end] for start, end in sentence_spans(text)]


def replace_sentences(
    text: str, spans: Sequence[Span], translated: Sequence[str], language: str
) -> list[str]:
    """Replace the sentences of a text by their translations. Return a list of pieces to be joined.

    The list is: the text before the first sentence, the first translation, the text between the first and the
    second sentence, the second translation, …, the text after the last sentence. Spaces between two sentences
    are replaced by the separator of the target language (`language`).
    """
    parts: list[str] = []
    previous_end = 0
    for (start, end), sentence in zip(spans, translated, strict=True):
        parts.extend([text_before(text, previous_end, start, sentence, language), sentence])
        previous_end = end
    return [*parts, text[previous_end:]]


def text_before(text: str, previous_end: int, start: int, sentence: str, language: str) -> str:
    """Return the text that `replace_sentences` writes before `sentence`, a translated sentence.

    `previous_end` is the end of the sentence before it in `text`, or 0, and `start` is its own start.
    """
    between = text[previous_end:start]
    if previous_end and not between.strip(_SPACES_BETWEEN_SENTENCES):
        return sentence_separator(language) if sentence else ""
    return between


def _spans_of_line(text: str, start: int, end: int) -> list[Span]:
    spans: list[Span] = []
    sentence_start = start
    for match in _SENTENCE_END.finditer(text, start, end):
        if not _is_inside_sentence(text, sentence_start, match):
            spans.append((sentence_start, match.end()))
            sentence_start = match.end()
    spans.append((sentence_start, end))
    trimmed = [_trim(text, *part) for span in spans for part in _split_long(text, *span)]
    return [(left, right) for left, right in trimmed if _LETTER_OR_DIGIT.search(text, left, right)]


def _is_inside_sentence(text: str, sentence_start: int, match: re.Match[str]) -> bool:
    """Return whether the sentence continues after a full stop.

    It does before a lower-case letter, and after an abbreviation, an initial or the number of an item ("1.").
    """
    if match.group()[0] in ".?!…" and text[match.end()].islower():
        return True
    if match.group().rstrip() != ".":
        return False
    before = text[max(sentence_start, match.start() - _MAX_ABBREVIATION) : match.start()]
    words = before.split()
    if not words:  # nothing is before the full stop
        return True
    word = words[-1].lstrip("([\"'“‘«")
    is_item = before.strip().isdigit() and match.start() - sentence_start < _MAX_ABBREVIATION
    return is_item or bool(_ABBREVIATION.fullmatch(word) or _INITIAL.fullmatch(word))


def _split_long(text: str, start: int, end: int, max_characters: int = _MAX_CHARACTERS) -> list[Span]:
    parts: list[Span] = []
    while end - start > max_characters:
        split = _split_position(text, start + max_characters // 2, start + max_characters)
        parts.append((start, split))
        start = split
    return [*parts, (start, end)]


def _split_position(text: str, low: int, high: int) -> int:
    """Return the best position for a split between `low` and `high`.

    The position does not separate a combining mark from its letter.
    """
    for separator in _SPLIT_AFTER:
        if (index := text.rfind(separator, low, high)) >= 0:
            return index + len(separator)
    position = high
    while position > low and unicodedata.category(text[position]).startswith("M"):
        position -= 1
    return position


def _trim(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
