"""Training on Multi30k: the same model, pieces, batch size, dropout and precision for everybody."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.measure import Contender, Contest
from benchmarks.model_flops import TransformerShape, flops_per_target_token
from benchmarks.settings import SIZES
from benchmarks.workbench import begin_run, write_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["contests", "remarks"]

MEASURE = "target tokens/s"
SECONDS, GEMM_SECONDS = 40.0, 6.0


def contests(bench: Workbench) -> list[Contest]:
    seconds = bench.seconds(SECONDS)
    found = []
    for family, title in (
        ("transformer", "Transformer-Tiny (4+4 layers, d 128)"),
        ("recurrent", "bi-GRU 256, GRU 256 with Bahdanau's attention"),
    ):
        run = begin_run(bench, family)
        mine = {
            "run": run,
            "data": bench.data,
            "family": family,
            "quick": int(bench.quick),
            "seconds": seconds,
        }
        eole = {"pieces": write_pieces(run), "family": family, "seconds": seconds}
        contenders = [Contender("jumok", "train_jumok", mine)]
        if family == "transformer":
            contenders.append(
                Contender("Hugging Face MarianMT", "train_marian", {"run": run, "seconds": seconds})
            )
        if find_spec("eole"):
            contenders.append(Contender("eole", "train_eole", eole))
        else:
            bench.tell("eole is not installed here: it is left out")
        contenders.append(Contender("matrix product", "gemm", {"seconds": bench.seconds(GEMM_SECONDS)}))
        found.append(Contest(f"{title}, 10,000 joint pieces, batches of 4,096", MEASURE, contenders))
    return found


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    """The share of the GEMM peak that jumok's Transformer reaches in model FLOPs."""
    from jumok.corpus import open_store
    from jumok.text import load_subwords

    run, rows = bench.work / "transformer", {row.name: row.measures for row in results[0].rows}
    store, size = open_store(run / "data"), SIZES["tiny"]
    shape = TransformerShape(
        layers=size["encoder_layers"],
        width=size["width"],
        feed_forward=size["feed_forward"],
        pieces=load_subwords(run / "pieces.model").size,
    )
    a_token = flops_per_target_token(
        shape, store.source_lengths.astype("int64"), store.target_lengths.astype("int64") - 1
    )
    peak, speed = rows["matrix product"]["GFLOP/s"], rows["jumok"][MEASURE] * a_token / 1e9
    return [
        f"GEMM peak (fp32, all cores, median of the rounds): {peak:,.1f} GFLOP/s. Training Transformer-Tiny "
        f"takes {a_token / 1e6:,.2f} million model FLOPs a target token (6 × parameters that multiply × "
        f"tokens, and attention; output projection counted, look-ups of embeddings and padding not), so "
        f"jumok computes {speed:,.1f} GFLOP/s: {speed / peak:.1%} of the peak."
    ]
