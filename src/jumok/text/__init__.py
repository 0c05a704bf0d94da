"""Text as tokens and words: normalisation, the SentencePiece tokenizer, word splitting, languages."""

from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.languages import LANGUAGES, Language, find_language, language_code, language_name
from jumok.text.normalisation import normalise
from jumok.text.protocol import AnyTokenizer
from jumok.text.tokenizer import Tokenizer, TokenizerPair, load_tokenizer
from jumok.text.tokenizer_training import train_tokenizer, train_tokenizers
from jumok.text.word_mapping import NO_WORD, merge_to_words
from jumok.text.words import Span, split_words, word_spans

__all__ = [
    "LANGUAGES",
    "NO_WORD",
    "AnyTokenizer",
    "JointVocabularyTokenizer",
    "Language",
    "Span",
    "Tokenizer",
    "TokenizerPair",
    "find_language",
    "language_code",
    "language_name",
    "load_tokenizer",
    "merge_to_words",
    "normalise",
    "split_words",
    "train_tokenizer",
    "train_tokenizers",
    "word_spans",
]
