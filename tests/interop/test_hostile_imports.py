"""An import of an untrusted file ends with a complete model or a typed error.

Most tests import in this process, so that a crash or an exception of another type makes the test fail. The
last tests use the child process, like `jumok import`.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import resource
import shutil
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jumok
from jumok.errors import JumokError, ModelFolderError, StorageError
from jumok.interop import import_worker, importing
from jumok.interop.conversion import ImportChoices
from jumok.interop.exporting import export_model
from jumok.interop.flat_yaml import parse_settings, parse_vocabulary
from jumok.interop.import_worker import import_package
from jumok.interop.importing import import_model
from jumok.interop.package import open_package
from jumok.interop.readme_front_matter import read_licence, read_readme
from jumok.text.character_map import _character_maps, limit_character_map

STORED = Path(__file__).parent / "stored"


def unpack(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(STORED / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder / name


def assert_refused(package: Path, words: str, error: type[JumokError] = ModelFolderError) -> None:
    """Check that the import raises this error and leaves no files."""
    out = package.parent / "refused"
    with pytest.raises(error, match=words):
        import_package(open_package(package), package, out, ImportChoices())
    assert not list(package.parent.glob("refused*"))


def edit_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"d_model": 10**400}, "d_model"),
        ({"d_model": 17}, "embeddings|width|weights"),
        ({"d_model": "64"}, "d_model.*whole number"),
        ({"encoder_layers": 10**9}, "encoder_layers"),
        ({"encoder_layers": 3}, "lack model.encoder.layers.1"),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "heads"),
        ({"encoder_ffn_dim": 64, "decoder_ffn_dim": 64}, "fit"),
        ({"decoder_ffn_dim": 64}, "ffn_dim"),
        ({"decoder_start_token_id": 10**6}, "ids up to"),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id"),
        ({"model_type": "t5"}, '"t5"'),
        ({"model_type": None}, "has no model_type"),
        ({"activation_function": "gelu_new"}, "gelu_new"),
        ({"normalize_before": True}, "normalize_before = True"),
        ({"normalize_embedding": True}, "norm on embeddings"),
        ({"scale_embedding": False}, "√width"),
        ({"static_position_embeddings": False}, "learned positions"),
    ],
)
def test_a_wrong_configuration_is_refused(values: dict[str, Any], words: str, tmp_path: Path) -> None:
    folder = unpack("classic", tmp_path)
    edit_json(folder / "config.json", **values)
    assert_refused(folder, words, JumokError)


@pytest.mark.parametrize(
    "name", ["config.json", "vocab.json", "model.safetensors", "source.spm", "target.spm"]
)
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    folder = unpack("classic", tmp_path)
    (folder / name).unlink()
    # Without config.json, the folder is read like a model of Marian, which needs an .npz file.
    assert_refused(folder, name.replace("config.json", "no format that jumok knows|npz"))


@pytest.mark.medium
@pytest.mark.parametrize("package", ["classic", "tc-big", "marian", "marian-built-in"])
def test_damaged_files_give_a_model_or_a_typed_error(package: str, tmp_path: Path) -> None:
    """Each file is missing, truncated, empty, or has flipped bits. Only a JumokError is raised."""
    folder = unpack(package, tmp_path)
    generator = random.Random(package)
    failures = 0
    for path in sorted(folder.iterdir()):
        original = path.read_bytes()
        for kind in ("missing", "truncated", "empty", "flipped", "flipped", "flipped"):
            damaged = bytearray(original)
            if kind == "flipped":
                for _ in range(8):
                    damaged[generator.randrange(min(len(damaged), 400))] ^= 1 << generator.randrange(8)
            path.write_bytes(
                damaged[: len(damaged) // 2] if kind == "truncated" else b"" if kind == "empty" else damaged
            )
            if kind == "missing":
                path.unlink()
            out = tmp_path / "out"
            try:
                import_package(open_package(folder), folder, out, ImportChoices())
            except JumokError:
                failures += 1
                assert not list(tmp_path.glob("out*"))
            else:
                jumok.load(out, engine="torch")
                assert sorted(p.name for p in tmp_path.glob("out*")) == ["out"]
                shutil.rmtree(out)
        path.write_bytes(original)
    assert failures > 5


class Exploit:
    """Runs code when it is unpickled without restrictions."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_pickle_is_not_run(tmp_path: Path) -> None:
    folder, proof = unpack("tc-big", tmp_path), tmp_path / "code-ran"
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True)
    torch.save({**weights, "exploit": Exploit(proof)}, folder / "pytorch_model.bin")
    assert_refused(folder, "weights only")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Exploit(proof)))
    assert_refused(folder, "weights only")
    torch.save([1, 2], folder / "pytorch_model.bin")
    assert_refused(folder, "named tensors")
    assert not proof.exists()


def change_npz(folder: Path, change: Any) -> None:
    """Replace the arrays of the only .npz file by the result of `change(arrays)`."""
    [path] = folder.glob("*.npz")
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    changed = change(arrays)
    with path.open("wb") as file:
        np.savez(file, **changed)


def with_setting(line: str) -> Any:
    """Return a function for `change_npz` that sets this line in the settings of the model."""

    def change(arrays: dict[str, Any]) -> dict[str, Any]:
        text = arrays["special:model.yml"].tobytes().partition(b"\0")[0].decode()
        others = [old for old in text.split("\n") if old.partition(":")[0] != line.partition(":")[0]]
        data = "\n".join([*others, line]).encode() + b"\0" * 7
        return {**arrays, "special:model.yml": np.frombuffer(data, dtype=np.int8)}

    return change


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("transformer-decoder-autoreg: rnn", "SSRU"),
        ("transformer-decoder-autoreg: average-attention", "average attention"),
        ("type: amun", "only Transformers"),
        ("transformer-train-position-embeddings: true", "Wpos"),
        ("transformer-preprocess: n", "post-norm"),
        ("transformer-tied-layers: [1, 1]", "share weights"),
        ("transformer-ffn-activation: gelu", "swish and relu"),
        ("dim-emb: 99999999999999999999", "dim-emb"),
        ("enc-depth: 5", "lack encoder_l2"),
        ("lemma-dim-emb: 8", "factored"),
    ],
)
def test_a_marian_model_that_jumok_cannot_compute_is_refused_with_the_reason(
    line: str, words: str, tmp_path: Path
) -> None:
    folder = unpack("marian", tmp_path)
    change_npz(folder, with_setting(line))
    assert_refused(folder, words)


@pytest.mark.parametrize("vocabularies", ["[opus.vocab.yml, /home/me/ko.yml]", "[ko.yml, ko.yml]"])
def test_a_missing_vocabulary_that_decoder_yml_names_is_refused(vocabularies: str, tmp_path: Path) -> None:
    """If a missing vocabulary were ignored, the vocabulary of one side would be used for both sides."""
    folder = unpack("marian", tmp_path)
    (folder / "decoder.yml").write_text(f"models: [opus.npz]\nvocabs: {vocabularies}\n")
    assert_refused(folder, r"decoder\.yml names the vocabulary ko\.yml, which is missing")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("models: [best.npz]\n", r"decoder\.yml names best\.npz, which is missing, and there are 2 \.npz"),
        ("beam-size: 4\n", r"no decoder\.yml names its weights, and there are 2 \.npz"),
        (None, r"no decoder\.yml names its weights, and there are 2 \.npz"),
    ],
)
def test_weights_that_decoder_yml_does_not_name_or_that_are_missing_are_refused(
    settings: str | None, words: str, tmp_path: Path
) -> None:
    folder = unpack("marian", tmp_path)
    (folder / "other.npz").write_bytes((folder / "opus.npz").read_bytes())
    if settings is None:
        (folder / "decoder.yml").unlink()
    else:
        (folder / "decoder.yml").write_text(settings)
    assert_refused(folder, words)


def test_packages_with_unsupported_or_unusable_files_are_refused_with_the_reason(tmp_path: Path) -> None:
    bpe = unpack("marian", tmp_path / "bpe")
    (bpe / "source.bpe").write_text("#version: 0.2\n")
    assert_refused(bpe, "BPE")
    pointer = unpack("classic", tmp_path / "pointer")
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"
    (pointer / "model.safetensors").write_text(text)
    assert_refused(pointer, "git-LFS pointer.*hf download")
    firefox = tmp_path / "firefox" / "model"
    firefox.mkdir(parents=True)
    for name in ("model.enko.intgemm.alphas.bin", "vocab.enko.spm", "lex.50.50.enko.s2t.bin"):
        (firefox / name).write_bytes(b"x")
    assert_refused(firefox, "binary format")
    empty = tmp_path / "empty" / "model"
    empty.mkdir(parents=True)
    assert_refused(empty, "no format that jumok knows")
    pickled = unpack("marian", tmp_path / "pickled")
    change_npz(
        pickled, lambda arrays: {**arrays, "Wemb": np.array([Exploit(tmp_path / "code-ran")], dtype=object)}
    )
    assert_refused(pickled, "allow_pickle|Object arrays")
    not_finite = unpack("marian", tmp_path / "not-finite")
    change_npz(not_finite, lambda arrays: {**arrays, "Wemb": arrays["Wemb"] * np.float32("nan")})
    assert_refused(not_finite, "not finite")
    assert not (tmp_path / "code-ran").exists()


@pytest.mark.parametrize(
    "name", ["../escaped", "/etc/escaped", "a/../../escaped", "a\\..\\escaped", "C:escaped"]
)
def test_a_zip_with_a_file_name_that_could_lead_outside_it_is_refused(name: str, tmp_path: Path) -> None:
    package = tmp_path / "in" / "package.zip"
    package.parent.mkdir()
    package.write_bytes((STORED / "classic.zip").read_bytes())
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"x")
    assert_refused(package, "could lead outside it")
    assert not list(tmp_path.rglob("escaped"))


def test_a_zip_bomb_and_a_damaged_zip_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * 50_000_000)
    assert_refused(bomb, "would unpack to")
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(forged, "w") as archive:
        archive.writestr("config.json", b"{}")
        archive.filelist[0].file_size = archive.filelist[0].compress_size = 10**9
    assert_refused(forged, "its entries claim 1,000,000,000 bytes, more than")
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes((STORED / "classic.zip").read_bytes()[:-100])
    assert_refused(damaged, "not a zip")


def replace_character_map(folder: Path, rules: str) -> None:
    """Replace source.spm by a SentencePiece model whose character map has these rules."""
    import sentencepiece

    (folder.parent / "rules.tsv").write_text(rules)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat"] * 20),
        model_writer=model,
        vocab_size=30,
        hard_vocab_limit=False,
        normalization_rule_tsv=str(folder.parent / "rules.tsv"),
        minloglevel=2,
    )
    (folder / "source.spm").write_bytes(model.getvalue())


def test_a_character_map_cannot_make_a_text_far_longer(tmp_path: Path) -> None:
    folder = unpack("classic", tmp_path)
    replace_character_map(folder, f"78\t{' '.join(['78'] * 20)}\n")  # x → 20 times x
    import_package(open_package(folder), folder, tmp_path / "out", ImportChoices())
    assert jumok.load(tmp_path / "out", engine="torch").translate(["xx"])
    replace_character_map(folder, f"78\t{' '.join(['78'] * 5000)}\n")
    assert_refused(folder, "5,000 bytes of one character, and at most 64")


def test_a_character_map_in_an_export_of_jumok_is_refused(tmp_path: Path) -> None:
    """Tokenizers of jumok have no character map, so the imported model folder could not be loaded."""
    folder = tmp_path / "out"
    export_model(STORED.parent.parent / "stored" / "models" / "transformer", folder, "huggingface")
    tokenizer = (folder / "source.spm").read_bytes()
    replace_character_map(folder, "78\t79\n")  # x → y
    [character_map] = _character_maps((folder / "source.spm").read_bytes())

    def field(number: int, data: bytes) -> bytes:
        """Return a field of a protocol buffer. Its length is stored in three bytes with seven bits each."""
        length = [len(data) & 127 | 128, len(data) >> 7 & 127 | 128, len(data) >> 14]
        return bytes([number << 3 | 2, *length]) + data

    (folder / "source.spm").write_bytes(tokenizer + field(3, field(2, character_map)))
    assert_refused(folder, "it has a precompiled character map")


def test_the_character_map_of_real_models_is_accepted() -> None:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat"] * 20),
        model_writer=model,
        vocab_size=30,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    limit_character_map(model.getvalue())
    # This is the longest replacement of a character. It shows that the accepted bytes contain the map.
    assert "صلى الله عليه وسلم\0".encode() in model.getvalue()


def test_a_readme_of_blanks_is_read_in_linear_time(tmp_path: Path) -> None:
    readmes = {
        "---" + "\n" * 200_000 + "Text": "",
        "---\nlicense:" + " " * 200_000 + "!\n---\nText": "",
        "--- \nlicense: 'apache-2.0' \n---\nText": "apache-2.0",
    }
    for text, licence in readmes.items():
        (tmp_path / "README.md").write_text(text)
        started = time.process_time()
        assert read_licence(open_package(tmp_path)) == licence
        assert time.process_time() - started < 2  # quadratic time would be minutes
    assert read_readme(open_package(tmp_path)) == "Text"


def test_a_stored_position_table_that_is_not_sinusoidal_is_refused(tmp_path: Path) -> None:
    folder = unpack("tc-big", tmp_path)
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True)
    name = "model.encoder.embed_positions.weight"
    torch.save({**weights, name: torch.randn(512, 16)}, folder / "pytorch_model.bin")
    assert_refused(folder, "other positions than sinusoids")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"card": 1}, "no card"),
        ({"card": {"recipe": {}}}, "field is missing"),
        ({"pad_row": [0.0]}, "pad_row"),
        ({"pad_row": [1e999] * 16}, "not finite|pad_row"),
        ({"tokenizer": {"kind": "joint", "code": ">>xx<<"}}, ">>xx<<|fit"),
    ],
)
def test_a_changed_record_of_an_export_is_refused(values: dict[str, Any], words: str, tmp_path: Path) -> None:
    export_model(STORED.parent.parent / "stored" / "models" / "transformer", tmp_path / "out", "huggingface")
    edit_json(tmp_path / "out" / "jumok_export.json", **values)
    assert_refused(tmp_path / "out", words, JumokError)


def test_vocabularies_and_settings_of_marian_that_are_not_valid_yaml_are_read() -> None:
    text = '"</s>": 0\n<unk>: 1\n"a\x85b": 2\n\'it\'\'s\': 3\n"\\x84\\"\\u2028": 4\n? "long"\n: 5\n'
    text += '": ": 6\n"\\\\": 7\n'
    tokens = ["</s>", "<unk>", "a\x85b", "it's", '\x84"\u2028', "long", ": ", "\\"]
    assert parse_vocabulary(text) == {token: id_ for id_, token in enumerate(tokens)}
    assert parse_vocabulary('{"a": 0, "b": 1}') == {"a": 0, "b": 1}
    wrong_lines = ("a: 1\nb: 1\n", "a: 1\na: 2\n", "a\n", "a: x\n", "a: 1\n? b\n")
    for wrong in (*wrong_lines, "{", '{"a": "b"}', '{"a": {"b": 1}}', '{"a": 1, "a": 2}'):
        with pytest.raises(ValueError):  # noqa: PT011 - the messages of `json` vary
            parse_vocabulary(wrong)
    settings = parse_settings("a: 1\nb: [x, 2]\nc:\n  - y\n  - 'z'\nd: \"\"\ne: true\nf: 1.5\ng:\n  []\n")
    assert settings == {"a": 1, "b": ["x", 2], "c": ["y", "z"], "d": "", "e": True, "f": 1.5, "g": []}


@pytest.mark.medium
def test_the_child_process_reports_errors_and_has_a_time_limit(tmp_path: Path) -> None:
    folder = unpack("classic", tmp_path)
    with pytest.raises(ModelFolderError, match=r"longer than 0\.05 seconds"):
        import_model(folder, tmp_path / "out", max_seconds=0.05)
    report = import_model(folder, tmp_path / "out")
    assert (report.languages, report.licence, report.codes) == ("en → ko", "cc-by-4.0", (">>ko<<", ">>ja<<"))
    with pytest.raises(StorageError, match="exists already"):
        import_model(folder, tmp_path / "out")
    (folder / "vocab.json").write_text("[]")
    with pytest.raises(ModelFolderError, match=r"vocab\.json is not a JSON object"):
        import_model(folder, tmp_path / "other")
    with pytest.raises(ModelFolderError, match="no such folder"):
        import_model(tmp_path / "absent", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["classic", "out"]


def test_the_incomplete_folder_of_a_child_process_that_died_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child process of this test makes a temporary folder and ends without a report."""
    code = "import json, os, sys; os.mkdir(json.loads(sys.argv[1])['out'] + '.tmp-7')"
    monkeypatch.setattr(importing, "_CHILD", code)
    (tmp_path / "out.tmp-5").mkdir()  # of another process, which may be running
    with pytest.raises(ModelFolderError, match="ended with code 0"):
        import_model(STORED / "classic.zip", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out.tmp-5"]


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(-1, -1, 100), (50, -1, 50), (-1, 70, 70), (200, 300, 100)],  # −1 is RLIM_INFINITY
    ids=["no limit", "a lower soft limit", "a lower hard limit", "higher limits"],
)
def test_the_child_process_only_lowers_its_limits(
    soft: int, hard: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair))
    import_worker._limit("RLIMIT_CPU", 100)
    assert limits == [(expected, hard)]


def test_the_memory_limit_grows_with_the_package_up_to_the_memory_of_the_computer() -> None:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed = 100 * import_worker.MEMORY_PER_FILE_BYTE
    assert import_worker._max_bytes(100) == import_worker.BASE_BYTES + needed
    assert import_worker._max_bytes(10**15) == import_worker.BASE_BYTES + physical


@pytest.mark.medium
def test_the_memory_of_the_child_process_is_limited(tmp_path: Path) -> None:
    """The header of an array claims 400 GB."""
    folder = unpack("marian", tmp_path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**11, 1)}
    )
    [path] = folder.glob("*.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("huge.npy", header.getvalue())
    with pytest.raises(ModelFolderError, match=r"memory|npz"):
        import_model(folder, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))
