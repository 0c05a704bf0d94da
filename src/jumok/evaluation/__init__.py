"""How good is it? BLEU, chrF, TER, alignment error, and whether a difference is chance."""

from jumok.corpus.symmetrise import symmetrise
from jumok.evaluation.alignment import AlignmentScores, read_alignments, score_alignments
from jumok.evaluation.bootstrap import Comparison, compare
from jumok.evaluation.eight_bits import int8_costs
from jumok.evaluation.scores import Scores, score
from jumok.evaluation.shortlists import ShortlistCosts, shortlist_costs
from jumok.evaluation.texts import PieceScores, TextScores, evaluate_text, perplexity, score_batch
from jumok.evaluation.translators import Evaluation, align_and_score, evaluate_translator

__all__ = [
    "AlignmentScores",
    "Comparison",
    "Evaluation",
    "PieceScores",
    "Scores",
    "ShortlistCosts",
    "TextScores",
    "align_and_score",
    "compare",
    "evaluate_text",
    "evaluate_translator",
    "int8_costs",
    "perplexity",
    "read_alignments",
    "score",
    "score_alignments",
    "score_batch",
    "shortlist_costs",
    "symmetrise",
]
