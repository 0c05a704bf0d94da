"""Make the folders next to this file with jumok of commit d625b24.

The folders were made once and must not change. Folders of a later jumok would not show that a new jumok loads
folders of an old jumok.
This script uses the public interface and the setting names of that commit. To run it again, use the source of
that commit (`git worktree add OLD d625b24`):

    PYTHONPATH=OLD/src OMP_NUM_THREADS=1 python tests/stored/make_folders.py

The script changes to its own folder and uses relative paths only, so that no absolute path is stored.

    pairs.en-ko.tsv                  training pairs: digits as English and Korean words
    text.en.txt                      training text: digits that count up or down, as English words
    models/NAME/                     model folders
    half-way/NAME/                   interrupted run folders
    half-way/written.toml            a recipe written by hand
    explanation.json                 the explanation of one translation
    expected.json                    the output of the models
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import jumok

HERE = Path(__file__).resolve().parent
PAIRS, TEXT, WRITTEN = "pairs.en-ko.tsv", "text.en.txt", "half-way/written.toml"
ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
KOREAN = ["영", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구"]

# Later these settings were renamed: text.pieces, model.places, search.longest, the option `longest` of a
# mechanism, and longest, warmup, average and ema of `training`. Their values in this file differ from the
# defaults, so that the tests notice if a value is lost.
COMMON = {
    "text.pieces": 80,
    "text.byte_fallback": False,
    "model.dropout": 0.0,
    "training.batch_tokens": 256,
    "training.steps": 500,
    "training.learning_rate": 0.01,
    "training.warmup": 50,
    "training.validate_every": 200,
    "training.longest": 12,
    "search.longest": 1.5,
}
BLOCKS = {"model.width": 16, "model.feed_forward": 32, "model.heads": 2}
TRANSFORMER = BLOCKS | {"model.encoder_layers": 1, "model.decoder_layers": 1}
RECURRENT = {
    "model.family": "recurrent",
    "model.width": 24,
    "model.embedding": 16,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
}
ONE_STACK = BLOCKS | {"model.layers": 1}

TRANSLATORS: dict[str, dict[str, Any]] = {
    "transformer": TRANSFORMER | {"text.byte_fallback": True, "text.pieces": 320},
    "transformer-post-learned": TRANSFORMER
    | {
        "text.kind": "bpe",
        "text.shared": False,
        "model.norm": "post",
        "model.positions": "learned",
        "model.places": 48,
        "model.tied": False,
    },
    "transformer-rotary-restricted": TRANSFORMER
    | {
        "model.norm_kind": "rms",
        "model.positions": "rotary",
        "model.encoder_attention": {"kind": "restricted", "neighbours": 2},
        "model.decoder_attention": {"kind": "restricted", "neighbours": 3},
        "training.steps": 1500,
    },
    "transformer-linear-batch": TRANSFORMER
    | {
        "model.norm_kind": "batch",
        "model.encoder_attention": "efficient",
        "model.decoder_attention": "linear",
        "model.cross_attention": "linear",
        "training.steps": 800,
    },
    "transformer-alibi-location": TRANSFORMER  # the option `longest` is derived
    | {"model.positions": "alibi", "model.cross_attention": "luong-location"},
    "transformer-relative-keys": TRANSFORMER | {"model.positions": "relative-keys", "training.steps": 1200},
    "transformer-relative-bias-location": TRANSFORMER
    | {
        "model.positions": "relative-bias",
        "model.cross_attention": {"kind": "luong-location", "longest": 30},
    },
    "recurrent-gru-bahdanau": RECURRENT
    | {"model.attention": {"kind": "bahdanau", "units": 12, "normed": True}},
    "recurrent-lstm-general": RECURRENT
    | {
        "model.cell": "lstm",
        "model.attention": "luong-general",
        "model.input_feeding": True,
        "training.steps": 600,
    },
    "recurrent-none": RECURRENT | {"model.attention": "none", "model.width": 32, "training.steps": 2500},
    "recurrent-location": RECURRENT | {"model.attention": {"kind": "luong-location", "longest": 30}},
    "recurrent-rnn-local": RECURRENT
    | {"model.cell": "rnn", "model.attention": {"kind": "luong-local-p", "window": 2}, "text.shared": False},
    "decoder-only": ONE_STACK
    | {
        "model.family": "decoder-only",
        "model.positions": "learned",
        "model.places": 60,
        "model.layers": 2,
        "training.steps": 1200,
    },
}
TEXT_MODELS: dict[str, dict[str, Any]] = {
    "language-model": ONE_STACK
    | {"model.family": "decoder-only", "model.layers": 2, "search.longest": None, "training.steps": 800},
    "encoder-only": ONE_STACK
    | {
        "model.family": "encoder-only",
        "model.positions": "learned",
        "model.places": 40,
        "search.longest": None,
        "training.steps": 800,
    },
}

HALF_WAY = COMMON | {"training.steps": 80, "training.validate_every": 40}
SAMPLING_AND_AVERAGING = {"text.sampling": 0.1, "training.ema": 0.9, "training.average": 2}
WRITTEN_RECIPE = """\
# Written by hand: a Transformer that knows so many places and no more.
[text]
pieces = 72
byte_fallback = false

[model]
width = 16
feed_forward = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
positions = "learned"
places = 56
cross_attention = { kind = "luong-location", longest = 33 }

[training]
longest = 14
steps = 80
batch_tokens = 256
learning_rate = 0.01
warmup = 20
validate_every = 40

[search]
longest = 1.25
beam = 3
"""

MIN_SCORE_GAP = 0.1
"""Minimum difference between the scores of the best and the second-best translation in expected.json."""


def main() -> None:
    os.chdir(HERE)
    os.environ["JUMOK_CACHE"] = tempfile.mkdtemp()
    for folder in ("models", "half-way"):
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir()
    write_corpora()
    for name, settings in TRANSLATORS.items():
        train(name, PAIRS, COMMON | settings)
    for name, settings in TEXT_MODELS.items():
        train(name, TEXT, COMMON | settings)
    run_command("shortlist", "models/transformer", PAIRS)
    make_interrupted_runs()
    expected = {
        "translators": {name: translations(name) for name in TRANSLATORS},
        "language-model": completions(),
        "scores": {name: scores_of_text(name) for name in TEXT_MODELS},
    }
    Path("expected.json").write_text(
        json.dumps(expected, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    first = expected["translators"]["transformer"]["lines"][0]
    jumok.load("models/transformer", engine="torch").explain(first["source"]).save("explanation.json")


# --- training data ---


def write_corpora() -> None:
    """Write pairs and a text that have few words and follow one rule, so that tiny models learn the rule."""
    lines = (f"{english(d)}\t{korean(d)}\t{alignment(d)}\n" for d in digit_rows(400, seed=1))
    Path(PAIRS).write_text("".join(lines), encoding="utf-8")
    # Six digits that count up or down by one or two.
    sequences = [tuple((first + i * by) % 10 for i in range(6)) for first in range(10) for by in (1, 2, 8, 9)]
    random.Random(1).shuffle(sequences)
    Path(TEXT).write_text("".join(english(digits) + "\n" for digits in sequences), encoding="utf-8")


def digit_rows(count: int, seed: int) -> list[tuple[int, ...]]:
    generator = random.Random(seed)
    rows: dict[tuple[int, ...], None] = {}
    while len(rows) < count:
        rows[tuple(generator.randrange(10) for _ in range(generator.randint(2, 5)))] = None
    return list(rows)


def english(digits: tuple[int, ...]) -> str:
    return " ".join(ENGLISH[digit] for digit in digits) + "."


def korean(digits: tuple[int, ...]) -> str:
    return " ".join(KOREAN[digit] for digit in digits) + "."


def alignment(digits: tuple[int, ...]) -> str:
    return " ".join(f"{i}-{i}" for i in range(len(digits)))


# --- models ---


def run_command(*arguments: str) -> str:
    """Run a command of the jumok that is imported here, not of an installed one, and return its output."""
    command = [sys.executable, "-m", "jumok", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(jumok.__file__).resolve().parents[1])}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def train(name: str, corpus: str, settings: dict[str, Any]) -> None:
    """Train with the command line, and keep only the model folder."""
    overrides = {key: value for key, value in settings.items() if value is not None}
    family = overrides.pop("model.family", "transformer")
    arguments = [word for key, value in overrides.items() for word in ("--set", f"{key}={as_toml(value)}")]
    run = f"models/{name}.run"
    run_command("train", corpus, "--out", run, "--model", family, *arguments)
    Path(run, "model").rename(f"models/{name}")
    shutil.rmtree(run)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {as_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


# --- interrupted runs ---


def make_interrupted_runs() -> None:
    Path(WRITTEN).write_text(WRITTEN_RECIPE, encoding="utf-8")
    interrupt("single", **HALF_WAY, **TRANSFORMER, **SAMPLING_AND_AVERAGING)
    kill("team", **HALF_WAY, **RECURRENT, **{"training.processes": 2})
    kill("written", recipe=written_recipe())
    encoder_from = {"model.encoder_from": "models/encoder-only"}
    interrupt("encoder-from", **(HALF_WAY | encoder_from | {"model.decoder_layers": 1}))


def written_recipe() -> Any:
    import tomllib

    return jumok.Recipe.model_validate(tomllib.loads(WRITTEN_RECIPE))


def interrupt(name: str, **settings: Any) -> None:
    """Train, and interrupt the run as Ctrl-C does, when the first checkpoint has been saved."""
    saved = False
    for event in jumok.training_events(PAIRS, out=f"half-way/{name}", **settings):
        if type(event).__name__ == "Saved" and not saved:
            saved = True
            signal.raise_signal(signal.SIGINT)  # a second signal would stop the run without saving


def kill(name: str, **settings: Any) -> None:
    """Train, and abandon the run some steps after the first checkpoint, as if its process were killed.

    The steps after the checkpoint are lost, although metrics.jsonl contains their lines.
    """
    saved = False
    events = jumok.training_events(PAIRS, out=f"half-way/{name}", **settings)
    for event in events:
        if saved and type(event).__name__ == "Progress":
            break
        saved = saved or type(event).__name__ == "Saved"
    events.close()


# --- expected output ---


def translations(name: str) -> dict[str, Any]:
    """Return sentences whose translations are the same for every engine, batch and number of threads."""
    translators = {engine: model for engine in ("torch", "ctranslate2") if (model := load(name, engine))}
    lines = [line for source in candidate_sources() if (line := certain_line(translators, source))]
    short, long = (
        [line for line in lines if (". " in line["source"]) == is_long] for is_long in (False, True)
    )
    selected = [*short[:5], *long[:2]]
    require_enough_lines(name, selected)
    for threads in (2, 1):
        torch.set_num_threads(threads)
        require_independence_of_batches(name, selected)
    return {"engines": list(translators), "lines": selected}


def candidate_sources() -> list[str]:
    """Return new sentences, and lines of three new sentences. These lines are too long and must be split."""
    known = {line.split("\t")[0] for line in Path(PAIRS).read_text(encoding="utf-8").splitlines()}
    new = [english(digits) for digits in digit_rows(80, seed=2) if english(digits) not in known]
    # Only sentences of five words are used. When a line is split, a sentence of five words stays alone.
    long = [sentence for sentence in new[12:] if len(sentence.split()) == 5]
    return [*new[:12], *(" ".join(long[i : i + 3]) for i in range(0, 12, 3))]


def load(name: str, engine: str) -> jumok.Translator | None:
    try:
        return jumok.load(f"models/{name}", engine=engine)
    except jumok.UnsupportedError:
        return None


def certain_line(translators: dict[str, jumok.Translator], source: str) -> dict[str, Any] | None:
    """Return a line of expected.json; None if engines disagree or the second-best score is too close."""
    beam_texts = {translator.translate([source])[0].text for translator in translators.values()}
    greedy_texts = {translator.translate([source], beam=1)[0].text for translator in translators.values()}
    best = translators["torch"].translate([source], n_best=4)[0]
    other_scores = [score for _, score in best.alternatives]
    is_close = any(best.score - score < MIN_SCORE_GAP for score in other_scores)
    if len(beam_texts) > 1 or len(greedy_texts) > 1 or is_close:
        return None
    score = round(best.score, 4)
    return {"source": source, "beam": beam_texts.pop(), "greedy": greedy_texts.pop(), "score": score}


def require_independence_of_batches(name: str, lines: list[dict[str, Any]]) -> None:
    """Exit if the translation of a line depends on the other lines in its batch."""
    for engine in ("torch", "ctranslate2"):
        if (translator := load(name, engine)) is None:
            continue
        for batch_tokens in (1, 32, 4096):
            for beam, key in ((None, "beam"), (1, "greedy")):
                sources = [line["source"] for line in lines]
                translations = translator.translate(sources, beam=beam, batch_tokens=batch_tokens)
                if [translation.text for translation in translations] != [line[key] for line in lines]:
                    raise SystemExit(f"{name}: batches of {batch_tokens} differ with {engine}")


def require_enough_lines(name: str, lines: list[dict[str, Any]]) -> None:
    num_correct = sum(line["beam"] == korean_translation(line["source"]) for line in lines)
    print(f"{name}: {num_correct} of {len(lines)} lines are correct")  # noqa: T201
    if len(lines) < 7:
        raise SystemExit(f"{name}: too few lines are certain")


def korean_translation(source: str) -> str:
    words = source.replace(".", "").split()
    marks = ["." if word.endswith(".") else "" for word in source.split()]
    return " ".join(KOREAN[ENGLISH.index(word)] + mark for word, mark in zip(words, marks, strict=True))


def completions() -> list[dict[str, str]]:
    model = jumok.load_text_model("models/language-model")
    beginnings = ["one two", "three five", "nine eight", "zero eight six four"]
    return [
        {"beginning": beginning, "text": text}
        for beginning, text in zip(beginnings, model.complete(beginnings), strict=True)
    ]


def scores_of_text(name: str) -> dict[str, Any]:
    """Return the output of `jumok evaluate` for a text model."""
    return json.loads(run_command("evaluate", f"models/{name}", TEXT, "--json"))


if __name__ == "__main__":
    main()
