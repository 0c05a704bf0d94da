"""`jumok serve --check`: describe the server that these settings would start.

It also warns of settings that are unsafe or have no effect.
"""

from __future__ import annotations

import os
import stat
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.documents.registry import DOCUMENT_FORMATS
from jumok.inference.loading import choose_shortlist, open_tokenizers
from jumok.server.language_pairs import read_language_pairs
from jumok.server.security import is_loopback, read_api_keys
from jumok.storage.model_folder import read_stored_model
from jumok.text.languages import language_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.server.language_pairs import LanguagePairs
    from jumok.server.service import ServerSettings


def describe_server(settings: ServerSettings) -> list[str]:
    """Return a description of the server in lines.

    Raise an error if a model cannot be read, or lacks the shortlist that it should use.
    """
    pairs = read_language_pairs(settings.models)
    limits = settings.limits
    reachable_from = "this machine only" if is_loopback(settings.host) else "OTHER MACHINES TOO"
    suffixes = ", ".join(document_format.suffix for document_format in DOCUMENT_FORMATS)
    return [
        f"listens   {server_url(settings.host, settings.port)}, reachable from {reachable_from}",
        *_model_lines(settings, pairs),
        *_pivot_lines(pairs),
        f"workers   {settings.workers}, one thread each",
        f"shortlist {_describe_shortlist(settings)}",
        f"keys      {settings.api_keys or 'none: everyone who can reach the server may use it'}",
        f"hosts     {', '.join(('localhost', *_own_hosts(settings), *settings.allowed_hosts))}",
        f"origins   its own page{''.join(f', {origin}' for origin in settings.allowed_origins)}",
        f"proxies   {', '.join(settings.proxies) or 'none is trusted'}",
        f"requests  {limits.max_characters:,} characters, {limits.max_texts:,} texts, "
        f"{limits.max_body_bytes:,} bytes, {limits.max_request_seconds:g} s of work; "
        f"{limits.requests_per_minute or 'any number'} per minute and client",
        f"files     {suffixes}, with at most {limits.max_file_syntax_characters:,} "
        "tags, entities, line ends and other marks of syntax",
        f"queue     {limits.max_queued_sentences:,} sentences or "
        f"{limits.max_queued_characters:,} characters, then 503",
    ]


def security_warnings(settings: ServerSettings) -> list[str]:
    """Return what is unsafe about the settings, and which of them have no effect.

    Raise a DataError if the file of API keys cannot be used.
    """
    return list(_security_warnings(settings))


def _security_warnings(settings: ServerSettings) -> Iterator[str]:
    is_public = not is_loopback(settings.host)
    if is_public and not settings.api_keys:
        yield (
            "Other machines can reach the server, and it requires no key. Give --api-keys FILE, or bind "
            "127.0.0.1."
        )
    if is_public and (not settings.proxies or "*" in settings.proxies):
        yield (
            "Texts and keys cross the network unencrypted. Put a reverse proxy with TLS in front of the "
            "server."
        )
    if settings.api_keys:
        read_api_keys(settings.api_keys)  # raises if the file has no keys, or a key that is too short
        if _is_accessible_to_others(settings.api_keys):
            yield f"Others can read or write {settings.api_keys}. Run: chmod 600 {settings.api_keys}"
    if "*" in settings.allowed_origins or "null" in settings.allowed_origins:
        yield "--allow-origin takes origins such as https://example.org; `*` and `null` allow none."
    for proxy in settings.proxies:
        if proxy != "*" and not _is_address(proxy):
            yield f"--proxy takes an address or a network such as 10.0.0.0/8; {proxy} is ignored."
    if "*" in settings.allowed_hosts:
        yield "--allow-host takes a name such as translate.example.org; `*` allows none."
    if "*" in settings.proxies:
        yield "--proxy '*' lets every client choose its own address: the rate limit has no effect."
    if not settings.limits.requests_per_minute:
        yield "Requests per minute are not limited. This is fine behind a proxy that limits them."


def _is_accessible_to_others(path: Path) -> bool:
    """Return whether other users can read or write a file.

    Credentials that systemd passes to one service are safe. They have an access control list, whose mask
    looks like permissions of the group.
    """
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    if credentials and path.parent == Path(credentials):
        return False
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH))


def server_url(host: str, port: int) -> str:
    host = host.strip("[]")
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _own_hosts(settings: ServerSettings) -> list[str]:
    return [settings.host] if is_loopback(settings.host) else [settings.host, "any IP address"]


def _is_address(proxy: str) -> bool:
    try:
        return bool(ip_network(proxy))
    except ValueError:
        return False


def _model_lines(settings: ServerSettings, pairs: LanguagePairs) -> Iterator[str]:
    for folder, pair in zip(settings.models, pairs.model_pairs, strict=True):
        source = language_name(pair.source) if pair.source else "pictures"
        yield f"model     {source} → {language_name(pair.target)}: {folder}"


def _describe_shortlist(settings: ServerSettings) -> str:
    if not settings.shortlist:
        return "not used"
    for folder in settings.models:
        stored = read_stored_model(folder)
        choose_shortlist(True, stored, open_tokenizers(stored))  # raises if the model has no shortlist
    return "used: a translation can depend on the other sentences in its batch"


def _pivot_lines(pairs: LanguagePairs) -> Iterator[str]:
    for source in pairs.codes:
        for target in pairs.targets(source):
            path = pairs.pivot_path(source, target) or ()
            if len(path) > 1:
                yield f"pivot     {' → '.join([source, *(pair.target for pair in path)])}"
