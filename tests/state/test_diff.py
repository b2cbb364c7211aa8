"""diff: what differs is named, weighed and never skipped."""

from __future__ import annotations

import copy
import math
import re

import pytest
import torch

from simstate import EntityCfg, InvalidInputError, SceneCfg, Simulation
from simstate.math import quaternion
from simstate.state import Difference, diff
from simstate.study import oracles

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def pair(native):
    """The same states twice, free to be edited."""
    oracles.randomize(native, 0)
    states = native.get_states()
    return copy.deepcopy(list(states)), copy.deepcopy(list(states))


def only(found) -> Difference:
    assert len(found) == 1, str(found)
    return found[0]


def test_the_same_states_do_not_differ(native, pair):
    found = diff(*pair)
    assert len(found) == 0
    assert found.max_error == 0.0
    assert "no differences" in str(found)
    assert "4 worlds" in str(found)
    assert diff(native.get_states(), native.get_states(mode="tensor")).max_error == 0.0


@pytest.mark.parametrize(
    ("keys", "entity", "element", "quantity", "unit"),
    [
        (("objects", "cube", "pos"), "objects.cube", "", "pos", "m"),
        (("objects", "box", "vel"), "objects.box", "", "vel", "m/s"),
        (("objects", "cube", "ang_vel"), "objects.cube", "", "ang_vel", "rad/s"),
        (
            ("objects", "box", "body", "box_lid", "vel"),
            "objects.box", "box_lid", "vel", "m/s",
        ),
        (
            ("robots", "franka", "dof_pos", "joint3"),
            "robots.franka", "joint3", "dof_pos", "rad",
        ),
        (
            ("robots", "franka", "dof_vel", "left_finger"),
            "robots.franka", "left_finger", "dof_vel", "m/s",
        ),
        (
            ("robots", "franka", "dof_pos_target", "joint7"),
            "robots.franka", "joint7", "dof_pos_target", "rad",
        ),
        (("cameras", "camera0", "depth"), "cameras.camera0", "", "depth", "m"),
    ],
)  # fmt: skip
def test_place_world_and_unit_are_named(pair, keys, entity, element, quantity, unit):
    left, right = pair
    *parents, last = keys
    part = right[2]
    for key in parents:
        part = part[key]
    if isinstance(part[last], float):
        part[last] += 0.25
    else:
        part[last].view(-1)[1] -= 0.25
    found = only(diff(left, right))
    assert (found.world, found.entity, found.quantity) == (2, entity, quantity)
    assert found.element in (element, f"body.{element}")
    assert unit in found.unit
    assert found.error == pytest.approx(0.25, abs=1e-12)
    assert found.what == ""
    assert entity in found.path
    assert found.path.endswith(quantity)


def test_the_greatest_component_counts(pair):
    left, right = pair
    right[0]["objects"]["cube"]["pos"] += torch.tensor([0.1, -0.5, 0.2])
    assert only(diff(left, right)).error == pytest.approx(0.5)
    assert diff(left, right).max_error == diff(right, left).max_error


def turned(quat: torch.Tensor, angle: float) -> torch.Tensor:
    axis = torch.tensor([2.0, -1.0, 2.0], dtype=torch.float64) / 3
    turn = quaternion.from_rotation_vector(angle * axis)
    return quaternion.multiply(quat, turn)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("angle", [1e-6, 1e-3, 0.3, 1.5, 3.0, math.pi])
def test_rotations_differ_by_their_angle(pair, angle, sign):
    left, right = pair
    quat = right[1]["objects"]["cube"]["rot"]
    right[1]["objects"]["cube"]["rot"] = sign * turned(quat, angle)
    found = only(diff(left, right))
    assert (found.quantity, found.unit) == ("rot", "rad")
    assert found.error == pytest.approx(angle, abs=1e-9)


def test_the_sign_and_length_of_a_quaternion_do_not_matter(pair):
    left, right = pair
    for state in right:
        for part in (*state["objects"].values(), *state["robots"].values()):
            part["rot"] *= -1.0
            for link in part.get("body", {}).values():
                link["rot"] *= -1.0
    assert diff(left, right).max_error == 0.0
    right[0]["objects"]["cube"]["rot"] *= 3.0
    assert diff(left, right).max_error < 1e-9


def test_ball_joints_differ_by_their_angle():
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model="humanoid")}), 2)
    oracles.randomize(sim, 0)
    left = copy.deepcopy(list(sim.get_states()))
    right = copy.deepcopy(left)
    dofs = right[1]["robots"]["it"]["dof_pos"]
    dofs["left_shoulder"] = -turned(dofs["left_shoulder"], 0.7)
    found = only(diff(left, right))
    assert (found.world, found.element) == (1, "left_shoulder")
    assert found.error == pytest.approx(0.7, abs=1e-9)
    assert "rad" in found.unit


def test_a_zero_quaternion_is_no_rotation(pair):
    left, right = pair
    right[0]["objects"]["cube"]["rot"] = torch.zeros(4, dtype=torch.float64)
    right[1]["objects"]["cube"]["pos"] += 5.0
    found = diff(left, right)
    assert found.max_error == INF
    assert found[0].quantity == "rot"
    assert found[0].what


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_is_missing_is_named(pair, side):
    left, right = pair
    poor, _ = (left, right) if side == "left" else (right, left)
    del poor[0]["objects"]["cube"]["vel"]
    del poor[1]["robots"]["franka"]["dof_pos"]["joint3"]
    del poor[2]["objects"]["box"]["body"]["box_lid"]
    del poor[3]["objects"]["cube"]
    found = diff(left, right)
    assert found.max_error == INF
    assert all(d.error == INF and d.what == f"missing on the {side}" for d in found)
    places = {(d.world, d.path) for d in found}
    assert (0, "objects.cube.vel") in places
    assert (1, "robots.franka.joint3.dof_pos") in places
    assert {p for w, p in places if w == 2} == {
        f"objects.box.body.box_lid.{key}" for key in ("pos", "rot", "vel", "ang_vel")
    }
    assert {p for w, p in places if w == 3} == {
        f"objects.cube.{key}" for key in ("pos", "rot", "vel", "ang_vel")
    }
    assert len(found) == 10


def test_missing_groups_and_worlds_are_named(pair):
    left, right = pair
    del right[3]["robots"]
    found = diff(left, right[:2])
    assert {(d.world, d.what) for d in found} == {
        (2, "missing on the right"),
        (3, "missing on the right"),
    }
    assert found.num_envs == 4
    assert {d.what for d in diff(left[:1], right)} == {"missing on the left"}
    found = diff(left[3], right[3])
    assert {d.entity for d in found} == {"robots.franka"}
    assert found.max_error == INF


def test_an_empty_entity_is_missing_too():
    found = diff({"objects": {"cube": {}}}, {"objects": {}})
    assert found.max_error == INF
    assert "cube" in found[0].entity


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("both", [False, True])
def test_what_is_not_finite_is_named(pair, bad, both):
    left, right = pair
    for states in (left, right) if both else (right,):
        states[1]["objects"]["cube"]["pos"][2] = bad
        states[2]["robots"]["franka"]["dof_vel"]["joint3"] = bad
    found = diff(left, right)
    assert {(d.world, d.path, d.error) for d in found} == {
        (1, "objects.cube.pos", INF),
        (2, "robots.franka.joint3.dof_vel", INF),
    }
    assert all("not finite" in d.what for d in found)


def test_other_shapes_are_named(pair):
    left, right = pair
    right[0]["objects"]["cube"]["pos"] = torch.zeros(2)
    found = only(diff(left, right))
    assert found.error == INF
    assert "(3,)" in found.what
    assert "(2,)" in found.what


@pytest.mark.parametrize("value", [None, "here", object()])
def test_what_is_no_number_is_named(pair, value):
    left, right = pair
    right[0]["objects"]["cube"]["pos"] = value
    found = only(diff(left, right))
    assert (found.world, found.path, found.error) == (0, "objects.cube.pos", INF)
    assert found.what


def test_differences_come_sorted_by_weight(pair):
    left, right = pair
    right[0]["objects"]["cube"]["pos"][0] += 0.1
    right[1]["objects"]["cube"]["vel"][0] += 3.0
    right[2]["robots"]["franka"]["dof_pos"]["joint1"] += 1.0
    right[3]["objects"]["cube"]["pos"][0] = NAN
    found = diff(left, right)
    assert [d.world for d in found] == [3, 1, 2, 0]
    assert [d.error for d in found] == pytest.approx([INF, 3.0, 1.0, 0.1])
    assert [d.world for d in found[1:3]] == [1, 2]
    assert found[-1].quantity == "pos"


def test_a_tolerance_hides_what_is_smaller(pair):
    left, right = pair
    right[0]["objects"]["cube"]["pos"][0] += 0.5
    right[1]["objects"]["cube"]["vel"][0] += 0.125
    right[2]["objects"]["cube"]["vel"][0] = NAN
    assert [d.world for d in diff(left, right)] == [2, 0, 1]
    assert [d.world for d in diff(left, right, 0.2)] == [2, 0]
    assert [d.world for d in diff(left, right, tolerance=1.0)] == [2]
    right[2] = copy.deepcopy(left[2])
    assert diff(left, right, 0.2).max_error == pytest.approx(0.5)
    assert diff(left, right, 1.0).max_error == 0.0


def test_it_prints_as_a_table(pair):
    left, right = pair
    for world in range(4):
        right[world]["objects"]["cube"]["pos"][0] += 0.5 + world / 10
    right[1]["robots"]["franka"]["dof_pos"]["joint3"] += 2.0
    del right[0]["objects"]["box"]["dof_vel"]["box_joint"]
    lines = str(diff(left, right)).splitlines()
    rows = [re.split(r"  +", line.strip()) for line in lines[3:] if line.strip()]
    assert len(rows) == 3
    assert rows[0][:4] == [
        "objects.box", "box_joint", "dof_vel", "missing on the right",
    ]  # fmt: skip
    assert rows[1][:4] == ["robots.franka", "joint3", "dof_pos", "2"]
    assert rows[2] == ["objects.cube", "pos", "0.8", "m", "3", "4"]
    assert "6 differences in 4 worlds" in lines[0]


def test_single_states_lists_and_tensors_compare(native):
    oracles.randomize(native, 0)
    states, tensors = native.get_states(), native.get_states(mode="tensor")
    native.step()
    moved = native.get_states()
    want = diff(states, moved).max_error
    assert want > 0
    assert diff(tensors, moved).max_error == want
    assert diff(tuple(states), list(moved)).max_error == want
    assert diff(states[0], states[0]).max_error == 0.0
    assert diff(states[0], [states[0]]).max_error == 0.0
    numbers = states[0]["objects"]["cube"]["pos"].numpy()
    state = {"objects": {"cube": {"pos": numbers}}}
    assert diff(state, {"objects": {"cube": {"pos": numbers.tolist()}}}).max_error == 0


@pytest.mark.parametrize(
    ("left", "right"),
    [(3, 4), (None, None), ("states", "states"), ([1], [2]), ([None], [{}]),
     ({"objects": 1}, {"objects": 2}), ({"objects": {"cube": 1}}, {})],
)  # fmt: skip
def test_what_is_no_state_is_refused(left, right):
    with pytest.raises(InvalidInputError):
        diff(left, right)


def test_a_state_and_a_snapshot_do_not_compare(native):
    with pytest.raises(InvalidInputError):
        diff(native.snapshot(), native.get_states())
    with pytest.raises(InvalidInputError):
        diff(native.get_states(), native.snapshot())


# Snapshots.


@pytest.fixture
def dog() -> Simulation:
    scene = SceneCfg(entities={"dog": EntityCfg(model="quadruped")}, timestep=None)
    sim = Simulation(scene, 3)
    oracles.randomize(sim, 0)
    return sim


def test_equal_snapshots_do_not_differ(dog):
    assert diff(dog.snapshot(), dog.snapshot()).max_error == 0.0


def test_snapshots_name_field_element_world_and_unit(dog):
    before = dog.snapshot()
    dog.data.qpos[1, 9] += 0.5
    dog.data.qvel[2, 3] -= 0.25
    dog.data.ctrl[0, 4] = NAN
    found = diff(before, dog.snapshot())
    assert [(d.world, d.quantity) for d in found] == [
        (0, "ctrl"), (1, "qpos"), (2, "qvel"),
    ]  # fmt: skip
    assert [d.error for d in found] == pytest.approx([INF, 0.5, 0.25])
    assert "[9]" in found[1].element
    assert "rad" in found[1].unit
    assert "rad/s" in found[2].unit
    assert found[0].what


def test_snapshots_of_different_numbers_of_worlds(dog):
    found = diff(dog.snapshot(), dog.snapshot([0, 1]))
    assert [(d.world, d.what) for d in found] == [(2, "missing on the right")]


def test_parameters_of_snapshots_name_their_world(dog):
    dog.expand("body_mass")
    before = dog.snapshot()
    dog.expand("body_mass")[2, 3] += 0.5
    found = only(diff(before, dog.snapshot()))
    assert found.quantity == "body_mass"
    assert found.error == pytest.approx(0.5)
    assert found.world == 2


def test_parameters_missing_on_one_side_are_named(dog):
    before = dog.snapshot()
    dog.expand("body_mass")
    found = diff(before, dog.snapshot())
    assert found.max_error == INF
    assert found[0].quantity == "body_mass"
    assert found[0].what == "missing on the left"


@pytest.mark.parametrize("key", ["encoder_bias", "default_joint_pos"])
def test_what_entities_keep_is_compared(dog, key):
    before = dog.snapshot()
    dog.scene["dog"].data.read(key)[1, 2] += 0.5
    found = only(diff(before, dog.snapshot()))
    assert found.error == pytest.approx(0.5)
    assert found.world == 1
    assert key in found.path


def test_diverged_worlds_and_generators_are_compared(dog):
    before = dog.snapshot()
    dog.diverged[1] = True
    assert "diverged" in diff(before, dog.snapshot())[0].path
    dog.diverged[1] = False
    dog.rng.bits(torch.tensor([2]), 5)
    found = only(diff(before, dog.snapshot()))
    assert (found.world, found.path, found.error) == (2, "random.count", 5.0)


def test_snapshots_of_different_models_say_so(dog):
    scene = SceneCfg(entities={"dog": EntityCfg(model="cube")})
    found = diff(dog.snapshot(), Simulation(scene, 3).snapshot())
    assert found.max_error == INF
    assert any("shapes" in difference.what for difference in found)
