"""Explanations of captions and classes: what the page shows of a picture is what the model computes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jumok.analysis.changes import Paint
from jumok.analysis.class_explanation import explain_class
from jumok.analysis.cost import count_weights
from jumok.analysis.explainer import explain
from jumok.analysis.explanation_files import open_explanation, save_explanation
from jumok.analysis.json_format import explanation_from_json, explanation_to_json
from jumok.analysis.live_explanation import complete_explanation
from jumok.errors import DataError, UnsupportedError
from jumok.pictures.reading import picture_data_url, read_picture, write_picture
from support.picture_files import half_bright
from support.random_translators import TARGET, picture_classifier, picture_translator

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def picture(tmp_path: Path) -> str:
    write_picture(tmp_path / "half.png", half_bright("left", 3))
    return str(tmp_path / "half.png")


def test_the_maps_of_a_caption_equal_the_maps_of_the_translator(picture: str) -> None:
    translator = picture_translator()
    assert explain(translator, picture).text == translator.translate([picture])[0].text
    explanation = explain(translator, picture, target=TARGET)
    assert explanation.source.text == "half.png"
    assert explanation.source.words[:5] == ("1,1", "1,2", "1,3", "1,4", "2,1")
    expected = translator.attention(picture, explanation.text)
    for site, attention in explanation.attention.items():
        np.testing.assert_allclose(attention.weights, expected[site].weights, atol=1e-6)
        assert attention.keys == expected[site].keys
    words = explanation.words("cross")
    assert words.keys == explanation.source.words
    np.testing.assert_allclose(
        words.weights[-1].mean(axis=0)[: len(explanation.target.words)],
        translator.word_attention(picture, explanation.text).weights[0, 0],
        atol=1e-6,
    )
    [alignment] = explanation.alignments
    assert alignment.heads == ((1, 0), (1, 1))  # the heads of the last layer
    by_word = {word: patch for patch, word in alignment.links.sure}
    greatest = translator.word_attention(picture, explanation.text).weights[0, 0].argmax(axis=-1)
    assert by_word == dict(enumerate(greatest.tolist()))


def test_the_picture_in_the_explanation_has_the_pixels_that_the_model_reads(picture: str) -> None:
    shown = explain(picture_translator(), picture).picture
    assert shown is not None
    assert (shown.rows, shown.columns) == (4, 4)
    pixels = read_picture(shown.image, size=8, channels=1)
    assert np.array_equal(pixels, read_picture(picture, size=8, channels=1))


def test_a_picture_as_data_url_is_explained_like_its_file(picture: str) -> None:
    explanation = explain(picture_translator(), picture_data_url(picture), target=TARGET)
    assert explanation.source.text == "picture"
    expected = explain(picture_translator(), picture, target=TARGET)
    assert np.array_equal(explanation.attention["cross"].weights, expected.attention["cross"].weights)


def test_distances_between_patches_are_measured_in_the_picture(picture: str) -> None:
    explanation = explain(picture_translator(), picture, target=TARGET)
    encoder, cross = explanation.statistics["encoder"], explanation.statistics["cross"]
    assert cross.distance is None
    assert cross.on_special is None
    positions = np.array([(index // 4, index % 4) for index in range(16)])
    distances = np.hypot(*(positions[:, None] - positions).transpose(2, 0, 1))
    expected = (explanation.attention["encoder"].weights * distances).sum(axis=-1).mean(axis=-1)
    np.testing.assert_allclose(encoder.distance, expected, rtol=1e-5)


def test_a_caption_has_a_search_and_effects_and_steps_and_can_be_changed(picture: str) -> None:
    complete = complete_explanation(explain(picture_translator(), picture))
    assert complete.search is not None
    assert complete.search.attention.shape[1] == 16  # 4 × 4 patches
    assert complete.statistics["cross"].effect.shape == (2, 2)
    for cell in complete.cells:
        weight = next(step.values for step in cell.steps if step.name == "weight")
        stored = complete.attention[cell.cell.site].weights
        index = (cell.cell.layer, cell.cell.head, cell.cell.query, cell.cell.key)
        assert float(weight) == pytest.approx(float(stored[index]), abs=1e-5)
    painted = explain(picture_translator(), picture, edit=Paint("cross", 1, 0, query=0, key=15, weight=0.9))
    assert painted.attention["cross"].weights[1, 0, 0, 15] == pytest.approx(0.9, abs=1e-5)


def test_the_cost_of_explaining_a_picture_is_not_underestimated(picture: str) -> None:
    explanation = explain(picture_translator(), picture, target=TARGET)
    counted = count_weights(picture_translator().model, 16, len(explanation.target.ids))
    assert counted >= sum(attention.weights.size for attention in explanation.attention.values())


def test_a_class_is_explained_with_its_roll_out(picture: str) -> None:
    classifier = picture_classifier()
    explanation = explain_class(classifier, picture)
    [answer] = classifier.classify([picture])
    assert explanation.text == answer.name
    assert explanation.source.tokens[0] == "<class>"
    assert explanation.log_prob == pytest.approx(np.log(answer.probabilities[answer.name]), abs=1e-5)
    probabilities = {token.token: token.probability for token in explanation.candidates[0]}
    assert probabilities == pytest.approx(answer.probabilities)
    shares = classifier.class_roll_out(picture).weights[0, 0, 0]
    np.testing.assert_allclose(explanation.roll_out("encoder")[0, 1:], shares, atol=1e-6)
    assert complete_explanation(explanation) is explanation
    with pytest.raises(UnsupportedError, match="only for translators"):
        explanation.steps("encoder", 0, 0, 0, 0)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_explanations_of_pictures_are_read_back_from_files(picture: str, tmp_path: Path, suffix: str) -> None:
    for explanation in (explain(picture_translator(), picture), explain_class(picture_classifier(), picture)):
        save_explanation(explanation, tmp_path / f"x{suffix}")
        opened = open_explanation(tmp_path / f"x{suffix}")
        assert opened.picture == explanation.picture
        assert opened.source == explanation.source
        for site, attention in explanation.attention.items():
            assert opened.attention[site].keys == attention.keys
            np.testing.assert_allclose(opened.attention[site].weights, attention.weights, atol=1 / 255)


def test_a_stored_picture_that_is_no_png_is_refused(picture: str) -> None:
    document = json.loads(explanation_to_json(explain_class(picture_classifier(), picture)))
    document["picture"]["image"] = "https://elsewhere.invalid/a.png"
    with pytest.raises(DataError, match="PNG in a data: URL"):
        explanation_from_json(json.dumps(document))
    document["picture"] = {"rows": 9, "columns": 9, "image": "data:image/png;base64,"}
    with pytest.raises(DataError, match="one token per patch"):
        explanation_from_json(json.dumps(document))
