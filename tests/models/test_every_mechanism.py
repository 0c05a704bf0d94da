"""Every mechanism at every site of the Transformer that it supports, one site at a time."""

from __future__ import annotations

import pytest
import torch
from model_batches import BATCH, ONLY_SOURCE, check_steps, losses_of_twenty_steps

from jumok.attention import CATALOGUE
from jumok.decoding import SearchPlan, beam, greedy
from jumok.errors import UnsupportedError
from jumok.models import build_model
from jumok.models.build import NEEDS
from jumok.recipe import AttentionSettings, TransformerSettings

PIECES = 30
SMALL = TransformerSettings(
    width=16, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=2, dropout=0.0
)
PLACES = [
    (name, site)
    for name, entry in CATALOGUE.items()
    for site, needs in NEEDS.items()
    if not entry.supports.missing(*needs)
]
REFUSED = [
    (name, site)
    for name, entry in CATALOGUE.items()
    for site, needs in NEEDS.items()
    if entry.supports.missing(*needs)
]
every_place = pytest.mark.parametrize(("name", "site"), PLACES)


def make(name: str, site: str, **changes):
    torch.manual_seed(5)
    settings = SMALL.model_copy(update={f"{site}_attention": AttentionSettings(kind=name), **changes})
    return build_model(settings, source_pieces=PIECES, target_pieces=PIECES, shared=True).eval()


@every_place
def test_steps_are_the_teacher_forced_pass(name, site):
    check_steps(make(name, site), atol=1e-4)


@every_place
def test_every_site_has_its_map(name, site):
    weights = make(name, site).attention(BATCH)
    assert set(weights) == {"encoder", "decoder", "cross"}
    assert torch.all(weights["cross"][1, ..., 3:] == 0)
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


@every_place
def test_twenty_steps_bring_the_loss_down(name, site):
    losses = losses_of_twenty_steps(make(name, site, width=32))
    assert losses[-1] < 0.6 * losses[0]


@every_place
def test_beam_search_is_at_least_as_good_as_greedy(name, site):
    model = make(name, site)
    plan = SearchPlan(beam=3, longest=1.0, extra=3, length_penalty=0.0)
    for wide, narrow in zip(beam(model, ONLY_SOURCE, plan), greedy(model, ONLY_SOURCE, plan), strict=True):
        assert len(wide[0].ids) > 0
        assert wide[0].log_prob >= narrow[0].log_prob - 1e-4


@pytest.mark.parametrize(("name", "site"), REFUSED)
def test_what_cannot_stand_at_a_site_is_refused(name, site):
    with pytest.raises(UnsupportedError, match=rf'model\.{site}_attention cannot be "{name}"'):
        make(name, site)
