"""Selections, assignments, tables for notebooks and the compiled core's place."""

import ctypes
import sys
from html.parser import HTMLParser
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simstate import InvalidInputError, ShapeError
from simstate.base import compiled_core
from simstate.base.ids import as_index, as_values, assign, select
from simstate.base.notebook import html_summary

CPU = torch.device("cpu")


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_a_selection_is_that_of_numpy(data):
    size = data.draw(st.integers(1, 7))
    whole = st.integers(-9, 9)
    ids = data.draw(
        st.one_of(
            st.none(),
            st.integers(0, size - 1),
            st.builds(slice, st.none() | whole, st.none() | whole,
                      st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])),
            st.lists(st.integers(0, size - 1), unique=True),
            st.lists(st.booleans(), min_size=size, max_size=size),
        )
    )  # fmt: skip
    wished = np.atleast_1d(np.arange(size)[slice(None) if ids is None else ids])
    if ids == []:
        wished = np.zeros(0, int)
    values = torch.arange(size) * 10
    found = select(ids, size, "env", CPU)
    assert (found.count, found.size) == (len(wished), size)
    assert values[found.index].tolist() == (10 * wished).tolist()
    assert values.numpy()[found.host].tolist() == (10 * wished).tolist()
    assert found.tensor(CPU).tolist() == wished.tolist()
    in_order = wished.tolist() == list(range(size))
    assert found.is_all == (
        in_order and (ids is None or isinstance(found.index, slice))
    )
    index = as_index(wished.tolist())
    assert values[index].tolist() == (10 * wished).tolist()
    rises = len(wished) == 0 or (np.diff(wished) == 1).all()
    assert isinstance(index, slice) == bool(rises)


@pytest.mark.parametrize(
    "ids", [3, -1, [0, 3], [-1], [1, 1], [2, 0, 2], True, [True, 1], [0.5], "a", [[0]],
            [1j], torch.ones(2, device="meta"), torch.zeros(2, 1, dtype=torch.int64),
            [True, False], [True] * 4, slice("a", None), slice(None, None, 0)],
    ids=str,
)  # fmt: skip
def test_ids_that_select_nothing_definite_are_rejected(ids):
    with pytest.raises(InvalidInputError) as caught:
        select(ids, 3, "env", CPU)
    assert caught.value.name == "env_ids"


INDICES = (
    slice(1, 3),
    torch.tensor([2, 0]),
    torch.tensor([True, False, True]).nonzero()[:, 0],
)


@pytest.mark.parametrize("rows", INDICES, ids=["slice", "ids", "mask"])
@pytest.mark.parametrize("columns", [None, slice(0, 2), torch.tensor([3, 1])], ids=str)
def test_an_assignment_is_that_of_a_loop(rows, columns):
    tensor, wished = torch.zeros(3, 4), torch.zeros(3, 4)
    width = 4 if columns is None else 2
    values = 1 + torch.arange(2 * width).reshape(2, width).float()
    assign(tensor, rows, columns, values)
    of_rows = torch.arange(3)[rows].tolist()
    of_columns = torch.arange(4)[slice(None) if columns is None else columns].tolist()
    for i, row in enumerate(of_rows):
        for k, column in enumerate(of_columns):
            wished[row, column] = values[i, k]
    assert torch.equal(tensor, wished)


def test_values_are_copies_with_one_row_for_each_or_for_all():
    like = torch.zeros(1, dtype=torch.float64)
    given_ = torch.ones(2, 3, dtype=torch.float64)
    found = as_values(given_, "x", 2, (3,), like)
    found += 1
    assert bool((given_ == 1).all())
    assert as_values([[1, 2, 3]], "x", 2, (3,), like).tolist() == [[1, 2, 3]]
    assert (
        as_values(np.ones((2, 3), np.float32), "x", 2, (3,), like).dtype == like.dtype
    )
    for shape in [(3,), (3, 3), (2, 4), (2, 3, 1), (0, 3)]:
        with pytest.raises(ShapeError) as caught:
            as_values(torch.ones(shape).double(), "x", 2, (3,), like)
        assert (caught.value.name, tuple(caught.value.shape)) == ("x", shape)
    wrong = (torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3, device="meta"),
             torch.ones(2, 3).double().to_sparse())  # fmt: skip
    for values in wrong:
        with pytest.raises(InvalidInputError):
            as_values(values, "x", 2, (3,), like)


class Table(HTMLParser):
    """The texts of a table's cells, and the other texts."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.others, self.images, self._path = [], [], [], []
        self.feed(text)
        assert self._path == []

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        elif tag != "br":
            self._path.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self._path.pop() == tag

    def handle_data(self, data):
        if self._path[-1] in ("td", "th"):
            assert self._path[:2] == ["div", "table"]
            self.rows[-1].append((self._path[-1], data))
        else:
            self.others.append(data)


@pytest.mark.parametrize("count", [0, 1, 60, 61, 75])
def test_a_table_for_notebooks_has_its_cells_and_says_what_it_left_out(count):
    rows = [(k, f"<{k}>") for k in range(count)]
    table = Table(html_summary("a <b> & c", ["number", "te>xt"], rows, b"\x01\x02"))
    assert table.rows[0] == [("th", "number"), ("th", "te>xt")]
    shown = [[("td", str(k)), ("td", f"<{k}>")] for k in range(min(count, 60))]
    assert table.rows[1:] == shown
    more = [f"… {count - 60} more rows"] if count > 60 else []
    assert table.others == ["a <b> & c", *more]
    assert table.images == ["data:image/png;base64,AQI="]
    assert Table(html_summary("x", [], [])).images == []


def test_the_core_is_where_the_package_is_and_is_described(monkeypatch):
    name = f"_core_{mujoco.mj_version()}"
    assert compiled_core.module_name() == f"simstate.engine.core.{name}"
    assert compiled_core.is_available()
    assert Path(compiled_core.module().__file__).name.startswith(name)
    assert compiled_core.module() is sys.modules[compiled_core.module_name()]
    assert compiled_core.description() == "native engine: compiled core"
    assert (Path(compiled_core.get_include()) / "simstate" / "force.h").is_file()
    monkeypatch.setenv(compiled_core.SWITCH, "0")
    assert not compiled_core.is_available()
    assert compiled_core.SWITCH in compiled_core.description()
    monkeypatch.setenv(compiled_core.SWITCH, "1")
    assert compiled_core.is_available()


@pytest.mark.parametrize("name", ["passive", "control", "sensor", "act_gain"])
def test_a_callback_in_python_is_refused_and_one_in_c_is_not(name):
    set_callback = getattr(mujoco, f"set_mjcb_{name}")
    compiled_core.refuse_python_callbacks()
    try:
        set_callback(lambda *args: 0)
        with pytest.raises(ValueError, match=f"mjcb_{name} is a Python function"):
            compiled_core.refuse_python_callbacks()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        set_callback(kind(lambda model, data: None))
        compiled_core.refuse_python_callbacks()
    finally:
        set_callback(None)
