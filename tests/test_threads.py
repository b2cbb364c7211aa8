"""Several threads, and forked processes: it works, or raises at once and says why."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings

import mujoco
import pytest
import torch

from simstate import EntityCfg, NativeCfg, SceneCfg, Simulation, ThreadError
from simstate.env import Env, tasks

SCENE = SceneCfg(entities={"robot": EntityCfg(model="quadruped")})


def make(num_envs=5, engine="native", **options) -> Simulation:
    sim = Simulation(SCENE, num_envs, engine=engine, **options)
    sim.data.qvel[:, 1] = torch.linspace(-1, 1, num_envs).to(sim.dtype)
    return sim


def in_fork(function) -> str:
    """What a forked child writes that calls the function; its end, if that is bad."""
    sys.stdout.flush()
    read, write = os.pipe()
    with warnings.catch_warnings():  # of Python 3.12: there are threads
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends a child that hangs
        with os.fdopen(write, "w") as answer:
            try:
                answer.write(str(function()))
            except BaseException:
                answer.write(traceback.format_exc())
        gc.collect()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"status {status}: {text}"


fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@fork
@pytest.mark.parametrize("call", ["step", "forward", "read"])
def test_threads_are_not_in_a_forked_child(call):
    sim = make(engine=NativeCfg(num_threads=3))
    sim.step()
    calls = {
        "step": sim.step,
        "forward": sim.forward,
        "read": lambda: sim.scene["robot"].data.body_link_acc_w,
    }
    answer = in_fork(calls[call])
    assert "ThreadError: This simulation was created before a fork" in answer
    assert "num_threads=1" in answer
    assert "status" not in answer
    sim.step()  # the parent goes on


@fork
def test_a_child_may_drop_its_parents_simulation():
    held = [make(engine=NativeCfg(num_threads=3))]
    held[0].step()

    def drop() -> str:
        held.clear()
        gc.collect()
        return "dropped"

    assert in_fork(drop) == "dropped"


@fork
@pytest.mark.parametrize("engine", [NativeCfg(num_threads=1), "warp"])
def test_what_has_no_threads_goes_on_in_a_fork(engine):
    sim, twin = make(engine=engine), make(engine=engine)
    for each in (sim, twin):
        each.step(2)

    def go_on() -> str:
        sim.step(3)
        return sim.state.double().numpy().tobytes().hex()

    answer = in_fork(go_on)
    twin.step(3)
    assert answer == twin.state.double().numpy().tobytes().hex()


@fork
def test_a_child_makes_simulations_of_its_own():
    """Also where torch has used threads of its own before, for which it would wait."""
    sim = make(engine=NativeCfg(num_threads=3))
    sim.step(4)
    x = torch.rand(600, 600)
    (x @ x).sum()

    def start_again() -> str:
        own = make(engine=NativeCfg(num_threads=3))
        own.step(4)
        (x @ x).sum()
        return own.state.numpy().tobytes().hex()

    assert in_fork(start_again) == sim.state.numpy().tobytes().hex()


@fork
@pytest.mark.parametrize("threads", [0, 2])
def test_an_environment_in_a_fork(threads):
    """Three cart-poles are too little work for a second thread, unless it is said."""
    engine = NativeCfg(num_threads=threads)
    env = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=3, engine=engine)
    action = torch.zeros(3, env.action_dim)
    env.step(action)
    answer = in_fork(lambda: env.step(action))
    assert ("ThreadError" in answer) == (threads == 2)
    assert "status" not in answer


@pytest.fixture
def handler():
    """MuJoCo's warning handler, one of the user's own."""
    before = mujoco.get_mju_user_warning()
    own = print
    mujoco.set_mju_user_warning(own)
    yield own
    mujoco.set_mju_user_warning(before)


def in_threads(*functions) -> list[BaseException]:
    """What the functions raise, each in a thread of its own, all at once."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(functions))

    def run(function) -> None:
        start.wait()
        try:
            function()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("count", [2, 4])
def test_as_many_simulations_as_threads(count, handler):
    """Each has the numbers of a run alone; the user's handler is where it was."""
    sims, twins = ([make(3 + k) for k in range(count)] for _ in range(2))

    def run(sim):
        return lambda: [sim.step() for _ in range(40)]

    assert in_threads(*map(run, sims)) == []
    for sim, twin in zip(sims, twins, strict=True):
        run(twin)()
        assert torch.equal(sim.state, twin.state)
    assert mujoco.get_mju_user_warning() is handler


@pytest.mark.parametrize("count", [2, 4])
def test_one_simulation_in_threads(count, handler):
    """All but one raise, or come after one another; none is half done."""
    sim, twin = make(64), make(64)
    done: list[int] = []

    def run() -> None:
        for _ in range(30):
            sim.step()
            done.append(1)

    raised = in_threads(*[run] * count)
    assert all(isinstance(error, ThreadError) for error in raised)
    assert len(done) == 30 * count or raised
    twin.step(len(done))
    assert torch.equal(sim.state, twin.state)
    sim.step()
    assert mujoco.get_mju_user_warning() is handler


def test_the_engine_itself_refuses_a_second_thread():
    """`sim.forward` opens no transaction, so the engine has to notice."""
    sim, twin = make(3000), make(3000)
    for _ in range(10):  # in each, the threads almost certainly overlap
        raised = in_threads(*[lambda: [sim.forward() for _ in range(5)]] * 2)
        if raised:
            break
    assert raised
    for error in raised:
        assert isinstance(error, ThreadError)
        assert "computing in another thread" in str(error)
    sim.step()
    twin.step()
    assert torch.equal(sim.state, twin.state)


_BESIDE_EACH_OTHER = """
import sys
import threading
import mujoco
from simstate import EntityCfg, SceneCfg, Simulation
from simstate.engine.threads import threads_by_work

def make(num_envs):
    scene = SceneCfg(entities={"robot": EntityCfg(model="humanoid")})
    return Simulation(scene, num_envs)

def step():
    while not done.is_set():
        stepped.step()

sys.setswitchinterval(1e-5)
stepped = make(100)
stepped.step()
model = mujoco.MjModel.from_xml_string(
    '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body>'
    "</worldbody></mujoco>"
)
for k in range(40):
    done = threading.Event()
    thread = threading.Thread(target=step)
    thread.start()
    if k % 10 == 0:
        make(1).contact_table()
    for _ in range(12):  # the last step begins while another thread silences MuJoCo
        threads_by_work(stepped.model, 3)
    done.set()
    thread.join()
    data = mujoco.MjData(model)
    data.qpos[0] = float("nan")
    mujoco.mj_step(model, data)  # MuJoCo warns; simstate is not computing
print("fine")
"""


def test_mujoco_warns_as_before_after_simulations_next_to_each_other(tmp_path):
    """One thread steps while another makes simulations: later warnings are logged."""
    done = subprocess.run(
        [sys.executable, "-c", _BESIDE_EACH_OTHER],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr[-500:]
    assert (tmp_path / "MUJOCO_LOG.TXT").read_text().count("Nan") == 40


def test_the_users_handler_stays_while_simulations_are_created_and_stepped():
    """Creating one times a step of it, with MuJoCo silenced; the other steps."""
    messages: list[str] = []
    before = mujoco.get_mju_user_warning()
    stepped = make(200)
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body>'
        "</worldbody></mujoco>"
    )
    mujoco.set_mju_user_warning(messages.append)
    try:
        raised = in_threads(
            lambda: [Simulation(model, 2 + k % 3) for k in range(50)],
            lambda: [stepped.step() for _ in range(50)],
        )
        assert raised == []
        assert mujoco.get_mju_user_warning() == messages.append
        assert messages == []
        data = mujoco.MjData(model)
        data.qpos[0] = float("nan")
        mujoco.mj_step(model, data)
        assert len(messages) == 1
        assert "Nan" in messages[0]
    finally:
        mujoco.set_mju_user_warning(before)
