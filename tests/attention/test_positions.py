import math

import numpy as np
import pytest
import torch

from jumok.attention import (
    HeadShape,
    LuongDot,
    MultiHead,
    Restricted,
    ScaledDot,
    SinusoidalPositions,
    sinusoids,
)
from jumok.attention.positions import (
    Alibi,
    HeadPositions,
    LearnedPositions,
    MarianPositions,
    NoPositions,
    RelativeBias,
    RelativeKeys,
    Rotary,
    alibi_bias,
    alibi_slopes,
    marian_sinusoids,
    relative_buckets,
    rotate,
)
from jumok.errors import RecipeError, UnsupportedError


@pytest.mark.parametrize(("position", "column"), [(0, 0), (0, 1), (3, 0), (3, 5), (100, 6), (511, 7)])
def test_sinusoids_follow_the_formula(position, column):
    angle = position / 10000 ** (2 * (column // 2) / 8)
    expected = math.cos(angle) if column % 2 else math.sin(angle)
    assert sinusoids(512, 8)[position, column].item() == pytest.approx(expected, abs=1e-6)


def test_sinusoids_beyond_the_table_equal_a_larger_table():
    short, long = SinusoidalPositions(6, table_size=4), SinusoidalPositions(6, table_size=64)
    assert torch.equal(short(20), long(20))
    assert torch.equal(short(1, offset=30), long(1, offset=30))
    assert torch.equal(short(3, offset=3), long(3, offset=3))
    assert len(short.table) == 4
    assert short.to(torch.float64)(9).dtype == torch.float64


def test_sinusoids_support_an_odd_width():
    assert sinusoids(3, 5).shape == (3, 5)


def test_the_table_of_sinusoids_is_not_stored():
    assert SinusoidalPositions(6).state_dict() == {}


def test_learned_positions_are_rows_of_a_trained_table_and_are_refused_beyond_its_end():
    positions = LearnedPositions(6, max_positions=4)
    assert torch.equal(positions(2, offset=1), positions.table[1:3])
    assert positions(4).shape == (4, 6)
    positions(3).sum().backward()
    assert positions.table.grad.sum(dim=1).tolist() == [6.0, 6.0, 6.0, 0.0]
    with pytest.raises(UnsupportedError, match=r"end at 4 tokens.*5 tokens.*sinusoidal"):
        positions(1, offset=4)


def test_no_positions_are_zeros_with_the_dtype_of_the_model():
    positions = NoPositions(3).to(torch.float64)
    assert torch.equal(positions(2, offset=7), torch.zeros(2, 3, dtype=torch.float64))
    assert positions.state_dict() == {}


@pytest.mark.parametrize("positions", [SinusoidalPositions(8), LearnedPositions(8), NoPositions(8)])
def test_a_step_equals_a_row_of_the_table(positions):
    assert torch.equal(positions(1, offset=3), positions(6)[3:4])


@pytest.mark.parametrize(("positions", "same"), [(NoPositions(8), True), (SinusoidalPositions(8), False)])
def test_a_word_has_the_same_context_in_go_home_i_and_i_go_home_only_without_positions(positions, same):
    torch.manual_seed(0)
    attention = MultiHead(width=8, heads=2, mechanism=ScaledDot()).eval()
    vectors = dict(zip(["I", "go", "home"], torch.randn(3, 8), strict=True))
    order = {"I go home": ["I", "go", "home"], "go home I": ["go", "home", "I"]}
    context = {
        sentence: attention.attend_self(
            torch.stack([vectors[word] for word in words])[None] + positions(3)
        ).context[0]
        for sentence, words in order.items()
    }
    moved = context["go home I"][[2, 0, 1]]  # reordered to "I go home"
    largest_difference = (moved - context["I go home"]).abs().max().item()
    assert largest_difference < 1e-6 if same else largest_difference > 0.05


def test_rotary_is_a_complex_rotation_of_the_two_halves():
    states = np.random.default_rng(0).normal(size=(2, 3, 5, 8))
    expected = np.empty_like(states)
    for position in range(5):
        for column in range(4):
            rotation = np.exp(1j * (position + 7) * 10000.0 ** (-2 * column / 8))
            rotated = (states[..., position, column] + 1j * states[..., position, column + 4]) * rotation
            expected[..., position, column], expected[..., position, column + 4] = rotated.real, rotated.imag
    np.testing.assert_allclose(rotate(torch.from_numpy(states), offset=7).numpy(), expected, atol=1e-12)
    assert np.abs(rotate(torch.from_numpy(states), offset=7, base=100.0).numpy() - expected).max() > 0.1


def test_rotary_products_depend_on_the_distance_alone():
    torch.manual_seed(1)
    query, key = torch.randn(2, 1, 1, 1, 16, dtype=torch.float64)

    def product(query_position, key_position):
        return (rotate(query, offset=query_position) * rotate(key, offset=key_position)).sum().item()

    assert product(3, 10) == pytest.approx(product(103, 110), abs=1e-10)
    assert product(9, 2) == pytest.approx(product(7, 0), abs=1e-10)
    assert product(4, 4) == pytest.approx((query * key).sum().item(), abs=1e-10)
    assert abs(product(3, 10) - product(10, 3)) > 1e-3  # a key after the query and a key before it differ


def test_rotary_preserves_norm_and_precision_and_works_step_by_step():
    torch.manual_seed(2)
    states = torch.randn(2, 3, 6, 10)
    rotated = rotate(states)
    torch.testing.assert_close(rotated.norm(dim=-1), states.norm(dim=-1))
    torch.testing.assert_close(rotate(states[:, :, 4:5], offset=4), rotated[:, :, 4:5])
    assert torch.equal(rotated[:, :, 0], states[:, :, 0])
    assert rotate(states.bfloat16()).dtype == torch.bfloat16
    with pytest.raises(UnsupportedError, match=r"even width\. Received: width 5"):
        rotate(torch.zeros(1, 1, 1, 5))


def test_alibi_slopes_equal_the_numbers_of_the_paper():
    assert alibi_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert alibi_slopes(1) == [1 / 256]
    assert alibi_slopes(16)[:3] == pytest.approx([2**-0.5, 2**-1, 2**-1.5])


def test_alibi_slopes_between_powers_of_two_follow_the_code_of_the_paper():
    """12 heads: the slopes of eight heads, then the 1st, 3rd, 5th and 7th slope of sixteen."""
    assert alibi_slopes(12) == pytest.approx(
        [2.0**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    )
    assert alibi_slopes(3) == pytest.approx([2**-4, 2**-8, 2**-2])
    for heads in range(1, 20):
        assert len(set(alibi_slopes(heads))) == heads
    with pytest.raises(RecipeError, match="0"):
        alibi_slopes(0)


def test_the_alibi_bias_falls_with_the_distance():
    bias = alibi_bias(8, 2, 4, query_offset=1)
    assert bias.shape == (8, 2, 4)
    assert bias[0].tolist() == [[-0.5, 0.0, -0.5, -1.0], [-1.0, -0.5, 0.0, -0.5]]
    torch.testing.assert_close(bias[7], bias[0] / 128)
    assert torch.equal(alibi_bias(4, 6, 6)[:, 5:], alibi_bias(4, 1, 6, query_offset=5))


def t5_bucket(distance, buckets, max_distance, bidirectional):
    """The bucket of one distance (key minus query), as defined in the T5 code."""
    bucket, behind = 0, -distance
    if bidirectional:
        buckets //= 2
        if behind < 0:
            bucket += buckets
        behind = abs(behind)
    else:
        behind = max(behind, 0)
    exact = buckets // 2
    if behind < exact:
        return bucket + behind
    wide = exact + int(math.log(behind / exact) / math.log(max_distance / exact) * (buckets - exact))
    return bucket + min(wide, buckets - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20), (16, 400)])
def test_t5_buckets_follow_the_definition(buckets, max_distance, bidirectional):
    distances = torch.arange(-500, 501)
    ours = relative_buckets(distances, buckets, max_distance, bidirectional=bidirectional).tolist()
    assert ours == [
        t5_bucket(distance, buckets, max_distance, bidirectional) for distance in distances.tolist()
    ]
    # If bidirectional, the bucket "after, distance 0" never occurs.
    assert set(ours) == set(range(buckets)) - ({buckets // 2} if bidirectional else set())


def test_t5_bias_reads_its_table_by_bucket():
    bias = RelativeBias(2, buckets=8, max_distance=20)
    assert torch.equal(bias(3, 4), torch.zeros(2, 3, 4))
    torch.nn.init.normal_(bias.table)
    values = bias(3, 4, query_offset=9)
    for head, query, key in ((0, 0, 0), (1, 2, 3), (0, 1, 2)):
        bucket = t5_bucket(key - (9 + query), 8, 20, True)
        assert values[head, query, key] == bias.table[head, bucket]
    torch.testing.assert_close(bias(6, 6)[:, 5:], bias(1, 6, query_offset=5))
    bias(2, 2).sum().backward()
    assert bias.table.grad.sum() == 8  # two heads, two queries, two keys


@pytest.mark.parametrize("settings", [{"buckets": 2}, {"buckets": 9}, {"max_distance": 8}])
def test_invalid_t5_buckets_are_refused(settings):
    with pytest.raises(RecipeError, match=r"Received: buckets"):
        RelativeBias(2, **settings)


def test_relative_keys_equal_a_plain_loop():
    torch.manual_seed(3)
    relative = RelativeKeys(heads=2, width=4, max_distance=2).double()
    query = torch.randn(3, 2, 5, 4, dtype=torch.float64)
    scores = relative.bias(query, 7, 1, scale=0.5)
    assert scores.shape == (3, 2, 5, 7)
    for batch, head, position, key in np.ndindex(3, 2, 5, 7):
        clipped = max(-2, min(2, key - (1 + position)))
        vector = relative.table[head, clipped + 2]
        expected = (query[batch, head, position] @ vector).item() / 2
        assert scores[batch, head, position, key].item() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(relative.bias(query[:, :, 3:4], 7, 4, scale=0.5), scores[:, :, 3:4])


@pytest.mark.parametrize("kind", [ScaledDot, Restricted, LuongDot])
def test_relative_keys_as_a_bias_equal_vectors_added_to_the_keys(kind):
    """This holds for every scale of the mechanism's dot products."""
    torch.manual_seed(4)
    relative, mechanism = RelativeKeys(heads=1, width=6, max_distance=1), kind(HeadShape(1, 6, 6))
    attention = MultiHead(width=6, heads=1, mechanism=mechanism, positions=relative)
    torch.nn.init.eye_(attention.query.weight)
    torch.nn.init.eye_(attention.key.weight)
    query, keys = torch.randn(1, 1, 6), torch.randn(1, 4, 6)
    added = keys + relative.table[:, torch.tensor([0, 1, 2, 2])]  # distances -1 0 1 2 from position 1
    biased = attention(query, attention.prepare(keys, keys), query_offset=1, need_weights=True)
    memory = mechanism.prepare(added[:, None], keys[:, None], None)
    expected = mechanism(query[:, None], memory, query_offset=1, need_weights=True)
    torch.testing.assert_close(biased.weights, expected.weights)


def test_rotary_follows_the_formula_within_its_table_and_beyond():
    torch.manual_seed(5)
    states, short = torch.randn(2, 3, 6, 10), Rotary(10, table_size=4)
    assert short.state_dict() == {}
    for offset in (0, 2, 9):
        torch.testing.assert_close(short.rotate(states, offset), rotate(states, offset))
        torch.testing.assert_close(Rotary(10).rotate(states, offset), rotate(states, offset))


def test_in_double_precision_positions_follow_the_formula():
    """A table rounded to single precision would be off by 1e-8."""
    states = torch.randn(1, 2, 6, 10, dtype=torch.float64)
    for offset in (0, 9):
        assert torch.equal(Rotary(10).double().rotate(states, offset), rotate(states, offset))
    exact = sinusoids(6, 10, offset=3, dtype=torch.float64)
    assert torch.equal(SinusoidalPositions(10).double()(6, offset=3), exact)
    assert exact[1, 0].item() == math.sin(4)
    assert torch.equal(SinusoidalPositions(10)(6, offset=3), exact.float())


def test_alibi_follows_the_paper_in_a_decoder_and_tells_left_from_right_in_an_encoder():
    query = torch.zeros(1, 4, 5, 2)
    bias = Alibi(4).bias(query, 5, 0)
    before = torch.ones(5, 5).tril().bool()
    assert torch.equal(bias[:, before], alibi_bias(4, 5, 5)[:, before])
    # Head 0 has the slope 1/4 for keys before the query, and the slope of the last head, 1/256, after it.
    assert bias[0, 2].tolist() == [-2 / 4, -1 / 4, 0, -1 / 256, -2 / 256]
    assert torch.equal(bias.flip(1, 2), bias.flip(0))  # mirroring the sentence reverses the heads
    assert not torch.equal(bias.flip(1, 2), bias)


@pytest.mark.parametrize(
    "positions", [HeadPositions(), Rotary(4), Alibi(2), RelativeBias(2), RelativeKeys(2, 4, 3)]
)
def test_head_positions_depend_on_distances_alone(positions):
    """A sentence shifted by three positions has the same scores: padding on the left changes nothing."""
    torch.manual_seed(6)
    for parameter in positions.parameters():
        torch.nn.init.normal_(parameter)
    query, keys = torch.randn(2, 1, 2, 5, 4)

    def scores(offset: int) -> torch.Tensor:
        rotated = positions.rotate(query, offset)
        products = rotated @ positions.rotate(keys, offset).transpose(-2, -1)
        bias = positions.bias(rotated, offset + 5, offset)
        return products if bias is None else products + bias[..., offset:]

    torch.testing.assert_close(scores(3), scores(0), atol=1e-5, rtol=0)


def test_the_bias_of_a_call_and_the_bias_of_the_positions_are_added():
    torch.manual_seed(7)
    with_alibi = MultiHead(width=8, heads=2, mechanism=ScaledDot(), positions=Alibi(2)).eval()
    plain = MultiHead(width=8, heads=2, mechanism=ScaledDot()).eval()
    plain.load_state_dict(with_alibi.state_dict())
    states, bias = torch.randn(1, 5, 8), torch.randn(2, 5, 5)
    added = Alibi(2).bias(torch.zeros(1, 2, 5, 4), 5, 0) + bias
    actual = with_alibi(states, with_alibi.prepare(states, states), bias=bias)
    expected = plain(states, plain.prepare(states, states), bias=added)
    torch.testing.assert_close(actual.context, expected.context)


def test_the_lowest_frequency_of_marians_sinusoids_is_a_ten_thousandth() -> None:
    """Column pairs (sin, cos) of 10000^(-i/(d/2 - 1)); Marian itself has all sines first."""
    table = marian_sinusoids(3, 8, offset=1)
    frequencies = [1.0, 10000 ** (-1 / 3), 10000 ** (-2 / 3), 1 / 10000]
    expected = [[f(p * w) for w in frequencies for f in (math.sin, math.cos)] for p in (1, 2, 3)]
    assert torch.allclose(table, torch.tensor(expected), atol=1e-7)
    positions = MarianPositions(8, table_size=2)
    assert torch.equal(positions(3, offset=1), table)  # beyond the table
    assert not torch.allclose(table, sinusoids(3, 8, offset=1), atol=1e-3)
