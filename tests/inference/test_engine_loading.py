"""`load` chooses the engine: converted where that is possible, torch where it is not, and says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from random_models import SMALL, random_model, sentences, small_vocabularies, write_model

import jumok
from jumok.decoding import Sampling
from jumok.engines import INT8_COSTS, converted, loading
from jumok.engines.cache import cache_folder
from jumok.errors import ModelFolderError, RecipeError, UnsupportedError
from jumok.evaluation import int8_costs
from jumok.recipe import make_recipe
from jumok.values import Pair

LINES = sentences(20, seed=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "model")


def texts(translator: jumok.Translator) -> list[str]:
    return [translation.text for translation in translator.translate(LINES)]


def run(code: str, *words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        input="the old house.\n\nthe tree.\n",
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_transformer_is_converted_and_its_folder_left_alone(folder: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    translator = jumok.load(folder)
    assert (translator.engine.name, translator.engine.why) == ("ctranslate2", "")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    plain = jumok.load(folder, engine="torch")
    assert plain.engine.name == "torch"
    same = [mine == other for mine, other in zip(texts(translator), texts(plain), strict=True)]
    assert sum(same) >= len(LINES) - 1


def test_alignments_are_those_of_the_model_itself(folder: Path) -> None:
    converted, plain = (jumok.load(folder, engine=engine) for engine in ("ctranslate2", "torch"))
    translation = converted.translate(LINES[:1])[0]
    assert translation.alignment == plain.align(translation.source, translation.text)
    ours, theirs = (one.attention(LINES[0], translation.text) for one in (converted, plain))
    assert all((ours[site].weights == theirs[site].weights).all() for site in theirs)


PLAIN_TRANSLATION = """
import sys
import jumok
translator = jumok.load(sys.argv[1])
print(translator.translate(["the old house."])[0].text)
print(translator.engine.name, *sorted({"torch", "numpy", "rich", "sacrebleu"} & set(sys.modules)))
translator.align("the old house.", "a tree.")
print("torch" in sys.modules)
"""

COMMAND = """
import sys
from jumok.cli import main
try:
    main(["translate", sys.argv[1]])
except SystemExit as end:
    assert not end.code, end.code
print(*sorted({"torch", "numpy", "rich", "sacrebleu"} & set(sys.modules)))
"""


@pytest.mark.medium
def test_a_plain_translation_imports_no_torch(folder: Path) -> None:
    [expected] = jumok.load(folder).translate(["the old house."])
    said, engine, aligned = run(PLAIN_TRANSLATION, folder).splitlines()
    assert said == expected.text
    assert engine == "ctranslate2"
    assert aligned == "True"  # attention is read from the model itself


@pytest.mark.medium
def test_the_command_imports_no_torch(folder: Path) -> None:
    expected = jumok.load(folder).translate(["the old house.", "", "the tree."])
    *said, imported = run(COMMAND, folder).splitlines()
    assert said == [translation.text for translation in expected]
    assert imported == ""


def test_a_stream_of_draws_goes_on_past_the_largest_seed(folder: Path) -> None:
    translator = jumok.load(folder, engine="ctranslate2")
    drawn = translator.stream(LINES, sampling=Sampling(seed=2**32 - 1), look_ahead=2)
    assert len(list(drawn)) == len(LINES)


def test_without_a_home_the_converted_model_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JUMOK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert "no home folder" in jumok.load(folder).engine.why


def test_what_cannot_be_converted_runs_on_torch_and_says_why(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "linear", encoder_attention="linear")
    translator = jumok.load(folder)
    assert translator.engine.name == "torch"
    assert translator.engine.why.startswith("CTranslate2 does not know the Linear")
    assert len(translator.translate(LINES)) == len(LINES)
    with pytest.raises(UnsupportedError, match="Choose the engine torch, or auto"):
        jumok.load(folder, engine="ctranslate2")


def test_a_missing_package_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert "ctranslate2 cannot be used" in jumok.load(folder).engine.why
    with pytest.raises(UnsupportedError, match="ctranslate2 cannot be used"):
        jumok.load(folder, engine="ctranslate2")


def test_a_cache_that_cannot_be_written_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    assert "JUMOK_CACHE" in jumok.load(folder).engine.why


def test_an_entry_that_cannot_be_loaded_is_made_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is whole as its manifest says, but no model of this CTranslate2."""
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    kept = loading.kept_files
    asked = []

    def first_of_all_odd(made_of: dict[str, object], make: object) -> dict[str, bytes]:
        asked.append(made_of)
        files = kept(made_of, make)  # type: ignore[arg-type]
        return {**files, "model.bin": b"odd"} if len(asked) == 1 else files

    monkeypatch.setattr(loading, "kept_files", first_of_all_odd)
    assert jumok.load(folder).engine.name == "ctranslate2"
    assert len(asked) == 2


def test_a_converted_model_that_cannot_be_run_here_runs_on_torch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        loading, "kept_files", lambda *_: {"config.json": b'{"places": 9}', "model.bin": b"odd"}
    )
    assert jumok.load(folder).engine.why.startswith("CTranslate2 cannot run the converted model (")
    with pytest.raises(UnsupportedError, match="Choose the engine torch, or auto"):
        jumok.load(folder, engine="ctranslate2")


@pytest.mark.parametrize(
    ("facts", "eight"),
    [
        ({INT8_COSTS: 0.19}, True),
        ({INT8_COSTS: -1}, True),
        ({INT8_COSTS: 0.2}, False),
        ({INT8_COSTS: None}, False),
        ({}, False),
    ],
)
def test_eight_bits_are_used_where_they_were_found_cheap(
    tmp_path: Path, facts: dict[str, object], eight: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    folder = write_model(tmp_path / "model", facts=facts)
    jumok.load(folder)
    [weights] = cache_folder().glob("engines/*/model.bin")
    assert (weights.stat().st_size < 0.6 * (folder / "weights.safetensors").stat().st_size + 140_000) is eight


def test_what_eight_bits_cost_is_not_known_where_torch_has_to_translate() -> None:
    vocabularies, pairs = small_vocabularies(), [Pair(line, line) for line in LINES]
    for places, known in ((40, False), (1024, True)):
        settings = {"positions": "learned", "places": places}
        model = random_model(pieces=vocabularies.target.size, **settings)
        recipe = make_recipe({"model": {**SMALL, **settings}})
        assert (int8_costs(model, vocabularies, recipe, pairs) is not None) is known


def test_damage_is_found_although_a_converted_copy_is_whole(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    jumok.load(folder)
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(ModelFolderError, match="sha256"):
        jumok.load(folder)


def test_an_engine_that_does_not_exist_is_refused(folder: Path) -> None:
    with pytest.raises(RecipeError, match='Did you mean "torch"'):
        jumok.load(folder, engine="troch")


EVERY_VECTOR = "avx2 avx512f avx512cd avx512vl avx512dq avx512bw avx512_vnni"


@pytest.mark.parametrize(
    ("facts", "before", "asked"),
    [
        (f"model name : x\nflags : fpu {EVERY_VECTOR} sha\n", None, "AVX512"),
        (f"flags : {EVERY_VECTOR}\n", "AVX2", "AVX2"),
        (f"flags : {EVERY_VECTOR.replace(' avx512_vnni', '')}\n", None, None),
        (f"flags : {EVERY_VECTOR.replace('avx512dq', 'avx512dqx')}\n", None, None),
        ("Features : neon\n", None, None),
        (None, None, None),
    ],
)
def test_wide_vectors_are_asked_for_where_the_processor_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: str | None, before: str | None, asked: str | None
) -> None:
    monkeypatch.setenv(converted.VECTORS, before or "")
    if before is None:
        monkeypatch.delenv(converted.VECTORS)
    if facts is not None:
        (tmp_path / "cpuinfo").write_text(facts)
    converted.ask_for_wide_vectors(tmp_path / "cpuinfo")
    assert os.environ.get(converted.VECTORS) == asked


def test_ctranslate2_runs_with_the_vectors_that_were_asked_for(folder: Path) -> None:
    code = "import os, sys, jumok; jumok.load(sys.argv[1]); print(os.environ.get('CT2_FORCE_CPU_ISA', ''))"
    clean = {name: value for name, value in os.environ.items() if name != converted.VECTORS}
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**clean, "CT2_VERBOSE": "1"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert f"Selected ISA: {done.stdout.strip()}" in done.stderr
