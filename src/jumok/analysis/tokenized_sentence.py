"""A sentence with its tokens and words, and attention maps between words instead of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.inference.attention_maps import BEGIN_LABEL, END_LABEL
from jumok.text.word_mapping import NO_WORD, merge_to_words
from jumok.text.words import split_words
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.text.protocol import AnyTokenizer


@dataclass(frozen=True, slots=True)
class TokenizedSentence:
    """A sentence as text, as tokens without special tokens, and as words.

    A picture has its patches as tokens and as words.
    """

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    words: tuple[str, ...]
    word_of_token: tuple[int, ...]  # −1 for a token that belongs to no word

    @classmethod
    def from_ids(cls, text: str, ids: Sequence[int], tokenizer: AnyTokenizer) -> TokenizedSentence:
        tokens = tokenizer.tokens(ids)
        word_of_token = tokenizer.word_of_token(text, ids)
        return cls(text, tuple(ids), tuple(tokens), tuple(split_words(text)), tuple(word_of_token))

    @classmethod
    def from_patches(cls, name: str, labels: Sequence[str]) -> TokenizedSentence:
        """Return a picture as a sentence without ids: the label of each patch is a token and a word.

        `name` is the text that stands for the picture, such as its file name.
        """
        return cls(name, (), tuple(labels), tuple(labels), tuple(range(len(labels))))

    def tokens_of(self, word: int) -> tuple[int, ...]:
        """Return the positions of a word's tokens."""
        return tuple(position for position, index in enumerate(self.word_of_token) if index == word)


def word_map(
    attention: AttentionMap, source: TokenizedSentence, target: TokenizedSentence, *, picture: bool = False
) -> AttentionMap:
    """Return a map between words, made from a map between tokens.

    The columns of a word's tokens are summed, and the rows of a word's tokens are averaged, so rows keep
    their sum. Special tokens count as words. Tokens without a word come last. The patches of a picture are
    its words.
    """
    # Each group is the word index of each token, and the labels of the words.
    source_group = _group_by_word(source, starts_with_begin=False)
    if picture:
        source_group = [*source.word_of_token], source.words
    in_encoder, in_decoder = attention.site == "encoder", attention.site == "decoder"
    queries, query_labels = source_group if in_encoder else _group_by_word(target, starts_with_begin=False)
    keys, key_labels = _group_by_word(target, starts_with_begin=True) if in_decoder else source_group
    weights = merge_to_words(
        attention.weights,
        queries,
        keys,
        num_query_words=max(queries) + 1,
        num_key_words=max(keys) + 1,
    )
    return AttentionMap(attention.site, weights, query_labels, key_labels, attention.facts)


def _group_by_word(
    sentence: TokenizedSentence, *, starts_with_begin: bool
) -> tuple[list[int], tuple[str, ...]]:
    """Return the word index of each token, and the labels of the rows or columns of the merged map.

    A special token is added as a word: `<s>` before all words, or `</s>` after all words.
    """
    tokens_without_word = tuple(
        token for token, word in zip(sentence.tokens, sentence.word_of_token, strict=True) if word == NO_WORD
    )
    if starts_with_begin:
        words = [0, *(NO_WORD if word == NO_WORD else word + 1 for word in sentence.word_of_token)]
        return words, (BEGIN_LABEL, *sentence.words, *tokens_without_word)
    return [*sentence.word_of_token, len(sentence.words)], (*sentence.words, END_LABEL, *tokens_without_word)
