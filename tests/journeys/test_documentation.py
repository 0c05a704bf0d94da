"""The commands and the Python code of the documentation work, and its links and pictures are up to date.

The blocks `sh` and `python` of each page of PAGES_TO_RUN run in order, except those below
`<!-- not run: reason -->`. Each page has a folder of its own, which at first has only the files that
FILES_OF_READER lists. Training time and number of pairs are reduced.

In docs/explain each Python block runs separately, in this process. A `text` block directly below a Python
block is its expected output. Training commands of docs/explain run only up to the check of their model.
Other commands of docs/explain are not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import torch

from jumok.cli import main
from jumok.errors import JumokError
from jumok.models.validate import check_overrides

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parent.parent.parent
PAGES_TO_RUN = ("README.md", "docs/tutorial.md", "docs/pictures.md", "docs/models.md", "docs/texts.md")
FILES_OF_READER = {
    "docs/models.md": {"opus.zip": "tests/interop/stored/classic.zip"},
    "docs/texts.md": {"runs/mine/model": "tests/stored/models/transformer"},
}
"""Files and folders that the reader of a page already has: name on the page → path in the project."""
EXPLAIN = PROJECT / "docs" / "explain"
EXPLAIN_PAGES = tuple(sorted(f"docs/explain/{path.name}" for path in EXPLAIN.glob("*.md")))
ENGLISH_EXPLAIN_PAGES = tuple(name for name in EXPLAIN_PAGES if not name.endswith(".ko.md"))
"""Korean pages have the same code (tests/docs/test_two_languages.py)."""
PAGES_WITH_LINKS = tuple(
    sorted(str(path.relative_to(PROJECT)) for path in (*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")))
)
MINUTES, MAX_PAIRS = "0.05", 1000
TIMEOUT_SECONDS = 300

FENCED = re.compile(
    r"(?:<!-- not run: (?P<reason>.+?) -->\s*\n)?^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.M | re.S
)
OUTPUT_BELOW = re.compile(r"\s*^```text\n(?P<text>.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """The number of the line with the opening fence."""
    skip_reason: str = ""
    expected_output: str | None = None
    """The expected output, from a `text` block directly below."""


def blocks_of(page: str) -> list[Block]:
    blocks = []
    for fence in FENCED.finditer(page):
        output = OUTPUT_BELOW.match(page, fence.end())
        blocks.append(
            Block(
                fence["language"],
                fence["text"],
                page.count("\n", 0, fence.start("text")),
                fence["reason"] or "",
                output["text"] if output else None,
            )
        )
    return blocks


def blocks_to_run(page: str) -> list[Block]:
    return [
        block for block in blocks_of(page) if block.language in {"sh", "python"} and not block.skip_reason
    ]


def with_little_training(text: str) -> str:
    """Return the same commands with few pairs and a few seconds of training.

    `jumok train` without --minutes gets this option too.
    """
    text = re.sub(r"(--count[ =])(\d+)", lambda match: f"{match[1]}{min(int(match[2]), MAX_PAIRS)}", text)
    text = re.sub(r"(--minutes[ =]|\bminutes=)[\d.]+", rf"\g<1>{MINUTES}", text)
    return re.sub(
        r"^(jumok train (?!.*--minutes)[^\n|>#]*[^\n|>#\s\\])", rf"\1 --minutes {MINUTES}", text, flags=re.M
    )


def run_block(block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    text = with_little_training(block.text)
    shell = ["bash", "-euo", "pipefail", "-c", text]
    command = shell if block.language == "sh" else [sys.executable, "-c", text]
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "docs/pictures.md" else name
        for name in PAGES_TO_RUN
        if (PROJECT / name).exists()
    ],
)
def test_the_commands_of_a_page_work(name: str, tmp_path: Path) -> None:
    for name_on_page, original in FILES_OF_READER.get(name, {}).items():
        copy = shutil.copytree if (PROJECT / original).is_dir() else shutil.copy
        copy(PROJECT / original, tmp_path / name_on_page)
    for block in blocks_to_run((PROJECT / name).read_text(encoding="utf-8")):
        result = run_block(block, tmp_path)
        if result.returncode:
            pytest.fail(
                f"{name}, line {block.line}: this block ends with exit code {result.returncode}.\n\n"
                f"{block.text}\n--- output\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
            )


@pytest.mark.parametrize("name", PAGES_WITH_LINKS)
def test_links_are_not_dead(name: str) -> None:
    page = (PROJECT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page) + re.findall(
        r'(?:src|href)="(?!\w+:|#)([^"#]+)"', page
    )
    dead = [link for link in links if not (PROJECT / name).parent.joinpath(link).exists()]
    assert dead == [], f"{name} has dead links: {dead}"


def test_sources_and_tests_that_contributing_names_exist() -> None:
    """`tests/test_architecture.py` checks the other paths in the tables of the page."""
    page = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    page = re.sub(
        r"^### An exercise.*?(?=^##|\Z)", "", page, flags=re.M | re.S
    )  # the reader creates the file of the exercise
    paths = re.findall(r"`((?:src|tests)/[\w./]*)`", page)
    missing = [path for path in paths if not (PROJECT / path).exists()]
    assert missing == [], f"CONTRIBUTING.md names missing files: {missing}"


def test_pictures_of_the_korean_readme_are_described_in_korean() -> None:
    descriptions = re.findall(r"!\[([^\]]*)\]", (PROJECT / "README.ko.md").read_text(encoding="utf-8"))
    assert descriptions
    assert [text for text in descriptions if re.search(r"[A-Za-z]{3}", text)] == []


# --- The pages of docs/explain ------------------------------------------------------------------------------


def run_python_block(block: Block, name: str) -> str:
    """Run a block on its own and return what it prints. Tracebacks have the line number of the page."""
    program = compile("\n" * block.line + block.text, name, "exec", dont_inherit=True)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(program, {"__name__": "__main__"})
    return output.getvalue()


def trim_lines(text: str) -> list[str]:
    """Return the lines without trailing whitespace."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


@pytest.fixture
def clean_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the test in an empty folder. Then restore torch's random state, gradient mode and print options."""
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        yield
    torch.set_printoptions(profile="default")


def explanation_blocks(language: str) -> list[Any]:
    return [
        pytest.param(name, block, id=f"{Path(name).stem}:{block.line}")
        for name in ENGLISH_EXPLAIN_PAGES
        for block in blocks_to_run((PROJECT / name).read_text(encoding="utf-8"))
        if block.language == language
    ]


@pytest.mark.usefixtures("clean_state")
@pytest.mark.parametrize(("name", "block"), explanation_blocks("python"))
def test_the_python_code_of_an_explanation_prints_the_text_below_it(name: str, block: Block) -> None:
    printed = run_python_block(block, name)
    if block.expected_output is not None:
        assert trim_lines(printed) == trim_lines(block.expected_output), f"{name}, line {block.line}"


@pytest.mark.parametrize(("name", "block"), explanation_blocks("sh"))
def test_the_models_in_the_commands_of_an_explanation_can_be_built(
    name: str, block: Block, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    recipes = []

    def record_recipe(*_: object, recipe: Any, **__: object) -> NoReturn:
        recipes.append(recipe)
        raise JumokError("Nothing is trained here.")

    monkeypatch.setattr("jumok.training.run.training_run.training_events", record_recipe)
    lines = block.text.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("jumok train ")]
    for command in commands:
        with pytest.raises(SystemExit):
            main(command[1:])
    assert len(recipes) == len(commands), f"{name}, line {block.line}: {capfd.readouterr().err}"
    for overrides in recipes:
        check_overrides(overrides)  # raises an error if the model cannot be built


def test_every_explanation_is_in_the_index() -> None:
    index = (EXPLAIN / "index.md").read_text(encoding="utf-8")
    missing = [name for name in ENGLISH_EXPLAIN_PAGES if f"]({Path(name).name})" not in index]
    assert missing == ["docs/explain/index.md"]  # the index itself


WEIGHT = re.compile(r"<title>(?P<words>[^<]*): (?P<weight>\d\.\d{4})</title>")


def weights_in(picture: str) -> dict[str, list[float]]:
    """Return the attention weights in the titles of an SVG picture, by the words that they connect."""
    weights: dict[str, list[float]] = {}
    for cell in WEIGHT.finditer(picture):
        weights.setdefault(cell["words"], []).append(float(cell["weight"]))
    return weights


def draw_again(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Run a script of docs/explain, check that every picture that it draws is on a page, and return them."""
    monkeypatch.syspath_prepend(EXPLAIN)  # as Python does for a script that is started with `python`
    runpy.run_path(str(EXPLAIN / script))["draw_all"](folder)
    pages = "".join((PROJECT / name).read_text(encoding="utf-8") for name in EXPLAIN_PAGES)
    drawn = sorted(folder.glob("*.svg"))
    assert len(drawn) > 10
    assert [path.name for path in drawn if f"](pictures/{path.name})" not in pages] == []
    return drawn


def test_pictures_of_weights_are_up_to_date_and_on_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words must be equal; weights may differ in the last digit between processors."""
    for path in draw_again("draw_pictures.py", tmp_path, monkeypatch):
        stored, new = EXPLAIN / "pictures" / path.name, weights_in(path.read_text(encoding="utf-8"))
        expected = weights_in(stored.read_text(encoding="utf-8"))
        assert expected.keys() == new.keys(), f"{path.name}: run docs/explain/draw_pictures.py"
        for words, weights in new.items():
            assert expected[words] == pytest.approx(weights, abs=2e-4), f"{path.name}, {words}"


NUMBER = re.compile(r"\d+\.?\d*")


@pytest.mark.parametrize("script", ["draw_concepts.py", "draw_diagrams.py"])
def test_drawings_without_weights_are_up_to_date_and_on_a_page(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in draw_again(script, tmp_path, monkeypatch):
        new, stored = (
            picture.read_text(encoding="utf-8") for picture in (path, EXPLAIN / "pictures" / path.name)
        )
        assert NUMBER.sub("", new) == NUMBER.sub("", stored), f"{path.name}: run docs/explain/{script}"
        new_numbers, stored_numbers = (
            [float(number) for number in NUMBER.findall(picture)] for picture in (new, stored)
        )
        assert new_numbers == pytest.approx(stored_numbers, abs=0.11), (
            path.name
        )  # rounded to a tenth of a pixel


LATIN_LABEL = re.compile(r"<text[^>]*>([^<]*[A-Za-z]{3}[^<]*)</text>")


def test_every_label_of_a_korean_picture_is_in_korean() -> None:
    """In a Korean picture only words of example sentences, names and symbols are written in Latin letters."""
    allowed_words = set(WORDS_OF_EXAMPLES.split())
    for path in (EXPLAIN / "pictures").glob("*.ko.svg"):
        for text in LATIN_LABEL.findall(path.read_text(encoding="utf-8")):
            unknown = set(re.findall(r"[A-Za-z]{3,}", unescape(text))) - allowed_words
            assert not unknown, f"{path.name}: {text} is not in docs/explain/korean_labels.py"


# "Zhangg" and "Smole" are misspelled names that the picture look-up-names looks up.
WORDS_OF_EXAMPLES = """
    home now read two books the library today It is in this spirit that majority of American governments have
    passed new laws since making registration or voting process more difficult The Law will never perfect but
    its application should just Zhang Aston Lipton Zachary Smola Alex Rachel Werness Brent Zhangg Smole
    Nadaraya Watson LSTM RNN local dot general post pre norm sin tanh
"""


@pytest.mark.parametrize("page", ["before-attention", "block", "cost", "graph", "multi-head", "offspring"])
def test_a_page_about_an_idea_has_a_picture(page: str) -> None:
    assert "](pictures/" in (EXPLAIN / f"{page}.md").read_text(encoding="utf-8")


# --- Tests of this file itself ------------------------------------------------------------------------------

PAGE = """
# A page

```sh
jumok corpus english-korean > pairs.tsv
```

<!-- not run: installs the package -->
```sh
pip install jumok
```

```text
not a command
```

<!-- not run: needs an hour -->

```python
sleep(3600)
```

```python
print("yes")
```
"""


def test_blocks_are_found_in_order_with_their_line() -> None:
    assert [(block.language, block.skip_reason, block.line) for block in blocks_of(PAGE)] == [
        ("sh", "", 4),
        ("sh", "installs the package", 9),
        ("text", "", 13),
        ("python", "needs an hour", 19),
        ("python", "", 23),
    ]
    assert [block.text for block in blocks_to_run(PAGE)] == [
        "jumok corpus english-korean > pairs.tsv\n",
        'print("yes")\n',
    ]


PAGE_WITH_OUTPUT = """
```python
print("yes")
```

```text
yes
```

```python
print("no")
```

Some words between.

```text
yes
```

```python
raise ValueError("why")
```
"""


def test_only_a_text_block_directly_below_is_the_expected_output() -> None:
    blocks = blocks_to_run(PAGE_WITH_OUTPUT)
    assert [block.expected_output for block in blocks] == ["yes\n", None, None]
    assert [run_python_block(block, "page") for block in blocks[:2]] == ["yes\n", "no\n"]


def test_an_error_in_a_block_has_the_line_number_of_the_page() -> None:
    failing = blocks_to_run(PAGE_WITH_OUTPUT)[2]
    assert PAGE_WITH_OUTPUT.splitlines()[failing.line].startswith("raise")
    with pytest.raises(ValueError, match="why") as raised:
        run_python_block(failing, "page")
    assert raised.traceback[-1].lineno == failing.line


@pytest.mark.parametrize(
    ("original", "reduced"),
    [
        ("jumok train a.tsv --out r\n", "jumok train a.tsv --out r --minutes 0.05\n"),
        ("jumok train a.tsv --out r --minutes 45", "jumok train a.tsv --out r --minutes 0.05"),
        (
            "jumok train a.tsv --out r  # two commands",
            "jumok train a.tsv --out r --minutes 0.05  # two commands",
        ),
        ("jumok demo --minutes=3", "jumok demo --minutes=0.05"),
        ('jumok.train("a.tsv", out="r", minutes=5)', 'jumok.train("a.tsv", out="r", minutes=0.05)'),
        ("jumok corpus english-korean --count 20000 > p", "jumok corpus english-korean --count 1000 > p"),
        ("jumok translate runs/mine/model", "jumok translate runs/mine/model"),
    ],
)
def test_training_time_and_pairs_of_a_command_are_reduced(original: str, reduced: str) -> None:
    assert with_little_training(original) == reduced


def test_run_block_returns_the_exit_code_of_a_failing_block(tmp_path: Path) -> None:
    assert run_block(Block("sh", "false\ntrue\n", 1), tmp_path).returncode != 0
    assert run_block(Block("sh", "false | true\n", 1), tmp_path).returncode != 0
    assert run_block(Block("python", "raise SystemExit(3)", 1), tmp_path).returncode == 3
    assert (
        run_block(Block("sh", "python -c 'import jumok' && jumok --version\n", 1), tmp_path).returncode == 0
    )
