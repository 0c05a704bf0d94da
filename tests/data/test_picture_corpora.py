"""Corpora of pictures are folders of classes or TSVs of captions, and a TSV cannot name files elsewhere."""

from __future__ import annotations

import gzip
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jumok.config.recipe import make_recipe
from jumok.data.batching import Batches, ClassBatches
from jumok.data.cleaning import Cleaner
from jumok.data.corpora import open_corpora, open_corpus
from jumok.data.corpus_report import check_corpora
from jumok.data.picture_corpora import format_regions, holds_pictures, median_side_and_grey
from jumok.data.store import CorpusPairs, write_store
from jumok.errors import DataError, ModelFolderError
from jumok.pictures.reading import write_picture
from jumok.text.class_names import ClassNames
from jumok.text.picture_tokenizer import PictureTokenizer
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_files import tokenizers_from_files, tokenizers_to_files
from jumok.types import BEGIN, UNKNOWN, Region
from support.picture_files import half_bright, write_captions, write_classes

if TYPE_CHECKING:
    from pathlib import Path


def test_the_sub_folder_is_the_class(tmp_path: Path) -> None:
    write_classes(tmp_path / "halves", 3)
    (tmp_path / "halves" / "left" / "notes.txt").write_text("not a picture")
    (tmp_path / "halves" / ".cache").mkdir()
    (tmp_path / "halves" / "left" / "folder.png").mkdir()
    (tmp_path / "halves" / "left" / "._a.jpg").write_bytes(b"written by macOS")
    [corpus] = open_corpora([str(tmp_path / "halves")])
    dropped: Counter[str] = Counter()
    pairs = [pair for _, pair in corpus.numbered_pairs(dropped)]
    assert corpus.pictures
    assert [pair.target for pair in pairs] == ["left"] * 3 + ["right"] * 3
    assert dropped == {"file that is not a picture": 2}  # notes.txt and ._a.jpg
    assert median_side_and_grey(pairs) == (8, True)  # as `write_classes` draws them


def test_captions_have_a_language_and_regions(tmp_path: Path) -> None:
    captions = write_captions(tmp_path, 1)
    corpus = open_corpus(captions)
    first = next(corpus.pairs())
    assert (corpus.source_language, corpus.target_language) == ("", "en")
    assert first.target == "the left half is bright"
    assert first.picture is not None
    assert first.picture.regions == (Region(1, 0.0, 0.0, 0.5, 1.0),)
    assert format_regions(first.picture.regions) == "1:0,0,0.5,1"
    for name, content in (
        ("A.TSV", captions.read_bytes()),
        ("b.tsv.gz", gzip.compress(captions.read_bytes())),
    ):
        (tmp_path / name).write_bytes(content)
        assert next(open_corpus(tmp_path / name).pairs()).picture == first.picture
    with pytest.raises(DataError, match=r"columns cannot be chosen\. Received: --columns 1,2\. Leave it out"):
        open_corpus(captions, columns="1,2")


def test_a_region_may_belong_to_the_noun_before_a_particle(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", half_bright("left", 1))
    for text in ("1/1:0,0,0.5,1", "1/2:0,0,0.5,1 1/2:0.5,0,1,1"):
        (tmp_path / "c.ko.tsv").write_text(f"a.png\t작은 별이 있다.\t{text}\n")
        [pair] = open_corpus(tmp_path / "c.ko.tsv").pairs()
        assert pair.picture is not None
        assert pair.picture.regions[0].letters == int(text[2])  # "1/2:…": two letters of word 1
        assert format_regions(pair.picture.regions) == text
    for text in ("1/0:0,0,0.5,1", "1/:0,0,0.5,1", "1/-1:0,0,0.5,1"):
        (tmp_path / "c.ko.tsv").write_text(f"a.png\t작은 별이 있다.\t{text}\n")
        with pytest.raises(DataError, match="regions that cannot be read"):
            list(open_corpus(tmp_path / "c.ko.tsv").pairs())


def test_blank_lines_may_precede_the_header(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", half_bright("left", 1))
    (tmp_path / "c.tsv").write_text("\n\npicture\tko\na.png\t왼쪽이 밝다.\n")
    corpus = open_corpus(tmp_path / "c.tsv")
    assert [pair.target for pair in corpus.pairs() if pair.source] == ["왼쪽이 밝다."]
    (tmp_path / "c.tsv").write_text("a.png\t왼쪽이 밝다.\npicture\tko\n")
    with pytest.raises(DataError, match="Line 2"):
        list(open_corpus(tmp_path / "c.tsv").pairs())


def test_the_name_of_the_file_gives_the_language(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", half_bright("left", 1))
    (tmp_path / "captions.ko.tsv").write_text("a.png\t왼쪽이 밝다.\n")
    assert open_corpus(tmp_path / "captions.ko.tsv").target_language == "ko"
    with pytest.raises(DataError, match="captions in Korean, but English was requested"):
        open_corpus(tmp_path / "captions.ko.tsv", target="en")


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/passwd", "x/../../secret.png", "link.png", "a\0b.png"]
)
def test_a_tsv_cannot_name_files_outside_its_folder(tmp_path: Path, name: str) -> None:
    write_picture(tmp_path / "secret.png", half_bright("left", 1))
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "captions.tsv").write_text(f"picture\ten\n{name}\ta caption\n")
    with pytest.raises(
        DataError, match=r"Line 2 of .*captions\.tsv (names a picture outside|has no valid path)"
    ):
        list(open_corpus(folder / "captions.tsv").pairs())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("absent.png\ta caption", "Line 1.*absent.png cannot be read: there is no such file"),
        ("a.png", "Line 1.*should have a picture, its caption"),
        ("a.png\ta caption\t1:0,0,2,1", "Line 1.*regions that cannot be read.*1:0,0,2,1"),
        ("a.png\ta caption\t1:0,0,nan,1", "Line 1.*regions that cannot be read"),
        ("a.png\ta caption\tone", "Line 1.*regions that cannot be read"),
    ],
)
def test_the_error_for_a_bad_line_names_the_line(tmp_path: Path, line: str, message: str) -> None:
    write_picture(tmp_path / "a.png", half_bright("left", 1))
    (tmp_path / "captions.tsv").write_text(f"{line}\n")
    with pytest.raises(DataError, match=message):
        list(open_corpus(tmp_path / "captions.tsv").pairs())


def test_a_folder_without_classes_and_a_mixture_are_refused(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", half_bright("left", 1))
    with pytest.raises(DataError, match="is a folder without pictures in sub-folders"):
        open_corpora([str(tmp_path)])
    (tmp_path / "text.en-ko.tsv").write_text("I go home.\t나는 집에 간다.\n")
    write_classes(tmp_path / "halves", 1)
    assert not holds_pictures(tmp_path / "text.en-ko.tsv")
    (tmp_path / "cp949.tsv").write_bytes("I go home.\t나는 집에 간다.\n".encode("cp949"))
    assert not holds_pictures(tmp_path / "cp949.tsv")
    with pytest.raises(DataError, match="cannot be mixed"):
        open_corpora([str(tmp_path / "halves"), str(tmp_path / "text.en-ko.tsv")])


def test_captions_in_two_languages_are_not_mixed_and_a_weight_is_read(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", half_bright("left", 1))
    for code in ("en", "ko"):
        (tmp_path / f"a.{code}.tsv").write_text("a.png\tcaption\n")
    english, korean = (str(tmp_path / f"a.{code}.tsv") for code in ("en", "ko"))
    with pytest.raises(DataError, match="seems to hold"):
        open_corpora([english, korean])
    [weighted] = open_corpora([f"{english}:2.5"])
    assert holds_pictures(f"{english}:2.5")
    assert not holds_pictures(f"{english}:heavy")
    assert (weighted.weight, weighted.pictures) == (2.5, True)


def test_copies_of_a_picture_are_found_by_content(tmp_path: Path) -> None:
    """A copy of a picture under another name is a duplicate. A copy in the validation set is a leak.

    Each class has the pictures 000.png and 001.png. Both 000.png are also in the validation set.
    """
    folder = write_classes(tmp_path / "train", 2)
    write_picture(folder / "left" / "copy.png", half_bright("left", 0))
    valid = write_classes(tmp_path / "valid", 1)
    cleaner = Cleaner(exclude=open_corpora([str(valid)]))
    kept = list(cleaner.clean(open_corpus(folder)))
    assert [pair.source.rpartition("/")[2] for pair in kept] == ["001.png", "001.png"]
    assert {fault.title: count for fault, count in cleaner.skipped.items()} == {"duplicate": 1, "leaked": 2}
    report = check_corpora([open_corpus(folder)], validation=[open_corpus(valid)])
    assert report.leaked == {str(valid): 2}


def test_a_batch_has_the_patches_of_its_pictures(tmp_path: Path) -> None:
    pairs = list(open_corpus(write_classes(tmp_path / "halves", 4)).pairs())
    pictures, classes = PictureTokenizer(size=8, patch_size=4, channels=1), ClassNames(["left", "right"])
    tokenizers = TokenizerPair(pictures, classes, shared=False)
    store = write_store(tmp_path / "data", [CorpusPairs("halves", pairs)], tokenizers, max_tokens=1)
    assert store.source_lengths.tolist() == [4] * 8  # eight pictures of (8 / 4)² patches
    batches = ClassBatches(store, batch_tokens=8, seed=1)
    used_indices = []
    for position in range(batches.per_epoch):
        batch, indices = batches.batch(position), batches.pairs_of(position)
        assert batch.source.shape[1:] == (4, 16)  # 4 patches of 4² pixels
        assert batch.target is not None
        for row, index in enumerate(indices.tolist()):
            assert np.array_equal(batch.source[row].numpy(), pictures.encode(pairs[index].source))
            assert batch.target[row].tolist() == [BEGIN, *classes.encode(pairs[index].target)]
            used_indices.append(index)
    assert sorted(used_indices) == list(range(8))
    batch_of_tokens = Batches(store, batch_tokens=100, seed=1).batch(0)
    assert batch_of_tokens.target is not None
    assert batch_of_tokens.target.shape[1] == 3  # <s> class </s>


def test_tokenizers_of_pictures_and_classes_are_stored_as_files() -> None:
    pair = TokenizerPair(
        PictureTokenizer(size=8, patch_size=2, channels=3), ClassNames(["cat", "개"]), shared=False
    )
    files = tokenizers_to_files(pair)
    assert tokenizers_from_files(files) == pair
    damaged_sizes = ((0, 1), (8, 16), (8, 0), (2048, 4), (-8, -2), ("1e999", 4), (10**12, 1), (9, 2))
    for damaged in (
        b'{"pictures": {"size": 8}}',
        b'{"pictures": 7}',
        b'{"pictures": ' + b"[" * 200_000,
        *(
            b'{"pictures": {"size": %s, "patch_size": %s, "channels": 3}}'
            % (str(a).encode(), str(b).encode())
            for a, b in damaged_sizes
        ),
    ):
        with pytest.raises(ModelFolderError, match="settings of a picture tokenizer"):
            tokenizers_from_files({**files, "source.model": damaged})
    for damaged in (b'{"classes": []}', b'{"classes": ' + b"[" * 200_000):
        with pytest.raises(ModelFolderError, match="list of classes"):
            tokenizers_from_files({**files, "target.model": damaged})


def test_class_names_are_one_token_each() -> None:
    classes = ClassNames(["cat", "big dog"])
    assert [classes.encode(name) for name in ("cat", "big dog", "cow")] == [[4], [5], [UNKNOWN]]
    assert classes.decode([5]) == "big dog"
    assert classes.vocab_size == 6


def test_the_recipe_counts_patches() -> None:
    recipe = make_recipe(None, **{"source.kind": "pictures", "source.size": 32, "source.patch_size": 8})
    assert recipe.source.num_patches == 16
    assert make_recipe().source.num_patches == 0
