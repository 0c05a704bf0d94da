"""The parameters that several routes share: read and checked, with the pivot paths that they require."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError
from jumok.server.http_errors import HttpError, bad_request
from jumok.text.glossary import Glossary
from jumok.text.language_detection import detect_languages
from jumok.text.languages import language_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.server.language_pairs import LanguagePairs, PivotPath
    from jumok.server.routes import RequestContext
    from jumok.server.service import Service

__all__ = [
    "AUTO",
    "LanguageRouting",
    "check_languages",
    "check_size",
    "find_pivot_paths",
    "read_flag",
    "read_glossaries",
    "read_integer",
    "read_texts",
    "require_strings",
]

AUTO = "auto"
_TERM = {"source", "target"}


def read_texts(context: RequestContext, *, allow_arrays: bool = True) -> list[str]:
    """Return `q` as a list."""
    q = context.fields.get("q")
    if not q and not isinstance(q, int | float):
        raise bad_request("missing q parameter")
    texts = q if isinstance(q, list) else [q]
    if not all(isinstance(text, str) for text in texts) or (isinstance(q, list) and not allow_arrays):
        raise bad_request("q parameter is not a string" + " or an array of strings" * allow_arrays)
    return texts


def require_strings(context: RequestContext, *names: str) -> None:
    for name in names:
        value = context.fields.get(name)
        if value is None or value == "":
            raise bad_request(f"missing {name} parameter")
        if not isinstance(value, str):
            raise bad_request(f"{name} parameter is not a string")


def read_integer(context: RequestContext, name: str, *, minimum: int, maximum: int) -> int:
    """Return an optional integer, which is a string in a form; `minimum` is the default."""
    value = context.fields.get(name, minimum)
    if isinstance(value, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,8}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad_request(f"{name} parameter is not a number")
    if not minimum <= value <= maximum:
        raise bad_request(f"{name} parameter must be from {minimum} to {maximum}")
    return value


def read_flag(context: RequestContext, name: str) -> bool:
    """Return an optional boolean, which is a string in a form."""
    value = context.fields.get(name, False)
    if not isinstance(value, bool) and value not in ("true", "false"):
        raise bad_request(f"{name} parameter is not true or false")
    return value in (True, "true")


def read_glossaries(context: RequestContext, pivot_paths: Iterable[PivotPath]) -> dict[PivotPath, Glossary]:
    """Return the glossary for the texts of each pivot path: by its name, or with the terms of the request.

    Terms are an object, term → translation, or a list of {"source": …, "target": …}; a form has them as JSON.
    """
    value = context.fields.get("glossary")
    if value in (None, ""):
        return {}
    paths = {path for path in pivot_paths if path}
    try:
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            value = json.loads(value)
        if isinstance(value, str):
            named = context.service.glossaries
            return {path: named.get(value, path[0].source, path[-1].target) for path in paths}
        return dict.fromkeys(paths, Glossary(_read_terms(value)))
    except (DataError, json.JSONDecodeError, RecursionError) as error:
        raise bad_request(f"glossary parameter: {error}") from None


def _read_terms(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        terms = list(value.items())
    elif isinstance(value, list) and all(isinstance(one, dict) and one.keys() == _TERM for one in value):
        terms = [(one["source"], one["target"]) for one in value]
    else:
        raise DataError('it is a name, an object of terms, or a list of {"source": …, "target": …}')
    return terms


def check_size(texts: Sequence[str], service: Service) -> None:
    """Refuse too many texts or characters, and count the characters."""
    num_characters = sum(map(len, texts))
    for size, limit in (
        (len(texts), service.limits.max_texts),
        (num_characters, service.limits.max_characters),
    ):
        if size > limit:
            raise bad_request(f"request ({size}) exceeds text limit ({limit})")
    service.metrics.increment("characters", num_characters)


def check_languages(context: RequestContext) -> tuple[str, str]:
    """Return source and target; refuse a language that no model has. There may be no path between them."""
    source, target = context.fields["source"], context.fields["target"]
    for code in (source, target):
        if code not in context.service.language_pairs.codes and not (code == AUTO and code is source):
            raise HttpError(400, f"{code[:40]} is not supported")
    return source, target


@dataclass(frozen=True, slots=True)
class LanguageRouting:
    """The pivot path of each text, and the detected languages if the source was `auto`."""

    pivot_paths: list[PivotPath]
    detected: list[dict[str, Any]] | None

    @property
    def pivots(self) -> list[str]:
        """The pivot languages of all texts."""
        return list(dict.fromkeys(pair.target for path in self.pivot_paths for pair in path[:-1]))


async def find_pivot_paths(texts: Sequence[str], context: RequestContext) -> LanguageRouting:
    """Check both languages, detect the source if it is `auto`, and find the pivot path of each text."""
    pairs = context.service.language_pairs
    source, target = check_languages(context)
    if source != AUTO:
        return LanguageRouting([_pivot_path(pairs, source, target)] * len(texts), None)
    # Text in the target language stays unchanged. The target is the last candidate, so a text that could be
    # in either language is translated.
    candidates = sorted(pairs.sources(target), key=lambda code: code == target)
    best = await context.service.run_in_thread(
        lambda: [detect_languages(text, candidates)[0] for text in texts]
    )
    for text, (_, confidence) in zip(texts, best, strict=True):
        if not confidence and any(character.isalpha() for character in text):
            raise bad_request(
                f"the language of this text was not recognised: {text[:40]!r}. "
                f"Set source to one of: {', '.join(candidates)}"
            )
    detected = [{"confidence": confidence, "language": code} for code, confidence in best]
    return LanguageRouting([_pivot_path(pairs, code, target) for code, _ in best], detected)


def _pivot_path(pairs: LanguagePairs, source: str, target: str) -> PivotPath:
    path = pairs.pivot_path(source, target)
    if path is None:
        raise HttpError(
            400,
            f"{language_name(target)} ({target}) is not available as a target language from "
            f"{language_name(source)} ({source})",
        )
    return path
