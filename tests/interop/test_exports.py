"""Exports are re-imported without any change, or run by the other toolkit, or refused with a reason."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jumok
from jumok.data.batching import padded_batch
from jumok.errors import RecipeError, StorageError, UnsupportedError
from jumok.inference.building import load_model
from jumok.interop.exported_model import ExportedModel
from jumok.interop.exporting import EXPORT_FORMATS, export_model
from jumok.interop.huggingface_writer import huggingface_files
from jumok.models.model import TranslationModel
from jumok.storage.model_folder import read_model_with_weights, read_stored_model
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_files import tokenizers_from_files
from jumok.types import BEGIN, END, PAD
from support.imported import MAX_TOKENS, learned_positions_model, load_imported, logits, search

MODELS = Path(__file__).parent.parent / "stored" / "models"
STORED = Path(__file__).parent / "stored"
PAIR = ("six three one seven zero.", "육 삼 일 칠 영.")


@pytest.fixture(scope="module")
def imported_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "model"
    load_imported(STORED / "tc-big.zip", folder, code="ko")
    return folder


def is_same_model(folder: Path, other: Path) -> bool:
    """Return whether two model folders have exactly the same recipe, tokenizers and weights."""
    (card, weights, files), (other_card, other_weights, other_files) = map(
        read_model_with_weights, (folder, other)
    )
    return (
        card.recipe == other_card.recipe
        and files == other_files
        and weights.keys() == other_weights.keys()
        and all(torch.equal(weights[name], other_weights[name]) for name in weights)
    )


def test_a_model_is_unchanged_after_export_to_hugging_face_and_import(
    imported_model: Path, tmp_path: Path
) -> None:
    for name, folder in {"trained": MODELS / "transformer", "imported": imported_model}.items():
        export_model(folder, tmp_path / name, "huggingface")
        load_imported(tmp_path / name, tmp_path / f"{name}-model")
        assert is_same_model(folder, tmp_path / f"{name}-model")
        card, imported_card = (read_stored_model(path).card for path in (folder, tmp_path / f"{name}-model"))
        assert imported_card.scores == card.scores
        assert imported_card.read_out == card.read_out
        assert imported_card.corpora == card.corpora


def test_a_model_with_learned_positions_is_unchanged_and_its_export_limits_the_length(tmp_path: Path) -> None:
    """`learned_positions_model` makes a model with 40 positions."""
    folder = learned_positions_model(tmp_path / "model")
    export_model(folder, tmp_path / "out", "huggingface")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == ["BlenderbotForConditionalGeneration"]
    assert config["max_position_embeddings"] == 40
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["model_max_length"] == 40
    assert json.loads((tmp_path / "out" / "generation_config.json").read_text())["max_length"] == 40
    load_imported(tmp_path / "out", tmp_path / "again")
    assert is_same_model(folder, tmp_path / "again")


def test_an_export_that_was_trained_further_keeps_its_biases_and_loses_its_scores(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    export_model(MODELS / "transformer", tmp_path / "out", "huggingface")
    weights = load_file(tmp_path / "out" / "model.safetensors")
    weights["model.encoder.layers.0.self_attn.q_proj.bias"] += 0.5
    save_file(weights, tmp_path / "out" / "model.safetensors")
    translator = load_imported(tmp_path / "out", tmp_path / "model")
    assert float(translator.model.state_dict()["encoder.0.attention.query.bias"][0]) == 0.5
    card = read_stored_model(tmp_path / "model").card
    assert card.recipe.model.attention_bias  # type: ignore[union-attr]
    assert not card.scores
    assert "int8_costs" not in card.facts
    assert "int8_costs" in read_stored_model(MODELS / "transformer").card.facts


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("recurrent-gru-bahdanau", "model.family = recurrent"),
        ("decoder-only", "model.family = decoder-only"),
        ("transformer-rotary-restricted", "model.encoder_attention = restricted"),
        ("transformer-alibi-location", "location"),
        ("transformer-linear-batch", "model.encoder_attention = efficient"),  # its decoder is linear
        ("transformer-relative-keys", "model.positions = relative-keys"),
        ("transformer-post-learned", "model.tied = false"),
        ("language-model", "plain text"),
    ],
)
def test_an_unsupported_setting_is_named_and_nothing_is_written(
    name: str, words: str, tmp_path: Path
) -> None:
    for to in ("huggingface", "onnx"):
        with pytest.raises(UnsupportedError, match=re.escape(words)):
            export_model(MODELS / name, tmp_path / "out", to)
    assert not list(tmp_path.iterdir())


def test_wrong_requests_are_refused(imported_model: Path, tmp_path: Path) -> None:
    model = MODELS / "transformer"
    with pytest.raises(RecipeError, match=r'Did you mean "huggingface"'):
        export_model(model, tmp_path / "out", "hugging-face")
    with pytest.raises(RecipeError, match="int8 are for ctranslate2"):
        export_model(model, tmp_path / "out", "huggingface", quantization="int8")
    with pytest.raises(StorageError, match="exists already"):
        export_model(model, tmp_path, "huggingface")
    with pytest.raises(UnsupportedError, match="SentencePiece model of its own"):
        export_model(imported_model, tmp_path / "out.argosmodel", "argos")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("added", "normaliser", "words"),
    [((">>ko<<",), "none", "a code such as >>ko<<"), ((), "opus-mt", "the normaliser opus-mt")],
)
def test_a_model_whose_texts_argos_cannot_prepare_is_refused(
    added: tuple[str, ...], normaliser: str, words: str, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    tokenizers = load_imported(STORED / "marian-built-in.zip", tmp_path / "model").tokenizers
    source = tokenizers.source
    assert isinstance(source, JointVocabularyTokenizer)
    # The added code replaces the last token, so that the vocabulary keeps its size.
    vocabulary = (*source.vocabulary[: len(source.vocabulary) - len(added)], *added)
    sides = [
        JointVocabularyTokenizer(source.sentencepiece, vocabulary, normaliser=normaliser, is_source=is_source)
        for is_source in (True, False)
    ]
    stored = read_stored_model(tmp_path / "model")
    model = load_model(stored, tokenizers)
    assert isinstance(model, TranslationModel)
    exported = ExportedModel(stored.card, model, TokenizerPair(*sides, shared=True))
    with pytest.raises(UnsupportedError, match=words):
        EXPORT_FORMATS["argos"](exported)


def test_importing_an_export_of_jumok_refuses_options_that_have_no_effect(tmp_path: Path) -> None:
    export_model(MODELS / "transformer", tmp_path / "out", "huggingface")
    for name, option in {
        "positions": "--positions",
        "source_language": "--from",
        "target_language": "--to",
        "code": "--code",
    }.items():
        with pytest.raises(RecipeError, match=f"Received: {option}\\. Leave out this option"):
            # The option is refused for any value.
            load_imported(tmp_path / "out", tmp_path / "model", **{name: "marian"})
    with pytest.raises(RecipeError, match="--from, --code"):
        load_imported(tmp_path / "out", tmp_path / "model", source_language="en", code="ko")
    assert not (tmp_path / "model").exists()


def test_a_ctranslate2_export_translates_strings_like_jumok(imported_model: Path, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    import sentencepiece

    for name, folder, text in (
        ("own", MODELS / "transformer", PAIR[0]),
        ("imported", imported_model, "I go home."),
    ):
        out = tmp_path / name
        export_model(folder, out, "ctranslate2")
        source, target = (
            sentencepiece.SentencePieceProcessor(model_file=str(out / f"{side}.spm"))
            for side in ("source", "target")
        )
        pieces = source.encode(text, out_type=str)
        expected = jumok.load(folder, engine="torch")
        if name == "imported":
            pieces = [">>ko<<", *pieces]
        result = ctranslate2.Translator(str(out)).translate_batch(
            [pieces], beam_size=1, max_decoding_length=MAX_TOKENS
        )[0]
        assert target.decode(result.hypotheses[0]) == expected.translate([text], beam=1)[0].text
        readme = (out / "README.md").read_text(encoding="utf-8")
        assert "license:" in readme
        assert ('[">>ko<<", *source.encode(' in readme) == (name == "imported")


def test_an_argos_package_has_the_files_that_argos_reads(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    out = tmp_path / "translate-en_ko.argosmodel"
    export_model(MODELS / "transformer", out, "argos", quantization="int8", licence="cc0-1.0")
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        metadata = json.loads(archive.read("translate-en_ko-1_0/metadata.json"))
        readme = archive.read("translate-en_ko-1_0/README.md").decode()
    assert {name.partition("/")[0] for name in names} == {"translate-en_ko-1_0"}
    assert {"translate-en_ko-1_0/model/model.bin", "translate-en_ko-1_0/sentencepiece.model"} <= set(names)
    assert (metadata["from_code"], metadata["to_name"]) == ("en", "Korean")
    assert 'license: "cc0-1.0"' in readme


def test_a_safetensors_export_holds_the_weights_under_their_names(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    export_model(MODELS / "transformer", tmp_path / "out", "safetensors")
    _, weights, _ = read_model_with_weights(MODELS / "transformer")
    exported = load_file(tmp_path / "out" / "model.safetensors")
    assert exported.keys() == weights.keys()
    assert all(torch.equal(exported[name], weights[name]) for name in weights)


def test_the_files_beside_onnx_graphs_keep_jumoks_ids(imported_model: Path) -> None:
    """The graphs embed jumok's ids, so vocab.json and config.json must not move `<pad>` to the end."""
    stored = read_stored_model(imported_model)
    tokenizers = tokenizers_from_files(stored.tokenizers)
    model: Any = load_model(stored, tokenizers)
    exported = ExportedModel(stored.card, model, tokenizers)
    for own_ids, pad in ((True, PAD), (False, tokenizers.target.vocab_size - 1)):
        files = huggingface_files(exported, own_ids=own_ids)
        ids, config = json.loads(files["vocab.json"]), json.loads(files["config.json"])
        assert ids["<pad>"] == config["pad_token_id"] == config["decoder_start_token_id"] == pad
        assert ids["</s>"] == config["eos_token_id"] == (END if own_ids else END - 1)


def greedy_with_onnx(encoder: Any, decoder: Any, source: list[int]) -> list[int]:
    ids = np.array([[*source, END]])
    mask = np.ones_like(ids)
    states = encoder.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    output_ids = [PAD]
    for _ in range(MAX_TOKENS):
        [logits] = decoder.run(
            None,
            {
                "input_ids": np.array([output_ids]),
                "encoder_hidden_states": states,
                "encoder_attention_mask": mask,
            },
        )
        row = logits[0, -1].copy()
        row[[PAD, BEGIN]] = -np.inf
        if (token := int(row.argmax())) == END:
            break
        output_ids.append(token)
    return output_ids[1:]


@pytest.mark.slow
def test_onnxruntime_computes_the_same_at_other_shapes(imported_model: Path, tmp_path: Path) -> None:
    """The batches have other shapes than the example inputs with which the graphs were exported."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    for name, folder, (source, target) in (
        ("own", MODELS / "transformer", PAIR),
        ("imported", imported_model, ("I go home.", "나는 집에 간다.")),
        ("learned", learned_positions_model(tmp_path / "learned-model"), PAIR),
    ):
        export_model(folder, tmp_path / name, "onnx")
        readme = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        assert ("at most 40 tokens" in readme) == (name == "learned")
        assert (">>ko<<" in readme) == (name == "imported")
        encoder, decoder = (
            onnxruntime.InferenceSession(tmp_path / name / f"{part}_model.onnx")
            for part in ("encoder", "decoder")
        )
        translator = jumok.load(folder, engine="torch")
        tokenizers = translator.tokenizers
        source_ids, target_ids = tokenizers.source.encode(source), tokenizers.target.encode(target)
        batch = padded_batch([source_ids, source_ids[:3]], [target_ids, target_ids[:2]])
        assert batch.target is not None
        mask = (torch.arange(batch.source.shape[1]) < batch.source_lengths[:, None]).long().numpy()
        states = encoder.run(None, {"input_ids": batch.source.numpy(), "attention_mask": mask})[0]
        decoder_ids = torch.where(batch.target[:, :-1] == BEGIN, PAD, batch.target[:, :-1]).numpy()
        [onnx_logits] = decoder.run(
            None, {"input_ids": decoder_ids, "encoder_hidden_states": states, "encoder_attention_mask": mask}
        )
        expected = logits(translator, source, target).numpy()
        assert np.abs(onnx_logits[0] - expected).max() < 1e-4
        greedy = greedy_with_onnx(encoder, decoder, source_ids)
        assert tokenizers.target.tokens(greedy) == search(translator, [source], beam=1)[0]
