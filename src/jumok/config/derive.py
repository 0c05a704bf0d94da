"""Settings from the corpus and the machine, each with its reason.

A person sets what they care about; everything else comes from here. What was set by name is never touched. It
happens in three moves, because some answers need the encoded corpus and a measured pace:

    derive(asked, facts, machine)        the model, the pieces, the optimiser        before anything is learnt
    derive_search(recipe, asked, store)  the longest translation                     once pairs are encoded
    derive_pace(recipe, asked, pace)     steps, warm-up, how often to validate       once the pace is known

Every number that was chosen stands in the tables below; docs/log.md has the runs that some were tuned by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.decoding import SearchPlan
from jumok.processes import available_cores
from jumok.recipe import DecoderOnlySettings, EncoderOnlySettings, Recipe, RecurrentSettings, make_recipe

if TYPE_CHECKING:
    from jumok.corpus import PairStore
    from jumok.recipe import TrainingSettings

__all__ = [
    "CorpusFacts",
    "MachineFacts",
    "Pace",
    "Reason",
    "derive",
    "derive_pace",
    "derive_search",
    "step_limit",
    "this_machine",
]

# encoder layers, decoder layers, width, feed-forward, heads; tiny: Wu et al. 2021, base and big: Vaswani 2017
SIZES = {
    "tiny": (4, 4, 128, 256, 4),
    "small": (4, 4, 256, 1024, 4),
    "base": (6, 6, 512, 2048, 8),
    "big": (6, 6, 1024, 4096, 16),
}
# encoder layers, decoder layers, width, embedding of the recurrent family
SIZES_RECURRENT = {
    "tiny": (1, 1, 256, 256),
    "small": (1, 1, 512, 256),
    "base": (2, 2, 1024, 512),
    "big": (4, 4, 1024, 1024),
}
# the largest corpus, in pairs, for which a size is picked; beyond the last: the largest size of the row
SIZES_ON_CPU = (("tiny", 100_000), ("small", 2_000_000), ("base", None))

PIECES_AT_30K, PIECES_GROWTH, MOST_PIECES, FEWEST_PIECES = 8000, 0.25, 32_000, 512
DROPOUT_SMALL, DROPOUT_LARGE = (50_000, 0.3), (1_000_000, 0.1)
# A repetitive corpus: what counts as one, and what it is given.
REPETITIVE_USES, REPETITIVE_WORDS = 150, 5_000
DROPOUT_REPETITIVE, PIECES_REPETITIVE, SMOOTHING_REPETITIVE, LAYERS_REPETITIVE = 0.0, 0.7, 0.02, 2
# For batches of 4,096 pieces; smaller ones take a lower rate.
RATE_AT_128, RATE_FALL, RATE_BY_BATCH = 4.5e-3, 1.2, 0.3
# Adam's β₂ remembers as many pieces whatever the batch: the paper's .98 for updates of 4,096 or more, nearer
# to 1 for smaller ones, in which a rare word is seldom met.
FORGOTTEN_AT_4096 = 0.02
BATCHES_AN_EPOCH, FEWEST_BATCH_TOKENS, MOST_BATCH_TOKENS = 100, 512, 4096
# Few minutes are better spent on many small updates than on few large ones.
UPDATES_WORTH_HAVING, TOKENS_A_SECOND = 4000, 10_000
WARMUP_SHARE, LONGEST_WARMUP = 0.1, 2000
VALIDATIONS, VALIDATION_SHARE = 12, 0.05
AVERAGED = 5
EXTRA_PIECES = SearchPlan().extra
LONGER_THAN_SEEN, MOST_TIMES_LONGER = 1.25, 3.0
MINUTES_USED = 0.97


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """What is known of the training pairs before they are cut into pieces."""

    pairs: int
    source_words: int
    target_words: int
    distinct_source_words: int
    distinct_target_words: int
    distinct_characters: int
    source_language: str = ""
    target_language: str = ""
    plain: bool = False  # text without a source

    @property
    def noun(self) -> str:
        """What a person calls the things that are counted."""
        return "sentences" if self.plain else "pairs"

    @property
    def uses(self) -> float:
        """How often a word is used, on the side with fewer distinct words: the other may inflect them."""
        sides = [
            (self.distinct_source_words, self.source_words),
            (self.distinct_target_words, self.target_words),
        ]
        distinct, words = sides[1] if self.plain else min(sides)
        return words / max(distinct, 1)

    @property
    def repetitive(self) -> bool:
        """Few words, each used very often: a generated corpus, a controlled language, a phrase book."""
        sides = (self.distinct_source_words, self.distinct_target_words)
        fewest = sides[1] if self.plain else min(sides)
        return self.uses > REPETITIVE_USES and fewest < REPETITIVE_WORDS


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What the model is trained on."""

    cores: int


@dataclass(frozen=True, slots=True)
class Pace:
    """What a short measurement found. Times are in seconds; `spent` is what preparation has used already."""

    batches_per_epoch: int
    update: float
    validation: float
    finish: float = 0.0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a setting has its value, in half a sentence that a person can argue with."""

    setting: str
    value: Any
    why: str


def this_machine() -> MachineFacts:
    """The machine that this process runs on."""
    return MachineFacts(cores=available_cores())


def derive(asked: Recipe, facts: CorpusFacts, machine: MachineFacts) -> tuple[Recipe, list[Reason]]:
    """The recipe with every open setting filled in, and why. `derive_pace` settles what depends on time."""
    reasons = [
        *_languages(facts),
        *_task(asked, facts),
        *_model(asked, facts, machine),
        *_text(facts),
    ]
    recipe, kept = _fill(asked, asked, reasons)
    recipe, more = _fill(recipe, asked, [*_dropout(facts), *_training(asked, recipe, facts)])
    return recipe, kept + more


def derive_search(recipe: Recipe, asked: Recipe, store: PairStore) -> tuple[Recipe, list[Reason]]:
    """How long a translation may become: somewhat longer than any that was seen, for its source.

    A search that has lost its way repeats itself until it is stopped; the sooner, the better. What learns
    from plain text has no source to be longer than.
    """
    if recipe.model.task != "translate":
        return recipe, []
    source, target = store.source_lengths - 1, store.target_lengths - 2  # without marks
    seen = float(((target - EXTRA_PIECES) / source.clip(min=1)).max(initial=0.0))
    usual = float(target.sum() / max(source.sum(), 1))  # a source may come that is longer than any of these
    times = max(seen, usual)
    longest = round(min(max(LONGER_THAN_SEEN * times, 1.0), MOST_TIMES_LONGER), 2)
    why = (
        f"targets have {usual:.2f} times the pieces of their sources; {EXTRA_PIECES} more are allowed to each"
    )
    return _fill(recipe, asked, [Reason("search.longest", longest, why)])


def derive_pace(recipe: Recipe, asked: Recipe, pace: Pace) -> tuple[Recipe, int | None, list[Reason]]:
    """The number of steps (None: no end is planned), then the warm-up and the validations that go with it.

    The steps are a plan and no setting: the recipe keeps the minutes or epochs that were asked for.
    """
    limits: list[tuple[int, str]] = []
    most = step_limit(recipe.training, pace.batches_per_epoch)
    if most is not None:
        limits.append((most, "as many as were asked for, or as many epochs"))
    if recipe.training.minutes is not None:
        limits.append(_steps_in(recipe, asked, pace))
    steps, why = min(limits) if limits else (None, "")
    reasons = [Reason("training.steps", steps, why)] if steps != asked.training.steps else []
    updates = pace.batches_per_epoch / recipe.training.accumulate
    recipe, more = _fill(recipe, asked, [_warmup(steps), _validate_every(steps, pace, updates)])
    return recipe, steps, reasons + more


def step_limit(training: TrainingSettings, batches_per_epoch: int) -> int | None:
    """The most steps that the settings allow by number, whatever the time."""
    limits = [] if training.steps is None else [training.steps]
    if training.epochs is not None:
        limits.append(math.ceil(training.epochs * batches_per_epoch / training.accumulate))
    return min(limits) if limits else None


def _fill(recipe: Recipe, asked: Recipe, reasons: list[Reason]) -> tuple[Recipe, list[Reason]]:
    """Put derived values where the person set nothing; the reasons of those that were used."""
    nested = recipe.model_dump(exclude_unset=True)
    used = []
    for reason in reasons:
        section, _, name = reason.setting.partition(".")
        if name not in getattr(asked, section).model_fields_set or reason.setting == "model.size":
            nested.setdefault(section, {})[name] = reason.value
            used.append(reason)
    return make_recipe(nested), used


def _languages(facts: CorpusFacts) -> list[Reason]:
    sides = {"source": facts.source_language, "target": facts.target_language}
    if facts.plain:
        del sides["source"]
    return [Reason(f"languages.{side}", code, "the corpus says so") for side, code in sides.items()]


def _task(asked: Recipe, facts: CorpusFacts) -> list[Reason]:
    """What plain text is learnt for, and what goes with it."""
    if not facts.plain:
        return []
    reasons = [
        Reason("training.stop_on", "loss", "a text has no translation to be scored"),
        Reason("training.label_smoothing", 0.0, "the probabilities themselves are what is wanted"),
    ]
    if isinstance(asked.model, DecoderOnlySettings):
        return [Reason("model.task", "language-model", "the corpus is plain text"), *reasons]
    return reasons


def _model(asked: Recipe, facts: CorpusFacts, machine: MachineFacts) -> list[Reason]:
    """The size, and the widths and depths that follow from it."""
    size, why = _size(asked, facts, machine)
    if isinstance(asked.model, RecurrentSettings):
        names, values = ("encoder_layers", "decoder_layers", "width", "embedding"), SIZES_RECURRENT[size]
        dials = [Reason(f"model.{n}", v, f"size {size}") for n, v in zip(names, values, strict=True)]
        return [Reason("model.size", size, why), *dials]
    encoder_layers, decoder_layers, width, feed_forward, heads = SIZES[size]
    layers = f"size {size}"
    if facts.repetitive and asked.model.size == "auto":
        encoder_layers = decoder_layers = LAYERS_REPETITIVE
        layers = "few words, each used very often: a shallow model learns them sooner"
    width = asked.model.width if "width" in asked.model.model_fields_set else width
    heads = next(count for count in range(heads, 0, -1) if width % count == 0)
    depth = {"encoder_layers": encoder_layers, "decoder_layers": decoder_layers}
    if isinstance(asked.model, DecoderOnlySettings):
        depth = {"layers": encoder_layers + decoder_layers}
    elif isinstance(asked.model, EncoderOnlySettings):
        depth = {"layers": encoder_layers}
    widths = {"width": width, "feed_forward": feed_forward, "heads": heads}
    return [
        Reason("model.size", size, why),
        *(Reason(f"model.{name}", value, layers) for name, value in depth.items()),
        *(Reason(f"model.{name}", value, f"size {size}") for name, value in widths.items()),
    ]


def _size(asked: Recipe, facts: CorpusFacts, machine: MachineFacts) -> tuple[str, str]:
    if asked.model.size != "auto":
        return asked.model.size, "as asked"
    if facts.repetitive:
        return "tiny", f"few words, each used about {facts.uses:.0f} times"
    size = next(size for size, most in SIZES_ON_CPU if most is None or facts.pairs <= most)
    cores = "1 CPU core" if machine.cores == 1 else f"{machine.cores} CPU cores"
    return size, f"{facts.pairs:,} {facts.noun}, to be trained on {cores}"


def _text(facts: CorpusFacts) -> list[Reason]:
    """8,000 pieces for 30,000 pairs, growing with the fourth root; no more than there are words."""
    words = facts.distinct_source_words + facts.distinct_target_words
    grown = PIECES_AT_30K * (max(facts.pairs, 1) / 30_000) ** PIECES_GROWTH
    floor = max(FEWEST_PIECES, 260 + 2 * facts.distinct_characters)  # marks, bytes and every character
    if facts.repetitive:
        pieces, why = max(words * PIECES_REPETITIVE, floor), f"few words ({words:,}), each used very often"
    elif words < grown:
        pieces, why = max(words, floor), f"the corpus has only {words:,} distinct words"
    else:
        pieces, why = max(grown, floor), f"{facts.pairs:,} {facts.noun} with {words:,} distinct words"
    return [Reason("text.pieces", _multiple_of_8(min(pieces, MOST_PIECES)), why)]


def _multiple_of_8(value: float) -> int:
    return 8 * max(math.floor(value / 8), 8)


def _dropout(facts: CorpusFacts) -> list[Reason]:
    if facts.repetitive:
        why = f"few words, each used about {facts.uses:.0f} times: little to memorise"
        return [Reason("model.dropout", DROPOUT_REPETITIVE, why)]
    (small, high), (large, low) = DROPOUT_SMALL, DROPOUT_LARGE
    way = math.log(max(facts.pairs, 1) / small) / math.log(large / small)
    dropout = high + (low - high) * min(max(way, 0.0), 1.0)
    why = f"{facts.pairs:,} {facts.noun}: the fewer, the more dropout"
    return [Reason("model.dropout", round(dropout, 2), why)]


def _training(asked: Recipe, recipe: Recipe, facts: CorpusFacts) -> list[Reason]:
    width, training = recipe.model.width, asked.training
    batch, why = _batch_tokens(asked, facts)
    batch = training.batch_tokens if "batch_tokens" in training.model_fields_set else batch
    rate = RATE_AT_128 * min(128 / width, 1) ** RATE_FALL * min(batch / 4096, 1) ** RATE_BY_BATCH
    pieces = batch * training.accumulate
    beta = round(1 - FORGOTTEN_AT_4096 * min(pieces / 4096, 1), 6)
    reasons = [
        Reason("training.batch_tokens", batch, why),
        Reason("training.learning_rate", float(f"{rate:.2g}"), f"width {width}, {batch:,} pieces a batch"),
        Reason("training.beta2", beta, f"{pieces:,} pieces an update: fewer are remembered longer"),
    ]
    if facts.repetitive and not facts.plain:
        smooth = "few words, each used very often: hardly anything to be unsure of"
        reasons.append(Reason("training.label_smoothing", SMOOTHING_REPETITIVE, smooth))
    if training.steps is None and training.epochs is None and training.minutes is None:
        no_end = "no limit was set: training stops when the validation score does"
        return [
            *reasons,
            Reason("training.schedule", "inverse-sqrt", no_end),
            Reason("training.average", AVERAGED, no_end),
        ]
    end = "the end is known, and a rate that falls to zero there does best"
    return [
        *reasons,
        Reason("training.schedule", "cosine", end),
        Reason("training.patience", 0, "the end is known, and most is gained just before it"),
    ]


def _batch_tokens(asked: Recipe, facts: CorpusFacts) -> tuple[int, str]:
    """Small enough for many updates, in an epoch and in the time that there is."""
    pieces = 1.3 * facts.target_words + facts.pairs  # a word is about 1.3 pieces; each pair has its </s>
    batch, why = pieces / BATCHES_AN_EPOCH, f"about {pieces:,.0f} target pieces"
    if asked.training.minutes is not None:
        room = asked.training.minutes * 60 * TOKENS_A_SECOND / UPDATES_WORTH_HAVING
        if room < min(batch, MOST_BATCH_TOKENS):
            batch, why = room, f"{asked.training.minutes:g} minutes should hold some thousand updates"
    return _multiple_of_8(min(max(batch, FEWEST_BATCH_TOKENS), MOST_BATCH_TOKENS)), why


def _steps_in(recipe: Recipe, asked: Recipe, pace: Pace) -> tuple[int, str]:
    """How many updates fit, if validation takes its share of the time as well."""
    minutes = asked.training.minutes or 0.0
    left = 60 * minutes * MINUTES_USED - pace.spent - pace.finish
    if "validate_every" in asked.training.model_fields_set:
        update = pace.update + pace.validation / recipe.training.validate_every
        steps = left / update
    else:
        validations = 1 + min(VALIDATIONS, int(left * VALIDATION_SHARE / max(pace.validation, 1e-9)))
        steps = (left - validations * pace.validation) / pace.update
    return max(int(steps), 1), f"{minutes:g} minutes at {pace.update * 1000:.0f} ms an update, as measured"


def _warmup(steps: int | None) -> Reason:
    if steps is None:
        return Reason("training.warmup", LONGEST_WARMUP, "no end is planned")
    warmup = min(math.ceil(WARMUP_SHARE * steps), LONGEST_WARMUP)
    return Reason("training.warmup", warmup, f"a tenth of {steps:,} steps, at most {LONGEST_WARMUP:,}")


def _validate_every(steps: int | None, pace: Pace, updates_per_epoch: float) -> Reason:
    """Often enough to see what happens, rarely enough to cost at most 5 % of the time."""
    wished = steps / VALIDATIONS if steps is not None else max(updates_per_epoch, 100)
    cheapest = pace.validation * (1 - VALIDATION_SHARE) / (VALIDATION_SHARE * max(pace.update, 1e-9))
    every = max(math.ceil(wished), math.ceil(cheapest), 1)
    every = min(every, steps) if steps is not None else every
    why = f"a validation costs about {pace.validation / max(pace.update, 1e-9):.0f} updates"
    return Reason("training.validate_every", every, why)
