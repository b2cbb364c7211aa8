"""Columns of a passport by an environment in which no two terms are alike."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from simstate import EntityCfg, SceneCfg
from simstate.base.errors import InvalidInputError
from simstate.env import (
    BodyWrenchActionCfg,
    ControlActionCfg,
    Env,
    EnvCfg,
    GaussianNoise,
    JointEffortActionCfg,
    JointPdActionCfg,
    JointPositionActionCfg,
    JointVelocityActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RelativeJointPositionActionCfg,
    SceneEntityCfg,
    SensorNoise,
    UniformNoise,
    VelocityCommandCfg,
    observations,
)
from simstate.train.onnx_export import describe_actions
from simstate.train.passport_columns import (
    TermSource,
    action_columns,
    check_fit,
    check_rate,
    observation_columns,
    terms_of,
)
from simstate.train.policy_passport import Passport

MODEL = """
<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint/>
  <geom size="0.1" mass="3"/>
  <body name="arm" pos="0.2 0 0"><joint name="turn" axis="0 0.6 0.8" ref="0"/>
    <geom size="0.05" mass="1"/>
    <body name="rod" pos="0.2 0 0"><joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.05" mass="1"/>
      <body name="tip" pos="0.1 0 0"><joint name="spin" axis="0 0 1"/>
        <geom size="0.05" mass="1"/></body></body></body></body></worldbody>
<actuator>
  <position name="turn" joint="turn" kp="5"/>
  <velocity name="slide" joint="slide" kv="3"/>
  <motor name="spin" joint="spin" gear="2" ctrlrange="-3 5" ctrllimited="true"/>
  <motor name="free" joint="spin" gear="3"/>
</actuator></mujoco>
"""
TURN = SceneEntityCfg("robot", joint_names="turn")


def doubled(env: Env) -> torch.Tensor:
    """Twice the joint positions, which is no signal plus an offset."""
    return 2.0 * env.scene["robot"].data.joint_pos


def make_env(**actions) -> Env:
    term = ObservationTermCfg
    terms = {
        "pos": term(observations.joint_pos_rel, scale=(0.5, 2.0, 3.0),
                    clip=(-1.5, 2.5), noise=UniformNoise(-0.1, 0.3), delay=(1, 3)),
        "vel": term(observations.joint_vel_rel, params={"asset_cfg": TURN}, scale=0.1,
                    noise=GaussianNoise(std=0.2), history=3),
        "rates": term(observations.base_ang_vel, delay=2, noise=SensorNoise(
            density=0.02, bias_std=0.3, resolution=0.6)),
        "speed": term(observations.base_lin_vel),
        "down": term(observations.projected_gravity),
        "twice": term(doubled),
        "action": term(observations.last_action, scale=0.7),
        "go": term(observations.generated_commands,
                   params={"command_name": "velocity"}),
        "clock": term(observations.phase, params={"period_s": 0.8}),
    }  # fmt: skip
    command = VelocityCommandCfg(
        asset_name="robot", resampling_time_s=(1.0, 2.0), lin_vel_x=(-1.0, 1.0),
        lin_vel_y=(-0.5, 0.5), ang_vel_z=(-1.0, 1.0),
    )  # fmt: skip
    default = actions or {
        "aim": JointPositionActionCfg(joint_names="turn", scale=0.4, offset=0.2,
                                      clip=(-0.7, 0.9)),
        "go": JointVelocityActionCfg(joint_names="slide", scale=1.5, offset=0.3),
        "spin": ControlActionCfg(control_names="spin", scale=0.5),
        "free": ControlActionCfg(control_names="free", scale=4.0),
        "push": BodyWrenchActionCfg(body_name="trunk", force_scale=(0.0, 3.0, 0.0),
                                    torque_scale=(0.0, 0.0, -2.0), limit=1.5),
    }  # fmt: skip
    cfg = EnvCfg(
        scene=SceneCfg(
            entities={"robot": EntityCfg(model=MODEL)}, ground=None, timestep=0.004
        ),
        decimation=5, episode_length_s=3.0, actions=default, rewards={},
        observations={"policy": ObservationGroupCfg(terms)}, terminations={},
        commands={"velocity": command},
    )  # fmt: skip
    return Env(cfg, 2, seed=3)


@pytest.fixture(scope="module")
def env() -> Env:
    made = make_env()
    made.scene["robot"].data.default_joint_pos[:] = torch.tensor([0.25, 0.1, -0.4])
    made.reset()
    return made


@pytest.fixture(scope="module")
def seen(env):
    return {one.name: one for one in observation_columns(env, "policy")}


def test_columns_are_in_the_order_of_the_observation(env, seen):
    assert list(seen) == env.observation_names["policy"]
    assert len(seen) == env.observations["policy"].shape[1]


def test_sources_and_components(seen):
    found = [(one.term, one.source, one.component) for one in seen.values()]
    joints = ["turn", "slide", "spin"]
    assert found[:3] == [("pos", "robot.joint_pos", name) for name in joints]
    assert found[3:6] == [("vel", "robot.joint_vel", "turn")] * 3
    rest = {(term, source) for term, source, _ in found[6:]}
    assert rest == {
        ("rates", "robot.root_link_ang_vel_b"), ("speed", "robot.root_link_lin_vel_b"),
        ("down", "robot.projected_gravity_b"), ("twice", "twice"), ("action", "action"),
        ("go", "command.velocity"), ("clock", "clock"),
    }  # fmt: skip


def test_scales_offsets_clips_delays_and_ages(seen):
    one = list(seen.values())
    assert [c.scale for c in one[:3]] == [0.5, 2.0, 3.0]
    assert [c.offset for c in one[:3]] == pytest.approx([0.25, 0.1, -0.4])
    assert {(c.clip, c.delay) for c in one[:3]} == {((-1.5, 2.5), (1, 3))}
    assert [c.age for c in one[3:6]] == [2, 1, 0]
    assert {(c.scale, c.offset, c.clip) for c in one[3:6]} == {(0.1, 0.0, None)}
    assert {(c.delay, c.age) for c in one[6:9]} == {((2, 2), 0)}
    twice = [c for c in one if c.term == "twice"]
    assert {(c.scale, c.offset) for c in twice} == {(1.0, 0.0)}
    assert {c.period_s for c in one if c.term == "clock"} == {0.8}
    assert {c.period_s for c in one if c.term != "clock"} == {None}


def test_deviations_of_noise(seen, env):
    by_term = {c.term: c.noise_std for c in seen.values()}
    assert by_term["pos"] == pytest.approx(0.4 / math.sqrt(12))
    assert by_term["vel"] == 0.2
    white, steps = 0.02 / math.sqrt(env.step_dt), 0.6 / math.sqrt(12)
    wanted = math.sqrt(white**2 + 0.3**2 + steps**2)
    assert by_term["rates"] == pytest.approx(wanted)
    assert by_term["speed"] == 0.0


def test_units_and_signs(seen, env):
    one = list(seen.values())
    model = env.sim.model
    for k, (joint, word) in enumerate(
        (("turn", "about"), ("slide", "along"), ("spin", "about"))
    ):
        axis = ", ".join(f"{x:.6g}" for x in model.joint(f"robot/{joint}").axis)
        body = ("arm", "rod", "tip")[k]
        assert one[k].sign == f"{word} ({axis}) of {body}"
    assert [c.unit for c in one[:3]] == ["rad", "m", "rad"]
    signs = {c.term: c.sign for c in one}
    assert signs["rates"] == "right-handed"
    assert signs["speed"] == "along"
    assert signs["clock"] not in ("along", "right-handed")
    assert {c.unit for c in one if c.term == "action"} == {"1"}
    assert {c.unit for c in one if c.term == "speed"} == {"m/s"}


def test_actions_have_targets_ranges_and_rests(env):
    found = list(action_columns(env))
    assert [c.name for c in found] == env.action_names
    assert all(c.is_action for c in found)
    aim, go, spin, free, *push = found
    assert (aim.source, aim.component) == ("robot.joint_pos_target", "turn")
    assert aim.scale == pytest.approx(0.4)
    assert aim.clip == (-0.7, 0.9)
    assert aim.offset == pytest.approx(0.25 + 0.2)
    assert (go.source, go.scale) == ("robot.joint_vel_target", 1.5)
    assert go.offset == pytest.approx(0.3)
    assert go.clip is None
    assert (spin.source, spin.clip) == ("spin", (-3.0, 5.0))
    assert spin.offset == pytest.approx(1.0)
    assert (free.source, free.offset, free.clip) == ("free", 0.0, None)
    assert [(c.offset, c.clip) for c in push] == [
        (0.0, (-4.5, 4.5)),
        (0.0, (-3.0, 3.0)),
    ]
    assert [c.unit for c in push] == ["N", "N·m"]


def test_other_kinds_of_actions():
    made = make_env(
        step=RelativeJointPositionActionCfg(joint_names="turn", scale=0.2,
                                            clip=(-0.1, 0.3)),
        servo=JointPdActionCfg(joint_names="spin", stiffness=4.0, scale=0.6,
                               offset=0.5),
    )  # fmt: skip
    step, servo = action_columns(made)
    assert (step.source, step.offset, step.clip) == ("step", 0.0, (-0.1, 0.3))
    assert servo.source == "robot.joint_pos_target"
    default = float(made.scene["robot"].data.default_joint_pos[0, 2])
    assert servo.offset == pytest.approx(default + 0.5)
    effort = make_env(force=JointEffortActionCfg(joint_names="spin", scale=2.0))
    (column,) = action_columns(effort)
    assert column.source == "robot.joint_effort_target"


def test_the_metadata_of_an_action_say_how_it_is_applied(env):
    found = describe_actions(env)
    aim, go = found["aim"], found["go"]
    assert (aim["kind"], aim["joint_names"]) == ("joint position", ["turn"])
    assert aim["default_joint_pos"] == pytest.approx([0.25])
    assert aim["target_at_zero"] == pytest.approx([0.45])
    assert (aim["stiffness"], aim["damping"]) == ([5.0], [0.0])
    assert (go["stiffness"], go["damping"]) == ([0.0], [3.0])
    assert found["spin"] == {
        "kind": "controls", "names": ["spin"], "scale": 0.5, "range": [(-3.0, 5.0)],
    }  # fmt: skip
    assert found["push"]["body_name"] == "trunk"
    assert found["push"]["scale"] == pytest.approx([3.0, -2.0])
    servo = JointPdActionCfg(
        joint_names="spin", stiffness=4.0, damping=0.7, scale=0.6, offset=0.5
    )
    made = describe_actions(make_env(servo=servo))["servo"]
    assert made["kind"] == "JointPd"
    assert made["stiffness"] + made["damping"] == pytest.approx([4.0, 0.7])
    assert made["scale"] == pytest.approx([0.6])


def test_a_source_is_dropped_once_it_differs(env):
    (term,) = [t for t in terms_of(env, "policy") if t.name == "pos"]
    source = TermSource(term, env)
    assert source.name == "robot.joint_pos"
    source.compare()
    assert source.name == "robot.joint_pos"
    source.offset = source.offset + 1e-3
    source.compare()
    assert source.name == "pos"
    assert not source.offset.any()


# Whether a policy fits.


def passport_of(env: Env, **changes) -> Passport:
    given = {
        "task": "t", "seed": 0, "iterations": 1, "engine": "native",
        "step_dt": env.step_dt, "ranges_from": "training",
        "observations": tuple(observation_columns(env, "policy")),
        "actions": tuple(action_columns(env)), "pictures": {}, "joints": {},
        "versions": {}, "proof": {},
    }  # fmt: skip
    return Passport(**{**given, **changes})


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("source", "x"), ("unit", "deg"), ("axes", "world"), ("point", "com"),
        ("sign", "-"), ("scale", 7.0), ("offset", 7.0), ("clip", (0.0, 1.0)),
        ("clip", None),
    ],
)  # fmt: skip
def test_columns_that_mean_something_else_do_not_fit(env, part, value):
    plain = passport_of(env)
    check_fit(plain, env, "policy", "p.onnx")
    for kind in ("observations", "actions"):
        columns = list(getattr(plain, kind))
        same = getattr(columns[0], part) == value
        columns[0] = dataclasses.replace(columns[0], **{part: value})
        other = passport_of(env, **{kind: tuple(columns)})
        if same:
            check_fit(other, env, "policy", "p.onnx")
            continue
        with pytest.raises(InvalidInputError):
            check_fit(other, env, "policy", "p.onnx")


def test_rounding_and_columns_of_others_fit(env):
    columns = list(passport_of(env).observations)
    columns[0] = dataclasses.replace(columns[0], scale=columns[0].scale * (1 + 1e-6))
    columns[1] = dataclasses.replace(columns[1], name="other", scale=9.0)
    check_fit(passport_of(env, observations=tuple(columns)), env, "policy", "p")


def test_the_rate_must_be_the_same(env):
    check_rate(env.step_dt + 5e-10, env, "p")
    for off in (2e-9, -2e-9):
        with pytest.raises(InvalidInputError):
            check_rate(env.step_dt + off, env, "p")
