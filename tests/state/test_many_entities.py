"""States of many entities at once, against MuJoCo and against one at a time."""

from __future__ import annotations

import pickle
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    EntityData,
    InitialStateCfg,
    InvalidInputError,
    Quantity,
    SceneCfg,
    Simulation,
    UnknownNameError,
)
from simstate.state import diff

CUBE = """
<mujoco><worldbody><body name="box"><freejoint/><geom type="box" size=".1 .2 .3"/>
</body></worldbody></mujoco>
"""
PAIR = """
<mujoco><worldbody><body name="one"><freejoint/><geom size=".1"/></body>
<body name="two" pos="0 .5 0"><freejoint/><geom size=".2"/></body></worldbody></mujoco>
"""
ARM = """
<mujoco><worldbody><body name="link"><joint name="turn" axis="0 1 0"/>
<geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/><body name="tip" pos=".4 0 0">
<joint name="ball" type="ball"/><geom size=".05"/></body></body></worldbody>
<actuator><position joint="turn" kp="7" gear="3"/></actuator></mujoco>
"""
MOCAP = """
<mujoco><worldbody><body name="target" mocap="true"><geom size=".05" contype="0"/>
</body></worldbody></mujoco>
"""
MODELS = {"arm": ARM, "pair": PAIR, "cube": CUBE, "mocap": MOCAP}


def scene(each: int = 3) -> SceneCfg:
    """Some entities of each kind in turn, none of them placed like another."""
    entities = {
        f"{kind}{k}": EntityCfg(
            model=xml,
            init_state=InitialStateCfg(
                pos=(2.0 * k, 3.0 * row, 1.5 + 0.1 * k), rot=(1.0, 0.2 * k, 0.3, row)
            ),
        )
        for k in range(each)
        for row, (kind, xml) in enumerate(MODELS.items())
    }
    return SceneCfg(entities=entities, timestep=0.003)


@pytest.fixture
def sim() -> Simulation:
    """Three worlds that moved on from different states."""
    sim = Simulation(scene(), num_envs=3)
    numbers = torch.Generator().manual_seed(5)
    sim.data.qvel[:] = torch.randn(sim.data.qvel.shape, generator=numbers).double()
    sim.step(4)
    return sim


def of_mujoco(sim: Simulation, world: int) -> mujoco.MjData:
    """The world's state, brought up to date by MuJoCo."""
    data = mujoco.MjData(sim.model)
    data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
    data.mocap_pos[:] = sim.data.mocap_pos[world]
    data.mocap_quat[:] = sim.data.mocap_quat[world]
    mujoco.mj_forward(sim.model, data)
    return data


@pytest.mark.parametrize("ids", [None, [2, 0], slice(1, 3)])
def test_states_that_are_read_are_those_of_mujoco(sim: Simulation, ids: Any) -> None:
    states = sim.get_states(ids, mode="tensor")
    worlds = list(range(3))[ids] if isinstance(ids, slice) else ids or [0, 1, 2]
    velocity = np.zeros(6)
    for row, world in enumerate(worlds):
        data = of_mujoco(sim, world)
        for name, tensors in states.entities.items():
            for link, body in enumerate(tensors.body_names):
                i = sim.model.body(f"{name}/{body}").id
                kind = mujoco.mjtObj.mjOBJ_XBODY.value
                mujoco.mj_objectVelocity(sim.model, data, kind, i, velocity, 0)
                for key, value in (
                    ("pos", data.xpos[i]),
                    ("rot", data.xquat[i]),
                    ("vel", velocity[3:]),
                    ("ang_vel", velocity[:3]),
                ):
                    got = getattr(tensors, f"body_{key}")[row, link]
                    np.testing.assert_allclose(got, value, atol=1e-12)
                    if link == 0:
                        assert torch.equal(getattr(tensors, key)[row], got)


def test_states_that_are_read_equal_the_quantities_and_are_copies(
    sim: Simulation,
) -> None:
    states = sim.get_states(mode="tensor")
    keys = {
        "body_pos": "body_link_pos_w", "body_rot": "body_link_quat_w",
        "body_vel": "body_link_lin_vel_w", "body_ang_vel": "body_link_ang_vel_w",
        "dof_pos": "joint_pos", "dof_vel": "joint_vel", "ball_quat": "ball_joint_quat",
        "ball_ang_vel": "ball_joint_ang_vel", "dof_pos_target": "joint_pos_target",
        "dof_vel_target": "joint_vel_target",
        "dof_effort_target": "joint_effort_target",
    }  # fmt: skip
    for name, tensors in states.entities.items():
        for key, quantity in keys.items():
            got, own = getattr(tensors, key), sim.scene[name].data.read(quantity)
            assert got.dtype == own.dtype
            assert got.is_contiguous()
            assert torch.equal(got, own)
    before = sim.data.qpos.clone()
    for tensors in states.entities.values():
        size = tensors.body_pos.untyped_storage().nbytes()
        assert size == tensors.body_pos.numel() * 8  # no memory shared with others
        tensors.body_pos.fill_(7.0)
        assert not (tensors.pos == 7.0).all()
    assert torch.equal(sim.data.qpos, before)
    assert len(pickle.dumps(states)) < 200_000


def random_state(sim: Simulation, seed: int) -> dict[str, Any]:
    """A state of one world that gives something else of each entity."""
    numbers = torch.Generator().manual_seed(seed)

    def draw(size: int) -> torch.Tensor:
        return torch.randn(size, generator=numbers, dtype=torch.float64)

    state: dict[str, Any] = {"objects": {}, "robots": {}}
    for k, (name, entity) in enumerate(sim.scene.items()):
        part: dict[str, Any] = {}
        if name.startswith("arm"):
            part = {"dof_pos": {"turn": 0.1 * k, "ball": draw(4)}}
            part["dof_vel"] = {"ball": draw(3), "turn": -0.2 * k}
            part["dof_pos_target"] = {"turn": 0.4 * k}
        elif name.startswith("mocap"):
            part = {"pos": draw(3), "rot": draw(4)}
        else:
            part = {"pos": draw(3), "rot": draw(4), "vel": draw(3), "ang_vel": draw(3)}
            if k % 3 == 0:
                del part["ang_vel"]
            if name.startswith("pair"):
                part["body"] = {"two": {"rot": draw(4), "vel": draw(3).float()}}
        state["robots" if entity.is_robot else "objects"][name] = part
    return state


def one_at_a_time(sim: Simulation, state: dict[str, Any], world: int) -> None:
    """Write a state by one call for each entity."""
    for group in ("objects", "robots"):
        for name, part in state[group].items():
            sim.set_states({group: {name: part}}, [world])


def test_states_that_are_written_together_are_as_one_at_a_time(sim: Simulation) -> None:
    other = Simulation(scene(), num_envs=3)
    other.restore(sim.snapshot())
    states = [random_state(sim, seed) for seed in (11, 12)]
    del states[1]["objects"]["cube1"]
    states[1]["objects"]["cube2"].pop("rot")
    sim.set_states(states, [2, 0])
    for state, world in zip(states, (2, 0), strict=True):
        one_at_a_time(other, state, world)
    for field in ("qpos", "qvel", "mocap_pos", "mocap_quat", "ctrl"):
        assert torch.equal(getattr(sim.data, field), getattr(other.data, field)), field
    left, right = sim.get_states(), other.get_states()
    assert not diff(left, right)


def test_written_states_are_where_mujoco_has_them(sim: Simulation) -> None:
    before = {name: getattr(sim.data, name).clone() for name in ("qpos", "qvel")}
    state = random_state(sim, 21)
    sim.set_states(state, [1])
    for name, part in state["objects"].items():
        if name.startswith("mocap"):
            body = sim.model.body(f"{name}/target")
            mocap = int(sim.model.body_mocapid[body.id])
            quat = part["rot"] / part["rot"].norm()
            np.testing.assert_array_equal(sim.data.mocap_pos[1, mocap], part["pos"])
            np.testing.assert_allclose(sim.data.mocap_quat[1, mocap], quat, rtol=1e-15)
            continue
        body = "one" if name.startswith("pair") else "box"
        i = sim.model.body(f"{name}/{body}").id
        joint = int(sim.model.body_jntadr[i])
        q, v = int(sim.model.jnt_qposadr[joint]), int(sim.model.jnt_dofadr[joint])
        quat = (part["rot"] / part["rot"].norm()).numpy()
        np.testing.assert_array_equal(sim.data.qpos[1, q : q + 3], part["pos"])
        np.testing.assert_allclose(sim.data.qpos[1, q + 3 : q + 7], quat, rtol=1e-15)
        np.testing.assert_array_equal(sim.data.qvel[1, v : v + 3], part["vel"])
        spin, inverse, ang_vel = np.zeros(3), np.zeros(4), part.get("ang_vel")
        if ang_vel is None:  # kept in world axes
            old = before["qpos"][1, q + 3 : q + 7].numpy()
            ang_vel = np.zeros(3)
            spun = before["qvel"][1, v + 3 : v + 6].numpy()
            mujoco.mju_rotVecQuat(ang_vel, spun, old / np.linalg.norm(old))
        mujoco.mju_negQuat(inverse, quat)
        mujoco.mju_rotVecQuat(spin, np.asarray(ang_vel), inverse)
        np.testing.assert_allclose(sim.data.qvel[1, v + 3 : v + 6], spin, atol=1e-13)
    for name, value in before.items():
        assert torch.equal(getattr(sim.data, name)[[0, 2]], value[[0, 2]])


def test_an_error_names_the_entity_and_nothing_is_written(sim: Simulation) -> None:
    before = sim.data.qpos.clone(), sim.data.qvel.clone(), sim.data.mocap_pos.clone()
    wrong: list[tuple[str, str, Any, str]] = [
        (
            "cube1",
            "pos",
            torch.tensor([0.0, float("nan"), 0.0]),
            "objects.cube1.pos",
        ),
        ("cube2", "rot", torch.zeros(4), "objects.cube2.rot"),
        ("cube2", "vel", torch.zeros(2), "states[1].objects.cube2.vel"),
        (
            "pair1",
            "ang_vel",
            ["x", 0, 0],
            "states[1].objects.pair1.ang_vel",
        ),
    ]
    for entity, key, value, name in wrong:
        states = [random_state(sim, seed) for seed in (31, 32, 33)]
        states[1]["objects"][entity][key] = value
        with raises(InvalidInputError, name=name):
            sim.set_states(states)
    after = sim.data.qpos, sim.data.qvel, sim.data.mocap_pos
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_fixed_bases_that_are_placed_together_are_as_one_at_a_time() -> None:
    post = '<mujoco><worldbody><body name="p"><geom size=".1"/><body><joint/><geom size=".1"/></body></body></worldbody></mujoco>'  # noqa: E501
    entities = {
        f"p{k}": EntityCfg(model=post, init_state=InitialStateCfg(pos=(k, 2.0, 0.5)))
        for k in range(4)
    }
    cfg = SceneCfg(entities=entities, timestep=0.003, ground=False)
    state = {
        "objects": {
            f"p{k}": {
                "pos": torch.tensor([float(k), 2.0, 0.5 + 0.3 * (k % 2)]),
                "rot": torch.tensor([1.0, 0.0, 0.4 * (k == 2), 0.0]),
            }
            for k in range(4)
        }
    }
    sims = [Simulation(cfg, num_envs=2) for _ in range(2)]
    sims[0].set_states(state, [1])
    for name, part in state["objects"].items():
        sims[1].set_states({"objects": {name: part}}, [1])
    for field in ("body_pos", "body_quat"):
        left, right = (sim.expand(field) for sim in sims)
        assert torch.equal(left, right)
        assert not torch.equal(left[0], left[1])


def many_joints(count: int) -> SceneCfg:
    """Hinges whose order of names is not that of their ids."""
    bodies = "".join(
        f'<body name="b{i}" pos="{i} 0 1"><joint name="j{(7 * i + 3) % count}" '
        f'axis="0 1 0"/><geom size=".1" contype="0"/></body>'
        for i in range(count)
    )
    xml = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
    return SceneCfg(entities={"r": EntityCfg(model=xml)}, ground=False, timestep=0.003)


def test_joints_are_written_by_name_in_any_order() -> None:
    sim = Simulation(many_joints(50), num_envs=2)
    names = sorted(sim.scene["r"].joint_names, reverse=True)
    dof = {name: 0.01 * (k + 1) for k, name in enumerate(names)}
    sim.set_states([{"objects": {"r": {"dof_pos": dof}}}], [1])
    for name, value in dof.items():
        joint = mujoco.mj_name2id(
            sim.model, mujoco.mjtObj.mjOBJ_JOINT.value, f"r/{name}"
        )
        assert sim.data.qpos[1, sim.model.jnt_qposadr[joint]] == value
    assert (sim.data.qpos[0] == 0.0).all()


def test_names_are_found_in_either_order() -> None:
    sim = Simulation(many_joints(50), num_envs=1)
    entity = sim.scene["r"]
    wanted = [f"j{k}" for k in (41, 3, 17, 3, 20)]
    expected = [entity.joint_names.index(name) for name in wanted]
    ids, names = entity.find_joints(wanted)
    assert ids == sorted(set(expected))
    assert names == [entity.joint_names[i] for i in ids]
    ids, names = entity.find_joints(wanted, preserve_order=True)
    assert (ids, names) == (
        [expected[k] for k in (0, 1, 2, 4)],
        ["j41", "j3", "j17", "j20"],
    )
    ids, names = entity.find_joints(["j4.", "j[0-3]"], preserve_order=True)
    own = entity.joint_names
    tens = [name for name in own if len(name) == 3 and name[1] == "4"]
    assert names == tens + [name for name in own if name in ("j0", "j1", "j2", "j3")]
    assert ids == [own.index(name) for name in names]
    for order in (False, True):
        with raises(UnknownNameError, name="j51"):
            entity.find_joints(["j5", "j51"], preserve_order=order)
        with raises(UnknownNameError, name="j("):
            entity.find_joints(["j5", "j("], preserve_order=order)
        with raises(UnknownNameError, name="7"):
            entity.find_joints(["j5", 7], preserve_order=order)  # pyright: ignore


class _Shifted(EntityData):
    """Quantities of which one is not simstate's own."""

    body_link_pos_w = Quantity(
        lambda data: data.raw("xpos")[:, data.columns("body_ids")] + 10.0,
        subject="body", point="link", kind="pos", axes="w", unit="m",
        shape=("num_bodies", 3), reads=("xpos",), point_text="link origin",
    )  # fmt: skip
    """Origins of the links, shifted [m]; (num_envs, num_bodies, 3)."""


def test_an_entity_with_quantities_of_its_own_is_read_by_them() -> None:
    start = [InitialStateCfg(pos=(k, 1.0, 2.0), rot=(1, 0, k, 0.5)) for k in range(3)]
    entities = {
        f"c{k}": EntityCfg(
            model=CUBE, init_state=start[k], data=_Shifted if k == 1 else None
        )
        for k in range(3)
    }
    sim = Simulation(SceneCfg(entities=entities, timestep=0.003), num_envs=2)
    states = sim.get_states(mode="tensor")
    for k, (name, tensors) in enumerate(states.objects.items()):
        expected = sim.data.qpos[:, 7 * k : 7 * k + 3] + 10.0 * (k == 1)
        assert torch.equal(tensors.pos, expected)
        assert torch.equal(tensors.body_pos[:, 0], expected)
        assert torch.equal(tensors.body_rot, sim.scene[name].data.body_link_quat_w)
