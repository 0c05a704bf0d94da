"""`jumok shortlist MODEL pairs.tsv`: learn a vocabulary shortlist, which makes translation faster."""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated, Any

import typer

from jumok.cli.arguments import ModelArgument, PairsArgument, report_fallback
from jumok.errors import DataError, UnsupportedError

MAX_PAIRS = 200_000


def shortlist(
    model: ModelArgument,
    pairs: PairsArgument,
    valid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PAIRS", help="Pairs to measure the cost on; those that training held out if not given."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Learn from the training pairs which few target tokens a translation of each source token can contain.

    The shortlist is added to the model folder; --shortlist uses it to translate faster. Its cost in BLEU and
    the speed-up are measured, printed and stored.
    """
    from jumok.data import open_corpora  # start-up
    from jumok.evaluation import measure_shortlist_cost  # start-up
    from jumok.inference import learn_shortlist, load  # start-up
    from jumok.storage import read_stored_model, store_shortlist  # start-up
    from jumok.training.run.corpus_reader import read_sentences  # start-up

    if read_stored_model(model).card.recipe.source.kind == "pictures":
        raise UnsupportedError(
            f"The model in {model} reads pictures. A shortlist gives the translations of source words, which "
            "pictures do not have."
        )
    translator = load(model)
    report_fallback(translator.engine)
    languages = {"source": translator.source_language or None, "target": translator.target_language or None}
    card = read_stored_model(model).card
    sentences = read_sentences(
        open_corpora(pairs, **languages),
        open_corpora(valid, **languages) if valid else [],
        held_out_pairs=card.recipe.training.held_out_pairs,
    )
    if not valid:
        _refuse_training_pairs(len(sentences.validation_pairs), card.facts.get("validation_pairs"))
    stride = -(-sentences.facts.pairs // MAX_PAIRS)
    learned = learn_shortlist(translator, islice(sentences.pairs(), 0, None, stride))
    cost = measure_shortlist_cost(translator, load(model, shortlist=learned), sentences.validation_pairs)
    facts: dict[str, Any] = {
        "shortlist_costs": round(cost.bleu, 3),
        "shortlist_speed": round(cost.speedup, 3),
        "shortlist_engine": translator.engine.name,
    }
    store_shortlist(model, learned.to_bytes(), facts)
    full, shortlisted = cost.full_vocabulary, cost.shortlist
    results = {**facts, "bleu": full.bleu, "bleu_shortlisted": shortlisted.bleu}
    results |= {"bleu_signature": full.bleu_signature, "validation_pairs": full.sentences}
    if as_json:
        typer.echo(json.dumps(results, ensure_ascii=False, indent=1))
        return
    typer.echo(
        f"always allowed    {len(learned.always):,} of {translator.tokenizers.target.vocab_size:,} tokens"
    )
    typer.echo(f"per source token  {max(map(len, learned.by_source.values()), default=0):,} or fewer")
    typer.echo(
        f"BLEU              {full.bleu:.2f} without, {shortlisted.bleu:.2f} with the shortlist: "
        f"it costs {cost.bleu:.2f} ({full.sentences:,} pairs, {full.bleu_signature})"
    )
    conditions = f"engine {translator.engine.name}, beam {translator.search.beam}"
    typer.echo(f"speed             {cost.speedup:.2f} × ({conditions})")
    typer.echo(f"stored in {model}; `jumok translate {model} --shortlist` uses it")


def _refuse_training_pairs(num_held_out: int, num_validated: Any) -> None:
    """Refuse to measure on pairs that the model was trained on: the cost would look too small.

    Training records how many pairs it validated on. If that is not between half and all of what these files
    would hold out (training drops a few that are too long), they are not the files it was trained on.
    """
    from jumok.training.validation.protocol import MAX_PAIRS as MAX_VALIDATION_PAIRS  # start-up

    expected = min(num_held_out, MAX_VALIDATION_PAIRS)
    if num_validated is not None and not expected / 2 <= num_validated <= expected:
        raise DataError(
            f"Training validated on {num_validated:,} pairs, but of the pairs given here {num_held_out:,} "
            "would be held out. It was given a validation set, or other pairs. Give pairs to measure on with "
            "--valid."
        )
