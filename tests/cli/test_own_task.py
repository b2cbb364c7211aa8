"""A user's own task goes the way of the shipped ones, and mistakes show its line."""

from __future__ import annotations

import json
import sys

import gymnasium
import pytest
import torch
from tests.cli.own_task import OWN_TASK
from tests.foreign_models import FOREIGN
from tests.inside import forget_tasks, slot_of
from tests.raised import raises

from simstate.cli import main
from simstate.env import Env, tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The user's folder, with his task in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "swing.py").write_text(OWN_TASK)
    return tmp_path


def weights(folder):
    algorithm = read_checkpoint(find_checkpoint(folder))["algorithm"]
    return [*algorithm["actor_state_dict"].values()]


def test_a_file_trains_stops_resumes_plays_and_is_exported(folder, capsys, monkeypatch):
    share = ["--env.rewards.steady.params.share", "0.4", "--no-export"]
    whole = ["train", "swing.py", "--run-dir", "whole", "--logger", "none"]
    assert main([*whole, *share]) == 0
    part = ["train", "swing.py", "--run-dir", "part", "--iterations", "2"]
    assert main([*part, *share]) == 0
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # the run knows where its task is
    assert main(["train", "--resume", "--run-dir", "../part", "--iterations", "4"]) == 0
    assert weights(folder / "part")[0].abs().max() > 0.0
    for mine, theirs in zip(
        weights(folder / "part"), weights(folder / "whole"), strict=True
    ):
        assert torch.equal(mine, theirs)
    capsys.readouterr()
    figures = []
    for policy in ("../part", "../part/policy.onnx"):
        assert main(["play", policy, "--seconds", "0.4", "--envs", "3", "--json"]) == 0
        figures.append(json.loads(capsys.readouterr().out))
    assert figures[1]["reward"] == pytest.approx(figures[0]["reward"], rel=1e-5)
    assert main(["tasks", "../swing.py", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["description"].startswith("Swing: a pole of one's own")
    assert told["train"]["num_envs"] == 12
    (folder / "swing.py").rename(elsewhere / "swing.py")
    moved = ["train", "swing.py", "--resume", "--run-dir", "../part"]
    assert main([*moved, "--iterations", "4", "--no-export"]) == 0


def test_the_reward_remembers_and_is_reset(folder):
    env = Env(tasks.make_cfg("swing.py"), num_envs=3)
    action = torch.tensor([[0.5], [1.0], [0.0]])
    env.step(action)
    mean = slot_of(env.sim, "env/reward/steady/mean")
    assert mean.tolist() == pytest.approx(
        [0.25 + 0.2 * (a - 0.25) for a in (0.5, 1, 0)]
    )
    env.reset(env_ids=[1])
    assert mean.tolist() == pytest.approx([0.3, 0.25, 0.2])


def test_one_file_holds_several_tasks(folder):
    task = tasks.find("swing.py:longer")
    assert task.label == "swing-longer"
    assert task.env_cfg().episode_length_s == 3.0
    assert task.train_cfg().num_envs == 6
    assert tasks.find(task.reference).env_cfg().episode_length_s == 3.0


def test_a_function_of_a_module_is_a_task(folder, monkeypatch):
    package = folder / "own_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "poles.py").write_text(OWN_TASK)
    monkeypatch.syspath_prepend(str(folder))
    assert tasks.find("own_package.poles:longer").env_cfg().episode_length_s == 3.0
    assert tasks.make_train_cfg("own_package:poles").num_envs == 12


def test_an_installed_package_offers_tasks_by_entry_point(folder, monkeypatch, capsys):
    (folder / "poles_of_others.py").write_text(OWN_TASK)
    facts = folder / "poles_of_others-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Name: poles_of_others\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[simstate.tasks]\nOthers-Pole = poles_of_others:longer\n"
        "Broken-Pole = poles_of_others:nothing\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    assert "Others-Pole" in tasks.names()
    assert tasks.make_cfg("Others-Pole").episode_length_s == 3.0
    assert main(["tasks", "Broken-Pole"]) == 1
    assert "poles_of_others:nothing" in " ".join(capsys.readouterr().err.split())


def test_a_registered_task_has_a_name_everywhere(folder, capsys, monkeypatch):
    forget_tasks(monkeypatch)
    import simstate.interop.gymnasium  # noqa: F401  (it listens for names)

    own = tasks.find("swing.py")
    tasks.register("Own-Swing", own.env_cfg, own.train_cfg, description="mine")
    assert tasks.describe("Own-Swing") == "mine"
    envs = gymnasium.make_vec("simstate/Own-Swing-v0", num_envs=3)
    seen, _ = envs.reset(seed=1)
    assert seen.shape == (3, 4)
    assert main(["tasks"]) == 0
    assert "Own-Swing" in capsys.readouterr().out
    with raises(ValueError, name="Own-Swing"):
        tasks.register("Own-Swing", own.env_cfg)
    with raises(ValueError, name="Arm-Reach"):
        tasks.register("Arm-Reach", own.env_cfg, replace=True)
    with raises(ValueError, name="own/swing"):
        tasks.register("own/swing", own.env_cfg)


MISTAKES = {
    "syntax": ("decimation=4,", "decimation=4 4,", "SyntaxError"),
    "name": (
        "upright, weight",
        "uprihgt, weight",
        "name 'uprihgt' is not defined. Did you mean 'upright'",
    ),
    "import": ("import torch\n", "import torhc\n", "No module named 'torhc'"),
    "import of": (
        "from simstate import EntityCfg",
        "from simstate import EntytyCfg",
        "Did you mean 'EntityCfg'",
    ),
    "term": (
        "observations.joint_vel_rel",
        "observations.joint_vle_rel",
        "no attribute 'joint_vle_rel'. Did you mean 'joint_vel_rel'",
    ),
    "argument": (
        "return TrainCfg(num_envs",
        "return TrainCfg(num_env",
        "keyword argument 'num_env'. Did you mean 'num_envs'",
    ),
    "weight": (
        "RewardTermCfg(upright, weight=1.0)",
        'RewardTermCfg(upright, weight="1")',
        "must be a finite number",
    ),
    "range": ("(-0.3, 0.3)}", "(0.3, -0.3)}", "(minimum, maximum)"),
    "mode": ('mode="reset"', 'mode="rest"', "Did you mean 'reset'"),
    "scales": (
        "ObservationTermCfg(observations.joint_vel_rel, scale=0.1)",
        "ObservationTermCfg(observations.joint_vel_rel, scale=(1.0, 2.0, 3.0))",
        "has 3 scales for 2 columns",
    ),
    "late": (
        'return env.scene["robot"].data.joint_pos[:, 1].cos()',
        "return [1.0][env.common_step_counter // 9 :][0] * env.action[:, 0]",
        "IndexError",
    ),
    "memory": (
        'env.memory("mean", (), reset=0.25)',
        "torch.zeros(env.num_envs)",
        "env.memory('mean', shape)",
    ),
    "model": ('model="cartpole"', 'model="cartpoel"', "There is no model 'cartpoel'"),
    "parameter": ('"share": 0.2', '"shaer": 0.2', "shaer"),
    "joint": (
        "ControlActionCfg()",
        'ControlActionCfg(control_names="sliedr")',
        "sliedr",
    ),
    "runs": ("joint_pos[:, 1].cos()", "joint_pos[:, 7].cos()", "IndexError"),
    "shape": ("joint_pos[:, 1].cos()", "joint_pos.cos()", "must return shape"),
    "not a number": (
        "joint_pos[:, 1].cos()",
        "joint_pos[:, 1].sub(9).sqrt()",
        "'upright' returned nan",
    ),
    "not called": ("def env_cfg():", "def env_cfg(size):", "needs size"),
    "nothing": ("return EnvCfg(", "EnvCfg(", "must give an EnvCfg"),
    "missing": ("def env_cfg():", "def env_cgf():", "Did you mean 'env_cgf'"),
}
MEANT = {
    "shape": "RewardTermCfg(upright",  # the function is right, the term says otherwise
    "not a number": "RewardTermCfg(upright",
    "range": '"start": EventTermCfg(',
    "mode": '"start": EventTermCfg(',
    "memory": "def __init__(self, cfg, env):",
    "nothing": "def env_cfg():",
}
"""Where mistakes are shown that are not to be seen in one line."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_with_its_line(folder, mistake, capsys):
    right, wrong, message = MISTAKES[mistake]
    assert OWN_TASK.count(right) == 1
    text = OWN_TASK.replace(right, wrong)
    (folder / "swing.py").write_text(text)
    assert main(["train", "swing.py", "--run-dir", "run"]) == 1
    err = capsys.readouterr().err
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    line = text[: text.index(MEANT.get(mistake, wrong))].count("\n") + 1
    if mistake != "missing":
        assert f"swing.py, line {line}: " in err
        assert text.splitlines()[line - 1].strip() in err
    assert not list(folder.rglob("model_*"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("tensor([1.0], dtpye=None)", "unexpected keyword argument 'dtpye'"),
        ("Odd().thing", "has no attribute 'thing'"),
        ("gone()", "cannot import name 'x'"),
    ],
)
def test_a_mistake_is_shown_where_no_name_can_be_guessed(
    folder, wrong, message, capsys
):
    (folder / "odd.py").write_text(f"""
from torch import tensor

class Odd:
    def __dir__(self):
        raise RuntimeError("no names")

def gone():
    raise ImportError("cannot import name 'x' from 'gone'", name="gone")

def env_cfg():
    return {wrong}
""")
    assert main(["tasks", "odd.py"]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("nowhere.py", "does not exist"),
        ("swing.py:nothing", "It has upright, env_cfg, train_cfg, longer"),
        ("own_pakage.tasks:ant", "no module 'own_pakage.tasks'"),
        ("Quadruped-Velocit", "Did you mean 'Quadruped-Velocity'"),
    ],
)
def test_a_task_that_is_not_there(folder, reference, message, capsys):
    assert main(["train", reference]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


NEW = (
    "gymnasium/ant", "gymnasium/half_cheetah", "gymnasium/reacher",
    "dm_control/suite/dog", "dm_control/suite/swimmer", "dm_control/suite/finger",
)  # fmt: skip


@pytest.mark.parametrize("name", [n for n in NEW if n in FOREIGN])
def test_a_new_task_runs_as_it_is(folder, name, capsys):
    model = FOREIGN[name]
    assert main(["new-task", "mine.py", str(model)]) == 0
    text = (folder / "mine.py").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("MODEL")]
    assert max(map(len, lines)) <= 88
    env = Env(tasks.make_cfg("mine.py"), num_envs=2, seed=3)
    before = env.sim.data.qpos.clone()
    assert not torch.equal(before[0], before[1])
    for _ in range(3):
        env.step(torch.full((2, env.action_dim), 0.3))
    assert env.sim.data.ctrl.abs().max() > 0.0
    assert main(["new-task", "mine.py", str(model)]) == 1
    assert "--force" in capsys.readouterr().err


MIXED = """<mujoco><worldbody><body pos="0 0 1"><joint name="hip" axis="0 1 0"/>
  <geom size=".05" pos=".2 0 0"/><body pos=".4 0 0"><joint name="knee" axis="0 1 0"/>
    <geom size=".04" pos="0 0 .1"/><body pos="0 0 .3"><joint name="toe"/>
      <geom size=".03" pos="0 .1 0"/></body></body></body></worldbody>
  <tendon><fixed name="string"><joint joint="hip" coef=".4"/></fixed></tendon>
  <actuator><position name="hip" joint="hip" kp="12"/>
    <motor name="knee.m" joint="knee" gear="3" ctrlrange="-2 5"/>
    <position name="pull" tendon="string" kp="7" ctrlrange="-.3 .2"/>
    <position name="toe" joint="toe" kp="3"/></actuator>
  <keyframe><key name="bent" qpos=".2 -.3 .1"/></keyframe></mujoco>"""


def test_a_new_task_acts_on_all_controls_of_a_model(folder):
    (folder / "mixed.xml").write_text(MIXED)
    assert main(["new-task", "mine.py", "mixed.xml"]) == 0
    assert max(map(len, (folder / "mine.py").read_text().splitlines())) <= 88
    env = Env(tasks.make_cfg("mine.py"), num_envs=2)
    assert env.action_names == [
        "joints/hip", "joints/toe", "controls/knee.m", "controls/pull",
    ]  # fmt: skip
    before = env.sim.data.ctrl.clone()
    env.step(torch.tensor([[0.3, -0.2, 0.5, 0.7], [-0.4, 0.6, -0.1, 0.2]]))
    assert (env.sim.data.ctrl != before).all()


def test_a_new_task_for_a_shipped_model_names_it(folder):
    assert main(["new-task", "walk.py", "quadruped"]) == 0
    text = (folder / "walk.py").read_text()
    assert 'MODEL = "quadruped"' in text
    assert max(map(len, text.splitlines())) <= 88
    assert tasks.make_cfg("walk.py").decimation >= 1
