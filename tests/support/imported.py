"""What the tests of imports share: the import of a package, and comparisons with its toolkit's numbers."""

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
    """A pre-norm model with learned positions, which jumok exports as Blenderbot; its weights are random."""
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
    """The scores before the softmax of every step, teacher forced: (target tokens + 1, vocabulary)."""
    tokenizers = translator.tokenizers
    batch = padded_batch([tokenizers.source.encode(source)], [tokenizers.target.encode(target)])
    with torch.inference_mode():
        return translator.model.output(translator.model(batch))[0]


def token_ids(translator: jumok.Translator, names: list[str]) -> list[int]:
    """The ids of these tokens. `<s>` is the last of that name: an imported model's own, an ordinary token."""
    tokenizer = translator.tokenizers.target
    ids = {name: id_ for id_, name in enumerate(tokenizer.tokens(range(tokenizer.vocab_size)))}
    return [ids[name] for name in names]


def search(translator: jumok.Translator, texts: list[str], **options: Any) -> list[list[str]]:
    """The tokens of the best hypothesis of each text."""
    plan = SearchPlan(max_length_ratio=1e-9, extra_tokens=MAX_TOKENS, min_length=0, **options)
    sources = translator.tokenizers.source.encode_batch(texts)
    found: dict[int, list[str]] = {}
    for group, hypotheses in TorchEngine(translator.model).search(sources, plan, prefixes=[[]] * len(texts)):
        for index, (best, *_) in zip(group, hypotheses, strict=True):
            found[index] = translator.tokenizers.target.tokens(best.ids)
    return [found[index] for index in range(len(texts))]


def check_against_transformers(translator: jumok.Translator, answers: dict[str, Any]) -> None:
    """Tokens, logits and translations are those of transformers."""
    tokenizer = translator.tokenizers.source
    assert [tokenizer.tokens(ids) for ids in tokenizer.encode_batch(answers["texts"])] == answers["tokens"]
    columns = token_ids(translator, answers["columns"])
    for source, target, expected in answers["logits"]:
        found = logits(translator, source, target)[:, columns]
        assert (found - torch.tensor(expected)).abs().max() < 1e-5
    count = len(answers["greedy"])
    assert search(translator, answers["texts"][:count], beam=1) == answers["greedy"]
    assert search(translator, answers["texts"][:count], beam=4, patience_factor=1.0) == answers["beam"]


def largest_score_difference(
    translator: jumok.Translator, answers: dict[str, Any], *, tokenized: bool
) -> float:
    """The largest difference of a token's log-probability from Marian's.

    `tokenized`: Marian's translations are tokens with spaces between them. Otherwise they are plain text,
    which Marian split itself, and a translation is compared only if jumok splits it into as many tokens as
    Marian scored. More than half of the translations must be compared.
    """
    largest, compared = 0.0, 0
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
        found = log_probs.gather(1, torch.tensor([*target, END])[:, None])[:, 0]
        found = found[: len(scores)]  # without `</s>` if the translation was cut
        largest = max(largest, float((found - torch.tensor(scores)).abs().max()))
        compared += 1
    assert compared > len(answers["translations"]) / 2
    return largest
