"""Explanations in files: small as JSON, exact as .npz, and refused in words where damaged."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies
from make_example_explanations import write_examples

from explain_translators import FAMILIES, SENTENCE, WORDS, family_translator, make_translator
from jumok.errors import DataError, StorageError, UnsupportedError
from jumok.explain import Cell, Explanation, Silence, open_explanation
from jumok.explain.packing import pack_weights, unpack_weights
from jumok.recipe import SearchSettings, TransformerSettings

FORMAT_PAGE = Path(__file__).parents[2] / "docs" / "explanation-format.md"
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(0, 5), st.integers(1, 5))


def complete(name: str) -> Explanation:
    translator = family_translator(name)
    return translator.explain(SENTENCE, edit=Silence("cross", 0, 0)).with_effects().with_steps()


@given(
    weights=SHAPES.flatmap(
        lambda shape: numpy_strategies.arrays(np.float32, shape, elements=st.floats(0, 1.5, width=32))
    )
)
def test_packed_weights_come_back_within_their_bound(weights: np.ndarray) -> None:
    again = unpack_weights(json.loads(json.dumps(pack_weights(weights))))
    assert again.shape == weights.shape
    scale = max(1.0, float(weights.max(initial=0)))
    bound = np.sqrt(scale * weights) / 255 + scale / 510**2 + 1e-6
    assert np.all(np.abs(again - weights) <= bound)


@given(
    weights=SHAPES.flatmap(
        lambda shape: numpy_strategies.arrays(np.float32, shape, elements=st.floats(0, 1, width=32))
    )
)
def test_fine_weights_are_right_to_four_decimals_and_still_read_as_bytes(weights: np.ndarray) -> None:
    packed = json.loads(json.dumps(pack_weights(weights, fine=True)))
    assert np.all(np.abs(unpack_weights(packed) - weights) <= 2e-5)
    plain = pack_weights(weights)
    assert {name: packed[name] for name in plain} == plain


def test_a_map_that_never_looks_ahead_takes_half_the_room() -> None:
    weights = np.tril(np.random.default_rng(1).random((2, 3, 6, 6)))
    packed = pack_weights(weights)
    assert packed["layout"] == "causal"
    assert len(base64.b64decode(packed["codes"])) == 2 * 3 * 21
    np.testing.assert_allclose(unpack_weights(packed), weights, atol=1 / 255)
    codes = np.frombuffer(base64.b64decode(packed["codes"]), dtype=np.uint8)
    assert codes[1] == round(255 * np.sqrt(weights[0, 0, 1, 0]))  # row after row, each up to its own place


def test_what_is_no_number_is_packed_as_nothing() -> None:
    assert unpack_weights(pack_weights(np.array([[np.nan, 1.0], [0.5, np.inf]])))[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_everything_comes_back(name: str, suffix: str, tmp_path: Path) -> None:
    explanation = complete(name)
    path = tmp_path / f"x{suffix}"
    explanation.save(path)
    again = open_explanation(path)
    assert (again.source, again.target, again.changes) == (
        explanation.source,
        explanation.target,
        explanation.changes,
    )
    assert (again.ended, again.forced, again.alignments) == (
        explanation.ended,
        explanation.forced,
        explanation.alignments,
    )
    assert dict(again.facts) == dict(explanation.facts)
    for site, attention in explanation.attention.items():
        found = again.attention[site]
        assert (found.queries, found.keys) == (attention.queries, attention.keys)
        tolerance = 0 if suffix == ".npz" else 2e-5
        np.testing.assert_allclose(found.weights, attention.weights, atol=tolerance, rtol=0)
    np.testing.assert_allclose(again.log_probs, explanation.log_probs, atol=1e-5)
    for site, one in explanation.statistics.items():
        for field in ("entropy", "distance", "on_mark", "effect"):
            np.testing.assert_allclose(getattr(again.statistics[site], field), getattr(one, field), atol=1e-4)
    assert [(one.site, one.heads) for one in again.group_effects] == [
        (one.site, one.heads) for one in explanation.group_effects
    ]
    assert again.before is not None
    assert again.before.target == explanation.before.target
    assert [one.cell for one in again.cells] == [one.cell for one in explanation.cells]
    for found, cell in zip(again.cells, explanation.cells, strict=True):
        for step in cell.steps:
            np.testing.assert_array_equal(found[step.name], step.values)
    same_tree(again, explanation)


def same_tree(again: Explanation, explanation: Explanation) -> None:
    assert again.search is not None
    assert explanation.search is not None
    for found, step in zip(again.search.steps, explanation.search.steps, strict=True):
        assert [(c.parent, c.id, c.piece, c.kept, c.finished, c.looked) for c in found] == [
            (c.parent, c.id, c.piece, c.kept, c.finished, c.looked) for c in step
        ]
    assert list(again.search.finished()) == list(explanation.search.finished())
    np.testing.assert_allclose(again.search.looks, explanation.search.looks, atol=1 / 255)


def test_a_frozen_explanation_has_one_cell_a_site_unless_told() -> None:
    explanation = family_translator("transformer").explain(SENTENCE)
    frozen = Explanation.from_json(explanation.with_steps().to_json())
    assert [one.cell.site for one in frozen.cells] == ["encoder", "decoder", "cross"]
    cell = frozen.cells[2].cell
    np.testing.assert_array_equal(
        frozen.steps("cross", cell.layer, cell.head, cell.query, cell.key)["query"],
        explanation.steps("cross", cell.layer, cell.head, cell.query, cell.key)["query"],
    )
    with pytest.raises(UnsupportedError, match="comes from a file"):
        frozen.steps("cross", 0, 0, 0, 0 if cell != Cell("cross", 0, 0, 0, 0) else 1)
    told = explanation.with_steps([Cell("encoder", 1, 1, 0, 0)])
    assert [one.cell for one in told.cells] == [Cell("encoder", 1, 1, 0, 0)]


def on_page(page: str) -> Explanation:
    [found] = re.findall(r'id="jumok-data">(.*?)</script>', page)
    [told] = json.loads(found)["explanations"]
    return Explanation.from_json(json.dumps(told))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_page_tells_effects_and_steps_unasked(name: str, tmp_path: Path) -> None:
    explanation = family_translator(name).explain(SENTENCE)
    explanation.save(tmp_path / "x.html")
    shown = html.unescape(explanation.show().html)
    for page in ((tmp_path / "x.html").read_text(encoding="utf-8"), shown):
        told = on_page(page)
        assert [cell.cell.site for cell in told.cells] == list(explanation.attention)
        assert all(one.effect is not None for one in told.statistics.values())


def test_a_page_keeps_the_cells_that_were_chosen(tmp_path: Path) -> None:
    chosen = Cell("encoder", 1, 1, 0, 0)
    family_translator("transformer").explain(SENTENCE).with_steps([chosen]).save(tmp_path / "x.html")
    told = on_page((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert [cell.cell for cell in told.cells] == [chosen]


def test_a_page_of_an_explanation_from_a_file_tells_what_the_file_held(tmp_path: Path) -> None:
    family_translator("transformer").explain(SENTENCE).save(tmp_path / "x.json")
    open_explanation(tmp_path / "x.json").save(tmp_path / "x.html")
    told = on_page((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert told.cells == ()


@pytest.mark.medium
def test_sixty_tokens_of_a_six_layer_model_stay_below_a_megabyte() -> None:
    settings = TransformerSettings(
        width=512, heads=8, feed_forward=64, encoder_layers=6, decoder_layers=6, dropout=0.0
    )
    translator = make_translator(settings, search=SearchSettings(beam=4, longest=0.84))
    explanation = translator.explain(" ".join((WORDS * 5)[:59]))
    assert len(explanation.source.ids) == len(explanation.target.ids) == 59
    assert {site: one.weights.shape for site, one in explanation.attention.items()} == dict.fromkeys(
        ("encoder", "decoder", "cross"), (6, 8, 60, 60)
    )
    assert len(explanation.with_steps().to_json().encode()) < 1_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not an explanation as JSON"),
        ("[]", 'its "format" is not'),
        ('{"site": "cross"}', 'its "format" is not'),
        ('{"format": "jumok-explanation", "version": 99}', "version 99"),
        ('{"format": "jumok-explanation", "version": 1}', "damaged: KeyError"),
    ],
)
def test_something_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Explanation.from_json(text)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    explanation = family_translator("bahdanau").explain(SENTENCE)
    document = json.loads(explanation.to_json())
    document["attention"]["cross"]["codes"] = document["attention"]["cross"]["codes"][:-8]
    with pytest.raises(DataError, match="do not fill the shape"):
        Explanation.from_json(json.dumps(document))
    (tmp_path / "x.npz").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match=r"not an explanation as \.npz"):
        open_explanation(tmp_path / "x.npz")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not an explanation as JSON"):
        open_explanation(tmp_path / "x.json")
    with pytest.raises(DataError, match="cannot be read"):
        open_explanation(tmp_path / "missing.json")


@pytest.mark.parametrize("name", FAMILIES)
def test_the_page_on_the_format_names_every_key(name: str) -> None:
    page = FORMAT_PAGE.read_text(encoding="utf-8")
    document = json.loads(complete(name).to_json())
    places = [document, document["facts"], document["source"], document["alignments"][0], document["search"]]
    places += [document["search"]["steps"][0], document["before"], document["attention"]["cross"]]
    places += [document["statistics"]["cross"], *document["changes"], *document["steps"]]
    places += [document["steps"][0]["steps"][0]]
    named = {key for place in places for key in place}
    named |= {step["name"] for cell in document["steps"] for step in cell["steps"]}
    assert {key for key in named if f"`{key}`" not in page} == set()


def test_examples_for_a_page_are_written(tmp_path: Path) -> None:
    written = write_examples(tmp_path / "examples")
    assert {path.stem for path in written} == {*FAMILIES, "given", "changed"}
    assert all(open_explanation(path).cells for path in written)


def test_other_names_and_places_are_refused(tmp_path: Path) -> None:
    explanation = family_translator("bahdanau").explain(SENTENCE)
    with pytest.raises(UnsupportedError, match=r"\.json or \.npz"):
        explanation.save(tmp_path / "x.pkl")
    with pytest.raises(StorageError, match="missing"):
        explanation.save(tmp_path / "missing" / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_a_page_holds_the_explanation(tmp_path: Path) -> None:
    explanation = family_translator("transformer").explain(SENTENCE)
    explanation.save(tmp_path / "x.html")
    told = on_page((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert told.to_json() == Explanation.from_json(explanation.for_page().to_json()).to_json()


def test_a_notebook_shows_pages_beside_each_other() -> None:
    shown = family_translator("bahdanau").explain(SENTENCE).show(height=500)
    frame = shown._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "height: 500px" in frame
    assert repr(shown) == "Shown()"


def test_a_page_is_not_read_back(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"\.json or \.npz"):
        open_explanation(tmp_path / "x.html")
