"""When the core is there and when not, what it refuses, and what it leaves alone."""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
import threading
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch
from tests.engine.core_models import load, random_states
from tests.inside import batch_of, forget_core, library_path

from simstate import Simulation
from simstate.base import compiled_core
from simstate.cli import main
from simstate.engine import FIELDS, core
from simstate.engine.plain_batch import PlainBatch
from simstate.integrate import RK4

NUM = 6
needs_core = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)


@pytest.fixture
def look_again():
    """Lets the core be looked for again, now and after the test."""
    forget_core()
    yield
    forget_core()


def steps_without_the_core():
    return isinstance(batch_of(Simulation(load("small"), 2)), PlainBatch)


@needs_core
def test_the_engine_runs_on_the_core(capsys):
    assert isinstance(batch_of(Simulation(load("small"), 2)), core.CoreBatch)
    assert main(["--version"]) == 0
    said = capsys.readouterr().out
    assert said.rstrip().endswith("native engine: compiled core")
    assert f"MuJoCo {mujoco.__version__}" in said


def test_a_variable_switches_it_off(monkeypatch, capsys):
    monkeypatch.setenv("SIMSTATE_CORE", "0")
    assert steps_without_the_core()
    assert main(["--version"]) == 0
    assert "mujoco.batch (SIMSTATE_CORE=0)" in capsys.readouterr().out


@needs_core
def test_another_mujoco_goes_without(monkeypatch, look_again):
    here = mujoco.mj_version()
    monkeypatch.setattr(mujoco, "mj_version", lambda: 9000001)
    assert not core.is_available()
    said = core.description()
    assert "it was not built for 9000001" in said
    assert str(here) in said.partition("there are cores for")[2]
    assert steps_without_the_core()
    with pytest.raises(ImportError, match="no compiled core"):
        core.CoreBatch(load("small"), 2)


@needs_core
def test_a_core_of_other_sources_goes_without(monkeypatch, look_again):
    """As one that an earlier version of the package left in place."""
    monkeypatch.delattr(sys.modules[compiled_core.module_name()], "REVISION")
    assert not core.is_available()
    assert "built from another version of simstate" in core.description()
    assert steps_without_the_core()


def test_an_install_without_a_compiler_goes_without(monkeypatch, look_again):
    monkeypatch.delenv("SIMSTATE_CORE", raising=False)
    monkeypatch.delitem(sys.modules, compiled_core.module_name(), raising=False)
    nowhere = SimpleNamespace(find_spec=lambda *_: None)
    monkeypatch.setattr(compiled_core, "PathFinder", nowhere)
    assert not core.is_available()
    assert "it was not built" in core.description()
    assert steps_without_the_core()


@needs_core
@pytest.mark.parametrize("name", ["small", "quadruped", "cube"])
def test_both_paths_have_the_same_bits(name, monkeypatch, random_rows):
    model = load(name)
    sims = []
    for value in ("1", "0"):
        monkeypatch.setenv("SIMSTATE_CORE", value)
        sims.append(Simulation(model, NUM, on_divergence="mask"))
    rows = torch.tensor(random_states(model, NUM, 12))
    rng = np.random.default_rng(3)
    for sim in sims:
        sim.write_state(rows)
    for ids, n in ((None, 3), ([4, 1], 2), (None, 1)):
        ctrl = torch.tensor(rng.uniform(-1, 1, (NUM, model.nu)))
        for sim in sims:
            sim.data.ctrl[:] = ctrl
            sim.step(n, env_ids=ids)
        assert torch.equal(sims[0].state, sims[1].state)
        for field in FIELDS:
            got, want = (getattr(sim.data, field) for sim in sims)
            assert torch.equal(got, want), field


@needs_core
def test_callbacks_of_python_are_refused_and_those_of_c_called():
    model = load("small")
    worlds = core.CoreBatch(model, NUM, 2)
    kept = mujoco.get_mjcb_control()
    calls = []
    as_c = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    function = as_c(lambda m, d: calls.append(1))
    try:
        mujoco.set_mjcb_control(lambda m, d: None)
        with pytest.raises(ValueError, match="mjcb_control is a Python function"):
            worlds.step()
        with pytest.raises(ValueError, match="mjcb_control is a Python function"):
            core.CoreBatch(model, NUM, 2)
        mujoco.set_mjcb_control(function)
        worlds.step(None, 3)
    finally:
        mujoco.set_mjcb_control(kept)
    assert len(calls) == 3 * NUM


@needs_core
def test_no_python_runs_where_no_callback_is_set(monkeypatch, look_again):
    """MuJoCo sets a timer of its own, which is no callback of the user's."""
    calls = []
    monkeypatch.setattr(
        compiled_core, "refuse_python_callbacks", lambda: calls.append(1)
    )
    worlds = core.CoreBatch(load("small"), NUM, 2)
    worlds.step(None, 3)
    assert not calls
    kept = mujoco.get_mjcb_passive()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda m, d: 0)
    mujoco.set_mjcb_passive(function)
    try:
        worlds.step()
    finally:
        mujoco.set_mjcb_passive(kept)
    assert calls


@needs_core
def test_arrays_outlive_the_batch():
    worlds = core.CoreBatch(load("small"), NUM, 2)
    arrays = [worlds.bind("xpos"), worlds.state, worlds.expand("body_mass")]
    arrays += [worlds.bind("qpos"), worlds.warning, worlds.status]
    worlds.step(None, 2)
    wanted = [array.copy() for array in arrays]
    del worlds
    gc.collect()
    for array, want in zip(arrays, wanted, strict=True):
        np.testing.assert_array_equal(array, want)
    arrays[1][:] = 0.0  # still memory of ours


@needs_core
@pytest.mark.parametrize("kind", ["step", "integrate"])
def test_ctrl_c_ends_a_long_run_between_steps(kind):
    model = load("cartpole")
    worlds = core.CoreBatch(model, NUM, 2)
    main_thread = threading.main_thread().ident
    timer = threading.Timer(
        0.3, lambda: signal.pthread_kill(main_thread, signal.SIGINT)
    )
    integrator = core.Integrator(worlds, RK4().tableau)
    run = {
        "step": lambda: worlds.step(None, 100_000_000),
        "integrate": lambda: integrator.step(100_000_000, 0.001),
    }[kind]
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run()
    timer.join()
    time = worlds.bind("time")
    assert (time == time[0]).all()
    assert time[0] > 0
    worlds.step()
    assert not worlds.status.any()


@needs_core
def test_warnings_are_counted_and_not_printed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    worlds = core.CoreBatch(load("quadruped"), NUM, 2)
    worlds.bind("qvel")[[1, 4], 2] = np.nan

    messages = []
    kept = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(messages.append)
    pointer = ctypes.c_void_p.in_dll(
        ctypes.CDLL(str(library_path())), "mju_user_warning"
    )
    before = pointer.value
    try:
        worlds.step()
    finally:
        assert pointer.value == before
        mujoco.set_mju_user_warning(kept)
    assert not messages
    bad = mujoco.mjtWarning.mjWARN_BADQVEL.value
    np.testing.assert_array_equal(np.flatnonzero(worlds.warning[:, bad, 1]), [1, 4])
    other = core.CoreBatch(load("quadruped"), NUM, 2)
    other.bind("qvel")[3, 1] = np.nan
    other.step(None, 2)
    assert not list(tmp_path.iterdir())
    assert "WARNING" not in "".join(capfd.readouterr())


@needs_core
def test_two_batches_in_two_threads():
    model = load("quadruped")
    rows = random_states(model, NUM, 3)
    alone = core.CoreBatch(model, NUM, 1)
    alone.state[:] = rows
    alone.step(None, 400)
    both = [core.CoreBatch(model, NUM, 2) for _ in range(2)]
    for worlds in both:
        worlds.state[:] = rows
    threads = [
        threading.Thread(target=lambda w=w: [w.step(None, 4) for _ in range(100)])
        for w in both
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worlds in both:
        np.testing.assert_array_equal(worlds.state, alone.state)


@needs_core
def test_a_model_that_cannot_be_batched_says_why():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option><flag sleep="enable"/></option><worldbody><body><freejoint/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match="persistent"):
        core.CoreBatch(model, NUM)
