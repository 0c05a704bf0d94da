"""Runs on pictures: a tiny classifier and a tiny captioner learn; resumed runs end with equal weights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch

from jumok.data.corpora import open_corpus
from jumok.errors import DataError, RecipeError, RunFolderError, UnsupportedError
from jumok.evaluation.class_scores import evaluate_classifier
from jumok.evaluation.translator_scores import evaluate_translator
from jumok.inference.loading import load, load_picture_classifier, load_text_model
from jumok.storage.model_folder import read_card, read_model_with_weights
from jumok.training.events import Saved, Started
from jumok.training.run.training_run import train, training_events
from support.picture_files import write_captions, write_classes

if TYPE_CHECKING:
    from pathlib import Path

TINY: dict[str, Any] = {
    "model.width": 32,
    "model.heads": 2,
    "model.feed_forward": 32,
    "source.patch_size": 2,
    "training.learning_rate": 0.005,
}
CLASSIFIER = {**TINY, "model.family": "encoder-only", "model.layers": 1}
CAPTIONER = {**TINY, "model.encoder_layers": 1, "model.decoder_layers": 1}


@pytest.mark.medium
def test_a_tiny_classifier_learns(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "halves", 30, sides=("left", "right", "top", "bottom"))
    model = train(folder, out=tmp_path / "run", **{**CLASSIFIER, "training.steps": 60})
    recipe = read_card(model).recipe
    assert (recipe.source.kind, recipe.source.size, recipe.source.colour) == ("pictures", 8, "grey")
    assert recipe.model.task == "classify"
    classifier = load_picture_classifier(model)
    assert classifier.classes.names == ("bottom", "left", "right", "top")
    scores = evaluate_classifier(classifier, list(open_corpus(folder).pairs()))
    assert scores.accuracy > 0.95
    classification = classifier.classify([str(folder / "left" / "000.png")])[0]
    assert sum(classification.probabilities.values()) == pytest.approx(1, abs=1e-5)
    weights = classifier.class_roll_out(classification.picture).weights
    assert weights.shape == (1, 1, 1, 16)  # 8 × 8 pixels in patches of 2 × 2
    assert 0 < weights.sum() < 1  # the class token keeps the rest of the weight
    with pytest.raises(UnsupportedError, match="names the class of a picture"):
        load(model)
    with pytest.raises(UnsupportedError, match="load_picture_classifier"):
        load_text_model(model)
    with pytest.raises(RecipeError, match="classifies pictures"):
        train(tmp_path / "x.tsv", out=tmp_path / "other", **{"model.encoder_from": str(model)})


@pytest.mark.medium
def test_a_tiny_captioner_learns_and_its_attention_is_measured(tmp_path: Path) -> None:
    captions = write_captions(tmp_path, 30)
    model = train(captions, out=tmp_path / "run", **{**CAPTIONER, "training.steps": 250})
    translator = load(model)
    assert translator.reads_pictures
    assert translator.engine.name == "torch"
    with pytest.raises(UnsupportedError, match="CTranslate2 reads text, and this model reads pictures"):
        load(model, engine="ctranslate2")
    pairs = list(open_corpus(captions).pairs())
    evaluation = evaluate_translator(translator, pairs[::3])
    assert evaluation.scores.bleu > 90
    assert evaluation.pointing is not None
    assert evaluation.pointing.words == 40  # one word with a region in each of the 40 captions
    attention = translator.word_attention(pairs[0].source, "the left half is bright")
    assert attention.weights.shape == (1, 1, 5, 16)  # 5 words, 16 patches
    assert attention.weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert attention.keys[:5] == ("1,1", "1,2", "1,3", "1,4", "2,1")  # row and column of each patch
    assert {site: maps.weights.shape for site, maps in translator.attention(pairs[0].source).items()}[
        "encoder"
    ] == (1, 2, 16, 16)
    assert translator.translate(["", pairs[0].source])[0].text == ""
    with pytest.raises(UnsupportedError, match="no word alignment"):
        translator.align(pairs[0].source, pairs[0].target)
    with pytest.raises(DataError, match=r"absent\.png cannot be read"):
        translator.translate(["absent.png"])


def test_long_captions_of_small_pictures_fit_into_learned_positions(tmp_path: Path) -> None:
    captions = write_captions(tmp_path, 12)
    captions.write_text(captions.read_text().replace("bright", " ".join(["b r i g h t"] * 5)))
    settings = {
        **CAPTIONER,
        "source.kind": "pictures",
        "source.patch_size": 4,
        "model.positions": "learned",
        # The check before pictures are read assumes the default size 32, so 64 patches. The longest
        # caption then has 3 · 64 + 10 tokens, and <s> has a position too.
        "model.max_positions": 203,
        "training.max_sentence_tokens": 40,
        "training.steps": 1,
    }
    many_positions = train(captions, out=tmp_path / "many", **settings)
    ratio_of_corpus = read_card(many_positions).recipe.search.max_length_ratio
    settings |= {"source.size": 8, "model.max_positions": 41}  # 4 patches; a caption of 40 tokens, and <s>
    model = train(captions, out=tmp_path / "run", **settings)
    ratio = read_card(model).recipe.search.max_length_ratio
    # With few positions, the ratio is lowered until a caption for 4 patches has at most 40 tokens.
    assert int(4 * ratio) + 10 == 40 < int(4 * ratio_of_corpus) + 10
    assert load(model).translate([str(tmp_path / "halves" / "left" / "000.png")])
    # 10 · 4 + 10 tokens, and <s>
    with pytest.raises(UnsupportedError, match=r"must cover 51 positions.*search\.max_length_ratio = 10"):
        train(captions, out=tmp_path / "refused", **settings, **{"search.max_length_ratio": 10.0})


@pytest.mark.medium
@pytest.mark.parametrize("task", ["classify", "translate"])
def test_a_run_that_is_stopped_and_resumed_ends_with_the_same_weights(tmp_path: Path, task: str) -> None:
    pictures = write_captions(tmp_path, 12)
    source = pictures if task == "translate" else tmp_path / "halves"
    settings = {
        **(CAPTIONER if task == "translate" else CLASSIFIER),
        "training.steps": 12,
        "training.validate_every": 4,
        "model.dropout": 0.2,
    }
    uninterrupted = train(source, out=tmp_path / "uninterrupted", **settings)
    events = training_events(source, out=tmp_path / "stopped", **settings)
    next(event for event in events if isinstance(event, Saved))
    events.close()  # type: ignore[attr-defined]
    resumed = list(training_events(source, out=tmp_path / "stopped", **settings))
    assert [event.resumed_from for event in resumed if isinstance(event, Started)] == [4]
    first, second = (
        read_model_with_weights(folder)[1] for folder in (uninterrupted, tmp_path / "stopped" / "model")
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    # A file with the same name and another picture is another corpus.
    changed = tmp_path / "halves" / "left" / "000.png"
    changed.write_bytes((tmp_path / "halves" / "right" / "000.png").read_bytes())
    with pytest.raises(RunFolderError, match="other sentences"):
        list(training_events(source, out=tmp_path / "stopped", **settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model.family": "recurrent"}, "A recurrent model reads text"),
        ({"model.family": "decoder-only"}, "A decoder-only model reads text"),
        ({"model.family": "encoder-only", "model.task": "masked"}, "Leave model.task out"),
        ({"training.stop_on": "accuracy"}, "The validation of this model gives chrf, bleu, loss"),
        ({"model.family": "encoder-only", "training.stop_on": "bleu"}, "gives accuracy, loss"),
        ({"text.sampling": 0.1}, "text.sampling is a setting for a source of text"),
        ({"text.shared": True}, "text.shared is a setting for a source of text"),
        ({"languages.source": "en"}, "languages.source is a setting for a source of text"),
        ({"source.size": 8, "source.patch_size": 3}, "source.patch_size must divide source.size"),
        ({"model.positions": "learned", "model.max_positions": 10}, "Learned positions must cover"),
    ],
)
def test_settings_that_do_not_fit_pictures_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    folder = write_classes(tmp_path / "halves", 10)
    with pytest.raises(RecipeError, match=message):
        train(folder, out=tmp_path / "run", **{"training.steps": 1, **settings})


def test_a_single_class_and_validation_pictures_of_an_unknown_class_are_refused(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "one", 20, sides=("left",))
    settings = {**CLASSIFIER, "training.steps": 1}
    with pytest.raises(DataError, match=r"at least two classes.*only 'left'"):
        train(folder, out=tmp_path / "a", **settings)
    both, valid = write_classes(tmp_path / "both", 5), write_classes(tmp_path / "valid", 2, sides=("top",))
    with pytest.raises(DataError, match="validation pictures of top"):
        train(both, out=tmp_path / "b", valid=valid, **settings)


@pytest.mark.medium
def test_two_processes_train_a_classifier_of_pictures(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "halves", 12)
    settings = {**CLASSIFIER, "training.steps": 3, "training.processes": 2}
    model = train(folder, out=tmp_path / "run", **settings)
    lines = [
        json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines() if line
    ]
    assert lines
    assert load_picture_classifier(model).classes.names == ("left", "right")
