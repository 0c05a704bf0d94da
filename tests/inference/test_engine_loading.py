"""`load` chooses the engine: the converted model if possible, else torch with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jumok
from jumok.config.recipe import make_recipe
from jumok.errors import ModelFolderError, RecipeError, UnsupportedError
from jumok.evaluation.int8_cost import measure_int8_cost
from jumok.inference import loading
from jumok.inference.engines import ctranslate2_engine
from jumok.inference.loading import INT8_COSTS, MAX_INT8_COST
from jumok.inference.search.plan import Sampling
from jumok.interop.conversion import ImportChoices
from jumok.interop.import_worker import import_package
from jumok.interop.package import open_package
from jumok.storage.user_cache import cache_folder
from jumok.types import Pair
from support.random_models import SMALL, random_model, sentences, small_tokenizers, write_model

LINES = sentences(20, seed=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "model")


def translated_lines(translator: jumok.Translator) -> list[str]:
    return [translation.text for translation in translator.translate(LINES)]


def run(code: str, *arguments: str | Path) -> str:
    """Run Python code in a new process, with three lines on its standard input. Return its output."""
    process = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        input="the old house.\n\nthe tree.\n",
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_transformer_is_converted_and_its_folder_is_not_changed(folder: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    translator = jumok.load(folder)
    assert (translator.engine.name, translator.engine.fallback_reason) == ("ctranslate2", "")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    plain = jumok.load(folder, engine="torch")
    assert plain.engine.name == "torch"
    pairs = zip(translated_lines(translator), translated_lines(plain), strict=True)
    # The engines round differently, so one line may differ.
    assert sum(converted == expected for converted, expected in pairs) >= len(LINES) - 1


def test_alignments_and_attention_do_not_depend_on_the_engine(folder: Path) -> None:
    converted, plain = (jumok.load(folder, engine=engine) for engine in ("ctranslate2", "torch"))
    translation = converted.translate(LINES[:1])[0]
    assert translation.alignment == plain.align(translation.source, translation.text)
    actual, expected = (translator.attention(LINES[0], translation.text) for translator in (converted, plain))
    assert all((actual[site].weights == expected[site].weights).all() for site in expected)


TRANSLATION = """
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
def test_a_translation_by_a_converted_model_imports_no_torch(folder: Path) -> None:
    [expected] = jumok.load(folder).translate(["the old house."])
    text, engine_and_imports, torch_imported = run(TRANSLATION, folder).splitlines()
    assert text == expected.text
    assert engine_and_imports == "ctranslate2"
    assert torch_imported == "True"  # `align` needs it: attention is read from the model itself


@pytest.mark.medium
def test_the_command_translate_imports_no_torch(folder: Path) -> None:
    expected = jumok.load(folder).translate(["the old house.", "", "the tree."])
    *lines, imported = run(COMMAND, folder).splitlines()
    assert lines == [translation.text for translation in expected]
    assert imported == ""


def test_a_stream_may_begin_with_the_largest_seed(folder: Path) -> None:
    translator = jumok.load(folder, engine="ctranslate2")
    samples = translator.stream(LINES, sampling=Sampling(seed=2**32 - 1), look_ahead=2)
    assert len(list(samples)) == len(LINES)


def test_without_a_home_folder_the_engine_is_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUMOK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert "no home folder" in jumok.load(folder).engine.fallback_reason


def test_a_model_that_cannot_be_converted_runs_on_torch_with_the_reason(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "linear", encoder_attention="linear")
    translator = jumok.load(folder)
    assert translator.engine.name == "torch"
    assert translator.engine.fallback_reason.startswith("CTranslate2 does not know the Linear")
    assert len(translator.translate(LINES)) == len(LINES)
    with pytest.raises(UnsupportedError, match="Choose the engine torch, or auto"):
        jumok.load(folder, engine="ctranslate2")


def test_a_missing_package_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert "ctranslate2 cannot be used" in jumok.load(folder).engine.fallback_reason
    with pytest.raises(UnsupportedError, match="ctranslate2 cannot be used"):
        jumok.load(folder, engine="ctranslate2")


def test_a_cache_that_cannot_be_written_is_reported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    assert "JUMOK_CACHE" in jumok.load(folder).engine.fallback_reason


def test_a_model_that_only_ctranslate2_runs_needs_no_cache_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, out = tmp_path / "files", tmp_path / "model"
    jumok.export(folder, files, "ctranslate2")
    choices = ImportChoices(source_language="en", target_language="ko")
    import_package(open_package(files), files, out, choices)
    expected = translated_lines(jumok.load(out))
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    for check in ("check_tokenizers", "check_conversion"):
        monkeypatch.setattr(loading, check, lambda _: None)  # no child: faster
    assert translated_lines(jumok.load(out)) == expected


def test_a_model_is_converted_again_if_its_cached_conversion_cannot_be_loaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cached files match their manifest, but the installed CTranslate2 cannot load them."""
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    real = loading.get_or_create
    keys = []

    def unloadable_at_first(key: dict[str, object], create: object, *, model: str) -> dict[str, bytes]:
        keys.append(key)
        files = real(key, create, model=model)  # type: ignore[arg-type]
        return {**files, "model.bin": b"invalid"} if len(keys) == 1 else files

    monkeypatch.setattr(loading, "get_or_create", unloadable_at_first)
    assert jumok.load(folder).engine.name == "ctranslate2"
    assert len(keys) == 2


def test_a_converted_model_that_cannot_be_loaded_runs_on_torch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        loading,
        "get_or_create",
        lambda *_, model: {"config.json": b'{"max_positions": 9}', "model.bin": b"invalid"},
    )
    assert jumok.load(folder).engine.fallback_reason.startswith(
        "CTranslate2 cannot run the converted model ("
    )
    with pytest.raises(UnsupportedError, match="Choose the engine torch, or auto"):
        jumok.load(folder, engine="ctranslate2")


@pytest.mark.parametrize(
    ("facts", "uses_int8"),
    [
        ({INT8_COSTS: MAX_INT8_COST - 0.01}, True),
        ({INT8_COSTS: -1}, True),  # the model was even better with int8
        ({INT8_COSTS: MAX_INT8_COST}, False),
        ({INT8_COSTS: None}, False),
        ({}, False),
    ],
)
def test_int8_is_used_if_it_was_measured_to_cost_little(
    tmp_path: Path, facts: dict[str, object], uses_int8: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    folder = write_model(tmp_path / "model", facts=facts)
    jumok.load(folder)
    [weights] = cache_folder().glob("engines/*/model.bin")
    # A converted model also stores its table of 2048 positions · width 16 as float32: 131,072 bytes.
    max_int8_size = 0.6 * (folder / "weights.safetensors").stat().st_size + 140_000
    assert (weights.stat().st_size < max_int8_size) is uses_int8


def test_the_cost_of_int8_is_not_measured_if_only_torch_can_translate() -> None:
    tokenizers, pairs = small_tokenizers(), [Pair(line, line) for line in LINES]
    # 40 positions are too few for the maximum length of a translation, so CTranslate2 refuses to translate.
    for max_positions, is_known in ((40, False), (1024, True)):
        settings = {"positions": "learned", "max_positions": max_positions}
        model = random_model(vocab_size=tokenizers.target.vocab_size, **settings)
        recipe = make_recipe({"model": {**SMALL, **settings}})
        assert (measure_int8_cost(model, tokenizers, recipe, pairs) is not None) is is_known


def test_a_damaged_model_is_refused_even_if_its_converted_copy_is_intact(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    jumok.load(folder)
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(ModelFolderError, match="sha256"):
        jumok.load(folder)


def test_an_engine_that_does_not_exist_is_refused(folder: Path) -> None:
    with pytest.raises(RecipeError, match='Did you mean "torch"'):
        jumok.load(folder, engine="troch")


AVX512_FLAGS = "avx2 avx512f avx512cd avx512vl avx512dq avx512bw avx512_vnni"


@pytest.mark.parametrize(
    ("cpu_info", "initial_value", "final_value"),
    [
        (f"model name : x\nflags : fpu {AVX512_FLAGS} sha\n", None, "AVX512"),
        (f"flags : {AVX512_FLAGS}\n", "AVX2", "AVX2"),
        (f"flags : {AVX512_FLAGS.replace(' avx512_vnni', '')}\n", None, None),
        (f"flags : {AVX512_FLAGS.replace('avx512dq', 'avx512dqx')}\n", None, None),
        ("Features : neon\n", None, None),
        (None, None, None),
    ],
    ids=["all flags", "the user has chosen", "no VNNI", "only a longer name", "ARM", "no file"],
)
def test_avx512_is_requested_if_the_processor_has_it_and_the_user_has_not_chosen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cpu_info: str | None,
    initial_value: str | None,
    final_value: str | None,
) -> None:
    # `setenv` comes first, so that pytest restores the variable even if it is deleted.
    monkeypatch.setenv(ctranslate2_engine.ISA_VARIABLE, initial_value or "")
    if initial_value is None:
        monkeypatch.delenv(ctranslate2_engine.ISA_VARIABLE)
    if cpu_info is not None:
        (tmp_path / "cpuinfo").write_text(cpu_info)
    ctranslate2_engine.request_avx512(tmp_path / "cpuinfo")
    assert os.environ.get(ctranslate2_engine.ISA_VARIABLE) == final_value


def test_ctranslate2_uses_the_requested_instructions(folder: Path) -> None:
    """If jumok requests no instructions on this processor, the test passes with any."""
    code = "import os, sys, jumok; jumok.load(sys.argv[1]); print(os.environ.get('CT2_FORCE_CPU_ISA', ''))"
    environment = {
        name: value for name, value in os.environ.items() if name != ctranslate2_engine.ISA_VARIABLE
    }
    process = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**environment, "CT2_VERBOSE": "1"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert f"Selected ISA: {process.stdout.strip()}" in process.stderr
