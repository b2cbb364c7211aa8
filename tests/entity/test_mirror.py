"""Mirror images of robots, derived from geometry and axes."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import ModelError, UnknownNameError
from simstate.entity.mirror import EntityMirror, SignedPermutation
from simstate.entity.model_mirror import ModelMirror
from simstate.scene import models

pytestmark = pytest.mark.fast

PAIR = """
<mujoco>
  <worldbody>
    <body name="base" pos="0.3 -0.2 1" euler="20 0 0">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.05" pos="0.02 0 0.01"/>
      <body name="left" pos="0.1 0.15 0">
        <joint name="left_swing" axis="0.6 0.8 0" ref="10"/>
        <joint name="left_slide" type="slide" axis="0 0.6 0.8"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.1 0.05 -0.2"/>
        <site name="left_tip" pos="0.1 0.05 -0.2"/>
      </body>
      <body name="right" pos="0.1 -0.15 0">
        <joint name="right_swing" axis="0.6 -0.8 0" ref="-10"/>
        <joint name="right_slide" type="slide" axis="0 0.6 -0.8"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.1 -0.05 -0.2"/>
        <site name="right_tip" pos="0.1 -0.05 -0.2"/>
      </body>
      <body name="tail" pos="-0.2 0 0">
        <joint name="tail_yaw" axis="0 0 -1"/>
        <joint name="tail_pitch" axis="0 1 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 -0.3 0 0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="right_slide" gear="3"/>
    <motor joint="tail_yaw" gear="2"/>
    <motor joint="left_slide" gear="-3"/>
  </actuator>
</mujoco>
"""


PIDS = PAIR
for _joint, _gear in (("right_slide", 3), ("left_slide", -3)):
    PIDS = PIDS.replace(
        f'<motor joint="{_joint}" gear="{_gear}"/>',
        f'<pid joint="{_joint}" gear="{_gear}" kp="4" kv="0.3"/>',
    )
"""The slides have servos with two controls each."""


def simulation(model) -> Simulation:
    return Simulation(SceneCfg(entities={"robot": EntityCfg(model=model)}, ground=True))


def test_pairs_and_signs_come_from_geometry_and_axes():
    mirror = EntityMirror(simulation(PAIR).scene["robot"])
    assert mirror.bodies == {
        "base": "base", "left": "right", "right": "left", "tail": "tail",
    }  # fmt: skip
    # An axis of rotation is axial: (0.6, 0.8, 0) becomes (−0.6, 0.8, 0).
    assert mirror.joint("left_swing") == ("right_swing", -1.0)
    # A slide's is not: (0, 0.6, 0.8) becomes (0, −0.6, 0.8).
    assert mirror.joint("left_slide") == ("right_slide", -1.0)
    assert mirror.joint("tail_yaw") == ("tail_yaw", -1.0)
    assert mirror.joint("tail_pitch") == ("tail_pitch", 1.0)
    assert mirror.site("right_tip") == "left_tip"


def test_humanoid_has_pairs_of_limbs_and_ball_joints():
    mirror = EntityMirror(simulation("humanoid").scene["robot"])
    joints = mirror.entity.joint_names
    for name in joints:
        other, sign = mirror.joint(name)
        assert mirror.joint(other) == (name, sign)
        sides = {"left": "right", "right": "left"}
        side = name.split("_")[0]
        assert other == name.replace(side, sides.get(side, side), 1)
    assert mirror.ball_joint("left_shoulder") == "right_shoulder"


@pytest.mark.parametrize("model", [PAIR, PIDS, "quadruped", "humanoid"])
def test_a_mirrored_state_and_control_give_the_mirrored_next_state(model):
    """MuJoCo itself, from random states; to the last bits of the sums of forces."""
    sim = simulation(model)
    compiled = sim.model
    compiled.opt.tolerance = 1e-12
    mirror = ModelMirror(compiled, [EntityMirror(sim.scene["robot"])])
    random, data = np.random.default_rng(5), mujoco.MjData(compiled)
    for k in range(5):
        qvel = random.normal(0, 1, compiled.nv)
        qpos = sim.data.qpos[0].numpy().copy()
        mujoco.mj_integratePos(compiled, qpos, qvel, 0.1 * k)
        ctrl = random.normal(0, 1, compiled.nu)
        ends = []
        for q, v, u in (
            (qpos, qvel, ctrl),
            (mirror.qpos(qpos), mirror.qvel(qvel), mirror.ctrl(ctrl)),
        ):
            mujoco.mj_resetData(compiled, data)
            data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
            mujoco.mj_step(compiled, data)
            ends.append((data.qpos.copy(), data.qvel.copy()))
        (q, v), (other_q, other_v) = ends
        np.testing.assert_allclose(mirror.qpos(q), other_q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(mirror.qvel(v), other_v, rtol=1e-9, atol=1e-9)


def test_without_limbs_in_pairs_the_next_state_is_equal_to_the_last_bit():
    """Sums of forces over one chain have the same terms in the same order."""
    text = PAIR.replace("ref=", "user=")
    spec = mujoco.MjSpec.from_string(text)
    for name in ("left", "right"):
        spec.delete(spec.body(name))
    spec.body("base").quat = (1, 0, 0, 0)
    sim = simulation(spec)
    mirror = ModelMirror(sim.model, [EntityMirror(sim.scene["robot"])])
    random, data = np.random.default_rng(6), mujoco.MjData(sim.model)
    data.qpos[:] = sim.data.qpos[0]
    data.qvel[:], data.ctrl[:] = random.normal(0, 1, sim.model.nv), 0.7
    mujoco.mj_integratePos(sim.model, data.qpos, data.qvel, 0.2)
    other = mujoco.MjData(sim.model)
    other.qpos[:], other.qvel[:] = mirror.qpos(data.qpos), mirror.qvel(data.qvel)
    other.ctrl[:] = mirror.ctrl(data.ctrl)
    for _ in range(50):
        mujoco.mj_step(sim.model, data)
        mujoco.mj_step(sim.model, other)
    np.testing.assert_array_equal(mirror.qvel(data.qvel), other.qvel)
    np.testing.assert_array_equal(mirror.qpos(data.qpos), other.qpos)


def test_a_limb_without_a_counterpart_is_named():
    spec = models.spec("quadruped")
    spec.body("RL_calf").pos = (0.0, 0.0, -0.2)
    with raises(ModelError, name="RL_calf"):
        EntityMirror(simulation(spec).scene["robot"])


def test_declared_pairs_take_the_place_of_geometry():
    turned = PAIR.replace('name="right" pos="0.1 -0.15 0"', 'name="right" pos="0 0 0"')
    entity = simulation(turned).scene["robot"]
    with raises(ModelError, name="left"):
        EntityMirror(entity)
    pairs = {"left_swing": "-right_swing", "left_slide": "right_slide"}
    mirror = EntityMirror(entity, joints=pairs)
    assert mirror.joint("right_swing") == ("left_swing", -1.0)
    assert mirror.joint("left_slide") == ("right_slide", 1.0)
    assert mirror.bodies["left"] == "right"
    with raises(UnknownNameError, name="left_swnig"):
        EntityMirror(entity, joints={"left_swnig": "right_swing"})


def test_a_fixed_base_must_stand_in_the_plane():
    spec = models.spec("arm")
    spec.bodies[1].pos = (0.1, 0.2, 0.0)
    with raises(ModelError, name="robot"):
        EntityMirror(simulation(spec).scene["robot"])


def test_permutations_are_joined_and_repeated():
    pair = SignedPermutation((1, 0), (-1.0, -1.0))
    both = SignedPermutation.identity(1).joined(pair).repeated(2)
    assert both.index == (0, 2, 1, 3, 5, 4)
    assert both.sign == (1.0, -1.0, -1.0) * 2
