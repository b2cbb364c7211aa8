"""Settings by path: all that a configuration says can be read, changed, left out."""

from __future__ import annotations

import dataclasses
import json

import pytest
from tests.cli.own_task import OWN_TASK
from tests.raised import raises

from simstate.base.errors import SimStateError
from simstate.env import tasks
from simstate.env.setting_changes import with_settings, without
from simstate.env.settings import described, settings_of

TASK = "Quadruped-Velocity"


@pytest.fixture
def cfg():
    return tasks.make_cfg(TASK)


def values(cfg):
    return {path: each.value for path, each in settings_of(cfg, "env").items()}


def test_every_number_of_a_shipped_task_has_a_path(cfg):
    found = values(cfg)
    assert found["env.rewards.track_lin_vel.weight"] == 2.0
    assert found["env.rewards.track_lin_vel.params.std"] == 0.25
    assert found["env.commands.velocity.lin_vel_x"] == (0.0, 1.0)
    assert found["env.events.push.interval_s"] == (6.0, 10.0)
    assert found["env.events.push.params.velocity_range.x"] == (-0.3, 0.3)
    assert found["env.observations.policy.terms.joint_pos.noise.high"] == 0.01
    assert found["env.scene.entities.robot.init_state.keyframe"] == "home"
    assert found["env.terminations.low.params.height"] == 0.15
    assert found["env.actions.joints.scale"] == 0.3
    train_cfg = tasks.make_train_cfg(TASK)
    train = settings_of(train_cfg, "train")
    names = {
        f"train.{field.name}"
        for field in dataclasses.fields(train_cfg)
        if getattr(train_cfg, field.name) != {}
    }
    assert {".".join(path.split(".")[:2]) for path in train} == names
    assert train["train.physics_options.solver"].value == "PGS"
    assert train["train.gamma"].hint is float


@pytest.mark.parametrize("name", tasks.NAMES)
def test_what_a_file_says_of_all_settings_changes_nothing(name):
    cfg = tasks.make_cfg(name)
    said = json.loads(json.dumps({p: described(v) for p, v in values(cfg).items()}))
    again = with_settings(cfg, "env", said)
    assert values(again) == values(cfg)
    assert again.rewards.keys() == cfg.rewards.keys()
    assert [t.func for t in again.rewards.values()] == [
        t.func for t in cfg.rewards.values()
    ]


CHANGES = {
    "env.rewards.gait.weight": (3, 3.0),
    "env.rewards.gait.params.offsets": ([0.5, 0.0, 0.0, 0.5], (0.5, 0.0, 0.0, 0.5)),
    "env.decimation": (3, 3),
    "env.events.push.interval_s": ([1, 2], (1.0, 2.0)),
    "env.events.push.params.velocity_range.y": ([-1.0, 1.0], (-1.0, 1.0)),
    "env.commands.velocity.standing_share": (0.5, 0.5),
    "env.scene.timestep": (0.002, 0.002),
    "env.scene.gravity": ([0.0, 0.0, -3.7], (0.0, 0.0, -3.7)),
    "env.observations.critic.noise": (True, True),
    "env.actions.joints.clip": ([-1.0, 1.0], (-1.0, 1.0)),
}


@pytest.mark.parametrize("path", CHANGES)
def test_one_setting_changes_and_no_other(cfg, path):
    given, expected = CHANGES[path]
    before = values(cfg)
    changed = values(with_settings(cfg, "env", {path: given}))
    assert changed[path] == expected != before[path]
    assert {p for p in before if changed[p] != before[p]} == {path}
    assert values(cfg) == before  # a copy was changed


def test_a_function_is_changed_by_name(cfg):
    path = "env.rewards.flat.func"
    named = with_settings(cfg, "env", {path: "simstate.env.rewards:lin_vel_z_l2"})
    assert named.rewards["flat"].func is cfg.rewards["lin_vel_z"].func
    with raises(SimStateError, name="simstate.env.rewards:nothing"):
        with_settings(cfg, "env", {path: "simstate.env.rewards:nothing"})


def test_the_functions_of_a_file_are_found_again(tmp_path):
    (tmp_path / "swing.py").write_text(OWN_TASK)
    cfg = tasks.make_cfg(tmp_path / "swing.py")
    path = "env.rewards.upright.func"
    assert values(cfg)[path] == "swing.py:upright"
    same = with_settings(cfg, "env", values(cfg))
    assert same.rewards["upright"].func is cfg.rewards["upright"].func
    other = with_settings(cfg, "env", {path: "swing.py:Steadiness"})
    assert other.rewards["upright"].func is cfg.rewards["steady"].func


def test_terms_are_left_out(cfg):
    less = without(
        cfg, "env", ["env.events.push", "env.observations.policy.terms.phase"]
    )
    assert "push" in cfg.events
    assert set(cfg.events) - set(less.events) == {"push"}
    assert "phase" not in less.observations["policy"].terms
    assert "phase" in less.observations["critic"].terms
    with raises(SimStateError, name="env.events.psh"):
        without(cfg, "env", ["env.events.psh"])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("env.reward.gait.weight", 1.0, "Did you mean 'env.rewards.gait.weight'"),
        ("env.rewards.gait.weight", "much", "must be float, got 'much'"),
        ("env.decimation", 1.5, "must be int, got 1.5"),
        ("env.decimation", True, "must be int, got True"),
        ("env.events.push.interval_s", [1.0], "interval_s must be"),
        ("env.events.push.mode", "always", "'startup' or 'reset' or 'interval'"),
    ],
)
def test_a_wrong_path_or_value_raises(cfg, path, value, message):
    with pytest.raises(SimStateError) as caught:
        with_settings(cfg, "env", {path: value})
    assert message in str(caught.value)
