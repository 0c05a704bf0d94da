"""The English-French grammar gives pairs and alignments that were written by hand, and disjoint splits."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from jumok.datasets import english_french
from jumok.datasets.english_french import PATTERNS, SPLITS, generate
from jumok.errors import DataError
from jumok.text.words import split_words

# The index of the pattern, the words to choose (see `Guided`), the English and the French sentence, and their
# alignment in Pharaoh format: `0-1` is a sure link, `0?1` is a link that is only possible.
BY_HAND = [
    (0, "I student", "I am a student.", "Je suis étudiant.", "0-0 1-1 2?2 3-2 4-3"),
    (
        0,
        "She student not",
        "She is not a student.",
        "Elle n'est pas étudiante.",
        "0-0 1-1 2?1 2-2 3?3 4-3 5-4",
    ),
    (
        0,
        "They writer not",
        "They are not writers.",
        "Ils ne sont pas écrivains.",
        "0-0 1-2 2?1 2-3 3-4 4-5",
    ),
    (1, "your day", "How was your day?", "Comment s'est passée ta journée ?", "0-0 1-1 1-2 2-3 3-4 4-5"),
    (1, "his trip", "How was his trip?", "Comment s'est passé son voyage ?", "0-0 1-1 1-2 2-3 3-4 4-5"),
    (2, "I eat-dinner", "I am going to eat dinner.", "Je vais dîner.", "0-0 1?1 2-1 3?1 4-2 5-2 6-3"),
    (
        2,
        "We write-a-letter tonight",
        "We are going to write a letter tonight.",
        "Nous allons écrire une lettre ce soir.",
        "0-0 1?1 2-1 3?1 4-2 5-3 6-4 7-5 7-6 8-7",
    ),
    (
        3,
        "agreement Area European Economic signed August 1992",
        "The agreement on the European Economic Area was signed in August 1992.",
        "L'accord sur la zone économique européenne a été signé en août 1992.",
        "0?0 1-0 2-1 3-2 6-3 5-4 4-5 7-6 7-7 8-8 9-9 10-10 11-11 12-12",
    ),
    (
        3,
        "law Union Canadian Social adopted May 2001",
        "The law on the Canadian Social Union was adopted in May 2001.",
        "La loi sur l'union sociale canadienne a été adoptée en mai 2001.",
        "0-0 1-1 2-2 3?3 6-3 5-4 4-5 7-6 7-7 8-8 9-9 10-10 11-11 12-12",
    ),
    (
        4,
        "law application perfect just",
        "The law will never be perfect, but its application should be just.",
        "La loi ne sera jamais parfaite, mais son application devrait être juste.",
        "0-0 1-1 3?2 2-3 4-3 3-4 5-5 6-6 7-7 8-8 9-9 10-10 11-11 12-12 13-13",
    ),
]


class Guided(Random):
    """Chooses the option whose English is one of the wanted words, or the first option if none is.

    The sentence is negated if "not" is wanted. If it needs a year, the year is the last wanted word.
    """

    def __init__(self, wanted: str) -> None:
        super().__init__(0)
        self.wanted = [word.replace("-", " ") for word in wanted.split()]

    def choice(self, options):
        return next((option for option in options if option[0] in self.wanted), options[0])

    def sample(self, options, k):
        by_english = {option.english: option for option in options}
        return [by_english[word] for word in self.wanted if word in by_english]

    def randint(self, a, b):
        return int(self.wanted[-1])

    def random(self):
        return 0.0 if "not" in self.wanted else 1.0


@pytest.mark.parametrize(("pattern", "wanted", "source", "target", "alignment"), BY_HAND)
def test_pairs_and_alignments_equal_those_written_by_hand(pattern, wanted, source, target, alignment):
    build, _, end = PATTERNS[pattern]
    pair = english_french._pair(*build(Guided(wanted)), end)
    assert (pair.source, pair.target) == (source, target)
    assert set(str(pair.alignment).split()) == set(alignment.split())


def test_alignments_are_indices_of_words_and_cover_the_french():
    for pair in generate("train", 500):
        source, target = split_words(pair.source), split_words(pair.target)
        assert {i for i, _ in pair.alignment.possible} <= set(range(len(source)))
        assert {j for _, j in pair.alignment.possible} == set(range(len(target)))
        assert source[-1] == target[-1]


def test_splits_have_no_sentence_in_common_and_do_not_depend_on_the_count():
    sources = {split: [pair.source for pair in generate(split, 300)] for split in SPLITS}
    for split, split_sources in sources.items():
        assert len(set(split_sources)) == 300
        assert [pair.source for pair in islice(generate(split, 10**6), 300)] == split_sources
        assert split_sources != [pair.source for pair in generate(split, 300, seed=2)]
    all_sources = {source for split_sources in sources.values() for source in split_sources}
    assert len(all_sources) == 300 * len(SPLITS)


def test_every_english_sentence_has_one_translation():
    translations: dict[str, str] = {}
    for seed in range(3):
        for pair in generate("train", 500, seed=seed):
            assert translations.setdefault(pair.source, pair.target) == pair.target


def test_an_unknown_split_and_too_many_pairs_are_refused(monkeypatch):
    with pytest.raises(DataError, match='Did you mean "train"'):
        generate("trian", 5)
    monkeypatch.setattr(english_french, "PATTERNS", PATTERNS[1:2])
    monkeypatch.setattr(english_french, "MAX_FAILED_DRAWS", 300)
    with pytest.raises(DataError, match="no more pairs for the split train after"):
        list(generate("train", 100))
