"""Settings derived from the corpus and the machine, each with its reason.

A person sets some settings (`Overrides`); this module derives the others, and `resolve.py` merges both.
There are three calls, because some settings need the encoded corpus or measured costs:

    derive(overrides, facts, machine)   model, vocabulary, optimiser         before anything is learnt
    derive_search(resolved, lengths)    maximum length of a translation      after pairs are encoded
    derive_schedule(resolved, costs)    steps, warm-up, validation interval  after updates are timed

The numbers that were chosen by hand are in the tables below, except those that a comment or a docstring
explains. Some of them were tuned on runs that docs/log.md describes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from jumok.config.recipe import EXTRA_TOKENS
from jumok.config.resolve import DerivedSetting, resolve
from jumok.system.processes import available_cores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jumok.config.recipe import Recipe, TrainingSettings
    from jumok.config.resolve import Overrides, Resolved

# encoder layers, decoder layers, width, feed-forward, heads; tiny: Wu et al. 2021, base and big: Vaswani 2017
SIZES = {
    "tiny": (4, 4, 128, 256, 4),
    "small": (4, 4, 256, 1024, 4),
    "base": (6, 6, 512, 2048, 8),
    "big": (6, 6, 1024, 4096, 16),
}
# encoder layers, decoder layers, width, embedding width
RECURRENT_SIZES = {
    "tiny": (1, 1, 256, 256),
    "small": (1, 1, 512, 256),
    "base": (2, 2, 1024, 512),
    "big": (4, 4, 1024, 1024),
}
# (size, maximum number of pairs for which this size is chosen). The sizes fit training on a CPU. A run on an
# accelerator gets the same size.
CPU_SIZES = (("tiny", 100_000), ("small", 2_000_000), ("base", None))

VOCAB_SIZE_AT_30K_PAIRS, VOCAB_GROWTH_EXPONENT, MIN_VOCAB_SIZE, MAX_VOCAB_SIZE = 8000, 0.25, 512, 32_000
# (pairs, dropout) at both ends; logarithmic in between
DROPOUT_SMALL_CORPUS, DROPOUT_LARGE_CORPUS = (50_000, 0.3), (1_000_000, 0.1)
# A repetitive corpus: how it is recognised, and its settings.
REPETITIVE_MIN_USES_PER_WORD, REPETITIVE_MAX_DISTINCT_WORDS = 150, 5_000
REPETITIVE_DROPOUT, REPETITIVE_TOKENS_PER_WORD, REPETITIVE_SMOOTHING, REPETITIVE_LAYERS = 0.0, 0.7, 0.02, 2
# The learning rate for batches of 4,096 tokens and a width of 128. The rate is lower for larger widths and
# for smaller batches.
LEARNING_RATE_AT_128, LEARNING_RATE_WIDTH_EXPONENT, LEARNING_RATE_BATCH_EXPONENT = 4.5e-3, 1.2, 0.3
# 1 - β₂ of Adam for updates of 4,096 tokens or more (the paper's β₂ is 0.98). For smaller updates, 1 - β₂ is
# proportional to the tokens per update. Adam's average of squared gradients then covers the same number of
# tokens, so that it still contains gradients of rare words.
ADAM_DECAY_AT_4096 = 0.02
WANTED_BATCHES_PER_EPOCH, MIN_BATCH_TOKENS, MAX_BATCH_TOKENS = 100, 512, 4096
# A few minutes are better spent on many small updates than on few large ones.
WANTED_UPDATES, ASSUMED_TOKENS_PER_SECOND = 4000, 10_000
WARMUP_SHARE, MAX_WARMUP_STEPS = 0.1, 2000
# Validations per run, if they take no more than this share of its time.
WANTED_VALIDATIONS, VALIDATION_SHARE = 12, 0.05
AVERAGED_CHECKPOINTS = 5
LENGTH_RATIO_MARGIN, MIN_LENGTH_RATIO, MAX_LENGTH_RATIO = 1.25, 1.0, 3.0
USED_SHARE_OF_MINUTES = 0.97  # the rest is a reserve
# Pictures: their side in pixels, the rows of patches they are cut into, and the minimum side of a patch.
MIN_PICTURE_SIDE, MAX_PICTURE_SIDE, PATCH_ROWS, MIN_PATCH_SIDE = 8, 64, 8, 4
BATCH_PICTURES, PICTURE_LEARNING_RATE_FACTOR, PICTURE_DROPOUT = 32, 0.5, 0.1
# With more decoder layers, a word also depends on the picture through the states of earlier words. The
# attention of the word does not show this second way.
CAPTION_DECODER_LAYERS = 1
CAPTION_DEPTH_REASON = "a word then depends on the picture only through its own attention"


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """Facts about the training pairs before they are tokenized.

    The words of a large corpus are counted in a sample. The numbers of words are extrapolated to all training
    pairs; the numbers of distinct words and characters are those of the sample.
    """

    pairs: int
    source_words: int
    target_words: int
    distinct_source_words: int
    distinct_target_words: int
    distinct_characters: int
    source_language: str = ""
    target_language: str = ""
    plain: bool = False  # text without a source
    picture_side: int = 0  # pixels of the longer side of a typical picture; 0: the source is text
    grey_pictures: bool = False

    @property
    def noun(self) -> str:
        """The noun for `pairs` in messages."""
        return "pictures" if self.picture_side else "sentences" if self.plain else "pairs"

    @property
    def only_target(self) -> bool:
        """Whether only the target is text: the source is a picture, or there is none."""
        return self.plain or self.picture_side > 0

    @property
    def uses_per_word(self) -> float:
        """How often a word occurs on average, on the side with fewer distinct words (less inflection)."""
        sides = [
            (self.distinct_source_words, self.source_words),
            (self.distinct_target_words, self.target_words),
        ]
        distinct, words = sides[1] if self.only_target else min(sides)
        return words / max(distinct, 1)

    @property
    def is_repetitive(self) -> bool:
        """Whether the corpus has few words, each used very often.

        A generated corpus, a controlled language and a phrase book are repetitive.
        """
        sides = (self.distinct_source_words, self.distinct_target_words)
        distinct = sides[1] if self.only_target else min(sides)
        return self.uses_per_word > REPETITIVE_MIN_USES_PER_WORD and distinct < REPETITIVE_MAX_DISTINCT_WORDS


class TokenLengths(Protocol):
    """Tokens per sentence of the encoded pairs, special tokens included."""

    @property
    def source_lengths(self) -> NDArray[np.integer[Any]]: ...

    @property
    def target_lengths(self) -> NDArray[np.integer[Any]]: ...


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The machine that trains the model."""

    cores: int


@dataclass(frozen=True, slots=True)
class TrainingCosts:
    """The costs of a run: of one update, one validation, the finish, and the preparation so far.

    The costs of a run with a time limit are measured in seconds. The costs of a run without a time limit are
    estimated. Their unit is then the cost of one update, so `update_seconds` is 1.
    """

    batches_per_epoch: int
    update_seconds: float
    validation_seconds: float
    finish_seconds: float = 0.0
    preparation_seconds: float = 0.0


def this_machine() -> MachineFacts:
    """Return the facts of the machine that this process runs on."""
    return MachineFacts(cores=available_cores())


def derive(overrides: Overrides, facts: CorpusFacts, machine: MachineFacts) -> Resolved:
    """Derive settings from corpus and machine. `derive_search` and `derive_schedule` derive the others."""
    classifies = _classifies(overrides, facts)
    resolved = resolve(
        overrides,
        [
            *_languages(facts),
            *_source(overrides, facts),
            *_task(overrides, facts),
            *_model(overrides, facts, machine),
            *([] if classifies else _text(facts)),  # classes are their own vocabulary
        ],
    )
    dropout = _picture_dropout() if classifies else _dropout(facts)
    return resolved.with_derived([*dropout, *_training(resolved, facts)])


def derive_search(resolved: Resolved, lengths: TokenLengths, *, max_tokens: int | None = None) -> Resolved:
    """Derive the maximum number of target tokens per source token, for models that translate.

    The maximum is 1.25 times the highest ratio of the pairs, but at least 1 and, for text, at most 3. The
    ratio of a pair does not count the `EXTRA_TOKENS` that a search allows in addition. The maximum should be
    low, because a search that goes wrong repeats tokens up to the maximum. `max_tokens` is the length of the
    longest translation for which the model has positions; None means that there is no limit.
    """
    recipe = resolved.recipe
    if recipe.model.task != "translate":
        return resolved
    pictures = recipe.source.kind == "pictures"
    # Without special tokens: a text ends with </s>, a picture does not.
    source, target = lengths.source_lengths - (0 if pictures else 1), lengths.target_lengths - 2
    maximum = float(((target - EXTRA_TOKENS) / source.clip(min=1)).max(initial=0.0))
    # If all pairs are short, `maximum` is too low, because EXTRA_TOKENS were subtracted. Then `mean` decides.
    mean = float(target.sum() / max(source.sum(), 1))
    ratio = LENGTH_RATIO_MARGIN * max(maximum, mean)
    # All pictures have the same number of patches, so their ratio needs no upper bound.
    upper = math.inf if pictures else MAX_LENGTH_RATIO
    ratio = round(min(max(ratio, MIN_LENGTH_RATIO), upper), 2)
    why = f"targets have {mean:.2f} times the tokens of their sources; each may have {EXTRA_TOKENS} more"
    if max_tokens is not None:
        source_tokens = recipe.source.num_patches or recipe.training.max_sentence_tokens
        max_ratio = math.floor(100 * (max_tokens - EXTRA_TOKENS) / source_tokens) / 100
        if max_ratio < ratio:
            ratio, why = max_ratio, f"{why}; the model has positions for {max_tokens}"
    return resolved.with_derived([DerivedSetting("search.max_length_ratio", ratio, why)])


def derive_schedule(resolved: Resolved, costs: TrainingCosts) -> tuple[Resolved, int | None]:
    """Derive warm-up and validation interval; also return the planned number of steps, None for no end.

    The planned number of steps is not written to the recipe, which keeps the minutes or epochs that the
    person has set. Only the reasons name the planned number.
    """
    limits: list[tuple[int, str]] = []
    training = resolved.recipe.training
    max_steps = step_limit(training, costs.batches_per_epoch)
    if max_steps is not None:
        limits.append((max_steps, "the steps or epochs that were set"))
    if training.minutes is not None:
        limits.append(_steps_in_time(resolved, training.minutes, costs))
    steps, why = min(limits) if limits else (None, "")
    limit_names = [name for name in ("steps", "epochs", "minutes") if getattr(training, name) is not None]
    if len(limit_names) > 1:
        why = f"the first limit that is reached, of {', '.join(limit_names)}"
    has_reason = steps != training.steps or len(limit_names) > 1
    steps_reason = [DerivedSetting("training.steps", steps, why)] if has_reason else []
    updates_per_epoch = costs.batches_per_epoch / training.accumulate
    derived = [_warmup_steps(steps), _validate_every(steps, costs, updates_per_epoch)]
    return resolved.with_reasons(steps_reason).with_derived(derived), steps


def step_limit(training: TrainingSettings, batches_per_epoch: int) -> int | None:
    """Return the maximum number of steps by `steps` and `epochs`; None if neither is set."""
    limits = [] if training.steps is None else [training.steps]
    if training.epochs is not None:
        limits.append(math.ceil(training.epochs * batches_per_epoch / training.accumulate))
    return min(limits) if limits else None


def _languages(facts: CorpusFacts) -> list[DerivedSetting]:
    sides = {"source": facts.source_language, "target": facts.target_language}
    if facts.only_target:
        del sides["source"]
    if facts.picture_side and not facts.target_language:  # classes have no language
        return []
    return [
        DerivedSetting(f"languages.{side}", code, "named by the corpus" if code else "the corpus names none")
        for side, code in sides.items()
    ]


def _source(overrides: Overrides, facts: CorpusFacts) -> list[DerivedSetting]:
    """Return the settings of pictures; none for a source of text.

    Pictures are scaled to about their typical size, but at most to 64 pixels per side, and cut into about
    eight rows of patches. Small pictures are cut into fewer rows.
    """
    if not facts.picture_side:
        return []
    typical_size = min(max(facts.picture_side, MIN_PICTURE_SIDE), MAX_PICTURE_SIDE)
    size = overrides.get("source.size", typical_size)
    patch = overrides.get("source.patch_size", max(round(size / PATCH_ROWS), MIN_PATCH_SIDE))
    if "source.size" not in overrides:
        size = patch * max(round(size / patch), 1)
    elif "source.patch_size" not in overrides:
        patch = min((n for n in range(1, size + 1) if size % n == 0), key=lambda side: abs(side - patch))
    typical = f"a typical picture has {facts.picture_side:,} pixels on its longer side"
    grid = f"{size // patch} × {size // patch} patches"
    colour = (
        ("grey", "the pictures are grey") if facts.grey_pictures else ("rgb", "the pictures have colours")
    )
    return [
        DerivedSetting("source.kind", "pictures", "the corpus has pictures"),
        DerivedSetting("source.size", size, typical),
        DerivedSetting("source.patch_size", patch, grid),
        DerivedSetting("source.colour", *colour),
        DerivedSetting("text.shared", False, "only the target is text"),
    ]


def _classifies(overrides: Overrides, facts: CorpusFacts) -> bool:
    return facts.picture_side > 0 and overrides.family == "encoder-only"


def _task(overrides: Overrides, facts: CorpusFacts) -> list[DerivedSetting]:
    """Return the task of a model of plain text or of a classifier, and the settings that follow from it."""
    if _classifies(overrides, facts):
        return [
            DerivedSetting("model.task", "classify", "the corpus has pictures"),
            DerivedSetting("training.stop_on", "accuracy", "a classifier has one answer per picture"),
        ]
    if not facts.plain:
        return []
    derived = [
        DerivedSetting("training.stop_on", "loss", "plain text has no translations to score"),
        DerivedSetting("training.label_smoothing", 0.0, "the probabilities themselves are the result"),
    ]
    if overrides.family == "decoder-only":
        return [DerivedSetting("model.task", "language-model", "the corpus is plain text"), *derived]
    return derived


def _model(overrides: Overrides, facts: CorpusFacts, machine: MachineFacts) -> list[DerivedSetting]:
    """Return the size, and the widths and depths that follow from it."""
    size, why = _size(overrides, facts, machine)
    by_size = f"size {size}"
    if overrides.family == "recurrent":
        names, values = ("encoder_layers", "decoder_layers", "width", "embedding"), RECURRENT_SIZES[size]
        widths_and_depths = [
            DerivedSetting(f"model.{n}", v, by_size) for n, v in zip(names, values, strict=True)
        ]
        return [DerivedSetting("model.size", size, why), *widths_and_depths]
    encoder_layers, decoder_layers, width, feed_forward, heads = SIZES[size]
    depth_reason = by_size
    if facts.is_repetitive and "model.size" not in overrides:
        encoder_layers = decoder_layers = REPETITIVE_LAYERS
        depth_reason = "few words, each used very often: a shallow model learns them sooner"
    width = overrides.get("model.width", width)
    heads = next(count for count in range(heads, 0, -1) if width % count == 0)
    depth = {
        "encoder_layers": (encoder_layers, depth_reason),
        "decoder_layers": (decoder_layers, depth_reason),
    }
    if overrides.family == "decoder-only":
        depth = {"layers": (encoder_layers + decoder_layers, depth_reason)}
    elif overrides.family == "encoder-only":
        depth = {"layers": (encoder_layers, depth_reason)}
    elif facts.picture_side:
        depth["decoder_layers"] = (CAPTION_DECODER_LAYERS, CAPTION_DEPTH_REASON)
    widths = {"width": width, "feed_forward": feed_forward, "heads": heads}
    return [
        DerivedSetting("model.size", size, why),
        *(DerivedSetting(f"model.{name}", *derived) for name, derived in depth.items()),
        *(DerivedSetting(f"model.{name}", value, by_size) for name, value in widths.items()),
    ]


def _size(overrides: Overrides, facts: CorpusFacts, machine: MachineFacts) -> tuple[str, str]:
    if "model.size" in overrides:
        return overrides["model.size"], "as set"
    if facts.is_repetitive:
        return "tiny", f"few words, each used about {facts.uses_per_word:.0f} times"
    size = next(size for size, max_pairs in CPU_SIZES if max_pairs is None or facts.pairs <= max_pairs)
    cores = "1 CPU core" if machine.cores == 1 else f"{machine.cores} CPU cores"
    return size, f"{facts.pairs:,} {facts.noun}, on a machine with {cores}"


def _text(facts: CorpusFacts) -> list[DerivedSetting]:
    """Return the vocabulary size: 8,000 for 30,000 pairs, growing with the fourth root of the pairs.

    If the corpus has fewer distinct words than this number, the size is the number of distinct words. In a
    repetitive corpus, the size is a share of the number of distinct words. The size is at least enough for
    special tokens, bytes and characters, and at most `MAX_VOCAB_SIZE`. It is rounded down to a multiple of 8.
    """
    words = facts.distinct_source_words + facts.distinct_target_words
    by_pairs = VOCAB_SIZE_AT_30K_PAIRS * (max(facts.pairs, 1) / 30_000) ** VOCAB_GROWTH_EXPONENT
    special_and_bytes = 4 + 256
    minimum = max(MIN_VOCAB_SIZE, special_and_bytes + 2 * facts.distinct_characters)
    if facts.is_repetitive:
        size, why = words * REPETITIVE_TOKENS_PER_WORD, f"few words ({words:,}), each used very often"
    elif words < by_pairs:
        size, why = words, f"the corpus has only {words:,} distinct words"
    else:
        size, why = by_pairs, f"{facts.pairs:,} {facts.noun} with {words:,} distinct words"
    return [DerivedSetting("text.vocab_size", _multiple_of_8(min(max(size, minimum), MAX_VOCAB_SIZE)), why)]


def _multiple_of_8(value: float) -> int:
    """Return the value rounded down to a multiple of 8, but at least 64."""
    return 8 * max(math.floor(value / 8), 8)


def _dropout(facts: CorpusFacts) -> list[DerivedSetting]:
    if facts.is_repetitive:
        why = f"few words, each used about {facts.uses_per_word:.0f} times: little to memorise"
        return [DerivedSetting("model.dropout", REPETITIVE_DROPOUT, why)]
    (small, high), (large, low) = DROPOUT_SMALL_CORPUS, DROPOUT_LARGE_CORPUS
    fraction = math.log(max(facts.pairs, 1) / small) / math.log(large / small)
    dropout = high + (low - high) * min(max(fraction, 0.0), 1.0)
    why = f"{facts.pairs:,} {facts.noun}: smaller corpora get more dropout"
    return [DerivedSetting("model.dropout", round(dropout, 2), why)]


def _picture_dropout() -> list[DerivedSetting]:
    why = "the classes of pictures are few, but pictures differ in every pixel"
    return [DerivedSetting("model.dropout", PICTURE_DROPOUT, why)]


def _training(resolved: Resolved, facts: CorpusFacts) -> list[DerivedSetting]:
    recipe = resolved.recipe
    width, training = recipe.model.width, recipe.training
    batch, why = (_picture_batch if facts.picture_side else _batch_tokens)(recipe, facts)
    batch = resolved.overrides.get("training.batch_tokens", batch)
    rate = LEARNING_RATE_AT_128 * min(128 / width, 1) ** LEARNING_RATE_WIDTH_EXPONENT
    rate *= min(batch / 4096, 1) ** LEARNING_RATE_BATCH_EXPONENT
    rate *= PICTURE_LEARNING_RATE_FACTOR if facts.picture_side else 1
    tokens = batch * training.accumulate
    beta2 = round(1 - ADAM_DECAY_AT_4096 * min(tokens / 4096, 1), 6)
    derived = [
        DerivedSetting("training.batch_tokens", batch, why),
        DerivedSetting(
            "training.learning_rate", float(f"{rate:.2g}"), f"width {width}, {batch:,} tokens per batch"
        ),
        DerivedSetting(
            "training.beta2",
            beta2,
            f"{tokens:,} tokens per update: Adam averages over more updates if they are small",
        ),
    ]
    if facts.is_repetitive and not facts.plain:
        why_smoothing = "few words, each used very often: the next token is rarely in doubt"
        derived.append(DerivedSetting("training.label_smoothing", REPETITIVE_SMOOTHING, why_smoothing))
    if training.steps is None and training.epochs is None and training.minutes is None:
        why_open_end = "no limit is set: training stops when the validation score stops improving"
        return [
            *derived,
            DerivedSetting("training.schedule", "inverse-sqrt", why_open_end),
            DerivedSetting("training.average_checkpoints", AVERAGED_CHECKPOINTS, why_open_end),
        ]
    why_cosine = "the end is known, and a rate that falls to zero there works best"
    return [
        *derived,
        DerivedSetting("training.schedule", "cosine", why_cosine),
        DerivedSetting("training.patience", 0, "the end is known, and scores rise most just before it"),
    ]


def _batch_tokens(recipe: Recipe, facts: CorpusFacts) -> tuple[int, str]:
    """Return a batch size that allows many updates per epoch, and many in the minutes that were set."""
    tokens = 1.3 * facts.target_words + facts.pairs  # a word has about 1.3 tokens; each pair has its </s>
    batch, why = tokens / WANTED_BATCHES_PER_EPOCH, f"about {tokens:,.0f} target tokens"
    minutes = recipe.training.minutes
    if minutes is not None:
        affordable = minutes * 60 * ASSUMED_TOKENS_PER_SECOND / WANTED_UPDATES
        if affordable < min(batch, MAX_BATCH_TOKENS):
            batch, why = affordable, f"small enough for many updates in {minutes:g} minutes"
    return _multiple_of_8(min(max(batch, MIN_BATCH_TOKENS), MAX_BATCH_TOKENS)), why


def _picture_batch(recipe: Recipe, facts: CorpusFacts) -> tuple[int, str]:
    """Return a batch size in tokens that holds some dozens of pictures and their captions."""
    caption = 1.3 * facts.target_words / max(facts.pairs, 1) + 2  # with <s> and </s>
    # A batch may have twice as many source tokens as target tokens.
    batch = _multiple_of_8(BATCH_PICTURES * max(recipe.source.num_patches / 2, caption))
    return batch, f"about {BATCH_PICTURES} pictures per batch"


def _steps_in_time(resolved: Resolved, minutes: float, costs: TrainingCosts) -> tuple[int, str]:
    """Return how many updates fit into the minutes that are left after all other costs; at least one."""
    seconds_left = 60 * minutes * USED_SHARE_OF_MINUTES - costs.preparation_seconds - costs.finish_seconds
    interval = resolved.overrides.get("training.validate_every")
    if interval is not None:
        seconds_per_step = costs.update_seconds + costs.validation_seconds / interval
        steps = seconds_left / seconds_per_step
    else:
        affordable = int(seconds_left * VALIDATION_SHARE / max(costs.validation_seconds, 1e-9))
        validations = 1 + min(WANTED_VALIDATIONS, affordable)
        steps = (seconds_left - validations * costs.validation_seconds) / costs.update_seconds
    why = f"{minutes:g} minutes at {costs.update_seconds * 1000:.0f} ms per update, as measured"
    return max(int(steps), 1), why


def derive_warmup_steps(steps: int) -> int:
    """Return how many of these steps are a warm-up."""
    return min(math.ceil(WARMUP_SHARE * steps), MAX_WARMUP_STEPS)


def _warmup_steps(steps: int | None) -> DerivedSetting:
    if steps is None:
        return DerivedSetting("training.warmup_steps", MAX_WARMUP_STEPS, "no end is planned")
    warmup = derive_warmup_steps(steps)
    why = f"a tenth of {steps:,} step{'s' if steps > 1 else ''}, at most {MAX_WARMUP_STEPS:,}"
    return DerivedSetting("training.warmup_steps", warmup, why)


def _validate_every(steps: int | None, costs: TrainingCosts, updates_per_epoch: float) -> DerivedSetting:
    """Return the number of updates between validations.

    The interval is short enough to follow the progress, and so long that validations take at most 5 % of the
    time. A run that is shorter than this interval is validated once, at its end.
    """
    # In a run without an end, at least 100 updates even if an epoch has fewer.
    wanted_interval = steps / WANTED_VALIDATIONS if steps is not None else max(updates_per_epoch, 100)
    update, validation = max(costs.update_seconds, 1e-9), costs.validation_seconds
    min_affordable = validation * (1 - VALIDATION_SHARE) / (VALIDATION_SHARE * update)
    interval = max(math.ceil(wanted_interval), math.ceil(min_affordable), 1)
    interval = min(interval, steps) if steps is not None else interval
    why = f"a validation takes as long as {validation / update:.0f} updates"
    return DerivedSetting("training.validate_every", interval, why)
