"""Ways past the ledger's eyes: other threads, late interruptions, uncounted writes."""

from __future__ import annotations

import gc
import threading

import pytest
import torch
from tests.inside import failing_step, failing_undo, ledger_of
from tests.raised import raises
from tests.world.test_transactions import make
from tests.world.test_user_memory import cartpole, still

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.base.errors import (
    InvalidInputError,
    SimStateError,
    SnapshotError,
    ThreadError,
)
from simstate.state import Snapshot
from simstate.world.calls import Call

CUBE = """<mujoco><worldbody><body name="cube" pos="0 0 1" quat="0.5 0.5 -0.5 0.5">
<freejoint/><geom type="box" size=".1 .2 .3" pos=".02 0 .01" mass="1.5"/></body>
</worldbody></mujoco>"""


def falling(num_envs=2, **options) -> Simulation:
    scene = SceneCfg(entities={"cube": EntityCfg(model=CUBE)}, timestep=0.002)
    return Simulation(scene, num_envs, **options)


def test_constants_follow_after_a_restore_of_parameters_alone():
    sim = falling()
    sim.expand("body_mass")[:, 1] = 4.0
    sim.step()
    saved = sim.snapshot()
    sim.expand("body_subtreemass")
    sim.restore(saved)
    assert sim.expand("body_mass")[:, 1].tolist() == [4.0, 4.0]
    assert sim.expand("body_subtreemass")[:, 1].tolist() == [4.0, 4.0]


def test_forward_sees_parameters_that_were_written_uncounted(engine):
    sim = falling(engine=engine)
    sim.expand("body_subtreemass")
    sim.expand("body_mass").numpy()[1, 1] = 4.0
    sim.forward()
    assert sim.expand("body_subtreemass")[:, 1].tolist() == [1.5, 4.0]


def test_rows_of_the_state_that_are_held_can_be_written_later(engine):
    sim = falling(engine=engine)
    rows = sim.state
    start = rows.clone()
    sim.step(5)
    rows.copy_(start)
    assert sim.time.tolist() == [0.0, 0.0]
    sim.state.numpy()[:, 3] = 7.0  # behind time: qpos[2]
    sim.forward()
    assert sim.data.qpos[:, 2].tolist() == [7.0, 7.0]


def test_memory_that_was_given_away_is_always_reported():
    sim = falling()
    own = sim.data.qpos
    own.data = torch.zeros_like(own)
    for _ in range(2):
        with raises(InvalidInputError, name="sim.data.qpos"):
            sim.step()


def test_a_reader_in_another_thread_never_undoes_a_step():
    sim = make()
    refused, done = [], threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                sim.data.xpos.sum()
            except ThreadError as error:
                refused.append(error)

    viewer = threading.Thread(target=look)
    viewer.start()
    steps = 0
    for _ in range(150):
        try:
            sim.step()
            steps += 1
        except ThreadError:  # the reader was computing
            pass
    done.set()
    viewer.join()
    assert float(sim.time[0]) == pytest.approx(0.012 + 0.004 * steps)


def test_a_call_may_close_while_a_read_collects_garbage():
    """As another thread's does, which runs when a collection calls back."""
    sim = make()
    ledger = ledger_of(sim)
    before = gc.get_threshold()

    def close(phase: str, info: dict[str, int]) -> None:
        ledger.open.clear()

    gc.callbacks.append(close)
    try:
        for read in (lambda: sim.data.xpos, lambda: ledger.is_evaluating):
            gc.collect()  # no lists are kept to be used again
            ledger.open.append(Call("sim", "a call", None))
            gc.set_threshold(1)
            read()
            gc.set_threshold(*before)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(close)
        ledger.open.clear()


def test_a_write_before_an_interrupted_step_is_not_forgotten():
    sim = falling(1)
    sim.expand("body_subtreemass")
    sim.expand("body_mass")[:, 1] = 4.0

    with failing_step(sim, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        sim.step()
    assert float(sim.expand("body_subtreemass")[0, 1]) == 4.0


def test_a_refused_write_of_a_force_model_is_followed():
    sim = falling(1)
    mass = sim.expand("body_mass")
    sim.expand("body_subtreemass")
    sim.add_force(lambda t, sim: mass.fill_(9.0))
    with raises(InvalidInputError, name='sim.expand("body_mass")'):
        sim.step()
    follows = sim.expand("body_subtreemass")
    assert torch.equal(mass[0, 1], follows[0, 1])


@pytest.mark.parametrize("call", ["reset", "restore"])
@pytest.mark.parametrize("scheme", [None, integrate.RK4()])
def test_a_force_model_does_not_reset_worlds(call, scheme):
    sim = falling(1, integrator=scheme)
    saved = sim.snapshot()
    calls = {"reset": sim.reset, "restore": lambda: sim.restore(saved)}
    sim.add_force(lambda t, sim: calls[call]())
    with raises(InvalidInputError, name=call):
        sim.step()
    assert float(sim.time) == 0.0


NEXT_CALLS = {
    "state": lambda sim: sim.state,
    "time": lambda sim: sim.time,
    "expand": lambda sim: sim.expand("body_mass"),
    "write_parameter": lambda sim: sim.write_parameter("body_mass", [[2.0]], [1]),
    "set_const": lambda sim: sim.set_const([1]),
    "set_const of none": lambda sim: sim.set_const([]),
    "keep_evaluated": lambda sim: sim.keep_evaluated("qacc"),
    "write_field": lambda sim: sim.write_field("ctrl", torch.zeros(2, 0)),
    "write_variant": lambda sim: sim.write_variant(sim.model),
    "numpy_rng": lambda sim: sim.numpy_rng,
    "contact_table": lambda sim: sim.contact_table(),
    "relative": lambda sim: sim.relative("cube/cube"),
    "mass_matrix": lambda sim: sim.dynamics.mass_matrix,
    "forward": lambda sim: sim.forward(),
    "reset of none": lambda sim: sim.reset([]),
    "snapshot": lambda sim: sim.snapshot(),
}


@pytest.mark.parametrize("call", NEXT_CALLS)
def test_any_call_finishes_a_rollback_that_did_not_complete(call):
    sim = falling()
    before, ledger = sim.data.qpos.clone(), ledger_of(sim)

    def change():
        sim.data.qpos[:, 2] += 1.0
        raise ValueError("the call failed")

    with failing_undo(KeyboardInterrupt), pytest.raises(ValueError, match="failed"):
        ledger.run("sim", "a call", change)
    assert ledger.open
    NEXT_CALLS[call](sim)
    assert not ledger.open
    assert torch.equal(sim.data.qpos, before)


def test_a_snapshot_waits_for_an_undo_that_was_itself_interrupted():
    is_due = []

    def interrupt(env):
        if is_due:
            raise KeyboardInterrupt
        return env.sim.time

    env = cartpole(back=interrupt)
    env.step(still(env))
    is_due.append(True)
    with failing_undo(KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        env.step(still(env))
    assert env.episode_length_buf.tolist() == [1, 1]
    assert torch.equal(env.snapshot().time, env.sim.time)
    assert float(env.sim.time[0]) == pytest.approx(env.step_dt)


def test_a_term_cannot_restore_its_own_environment():
    saved = []
    env = cartpole(back=lambda env: env.restore(saved[0]) if saved else env.sim.time)
    saved.append(env.snapshot())
    with raises(InvalidInputError, name="step"):
        env.step(still(env))
    assert env.common_step_counter == 0


def test_masses_come_back_to_what_was_saved_with_them():
    def flowing() -> Simulation:
        sim = falling(1, integrator=integrate.RK4())
        sim.mass_rate[:] = 0.0
        return sim

    one, other = flowing(), flowing()
    one.expand("body_mass")[:, 1] = 5.0
    one.step()
    other.restore(one.snapshot())
    for sim in (one, other):
        sim.reset()
        assert float(sim.expand("body_mass")[0, 1]) == 5.0


def test_marks_of_divergence_written_uncounted_are_seen_after_forward():
    sim = falling(2, on_divergence="mask")
    sim.diverged.numpy()[0] = True
    sim.forward()
    sim.step()
    assert sim.time.tolist() == [0.0, 0.002]


def test_a_converted_snapshot_can_be_saved_and_loaded(tmp_path):
    sim = falling(2)
    sim.step(3)
    snapshot = sim.snapshot()
    snapshot.save(tmp_path / "one.npz")
    Snapshot.load(tmp_path / "one.npz").save(tmp_path / "two.npz")
    assert torch.equal(Snapshot.load(tmp_path / "two.npz").state, snapshot.state)


@pytest.mark.parametrize("damage", ["type", "header", "array", "scalar", "marks"])
def test_what_is_no_snapshot_is_refused_before_anything_is_written(damage):
    sim = falling(2)
    sim.step(3)
    good = sim.snapshot()
    header, slots = dict(good.header), dict(good.slots)
    if damage == "header":
        del header["slots"]
    elif damage == "array":
        slots["qpos"] = slots["qpos"].numpy()
    elif damage == "scalar":
        slots["qpos"] = torch.tensor(0.0)
    elif damage == "marks":
        slots["qpos"] = slots["qpos"] * torch.nan
        slots["diverged"] = torch.zeros(2, 5, dtype=torch.bool)
    sim.step()
    before = sim.state.clone()
    bad = "snapshot" if damage == "type" else Snapshot(header, slots)
    with pytest.raises((SnapshotError, SimStateError)):
        sim.restore(bad)
    assert torch.equal(sim.state, before)


@pytest.mark.parametrize(
    ("saved", "here", "value"),
    [(torch.int64, torch.int8, 300), (torch.int64, torch.uint8, -1),
     (torch.float64, torch.float16, 1e30), (torch.float64, torch.float32, -1e200)],
)  # fmt: skip
def test_a_number_that_the_memory_here_cannot_hold_is_refused(saved, here, value):
    one, other = falling(3), falling(3)
    one.memory("own", dtype=saved)[1] = value
    own = other.memory("own", dtype=here, reset=4)
    with raises(SnapshotError, name="memory/own") as caught:
        other.restore(one.snapshot())
    assert caught.value.name == "memory/own"
    assert own.tolist() == [4, 4, 4]
    one.memory("own", dtype=saved)[:] = torch.tensor([5, 6, 7])
    other.restore(one.snapshot())
    assert own.tolist() == [5, 6, 7]


class Shaking:
    """White noise on the velocity along x."""

    num_sources = 1

    def diffusion(self, t, sim):
        return {"qvel": torch.eye(1, 6, dtype=torch.float64).expand(sim.num_envs, 1, 6)}


def test_noise_that_was_prescribed_is_asked_for_again_after_a_restore():
    def shaken() -> Simulation:
        sim = falling(1, integrator=integrate.EulerMaruyama())
        sim.add_noise(Shaking())
        return sim

    one, other = shaken(), shaken()
    noise = torch.linspace(0.1, 0.5, 5, dtype=torch.float64).reshape(5, 1, 1)
    one.integration.prescribe_noise(noise)
    one.step(2)
    other.restore(one.snapshot())
    with raises(InvalidInputError, name="noise"):
        other.step()
    other.integration.prescribe_noise(noise[2:])
    one.step(2)
    other.step(2)
    assert torch.equal(one.data.qvel, other.data.qvel)


def test_adaptive_schemes_name_a_bad_number_as_the_others_do():
    sim = falling(3, integrator=integrate.DP54())
    sim.data.qvel[1, 4] = torch.nan
    with raises(SimStateError, worlds=[1]):
        sim.step()
    assert sim.time.tolist() == [0.002, 0.0, 0.002]
