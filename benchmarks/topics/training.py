"""Training on Multi30k: the same model, vocabulary, batch size, dropout and precision for all systems."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.measure import Comparison, System
from benchmarks.model_flops import TransformerShape, flops_per_target_token
from benchmarks.settings import BATCH_TOKENS, SIZES, VOCAB_SIZE
from benchmarks.workbench import prepare_run, write_eole_corpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["comparisons", "remarks"]

MEASURE = "target tokens/s"
SECONDS, GEMM_SECONDS = 40.0, 6.0


def comparisons(bench: Workbench) -> list[Comparison]:
    seconds = bench.seconds(SECONDS)
    result = []
    for family, title in (
        ("transformer", "Transformer-Tiny (4+4 layers, d 128)"),
        ("recurrent", "bi-GRU 256, GRU 256 with Bahdanau's attention"),
    ):
        run = prepare_run(bench, family)
        jumok = {
            "run": run,
            "data": bench.data,
            "family": family,
            "quick": int(bench.quick),
            "seconds": seconds,
        }
        eole = {"tokens": write_eole_corpus(run), "family": family, "seconds": seconds}
        systems = [System("jumok", "train_jumok", jumok)]
        if family == "transformer":
            systems.append(
                System("Hugging Face MarianMT", "train_marianmt", {"run": run, "seconds": seconds})
            )
        if find_spec("eole"):
            systems.append(System("eole", "train_eole", eole))
        else:
            bench.log("eole is not installed: it is left out")
        systems.append(System("matrix product", "gemm", {"seconds": bench.seconds(GEMM_SECONDS)}))
        sizes = f"{VOCAB_SIZE:,} joint tokens, batches of {BATCH_TOKENS:,}"
        result.append(Comparison(f"{title}, {sizes}", MEASURE, systems))
    return result


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    """Return a remark on the speed of training in model FLOPs, as a share of the peak of matrix products."""
    from jumok.data.store import open_store
    from jumok.text.tokenizer import load_tokenizer

    run, rows = bench.work / "transformer", {row.name: row.measures for row in results[0].rows}
    store, size = open_store(run / "data"), SIZES["tiny"]
    shape = TransformerShape(
        layers=size["encoder_layers"],
        width=size["width"],
        feed_forward=size["feed_forward"],
        vocab_size=load_tokenizer(run / "pieces.model").vocab_size,
    )
    flops_per_token = flops_per_target_token(
        shape, store.source_lengths.astype("int64"), store.target_lengths.astype("int64") - 1
    )
    peak, speed = rows["matrix product"]["GFLOP/s"], rows["jumok"][MEASURE] * flops_per_token / 1e9
    return [
        f"GEMM peak (fp32, all cores, median of the rounds): {peak:,.1f} GFLOP/s. Training Transformer-Tiny "
        f"takes {flops_per_token / 1e6:,.2f} million model FLOPs per target token (6 × parameters that "
        f"multiply × tokens, and attention; with the output projection, without embedding look-ups and "
        f"padding), so jumok computes {speed:,.1f} GFLOP/s: {speed / peak:.1%} of the peak."
    ]
