"""Training, validation and test set of a comparison: no sentence is in two sets; each is written once."""

from __future__ import annotations

import shutil

import pytest

from jumok.compare.split import median_length_source, split_pairs
from jumok.data.corpora import open_corpus
from jumok.data.hold_out import sentence_key
from jumok.errors import DataError, RunFolderError
from jumok.types import Pair
from support.digit_lines import digit_lines, write_tsv
from support.picture_files import write_captions


def with_copies(lines):
    """Return the lines, and a copy of each line with a capital, a full stop and another translation."""
    return [
        *lines,
        *((f"{source.capitalize()}.", f"{target} bitte", links) for source, target, links in lines),
    ]


def sentence_keys(path):
    return {sentence_key(pair.source) for pair in open_corpus(path).pairs()}


def set_files(split):
    return [split.folder / name for name in ("train.tsv", "valid.tsv", "test.tsv")]


def test_copies_of_a_sentence_stay_in_one_set(tmp_path):
    lines = with_copies(digit_lines(100))
    split = split_pairs([str(write_tsv(tmp_path / "p.en-de.tsv", lines))], out=tmp_path / "out")
    train, valid, test = map(sentence_keys, set_files(split))
    assert train | valid | test == {sentence_key(source) for source, _, _ in lines}
    assert not train & valid
    assert not train & test
    assert not valid & test
    counts = [sum(1 for _ in open_corpus(path).pairs()) for path in set_files(split)]
    assert sum(counts) == 200
    assert all(10 <= count <= 20 for count in counts[1:]), counts  # at most a tenth of the 200 pairs
    assert (split.source_language, split.target_language) == ("en", "de")


def test_alignments_are_copied(tmp_path):
    lines = digit_lines(60)
    split = split_pairs([str(write_tsv(tmp_path / "p.tsv", lines))], out=tmp_path / "out")
    gold = {source: links for source, _, links in lines}
    pairs = split.test_pairs()
    assert pairs
    assert [str(pair.alignment) for pair in pairs] == [gold[pair.source] for pair in pairs]


def test_sets_do_not_depend_on_the_order_of_the_pairs_and_are_not_written_again(tmp_path):
    lines = digit_lines(80)
    in_order = [str(write_tsv(tmp_path / "p.tsv", lines))]
    in_reverse = [str(write_tsv(tmp_path / "q.tsv", lines[::-1]))]
    split = split_pairs(in_order, out=tmp_path / "one")
    other = split_pairs(in_reverse, out=tmp_path / "two")
    assert list(map(sentence_keys, set_files(split))) == list(map(sentence_keys, set_files(other)))
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in set_files(split)]
    assert split_pairs(in_order, out=tmp_path / "one") == split
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in set_files(split)] == before
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["data"]  # no temporary folder is left


def test_a_test_set_that_is_given_is_used_and_not_trained_on(tmp_path):
    lines = digit_lines(60)
    # Five of the sentences, and one that is not among the pairs.
    test = write_tsv(tmp_path / "t.tsv", [*lines[:5], ("twenty", "zwanzig", "0-0")])
    pairs = write_tsv(tmp_path / "p.tsv", lines)
    split = split_pairs([str(pairs)], out=tmp_path / "out", test=[str(test)])
    assert [pair.source for pair in split.test_pairs()] == [*(line[0] for line in lines[:5]), "twenty"]
    train, valid, _ = map(sentence_keys, set_files(split))
    assert len(train) + len(valid) == 55
    assert valid
    assert not (train | valid) & sentence_keys(split.test)


def test_no_held_out_set_is_larger_than_max_held_out(tmp_path):
    pairs = write_tsv(tmp_path / "p.tsv", digit_lines(200))
    split = split_pairs([str(pairs)], out=tmp_path / "out", max_held_out=7)
    assert [len(sentence_keys(path)) for path in set_files(split)] == [186, 7, 7]


def test_several_corpora_have_a_file_and_a_weight_each(tmp_path):
    lines = digit_lines(60)
    first, second = write_tsv(tmp_path / "a.tsv", lines[:40]), write_tsv(tmp_path / "b.tsv", lines[40:])
    split = split_pairs([str(first), f"{second}:2.5"], out=tmp_path / "out")
    folder = tmp_path / "out" / "data"
    assert split.training_files() == [f"{folder / 'train.tsv'}", f"{folder / 'train-2.tsv'}:2.5"]
    assert sentence_keys(folder / "train-2.tsv") <= {sentence_key(source) for source, _, _ in lines[40:]}


def test_a_pair_that_looks_like_a_header_is_not_lost(tmp_path):
    lines = [("en", "de"), ("English", "German", "0-0"), *digit_lines(40)]
    split = split_pairs([str(write_tsv(tmp_path / "p.tsv", lines))], out=tmp_path / "out")
    assert any("english" in sentence_keys(path) for path in set_files(split))


def test_other_pairs_and_foreign_folders_are_refused(tmp_path):
    out = tmp_path / "out"
    split_pairs([str(write_tsv(tmp_path / "p.tsv", digit_lines(40)))], out=out)
    with pytest.raises(RunFolderError, match="holds a comparison on other pairs"):
        split_pairs([str(write_tsv(tmp_path / "q.tsv", digit_lines(41)))], out=out)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"not a comparison of jumok\. Received: letter\.txt"):
        split_pairs([str(tmp_path / "p.tsv")], out=foreign)
    with pytest.raises(RunFolderError, match="is a file"):
        split_pairs([str(tmp_path / "p.tsv")], out=tmp_path / "q.tsv")


def test_the_same_files_in_other_sets_are_other_pairs(tmp_path):
    lines = digit_lines(160)
    a, b, c, d = (
        str(write_tsv(tmp_path / f"{name}.en-de.tsv", lines[start::4])) for start, name in enumerate("abcd")
    )
    split_pairs([a, b], out=tmp_path / "out", valid=[c], test=[d])
    for pairs, valid, test in (([a], [b, c], [d]), ([a], [b], [c, d])):
        with pytest.raises(RunFolderError):
            split_pairs(pairs, out=tmp_path / "out", valid=valid, test=test)


def test_too_few_pairs_are_refused_and_leave_nothing_behind(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(DataError, match="Give a set with --valid"):
        split_pairs([str(write_tsv(tmp_path / "p.tsv", digit_lines(6)))], out=out)
    assert list(out.iterdir()) == []


def test_a_given_set_without_a_complete_pair_is_refused(tmp_path):
    pairs = write_tsv(tmp_path / "p.tsv", digit_lines(40))
    valid = write_tsv(tmp_path / "v.tsv", [("one", "", ""), ("two", "", "")])
    with pytest.raises(DataError, match=r"no pair of --valid has both sides\. Give another file"):
        split_pairs([str(pairs)], out=tmp_path / "out", valid=[str(valid)])


def test_a_picture_with_several_captions_is_copied_once(tmp_path, monkeypatch):
    captions = write_captions(tmp_path / "pictures", 10)
    header, *lines = captions.read_text().splitlines(keepends=True)
    captions.write_text("".join([header, *lines, *(line.replace("bright", "light") for line in lines)]))
    copied = []
    copyfile = shutil.copyfile
    monkeypatch.setattr(shutil, "copyfile", lambda source, copy: copied.append(copyfile(source, copy)))
    split = split_pairs([str(captions)], out=tmp_path / "out")
    assert sum(len(list(open_corpus(path).pairs())) for path in set_files(split)) == 80  # two captions each
    assert len(copied) == len(set(copied)) == 40


def test_the_default_sentence_of_a_comparison_has_the_median_length():
    assert median_length_source([Pair("a b c d e", ""), Pair("a", ""), Pair("a b c", "")]) == "a b c"
    assert median_length_source([Pair("a", "")]) == "a"
