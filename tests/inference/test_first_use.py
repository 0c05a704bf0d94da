"""A child process loads an unchecked model folder first. If it crashes, an ordinary error is raised."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

import jumok
from jumok.config.recipe import make_recipe
from jumok.errors import ModelFolderError
from jumok.inference import first_use, loading
from jumok.inference.engines.ctranslate2_engine import CTranslate2Engine
from jumok.storage.folders import json_with_checksum
from jumok.storage.model_folder import ModelCard, read_stored_model, save_model
from jumok.storage.user_cache import cache_folder
from jumok.text.character_map import refuse_character_map
from jumok.text.class_names import ClassNames
from jumok.text.picture_tokenizer import PictureTokenizer
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_files import read_tokenizers, tokenizers_to_files
from support.random_models import write_model

if TYPE_CHECKING:
    from pathlib import Path

LINE = "the old house."


@pytest.fixture(autouse=True)
def temporary_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def recorded_checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the checks that child processes make, in order: "tokenizers" or "conversion"."""
    checks: list[str] = []
    real = first_use._run

    def record_and_run(library: str, *arguments: Any) -> bool:
        checks.append({"SentencePiece": "tokenizers", "CTranslate2": "conversion"}[library])
        return real(library, *arguments)

    monkeypatch.setattr(first_use, "_run", record_and_run)
    return checks


@pytest.fixture
def unchecked_folder(tmp_path: Path) -> Path:
    """A folder that is not on this user's list of checked folders."""
    folder = write_model(tmp_path / "strange")
    change_card(folder)
    return folder


def change_card(folder: Path, name: str | None = None, data: bytes = b"", **recipe: Any) -> None:
    """Replace a file or settings of a model folder, and the entries in its card.

    Without arguments, only the author in the card changes. In any case the folder is no longer on the list of
    checked folders.
    """
    content = json.loads((folder / "jumok.json").read_text())
    del content["checksum"]
    content["created_by"] = "somebody"
    for section, settings in recipe.items():
        content["recipe"].setdefault(section, {}).update(settings)
    if name is not None:
        (folder / name).write_bytes(data)
        content["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (folder / "jumok.json").write_bytes(json_with_checksum(content))


def test_a_model_of_this_user_is_loaded_without_a_child(tmp_path: Path, recorded_checks: list[str]) -> None:
    folder = write_model(tmp_path / "mine")
    assert jumok.load(folder).engine.name == "ctranslate2"
    assert recorded_checks == []


@pytest.mark.medium
def test_an_unchecked_folder_is_checked_once(unchecked_folder: Path, recorded_checks: list[str]) -> None:
    assert jumok.load(unchecked_folder, engine="torch").translate([LINE])[0].text
    assert recorded_checks == ["tokenizers"]
    first = jumok.load(unchecked_folder)
    assert first.engine.name == "ctranslate2"
    assert recorded_checks == ["tokenizers", "conversion"]
    assert len(list(cache_folder().glob("engines/*/model.bin"))) == 1  # stored by the child
    again = jumok.load(unchecked_folder)
    assert again.translate([LINE])[0].text == first.translate([LINE])[0].text
    assert recorded_checks == ["tokenizers", "conversion"]


@pytest.mark.medium
def test_the_first_use_of_a_folder_imports_no_torch(unchecked_folder: Path) -> None:
    """The child converts the model, so that this process never needs torch."""
    code = (
        "import sys, jumok; "
        f"jumok.load({str(unchecked_folder)!r}).translate([{LINE!r}]); "
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_without_a_list_of_checked_folders_every_use_is_a_first_use(
    unchecked_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded_checks: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "file"))
    for uses in (1, 2):
        assert jumok.load(unchecked_folder, engine="torch").translate([LINE])[0].text
        assert recorded_checks == ["tokenizers"] * uses


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_of_sentencepiece_raises_a_model_folder_error(
    unchecked_folder: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The child really crashes: only the code that it runs is replaced."""
    crash = f"import os; os.kill(os.getpid(), {int(number)})"
    monkeypatch.setattr(first_use, "_TRY_TOKENIZERS", crash)
    for _ in range(2):  # the folder is not remembered as checked
        with pytest.raises(
            ModelFolderError, match=rf"SentencePiece crashed on it \({number.name}\)\. It is damaged"
        ):
            jumok.load(unchecked_folder, engine="torch")


def test_a_crash_of_ctranslate2_raises_a_model_folder_error(
    unchecked_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_use, "_TRY_CONVERSION", "import os; os.abort()")
    for _ in range(2):
        with pytest.raises(ModelFolderError, match=r"CTranslate2 crashed on it \(SIGABRT\)"):
            jumok.load(unchecked_folder)
    # The engine torch needs no CTranslate2.
    assert jumok.load(unchecked_folder, engine="torch").translate([LINE])[0].text


def test_an_unknown_exit_code_is_treated_as_a_crash(
    unchecked_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_use, "_TRY_TOKENIZERS", "import os; os._exit(134)")
    with pytest.raises(ModelFolderError, match=r"SentencePiece crashed on it \(exit code 134\)"):
        jumok.load(unchecked_folder, engine="torch")


def write_picture_model(folder: Path, **source: Any) -> Path:
    """Write a model folder that is not on the list of checked folders. Its tokenizer reads 8 × 8 pixels."""
    settings = {"kind": "pictures", "size": 8, "patch_size": 2, "colour": "rgb", **source}
    recipe = make_recipe({"source": settings, "model": {"family": "encoder-only"}})
    pictures = PictureTokenizer(size=8, patch_size=2, channels=3)
    files = tokenizers_to_files(TokenizerPair(pictures, ClassNames(["cat", "dog"]), shared=False))
    save_model(folder, ModelCard(recipe), {"w": torch.zeros(1)}, files)
    change_card(folder)
    return folder


def test_a_picture_model_passes_its_first_use(tmp_path: Path, recorded_checks: list[str]) -> None:
    stored = read_stored_model(write_picture_model(tmp_path / "pictures"))
    for _ in range(2):
        assert loading.open_tokenizers(stored).source.token_shape == (12,)  # 2 × 2 pixels of 3 channels
    assert recorded_checks == ["tokenizers"]


@pytest.mark.parametrize("source", [{"size": 16}, {"patch_size": 4}, {"colour": "grey"}, {"kind": "text"}])
def test_a_picture_tokenizer_that_does_not_fit_the_recipe_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any]
) -> None:
    stored = read_stored_model(write_picture_model(tmp_path / "pictures", **source))
    monkeypatch.setattr(loading, "check_tokenizers", lambda _: None)  # no child: faster
    with pytest.raises(ModelFolderError, match="recipe and its source tokenizer do not fit"):
        loading.open_tokenizers(stored)


def test_the_code_for_child_processes_is_ascii() -> None:
    assert (first_use._TRY_TOKENIZERS + first_use._TRY_CONVERSION).isascii()


def test_a_child_that_hangs_raises_a_model_folder_error(
    unchecked_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_use, "_TRY_TOKENIZERS", "import time; time.sleep(60)")
    monkeypatch.setattr(first_use, "MAX_SECONDS", 0.2)
    with pytest.raises(
        ModelFolderError, match=r"SentencePiece did not load it within .* Perhaps it is damaged"
    ):
        jumok.load(unchecked_folder, engine="torch")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_if_a_child_is_killed_the_message_says_that_damage_is_only_possible(
    unchecked_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_use, "_TRY_TOKENIZERS", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(ModelFolderError, match=r"killed, perhaps for lack of memory\. Perhaps it is damaged"):
        jumok.load(unchecked_folder, engine="torch")


def test_a_folder_that_changes_during_its_check_is_refused(unchecked_folder: Path) -> None:
    stored = read_stored_model(unchecked_folder)
    change_card(unchecked_folder, training={"seed": 7})
    with pytest.raises(ModelFolderError, match="was changed while it was being loaded"):
        first_use.check_conversion(stored)


# --- harmful files ---


def field(number: int, data: bytes) -> bytes:
    """Return a field of bytes of a protocol buffer."""
    length, encoded = len(data), b""
    while length > 0x7F:
        encoded, length = encoded + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + encoded + bytes([length]) + data


CHARACTER_MAP = struct.pack("<I", 1024) + os.urandom(1500)


@pytest.mark.parametrize("spec", [3, 5], ids=["normalizer_spec", "denormalizer_spec"])
def test_a_character_map_is_refused(unchecked_folder: Path, spec: int) -> None:
    """SentencePiece merges repeated messages, so the map can be appended."""
    pieces = (unchecked_folder / "pieces.model").read_bytes()
    # These two calls raise no error: there is no map, or the map is empty.
    refuse_character_map(pieces)
    refuse_character_map(pieces + field(spec, field(2, b"")))
    change_card(unchecked_folder, "pieces.model", pieces + field(spec, field(2, CHARACTER_MAP)))
    with pytest.raises(ModelFolderError, match="precompiled character map"):
        jumok.load(unchecked_folder, engine="torch")


def test_a_character_map_in_a_run_folder_is_refused_too(unchecked_folder: Path) -> None:
    """A run folder has the tokenizer without a manifest."""
    pieces = (unchecked_folder / "pieces.model").read_bytes()
    assert read_tokenizers(unchecked_folder, shared=True).shared
    (unchecked_folder / "pieces.model").write_bytes(pieces + field(3, field(2, CHARACTER_MAP)))
    with pytest.raises(ModelFolderError, match=r"pieces\.model: .*precompiled character map"):
        read_tokenizers(unchecked_folder, shared=True)


@pytest.mark.parametrize(
    "tail",
    [b"\x1a", b"\x1a\x05ab", b"\x0a\x7f", b"\x1b", b"\x9a\x80\x80\x80\x10\x00", b"\xff" * 11],
    ids=["no length", "cut", "cut token", "group", "tag of 33 bits", "endless number"],
)
def test_a_tokenizer_that_is_no_protocol_buffer_is_refused(unchecked_folder: Path, tail: bytes) -> None:
    pieces = (unchecked_folder / "pieces.model").read_bytes()
    with pytest.raises(ModelFolderError, match="not a protocol buffer"):
        refuse_character_map(pieces + tail)


def test_an_unusual_encoding_does_not_hide_a_character_map() -> None:
    spec = field(2, CHARACTER_MAP)
    long_tag = b"\x9a\x00" + field(3, spec)[1:]  # 0x1A in two bytes
    for data in (long_tag, field(4, b"x") + b"\x30\x01" + field(3, spec), field(3, field(1, b"n") + spec)):
        with pytest.raises(ModelFolderError, match="precompiled character map"):
            refuse_character_map(data)


@pytest.mark.parametrize("engine", ["torch", pytest.param("auto", marks=pytest.mark.medium)])
def test_weights_that_are_not_finite_are_refused(unchecked_folder: Path, engine: str) -> None:
    weights = load_tensors((unchecked_folder / "weights.safetensors").read_bytes())
    next(iter(weights.values())).view(-1)[0] = torch.nan
    change_card(unchecked_folder, "weights.safetensors", save_tensors(weights))
    with pytest.raises(ModelFolderError, match="not finite"):
        jumok.load(unchecked_folder, engine=engine)


@pytest.mark.medium
def test_a_huge_maximum_length_does_not_make_a_huge_converted_model(unchecked_folder: Path) -> None:
    change_card(unchecked_folder, search={"max_length_ratio": 1000.0})
    translator = jumok.load(unchecked_folder)
    assert translator.engine.name == "ctranslate2"
    [model] = cache_folder().glob("engines/*/model.bin")
    assert model.stat().st_size < 3_000_000  # without a limit 13 MB: a table of 200,010 positions
    assert len(translator.translate([LINE * 9], max_length_ratio=1.0)) == 1


def test_torch_runs_sources_that_are_too_long_for_any_converted_model(unchecked_folder: Path) -> None:
    change_card(unchecked_folder, training={"max_sentence_tokens": 1_000_000})
    translator = jumok.load(unchecked_folder)
    assert translator.engine.name == "torch"
    assert "max_sentence_tokens is 1,000,000" in translator.engine.fallback_reason


# --- errors of CTranslate2 ---


@pytest.mark.parametrize(
    "error", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), ValueError(), MemoryError()]
)
def test_after_any_error_of_ctranslate2_the_model_is_converted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    folder = write_model(tmp_path / "mine")
    jumok.load(folder)
    real, errors = CTranslate2Engine._load, [error]

    def failing_once(self: CTranslate2Engine, *, workers: int) -> Any:
        if errors:
            raise errors.pop()
        return real(self, workers=workers)

    monkeypatch.setattr(CTranslate2Engine, "_load", failing_once)
    evicted = []
    evict = loading.evict
    monkeypatch.setattr(loading, "evict", lambda key: (evicted.append(key), evict(key)))
    assert jumok.load(folder).engine.name == "ctranslate2"
    assert len(evicted) == 1
