"""The Translator: lines in, translations out, and a look at the attention behind them.

Nothing here imports torch or numpy before it is needed: with a converted engine, a plain translation needs
neither, and both cost more time than the translation itself.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.decoding.engine import like_lengths
from jumok.decoding.lines import read_ahead
from jumok.decoding.plan import Sampling, SearchPlan
from jumok.decoding.splitting import join_parts, split_line
from jumok.decoding.translation import Translation
from jumok.errors import DataError, UnsupportedError
from jumok.recipe import SearchSettings
from jumok.text.piece_words import merge_to_words
from jumok.text.words import split_words
from jumok.values import AttentionMap, Hypothesis, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Unpack

    from numpy import floating
    from numpy.typing import NDArray

    from jumok.attention import Edit
    from jumok.decoding.engine import Engine, Found, Watch
    from jumok.decoding.plan import SearchChoices
    from jumok.decoding.readout import AttendedPair
    from jumok.decoding.shortlist import Shortlist
    from jumok.explain import Change, Explanation
    from jumok.models import TranslationModel
    from jumok.text import Vocabularies
    from jumok.values import Alignment, ReadOut

    Progress = Callable[[int, int], None]
    Said = Callable[[int, str], None]

__all__ = ["Deferred", "Translator"]

_FIRST_SHARE = 16


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a line that the model can take at once."""

    line: int
    text: str
    ids: list[int]
    prefix: list[int]


@dataclass(frozen=True, slots=True)
class Work:
    """Lines whose translations are being searched."""

    texts: Sequence[str]
    parts: Sequence[Part]
    plan: SearchPlan
    found: Iterator[Found]


class Deferred:
    """A model that is built when somebody first looks inside it; a converted engine translates without."""

    def __init__(self, build: Callable[[], TranslationModel]) -> None:
        self._build = build
        self._built: TranslationModel | None = None
        self._lock = threading.Lock()

    def model(self) -> TranslationModel:
        with self._lock:
            self._built = self._built or self._build().eval()
        return self._built


class Translator:
    """A model with its vocabularies, ready to translate. It may be used from several threads at once.

    Lines of more than `longest_source` pieces are cut into sentences or smaller parts, translated one by one
    and joined. `engine` searches for the translations; without one, torch runs the model itself, which is put
    into evaluation mode, and limits it to a `shortlist`, which an engine that is given knows already.
    Attention is always read from the model. `training` tells how it was trained.
    """

    def __init__(
        self,
        model: TranslationModel | Deferred,
        vocabularies: Vocabularies,
        *,
        engine: Engine | None = None,
        search: SearchSettings | None = None,
        read_out: ReadOut | None = None,
        source_language: str = "",
        target_language: str = "",
        longest_source: int = 200,
        training: Mapping[str, Any] | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        self._model = model if isinstance(model, Deferred) else model.eval()
        self.engine = engine or _torch_engine(self.model, shortlist)
        self.shortlist = shortlist
        self.vocabularies = vocabularies
        self.search = search or SearchSettings()
        self.read_out = read_out
        self.source_language = source_language
        self.target_language = target_language
        self.longest_source = longest_source
        self.training = dict(training or {})

    @property
    def model(self) -> TranslationModel:
        """The model itself, in evaluation mode."""
        return self._model.model() if isinstance(self._model, Deferred) else self._model

    def engine_for(
        self, sampling: Sampling | None = None, *, longest: float | None = None, prefix: str = ""
    ) -> Engine:
        """The engine that such a translation runs on: torch, where the translator's own cannot."""
        plan = SearchPlan.of(self.search, longest=longest)
        return self._engine_for(sampling, plan, len(self.vocabularies.target.encode(prefix)))

    def _engine_for(self, sampling: Sampling | None, plan: SearchPlan, prefix: int) -> Engine:
        # Not what these lines ask for but what any could, so that a stream runs on one engine.
        if reason := self.engine.cannot(sampling, plan.limit(self.longest_source, prefix=prefix)):
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
        progress: Progress | None = None,
        said: Said | None = None,
        **search: Unpack[SearchChoices],
    ) -> list[Translation]:
        """The translation of every text, in order; a text without words gives an empty one.

        `prefix` says how every translation must begin, or each in a list ("" for freely); `sampling` draws
        instead of searching. `search` are settings of the recipe by name, such as `beam=1`; those not given
        stand in the model's own. A batch holds about `batch_tokens` source pieces, or what suits the engine;
        `progress` is told how many sentences are done, of how many. Without `scores` a greedy search may be
        faster, and its scores NaN. A greedy search (beam 1) tells `said` which text it is at and what its
        translation is so far, piece after piece; a text that is cut into parts is told when it is done.
        """
        plan = self._plan(n_best, sampling, search)
        work = self._begin(
            texts,
            plan,
            prefix=prefix,
            sampling=sampling,
            scores=scores,
            batch_tokens=batch_tokens,
            said=said,
        )
        return self._finish(work, progress)

    def stream(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        prefix: str = "",
        sampling: Sampling | None = None,
        scores: bool = True,
        batch_tokens: int | None = None,
        look_ahead: int = 4096,
        ready: Callable[[], bool] | None = None,
        **search: Unpack[SearchChoices],
    ) -> Iterator[Translation]:
        """As `translate`, for any number of lines: no more than `look_ahead` of them are in memory.

        Half of them are being searched while those before are read out and those after are cut into pieces.
        The first are fewer, so that the search begins at once. Where a line cannot be read, those before it
        are translated first; and so they are where `ready` says that the next line would have to be waited
        for, because whoever writes it may want an answer first.
        """
        source = iter(lines)
        plan = self._plan(n_best, sampling, search)
        under_way: Work | None = None
        failed: Exception | None = None
        share = _FIRST_SHARE
        while failed is None:
            ahead, failed = read_ahead(source, max(1, look_ahead // share), ready)
            share = 2
            if not ahead:
                break
            begun = self._begin(
                ahead, plan, prefix=prefix, sampling=sampling, scores=scores, batch_tokens=batch_tokens
            )
            if under_way is not None:
                yield from self._finish(under_way)
            under_way = begun
            if sampling is not None:
                sampling = sampling.onward()
            if ready is not None and not ready():
                yield from self._finish(under_way)
                under_way = None
        if under_way is not None:
            yield from self._finish(under_way)
        if failed is not None:
            raise failed

    def attention(self, source: str, target: str | None = None) -> dict[str, AttentionMap]:
        """The attention of every site while the model reads this target (its own translation if None).

        One teacher-forced pass. A row of "decoder" and "cross" is the step that produces the piece of its
        label; the keys of "decoder" are the pieces it has read.
        """
        from jumok.explain import label_maps, site_weights

        target = self.translate([source])[0].whole if target is None else target
        source_ids, target_ids = self._ids(Pair(source, target))
        [weights] = site_weights(self.model, [source_ids], [target_ids])
        pieces = (self.vocabularies.source.pieces(source_ids), self.vocabularies.target.pieces(target_ids))
        return label_maps(weights, *pieces)

    def explain(
        self,
        sentence: str,
        *,
        target: str | None = None,
        beam: int | None = None,
        forced_prefix: str | Sequence[int] = "",
        edit: Change | Sequence[Change] | Edit | None = None,
        gold: Alignment | None = None,
        candidates: int = 8,
        hear: Callable[[str], None] | None = None,
    ) -> Explanation:
        """All that can be seen of one translation: attention, search, candidates, alignments, statistics.

        `target` is looked at instead of the model's own translation. `forced_prefix` is how that must begin,
        as text or as pieces; `edit` changes attention while it is written, from the first step it touches on.
        With `gold`, heads are judged by their alignment error. `candidates` pieces are kept of every step.
        `hear` is told the beginning of the translation as it is written, after each step of the search.
        """
        from jumok.decoding.explaining import Question, explain_sentence

        question = Question(sentence, target, forced_prefix, gold, candidates, hear)
        plan = SearchPlan.of(self.search, beam=beam)
        return explain_sentence(self, question, plan, edit)

    def align(self, source: str, target: str) -> Alignment:
        """Which words of the source stand behind which words of the target, read from cross-attention."""
        return self.align_all([Pair(source, target)])[0]

    def align_all(self, pairs: Sequence[Pair]) -> list[Alignment]:
        """The alignments of many pairs, which are read together."""
        from jumok.decoding.readout import read_alignment

        return [read_alignment(pair, self._read_out(pair)) for pair in self.attended(pairs)]

    def word_attention(self, source: str, target: str) -> AttentionMap:
        """The cross-attention that alignments are read from, between words; `</s>` is the last key."""
        from jumok.decoding.readout import chosen_map

        [pair] = self.attended([Pair(source, target)])
        queries, keys = split_words(target), split_words(source)
        weights = merge_to_words(
            chosen_map(pair, self._read_out(pair)),
            pair.target_words,
            [*pair.source_words, len(keys)],
            query_count=len(queries),
            key_count=len(keys) + 1,
            keep_marks=False,
        )
        return AttentionMap("cross", weights[None, None], tuple(queries), (*keys, "</s>"))

    def attended(self, pairs: Sequence[Pair], *, batch_tokens: int = 2048) -> list[AttendedPair]:
        """The cross-attention of sentence pairs, from which alignments and read-outs are made."""
        if not self.model.looks_at_source:
            raise UnsupportedError(
                "This model has no attention to its source: there is no alignment to read, no map to draw. "
                "Train one with attention; `jumok models` lists the kinds."
            )
        from jumok.explain import site_weights

        encoded = [self._ids(pair) for pair in pairs]
        lengths = [len(source) + len(target) for source, target in encoded]
        attended: dict[int, AttendedPair] = {}
        for group in like_lengths(lengths, batch_tokens):
            sources, targets = zip(*(encoded[i] for i in group), strict=True)
            for i, sites in zip(group, site_weights(self.model, sources, targets), strict=True):
                attended[i] = self._attended_pair(pairs[i], *encoded[i], sites["cross"])
        return [attended[i] for i in range(len(pairs))]

    def _plan(self, n_best: int, sampling: Sampling | None, search: SearchChoices) -> SearchPlan:
        if sampling is not None:
            _refuse_beam(search)
        return SearchPlan.of(self.search, n_best=n_best, **search)

    def _parts(self, texts: Sequence[str], prefixes: Sequence[str]) -> list[Part]:
        """What the model is given: nothing for an empty line, several parts for one that is too long."""
        texts = [text.strip() for text in texts]
        encoded = self.vocabularies.source.encode_batch(texts)
        begins = self.vocabularies.target.encode_batch(prefixes) if any(prefixes) else [[] for _ in texts]
        parts: list[Part] = []
        for line, (text, ids, begin) in enumerate(zip(texts, encoded, begins, strict=True)):
            if len(ids) <= self.longest_source:
                if text and ids:
                    parts.append(Part(line, text, ids, begin))
                continue
            stretches = split_line(text, self._count, self.longest_source)
            for number, stretch in enumerate(stretches):
                ids = self.vocabularies.source.encode(stretch)
                parts.append(Part(line, stretch, ids, begin if number == 0 else []))
        return parts

    def _count(self, text: str) -> int:
        return len(self.vocabularies.source.encode(text))

    def _begin(
        self,
        texts: Sequence[str],
        plan: SearchPlan,
        *,
        prefix: str | Sequence[str],
        sampling: Sampling | None,
        scores: bool,
        batch_tokens: int | None,
        said: Said | None = None,
    ) -> Work:
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else prefix
        _check_texts(texts, prefixes)
        parts = self._parts(texts, prefixes)
        engine = self._engine_for(sampling, plan, max((len(part.prefix) for part in parts), default=0))
        found = engine.search(
            [part.ids for part in parts],
            plan,
            prefixes=[part.prefix for part in parts],
            sampling=sampling,
            scores=scores,
            batch_tokens=batch_tokens,
            watch=None if said is None else self._watch(parts, said),
        )
        return Work(texts, parts, plan, found)

    def _watch(self, parts: Sequence[Part], said: Said) -> Watch:
        """Tells pieces as text, where a line is one part."""
        count = Counter(part.line for part in parts)

        def watch(i: int, ids: Sequence[int]) -> None:
            line = parts[i].line
            if count[line] == 1:
                # Bytes that are not yet a character are left out until they are.
                said(line, self._text(ids).rstrip("\ufffd"))

        return watch

    def _finish(self, work: Work, progress: Progress | None = None) -> list[Translation]:
        """The translations in order. Each is put together when its last part is there, while others run."""
        parts_of: list[list[int]] = [[] for _ in work.texts]
        for i, part in enumerate(work.parts):
            parts_of[part.line].append(i)
        missing = [len(those) for those in parts_of]
        translations: dict[int, Translation] = {}
        found: dict[int, list[Hypothesis]] = {}
        for group, hypotheses in work.found:
            found.update(zip(group, hypotheses, strict=True))
            for i in group:
                line = work.parts[i].line
                missing[line] -= 1
                if not missing[line]:
                    done = [(work.parts[part], found[part]) for part in parts_of[line]]
                    translations[line] = self._translation(work.texts[line], done, work.plan)
            if progress is not None:
                progress(len(found), len(work.parts))
        return [translations.get(line) or Translation(text, "", 0.0) for line, text in enumerate(work.texts)]

    def _translation(
        self, source: str, done: Sequence[tuple[Part, list[Hypothesis]]], plan: SearchPlan
    ) -> Translation:
        """One line from its parts. The r-th translation joins the r-th of each part, or its last."""
        # A model whose scores are no numbers leaves no hypothesis alive: it has nothing to say.
        done = [(part, found or [Hypothesis((), -math.inf, -math.inf)]) for part, found in done]
        best = [found[0] for _, found in done]
        texts = [self._text(hypothesis.ids) for hypothesis in best]
        text = join_parts(texts, self.target_language)
        return Translation(
            source,
            text,
            _joint_score(best, plan.length_penalty),
            pieces=tuple(self.vocabularies.target.pieces([id_ for h in best for id_ in h.ids])),
            alternatives=self._alternatives(text, done, plan),
            parts=tuple([(part.text, text) for (part, _), text in zip(done, texts, strict=True)]),
            align=self.align,
        )

    def _alternatives(
        self, text: str, done: Sequence[tuple[Part, list[Hypothesis]]], plan: SearchPlan
    ) -> tuple[tuple[str, float], ...]:
        """The translations after the best one, each once, with their scores."""
        ranked = {text: 0.0}
        for rank in range(1, max([len(found) for _, found in done])):
            chosen = [found[min(rank, len(found) - 1)] for _, found in done]
            other = join_parts([self._text(hypothesis.ids) for hypothesis in chosen], self.target_language)
            ranked.setdefault(other, _joint_score(chosen, plan.length_penalty))
        return tuple(ranked.items())[1:]

    def _text(self, ids: Sequence[int]) -> str:
        # A line stays a line, even if a model says the bytes of a line break.
        return " ".join(self.vocabularies.target.decode(ids).splitlines())

    def _ids(self, pair: Pair) -> tuple[list[int], list[int]]:
        return self.vocabularies.source.encode(pair.source), self.vocabularies.target.encode(pair.target)

    def _attended_pair(
        self, pair: Pair, source_ids: list[int], target_ids: list[int], cross: NDArray[floating]
    ) -> AttendedPair:
        from jumok.decoding.readout import AttendedPair

        return AttendedPair(
            cross,
            source_words=self.vocabularies.source.word_of_piece(pair.source, source_ids),
            target_words=self.vocabularies.target.word_of_piece(pair.target, target_ids),
            gold=pair.alignment,
        )

    def _read_out(self, pair: AttendedPair) -> ReadOut:
        from jumok.decoding.readout import default_read_out

        return self.read_out or default_read_out(*pair.weights.shape[:2])


def _torch_engine(model: TranslationModel, shortlist: Shortlist | None, why: str = "") -> Engine:
    from jumok.decoding.torch_engine import TorchEngine

    return TorchEngine(model, why=why, shortlist=shortlist)


def _joint_score(hypotheses: Sequence[Hypothesis], length_penalty: float) -> float:
    """The score of parts as one translation: their sums of log-probabilities over their steps^α."""
    if len(hypotheses) == 1:
        return hypotheses[0].score
    steps = [len(hypothesis.ids) + 1 for hypothesis in hypotheses]
    total = sum(h.score * count**length_penalty for h, count in zip(hypotheses, steps, strict=True))
    return float(total / sum(steps) ** length_penalty)


def _refuse_beam(search: SearchChoices) -> None:
    """What only a beam search heeds is not ignored in silence."""
    given = [name for name in ("beam", "patience_factor") if search.get(name) is not None]
    if given:
        names = " and ".join(given)
        raise UnsupportedError(
            f"Sampling keeps no beam, so {names} would be ignored. Leave {names} out, or do not sample."
        )


def _check_texts(texts: Sequence[str], prefixes: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise DataError(
            f"translate takes a list of texts. Received: one text, {texts[:40]!r}. Write translate([text])."
        )
    if len(prefixes) != len(texts):
        raise DataError(
            f"There must be one prefix for each text. Received: {len(prefixes)} prefixes for {len(texts)} "
            'texts. Give "" where a translation may begin freely.'
        )
