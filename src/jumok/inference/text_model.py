"""A model of plain text: it continues a text or predicts masked tokens, and shows its attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from jumok.data.batching import padded_batch
from jumok.data.masking import mask_tokens, random_uint64_by_sentence
from jumok.errors import DataError, UnsupportedError
from jumok.inference.attention_maps import label_maps
from jumok.inference.engines.protocol import length_buckets
from jumok.inference.engines.torch_engine import BATCH_TOKENS, TorchEngine
from jumok.inference.read_ahead import read_ahead
from jumok.inference.search.plan import SearchPlan
from jumok.models.model import TranslationModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jumok.config.recipe import Task
    from jumok.inference.search.plan import Sampling
    from jumok.models.model import Model
    from jumok.text.protocol import AnyTokenizer
    from jumok.types import AttentionMap, Batch

MAX_BLOCK_TOKENS = 4 * BATCH_TOKENS
"""The maximum number of tokens of the texts that are continued together: all their keys and values are in
memory. (A single text may have more tokens.)"""


class TextModel:
    """A language model or an encoder, with its tokenizer. The model is put into evaluation mode."""

    def __init__(
        self, model: Model, tokenizer: AnyTokenizer, *, task: Task, language: str = "", max_tokens: int = 200
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.task = task
        self.language = language
        self.max_tokens = max_tokens

    def complete(
        self, prompts: Sequence[str], *, sampling: Sampling | None = None, max_tokens: int | None = None
    ) -> list[str]:
        """Return each prompt with its continuation.

        The continuation has the most probable token at every step. With `sampling`, its tokens are drawn. A
        text is continued until the model ends it, or until it has `max_tokens` tokens, including the prompt
        (None: the limit of training texts). A prompt is never cut: if it has as many tokens or more, it is
        not continued. Only a prompt longer than both `max_tokens` and the limit of training texts raises an
        error.
        """
        return list(self.stream(prompts, sampling=sampling, max_tokens=max_tokens))

    def stream(
        self,
        prompts: Iterable[str],
        *,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        ready: Callable[[], bool] | None = None,
    ) -> Iterator[str]:
        """Do the same as `complete` for any number of prompts. Only one block of prompts is in memory.

        If a prompt cannot be read or is too long, the prompts before it are completed before the error is
        raised. If `ready` says that the next prompt cannot be read without waiting, the prompts before it are
        completed immediately.
        """
        model = self.model
        if not isinstance(model, TranslationModel):
            raise UnsupportedError(
                "An encoder attends to both sides of a token, so it cannot continue a text. "
                "Train a language model: `jumok train text.txt --model decoder-only`."
            )
        limit = max_tokens or self.max_tokens
        encoded = self._encode(prompts, max(self.max_tokens, limit))
        read_error: Exception | None = None
        while read_error is None:
            block, read_error = read_ahead(encoded, max(1, MAX_BLOCK_TOKENS // limit), ready)
            if not block:
                break
            for ids in self._continue(model, block, sampling, limit):
                yield " ".join(self.tokenizer.decode(ids).splitlines())
            sampling = sampling and sampling.with_next_seed()
        if read_error is not None:
            raise read_error

    def _encode(self, prompts: Iterable[str], max_tokens: int) -> Iterator[list[int]]:
        for line, text in enumerate(prompts, 1):
            ids = self.tokenizer.encode(self.tokenizer.normalise_spaces(text.strip()))
            _check_prompt_length(line, ids, max_tokens)
            yield ids

    def _continue(
        self,
        model: TranslationModel,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling | None,
        max_tokens: int,
    ) -> list[Sequence[int]]:
        """Return the tokens of each text. A prompt of `max_tokens` tokens or more is not continued."""
        texts = list(prompts)
        indices = [i for i, ids in enumerate(prompts) if len(ids) < max_tokens]
        no_sources: list[list[int]] = [[] for _ in indices]
        plan = SearchPlan(beam=1, extra_tokens=max_tokens)
        prefixes = [prompts[i] for i in indices]
        engine = TorchEngine(model)
        for group, hypotheses in engine.search(no_sources, plan, prefixes=prefixes, sampling=sampling):
            for row, (best, *_) in zip(group, hypotheses, strict=True):
                texts[indices[row]] = best.ids
        return texts

    @torch.inference_mode()
    def attention(self, text: str) -> dict[str, AttentionMap]:
        """Return the attention map of the model's only site for this text. No token is masked.

        An encoder has the site "encoder", a language model the site "decoder". A row of "decoder" is the step
        that produces the token of its label. Its keys are the tokens that this step has read.
        """
        ids = self.tokenizer.encode(self.tokenizer.normalise_spaces(text))
        if len(ids) > self.max_tokens:
            raise DataError(
                f"This text is too long for its attention to be shown: it has {len(ids):,} tokens, and the "
                f"model was trained on texts of at most {self.max_tokens:,}. Give a shorter text."
            )
        if self.task == "masked":
            site, batch = "encoder", padded_batch([ids])
        else:
            site, batch = "decoder", padded_batch([[]], [ids])
        weights = self.model.attention(batch)[site][0]
        tokens = self.tokenizer.tokens(ids)
        return label_maps({site: weights.float().cpu().numpy()}, tokens, tokens)

    def batches(self, sentences: Sequence[Sequence[int]]) -> list[Batch]:
        """Return batches of these sentences, given as token ids, for the model's task."""
        return text_batches(sentences, self.task, vocab_size=self.tokenizer.vocab_size)


def _check_prompt_length(line: int, ids: Sequence[int], max_tokens: int) -> None:
    """Raise if a prompt is too long, because the memory for attention is quadratic in its length."""
    if len(ids) > max_tokens:
        raise DataError(
            f"Line {line:,} is too long to be continued: it has {len(ids):,} tokens, and a text may have at "
            f"most {max_tokens:,} here. Give its last words only."
        )


def text_batches(
    sentences: Sequence[Sequence[int]], task: Task, *, vocab_size: int, batch_tokens: int = BATCH_TOKENS
) -> list[Batch]:
    """Return sentences in batches of similar length.

    For the task "masked", tokens are masked: the same tokens in every call.
    """
    return list(_text_batches(sentences, task, vocab_size, batch_tokens))


def _text_batches(
    sentences: Sequence[Sequence[int]], task: Task, vocab_size: int, batch_tokens: int
) -> Iterator[Batch]:
    no_source: list[Any] = []
    lengths = [len(ids) + 2 for ids in sentences]  # with <s> and </s>
    for rows in length_buckets(lengths, batch_tokens):
        batch = padded_batch([no_source] * len(rows), [sentences[row] for row in rows])
        if task == "masked":
            batch = mask_tokens(batch, random_uint64_by_sentence(batch), vocab_size=vocab_size)
        yield batch
