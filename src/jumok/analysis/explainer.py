"""From a sentence to its explanation: a search that is listened to, then one pass over what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy
import torch

from jumok.corpus.batches import padded_batch
from jumok.corpus.symmetrise import Symmetrisation, symmetrise
from jumok.decoding.beam_search import beam
from jumok.decoding.readout import (
    AttendedPair,
    default_read_out,
    head_errors,
    link_both_ways,
    read_alignment,
)
from jumok.decoding.recording import Recorder
from jumok.errors import DataError
from jumok.explain import (
    Before,
    Change,
    Explanation,
    LiveModel,
    NextPiece,
    SearchTree,
    Side,
    WordAlignment,
    check_changes,
    edit_of,
    head_statistics,
    label_maps,
    model_facts,
)
from jumok.values import BEGIN, END, PAD, Alignment, ReadOut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from jumok.attention import Edit
    from jumok.decoding.plan import SearchPlan
    from jumok.models import State, TranslationModel
    from jumok.text import Vocabularies
    from jumok.values import Batch, LogProbs

__all__ = ["Question", "explain_sentence"]

SYMMETRISED: tuple[Symmetrisation, ...] = ("intersection", "grow-diagonal-final")


class TranslatorLike(Protocol):
    """What is asked of a translator here."""

    @property
    def model(self) -> TranslationModel: ...

    vocabularies: Vocabularies
    read_out: ReadOut | None
    source_language: str
    target_language: str
    longest_source: int
    training: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be explained."""

    sentence: str
    target: str | None = None
    forced_prefix: str | Sequence[int] = ""
    gold: Alignment | None = None
    candidates: int = 8
    hear: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if self.candidates < 0:
            raise DataError(
                f"No fewer than 0 candidates can be kept of a step. Received: candidates = {self.candidates}."
            )


@dataclass(frozen=True, slots=True)
class Edited:
    """A model as search sees it, with an edit on all its attention."""

    model: TranslationModel
    edit: Edit | None

    def begin(self, source: Batch) -> State:
        return self.model.begin(source, edit=self.edit)

    def step(self, state: State, last: Tensor) -> tuple[LogProbs, State]:
        return self.model.step(state, last)

    def step_with_attention(self, state: State, last: Tensor) -> tuple[LogProbs, State, Tensor]:
        answer: tuple[LogProbs, State, Tensor] = self.model.step_with_attention(state, last)  # type: ignore[operator]
        return answer

    def reorder(self, state: State, order: Tensor) -> State:
        return self.model.reorder(state, order)


@dataclass(frozen=True, slots=True)
class Found:
    """A translation as pieces, and how it was found; a given one was not searched for."""

    ids: tuple[int, ...]
    score: float | None = None
    ended: bool = True
    tree: SearchTree | None = None


def explain_sentence(
    translator: TranslatorLike,
    question: Question,
    plan: SearchPlan,
    edit: Change | Sequence[Change] | Edit | None,
) -> Explanation:
    """The explanation of a sentence; with an edit, that of what the model writes under it."""
    text = question.sentence.strip()
    source = Side.of(text, translator.vocabularies.source.encode(text), translator.vocabularies.source)
    prefix = _prefix(translator, question.forced_prefix)
    plain = LiveModel(translator.model, source.ids)
    # Under an edit, the translation that is shown is written later.
    found = _find(translator, plain, question if edit is None else replace(question, hear=None), plan, prefix)
    if edit is None:
        return _explanation(translator, plain, question, found, source, len(prefix))
    changes = (edit,) if isinstance(edit, Change) else tuple(edit) if isinstance(edit, Sequence) else ()
    [weights] = plain.weights([found.ids])
    check_changes(changes, {site: array.shape for site, array in weights.items()}, translator.model)
    hook = (
        edit_of(changes, translator.model, len(source.ids) + 1)
        if isinstance(edit, Change | Sequence)
        else edit
    )
    changed = LiveModel(translator.model, source.ids, hook)
    first = min((change.first_step for change in changes), default=0)
    prefix = list(found.ids[:first]) if first > len(prefix) else prefix
    after = _find(translator, changed, question, plan, prefix)
    before = Before(
        _side(translator, found.ids),
        *(live.log_prob(found.ids, ended=found.ended) for live in (plain, changed)),
    )
    return _explanation(
        translator, changed, question, after, source, len(prefix), changes=changes, before=before
    )


def _prefix(translator: TranslatorLike, forced: str | Sequence[int]) -> list[int]:
    pieces = translator.vocabularies.target
    if isinstance(forced, str):
        return pieces.encode(forced)
    pieces.pieces(forced)  # refuses what is no piece, of which the model has no embedding
    return list(forced)


def _find(
    translator: TranslatorLike, live: LiveModel, question: Question, plan: SearchPlan, prefix: Sequence[int]
) -> Found:
    """The given translation, or the best that beam search finds."""
    if question.target is not None:
        return Found(tuple(translator.vocabularies.target.encode(question.target)))
    if not live.source:
        return Found(())
    if len(live.source) > translator.longest_source:
        raise DataError(
            f"This sentence is too long to be explained at once: it has {len(live.source):,} pieces, and the "
            f"model takes {translator.longest_source:,}. Give a shorter sentence, or "
            "explain the `parts` of its translation in Python, one by one."
        )
    recorder = Recorder(plan, translator.vocabularies.target, question.hear)
    with torch.inference_mode():
        batch = padded_batch([live.source])
        [ranked] = beam(Edited(live.model, live.edit), batch, plan, prefixes=[prefix], listener=recorder)
    tree = recorder.tree(live, translator.read_out)
    if not ranked:  # a model whose scores are no numbers leaves no hypothesis alive
        return Found((), ended=False, tree=tree)
    best = next(tree.finished())
    return Found(ranked[0].ids, ranked[0].score, tree.candidate(*best).id == END, tree)


def _explanation(
    translator: TranslatorLike,
    live: LiveModel,
    question: Question,
    found: Found,
    source: Side,
    forced: int,
    *,
    changes: tuple[Change, ...] = (),
    before: Before | None = None,
) -> Explanation:
    target = _side(translator, found.ids)
    [weights] = live.weights([found.ids])
    log_probs = live.log_probs(found.ids)  # (step, piece)
    maps = label_maps(weights, source.pieces, target.pieces)
    statistics = {site: head_statistics(attention) for site, attention in maps.items()}
    alignments: tuple[WordAlignment, ...] = ()
    if "cross" in weights:
        pair = AttendedPair(weights["cross"], source.word_of_piece, target.word_of_piece)
        alignments = tuple(_alignments(pair, translator.read_out))
        if question.gold is not None:
            errors = head_errors(pair, question.gold).astype(numpy.float32)
            statistics["cross"] = head_statistics(maps["cross"], error=errors)
    written = torch.tensor([*found.ids, END])
    return Explanation(
        source=source,
        target=target,
        attention=maps,
        log_probs=log_probs.gather(1, written[:, None])[:, 0].float().numpy(),
        candidates=tuple(_next_pieces(log_probs, question.candidates, translator)),
        statistics=statistics,
        alignments=alignments,
        search=found.tree,
        score=found.score,
        ended=found.ended,
        forced=forced if found.tree else 0,
        changes=changes,
        before=before,
        facts={
            **model_facts(translator.model),
            "source_language": translator.source_language,
            "target_language": translator.target_language,
            **({"training": translator.training} if translator.training else {}),
        },
        live=live,
    )


def _side(translator: TranslatorLike, ids: Sequence[int]) -> Side:
    text = " ".join(translator.vocabularies.target.decode(ids).splitlines())
    return Side.of(text, ids, translator.vocabularies.target)


def _next_pieces(
    log_probs: Tensor, count: int, translator: TranslatorLike
) -> Iterator[tuple[NextPiece, ...]]:
    """The likeliest pieces of every step; `<pad>` and `<s>` are never said."""
    hidden = log_probs.index_fill(1, torch.tensor([PAD, BEGIN]), -torch.inf)
    best = hidden.topk(min(count, hidden.shape[1]), dim=1)
    for values, ids in zip(best.values.exp().tolist(), best.indices.tolist(), strict=True):
        pieces = translator.vocabularies.target.pieces(ids)
        yield tuple(NextPiece(*one) for one in zip(ids, pieces, values, strict=True))


def _alignments(pair: AttendedPair, read_out: ReadOut | None) -> Iterator[WordAlignment]:
    """Word links by many read-outs, the model's own first."""
    layers, heads = pair.weights.shape[:2]
    chosen = read_out or default_read_out(layers, heads)
    every = tuple((layer, head) for layer in range(layers) for head in range(heads))
    named = {
        "read-out": chosen,
        "shifted": ReadOut(chosen.heads, 1 - chosen.shift),
        "mean": ReadOut(every),
        "mean, shifted": ReadOut(every, 1),
        **{f"layer {n}": ReadOut(tuple(one for one in every if one[0] == n)) for n in range(layers)},
        **{f"layer {layer}, head {head}": ReadOut(((layer, head),)) for layer, head in every},
    }
    for name, way in named.items():
        yield WordAlignment(name, way.heads, way.shift, "argmax", read_alignment(pair, way))
        if name == "read-out":
            both = link_both_ways(pair, way)
            for method in SYMMETRISED:
                links = Alignment(symmetrise(*both, method))
                yield WordAlignment(method, way.heads, way.shift, method, links)
