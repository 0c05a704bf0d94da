"""The engine `ctranslate2`: a converted Transformer, run by CTranslate2.

It keeps to the rules of this project's own search, which are CTranslate2's: a test holds the two together.
What differs is what rounding does; the marks `<pad>` and `<s>`, which are hidden before the softmax instead
of after it; and sampling, which draws other numbers from the same distribution.

A worker a core, each with one thread and small batches: sentences side by side never wait for one another,
as the threads within a matrix product do. Of all settings of CTranslate2 this was the fastest, or within a
few per cent of it, for the sizes and beams of docs/performance.md; so nothing is measured on the user's
machine.

From 4.8.4 on CTranslate2 imports torch only when a model is converted, so no older one is asked for.
"""

from __future__ import annotations

import io
import json
import math
import os
import threading
import weakref
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.decoding.engine import like_lengths
from jumok.engines.tokens import MARKS, token_names
from jumok.errors import UnsupportedError
from jumok.processes import available_cores
from jumok.values import BEGIN, END, PAD, Hypothesis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jumok.decoding.engine import Found, Watch
    from jumok.decoding.plan import Sampling, SearchPlan
    from jumok.decoding.shortlist import Shortlist

__all__ = ["VECTORS", "ConvertedEngine", "ask_for_wide_vectors", "require_ctranslate2"]

BATCH_TOKENS, FEWEST_BATCH_TOKENS = 512, 128
SMALL_MODEL_BYTES = 8 * 2**20  # what the caches of a core may hold
VECTORS = "CT2_FORCE_CPU_ISA"
_NEVER_SAID = [[MARKS[PAD]], [MARKS[BEGIN]]]

# A seed is the whole process's, and a worker reads it when it draws for the first time.
_drawing = threading.Lock()


def require_ctranslate2() -> None:
    """Raise an UnsupportedError where the package is not installed, or not as it should be."""
    ask_for_wide_vectors()
    try:
        from ctranslate2 import Translator  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(f"the package ctranslate2 cannot be used ({error})") from None


def ask_for_wide_vectors(cpu_facts: Path = Path("/proc/cpuinfo")) -> None:
    """By itself CTranslate2 (4.8.4) takes AVX2 for all but matrix products, on processors with AVX-512 too.

    It is asked before its first use, and only where the processor has what CTranslate2 was compiled for and
    the later VNNI: earlier ones slow down for such instructions.
    """
    if VECTORS in os.environ or not cpu_facts.is_file():
        return
    with cpu_facts.open(encoding="utf-8", errors="replace") as lines:
        flags = next((line for line in lines if line.startswith("flags")), "")
    if {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw", "avx512_vnni"} <= set(flags.split()):
        os.environ[VECTORS] = "AVX512"


class ConvertedEngine:
    """CTranslate2 over the files of a converted model. It works on while the caller does something else."""

    name = "ctranslate2"
    why = ""

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        pieces: int,
        strict: bool = False,
        cores: int | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        """`pieces` is the size of the larger vocabulary. `strict`: what it cannot do is an error.

        It works on `cores` cores, or on all of them. With a shortlist, translations are made of its pieces;
        those with a prefix are not limited.
        """
        self._files = files if shortlist is None else {**files, "vmap.txt": shortlist.to_bytes()}
        self._shortlist = shortlist
        self._strict = strict
        self._names = token_names(pieces)
        self._pieces = {name: piece for piece, name in enumerate(self._names)}
        self._small = len(files["model.bin"]) < SMALL_MODEL_BYTES
        self._places: int = json.loads(files["config.json"])["places"]
        self._translator = self._load(workers=cores or available_cores())

    def cannot(self, sampling: Sampling | None, longest: int = 0) -> str:
        reason = _cannot_draw(sampling, self._shortlist) if sampling is not None else ""
        if reason and self._strict:
            raise UnsupportedError(f"{reason}. Received: {sampling}. Choose the engine torch or auto.")
        if longest > self._places:
            if self._strict:
                self._refuse_long_translations(longest)
            reason = f"the converted model has positions for {self._places:,} pieces of a translation, and "
            reason += f"the prefix and the longest length ask for {longest:,}"
        return reason

    def search(
        self,
        sources: Sequence[Sequence[int]],
        plan: SearchPlan,
        *,
        prefixes: Sequence[Sequence[int]],
        sampling: Sampling | None = None,
        scores: bool = True,
        batch_tokens: int | None = None,
        watch: Watch | None = None,
    ) -> Iterator[Found]:
        self._refuse_too_long(sources)
        limits = [
            plan.limit(len(source), prefix=len(prefix))
            for source, prefix in zip(sources, prefixes, strict=True)
        ]
        self._refuse_long_translations(max(limits, default=0))
        if sampling is not None and sampling.top_k >= self._target_pieces:
            sampling = replace(sampling, top_k=0)  # CTranslate2 refuses to draw from more than all
        # After one shortlist, CTranslate2 (4.8.4) looks up a prefix in it that is searched with another.
        options = {
            "use_vmap": self._shortlist is not None and not any(prefixes),
            **_options(plan, sampling, scores),
        }
        greedy = plan.beam == plan.n_best == 1 and sampling is None
        watched = _Watched(watch, self._pieces) if greedy and watch is not None else None
        request = _Request(sources, prefixes, limits, options, watched)
        lengths = [len(source) for source in sources]  # without `</s>`, as CTranslate2 counts
        suits = _batch_tokens(sum(lengths), request.beam, small=self._small)
        groups = like_lengths(lengths, batch_tokens or suits)
        if sampling is None:
            return self._collect(request, self._translator, groups)
        with _drawing:
            from ctranslate2 import set_random_seed

            set_random_seed(sampling.seed)
            # Only a single new worker makes the same draws for the same seed.
            return iter(list(self._collect(request, self._load(workers=1), groups)))

    def _collect(self, request: _Request, translator: Any, groups: Iterator[list[int]]) -> Iterator[Found]:
        """Submit everything now; hand over the groups as they are done."""
        submitted = [(group, self._submit(request, translator, group)) for group in groups]
        return (
            (group, self._within_limits(request, translator, group, results)) for group, results in submitted
        )

    def _submit(self, request: _Request, translator: Any, group: Sequence[int]) -> list[Any]:
        """Begin to translate sentences together, up to the longest length that any of them may have."""
        names = self._names
        has_prefix = any(request.prefixes[i] for i in group)
        results: list[Any] = translator.translate_batch(
            [[names[piece] for piece in request.sources[i]] for i in group],
            [[names[piece] for piece in request.prefixes[i]] for i in group] if has_prefix else None,
            max_decoding_length=max(request.limits[i] for i in group),
            asynchronous=True,
            callback=None if request.watched is None else _callback(request.watched, group),
            **request.options,
        )
        return results

    def _within_limits(
        self, request: _Request, translator: Any, group: Sequence[int], results: Sequence[Any]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of a group. A batch has one longest length: who came to his own is searched again.

        So only a hypothesis that torch would have cut, and that scores better cut than ended, is missed.
        """
        found = dict(zip(group, map(self._hypotheses, results), strict=True))
        again: dict[int, list[int]] = defaultdict(list)
        most = max(request.limits[i] for i in group)
        for i, hypotheses in found.items():
            limit = request.limits[i]
            if limit < most and any(len(hypothesis.ids) >= limit for hypothesis in hypotheses):
                again[limit].append(i)
        for those in again.values():
            results = self._submit(request, translator, those)
            found.update(zip(those, map(self._hypotheses, results), strict=True))
        return [found[i] for i in group]

    def _hypotheses(self, waiting: Any) -> list[Hypothesis]:
        pieces, result = self._pieces, waiting.result()
        return [
            Hypothesis(tuple(map(pieces.__getitem__, names)), score, math.nan)
            for names, score in zip(result.hypotheses, result.scores or [math.nan], strict=True)
        ]

    @cached_property
    def _target_pieces(self) -> int:
        [names] = [
            data for name, data in self._files.items() if name.startswith(("shared_vocab", "target_vocab"))
        ]
        return len(json.loads(names))

    def _refuse_too_long(self, sources: Sequence[Sequence[int]]) -> None:
        longest = max(map(len, sources), default=0)
        if longest >= self._places:
            raise UnsupportedError(
                f"This converted model has positions for {self._places - 1} pieces of a source. Received: "
                f"{longest}. Cut it into sentences, or choose the engine torch."
            )

    def _refuse_long_translations(self, longest: int) -> None:
        if longest > self._places:
            raise UnsupportedError(
                f"This converted model has positions for {self._places:,} pieces of a translation. Received: "
                f"a prefix and a longest length that ask for {longest:,}. Lower search.longest, shorten the "
                "prefix, or choose the engine torch."
            )

    def _load(self, *, workers: int) -> Any:
        from ctranslate2 import Translator

        files = {name: io.BytesIO(data) for name, data in self._files.items()}
        return Translator(
            ".",
            device="cpu",
            files=files,
            inter_threads=workers,
            intra_threads=1,
            max_queued_batches=-1,  # whoever submits is not made to wait
        )


class _Watched:
    """Puts together what is said of each sentence, and tells it."""

    def __init__(self, watch: Watch, pieces: Mapping[str, int]) -> None:
        self._watch = watch
        self._pieces = pieces
        self._so_far: dict[int, list[int]] = {}

    def begin(self, group: Sequence[int]) -> None:
        self._so_far.update((i, []) for i in group)

    def hear(self, i: int, token: str) -> None:
        if token != MARKS[END]:
            self._so_far[i].append(self._pieces[token])
            self._watch(i, self._so_far[i])


def _callback(watched: _Watched, group: Sequence[int]) -> Callable[[Any], bool]:
    """What CTranslate2 calls after every step, in a thread of its own; where nobody listens, it may stop.

    That thread may hold it longer than anybody else. It must not be the last to hold the engine, whose end
    waits for the end of that thread: so the callback holds nothing.
    """
    watched.begin(group)
    held = weakref.ref(watched)

    def tell(step: Any) -> bool:
        listener = held()
        if listener is not None:
            listener.hear(group[step.batch_id], step.token)
        return listener is None

    return tell


@dataclass(frozen=True, slots=True)
class _Request:
    """Sentences that are searched in the same way. A limit is the most pieces a translation may have."""

    sources: Sequence[Sequence[int]]
    prefixes: Sequence[Sequence[int]]
    limits: Sequence[int]
    options: Mapping[str, Any]
    watched: _Watched | None

    @property
    def beam(self) -> int:
        return int(self.options["beam_size"])


def _cannot_draw(sampling: Sampling, shortlist: Shortlist | None) -> str:
    """Why CTranslate2 would draw otherwise than it is asked to, or ""."""
    if shortlist is not None and sampling.top_k > len(shortlist.always):
        return "CTranslate2 cannot draw from top_k pieces where the shortlist of a batch may have fewer"
    if sampling.top_k == 1:
        return "CTranslate2 takes top_k 1 for a search that draws nothing"
    if sampling.top_p < 1 and (sampling.temperature != 1 or sampling.top_k != 0):
        return "CTranslate2 cuts to top_p before it heeds the temperature and top_k"
    return ""


def _batch_tokens(pieces: int, beam: int, *, small: bool) -> int:
    """Source pieces of a batch: few enough for the caches with all beams, and for every worker's share.

    A large model must read its weights at every step, which costs less a sentence in a larger batch.
    """
    suits = BATCH_TOKENS // min(beam, 4 if small else 2)
    return max(FEWEST_BATCH_TOKENS, min(suits, pieces // (2 * available_cores())))


def _options(plan: SearchPlan, sampling: Sampling | None, scores: bool) -> dict[str, Any]:
    """The plan in CTranslate2's words."""
    options: dict[str, Any] = {
        "num_hypotheses": plan.n_best,
        "length_penalty": plan.length_penalty,
        "coverage_penalty": plan.coverage_penalty,
        "no_repeat_ngram_size": plan.no_repeat,
        "min_decoding_length": plan.shortest,
        "suppress_sequences": _NEVER_SAID,
        "max_input_length": 0,
        # A greedy search that is not asked for scores needs no softmax, which is a tenth of its time.
        "return_scores": scores or plan.beam > 1 or sampling is not None,
        # In a batch, its coverage counts the first step of another sentence (4.8.4).
        "max_batch_size": 1 if plan.coverage_penalty else 0,
    }
    if sampling is None:
        plan.check_n_best()
        # It rounds beam × patience as the plan does, but refuses where that is none at all.
        return {**options, "beam_size": plan.beam, "patience": plan.wanted / plan.beam}
    return {
        **options,
        "beam_size": 1,
        "sampling_temperature": sampling.temperature,
        "sampling_topk": sampling.top_k,
        "sampling_topp": sampling.top_p,
    }
