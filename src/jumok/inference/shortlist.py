"""A vocabulary shortlist: the few pieces that a translation can be made of, given the pieces of its source.

The last product of a step, states times all the pieces there are, is the largest of a small model. Most
pieces are far from anything that the source says, so it is only formed for those that were seen beside a
piece of the source, and for the most frequent ones. A batch has one shortlist, that of all its sources.

On disk it is CTranslate2's vocabulary map: a line `source piece TAB target pieces`, by number, and first one
without a source piece for those that always may be said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError
from jumok.values import END, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jumok.text import Vocabularies

__all__ = ["Shortlist"]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """What may be said `always`, and `beside` each piece of a source. Marks are left out of both."""

    always: Sequence[int]
    beside: Mapping[int, Sequence[int]]

    def pieces(self, sources: Iterable[Sequence[int]]) -> list[int]:
        """What the translations of these sources may be made of, in ascending order; `</s>` among it."""
        found = {UNKNOWN, END, *self.always}
        for piece in {piece for source in sources for piece in source}:
            found.update(self.beside.get(piece, ()))
        return sorted(found)

    def to_bytes(self) -> bytes:
        lines = [("", self.always), *sorted(self.beside.items())]
        return "".join(f"{piece}\t{' '.join(map(str, beside))}\n" for piece, beside in lines).encode()

    @classmethod
    def from_bytes(cls, data: bytes, vocabularies: Vocabularies) -> Shortlist:
        """The inverse. A ModelFolderError says what is odd."""
        try:
            first, *others = data.decode("ascii").split("\n")[:-1]
            always = _numbers(first.removeprefix("\t"))
            beside = {
                int(piece): _numbers(rest) for piece, _, rest in (line.partition("\t") for line in others)
            }
        except ValueError as error:
            raise ModelFolderError(
                f"The shortlist of the model cannot be read ({error}). {_REMEDY}"
            ) from None
        found = cls(always, beside)
        found.refuse_misfits(vocabularies)
        return found

    def refuse_misfits(self, vocabularies: Vocabularies) -> None:
        """Raise a ModelFolderError where it has pieces that these vocabularies have not."""
        said = {piece for pieces in (self.always, *self.beside.values()) for piece in pieces}
        for pieces, size in ((self.beside, vocabularies.source.size), (said, vocabularies.target.size)):
            if pieces and not END < min(pieces) <= max(pieces) < size:
                raise ModelFolderError(
                    f"The shortlist has pieces from {min(pieces)} to {max(pieces)}; the vocabulary of the "
                    f"model has {size:,}, of which the first {END + 1} are marks. {_REMEDY}"
                )


_REMEDY = "Learn it again with `jumok shortlist`."


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))
