"""The attempts of a new user, as a table: what they typed, the exit code, and what the answer must say.

The numbers are those of a review with 156 attempts; 0 is an attempt that was added later. Attempts that need
a long training, a full disk or a damaged model folder are in the tests of those parts.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

import pytest

from jumok.errors import TrainingError
from jumok.training.loop.update import Worker
from support.digit_lines import TINY, digit_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.cli_calls import Call, Result


class Attempt(NamedTuple):
    number: int  # in the review; 0: added later
    command: str  # words; MODEL, RUN and the files below stand for paths
    code: int
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()  # what it must not say
    stdin: bytes = b""


KOREAN = [(f"I go {number} times.", f"나는 {number}번 간다.") for number in range(400)]


def tsv(pairs: list[tuple[str, str]], encoding: str = "utf-8") -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in pairs).encode(encoding)


GOOD = tsv(KOREAN)
FILES: dict[str, bytes] = {
    "small.tsv": b"en\tko\n" + GOOD,
    "empty.tsv": b"",
    "nl.tsv": b"\n\n\n",
    "bin.tsv": bytes(range(256)) * 8,
    "one.tsv": b"one column\n" * 5,
    "utf16.tsv": tsv(KOREAN, "utf-16"),
    "utf16le_nobom.tsv": tsv(KOREAN, "utf-16-le"),
    "cp949.tsv": tsv(KOREAN, "cp949"),
    "cp949_fixed.tsv": GOOD.decode().encode("cp949").decode("latin1").encode(),
    "bom.tsv": b"\xef\xbb\xbf" + GOOD,
    "nul.tsv": GOOD + b"a\0b\tc\n",
    "mixed.tsv": GOOD + tsv([("bad", "나쁜 줄")], "cp949"),
    "ten.tsv": tsv(KOREAN[:10]),
    "nine.tsv": tsv(KOREAN[:9]),
    "same.tsv": tsv([(source, source) for source, _ in KOREAN]),
    "dup.tsv": tsv(KOREAN[:1] * 500),
    "cr.tsv": GOOD.replace(b"\n", b"\r"),
    "crlf.tsv": GOOD.replace(b"\n", b"\r\n"),
    "bad.jsonl": b'{"en":"hi", "ko": oh}\n',
    "arr.jsonl": b'["hi","an"]\n',
    "num.jsonl": b'{"en":1,"ko":2}\n',
    "null.jsonl": b'{"en":null,"ko":"x"}\n',
    "unclosed.csv": b'en,ko\n"never closed,b\n' + b"c,d\n" * 20,
    "semicolon.csv": GOOD.replace(b"\t", b";"),
    "wide.csv": b"id,en,ko,author,date,note\n" + "".join(
        f"{n},{a},{b},Kim,2026-01-01,\n" for n, (a, b) in enumerate(KOREAN)
    ).encode(),
    "trunc.tsv.gz": gzip.compress(GOOD)[:-20],
    "ok.tsv.gz": gzip.compress(GOOD),
    "fake.tsv.gz": GOOD,
    "doc.docx": b"PK\x03\x04\x14\0\x06\0[Content_Types].xml word/document.xml\xff",
    "page.html": b"<!DOCTYPE html><html><body>Hello.</body></html>\n",
    "swapped.en-ko.tsv": tsv([(target, source) for source, target in KOREAN]),
    "memory.tmx": (
        '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>'
        + "".join(
            f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="ko"><seg>{b}</seg></tuv></tu>'
            for a, b in KOREAN
        )
        + "</body></tmx>"
    ).encode(),
    "sentences.txt": b"one\ntwo\n",
    "big.tsv": GOOD + ("word " * 50_000 + "\t" + "단어 " * 50_000 + "\n").encode(),
    "bigtok.tsv": GOOD + ("a" * 90_000 + "\t" + "가" * 90_000 + "\n").encode(),
    "emoji.tsv": tsv([(f"I am {n} \U0001f600.", f"나는 {n} \U0001f44d\U0001f3fd.") for n in range(100)]),
    "tags.tsv": tsv([(f"<b>{n}</b>", f"<b>{n}</b>") for n in range(10)]),
    "surrogate.jsonl": b'{"en": "a\\ud800", "ko": "b"}\n' * 30,
    "ls.tsv": tsv([(f"{source}\u2028again", target) for source, target in KOREAN]),
    "short.en": b"one\n" * 30,
    "short.ko": "하나\n".encode() * 29,
    "digits.tsv": tsv([(source, target) for source, target, _ in digit_lines(20)]),
    "swapped_digits.tsv": tsv([(target, source) for source, target, _ in digit_lines(20)]),
}  # fmt: skip

LATIN1 = ("latin1 -t", "-f latin1")
CHECKS = [
    Attempt(1, "check empty.tsv", 2, ("holds no sentence pairs",)),
    Attempt(2, "check nl.tsv", 1, ("refused: no pair is left", "3 empty")),
    Attempt(3, "check bin.tsv", 2, ("binary data, not text",), LATIN1),
    Attempt(4, "check one.tsv", 2, ("has 1 column", "separated by a tab")),
    Attempt(5, "check utf16.tsv", 2, ("looks like UTF-16", "--encoding utf-16 ")),
    Attempt(6, "check utf16le_nobom.tsv", 2, ("without a byte order mark", "--encoding utf-16-le "), LATIN1),
    Attempt(7, "check cp949.tsv", 2, ("CP949 (Korean)", "나는 0번 간다.", "add --encoding cp949"), LATIN1),
    Attempt(7, "check cp949.tsv --encoding cp949", 0, ("training will use 400 of 400",)),
    Attempt(8, "check bom.tsv", 0, ("1 byte order mark",)),
    Attempt(9, "check nul.tsv", 0, ("control characters (1 skipped)",)),
    Attempt(10, "check big.tsv", 0, ("too long (1 skipped)", "training will use 400 of 401")),
    Attempt(11, "check bigtok.tsv", 0, ("training will use 400 of 401",)),
    Attempt(
        12, "check mixed.tsv", 2, ("on line 401", "do not convert the file", "나쁜 줄"), (*LATIN1, "--enc")
    ),
    Attempt(13, "check ten.tsv", 0, ("training will use 10 of 10",)),
    Attempt(14, "check nine.tsv", 1, ("would be refused", "fewer than ten are left")),
    Attempt(15, "check same.tsv", 1, ("refused: no pair is left", "400 untranslated"), ("so few different",)),
    Attempt(16, "check dup.tsv", 1, ("would be refused", "499 duplicate")),
    Attempt(17, "check cr.tsv", 0, ("400 pairs; 400 old Mac line end",)),
    Attempt(18, "check crlf.tsv", 0, ("400 carriage return",)),
    Attempt(19, "check emoji.tsv", 0, ("training will use 100 of 100",)),
    Attempt(20, "check tags.tsv", 1, ("refused: no pair is left", "10 untranslated"), ("so few",)),
    Attempt(21, "check surrogate.jsonl", 1, ("refused: no pair is left",), ("so few",)),
    Attempt(22, "check bad.jsonl", 2, ("Line 1", "is not JSON")),
    Attempt(23, "check arr.jsonl", 2, ("is not a JSON object",)),
    Attempt(24, "check num.jsonl", 2, ("no text under its language codes", "en: 1, ko: 2"), ("none",)),
    Attempt(25, "check null.jsonl", 2, ("no text under its language codes", "en: null")),
    Attempt(26, "check unclosed.csv", 2, ("Line 2", "quotation mark that is never closed"), ("c,d",)),
    Attempt(27, "check ls.tsv", 0, ("400 pairs",)),
    Attempt(28, "check trunc.tsv.gz", 2, ("cannot be decompressed",)),
    Attempt(29, "check ok.tsv.gz", 0, ("400 pairs",)),
    Attempt(30, "check fake.tsv.gz", 2, ("cannot be decompressed",)),
    Attempt(31, "check short.en short.ko", 2, ("do not have the same number of lines", "30 lines")),
    Attempt(32, "check cp949_fixed.tsv", 1, ("refused: no pair is left", "mojibake")),
    Attempt(33, "check cp949_fixed.tsv --from en --to ko", 1, ("mojibake",)),
    Attempt(151, "check -", 0, ("standard input: 400 pairs",), stdin=FILES["small.tsv"]),
    Attempt(153, "check small.tsv ten.tsv nul.tsv", 0, ("small.tsv: 400 pairs", "ten.tsv: 10 pairs")),
    Attempt(154, "check small.tsv:2.5", 0, ("weight 2.5",)),
    # The translator at a company.
    Attempt(0, "check semicolon.csv", 0, ("400 pairs", "separated by a semicolon")),
    Attempt(0, "check wide.csv", 0, ("columns 'en' and 'ko' of 6", "source en")),
    Attempt(0, "check wide.csv --columns 2,3", 0, ("columns 2 and 3 of 6",)),
    Attempt(0, "check memory.tmx --from en --to ko", 0, ("400 pairs", "source en", "target ko")),
    Attempt(0, "check doc.docx", 2, ("a Word document",), LATIN1),
    Attempt(0, "check page.html", 2, ("is XML or HTML, not a text",), ("no faults",)),
    Attempt(0, "check swapped.en-ko.tsv", 1, ("sides seem to be swapped", "source looks like Korean")),
    Attempt(0, "check small.tsv", 0, ("For comparison, measured", "1,000 pairs", "docs/quality.md")),
]
TRAINING = [
    Attempt(
        78, "train small.tsv --out RUN --minutes -1", 2, ("train: --minutes: ", "than 0", "-1"), ("recipe",)
    ),
    Attempt(79, "train small.tsv --out RUN --minutes 0", 2, ("train: --minutes: ",), ("recipe",)),
    Attempt(80, "train small.tsv --out RUN --minutes nan", 2, ("train: --minutes: ",), ("recipe",)),
    Attempt(81, "train small.tsv --out RUN --minutes inf", 2, ("train: --minutes: ",), ("recipe",)),
    Attempt(82, "train small.tsv --out RUN --minutes abc", 2, ("--minutes", "valid number")),
    Attempt(84, "train small.tsv --out RUN --steps -5", 2, ("train: --steps: ",), ("recipe",)),
    Attempt(85, "train small.tsv --out RUN --steps 0", 2, ("train: --steps: ",), ("recipe",)),
    Attempt(87, "train small.tsv --out RUN --epochs -1", 2, ("train: --epochs: ",), ("recipe",)),
    Attempt(
        88, "train small.tsv --out RUN --set model.heads=7", 2, ("7 heads", "128 (tiny)", "Possible: 1, 2")
    ),
    Attempt(
        88,
        "train small.tsv --out RUN --model decoder-only --set model.decoder_layers=2",
        2,
        ("decoder-only has no such setting (transformer and recurrent have it). It has: layers.",),
    ),
    Attempt(89, "train small.tsv --out RUN --set model.heads=0", 2, ("model.heads: ", "Received: 0")),
    Attempt(90, "train small.tsv --out RUN --size huge", 2, ("'huge' is not one of", "tiny")),
    Attempt(91, "train small.tsv --out RUN --set model.hats=7", 2, ("model.hats: there is no such setting",)),
    Attempt(92, "train small.tsv --out RUN --set model.dropout", 2, ("SECTION.NAME=VALUE",)),
    Attempt(93, "train small.tsv --out RUN --set model.dropout=2", 2, ("model.dropout: ", "Received: 2")),
    Attempt(94, "train small.tsv --out RUN --set text.vocab_size=1000000000", 2, ("text.vocab_size: ",)),
    Attempt(96, "train small.tsv --out RUN --set text.vocab_size=5", 2, ("text.vocab_size: ", "Received: 5")),
    Attempt(97, "train small.tsv --out RUN --attention foo", 2, ('no attention called "foo"', "bahdanau")),
    Attempt(99, "train small.tsv --out RUN --set model.width=1000000", 2, ("model.width: ", "1000000")),
    Attempt(101, "train small.tsv", 2, ("Missing option '--out'",)),
    Attempt(102, "train small.tsv --out small.tsv", 2, ("is a file. A run needs a folder",)),
    Attempt(103, "train small.tsv --out MODEL", 2, ("is not empty and is not a run of jumok", "jumok.json")),
    Attempt(105, "train nine.tsv --out RUN", 2, ("no sentence to validate on", "9 pairs")),
    Attempt(
        106, "train small.tsv --out RUN --from de --to fr", 2, ("English and Korean, but German → French",)
    ),
    Attempt(107, "train same.tsv --out RUN", 2, ("400 untranslated",)),
    Attempt(108, "train small.tsv --out RUN --valid small.tsv", 2, ("400 leaked",)),
    Attempt(109, "train small.tsv --out RUN --seed -1", 2, ("train: --seed: ",), ("recipe",)),
    Attempt(143, "train small.tsv --out RUN --minutes 1e9", 2, ("train: --minutes: ", "less than or equal")),
    Attempt(0, "train cp949.tsv --out RUN", 2, ("add --encoding cp949",), LATIN1),
    Attempt(0, "train doc.docx --out RUN", 2, ("a Word document",)),
    Attempt(0, "train --out RUN", 2, ("Name the sentence pairs to train on",)),
    Attempt(0, "finish RUN", 2, ("is not a run folder",)),
    Attempt(0, "finish MODEL", 2, ("is not a run folder",)),
]
TRANSLATING = [
    Attempt(34, "translate MODEL", 0),
    Attempt(35, "translate MODEL", 0, stdin=b"\n\n\n"),
    Attempt(36, "translate MODEL", 0, stdin=b"one two"),
    Attempt(37, "translate MODEL", 0, stdin=b"one\0two\n"),
    Attempt(39, "translate MODEL --json", 0, ('"source": "one"',), stdin=b"\xef\xbb\xbfone\n"),
    Attempt(40, "translate MODEL --json", 0, ('"source": "one"',), stdin=b"one\r\n"),
    Attempt(41, "translate MODEL", 0, stdin="one 🙂 e\u0301 \u05d0 \u200b\n".encode()),
    Attempt(38, "translate MODEL", 2, ("line 1, byte 1", "나는 간다", "iconv -f cp949 -t utf-8"), LATIN1,
            "나는 간다.\n너는 온다.\n".encode("cp949")),
    Attempt(42, "translate MODEL", 2, ("line 1, byte 2", "this is not UTF-8"), LATIN1, b"a\xed\xa0\x80b\n"),
    Attempt(63, "look MODEL one --out x.pdf", 2, ("--out takes a file that ends in",)),
    Attempt(64, "look MODEL one --out nodir/x.svg", 2, ("nodir/x.svg", "No such file or directory")),
    Attempt(65, "look one", 2, ("Give a model and a sentence",)),
    Attempt(66, "translate MODEL nofile.txt", 2, ("There is no file nofile.txt.",), ("echo",)),
    Attempt(67, "translate MODEL .", 2, ("is a folder. Name the folder for its translation",), ("system",)),
    Attempt(69, "translate MODEL --json --n-best 99999", 2, ("Received: n_best 99999",), stdin=b"one\n"),
    Attempt(70, "translate MODEL --beam 100000", 2, ("translate: --beam: ",), ("recipe",)),
    Attempt(71, "translate MODEL --sample --temperature -1", 2, ("The temperature must be between",)),
    Attempt(72, "translate MODEL --sample --temperature 0", 2, ("use greedy search",)),
    Attempt(73, "translate MODEL --sample --top-p 7", 2, ("top_p is a probability",)),
    Attempt(74, "translate MODEL --temperature 2", 2, ("--temperature would be ignored", "Add --sample")),
    Attempt(75, "translate MODEL --max-length-ratio -3", 2, ("--max-length-ratio: ",), ("recipe",)),
    Attempt(76, "translate MODEL --length-penalty nan", 2, ("--length-penalty: ",), ("recipe",)),
    Attempt(77, "translate MODEL --align", 2, ("Add --json",)),
    Attempt(123, "info nowhere", 2, ("nowhere",), ("Errno",)),
    Attempt(124, "translate small.tsv", 2, ("is a file",), stdin=b"one\n"),
    Attempt(127, "translate nowhere/modell", 2, ("There is no folder nowhere/modell",), stdin=b"one\n"),
    Attempt(128, "translate Helsinki-NLP/opus-mt-en-de", 2, ("There is no folder",), stdin=b"one\n"),
    Attempt(133, "evaluate MODEL sentences.txt", 2, ("sentences.txt",), ("decoder-only",)),
    Attempt(131, "evaluate MODEL empty.tsv", 2, ("holds no sentence pairs",)),
    Attempt(132, "evaluate MODEL cp949.tsv", 2, ("add --encoding cp949",), LATIN1),
    Attempt(149, "translate MODEL", 0, ("line 1: ", "not written in the script of English"),
            stdin="하나 둘\n".encode()),
    Attempt(0, "translate MODEL --glossary nofile.tsv", 2, ("There is no glossary nofile.tsv",)),
    Attempt(0, "translate MODEL --sentences paragraph", 2, ("sentences is split or keep",), stdin=b"one\n"),
    Attempt(0, "serve MODEL --glossary terms.tsv", 2, ("--glossary takes NAME=FILE",)),
    Attempt(156, "translate MODEL", 2, ("line 2, byte 1", "lines around it are UTF-8"), LATIN1,
            "é\n".encode() + "나쁜\n".encode("cp949") + "é ü\nö\n".encode()),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def attempt(
    call: Call, model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    def run(command: str, stdin: bytes = b"") -> Result:
        monkeypatch.chdir(folder)
        paths = {"MODEL": model, "RUN": tmp_path / "run"}
        return call(*(paths.get(word, word) for word in command.split()), stdin=stdin)

    return run


@pytest.mark.parametrize(
    "row", [*CHECKS, *TRAINING, *TRANSLATING], ids=lambda row: f"{row.number} {row.command}"
)
def test_an_attempt(row: Attempt, attempt: Callable[..., Result]) -> None:
    result = attempt(row.command, row.stdin)
    said = result.out + result.err
    assert result.code == row.code, said
    assert "Traceback" not in said
    for text in row.says:
        assert text in said
    for text in row.never:
        assert text not in said


def test_a_sentence_as_an_argument_is_to_be_piped(call: Call, model: Path) -> None:
    message = call("translate", model, "I go home.").paragraph("translate")  # attempt 68
    assert "no file 'I go home.'" in message
    assert 'echo "I go home." | jumok translate MODEL' in message


OPTIONS = [option for name, value in TINY.items() for option in ("--set", f"{name}={value}")]


@pytest.mark.medium
def test_training_on_a_translation_memory(attempt: Callable[..., Result], tmp_path: Path) -> None:
    """`jumok train memory.tmx --from en --to ko`; the card names the file, not its folder."""
    command = f"train memory.tmx --from en --to ko --out RUN {' '.join(OPTIONS)}"
    result = attempt(command)
    assert result.code == 0, result.err
    card = json.loads((tmp_path / "run" / "model" / "jumok.json").read_text(encoding="utf-8"))
    assert [corpus["name"] for corpus in card["corpora"]] == ["memory.tmx"]
    assert card["recipe"]["languages"] == {"source": "en", "target": "ko"}
    assert attempt(command).code == 0  # the same command again: finished already


@pytest.mark.medium
def test_a_vocabulary_larger_than_the_text_has(
    attempt: Callable[..., Result], folder: Path, tmp_path: Path
) -> None:
    """Attempt 95: the recipe says how many tokens were made, and the same command again works."""
    others = " ".join(
        option
        for name, value in TINY.items()
        if name not in ("text.vocab_size", "vocab_size", "steps")
        for option in ("--set", f"{name}={value}")
    )
    train = f"train {folder}/small.tsv --out RUN {others} --set text.vocab_size=50000 --steps 3 --epochs 50"
    result = attempt(train)
    assert result.code == 0, result.err
    assert "50,000 were requested, but the text has no more" in result.err
    assert "the first limit that is reached, of steps, epochs" in " ".join(result.err.split())
    recipe = (tmp_path / "run" / "recipe.toml").read_text(encoding="utf-8")
    assert "vocab_size = 50000" not in recipe
    card = (tmp_path / "run" / "model" / "jumok.json").read_text(encoding="utf-8")
    assert str(folder) not in card
    again = attempt(train)
    assert again.code == 0, again.err
    other = attempt(train.replace("50000", "40000")).paragraph("train")
    assert "text.vocab_size: received 40000" in other


@pytest.mark.medium
def test_training_from_standard_input_with_several_limits(
    attempt: Callable[..., Result], tmp_path: Path
) -> None:
    """Attempts 86 and 152: which limit rules is said."""
    others = " ".join(
        option
        for name, value in TINY.items()
        if not name.endswith("steps")
        for option in ("--set", f"{name}={value}")
    )
    limits = "--steps 4 --epochs 9 --minutes 3"
    result = attempt(f"train - --out RUN {others} {limits}", stdin=FILES["small.tsv"])
    assert result.code == 0, result.err
    said = " ".join(result.err.split())
    assert "training.steps 4 the first limit that is reached, of steps, epochs, minutes" in said
    assert "finished · step 4" in said


@pytest.mark.medium
def test_a_learning_rate_of_1000(attempt: Callable[..., Result], tmp_path: Path) -> None:
    """Attempt 100: no model is made, and the message says what to do."""
    others = " ".join(f"--set {name}={value}" for name, value in TINY.items() if "steps" not in name)
    result = attempt(f"train small.tsv --out RUN {others} --steps 30 --set training.learning_rate=1000")
    assert result.code == 2, result.err
    assert "lower training.learning_rate" in result.err
    assert "best so far" not in result.err
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.medium
def test_ctrl_c_then_translate_then_finish_then_more(
    attempt: Callable[..., Result], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who has had enough has a model, can end the run, and can give it more steps later."""
    run = tmp_path / "run"
    others = " ".join(f"--set {name}={value}" for name, value in TINY.items() if "steps" not in name)
    update = Worker.update

    def interrupt(self: Worker, step: int, learning_rate: float) -> object:
        if step == 13:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, step, learning_rate)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "update", interrupt)
        settings = "--set training.validate_every=5 --set training.processes=1"
        stopped = attempt(f"train small.tsv --out RUN {others} {settings}")
    assert stopped.code == 130, stopped.err
    assert "until 10 validations in a row bring no better chrf" in stopped.err
    assert "stopped at step 13" in stopped.err
    assert f"): {run / 'model'}" in stopped.err
    assert call("translate", run, stdin=b"I go 3 times.\n").code == 0
    assert "the best so far of an unfinished run" in call("info", run).out
    finished = attempt("finish RUN")
    assert finished.code == 0, finished.err
    assert "finished here · step 13" in finished.err
    assert "this run is already finished" in attempt("finish RUN").err
    more = attempt("train --out RUN --steps 20")
    assert more.code == 0, more.err
    assert "continuing from step 13" in more.err
    assert "more training from step 13" in " ".join(more.err.split())
    assert "finished · step 20" in more.err
    less = attempt("train --out RUN --steps 15").paragraph("train")
    assert "has done 20 steps" in less


@pytest.mark.medium
def test_a_run_killed_before_its_first_checkpoint_says_that_it_starts_again(
    attempt: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    others = " ".join(f"--set {name}={value}" for name, value in TINY.items())

    def killed(*_: object) -> None:
        raise TrainingError("as if it were killed")

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "update", killed)
        assert attempt(f"train small.tsv --out RUN {others}").code == 2
    again = attempt(f"train small.tsv --out RUN {others}")
    assert again.code == 0, again.err
    assert "starting again from step 0: the earlier session ended before its first checkpoint" in again.err
