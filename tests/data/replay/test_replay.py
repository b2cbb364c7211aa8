"""Replays: the same bits, or the first difference by world, time and joint."""

from __future__ import annotations

import dataclasses
import math

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import AtStepEnd, attached, slot_of
from tests.raised import raises
from tests.record.conftest import drive, scene
from tests.simulators.looped import INFO, LoopedSimulator

from simstate import (
    CameraCfg,
    DivergenceError,
    InvalidInputError,
    NativeCfg,
    RecordingError,
    Simulation,
    UnknownNameError,
)
from simstate.cli import main
from simstate.data.replay import branch, made_by, replay
from simstate.env import (
    EnvCfg,
    EventTermCfg,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
    events,
    observations,
    tasks,
    terminations,
)
from simstate.env.env import Env
from simstate.integrate import RK4
from simstate.record import Recording, recorder
from simstate.simulators import register

register(INFO)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 5)


@pytest.fixture
def run(tmp_path):
    """A recording of steps of all kinds, and the simulation at its end."""
    path = tmp_path / "run.simrec"
    sim = Simulation(scene(), 4, seed=3, first_world=20)
    generator = torch.Generator().manual_seed(0)
    drive(sim, 5, generator)  # what was before is in the first snapshot
    with sim.record(path, fields=["qvel", "qpos"], snapshot_every=0.05):
        drive(sim, 20, generator)
        sim.expand("body_mass")[2] *= 1.3  # a slot that was not there
        drive(sim, 13, generator)
        sim.expand("body_mass")[:2] *= 0.9
        drive(sim, 5, generator)
    return path, sim


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_the_same_bits_on_any_number_of_threads(run, threads):
    path, _ = run
    found = replay(path, threads=threads)
    assert found.is_same, found
    assert (found.steps, found.samples) == (38, 39)
    assert found.snapshots > 3
    assert not found.left_out


def test_a_branch_goes_on_as_it_went(run):
    path, sim = run
    with Recording(path) as recording:
        steps = list(recording.steps())
        for step in (0, 11, 38):
            there = branch(recording, step=step)
            k = int((recording["step"] <= step).sum()) - 1
            torch.testing.assert_close(
                there.data.qpos, recording["qpos"][k], rtol=0, atol=0
            )
        assert torch.equal(there.state, sim.state)
        late = branch(recording, time=sum(0.004 * s.call["n"] for s in steps[:7]))
        assert torch.equal(late.data.qpos, recording["qpos"][7])
    with raises(InvalidInputError, name="step"):
        branch(path, step=39)
    with raises(InvalidInputError, name="time"):
        branch(path)
    for time in (-0.1, 100.0):
        with raises(InvalidInputError, name="time"):
            branch(path, time=time)


def test_a_changed_gain_is_found_and_named(run):
    path, _ = run
    found = replay(path, Simulation(scene(kp=3.1), 4, first_world=20))
    assert not found.is_same
    assert "actuator_gainprm of arm/shoulder[0] is 3.1, it was 3.0" in found.model
    first = found.first
    assert first is not None
    assert first.column == "qvel"
    assert "shoulder" in first.element
    assert first.step == 1
    assert first.recorded != first.replayed


def test_bits_are_compared_and_not_numbers_alone(tmp_path):
    sim = Simulation(scene(), 2)
    large = sim.memory("large", (2,), dtype=torch.int64)
    signed = sim.memory("signed", ())
    large[:] = 2**60
    values = {"large": lambda s: large, "signed": lambda s: signed}
    with sim.record(tmp_path / "a.simrec", quantities=values, snapshot_every=0.004):
        for _ in range(3):
            sim.step()
    recording = Recording(tmp_path / "a.simrec")
    again = Simulation(scene(), 2)
    other = again.memory("large", (2,), dtype=torch.int64)
    zero = again.memory("signed", ())

    for memory, value, element in ((other, 2**60 + 1, "large"), (zero, -0.0, "signed")):

        def change(memory=memory, value=value):
            memory[1] = value

        with attached(again, AtStepEnd(change)):
            found = replay(recording, again)
        assert found.first is not None
        assert (found.first.column, found.first.world) == (f"memory/{element}", 1)
    assert replay(recording, again).is_same


def test_a_change_in_one_world_is_named_by_world_and_time(run):
    path, _ = run
    with Recording(path) as recording:
        other = branch(recording, step=0)
        step = other.step
        taken = []

        def pushed(n=1, env_ids=None, until=None):
            taken.append(n)
            if len(taken) == 9:
                other.data.qvel[2, 1] += 1e-12
            step(n, env_ids)

        other.step = pushed
        found = replay(recording, other)
        first = found.first
        assert first is not None
        assert (first.world, first.step) == (2, 9)
        k = int((recording["step"] < 9).sum())
        assert first.time == float(recording.time[k, 2])
        assert found.largest["qvel"] > 0
        for tolerance in (1e-3, math.inf):
            assert replay(recording, other, tolerance=tolerance).first is None


def force(t, sim):
    sim.data.qfrc_applied[:, 0] = 0.3 * torch.sin(3 * sim.data.qpos[:, 1])


def with_forces(on_divergence="raise") -> Simulation:
    sim = Simulation(
        scene(), 3, integrator=RK4(attitude="lie"), on_divergence=on_divergence
    )
    sim.add_force(force)
    count = sim.memory("count", reset=None)

    def bounce(sim, env_ids):
        sim.data.qvel[env_ids, 0] *= -0.5
        count[env_ids] += 1

    sim.add_event(lambda sim: sim.data.qpos[:, 0] - 0.01, action=bounce, name="bounce")
    return sim


def test_forces_events_integrators_and_runs(tmp_path):
    sim, path = with_forces(), tmp_path / "run.simrec"
    with sim.record(path, quantities=["arm.joint_vel"]):
        drive(sim, 12, torch.Generator().manual_seed(4))
        sim.run(until=float(sim.time.max()) + 0.0333, env_ids=[2, 1])
        sim.step()
    assert float(slot_of(sim, "event/bounce/count").sum()) > 0
    found = replay(path, with_forces())
    assert found.is_same, found
    with raises(RecordingError, name="made_by"):
        replay(path)


@pytest.mark.parametrize("mode", ["mask", "raise"])
def test_divergences_come_again(tmp_path, mode):
    path = tmp_path / "run.simrec"
    sim = Simulation(scene(), 3, on_divergence=mode)
    with sim.record(path, fields=["qpos"]):
        sim.step()
        sim.data.qvel[1, 0] = 1e9
        if mode == "raise":
            with pytest.raises(DivergenceError):
                sim.step(2)
        else:
            sim.step(2)
            sim.step()
        sim.reset([1])
        sim.step()
    found = replay(path)
    assert found.is_same, found
    steps = list(Recording(path).steps())
    assert list(steps[1].call["diverged"]) == ["1"]
    assert "shoulder" in steps[1].call["diverged"]["1"]


def test_a_divergence_that_does_not_come_again_names_its_world(tmp_path):
    def made(push: float) -> Simulation:
        def force(t, sim):
            late = sim.time[[1, 2]] > 0.004
            sim.data.qfrc_applied[[1, 2], 0] += torch.tensor([0.1, push]) * late

        sim = Simulation(scene(), 3, on_divergence="mask")
        sim.add_force(force)
        return sim

    path, sim = tmp_path / "run.simrec", made(1e30)
    with sim.record(path, fields=["qpos"]):
        sim.step(3, env_ids=[0])
        for _ in range(4):
            sim.step()
    assert sim.diverged.tolist() == [False, False, True]
    found = replay(path, made(0.2)).first
    assert (found.world, found.column) == (2, "diverged")
    assert found.time == pytest.approx(0.012)  # of that world: 0 has moved three more
    assert "worlds [] diverged" in str(found)


@pytest.mark.parametrize("threads", [1, 3])
def test_divergences_and_restores_on_other_threads(tmp_path, threads):
    path = tmp_path / "run.simrec"
    sim = Simulation(scene(), 5, on_divergence="mask", engine=NativeCfg(num_threads=2))
    generator = torch.Generator().manual_seed(7)
    drive(sim, 4, generator)
    before = sim.snapshot()
    with sim.record(path, fields=["qpos", "qvel"], snapshot_every=0.03):
        drive(sim, 6, generator)
        sim.data.qvel[3, 1] = 1e9
        sim.step(2)
        drive(sim, 4, generator)
        sim.restore(before)  # also the world that diverged
        drive(sim, 5, generator)
        sim.data.qvel[[1, 3], 0] = -1e9
        sim.step()
    found = replay(path, threads=threads)
    assert found.is_same, found
    assert found.steps == 17
    told = [s.call.get("diverged") for s in Recording(path).steps()]
    assert [sorted(d) for d in told if d and len(d) > 1] == [["1", "3"]]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_environment_that_diverges_and_is_restored(tmp_path, threads):
    env, path = Env(env_cfg(), 4, seed=6), tmp_path / "env.simrec"
    before = env.snapshot()
    generator = torch.Generator().manual_seed(3)
    with env.record(path):
        for k in range(18):
            env.step(torch.randn(4, env.action_dim, generator=generator))
            if k == 5:
                env.sim.data.qvel[2, 0] = 1e9
            if k == 11:
                env.restore(before)
    with Recording(path) as recording:
        names = recording.contract("ended")["names"]
        assert int(recording["ended"][6, 2, names.index("diverged")]) == 1
    other = Env(env_cfg(), 4, engine=NativeCfg(num_threads=threads))
    found = replay(path, other)
    assert found.is_same, found
    assert found.samples == 18


def test_a_dump_of_a_divergence_is_a_recording_that_ends_there(tmp_path):
    cfg = dataclasses.replace(env_cfg(), divergence_dump_dir=tmp_path)
    env = Env(cfg, 4, seed=1, first_world=6)
    env.step(torch.zeros(4, 1))
    env.sim.data.qvel[2, 0] = 1e9
    env.step(torch.full((4, 1), 0.7))
    with Recording(tmp_path / "diverged_1_world_2.simrec") as dump:
        (step,) = dump.steps()
        assert step.call["n"] == 2
        assert "shoulder" in step.call["diverged"]["0"]
        assert dump.header["simulation"]["first_world"] == 8
        found = replay(dump)
        assert found.is_same, found
        assert dump["qvel"][0, 0, 0] == 1e9
        slower = branch(dump, step=0)
        slower.data.qvel[0, 0] = 1.0
        slower.step(2)
        assert not bool(slower.diverged.any())


def test_memory_of_ones_own_is_not_needed_to_rebuild(tmp_path):
    path = tmp_path / "run.simrec"
    sim = Simulation(scene(), 2)
    notes = sim.memory("notes", (2,))
    with sim.record(path, quantities={"mine": lambda sim: notes, "q": "qpos"}):
        for k in range(4):
            notes[1] = k
            sim.step()
    found = replay(path)
    assert found.is_same
    assert found.left_out == ["mine"]


def test_pictures_are_compared_where_the_worlds_have_the_camera(tmp_path):
    """Worlds that are made from the recording have its model, not its cameras."""
    path = tmp_path / "run.simrec"
    eye = CameraCfg(pos=(0, -2, 1), look_at=(0, 0, 1), width=8, height=6)
    sim = Simulation(dataclasses.replace(scene(), cameras={"eye": eye}), 1)
    with sim.record(path, quantities=["camera/eye", "qpos"]):
        sim.step(3)
    assert replay(path, sim).left_out == []
    assert replay(path).left_out == ["camera/eye"]


def test_on_the_other_engine_within_a_bound(tmp_path, make_sim, random_rows):
    path = tmp_path / "run.simrec"
    sim = make_sim("native", 3)
    sim.write_state(random_rows(sim.model, 3, seed=2))
    with sim.record(path, fields=["qpos", "qvel"]):
        for k in range(8):
            sim.data.ctrl[:] = 0.1 * k
            sim.step(2)
    found = replay(path, engine="warp")
    assert (found.engine, found.tolerance, found.snapshots) == ("warp", 1e-3, 0)
    assert found.is_same, found
    assert 0 < found.largest["qvel"] < 1e-3  # float32, and other code
    exact = replay(path, engine="warp", tolerance=1e-9)
    assert exact.first is not None
    with raises(InvalidInputError, name="threads"):
        replay(path, engine="warp", threads=2)


# Environments.


class Shake:
    """A term with memory and noise of its own."""

    def __init__(self, cfg, env):
        self.sum = env.memory("sum", (1,))

    def reset(self, env_ids):
        pass

    def __call__(self, env, gain: float = 1.0):
        self.sum += gain * env.rng.normal(slice(None), 1).float()
        return 0.01 * self.sum


def env_cfg(gain: float = 0.5, kp: float = 3.0) -> EnvCfg:
    joints = JointPositionActionCfg(
        asset_name="arm", joint_names=["shoulder"], scale=gain
    )
    return EnvCfg(
        scene=scene(kp),
        decimation=2,
        episode_length_s=0.08,
        actions={"arm": joints},
        observations={
            "policy": ObservationGroupCfg(
                {
                    "joints": ObservationTermCfg(
                        observations.joint_vel_rel,
                        params={"asset_cfg": events.SceneEntityCfg("arm")},
                        delay=(0, 2),
                    ),
                    "shake": ObservationTermCfg(Shake),
                }
            )
        },
        rewards={"shake": RewardTermCfg(lambda env: env.sim.time.float(), weight=2.0)},
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
            "far": TerminationTermCfg(lambda env: env.sim.data.qvel[:, 0] > 3.0),
        },
        events={
            "start": EventTermCfg(
                events.reset_joints,
                params={
                    "position_range": (-0.5, 0.5),
                    "asset_cfg": events.SceneEntityCfg("arm"),
                },
                mode="reset",
            ),
            "push": EventTermCfg(push, mode="interval", interval_s=(0.01, 0.03)),
        },
    )


def push(env, env_ids):
    env.sim.data.qvel[env_ids, 1] += env.rng.normal(env_ids, 1)[:, 0]


def acted(env: Env, path, steps=25, auto_reset=True, **options) -> Recording:
    generator = torch.Generator().manual_seed(0)
    with env.record(path, snapshot_every=0.05, **options):
        for k in range(steps):
            action = torch.randn(env.num_envs, env.action_dim, generator=generator)
            renewed = [1, 0] if k == 9 and not auto_reset else ()
            env.step(action, renewed)
            if k == 12:
                env.reset(seed=77, env_ids=[2])
            if k == 17:
                env.sim.data.qpos[1, 0] += 0.1
    return Recording(path)


@pytest.mark.parametrize("auto_reset", [True, False])
def test_an_environment_with_all_that_it_has(tmp_path, auto_reset):
    env = Env(env_cfg(), 4, seed=6, auto_reset=auto_reset, first_world=3)
    path = tmp_path / "env.simrec"
    with acted(env, path, auto_reset=auto_reset) as recording:
        assert recording.contract("action")["names"] == ["arm/shoulder"]
        assert recording.contract("ended")["names"] == ["time_out", "far", "diverged"]
        assert int(recording["event"].sum()) > 5
        assert int(recording["truncated"].sum()) > 3
        other = Env(env_cfg(), 4, seed=0, auto_reset=auto_reset)
        found = replay(recording, other)
        assert found.is_same, found
        assert found.samples == 25
        assert "observation/policy" in found.columns


def test_final_observations_are_what_a_step_said(tmp_path):
    env, told = Env(env_cfg(), 3, seed=1), []
    step = env.step

    def telling(action, reset_ids=()):
        result = step(action, reset_ids)
        told.append(result[4])
        return result

    env.step = telling
    with acted(env, tmp_path / "env.simrec", steps=12) as recording:
        ended = 0
        for extras, taken in zip(told, recording.steps(), strict=True):
            ids = extras["final_mask"].nonzero().flatten()
            ended += len(ids)
            if len(ids):
                assert taken.arrays["final_ids"].tolist() == ids.tolist()
                np.testing.assert_array_equal(
                    taken.arrays["final/policy"],
                    extras["final_observation"]["policy"][ids],
                )
        assert ended > 2


def test_a_changed_setting_of_a_task_is_found(tmp_path):
    path = tmp_path / "env.simrec"
    acted(Env(env_cfg(), 3, seed=2), path, steps=6).close()
    found = replay(path, Env(env_cfg(gain=0.51), 3))
    assert not found.model
    assert found.first is not None
    assert (found.first.column, found.first.element) == (
        "observation/policy",
        "joints/shoulder",
    )
    assert found.settings == ["env.actions.arm.scale is 0.51, it was 0.5"]
    assert "The task differs: env.actions.arm.scale is 0.51, it was 0.5." in str(found)
    assert replay(path, Env(env_cfg(), 3)).settings == []
    stiffer = replay(path, Env(env_cfg(kp=3.5), 3))
    assert "shoulder" in stiffer.model[0]


TASK_FILE = """
import dataclasses
from simstate.env import tasks

def env_cfg():
    cfg = tasks.make_cfg("Cartpole-Balance")
    return dataclasses.replace(cfg, episode_length_s={seconds}, {more})
"""


@pytest.fixture
def recorded_task(tmp_path):
    """A recording of a task file, and the file, to be changed."""
    file, path = tmp_path / "pole.py", tmp_path / "env.simrec"
    file.write_text(TASK_FILE.format(seconds=30, more=""))
    task = tasks.find(str(file))
    acted(Env(task.env_cfg(), 3), path, task=task.reference).close()
    return path, file


def test_a_task_that_is_named_plays_with_its_own_settings(recorded_task, capsys):
    path, file = recorded_task
    moved = file.rename(file.with_name("moved.py"))
    found = replay(path, task=str(moved))
    assert found.is_same, found
    other = file.with_name("other.py")
    other.write_text(TASK_FILE.format(seconds=0.2, more="decimation=2"))
    found = replay(path, task=str(other))
    assert not found.is_same
    assert found.first is not None
    assert "env.episode_length_s is 0.2, it was 30" in found.settings
    assert any(
        text.startswith("env.decimation is 2, it was") for text in found.settings
    )
    assert main(["replay", str(path), "--task", str(other)]) == 1
    assert "The task differs: env.episode_length_s is 0.2" in capsys.readouterr().out


def test_a_setting_that_moves_nothing_is_a_difference_as_well(recorded_task):
    path, file = recorded_task
    file.write_text(TASK_FILE.format(seconds=40, more=""))
    assert replay(path).is_same  # with the settings that were recorded
    found = replay(path, task=str(file))
    assert found.first is None
    assert found.settings == ["env.episode_length_s is 40, it was 30"]
    assert not found.is_same


def test_a_task_that_has_changed_is_named_with_the_option(recorded_task):
    """Without the settings that were recorded, and when its code is not trusted."""
    path, file = recorded_task
    file.write_text(TASK_FILE.format(seconds=0.3, more="rewards={}"))
    with raises(RecordingError, file="pole.py") as caught:
        replay(path)
    assert "env.rewards." in str(caught.value)
    with Recording(path) as recording:
        recording.header["task"] = "some.package:function"
        with raises(UnknownNameError, name="some.package:function"):
            replay(recording)


def test_a_task_is_for_recordings_of_a_task(run, recorded_task):
    path, _ = run
    with raises(InvalidInputError, name="task"):
        replay(path, task="Cartpole-Balance")
    env = Env(tasks.make_cfg("Cartpole-Balance"), 3)
    with raises(InvalidInputError, name="task"):
        replay(recorded_task[0], env, task="Cartpole-Balance")


def test_a_task_is_found_by_its_name(tmp_path):
    path = tmp_path / "env.simrec"
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg = dataclasses.replace(cfg, episode_length_s=0.3)
    acted(Env(cfg, 3), path, task="Cartpole-Balance").close()
    found = replay(path)
    assert found.is_same, found
    with Recording(path) as recording:
        recording.header["task"] = None
        with raises(RecordingError, name="task"):
            replay(recording)
        recording.header["task"] = "evil:function"
        with raises(Exception, name="evil:function"):
            replay(recording)


def test_worlds_that_do_not_fit(run):
    path, _ = run
    with raises(RecordingError, name="num_envs"):
        replay(path, Simulation(scene(), 3))
    with raises(RecordingError, name="env"):
        replay(path, Env(env_cfg(), 4))


def test_a_recording_is_carried_to_another_simulator(tmp_path, capsys):
    """Plain MuJoCo with a heavier forearm takes the steps; who differs, and when."""
    path = tmp_path / "run.simrec"
    sim = Simulation(scene(), 3, seed=3)
    generator = torch.Generator().manual_seed(0)
    with sim.record(path, fields=["qpos"], every=0.012):
        for k in range(30):
            ctrl = torch.randn(3, 2, generator=generator, dtype=torch.float64)
            sim.data.ctrl[:] = ctrl
            sim.step(1 + k % 2)
    same = replay(path, simulator="looped")
    assert same.engine == "looped"
    assert same.is_same, same
    assert same.largest.get("qpos", 0.0) < 1e-12

    worlds = branch(path, step=0)
    other = LoopedSimulator(worlds.model, 3)
    lower = other.own_model.body("arm/lower").id
    other.own_model.body_mass[lower] *= 1.2
    with Recording(path) as recording:
        found = replay(recording, worlds, simulator=other)
        assert not found.is_same
        times = recording["step"].numpy()
        clock = np.concatenate([[0], np.cumsum([0.004, 0.008] * 15)])
        np.testing.assert_allclose(found.time, clock[times], atol=1e-12)
        data = mujoco.MjData(other.own_model)
        data.qpos[:] = recording["qpos"][0, 1].numpy()
        generator.manual_seed(0)
        for k in range(30):
            data.ctrl[:] = torch.randn(3, 2, generator=generator, dtype=torch.float64)[
                1
            ].numpy()
            mujoco.mj_step(other.own_model, data, 1 + k % 2)
        last = np.abs(data.qpos - recording["qpos"][-1, 1].numpy()).max()
    assert found.over_time["qpos"][0] == 0.0
    assert found.over_time["qpos"][-1] >= last > 1e-3
    bound = 0.5 * found.over_time["qpos"][-1]
    when = found.horizon("qpos", bound)
    assert when is not None
    assert 0.0 < when <= found.time[-1]
    assert found.horizon("qpos", 1e9) is None
    assert "largest errors after 0 s: qpos 0" in str(found)
    assert main(["replay", str(path), "--in", "looped"]) == 0
    assert "on looped" in capsys.readouterr().out


def test_a_function_that_makes_worlds_returns_them(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from simstate import Simulation\nfrom simstate.scene import models\n"
        "def wrong():\n    return 3\n"
        "def right():\n"
        "    return Simulation(models.spec('cartpole').compile(), 2)\n"
    )
    assert made_by(f"{file}:right").num_envs == 2
    with raises(InvalidInputError, name=f"{file}:wrong"):
        made_by(f"{file}:wrong")
    with raises(InvalidInputError, name="none"):
        made_by(f"{file}:none")
