"""Planners solve tasks at a small budget, and keep to their stated algorithms."""

from __future__ import annotations

import json
import math
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicHermiteSpline, interp1d
from tests.inside import ledger_of
from tests.raised import raises
from torch import Tensor

from simstate import Simulation, study
from simstate.base.errors import InvalidInputError, SimStateError
from simstate.cli import main
from simstate.cli.model_scene import scene_of
from simstate.cli.plan import from_default
from simstate.engine import NativeCfg
from simstate.env import Env, tasks
from simstate.scene import EntityCfg, InitialStateCfg, SceneCfg
from simstate.study.planners import (
    CEM,
    MPPI,
    Planner,
    PredictiveSampling,
    SamplingPlanner,
    drive,
)
from simstate.study.planners.spline import spline_weights

pytestmark = pytest.mark.long

KINDS = [PredictiveSampling, MPPI, CEM]
ONE_THREAD = NativeCfg(num_threads=1)


def carts(num_envs: int = 2, **options: Any) -> Simulation:
    """Carts whose poles hang, each elsewhere."""
    hanging = InitialStateCfg(keyframe="hanging")
    entity = EntityCfg(model="cartpole", init_state=hanging)
    scene = SceneCfg(entities={"robot": entity}, timestep=0.01)
    sim = Simulation(scene, num_envs, engine=ONE_THREAD, **options)
    sim.data.qpos += torch.tensor([0.3, 0.4]) * torch.arange(num_envs)[:, None]
    return sim


def swing_cost(sim: Any) -> Tensor:
    (cart, pole), speed = sim.data.qpos.unbind(1), sim.data.qvel[:, 1]
    cost = 1 - torch.cos(pole) + 0.2 * cart**2 + 0.002 * speed**2
    return cost + 0.001 * sim.data.ctrl[:, 0] ** 2


def swinger(kind: type[SamplingPlanner], **options: Any) -> SamplingPlanner:
    chosen = {"hold": 2, "samples": 48, "knots": 8, "noise": 0.3, **options}
    return kind(40, cost=swing_cost, **chosen)


# Tasks.


@pytest.mark.parametrize("kind", KINDS)
def test_a_hanging_pole_swings_up(kind: type[SamplingPlanner]):
    """After 3 s, poles stay within 0.6 rad of upright for 0.5 s; they hang at first."""
    sim = carts()
    angles: list[Tensor] = []
    fewer = {"noise": 0.4, "samples": 32, "iterations": 2} if kind is CEM else {}
    planner = swinger(kind, **fewer)
    drive(
        sim, planner, 3.5, replan=2,
        after_step=lambda: angles.append(sim.data.qpos[:, 1].clone()),
    )  # fmt: skip
    seen = torch.stack(angles)
    tilt = torch.atan2(seen.sin(), seen.cos()).abs()
    assert float(tilt[0].amin()) > 2.0
    assert float(tilt[-25:].amax()) < 0.6


def test_an_arm_reaches_a_point():
    """The task's reward as cost: hands within 6 cm of their points after 1.6 s."""
    env = Env(tasks.make_cfg("Arm-Reach"), 2, seed=1, engine=ONE_THREAD)
    far = env.commands["point"].error().clone()
    planner = MPPI(12, samples=32, knots=3, noise=0.15, bounds=(-2.5, 2.5))
    found = drive(env, planner, 1.6, replan=2)
    assert found.rewards.shape == (40, 2)
    assert float(far.amin()) > 0.15
    assert float(env.commands["point"].error().amax()) < 0.06


def test_a_satellite_turns_to_an_attitude():
    """The attitude is within 6 degrees of the commanded one after 30 s."""
    env = Env(tasks.make_cfg("Satellite-Slew"), 1, seed=2, engine=ONE_THREAD)
    far = float(env.commands["attitude"].error())
    drive(env, MPPI(40, samples=24, knots=4, noise=0.4), 30.0, replan=6)
    assert far > math.radians(25)
    assert float(env.commands["attitude"].error()) < math.radians(6)


def legged() -> Simulation:
    """A quadruped that lies on its back."""
    home = InitialStateCfg(keyframe="home")
    robot = EntityCfg(model="quadruped", init_state=home)
    scene = SceneCfg(entities={"robot": robot}, ground=True)
    sim = Simulation(scene, engine=ONE_THREAD)
    sim.data.qpos[:, 2] = 0.12
    turned = torch.tensor([0.05, 0.99, 0.1, 0.05], dtype=torch.float64)
    sim.data.qpos[:, 3:7] = turned / turned.norm()
    sim.step(60)
    return sim


GOAL = torch.tensor([1.0, 0.2], dtype=torch.float64)
HOME = torch.tensor([0.0, 0.9, -1.8] * 4, dtype=torch.float64)


def walk_cost(sim: Any) -> Tensor:
    """Be upright, at standing height, near the goal, with legs as at home."""
    qpos = sim.data.qpos
    up = upright(sim)
    standing = up.clamp(0, 1) ** 2
    low = (0.28 - qpos[:, 2]).clamp(min=0) / 0.28
    distance = torch.sqrt(((qpos[:, :2] - GOAL) ** 2).sum(dim=1) + 0.01)
    legs = ((qpos[:, 7:] - HOME) ** 2).sum(dim=1)
    cost = 4 * (1 - up) + 6 * low + standing * (distance - 2 + 0.02 * legs)
    return cost + 2e-4 * (sim.data.qvel**2).sum(dim=1)


def upright(sim: Any) -> Tensor:
    """Cosine of the trunk's tilt; (num_envs,)."""
    return 1 - 2 * (sim.data.qpos[:, 4:6] ** 2).sum(dim=1)


def test_a_quadruped_stands_up_from_its_back_and_walks_to_a_point():
    """Within 1.2 s upright and 0.2 m high, and within 4 s 0.3 m from the goal."""
    sim = legged()
    assert float(upright(sim)) < -0.9
    stood: list[bool] = []
    near: list[float] = []

    def look() -> None:
        height = float(sim.data.qpos[0, 2])
        stood.append(float(upright(sim)) > 0.9 and height > 0.2)
        near.append(float((sim.data.qpos[0, :2] - GOAL).norm()))

    planner = PredictiveSampling(
        25, cost=walk_cost, hold=4, samples=48, knots=3, noise=0.2
    )
    for _ in range(10):
        drive(sim, planner, 0.4, replan=2, after_step=look)
        if min(near) < 0.3:
            break
    assert any(stood[:60])
    assert near[0] > 0.9
    assert min(near) < 0.3


# Plans.


def slots_of(sim: Simulation) -> dict[str, bytes]:
    slots = ledger_of(sim).slots
    return {name: slot.tensor.numpy().tobytes() for name, slot in slots.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_touches_nothing_and_costs_what_it_says(kind: type[SamplingPlanner]):
    sim = carts()
    planner: Planner = swinger(kind)
    before = slots_of(sim)
    controls = planner.plan(sim)
    assert slots_of(sim) == before
    assert controls.shape == (2, 80, 1)
    idle = torch.zeros(2, 1, 80, 1, dtype=torch.float64)
    both = torch.cat([controls[:, None], idle], dim=1)
    cost = study.futures(sim, both, cost=swing_cost, every=2).cost
    assert bool((cost[:, 0] < cost[:, 1]).all())
    if kind is PredictiveSampling:  # the plan is the best future itself
        assert planner.best is not None
        assert torch.allclose(planner.best, cost[:, 0], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_world_is_planned_by_itself(kind: type[SamplingPlanner]):
    """A plan has the same bits in a batch, alone, and again with the same seed."""
    both = carts()
    alone = carts(1, first_world=1)
    alone.restore(both.snapshot([1]))
    one, two = swinger(kind), swinger(kind)
    for _ in range(2):
        first, second = one.plan(both), two.plan(alone)
        assert torch.allclose(first[1], second[0], atol=1e-12)
        both.step(4)
        alone.step(4)
    assert not torch.equal(first[0], first[1])
    other = swinger(kind, seed=4).plan(both)
    assert not torch.equal(other, first)


def test_the_last_plan_is_shifted_by_the_time_that_has_passed():
    """With next to no noise a plan is the last one, seen from later on."""
    sim = carts()
    planner = swinger(PredictiveSampling, knots=40)
    first = planner.plan(sim)
    planner.noise = 1e-9
    sim.step(2)
    second = planner.plan(sim)
    assert torch.allclose(second[:, :78], first[:, 2:], atol=1e-6)
    assert torch.allclose(second[:, 78:], first[:, 78:], atol=1e-6)
    assert not torch.allclose(second[:, :78], first[:, :78], atol=0.1)
    sim.reset([1])
    sim.data.ctrl[:] = torch.tensor([[0.1], [-0.7]])
    third = planner.plan(sim)
    assert torch.allclose(third[1], torch.full_like(third[1], -0.7), atol=1e-6)
    assert not torch.allclose(third[0], torch.full_like(third[0], 0.1), atol=1e-2)


def test_bounds_are_the_ranges_of_each_worlds_actuators():
    sim = carts()
    ranges = sim.expand("actuator_ctrlrange")
    ranges[1, 0] = torch.tensor([-0.2, 0.1])
    controls = swinger(MPPI, noise=3.0).plan(sim)
    assert float(controls[0].abs().amax()) > 0.2
    assert -0.2 <= float(controls[1].amin()) < float(controls[1].amax()) <= 0.1
    given = swinger(MPPI, noise=3.0, bounds=(0.3, [0.4])).plan(sim)
    assert 0.3 <= float(given.amin()) <= float(given.amax()) <= 0.4


def test_the_update_of_each_planner():
    knots = torch.tensor([[1.0, 2.0, 4.0, 8.0]], dtype=torch.float64)[..., None, None]
    cost = torch.tensor([[3.0, 1.0, math.inf, 2.0]], dtype=torch.float64)
    spread = torch.ones(1, 1, 1, dtype=torch.float64)
    best, _ = PredictiveSampling(4, samples=4, knots=1).update(knots, cost, spread)
    assert float(best) == 2.0
    mean, _ = MPPI(4, samples=4, knots=1, temperature=0.5).update(knots, cost, spread)
    weights = [math.exp(-x / 0.5) for x in (2.0, 0.0, 1.0)]
    wanted = (weights[0] + 2 * weights[1] + 8 * weights[2]) / sum(weights)
    assert float(mean) == pytest.approx(wanted, rel=1e-12)
    cem = CEM(4, samples=4, knots=1, elites=2, least_spread=0.0)
    mean, wide = cem.update(knots, cost, spread)
    assert float(mean) == 5.0
    assert float(wide) == 3.0
    four = CEM(4, samples=4, knots=1, elites=4).update(knots, cost, spread)[0]
    assert float(four) == pytest.approx(11 / 3)


@pytest.mark.parametrize("kind", KINDS)
def test_futures_that_diverge_are_avoided(kind: type[SamplingPlanner]):
    sim = carts()
    every = kind(4, cost=lambda s: s.time * math.inf, samples=4, knots=2).plan(sim)
    assert bool(every.isfinite().all())
    assert torch.equal(every, torch.zeros_like(every))

    def some(sim: Any) -> Tensor:
        return torch.where(sim.data.ctrl[:, 0] > 0, math.inf, 1.0)

    found = kind(4, cost=some, samples=16, knots=1, interpolation="zero").plan(sim)
    assert float(found.amax()) <= 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_without_a_defined_cost_is_refused(kind: type[SamplingPlanner]):
    """A cost that is missing, or NaN in one of the futures."""
    sim = carts()

    def some(sim: Any) -> Tensor:
        return torch.where(sim.data.ctrl[:, 0] > 0, math.nan, 1.0)

    for cost in (None, some):
        planner = kind(4, cost=cost, samples=16, knots=1, interpolation="zero")
        with raises(InvalidInputError, name="cost"):
            planner.plan(sim)


@pytest.mark.parametrize("kind", ["zero", "linear", "cubic"])
def test_splines_are_those_of_scipy(kind: Any):
    generator = torch.Generator().manual_seed(3)
    knots = torch.rand(6, generator=generator, dtype=torch.float64)
    times = torch.linspace(0, 4.999, 37, dtype=torch.float64)
    found = spline_weights(times, 6, kind) @ knots
    x, y = range(6), knots.numpy()
    if kind == "cubic":
        padded = torch.cat([knots[:1], knots, knots[-1:]])
        slopes = ((padded[2:] - padded[:-2]) / 2).numpy()
        wanted = CubicHermiteSpline(x, y, slopes)(times)
    else:
        name = "previous" if kind == "zero" else "linear"
        wanted = interp1d(x, y, kind=name)(times)
    assert torch.allclose(found, torch.from_numpy(wanted), atol=1e-14)
    beyond = spline_weights(torch.tensor([-1.0, 9.0]), 6, kind) @ knots.float()
    assert torch.allclose(beyond, knots[[0, -1]].float())


def test_a_plan_goes_through_the_knots_of_its_best_candidate():
    sim = carts()
    planner = PredictiveSampling(
        7, cost=swing_cost, samples=5, knots=3, noise=0.4, seed=6, bounds=(-2.0, 3.0)
    )
    plan = planner.plan(sim)
    for world in range(2):
        noise = np.random.default_rng([6, 0, 0, world]).standard_normal((5, 3, 1))
        knots = (0.4 * 2.5 * noise).clip(-2.0, 3.0)
        knots[0] = 0.0
        gaps = np.abs(plan[world, [0, 3, 6]].numpy() - knots).max(axis=(1, 2))
        assert np.sort(gaps)[0] < 1e-12 < np.sort(gaps)[1]
        first, last = plan[world, 0], plan[world, 3]
        assert torch.allclose(plan[world, 1], first + (last - first) / 3)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "horizon": ({"horizon": 0}, "horizon"),
    "samples": ({"samples": 1}, "samples"),
    "knots": ({"knots": 9}, "knots"),
    "noise": ({"noise": 0.0}, "noise"),
    "spline": ({"interpolation": "quintic"}, "quintic"),
    "temperature": ({"temperature": -1}, "temperature"),
    "seed": ({"seed": -1}, "seed"),
    "cost": ({"cost": "reward"}, "cost"),
    "cost call": ({"cost": lambda: 1.0}, "cost"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options(case: str):
    options, wanted = BAD[case]
    with raises(SimStateError, name=wanted):
        MPPI(**{"horizon": 8, **options})


@pytest.mark.parametrize(
    "bounds", [(1.0, -1.0), 3.0, ([0, 0], [1, 1]), "ab", (-math.inf, 1.0)]
)
def test_bad_bounds(bounds: Any):
    with raises(InvalidInputError, name="bounds"):
        swinger(MPPI, bounds=bounds).plan(carts())


def test_bad_arguments_of_drive():
    sim, planner = carts(), swinger(MPPI)
    for given, after_step, name in (
        ((sim, print, 1.0), None, "planner"),
        ((sim, planner, 0.0), None, "seconds"),
        ((sim, planner, 1.0), 3, "after_step"),
    ):
        with raises(InvalidInputError, name=name):
            drive(*given, after_step=after_step)
    assert float(sim.time.max()) == 0.0


def test_a_model_without_actuators_has_nothing_to_plan():
    model = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body>
      </worldbody></mujoco>"""
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model=model)}, ground=False))
    with raises(InvalidInputError, name="target"):
        MPPI(4, knots=2, cost=lambda s: s.time).plan(sim)


def test_a_control_without_a_range_needs_bounds():
    model = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body>
      </worldbody><actuator><motor name="push" joint="a"/></actuator></mujoco>"""
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model=model)}, ground=False))
    with raises(InvalidInputError, name="bounds"):
        MPPI(4, knots=2, cost=lambda s: s.time).plan(sim)


def test_controls_without_a_range_are_named_also_where_an_actuator_has_several():
    model = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body>
      </worldbody><actuator><pid name="servo" joint="a" kp="2"/>
      <motor name="push" joint="a"/></actuator></mujoco>"""
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model=model)}, ground=False))
    with raises(InvalidInputError, name="bounds") as caught:
        MPPI(4, knots=2, cost=lambda s: s.time).plan(sim)
    for name in ("robot/servo:pos", "robot/servo:vel", "robot/push"):
        assert name in str(caught.value)


# The command.


@pytest.mark.parametrize("what", ["Cartpole-SwingUp", "cartpole"])
def test_a_planned_run_is_recorded_with_its_seeds_and_replays(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    from simstate.record import Recording

    path = tmp_path / "run.simrec"
    args = ["plan", what, "--seconds", "0.1", "--samples", "8", "--seed", "5"]
    args += ["--envs", "2", "--replan", "2", "--record", str(path)]
    assert main(args) == 0
    assert "mppi" in capsys.readouterr().out
    with Recording(path) as recording:
        assert set(recording["plan_seed"].flatten().tolist()) == {5}
        decisions = recording["plan_decision"][:, 0].tolist()
        assert decisions[-1] == 2
    assert main(["replay", str(path)]) == 0
    assert "bit for bit" in capsys.readouterr().out


def test_a_cost_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "cost.py"
    file.write_text("def far(sim):\n    return -sim.data.qpos[:, 0] + 7\n")
    args = ["plan", "cartpole", "--seconds", "0.04", "--samples", "8", "--json"]
    assert main([*args, "--cost", f"{file}:far", "--planner", "cem"]) == 0
    assert '"planner": "cem"' in capsys.readouterr().out
    assert main(["plan", "Arm-Reach", "--cost", f"{file}:far"]) == 1
    assert "reward" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--horizon", "--control"])
@pytest.mark.parametrize("value", ["nan", "inf", "0"])
def test_times_on_the_command_line(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["plan", "cartpole", "--seconds", "0.04", option, value]) == 1
    assert f"{option} must be > 0" in capsys.readouterr().err


def test_ilqr_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "cost.py"
    file.write_text("def far(sim):\n    return sim.data.qpos[:, :1] - 0.3\n")
    args = ["plan", "cartpole", "--planner", "ilqr", "--seconds", "0.06", "--json"]
    path = tmp_path / "run.simrec"
    assert main([*args, "--horizon", "0.2", "--record", str(path)]) == 0
    first = json.loads(capsys.readouterr().out)["least_cost"][0]
    assert main([*args, "--horizon", "0.2", "--cost", f"{file}:far"]) == 0
    assert json.loads(capsys.readouterr().out)["least_cost"][0] != first
    assert main(["replay", str(path)]) == 0
    assert "bit for bit" in capsys.readouterr().out
    file.write_text("def far(sim):\n    return 3.0\n")
    assert main([*args, "--cost", f"{file}:far"]) == 1
    assert "must be a tensor of shape (1, m), got float" in capsys.readouterr().err
    assert main(["plan", "Arm-Reah"]) == 1
    assert "Did you mean 'Arm-Reach'" in capsys.readouterr().err
    assert main(["plan", "Arm-Reach", "--planner", "ilqr"]) == 1
    assert "no residuals" in capsys.readouterr().err


def test_distance_from_the_default_state_is_that_of_its_residuals():
    """Half the turn's sine, twice: 4 sin²(θ/2) is 2 (1 − cos θ)."""
    sim = Simulation(scene_of("quadruped"), 2)
    sim.data.qpos[1, 0:3] += torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64)
    turn = torch.tensor([0.9, 0.1, -0.3, 0.2], dtype=torch.float64)
    sim.data.qpos[1, 3:7] = turn / turn.norm()
    sim.data.qvel[1, 2] = 0.5
    angle = 2 * math.acos(0.9 / float(turn.norm()))
    expected = 0.14 + 0.0025 + 2 * (1 - math.cos(angle))
    assert float(from_default(sim)[1]) == pytest.approx(expected)
    assert float(from_default(sim)[0]) == 0.0


def test_viewer_shows_a_planned_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("viser", reason="needs simstate[view]")
    pages: list[bytes] = []
    view = Simulation.view

    def viewed(sim: Simulation, **options: Any) -> Any:
        viewer: Any = view(sim, **options)
        sync = viewer.sync

        def look() -> None:
            with urllib.request.urlopen(viewer.url, timeout=20) as page:
                pages.append(page.read(500))
            sync()

        viewer.sync = look
        return viewer

    monkeypatch.setattr(Simulation, "view", viewed)
    args = ["plan", "cartpole", "--seconds", "0.06", "--samples", "4", "--view"]
    assert main([*args, "--port", "0"]) == 0
    assert len(pages) == 3
    assert b"<html" in pages[-1].lower()
    printed = capsys.readouterr().out
    assert "http://127.0.0.1:" in printed or "http://localhost:" in printed
