"""Terms are found in sentences and put into the translations, with the correct particles."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from jumok.errors import DataError
from jumok.text.glossary import Glossary, find_protected
from jumok.text.term_placement import (
    PlacedTerms,
    evidence_of_links,
    has_all_terms,
    place_terms_in_sentence,
    term_notes,
)
from jumok.text.words import split_words

TERMS = {
    "student": "수강생",
    "library": "서재",
    "public library": "공공 서재",
    "US": "미국",
    "jumok": "jumok",
    "학생": "pupil",
    "C++": "C++",
}


def find_terms(sentence: str) -> list[tuple[str, str]]:
    """Return the matched texts of a sentence, each with its term in the target language."""
    matches = Glossary(TERMS).find(sentence, find_protected(sentence))
    return [(sentence[slice(*match.span)], match.target) for match in matches]


def test_terms_are_found_across_special_spaces_and_soft_hyphens() -> None:
    assert find_terms("A public\u00a0library.") == [("public\u00a0library", "공공 서재")]
    assert find_terms("A public \u202flibrary, {US}\u2009US") == [
        ("public \u202flibrary", "공공 서재"),
        ("{US}", "{US}"),
        ("US", "미국"),
    ]
    assert find_terms("Every stu\u00addent\u200b") == [("stu\u00addent", "수강생")]


@pytest.mark.parametrize(
    ("sentence", "terms"),
    [
        ("The student reads.", [("student", "수강생")]),
        ("Student, read! STUDENT?", [("Student", "수강생"), ("STUDENT", "수강생")]),
        ("The public library has a library.", [("public library", "공공 서재"), ("library", "서재")]),
        ("They tell us about the US.", [("US", "미국")]),  # a term in capital letters
        ("students and studentship", []),
        ("Write C++ in jumok.", [("C++", "C++"), ("jumok", "jumok")]),
        ("학생은 학생들에게 말한다. 여학생과 학생증", [("학생", "pupil"), ("학생", "pupil")]),
        ("jumok를 쓴다", [("jumok", "jumok")]),  # both forms, 을 and 를, may follow a foreign word
        (
            "See https://a.com/student?x=1. Mail student@a.com!",
            [("https://a.com/student?x=1",) * 2, ("student@a.com",) * 2],
        ),
        ("İstanbul: Student of the US", [("Student", "수강생"), ("US", "미국")]),
        ("student\u0903", []),  # a vowel sign belongs to the word
        ("", []),
    ],
)
def test_terms_are_found(sentence: str, terms: list[tuple[str, str]]) -> None:
    assert find_terms(sentence) == terms


@pytest.mark.parametrize(
    ("sentence", "protected"),
    [
        ("Go to http://a.b/c, then www.d.org.", ["http://a.b/c", "www.d.org"]),
        ("Hello {name}, %1$s of {{ total }}: ${x} %s", ["{name}", "%1$s", "{{ total }}", "${x}", "%s"]),
        ("%(n)d files", ["%(n)d"]),
        ("I am 100% sure and 50 % too.", []),
        ("Run `rm -rf x` on 192.168.0.1 now.", ["`rm -rf x`", "192.168.0.1"]),
        ("I go home at 3.50.", []),
        ("https://a.com에서 jane@a.com으로, 0.5%p 올랐다.", ["https://a.com", "jane@a.com"]),
        ("https://a.com/bをご覧ください", ["https://a.com/b"]),
    ],
)  # fmt: skip
def test_addresses_and_placeholders_are_found(sentence: str, protected: list[str]) -> None:
    assert [match.target for match in find_protected(sentence)] == protected


@pytest.mark.parametrize(
    "text",
    [
        "a" * 50_000 + "@",
        "a.b-" * 12_000 + "@",
        "{" * 50_000,
        "%" + "0" * 50_000,
        "%(" * 25_000,
        "1." * 25_000,
        "@a." * 16_000,
        "{x} student " * 5_000,
    ],
)
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    start = time.process_time()
    Glossary(TERMS).find(text, find_protected(text))
    assert time.process_time() - start < 1


def test_a_glossary_refuses_empty_terms_and_contradicting_translations() -> None:
    for terms in ([("a", "")], [("", "b")], [("a", None)]):
        with pytest.raises(DataError):
            Glossary(terms)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="two translations of 'a': 'b' and 'c'"):
        Glossary([("a", "b"), ("a", "c")])
    assert len(Glossary([("a", "b"), ("a", "b")])) == 1


def place(source: str, translation: str, links: str, **words_for: list[str]) -> PlacedTerms:
    """Place the terms of `TERMS` in a translation, by links such as "0-0 1-2" (source word, target word).

    `words_for` maps a term to the words of the model's translation of this term alone.
    """
    pairs = [(int(i), int(j)) for i, j in (link.split("-") for link in links.split())]
    matches = Glossary(TERMS).find(source, find_protected(source))
    evidence = evidence_of_links(pairs, len(split_words(source)), len(split_words(translation)))
    return place_terms_in_sentence(source, translation, replace(evidence, words_for=words_for), matches)


@pytest.mark.parametrize(
    ("source", "translation", "links", "placed"),
    [
        # 은 is the form after a consonant, for both 학생 and 수강생. 에 has only one form. 이 becomes 가.
        ("The student reads.", "학생은 읽는다.", "1-0 2-1", "수강생은 읽는다."),
        ("I am in the library.", "나는 도서관에 있다.", "0-0 4-1 1-2", "나는 서재에 있다."),
        ("The library is big.", "도서관이 크다.", "1-0 3-1", "서재가 크다."),
        ("The public library is big.", "시립 도서관이 크다.", "1-0 2-1 4-2", "공공 서재가 크다."),
        ("The student and the student.", "학생과 학생.", "1-0 4-1", "수강생과 수강생."),
        ("The students read.", "학생들은 읽는다.", "1-0 2-1", "학생들은 읽는다."),  # no whole word matches
        ("The student reads.", "수강생은 읽는다.", "1-0 2-1", "수강생은 읽는다."),
        # 서재 is already in the translation, so it does not replace the word with a wrong link (2-2).
        ("The student is in the library.", "학생은 서재에 있다.", "1-0 5-2 2-2", "수강생은 서재에 있다."),
        ("Mail {name} now.", "지금 보내라.", "0-1 4-0", "지금 보내라 {name}."),
    ],
)  # fmt: skip
def test_the_linked_stem_is_replaced(source: str, translation: str, links: str, placed: str) -> None:
    assert place(source, translation, links).text == placed


def test_a_term_without_a_link_is_reported_but_an_address_is_always_kept() -> None:
    assert place("The student reads.", "읽는다.", "2-0") == PlacedTerms("읽는다.", ((2, 0),), ("수강생",))
    placed = place("I go to http://a.b now.", "나는 간다.", "0-0 1-1")
    assert placed.text == "나는 간다 http://a.b."
    assert placed.missing == ()
    assert place("http://a.b", "", "").text == "http://a.b"


def test_no_term_and_no_insertion_breaks_a_placeholder() -> None:
    """The words of {name} are {, name and }. The term is linked to name, or to name and to 학생은."""
    source, translation = "The student {name} reads.", "{name} 학생은 읽는다."
    assert place(source, translation, "1-1 5-4") == PlacedTerms(translation, ((1, 1), (5, 4)), ("수강생",))
    assert place(source, translation, "1-1 1-3 5-4").text == "{name} 수강생은 읽는다."
    # `a` comes after the translation of "Mail", which is linked to {, the first word of the placeholder.
    assert place("Mail `a` {name}.", "{name}.", "0-0").text == "{name} `a`."


def test_links_follow_the_words_of_the_new_text() -> None:
    source = "The student is in the public library."
    placed = place(source, "학생이 시립도서관에 있다.", "1-0 5-1 6-1 2-2 7-3")
    assert placed.text == "수강생이 공공 서재에 있다."
    assert placed.links == ((1, 0), (2, 3), (5, 1), (5, 2), (6, 1), (6, 2), (7, 4))
    assert split_words(placed.text) == ["수강생이", "공공", "서재에", "있다", "."]


@pytest.mark.parametrize(
    ("source", "translation", "links", "placed"),
    [
        ("학생은 왔다.", "Student came.", "0-0 1-1", "Pupil came."),
        ("학생은 왔다.", "The student's dog.", "0-1", "The pupil's dog."),
    ],
)
def test_english_terms_keep_capitals_and_possessives(
    source: str, translation: str, links: str, placed: str
) -> None:
    assert place(source, translation, links).text == placed


def test_the_translation_of_a_term_alone_identifies_its_word_and_the_end_of_the_stem() -> None:
    # "cat" is also linked to 이 ("this"), and 고양이 could be read as 고양 with the particle 이.
    source = "This cat is here."
    terms = Glossary({"cat": "야옹이"})
    evidence = evidence_of_links([(0, 0), (1, 0), (1, 1), (2, 2)], 5, 4)
    evidence = replace(evidence, words_for={"cat": ["고양이는", "달린다", "."]})
    placed = place_terms_in_sentence(source, "이 고양이 여기 있다.", evidence, terms.find(source))
    assert placed.text == "이 야옹이 여기 있다."
    library = {"public library": ["시립", "도서관은", "크다"]}
    placed = place("The public library is big.", "그 시립 도서관이 크다.", "0-0 1-1 2-2 4-3", **library)
    assert placed.text == "그 공공 서재가 크다."


def test_a_word_without_a_link_to_the_term_is_found_by_the_translation_of_the_term_alone() -> None:
    words_for = {"student": ["학생은", "읽는다"]}
    assert place("The student reads.", "그 학생이 읽는다.", "2-2", **words_for).text == "그 수강생이 읽는다."
    assert place("The student reads.", "그가 읽는다.", "2-1", **words_for).missing == ("수강생",)


def test_a_term_in_japanese_text_keeps_its_particle() -> None:
    words_for = {"student": ["生", "徒", "は"]}
    placed = place("The student reads.", "生徒は読む。", "1-0 1-1 1-2 2-3", **words_for)
    assert placed.text == "수강생は読む。"


def test_a_term_is_not_a_part_of_another_noun() -> None:
    terms = Glossary({"한국": "Korea", "Korea": "한국", "study": "공부"})
    sentence = "한국인은 한국에 살고 한국어를 말한다."
    assert [match.span for match in terms.find(sentence)] == [(5, 7)]
    source = "Koreans live in Korea."
    [match] = terms.find(source)
    assert not has_all_terms("한국인은 조선에 산다.", [match])
    assert has_all_terms("한국인은 한국에 산다.", [match])
    assert has_all_terms("나는 공부했다.", terms.find("I study."))  # the stem of a verb
    evidence = evidence_of_links([(0, 0), (3, 1), (1, 2)], 5, 4)
    placed = place_terms_in_sentence(source, "한국인은 조선에 산다.", evidence, [match])
    assert placed.text == "한국인은 한국에 산다."


def test_a_term_that_is_placed_by_position_is_reported() -> None:
    matches = Glossary(TERMS).find("The student reads.")
    evidence = evidence_of_links([(1, 0), (2, 1)], 4, 3, by_position=True)
    placed = place_terms_in_sentence("The student reads.", "학생은 읽는다.", evidence, matches)
    assert (placed.text, placed.placed_by_position) == ("수강생은 읽는다.", ("수강생",))
    [note] = term_notes(placed)
    assert note.startswith('the term "수강생" was placed by its position')
    assert not term_notes(replace(placed, placed_by_position=()))


@pytest.mark.parametrize("term", ["ｶｰﾄﾞ", "\uf900子", "\U00020bb7野"])
def test_rare_characters_of_scripts_without_spaces_need_no_space_before_a_term(term: str) -> None:
    [match] = Glossary({term: term}).find(f"\uff83\uf901\U00020bb8{term}")
    assert has_all_terms(f"新{term}", [match])
