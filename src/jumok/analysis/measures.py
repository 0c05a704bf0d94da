"""How much a word matters to the model, by three measures other than the attention weight.

    norm       ‖α f(x)‖, f(x) = (x W_V + b_V) W_O                 Kobayashi et al. 2020, eq. 4
    gradient   Σ_d x_d · ∂ log p(token) / ∂x_d                    gradient × input, Denil et al. 2014
    erasure    log p(token) without the word − log p(token)       Li et al. 2016, "Understanding … by erasure"

The signs differ: a word that supports the produced token has a positive gradient × input and a negative
erasure. Minus gradient × input is the first-order estimate of the change in log p(token) if the embedding is
set to 0. The page shows this estimate: with it, both measures of a word that supports the token are below 0.

A large attention weight does not prove that a word matters. The vector that the head reads may be short (a
small norm). The vector may not matter for the produced word (a small gradient). The model may get the same
information from other words (nothing changes if the word is erased).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from jumok.data.batching import padded_batch
from jumok.errors import UnsupportedError
from jumok.models.decoder_only import DecoderOnly
from jumok.models.recurrent import Recurrent
from jumok.models.transformer import Transformer
from jumok.types import BEGIN, END

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.analysis.bound_model import BoundModel
    from jumok.analysis.tokenized_sentence import TokenizedSentence
    from jumok.attention import MultiHead
    from jumok.models.model import TranslationModel


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """Three measures of one translation. Each step produces a token. The last step produces `</s>`."""

    value_norms: Mapping[str, NDArray[np.float32]]
    """Site → ‖f(x)‖ of each key, (layer, head, key). The weight times this norm is the norm of the vector
    that the key adds to the output. In a recurrent model, f(x) is the state of the encoder."""
    gradient: Mapping[str, NDArray[np.float32]]
    """ "cross" → (step, source token and `</s>`), "decoder" → (step, `<s>` and target token): gradient ×
    input of the log-probability of the produced token. The input is a token's scaled embedding, without its
    position. If the value is above 0, the input token supports the produced token, to first order."""
    erasure: NDArray[np.float32] | None
    """(step, source word): the change in the log-probability of the produced token when the word is deleted
    from the sentence. If the value is below 0, the word supports the token. None if a `Change` names single
    cells, because the deletion of a word would shift their indices. (An `Edit` that is a function is applied
    to the shortened sentences unchanged.)"""


def measure(
    bound_model: BoundModel, source: TokenizedSentence, target: Sequence[int], *, erases: bool = True
) -> Measures:
    """Return the measures of a target, given as token ids without `</s>`.

    Without `erases`, `erasure` is None.
    """
    if bound_model.reads_picture:
        raise UnsupportedError(
            "Norms, gradients and erasure are measured for words. Received: a picture, which has patches."
        )
    bound_model.check_cost([target])
    erased = [source.tokens_of(word) for word in range(len(source.words))]
    return Measures(
        _value_norms(bound_model, target),
        _gradients(bound_model, target),
        bound_model.erasing_effects(target, erased).T.astype(np.float32) if erases else None,
    )


def _attentions(model: TranslationModel) -> dict[str, list[MultiHead]]:
    """Return the attention layers of each site of a Transformer, or {} for other models."""
    if not isinstance(model, Transformer):
        return {}
    return {
        "encoder": [block.attention for block in model.encoder],  # type: ignore[misc]
        "decoder": [block.attention for block in model.decoder],  # type: ignore[misc]
        "cross": [block.cross_attention for block in model.decoder],  # type: ignore[misc]
    }


@torch.inference_mode()
def _value_norms(bound_model: BoundModel, target: Sequence[int]) -> dict[str, NDArray[np.float32]]:
    """Return `Measures.value_norms`."""
    model, batch = bound_model.model, padded_batch([bound_model.source], [target])
    if isinstance(model, Recurrent):
        if not model.has_cross_attention:
            return {}
        batch = batch.to(model.device)
        states, _ = model.encoder(model.source_embedding(batch.source), batch.cpu_source_lengths)
        return {"cross": _array(states.norm(dim=-1)[:, None])}
    layers = _attentions(model)
    if isinstance(model, DecoderOnly):
        layers = {"decoder": [block.attention for block in model.blocks]}  # type: ignore[misc]
    collected: dict[MultiHead, Tensor] = {}
    handles = [
        attention.value.register_forward_hook(
            lambda _, __, output, attention=attention: collected.update({attention: output[0]})
        )
        for attentions in layers.values()
        for attention in attentions
    ]
    try:
        model(batch, edit=bound_model.edit)
    finally:
        for handle in handles:
            handle.remove()
    norms = {
        site: _array(
            torch.stack([_transformed_norms(attention, collected[attention]) for attention in attentions])
        )
        for site, attentions in layers.items()
    }
    if isinstance(model, DecoderOnly):  # one sequence: the target follows the source
        joint, length = norms["decoder"], bound_model.source_length
        return {"encoder": joint[..., :length], "decoder": joint[..., length:], "cross": joint[..., :length]}
    return norms


def _transformed_norms(attention: MultiHead, values: Tensor) -> Tensor:
    """Return ‖v W_O‖ of each head and key, from the values (key, groups · width): (head, key)."""
    by_group = values.view(len(values), attention.groups, -1)  # (key, group, width)
    by_head = by_group.repeat_interleave(attention.heads // attention.groups, dim=1)  # (key, head, width)
    output = attention.out.weight.view(
        len(attention.out.weight), attention.heads, -1
    )  # (output, head, width)
    transformed: Tensor = torch.einsum("khv,ohv->hko", by_head, output)
    norms: Tensor = transformed.norm(dim=-1)
    return norms


def _gradients(bound_model: BoundModel, target: Sequence[int]) -> dict[str, NDArray[np.float32]]:
    """Return `Measures.gradient`.

    Each row of a batch is for a different step, so one backward pass computes many steps.
    """
    model, produced_ids = bound_model.model, [*target, END]
    inputs = {"cross": [*bound_model.source, END], "decoder": [BEGIN, *target]}
    tables = {"cross": model.source_embedding, "decoder": model.target_embedding}
    bound_model.check_cost([target] * len(produced_ids))
    parts: dict[str, list[NDArray[np.float32]]] = {site: [] for site in inputs}
    first = 0
    for rows in bound_model.batches([target] * len(produced_ids)):
        steps = torch.arange(first, first + len(rows), device=model.device)
        with torch.enable_grad(), _EmbeddingLeaves(model) as leaves:
            states = model(padded_batch([bound_model.source] * len(rows), rows), edit=bound_model.edit)
            with model.autocast():
                log_probs = model.output.log_probs(states[torch.arange(len(rows)), steps])  # (row, token)
            tokens = torch.tensor(produced_ids[first : first + len(rows)], device=model.device)
            total = log_probs.gather(1, tokens[:, None]).sum()
            gradients = torch.autograd.grad(total, leaves.outputs)
        for site, gradient in zip(inputs, gradients, strict=True):  # the source is embedded first
            table: Any = tables[site]
            embedded = table.weight.detach()[torch.tensor(inputs[site], device=model.device)]
            scale = table.weight.shape[1] ** 0.5
            parts[site].append(_array((gradient.float() * embedded.float() * scale).sum(dim=-1)))
        first += len(rows)
    return {site: np.concatenate(rows) for site, rows in parts.items()}


class _EmbeddingLeaves:
    """A context manager that makes the outputs of a model's embeddings leaves of the autograd graph."""

    def __init__(self, model: TranslationModel) -> None:
        self.outputs: list[Tensor] = []
        # Dropout is the last module of an embedding, so the output of dropout is the output of the embedding.
        tables = cast("Iterator[Any]", (model.source_embedding, model.target_embedding))
        self._modules = list(dict.fromkeys(table.dropout for table in tables))

    def __enter__(self) -> _EmbeddingLeaves:
        self._handles = [module.register_forward_hook(self._cut) for module in self._modules]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _cut(self, module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        self.outputs.append(output.detach().requires_grad_())
        return self.outputs[-1]


def _array(values: Tensor) -> NDArray[np.float32]:
    return np.asarray(values.detach().float().cpu().numpy())
