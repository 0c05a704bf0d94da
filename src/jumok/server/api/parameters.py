"""Checks that several routes share: sizes, languages, tags, and pivot paths with their glossaries.

They run after the checks of the single fields (`fields.py`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from typing_extensions import TypedDict

from jumok.errors import DataError
from jumok.server.api.fields import AUTO, MAX_TERM_CHARACTERS, MAX_TERMS
from jumok.server.http_errors import bad_request
from jumok.text.glossary import Glossary
from jumok.text.language_detection import detect_languages
from jumok.text.languages import language_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.server.language_pairs import LanguagePairs, PivotPath
    from jumok.server.service import Service

__all__ = [
    "DetectedLanguage",
    "LanguagePlan",
    "check_languages",
    "check_size",
    "check_tags",
    "find_pivot_paths",
]

NOT_RECOGNISED = "the language of this text was not recognised"
_TERM_KEYS = {"source", "target"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class DetectedLanguage(TypedDict):
    confidence: float
    language: str


def check_size(texts: Sequence[str], service: Service) -> None:
    """Refuse too many texts or characters; add the characters to the metrics."""
    num_characters = sum(map(len, texts))
    for size, limit in (
        (len(texts), service.limits.max_texts),
        (num_characters, service.limits.max_characters),
    ):
        if size > limit:
            raise bad_request(f"request ({size}) exceeds text limit ({limit})")
    service.metrics.characters.inc(num_characters)


def check_languages(source: str, target: str, service: Service) -> None:
    """Refuse a language that no model has. A path from source to target is not required yet."""
    for code in (target,) if source == AUTO else (source, target):
        if code not in service.language_pairs.codes:
            raise HTTPException(400, f"{code[:40]} is not supported")


def check_tags(tags: Sequence[str], pivot_paths: Sequence[PivotPath], service: Service) -> None:
    """Refuse a tag that the first model of a pivot path does not have.

    The model would translate an unknown tag as text. If the path is empty, the text is not translated, and
    the tags of all models are allowed.
    """
    if not tags:
        return
    for path in set(pivot_paths):
        allowed_tags = service.tags(path[0]) if path else service.all_tags
        for tag in tags:
            if tag not in allowed_tags:
                model = f"the model from {path[0].source} to {path[0].target}" if path else "this server"
                listed = ", ".join(allowed_tags) or "no tags"
                raise bad_request(f"tags parameter: {model} has no tag {tag[:40]!r}. It has {listed}")


@dataclass(frozen=True, slots=True)
class LanguagePlan:
    """How texts are translated: the pivot path of each, and the glossary of each path."""

    pivot_paths: list[PivotPath]
    glossaries: dict[PivotPath, Glossary]
    detected: list[DetectedLanguage] | None = None
    """The languages of the texts; None if the source was not `auto`."""

    @property
    def pivots(self) -> list[str]:
        """The pivot languages of all texts."""
        return list(dict.fromkeys(pair.target for path in self.pivot_paths for pair in path[:-1]))


async def find_pivot_paths(
    texts: Sequence[str], source: str, target: str, service: Service, glossary: Any = ""
) -> LanguagePlan:
    """Check both languages, detect the source if it is `auto`, find the path and glossary of each text."""
    pairs = service.language_pairs
    check_languages(source, target, service)
    if source != AUTO:
        path = _pivot_path(pairs, source, target)
        return LanguagePlan([path] * len(texts), _read_glossaries(glossary, {path}, service))
    # Text in the target language stays unchanged. The target is the last of the possible sources, so a text
    # that could be in the target or in another language is translated.
    possible_sources = sorted(pairs.sources(target), key=lambda code: code == target)
    best = await service.thread_slot.run_if_large(
        sum(map(len, texts)), lambda: [detect_languages(text, possible_sources)[0] for text in texts]
    )
    for text, (_, confidence) in zip(texts, best, strict=True):
        if not confidence and any(character.isalpha() for character in text):
            raise bad_request(
                f"{NOT_RECOGNISED}: {text[:40]!r}. Set source to one of: {', '.join(possible_sources)}"
            )
    detected: list[DetectedLanguage] = [
        {"confidence": confidence, "language": code} for code, confidence in best
    ]
    paths = [_pivot_path(pairs, code, target) for code, _ in best]
    return LanguagePlan(paths, _read_glossaries(glossary, set(paths), service), detected)


def _pivot_path(pairs: LanguagePairs, source: str, target: str) -> PivotPath:
    path = pairs.pivot_path(source, target)
    if path is None:
        raise HTTPException(
            400,
            f"{language_name(target)} ({target}) is not available as a target language from "
            f"{language_name(source)} ({source})",
        )
    return path


def _read_glossaries(value: Any, pivot_paths: set[PivotPath], service: Service) -> dict[PivotPath, Glossary]:
    """Return the glossary for each pivot path, except the empty path.

    `value` is the name of a glossary, or the terms themselves.

    Terms are an object, term → translation, or a list of {"source": …, "target": …}. A form sends terms as
    the text of such an object or list in JSON.
    """
    if value == "":
        return {}
    paths = pivot_paths - {()}
    try:
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            value = json.loads(value)
        if isinstance(value, str):
            named = service.glossaries
            named.check(value)  # `get` below checks the name only if there is a path
            return {path: named.get(value, path[0].source, path[-1].target) for path in paths}
        return dict.fromkeys(paths, Glossary(_read_terms(value)))
    # ValueError: the value is not JSON, or it has a number with more digits than Python converts.
    except (DataError, ValueError, RecursionError) as error:
        raise bad_request(f"glossary parameter: {error}") from None


def _read_terms(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        terms = list(value.items())
    elif isinstance(value, list) and all(
        isinstance(term, dict) and term.keys() == _TERM_KEYS for term in value
    ):
        terms = [(term["source"], term["target"]) for term in value]
    else:
        raise DataError('it must be a name, an object of terms, or a list of {"source": …, "target": …}')
    # `Glossary` refuses terms that are not strings.
    texts = [text for pair in terms for text in pair if isinstance(text, str)]
    if len(terms) > MAX_TERMS or max(map(len, texts), default=0) > MAX_TERM_CHARACTERS:
        raise DataError(
            f"it may have at most {MAX_TERMS:,} terms of at most {MAX_TERM_CHARACTERS} characters. Larger "
            "glossaries are named when the server is started: `--glossary NAME=FILE`"
        )
    if any(_SURROGATE.search(text) for text in texts):
        raise DataError("a term has half of a surrogate pair, which is no character")
    return terms
