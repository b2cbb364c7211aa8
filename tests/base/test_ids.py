"""One meaning of ids and of values, through real writers; errors leave the state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from tests.raised import raises
from torch import Tensor

from simstate import (
    Entity,
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    SimStateError,
    Simulation,
)
from simstate.base.ids import as_index, everything, ndim, select

pytestmark = pytest.mark.fast

NUM_ENVS = 6

# The ball joint keeps the two columns of joint_pos apart in qpos.
XML = """
<mujoco>
  <worldbody>
    <body name="base">
      <geom size="0.1"/>
      <body name="slider" pos="0 0 0.5">
        <joint name="slide" type="slide" axis="1 0 0"/>
        <geom size="0.1"/>
        <body name="ball" pos="0 0 0.5">
          <joint name="ball" type="ball"/>
          <geom size="0.1"/>
          <body name="arm" pos="0 0 0.5">
            <joint name="hinge" axis="0 1 0"/>
            <geom size="0.1"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
SLIDE, HINGE = 0, 5
"""Columns of qpos."""


@pytest.fixture
def sim() -> Simulation:
    cfg = SceneCfg(entities={"robot": EntityCfg(model=XML)}, ground=False)
    sim = Simulation(cfg, num_envs=NUM_ENVS, engine="native")
    noise = torch.rand(NUM_ENVS, 2, generator=torch.Generator().manual_seed(0))
    sim.data.qpos[:, [SLIDE, HINGE]] = noise.double()
    return sim


@pytest.fixture
def robot(sim: Simulation) -> Entity:
    return sim.scene["robot"]


@contextmanager
def refused(sim: Simulation, error: type[SimStateError], *says: str) -> Iterator[None]:
    """Expect an error whose text holds all of `says`, and no change of the state."""
    before = sim.state.clone()
    with pytest.raises(error) as caught:
        yield
    for text in says:
        assert text in str(caught.value)
    assert torch.equal(sim.state, before)


def distinct(rows: int, columns: int = 2) -> Tensor:
    """A different number in each element, unlike any of the random ones."""
    values = torch.arange(1.0, 1.0 + rows * columns, dtype=torch.float64)
    return 10 * values.reshape(rows, columns)


INT_SPELLINGS: list[tuple[Any, list[int]]] = [
    (None, [0, 1, 2, 3, 4, 5]),
    (4, [4]),
    (np.int64(4), [4]),
    (np.uint8(4), [4]),
    (torch.tensor(4), [4]),
    (slice(None), [0, 1, 2, 3, 4, 5]),
    (slice(2, 5), [2, 3, 4]),
    (slice(1, None, 2), [1, 3, 5]),
    (slice(-2, None), [4, 5]),
    (slice(None, None, -1), [5, 4, 3, 2, 1, 0]),
    (slice(4, 0, -2), [4, 2]),
    (slice(3, 100), [3, 4, 5]),
    (slice(5, 2), []),
    ([1, 3], [1, 3]),
    ([5, 0, 3], [5, 0, 3]),
    ((2, 1), [2, 1]),
    (range(4, 1, -1), [4, 3, 2]),
    (np.array([5, 0, 3]), [5, 0, 3]),
    (np.array([5, 0], dtype=np.uint16), [5, 0]),
    (torch.tensor([5, 0, 3]), [5, 0, 3]),
    (torch.tensor([5, 0, 3], dtype=torch.int32), [5, 0, 3]),
    (torch.tensor([5, 0, 3], dtype=torch.int16), [5, 0, 3]),
    (torch.tensor([1, 0], dtype=torch.uint8), [1, 0]),
    ([], []),
    ((), []),
    (np.array([], dtype=np.int64), []),
    (torch.tensor([]), []),
]
MASK = [True, False, False, True, True, False]
MASK_SPELLINGS: list[tuple[Any, list[int]]] = [
    (MASK, [0, 3, 4]),
    (np.array(MASK), [0, 3, 4]),
    (torch.tensor(MASK), [0, 3, 4]),
    (np.zeros(NUM_ENVS, dtype=bool), []),
    (torch.ones(NUM_ENVS, dtype=torch.bool), [0, 1, 2, 3, 4, 5]),
]


@pytest.mark.parametrize(("env_ids", "rows"), INT_SPELLINGS + MASK_SPELLINGS)
def test_env_ids_select_rows_in_their_order(
    sim: Simulation, robot: Entity, env_ids: Any, rows: list[int]
) -> None:
    values = distinct(len(rows))
    expected = sim.data.qpos.clone()
    for k, row in enumerate(rows):
        expected[row, SLIDE], expected[row, HINGE] = values[k]
    robot.write_joint_position_to_sim(values, env_ids=env_ids)
    assert torch.equal(sim.data.qpos, expected)


@pytest.mark.parametrize(("env_ids", "rows"), INT_SPELLINGS + MASK_SPELLINGS)
def test_env_ids_mean_the_same_to_reset_and_to_elements_of_bodies(
    sim: Simulation, robot: Entity, env_ids: Any, rows: list[int]
) -> None:
    force = distinct(len(rows), 6).reshape(len(rows), 2, 3)
    robot.write_external_wrench_to_sim(force, -force, [3, 1], env_ids)
    wrench = torch.zeros(NUM_ENVS, 4, 6, dtype=torch.float64)
    for k, row in enumerate(rows):
        wrench[row, [3, 1]] = torch.cat([force[k], -force[k]], dim=-1)
    assert torch.equal(robot.data.body_external_wrench, wrench)
    kept = sim.data.qpos.clone()
    sim.reset(env_ids)
    wrench[rows] = 0
    kept[rows] = torch.tensor([0, 1, 0, 0, 0, 0], dtype=torch.float64)
    assert torch.equal(robot.data.body_external_wrench, wrench)
    assert torch.equal(sim.data.qpos, kept)


@pytest.mark.parametrize(
    ("joint_ids", "columns"),
    [
        (None, [SLIDE, HINGE]),
        (1, [HINGE]),
        (slice(None, None, -1), [HINGE, SLIDE]),
        ([1, 0], [HINGE, SLIDE]),
        ((0,), [SLIDE]),
        (np.array([1]), [HINGE]),
        (np.array([False, True]), [HINGE]),
        (torch.tensor([1, 0], dtype=torch.int32), [HINGE, SLIDE]),
        (torch.tensor([True, False]), [SLIDE]),
        ([], []),
    ],
)
@pytest.mark.parametrize(
    ("env_ids", "rows"),
    [(None, range(NUM_ENVS)), (slice(1, 5, 3), [1, 4]), ([5, 2], [5, 2])],
)
def test_joint_ids_select_columns_in_their_order(
    sim: Simulation,
    robot: Entity,
    joint_ids: Any,
    columns: list[int],
    env_ids: Any,
    rows: list[int],
) -> None:
    values = distinct(len(rows), len(columns))
    expected = sim.data.qpos.clone()
    for k, row in enumerate(rows):
        for m, column in enumerate(columns):
            expected[row, column] = values[k, m]
    robot.write_joint_position_to_sim(values, joint_ids, env_ids)
    assert torch.equal(sim.data.qpos, expected)


BAD_IDS: list[tuple[Any, type[SimStateError], tuple[str, ...]]] = [
    (6, InvalidInputError, ("[0, 6)", "got 6")),
    ([0, 7, 2, 9], InvalidInputError, ("[0, 6)", "7, 9")),
    (torch.tensor([6]), InvalidInputError, ("[0, 6)", "6")),
    (-1, InvalidInputError, ("[0, 6)", "-1")),
    (np.array([0, -2]), InvalidInputError, ("[0, 6)", "-2")),
    ([1, 3, 1], InvalidInputError, ("unique", "repeated: 1")),
    (torch.tensor([4, 4]), InvalidInputError, ("unique", "repeated: 4")),
    (1.0, InvalidInputError, ("integers", "float")),
    ([0.0, 1.0], InvalidInputError, ("integers", "float64")),
    (torch.tensor([0.0]), InvalidInputError, ("integers", "float32")),
    (np.array([1j]), InvalidInputError, ("integers", "complex")),
    ([[0, 1]], ShapeError, ("one-dimensional", "(1, 2)", "ids.flatten()")),
    (torch.zeros(2, 3, dtype=torch.int64), ShapeError, ("(2, 3)",)),
    (np.ones((6, 1), dtype=bool), ShapeError, ("(6, 1)",)),
    ([True, False], ShapeError, ("mask", "(6,)", "(2,)")),
    (np.ones(7, dtype=bool), ShapeError, ("mask", "(6,)", "(7,)")),
    (torch.ones(5, dtype=torch.bool), ShapeError, ("mask", "(6,)", "(5,)")),
    (True, InvalidInputError, ("mask", "True")),
    ("0", InvalidInputError, ("ints", "'0'")),
    (["a", "b"], InvalidInputError, ("ints", "'a'")),
    ([0, None], InvalidInputError, ("ints",)),
    ([[0], [1, 2]], InvalidInputError, ("ints",)),
    ({0, 1}, InvalidInputError, ("ints",)),
    (slice(None, None, 0), InvalidInputError, ("step",)),
    (slice(0.0, 2.0), InvalidInputError, ("slice",)),
]


@pytest.mark.parametrize(("ids", "error", "says"), BAD_IDS, ids=lambda v: repr(v)[:40])
def test_bad_env_ids_are_refused(
    sim: Simulation,
    robot: Entity,
    ids: Any,
    error: type[SimStateError],
    says: tuple[str, ...],
) -> None:
    with refused(sim, error, "env", *says):
        robot.write_joint_position_to_sim([[1.0, 1.0]], env_ids=ids)
    with refused(sim, error, "env", *says):
        sim.reset(ids)


BAD_JOINT_IDS: list[tuple[Any, type[SimStateError], tuple[str, ...]]] = [
    (2, InvalidInputError, ("[0, 2)", "got 2")),
    ([0, 7], InvalidInputError, ("[0, 2)", "7")),
    (-1, InvalidInputError, ("[0, 2)", "-1")),
    (torch.tensor([0, -2]), InvalidInputError, ("[0, 2)", "-2")),
    ([1, 0, 1], InvalidInputError, ("unique", "repeated: 1")),
    (np.array([0, 0]), InvalidInputError, ("unique", "repeated: 0")),
    ([0.0, 1.0], InvalidInputError, ("integers", "float64")),
    (torch.tensor([0.0]), InvalidInputError, ("integers", "float32")),
    ([[0, 1]], ShapeError, ("one-dimensional", "(1, 2)", "ids.flatten()")),
    ([True, False, True], ShapeError, ("mask", "(2,)", "(3,)")),
    (torch.ones(6, dtype=torch.bool), ShapeError, ("mask", "(2,)", "(6,)")),
    (True, InvalidInputError, ("mask", "True")),
    ("slide", InvalidInputError, ("ints", "'slide'", "entity.find_joints(names)[0]")),
    (["slide", "hinge"], InvalidInputError, ("ints", "'hinge'", "find_joints(names)")),
    (slice(None, None, 0), InvalidInputError, ("step",)),
]


@pytest.mark.parametrize(
    ("ids", "error", "says"), BAD_JOINT_IDS, ids=lambda v: repr(v)[:40]
)
def test_bad_joint_ids_are_refused(
    sim: Simulation,
    robot: Entity,
    ids: Any,
    error: type[SimStateError],
    says: tuple[str, ...],
) -> None:
    with refused(sim, error, "joint", *says):
        robot.write_joint_position_to_sim(torch.zeros(1, 2), joint_ids=ids)


# Values


@pytest.mark.parametrize(
    "values",
    [
        [[7.0, 8.0], [9.0, 10.0]],
        [[7, 8], [9, 10]],
        ((7.0, 8.0), (9.0, 10.0)),
        [np.array([7.0, 8.0]), np.array([9.0, 10.0])],
        np.array([[7.0, 8.0], [9.0, 10.0]]),
        np.array([[7, 8], [9, 10]]),
        np.array([[7, 9], [8, 10]], dtype=np.float32).T,
        torch.tensor([[7.0, 8.0], [9.0, 10.0]]),
        torch.tensor([[7.0, 8.0], [9.0, 10.0]], dtype=torch.float16),
        torch.tensor([[7.0, 8.0], [9.0, 10.0]], dtype=torch.float64),
        torch.tensor([[7.0, 8.0], [9.0, 10.0]], requires_grad=True),
    ],
)
def test_values_of_any_floating_kind_are_written(
    sim: Simulation, robot: Entity, values: Any
) -> None:
    robot.write_joint_position_to_sim(values, env_ids=[3, 1])
    assert sim.data.qpos[3, [SLIDE, HINGE]].tolist() == [7.0, 8.0]
    assert sim.data.qpos[1, [SLIDE, HINGE]].tolist() == [9.0, 10.0]
    assert not sim.data.qpos.requires_grad


def test_float32_values_are_widened_not_reinterpreted(
    sim: Simulation, robot: Entity
) -> None:
    values = torch.full((1, 2), 0.1, dtype=torch.float32)
    robot.write_joint_position_to_sim(values)
    assert sim.data.qpos[0, SLIDE].item() == float(np.float32(0.1))


@pytest.mark.parametrize(
    ("env_ids", "rows"),
    [
        (None, range(NUM_ENVS)),
        ([4, 1], [4, 1]),
        (slice(0, 3), [0, 1, 2]),
        (2, [2]),
        ([], []),
    ],
)
def test_one_row_goes_to_every_selected_world(
    sim: Simulation, robot: Entity, env_ids: Any, rows: list[int]
) -> None:
    expected = sim.data.qpos.clone()
    for row in rows:
        expected[row, SLIDE], expected[row, HINGE] = 7.0, 8.0
    robot.write_joint_position_to_sim([[7.0, 8.0]], env_ids=env_ids)
    assert torch.equal(sim.data.qpos, expected)


def test_written_values_are_copied(sim: Simulation, robot: Entity) -> None:
    values = distinct(NUM_ENVS)
    robot.write_joint_position_to_sim(values)
    values.zero_()
    assert torch.equal(robot.data.joint_pos, distinct(NUM_ENVS))


@pytest.mark.parametrize(
    "values",
    [
        1.0,
        np.float64(1.0),
        torch.tensor(1.0),
        [1.0, 2.0],
        torch.ones(2),
        torch.ones(3),
        torch.ones(2, 2),
        torch.ones(4, 2),
        torch.ones(6, 2),
        torch.ones(0, 2),
        torch.ones(3, 1),
        torch.ones(1, 1),
        torch.ones(3, 3),
        torch.ones(2, 3),
        torch.ones(1, 3, 2),
        torch.ones(3, 2, 1),
    ],
    ids=lambda values: str(np.shape(values)),
)
def test_values_of_a_wrong_shape_are_refused(
    sim: Simulation, robot: Entity, values: Any
) -> None:
    got = str(tuple(np.shape(values)))
    with refused(sim, ShapeError, "position", "(3, 2)", "(1, 2)", got):
        robot.write_joint_position_to_sim(values, env_ids=[0, 2, 4])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_refused_with_their_place(
    sim: Simulation, robot: Entity, bad: float
) -> None:
    values = distinct(3)
    values[2, 1] = bad
    with refused(sim, InvalidInputError, "position", "finite", str(bad), "[2, 1]"):
        robot.write_joint_position_to_sim(values, env_ids=[0, 2, 4])
    with refused(sim, InvalidInputError, "finite", "[2, 1]"):
        robot.write_joint_position_to_sim(values.tolist(), env_ids=[0, 2, 4])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (torch.ones(1, 2, dtype=torch.int64), "int64"),
        (torch.ones(1, 2, dtype=torch.bool), "bool"),
        (torch.ones(1, 2, dtype=torch.complex64), "complex64"),
        (np.ones((1, 2), dtype=np.complex128), "position"),
        ("ab", "str"),
        ([["a", "b"]], "list"),
        ([[1.0, 2.0], [3.0]], "list"),
        ({}, "dict"),
        (torch.ones(1, 2, device="meta"), "meta"),
        (torch.ones(1, 2).to_sparse(), "to_dense"),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_values_that_are_no_real_numbers_are_refused(
    sim: Simulation, robot: Entity, values: Any, says: str
) -> None:
    with refused(sim, InvalidInputError, "position", says):
        robot.write_joint_position_to_sim(values)


def test_a_bad_second_value_leaves_the_first_unwritten(
    sim: Simulation, robot: Entity
) -> None:
    nan = torch.full((1, 2), torch.nan)
    with refused(sim, InvalidInputError, "velocity", "finite"):
        robot.write_joint_state_to_sim(torch.ones(1, 2), nan)
    with refused(sim, ShapeError, "velocity"):
        robot.write_joint_state_to_sim(torch.ones(1, 2), torch.ones(1, 3))
    with refused(sim, ShapeError, "torques"):
        robot.write_external_wrench_to_sim(torch.ones(1, 4, 3), torch.ones(1, 3))
    state = sim.state[:1].clone()
    state[0, -1] = torch.nan
    with refused(sim, InvalidInputError, "state"):
        sim.write_state(state, [0])


# The functions themselves


@pytest.mark.parametrize(
    ("ids", "expected"),
    [([3, 4, 5], slice(3, 6)), ([7], slice(7, 8)), ([], slice(0, 0))],
)
def test_contiguous_ids_become_a_slice(ids: list[int], expected: slice) -> None:
    assert as_index(ids) == expected


@pytest.mark.parametrize("ids", [[3, 5], [2, 1], [0, 0], [0, 2, 1]])
def test_other_ids_become_a_tensor(ids: list[int]) -> None:
    index = as_index(ids)
    assert isinstance(index, Tensor)
    assert index.dtype == torch.int64
    assert index.tolist() == ids


@pytest.mark.parametrize(("ids", "rows"), INT_SPELLINGS + MASK_SPELLINGS)
def test_selections_agree_on_index_count_and_tensor(ids: Any, rows: list[int]) -> None:
    selection = select(ids, NUM_ENVS, "env", torch.device("cpu"))
    assert torch.arange(NUM_ENVS)[selection.index].tolist() == rows
    assert selection.count == len(rows)
    assert selection.tensor(torch.device("cpu")).tolist() == rows
    if selection.is_all:
        assert rows == list(range(NUM_ENVS))


def test_everything_is_all_and_a_part_is_not() -> None:
    assert everything(4).is_all
    assert not select(slice(0, 3), 4, "env", torch.device("cpu")).is_all
    assert not select([3, 2, 1, 0], 4, "env", torch.device("cpu")).is_all


@pytest.mark.parametrize("ids", [[0, True], (True, 2), [False, 0, 1]])
def test_ids_are_ints_or_a_mask_and_not_both(ids: Any) -> None:
    """NumPy would make ints of them."""
    with raises(InvalidInputError, name="env_ids") as caught:
        select(ids, 3, "env", torch.device("cpu"))
    assert caught.value.name == "env_ids"


@pytest.mark.parametrize("ids", [slice(None), slice(0, 4), slice(-4, None), None])
def test_slices_that_take_all_are_known_as_such(ids: Any) -> None:
    selection = select(ids, 4, "env", torch.device("cpu"))
    assert selection.is_all
    assert selection.index == slice(0, 4) or selection.index == slice(0, 4, 1)


@pytest.mark.parametrize(
    "make", [np.zeros, torch.zeros, lambda s: np.zeros(s).tolist()]
)
def test_dimensions_of_values_of_any_kind(make: Any) -> None:
    for shape in ((2,), (2, 3), (1, 2, 3)):
        assert ndim(make(shape), "values") == len(shape)
    assert ndim(torch.zeros(2, 3).to_sparse(), "values") == 2
    with raises(InvalidInputError, name="values"):
        ndim("text", "values")  # type: ignore[arg-type]


def test_ids_without_values_are_refused() -> None:
    with raises(InvalidInputError, name="env_ids"):
        select(torch.tensor([0], device="meta"), 3, "env", torch.device("cpu"))
