"""Sentence pairs: readers per format, cleaning, corpus reports, the hold-out, the store on disk, batches."""

from jumok.data.alignments import parse_alignment
from jumok.data.batching import Batches, ClassBatches, class_batch, padded_batch
from jumok.data.cleaning import Cleaner, clean_pairs
from jumok.data.corpora import (
    Corpus,
    corpus_of_pairs,
    is_pair,
    open_corpora,
    open_corpus,
    open_held_out,
    open_pairs_or_text,
    open_texts,
)
from jumok.data.corpus_report import (
    CorpusReport,
    CorpusSummary,
    Example,
    FaultReport,
    SideReport,
    check_corpora,
)
from jumok.data.faults import CleaningLimits, Fault
from jumok.data.hold_out import (
    HoldOut,
    choose_hold_out,
    fingerprint_pairs,
    hold_out_from_hashes,
    sentence_key,
    source_hashes,
)
from jumok.data.masking import MaskedBatches, mask_tokens
from jumok.data.picture_corpora import (
    format_regions,
    holds_pictures,
    typical_picture,
    unreadable_pictures,
)
from jumok.data.readers import HeaderWarning, holds_pairs
from jumok.data.store import CorpusPairs, PairStore, open_store, write_store

__all__ = [
    "Batches",
    "ClassBatches",
    "Cleaner",
    "CleaningLimits",
    "Corpus",
    "CorpusPairs",
    "CorpusReport",
    "CorpusSummary",
    "Example",
    "Fault",
    "FaultReport",
    "HeaderWarning",
    "HoldOut",
    "MaskedBatches",
    "PairStore",
    "SideReport",
    "check_corpora",
    "choose_hold_out",
    "class_batch",
    "clean_pairs",
    "corpus_of_pairs",
    "fingerprint_pairs",
    "format_regions",
    "hold_out_from_hashes",
    "holds_pairs",
    "holds_pictures",
    "is_pair",
    "mask_tokens",
    "open_corpora",
    "open_corpus",
    "open_held_out",
    "open_pairs_or_text",
    "open_store",
    "open_texts",
    "padded_batch",
    "parse_alignment",
    "sentence_key",
    "source_hashes",
    "typical_picture",
    "unreadable_pictures",
    "write_store",
]
