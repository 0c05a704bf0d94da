import math

import numpy as np
import pytest
import torch

from jumok import attention
from jumok.attention import lookup
from jumok.attention.lookup import (
    NAMES,
    AdditiveScore,
    Database,
    Kernel,
    attend,
    boxcar,
    constant,
    dot,
    epanechnikov,
    gaussian,
    look_up,
    nadaraya_watson,
    name_database,
    name_vector,
    scaled_dot,
    triangular,
)
from jumok.errors import RecipeError, UnsupportedError

KERNELS = {  # the kernel, and the formula of Dive into Deep Learning for a distance u
    "gaussian": (gaussian, lambda u: math.exp(-u * u / 2) / math.sqrt(2 * math.pi)),
    "boxcar": (boxcar, lambda u: 0.5 if u <= 1 else 0.0),
    "triangular": (triangular, lambda u: max(0.0, 1 - u)),
    "epanechnikov": (epanechnikov, lambda u: 0.75 * (1 - u * u) if u <= 1 else 0.0),
    "constant": (constant, lambda u: 1.0),
}
every_kernel = pytest.mark.parametrize(("kernel", "formula"), KERNELS.values(), ids=KERNELS)
SIMILARITIES = [dot, scaled_dot, AdditiveScore(query_width=3, key_width=3, units=4)] + [
    kernel for kernel, _ in KERNELS.values()
]


def random_database(entries, width, *value_shape):
    return Database(
        torch.randn(entries, width, dtype=torch.float64),
        torch.randn(entries, *value_shape, dtype=torch.float64),
    )


def test_dot_is_a_softmax_of_products_by_hand():
    """Scores 0 and ln 3: the weights are 1/4 and 3/4."""
    database = Database(torch.tensor([[0.0], [math.log(3)]]), torch.tensor([[4.0, 0.0], [0.0, 8.0]]))
    answer = attend(torch.tensor([1.0]), database, dot)
    torch.testing.assert_close(answer.weights, torch.tensor([0.25, 0.75]))
    torch.testing.assert_close(answer.context, torch.tensor([1.0, 6.0]))


def test_scaled_dot_divides_by_the_root_of_the_width():
    keys = torch.tensor([[0.0] * 4, [math.log(3) / 2] * 4])
    answer = attend(torch.ones(4), Database(keys, torch.tensor([0, 4])))
    torch.testing.assert_close(answer.weights, torch.tensor([0.25, 0.75]))
    torch.testing.assert_close(answer.context, torch.tensor(3.0))


def test_additive_equals_its_formula_and_takes_two_widths():
    torch.manual_seed(0)
    score = AdditiveScore(query_width=2, key_width=3, units=5)
    query, keys = torch.randn(4, 2), torch.randn(6, 3)
    for q, k in ((0, 0), (3, 5), (2, 1)):
        hidden = torch.tanh(query[q] @ score.additive.query[0] + keys[k] @ score.additive.key[0])
        torch.testing.assert_close(score(query, keys)[q, k], hidden @ score.additive.energy[0])
    answer = attend(query, Database(keys, torch.eye(6)), score)
    torch.testing.assert_close(answer.weights, torch.softmax(score(query, keys), -1))
    answer.context.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in score.parameters())


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=["dot", "scaled", "additive", *KERNELS])
def test_a_single_query_gives_the_same_result_as_in_a_batch_for_values_of_any_shape(similarity):
    torch.manual_seed(1)
    if isinstance(similarity, AdditiveScore):
        similarity = similarity.double()
    for value_shape in ((), (2,), (2, 5)):
        database = random_database(7, 3, *value_shape)
        query = database.keys[:4] + 0.1
        several = attend(query, database, similarity)
        assert several.context.shape == (4, *value_shape)
        assert several.weights.shape == (4, 7)
        torch.testing.assert_close(several.weights.sum(-1), torch.ones(4, dtype=torch.float64))
        by_hand = sum(several.weights[2, i] * database.values[i] for i in range(7))
        torch.testing.assert_close(several.context[2], by_hand)
        one = attend(query[2], database, similarity)
        torch.testing.assert_close(one.context, several.context[2])
        torch.testing.assert_close(one.weights, several.weights[2])


@every_kernel
def test_kernels_equal_the_formulas_of_the_book_up_to_a_factor(kernel, formula):
    """A factor cancels in the weights, so each kernel is divided by its value at 0."""
    zero = torch.zeros(1, 1, dtype=torch.float64)
    for distance in (0.0, 0.3, -0.8, 1.0, 1.0001, 2.5):
        ours = kernel(torch.tensor([[distance]], dtype=torch.float64), zero) / kernel(zero, zero)
        assert ours.item() == pytest.approx(formula(abs(distance)) / formula(0.0), abs=1e-12)


@every_kernel
@pytest.mark.parametrize("width", [0.35, 1.0, 4.0])
def test_nadaraya_watson_equals_a_plain_loop(kernel, formula, width):
    random = np.random.default_rng(5)
    x_train, x = random.uniform(0, 5, 30), np.linspace(-1.5, 6.5, 17)
    y_train = 2 * np.sin(x_train) + x_train + random.normal(0, 0.1, 30)
    expected = []
    for point in x:
        similarities = [formula(abs(point - other) / width) for other in x_train]
        weighted_sum = sum(k * y for k, y in zip(similarities, y_train, strict=True))
        expected.append(weighted_sum / sum(similarities) if sum(similarities) > 0 else 0.0)
    ours = nadaraya_watson(*map(torch.from_numpy, (x_train, y_train, x)), kernel, width)
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-10)


def test_nadaraya_watson_takes_vectors_and_fits_a_plane():
    grid = torch.cartesian_prod(torch.linspace(0, 1, 21), torch.linspace(0, 1, 21))
    plane = grid @ torch.tensor([2.0, -1.0])  # 2x - y
    middle = torch.tensor([[0.5, 0.5], [0.4, 0.6]])
    fitted = nadaraya_watson(grid, plane, middle, epanechnikov, width=0.21)
    torch.testing.assert_close(fitted, torch.tensor([0.5, 0.2]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kernel", [boxcar, triangular, epanechnikov])
def test_a_query_far_from_every_key_gets_zero_and_finite_gradients(kernel):
    query = torch.tensor([[100.0, 0.0], [0.0, 0.0], [0.5, 0.2]], requires_grad=True)  # far, on a key, near
    keys = torch.tensor([[0.0, 0.0], [1.0, 0.0]], requires_grad=True)
    values = torch.tensor([3.0, 5.0], requires_grad=True)
    answer = attend(query, Database(keys, values), kernel)
    assert answer.weights[0].tolist() == [0.0, 0.0]
    assert answer.context[0] == 0
    assert answer.context[2] > 0
    answer.context.square().sum().backward()
    for leaf in (query, keys, values):
        assert torch.isfinite(leaf.grad).all()
    assert query.grad[0].tolist() == [0.0, 0.0]


def test_far_from_every_key_gaussian_still_returns_the_value_of_the_nearest_key():
    database = Database(torch.tensor([[0.0], [10.0]]), torch.tensor([1.0, 2.0]))
    query = torch.tensor([1000.0], requires_grad=True)
    assert gaussian(query[None], database.keys).sum() == 0  # the kernel itself has underflowed
    answer = attend(query, database, gaussian)
    assert answer.context == 2
    answer.context.backward()
    assert torch.isfinite(query.grad).all()


@pytest.mark.parametrize(
    "similarity", [dot, scaled_dot, gaussian, triangular], ids=["dot", "scaled", "gaussian", "triangular"]
)
def test_the_gradient_equals_finite_differences(similarity):
    torch.manual_seed(2)
    database = random_database(5, 3, 2)
    leaves = [database.keys[:2] * 0.6, database.keys, database.values]
    assert torch.autograd.gradcheck(
        lambda query, keys, values: attend(query, Database(keys, values), similarity).context,
        [leaf.clone().requires_grad_() for leaf in leaves],
    )


def test_a_key_returns_its_value_and_a_missing_key_returns_the_value_of_the_nearest_key():
    assert look_up("Li") == "Mu"
    assert look_up("Li", without=["Li"]) == "Zachary"
    assert [look_up(key) for key, _ in NAMES] == [value for _, value in NAMES]
    assert look_up("Zhangg") == "Aston"  # a misspelt name


def test_for_a_missing_name_the_nearest_key_has_the_largest_weight():
    names = [entry for entry in NAMES if entry[0] != "Li"]
    answer = attend(name_vector("Li"), name_database(names), dot)
    torch.testing.assert_close(answer.context, answer.weights)
    assert names[int(answer.weights.argmax())] == ("Lipton", "Zachary")
    similarities = dot(name_vector("Li")[None], name_database(names).keys)[0]
    assert similarities.count_nonzero() == 1  # no other name shares an n-gram with "<li>"
    assert name_vector("Li").norm().item() == pytest.approx(1.0)


def test_unknown_names_cannot_be_left_out():
    with pytest.raises(RecipeError, match=r'no name "Lipten".*Did you mean "Lipton"'):
        look_up("Li", without=["Lipten"])
    with pytest.raises(RecipeError, match="no name left"):
        look_up("Li", without=[key for key, _ in NAMES])


def test_shapes_that_do_not_match_are_refused():
    with pytest.raises(UnsupportedError, match=r"keys \(2, 3\) and values \(3,\)"):
        Database(torch.zeros(2, 3), torch.zeros(3))
    for similarity in (dot, boxcar):
        with pytest.raises(UnsupportedError, match=r"width 2 .* width 3.*AdditiveScore"):
            attend(torch.zeros(2), Database(torch.zeros(1, 3), torch.zeros(1)), similarity)
    with pytest.raises(RecipeError, match="greater than 0"):
        Kernel(boxcar.of_distance, width=0.0)


def test_dtypes_that_cannot_be_compared_are_refused():
    points = torch.arange(3)
    with pytest.raises(UnsupportedError, match=r"Received: queries of torch\.int64.*`\.float\(\)`"):
        nadaraya_watson(points, points, points)
    with pytest.raises(UnsupportedError, match=r"float64 and keys of torch\.float32"):
        attend(torch.ones(2, dtype=torch.float64), Database(torch.ones(3, 2), points))
    with pytest.raises(RecipeError, match="Received: none"):
        name_database([])


def test_the_look_up_and_its_similarities_are_exported():
    for name in ("AdditiveScore", "Kernel", "Score", "attend", "boxcar", "dot", "gaussian", "triangular"):
        assert getattr(attention, name) is getattr(lookup, name)
