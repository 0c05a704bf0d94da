"""Commands that a new user tried, or may try, as tables with the exit code and the texts of the output.

A review made 156 attempts, and the numbers below are those of the review. The number 0 stands for attempts
that were added later. Every attempt is in one of three tables. `test_cli_newcomer.py` calls the commands in
ATTEMPTS in its own process, and runs the lines in SHELL_ATTEMPTS in a shell. TEST_OF_ATTEMPT has the names of
the tests that make the other attempts. TEST_OF_FAULT has the test of each fault that the review found.
"""

from __future__ import annotations

import gzip
from typing import NamedTuple

from support.digit_lines import TINY, digit_lines


class Attempt(NamedTuple):
    """A command that is called in the process of the tests."""

    number: int  # in the review, or 0 if the attempt was added later
    # The arguments of `jumok`. MODEL, RECURRENT, RUN and DAMAGED:… are replaced by paths. The fixture
    # `folder` of test_cli_newcomer.py makes the other files and folders.
    command: str
    code: int  # the exit code
    expected_texts: tuple[str, ...] = ()  # texts that the output must contain
    forbidden_texts: tuple[str, ...] = ()  # texts that the output must not contain
    stdin: bytes = b""
    slow: bool = False  # whether the attempt is marked as a slow test


class ShellAttempt(NamedTuple):
    """A line that is run by a shell."""

    number: int
    line: str  # MODEL and KOREAN are replaced by the paths of two models; "$?" is the exit code of jumok
    expected_texts: tuple[str, ...]  # texts that the output must contain
    code: int = 0  # the exit code of the shell


PAIRS = [(f"I go {number} times.", f"나는 {number}번 간다.") for number in range(400)]


def tsv(pairs: list[tuple[str, str]], encoding: str = "utf-8") -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in pairs).encode(encoding)


VALID_TSV = tsv(PAIRS)
FILES: dict[str, bytes] = {
    "small.tsv": b"en\tko\n" + VALID_TSV,
    "empty.tsv": b"",
    "nl.tsv": b"\n\n\n",
    "bin.tsv": bytes(range(256)) * 8,
    "one.tsv": b"one column\n" * 5,
    "utf16.tsv": tsv(PAIRS, "utf-16"),
    "utf16le_nobom.tsv": tsv(PAIRS, "utf-16-le"),
    "cp949.tsv": tsv(PAIRS, "cp949"),
    "mojibake.tsv": VALID_TSV.decode().encode("cp949").decode("latin1").encode(),
    "bom.tsv": b"\xef\xbb\xbf" + VALID_TSV,
    "nul.tsv": VALID_TSV + b"a\0b\tc\n",
    "mixed.tsv": VALID_TSV + tsv([("bad", "나쁜 줄")], "cp949"),
    "ten.tsv": tsv(PAIRS[:10]),
    "nine.tsv": tsv(PAIRS[:9]),
    "same.tsv": tsv([(source, source) for source, _ in PAIRS]),
    "dup.tsv": tsv(PAIRS[:1] * 500),
    "cr.tsv": VALID_TSV.replace(b"\n", b"\r"),
    "crlf.tsv": VALID_TSV.replace(b"\n", b"\r\n"),
    "bad.jsonl": b'{"en":"hi", "ko": oh}\n',
    "arr.jsonl": b'["hi","an"]\n',
    "num.jsonl": b'{"en":1,"ko":2}\n',
    "null.jsonl": b'{"en":null,"ko":"x"}\n',
    "unclosed.csv": b'en,ko\n"never closed,b\n' + b"c,d\n" * 20,
    "semicolon.csv": VALID_TSV.replace(b"\t", b";"),
    "wide.csv": b"id,en,ko,author,date,note\n" + "".join(
        f"{n},{a},{b},Kim,2026-01-01,\n" for n, (a, b) in enumerate(PAIRS)
    ).encode(),
    "trunc.tsv.gz": gzip.compress(VALID_TSV)[:-20],
    "ok.tsv.gz": gzip.compress(VALID_TSV),
    "fake.tsv.gz": VALID_TSV,
    "doc.docx": b"PK\x03\x04\x14\0\x06\0[Content_Types].xml word/document.xml\xff",
    "page.html": b"<!DOCTYPE html><html><body>Hello.</body></html>\n",
    "swapped.en-ko.tsv": tsv([(target, source) for source, target in PAIRS]),
    "memory.tmx": (
        '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>'
        + "".join(
            f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="ko"><seg>{b}</seg></tuv></tu>'
            for a, b in PAIRS
        )
        + "</body></tmx>"
    ).encode(),
    "sentences.txt": b"one\ntwo\n",
    "big.tsv": VALID_TSV + ("word " * 50_000 + "\t" + "단어 " * 50_000 + "\n").encode(),
    "bigtok.tsv": VALID_TSV + ("a" * 90_000 + "\t" + "가" * 90_000 + "\n").encode(),
    "emoji.tsv": tsv([(f"I am {n} \U0001f600.", f"나는 {n} \U0001f44d\U0001f3fd.") for n in range(100)]),
    "tags.tsv": tsv([(f"<b>{n}</b>", f"<b>{n}</b>") for n in range(10)]),
    "surrogate.jsonl": b'{"en": "a\\ud800", "ko": "b"}\n' * 30,
    "ls.tsv": tsv([(f"{source}\u2028again", target) for source, target in PAIRS]),
    "short.en": b"one\n" * 30,
    "short.ko": "하나\n".encode() * 29,
    "cp949.srt": "1\n00:00:01,000 --> 00:00:02,000\n나는 one.\n".encode("cp949"),
    "cp949.txt": "나는 one.\n나는 two 간다.\n".encode("cp949"),
    "cp949-terms.tsv": "one\t하나입니다\n".encode("cp949"),
    "utf16.txt": "one two.\r\n".encode("utf-16"),
    "euckr.html": '<meta charset="euc-kr"><p>나는 one 간다.</p>'.encode("cp949"),
    "lines.txt.gz": gzip.compress(b"one\ntwo\n"),
    "empty.docx": b"",
    "digits.tsv": tsv([(source, target) for source, target, _ in digit_lines(20)]),
    "swapped_digits.tsv": tsv([(target, source) for source, target, _ in digit_lines(20)]),
}  # fmt: skip

TINY_OPTIONS = " ".join(f"--set {name}={value}" for name, value in TINY.items())
# Advice that must not be given. Every file can be decoded as Latin-1, but the text may then be wrong.
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
    Attempt(32, "check mojibake.tsv", 1, ("refused: no pair is left", "mojibake")),
    Attempt(33, "check mojibake.tsv --from en --to ko", 1, ("mojibake",)),
    Attempt(151, "check -", 0, ("standard input: 400 pairs",), stdin=FILES["small.tsv"]),
    Attempt(153, "check small.tsv ten.tsv nul.tsv", 0, ("small.tsv: 400 pairs", "ten.tsv: 10 pairs")),
    Attempt(154, "check small.tsv:2.5", 0, ("weight 2.5",)),
    # Attempts of a person who translates for a company.
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
    Attempt(83, "train small.tsv --out RUN --minutes 1e9", 2, ("train: --minutes: ", "less than or equal")),
    Attempt(
        98, f"train small.tsv --out RUN --attention bahdanau {TINY_OPTIONS}", 0, ("finished",), slow=True
    ),
    Attempt(104, "train small.tsv --out foreign", 2, ("foreign is not empty", "Received: notes.txt")),
    Attempt(143, "train small.tsv --out RUN --minutes 1e9", 2, ("train: --minutes: ", "less than or equal")),
    Attempt(0, "train cp949.tsv --out RUN", 2, ("add --encoding cp949",), LATIN1),
    Attempt(0, "train doc.docx --out RUN", 2, ("a Word document",)),
    Attempt(0, "train --out RUN", 2, ("Name the sentence pairs to train on",)),
    Attempt(0, "finish RUN", 2, ("is not a run folder",)),
    Attempt(0, "finish MODEL", 2, ("is not a run folder",)),
]
# Attempts with a trained model, and a few others. Most of them translate.
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
    Attempt(44, "translate MODEL", 0, ("was cut at",), stdin=b"a" * 1_000_000 + b"\n", slow=True),
    Attempt(59, "look MODEL ''", 2, ("The sentence is empty",)),
    Attempt(60, "look MODEL '   '", 2, ("The sentence is empty",)),
    Attempt(61, "look MODEL '🙂 one'", 0, ("🙂",)),
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
    Attempt(110, "translate DAMAGED:flipped-weights", 2, ("weights.safetensors cannot be used", "sha256")),
    Attempt(111, "info DAMAGED:flipped-weights", 2, ("weights.safetensors cannot be used", "sha256")),
    Attempt(112, "translate DAMAGED:flipped-tokens", 2, ("pieces.model cannot be used", "sha256")),
    Attempt(113, "translate DAMAGED:edited-card", 2, ("jumok.json cannot be used", "checksum")),
    Attempt(114, "translate DAMAGED:short-weights", 2, ("weights.safetensors cannot be used", "instead of")),
    Attempt(115, "translate DAMAGED:short-card", 2, ("jumok.json cannot be used: it is not JSON",)),
    Attempt(116, "translate DAMAGED:empty-card", 2, ("jumok.json cannot be used: it is not JSON",)),
    Attempt(117, "translate DAMAGED:no-card", 2, ("is not a jumok model folder (no jumok.json)",)),
    Attempt(118, "translate DAMAGED:no-tokens", 2, ("pieces.model cannot be used: it is missing",)),
    Attempt(119, "translate DAMAGED:no-weights", 2, ("weights.safetensors cannot be used: it is missing",)),
    Attempt(120, "translate DAMAGED:newer", 2, ("newer jumok",)),
    Attempt(121, "translate DAMAGED:more-files", 0, stdin=b"one\n"),
    Attempt(122, "translate DAMAGED:link", 0, stdin=b"one\n"),
    Attempt(123, "translate loop", 2, ("There is no folder loop",), ("Errno",)),
    Attempt(125, "translate huggingface", 2, ("no jumok.json", "Received: config.json"), stdin=b"one\n"),
    Attempt(126, "translate ctranslate2", 2, ("no jumok.json", "Received: model.bin"), stdin=b"one\n"),
    Attempt(129, "look RECURRENT 'two four.'", 0, ("two", "≥ 0.05")),
    Attempt(130, "shortlist RECURRENT small.tsv", 2, ("ecurrent",)),
    Attempt(148, "translate MODEL", 0, ("line 1: ", "capital letters"), stdin=b"ONE TWO THREE FOUR.\n"),
    Attempt(150, "translate MODEL", 0, ("has tags", "a .html file"), stdin=b"<p>one <b>two</b>.</p>\n"),
    Attempt(155, "models", 0, ("families (--model)",)),
    Attempt(124, "translate small.tsv", 2, ("is a file",), stdin=b"one\n"),
    Attempt(127, "translate nowhere/modell", 2, ("There is no folder nowhere/modell",), stdin=b"one\n"),
    Attempt(128, "translate Helsinki-NLP/opus-mt-en-de", 2, ("There is no folder",), stdin=b"one\n"),
    Attempt(133, "evaluate MODEL sentences.txt", 2, ("sentences.txt",), ("decoder-only",)),
    Attempt(131, "evaluate MODEL empty.tsv", 2, ("holds no sentence pairs",)),
    Attempt(132, "evaluate MODEL cp949.tsv", 2, ("add --encoding cp949",), LATIN1),
    Attempt(149, "translate MODEL", 0, ("line 1: ", "not written in the script of English"),
            stdin="하나 둘\n".encode()),
    # Attempts that were added later: encodings, tables, compressed files, arguments in another order.
    Attempt(0, "translate MODEL -", 0, stdin=b"one\n"),
    Attempt(0, "translate small.tsv MODEL", 2, ("The model comes first: jumok translate ",)),
    Attempt(0, "translate MODEL lines.txt.gz", 0),
    Attempt(0, "translate MODEL nine.tsv", 0, ("nine.tsv is a table", "with separators")),
    Attempt(0, "translate MODEL nine.tsv --out a.tsv", 2, (".tsv files cannot be tr", "save it as .xlsx")),
    Attempt(0, "check https://example.com/pairs.tsv", 2, ("There is no file https://", "Download it first")),
    Attempt(0, "translate MODEL empty.docx --out new.docx", 2, ("empty.docx is empty.",)),
    Attempt(0, "translate MODEL cp949.srt --out a.srt", 2,
            ("not UTF-8 text (line 3)", "CP949 (Korean)", "add --encoding cp949"), LATIN1),
    Attempt(0, "translate MODEL cp949.srt --out b.srt --encoding cp949", 0),
    Attempt(0, "translate MODEL euckr.html --out b.html --encoding euc-kr", 0),
    Attempt(0, "translate MODEL utf16.txt --out b.txt", 0),
    Attempt(0, "translate MODEL cp949.txt --encoding cp949", 0),
    Attempt(0, "translate MODEL --encoding cp949", 0, stdin="나는 one.\n".encode("cp949")),
    Attempt(0, "translate MODEL --encoding cp949", 2, ("standard input is UTF-8 text",),
            stdin="é\n".encode()),
    Attempt(0, "translate MODEL --encoding cp949", 2, ("standard input is not cp949",),
            stdin=b"one \xff\xff\n"),
    Attempt(0, "translate MODEL --encoding nonsense", 2, ("no encoding 'nonsense'",), stdin=b"one\n"),
    Attempt(0, "translate MODEL --glossary cp949-terms.tsv", 2, ("add --encoding cp949",), stdin=b"one\n"),
    Attempt(0, "translate MODEL --glossary cp949-terms.tsv --encoding cp949", 0, stdin=b"one\n"),
    Attempt(0, "translate MODEL --glossary nofile.tsv", 2, ("There is no glossary nofile.tsv",)),
    Attempt(0, "translate MODEL --sentences paragraph", 2, ("sentences is split or keep",), stdin=b"one\n"),
    Attempt(0, "serve MODEL --glossary terms.tsv", 2, ("--glossary takes NAME=FILE",)),
    Attempt(156, "translate MODEL", 2, ("line 2, byte 1", "lines around it are UTF-8"), LATIN1,
            "é\n".encode() + "나쁜\n".encode("cp949") + "é ü\nö\n".encode()),
]  # fmt: skip

ATTEMPTS = [*CHECKS, *TRAINING, *TRANSLATING]


SHELL_ATTEMPTS = [
    ShellAttempt(47, "echo one | jumok translate MODEL > /dev/full", ("disk is full",), 2),
    ShellAttempt(48, '(jumok train --help; echo "exit $?" >&2) | head -1', ("exit ", "Usage: jumok train")),
    ShellAttempt(49, '(jumok corpus english-korean; echo "exit $?" >&2) | head -1', ("exit ", "en ko")),
    ShellAttempt(50, "echo two four. | LC_ALL= LANG=C jumok translate KOREAN", ("이 사.",)),
    ShellAttempt(
        51, "echo two four. | PYTHONUTF8=0 PYTHONIOENCODING=ascii jumok translate KOREAN", ("이 사.",)
    ),
    ShellAttempt(52, "LC_ALL=C jumok look KOREAN 'two four.'", ("이 사.", "≥ 0.05")),
    ShellAttempt(
        53, "echo two four. | env -u HOME -u JUMOK_CACHE XDG_CACHE_HOME=$PWD jumok translate KOREAN",
        ("이 사.",),
    ),
    ShellAttempt(
        54, "echo two four. | env -u JUMOK_CACHE HOME=$PWD/missing jumok translate KOREAN", ("이 사.",)
    ),
    ShellAttempt(
        55, "echo two four. | env -u JUMOK_CACHE HOME=/proc jumok translate KOREAN",
        ("이 사.", "could not be written"),
    ),
    ShellAttempt(
        56, "echo two four. | env -u JUMOK_CACHE HOME=$PWD/jumok jumok translate KOREAN",
        ("이 사.", "could not be written"),
    ),
    ShellAttempt(57, "NO_COLOR=1 jumok look KOREAN 'two four.'", ("이 사.", "≥ 0.05")),
    ShellAttempt(58, "COLUMNS=20 jumok train --help", ("Usage: jumok train",)),
]  # fmt: skip

# Number of an attempt for which a row of a table is not enough → the test that makes this attempt.
TEST_OF_ATTEMPT: dict[int, str] = {
    43: "tests/cli/test_cli_newcomer.py::test_no_sentence_of_a_line_is_lost",
    45: "tests/cli/test_cli_translate.py::test_a_closed_pipe_is_not_an_error_of_a_translation",
    46: "tests/cli/test_cli_streams.py::test_closed_streams_are_errors_of_a_translation",
    62: "tests/cli/test_cli_look_info.py::test_look_refuses_a_sentence_that_is_too_long_for_the_model",
    68: "tests/cli/test_cli_newcomer.py::test_the_error_for_a_sentence_as_an_argument_says_how_to_pipe_it",
    86: "tests/cli/test_cli_newcomer.py::test_training_ends_at_the_first_of_several_limits",
    95: "tests/cli/test_cli_newcomer.py::test_a_vocabulary_larger_than_the_text_allows_is_made_smaller",
    100: "tests/cli/test_cli_newcomer.py::test_a_learning_rate_of_1000_ends_with_advice_and_no_model",
    134: "tests/cli/test_cli_evaluate.py::test_swapped_sides_are_refused_if_no_file_name_has_a_language",
    135: "tests/cli/test_cli_train.py::test_a_disk_that_becomes_full_leaves_no_incomplete_folder",
    136: "tests/cli/test_cli_train.py::test_a_disk_that_is_full_from_the_start_is_reported",
    137: "tests/inference/test_engine_loading.py::test_a_cache_that_cannot_be_written_is_reported",
    138: "tests/test_storage.py::test_a_failing_disk_leaves_no_files",  # EROFS: a read-only disk
    139: "tests/test_storage.py::test_write_file_replaces_the_file_or_leaves_it_alone",
    140: "tests/inference/test_engine_loading.py::test_a_cache_that_cannot_be_written_is_reported",
    141: "tests/cli/test_cli_newcomer.py::test_files_and_folders_without_permission_are_named",
    142: "tests/cli/test_cli_newcomer.py::test_files_and_folders_without_permission_are_named",
    144: "tests/cli/test_cli_newcomer.py::test_200_000_lines_give_200_000_translations",
    145: "tests/cli/test_cli_newcomer.py::test_no_sentence_of_a_line_is_lost",
    146: "tests/cli/test_cli_newcomer.py::test_no_sentence_of_a_line_is_lost",
    147: "tests/cli/test_cli_newcomer.py::test_no_sentence_of_a_line_is_lost",
    152: "tests/cli/test_cli_newcomer.py::test_training_ends_at_the_first_of_several_limits",
}

# Name of a fault in the review → the test that would fail if the fault returned. Comments have the numbers of
# the attempts that show the fault.
TEST_OF_FAULT: dict[str, str] = {
    "A1": "tests/server/test_same_translation.py::test_every_interface_gives_the_same_translation",
    "A2": "tests/cli/test_cli_evaluate.py::test_a_baseline_of_another_direction_is_refused",
    "A3": "tests/cli/test_cli_shortlist.py::"
    "test_pairs_of_a_model_trained_with_valid_are_not_mistaken_for_held_out_pairs",
    # Attempts 7, 12, 32, 38, 156.
    "A4": "tests/cli/test_cli_newcomer.py::test_an_attempt_gives_its_exit_code_and_texts",
    "A5": "tests/evaluation/test_scores.py::test_a_score_does_not_depend_on_installed_packages",
    "B1": "tests/cli/test_cli_newcomer.py::test_an_interrupted_run_can_be_used_finished_and_trained_further",
    "B2": "tests/training/test_parallel.py::"
    "test_the_number_of_processes_is_chosen_by_measurement_explained_and_stored",
    "B3": "tests/cli/test_cli_newcomer.py::test_the_readme_installs_the_build_of_pytorch_for_cpus_first",
    "B4": "tests/cli/test_cli_newcomer.py::test_a_translation_memory_is_trained_on",
    # Attempts 2, 14, 15, 20 and `check swapped.en-ko.tsv`.
    "B5": "tests/cli/test_cli_newcomer.py::test_an_attempt_gives_its_exit_code_and_texts",
    "B6": "tests/server/test_serve_workers.py::"
    "test_a_port_of_a_server_that_is_still_loading_models_is_reported_at_once",
    "B7": "tests/cli/test_cli_display.py::test_a_narrow_terminal_shows_the_bar_and_fewer_facts",
    "B8": "tests/cli/test_cli_translate.py::test_the_time_left_is_computed_from_all_lines_so_far",
    "C1": "tests/data/test_measured_points.py::test_the_points_with_the_nearest_numbers_of_pairs_come_first",
    "C2": "tests/training/test_run.py::test_a_time_budget_that_is_too_short_is_reported",
    "C3": "tests/cli/test_cli_newcomer.py::test_a_learning_rate_of_1000_ends_with_advice_and_no_model",
    "C4": "tests/cli/test_cli_newcomer.py::test_a_vocabulary_larger_than_the_text_allows_is_made_smaller",
    "C5": "tests/training/test_detectors.py::test_odd_tokens_are_called_usual_in_a_small_corpus",
    "C6": "tests/inference/test_translator.py::test_notes_say_what_may_be_wrong_with_a_translation",
    # Attempt 88.
    "C7": "tests/cli/test_cli_newcomer.py::test_an_attempt_gives_its_exit_code_and_texts",
    # Attempts 70, 75, 76, 78 to 87, 109.
    "C8": "tests/cli/test_cli_newcomer.py::test_an_attempt_gives_its_exit_code_and_texts",
    "C9": "tests/cli/test_cli_newcomer.py::test_the_error_for_a_sentence_as_an_argument_says_how_to_pipe_it",
    # Attempts 17, 24, 26 and `check semicolon.csv`.
    "C10": "tests/cli/test_cli_newcomer.py::test_an_attempt_gives_its_exit_code_and_texts",
    "C11": "tests/data/test_pair_formats.py::test_downloads_of_opus_and_tatoeba_are_read",
    "C12": "tests/cli/test_cli_newcomer.py::test_a_translation_memory_is_trained_on",
    "C13": "tests/inference/test_translator.py::test_invalid_arguments_are_refused",
    "C14": "tests/server/test_serve_options.py::test_a_model_of_plain_text_is_refused_with_its_task",
    "C15": "tests/cli/test_cli_newcomer.py::test_training_ends_at_the_first_of_several_limits",
    "C16": "tests/cli/test_cli_newcomer.py::"
    "test_a_run_that_failed_before_its_first_checkpoint_says_that_it_starts_again",
}
