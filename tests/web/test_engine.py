"""The JavaScript engine of live files computes the same tokens, translations and explanations as Python."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from jumok.analysis.changes import change_from_json
from jumok.analysis.explainer import ExplanationOptions, explain
from jumok.analysis.json_format import cell_to_document, explanation_to_document, layers_to_document
from jumok.analysis.live_file import pack_model, round_weights
from jumok.analysis.packing import unpack_floats, unpack_weights
from jumok.analysis.tokenized_sentence import TokenizedSentence
from jumok.config.recipe import AttentionSettings, RecurrentSettings, SearchSettings
from jumok.inference.building import build_for_tokenizers
from jumok.inference.translator import Translator
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.text.sentences import text_spans
from support.engine_models import MODELS, sentences, tokenizers, translator
from support.engine_process import EngineProcess

if TYPE_CHECKING:
    from jumok.analysis.live_file import Quantization
    from jumok.analysis.measures import Measures

pytestmark = [pytest.mark.medium, pytest.mark.web, pytest.mark.no_cover]

SENTENCE = "the old house sees a small tree near 학교."
TEXTS = [
    *sentences(20, seed=5),
    "",
    " ",
    "  two  spaces ",
    "<polite> the house",
    "x<polite> <polite>the <polite>",
    "한국어 문장입니다",
    "한국어",  # decomposed: jamo
    "é Å ﬁ",
    "a\u0301\u0323 b" + "\u0301" * 40 + "c",
    "▁ \ufdd0 \ufdd1▁",
    "emoji 👩‍👩‍👧 🇰🇷!",
    "漢字かな交じり文、テスト。",
    "tab\tline\nbreak\u2028x\x1cy\x85",
    "0123 456, “quoted” (and) — dash…",
    "\ud800 lone",
    "ไทย ภาษา",
    "the\u00a0house \u202fand\u3000the\u2009tree\u00ad,\u200b near\ufeff a river \u2060",
    "\u200bhouse \u00a0 ",
    "zzzz qqqq ЖЖЖ",
]


def rounded_translator(original: Translator, quantization: Quantization) -> Translator:
    """Return a copy of the translator, with weights rounded as in a live file."""
    model = copy.deepcopy(original.model)
    model.load_state_dict(round_weights(original.model.state_dict(), quantization))
    copied_translator = Translator(
        model,
        original.tokenizers,
        search=original.search,
        read_out=original.read_out,
        max_source_tokens=original.max_source_tokens,
        facts=original.facts,
    )
    copied_translator.sentences = original.sentences
    return copied_translator


def random_changes(document: dict[str, Any], generator: random.Random) -> list[dict[str, Any]]:
    """Return one to three changes that fit the maps of an explanation."""
    changes: list[dict[str, Any]] = []
    for _ in range(generator.randint(1, 3)):
        site = generator.choice(sorted(document["attention"]))
        layers, heads, queries, keys = document["attention"][site]["shape"]
        layer, head = (generator.choice([None, *range(count)]) for count in (layers, heads))
        query = generator.randrange(queries)
        visible = query + 1 if site == "decoder" else keys
        place = {"site": site, "layer": layer, "head": head}
        kind = generator.choice(["silence", "paint", "pin"])
        if kind == "silence":
            changes.append({"kind": kind, **place})
        elif kind == "paint":
            key, weight = (
                generator.randrange(visible),
                generator.choice([0.0, 1.0, round(generator.random(), 2)]),
            )
            changes.append({"kind": kind, **place, "query": query, "key": key, "weight": weight})
        else:
            pinned_queries = sorted({query, generator.randrange(query, queries)})
            pinned_keys = sorted(generator.sample(range(visible), min(visible, generator.randint(1, 2))))
            share = generator.choice([0.0, 1.0, 1.0, round(generator.random(), 2)])
            changes.append(
                {"kind": kind, **place, "queries": pinned_queries, "keys": pinned_keys, "weight": share}
            )
    return changes


def assert_same(actual: Any, expected: Any, where: str = "") -> None:
    """Assert that two JSON values are the same except for rounding. Messages contain `where`, a path."""
    if isinstance(expected, dict) and "codes" in expected:  # packed attention weights
        np.testing.assert_allclose(unpack_weights(actual), unpack_weights(expected), atol=2e-4, err_msg=where)
    elif isinstance(expected, dict) and "float32" in expected:  # a step of a computation
        assert (actual["name"], actual["formula"], actual["over"]) == (
            expected["name"],
            expected["formula"],
            expected["over"],
        ), where
        values = unpack_floats(expected)
        np.testing.assert_allclose(
            unpack_floats(actual), values, atol=1e-3, rtol=1e-3, err_msg=f"{where}: {expected['name']}"
        )
    elif isinstance(expected, dict):
        assert set(actual) == set(expected), where
        for key in expected:
            assert_same(actual[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), where
        for index, (actual_item, expected_item) in enumerate(zip(actual, expected, strict=True)):
            assert_same(actual_item, expected_item, f"{where}[{index}]")
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, abs=2e-3), where
    else:
        assert actual == expected, where


def assert_same_measures(actual: dict[str, Any], expected: Measures) -> None:
    assert set(actual["value_norms"]) == set(expected.value_norms)
    for site, norms in expected.value_norms.items():
        np.testing.assert_allclose(unpack_weights(actual["value_norms"][site]), norms, rtol=1e-3, atol=1e-3)
    assert (actual["erasure"] is None) == (expected.erasure is None)
    if expected.erasure is not None:
        np.testing.assert_allclose(unpack_floats(actual["erasure"]), expected.erasure, atol=2e-3)
    assert actual["gradient"] == {}  # a browser computes no gradients


def without_attention_row_numbers(document: dict[str, Any]) -> dict[str, Any]:
    """Replace each row number of the table of candidates' attention by the row itself.

    The rows may have another order in the browser's engine.
    """
    search = document["search"]
    if search is None or search["attention"] is None:
        return document
    table = unpack_weights(search["attention"])
    steps = [
        {
            **step,
            "attention_row": [
                None if row < 0 else [round(float(x), 3) for x in table[row]] for row in step["attention_row"]
            ],
        }
        for step in search["steps"]
    ]
    return {**document, "search": {**search, "steps": steps, "attention": None}}


@pytest.mark.parametrize(
    ("kind", "byte_fallback"), [("unigram", True), ("unigram", False), ("bpe", True), ("bpe", False)]
)
def test_text_is_tokenized_as_by_sentencepiece(kind: str, byte_fallback: bool) -> None:
    pair = tokenizers(kind, byte_fallback=byte_fallback)
    tokenizer = pair.source
    settings = RecurrentSettings(width=8, embedding=8, attention=AttentionSettings(kind="none"))
    model: Any = build_for_tokenizers(settings, pair)
    generator = random.Random(3)
    alphabet = "ab는집 .,<polite>éé漢 👩\u0301<0x"
    texts = [*TEXTS, *("".join(generator.choices(alphabet, k=generator.randint(1, 30))) for _ in range(100))]
    with EngineProcess(pack_model(Translator(model, pair), settings)) as engine:
        answers = engine.ask_all("explain", [{"sentence": text, "target": text} for text in texts])
    for text, message in zip(texts, answers, strict=True):
        ids = tokenizer.encode(text)
        decoded = " ".join(tokenizer.decode(ids).splitlines())
        target = TokenizedSentence.from_ids(decoded, ids, tokenizer)
        spans = text_spans(text)
        first = (text if len(spans) < 2 else text[slice(*spans[0])]).strip()
        source = TokenizedSentence.from_ids(
            first, tokenizer.encode(tokenizer.normalise_spaces(first)), tokenizer
        )
        for side, sentence in (("source", source), ("target", target)):
            fields = {
                name: list(value) if name != "text" else value for name, value in asdict(sentence).items()
            }
            assert message["answer"][side] == fields, repr(text)


# Tests of the other models have the mark `slow`, because they take too long for `make test`.
QUICK_MODELS = ("pre-norm", "bahdanau, gru")


@pytest.mark.parametrize(
    "name", [name if name in QUICK_MODELS else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
)
def test_the_explanations_the_effects_and_the_steps_are_those_of_python(name: str) -> None:
    original = rounded_translator(translator(name), "float16")
    generator = random.Random(name)
    with EngineProcess(pack_model(translator(name), MODELS[name])) as engine:
        plain = explain(original, SENTENCE)
        document = explanation_to_document(plain, four_decimals=True)
        answer = engine.ask("explain", sentence=SENTENCE)
        assert_same(without_attention_row_numbers(answer), without_attention_row_numbers(document))
        greedy = engine.ask("explain", sentence=SENTENCE, beam=1)
        expected = explain(original, SENTENCE, options=ExplanationOptions(beam=1))
        assert greedy["target"]["ids"] == list(expected.target.ids)
        if not document["attention"]:
            return
        changes = [random_changes(document, generator) for _ in range(6)]
        for several_changes in changes:
            edited = explain(
                original, SENTENCE, edit=[change_from_json(change) for change in several_changes]
            )
            changed = explanation_to_document(edited, four_decimals=True)
            answer = engine.ask("explain", sentence=SENTENCE, changes=several_changes)
            # Silenced and pinned heads can make hypotheses or words equally good. Then rounding decides.
            for field in ("search", "alignments"):
                del answer[field], changed[field]
            assert_same(answer, changed, str(several_changes))
        effects = engine.ask("rank-heads", sentence=SENTENCE, changes=changes[-1])
        measured = explanation_to_document(edited.with_effects(), four_decimals=True)
        assert_same(
            effects["effect"], {site: table["effect"] for site, table in measured["statistics"].items()}
        )
        assert_same(effects["group_effects"], measured["group_effects"])
        for site, table in edited.with_effects().statistics.items():
            np.testing.assert_allclose(
                unpack_floats(effects["token_effect"][site]), table.token_effect, atol=2e-3
            )
        for explanation, request in ((plain, {}), (edited, {"changes": changes[-1]})):
            answer = engine.ask("measures", sentence=SENTENCE, **request)
            assert_same_measures(answer, explanation.measures())
        layers = plain.with_layer_predictions().layers if plain.has_layer_predictions else ()
        assert_same(engine.ask("layers", sentence=SENTENCE)["layers"], layers_to_document(layers))
        for site, packed in document["attention"].items():
            layer, head, query, key = (generator.randrange(count) for count in packed["shape"])
            cell = {
                "site": site,
                "layer": layer,
                "head": head,
                "query": query,
                "key": min(key, query) if site == "decoder" else key,
            }
            assert_same(
                engine.ask("steps", sentence=SENTENCE, changes=[], cell=cell),
                cell_to_document(plain.steps(**cell)),
            )


def test_a_prefix_begins_the_translation_and_bad_requests_are_refused() -> None:
    original = rounded_translator(translator("pre-norm"), "int8")
    with EngineProcess(pack_model(translator("pre-norm"), MODELS["pre-norm"], quantization="int8")) as engine:
        prefix = original.tokenizers.target.encode("a river knows")
        expected = explanation_to_document(explain(original, SENTENCE, prefix=prefix), four_decimals=True)
        answer = engine.ask("explain", sentence=SENTENCE, prefix=prefix)
        assert_same(without_attention_row_numbers(answer), without_attention_row_numbers(expected))
        assert "no special tokens" in engine.refusal("explain", sentence=SENTENCE, prefix=[3])  # </s>
        assert "outside this range" in engine.refusal("explain", sentence=SENTENCE, prefix=[99999])
        assert "1 to 64" in engine.refusal("explain", sentence=SENTENCE, beam=0)
        change = {"kind": "silence", "site": "cross", "layer": 9, "head": None}
        assert "no layer 9" in engine.refusal("explain", sentence=SENTENCE, changes=[change])
        paints_future_key = {
            "kind": "paint",
            "site": "decoder",
            "layer": 0,
            "head": 0,
            "query": 0,
            "key": 1,
            "weight": 1.0,
        }
        assert "causal" in engine.refusal(
            "explain", sentence=SENTENCE, target="a river", changes=[paints_future_key]
        )


def test_each_sentence_of_a_text_is_translated_by_itself() -> None:
    name = "bahdanau, gru"
    base = rounded_translator(translator(name), "float16")
    service = ExplanationService([NamedTranslator(name, base)])
    texts = [
        "the old tree. A river knows Dr. Kim! the house",
        "1. the tree\n\n  2. a house?? Yes. so J. R. Kim sees. and &quot;",
        "집에 간다. 학교… (나는) 간다!」 漢字。かな！ end",
        "... --- !!!",
        "a. b.",
        "u.s. Tree e.g. House. So do I. Do you?",
    ]
    with EngineProcess(pack_model(translator(name), MODELS[name])) as engine:
        for text in texts:
            request = {"sentence": text, "index": 1 if len(text_spans(text)) > 1 else 0}
            expected = json.loads(service.handle("explain", json.dumps(request).encode()))
            answer = engine.ask("explain", **request)
            assert answer.get("whole_text") == expected.get("whole_text"), text
            assert answer["source"] == expected["source"]
            assert engine.ask("translate", sentence=text)["text"] == base.translate([text])[0].text
        assert "counted from 0" in engine.refusal("explain", sentence="a tree", index=1)


def test_a_sentence_that_is_too_long_is_translated_in_parts() -> None:
    name = "bahdanau, gru"
    base = rounded_translator(translator(name), "float16")
    base.max_source_tokens = 12
    service = ExplanationService([NamedTranslator(name, base)])
    texts = [
        "the old tree sees a small house, a river, and the old house near 학교 knows the tree. A river.",
        "Yes. the tree knows, 漢字、かな，交じり；文 and... the house; so e.g. the house and the home",
        "나는학교집에간다학교먹다" * 4 + "e\u0301" * 9,
    ]
    with EngineProcess(pack_model(base, MODELS[name])) as engine:
        for text in texts:
            count = len(base.segment_spans(text))
            assert count > len(text_spans(text))
            for index in (0, count - 1):
                request = {"sentence": text, "index": index}
                expected = json.loads(service.handle("explain", json.dumps(request).encode()))
                answer = engine.ask("explain", **request)
                assert answer["whole_text"] == expected["whole_text"], text
                assert answer["source"] == expected["source"]
            assert engine.ask("translate", sentence=text)["text"] == base.translate([text])[0].text


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"no_repeat_ngram_size": 1}, {"length_penalty": 0.0}, {"beam": 1}, {"patience_factor": 1.0}]
)
def test_search_settings_are_those_of_the_model(settings: dict[str, Any]) -> None:
    base = rounded_translator(translator("bahdanau, gru"), "float16")
    base.search = SearchSettings(**({"beam": 4, "max_length_ratio": 1.0} | settings))
    lines = sentences(12, seed=9)
    with EngineProcess(pack_model(base, MODELS["bahdanau, gru"])) as engine:
        answers = engine.ask_all("translate", [{"sentence": line} for line in lines])
    texts = [translation.text for translation in base.translate(lines)]
    assert [message["answer"]["text"] for message in answers] == texts
