"""`--valid a.en a.de`: two words after one option, before the parser sees them."""

from __future__ import annotations

import doctest

import pytest

import jumok.cli.arguments
from jumok.cli.arguments import spread_options


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        ("", ""),
        ("check p.tsv", "check p.tsv"),
        ("check p.tsv --valid v.en v.de", "check p.tsv --valid v.en --valid v.de"),
        ("check --valid v.en v.de p.en p.de", "check --valid v.en --valid v.de p.en p.de"),
        (
            "check p.tsv --valid v.en v.de --test t.en t.de",
            "check p.tsv --valid v.en --valid v.de --test t.en --test t.de",
        ),
        # a file that holds both sides stays alone
        ("check --valid v.tsv p.en p.de", "check --valid v.tsv p.en p.de"),
        ("check --valid v.csv p.tsv", "check --valid v.csv p.tsv"),
        ("check --valid v.jsonl p.tsv", "check --valid v.jsonl p.tsv"),
        ("check --valid v.ndjson p.tsv", "check --valid v.ndjson p.tsv"),
        ("check --valid v.TSV p.tsv", "check --valid v.TSV p.tsv"),
        ("check --valid v.tsv.gz p.tsv", "check --valid v.tsv.gz p.tsv"),
        ("check --valid v.jsonl.zst p.tsv", "check --valid v.jsonl.zst p.tsv"),
        ("check --valid v.tsv:2.5 p.tsv", "check --valid v.tsv:2.5 p.tsv"),
        ("check --valid a:b/v.tsv p.tsv", "check --valid a:b/v.tsv p.tsv"),
        ("check --valid - p.tsv", "check --valid - p.tsv"),
        # the other files of a pair
        ("check p.tsv --valid v.en.gz v.de.gz", "check p.tsv --valid v.en.gz --valid v.de.gz"),
        ("check p.tsv --valid v.en:2 v.de", "check p.tsv --valid v.en:2 --valid v.de"),
        # already spread: not again
        ("check --valid v.en --valid v.de p.tsv", "check --valid v.en --valid v.de p.tsv"),
        # a file without its other half is left for the reader to refuse, and takes nothing with it
        ("check p.tsv --valid v.en", "check p.tsv --valid v.en"),
        ("check p.tsv --valid v.en --json", "check p.tsv --valid v.en --json"),
        ("check p.tsv --valid v.en -h", "check p.tsv --valid v.en -h"),
        (
            "check p.tsv --valid v.en --test t.en t.de",
            "check p.tsv --valid v.en --test t.en --test t.de",
        ),
        ("check p.tsv --valid", "check p.tsv --valid"),
        # other options are none of its business
        ("train p.tsv --out a b --valid v.en v.de", "train p.tsv --out a b --valid v.en --valid v.de"),
        ("check -- --valid v.en v.de", "check -- --valid v.en v.de"),
    ],
)
def test_spreading(typed: str, seen: str) -> None:
    words = typed.split()
    assert spread_options(words) == seen.split()
    assert words == typed.split()


def test_the_example_in_the_docstring_holds() -> None:
    tested = doctest.testmod(jumok.cli.arguments)
    assert tested.attempted > 0
    assert tested.failed == 0
