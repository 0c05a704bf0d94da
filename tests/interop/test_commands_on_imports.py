"""Commands and functions work with an imported model. Messages name the command that imports a model."""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jumok
from jumok.analysis.changes import Silence
from jumok.cli import main
from jumok.data.corpora import open_corpus
from jumok.datasets.english_korean import generate
from jumok.errors import ModelFolderError, UnsupportedError
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.storage.model_folder import read_stored_model
from jumok.training.validation.translation import TranslationValidation
from support.imported import load_imported

STORED = Path(__file__).parent / "stored"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of Marian, with Marian's positions."""
    folder = tmp_path_factory.mktemp("imported") / "model"
    load_imported(STORED / "marian.zip", folder, source_language="en", target_language="ko", code="ko")
    return folder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.en-ko.tsv"
    rows = [f"{pair.source}\t{pair.target}" for pair in generate("test", 40)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: str | Path, stdin: str = "") -> str:
    """Run `jumok ARGUMENTS` in this process, and return its output."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
    message = capsys.readouterr()
    assert end.value.code == 0, message.err
    return message.out


def test_both_engines_translate_alike_with_the_positions_of_marian(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ctranslate2")
    fast, slow = jumok.load(model, engine="ctranslate2"), jumok.load(model, engine="torch")
    assert fast.engine.name == "ctranslate2"
    texts = [pair.source for pair in generate("test", 30)]
    for translation, expected in zip(fast.translate(texts), slow.translate(texts), strict=True):
        assert translation.text == expected.text
        assert translation.score == pytest.approx(expected.score, abs=1e-4)
    output = call(capsys, "translate", model, stdin="I go home.\n>>ja<< I go home.\n")
    assert len(output.splitlines()) == 2


def test_an_imported_model_gives_explanations_maps_and_alignments(model: Path, tmp_path: Path) -> None:
    translator = jumok.load(model, engine="torch")
    source = "I go home."
    explanation = jumok.explain(translator, source)
    jumok.save_explanation(explanation, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    target = translator.translate([source])[0].text
    maps = translator.attention(source, target)
    assert maps["cross"].keys[0] == ">>ko<<"
    assert maps["cross"].weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    alignment = translator.align(source, "나는 집에 간다.")
    assert {link[0] for link in alignment.sure} <= set(range(4))  # the source has four words


def test_the_commands_look_evaluate_shortlist_and_info_work_with_an_imported_model(
    model: Path, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "look", model, "I go home.", "--out", tmp_path / "map.html")
    assert "I" in (tmp_path / "map.html").read_text(encoding="utf-8")
    scores = json.loads(call(capsys, "evaluate", model, pairs, "--json"))
    assert scores["sentences"] == 40
    training = tmp_path / "training.en-ko.tsv"
    rows = [f"{pair.source}\t{pair.target}\n" for pair in generate("train", 200)]
    training.write_text("".join(rows), encoding="utf-8")
    learned = json.loads(call(capsys, "shortlist", model, training, "--valid", pairs, "--json"))
    assert "shortlist_costs" in learned
    assert call(capsys, "translate", model, "--shortlist", stdin="I go home.\n").strip()
    facts = json.loads(call(capsys, "info", model, "--json"))
    assert facts["facts"]["licence"] == "cc-by-4.0"
    assert "positions marian, swish" in facts["model"]
    table = call(capsys, "info", model)
    assert not re.search(r"^(scores|corpora|targets)\s*$", table, re.MULTILINE)


def test_silencing_the_cross_attention_changes_the_translation(model: Path) -> None:
    translator = jumok.load(model, engine="torch")
    explanation = jumok.explain(translator, "I want to read the book.", edit=Silence("cross"))
    assert explanation.before is not None
    assert explanation.before.target.text != explanation.target.text


def test_a_live_page_explains_and_changes_attention(model: Path) -> None:
    service = ExplanationService([NamedTranslator("opus", jumok.load(model, engine="torch"))])

    def request(**fields: Any) -> Any:
        return json.loads(service.handle("explain", json.dumps(fields).encode()))

    sentence = "I want to read the book."
    plain = request(sentence=sentence)
    assert plain["target"]["text"] == jumok.load(model).translate([sentence])[0].text
    silence = {"kind": "silence", "site": "cross", "layer": 0, "head": 0}
    changed = request(sentence=sentence, target=plain["target"]["text"], changes=[silence])
    assert changed["log_probs"] != plain["log_probs"]


def test_documents_are_translated_with_their_markup(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html><body><p>I go <b>home</b>.</p></body></html>", encoding="utf-8")
    call(capsys, "translate", model, page, "--out", tmp_path / "page.ko.html")
    translated = (tmp_path / "page.ko.html").read_text(encoding="utf-8")
    assert 'lang="ko"' in translated
    assert "<p>" in translated


def test_exports_with_positions_of_marian_are_written_except_to_hugging_face(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "export", model, "--to", "safetensors", "--out", tmp_path / "weights")
    assert (tmp_path / "weights" / "model.safetensors").exists()
    call(capsys, "export", model, "--to", "ctranslate2", "--out", tmp_path / "converted")
    readme = (tmp_path / "converted" / "README.md").read_text(encoding="utf-8")
    assert '[">>ko<<", *source.encode("A sentence.", out_type=str)]' in readme
    assert "preprocess.sh" in readme
    with pytest.raises(UnsupportedError, match=r"model\.positions = marian.*--positions sinusoidal"):
        jumok.export(model, tmp_path / "out", "huggingface")


@pytest.mark.medium
def test_an_imported_model_can_be_fine_tuned(model: Path, pairs: Path, tmp_path: Path) -> None:
    """The loss on the validation pairs decreases, and the tokenizers stay the same."""
    training = tmp_path / "training.en-ko.tsv"
    rows = [f"{pair.source}\t{pair.target}\n" for pair in generate("train", 400)]
    training.write_text("".join(rows), encoding="utf-8")
    settings = {"steps": 100, "learning_rate": 0.003, "interpolate": False, "replay_share": 0}
    tuned = jumok.train(training, out=tmp_path / "run", start_from=model, valid=[pairs], **settings)
    card = read_stored_model(tuned).card
    before, after = (jumok.load(folder, engine="torch") for folder in (model, tuned))
    assert before.tokenizers.source.to_bytes() == after.tokenizers.source.to_bytes()
    validation = TranslationValidation(list(open_corpus(pairs).pairs()), before.tokenizers, card.recipe)
    results = [validation.validate(translator.model, beam=1) for translator in (before, after)]
    losses = [result.loss for result in results if result is not None]
    assert losses[1] < losses[0]
    assert card.facts["start_from"] == "model"


@pytest.mark.parametrize("name", ["classic", "marian"])
def test_the_error_of_loading_a_foreign_model_names_the_import_command(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(STORED / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / name
    for path in (folder, STORED / f"{name}.zip"):
        with pytest.raises(ModelFolderError, match=f"`jumok import {path} --out model`"):
            jumok.load(path)
    with pytest.raises(
        ModelFolderError, match=r"hf download Helsinki-NLP/opus-mt-en-de .*jumok import opus-mt-en-de"
    ):
        jumok.load("Helsinki-NLP/opus-mt-en-de")


def test_the_readme_describes_the_model_and_no_file_contains_a_path(model: Path) -> None:
    readme = (model / "README.md").read_text(encoding="utf-8")
    assert readme.startswith('---\nlanguage:\n- "en"\n- "ko"\nlicense: "cc-by-4.0"\n')
    for text in (readme, (model / "jumok.json").read_text(encoding="utf-8")):
        assert str(model.parent) not in text
        assert str(STORED) not in text
    assert "Positions: marian" in readme


@pytest.mark.medium
def test_info_describes_a_model_before_it_is_imported(capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(call(capsys, "info", STORED / "tc-big.zip", "--json"))
    assert (facts["format"], facts["languages"]) == ("Hugging Face MarianMT", "en → ko")
    assert facts["import"].startswith("jumok import")
