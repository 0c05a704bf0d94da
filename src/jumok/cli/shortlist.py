"""`jumok shortlist MODEL pairs.tsv`: learn which pieces go with which, so that translating is faster."""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated, Any

import typer

from jumok.cli.arguments import ModelArgument, PairsArgument, say_engine
from jumok.errors import DataError

MOST_PAIRS = 200_000


def shortlist(
    model: ModelArgument,
    pairs: PairsArgument,
    valid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PAIRS", help="Pairs to measure the cost on; if not given, those that training held out."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Learn from the pairs a model was trained on which few pieces a translation can be made of.

    Added to the model folder and used with --shortlist, it makes translating faster. What it costs in BLEU,
    and how much faster it is, is measured, printed and stored.
    """
    from jumok.corpus import open_corpora
    from jumok.decoding import learn_shortlist
    from jumok.engines import load
    from jumok.evaluation import shortlist_costs
    from jumok.storage import read_stored_model, store_shortlist
    from jumok.training.sentences import read_sentences

    whole = load(model)
    say_engine(whole.engine)
    languages = {"source": whole.source_language or None, "target": whole.target_language or None}
    card = read_stored_model(model).card
    sentences = read_sentences(
        open_corpora(pairs, **languages),
        open_corpora(valid, **languages) if valid else [],
        held_out=card.recipe.training.held_out,
    )
    if not valid:
        _refuse_learnt_pairs(len(sentences.validation), card.facts.get("validation_pairs"))
    stride = -(-sentences.facts.pairs // MOST_PAIRS)
    learnt = learn_shortlist(whole, islice(sentences.pairs(), 0, None, stride))
    costs = shortlist_costs(whole, load(model, shortlist=learnt), sentences.validation)
    facts: dict[str, Any] = {
        "shortlist_costs": round(costs.bleu, 3),
        "shortlist_speed": round(costs.speed, 3),
        "shortlist_engine": whole.engine.name,
    }
    store_shortlist(model, learnt.to_bytes(), facts)
    found = {**facts, "bleu": costs.whole.bleu, "bleu_shortlisted": costs.shortlisted.bleu}
    found |= {"bleu_signature": costs.whole.bleu_signature, "validation_pairs": costs.whole.sentences}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=1))
        return
    typer.echo(f"always          {len(learnt.always):,} of {whole.vocabularies.target.size:,} pieces")
    typer.echo(f"beside a piece  {max(map(len, learnt.beside.values()), default=0):,} or fewer")
    typer.echo(
        f"BLEU            {costs.whole.bleu:.2f} with all pieces, {costs.shortlisted.bleu:.2f} with these: "
        f"it costs {costs.bleu:.2f} ({costs.whole.sentences:,} pairs, {costs.whole.bleu_signature})"
    )
    typer.echo(f"speed           {costs.speed:.2f} × (engine {whole.engine.name}, beam {whole.search.beam})")
    typer.echo(f"stored in {model}; `jumok translate {model} --shortlist` uses it")


def _refuse_learnt_pairs(held_out: int, validated: Any) -> None:
    """What a shortlist costs cannot be seen on pairs that the model has learnt by heart.

    Training leaves out those that are too long, which are never half of them.
    """
    if validated is not None and not held_out / 2 <= validated <= held_out:
        raise DataError(
            f"training validated on {validated:,} pairs, and would have held {held_out:,} out of these: it "
            "was given a validation set, or other pairs. Name pairs to measure on with --valid."
        )
