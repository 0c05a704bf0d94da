"""`--valid a.en a.de` is rewritten to `--valid a.en --valid a.de` before typer parses it."""

from __future__ import annotations

import doctest
from typing import TYPE_CHECKING

import pytest

import jumok.cli.arguments
from jumok.cli.arguments import repeat_file_options

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        ("", ""),
        ("check p.tsv", "check p.tsv"),
        ("check p.tsv --valid v.en v.de", "check p.tsv --valid v.en --valid v.de"),
        ("check --valid v.en v.de p.en p.de", "check --valid v.en --valid v.de p.en p.de"),
        (
            "train p.tsv --keep k.en k.de --replay r.tsv",
            "train p.tsv --keep k.en --keep k.de --replay r.tsv",
        ),
        (
            "check p.tsv --valid v.en v.de --test t.en t.de",
            "check p.tsv --valid v.en --valid v.de --test t.en --test t.de",
        ),
        # a file that has both sides: the next argument is not a second value of the option
        ("check --valid v.tsv p.en p.de", "check --valid v.tsv p.en p.de"),
        ("check --valid v.csv p.tsv", "check --valid v.csv p.tsv"),
        ("check --valid v.jsonl p.tsv", "check --valid v.jsonl p.tsv"),
        ("check --valid v.ndjson p.tsv", "check --valid v.ndjson p.tsv"),
        ("check --valid v.TSV p.tsv", "check --valid v.TSV p.tsv"),
        ("check --valid v.tsv.gz p.tsv", "check --valid v.tsv.gz p.tsv"),
        ("check --valid v.jsonl.zst p.tsv", "check --valid v.jsonl.zst p.tsv"),
        ("check --valid v.tsv:2.5 p.tsv", "check --valid v.tsv:2.5 p.tsv"),
        ("check --valid v.tsv:1e1 p.tsv", "check --valid v.tsv:1e1 p.tsv"),
        ("check --valid -:2 p.tsv", "check --valid -:2 p.tsv"),
        ("check --valid a:b/v.tsv p.tsv", "check --valid a:b/v.tsv p.tsv"),
        ("check --valid - p.tsv", "check --valid - p.tsv"),
        # two files, one per side, with other forms of names
        ("check p.tsv --valid v.en.gz v.de.gz", "check p.tsv --valid v.en.gz --valid v.de.gz"),
        ("check p.tsv --valid v.en:2 v.de", "check p.tsv --valid v.en:2 --valid v.de"),
        ("check p.tsv --valid=v.en v.de", "check p.tsv --valid=v.en --valid v.de"),
        ("check --valid=v.en --valid=v.de p.tsv", "check --valid=v.en --valid=v.de p.tsv"),
        ("check --valid=v.tsv p.tsv", "check --valid=v.tsv p.tsv"),
        # the option is already repeated
        ("check --valid v.en --valid v.de p.tsv", "check --valid v.en --valid v.de p.tsv"),
        # without a second file, the option is not changed, and the command reports the error later
        ("check p.tsv --valid v.en", "check p.tsv --valid v.en"),
        ("check p.tsv --valid v.en --json", "check p.tsv --valid v.en --json"),
        ("check p.tsv --valid v.en -h", "check p.tsv --valid v.en -h"),
        (
            "check p.tsv --valid v.en --test t.en t.de",
            "check p.tsv --valid v.en --test t.en --test t.de",
        ),
        ("check p.tsv --valid", "check p.tsv --valid"),
        # other options are not changed
        ("train p.tsv --out a b --valid v.en v.de", "train p.tsv --out a b --valid v.en --valid v.de"),
        ("check -- --valid v.en v.de", "check -- --valid v.en v.de"),
    ],
)
def test_file_options_are_repeated(command_line: str, expected: str) -> None:
    """Here the name of the command is the first positional argument, so names need not be parallel."""
    arguments = command_line.split()
    assert repeat_file_options(arguments) == expected.split()
    assert arguments == command_line.split()


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        ("--valid v.txt a.txt b.txt", "--valid v.txt a.txt b.txt"),
        ("--steps 2 --valid v.txt a.txt", "--steps 2 --valid v.txt a.txt"),
        ("--valid valid-classes train-classes", "--valid valid-classes train-classes"),
        ("--valid valid train", "--valid valid train"),
        ("a.txt --valid v.txt w.txt", "a.txt --valid v.txt --valid w.txt"),
        ("- --valid v.txt w.txt", "- --valid v.txt --valid w.txt"),
        ("-:2 --valid v.txt w.txt", "-:2 --valid v.txt --valid w.txt"),
        ("--json a.txt --valid v.txt w.txt", "--json a.txt --valid v.txt --valid w.txt"),
        ("--steps=2 --valid v.en v.de p.tsv", "--steps=2 --valid v.en --valid v.de p.tsv"),
        ("--valid v.en.gz v.de.gz p.tsv", "--valid v.en.gz --valid v.de.gz p.tsv"),
        ("--valid v.en:2 v.de p.tsv", "--valid v.en:2 --valid v.de p.tsv"),
        ("--valid dev/en.txt dev/de.txt p.tsv", "--valid dev/en.txt --valid dev/de.txt p.tsv"),
        ("--valid v.src.txt v.tgt.txt t.txt", "--valid v.src.txt --valid v.tgt.txt t.txt"),
        ("--valid v.en t.en t.de", "--valid v.en t.en t.de"),
    ],
)
def test_names_need_to_be_parallel_only_before_the_first_training_file(
    command_line: str, expected: str
) -> None:
    """For example, `v.en` and `v.de` are parallel names, and `v.txt` and `a.txt` are not.

    As in a call of typer, the name of the command is not one of the arguments here.
    """
    assert repeat_file_options(command_line.split(), with_value=["--steps"]) == expected.split()


def test_the_name_of_an_existing_file_is_not_split_into_path_and_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with the name `v.tsv:2` is not a TSV file but a text. The next file is its translation."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.tsv:2").write_text("one\n")
    repeated = ["check", "p.tsv", "--valid", "v.tsv:2", "--valid", "v.de"]
    assert repeat_file_options(["check", "p.tsv", "--valid", "v.tsv:2", "v.de"]) == repeated


def test_the_examples_in_docstrings_are_correct() -> None:
    result = doctest.testmod(jumok.cli.arguments)
    assert result.attempted > 0
    assert result.failed == 0
