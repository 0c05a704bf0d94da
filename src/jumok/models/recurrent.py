"""Recurrent encoder and decoder: a state passed from step to step, and attention to the encoder's states.

    encoder   hᵢ = [→hᵢ ; ←hᵢ]                                   Bahdanau et al. 2015, section 3.2
    initial   s₀ = tanh(W_s [→h_S ; ←h₁])                        S is the length of the source
    before    cₜ = attend(sₜ₋₁, h),  sₜ = cell([yₜ₋₁ ; cₜ], sₜ₋₁)
              rₜ = tanh(W_r [sₜ ; cₜ ; yₜ₋₁])                    Bahdanau et al. 2015, section 3.1
    after     sₜ = cell(yₜ₋₁, sₜ₋₁),  cₜ = attend(sₜ, h)
              h̃ₜ = tanh(W_c [cₜ ; sₜ])                           Luong et al. 2015, eq. 5
    feeding   sₜ = cell([yₜ₋₁ ; h̃ₜ₋₁], sₜ₋₁)                     Luong et al. 2015, section 3.3
    none      sₜ = cell(yₜ₋₁, sₜ₋₁),  rₜ = tanh(W_r sₜ)          Sutskever et al. 2014

Bahdanau's query is the state before the step, and Luong's query is the state after the step. Without
attention, one vector represents the whole sentence. The vector that predicts the next token (r or h̃) has the
width of the embeddings, so that the output layer may be tied to the embeddings. If the decoder has no
attention, or attends after the step without input feeding, no state depends on attention, so all steps of a
training sentence run in one call. Otherwise the steps run one by one.

In training on the CPU without autocast, the kernels of `models/kernels` run the layers and Bahdanau's
decoder. The code here is the plain twin of the decoder's kernel. It also runs decoding, edits, attention maps
and other mechanisms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from jumok.attention import (
    Additive,
    Attended,
    Attention,
    Edit,
    KeyValues,
    LuongConcat,
    Memory,
    SingleHead,
    padding_mask,
)
from jumok.errors import UnsupportedError
from jumok.models.kernels.bahdanau import run_decoder
from jumok.models.kernels.device import runs_fast_kernels
from jumok.models.kernels.dropout import Dropout
from jumok.models.kernels.recurrent import encode_layer, run_layer
from jumok.models.model import OutputLayer, TranslationModel, is_identity_order, target_inputs
from jumok.models.probe import Probe, batch_rows
from jumok.models.shared_sources import share_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.models.kernels.recurrent_cells import LayerState
    from jumok.types import Batch, LogProbs

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
# Mechanisms that `run_decoder` computes. Other subclasses of Additive may have other formulas.
KERNEL_MECHANISMS = (Additive, LuongConcat)


class TokenEmbedding(nn.Module):
    """Token embeddings without positions, because a recurrent model reads the tokens in order."""

    def __init__(self, *, vocab_size: int, width: int, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, width))
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, width)."""
        # Scaled up by √width, because a tied output layer uses the same matrix and needs small entries.
        states: Tensor = self.dropout(embedding(tokens, self.weight) * self.weight.shape[1] ** 0.5)
        return states


class RecurrentEncoder(nn.Module):
    """Layers of cells over the source, in one or two directions. Padding is not read."""

    def __init__(
        self, *, cell: str, inputs: int, width: int, layers: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        direction_width = width // 2 if bidirectional else width
        self.layers = nn.ModuleList(
            CELLS[cell](
                inputs if layer == 0 else width,
                direction_width,
                batch_first=True,
                bidirectional=bidirectional,
            )
            for layer in range(layers)
        )
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, source, inputs) -> the states (batch, source, width) and the final state (batch, width).

        `lengths` (batch,) must be on the CPU, even if the states are not. The final state of the backward
        direction is its state at the first token.
        """
        final_state = states
        for index, layer in enumerate(_recurrent_layers(self.layers)):
            states, final_state = encode_layer(layer, self.dropout(states) if index else states, lengths)
        return states, final_state


def _recurrent_layers(layers: nn.ModuleList) -> list[nn.RNNBase]:
    return [layer for layer in layers if isinstance(layer, nn.RNNBase)]


@dataclass(frozen=True, slots=True)
class DecoderState:
    """The recurrent state of a decoder between two steps."""

    layers: tuple[LayerState, ...]  # per layer, tensors (1, row, width)
    # (row, embedding): h̃ of the last step. None before the first step, and without input feeding.
    input_feed: Tensor | None = None

    def select(self, order: Tensor) -> DecoderState:
        layers = tuple(tuple(part.index_select(1, order) for part in layer) for layer in self.layers)
        return DecoderState(
            layers, None if self.input_feed is None else self.input_feed.index_select(0, order)
        )

    @property
    def query(self) -> Tensor:
        """The state of the top layer as a query, (row, 1, width)."""
        return self.layers[-1][0].transpose(0, 1)


class DecoderSettings(NamedTuple):
    """The settings of a decoder, except those of its attention."""

    cell: str
    embedding: int
    width: int
    encoder_width: int
    layers: int  # how many
    dropout: float


class RecurrentDecoder(nn.Module, ABC):
    """Layers of cells over the target so far. Subclasses decide when the decoder attends.

    The input of a step is the embedding of a token and `extra_inputs` further numbers.
    """

    def __init__(self, settings: DecoderSettings, *, extra_inputs: int = 0) -> None:
        super().__init__()
        inputs, width = settings.embedding + extra_inputs, settings.width
        self.layers = nn.ModuleList(
            CELLS[settings.cell](width if layer else inputs, width, batch_first=True)
            for layer in range(settings.layers)
        )
        # W_s of each layer, from which its initial state is computed. Stored models use the name `first`.
        self.first = nn.ModuleList(nn.Linear(settings.encoder_width, width) for _ in range(settings.layers))
        self.dropout = Dropout(settings.dropout)

    def begin(self, final_state: Tensor) -> DecoderState:
        """Return the state before the first step, given the encoder's final state (batch, encoder width)."""
        states = [torch.tanh(project(final_state))[None] for project in self.first]
        is_lstm = isinstance(self.layers[0], nn.LSTM)
        return DecoderState(
            tuple((state, torch.zeros_like(state)) if is_lstm else (state,) for state in states)
        )

    @abstractmethod
    def forward(
        self, tokens: Tensor, state: DecoderState, memories: Sequence[Memory], *, position: int, probe: Probe
    ) -> tuple[Tensor, DecoderState]:
        """Embedded tokens (row, step, embedding) -> vectors that predict the next tokens, and the next state.

        `memories` has the source, or nothing without attention. `position` is the position of the first
        token. The vectors are (row, step, embedding).
        """

    def _run_layers(self, inputs: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Run the layers over (row, step, inputs).

        Return the top states (row, step, width) and the next state.
        """
        states, final_states = inputs, []
        for index, (layer, initial_state) in enumerate(
            zip(_recurrent_layers(self.layers), state.layers, strict=True)
        ):
            states, final_state = run_layer(layer, self.dropout(states) if index else states, initial_state)
            final_states.append(final_state)
        return states, replace(state, layers=tuple(final_states))


class NoAttention(RecurrentDecoder):
    """A decoder without attention. It knows the source only from its initial state."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(settings)
        # W_r. Stored models have it under this name; it is not the read-out of word alignments.
        self.read_out = nn.Linear(settings.width, settings.embedding)

    def forward(
        self, tokens: Tensor, state: DecoderState, memories: Sequence[Memory], *, position: int, probe: Probe
    ) -> tuple[Tensor, DecoderState]:
        states, state = self._run_layers(tokens, state)
        return self.dropout(torch.tanh(self.read_out(states))), state


class AttendBefore(RecurrentDecoder):
    """A decoder whose query is the state before a step. The context is an input of the step."""

    def __init__(self, settings: DecoderSettings, attention: Attention) -> None:
        super().__init__(settings, extra_inputs=settings.encoder_width)
        self.attention = attention
        # W_r. Stored models have it under this name; it is not the read-out of word alignments.
        inputs = settings.width + settings.encoder_width + settings.embedding
        self.read_out = nn.Linear(inputs, settings.embedding)

    def forward(
        self, tokens: Tensor, state: DecoderState, memories: Sequence[Memory], *, position: int, probe: Probe
    ) -> tuple[Tensor, DecoderState]:
        source, mechanism = memories[0], self._kernel_mechanism(probe)
        use_kernel = torch.is_grad_enabled() and runs_fast_kernels(tokens)
        if use_kernel and mechanism is not None and isinstance(source, KeyValues) and source.beams is None:
            states, contexts, layers = run_decoder(
                _recurrent_layers(self.layers), mechanism, tokens, state.layers, source, self.dropout
            )
            state = replace(state, layers=layers)
        else:
            states, contexts, state = self._run_steps(tokens, state, source, position=position, probe=probe)
        joined = torch.cat([states, contexts, tokens], dim=2)
        return self.dropout(torch.tanh(self.read_out(joined))), state

    def _kernel_mechanism(self, probe: Probe) -> Additive | None:
        """Return the mechanism if `run_decoder` can compute this pass with it, else None."""
        if probe.edit is not None or probe.collect_weights or not isinstance(self.attention, SingleHead):
            return None
        mechanism = self.attention.mechanism
        if not isinstance(mechanism, Additive) or type(mechanism) not in KERNEL_MECHANISMS:
            return None
        if mechanism.causal or not isinstance(mechanism.dropout, nn.Identity):
            return None
        return mechanism

    def _run_steps(
        self, tokens: Tensor, state: DecoderState, source: Memory, *, position: int, probe: Probe
    ) -> tuple[Tensor, Tensor, DecoderState]:
        states, log = [], _AttentionLog(probe)
        for step in range(tokens.shape[1]):
            context = log.attend(self.attention, state.query, source, position + step)
            inputs = torch.cat([tokens[:, step : step + 1], context], dim=2)
            top, state = self._run_layers(inputs, state)
            states.append(top)
        log.record()
        return torch.cat(states, dim=1), log.contexts(), state


class AttendAfter(RecurrentDecoder):
    """A decoder whose query is the state after a step.

    With input feeding, h̃ is an input of the next step.
    """

    def __init__(self, settings: DecoderSettings, attention: Attention, *, input_feeding: bool) -> None:
        super().__init__(settings, extra_inputs=settings.embedding if input_feeding else 0)
        self.attention = attention
        self.input_feeding = input_feeding
        self.combine = nn.Linear(settings.encoder_width + settings.width, settings.embedding)  # W_c

    def forward(
        self, tokens: Tensor, state: DecoderState, memories: Sequence[Memory], *, position: int, probe: Probe
    ) -> tuple[Tensor, DecoderState]:
        log = _AttentionLog(probe)
        if not self.input_feeding:
            states, state = self._run_layers(tokens, state)
            contexts = log.attend(self.attention, states, memories[0], position)
            log.record()
            return self._combine(contexts, states), state
        outputs = []
        for step in range(tokens.shape[1]):
            feed = torch.zeros_like(tokens[:, 0]) if state.input_feed is None else state.input_feed
            inputs = torch.cat([tokens[:, step : step + 1], feed[:, None]], dim=2)
            top, state = self._run_layers(inputs, state)
            context = log.attend(self.attention, top, memories[0], position + step)
            outputs.append(self._combine(context, top))
            state = replace(state, input_feed=outputs[-1][:, 0])
        log.record()
        return torch.cat(outputs, dim=1), state

    def _combine(self, context: Tensor, states: Tensor) -> Tensor:
        """h̃ = tanh(W_c [c ; s])."""
        combined: Tensor = self.dropout(torch.tanh(self.combine(torch.cat([context, states], dim=2))))
        return combined


class _AttentionLog:
    """Runs the attention of every step of one pass. All steps together are one layer for the probe."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._edit = probe.edit_at("cross", 0)
        self._steps: list[Attended] = []

    def attend(self, attention: Attention, query: Tensor, source: Memory, position: int) -> Tensor:
        attended: Attended = attention(
            query,
            source,
            query_offset=position,
            edit=self._edit,
            need_weights=self._probe.collect_weights,
        )
        self._steps.append(attended)
        return attended.context

    def record(self) -> None:
        """Pass the weights of all steps to the probe, if it collects weights."""
        weights = [attended.weights for attended in self._steps if attended.weights is not None]
        if weights:
            self._probe.collect("cross", Attended(self._steps[-1].context, torch.cat(weights, dim=2)))

    def contexts(self) -> Tensor:
        """Return the contexts of all steps, (row, step, width)."""
        return torch.cat([attended.context for attended in self._steps], dim=1)


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """The decoding state. Each source is stored once and shared by the rows that translate it."""

    decoder: DecoderState
    memories: tuple[Memory, ...]  # the source, or nothing without attention
    sentence: Tensor  # (row,) int64: the sentence, in the batch given to `begin`, that each row translates
    position: int  # of the next token
    edit: Edit | None


class Recurrent(TranslationModel):
    """Encoder and decoder, from parts that `build.py` makes."""

    def __init__(
        self,
        *,
        source_embedding: TokenEmbedding,
        target_embedding: TokenEmbedding,
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
    def has_cross_attention(self) -> bool:
        return not isinstance(self.decoder, NoAttention)

    def begin(self, source: Batch, *, edit: Edit | None = None) -> RecurrentState:
        source = source.to(self.device)
        state, memories = self._encode(source)
        return RecurrentState(state, memories, sentence=batch_rows(source), position=0, edit=edit)

    def step(self, state: RecurrentState, last_tokens: Tensor) -> tuple[LogProbs, RecurrentState]:
        return self._step(state, last_tokens, Probe(rows=state.sentence, edit=state.edit))

    def step_with_attention(
        self, state: RecurrentState, last_tokens: Tensor
    ) -> tuple[LogProbs, RecurrentState, Tensor]:
        """Do the same as `step`, and return the attention to the source: (row, source).

        A search calls this for its coverage penalty.
        """
        if not state.memories:
            raise UnsupportedError(
                "The coverage penalty needs attention to the source, and this model has none. "
                "Set search.coverage_penalty to 0, or train with another model.attention."
            )
        probe = Probe(rows=state.sentence, edit=state.edit, collect_weights=True)
        log_probs, state = self._step(state, last_tokens, probe)
        return log_probs, state, probe.collected["cross"][0][:, 0, 0]

    def reorder(self, state: RecurrentState, order: Tensor) -> RecurrentState:
        rows = len(state.sentence)
        if is_identity_order(order, rows):
            return state
        return RecurrentState(
            state.decoder.select(order),
            share_sources(state.memories, rows, order),
            state.sentence[order],
            state.position,
            state.edit,
        )

    def _step(
        self, state: RecurrentState, last_tokens: Tensor, probe: Probe
    ) -> tuple[LogProbs, RecurrentState]:
        tokens = self.target_embedding(last_tokens[:, None])  # (row, 1, embedding)
        states, decoder_state = self.decoder(
            tokens, state.decoder, state.memories, position=state.position, probe=probe
        )
        log_probs = self.output.next_log_probs(states[:, 0])
        return log_probs, replace(state, decoder=decoder_state, position=state.position + 1)

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        state, memories = self._encode(batch)
        tokens = self.target_embedding(target_inputs(batch))  # (batch, target - 1, embedding)
        states: Tensor
        states, _ = self.decoder(tokens, state, memories, position=0, probe=probe)
        return states

    def _encode(self, batch: Batch) -> tuple[DecoderState, tuple[Memory, ...]]:
        """Return the decoder's initial state, and the memory of its attention if it has attention."""
        states, final_state = self.encoder(self.source_embedding(batch.source), batch.cpu_source_lengths)
        state: DecoderState = self.decoder.begin(final_state)
        attention = getattr(self.decoder, "attention", None)
        if attention is None:
            return state, ()
        allowed_keys = padding_mask(batch.source_lengths, batch.source.shape[1])  # (batch, source)
        return state, (attention.prepare(states, states, allowed_keys),)
