"""The API of LibreTranslate, so that clients of LibreTranslate work unchanged.

Routes, fields, error messages and the order of the checks are the same as in LibreTranslate. The
additions are the field `glossary` of requests, `pivot` in answers, and `notes` in answers about files.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import ConfigDict, WithJsonSchema
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from jumok.documents.html_markup import read_markup
from jumok.documents.registry import DOCUMENT_FORMATS, DocumentTooLargeError, read_document
from jumok.errors import DataError
from jumok.server.api.fields import (
    ApiModel,
    GlossaryField,
    Language,
    Source,
    Text,
    TextOrTexts,
    allow_known_pairs,
    bounded_integer,
)
from jumok.server.api.parameters import DetectedLanguage, check_languages, check_size, find_pivot_paths
from jumok.server.http_errors import bad_request, retry_later
from jumok.server.metrics import METRICS_MEDIA_TYPE
from jumok.server.request_body import FORM, MULTIPART
from jumok.server.routes import GET, JSON_TYPE, POST, Endpoint
from jumok.server.workers.pending import TranslateOptions
from jumok.text.language_detection import detect_languages
from jumok.text.languages import language_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.document import Document, DocumentFormat
    from jumok.documents.html_markup import HtmlMarkup
    from jumok.server.api.parameters import LanguagePlan
    from jumok.server.pipeline import OnProgress, TranslatedText
    from jumok.server.routes import ApiRequest

__all__ = ["FRONTEND_TIMEOUT", "ROUTES", "FileToTranslate", "TranslateFileRequest", "read_file"]

TEXT_FORMATS = ("text", "html")
FRONTEND_TIMEOUT = 500  # milliseconds that a page waits for the next key press before it sends a request
ANY_BODY = (JSON_TYPE, FORM, MULTIPART)
# A multipart form sends every value as text, so the schema has no type. `minItems` is for schemathesis, which
# tests servers with random requests. It sends an array as one part per item, and an empty array would be a
# request without a file.
FILE_SCHEMA = {
    "description": "A file whose name has a known suffix; text in UTF-8 (.strings also in UTF-16)",
    "minItems": 1,
}


class TranslateRequest(ApiModel):
    model_config = ConfigDict(json_schema_extra=allow_known_pairs)

    q: TextOrTexts
    source: Source
    target: Language
    alternatives: Annotated[int, bounded_integer(0, lambda limits: limits.max_alternatives)] = 0
    format: Annotated[Any, WithJsonSchema({"enum": [*TEXT_FORMATS, ""]})] = ""
    """`translate` checks the format after the languages, as LibreTranslate does."""
    glossary: GlossaryField = ""


class DetectRequest(ApiModel):
    q: Text


class TranslateFileRequest(ApiModel):
    model_config = ConfigDict(json_schema_extra=allow_known_pairs)

    file: Annotated[bytes, WithJsonSchema(FILE_SCHEMA)]
    source: Source
    target: Language
    glossary: GlossaryField = ""


class TranslateAnswer(TypedDict):
    """If `q` is an array, each field except `pivot` is an array with one element per text.

    `pivot` has the pivot languages of all texts.
    """

    translatedText: str | list[str]
    detectedLanguage: NotRequired[DetectedLanguage | list[DetectedLanguage]]
    alternatives: NotRequired[list[str] | list[list[str]]]
    pivot: NotRequired[list[str]]


class TranslateFileAnswer(TypedDict):
    """The address of the translated file; `notes` say which text stays as it is, and why."""

    translatedFileUrl: str
    notes: NotRequired[list[str]]


class SupportedLanguage(TypedDict):
    code: str
    name: str
    targets: list[str]


async def translate(request: ApiRequest) -> Response:
    """Translate text."""
    fields, service = TranslateRequest.read(request), request.service
    texts = fields.q if isinstance(fields.q, list) else [fields.q]
    check_size(texts, service)
    check_languages(fields.source, fields.target, service)
    if fields.format not in ("", *TEXT_FORMATS):
        raise HTTPException(400, f"{str(fields.format)[:40]} format is not supported")
    plan = await find_pivot_paths(texts, fields.source, fields.target, service, fields.glossary)
    n_best = fields.alternatives + 1
    if fields.format == "html":
        service.pipeline.check_room(request.client_id, sum(map(len, texts)))
        ranked = await _translate_html(request, texts, plan, n_best)
    else:
        translated = await service.pipeline.translate_all(
            texts, plan.pivot_paths, TranslateOptions(n_best), request.client_id, plan.glossaries
        )
        ranked = await service.thread_slot.run_if_large(sum(map(len, texts)), _ranked_texts, translated)
    return JSONResponse(_to_answer(fields, ranked, plan), headers=_pivot_header(plan))


def _ranked_texts(translated: Sequence[TranslatedText]) -> list[list[str]]:
    """Return the translations of each text, best first, without duplicates."""
    return [[text.text(rank) for rank in (0, *text.other_ranks())] for text in translated]


def _to_answer(fields: TranslateRequest, ranked: list[list[str]], plan: LanguagePlan) -> TranslateAnswer:
    is_array = isinstance(fields.q, list)
    best = [texts[0] for texts in ranked]
    others = [texts[1 : fields.alternatives + 1] for texts in ranked]
    answer: TranslateAnswer = {"translatedText": best if is_array else best[0]}
    if plan.detected is not None:
        answer["detectedLanguage"] = plan.detected if is_array else plan.detected[0]
    if fields.alternatives:
        answer["alternatives"] = others if is_array else others[0]
    if plan.pivots:
        answer["pivot"] = plan.pivots
    return answer


def _pivot_header(plan: LanguagePlan) -> dict[str, str]:
    return {"X-Translated-Through": ", ".join(plan.pivots)} if plan.pivots else {}


async def _translate_html(
    request: ApiRequest, texts: Sequence[str], plan: LanguagePlan, n_best: int
) -> list[list[str]]:
    """Return the translations of each HTML text, best first, without duplicates."""

    def read() -> tuple[list[HtmlMarkup], list[list[str]]]:
        markups = [read_markup(text) for text in texts]
        return markups, [markup.segments for markup in markups]

    markups, segments_by_text = await request.service.thread_slot.run_if_large(sum(map(len, texts)), read)
    segments = [segment for text_segments in segments_by_text for segment in text_segments]
    paths = [
        path
        for path, text_segments in zip(plan.pivot_paths, segments_by_text, strict=True)
        for _ in text_segments
    ]
    options = TranslateOptions(n_best, align=True)
    service, client = request.service, request.client_id
    translated = iter(await service.pipeline.translate_all(segments, paths, options, client, plan.glossaries))

    def fill() -> list[list[str]]:
        return [
            _fill_ranked(markup, list(islice(translated, len(text_segments))), n_best if path else 1)
            for markup, text_segments, path in zip(markups, segments_by_text, plan.pivot_paths, strict=True)
        ]

    return await service.thread_slot.run_if_large(n_best * sum(map(len, segments)), fill)


def _fill_ranked(markup: HtmlMarkup, translated: Sequence[TranslatedText], num_ranks: int) -> list[str]:
    """Return the translations of an HTML text, best first, without duplicates."""
    ranked = [
        markup.fill([segment.segment_translation(rank) for segment in translated])
        for rank in range(num_ranks)
    ]
    return list(dict.fromkeys(ranked))


async def detect(request: ApiRequest) -> Response:
    """Detect a language."""
    text, service = DetectRequest.read(request).q, request.service
    check_size([text], service)
    codes = service.language_pairs.codes
    detected = await service.thread_slot.run_if_large(len(text), detect_languages, text, codes)
    return JSONResponse([{"confidence": confidence, "language": code} for code, confidence in detected])


async def translate_file(request: ApiRequest) -> Response:
    """Translate a file."""
    file = await read_file(request)
    return JSONResponse(await file.translate(), headers=_pivot_header(file.plan))


@dataclass(frozen=True, slots=True)
class FileToTranslate:
    """The file of a request: its format, its segments, and how they are translated (`plan`)."""

    request: ApiRequest
    document_format: DocumentFormat
    document: Document
    segments: list[str]
    plan: LanguagePlan

    async def translate(self, on_progress: OnProgress | None = None) -> TranslateFileAnswer:
        """Translate the file, and keep the translation for download. Return the answer with its address."""
        request, document = self.request, self.document
        service, target = request.service, request.fields["target"]
        translated = await service.pipeline.translate_all(
            self.segments,
            self.plan.pivot_paths * len(self.segments),  # the plan has one path, for all segments
            TranslateOptions(align=True),
            request.client_id,
            self.plan.glossaries,
            on_progress=on_progress,
        )
        # The path is empty if the text is already in the target language.
        source = next((pair.source for pair in self.plan.pivot_paths[0]), target)
        data = await service.thread_slot.run(
            lambda: document.write([text.segment_translation() for text in translated], target, source)
        )
        name = service.download_cache.put(data, self.document_format)
        url = f"{request.scope['scheme']}://{request.headers['host']}/download_file/{name}"
        answer: TranslateFileAnswer = {"translatedFileUrl": url}
        if document.notes:
            answer["notes"] = list(document.notes)
        return answer


async def read_file(request: ApiRequest) -> FileToTranslate:
    """Read the file of a request, check the other fields, and find the models. Refuse an invalid request."""
    content, service = request.content, request.service
    fields = TranslateFileRequest.read(request, file=content.file)
    service.pipeline.check_room(request.client_id, len(fields.file))
    limits = service.limits

    def read() -> tuple[DocumentFormat, Document, list[str]]:
        document_format, document = read_document(
            content.file_name,
            fields.file,
            max_syntax_characters=limits.max_file_syntax_characters,
            max_parsed_bytes=limits.max_file_parsed_bytes,
        )
        return document_format, document, document.segments

    try:
        document_format, document, segments = await service.thread_slot.run(read)
    except DocumentTooLargeError as error:
        raise HTTPException(413, str(error)) from None
    except DataError as error:
        raise bad_request(str(error)) from None
    check_size(["".join(segments)], service)
    text = "\n".join(segments)
    plan = await find_pivot_paths([text], fields.source, fields.target, service, fields.glossary)
    return FileToTranslate(request, document_format, document, segments, plan)


async def download_file(request: ApiRequest) -> Response:
    """Download a translated file."""
    file = request.service.download_cache.get(request.path_params["name"])
    if file is None:
        raise HTTPException(404, "There is no such file, or it has expired.")
    # A browser must never show the file as a page of this server.
    headers = {
        "Content-Disposition": f'attachment; filename="translated{file.document_format.suffix}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return Response(file.data, media_type=file.document_format.media_type, headers=headers)


async def languages(request: ApiRequest) -> Response:
    """List languages."""
    return JSONResponse(request.service.language_pairs.to_json())


async def frontend_settings(request: ApiRequest) -> Response:
    """Settings of the web page."""
    service = request.service
    default_codes = service.language_pairs.codes[:2]
    source, target = ({"code": code, "name": language_name(code)} for code in default_codes)
    return JSONResponse(
        {
            "apiKeys": bool(service.api_keys),
            "charLimit": service.limits.max_characters,
            "filesTranslation": True,
            "frontendTimeout": FRONTEND_TIMEOUT,
            "keyRequired": bool(service.api_keys),
            "language": {"source": source, "target": target},
            "suggestions": False,
            "supportedFilesFormat": [document_format.suffix for document_format in DOCUMENT_FORMATS],
        }
    )


async def health(request: ApiRequest) -> Response:
    """Whether the server can translate: 503 if no worker is ready."""
    if not request.service.pool.pids:
        raise retry_later(503, "No worker is ready.", 5)
    return JSONResponse({"status": "ok"})


async def metrics(request: ApiRequest) -> Response:
    """Metrics for Prometheus."""
    return Response(request.service.metrics.to_text(), media_type=METRICS_MEDIA_TYPE)


DOWNLOAD = Endpoint(
    download_file,
    str,
    answer_types=tuple(each.media_type.partition(";")[0] for each in DOCUMENT_FORMATS),
    more_errors=("404",),
    guarded=False,
)
METRICS = Endpoint(metrics, str, answer_types=("text/plain",), more_errors=("429",))
ROUTES = [
    Route(
        "/translate",
        Endpoint(translate, TranslateAnswer, TranslateRequest, body_types=ANY_BODY),
        methods=POST,
    ),
    Route(
        "/detect", Endpoint(detect, list[DetectedLanguage], DetectRequest, body_types=ANY_BODY), methods=POST
    ),
    Route("/languages", Endpoint(languages, list[SupportedLanguage], guarded=False), methods=GET),
    Route(
        "/translate_file",
        Endpoint(translate_file, TranslateFileAnswer, TranslateFileRequest, body_types=(MULTIPART,)),
        methods=POST,
    ),
    Route("/download_file/{name}", DOWNLOAD, methods=GET),
    Route("/frontend/settings", Endpoint(frontend_settings, dict[str, Any], guarded=False), methods=GET),
    Route("/health", Endpoint(health, dict[str, str], more_errors=("503",), guarded=False), methods=GET),
    Route("/metrics", METRICS, methods=GET),
]
