"""Imports of stored models of transformers and Marian give the numbers that these toolkits computed.

`foreign_toolkits.py` made the models (`make … --size tiny`) and the numbers (`answer … --lines 20`). The
tests do not need the toolkits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import jumok
from jumok.errors import DataError, RecipeError
from jumok.interop.conversion import ImportChoices
from jumok.interop.importing import import_model
from jumok.storage.model_folder import read_stored_model
from jumok.types import UNKNOWN
from support.imported import check_against_transformers, largest_score_difference, load_imported, logits

STORED = Path(__file__).parent / "stored"
HUGGING_FACE, MARIAN = ("classic", "tc-big"), ("marian-trained", "marian-built-in")


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((STORED / "answers.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_a_hugging_face_model_gives_the_numbers_of_transformers(
    name: str, answers: dict[str, Any], tmp_path: Path
) -> None:
    check_against_transformers(load_imported(STORED / f"{name}.zip", tmp_path / "model"), answers[name])


@pytest.mark.parametrize("name", MARIAN)
def test_a_marian_model_gives_the_scores_of_marian_only_with_the_positions_of_marian(
    name: str, answers: dict[str, Any], tmp_path: Path
) -> None:
    tokenized = name == "marian-trained"
    translator = load_imported(STORED / f"{name}.zip", tmp_path / "model")
    assert largest_score_difference(translator, answers[name], tokenized=tokenized) < 1e-4
    other = load_imported(STORED / f"{name}.zip", tmp_path / "other", positions="sinusoidal")
    assert largest_score_difference(other, answers[name], tokenized=tokenized) > 1e-3


def test_a_model_stored_in_both_formats_gives_the_same_logits_with_the_same_positions(tmp_path: Path) -> None:
    hugging_face = load_imported(STORED / "classic.zip", tmp_path / "a", positions="marian")
    marian = load_imported(STORED / "marian.zip", tmp_path / "b")
    pair = ("I go home.", "나는 집에 간다.")
    assert torch.equal(logits(hugging_face, *pair), logits(marian, *pair))
    stored = [read_stored_model(tmp_path / name).card for name in "ab"]
    assert [card.facts["licence"] for card in stored] == ["cc-by-4.0", "cc-by-4.0"]
    assert not list(tmp_path.rglob("RAN")), "preprocess.sh was run"


def test_a_target_language_is_one_token_at_the_beginning(tmp_path: Path) -> None:
    source = load_imported(STORED / "classic.zip", tmp_path / "model", code="ko").tokenizers.source
    with_code = source.encode(">>ja<< I go home.")
    assert source.tokens(with_code)[0] == ">>ja<<"
    assert source.encode("I go home.")[1:] == with_code[1:]
    assert source.tokens(source.encode("I go home."))[0] == ">>ko<<"
    assert source.word_of_token("I go home.", source.encode("I go home."))[0] == -1
    assert ">>ko<<" not in source.tokens(source.encode("I >>ko<< go home."))[1:]
    with pytest.raises(DataError, match=r">>kk<<.*Did you mean.*>>ko<< >>ja<<"):
        source.encode(">>kk<< I go home.")
    with pytest.raises(jumok.ModelFolderError, match=">>de<<"):
        load_imported(STORED / "classic.zip", tmp_path / "other", code="de")
    with pytest.raises(RecipeError, match="marian"):
        import_model(STORED / "classic.zip", tmp_path / "other", ImportChoices(positions="marien"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_text_with_unknown_characters_is_translated_without_an_error(tmp_path: Path) -> None:
    translator = load_imported(STORED / "classic.zip", tmp_path / "model")
    assert UNKNOWN in translator.tokenizers.source.encode("—–|●" * 50)
    texts = ["—–|●" * 50, "\ud800", "", "\u200b", "</s><pad><s>"]
    assert len(translator.translate(texts, beam=1)) == len(texts)
