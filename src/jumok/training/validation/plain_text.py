"""Validation of a model of plain text: a language model, or an encoder trained on masked tokens."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from jumok.analysis.tokenized_sentence import TokenizedSentence
from jumok.data.hold_out import fingerprint_pairs
from jumok.evaluation.text_scores import TokenScores, perplexity
from jumok.inference.text_model import TextModel, text_batches
from jumok.storage.model_folder import ScoreRecord
from jumok.training.loop.detectors import byte_token_share, unigram_entropy
from jumok.training.validation.protocol import MAX_PAIRS, drop_too_long, evenly_spaced
from jumok.training.validation.snapshots import mean_word_map, pick_snapshot_sentence
from jumok.training.validation.token_scores import TokenValidation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.config.recipe import Recipe
    from jumok.models.model import Model
    from jumok.text.tokenizer import TokenizerPair
    from jumok.types import AttentionMap, Pair


class TextValidation(TokenValidation):
    """Plain sentences, encoded and batched once. The masked tokens are the same in every validation."""

    def __init__(self, pairs: Sequence[Pair], tokenizers: TokenizerPair, recipe: Recipe) -> None:
        self._task = recipe.model.task
        self.fingerprint = fingerprint_pairs(pairs)
        self._tokenizer = tokenizer = tokenizers.target
        sampled = evenly_spaced(pairs, MAX_PAIRS)
        encoded = list(zip(sampled, tokenizer.encode_batch([pair.target for pair in sampled]), strict=True))
        lengths = [len(ids) for _, ids in encoded]
        short = drop_too_long(encoded, lengths, recipe.training.max_sentence_tokens)
        self.num_too_long = len(encoded) - len(short)
        self.pairs, sentences = [pair for pair, _ in short], [ids for _, ids in short]
        self._num_tokens = sum(map(len, sentences))
        self._snapshot_index = pick_snapshot_sentence([len(ids) for ids in sentences])
        self._batches = text_batches(
            sentences, self._task, vocab_size=tokenizer.vocab_size, batch_tokens=recipe.training.batch_tokens
        )
        self.uniform_loss = math.log(tokenizer.vocab_size)
        self.unigram_entropy = unigram_entropy(Counter(token for ids in sentences for token in ids))
        self.byte_token_share = byte_token_share(
            [token for ids in sentences for token in tokenizer.tokens(ids)]
        )

    def _scores(self, total: TokenScores) -> dict[str, ScoreRecord]:
        counted = f"{total.tokens:,} tokens of {len(self):,} sentences"
        if self._task == "masked":
            return {"accuracy": ScoreRecord(total.accuracy, f"masked tokens guessed right, of {counted}")}
        return {
            "perplexity": ScoreRecord(perplexity(total.loss), f"per token, over {counted}, </s> included")
        }

    def attention_snapshot(self, model: Model) -> AttentionMap | None:
        """Return the self-attention of one sentence. Every validation shows the same sentence."""
        if self._snapshot_index is None:
            return None
        # `TextModel.attention` also normalises spaces, so both have the same tokens.
        text = self._tokenizer.normalise_spaces(self.pairs[self._snapshot_index].target)
        sentence = TokenizedSentence.from_ids(text, self._tokenizer.encode(text), self._tokenizer)
        [attention] = TextModel(model, self._tokenizer, task=self._task).attention(text).values()
        return mean_word_map(attention, sentence, sentence)

    def cost_in_tokens(self) -> float:
        """Return the number of training tokens that cost as much as a validation.

        A validation runs only forward passes, and a forward pass costs a third of a training step.
        """
        return self._num_tokens / 3
