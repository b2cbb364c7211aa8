"""Numbers that do not depend on where in a tensor they stand."""

import math

import pytest
import torch
from torch.autograd import forward_ad

from simstate.math import elementwise

pytestmark = pytest.mark.fast

FUNCTIONS = {
    "atan2": lambda x: elementwise.atan2(x, 1.2 - x),
    "hypot": lambda x: elementwise.hypot(x, 1.2 - x),
    "power": lambda x: elementwise.power(x.abs(), -0.2),
    "power by tensor": lambda x: elementwise.power(x.abs(), 1.2 - x),
    "root": lambda x: elementwise.root(x.abs()),
}


def values(dtype, count=1003):
    drawn = torch.Generator().manual_seed(4)
    return (3.0 * torch.randn(count, generator=drawn, dtype=torch.float64)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_number_has_the_same_bits_alone(name, dtype):
    function, x = FUNCTIONS[name], values(dtype)
    whole = function(x)
    assert whole.dtype == dtype
    for n in (1, 3, 7):
        parts = torch.cat([function(x[k : k + n].clone()) for k in range(0, 1003, n)])
        assert torch.equal(parts, whole), n


@pytest.mark.parametrize(
    ("ours", "plain"),
    [
        (elementwise.atan2, math.atan2),
        (elementwise.hypot, math.hypot),
        (lambda y, x: elementwise.power(x.abs(), 0.3), lambda y, x: abs(x) ** 0.3),
    ],
    ids=["atan2", "hypot", "power"],
)
def test_they_are_the_functions_of_their_names(ours, plain):
    x, y = values(torch.float64), values(torch.float64).flip(0)
    want = [plain(b, a) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    torch.testing.assert_close(ours(y, x), torch.tensor(want, dtype=torch.float64))


def test_roots_are_those_of_c():
    x = values(torch.float64).abs()
    assert elementwise.root(x).tolist() == [math.sqrt(one) for one in x.tolist()]


def test_shapes_broadcast():
    y, x = torch.ones(3, 1, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    assert elementwise.atan2(y, x).shape == (3, 4)


def test_a_single_number_stays_one():
    assert elementwise.root(torch.tensor(4.0)).shape == ()


def test_gradients_are_torchs():
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    elementwise.root(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.25, 1 / 6]))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_derivatives_in_forward_mode_are_torchs():
    x = torch.tensor([4.0, 9.0])
    with forward_ad.dual_level():
        found = elementwise.root(forward_ad.make_dual(x, torch.ones(2)))
        tangent = forward_ad.unpack_dual(found).tangent
    torch.testing.assert_close(tangent, torch.tensor([0.25, 1 / 6]))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_derivatives_by_jvp_are_torchs():
    x = torch.tensor([4.0, 9.0])
    _, tangent = torch.func.jvp(elementwise.root, (x,), (torch.ones(2),))
    torch.testing.assert_close(tangent, torch.tensor([0.25, 1 / 6]))


# Tensors that NumPy cannot have.


def test_a_function_is_mapped_by_vmap():
    x = torch.tensor([4.0, 9.0])
    assert torch.vmap(elementwise.root)(x).tolist() == [2.0, 3.0]


def test_a_view_that_is_negated_lazily_has_its_value():
    x = torch.tensor([4.0, 9.0])
    negated = torch.complex(x, -x).conj().imag
    assert negated.is_neg()
    assert elementwise.root(negated).tolist() == [2.0, 3.0]


def test_a_dtype_that_numpy_lacks_is_kept():
    x = torch.tensor([4.0, 9.0]).bfloat16()
    assert elementwise.power(x, 0.5).dtype == torch.bfloat16


def test_a_power_of_integers_is_that_of_numbers():
    assert elementwise.power(torch.tensor([4, 9]), 0.5).tolist() == [2.0, 3.0]


def test_a_single_number_does_not_widen_the_others():
    x = torch.tensor([4.0, 9.0])
    assert elementwise.atan2(x, torch.tensor(1.0, dtype=torch.float64)).dtype == x.dtype
