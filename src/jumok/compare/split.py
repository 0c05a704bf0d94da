"""The pairs of a comparison: train, validation and test, cut once and kept in `out/data`.

On which side a pair falls depends on a hash of its source (`jumok.corpus.split`), so that all translations
and duplicates of a sentence stay together and nothing of the test set is ever trained on. The folder appears
whole or not at all; whoever repeats the command finds the same files.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from jumok.corpus import Cleaner, HoldOut, choose_hold_out, open_corpora, open_corpus
from jumok.errors import DataError, RunFolderError
from jumok.storage import checked_json, disk_errors, is_leftover, read_checked_json, remove_leftovers
from jumok.text import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from jumok.corpus import Corpus
    from jumok.values import Pair

__all__ = ["Split", "middle_sentence", "split_pairs"]

MOST_HELD_OUT = 1000
RECORD = "split.json"
# The words are those of a header and no language codes, so that any pair may follow.
HEADER = "source\ttarget\talignment\n"
_BREAKS = re.compile(r"[\t\n\r]+")


@dataclass(frozen=True, slots=True)
class Split:
    """Files of pairs. `train` is a name and a weight for each corpus that was given."""

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
        """The corpora as training takes them: `path`, or `path:weight`."""
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
    most: int = MOST_HELD_OUT,
) -> Split:
    """Clean the pairs as training does and cut them, or find them cut.

    Validation and test set hold at most a tenth of the pairs and at most `most` each. One that is given is
    copied instead, and its sentences are taken out of the others.
    """
    corpora = open_corpora(pairs, source=source, target=target)
    languages = corpora[0].source_language, corpora[0].target_language
    asked = {"source": languages[0] or None, "target": languages[1] or None}
    given = {
        name: open_corpora(files, **asked) for name, files in (("valid", valid), ("test", test)) if files
    }
    digest = hashlib.sha256(repr((languages, most, sorted(given))).encode())
    for corpus in chain(corpora, *given.values()):
        _digest(digest, corpus)
    folder = out / "data"
    split = Split(folder, _train_names(corpora), *languages, fingerprint=digest.hexdigest())
    if (folder / RECORD).exists():
        _refuse_other_pairs(split)
        return split
    _refuse_foreign(out)
    _write(split, corpora, given, most)
    return split


def middle_sentence(pairs: Sequence[Pair]) -> str:
    """A source of middle length, in words: what a look at one sentence is best taken at."""
    sources = [pair.source for pair in pairs]
    return sorted(sources, key=lambda text: len(split_words(text)))[len(sources) // 2]


def _train_names(corpora: Sequence[Corpus]) -> tuple[tuple[str, float], ...]:
    names = ["train.tsv", *(f"train-{number}.tsv" for number in range(2, len(corpora) + 1))]
    return tuple((name, corpus.weight) for name, corpus in zip(names, corpora, strict=True))


def _digest(digest: hashlib._Hash, corpus: Corpus) -> None:
    digest.update(f"{corpus.weight}\n".encode())
    for pair in corpus.pairs():
        digest.update(_line(pair).encode("utf-8", "surrogatepass"))


def _line(pair: Pair) -> str:
    alignment = "" if pair.alignment is None else str(pair.alignment)
    return f"{_BREAKS.sub(' ', pair.source)}\t{_BREAKS.sub(' ', pair.target)}\t{alignment}\n"


def _refuse_other_pairs(split: Split) -> None:
    stored = read_checked_json(split.folder / RECORD).get("fingerprint")
    if stored != split.fingerprint:
        raise RunFolderError(
            f"{split.folder.parent} holds a comparison on other pairs. Received pairs with fingerprint "
            f"{split.fingerprint[:12]}; it was started with {str(stored)[:12]}. Give the same files to "
            "continue it, or choose another folder with --out."
        )


def _refuse_foreign(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out} is a file. A comparison needs a folder: choose another name with --out.")
    names = sorted(path.name for path in out.iterdir()) if out.exists() else []
    others = [name for name in names if not is_leftover(name)]
    if others:
        raise RunFolderError(
            f"{out} is not empty and is not a comparison of jumok. Received: {', '.join(others[:5])}. "
            "Choose another folder with --out, or an empty one."
        )


def _write(split: Split, corpora: Sequence[Corpus], given: Mapping[str, Sequence[Corpus]], most: int) -> None:
    """All files under a temporary name, then one rename."""
    against = list(chain.from_iterable(given.values()))
    hold_outs = _choose(corpora, given, against, most)
    held_out: dict[str, list[Pair]] = {name: _nonempty(opened) for name, opened in given.items()}
    temporary = split.folder.with_name(f"{split.folder.name}.tmp-{os.getpid()}")
    with disk_errors(split.folder, "Nothing that was there before has been touched."):
        split.folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(split.folder.parent)
        try:
            temporary.mkdir()
            cleaner = Cleaner(against=against)
            for (name, _), corpus in zip(split.train, corpora, strict=True):
                kept = _divert(cleaner.clean(corpus), hold_outs, held_out)
                _write_pairs(temporary / name, kept)
            for name in ("valid", "test"):
                _write_pairs(temporary / f"{name}.tsv", held_out.get(name, []))
                _refuse_empty(name, held_out.get(name, []))
            (temporary / RECORD).write_bytes(checked_json({"fingerprint": split.fingerprint}))
            temporary.rename(split.folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _choose(
    corpora: Sequence[Corpus], given: Mapping[str, Sequence[Corpus]], against: Sequence[Corpus], most: int
) -> dict[str, HoldOut]:
    """Which pairs go where: the lowest hashes to the test set, those that follow to the validation set."""

    def clean() -> Iterator[Pair]:
        cleaner = Cleaner(against=against)
        return chain.from_iterable(cleaner.clean(corpus) for corpus in corpora)

    chosen: dict[str, HoldOut] = {}
    if "test" not in given:
        chosen["test"] = choose_hold_out(clean(), count=most)
    if "valid" not in given:
        tested = chosen.get("test", HoldOut(0))
        chosen["valid"] = choose_hold_out((pair for pair in clean() if pair not in tested), count=most)
    return chosen


def _divert(
    pairs: Iterable[Pair], hold_outs: Mapping[str, HoldOut], held_out: dict[str, list[Pair]]
) -> Iterator[Pair]:
    """Stream what is to be trained on; each other pair goes to the first set that holds it."""
    for pair in pairs:
        name = next((name for name, hold_out in hold_outs.items() if pair in hold_out), None)
        if name is None:
            yield pair
        else:
            held_out.setdefault(name, []).append(pair)


def _nonempty(corpora: Iterable[Corpus]) -> list[Pair]:
    return [pair for corpus in corpora for pair in corpus.pairs() if pair.source and pair.target]


def _write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(HEADER)
        file.writelines(_line(pair) for pair in pairs)


def _refuse_empty(name: str, pairs: Sequence[Pair]) -> None:
    if not pairs:
        purpose = {"valid": "validate", "test": "test"}[name]
        raise DataError(
            f"There is no sentence to {purpose} on. At most a tenth of the pairs is held out, and here that "
            f"is none. Give a set with --{name}, or a few dozen different pairs."
        )
