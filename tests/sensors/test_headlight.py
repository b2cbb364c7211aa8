"""A headlight that differs by world, against MuJoCo Warp's own headlight."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tests.raised import raises

from simstate import CameraCfg, EntityCfg, InvalidInputError, SceneCfg, Simulation
from simstate.env import EventTermCfg, events

MODEL = """
<mujoco>
  <visual>
    <headlight ambient=".15 .1 .2" diffuse=".5 .4 .3" specular=".2 .1 .3"/>
  </visual>
  <worldbody>
    <light pos="1 2 4" dir="-0.2 -0.4 -1" diffuse=".3 .3 .3"/>
    <geom type="plane" size="3 3 0.1" rgba="0.5 0.6 0.7 1"/>
    <body name="box" pos="0 0 0.4" quat="0.9 0.1 0.3 0.2">
      <joint axis="0 0 1"/>
      <geom type="box" size="0.2 0.3 0.25" rgba="0.8 0.3 0.2 1"/>
    </body>
  </worldbody>
</mujoco>
"""
PLACES = {
    "in the world": {"pos": (1.0, 0.6, 1.1), "look_at": (0, 0, 0.3)},
    "on a body": {"body": "it/box", "pos": (0.9, 0.5, 0.8), "look_at": (0, 0, 0)},
    "following": {
        "body": "it/box", "pos": (0.9, 0.5, 0.8), "look_at": (0, 0, 0), "follow": True
    },
}  # fmt: skip


def scene(place, **options):
    camera = CameraCfg(width=24, height=18, **PLACES[place], **options)
    return SceneCfg(entities={"it": EntityCfg(model=MODEL)}, cameras={"eye": camera})


def turned(simulated):
    sim = Simulation(simulated, num_envs=2)
    sim.scene["it"].write_joint_position_to_sim(torch.tensor([[0.4], [-0.9]]))
    return sim


@pytest.mark.parametrize("place", PLACES)
def test_a_picture_is_that_with_mujoco_s_own(place):
    own = turned(scene(place)).cameras["eye"].rgb.clone()
    ours = turned(scene(place, headlight=True)).cameras["eye"].rgb
    assert float(own.float().std()) > 10
    assert int((own.int() - ours.int()).abs().max()) <= 1
    dark = turned(scene(place, headlight=True))
    dark.expand("light_active")[:] = 0
    assert float(dark.cameras["eye"].rgb.float().mean()) < float(own.float().mean())


def test_it_differs_by_world(make_env_with_eye):
    env = make_env_with_eye(
        {"diffuse_range": (0.2, 1.8), "ambient_range": (0.5, 1.5)}, headlight=True
    )
    light = env.sim.model.light("headlight").id
    diffuse = env.sim.expand("light_diffuse")[:, light]
    own = torch.tensor([0.5, 0.4, 0.3])
    share = diffuse / own
    assert torch.allclose(share, share[:, :1].expand(-1, 3))
    assert len({round(x, 6) for x in share[:, 0].tolist()}) == 4
    specular = env.sim.expand("light_specular")[:, light].double()
    assert torch.allclose(specular, torch.tensor([0.2, 0.1, 0.3]).double(), atol=1e-7)
    bright = env.sim.cameras["eye"].rgb.float().mean((1, 2, 3))
    ambient = env.sim.expand("light_ambient")[:, light].mean(-1)
    shine = diffuse.mean(-1) + ambient
    assert bright.argmax() == shine.argmax()
    assert bright.argmin() == shine.argmin()


def test_without_it_the_event_says_what_to_declare(make_env_with_eye):
    with raises(InvalidInputError, name="headlight"):
        make_env_with_eye({"diffuse_range": (0.2, 1.8)})


def test_one_camera_has_it():
    given = scene("in the world", headlight=True)
    cameras = {**given.cameras, "other": given.cameras["eye"]}
    with raises(InvalidInputError, name="other"):
        Simulation(dataclasses.replace(given, cameras=cameras))


@pytest.fixture
def make_env_with_eye():
    from simstate import MotorActuatorCfg
    from simstate.env import (
        Env,
        EnvCfg,
        JointEffortActionCfg,
        ObservationGroupCfg,
        ObservationTermCfg,
        observations,
    )  # fmt: skip

    def make(params, **options):
        place = scene("in the world", **options)
        it = EntityCfg(
            model=MODEL, actuators=(MotorActuatorCfg(joints=".*", gear=2.0),)
        )
        cfg = EnvCfg(
            scene=dataclasses.replace(place, entities={"robot": it}),
            decimation=2, episode_length_s=1.0, terminations={}, rewards={},
            actions={"push": JointEffortActionCfg()},
            observations={"policy": ObservationGroupCfg(
                {"joints": ObservationTermCfg(observations.joint_pos_rel)})},
            events={"light": EventTermCfg(
                events.randomize_headlight, mode="startup", params=params)},
        )  # fmt: skip
        return Env(cfg, 4, seed=3)

    return make
