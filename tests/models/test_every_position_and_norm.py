"""Every kind of positions and every norm in the families made of Transformer blocks."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from jumok.attention import CATALOGUE, POSITIONS
from jumok.config.recipe import AttentionSettings, DecoderOnlySettings, TransformerSettings, make_recipe
from jumok.errors import UnsupportedError
from jumok.inference.search.beam import beam_search
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan
from jumok.models.build import build_model
from jumok.models.norms import NORMS, BatchNorm
from jumok.models.validate import check_recipe, max_translation_tokens
from jumok.storage.tensors import load_module_weights, module_weights
from jumok.types import BEGIN, Batch
from support.model_batches import (
    BATCH,
    ONLY_SOURCE,
    SOURCES,
    TARGETS,
    VOCAB_SIZE,
    check_steps,
    losses_of_twenty_updates,
    make_batch,
)

COMMON = {"width": 16, "heads": 2, "feed_forward": 32, "dropout": 0.0, "max_positions": 64}
SMALL = {
    "transformer": TransformerSettings(**COMMON, encoder_layers=1, decoder_layers=2),
    "decoder-only": DecoderOnlySettings(**COMMON, layers=2),
}
# Each kind of positions, then each norm except layer norm. `norm` says whether a norm comes before or after
# the sublayer, and `norm_kind` is the formula of the norm.
KINDS = [
    *({"positions": name} for name in POSITIONS),
    *({"norm_kind": name, "norm": norm} for name in NORMS if name != "layer" for norm in ("pre", "post")),
    {"positions": "rotary", "norm_kind": "batch"},
]
every_family = pytest.mark.parametrize("family", list(SMALL))
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()))


def make(family: str, **changes):
    """Return a model whose tables and running statistics differ from their initial values."""
    torch.manual_seed(5)
    settings = SMALL[family].model_copy(update=changes)
    model = build_model(settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True)
    for name, parameter in model.named_parameters():
        if name.endswith("positions.table"):
            torch.nn.init.normal_(parameter)
    with torch.no_grad():
        for _ in range(5):
            model.train()(BATCH)
    return model.eval()


def test_every_kind_of_positions_in_the_recipe_exists():
    assert tuple(POSITIONS) == get_args(TransformerSettings.model_fields["positions"].annotation)
    for kind in POSITIONS.values():
        assert kind.reference


@every_family
@every_kind
def test_steps_equal_the_teacher_forced_pass(family, kind):
    check_steps(make(family, **kind), atol=1e-4)


@every_family
@every_kind
def test_a_sentence_does_not_depend_on_its_batch(family, kind):
    model = make(family, **kind)
    together = model(BATCH)
    maps = model.attention(BATCH)["cross"]
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        batch = make_batch([source], [target])
        alone, own_map = model(batch)[0], model.attention(batch)["cross"][0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=0)
        assert torch.all(maps[row, ..., len(source) + 1 :] == 0)
        torch.testing.assert_close(
            maps[row, :, :, : len(alone), : len(source) + 1], own_map, atol=1e-5, rtol=0
        )


@every_family
@every_kind
def test_reordered_rows_continue_their_own_history(family, kind):
    model = make(family, **kind)
    with torch.inference_mode():
        _, state = model.step(model.begin(ONLY_SOURCE), torch.full((3,), BEGIN))
        state = model.reorder(state, torch.tensor([2, 0, 0, 1]))  # the sentence of each new row
        log_probs, _ = model.step(state, torch.tensor([30, 31, 32, 33]))
        for row, (sentence, token) in enumerate([(2, 30), (0, 31), (0, 32), (1, 33)]):
            forced = make_batch([SOURCES[sentence]], [[token, 4]])
            # Step 1 reads `token`. The token 4 is arbitrary, because it follows the compared step.
            expected = model.output.log_probs(model(forced)[0, 1])
            torch.testing.assert_close(log_probs.values[row], expected, atol=1e-4, rtol=0)


@every_family
@every_kind
def test_an_identity_edit_changes_nothing_and_an_edit_can_silence_all_heads(family, kind):
    model = make(family, **kind)
    plain = model(BATCH)
    torch.testing.assert_close(model(BATCH, edit=lambda weights, _: weights), plain, atol=1e-5, rtol=0)
    silenced = model.attention(BATCH, edit=lambda weights, _: weights * 0)
    assert all(torch.all(weights == 0) for weights in silenced.values())
    assert not torch.allclose(model(BATCH, edit=lambda weights, _: weights * 0), plain, atol=1e-3)


@every_family
@every_kind
def test_later_tokens_do_not_change_earlier_states(family, kind):
    model = make(family, **kind)
    target = BATCH.target.clone()
    target[:, 3:] = 33  # a token that the targets do not have
    after = model(Batch(BATCH.source, BATCH.source_lengths, target, BATCH.target_lengths))
    torch.testing.assert_close(after[:, :3], model(BATCH)[:, :3])


@every_kind
def test_twenty_updates_reduce_the_loss_and_change_every_weight(kind):
    model = make("transformer", **kind, width=32)
    before = {name: tensor.clone() for name, tensor in module_weights(model).items()}
    losses = losses_of_twenty_updates(model)
    assert losses[-1] < 0.6 * losses[0]
    assert not [name for name, value in module_weights(model).items() if torch.equal(value, before[name])]


@every_kind
def test_beam_search_is_at_least_as_good_as_greedy(kind):
    model = make("transformer", **kind)
    plan = SearchPlan(beam=3, max_length_ratio=1.0, extra_tokens=3, length_penalty=0.0)
    for wide, narrow in zip(
        beam_search(model, ONLY_SOURCE, plan), greedy_search(model, ONLY_SOURCE, plan), strict=True
    ):
        assert wide[0].log_prob >= narrow[0].log_prob - 1e-4


@every_family
@every_kind
def test_stored_weights_restore_the_whole_model(family, kind):
    model = make(family, **kind)
    restored_model = make(family, **kind).train()
    restored_model(make_batch(TARGETS, SOURCES))  # changes the running statistics
    with torch.no_grad():
        for parameter in restored_model.parameters():
            parameter.zero_()
    weights = {name: tensor.clone() for name, tensor in module_weights(model).items()}
    load_module_weights(restored_model, weights)
    assert torch.equal(restored_model.eval()(BATCH), model(BATCH))


@pytest.mark.parametrize("positions", list(POSITIONS))
def test_the_encoder_knows_the_order_only_from_its_positions(positions):
    """Reversing the source changes the states, except in a model without positions (a bag of words)."""
    model = make("transformer", positions=positions)
    forward = make_batch([[5, 6, 7, 8]], [[20, 21]])
    backward = Batch(forward.source.flip(1), forward.source_lengths, forward.target, forward.target_lengths)
    are_equal = torch.allclose(model(forward), model(backward), atol=1e-5)
    assert are_equal == (positions == "none")


def test_batch_norm_in_training_ignores_padding():
    """More padding changes neither the states nor the running statistics.

    `make` has already updated the running means, so they are set to 0 first.
    """
    for family in SMALL:
        model, identical_model = (make(family, norm_kind="batch").train() for _ in range(2))
        pad = torch.nn.functional.pad
        wider_batch = Batch(
            pad(BATCH.source, (0, 4)), BATCH.source_lengths, pad(BATCH.target, (0, 3)), BATCH.target_lengths
        )
        for module in (*model.modules(), *identical_model.modules()):
            if isinstance(module, BatchNorm):
                module.mean.zero_()
        states, padded_states = model(BATCH), identical_model(wider_batch)
        not_padding = torch.arange(states.shape[1]) < BATCH.target_lengths[:, None] - 1
        torch.testing.assert_close(
            padded_states[:, : states.shape[1]][not_padding], states[not_padding], atol=1e-5, rtol=0
        )
        for name, tensor in module_weights(model).items():
            torch.testing.assert_close(module_weights(identical_model)[name], tensor, atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", ["rotary", "alibi", "relative-keys", "relative-bias"])
@pytest.mark.parametrize("mechanism", list(CATALOGUE))
def test_positions_work_or_are_refused_with_every_mechanism(mechanism, positions):
    missing = CATALOGUE[mechanism].supports.missing(*POSITIONS[positions].needs)
    changes = {"encoder_attention": AttentionSettings(kind=mechanism), "positions": positions}
    if not missing:
        torch.testing.assert_close(*_alone_and_together(make("transformer", **changes)), atol=1e-5, rtol=0)
        return
    reason = rf'model\.positions cannot be "{positions}" if model\.encoder_attention is "{mechanism}"'
    with pytest.raises(UnsupportedError, match=f'{reason}: .*Set model.positions to "sinusoidal"'):
        make("transformer", **changes)


def _alone_and_together(model):
    batch = make_batch(SOURCES[:1], TARGETS[:1])
    alone = model(batch)[0]
    return alone, model(BATCH)[0, : len(alone)]


def test_each_kind_of_positions_works_with_the_expected_mechanisms():
    """This fails if a combination becomes possible or impossible by accident, not for a new mechanism."""
    possible = {
        name: {m for m, entry in CATALOGUE.items() if not entry.supports.missing(*kind.needs)}
        for name, kind in POSITIONS.items()
    }
    with_products = {name for name, entry in CATALOGUE.items() if entry.supports.products}
    with_bias = {name for name, entry in CATALOGUE.items() if entry.supports.bias}
    assert possible["sinusoidal"] == possible["learned"] == possible["none"] == set(CATALOGUE)
    assert possible["rotary"] == with_products >= {"scaled-dot", "luong-dot", "restricted"}
    assert possible["relative-keys"] == with_products & with_bias >= {"scaled-dot", "luong-dot", "restricted"}
    assert possible["alibi"] == possible["relative-bias"] == with_bias
    assert not with_bias & {"linear", "efficient"}


@every_family
def test_rotary_positions_need_heads_of_even_width(family):
    with pytest.raises(UnsupportedError, match=r"model\.width / model\.heads = 3"):
        make(family, positions="rotary", width=12, heads=4)


# <s> and 3 · 200 + 10 tokens, for a source of 200 tokens; decoder-only also reads the source and </s>.
@pytest.mark.parametrize(("family", "needed"), [("transformer", 611), ("decoder-only", 611 + 201)])
def test_learned_positions_must_cover_the_longest_translation(family, needed):
    model = {"family": family, "positions": "learned"}
    check_recipe(make_recipe({"model": {**model, "max_positions": needed}}))  # raises no error
    # By default, positions are sinusoidal, and `max_positions` has no effect.
    check_recipe(make_recipe({"model": {"family": family, "max_positions": 5}}))
    with pytest.raises(UnsupportedError, match=rf"{needed} positions.* model\.max_positions = {needed - 1}"):
        check_recipe(make_recipe({"model": {**model, "max_positions": needed - 1}}))
    longer = {"training": {"max_sentence_tokens": 400}}
    with pytest.raises(UnsupportedError, match=r"lower training\.max_sentence_tokens"):
        check_recipe(make_recipe({"model": model, **longer}))


# Training reads source, </s>, <s> and target, up to 200 tokens each, even if search may write only shorter
# translations.
@pytest.mark.parametrize(("family", "needed"), [("transformer", 201), ("decoder-only", 201 + 201)])
def test_learned_positions_must_cover_the_longest_pair_of_training(family, needed):
    recipe = {"search": {"max_length_ratio": 0.5}, "model": {"family": family, "positions": "learned"}}
    check_recipe(make_recipe(recipe, **{"model.max_positions": needed}))  # raises no error
    with pytest.raises(UnsupportedError, match=rf"{needed} positions.* search\.max_length_ratio = 0\.5"):
        check_recipe(make_recipe(recipe, **{"model.max_positions": needed - 1}))


def test_learned_positions_of_pictures_need_no_max_positions():
    """Pictures have one position per patch. `max_positions` counts those of a text, such as a caption."""
    learned = {"positions": "learned", "max_positions": 10}
    pictures = {"source": {"kind": "pictures"}}
    classifier = {"family": "encoder-only", "task": "classify", **learned}
    check_recipe(make_recipe({"model": classifier, **pictures}))  # raises no error
    # <s> and 3 · 64 + 10 tokens, for a picture of 64 patches
    with pytest.raises(UnsupportedError, match=r"203 positions.* lower search\.max_length_ratio, or"):
        check_recipe(make_recipe({"model": learned, **pictures}))
    long_captions = {"training": {"max_sentence_tokens": 300}}
    with pytest.raises(UnsupportedError, match=r"301 positions.* lower training\.max_sentence_tokens, or"):
        check_recipe(make_recipe({"model": learned, **pictures, **long_captions}))


def test_max_keys_that_do_not_cover_a_picture_are_refused_with_advice_about_pictures():
    attention = {"kind": "luong-location", "max_keys": 10}
    recipe = make_recipe({"model": {"cross_attention": attention}, "source": {"kind": "pictures"}})
    with pytest.raises(
        UnsupportedError, match=r"65 positions, for pictures of 64 .* raise source\.patch_size"
    ):
        check_recipe(recipe)


@pytest.mark.parametrize(("family", "covered"), [("transformer", 699), ("decoder-only", 699 - 201)])
def test_learned_positions_limit_the_length_of_translations(family, covered):
    """The table also has rows for <s> and, in a decoder-only model, for the source and </s>."""
    model = {"family": family, "max_positions": 700}
    assert max_translation_tokens(make_recipe({"model": model})) is None
    assert max_translation_tokens(make_recipe({"model": {**model, "positions": "learned"}})) == covered


def test_max_keys_limit_the_length_of_translations():
    attention = {"kind": "luong-location", "max_keys": 300}
    assert max_translation_tokens(make_recipe({"model": {"decoder_attention": attention}})) == 299
    assert max_translation_tokens(make_recipe({"model": {"cross_attention": attention}})) is None


def test_a_decoder_only_model_has_one_table_of_positions_and_a_transformer_two():
    assert make("decoder-only", positions="learned").source_embedding.positions.table.shape == (64, 16)
    decoder_only = make("decoder-only", positions="learned")
    assert decoder_only.source_embedding.positions is decoder_only.target_embedding.positions
    transformer = make("transformer", positions="learned")
    assert transformer.source_embedding.positions is not transformer.target_embedding.positions
