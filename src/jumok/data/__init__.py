"""Sentence pairs: readers by format, the check-up, the hold-out, the on-disk store and batches."""

from jumok.corpus.alignments import parse_alignment
from jumok.corpus.batches import Batches, padded_batch
from jumok.corpus.checkup import CheckUp, CorpusSize, Example, FaultReport, SideReport, check_up
from jumok.corpus.clean import Cleaner, clean_pairs
from jumok.corpus.corpora import (
    Corpus,
    HeaderWarning,
    corpus_of_pairs,
    open_corpora,
    open_corpus,
    open_pairs_or_text,
    open_texts,
)
from jumok.corpus.faults import Fault, Limits
from jumok.corpus.languages import LANGUAGES, Language, find_language, language_code, language_name
from jumok.corpus.masking import MaskedBatches, hide_pieces
from jumok.corpus.split import HoldOut, choose_hold_out, hold_out_of, sentence_key, source_hashes
from jumok.corpus.store import PairStore, Part, open_store, write_store

__all__ = [
    "LANGUAGES",
    "Batches",
    "CheckUp",
    "Cleaner",
    "Corpus",
    "CorpusSize",
    "Example",
    "Fault",
    "FaultReport",
    "HeaderWarning",
    "HoldOut",
    "Language",
    "Limits",
    "MaskedBatches",
    "PairStore",
    "Part",
    "SideReport",
    "check_up",
    "choose_hold_out",
    "clean_pairs",
    "corpus_of_pairs",
    "find_language",
    "hide_pieces",
    "hold_out_of",
    "language_code",
    "language_name",
    "open_corpora",
    "open_corpus",
    "open_pairs_or_text",
    "open_store",
    "open_texts",
    "padded_batch",
    "parse_alignment",
    "sentence_key",
    "source_hashes",
    "write_store",
]
