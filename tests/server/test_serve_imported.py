"""Servers with an imported model.

The model from Argos runs only in CTranslate2. The model from Marian has several target languages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jumok
from jumok.interop.conversion import ImportChoices
from jumok.interop.import_worker import import_package
from jumok.interop.package import open_package
from support.serve_process import serving_in_thread

MARIAN_PACKAGE = Path(__file__).parent.parent / "interop" / "stored" / "marian.zip"
TRAINED_MODEL = Path(__file__).parent.parent / "stored" / "models" / "transformer"


@pytest.mark.medium
def test_a_model_that_only_ctranslate2_runs_is_served(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    package = tmp_path / "translate-en_ko.argosmodel"
    jumok.export(TRAINED_MODEL, package, "argos")
    import_package(open_package(package), package, tmp_path / "model", ImportChoices())
    text = "six three one seven zero."
    expected = jumok.load(tmp_path / "model").translate([text])[0].text
    with serving_in_thread(tmp_path, tmp_path / "model", workers=1) as server:
        fields = {"q": text, "source": "en", "target": "ko"}
        assert server.post("/translate", fields).json["translatedText"] == expected
        html_answer = server.post("/translate", {**fields, "q": f"<b>{text}</b>", "format": "html"})
        assert html_answer.json["translatedText"] == f"<b>{expected}</b>"


@pytest.mark.medium
def test_an_imported_model_is_served(tmp_path: Path) -> None:
    choices = ImportChoices(source_language="en", target_language="ko", code="ko")
    import_package(open_package(MARIAN_PACKAGE), MARIAN_PACKAGE, tmp_path / "model", choices)
    expected = jumok.load(tmp_path / "model", engine="torch").translate(["I go home."])[0].text
    with serving_in_thread(tmp_path, tmp_path / "model", workers=1) as server:
        fields = {"q": "I go home.", "source": "en", "target": "ko"}
        assert server.post("/translate", fields).json["translatedText"] == expected
        # An unknown language code is text. An error would fail the requests of other clients in the batch.
        unknown_code_answer = server.post("/translate", {**fields, "q": ">>xx<< I go home."})
        assert unknown_code_answer.status == 200
