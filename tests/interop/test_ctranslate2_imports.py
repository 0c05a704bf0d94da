"""Imported models of CTranslate2 and Argos translate like the models that were exported.

Uses that need the weights are refused.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jumok
from jumok.cli import main
from jumok.errors import JumokError, ModelFolderError, UnsupportedError
from jumok.inference.loading import MIN_POSITIONS
from jumok.interop.conversion import ImportChoices
from jumok.interop.import_worker import import_package
from jumok.interop.importing import import_model
from jumok.interop.package import open_package
from jumok.storage.model_folder import read_stored_model
from support.imported import learned_positions_model

pytest.importorskip("ctranslate2")

STORED = Path(__file__).parent.parent / "stored"
MODEL = STORED / "models" / "transformer"  # digits, English to Korean
TEXTS = ["six three one seven zero.", "two four nine.", "one."]


def run_import(package: Path, out: Path, **choices: str) -> Path:
    import_package(open_package(package), package, out, ImportChoices(**choices))
    return out


def assert_refused(package: Path, words: str) -> None:
    out = package.parent / "refused"
    with pytest.raises(ModelFolderError, match=words):
        import_package(open_package(package), package, out, ImportChoices())
    assert not list(package.parent.glob("refused*"))


@pytest.fixture(scope="module")
def converted_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("converted") / "folder"
    jumok.export(MODEL, out, "ctranslate2")
    return out


@pytest.fixture(scope="module")
def model(converted_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder without weights for torch."""
    languages = {"source_language": "en", "target_language": "ko"}
    return run_import(converted_model, tmp_path_factory.mktemp("run-only") / "model", **languages)


def translations(folder: Path, **options: Any) -> list[str]:
    return [translation.text for translation in jumok.load(folder).translate(TEXTS, **options)]


def test_a_folder_of_ctranslate2_translates_like_the_exported_model(model: Path) -> None:
    for beam in (1, 4):
        assert translations(model, beam=beam) == translations(MODEL, beam=beam)
    assert jumok.load(model).engine.name == "ctranslate2"
    card = read_stored_model(model).card
    assert (card.recipe.model.width, card.facts["runs_on"]) == (16, "ctranslate2")


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_an_argos_package_translates_like_the_exported_model(quantization: str, tmp_path: Path) -> None:
    package = tmp_path / "translate-en_ko.argosmodel"
    jumok.export(MODEL, package, "argos", quantization=quantization, licence="cc0-1.0")
    folder = run_import(package, tmp_path / "model")
    card = read_stored_model(folder).card
    languages = card.recipe.languages
    assert (languages.source, languages.target, card.facts["licence"]) == ("en", "ko", "cc0-1.0")
    assert card.facts["imported_from"] == "Argos Translate, translate-en_ko.argosmodel"
    if quantization == "float32":  # the import sets the length penalty of Argos, which is not that of MODEL
        assert translations(folder, length_penalty=1.0) == translations(MODEL)


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_each_weight_and_bias_is_counted_once(quantization: str, tmp_path: Path) -> None:
    """CTranslate2 stores the embeddings under three names, and the table of positions under two names.

    torch computes the positions, so its weights do not contain them.
    """
    jumok.export(MODEL, tmp_path / "converted", "ctranslate2", quantization=quantization)
    card = read_stored_model(run_import(tmp_path / "converted", tmp_path / "model")).card
    weights = read_stored_model(MODEL).weights().values()
    in_positions = MIN_POSITIONS * card.recipe.model.width
    assert card.facts["parameters"] == sum(weight.numel() for weight in weights) + in_positions


def test_a_text_that_is_too_long_for_the_positions_is_split(tmp_path: Path) -> None:
    """No other engine can run the model, so there must be enough positions for the longest translation."""
    learned = learned_positions_model(tmp_path / "learned", max_positions=40)
    jumok.export(learned, tmp_path / "converted", "ctranslate2")
    folder = run_import(tmp_path / "converted", tmp_path / "model")
    assert read_stored_model(folder).card.recipe.training.max_sentence_tokens == 10
    # The translation of a source with 10 tokens has at most 3 · 10 + 10 = 40 tokens.
    assert len(jumok.load(folder).translate(["one two three four five six seven eight nine. " * 5])) == 1


def test_a_vocabulary_of_an_old_release_is_read(converted_model: Path, tmp_path: Path) -> None:
    """The vocabulary is a `.txt` file and has `<blank>` in place of `<pad>`, as in OpenNMT."""
    folder = shutil.copytree(converted_model, tmp_path / "folder")
    tokens = json.loads((folder / "shared_vocabulary.json").read_text())
    renamed = ["<blank>" if token == "<pad>" else token for token in tokens]
    (folder / "shared_vocabulary.json").unlink()
    (folder / "shared_vocabulary.txt").write_text("\n".join(renamed) + "\n", encoding="utf-8")
    assert translations(run_import(folder, tmp_path / "model")) == translations(MODEL)


@pytest.mark.medium
def test_the_commands_import_translate_evaluate_and_info_work_with_a_model_of_ctranslate2(
    converted_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: object, stdin: str = "") -> str:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin.encode())))
            with pytest.raises(SystemExit) as end:
                main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        assert end.value.code == 0, output.err
        return output.out

    report = call("import", converted_model, "--out", tmp_path / "model", "--from", "en", "--to", "ko")
    assert "format       CTranslate2" in report
    assert "jumok evaluate" in report.splitlines()[-1]
    assert "jumok look" not in report  # this command would be refused
    assert call("translate", tmp_path / "model", stdin="\n".join(TEXTS)).splitlines() == translations(MODEL)
    scores = json.loads(call("evaluate", tmp_path / "model", STORED / "pairs.en-ko.tsv", "--json"))
    expected = json.loads(call("evaluate", MODEL, STORED / "pairs.en-ko.tsv", "--json"))
    assert scores["bleu"] == pytest.approx(expected["bleu"], abs=0.5)
    facts = json.loads(call("info", tmp_path / "model", "--json"))
    assert facts["facts"]["runs_on"] == "ctranslate2"
    described = json.loads(call("info", converted_model, "--json"))
    assert described["format"] == "CTranslate2"


def test_functions_that_need_the_weights_are_refused_with_the_reason(model: Path, tmp_path: Path) -> None:
    translator = jumok.load(model)
    reason = "imported from CTranslate2's files.*translate, serve and evaluate only"
    with pytest.raises(UnsupportedError, match=reason):
        jumok.explain(translator, TEXTS[0])
    with pytest.raises(UnsupportedError, match=reason):
        translator.align(TEXTS[0], "육 삼 일 칠 영.")
    with pytest.raises(UnsupportedError, match=reason):
        jumok.load(model, engine="torch")
    with pytest.raises(UnsupportedError, match=reason):
        jumok.export(model, tmp_path / "out", "huggingface")
    with pytest.raises(UnsupportedError, match=reason):
        jumok.train(STORED / "pairs.en-ko.tsv", out=tmp_path / "run", start_from=model, steps=1)
    assert not list(tmp_path.iterdir())


def test_packages_that_cannot_run_are_refused(converted_model: Path, tmp_path: Path) -> None:
    no_tokenizer = shutil.copytree(converted_model, tmp_path / "no-tokenizer")
    (no_tokenizer / "source.spm").unlink()
    (no_tokenizer / "target.spm").unlink()
    assert_refused(no_tokenizer, r"0 SentencePiece models.*source\.spm and target\.spm")
    (no_tokenizer / "bpe.model").write_text("#version: 0.2\n")
    assert_refused(no_tokenizer, "BPE of subword-nmt")
    short = shutil.copytree(converted_model, tmp_path / "short")
    tokens = json.loads((short / "shared_vocabulary.json").read_text())
    (short / "shared_vocabulary.json").write_text(json.dumps(tokens[:-1]))
    assert_refused(short, "its vocabulary .* tokens")
    (short / "shared_vocabulary.json").write_text(json.dumps([*tokens[:-1], tokens[-2]]))
    assert_refused(short, "a token twice")
    (short / "shared_vocabulary.json").unlink()
    assert_refused(short, r"the file shared_vocabulary\.json is missing")
    for present, missing in (("source", "target"), ("target", "source")):
        (short / f"{present}_vocabulary.json").write_text(json.dumps(tokens))
        assert_refused(short, rf"the file {missing}_vocabulary\.json is missing")
        (short / f"{present}_vocabulary.json").unlink()
    several = shutil.copytree(converted_model, tmp_path / "several")
    config = json.loads((several / "config.json").read_text())
    (several / "config.json").write_text(json.dumps({**config, "decoder_start_token": None}))
    assert_refused(several, "the user must name the first token of its decoder")
    (several / "config.json").write_text(json.dumps({**config, "decoder_start_token": "4"}))
    assert_refused(several, "its decoder begins with '4', which is no special token")
    other = shutil.copytree(converted_model, tmp_path / "other")
    data = (other / "model.bin").read_bytes()
    (other / "model.bin").write_bytes(data.replace(b"TransformerSpec", b"WhisperSpecific", 1))
    assert_refused(other, "it is a WhisperSpecific")
    (other / "model.bin").write_bytes(struct.pack("<I", 2) + data[4:])
    assert_refused(other, "version 2")
    (other / "model.bin").write_bytes(data + b"x")
    assert_refused(other, "1 bytes after its end")


def test_an_argos_package_with_a_target_prefix_is_refused(tmp_path: Path) -> None:
    package, changed = tmp_path / "good.argosmodel", tmp_path / "bad.argosmodel"
    jumok.export(MODEL, package, "argos")
    with zipfile.ZipFile(package) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("metadata.json"):
                data = json.dumps({**json.loads(data), "target_prefix": "__ko__"}).encode()
            new.writestr(name, data)
    assert_refused(changed, "target_prefix")


@pytest.mark.slow
def test_damaged_files_give_a_model_or_a_typed_error(converted_model: Path, tmp_path: Path) -> None:
    """The import runs in a child process, because a damaged file may crash CTranslate2, which is C++."""
    generator = random.Random(1)
    failures = 0
    for name in ("model.bin", "config.json", "shared_vocabulary.json", "source.spm"):
        for kind in ("missing", "truncated", "empty", "flipped"):
            folder = shutil.copytree(converted_model, tmp_path / "folder")
            data = bytearray((folder / name).read_bytes())
            for _ in range(20 if kind == "flipped" else 0):
                data[generator.randrange(min(len(data), 2000))] ^= 1 << generator.randrange(8)
            length = {"truncated": len(data) // 2, "empty": 0}.get(kind, len(data))
            (folder / name).unlink() if kind == "missing" else (folder / name).write_bytes(data[:length])
            try:
                import_model(folder, tmp_path / "out")
            except JumokError:
                failures += 1
                assert not list(tmp_path.glob("out*"))
            else:
                shutil.rmtree(tmp_path / "out")
            shutil.rmtree(folder)
    assert failures >= 10
