"""From a model to translations: search, the Translator, and word alignments read from attention."""

from jumok.decoding.beam_search import beam
from jumok.decoding.forced import force
from jumok.decoding.load import load
from jumok.decoding.plan import Listener, Sampling, SearchChoices, SearchPlan, SearchStep
from jumok.decoding.readout import AttendedPair, choose_read_out, read_alignment
from jumok.decoding.stepper import AttendingStepper, Stepper
from jumok.decoding.translation import Translation
from jumok.decoding.translator import Translator
from jumok.decoding.walk import greedy, sample

__all__ = [
    "AttendedPair",
    "AttendingStepper",
    "Listener",
    "Sampling",
    "SearchChoices",
    "SearchPlan",
    "SearchStep",
    "Stepper",
    "Translation",
    "Translator",
    "beam",
    "choose_read_out",
    "force",
    "greedy",
    "load",
    "read_alignment",
    "sample",
]
