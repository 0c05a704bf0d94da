"""`eole train` on the pieces of jumok's run; its speed is read from its log."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.contenders.report import parse, report
from benchmarks.settings import BATCH_TOKENS, DROPOUT, FAMILIES, SMOOTHING

REPORT_EVERY = 2  # updates
WARM_UP = 0.2  # of the time, from the first report on
STEP = re.compile(r"Step .* bsz: +\d+/ *(\d+)/")  # source pieces, target pieces and pairs of a batch


def configuration(pieces: Path, family: str, out: Path) -> dict[str, Any]:
    """A configuration of eole; it logs the entropy of attention unless told not to, which costs time."""
    return {
        "save_data": str(out / "data"),
        "src_vocab": str(pieces / "vocabulary.txt"),
        "share_vocab": True,
        "overwrite": True,
        "report_every": REPORT_EVERY,
        "data": {"train": {"path_src": str(pieces / "train.en"), "path_tgt": str(pieces / "train.de")}},
        "model": {**model(FAMILIES[family]), "share_embeddings": True, "share_decoder_embeddings": True},
        "training": {
            "model_path": str(out / "model"),
            "compute_dtype": "fp32",
            "world_size": 1,
            "gpu_ranks": [],
            "batch_type": "tokens",
            "batch_size": BATCH_TOKENS,
            "normalization": "tokens",
            "bucket_size": 30_000,
            "num_workers": 1,
            "prefetch_factor": 64,
            "train_steps": 1_000_000,
            "save_checkpoint_steps": 1_000_000,
            "valid_steps": 1_000_000,
            "dropout": [DROPOUT],
            "attention_dropout": [0.0],
            "dropout_steps": [0],
            "label_smoothing": SMOOTHING,
            "optim": "adam",
            "adam_beta2": 0.98,
            "learning_rate": 2.0,
            "decay_method": "noam",
            "warmup_steps": 2000,
            "max_grad_norm": 1.0,
            "log_attention_entropy": False,
        },
    }


def model(shape: dict[str, Any]) -> dict[str, Any]:
    """The same model in eole's words."""
    layers = {"layers": shape["encoder_layers"], "hidden_size": shape["width"]}
    if shape["family"] == "recurrent":
        return {
            "architecture": "rnn",
            "rnn_type": "GRU",
            **layers,
            "embeddings": {"word_vec_size": shape["embedding"]},
            "encoder": {"encoder_type": "brnn", "rnn_type": "GRU"},
            "decoder": {"decoder_type": "rnn", "rnn_type": "GRU", "global_attention": "mlp"},
        }
    return {
        "architecture": "transformer",
        **layers,
        "heads": shape["heads"],
        "transformer_ff": shape["feed_forward"],
        "embeddings": {"word_vec_size": shape["width"], "position_encoding_type": "SinusoidalInterleaved"},
    }


def follow(process: subprocess.Popen[str], seconds: float) -> float:
    """Target tokens a second after the warm-up, from what is logged of each batch and our own clock."""
    log: list[str] = []
    first = begun = None
    tokens = 0.0
    for line in process.stdout or ():
        log.append(line)
        if (found := STEP.search(line)) is None:
            continue
        now = time.perf_counter()
        first = first or now
        if begun is not None:
            tokens += REPORT_EVERY * int(found[1])
            if now - first > seconds:
                return tokens / (now - begun)
        elif now - first > WARM_UP * seconds:
            begun = now
    raise SystemExit("eole ended before it was measured:\n" + "".join(log[-40:]))


def main() -> None:
    given = parse(pieces=Path, family=str, seconds=float)
    with tempfile.TemporaryDirectory() as out:
        config = Path(out) / "eole.yaml"  # JSON is YAML
        config.write_text(json.dumps(configuration(given.pieces, given.family, Path(out))), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "eole.bin.main", "train", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that the processes that load its data can be ended with it
        )
        try:
            report(target_tokens_per_s=follow(process, given.seconds))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    main()
