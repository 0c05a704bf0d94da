"""The Transformer, whole and step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from jumok.models import Transformer, build_model, seed_dropout
from jumok.recipe import TransformerSettings
from jumok.training.loss import sequence_loss
from jumok.values import BEGIN, END, PAD, Batch

if TYPE_CHECKING:
    from jumok.attention import Place

PIECES = 40
SMALL = TransformerSettings(
    width=16, heads=2, feed_forward=32, encoder_layers=2, decoder_layers=2, dropout=0.0
)


def make(norm: str = "pre", *, shared: bool = True, **changes) -> Transformer:
    torch.manual_seed(2)
    settings = SMALL.model_copy(update={"norm": norm, **changes})
    model = build_model(settings, source_pieces=PIECES, target_pieces=PIECES, shared=shared).eval()
    assert isinstance(model, Transformer)
    return model


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    longest = int(lengths.max())
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows]), lengths


def sentences(lengths: list[int], seed: int = 0) -> list[list[int]]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randint(4, PIECES, (length,), generator=random).tolist() for length in lengths]


def make_batch(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    source, source_lengths = padded([[*row, END] for row in sources])
    target, target_lengths = padded([[BEGIN, *row, END] for row in targets])
    return Batch(source, source_lengths, target, target_lengths)


SOURCES, TARGETS = sentences([5, 2, 18]), sentences([3, 6, 1], seed=1)
BATCH = make_batch(SOURCES, TARGETS)
both_norms = pytest.mark.parametrize("norm", ["pre", "post"])


@both_norms
def test_states_have_a_row_a_prediction(norm):
    assert make(norm)(BATCH).shape == (3, BATCH.target.shape[1] - 1, 16)


@both_norms
def test_later_pieces_do_not_change_earlier_states(norm):
    model = make(norm)
    before = model(BATCH)
    for place in range(1, BATCH.target.shape[1] - 1):
        target = BATCH.target.clone()
        target[:, place] = 4 + (target[:, place] + 1) % (PIECES - 4)
        after = model(Batch(BATCH.source, BATCH.source_lengths, target, BATCH.target_lengths))
        torch.testing.assert_close(after[:, :place], before[:, :place], atol=1e-6, rtol=0)
        assert not torch.allclose(after[:, place], before[:, place], atol=1e-3)


@both_norms
def test_a_sentence_alone_is_as_in_a_batch(norm):
    model = make(norm)
    together = model(BATCH)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(make_batch([source], [target]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=2e-6, rtol=0)


@both_norms
def test_steps_are_the_teacher_forced_pass(norm):
    model = make(norm)
    with torch.inference_mode():
        expected = model.output.log_probs(model(BATCH))
        state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
        for place in range(BATCH.target.shape[1] - 1):
            answer, state = model.step(state, BATCH.target[:, place])
            assert answer.ids is None
            real = BATCH.target_lengths > place + 1
            torch.testing.assert_close(answer.values[real], expected[real, place], atol=1e-4, rtol=0)
            torch.testing.assert_close(answer.values.exp().sum(-1), torch.ones(3))


ORDERS = {
    "widens": [[0, 0, 1, 1, 2, 2]],
    "mixes": [[0, 0, 0, 1, 1, 1, 2, 2, 2], [2, 0, 0, 3, 5, 3, 8, 8, 7]],
    "narrows": [[0, 0, 1, 1, 2, 2], [0, 1, 4, 5], [3, 2]],
    "sentences apart": [[2, 0, 1], [1, 1, 0, 2, 0], [4, 0, 3]],
    "unequal": [[0, 1, 1, 1, 2], [1, 1, 0, 4], [0, 1, 2]],
    "stays": [[0, 1, 2], [0, 1, 2]],
    "all finished": [[0, 1], []],
}


@pytest.mark.parametrize("orders", ORDERS.values(), ids=ORDERS)
def test_reorder(orders):
    """After any reorders, a row continues its own sentence and its own pieces."""
    model = make()
    random = torch.Generator().manual_seed(4)
    sentence, history = torch.arange(3), torch.empty(3, 0, dtype=torch.int64)
    with torch.inference_mode():
        state = model.begin(BATCH)
        for order in [None, *map(torch.tensor, orders), None]:
            if order is not None:
                order = order.long()
                state, sentence, history = model.reorder(state, order), sentence[order], history[order]
            last = torch.randint(4, PIECES, (len(sentence),), generator=random)
            history = torch.cat([history, last[:, None]], dim=1)
            answer, state = model.step(state, last)
            if len(sentence) == 0:
                assert answer.values.shape == (0, PIECES)
                continue
            forced = torch.cat([history, torch.full((len(history), 1), END)], dim=1)
            alone = Batch(BATCH.source[sentence], BATCH.source_lengths[sentence], forced)
            expected = model.output.log_probs(model(alone)[:, -1])
            torch.testing.assert_close(answer.values, expected, atol=1e-4, rtol=0)


def test_sources_are_not_copied_for_beams():
    model = make()
    with torch.inference_mode():
        state = model.begin(BATCH)
        wide = model.reorder(state, torch.arange(3).repeat_interleave(5))
    for before, after in zip(state.sources, wide.sources, strict=True):
        assert after.stored_keys.data_ptr() == before.stored_keys.data_ptr()
        assert len(after.stored_keys) == 3


def test_attention_has_every_site():
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


def test_attention_is_what_steps_attend_to():
    """Seen by an edit that changes nothing, the weights of each step are a row of `attention`."""
    model = make()
    with torch.no_grad():
        whole = model.attention(BATCH)
    seen: list[tuple[Place, torch.Tensor]] = []

    def watch(weights: torch.Tensor, place: Place) -> torch.Tensor:
        seen.append((place, weights.clone()))
        return weights

    order = torch.tensor([2, 0, 0])
    with torch.no_grad():
        state = model.reorder(model.begin(BATCH, edit=watch), order)
        for place in range(3):
            _, state = model.step(state, BATCH.target[order, place])
    for place, weights in seen:
        if place.site == "encoder":
            torch.testing.assert_close(weights, whole["encoder"][:, place.layer], atol=1e-5, rtol=0)
            continue
        assert place.rows.tolist() == [2, 0, 0]
        expected = whole[place.site][place.rows, place.layer, :, place.first, : weights.shape[-1]]
        real = BATCH.target_lengths[place.rows] > place.first + 1
        torch.testing.assert_close(weights[real, :, 0], expected[real], atol=1e-5, rtol=0)
    assert {(place.site, place.layer, place.first) for place, _ in seen if place.site == "cross"} == {
        ("cross", layer, first) for layer in range(2) for first in range(3)
    }


def test_an_edit_reaches_states_and_steps():
    """One head of one site knocked out, teacher forced and step by step alike."""
    model = make()

    def knock_out(weights: torch.Tensor, place: Place) -> torch.Tensor:
        if (place.site, place.layer) != ("cross", 1):
            return weights
        weights = weights.clone()
        weights[:, 0] = 0
        return weights

    plain, edited = model(BATCH), model(BATCH, edit=knock_out)
    assert not torch.allclose(plain, edited, atol=1e-3)
    assert torch.all(model.attention(BATCH, edit=knock_out)["cross"][:, 1, 0] == 0)
    with torch.inference_mode():
        answer, _ = model.step(model.begin(BATCH, edit=knock_out), BATCH.target[:, 0])
        torch.testing.assert_close(answer.values, model.output.log_probs(edited[:, 0]), atol=1e-4, rtol=0)


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


def test_longer_than_the_table_of_positions():
    model = make()
    long = make_batch(sentences([600]), sentences([520]))
    assert torch.isfinite(model(long)).all()


@both_norms
def test_learns_to_copy(norm):
    """The loss falls within twenty steps, and every parameter moves."""
    model = make(norm).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    rows = sentences([4, 5, 6, 7] * 4, seed=3)
    batch = make_batch(rows, rows)
    losses = []
    for _ in range(20):
        summed = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
        loss = summed.total / summed.tokens
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.75 * losses[0]
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())
    assert not [name for name, value in model.state_dict().items() if torch.equal(value, before[name])]


@pytest.mark.medium
def test_copies_sentences_it_has_never_seen():
    """Trained on random sentences, greedy decoding copies new ones."""
    model = make(encoder_layers=1, decoder_layers=1, width=32, heads=4, dropout=0.0).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(300):
        rows = sentences([3, 4, 5, 6] * 16, seed=step)
        batch = make_batch(rows, rows)
        summed = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=0.0)
        optimiser.zero_grad()
        (summed.total / summed.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    rows = sentences([4, 5, 6] * 10, seed=10_000)
    batch = make_batch(rows, rows)
    model.eval()
    with torch.inference_mode():
        state, last, answers = model.begin(batch), torch.full((len(rows),), BEGIN), []
        for _ in range(7):
            answer, state = model.step(state, last)
            last = answer.values.argmax(-1)
            answers.append(last)
    copied = torch.stack(answers, dim=1)
    right = sum(copied[row, : len(wanted)].tolist() == wanted for row, wanted in enumerate(rows))
    assert right >= 27
