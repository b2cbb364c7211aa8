"""Calls of a simulation that are open: interrupted, nested, in threads, forked."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack

import pytest
import torch
from tests.inside import all_slots, failing_undo, ledger_of
from tests.soak import SOAK
from tests.test_threads import fork, in_fork
from tests.tracer import lines_of, traced
from tests.world.test_transactions import ROBOT, Leak
from torch import Tensor

from simstate import EntityCfg, NativeCfg, SceneCfg, Simulation, ThreadError, integrate
from simstate.engine import core
from simstate.world.calls import MAX_TRIES

SCENE = SceneCfg(
    entities={"robot": EntityCfg(model=ROBOT)}, ground=False, timestep=0.004
)
ENDS = ("before", "after")


def make(num_envs: int = 3, **options) -> Simulation:
    """Return worlds that differ in their motion."""
    sim = Simulation(SCENE, num_envs, **options)
    spread = torch.linspace(-1.0, 1.0, num_envs * 7, dtype=sim.dtype)
    sim.data.qvel[:] = spread.reshape(num_envs, 7)
    return sim


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(values, other[name]) for name, values in one.items())


# Steps that are cut.


@pytest.mark.parametrize("every", [0.7, 1.6])
def test_an_interrupted_sample_leaves_the_time_step(every):
    """A history cuts the steps of MuJoCo's stepper; the time step is a parameter."""
    sim = make()
    sim.record(quantities=["qpos"], every=every * sim.timestep)
    sim.step(2)
    timestep = sim.expand("opt.timestep").clone()
    assert timestep.flatten().tolist() == [0.004] * 3
    start = sim.snapshot()
    total = lines_of(sim.step)
    slots = all_slots(sim)
    assert float(slots["time"][1]) == pytest.approx(0.012)
    seen = set()
    for line in range(total):
        sim.restore(start)
        before = all_slots(sim)
        assert len(traced(sim.step, line).places) == 1
        assert torch.equal(sim.expand("opt.timestep"), timestep), line
        now = all_slots(sim)
        found = [same(now, before), same(now, slots)]
        assert any(found), line
        seen.add(ENDS[found.index(True)])
    assert "before" in seen


# Calls within calls.


@pytest.mark.parametrize("times", [MAX_TRIES - 1, MAX_TRIES, 4 * MAX_TRIES])
@pytest.mark.parametrize("follow", [Simulation.snapshot, Simulation.step])
def test_an_evaluation_is_rolled_back_before_its_step(times, follow):
    """Also where its rollback fails, and where that of the step fails, too."""
    sim, twin = make(integrator=integrate.RK4()), make(integrator=integrate.RK4())
    for each in (sim, twin):
        each.add_process(Leak("tank", [1.0]))  # evaluations are then calls of their own
        each.data.xfrc_applied[:, 1, 2] = torch.tensor([0.3, -0.2, 0.7])
    scopes: list[list[str]] = []

    def fail(t: Tensor, sim: Simulation) -> None:
        push(t, sim)
        if float(t[0]) > 0.005 and not scopes:
            scopes.append([call.scope for call in ledger_of(sim).open])
            undo.enter_context(failing_undo(MemoryError, times))
            raise ZeroDivisionError

    sim.add_force(fail)
    twin.add_force(push)
    for each in (sim, twin):
        each.step()
    with ExitStack() as undo, pytest.raises(ZeroDivisionError):
        sim.step(2)
    assert scopes == [["step", "inputs"]]
    is_left = times > 2 * MAX_TRIES
    assert [call.failed for call in ledger_of(sim).open] == [True, True] * is_left
    for each in (sim, twin):
        follow(each)
    assert not ledger_of(sim).open
    assert same(all_slots(sim), all_slots(twin))


# Threads.


def test_two_threads_on_one_simulation_for_two_seconds():
    """Each call succeeds or raises a ThreadError; those that succeed all count."""
    engine = NativeCfg(num_threads=1)
    sim, twin = (make(400, engine=engine) for _ in range(2))
    some = [399, 7, 150]
    done, refused, others = {"all": 0, "some": 0}, [0], []
    end = time.monotonic() + 2.0 * SOAK

    def repeat(name: str, n: int, env_ids: list[int] | None) -> None:
        while time.monotonic() < end:
            try:
                sim.step(n, env_ids=env_ids)
                done[name] += n
            except ThreadError:
                refused[0] += 1
            except BaseException as error:
                others.append(error)
                return

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [
            threading.Thread(target=repeat, args=("all", 1, None)),
            threading.Thread(target=repeat, args=("some", 2, some)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert others == []
    assert done["all"] + done["some"] > 0  # one thread may starve
    assert refused[0] > 0
    assert not ledger_of(sim).open
    for _ in range(done["all"]):
        twin.step()
    for _ in range(done["some"]):
        twin.step(env_ids=some)
    for name, values in all_slots(twin).items():
        assert torch.equal(all_slots(sim)[name], values), name


# Forks.


def push(t: Tensor, sim: Simulation) -> None:
    sim.data.xfrc_applied[:, 1, :3] += torch.cos(t)[:, None] - sim.data.qvel[:, :3]


@fork
def test_a_fork_within_a_step():
    """Parent and child both finish it; no other thread of the child may join in."""
    options = {"engine": NativeCfg(num_threads=1), "integrator": integrate.RK4()}
    sim, twin = make(**options), make(**options)
    children: list[int] = []

    def fork_once(t: Tensor, sim: Simulation) -> None:
        push(t, sim)
        if float(t[0]) > 0.005 and not children:
            children.append(os.fork())
            if children == [0]:
                signal.alarm(30)  # ends a child that hangs

    sim.add_force(fork_once)
    twin.add_force(push)
    twin.step(3)
    try:
        sim.step(3)
        is_same = same(all_slots(sim), all_slots(twin))
    except BaseException:
        if children != [0]:
            raise
        is_same = False
    if children == [0]:
        os._exit(0 if is_same else 1)
    assert is_same
    status = os.waitpid(children[0], 0)[1]
    assert os.waitstatus_to_exitcode(status) == 0


@fork
def test_a_fork_while_another_thread_is_in_a_force_model():
    """In the child its step is undone, with its loads, and the next one works."""
    options = {"engine": NativeCfg(num_threads=1), "integrator": integrate.RK4()}
    sim, twin = make(**options), make(**options)
    before = all_slots(sim)
    inside, go_on = threading.Event(), threading.Event()

    def wait(t: Tensor, sim: Simulation) -> None:
        push(t, sim)
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert go_on.wait(30)

    sim.add_force(wait)
    twin.add_force(push)
    thread = threading.Thread(target=sim.step, args=(2,))
    thread.start()
    assert inside.wait(30)

    def child() -> str:
        sim.snapshot()
        undone = same(all_slots(sim), before)
        sim.step(2)
        twin.step(2)
        return f"{undone} {same(all_slots(sim), all_slots(twin))}"

    answer = in_fork(child)
    go_on.set()
    thread.join()
    assert answer == "True True"
    twin.step(2)
    assert same(all_slots(sim), all_slots(twin))


@fork
@pytest.mark.skipif(not core.is_available(), reason="mujoco.batch does not notice")
def test_a_fork_while_another_thread_is_in_the_core():
    """MuJoCo's memory is then in an unknown state: the child is refused at once."""
    sim = make(4000, engine=NativeCfg(num_threads=1))
    twin = make(4000, engine=NativeCfg(num_threads=1))
    answer = ""
    for _ in range(20):  # until the thread is within the core
        thread = threading.Thread(target=sim.step, args=(20,))
        thread.start()
        while not ledger_of(sim).open and thread.is_alive():
            pass
        time.sleep(0.002)
        answer = in_fork(sim.step)
        thread.join()
        twin.step(20)
        assert "status" not in answer
        if "ThreadError" in answer:
            break
    assert "was computing in another thread when the process forked" in answer
    assert same(all_slots(sim), all_slots(twin))
