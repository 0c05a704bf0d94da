"""`jumok clean pairs.tsv --model en-ko --back ko-en --out clean.tsv`: drop pairs that do not match."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import ColumnsOption, EncodingOption, PairsArgument
from jumok.cli.language import localise, localise_text
from jumok.cli.status_line import status_line
from jumok.cli.wrapped_text import shorten
from jumok.errors import DataError, RecipeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.data.corpora import Corpus
    from jumok.evaluation.pair_scores import PairScore
    from jumok.inference.translator import Translator
    from jumok.types import Pair

    ScoredPair = tuple[Pair, PairScore]

BLOCK_PAIRS = 2048
DEFAULT_SHARE = 0.8


def clean(
    pairs: PairsArgument,
    model: Annotated[Path, typer.Option(metavar="MODEL", help="A model that translates the pairs.")],
    back: Annotated[Path, typer.Option(metavar="MODEL", help="A model of the other direction.")],
    out: Annotated[Path, typer.Option(help="File for the pairs that are kept, in their order.")],
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="Share of the pairs to keep, the best ones: 80% (default) or 0.8."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Keep the pairs with at least this score instead, from 0 to 1.", min=0, max=1),
    ] = None,
    dropped: Annotated[
        Path | None, typer.Option(help="File for the pairs that are dropped; default: beside --out.")
    ] = None,
    columns: ColumnsOption = "",
    encoding: EncodingOption = "",
    examples: Annotated[int, typer.Option(help="Examples of dropped and kept pairs.", min=0, max=50)] = 3,
) -> None:
    """Drop the pairs whose sides do not translate each other, judged by one model per direction.

    The score of a pair is exp(-(|H1 - H2| + (H1 + H2) / 2)), where H1 and H2 are the cross-entropies per
    token of the target given the source and of the source given the target (Junczys-Dowmunt 2018). Train the
    models on pairs that you trust: a model that was trained on a wrong pair finds it probable.
    Pairs that training would skip (`jumok check` shows them) are left out first.
    """
    share = _parse_share(keep, threshold)
    dropped = dropped or out.with_name(f"{out.stem}.dropped.tsv")
    if out.resolve() == dropped.resolve():
        raise DataError(localise("--out and --dropped are two files. Received: {file} for both.", file=out))
    _refuse_unwritable(out, dropped)

    from jumok.data.corpora import open_corpora  # start-up
    from jumok.evaluation.pair_scores import check_directions  # start-up
    from jumok.inference.loading import load  # start-up

    forward, backward = load(model, engine="torch"), load(back, engine="torch")
    check_directions(forward, backward)
    languages = {"source": forward.source_language or None, "target": forward.target_language or None}
    reading: dict[str, Any] = {**languages, "columns": columns, "encoding": encoding}
    corpora = open_corpora(pairs, **reading)
    skipped: Counter[Any] = Counter()
    scores = _score(forward, backward, corpora, skipped)
    if not scores:
        raise DataError(
            localise(
                "No pair was left to score. Skipped: {skipped}. `jumok check` with the same files shows "
                "examples of each.",
                skipped=_describe_skipped(skipped) or localise("none"),
            )
        )
    limit = threshold if threshold is not None else _lowest_kept_score(scores, share)
    _write(corpora, scores, limit, out, dropped, (forward.source_language, forward.target_language))
    _report(corpora, scores, limit, skipped, examples)
    typer.echo(localise("wrote {out} and {dropped}", out=out, dropped=dropped))


def _parse_share(keep: str | None, threshold: float | None) -> float:
    """Return the share of the option --keep, or the default. Refuse --keep together with --threshold."""
    if keep is not None and threshold is not None:
        raise RecipeError(
            localise("--keep and --threshold both say which pairs are kept. Leave one of them out.")
        )
    if keep is None:
        return DEFAULT_SHARE
    try:
        share = float(keep.removesuffix("%")) / (100 if keep.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise RecipeError(
            localise("--keep is a share of the pairs, such as 80% or 0.8. Received: {keep!r}.", keep=keep)
        )
    return share


def _refuse_unwritable(*paths: Path) -> None:
    """Raise an error if an output file exists already, or if its folder does not exist."""
    for path in paths:
        if path.exists():
            raise DataError(
                localise("{file} exists already. Choose another name, or move it away.", file=path)
            )
        if not path.parent.is_dir():
            raise DataError(
                localise("{folder} is not a folder. Make it, or choose another name.", folder=path.parent)
            )


def _score(
    forward: Translator, backward: Translator, corpora: Sequence[Corpus], skipped: Counter[Any]
) -> list[PairScore]:
    """Return the scores of the pairs that training would not skip, in their order."""
    from jumok.data.cleaning import clean_pairs  # start-up
    from jumok.evaluation.pair_scores import score_pairs  # start-up

    scores: list[PairScore] = []
    stream = clean_pairs(corpora, skipped=skipped)
    with status_line(localise("scoring pairs")) as show:
        while block := list(islice(stream, BLOCK_PAIRS)):
            scores.extend(score_pairs(forward, backward, block))
            show(localise("scoring pairs: {count:,} done", count=len(scores)))
    return scores


def _lowest_kept_score(scores: Sequence[PairScore], share: float) -> float:
    """Return the lowest score of the pairs that are kept, which are about this share of all pairs, the best.

    They are more if several pairs have the lowest score.
    A pair that is too long for a model has the score 0. It is kept only if `share` is 1, or if all pairs have
    the score 0.
    """
    ranked = sorted((scored.score for scored in scores), reverse=True)
    lowest = ranked[max(round(share * len(ranked)), 1) - 1]
    return lowest if lowest > 0 or share == 1 else min(filter(None, ranked), default=0.0)


def _pairs_with_scores(corpora: Sequence[Corpus], scores: Sequence[PairScore]) -> Iterator[ScoredPair]:
    """Read the pairs again, in the order in which `_score` has scored them."""
    from jumok.data.cleaning import clean_pairs  # start-up

    return zip(clean_pairs(corpora), scores, strict=True)


def _write(
    corpora: Sequence[Corpus],
    scores: Sequence[PairScore],
    limit: float,
    out: Path,
    dropped: Path,
    languages: tuple[str, str],
) -> None:
    """Write pairs that score at least `limit`, with alignments, and the other pairs with their scores."""
    from jumok.storage.folders import write_file  # start-up

    source, target = (code or side for code, side in zip(languages, ("source", "target"), strict=True))
    kept_rows, dropped_rows = list[list[str]](), list[list[str]]()
    for pair, score in _pairs_with_scores(corpora, scores):
        texts = [_one_line(pair.source), _one_line(pair.target)]
        if score.score >= limit:
            kept_rows.append(texts if pair.alignment is None else [*texts, str(pair.alignment)])
        else:
            dropped_rows.append([f"{score.score:.6f}", f"{score.forward:.3f}", f"{score.back:.3f}", *texts])
    has_links = any(len(row) > 2 for row in kept_rows)
    header = [source, target, *(["alignment"] if has_links else [])]
    rows = [[*row, ""][:3] if has_links else row for row in kept_rows]
    write_file(out, _table([header, *rows]))
    write_file(dropped, _table([["score", "forward", "back", source, target], *dropped_rows]))


def _table(rows: Sequence[Sequence[str]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode("utf-8", "surrogatepass")


def _one_line(text: str) -> str:
    return re.sub(r"[\t\r\n]+", " ", text)


def _report(
    corpora: Sequence[Corpus],
    scores: Sequence[PairScore],
    limit: float,
    skipped: Counter[Any],
    examples: int,
) -> None:
    """Print how many pairs are kept and dropped, and examples from both sides of the limit."""
    if reasons := _describe_skipped(skipped):
        typer.echo(localise("left out first, as in training: {reasons}", reasons=reasons))
    ranked = sorted(_pairs_with_scores(corpora, scores), key=lambda scored: scored[1].score)
    dropped_pairs = [scored for scored in ranked if scored[1].score < limit]
    kept_pairs = ranked[len(dropped_pairs) :]
    message = localise(
        "kept {kept:,} of {pairs:,} pairs ({share:.0%}), with a score of at least {limit:.4f}; dropped "
        "{dropped:,}",
        kept=len(kept_pairs),
        pairs=len(ranked),
        share=len(kept_pairs) / len(ranked),
        limit=limit,
        dropped=len(dropped_pairs),
    )
    typer.echo(message)
    _show_examples(localise("dropped, lowest scores"), dropped_pairs[:examples])
    _show_examples(
        localise("dropped, highest scores"), dropped_pairs[examples:][-examples:] if examples else []
    )
    _show_examples(localise("kept, lowest scores"), kept_pairs[:examples])


def _show_examples(title: str, scored: Sequence[ScoredPair]) -> None:
    if scored:
        typer.echo(f"{title}:")
    for pair, score in scored:
        typer.echo(f"  {score.score:.4f}  {shorten(pair.source)} ||| {shorten(pair.target)}")


def _describe_skipped(skipped: Counter[Any]) -> str:
    return ", ".join(localise_text(f"{count:,} {fault.title}") for fault, count in skipped.items() if count)
