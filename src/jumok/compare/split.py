"""The pairs of a comparison: training, validation and test set, split once and stored in `out/data`.

A hash of the source decides which set a pair belongs to (`jumok.data.hold_out`), so all translations and
duplicates of a sentence stay together and no system trains on the test set. A validation or test set that the
user names is copied instead. The folder is written atomically. If the command is repeated, it uses the files
that are there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from jumok.data.cleaning import Cleaner
from jumok.data.corpora import open_corpora, open_corpus, open_further_corpora
from jumok.data.hold_out import HoldOut, choose_hold_out
from jumok.data.picture_corpora import format_regions
from jumok.errors import DataError, RunFolderError
from jumok.storage.folders import (
    disk_errors,
    is_leftover,
    json_with_checksum,
    read_json_with_checksum,
    remove_leftovers,
)
from jumok.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from jumok.data.corpora import Corpus
    from jumok.types import Pair

MAX_HELD_OUT = 1000
RECORD = "split.json"
# Every file has a header line, since a reader might take the first pair for a header if there were none.
HEADER = "source\ttarget\talignment\n"
PICTURE_HEADER = "picture\tcaption\tregions\n"
_BREAKS = re.compile(r"[\t\n\r]+")


@dataclass(frozen=True, slots=True)
class Split:
    """The files of a split. `train` has the file name and the weight of each training corpus."""

    folder: Path
    train: tuple[tuple[str, float], ...]
    source_language: str
    target_language: str
    fingerprint: str

    @property
    def valid(self) -> Path:
        return self.folder / "valid.tsv"

    @property
    def test(self) -> Path:
        return self.folder / "test.tsv"

    def training_files(self) -> list[str]:
        """Return the training corpora as arguments of `training_events`: `path` or `path:weight`."""
        return [
            f"{self.folder / name}" if weight == 1 else f"{self.folder / name}:{weight}"
            for name, weight in self.train
        ]

    def test_pairs(self) -> list[Pair]:
        return list(open_corpus(self.test).pairs())


def split_pairs(
    pairs: Sequence[str],
    *,
    out: Path,
    valid: Sequence[str] = (),
    test: Sequence[str] = (),
    source: str | None = None,
    target: str | None = None,
    max_held_out: int = MAX_HELD_OUT,
    **reading: str,
) -> Split:
    """Clean the pairs as training does, split them and write the sets to `out/data`.

    If an earlier call has written them there from the same pairs, its files are used. If they are from other
    pairs, a RunFolderError is raised.

    The validation and the test set have at most a tenth of the pairs and at most `max_held_out` each. If
    `valid` or `test` names a set, that set is copied instead, and pairs with its sources are left out of
    training. `reading` has the options `columns` and `encoding` of `open_corpora`.
    """
    corpora = open_corpora(pairs, source=source, target=target, **reading)
    languages = corpora[0].source_language, corpora[0].target_language
    options: dict[str, Any] = {"source": languages[0] or None, "target": languages[1] or None, **reading}
    given_sets = {
        name: open_further_corpora(files, **options)
        for name, files in (("valid", valid), ("test", test))
        if files
    }
    hashed_options: list[Any] = [languages, max_held_out, sorted(given_sets)]
    sizes = [len(corpora), *map(len, given_sets.values())]
    if given_sets and max(sizes) > 1:  # the numbers of files say where a set ends; older records lack them
        hashed_options.append(sizes)
    digest = hashlib.sha256(repr(tuple(hashed_options)).encode())
    for corpus in chain(corpora, *given_sets.values()):
        _update_digest(digest, corpus)
    folder = out / "data"
    split = Split(folder, _names_and_weights(corpora), *languages, fingerprint=digest.hexdigest())
    if (folder / RECORD).exists():
        _refuse_other_pairs(split)
        return split
    _refuse_nonempty(out)
    _write(split, corpora, given_sets, max_held_out)
    return split


def median_length_source(pairs: Sequence[Pair]) -> str:
    """Return a source of median length in words. There must be at least one pair.

    The report shows the attention of this source if the user names no sentence.
    """
    sources = [pair.source for pair in pairs]
    return sorted(sources, key=lambda text: len(split_words(text)))[len(sources) // 2]


def _names_and_weights(corpora: Sequence[Corpus]) -> tuple[tuple[str, float], ...]:
    names = ["train.tsv", *(f"train-{number}.tsv" for number in range(2, len(corpora) + 1))]
    return tuple((name, corpus.weight) for name, corpus in zip(names, corpora, strict=True))


def _update_digest(digest: hashlib._Hash, corpus: Corpus) -> None:
    digest.update(f"{corpus.weight}\n".encode())
    for pair in corpus.pairs():
        digest.update(_tsv_line(pair).encode("utf-8", "surrogatepass"))


def _tsv_line(pair: Pair) -> str:
    if pair.picture is not None:
        regions = format_regions(pair.picture.regions)
        return f"{_picture_name(pair)}\t{_BREAKS.sub(' ', pair.target)}\t{regions}\n"
    alignment = "" if pair.alignment is None else str(pair.alignment)
    return f"{_BREAKS.sub(' ', pair.source)}\t{_BREAKS.sub(' ', pair.target)}\t{alignment}\n"


def _refuse_other_pairs(split: Split) -> None:
    stored_fingerprint = read_json_with_checksum(split.folder / RECORD).get("fingerprint")
    if stored_fingerprint != split.fingerprint:
        raise RunFolderError(
            f"{split.folder.parent} holds a comparison on other pairs, or with other languages or weights. "
            f"Received pairs with fingerprint {split.fingerprint[:12]}; the comparison was started with "
            f"{str(stored_fingerprint)[:12]}. Give the same files and languages to continue it, or choose "
            "another folder with --out."
        )


def _refuse_nonempty(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out} is a file. A comparison needs a folder: choose another name with --out.")
    names = sorted(path.name for path in out.iterdir()) if out.exists() else []
    others = [name for name in names if not is_leftover(name)]
    if others:
        raise RunFolderError(
            f"{out} is not empty and is not a comparison of jumok. Received: {', '.join(others[:5])}. "
            "Choose another folder with --out, or an empty one."
        )


def _write(
    split: Split, corpora: Sequence[Corpus], given_sets: Mapping[str, Sequence[Corpus]], max_held_out: int
) -> None:
    """Write all files into a temporary folder, then rename it."""
    excluded = list(chain.from_iterable(given_sets.values()))
    hold_outs = _choose_hold_outs(corpora, given_sets, excluded, max_held_out)
    pictures = corpora[0].pictures
    held_out: dict[str, list[Pair]] = {name: _complete_pairs(opened) for name, opened in given_sets.items()}
    temporary = split.folder.with_name(f"{split.folder.name}.tmp-{os.getpid()}")
    with disk_errors(split.folder, "Nothing that was there before has been touched."):
        split.folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(split.folder.parent)
        try:
            temporary.mkdir()
            cleaner = Cleaner(exclude=excluded)
            for (name, _), corpus in zip(split.train, corpora, strict=True):
                training_pairs = _without_held_out(cleaner.clean(corpus), hold_outs, held_out)
                _write_pairs(temporary / name, training_pairs, pictures=pictures)
            for name in ("valid", "test"):
                _write_pairs(temporary / f"{name}.tsv", held_out.get(name, []), pictures=pictures)
                _refuse_empty(name, held_out.get(name, []), is_given=name in given_sets)
            (temporary / RECORD).write_bytes(json_with_checksum({"fingerprint": split.fingerprint}))
            temporary.rename(split.folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _choose_hold_outs(
    corpora: Sequence[Corpus],
    given_sets: Mapping[str, Sequence[Corpus]],
    excluded: Sequence[Corpus],
    max_held_out: int,
) -> dict[str, HoldOut]:
    """Assign the lowest hashes to the test set and the next lowest to the validation set.

    A set that the user has named (`given_sets`) gets none.
    """

    def clean() -> Iterator[Pair]:
        cleaner = Cleaner(exclude=excluded)
        return chain.from_iterable(cleaner.clean(corpus) for corpus in corpora)

    hold_outs: dict[str, HoldOut] = {}
    if "test" not in given_sets:
        hold_outs["test"] = choose_hold_out(clean(), count=max_held_out)
    if "valid" not in given_sets:
        test_set = hold_outs.get("test", HoldOut(0))
        hold_outs["valid"] = choose_hold_out(
            (pair for pair in clean() if pair not in test_set), count=max_held_out
        )
    return hold_outs


def _without_held_out(
    pairs: Iterable[Pair], hold_outs: Mapping[str, HoldOut], held_out: dict[str, list[Pair]]
) -> Iterator[Pair]:
    """Yield the training pairs; append each of the others to its set in `held_out`."""
    for pair in pairs:
        name = next((name for name, hold_out in hold_outs.items() if pair in hold_out), None)
        if name is None:
            yield pair
        else:
            held_out.setdefault(name, []).append(pair)


def _complete_pairs(corpora: Iterable[Corpus]) -> list[Pair]:
    return [pair for corpus in corpora for pair in corpus.pairs() if pair.source and pair.target]


def _write_pairs(path: Path, pairs: Iterable[Pair], *, pictures: bool) -> None:
    """Write pairs as TSV. A TSV may name only pictures in its own folder, so pictures are copied there."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(PICTURE_HEADER if pictures else HEADER)
        for pair in pairs:
            if pair.picture is not None:
                copy = path.parent / _picture_name(pair)
                copy.parent.mkdir(exist_ok=True)
                if not copy.exists():
                    shutil.copyfile(pair.source, copy)
            file.write(_tsv_line(pair))


def _picture_name(pair: Pair) -> str:
    """Return a name that depends on the content, so that a picture with several captions is copied once."""
    return f"pictures/{pair.source_identity}{PurePath(pair.source).suffix.lower()}"


def _refuse_empty(name: str, pairs: Sequence[Pair], *, is_given: bool) -> None:
    purpose = {"valid": "validate", "test": "test"}[name]
    if not pairs and is_given:
        raise DataError(
            f"There is no sentence to {purpose} on: no pair of --{name} has both sides. Give another file, "
            f"or leave --{name} out: then pairs are held out."
        )
    if not pairs:
        raise DataError(
            f"There is no sentence to {purpose} on. At most a tenth of the pairs is held out, which here is "
            f"none. Give a set with --{name}, or more pairs: a few dozen different ones."
        )
