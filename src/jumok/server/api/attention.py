"""Explanations, and the live page about attention: what a model looks at, and what changing that does.

The questions and their answers are those of `jumok.viewer`, which runs in the workers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError
from starlette.responses import HTMLResponse, Response

from jumok.errors import DataError
from jumok.look import page_with
from jumok.questions import AskedChanges, Strict, first_fault
from jumok.serve.contract import check_size, read_texts, require
from jumok.serve.faults import Fault, invalid
from jumok.serve.routes import Route

if TYPE_CHECKING:
    from jumok.serve.directions import Direction
    from jumok.serve.routes import Call

__all__ = ["ATTENTION", "NO_MODEL", "Question", "explain", "show_page"]

NO_MODEL = "No single model translates in this direction, so there is no attention to see."
PAGE_ASKS = ("explain", "rank-heads", "steps")


class Question(Strict):
    """What /v1/explain takes beside the languages and the key. Changes are those of `jumok.explain`."""

    q: str = Field(min_length=1, max_length=1_000)
    translation: str | None = Field(None, max_length=2_000)
    changes: AskedChanges = Field([])


async def explain(call: Call) -> Response:
    """One sentence and one model: the explanation as `Explanation.to_json` gives it."""
    read_texts(call, arrays=False)
    require(call, "source", "target")
    fields = dict(call.sent.fields)
    direction = _direction(call, fields.pop("source"), fields.pop("target"))
    try:
        asked = Question.model_validate(fields)
    except ValidationError as error:
        raise invalid(first_fault(error)) from None
    question = {"sentence": asked.q, "changes": [one.model_dump(mode="json") for one in asked.changes]}
    if asked.translation is not None:
        question["target"] = asked.translation
    try:
        return await _ask(call, direction, "explain", question)
    except DataError as error:
        # Well asked, but this model, or this sentence, has no such place.
        raise Fault(409, str(error)) from None


async def show_page(call: Call) -> Response:
    """The live page. Its questions carry no key, so a server that asks for keys does not show it."""
    if call.service.keys:
        raise Fault(404, "Where keys are asked for there is no live page; POST /v1/explain tells the same.")
    direction = _named(call)
    data = json.loads(await call.service.renderer.view(direction, "page", ""))
    sentence = call.sent.fields.get("q", "")
    data["live"]["sentence"] = sentence if isinstance(sentence, str) else ""
    # The page brings a policy of its own, which names its one script.
    return HTMLResponse(page_with(data), headers={"Content-Security-Policy": "frame-ancestors 'none'"})


async def answer_page(call: Call) -> Response:
    """What the live page asks."""
    what = call.parameters["what"]
    if what not in PAGE_ASKS:
        raise Fault(404, "There is nothing at this address.")
    try:
        return await _ask(call, _named(call), what, call.sent.fields)
    except DataError as error:
        raise invalid(str(error)) from None


async def _ask(call: Call, direction: Direction, what: str, question: dict[str, Any]) -> Response:
    check_size([text for text in question.values() if isinstance(text, str)], call.service)
    try:
        written = json.dumps(question)
    except RecursionError:
        raise invalid("it is nested too deeply") from None
    answer = await call.service.renderer.view(direction, what, written)
    return Response(answer, media_type="application/json")


def _named(call: Call) -> Direction:
    """The model that an address names."""
    for direction in call.service.directions.all:
        if direction.name == call.parameters["direction"]:
            return direction
    raise Fault(400, NO_MODEL)


def _direction(call: Call, source: str, target: str) -> Direction:
    """The one model that goes from a language to another."""
    route = call.service.directions.route(source, target)
    if route is None or len(route) != 1:
        raise invalid(f"there is no model of its own from {source[:40]} to {target[:40]}")
    return route[0]


ATTENTION = [
    Route("POST", "/attention/{direction}/{what}", "attentionAnswer", answer_page, guarded=True),
]
