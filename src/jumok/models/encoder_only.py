"""An encoder without a decoder: a masked language model, which predicts tokens from the tokens on both sides.

    I <unk> home </s>  →  go                                    Devlin et al. 2019, section 3.1

The source of a batch is a text in which some tokens are replaced (`data/masking.py`). The target is `<s>`,
then the original token at each position to predict and `PAD` at all other positions. Parameters have the same
names as in the encoder of a Transformer, so that a Transformer can start from these weights.

With pictures, the model is a Vision Transformer (Dosovitskiy et al. 2021): a class token is put in front of
the patches, and the state of the class token predicts the class. The states of the patches are not returned.
The target is `<s>` and the class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor, nn

from jumok.models.model import Model, OutputLayer
from jumok.models.patch_embedding import PatchEmbedding
from jumok.models.transformer import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumok.models.layers import Embedding
    from jumok.models.probe import Probe
    from jumok.models.transformer import EncoderBlock
    from jumok.types import Batch


class EncoderOnly(Model):
    """Embedding, encoder blocks and output layer, from parts that `build.py` makes."""

    def __init__(
        self,
        *,
        source_embedding: Embedding | PatchEmbedding,
        encoder: Sequence[EncoderBlock],
        after_encoder: nn.Module,
        output: OutputLayer,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.encoder = nn.ModuleList(encoder)
        self.after_encoder = after_encoder  # the final norm
        self.output = output

    def states(self, batch: Batch, probe: Probe) -> Tensor:
        """Return the states (batch, source, width). State t predicts the original token at position t.

        With pictures, return the state of the class token, (batch, 1, width).
        """
        blocks = cast("list[EncoderBlock]", list(self.encoder))
        states, _ = encode(batch, self.source_embedding, blocks, self.after_encoder, probe)
        return states[:, :1] if isinstance(self.source_embedding, PatchEmbedding) else states


def encoder_part(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a model's encoder.

    Their names are the same in `Transformer` and `EncoderOnly`.
    """
    prefixes = ("source_embedding.", "encoder.", "after_encoder.")
    return {name: tensor for name, tensor in weights.items() if name.startswith(prefixes)}
