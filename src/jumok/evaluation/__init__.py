"""How good is it? BLEU, chrF, TER, alignment error, and whether a difference is chance."""

from jumok.corpus.symmetrise import symmetrise
from jumok.evaluation.alignment import AlignmentScores, read_alignments, score_alignments
from jumok.evaluation.bootstrap import Comparison, compare
from jumok.evaluation.eight_bits import int8_costs
from jumok.evaluation.scores import Scores, score
from jumok.evaluation.translators import Evaluation, evaluate_translator

__all__ = [
    "AlignmentScores",
    "Comparison",
    "Evaluation",
    "Scores",
    "compare",
    "evaluate_translator",
    "int8_costs",
    "read_alignments",
    "score",
    "score_alignments",
    "symmetrise",
]
