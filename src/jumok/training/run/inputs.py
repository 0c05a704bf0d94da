"""The input files of a run: pairs for a model that translates, plain text for other models, or pictures.

Most model families have one task. The decoder-only family has two: with pairs it becomes a translator, with
plain text a language model. The encoder-only family also has two: with plain text it predicts masked tokens,
with pictures their classes. Pictures with captions are pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.data.corpora import (
    Corpus,
    corpus_of_pairs,
    is_pair,
    open_corpora,
    open_further_corpora,
    open_pairs_or_text,
    open_texts,
)
from jumok.data.picture_corpora import holds_pictures
from jumok.data.readers import split_weight
from jumok.errors import DataError, ModelFolderError, RecipeError, UnsupportedError
from jumok.models.validate import check_reads_pictures
from jumok.storage.folders import json_with_checksum, read_json_with_checksum, write_file
from jumok.types import Pair

if TYPE_CHECKING:
    from jumok.config.resolve import Overrides

CorpusInput = str | Path | Corpus
"""A file of pairs or of plain text, or an open corpus. Two parallel text files are two items in a row."""
InputItems = CorpusInput | Iterable[CorpusInput] | Iterable[Pair | Sequence[str]]
"""One file, several files, or pairs in memory."""


@dataclass(frozen=True)
class Inputs:
    """The files of a run. `pairs` are the training files, even if they have plain text or pictures.

    `columns` and `encoding` are those of `data.corpora.open_corpus`.
    """

    pairs: Sequence[CorpusInput]
    valid: Sequence[CorpusInput] = ()
    columns: str = ""
    encoding: str = ""


def describe_sources(inputs: Inputs) -> dict[str, Any] | None:
    """Return the files of a run with their sizes and times; None if some input is not a file."""
    files = []
    for source in (*inputs.pairs, *inputs.valid):
        path = None if isinstance(source, Corpus) else Path(split_weight(str(source))[0])
        if path is None or not path.is_file():
            return None
        status = path.stat()
        files.append([str(source), str(path.resolve()), status.st_size, status.st_mtime_ns])
    return {
        "files": files,
        "pairs": len(inputs.pairs),
        "columns": inputs.columns,
        "encoding": inputs.encoding,
    }


def write_sources(path: Path, sources: Mapping[str, Any]) -> None:
    """Store the description of the files, so that a resumed run does not read unchanged files again."""
    write_file(path, json_with_checksum(sources))


def has_same_sources(path: Path, inputs: Inputs) -> bool:
    """Whether `write_sources` stored the same files, sizes, times and reading options."""
    try:
        return path.exists() and read_json_with_checksum(path) == describe_sources(inputs)
    except ModelFolderError:  # damaged: the files are read again
        return False


def list_inputs(items: InputItems) -> list[CorpusInput]:
    """Return files and corpora as a list; pairs in memory, such as tuples of two strings, are one corpus."""
    if isinstance(items, str | Path | Corpus):
        return [items]
    item_list = list(items)
    if item_list and all(map(is_pair, item_list)):
        return [corpus_of_pairs(item_list)]  # type: ignore[arg-type]
    return item_list  # type: ignore[return-value]


def open_inputs(inputs: Inputs, overrides: Overrides) -> tuple[list[Corpus], list[Corpus]]:
    """Return the training corpora and the validation corpora; raise if the model cannot learn from them."""
    recipe = overrides.with_defaults()
    model, languages = recipe.model, recipe.languages
    task_is_open = model.family == "decoder-only" and "model.task" not in overrides
    # Whether the model learns from plain text. None: the content of the files decides.
    plain = None if task_is_open else model.task != "translate"
    if any(map(is_picture_corpus, (*inputs.pairs, *inputs.valid))):
        return _open_pictures(inputs, overrides)
    corpora = _open(inputs, inputs.pairs, languages.source, languages.target, plain=plain)
    first = corpora[0]
    validation: list[Corpus] = []
    if inputs.valid:
        validation = _open_validation(inputs, first)
    all_corpora = (*corpora, *validation)
    if any(corpus.plain != (first.plain if plain is None else plain) for corpus in all_corpora):
        expected = "plain text" if (first.plain if plain is None else plain) else "sentence pairs"
        names = ", ".join(corpus.name for corpus in all_corpora)
        raise DataError(f"This {model.family} model learns from {expected}. Received: {names}.")
    if first.plain:
        _check_plain_text_settings(overrides)
    else:
        _check_stop_on(overrides, ("chrf", "bleu", "loss"))
    return corpora, validation


def _check_stop_on(overrides: Overrides, scores: Sequence[str]) -> None:
    """Raise if training is to stop on a score that this model does not get."""
    stop_on = overrides.get("training.stop_on")
    if stop_on not in (None, *scores):
        raise RecipeError(
            f"The validation of this model gives {', '.join(scores)}. Received: training.stop_on = "
            f"{stop_on!r}. Leave it out, or set it to one of these."
        )


def is_picture_corpus(file: CorpusInput) -> bool:
    return file.pictures if isinstance(file, Corpus) else holds_pictures(file)


def _open_pictures(inputs: Inputs, overrides: Overrides) -> tuple[list[Corpus], list[Corpus]]:
    """Return corpora of pictures; raise if the model cannot learn from them or a setting is for text."""
    check_reads_pictures(overrides.family, overrides.get("model.task"), pictures=True)
    writes_captions = overrides.family == "transformer"
    _check_stop_on(overrides, ("chrf", "bleu", "loss") if writes_captions else ("accuracy", "loss"))
    corpora = _open(inputs, inputs.pairs, "", overrides.get("languages.target", ""), plain=False)
    target = corpora[0].target_language
    validation = _open(inputs, inputs.valid, "", target, plain=False) if inputs.valid else []
    texts = [corpus.name for corpus in (*corpora, *validation) if not corpus.pictures]
    if texts:
        raise DataError(f"Pictures and sentences cannot be mixed in one run. Text: {', '.join(texts)}.")
    text_settings = ("text.shared", "text.sampling", "languages.source", "model.encoder_from")
    for name in (name for name in text_settings if overrides.get(name)):
        raise UnsupportedError(
            f"{name} is a setting for a source of text, but the source is pictures. Leave it out."
        )
    return corpora, validation


def _open(
    inputs: Inputs, files: Sequence[CorpusInput], source: str, target: str, *, plain: bool | None
) -> list[Corpus]:
    """Open files as plain text (`plain` is True) or as pairs (False).

    If `plain` is None, the content of the files decides.
    """
    corpora = [_with_languages(file, source, target) for file in files if isinstance(file, Corpus)]
    paths = [str(file) for file in files if not isinstance(file, Corpus)]
    if paths and plain:
        corpora.extend(open_texts(paths, language=target or source or None, encoding=inputs.encoding))
    elif paths:
        open_files = open_corpora if plain is False else open_pairs_or_text
        languages = {"source": source or None, "target": target or None}
        corpora.extend(open_files(paths, **languages, columns=inputs.columns, encoding=inputs.encoding))
    return corpora


def _open_validation(inputs: Inputs, first: Corpus) -> list[Corpus]:
    """Open the validation set with the languages and the kind (pairs or plain text) of the first corpus."""
    source, target = first.source_language, first.target_language
    paths = [str(file) for file in inputs.valid if not isinstance(file, Corpus)]
    if first.plain or not paths:
        return _open(inputs, inputs.valid, source, target, plain=first.plain)
    corpora = [_with_languages(file, source, target) for file in inputs.valid if isinstance(file, Corpus)]
    languages = {"source": source or None, "target": target or None}
    opened_corpora = open_further_corpora(
        paths, **languages, columns=inputs.columns, encoding=inputs.encoding
    )
    return [*corpora, *opened_corpora]


def _with_languages(corpus: Corpus, source: str, target: str) -> Corpus:
    """Return the corpus. Languages that the corpus does not name are set to `source` and `target`."""
    return replace(
        corpus,
        source_language=corpus.source_language or ("" if corpus.plain else source),
        target_language=corpus.target_language or target,
    )


def _check_plain_text_settings(overrides: Overrides) -> None:
    """Raise if a setting needs pairs."""
    stop_on = overrides.get("training.stop_on")
    if stop_on not in (None, "loss"):
        raise RecipeError(
            "A model of plain text is validated by its loss. "
            f"Received: training.stop_on = {stop_on!r}. "
            'Leave it out, or set it to "loss".'
        )
    if not overrides.get("text.shared", True):
        raise RecipeError(
            "Plain text has one language and one vocabulary. Received: text.shared = false. Leave it out."
        )
