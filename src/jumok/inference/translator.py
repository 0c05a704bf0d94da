"""The class `Translator`: translations of texts, attention, and word alignments.

This module imports torch and numpy only inside functions that need them. A translation with a converted model
needs neither torch nor numpy, and importing them would take longer than the translation.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jumok.config.recipe import SearchSettings
from jumok.errors import DataError, UnsupportedError
from jumok.inference.attention_maps import label_maps, picture_map
from jumok.inference.engines.protocol import length_buckets
from jumok.inference.read_ahead import LOOK_AHEAD, block_sizes, read_ahead
from jumok.inference.search.plan import Sampling, SearchPlan
from jumok.inference.text_options import LINE_BY_LINE, TextHandling, separate_options
from jumok.inference.translation import Translation
from jumok.inference.translation_notes import find_notes
from jumok.text.long_lines import split_line
from jumok.text.sentences import replace_sentences, text_spans
from jumok.text.word_mapping import merge_to_words
from jumok.text.words import split_words
from jumok.types import AttentionMap, Hypothesis, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Unpack

    from numpy import floating
    from numpy.typing import NDArray

    from jumok.inference.alignment.readout import AttendedPair
    from jumok.inference.engines.protocol import Engine, OnToken, SearchResult
    from jumok.inference.search.plan import SearchOverrides
    from jumok.inference.shortlist import Shortlist
    from jumok.inference.text_options import TextOptions
    from jumok.models.model import TranslationModel
    from jumok.text.sentences import Sentences
    from jumok.text.tokenizer import TokenizerPair
    from jumok.text.words import Span
    from jumok.types import Alignment, ReadOut

    OnProgress = Callable[[int, int], None]
    OnPartial = Callable[[int, str], None]


class Segment(NamedTuple):
    """A sentence (or a whole line, if sentences are kept), or a part of one that is too long for the model.

    If the model reads pictures, a segment is the path of a picture.
    """

    text_index: int
    span: Span  # of the segment in the text
    text: str
    ids: list[int]  # of a picture: its patches
    prefix: list[int]  # token ids; only the first segment of a text has the prefix


@dataclass(frozen=True, slots=True)
class SubmittedTexts:
    """Texts that were submitted to an engine, and how to make their translations from its results."""

    texts: Sequence[str]
    segments: Sequence[Segment]
    plan: SearchPlan
    results: Iterator[SearchResult]
    handling: TextHandling
    prefixes: Sequence[str]
    retranslate: Callable[[Sequence[str], Sequence[str]], list[Translation]]
    """Translates other sentences, each with its prefix, with the same search but without placing terms."""


class LazyModel:
    """A model that is built on first use, because a translation by CTranslate2 does not need it."""

    def __init__(self, build: Callable[[], TranslationModel]) -> None:
        self._build = build
        self._built: TranslationModel | None = None
        self._lock = threading.Lock()

    def model(self) -> TranslationModel:
        with self._lock:
            self._built = self._built or self._build().eval()
        return self._built


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The languages of a model, the settings of its training, and the digest of its folder."""

    source_language: str = ""
    target_language: str = ""
    training: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    """The digest of the model folder (`StoredModel.digest`); "" for a model without a folder."""


class Translator:
    """A model with its tokenizers, ready to translate. It may be used from several threads at once.

    Texts are split into sentences, and sentences of more than `max_source_tokens` tokens are split into
    smaller segments. Segments are translated separately and joined. For a model that was trained on
    paragraphs, set `sentences` to "keep" (`jumok.load` does so): a line is then split only if it is too long.
    `engine` searches for the translations. Without an engine, or if the engine does not support a search,
    torch runs the model, and `shortlist` limits the tokens of translations. (An engine has a shortlist of its
    own.) Attention is always read from the model, which is put into evaluation mode.
    """

    def __init__(
        self,
        model: TranslationModel | LazyModel,
        tokenizers: TokenizerPair,
        *,
        engine: Engine | None = None,
        search: SearchSettings | None = None,
        read_out: ReadOut | None = None,
        max_source_tokens: int = 200,
        shortlist: Shortlist | None = None,
        facts: ModelFacts | None = None,
    ) -> None:
        self._model = model if isinstance(model, LazyModel) else model.eval()
        self.engine = engine or _torch_engine(self.model, shortlist)
        self.shortlist = shortlist
        self.tokenizers = tokenizers
        self.search = search or SearchSettings()
        self.read_out = read_out
        self.max_source_tokens = max_source_tokens
        self.facts = facts or ModelFacts()
        self.sentences: Sentences = "split"
        """How `translate` handles a text of several sentences by default."""
        self.sentences_for_scores: Sentences = "keep"
        """How evaluation handles a line of several sentences by default."""
        self.words_for_terms: dict[str, Sequence[str]] = {}
        """A cache for `terminology.py`: term of a glossary → words of the translation of the term alone."""

    @property
    def source_language(self) -> str:
        """The code of the source language; "" if it is not known."""
        return self.facts.source_language

    @property
    def target_language(self) -> str:
        """The code of the target language; "" if it is not known."""
        return self.facts.target_language

    @property
    def reads_pictures(self) -> bool:
        """Whether the model reads pictures. The texts to translate are then the paths of picture files."""
        return bool(self.tokenizers.source.token_shape)

    @property
    def model(self) -> TranslationModel:
        """The model itself, in evaluation mode."""
        return self._model.model() if isinstance(self._model, LazyModel) else self._model

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of source texts, without special tokens.

        Spaces that the tokenizer does not know, e.g. no-break spaces, are replaced by ordinary spaces.
        """
        tokenizer = self.tokenizers.source
        return tokenizer.encode_batch([tokenizer.normalise_spaces(text) for text in texts])

    def prefix_ids(self, prefixes: Sequence[str]) -> list[list[int]]:
        """Return the token ids of the given beginnings of translations.

        Spaces at the end of a prefix are removed. They would become a token of their own, after which the
        model could not begin a word, because the first token of a word contains the space before the word.
        """
        return self.tokenizers.target.encode_batch([prefix.rstrip() for prefix in prefixes])

    def segment_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each part of a text that is translated separately by default."""
        return [segment.span for segment in self._segments([text], [""], self.sentences)]

    def engine_for(
        self, sampling: Sampling | None = None, *, prefix: str = "", **search: Unpack[SearchOverrides]
    ) -> Engine:
        """Return the engine that `translate` uses: `self.engine` if it supports the search, else torch."""
        plan = self._plan(1, sampling, search)
        return self._engine_for(sampling, plan, len(self.prefix_ids([prefix])[0]))

    def _engine_for(self, sampling: Sampling | None, plan: SearchPlan, prefix_length: int) -> Engine:
        # The maximum length for the longest source, so that all blocks of a stream run on the same engine.
        max_length = plan.max_length(self.max_source_tokens, prefix_length=prefix_length)
        if reason := self.engine.unsupported_reason(plan, sampling, max_length):
            return _torch_engine(self.model, self.shortlist, reason)
        return self.engine

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        prefix: str | Sequence[str] = "",
        sampling: Sampling | None = None,
        scores: bool = True,
        batch_tokens: int | None = None,
        on_progress: OnProgress | None = None,
        on_partial: OnPartial | None = None,
        **options: Unpack[TextOptions],
    ) -> list[Translation]:
        """Return the translation of every text, in order. The translation of a blank text is empty.

        If texts are split into sentences, a text without a letter or digit is not translated and stays as it
        is. All other translations begin with `prefix`: one string for all texts, or a list with a string per
        text, which may be "". With `sampling`, tokens are drawn. A batch has about `batch_tokens` source
        tokens (None: the engine's default). Without `scores`, a greedy search may be faster, and its scores
        may be NaN.

        `on_progress(done, total)` counts segments: sentences, and the parts of long sentences. In a greedy
        search (beam 1), `on_partial(index, text)` is called after every token with the translation of a text
        so far. It is called only for texts of one segment.

        `options` are the options of `TextOptions`. `sentences="keep"` translates each line of a text as a
        whole. `glossary` has terms and their translations. All other options override the settings of the
        model's recipe with the same names, e.g. `beam=1`.
        """
        handling, search = separate_options(options, self)
        plan = self._plan(n_best, sampling, search)
        pending = self._submit(
            texts,
            plan,
            prefix=prefix,
            sampling=sampling,
            scores=scores,
            batch_tokens=batch_tokens,
            on_partial=on_partial,
            handling=handling,
        )
        return self._collect(pending, on_progress)

    def stream(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        prefix: str = "",
        sampling: Sampling | None = None,
        scores: bool = True,
        batch_tokens: int | None = None,
        look_ahead: int = LOOK_AHEAD,
        ready: Callable[[], bool] | None = None,
        **options: Unpack[TextOptions],
    ) -> Iterator[Translation]:
        """Do the same as `translate` for any number of lines. At most `look_ahead` lines are in memory.

        While CTranslate2 searches one block of lines, the previous block is decoded and the next block is
        tokenized. With torch, and in sampling, these tasks do not overlap. If a line cannot be read, the
        lines before it are translated before the error is raised. If `ready` says that the next line cannot
        be read without waiting, the lines before it are translated immediately, because the program that
        writes the lines may wait for their translations.
        """
        source = iter(lines)
        handling, search = separate_options(options, self)
        plan = self._plan(n_best, sampling, search)
        pending: SubmittedTexts | None = None
        read_error: Exception | None = None
        sizes = block_sizes(look_ahead)
        while read_error is None:
            block, read_error = read_ahead(source, next(sizes), ready)
            if not block:
                break
            submitted = self._submit(
                block,
                plan,
                prefix=prefix,
                sampling=sampling,
                scores=scores,
                batch_tokens=batch_tokens,
                handling=handling,
            )
            if pending is not None:
                yield from self._collect(pending)
            pending = submitted
            if sampling is not None:
                sampling = sampling.with_next_seed()
            if ready is not None and not ready():
                yield from self._collect(pending)
                pending = None
        if pending is not None:
            yield from self._collect(pending)
        if read_error is not None:
            raise read_error

    def attention(self, source: str, target: str | None = None) -> dict[str, AttentionMap]:
        """Return the attention map of every site for this target (None: the model's own translation).

        The maps are computed in one teacher-forced pass. A row of "decoder" and "cross" is the step that
        produces the token of its label. The keys of "decoder" are the tokens that this step has read.
        """
        from jumok.inference.teacher_forcing import site_weights  # start-up

        target = self.translate([source])[0].unsplit_text if target is None else target
        source_ids, target_ids = self._ids(Pair(source, target))
        [weights] = site_weights(self.model, [source_ids], [target_ids])
        tokens = (self.tokenizers.source.tokens(source_ids), self.tokenizers.target.tokens(target_ids))
        return label_maps(weights, *tokens, picture=self.reads_pictures)

    def align(self, source: str, target: str) -> Alignment:
        """Return the word alignment of a pair, read from cross-attention."""
        return self.align_all([Pair(source, target)])[0]

    def align_all(self, pairs: Sequence[Pair]) -> list[Alignment]:
        """Return the word alignments of many pairs, computed in batches."""
        from jumok.inference.alignment.readout import read_alignment  # start-up

        # The maps of a batch are freed before those of the next: all maps may take hundreds of megabytes.
        alignments = {i: read_alignment(pair, self._read_out(pair)) for i, pair in self._attend(pairs)}
        return [alignments[i] for i in range(len(pairs))]

    def word_attention(self, source: str, target: str) -> AttentionMap:
        """Return the cross-attention between words, from which alignments are read. The last key is `</s>`.

        For a picture, return the attention from words to patches, averaged over the heads of the last layer.
        """
        if self.reads_pictures:
            return self._picture_attention(source, target)
        [(weights, _)] = self.word_attentions([Pair(source, target)])
        queries, keys = split_words(target), split_words(source)
        return AttentionMap("cross", weights[None, None], tuple(queries), (*keys, "</s>"))

    def word_attentions(self, pairs: Sequence[Pair]) -> list[tuple[NDArray[floating], Alignment]]:
        """Return the cross-attention (target word, source word and `</s>`) and the alignment of each pair."""
        from jumok.inference.alignment.readout import read_alignment, read_out_map  # start-up

        maps_and_alignments = []
        for pair, attended in zip(pairs, self.attended_pairs(pairs), strict=True):
            read_out, num_keys = self._read_out(attended), len(split_words(pair.source))
            weights = merge_to_words(
                read_out_map(attended, read_out),
                attended.target_words,
                [*attended.source_words, num_keys],
                num_query_words=len(split_words(pair.target)),
                num_key_words=num_keys + 1,
                keep_special_tokens=False,
            )
            maps_and_alignments.append((weights, read_alignment(attended, read_out)))
        return maps_and_alignments

    def _picture_attention(self, path: str, caption: str) -> AttentionMap:
        """Return the attention from each word of a caption to each patch, (1, 1, word, patch)."""
        from jumok.inference.teacher_forcing import site_weights  # start-up

        patches, target_ids = self._ids(Pair(path, caption))
        [sites] = site_weights(self.model, [patches], [target_ids])
        words = split_words(caption)
        weights = merge_to_words(
            picture_map(sites["cross"]),
            self.tokenizers.target.word_of_token(caption, target_ids),
            range(len(patches)),
            num_query_words=len(words),
        )
        facts = {"heads": "mean of the last layer"}
        patch_names = tuple(self.tokenizers.source.tokens(patches))
        return AttentionMap("cross", weights[None, None], tuple(words), patch_names, facts)

    def attended_pairs(self, pairs: Sequence[Pair], *, batch_tokens: int = 2048) -> list[AttendedPair]:
        """Return the cross-attention of sentence pairs, to read alignments or to choose a read-out."""
        attended = dict(self._attend(pairs, batch_tokens))
        return [attended[i] for i in range(len(pairs))]

    def _attend(self, pairs: Sequence[Pair], batch_tokens: int = 2048) -> Iterator[tuple[int, AttendedPair]]:
        """Yield the index and the cross-attention of each pair, in batches of similar length."""
        if not self.model.has_cross_attention:
            raise UnsupportedError(
                "This model has no cross-attention, so there is no alignment to read and no map to draw. "
                "Train a model with attention; `jumok models` lists the mechanisms."
            )
        if self.reads_pictures:
            raise UnsupportedError(
                "A picture has no words, so there is no word alignment. `jumok look` shows where in the "
                "picture the model looks while it writes each word."
            )
        from jumok.inference.teacher_forcing import site_weights  # start-up

        encoded = [self._ids(pair) for pair in pairs]
        lengths = [len(source) + len(target) for source, target in encoded]
        for group in length_buckets(lengths, batch_tokens):
            sources, targets = zip(*(encoded[i] for i in group), strict=True)
            for i, sites in zip(group, site_weights(self.model, sources, targets), strict=True):
                yield i, self._attended_pair(pairs[i], *encoded[i], sites["cross"])

    def _plan(self, n_best: int, sampling: Sampling | None, search: SearchOverrides) -> SearchPlan:
        if sampling is not None:
            _check_no_beam(search)
        return SearchPlan.from_settings(self.search, n_best=n_best, **search)

    def _segments(self, texts: Sequence[str], prefixes: Sequence[str], sentences: Sentences) -> list[Segment]:
        """Return the inputs of the model: one per sentence or line, but several for one that is too long."""
        if self.reads_pictures:
            spans = [(i, *_stripped(text)) for i, text in enumerate(texts) if text.strip()]
            encoded = [self.tokenizers.source.encode(texts[i][start:end]) for i, start, end in spans]
        else:
            spans = [(i, *span) for i, text in enumerate(texts) for span in text_spans(text, sentences)]
            encoded = self.source_ids([texts[i][start:end] for i, start, end in spans])
        prefix_ids = self.prefix_ids(prefixes) if any(prefixes) else []
        segments: list[Segment] = []
        previous_index = -1  # of the text of the last segment: the first segment of each text has the prefix
        for (text_index, start, end), ids in zip(spans, encoded, strict=True):
            prefix = prefix_ids[text_index] if prefix_ids and text_index != previous_index else []
            if len(ids) and (len(ids) <= self.max_source_tokens or self.reads_pictures):
                segments.append(Segment(text_index, (start, end), texts[text_index][start:end], ids, prefix))
            elif len(ids):
                segments.extend(self._parts(text_index, texts[text_index], (start, end), prefix))
            previous_index = text_index if len(ids) else previous_index
        return segments

    def _parts(self, text_index: int, text: str, span: Span, prefix: list[int]) -> Iterator[Segment]:
        """Yield the segments of a sentence that is too long for the model."""
        start, end = span
        for part in split_line(text[start:end], self._num_tokens, self.max_source_tokens):
            start = text.index(part, start)
            part_span = (start, start + len(part))
            yield Segment(text_index, part_span, part, self.source_ids([part])[0], prefix)
            start, prefix = part_span[1], []

    def _num_tokens(self, text: str) -> int:
        return len(self.source_ids([text])[0])

    def _submit(
        self,
        texts: Sequence[str],
        plan: SearchPlan,
        *,
        prefix: str | Sequence[str],
        sampling: Sampling | None,
        scores: bool,
        batch_tokens: int | None,
        handling: TextHandling,
        on_partial: OnPartial | None = None,
    ) -> SubmittedTexts:
        """Tokenize the texts and submit them to the engine.

        CTranslate2 starts to search at once. torch searches when the results are read.
        """
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else prefix
        _check_texts(texts, prefixes)

        def retranslate(sentences: Sequence[str], prefixes: Sequence[str]) -> list[Translation]:
            options: dict[str, Any] = {"sampling": sampling, "scores": scores, "batch_tokens": batch_tokens}
            options["handling"] = TextHandling(**LINE_BY_LINE)
            return self._collect(self._submit(sentences, plan, prefix=prefixes, **options))

        segments = self._segments(texts, prefixes, handling.sentences)
        max_prefix_length = max((len(segment.prefix) for segment in segments), default=0)
        results = self._engine_for(sampling, plan, max_prefix_length).search(
            [segment.ids for segment in segments],
            plan,
            prefixes=[segment.prefix for segment in segments],
            sampling=sampling,
            scores=scores,
            batch_tokens=batch_tokens,
            on_token=None if on_partial is None else self._decode_partial(segments, on_partial),
        )
        return SubmittedTexts(texts, segments, plan, results, handling, prefixes, retranslate)

    def _decode_partial(self, segments: Sequence[Segment], on_partial: OnPartial) -> OnToken:
        """Return a callback that decodes tokens and calls `on_partial`, only for texts of one segment."""
        segments_per_text = Counter(segment.text_index for segment in segments)

        def on_token(i: int, ids: Sequence[int]) -> None:
            text_index = segments[i].text_index
            if segments_per_text[text_index] == 1:
                # The first bytes of a character decode to U+FFFD as long as its last byte is missing.
                on_partial(text_index, self._text(ids).rstrip("\ufffd"))

        return on_token

    def _collect(self, pending: SubmittedTexts, on_progress: OnProgress | None = None) -> list[Translation]:
        """Return the translations in order. A text is joined as soon as its last segment is done."""
        segments_of: list[list[int]] = [[] for _ in pending.texts]
        for i, segment in enumerate(pending.segments):
            segments_of[segment.text_index].append(i)
        num_missing = [len(indices) for indices in segments_of]
        translations: dict[int, Translation] = {}
        hypotheses_of: dict[int, list[Hypothesis]] = {}
        for group, hypotheses in pending.results:
            hypotheses_of.update(zip(group, hypotheses, strict=True))
            for i in group:
                text_index = pending.segments[i].text_index
                num_missing[text_index] -= 1
                if not num_missing[text_index]:
                    segments = [
                        (pending.segments[index], hypotheses_of[index]) for index in segments_of[text_index]
                    ]
                    translations[text_index] = self._translation(
                        pending.texts[text_index], segments, pending.plan
                    )
            if on_progress is not None:
                on_progress(len(hypotheses_of), len(pending.segments))
        in_order = [
            translations.get(text_index) or _unchanged(text, pending.handling)
            for text_index, text in enumerate(pending.texts)
        ]
        if self.reads_pictures or not any(map(pending.handling.may_have_terms, pending.texts)):
            return in_order
        from jumok.inference.terminology import place_terms  # start-up

        return place_terms(in_order, pending.handling, self, pending.retranslate, pending.prefixes)

    def _translation(
        self, source: str, segments: Sequence[tuple[Segment, list[Hypothesis]]], plan: SearchPlan
    ) -> Translation:
        """Join the segments of a text: the best hypothesis of each, and alternatives."""
        # If the log-probabilities are NaN, a search may find no hypothesis. The translation is then empty.
        segments = [
            (segment, hypotheses or [Hypothesis((), -math.inf, -math.inf)])
            for segment, hypotheses in segments
        ]
        best = [hypotheses[0] for _, hypotheses in segments]
        texts = [self._text(hypothesis.ids) for hypothesis in best]
        text = self._join(source, segments, texts)
        return Translation(
            source,
            text,
            _joint_score(best, plan.length_penalty),
            tokens=tuple(self.tokenizers.target.tokens([id_ for h in best for id_ in h.ids])),
            alternatives=self._alternatives(source, text, segments, plan),
            parts=tuple([(segment.text, text) for (segment, _), text in zip(segments, texts, strict=True)]),
            notes=find_notes(source, self.source_language, segments, plan),
            align=self.align,
        )

    def _join(
        self, source: str, segments: Sequence[tuple[Segment, list[Hypothesis]]], texts: Sequence[str]
    ) -> str:
        """Return a text with the translations of its segments, without the white space around it."""
        spans = [segment.span for segment, _ in segments]
        if len(texts) == 1 and spans[0][1] - spans[0][0] == len(source.strip()):
            return texts[0]
        return "".join(replace_sentences(source, spans, texts, self.target_language)).strip()

    def _alternatives(
        self, source: str, text: str, segments: Sequence[tuple[Segment, list[Hypothesis]]], plan: SearchPlan
    ) -> tuple[tuple[str, float], ...]:
        """Return the distinct translations after the best one, with their scores.

        Alternative r joins the r-th hypothesis of each segment, or the last hypothesis if there are fewer.
        """
        ranked = {text: 0.0}
        for rank in range(1, max([len(hypotheses) for _, hypotheses in segments])):
            joined = [hypotheses[min(rank, len(hypotheses) - 1)] for _, hypotheses in segments]
            texts = [self._text(hypothesis.ids) for hypothesis in joined]
            alternative = self._join(source, segments, texts)
            ranked.setdefault(alternative, _joint_score(joined, plan.length_penalty))
        return tuple(ranked.items())[1:]

    def _text(self, ids: Sequence[int]) -> str:
        # A line is translated to one line, even if the model produces the bytes of a line break.
        return " ".join(self.tokenizers.target.decode(ids).splitlines())

    def _ids(self, pair: Pair) -> tuple[list[int], list[int]]:
        return self.source_ids([pair.source])[0], self.tokenizers.target.encode(pair.target)

    def _attended_pair(
        self, pair: Pair, source_ids: list[int], target_ids: list[int], cross: NDArray[floating]
    ) -> AttendedPair:
        from jumok.inference.alignment.readout import AttendedPair  # start-up

        return AttendedPair(
            cross,
            source_words=self.tokenizers.source.word_of_token(pair.source, source_ids),
            target_words=self.tokenizers.target.word_of_token(pair.target, target_ids),
            gold=pair.alignment,
        )

    def _read_out(self, pair: AttendedPair) -> ReadOut:
        from jumok.inference.alignment.readout import default_read_out  # start-up

        return self.read_out or default_read_out(*pair.weights.shape[:2])


def _torch_engine(model: TranslationModel, shortlist: Shortlist | None, fallback_reason: str = "") -> Engine:
    from jumok.inference.engines.torch_engine import TorchEngine  # start-up

    return TorchEngine(model, fallback_reason=fallback_reason, shortlist=shortlist)


def _unchanged(text: str, handling: TextHandling) -> Translation:
    """Return the translation of a text without segments: the text itself if texts are split, else ""."""
    return Translation(text, text.strip() if handling.sentences == "split" else "", 0.0)


def _stripped(text: str) -> Span:
    """Return the span of a text without the white space around it."""
    start = len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def _joint_score(hypotheses: Sequence[Hypothesis], length_penalty: float) -> float:
    """Return the score of segments as one translation: the sum of their log-probabilities over steps^α.

    The log-probabilities are computed back from the scores, so they include a coverage penalty. For a
    hypothesis that was cut, one step too many is counted, because a `Hypothesis` does not tell whether it was
    cut.
    """
    if len(hypotheses) == 1:
        return hypotheses[0].score
    steps = [len(hypothesis.ids) + 1 for hypothesis in hypotheses]
    total = sum(h.score * count**length_penalty for h, count in zip(hypotheses, steps, strict=True))
    return float(total / sum(steps) ** length_penalty)


def _check_no_beam(search: SearchOverrides) -> None:
    """Raise for options that sampling would silently ignore."""
    ignored = [name for name in ("beam", "patience_factor") if search.get(name) is not None]
    if ignored:
        names = " and ".join(ignored)
        raise UnsupportedError(
            f"Sampling has no beam, so {names} would be ignored. Leave {names} out, or do not sample."
        )


def _check_texts(texts: Sequence[str], prefixes: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise DataError(
            f"translate takes a list of texts. Received: one text, {texts[:40]!r}. Write translate([text])."
        )
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"Texts are strings. Received: {text!r} as text {number:,}.")
    if len(prefixes) != len(texts):
        raise DataError(
            f"There must be one prefix per text. Received: {len(prefixes)} prefixes for {len(texts)} texts. "
            'Give "" for a translation without a prefix.'
        )
