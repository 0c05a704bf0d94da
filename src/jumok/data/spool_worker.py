"""A worker process that cleans blocks of pairs for a spool, or encodes blocks of a spool.

It reads messages and answers each of them (→). It writes its results to files of the spool.

To clean, the first message and the further ones:
{"folder", "excluded": hashes of the keys of sources, "with_keys"}           → {}
{"number", "languages", "plain", "expected_ratio", "sources", "targets"}     → {}, and files

To encode, the first message and the further ones:
{"folder", "shared", "max_tokens", "store_text", "threshold" of the hold-out}    → {}
{"number"}                                                          → {"skipped": counts}, and files
"""

from __future__ import annotations

import gc
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.data.cleaning import SKIPPING_FAULTS
from jumok.data.faults import CleaningLimits, Inspector
from jumok.data.hold_out import HoldOut, key_hash, sentence_key
from jumok.data.spool import INSPECTED_PAIRS, SpooledBlock
from jumok.data.store import encode_pairs
from jumok.storage.folders import disk_errors
from jumok.system.worker_processes import answer_messages
from jumok.text.tokenizer_files import read_tokenizers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.system.messages import Message
    from jumok.text.tokenizer import TokenizerPair


class BlockCleaner:
    """Finds the faults of single pairs, hashes all pairs, and stores the pairs without faults."""

    def __init__(self, message: Message) -> None:
        self.folder = Path(message["folder"])
        self._excluded = np.sort(np.array(message["excluded"], dtype=np.uint64))
        self._with_keys = bool(message["with_keys"])

    def __call__(self, message: Message) -> Message:
        sources, targets, plain = message["sources"], message["targets"], bool(message["plain"])
        block = SpooledBlock.for_files(self.folder, message["number"])
        source_language, target_language = message["languages"]
        inspector = Inspector(source_language, target_language, CleaningLimits(), only_target=plain)
        inspector.expected_ratio = message["expected_ratio"]
        lines = [
            f"{source}\t{target}\n".encode("utf-8", "surrogatepass")
            for source, target in zip(sources, targets, strict=True)
        ]
        faults = _faults(inspector, sources, targets)
        block.write("hashes", _hashes(lines))
        block.write("faults", faults)
        clean = np.flatnonzero(faults == 0).tolist()
        key_texts = [(targets[i] if plain else sources[i]) or targets[i] for i in clean]
        keys = np.empty(0, "<u8")
        if self._with_keys or len(self._excluded):
            keys = np.fromiter(
                (key_hash(sentence_key(text)) for text in key_texts), "<u8", count=len(key_texts)
            )
            block.write("keys", keys)
        leaked = np.isin(keys, self._excluded) if len(self._excluded) else np.zeros(len(clean), dtype=bool)
        block.write("leaked", leaked)
        lengths = np.empty((len(clean), 2), "<u4")
        lengths[:, 0] = [len(sources[i].encode("utf-8", "surrogatepass")) for i in clean]
        lengths[:, 1] = [len(lines[i]) - 2 for i in clean]  # both sides, without the tab and the line end
        lengths[:, 1] -= lengths[:, 0]
        block.write("lengths", lengths)
        block.path("text").write_bytes(b"".join([lines[i] for i in clean]))
        return {}


def _faults(inspector: Inspector, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.uint8]:
    """Return 1 + the index of the first fault that skips each pair, or 0."""
    faults = np.zeros(len(sources), np.uint8)
    for start in range(0, len(sources), INSPECTED_PAIRS):
        part = slice(start, start + INSPECTED_PAIRS)
        findings, _ = inspector.inspect(sources[part], targets[part])
        for number, fault in reversed(list(enumerate(SKIPPING_FAULTS, 1))):
            if fault in findings:
                faults[part][findings[fault]] = number
    return faults


def _hashes(lines: Sequence[bytes]) -> NDArray[np.uint64]:
    digests = b"".join([blake2b(line, digest_size=8).digest() for line in lines])
    return np.frombuffer(digests, "<u8")


class BlockEncoder:
    """Encodes the training pairs of blocks, and writes their token ids to the spool."""

    def __init__(self, message: Message) -> None:
        self.folder = Path(message["folder"])
        self._tokenizers: TokenizerPair = read_tokenizers(self.folder, shared=message["shared"])
        self._max_tokens = int(message["max_tokens"])
        self._store_text = bool(message["store_text"])
        self._hold_out = HoldOut(int(message["threshold"]))

    def __call__(self, message: Message) -> Message:
        block = SpooledBlock.for_files(self.folder, message["number"])
        sources, targets = block.texts(block.training_mask(self._hold_out))
        encoded = encode_pairs(sources, targets, self._tokenizers, self._max_tokens, threads=1)
        for name, side in (("source", encoded.source), ("target", encoded.target)):
            block.write(f"{name}-ids", side.ids)
            block.write(f"{name}-counts", side.counts)
            if self._store_text:
                texts = [text.encode("utf-8") for text in side.texts]
                block.path(f"{name}-text").write_bytes(b"".join(texts))
                block.write(f"{name}-text-counts", np.array(list(map(len, texts)), "<i8"))
        return {"skipped": dict(encoded.skipped)}


def main() -> None:
    """Run a worker on the standard streams of this process."""
    gc.disable()  # blocks have no reference cycles, and searching for cycles took a third of the time
    task: Any = None  # what the first message asks for

    def answer(message: Message) -> Message:
        nonlocal task
        if task is not None:
            with disk_errors(task.folder, "The corpus itself is intact."):
                return task(message)  # type: ignore[no-any-return]
        task = BlockCleaner(message) if "excluded" in message else BlockEncoder(message)
        return {}

    answer_messages(answer)
