"""The operations that a live page requests. Every request is validated.

The operations explain a sentence or a picture with a model or with a checkpoint of a run, rank heads, trace
the steps of one weight, measure words and layers, save the model in a page, and report and score a run.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumok.analysis.changes import ChangeList, Silence, first_error
from jumok.analysis.class_explanation import explain_class
from jumok.analysis.cost import CostLimits
from jumok.analysis.explainer import ExplanationOptions, explain
from jumok.analysis.facts import model_facts
from jumok.analysis.head_profile import profile_head
from jumok.analysis.json_format import (
    cell_to_document,
    explanation_to_document,
    layers_to_document,
    measures_to_document,
)
from jumok.analysis.live_explanation import LiveExplanation
from jumok.analysis.live_file import model_page
from jumok.analysis.sentence_scores import score_sentences
from jumok.errors import DataError, UnsupportedError
from jumok.inference.picture_classifier import PictureClassifier
from jumok.server.viewer.yielding_lock import YieldingLock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.analysis.explanation import Explanation
    from jumok.config.recipe import ModelSettings
    from jumok.inference.translator import OnProgress, Translator
    from jumok.server.viewer.run_monitor import RunMonitor

    OnPartial = Callable[[dict[str, Any]], None]

__all__ = ["ExplanationService", "NamedTranslator"]

MAX_CHARACTERS = 1000
MAX_BEAM = 16
MAX_PICTURE_CHARACTERS = 24 * 2**20  # of a data: URL: base64 writes 3 bytes as 4 characters
MAX_ANSWER_BYTES = 32 * 2**20
MAX_SENTENCES = 500  # of a run's validation set
CACHE_SIZE = 16


class Request(BaseModel):
    """A request with exactly these names and types of fields. For example, 1.0 or "1" is no index."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


AnyRequest = TypeVar("AnyRequest", bound=Request)


class CellIndex(Request):
    site: str = Field(max_length=20)
    layer: int
    head: int
    query: int
    key: int


class ExplainRequest(Request):
    """A text or a picture for a model, the changes, and a prefix or a whole translation.

    `prefix` has the token ids with which the translation must begin; `target` is a whole translation.
    A long text is translated in several segments: sentences, or parts of a sentence that is too long for the
    model. The segment with this `index` is explained.
    Without `beam`, the model's recipe sets the beam. A beam of 1 is greedy search.
    A model of pictures reads `picture`, a data: URL, instead of the sentence. Only "steps" reads `cell`.
    """

    model: int = Field(0, ge=0)
    sentence: str = Field(max_length=MAX_CHARACTERS)
    index: int = Field(0, ge=0)
    picture: str = Field("", max_length=MAX_PICTURE_CHARACTERS, pattern="^(data:|$)")
    changes: ChangeList = Field(default_factory=list)
    prefix: list[int] = Field(default_factory=list, max_length=512)
    target: str | None = Field(None, max_length=2 * MAX_CHARACTERS)
    beam: int | None = Field(None, ge=1, le=MAX_BEAM)
    cell: CellIndex | None = None


class HeadProfileRequest(Request):
    """One head of a model, over some sentences of the run's validation set."""

    model: int = Field(0, ge=0)
    site: Literal["encoder", "decoder", "cross"]
    layer: int = Field(ge=0, le=1000)
    head: int = Field(ge=0, le=1000)
    sentences: int = Field(100, ge=1, le=MAX_SENTENCES)


class SentencesRequest(Request):
    """Some sentences of the run's validation set, translated by the run's newest model."""

    sentences: int = Field(100, ge=1, le=MAX_SENTENCES)


class CheckpointRequest(Request):
    """A sentence for the model of one checkpoint."""

    step: int = Field(ge=0)
    sentence: str = Field(max_length=MAX_CHARACTERS)


class FileRequest(Request):
    """A live file with this model; `sentence` is translated when the file opens."""

    model: int = Field(0, ge=0)
    sentence: str = Field("", max_length=MAX_CHARACTERS)


@dataclass(frozen=True, slots=True)
class NamedTranslator:
    """A translator, or a classifier of pictures, and its name on the page.

    `settings` is the `model` section of the recipe. Without it, the model cannot be saved in a live file.
    """

    name: str
    translator: Translator | PictureClassifier
    settings: ModelSettings | None = None

    @property
    def reads_pictures(self) -> bool:
        return isinstance(self.translator, PictureClassifier) or self.translator.reads_pictures

    def to_json(self) -> dict[str, Any]:
        languages = (
            {}
            if isinstance(self.translator, PictureClassifier)
            else {
                "source_language": self.translator.source_language,
                "target_language": self.translator.target_language,
            }
        )
        facts = model_facts(self.translator.model) | languages
        can_be_saved = self.settings is not None and not self.reads_pictures
        return {
            "name": self.name,
            "facts": facts,
            "reads_pictures": self.reads_pictures,
            "can_be_saved": can_be_saved,
        }


class ExplanationService:
    """Answers a page's requests about models and a run, one at a time.

    A long request lets waiting requests go first, between two parts of its work. Explanations are cached,
    because the page requests steps and effects of the explanation that it shows. The cache holds the last
    `cache_size` explanations, or fewer if they are large. A request whose cost exceeds `limits` is refused
    before a model computes anything.
    """

    def __init__(
        self,
        models: Sequence[NamedTranslator],
        *,
        sentence: str = "",
        picture: str = "",
        run: RunMonitor | None = None,
        other_runs: Sequence[RunMonitor] = (),
        cache_size: int = CACHE_SIZE,
        limits: CostLimits = CostLimits(),  # noqa: B008, immutable
    ) -> None:
        self._models = tuple(models)
        self._sentence, self._picture = sentence, picture
        self._run = run
        self._cache_size = cache_size
        self._limits = limits
        self._lock = YieldingLock()
        self._cache: OrderedDict[str, Explanation] = OrderedDict()
        self._operations: dict[str, Callable[[bytes], Any]] = {
            "rank-heads": self._rank_heads,
            "steps": self._steps,
            "measures": self._measures,
            "layers": self._layers,
            "file": self._live_file,
        }
        self._long_operations: dict[str, Callable[[bytes, OnProgress], Any]] = {}
        if run is not None:
            self._operations |= {
                "run": lambda _: run.report() | {"others": [other.curves() for other in other_runs]},
                "snapshot": self._explain_checkpoint,
            }
            self._long_operations = {"head_profile": self._profile_head, "sentences": self._score_sentences}

    def page_data(self) -> dict[str, Any]:
        """Return the data that the page needs before its first request."""
        models = [model.to_json() for model in self._models]
        first = {"sentence": self._sentence, "picture": self._picture}
        return {"live": {"models": models, "run": self._run is not None, **first}}

    @property
    def max_picture_characters(self) -> int:
        """The maximum length of the picture in a request: 0 if no model reads pictures."""
        return MAX_PICTURE_CHARACTERS * any(one.reads_pictures for one in self._models)

    def supports(self, operation: str) -> bool:
        return operation == "explain" or operation in self._operations | self._long_operations

    def handle(self, operation: str, body: bytes, on_partial: OnPartial | None = None) -> bytes:
        """Return the response as JSON.

        `on_partial` receives {"partial": text} for each partial translation of "explain", and
        {"progress": [done, total]} during long operations. If it raises an exception, the work ends.
        """
        with self._lock.hold():
            if operation == "explain":
                response = self._explain(body, on_partial)
            elif operation in self._long_operations:
                response = self._long_operations[operation](body, self._progress_callback(on_partial))
            else:
                response = self._operations[operation](body)
        answer = json.dumps(response, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        if len(answer) > MAX_ANSWER_BYTES:
            raise DataError(
                f"The answer would have {len(answer):,} bytes; at most {MAX_ANSWER_BYTES:,} are sent. Give a "
                "shorter sentence or translation."
            )
        return answer

    def _progress_callback(self, on_partial: OnPartial | None) -> OnProgress:
        """Return the function that long operations call regularly.

        It reports the progress, and lets waiting requests go first.
        """

        def on_progress(done: int, total: int) -> None:
            if on_partial is not None:
                on_partial({"progress": [done, total]})
            self._lock.yield_to_waiting()

        return on_progress

    def _explain(self, body: bytes, on_partial: OnPartial | None) -> dict[str, Any]:
        request = _parse(ExplainRequest, body)
        on_text = None if on_partial is None else lambda text: on_partial({"partial": text})
        document = explanation_to_document(self._explanation(request, on_text), four_decimals=True)
        return document | self._whole_text(request)

    def _whole_text(self, request: ExplainRequest) -> dict[str, Any]:
        """Return the translations of the whole text and of its segments; {} if it has only one segment."""
        translator = self._models[request.model].translator
        if isinstance(translator, PictureClassifier) or translator.reads_pictures:
            return {}
        if len(translator.segment_spans(request.sentence)) < 2:
            return {}
        [translation] = translator.translate([request.sentence], beam=request.beam)
        parts = [{"source": source, "text": text} for source, text in translation.parts]
        return {"whole_text": {"text": translation.text, "parts": parts, "index": request.index}}

    def _rank_heads(self, body: bytes) -> dict[str, Any]:
        explanation = self._live_explanation(body).with_effects()
        document = explanation_to_document(explanation, weights=False)
        effects, token_effects = (
            {site: tables[name] for site, tables in document["statistics"].items()}
            for name in ("effect", "token_effect")
        )
        return {
            "effect": effects,
            "token_effect": token_effects,
            "group_effects": document["group_effects"],
        }

    def _measures(self, body: bytes) -> dict[str, Any]:
        return measures_to_document(self._live_explanation(body).measures())

    def _layers(self, body: bytes) -> dict[str, Any]:
        explanation = self._live_explanation(body)
        layers = explanation.with_layer_predictions().layers if explanation.has_layer_predictions else ()
        return {"layers": layers_to_document(layers)}

    def _live_explanation(self, body: bytes) -> LiveExplanation:
        explanation = self._explanation(_parse(ExplainRequest, body))
        if not isinstance(explanation, LiveExplanation):
            raise UnsupportedError("Only a model that translates has these measures. Received: a classifier.")
        return explanation

    def _steps(self, body: bytes) -> dict[str, Any]:
        request = _parse(ExplainRequest, body)
        if request.cell is None:
            raise DataError("Name the cell whose steps you want. Received: no cell.")
        return cell_to_document(self._explanation(request).steps(**request.cell.model_dump()))

    def _profile_head(self, body: bytes, on_progress: OnProgress) -> dict[str, Any]:
        request, run = _parse(HeadProfileRequest, body), cast("RunMonitor", self._run)
        pairs, available = run.validation_pairs(request.sentences)
        change = Silence(request.site, request.layer, request.head)
        profile = profile_head(self._sentence_model(request.model), pairs, change, on_progress=on_progress)
        return _nan_to_none(asdict(profile)) | {
            "available": available,
            "model": self._model(request.model).name,
        }

    def _score_sentences(self, body: bytes, on_progress: OnProgress) -> dict[str, Any]:
        request, run = _parse(SentencesRequest, body), cast("RunMonitor", self._run)
        newest, previous = run.newest(), run.previous()
        if newest is None:
            raise DataError(f"{run.name} has no checkpoint of a translator yet. Try again after one.")
        pairs, available = run.validation_pairs(request.sentences)
        scores = score_sentences(
            newest.translator,
            pairs,
            previous=None if previous is None else previous.translator,
            on_progress=on_progress,
        )
        return {
            "sentences": [_nan_to_none(asdict(score)) for score in scores],
            "available": available,
            "step": newest.step,
            "previous_step": None if previous is None else previous.step,
        }

    def _sentence_model(self, index: int) -> Translator:
        """Return a model that translates sentences."""
        model = self._model(index)
        if isinstance(model.translator, PictureClassifier) or model.reads_pictures:
            raise UnsupportedError(f"{model.name} reads pictures; this list is of sentences.")
        return model.translator

    def _live_file(self, body: bytes) -> dict[str, str]:
        request = _parse(FileRequest, body)
        model = self._model(request.model)
        if model.settings is None or isinstance(model.translator, PictureClassifier):
            raise UnsupportedError(
                f"{model.name} cannot be saved into a page here. Use: jumok look MODEL --out live.html."
            )
        return {
            "html": model_page(model.translator, model.settings, name=model.name, sentence=request.sentence)
        }

    def _model(self, index: int) -> NamedTranslator:
        if index >= len(self._models):
            raise DataError(f"There are {len(self._models)} models, counted from 0. Received: {index}.")
        return self._models[index]

    def _explain_checkpoint(self, body: bytes) -> dict[str, Any]:
        request = _parse(CheckpointRequest, body)
        run = cast("RunMonitor", self._run)
        explanation = self._get_or_compute(
            request.model_dump_json(),
            lambda: _explain_first(run.translator(request.step), request.sentence, self._limits),
        )
        return explanation_to_document(explanation, four_decimals=True)

    def _explanation(
        self, request: ExplainRequest, on_partial: Callable[[str], None] | None = None
    ) -> Explanation:
        key = hashlib.sha256(request.model_dump_json(exclude={"cell"}).encode()).hexdigest()
        if on_partial is not None and key in self._cache:
            self._report_prefixes(request, self._cache[key], on_partial)
        return self._get_or_compute(key, lambda: self._compute(request, on_partial))

    def _report_prefixes(
        self, request: ExplainRequest, cached: Explanation, on_partial: Callable[[str], None]
    ) -> None:
        """Report every prefix of a cached translation, as if the model were generating it again."""
        translator = self._models[request.model].translator
        if cached.search is None or isinstance(translator, PictureClassifier):
            return  # the request contained the translation, or there is none
        tokenizer = translator.tokenizers.target
        for length in range(1, len(cached.target.ids) + 1):
            on_partial(tokenizer.decode(cached.target.ids[:length]))

    def _get_or_compute(self, key: str, compute: Callable[[], Explanation]) -> Explanation:
        if key not in self._cache:
            self._cache[key] = compute()
        self._cache.move_to_end(key)
        while len(self._cache) > self._cache_size or self._count_cached_weights() > self._limits.max_weights:
            if len(self._cache) == 1:
                break
            self._cache.popitem(last=False)
        return self._cache[key]

    def _count_cached_weights(self) -> int:
        maps = (attention for one in self._cache.values() for attention in one.attention.values())
        return sum(attention.weights.size for attention in maps)

    def _compute(self, request: ExplainRequest, on_partial: Callable[[str], None] | None) -> Explanation:
        model = self._model(request.model)
        if model.reads_pictures and not request.picture:
            raise DataError(
                f"{model.name} reads pictures: send one as a data: URL in `picture`. Received: none."
            )
        translator = model.translator
        if isinstance(translator, PictureClassifier):
            if request.changes or request.prefix or request.target is not None:
                raise UnsupportedError(
                    f"{model.name} names classes: it takes no changes, no prefix and no caption."
                )
            return explain_class(translator, request.picture)
        vocab_size = translator.tokenizers.target.vocab_size
        if not all(0 <= token < vocab_size for token in request.prefix):
            raise DataError(
                f"A prefix has tokens from 0 to {vocab_size - 1}. Received: a token outside this range."
            )
        return explain(
            translator,
            request.picture if model.reads_pictures else _segment_of(request, translator),
            target=request.target,
            options=ExplanationOptions(beam=request.beam),
            prefix=request.prefix,
            edit=request.changes,
            limits=self._limits,
            on_partial=on_partial,
        )


def _nan_to_none(fields: dict[str, Any]) -> dict[str, Any]:
    """Replace NaN, which JSON does not have, by None."""
    return {name: None if value != value else value for name, value in fields.items()}


def _explain_first(translator: Translator, text: str, limits: CostLimits) -> LiveExplanation:
    """Explain the first segment of a text: the page compares checkpoints on one segment."""
    return explain(translator, _segment_of(ExplainRequest(sentence=text), translator), limits=limits)


def _segment_of(request: ExplainRequest, translator: Translator) -> str:
    """Return the segment of a text that is explained."""
    spans = translator.segment_spans(request.sentence)
    if request.index >= max(len(spans), 1):
        raise DataError(
            f"The text is translated in {len(spans)} parts, counted from 0. Received: index {request.index}."
        )
    if len(spans) < 2:
        return request.sentence
    start, end = spans[request.index]
    return request.sentence[start:end]


def _parse(request_type: type[AnyRequest], body: bytes) -> AnyRequest:
    try:
        return request_type.model_validate_json(body)
    except ValidationError as error:
        raise DataError(f"This request is not valid: {first_error(error)}.") from None
