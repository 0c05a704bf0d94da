"""Scores equal sacreBLEU's; its options follow the target language."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sacrebleu import corpus_bleu, corpus_chrf, corpus_ter

from jumok.errors import DataError, RecipeError
from jumok.evaluation import scores
from jumok.evaluation.scores import score

if TYPE_CHECKING:
    from pathlib import Path


def test_scores_equal_the_scores_of_sacrebleu(baseline: list[str], references: list[str]) -> None:
    result = score(baseline, references)
    assert result.bleu == pytest.approx(corpus_bleu(baseline, [references]).score)
    assert result.chrf == pytest.approx(corpus_chrf(baseline, [references]).score)
    assert result.ter == pytest.approx(corpus_ter(baseline, [references], case_sensitive=True).score)
    assert result.sentences == len(references)


def test_scores_equal_the_output_of_the_sacrebleu_command(
    baseline: list[str], references: list[str], tmp_path: Path
) -> None:
    paths = []
    for name, lines in (("hypotheses", baseline), ("references", references)):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        paths.append(str(path))
    # -w 8: with eight decimals
    command = [sys.executable, "-m", "sacrebleu", paths[1], "-i", paths[0], "-m", "bleu", "chrf", "-w", "8"]
    printed = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    result = score(baseline, references, metrics=("bleu", "chrf"))
    assert [row["score"] for row in printed] == pytest.approx([result.bleu, result.chrf])
    assert [row["signature"] for row in printed] == [result.bleu_signature, result.chrf_signature]


def test_perfect_translations_have_perfect_scores(references: list[str]) -> None:
    result = score(references, references)
    assert (result.bleu, result.chrf, result.ter) == pytest.approx((100, 100, 0))


def test_as_dict_contains_the_requested_metrics(baseline: list[str], references: list[str]) -> None:
    keys = ["bleu", "bleu_signature", "chrf", "chrf_signature", "ter", "ter_signature", "sentences"]
    assert list(score(baseline, references).as_dict()) == keys
    chrf_only = score(baseline, references, metrics=("chrf",)).as_dict()
    assert list(chrf_only) == ["chrf", "chrf_signature", "sentences"]
    json.dumps(chrf_only, allow_nan=False)


def test_scores_are_case_sensitive_by_default() -> None:
    hypotheses, references = ["THE DOG SLEEPS UNDER A TREE ."], ["the dog sleeps under a tree ."]
    cased = score(hypotheses, references)
    assert cased.bleu < 50
    assert cased.ter > 50
    lowercased = score(hypotheses, references, lowercase=True)
    assert (lowercased.bleu, lowercased.chrf, lowercased.ter) == pytest.approx((100, 100, 0))
    assert "case:lc" in lowercased.bleu_signature
    assert "case:mixed" in cased.ter_signature


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        ("", "13a"),
        ("en", "13a"),
        ("zh", "zh"),
        *((code, "zh") for code in ("zho_Hans", "lzh", "wuu")),
        *((code, "char") for code in ("th", "my-MM", "bur", "ja", "jpn", "bo", "tib", "bod", "dz", "dzo")),
        *((code, "13a") for code in ("ko", "kor", "ko-KR", "ko_KR", "KO")),
    ],
)
def test_the_tokenizer_depends_on_the_language(language: str, tokenizer: str) -> None:
    result = score(["a b c d"], ["a b c d"], language=language, metrics=("bleu",))
    assert f"tok:{tokenizer}|" in result.bleu_signature


def test_the_caller_can_choose_a_tokenizer() -> None:
    result = score(["a b c d"], ["a b c d"], language="ko", tokenize="none", metrics=("bleu",))
    assert "tok:none|" in result.bleu_signature


@pytest.mark.parametrize("language", ["ko", "ja", "zh", "de"])
def test_a_score_does_not_depend_on_installed_packages(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score_and_signature() -> tuple[float, str]:
        result = score(["나는 집에 가요 ."], ["나는 학교에 가요 ."], language=language, metrics=("bleu",))
        return result.bleu, result.bleu_signature

    results = []
    for installed in (True, False):
        monkeypatch.setattr(scores, "find_spec", lambda module, installed=installed: installed or None)
        results.append(score_and_signature())
    assert results[0] == results[1]


def test_the_caller_can_choose_mecab() -> None:
    pytest.importorskip("mecab_ko", reason="missing optional part: sacrebleu[ko]")
    result = score(["나는 집에 가요 ."], ["나는 집에 가요 ."], tokenize="ko-mecab", metrics=("bleu",))
    assert "tok:ko-mecab" in result.bleu_signature


def test_the_error_for_mecab_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "find_spec", lambda module: None)
    with pytest.raises(RecipeError, match=r'"ja-mecab" is not installed.*pip install "jumok\[japanese\]"'):
        score(["a"], ["a"], tokenize="ja-mecab")


def test_ter_counts_characters_in_chinese() -> None:
    result = score(["我们去学校"], ["我们去医院"], language="zh", metrics=("ter",))
    assert result.ter == pytest.approx(40)  # two of five characters differ
    assert "asian:yes" in result.ter_signature


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(RecipeError, match=r'no tokenizer "13b".*Did you mean "13a"'):
        score(["a"], ["a"], tokenize="13b")
    with pytest.raises(RecipeError, match=r'no metric "blue".*Did you mean "bleu"'):
        score(["a"], ["a"], metrics=("blue",))


def test_unequal_numbers_of_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="Received: 1 hypotheses, 2 references"):
        score(["a"], ["a", "b"])
    with pytest.raises(DataError, match="nothing to score"):
        score([], [])
