"""Arguments that several verbs share, and the one liberty taken with them.

`--valid val.en val.de` names two files after one option, as a person would write it. The parser underneath
takes one value an option, so the words are spread into `--valid val.en --valid val.de` before it sees them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.errors import RecipeError

if TYPE_CHECKING:
    from jumok.decoding import Engine
    from jumok.recipe import Recipe

__all__ = [
    "EngineOption",
    "FromOption",
    "ModelArgument",
    "PairsArgument",
    "SeedOption",
    "ShortlistOption",
    "TemperatureOption",
    "ToOption",
    "assignments",
    "drawing_choices",
    "languages_in_words",
    "say_engine",
    "setting_help",
    "spread_options",
    "utf8",
]

_FILE_OPTIONS = ("--valid", "--test")
_ONE_FILE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson")
_PACKED_SUFFIXES = (".gz", ".xz", ".zst")

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model folder, as training writes it.")
]
PairsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PAIRS...", help="One file (.tsv, .csv, .jsonl) or two with equal lines; '-' is stdin."
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What runs the model: ctranslate2 (fast, converted on first use), torch, or auto: the first "
        "where it can.",
    ),
]
ShortlistOption = Annotated[
    bool, typer.Option(help="Limit translations to the model's shortlist, which `jumok shortlist` learns.")
]
TemperatureOption = Annotated[
    float | None, typer.Option(help="With --sample: below 1 is bolder, above 1 wilder.")
]
SeedOption = Annotated[
    int | None, typer.Option(help="With --sample: the seed, 1 if not given.", min=0, max=2**32 - 1)
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="CODE", help="Source language, such as en.")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="CODE", help="Target language, such as ko.")]


def say_engine(engine: Engine) -> None:
    """On standard error, where the engine is not the one that might have been expected."""
    if engine.why:
        typer.echo(f"engine {engine.name}: {engine.why}", err=True)


def spread_options(words: list[str]) -> list[str]:
    """`--valid a.en a.de` → `--valid a.en --valid a.de`; a file that holds both sides stays alone.

    >>> spread_options(["train", "t.en", "t.de", "--valid", "v.en", "v.de", "--out", "runs/x"])[3:7]
    ['--valid', 'v.en', '--valid', 'v.de']
    """
    spread: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        spread.append(word)
        if word == "--":  # what follows are arguments, whatever they look like
            return spread + rest
        if word not in _FILE_OPTIONS or not rest:
            continue
        first = rest.pop(0)
        spread.append(first)
        if _holds_both_sides(first) or not rest:
            continue
        if rest[0] == word:  # already spread: this option's value is the second file
            spread.extend(rest[:2])
            rest = rest[2:]
        elif not rest[0].startswith("-"):
            spread.extend([word, rest.pop(0)])
    return spread


def _holds_both_sides(name: str) -> bool:
    if name == "-":
        return True
    name = re.sub(r":[\d.]+$", "", name)  # the weight of a corpus
    for suffix in _PACKED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.lower().endswith(_ONE_FILE_SUFFIXES)


def languages_in_words(recipe: Recipe) -> str:
    """`en → ko`, or `en` for a model of plain text; ? where nobody said."""
    source, target = (code or "?" for code in (recipe.languages.source, recipe.languages.target))
    return f"{source} → {target}" if recipe.model.task == "translate" else target


def drawing_choices(sample: bool, **choices: Any) -> dict[str, Any]:
    """What was chosen of how to draw; refused where nothing is drawn."""
    given = {name: value for name, value in choices.items() if value is not None}
    if given and not sample:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise RecipeError(
            f"Without --sample nothing is drawn at random, so {options} would be ignored. "
            f"Add --sample, or leave {options} out."
        )
    return given


def utf8(text: str | None) -> str | None:
    """A sentence on the command line must be text; a name of a file may be any bytes."""
    if (
        text is not None
        and not text.isascii()
        and any("\ud800" <= character <= "\udfff" for character in text)
    ):
        raise typer.BadParameter("this is not UTF-8 text.")
    return text


def setting_help(settings: Any, name: str) -> str:
    """The help of an option is the docstring of its setting."""
    return str(settings.model_fields[name].description)


def assignments(words: list[str]) -> dict[str, Any]:
    """`training.steps=100` → {"training.steps": 100}, values read as TOML, else as a string."""
    import tomllib

    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or "." not in name:
            raise RecipeError(
                f"--set takes SECTION.NAME=VALUE, such as model.dropout=0.2. Received: {word!r}."
            )
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found
