"""Terms on contact sensors against numbers computed from the state by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from tests.raised import raises

from simstate import ContactCfg
from simstate.base.errors import InvalidInputError
from simstate.env import (
    Env,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    VelocityCommandCfg,
    observations,
    rewards,
    terminations,
)

BODIES = SceneEntityCfg("robot", body_names=["shin", "trunk"], preserve_order=True)
FEET = {"sensor_name": "feet"}
CONTACTS = {
    "feet": ContactCfg(of=["robot/shin", "robot/trunk"], against="ground"),
    "shin": ContactCfg(of="robot/shin", threshold=0.5),
}


def _env(make_cfg, **parts) -> Env:
    cfg = make_cfg(**parts)
    scene = dataclasses.replace(
        cfg.scene, contacts=CONTACTS, ground=True, timestep=None
    )
    return Env(dataclasses.replace(cfg, scene=scene), 5, seed=3)


def _fall(env: Env, steps: int) -> None:
    rng = np.random.default_rng(4)
    for _ in range(steps):
        action = rng.normal(size=(5, env.action_dim))
        env.step(torch.as_tensor(action, dtype=torch.float32))


def test_observations_are_the_sensor_s(make_cfg) -> None:
    terms = {
        "found": ObservationTermCfg(observations.contact_found, params=FEET),
        "force": ObservationTermCfg(observations.contact_force, params=FEET),
        "air": ObservationTermCfg(observations.contact_air_time, params=FEET),
    }
    env = _env(make_cfg, observations={"policy": ObservationGroupCfg(terms)})
    _fall(env, 12)
    feet = env.sim.contacts["feet"]
    assert feet.element_names == ("robot/trunk", "robot/shin")
    seen = env.observations["policy"]
    expected = torch.cat(
        [feet.found, feet.force_w.flatten(1), feet.air_time], dim=1
    ).float()
    assert torch.allclose(seen, expected)
    assert feet.found.any()
    assert not feet.found.all()
    names = env.observation_names["policy"]
    assert names[:3] == [
        "found/robot/trunk", "found/robot/shin", "force/robot/trunk.x"
    ]  # fmt: skip


def test_rewards_by_hand(make_cfg) -> None:
    command = VelocityCommandCfg(
        resampling_time_s=(9.0, 9.0), lin_vel_x=(0.2, 1.0), lin_vel_y=(-0.5, 0.5),
        ang_vel_z=(-1.0, 1.0), standing_share=0.5,
    )  # fmt: skip
    env = _env(make_cfg, commands={"velocity": command})
    feet = env.sim.contacts["feet"]
    bodies = SceneEntityCfg("robot", body_names=["trunk", "shin"])
    landed = 0.0
    for _ in range(60):
        _fall(env, 1)
        data = env.scene["robot"].data
        ids = [env.scene["robot"].body_names.index(n) for n in ("trunk", "shin")]
        speed = data.body_link_lin_vel_w[:, ids, :2].numpy()
        speed = np.hypot(speed[..., 0], speed[..., 1])
        height = data.body_link_pos_w[:, ids, 2].numpy()
        on = feet.found.numpy()
        slide = rewards.feet_slide(env, "feet", bodies)
        np.testing.assert_allclose(slide, (speed * on).sum(1))
        clearance = rewards.feet_clearance(env, "feet", bodies, height=0.2)
        expected = ((height - 0.2) ** 2 * speed * ~on).sum(1)
        np.testing.assert_allclose(clearance, expected)
        now = feet.contact_time.numpy()
        new = (now > 0) & (now < env.step_dt + 0.5 * env.sim.timestep)
        expected = ((feet.last_air_time.numpy() - 0.1) * new).sum(1) / env.step_dt
        air = rewards.feet_air_time(env, "feet", 0.1)
        np.testing.assert_allclose(air, expected)
        moving = (env.commands["velocity"].command != 0).any(1).numpy()
        air = rewards.feet_air_time(env, "feet", 0.1, "velocity")
        np.testing.assert_allclose(air, expected * moving)
        landed += np.abs(expected * ~moving).sum()
        hit = feet.greatest_force.numpy() > 7.0
        assert (
            rewards.undesired_contacts(env, "feet", 7.0).numpy() == hit.sum(1)
        ).all()
        ended = terminations.undesired_contact(env, "feet", 7.0)
        assert (ended.numpy() == hit.any(1)).all()
    assert landed > 0


def test_bodies_in_another_order_are_refused(make_cfg) -> None:
    env = _env(make_cfg)
    with raises(InvalidInputError, name="feet"):
        rewards.feet_slide(env, "feet", BODIES)


def test_a_hit_between_two_control_steps_ends_an_episode(make_cfg) -> None:
    """The foot is up again when the step ends."""
    term = TerminationTermCfg(
        terminations.undesired_contact, params={"sensor_name": "shin", "threshold": 2.0}
    )
    env = _env(
        make_cfg,
        decimation=10,
        terminations={"hit": term},
        rewards={"alive": RewardTermCfg(rewards.is_alive, weight=1.0)},
    )
    env.auto_reset = False
    sensor = env.sim.contacts["shin"]
    missed = 0
    rng = np.random.default_rng(8)
    for _ in range(40):
        action = torch.as_tensor(rng.normal(size=(5, env.action_dim)))
        _, _, terminated, _, _ = env.step(action.float())
        missed += int((terminated & ~sensor.found[:, 0]).sum())
        env.reset(env_ids=terminated.nonzero().flatten())
    assert missed > 0
