"""The result of one system, stored in its run folder.

translations.txt    the translated test set, one line per sentence
outcome.json        numbers, the attention of one sentence, and a hash of the pairs, the sentence and the
                    search
memory.json         the peak memory of training, which is known only while the process runs
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.errors import DataError, ModelFolderError
from jumok.plots.map_files import from_json, to_json
from jumok.storage.folders import json_with_checksum, read_json_with_checksum, write_file

if TYPE_CHECKING:
    from jumok.config.recipe import SearchSettings
    from jumok.types import AttentionMap

OUTCOME, TRANSLATIONS, MEMORY = "outcome.json", "translations.txt", "memory.json"


@dataclass(frozen=True, slots=True)
class SystemResult:
    """The translations of the test set by one system, with its numbers.

    `key` is what `result_key` returns. `attention` is None if the model has no cross-attention or reads
    pictures.
    """

    key: str
    translations: tuple[str, ...]
    translation_seconds: float
    output_tokens: int
    alignment_error: float | None
    parameters: int
    steps: int
    training_seconds: float
    sentence_translation: str
    attention: AttentionMap | None


def result_key(fingerprint: str, sentence: str, search: SearchSettings) -> str:
    """Return a hash of the pairs, the sentence and the search. A result depends on these and on the model."""
    parts = [fingerprint, sentence, search.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def write_system_result(folder: Path, result: SystemResult) -> None:
    """Write the translations first, so that `outcome.json` is never without them."""
    lines = "".join(f"{text}\n" for text in result.translations)
    write_file(folder / TRANSLATIONS, lines.encode("utf-8", "replace"))
    attention = None if result.attention is None else json.loads(to_json(result.attention))
    content = {
        "key": result.key,
        "sentences": len(result.translations),
        "seconds": result.translation_seconds,
        "tokens": result.output_tokens,
        "alignment_error": result.alignment_error,
        "parameters": result.parameters,
        "steps": result.steps,
        "training_seconds": result.training_seconds,
        "sentence_translation": result.sentence_translation,
        "attention": attention,
    }
    write_file(folder / OUTCOME, json_with_checksum(content))


def read_system_result(folder: Path) -> SystemResult | None:
    """Return the stored result; None if it is missing, damaged, or has an old format.

    Only the number and the encoding of the stored translations are checked: they have no checksum.
    """
    try:
        content = read_json_with_checksum(folder / OUTCOME)
        sentences = content.pop("sentences")
        lines = (folder / TRANSLATIONS).read_bytes().decode("utf-8").split("\n")[:-1]
        attention = content.pop("attention")
        seconds, tokens = content.pop("seconds"), content.pop("tokens")
        result = SystemResult(
            **content,
            translations=tuple(lines),
            translation_seconds=seconds,
            output_tokens=tokens,
            attention=None if attention is None else from_json(json.dumps(attention)),
        )
    except (ModelFolderError, DataError, OSError, UnicodeDecodeError, KeyError, TypeError):
        return None
    return result if len(lines) == sentences else None


def write_peak_memory(folder: Path, peak_bytes: int) -> None:
    """Store the peak, unless an earlier process that trained in the folder had a larger one."""
    write_file(folder / MEMORY, json_with_checksum({"peak": max(peak_bytes, read_peak_memory(folder) or 0)}))


def read_peak_memory(folder: Path) -> int | None:
    """Return the stored peak in bytes; None if no peak is stored."""
    try:
        return int(read_json_with_checksum(folder / MEMORY)["peak"])
    except (ModelFolderError, KeyError, TypeError, ValueError):
        return None


def peak_memory(num_processes: int = 1) -> int:
    """Return the peak memory, in bytes, of this process and of `num_processes` - 1 training workers.

    The workers must have ended. Each counts as much as the largest process that this one has started, and
    shared memory is counted once per process, so the result for several processes is an upper bound.

    VmHWM is read if there is one (Linux), because `ru_maxrss` of Linux includes the peak of the parent
    process before it started this process.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 + (num_processes - 1) * _largest_worker()
    except (OSError, StopIteration, ValueError, IndexError):
        import resource  # optional: not on Windows

        return _max_resident_bytes(resource.RUSAGE_SELF) + (num_processes - 1) * _largest_worker()


def _largest_worker() -> int:
    """Return the largest peak, in bytes, of the processes that this one started and that have ended."""
    import resource  # optional: not on Windows

    return _max_resident_bytes(resource.RUSAGE_CHILDREN)


def _max_resident_bytes(who: int) -> int:
    """Return `ru_maxrss` in bytes; its unit is a kilobyte, except on macOS."""
    import resource  # optional: not on Windows

    peak = resource.getrusage(who).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
