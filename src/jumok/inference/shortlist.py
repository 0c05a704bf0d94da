"""A vocabulary shortlist: the few tokens that a translation may consist of, given the tokens of its source.

The output projection over the whole vocabulary is the largest matrix product of a small model. Most tokens
have nothing to do with the source, so the product is computed only for tokens that are aligned with a source
token in the training pairs, and for the most frequent tokens. For a batch, the tokens of all its sources are
allowed in each translation.

The file has the format of CTranslate2's vocabulary map. A line has a source token, a tab, and target tokens,
all as ids. The first line has no source token, and lists the tokens that are always allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError
from jumok.types import END, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jumok.text.tokenizer import TokenizerPair


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The target tokens allowed for every source (`always`) and for each source token (`by_source`).

    Special tokens are not listed. `<unk>` and `</s>` are always allowed, `<pad>` and `<s>` never.
    """

    always: Sequence[int]
    by_source: Mapping[int, Sequence[int]]

    def tokens(self, sources: Iterable[Sequence[int]]) -> list[int]:
        """Return the target tokens allowed for any of these sources, in ascending order.

        `<unk>` and `</s>` are always among them.
        """
        allowed = {UNKNOWN, END, *self.always}
        for token in {token for source in sources for token in source}:
            allowed.update(self.by_source.get(token, ()))
        return sorted(allowed)

    def to_bytes(self) -> bytes:
        """Return the file content; see the top of this module."""
        lines = [("", self.always), *sorted(self.by_source.items())]
        return "".join(f"{source}\t{' '.join(map(str, targets))}\n" for source, targets in lines).encode()

    @classmethod
    def from_bytes(cls, data: bytes, tokenizers: TokenizerPair) -> Shortlist:
        """Return the shortlist in the content of a file.

        Raise a ModelFolderError if it cannot be read or does not fit the tokenizers.
        """
        try:
            first, *others = data.decode("ascii").split("\n")[:-1]
            always = _parse_ids(first.removeprefix("\t"))
            by_source = {
                int(token): _parse_ids(rest) for token, _, rest in (line.partition("\t") for line in others)
            }
        except ValueError as error:
            raise ModelFolderError(
                f"The shortlist of the model cannot be read ({error}). {_REMEDY}"
            ) from None
        shortlist = cls(always, by_source)
        shortlist.check_fits(tokenizers)
        return shortlist

    def check_fits(self, tokenizers: TokenizerPair) -> None:
        """Raise a ModelFolderError if the shortlist has special tokens or tokens that the tokenizers lack."""
        targets = {token for tokens in (self.always, *self.by_source.values()) for token in tokens}
        for tokens, tokenizer in ((self.by_source, tokenizers.source), (targets, tokenizers.target)):
            if tokens and not END < min(tokens) <= max(tokens) < tokenizer.vocab_size:
                raise ModelFolderError(
                    f"The shortlist has token ids from {min(tokens)} to {max(tokens)}; the vocabulary of the "
                    f"model has {tokenizer.vocab_size:,} ids, of which the first {END + 1} are special "
                    f"tokens. {_REMEDY}"
                )


_REMEDY = "Learn it again with `jumok shortlist`."


def _parse_ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))
