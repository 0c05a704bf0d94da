"""Run `eole train` on the tokens of jumok's run, and read the speed from eole's log."""

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

from benchmarks.programs.report import parse, report
from benchmarks.settings import BATCH_TOKENS, DROPOUT, FAMILIES, SMOOTHING

REPORT_EVERY = 2  # updates
WARM_UP = 0.2  # share of the seconds; they begin with the first report
STEP = re.compile(r"Step .* bsz: +\d+/ *(\d+)/")  # source tokens / target tokens (captured) / pairs


def configuration(tokens: Path, family: str, out: Path) -> dict[str, Any]:
    """Return eole's configuration. Logging the entropy of attention is off, because it would take time."""
    return {
        "save_data": str(out / "data"),
        "src_vocab": str(tokens / "vocabulary.txt"),
        "share_vocab": True,
        "overwrite": True,
        "report_every": REPORT_EVERY,
        "data": {"train": {"path_src": str(tokens / "train.en"), "path_tgt": str(tokens / "train.de")}},
        "model": {
            **model_settings(FAMILIES[family]),
            "share_embeddings": True,
            "share_decoder_embeddings": True,
        },
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


def model_settings(shape: dict[str, Any]) -> dict[str, Any]:
    """Return eole's settings for the model that jumok trains."""
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


def measure_speed(process: subprocess.Popen[str], seconds: float) -> float:
    """Return target tokens per second after the warm-up.

    The number of tokens comes from eole's log. The time is measured here, when a line of the log arrives.
    """
    log: list[str] = []
    first = started = None
    tokens = 0.0
    for line in process.stdout or ():
        log.append(line)
        if (match := STEP.search(line)) is None:
            continue
        now = time.perf_counter()
        first = first or now
        if started is not None:
            tokens += REPORT_EVERY * int(match[1])
            if now - first > seconds:
                return tokens / (now - started)
        elif now - first > WARM_UP * seconds:
            started = now
    raise SystemExit("eole ended before it was measured:\n" + "".join(log[-40:]))


def main() -> None:
    options = parse(tokens=Path, family=str, seconds=float)
    with tempfile.TemporaryDirectory() as out:
        config = Path(out) / "eole.yaml"  # JSON is YAML
        config.write_text(
            json.dumps(configuration(options.tokens, options.family, Path(out))), encoding="utf-8"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "eole.bin.main", "train", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that `killpg` below also kills the data loaders
        )
        try:
            report(target_tokens_per_s=measure_speed(process, options.seconds))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    main()
