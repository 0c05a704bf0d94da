"""A classifier of pictures: it names their classes and shows where it looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from jumok.attention import roll_out
from jumok.data.batch_plan import SOURCE_TOKENS_FACTOR
from jumok.data.batching import class_batch, padded_batch
from jumok.inference.engines.torch_engine import BATCH_TOKENS
from jumok.text.class_names import FIRST_CLASS
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from jumok.models.model import Model
    from jumok.text.class_names import ClassNames
    from jumok.text.picture_tokenizer import PictureTokenizer
    from jumok.types import Batch

CLASS_LABEL = "<class>"


@dataclass(frozen=True, slots=True)
class Classification:
    """The most probable class of a picture, and the probability of every class."""

    picture: str  # the path of its file
    name: str  # of the most probable class
    probabilities: dict[str, float]


class PictureClassifier:
    """A model with its classes. The model is put into evaluation mode."""

    def __init__(self, model: Model, picture_tokenizer: PictureTokenizer, classes: ClassNames) -> None:
        self.model = model.eval()
        self.picture_tokenizer = picture_tokenizer
        self.classes = classes

    def classify(self, paths: Sequence[str]) -> list[Classification]:
        """Return the class of the picture in each file, in order."""
        return list(self.stream(paths))

    def stream(self, paths: Sequence[str]) -> Iterator[Classification]:
        """Yield the class of each picture in order. Pictures are computed batch by batch."""
        pictures_per_batch = max(1, BATCH_TOKENS // len(self.picture_tokenizer.grid))
        for start in range(0, len(paths), pictures_per_batch):
            group = paths[start : start + pictures_per_batch]
            batch = padded_batch(self.picture_tokenizer.encode_batch(group))
            for path, row in zip(group, self._probabilities(batch), strict=True):
                probabilities = dict(zip(self.classes.names, row.tolist(), strict=True))
                best = max(probabilities.items(), key=lambda item: item[1])[0]
                yield Classification(path, best, probabilities)

    @torch.inference_mode()
    def _probabilities(self, batch: Batch) -> NDArray[np.float32]:
        """Return the probabilities of the classes, (picture, class). Special tokens are left out."""
        states = self.model(batch)[:, 0]  # (picture, width)
        scores = self.model.output(states)[:, FIRST_CLASS:]
        probabilities: NDArray[np.float32] = scores.softmax(dim=-1).float().cpu().numpy()
        return probabilities

    @torch.inference_mode()
    def attention(self, path: str) -> AttentionMap:
        """Return the encoder's attention, (layer, head, query, key).

        Queries and keys are the class token, then the patches.
        """
        patches = self.picture_tokenizer.encode(path)
        weights = self.model.attention(padded_batch([patches]))["encoder"][0]
        labels = (CLASS_LABEL, *self.picture_tokenizer.tokens(patches))
        return AttentionMap("encoder", weights.float().cpu().numpy(), labels, labels)

    def class_roll_out(self, path: str) -> AttentionMap:
        """Return how much of each patch reaches the class token, (1, 1, 1, patch): Abnar & Zuidema 2020.

        The shares of all patches sum to less than 1, because the class token keeps a share of itself.
        """
        attention = self.attention(path)
        flow = roll_out(list(attention.weights))  # (query, key)
        shares = np.asarray(flow[:1, 1:], dtype=np.float32)[None, None]
        return AttentionMap("encoder", shares, (CLASS_LABEL,), attention.keys[1:])


def make_class_batches(
    pictures: Sequence[Any], classes: Sequence[Sequence[int]], *, batch_tokens: int = BATCH_TOKENS
) -> list[Batch]:
    """Return batches of pictures and their classes. A picture is an array of patches, a class is token ids.

    All pictures have the same number of patches. A batch has at most as many patches as a batch of
    `batch_tokens` in training.
    """
    max_patches = SOURCE_TOKENS_FACTOR * batch_tokens
    size = max(1, max_patches // max(len(pictures[0]), 1)) if pictures else 1  # pictures per batch
    return [
        class_batch(padded_batch(pictures[start : start + size], classes[start : start + size]))
        for start in range(0, len(pictures), size)
    ]
