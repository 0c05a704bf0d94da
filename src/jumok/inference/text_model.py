"""A model of plain text: it goes on with a text or guesses what is hidden in it, and shows where it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from jumok.corpus.batches import padded_batch
from jumok.corpus.masking import fixed_words, hide_pieces
from jumok.decoding.engine import like_lengths
from jumok.decoding.lines import read_ahead
from jumok.decoding.plan import SearchPlan
from jumok.decoding.torch_engine import BATCH_TOKENS, TorchEngine
from jumok.errors import DataError, UnsupportedError
from jumok.models import TranslationModel
from jumok.values import AttentionMap, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jumok.decoding.plan import Sampling
    from jumok.models import Model
    from jumok.recipe import Task
    from jumok.text import Subwords

__all__ = ["TextModel", "text_batches"]

# Places of the texts that are continued side by side: each keeps its keys and values in memory.
SIDE_BY_SIDE = 4 * BATCH_TOKENS


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
        return list(self.stream(beginnings, sampling=sampling, longest=longest))

    def stream(
        self,
        beginnings: Iterable[str],
        *,
        sampling: Sampling | None = None,
        longest: int | None = None,
        ready: Callable[[], bool] | None = None,
    ) -> Iterator[str]:
        """As `complete`, for any number of beginnings: those that go on side by side are in memory.

        Where one cannot be read or is refused, those before it are completed first; and so they are where
        `ready` says that the next one would have to be waited for.
        """
        model = self.model
        if not isinstance(model, TranslationModel):
            raise UnsupportedError(
                "An encoder alone reads both sides of a piece, so it cannot go on with a text. "
                "Train a language model: `jumok train text.txt --model decoder-only`."
            )
        most = longest or self.longest
        lines = self._encoded(beginnings, max(self.longest, most))
        failed: Exception | None = None
        while failed is None:
            ahead, failed = read_ahead(lines, max(1, SIDE_BY_SIDE // most), ready)
            if not ahead:
                break
            for ids in self._continued(model, ahead, sampling, most):
                yield " ".join(self.pieces.decode(ids).splitlines())
            sampling = sampling and sampling.onward()
        if failed is not None:
            raise failed

    def _encoded(self, beginnings: Iterable[str], most: int) -> Iterator[list[int]]:
        for line, text in enumerate(beginnings, 1):
            ids = self.pieces.encode(text.strip())
            _refuse_long(line, ids, most)
            yield ids

    def _continued(
        self,
        model: TranslationModel,
        beginnings: Sequence[Sequence[int]],
        sampling: Sampling | None,
        longest: int,
    ) -> list[Sequence[int]]:
        """The pieces of each text. A beginning that is as long as a text may be is one already."""
        texts = list(beginnings)
        short = [i for i, ids in enumerate(beginnings) if len(ids) < longest]
        nothing: list[list[int]] = [[] for _ in short]
        plan = SearchPlan(beam=1, extra=longest)
        prefixes = [beginnings[i] for i in short]
        engine = TorchEngine(model)
        for group, found in engine.search(nothing, plan, prefixes=prefixes, sampling=sampling):
            for row, (best, *_) in zip(group, found, strict=True):
                texts[short[row]] = best.ids
        return texts

    @torch.inference_mode()
    def attention(self, text: str) -> dict[str, AttentionMap]:
        """The attention of every site while the model reads this text, none of it hidden.

        A row of "decoder" is the step that produces the piece of its label; its keys are the pieces read.
        """
        ids = self.pieces.encode(text)
        if len(ids) > self.longest:
            raise DataError(
                f"This text is too long to be looked at: it has {len(ids):,} pieces, and the model was "
                f"trained on texts of at most {self.longest:,}. Give a shorter one."
            )
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


def _refuse_long(line: int, ids: Sequence[int], most: int) -> None:
    """Attention takes the square of a text's length in memory, and the model never saw such places."""
    if len(ids) > most:
        raise DataError(
            f"Line {line:,} is too long to go on with: it has {len(ids):,} pieces, and a text may have at "
            f"most {most:,} here. Give its last words only."
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
