"""The Transformer, teacher forced and step by step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import torch

from jumok.config.recipe import TransformerSettings
from jumok.models.build import build_model
from jumok.models.kernels.cross_entropy import sequence_loss
from jumok.models.kernels.dropout import seed_dropout
from jumok.models.layers import FeedForward
from jumok.models.transformer import Transformer
from jumok.types import BEGIN, END, PAD, Batch

if TYPE_CHECKING:
    from jumok.attention import AttentionSite

VOCAB_SIZE = 40
SMALL = TransformerSettings(
    width=16, heads=2, feed_forward=32, encoder_layers=2, decoder_layers=2, dropout=0.0
)


def make(norm: str = "pre", *, shared: bool = True, **changes) -> Transformer:
    torch.manual_seed(2)
    settings = SMALL.model_copy(update={"norm": norm, **changes})
    model = build_model(
        settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=shared
    ).eval()
    assert isinstance(model, Transformer)
    return model


def pad(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    max_length = int(lengths.max())
    return torch.tensor([row + [PAD] * (max_length - len(row)) for row in rows]), lengths


def sentences(lengths: list[int], seed: int = 0) -> list[list[int]]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randint(4, VOCAB_SIZE, (length,), generator=random).tolist() for length in lengths]


def make_batch(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    source, source_lengths = pad([[*row, END] for row in sources])
    target, target_lengths = pad([[BEGIN, *row, END] for row in targets])
    return Batch(source, source_lengths, target, target_lengths)


SOURCES, TARGETS = sentences([5, 2, 18]), sentences([3, 6, 1], seed=1)
BATCH = make_batch(SOURCES, TARGETS)
both_norms = pytest.mark.parametrize("norm", ["pre", "post"])


@both_norms
def test_there_is_one_state_per_predicted_token(norm):
    assert make(norm)(BATCH).shape == (3, BATCH.target.shape[1] - 1, 16)


@both_norms
def test_later_tokens_do_not_change_earlier_states(norm):
    model = make(norm)
    before = model(BATCH)
    for position in range(1, BATCH.target.shape[1] - 1):
        target = BATCH.target.clone()
        target[:, position] = 4 + (target[:, position] + 1) % (VOCAB_SIZE - 4)
        after = model(Batch(BATCH.source, BATCH.source_lengths, target, BATCH.target_lengths))
        torch.testing.assert_close(after[:, :position], before[:, :position], atol=1e-6, rtol=0)
        assert not torch.allclose(after[:, position], before[:, position], atol=1e-3)


@both_norms
def test_a_sentence_does_not_depend_on_its_batch(norm):
    model = make(norm)
    together = model(BATCH)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(make_batch([source], [target]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=2e-6, rtol=0)


@both_norms
def test_steps_equal_the_teacher_forced_pass(norm):
    model = make(norm)
    with torch.inference_mode():
        expected = model.output.log_probs(model(BATCH))
        state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
        for step in range(BATCH.target.shape[1] - 1):
            log_probs, state = model.step(state, BATCH.target[:, step])
            assert log_probs.ids is None
            unfinished = BATCH.target_lengths > step + 1
            torch.testing.assert_close(
                log_probs.values[unfinished], expected[unfinished, step], atol=1e-4, rtol=0
            )
            torch.testing.assert_close(log_probs.values.exp().sum(-1), torch.ones(3))


ORDERS = {
    "repeats": [[0, 0, 1, 1, 2, 2]],
    "mixes": [[0, 0, 0, 1, 1, 1, 2, 2, 2], [2, 0, 0, 3, 5, 3, 8, 8, 7]],
    "drops": [[0, 0, 1, 1, 2, 2], [0, 1, 4, 5], [3, 2]],
    "hypotheses not adjacent": [[2, 0, 1], [1, 1, 0, 2, 0], [4, 0, 3]],
    "unequal numbers": [[0, 1, 1, 1, 2], [1, 1, 0, 4], [0, 1, 2]],
    "stays": [[0, 1, 2], [0, 1, 2]],
    "all finished": [[0, 1], []],
}


@pytest.mark.parametrize("orders", ORDERS.values(), ids=ORDERS)
def test_reordered_rows_continue_their_own_sentence(orders):
    """After any reordering, a row continues its own sentence and its own tokens."""
    model = make()
    random = torch.Generator().manual_seed(4)
    sentence, history = torch.arange(3), torch.empty(3, 0, dtype=torch.int64)
    with torch.inference_mode():
        state = model.begin(BATCH)
        for order in [None, *map(torch.tensor, orders), None]:
            if order is not None:
                order = order.long()
                state, sentence, history = model.reorder(state, order), sentence[order], history[order]
            last = torch.randint(4, VOCAB_SIZE, (len(sentence),), generator=random)
            history = torch.cat([history, last[:, None]], dim=1)
            log_probs, state = model.step(state, last)
            if len(sentence) == 0:
                assert log_probs.values.shape == (0, VOCAB_SIZE)
                continue
            targets = torch.cat([history, torch.full((len(history), 1), END)], dim=1)
            forced_batch = Batch(BATCH.source[sentence], BATCH.source_lengths[sentence], targets)
            expected = model.output.log_probs(model(forced_batch)[:, -1])
            torch.testing.assert_close(log_probs.values, expected, atol=1e-4, rtol=0)


def test_sources_are_not_copied_for_beams():
    model = make()
    with torch.inference_mode():
        state = model.begin(BATCH)
        wide = model.reorder(state, torch.arange(3).repeat_interleave(5))
    for before, after in zip(state.sources, wide.sources, strict=True):
        assert after.stored_keys.data_ptr() == before.stored_keys.data_ptr()
        assert len(after.stored_keys) == 3


def test_attention_has_a_map_for_every_site():
    weights = make(encoder_layers=1).attention(BATCH)
    source, target = BATCH.source.shape[1], BATCH.target.shape[1] - 1
    assert {site: tuple(tensor.shape) for site, tensor in weights.items()} == {
        "encoder": (3, 1, 2, source, source),
        "decoder": (3, 2, 2, target, target),
        "cross": (3, 2, 2, target, source),
    }
    for site in ("encoder", "cross"):
        for row, length in enumerate(BATCH.source_lengths.tolist()):
            assert torch.all(weights[site][row, ..., length:] == 0)
    for tensor in weights.values():
        torch.testing.assert_close(tensor.sum(-1), torch.ones(tensor.shape[:-1]))
    assert torch.all(weights["decoder"].triu(1) == 0)


def test_attention_equals_the_weights_of_the_steps():
    """The weights of each step are a row of `attention`. An edit that changes nothing collects them."""
    model = make()
    with torch.no_grad():
        forced = model.attention(BATCH)
    collected: list[tuple[AttentionSite, torch.Tensor]] = []

    def collect(weights: torch.Tensor, site: AttentionSite) -> torch.Tensor:
        collected.append((site, weights.clone()))
        return weights

    order = torch.tensor([2, 0, 0])
    with torch.no_grad():
        state = model.reorder(model.begin(BATCH, edit=collect), order)
        for step in range(3):
            _, state = model.step(state, BATCH.target[order, step])
    for site, weights in collected:
        if site.name == "encoder":
            torch.testing.assert_close(weights, forced["encoder"][:, site.layer], atol=1e-5, rtol=0)
            continue
        assert site.rows.tolist() == [2, 0, 0]
        expected = forced[site.name][site.rows, site.layer, :, site.query_offset, : weights.shape[-1]]
        unfinished = BATCH.target_lengths[site.rows] > site.query_offset + 1
        torch.testing.assert_close(weights[unfinished, :, 0], expected[unfinished], atol=1e-5, rtol=0)
    assert {(site.name, site.layer, site.query_offset) for site, _ in collected if site.name == "cross"} == {
        ("cross", layer, step) for layer in range(2) for step in range(3)
    }


def test_an_edit_reaches_states_and_steps():
    """Head 0 of layer 1 of cross-attention is silenced, teacher forced and step by step."""
    model = make()

    def silence_head(weights: torch.Tensor, site: AttentionSite) -> torch.Tensor:
        if (site.name, site.layer) != ("cross", 1):
            return weights
        weights = weights.clone()
        weights[:, 0] = 0
        return weights

    plain, edited = model(BATCH), model(BATCH, edit=silence_head)
    assert not torch.allclose(plain, edited, atol=1e-3)
    assert torch.all(model.attention(BATCH, edit=silence_head)["cross"][:, 1, 0] == 0)
    with torch.inference_mode():
        log_probs, _ = model.step(model.begin(BATCH, edit=silence_head), BATCH.target[:, 0])
        torch.testing.assert_close(log_probs.values, model.output.log_probs(edited[:, 0]), atol=1e-4, rtol=0)


def test_teacher_forcing_needs_a_target():
    with pytest.raises(ValueError, match="target"):
        make()(Batch(BATCH.source, BATCH.source_lengths))


def test_dropout_follows_the_seed():
    model = make(dropout=0.3, attention_dropout=0.1).train()

    def states(seed: int) -> torch.Tensor:
        with seed_dropout(seed, 1):
            return model(BATCH)

    assert torch.equal(states(1), states(1))
    assert not torch.equal(states(1), states(2))


def test_sentences_may_be_longer_than_the_table_of_positions():
    model = make()
    long_batch = make_batch(sentences([600]), sentences([520]))  # the table has 512 positions
    assert torch.isfinite(model(long_batch)).all()


@both_norms
def test_twenty_updates_reduce_the_loss_and_change_every_parameter(norm):
    model = make(norm).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    rows = sentences([4, 5, 6, 7] * 4, seed=3)
    batch = make_batch(rows, rows)
    losses = []
    for _ in range(20):
        sums = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
        loss = sums.total / sums.tokens
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.75 * losses[0]
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())
    assert not [name for name, value in model.state_dict().items() if torch.equal(value, before[name])]


@pytest.mark.medium
def test_a_trained_model_copies_new_sentences():
    """The model is trained on random sentences. Greedy decoding then copies other sentences."""
    model = make(encoder_layers=1, decoder_layers=1, width=32, heads=4, dropout=0.0).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(300):
        rows = sentences([3, 4, 5, 6] * 16, seed=step)
        batch = make_batch(rows, rows)
        sums = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
        optimiser.zero_grad()
        (sums.total / sums.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    rows = sentences([4, 5, 6] * 10, seed=10_000)
    batch = make_batch(rows, rows)
    model.eval()
    with torch.inference_mode():
        state, tokens, steps = model.begin(batch), torch.full((len(rows),), BEGIN), []
        for _ in range(7):  # the longest sentence has 6 tokens
            log_probs, state = model.step(state, tokens)
            tokens = log_probs.values.argmax(-1)
            steps.append(tokens)
    outputs = torch.stack(steps, dim=1)
    correct = sum(outputs[row, : len(expected)].tolist() == expected for row, expected in enumerate(rows))
    assert correct >= 27  # of 30


@pytest.mark.parametrize(
    ("name", "expected"), [("relu", 0.0), ("swish", -1 / (1 + math.e)), ("gelu", -0.15865525)]
)
def test_the_activation_of_the_position_wise_network(name: str, expected: float) -> None:
    """With identity projections, a hidden value of −1 shows the activation itself."""
    network = FeedForward(width=2, hidden=2, activation=name)
    with torch.no_grad():
        for projection in (network.widen, network.narrow):
            projection.weight.copy_(torch.eye(2))
        assert network(torch.full((1, 1, 2), -1.0)).flatten().tolist() == pytest.approx(
            [expected] * 2, abs=1e-6
        )


def test_attention_and_output_have_biases_if_the_settings_say_so() -> None:
    settings = TransformerSettings(
        width=16,
        heads=2,
        feed_forward=32,
        encoder_layers=1,
        decoder_layers=1,
        attention_bias=True,
        output_bias=True,
    )
    model = build_model(settings, source_vocab_size=20, target_vocab_size=20, shared=True)
    names = {name for name, _ in model.named_parameters() if name.endswith("bias")}
    assert {"output.bias", "encoder.0.attention.query.bias", "decoder.0.cross_attention.out.bias"} <= names
