"""Where a model looks in a picture: while it writes each word of a caption, or when it names a class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jumok.errors import UnsupportedError
from jumok.inference.picture_classifier import PictureClassifier
from jumok.pictures.patches import join_patches
from jumok.text.picture_tokenizer import PictureTokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jumok.inference.translator import Translator
    from jumok.types import AttentionMap, PatchGrid


@dataclass(frozen=True, slots=True)
class PictureView:
    """The caption or the class of a picture, and the attention of each word, or of the class, to patches."""

    text: str
    attention: AttentionMap  # (1, 1, word, patch)
    pixels: NDArray[np.uint8]  # (height, width, channel), as the model sees them
    grid: PatchGrid


def view_picture(
    model: Translator | PictureClassifier, path: str, *, caption: str | None = None
) -> PictureView:
    """Return the caption or the class of a picture according to a model, and where the model looks.

    If `caption` is given, it is used instead of the model's own caption. Each word of a caption has a map:
    the mean over the heads of the last layer's cross-attention. A class has one map: the roll-out of the
    encoder's attention from the class token.
    """
    if isinstance(model, PictureClassifier):
        if caption is not None:
            raise UnsupportedError(
                "A classifier writes no caption, so no caption can be explained. Leave out `caption`."
            )
        tokenizer = model.picture_tokenizer
        [answer] = model.classify([path])
        text, attention = answer.name, model.class_roll_out(path)
        attention = replace(attention, queries=(text,), facts={"roll-out": "from the class token"})
    else:
        source = model.tokenizers.source
        if not isinstance(source, PictureTokenizer):
            raise UnsupportedError(
                "This model reads text, not pictures. `jumok look MODEL SENTENCE` explains a translation."
            )
        tokenizer = source
        text = model.translate([path])[0].text if caption is None else caption
        attention = model.word_attention(path, text)
    pixels = join_patches(tokenizer.encode(path), tokenizer.grid, channels=tokenizer.channels)
    return PictureView(text, attention, pixels, tokenizer.grid)
