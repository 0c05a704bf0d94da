"""Translates blocks with one model, in a worker process or in a Ray actor. The messages of a process:

{"settings": …, "cores": n}      the first message  → {"fallback_message": see `BlockTranslator`}
{"texts": […], "number": n}      one per block      → {"part": a `Part` as text}; n is the number of the block
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from jumok.errors import ModelFolderError
from jumok.inference.bulk.parts import BulkSettings, Part
from jumok.inference.loading import load
from jumok.inference.search.plan import Sampling
from jumok.system.worker_processes import answer_messages
from jumok.text.glossary import Glossary

if TYPE_CHECKING:
    from jumok.inference.text_options import TextOptions
    from jumok.system.messages import Message


class BlockTranslator:
    """A model that is loaded once, and translates block after block."""

    def __init__(self, settings: dict[str, Any], cores: int) -> None:
        self._settings = BulkSettings(**settings)
        self._translator = load(self._settings.model, cores=cores, **self._settings.loading)
        digest = self._translator.facts.digest
        if digest != self._settings.digest:
            raise ModelFolderError(
                f"{self._settings.model} is another model on this machine, or has been replaced since the "
                f"command was started. Received: {digest[:12]} instead of {self._settings.digest[:12]}. Copy "
                "the same folder to every machine, then run the same command again."
            )
        options = dict(self._settings.options)
        if self._settings.glossary is not None:
            options["glossary"] = Glossary(self._settings.glossary)
        self._options = cast("TextOptions", options)

    def fallback_message(self) -> str:
        """Return the engine's name and why the preferred engine does not run; "" if that engine runs."""
        engine = self._translator.engine
        return f"engine {engine.name}: {engine.fallback_reason}" if engine.fallback_reason else ""

    def translate(self, number: int, texts: list[str]) -> bytes:
        """Return the `Part` of a block as bytes."""
        settings = self._settings.for_block(number)
        translations = self._translator.translate(
            texts,
            n_best=settings.n_best,
            prefix=settings.prefix,
            sampling=None if settings.sampling is None else Sampling(**settings.sampling),
            scores=settings.output.startswith("json"),
            **self._options,
        )
        return Part.of_translations(translations, settings).to_bytes()


def main() -> None:
    """Run a worker on the standard streams of this process."""
    translators: list[BlockTranslator] = []

    def answer(message: Message) -> Message:
        if not translators:
            translators.append(BlockTranslator(message["settings"], message["cores"]))
            return {"fallback_message": translators[0].fallback_message()}
        part = translators[0].translate(message["number"], message["texts"])
        return {"part": part.decode("utf-8", "surrogateescape")}

    answer_messages(answer)
