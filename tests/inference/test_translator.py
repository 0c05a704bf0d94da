"""The Translator around a model that repeats its source: what goes in must come out."""

from __future__ import annotations

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.decoding import Sampling, Translation, Translator, choose_read_out
from jumok.errors import DataError, RecipeError, UnsupportedError
from jumok.models import build_model
from jumok.recipe import SearchSettings, TextSettings, TransformerSettings
from jumok.text import Vocabularies, learn_subwords, split_words
from jumok.values import END, Alignment, Batch, LogProbs, Pair, ReadOut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

WORDS = [
    "the",
    "a",
    "small",
    "old",
    "house",
    "tree",
    "river",
    "sees",
    "knows",
    "and",
    "near",
    "home",
    "Dr.",
    "3.5",
]
ENDS = [".", "?", "!", ",", ""]


def sentence(generator: random.Random, words: int) -> str:
    return " ".join(generator.choice(WORDS) for _ in range(words)) + generator.choice(
        [".", "?", "!", ",", ""]
    )


@pytest.fixture(scope="module")
def vocabularies() -> Vocabularies:
    generator = random.Random(1)
    text = [sentence(generator, generator.randint(1, 12)) for _ in range(400)]
    subwords = learn_subwords(text, TextSettings(kind="unigram"), pieces=320)
    return Vocabularies(subwords, subwords, shared=True)


@dataclass
class EchoState:
    source: Tensor  # (row, source)
    position: int


class Echo:
    """Says its source, piece by piece, and looks at what it says."""

    looks_at_source = True

    def __init__(self, pieces: int, *, certainty: float = 8.0) -> None:
        self.pieces = pieces
        self.certainty = certainty
        self.largest = 0
        self.batches: list[int] = []

    def eval(self) -> Echo:
        return self

    def begin(self, source: Batch) -> EchoState:
        self.largest = max(self.largest, source.source.numel())
        self.batches.append(len(source))
        return EchoState(source.source, 0)

    def step(self, state: EchoState, last: Tensor) -> tuple[LogProbs, EchoState]:
        scores = torch.zeros(len(last), self.pieces)
        scores[:, END] = -self.certainty  # an early end is no alternative
        here = state.source[:, min(state.position, state.source.shape[1] - 1)]
        scores.scatter_(1, here[:, None], self.certainty)
        return LogProbs(scores.log_softmax(dim=-1)), EchoState(state.source, state.position + 1)

    def reorder(self, state: EchoState, order: Tensor) -> EchoState:
        return EchoState(state.source[order], state.position)

    def attention(self, batch: Batch) -> dict[str, Tensor]:
        assert batch.target is not None
        source, target = batch.source.shape[1], batch.target.shape[1] - 1

        def eye(queries: int, keys: int) -> Tensor:
            return torch.eye(queries, keys).expand(len(batch), 2, 3, queries, keys)

        return {"encoder": eye(source, source), "decoder": eye(target, target), "cross": eye(target, source)}


def echo_translator(vocabularies: Vocabularies, **options: object) -> Translator:
    return Translator(Echo(vocabularies.target.size), vocabularies, **options)  # type: ignore[arg-type]


LINES = st.lists(st.text(alphabet="abcdefgh .,é가나다漢字\t", max_size=30), max_size=12)


@settings(max_examples=30)
@given(lines=LINES, beam=st.integers(1, 3), batch_tokens=st.sampled_from([1, 20, 2048]))
def test_n_lines_in_are_n_lines_out_in_order(
    vocabularies: Vocabularies, lines: list[str], beam: int, batch_tokens: int
) -> None:
    translations = echo_translator(vocabularies).translate(lines, beam=beam, batch_tokens=batch_tokens)
    subwords = vocabularies.source
    assert [t.source for t in translations] == lines
    expected = [subwords.decode(subwords.encode(line.strip())) for line in lines]
    assert [t.text for t in translations] == expected


def test_a_line_without_words_is_an_empty_translation(vocabularies: Vocabularies) -> None:
    translations = echo_translator(vocabularies).translate(["", "the house", " \t ", "\u3000"])
    assert [t.text for t in translations] == ["", "the house", "", ""]
    empty = translations[0]
    assert (empty.score, empty.pieces, empty.alternatives, empty.alignment) == (
        0.0,
        (),
        (),
        Alignment(frozenset()),
    )
    assert echo_translator(vocabularies).translate([]) == []


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), longest=st.integers(9, 30))
def test_a_long_line_loses_no_text(vocabularies: Vocabularies, seed: int, longest: int) -> None:
    generator = random.Random(seed)
    line = " ".join(sentence(generator, generator.randint(1, 15)) for _ in range(8))
    translator = echo_translator(vocabularies, longest_source=longest)
    [translation] = translator.translate([line], beam=1)
    assert translation.text.split() == line.split()
    assert len(translation.parts) > 1
    assert all(len(vocabularies.source.encode(source)) <= longest for source, _ in translation.parts)
    words = split_words(line)
    assert translation.alignment.sure == {(i, i) for i in range(len(words))}


def test_a_word_without_end_is_translated_in_stretches(vocabularies: Vocabularies) -> None:
    line = "house" * 300
    [translation] = echo_translator(vocabularies, longest_source=50, target_language="ja").translate([line])
    assert translation.text == line


def test_a_long_line_scores_like_its_parts(vocabularies: Vocabularies) -> None:
    translator = echo_translator(vocabularies, longest_source=12)
    lines = ["the old house sees a small tree. a river knows the small house."]
    for penalty in (0.0, 1.0):
        [whole] = translator.translate(lines, length_penalty=penalty)
        parts = translator.translate([source for source, _ in whole.parts], length_penalty=penalty)
        steps = [len(part.pieces) + 1 for part in parts]
        sums = [part.score * count**penalty for part, count in zip(parts, steps, strict=True)]
        assert whole.score == pytest.approx(sum(sums) / sum(steps) ** penalty)
        assert whole.pieces == (*parts[0].pieces, *parts[1].pieces)


def test_alternatives_are_the_others_and_differ(vocabularies: Vocabularies) -> None:
    [translation] = echo_translator(vocabularies).translate(["the old house"], beam=6, n_best=6)
    texts = [text for text, _ in translation.alternatives]
    scores = [translation.score, *(score for _, score in translation.alternatives)]
    assert translation.text == "the old house"
    assert texts
    assert len({translation.text, *texts}) == len(texts) + 1
    assert scores == sorted(scores, reverse=True)
    [single] = echo_translator(vocabularies).translate(["the old house"])
    assert single.alternatives == ()


def test_a_translation_begins_with_its_prefix(vocabularies: Vocabularies) -> None:
    lines, prefixes = ["the old house", "a tree", ""], ["a small", "", ""]
    for beam in (1, 4):
        found = echo_translator(vocabularies).translate(lines, prefix=prefixes, beam=beam)
        assert found[0].text.startswith("a small")
        assert [t.text for t in found[1:]] == ["a tree", ""]


def test_one_prefix_stands_for_all_lines(vocabularies: Vocabularies) -> None:
    lines = ["the old house", "a tree", ""]
    translator = echo_translator(vocabularies)
    expected = translator.translate(lines, prefix=["the", "the", ""])
    assert translator.translate(lines, prefix="the") == expected
    assert list(translator.stream(lines, prefix="the", look_ahead=1)) == expected


def test_every_setting_of_the_search_can_be_chosen_by_its_name(vocabularies: Vocabularies) -> None:
    line = "the old the old the old house"
    translator = echo_translator(vocabularies)
    assert translator.translate([line], no_repeat=2)[0].text != line
    assert len(translator.translate([line * 3], longest=0.1)[0].pieces) < len(line.split()) * 3
    chosen = echo_translator(vocabularies, search=SearchSettings(length_penalty=0.5)).translate([line])
    assert translator.translate([line], length_penalty=0.5) == chosen
    assert list(translator.stream([line], length_penalty=0.5)) == chosen
    assert chosen != translator.translate([line])
    with pytest.raises(UnsupportedError, match="Received: Echo, which has no `step_with_attention`"):
        translator.translate([line], coverage_penalty=0.2)
    with pytest.raises(RecipeError, match=r"n_best 2 with beam 4 and patience 0\.25"):
        translator.translate([line], n_best=2, patience_factor=0.25)


def test_settings_of_the_search_are_checked_as_those_of_a_recipe(vocabularies: Vocabularies) -> None:
    translator = echo_translator(vocabularies)
    with pytest.raises(RecipeError, match=r"search\.longest: Input should be greater than 0\. Received: 0"):
        translator.translate(["a"], longest=0)
    with pytest.raises(RecipeError, match=r'search\.bean: there is no such setting\. Did you mean "beam"\?'):
        translator.translate(["a"], bean=3)  # type: ignore[call-arg]


def test_choices_that_would_be_ignored_are_refused(vocabularies: Vocabularies) -> None:
    translator = echo_translator(vocabularies)
    with pytest.raises(UnsupportedError, match="Sampling keeps no beam, so beam and patience_factor would"):
        translator.translate(["a"], beam=2, patience_factor=2.0, sampling=Sampling())
    with pytest.raises(UnsupportedError, match="so patience_factor would be ignored"):
        translator.translate(["a"], beam=1, patience_factor=2.0)


def test_sampling_is_a_function_of_its_seed(vocabularies: Vocabularies) -> None:
    translator = Translator(Echo(vocabularies.target.size, certainty=5.0), vocabularies)  # type: ignore[arg-type]
    lines = ["the old house sees a tree"] * 4
    once, again, other = (
        [t.text for t in translator.translate(lines, sampling=Sampling(seed=seed))] for seed in (1, 1, 2)
    )
    assert once == again != other
    assert len(set(once)) > 1
    streamed = list(translator.stream(lines, sampling=Sampling(), look_ahead=2))
    assert [t.text for t in streamed[:2]] != [t.text for t in streamed[2:]]


def test_a_stream_reads_no_further_than_it_must(vocabularies: Vocabularies) -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for number in itertools.count():
            read += 1
            yield f"house {number}"

    stream = echo_translator(vocabularies).stream(lines(), look_ahead=8)
    first = list(itertools.islice(stream, 20))
    assert [t.text for t in first] == [f"house {number}" for number in range(20)]
    assert read <= 20 + 8


def test_a_stream_answers_before_it_waits_for_a_line(vocabularies: Vocabularies) -> None:
    given = [f"house {number}" for number in range(5)]
    written, answered = 2, 0  # two lines at a time are written, when those before were answered
    read = 0

    def lines() -> Iterator[str]:
        nonlocal written, read
        for line in given:
            if read == written:
                assert answered == written
                written += 2
            read += 1
            yield line

    stream = echo_translator(vocabularies).stream(lines(), ready=lambda: read < written)
    for answered, translation in enumerate(stream, 1):
        assert translation.text == given[answered - 1]
    assert answered == len(given)


def test_batches_are_bounded_and_progress_is_told(vocabularies: Vocabularies) -> None:
    echo = Echo(vocabularies.target.size)
    translator = Translator(echo, vocabularies)  # type: ignore[arg-type]
    generator = random.Random(3)
    lines = [sentence(generator, generator.randint(1, 12)) for _ in range(50)]
    told: list[tuple[int, int]] = []
    translator.translate(lines, batch_tokens=100, progress=lambda done, total: told.append((done, total)))
    assert echo.largest <= 100
    assert sum(echo.batches) == 50
    assert told[-1] == (50, 50)
    assert [done for done, _ in told] == list(itertools.accumulate(echo.batches))


def test_attention_is_labelled_by_pieces(vocabularies: Vocabularies) -> None:
    maps = echo_translator(vocabularies).attention("the house", "a tree.")
    source = (*vocabularies.source.pieces(vocabularies.source.encode("the house")), "</s>")
    target = tuple(vocabularies.target.pieces(vocabularies.target.encode("a tree.")))
    labels = {site: (attention.queries, attention.keys) for site, attention in maps.items()}
    assert labels == {
        "encoder": (source, source),
        "decoder": ((*target, "</s>"), ("<s>", *target)),
        "cross": ((*target, "</s>"), source),
    }
    for attention in maps.values():
        assert isinstance(attention.weights, numpy.ndarray)
        assert attention.weights.shape == (2, 3, len(attention.queries), len(attention.keys))
        assert attention.weights.dtype == numpy.float32
    own = echo_translator(vocabularies).attention("the house")
    assert own["cross"].queries == source


def test_words_are_aligned_and_drawn(vocabularies: Vocabularies) -> None:
    translator = echo_translator(vocabularies, read_out=ReadOut(((1, 2),)))
    text = "the old house, near a tree."
    assert str(translator.align(text, text)) == "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7"
    assert translator.align("", text).sure == frozenset()
    picture = translator.word_attention(text, text)
    assert isinstance(picture.weights, numpy.ndarray)
    assert picture.queries == tuple(split_words(text))
    assert picture.keys == (*split_words(text), "</s>")
    assert picture.weights.shape == (1, 1, 8, 9)
    assert picture.weights.sum(axis=-1) == pytest.approx(1.0)


def test_attended_pairs_choose_a_read_out(vocabularies: Vocabularies) -> None:
    translator = echo_translator(vocabularies)
    gold = Alignment(frozenset({(0, 0), (1, 1)}))
    pairs = [Pair("the house", "the house", gold), Pair("a old tree near", "a old tree near")]
    attended = translator.attended(pairs, batch_tokens=4)
    assert [pair.gold for pair in attended] == [gold, None]
    assert [list(pair.target_words)[-1] for pair in attended] == [1, 3]
    assert choose_read_out(attended) == ReadOut(((0, 0),), shift=0)


def test_a_line_break_cannot_come_out(vocabularies: Vocabularies) -> None:
    [translation] = echo_translator(vocabularies).translate(["the house\nthe tree"])
    assert "\n" not in translation.text


def test_what_is_asked_wrongly_is_refused(vocabularies: Vocabularies) -> None:
    translator = echo_translator(vocabularies)
    with pytest.raises(DataError, match=r"Write translate\(\[text\]\)"):
        translator.translate("one line")
    with pytest.raises(DataError, match="1 prefixes for 2 texts"):
        translator.translate(["a", "b"], prefix=["c"])
    with pytest.raises(RecipeError, match="n_best 5 with beam 2"):
        translator.translate(["a"], beam=2, n_best=5)
    with pytest.raises(RecipeError, match="n_best 2 with beam 1"):
        translator.translate(["a"], beam=1, n_best=2)


def test_translations_are_values() -> None:
    one, other = Translation("a", "b", -1.0), Translation("a", "b", -1.0)
    assert one == other
    assert one.alignment == Alignment(frozenset())


@pytest.fixture(scope="module")
def random_translator(vocabularies: Vocabularies) -> Translator:
    torch.manual_seed(4)
    size = vocabularies.target.size
    settings = TransformerSettings(encoder_layers=2, decoder_layers=2, width=32, feed_forward=64, heads=4)
    model = build_model(settings, source_pieces=size, target_pieces=size, shared=True)
    return Translator(model, vocabularies, search=SearchSettings(beam=3, longest=0.5))


def test_a_real_transformer_translates_alone_as_in_company(random_translator: Translator) -> None:
    generator = random.Random(5)
    lines = [sentence(generator, generator.randint(1, 9)) for _ in range(12)]
    together = random_translator.translate(lines)
    alone = [random_translator.translate([line])[0] for line in lines]
    assert [t.text for t in together] == [t.text for t in alone]
    assert [t.score for t in together] == pytest.approx([t.score for t in alone], abs=1e-5)
    assert isinstance(together[0].alignment, Alignment)


def test_a_real_transformer_shows_its_attention(random_translator: Translator) -> None:
    maps = random_translator.attention("the old house", "a tree")
    for attention in maps.values():
        assert isinstance(attention.weights, numpy.ndarray)
        assert attention.weights.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)
    words = random_translator.word_attention("the old house", "a tree")
    assert isinstance(words.weights, numpy.ndarray)
    assert words.weights.shape == (1, 1, 2, 4)
    assert words.weights.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)


def test_several_threads_may_translate_at_once(random_translator: Translator) -> None:
    generator = random.Random(6)
    lines = [[sentence(generator, generator.randint(1, 6)) for _ in range(4)] for _ in range(6)]
    expected = [random_translator.translate(part) for part in lines]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(random_translator.translate, lines)) == expected
