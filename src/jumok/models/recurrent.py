"""Recurrent encoder and decoder: a state handed from step to step, and attention to what the encoder read.

    encoder   hᵢ = [→hᵢ ; ←hᵢ]                                   Bahdanau et al. 2015, section 3.2
    first     s₀ = tanh(W_s [→h_S ; ←h₁])
    before    cₜ = attend(sₜ₋₁, h),  sₜ = cell([yₜ₋₁ ; cₜ], sₜ₋₁)
              rₜ = tanh(W_r [sₜ ; cₜ ; yₜ₋₁])                    Bahdanau et al. 2015, section 3.1
    after     sₜ = cell(yₜ₋₁, sₜ₋₁),  cₜ = attend(sₜ, h)
              h̃ₜ = tanh(W_c [cₜ ; sₜ])                           Luong et al. 2015, eq. 5
    feeding   sₜ = cell([yₜ₋₁ ; h̃ₜ₋₁], sₜ₋₁)                     Luong et al. 2015, section 3.3
    none      sₜ = cell(yₜ₋₁, sₜ₋₁),  rₜ = tanh(W_r sₜ)          Sutskever et al. 2014

Bahdanau's query is the state before the step, Luong's the state after it; without attention one vector holds
the sentence. What predicts the next piece (r or h̃) has the width of the embeddings, so that the output may be
tied to them. After the step and without feeding, no state waits for an attention: all steps of a training
sentence run in one call. In the other orders they run one by one.

Where gradients are wanted, whole sequences and Bahdanau's attention take the ways of `recurrent_fast.py`.
What stands here is the plain twin of those, and serves decoding, edits, maps and every other mechanism.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from jumok.attention import Additive, Attended, Attention, Direct, Edit, KeyValues, Memory, padding
from jumok.errors import UnsupportedError
from jumok.models.dropout import Dropout
from jumok.models.model import OutputLayer, TranslationModel
from jumok.models.probe import Probe, rows_of
from jumok.models.recurrent_fast import attend_before_steps, read_sentences, run_layer
from jumok.models.sources import share_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.values import Batch, LogProbs

__all__ = [
    "AttendAfter",
    "AttendBefore",
    "NoAttention",
    "PieceEmbedding",
    "Recurrent",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentState",
    "Steps",
]

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}

LayerState = tuple[Tensor, ...]
"""What a layer hands on, (1, row, width) each: its state and, of an LSTM, its cell."""


class PieceEmbedding(nn.Module):
    """Pieces as vectors. A recurrent model knows places by its steps and needs no positions."""

    def __init__(self, *, pieces: int, width: int, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(pieces, width))
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, pieces: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, width)."""
        # Scaled up, because the same matrix gives the scores of the output, where small entries are wanted.
        states: Tensor = self.dropout(embedding(pieces, self.weight) * self.weight.shape[1] ** 0.5)
        return states


class RecurrentEncoder(nn.Module):
    """Layers of cells over the source, each reading one way or both; padding is never read."""

    def __init__(
        self, *, cell: str, inputs: int, width: int, layers: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        half = width // 2 if bidirectional else width
        self.layers = nn.ModuleList(
            CELLS[cell](inputs if layer == 0 else width, half, batch_first=True, bidirectional=bidirectional)
            for layer in range(layers)
        )
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, source, inputs) -> the states (batch, source, width) and the last of them (batch, width).

        The last state of the reading backwards is the one at the first word.
        """
        read = read_sentences if wants_gradients() else read_packed
        last = states
        for number, layer in enumerate(_cells(self.layers)):
            states, last = read(layer, self.dropout(states) if number else states, lengths)
        return states, last


def read_packed(layer: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """What a layer makes of (batch, source, inputs): states (batch, source, width), last (batch, width)."""
    packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, final = layer(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
    hidden = final[0] if isinstance(final, tuple) else final  # (direction, batch, width of a direction)
    return states, hidden.transpose(0, 1).flatten(1)


def wants_gradients() -> bool:
    """Whether to take the ways that are made for training."""
    return torch.is_grad_enabled()


def _cells(layers: nn.ModuleList) -> list[nn.RNNBase]:
    return [layer for layer in layers if isinstance(layer, nn.RNNBase)]


@dataclass(frozen=True, slots=True)
class Steps:
    """Where a decoder stands: what its layers hand on, and what is fed into the next step."""

    layers: tuple[LayerState, ...]
    fed: Tensor | None = None  # (row, embedding) h̃ of the last step, where it is fed and there was one

    def select(self, order: Tensor) -> Steps:
        layers = tuple(tuple(part.index_select(1, order) for part in layer) for layer in self.layers)
        return Steps(layers, None if self.fed is None else self.fed.index_select(0, order))

    @property
    def query(self) -> Tensor:
        """The state of the top layer as a query, (row, 1, width)."""
        return self.layers[-1][0].transpose(0, 1)


class RecurrentDecoder(nn.Module, ABC):
    """Layers of cells over the target so far; subclasses say when they attend."""

    def __init__(self, *, cell: str, inputs: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            CELLS[cell](inputs if layer == 0 else width, width, batch_first=True) for layer in range(layers)
        )
        self.first = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.dropout = Dropout(dropout)

    def begin(self, last: Tensor) -> Steps:
        """The state before the first step, from the encoder's last state (batch, width)."""
        states = [torch.tanh(project(last))[None] for project in self.first]
        with_cell = isinstance(self.layers[0], nn.LSTM)
        return Steps(tuple((state, torch.zeros_like(state)) if with_cell else (state,) for state in states))

    @abstractmethod
    def forward(
        self, pieces: Tensor, steps: Steps, sources: Sequence[Memory], *, first: int, probe: Probe
    ) -> tuple[Tensor, Steps]:
        """Embedded pieces (row, step, embedding) -> what predicts the next ones (row, step, embedding)."""

    def _advance(self, inputs: Tensor, steps: Steps) -> tuple[Tensor, Steps]:
        """The layers over (row, step, inputs): the top one's states (row, step, width), and what is left."""
        states, after = inputs, []
        for number, (layer, before) in enumerate(zip(_cells(self.layers), steps.layers, strict=True)):
            entered = self.dropout(states) if number else states
            if entered.shape[1] > 1 and wants_gradients():
                states, left = run_layer(layer, entered, before)
            else:
                states, left = layer(entered, before if len(before) > 1 else before[0])
            after.append(left if isinstance(left, tuple) else (left,))
        return states, replace(steps, layers=tuple(after))


class NoAttention(RecurrentDecoder):
    """The decoder has nothing but the state it began with."""

    def __init__(self, *, cell: str, embedding: int, width: int, layers: int, dropout: float) -> None:
        super().__init__(cell=cell, inputs=embedding, width=width, layers=layers, dropout=dropout)
        self.read_out = nn.Linear(width, embedding)

    def forward(
        self, pieces: Tensor, steps: Steps, sources: Sequence[Memory], *, first: int, probe: Probe
    ) -> tuple[Tensor, Steps]:
        states, steps = self._advance(pieces, steps)
        return self.dropout(torch.tanh(self.read_out(states))), steps


class AttendBefore(RecurrentDecoder):
    """The state before a step asks; what it was given enters the step."""

    def __init__(
        self, *, cell: str, embedding: int, width: int, layers: int, dropout: float, attention: Attention
    ) -> None:
        super().__init__(cell=cell, inputs=embedding + width, width=width, layers=layers, dropout=dropout)
        self.attention = attention
        self.read_out = nn.Linear(2 * width + embedding, embedding)

    def forward(
        self, pieces: Tensor, steps: Steps, sources: Sequence[Memory], *, first: int, probe: Probe
    ) -> tuple[Tensor, Steps]:
        source, score = sources[0], self._additive(probe)
        if score is not None and isinstance(source, KeyValues) and source.beams is None and wants_gradients():
            states, contexts, layers = attend_before_steps(
                _cells(self.layers), score, pieces, steps.layers, source, self.dropout
            )
            steps = replace(steps, layers=layers)
        else:
            states, contexts, steps = self._one_by_one(pieces, steps, source, first=first, probe=probe)
        every = torch.cat([states, contexts, pieces], dim=2)
        return self.dropout(torch.tanh(self.read_out(every))), steps

    def _additive(self, probe: Probe) -> Additive | None:
        """The additive score, where it is all there is to the attention."""
        if probe.edit is not None or probe.gathers or not isinstance(self.attention, Direct):
            return None
        score = self.attention.mechanism
        if not isinstance(score, Additive) or score.causal or not isinstance(score.dropout, nn.Identity):
            return None
        return score

    def _one_by_one(
        self, pieces: Tensor, steps: Steps, source: Memory, *, first: int, probe: Probe
    ) -> tuple[Tensor, Tensor, Steps]:
        states, looks = [], _Looks(probe)
        for place in range(pieces.shape[1]):
            context = looks.attend(self.attention, steps.query, source, first + place)
            entering = torch.cat([pieces[:, place : place + 1], context], dim=2)
            state, steps = self._advance(entering, steps)
            states.append(state)
        return torch.cat(states, dim=1), looks.context(), steps


class AttendAfter(RecurrentDecoder):
    """The state after a step asks; where it is fed, the answer enters the next step too."""

    def __init__(
        self,
        *,
        cell: str,
        embedding: int,
        width: int,
        layers: int,
        dropout: float,
        attention: Attention,
        feeding: bool,
    ) -> None:
        inputs = 2 * embedding if feeding else embedding
        super().__init__(cell=cell, inputs=inputs, width=width, layers=layers, dropout=dropout)
        self.attention = attention
        self.feeding = feeding
        self.combine = nn.Linear(2 * width, embedding)

    def forward(
        self, pieces: Tensor, steps: Steps, sources: Sequence[Memory], *, first: int, probe: Probe
    ) -> tuple[Tensor, Steps]:
        looks = _Looks(probe)
        if not self.feeding:
            states, steps = self._advance(pieces, steps)
            attended = looks.attend(self.attention, states, sources[0], first)
            looks.note()
            return self._combined(attended, states), steps
        answers = []
        for place in range(pieces.shape[1]):
            fed = torch.zeros_like(pieces[:, 0]) if steps.fed is None else steps.fed  # (row, embedding)
            entering = torch.cat([pieces[:, place : place + 1], fed[:, None]], dim=2)
            state, steps = self._advance(entering, steps)
            context = looks.attend(self.attention, state, sources[0], first + place)
            answers.append(self._combined(context, state))
            steps = replace(steps, fed=answers[-1][:, 0])
        looks.note()
        return torch.cat(answers, dim=1), steps

    def _combined(self, context: Tensor, states: Tensor) -> Tensor:
        """h̃ = tanh(W_c [c ; s])."""
        combined: Tensor = self.dropout(torch.tanh(self.combine(torch.cat([context, states], dim=2))))
        return combined


class _Looks:
    """The attentions of one pass, step after step, put together as those of one site and layer."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.edit = probe.edit_at("cross", 0)
        self.every: list[Attended] = []

    def attend(self, attention: Attention, query: Tensor, source: Memory, first: int) -> Tensor:
        attended: Attended = attention(
            query, source, first=first, edit=self.edit, need_weights=self.probe.gathers
        )
        self.every.append(attended)
        return attended.context

    def note(self) -> None:
        """Hand the weights of all steps to the probe, where it gathers."""
        weights = [attended.weights for attended in self.every if attended.weights is not None]
        if weights:
            self.probe.note("cross", Attended(self.every[-1].context, torch.cat(weights, dim=2)))

    def context(self) -> Tensor:
        """What was read at every step, (row, step, width)."""
        self.note()
        return torch.cat([attended.context for attended in self.every], dim=1)


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """What decoding remembers. The source is kept once a sentence and shared by the rows that continue it."""

    steps: Steps
    sources: tuple[Memory, ...]  # one memory, or none where there is no attention
    sentence: Tensor  # (row,) int64: the sentence of the first batch that each row translates
    position: int
    edit: Edit | None


class Recurrent(TranslationModel):
    """Encoder and decoder, of the parts that it is handed (`build.py` makes them)."""

    def __init__(
        self,
        *,
        source_embedding: PieceEmbedding,
        target_embedding: PieceEmbedding,
        encoder: RecurrentEncoder,
        decoder: RecurrentDecoder,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.output = output

    @property
    def looks_at_source(self) -> bool:
        return not isinstance(self.decoder, NoAttention)

    def begin(self, source: Batch, *, edit: Edit | None = None) -> RecurrentState:
        steps, sources = self._read(source)
        return RecurrentState(steps, sources, sentence=rows_of(source), position=0, edit=edit)

    def step(self, state: RecurrentState, last: Tensor) -> tuple[LogProbs, RecurrentState]:
        return self._step(state, last, Probe(rows=state.sentence, edit=state.edit))

    def step_with_attention(
        self, state: RecurrentState, last: Tensor
    ) -> tuple[LogProbs, RecurrentState, Tensor]:
        """As `step`, and where it looked: (row, source)."""
        if not state.sources:
            raise UnsupportedError(
                "A model without attention has no coverage: it looks nowhere. "
                "Set search.coverage_penalty to 0, or train with another model.attention."
            )
        probe = Probe(rows=state.sentence, edit=state.edit, gathers=True)
        log_probs, state = self._step(state, last, probe)
        return log_probs, state, probe.gathered["cross"][0][:, 0, 0]

    def reorder(self, state: RecurrentState, order: Tensor) -> RecurrentState:
        rows = len(state.sentence)
        if len(order) == rows and torch.equal(order, torch.arange(rows, device=order.device)):
            return state
        return RecurrentState(
            state.steps.select(order),
            share_sources(state.sources, rows, order),
            state.sentence[order],
            state.position,
            state.edit,
        )

    def _step(self, state: RecurrentState, last: Tensor, probe: Probe) -> tuple[LogProbs, RecurrentState]:
        pieces = self.target_embedding(last[:, None])  # (row, 1, embedding)
        states, steps = self.decoder(pieces, state.steps, state.sources, first=state.position, probe=probe)
        return self.output.following(states[:, 0]), replace(state, steps=steps, position=state.position + 1)

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        if batch.target is None:
            raise ValueError("A teacher-forced pass needs the target. Received: a batch without one.")
        steps, sources = self._read(batch)
        pieces = self.target_embedding(batch.target[:, :-1])  # (batch, target - 1, embedding)
        states: Tensor
        states, _ = self.decoder(pieces, steps, sources, first=0, probe=probe)
        return states

    def _read(self, batch: Batch) -> tuple[Steps, tuple[Memory, ...]]:
        """The source as the decoder begins with it and as its attention remembers it."""
        states, last = self.encoder(self.source_embedding(batch.source), batch.source_lengths)
        steps: Steps = self.decoder.begin(last)
        attention = getattr(self.decoder, "attention", None)
        if attention is None:
            return steps, ()
        allowed_keys = padding(batch.source_lengths, batch.source.shape[1])  # (batch, source)
        return steps, (attention.prepare(states, states, allowed_keys),)
