"""Convert a model of another toolkit into a jumok model.

The weights get jumok's names, token ids and order of channels. The ids are `<pad>` 0, `<unk>` 1, `<s>` 2,
`</s>` 3, then all other tokens in the order of their foreign ids. The embedding of `<s>` is the embedding
with which the foreign decoder begins. In models of Marian, this is a zero vector. `<pad>` and `<s>` are never
produced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jumok.config.recipe import make_recipe
from jumok.data.batching import padded_batch
from jumok.errors import ModelFolderError
from jumok.inference.building import build_for_tokenizers
from jumok.interop.package import refusal
from jumok.interop.weight_names import halves_to_interleaved, layer_names, permute
from jumok.models.validate import check_recipe
from jumok.storage.model_folder import ModelCard
from jumok.storage.readme import LICENCE, describe_model
from jumok.storage.tensors import load_module_weights, module_weights
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.languages import find_language, looks_like_language
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_files import tokenizers_to_files
from jumok.types import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jumok.config.recipe import Recipe
    from jumok.interop.foreign_model import ForeignModel, ForeignVocabulary
    from jumok.models.model import Model

POSITION_CHOICES = ("auto", "sinusoidal", "marian")
NEVER_PRODUCED_BIAS = -1e4
"""The output bias of tokens that are never produced. It is finite, so that the loss in fine-tuning remains
finite."""


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """The options of an import.

    If an option other than `code` is "" or "auto", the files of the model determine the value. `positions` is
    one of `POSITION_CHOICES`. `code` chooses the target language of a model with several target languages. If
    it is "ko" or ">>ko<<", the token `>>ko<<` is put before every source that begins with no such token. If
    it is "", no token is added. `licence` is stored in the model card.
    """

    positions: str = "auto"
    source_language: str = ""
    target_language: str = ""
    code: str = ""
    licence: str = ""


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """An imported model: the content of its model folder, and facts for the report of the import."""

    format: str
    card: ModelCard
    weights: dict[str, Tensor]
    tokenizers: dict[str, bytes]
    readme: str
    codes: tuple[str, ...]
    """The tokens that name a target language, such as `>>ko<<`; empty if there is only one such language."""
    vocab_size: int
    positions_reason: str
    """Why the model has these positions, as a part of a sentence."""
    engine_files: Mapping[str, bytes] = field(default_factory=dict)
    """The files of CTranslate2, if the model has no weights for torch."""


def convert(foreign: ForeignModel, path: Path, choices: ImportChoices) -> ImportedModel:
    """Return the jumok model. If the model cannot be converted, raise a ModelFolderError with the reason."""
    tokenizers = _tokenizers(foreign, choices)
    try_character_maps(tokenizers)
    embeddings, tied = _embeddings(foreign, str(path))
    recipe = _recipe(foreign, tokenizers, choices, tied=tied)
    model = build_for_tokenizers(recipe.model, tokenizers)
    _load(model, foreign, embeddings, str(path))
    facts: dict[str, Any] = {
        "imported_from": f"{foreign.format}, {path.resolve().name}",
        LICENCE: choices.licence or foreign.licence or "unknown",
        "parameters": sum(tensor.numel() for tensor in model.parameters()),
        **foreign.facts,
    }
    card = ModelCard(recipe, facts=facts)
    readme = describe_model(card)
    if foreign.readme:
        readme += f"\n## The card of the original\n\n{foreign.readme}\n"
    source = tokenizers.source
    return ImportedModel(
        foreign.format,
        card,
        module_weights(model),
        tokenizers_to_files(tokenizers),
        readme,
        codes=source.codes if isinstance(source, JointVocabularyTokenizer) else (),
        vocab_size=tokenizers.target.vocab_size,
        positions_reason=foreign.positions_reason if choices.positions == "auto" else "as requested",
    )


# --- Settings and tokens ------------------------------------------------------------------------------------


def _recipe(
    foreign: ForeignModel, tokenizers: TokenizerPair, choices: ImportChoices, *, tied: bool
) -> Recipe:
    languages = {
        "languages.source": language_of(
            choices.source_language or foreign.settings.get("languages.source", "")
        ),
        "languages.target": language_of(
            choices.target_language or foreign.settings.get("languages.target", "")
        ),
    }
    positions = foreign.positions if choices.positions == "auto" else choices.positions
    # A recipe allows at most 128,000 tokens. The model has the vocabulary of its tokenizers in any case.
    text = {"text.shared": tokenizers.shared, "text.vocab_size": min(tokenizers.target.vocab_size, 128_000)}
    model = {"model.positions": positions, "model.tied": tied}
    model |= {"model.attention_bias": True, "model.output_bias": True}
    recipe = make_recipe(None, **{**foreign.settings, **languages, **text, **model})
    check_recipe(recipe)
    return recipe


def language_of(word: str) -> str:
    """Return jumok's code of a language. Unknown codes are returned unchanged. For other words, return ""."""
    language = find_language(word)
    return language.code if language else word if looks_like_language(word) else ""


def _tokenizers(foreign: ForeignModel, choices: ImportChoices) -> TokenizerPair:
    source, target = foreign.source, foreign.target or foreign.source
    code = choices.code if choices.code.startswith(">>") or not choices.code else f">>{choices.code}<<"
    source_tokens = [source.tokens[id_] for id_ in _ordinary_ids(source)]
    target_tokens = [target.tokens[id_] for id_ in _ordinary_ids(target)]
    normaliser = foreign.normaliser
    return TokenizerPair(
        JointVocabularyTokenizer(source.sentencepiece, source_tokens, normaliser=normaliser, code=code),
        JointVocabularyTokenizer(
            foreign.target_sentencepiece, target_tokens, normaliser=normaliser, is_source=False
        ),
        shared=foreign.target is None,
    )


def try_character_maps(tokenizers: TokenizerPair) -> None:
    """Encode every character from U+0001 to U+FFFF except surrogates, so that a crafted map crashes here.

    This function runs in the child process of an import. SentencePiece models of other toolkits normalise
    with a binary character map. Models that jumok trained have no such map (`text/character_map.py`).
    """
    characters = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000]
    blocks = ["".join(characters[start : start + 64]) for start in range(0, len(characters), 64)]
    for tokenizer in (tokenizers.source, tokenizers.target):
        tokenizer.encode_batch(blocks, threads=1)


def _ordinary_ids(vocabulary: ForeignVocabulary) -> list[int]:
    """Return the foreign ids of all tokens that are not special, ascending. jumok numbers them from 4 on."""
    special = {vocabulary.end, vocabulary.unknown, vocabulary.begin, vocabulary.padding}
    return sorted(id_ for id_ in vocabulary.tokens if id_ not in special)


# --- Weights ------------------------------------------------------------------------------------------------


def _embeddings(foreign: ForeignModel, label: str) -> tuple[dict[str, Tensor], bool]:
    """Return the weights of the embeddings and of the output layer, and whether they are tied.

    The keys are jumok's names. The weights are tied if the output layer has the matrix of the target
    embedding, and, with one vocabulary, of the source embedding. `label` names the model in error messages.
    """
    weights = foreign.weights
    shared = weights.get("model.shared.weight")
    source = weights.get("model.encoder.embed_tokens.weight", shared)
    target = weights.get("model.decoder.embed_tokens.weight", shared)
    if source is None or target is None:
        raise refusal(label, "its weights lack the embeddings (model.shared.weight)")
    output = weights.get("lm_head.weight", target)
    one_vocabulary = foreign.target is None
    tied = _is_same_matrix(output, target) and (not one_vocabulary or _is_same_matrix(source, target))
    target_vocabulary = foreign.target or foreign.source
    source_rows = _reordered_rows(source, foreign.source, label)
    converted = {
        "source_embedding.weight": source_rows,
        "output.bias": _output_bias(foreign, target_vocabulary, label),
    }
    if tied and one_vocabulary:
        return converted, True
    converted["target_embedding.weight"] = _reordered_rows(target, target_vocabulary, label)
    if not tied:
        converted["output.weight"] = _reordered_rows(output, target_vocabulary, label)
    return converted, tied


def _is_same_matrix(first: Tensor, second: Tensor) -> bool:
    return first is second or (first.shape == second.shape and bool(torch.equal(first, second)))


def _reordered_rows(matrix: Tensor, vocabulary: ForeignVocabulary, label: str) -> Tensor:
    """Return the rows of a matrix in the order of jumok's ids, with channels interleaved."""
    width = matrix.shape[-1]
    ordinary = _ordinary_ids(vocabulary)
    used = [vocabulary.unknown, vocabulary.end, *ordinary]
    used += [id_ for id_ in (vocabulary.begin, vocabulary.padding) if id_ is not None]
    if matrix.dim() != 2 or width % 2 or max(used) >= len(matrix):
        raise refusal(
            label,
            f"its embeddings have the shape {tuple(matrix.shape)}, "
            f"and its vocabulary has ids up to {max(used):,}",
        )
    zero = torch.zeros(width)
    special = [
        zero if vocabulary.padding is None else matrix[vocabulary.padding],
        matrix[vocabulary.unknown],
        zero if vocabulary.begin is None else matrix[vocabulary.begin],
        matrix[vocabulary.end],
    ]
    rows = torch.cat([torch.stack(special), matrix[ordinary]])
    return rows[:, halves_to_interleaved(width)].contiguous()


def _output_bias(foreign: ForeignModel, vocabulary: ForeignVocabulary, label: str) -> Tensor:
    bias = foreign.weights.get("final_logits_bias")
    ordinary = _ordinary_ids(vocabulary)
    never = torch.full((1,), NEVER_PRODUCED_BIAS)
    if bias is None:
        values = torch.zeros(END + 1 + len(ordinary))
        values[PAD] = values[BEGIN] = NEVER_PRODUCED_BIAS
        return values
    flat = bias.flatten()
    if max([vocabulary.unknown, vocabulary.end, *ordinary]) >= len(flat):
        raise refusal(label, f"final_logits_bias has {len(flat):,} numbers, fewer than the vocabulary")
    parts = [never, flat[vocabulary.unknown, None], never, flat[vocabulary.end, None], flat[ordinary]]
    return torch.cat([part.flatten() for part in parts])


def _load(model: Model, foreign: ForeignModel, embeddings: dict[str, Tensor], label: str) -> None:
    """Load the foreign weights into a new model. Run the model once to check that its output is finite."""
    settings = foreign.settings
    order = halves_to_interleaved(settings["model.width"])
    pairs = layer_names(settings["model.encoder_layers"], settings["model.decoder_layers"], pre_norm=False)
    weights = dict(embeddings)
    for pair in pairs:
        for part in ("weight", "bias"):
            tensor = foreign.weights.get(f"{pair.theirs}.{part}")
            if tensor is None:
                raise refusal(label, f"its weights lack {pair.theirs}.{part}")
            try:
                weights[f"{pair.ours}.{part}"] = permute(tensor, pair, order)
            except IndexError:
                raise refusal(label, f"{pair.theirs}.{part} has the shape {tuple(tensor.shape)}") from None
    try:
        load_module_weights(model, weights)
    except ModelFolderError as error:
        raise refusal(label, f"its weights do not fit its settings ({error})") from None
    not_finite = [name for name, tensor in module_weights(model).items() if not torch.isfinite(tensor).all()]
    if not_finite:
        raise refusal(label, f"{len(not_finite)} weights are not finite, {not_finite[0]} among them")
    batch = padded_batch([[END + 1]], [[END + 1]])
    with torch.inference_mode():
        if not torch.isfinite(model.eval().output(model(batch))).all():
            raise refusal(label, "its first computation is not finite")
