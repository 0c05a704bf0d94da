"""What the documents tell a reader to type is typed here, in order, in an empty folder.

Blocks marked `sh` and `python` are run; those below `<!-- not run: reason -->` are not. Only the time that
training may take is cut down. Links to files must lead somewhere.

In the explanations each Python block stands for itself and is run in this process. A `text` block directly
below it is what it prints. Their training commands are read up to the model that they ask for.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import torch

from jumok.cli import main
from jumok.errors import JumokError
from jumok.models import check_model

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parent.parent.parent
RUN = ("README.md", "docs/tutorial.md")
EXPLAIN = PROJECT / "docs" / "explain"
EXPLAINED = tuple(sorted(f"docs/explain/{path.name}" for path in EXPLAIN.glob("*.md")))
LINKED = (
    *RUN,
    "README.ko.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/index.md",
    "docs/design.md",
    *EXPLAINED,
)
MINUTES, MOST_PAIRS = "0.05", 1000
LONGEST_SECONDS = 300

FENCED = re.compile(
    r"(?:<!-- not run: (?P<reason>.+?) -->\s*\n)?^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.M | re.S
)
SHOWN_BELOW = re.compile(r"\s*^```text\n(?P<text>.*?)^```", re.M | re.S)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    not_run: str = ""
    prints: str | None = None
    """What a `text` block directly below says that it prints."""


def blocks_of(page: str) -> list[Block]:
    blocks = []
    for found in FENCED.finditer(page):
        below = SHOWN_BELOW.match(page, found.end())
        blocks.append(
            Block(
                found["language"],
                found["text"],
                page.count("\n", 0, found.start("text")),
                found["reason"] or "",
                below["text"] if below else None,
            )
        )
    return blocks


def blocks_to_run(page: str) -> list[Block]:
    return [block for block in blocks_of(page) if block.language in {"sh", "python"} and not block.not_run]


def in_little_time(text: str) -> str:
    """The same commands with seconds to train, whether a time was given or not, and few pairs."""
    text = re.sub(r"(--count[ =])(\d+)", lambda found: f"{found[1]}{min(int(found[2]), MOST_PAIRS)}", text)
    text = re.sub(r"(--minutes[ =]|\bminutes=)[\d.]+", rf"\g<1>{MINUTES}", text)
    return re.sub(
        r"^(jumok train (?!.*--minutes)[^\n|>#]*[^\n|>#\s\\])", rf"\1 --minutes {MINUTES}", text, flags=re.M
    )


def run_block(block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    text = in_little_time(block.text)
    shell = ["bash", "-euo", "pipefail", "-c", text]
    command = shell if block.language == "sh" else [sys.executable, "-c", text]
    beside_python = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{beside_python}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.medium
@pytest.mark.parametrize("name", [name for name in RUN if (PROJECT / name).exists()])
def test_what_a_document_tells_to_type_works(name: str, tmp_path: Path) -> None:
    for block in blocks_to_run((PROJECT / name).read_text(encoding="utf-8")):
        done = run_block(block, tmp_path)
        if done.returncode:
            pytest.fail(
                f"{name}, line {block.line}: this block ends with exit code {done.returncode}.\n\n"
                f"{block.text}\n--- it said\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
            )


def test_the_korean_page_tells_to_type_what_the_english_one_does() -> None:
    """But for comments: so that it is enough to type what one of them tells."""
    english, korean = (
        [(block.language, re.sub(r"\s*#.*", "", block.text)) for block in blocks_to_run(page)]
        for page in ((PROJECT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md"))
    )
    assert english
    assert korean == english


@pytest.mark.parametrize("name", [name for name in LINKED if (PROJECT / name).exists()])
def test_links_lead_somewhere(name: str) -> None:
    page = (PROJECT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page) + re.findall(
        r'(?:src|href)="(?!\w+:|#)([^"#]+)"', page
    )
    dead = [link for link in links if not (PROJECT / name).parent.joinpath(link).exists()]
    assert dead == [], f"{name} links to what is not there: {dead}"


def test_files_that_the_map_of_the_house_names_exist() -> None:
    page = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    page = re.sub(r"^### An exercise.*?(?=^##|\Z)", "", page, flags=re.M | re.S)  # its file is the reader's
    named = re.findall(r"`((?:src|tests)/[\w./]*)`", page)
    missing = [path for path in named if not (PROJECT / path).exists()]
    assert missing == [], f"CONTRIBUTING.md names what is not there: {missing}"


# --- The explanations ---------------------------------------------------------------------------------------


def printed_by(block: Block, name: str) -> str:
    """What a block prints when it is all that there is. Errors in it tell its line of the page."""
    program = compile("\n" * block.line + block.text, name, "exec", dont_inherit=True)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(program, {"__name__": "__main__"})
    return said.getvalue()


def trimmed(text: str) -> list[str]:
    """The lines without what nobody sees at their ends."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


@pytest.fixture
def nothing_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, and afterwards torch as it was: its random numbers, gradients and way of printing."""
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        yield
    torch.set_printoptions(profile="default")


def explained_blocks(language: str) -> list[Any]:
    return [
        pytest.param(name, block, id=f"{Path(name).stem}:{block.line}")
        for name in EXPLAINED
        for block in blocks_to_run((PROJECT / name).read_text(encoding="utf-8"))
        if block.language == language
    ]


@pytest.mark.usefixtures("nothing_left_behind")
@pytest.mark.parametrize(("name", "block"), explained_blocks("python"))
def test_the_python_of_an_explanation_prints_what_stands_below_it(name: str, block: Block) -> None:
    printed = printed_by(block, name)
    if block.prints is not None:
        assert trimmed(printed) == trimmed(block.prints), f"{name}, line {block.line}"


@pytest.mark.parametrize(("name", "block"), explained_blocks("sh"))
def test_models_that_an_explanation_tells_to_train_can_be_built(
    name: str, block: Block, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def take_note(*_: object, recipe: Any, **__: object) -> NoReturn:
        asked.append(recipe)
        raise JumokError("Nothing is trained here.")

    monkeypatch.setattr("jumok.training.training_events", take_note)
    lines = block.text.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("jumok train ")]
    for command in commands:
        with pytest.raises(SystemExit):
            main(command[1:])
    assert len(asked) == len(commands), f"{name}, line {block.line}: {capfd.readouterr().err}"
    for recipe in asked:
        check_model(recipe.model)


def test_every_page_of_the_explanations_is_in_their_index() -> None:
    index = (EXPLAIN / "index.md").read_text(encoding="utf-8")
    forgotten = [name for name in EXPLAINED if f"]({Path(name).name})" not in index]
    assert forgotten == ["docs/explain/index.md"]


WEIGHT = re.compile(r"<title>(?P<words>[^<]*): (?P<weight>\d\.\d{4})</title>")


def weights_in(picture: str) -> dict[str, list[float]]:
    """The weights of a picture, by the words that they stand between."""
    found: dict[str, list[float]] = {}
    for cell in WEIGHT.finditer(picture):
        found.setdefault(cell["words"], []).append(float(cell["weight"]))
    return found


def test_pictures_are_those_that_their_script_draws_and_stand_on_a_page(tmp_path: Path) -> None:
    """Numbers may differ in the last digit from one processor to another; what is drawn may not."""
    runpy.run_path(str(EXPLAIN / "draw_pictures.py"))["draw_all"](tmp_path)
    pages = "".join((PROJECT / name).read_text(encoding="utf-8") for name in EXPLAINED)
    drawn = sorted(tmp_path.glob("*.svg"))
    assert len(drawn) > 10
    for path in drawn:
        stored, new = EXPLAIN / "pictures" / path.name, weights_in(path.read_text(encoding="utf-8"))
        assert f"](pictures/{path.name})" in pages
        kept = weights_in(stored.read_text(encoding="utf-8"))
        assert kept.keys() == new.keys(), f"{path.name}: run docs/explain/draw_pictures.py"
        for words, weights in new.items():
            assert kept[words] == pytest.approx(weights, abs=2e-4), f"{path.name}, {words}"


NUMBER = re.compile(r"\d+\.?\d*")


def test_drawings_of_ideas_are_those_that_their_script_draws_and_stand_on_a_page(tmp_path: Path) -> None:
    runpy.run_path(str(EXPLAIN / "draw_concepts.py"))["draw_all"](tmp_path)
    pages = "".join((PROJECT / name).read_text(encoding="utf-8") for name in EXPLAINED)
    drawn = sorted(tmp_path.glob("*.svg"))
    assert len(drawn) > 10
    for path in drawn:
        new, stored = (
            picture.read_text(encoding="utf-8") for picture in (path, EXPLAIN / "pictures" / path.name)
        )
        assert f"](pictures/{path.name})" in pages
        assert NUMBER.sub("", new) == NUMBER.sub("", stored), (
            f"{path.name}: run docs/explain/draw_concepts.py"
        )
        lengths = [[float(number) for number in NUMBER.findall(picture)] for picture in (new, stored)]
        assert lengths[0] == pytest.approx(lengths[1], abs=0.11), path.name  # a tenth of a pixel


@pytest.mark.parametrize("page", ["before-attention", "block", "cost", "graph", "multi-head", "offspring"])
def test_a_page_about_an_idea_has_a_picture(page: str) -> None:
    assert "](pictures/" in (EXPLAIN / f"{page}.md").read_text(encoding="utf-8")


# --- What this file itself does -----------------------------------------------------------------------------

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


def test_blocks_are_found_in_order_with_their_place() -> None:
    found = [(block.language, block.not_run, block.line) for block in blocks_of(PAGE)]
    assert found == [
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


ANSWERED = """
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


def test_only_a_text_block_directly_below_is_what_a_block_prints() -> None:
    blocks = blocks_to_run(ANSWERED)
    assert [block.prints for block in blocks] == ["yes\n", None, None]
    assert [printed_by(block, "page") for block in blocks[:2]] == ["yes\n", "no\n"]


def test_an_error_in_a_block_tells_its_line_of_the_page() -> None:
    failing = blocks_to_run(ANSWERED)[2]
    assert ANSWERED.splitlines()[failing.line].startswith("raise")
    with pytest.raises(ValueError, match="why") as raised:
        printed_by(failing, "page")
    assert raised.traceback[-1].lineno == failing.line


@pytest.mark.parametrize(
    ("written", "run"),
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
def test_training_gets_little_time(written: str, run: str) -> None:
    assert in_little_time(written) == run


def test_a_failing_block_fails(tmp_path: Path) -> None:
    assert run_block(Block("sh", "false\ntrue\n", 1), tmp_path).returncode != 0
    assert run_block(Block("sh", "false | true\n", 1), tmp_path).returncode != 0
    assert run_block(Block("python", "raise SystemExit(3)", 1), tmp_path).returncode == 3
    assert (
        run_block(Block("sh", "python -c 'import jumok' && jumok --version\n", 1), tmp_path).returncode == 0
    )


def test_pictures_of_the_korean_page_are_told_in_korean() -> None:
    told = re.findall(r"!\[([^\]]*)\]", (PROJECT / "README.ko.md").read_text(encoding="utf-8"))
    assert told
    assert [text for text in told if re.search(r"[A-Za-z]{3}", text)] == []
