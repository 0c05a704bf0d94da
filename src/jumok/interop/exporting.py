"""Export a model folder to other toolkits.

If the model cannot be represented in a format, no file is written, and the error names the setting.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import RecipeError, StorageError, UnsupportedError, suggest
from jumok.inference.building import load_model
from jumok.inference.engines.ctranslate2_engine import require_ctranslate2
from jumok.inference.engines.ctranslate2_export import TokenNames
from jumok.inference.engines.ctranslate2_export import export as ctranslate2_model
from jumok.inference.loading import max_positions_for, open_tokenizers
from jumok.interop.exported_model import ExportedModel, export_refusal, text_requirements
from jumok.interop.huggingface_writer import huggingface_files
from jumok.interop.onnx_writer import onnx_files
from jumok.interop.weight_names import distinct_names
from jumok.models.model import TranslationModel
from jumok.storage.folders import new_folder, write_and_sync, write_file
from jumok.storage.model_folder import card_to_json, read_stored_model
from jumok.storage.readme import LICENCE, describe_model
from jumok.storage.tensors import module_weights, tensors_to_bytes
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.languages import language_name
from jumok.text.tokenizer_files import tokenizers_to_files

if TYPE_CHECKING:
    from collections.abc import Callable

QUANTIZATIONS = ("float32", "float16", "int8")
ARGOS_SUFFIX = ".argosmodel"
_CTRANSLATE2_USAGE = """\
```python
import ctranslate2, sentencepiece

folder = "."  # the folder of this file
translator = ctranslate2.Translator(folder)
source = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/target.spm")
result = translator.translate_batch([PIECES])[0]
print(target.decode(result.hypotheses[0]))
```

Tokens are strings of SentencePiece. CTranslate2 adds `</s>` to the source (`add_source_eos` in config.json).
"""


def export_model(
    folder: str | Path, out: str | Path, to: str, *, quantization: str = "float32", licence: str = ""
) -> list[str]:
    """Write a model in the format `to` to the path `out`, which must not exist. Return the file names."""
    if to not in EXPORT_FORMATS:
        known_formats = ", ".join(EXPORT_FORMATS)
        raise RecipeError(f"There is no format {to!r}.{suggest(to, EXPORT_FORMATS)} Known: {known_formats}.")
    if quantization not in QUANTIZATIONS:
        raise RecipeError(f"There is no precision {quantization!r}. Known: {', '.join(QUANTIZATIONS)}.")
    if quantization != "float32" and to not in ("ctranslate2", "argos"):
        raise RecipeError(f"Weights in {quantization} are for ctranslate2 and argos. Received: {to}.")
    out = Path(out)
    if out.exists():
        raise StorageError(f"{out} exists already. Choose another name, or move it away.")
    files = EXPORT_FORMATS[to](_load(Path(folder), quantization, licence))
    note = "Nothing has been exported; the model is intact."
    if to == "argos":
        write_file(out, _to_zip(files), failure_note=note)
        return sorted(files)
    with new_folder(out, failure_note=note) as temporary:
        for name, data in files.items():
            write_and_sync(temporary / name, data)
    return sorted(files)


def _load(folder: Path, quantization: str, licence: str) -> ExportedModel:
    stored = read_stored_model(folder)
    card = replace(stored.card, facts={**stored.card.facts, LICENCE: licence}) if licence else stored.card
    if card.recipe.model.task != "translate":
        kind = "classifies pictures" if card.recipe.model.task == "classify" else "was trained on plain text"
        raise UnsupportedError(f"The model in {folder} {kind}; only translators can be exported.")
    tokenizers = open_tokenizers(stored)
    model = load_model(stored, tokenizers).eval()
    if not isinstance(model, TranslationModel):  # impossible: its task is to translate
        raise TypeError(type(model).__name__)
    return ExportedModel(card, model, tokenizers, quantization)


def _safetensors_files(exported: ExportedModel) -> dict[str, bytes]:
    """Return the weights under jumok's names, the model card, the tokenizers and a README."""
    usage = '    safetensors.torch.load_file("FOLDER/model.safetensors")  # the recipe is in config.json\n'
    return {
        "model.safetensors": tensors_to_bytes(module_weights(exported.model)),
        "config.json": json.dumps(card_to_json(exported.card), ensure_ascii=False, indent=1).encode(),
        **tokenizers_to_files(exported.tokenizers),
        "README.md": describe_model(exported.card, usage=usage).encode(),
    }


def _ctranslate2_files(exported: ExportedModel) -> dict[str, bytes]:
    """Return CTranslate2's files, in which tokens are strings, with the SentencePiece models and a README."""
    require_ctranslate2()
    sides = (exported.tokenizers.source, exported.tokenizers.target)
    names = TokenNames(*(distinct_names(side.tokens(range(side.vocab_size))) for side in sides))
    recipe = exported.card.recipe
    try:
        files = ctranslate2_model(
            exported.model,
            max_positions=max_positions_for(recipe),
            quantization=exported.quantization,
            names=names,
        )
    except UnsupportedError as error:
        raise UnsupportedError(f"This model cannot be exported to CTranslate2: {error}.") from None
    sentencepiece_models = {
        f"{side}.spm": tokenizer.sentencepiece
        if isinstance(tokenizer, JointVocabularyTokenizer)
        else tokenizer.to_bytes()
        for side, tokenizer in zip(("source", "target"), sides, strict=True)
    }
    usage = _CTRANSLATE2_USAGE.replace("PIECES", _pieces_expression(exported)) + text_requirements(exported)
    readme = describe_model(exported.card, usage=usage).encode()
    return {**files, **sentencepiece_models, "README.md": readme}


def _pieces_expression(exported: ExportedModel) -> str:
    """Return a Python expression for the tokens of a text, as an example in the README.

    If the model has several target languages, the expression begins with a language token.
    """
    source = exported.tokenizers.source
    pieces = 'source.encode("A sentence.", out_type=str)'
    if not isinstance(source, JointVocabularyTokenizer) or not source.codes:
        return pieces
    return f'["{source.code or source.codes[0]}", *{pieces}]'


def _argos_files(exported: ExportedModel) -> dict[str, bytes]:
    """Return the files of an .argosmodel: CTranslate2's, one SentencePiece model, metadata and a README."""
    source, target = exported.languages
    files = _ctranslate2_files(exported)
    advice = "Use `--to ctranslate2` instead."
    if files["source.spm"] != files["target.spm"]:
        why = "Argos has one SentencePiece model for both sides"
        raise export_refusal("Argos", "each side has a SentencePiece model of its own", why, advice)
    tokenizer = exported.tokenizers.source
    if isinstance(tokenizer, JointVocabularyTokenizer) and tokenizer.codes:
        why = "Argos cannot put a code before each text"
        raise export_refusal(
            "Argos", f"its texts begin with a code such as {tokenizer.codes[0]}", why, advice
        )
    if isinstance(tokenizer, JointVocabularyTokenizer) and tokenizer.normaliser != "none":
        why = "Argos gives texts to SentencePiece as they are"
        raise export_refusal("Argos", f"its texts need the normaliser {tokenizer.normaliser}", why, advice)
    if not source or not target:
        why = "Argos finds models by their languages"
        raise export_refusal("Argos", "its languages are unknown", why, advice)
    metadata: dict[str, Any] = {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": source,
        "from_name": language_name(source),
        "to_code": target,
        "to_name": language_name(target),
    }
    folder = f"translate-{source}_{target}-1_0"
    inside = {f"model/{name}": data for name, data in files.items() if not name.endswith((".spm", ".md"))}
    inside["sentencepiece.model"] = files["source.spm"]
    inside["metadata.json"] = json.dumps(metadata, ensure_ascii=False, indent=1).encode()
    usage = f"    argospm install translate-{source}_{target}{ARGOS_SUFFIX}\n"
    inside["README.md"] = describe_model(exported.card, usage=usage).encode()
    return {f"{folder}/{name}": data for name, data in inside.items()}


def _to_zip(files: dict[str, bytes]) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # a fixed date makes the zip reproducible
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return output.getvalue()


EXPORT_FORMATS: dict[str, Callable[[ExportedModel], dict[str, bytes]]] = {
    "huggingface": huggingface_files,
    "onnx": onnx_files,
    "ctranslate2": _ctranslate2_files,
    "argos": _argos_files,
    "safetensors": _safetensors_files,
}
