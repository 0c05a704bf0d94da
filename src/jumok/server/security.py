"""Who may speak to the server: by the Host they ask for, the page they come from, their key and their pace.

A web page that somebody visits can send requests to their own machine. The Origin header tells it apart, and
a name that was made to point here (DNS rebinding) is told apart by the Host header.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.serve.faults import Fault, busy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from starlette.datastructures import Headers

__all__ = ["Keys", "Pacing", "Visitors", "client_of", "is_loopback", "read_keys"]

MOST_CLIENTS = 10_000
_HOST = re.compile(r"(?:\[([0-9a-f:.]++)\]|([^\s\[\]:/@?#\\]*[^\s\[\]:/@?#\\.])\.?)(?::[0-9]*+)?")
SHORTEST_KEY = 16


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Visitors:
    """Checks Host and Origin. Other hosts and origins than the server's own must have been named."""

    def __init__(self, bound: str, *, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        self._only_loopback = is_loopback(bound)
        self._hosts = {bound.lower(), *map(_host_name, hosts)}
        self._origins = {origin.rstrip("/").lower() for origin in origins}

    def check(self, headers: Headers) -> str:
        """Refuse strangers; the answer is a foreign origin that is welcome, or ""."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_host(hosts[0]):
            raise Fault(403, "This host name is not served here. `jumok serve --allow-host NAME` allows it.")
        origins = headers.getlist("origin")
        if not origins:
            return ""
        origin = origins[0].lower()
        if len(origins) == 1 and origin in self._origins:
            return origins[0]
        if len(origins) == 1 and origin in {f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}"}:
            return ""
        raise Fault(403, "Pages of other origins may not use this server. `--allow-origin` allows one.")

    def _is_host(self, header: str) -> bool:
        name = _host_name(header)
        if not name:
            return False
        if name in self._hosts or is_loopback(name):
            return True
        try:
            # A bare address names no domain that somebody else could point here.
            return not self._only_loopback and bool(ip_address(name))
        except ValueError:
            return False


def _host_name(header: str) -> str:
    """The name in a Host header, which may have a port and a dot at its end; "" if it is none."""
    found = _HOST.fullmatch(header.lower())
    return (found[1] or found[2]) if found else ""


class Keys:
    """The keys that open the server, as digests. Without any, it is open."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, key: str) -> str:
        """Refuse what is no key; the answer names the holder without telling the key."""
        given = _digest(key)
        # Every key is compared, in the same time however much of it is right.
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        if self._digests and not any(matches):
            raise Fault(403, "Invalid API key")
        return given.hex() if self._digests else ""


def client_of(address: str) -> str:
    """Whom an address stands for: with IPv6 everybody has a network of them, with 64 bits to choose from."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    return str(found.ipv4_mapped or ip_network((int(found), 64), strict=False))


class Pacing:
    """So many requests a minute for each client; what was not used is saved up for at most a minute."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client → requests, when

    def check(self, client: str) -> None:
        if not self._per_minute:
            return
        now = time.monotonic()
        left, then = self._left.pop(client, (float(self._per_minute), now))
        left = min(float(self._per_minute), left + (now - then) * self._per_minute / 60)
        # Who is refused pays nothing: many at one address, each trying again, would never be heard.
        self._left[client] = (left - (left >= 1), now)
        while len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            raise busy(429, f"Slowdown: {self._per_minute} per 1 minute", 60 / self._per_minute * (1 - left))


def read_keys(path: Path) -> Keys:
    """A key a line; empty lines and lines that begin with # are left out."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"The keys in {path} cannot be read ({error}). Give a text file with a key a line."
        ) from None
    keys = [line for line in lines if line and not line.startswith("#")]
    short = sum(len(key) < SHORTEST_KEY for key in keys)
    if not keys or short:
        raise DataError(
            f"{path} holds {len(keys)} keys, {short} of them shorter than {SHORTEST_KEY} characters. "
            "Write one a line; `python3 -c 'import secrets; print(secrets.token_urlsafe())'` makes one."
        )
    return Keys(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
