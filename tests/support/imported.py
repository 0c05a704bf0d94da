"""Import a package, and compare the imported model with the numbers of the toolkit that made the package.

`learned_positions_model` makes a model that can be exported for such a toolkit.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import jumok
from jumok.config.recipe import make_recipe
from jumok.data.batching import padded_batch
from jumok.inference.building import build_for_tokenizers
from jumok.inference.engines.torch_engine import TorchEngine
from jumok.inference.search.plan import SearchPlan
from jumok.interop.conversion import ImportChoices
from jumok.interop.import_worker import import_package
from jumok.interop.package import open_package
from jumok.storage.model_folder import read_stored_model, save_model
from jumok.storage.tensors import module_weights
from jumok.text.tokenizer_files import tokenizers_from_files
from jumok.types import END

MODELS = Path(__file__).parent.parent / "stored" / "models"
MAX_TOKENS = 30  # the same as in tests/interop/foreign_toolkits.py


def learned_positions_model(folder: Path, *, max_positions: int = 40) -> Path:
    """Write a pre-norm model with learned positions and random weights, which jumok exports as Blenderbot."""
    stored = read_stored_model(MODELS / "transformer")
    settings = {"model.positions": "learned", "model.max_positions": max_positions, "model.norm": "pre"}
    settings |= {"training.max_sentence_tokens": 20, "search.max_length_ratio": 1.0}
    recipe = make_recipe(stored.card.recipe.model_dump(exclude_unset=True), **settings)
    torch.manual_seed(1)
    model = build_for_tokenizers(recipe.model, tokenizers_from_files(stored.tokenizers))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    save_model(folder, replace(stored.card, recipe=recipe), module_weights(model), stored.tokenizers)
    return folder


def load_imported(package: Path, out: Path, **choices: str) -> jumok.Translator:
    """Import a package without a child process, which would take longer, and load the model."""
    import_package(open_package(package), package, out, ImportChoices(**choices))
    return jumok.load(out, engine="torch")


def logits(translator: jumok.Translator, source: str, target: str) -> torch.Tensor:
    """Return the teacher-forced scores before the softmax of every step: (target tokens + 1, vocabulary)."""
    tokenizers = translator.tokenizers
    batch = padded_batch([tokenizers.source.encode(source)], [tokenizers.target.encode(target)])
    with torch.inference_mode():
        return translator.model.output(translator.model(batch))[0]


def token_ids(translator: jumok.Translator, names: list[str]) -> list[int]:
    """Return the ids of these tokens.

    An imported model can have two tokens with the name `<s>`. The id of the last one is returned. It is the
    foreign model's own `<s>`, and an ordinary token for jumok.
    """
    tokenizer = translator.tokenizers.target
    ids = {name: id_ for id_, name in enumerate(tokenizer.tokens(range(tokenizer.vocab_size)))}
    return [ids[name] for name in names]


def search(translator: jumok.Translator, texts: list[str], **options: Any) -> list[list[str]]:
    """Return the tokens of the best hypothesis of each text, which has at most MAX_TOKENS tokens."""
    # The maximum length is ratio · source length + extra tokens: MAX_TOKENS for every source.
    plan = SearchPlan(max_length_ratio=1e-9, extra_tokens=MAX_TOKENS, min_length=0, **options)
    sources = translator.tokenizers.source.encode_batch(texts)
    best_tokens: dict[int, list[str]] = {}
    for group, hypotheses in TorchEngine(translator.model).search(sources, plan, prefixes=[[]] * len(texts)):
        for index, (best, *_) in zip(group, hypotheses, strict=True):
            best_tokens[index] = translator.tokenizers.target.tokens(best.ids)
    return [best_tokens[index] for index in range(len(texts))]


def check_against_transformers(translator: jumok.Translator, answers: dict[str, Any]) -> None:
    """Assert that tokens, logits and translations equal those of the package transformers."""
    tokenizer = translator.tokenizers.source
    assert [tokenizer.tokens(ids) for ids in tokenizer.encode_batch(answers["texts"])] == answers["tokens"]
    columns = token_ids(translator, answers["columns"])
    for source, target, expected in answers["logits"]:
        actual = logits(translator, source, target)[:, columns]
        assert (actual - torch.tensor(expected)).abs().max() < 1e-5
    count = len(answers["greedy"])
    assert search(translator, answers["texts"][:count], beam=1) == answers["greedy"]
    assert search(translator, answers["texts"][:count], beam=4, patience_factor=1.0) == answers["beam"]


def largest_score_difference(
    translator: jumok.Translator, answers: dict[str, Any], *, tokenized: bool
) -> float:
    """Return the largest difference between the log-probabilities that jumok and Marian give to a token.

    If `tokenized`, Marian's translations in `answers` are tokens with spaces between them. Otherwise the
    translations are plain text, which Marian tokenized for its scores. Such a translation is compared only if
    jumok splits it into as many tokens as Marian scored. More than half of the translations must be compared.
    """
    largest, num_compared = 0.0, 0
    tokenizers = translator.tokenizers
    for source, translation, scores in answers["translations"]:
        if tokenized:
            target = token_ids(translator, translation.split())
        else:
            target = tokenizers.target.encode(translation)
        if not tokenized and len(scores) != len(target) + 1:
            continue
        batch = padded_batch([tokenizers.source.encode(source)], [target])
        with torch.inference_mode():
            log_probs = translator.model.output.log_probs(translator.model(batch))[0]
        jumok_scores = log_probs.gather(1, torch.tensor([*target, END])[:, None])[:, 0]
        jumok_scores = jumok_scores[: len(scores)]  # without `</s>` if the translation was cut
        largest = max(largest, float((jumok_scores - torch.tensor(scores)).abs().max()))
        num_compared += 1
    assert num_compared > len(answers["translations"]) / 2
    return largest
