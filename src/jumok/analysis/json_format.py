"""An explanation as JSON and back. docs/explanation-format.md describes every key."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.corpus.alignments import parse_alignment
from jumok.errors import DataError, JumokError
from jumok.explain.changes import change_from_json, change_to_json
from jumok.explain.explanation import Before, Explanation, GroupEffect, NextPiece, WordAlignment
from jumok.explain.heads import HeadStatistics
from jumok.explain.packing import pack_floats, pack_weights, unpack_floats, unpack_weights
from jumok.explain.search_tree import Candidate, SearchTree
from jumok.explain.sides import Side, label_maps
from jumok.explain.steps import Cell, CellSteps, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = ["FORMAT", "VERSION", "cell_to_document", "explanation_of", "from_json", "to_document", "to_json"]

FORMAT, VERSION = "jumok-explanation", 1
_DIGITS = 5
MOST_FINE = 100_000
"""Weights of all maps together up to which a file keeps them to four decimals."""
_COLUMNS = ("parent", "id", "piece", "score", "log_prob", "kept", "finished", "ranking", "looked")
_STATISTICS = ("entropy", "distance", "on_mark", "error", "effect")


def to_json(explanation: Explanation) -> str:
    return (
        json.dumps(to_document(explanation), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        + "\n"
    )


def from_json(text: str) -> Explanation:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DataError(f"This is not an explanation as JSON: {error}.") from None
    return explanation_of(document, lambda document: _unpacked(document["attention"]))


def to_document(
    explanation: Explanation, *, weights: bool = True, fine: bool | None = None
) -> dict[str, Any]:
    """The explanation as plain JSON values; without `weights` its maps are left out.

    `fine` weights can be read to four decimals. They take twice the room: a file has them where they are few.
    """
    maps = explanation.attention
    shown = maps if weights else {}
    if fine is None:
        fine = sum(one.weights.size for one in maps.values()) <= MOST_FINE
    return {
        "format": FORMAT,
        "version": VERSION,
        "facts": dict(explanation.facts),
        "source": _side(explanation.source),
        "target": _side(explanation.target),
        "score": _number(explanation.score),
        "log_prob": _number(explanation.log_prob),
        "log_probs": [_number(value) for value in explanation.log_probs.tolist()],
        "ended": explanation.ended,
        "forced": explanation.forced,
        "candidates": [
            [[one.id, one.piece, _number(one.probability)] for one in step] for step in explanation.candidates
        ],
        "attention": {site: pack_weights(one.weights, fine=fine) for site, one in shown.items()},
        "roll_out": {
            site: pack_weights(explanation.roll_out(site), fine=fine) for site in _rolled(explanation)
        },
        "statistics": {
            site: {name: _numbers(getattr(one, name)) for name in _STATISTICS}
            for site, one in explanation.statistics.items()
        },
        "group_effects": [
            {"site": one.site, "heads": [list(head) for head in one.heads], "effect": _number(one.effect)}
            for one in explanation.group_effects
        ],
        "alignments": [{**asdict(one), "links": str(one.links)} for one in explanation.alignments],
        "search": None if explanation.search is None else _search(explanation.search, fine=fine),
        "changes": [change_to_json(change) for change in explanation.changes],
        "before": None if explanation.before is None else _before(explanation.before),
        "steps": [cell_to_document(cell) for cell in explanation.cells],
    }


def explanation_of(document: Any, weights: Callable[[Any], Mapping[str, NDArray[np.float32]]]) -> Explanation:
    """The explanation of a document, whose maps `weights` finds."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DataError(
            f'This is not an explanation: its "format" is not "{FORMAT}". '
            '`jumok look MODEL "…" --out x.json` writes one.'
        )
    if document.get("version") != VERSION:
        raise DataError(
            f"This explanation has version {document.get('version')} of the format; this jumok reads version "
            f"{VERSION}. Update jumok, or write the explanation again."
        )
    try:
        return _explanation(document, weights(document))
    except JumokError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise DataError(f"This explanation is damaged: {type(error).__name__}: {error}.") from None


def _explanation(document: dict[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> Explanation:
    source, target = _read_side(document["source"]), _read_side(document["target"])
    return Explanation(
        source=source,
        target=target,
        attention=label_maps(weights, source.pieces, target.pieces),
        log_probs=_floats(document["log_probs"]),
        candidates=tuple(
            tuple(NextPiece(id_, piece, probability) for id_, piece, probability in step)
            for step in document["candidates"]
        ),
        statistics={
            site: HeadStatistics(**{name: _read_numbers(one[name]) for name in _STATISTICS})  # type: ignore[arg-type]
            for site, one in document["statistics"].items()
        },
        group_effects=tuple(
            GroupEffect(one["site"], _read_heads(one["heads"]), _finite(one["effect"]))
            for one in document.get("group_effects", ())  # files of earlier versions have none
        ),
        alignments=tuple(_read_alignment(one) for one in document["alignments"]),
        search=None if document["search"] is None else _read_search(document["search"]),
        score=document["score"],
        ended=document["ended"],
        forced=document["forced"],
        changes=tuple(change_from_json(change) for change in document["changes"]),
        before=None if document["before"] is None else _read_before(document["before"]),
        cells=tuple(_read_cell(cell) for cell in document["steps"]),
        facts=document["facts"],
    )


def _rolled(explanation: Explanation) -> list[str]:
    if explanation.facts.get("family") == "decoder-only":
        return list(explanation.attention)
    return [site for site in explanation.attention if site != "cross"]


def _unpacked(packed: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    return {site: unpack_weights(one) for site, one in packed.items()}


def _side(side: Side) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(side).items()}


def _read_side(fields: Mapping[str, Any]) -> Side:
    lists = {name: tuple(fields[name]) for name in ("ids", "pieces", "words", "word_of_piece")}
    return Side(text=fields["text"], **lists)


def _read_alignment(fields: Mapping[str, Any]) -> WordAlignment:
    links = parse_alignment(fields["links"])
    return WordAlignment(
        fields["name"], _read_heads(fields["heads"]), fields["shift"], fields["method"], links
    )


def _read_heads(heads: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(layer), int(head)) for layer, head in heads)


def _search(tree: SearchTree, *, fine: bool) -> dict[str, Any]:
    """A table of columns for each step, which takes a third of the room that a list of objects would."""
    steps = [
        {name: [_number(getattr(candidate, name)) for candidate in step] for name in _COLUMNS}
        for step in tree.steps
    ]
    best = next(tree.finished(), None)
    return {
        "beam": tree.beam,
        "length_penalty": tree.length_penalty,
        "best": None if best is None else list(best),
        "steps": steps,
        "looks": None if tree.looks is None else pack_weights(tree.looks, fine=fine),
    }


def _read_search(fields: Mapping[str, Any]) -> SearchTree:
    steps = tuple(
        tuple(Candidate(*row) for row in zip(*(step[name] for name in _COLUMNS), strict=True))
        for step in fields["steps"]
    )
    looks = None if fields["looks"] is None else unpack_weights(fields["looks"])
    return SearchTree(fields["beam"], fields["length_penalty"], steps, looks)


def _before(before: Before) -> dict[str, Any]:
    return {
        "target": _side(before.target),
        "log_prob": _number(before.log_prob),
        "log_prob_changed": _number(before.log_prob_changed),
    }


def _read_before(fields: Mapping[str, Any]) -> Before:
    return Before(_read_side(fields["target"]), fields["log_prob"], fields["log_prob_changed"])


def cell_to_document(cell: CellSteps) -> dict[str, Any]:
    """The steps of a cell as plain JSON values."""
    steps = [
        {"name": step.name, "formula": step.formula, "over": step.over, **pack_floats(step.values)}
        for step in cell.steps
    ]
    return {**asdict(cell.cell), "steps": steps}


def _read_cell(fields: Mapping[str, Any]) -> CellSteps:
    steps = tuple(
        Step(step["name"], step["formula"], unpack_floats(step), step["over"]) for step in fields["steps"]
    )
    cell = Cell(*(fields[name] for name in ("site", "layer", "head", "query", "key")))
    return CellSteps(cell, steps)


def _number(value: Any) -> Any:
    """Rounded; JSON knows neither NaN nor infinity, so such a number becomes null."""
    if not isinstance(value, float):
        return value
    return round(value, _DIGITS) if math.isfinite(value) else None


def _numbers(values: NDArray[Any] | None) -> Any:
    if values is None:
        return None
    return [[_number(value) for value in row] for row in values.tolist()]


def _floats(values: Any) -> NDArray[np.float32]:
    return np.array([_finite(value) for value in values], dtype=np.float32)


def _finite(value: Any) -> float:
    """What was not finite is null in JSON, and no number here."""
    return math.nan if value is None else float(value)


def _read_numbers(rows: Any) -> NDArray[np.float32] | None:
    return None if rows is None else np.stack([_floats(row) for row in rows])
