"""What a live page may ask, and what it is told. Every question is checked before a model sees it."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, Field, ValidationError

from jumok.errors import DataError
from jumok.explain import Cell, change_from_json, model_facts
from jumok.explain.document import cell_to_document, to_document
from jumok.questions import AskedChanges, Strict, first_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.decoding import Translator
    from jumok.explain import Explanation
    from jumok.viewer.run import WatchedRun

__all__ = ["Viewed", "Viewer"]

MOST_LETTERS = 1000
KEPT = 16


Asked = TypeVar("Asked", bound=BaseModel)


class CellPlace(Strict):
    site: str = Field(max_length=20)
    layer: int
    head: int
    query: int
    key: int


class Question(Strict):
    """A sentence for a model, what is changed, and how the translation must begin or what it is."""

    model: int = Field(0, ge=0)
    sentence: str = Field(max_length=MOST_LETTERS)
    changes: AskedChanges = Field(default_factory=list)
    forced_prefix: list[int] = Field(default_factory=list, max_length=512)
    target: str | None = Field(None, max_length=2 * MOST_LETTERS)
    cell: CellPlace | None = None


class Snapshot(Strict):
    """A sentence for the model of one checkpoint."""

    step: int = Field(ge=0)
    sentence: str = Field(max_length=MOST_LETTERS)


@dataclass(frozen=True, slots=True)
class Viewed:
    """A model that can be asked, and its name on the page."""

    name: str
    translator: Translator

    def card(self) -> dict[str, Any]:
        languages = {
            "source_language": self.translator.source_language,
            "target_language": self.translator.target_language,
        }
        return {"name": self.name, "facts": model_facts(self.translator.model) | languages}


class Viewer:
    """Models, and answers to what a page asks of them. One question is worked on at a time."""

    def __init__(
        self, models: Sequence[Viewed], *, sentence: str = "", run: WatchedRun | None = None, kept: int = KEPT
    ) -> None:
        """`kept` explanations are kept, so that steps and effects are asked of the one that is seen."""
        self._models = tuple(models)
        self._sentence = sentence
        self._run = run
        self._most_kept = kept
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Explanation] = OrderedDict()
        self._answers: dict[str, Callable[[bytes], Any]] = {
            "rank-heads": self._rank_heads,
            "steps": self._steps,
        }
        if run is not None:
            self._answers |= {"run": lambda _: run.report(), "snapshot": self._snapshot}

    def data(self) -> dict[str, Any]:
        """What the page must know before it asks."""
        cards = [model.card() for model in self._models]
        return {"live": {"models": cards, "run": self._run is not None, "sentence": self._sentence}}

    def knows(self, what: str) -> bool:
        return what == "explain" or what in self._answers

    def answer(self, what: str, body: bytes, hear: Callable[[str], None] | None = None) -> bytes:
        """The answer to a question, as JSON. `hear` is told the translation while "explain" writes it."""
        with self._lock:
            found = self._explain(body, hear) if what == "explain" else self._answers[what](body)
        return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def _explain(self, body: bytes, hear: Callable[[str], None] | None) -> dict[str, Any]:
        return to_document(self._explanation(_question(body), hear), fine=True)

    def _rank_heads(self, body: bytes) -> dict[str, Any]:
        told = to_document(self._explanation(_question(body)).with_effects(), weights=False)
        effects = {site: one["effect"] for site, one in told["statistics"].items()}
        return {"effect": effects, "group_effects": told["group_effects"]}

    def _steps(self, body: bytes) -> dict[str, Any]:
        question = _question(body)
        if question.cell is None:
            raise DataError("Steps are those of one cell. Received: no cell.")
        cell = Cell(**question.cell.model_dump())
        steps = self._explanation(question).steps(cell.site, cell.layer, cell.head, cell.query, cell.key)
        return cell_to_document(steps)

    def _snapshot(self, body: bytes) -> dict[str, Any]:
        asked = _checked(Snapshot, body)
        run = cast("WatchedRun", self._run)
        return to_document(
            self._kept(asked.model_dump_json(), lambda: run.translator(asked.step).explain(asked.sentence)),
            fine=True,
        )

    def _explanation(self, question: Question, hear: Callable[[str], None] | None = None) -> Explanation:
        key = question.model_dump_json(exclude={"cell"})
        if hear is not None and key in self._known:
            self._tell_again(question, self._known[key], hear)
        return self._kept(key, lambda: self._explained(question, hear))

    def _tell_again(self, question: Question, known: Explanation, hear: Callable[[str], None]) -> None:
        """The beginnings of a translation that was searched for before, as if it were written now."""
        if known.search is None:
            return
        subwords = self._models[question.model].translator.vocabularies.target
        for length in range(1, len(known.target.ids) + 1):
            hear(subwords.decode(known.target.ids[:length]))

    def _kept(self, key: str, make: Callable[[], Explanation]) -> Explanation:
        if key not in self._known:
            self._known[key] = make()
        self._known.move_to_end(key)
        while len(self._known) > self._most_kept:
            self._known.popitem(last=False)
        return self._known[key]

    def _explained(self, question: Question, hear: Callable[[str], None] | None) -> Explanation:
        if question.model >= len(self._models):
            raise DataError(
                f"There are {len(self._models)} models, counted from 0. Received: {question.model}."
            )
        translator = self._models[question.model].translator
        pieces = translator.vocabularies.target.size
        if not all(0 <= piece < pieces for piece in question.forced_prefix):
            raise DataError(f"A translation begins with pieces from 0 to {pieces - 1}. Received: others.")
        changes = [change_from_json(change.model_dump()) for change in question.changes]
        return translator.explain(
            question.sentence,
            target=question.target,
            forced_prefix=question.forced_prefix,
            edit=changes or None,
            hear=hear,
        )


def _question(body: bytes) -> Question:
    return _checked(Question, body)


def _checked(kind: type[Asked], body: bytes) -> Asked:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise DataError(f"This cannot be answered: {first_fault(error)}.") from None
