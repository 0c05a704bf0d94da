"""`jumok shortlist MODEL pairs.tsv`: learn a vocabulary shortlist, which makes translation faster."""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated, Any

import typer

from jumok.cli.arguments import ColumnsOption, EncodingOption, ModelArgument, PairsArgument, report_fallback
from jumok.cli.language import localise
from jumok.errors import DataError, UnsupportedError

MAX_PAIRS = 200_000  # of a larger corpus, every n-th pair is used


def shortlist(
    model: ModelArgument,
    pairs: PairsArgument,
    valid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PAIRS", help="Pairs to measure the cost on; those that training held out if not given."
        ),
    ] = None,
    columns: ColumnsOption = "",
    encoding: EncodingOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Learn from the training pairs the few target tokens that can translate each source token.

    The shortlist is added to the model folder; --shortlist uses it to translate faster. Its cost in BLEU and
    the speed-up are measured, printed and stored.
    """
    from jumok.data.corpora import open_corpora, open_further_corpora  # start-up
    from jumok.data.hold_out import fingerprint_pairs  # start-up
    from jumok.evaluation.shortlist_cost import measure_shortlist_cost  # start-up
    from jumok.inference.loading import load  # start-up
    from jumok.inference.shortlist_learning import learn_shortlist  # start-up
    from jumok.storage.model_folder import read_stored_model, store_shortlist  # start-up
    from jumok.training.run.corpus_reader import read_sentences  # start-up
    from jumok.training.run.model_card import VALIDATION_FINGERPRINT  # start-up

    if read_stored_model(model).card.recipe.source.kind == "pictures":
        raise UnsupportedError(
            localise(
                "The model in {model} reads pictures. A shortlist gives the translations of source words, "
                "which pictures do not have.",
                model=model,
            )
        )
    translator = load(model)
    report_fallback(translator.engine)
    languages = {"source": translator.source_language or None, "target": translator.target_language or None}
    reading: dict[str, Any] = {**languages, "columns": columns, "encoding": encoding}
    card = read_stored_model(model).card
    sentences = read_sentences(
        open_corpora(pairs, **reading),
        open_further_corpora(valid, **reading) if valid else [],
        held_out_pairs=card.recipe.training.held_out_pairs,
    )
    fingerprint = fingerprint_pairs(sentences.validation_pairs)
    was_held_out = fingerprint == card.facts.get(VALIDATION_FINGERPRINT)
    if not valid and not was_held_out:
        _refuse_training_pairs(
            len(sentences.validation_pairs), is_recorded=VALIDATION_FINGERPRINT in card.facts
        )
    elif not was_held_out:
        warning = localise(
            "the pairs of --valid are not those that training held out: if the model was trained on them, "
            "the cost will look too small"
        )
        typer.echo(warning, err=True)
    stride = -(-sentences.facts.pairs // MAX_PAIRS)
    learned = learn_shortlist(translator, islice(sentences.pairs(), 0, None, stride))
    cost = measure_shortlist_cost(translator, load(model, shortlist=learned), sentences.validation_pairs)
    facts: dict[str, Any] = {
        "shortlist_costs": round(cost.bleu_loss, 3),
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
    lines = localise(
        "always allowed    {always:,} of {vocab_size:,} tokens\n"
        "per source token  {per_token:,} or fewer\n"
        "BLEU              {full.bleu:.2f} without, {shortlisted.bleu:.2f} with the shortlist: it costs "
        "{cost:.2f} ({full.sentences:,} pairs, {full.bleu_signature})\n"
        "speed             {speedup:.2f} × (engine {engine}, beam {beam})\n"
        "stored in {model}; `jumok translate {model} --shortlist` uses it",
        always=len(learned.always),
        vocab_size=translator.tokenizers.target.vocab_size,
        per_token=max(map(len, learned.by_source.values()), default=0),
        full=full,
        shortlisted=shortlisted,
        cost=cost.bleu_loss,
        speedup=cost.speedup,
        engine=translator.engine.name,
        beam=translator.search.beam,
        model=model,
    )
    typer.echo(lines)


def _refuse_training_pairs(num_held_out: int, *, is_recorded: bool) -> None:
    """Raise the error for validation pairs on which the model may have been trained.

    Measured on such pairs, the cost of the shortlist would look too small. `is_recorded` says whether the
    model card has a fingerprint of the pairs that training held out.
    """
    reason = (
        localise(
            "These pairs are not the pairs that training held out: training had a validation set, or other "
            "training pairs."
        )
        if is_recorded
        else localise(
            "The model was trained by an older jumok, which did not record the pairs that it held out."
        )
    )
    raise DataError(
        localise(
            "The cost of the shortlist would be measured on {count:,} of the pairs given here, which the "
            "model may have been trained on. {reason} Give pairs to measure on with --valid.",
            count=num_held_out,
            reason=reason,
        )
    )
