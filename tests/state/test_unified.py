"""get_states and set_states: the document's structure, round trips, partial states."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch
from tests.laws import zoo
from tests.raised import raises

from simstate import (
    EntityCfg,
    InitialStateCfg,
    PositionActuatorCfg,
    SceneCfg,
    Simulation,
    UnknownNameError,
    VelocityActuatorCfg,
)
from simstate.scene import models
from simstate.state import TensorState, diff
from simstate.study import oracles

ACCURACY = {"native": 1e-12, "warp": 2e-5}
ROOT = {"pos": (3,), "rot": (4,), "vel": (3,), "ang_vel": (3,)}
ARM_JOINTS = [*(f"joint{k}" for k in range(1, 8)), "left_finger", "right_finger"]
ARM_LINKS = ["base", *(f"link{k}" for k in range(1, 8)), "left_finger", "right_finger"]

SERVOS = """
<mujoco model="servos">
  <worldbody>
    <body name="base">
      <geom size=".05" mass="1"/>
      <body name="upper" pos="0 0 .1">
        <joint name="swing" axis="0 1 0" damping=".1"/>
        <geom size=".02" pos=".2 0 0" mass=".1"/>
        <body name="lower" pos=".2 0 0">
          <joint name="spin" axis="0 0 1" damping=".1"/>
          <geom size=".02" pos=".1 .1 0" mass=".1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def pair_of_robots() -> SceneCfg:
    """The same robot twice, each joint with another kind of target."""
    actuators = (
        PositionActuatorCfg(joints="swing", stiffness=5.0, damping=0.1),
        VelocityActuatorCfg(joints="spin", damping=0.2),
    )
    return SceneCfg(
        entities={
            name: EntityCfg(
                model=SERVOS,
                actuators=actuators,
                init_state=InitialStateCfg(pos=(x, 0.0, 1.0)),
            )
            for name, x in (("first", 0.0), ("second", 2.0))
        }
    )


def randomized(sim: Simulation, seed: int = 0) -> Simulation:
    oracles.randomize(sim, seed)
    return sim


def assert_same(left, right, tolerance):
    difference = diff(left, right, tolerance)
    assert difference.max_error == 0.0, str(difference)


def plain_data(sim: Simulation, world: int) -> mujoco.MjData:
    """A world in plain MuJoCo, evaluated."""
    data = mujoco.MjData(sim.model)
    row = sim.state[world].to(torch.float64).numpy().copy()
    mujoco.mj_setState(sim.model, data, row, mujoco.mjtState.mjSTATE_INTEGRATION.value)
    mujoco.mj_forward(sim.model, data)
    return data


def plain_velocity(sim: Simulation, data: mujoco.MjData, body: int) -> np.ndarray:
    """Angular then linear velocity of a body's frame, world axes, by MuJoCo."""
    velocity = np.zeros(6)
    kind = mujoco.mjtObj.mjOBJ_XBODY.value
    mujoco.mj_objectVelocity(sim.model, data, kind, body, velocity, 0)
    return velocity


# The document's structure.


def test_a_state_has_the_documents_structure(sim):
    state = sim.get_states()[0]
    assert list(state) == ["objects", "robots", "cameras"]
    assert set(state["objects"]) == {"cube", "box"}
    assert set(state["robots"]) == {"franka"}
    assert set(state["cameras"]) == {"camera0"}
    assert set(state["objects"]["cube"]) == {*ROOT}
    assert set(state["objects"]["box"]) == {*ROOT, "dof_pos", "dof_vel", "body"}
    assert set(state["robots"]["franka"]) == {
        *ROOT, "dof_pos", "dof_vel", "body", "dof_pos_target", "dof_vel_target",
        "dof_effort_target",
    }  # fmt: skip
    assert set(state["cameras"]["camera0"]) == {
        "rgb", "depth", "pos", "look_at", "intrinsic", "extrinsic",
    }  # fmt: skip


def test_the_names_are_the_models_own(sim):
    state = sim.get_states()[0]
    box, franka = state["objects"]["box"], state["robots"]["franka"]
    assert set(box["dof_pos"]) == set(box["dof_vel"]) == {"box_joint"}
    assert set(box["body"]) == {"box_body", "box_lid"}
    assert list(franka["dof_pos"]) == list(franka["dof_vel"]) == ARM_JOINTS
    assert list(franka["body"]) == ARM_LINKS
    # The right finger has one too, though an equality moves it and no actuator.
    assert list(franka["dof_pos_target"]) == ARM_JOINTS
    assert list(franka["dof_vel_target"]) == ARM_JOINTS


def test_the_types_are_the_documents(sim):
    state = sim.get_states()[0]
    box, franka = state["objects"]["box"], state["robots"]["franka"]
    links = [*box["body"].values(), *franka["body"].values()]
    for part in (state["objects"]["cube"], box, franka, *links):
        for key, shape in ROOT.items():
            assert isinstance(part[key], torch.Tensor)
            assert tuple(part[key].shape) == shape
            assert part[key].dtype == sim.dtype
    for part, keys in (
        (box, ("dof_pos", "dof_vel")),
        (franka, ("dof_pos", "dof_vel", "dof_pos_target", "dof_vel_target")),
    ):
        for key in keys:
            assert all(type(value) is float for value in part[key].values())
    camera = state["cameras"]["camera0"]
    assert camera["rgb"].dtype == torch.uint8
    shapes = {key: tuple(value.shape) for key, value in camera.items()}
    assert shapes == {
        "rgb": (12, 16, 3), "depth": (12, 16), "pos": (3,), "look_at": (3,),
        "intrinsic": (3, 3), "extrinsic": (4, 4),
    }  # fmt: skip


def test_values_are_mujocos(sim, engine):
    randomized(sim)
    states = sim.get_states(cameras=False)
    limit = {"rtol": ACCURACY[engine], "atol": ACCURACY[engine]}
    for world, state in enumerate(states):
        data = plain_data(sim, world)
        for name, part in {**state["objects"], **state["robots"]}.items():
            entity = sim.scene[name]
            root = {key: part[key] for key in ROOT}
            links = part.get("body", {entity.body_names[0]: root})
            for link, got in [(entity.body_names[0], root), *links.items()]:
                body = sim.model.body(f"{name}/{link}").id
                velocity = plain_velocity(sim, data, body)
                np.testing.assert_allclose(got["pos"], data.xpos[body], **limit)
                np.testing.assert_allclose(got["rot"], data.xquat[body], **limit)
                np.testing.assert_allclose(got["vel"], velocity[3:], **limit)
                np.testing.assert_allclose(got["ang_vel"], velocity[:3], **limit)
            for joint, value in part.get("dof_pos", {}).items():
                adr = sim.model.joint(f"{name}/{joint}").qposadr[0]
                assert value == data.qpos[adr]
            for joint, value in part.get("dof_vel", {}).items():
                adr = sim.model.joint(f"{name}/{joint}").dofadr[0]
                assert value == data.qvel[adr]
        targets = state["robots"]["franka"]["dof_pos_target"]
        values = list(targets.values())
        assert values[:-1] == pytest.approx(list(data.ctrl), abs=1e-7)
        assert values[-1] == 0.0  # no actuator takes it, and none was set


def test_a_link_turned_by_its_body_moves_with_it(sim, engine):
    """The lid's velocity from first principles: v + ω × r of the box, plus ω·axis."""
    sim.set_states(
        [
            {
                "objects": {
                    "box": {
                        "pos": [0.0, 0.0, 2.0],
                        "rot": [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)],
                        "vel": [1.0, 2.0, 3.0],
                        "ang_vel": [0.0, 0.0, 4.0],
                        "dof_pos": {"box_joint": 0.0},
                        "dof_vel": {"box_joint": 5.0},
                    }
                }
            }
        ]
    )
    lid = sim.get_states(cameras=False)[0]["objects"]["box"]["body"]["box_lid"]
    limit = {"rtol": 0.0, "atol": ACCURACY[engine]}
    np.testing.assert_allclose(lid["pos"], [0.0, -0.1, 2.06], **limit)
    np.testing.assert_allclose(lid["vel"], [1.4, 2.0, 3.0], **limit)
    np.testing.assert_allclose(lid["ang_vel"], [-5.0, 0.0, 4.0], **limit)


# Robots and objects.


def test_robots_and_objects_are_derived(native):
    assert native.scene["franka"].is_robot
    assert not native.scene["box"].is_robot  # joints, but no actuators
    assert not native.scene["cube"].is_robot


def test_the_kind_can_be_said():
    scene = SceneCfg(
        entities={
            "arm": EntityCfg(model="arm", kind="object"),
            "cube": EntityCfg(
                model="cube",
                kind="robot",
                init_state=InitialStateCfg(pos=(1.0, 0.0, 0.5)),
            ),
        },
        timestep=0.002,
    )
    sim = Simulation(scene, 2)
    state = sim.get_states()[0]
    assert set(state["objects"]) == {"arm"}
    assert set(state["robots"]) == {"cube"}
    assert "dof_pos_target" not in state["objects"]["arm"]
    assert state["robots"]["cube"]["dof_pos_target"] == {}
    oracles.randomize(sim, 0)
    states = sim.get_states()
    sim.reset()
    sim.set_states(states)
    assert_same(states, sim.get_states(), 1e-12)


def test_a_scene_without_robots_or_cameras_has_empty_groups():
    scene = SceneCfg(entities={"cube": EntityCfg(model="cube")})
    state = Simulation(scene).get_states()[0]
    assert list(state) == ["objects", "robots", "cameras"]
    assert state["robots"] == state["cameras"] == {}


# Round trips.


def test_get_set_get_is_identity(sim, engine):
    states = randomized(sim, 1).get_states()
    sim.reset()
    assert diff(states, sim.get_states()).max_error > 0.1
    sim.set_states(states)
    again = sim.get_states()
    assert_same(
        states[:], [{**s, "cameras": states[k]["cameras"]}
                    for k, s in enumerate(again)], 10 * ACCURACY[engine],
    )  # fmt: skip
    if engine == "native":  # float32 may move an edge by a pixel
        for before, after in zip(states, again, strict=True):
            for key in ("rgb", "depth"):
                old, new = (s["cameras"]["camera0"][key] for s in (before, after))
                assert torch.equal(old, new)


def test_setting_what_is_there_keeps_qpos_qvel_and_ctrl(native):
    randomized(native, 2)
    kept = {name: getattr(native.data, name).clone() for name in
            ("qpos", "qvel", "ctrl", "xfrc_applied", "time")}  # fmt: skip
    native.set_states(native.get_states())
    for name, values in kept.items():
        torch.testing.assert_close(
            getattr(native.data, name), values, rtol=0.0, atol=1e-14
        )


def test_default_states_round_trip_bit_by_bit(sim):
    before = sim.state.clone()
    sim.set_states(sim.get_states())
    assert torch.equal(sim.state, before)


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("mode", ["dict", "tensor"])
def test_random_states_of_shipped_models_round_trip(name, mode):
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model=name)}, timestep=None), 5)
    check_round_trips(sim, mode, 1e-12)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_random_states_round_trip_on_warp(name):
    scene = SceneCfg(entities={"it": EntityCfg(model=name)}, timestep=None)
    sim = Simulation(scene, 5, engine="warp")
    check_round_trips(sim, "dict", 2e-5)
    check_round_trips(sim, "tensor", 2e-5)


@pytest.mark.parametrize("name", zoo.ENTITIES)
def test_random_states_of_awkward_entities_round_trip(name):
    model = zoo.ENTITIES[name]
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model=model)}), 4)
    check_round_trips(sim, "dict", 1e-12)
    check_round_trips(sim, "tensor", 1e-12)


def check_round_trips(sim: Simulation, mode: str, tolerance: float) -> None:
    """Random states, set into random worlds in random order, come out again."""
    rng = np.random.default_rng(5)
    for count in (1, 3, sim.num_envs):
        env_ids = rng.permutation(sim.num_envs)[:count]
        oracles.randomize(sim, int(rng.integers(1000)))
        states = sim.get_states(env_ids, mode=mode)
        before = sim.get_states()
        oracles.randomize(sim, int(rng.integers(1000)))
        others = [w for w in range(sim.num_envs) if w not in env_ids]
        untouched = sim.state[others].clone()
        sim.set_states(states, env_ids)
        assert_same([before[int(w)] for w in env_ids], sim.get_states(env_ids),
                    tolerance)  # fmt: skip
        assert torch.equal(sim.state[others], untouched)


# Ball joints.


def test_ball_joints_stand_under_their_names():
    scene = SceneCfg(entities={"it": EntityCfg(model="humanoid")}, timestep=None)
    sim = Simulation(scene, 3)
    randomized(sim, 4)
    states = sim.get_states()
    for world, state in enumerate(states):
        robot = state["robots"]["it"]
        for joint in ("left_shoulder", "right_shoulder"):
            native = sim.model.joint(f"it/{joint}")
            q, v = int(native.qposadr[0]), int(native.dofadr[0])
            qpos, qvel = sim.data.qpos[world], sim.data.qvel[world]
            torch.testing.assert_close(robot["dof_pos"][joint], qpos[q : q + 4])
            assert torch.equal(robot["dof_vel"][joint], qvel[v : v + 3])
            assert joint not in robot["dof_pos_target"]
        assert type(robot["dof_pos"]["left_elbow"]) is float
        assert len(robot["dof_pos"]) == len(robot["dof_vel"]) == 19
    sim.reset()
    turn, spin = torch.tensor([0.0, 0.6, 0.0, 0.8]), [1.0, -2.0, 3.0]
    part = {"dof_pos": {"left_shoulder": turn}, "dof_vel": {"right_shoulder": spin}}
    before = sim.get_states()
    sim.set_states([{"robots": {"it": part}}])
    after = sim.get_states()[2]["robots"]["it"]
    torch.testing.assert_close(after["dof_pos"]["left_shoulder"], turn.double())
    assert after["dof_vel"]["right_shoulder"].tolist() == spin
    kept = before[2]["robots"]["it"]
    assert torch.equal(
        after["dof_pos"]["right_shoulder"], kept["dof_pos"]["right_shoulder"]
    )
    assert after["dof_vel"]["left_shoulder"].tolist() == [0.0, 0.0, 0.0]
    assert after["dof_pos"]["left_elbow"] == kept["dof_pos"]["left_elbow"]


# Copies.


@pytest.mark.parametrize("mode", ["dict", "tensor"])
def test_what_comes_out_is_a_copy(sim, mode):
    randomized(sim)
    states = sim.get_states(mode=mode)  # no dictionary has been touched yet
    want = copy.deepcopy(list(sim.get_states()))
    sim.step(5)
    assert_same(want, states, 0.0)
    assert diff(want, sim.get_states()).max_error > 1e-6


def test_changing_a_state_does_not_change_the_simulation(sim):
    before = sim.state.clone()
    image = sim.cameras["camera0"].rgb.clone()
    states, tensors = sim.get_states(), sim.get_states(mode="tensor")
    for state in states:
        for part in (*state["objects"].values(), *state["robots"].values()):
            part["pos"] += 1.0
            part["vel"].fill_(7.0)
        state["cameras"]["camera0"]["rgb"].zero_()
        state["cameras"]["camera0"]["pos"].zero_()
    for part in tensors.entities.values():
        part.body_pos.zero_()
        part.dof_pos.fill_(3.0)
        part.dof_pos_target.fill_(3.0)
    assert torch.equal(sim.state, before)
    assert torch.equal(sim.cameras["camera0"].rgb, image)
    assert sim.cameras["camera0"].pos.abs().sum() > 0
    assert float(sim.scene["cube"].data.root_link_lin_vel_w.abs().max()) == 0.0


def test_what_goes_in_is_a_copy(native):
    states = native.get_states()
    native.set_states(states)
    after = native.state.clone()
    for state in states:
        state["objects"]["cube"]["pos"].fill_(9.0)
    assert torch.equal(native.state, after)


# Comparing and saving.


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s["objects"]["cube"]["pos"].add_(1e-9),
        lambda s: s["objects"]["box"]["dof_pos"].update(box_joint=0.5),
        lambda s: s["objects"].pop("cube"),
        lambda s: s["robots"]["franka"].pop("dof_vel"),
        lambda s: s["robots"].update(other={}),
        lambda s: s["objects"]["cube"].update(pos=torch.zeros(4)),
        lambda s: s["objects"]["cube"].update(pos=None),
        lambda s: s["objects"]["cube"].update(pos="here"),
        lambda s: s["objects"]["box"]["dof_pos"].update(box_joint=None),
        lambda s: s["cameras"]["camera0"]["rgb"].add_(1),
    ],
)
def test_one_change_is_a_difference(native, edit):
    one, two = native.get_states(), native.get_states()
    assert not diff(one, two)
    edit(two[2])
    assert diff(one, two)
    assert diff(two, one)


def test_a_world_can_be_replaced(native):
    randomized(native)
    states = native.get_states()
    states[1] = states[0]
    assert states[1] is states[0]
    native.set_states(states)
    again = native.get_states()
    assert_same(again[0], again[1], 1e-12)


@pytest.mark.parametrize("touched", [False, True])
def test_states_can_be_pickled(native, touched):
    randomized(native)
    states = native.get_states()
    if touched:
        states[1]["objects"]["cube"]["pos"][2] = 5.0
    loaded = pickle.loads(pickle.dumps(states))
    assert type(loaded) is list
    assert not diff(loaded, states)
    if touched:
        assert float(loaded[1]["objects"]["cube"]["pos"][2]) == 5.0
    tensors = native.get_states(mode="tensor")
    assert_same(pickle.loads(pickle.dumps(tensors)), native.get_states(), 0.0)


def test_edits_in_place_are_honoured(sim, engine):
    states = sim.get_states()
    states[1]["objects"]["cube"]["pos"][2] += 0.5
    states[2]["objects"]["cube"]["vel"] = torch.tensor([1.0, 2.0, 3.0])
    states[3]["robots"]["franka"]["dof_pos"]["joint3"] = 0.25
    del states[0]["robots"]["franka"]
    before = sim.get_states()
    sim.set_states(states)
    after = sim.get_states()
    limit = ACCURACY[engine]
    want = before[1]["objects"]["cube"]["pos"] + torch.tensor([0.0, 0.0, 0.5]).to(
        sim.dtype
    )
    torch.testing.assert_close(after[1]["objects"]["cube"]["pos"], want)
    torch.testing.assert_close(
        after[2]["objects"]["cube"]["vel"],
        torch.tensor([1.0, 2.0, 3.0], dtype=sim.dtype), rtol=0.0, atol=limit,
    )  # fmt: skip
    assert after[3]["robots"]["franka"]["dof_pos"]["joint3"] == 0.25
    changed = {(d.world, d.entity) for d in diff(before, after, 10 * limit)}
    assert {(1, "objects.cube"), (2, "objects.cube"), (3, "robots.franka")} == {
        (world, entity) for world, entity in changed if world
        and not entity.startswith("cameras")
    }  # fmt: skip


# Tensors.


def test_tensors_have_names_and_shapes(sim):
    tensors = sim.get_states(mode="tensor")
    assert isinstance(tensors, TensorState)
    assert tensors.num_envs == 4
    assert set(tensors.objects) == {"cube", "box"}
    assert set(tensors.robots) == {"franka"}
    franka = tensors.robots["franka"]
    assert list(franka.joint_names) == ARM_JOINTS
    assert list(franka.body_names) == ARM_LINKS
    assert franka.ball_joint_names == ()
    shapes = {
        "pos": (4, 3), "rot": (4, 4), "vel": (4, 3), "ang_vel": (4, 3),
        "dof_pos": (4, 9), "dof_vel": (4, 9), "dof_pos_target": (4, 9),
        "dof_vel_target": (4, 9), "ball_quat": (4, 0, 4), "ball_ang_vel": (4, 0, 3),
        "body_pos": (4, 10, 3), "body_rot": (4, 10, 4), "body_vel": (4, 10, 3),
        "body_ang_vel": (4, 10, 3),
    }  # fmt: skip
    assert {key: tuple(getattr(franka, key).shape) for key in shapes} == shapes
    assert not franka.dof_pos_target.isnan().any()
    assert not franka.dof_vel_target.isnan().any()
    camera = tensors.cameras["camera0"]
    assert tuple(camera.rgb.shape) == (4, 12, 16, 3)
    assert tuple(camera.depth.shape) == (4, 12, 16)
    assert tuple(camera.intrinsic.shape) == (4, 3, 3)
    assert tuple(camera.extrinsic.shape) == (4, 4, 4)


def test_tensors_and_dictionaries_agree(sim):
    randomized(sim)
    tensors, states = sim.get_states(mode="tensor"), sim.get_states()
    for world, state in enumerate(states):
        franka = state["robots"]["franka"]
        part = tensors.robots["franka"]
        assert list(franka["dof_vel"].values()) == part.dof_vel[world].tolist()
        for k, link in enumerate(part.body_names):
            for key in ROOT:
                got = getattr(part, f"body_{key}")[world, k]
                assert torch.equal(got, franka["body"][link][key])


def test_tensors_in_another_joint_order(sim, engine):
    randomized(sim)
    tensors = sim.get_states(mode="tensor", cameras=False)
    franka = tensors.robots["franka"]
    order = ARM_JOINTS[::-2] + ARM_JOINTS[1::2]
    other = franka.reorder(order)
    assert list(other.joint_names) == order
    for column, name in enumerate(order):
        k = ARM_JOINTS.index(name)
        for key in ("dof_pos", "dof_vel", "dof_pos_target"):
            got, want = getattr(other, key)[:, column], getattr(franka, key)[:, k]
            assert torch.equal(got.nan_to_num(9.0), want.nan_to_num(9.0))
    assert torch.equal(other.pos, franka.pos)
    back = other.reorder(ARM_JOINTS)
    assert torch.equal(back.dof_pos, franka.dof_pos)
    want = sim.get_states(cameras=False)
    sim.reset()
    sim.set_states(replace(tensors, robots={"franka": other}))
    assert_same(want, sim.get_states(cameras=False), 10 * ACCURACY[engine])


def test_reorder_lists_what_is_missing_on_both_sides(native):
    franka = native.get_states(mode="tensor", cameras=False).robots["franka"]
    wanted = [*ARM_JOINTS[1:], "elbow"]
    with pytest.raises(UnknownNameError) as caught:
        franka.reorder(wanted)
    only_wanted, only_here = str(caught.value).split("Only in the state")
    assert "elbow" in only_wanted
    assert "joint1" not in only_wanted
    assert "joint1" in only_here
    with raises(UnknownNameError, name="joint2"):
        franka.reorder([*ARM_JOINTS, "joint2"])
    with raises(UnknownNameError, name="right_finger"):
        franka.reorder(ARM_JOINTS[:-1])


def test_tensors_of_another_robot_are_refused(native):
    tensors = native.get_states(mode="tensor", cameras=False)
    before = native.state.clone()
    wrong = replace(tensors.robots["franka"], joint_names=("a", *ARM_JOINTS[1:]))
    with raises(UnknownNameError, name="joint1"):
        native.set_states(replace(tensors, robots={"franka": wrong}))
    with raises(UnknownNameError, name="frank"):
        native.set_states(replace(tensors, robots={"frank": tensors.robots["franka"]}))
    assert torch.equal(native.state, before)


def test_tensors_of_some_entities_leave_the_others(native):
    randomized(native)
    tensors = native.get_states(mode="tensor", cameras=False)
    native.reset()
    before = native.get_states(cameras=False)
    native.set_states(TensorState(4, {"cube": tensors.objects["cube"]}, {}))
    changed = {d.entity for d in diff(before, native.get_states(cameras=False))}
    assert changed == {"objects.cube"}


def test_an_unknown_mode_is_refused(native):
    with raises(UnknownNameError, name="tensors"):
        native.get_states(mode="tensors")


# Worlds.


@pytest.mark.parametrize(
    ("spelling", "worlds"),
    [
        (2, [2]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        ([3, 0], [3, 0]),
        ((1,), [1]),
        (range(2, 4), [2, 3]),
        (np.array([2, 1]), [2, 1]),
        (torch.tensor([0, 3]), [0, 3]),
        (torch.tensor(1), [1]),
        ([True, False, False, True], [0, 3]),
        (np.array([False, True, True, False]), [1, 2]),
        (torch.tensor([False, False, True, False]), [2]),
        (None, [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("mode", ["dict", "tensor"])
def test_worlds_in_every_spelling(native, spelling, worlds, mode):
    randomized(native)
    whole = native.get_states(cameras=False)
    states = native.get_states(spelling, mode=mode, cameras=False)
    assert_same([whole[w] for w in worlds], states, 0.0)
    randomized(native, 7)
    before = native.state.clone()
    native.set_states(states, spelling)
    now = native.get_states(cameras=False)
    assert_same([whole[w] for w in worlds], [now[w] for w in worlds], 1e-12)
    others = [w for w in range(4) if w not in worlds]
    assert torch.equal(native.state[others], before[others])


@pytest.mark.parametrize("mode", ["dict", "tensor"])
def test_no_worlds_at_all(native, mode):
    states = native.get_states([], mode=mode)
    assert (len(states) if mode == "dict" else states.num_envs) == 0
    before = native.state.clone()
    native.set_states(states, [])
    assert torch.equal(native.state, before)


@pytest.mark.parametrize("mode", ["dict", "tensor"])
def test_one_state_for_all_worlds(sim, engine, mode):
    randomized(sim)
    one = sim.get_states([2], mode=mode, cameras=False)
    want = sim.get_states(cameras=False)[2]
    randomized(sim, 8)
    kept = sim.state[1].clone()
    sim.set_states(one, [0, 2, 3])
    now = sim.get_states(cameras=False)
    for world in (0, 2, 3):
        assert_same(want, now[world], 10 * ACCURACY[engine])
    assert torch.equal(sim.state[1], kept)
    sim.set_states(one)
    assert_same(want, sim.get_states(cameras=False)[1], 10 * ACCURACY[engine])


# Partial states.


def changes(sim, states, env_ids=None, tolerance=1e-11):
    """What set_states changes, as sets of worlds by path."""
    before = sim.get_states(cameras=False)
    sim.set_states(states, env_ids)
    found = {}
    for difference in diff(before, sim.get_states(cameras=False), tolerance):
        found.setdefault(difference.path, set()).add(difference.world)
    return found


def test_only_some_entities(native):
    randomized(native)
    part = {"objects": {"cube": {"pos": [0.1, 0.2, 0.9]}}}
    assert changes(native, [part] * 4) == {"objects.cube.pos": {0, 1, 2, 3}}


def test_only_some_keys(native):
    randomized(native)
    lid = {"dof_vel": {"box_joint": 2.5}}
    found = changes(native, [{"objects": {"box": lid}}], [1])
    moved = "objects.box.body.box_lid"
    assert found == {
        "objects.box.box_joint.dof_vel": {1},
        f"{moved}.ang_vel": {1},
    }
    assert native.get_states()[1]["objects"]["box"]["dof_vel"]["box_joint"] == 2.5


def test_only_some_joints(native):
    randomized(native)
    arm = {"dof_pos": {"joint6": 0.5, "joint2": -0.25}, "dof_vel": {"joint7": 1.5}}
    before = native.data.qpos.clone(), native.data.qvel.clone()
    native.set_states([{"robots": {"franka": arm}}], [0, 3])
    for joint, value in arm["dof_pos"].items():
        adr = native.model.joint(f"franka/{joint}").qposadr[0]
        before[0][[0, 3], adr] = value
    before[1][[0, 3], native.model.joint("franka/joint7").dofadr[0]] = 1.5
    assert torch.equal(native.data.qpos, before[0])
    assert torch.equal(native.data.qvel, before[1])


def test_only_some_targets(native):
    randomized(native)
    arm = {"dof_pos_target": {"joint5": 0.75, "left_finger": 0.01}}
    found = changes(native, [{"robots": {"franka": arm}}], 2)
    assert found == {
        "robots.franka.joint5.dof_pos_target": {2},
        "robots.franka.left_finger.dof_pos_target": {2},
    }
    assert float(native.data.ctrl[2, 4]) == 0.75
    assert float(native.data.ctrl[2, 7]) == 0.01


def test_a_position_alone_keeps_the_rest_in_world_axes(sim, engine):
    randomized(sim)
    found = changes(
        sim,
        [{"objects": {"box": {"pos": [0.3, -0.3, 2.0]}}}],
        tolerance=10 * ACCURACY[engine],
    )
    assert set(found) == {
        f"objects.box{link}.pos" for link in ("", ".body.box_body", ".body.box_lid")
    }
    got = sim.get_states(cameras=False)[3]["objects"]["box"]["pos"]
    torch.testing.assert_close(got, torch.tensor([0.3, -0.3, 2.0], dtype=sim.dtype))


def test_a_rotation_alone_keeps_the_angular_velocity_in_world_axes(sim, engine):
    randomized(sim)
    turn = torch.tensor([0.1, -0.7, 0.5, 0.5])
    found = changes(
        sim, [{"objects": {"cube": {"rot": turn}}}], tolerance=10 * ACCURACY[engine]
    )
    assert set(found) == {"objects.cube.rot"}
    got = sim.get_states(cameras=False)[1]["objects"]["cube"]["rot"]
    torch.testing.assert_close(got, turn.to(sim.dtype), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("key", ["vel", "ang_vel"])
def test_one_velocity_alone_keeps_the_other(sim, engine, key):
    randomized(sim)
    velocity = torch.tensor([3.0, -2.0, 1.0])
    found = changes(
        sim, [{"objects": {"cube": {key: velocity}}}], tolerance=10 * ACCURACY[engine]
    )
    assert set(found) == {f"objects.cube.{key}"}
    got = sim.get_states(cameras=False)[0]["objects"]["cube"][key]
    torch.testing.assert_close(got, velocity.to(sim.dtype), rtol=0.0, atol=1e-5)


def test_a_world_angular_velocity_is_not_written_raw(native):
    """A free joint's qvel has body axes: the peer wrote world axes into it."""
    turned = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]  # body x is world y
    part = {"rot": turned, "vel": [1.0, 2.0, 3.0], "ang_vel": [0.0, 6.0, 0.0]}
    native.set_states([{"objects": {"cube": part}}])
    adr = native.model.joint("cube/root").dofadr[0]
    want = torch.tensor([1.0, 2.0, 3.0, 6.0, 0.0, 0.0]).double()
    torch.testing.assert_close(native.data.qvel[0, adr : adr + 6], want)


def test_velocities_are_those_that_the_physics_uses(native):
    part = {"pos": [0.0, 1.0, 3.0], "vel": [1.0, 0.0, 2.0], "ang_vel": [0.0, 0.0, 0.0]}
    native.set_states([{"objects": {"cube": part}}])
    native.step(50)
    want = torch.tensor([0.1, 1.0, 3.0 + 0.2 - 0.5 * 9.81 * 0.01]).double()
    got = native.get_states(cameras=False)[0]["objects"]["cube"]["pos"]
    torch.testing.assert_close(got, want, rtol=0.0, atol=2e-3)


def test_quaternions_of_any_length_are_normalised(native):
    native.set_states([{"objects": {"cube": {"rot": [0.0, 3.0, 0.0, 4.0]}}}])
    got = native.get_states(cameras=False)[0]["objects"]["cube"]["rot"].tolist()
    assert got == pytest.approx([0.0, 0.6, 0.0, 0.8])
    adr = native.model.joint("cube/root").qposadr[0] + 3
    assert native.data.qpos[0, adr : adr + 4].tolist() == pytest.approx(got)


def test_arrays_lists_and_integers_do_as_well(native):
    part = {
        "objects": {
            "cube": {"pos": np.array([1, 2, 3]), "vel": (0, 1, 0)},
            "box": {"dof_pos": {"box_joint": np.float32(0.5)}},
        },
        "robots": {"franka": {"dof_pos": {"joint1": torch.tensor(0.25), "joint2": 1}}},
    }
    native.set_states([part])
    state = native.get_states(cameras=False)[3]
    assert state["objects"]["cube"]["pos"].tolist() == [1.0, 2.0, 3.0]
    assert state["objects"]["cube"]["vel"].tolist() == pytest.approx([0.0, 1.0, 0.0])
    assert state["objects"]["box"]["dof_pos"]["box_joint"] == 0.5
    assert state["robots"]["franka"]["dof_pos"]["joint1"] == 0.25
    assert state["robots"]["franka"]["dof_pos"]["joint2"] == 1.0


def test_worlds_may_name_different_things(native):
    randomized(native)
    states = [
        {"objects": {"cube": {"pos": [1.0, 0.0, 1.0]}}},
        {"robots": {"franka": {"dof_pos": {"joint1": 0.1}}}},
        {},
        {
            "objects": {"cube": {"vel": [0.0, 0.0, 5.0]}},
            "robots": {"franka": {"dof_pos": {"joint2": 0.2, "joint1": 0.3}}},
        },
    ]
    found = changes(native, states)
    assert found["objects.cube.pos"] == {0}
    assert found["objects.cube.vel"] == {3}
    assert found["robots.franka.joint1.dof_pos"] == {1, 3}
    assert found["robots.franka.joint2.dof_pos"] == {3}
    assert {w for worlds in found.values() for w in worlds} == {0, 1, 3}
    numbers = [s["robots"]["franka"]["dof_pos"] for s in native.get_states()]
    assert numbers[1]["joint1"] == 0.1
    assert (numbers[3]["joint1"], numbers[3]["joint2"]) == (0.3, 0.2)


def test_cameras_in_a_state_are_not_written(native):
    states = native.get_states()
    states[0]["cameras"]["camera0"]["pos"] += 1.0
    before = native.state.clone()
    native.set_states(states)
    assert torch.equal(native.state, before)


# Targets.


def test_two_robots_have_their_own_targets(engine):
    """A peer gave the second robot the first robot's targets, and ignored both."""
    sim = Simulation(pair_of_robots(), 2, engine=engine)
    targets = {
        name: {"dof_pos_target": {"swing": a}, "dof_vel_target": {"spin": b}}
        for name, a, b in (("first", 0.5, 1.5), ("second", -0.25, -3.0))
    }
    sim.set_states([{"robots": targets}])
    state = sim.get_states()[1]["robots"]
    for name, want in targets.items():
        assert state[name]["dof_pos_target"] == {**want["dof_pos_target"], "spin": 0.0}
        assert state[name]["dof_vel_target"] == {"swing": 0.0, **want["dof_vel_target"]}
        entity = sim.scene[name]
        spin = [entity.joint_names.index(joint) for joint in ("swing", "spin")]
        assert (
            float(entity.data.joint_pos_target[0, spin[0]])
            == (want["dof_pos_target"]["swing"])
        )
    sim.step(400)
    after = sim.get_states()[0]["robots"]
    assert after["first"]["dof_vel"]["spin"] > 0.5
    assert after["second"]["dof_vel"]["spin"] < -0.5
    assert after["first"]["dof_pos"]["swing"] > after["second"]["dof_pos"]["swing"]


def test_targets_survive_a_round_trip_and_drive_the_arm(native):
    states = native.get_states(cameras=False)
    for k, state in enumerate(states):
        state["robots"]["franka"]["dof_pos_target"]["joint1"] = 0.1 * (k + 1)
    native.set_states(states)
    native.step(1000)
    got = [s["robots"]["franka"]["dof_pos"]["joint1"] for s in native.get_states()]
    assert got == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.02)


# Strict freshness.


def test_whole_states_can_be_set_under_strict_freshness():
    """Writing the first entity must not make the second one's write fail."""
    cubes = {
        name: EntityCfg(model="cube", init_state=InitialStateCfg(pos=(x, 0.0, 1.0)))
        for name, x in (("one", 0.0), ("two", 1.0))
    }
    sim = Simulation(SceneCfg(entities=cubes), 3, freshness="strict")
    randomized(sim)
    sim.forward()
    states = sim.get_states()
    sim.reset()
    sim.forward()
    sim.set_states(states)
    sim.forward()
    assert_same(states, sim.get_states(), 1e-12)
