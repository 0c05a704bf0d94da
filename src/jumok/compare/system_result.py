"""What a contender leaves in its run folder when it has had its turn.

translations.txt    the test set in its words, a line a sentence
outcome.json        numbers, the sentence that was looked at, and a key of what all that was made from
memory.json         the most memory that training has taken, which outlives the process
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.errors import DataError, ModelFolderError
from jumok.look import from_json, to_json
from jumok.storage import checked_json, read_checked_json, write_file

if TYPE_CHECKING:
    from jumok.recipe import SearchSettings
    from jumok.values import AttentionMap

__all__ = [
    "Outcome",
    "outcome_key",
    "peak_memory",
    "read_memory",
    "read_outcome",
    "write_memory",
    "write_outcome",
]

OUTCOME, TRANSLATIONS, MEMORY = "outcome.json", "translations.txt", "memory.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A contender on the test set. `attention` is None for a model that does not look at its source."""

    key: str
    translations: tuple[str, ...]
    seconds: float
    pieces: int
    alignment_error: float | None
    parameters: int
    steps: int
    training_seconds: float
    sentence_translation: str
    attention: AttentionMap | None


def outcome_key(fingerprint: str, sentence: str, search: SearchSettings) -> str:
    """What an outcome depends on beside the model: the pairs, the sentence and the search."""
    parts = [fingerprint, sentence, search.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """The translations first: where there is an outcome, they are there too."""
    lines = "".join(f"{text}\n" for text in outcome.translations)
    write_file(folder / TRANSLATIONS, lines.encode("utf-8", "replace"))
    attention = None if outcome.attention is None else json.loads(to_json(outcome.attention))
    content = {
        "key": outcome.key,
        "sentences": len(outcome.translations),
        "seconds": outcome.seconds,
        "pieces": outcome.pieces,
        "alignment_error": outcome.alignment_error,
        "parameters": outcome.parameters,
        "steps": outcome.steps,
        "training_seconds": outcome.training_seconds,
        "sentence_translation": outcome.sentence_translation,
        "attention": attention,
    }
    write_file(folder / OUTCOME, checked_json(content))


def read_outcome(folder: Path) -> Outcome | None:
    """What was written, or None where nothing was, or it is damaged: it can be made again."""
    try:
        content = read_checked_json(folder / OUTCOME)
        sentences = content.pop("sentences")
        lines = (folder / TRANSLATIONS).read_bytes().decode("utf-8").split("\n")[:-1]
        attention = content.pop("attention")
        found = None if attention is None else from_json(json.dumps(attention))
        outcome = Outcome(**content, translations=tuple(lines), attention=found)
    except (ModelFolderError, DataError, OSError, UnicodeDecodeError, KeyError, TypeError):
        return None
    return outcome if len(lines) == sentences else None


def write_memory(folder: Path, peak: int) -> None:
    """Remember the most bytes of all processes that have trained in the folder."""
    write_file(folder / MEMORY, checked_json({"peak": max(peak, read_memory(folder) or 0)}))


def read_memory(folder: Path) -> int | None:
    try:
        return int(read_checked_json(folder / MEMORY)["peak"])
    except (ModelFolderError, KeyError, TypeError, ValueError):
        return None


def peak_memory(processes: int = 1) -> int:
    """The most bytes that this process has had in memory, and the processes of its team that have ended.

    What they share is counted in each of them, so with several this is an upper bound. On Linux `ru_maxrss`
    also counts the process that started this one, as it was then; the kernel's own high-water mark does not.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        mark = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(mark.split()[1]) * 1024 + (processes - 1) * _largest_child()
    except (OSError, StopIteration, ValueError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _largest_child() -> int:
    """The most bytes that any process had which this one started and saw end."""
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
