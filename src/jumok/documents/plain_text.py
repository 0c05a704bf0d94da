"""Plain text: one segment, with its line breaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.text_document import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.document import SegmentTranslation


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text without markup."""

    text: str

    @property
    def segments(self) -> list[str]:
        return [self.text]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        return translations[0].text


PLAIN_TEXT = DocumentFormat((".txt",), "text/plain; charset=utf-8", partial(read_text, parse=PlainText))
