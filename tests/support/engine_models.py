"""Small random models of every family and mechanism that the engine of live files runs."""

from __future__ import annotations

import functools
import random
from typing import Any

import torch

from jumok.config.recipe import (
    AttentionSettings,
    RecurrentSettings,
    SearchSettings,
    TextSettings,
    TransformerSettings,
)
from jumok.inference.building import build_for_tokenizers
from jumok.inference.translator import ModelFacts, Translator
from jumok.models.norms import BatchNorm
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_training import train_tokenizer
from jumok.types import ReadOut

SMALL: dict[str, Any] = {
    "width": 16,
    "heads": 4,
    "feed_forward": 24,
    "dropout": 0.0,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
WORDS = [
    "the",
    "a",
    "small",
    "old",
    "house",
    "tree",
    "river",
    "sees",
    "knows",
    "and",
    "near",
    "home",
    "나는",
    "집에",
    "간다",
    "학교",
    "먹다",
    "Ünïcode",
]


def _transformer(**settings: Any) -> TransformerSettings:
    return TransformerSettings(**(SMALL | settings))


def _recurrent(attention: str, **settings: Any) -> RecurrentSettings:
    options = settings.pop("options", {})
    return RecurrentSettings(
        **(
            {"width": 16, "embedding": 12, "attention": AttentionSettings(kind=attention, **options)}
            | settings
        )
    )


MODELS: dict[str, TransformerSettings | RecurrentSettings] = {
    "pre-norm": _transformer(),
    "post-norm": _transformer(norm="post"),
    "marian, rms, gelu": _transformer(
        positions="marian", norm_kind="rms", activation="gelu", output_bias=True
    ),
    "learned, batch, swish": _transformer(positions="learned", norm_kind="batch", activation="swish"),
    "post-norm, rms": _transformer(norm="post", norm_kind="rms", positions="none"),
    "rotary": _transformer(positions="rotary"),
    "alibi": _transformer(positions="alibi", heads=3, width=15),
    "relative-keys": _transformer(positions="relative-keys"),
    "relative-bias": _transformer(positions="relative-bias", tied=False),
    "groups": _transformer(key_width=6, value_width=3, key_value_groups=2, attention_bias=True),
    "bahdanau, gru": _recurrent("bahdanau"),
    "bahdanau normed, after, lstm": _recurrent(
        "bahdanau", options={"normed": True, "units": 10}, cell="lstm", order="after"
    ),
    "dot, lstm, feeding": _recurrent("luong-dot", cell="lstm", input_feeding=True),
    "general, gru, two layers": _recurrent(
        "luong-general", encoder_layers=2, decoder_layers=2, encoder_width=20, bidirectional=False
    ),
    "general, before": _recurrent("luong-general", order="before", tied=False),
    "concat, lstm": _recurrent("luong-concat", cell="lstm", decoder_layers=2),
    "scaled-dot, rnn": _recurrent("scaled-dot", cell="rnn"),
    "none, gru": _recurrent("none"),
    "none, lstm": _recurrent("none", cell="lstm"),
}


def sentences(count: int, seed: int = 1) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) + "." for _ in range(count)]


@functools.cache
def tokenizers(kind: str = "unigram", *, byte_fallback: bool = True, shared: bool = True) -> TokenizerPair:
    settings = TextSettings(kind=kind, byte_fallback=byte_fallback)  # type: ignore[arg-type]
    lines = [f"<polite> {line}" if i % 3 else line for i, line in enumerate(sentences(400))]
    source = train_tokenizer(lines, settings, vocab_size=340 if byte_fallback else 90)
    target = source if shared else train_tokenizer(sentences(300, seed=2), settings, vocab_size=320)
    return TokenizerPair(source, target, shared=shared)


@functools.cache
def translator(name: str) -> Translator:
    """Return the translator of a name in `MODELS`, with random weights.

    The initial weights are scaled (by 1.3, in one model by 0.8) so that hypotheses differ, but attention is
    not saturated. Saturated attention could make hypotheses equally good, and then rounding would decide
    between them.
    """
    torch.manual_seed(7)
    pair = tokenizers(shared=name != "relative-bias")
    model: Any = build_for_tokenizers(MODELS[name], pair)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 0.8 if name == "learned, batch, swish" else 1.3
            if weight.dim() == 1:
                weight += 0.1 * torch.randn_like(weight)
        for module in model.modules():
            if isinstance(module, BatchNorm):
                module.mean += 0.3 * torch.randn_like(module.mean)
                module.variance += torch.rand_like(module.variance)
            if type(module).__name__ == "RelativeBias":
                module.table += torch.randn_like(module.table)
    has_coverage_penalty = name == "post-norm"
    search = SearchSettings(
        beam=3, max_length_ratio=0.5, coverage_penalty=0.2 if has_coverage_penalty else 0.0
    )
    read_out = ReadOut(((1, 2), (0, 1)), 1, 0.15) if name == "rotary" else None
    return Translator(model, pair, search=search, read_out=read_out, facts=ModelFacts("en", "ko"))
