"""A model of plain text: it goes on with a text or guesses what is hidden in it, and shows where it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from jumok.corpus.batches import padded_batch
from jumok.corpus.masking import fixed_words, hide_pieces
from jumok.decoding.engine import like_lengths
from jumok.decoding.plan import SearchPlan
from jumok.decoding.torch_engine import BATCH_TOKENS, TorchEngine
from jumok.errors import DataError, UnsupportedError
from jumok.models import TranslationModel
from jumok.values import AttentionMap, Batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.decoding.plan import Sampling
    from jumok.models import Model
    from jumok.recipe import Task
    from jumok.text import Subwords

__all__ = ["TextModel", "text_batches"]


class TextModel:
    """A language model or an encoder alone, with its pieces. The model is put into evaluation mode."""

    def __init__(
        self, model: Model, pieces: Subwords, *, task: Task, language: str = "", longest: int = 200
    ) -> None:
        self.model = model.eval()
        self.pieces = pieces
        self.task = task
        self.language = language
        self.longest = longest

    def complete(
        self, beginnings: Sequence[str], *, sampling: Sampling | None = None, longest: int | None = None
    ) -> list[str]:
        """Each text from its beginning on: the likeliest piece at every step, or drawn where `sampling` says.

        A text has at most `longest` pieces, its beginning counted, and a beginning stays whole. One longer
        than all that the model was trained on is refused, unless `longest` says that it may be.
        """
        model = self.model
        if not isinstance(model, TranslationModel):
            raise UnsupportedError(
                "An encoder alone reads both sides of a piece, so it cannot go on with a text. "
                "Train a language model: `jumok train text.txt --model decoder-only`."
            )
        plan = SearchPlan(beam=1, extra=longest or self.longest)
        prefixes = self.pieces.encode_batch([text.strip() for text in beginnings])
        _refuse_long(prefixes, max(self.longest, longest or 0))
        nothing: list[list[int]] = [[] for _ in beginnings]
        texts: dict[int, str] = {}
        for group, found in TorchEngine(model).search(nothing, plan, prefixes=prefixes, sampling=sampling):
            for i, (best, *_) in zip(group, found, strict=True):
                texts[i] = " ".join(self.pieces.decode(best.ids).splitlines())
        return [texts[i] for i in range(len(beginnings))]

    @torch.inference_mode()
    def attention(self, text: str) -> dict[str, AttentionMap]:
        """The attention of every site while the model reads this text, none of it hidden.

        A row of "decoder" is the step that produces the piece of its label; its keys are the pieces read.
        """
        ids = self.pieces.encode(text)
        spelt = (*self.pieces.pieces(ids), "</s>")
        if self.task == "masked":
            batch, sites = padded_batch([ids]), {"encoder": (spelt, spelt)}
        else:
            batch, sites = padded_batch([[]], [ids]), {"decoder": (spelt, ("<s>", *spelt[:-1]))}
        weights = self.model.attention(batch)
        return {
            site: AttentionMap(site, weights[site][0].float().numpy(), *labels)
            for site, labels in sites.items()
        }

    def batches(self, sentences: Sequence[Sequence[int]]) -> list[Batch]:
        """The pieces of texts as the model is asked about them."""
        return text_batches(sentences, self.task, pieces=self.pieces.size)


def _refuse_long(beginnings: Sequence[Sequence[int]], most: int) -> None:
    """Attention takes the square of a text's length in memory, and the model never saw such places."""
    for line, ids in enumerate(beginnings, 1):
        if len(ids) > most:
            raise DataError(
                f"Line {line:,} is too long to go on with: it has {len(ids):,} pieces, and the model was "
                f"trained on texts of at most {most:,}. Give its last words only."
            )


def text_batches(
    sentences: Sequence[Sequence[int]], task: Task, *, pieces: int, batch_tokens: int = BATCH_TOKENS
) -> list[Batch]:
    """Plain sentences in batches of like length; where pieces are hidden, they are always the same ones."""
    return list(_text_batches(sentences, task, pieces, batch_tokens))


def _text_batches(
    sentences: Sequence[Sequence[int]], task: Task, pieces: int, batch_tokens: int
) -> Iterator[Batch]:
    nothing: list[Any] = []
    for rows in like_lengths([len(ids) + 2 for ids in sentences], batch_tokens):
        batch = padded_batch([nothing] * len(rows), [sentences[row] for row in rows])
        yield hide_pieces(batch, fixed_words(batch), pieces=pieces) if task == "masked" else batch
