"""The passport of an exported policy: what it states, and files that have none."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.cli import main
from simstate.env import Env, tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.onnx_policy import OnnxPolicy
from simstate.train.policy_passport import PassportPolicy, read_passport

TASK = "Cartpole-Balance"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run of two updates, resumed for a third."""
    folder = tmp_path_factory.mktemp("runs") / "short"
    options = ["--envs", "16", "--seed", "5", "--logger", "none"]
    first = ["train", TASK, "--run-dir", str(folder), "--iterations", "2", *options]
    assert main([*first, "--no-export"]) == 0
    again = ["train", "--run-dir", str(folder), "--resume", "--iterations", "3"]
    assert main(again) == 0
    return folder


@pytest.fixture
def path(run_dir):
    return run_dir / "policy.onnx"


def altered(path, to, change):
    """A copy of an ONNX file with a change."""
    model = onnx.load(path)
    change(model)
    onnx.save(model, to)
    return to


def test_a_resumed_run_states_its_own_updates(path):
    assert read_passport(path).iterations == 3
    (text,) = [x.value for x in onnx.load(path).metadata_props if x.key == "run"]
    assert json.loads(text)["train"]["iterations"] == 3


def test_columns_are_those_of_the_environment(path, run_dir):
    passport = read_passport(path)
    env = Env(tasks.make_cfg(TASK), num_envs=2)
    assert [c.name for c in passport.observations] == env.observation_names["policy"]
    assert [c.name for c in passport.actions] == env.action_names
    assert passport.seed == 5
    assert passport.step_dt == env.step_dt
    assert passport.joints == {"robot": env.scene["robot"].joint_names}
    assert {"mujoco", "torch", "simstate"} <= set(passport.versions)
    units = [(c.source, c.component, c.unit) for c in passport.observations]
    assert ("robot.joint_pos", "slider", "m") in units
    assert ("robot.joint_vel", "pole", "rad/s") in units
    signs = {c.component: c.sign for c in passport.observations}
    model = env.sim.model
    for name in passport.joints["robot"]:
        axis = ", ".join(f"{x:g}" for x in model.joint(f"robot/{name}").axis)
        assert axis in signs[name]


def test_ranges_are_those_of_training(path, run_dir):
    seen = read_checkpoint(find_checkpoint(run_dir))["seen"]
    passport = read_passport(path)
    assert passport.ranges_from == "training"
    for k, one in enumerate(passport.observations):
        low, high = (float(x) / one.scale + one.offset for x in seen["policy"][:, k])
        assert (one.low, one.high) == pytest.approx((low, high))
        assert one.low < one.mean < one.high
        assert 0.0 < one.std < one.high - one.low


def test_the_proof_is_reproduced_and_altered_weights_are_found(path, tmp_path):
    policy = PassportPolicy(path)
    assert len(policy.passport.proof["actions"]) == 64
    assert policy.proof_error() < 1e-5

    def change(model):
        weights = model.graph.initializer
        (first,) = [w for w in weights if len(w.dims) == 2][:1]
        values = numpy_helper.to_array(first) * np.float32(1.01)
        first.CopyFrom(numpy_helper.from_array(values, first.name))

    other = PassportPolicy(altered(path, tmp_path / "a.onnx", change))
    with raises(InvalidInputError, name="proof"):
        other.proof_error()


def test_the_command_prints_every_column(path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    assert main(["passport", str(path)]) == 0
    out = capsys.readouterr().out
    passport = read_passport(path)
    for one in (*passport.observations, *passport.actions):
        assert one.name in out
        assert one.sign in out
    assert "3 updates" in out
    assert "64 steps reproduced" in out
    assert main(["passport", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [c["name"] for c in facts["actions"]] == [c.name for c in passport.actions]
    assert main(["passport", str(path.parent), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == facts
    assert facts["proof"]["steps"] == 64


def without_passport(model):
    kept = [(p.key, p.value) for p in model.metadata_props if p.key != "passport"]
    onnx.helper.set_model_props(model, dict(kept))


def foreign(model):
    del model.metadata_props[:]


def damaged(model):
    onnx.helper.set_model_props(model, {"passport": '{"format": "simstate passport 1"'})


def of_others(model):
    facts = [json.loads(p.value) for p in model.metadata_props if p.key == "passport"]
    del facts[0]["observations"][0]
    onnx.helper.set_model_props(model, {"passport": json.dumps(facts[0])})


def facts_changed(change):
    """A change of a model that changes the facts of its passport."""

    def changed(model):
        texts = {p.key: p.value for p in model.metadata_props}
        facts = json.loads(texts["passport"])
        change(facts)
        texts["passport"] = json.dumps(facts)
        onnx.helper.set_model_props(model, texts)

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts["proof"].pop("actions"),
        lambda facts: facts["proof"]["obs"].update(shape=[32, 8]),
        lambda facts: facts["proof"]["obs"].update(dtype="int32"),
        lambda facts: facts["observations"][1].update(delay=None),
        lambda facts: facts["actions"][0].update(clip=[1.0]),
        lambda facts: facts.update(versions=None),
    ],
    ids=["no actions", "shape", "dtype", "delay", "clip", "versions"],
)
def test_an_altered_passport_is_an_error(path, tmp_path, change, capsys):
    other = altered(path, tmp_path / "other.onnx", facts_changed(change))
    assert main(["passport", str(other)]) == 1
    said = capsys.readouterr().err
    assert "is damaged" in said or "cannot be run" in said
    assert "--resume" in said


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (without_passport, "passport"),
        (foreign, "passport"),
        (damaged, "passport"),
        (of_others, "network"),
    ],
    ids=["without", "foreign", "damaged", "of_others"],
)
def test_a_file_without_a_passport_is_rejected(path, tmp_path, change, name, capsys):
    other = altered(path, tmp_path / "other.onnx", change)
    with raises(InvalidInputError, name=name):
        PassportPolicy(other)
    assert main(["passport", str(other)]) == 1
    assert "simstate" in capsys.readouterr().err


def test_a_file_that_is_cut_off_is_rejected(path, tmp_path):
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(path.read_bytes()[:3000])
    with raises(InvalidInputError, file="cut.onnx"):
        PassportPolicy(cut)


def changed_scale(cfg):
    cfg.actions["push"].scale *= 2.0


def changed_observation(cfg):
    cfg.observations["policy"].terms["joint_vel"].scale = 0.5


def changed_clip(cfg):
    cfg.observations["policy"].terms["joint_pos"].clip = (-1.0, 1.0)


def changed_rate(cfg):
    cfg.decimation *= 2


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (changed_scale, "action"),
        (
            changed_observation,
            "observation",
        ),
        (changed_clip, "observation"),
        (changed_rate, "step_dt"),
    ],
    ids=["scale", "observation", "clip", "rate"],
)
def test_an_environment_that_does_not_fit_is_rejected(path, change, name):
    cfg = tasks.make_cfg(TASK)
    OnnxPolicy(path, Env(cfg))
    change(cfg)
    with raises(InvalidInputError, name=name):
        OnnxPolicy(path, Env(cfg))


def test_play_rejects_settings_that_change_the_contract(path, capsys):
    play = ["play", str(path), "--envs", "1", "--seconds", "0.2"]
    assert main(play) == 0
    assert main([*play, "--env.actions.push.scale", "3.0"]) == 1
    assert "does not fit this environment" in capsys.readouterr().err
