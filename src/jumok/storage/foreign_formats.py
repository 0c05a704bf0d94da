"""Recognise models of other toolkits by the names of their files. Nothing in them is opened here."""

from __future__ import annotations

import re
from pathlib import Path

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def foreign_format(path: Path) -> str:
    """Describe the model at a path, such as "a Marian model", by its file names.

    Return "" if the file names are not those of a known format.
    """
    if path.is_file():
        if path.suffix == ".argosmodel":
            return "an Argos Translate package"
        return "a packed OPUS-MT or Marian model" if path.suffix == ".zip" else ""
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return ""
    if "config.json" in names and "model.bin" in names:
        return "a CTranslate2 model"
    if "config.json" in names and names & {*_WEIGHTS, "vocab.json", "tokenizer.json"}:
        return "a Hugging Face model"
    if "decoder.yml" in names or any(name.endswith(".npz") for name in names):
        return "a Marian model"
    return ""


def foreign_model_hint(path: Path) -> str:
    """Return a sentence with the command that imports the model at a path; "" if the format is unknown.

    The sentence begins with a space, so that it can follow another sentence.
    """
    description = foreign_format(path)
    if not description:
        return ""
    return f" It looks like {description}: `jumok import {path} --out model` turns it into a model folder."


def hub_hint(path: Path) -> str:
    """Return advice if a path that does not exist looks like the name of a model on the Hugging Face hub.

    Otherwise, return "".
    """
    name = str(path)
    if not _HUB_NAME.fullmatch(name) or Path(name.partition("/")[0]).exists():
        return ""
    local = name.partition("/")[2]
    return (
        f" If {name} is a model on the Hugging Face hub, download and import it: "
        f"`hf download {name} --local-dir {local}` (from the package huggingface_hub), then "
        f"`jumok import {local} --out model`."
    )
