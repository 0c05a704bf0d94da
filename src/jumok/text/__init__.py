"""Text as pieces: normalising, SentencePiece subwords, and words for people."""

from jumok.text.learning import learn_subwords, learn_vocabularies
from jumok.text.normalising import normalise
from jumok.text.piece_words import NO_WORD, merge_to_words
from jumok.text.subwords import Subwords, Vocabularies, load_subwords
from jumok.text.words import Span, split_words, word_spans

__all__ = [
    "NO_WORD",
    "Span",
    "Subwords",
    "Vocabularies",
    "learn_subwords",
    "learn_vocabularies",
    "load_subwords",
    "merge_to_words",
    "normalise",
    "split_words",
    "word_spans",
]
