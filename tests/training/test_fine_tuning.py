"""Fine-tuning: the settings that a run takes over from its start model, the old pairs, and how it resumes."""

from __future__ import annotations

import random
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch

import jumok
from jumok.data.corpora import corpus_of_pairs
from jumok.data.store import open_store
from jumok.errors import DataError, ModelFolderError, RecipeError, UnsupportedError
from jumok.storage.model_folder import read_card, read_model_with_weights
from jumok.training.events import Event, Finished, Saved, StageDone, Started, Warned
from jumok.training.loop.interpolation import ALPHAS, InterpolatedPoint, choose_point, interpolate_weights
from jumok.training.run.old_pairs import OldPairs
from jumok.training.run.training_run import training_events
from jumok.types import Pair
from support.digits import TINY, digit_corpus, digit_pairs
from support.picture_files import write_captions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STEPS = {"training.steps": 12, "training.validate_every": 5, "training.warmup_steps": 2}
ENGLISH, GERMAN = ["red", "blue", "green", "white"], ["rot", "blau", "grün", "weiß"]


def colour_pairs(count: int, seed: int = 1) -> list[Pair]:
    """Return pairs of the new domain: colours, whose translation is in the opposite order."""
    generator = random.Random(seed)
    rows = [[generator.randrange(4) for _ in range(generator.randint(2, 5))] for _ in range(count)]
    return [
        Pair(" ".join(ENGLISH[i] for i in row), " ".join(GERMAN[i] for i in reversed(row))) for row in rows
    ]


def write_tsv(path: Path, pairs: Sequence[Pair]) -> Path:
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs), encoding="utf-8")
    return path


def only(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def stage_detail(events: list[Event], name: str) -> str:
    [detail] = [event.detail for event in only(events, StageDone) if event.name == name]
    return str(detail)


@pytest.fixture(scope="module")
def start_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of the start model, whose vocabulary also has the words of the new domain."""
    out = tmp_path_factory.mktemp("start") / "run"
    pairs = corpus_of_pairs([*digit_pairs(200), *colour_pairs(20)], source="en", target="de", name="digits")
    list(training_events(pairs, out=out, **{**TINY, **STEPS}))
    return out


@pytest.fixture(scope="module")
def start(start_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of `start_run` alone, without the pairs of the run."""
    return shutil.copytree(start_run / "model", tmp_path_factory.mktemp("copied") / "start")


def tune(start: Path, out: Path, **settings: Any) -> list[Event]:
    """Fine-tune the start model on pairs of the new domain; return all events."""
    corpus = corpus_of_pairs(colour_pairs(60), source="en", target="de", name="colours")
    return list(training_events(corpus, out=out, start_from=start, **{**STEPS, **settings}))


def test_training_begins_with_the_weights_of_the_start_model(start: Path, tmp_path: Path) -> None:
    tiny_update = {"training.learning_rate": 1e-20, "training.steps": 1, "fine_tuning.interpolate": False}
    events = tune(start, tmp_path / "run", **tiny_update)
    start_card, old_weights, old_files = read_model_with_weights(start)
    card, weights, files = read_model_with_weights(tmp_path / "run" / "model")
    assert weights.keys() == old_weights.keys()
    for name, weight in old_weights.items():
        torch.testing.assert_close(weights[name], weight, atol=1e-15, rtol=0)
    assert files == old_files
    assert [corpus.name for corpus in card.corpora][:2] == ["digits", "colours"]
    assert card.recipe.fine_tuning.start_from == card.facts["start_from"] == "start"  # no path of the machine
    assert card.recipe.model.width == start_card.recipe.model.width == 32
    reasons = {setting.name: setting.reason for setting in only(events, Started)[0].derived_settings}
    assert reasons["model.width"] == f"as in {start}"
    assert "sha256" in reasons["fine_tuning.start_from"]
    # Of 60 new pairs, 7 are duplicates and 5 are held out.
    assert "no unknown token in the first 48 new pairs" in stage_detail(events, "starting from")


def test_the_vocabulary_size_is_that_of_the_start_model(tmp_path: Path) -> None:
    """The start model has two vocabularies, smaller than its text.vocab_size. They are not learnt again."""
    pairs = corpus_of_pairs(digit_pairs(200), source="en", target="de", name="digits")
    separate = {"text.shared": False, "text.vocab_size": 400}
    list(training_events(pairs, out=tmp_path / "start", **{**TINY, **STEPS, **separate}))
    model = shutil.copytree(tmp_path / "start" / "model", tmp_path / "copied")
    events = tune(model, tmp_path / "run")
    started = only(events, Started)[0]
    size = read_card(model).recipe.text.vocab_size
    assert started.recipe.text.vocab_size == size
    sizes = [setting.value for setting in started.derived_settings if setting.name == "text.vocab_size"]
    assert sizes == [size]
    assert "requested" not in stage_detail(events, "learning vocabulary")


def test_by_default_fine_tuning_takes_a_tenth_of_the_learning_rate_for_ten_epochs(
    start: Path, tmp_path: Path
) -> None:
    corpus = corpus_of_pairs(colour_pairs(60), source="en", target="de")
    events = training_events(corpus, out=tmp_path / "run", start_from=start)
    started = next(event for event in events if isinstance(event, Started))
    events.close()  # type: ignore[attr-defined]
    training = started.recipe.training
    assert training.learning_rate == pytest.approx(TINY["training.learning_rate"] / 10)
    assert (training.epochs, training.schedule) == (10, "cosine")
    assert started.recipe.model.dropout >= 0.1


@pytest.mark.medium
def test_old_pairs_of_the_start_models_run_are_replayed(start_run: Path, tmp_path: Path) -> None:
    events = tune(start_run / "model", tmp_path / "run")
    assert "to replay (pairs that the start model was trained on)" in stage_detail(events, "starting from")
    assert "to keep (pairs that the start model was trained on)" in stage_detail(events, "starting from")
    new, replay = open_store(tmp_path / "run" / "data").corpora
    assert replay.name.startswith("replay: ")
    assert replay.weight * (replay.end - replay.first) == pytest.approx(new.end - new.first)
    assert "of the new pairs" in stage_detail(events, "fine-tuning")
    facts = read_model_with_weights(tmp_path / "run" / "model")[0].facts
    assert {"start_chrf", "keep_chrf", "start_keep_chrf", "start_share"} <= facts.keys()


@pytest.mark.medium
def test_without_old_pairs_the_start_models_own_translations_are_replayed(
    start: Path, tmp_path: Path
) -> None:
    events = tune(start, tmp_path / "run")
    assert "(the new sources, translated by the start model)" in stage_detail(events, "starting from")
    assert "agreement with the start model" in stage_detail(events, "fine-tuning")
    stored = (tmp_path / "run" / "start" / "old_pairs.json").read_bytes()
    old_pairs = OldPairs.from_bytes(stored)
    assert old_pairs.keeps_translations
    translations = jumok.load(start).translate([pair.source for pair in old_pairs.replay])
    assert [pair.target for pair in old_pairs.replay] == [translation.text for translation in translations]
    assert OldPairs.from_bytes(old_pairs.to_bytes()) == old_pairs


@pytest.mark.medium
def test_old_pairs_come_from_the_files_of_keep_and_replay(start: Path, tmp_path: Path) -> None:
    keep = write_tsv(tmp_path / "keep.tsv", digit_pairs(20, seed=7))
    replay = write_tsv(tmp_path / "replay.tsv", [*digit_pairs(100, seed=8), *digit_pairs(20, seed=7)])
    events = tune(start, tmp_path / "run", keep=[keep], replay=replay)
    old_pairs = OldPairs.from_bytes((tmp_path / "run" / "start" / "old_pairs.json").read_bytes())
    keep_sources, replay_sources = (
        {pair.source for pair in pairs} for pairs in (old_pairs.keep, old_pairs.replay)
    )
    assert keep_sources == {pair.source for pair in digit_pairs(20, seed=7)}
    assert replay_sources
    assert not keep_sources & replay_sources, "some pairs to keep are also trained on"
    assert "to keep (keep.tsv)" in stage_detail(events, "starting from")
    card = read_model_with_weights(tmp_path / "run" / "model")[0]
    assert (card.recipe.fine_tuning.keep, card.recipe.fine_tuning.replay) == (("keep.tsv",), ("replay.tsv",))


def test_pairs_to_keep_that_are_all_too_long_are_refused_by_the_name_of_their_option(
    start: Path, tmp_path: Path
) -> None:
    keep = write_tsv(tmp_path / "keep.tsv", [Pair("one " * 300, "eins " * 300)])
    with pytest.raises(DataError, match=r"all 1 pairs to keep have more than 200 tokens.*with --keep"):
        tune(start, tmp_path / "run", keep=[keep])


@pytest.mark.medium
def test_a_plain_text_to_replay_is_translated_by_the_start_model(start: Path, tmp_path: Path) -> None:
    text = tmp_path / "old.en.txt"
    text.write_text("".join(f"{pair.source}\n" for pair in digit_pairs(60, seed=9)))
    events = tune(start, tmp_path / "run", replay=[str(text)])
    assert "(old.en.txt, translated by the start model)" in stage_detail(events, "starting from")


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.medium)])
def test_frozen_weights_stay_the_same_to_the_bit(start: Path, tmp_path: Path, processes: int) -> None:
    freeze = ["encoder", "embeddings", "decoder.*.feed_forward.*"]
    plain = {"fine_tuning.interpolate": False, "fine_tuning.replay_share": 0}
    tune(start, tmp_path / "run", freeze=freeze, processes=processes, **plain)
    before, after = (read_model_with_weights(folder)[1] for folder in (start, tmp_path / "run" / "model"))
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert changed
    prefixes = ("encoder.", "after_encoder.", "source_embedding.", "target_embedding.")
    assert not [name for name in changed if name.startswith(prefixes) or ".feed_forward." in name]


@pytest.mark.medium
def test_a_run_resumes_without_the_start_model_and_the_files(start: Path, tmp_path: Path) -> None:
    start_copy = shutil.copytree(start, tmp_path / "start-copy")
    keep = write_tsv(tmp_path / "keep.tsv", digit_pairs(20, seed=7))
    replay = write_tsv(tmp_path / "replay.tsv", digit_pairs(100, seed=8))
    settings = {**STEPS, "start_from": start_copy, "keep": [keep], "replay": [replay], "freeze": ["encoder"]}
    corpus = corpus_of_pairs(colour_pairs(60), source="en", target="de")
    list(training_events(corpus, out=tmp_path / "uninterrupted", **settings))
    for name, kind in (("at step 0", Started), ("later", Saved)):
        events = training_events(corpus, out=tmp_path / name, **settings)
        next(event for event in events if isinstance(event, kind))
        events.close()  # type: ignore[attr-defined]
    shutil.rmtree(start_copy)
    keep.unlink()
    replay.unlink()
    shutil.rmtree(tmp_path / "later" / "data")  # so the new and the old pairs are encoded again
    for name in ("at step 0", "later"):
        list(training_events(corpus, out=tmp_path / name, **settings))
        first, second = (
            (tmp_path / folder / "model" / "weights.safetensors").read_bytes()
            for folder in (name, "uninterrupted")
        )
        assert first == second, name


@pytest.mark.medium
def test_replay_and_interpolation_keep_what_plain_fine_tuning_forgets(tmp_path: Path) -> None:
    settings = {**TINY, "training.steps": 300, "training.warmup_steps": 20, "training.validate_every": 300}
    known = corpus_of_pairs([*digit_pairs(600), *colour_pairs(6)], source="en", target="de")
    model = jumok.train(known, out=tmp_path / "start", **settings)
    keep = write_tsv(tmp_path / "keep.tsv", digit_pairs(60, seed=7))
    new = corpus_of_pairs(colour_pairs(300), source="en", target="de")
    tuning_settings = {"training.steps": 150, "training.validate_every": 150, "training.learning_rate": 0.005}
    scores, warnings = {}, {}
    variants = {"plain": {"fine_tuning.replay_share": 0, "fine_tuning.interpolate": False}, "default": {}}
    for name, extra in variants.items():
        options = {**tuning_settings, **extra, "start_from": model, "keep": [keep]}
        events = list(training_events(new, out=tmp_path / name, **options))
        scores[name] = read_model_with_weights(tmp_path / name / "model")[0].facts
        warnings[name] = [event.message for event in only(events, Warned)]
    lost_chrf = {name: facts["start_keep_chrf"] - facts["keep_chrf"] for name, facts in scores.items()}
    tuned_chrf = read_model_with_weights(tmp_path / "default" / "model")[0].scores["chrf"].value
    assert lost_chrf["plain"] > 10, "plain fine-tuning forgot little, or what it forgot was not measured"
    assert any("worse than the start model on the pairs to keep" in text for text in warnings["plain"])
    assert lost_chrf["default"] < lost_chrf["plain"] / 2
    assert tuned_chrf > scores["default"]["start_chrf"] + 10


@pytest.mark.medium
def test_a_recurrent_model_and_a_language_model_can_be_start_models(tmp_path: Path) -> None:
    small = {"model.family": "recurrent", "model.width": 16, "model.embedding": 16, "text.vocab_size": 320}
    list(training_events(digit_corpus(100), out=tmp_path / "first", **{**STEPS, **small}))
    events = tune(tmp_path / "first" / "model", tmp_path / "second")
    assert only(events, Started)[0].recipe.model.family == "recurrent"
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{pair.source}\n" for pair in digit_pairs(100)))
    one_stack = {**TINY, "model.family": "decoder-only", "model.layers": 1}
    del one_stack["model.encoder_layers"], one_stack["model.decoder_layers"]
    model = jumok.train(text, out=tmp_path / "text-model", **{**one_stack, **STEPS})
    events = list(training_events(text, out=tmp_path / "more", start_from=model, **STEPS))
    assert only(events, Started)[0].recipe.model.task == "language-model"
    assert re.search(
        r"loss of the new pairs \d+\.\d\d → \d", stage_detail(events, "fine-tuning")
    )  # not negative
    model_folder = only(events, Finished)[0].model_folder
    assert read_card(model_folder).facts["start_loss"] > 0
    # Further updates with the same pairs lower the loss, and a lower loss is no reason to warn.
    assert not [event for event in only(events, Warned) if "worse than the start model" in event.message]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model.width": 64}, "model.width: received 64, the start model has 32"),
        ({"text.vocab_size": 999}, "text.vocab_size: received 999"),
        ({"languages.target": "fr"}, "languages.target: received 'fr', the start model has 'de'"),
        (
            {"model.family": "recurrent"},
            "model.family: received 'recurrent', the start model has 'transformer'",
        ),
        ({"freeze": ["encodr"]}, "No weight of the start model is called 'encodr'"),
        ({"freeze": ["*"]}, "All weights would be frozen"),
        ({"model.encoder_from": "x"}, "both decide"),
    ],
)
def test_settings_that_contradict_the_start_model_are_refused(
    start: Path, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(RecipeError, match=message.replace("*", r"\*")):
        tune(start, tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_fine_tuning_needs_a_model_to_start_from(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"fine_tuning\.freeze: only a run that starts from a trained model"
    ):
        list(training_events(digit_corpus(50), out=tmp_path / "run", freeze=["encoder"], **STEPS))
    with pytest.raises(ModelFolderError, match="There is no folder"):
        list(training_events(digit_corpus(50), out=tmp_path / "run", start_from=tmp_path / "x", **STEPS))


@pytest.mark.parametrize("with_captions", [True, False])
def test_a_model_of_text_is_not_fine_tuned_on_pictures(tmp_path: Path, with_captions: bool) -> None:
    captions = write_captions(tmp_path, 12)
    pictures = captions if with_captions else tmp_path / "halves"
    with pytest.raises(UnsupportedError, match="--start-from takes a model of text, but the source is pict"):
        list(training_events(pictures, out=tmp_path / "run", start_from=tmp_path / "not read", **STEPS))


def test_weights_are_interpolated() -> None:
    old, new = {"w": torch.zeros(3)}, {"w": torch.full((3,), 2.0)}
    assert interpolate_weights(old, new, 0.25)["w"].tolist() == [0.5] * 3
    assert torch.equal(interpolate_weights(old, new, 1.0)["w"], new["w"])


def test_the_chosen_point_gains_most_among_those_that_lose_little() -> None:
    start = InterpolatedPoint(0, new_loss=3.2, kept_loss=1.8)
    points = [
        InterpolatedPoint(1, 2.9, 1.85),
        InterpolatedPoint(0.6, 3.0, 1.804),
        InterpolatedPoint(0.2, 3.1, 1.79),
    ]
    # At alpha 1, the loss of the pairs to keep rises by more than `MAX_LOSS_RISE`.
    assert choose_point(start, points, keeps_translations=False).alpha == 0.6
    # At both points, the loss of the pairs to keep rises by more than `MAX_LOSS_RISE`, so the point with
    # the smaller sum of both losses is chosen.
    lossy = [points[0], InterpolatedPoint(0.5, 3.1, 1.82)]
    assert choose_point(start, lossy, keeps_translations=False).alpha == 1
    # Only alpha 1 and 0.8 have at least `MIN_SHARE_OF_GAIN` of the best gain on the new pairs.
    translations = [
        InterpolatedPoint(1, 2.6, 1.2),
        InterpolatedPoint(0.8, 2.7, 0.9),
        InterpolatedPoint(0.2, 3.1, 0.6),
    ]
    assert choose_point(InterpolatedPoint(0, 3.2, 0.5), translations, keeps_translations=True).alpha == 0.8
    # No point is better on the new pairs, so the point with the smallest loss of the pairs to keep is chosen.
    worse = [InterpolatedPoint(1, 3.6, 1.2), InterpolatedPoint(0.2, 3.3, 0.6)]
    assert choose_point(InterpolatedPoint(0, 3.2, 0.5), worse, keeps_translations=True).alpha == 0.2


@pytest.mark.parametrize("keeps_translations", [False, True])
def test_a_small_difference_between_two_runs_changes_the_chosen_alpha_by_a_tenth_at_most(
    keeps_translations: bool,
) -> None:
    def chosen_alpha(difference: float) -> float:
        """Return the alpha chosen on curves like those in docs/log.md ("how far fine-tuning should go").

        The loss of the pairs to keep at alpha differs by `difference` · alpha².
        """
        start, *points = (
            InterpolatedPoint(
                alpha,
                new_loss=3.17 - 0.5 * alpha + 0.18 * alpha**2,
                kept_loss=1.78 - 0.05 * alpha + (0.075 + difference) * alpha**2,
            )
            for alpha in (0, *ALPHAS)
        )
        return choose_point(start, points, keeps_translations=keeps_translations).alpha

    alphas = [chosen_alpha(difference / 1000) for difference in range(-5, 6)]
    assert max(alphas) - min(alphas) < 0.1 + 1e-9  # neighbours in `ALPHAS`
