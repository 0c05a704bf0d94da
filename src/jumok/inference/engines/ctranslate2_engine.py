"""The engine `ctranslate2`: a converted Transformer, run by CTranslate2.

jumok's own search follows the rules of CTranslate2, and a test compares the results. Some differences remain:

- The engines round differently.
- CTranslate2 masks `<pad>` and `<s>` before the softmax. jumok masks them after the softmax and renormalises
  only rows in which other tokens are disallowed too (`mask_disallowed` in `search/constraints.py`).
- In sampling, the engines draw different random numbers from the same distribution.
- If sentences with different maximum lengths are in one batch, a search of CTranslate2 may go beyond the
  maximum length of a sentence (`_collect`).
- All sources of a batch share one shortlist, and the batches of the engines differ.

On a CPU, the engine runs one worker per core, with one thread each, on small batches: workers never wait for
one another, as threads inside a matrix product do. Several numbers of workers, threads and tokens per batch
were compared. This choice was the fastest, or within a few per cent of the fastest, for all model sizes and
beams in docs/performance.md. So the engine measures nothing on the user's machine.

Since release 4.8.4, CTranslate2 imports torch only for conversion. Older releases are not supported.
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

from jumok.errors import UnsupportedError
from jumok.inference.engines.ctranslate2_tokens import SPECIAL_TOKENS, token_names
from jumok.inference.engines.protocol import length_buckets
from jumok.system.processes import available_cores
from jumok.types import BEGIN, END, PAD, Hypothesis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jumok.inference.engines.protocol import OnToken, SearchResult
    from jumok.inference.search.plan import Sampling, SearchPlan
    from jumok.inference.shortlist import Shortlist

# Source tokens per batch: the largest number with a beam of 1, and the smallest number with any beam.
BATCH_TOKENS, MIN_BATCH_TOKENS = 512, 128
SMALL_MODEL_BYTES = 8 * 2**20  # a smaller model fits into the caches of a core, approximately
ISA_VARIABLE = "CT2_FORCE_CPU_ISA"
_NEVER_PRODUCED = (SPECIAL_TOKENS[PAD], SPECIAL_TOKENS[BEGIN])

# CTranslate2 has one seed per process. A worker reads the seed when it first draws a random number.
_seed_lock = threading.Lock()


def require_ctranslate2() -> None:
    """Raise an UnsupportedError if the package is missing or cannot be imported."""
    request_avx512()
    try:
        from ctranslate2 import Translator  # optional  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(f"the package ctranslate2 cannot be used ({error})") from None


def request_avx512(cpu_info: Path = Path("/proc/cpuinfo")) -> None:
    """Ask CTranslate2 for AVX-512. By default, CTranslate2 4.8.4 uses AVX-512 only for matrix products.

    Call this function before CTranslate2 is first used. It requests AVX-512 only if the processor has VNNI
    and all instructions that CTranslate2 was compiled for. Older processors lower their clock for AVX-512.
    """
    if ISA_VARIABLE in os.environ or not cpu_info.is_file():
        return
    with cpu_info.open(encoding="utf-8", errors="replace") as lines:
        flags = next((line for line in lines if line.startswith("flags")), "")
    if {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw", "avx512_vnni"} <= set(flags.split()):
        os.environ[ISA_VARIABLE] = "AVX512"


def choose_ctranslate2_device(device: str) -> str:
    """Return "cuda" or "cpu"; raise an UnsupportedError if CTranslate2 cannot compute on `device`.

    "auto" becomes "cuda" if CTranslate2 finds a CUDA device, else "cpu".
    """
    from ctranslate2 import get_cuda_device_count  # optional

    if device == "cpu":
        return "cpu"
    has_cuda = get_cuda_device_count() > 0
    if device == "auto" or (device == "cuda" and has_cuda):
        return "cuda" if has_cuda else "cpu"
    raise UnsupportedError(f"CTranslate2 finds no {device} on this machine")


class CTranslate2Engine:
    """Runs a converted model. A search runs in the background while the caller does other work.

    Sampling does not: `search` then returns only when all samples have been drawn.
    """

    name = "ctranslate2"
    fallback_reason = ""

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        vocab_size: int,
        strict: bool = False,
        cores: int | None = None,
        shortlist: Shortlist | None = None,
        device: str = "cpu",
    ) -> None:
        """`vocab_size` is the size of the larger vocabulary.

        With `strict`, `unsupported_reason` raises an UnsupportedError instead of returning a reason. On a
        CPU, the engine uses `cores` cores, by default all. With a shortlist, translations consist of its
        tokens, except in a search in which a sentence has a prefix. For `device`, see
        `choose_ctranslate2_device`.
        """
        self._device = choose_ctranslate2_device(device)
        self._files = files if shortlist is None else {**files, "vmap.txt": shortlist.to_bytes()}
        self._shortlist = shortlist
        self._strict = strict
        self._names = token_names(vocab_size)
        self._ids = {name: token for token, name in enumerate(self._names)}
        self._is_small = len(files["model.bin"]) < SMALL_MODEL_BYTES
        config = json.loads(files["config.json"])
        self._max_positions: int = config["max_positions"]
        # A model that another program converted may lack these tokens. CTranslate2 would then suppress <unk>.
        self._never_produced = [[name] for name in config.get("never_produced", _NEVER_PRODUCED)]
        self._translator = self._load(workers=cores or available_cores())

    def unsupported_reason(self, plan: SearchPlan, sampling: Sampling | None, max_length: int = 0) -> str:
        reason = _unsupported_search(plan, sampling, self._shortlist)
        if reason and self._strict:
            raise UnsupportedError(
                f"{reason}. Received: {sampling or plan}. Choose the engine torch or auto."
            )
        if max_length > self._max_positions:
            if self._strict:
                self._check_max_length(max_length)
            reason = (
                f"the converted model has positions for {self._max_positions:,} tokens of a translation, "
                f"and the prefix and the maximum length need {max_length:,}"
            )
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
        on_token: OnToken | None = None,
    ) -> Iterator[SearchResult]:
        self._check_source_lengths(sources)
        max_lengths = [
            plan.max_length(len(source), prefix_length=len(prefix))
            for source, prefix in zip(sources, prefixes, strict=True)
        ]
        self._check_max_length(max(max_lengths, default=0))
        if sampling is not None and sampling.top_k >= self._target_vocab_size:
            sampling = replace(sampling, top_k=0)  # CTranslate2 refuses a top_k above the vocabulary size
        # CTranslate2 (4.8.4) looks up a prefix in the shortlist of the previous search, so a search with a
        # prefix uses no shortlist.
        options = {
            "use_vmap": self._shortlist is not None and not any(prefixes),
            "suppress_sequences": self._never_produced,
            **_options(plan, sampling, scores),
        }
        greedy = plan.beam == plan.n_best == 1 and sampling is None
        outputs = _PartialOutputs(on_token, self._ids) if greedy and on_token is not None else None
        request = _Request(sources, prefixes, max_lengths, options, outputs)
        lengths = [len(source) for source in sources]  # without `</s>`, as CTranslate2 counts
        batch_tokens = batch_tokens or _default_batch_tokens(
            sum(lengths), request.beam, is_small=self._is_small
        )
        groups = length_buckets(lengths, batch_tokens)
        if sampling is None:
            return self._run(request, self._translator, groups)
        with _seed_lock:
            from ctranslate2 import set_random_seed  # optional

            set_random_seed(sampling.seed)
            # Only a single new worker makes the same draws for the same seed.
            return iter(list(self._run(request, self._load(workers=1), groups)))

    def _run(self, request: _Request, translator: Any, groups: Iterator[list[int]]) -> Iterator[SearchResult]:
        """Submit all groups now, and return an iterator over the results of each group."""
        submitted = [(group, self._submit(request, translator, group)) for group in groups]
        return ((group, self._collect(request, translator, group, results)) for group, results in submitted)

    def _submit(self, request: _Request, translator: Any, group: Sequence[int]) -> list[Any]:
        """Start to translate a group, up to the largest maximum length in it."""
        names = self._names
        has_prefix = any(request.prefixes[i] for i in group)
        results: list[Any] = translator.translate_batch(
            [[names[token] for token in request.sources[i]] for i in group],
            [[names[token] for token in request.prefixes[i]] for i in group] if has_prefix else None,
            max_decoding_length=max(request.max_lengths[i] for i in group),
            asynchronous=True,
            callback=None if request.outputs is None else _step_callback(request.outputs, group),
            **request.options,
        )
        return results

    def _collect(
        self, request: _Request, translator: Any, group: Sequence[int], results: Sequence[Any]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of a group.

        CTranslate2 takes one maximum length per batch. If a hypothesis of a sentence reaches the maximum
        length of that sentence, the sentence is searched again with its own maximum length. One difference
        from torch remains: torch may rank a hypothesis that was cut at its maximum length above complete
        hypotheses. In such a batch, CTranslate2 may find only complete hypotheses, because it searches beyond
        the maximum length of the sentence.
        """
        hypotheses_of = dict(zip(group, map(self._hypotheses, results), strict=True))
        sentences_to_repeat: dict[int, list[int]] = defaultdict(list)  # by their maximum length
        batch_max_length = max(request.max_lengths[i] for i in group)
        for i, hypotheses in hypotheses_of.items():
            max_length = request.max_lengths[i]
            if max_length < batch_max_length and any(
                len(hypothesis.ids) >= max_length for hypothesis in hypotheses
            ):
                sentences_to_repeat[max_length].append(i)
        for indices in sentences_to_repeat.values():
            results = self._submit(request, translator, indices)
            hypotheses_of.update(zip(indices, map(self._hypotheses, results), strict=True))
        return [hypotheses_of[i] for i in group]

    def _hypotheses(self, future: Any) -> list[Hypothesis]:
        ids, result = self._ids, future.result()
        return [
            Hypothesis(tuple(map(ids.__getitem__, names)), score, math.nan)
            for names, score in zip(result.hypotheses, result.scores or [math.nan], strict=True)
        ]

    @cached_property
    def _target_vocab_size(self) -> int:
        [names] = [
            data for name, data in self._files.items() if name.startswith(("shared_vocab", "target_vocab"))
        ]
        return len(json.loads(names))

    def _check_source_lengths(self, sources: Sequence[Sequence[int]]) -> None:
        longest = max(map(len, sources), default=0)
        if longest >= self._max_positions:
            raise UnsupportedError(
                f"This converted model has positions for {self._max_positions - 1:,} tokens of a source. "
                f"Received: {longest:,}. Split the source into sentences, or choose the engine torch."
            )

    def _check_max_length(self, max_length: int) -> None:
        if max_length > self._max_positions:
            raise UnsupportedError(
                f"This converted model has positions for {self._max_positions:,} tokens of a translation. "
                f"Received: a prefix and a maximum length that need {max_length:,}. Lower "
                "search.max_length_ratio, shorten the prefix, or choose the engine torch."
            )

    def _load(self, *, workers: int) -> Any:
        from ctranslate2 import Translator  # optional

        files = {name: io.BytesIO(data) for name, data in self._files.items()}
        return Translator(
            ".",
            device=self._device,
            files=files,
            inter_threads=workers if self._device == "cpu" else 1,
            intra_threads=1,
            max_queued_batches=-1,  # submitting never blocks
        )


class _PartialOutputs:
    """Collects the tokens of each sentence so far and passes them to the callback `on_token`."""

    def __init__(self, on_token: OnToken, ids: Mapping[str, int]) -> None:
        self._on_token = on_token
        self._ids = ids
        self._tokens: dict[int, list[int]] = {}

    def start(self, group: Sequence[int]) -> None:
        """Forget the tokens of these sentences, before their first or second search."""
        self._tokens.update((i, []) for i in group)

    def add(self, i: int, token: str) -> None:
        if token != SPECIAL_TOKENS[END]:
            self._tokens[i].append(self._ids[token])
            self._on_token(i, self._tokens[i])


def _step_callback(outputs: _PartialOutputs, group: Sequence[int]) -> Callable[[Any], bool]:
    """Return a callback for CTranslate2, which runs the callback after every step, in CTranslate2's thread.

    If the callback returns True, the search stops.

    CTranslate2's thread may be the last owner of the callback. It must not be the last owner of the engine,
    whose destructor waits for that thread. So the callback refers only weakly to `outputs`, whose `on_token`
    may own the engine.
    """
    outputs.start(group)
    reference = weakref.ref(outputs)

    def on_step(step: Any) -> bool:
        living_outputs = reference()
        if living_outputs is not None:
            living_outputs.add(group[step.batch_id], step.token)
        return living_outputs is None

    return on_step


@dataclass(frozen=True, slots=True)
class _Request:
    """Sentences that are searched with the same options. Maximum lengths are in tokens of a translation."""

    sources: Sequence[Sequence[int]]
    prefixes: Sequence[Sequence[int]]
    max_lengths: Sequence[int]
    options: Mapping[str, Any]
    outputs: _PartialOutputs | None

    @property
    def beam(self) -> int:
        return int(self.options["beam_size"])


def _unsupported_search(plan: SearchPlan, sampling: Sampling | None, shortlist: Shortlist | None) -> str:
    """Return why CTranslate2 cannot search or sample as requested, or ""."""
    if plan.coverage_penalty and (plan.beam == 1 or sampling is not None):
        return "CTranslate2 (4.8.4) crashes on a coverage penalty without a beam"
    if sampling is None:
        return ""
    if shortlist is not None and sampling.top_k > len(shortlist.always):
        return "CTranslate2 cannot sample from top_k tokens if the shortlist of a batch may have fewer"
    if sampling.top_k == 1:
        return "CTranslate2 treats top_k 1 as a greedy search"
    if sampling.top_p < 1 and (sampling.temperature != 1 or sampling.top_k != 0):
        return "CTranslate2 applies top_p before the temperature and top_k"
    return ""


def _default_batch_tokens(num_tokens: int, beam: int, *, is_small: bool) -> int:
    """Return the number of source tokens per batch, for a search of `num_tokens` source tokens.

    A batch should fit into the caches, and every worker should get batches. In every step, the weights of a
    large model are read from memory, which takes less time per sentence in a larger batch. The tokens are
    divided among all available cores, even if the engine uses fewer: the engines of a server's workers run at
    the same time, and smaller batches save memory.
    """
    largest = BATCH_TOKENS // min(beam, 4 if is_small else 2)
    return max(MIN_BATCH_TOKENS, min(largest, num_tokens // (2 * available_cores())))


def _options(plan: SearchPlan, sampling: Sampling | None, scores: bool) -> dict[str, Any]:
    """Return the plan and the sampling as options of CTranslate2's `translate_batch`."""
    options: dict[str, Any] = {
        "num_hypotheses": plan.n_best,
        "length_penalty": plan.length_penalty,
        "coverage_penalty": plan.coverage_penalty,
        "no_repeat_ngram_size": plan.no_repeat_ngram_size,
        "min_decoding_length": plan.min_length,
        "max_input_length": 0,  # no limit
        # A greedy search without scores needs no softmax. The softmax takes a tenth of the time.
        "return_scores": scores or plan.beam > 1 or sampling is not None,
        # In a batch, CTranslate2 (4.8.4) adds the first step of another sentence to the coverage.
        "max_batch_size": 1 if plan.coverage_penalty else 0,
    }
    if sampling is None:
        plan.check_n_best()
        # CTranslate2 rounds beam × patience. This patience gives `max_finished`, which is never 0:
        # CTranslate2 refuses 0.
        return {**options, "beam_size": plan.beam, "patience": plan.max_finished / plan.beam}
    return {
        **options,
        "beam_size": 1,
        "sampling_temperature": sampling.temperature,
        "sampling_topk": sampling.top_k,
        "sampling_topp": sampling.top_p,
    }
