"""Arguments and notes that several commands share, and how arguments are rewritten before they are parsed.

`--valid val.en val.de` names two files after one option. typer takes a fixed number of values per option, so
each command rewrites its arguments as `--valid val.en --valid val.de` first (`localised_commands.py`).
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from jumok.cli.language import localise, localise_text
from jumok.errors import RecipeError, RenamedSettingWarning
from jumok.system.device import Device, Precision

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from jumok.config.recipe import ModelSettings, Recipe
    from jumok.inference.engines.protocol import Engine

MAX_NOTES = 10
"""Maximum number of notes that are printed. A file of a million lines may have a million notes."""
FILE_OPTIONS = ("--valid", "--test", "--keep", "--replay")
"""These options take one file or two parallel files, but only in commands where they may be repeated. For
example, `--keep` of `jumok clean` is a percentage, and may not be repeated."""
_SIDES = ("src", "trg", "tgt", "ref", "source", "target")  # in names of parallel files
RENAMED_OPTIONS = {
    "--contender": "--system",
    "--longest": "--max-length-ratio",
    "--no-repeat": "--no-repeat-ngram-size",
}
"""Old name → new name of an option; the old names work until 1.0."""

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model folder, or the run folder that contains it.")
]
_PAIRS_HELP = (
    "One file of pairs (.tsv, .csv, .xlsx, .ods, .tmx, .xliff, .po, .jsonl, .zip), or two parallel files; "
    "'-' is stdin. Pictures: a .tsv of paths and captions, or a folder with a sub-folder per class."
)
PairsArgument = Annotated[list[str], typer.Argument(metavar="PAIRS", help=_PAIRS_HELP)]
OptionalPairsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="PAIRS", help=f"{_PAIRS_HELP} Not needed to continue a run.")
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What runs the model: ctranslate2 (fast; converts the model on first use), torch, or auto: "
        "ctranslate2 if it supports the model.",
    ),
]
DeviceOption = Annotated[
    Device, typer.Option(help="Where torch computes: auto takes the first accelerator that it finds.")
]
PrecisionOption = Annotated[
    Precision, typer.Option(help="Precision of torch's matrix products: auto uses bf16 where it is faster.")
]
ShortlistOption = Annotated[
    bool, typer.Option(help="Use the vocabulary shortlist of the model; `jumok shortlist` learns it.")
]
SentencesOption = Annotated[
    str | None,
    typer.Option(
        metavar="split|keep",
        help="Translate each sentence of a line by itself, or the line as a whole; by default as the model "
        "was trained.",
    ),
]
GlossaryOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Terms and their translations (.tsv, .csv, .tbx, .tmx, …), which the translations use.",
    ),
]
TemperatureOption = Annotated[
    float | None, typer.Option(help="With --sample: below 1 favours likely tokens, above 1 equalises them.")
]
SeedOption = Annotated[
    int | None, typer.Option(help="With --sample: the random seed, 1 if not given.", min=0, max=2**32 - 1)
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="CODE", help="Source language, such as en.")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="CODE", help="Target language, such as ko.")]

ColumnsOption = Annotated[
    str,
    typer.Option(
        metavar="A,B", help="The columns of source and target in a table, by name or number: en,ko or 2,4."
    ),
]
EncodingOption = Annotated[
    str, typer.Option(metavar="NAME", help="The encoding of the files if it is not UTF-8, such as cp949.")
]


class Hardware(TypedDict):
    """The options `--device` and `--precision`, as `load` takes them."""

    device: str
    precision: str


def report_fallback(engine: Engine) -> None:
    """If the preferred engine cannot run the model, print the reason on standard error."""
    if engine.fallback_reason:
        reason = localise_text(engine.fallback_reason)
        typer.echo(localise("engine {name}: {reason}", name=engine.name, reason=reason), err=True)


def report_notes(notes: Sequence[str], *, total: int | None = None) -> None:
    """Print the first notes to standard error.

    `total` is the number of all notes, if `notes` has only some of them.
    """
    for note in notes[:MAX_NOTES]:
        typer.echo(localise("note: {note}", note=localise_text(note)), err=True)
    more = (len(notes) if total is None else total) - MAX_NOTES
    if more > 0:
        typer.echo(localise("note: and {more:,} more", more=more), err=True)


def repeat_file_options(
    arguments: list[str], options: Collection[str] = FILE_OPTIONS, *, with_value: Collection[str] = ()
) -> list[str]:
    """`--valid a.en a.de` → `--valid a.en --valid a.de`; a file that contains both sides stays single.

    Before the first positional argument, the second file belongs to the option only if the names of the two
    files are parallel: in `--valid v.txt a.txt b.txt`, the files to train on are `a.txt` and `b.txt`.
    `with_value` has all options that take a value. Such a value is not a positional argument.

    >>> repeat_file_options(["t.en", "t.de", "--valid", "v.en", "v.de", "--out", "runs/x"])[2:6]
    ['--valid', 'v.en', '--valid', 'v.de']
    """
    repeated: list[str] = []
    rest = list(arguments)
    has_positional = False
    while rest:
        argument = rest.pop(0)
        repeated.append(argument)
        if argument == "--":  # only positional arguments follow, even if they begin with a hyphen
            return repeated + rest
        option, equals, first = argument.partition("=")
        if option not in options:
            # `-` and `-:2` are standard input, the second with a weight.
            has_positional |= not argument.startswith("-") or argument.partition(":")[0] == "-"
            if option in with_value and not equals and rest:
                repeated.append(rest.pop(0))
            continue
        if not rest:
            continue
        if not equals:
            first = rest.pop(0)
            repeated.append(first)
        if _has_both_sides(first) or not rest:
            continue
        if rest[0] == option:  # already repeated: its value is the second file
            repeated.extend(rest[:2])
            rest = rest[2:]
        elif rest[0].startswith(f"{option}="):
            repeated.append(rest.pop(0))
        elif not rest[0].startswith("-") and (has_positional or _are_parallel(first, rest[0])):
            repeated.extend([option, rest.pop(0)])
    return repeated


def _are_parallel(first: str, second: str) -> bool:
    """Whether two names differ only in the suffix (v.en, v.de), a language (en.txt, de.txt) or a side.

    A side is one of `_SIDES`, as in v.src.txt and v.tgt.txt.
    """
    from jumok.data.readers import split_weight  # start-up
    from jumok.text.languages import find_language  # start-up

    paths = [Path(split_weight(name)[0]) for name in (first, second)]
    if paths[0].suffix and paths[0].with_suffix("") == paths[1].with_suffix(""):
        return True
    parts = [re.split(r"[./_-]", str(path)) for path in paths]
    if len(parts[0]) != len(parts[1]):
        return False
    differing = [part for one, other in zip(*parts, strict=True) if one != other for part in (one, other)]
    return all(part in _SIDES or find_language(part) for part in differing)


def complete_ray_option(arguments: list[str]) -> list[str]:
    """`--ray` without an address → `--ray=local`. An address is auto, local, or has a colon.

    >>> complete_ray_option(["translate", "--ray", "runs/mine", "in.txt", "--ray", "10.0.0.1:6379"])
    ['translate', '--ray=local', 'runs/mine', 'in.txt', '--ray', '10.0.0.1:6379']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    completed = list(arguments)
    for index, argument in enumerate(arguments[:end]):
        address = arguments[index + 1] if index + 1 < end else ""
        if argument == "--ray" and address not in ("auto", "local") and ":" not in address:
            completed[index] = "--ray=local"
    return completed


def rename_options(arguments: list[str]) -> list[str]:
    """Replace old names of options by their new names, with a warning.

    Raise a RecipeError if an option is given under its old and its new name.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    names = [argument.partition("=")[0] for argument in arguments[:end]]
    renamed = list(arguments)
    for index, old in enumerate(names):
        new = RENAMED_OPTIONS.get(old)
        if new is None:
            continue
        if new in names:
            raise RecipeError(
                localise("{old} is the old name of {new}. Received: both. Leave {old} out.", old=old, new=new)
            )
        message = localise("{old} is now {new}; the old name works until 1.0.", old=old, new=new)
        warnings.warn(message, RenamedSettingWarning, stacklevel=2)
        renamed[index] = new + arguments[index].removeprefix(old)
    return renamed


def _has_both_sides(name: str) -> bool:
    from jumok.data.readers import has_pair_suffix, split_weight  # start-up

    path, _ = split_weight(name)
    return path == "-" or has_pair_suffix(path)


def format_family(model: ModelSettings) -> str:
    """Return `transformer tiny`, or only the family if the sizes of the model have no name."""
    return f"{model.family} {model.size or ''}".rstrip()


def format_languages(recipe: Recipe) -> str:
    """Return `en → ko`, or `en` for a model of plain text; `?` stands for an unknown language."""
    source, target = (code or "?" for code in (recipe.languages.source, recipe.languages.target))
    if recipe.source.kind == "pictures":
        classes = localise("pictures → classes")
        return classes if recipe.model.task == "classify" else localise("pictures → {target}", target=target)
    return f"{source} → {target}" if recipe.model.task == "translate" else target


def format_noun(*, pictures: bool, plain: bool) -> str:
    """Return the noun for what a corpus contains: pairs, sentences of plain text, or pictures."""
    if pictures:
        return localise("pictures")
    return localise("sentences") if plain else localise("pairs")


def names_of_given(options: Mapping[str, object]) -> str:
    """Return the names of the options whose value is not None, for a message that refuses them."""
    return ", ".join(name for name, value in options.items() if value is not None)


def sampling_options(sample: bool, **options: Any) -> dict[str, Any]:
    """Return the options that are not None. Raise an error if there are any, but --sample is not set."""
    given_options = {name: value for name, value in options.items() if value is not None}
    if given_options and not sample:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given_options)
        raise RecipeError(
            localise(
                "{listed} would be ignored: only --sample draws at random. Add --sample, or leave {listed} "
                "out.",
                listed=names,
            )
        )
    return given_options


def require_utf8(text: str | None) -> str | None:
    """Return a text from the command line unchanged. Refuse a text whose bytes are not UTF-8."""
    if (
        text is not None
        and not text.isascii()
        and any("\ud800" <= character <= "\udfff" for character in text)
    ):
        raise typer.BadParameter(localise("this is not UTF-8 text."))
    return text


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """`training.steps=100` → {"training.steps": 100}. A value that is not TOML is a string."""
    import tomllib  # start-up

    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or "." not in name:
            raise RecipeError(
                localise(
                    "--set takes SECTION.NAME=VALUE, such as model.dropout=0.2. Received: {assignment!r}.",
                    assignment=assignment,
                )
            )
        try:
            settings[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[name] = value
    return settings
