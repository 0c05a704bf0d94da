"""Options for texts: whether they are split into sentences, and which terms their translations must have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from jumok.inference.search.plan import SearchOverrides
from jumok.text.protected_strings import may_have_protected
from jumok.text.sentences import check_sentences

if TYPE_CHECKING:
    from jumok.inference.translator import Translator
    from jumok.text.glossary import Glossary
    from jumok.text.sentences import Sentences


class TextOptions(SearchOverrides, total=False):
    """The options of `Translator.translate` for the texts and for the search. All may be left out."""

    sentences: str | None
    """"split" translates each sentence separately. "keep" translates each line as a whole.

    None is the default of the model.
    """
    glossary: Glossary | None
    """Terms that a translation must use."""
    protect: bool
    """Whether addresses and placeholders are put into a translation that has lost them.

    The default is True.
    """


class LineByLine(TypedDict):
    """The type of `LINE_BY_LINE`."""

    sentences: Sentences
    protect: bool


LINE_BY_LINE: LineByLine = {"sentences": "keep", "protect": False}
"""Options if the caller has divided the text, or only wants scores.

Each line is translated as a whole, and the translation is not edited."""


@dataclass(frozen=True, slots=True)
class TextHandling:
    """How texts are handled before the search, and translations after the search."""

    sentences: Sentences = "split"
    glossary: Glossary | None = None
    protect: bool = True

    def may_have_terms(self, text: str) -> bool:
        """Whether the translation of a text may need terms, addresses or placeholders."""
        return self.glossary is not None or (self.protect and may_have_protected(text))


def separate_options(options: TextOptions, translator: Translator) -> tuple[TextHandling, SearchOverrides]:
    """Return the options for texts and the options for the search.

    The default of `sentences` is that of the translator.
    """
    search = dict(options)
    sentences = search.pop("sentences", None)
    handling = TextHandling(
        translator.sentences if sentences is None else check_sentences(str(sentences)),
        cast("Glossary | None", search.pop("glossary", None)),
        bool(search.pop("protect", True)),
    )
    return handling, cast("SearchOverrides", search)
