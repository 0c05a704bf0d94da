"""A process that translates. `pool.py` starts it, one a core.

It is told its models first, then one batch after another, on its standard input; when that is closed, by
the end of the server however it came, it leaves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO, TYPE_CHECKING, Any

from jumok.engines import load
from jumok.errors import JumokError, ModelFolderError, UnsupportedError
from jumok.serve.frames import pack, read_frame
from jumok.serve.journal import note_error, write_journal
from jumok.values import Pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.decoding import Translation, Translator
    from jumok.viewer import Viewer

__all__ = ["main", "work"]

WARM_UP = ["1 2 3 4 5 6 7 8 "[: 2 + 2 * (n % 8)] * (1 + n % 3) for n in range(256)]
KEPT_EXPLANATIONS = 4
"""What a person looks at, and what it looked like before the last changes."""


def work(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Load the models of the first order, then answer batches until there are no more."""
    first = read_frame(orders)
    if first is None:
        return

    def answer(message: dict[str, Any]) -> None:
        answers.write(pack(message))
        answers.flush()

    try:
        translators = [load(folder, cores=1, shortlist=first["shortlist"]) for folder in first["models"]]
        _check_directions(translators, first["directions"])
    except (JumokError, OSError) as error:
        answer({"error": str(error)})
        return
    for translator in translators:
        # The first call of a process is several times slower than the next, and the first full batch takes
        # the memory that all others use again.
        translator.translate(WARM_UP)
    answer({"ready": os.getpid()})
    views: dict[int, Viewer] = {}
    while (order := read_frame(orders)) is not None:
        number = order["model"]
        if order["view"]:
            views[number] = views.get(number) or _viewer(translators[number])
            answer({"candidates": [[_view(views[number], order["view"], text)] for text in order["texts"]]})
            continue

        def said(line: int, text: str) -> None:
            answer({"said": [line, text]})

        answer(_candidates_or_failure(translators[number], order, said if order["watched"] else None))


def _check_directions(translators: Sequence[Translator], expected: list[str]) -> None:
    """A folder may have been exchanged since the server read it, and a model is asked by its place."""
    found = [f"{one.source_language}_{one.target_language}" for one in translators]
    if found != expected:
        raise ModelFolderError(
            f"The models translate {', '.join(found)} and no longer {', '.join(expected)}. "
            "Restart the server."
        )


def _candidates_or_failure(translator: Translator, order: dict[str, Any], said: Any) -> dict[str, Any]:
    """No text that anybody sends may cost a worker, which takes seconds to replace."""
    try:
        return {"candidates": _candidates(translator, order, said)}
    except OSError:
        raise  # nobody listens
    except Exception as error:
        note_error("batch_failed", error)
        return {"failed": type(error).__name__}


def _candidates(translator: Translator, order: dict[str, Any], said: Any) -> list[list[dict[str, Any]]]:
    """For each text its translations, best first, with their scores and, if asked for, word links."""
    n_best = int(order["n_best"])
    beam = 1 if order["greedy"] else max(translator.search.beam, n_best)
    found = translator.translate(order["texts"], beam=beam, n_best=n_best, said=said)
    rows = [
        [{"text": text, "score": score} for text, score in ((t.text, t.score), *t.alternatives)]
        for t in found
    ]
    if order["align"]:
        _add_links(translator, found, rows)
    return rows


def _add_links(
    translator: Translator, found: Sequence[Translation], rows: Sequence[list[dict[str, Any]]]
) -> None:
    whole = [
        (Pair(translation.source, candidate["text"]), candidate)
        for translation, row in zip(found, rows, strict=True)
        if len(translation.parts) == 1
        for candidate in row
        if candidate["text"].strip()
    ]
    try:
        alignments = translator.align_all([pair for pair, _ in whole]) if whole else []
    except UnsupportedError:  # a model without attention: the front falls back on positions
        return
    for (_, candidate), alignment in zip(whole, alignments, strict=True):
        candidate["links"] = sorted(alignment.sure)
    for translation, row in zip(found, rows, strict=True):
        if len(translation.parts) > 1:
            row[0]["links"] = sorted(translation.alignment.sure)


def _viewer(translator: Translator) -> Viewer:
    from jumok.viewer import Viewed, Viewer  # which imports torch

    name = f"{translator.source_language} → {translator.target_language}"
    return Viewer([Viewed(name, translator)], kept=KEPT_EXPLANATIONS)


def _view(viewer: Viewer, what: str, question: str) -> dict[str, Any]:
    """What a page about attention is told, as JSON text; or why it is not."""
    try:
        if what == "page":
            return {"answer": json.dumps(viewer.data(), ensure_ascii=False)}
        return {"answer": viewer.answer(what, question.encode()).decode()}
    except JumokError as error:
        return {"error": str(error)}
    except Exception as error:  # a question comes from anybody, and must not cost a worker
        note_error("view_failed", error)
        return {"error": "This question cannot be answered."}


def main() -> None:
    """What `pool.py` runs in a process of its own."""
    # Ctrl-C, and what systemd sends to every process of a service, are for the front: it lets workers finish.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not stand between two answers
    write_journal(sys.stderr)
    try:
        work(sys.stdin.buffer, answers)
    except BrokenPipeError:
        return
    except Exception as error:  # its words could be those of a text
        note_error("worker_failed", error)
