"""Batches that do not fit, files of another kind, seeds: one clear sentence each."""

from __future__ import annotations

import subprocess
import sys

import mujoco
import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    InvalidInputError,
    ModelError,
    SceneCfg,
    Simulation,
)
from simstate.cli import main
from simstate.engine import memory_budget

CUBE = SceneCfg(entities={"cube": EntityCfg(model="cube")})


def test_a_hundred_million_worlds_are_refused_before_any_is_made(engine):
    before = memory_budget.free_memory(torch.device("cpu"))
    with pytest.raises(InvalidInputError) as caught:
        Simulation(CUBE, 10**11, engine=engine)
    assert "num_envs=100000000000 worlds" in str(caught.value)
    assert "TB" in str(caught.value)
    assert "use at most" in str(caught.value)
    after = memory_budget.free_memory(torch.device("cpu"))
    assert before is not None
    assert after is not None
    assert abs(after - before) < 2e9


def test_a_batch_that_does_not_fit_is_refused(engine, monkeypatch):
    monkeypatch.setattr(memory_budget, "free_memory", lambda device: 1_000_000)
    with raises(InvalidInputError, name="num_envs"):
        Simulation(CUBE, 4000, engine=engine)
    Simulation(CUBE, 7, engine=engine)


@pytest.mark.parametrize("name", ["cube", "quadruped"])
def test_the_estimate_is_near_what_a_world_takes(name):
    """Of the memory that the process gets from the system, within a factor of two."""
    script = f"""
import mujoco
from simstate import EntityCfg, SceneCfg, Simulation
from simstate.engine.memory_budget import native_bytes
def used():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
scene = SceneCfg(entities={{"it": EntityCfg(model={name!r})}}, timestep=0.002)
few = Simulation(scene, 2)
few.step()
before = used()
many = Simulation(scene, 20_000)
many.step()
print((used() - before) / 20_000 / native_bytes(many.model))
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert 0.5 < float(run.stdout) < 2


@pytest.mark.parametrize(
    "text", ["<html></html>", '<sdf version="1.6"/>', "a text", "\x01\x02\x03", ""]
)
def test_a_file_of_another_kind_says_what_can_be_read(tmp_path, text):
    path = tmp_path / "it.xml"
    path.write_text(text)
    with raises(ModelError, file="it.xml"):
        Simulation(SceneCfg(entities={"it": EntityCfg(model=str(path))}), 2)


def test_a_model_that_is_mjcf_is_without_a_remark_on_mjcf(tmp_path):
    with pytest.raises(ModelError) as caught:
        Simulation(
            SceneCfg(entities={"it": EntityCfg(model="<mujoco><x/></mujoco>")}), 2
        )
    assert "<robot>" not in str(caught.value)


def test_an_empty_model_says_so():
    with pytest.warns(UserWarning, match="nothing to simulate"):
        Simulation(mujoco.MjModel.from_xml_string("<mujoco/>"), 2)


@pytest.mark.parametrize(
    "args",
    [
        ["run", "cube", "--seed", "-5"],
        ["train", "Cartpole-Balance", "--seed", "-5", "--iterations", "1"],
    ],
    ids=["run", "train"],
)
def test_a_negative_seed_has_one_answer(args, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(args) == 1
    said = capsys.readouterr()
    assert "seed must be an integer ≥ 0, got -5" in said.out + said.err
    assert list(tmp_path.iterdir()) == []


def test_too_many_worlds_on_the_command_line(capsys):
    assert main(["run", "cube", "--envs", "100000000000"]) == 1
    said = capsys.readouterr()
    assert "need about" in said.out + said.err
