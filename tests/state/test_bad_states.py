"""Bad states: always an error that names the place, never a changed state."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.inside import ledger_of

from simstate import (
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    SimStateError,
    Simulation,
    UnknownNameError,
)
from simstate.state import TensorState
from simstate.study import oracles

NAN, INF = float("nan"), float("inf")


def refused(sim, states, *parts, env_ids=None, error=SimStateError):
    """Set states that must be refused; the message has every one of the parts."""
    before = sim.state.clone()
    with pytest.raises(error) as caught:
        sim.set_states(states, env_ids)
    assert torch.equal(sim.state, before), "the state was changed"
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {caught.value}"


def put(state, path, value):
    """Set what a dotted path names."""
    *parents, last = path.split(".")
    for name in parents:
        state = state[name]
    state[last] = value


def whole(sim, world=2):
    """Random states of all worlds, as dictionaries that may be edited."""
    oracles.randomize(sim, 11)
    states = copy.deepcopy(list(sim.get_states()))
    oracles.randomize(sim, 12)
    return states, states[world]


# Keys.


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("object", "objects"),
        ("robot", "robots"),
        ("camera", "cameras"),
        ("extra", ""),
        ("objects.cub", "cube"),
        ("objects.cube.position", "pos"),
        ("objects.cube.quat", "rot"),
        ("objects.cube.angvel", "ang_vel"),
        ("objects.box.dof_pos.box_join", "box_joint"),
        ("objects.box.dof_vel.box_lid", "box_joint"),
        ("objects.box.body.lid", "box_lid"),
        ("objects.box.body.box_lid.pose", "pos"),
        ("objects.box.dof_pos_target", "dof_pos"),  # not a robot
        ("robots.frank", "franka"),
        ("robots.franka.joint_pos", "dof_pos"),
        ("robots.franka.dof_pos.joint8", "joint1"),
        ("robots.franka.dof_vel.panda_joint1", "joint1"),
        ("robots.franka.dof_pos_target.gripper", "left_finger"),
        ("robots.franka.dof_vel_targets", "dof_vel_target"),
        ("robots.franka.body.link8", "link1"),
        ("cameras.camera1", "camera0"),
        ("cameras.camera0.color", "rgb"),
    ],
)
def test_a_misspelt_key_is_named_with_what_is_known(native, path, meant):
    states, state = whole(native)
    put(state, path, {})
    refused(native, states, f"states[2].{path}", meant, error=UnknownNameError)


def test_a_key_that_is_no_string_is_named(native):
    states, state = whole(native)
    state["robots"]["franka"]["dof_pos"][3] = 0.0
    refused(native, states, "robots.franka.dof_pos.3", error=UnknownNameError)


def test_an_entity_in_the_wrong_group_is_refused(native):
    states, state = whole(native)
    state["objects"]["franka"] = state["robots"].pop("franka")
    parts = ["objects.franka", "'robots'"]
    refused(native, states, *parts, error=UnknownNameError)
    states, state = whole(native)
    state["robots"]["cube"] = state["objects"]["cube"]
    parts = ["robots.cube", "'objects'"]
    refused(native, states, *parts, error=UnknownNameError)


@pytest.mark.parametrize("world", [0, 3])
def test_the_world_is_named(native, world):
    states, state = whole(native, world)
    state["robots"]["franka"]["dof_pos"]["joint3"] = NAN
    refused(native, states, f"states[{world}].robots.franka.dof_pos.joint3")


# Types and shapes.


WRONG_GROUPS = [None, 3, "cube", ["cube"], [("cube", {})], torch.zeros(3)]


@pytest.mark.parametrize("value", WRONG_GROUPS, ids=repr)
@pytest.mark.parametrize(
    "path",
    [
        "objects",
        "robots",
        "cameras",
        "objects.cube",
        "robots.franka",
        "robots.franka.dof_pos",
        "robots.franka.dof_vel",
        "robots.franka.dof_pos_target",
        "robots.franka.dof_vel_target",
        "robots.franka.body",
        "objects.box.body.box_lid",
        "cameras.camera0",
    ],
)
def test_what_is_no_dictionary_is_named(native, path, value):
    states, state = whole(native)
    put(state, path, value)
    refused(native, states, path, error=InvalidInputError)


WRONG_VECTORS = {
    "text": "0 0 0",
    "none": None,
    "number": 1.0,
    "dictionary": {"x": 0.0},
    "short": [0.0, 1.0],
    "long": [0.1, 0.2, 0.3, 0.4, 0.5],
    "matrix": [[0.1, 0.2, 0.3, 0.4]],
    "batch": torch.ones(4, 3),
    "empty": [],
    "ragged": [[1.0], [1.0, 2.0], [1.0], [1.0]],
    "texts": ["1", "2", "3", "4"],
    "nones": [None, None, None, None],
    "booleans": torch.ones(3, dtype=torch.bool),
    "complex": torch.ones(3, dtype=torch.complex64),
    "object": object(),
    "nan": [0.5, NAN, 0.5, 0.5],
    "infinite": [0.5, INF, 0.5, 0.5],
    "scalar": torch.tensor(1.0),
    "huge": [10**400, 0, 0, 0],
}


@pytest.mark.parametrize("kind", WRONG_VECTORS)
@pytest.mark.parametrize(
    "path",
    [
        "objects.cube.pos",
        "objects.cube.rot",
        "objects.box.vel",
        "objects.box.ang_vel",
        "objects.box.body.box_lid.pos",
        "objects.box.body.box_body.rot",
    ],
)
def test_a_bad_vector_is_named(native, path, kind):
    states, state = whole(native)
    value = WRONG_VECTORS[kind]
    if path.endswith("rot") and kind in ("booleans", "complex"):
        value = torch.ones(4, dtype=value.dtype)
    elif not path.endswith("rot") and kind in ("nan", "infinite", "huge", "texts"):
        value = value[:3]
    put(state, path, value)
    refused(native, states, f"states[2].{path}")


@pytest.mark.parametrize("kind", WRONG_VECTORS)
def test_a_bad_vector_is_named_when_it_is_the_only_one(native, kind):
    key = "pos" if kind in ("booleans", "complex") else "rot"
    state = {"objects": {"cube": {key: WRONG_VECTORS[kind]}}}
    refused(native, [state], f"states[0].objects.cube.{key}")


WRONG_NUMBERS = {
    "text": "fast",
    "text of a number": "0.5",
    "bytes": b"1",
    "none": None,
    "true": True,
    "false": False,
    "list": [0.1, 0.2],
    "lists": [[0.1, 0.2]],
    "empty": [],
    "dictionary": {},
    "complex": 1j,
    "real complex": complex(1.0, 0.0),
    "tensor": torch.zeros(2),
    "boolean tensor": torch.tensor(True),
    "object": object(),
    "nan": NAN,
    "infinite": -INF,
    "nan tensor": torch.tensor(NAN),
    "huge": 10**400,
}


@pytest.mark.parametrize("kind", WRONG_NUMBERS)
@pytest.mark.parametrize(
    "path",
    [
        "robots.franka.dof_pos.joint3",
        "robots.franka.dof_vel.right_finger",
        "robots.franka.dof_pos_target.joint7",
        "objects.box.dof_pos.box_joint",
    ],
)
def test_a_bad_number_is_named(native, path, kind):
    states, state = whole(native)
    put(state, path, WRONG_NUMBERS[kind])
    refused(native, states, path)


@pytest.mark.parametrize("kind", WRONG_NUMBERS)
def test_a_bad_number_is_named_when_it_is_the_only_one(native, kind):
    part = {"dof_pos": {"joint3": WRONG_NUMBERS[kind]}}
    refused(native, [{"robots": {"franka": part}}], "robots.franka.dof_pos.joint3")


@pytest.mark.parametrize("value", [[1.0, 0.0, 0.0], 0.5, None, "x", [NAN] * 4, [0] * 4])
def test_a_bad_ball_joint_is_named(value):
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model="humanoid")}), 2)
    part = {"dof_pos": {"left_elbow": 0.1, "left_shoulder": value}}
    refused(sim, [{"robots": {"it": part}}], "robots.it.dof_pos.left_shoulder")
    spin = {"dof_vel": {"left_shoulder": [0.0, 0.0, 0.0, 0.0]}}
    refused(sim, [{"robots": {"it": spin}}], "robots.it.dof_vel.left_shoulder")


@pytest.mark.parametrize("length", [0.0, 1e-12])
@pytest.mark.parametrize("path", ["objects.cube.rot", "objects.box.body.box_body.rot"])
def test_a_zero_quaternion_is_refused(native, path, length):
    states, state = whole(native)
    put(state, path, torch.tensor([length, 0.0, 0.0, 0.0]))
    refused(native, states, path, error=InvalidInputError)


@pytest.mark.parametrize("count", [0, 2, 3, 5])
def test_a_wrong_number_of_states_is_refused(native, count):
    states = [{"objects": {"cube": {"pos": [0.0, 0.0, 2.0]}}}] * count
    refused(native, states, str(count), "4", error=ShapeError)
    refused(native, states, "4", env_ids=[3, 2, 1, 0], error=ShapeError)
    tensors = native.get_states(slice(0, count), mode="tensor", cameras=False)
    if count < 4:
        refused(native, tensors, str(count), "4", error=ShapeError)


@pytest.mark.parametrize("states", [None, 3, "four", object(), {"object": {}}, [None]])
def test_what_is_no_list_of_states_is_refused(native, states):
    refused(native, states)


def test_bad_worlds_are_refused(native):
    state = {"objects": {"cube": {"pos": [0.0, 0.0, 2.0]}}}
    for env_ids in ([4], [-1], [1, 1], [0.5], [True, False]):
        refused(native, [state], env_ids=env_ids)


# What cannot be written.


@pytest.mark.parametrize("link", ["link3", "left_finger"])
@pytest.mark.parametrize("key", ["pos", "rot", "vel"])
def test_a_link_that_joints_move_needs_dof_pos(native, link, key):
    _, state = whole(native)
    part = {"body": {link: {key: state["robots"]["franka"]["body"][link][key]}}}
    path = f"robots.franka.body.{link}"
    refused(native, [{"robots": {"franka": part}}], path, "dof_pos")


CART = """
<mujoco model="cart">
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size=".1 .1 .1"/>
    </body>
  </worldbody>
</mujoco>
"""


def test_a_root_that_joints_move_needs_its_joints():
    """The cart is the root link, on a slide: where it is follows from the joint."""
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model=CART)}), 2)
    oracles.randomize(sim, 0)
    state = sim.get_states()[0]["objects"]["it"]
    for key, value in (("pos", state["pos"] + 0.2), ("rot", [0.0, 1.0, 0.0, 0.0])):
        refused(sim, [{"objects": {"it": {key: value}}}], f"objects.it.{key}")
    for key in ("vel", "ang_vel"):
        refused(sim, [{"objects": {"it": {key: [1.0, 0, 0]}}}], f"objects.it.{key}")
    whole_state = {**state, "dof_pos": {"slide": 0.5}}
    sim.set_states([{"objects": {"it": whole_state}}])
    assert float(sim.get_states()[1]["objects"]["it"]["pos"][0]) == 0.5


@pytest.mark.parametrize(
    ("key", "value"), [("vel", [0.0, 0.1, 0.0]), ("ang_vel", [0.0, 0.0, 0.1])]
)
def test_a_fixed_base_has_no_velocity(native, key, value):
    states, state = whole(native)
    state["robots"]["franka"][key] = torch.tensor(value)
    refused(native, states, f"robots.franka.{key}", "fixed", error=InvalidInputError)


def test_a_fixed_base_has_no_velocity_as_a_link_either(native):
    part = {"body": {"base": {"vel": [0.0, 0.0, 0.1]}}}
    path = "robots.franka.body.base.vel"
    refused(native, [{"robots": {"franka": part}}], path, error=InvalidInputError)


def test_a_fixed_base_may_be_given_where_it_is(native):
    states, state = whole(native)
    state["robots"]["franka"]["rot"] = [-1.0, 0.0, 0.0, 0.0]
    state["robots"]["franka"]["pos"] = [1e-8, 0.0, -1e-8]
    native.set_states(states)
    got = native.get_states(cameras=False)[2]["objects"]["cube"]["pos"]
    assert torch.equal(got, state["objects"]["cube"]["pos"])
    assert "model/body_pos" not in ledger_of(native)
    assert "model/body_quat" not in ledger_of(native)


def test_a_mocap_body_has_no_velocity():
    scene = SceneCfg(entities={"it": EntityCfg(model="mocap_target")})
    sim = Simulation(scene, 2)
    for key in ("vel", "ang_vel"):
        part = {"pos": [0.0, 0.0, 1.0], key: [0.0, 0.0, 1.0]}
        refused(sim, [{"objects": {"it": part}}], f"objects.it.{key}", "mocap")
    sim.set_states([{"objects": {"it": {"pos": [0.0, 0.5, 1.0]}}}])
    assert sim.get_states()[1]["objects"]["it"]["pos"].tolist() == [0.0, 0.5, 1.0]


PLATE = """
<mujoco model="trees">
  <worldbody>
    <body name="plate" pos="0 0 .4">
      <freejoint/>
      <geom type="box" size=".1 .1 .1"/>
      <body name="handle" pos=".1 0 .1"><geom size=".02"/></body>
    </body>
    <body name="goal" mocap="true" pos="1 0 .5"><geom size=".03"/></body>
    <body name="wall" pos="0 1 .5"><geom size=".03"/></body>
  </worldbody>
</mujoco>
"""


def test_a_mocap_body_in_another_tree_has_no_velocity():
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model=PLATE)}), 2)
    for key in ("vel", "ang_vel"):
        part = {"body": {"goal": {"pos": [0.0, 0.0, 1.0], key: [0.0, 0.0, 1.0]}}}
        refused(sim, [{"objects": {"it": part}}], "objects.it.body.goal", "mocap")
    sim.set_states(sim.get_states(), env_ids=[1, 0])
    sim.set_states(sim.get_states(mode="tensor"), env_ids=[1, 0])
    goal = {"pos": [0.0, 0.5, 1.0], "vel": [0.0, 0.0, 0.0]}
    sim.set_states([{"objects": {"it": {"body": {"goal": goal}}}}])
    assert sim.data.mocap_pos[1].tolist() == [[0.0, 0.5, 1.0]]


@pytest.mark.parametrize("key", ["pos", "vel"])
def test_a_welded_link_follows_another(key):
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model=PLATE)}), 2)
    part = {"body": {"handle": {key: [0.0, 0.0, 1.0]}}}
    refused(sim, [{"objects": {"it": part}}], "objects.it.body.handle", "welded", key)
    part["body"]["goal"] = {key: [0.0, 0.0, 0.0]}
    refused(sim, [{"objects": {"it": part}}], "objects.it.body.handle", "plate", key)
    wall = [{"objects": {"it": {"body": {"wall": {key: [0.0, 0.0, 1.0]}}}}}]
    refused(sim, wall, "objects.it.body.wall", "fixed to the world")
    sim.set_states([{"objects": {"it": {**part, key: [0.0, 0.0, 0.9]}}}])
    moved = sim.get_states()[1]["objects"]["it"][key]
    assert moved.tolist() == [0.0, 0.0, 0.9]


@pytest.mark.parametrize(
    ("key", "joint"), [("dof_pos_target", "right_finger"), ("dof_vel_target", "joint1")]
)
def test_a_joint_without_such_an_actuator_keeps_its_target(native, key, joint):
    states, state = whole(native)
    put(state, f"robots.franka.{key}.{joint}", 0.375)
    native.set_states(states)
    for world, got in enumerate(native.get_states(cameras=False)):
        want = states[world]["robots"]["franka"][key]
        assert got["robots"]["franka"][key] == pytest.approx(want)
    assert got["robots"]["franka"].keys() >= {"dof_pos_target", "dof_vel_target"}


# Nothing is written before everything is checked.


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("robots.franka.dof_vel_target.joint1", INF),
        ("robots.franka.vel", [1.0, 0.0, 0.0]),
        ("robots.franka.dof_pos_target.joint7", NAN),
        ("objects.box.ang_vel", [0.0, NAN, 0.0]),
        ("cameras.camera0.depht", 0.0),
    ],
)
def test_an_error_at_the_end_leaves_the_beginning_unwritten(sim, path, value):
    """The cube of world 0 comes first, the mistake in world 3 last."""
    states, state = whole(sim, 3)
    put(state, path, value)
    refused(sim, states, path)


@pytest.mark.parametrize(
    "path",
    [
        "robots.franka.dof_pos.joint3",
        "robots.franka.dof_vel.joint3",
        "robots.franka.dof_pos_target.joint3",
        "objects.box.dof_vel.box_joint",
    ],
)
def test_what_float32_cannot_hold_is_refused_on_warp(warp, path):
    states, state = whole(warp)
    put(state, path, 1e300)
    refused(warp, states, path)


def test_what_float32_cannot_hold_is_refused_in_vectors(warp):
    states, state = whole(warp)
    state["objects"]["box"]["vel"] = [0.0, 1e300, 0.0]
    refused(warp, states, "objects.box.vel")


# Tensors.


TENSOR_KEYS = (
    "pos",
    "rot",
    "vel",
    "ang_vel",
    "dof_pos",
    "dof_vel",
    "dof_pos_target",
    "body_pos",
    "body_vel",
)


def edited(tensors: TensorState, key: str, value) -> TensorState:
    box = replace(tensors.robots["franka"], **{key: value})
    return replace(tensors, robots={"franka": box})


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("key", TENSOR_KEYS)
def test_tensors_that_are_not_finite_are_refused(native, key, bad):
    whole(native)
    tensors = native.get_states(mode="tensor", cameras=False)
    getattr(tensors.robots["franka"], key)[1, 0] = bad
    oracles.randomize(native, 13)
    refused(native, tensors, f"franka.{key}")


@pytest.mark.parametrize("key", TENSOR_KEYS)
@pytest.mark.parametrize("kind", ["columns", "rows", "flat", "none"])
def test_tensors_of_a_wrong_shape_are_refused(native, key, kind):
    whole(native)
    tensors = native.get_states(mode="tensor", cameras=False)
    value = getattr(tensors.robots["franka"], key)
    value = {
        "columns": value[:, 1:],
        "rows": value[1:],
        "flat": value[0],
        "none": None,
    }[kind]
    oracles.randomize(native, 13)
    refused(native, edited(tensors, key, value), f"franka.{key}")


def test_tensors_in_the_wrong_group_are_refused(native):
    whole(native)
    tensors = native.get_states(mode="tensor", cameras=False)
    swapped = TensorState(4, {**tensors.objects, **tensors.robots}, {})
    oracles.randomize(native, 13)
    refused(native, swapped, "objects.franka", "'robots'")


def test_tensors_give_a_fixed_base_no_velocity(native):
    tensors = native.get_states(mode="tensor", cameras=False)
    value = tensors.robots["franka"].vel + 0.1
    refused(native, edited(tensors, "vel", value), "franka.vel", "fixed")


# Anything at all.

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=4),
    st.lists(st.one_of(st.floats(), st.none(), st.text(max_size=2)), max_size=5),
    st.builds(torch.zeros, st.integers(0, 5)),
    st.just({}),
)
NAMES = st.sampled_from(
    ["objects", "robots", "cameras", "franka", "cube", "box", "camera0", "pos", "rot",
     "vel", "dof_pos", "dof_pos_target", "body", "joint1", "joint3", "box_joint",
     "box_lid", "rgb", ""]
)  # fmt: skip
TREES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(trees=st.lists(TREES, min_size=4, max_size=4))
def test_no_tree_of_anything_does_harm(native, trees):
    check_harmless(native, trees)


PATHS = st.sampled_from(
    ["objects", "robots.franka", "robots.franka.dof_pos", "objects.cube.pos",
     "objects.cube.rot", "robots.franka.dof_pos.joint3", "objects.box.body",
     "robots.franka.dof_pos_target.joint1", "objects.box.body.box_lid",
     "robots.franka.dof_vel", "robots.franka.vel", "cameras.camera0"]
)  # fmt: skip


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(path=PATHS, value=TREES, world=st.integers(0, 3))
def test_no_graft_onto_a_good_state_does_harm(native, path, value, world):
    native.reset()
    states = copy.deepcopy(list(native.get_states(cameras=False)))
    states[world]["cameras"] = {"camera0": {}}
    put(states[world], path, value)
    check_harmless(native, states)


def check_harmless(sim, states):
    """Either the states are taken and the numbers are finite, or nothing changes."""
    before = sim.state.clone()
    try:
        sim.set_states(states)
    except SimStateError:
        assert torch.equal(sim.state, before)
    else:
        assert torch.isfinite(sim.state).all()
        sim.reset()
