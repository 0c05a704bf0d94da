"""Access control: checks of the Host and Origin headers, API keys, and a rate limiter.

Any web page that a user visits can send requests to the user's own machine. The Origin header identifies the
page. The Host header reveals a foreign name that was made to point here (DNS rebinding). If a page of another
site embeds images, scripts or frames, their requests have no Origin header, but a Sec-Fetch-Site header that
says that the page belongs to another site.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections import OrderedDict
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from jumok.errors import DataError
from jumok.server.http_errors import retry_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from starlette.datastructures import Headers

MAX_CLIENTS = 10_000
MIN_KEY_LENGTH = 16
_HOST = re.compile(r"(?:\[([0-9a-f:.]++)\]|([^\s\[\]:/@?#\\]*[^\s\[\]:/@?#\\.])\.?)(?::[0-9]*+)?")


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class HostOriginPolicy:
    """Allows the server's own host and origin, and the hosts and origins in the settings."""

    def __init__(self, bound_host: str, *, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        self._only_loopback = is_loopback(bound_host)
        self._hosts = {bound_host.lower(), *map(_host_name, hosts)}
        # "null" is the origin of every sandboxed frame and local file, so it cannot be allowed.
        self._origins = {origin.rstrip("/").lower() for origin in origins} - {"null"}

    def check(self, headers: Headers) -> str:
        """Return the Origin header if it is the origin of another site that is allowed.

        Return "" if there is no Origin header, or if it is the origin of this server.
        Raise 403 if the host or the origin is not allowed.
        """
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allows_host(hosts[0]):
            raise HTTPException(
                403, "This host name is not allowed. Allow it with `jumok serve --allow-host NAME`."
            )
        origins = headers.getlist("origin")
        if not origins:
            self._check_site(headers)
            return ""
        origin = origins[0].lower()
        if len(origins) == 1 and origin in self._origins:
            return origins[0]
        if len(origins) == 1 and origin in {f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}"}:
            return ""
        raise HTTPException(
            403, "Pages of this origin may not use the server. Allow them with `--allow-origin ORIGIN`."
        )

    def _check_site(self, headers: Headers) -> None:
        """Refuse requests for images, scripts or frames that a page of another site embeds.

        Only browsers send Sec-Fetch headers. Links from other sites are allowed. Requests in mode "cors"
        without an Origin are also allowed, because they come from extensions of the browser.
        """
        if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
            return
        mode = headers.get("sec-fetch-mode")
        is_frame = mode == "navigate" and headers.get("sec-fetch-dest") != "document"
        if mode == "no-cors" or is_frame:
            raise HTTPException(403, "Pages of other sites may link to this server, but not embed it.")

    def _allows_host(self, header: str) -> bool:
        name = _host_name(header)
        if not name:
            return False
        if name in self._hosts or is_loopback(name):
            return True
        try:
            # An IP address is safe. A domain name is not: its owner could make it point here.
            return not self._only_loopback and bool(ip_address(name))
        except ValueError:
            return False


@lru_cache(maxsize=64)
def _host_name(header: str) -> str:
    """Return the name in a Host header, without port and final dot; "" if it is malformed."""
    match = _HOST.fullmatch(header.lower())
    return (match[1] or match[2]) if match else ""


class ApiKeys:
    """Digests of the accepted keys. If there are no keys, everyone may use the server."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, key: str) -> str:
        """Return an id of the key that does not reveal the key; raise 403 for a wrong key."""
        received = _digest(key)
        # Every key is compared, in constant time.
        matches = [hmac.compare_digest(received, digest) for digest in self._digests]
        if self._digests and not any(matches):
            raise HTTPException(403, "Invalid API key")
        return received.hex() if self._digests else ""


@lru_cache(maxsize=256)
def client_network(address: str) -> str:
    """Return the IPv4 address or the IPv6 /64 network that identifies a client.

    A provider usually gives each customer one /64 network.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network((int(parsed), 64), strict=False))


class RateLimiter:
    """A token bucket per client that holds the requests of at most one minute."""

    def __init__(self, requests_per_minute: int) -> None:
        self._per_minute = requests_per_minute
        # client → (remaining requests, time of the last request)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str) -> None:
        """Count a request; raise 429 if the client has sent too many."""
        if not self._per_minute:
            return
        now = time.monotonic()
        remaining, last_time = self._buckets.pop(client, (float(self._per_minute), now))
        remaining = min(float(self._per_minute), remaining + (now - last_time) * self._per_minute / 60)
        # Refused requests consume nothing; otherwise clients behind one NAT would starve each other.
        self._buckets[client] = (remaining - (remaining >= 1), now)
        while len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if remaining < 1:
            seconds = 60 / self._per_minute * (1 - remaining)
            raise retry_later(429, f"Slowdown: {self._per_minute} per 1 minute", seconds)


def read_api_keys(path: Path) -> ApiKeys:
    """Read one key per line; empty lines and lines that begin with # are skipped."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"The keys in {path} cannot be read ({error}). Give a text file with one key per line."
        ) from None
    keys = [line for line in lines if line and not line.startswith("#")]
    num_short = sum(len(key) < MIN_KEY_LENGTH for key in keys)
    if not keys or num_short:
        raise DataError(
            f"{path} has {len(keys)} keys, {num_short} of them shorter than {MIN_KEY_LENGTH} characters. "
            "Write one per line; `python3 -c 'import secrets; print(secrets.token_urlsafe())'` makes one."
        )
    return ApiKeys(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
