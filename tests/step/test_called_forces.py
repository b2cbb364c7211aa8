"""Force models in Python that the compiled core calls at each stage."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import (
    compiled_models_of,
    has_called_from_core,
    ledger_of,
    take_blocks,
)
from tests.raised import raises
from tests.step.test_function_force import (
    BODY,
    DOF,
    MODEL,
    MOTOR,
    NUM,
    Function,
    address,
    numbers,
)

from simstate import InvalidInputError, Simulation, UnknownNameError
from simstate.engine import core
from simstate.step import DP54, RK4, SRA1, Drag, Euler, Heun, Midpoint

__all__ = ["address"]  # a fixture
pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)
SCHEMES = [RK4("lie"), RK4("high_order"), RK4("manifold"), Euler(), Heun(), Midpoint()]
NAMES = ["lie", "high_order", "manifold", "euler", "heun", "midpoint"]
schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=NAMES)


def make(scheme=SCHEMES[0], num=NUM, **options) -> Simulation:
    """Return worlds that differ in attitude, motion and inputs."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    sim = Simulation(model, num, integrator=scheme, **options)
    rng = np.random.default_rng(8)
    attitude = rng.standard_normal((num, 4))
    attitude /= np.linalg.norm(attitude, axis=1, keepdims=True)
    for field, values in (
        (sim.data.qpos[:, :3], rng.standard_normal((num, 3))),
        (sim.data.qpos[:, 3:7], attitude),
        (sim.data.qpos[:, 7:], rng.standard_normal((num, 2))),
        (sim.data.qvel, 0.4 * rng.standard_normal((num, 8))),
        (sim.data.ctrl, rng.standard_normal((num, 2))),
        (sim.data.xfrc_applied[:, 1], rng.standard_normal((num, 6))),
    ):
        field[:] = torch.as_tensor(values).to(sim.dtype)
    return sim


def loads(num: int) -> torch.Tensor:
    """Return a wrench for each world."""
    return torch.as_tensor(np.random.default_rng(9).standard_normal((num, 6)))


def spring(t, sim):
    """Push by time, state and derived fields."""
    data = sim.data
    lever = data.xipos[:, BODY] - data.xpos[:, 1]
    data.xfrc_applied[:, BODY, :3] -= 0.7 * lever + 0.2 * data.cvel[:, BODY, 3:]
    data.qfrc_applied[:, DOF] += torch.sin(9.0 * t) - 0.3 * data.qpos[:, 7]
    data.ctrl[:, MOTOR] *= 1.0 + data.qvel[:, 6]


def damp(t, sim):
    sim.data.qfrc_applied[:, 6] -= sim.data.qvel[:, 6]


def spring_on_views(t, qpos, qvel, xpos, xipos, cvel, ctrl, qfrc, xfrc):
    """Do the same in NumPy."""
    lever = xipos[:, BODY] - xpos[:, 1]
    xfrc[:, BODY, :3] -= 0.7 * lever + 0.2 * cvel[:, BODY, 3:]
    qfrc[:, DOF] += np.sin(9.0 * t) - 0.3 * qpos[:, 7]
    ctrl[:, MOTOR] *= 1.0 + qvel[:, 6]


READS = ("qpos", "qvel", "xpos", "xipos", "cvel")
WRITES = ("ctrl", "qfrc_applied", "xfrc_applied")


def moved(sim: Simulation, *, calls: int = 3, env_ids=None) -> torch.Tensor:
    """Return the state after some steps, in which it has changed."""
    before = sim.state.clone()
    for _ in range(calls):
        sim.step(env_ids=env_ids)
    assert not torch.equal(sim.state, before)
    return sim.state.clone()


# Equality of the three loops.


@schemes
@pytest.mark.parametrize("num", [1, 3, 64])
def test_a_constant_load_has_the_bits_of_the_closed_loop(scheme, num):
    called, closed = make(scheme, num), make(scheme, num)
    load = loads(num)
    called.add_force(lambda t, sim: sim.data.xfrc_applied[:, BODY].add_(load))
    closed.data.xfrc_applied[:, BODY] += load
    ours, theirs = moved(called), moved(closed)
    assert has_called_from_core(called)
    assert not has_called_from_core(closed)
    for name in ("time", "qpos", "qvel", "qacc_warmstart"):
        assert torch.equal(getattr(called.data, name), getattr(closed.data, name)), name
    assert not torch.equal(ours, theirs)  # the loads are inputs of one of them
    assert torch.equal(called.data.xfrc_applied, make(scheme, num).data.xfrc_applied)


@schemes
@pytest.mark.parametrize("num", [1, 3, 64])
def test_a_model_has_the_bits_of_the_blocks(scheme, num, monkeypatch):
    ours, blocks = make(scheme, num), make(scheme, num)
    take_blocks(blocks, monkeypatch)
    for sim in (ours, blocks):
        sim.add_force(spring)
    assert torch.equal(moved(ours), moved(blocks))
    assert has_called_from_core(ours)
    assert not has_called_from_core(blocks)
    assert torch.equal(
        ours.integration.statistics.evaluations,
        blocks.integration.statistics.evaluations,
    )
    assert torch.equal(ours.data.qacc, blocks.data.qacc)


@schemes
def test_n_steps_in_one_call_are_n_calls(scheme):
    one, many = make(scheme), make(scheme)
    for sim in (one, many):
        sim.add_force(spring)
    one.step(5)
    assert torch.equal(one.state, moved(many, calls=5))


@schemes
def test_some_worlds_are_stepped(scheme, monkeypatch):
    """The others keep their state, and models still get the inputs of all worlds."""
    ours, blocks = make(scheme), make(scheme)
    take_blocks(blocks, monkeypatch)
    before = ours.state.clone()
    for sim in (ours, blocks):
        sim.add_force(spring)
    state = moved(ours, env_ids=[4, 1, 3])
    assert torch.equal(state, moved(blocks, env_ids=[4, 1, 3]))
    assert torch.equal(state[[0, 2]], before[[0, 2]])
    stages = ours.integration.scheme.tableau.num_stages
    counts = ours.integration.statistics.evaluations
    assert counts.tolist() == [0, 3 * stages, 0, 3 * stages, 3 * stages]


def test_models_of_the_core_act_next_to_called_ones(address, monkeypatch):
    """A C function and a class of simstate's own, whose loads do not overlap."""
    states = []
    for by_blocks in (False, True):
        sim = make()
        if by_blocks:
            take_blocks(sim, monkeypatch)
        sim.add_force(Function(address, numbers()))
        sim.add_force(lambda t, sim: sim.data.qfrc_applied[:, 6].add_(1.3 + t))
        sim.add_force(Drag("model", "bus", area=0.8))
        states.append(moved(sim))
        assert compiled_models_of(sim) is None
        assert has_called_from_core(sim) != by_blocks
    assert torch.equal(*states)
    plain = make()
    plain.add_force(lambda t, sim: sim.data.qfrc_applied[:, 6].add_(1.3 + t))
    assert not torch.equal(states[0], moved(plain))


def test_models_of_the_core_act_once_where_another_world_diverged(monkeypatch):
    """Loads of a diverged world are not finite; those of the others count once."""
    states = []
    for by_blocks in (False, True):
        sim = make(on_divergence="mask")
        if by_blocks:
            take_blocks(sim, monkeypatch)
        sim.add_force(Drag("model", "bus", area=0.8))
        sim.add_force(damp)
        sim.data.qvel[2, 6] = math.nan
        sim.step(3)
        assert sim.diverged.tolist() == [False, False, True, False, False]
        sim.step(2)
        states.append(sim.state[[0, 1, 3, 4]].clone())
    assert torch.equal(*states)


# Views.


@schemes
def test_views_have_the_bits_of_tensors(scheme):
    views, tensors = make(scheme), make(scheme)
    views.add_force(spring_on_views, reads=READS, writes=WRITES)
    tensors.add_force(spring)
    assert torch.equal(moved(views), moved(tensors))
    assert has_called_from_core(views)


def test_views_are_of_the_stage():
    """Derived fields are MuJoCo's at the state and time of each evaluation."""
    sim, seen = make(), []

    def look(t, *fields):
        assert all(isinstance(x, np.ndarray) for x in (t, *fields))
        seen.append([x.copy() for x in (t, *fields)])
        fields[-1][:, BODY, 1] += 30.0

    sim.add_force(look, reads=READS, writes=("xfrc_applied",))
    sim.step(2)
    assert len(seen) == 8
    data = mujoco.MjData(sim.model)
    for _, qpos, qvel, xpos, xipos, cvel, _ in seen:
        for world in range(NUM):
            data.qpos[:], data.qvel[:] = qpos[world], qvel[world]
            mujoco.mj_fwdPosition(sim.model, data)
            mujoco.mj_fwdVelocity(sim.model, data)
            np.testing.assert_allclose(xpos[world], data.xpos, atol=1e-14)
            np.testing.assert_allclose(xipos[world], data.xipos, atol=1e-14)
            np.testing.assert_allclose(cvel[world], data.cvel, atol=1e-13)
    times = [t[3] for t, *_ in seen]
    assert times == pytest.approx([0, 0.01, 0.01, 0.02, 0.02, 0.03, 0.03, 0.04])
    assert not np.array_equal(seen[1][1], seen[2][1])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"reads": ("qpoz",)}, "qpoz"),
        ({"writes": ("xfrc",)}, "xfrc"),
        ({"writes": ("qvel",)}, "qvel"),
        ({"writes": ("mocap_pos",)}, "mocap_pos"),
        ({"reads": ("qacc",)}, "qacc"),
        (
            {"reads": ("actuator_force",)},
            "actuator_force",
        ),
        ({"reads": "qpos"}, "reads"),
        ({"writes": "ctrl"}, "writes"),
    ],
    ids=str,
)
def test_wrong_views_are_refused(options, name):
    sim = make()
    before = moved(sim, calls=1)
    with raises((InvalidInputError, UnknownNameError), name=name):
        sim.add_force(spring_on_views, **options)
    with raises(InvalidInputError, name="model"):
        sim.add_force(3, reads=("qpos",))
    assert torch.equal(sim.state, before)
    sim.step()
    assert not has_called_from_core(sim)


def test_a_view_that_is_read_cannot_be_written():
    sim = make()
    before = sim.state.clone()

    def write(t, xpos):
        xpos[1] = 4.0

    sim.add_force(write, reads=("xpos",))
    with pytest.raises(ValueError, match="read-only"):
        sim.step()
    assert torch.equal(sim.state, before)


def test_views_on_warp():
    pytest.importorskip("mujoco_warp")
    views, tensors = make(engine="warp", num=3), make(engine="warp", num=3)

    def push(t, qvel, xpos, xfrc):
        xfrc[:, BODY, :3] += 0.3 * xpos[:, 1] - qvel[:, :3]

    def push_sim(t, sim):
        push(t, sim.data.qvel, sim.data.xpos, sim.data.xfrc_applied)

    views.add_force(push, reads=("qvel", "xpos"), writes=("xfrc_applied",))
    tensors.add_force(push_sim)
    assert torch.equal(moved(views), moved(tensors))
    assert not torch.equal(views.data.qvel, make(engine="warp", num=3).data.qvel)


# Models that fail.


def refused(sim: Simulation, n: int = 3, **fields: Any) -> None:
    """Check that a step raises, and that all worlds are as before; the next works."""
    before = {name: x.clone() for name, x in sim.snapshot().slots.items()}
    with raises(InvalidInputError, **fields):
        sim.step(n)
    assert_unchanged(sim, before)


def assert_unchanged(sim: Simulation, before: dict[str, torch.Tensor]) -> None:
    """Check that a call which has failed left no trace."""
    assert not ledger_of(sim).open
    assert not ledger_of(sim).is_evaluating
    assert has_called_from_core(sim)
    after = sim.snapshot().slots
    for name, values in before.items():
        np.testing.assert_array_equal(values, after[name], err_msg=name)


def at(sim: Simulation, late: float, act):
    """Add a model that acts in a later step, at a stage within it."""

    def model(t, sim):
        sim.data.xfrc_applied[:, BODY, 2] += 2.0 + t
        if float(t[0]) > late:
            act(t, sim)

    model.__qualname__ = "late_model"
    sim.add_force(model)


LATE = 0.041
"""Within the third step of three [s]."""


@pytest.mark.parametrize("name", ["qpos", "qvel", "time"])
def test_a_model_that_writes_state_rolls_the_call_back(name):
    sim = make()
    at(sim, LATE, lambda t, sim: getattr(sim.data, name).add_(0.25))
    refused(sim, name=name, worlds=[0])


def test_a_model_that_raises_rolls_the_call_back():
    sim, raised = make(), []

    def fail(t, sim):
        sim.data.ctrl[:] = 7.0
        raised.append(float(t[1]))
        raise ZeroDivisionError("mine")

    at(sim, LATE, fail)
    before = sim.snapshot().slots
    with pytest.raises(ZeroDivisionError, match="mine"):
        sim.step(3)
    assert_unchanged(sim, before)
    assert raised == [pytest.approx(0.05)]
    sim.step(2)
    assert sim.time.tolist() == pytest.approx([0.04] * NUM)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("field", WRITES)
def test_a_load_that_is_not_finite_is_named(value, field):
    sim = make()
    sim.add_force(spring)

    def spoil(t, sim):
        getattr(sim.data, field)[3, -1] = value

    at(sim, LATE, spoil)
    refused(sim, name=field, worlds=[3])


def test_a_load_on_views_that_is_not_finite_is_named():
    def blows_up(t, qfrc):
        qfrc[[4, 2], 1] = np.where(t[[4, 2]] > LATE, np.nan, 1.0)

    sim = make()
    sim.add_force(blows_up, writes=("qfrc_applied",))
    refused(sim, name="qfrc_applied", worlds=[2, 4])


def test_a_model_is_not_blamed_for_a_value_of_the_user():
    sim = make(on_divergence="mask")
    sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, BODY].mul_(1.5).add_(1.0))
    sim.data.xfrc_applied[3, BODY, 1] = math.nan
    sim.step(2)
    assert sim.diverged.tolist() == [False, False, False, True, False]
    assert has_called_from_core(sim)
    twin = make()
    twin.add_force(lambda t, sim: sim.data.xfrc_applied[:, BODY].mul_(1.5).add_(1.0))
    twin.step(2)
    others = [0, 1, 2, 4]
    assert torch.equal(sim.state[others], twin.state[others])


def test_a_model_is_blamed_for_its_own_world_only():
    sim = make(on_divergence="mask")
    sim.data.ctrl[1, 0] = math.nan
    at(sim, LATE, lambda t, sim: sim.data.xfrc_applied[3].fill_(math.inf))
    sim.step(2)
    assert sim.diverged.tolist() == [False, True, False, False, False]
    refused(sim, n=1, name="xfrc_applied", worlds=[3])


def test_a_model_may_keep_the_time():
    sim, kept = make(), []
    sim.data.time[:] = torch.linspace(0.5, 0.9, NUM).to(sim.dtype)
    sim.add_force(lambda t, sim: kept.append(t))
    sim.add_force(lambda t, qpos: kept.append(t), reads=("qpos",))
    sim.step()
    starts = np.linspace(0.5, 0.9, NUM)
    assert len(kept) == 4 * 2
    for k, times in enumerate(kept):
        c = (0.0, 0.5, 0.5, 1.0)[k // 2]
        np.testing.assert_allclose(times, starts + c * 0.02)


@pytest.mark.parametrize("name", ["qacc", "qfrc_constraint", "actuator_force"])
def test_an_acceleration_cannot_be_read(name):
    sim = make()
    at(sim, LATE, lambda t, sim: getattr(sim.data, name).sum())
    refused(sim, name="acceleration")


# After the step.


@schemes
def test_reads_after_a_step_are_of_the_new_state(scheme):
    sim = make(scheme)
    sim.add_force(spring)
    for _ in range(2):
        sim.data.xpos, sim.data.qacc  # noqa: B018  they were current
        sim.step(2)
        data = mujoco.MjData(sim.model)
        for world in (3, 0, 4):
            data.qpos[:] = sim.data.qpos[world]
            data.qvel[:] = sim.data.qvel[world]
            mujoco.mj_forward(sim.model, data)
            for name in ("xpos", "xipos", "cvel"):
                got, want = getattr(sim.data, name)[world], getattr(data, name)
                np.testing.assert_allclose(got, want, atol=1e-13, err_msg=name)
    accelerations = sim.data.qacc.clone()
    sim.forward()
    assert torch.equal(sim.data.qacc, accelerations)
    twin = make(scheme)
    twin.write_state(sim.state)
    assert not torch.allclose(twin.data.qacc, accelerations)
    spring(sim.time, twin)
    torch.testing.assert_close(twin.data.qacc, accelerations, rtol=1e-12, atol=1e-12)


def test_statistics_count_evaluations():
    for scheme in SCHEMES:
        sim, calls = make(scheme), []
        sim.add_force(lambda t, sim, calls=calls: calls.append(len(t)))
        sim.step(3)
        stages = scheme.tableau.num_stages
        assert calls == [NUM] * 3 * stages
        counts = sim.integration.statistics
        assert counts.evaluations.tolist() == [3 * stages] * NUM
        assert counts.accepted.tolist() == [3] * NUM


def test_an_assignment_replaces_the_loads_of_models_before_it(address):
    """The core evaluates its models last; one before a Python model is called."""
    replaced, plain = make(), make()
    replaced.add_force(Drag("model", "bus", area=0.8))
    replaced.add_force(Function(address, numbers()))

    def reset(t, sim):
        sim.data.xfrc_applied[:] = 0.25
        sim.data.qfrc_applied[:] = 0.0
        sim.data.ctrl[:] = 0.5

    for sim in (replaced, plain):
        sim.add_force(reset)
    assert torch.equal(moved(replaced), moved(plain))
    assert has_called_from_core(replaced)


@pytest.mark.parametrize("scheme", [RK4(), DP54(), SRA1(), None], ids="abcd")
def test_models_use_one_thread_of_torch(scheme):
    """Torch's other threads would wait for cores on which MuJoCo's spin."""
    sim, threads = make(scheme), []
    sim.add_force(lambda t, sim: threads.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        sim.step(2)
        sim.forward()
        if scheme is not None:
            sim.add_coupled_force(
                lambda t, sim: threads.append(torch.get_num_threads())
            )
            sim.step()
        assert set(threads) == {1}
        assert torch.get_num_threads() == 3
        sim.add_force(lambda t, sim: sim.data.xfrc_applied.fill_(math.nan))
        with pytest.raises(InvalidInputError):
            sim.step()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
