"""A minimal translation task, English to German digits, and a model that learns the task in seconds.

`support.digit_lines` has the same task as lines of files, and a model that is too small to learn the task.
"""

from __future__ import annotations

import random
from typing import Any

from jumok.data.corpora import Corpus, corpus_of_pairs
from jumok.types import Alignment, Pair

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]

# A model that learns at least the words of the task in a few hundred updates of a few milliseconds each.
TINY: dict[str, Any] = {
    "model.width": 32,
    "model.feed_forward": 64,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "text.vocab_size": 320,
    "training.batch_tokens": 256,
    "training.learning_rate": 0.01,
    "training.processes": 1,  # so that training does not measure which number is fastest
}


def digit_pairs(count: int, seed: int = 1, *, max_digits: int = 5) -> list[Pair]:
    generator = random.Random(seed)
    pairs = []
    for _ in range(count):
        digits = [generator.randrange(10) for _ in range(generator.randint(1, max_digits))]
        source, target = (" ".join(words[digit] for digit in digits) for words in (ENGLISH, GERMAN))
        gold = Alignment(frozenset((i, i) for i in range(len(digits))))
        pairs.append(Pair(source, target, gold))
    return pairs


def digit_corpus(count: int, seed: int = 1) -> Corpus:
    return corpus_of_pairs(digit_pairs(count, seed), source="en", target="de", name=f"digits-{seed}")
