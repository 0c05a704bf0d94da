"""Read a model of CTranslate2, or a package of Argos Translate, which contains a model of CTranslate2.

Only CTranslate2 can run such a model. Its files contain weights in an order and a precision for fast search,
often 8-bit integers. An import does not change the weights. Only the tokens are renamed, so that
`CTranslate2Engine` can run the model with jumok's ids:

    token                    name in the files        new name
    <unk>, </s>, <s>         given in config.json     <unk>, </s>, <s>
    <pad>                    <pad> or <blank>         <pad>
    any other token          the string of the token  the id of the token, from 4 on

The tokenizer is not part of CTranslate2's format. An Argos package has one SentencePiece model. A folder of
CTranslate2 must have `source.spm` and `target.spm` beside `model.bin`, or one SentencePiece model for both
sides.
"""

from __future__ import annotations

import json
import math
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.config.recipe import EXTRA_TOKENS, make_recipe
from jumok.inference.engines.ctranslate2_engine import CTranslate2Engine, require_ctranslate2
from jumok.inference.engines.ctranslate2_tokens import SPECIAL_TOKENS
from jumok.inference.search.plan import SearchPlan
from jumok.interop.conversion import ImportedModel, language_of, try_character_maps
from jumok.interop.readme_front_matter import read_licence, read_readme
from jumok.interop.settings_table import SettingsTable
from jumok.storage.model_folder import ModelCard
from jumok.storage.readme import LICENCE, describe_model
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.tokenizer import TokenizerPair
from jumok.text.tokenizer_files import tokenizers_to_files
from jumok.types import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jumok.errors import ModelFolderError
    from jumok.interop.conversion import ImportChoices
    from jumok.interop.package import Package

ARGOS_METADATA, ARGOS_FOLDER, ARGOS_TOKENIZER = "metadata.json", "model/", "sentencepiece.model"
ARGOS_LENGTH_PENALTY = 0.2  # the length penalty of Argos Translate
BINARY_VERSIONS = range(4, 7)
SPECIFICATION = "TransformerSpec"
MAX_POSITIONS, MAX_SOURCE_TOKENS, MAX_LENGTH_RATIO = 8192, 200, 3.0
"""Limits of an imported model: the number of tokens of a text for the engine, and the values of the settings
`training.max_sentence_tokens` and `search.max_length_ratio`. A table of positions may lower the first two."""
_PADDING = ("<pad>", "<blank>")
_LAYER = re.compile(r"(encoder|decoder)/layer_(\d+)/")
_DTYPES = ("<f4", "<i1", "<i2", "<i4", "<f2", "<u2")  # in CTranslate2's order; "<u2" stands for bfloat16
_FLOATS = (0, 4)  # the indices of float32 and float16 in `_DTYPES`
_USAGE = "    jumok translate MODEL < in.txt        # MODEL is this folder\n    jumok serve MODEL\n"


def is_ctranslate2(package: Package) -> bool:
    is_model = "model.bin" in package or f"{ARGOS_FOLDER}model.bin" in package
    return is_model and "jumok.json" not in package


def read_ctranslate2(package: Package, path: Path, choices: ImportChoices) -> ImportedModel:
    """Read a model that only CTranslate2 can run. Raise an error if it cannot translate a sentence."""
    require_ctranslate2()
    is_argos = f"{ARGOS_FOLDER}model.bin" in package
    folder = ARGOS_FOLDER if is_argos else ""
    if choices.positions != "auto" or choices.code:
        raise package.refusal(
            "the positions and the target language of a model of CTranslate2 are part of its files",
            "Leave out --positions and --code.",
        )
    model = package.read(f"{folder}model.bin")
    variables = _read_variables(package, f"{folder}model.bin", model)
    vocabularies = _Vocabularies.read(package, folder, variables)
    tokenizers = _tokenizers(package, vocabularies, is_argos=is_argos)
    try_character_maps(tokenizers)
    config = vocabularies.config(variables)
    files = {"model.bin": model, "config.json": json.dumps(config).encode(), **vocabularies.files()}
    metadata = _argos_metadata(package) if is_argos else {}
    settings = _settings(package, variables, config, metadata, choices)
    settings |= {
        "text.shared": vocabularies.shared,
        "text.vocab_size": min(len(vocabularies.target), 128_000),  # the maximum that a recipe allows
    }
    _translate_once(package, files, tokenizers)
    name = "Argos Translate" if is_argos else "CTranslate2"
    facts: dict[str, Any] = {
        "imported_from": f"{name}, {path.resolve().name}",
        "runs_on": "ctranslate2",
        LICENCE: choices.licence or read_licence(package) or "unknown",
        "parameters": _count_parameters(variables),
    }
    card = ModelCard(make_recipe(None, **settings), facts=facts)
    readme = describe_model(card, usage=_USAGE)
    if original := read_readme(package):
        readme += f"\n## The card of the original\n\n{original}\n"
    return ImportedModel(
        name,
        card,
        {},
        tokenizers_to_files(tokenizers),
        readme,
        codes=(),
        vocab_size=tokenizers.target.vocab_size,
        positions_reason="they are part of CTranslate2's files",
        engine_files=files,
    )


# --- model.bin ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Variable:
    """A weight or a setting in model.bin."""

    shape: tuple[int, ...]
    dtype: int  # index in `_DTYPES`
    start: int  # offset of its bytes in the file
    end: int


class _Reader:
    """Reads the numbers and strings of a file in order. Raises `struct.error` if the file ends too early."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def number(self, kind: str) -> int:
        [value] = struct.unpack_from(f"<{kind}", self.data, self.position)
        self.position += struct.calcsize(f"<{kind}")
        return int(value)

    def text(self) -> str:
        length = self.number("H")
        raw = self.data[self.position : self.position + length]
        if len(raw) < length:
            raise struct.error("a string ends after the file")
        self.position += length
        return raw.rstrip(b"\0").decode("utf-8")

    def skip(self, length: int) -> tuple[int, int]:
        """Skip `length` bytes. Return the start and the end of the skipped bytes."""
        start, self.position = self.position, self.position + length
        if self.position > len(self.data):
            raise struct.error("a weight ends after the file")
        return start, self.position


def _read_variables(package: Package, name: str, data: bytes) -> dict[str, _Variable]:
    """Return the variables of model.bin by name. An alias is a second name of a variable."""
    reader = _Reader(data)
    try:
        version = reader.number("I")
        if version not in BINARY_VERSIONS:
            raise package.refusal(
                f"{name} has the version {version:,}; jumok reads "
                f"{BINARY_VERSIONS[0]} to {BINARY_VERSIONS[-1]}",
                "Convert the original model again with a current CTranslate2.",
            )
        specification, _ = reader.text(), reader.number("I")
        if specification != SPECIFICATION:
            raise package.refusal(
                f"it is a {specification:.40}; jumok runs encoder-decoder Transformers ({SPECIFICATION})",
                "Import a model that translates.",
            )
        variables = dict(_read_variable(reader) for _ in range(reader.number("I")))
        aliases = [(reader.text(), reader.text()) for _ in range(reader.number("I"))]
        variables |= {alias: variables[variable] for alias, variable in aliases}
    except (struct.error, UnicodeDecodeError, KeyError, ValueError) as error:
        raise package.refusal(f"{name} is damaged ({error})") from None
    if reader.position != len(data):
        raise package.refusal(f"{name} is damaged ({len(data) - reader.position:,} bytes after its end)")
    for variable in variables.values():
        if variable.dtype in _FLOATS:
            values = np.frombuffer(data[variable.start : variable.end], dtype=_DTYPES[variable.dtype])
            if not np.isfinite(values).all():
                raise package.refusal(f"{name} has weights that are not finite")
    return variables


def _read_variable(reader: _Reader) -> tuple[str, _Variable]:
    name = reader.text()
    shape = tuple(reader.number("I") for _ in range(reader.number("B")))
    dtype, num_bytes = reader.number("B"), reader.number("I")
    if dtype >= len(_DTYPES) or math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize != num_bytes:
        raise ValueError(f"{name:.60} has the shape {shape} and {num_bytes:,} bytes of type {dtype}")
    return name, _Variable(shape, dtype, *reader.skip(num_bytes))


def _count_parameters(variables: Mapping[str, _Variable]) -> int:
    """Return the number of parameters. A weight with several names is counted once.

    A table of positions is counted whether it was learned or not, because the file does not contain this
    information. Scalars are not counted, because they are settings, such as the number of heads. Scales are
    not counted, because they belong to the format of integer weights.
    """
    weights = {v for name, v in variables.items() if v.shape and not name.endswith("_scale")}
    return sum(math.prod(weight.shape) for weight in weights)


# --- vocabularies -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Vocabularies:
    """The tokens of both sides in the order of CTranslate2's ids, and the content of config.json."""

    package: Package
    source: Sequence[str]
    target: Sequence[str]
    shared: bool
    original_config: Mapping[str, Any]

    @classmethod
    def read(cls, package: Package, folder: str, variables: Mapping[str, _Variable]) -> _Vocabularies:
        config_file = f"{folder}config.json"
        original_config = package.json(config_file) if config_file in package else {}
        shared = _vocabulary(package, f"{folder}shared_vocabulary")
        source = shared or _vocabulary(package, f"{folder}source_vocabulary")
        target = shared or _vocabulary(package, f"{folder}target_vocabulary")
        if source is None or target is None:
            missing = "target" if source is not None else "source" if target is not None else "shared"
            raise package.refusal(f"the file {missing}_vocabulary.json is missing")
        rows = {"encoder/embeddings_0": source, "decoder/embeddings": target}
        for name, tokens in rows.items():
            weight = variables.get(f"{name}/weight") or variables.get(f"{name.replace('_0', '')}/weight")
            if weight is None or len(weight.shape) != 2 or weight.shape[0] != len(tokens):
                shape = "no shape" if weight is None else f"the shape {weight.shape}"
                raise package.refusal(f"{name} has {shape}, and its vocabulary has {len(tokens):,} tokens")
        return cls(package, source, target, shared is not None, original_config)

    def special(self, tokens: Sequence[str]) -> dict[str, str]:
        """Return jumok's name of each special token. The keys are the names in this vocabulary."""
        table = SettingsTable(self.package, "config.json", self.original_config)
        special_names = {
            table.text("eos_token", "</s>"): SPECIAL_TOKENS[END],
            table.text("unk_token", "<unk>"): SPECIAL_TOKENS[UNKNOWN],
        }
        missing = [name for name in special_names if name not in tokens]
        if missing:
            raise self.package.refusal(f"its vocabulary has no {' and no '.join(missing)}")
        begin = table.text("bos_token", "<s>")
        others = {begin: SPECIAL_TOKENS[BEGIN], **dict.fromkeys(_PADDING, SPECIAL_TOKENS[PAD])}
        for name, special in others.items():
            if name in tokens and name not in special_names and special not in special_names.values():
                special_names[name] = special
        return special_names

    def ordinary(self, tokens: Sequence[str]) -> list[str]:
        special = self.special(tokens)
        return [token for token in tokens if token not in special]

    def names(self, tokens: Sequence[str]) -> list[str]:
        """Return jumok's name of each token."""
        special, next_id, names = self.special(tokens), len(SPECIAL_TOKENS), []
        for token in tokens:
            if token in special:
                names.append(special[token])
            else:
                names.append(str(next_id))
                next_id += 1
        return names

    def files(self) -> dict[str, bytes]:
        """Return the new vocabulary files, with jumok's names of tokens."""
        sides = {"shared": self.source} if self.shared else {"source": self.source, "target": self.target}
        return {
            f"{side}_vocabulary.json": json.dumps(self.names(tokens)).encode()
            for side, tokens in sides.items()
        }

    def config(self, variables: Mapping[str, _Variable]) -> dict[str, Any]:
        """Return a new config.json, with jumok's names of tokens and the limits for `CTranslate2Engine`."""
        table = SettingsTable(self.package, "config.json", self.original_config)
        # If the setting is null, the user names the token in each call. If it is missing, the token is <s>.
        is_set = "decoder_start_token" in self.original_config
        start = table.text("decoder_start_token", "" if is_set else "<s>")
        special = self.special(self.target)
        if start not in special:
            raise self.package.refusal(
                f"its decoder begins with {start!r}, which is no special token"
                if start
                else "the user must name the first token of its decoder",
                "jumok runs models of CTranslate2 with one target language.",
            )
        # CTranslate2's converter for MarianMT does not set add_source_eos, because the tokenizer of
        # transformers appends `</s>`. The tokenizer of jumok does not append it.
        is_marian = "decoder/start_from_zero_embedding" in variables
        table_sizes = [
            v.shape[0] for name, v in variables.items() if name.endswith("position_encodings/encodings")
        ]
        names = self.names(self.target)
        return {
            "unk_token": SPECIAL_TOKENS[UNKNOWN],
            "bos_token": SPECIAL_TOKENS[BEGIN],
            "eos_token": SPECIAL_TOKENS[END],
            "decoder_start_token": special[start],
            "add_source_bos": table.flag("add_source_bos", False),
            "add_source_eos": table.flag("add_source_eos", False) or is_marian,
            **self._epsilon(table),
            "max_positions": min(MAX_POSITIONS, *table_sizes) if table_sizes else MAX_POSITIONS,
            "never_produced": [SPECIAL_TOKENS[id_] for id_ in (PAD, BEGIN) if SPECIAL_TOKENS[id_] in names],
        }

    def _epsilon(self, table: SettingsTable) -> dict[str, float]:
        """Return the epsilon of layer norms if config.json has it. Otherwise CTranslate2 uses a default."""
        name = "layer_norm_epsilon"
        return {} if self.original_config.get(name) is None else {name: table.number(name, 0, 1, 1e-5)}


def _vocabulary(package: Package, name: str) -> list[str] | None:
    """Return the tokens in `name.json`, or in `name.txt` of old releases. Return None if both are missing."""
    if f"{name}.json" in package:
        try:
            tokens = json.loads(package.text(f"{name}.json"))
        except (ValueError, RecursionError) as error:
            raise package.refusal(f"{name}.json is not JSON ({error})") from None
    elif f"{name}.txt" in package:
        tokens = package.text(f"{name}.txt").removesuffix("\n").split("\n")
    else:
        return None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise package.refusal(f"{name}.json is not a list of tokens")
    if len(set(tokens)) != len(tokens):
        raise package.refusal(f"{name} has a token twice")
    return tokens


# --- tokenizers and settings --------------------------------------------------------------------------------


def _tokenizers(package: Package, vocabularies: _Vocabularies, *, is_argos: bool) -> TokenizerPair:
    source, target = (package.read(name) for name in _sentencepiece_files(package, is_argos=is_argos))
    return TokenizerPair(
        JointVocabularyTokenizer(source, vocabularies.ordinary(vocabularies.source)),
        JointVocabularyTokenizer(target, vocabularies.ordinary(vocabularies.target), is_source=False),
        shared=vocabularies.shared,
    )


def _sentencepiece_files(package: Package, *, is_argos: bool) -> tuple[str, str]:
    if is_argos and ARGOS_TOKENIZER in package:
        return ARGOS_TOKENIZER, ARGOS_TOKENIZER
    if {"source.spm", "target.spm"} <= set(package.names()):
        return "source.spm", "target.spm"
    if "bpe.model" in package:
        raise package.refusal(
            "its tokens are BPE of subword-nmt (bpe.model)",
            "jumok reads SentencePiece models; import another one.",
        )
    names = [name for name in package.names() if name.endswith((".model", ".spm"))]
    if len(names) == 1:
        return names[0], names[0]
    raise package.refusal(
        f"it has {len(names)} SentencePiece models, and CTranslate2's files do not say how text is tokenized",
        "Put source.spm and target.spm of the original model beside model.bin.",
    )


def _argos_metadata(package: Package) -> dict[str, Any]:
    metadata = package.json(ARGOS_METADATA)
    if metadata.get("target_prefix"):
        raise package.refusal(
            "its translations begin with a token of their own "
            f"(target_prefix = {metadata['target_prefix']!r:.40})",
            "jumok runs models with one target language.",
        )
    return metadata


def _settings(
    package: Package,
    variables: Mapping[str, _Variable],
    config: Mapping[str, Any],
    metadata: Mapping[str, Any],
    choices: ImportChoices,
) -> dict[str, Any]:
    """Return the settings of the recipe.

    Settings of the section `model` are only information for people, because CTranslate2 reads its own files.
    """
    table = SettingsTable(package, ARGOS_METADATA, metadata)
    layers = {
        side: {int(match[2]) for name in variables if (match := _LAYER.match(name)) and match[1] == side}
        for side in ("encoder", "decoder")
    }
    embedding = variables["decoder/embeddings/weight"]
    hidden = variables.get("decoder/layer_0/ffn/linear_0/weight")
    max_source_tokens = int((config["max_positions"] - EXTRA_TOKENS) / MAX_LENGTH_RATIO)
    settings: dict[str, Any] = {
        "languages.source": language_of(choices.source_language or table.text("from_code")),
        "languages.target": language_of(choices.target_language or table.text("to_code")),
        "model.width": embedding.shape[1],
        "model.encoder_layers": max(len(layers["encoder"]), 1),
        "model.decoder_layers": max(len(layers["decoder"]), 1),
        # The longest translation of the longest source must fit into the positions, because no other engine
        # can run this model.
        "training.max_sentence_tokens": max(min(MAX_SOURCE_TOKENS, max_source_tokens), 4),
        "search.max_length_ratio": MAX_LENGTH_RATIO,
    }
    if hidden is not None and hidden.shape:
        settings["model.feed_forward"] = hidden.shape[0]
    if metadata:
        settings["search.length_penalty"] = ARGOS_LENGTH_PENALTY
    return settings


def _translate_once(package: Package, files: dict[str, bytes], tokenizers: TokenizerPair) -> None:
    """Translate one sentence. Raise an error if CTranslate2 cannot run the files."""
    vocab_size = max(tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    try:
        engine = CTranslate2Engine(files, vocab_size=vocab_size, cores=1)
        source = tokenizers.source.encode("Hello, 세계!")
        list(engine.search([source], SearchPlan(beam=1, max_length_ratio=1.0), prefixes=[[]]))
    except (RuntimeError, ValueError, KeyError, IndexError, UnicodeDecodeError) as error:
        raise _cannot_run(package, error) from None


def _cannot_run(package: Package, error: Exception) -> ModelFolderError:
    return package.refusal(f"CTranslate2 cannot run it ({type(error).__name__}: {error!s:.200})")
