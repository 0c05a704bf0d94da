"""The Translator, mostly with a model that copies its source, so that every translation is known."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.config.recipe import SearchSettings, TextSettings, TransformerSettings
from jumok.errors import DataError, RecipeError, UnsupportedError
from jumok.inference.alignment.readout import choose_read_out
from jumok.inference.search.plan import Sampling
from jumok.inference.terminology import place_terms
from jumok.inference.text_options import TextHandling
from jumok.inference.translation import Translation
from jumok.inference.translator import ModelFacts, Translator
from jumok.models.build import build_model
from jumok.text.glossary import Glossary
from jumok.text.plain_spaces import plain_spaces
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_training import train_tokenizer
from jumok.text.words import split_words
from jumok.types import END, Alignment, Batch, LogProbs, Pair, ReadOut
from support.random_translators import small_translator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from jumok.inference.search.plan import SearchPlan

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
ENDINGS = [".", "?", "!", ",", ""]


def sentence(generator: random.Random, num_words: int) -> str:
    return " ".join(generator.choice(WORDS) for _ in range(num_words)) + generator.choice(ENDINGS)


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    generator = random.Random(1)
    text = [sentence(generator, generator.randint(1, 12)) for _ in range(400)]
    tokenizer = train_tokenizer(text, TextSettings(kind="unigram"), vocab_size=320)
    return TokenizerPair(tokenizer, tokenizer, shared=True)


@dataclass
class EchoState:
    source: Tensor  # (row, source)
    position: int


class Echo:
    """Copies its source, token by token, and attends to the token that it copies."""

    has_cross_attention = True
    device = torch.device("cpu")
    autocast = nullcontext

    def __init__(self, vocab_size: int, *, certainty: float = 8.0) -> None:
        self.vocab_size = vocab_size
        self.certainty = certainty
        self.max_batch_tokens = 0
        self.batch_sizes: list[int] = []

    def eval(self) -> Echo:
        return self

    def begin(self, batch: Batch) -> EchoState:
        self.max_batch_tokens = max(self.max_batch_tokens, batch.source.numel())
        self.batch_sizes.append(len(batch))
        return EchoState(batch.source, 0)

    def step(self, state: EchoState, last_tokens: Tensor) -> tuple[LogProbs, EchoState]:
        scores = torch.zeros(len(last_tokens), self.vocab_size)
        scores[:, END] = -self.certainty  # an early end is no alternative
        next_token = state.source[:, min(state.position, state.source.shape[1] - 1)]
        scores.scatter_(1, next_token[:, None], self.certainty)
        return LogProbs(scores.log_softmax(dim=-1)), EchoState(state.source, state.position + 1)

    def reorder(self, state: EchoState, order: Tensor) -> EchoState:
        return EchoState(state.source[order], state.position)

    def attention(self, batch: Batch) -> dict[str, Tensor]:
        assert batch.target is not None
        source, target = batch.source.shape[1], batch.target.shape[1] - 1

        def eye(queries: int, keys: int) -> Tensor:
            return torch.eye(queries, keys).expand(len(batch), 2, 3, queries, keys)

        return {"encoder": eye(source, source), "decoder": eye(target, target), "cross": eye(target, source)}


def echo_translator(tokenizers: TokenizerPair, **options: object) -> Translator:
    return Translator(Echo(tokenizers.target.vocab_size), tokenizers, **options)  # type: ignore[arg-type]


LINES = st.lists(st.text(alphabet="abcdefgh .,é가나다漢字\t", max_size=30), max_size=12)


@settings(max_examples=30)
@given(lines=LINES, beam=st.integers(1, 3), batch_tokens=st.sampled_from([1, 20, 2048]))
def test_every_line_is_translated_in_order(
    tokenizers: TokenizerPair, lines: list[str], beam: int, batch_tokens: int
) -> None:
    translations = echo_translator(tokenizers).translate(lines, beam=beam, batch_tokens=batch_tokens)
    tokenizer = tokenizers.source
    assert [t.source for t in translations] == lines
    expected = [tokenizer.decode(tokenizer.encode(line.strip())) for line in lines]
    # A tab between sentences stays a tab; inside a sentence it becomes a space.
    assert [plain_spaces(t.text) for t in translations] == [plain_spaces(line) for line in expected]


def test_a_blank_line_has_an_empty_translation(tokenizers: TokenizerPair) -> None:
    translations = echo_translator(tokenizers).translate(["", "the house", " \t ", "\u3000"])
    assert [t.text for t in translations] == ["", "the house", "", ""]
    empty = translations[0]
    assert (empty.score, empty.tokens, empty.alternatives, empty.alignment) == (
        0.0,
        (),
        (),
        Alignment(frozenset()),
    )
    assert echo_translator(tokenizers).translate([]) == []


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u2009", "\u3000", " \u00a0", "\t"])
def test_a_space_that_the_tokenizer_does_not_know_is_replaced_by_an_ordinary_space(
    tokenizers: TokenizerPair, space: str
) -> None:
    translator = echo_translator(tokenizers)
    source = f"the{space}old house. a{space}tree"
    [translation] = translator.translate([source])
    assert (translation.source, translation.text) == (source, "the old house. a tree")
    assert translation.parts == ((source, translation.text),)
    assert translation.alignment.sure == {(i, i) for i in range(6)}
    assert list(translator.attention(f"the{space}old")["encoder"].keys) == [
        *translator.attention("the old")["encoder"].keys
    ]
    assert translator.translate([f"old{space}house"], glossary=Glossary({"old house": "x"}))[0].text == "x"


def test_invisible_characters_are_ignored(tokenizers: TokenizerPair) -> None:
    lines = ["\ufeffthe ri\u00adver", "the \u200briver\u200b", "the\u2060 river", "\u200b \u00a0"]
    translator = echo_translator(tokenizers)
    texts = [translation.text for translation in translator.translate(lines)]
    assert texts[:3] == ["the river"] * 3
    assert texts[3] == "\u200b"  # nothing to translate, so it stays
    [with_term] = translator.translate(["the ri\u00adver sees"], glossary=Glossary({"river": "x"}))
    assert with_term.text == "the x sees"


def test_a_space_that_the_tokenizer_knows_is_not_replaced() -> None:
    """French has a no-break space before "!": a model trained on such text must read it unchanged."""
    lines = [f"the house\u00a0{mark} no" for mark in "!?" * 50]
    tokenizer = train_tokenizer(lines, TextSettings(), vocab_size=290)
    translator = echo_translator(TokenizerPair(tokenizer, tokenizer, shared=True))
    [translation] = translator.translate(["the\u202fhouse\u00a0!"])
    assert translation.text == "the house\u00a0!"


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), max_tokens=st.integers(9, 30))
def test_a_long_line_loses_no_text(tokenizers: TokenizerPair, seed: int, max_tokens: int) -> None:
    generator = random.Random(seed)
    line = " ".join(sentence(generator, generator.randint(1, 15)) for _ in range(8))
    translator = echo_translator(tokenizers, max_source_tokens=max_tokens)
    [translation] = translator.translate([line], beam=1)
    assert translation.text.split() == line.split()
    assert len(translation.parts) > 1
    assert all(len(tokenizers.source.encode(source)) <= max_tokens for source, _ in translation.parts)
    words = split_words(line)
    assert translation.alignment.sure == {(i, i) for i in range(len(words))}


def test_a_very_long_word_is_split(tokenizers: TokenizerPair) -> None:
    line = "house" * 300
    facts = ModelFacts(target_language="ja")  # without spaces between the parts
    [translation] = echo_translator(tokenizers, max_source_tokens=50, facts=facts).translate([line])
    assert len(translation.parts) > 1
    assert translation.text == line


def test_the_score_of_a_split_line_is_computed_from_the_scores_of_its_parts(
    tokenizers: TokenizerPair,
) -> None:
    translator = echo_translator(tokenizers, max_source_tokens=12)
    lines = ["the old house sees a small tree. a river knows the small house."]
    for penalty in (0.0, 1.0):
        [whole] = translator.translate(lines, length_penalty=penalty)
        parts = translator.translate([source for source, _ in whole.parts], length_penalty=penalty)
        steps = [len(part.tokens) + 1 for part in parts]
        sums = [part.score * count**penalty for part, count in zip(parts, steps, strict=True)]
        assert whole.score == pytest.approx(sum(sums) / sum(steps) ** penalty)
        assert whole.tokens == (*parts[0].tokens, *parts[1].tokens)


def test_alternatives_are_distinct_and_sorted(tokenizers: TokenizerPair) -> None:
    [translation] = echo_translator(tokenizers).translate(["the old house"], beam=6, n_best=6)
    texts = [text for text, _ in translation.alternatives]
    scores = [translation.score, *(score for _, score in translation.alternatives)]
    assert translation.text == "the old house"
    assert texts
    assert len({translation.text, *texts}) == len(texts) + 1
    assert scores == sorted(scores, reverse=True)
    [single] = echo_translator(tokenizers).translate(["the old house"])
    assert single.alternatives == ()


def test_a_translation_begins_with_its_prefix(tokenizers: TokenizerPair) -> None:
    lines, prefixes = ["the old house", "a tree", ""], ["a small", "", ""]
    for beam in (1, 4):
        translations = echo_translator(tokenizers).translate(lines, prefix=prefixes, beam=beam)
        assert translations[0].text.startswith("a small")
        assert [t.text for t in translations[1:]] == ["a tree", ""]


def test_a_space_at_the_end_of_a_prefix_changes_nothing(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers)
    assert translator.translate(["the old house"], prefix="a small ") == translator.translate(
        ["the old house"], prefix="a small"
    )


def test_a_score_that_is_not_finite_gives_a_note() -> None:
    """Weights may be finite and overflow in a product."""
    translator = copy.deepcopy(small_translator("transformer"))
    with torch.no_grad():
        for parameter in translator.model.parameters():
            parameter.mul_(1e30)
    [translation] = translator.translate(["the old house"])
    assert not math.isfinite(translation.score)
    [note] = translation.notes
    assert note.startswith('the translation of "the old house" has no score that is a number')
    assert json.loads(translation.as_json())["score"] is None


def test_one_prefix_applies_to_all_lines_that_are_not_empty(tokenizers: TokenizerPair) -> None:
    lines = ["the old house", "a tree", ""]
    translator = echo_translator(tokenizers)
    expected = translator.translate(lines, prefix=["the", "the", ""])
    assert expected[2].text == ""
    assert translator.translate(lines, prefix="the") == expected
    assert list(translator.stream(lines, prefix="the", look_ahead=1)) == expected


def test_every_search_setting_can_be_overridden_by_name(tokenizers: TokenizerPair) -> None:
    line = "the old the old the old house"
    translator = echo_translator(tokenizers)
    assert translator.translate([line], no_repeat_ngram_size=2)[0].text != line
    assert len(translator.translate([line * 3], max_length_ratio=0.1)[0].tokens) < len(line.split()) * 3
    expected = echo_translator(tokenizers, search=SearchSettings(length_penalty=0.5)).translate([line])
    assert translator.translate([line], length_penalty=0.5) == expected
    assert list(translator.stream([line], length_penalty=0.5)) == expected
    assert expected != translator.translate([line])
    with pytest.raises(UnsupportedError, match="Received: Echo, which has no `step_with_attention`"):
        translator.translate([line], coverage_penalty=0.2)
    with pytest.raises(RecipeError, match=r"n_best 2 with beam 4 and patience_factor 0\.25"):
        translator.translate([line], n_best=2, patience_factor=0.25)


def test_search_overrides_are_checked_like_a_recipe(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers)
    with pytest.raises(
        RecipeError, match=r"search\.max_length_ratio: Input should be greater than 0\. Received: 0"
    ):
        translator.translate(["a"], max_length_ratio=0)
    with pytest.raises(RecipeError, match=r'search\.bean: there is no such setting\. Did you mean "beam"\?'):
        translator.translate(["a"], bean=3)  # type: ignore[call-arg]


def test_overrides_that_would_be_ignored_are_refused(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers)
    with pytest.raises(UnsupportedError, match="Sampling has no beam, so beam and patience_factor would"):
        translator.translate(["a"], beam=2, patience_factor=2.0, sampling=Sampling())
    with pytest.raises(UnsupportedError, match="so patience_factor would be ignored"):
        translator.translate(["a"], beam=1, patience_factor=2.0)


def test_the_same_seed_gives_the_same_samples(tokenizers: TokenizerPair) -> None:
    translator = Translator(Echo(tokenizers.target.vocab_size, certainty=5.0), tokenizers)  # type: ignore[arg-type]
    lines = ["the old house sees a tree"] * 4
    first, repeated, other_seed = (
        [t.text for t in translator.translate(lines, sampling=Sampling(seed=seed))] for seed in (1, 1, 2)
    )
    assert first == repeated != other_seed
    assert len(set(first)) > 1


def test_successive_blocks_of_a_stream_are_sampled_differently(tokenizers: TokenizerPair) -> None:
    translator = Translator(Echo(tokenizers.target.vocab_size, certainty=5.0), tokenizers)  # type: ignore[arg-type]
    lines = ["the old house sees a tree"] * 4
    streamed = list(translator.stream(lines, sampling=Sampling(), look_ahead=2))  # blocks of one line
    assert [t.text for t in streamed[:2]] != [t.text for t in streamed[2:]]


def test_a_stream_reads_at_most_look_ahead_lines_in_advance(tokenizers: TokenizerPair) -> None:
    num_read = 0

    def lines() -> Iterator[str]:
        nonlocal num_read
        for number in itertools.count():
            num_read += 1
            yield f"house {number}"

    stream = echo_translator(tokenizers).stream(lines(), look_ahead=8)
    first = list(itertools.islice(stream, 20))
    assert [t.text for t in first] == [f"house {number}" for number in range(20)]
    assert num_read <= 20 + 8


def test_a_stream_translates_its_lines_before_it_waits_for_the_next_line(tokenizers: TokenizerPair) -> None:
    all_lines = [f"house {number}" for number in range(5)]
    num_written, num_answered = 2, 0  # the next two lines are written when all earlier lines were answered
    num_read = 0

    def lines() -> Iterator[str]:
        nonlocal num_written, num_read
        for line in all_lines:
            if num_read == num_written:
                assert num_answered == num_written
                num_written += 2
            num_read += 1
            yield line

    stream = echo_translator(tokenizers).stream(lines(), ready=lambda: num_read < num_written)
    for num_answered, translation in enumerate(stream, 1):
        assert translation.text == all_lines[num_answered - 1]
    assert num_answered == len(all_lines)


def test_batches_are_bounded_and_progress_is_reported(tokenizers: TokenizerPair) -> None:
    echo = Echo(tokenizers.target.vocab_size)
    translator = Translator(echo, tokenizers)  # type: ignore[arg-type]
    generator = random.Random(3)
    lines = [sentence(generator, generator.randint(1, 12)) for _ in range(50)]
    reported: list[tuple[int, int]] = []
    translator.translate(lines, batch_tokens=100, on_progress=lambda *counts: reported.append(counts))
    assert echo.max_batch_tokens <= 100
    assert sum(echo.batch_sizes) == 50
    assert reported[-1] == (50, 50)
    assert [done for done, _ in reported] == list(itertools.accumulate(echo.batch_sizes))


def test_attention_is_labelled_by_tokens(tokenizers: TokenizerPair) -> None:
    maps = echo_translator(tokenizers).attention("the house", "a tree.")
    source = (*tokenizers.source.tokens(tokenizers.source.encode("the house")), "</s>")
    target = tuple(tokenizers.target.tokens(tokenizers.target.encode("a tree.")))
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
    maps_of_own_translation = echo_translator(tokenizers).attention("the house")
    assert maps_of_own_translation["cross"].queries == source


def test_words_are_aligned_and_their_attention_is_labelled(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers, read_out=ReadOut(((1, 2),)))
    text = "the old house, near a tree."
    assert str(translator.align(text, text)) == "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7"
    assert translator.align("", text).sure == frozenset()
    attention = translator.word_attention(text, text)
    assert isinstance(attention.weights, numpy.ndarray)
    assert attention.queries == tuple(split_words(text))
    assert attention.keys == (*split_words(text), "</s>")
    assert attention.weights.shape == (1, 1, 8, 9)
    assert attention.weights.sum(axis=-1) == pytest.approx(1.0)


def test_a_read_out_is_chosen_from_attended_pairs(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers)
    gold = Alignment(frozenset({(0, 0), (1, 1)}))
    pairs = [Pair("the house", "the house", gold), Pair("a old tree near", "a old tree near")]
    attended = translator.attended_pairs(pairs, batch_tokens=4)
    assert [pair.gold for pair in attended] == [gold, None]
    assert [list(pair.target_words)[-1] for pair in attended] == [1, 3]
    assert choose_read_out(attended) == ReadOut(((0, 0),), shift=0)


def test_a_translation_keeps_the_line_breaks_of_its_text(tokenizers: TokenizerPair) -> None:
    texts = [" the house\n\nthe tree. a river!\n", "...", "the old house? ..."]
    translations = echo_translator(tokenizers).translate(texts)
    assert [translation.text for translation in translations] == [
        "the house\n\nthe tree. a river!",
        "...",
        "the old house? ...",
    ]


def test_invalid_arguments_are_refused(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers)
    with pytest.raises(DataError, match=r"Write translate\(\[text\]\)"):
        translator.translate("one line")
    for not_text in (None, 1, b"one"):
        with pytest.raises(DataError, match=rf"Texts are strings\. Received: {not_text!r} as text 2"):
            translator.translate(["one", not_text])  # type: ignore[list-item]
    with pytest.raises(DataError, match="1 prefixes for 2 texts"):
        translator.translate(["a", "b"], prefix=["c"])
    with pytest.raises(RecipeError, match="n_best 5 with beam 2"):
        translator.translate(["a"], beam=2, n_best=5)
    with pytest.raises(RecipeError, match="n_best 2 with beam 1"):
        translator.translate(["a"], beam=1, n_best=2)


def test_translations_are_compared_by_value() -> None:
    translation, equal = Translation("a", "b", -1.0), Translation("a", "b", -1.0)
    assert translation == equal
    assert translation.alignment == Alignment(frozenset())


@pytest.fixture(scope="module")
def random_translator(tokenizers: TokenizerPair) -> Translator:
    torch.manual_seed(4)
    size = tokenizers.target.vocab_size
    settings = TransformerSettings(encoder_layers=2, decoder_layers=2, width=32, feed_forward=64, heads=4)
    model = build_model(settings, source_vocab_size=size, target_vocab_size=size, shared=True)
    return Translator(model, tokenizers, search=SearchSettings(beam=3, max_length_ratio=0.5))


def test_a_real_transformer_translates_the_same_alone_and_in_a_batch(random_translator: Translator) -> None:
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
    blocks = [[sentence(generator, generator.randint(1, 6)) for _ in range(4)] for _ in range(6)]
    expected = [random_translator.translate(block) for block in blocks]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(random_translator.translate, blocks)) == expected


def test_the_option_sentences_decides_whether_a_text_is_split_into_sentences(
    tokenizers: TokenizerPair,
) -> None:
    translator = echo_translator(tokenizers)
    text = "the old house. A tree? A river!"
    [split] = translator.translate([text])
    assert [source for source, _ in split.parts] == ["the old house.", "A tree?", "A river!"]
    assert split.text == text
    [unsplit] = translator.translate([text], sentences="keep")
    assert unsplit.parts == ((text, text),)
    translator.sentences = "keep"
    assert translator.translate([text]) == [unsplit]
    assert list(translator.stream([text], sentences="split")) == [split]
    with pytest.raises(RecipeError, match="sentences is split or keep"):
        translator.translate([text], sentences="joined")


def test_notes_say_what_may_be_wrong_with_a_translation(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers, facts=ModelFacts(source_language="en"))
    [cut] = translator.translate(["the old house sees a small tree and knows " * 3], max_length_ratio=0.1)
    assert "was cut at" in cut.notes[0]
    [repeated] = translator.translate(["the old the old the old the old the old"], sentences="keep")
    assert repeated.notes == ()  # the source repeats itself too
    assert translator.translate(["the old house."])[0].notes == ()
    [korean] = translator.translate(["나는 간다."])
    assert (
        korean.notes[0] == '"나는 간다." is not written in the script of English, the language of the model'
    )
    [shouted] = translator.translate(["THE OLD HOUSE."])
    assert '"THE OLD HOUSE." is in capital letters' in shouted.notes[0]
    assert not any("capital" in note for note in translator.translate(["THE OLD"])[0].notes)
    [tagged] = translator.translate(["<b>the old</b> house."])
    assert any("has tags, which are translated as text" in note for note in tagged.notes)
    stuck = echo_translator(tokenizers)
    stuck.model.step = lambda state, last: repeat_first_token(stuck.model, state, last)  # type: ignore[method-assign]
    [translation] = stuck.translate(["the old house"], beam=1)
    assert "repeats itself" in translation.notes[0]


def repeat_first_token(model: Echo, state: EchoState, last_tokens: Tensor) -> tuple[LogProbs, EchoState]:
    """Produce the first token of the source again and again."""
    scores = torch.zeros(len(last_tokens), model.vocab_size)
    scores.scatter_(1, state.source[:, :1], 8.0)
    scores[:, END] = -8.0
    return LogProbs(scores.log_softmax(dim=-1)), state


def test_terms_are_placed_and_other_text_does_not_change(tokenizers: TokenizerPair) -> None:
    translator = echo_translator(tokenizers)
    terms = Glossary({"house": "hut", "river": "river"})
    texts = ["the old house. A river sees a house!", "a small tree.", "the tree near {name}"]
    [with_terms, without_terms, with_placeholder] = translator.translate(texts, glossary=terms)
    assert with_terms.text == "the old hut. A river sees a hut!"
    assert with_terms.parts == (
        ("the old house.", "the old hut."),
        ("A river sees a house!", "A river sees a hut!"),
    )
    assert with_terms.alignment.sure >= {(2, 2), (8, 8)}
    assert without_terms == translator.translate(texts)[1]
    assert with_placeholder.text == "the tree near {name}"


def test_a_sentence_that_lost_a_placeholder_and_is_translated_again_has_the_new_notes(
    tokenizers: TokenizerPair,
) -> None:
    text = "see {" + "x" * 60 + "} now"
    [cut] = echo_translator(tokenizers).translate([text], max_length_ratio=0.1, protect=False)
    assert "was cut" in cut.notes[0]
    [whole] = echo_translator(tokenizers).translate([text], max_length_ratio=0.1)
    assert (whole.text, whole.notes) == (text, ())


def test_a_sentence_that_lost_a_placeholder_is_translated_again_with_prefix_beam_and_sampling(
    tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = echo_translator(tokenizers)
    searches = []
    search = translator.engine.search

    def record_and_search(sources: Any, plan: SearchPlan, **options: Any) -> Any:
        searches.append((plan, options["sampling"]))
        return search(sources, plan, **options)

    monkeypatch.setattr(translator.engine, "search", record_and_search)
    placeholder = "{" + "x" * 60 + "}"
    text = f"see {placeholder} now"
    [translation] = translator.translate([text], prefix="the old", beam=2, max_length_ratio=0.1)
    assert translation.text.startswith("the old")
    assert placeholder in translation.text
    sampling = Sampling(top_k=1, seed=3)
    assert placeholder in translator.translate([text], sampling=sampling, max_length_ratio=0.1)[0].text
    # Each text was searched twice. With sampling, the beam of the plan is the default, 4, and is not used.
    assert [(plan.beam, used) for plan, used in searches] == [(2, None)] * 2 + [(4, sampling)] * 2


def test_alternatives_that_lost_a_placeholder_and_are_translated_again_stay_different(
    tokenizers: TokenizerPair,
) -> None:
    placeholder = "{" + "x" * 60 + "}"
    [translation] = echo_translator(tokenizers).translate(
        [f"see {placeholder} now"], n_best=3, max_length_ratio=0.1
    )
    texts = [translation.text, *(text for text, _ in translation.alternatives)]
    assert len(set(texts)) == len(texts) > 1
    assert all(placeholder in text for text in texts)


def test_alternatives_that_become_equal_when_terms_are_placed_are_merged_at_the_better_rank(
    tokenizers: TokenizerPair,
) -> None:
    source = "the old house"
    translation = Translation(
        source,
        "an old hut",
        -1.0,
        alternatives=(("the old hut", -2.0), ("a hut", -3.0), ("the old house", -4.0)),
        parts=((source, "an old hut"),),
    )
    handling = TextHandling(glossary=Glossary({"house": "hut"}))
    [placed] = place_terms([translation], handling, echo_translator(tokenizers), refuse_to_retranslate, [""])
    assert placed.alternatives == (("the old hut", -2.0), ("a hut", -3.0))


def test_white_space_at_the_ends_of_the_first_and_the_last_part_does_not_prevent_an_alignment() -> None:
    """A tokenizer may decode such white space, but the joined text has none at its ends."""
    translation = Translation(
        "One. Two.",
        "eins. zwei.",
        -1.0,
        parts=(("One.", " eins."), ("Two.", "zwei. ")),
        align=lambda source, target: Alignment(frozenset({(0, 0), (1, 1)})),
    )
    assert str(translation.alignment) == "0-0 1-1 2-2 3-3"


def test_a_term_that_another_thread_evicts_from_the_cache_is_not_missing(
    tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = echo_translator(tokenizers)
    translator.words_for_terms["house"] = ("house",)
    translate = translator.translate

    def translate_and_evict(texts: Sequence[str], **options: Any) -> list[Translation]:
        if texts == ["tree."]:  # the translation of the other term alone
            translator.words_for_terms.clear()
        return translate(texts, **options)

    monkeypatch.setattr(translator, "translate", translate_and_evict)
    terms = Glossary({"house": "hut", "tree": "bush"})
    assert translator.translate(["a house near a tree"], glossary=terms)[0].text == "a hut near a bush"
    assert set(translator.words_for_terms) == {"tree"}


def refuse_to_retranslate(sentences: Sequence[str], prefixes: Sequence[str]) -> list[Translation]:
    raise AssertionError("only a sentence that lost an address or a placeholder is translated again")
