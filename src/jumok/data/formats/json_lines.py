"""JSONL: one object per line, with a key per language or `source` and `target`."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from jumok.data.alignments import parse_alignment
from jumok.data.formats.pair_file import (
    PairFile,
    line_error,
    make_pair,
    no_pairs_error,
    shorten,
    valid_unicode,
)
from jumok.data.lines import read_lines
from jumok.errors import DataError
from jumok.text.languages import find_language
from jumok.types import Alignment, Pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.data.formats.pair_file import NumberedPair, ReadOptions
    from jumok.data.input_files import InputFile


def open_jsonl(file: InputFile, options: ReadOptions) -> PairFile:
    """Open JSON objects, one per line. Unless `--columns` names the keys, the first object decides."""
    lines = enumerate(read_lines(file, Counter()), start=1)
    number, line = next(((number, line) for number, line in lines if line.strip()), (0, ""))
    if not line:
        raise no_pairs_error(file)
    record = _record(file, number, line)
    if options.columns:
        keys = [key.strip() for key in options.columns.split(",")]
        if len(set(keys)) != 2 or len(keys) != 2:
            raise DataError(f"--columns takes two different keys. Received: {options.columns}.")
        if not all(key in record for key in keys):
            raise line_error(
                file, number, f"does not have the keys {options.columns}", f"Received: {', '.join(record)}."
            )
        code_of = {key: language.code if (language := find_language(key)) else "" for key in keys}
    else:
        code_of = _text_keys(file, number, record, options)
    [source_key, target_key] = code_of
    read = partial(_read, file, source_key=source_key, target_key=target_key)
    return PairFile(read, (code_of[source_key], code_of[target_key]))


def _text_keys(file: InputFile, number: int, record: dict[str, Any], options: ReadOptions) -> dict[str, str]:
    """Return the two keys that hold sentences: key → language code, "" for `source` and `target`."""
    if "source" in record and "target" in record:
        return {"source": "", "target": ""}
    languages = {key: language.code for key in record if (language := find_language(key))}
    if len(record.keys() - {"alignment"}) > 2 and "id" not in (options.source, options.target):
        languages.pop("id", None)  # an identifier, not Indonesian
    keys_without_text = [key for key in languages if not isinstance(record[key], str)]
    code_of = {key: code for key, code in languages.items() if key not in keys_without_text}
    requested = [key for key in code_of if code_of[key] in (options.source, options.target)]
    if len(code_of) > 2 and options.source and options.target and len(requested) == 2:
        code_of = {key: code_of[key] for key in requested}
    if len(code_of) == 2:
        return code_of
    if len(code_of) > 2:
        advice = f"Received: {', '.join(code_of)}. Choose two with --from and --to."
    elif keys_without_text:
        received = ", ".join(f"{key}: {shorten(json.dumps(record[key]))}" for key in keys_without_text)
        raise line_error(file, number, "has no text under its language codes", f"Received: {received}.")
    else:
        advice = f"Received: {', '.join(record) or 'none'}. Choose two keys with --columns."
    raise DataError(
        f"Line {number} of {file.name} should have the keys `source` and `target` or two language codes. "
        + advice
    )


def _read(
    file: InputFile, dropped: Counter[str], *, source_key: str, target_key: str
) -> Iterator[NumberedPair]:
    for number, line in enumerate(read_lines(file, dropped), start=1):
        if not line or line.isspace():
            yield number, Pair("", "")
            continue
        record = _record(file, number, line)
        for key in (source_key, target_key):
            if not isinstance(record.get(key), str):
                raise line_error(file, number, f"has no text under {key!r}", f"Received: {shorten(line)}")
        pair = make_pair(valid_unicode(record[source_key]), valid_unicode(record[target_key]), dropped)
        alignment = _alignment(file, number, record.get("alignment"))
        yield number, pair if alignment is None else Pair(pair.source, pair.target, alignment)


def _record(file: InputFile, number: int, line: str) -> dict[str, Any]:
    """Parse a line. Of `{"translation": {"en": …, "ko": …}}`, return the inner object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise line_error(file, number, f"is not JSON ({error})", f"Received: {shorten(line)}") from None
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise line_error(file, number, "is not a JSON object", f"Received: {shorten(line)}")
    return record


def _alignment(file: InputFile, number: int, value: object) -> Alignment | None:
    """Parse `"0-0 1-2"` or `[[0, 0], [1, 2]]`."""
    if value is None or value == "":
        return None
    if isinstance(value, list) and all(isinstance(link, list) and len(link) == 2 for link in value):
        value = " ".join(f"{i}-{j}" for i, j in value)
    try:
        return parse_alignment(value if isinstance(value, str) else repr(value))
    except DataError as error:
        raise line_error(
            file,
            number,
            "has an `alignment` that is not a word alignment",
            f"{shorten(str(error))} If it is not needed, leave it out.",
        ) from None
