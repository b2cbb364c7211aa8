"""Numbers that do not depend on where in a tensor they stand."""

import math

import pytest
import torch

from simstate.math import elementwise

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


def test_they_are_the_functions_of_their_names():
    x, y = values(torch.float64).tolist(), values(torch.float64).flip(0).tolist()
    given = torch.tensor(y, dtype=torch.float64), torch.tensor(x, dtype=torch.float64)
    found = elementwise.atan2(*given)
    want = [math.atan2(b, a) for a, b in zip(x, y, strict=True)]
    torch.testing.assert_close(found, torch.tensor(want, dtype=torch.float64))
    found = elementwise.hypot(*given)
    want = [math.hypot(b, a) for a, b in zip(x, y, strict=True)]
    torch.testing.assert_close(found, torch.tensor(want, dtype=torch.float64))
    found = elementwise.power(given[1].abs(), 0.3)
    want = [abs(a) ** 0.3 for a in x]
    torch.testing.assert_close(found, torch.tensor(want, dtype=torch.float64))


def test_roots_are_those_of_c():
    x = values(torch.float64).abs()
    assert elementwise.root(x).tolist() == [math.sqrt(one) for one in x.tolist()]


def test_shapes_broadcast_and_single_numbers_stay_so():
    y, x = torch.ones(3, 1, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    assert elementwise.atan2(y, x).shape == (3, 4)
    assert elementwise.root(torch.tensor(4.0)).shape == ()


def test_gradients_are_torchs():
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    elementwise.root(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.25, 1 / 6]))
