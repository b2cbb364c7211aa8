"""`simstate plan`: the planner that its options make, and the facts that it prints."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from simstate.cli import main
from simstate.study import planners


@pytest.fixture
def planned(monkeypatch, capsys):
    """Runs the command without stepping; returns how it drives, and its facts."""

    def run(*args: str):
        found = SimpleNamespace()

        def drive(target, planner, seconds, **options):
            vars(found).update(
                target=target, planner=planner, seconds=seconds, **options
            )
            if isinstance(planner, planners.SamplingPlanner):
                planner.best = torch.tensor([2.5, 0.5])
            rewards = torch.tensor([[1.0, 2.0], [0.25, 0.5], [0.5, -4.0]])
            return SimpleNamespace(plans=8, rewards=rewards)

        monkeypatch.setattr(planners, "drive", drive)
        assert main(["plan", *args, "--json"]) == 0
        found.facts = json.loads(capsys.readouterr().out)
        assert main(["plan", *args]) == 0
        found.text = capsys.readouterr().out
        return found

    return run


def test_a_model_holds_each_control_for_a_time(planned):
    """A time step of the cart and pole is 5 ms."""
    found = planned("cartpole", "--envs", "2", "--horizon", "0.3", "--seed", "4")
    assert isinstance(found.planner, planners.MPPI)
    assert (found.planner.hold, found.planner.horizon) == (4, 15)  # of 20 ms
    assert (found.planner.samples, found.planner.knots) == (64, 6)
    assert (found.planner.noise, found.planner.seed) == (0.4, 4)
    assert (found.seconds, found.replan) == (10.0, 1)
    assert found.target.num_envs == 2
    assert found.facts["least_cost"] == [2.5, 0.5]
    assert "return" not in found.facts
    assert "2.5, 0.5" in found.text
    assert "2 worlds" in found.text


@pytest.mark.parametrize(
    ("control", "horizon", "hold", "steps"),
    [("0.001", "0.001", 1, 1), ("0.0124", "0.05", 2, 5), ("0.0126", "0.05", 3, 3)],
)
def test_times_are_rounded_to_steps(planned, control, horizon, hold, steps):
    args = ["cartpole", "--control", control, "--horizon", horizon, "--planner", "cem"]
    found = planned(*args, "--envs", "2")
    assert isinstance(found.planner, planners.CEM)
    assert (found.planner.hold, found.planner.horizon) == (hold, steps)
    assert found.planner.knots == min(6, steps)


def test_a_task_plans_in_its_own_steps(planned):
    """A step of the task is 20 ms."""
    args = ["Cartpole-Balance", "--envs", "2", "--horizon", "0.2", "--samples", "9"]
    args += ["--planner", "predictive-sampling", "--spread", "0.7", "--replan", "3"]
    found = planned(*args, "--knots", "4", "--seconds", "1.5")
    assert isinstance(found.planner, planners.PredictiveSampling)
    assert (found.planner.hold, found.planner.horizon) == (1, 10)
    assert (found.planner.samples, found.planner.knots) == (9, 4)
    assert (found.planner.noise, found.replan, found.seconds) == (0.7, 3, 1.5)
    assert found.facts["return"] == [1.75, -1.5]
    assert found.facts["last_reward"] == [0.5, -4.0]
    assert found.facts["plans"] == 8
    assert "least_cost" not in found.facts


def test_ilqr_has_residuals_of_a_model(planned):
    found = planned("cartpole", "--planner", "ilqr", "--envs", "1", "--horizon", "0.1")
    assert isinstance(found.planner, planners.iLQR)
    assert (found.planner.hold, found.planner.horizon) == (4, 5)
    assert "1 world\n" in found.text or "1 world " in found.text


def test_seconds_of_a_plan_are_those_of_the_cpu(planned, monkeypatch):
    from simstate.cli import plan

    times = iter([10.0, 14.0, 0.0, 1.0])
    monkeypatch.setattr(plan.time, "process_time", lambda: next(times))
    found = planned("cartpole", "--envs", "2")
    assert found.facts["cpu_seconds_per_plan"] == 0.5  # 4 s, 8 plans
