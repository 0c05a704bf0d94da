"""What a server would bind, load and allow, and what is unsafe about it: `jumok serve --check`."""

from __future__ import annotations

import os
import stat
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.corpus.languages import language_name
from jumok.decoding.loading import choose_shortlist, load_vocabularies
from jumok.serve.directions import read_directions
from jumok.serve.files import FILE_TYPES
from jumok.serve.gates import is_loopback, read_keys
from jumok.storage import read_stored_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.serve.directions import Directions
    from jumok.serve.service import ServeSettings

__all__ = ["address", "plan_lines", "warnings"]


def plan_lines(settings: ServeSettings) -> list[str]:
    """What would happen, a line each; a model that cannot be read raises its error."""
    directions = read_directions(settings.models)
    limits = settings.limits
    reach = "this machine only" if is_loopback(settings.host) else "OTHER MACHINES TOO"
    return [
        f"listens   {address(settings.host, settings.port)}, reached by {reach}",
        *_models(settings, directions),
        *_pivots(directions),
        f"workers   {settings.workers}, one thread each",
        f"shortlist {_shortlist(settings)}",
        f"keys      {settings.keys or 'none: whoever reaches it may use it'}",
        f"hosts     {', '.join(('localhost', *_own_hosts(settings), *settings.allowed_hosts))}",
        f"origins   its own page{''.join(f', {origin}' for origin in settings.allowed_origins)}",
        f"proxies   {', '.join(settings.proxies) or 'none is believed'}",
        f"requests  {limits.characters:,} characters, {limits.texts:,} texts, {limits.body_bytes:,} bytes, "
        f"{limits.answer_seconds:g} s; {limits.requests_per_minute or 'any number of'} a minute and client",
        f"files     {', '.join(FILE_TYPES)}, each of {limits.file_marks:,} tags, entities and lines",
        f"queue     {limits.waiting_sentences:,} sentences or {limits.waiting_characters:,} signs, then 503",
    ]


def warnings(settings: ServeSettings) -> list[str]:
    """What a careful person would change."""
    return list(_warnings(settings))


def _warnings(settings: ServeSettings) -> Iterator[str]:
    reachable = not is_loopback(settings.host)
    if reachable and not settings.keys:
        yield "Other machines can reach it and no key is asked for. Give --api-keys FILE, or bind 127.0.0.1."
    if reachable and (not settings.proxies or "*" in settings.proxies):
        yield "Texts and keys cross the network unencrypted. Put a reverse proxy with TLS before it."
    if settings.keys:
        read_keys(settings.keys)
        if _is_open(settings.keys):
            yield f"Others can read or write {settings.keys}. Run: chmod 600 {settings.keys}"
    if "*" in settings.allowed_origins or "null" in settings.allowed_origins:
        yield "--allow-origin takes origins such as https://example.org; `*` and `null` allow nobody."
    for proxy in settings.proxies:
        if proxy != "*" and not _is_address(proxy):
            yield f"--proxy takes an address or a network such as 10.0.0.0/8; {proxy} is believed nothing."
    if "*" in settings.allowed_hosts:
        yield "--allow-host takes a name such as translate.example.org; `*` allows nobody."
    if "*" in settings.proxies:
        yield "--proxy '*' believes every client about its own address: nobody's pace is limited."
    if not settings.limits.requests_per_minute:
        yield "Requests a minute are not limited. That is right behind a proxy that limits them."


def _is_open(keys: Path) -> bool:
    """Whether others can read or write a file. What systemd hands to a service alone looks as if they could:
    the list of those who may read it is shown as the permissions of its group.
    """
    handed = os.environ.get("CREDENTIALS_DIRECTORY")
    if handed and keys.parent == Path(handed):
        return False
    return bool(keys.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH))


def address(host: str, port: int) -> str:
    """Where a server is reached, as one writes it."""
    host = host.strip("[]")
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _own_hosts(settings: ServeSettings) -> list[str]:
    return [settings.host] if is_loopback(settings.host) else [settings.host, "any bare address"]


def _is_address(proxy: str) -> bool:
    try:
        return bool(ip_network(proxy))
    except ValueError:
        return False


def _models(settings: ServeSettings, directions: Directions) -> Iterator[str]:
    for number, folder in enumerate(settings.models):
        found = next(d for d in directions.all if d.number == number)
        yield f"model     {language_name(found.source)} → {language_name(found.target)}: {folder}"


def _shortlist(settings: ServeSettings) -> str:
    if not settings.shortlist:
        return "not used"
    for folder in settings.models:
        stored = read_stored_model(folder)
        choose_shortlist(True, stored, load_vocabularies(stored.vocabularies))  # its error says what is wrong
    return "used: a translation can depend on those that are made beside it"


def _pivots(directions: Directions) -> Iterator[str]:
    for source in directions.codes:
        for target in directions.targets(source):
            route = directions.route(source, target) or []
            if len(route) > 1:
                way = " → ".join([source, *(direction.target for direction in route)])
                yield f"pivot     {way}"
