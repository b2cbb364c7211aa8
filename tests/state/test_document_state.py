"""The example state of the unified-state document, under the document's own names."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import tensor

from simstate import CameraCfg, EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.env import (
    Env,
    EnvCfg,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
)
from simstate.interop.metasim import MetaSimEnv, MetaSimTaskEnv

H, W = 12, 16
JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
FINGERS = ["panda_finger_joint1", "panda_finger_joint2"]
HOME = [0.0, -0.785398, 0.0, -2.356194, 0.0, 1.570796, 0.785398, 0.04, 0.04]

BOX = """<mujoco><worldbody><body name="box_body" pos=".6 .4 .15">{joint}
  <geom type="box" size=".1 .1 .05" pos=".01 .02 0" mass=".8"/>
  <body name="box_lid" pos="-.1 0 .06"><joint name="box_joint" axis="0 1 0"/>
    <geom type="box" size=".1 .1 .01" pos=".1 0 0" mass=".2"/></body>
</body></worldbody></mujoco>"""


def franka(driven):
    """An arm with the document's joints; those in `driven` have an actuator."""
    links, ends = "", ""
    for k, name in enumerate(JOINTS):
        axis = "0 0 1" if k % 2 == 0 else "0 1 0"
        links += f"""<body name="link{k}" pos="0 0 .12"><joint name="{name}"
          axis="{axis}" damping="2"/>
          <geom type="capsule" fromto="0 0 0 0 0 .1" size=".02" mass=".3"/>"""
        ends += "</body>"
    for k, name in enumerate(FINGERS):
        links += f"""<body pos="0 {0.04 * k} .1"><joint name="{name}" type="slide"/>
          <geom size=".01" mass=".02"/></body>"""
    kinds = {"position": 'kp="30"', "velocity": 'kv="3"', "motor": 'gear="2"'}
    actuators = "".join(
        f'<{kind} joint="{name}" {kinds[kind]}/>' for name, kind in driven.items()
    )
    return f"""<mujoco><worldbody><body name="panda_link0" pos="0.3 0 0">{links}{ends}
      </body></worldbody><actuator>{actuators}</actuator></mujoco>"""


DRIVEN = {
    "all": dict.fromkeys(JOINTS + FINGERS, "position"),
    "some": {JOINTS[1]: "position", JOINTS[3]: "velocity", JOINTS[6]: "motor"},
    "none": {},
}


def scene(driven, box_joint="<freejoint/>"):
    start = InitialStateCfg(pos=(0.5, 0.0, 0.3))
    return SceneCfg(
        entities={
            "franka": EntityCfg(model=franka(driven), kind="robot"),
            "cube": EntityCfg(model="cube", init_state=start),
            "box": EntityCfg(model=BOX.format(joint=box_joint), kind="object"),
        },
        cameras={"camera0": CameraCfg(pos=(1, 1, 1), width=W, height=H)},
        timestep=0.002,
    )


def rest():
    return {
        "pos": tensor([0.0, 0.0, 0.0]),
        "rot": tensor([1.0, 0.0, 0.0, 0.0]),
        "vel": tensor([0.0, 0.0, 0.0]),
        "ang_vel": tensor([0.0, 0.0, 0.0]),
    }


def example():
    """The document's example, each number and each name of it."""
    zero = dict.fromkeys(JOINTS + FINGERS, 0.0)
    home = dict(zip(JOINTS + FINGERS, HOME, strict=True))
    box = {
        "dof_pos": {"box_joint": 0.0},
        "dof_vel": {"box_joint": 0.0},
        "body": {"box_lid": rest(), "box_body": rest()},
    }
    arm = {
        "dof_pos": home,
        "dof_vel": zero,
        "dof_pos_target": dict(home),
        "dof_vel_target": dict(zero),
    }
    images = {"rgb": torch.zeros((H, W, 3)), "depth": torch.zeros((H, W))}
    return {
        "objects": {"cube": rest(), "box": {**rest(), **box}},
        "robots": {"franka": {**rest(), **arm}},
        "cameras": {"camera0": images},
    }


def assert_is_the_example(states, tolerance=1e-6):
    assert len(states) == 3
    want = example()
    for got in states:
        for group, name in (("objects", "cube"), ("robots", "franka")):
            for key in ("pos", "rot", "vel", "ang_vel"):
                torch.testing.assert_close(
                    got[group][name][key].float(), want[group][name][key],
                    atol=tolerance, rtol=0,
                )  # fmt: skip
        robot, wanted = got["robots"]["franka"], want["robots"]["franka"]
        for key in ("dof_pos", "dof_vel", "dof_pos_target", "dof_vel_target"):
            assert list(robot[key]) == JOINTS + FINGERS
            assert robot[key] == pytest.approx(wanted[key], abs=tolerance)
        assert got["objects"]["box"]["dof_pos"] == {"box_joint": 0.0}
        assert list(robot["dof_effort_target"]) == JOINTS + FINGERS


def displaced(driven, engine="native", **options):
    sim = Simulation(scene(driven, **options), 3, engine=engine)
    sim.data.qpos[:, :3] += 0.3
    sim.data.qvel[:] = 0.1 * torch.arange(1, 4)[:, None].to(sim.dtype)
    return sim


@pytest.mark.parametrize("driven", DRIVEN)
def test_set_states_takes_it(engine, driven):
    for given in (example(), [example()], [example() for _ in range(3)]):
        sim = displaced(DRIVEN[driven], engine)
        sim.set_states(given)
        assert_is_the_example(sim.get_states(cameras=False))


def test_a_box_on_a_fixed_base_takes_it_too(engine):
    sim = displaced(DRIVEN["some"], engine, box_joint="")
    sim.set_states(example())
    assert_is_the_example(sim.get_states(cameras=False))
    assert not sim.scene["box"].data.root_link_pos_w.any()


@pytest.mark.parametrize("driven", DRIVEN)
def test_reset_takes_it_and_step_its_action(driven):
    env = MetaSimEnv(displaced(DRIVEN[driven]))
    states, _ = env.reset([example() for _ in range(3)])
    assert_is_the_example(states)
    robot = example()["robots"]["franka"]
    action = {k: robot[k] for k in ("dof_pos_target", "dof_vel_target")}
    action["dof_effort_target"] = dict.fromkeys(JOINTS, 0.25)
    states, *_ = env.step([{"franka": action}] * 3)
    for state in states:
        for key, want in action.items():
            got = state["robots"]["franka"][key]
            assert {j: got[j] for j in want} == pytest.approx(want)


def test_a_tasks_reset_takes_it_and_its_step_the_action():
    seen = ObservationTermCfg(lambda env: env.sim.time[:, None])
    cfg = EnvCfg(
        scene=scene(DRIVEN["some"]),
        decimation=2,
        episode_length_s=1.0,
        actions={"arm": JointPositionActionCfg(asset_name="franka")},
        observations={"policy": ObservationGroupCfg(terms={"time": seen})},
        rewards={},
        terminations={},
    )
    env = MetaSimTaskEnv(Env(cfg, 3, auto_reset=False))
    states, _ = env.reset(example())
    assert_is_the_example(states)
    robot = example()["robots"]["franka"]
    action = {k: robot[k] for k in ("dof_pos_target", "dof_vel_target")}
    states, *_ = env.step([{"franka": action}] * 3)
    for state in states:
        for key, want in action.items():
            assert state["robots"]["franka"][key] == pytest.approx(want, abs=1e-6)


def test_lists_floats_arrays_and_tensors_are_one(engine):
    sims = [displaced(DRIVEN["some"], engine) for _ in range(2)]
    numbers = {
        "pos": [0.1, 0.2, 0.3],
        "rot": np.array([0.8, 0.0, 0.6, 0.0]),
        "dof_pos": {JOINTS[0]: 1, JOINTS[1]: tensor(0.5), JOINTS[2]: tensor([-0.25])},
        "dof_pos_target": {FINGERS[0]: np.float32(0.5), JOINTS[1]: np.array(0.125)},
    }
    tensors = {
        "pos": tensor([0.1, 0.2, 0.3], dtype=torch.float64, requires_grad=True),
        "rot": tensor([0.8, 0.0, 0.6, 0.0], dtype=torch.float64),
        "dof_pos": {JOINTS[0]: 1.0, JOINTS[1]: 0.5, JOINTS[2]: -0.25},
        "dof_pos_target": {FINGERS[0]: 0.5, JOINTS[1]: 0.125},
    }
    for sim, part in zip(sims, (numbers, tensors), strict=True):
        sim.set_states({"robots": {"franka": part}}, [2, 0])
    assert torch.equal(sims[0].state, sims[1].state)
    target = sims[0].scene["franka"].data.joint_pos_target
    assert torch.equal(target, sims[1].scene["franka"].data.joint_pos_target)
    assert target[:, 7].tolist() == [0.5, 0.0, 0.5]
