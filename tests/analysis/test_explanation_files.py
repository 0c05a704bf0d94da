"""Explanations as files: small as JSON, exact as .npz; version 1 is read, damaged files are refused."""

from __future__ import annotations

import base64
import html
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies
from make_example_explanations import write_examples

from jumok.analysis.changes import Silence
from jumok.analysis.explainer import explain
from jumok.analysis.explanation_files import open_explanation, save_explanation, show_explanation
from jumok.analysis.json_format import explanation_from_json, explanation_to_json
from jumok.analysis.live_explanation import complete_explanation
from jumok.analysis.packing import pack_weights, unpack_weights
from jumok.analysis.steps import Cell
from jumok.config.recipe import SearchSettings, TransformerSettings
from jumok.errors import DataError, StorageError, UnsupportedError
from support.random_translators import SENTENCE, SMALL_MODELS, WORDS, make_translator, small_translator

if TYPE_CHECKING:
    from jumok.analysis.explanation import Explanation

FORMAT_PAGE = Path(__file__).parents[2] / "docs" / "explanation-format.md"
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(0, 5), st.integers(1, 5))


def explanation_with_all_fields(name: str) -> Explanation:
    translator = small_translator(name)
    return explain(translator, SENTENCE, edit=Silence("cross", 0, 0)).with_effects().with_steps()


@given(
    weights=SHAPES.flatmap(
        lambda shape: numpy_strategies.arrays(np.float32, shape, elements=st.floats(0, 1.5, width=32))
    )
)
def test_unpacked_weights_are_within_the_error_bound(weights: np.ndarray) -> None:
    restored = unpack_weights(json.loads(json.dumps(pack_weights(weights))))
    assert restored.shape == weights.shape
    scale = max(1.0, float(weights.max(initial=0)))
    # A code is √(weight / scale) rounded to a multiple of 1/255, so it is off by at most 1/510.
    bound = np.sqrt(scale * weights) / 255 + scale / 510**2 + 1e-6
    assert np.all(np.abs(restored - weights) <= bound)


@given(
    weights=SHAPES.flatmap(
        lambda shape: numpy_strategies.arrays(np.float32, shape, elements=st.floats(0, 1, width=32))
    )
)
def test_a_second_byte_per_weight_makes_the_error_small_and_can_be_left_out(weights: np.ndarray) -> None:
    packed = json.loads(json.dumps(pack_weights(weights, four_decimals=True)))
    # 1 / (255 · 254) is below 1.6e-5; the rest is for rounding in float32.
    assert np.all(np.abs(unpack_weights(packed) - weights) <= 1.6e-5)
    one_byte = pack_weights(weights)
    assert {name: packed[name] for name in one_byte} == one_byte


def test_a_causal_map_is_stored_without_the_weights_above_the_diagonal() -> None:
    weights = np.tril(np.random.default_rng(1).random((2, 3, 6, 6)))
    packed = pack_weights(weights)
    assert packed["layout"] == "causal"
    assert len(base64.b64decode(packed["codes"])) == 2 * 3 * 21  # 1 + 2 + … + 6 weights per head
    np.testing.assert_allclose(unpack_weights(packed), weights, atol=1 / 255)
    codes = np.frombuffer(base64.b64decode(packed["codes"]), dtype=np.uint8)
    # Code 0 is row 0, which has one weight. Row 1 begins with code 1.
    assert codes[1] == round(255 * np.sqrt(weights[0, 0, 1, 0]))


@pytest.mark.parametrize("layout", ["causal", "full"])
@pytest.mark.parametrize("shape", [(10**6, 10**6), (2**32, 2**32), (-1, -1), (2, 3)])
def test_a_false_shape_is_refused_before_memory_is_allocated(layout: str, shape: tuple[int, ...]) -> None:
    packed = {"layout": layout, "shape": shape, "scale": 1.0, "codes": ""}
    with pytest.raises(DataError, match=r"shape \("):
        unpack_weights(packed)


def test_a_causal_map_without_heads_needs_no_memory() -> None:
    packed = {"layout": "causal", "shape": [0, 10**6, 10**6], "scale": 1.0, "codes": ""}
    assert unpack_weights(packed).shape == (0, 10**6, 10**6)


def test_nan_and_infinity_are_packed_as_zero() -> None:
    restored = unpack_weights(pack_weights(np.array([[np.nan, 1.0], [0.5, np.inf]])))
    np.testing.assert_allclose(restored, [[0.0, 1.0], [0.5, 0.0]], atol=1 / 255)


@pytest.mark.parametrize("name", SMALL_MODELS)
@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_stored_explanation_is_read_back(name: str, suffix: str, tmp_path: Path) -> None:
    explanation = explanation_with_all_fields(name)
    path = tmp_path / f"x{suffix}"
    save_explanation(explanation, path)
    restored = open_explanation(path)
    assert (restored.source, restored.target, restored.changes) == (
        explanation.source,
        explanation.target,
        explanation.changes,
    )
    assert (restored.ended, restored.forced, restored.alignments) == (
        explanation.ended,
        explanation.forced,
        explanation.alignments,
    )
    assert dict(restored.facts) == dict(explanation.facts)
    for site, attention in explanation.attention.items():
        restored_attention = restored.attention[site]
        assert (restored_attention.queries, restored_attention.keys) == (attention.queries, attention.keys)
        tolerance = 0 if suffix == ".npz" else 2e-5
        np.testing.assert_allclose(restored_attention.weights, attention.weights, atol=tolerance, rtol=0)
    np.testing.assert_allclose(restored.log_probs, explanation.log_probs, atol=1e-5)
    for site, statistics in explanation.statistics.items():
        for field in ("entropy", "distance", "on_special", "effect"):
            np.testing.assert_allclose(
                getattr(restored.statistics[site], field), getattr(statistics, field), atol=1e-4
            )
    assert [(group.site, group.heads) for group in restored.group_effects] == [
        (group.site, group.heads) for group in explanation.group_effects
    ]
    assert restored.before is not None
    assert restored.before.target == explanation.before.target
    assert [steps.cell for steps in restored.cells] == [steps.cell for steps in explanation.cells]
    for restored_cell, cell in zip(restored.cells, explanation.cells, strict=True):
        for step in cell.steps:
            np.testing.assert_array_equal(restored_cell[step.name], step.values)
    assert_same_tree(restored, explanation)


def assert_same_tree(restored: Explanation, explanation: Explanation) -> None:
    assert restored.search is not None
    assert explanation.search is not None
    for restored_step, step in zip(restored.search.steps, explanation.search.steps, strict=True):
        assert [(c.parent, c.id, c.token, c.kept, c.finished, c.attention_row) for c in restored_step] == [
            (c.parent, c.id, c.token, c.kept, c.finished, c.attention_row) for c in step
        ]
    assert list(restored.search.finished()) == list(explanation.search.finished())
    np.testing.assert_allclose(restored.search.attention, explanation.search.attention, atol=1 / 255)


def test_one_cell_per_site_is_stored_by_default() -> None:
    explanation = explain(small_translator("transformer"), SENTENCE)
    stored = explanation_from_json(explanation_to_json(explanation.with_steps()))
    assert [steps.cell.site for steps in stored.cells] == ["encoder", "decoder", "cross"]
    cell = stored.cells[2].cell
    np.testing.assert_array_equal(
        stored.steps("cross", cell.layer, cell.head, cell.query, cell.key)["query"],
        explanation.steps("cross", cell.layer, cell.head, cell.query, cell.key)["query"],
    )
    with pytest.raises(UnsupportedError, match="comes from a file"):
        stored.steps("cross", 0, 0, 0, 0 if cell != Cell("cross", 0, 0, 0, 0) else 1)  # not the stored cell
    chosen = explanation.with_steps([Cell("encoder", 1, 1, 0, 0)])
    assert [steps.cell for steps in chosen.cells] == [Cell("encoder", 1, 1, 0, 0)]


def explanation_in(page: str) -> Explanation:
    [data] = re.findall(r'id="jumok-data">(.*?)</script>', page)
    [document] = json.loads(data)["explanations"]
    return explanation_from_json(json.dumps(document))


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_a_page_has_effects_and_steps(name: str, tmp_path: Path) -> None:
    explanation = explain(small_translator(name), SENTENCE)
    save_explanation(explanation, tmp_path / "x.html")
    shown = html.unescape(show_explanation(explanation).html)
    for page in ((tmp_path / "x.html").read_text(encoding="utf-8"), shown):
        stored = explanation_in(page)
        assert [cell.cell.site for cell in stored.cells] == list(explanation.attention)
        assert all(statistics.effect is not None for statistics in stored.statistics.values())


def test_a_page_has_the_cells_that_were_chosen(tmp_path: Path) -> None:
    chosen = Cell("encoder", 1, 1, 0, 0)
    save_explanation(
        explain(small_translator("transformer"), SENTENCE).with_steps([chosen]), tmp_path / "x.html"
    )
    stored = explanation_in((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert [cell.cell for cell in stored.cells] == [chosen]


def test_a_page_made_from_a_file_has_no_more_than_the_file(tmp_path: Path) -> None:
    save_explanation(explain(small_translator("transformer"), SENTENCE), tmp_path / "x.json")
    save_explanation(open_explanation(tmp_path / "x.json"), tmp_path / "x.html")
    stored = explanation_in((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert stored.cells == ()


@pytest.mark.medium
def test_sixty_tokens_of_a_six_layer_model_stay_below_a_megabyte() -> None:
    settings = TransformerSettings(
        width=512, heads=8, feed_forward=64, encoder_layers=6, decoder_layers=6, dropout=0.0
    )
    # The translation is cut at ⌊0.84 · 59⌋ + 10 = 59 tokens.
    translator = make_translator(settings, search=SearchSettings(beam=4, max_length_ratio=0.84))
    explanation = explain(translator, " ".join((WORDS * 5)[:59]))
    assert len(explanation.source.ids) == len(explanation.target.ids) == 59
    assert {
        site: attention.weights.shape for site, attention in explanation.attention.items()
    } == dict.fromkeys(("encoder", "decoder", "cross"), (6, 8, 60, 60))
    assert len(explanation_to_json(explanation.with_steps()).encode()) < 1_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not an explanation as JSON"),
        ("[]", 'its "format" is not'),
        ('{"site": "cross"}', 'its "format" is not'),
        ('{"format": "jumok-explanation", "version": 99}', "version 99"),
        ('{"format": "jumok-explanation", "version": 1}', "damaged: KeyError"),
    ],
)
def test_json_that_is_not_an_explanation_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        explanation_from_json(text)


def as_version_1(document: Any) -> Any:
    """Return a document with the names of version 1."""
    old_names = {
        "tokens": "pieces",
        "word_of_token": "word_of_piece",
        "token": "piece",
        "attention_row": "looked",
        "on_special": "on_mark",
    }
    old_steps = {"projected key": "turned key", "position weights": "place weights"}

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if not isinstance(value, dict):
            return old_steps.get(value, value) if isinstance(value, str) else value
        return {old_names.get(name, name): renamed(item) for name, item in value.items()}

    old = renamed(document)
    old["version"] = 1
    old["search"]["looks"] = old["search"].pop("attention")
    return old


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_files_of_version_1_are_read(name: str) -> None:
    text = explanation_to_json(explanation_with_all_fields(name))
    old = json.dumps(as_version_1(json.loads(text)))
    assert "pieces" in old
    assert explanation_to_json(explanation_from_json(old)) == explanation_to_json(explanation_from_json(text))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    explanation = explain(small_translator("bahdanau"), SENTENCE)
    document = json.loads(explanation_to_json(explanation))
    document["attention"]["cross"]["codes"] = document["attention"]["cross"]["codes"][:-8]
    with pytest.raises(DataError, match="do not fill the shape"):
        explanation_from_json(json.dumps(document))
    (tmp_path / "x.npz").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match=r"not an explanation as \.npz"):
        open_explanation(tmp_path / "x.npz")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not an explanation as JSON"):
        open_explanation(tmp_path / "x.json")
    with pytest.raises(DataError, match="cannot be read"):
        open_explanation(tmp_path / "missing.json")


def test_every_damaged_npz_is_refused_with_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save_explanation(explain(small_translator("bahdanau"), SENTENCE), path)
    whole = path.read_bytes()
    one_array = io.BytesIO()
    np.save(one_array, np.zeros(3))
    # The local header of the first entry has 30 bytes and its name; compressed data follow.
    data_start = whole.index(b".npy") + len(b".npy") + int.from_bytes(whole[28:30], "little")
    overwritten = whole[:data_start] + b"\xff" * 50 + whole[data_start + 50 :]
    encrypted = bytearray(whole)  # only its flags say that the first entry is encrypted
    encrypted[whole.index(b"PK\x01\x02") + 8] |= 1  # in the central directory
    encrypted[6] |= 1  # in the local header
    for damaged in (b"", one_array.getvalue(), whole[:-100], overwritten, bytes(encrypted)):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"not an explanation as \.npz"):
            open_explanation(path)


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_the_format_documentation_names_every_key_and_step(name: str) -> None:
    page = FORMAT_PAGE.read_text(encoding="utf-8")
    document = json.loads(explanation_to_json(explanation_with_all_fields(name)))
    objects = [document, document["facts"], document["source"], document["alignments"][0], document["search"]]
    objects += [document["search"]["steps"][0], document["before"], document["attention"]["cross"]]
    objects += [document["statistics"]["cross"], *document["changes"], *document["steps"]]
    objects += [document["steps"][0]["steps"][0]]
    names = {key for object_ in objects for key in object_}
    names |= {step["name"] for cell in document["steps"] for step in cell["steps"]}
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_example_explanations_are_written(tmp_path: Path) -> None:
    paths = write_examples(tmp_path / "examples")
    assert {path.stem for path in paths} == {*SMALL_MODELS, "given", "changed"}
    assert all(open_explanation(path).cells for path in paths)


def test_unknown_suffixes_and_missing_folders_are_refused(tmp_path: Path) -> None:
    explanation = explain(small_translator("bahdanau"), SENTENCE)
    with pytest.raises(UnsupportedError, match=r"\.json or \.npz"):
        save_explanation(explanation, tmp_path / "x.pkl")
    with pytest.raises(StorageError, match="missing"):
        save_explanation(explanation, tmp_path / "missing" / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_a_page_holds_the_explanation(tmp_path: Path) -> None:
    explanation = explain(small_translator("transformer"), SENTENCE)
    save_explanation(explanation, tmp_path / "x.html")
    stored = explanation_in((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert explanation_to_json(stored) == explanation_to_json(
        explanation_from_json(explanation_to_json(complete_explanation(explanation)))
    )


def test_a_notebook_shows_a_page_in_an_iframe() -> None:
    shown = show_explanation(explain(small_translator("bahdanau"), SENTENCE), height=500)
    frame = shown._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "height: 500px" in frame
    assert repr(shown) == "NotebookPage()"


def test_a_page_is_not_read_back(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"\.json or \.npz"):
        open_explanation(tmp_path / "x.html")
