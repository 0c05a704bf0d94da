"""Help, usage errors and the output of commands are in Korean if the user's language is Korean."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from jumok.cli import COMMANDS
from jumok.cli.display import TrainingDisplay
from jumok.cli.language import choose_language, is_english, localise_text, read_translations
from jumok.config.recipe import Recipe
from jumok.config.resolve import DerivedSetting
from jumok.data.encodings import encoding_advice, name_binary_file
from jumok.plots.text_width import terminal_columns
from jumok.training.events import Started
from support.cli_calls import spawn
from support.newcomer_attempts import TINY_OPTIONS
from support.training_progress import PROGRESS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.cli_calls import Call

ENGLISH = re.compile(r"\b[a-zA-Z]?[a-z]+(?: [a-z]+){3}\b")
"""Matches four words in a row. Commands and file names have fewer words or other characters."""


@pytest.fixture
def _korean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Korean for the commands of a test, and English again for the other tests."""
    monkeypatch.setenv("JUMOK_LANG", "ko")
    yield
    choose_language({})


def check_help(text: str, width: int = 80) -> None:
    assert ENGLISH.findall(text.replace("Attention is all you need", "")) == []
    assert "\ue000" not in text  # the filler of `wrapped_text.py`
    for line in text.splitlines():
        assert terminal_columns(line) <= width, line


@pytest.mark.usefixtures("_korean")
def test_help_lists_the_commands_in_korean(call: Call) -> None:
    result = call("--help")
    assert result.code == 0
    check_help(result.out)
    assert result.out.startswith("사용법: jumok [OPTIONS] COMMAND [ARGS]...\n")
    assert "\n  train      문장 쌍으로 번역기를" in result.out
    assert "\n  -h, --help  이 도움말을 보여 주고 끝냅니다.\n" in result.out
    assert "사용법: jumok" in call().err + call().out


@pytest.mark.usefixtures("_korean")
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_of_a_command_is_korean_and_fits(command: str, call: Call) -> None:
    result = call(command, "--help")
    assert (result.code, result.err) == (0, "")
    check_help(result.out)
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
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": ""}, False),  # an empty variable counts as not set
        ({"LANG": "ko_KR.UTF-8", "JUMOK_LANG": "en"}, True),
        ({"LC_ALL": "en_US.UTF-8", "JUMOK_LANG": "ko"}, False),
        ({"LANG": "ko_KR.UTF-8", "JUMOK_LANG": "xx"}, False),  # an unknown language is ignored
        ({"LANG": "\udcff..@@_"}, True),
    ],
)
def test_the_locale_chooses_the_language(variables: dict[str, str], english: bool) -> None:
    choose_language(variables)
    assert is_english() is english
    choose_language({})  # English again, for the other tests


@pytest.mark.parametrize("locale", ["ko_KR.UTF-8", "ko_KR.does-not-exist"])
def test_a_korean_locale_need_not_be_installed(locale: str) -> None:
    result = spawn("trian", JUMOK_LANG="", LC_ALL=locale, PYTHONUTF8="1")
    assert result.returncode == 2
    assert "없는 명령입니다" in result.stderr.decode()
    assert spawn("--help", JUMOK_LANG="", LC_ALL=locale).stdout.decode().startswith("사용법: ")


@pytest.mark.parametrize(
    ("text", "korean"),
    [
        ("encoding", "인코딩"),
        ("as in runs/mine", "runs/mine 모델과 같음"),
        ("29,000 pairs, on a machine with 2 CPU cores", "문장 쌍 29,000개, CPU 코어 2개가 있는 컴퓨터"),
        (
            "54 pairs, 6 for validation; skipped: 2 duplicate, 1 empty",
            "문장 쌍 54개, 검증용 6개; 건너뜀: 중복 2개, 빈 문장 1개",
        ),
        ("54 pairs, 270 target tokens", "문장 쌍 54개, 번역문 토큰 270개"),
        ("the checkpoint of step 12, scored with beam 4", "스텝 12의 체크포인트, 평가 시 빔 크기 4"),
        ("a tenth of 1 step, at most 2,000", "전체 1스텝의 10분의 1, 최대 2,000"),
        ("a tenth of 900 steps, at most 2,000", "전체 900스텝의 10분의 1, 최대 2,000"),
        (
            "the first accelerator; torch says that the device computes in bf16",
            "처음 찾은 가속기; torch에서 bf16 계산을 지원함",
        ),
        ("No such option: --x (Possible options: --y)", "없는 옵션입니다: --x (비슷한 옵션: --y)"),
        (
            "keys      none: everyone who can reach the server may use it",
            "API 키    없음: 접속할 수 있으면 누구나 쓸 수 있음",
        ),
        (
            "Invalid value: jumok train 명령의 옵션입니다",
            "값이 잘못되었습니다: jumok train 명령의 옵션입니다",
        ),
        ("pivot     en → de → ko", "경유      en → de → ko"),
        (
            "requests  2,000 characters, 100 texts, 9,000 bytes, 30 s of work; any number per minute "
            "and client",
            "요청      글자 2,000개, 텍스트 100개, 9,000바이트, 처리 30초, 클라이언트마다 분당 무제한",
        ),
        (
            "requests  2,000 characters, 100 texts, 9,000 bytes, 30 s of work; 60 per minute and client",
            "요청      글자 2,000개, 텍스트 100개, 9,000바이트, 처리 30초, 클라이언트마다 분당 60회",
        ),
        ("a text {that} nobody wrote, ever", "a text {that} nobody wrote, ever"),
        ("", ""),
    ],
)
def test_texts_of_the_library_and_of_typer_are_translated(text: str, korean: str) -> None:
    assert localise_text(text) == text
    choose_language({"JUMOK_LANG": "ko"})
    assert localise_text(text) == korean
    choose_language({})


@pytest.mark.parametrize(
    ("text", "korean"),
    [
        ("bleu of the new pairs 10.20 → 12.30", "새 쌍의 BLEU 10.20 → 12.30"),
        ("chrf of the new pairs not measured", "새 쌍의 chrF 측정하지 않음"),
        (
            "chrf of the new pairs 10.20 → 12.30, of 500 pairs to keep 88.00 → 84.00 (a, b.tsv)",
            "새 쌍의 chrF 10.20 → 12.30, 기존 성능 확인용 쌍 500개의 점수 88.00 → 84.00(a, b.tsv)",
        ),
        (
            "chrf of the new pairs 10.20 → 12.30, its agreement with the start model on 1,500 pairs to keep "
            "88.00 → 84.00 (the start model's translations of the validation set)",
            "새 쌍의 chrF 10.20 → 12.30, 기존 성능 확인용 쌍 1,500개에서 시작 모델과의 일치도 88.00 → 84.00"
            "(검증 세트를 시작 모델이 번역한 것)",
        ),
        (
            "60% of the way from the start model (losses of the new pairs and of those to keep, by this "
            "share: 0: 2.123 and 1.900, 0.2: 2.010 and 1.910)",
            "시작 모델에서 60% 옮겨 간 지점(지점별로 새 쌍/확인용 쌍의 손실: 0: 2.123/1.900, "
            "0.2: 2.010/1.910)",
        ),
        (
            "received 3-9, 4-10, 5-7 and 2 more; the source has 3 words, the target 6",
            "받은 정렬: 3-9, 4-10, 5-7 외 2개. 원문은 단어 3개, 번역문은 6개",
        ),
        ("8,000 tokens", "토큰 8,000개"),
        ("8,000 and 7,000 tokens", "토큰 8,000개와 7,000개"),
        (
            "8,000 tokens; 9,000 were requested, but the text has no more",
            "토큰 8,000개; 9,000개를 요청했지만 텍스트에 그만큼 없습니다",
        ),
        (
            "54 pairs, 270 target tokens; skipped: 12 with more than 128 tokens",
            "문장 쌍 54개, 번역문 토큰 270개; 건너뜀: 128토큰보다 긴 것 12개",
        ),
        (
            "54 pairs, 270 target tokens; skipped: 12 and 3 for validation with more than 128 tokens",
            "문장 쌍 54개, 번역문 토큰 270개; 건너뜀: 128토큰보다 긴 것 12개, 검증용 3개",
        ),
        (
            "60 pictures of 16 patches, 270 target tokens; skipped: 3 for validation with more than 128 "
            "tokens",
            "패치 16개짜리 이미지 60개, 번역문 토큰 270개; 건너뜀: 128토큰보다 긴 것 검증용 3개",
        ),
        (
            "60% of the way from the start model to the average of the last 5 checkpoints up to step 1,200, "
            "scored with beam 4",
            "시작 모델과 스텝 1,200까지 마지막 체크포인트 5개의 평균 사이의 60% 지점, 평가 시 빔 크기 4",
        ),
        (
            "the average of 3 checkpoints (steps 300, 900, 1,200), scored with beam 4",
            "체크포인트 3개의 평균(스텝 300, 900, 1,200), 평가 시 빔 크기 4",
        ),
        (
            "runs/a/model: 3,000 pairs to replay (old.tsv, b.tsv), 500 to keep (keep.tsv), "
            "0.30% of the tokens in the first 2,000 new pairs are unknown",
            "runs/a/model: 다시 학습할 예전 쌍 3,000개(old.tsv, b.tsv), 기존 성능 확인용 쌍 500개(keep.tsv), "
            "처음 새 쌍 2,000개의 토큰 중 0.30%가 알 수 없는 토큰",
        ),
        (
            "the model is worse than the start model on the new pairs: chrf 12.30 → 10.20",
            "모델이 시작 모델보다 나쁩니다: 새 쌍의 chrF 12.30 → 10.20",
        ),
        (
            "the model is worse than the start model on the pairs to keep (keep.tsv): loss -2.10 → -2.30",
            "모델이 시작 모델보다 나쁩니다: 기존 성능 확인용 쌍(keep.tsv)의 손실 -2.10 → -2.30",
        ),
        (
            "engine torch: CTranslate2 needs keys of width 16 per head (the model's width divided by its "
            "heads), not 8, at encoder.layers.0",
            "torch 엔진: encoder.layers.0: CTranslate2에서는 헤드마다 키 차원이 16"
            "(모델의 차원을 헤드 수로 나눈 값)이어야 합니다(받은 값: 8)",
        ),
        (
            "targets have 1.20 times the tokens of their sources; each may have 10 more; "
            "the model has positions for 512",
            "번역문 토큰이 원문의 1.20배, 문장마다 10개까지 더 허용, 모델의 위치는 512개까지",
        ),
    ],
)
def test_all_parts_of_a_text_are_translated(text: str, korean: str) -> None:
    """A template such as "{count} {noun}" must not match words that belong to another part of the text."""
    choose_language({"JUMOK_LANG": "ko"})
    assert localise_text(text) == korean
    choose_language({})


@pytest.mark.parametrize(
    "head",
    [
        *(b"%PDF", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0"),
        *(b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"SQLite format 3\0", b"\x89PNG"),
        *(b"PK\3\4" + part for part in (b"", b"word/", b"ppt/", b"xl/", b"opendocument.text", b"epub")),
        b"PK\3\4opendocument.spreadsheet",
    ],
)
def test_the_kind_of_a_binary_file_is_named_in_korean(head: bytes) -> None:
    advice = encoding_advice(head, head, [], lambda encoding: encoding.codec)
    assert advice == f"It is {name_binary_file(head)}"
    choose_language({"JUMOK_LANG": "ko"})
    assert re.search("[가-힣]", localise_text(advice))
    choose_language({})


@pytest.mark.parametrize(
    "text",
    [
        "12 and a few more tokens",
        "bleu of the new pairs fell below that of the start model",
        "54 pairs, most of them new",
        "the first accelerator; it was slower than the processor",
        "engine torch: the weights of step 3 were lost by a disk",
        "as in the other folder",
        "engine torch: the word '한글' was not expected",
        "No such option: --x (there are none that begin like it)",
    ],
)
def test_a_text_of_which_only_a_part_has_a_translation_stays_english(text: str) -> None:
    choose_language({"JUMOK_LANG": "ko"})
    assert localise_text(text) == text
    choose_language({})


@pytest.mark.parametrize("file", ["library", "typer"])
@pytest.mark.parametrize("data", ["x{n}.tsv", "runs/x {n}/Y", "'some words {n}'"])
def test_every_template_is_translated_with_its_values(file: str, data: str) -> None:
    """The n-th placeholder of a template gets an example that its name allows: see `language._pattern`."""
    examples = {"count": "{n},70{n}", "share": "{n}7.5%", "noun": "pairs", "text": '"so to say {n}"'}
    choose_language({"JUMOK_LANG": "ko"})
    for template, translation in read_translations(file).items():
        placeholders = re.findall(r"\{(\w+)\}", template)
        values = {
            placeholder: examples.get(placeholder.partition("_")[0], data).format(n=n)
            for n, placeholder in enumerate(placeholders, 1)
        }
        translated_values = {
            placeholder: value if placeholder.startswith("text") else localise_text(value)
            for placeholder, value in values.items()
        }
        assert localise_text(template.format(**values)) == translation.format(**translated_values)
    choose_language({})


@pytest.mark.usefixtures("_korean")
def test_a_file_is_checked_in_korean(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "x.en-ko.tsv"
    rows = [f"word {n} is here\t{n}번 단어는 여기 있습니다" for n in range(40)]
    file.write_text("\n".join([*rows, rows[0], "\t빈 문장", "same\tsame"]) + "\n", encoding="utf-8")
    result = call("check", file)
    assert result.code == 0
    assert ENGLISH.findall(result.out.replace("word 0 is here", "")) == []
    for line in (
        "x.en-ko.tsv: 문장 쌍 43개",
        "  원문   en · 단어 ",
        "  번역문 ko · 단어 ",
        "        1 중복 (1개 건너뜀): 같은 쌍이 앞에 있음",
        "          41번째 줄: word 0 is here ||| 0번 단어는 여기 있습니다",
        "학습에는 문장 쌍 43개 중 40개를 쓰고(그중 검증용 ",
        "Multi30k 영어–독일어, 이미지 캡션",
    ):
        assert line in result.out


@pytest.mark.usefixtures("_korean")
def test_json_is_the_same_in_every_language(model: Path, pairs: Path, call: Call) -> None:
    for arguments in (["info", model], ["check", pairs], ["models"]):
        korean = call(*arguments, "--json").out
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUMOK_LANG", "en")
            assert call(*arguments, "--json").out == korean


@pytest.mark.usefixtures("_korean")
def test_training_translating_evaluating_and_info_are_korean(
    tmp_path: Path, pairs: Path, gold_pairs: Path, call: Call
) -> None:
    out = tmp_path / "run"
    training = call("train", pairs, "--out", out, *TINY_OPTIONS.split())
    assert training.code == 0
    for line in (
        "데이터 읽기: 문장 쌍 ",
        "자동으로 정한 설정:",
        ": 검증 손실 ",
        "학습 완료 · 스텝 ",
        f"모델: {out}/model",
    ):
        assert line in training.err
    assert ENGLISH.findall(training.err) == []
    again = call("train", pairs, "--out", out, *TINY_OPTIONS.split())
    assert "이미 끝난 실행입니다 · 스텝 " in again.err

    translation = call("translate", out, stdin="한글 문장\n".encode())
    assert "알림: 1번째 줄: '한글 문장': 모델의 언어인 " in translation.err.replace('"', "'")
    missing_file = call("translate", out, tmp_path / "none.txt")
    assert missing_file.error_of("translate") == f"jumok translate: 파일이 없습니다: {tmp_path}/none.txt\n"

    evaluation = call("evaluate", out / "model", gold_pairs)
    assert "\n정렬 오류율 " in evaluation.out

    info = call("info", out / "model")
    assert ENGLISH.findall(info.out) == []
    for line in (
        "\n  언어         en → de\n",
        "\n  파라미터     ",
        "\n  정렬         교차 어텐션, 레이어.헤드 ",
    ):
        assert line in info.out


@pytest.mark.usefixtures("_korean")
def test_an_error_of_the_library_stays_english(tmp_path: Path, call: Call) -> None:
    message = call("info", tmp_path).error_of("info")
    assert message.isascii()


@pytest.mark.parametrize(
    ("width", "shown"), [(80, "2:30:16 남음 · 손실 5.888"), (60, "2:30:16 남음"), (24, "")]
)
def test_the_korean_progress_bar_fits_its_terminal(width: int, shown: str) -> None:
    choose_language({"JUMOK_LANG": "ko"})
    display = TrainingDisplay(Console(width=width, file=io.StringIO(), force_terminal=True))
    display.show(PROGRESS)
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(display._bar.get_renderable(), end="")
    choose_language({})
    [line] = captured.get().splitlines()
    assert terminal_columns(line.rstrip()) <= width
    assert shown in line
    assert width < 60 or "스텝 12,345/150,000 ━" in line


@pytest.mark.parametrize("width", range(50, 90))
def test_reasons_of_settings_are_not_cut_in_korean(width: int) -> None:
    """At some widths, rich alone would cut a syllable at the edge of the column."""
    choose_language({"JUMOK_LANG": "ko"})
    console = Console(width=width, file=io.StringIO())
    reason = "the end is known, and scores rise most just before it"
    setting = DerivedSetting("training.patience", 0, reason)
    with console.capture() as captured:
        TrainingDisplay(console).show(Started(Recipe(), (setting,), 1, 1, 1, 1, None))
    shown = " ".join(captured.get().split())
    assert localise_text(reason) in shown
    choose_language({})


@pytest.mark.usefixtures("_korean")
def test_the_rows_of_models_fit_their_terminal_in_korean(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    result = call("models")
    for line in result.out.splitlines():
        assert terminal_columns(line) <= 80
    assert "\n어텐션 메커니즘(--attention)\n" in result.out
    assert "적용되는 곳: " in result.out
