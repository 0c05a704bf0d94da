"""`jumok export MODEL --to FORMAT --out FOLDER`: write a model in the format of another toolkit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import ModelArgument


def export(
    model: ModelArgument,
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="huggingface, onnx, ctranslate2, argos or safetensors.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="PATH", help="The folder (argos: the .argosmodel file) to write.")
    ],
    quantization: Annotated[
        str, typer.Option(metavar="NAME", help="For ctranslate2 and argos: float32, float16 or int8 weights.")
    ] = "float32",
    licence: Annotated[
        str, typer.Option(metavar="NAME", help="The licence that the README of the exported model names.")
    ] = "",
) -> None:
    """Write a model in the format of another toolkit, with its tokenizer and a README.

    A setting that the other toolkit does not have is refused by name, and nothing is written.
    """
    from jumok.interop.exporting import export_model  # start-up

    names = export_model(model, out, to, quantization=quantization, licence=licence)
    typer.echo(f"{model} → {out} ({to}): {', '.join(names)}")
