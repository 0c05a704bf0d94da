"""The most probable tokens of each layer of the decoder: the logit lens (nostalgebraist 2020).

The state of a layer goes straight to the final norm and the output layer, as if no layer followed. The list
of layers begins with the input: entry 0 predicts from the embedding that the step reads, entry n from the
state after n layers. The predictions of the last entry are the predictions of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from jumok.analysis.explanation import NextToken
from jumok.analysis.trace import joint_states
from jumok.data.batching import padded_batch
from jumok.errors import UnsupportedError
from jumok.models.decoder_only import DecoderOnly
from jumok.models.probe import Probe
from jumok.models.transformer import Transformer
from jumok.types import BEGIN, PAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from jumok.analysis.bound_model import BoundModel
    from jumok.models.model import TranslationModel
    from jumok.text.protocol import AnyTokenizer
    from jumok.types import Batch


CANDIDATES = 5  # tokens per layer and step


@torch.inference_mode()
def layer_predictions(
    bound_model: BoundModel, target: Sequence[int], tokenizer: AnyTokenizer
) -> tuple[tuple[tuple[NextToken, ...], ...], ...]:
    """Return the most probable tokens of the input and of each layer at each step: layer → step → tokens."""
    model = bound_model.model
    bound_model.check_cost([target])
    batch = padded_batch([bound_model.source], [target]).to(model.device)
    rows = torch.zeros(1, dtype=torch.int64, device=model.device)
    probe = Probe(rows=rows, edit=bound_model.edit, collect_weights=True)
    layers = []
    for states in _layer_states(model, batch, probe):
        with model.autocast():
            log_probs = model.output.log_probs(states).float().cpu()  # (step, token)
        log_probs[:, [PAD, BEGIN]] = -torch.inf  # never produced
        best = log_probs.topk(min(CANDIDATES, log_probs.shape[1]), dim=1)
        layers.append(
            tuple(
                tuple(map(NextToken, ids, tokenizer.tokens(ids), probabilities))
                for ids, probabilities in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
            )
        )
    return tuple(layers)


def _layer_states(model: TranslationModel, batch: Batch, probe: Probe) -> Iterator[Tensor]:
    """Yield the states (step, width) before the first layer and after each layer, with the final norm."""
    if isinstance(model, DecoderOnly):
        states, source_length = joint_states(model, batch), batch.source.shape[1]
        allowed = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        yield model.after_blocks(states, None)[0, source_length:]
        for layer, block in enumerate(model.blocks):
            states, _ = block.read(states, allowed, layer=layer, probe=probe)  # type: ignore[operator]
            yield model.after_blocks(states, None)[0, source_length:]
        return
    if not isinstance(model, Transformer) or batch.target is None:
        raise UnsupportedError(
            "Layer predictions need a model whose layers add to one state, such as a Transformer. "
            f"Received: {type(model).__name__}."
        )
    collected = [model.target_embedding(batch.target[:, :-1])]
    handles = [
        block.register_forward_hook(lambda _, __, output: collected.append(output)) for block in model.decoder
    ]
    try:
        model.states(batch, probe)
    finally:
        for handle in handles:
            handle.remove()
    for states in collected:
        yield model.after_decoder(states, None)[0]
