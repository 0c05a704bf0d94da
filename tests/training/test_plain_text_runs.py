"""Runs on plain text: a language model, an encoder-only model, and a translator with a pretrained encoder."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch

import jumok
from jumok.data.corpora import corpus_of_pairs
from jumok.errors import DataError, RecipeError, UnsupportedError
from jumok.evaluation.text_scores import evaluate_text
from jumok.models.encoder_only import encoder_part
from jumok.storage.model_folder import read_model_with_weights
from jumok.training.events import Event, Saved, Started, Validated
from jumok.training.run.training_run import training_events
from jumok.types import Pair
from support.cycles import SMALL, SYMBOLS, cycles, entropy_per_sentence, write_cycles

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {"training.steps": 12, "training.validate_every": 5, "training.warmup_steps": 2}
FAMILIES = ["decoder-only", "encoder-only"]
# A translator has `model.encoder_layers` and `model.decoder_layers` instead of `model.layers`.
TRANSLATOR = {name: value for name, value in SMALL.items() if name != "model.layers"}


def run(text: Path, out: Path, family: str, **settings: Any) -> list[Event]:
    """Train a small model of plain text; return all events. Without settings, the run is short."""
    settings = {**SMALL, "model.family": family, **(settings or SHORT)}
    return list(training_events(text, out=out, **settings))


def only(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def capitals(texts: list[str]) -> list[Pair]:
    """Return a pair for each text: the text, and the same text in capital letters."""
    return [Pair(text, text.upper()) for text in texts]


def first_last_and_middle(text: str) -> str:
    """Return the first, the last and the middle symbol of a text, in capital letters.

    A model with a pretrained encoder learns sooner to find these symbols than a model without one.
    """
    symbols = text.upper().split()
    return f"{symbols[0]} {symbols[-1]} {symbols[len(symbols) // 2]}"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A text for training and one for validation."""
    return write_cycles(tmp_path_factory.mktemp("cycles"))


@pytest.fixture(scope="module")
def short_runs(texts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Finished run folders by family, each trained for a few steps."""
    folder = tmp_path_factory.mktemp("runs")
    for family in FAMILIES:
        run(texts[0], folder / family, family)
    return {family: folder / family for family in FAMILIES}


@pytest.fixture(scope="module")
def encoder(texts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of an encoder-only model that has learnt its language."""
    out = tmp_path_factory.mktemp("encoder") / "run"
    run(texts[0], out, "encoder-only", **{"training.steps": 400, "training.validate_every": 400})
    return out / "model"


class TestRun:
    @pytest.mark.parametrize(
        ("family", "task", "score"),
        [("decoder-only", "language-model", "perplexity"), ("encoder-only", "masked", "accuracy")],
    )
    def test_the_model_folder_describes_the_model(
        self, short_runs: dict[str, Path], family: str, task: str, score: str
    ) -> None:
        card, _, files = read_model_with_weights(short_runs[family] / "model")
        assert card.recipe.model.task == task
        assert card.recipe.training.stop_on == "loss"
        assert card.recipe.training.label_smoothing == 0
        assert set(card.scores) == {score}
        assert card.scores[score].signature
        assert card.read_out is None
        assert set(files) == {"pieces.model"}
        text = (short_runs[family] / "metrics.jsonl").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        assert [line["step"] for line in lines if line["kind"] == "validation"] == [5, 10, 12]

    @pytest.mark.parametrize("family", FAMILIES)
    def test_settings_are_derived_with_reasons(
        self, texts: tuple[Path, Path], tmp_path: Path, family: str
    ) -> None:
        events = training_events(texts[0], out=tmp_path / "run", **{"model.family": family, "steps": 5})
        started = next(event for event in events if isinstance(event, Started))
        events.close()  # type: ignore[attr-defined]
        reasons = {setting.name: setting.reason for setting in started.derived_settings}
        assert "sentences" in reasons["model.size"] or "few words" in reasons["model.size"]
        assert {"model.layers", "model.width", "training.stop_on", "training.label_smoothing"} <= set(reasons)
        assert "languages.source" not in reasons
        assert "search.max_length_ratio" not in reasons

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_resumed_run_ends_with_the_same_weights(
        self, texts: tuple[Path, Path], tmp_path: Path, short_runs: dict[str, Path], family: str
    ) -> None:
        settings = {**SMALL, **SHORT, "model.family": family}
        events = training_events(texts[0], out=tmp_path / "run", **settings)
        for event in events:
            if isinstance(event, Saved):
                break
        events.close()  # type: ignore[attr-defined]
        resumed = list(training_events(texts[0], out=tmp_path / "run"))
        assert only(resumed, Started)[0].resumed_from == 5
        first, second = (
            (path / "model" / "weights.safetensors").read_bytes()
            for path in (tmp_path / "run", short_runs[family])
        )
        assert first == second

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_given_validation_text_is_used_instead_of_held_out_sentences(
        self, texts: tuple[Path, Path], tmp_path: Path, family: str
    ) -> None:
        events = training_events(
            texts[0], valid=texts[1], out=tmp_path / "run", **{**SMALL, **SHORT, "model.family": family}
        )
        # All sentences of the validation text (`write_cycles`).
        assert only(list(events), Started)[0].validation_pairs == 40


class TestLearning:
    @pytest.mark.medium
    def test_a_language_model_approaches_the_entropy_of_its_language(
        self, texts: tuple[Path, Path], tmp_path: Path
    ) -> None:
        events = run(texts[0], tmp_path / "run", "decoder-only", **{"training.steps": 200})
        losses = [event.loss for event in only(events, Validated)]
        assert losses[-1] < min(1.0, losses[0])
        model = jumok.load_text_model(tmp_path / "run" / "model")
        scores = evaluate_text(model, texts[1].read_text().splitlines()).as_dict()
        loss_per_sentence = scores["loss"] * scores["tokens"] / scores["sentences"]
        assert loss_per_sentence == pytest.approx(entropy_per_sentence(), rel=0.15)
        assert scores["word_perplexity"] == pytest.approx(scores["perplexity"])  # each word is one token
        [text] = model.complete(["ll aa bb"])
        assert text.startswith("ll aa bb cc dd ee")

    @pytest.mark.medium
    def test_an_encoder_guesses_masked_tokens(self, encoder: Path, texts: tuple[Path, Path]) -> None:
        model = jumok.load_text_model(encoder)
        scores = evaluate_text(model, texts[1].read_text().splitlines()).as_dict()
        assert scores["accuracy"] >= 0.9
        reversed_scores = evaluate_text(model, texts[1].read_text().splitlines()[::-1]).as_dict()
        # The same tokens are masked, whatever the order of the sentences.
        assert reversed_scores["accuracy"] == scores["accuracy"]


class TestPretrainedEncoder:
    def test_training_begins_with_the_pretrained_weights_of_the_encoder(
        self, short_runs: dict[str, Path], tmp_path: Path
    ) -> None:
        encoder = short_runs["encoder-only"] / "model"
        settings = {"training.steps": 1, "training.learning_rate": 1e-20, "model.encoder_from": str(encoder)}
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        events = list(training_events(corpus, out=tmp_path / "run", **settings))
        _, encoder_weights, vocabulary = read_model_with_weights(encoder)
        card, weights, tokenizers = read_model_with_weights(tmp_path / "run" / "model")
        pretrained = encoder_part(encoder_weights)
        assert len(pretrained) > 10
        for name, weight in pretrained.items():
            torch.testing.assert_close(weights[name], weight, atol=1e-15, rtol=0)
        assert tokenizers["source.model"] == vocabulary["pieces.model"]
        assert tokenizers["target.model"] != vocabulary["pieces.model"]
        model = card.recipe.model
        assert (model.width, model.encoder_layers, model.decoder_layers) == (64, 2, 2)
        assert model.encoder_from == "model"  # the name of the folder, not its path
        derived = only(events, Started)[0].derived_settings
        reasons = {setting.name: setting.reason for setting in derived}
        assert reasons["model.width"] == f"as in {encoder}"
        assert "sha256" in reasons["model.encoder_from"]

    @pytest.mark.medium
    def test_a_run_resumes_without_the_folder_of_its_pretrained_encoder(
        self, short_runs: dict[str, Path], tmp_path: Path
    ) -> None:
        encoder = tmp_path / "encoder"
        shutil.copytree(short_runs["encoder-only"] / "model", encoder)
        settings = {**SHORT, "model.encoder_from": str(encoder)}
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        list(training_events(corpus, out=tmp_path / "uninterrupted", **settings))
        for name, kind in (("at step 0", Started), ("later", Saved)):
            events = training_events(corpus, out=tmp_path / name, **settings)
            next(event for event in events if isinstance(event, kind))
            events.close()  # type: ignore[attr-defined]
        shutil.rmtree(encoder)
        for name in ("at step 0", "later"):
            list(training_events(corpus, out=tmp_path / name, **settings))
            first, second = (
                (tmp_path / folder / "model" / "weights.safetensors").read_bytes()
                for folder in (name, "uninterrupted")
            )
            assert first == second, name

    @pytest.mark.medium
    def test_a_translator_with_a_pretrained_encoder_learns_faster(
        self, encoder: Path, tmp_path: Path
    ) -> None:
        corpus = corpus_of_pairs([Pair(text, first_last_and_middle(text)) for text in cycles()])
        settings = {**TRANSLATOR, "training.steps": 100, "training.validate_every": 100, "text.shared": False}
        sizes = {"model.encoder_layers": 2, "model.decoder_layers": 2}
        losses = {}
        for name, extra in (("pretrained", {"model.encoder_from": str(encoder)}), ("new", sizes)):
            events = list(training_events(corpus, out=tmp_path / name, **settings, **extra))
            losses[name] = only(events, Validated)[-1].loss
        assert losses["pretrained"] < losses["new"], losses

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"model.width": 32}, "model.width: received 32, the encoder has 64"),
            ({"model.encoder_layers": 3}, "model.encoder_layers: received 3, the encoder has 2"),
            ({"text.shared": True}, "text.shared: received True, the encoder has False"),
            ({"model.encoder_attention": "linear"}, "received 'linear', the encoder has 'scaled-dot'"),
        ],
    )
    def test_settings_that_contradict_the_encoder_are_refused(
        self, short_runs: dict[str, Path], tmp_path: Path, settings: dict[str, Any], message: str
    ) -> None:
        encoder = str(short_runs["encoder-only"] / "model")
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        with pytest.raises(RecipeError, match=message):
            list(
                training_events(
                    corpus, out=tmp_path / "run", **SHORT, **settings, **{"model.encoder_from": encoder}
                )
            )
        assert not (tmp_path / "run").exists()

    def test_a_model_of_another_family_is_refused(self, short_runs: dict[str, Path], tmp_path: Path) -> None:
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        settings = {"model.encoder_from": str(short_runs["decoder-only"] / "model")}
        with pytest.raises(RecipeError, match="is decoder-only; --encoder-from takes an encoder-only model"):
            list(training_events(corpus, out=tmp_path / "run", **SHORT, **settings))

    def test_an_encoder_of_another_language_is_refused(
        self, texts: tuple[Path, Path], tmp_path: Path
    ) -> None:
        english = tmp_path / "text.en"
        shutil.copy(texts[0], english)
        run(english, tmp_path / "encoder", "encoder-only", **{"training.steps": 2})
        corpus = corpus_of_pairs(capitals(cycles()[:100]), source="de", target="en")
        settings = {"model.encoder_from": str(tmp_path / "encoder" / "model")}
        with pytest.raises(RecipeError, match="was trained on en, and the source of these pairs is de"):
            list(training_events(corpus, out=tmp_path / "run", **SHORT, **settings))


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"model.family": "transformer"}, DataError, "a text alone is enough"),
            ({"model.family": "recurrent"}, DataError, "a text alone is enough"),
            (
                {"model.family": "decoder-only", "model.task": "translate"},
                DataError,
                "a text alone is enough",
            ),
            (
                {"model.family": "encoder-only", "training.stop_on": "bleu"},
                RecipeError,
                "validated by its loss",
            ),
            ({"model.family": "decoder-only", "text.shared": False}, RecipeError, "one vocabulary"),
        ],
    )
    def test_settings_that_do_not_fit_plain_text_are_refused(
        self,
        texts: tuple[Path, Path],
        tmp_path: Path,
        settings: dict[str, Any],
        error: type[Exception],
        message: str,
    ) -> None:
        with pytest.raises(error, match=message):
            list(training_events(texts[0], out=tmp_path / "run", **SHORT, **settings))
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        "settings",
        [{"model.family": "encoder-only"}, {"model.family": "decoder-only", "model.task": "language-model"}],
    )
    def test_pairs_are_refused_by_models_of_plain_text(
        self, tmp_path: Path, settings: dict[str, Any]
    ) -> None:
        with pytest.raises(DataError, match=r"learns from plain text\. Received: pairs"):
            list(
                training_events(corpus_of_pairs(capitals(SYMBOLS)), out=tmp_path / "run", **SHORT, **settings)
            )

    def test_models_of_plain_text_are_not_loaded_as_translators(self, short_runs: dict[str, Path]) -> None:
        for family, hint in (("decoder-only", "jumok complete"), ("encoder-only", "predicts masked tokens")):
            with pytest.raises(UnsupportedError, match=hint):
                jumok.load(short_runs[family] / "model")
        encoder = jumok.load_text_model(short_runs["encoder-only"] / "model")
        with pytest.raises(UnsupportedError, match="cannot continue a text"):
            encoder.complete(["aa"])
