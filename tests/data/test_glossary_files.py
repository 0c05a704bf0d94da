"""Every file format gives the same glossary, and files that cannot be used are refused with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jumok.data.glossary_files import read_glossary
from jumok.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

TERMS = {"student": "수강생", "public library": "공공 서재", "jumok": "jumok"}


def tmx(terms: dict[str, str]) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="ko"><seg>{b}</seg></tuv></tu>'
        for a, b in terms.items()
    )
    return f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'


def tbx(terms: dict[str, str], entry: str, language: str, section: str) -> str:
    """Return a term base. The names of the elements `entry`, `language` and `section` depend on the version.

    Each concept also has a second Korean term, which the glossary does not use.
    """
    entries = "".join(
        f'<{entry}><{language} xml:lang="en-US"><{section}><term>{a}</term></{section}></{language}>'
        f'<{language} xml:lang="ko"><{section}><term>{b}</term></{section}>'
        f"<{section}><term>다른 {b}</term></{section}></{language}></{entry}>"
        for a, b in terms.items()
    )
    return f"<tbx><text><body>{entries}</body></text></tbx>"


FILES = {
    "plain.tsv": "".join(f"{a}\t{b}\n" for a, b in TERMS.items()),
    "header.tsv": "en\tko\n" + "".join(f"{a}\t{b}\n" for a, b in TERMS.items()),
    "notes.tsv": "".join(f"{a}\t{b}\ta note, number {n}\n" for n, (a, b) in enumerate(TERMS.items())),
    "quoted.csv": "\ufeffen,ko\n" + "".join(f'"{a}","{b}"\n' for a, b in TERMS.items()),
    "swapped.csv": "ko;en\n" + "".join(f"{b};{a}\n" for a, b in TERMS.items()),
    "term.csv": "Term,Translation\n" + "".join(f"{a},{b}\n" for a, b in TERMS.items()),
    "term-notes.csv": "term,translation,notes\n" + "".join(f"{a},{b},note {a}\n" for a, b in TERMS.items()),
    "source.tsv": "source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in TERMS.items()),
    "target.tsv": "target\tsource\n" + "".join(f"{b}\t{a}\n" for a, b in TERMS.items()),
    "korean.tsv": "원문\t번역\n" + "".join(f"{a}\t{b}\n" for a, b in TERMS.items()),
    "memory.tmx": tmx(TERMS),
    "old.tbx": tbx(TERMS, "termEntry", "langSet", "tig"),
    "new.tbx": tbx(TERMS, "conceptEntry", "langSec", "termSec"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_terms(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    assert read_glossary(path, source_language="en", target_language="ko").terms == TERMS


@pytest.mark.parametrize("name", ["header.tsv", "swapped.csv", "memory.tmx", "new.tbx"])
def test_a_file_that_names_its_languages_can_be_used_in_both_directions(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    glossary = read_glossary(path, source_language="ko", target_language="en")
    # In a TBX, the second Korean term of each concept is an additional term.
    assert glossary.terms.items() >= {b: a for a, b in TERMS.items()}.items()


@pytest.mark.parametrize("name", ["header.tsv", "swapped.csv", "memory.tmx", "new.tbx"])
@pytest.mark.parametrize("requested", [{"source_language": "en"}, {"target_language": "ko"}])
def test_one_requested_language_decides_the_direction(
    tmp_path: Path, name: str, requested: dict[str, str]
) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    assert read_glossary(path, **requested).terms == TERMS


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "cat\t고양이\ndog\t개\ncat\t야옹이\n", "'cat': '고양이' on line 1 and '야옹이' on line 3"),
        (
            "a.tsv",
            "고양이\tcat\n개\tdog\njumok\tjumok\n",
            "seems to be swapped: '고양이' .* Add a header that .*: ko⇥en",
        ),
        ("a.tsv", "cat\t고양이\ndog\t\n", "Line 2 of .* has only one text: 'dog'"),
        ("a.md", "cat", "is not a glossary"),
        ("a.tbx", "<tbx></tbx>", r"has no terms in en and ko\. Its languages: none\. Use a glossary that"),
        (
            "a.tbx",
            tbx(TERMS, "termEntry", "langSet", "tig").replace("ko", "de"),
            r"has no terms in ko\. Its languages: en \(3\), de \(3\)\. Use a glossary that",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_glossary(path, source_language="en", target_language="ko")


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("notes.csv", "고양이,cat,a note\n개,dog,no note\n", "Add a header"),
        ("header.tsv", "source\ttarget\n고양이\tcat\n", "In the header, name these two columns by .*: ko⇥en"),
        ("languages.tsv", "en\tko\n고양이\tcat\n", "Correct the languages that the file names"),
        ("memory.tmx", tmx({"고양이": "cat"}), "Correct the languages that the file names"),
        ("old.tbx", tbx({"고양이": "cat"}, "termEntry", "langSet", "tig"), "Correct the languages"),
        ("terms.jsonl", '{"source": "고양이", "target": "cat"}\n', "Swap the term and the translation"),
    ],
)
def test_the_advice_for_swapped_languages_depends_on_the_file(
    tmp_path: Path, name: str, text: str, advice: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"seems to be swapped: '고양이' should be English.*{advice}"):
        read_glossary(path, source_language="en", target_language="ko")


@pytest.mark.parametrize("header", ["ko\ten\tnotes", "ko\ten\t"])
def test_a_swapped_table_with_notes_is_read_after_its_header_follows_the_advice(
    tmp_path: Path, header: str
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"{header}\n고양이\tcat\ta note\n개\tdog\tno note\n", encoding="utf-8")
    terms = read_glossary(path, source_language="en", target_language="ko").terms
    assert terms == {"cat": "고양이", "dog": "개"}


@pytest.mark.parametrize("text", ["cat\t개\n", "cat\t고양이\ndog\t강아지\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
def test_a_glossary_may_be_utf_8_beside_a_text_in_another_encoding(
    tmp_path: Path, text: str, encoding: str
) -> None:
    """`--encoding cp949` is the encoding of the text, such as old subtitles. The glossary may be in UTF-8."""
    path = tmp_path / "terms.tsv"
    path.write_bytes(text.encode(encoding))
    terms = read_glossary(path, source_language="en", target_language="ko", encoding="cp949").terms
    assert terms == dict(line.split("\t") for line in text.splitlines())


def test_a_few_terms_in_the_other_script_are_not_taken_for_swapped_columns(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("카카오톡\tKakaoTalk\nstudent\t수강생\nGalaxy\tGalaxy\n", encoding="utf-8")
    assert len(read_glossary(path, source_language="en", target_language="ko").terms) == 3


def test_a_term_base_with_one_language_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tbx"
    path.write_text(tbx(TERMS, "termEntry", "langSet", "tig").replace('"ko"', '"en"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"has terms in: en \(3\)\. A glossary needs terms in two languages"):
        read_glossary(path)


def test_a_missing_glossary_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no glossary"):
        read_glossary(tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("header.tsv", "has terms in en and ko. Received: a translation from ko to fr"),
        ("memory.tmx", "has no units in fr"),
        ("new.tbx", "has no terms in fr"),
    ],
)
def test_a_glossary_of_other_languages_is_refused(tmp_path: Path, name: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_glossary(path, source_language="ko", target_language="fr")
