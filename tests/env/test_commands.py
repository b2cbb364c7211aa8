"""Commands: what is drawn, when, and how it follows the robot."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    AttitudeCommandCfg,
    HeadingCommandCfg,
    PointCommandCfg,
    RewardTermCfg,
    VelocityCommandCfg,
)
from simstate.env.commands import wrapped

FOREVER = (1e6, 1e6)


def test_velocities_are_drawn_from_their_ranges(make_env):
    cfg = VelocityCommandCfg(
        resampling_time_s=FOREVER,
        lin_vel_x=(0.5, 1.5),
        lin_vel_y=(-0.2, 0.2),
        ang_vel_z=(-1.0, 3.0),
        standing_share=0.25,
    )
    env = make_env(2000, commands={"velocity": cfg})
    term = env.commands["velocity"]
    standing = term.is_standing
    assert int(standing.sum()) == pytest.approx(500, abs=80)
    assert not term.command[standing].any()
    walking = term.command[~standing].double().numpy()
    spans = (cfg.lin_vel_x, cfg.lin_vel_y, cfg.ang_vel_z)
    for column, (low, high) in zip(walking.T, spans, strict=True):
        test = stats.kstest(column, "uniform", args=(low, high - low))
        assert test.pvalue > 1e-3
    assert env.commands["velocity"].names == ("lin_vel_x", "lin_vel_y", "ang_vel_z")


def test_each_world_draws_again_when_its_own_time_is_up(make_env):
    cfg = VelocityCommandCfg(resampling_time_s=(0.1, 0.2), lin_vel_x=(0.0, 1.0))
    env = make_env(8, commands={"velocity": cfg}, episode_length_s=10.0)
    last = env.commands["velocity"].command.clone()
    changes: list[list[int]] = [[0] for _ in range(8)]
    for k in range(1, 41):
        env.step(torch.zeros(8, 2))
        now = env.commands["velocity"].command
        for world in (now != last).any(1).nonzero().flatten().tolist():
            changes[world].append(k)
        last = now.clone()
    gaps = np.concatenate([np.diff(times) for times in changes])
    assert gaps.min() >= 5
    assert gaps.max() <= 10  # 0.1 to 0.2 s are 5 to 10 steps of 0.02 s
    assert len(set(map(tuple, changes))) > 1


def test_a_reward_sees_the_command_that_the_action_was_given_for(make_env):
    """Commands change after the reward, so no action is judged by a later one."""
    from simstate.env import RewardTermCfg

    cfg = VelocityCommandCfg(resampling_time_s=(0.02, 0.06), lin_vel_x=(0.0, 1.0))
    judged: list[torch.Tensor] = []

    def judge(env):
        judged.append(env.commands["velocity"].command.clone())
        return torch.zeros(env.num_envs)

    env = make_env(
        4,
        commands={"velocity": cfg},
        rewards={"judge": RewardTermCfg(judge, weight=1.0)},
    )
    for _ in range(10):
        seen = env.commands["velocity"].command.clone()
        env.step(torch.zeros(4, 2))
        assert torch.equal(judged[-1], seen)


def test_a_heading_is_followed_by_the_yaw_rate(make_env, engine):
    cfg = VelocityCommandCfg(
        resampling_time_s=FOREVER,
        lin_vel_x=(0.0, 1.0),
        ang_vel_z=(-0.5, 0.5),
        heading=(-math.pi, math.pi),
        heading_stiffness=2.0,
        heading_share=0.5,
    )
    env = make_env(60, engine=engine, commands={"velocity": cfg})
    term = env.commands["velocity"]
    follows = term.follows_heading
    assert 10 < int(follows.sum()) < 50
    drawn = term.command[:, 2].clone()
    yaw = torch.linspace(-3.0, 3.0, 60).to(env.sim.dtype)
    zero = torch.zeros_like(yaw)
    pose = torch.stack(
        [zero, zero, zero + 3, (yaw / 2).cos(), zero, zero, (yaw / 2).sin()], dim=1
    )
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    env.scene["robot"].write_root_link_velocity_to_sim(torch.zeros(60, 6).to(yaw))
    env.step(torch.zeros(60, 2))
    heading = env.scene["robot"].data.heading_w.double()
    off = torch.tensor(
        [math.remainder(a, 2 * math.pi) for a in term.heading.double() - heading]
    )
    expected = torch.where(follows, (2.0 * off).clamp(-0.5, 0.5), drawn)
    torch.testing.assert_close(term.command[:, 2], expected.float(), atol=1e-4, rtol=0)
    assert bool((term.command[follows, 2].abs() < 0.5).any())


def test_points_and_what_is_missing_to_them(make_env, engine):
    cfg = PointCommandCfg(
        site_name="foot", x=(0, 1), y=(-1, 0), z=(2, 3), resampling_time_s=FOREVER
    )
    env = make_env(20, engine=engine, commands={"point": cfg})
    term = env.commands["point"]
    for column, (low, high) in zip(
        term.command.T, ((0, 1), (-1, 0), (2, 3)), strict=True
    ):
        assert bool(((column >= low) & (column < high)).all())
    foot = env.sim.data.site_xpos[:, 0]
    torch.testing.assert_close(term.offset + foot, term.command.to(foot.dtype))
    distance = np.linalg.norm(term.command.double() - foot.double(), axis=1)
    np.testing.assert_allclose(term.error().double(), distance, rtol=1e-5)


def test_attitudes_and_the_turn_that_is_left(make_env, engine):
    cfg = AttitudeCommandCfg(max_angle=1.0, resampling_time_s=FOREVER)
    env = make_env(30, engine=engine, commands={"attitude": cfg})
    term = env.commands["attitude"]
    asked = Rotation.from_quat(term.command.double(), scalar_first=True)
    assert float(asked.magnitude().max()) <= 1.0 + 1e-6
    assert float(asked.magnitude().max()) > 0.7
    rng = np.random.default_rng(0)
    now = Rotation.random(30, random_state=rng)
    pose = np.concatenate([np.zeros((30, 3)), now.as_quat(scalar_first=True)], axis=1)
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    expected = (now.inv() * asked).as_rotvec()
    np.testing.assert_allclose(term.offset.double(), expected, atol=2e-6)
    angle = (now.inv() * asked).magnitude()
    np.testing.assert_allclose(term.error().double(), angle, atol=2e-6)


def test_attitudes_about_a_given_axis(make_env):
    cfg = AttitudeCommandCfg(axis=(0, 0, 2), resampling_time_s=FOREVER)
    term = make_env(20, commands={"attitude": cfg}).commands["attitude"]
    assert float(term.command[:, 1:3].abs().max()) == 0.0
    assert float(term.command[:, 3].abs().max()) > 0.5


def test_headings_and_the_turn_that_is_left(make_env):
    cfg = HeadingCommandCfg(heading=(2.0, 3.0), resampling_time_s=FOREVER)
    env = make_env(5, commands={"heading": cfg})
    term = env.commands["heading"]
    assert bool(((term.command >= 2.0) & (term.command < 3.0)).all())
    half = -3.0 / 2
    pose = [[0, 0, 1, math.cos(half), 0, 0, math.sin(half)]]  # heading −3 rad
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    short = term.command.double() + 3.0 - 2 * math.pi  # over the back, not the front
    torch.testing.assert_close(term.offset.double(), short, atol=1e-6, rtol=0)


def test_angles_are_wrapped_to_half_a_turn():
    angles = torch.linspace(-20, 20, 401, dtype=torch.float64)
    expected = [math.remainder(float(a), 2 * math.pi) for a in angles]
    torch.testing.assert_close(wrapped(angles).cos(), angles.cos())
    np.testing.assert_allclose(wrapped(angles).sin(), np.sin(expected), atol=1e-12)
    assert float(wrapped(angles).abs().max()) <= math.pi


def test_the_mean_error_of_an_episode_is_logged(make_env):
    cfg = VelocityCommandCfg(resampling_time_s=FOREVER, lin_vel_x=(0.5, 1.0))
    errors = []

    def watched(env):
        """A reward, which is computed at the state that commands are measured at."""
        velocity = env.scene["robot"].data.root_link_lin_vel_b[:, :2]
        command = env.commands["velocity"].command[:, :2].double()
        errors.append((command - velocity).norm(dim=1))
        return env.sim.time

    env = make_env(
        3,
        commands={"velocity": cfg},
        rewards={"watched": RewardTermCfg(watched, weight=1.0)},
        episode_length_s=0.1,
    )
    for _ in range(5):
        log = env.step(torch.zeros(3, 2))[4]["log"]
    expected = float(torch.stack(errors).mean())
    assert log["Metrics/velocity/error"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("span", [(0.0, 1.0), (2.0, 1.0), (-1.0, 1.0)])
def test_bad_resampling_times_are_refused(make_env, span):
    cfg = VelocityCommandCfg(resampling_time_s=span, lin_vel_x=(0, 1))
    with raises(InvalidInputError, name="resampling_time_s"):
        make_env(commands={"velocity": cfg})


def test_unknown_names_are_refused(make_env):
    cfg = PointCommandCfg(
        site_name="fot", x=(0, 1), y=(0, 1), z=(0, 1), resampling_time_s=FOREVER
    )
    with raises(UnknownNameError, name="fot"):
        make_env(commands={"point": cfg})
    with raises(UnknownNameError, name="veloc"):
        make_env().commands["veloc"]


def test_a_command_is_redrawn_when_its_time_is_up(make_env):
    """At a step of 0.02 s, a time of 0.05 s is up at every third step."""
    cfg = HeadingCommandCfg(heading=(-3.0, 3.0), resampling_time_s=(0.05, 0.05))
    env = make_env(2, commands={"heading": cfg})
    still, term = torch.zeros(2, env.action_dim), env.commands["heading"]
    changes = []
    for step in range(1, 10):
        before = term.command.clone()
        env.step(still)
        if not torch.equal(before, term.command):
            changes.append(step)
    assert changes == [3, 6, 9]
