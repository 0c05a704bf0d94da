"""A request names a glossary of the server or contains the terms itself. Web addresses are not translated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jumok.errors import DataError, RecipeError
from jumok.inference.loading import load
from jumok.server.glossaries import NamedGlossaries
from jumok.server.language_pairs import LanguagePair, LanguagePairs
from jumok.text.glossary import Glossary
from support.serve_process import serving_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.serve_process import Answer, RunningServer

TERMS = {"three": "DREI", "seven": "SIEBEN"}
TEXT = "One two three. Four seven!"


@pytest.fixture(scope="module")
def terms_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A glossary file with TERMS."""
    path = tmp_path_factory.mktemp("terms") / "digits.tsv"
    path.write_text("en\tde\n" + "".join(f"{a}\t{b}\n" for a, b in TERMS.items()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def server_with_terms(
    model: Path, second_model: Path, terms_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("glossary")
    with serving_in_thread(folder, model, second_model, glossaries=(("digits", terms_file),)) as server:
        yield server


def translate_text(server: RunningServer, path: str = "/translate", **fields: Any) -> Answer:
    return server.post(path, {"q": TEXT, "source": "en", "target": "de", **fields})


def test_a_server_translates_with_terms_as_python_does(server_with_terms: RunningServer, model: Path) -> None:
    translator = load(model)
    plain = translator.translate([TEXT])[0]
    [with_terms] = translator.translate([TEXT], glossary=Glossary(TERMS))
    assert translate_text(server_with_terms).json["translatedText"] == plain.text
    for glossary in ("digits", TERMS, [{"source": a, "target": b} for a, b in TERMS.items()]):
        assert translate_text(server_with_terms, glossary=glossary).json["translatedText"] == with_terms.text
        [v1_answer] = translate_text(server_with_terms, "/v1/translate", glossary=glossary).json[
            "translations"
        ]
        assert v1_answer["text"] == with_terms.text
        expected_notes = [note for note in with_terms.notes if "could not be placed" in note]
        notes = [note for note in v1_answer.get("notes", ()) if "could not be placed" in note]
        assert notes == expected_notes
    stream = translate_text(server_with_terms, "/v1/translate/stream", glossary="digits").text
    assert "event: done" in stream
    form = server_with_terms.post_file(
        "x.txt", b"three\n", source="en", target="de", glossary='{"three": "DREI"}'
    )
    assert form.status == 200, form.text


def test_a_web_address_is_kept_directly_and_through_a_pivot(server_with_terms: RunningServer) -> None:
    address = "https://a.example/b?c=1"
    for target in ("de", "fr"):  # to German directly, to French through German
        answer = translate_text(server_with_terms, q=f"One two {address} three.", target=target)
        assert answer.json["translatedText"].count(address) == 1


@pytest.mark.parametrize(
    ("glossary", "message"),
    [
        ("law", "there is no glossary 'law'"),
        ({"a": 1}, "pairs of texts"),
        ({"a": ""}, "has two texts"),
        (["a"], "it must be a name, an object of terms, or a list"),
        ("{", "glossary parameter"),  # not JSON
        ({f"a{n}": "b" for n in range(10_001)}, "too many values"),  # MAX_VALUES of any body: 10,000
        ({f"a{n}": "b" for n in range(1_001)}, "at most 1,000 terms"),
        ({"a": "b" * 201}, "at most 200 characters"),
        ({"a": "\ud800"}, "surrogate"),
        ("[" + "1" * 5_000 + "]", "glossary parameter"),  # Python converts at most 4,300 digits
    ],
)
def test_an_invalid_glossary_is_refused(
    server_with_terms: RunningServer, glossary: Any, message: str
) -> None:
    for target in ("de", "en"):  # from English to English, nothing is translated
        answer = translate_text(server_with_terms, glossary=glossary, target=target)
        assert answer.status == 400
        assert message in answer.json["error"]


def test_a_named_glossary_is_used_only_between_its_two_languages(terms_file: Path, tmp_path: Path) -> None:
    pairs = LanguagePairs(
        [LanguagePair(0, "en", "de"), LanguagePair(1, "de", "fr"), LanguagePair(2, "de", "en")]
    )
    named = NamedGlossaries([("digits", terms_file)], pairs)
    assert named.get("digits", "en", "de").terms == TERMS
    assert named.get("digits", "de", "en").terms == {b: a for a, b in TERMS.items()}
    with pytest.raises(DataError, match="no terms from de to fr"):
        named.get("digits", "de", "fr")
    with pytest.raises(DataError, match="There is no glossary"):
        NamedGlossaries([("law", tmp_path / "none.tsv")], pairs)
    with pytest.raises(RecipeError, match="Two glossaries have the name"):
        NamedGlossaries([("digits", terms_file)] * 2, pairs)
