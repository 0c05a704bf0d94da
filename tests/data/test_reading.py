"""TSV, CSV, JSON lines and parallel texts are read without losing a line, and errors name their line."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import time
import tracemalloc
import zipfile
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jumok.data import input_files, lines
from jumok.data.alignments import parse_alignment
from jumok.data.corpora import Corpus, corpus_of_pairs, open_corpora, open_corpus
from jumok.data.encodings import find_utf16, name_binary_file
from jumok.data.formats.columns import HeaderWarning
from jumok.data.formats.pair_file import PairFile, ReadOptions
from jumok.data.readers import PAIR_FORMATS, has_pair_suffix
from jumok.data.unequal_lines import first_suspicious_line
from jumok.errors import DataError
from jumok.types import Alignment, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PAIRS = [
    Pair("Hello.", "안녕하세요."),
    Pair("I go.", "나는 가요.", Alignment(frozenset({(0, 0), (1, 1)}), frozenset({(2, 1)}))),
]

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}

# All examples of a test share one `tmp_path`. Hypothesis would report that as a mistake.
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


def pairs_of(path: Path, content: str | bytes, **options: str) -> list[Pair]:
    return list(corpus_at(path, content, **options).pairs())


def corpus_at(path: Path, content: str | bytes, **options: str) -> Corpus:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_corpus(path, **options)


# --- formats ---


@pytest.mark.parametrize("compression", COMPRESS)
def test_tsv_csv_and_jsonl_are_read_in_each_compression(tmp_path: Path, compression: str) -> None:
    tsv = "".join(
        f"{pair.source}\t{pair.target}" + (f"\t{pair.alignment}" if pair.alignment else "") + "\n"
        for pair in PAIRS
    )
    csv = (
        f'"{PAIRS[0].source}",{PAIRS[0].target}\n{PAIRS[1].source},"{PAIRS[1].target}",{PAIRS[1].alignment}\n'
    )
    jsonl = "".join(
        json.dumps({"source": pair.source, "target": pair.target, "alignment": str(pair.alignment or "")})
        + "\n"
        for pair in PAIRS
    )
    for suffix, text in {"tsv": tsv, "csv": csv, "jsonl": jsonl}.items():
        assert pairs_of(tmp_path / f"p.{suffix}{compression}", COMPRESS[compression](text.encode())) == PAIRS


def test_suffixes_may_be_in_capitals(tmp_path: Path) -> None:
    assert pairs_of(tmp_path / "P.TSV.GZ", gzip.compress(b"a\tb\n")) == [Pair("a", "b")]


@pytest.mark.parametrize("compression", COMPRESS)
def test_two_texts_are_read_as_pairs_in_each_compression(tmp_path: Path, compression: str) -> None:
    corpus = open_two_texts(tmp_path, "Hello.\nI go.\n", "Hallo.\nIch gehe.\n", compression)
    assert list(corpus.pairs()) == [Pair("Hello.", "Hallo."), Pair("I go.", "Ich gehe.")]
    assert list(corpus.pairs()) == list(corpus.pairs())  # a corpus can be read more than once
    assert (corpus.source_language, corpus.target_language) == ("en", "de")


def open_two_texts(folder: Path, source: str | bytes, target: str | bytes, compression: str = "") -> Corpus:
    paths = [folder / f"train.en{compression}", folder / f"train.de{compression}"]
    for path, text in zip(paths, (source, target), strict=True):
        path.write_bytes(COMPRESS[compression](text.encode() if isinstance(text, str) else text))
    return open_corpus(paths)


def test_concatenated_compressed_streams_are_one_text(tmp_path: Path) -> None:
    for suffix, compress in COMPRESS.items():
        content = compress(b"a\tb\n") + compress(b"c\td\n")
        assert len(pairs_of(tmp_path / f"p.tsv{suffix}", content)) == 2


def test_zeros_after_a_compressed_stream_are_ignored(tmp_path: Path) -> None:
    padding = bytes(2048)  # more than a chunk of compressed bytes
    for suffix in (".gz", ".bz2", ".xz"):
        content = COMPRESS[suffix](b"a\tb\n") + padding + COMPRESS[suffix](b"c\td\n") + padding
        assert len(pairs_of(tmp_path / f"p.tsv{suffix}", content)) == 2


def test_csv_cells_may_hold_commas_quotes_and_newlines(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path / "p.csv", '"Yes, ""you"".",b\n"two\nlines",d\nlast,e\n')
    assert list(corpus.numbered_pairs()) == [
        (1, Pair('Yes, "you".', "b")),
        (2, Pair("two\nlines", "d")),
        (4, Pair("last", "e")),
    ]


def test_a_quotation_mark_inside_a_csv_cell_needs_no_partner(tmp_path: Path) -> None:
    content = 'a,b\n"two\nlines",a 5" pipe\nlast,a 6" pipe\n'
    assert pairs_of(tmp_path / "p.csv", content) == [
        Pair("a", "b"),
        Pair("two\nlines", 'a 5" pipe'),
        Pair("last", 'a 6" pipe'),
    ]


def test_common_forms_of_json_are_read(tmp_path: Path) -> None:
    by_code = corpus_at(tmp_path / "a.jsonl", '{"id": 7, "en": "a", "ko": "b", "alignment": [[0, 0]]}\n')
    assert list(by_code.pairs()) == [Pair("a", "b", Alignment(frozenset({(0, 0)})))]
    assert (by_code.source_language, by_code.target_language) == ("en", "ko")
    nested = corpus_at(tmp_path / "b.jsonl", '{"translation": {"de": "a", "en": "b"}}\n')
    assert (nested.source_language, nested.target_language) == ("de", "en")
    several = '{"en": "a", "ko": "b", "fr": "c"}\n'
    assert pairs_of(tmp_path / "c.jsonl", several, source="fr", target="en") == [Pair("c", "a")]
    with pytest.raises(DataError, match=r"en, ko, fr.*--from"):
        pairs_of(tmp_path / "d.jsonl", several)


def test_a_lone_surrogate_in_json_becomes_a_replacement_character(tmp_path: Path) -> None:
    assert pairs_of(tmp_path / "a.jsonl", '{"source": "x\\ud800é", "target": "b"}\n')[0].source == "x\ufffdé"


def test_standard_input_is_read_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (b"a\tb\n", b'{"source": "a", "target": "b"}\n'):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        corpus = open_corpus("-")
        assert corpus.name == "standard input"
        assert list(corpus.pairs()) == list(corpus.pairs()) == [Pair("a", "b")]


def test_the_copy_of_standard_input_is_removed() -> None:
    copy = input_files.copy_stream(io.BytesIO(b"a\tb\n"))
    path = copy.path
    assert path.exists()
    del copy
    assert not path.exists()


def test_pairs_in_memory_become_a_corpus_with_languages() -> None:
    corpus = corpus_of_pairs(PAIRS, source="English", target="kor")
    assert list(corpus.numbered_pairs()) == [(1, PAIRS[0]), (2, PAIRS[1])]
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")


def test_alignments_are_parsed() -> None:
    assert str(parse_alignment("1-2 0-0 3?1")) == "0-0 1-2 3?1"
    for wrong in ("0", "a-b", "0--1", "1-2-3", "-1-2", "²-1"):
        with pytest.raises(DataError, match=wrong):
            parse_alignment(wrong)


# --- lines ---


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    odd = "a\u2028b\u0085c\x0bd\x0ce"
    assert pairs_of(tmp_path / "p.tsv", f"{odd}\t{odd}\nx\ty") == [Pair(odd, odd), Pair("x", "y")]


def test_everything_that_a_reader_drops_is_counted(tmp_path: Path) -> None:
    dropped: Counter[str] = Counter()
    corpus = corpus_at(tmp_path / "p.tsv", "\ufeffsource\ttarget\r\na \tb\r\nc\td")
    assert list(corpus.numbered_pairs(dropped)) == [(2, Pair("a", "b")), (3, Pair("c", "d"))]
    assert dropped == {
        "byte order mark": 1,
        "carriage return": 2,
        "header line": 1,
        "space at the edge of a sentence": 1,
        "no final newline": 1,
    }


@given(st.binary(max_size=300), st.integers(1, 40))
@in_one_folder
def test_any_bytes_are_read_or_refused_with_line_and_offset(tmp_path: Path, data: bytes, block: int) -> None:
    """For any bytes and any block size, every line is read, or the error names the first bad byte."""
    assume(not name_binary_file(data) and not find_utf16(data))
    newline = b"\r" if b"\r" in data and b"\n" not in data else b"\n"  # "\r": an old Mac
    path = tmp_path / "any.txt"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_files, "_BLOCK_BYTES", block)
        read = lines.read_lines(input_files.InputFile(path), Counter())
        try:
            expected = data.decode()
        except UnicodeDecodeError as error:
            number = data[: error.start].count(newline) + 1
            with pytest.raises(DataError, match=rf"any\.txt .* line {number},.*offset {error.start} "):
                list(read)
        else:
            end = newline.decode()
            expected = expected.removeprefix("\ufeff")
            expected_lines = expected.split(end)[: -1 if expected.endswith(end) or not expected else None]
            assert list(read) == [line.removesuffix("\r") for line in expected_lines]


def test_the_error_for_bad_bytes_far_into_a_file_names_their_place(tmp_path: Path) -> None:
    content = b"good\tline\n" * 60_000 + "é\t".encode() + b"\xe9\n"
    with pytest.raises(
        DataError, match=r"p\.tsv .* line 60,001, byte 4 is 0xE9 \(offset 600,003 in the file\)"
    ):
        pairs_of(tmp_path / "p.tsv", content)


@pytest.mark.parametrize("before", [b"good\tline\n" * 60_000, b"\xef\xbb\xbf"])
def test_the_encoding_of_bad_bytes_is_found_far_into_a_file_and_after_a_byte_order_mark(
    tmp_path: Path, before: bytes
) -> None:
    content = before + "I go.\t나는 집에 간다.\n".encode("cp949") * 3
    with pytest.raises(DataError, match=r"It looks like CP949 \(Korean\): 'I go\. 나는 집에 간다\.'"):
        pairs_of(tmp_path / "p.tsv", content)


# --- refusals ---


@given(
    st.lists(st.sampled_from(["", "a", "b c"]), max_size=6), st.lists(st.sampled_from(["", "x"]), max_size=6)
)
@in_one_folder
def test_texts_with_unequal_line_counts_are_refused_with_both_counts(
    tmp_path: Path, source: list[str], target: list[str]
) -> None:
    texts = ["".join(line + "\n" for line in side) for side in (source, target)]
    if not source or not target:
        with pytest.raises(DataError, match="holds no sentence pairs"):
            open_two_texts(tmp_path, *texts)
    elif len(source) == len(target):
        assert len(list(open_two_texts(tmp_path, *texts).pairs())) == len(source)
    else:
        with pytest.raises(DataError) as refusal:
            list(open_two_texts(tmp_path, *texts).pairs())
        assert f"train.en  {len(source)} lines" in str(refusal.value)
        assert f"train.de  {len(target)} lines" in str(refusal.value)


def test_the_line_where_two_files_diverge_is_found(tmp_path: Path) -> None:
    source = [f"word {'x' * (n * 37 % 53)}" for n in range(3000)]
    target = [line.upper() for line in source]
    del target[1700]
    with pytest.raises(
        DataError, match="2,999 lines   first difference in length ratio near line 1,7"
    ) as refusal:
        list(open_two_texts(tmp_path, "\n".join(source), "\n".join(target)).pairs())
    near = int(str(refusal.value).split("near line ")[1].split()[0].replace(",", ""))
    assert abs(near - 1701) < 10


def test_an_extra_line_at_the_end_gives_no_hint(tmp_path: Path) -> None:
    source = [f"word {'x' * (n * 37 % 53)}" for n in range(300)]
    with pytest.raises(DataError, match="end of the longer file"):
        list(open_two_texts(tmp_path, "\n".join(source), "\n".join([*source, "surplus"])).pairs())


def test_few_lines_give_no_hint() -> None:
    few_lengths = np.array([1, 2])
    assert first_suspicious_line(few_lengths, few_lengths) == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.tsv", "a\tb\nonly one\n", r"Line 2 of .*p\.tsv has 1 column\. .*Received: only one"),
        ("p.tsv", "a\tb\tc\td\n", "has 4 columns.*separated by a tab"),
        ("p.csv", "a,b\nc;d\n", "Line 2 .* has 1 column.*separated by a comma.*Received: c;d"),
        ("p.tsv", "a\tb\t0-0\nc\td\tx y\n", r"3 columns, separated by a tab.*\n  3 0-0\n.*--columns 1,2"),
        ("p.tsv", "a\tb\t0-0\n" * 200 + "c\td\tCC-BY\n", "Line 201 .*not a word alignment.*--columns 1,2"),
        ("p.csv", '"open,b\n' + "x,y\n" * 40_000, "Line 1 .* not CSV.*quotation mark"),
        ("p.csv", 'a,b\n"open,b\n' + "x,y\n" * 9, "Line 2 .* opens a quotation mark that is never closed"),
        ("p.csv", 'a,b\nc,"open\n', "Line 2 .* opens a quotation mark that is never closed"),
        ("p.jsonl", '{"source": "a"}\n', "keys `source` and `target`"),
        ("p.jsonl", '{"source": "a", "target": "b"}\n{"source": "a"}\n', "Line 2 .* no text under 'target'"),
        ("p.jsonl", '{"source": "a", "target": 3}\n', "Line 1 .* no text under 'target'"),
        (
            "p.jsonl",
            '{"source": "a", "target": "b", "alignment": 7}\n',
            'has an `alignment` that is not a word alignment.*"7".* leave it out',
        ),
        ("p.jsonl", "[1]\n", "not a JSON object"),
        ("p.jsonl", "{\n", "not JSON"),
        ("p.jsonl", "[" * 100_000 + "\n", "not JSON"),
        ("p.tsv", "", "holds no sentence pairs"),
        ("p.tsv", "\ufeff", "holds no sentence pairs"),
        ("p.tsv", "en\tko\n", "holds no sentence pairs"),
        ("p.jsonl", "\n\n", "holds no sentence pairs"),
        ("p.txt", "a b\n", "one file of pairs .* or two texts"),
        ("p.tsv", "x" * (lines.MAX_LINE_BYTES + 1), "Line 1 .* longer than 1,048,576 bytes"),
        ("p.tsv", "a\tb\n" + "x" * (lines.MAX_LINE_BYTES + 1) + "\n", "Line 2 .* longer than"),
    ],
)
def test_a_faulty_file_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=f"(?s){message}"):
        pairs_of(tmp_path / name, content)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file .*absent\.tsv"):
        open_corpus(tmp_path / "absent.tsv")
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        open_corpus(tmp_path / "folder.tsv")


def test_a_blank_line_is_an_empty_pair(tmp_path: Path) -> None:
    for name, content in (
        ("a.tsv", "a\tb\n\n"),
        ("a.csv", "a,b\n\n"),
        ("a.jsonl", '{"source":"a","target":"b"}\n\n'),
    ):
        assert pairs_of(tmp_path / name, content) == [Pair("a", "b"), Pair("", "")]


# --- hostile and damaged compressed files ---


@pytest.mark.parametrize("filling", [b"\n", b"x", b"a\tb\n"])
@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_decompression_bombs_are_refused_quickly_in_little_memory(
    tmp_path: Path, suffix: str, filling: bytes
) -> None:
    # 24 MB of output. For line ends in bzip2 144 MB: their first 512 bytes could expand to all of it at once.
    num_bytes = (144 << 20) if (suffix, filling) == (".bz2", b"\n") else 24 << 20
    bomb = COMPRESS[suffix](filling * (num_bytes // len(filling)))
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(DataError, match=r"expands more than 500 times|longer than"):
            pairs_of(tmp_path / f"p.tsv{suffix}", bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 1
    assert peak < 100e6


def test_a_zstandard_window_of_a_gigabyte_is_refused(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30)  # 2**30 bytes
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    content = compressor.compress(b"a\tb\n") + compressor.flush()
    with pytest.raises(DataError, match="cannot be decompressed"):
        pairs_of(tmp_path / "p.tsv.zst", content)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "flip", "not compressed"])
def test_damaged_compression_is_refused(tmp_path: Path, suffix: str, damage: str) -> None:
    text = "".join(f"{n * n}\t{n ^ 0x5555}\n" for n in range(3000)).encode()
    compress_with_checksum = zstandard.ZstdCompressor(write_checksum=True).compress
    content = compress_with_checksum(text) if suffix == ".zst" else COMPRESS[suffix](text)
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]
    damaged = {"cut": content[:-9], "flip": flipped, "not compressed": text}[damage]
    with pytest.raises(DataError):
        pairs_of(tmp_path / f"p.tsv{suffix}", damaged)


# --- languages and weights ---


@pytest.mark.parametrize("header", ["en\tko", "English\tKorean", "eng\tkor\talignment", "en-US\tko_KR"])
def test_a_header_names_the_languages(tmp_path: Path, header: str) -> None:
    corpus = corpus_at(tmp_path / "p.tsv", f"{header}\na\tb\n")
    assert (corpus.source_language, corpus.target_language) == ("en", "ko")
    assert list(corpus.numbered_pairs()) == [(2, Pair("a", "b"))]


@pytest.mark.parametrize(
    ("header", "languages", "unknown"),
    [
        ("hsb\tde", ("", "de"), "hsb"),
        ("en\ttlh", ("en", ""), "tlh"),
        ("Korean\tzza-TR", ("ko", ""), "zza-TR"),
        ("hsb\tdsb\talignment", ("", ""), "hsb and dsb"),
    ],
)
def test_a_header_may_name_an_unknown_language(
    tmp_path: Path, header: str, languages: tuple[str, str], unknown: str
) -> None:
    with pytest.warns(HeaderWarning, match=f"taken as a header.* jumok does not know {unknown}\\. If it is"):
        corpus = corpus_at(tmp_path / "p.tsv", f"{header}\na\tb\n")
    assert (corpus.source_language, corpus.target_language) == languages
    assert list(corpus.numbered_pairs()) == [(2, Pair("a", "b"))]


@pytest.mark.parametrize("header", ["target,source", "Translation,Term", "번역,원문"])
def test_a_header_may_name_the_target_first(tmp_path: Path, header: str) -> None:
    corpus = corpus_at(tmp_path / "p.csv", f"{header}\na,b\n")
    assert list(corpus.pairs()) == [Pair("b", "a")]
    assert corpus.note == "the first column is the target"


@pytest.mark.parametrize("name", ["p.tsv", "p.csv"])
def test_a_table_whose_target_comes_first_keeps_its_alignments(tmp_path: Path, name: str) -> None:
    """Links are source-target, as in JSON lines, whatever the order of the columns is."""
    rows = [
        ["target", "source", "alignment"],
        ["나는 가요.", "I go.", "0-0 1-1 2?1"],
        ["네.", "Yes.", ""],
        ["가.", "Go."],
    ]
    separator = "\t" if name == "p.tsv" else ","
    corpus = corpus_at(tmp_path / name, "".join(separator.join(row) + "\n" for row in rows))
    assert list(corpus.pairs()) == [PAIRS[1], Pair("Yes.", "네."), Pair("Go.", "가.")]
    rows.append(["가요.", "Go.", "CC-BY"])
    corpus = corpus_at(tmp_path / name, "".join(separator.join(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"Line 5 .*not a word alignment.*--columns 2,1"):
        list(corpus.pairs())


@pytest.mark.parametrize("header", ['"source","Target"', "src,tgt", "Term,Translation", "원문,번역"])
def test_a_header_of_source_and_target_leaves_the_languages_unknown(tmp_path: Path, header: str) -> None:
    corpus = corpus_at(tmp_path / "p.csv", f"{header}\na,b\n")
    assert (corpus.source_language, corpus.target_language) == ("", "")
    assert list(corpus.pairs()) == [Pair("a", "b")]


@pytest.mark.parametrize(
    "first",
    [
        "It\tEs",
        "No\tNo",
        "no\tno",
        "source\tb",
        "en\tsentence",
        "x\t",
        "two\tdos",
        "de\tVon",
    ],
)
def test_a_first_sentence_is_not_taken_for_a_header(tmp_path: Path, first: str) -> None:
    corpus = corpus_at(tmp_path / "p.tsv", f"{first}\na\tb\n")
    assert len(list(corpus.pairs())) == 2


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("pairs.en-ko.tsv", ("en", "ko")),
        ("pairs.eng-kor.tsv.gz", ("en", "ko")),
        ("en_ko.tsv", ("en", "ko")),
        ("pairs.tsv", ("", "")),
        ("pairs.en-en.tsv", ("", "")),
        ("part-of.something.tsv", ("", "")),
    ],
)
def test_languages_are_read_from_the_file_name(tmp_path: Path, name: str, languages: tuple[str, str]) -> None:
    content = b"a\tb\n"
    corpus = corpus_at(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    assert (corpus.source_language, corpus.target_language) == languages


@pytest.mark.parametrize(
    ("names", "languages"),
    [
        (("a.en", "a.de"), ("en", "de")),
        (("a.en.txt", "a.de.txt"), ("en", "de")),
        (("a.eng", "a.unknown"), ("en", "")),
        (("a.src", "a.ref"), ("", "")),
        (("a.en-ko.x", "a.en-ko.y"), ("en", "ko")),
    ],
)
def test_languages_are_read_from_the_names_of_two_texts(
    tmp_path: Path, names: tuple[str, str], languages: tuple[str, str]
) -> None:
    for name in names:
        (tmp_path / name).write_text("a\n")
    corpus = open_corpus([tmp_path / name for name in names])
    assert (corpus.source_language, corpus.target_language) == languages


def test_languages_in_the_opposite_direction_swap_the_sides(tmp_path: Path) -> None:
    path = tmp_path / "pairs.en-ko.tsv"
    for requested in ({"source": "ko"}, {"target": "en"}, {"source": "Korean", "target": "en"}):
        corpus = corpus_at(path, "a\tb\t0-1 2?3\n", **requested)
        assert list(corpus.pairs()) == [Pair("b", "a", Alignment(frozenset({(1, 0)}), frozenset({(3, 2)})))]
        assert (corpus.source_language, corpus.target_language) == ("ko", "en")
    with pytest.raises(DataError, match="English and Korean, but French → English was requested"):
        open_corpus(path, source="fr", target="en")


def test_an_unknown_language_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(DataError, match='"Korean"'):
        corpus_at(tmp_path / "p.tsv", "a\tb\n", source="Koraen")


def test_two_texts_of_one_language_are_refused(tmp_path: Path) -> None:
    for name in ("a.en", "b.en"):
        (tmp_path / name).write_text("a\n")
    with pytest.raises(DataError, match="are both English by their names"):
        open_corpus([tmp_path / "a.en", tmp_path / "b.en"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, which has corpora of several kinds."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.tsv", "pairs.en-de.tsv", "pairs.de-en.tsv", "pairs.fr-en.tsv", "odd:2.tsv"):
        (tmp_path / name).write_text("x\ty\n")
    for name in ("c.en", "c.de"):
        (tmp_path / name).write_text("x\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_arguments_become_corpora_with_weights_and_common_languages() -> None:
    corpora = open_corpora(["a.tsv", "c.en", "c.de:2.5", "pairs.de-en.tsv:.5"])
    assert [corpus.weight for corpus in corpora] == [1.0, 2.5, 0.5]
    assert {(corpus.source_language, corpus.target_language) for corpus in corpora} == {("en", "de")}
    assert [next(corpus.pairs()) for corpus in corpora] == [Pair("x", "y"), Pair("x", "x"), Pair("y", "x")]


@pytest.mark.usefixtures("folder")
def test_a_colon_is_part_of_the_name_of_an_existing_file() -> None:
    assert open_corpora(["odd:2.tsv"])[0].weight == 1.0
    assert open_corpora(["odd:2.tsv:3"])[0].weight == 3.0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No corpus was given"),
        (["c.en"], "A text needs its translation"),
        (["c.en", "c.de", "c.en"], "A text needs its translation"),
        (["c.en:2", "c.de:3"], r"two weights\. Received: 2\.0, 3\.0"),
        (["a.tsv:0"], "above 0 and at most 1000"),
        (["a.tsv:nan"], "above 0 and at most 1000"),
        (["a.tsv:-1"], "above 0 and at most 1000"),
        (["a.tsv:heavy"], "Received: a.tsv:heavy"),
        (
            ["pairs.en-de.tsv", "pairs.fr-en.tsv"],
            r"French and English, but English → German is what pairs\.en-de",
        ),
    ],
)
def test_arguments_that_are_not_corpora_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_corpora(arguments)


@pytest.mark.usefixtures("folder")
def test_only_a_file_in_the_opposite_direction_is_swapped() -> None:
    corpora = open_corpora(["pairs.en-de.tsv", "pairs.de-en.tsv"], source="de")
    assert [corpus.swapped for corpus in corpora] == [True, False]


def test_a_new_format_needs_one_function_and_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_arrows(file: input_files.InputFile, options: ReadOptions) -> PairFile:
        def read(dropped: Counter[str]) -> Iterator[tuple[int, Pair]]:
            for number, line in enumerate(lines.read_lines(file, dropped), start=1):
                yield number, Pair(*line.split(" -> "))

        return PairFile(read, ("en", "de"))

    monkeypatch.setitem(PAIR_FORMATS, ".arrows", open_arrows)
    path = tmp_path / "words.arrows.gz"
    path.write_bytes(gzip.compress(b"one -> eins\ntwo -> zwei\n"))
    [corpus] = open_corpora([f"{path}:2"], source="de")
    assert list(corpus.pairs()) == [Pair("eins", "one"), Pair("zwei", "two")]
    assert (corpus.source_language, corpus.weight) == ("de", 2.0)
    assert has_pair_suffix("words.arrows.gz")
    assert not has_pair_suffix("words.arrow")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("p.tsv", True), ("p.TSV.xz", True), ("p.ndjson.zst", True), ("p.tsv.txt", False), ("p.gz", False)],
)
def test_the_suffix_says_whether_a_file_holds_pairs(name: str, expected: bool) -> None:
    assert has_pair_suffix(name) is expected


def test_file_names_have_no_folders_even_if_a_folder_is_called_like_two_files(tmp_path: Path) -> None:
    folder = tmp_path / "secret + project"
    folder.mkdir()
    for name, text in (("pairs.en-de.tsv", "one\teins\n"), ("a.en", "one\n"), ("a.de", "eins\n")):
        (folder / name).write_text(text, encoding="utf-8")
    [pairs] = open_corpora([str(folder / "pairs.en-de.tsv")])
    [parallel] = open_corpora([str(folder / "a.en"), str(folder / "a.de")])
    assert (pairs.file_names, parallel.file_names) == ("pairs.en-de.tsv", "a.en + a.de")
    assert (pairs.num_bytes(), parallel.num_bytes()) == (9, 9)


def test_the_size_of_a_compressed_corpus_is_multiplied(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr("p.tsv", "a\tb\n")
    (tmp_path / "p.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    (tmp_path / "p.tsv").write_bytes(b"a\tb\n")
    for name, factor in (("p.zip", 4), ("p.tsv.gz", 4), ("p.tsv", 1)):
        path = tmp_path / name
        assert open_corpus(path).num_bytes(compressed_factor=4) == factor * path.stat().st_size
