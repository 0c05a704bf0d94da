"""The size limits and timeouts of the server. All are on by default.

Limits of single fields are in the modules that check them, such as `api/fields.py` and `api/attention.py`.
`request_body.py` limits the number of values in a body, and `http_protocol.py` the heads of requests.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits per request, per client and for the whole server. Times are in seconds."""

    max_characters: int = 100_000
    """Characters of text per request; LibreTranslate's `charLimit`."""
    max_texts: int = 1_000
    """Texts per array."""
    max_alternatives: int = 10
    """Translations of a text besides the best one; words that `/v1/candidates` returns."""
    max_request_seconds: float = 7.0
    """A request is refused if an idle server is estimated to need more time than this for it."""
    max_body_bytes: int = 2 * 2**20
    """Bytes of the body of a request, checked while the body arrives, before it is parsed."""
    max_total_body_bytes: int = 128 * 2**20
    """Total size of the bodies of all requests that are being read or answered."""
    max_file_syntax_characters: int = 100_000
    """Tags, entities and line ends of a file, counted before it is parsed: each costs microseconds."""
    max_file_parsed_bytes: int = 16 * 2**20
    """Bytes of the parts of a file that are parsed, after they are decompressed."""
    header_timeout: float = 10.0
    """Time within which a client must send the headers of a request."""
    body_timeout: float = 20.0
    """Time within which a client must send the body of a request."""
    response_timeout: float = 60.0
    """Time within which a client must read the response, or each part of a streamed response."""
    max_connections: int = 2_000
    max_queued_sentences: int = 12_288
    max_queued_characters: int = 1_500_000
    """The queue is full with `max_queued_sentences` or this many characters. Unless the queue is empty, a
    client may add only so much that it has at most twice as much in the queue as is then free."""
    request_timeout: float = 60.0
    """Time for answering a request. A request that needs more is refused at once, or ends with 503."""
    thread_timeout: float = 15.0
    """Time that a large request may wait for the thread that reads and writes documents."""
    batch_timeout: float = 30.0
    """Time within which a worker must answer a batch: half of `request_timeout`, so that a retry fits in."""
    question_timeout: float = 20.0
    """Time within which a worker must answer a question (explanation, candidate words, caption).

    A question is not tried again."""
    requests_per_minute: int = 3_000
    """Limit for each key. If the server has no keys, the limit for each IPv4 address or IPv6 /64 network.

    0 means no limit."""
    max_cached_files: int = 100
    """Translated files that wait in memory to be downloaded."""
    max_cached_file_bytes: int = 64 * 2**20
    """Total size of these files."""
    cached_file_lifetime: float = 1_200.0
    """Time for which a translated file can be downloaded."""
    drain_timeout: float = 90.0
    """Time for answering the accepted requests after SIGTERM or Ctrl-C. Then the server ends."""
