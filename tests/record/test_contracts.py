"""What recordings and data sets say of observations, actions and rewards."""

from __future__ import annotations

import inspect
import json
import re
from functools import partial

import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, InvalidInputError, SceneCfg, ShapeError, Simulation
from simstate.base.contract import NO, PURE, UNDECLARED, Contract, spread
from simstate.cli import main
from simstate.data.datasets import write_foxglove, write_hdf5, write_lerobot
from simstate.entity import EntityData
from simstate.env import (
    BodyWrenchActionCfg,
    ControlActionCfg,
    Env,
    EnvCfg,
    JointEffortActionCfg,
    JointPdActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    PointCommandCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TaskSpaceActionCfg,
    TerminationTermCfg,
    contract,
    observations,
    tasks,
)
from simstate.env.actions import Action, ActionCfg
from simstate.env.contracts import quantity_contracts
from simstate.env.observations import joint_pos_rel
from simstate.env.settings import function_name
from simstate.record import Recording

CRANE = """
<mujoco model="crane">
  <worldbody>
    <body name="trolley" pos="0.1 0 2" quat="0.9 0.1 0.2 0.3">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <inertial pos="0.1 0 0.2" mass="2" diaginertia="0.2 0.3 0.1"/>
      <body name="load" pos="0 0 -0.7">
        <joint name="swing" axis="0 1 0.1"/>
        <inertial pos="0 0.1 -0.2" mass="1" diaginertia="0.02 0.03 0.01"/>
        <site name="hook" pos="0.1 0 -0.3"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="rail" gear="1.5" ctrllimited="true" ctrlrange="-3 5"/>
    <motor name="turn" joint="swing" gear="0.6"/>
  </actuator>
  <sensor>
    <jointpos name="along" joint="rail"/>
    <accelerometer name="felt" site="hook"/>
  </sensor>
</mujoco>
"""


@contract("K", axes=NO, point="hook")
def warmth(env, offset: float = 1.0):
    return env.sim.time[:, None] + offset


def unsaid(env):
    return torch.ones(env.num_envs, 2)


@contract("A", axes=NO, point="motors")
class Current:
    def __init__(self, cfg, env) -> None:
        self.seen = env.memory("seen", (3,))

    def reset(self, env_ids):
        pass

    def __call__(self, env):
        self.seen += 1.0
        return self.seen


class Attribute:
    contract = Contract("V", NO, NO)

    def __init__(self, cfg, env) -> None:
        pass

    def reset(self, env_ids):
        pass

    def __call__(self, env):
        return torch.ones(env.num_envs, 1)


class Method(Attribute):
    def contract(self, env, **params):
        return [Contract("m", "world", "hook"), Contract("s", NO, NO)]

    def __call__(self, env):
        return torch.ones(env.num_envs, 2)


def crane(terms, actions=None, **parts) -> EnvCfg:
    return EnvCfg(
        scene=SceneCfg(entities={"crane": EntityCfg(model=CRANE)}, ground=False),
        decimation=2,
        episode_length_s=0.05,
        actions=actions or {"push": JointEffortActionCfg(asset_name="crane")},
        observations={"policy": ObservationGroupCfg(terms=terms)},
        rewards={"one": RewardTermCfg(lambda env: torch.ones(env.num_envs), weight=2)},
        terminations={"time": TerminationTermCfg("time_out", time_out=True)},
        **parts,
    )


CRANE_CFG = SceneEntityCfg("crane")
SWING_FIRST = SceneEntityCfg(
    "crane", joint_names=["swing", "rail"], preserve_order=True
)


def own_terms():
    def term(func, **given):
        return ObservationTermCfg(func, **given)

    return {
        "pos": term("joint_pos_rel", params={"asset_cfg": SWING_FIRST}, scale=0.5),
        "vel": term("joint_vel_rel", params={"asset_cfg": CRANE_CFG}, scale=(0.1, 1.0)),
        "hook": term("site_pos", params={"asset_cfg": CRANE_CFG}),
        "sensors": term("sensors", params={"asset_cfg": CRANE_CFG}),
        "last": term("last_action"),
        "warmth": term(warmth, params={"offset": 2.0}, history=2),
        "unsaid": term(unsaid, scale=3.0),
        "current": term(Current),
        "attribute": term(Attribute),
        "method": term(Method),
        "lambda": term(contract("rad")(lambda env: torch.ones(env.num_envs, 1))),
    }


OWN = [
    ("2 rad", NO, NO), ("2 m", NO, NO), ("10 m/s", NO, NO), ("rad/s", NO, NO),
    *3 * [("m", "world", "site")], ("m", NO, "joint crane/rail"),
    *3 * [("m/s²", "its own", "site crane/hook")],
    ("N", NO, NO), ("N·m", NO, NO), *2 * [("K", NO, "hook")],
    *2 * [(UNDECLARED, UNDECLARED, UNDECLARED)], *3 * [("A", NO, "motors")],
    ("V", NO, NO), ("m", "world", "hook"), ("s", NO, NO),
    ("rad", UNDECLARED, UNDECLARED),
]  # fmt: skip


def record(env: Env, path, steps: int = 20) -> None:
    with env.record(path, quantities=["crane.joint_pos"]):
        for _ in range(steps):
            env.step(torch.zeros(env.num_envs, env.action_dim))


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "crane.simrec"
    record(Env(crane(own_terms()), 2), path)
    return path


def test_an_observation_says_what_each_of_its_numbers_is(recorded):
    with Recording(recorded) as recording:
        found = recording.component_contracts("observation/policy")
        whole = recording.contract("observation/policy")
    assert [tuple(one)[:3] for one in found] == OWN
    assert whole["units"] == [unit for unit, _, _ in OWN]
    assert whole["unit"].startswith(
        "2 rad, 2 m, 10 m/s, rad/s, m, m/s², N, N·m, K, not"
    )


def test_a_reward_is_a_pure_number_and_ends_are(recorded):
    with Recording(recorded) as recording:
        for name in ("reward", "terminated", "truncated", "ended"):
            told = recording.contract(name)
            assert (told["unit"], told["axes"], told["point"]) == PURE[:3], name


def test_info_and_plot_say_it(recorded, tmp_path, capsys):
    assert main(["info", str(recorded), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["columns"]["observation/policy"]
    assert told["points"][11:15] == [NO, NO, "hook", "hook"]
    out = tmp_path / "seen.svg"
    assert main(["plot", str(recorded), "action", "--out", str(out)]) == 0
    with Recording(recorded) as recording:
        assert recording.labels("action") == ["push/rail [N]", "push/swing [N·m]"]


def test_data_sets_say_it(recorded, tmp_path):
    h5py = pytest.importorskip("h5py")
    write_lerobot(recorded, tmp_path / "set")
    features = json.loads((tmp_path / "set/meta/info.json").read_text())["features"]
    state = features["observation.state"]
    rows = zip(state["units"], state["each_axes"], state["points"], strict=True)
    assert list(rows) == OWN
    assert features["action"]["units"] == ["N", "N·m"]
    assert (features["action"]["axes"], features["next.reward"]["unit"]) == (NO, "1")
    assert "each_axes" not in features["action"]
    write_hdf5(recorded, tmp_path / "set.hdf5")
    with h5py.File(tmp_path / "set.hdf5") as file:
        told = file["data/demo_0/obs/policy"].attrs
        lists = [json.loads(told[key]) for key in ("units", "each_axes", "points")]
        assert list(zip(*lists, strict=True)) == OWN
        assert file["data/demo_0/time"].attrs["unit"] == "s"
        assert file["data/demo_0/dones"].attrs["unit"] == "1"


def test_schemas_of_a_log_say_it(recorded, tmp_path):
    reader = pytest.importorskip("mcap.reader")
    write_foxglove(recorded, tmp_path / "log.mcap")
    with open(tmp_path / "log.mcap", "rb") as file:
        summary = reader.make_reader(file).get_summary()
    (schema,) = [
        json.loads(schema.data)
        for schema in summary.schemas.values()
        if schema.name == "simstate.observation/policy"
    ]
    told = [one for key, one in schema["properties"].items() if key != "timestamp"]
    assert [(one["unit"], one["axes"], one["point"]) for one in told] == OWN
    assert told[-1]["description"] == "[rad]"


def test_the_viewer_names_the_units():
    env = Env(crane(own_terms()), 2)
    with env.view(port=0, playing=False) as viewer:
        names = viewer.session.course.sources()["observations policy"].names
    assert names[:2] == ("pos/swing [2 rad]", "pos/rail [2 m]")
    assert names[15] == "unsaid/0 [not declared]"


ACTIONS = {
    "effort": (
        JointEffortActionCfg(asset_name="crane", scale={"rail": 4.0}),
        [("4 N", NO, NO), ("N·m", NO, NO)],
    ),
    "servo": (
        JointPdActionCfg(asset_name="crane", stiffness=3.0, scale=0.25),
        [("0.25 m", NO, NO), ("0.25 rad", NO, NO)],
    ),
    "control": (
        ControlActionCfg(asset_name="crane", scale=0.5),
        [("2 N", "joint axis", NO), ("0.5 N·m", "joint axis", NO)],
    ),
    "wrench": (
        BodyWrenchActionCfg(
            asset_name="crane",
            body_name="load",
            force_scale=(0.0, 7.0, 0.0),
            torque_scale=(0.0, 0.0, 2.0),
        ),
        [("7 N", "body load", "centre of mass"), ("2 N·m", "body load", "any")],
    ),
}


@pytest.mark.parametrize("kind", ACTIONS)
def test_an_action_says_what_it_asks_for(kind):
    cfg, want = ACTIONS[kind]
    env = Env(crane({"last": ObservationTermCfg("last_action")}, {"act": cfg}), 1)
    found = [(one.unit_text, one.axes, one.point) for one in env.actions.contracts]
    assert found == want
    assert env.observation_contracts["policy"] == env.actions.contracts


def test_an_arm_that_moves_a_site_says_in_which_axes():
    cfg = tasks.make_cfg("Arm-Reach")
    site = next(iter(cfg.commands.values())).site_name
    cfg.actions = {"arm": TaskSpaceActionCfg(site_name=site, rotation_scale=0.1)}
    env = Env(cfg, 1)
    way, turn = env.actions.contracts[0], env.actions.contracts[-1]
    assert (way.unit_text, way.axes, way.point) == (
        "0.05 m", "root link", f"site {site}",
    )  # fmt: skip
    assert turn.unit_text == "0.1 rad"


def test_own_actions_that_say_nothing_are_not_declared():
    class Mine(Action):
        names = ("a", "b")

        def apply(self, action) -> None:
            pass

    class MineCfg(ActionCfg):
        def make(self, name, env):
            return Mine()

    terms = {"unsaid": ObservationTermCfg(unsaid)}
    env = Env(crane(terms, {"mine": MineCfg(asset_name="crane")}), 1)
    assert env.actions.contracts == 2 * [Contract()]


def test_commands_say_what_they_ask_for():
    point = PointCommandCfg(
        asset_name="crane", site_name="hook", resampling_time_s=(1.0, 1.0),
        x=(0.0, 1.0), y=(0.0, 1.0), z=(0.0, 1.0),
    )  # fmt: skip
    asked = {"command_name": "point"}
    terms = {
        "asked": ObservationTermCfg("generated_commands", params=asked, scale=2.0),
        "missing": ObservationTermCfg("command_offset", params=asked),
    }
    env = Env(crane(terms, commands={"point": point}), 1)
    found = [one.unit_text for one in env.observation_contracts["policy"]]
    assert found == [*3 * ["0.5 m"], *3 * ["m"]]
    assert {one[1:3] for one in env.observation_contracts["policy"]} == {
        ("world", "site")
    }


def test_contracts_that_do_not_fit_are_refused():
    two = contract([Contract("m"), Contract("s")])
    with raises(ShapeError, name="contract"):
        Env(crane({"t": ObservationTermCfg(two(lambda env: torch.ones(1, 3)))}), 1)
    wrong = contract(lambda env: "m")
    with raises(InvalidInputError, name="contract"):
        Env(crane({"t": ObservationTermCfg(wrong(lambda env: torch.ones(1, 3)))}), 1)


def test_every_task_that_ships_declares_all_of_its_columns():
    for name in tasks.NAMES:
        env = Env(tasks.make_cfg(name), 1)
        for group, each in env.observation_contracts.items():
            bare = [
                column
                for column, one in zip(env.observation_names[group], each, strict=True)
                if UNDECLARED in one
            ]
            assert not bare, (name, group, bare)
        assert not any(UNDECLARED in one for one in env.actions.contracts), name


SHIPPED = [
    (name, function)
    for name, function in vars(observations).items()
    if inspect.isfunction(function)
    and function.__module__ == observations.__name__
    and not name.startswith("_")
]


@pytest.mark.parametrize(("name", "term"), SHIPPED, ids=[name for name, _ in SHIPPED])
def test_docstring_and_contract_of_a_term_agree(name, term):
    told = term.contract.value
    units = re.findall(r"\[([^\]]+)\]", term.__doc__)
    if isinstance(told, list):
        assert units == [", ".join(dict.fromkeys(one.unit for one in told))]
    elif not callable(told):
        allowed = ["N"] if name == "contacts" else []  # that of its threshold
        assert [u for u in units if u not in allowed] == [told.unit] * (
            told.unit != "1"
        )


def test_scales_multiply_and_the_default_is_none():
    assert Contract("rad").scaled(0.5).scaled(0.5).unit_text == "0.25 rad"
    assert PURE.scaled(4.0).unit_text == "4"
    assert Contract("m, 1").scaled(2.0).unit_text == "2 (m, 1)"
    assert Contract().scaled(2.0).unit_text == UNDECLARED
    assert spread([], 2) == 2 * [Contract()]
    assert spread([PURE, Contract("m")], 3) is None
    assert EntityData.joint_pos.unit == "rad or m"


def test_quantities_with_several_numbers_for_each_joint_follow_the_chosen_joints():
    robot = Simulation(SceneCfg(entities={"robot": EntityCfg(model="cartpole")})).scene[
        "robot"
    ]
    kinds = {"slider": "m", "pole": "rad"}
    assert set(robot.joint_names) == set(kinds)
    for joints in (["pole", "slider"], ["slider", "pole"], ["pole"]):
        limits = quantity_contracts(robot, EntityData.joint_pos_limits, joints)
        units = [one.unit for one in limits]
        assert units == [kinds[joint] for joint in joints for _ in range(2)]


def test_a_partial_is_named_by_its_function():
    """Not by its address, which differs from process to process."""
    assert function_name(partial(partial(joint_pos_rel), scale=2.0)) == function_name(
        joint_pos_rel
    )
