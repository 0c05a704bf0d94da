"""The command line in Korean: help, usage errors, and what the commands print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from jumok.cli import COMMANDS
from jumok.cli.language import choose_language, is_english
from jumok.plots.text_width import terminal_columns
from support.cli_calls import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.cli_calls import Call

ENGLISH = re.compile(r"\b[a-zA-Z]?[a-z]+(?: [a-z]+){3}\b")
"""Four words in a row; commands and names of files are shorter, or have other characters."""


@pytest.fixture
def _korean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("JUMOK_LANG", "ko")
    yield
    choose_language({})


def check_page(text: str, width: int = 80) -> None:
    assert ENGLISH.findall(text.replace("Attention is all you need", "")) == []
    assert "\ue000" not in text
    for line in text.splitlines():
        assert terminal_columns(line) <= width, line


@pytest.mark.usefixtures("_korean")
def test_help_lists_the_commands_in_korean(call: Call) -> None:
    result = call("--help")
    assert result.code == 0
    check_page(result.out)
    assert result.out.startswith("사용법: jumok [OPTIONS] COMMAND [ARGS]...\n")
    assert "\n  train      문장 쌍으로 번역기를" in result.out
    assert "\n  -h, --help  이 도움말을 보여 주고 끝냅니다.\n" in result.out
    assert "사용법: jumok" in call().err + call().out


@pytest.mark.usefixtures("_korean")
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_of_a_command_is_korean_and_fits(command: str, call: Call) -> None:
    result = call(command, "--help")
    assert (result.code, result.err) == (0, "")
    check_page(result.out)
    assert f"사용법: jumok {command} " in result.out
    assert "\n옵션:\n" in result.out
    for english in ("default:", "required", "Usage", "Options", "Arguments"):
        assert english not in result.out


@pytest.mark.usefixtures("_korean")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["trian"], "오류: 없는 명령입니다: 'trian' (혹시 'train'?)\n"),
        (["--foo"], "오류: 없는 옵션입니다: --foo\n"),
        (["train", "--foo"], "오류: 없는 옵션입니다: --foo (비슷한 옵션: --from, --out, --to)\n"),
        (["train"], "오류: 필수 옵션이 없습니다: '--out'\n"),
        (["info"], "오류: 필수 인자가 없습니다: 'MODEL'\n"),
        (["info", "a", "b"], "오류: 필요 없는 인자가 더 있습니다: b\n"),
        (["train", "--out"], "오류: '--out' 옵션에는 값이 필요합니다.\n"),
        (["info", "m", "--json=3"], "오류: '--json' 옵션은 값을 받지 않습니다.\n"),
        (["translate", "m", "--beam", "0"], "오류: '--beam'의 값이 잘못되었습니다: 1 이상이어야 합니다\n"),
        (["translate", "m", "--beam", "x"], "오류: '--beam'의 값이 잘못되었습니다: 정수를 써야 합니다\n"),
        (["bench", "x"], "'x' 값은 쓸 수 없습니다. 가능한 값: 'attention'\n"),
    ],
)
def test_usage_errors_are_korean(arguments: list[str], error: str, call: Call) -> None:
    result = call(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith(error)
    assert ENGLISH.findall(result.err) == []


@pytest.mark.parametrize(
    ("variables", "english"),
    [
        ({}, True),
        ({"LANG": "ko_KR.UTF-8"}, False),
        ({"LANG": "ko"}, False),
        ({"LANG": "kok_IN"}, True),  # Konkani
        ({"LANG": "C"}, True),
        ({"LANG": "ko_KR.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, True),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ko_KR.eucKR"}, False),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "C.UTF-8"}, True),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": ""}, False),  # empty is not set
        ({"LANG": "ko_KR.UTF-8", "JUMOK_LANG": "en"}, True),
        ({"LC_ALL": "en_US.UTF-8", "JUMOK_LANG": "ko"}, False),
        ({"LANG": "ko_KR.UTF-8", "JUMOK_LANG": "xx"}, False),
        ({"LANG": "\udcff..@@_"}, True),
    ],
)
def test_the_locale_chooses_the_language(variables: dict[str, str], english: bool) -> None:
    choose_language(variables)
    assert is_english() is english
    choose_language({})


@pytest.mark.parametrize("locale", ["ko_KR.UTF-8", "ko_KR.does-not-exist"])
def test_a_locale_that_is_not_installed_is_enough(locale: str) -> None:
    done = spawn("trian", JUMOK_LANG="", LC_ALL=locale, PYTHONUTF8="1")
    assert done.returncode == 2
    assert "없는 명령입니다" in done.stderr.decode()
    assert spawn("--help", JUMOK_LANG="", LC_ALL=locale).stdout.decode().startswith("사용법: ")
