"""`jumok demo`: the whole line once, on the built-in corpus, in a few minutes.

It generates English–Korean pairs, trains on them with nothing set but the time, scores the model on
combinations it has never seen, translates a few sentences and draws what the model attended to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import EngineOption, say_engine

if TYPE_CHECKING:
    from jumok.decoding import Translator

MINUTES = 2.95
PAIRS = {"train": 120_000, "valid": 500, "test": 1_000}
TOKENISER = "13a"  # for BLEU; `jumok evaluate` has one of Korean, which needs a package of its own
SENTENCES = (
    "I go home.",
    "<polite> I go home.",
    "The student reads two books at the library.",
    "The teacher did not drink coffee yesterday.",
    "If it rains tomorrow, I will stay at home.",
)


def demo(
    out: Annotated[
        Path, typer.Option(help="Where the corpus, the run, the report, the picture and the page go.")
    ] = Path("runs/demo"),
    minutes: Annotated[float, typer.Option(help="How long to train.", min=0.05)] = MINUTES,
    pairs: Annotated[int, typer.Option(help="How many pairs to train on.", min=100)] = PAIRS["train"],
    engine: EngineOption = "auto",
) -> None:
    """Train on the built-in corpus, translate, score and draw: everything at once, in about three minutes."""
    from rich.console import Console

    from jumok.cli.display import TrainingDisplay
    from jumok.engines import load
    from jumok.training import Finished, training_events

    console = Console()
    _refuse_others(out, pairs)
    files = _write_corpus(out / "corpus", {**PAIRS, "train": pairs})
    with TrainingDisplay(console) as display:
        display.say(f"built-in corpus: {pairs:,} English–Korean pairs in {files['train']}", style="bold")
        for event in training_events(
            [str(files["train"])], out=out, valid=[str(files["valid"])], minutes=minutes
        ):
            display.show(event)
    if not isinstance(event, Finished) or event.model_folder is None:
        raise typer.Exit(code=130)
    translator = load(out / "model", engine=engine)
    say_engine(translator.engine)
    report = _report(translator, files["test"]) | {"train_seconds": round(event.seconds, 1), "pairs": pairs}
    drawn = _draw(translator, out)
    (out / "report.json").write_text(
        json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    _tell(report, out, drawn)


def _refuse_others(out: Path, pairs: int) -> None:
    """Nothing is written into a folder of somebody else's, nor over the pairs of a run that has begun."""
    from jumok.errors import RunFolderError
    from jumok.training.folder import RunFolder

    folder, train = RunFolder(out), _corpus_file(out / "corpus", "train")
    folder.refuse_foreign()
    if not folder.record_file.exists():
        return
    if not train.exists():  # a demo writes its corpus before its run begins
        raise RunFolderError(
            f"{out} holds another run, not a demo: {train} is missing. Choose another folder with --out."
        )
    if folder.record() is not None and (found := _count_lines(train)) != pairs:
        raise RunFolderError(
            f"{out} holds a demo on {found:,} pairs. Received: --pairs {pairs}. Give the same number to "
            "continue it, or choose another folder with --out."
        )


def _corpus_file(folder: Path, split: str) -> Path:
    return folder / f"{split}.en-ko.tsv"


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _write_corpus(folder: Path, counts: dict[str, int]) -> dict[str, Path]:
    """The three splits as TSV files, which also shows the format. Files of the right size are kept."""
    from jumok.corpus.english_korean import generate

    folder.mkdir(parents=True, exist_ok=True)
    files = {split: _corpus_file(folder, split) for split in counts}
    for split, path in files.items():
        if path.exists() and _count_lines(path) == counts[split]:
            continue
        with path.open("w", encoding="utf-8") as file:
            file.writelines(
                f"{pair.source}\t{pair.target}\t{pair.alignment}\n" for pair in generate(split, counts[split])
            )
    return files


def _report(translator: Translator, test: Path) -> dict[str, Any]:
    """Scores on the test split and a few translations, as they go into report.json."""
    from jumok.corpus import open_corpus
    from jumok.evaluation import evaluate_translator

    evaluation = evaluate_translator(translator, list(open_corpus([test]).pairs()), tokenize=TOKENISER)
    examples = [
        {
            "source": translation.source,
            "translation": translation.text,
            "alignment": str(translation.alignment),
        }
        for translation in translator.translate(SENTENCES)
    ]
    return {
        **evaluation.as_dict(),
        "parameters": sum(weight.numel() for weight in translator.model.parameters()),
        "examples": examples,
    }


def _draw(translator: Translator, out: Path) -> dict[str, Path]:
    """The map of one sentence as a picture, and all that can be seen of it as a page."""
    from jumok.look import save

    sentence = SENTENCES[-1]
    drawn = {"picture": out / "attention.svg", "page": out / "attention.html"}
    explanation = translator.explain(sentence)
    save(translator.word_attention(sentence, explanation.text), drawn["picture"])
    explanation.save(drawn["page"])
    return drawn


def _tell(report: dict[str, Any], out: Path, drawn: dict[str, Path]) -> None:
    typer.echo("")
    for example in report["examples"]:
        typer.echo(f"  {example['source']}\n  → {example['translation']}")
    typer.echo("")
    typer.echo(
        f"  BLEU {report['bleu']:.1f} ({TOKENISER}) · chrF {report['chrf']:.1f} on {report['sentences']:,} "
        "unseen pairs"
    )
    typer.echo(
        f"  alignment error {report['alignment_error']:.3f} · trained in {report['train_seconds']:.0f} s"
    )
    typer.echo(f"  model    {out / 'model'}")
    for what, path in drawn.items():
        typer.echo(f"  {what:<8} {path}")
    typer.echo(f"  report   {out / 'report.json'}")
    typer.echo(f"  try      jumok translate {out / 'model'}  ·  jumok look {out / 'model'} --live")
