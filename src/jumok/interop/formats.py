"""Choose the reader for a model of Hugging Face or Marian.

`import_worker.py` calls the readers of other formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.interop.huggingface_reader import read_huggingface
from jumok.interop.marian_reader import read_marian

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.interop.foreign_model import ForeignModel
    from jumok.interop.package import Package

_KNOWN = (
    "jumok imports Hugging Face folders of MarianMT (OPUS-MT), zips or folders of Marian, folders of "
    "CTranslate2 and packages of Argos Translate."
)


def read_foreign_model(package: Package, path: Path) -> ForeignModel:
    """Read the model of Hugging Face or Marian in a package. Raise an error for any other format."""
    names = package.names()
    if "jumok.json" in package:
        raise package.refusal("it is a jumok model folder already", "Use it as it is.")
    if "config.json" in package:
        return read_huggingface(package, path)
    if "decoder.yml" in package or any(name.endswith((".npz", ".bpe", ".spm")) for name in names):
        return read_marian(package)
    listed = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    raise package.refusal(f"its files are in no format that jumok knows ({listed or 'none'})", _KNOWN)
