"""The Translator: lines in, translations out, and a look at the attention behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import torch

from jumok.corpus.batches import padded_batch
from jumok.decoding.beam_search import beam as beam_search
from jumok.decoding.explaining import Question, explain_sentence
from jumok.decoding.plan import Sampling, SearchPlan
from jumok.decoding.readout import AttendedPair, chosen_map, default_read_out, read_alignment
from jumok.decoding.splitting import join_parts, split_line
from jumok.decoding.translation import Translation
from jumok.decoding.walk import greedy, sample
from jumok.errors import DataError, UnsupportedError
from jumok.explain import label_maps, site_weights
from jumok.recipe import SearchSettings
from jumok.text.piece_words import merge_to_words
from jumok.text.words import split_words
from jumok.values import AttentionMap, Hypothesis, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Unpack

    from numpy import floating
    from numpy.typing import NDArray

    from jumok.attention import Edit
    from jumok.decoding.plan import SearchChoices
    from jumok.explain import Change, Explanation
    from jumok.models import TranslationModel
    from jumok.text import Vocabularies
    from jumok.values import Alignment, ReadOut

    Progress = Callable[[int, int], None]

__all__ = ["Translator"]

# Each look-ahead of a stream draws from a seed of its own.
_NEXT_SEED = 1_000_003


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a line that the model can take at once."""

    line: int
    text: str
    ids: list[int]
    prefix: list[int]


class Translator:
    """A model with its vocabularies, ready to translate. It may be used from several threads at once.

    Lines of more than `longest_source` pieces are cut into sentences or smaller parts, translated one by one
    and joined. The model is put into evaluation mode.
    """

    def __init__(
        self,
        model: TranslationModel,
        vocabularies: Vocabularies,
        *,
        search: SearchSettings | None = None,
        read_out: ReadOut | None = None,
        source_language: str = "",
        target_language: str = "",
        longest_source: int = 200,
    ) -> None:
        self.model = model.eval()
        self.vocabularies = vocabularies
        self.search = search or SearchSettings()
        self.read_out = read_out
        self.source_language = source_language
        self.target_language = target_language
        self.longest_source = longest_source

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        prefix: str | Sequence[str] = "",
        sampling: Sampling | None = None,
        batch_tokens: int = 2048,
        progress: Progress | None = None,
        **search: Unpack[SearchChoices],
    ) -> list[Translation]:
        """The translation of every text, in order; a text without words gives an empty one.

        `prefix` says how every translation must begin, or each in a list ("" for freely); `sampling` draws
        instead of searching. `search` are settings of the recipe by name, such as `beam=1`; those not given
        stand in the model's own. A batch holds about `batch_tokens` source pieces; `progress` is told how
        many sentences are done, of how many.
        """
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else prefix
        _check_texts(texts, prefixes)
        if sampling is not None:
            _refuse_beam(search)
        plan = SearchPlan.of(self.search, n_best=n_best, **search)
        parts = self._parts(texts, prefixes)
        hypotheses = self._search(parts, plan, sampling, batch_tokens, progress)
        by_line: list[list[tuple[Part, list[Hypothesis]]]] = [[] for _ in texts]
        for part, found in zip(parts, hypotheses, strict=True):
            by_line[part.line].append((part, found))
        return [self._translation(text, done, plan) for text, done in zip(texts, by_line, strict=True)]

    def stream(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        prefix: str = "",
        sampling: Sampling | None = None,
        batch_tokens: int = 2048,
        look_ahead: int = 512,
        **search: Unpack[SearchChoices],
    ) -> Iterator[Translation]:
        """As `translate`, for any number of lines: no more than `look_ahead` of them are in memory."""
        source = iter(lines)
        while ahead := list(islice(source, look_ahead)):
            yield from self.translate(
                ahead,
                n_best=n_best,
                prefix=prefix,
                sampling=sampling,
                batch_tokens=batch_tokens,
                **search,
            )
            if sampling is not None:
                sampling = replace(sampling, seed=sampling.seed + _NEXT_SEED)

    def attention(self, source: str, target: str | None = None) -> dict[str, AttentionMap]:
        """The attention of every site while the model reads this target (its own translation if None).

        One teacher-forced pass. A row of "decoder" and "cross" is the step that produces the piece of its
        label; the keys of "decoder" are the pieces it has read.
        """
        target = self.translate([source])[0].text if target is None else target
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
    ) -> Explanation:
        """All that can be seen of one translation: attention, search, candidates, alignments, statistics.

        `target` is looked at instead of the model's own translation. `forced_prefix` is how that must begin,
        as text or as pieces; `edit` changes attention while it is written, from the first step it touches on.
        With `gold`, heads are judged by their alignment error. `candidates` pieces are kept of every step.
        """
        question = Question(sentence, target, forced_prefix, gold, candidates)
        plan = SearchPlan.of(self.search, beam=beam)
        return explain_sentence(self, question, plan, edit)

    def align(self, source: str, target: str) -> Alignment:
        """Which words of the source stand behind which words of the target, read from cross-attention."""
        return self.align_all([Pair(source, target)])[0]

    def align_all(self, pairs: Sequence[Pair]) -> list[Alignment]:
        """The alignments of many pairs, which are read together."""
        return [read_alignment(pair, self._read_out(pair)) for pair in self.attended(pairs)]

    def word_attention(self, source: str, target: str) -> AttentionMap:
        """The cross-attention that alignments are read from, between words; `</s>` is the last key."""
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
        encoded = [self._ids(pair) for pair in pairs]
        lengths = [len(source) + len(target) for source, target in encoded]
        attended: dict[int, AttendedPair] = {}
        for group in _batches(lengths, batch_tokens):
            sources, targets = zip(*(encoded[i] for i in group), strict=True)
            for i, sites in zip(group, site_weights(self.model, sources, targets), strict=True):
                attended[i] = self._attended_pair(pairs[i], *encoded[i], sites["cross"])
        return [attended[i] for i in range(len(pairs))]

    def _parts(self, texts: Sequence[str], prefixes: Sequence[str]) -> list[Part]:
        """What the model is given: nothing for an empty line, several parts for one that is too long."""
        encoded = self.vocabularies.source.encode_batch([text.strip() for text in texts])
        begins = self.vocabularies.target.encode_batch(prefixes)
        parts: list[Part] = []
        for line, (text, ids, begin) in enumerate(zip(texts, encoded, begins, strict=True)):
            if len(ids) <= self.longest_source:
                parts.extend([Part(line, text.strip(), ids, begin)] if text.strip() and ids else [])
                continue
            stretches = split_line(text, self._count, self.longest_source)
            for number, stretch in enumerate(stretches):
                ids = self.vocabularies.source.encode(stretch)
                parts.append(Part(line, stretch, ids, begin if number == 0 else []))
        return parts

    def _count(self, text: str) -> int:
        return len(self.vocabularies.source.encode(text))

    @torch.inference_mode()
    def _search(
        self,
        parts: Sequence[Part],
        plan: SearchPlan,
        sampling: Sampling | None,
        batch_tokens: int,
        progress: Progress | None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of every part, in order. Parts of like length are searched together."""
        found: dict[int, list[Hypothesis]] = {}
        generator = torch.Generator().manual_seed(sampling.seed) if sampling else None
        for group in _batches([len(part.ids) + 1 for part in parts], batch_tokens):
            batch = padded_batch([parts[i].ids for i in group])
            prefixes = [parts[i].prefix for i in group]
            if sampling is not None and generator is not None:
                results = sample(self.model, batch, plan, sampling, generator=generator, prefixes=prefixes)
            elif plan.beam == plan.n_best == 1:
                results = greedy(self.model, batch, plan, prefixes=prefixes)
            else:
                results = beam_search(self.model, batch, plan, prefixes=prefixes)
            found.update(zip(group, results, strict=True))
            if progress is not None:
                progress(len(found), len(parts))
        return [found[i] for i in range(len(parts))]

    def _translation(
        self, source: str, done: Sequence[tuple[Part, list[Hypothesis]]], plan: SearchPlan
    ) -> Translation:
        """One line from its parts. The r-th translation joins the r-th of each part, or its last."""
        if not done:
            return Translation(source, "", 0.0)
        # A model whose scores are no numbers leaves no hypothesis alive: it has nothing to say.
        done = [(part, found or [Hypothesis((), -math.inf, -math.inf)]) for part, found in done]
        ranked: dict[str, float] = {}
        for rank in range(max(len(found) for _, found in done)):
            chosen = [found[min(rank, len(found) - 1)] for _, found in done]
            text = join_parts([self._text(hypothesis) for hypothesis in chosen], self.target_language)
            ranked.setdefault(text, _joint_score(chosen, plan.length_penalty))
        (text, score), *others = ranked.items()
        best = [found[0] for _, found in done]
        return Translation(
            source,
            text,
            score,
            pieces=tuple(self.vocabularies.target.pieces([id_ for h in best for id_ in h.ids])),
            alternatives=tuple(others),
            parts=tuple((part.text, self._text(found[0])) for part, found in done),
            align=self.align,
        )

    def _text(self, hypothesis: Hypothesis) -> str:
        # A line stays a line, even if a model says the bytes of a line break.
        return " ".join(self.vocabularies.target.decode(hypothesis.ids).splitlines())

    def _ids(self, pair: Pair) -> tuple[list[int], list[int]]:
        return self.vocabularies.source.encode(pair.source), self.vocabularies.target.encode(pair.target)

    def _attended_pair(
        self, pair: Pair, source_ids: list[int], target_ids: list[int], cross: NDArray[floating]
    ) -> AttendedPair:
        return AttendedPair(
            cross,
            source_words=self.vocabularies.source.word_of_piece(pair.source, source_ids),
            target_words=self.vocabularies.target.word_of_piece(pair.target, target_ids),
            gold=pair.alignment,
        )

    def _read_out(self, pair: AttendedPair) -> ReadOut:
        return self.read_out or default_read_out(*pair.weights.shape[:2])


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices in groups of like length, longest first: at most `batch_tokens` places a group, or one row."""
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if group and (len(group) + 1) * lengths[group[0]] > batch_tokens:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


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
