"""The encoder alone: it reads a text of which some pieces are hidden, and guesses those from both sides.

    I <unk> home </s>  →  go                                    Devlin et al. 2019, section 3.1

A batch of such texts has the text with its hidden pieces as source; the target holds, behind `<s>`, the piece
that was there where it is to be guessed, and `PAD` elsewhere. The parts have the names that they have in a
Transformer, whose encoder may begin with their weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor, nn

from jumok.models.model import Model, OutputLayer
from jumok.models.transformer import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumok.models.layers import Embedding
    from jumok.models.probe import Probe
    from jumok.models.transformer import EncoderBlock
    from jumok.values import Batch

__all__ = ["EncoderOnly", "encoder_part"]


class EncoderOnly(Model):
    """Embedding, blocks and what guesses (`build.py` makes them)."""

    def __init__(
        self,
        *,
        source_embedding: Embedding,
        encoder: Sequence[EncoderBlock],
        after_encoder: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.encoder = nn.ModuleList(encoder)
        self.after_encoder = after_encoder
        self.output = output

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        """States (batch, source, width): state t is what guesses the piece that stood at place t."""
        blocks = cast("list[EncoderBlock]", list(self.encoder))
        states, _ = encode(batch, self.source_embedding, blocks, self.after_encoder, probe)
        return states


def encoder_part(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of the weights of a model, those of its encoder: a Transformer and an encoder alone name them alike."""
    parts = ("source_embedding.", "encoder.", "after_encoder.")
    return {name: tensor for name, tensor in weights.items() if name.startswith(parts)}
