"""An explanation as JSON and back. docs/explanation-format.md describes every key.

Version 2 renamed keys of version 1, e.g. `pieces` to `tokens`. Both versions can be read. Version 2 is
written.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.analysis.changes import change_from_json, change_to_json
from jumok.analysis.explanation import (
    BeforeChange,
    Explanation,
    GroupEffect,
    NextToken,
    PatchedPicture,
    WordAlignment,
)
from jumok.analysis.heads import HeadStatistics
from jumok.analysis.measures import Measures
from jumok.analysis.packing import pack_floats, pack_weights, unpack_floats, unpack_weights
from jumok.analysis.search_tree import Candidate, SearchTree
from jumok.analysis.steps import Cell, CellSteps, Step
from jumok.analysis.tokenized_sentence import TokenizedSentence
from jumok.data.alignments import parse_alignment
from jumok.errors import DataError, JumokError
from jumok.inference.attention_maps import label_maps
from jumok.plots.picture_maps import PNG_DATA_URL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

FORMAT, VERSION = "jumok-explanation", 2
_DECIMALS = 5  # of a number that is not packed as base64
MAX_FOUR_DECIMAL_WEIGHTS = 100_000
"""If all maps together have at most this number of weights, a file stores weights to four decimals."""
# Field of `Candidate`, in the order of its fields → key in JSON. The key "score" has the constrained
# log-probability. The field `score` has the key "ranking".
_CANDIDATE_KEYS = {
    "parent": "parent",
    "id": "id",
    "token": "token",
    "constrained_log_prob": "score",
    "log_prob": "log_prob",
    "kept": "kept",
    "finished": "finished",
    "score": "ranking",
    "attention_row": "attention_row",
}
_STATISTICS = ("entropy", "distance", "on_special", "error", "effect")


def explanation_to_json(explanation: Explanation) -> str:
    """Return the explanation as JSON. A weight is one byte before base64, or two if weights are few."""
    document = explanation_to_document(explanation)
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def explanation_from_json(text: str) -> Explanation:
    """Parse the JSON of `explanation_to_json`. Its weights are rounded: see `packing.py`."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DataError(f"This is not an explanation as JSON: {error}.") from None
    return explanation_from_document(document, lambda document: _unpack_maps(document["attention"]))


def explanation_to_document(
    explanation: Explanation, *, weights: bool = True, four_decimals: bool | None = None
) -> dict[str, Any]:
    """Return the explanation as plain JSON values, without its maps if `weights` is false.

    With `four_decimals`, weights take twice the space. By default, `four_decimals` is true if there are at
    most `MAX_FOUR_DECIMAL_WEIGHTS` weights.
    """
    maps = explanation.attention
    stored_maps = maps if weights else {}
    if four_decimals is None:
        four_decimals = sum(attention.weights.size for attention in maps.values()) <= MAX_FOUR_DECIMAL_WEIGHTS
    return {
        "format": FORMAT,
        "version": VERSION,
        "facts": dict(explanation.facts),
        "source": _sentence_document(explanation.source),
        "target": _sentence_document(explanation.target),
        "score": _number(explanation.score),
        "log_prob": _number(explanation.log_prob),
        "log_probs": [_number(value) for value in explanation.log_probs.tolist()],
        "ended": explanation.ended,
        "forced": explanation.forced,
        "candidates": [_tokens_document(step) for step in explanation.candidates],
        "attention": {
            site: pack_weights(attention.weights, four_decimals=four_decimals)
            for site, attention in stored_maps.items()
        },
        "roll_out": {
            site: pack_weights(explanation.roll_out(site), four_decimals=four_decimals)
            for site in _roll_out_sites(explanation)
        },
        "statistics": {
            site: statistics_document(statistics) for site, statistics in explanation.statistics.items()
        },
        "group_effects": [
            {
                "site": group.site,
                "heads": [list(head) for head in group.heads],
                "effect": _number(group.effect),
            }
            for group in explanation.group_effects
        ],
        "alignments": [
            {**asdict(alignment), "links": str(alignment.links)} for alignment in explanation.alignments
        ],
        "search": None
        if explanation.search is None
        else _search_document(explanation.search, four_decimals=four_decimals),
        "changes": [change_to_json(change) for change in explanation.changes],
        "before": None if explanation.before is None else _before_document(explanation.before),
        "steps": [cell_to_document(cell_steps) for cell_steps in explanation.cells],
        "measures": None if explanation.measured is None else measures_to_document(explanation.measured),
        "layers": layers_to_document(explanation.layers),
        "picture": None if explanation.picture is None else asdict(explanation.picture),
    }


def explanation_from_document(
    document: Any, read_weights: Callable[[Any], Mapping[str, NDArray[np.float32]]]
) -> Explanation:
    """Return the explanation in a document. `read_weights` reads the weights of each site from a document."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DataError(
            f'This is not an explanation: its "format" is not "{FORMAT}". '
            '`jumok look MODEL "…" --out x.json` writes one.'
        )
    version = document.get("version")
    if version not in (1, VERSION):
        raise DataError(
            f"This explanation has version {version} of the format; this jumok reads versions 1 and "
            f"{VERSION}. Update jumok, or write the explanation again."
        )
    try:
        if version == 1:
            document = _upgrade(document)
        return _explanation(document, read_weights(document))
    except JumokError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise DataError(f"This explanation is damaged: {type(error).__name__}: {error}.") from None


_RENAMED_KEYS = {
    "pieces": "tokens",
    "word_of_piece": "word_of_token",
    "piece": "token",
    "looks": "attention",
    "looked": "attention_row",
    "on_mark": "on_special",
}
_RENAMED_STEPS = {"turned key": "projected key", "place weights": "position weights"}


def _upgrade(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of version 1 with the names of version 2, but still with `"version": 1`."""

    def rename_keys(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {_RENAMED_KEYS.get(name, name): value for name, value in fields.items()}

    search, before = document["search"], document["before"]
    if search is not None:
        search = rename_keys(search) | {"steps": [rename_keys(step) for step in search["steps"]]}
    if before is not None:
        before = {**before, "target": rename_keys(before["target"])}
    steps = [
        {
            **cell,
            "steps": [
                step | {"name": _RENAMED_STEPS.get(step["name"], step["name"])} for step in cell["steps"]
            ],
        }
        for cell in document["steps"]
    ]
    return {
        **document,
        "source": rename_keys(document["source"]),
        "target": rename_keys(document["target"]),
        "statistics": {site: rename_keys(table) for site, table in document["statistics"].items()},
        "search": search,
        "before": before,
        "steps": steps,
    }


def _explanation(document: dict[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> Explanation:
    source, target = _read_sentence(document["source"]), _read_sentence(document["target"])
    picture = _read_picture(document.get("picture"), source)  # early files lack the key
    return Explanation(
        source=source,
        target=target,
        attention=label_maps(weights, source.tokens, target.tokens, picture=picture is not None),
        log_probs=_floats(document["log_probs"]),
        candidates=tuple(_read_tokens(step) for step in document["candidates"]),
        statistics={site: _read_statistics(tables) for site, tables in document["statistics"].items()},
        group_effects=tuple(
            GroupEffect(group["site"], _read_heads(group["heads"]), _float_or_nan(group["effect"]))
            for group in document.get("group_effects", ())  # early files lack the key
        ),
        alignments=tuple(_read_alignment(fields) for fields in document["alignments"]),
        search=None if document["search"] is None else _read_search(document["search"]),
        score=document["score"],
        ended=document["ended"],
        forced=document["forced"],
        changes=tuple(change_from_json(change) for change in document["changes"]),
        before=None if document["before"] is None else _read_before(document["before"]),
        cells=tuple(_read_cell(cell) for cell in document["steps"]),
        measured=_read_measures(document.get("measures")),  # early files lack the key
        layers=tuple(tuple(map(_read_tokens, layer)) for layer in document.get("layers", ())),
        picture=picture,
        facts=document["facts"],
    )


def _roll_out_sites(explanation: Explanation) -> list[str]:
    if explanation.facts.get("family") == "decoder-only":
        return list(explanation.attention)
    return [site for site in explanation.attention if site != "cross"]


def _unpack_maps(packed: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    return {site: unpack_weights(weights) for site, weights in packed.items()}


def _sentence_document(sentence: TokenizedSentence) -> dict[str, Any]:
    fields = asdict(sentence)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _read_sentence(fields: Mapping[str, Any]) -> TokenizedSentence:
    lists = {name: tuple(fields[name]) for name in ("ids", "tokens", "words", "word_of_token")}
    return TokenizedSentence(text=fields["text"], **lists)


def _read_picture(fields: Mapping[str, Any] | None, source: TokenizedSentence) -> PatchedPicture | None:
    if fields is None:
        return None
    picture = PatchedPicture(int(fields["rows"]), int(fields["columns"]), str(fields["image"]))
    tokens_before = len(source.tokens) - picture.rows * picture.columns  # a class token, or none
    if not picture.image.startswith(PNG_DATA_URL) or picture.rows < 1 or tokens_before not in (0, 1):
        raise DataError(
            f"The picture of an explanation is a PNG in a data: URL, with one token per patch. Received: "
            f"{picture.image[:30]!r}, {picture.rows} × {picture.columns} patches, "
            f"{len(source.tokens)} tokens."
        )
    return picture


def _read_alignment(fields: Mapping[str, Any]) -> WordAlignment:
    links = parse_alignment(fields["links"])
    return WordAlignment(
        fields["name"], _read_heads(fields["heads"]), fields["shift"], fields["method"], links
    )


def _read_heads(heads: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(layer), int(head)) for layer, head in heads)


def _search_document(tree: SearchTree, *, four_decimals: bool) -> dict[str, Any]:
    """Return the tree with one table of columns per step, a third of the size of a list of objects."""
    steps = [
        {
            key: [_number(getattr(candidate, field)) for candidate in step]
            for field, key in _CANDIDATE_KEYS.items()
        }
        for step in tree.steps
    ]
    best = next(tree.finished(), None)
    return {
        "beam": tree.beam,
        "length_penalty": tree.length_penalty,
        "best": None if best is None else list(best),
        "steps": steps,
        "attention": None
        if tree.attention is None
        else pack_weights(tree.attention, four_decimals=four_decimals),
    }


def _read_search(fields: Mapping[str, Any]) -> SearchTree:
    steps = tuple(
        tuple(Candidate(*row) for row in zip(*(step[key] for key in _CANDIDATE_KEYS.values()), strict=True))
        for step in fields["steps"]
    )
    attention = None if fields["attention"] is None else unpack_weights(fields["attention"])
    return SearchTree(fields["beam"], fields["length_penalty"], steps, attention)


def statistics_document(statistics: HeadStatistics) -> dict[str, Any]:
    """Return the statistics of a site as plain JSON values."""
    effect = statistics.token_effect
    return {
        **{name: _numbers(getattr(statistics, name)) for name in _STATISTICS},
        "token_effect": None if effect is None else pack_floats(effect),
    }


def _read_statistics(tables: Mapping[str, Any]) -> HeadStatistics:
    effect = tables.get("token_effect")  # early files lack the key
    numbers = {name: _read_numbers(tables[name]) for name in _STATISTICS}
    return HeadStatistics(**numbers, token_effect=None if effect is None else unpack_floats(effect))  # type: ignore[arg-type]


def measures_to_document(measures: Measures) -> dict[str, Any]:
    """Return the measures as plain JSON values."""
    return {
        "value_norms": {
            site: pack_weights(norms, four_decimals=True) for site, norms in measures.value_norms.items()
        },
        "gradient": {site: pack_floats(values) for site, values in measures.gradient.items()},
        "erasure": None if measures.erasure is None else pack_floats(measures.erasure),
    }


def _read_measures(fields: Mapping[str, Any] | None) -> Measures | None:
    if fields is None:
        return None
    norms = {site: unpack_weights(values) for site, values in fields["value_norms"].items()}
    gradient = {site: unpack_floats(values) for site, values in fields["gradient"].items()}
    erasure = fields["erasure"]
    return Measures(norms, gradient, None if erasure is None else unpack_floats(erasure))


def layers_to_document(layers: tuple[tuple[tuple[NextToken, ...], ...], ...]) -> list[Any]:
    """Return the predictions of the input and of each layer at each step as plain JSON values."""
    return [[_tokens_document(step) for step in layer] for layer in layers]


def _tokens_document(tokens: tuple[NextToken, ...]) -> list[Any]:
    return [[token.id, token.token, _number(token.probability)] for token in tokens]


def _read_tokens(tokens: Any) -> tuple[NextToken, ...]:
    return tuple(NextToken(id_, token, probability) for id_, token, probability in tokens)


def _before_document(before: BeforeChange) -> dict[str, Any]:
    return {
        "target": _sentence_document(before.target),
        "log_prob": _number(before.log_prob),
        "log_prob_changed": _number(before.log_prob_changed),
        "log_probs": [_number(value) for value in before.log_probs],
        "log_probs_changed": [_number(value) for value in before.log_probs_changed],
    }


def _read_before(fields: Mapping[str, Any]) -> BeforeChange:
    return BeforeChange(
        _read_sentence(fields["target"]),
        fields["log_prob"],
        fields["log_prob_changed"],
        tuple(fields.get("log_probs", ())),
        tuple(fields.get("log_probs_changed", ())),
    )


def cell_to_document(cell_steps: CellSteps) -> dict[str, Any]:
    """Return a cell and its steps as plain JSON values."""
    steps = [
        {"name": step.name, "formula": step.formula, "over": step.over, **pack_floats(step.values)}
        for step in cell_steps.steps
    ]
    return {**asdict(cell_steps.cell), "steps": steps}


def _read_cell(fields: Mapping[str, Any]) -> CellSteps:
    steps = tuple(
        Step(step["name"], step["formula"], unpack_floats(step), step["over"]) for step in fields["steps"]
    )
    cell = Cell(*(fields[name] for name in ("site", "layer", "head", "query", "key")))
    return CellSteps(cell, steps)


def _number(value: Any) -> Any:
    """Return a float rounded, or None if it is NaN or infinite, which JSON lacks. Return others unchanged."""
    if not isinstance(value, float):
        return value
    return round(value, _DECIMALS) if math.isfinite(value) else None


def _numbers(values: NDArray[Any] | None) -> Any:
    if values is None:
        return None
    return [[_number(value) for value in row] for row in values.tolist()]


def _floats(values: Any) -> NDArray[np.float32]:
    return np.array([_float_or_nan(value) for value in values], dtype=np.float32)


def _float_or_nan(value: Any) -> float:
    """Return a number of the document. Numbers that are not finite were stored as null, and become NaN."""
    return math.nan if value is None else float(value)


def _read_numbers(rows: Any) -> NDArray[np.float32] | None:
    return None if rows is None else np.stack([_floats(row) for row in rows])
