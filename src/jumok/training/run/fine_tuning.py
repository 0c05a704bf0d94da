"""The end of a run that started from a trained model: the choice of its weights, and a report.

1. The weights: a point between the weights of the start model and the tuned weights
   (`loop/interpolation.py`), chosen by the losses of the validation set and of the pairs to keep.
2. The report: the scores of the start model and of the new model on the validation set and on the pairs to
   keep, with the recipe's beam; a warning if the new model is worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from jumok.storage.tensors import load_module_weights, module_weights
from jumok.training.events import Event, StageDone, Warned
from jumok.training.loop.interpolation import ALPHAS, InterpolatedPoint, choose_point, interpolate_weights
from jumok.training.run.start_model import read_stored_start
from jumok.training.validation.translation import TranslationValidation

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from torch import Tensor

    from jumok.config.recipe import Recipe
    from jumok.text.tokenizer import TokenizerPair
    from jumok.training.loop.trainer import Trainer
    from jumok.training.run.run_folder import RunFolder
    from jumok.training.run.start_model import StoredStart
    from jumok.training.validation.protocol import Validation, ValidationResult

MAX_KEPT_SCORE_DROP = 1.0
"""A model whose score on the pairs to keep falls by more than this many points gets a warning."""
_WORSE_ON_NEW_ADVICE = "Train for longer, on more pairs, or with a lower training.learning_rate."
_FORGOTTEN_ADVICE = (
    "Replay old pairs with --replay FILES, freeze a part with --freeze encoder, or lower "
    "training.learning_rate. If only the new pairs matter, this is no fault."
)
NUM_EXTRA_VALIDATIONS = 3 + 2 * (len(ALPHAS) + 1) // 3
"""How many more validations the end of a fine-tuning run has than the end of any other run, if there are
pairs to keep. Computing only a loss counts as a third of a validation."""


@dataclass(frozen=True)
class FineTuning:
    """The start model of a run, and the pairs to keep, encoded and batched once."""

    start: StoredStart
    keep: TranslationValidation | None
    recipe: Recipe

    def choose_weights(
        self, trainer: Trainer, tuned: Mapping[str, Tensor]
    ) -> Generator[Event, None, tuple[dict[str, Tensor], float]]:
        """Return the chosen weights and their α.

        These are the tuned weights and 1 if there are no pairs to keep, if `fine_tuning.interpolate` is off,
        or if the run is interrupted.
        """
        started = trainer.seconds
        weights = {name: tensor.clone() for name, tensor in tuned.items()}  # the model is about to change
        if self.keep is None or not self.recipe.fine_tuning.interpolate:
            return weights, 1.0
        points = []
        for alpha in (0.0, *ALPHAS):
            load_module_weights(trainer.model, interpolate_weights(self.start.weights, weights, alpha))
            new_loss, kept_loss = self._loss(trainer.validation, trainer), self._loss(self.keep, trainer)
            if new_loss is None or kept_loss is None:  # the run is interrupted
                return weights, 1.0
            points.append(InterpolatedPoint(alpha, new_loss, kept_loss))
        start, *others = points
        chosen_point = choose_point(start, others, keeps_translations=self.start.old_pairs.keeps_translations)
        losses_by_alpha = ", ".join(
            f"{point.alpha:g}: {point.new_loss:.3f} and {point.kept_loss:.3f}" for point in points
        )
        yield StageDone(
            "interpolating",
            f"{chosen_point.alpha:.0%} of the way from the start model (losses of the new pairs and of those "
            f"to keep, by this share: {losses_by_alpha})",
            trainer.seconds - started,
        )
        return interpolate_weights(self.start.weights, weights, chosen_point.alpha), chosen_point.alpha

    def report(
        self, trainer: Trainer, result: ValidationResult, alpha: float
    ) -> Generator[Event, None, dict[str, float | str | None]]:
        """Yield the scores of the start model and of the final model; warn if the final model is worse.

        Return the scores as facts of the model card. The model has its final weights before and after this
        call.
        """
        started, name, beam = trainer.seconds, self._score_name, self.recipe.search.beam
        final = {key: tensor.clone() for key, tensor in module_weights(trainer.model).items()}
        kept_score = self._score(self.keep, trainer, beam)
        load_module_weights(trainer.model, self.start.weights)
        start_new_score = self._score(trainer.validation, trainer, beam)
        start_kept_score = self._score(self.keep, trainer, beam)
        load_module_weights(trainer.model, final)
        new_score, old_pairs = _value(result, name), self.start.old_pairs
        parts = [f"{name} of the new pairs {_change(start_new_score, new_score)}"]
        if self.keep is not None:
            what = "its agreement with the start model on" if old_pairs.keeps_translations else "of"
            change = _change(start_kept_score, kept_score)
            parts.append(f"{what} {len(self.keep):,} pairs to keep {change} ({old_pairs.keep_origin})")
        yield StageDone("fine-tuning", ", ".join(parts), trainer.seconds - started)
        if _is_worse(name, start_new_score, new_score):
            yield _warning(f"the new pairs: {name}", start_new_score, new_score, _WORSE_ON_NEW_ADVICE)
        # A translation that differs from the translation of the start model may be better.
        forgets = _is_worse(name, start_kept_score, kept_score, MAX_KEPT_SCORE_DROP)
        if not old_pairs.keeps_translations and forgets:
            what = f"the pairs to keep ({old_pairs.keep_origin}): {name}"
            yield _warning(what, start_kept_score, kept_score, _FORGOTTEN_ADVICE)
        return {
            "start_from": self.recipe.fine_tuning.start_from
            and _last_part(self.recipe.fine_tuning.start_from),
            "start_share": alpha,  # 0 means the weights of the start model, 1 the tuned weights
            f"start_{name}": start_new_score,
            f"keep_{name}": kept_score,
            f"start_keep_{name}": start_kept_score,
            "keep_pairs": old_pairs.keep_origin,
        }

    @property
    def _score_name(self) -> str:
        """The score to report: `stop_on`, or chrF for translators that stop on the loss."""
        stop_on = self.recipe.training.stop_on
        return "chrf" if stop_on == "loss" and self.recipe.model.task == "translate" else stop_on

    def _loss(self, validation: Validation, trainer: Trainer) -> float | None:
        """Return the loss of the model on a validation set; None if the run is interrupted."""
        # Only translators have pairs to keep, so both validation sets have pairs to translate.
        translation_validation = cast("TranslationValidation", validation)
        return translation_validation.loss(trainer.model, should_stop=trainer.should_stop)

    def _score(self, validation: Validation | None, trainer: Trainer, beam: int) -> float | None:
        """Return the score of the model; None if `validation` is None or if the run is interrupted."""
        if validation is None:
            return None
        result = validation.validate(trainer.model, beam, should_stop=trainer.should_stop)
        return None if result is None else _value(result, self._score_name)


def read_fine_tuning(folder: RunFolder, recipe: Recipe, tokenizers: TokenizerPair) -> FineTuning | None:
    """Return the start model of a run and its pairs to keep; None if the run has no start model."""
    if recipe.fine_tuning.start_from is None:
        return None
    start = read_stored_start(folder)
    keep = TranslationValidation(start.old_pairs.keep, tokenizers, recipe) if start.old_pairs.keep else None
    return FineTuning(start, keep, recipe)


def _value(result: ValidationResult, score: str) -> float:
    return result.loss if score == "loss" else result.score_values()[score]


def _change(before: float | None, after: float | None) -> str:
    return "not measured" if before is None or after is None else f"{before:.2f} → {after:.2f}"


def _is_worse(score: str, before: float | None, after: float | None, tolerance: float = 0.0) -> bool:
    """Whether a score got worse by more than `tolerance`; a loss is worse if it is higher."""
    if before is None or after is None:
        return False
    return (after - before if score == "loss" else before - after) > tolerance


def _warning(what: str, before: float | None, after: float | None, advice: str) -> Warned:
    return Warned(f"the model is worse than the start model on {what} {_change(before, after)}", advice)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
