"""Open corpora as they are named on the command line.

    open_corpus("pairs.en-ko.tsv.gz")                 one file of pairs
    open_corpus(["train.en", "train.de"])             two parallel texts
    open_corpus("table.csv", columns="en,ko", encoding="cp949")
    open_corpus([("Hello.", "안녕하세요."), …])           pairs in memory
    open_corpora(["a.tsv", "b.tsv:2.5", "c.en", "c.de"], source="en")
    open_texts(["novel.txt"])                         plain text, for a language model
    open_corpus("pets") or open_corpus("captions.ko.tsv")     pictures (`picture_corpora.py`)

`readers.PAIR_FORMATS` lists the suffixes of files of pairs; any two other files are parallel texts. Languages
come from the arguments, a header, the keys of a JSON object or the file names. If the arguments name them in
the opposite direction (`pairs.en-ko.tsv` with source ko), source and target are swapped.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.data.alignments import swap_alignment
from jumok.data.encodings import check_encoding
from jumok.data.formats.pair_file import ReadOptions, no_pairs_error
from jumok.data.formats.parallel import read_parallel, read_text
from jumok.data.input_files import InputFile, copy_stream, without_compression
from jumok.data.lines import read_lines
from jumok.data.picture_corpora import holds_pictures, open_picture_reader
from jumok.data.readers import PAIR_FORMATS, find_pair_format, split_weight
from jumok.errors import DataError
from jumok.text.languages import find_language, language_code, language_name
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jumok.data.formats.pair_file import NumberedPair, OpenPairs, PairReader

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs that can be read any number of times, in the order of their file.

    Languages are codes, or "" if unknown. `weight` is how often each pair occurs per epoch on average.
    `swapped` is true if source and target are exchanged after reading. `plain` is true for plain text, whose
    pairs have an empty source. `pictures` is true if the sources are paths of pictures. `note` names choices
    that the reader made, such as columns.
    """

    name: str
    reader: PairReader
    source_language: str = ""
    target_language: str = ""
    weight: float = 1.0
    swapped: bool = False
    plain: bool = False
    pictures: bool = False
    note: str = ""
    parallel_files: tuple[str, ...] = ()
    """The paths of two parallel texts. Any other corpus has one path, `name`."""

    @property
    def file_names(self) -> str:
        """The name without folders, for a model that is given away, because paths may be private."""
        return " + ".join(re.split(r"[\\/]", path)[-1] for path in self.parallel_files or [self.name])

    def num_bytes(self, compressed_factor: int = 1) -> int:
        """Return the size of the files; a compressed file counts as `compressed_factor` times as large."""
        files = [Path(path) for path in self.parallel_files or [self.name]]
        return sum(
            file.stat().st_size * (compressed_factor if _is_compressed(file.name) else 1)
            for file in files
            if file.is_file()
        )

    def pairs(self) -> Iterator[Pair]:
        return (pair for _, pair in self.numbered_pairs())

    def numbered_pairs(self, dropped: Counter[str] | None = None) -> Iterator[NumberedPair]:
        """Yield (line, pair); `dropped` counts what the reader dropped, such as a byte order mark."""
        pairs = self.reader(Counter() if dropped is None else dropped)
        return map(_swap, pairs) if self.swapped else pairs


def _is_compressed(name: str) -> bool:
    return without_compression(name) != name or name.lower().endswith(".zip")


def is_pair(item: object) -> bool:
    """Return whether an item is a pair in memory, not the name of a file."""
    return isinstance(item, Pair | tuple | list)


def corpus_of_pairs(
    pairs: Iterable[Pair | Sequence[str]],
    *,
    source: str = "",
    target: str = "",
    name: str = "pairs",
    weight: float = 1.0,
) -> Corpus:
    """Return a corpus of pairs that are already in memory: `Pair`s, or sequences of two strings."""
    numbered = [(number, _checked_pair(number, pair)) for number, pair in enumerate(pairs, start=1)]
    return Corpus(
        name=name,
        reader=lambda dropped: iter(numbered),
        source_language=language_code(source) if source else "",
        target_language=language_code(target) if target else "",
        weight=_check_weight(weight),
    )


def _checked_pair(number: int, pair: Pair | Sequence[str]) -> Pair:
    if isinstance(pair, Pair):
        return pair
    if (
        not isinstance(pair, tuple | list)
        or len(pair) != 2
        or not all(isinstance(text, str) for text in pair)
    ):
        raise DataError(
            f"Pair {number:,} is not a sentence and its translation, two strings. Received: {pair!r}"
        )
    return Pair(pair[0].strip(), pair[1].strip())


def open_corpus(
    paths: str | Path | Sequence[str | Path] | Iterable[Pair | Sequence[str]],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: float = 1.0,
    columns: str = "",
    encoding: str = "",
) -> Corpus:
    """Open one file of pairs, two parallel texts, pictures, or pairs in memory: detect format and languages.

    `columns` chooses two columns of a table by name or number (`en,ko` or `2,4`); `encoding` is for
    texts that are not UTF-8. This function reads only as much as it needs to find out the format, the columns
    and the languages. The corpus reads all pairs whenever they are requested.
    """
    items = [paths] if isinstance(paths, str | Path) else list(paths)
    if items and all(map(is_pair, items)):
        return corpus_of_pairs(items, source=source or "", target=target or "", weight=weight)  # type: ignore[arg-type]
    if len(items) == 1 and isinstance(items[0], str | Path) and holds_pictures(items[0]):
        if columns:
            raise DataError(
                f"{items[0]} holds pictures, for which columns cannot be chosen. Received: --columns "
                f"{columns}. Leave it out."
            )
        return _open_pictures(items[0], target or "", weight)
    files = [_input_file(path, encoding) for path in items]  # type: ignore[arg-type]
    options = ReadOptions(
        language_code(source) if source else "", language_code(target) if target else "", columns
    )
    formats = [find_pair_format(file) for file in files]
    if len(files) == 1 and formats[0] is not None:
        corpus = _open_pairs(files[0], formats[0], options)
    elif len(files) == 2 and not any(formats):
        corpus = _open_parallel(files[0], files[1])
        if columns:
            raise DataError(f"{corpus.name} have no columns. Received: --columns {columns}. Leave it out.")
    else:
        raise _not_a_corpus_error(files)
    oriented = _orient(corpus, options.source, options.target, because="was requested")
    return replace(oriented, weight=_check_weight(weight))


def open_corpora(
    arguments: Sequence[str],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: str = "",
    encoding: str = "",
) -> list[Corpus]:
    """Open all corpora. A file of pairs is one corpus. Two consecutive texts are the sides of one corpus.

    `path:2.5` gives a corpus the weight 2.5. All corpora must have the same languages. A corpus that names no
    languages gets the languages of the other corpora. `columns` and `encoding` apply to every file (see
    `open_corpus`).
    """
    if not arguments:
        raise DataError(
            "No corpus was given. Name a file of pairs (pairs.tsv) or two texts (train.en train.de)."
        )
    open_files = partial(open_corpus, source=source, target=target, columns=columns, encoding=encoding)
    corpora: list[Corpus] = []
    unpaired: list[tuple[str, float | None]] = []  # a text that waits for its translation
    for argument in arguments:
        path, weight = _path_and_weight(argument)
        is_pair_file = find_pair_format(InputFile(path, encoding=encoding))
        if path == STANDARD_INPUT or is_pair_file or holds_pictures(path):
            corpora.append(open_files(path, weight=weight or 1.0))
            continue
        unpaired.append((path, weight))
        if len(unpaired) == 2:
            texts = [text for text, _ in unpaired]
            corpora.append(open_files(texts, weight=_shared_weight(unpaired)))
            unpaired = []
    if unpaired:
        raise _not_a_corpus_error([InputFile(unpaired[0][0], encoding=encoding)])
    if len({corpus.pictures for corpus in corpora}) > 1:
        names = ", ".join(f"{c.name} ({'pictures' if c.pictures else 'text'})" for c in corpora)
        raise DataError(f"Pictures and sentences cannot be mixed in one run. Received: {names}.")
    return _with_same_languages(corpora)


def open_further_corpora(
    arguments: Sequence[str],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: str = "",
    encoding: str = "",
) -> list[Corpus]:
    """Open corpora beside the training pairs: validation and test sets, old pairs, a translation memory.

    If they cannot be opened with both `columns` and `encoding`, they are opened with one of the two, or with
    neither.
    """
    for reading in _reading_options(columns, encoding):
        try:
            return open_corpora(arguments, source=source, target=target, **reading)
        except DataError:
            continue
    return open_corpora(arguments, source=source, target=target)


def _reading_options(columns: str, encoding: str) -> list[dict[str, str]]:
    """Return the combinations of options to try in turn: first both, then each alone."""
    options = [{"columns": columns, "encoding": encoding}, {"columns": columns}, {"encoding": encoding}]
    return options if columns and encoding else options[:1] if columns or encoding else []


def open_texts(arguments: Sequence[str], *, language: str | None = None, encoding: str = "") -> list[Corpus]:
    """Open plain texts with one sentence per line; refuse files of pairs."""
    if not arguments:
        raise DataError("No text was given. Name a file with one sentence per line, such as text.txt.")
    wanted = language_code(language) if language else ""
    corpora: list[Corpus] = []
    for argument in arguments:
        path, weight = _path_and_weight(argument)
        corpus = _open_text(_input_file(path, encoding), weight or 1.0)
        if not _compatible(wanted, corpus.target_language):
            raise DataError(
                f"{corpus.name} seems to hold {language_name(corpus.target_language)}, but "
                f"{language_name(wanted)} was requested. Rename the file if its name is wrong."
            )
        wanted = wanted or corpus.target_language
        corpora.append(corpus)
    return [replace(corpus, target_language=wanted) for corpus in corpora]


def open_pairs_or_text(
    arguments: Sequence[str],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: str = "",
    encoding: str = "",
) -> list[Corpus]:
    """Open corpora like `open_corpora`. In addition, accept a single text as plain text."""
    if len(arguments) == 1 and not columns:
        path, _ = split_weight(arguments[0])
        is_pair_file = find_pair_format(InputFile(path, encoding=encoding))
        if path != STANDARD_INPUT and not is_pair_file and not holds_pictures(path):
            return open_texts(arguments, language=target or source, encoding=encoding)
    return open_corpora(arguments, source=source, target=target, columns=columns, encoding=encoding)


def _open_pictures(path: str | Path, target: str, weight: float) -> Corpus:
    reader, language = open_picture_reader(Path(path))
    wanted = language_code(target) if target else ""
    if not _compatible(wanted, language):
        raise DataError(
            f"{path} seems to have captions in {language_name(language)}, but {language_name(wanted)} was "
            "requested. Rename the file if its name is wrong."
        )
    return Corpus(str(path), reader, "", wanted or language, weight=_check_weight(weight), pictures=True)


def _open_text(file: InputFile, weight: float) -> Corpus:
    first = next((line for line in read_lines(file, Counter()) if line.strip()), None)
    if first is None:
        raise DataError(f"{file.name} holds no text. Is it the right file?")
    if "\t" in first or (not file.from_stream and find_pair_format(file)):
        raise DataError(
            f"{file.name} holds pairs, but plain text is needed here: one language, one sentence per line. "
            "`cut -f 1` extracts one side of a .tsv. To train a translator on pairs, name the file .tsv and "
            "choose a --model that translates."
        )
    _refuse_markup(file, first)
    return Corpus(
        file.name,
        partial(read_text, file),
        target_language=_language_in_name(file),
        weight=_check_weight(weight),
        plain=True,
    )


_DOCUMENTS = {
    ".srt": "subtitles",
    ".vtt": "subtitles",
    ".yml": "YAML",
    ".yaml": "YAML",
    ".strings": "messages of an app",
}
"""Suffixes of documents that could be mistaken for a text with one sentence per line → kind of document."""


def _refuse_markup(file: InputFile, first_line: str) -> None:
    """Raise if a text is a document by its name, or XML, HTML or JSON by its first line."""
    path = Path(file.plain_name)
    if document := _DOCUMENTS.get(path.suffix.lower()):
        raise DataError(
            f"{file.name} holds {document}, not one sentence per line. To translate it: jumok translate "
            f"MODEL {path.name} --out new{path.suffix}. To train on it, write each text and its "
            "translation on a line of a .tsv."
        )
    suffixes = ", ".join(PAIR_FORMATS)
    start = first_line.lstrip()
    if start.startswith(("<?xml", "<!DOCTYPE", "<!doctype", "<html", "<HTML")):
        kind, advice = "XML or HTML", f"Files of pairs that jumok reads: {suffixes}."
    elif start in ("[", "{", "[{") or start.startswith(('[{"', '{"', '["')):
        kind, advice = (
            "JSON",
            "jumok reads JSON with one object per line, named .jsonl: `jq -c '.[]'` makes it.",
        )
    else:
        return
    raise DataError(f"{file.name} is {kind}, not a text with one sentence per line. {advice}")


def _input_file(path: str | Path, encoding: str) -> InputFile:
    if not isinstance(path, str | Path):
        raise DataError(f"A corpus is named by a path, or given as pairs of strings. Received: {path!r}")
    encoding = check_encoding(encoding)
    return (
        copy_stream(encoding=encoding) if str(path) == STANDARD_INPUT else InputFile(path, encoding=encoding)
    )


def _open_pairs(file: InputFile, open_format: OpenPairs, options: ReadOptions) -> Corpus:
    opened = open_format(file, options)
    languages = opened.languages if any(opened.languages) else _language_pair_in_name(file)
    corpus = Corpus(file.name, opened.read, *languages, note=opened.note)
    if next(corpus.numbered_pairs(), None) is None:
        raise _nothing_to_read_error(file, corpus)
    return corpus


def _nothing_to_read_error(file: InputFile, corpus: Corpus) -> DataError:
    """Return the error for a file without pairs. Its message lists what the reader dropped."""
    dropped: Counter[str] = Counter()
    for _ in corpus.numbered_pairs(dropped):
        pass
    # TMX and XLIFF drop whole units, PO whole entries. Other drops, such as a header line, lose no pair.
    units = {what: count for what, count in dropped.items() if "unit" in what or "entry" in what}
    if not units:
        return no_pairs_error(file)
    reasons = ", ".join(f"{count:,} {what}" for what, count in units.items())
    return DataError(f"{file.name} holds no sentence pairs. Received: {reasons}. Is it translated?")


def _open_parallel(source: InputFile, target: InputFile) -> Corpus:
    for file in (source, target):
        first = next(read_lines(file, Counter()), None)
        if first is None:
            raise no_pairs_error(file)
        _refuse_markup(file, first)
    languages = _language_in_name(source), _language_in_name(target)
    if not any(languages):
        languages = _language_pair_in_name(source)
    elif languages[0] == languages[1]:
        raise DataError(
            f"{source.name} and {target.name} are both {language_name(languages[0])} by their names. "
            "Parallel texts have two languages: name one file of each."
        )
    names = source.name, target.name
    reader = partial(read_parallel, source, target)
    return Corpus(" + ".join(names), reader, *languages, parallel_files=names)


def _language_in_name(file: InputFile) -> str:
    """Return the language in a name such as `train.de`, `train.de.gz`, `train.de.txt` or `test.ref.deu`."""
    for part in reversed(file.plain_name.split(".")[1:]):
        language = find_language(part) if part.islower() else None
        if language:
            return language.code
        if part != "txt":
            break
    return ""


def _language_pair_in_name(file: InputFile) -> tuple[str, str]:
    """Return the languages of `pairs.en-ko.tsv`, `en_ko.tsv`, `Sentence pairs in English-Korean - ….tsv`."""
    tatoeba = re.match(r"Sentence pairs in (.+?)-(.+?) - ", file.plain_name)
    if tatoeba:
        first, second = (find_language(name) for name in tatoeba.groups())
        return first.code if first else "", second.code if second else ""
    for part in reversed(file.plain_name.split(".")):
        words = part.replace("_", "-").split("-")
        if len(words) == 2 and all(word.islower() for word in words):
            first, second = (find_language(word) for word in words)
            if first and second and first != second:
                return first.code, second.code
    return "", ""


def _orient(corpus: Corpus, source: str, target: str, *, because: str) -> Corpus:
    """Return the corpus in the wanted languages; swap its sides if they are in the opposite direction.

    Raise if it has other languages. In the message, the wanted languages are followed by `because`, such as
    "was requested".
    """
    first, second = corpus.source_language, corpus.target_language
    if corpus.pictures and _compatible(target, second):  # a picture is always the source
        return replace(corpus, target_language=target or second)
    if _compatible(source, first) and _compatible(target, second):
        return replace(corpus, source_language=source or first, target_language=target or second)
    if _compatible(source, second) and _compatible(target, first) and not corpus.pictures:
        return replace(
            corpus,
            source_language=source or second,
            target_language=target or first,
            swapped=not corpus.swapped,
        )
    raise DataError(
        f"{corpus.name} seems to hold {language_name(first) or '?'} and {language_name(second) or '?'}, "
        f"but {language_name(source) or '?'} → {language_name(target) or '?'} {because}. "
        "Rename the file if its name is wrong, or request its languages."
    )


def _compatible(wanted: str, detected: str) -> bool:
    return not wanted or not detected or wanted == detected


def _with_same_languages(corpora: Iterable[Corpus]) -> list[Corpus]:
    """Return all corpora in the languages of the first corpus that names both of its languages.

    If no corpus names both, the languages of the first corpus are taken. Raise if another corpus has other
    languages.
    """
    corpora = list(corpora)
    first = next((c for c in corpora if c.source_language and c.target_language), corpora[0])
    because = f"is what {first.name} holds"
    return [_orient(c, first.source_language, first.target_language, because=because) for c in corpora]


def _swap(numbered: NumberedPair) -> NumberedPair:
    number, pair = numbered
    alignment = None if pair.alignment is None else swap_alignment(pair.alignment)
    return number, Pair(pair.target, pair.source, alignment)


def _path_and_weight(argument: str) -> tuple[str, float | None]:
    """Return the parts of `pairs.tsv:2.5`; refuse a weight out of range."""
    path, weight = split_weight(argument)
    return path, None if weight is None else _check_weight(weight)


def _shared_weight(texts: list[tuple[str, float | None]]) -> float:
    weights = {weight for _, weight in texts if weight is not None}
    if len(weights) > 1:
        raise DataError(
            f"{texts[0][0]} and {texts[1][0]} are one corpus, but have two weights. "
            f"Received: {', '.join(map(str, sorted(weights)))}. Give only one."
        )
    return weights.pop() if weights else 1.0


def _check_weight(weight: float) -> float:
    if not (math.isfinite(weight) and 0 < weight <= 1000):
        raise DataError(f"The weight of a corpus is above 0 and at most 1000. Received: {weight}")
    return weight


def _not_a_corpus_error(files: list[InputFile]) -> DataError:
    names = ", ".join(file.name for file in files) or "nothing"
    for file in files:
        if not file.path.is_file():
            break
        _refuse_markup(file, next((line for line in read_lines(file, Counter()) if line.strip()), ""))
    return DataError(
        f"A corpus is one file of pairs ({', '.join(PAIR_FORMATS)}) or two texts with one sentence per line. "
        f"Received: {names}. If it is a file of pairs, give it one of these suffixes. A text needs its "
        "translation (a text alone is enough for `jumok train --model decoder-only` or `encoder-only`)."
    )
