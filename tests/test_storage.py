"""Folders are written atomically and verified when they are read; model folders; the user's cache folder."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import jumok.storage
from jumok.config.recipe import make_recipe
from jumok.errors import ModelFolderError, StorageError
from jumok.storage.folders import (
    json_with_checksum,
    new_folder,
    remove_folder,
    remove_leftovers,
    verify_folder,
    write_and_sync,
    write_file,
    write_folder,
)
from jumok.storage.model_folder import (
    CorpusRecord,
    ModelCard,
    ScoreRecord,
    read_model_with_weights,
    read_stored_model,
    save_model,
    store_shortlist,
)
from jumok.storage.tensors import load_module_weights, module_weights, tensors_to_bytes
from jumok.storage.user_cache import is_checked, private_folder, remember_checked
from jumok.types import ReadOut

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {"a.bin": b"alpha" * 100, "b.bin": b"", "c.txt": "다람쥐".encode()}


def write(folder: Path) -> None:
    write_folder(folder, FILES.items(), metadata={"answer": 42})


@pytest.fixture
def card() -> ModelCard:
    return ModelCard(
        recipe=make_recipe({"languages": {"source": "en", "target": "ko"}, "model": {"size": "tiny"}}),
        scores={"bleu": ScoreRecord(31.5, "nrefs:1|case:mixed")},
        read_out=ReadOut(heads=((2, 0), (1, 3)), shift=1),
        corpora=(CorpusRecord("말뭉치.tsv", 1000, "abc"),),
        facts={"steps": 7},
    )


@pytest.fixture
def model(tmp_path: Path, card: ModelCard) -> Path:
    folder = tmp_path / "model"
    save_model(folder, card, {"w": torch.arange(6.0).reshape(2, 3)}, {"pieces.model": b"tokens"})
    return folder


def rewrite_card(folder: Path, change: Any) -> None:
    """Change jumok.json as an attacker would: with a matching checksum."""
    path = folder / "jumok.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content.pop("checksum")
    change(content)
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    content["checksum"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(content), encoding="utf-8")


def _same_json(one: bytes, other: bytes) -> bool:
    """Return whether only white space differs."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


class TestWriteFolder:
    def test_a_folder_is_read_back(self, tmp_path: Path) -> None:
        write(tmp_path / "folder")
        assert verify_folder(tmp_path / "folder") == FILES
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]

    @pytest.mark.parametrize("error_number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
    @pytest.mark.parametrize("failing_call", range(5))  # three files, the manifest and the folder
    def test_a_failing_disk_leaves_no_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_number: int, failing_call: int
    ) -> None:
        calls = iter(range(100))
        real = os.fsync

        def fsync(descriptor: int) -> None:
            if next(calls) == failing_call:
                raise OSError(error_number, os.strerror(error_number))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError) as caught:
            write_folder(tmp_path / "new", FILES.items(), failure_note="The old one is intact.")
        assert "The old one is intact." in str(caught.value)
        assert str(tmp_path / "new") in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    def test_an_error_while_files_are_made_leaves_no_files(self, tmp_path: Path) -> None:
        def files() -> Any:
            yield "a", b"a"
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_folder(tmp_path / "new", files())
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk_is_named_with_advice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match=r"the disk is full.*Free some space"):
            write(tmp_path / "new")

    def test_a_parent_that_is_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(StorageError, match="could not be written"):
            write(tmp_path / "file" / "new")

    def test_write_file_replaces_the_file_or_leaves_it_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        write_file(path, b"one")
        write_file(path, b"two")

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError):
            write_file(path, b"three")
        assert path.read_bytes() == b"two"
        assert list(tmp_path.iterdir()) == [path]

    def test_leftovers_of_killed_processes_are_removed(self, tmp_path: Path) -> None:
        write(tmp_path / "folder")
        (tmp_path / "folder.tmp-123").mkdir()
        (tmp_path / "folder.tmp-123" / "half").write_text("x")
        (tmp_path / "run.json.tmp-9").write_text("x")
        remove_leftovers(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]


class TestVerifyFolder:
    @pytest.mark.parametrize("name", ["a.bin", "c.txt", "manifest.json"])
    def test_flipped_bits_are_found(self, tmp_path: Path, name: str) -> None:
        write(tmp_path / "folder")
        path = tmp_path / "folder" / name
        original = path.read_bytes()
        for position in range(0, len(original), max(len(original) // 40, 1)):
            for bit in (1, 16):
                changed = bytearray(original)
                changed[position] ^= bit
                path.write_bytes(bytes(changed))
                if name == "manifest.json" and _same_json(original, bytes(changed)):
                    continue
                with pytest.raises(ModelFolderError, match=name):
                    verify_folder(tmp_path / "folder")

    @pytest.mark.parametrize("name", ["a.bin", "c.txt", "manifest.json"])
    @pytest.mark.parametrize("keep", [0, 3, -1])  # how many bytes are kept; -1: all but one
    def test_truncation_is_found_and_named(self, tmp_path: Path, name: str, keep: int) -> None:
        write(tmp_path / "folder")
        path = tmp_path / "folder" / name
        path.write_bytes(path.read_bytes()[:keep])
        if name == "manifest.json" and keep == -1:
            verify_folder(tmp_path / "folder")  # only the last newline is gone
            return
        with pytest.raises(ModelFolderError, match=name):
            verify_folder(tmp_path / "folder")

    @pytest.mark.parametrize("name", [*FILES, "manifest.json"])
    def test_a_deleted_file_is_named(self, tmp_path: Path, name: str) -> None:
        write(tmp_path / "folder")
        (tmp_path / "folder" / name).unlink()
        with pytest.raises(ModelFolderError, match=f"{name} cannot be used: it is missing"):
            verify_folder(tmp_path / "folder")

    def test_an_appended_byte_is_found(self, tmp_path: Path) -> None:
        write(tmp_path / "folder")
        with (tmp_path / "folder" / "a.bin").open("ab") as file:
            file.write(b"x")
        with pytest.raises(ModelFolderError, match=r"a\.bin"):
            verify_folder(tmp_path / "folder")


class TestModelFolder:
    def test_a_model_folder_is_read_back(self, model: Path, card: ModelCard) -> None:
        stored_card, weights, tokenizers = read_model_with_weights(model)
        assert stored_card == card
        assert torch.equal(weights["w"], torch.arange(6.0).reshape(2, 3))
        assert tokenizers == {"pieces.model": b"tokens"}

    def test_two_tokenizers_are_read_back(self, tmp_path: Path, card: ModelCard) -> None:
        files = {"source.model": b"s", "target.model": b"t"}
        save_model(tmp_path / "m", card, {"w": torch.zeros(1)}, files)
        assert read_model_with_weights(tmp_path / "m")[2] == files

    def test_a_missing_tokenizer_file_is_refused(self, tmp_path: Path, card: ModelCard) -> None:
        with pytest.raises(ModelFolderError, match=r"Received: source\.model"):
            save_model(tmp_path / "m", card, {}, {"source.model": b"s"})

    def test_an_existing_folder_is_not_overwritten(self, model: Path, card: ModelCard) -> None:
        with pytest.raises(StorageError, match="exists already"):
            save_model(model, card, {"w": torch.zeros(1)}, {"pieces.model": b""})

    @pytest.mark.parametrize("name", ["weights.safetensors", "pieces.model", "jumok.json"])
    def test_a_damaged_file_is_named(self, model: Path, name: str) -> None:
        data = bytearray((model / name).read_bytes())
        data[len(data) // 2] ^= 4
        (model / name).write_bytes(bytes(data))
        with pytest.raises(ModelFolderError, match=name):
            read_model_with_weights(model)

    @pytest.mark.parametrize(
        "name", ["../secret", "/etc/passwd", "..", "sub/file", "a\\b", "", "other.bin", "weights.bin"]
    )
    def test_unknown_names_are_refused(self, model: Path, name: str) -> None:
        (model.parent / "secret").write_text("s")
        rewrite_card(model, lambda card: card["files"].update({name: {"sha256": "", "size": 1}}))
        with pytest.raises(ModelFolderError, match="lists a file"):
            read_model_with_weights(model)

    @pytest.mark.parametrize("name", ["weights.safetensors", "pieces.model", "jumok.json"])
    def test_symbolic_links_are_not_followed(self, model: Path, name: str) -> None:
        (model / name).rename(model.parent / "elsewhere")
        (model / name).symlink_to(model.parent / "elsewhere")
        with pytest.raises(ModelFolderError, match="symbolic link"):
            read_model_with_weights(model)

    def test_pipes_and_folders_are_not_read(self, model: Path) -> None:
        (model / "pieces.model").unlink()
        for make in (os.mkfifo, os.mkdir):
            make(model / "pieces.model")
            with pytest.raises(ModelFolderError, match="not a regular file"):
                read_model_with_weights(model)
            (model / "pieces.model").rename(model.parent / make.__name__)

    def test_a_shortlist_is_added_and_replaced(self, model: Path, card: ModelCard) -> None:
        assert read_stored_model(model).shortlist is None
        store_shortlist(model, b"\t5\n", {"shortlist_costs": 0.5, "shortlist_speed": 1.5})
        store_shortlist(model, b"\t5 6\n", {"shortlist_costs": 0.25, "shortlist_speed": 1.25})
        stored = read_stored_model(model)
        assert stored.shortlist == b"\t5 6\n"
        assert stored.card.facts == {**card.facts, "shortlist_costs": 0.25, "shortlist_speed": 1.25}
        assert replace(stored.card, facts=card.facts) == card
        assert stored.tokenizers == {"pieces.model": b"tokens"}
        (model / "shortlist.txt").write_bytes(b"\t5 7\n")
        with pytest.raises(ModelFolderError, match=r"shortlist\.txt"):
            read_stored_model(model)

    # The card, the shortlist, the card again; after each file its folder.
    @pytest.mark.parametrize("failing_call", range(6))
    def test_an_error_while_a_shortlist_is_stored_leaves_a_valid_model(
        self, model: Path, monkeypatch: pytest.MonkeyPatch, failing_call: int
    ) -> None:
        store_shortlist(model, b"\t5\n", {"shortlist_costs": 0.5})
        calls, real = iter(range(100)), os.fsync

        def fsync(descriptor: int) -> None:
            if next(calls) == failing_call:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match="The model itself is intact"):
            store_shortlist(model, b"\t5 6\n", {"shortlist_costs": 0.25})
        stored = read_stored_model(model)
        cost = stored.card.facts.get("shortlist_costs")
        assert (stored.shortlist, cost) in [(b"\t5\n", 0.5), (None, None), (b"\t5 6\n", 0.25)]

    def test_a_newer_format_says_what_to_do(self, model: Path) -> None:
        rewrite_card(model, lambda card: card.update(format=99))
        with pytest.raises(ModelFolderError, match=r"newer jumok\. Received format 99.*pip install -U jumok"):
            read_model_with_weights(model)

    def test_an_older_format_says_what_to_do(self, model: Path) -> None:
        def older(card: dict[str, Any]) -> None:
            card.update(format=1, read_out={"layer": 2, "head": None, "shift": 0})

        rewrite_card(model, older)
        with pytest.raises(ModelFolderError, match=r"older jumok\. Received format 1.*Train the model again"):
            read_model_with_weights(model)

    @pytest.mark.parametrize(
        "change",
        [
            lambda card: card.update(format="1"),
            lambda card: card.pop("recipe"),
            lambda card: card.update(recipe={"model": {"wdith": 3}}),
            lambda card: card.update(recipe=3),
            lambda card: card.update(scores={"bleu": 3}),
            lambda card: card.update(scores={"bleu": {"value": "high", "signature": "x"}}),
            lambda card: card.update(scores={"bleu": {"value": 3.0, "signature": 7}}),
            lambda card: card.update(scores={"bleu": {"value": math.nan, "signature": "x"}}),
            lambda card: card.update(read_out={"floor": 3}),
            lambda card: card.update(read_out={"heads": [[1, "x"]], "shift": 0}),
            lambda card: card.update(corpora=[{"name": "x", "pairs": "many", "fingerprint": "f"}]),
            lambda card: card.update(facts=3),
            lambda card: card.update(facts=[["steps", 3]]),
            lambda card: card.update(facts={"steps": {"a": {}}}),
            lambda card: card.update(facts={"steps": math.inf}),
            lambda card: card.update(created_by=[1]),
            lambda card: card["files"].pop("weights.safetensors"),
            lambda card: card["files"].pop("pieces.model"),
            lambda card: card["files"].update({"pieces.model": 3}),
            lambda card: card.update(files=[]),
        ],
    )
    def test_invalid_cards_are_model_folder_errors(self, model: Path, change: Any) -> None:
        rewrite_card(model, change)
        with pytest.raises(ModelFolderError):
            read_model_with_weights(model)

    def test_an_invalid_field_is_named(self, model: Path) -> None:
        rewrite_card(model, lambda card: card["corpora"][0].update(pairs="many"))
        with pytest.raises(ModelFolderError, match=r"jumok\.json .*corpora\.0\.pairs is 'many'"):
            read_model_with_weights(model)

    def test_a_lone_surrogate_is_refused(self, model: Path) -> None:
        text = (model / "jumok.json").read_text(encoding="utf-8").replace("말뭉치", "\\ud800")
        (model / "jumok.json").write_text(text, encoding="utf-8")
        with pytest.raises(ModelFolderError, match=r"jumok\.json .*surrogates not allowed"):
            read_model_with_weights(model)

    def test_deeply_nested_json_is_refused(self, model: Path) -> None:
        (model / "jumok.json").write_text("[" * 100_000)
        with pytest.raises(ModelFolderError, match="not JSON"):
            read_model_with_weights(model)

    def test_weights_that_are_not_safetensors_are_refused(self, model: Path) -> None:
        data = b"\x80\x04pickle?"
        (model / "weights.safetensors").write_bytes(data)
        entry = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        rewrite_card(model, lambda card: card["files"].update({"weights.safetensors": entry}))
        with pytest.raises(ModelFolderError, match="not a safetensors file"):
            read_model_with_weights(model)

    def test_a_foreign_folder_is_described(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("{}")
        with pytest.raises(ModelFolderError, match=r"not a jumok model folder .*Received: config\.json"):
            read_model_with_weights(tmp_path)

    def test_for_a_folder_with_a_model_in_it_the_error_names_the_model(self, model: Path) -> None:
        with pytest.raises(ModelFolderError, match="Did you mean"):
            read_model_with_weights(model.parent)

    def test_a_missing_folder_and_a_file_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFolderError, match="There is no folder"):
            read_model_with_weights(tmp_path / "nowhere")
        (tmp_path / "file").write_text("")
        with pytest.raises(ModelFolderError, match="is a file"):
            read_model_with_weights(tmp_path / "file")

    def test_storage_unpickles_nothing(self) -> None:
        files = list(Path(jumok.storage.__path__[0]).glob("*.py"))
        assert len(files) > 1
        for file in files:
            text = file.read_text(encoding="utf-8")
            assert "torch.load" not in text
            assert "import pickle" not in text


class TestWeights:
    def tied_module(self) -> torch.nn.Module:
        module = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2)})
        module["b"].weight = module["a"].weight
        module.register_buffer("stored", torch.ones(2))
        module.register_buffer("transient", torch.ones(2), persistent=False)
        return module

    def test_tied_weights_are_stored_once(self) -> None:
        assert set(module_weights(self.tied_module())) == {"a.weight", "a.bias", "b.bias", "stored"}

    def test_loaded_weights_equal_the_stored_weights_and_stay_tied(self) -> None:
        one, other = self.tied_module(), self.tied_module()
        load_module_weights(other, module_weights(one))
        for name, tensor in one.state_dict().items():
            assert torch.equal(tensor, other.state_dict()[name])
        assert other["b"].weight is other["a"].weight  # type: ignore[index]

    def test_all_weights_that_do_not_fit_are_named(self) -> None:
        weights = module_weights(self.tied_module())
        del weights["a.bias"]
        weights["new"] = torch.zeros(1)
        with pytest.raises(ModelFolderError, match=r"2 weights do not fit the model .*: a\.bias, new"):
            load_module_weights(self.tied_module(), weights)

    def test_equal_weights_give_equal_bytes(self) -> None:
        one = {"b": torch.ones(2), "a": torch.zeros(3)}
        assert tensors_to_bytes(one) == tensors_to_bytes(dict(reversed(one.items())))


def test_a_new_folder_appears_only_when_its_block_ends(tmp_path: Path) -> None:
    with new_folder(tmp_path / "new", failure_note="Nothing is lost.") as temporary:
        write_and_sync(temporary / "file", b"content")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new" / "file").read_bytes() == b"content"
    with pytest.raises(StorageError), new_folder(tmp_path / "other", failure_note="") as temporary:
        write_and_sync(temporary / "missing" / "file", b"half")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_writers_with_the_same_process_id_use_different_temporary_files(tmp_path: Path) -> None:
    """Two containers may share a folder, and in both the process id may be 1."""

    def data_during_another_write() -> Iterator[bytes]:
        yield b"one "
        write_file(tmp_path / "file", b"other")
        yield b"whole"

    write_file(tmp_path / "file", data_during_another_write())
    assert (tmp_path / "file").read_bytes() == b"one whole"
    with new_folder(tmp_path / "folder", failure_note="", replace=True) as one:
        (one / "a").write_text("one")
        with new_folder(tmp_path / "folder", failure_note="") as other:
            (other / "a").write_text("other")
    assert (tmp_path / "folder" / "a").read_text() == "one"


def test_a_new_folder_replaces_an_old_one_only_if_allowed(tmp_path: Path) -> None:
    write(tmp_path / "old")
    with (
        pytest.raises(StorageError, match="could not be written"),
        new_folder(tmp_path / "old", failure_note="The old one is intact."),
    ):
        pass
    assert verify_folder(tmp_path / "old") == FILES
    with new_folder(tmp_path / "old", failure_note="", replace=True) as temporary:
        write_and_sync(temporary / "file", b"new")
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["file"]
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_a_kill_between_the_two_renames_of_a_replacement_keeps_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, after_kill = tmp_path / "run", tmp_path / "after kill"
    write(folder / "model")
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if target == folder / "model":
            shutil.copytree(folder, after_kill)  # what a kill at this moment would leave
        return real(path, target)

    with new_folder(folder / "model", failure_note="", replace=True) as temporary:
        write_and_sync(temporary / "file", b"new")
        monkeypatch.setattr(Path, "rename", rename)
    remove_leftovers(after_kill)
    assert [path.name for path in after_kill.iterdir()] == ["model"]
    assert verify_folder(after_kill / "model") == FILES
    assert [path.name for path in folder.iterdir()] == ["model"]
    assert (folder / "model" / "file").read_bytes() == b"new"


def test_an_interrupted_replacement_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "model")
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        # Moving the old folder back, from a name with "replaced", succeeds.
        if "replaced" not in path.name and target == tmp_path / "model":
            raise KeyboardInterrupt
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with (
        pytest.raises(KeyboardInterrupt),
        new_folder(tmp_path / "model", failure_note="", replace=True) as temporary,
    ):
        write_and_sync(temporary / "file", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert verify_folder(tmp_path / "model") == FILES


class TestDiskErrors:
    """A failing disk is not reported as damage, and leftovers of killed processes do no harm.

    The parent folder is flushed, so that the new name survives a power failure.
    """

    @pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOMEM])
    def test_an_error_on_opening_is_not_damage(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        write(tmp_path / "folder")
        real = os.open

        def failing(path: Any, flags: int, *mode: Any, **options: Any) -> int:
            if str(path).endswith("a.bin"):
                raise OSError(number, os.strerror(number))
            return real(path, flags, *mode, **options)

        monkeypatch.setattr(os, "open", failing)
        with pytest.raises(StorageError, match=r"a\.bin could not be read.*run the same command again"):
            verify_folder(tmp_path / "folder")

    def test_a_folder_is_removed_although_a_killed_process_has_left_it_half_removed_before(
        self, tmp_path: Path
    ) -> None:
        """Names of temporary folders are random, so both removals use different names."""
        leftover = tmp_path / "folder.tmp-removed-123"
        leftover.mkdir()
        (leftover / "file").write_text("half-removed")
        write(tmp_path / "folder")
        remove_folder(tmp_path / "folder")
        assert [path.name for path in tmp_path.iterdir()] == [leftover.name]
        remove_leftovers(tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_name_that_the_disk_did_not_confirm_is_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = os.fsync

        def fsync(descriptor: int) -> None:
            if os.path.samestat(os.fstat(descriptor), tmp_path.stat()):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match=r"folder is complete, but the disk did not confirm its name"):
            write(tmp_path / "folder")
        assert verify_folder(tmp_path / "folder") == FILES

    def test_the_folders_above_new_parents_are_flushed_so_that_their_names_survive(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flushed_inodes: set[int] = set()
        real = os.fsync

        def fsync(descriptor: int) -> None:
            flushed_inodes.add(os.fstat(descriptor).st_ino)
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        write(tmp_path / "run" / "checkpoints" / "step-1")
        folders = [tmp_path, tmp_path / "run", tmp_path / "run" / "checkpoints"]
        assert {folder.stat().st_ino for folder in folders} <= flushed_inodes


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_refused(tmp_path: Path, card: ModelCard, value: float) -> None:
    weights = {"good": torch.ones(3), "bad": torch.tensor([1.0, value])}
    save_model(tmp_path / "model", card, weights, {"pieces.model": b"tokens"})
    with pytest.raises(
        ModelFolderError, match=r"1 of its 2 tensors have numbers that are not finite \(bad\)"
    ):
        read_stored_model(tmp_path / "model").weights()


def test_the_readme_may_be_edited_and_deleted(tmp_path: Path, card: ModelCard) -> None:
    folder = tmp_path / "model"
    save_model(folder, card, {"w": torch.ones(1)}, {"pieces.model": b"tokens"})
    (folder / "README.md").write_text("My model.")
    edited = read_stored_model(folder)
    (folder / "README.md").unlink()
    assert read_stored_model(folder).digest == edited.digest
    store_shortlist(folder, b"\t5\n", {"shortlist_costs": 0.5})
    assert read_stored_model(folder).tokenizers == {"pieces.model": b"tokens"}


class TestUserCache:
    """The list of checked models, which holds their digests, and who may write to it."""

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
        return tmp_path / "cache"

    def test_a_digest_is_remembered(self, cache: Path) -> None:
        assert not is_checked("abc")
        assert not cache.exists()  # asking creates no folder
        assert remember_checked("abc")
        assert is_checked("abc")
        assert not is_checked("abcd")
        assert cache.stat().st_mode & 0o077 == (cache / "checked").stat().st_mode & 0o077 == 0

    def test_a_trained_model_is_on_the_list_and_a_changed_one_is_not(
        self, tmp_path: Path, card: ModelCard
    ) -> None:
        folder = tmp_path / "model"
        save_model(folder, card, {"w": torch.ones(1)}, {"pieces.model": b"tokens"}, checked=True)
        stored = read_stored_model(folder)
        assert is_checked(stored.digest)
        assert is_checked(stored.conversion_digest)
        store_shortlist(folder, b"\t5\n", {"shortlist_costs": 0.5})
        assert is_checked(read_stored_model(folder).digest)
        change_file(folder, "pieces.model", b"others")
        assert not is_checked(read_stored_model(folder).digest)
        store_shortlist(folder, b"\t6\n", {"shortlist_costs": 0.5})
        # Storing a shortlist does not mark other files as checked.
        assert not is_checked(read_stored_model(folder).digest)

    def test_a_model_that_this_process_did_not_train_is_not_on_the_list(
        self, tmp_path: Path, card: ModelCard
    ) -> None:
        save_model(tmp_path / "imported", card, {"w": torch.ones(1)}, {"pieces.model": b"tokens"})
        assert not is_checked(read_stored_model(tmp_path / "imported").digest)

    @pytest.mark.parametrize(
        ("folder", "fault"),
        [  # without ("", "link"): users may link the cache folder itself to another disk
            ("", "writable"),
            ("", "foreign"),
            ("checked", "writable"),
            ("checked", "foreign"),
            ("checked", "link"),
        ],
    )
    def test_a_folder_that_others_can_change_is_refused(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, folder: str, fault: str
    ) -> None:
        remember_checked("abc")
        path = cache / folder
        if fault == "writable":
            path.chmod(0o777)
        elif fault == "link":
            path.rename(cache / "elsewhere")
            path.symlink_to(cache / "elsewhere")
        elif os.geteuid() == 0:
            os.chown(path, 4321, 4321)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 4321)
        assert not is_checked("abc")
        assert not remember_checked("def")
        with pytest.raises(StorageError, match="JUMOK_CACHE"):
            private_folder("checked", make=True)

    def test_a_sticky_folder_such_as_a_tmpfs_of_a_container_is_used(self, cache: Path) -> None:
        cache.mkdir()
        cache.chmod(0o1777)
        assert remember_checked("abc")
        assert is_checked("abc")
        (cache / "checked").chmod(0o1777)  # a folder that jumok makes must be private, even if it is sticky
        assert not is_checked("abc")

    def test_an_entry_of_the_list_that_others_can_write_is_ignored(self, cache: Path) -> None:
        remember_checked("abc")
        (cache / "checked" / "abc").chmod(0o666)
        assert not is_checked("abc")
        (cache / "checked" / "def").symlink_to(cache / "checked" / "abc")
        assert not is_checked("def")

    def test_a_list_that_cannot_be_written_is_no_error(self, cache: Path) -> None:
        cache.write_text("a file")
        assert not remember_checked("abc")
        assert not is_checked("abc")


def change_file(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of a model folder and its entry in the card, as an attacker can."""
    (folder / name).write_bytes(data)
    content = json.loads((folder / "jumok.json").read_text())
    del content["checksum"]
    content["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (folder / "jumok.json").write_bytes(json_with_checksum(content))
