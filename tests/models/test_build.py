"""Models are built according to their settings. Settings that cannot be combined are refused."""

import math
from pathlib import Path

import pytest
import torch

from jumok.attention import CATALOGUE, CatalogueEntry, MultiHead, ScaledDot, Supports
from jumok.config.recipe import (
    SETTINGS_BY_FAMILY,
    AttentionSettings,
    DecoderOnlySettings,
    EncoderOnlySettings,
    TransformerSettings,
    make_recipe,
    read_recipe,
)
from jumok.config.resolve import Overrides
from jumok.errors import RecipeError, UnsupportedError
from jumok.models.build import build_model
from jumok.models.layers import Embedding, FeedForward, PostNorm, PreNorm
from jumok.models.validate import (
    attention_overrides,
    check_model,
    check_overrides,
    check_recipe,
    set_max_keys_of_mechanisms,
)
from support.model_batches import check_steps

SMALL = TransformerSettings(width=16, heads=2, feed_forward=32, encoder_layers=2, decoder_layers=3)


def build(*, source_vocab_size=50, target_vocab_size=50, shared=True, **changes):
    settings = SMALL.model_copy(update=changes)
    return build_model(
        settings, source_vocab_size=source_vocab_size, target_vocab_size=target_vocab_size, shared=shared
    )


def test_three_matrices_are_tied_if_the_vocabulary_is_shared():
    model = build()
    assert model.source_embedding.weight is model.target_embedding.weight is model.output.weight


def test_two_matrices_are_tied_if_the_vocabulary_is_not_shared():
    model = build(shared=False, source_vocab_size=30)
    assert model.target_embedding.weight is model.output.weight
    assert model.source_embedding.weight.shape == (30, 16)


def test_untied_matrices_are_separate():
    model = build(tied=False)
    weights = {id(part.weight) for part in (model.source_embedding, model.target_embedding, model.output)}
    assert len(weights) == 3


# There are two encoder layers with two sublayers each, and three decoder layers with three sublayers each.
@pytest.mark.parametrize(
    ("norm", "residual", "num_norms"),
    [("pre", PreNorm, 2 * 2 + 3 * 3 + 2), ("post", PostNorm, 2 * 2 + 3 * 3)],
)
def test_every_sublayer_has_a_norm_and_pre_norm_adds_one_per_stack(norm, residual, num_norms):
    model = build(norm=norm)
    assert isinstance(model.encoder[0].around_attention, residual)
    assert sum(isinstance(module, torch.nn.LayerNorm) for module in model.modules()) == num_norms


def test_pre_norm_and_post_norm_follow_their_formulas():
    states, output = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    norm = torch.nn.LayerNorm(8)
    pre, post = PreNorm(width=8, dropout=0.0), PostNorm(width=8, dropout=0.0)
    torch.testing.assert_close(pre.sublayer_input(states), norm(states))
    torch.testing.assert_close(pre.add_output(states, output), states + output)
    assert post.sublayer_input(states) is states
    torch.testing.assert_close(post.add_output(states, output), norm(states + output))


def test_embeddings_are_scaled_and_positions_added():
    embedding = Embedding(vocab_size=5, width=4, dropout=0.0)
    positions = torch.tensor([[math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)]])
    expected = 2 * embedding.weight[[1]] + positions  # √width = 2
    torch.testing.assert_close(embedding(torch.tensor([[1]]), offset=3)[0], expected)


def test_the_feed_forward_network_follows_the_formula():
    layer = FeedForward(width=4, hidden=6)
    states = torch.randn(2, 3, 4)
    hidden = (states @ layer.widen.weight.T + layer.widen.bias).clamp(min=0)
    torch.testing.assert_close(layer(states), hidden @ layer.narrow.weight.T + layer.narrow.bias)


def test_initial_weights_follow_the_rule_of_their_kind():
    """Xavier for matrices, normal(0, width^-0.5) for embeddings, zeros for biases, ones for norms."""
    torch.manual_seed(0)
    model = build(width=64, feed_forward=256, source_vocab_size=2000, target_vocab_size=2000)
    assert model.output.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    for name, value in model.named_parameters():
        if name.endswith("bias"):
            assert torch.all(value == 0), name
        elif "norm" in name or name.startswith("after"):
            assert torch.all(value == 1), name
        elif "embedding" not in name:
            bound = math.sqrt(6 / sum(value.shape))  # of Xavier's uniform distribution
            assert value.abs().max().item() <= bound, name
            assert value.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05), name


def test_the_base_model_has_about_as_many_parameters_as_in_the_paper():
    """Table 3 of the paper says 65 million, with 37,000 shared tokens. This model has 63 million."""
    settings = TransformerSettings(
        width=512, heads=8, feed_forward=2048, encoder_layers=6, decoder_layers=6, norm="post"
    )
    with torch.device("meta"):
        model = build_model(settings, source_vocab_size=37_000, target_vocab_size=37_000, shared=True)
        with_biases = build_model(
            settings.model_copy(update={"attention_bias": True}),
            source_vocab_size=37_000,
            target_vocab_size=37_000,
            shared=True,
        )
    sizes = [sum(value.numel() for value in variant.parameters()) / 1e6 for variant in (model, with_biases)]
    assert sizes[0] == pytest.approx(63, abs=0.5)
    assert sizes[1] - sizes[0] == pytest.approx(18 * 4 * 512 / 1e6)  # 18 attentions, 4 projections each


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("rnnsearch-50", 83.6),  # three matrices of 30,000 × 620, and 28 million in cells and attention
        ("rnnencdec-50", 67.2),
        ("transformer-base", 63.0),
        ("transformer-big", 214.2),  # the paper: 213
    ],
)
def test_recipes_of_papers_have_the_expected_number_of_parameters(name, millions):
    recipe = make_recipe(read_recipe(Path(name)))
    check_recipe(recipe)
    size, shared = recipe.text.vocab_size, recipe.text.shared
    with torch.device("meta"):
        model = build_model(recipe.model, source_vocab_size=size, target_vocab_size=size, shared=shared)
    assert sum(value.numel() for value in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)


def test_the_same_seed_gives_the_same_model():
    torch.manual_seed(1)
    first_weights = build().state_dict()
    torch.manual_seed(1)
    second_weights = build().state_dict()
    assert all(torch.equal(first_weights[name], second_weights[name]) for name in first_weights)


PROJECTIONS = {
    "key_width": 6,
    "value_width": 3,
    "key_value_groups": 1,
    "attention_bias": True,
    "attention_init": "he-normal",
}


@pytest.mark.parametrize("family", ["transformer", "decoder-only", "encoder-only"])
def test_settings_of_the_projections_reach_every_attention(family):
    settings = SETTINGS_BY_FAMILY[family](width=16, heads=2, **PROJECTIONS)
    model = build_model(settings, source_vocab_size=50, target_vocab_size=50, shared=True)
    attentions = [module for module in model.modules() if isinstance(module, MultiHead)]
    assert attentions
    for attention in attentions:
        assert attention.query.weight.shape == (2 * 6, 16)
        assert attention.key.weight.shape == (6, 16)
        assert attention.value.weight.shape == (3, 16)
        assert attention.out.weight.shape == (16, 2 * 3)
        assert torch.all(attention.out.bias == 0)
    values = torch.cat([attention.query.weight.flatten() for attention in attentions])
    # he-normal has the standard deviation √(2 / inputs), with 16 inputs here.
    assert values.std().item() == pytest.approx(math.sqrt(2 / 16), rel=0.1)


def test_a_model_with_other_projections_decodes_as_it_trains():
    model = build(**PROJECTIONS, positions="rotary").eval()
    for attention in (module for module in model.modules() if isinstance(module, MultiHead)):
        torch.nn.init.normal_(attention.out.bias)
    check_steps(model, atol=1e-4)


def test_heads_need_not_divide_the_width_if_key_width_and_value_width_are_set():
    model = build(heads=3, key_width=4, value_width=5)
    assert model.encoder[0].attention.out.weight.shape == (16, 15)
    with pytest.raises(UnsupportedError, match="key width and a value width"):
        build(heads=3, key_width=4)


def test_overrides_may_set_heads_key_width_and_value_width_without_the_width():
    check_overrides(Overrides.from_settings({"model": {"heads": 3, "key_width": 4, "value_width": 5}}))
    with pytest.raises(UnsupportedError, match="3 heads cannot share the width of any size"):
        check_overrides(Overrides.from_settings({"model": {"heads": 3, "key_width": 4}}))


def test_groups_that_do_not_divide_the_heads_are_refused_with_the_name_of_the_setting():
    with pytest.raises(UnsupportedError, match=r"model\.key_value_groups .* 3 groups for 2 heads"):
        check_model(SMALL.model_copy(update={"key_value_groups": 3}))


def test_rotary_positions_need_an_even_key_width():
    with pytest.raises(UnsupportedError, match=r"model\.key_width = 3"):
        build(positions="rotary", key_width=3)
    assert build(positions="rotary", heads=3, key_width=4, value_width=5)


def test_overrides_may_set_rotary_positions_and_a_width_whose_heads_are_derived():
    """A width of 150 is odd per head with the default of 4 heads, and even with the derived 3 heads."""
    check_overrides(Overrides.from_settings({"model": {"positions": "rotary", "width": 150}}))
    with pytest.raises(UnsupportedError, match=r"model\.width / model\.heads = 75"):
        check_overrides(Overrides.from_settings({"model": {"positions": "rotary", "width": 150, "heads": 2}}))
    with pytest.raises(UnsupportedError, match=r"model\.key_width = 3"):
        check_overrides(Overrides.from_settings({"model": {"positions": "rotary", "key_width": 3}}))


def test_heads_must_divide_the_width():
    with pytest.raises(UnsupportedError, match=r"3 heads .* 1, 2, 4, 8, 16"):
        build(heads=3)


def test_a_shared_vocabulary_has_one_size():
    with pytest.raises(UnsupportedError, match=r"text\.shared = false"):
        build(source_vocab_size=40)


def test_an_unknown_family_suggests_the_nearest():
    with pytest.raises(RecipeError, match='Did you mean "transformer"'):
        build(family="transformers")


def test_a_mechanism_that_does_not_support_its_site_is_refused(monkeypatch):
    class NotCausal(ScaledDot):
        supports = Supports(causal=False, incremental=False)

    monkeypatch.setitem(CATALOGUE, "scaled-dot", CatalogueEntry(NotCausal, "none"))
    with pytest.raises(
        UnsupportedError, match=r"model\.decoder_attention .* causal and incremental.*scaled-dot"
    ):
        build()


@pytest.mark.parametrize("kind", ["efficient", "linear"])
def test_attention_dropout_is_refused_for_mechanisms_without_weights(kind):
    attention = AttentionSettings(kind=kind)
    with pytest.raises(UnsupportedError, match=rf"Received: 0\.1, and model\.encoder_attention = \"{kind}\""):
        build(encoder_attention=attention, attention_dropout=0.1)
    assert build(encoder_attention=attention, attention_dropout=0.0)
    assert build(attention_dropout=0.1)


@pytest.mark.parametrize("settings_class", [DecoderOnlySettings, EncoderOnlySettings])
def test_attention_dropout_is_refused_for_linear_attention_in_other_families(settings_class):
    settings = settings_class(attention=AttentionSettings(kind="linear"), attention_dropout=0.2)
    with pytest.raises(UnsupportedError, match=r"model\.attention_dropout = 0 .* model\.attention = "):
        check_model(settings)


# With sentences of 400 tokens: a source and </s>, or <s> and a translation of 3 · 400 + 10 tokens.
NEEDED_KEYS = [
    ("recurrent", "attention", 401),
    ("encoder-only", "attention", 401),
    ("transformer", "cross_attention", 401),
    ("transformer", "encoder_attention", 401),
    ("transformer", "decoder_attention", 1211),
]


@pytest.mark.parametrize(("family", "setting", "needed"), NEEDED_KEYS)
def test_a_mechanism_with_too_few_positions_is_refused(family, setting, needed):
    def complete_attention(**option):
        """Check the location score with this option, and return its settings with `max_keys`."""
        attention = {"kind": "luong-location", **option}
        overrides = Overrides.from_settings(
            {"model": {"family": family, setting: attention}, "training": {"max_sentence_tokens": 400}}
        )
        check_overrides(overrides)
        return set_max_keys_of_mechanisms(overrides)[f"model.{setting}"]

    inputs = "400 tokens and the longest translation.*" if setting == "decoder_attention" else "400 tokens"
    match = (
        rf"{needed} positions, for sentences of .* = {inputs}\. "
        rf"Received: max_keys = {needed - 1}\. Set model\.{setting} = "
    )
    with pytest.raises(UnsupportedError, match=match):
        complete_attention(max_keys=needed - 1)
    for attention in (complete_attention(), complete_attention(max_keys=needed)):
        assert attention == {"kind": "luong-location", "max_keys": needed}
    assert complete_attention(max_keys=2000)["max_keys"] == 2000


def test_attention_overrides_select_the_location_score_in_a_transformer():
    overrides = Overrides.from_settings(**attention_overrides("transformer", "luong-location"))
    check_overrides(overrides)
    decoder_attention = set_max_keys_of_mechanisms(overrides)["model.decoder_attention"]
    assert decoder_attention["max_keys"] == 611  # 3 · 200 + 10, and <s>
    assert set_max_keys_of_mechanisms(Overrides()) == Overrides()
