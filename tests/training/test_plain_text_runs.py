"""Runs on plain text: a language model, an encoder alone, and a translator that begins with one."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch
from cycles import SMALL, SYMBOLS, cycles, entropy_a_sentence, write_cycles

import jumok
from jumok.corpus import corpus_of_pairs
from jumok.errors import DataError, RecipeError, UnsupportedError
from jumok.evaluation import evaluate_text
from jumok.models import encoder_part
from jumok.storage import read_model_folder
from jumok.training import Event, Saved, Started, Validated, training_events
from jumok.values import Pair

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {"training.steps": 12, "training.validate_every": 5, "training.warmup": 2}
FAMILIES = ["decoder-only", "encoder-only"]
TRANSLATOR = {name: value for name, value in SMALL.items() if name != "model.layers"}


def run(text: Path, out: Path, family: str, **settings: Any) -> list[Event]:
    asked = {**SMALL, "model.family": family, **(settings or SHORT)}
    return list(training_events(text, out=out, **asked))


def only(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def capitals(texts: list[str]) -> list[Pair]:
    """A text and the same in capital letters."""
    return [Pair(text, text.upper()) for text in texts]


def first_last_and_middle(text: str) -> str:
    """What an encoder that knows the language finds sooner: where a text begins, ends and turns."""
    symbols = text.upper().split()
    return f"{symbols[0]} {symbols[-1]} {symbols[len(symbols) // 2]}"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_cycles(tmp_path_factory.mktemp("cycles"))


@pytest.fixture(scope="module")
def short_runs(texts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run folder of each family, after a few steps."""
    folder = tmp_path_factory.mktemp("runs")
    for family in FAMILIES:
        run(texts[0], folder / family, family)
    return {family: folder / family for family in FAMILIES}


@pytest.fixture(scope="module")
def encoder(texts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of an encoder that has learnt its language."""
    out = tmp_path_factory.mktemp("encoder") / "run"
    run(texts[0], out, "encoder-only", **{"training.steps": 400, "training.validate_every": 400})
    return out / "model"


class TestARun:
    @pytest.mark.parametrize(
        ("family", "task", "score"),
        [("decoder-only", "language-model", "perplexity"), ("encoder-only", "masked", "accuracy")],
    )
    def test_its_folder_says_what_it_is(
        self, short_runs: dict[str, Path], family: str, task: str, score: str
    ) -> None:
        card, _, files = read_model_folder(short_runs[family] / "model")
        assert card.recipe.model.task == task
        assert card.recipe.training.stop_on == "loss"
        assert card.recipe.training.label_smoothing == 0
        assert set(card.scores) == {score}
        assert card.scores[score].signature
        assert card.read_out is None
        assert set(files) == {"pieces.model"}
        lines = (short_runs[family] / "metrics.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        assert [line["step"] for line in found if line["kind"] == "validation"] == [5, 10, 12]

    @pytest.mark.parametrize("family", FAMILIES)
    def test_settings_are_derived_with_their_reasons(
        self, texts: tuple[Path, Path], tmp_path: Path, family: str
    ) -> None:
        events = training_events(texts[0], out=tmp_path / "run", **{"model.family": family, "steps": 5})
        started = next(event for event in events if isinstance(event, Started))
        events.close()  # type: ignore[attr-defined]
        reasons = {reason.setting: reason.why for reason in started.reasons}
        assert "sentences" in reasons["model.size"] or "few words" in reasons["model.size"]
        assert {"model.layers", "model.width", "training.stop_on", "training.label_smoothing"} <= set(reasons)
        assert "languages.source" not in reasons
        assert "search.longest" not in reasons

    @pytest.mark.parametrize("family", FAMILIES)
    def test_stopped_and_continued_it_ends_in_the_same_bits(
        self, texts: tuple[Path, Path], tmp_path: Path, short_runs: dict[str, Path], family: str
    ) -> None:
        settings = {**SMALL, **SHORT, "model.family": family}
        events = training_events(texts[0], out=tmp_path / "run", **settings)
        for event in events:
            if isinstance(event, Saved):
                break
        events.close()  # type: ignore[attr-defined]
        assert not (tmp_path / "run" / "model").exists()
        again = list(training_events(texts[0], out=tmp_path / "run"))
        assert only(again, Started)[0].resumed_from == 5
        one, other = (
            (path / "model" / "weights.safetensors").read_bytes()
            for path in (tmp_path / "run", short_runs[family])
        )
        assert one == other

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_validation_text_is_kept_apart(
        self, texts: tuple[Path, Path], tmp_path: Path, family: str
    ) -> None:
        events = training_events(
            texts[0], valid=texts[1], out=tmp_path / "run", **{**SMALL, **SHORT, "model.family": family}
        )
        assert only(list(events), Started)[0].validation_pairs == 40


class TestLearning:
    @pytest.mark.medium
    def test_a_language_model_comes_near_to_the_entropy_of_its_language(
        self, texts: tuple[Path, Path], tmp_path: Path
    ) -> None:
        events = run(texts[0], tmp_path / "run", "decoder-only", **{"training.steps": 200})
        losses = [event.loss for event in only(events, Validated)]
        assert losses[-1] < min(1.0, losses[0])
        model = jumok.load_text_model(tmp_path / "run" / "model")
        scores = evaluate_text(model, texts[1].read_text().splitlines()).as_dict()
        a_sentence = scores["loss"] * scores["tokens"] / scores["sentences"]
        assert a_sentence == pytest.approx(entropy_a_sentence(), rel=0.15)
        assert scores["word_perplexity"] == pytest.approx(scores["perplexity"]), "each word is one piece"
        [text] = model.complete(["ll aa bb"])
        assert text.startswith("ll aa bb cc dd ee")

    @pytest.mark.medium
    def test_an_encoder_guesses_what_is_hidden(self, encoder: Path, texts: tuple[Path, Path]) -> None:
        model = jumok.load_text_model(encoder)
        scores = evaluate_text(model, texts[1].read_text().splitlines()).as_dict()
        assert scores["accuracy"] >= 0.9
        again = evaluate_text(model, texts[1].read_text().splitlines()[::-1]).as_dict()
        assert again["accuracy"] == scores["accuracy"], "the same pieces are hidden, whatever the order"


class TestATranslatorThatBeginsWithAnEncoder:
    def test_at_step_0_its_encoder_is_that_encoder(self, short_runs: dict[str, Path], tmp_path: Path) -> None:
        encoder = short_runs["encoder-only"] / "model"
        settings = {"training.steps": 1, "training.learning_rate": 1e-20, "model.encoder_from": str(encoder)}
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        events = list(training_events(corpus, out=tmp_path / "run", **settings))
        _, theirs, vocabulary = read_model_folder(encoder)
        card, own, vocabularies = read_model_folder(tmp_path / "run" / "model")
        begun = encoder_part(theirs)
        assert len(begun) > 10
        for name, weight in begun.items():
            torch.testing.assert_close(own[name], weight, atol=1e-15, rtol=0)
        assert vocabularies["source.model"] == vocabulary["pieces.model"]
        assert vocabularies["target.model"] != vocabulary["pieces.model"]
        settings = card.recipe.model
        assert (settings.width, settings.encoder_layers, settings.decoder_layers) == (64, 2, 2)
        reasons = {reason.setting: reason.why for reason in only(events, Started)[0].reasons}
        assert reasons["model.width"] == f"as in {encoder}"
        assert "sha256" in reasons["model.encoder_from"]

    @pytest.mark.medium
    def test_it_goes_on_without_the_folder_of_the_encoder(
        self, short_runs: dict[str, Path], tmp_path: Path
    ) -> None:
        encoder = tmp_path / "encoder"
        shutil.copytree(short_runs["encoder-only"] / "model", encoder)
        settings = {**SHORT, "model.encoder_from": str(encoder)}
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        list(training_events(corpus, out=tmp_path / "whole", **settings))
        for name, kind in (("at step 0", Started), ("later", Saved)):
            events = training_events(corpus, out=tmp_path / name, **settings)
            next(event for event in events if isinstance(event, kind))
            events.close()  # type: ignore[attr-defined]
        shutil.rmtree(encoder)
        for name in ("at step 0", "later"):
            list(training_events(corpus, out=tmp_path / name, **settings))
            one, other = (
                (tmp_path / folder / "model" / "weights.safetensors").read_bytes()
                for folder in (name, "whole")
            )
            assert one == other, name

    @pytest.mark.medium
    def test_it_is_not_worse_than_one_that_begins_with_nothing(self, encoder: Path, tmp_path: Path) -> None:
        corpus = corpus_of_pairs([Pair(text, first_last_and_middle(text)) for text in cycles()])
        settings = {**TRANSLATOR, "training.steps": 100, "training.validate_every": 100, "text.shared": False}
        sizes = {"model.encoder_layers": 2, "model.decoder_layers": 2}
        begun = {"model.encoder_from": str(encoder)}
        losses = {}
        for name, more in (("begun", begun), ("new", sizes)):
            events = list(training_events(corpus, out=tmp_path / name, **settings, **more))
            losses[name] = only(events, Validated)[-1].loss
        assert losses["begun"] < losses["new"], losses

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"model.width": 32}, "model.width: asked 32, the encoder has 64"),
            ({"model.encoder_layers": 3}, "model.encoder_layers: asked 3, the encoder has 2"),
            ({"text.shared": True}, "text.shared: asked True, the encoder has False"),
            ({"model.encoder_attention": "linear"}, "asked 'linear', the encoder has 'scaled-dot'"),
        ],
    )
    def test_what_contradicts_the_encoder_is_refused(
        self, short_runs: dict[str, Path], tmp_path: Path, settings: dict[str, Any], said: str
    ) -> None:
        encoder = str(short_runs["encoder-only"] / "model")
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        with pytest.raises(RecipeError, match=said):
            list(
                training_events(
                    corpus, out=tmp_path / "run", **SHORT, **settings, **{"model.encoder_from": encoder}
                )
            )
        assert not (tmp_path / "run").exists()

    def test_another_kind_of_model_is_no_encoder(self, short_runs: dict[str, Path], tmp_path: Path) -> None:
        corpus = corpus_of_pairs(capitals(cycles()[:100]))
        settings = {"model.encoder_from": str(short_runs["decoder-only"] / "model")}
        with pytest.raises(RecipeError, match="is decoder-only, and --encoder-from takes an encoder alone"):
            list(training_events(corpus, out=tmp_path / "run", **SHORT, **settings))

    def test_an_encoder_of_another_language(self, texts: tuple[Path, Path], tmp_path: Path) -> None:
        english = tmp_path / "text.en"
        shutil.copy(texts[0], english)
        run(english, tmp_path / "encoder", "encoder-only", **{"training.steps": 2})
        corpus = corpus_of_pairs(capitals(cycles()[:100]), source="de", target="en")
        settings = {"model.encoder_from": str(tmp_path / "encoder" / "model")}
        with pytest.raises(RecipeError, match="has read en, and the source of these pairs is de"):
            list(training_events(corpus, out=tmp_path / "run", **SHORT, **settings))


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "error", "said"),
        [
            ({"model.family": "transformer"}, DataError, "a text alone is enough"),
            ({"model.family": "recurrent"}, DataError, "a text alone is enough"),
            (
                {"model.family": "decoder-only", "model.task": "translate"},
                DataError,
                "a text alone is enough",
            ),
            ({"model.family": "encoder-only", "training.stop_on": "bleu"}, RecipeError, "judged by its loss"),
            ({"model.family": "decoder-only", "text.shared": False}, RecipeError, "one vocabulary"),
        ],
    )
    def test_a_text_and_what_does_not_go_with_it(
        self,
        texts: tuple[Path, Path],
        tmp_path: Path,
        settings: dict[str, Any],
        error: type[Exception],
        said: str,
    ) -> None:
        with pytest.raises(error, match=said):
            list(training_events(texts[0], out=tmp_path / "run", **SHORT, **settings))
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        "settings",
        [{"model.family": "encoder-only"}, {"model.family": "decoder-only", "model.task": "language-model"}],
    )
    def test_pairs_for_a_model_of_plain_text(self, tmp_path: Path, settings: dict[str, Any]) -> None:
        with pytest.raises(DataError, match=r"learns from plain text\. Received: pairs"):
            list(
                training_events(corpus_of_pairs(capitals(SYMBOLS)), out=tmp_path / "run", **SHORT, **settings)
            )

    def test_models_of_plain_text_are_not_loaded_as_translators(self, short_runs: dict[str, Path]) -> None:
        for family, able in (("decoder-only", "jumok complete"), ("encoder-only", "guesses hidden pieces")):
            with pytest.raises(UnsupportedError, match=able):
                jumok.load(short_runs[family] / "model")
        encoder = jumok.load_text_model(short_runs["encoder-only"] / "model")
        with pytest.raises(UnsupportedError, match="cannot go on with a text"):
            encoder.complete(["aa"])
