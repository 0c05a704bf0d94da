"""Every mechanism at every site of the Transformer that it supports, one site at a time or all at once."""

from __future__ import annotations

import pytest
import torch

from jumok.attention import CATALOGUE
from jumok.config.recipe import AttentionSettings, TransformerSettings
from jumok.errors import UnsupportedError
from jumok.inference.search.beam import beam_search
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan
from jumok.models.build import build_model
from jumok.models.validate import ATTENTION_NEEDS
from support.model_batches import BATCH, ONLY_SOURCE, check_steps, losses_of_twenty_updates

VOCAB_SIZE = 30
SMALL = TransformerSettings(
    width=16, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=2, dropout=0.0
)
SITES = {
    setting.removesuffix("_attention"): needs for setting, needs in ATTENTION_NEEDS["transformer"].items()
}
SUPPORTED = [
    (name, site)
    for name, entry in CATALOGUE.items()
    for site, needs in SITES.items()
    if not entry.supports.missing(*needs)
]
REFUSED = [(name, site) for name in CATALOGUE for site in SITES if (name, site) not in SUPPORTED]
every_site = pytest.mark.parametrize(("name", "site"), SUPPORTED)
every_mechanism = pytest.mark.parametrize("name", list(dict.fromkeys(name for name, _ in SUPPORTED)))


def make(name: str, *sites: str, **changes):
    """Return a model with the mechanism at these sites; without sites, at every site that it supports."""
    torch.manual_seed(5)
    sites = sites or tuple(site for mechanism, site in SUPPORTED if mechanism == name)
    mechanisms = {f"{site}_attention": AttentionSettings(kind=name) for site in sites}
    settings = SMALL.model_copy(update={**mechanisms, **changes})
    return build_model(
        settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True
    ).eval()


@every_site
def test_steps_equal_the_teacher_forced_pass(name, site):
    check_steps(make(name, site), atol=1e-4)


@every_site
def test_every_site_has_a_finite_map_without_weight_on_padding(name, site):
    weights = make(name, site).attention(BATCH)
    assert set(weights) == {"encoder", "decoder", "cross"}
    assert torch.all(weights["cross"][1, ..., 3:] == 0)  # padding after two tokens and </s>
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


@every_mechanism
def test_twenty_updates_reduce_the_loss(name):
    losses = losses_of_twenty_updates(make(name, width=32))
    assert losses[-1] < 0.6 * losses[0]


@every_mechanism
def test_beam_search_is_at_least_as_good_as_greedy(name):
    model = make(name)
    plan = SearchPlan(beam=3, max_length_ratio=1.0, extra_tokens=3, length_penalty=0.0)
    for wide, narrow in zip(
        beam_search(model, ONLY_SOURCE, plan), greedy_search(model, ONLY_SOURCE, plan), strict=True
    ):
        assert len(wide[0].ids) > 0
        assert wide[0].log_prob >= narrow[0].log_prob - 1e-4


@pytest.mark.parametrize(("name", "site"), REFUSED)
def test_an_unsupported_mechanism_is_refused(name, site):
    with pytest.raises(UnsupportedError, match=rf'model\.{site}_attention cannot be "{name}"'):
        make(name, site)
