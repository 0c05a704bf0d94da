"""A process that runs the models. `pool.py` starts one per core, or as many as `jumok serve --workers` says.

It reads messages from its standard input and answers each on its standard output (`jumok.system.messages`).
It ends when its input is closed: the server has ended, or needs this worker no longer.

    {"kind": "load", models, language_pairs, shortlist}   the first message
        → {"kind": "ready", pid, and of each model: speeds in letters per second, tags, alphabets}
          | {"kind": "failed", message}
    {"kind": "translate", model, texts, terms of each text, n_best, align, words, greedy, stream, needs_torch}
        → any number of {"kind": "partial", index, text} if streamed, then
          {"kind": "translations", translations, cpu_seconds, seconds}
          | {"kind": "failed", message, cpu_seconds, seconds}
    {"kind": "explain", model, operation, body}           a request of the live page; `body` is JSON
    {"kind": "candidates", model, sentence, prefix, count}
    {"kind": "caption", model, picture}                   `picture` is a data: URL
        each of the last three → {"kind": "answer", answer, cpu_seconds, seconds}   `answer` is JSON
          | {"kind": "refused", message, cpu_seconds, seconds}

`seconds` and `cpu_seconds` do not include loading torch before the first batch that needs torch.
If a translation fails, the server tries it once more. If a question is refused, the client gets the message.
A thread sends heartbeats over a second pipe (`heartbeat.py`).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import time
from dataclasses import asdict, replace
from typing import IO, TYPE_CHECKING, Any

from jumok.errors import DataError, JumokError, ModelFolderError, UnsupportedError
from jumok.inference.loading import load
from jumok.inference.terminology import PairMissingTerms, place_in_pairs
from jumok.inference.text_options import LINE_BY_LINE
from jumok.server.event_log import configure_logging, log_error
from jumok.server.workers.heartbeat import start_heartbeats
from jumok.server.workers.speed import text_size
from jumok.system.messages import pack_message, read_message
from jumok.text.glossary import TermMatch
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.term_placement import has_all_terms, term_notes
from jumok.text.tokenizer import Tokenizer
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.inference.terminology import Retranslate
    from jumok.inference.translation import Translation
    from jumok.inference.translator import Translator
    from jumok.server.viewer.service import ExplanationService
    from jumok.system.messages import Message

    OnPartial = Callable[[int, str], None]

__all__ = ["main", "run_worker"]

# 256 texts of 1 to 24 digits.
WARM_UP_TEXTS = ["1 2 3 4 5 6 7 8 "[: 2 + 2 * (n % 8)] * (1 + n % 3) for n in range(256)]
WARM_UP_SPEEDUP = 2.0
"""Estimate of the speed of later batches, divided by the speed of the first batch. The server uses the speed
that is estimated with it until the server has measured batches."""
MAX_PICTURE_PIXELS = 16_000_000
"""Decoding a picture takes eight bytes of memory per pixel, even if its file is small."""
MAX_CACHED_EXPLANATIONS = 4
"""The explanation that the user sees, and earlier explanations, to which the user may return."""


class ServerGoneError(Exception):
    """The server no longer reads answers."""


def run_worker(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Load the models that the first message names, then answer messages until there are no more."""

    def send(message: Message) -> None:
        try:
            answers.write(pack_message(message))
            answers.flush()
        except OSError as error:
            raise ServerGoneError from error

    load_message = read_message(requests)
    if load_message is None:
        return
    try:
        translators = _load_translators(load_message)
        speeds = [_warm_up(translator) for translator in translators]
    except (JumokError, OSError) as error:
        send({"kind": "failed", "message": str(error)})
        return
    tags = [_tags(translator) for translator in translators]
    alphabets = [_alphabet(translator) for translator in translators]
    send({"kind": "ready", "pid": os.getpid(), "speeds": speeds, "tags": tags, "alphabets": alphabets})
    gc.freeze()  # models and modules stay, and examining them would take tens of milliseconds
    services: dict[int, ExplanationService] = {}
    warmed_up: set[int] = set()  # models whose alignment has been warmed up
    while (message := read_message(requests)) is not None:
        index = message["model"]
        if message.get("needs_torch") and index not in warmed_up:
            warmed_up.add(index)
            _warm_up_alignment(translators[index])
            gc.freeze()
        started, cpu_started = time.monotonic(), time.process_time()
        if message["kind"] == "translate":
            answer = _translate_safely(translators[index], message, send)
        else:
            answer = _answer_safely(services, translators[index], message)
        cpu_seconds, seconds = time.process_time() - cpu_started, time.monotonic() - started
        send({**answer, "cpu_seconds": cpu_seconds, "seconds": seconds})


def _load_translators(message: Message) -> list[Translator]:
    translators = [
        load(folder, cores=1, shortlist=message["shortlist"], device="cpu") for folder in message["models"]
    ]
    _check_language_pairs(translators, message["language_pairs"])
    for translator in translators:
        if isinstance(source := translator.tokenizers.source, JointVocabularyTokenizer):
            # Otherwise an unknown language code in one client's text would fail a batch with other texts.
            translator.tokenizers = replace(translator.tokenizers, source=source.accepting_any_text())
    return translators


def _warm_up(translator: Translator) -> float:
    """Translate many texts, and return a first guess of the speed in letters per second.

    The first call in a process is several times slower than later calls. The first large batch allocates
    memory that all later batches reuse.
    """
    if translator.reads_pictures:
        return 1.0  # its work is not measured in letters
    started = time.process_time()
    translator.translate(WARM_UP_TEXTS)
    seconds = max(time.process_time() - started, 1e-3)
    return WARM_UP_SPEEDUP * sum(map(text_size, WARM_UP_TEXTS)) / seconds


def _warm_up_alignment(translator: Translator) -> None:
    """Load torch before the first batch that needs it, so that loading is not measured as time of a batch."""
    with contextlib.suppress(JumokError):
        translator.align_all([Pair(WARM_UP_TEXTS[0], WARM_UP_TEXTS[0])])


def _tags(translator: Translator) -> list[str]:
    """Return the tags that a source may begin with; pictures and imported models have none."""
    source = translator.tokenizers.source
    return list(source.tags) if isinstance(source, Tokenizer) and not translator.reads_pictures else []


def _alphabet(translator: Translator) -> str:
    """Return the characters beyond ASCII that the vocabulary of the source has; pictures have none."""
    source = translator.tokenizers.source
    tokens = [] if translator.reads_pictures else source.tokens(range(source.vocab_size))
    return "".join(sorted({character for character in "".join(tokens) if not character.isascii()}))


def _check_language_pairs(translators: Sequence[Translator], expected: list[str]) -> None:
    """Raise an error if the languages of the loaded models are not those that the server expects.

    A model folder may have been replaced after the server read its languages.
    """
    loaded = [
        f"{'' if translator.reads_pictures else translator.source_language}_{translator.target_language}"
        for translator in translators
    ]
    if loaded != expected:
        raise ModelFolderError(
            f"The models translate {', '.join(loaded)} and no longer {', '.join(expected)}. "
            "Restart the server."
        )


# --- Translations -------------------------------------------------------------------------------------------


def _translate_safely(translator: Translator, message: Message, send: Callable[[Message], None]) -> Message:
    """Translate a batch. An exception must not end the worker, because its replacement takes seconds."""

    def on_partial(index: int, text: str) -> None:
        send({"kind": "partial", "index": index, "text": text})

    try:
        translations = _translate(translator, message, on_partial if message["stream"] else None)
    except ServerGoneError:
        raise
    except Exception as error:
        log_error("batch_failed", error)
        return {"kind": "failed", "message": type(error).__name__}
    return {"kind": "translations", "translations": translations}


def _translate(
    translator: Translator, message: Message, on_partial: OnPartial | None
) -> list[list[dict[str, Any]]]:
    """Return a record of each translation of each text, best first.

    A record has `text` and `score`; if they were requested, `links` and `probabilities` of the words; and
    `notes` if there are any.
    """
    n_best = int(message["n_best"])
    # None: the model's own beam.
    beam = 1 if message["greedy"] else n_best if n_best > translator.search.beam else None

    def translate(
        texts: Sequence[str], prefixes: Sequence[str] | str = "", on_partial: OnPartial | None = None
    ) -> list[Translation]:
        # LINE_BY_LINE: the server has split the texts into sentences, and `_place_terms` places the terms.
        return translator.translate(
            texts, beam=beam, n_best=n_best, prefix=prefixes, on_partial=on_partial, **LINE_BY_LINE
        )

    translations = translate(message["texts"], on_partial=on_partial)
    records: list[list[dict[str, Any]]] = [
        [{"text": text, "score": score} for text, score in ((best.text, best.score), *best.alternatives)]
        for best in translations
    ]
    for translation, text_records in zip(translations, records, strict=True):
        if translation.notes:
            text_records[0]["notes"] = list(translation.notes)
    if message["align"]:
        _add_links(translator, translations, records)
    if message["words"]:
        _add_probabilities(translator, translations, records)
    if any(message.get("terms", ())):
        _place_terms(translator, message, records, translate)
    return records


def _place_terms(
    translator: Translator,
    message: Message,
    records: Sequence[list[dict[str, Any]]],
    retranslate: Retranslate,
) -> None:
    """Put the terms of each text into its translations, with word links and notes on missing terms."""
    incomplete: list[tuple[dict[str, Any], PairMissingTerms]] = []
    for text, terms, text_records in zip(message["texts"], message["terms"], records, strict=True):
        matches = [TermMatch(tuple(term["span"]), term["target"], term["protected"]) for term in terms]
        incomplete += [
            (record, PairMissingTerms(Pair(text, record["text"]), matches, rank=rank))
            for rank, record in enumerate(text_records)
            if not has_all_terms(record["text"], matches)
        ]
    if not incomplete:
        return
    placed = place_in_pairs([pair for _, pair in incomplete], translator, retranslate)
    for (record, _), terms in zip(incomplete, placed, strict=True):
        earlier = record.pop("notes", ())
        notes = [*(earlier if terms.notes is None else terms.notes), *term_notes(terms)]
        record.pop("probabilities", None)  # the model has not written this text
        record.update(text=terms.text, links=terms.links, **({"notes": notes} if notes else {}))


def _add_links(
    translator: Translator, translations: Sequence[Translation], records: Sequence[list[dict[str, Any]]]
) -> None:
    unsplit = [
        (pair, record) for pair, record in _unsplit_pairs(translations, records) if pair.target.strip()
    ]
    try:
        alignments = translator.align_all([pair for pair, _ in unsplit]) if unsplit else []
    except UnsupportedError:  # a model without attention: the server aligns by position
        return
    for (_, record), alignment in zip(unsplit, alignments, strict=True):
        record["links"] = sorted(alignment.sure)
    for translation, text_records in zip(translations, records, strict=True):
        if len(translation.parts) > 1:
            text_records[0]["links"] = sorted(translation.alignment.sure)


def _add_probabilities(
    translator: Translator, translations: Sequence[Translation], records: Sequence[list[dict[str, Any]]]
) -> None:
    """Add the probability of each word. A sentence that was translated in parts gets no probabilities."""
    from jumok.inference.word_candidates import word_probabilities  # start-up

    unsplit = _unsplit_pairs(translations, records)
    sentence_probabilities = word_probabilities(translator, [pair for pair, _ in unsplit])
    for (_, record), probabilities in zip(unsplit, sentence_probabilities, strict=True):
        record["probabilities"] = probabilities


def _unsplit_pairs(
    translations: Sequence[Translation], records: Sequence[list[dict[str, Any]]]
) -> list[tuple[Pair, dict[str, Any]]]:
    """Return the pairs and the records of all sentences that were not translated in parts."""
    return [
        (Pair(translation.source, record["text"]), record)
        for translation, text_records in zip(translations, records, strict=True)
        if len(translation.parts) == 1
        for record in text_records
    ]


# --- Questions -------------------------------------------------------------------------------------------


def _explanation_service(translator: Translator) -> ExplanationService:
    from jumok.server.viewer.service import ExplanationService, NamedTranslator  # start-up

    name = f"{translator.source_language} → {translator.target_language}"
    return ExplanationService([NamedTranslator(name, translator)], cache_size=MAX_CACHED_EXPLANATIONS)


def _answer_safely(
    services: dict[int, ExplanationService], translator: Translator, message: Message
) -> Message:
    """Answer a question, or refuse it with the reason. An exception must not end the worker."""
    try:
        return {"kind": "answer", "answer": _answer(services, translator, message)}
    except JumokError as error:
        return {"kind": "refused", "message": str(error)}
    except Exception as error:
        log_error(f"{message['kind']}_failed", error)
        return {"kind": "refused", "message": "The model failed on this request; see the server log."}


def _answer(services: dict[int, ExplanationService], translator: Translator, message: Message) -> str:
    if message["kind"] == "caption":
        return json.dumps(_caption(translator, message["picture"]))
    if message["kind"] == "candidates":
        return json.dumps(_find_candidates(translator, message))
    if (service := services.get(message["model"])) is None:
        service = services[message["model"]] = _explanation_service(translator)
    if message["operation"] == "page":
        return json.dumps(service.page_data(), ensure_ascii=False)
    return service.handle(message["operation"], message["body"].encode()).decode()


def _find_candidates(translator: Translator, message: Message) -> list[dict[str, Any]]:
    """Return other words at a position of a translation."""
    from jumok.inference.word_candidates import word_candidates  # start-up

    word_alternatives = word_candidates(
        translator, message["sentence"], message["prefix"], count=message["count"]
    )
    pairs = [Pair(message["sentence"], candidate.text) for candidate in word_alternatives]
    links: list[list[tuple[int, int]] | None] = [None] * len(word_alternatives)
    with contextlib.suppress(UnsupportedError):  # a model without attention
        links = [sorted(alignment.sure) for alignment in translator.align_all(pairs)]
    return [
        asdict(candidate) | {"links": word_links}
        for candidate, word_links in zip(word_alternatives, links, strict=True)
    ]


def _caption(translator: Translator, picture: str) -> dict[str, Any]:
    from jumok.pictures.reading import measure_picture  # start-up

    facts = measure_picture(picture)
    if facts.width * facts.height > MAX_PICTURE_PIXELS:
        raise DataError(
            f"The picture has {facts.width:,} × {facts.height:,} pixels, and at most "
            f"{MAX_PICTURE_PIXELS // 10**6} million are allowed. Make it smaller; the model sees a copy of "
            "some dozen pixels per side."
        )
    [written] = translator.translate([picture])
    return {"text": written.text, "score": written.score}


def main() -> None:
    """Run a worker on the standard streams of this process."""
    # A terminal sends Ctrl-C to all processes, and systemd sends SIGTERM to all processes of a service. Only
    # the server reacts, and lets its workers finish.
    for ignored_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored_signal, signal.SIG_IGN)
    start_heartbeats(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a library must not get between two answers
    configure_logging(sys.stderr)
    try:
        run_worker(sys.stdin.buffer, answers)
    except ServerGoneError:
        return
    except Exception as error:  # its message could contain a client's text
        log_error("worker_failed", error)
