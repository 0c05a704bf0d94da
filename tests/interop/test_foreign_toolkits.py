"""The full comparison with transformers, CTranslate2, Marian and Argos, which run in a separate environment.

    JUMOK_TOOLKITS=…/bin/python make test-all ARGS=tests/interop/test_foreign_toolkits.py

The environment has torch, transformers, sentencepiece, numpy, ctranslate2 and pymarian. The last test also
needs argostranslate, installed without its dependencies. The test replaces the sentence splitter of
argostranslate.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import jumok
from jumok.datasets.english_korean import generate
from jumok.interop.exporting import export_model
from support.imported import (
    check_against_transformers,
    largest_score_difference,
    learned_positions_model,
    load_imported,
    logits,
    search,
    token_ids,
)

PYTHON = os.environ.get("JUMOK_TOOLKITS", "")
PROGRAM = Path(__file__).parent / "foreign_toolkits.py"
MODELS = Path(__file__).parent.parent / "stored" / "models"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON, reason="JUMOK_TOOLKITS does not name a Python with transformers and pymarian"
    ),
]


def run_toolkits(*arguments: str | Path) -> str:
    """Run foreign_toolkits.py in the environment of the toolkits, and return its output."""
    process = subprocess.run([PYTHON, PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    rows = [f"{pair.source}\t{pair.target}" for pair in generate("train", 4000)]
    path.write_text("\n".join(["en\tko", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def models(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("foreign") / "models"
    run_toolkits("make", folder, pairs)
    return folder, json.loads(run_toolkits("answer", folder, pairs))


@pytest.mark.parametrize("name", ["classic", "tc-big"])
def test_tokens_logits_and_translations_are_those_of_transformers(
    name: str, models: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, answers = models
    check_against_transformers(load_imported(folder / name, tmp_path / "model"), answers[name])
    assert len(answers[name]["texts"]) > 900  # 900 lines and `ODD_TEXTS`
    assert len(answers[name]["greedy"]) == 40


@pytest.mark.parametrize("name", ["marian-trained", "marian-built-in"])
def test_scores_are_those_of_marian(name: str, models: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, answers = models
    translator = load_imported(folder / name, tmp_path / "model")
    assert largest_score_difference(translator, answers[name], tokenized=name == "marian-trained") < 1e-4


@pytest.mark.parametrize("name", ["own", "imported", "learned"])
def test_transformers_and_ctranslate2_compute_the_same_with_an_export(
    name: str, models: tuple[Path, dict[str, Any]], pairs: Path, tmp_path: Path
) -> None:
    folder, test_pairs = MODELS / "transformer", MODELS.parent / "pairs.en-ko.tsv"
    if name == "imported":
        folder, test_pairs = tmp_path / "model", pairs
        load_imported(models[0] / "classic", folder)
    if name == "learned":
        folder = learned_positions_model(tmp_path / "model")
    export_model(folder, tmp_path / "out", "huggingface")
    answers = json.loads(run_toolkits("run", tmp_path / "out", test_pairs, "--lines", "40"))
    translator = jumok.load(folder, engine="torch")
    columns = token_ids(translator, answers["columns"])
    for source, target, expected in answers["logits"]:
        computed = logits(translator, source, target)[:, columns]
        assert abs(computed.numpy() - expected).max() < 1e-5
    texts = answers["texts"][:40]
    tokenizer = translator.tokenizers.source
    assert [tokenizer.tokens(ids) for ids in tokenizer.encode_batch(texts)] == answers["tokens"][:40]
    greedy = search(translator, texts, beam=1)
    assert greedy == answers["greedy"]
    assert greedy == answers.get("converted", greedy)


ARGOS = """
import sys, types
from pathlib import Path
for name in ("stanza", "minisbd", "spacy"):  # sentence splitters, replaced below
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].SBDetect = None
    sys.modules[name].models = types.SimpleNamespace()
import argostranslate.package as package, argostranslate.translate as translate
class Whole:
    def __init__(self, package): pass
    def split_sentences(self, text): return [text]
translate.MiniSBDSentencizer = Whole
package.install_from_path(Path(sys.argv[1]))
[installed] = package.get_installed_packages()
languages = translate.Language("en", "English"), translate.Language("ko", "Korean")
translation = translate.PackageTranslation(*languages, installed)
print(translation.hypotheses(sys.argv[2], 1)[0].value)
"""


def test_argos_installs_and_translates_an_export(tmp_path: Path) -> None:
    out = tmp_path / "translate-en_ko.argosmodel"
    export_model(MODELS / "transformer", out, "argos")
    text = "six three one seven zero."
    folders = {"ARGOS_PACKAGES_DIR": str(tmp_path / "packages"), "XDG_DATA_HOME": str(tmp_path / "data")}
    process = subprocess.run(
        [PYTHON, "-c", ARGOS, out, text],
        env={**os.environ, **folders, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named 'argostranslate'" in process.stderr:
        pytest.skip("argostranslate is not installed in the environment of JUMOK_TOOLKITS")
    assert process.returncode == 0, process.stderr[-2000:]
    expected = jumok.load(MODELS / "transformer", engine="torch").translate([text], beam=4)[0].text
    assert process.stdout.strip() == expected
