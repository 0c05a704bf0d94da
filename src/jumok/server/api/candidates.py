"""`/v1/candidates`: other words at one position of a translation, each with the translation that results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from jumok.errors import DataError
from jumok.server.api.attention import ShortText, require_single_model, single_model_pair
from jumok.server.api.fields import ApiModel, Language, Tags, bounded_integer
from jumok.server.api.parameters import check_size, check_tags
from jumok.server.api.v1 import ScoredText, ScoredWord, SpanLink, translation_json
from jumok.server.pipeline import TranslatedText, read_translations
from jumok.server.routes import POST, Endpoint
from jumok.server.workers.pending import Question, TranslateOptions
from jumok.text.sentences import text_spans

if TYPE_CHECKING:
    from jumok.server.routes import ApiRequest

MAX_PREFIX_CHARACTERS = 2_000
DEFAULT_COUNT = 6


class CandidatesRequest(ApiModel):
    model_config = ConfigDict(json_schema_extra=require_single_model)

    q: ShortText
    source: Language
    target: Language
    prefix: str = Field("", max_length=MAX_PREFIX_CHARACTERS)
    """The translation up to the word to replace."""
    count: Annotated[int, bounded_integer(1, lambda limits: limits.max_alternatives)] = DEFAULT_COUNT
    tags: Tags = ()


class CandidateWord(ScoredText):
    word: str
    probability: float
    alignment: list[SpanLink]
    words: list[ScoredWord]


class CandidatesAnswer(TypedDict):
    candidates: list[CandidateWord]


async def find_candidates(request: ApiRequest) -> Response:
    """Find other words at a position of a translation.

    The answer has the most probable words after `prefix`. With each word comes the best translation that
    begins with the prefix and this word.
    """
    fields, service = CandidatesRequest.read(request), request.service
    pair = single_model_pair(request, fields.source, fields.target)
    check_size([fields.q, fields.prefix], service)
    check_tags(fields.tags, [(pair,)], service)
    num_sentences = len(text_spans(fields.q, pair.sentences))
    if num_sentences > 1:
        raise HTTPException(409, f"q has {num_sentences} sentences. Send the sentence of the word alone.")
    sentence = " ".join((*fields.tags, fields.q))
    parameters = {"sentence": sentence, "prefix": fields.prefix, "count": fields.count}
    question = Question("candidates", parameters, sentence + fields.prefix)
    try:
        answer = await service.pipeline.ask(pair, question, request.client_id)
    except DataError as error:
        raise HTTPException(409, str(error)) from None
    records = json.loads(answer)
    options = TranslateOptions(align=True, words=True)
    span = (0, len(fields.q))
    candidates = []
    for record, translation in zip(records, read_translations(records, len(fields.tags)), strict=True):
        text = TranslatedText(fields.q, (span,), ((translation,),), pair.target)
        scored_text = translation_json(text, options)
        del scored_text["alternatives"]  # always empty: each candidate word has one translation
        word = {"word": record["word"], "probability": round(record["probability"], 5)}
        candidates.append({**word, **scored_text})
    return JSONResponse({"candidates": candidates})


ROUTES = [
    Route(
        "/v1/candidates",
        Endpoint(find_candidates, CandidatesAnswer, CandidatesRequest, more_errors=("409",)),
        methods=POST,
    ),
]
