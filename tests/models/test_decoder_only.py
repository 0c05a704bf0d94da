"""The decoder alone as a translator: one sequence, padded on the left."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from jumok.attention import CATALOGUE
from jumok.decoding import SearchPlan, beam, greedy
from jumok.errors import UnsupportedError
from jumok.models import NEEDS_DECODER_ONLY, DecoderOnly, build_model
from jumok.recipe import AttentionSettings, DecoderOnlySettings
from jumok.values import BEGIN, END, PAD, Batch

PIECES = 40
SMALL = DecoderOnlySettings(width=16, heads=2, feed_forward=32, layers=2, dropout=0.0)
SUITABLE = [name for name, entry in CATALOGUE.items() if not entry.supports.missing(*NEEDS_DECODER_ONLY)]
UNSUITABLE = [name for name in CATALOGUE if name not in SUITABLE]
every_mechanism = pytest.mark.parametrize("name", SUITABLE)


def make(name: str = "scaled-dot", **changes) -> DecoderOnly:
    torch.manual_seed(2)
    settings = SMALL.model_copy(update={"attention": AttentionSettings(kind=name), **changes})
    model = build_model(settings, source_pieces=PIECES, target_pieces=PIECES, shared=True).eval()
    assert isinstance(model, DecoderOnly)
    return model


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    longest = int(lengths.max())
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows]), lengths


def make_batch(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    source, source_lengths = padded([[*row, END] for row in sources])
    target, target_lengths = padded([[BEGIN, *row, END] for row in targets])
    return Batch(source, source_lengths, target, target_lengths)


SOURCES = [[5, 6, 7, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17, 18, 19]]
TARGETS = [[20, 21, 22], [23, 24, 25, 26, 27, 28], [29]]
BATCH = make_batch(SOURCES, TARGETS)


@every_mechanism
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_sentence_alone_is_as_in_a_batch(name, norm):
    model = make(name, norm=norm)
    together = model(BATCH)
    assert together.shape == (3, BATCH.target.shape[1] - 1, 16)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(make_batch([source], [target]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=0)


@every_mechanism
def test_steps_are_the_teacher_forced_pass(name):
    model = make(name)
    with torch.inference_mode():
        expected = model.output.log_probs(model(BATCH))
        state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
        for place in range(BATCH.target.shape[1] - 1):
            answer, state = model.step(state, BATCH.target[:, place])
            real = BATCH.target_lengths > place + 1
            torch.testing.assert_close(answer.values[real], expected[real, place], atol=1e-4, rtol=0)


@every_mechanism
def test_reordered_rows_go_on_as_their_parents(name):
    model = make(name)
    random = torch.Generator().manual_seed(4)
    sentence, history = torch.arange(3), torch.full((3, 1), BEGIN)
    with torch.inference_mode():
        state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
        for order in ([0, 0, 1, 1, 2, 2], [5, 0, 3, 3], [1, 2]):
            _, state = model.step(state, history[:, -1])
            chosen = torch.tensor(order)
            state = model.reorder(state, chosen)
            sentence, history = sentence[chosen], history[chosen]
            history = torch.cat(
                [history, torch.randint(4, PIECES, (len(chosen), 1), generator=random)], dim=1
            )
        answer, _ = model.step(state, history[:, -1])
        for row, (number, pieces) in enumerate(zip(sentence.tolist(), history.tolist(), strict=True)):
            forced = make_batch([SOURCES[number]], [[*pieces[1:], 4]])
            expected = model.output.log_probs(model(forced)[0, len(pieces) - 1])
            torch.testing.assert_close(answer.values[row], expected, atol=1e-4, rtol=0)


@every_mechanism
def test_twenty_steps_bring_the_loss_down(name):
    model = make(name, width=32).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        scores, labels = model.output(model(BATCH)), BATCH.target[:, 1:]
        loss = cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=PAD)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


@every_mechanism
def test_what_targets_see_of_their_source_is_given_as_cross(name):
    model = make(name)
    maps = model.attention(BATCH)
    steps, columns = BATCH.target.shape[1] - 1, BATCH.source.shape[1]
    assert maps["cross"].shape == (3, 2, 2, steps, columns)
    assert maps["decoder"].shape == (3, 2, 2, steps, steps)
    for row, length in enumerate(BATCH.source_lengths.tolist()):
        assert torch.all(maps["cross"][row, ..., length:] == 0), "padding stands on the right, as everywhere"
        alone = model.attention(make_batch([SOURCES[row]], [TARGETS[row]]))
        real = len(TARGETS[row]) + 1
        torch.testing.assert_close(
            maps["cross"][row, :, :, :real, :length], alone["cross"][0], atol=1e-5, rtol=0
        )
        among_itself = maps["encoder"][row, :, :, :length, :length]
        torch.testing.assert_close(among_itself, alone["encoder"][0], atol=1e-5, rtol=0)
    whole = maps["cross"].sum(-1) + maps["decoder"].sum(-1)
    if CATALOGUE[name].supports.weights and name != "luong-local-p":
        torch.testing.assert_close(whole, torch.ones_like(whole), atol=1e-5, rtol=0)
    state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
    _, _, looked = model.step_with_attention(state, BATCH.target[:, 0])
    torch.testing.assert_close(looked, maps["cross"][:, -1, :, 0].mean(dim=1), atol=1e-5, rtol=0)


def test_later_pieces_do_not_change_earlier_states():
    model = make()
    before = model(BATCH)
    target = BATCH.target.clone()
    target[:, 3:] = 33
    after = model(Batch(BATCH.source, BATCH.source_lengths, target, BATCH.target_lengths))
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 3:], before[:, 3:])


def test_search_finds_its_way():
    model = make()
    plan = SearchPlan(beam=3, longest=1.0, extra=3, length_penalty=0.0)
    batch = Batch(BATCH.source, BATCH.source_lengths)
    for wide, narrow in zip(beam(model, batch, plan), greedy(model, batch, plan), strict=True):
        assert wide[0].log_prob >= narrow[0].log_prob - 1e-4


@pytest.mark.parametrize("name", UNSUITABLE)
def test_what_cannot_be_masked_or_shifted_is_refused(name):
    with pytest.raises(UnsupportedError, match=f'model.attention cannot be "{name}"'):
        make(name)
