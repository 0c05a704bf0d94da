"""The engine of live files agrees with torch on a thousand sentences and 200 changed sentences per model."""

from __future__ import annotations

import copy
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_engine import random_changes, rounded_translator

import jumok
from jumok.analysis.changes import change_from_json
from jumok.analysis.explainer import explain
from jumok.analysis.json_format import explanation_to_document
from jumok.analysis.live_file import pack_model
from jumok.inference.teacher_forcing import next_log_probs
from jumok.inference.translator import Translator
from jumok.storage.model_folder import read_card
from jumok.types import END
from support.engine_models import MODELS, sentences, translator
from support.engine_process import EngineProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.analysis.live_file import Quantization

# These tests have no mark `web`, because `make test-web` would then take half an hour longer.
pytestmark = pytest.mark.slow

MAX_LOG_PROB_ERROR = 1e-3
"""Largest difference between the log-probabilities that the engine and torch give a token."""
NUM_CHANGED_SENTENCES = 200
"""Number of sentences that are translated with random changes of attention, one to three per sentence."""
MAX_TIE_SHARE = 0.002
"""Largest share of sentences whose translations differ because two hypotheses are equally good."""


@pytest.fixture(scope="module")
def whole_demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run folder of `jumok demo`, trained for the full time of the demo.

    Eight bits are too few for a poor model, so the shorter training of `demo_run` is not enough. The model is
    trained here, unless the environment variable JUMOK_DEMO_MODEL names the model folder of such a run.
    """
    if folder := os.environ.get("JUMOK_DEMO_MODEL"):
        return Path(folder).parent
    run = tmp_path_factory.mktemp("demo") / "run"
    subprocess.run([sys.executable, "-m", "jumok", "demo", "--out", run], check=True)
    return run


def answers(engine: EngineProcess, operation: str, requests: list[dict[str, Any]]) -> Iterator[Any]:
    """Yield the answer of the engine to each request. Fail if the engine refuses a request."""
    for message in engine.ask_all(operation, requests):
        assert "answer" in message, message
        yield message["answer"]


def share_of_same_texts(texts: list[str], other_texts: list[str]) -> float:
    return sum(text == other for text, other in zip(texts, other_texts, strict=True)) / len(texts)


def assert_same_texts(
    torch_translator: Translator,
    lines: list[str],
    torch_texts: list[str],
    engine_texts: list[str],
    *,
    beam: int,
) -> None:
    """Assert that the engine translates as torch does. Both must have the rounded weights of the live file.

    Untrained models have hypotheses that are equally good in single precision. The other sentences of a batch
    decide which of these hypotheses torch chooses. In double precision, torch must choose as the engine does.
    """
    differing = [index for index, text in enumerate(torch_texts) if text != engine_texts[index]]
    assert len(differing) <= MAX_TIE_SHARE * len(lines)
    if differing:
        double_translator = Translator(
            copy.deepcopy(torch_translator.model).double(),
            torch_translator.tokenizers,
            search=torch_translator.search,
            max_source_tokens=torch_translator.max_source_tokens,
        )
        double_translator.sentences = torch_translator.sentences
        in_double_precision = double_translator.translate([lines[index] for index in differing], beam=beam)
        double_texts = [translation.text for translation in in_double_precision]
        assert [engine_texts[index] for index in differing] == double_texts


def assert_same_log_probs(torch_translator: Translator, documents: list[dict[str, Any]]) -> None:
    """Assert that torch gives every token of the engine's translations the same log-probability."""
    for document in documents:
        source, target = document["source"]["ids"], document["target"]["ids"]
        log_probs = next_log_probs(torch_translator.model, source, target)
        expected = [float(log_probs[step, token]) for step, token in enumerate([*target, END])]
        assert document["log_probs"] == pytest.approx(expected, abs=MAX_LOG_PROB_ERROR)


def assert_same_changes(engine: EngineProcess, torch_translator: Translator, lines: list[str]) -> None:
    """Assert that random changes of attention have the same effect in the engine as in Python."""
    generator = random.Random(1)
    for line in generator.choices(lines, k=NUM_CHANGED_SENTENCES):
        changes = random_changes(explanation_to_document(explain(torch_translator, line)), generator)
        expected = explain(torch_translator, line, edit=[change_from_json(change) for change in changes])
        answer = engine.ask("explain", sentence=line, changes=changes)
        assert answer["target"]["text"] == expected.text, changes
        assert answer["log_probs"] == pytest.approx(expected.log_probs.tolist(), abs=MAX_LOG_PROB_ERROR), (
            changes
        )
        assert expected.before is not None
        assert answer["before"]["log_prob_changed"] == pytest.approx(
            expected.before.log_prob_changed, abs=MAX_LOG_PROB_ERROR * len(expected.before.target.ids) + 1e-3
        )


@pytest.mark.parametrize("quantization", ["float16", "int8"])
@pytest.mark.parametrize("name", MODELS)
def test_the_engine_translates_a_thousand_sentences_as_torch_does(
    name: str, quantization: Quantization
) -> None:
    torch_translator = rounded_translator(translator(name), quantization)
    lines = sentences(1000, seed=11)
    with EngineProcess(pack_model(translator(name), MODELS[name], quantization=quantization)) as engine:
        for beam in (1, 4):
            torch_texts = [translation.text for translation in torch_translator.translate(lines, beam=beam)]
            requests = [{"sentence": line, "beam": beam} for line in lines]
            engine_texts = [answer["text"] for answer in answers(engine, "translate", requests)]
            assert_same_texts(torch_translator, lines, torch_texts, engine_texts, beam=beam)
        assert_same_log_probs(
            torch_translator, list(answers(engine, "explain", [{"sentence": line} for line in lines[:100]]))
        )


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("none")])
def test_changes_of_two_hundred_sentences_have_the_same_effect_in_the_engine_as_in_python(name: str) -> None:
    torch_translator = rounded_translator(translator(name), "float16")
    with EngineProcess(pack_model(translator(name), MODELS[name])) as engine:
        assert_same_changes(engine, torch_translator, sentences(NUM_CHANGED_SENTENCES, seed=12))


@pytest.mark.parametrize(("quantization", "min_share"), [("float16", 0.995), ("int8", 0.99)])
def test_the_demos_model_translates_unseen_sentences_as_torch_does(
    whole_demo_run: Path, quantization: Quantization, min_share: float
) -> None:
    original = jumok.load(whole_demo_run / "model", engine="torch")
    settings = read_card(whole_demo_run / "model").recipe.model
    test_set = (whole_demo_run / "corpus" / "test.en-ko.tsv").read_text(encoding="utf-8").splitlines()
    lines = [line.split("\t")[0] for line in test_set]
    assert len(lines) == 1000
    torch_translator = rounded_translator(original, quantization)
    with EngineProcess(pack_model(original, settings, quantization=quantization)) as engine:
        documents = list(answers(engine, "explain", [{"sentence": line} for line in lines]))
        texts = [document["target"]["text"] for document in documents]
        assert texts == [translation.text for translation in torch_translator.translate(lines)]
        assert_same_log_probs(torch_translator, documents)
        texts_with_original_weights = [translation.text for translation in original.translate(lines)]
        assert share_of_same_texts(texts, texts_with_original_weights) >= min_share
        if quantization == "float16":
            assert_same_changes(engine, torch_translator, lines)
