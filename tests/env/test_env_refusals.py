"""Settings of terms at the ends of their ranges: each refusal has one fault."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.env.test_pose_and_gait import feet_scene, gait_cfg
from tests.raised import raises

from simstate import InvalidInputError, ShapeError
from simstate.env import (
    Env,
    JointPositionActionCfg,
    SensorNoise,
    events,
    observations,
    tasks,
)
from simstate.env.env_cfg import EventTermCfg, TermCfg
from simstate.env.motion_files import read_motion

pytestmark = pytest.mark.fast

NOT_NEGATIVE = ("density", "bias_std", "bias_walk", "scale_std", "resolution")


@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_parts_of_a_noise_are_not_negative(name):
    SensorNoise(**{name: 0.0})
    with raises(InvalidInputError, name=name):
        SensorNoise(**{name: -1e-9})


def test_limits_and_times_of_a_noise():
    SensorNoise(limits=(-0.1, 0.1), bias_time=math.inf)
    for limits in ((0.1, 0.1), (0.2, 0.1)):
        with raises(InvalidInputError, name="limits"):
            SensorNoise(limits=limits)
    with raises(InvalidInputError, name="bias_time"):
        SensorNoise(bias_time=0.0)


WRONG = {
    "delay": (-1, (2, 1), (1,), (1, 2, 3), (0, 1.0), (-1, 2)),
    "history": (0, -1, 1.0),
    "clip": ((1.0, -1.0), (0.0, math.nan)),
    "scale": ("2", (1.0, "2")),
    "noise": (0.1,),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_of_an_observation(make_env, observed, name):
    for wrong in WRONG[name]:
        given = observed(observations.joint_pos_rel, **{name: wrong})
        with raises(InvalidInputError, name=name):
            make_env(1, observations=given)


def test_options_of_an_observation_at_their_ends(make_env, observed):
    given = observed(
        observations.joint_pos_rel, delay=(1, 1), history=1, clip=(0.5, 0.5),
        scale=(2.0, -3.0),
    )  # fmt: skip
    env = make_env(2, observations=given)
    found = env.reset()[0]["policy"]
    np.testing.assert_allclose(found, [[1.0, -1.5]] * 2)
    wrong = observed(observations.joint_pos_rel, scale=(1.0, 2.0, 3.0))
    with pytest.raises(InvalidInputError):
        make_env(2, observations=wrong)


def test_a_clip_of_an_action_may_be_one_value(make_env):
    env = make_env(2, actions={"a": JointPositionActionCfg(clip=(0.3, 0.3))})
    env.step(torch.randn(2, 2))
    target = env.scene["robot"].data.joint_pos_target
    np.testing.assert_allclose(target, 0.3, atol=1e-7)


def event(mode: str, **options):
    return {"a": EventTermCfg(lambda env, ids: None, mode=mode, **options)}


def test_intervals_and_modes_of_events(make_env):
    make_env(1, events=event("interval", interval_s=(0.1, 0.1)))
    make_env(1, events=event("startup", shared=True))
    for wrong in ((0.2, 0.1), (-0.1, 0.1), (0.0, 0.0)):
        with raises(InvalidInputError, name="interval_s"):
            make_env(1, events=event("interval", interval_s=wrong))
    with raises(InvalidInputError, name="a"):
        make_env(1, events=event("reset", shared=True))


@pytest.mark.parametrize("name", ["duration_s", "pause_s"])
def test_times_of_impulses(make_env, name):
    def pushed(span):
        params = {"duration_s": (0.1, 0.2), "pause_s": (0.1, 0.2), name: span}
        term = EventTermCfg(events.Impulses, mode="step", params=params)
        return make_env(1, events={"push": term})

    pushed((0.1, 0.1))
    for wrong in ((0.2, 0.1), (0.0, 0.1), (-0.1, 0.1), 0.1, None):
        with raises(InvalidInputError, name=name):
            pushed(wrong)


def test_gaits_at_the_ends_of_their_ranges(make_env):
    def made(**changes):
        return make_env(1, scene=feet_scene(), commands={"gait": gait_cfg(**changes)})

    made(frequency=(0.0, 1.0), duty=(0.0, 1.0))
    for duty in ((-0.1, 0.5), (0.5, 1.01)):
        with raises(InvalidInputError, name="duty"):
            made(duty=duty)
    with raises(InvalidInputError, name="hop"):
        made(gaits={"hop": (0.0,)})


@pytest.mark.parametrize(
    ("infos", "name"),
    [
        ({"a": torch.ones(3)}, None), ({"a": torch.ones(3, 2)}, None),
        ({"a": torch.tensor(1.0)}, "a"), ({"a": torch.ones(2)}, "a"),
        ({"a": "text"}, "a"),
    ],
    ids=["each world", "rows", "one number", "fewer", "text"],
)  # fmt: skip
def test_an_info_has_a_row_for_each_world(infos, name):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.info = TermCfg(lambda env: infos)
    env = Env(cfg, 3)
    still = torch.zeros(3, 1)
    if name is None:
        found = env.step(still)[4]["info"]["a"]
        np.testing.assert_array_equal(found, infos["a"])
    else:
        with raises(InvalidInputError, name=name):
            env.step(still)


def test_actions_are_dense_floating_point(make_env):
    env = make_env(2)
    before = env.sim.state.clone()
    for wrong in (torch.zeros(2, 2, dtype=torch.int64), torch.zeros(2, 2).to_sparse()):
        with raises(InvalidInputError, name="action"):
            env.step(wrong)
    assert torch.equal(env.sim.state, before)


FRAMES = 4
JOINTS = np.linspace(0, 1, FRAMES)[:, None] * [1.0, -2.0]
POS = np.arange(3.0 * FRAMES).reshape(FRAMES, 1, 3)
QUAT = np.array([[[0.8, 0.2, 0.4, 0.4]]] * FRAMES)
MOTION = {
    "fps": [30], "joint_pos": JOINTS, "joint_vel": JOINTS, "body_pos_w": POS,
    "body_quat_w": QUAT,
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"joint_pos": JOINTS[:, :1], "joint_vel": JOINTS[:, :1]},
        {"joint_pos": JOINTS[..., None], "joint_vel": JOINTS[..., None]},
        {"body_pos_w": POS[1:]}, {"body_quat_w": QUAT[1:]},
        {"body_pos_w": POS[:, :0], "body_quat_w": QUAT[:, :0]},
        {"body_pos_w": np.repeat(POS, 2, 1)},
        {name: np.asarray(x)[:0] for name, x in MOTION.items() if name != "fps"},
        {"body_pos_w": POS[..., :2]},
    ],
    ids=["joints", "axes", "positions", "attitudes", "no body", "two bodies",
         "no frame", "two axes"],
)  # fmt: skip
def test_arrays_of_a_motion_fit_each_other(tmp_path, changes):
    np.savez(tmp_path / "a.npz", **MOTION)
    assert read_motion(tmp_path / "a.npz", ("hip", "knee")).fps == 30
    np.savez(tmp_path / "a.npz", **(MOTION | changes))
    with pytest.raises(ShapeError):
        read_motion(tmp_path / "a.npz", ("hip", "knee"))


def test_numbers_of_a_motion(tmp_path):
    rows = np.hstack([POS[:, 0], QUAT[:, 0][:, [1, 2, 3, 0]], JOINTS])
    path = tmp_path / "a.csv"
    np.savetxt(path, rows, delimiter=",")
    for fps in (0.0, -1.0, math.nan, None):
        with raises(InvalidInputError, name="fps"):
            read_motion(path, ("hip", "knee"), fps=fps)
    np.savetxt(path, rows[:1], delimiter=",")
    one = read_motion(path, ("hip", "knee"), fps=50)
    assert not one.joint_vel.any()
    np.savetxt(path, np.where(rows == rows.max(), np.inf, rows), delimiter=",")
    with raises(InvalidInputError, name="lines"):
        read_motion(path, ("hip", "knee"), fps=50)
    for changes in ({"joint_pos": JOINTS.astype(complex)}, {"fps": ["30"]}):
        np.savez(tmp_path / "a.npz", **(MOTION | changes))
        with pytest.raises(InvalidInputError):
            read_motion(tmp_path / "a.npz", ("hip", "knee"))


def test_names_of_tasks():
    made = tasks.make_cfg("Cartpole-Balance")
    for name in ("", "-", "a b", "a/b", "a.b", "Cartpole-Balance"):
        with raises(InvalidInputError, name=name):
            tasks.register(name, made, replace=True)
