"""The child process of `import_model`: it reads untrusted files, writes the model folder and sends a report.

After the process has listed the files, and before it reads one of them, it limits its own memory. The limit
depends on the memory of the computer and on the size of all files, because several copies of the weights are
in memory at the same time. Windows has no such limits. The time limit of the parent process applies on all
systems.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import JumokError
from jumok.interop.conversion import ImportChoices, convert
from jumok.interop.ctranslate2_reader import is_ctranslate2, read_ctranslate2
from jumok.interop.formats import read_foreign_model
from jumok.interop.own_export_reader import EXPORT_RECORD, read_own_export
from jumok.interop.package import open_package, refusal
from jumok.storage.model_folder import save_converted_model, save_model
from jumok.storage.readme import LICENCE
from jumok.system.messages import pack_message

if TYPE_CHECKING:
    from jumok.interop.package import Package
    from jumok.system.messages import Message

BASE_BYTES = 6 * 2**30
"""Address space in bytes for Python and torch. Most of this address space is never used."""
MEMORY_PER_FILE_BYTE = 12
"""Address space in bytes for each byte of the package's files."""
MAX_CPU_SECONDS = 1200


def work() -> None:
    """Run the import task, which is JSON in the first command line argument.

    Write one message to standard output: the report, or the error.
    """
    task = json.loads(sys.argv[1])
    path = Path(task["path"])
    _limit("RLIMIT_CPU", MAX_CPU_SECONDS)
    try:
        package = open_package(path)
        _limit("RLIMIT_AS", _max_bytes(sum(package.sizes.values())))
        out = None if task["out"] is None else Path(task["out"])
        message = import_package(package, path, out, ImportChoices(**task["choices"]))
    except JumokError as error:
        message = {"error": type(error).__name__, "message": str(error)}
    except (MemoryError, RecursionError) as error:
        reason = f"it needs more memory than its size explains ({type(error).__name__})"
        message = {"error": "ModelFolderError", "message": str(refusal(str(path), reason))}
    except Exception as error:  # an untrusted file may break any library that reads it
        reason = f"reading it failed ({type(error).__name__}: {error!s:.200})"
        message = {"error": "ModelFolderError", "message": str(refusal(str(path), reason))}
    sys.stdout.buffer.write(pack_message(message))
    sys.stdout.buffer.flush()


def import_package(package: Package, path: Path, out: Path | None, choices: ImportChoices) -> Message:
    """Import a model in this process, and return the fields of an `ImportReport`.

    If `out` is None, nothing is written. Messages name the model by `path`.
    """
    if EXPORT_RECORD in package:
        imported = read_own_export(package, path, choices)
    elif is_ctranslate2(package):
        imported = read_ctranslate2(package, path, choices)
    else:
        imported = convert(read_foreign_model(package, path), path, choices)
    card = imported.card
    if out is not None and imported.engine_files:
        files, tokenizers = imported.engine_files, imported.tokenizers
        save_converted_model(out, card, files, tokenizers, readme=imported.readme)
    elif out is not None:
        save_model(out, card, imported.weights, imported.tokenizers, readme=imported.readme)
    languages = card.recipe.languages
    report: dict[str, Any] = {
        "folder": str(out or path),
        "format": imported.format,
        "languages": f"{languages.source or '?'} → {languages.target or '?'}",
        "parameters": card.facts.get("parameters")
        or sum(tensor.numel() for tensor in imported.weights.values()),
        "vocab_size": imported.vocab_size,
        "positions": getattr(card.recipe.model, "positions", ""),
        "positions_reason": imported.positions_reason,
        "licence": card.facts.get(LICENCE) or "unknown",
        "codes": list(imported.codes),
    }
    return report


def _max_bytes(size: int) -> int:
    """Return the limit of address space in bytes, for files of `size` bytes.

    The limit is a base plus the memory for the files, which is at most the memory of the computer.
    """
    needed = MEMORY_PER_FILE_BYTE * size
    if not hasattr(os, "sysconf"):  # Windows
        return BASE_BYTES + needed
    return BASE_BYTES + min(needed, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _limit(name: str, value: int) -> None:
    """Lower a resource limit of this process if the system has such limits. The limit is never increased."""
    try:
        import resource  # optional: not on Windows
    except ImportError:
        return
    kind = getattr(resource, name)
    soft, hard = resource.getrlimit(kind)
    lowest = min(limit for limit in (value, soft, hard) if limit != resource.RLIM_INFINITY)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (lowest, hard))
