"""What every simulator does alike: some worlds, parts of states, refusals, steps."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.laws import zoo
from tests.raised import raises
from tests.simulators.scenes import ALL, OTHERS, WORLDS, only, random_motion, scene_of

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import DivergenceError, InvalidInputError, SimStateError
from simstate.simulators import Simulator, make
from simstate.state import diff

SERVO = """
<mujoco model="servo">
  <option timestep="0.002" gravity="{gravity}"/>
  <worldbody>
    <body name="link" pos="0.1 0.2 0.9" quat="0.9 0.1 0.3 0.2">
      <joint name="hinge" axis="0.2 0.9 -0.3" damping="0.4" armature="0.02"/>
      <geom name="link" type="capsule" size="0.03" fromto="0 0 0 0.02 0.05 -0.4"
            mass="0.7" contype="0" conaffinity="0"/>
    </body>
    <body name="rail" pos="0 1 0" quat="0.7 0.2 0.3 0.1">
      <body name="plate" pos="0 0 -0.4">
        <joint name="slide" type="slide" axis="0 0.3 0.8" damping="3"/>
        <geom name="plate" type="box" size="0.05 0.03 0.01" pos="0.02 0.01 0"
              mass="0.3" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <velocity name="slide" joint="slide" kv="4" gear="0.5"/>
    <position name="hinge" joint="hinge" kp="6" kv="0.5" gear="3"/>
  </actuator>
</mujoco>
"""
"""A position servo and a velocity servo with gears that are not 1."""
GRAVITY = (0.3, -0.2, -9.7)


def servo_scene():
    model = SERVO.format(gravity=" ".join(map(str, GRAVITY)))
    return SceneCfg(
        entities={"arm": EntityCfg(model=model)}, ground=False, timestep=None
    )


@pytest.mark.parametrize("key", ALL)
def test_each_is_a_simulator_with_the_names_of_the_scene(key):
    sim = make(key, scene_of("document"), num_envs=WORLDS)
    assert isinstance(sim, Simulator)
    assert list(sim.scene) == ["franka", "cube", "box"]
    assert sim.scene["box"].joint_names == ("box_joint",)
    assert sim.scene["box"].body_names == ("box_body", "box_lid")
    assert sim.scene["franka"].is_robot
    assert not sim.scene["cube"].is_robot
    assert sim.timestep == 0.002
    assert sim.num_envs == WORLDS
    assert sim.time.shape == (WORLDS,)


@pytest.mark.parametrize("key", ALL)
def test_parts_of_states_go_to_some_worlds_in_the_order_given(key):
    scene = scene_of("document")
    sim = make(key, scene, num_envs=WORLDS)
    twin = Simulation(scene, num_envs=WORLDS)
    qpos, qvel = random_motion(sim.model, WORLDS, seed=1)
    twin.data.qpos[:], twin.data.qvel[:] = torch.as_tensor(qpos), torch.as_tensor(qvel)
    sim.set_states(twin.get_states(mode="tensor", cameras=False))
    parts = [
        {"objects": {"cube": {"vel": torch.tensor([0.1, -0.2, 0.3 + k])}}}
        | {"robots": {"franka": {"dof_pos": {"joint3": 0.4 - k}}}}
        for k in range(2)
    ]
    for simulator in (sim, twin):
        simulator.set_states(parts, env_ids=[2, 1])
    width = 1e-13 if sim.dtype == torch.float64 else 1e-5
    ours = sim.get_states(mode="tensor", cameras=False)
    theirs = twin.get_states(mode="tensor", cameras=False)
    assert not len(diff(ours, theirs, width))
    assert ours.robots["franka"].dof_pos[2, 2] == pytest.approx(0.4, abs=1e-6)
    assert ours.robots["franka"].dof_pos[1, 2] == pytest.approx(-0.6, abs=1e-6)
    some = sim.get_states([2, 0], mode="tensor", cameras=False)
    assert torch.equal(some.objects["cube"].vel[0], ours.objects["cube"].vel[2])


@pytest.mark.parametrize("key", OTHERS)
def test_what_is_wrong_raises_as_in_a_simulation_and_changes_nothing(key):
    sim = make(key, scene_of("document"), num_envs=WORLDS)
    sim.step(3)
    before = sim.get_states(mode="tensor")
    for states, name in (
        ([{"objects": {"cub": {}}}] * WORLDS, "cub"),
        (
            [{"objects": {"cube": {"pos": [0.0, 0.0]}}}] * WORLDS,
            "states[0].objects.cube.pos",
        ),
        ([{"robots": {"franka": {"dof_pos": {"joint9": 0.0}}}}] * WORLDS, "joint9"),
        ([{}], None),
        ([{}] * 2, "states"),
    ):
        if name is None:
            sim.set_states(states)
        else:
            with raises(SimStateError, name=name):
                sim.set_states(states)
    with raises(InvalidInputError, name="n"):
        sim.step(0)
    with pytest.raises(SimStateError):
        sim.get_states(mode="array")
    width = 0.0 if sim.dtype == torch.float64 else 1e-6
    assert not len(diff(sim.get_states(mode="tensor"), before, max(width, 1e-14)))


@pytest.mark.parametrize("key", [k for k in OTHERS if k != "mjx"])
def test_a_mocap_body_that_cannot_move_is_refused(key):
    scene = SceneCfg(
        entities={"tool": EntityCfg(model=zoo.MOCAP_ROOT)}, ground=False, timestep=None
    )
    sim = make(key, scene, num_envs=2)
    assert "mocap bodies" in sim.missing
    before = sim.get_states(mode="tensor")
    for key, value in (("pos", [0.0, 0.1, 1.0]), ("rot", [0.6, 0.0, 0.8, 0.0])):
        moved = {"objects": {"tool": {key: torch.tensor(value)}}}
        with raises(InvalidInputError, name="mocap"):
            sim.set_states([moved, moved])
        assert not len(diff(sim.get_states(mode="tensor"), before))
        sim.set_states(before)


@pytest.mark.parametrize("key", OTHERS)
def test_a_fixed_base_that_cannot_be_placed_is_refused(key):
    sim = make(key, scene_of("document"), num_envs=2)
    before = sim.get_states(mode="tensor", cameras=False)
    with raises(InvalidInputError, name="init_state"):
        sim.set_states({"robots": {"franka": {"pos": [0.0, 0.1, 1.0]}}})
    assert not len(diff(sim.get_states(mode="tensor", cameras=False), before))
    sim.set_states(before)


@pytest.mark.parametrize("key", ALL)
def test_worlds_that_are_not_stepped_stay_and_time_is_theirs(key):
    sim = make(key, scene_of("document"), num_envs=WORLDS)
    start = sim.get_states(mode="tensor", cameras=False)
    sim.step(4, env_ids=[2, 0])
    after = sim.get_states(mode="tensor", cameras=False)
    assert torch.equal(
        after.objects["cube"].body_pos[1], start.objects["cube"].body_pos[1]
    )
    assert torch.equal(
        after.robots["franka"].dof_vel[1], start.robots["franka"].dof_vel[1]
    )
    assert after.objects["cube"].vel[0, 2] < -0.05
    assert sim.time.tolist() == pytest.approx([0.008, 0.0, 0.008])
    sim.reset([2])
    again = sim.get_states(mode="tensor", cameras=False)
    assert torch.equal(again.objects["cube"].pos[2], start.objects["cube"].pos[2])
    assert sim.time.tolist() == pytest.approx([0.008, 0.0, 0.0])


@pytest.mark.parametrize("key", ALL)
def test_a_free_body_falls_as_gravity_says(key):
    """Semi-implicit Euler of a constant acceleration, in closed form."""
    sim = make(key, scene_of("cube"), num_envs=2)
    height = [5.0, 7.0]
    states = [
        {"objects": {"robot": {"pos": [0.1, 0.2, z], "vel": [0.3, -0.4, 0.5]}}}
        for z in height
    ]
    sim.set_states(states)
    n, h, g = 50, sim.timestep, 9.81
    sim.step(n)
    found = sim.get_states(mode="tensor", cameras=False).objects["robot"]
    # The origin of a body that does not turn goes as its COM.
    fallen = 0.5 * n * h - g * h * h * n * (n + 1) / 2
    assert found.pos[:, 2].tolist() == pytest.approx(
        [z + fallen for z in height], abs=2e-5
    )
    assert found.vel[:, 2].tolist() == pytest.approx([0.5 - g * n * h] * 2, abs=2e-5)
    assert found.pos[:, 0].tolist() == pytest.approx([0.1 + 0.3 * n * h] * 2, abs=2e-5)


@pytest.mark.parametrize("key", [k for k in ALL if k != "warp"])
def test_servos_go_to_targets_through_their_gears(key):
    """At rest a servo's force balances gravity: both are known in closed form."""
    sim = make(key, servo_scene(), num_envs=2)
    aims = (0.35, -0.25)
    rates = (0.02, -0.03)
    sim.set_states(
        [
            {
                "robots": {
                    "arm": {
                        "dof_pos_target": {"hinge": aim},
                        "dof_vel_target": {"slide": rate},
                        "dof_pos": {"hinge": aim},
                    }
                }
            }
            for aim, rate in zip(aims, rates, strict=True)
        ]
    )
    seen = sim.get_states(mode="tensor", cameras=False).robots["arm"]
    assert seen.dof_pos_target[:, 0].tolist() == pytest.approx(aims, abs=1e-6)
    sim.step(1500)
    found = sim.get_states(mode="tensor", cameras=False).robots["arm"]
    for world, (aim, rate) in enumerate(zip(aims, rates, strict=True)):
        # kv gear² (v* − v) − damping v + weight along the slide = 0
        weight = 0.3 * float(_slide_axis(sim.model) @ GRAVITY)
        steady = (4 * 0.5**2 * rate + weight) / (4 * 0.5**2 + 3)
        assert float(found.dof_vel[world, 1]) == pytest.approx(steady, abs=1e-3)
        # kp gear² (q* − q) + weight's torque = 0
        position = float(found.dof_pos[world, 0])
        torque = _gravity_torque(sim.model, position)
        assert 6 * 3**2 * (aim - position) + torque == pytest.approx(0.0, abs=1e-2)
        assert abs(aim - position) > 1e-3


def _slide_axis(model):
    """The axis of the slide, world axes."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return data.xaxis[model.joint("arm/slide").id].copy()


def _gravity_torque(model, position):
    """Torque of gravity about the hinge [N·m]."""
    data = mujoco.MjData(model)
    data.qpos[model.joint("arm/hinge").qposadr[0]] = position
    mujoco.mj_fwdPosition(model, data)
    body, joint = model.body("arm/link").id, model.joint("arm/hinge").id
    arm = data.xipos[body] - data.xanchor[joint]
    return float(np.cross(arm, 0.7 * np.array(GRAVITY)) @ data.xaxis[joint])


@pytest.mark.parametrize("key", ["looped", *only("newton", "newton-featherstone")])
def test_a_world_that_diverges_is_named_and_gets_its_state_back(key):
    sim = make(key, servo_scene(), num_envs=3)
    sim.step(2)
    before = sim.get_states(mode="tensor")
    fast = {"robots": {"arm": {"dof_vel": {"hinge": 1e12}}}}
    sim.set_states([fast], env_ids=[1])
    before = sim.get_states(mode="tensor")
    with raises(DivergenceError, worlds=[1]) as caught:
        sim.step(3)
    assert caught.value.env_ids == [1]
    after = sim.get_states(mode="tensor")
    assert torch.equal(after.robots["arm"].dof_pos[1], before.robots["arm"].dof_pos[1])
    assert not torch.equal(
        after.robots["arm"].dof_pos[0], before.robots["arm"].dof_pos[0]
    )
    assert sim.time[1] < sim.time[0]


def test_a_step_that_is_interrupted_has_not_happened(monkeypatch):
    sim = make("looped", servo_scene(), num_envs=3)
    sim.step(2)
    before, time = sim.get_states(mode="tensor"), sim.time.clone()
    advance = sim.advance

    def interrupted(n, ctrl, ids):
        advance(n, ctrl, ids[:2])
        raise KeyboardInterrupt

    monkeypatch.setattr(sim, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sim.step(3, env_ids=[2, 0])
    assert not len(diff(sim.get_states(mode="tensor"), before))
    assert torch.equal(sim.time, time)


def test_activations_of_a_world_that_diverges_come_back(monkeypatch):
    scene = SceneCfg(
        entities={"arm": EntityCfg(model=LAGGING)}, ground=False, timestep=None
    )
    sim = make("looped", scene, num_envs=2)
    sim.ctrl[:] = torch.tensor([[0.4], [0.7]])
    sim.step(3)
    act = sim.reference.data.act.clone()
    assert act[1, 0] > act[0, 0] > 0.01
    advance = sim.advance

    def broken(n, ctrl, ids):
        advance(n, ctrl, ids)
        sim.worlds[0].qvel[0] = np.nan
        return {}

    monkeypatch.setattr(sim, "advance", broken)
    with raises(DivergenceError, worlds=[0]):
        sim.step(2)
    assert sim.reference.data.act[0, 0] == act[0, 0]
    assert sim.reference.data.act[1, 0] > act[1, 0]


LAGGING = """
<mujoco model="lagging">
  <worldbody>
    <body name="link" pos="0.1 0.2 0.9" quat="0.9 0.1 0.3 0.2">
      <joint name="hinge" axis="0.2 0.9 -0.3" damping="0.4"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.02 0.05 -0.4" mass="0.7"/>
    </body>
  </worldbody>
  <actuator>
    <general name="hinge" joint="hinge" dyntype="filter" dynprm="0.05" gear="3"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize("key", only("mjx"))
def test_tendons_that_wrap_are_stepped(key):
    """By plain MuJoCo, whose steps MJX's are."""
    sim = make(key, scene_of("finger"), num_envs=2)
    sim.ctrl[:] = torch.tensor([[0.2, 0.1], [0.05, 0.3]], dtype=torch.float64)
    sim.step(3)
    found = sim.read([1])
    data = mujoco.MjData(sim.model)
    data.ctrl[:] = (0.05, 0.3)
    mujoco.mj_step(sim.model, data, 3)
    assert np.allclose(found.qpos[0], data.qpos, rtol=0, atol=1e-12)
    assert np.abs(found.qvel[0]).max() > 1e-3


@pytest.mark.parametrize("key", only("drake"))
def test_a_singular_ball_joint_is_refused_by_name(key):
    sim = make(key, scene_of("humanoid"), num_envs=1)
    half = math.sqrt(0.5)
    state = {"dof_pos": {"left_shoulder": torch.tensor([half, 0.0, half, 0.0])}}
    with raises(InvalidInputError, name="robot/left_shoulder"):
        sim.set_states([{"robots": {"robot": state}}])
