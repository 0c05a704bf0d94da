"""`--valid a.en a.de`: two values of one option, rewritten before typer parses them."""

from __future__ import annotations

import doctest
from typing import TYPE_CHECKING

import pytest

import jumok.cli.arguments
from jumok.cli.arguments import repeat_file_options

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("typed", "seen"),
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
        # one file has both sides: the next argument is not its other half
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
        # other names of two files, one per side
        ("check p.tsv --valid v.en.gz v.de.gz", "check p.tsv --valid v.en.gz --valid v.de.gz"),
        ("check p.tsv --valid v.en:2 v.de", "check p.tsv --valid v.en:2 --valid v.de"),
        ("check p.tsv --valid=v.en v.de", "check p.tsv --valid=v.en --valid v.de"),
        ("check --valid=v.en --valid=v.de p.tsv", "check --valid=v.en --valid=v.de p.tsv"),
        ("check --valid=v.tsv p.tsv", "check --valid=v.tsv p.tsv"),
        # already repeated
        ("check --valid v.en --valid v.de p.tsv", "check --valid v.en --valid v.de p.tsv"),
        # a file without its other half is not changed; the reader refuses it
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
def test_file_options_are_repeated(typed: str, seen: str) -> None:
    arguments = typed.split()
    assert repeat_file_options(arguments) == seen.split()
    assert arguments == typed.split()


@pytest.mark.parametrize(
    ("typed", "seen"),
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
def test_before_the_files_to_train_on_only_a_parallel_file_is_the_second(typed: str, seen: str) -> None:
    assert repeat_file_options(typed.split(), with_value=["--steps"]) == seen.split()


def test_the_name_of_an_existing_file_is_not_split_into_path_and_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a file is called `v.tsv:2`, it is no TSV: it is a text, and its translation follows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.tsv:2").write_text("one\n")
    repeated = ["check", "p.tsv", "--valid", "v.tsv:2", "--valid", "v.de"]
    assert repeat_file_options(["check", "p.tsv", "--valid", "v.tsv:2", "v.de"]) == repeated


def test_the_example_in_the_docstring_holds() -> None:
    tested = doctest.testmod(jumok.cli.arguments)
    assert tested.attempted > 0
    assert tested.failed == 0
