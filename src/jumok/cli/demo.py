"""`jumok demo`: every step once, on the built-in corpus, in a few minutes.

It generates English–Korean pairs, trains on them for a few minutes with default settings, scores the model on
unseen pairs, translates a few sentences and draws what the model attended to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import EngineOption, report_fallback
from jumok.cli.language import localise
from jumok.cli.status_line import status_line
from jumok.cli.wrapped_text import pad
from jumok.errors import RunFolderError

if TYPE_CHECKING:
    from jumok.inference.translator import Translator

MINUTES = 2.95  # of training
PAIRS = {"train": 120_000, "valid": 500, "test": 1_000}
SENTENCES = (
    "I go home.",
    "<polite> I go home.",
    "The student reads two books at the library.",
    "The teacher did not drink coffee yesterday.",
    "If it rains tomorrow, I will stay at home.",
)


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the corpus, the run, the report, the picture and the page.")
    ] = Path("runs/demo"),
    minutes: Annotated[float, typer.Option(help="Minutes of training.", min=0.05)] = MINUTES,
    pairs: Annotated[int, typer.Option(help="Number of training pairs.", min=100)] = PAIRS["train"],
    engine: EngineOption = "auto",
) -> None:
    """Train on the built-in corpus, translate, score and draw: every step, in about three minutes."""
    with status_line(localise("loading PyTorch")):
        from rich.console import Console  # start-up

        from jumok.cli.display import TrainingDisplay  # start-up
        from jumok.inference.loading import load  # start-up
        from jumok.training.events import Finished  # start-up
        from jumok.training.run.training_run import training_events  # start-up

    console = Console()
    _refuse_other_runs(out, pairs)
    files = _write_corpus(out / "corpus", {**PAIRS, "train": pairs})
    event = None
    with TrainingDisplay(console) as display:
        corpus = localise(
            "built-in corpus: {pairs:,} English–Korean pairs in {file}", pairs=pairs, file=files["train"]
        )
        display.print_line(corpus, style="bold")
        for event in training_events(
            [str(files["train"])], out=out, valid=[str(files["valid"])], minutes=minutes
        ):
            display.show(event)
    if event is None:  # torchrun has started this process, and its rank is not 0
        return
    if not isinstance(event, Finished) or event.reason == "interrupted":
        raise typer.Exit(code=130)
    translator = load(out / "model", engine=engine)
    report_fallback(translator.engine)
    report = _report(translator, files["test"]) | {"train_seconds": round(event.seconds, 1), "pairs": pairs}
    drawn_files = _draw(translator, out)
    (out / "report.json").write_text(
        json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    _print_report(report, out, drawn_files)


def _refuse_other_runs(out: Path, pairs: int) -> None:
    """Refuse a folder that is not a demo, or a demo that was started with another number of pairs."""
    from jumok.training.run.run_folder import RunFolder  # start-up

    folder, train = RunFolder(out), _corpus_file(out / "corpus", "train")
    folder.check_is_run_folder()
    if not folder.record_file.exists():
        return
    if not train.exists():  # a demo writes its corpus before the run starts
        raise RunFolderError(
            localise(
                "{folder} contains another run, not a demo: {file} is missing. Choose another folder with "
                "--out.",
                folder=out,
                file=train,
            )
        )
    if folder.record() is not None and (num_pairs := _count_lines(train)) != pairs:
        raise RunFolderError(
            localise(
                "{folder} contains a demo with {found:,} pairs. Received: --pairs {pairs}. Give the same "
                "number to continue it, or choose another folder with --out.",
                folder=out,
                found=num_pairs,
                pairs=pairs,
            )
        )


def _corpus_file(folder: Path, split: str) -> Path:
    return folder / f"{split}.en-ko.tsv"


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _write_corpus(folder: Path, counts: dict[str, int]) -> dict[str, Path]:
    """Write the three splits as TSV files; existing files with the right number of lines are reused."""
    from jumok.datasets.english_korean import generate  # start-up

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
    """Return scores on the test split and a few translations, as stored in report.json."""
    from jumok.data.corpora import open_corpus  # start-up
    from jumok.evaluation.translator_scores import evaluate_translator  # start-up

    evaluation = evaluate_translator(translator, list(open_corpus([test]).pairs()))
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
    """Save the attention map of one sentence as a picture, and its whole explanation as a page."""
    from jumok.analysis.explainer import explain  # start-up
    from jumok.analysis.explanation_files import save_explanation  # start-up
    from jumok.plots.map_files import save  # start-up

    sentence = SENTENCES[-1]
    files = {"picture": out / "attention.svg", "page": out / "attention.html"}
    explanation = explain(translator, sentence)
    save(translator.word_attention(sentence, explanation.text), files["picture"])
    save_explanation(explanation, files["page"])
    return files


def _print_report(report: dict[str, Any], out: Path, drawn_files: dict[str, Path]) -> None:
    [tokenizer] = [
        part.removeprefix("tok:") for part in report["bleu_signature"].split("|") if part.startswith("tok:")
    ]
    typer.echo("")
    for example in report["examples"]:
        typer.echo(f"  {example['source']}\n  → {example['translation']}")
    typer.echo("")
    scores = localise(
        "  BLEU {bleu:.1f} ({tokenizer}) · chrF {chrf:.1f} on {sentences:,} unseen pairs",
        bleu=report["bleu"],
        tokenizer=tokenizer,
        chrf=report["chrf"],
        sentences=report["sentences"],
    )
    typer.echo(scores)
    training = localise(
        "  alignment error {error:.3f} · trained in {seconds:.0f} s",
        error=report["alignment_error"],
        seconds=report["train_seconds"],
    )
    typer.echo(training)
    rows = {
        localise("model"): out / "model",
        localise("picture"): drawn_files["picture"],
        localise("page"): drawn_files["page"],
        localise("report"): out / "report.json",
        localise("try"): f"jumok translate {out / 'model'}  ·  jumok look {out / 'model'} --live",
    }
    for label, value in rows.items():
        typer.echo(f"  {pad(label, 8)} {value}")
