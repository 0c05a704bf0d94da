"""Pairs that a fine-tuned model should not forget: some to train on again (replay), some to measure (keep).

The pairs to replay are the first of these that exist:

1. the files of `fine_tuning.replay`; the start model translates the sentences of a plain text,
2. the pairs of the run that trained the start model,
3. the new sources with their translations by the start model (self-distillation, Kim & Rush 2016).

If `fine_tuning.replay_share` is 0, no pair is trained on again; 2. and 3. are then not collected.

The pairs to keep are the first of these that exist:

1. the files of `fine_tuning.keep`,
2. a tenth of the pairs to replay, at most 2,000, if these come from 1. or 2. above (the new sources cannot
   show what the model has forgotten); these pairs are then not replayed,
3. the sources of the validation set with their translations by the start model.

The pairs to replay and to keep are stored in the run folder, so that a resumed run needs neither the files
nor the start model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from jumok.data.cleaning import Cleaner
from jumok.data.corpora import open_corpora, open_further_corpora, open_texts
from jumok.data.hold_out import choose_hold_out, sentence_key
from jumok.data.readers import has_pair_suffix
from jumok.data.store import CorpusPairs, hash_tokenizers, open_store
from jumok.errors import DataError, JumokError
from jumok.inference.loading import load
from jumok.training.validation.protocol import MAX_PAIRS, evenly_spaced
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from jumok.config.recipe import FineTuningSettings, LanguageSettings
    from jumok.data.corpora import Corpus
    from jumok.text.tokenizer import TokenizerPair
    from jumok.training.run.corpus_reader import Sentences
    from jumok.training.run.inputs import Inputs

MAX_REPLAY_PAIRS = 50_000
"""At most this many pairs are stored for replay. By default, half of the pairs of an epoch are replayed."""
MAX_TRANSLATED_PAIRS, TRANSLATED_KEEP_PAIRS = 2000, 400
"""The start model translates at most this many sentences to replay, and this many sentences to keep. That
takes some minutes with a large model."""


@dataclass(frozen=True, slots=True)
class OldPairs:
    """Pairs to train on again and pairs to keep, each with a description of its origin."""

    replay: tuple[Pair, ...] = ()
    keep: tuple[Pair, ...] = ()
    replay_origin: str = ""
    keep_origin: str = ""
    keeps_translations: bool = False
    """Whether the targets to keep are the start model's own translations, not references."""

    def corpus_pairs(self, num_new: int, share: float) -> list[CorpusPairs]:
        """Return the replay as a corpus whose weight gives it this share of the pairs of an epoch."""
        if not self.replay or not share:
            return []
        weight = num_new * share / (1 - share) / len(self.replay)
        return [CorpusPairs(f"replay: {self.replay_origin}", self.replay, weight)]

    def to_bytes(self) -> bytes:
        content: dict[str, Any] = {
            name: [[pair.source, pair.target] for pair in pairs]
            for name, pairs in (("replay", self.replay), ("keep", self.keep))
        }
        content |= {
            "replay_origin": self.replay_origin,
            "keep_origin": self.keep_origin,
            "keeps_translations": self.keeps_translations,
        }
        return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, data: bytes) -> OldPairs:
        content = json.loads(data.decode("utf-8", "surrogatepass"))
        pairs = {
            name: tuple(Pair(source, target) for source, target in content[name])
            for name in ("replay", "keep")
        }
        return cls(**{**content, **pairs})


@dataclass(frozen=True)
class Collector:
    """Collects old pairs for one run.

    The argument `exclude` of its methods is a set of sentence keys. Pairs whose source has one of these keys
    are left out.
    """

    model_folder: Path
    tokenizers: TokenizerPair
    languages: LanguageSettings
    inputs: Inputs

    def read_keep(self, files: Sequence[str]) -> tuple[Pair, ...]:
        corpora = open_further_corpora(files, **self._options)
        pairs = [pair for corpus in corpora for pair in corpus.pairs() if pair.source and pair.target]
        if not pairs:
            raise DataError(f"There is no pair to keep. Received: {', '.join(files)}.")
        return tuple(_without_alignments(evenly_spaced(pairs, MAX_PAIRS)))

    def read_replay(self, files: Sequence[str], exclude: set[str]) -> tuple[list[Pair], bool]:
        """Return the pairs of the files, and whether they are translations by the start model."""
        if len(files) == 1 and not has_pair_suffix(files[0]):
            language = self.languages.source or None
            [text] = open_texts(files, language=language, encoding=self.inputs.encoding)
            return self.translate((pair.target for pair in text.pairs()), exclude), True
        pairs = _cleaned(open_corpora(files, **self._options), exclude)
        if not pairs:
            raise DataError(
                f"No pair was left to replay after cleaning. Received: {', '.join(files)}. `jumok check` "
                "with the same files says why."
            )
        return pairs, False

    def pairs_of_run(self, exclude: set[str]) -> list[Pair]:
        """Return training pairs of the run folder that contains the start model, evenly spaced.

        The list is empty if the start model is not in a run folder, or if the encoded pairs there are damaged
        or have another vocabulary.
        """
        data = self.model_folder.resolve().parent / "data"
        if not data.is_dir():
            return []
        try:
            store = open_store(data)
        except JumokError:  # the folder is damaged, or it is not from a run
            return []
        if store.tokenizer_hash != hash_tokenizers(self.tokenizers):
            return []
        source, target = self.tokenizers.source, self.tokenizers.target
        encoded = map(store.pair_ids, evenly_spaced(range(len(store)), MAX_REPLAY_PAIRS))
        pairs = (Pair(source.decode(ids[0]), target.decode(ids[1])) for ids in encoded)
        return [pair for pair in pairs if sentence_key(pair.source) not in exclude]

    def translate(
        self, sentences: Iterable[str], exclude: set[str], max_count: int = MAX_TRANSLATED_PAIRS
    ) -> list[Pair]:
        """Return at most `max_count` distinct sentences with their translations by the start model.

        The sentences are evenly spaced among the first `MAX_REPLAY_PAIRS`. Pairs with an empty side are left
        out.
        """
        distinct = dict.fromkeys(
            s for s in islice(sentences, MAX_REPLAY_PAIRS) if sentence_key(s) not in exclude
        )
        sources = evenly_spaced(list(distinct), max_count)
        translations = load(self.model_folder).translate(sources)
        pairs = [Pair(source, target.text) for source, target in zip(sources, translations, strict=True)]
        return [pair for pair in pairs if pair.source and pair.target]

    @property
    def _options(self) -> dict[str, Any]:
        languages = {"source": self.languages.source or None, "target": self.languages.target or None}
        return {**languages, "columns": self.inputs.columns, "encoding": self.inputs.encoding}


def collect_old_pairs(collector: Collector, sentences: Sentences, settings: FineTuningSettings) -> OldPairs:
    """Return the pairs to replay and the pairs to keep; see the top of this module."""
    validation = sentences.validation_pairs
    keep = _unseen(collector.read_keep(settings.keep), sentences) if settings.keep else ()
    exclude = {sentence_key(pair.source) for pair in chain(validation, keep)}
    replay, origin, translated = _collect_replay(collector, sentences, settings, exclude)
    old_pairs = OldPairs(tuple(replay), keep, origin, ", ".join(_file_names(settings.keep)))
    if keep:
        return old_pairs
    if settings.replay or (replay and not translated):
        hold_out = choose_hold_out(replay, count=min(MAX_PAIRS, len(replay) // 10))
        if held_out := _without_sources_of(sentences, [pair for pair in replay if pair in hold_out]):
            return replace(
                old_pairs,
                replay=tuple(pair for pair in replay if pair not in hold_out),
                keep=tuple(held_out),
                keep_origin=origin,
                keeps_translations=translated,
            )
    sources = [pair.source for pair in evenly_spaced(validation, TRANSLATED_KEEP_PAIRS)]
    return replace(
        old_pairs,
        keep=tuple(collector.translate(sources, set(), TRANSLATED_KEEP_PAIRS)),
        keep_origin="the start model's translations of the validation set",
        keeps_translations=True,
    )


def _unseen(keep: Sequence[Pair], sentences: Sentences) -> tuple[Pair, ...]:
    """Return the pairs to keep whose sources are not trained on: only these show what is forgotten."""
    unseen = tuple(_without_sources_of(sentences, keep))
    if not unseen:
        raise DataError(
            f"Every source of --keep is also among the new pairs, so they cannot show what is kept. "
            f"Received: {len(keep):,} pairs. Name pairs that are not trained on."
        )
    return unseen


def _without_sources_of(sentences: Sentences, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose source is not the source of a training pair."""
    keys = {sentence_key(pair.source) for pair in pairs}
    training_keys = keys & {sentence_key(pair.source) for pair in sentences.pairs()} if keys else set()
    return [pair for pair in pairs if sentence_key(pair.source) not in training_keys]


def _collect_replay(
    collector: Collector, sentences: Sentences, settings: FineTuningSettings, exclude: set[str]
) -> tuple[list[Pair], str, bool]:
    """Return the pairs to train on again, their origin, and whether the start model translated them."""
    if settings.replay:
        pairs, translated = collector.read_replay(settings.replay, exclude)
        names = ", ".join(_file_names(settings.replay))
        return pairs, f"{names}, translated by the start model" if translated else names, translated
    if not settings.replay_share:
        return [], "", False
    if pairs := collector.pairs_of_run(exclude):
        return pairs, "pairs that the start model was trained on", False
    pairs = collector.translate((pair.source for pair in sentences.pairs()), exclude)
    return pairs, "the new sources, translated by the start model", True


def _cleaned(corpora: Sequence[Corpus], exclude: set[str]) -> list[Pair]:
    cleaner = Cleaner()
    clean = [pair for corpus in corpora for pair in cleaner.clean(corpus)]
    remaining = [pair for pair in clean if sentence_key(pair.source) not in exclude]
    return _without_alignments(evenly_spaced(remaining, MAX_REPLAY_PAIRS))


def _without_alignments(pairs: Iterable[Pair]) -> list[Pair]:
    """Return pairs of only source and target: a run folder stores nothing else of old pairs."""
    return [Pair(pair.source, pair.target) for pair in pairs]


def _file_names(paths: Sequence[str]) -> list[str]:
    """Return the names without folders, so that a published model does not show paths of its author."""
    return [path.replace("\\", "/").rpartition("/")[2] for path in paths]
