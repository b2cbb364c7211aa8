"""Metrics, kinds of ends, and the episodes that a step reports."""

from __future__ import annotations

import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.env import (
    MetricTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
    terminations,
)
from simstate.train.evaluate import evaluate

CLOCK = torch.tensor([3.0, -1.0, 0.5])  # a factor for each world


def ticking(env):
    """Steps of the episode, times a factor: by world 3, 6, 9 …; −1, −2 …; ½, 1 …"""
    return env.episode_length_buf * CLOCK.to(torch.float64)


METRICS = {
    name: MetricTermCfg(ticking, reduction=name)
    for name in ("last", "mean", "max", "sum")
}


def after(steps):
    """A term that ends world k after `steps[k]` steps of its episode."""
    due = torch.tensor(steps)
    return lambda env: env.episode_length_buf >= due


ENDS = {
    "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
    "fallen": TerminationTermCfg(after([4, 99, 99])),
    "lifted": TerminationTermCfg(after([99, 5, 99]), kind="success"),
    "stopped": TerminationTermCfg(after([99, 99, 6]), kind="other"),
    "left": TerminationTermCfg(after([99, 5, 99]), time_out=True, kind="other"),
}
REWARDS = {
    "one": RewardTermCfg(lambda env: torch.ones(3), weight=2.0),
    "two": RewardTermCfg(lambda env: CLOCK, weight=-0.5),
}


@pytest.fixture
def env(make_env):
    return make_env(3, metrics=METRICS, terminations=ENDS, rewards=REWARDS)


def run(env, steps):
    """Steps without action; the extras of each."""
    still = torch.zeros(env.num_envs, env.action_dim)
    return [env.step(still)[4] for _ in range(steps)]


def test_reductions_are_over_the_episode(env):
    run(env, 3)
    torch.testing.assert_close(env.metrics.value("last"), 3 * CLOCK.double())
    torch.testing.assert_close(env.metrics.value("mean"), 2 * CLOCK.double())
    torch.testing.assert_close(env.metrics.value("sum"), 6 * CLOCK.double())
    assert env.metrics.value("max").tolist() == [9.0, -1.0, 1.5]
    env.reset(env_ids=[2])
    run(env, 1)
    assert env.metrics.value("sum").tolist()[2] == 0.5
    assert env.metrics.value("max").tolist()[2] == 0.5


def test_metrics_go_with_snapshots_and_not_into_rewards(env):
    run(env, 2)
    kept, sums = env.snapshot(), env.metrics.value("sum").clone()
    run(env, 1)
    env.restore(kept)
    assert torch.equal(env.metrics.value("sum"), sums)
    reward = env.step(torch.zeros(3, env.action_dim))[1]
    torch.testing.assert_close(reward, env.step_dt * (2.0 - 0.5 * CLOCK))


def test_ended_episodes_are_reported_world_by_world(env):
    extras = run(env, 6)
    assert [x["episodes"] is None for x in extras] == [True] * 3 + [False] * 3
    first, second, third = (x["episodes"] for x in extras[3:])
    assert first.env_ids.tolist() == [0]
    assert first.length.tolist() == [4]
    assert first.reason(0) == "fallen"
    assert second.reason(0) == "lifted,left"
    assert second.metrics["sum"].tolist() == [-15.0]
    part = -0.5 * 0.5 * 6 * env.step_dt
    torch.testing.assert_close(third.rewards["two"], torch.tensor([part]))
    total = third.rewards["one"] + third.rewards["two"]
    torch.testing.assert_close(third.returns, total)
    kinds = [
        [kind for kind, ended in episodes.kinds.items() if ended[0]]
        for episodes in (first, second, third)
    ]
    assert kinds == [["failure"], ["success", "other"], ["other"]]


def test_the_log_has_kinds_and_metrics(env):
    log = run(env, 5)[4]["log"]
    assert log["Episode_End/success"] == 1.0
    assert log["Episode_End/failure"] == 0.0
    assert log["Episode_End/time_out"] == 0.0
    assert log["Metrics/mean"] == pytest.approx(-3.0)
    assert log["Episode_Termination/lifted"] == 1


def test_an_evaluation_tells_success_from_failure(make_env):
    env = make_env(
        3, metrics=METRICS, terminations=ENDS, rewards=REWARDS, auto_reset=False
    )
    still = torch.zeros(3, env.action_dim)
    found = evaluate(env, lambda seen: still, seconds=10 * env.step_dt)
    assert (found.failures, found.successes) == (1, 1)
    assert found.can_succeed
    assert found.success_rate == pytest.approx(1 / 3)
    assert found.ends == {
        "time_out": 0, "fallen": 1, "lifted": 1, "stopped": 1, "left": 1, "diverged": 0,
    }  # fmt: skip
    # Worlds count for 4, 5 and 6 steps.
    given = 2.0 * (4 + 5 + 6) * env.step_dt / 3
    assert found.returns["one"] == pytest.approx(given)
    lost = -0.5 * float(CLOCK @ torch.tensor([4.0, 5, 6])) * env.step_dt / 3
    assert found.returns["two"] == pytest.approx(lost)
    assert found.metrics["last"] == pytest.approx((12 - 5 + 3) / 3)


@pytest.mark.parametrize(
    ("parts", "error", "name"),
    [
        ({"metrics": {"x": MetricTermCfg(ticking, reduction="median")}},
         UnknownNameError, "median"),
        ({"metrics": {"x": MetricTermCfg("no_such")}}, UnknownNameError, "no_such"),
        ({"metrics": {"x": 3}}, InvalidInputError, "EnvCfg.metrics['x']"),
        ({"terminations": {"x": TerminationTermCfg(after([1, 2, 3]), kind="won")}},
         UnknownNameError, "won"),
        ({"terminations": {"x": TerminationTermCfg(after([1, 2, 3]), kind="time_out")}},
         InvalidInputError, "time_out"),
    ],
)  # fmt: skip
def test_wrong_configurations_are_named(make_env, parts, error, name):
    with raises(error, name=name):
        make_env(3, **parts)


@pytest.mark.parametrize(
    ("func", "error", "name"),
    [
        (lambda env: torch.tensor([1.0, float("nan"), 2.0]), InvalidInputError,
         "odd"),
        (lambda env: torch.ones(2), ShapeError, "odd"),
    ],
)  # fmt: skip
def test_a_wrong_metric_leaves_the_worlds(make_env, func, error, name):
    env = make_env(3, metrics={"odd": MetricTermCfg(func)})
    before = env.sim.state.clone()
    with raises(error, name=name):
        run(env, 1)
    assert torch.equal(env.sim.state, before)


def test_unknown_metrics_are_named(env):
    with raises(UnknownNameError, name="reach"):
        env.metrics.value("reach")
