"""Corpora: what a person names on the command line, opened.

    open_corpus("pairs.en-ko.tsv.gz")                 one file of pairs
    open_corpus(["train.en", "train.de"])             two parallel texts
    open_corpora(["a.tsv", "b.tsv:2.5", "c.en", "c.de"], source="en")
    open_texts(["novel.txt"])                         plain text, for a language model

Files whose names end in tsv, csv or jsonl hold pairs; any two others are parallel texts. Languages come from
what was asked for, a header, the keys of a JSON object or the file names. Where they are asked for the other
way round (`pairs.en-ko.tsv` with source ko), the two sides change places.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.corpus.alignments import turned
from jumok.corpus.languages import find_language, language_code, language_name
from jumok.corpus.lines import InputFile, read_lines, spool
from jumok.corpus.read import (
    NumberedPair,
    csv_rows,
    header_languages,
    json_columns,
    json_record,
    read_csv,
    read_jsonl,
    read_parallel,
    read_text,
    read_tsv,
    unknown_codes,
)
from jumok.errors import DataError
from jumok.values import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "Corpus",
    "HeaderWarning",
    "corpus_of_pairs",
    "open_corpora",
    "open_corpus",
    "open_pairs_or_text",
    "open_texts",
]

STANDARD_INPUT = "-"

_PAIR_SUFFIXES = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class HeaderWarning(UserWarning):
    """A first line was taken as a header by its looks alone."""


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs that can be read again and again, in the order of their file.

    Languages are codes, or "" where nobody said. `weight` is how often an epoch takes each pair. Plain text
    is pairs without a source.
    """

    name: str
    reader: Callable[[Counter[str]], Iterator[NumberedPair]]
    source_language: str = ""
    target_language: str = ""
    weight: float = 1.0
    turned: bool = False
    plain: bool = False

    def pairs(self) -> Iterator[Pair]:
        return (pair for _, pair in self.numbered_pairs())

    def numbered_pairs(self, noticed: Counter[str] | None = None) -> Iterator[NumberedPair]:
        """(line, pair); what the reader dropped, a byte order mark for example, is counted in `noticed`."""
        pairs = self.reader(Counter() if noticed is None else noticed)
        return map(_turn, pairs) if self.turned else pairs


def corpus_of_pairs(
    pairs: Sequence[Pair], *, source: str = "", target: str = "", name: str = "pairs", weight: float = 1.0
) -> Corpus:
    """A corpus of pairs that are already in memory."""
    numbered = list(enumerate(pairs, start=1))
    return Corpus(
        name=name,
        reader=lambda noticed: iter(numbered),
        source_language=language_code(source) if source else "",
        target_language=language_code(target) if target else "",
        weight=_checked_weight(weight),
    )


def open_corpus(
    paths: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: float = 1.0,
) -> Corpus:
    """Open one file of pairs or two parallel texts. Format and languages are found; text is read later."""
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    files = [_input_file(path) for path in listed]
    asked_source = language_code(source) if source else ""
    asked_target = language_code(target) if target else ""
    if len(files) == 1 and _format(files[0]):
        corpus = _open_pairs(files[0], asked_source, asked_target)
    elif len(files) == 2 and not any(map(_format, files)):
        corpus = _open_parallel(files[0], files[1])
    else:
        raise _cannot_pair(files)
    oriented = _orient(corpus, asked_source, asked_target, because="was asked for")
    return replace(oriented, weight=_checked_weight(weight))


def open_corpora(
    arguments: Sequence[str], *, source: str | None = None, target: str | None = None
) -> list[Corpus]:
    """Open everything that was named: files of pairs one by one, other texts two by two.

    `path:2.5` gives a corpus the weight 2.5. All corpora must agree on their languages; those that do not say
    take them from the others.
    """
    if not arguments:
        raise DataError(
            "No corpus was given. Name a file of pairs (pairs.tsv) or two texts (train.en train.de)."
        )
    corpora: list[Corpus] = []
    waiting: list[tuple[str, float | None]] = []
    for argument in arguments:
        path, weight = _split_weight(argument)
        if path == STANDARD_INPUT or _format(InputFile(path)):
            corpora.append(open_corpus(path, source=source, target=target, weight=weight or 1.0))
            continue
        waiting.append((path, weight))
        if len(waiting) == 2:
            texts = [text for text, _ in waiting]
            shared = _shared_weight(waiting)
            corpora.append(open_corpus(texts, source=source, target=target, weight=shared))
            waiting = []
    if waiting:
        raise _cannot_pair([InputFile(waiting[0][0])])
    return _agreed(corpora)


def open_texts(arguments: Sequence[str], *, language: str | None = None) -> list[Corpus]:
    """Open plain texts, a sentence a line. A file of pairs is refused, with the way to its sides."""
    if not arguments:
        raise DataError("No text was given. Name a file with a sentence a line, such as text.txt.")
    wanted = language_code(language) if language else ""
    corpora: list[Corpus] = []
    for argument in arguments:
        path, weight = _split_weight(argument)
        corpus = _open_text(_input_file(path), weight or 1.0)
        if not _agree(wanted, corpus.target_language):
            raise DataError(
                f"{corpus.name} seems to hold {language_name(corpus.target_language)}, but "
                f"{language_name(wanted)} is wanted. Rename the file if its name is wrong."
            )
        wanted = wanted or corpus.target_language
        corpora.append(corpus)
    return [replace(corpus, target_language=wanted) for corpus in corpora]


def open_pairs_or_text(
    arguments: Sequence[str], *, source: str | None = None, target: str | None = None
) -> list[Corpus]:
    """As `open_corpora`, but a text that stands alone is plain text."""
    alone = _split_weight(arguments[0])[0] if len(arguments) == 1 else STANDARD_INPUT
    if alone != STANDARD_INPUT and not _format(InputFile(alone)):
        return open_texts(arguments, language=target or source)
    return open_corpora(arguments, source=source, target=target)


def _open_text(file: InputFile, weight: float) -> Corpus:
    first = next((line for line in read_lines(file, Counter()) if line.strip()), None)
    if first is None:
        raise DataError(f"{file.name} holds no text. Is it the right file?")
    if "\t" in first or (not file.spooled and _format(file)):
        raise DataError(
            f"{file.name} holds pairs, and plain text is wanted here: one language, a sentence a line. "
            "`cut -f 1` takes one side of a .tsv. To train a translator on pairs, name the file .tsv and "
            "choose a --model that translates."
        )
    return Corpus(
        file.name,
        partial(read_text, file),
        target_language=_language_in_name(file),
        weight=_checked_weight(weight),
        plain=True,
    )


def _input_file(path: str | Path) -> InputFile:
    return spool() if str(path) == STANDARD_INPUT else InputFile(path)


def _format(file: InputFile) -> str:
    """tsv, csv or jsonl by name; "" for a text. Standard input holds TSV, or JSONL where it starts with {."""
    if file.spooled:
        first = next(read_lines(file, Counter()), "")
        return "jsonl" if first.startswith("{") else "tsv"
    return _PAIR_SUFFIXES.get(Path(file.plain_name).suffix.lower(), "")


def _open_pairs(file: InputFile, source: str, target: str) -> Corpus:
    kind = _format(file)
    if kind == "jsonl":
        return _open_jsonl(file, source, target)
    cells = _first_cells(file, kind)
    named = header_languages(cells)
    if named is not None and (unknown := unknown_codes(cells)):
        warnings.warn(
            f"the first line of {file.name} was taken as a header, not as a pair: it names two languages, "
            f"though jumok does not know {' and '.join(unknown)}. If it is a pair, put a header above it.",
            HeaderWarning,
            stacklevel=2,
        )
    languages = named if named and any(named) else _pair_in_name(file)
    read = read_tsv if kind == "tsv" else read_csv
    corpus = Corpus(file.name, partial(read, file, header=named is not None), *languages)
    if next(corpus.numbered_pairs(), None) is None:
        raise _empty(file.name)
    return corpus


def _open_jsonl(file: InputFile, source: str, target: str) -> Corpus:
    number, line = next(
        ((number, line) for number, line in enumerate(read_lines(file, Counter()), start=1) if line.strip()),
        (0, ""),
    )
    if not line:
        raise _empty(file.name)
    columns = json_columns(json_record(file, number, line))
    wanted = [key for key in columns if columns[key] in (source, target)]
    if len(columns) > 2 and source and target and len(wanted) == 2:
        columns = {key: columns[key] for key in wanted}
    if len(columns) != 2:
        raise DataError(
            f"Line {number} of {file.name} should have the keys `source` and `target` or two language codes. "
            f"Found: {', '.join(columns) or 'none of them'}. "
            + ("Say which are meant with --from and --to." if columns else "")
        )
    keys = list(columns)
    reader = partial(read_jsonl, file, source_key=keys[0], target_key=keys[1])
    first, second = columns.values() if any(columns.values()) else _pair_in_name(file)
    return Corpus(file.name, reader, first, second)


def _open_parallel(source: InputFile, target: InputFile) -> Corpus:
    for file in (source, target):
        if next(read_lines(file, Counter()), None) is None:
            raise _empty(file.name)
    languages = _language_in_name(source), _language_in_name(target)
    if not any(languages):
        languages = _pair_in_name(source)
    elif languages[0] == languages[1]:
        raise DataError(
            f"{source.name} and {target.name} both say they are {language_name(languages[0])}. "
            "Two parallel texts hold two languages: name one file of each."
        )
    return Corpus(f"{source.name} + {target.name}", partial(read_parallel, source, target), *languages)


def _first_cells(file: InputFile, kind: str) -> list[str]:
    line = next(read_lines(file, Counter()), None)
    if line is None:
        raise _empty(file.name)
    if kind == "tsv":
        return line.split("\t")
    return next((row for _, row in csv_rows(file, [line])), [])


def _language_in_name(file: InputFile) -> str:
    """The language of `train.de`, `train.de.gz`, `train.de.txt` or `newstest.ref.deu`."""
    for part in reversed(file.plain_name.split(".")[1:]):
        language = find_language(part) if part.islower() else None
        if language:
            return language.code
        if part != "txt":
            break
    return ""


def _pair_in_name(file: InputFile) -> tuple[str, str]:
    """The languages of `pairs.en-ko.tsv` or `en_ko.tsv`."""
    for part in reversed(file.plain_name.split(".")):
        words = part.replace("_", "-").split("-")
        if len(words) == 2 and all(word.islower() for word in words):
            first, second = (find_language(word) for word in words)
            if first and second and first != second:
                return first.code, second.code
    return "", ""


def _orient(corpus: Corpus, source: str, target: str, *, because: str) -> Corpus:
    """Compare what is wanted with what was found, and turn the corpus round where that makes them agree."""
    found = corpus.source_language, corpus.target_language
    if _agree(source, found[0]) and _agree(target, found[1]):
        return replace(corpus, source_language=source or found[0], target_language=target or found[1])
    if _agree(source, found[1]) and _agree(target, found[0]):
        return replace(
            corpus,
            source_language=source or found[1],
            target_language=target or found[0],
            turned=not corpus.turned,
        )
    raise DataError(
        f"{corpus.name} seems to hold {language_name(found[0]) or '?'} and {language_name(found[1]) or '?'}, "
        f"but {language_name(source) or '?'} → {language_name(target) or '?'} {because}. "
        "Rename the file if its name is wrong, or ask for its languages."
    )


def _agree(asked: str, found: str) -> bool:
    return not asked or not found or asked == found


def _agreed(corpora: Iterable[Corpus]) -> list[Corpus]:
    """Corpora that are trained on together translate between the same two languages."""
    listed = list(corpora)
    known = next((c for c in listed if c.source_language and c.target_language), listed[0])
    because = f"is what {known.name} holds"
    return [_orient(c, known.source_language, known.target_language, because=because) for c in listed]


def _turn(numbered: NumberedPair) -> NumberedPair:
    number, pair = numbered
    alignment = None if pair.alignment is None else turned(pair.alignment)
    return number, Pair(pair.target, pair.source, alignment)


def _split_weight(argument: str) -> tuple[str, float | None]:
    """`pairs.tsv:2.5` → ("pairs.tsv", 2.5). A file that really has such a name is taken as it is."""
    path, colon, weight = argument.rpartition(":")
    if not colon or not path or Path(argument).exists():
        return argument, None
    try:
        return path, _checked_weight(float(weight))
    except ValueError:
        return argument, None


def _shared_weight(texts: list[tuple[str, float | None]]) -> float:
    weights = {weight for _, weight in texts if weight is not None}
    if len(weights) > 1:
        raise DataError(
            f"{texts[0][0]} and {texts[1][0]} are one corpus, but were given two weights: "
            f"{', '.join(map(str, sorted(weights)))}. Give one of them."
        )
    return weights.pop() if weights else 1.0


def _checked_weight(weight: float) -> float:
    if not (math.isfinite(weight) and 0 < weight <= 1000):
        raise DataError(f"A corpus weighs more than 0 and at most 1000. Received: {weight}")
    return weight


def _empty(name: str) -> DataError:
    return DataError(f"{name} holds no sentence pairs. Is it the right file?")


def _cannot_pair(files: list[InputFile]) -> DataError:
    names = ", ".join(file.name for file in files) or "nothing"
    return DataError(
        f"A corpus is one file of pairs (.tsv, .csv, .jsonl) or two texts with a sentence a line. "
        f"Received: {names}. A file of pairs under another name must be renamed; a text needs its other half "
        "(a text alone is enough for `jumok train --model decoder-only` or `encoder-only`)."
    )
