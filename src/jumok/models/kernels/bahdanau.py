"""Bahdanau's decoder over whole sentences in training, with hand-written gradients.

The decoder attends before each step. With K the projected keys, H the values, s' the state before the step,
q = s' W_q, and ∂x the gradient of the loss with respect to x:

    hᵢ = tanh(Kᵢ + q),  a = softmax(vᵀ hᵢ),  c = Σᵢ aᵢ Hᵢ         Bahdanau et al. 2015, appendix A.1.2
    βᵢ = ∂(vᵀ hᵢ) = aᵢ (∂c · Hᵢ - Σⱼ aⱼ ∂c · Hⱼ)
    ∂q = v Σᵢ βᵢ (1 - hᵢ²) = -v Σᵢ βᵢ hᵢ²                         because Σᵢ βᵢ = 0
    ∂Kᵢ = v Σₜ βᵢ (1 - hᵢ²)    ∂v = Σₜᵢ βᵢ hᵢ    ∂Hᵢ = Σₜ aᵢ ∂c

The hidden layer h of a step is by far the largest tensor here. The hidden layers of all steps do not fit into
the processor's cache, so they are not stored, and the backward pass computes them again, one step at a time.
The largest buffers are allocated before the loop over steps.

The plain twin is `AttendBefore` in models/recurrent.py, which uses torch's operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from jumok.models.kernels.recurrent import add_product, direction_weights, pop_saved
from jumok.models.kernels.recurrent_cells import (
    ACTIVATIONS_OF_LAYER,
    CellActivations,
    GateGradients,
    LayerState,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.attention import Additive, KeyValues
    from jumok.models.kernels.dropout import Dropout


class _AttentionInputs(NamedTuple):
    """The inputs of the attention: keys, values, mask and score vector."""

    keys: Tensor  # (row, key, units), projected
    values: Tensor  # (row, key, width)
    mask_bias: Tensor | None  # (row, 1, key), added to the scores: 0, or so low that the weight is 0
    score_vector: Tensor  # (units,): v


class _LayerWeights(NamedTuple):
    """The weights of a decoder layer. The recurrent weight of the top layer begins with W_q."""

    input_weight: Tensor  # (width of the context or of the layer below, gates · width)
    input_bias: Tensor | None  # None for the first layer, whose bias is part of the token inputs
    recurrent_weight: Tensor  # (width, gates · width); for the top layer (width, units + gates · width)
    recurrent_bias: Tensor
    dropout_factors: Tensor | None  # (step, row, width), of the layer's inputs


class _DecoderInputs(NamedTuple):
    """All tensors of one pass. The backward pass returns their gradients in the same structure."""

    # (step, row, gates · width): embedded tokens times the first layer's weight, plus its bias
    token_inputs: Tensor
    attention: _AttentionInputs
    layers: tuple[_LayerWeights, ...]
    initial: tuple[LayerState, ...]  # per layer, tensors (row, width)


class _DecoderOutputs(NamedTuple):
    states: Tensor  # (step, row, width), of the top layer
    contexts: Tensor  # (step, row, width)
    last: tuple[LayerState, ...]  # per layer, tensors (row, width)


def run_decoder(
    layers: Sequence[nn.RNNBase],
    mechanism: Additive,
    tokens: Tensor,
    initial: Sequence[LayerState],
    memory: KeyValues,
    dropout: Dropout,
) -> tuple[Tensor, Tensor, tuple[LayerState, ...]]:
    """Run all steps over embedded tokens (row, step, embedding).

    `initial` has the first state of each layer, tensors (1, row, width). Return the states of the top layer
    and the contexts, both (row, step, width), and the last state of each layer.
    """
    values = memory.values[:, 0].contiguous()
    keys = memory.keys[:, 0].contiguous()
    attention = _AttentionInputs(keys, values, _mask_bias(memory), mechanism.score_vectors()[0])
    token_inputs, weights = _layer_weights(layers, mechanism, tokens, values.shape[2], dropout)
    states = tuple(tuple(part[0] for part in state) for state in initial)
    inputs = _DecoderInputs(token_inputs, attention, weights, states)
    # Autograd only sees tensors that are arguments. So the structure is flattened here, and `_RunDecoder`
    # rebuilds it.
    leaves, structure = tree_flatten(inputs)
    outputs = _RunDecoder.apply(ACTIVATIONS_OF_LAYER[type(layers[0])], structure, *leaves)  # type: ignore[no-untyped-call]
    top, contexts, last = _unflatten_outputs(outputs, len(layers))
    return (
        top.transpose(0, 1),
        contexts.transpose(0, 1),
        tuple(tuple(part[None] for part in state) for state in last),
    )


def _layer_weights(
    layers: Sequence[nn.RNNBase], mechanism: Additive, tokens: Tensor, context_width: int, dropout: Dropout
) -> tuple[Tensor, tuple[_LayerWeights, ...]]:
    """Return the token inputs of the first layer, and the weights that each layer uses inside the loop."""
    first, *upper = (direction_weights(layer) for layer in layers)
    token_weight, context_weight = torch.split(first.input_weight, [tokens.shape[2], context_width])
    token_inputs = linear(tokens.transpose(0, 1), token_weight.t(), first.input_bias)
    weights = [
        _LayerWeights(context_weight.contiguous(), None, first.recurrent_weight, first.recurrent_bias, None)
    ]
    for layer, layer_weights in zip(layers[1:], upper, strict=True):
        factors = dropout(tokens.new_ones(*token_inputs.shape[:2], layer.hidden_size))
        weights.append(
            _LayerWeights(
                layer_weights.input_weight.contiguous(),
                layer_weights.input_bias,
                layer_weights.recurrent_weight,
                layer_weights.recurrent_bias,
                factors,
            )
        )
    query_weight, top = mechanism.query[0], weights[-1]
    weights[-1] = top._replace(
        recurrent_weight=torch.cat([query_weight, top.recurrent_weight], dim=1),
        recurrent_bias=torch.cat([top.recurrent_bias.new_zeros(query_weight.shape[1]), top.recurrent_bias]),
    )
    return token_inputs, tuple(weights)


def _mask_bias(memory: KeyValues) -> Tensor | None:
    if memory.allowed is None:
        return None
    bias = torch.zeros_like(memory.allowed[:, None], dtype=memory.keys.dtype)  # (row, 1, key)
    return bias.masked_fill_(~memory.allowed[:, None], torch.finfo(bias.dtype).min)


def _unflatten_outputs(outputs: Sequence[Tensor], num_layers: int) -> _DecoderOutputs:
    """Return the outputs of `_RunDecoder`, or the gradients of the outputs, as a named tuple."""
    states, contexts, *last = outputs
    parts = len(last) // num_layers  # 1 tensor per layer; 2 for an LSTM
    by_layer = tuple(tuple(last[start : start + parts]) for start in range(0, len(last), parts))
    return _DecoderOutputs(states, contexts, by_layer)


class _RunDecoder(torch.autograd.Function):
    """All steps of the decoder: top states, contexts, and the last state of each layer."""

    @staticmethod
    def forward(
        ctx: Any, cell: type[CellActivations], structure: TreeSpec, *leaves: Tensor | None
    ) -> tuple[Tensor, ...]:
        decoder = _DecoderForward(cell, tree_unflatten(leaves, structure))
        decoder.run()
        contexts = decoder.contexts[:, :, 0]
        ctx.structure, ctx.activations = structure, decoder.activations
        # Outputs go through `save_for_backward`: as attributes they would form a cycle with their own graph.
        ctx.save_for_backward(*leaves, decoder.attention_weights, contexts)
        last = (part for activations in decoder.activations for part in activations.final_state())
        return decoder.activations[-1].states[1:], contexts, *last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        *leaves, attention_weights, contexts = ctx.saved_tensors
        inputs: _DecoderInputs = tree_unflatten(leaves, ctx.structure)
        activations: list[CellActivations] = pop_saved(ctx, "activations")
        gradients = _unflatten_outputs(grad_outputs, len(activations))
        decoder = _DecoderBackward(inputs, activations, attention_weights, gradients)
        decoder.run()
        flat, _ = tree_flatten(decoder.gradients(contexts))
        return None, None, *flat


class _DecoderForward:
    """The forward pass. Attributes that end in `_at` have one view per step of a larger tensor."""

    def __init__(self, cell: type[CellActivations], inputs: _DecoderInputs) -> None:
        attention, token_inputs = inputs.attention, inputs.token_inputs
        steps, units = len(token_inputs), len(attention.score_vector)
        rows, keys, width = attention.values.shape
        *lower, top = inputs.initial
        self.inputs = inputs
        self.activations = [
            *(cell(state, steps, extra_columns=0) for state in lower),
            cell(top, steps, extra_columns=units),
        ]
        self.attention_weights = token_inputs.new_empty(steps, rows, 1, keys)
        self.contexts = token_inputs.new_empty(steps, rows, 1, width)
        self._weights_at, self._contexts_at = self.attention_weights.unbind(0), self.contexts.unbind(0)
        self._context_rows_at = self.contexts[:, :, 0].unbind(0)
        self._queries_at = self.activations[-1].state_products[..., None, :units].unbind(0)
        self._hidden = torch.empty_like(attention.keys)
        self._scores = token_inputs.new_empty(rows, 1, keys)
        self._flat_hidden, self._flat_scores = self._hidden.view(-1, units), self._scores.view(-1)
        self._gate_inputs = torch.empty_like(token_inputs[0])

    def run(self) -> None:
        first, *upper = zip(self.inputs.layers, self.activations, strict=True)
        first_weights, first_activations = first
        for time, token_input in enumerate(self.inputs.token_inputs.unbind(0)):
            for layer, activations in (first, *upper):
                torch.addmm(
                    layer.recurrent_bias,
                    activations.state_at[time],
                    layer.recurrent_weight,
                    out=activations.state_products_at[time],
                )
            self._attend(time)
            torch.addmm(
                token_input, self._context_rows_at[time], first_weights.input_weight, out=self._gate_inputs
            )
            state = first_activations.step(time, self._gate_inputs)
            for layer, activations in upper:
                state = state if layer.dropout_factors is None else state * layer.dropout_factors[time]
                state = activations.step(time, linear(state, layer.input_weight.t(), layer.input_bias))

    def _attend(self, time: int) -> None:
        """Compute the weights and the context of the step `time` from its query."""
        attention = self.inputs.attention
        torch.add(attention.keys, self._queries_at[time], out=self._hidden).tanh_()
        torch.mv(self._flat_hidden, attention.score_vector, out=self._flat_scores)
        if attention.mask_bias is not None:
            self._scores += attention.mask_bias
        torch.softmax(self._scores, dim=2, out=self._weights_at[time])
        torch.bmm(self._weights_at[time], attention.values, out=self._contexts_at[time])


class _DecoderBackward:
    """The backward pass, last step first."""

    def __init__(
        self,
        inputs: _DecoderInputs,
        activations: list[CellActivations],
        weights: Tensor,
        grad_outputs: _DecoderOutputs,
    ) -> None:
        self._layers = inputs.layers
        self._activations = activations
        self._gate_gradients = [GateGradients(layer_activations) for layer_activations in activations]
        self._attention = _AttentionBackward(
            inputs.attention, weights, activations[-1], self._gate_gradients[-1]
        )
        self._recurrent_weights_transposed = [
            layer.recurrent_weight.t().contiguous() for layer in inputs.layers
        ]
        self._input_weights_transposed = [layer.input_weight.t().contiguous() for layer in inputs.layers]
        self._grad_states_at = grad_outputs.states.unbind(0)
        self._grad_contexts_at = grad_outputs.contexts.unbind(0)
        # Per layer: the gradient of the state after a step, as far as it comes from the next step.
        self._carried = [
            layer_activations.begin_backward(last)
            for layer_activations, last in zip(activations, grad_outputs.last, strict=True)
        ]

    def run(self) -> None:
        for time in range(len(self._grad_states_at) - 1, -1, -1):
            direct_gradients = self._backward_layers(time)
            torch.addmm(
                self._grad_contexts_at[time],
                self._gate_gradients[0].grad_inputs_at[time],
                self._input_weights_transposed[0],
                out=self._attention.grad_contexts_at[time],
            )
            self._attention.step(time)
            self._carried = [
                add_product(direct_gradient, gate_gradients.grad_products_at[time], weight)
                for direct_gradient, gate_gradients, weight in zip(
                    direct_gradients, self._gate_gradients, self._recurrent_weights_transposed, strict=True
                )
            ]

    def _backward_layers(self, time: int) -> list[Tensor | None]:
        """Step back through the cells of one step, top layer first.

        Return, for each layer, the part of ∂s' that does not pass through the recurrent weight. None stands
        for 0.
        """
        gradient = self._grad_states_at[time]
        direct_gradients: list[Tensor | None] = [None] * len(self._layers)
        for index in range(len(self._layers) - 1, -1, -1):
            gate_gradients, factors = self._gate_gradients[index], self._layers[index].dropout_factors
            direct_gradients[index] = self._activations[index].backward_step(
                time, gradient + self._carried[index], gate_gradients.blocks_at[time]
            )
            if index:
                gradient = gate_gradients.grad_inputs_at[time] @ self._input_weights_transposed[index]
                gradient = gradient if factors is None else gradient.mul_(factors[time])
        return direct_gradients

    def gradients(self, contexts: Tensor) -> _DecoderInputs:
        """Return the gradients of all inputs. Call this after `run`.

        `contexts` (step, row, width) are those of the forward pass.
        """
        layers, layer_inputs = [], contexts
        for layer, activations, gate_gradients in zip(
            self._layers, self._activations, self._gate_gradients, strict=True
        ):
            factors = layer.dropout_factors
            layer_inputs = layer_inputs if factors is None else layer_inputs * factors
            layers.append(_weight_gradients(layer, activations, gate_gradients, layer_inputs))
            layer_inputs = activations.states[1:]
        initial = tuple(
            (state, *activations.grad_initial_cell())
            for state, activations in zip(self._carried, self._activations, strict=True)
        )
        return _DecoderInputs(
            self._gate_gradients[0].grad_inputs, self._attention.gradients(), tuple(layers), initial
        )


def _weight_gradients(
    layer: _LayerWeights, activations: CellActivations, gate_gradients: GateGradients, inputs: Tensor
) -> _LayerWeights:
    """Return the gradients of a layer's weights. Each gradient is one product over all steps.

    The dropout factors have no gradient.
    """
    grad_x, grad_u = gate_gradients.grad_inputs.flatten(0, 1), gate_gradients.grad_products.flatten(0, 1)
    return _LayerWeights(
        inputs.flatten(0, 1).t() @ grad_x,
        None if layer.input_bias is None else grad_x.sum(dim=0),
        activations.states[:-1].flatten(0, 1).t() @ grad_u,
        grad_u.sum(dim=0),
        None,
    )


class _AttentionBackward:
    """The backward pass of the attention of every step, last step first."""

    def __init__(
        self,
        attention: _AttentionInputs,
        weights: Tensor,
        top: CellActivations,
        gate_gradients: GateGradients,
    ) -> None:
        units = len(attention.score_vector)
        rows, _, width = attention.values.shape
        self._attention = attention
        self._weights = weights  # (step, row, 1, key)
        self._weights_at = weights.unbind(0)
        self._queries_at = top.state_products[..., None, :units].unbind(0)
        self._grad_queries_at = gate_gradients.all[..., None, :units].unbind(0)
        self._grad_scores = torch.empty_like(weights)  # β
        self._grad_scores_at = self._grad_scores.unbind(0)
        self._flat_grad_scores_at = self._grad_scores.flatten(1).unbind(0)
        self._grad_score_columns_at = self._grad_scores.transpose(2, 3).unbind(0)
        self._grad_contexts = attention.values.new_empty(len(weights), rows, width)  # ∂c
        self._grad_context_rows_at = self._grad_contexts[:, :, None].unbind(0)
        self.grad_contexts_at = self._grad_contexts.unbind(0)  # the decoder writes them
        self._values_transposed = attention.values.transpose(1, 2)
        self._minus_score_vector = -attention.score_vector
        self._hidden = torch.empty_like(attention.keys)
        self._hidden_by_unit = self._hidden.view(-1, units).t()  # (units, row · key)
        self._beta_times_hidden_squared = torch.zeros_like(attention.keys)  # Σₜ β h²
        self._grad_score_vector = torch.zeros_like(attention.score_vector)

    def step(self, time: int) -> None:
        """Compute ∂q of the step `time` from ∂c, and add to the sums for ∂K and ∂v."""
        weights = self._weights_at[time]
        grad_weights = torch.bmm(self._grad_context_rows_at[time], self._values_transposed).mul_(weights)
        grad_scores = torch.addcmul(
            grad_weights,
            weights,
            grad_weights.sum(dim=2, keepdim=True),
            value=-1,
            out=self._grad_scores_at[time],
        )
        hidden = torch.add(self._attention.keys, self._queries_at[time], out=self._hidden).tanh_()
        self._grad_score_vector.addmv_(self._hidden_by_unit, self._flat_grad_scores_at[time])
        hidden.mul_(hidden)  # from here on h²
        self._beta_times_hidden_squared.addcmul_(hidden, self._grad_score_columns_at[time])
        torch.mul(torch.bmm(grad_scores, hidden), self._minus_score_vector, out=self._grad_queries_at[time])

    def gradients(self) -> _AttentionInputs:
        """Return the gradients of keys, values and v.

        Call this after the last step. The mask has no gradient.
        """
        beta = self._grad_scores.sum(dim=0).transpose(1, 2)  # Σₜ β, (row, key, 1)
        grad_keys = (beta - self._beta_times_hidden_squared).mul_(self._attention.score_vector)
        weights = self._weights[:, :, 0].permute(1, 2, 0)
        grad_values = torch.bmm(weights, self._grad_contexts.transpose(0, 1))
        return _AttentionInputs(grad_keys, grad_values, None, self._grad_score_vector)
