"""What the documents tell a reader to type is typed here, in order, in an empty folder.

Blocks marked `sh` and `python` are run; those below `<!-- not run: reason -->` are not. Only the time that
training may take is cut down. Links to files must lead somewhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
RUN = ("README.md", "README.ko.md", "docs/tutorial.md")
LINKED = (*RUN, "CONTRIBUTING.md", "CHANGELOG.md", "docs/index.md", "docs/design.md")
MINUTES, MOST_PAIRS = "0.05", 1000
LONGEST_SECONDS = 300

FENCED = re.compile(
    r"(?:<!-- not run: (?P<reason>.+?) -->\s*\n)?^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    not_run: str = ""


def blocks_of(page: str) -> list[Block]:
    return [
        Block(
            found["language"], found["text"], page.count("\n", 0, found.start("text")), found["reason"] or ""
        )
        for found in FENCED.finditer(page)
    ]


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
    named = re.findall(r"`((?:src|tests)/[\w./]*)`", page)
    missing = [path for path in named if not (PROJECT / path).exists()]
    assert missing == [], f"CONTRIBUTING.md names what is not there: {missing}"


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
