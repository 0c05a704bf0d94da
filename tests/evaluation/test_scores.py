"""Our scores are sacreBLEU's; what is tested is what it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sacrebleu import corpus_bleu, corpus_chrf, corpus_ter

from jumok.errors import DataError, RecipeError
from jumok.evaluation import score, scores

if TYPE_CHECKING:
    from pathlib import Path


def test_the_same_as_sacrebleu(baseline: list[str], references: list[str]) -> None:
    found = score(baseline, references)
    assert found.bleu == pytest.approx(corpus_bleu(baseline, [references]).score)
    assert found.chrf == pytest.approx(corpus_chrf(baseline, [references]).score)
    assert found.ter == pytest.approx(corpus_ter(baseline, [references], case_sensitive=True).score)
    assert found.sentences == 300


def test_the_same_as_its_command_line(baseline: list[str], references: list[str], tmp_path: Path) -> None:
    paths = []
    for name, lines in (("hypotheses", baseline), ("references", references)):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        paths.append(str(path))
    command = [sys.executable, "-m", "sacrebleu", paths[1], "-i", paths[0], "-m", "bleu", "chrf", "-w", "8"]
    printed = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    found = score(baseline, references, metrics=("bleu", "chrf"))
    assert [row["score"] for row in printed] == pytest.approx([found.bleu, found.chrf])
    assert [row["signature"] for row in printed] == [found.bleu_signature, found.chrf_signature]


def test_perfect_translations(references: list[str]) -> None:
    found = score(references, references)
    assert (found.bleu, found.chrf, found.ter) == pytest.approx((100, 100, 0))


def test_as_dict_holds_what_was_asked_for(baseline: list[str], references: list[str]) -> None:
    keys = ["bleu", "bleu_signature", "chrf", "chrf_signature", "ter", "ter_signature", "sentences"]
    assert list(score(baseline, references).as_dict()) == keys
    few = score(baseline, references, metrics=("chrf",)).as_dict()
    assert list(few) == ["chrf", "chrf_signature", "sentences"]
    json.dumps(few, allow_nan=False)


def test_case_counts_unless_told() -> None:
    hypotheses, references = ["THE DOG SLEEPS UNDER A TREE ."], ["the dog sleeps under a tree ."]
    cased = score(hypotheses, references)
    assert cased.bleu < 50
    assert cased.ter > 50
    folded = score(hypotheses, references, lowercase=True)
    assert (folded.bleu, folded.chrf, folded.ter) == pytest.approx((100, 100, 0))
    assert "case:lc" in folded.bleu_signature
    assert "case:mixed" in cased.ter_signature


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("", "13a"), ("en", "13a"), ("zh", "zh"), ("zho_Hans", "zh"), ("th", "char"), ("my-MM", "char")],
)
def test_the_tokeniser_follows_the_language(language: str, tokenizer: str) -> None:
    found = score(["a b c d"], ["a b c d"], language=language, metrics=("bleu",))
    assert f"tok:{tokenizer}|" in found.bleu_signature


def test_the_caller_can_force_a_tokeniser() -> None:
    found = score(["a b c d"], ["a b c d"], language="ko", tokenize="none", metrics=("bleu",))
    assert "tok:none|" in found.bleu_signature


@pytest.mark.parametrize("language", ["ko", "kor", "ko-KR", "ko_KR", "KO"])
def test_korean_is_cut_with_mecab(language: str) -> None:
    pytest.importorskip("mecab_ko", reason="missing optional part: sacrebleu[ko]")
    found = score(["나는 집에 가요 ."], ["나는 집에 가요 ."], language=language, metrics=("bleu",))
    assert "tok:ko-mecab" in found.bleu_signature


class TestWithoutMecab:
    @pytest.fixture(autouse=True)
    def _not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scores, "find_spec", lambda module: None)

    @pytest.mark.parametrize("language", ["ko", "jpn"])
    def test_characters_instead(self, language: str) -> None:
        found = score(["집에 가요"], ["집에 가요"], language=language, metrics=("bleu",))
        assert "tok:char|" in found.bleu_signature

    def test_forcing_it_says_what_to_install(self) -> None:
        with pytest.raises(
            RecipeError, match=r'"ja-mecab" is not installed.*pip install "jumok\[japanese\]"'
        ):
            score(["a"], ["a"], tokenize="ja-mecab")


def test_chinese_is_edited_by_characters() -> None:
    found = score(["我们去学校"], ["我们去医院"], language="zh", metrics=("ter",))
    assert found.ter == pytest.approx(40)
    assert "asian:yes" in found.ter_signature


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(RecipeError, match=r'no tokeniser "13b".*Did you mean "13a"'):
        score(["a"], ["a"], tokenize="13b")
    with pytest.raises(RecipeError, match=r'no metric "blue".*Did you mean "bleu"'):
        score(["a"], ["a"], metrics=("blue",))


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(DataError, match="Received: 1 hypotheses, 2 references"):
        score(["a"], ["a", "b"])
    with pytest.raises(DataError, match="nothing to score"):
        score([], [])
