"""The error for a text that is not UTF-8 names the encoding that fits; jumok never guesses one silently."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from jumok.data.corpora import open_corpora, open_corpus, open_further_corpora
from jumok.data.corpus_report import check_corpora
from jumok.data.encodings import check_encoding, guess_encoding
from jumok.data.faults import Fault
from jumok.errors import DataError
from jumok.types import Pair

if TYPE_CHECKING:
    from pathlib import Path

KOREAN = "나는 오늘 아침에 학교에 갔다가 친구를 만났다."
JAPANESE = "私は今日の朝、学校に行って友達に会いました。"
CHINESE = "我今天早上去学校，见到了我的朋友。"
TRADITIONAL = "我今天早上去學校，見到了我的朋友。"
RUSSIAN = "Сегодня утром я пошёл в школу и встретил друга."
GERMAN = "Ich möchte heute früh zur Schule gehen und Freunde grüßen."
FRENCH = "Où est l’élève qui a fini ses études ?"


@pytest.mark.parametrize(
    ("text", "encoding", "offered_encoding"),
    [
        (KOREAN, "cp949", "cp949"),
        (KOREAN, "euc-kr", "cp949"),
        (JAPANESE, "shift_jis", "cp932"),
        (JAPANESE, "euc_jp", "euc_jp"),
        (CHINESE, "gb18030", "gb18030"),
        (CHINESE, "gbk", "gb18030"),
        (TRADITIONAL, "big5", "big5"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8_r", "koi8_r"),
        (GERMAN, "latin1", "cp1252"),
        (FRENCH, "cp1252", "cp1252"),
        (KOREAN, "utf-16", "utf-16"),
        (KOREAN, "utf-16-le", "utf-16-le"),
        (KOREAN, "utf-16-be", "utf-16-be"),
        (GERMAN, "utf-16-le", "utf-16-le"),
        ("Nothing but ASCII.", "utf-16-le", "utf-16-le"),
    ],
)
def test_the_error_offers_the_encoding_that_reads_the_file(
    tmp_path: Path, text: str, encoding: str, offered_encoding: str
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes("".join(f"I go {n} times.\t{text} {n}\n" for n in range(20)).encode(encoding))
    with pytest.raises(DataError, match=r"is not UTF-8 text") as refusal:
        open_corpus(path)
    assert f"add --encoding {offered_encoding} (in Python: encoding={offered_encoding!r})." in str(
        refusal.value
    )
    # Earlier versions advised: iconv -f latin1 -t utf-8.
    assert "latin1 -t" not in str(refusal.value)
    if not offered_encoding.startswith("utf-16"):
        assert f"{text} 0"[:20] in str(refusal.value)  # the message shows the line in the offered encoding
    corpus = open_corpus(path, encoding=offered_encoding)
    assert len(list(corpus.pairs())) == 20
    assert next(corpus.pairs()).target == f"{text} 0"


def test_texts_and_compressed_files_are_read_in_their_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_bytes(b"Hello.\n")
    (tmp_path / "a.ko.gz").write_bytes(gzip.compress("안녕.\n".encode("cp949")))
    [corpus] = open_corpora([str(tmp_path / "a.en"), str(tmp_path / "a.ko.gz")], encoding="cp949")
    assert list(corpus.pairs()) == [Pair("Hello.", "안녕.")]


def test_the_error_for_one_bad_line_among_good_ones_advises_to_repair_it(tmp_path: Path) -> None:
    path = tmp_path / "mixed.tsv"
    good = "".join(f"I go {n}.\t나는 간다 {n}.\n" for n in range(400)).encode()
    path.write_bytes(good + "bad\t나쁜 줄이다\n".encode("cp949") + good)
    with pytest.raises(DataError) as refusal:
        list(open_corpus(path).pairs())
    message = str(refusal.value)
    assert "on line 401, byte 5 is 0xB3" in message
    assert (
        "do not convert the file: repair or delete that line (in CP949 (Korean): 'bad 나쁜 줄이다')"
        in message
    )
    assert "--encoding" not in message


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"PK\3\4\x14\0\x06\0[Content_Types].xml word/document.xml\xff\xfe", "a Word document"),
        (b"PK\3\4\x14\0\x06\0[Content_Types].xml xl/workbook.xml\xff", "an Excel workbook. Add .xlsx"),
        (b"PK\3\4\x0a\0\0\0mimetypeapplication/vnd.oasis.opendocument.text\xff", "an OpenDocument file"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "an Office file in a format from before 2007"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "compressed with gzip. Add .gz"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (bytes(range(256)) * 20, "binary data, not text"),
    ],
)
def test_the_error_for_a_binary_file_names_its_format(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError) as refusal:
        open_corpus(path)
    assert name in str(refusal.value)
    assert "--encoding" not in str(refusal.value)


def test_a_wrong_or_unknown_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(f"I go.\t{GERMAN}\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"is not cp949 text: .* near byte \d+"):
        open_corpus(path, encoding="cp949")
    with pytest.raises(DataError, match=r"no encoding 'cp94'\. Did you mean .cp949"):
        open_corpus(path, encoding="cp94")
    for name in ("hex", "rot13", "undefined"):
        with pytest.raises(DataError, match="no encoding"):
            check_encoding(name)
    assert [check_encoding(name) for name in ("", "UTF-16", "utf_16_le", "ms949")] == [
        "",
        "UTF-16",
        "utf_16_le",
        "ms949",
    ]


def test_utf8_is_not_read_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"I go.\t{KOREAN}\n" * 20, encoding="utf-8")
    with pytest.raises(DataError, match=r"is UTF-8 text\. Received: --encoding cp1252\. Leave it out"):
        open_corpus(path, encoding="cp1252")
    assert next(open_corpus(path, encoding="utf-8-sig").pairs()).target == KOREAN


def test_a_validation_set_may_have_other_columns_and_another_encoding(tmp_path: Path) -> None:
    table, pair_file, text = (tmp_path / name for name in ("t.csv", "v.en-ko.tsv", "v.en"))
    table.write_bytes(f"1;I go.;{KOREAN};x\n2;He goes.;{KOREAN};y\n".encode("cp949"))
    pair_file.write_text(f"She reads.\t{KOREAN}\n" * 3, encoding="utf-8")
    text.write_text("We read.\n", encoding="utf-8")
    (tmp_path / "v.ko").write_text(f"{KOREAN}\n", encoding="utf-8")
    reading = {"columns": "2,3", "encoding": "cp949"}
    for names in ([table], [pair_file], [text, tmp_path / "v.ko"]):
        assert next(open_further_corpora(list(map(str, names)), **reading)[0].pairs()).target == KOREAN
    with pytest.raises(DataError, match="no file"):
        open_further_corpora([str(tmp_path / "no.tsv")], **reading)


def test_bytes_that_fit_no_encoding_are_not_guessed() -> None:
    assert guess_encoding(b"a \x81 b \x8d c \x90") is None


def test_korean_that_was_converted_from_latin1_is_mojibake(tmp_path: Path) -> None:
    """Earlier versions advised converting any file as if it were Latin-1.

    A CP949 file that was converted in this way is recognised, even if its languages are not known.
    """
    broken = [KOREAN.encode("cp949").decode("latin1"), "그녀는 책을 읽는다.".encode("cp949").decode("latin1")]
    good = [
        ("Æther and Œuvre, naïve café?", "¿Qué? «Ça va», 20 °C ± ½."),
        ("Jäääär", "öö ÄÖÜ ···· °C ¹²³ ÀÈÉÂ"),
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "".join(f"{a}\t{b}\n" for a, b in [("I go.", broken[0]), ("She reads.", broken[1]), *good])
    )
    report = check_corpora([open_corpus(path)])
    assert report.skipped[Fault.MOJIBAKE] == 2
    assert report.count(Fault.MOJIBAKE) == 2
