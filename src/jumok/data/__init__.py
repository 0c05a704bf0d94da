"""Sentence pairs: readers per format, cleaning, corpus reports, the hold-out, the store on disk, batches.

Names are imported on first use: a reader of one format needs neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULE = {
    "Batches": "batching",
    "ClassBatches": "batching",
    "Cleaner": "cleaning",
    "CleaningLimits": "faults",
    "Corpus": "corpora",
    "CorpusPairs": "store",
    "CorpusReport": "corpus_report",
    "CorpusSummary": "corpus_report",
    "Example": "corpus_report",
    "Fault": "faults",
    "FaultReport": "corpus_report",
    "HeaderWarning": "readers",
    "HoldOut": "hold_out",
    "MaskedBatches": "masking",
    "PairStore": "store",
    "SideReport": "corpus_report",
    "check_corpora": "corpus_report",
    "choose_hold_out": "hold_out",
    "class_batch": "batching",
    "clean_pairs": "cleaning",
    "corpus_of_pairs": "corpora",
    "fingerprint_pairs": "hold_out",
    "format_regions": "picture_corpora",
    "hold_out_from_hashes": "hold_out",
    "holds_pairs": "readers",
    "holds_pictures": "picture_corpora",
    "is_pair": "corpora",
    "mask_tokens": "masking",
    "open_corpora": "corpora",
    "open_corpus": "corpora",
    "open_held_out": "corpora",
    "open_pairs_or_text": "corpora",
    "open_store": "store",
    "open_texts": "corpora",
    "padded_batch": "batching",
    "parse_alignment": "alignments",
    "sentence_key": "hold_out",
    "source_hashes": "hold_out",
    "typical_picture": "picture_corpora",
    "unreadable_pictures": "picture_corpora",
    "write_store": "store",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'jumok.data' has no attribute {name!r}")
    return getattr(importlib.import_module(f"jumok.data.{_MODULE[name]}"), name)
