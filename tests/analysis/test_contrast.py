"""The model's own translation, contrasted with an expected translation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from jumok.analysis.changes import Paint
from jumok.analysis.expected_translation import contrast
from jumok.analysis.explainer import explain
from jumok.data.batching import padded_batch
from jumok.errors import DataError
from jumok.inference.loading import load
from jumok.pictures.reading import write_picture
from jumok.types import END
from support.picture_files import half_bright
from support.random_translators import SENTENCE, SMALL_MODELS, picture_translator, small_translator

if TYPE_CHECKING:
    from jumok.inference.translator import Translator

MODELS = Path(__file__).parents[1] / "stored" / "models"


def trained_translator() -> Translator:
    """Return a translator whose translations keep their tokens when their text is tokenized again.

    Random models write bytes that are no text, so their prefixes change.
    """
    translator = load(MODELS / "transformer", engine="torch")
    translator.max_source_tokens = 64  # the stored model has a limit of 12
    return translator


@pytest.mark.parametrize("name", [*SMALL_MODELS, "trained"])
def test_contrast_finds_the_first_different_step_and_the_effect_of_each_source_word(name: str) -> None:
    translator = trained_translator() if name == "trained" else small_translator(name)
    own = explain(translator, SENTENCE)
    prefix = translator.tokenizers.target.decode(own.target.ids[:2])
    result = contrast(translator, SENTENCE, f"{prefix} river knows")
    assert result.own.text == own.text
    ids = [list(explanation.target.ids) for explanation in (result.own, result.expected)]
    step = result.step
    assert step == (2 if name == "trained" else 0)
    assert ids[0][:step] == ids[1][:step]
    tokens = [[*target, END][step] for target in ids]
    assert tokens[0] != tokens[1]

    def log_probs_at_step(source: list[int]) -> torch.Tensor:
        """Return the log-probability of every token after the common prefix, from one plain pass."""
        with torch.inference_mode():
            states = translator.model(padded_batch([source], [ids[0][:step]]))
            return translator.model.output.log_probs(states)[0, step]

    def difference(log_probs: torch.Tensor) -> float:
        """Return log p(own token) − log p(expected token)."""
        return float(log_probs[tokens[0]] - log_probs[tokens[1]])

    source = result.own.source
    with_all_words = log_probs_at_step(list(source.ids))
    own_log_prob, expected_log_prob = result.own.log_probs[step], result.expected.log_probs[step]
    assert float(own_log_prob - expected_log_prob) == pytest.approx(difference(with_all_words), abs=1e-4)
    assert result.rank == int((with_all_words > with_all_words[tokens[1]]).sum())
    assert result.preference == pytest.approx(result.own.log_prob - result.expected.log_prob)
    assert result.source_effects is not None
    for word in range(len(source.words)):
        other_ids = [
            id_ for id_, owner in zip(source.ids, source.word_of_token, strict=True) if owner != word
        ]
        effect = difference(with_all_words) - difference(log_probs_at_step(other_ids))
        assert result.source_effects[word] == pytest.approx(effect, abs=1e-3)


def test_the_same_translation_does_not_differ() -> None:
    translator = small_translator("transformer")
    result = contrast(translator, SENTENCE, explain(translator, SENTENCE).text)
    assert (result.step, result.rank, result.source_effects) == (None, None, None)
    with pytest.raises(DataError, match="do not differ"):
        result.tokens()


def test_a_prefix_of_the_models_own_translation_differs_at_its_end() -> None:
    translator = trained_translator()
    own = explain(translator, SENTENCE)
    shorter = translator.tokenizers.target.decode(own.target.ids[:2])
    result = contrast(translator, SENTENCE, shorter)
    assert result.step == 2
    assert result.tokens() == (own.target.tokens[2], "</s>")


def test_effects_are_not_measured_if_single_cells_are_changed() -> None:
    paint = Paint("cross", 0, 0, query=0, key=1, weight=1.0)
    result = contrast(small_translator("transformer"), SENTENCE, "river", edit=paint)
    assert result.source_effects is None
    assert np.isfinite(result.preference)


def test_effects_of_patches_are_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    write_picture(path, half_bright("left", 1))
    result = contrast(picture_translator(), str(path), "river")
    assert result.step is not None
    assert result.source_effects is None


def test_an_empty_expected_translation_is_refused() -> None:
    with pytest.raises(DataError, match="empty"):
        contrast(small_translator("transformer"), SENTENCE, " ")
