"""`jumok cache`: the converted models that jumok has stored for this user, and how to remove them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.cli.language import localise
from jumok.errors import RecipeError

if TYPE_CHECKING:
    from jumok.inference.engines.cache import CachedModel

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def cache(
    max_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Remove the least recently used models until the others take at most this much space, such "
            "as 500M or 2G.",
        ),
    ] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Remove all converted models.")] = False,
) -> None:
    """List the converted models in the cache folder, or remove them: they are converted again when needed.

    The folder is $JUMOK_CACHE, or $XDG_CACHE_HOME/jumok, or ~/.cache/jumok; on macOS and Windows, without
    $JUMOK_CACHE, the cache folder of the system.
    """
    from jumok.inference.engines.cache import cached_models, remove_cached, remove_half_written  # start-up
    from jumok.storage.user_cache import private_folder  # start-up

    if clear and max_size:
        raise RecipeError(
            localise("--clear removes everything, so --max-size would be ignored. Leave one out.")
        )
    limit = 0 if clear else _parse_size(max_size) if max_size else None
    models = cached_models()
    removed = [] if limit is None else _models_to_remove(models, limit)
    for model in removed:
        remove_cached(model)
    remaining = [model for model in models if model not in removed]
    if limit is not None:
        remove_half_written()
        typer.echo(localise("removed {models}", models=_describe(removed)))
    typer.echo(f"{private_folder('engines')}: {_describe(remaining)}")
    for model in remaining:
        time = datetime.fromtimestamp(model.last_used).astimezone()
        name = model.model or localise("an unknown model")
        last_used = localise("used {time:%Y-%m-%d %H:%M}", time=time)
        typer.echo(f"  {_format_size(model.num_bytes):>9}  {model.precision:<8}  {last_used}  {name}")


def _models_to_remove(models: list[CachedModel], limit: int) -> list[CachedModel]:
    """Return the models that do not fit into the limit, if the most recently used ones are kept.

    `models` begins with the most recently used one. `limit` is in bytes.
    """
    removed, total = [], 0
    for model in models:
        total += model.num_bytes
        if total > limit:
            removed.append(model)
    return removed


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)B?", text)
    if match is None:
        raise RecipeError(
            localise("--max-size takes a number of bytes, such as 500M or 2G. Received: {text!r}.", text=text)
        )
    return int(float(match[1]) * _UNITS[match[2]])


def _describe(models: list[CachedModel]) -> str:
    size = _format_size(sum(model.num_bytes for model in models))
    if len(models) == 1:
        return localise("1 converted model, {size}", size=size)
    return localise("{count:,} converted models, {size}", count=len(models), size=size)


def _format_size(num_bytes: int) -> str:
    return f"{num_bytes / 10**6:,.1f} MB"
