"""The tokenizer of pictures: it turns the path of a picture file into the patches of the picture.

A picture is used as the source in place of a sentence. Its tokens are patches. A patch is an array of pixel
values, whereas a token of text is one id. Each patch counts as one word, so that attention to words is
attention to patches. Nothing is learnt, and there is no vocabulary.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError, UnsupportedError
from jumok.text.tokenizer import Tokenizer
from jumok.types import PatchGrid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.config.recipe import SourceSettings

MAX_SIZE = 1024  # pixels per side, as in the recipe


class PictureTokenizer(Tokenizer):
    """Reads pictures as `size` × `size` pixels in `channels` channels, in patches of `patch_size`²."""

    def __init__(self, *, size: int, patch_size: int, channels: int) -> None:
        if not 1 <= patch_size <= size <= MAX_SIZE or size % patch_size or channels not in (1, 3):
            raise UnsupportedError(
                f"The side of a picture must be a multiple of the side of a patch, at most {MAX_SIZE} "
                "pixels, in 1 or 3 channels. "
                f"Received: source.size = {size}, source.patch_size = {patch_size}, {channels} channels."
            )
        self.size, self.patch_size, self.channels = size, patch_size, channels
        side = size // patch_size
        self.grid = PatchGrid(side, side, patch_size * patch_size * channels)
        self.token_shape = (self.grid.values_per_patch,)
        fields = {"pictures": {"size": size, "patch_size": patch_size, "channels": channels}}
        self._data = json.dumps(fields).encode()

    @classmethod
    def from_settings(cls, settings: SourceSettings) -> PictureTokenizer:
        return cls(size=settings.size, patch_size=settings.patch_size, channels=settings.channels)

    @classmethod
    def from_bytes(cls, data: bytes) -> PictureTokenizer:
        """Return the tokenizer that `to_bytes` wrote. Damaged data raise a ModelFolderError."""
        try:
            fields = json.loads(data)["pictures"]
            return cls(**{name: int(fields[name]) for name in ("size", "patch_size", "channels")})
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, UnsupportedError) as error:
            raise ModelFolderError(
                f"these are not the settings of a picture tokenizer of jumok ({error!r}). The file is "
                "damaged; copy it again from its origin."
            ) from None

    @property
    def vocab_size(self) -> int:
        """Always 0, because patches are not members of a vocabulary."""
        return 0

    def normalise_spaces(self, text: str) -> str:
        return text

    def encode(self, text: str) -> Any:
        """Return the patches of a picture, an array (patch, value) of uint8. `text` is the path of the file.

        The return type is Any, because other tokenizers return a list of ids.
        """
        from jumok.pictures.patches import cut_patches  # start-up
        from jumok.pictures.reading import read_picture  # start-up

        return cut_patches(read_picture(text, size=self.size, channels=self.channels), self.patch_size)

    def encode_batch(self, texts: Iterable[str], *, threads: int = -1) -> list[Any]:
        """Return `encode` of each path."""
        del threads
        return [self.encode(text) for text in texts]

    def sample(self, text: str, strength: float, generator: Any) -> Any:
        """Return `encode(text)`, because a picture has only one segmentation."""
        del strength, generator
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        raise UnsupportedError("Patches cannot be decoded: a model reads pictures, but writes text.")

    def tokens(self, ids: Sequence[Any]) -> list[str]:
        """Return the position of each patch for display, `row,column` counted from 1."""
        columns = self.grid.columns
        return [f"{index // columns + 1},{index % columns + 1}" for index in range(len(ids))]

    def word_of_token(self, text: str, ids: Sequence[Any]) -> list[int]:
        """Return the index of each patch, because each patch counts as one word."""
        return list(range(len(ids)))

    def __reduce__(self) -> tuple[object, ...]:
        return PictureTokenizer.from_bytes, (self._data,)

    def __repr__(self) -> str:
        return f"<PictureTokenizer: {self.size} × {self.size} pixels, {len(self.grid)} patches>"
