"""NumPy and torch do the same to the arrays of a step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from simstate.env.backend import Backend, HostBackend
from simstate.world.ledger import Ledger
from simstate.world.random import WorldRandom


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    host = request.param == "numpy"
    return HostBackend() if host else Backend(torch.device("cpu"))


def test_arrays_share_memory_and_copies_do_not(backend):
    tensor = torch.tensor([[1.5, 2.0], [3.0, -4.0]], requires_grad=True)
    array = backend.array(tensor)
    assert isinstance(array, backend.kind)
    copy = backend.copy(array)
    array[1, 0] = 7.0
    assert tensor[1, 0] == 7.0
    assert float(copy[1, 0]) == 3.0
    assert backend.tensor(array).data_ptr() == tensor.data_ptr()
    assert backend.as_array(tensor)[1, 0] == 7.0
    assert not backend.tensor(backend.as_array(tensor)).requires_grad
    assert backend.as_array([1.0]) is None


def test_new_arrays_have_shape_and_dtype(backend):
    empty = backend.empty((3, 2), torch.float32)
    assert isinstance(empty, backend.kind)
    assert tuple(empty.shape) == (3, 2)
    assert backend.tensor(empty).dtype == torch.float32
    made = backend.constant([1.0, 2.5], torch.float64)
    assert backend.tensor(made).tolist() == [1.0, 2.5]
    assert backend.tensor(made).dtype == torch.float64
    cast = backend.cast(made, torch.float32)
    assert backend.tensor(cast).dtype == torch.float32


def test_sums_are_in_order_and_leave_their_parts(backend):
    given = [[1e16, 1.0], [1.0, 2.0], [-1e16, 4.0]]
    parts = torch.tensor(given, dtype=torch.float64)
    total = backend.ordered_sum(backend.array(parts))
    assert backend.tensor(total).tolist() == [0.0, 7.0]  # (1e16 + 1) − 1e16
    assert parts[0].tolist() == [1e16, 1.0]


def test_draws_are_those_of_each_world(backend):
    def random() -> WorldRandom:
        return WorldRandom(Ledger(4, torch.device("cpu")), 3)

    low, high = torch.tensor([0.0, 5.0]).double(), torch.tensor([1.0, 9.0]).double()
    low, high = backend.array(low), backend.array(high)
    rows = torch.tensor([3, 1])
    some = backend.tensor(backend.uniform(random(), rows, low, high))
    every = backend.tensor(backend.uniform(random(), None, low, high))
    assert every.shape == (4, 2)
    assert torch.equal(some, every[rows])
    assert bool(((every[:, 1] >= 5.0) & (every[:, 1] < 9.0)).all())


def test_ids_of_masks(backend):
    masks = {
        "due": torch.tensor([True, False, True]),
        "none": torch.tensor([False, False, False]),
        "last": torch.tensor([False, False, True]),
    }
    found = backend.ids({name: backend.array(mask) for name, mask in masks.items()})
    assert {name: ids.tolist() for name, ids in found.items()} == {
        "due": [0, 2],
        "none": [],
        "last": [2],
    }
    assert all(ids.dtype == torch.int64 for ids in found.values())


def test_values_that_are_not_finite_are_excused_or_raise(backend):
    def values() -> object:
        given = [[1.0, np.nan], [np.inf, 2.0], [3.0, -np.inf]]
        return backend.array(torch.tensor(given))

    def error(invalid) -> Exception:
        return ValueError(str(backend.tensor(invalid).int().tolist()))

    excused = backend.array(torch.tensor([[True], [True], [False]]))
    every = backend.array(torch.tensor([[True], [True], [True]]))
    fine = values()
    backend.check_finite(fine, every, error)
    backend.check()
    assert backend.tensor(fine).tolist() == [[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]

    def checked(excused) -> None:
        backend.check_finite(values(), excused, error)
        backend.ids({"any": backend.array(torch.tensor([True]))})

    with pytest.raises(ValueError, match=r"\[\[0, 0\], \[0, 0\], \[0, 1\]\]"):
        checked(excused)
    with pytest.raises(ValueError, match=r"\[\[0, 1\], \[1, 0\], \[0, 1\]\]"):
        checked(None)
    backend.check()  # each is raised once


def test_mistakes_of_an_unfinished_step_are_forgotten():
    backend = Backend(torch.device("cpu"))
    backend.check_finite(torch.tensor([torch.nan]), None, lambda _: ValueError())
    backend.forget()
    assert backend.ids({"a": torch.tensor([False, True])})["a"].tolist() == [1]
