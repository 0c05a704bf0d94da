"""Write TMX 1.4: the pairs of one direction as a translation memory, for CAT tools and for jumok."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from jumok.storage.model_folder import jumok_version

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOT_XML = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # characters that XML cannot represent, not even as references such as `&#1;`


def write_tmx(pairs: Iterable[tuple[str, str]], source_language: str, target_language: str) -> bytes:
    """Return a translation memory with one unit per pair. `creationid` marks a unit as machine-translated."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<tmx version="1.4">',
        f'  <header creationtool="jumok" creationtoolversion={quoteattr(jumok_version())} segtype="sentence" '
        f'o-tmf="jumok" adminlang="en" srclang={quoteattr(source_language)} datatype="plaintext"/>',
        "  <body>",
        *(
            f'    <tu creationid="jumok">{_variant(source_language, source)}'
            f"{_variant(target_language, target)}</tu>"
            for source, target in pairs
        ),
        "  </body>",
        "</tmx>",
    ]
    return ("\n".join(lines) + "\n").encode()


def _variant(language: str, text: str) -> str:
    return f"<tuv xml:lang={quoteattr(language)}><seg>{escape(_NOT_XML.sub('', text))}</seg></tuv>"
