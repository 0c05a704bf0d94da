"""Evaluation: BLEU, chrF, TER, perplexity, accuracy, alignment error, pointing, and significance."""

from jumok.evaluation.alignment_error import AlignmentScores, read_alignments, score_alignments
from jumok.evaluation.bootstrap import Comparison, Resampling, compare
from jumok.evaluation.class_scores import ClassScores, evaluate_classifier
from jumok.evaluation.int8_cost import measure_int8_cost
from jumok.evaluation.pair_scores import PairScore, check_directions, score_pairs
from jumok.evaluation.pointing import PointingScores, score_pointing
from jumok.evaluation.scores import Scores, score
from jumok.evaluation.shortlist_cost import ShortlistCost, measure_shortlist_cost
from jumok.evaluation.text_scores import TextScores, TokenScores, evaluate_text, perplexity, score_batch
from jumok.evaluation.translator_scores import (
    Evaluation,
    align_and_score,
    evaluate_translator,
    looks_swapped,
)

__all__ = [
    "AlignmentScores",
    "ClassScores",
    "Comparison",
    "Evaluation",
    "PairScore",
    "PointingScores",
    "Resampling",
    "Scores",
    "ShortlistCost",
    "TextScores",
    "TokenScores",
    "align_and_score",
    "check_directions",
    "compare",
    "evaluate_classifier",
    "evaluate_text",
    "evaluate_translator",
    "looks_swapped",
    "measure_int8_cost",
    "measure_shortlist_cost",
    "perplexity",
    "read_alignments",
    "score",
    "score_alignments",
    "score_batch",
    "score_pairs",
    "score_pointing",
]
