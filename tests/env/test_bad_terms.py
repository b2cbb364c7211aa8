"""Bad terms: an error of simstate's that names them, and worlds that are unchanged."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from tests.raised import raises

import simstate.interop.gymnasium  # noqa: F401  (registers the tasks)
from simstate.base.errors import InvalidInputError, SimStateError, UnknownNameError
from simstate.env import (
    EventTermCfg,
    MetricTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)

KINDS = ("reward", "termination", "metric", "observation")
NOT_A_NUMBER = float("nan")


BAD: dict[str, object] = {}
"""What a term of this kind returns while it is set."""
USUAL = {
    "reward": torch.zeros(4), "metric": torch.zeros(4),
    "termination": torch.zeros(4, dtype=torch.bool), "observation": torch.zeros(4, 2),
}  # fmt: skip


def parts(kind):
    def term(env):
        return BAD.get(kind, USUAL[kind])

    if kind == "observation":
        group = ObservationGroupCfg({"odd": ObservationTermCfg(term)})
        return {"observations": {"policy": group}}
    cfg = {
        "reward": RewardTermCfg(term, weight=1.0), "metric": MetricTermCfg(term),
        "termination": TerminationTermCfg(term),
    }[kind]  # fmt: skip
    return {f"{kind}s": {"odd": cfg}}


def bad_values(kind):
    """By mistake: a value, and what the error says."""
    shape = (4, 2) if kind == "observation" else (4,)
    found = {
        "fewer worlds": (torch.zeros(3, *shape[1:]), r"shape.*\(3"),
        "a number": (1.5, "shape.*float"),
        "nothing": (None, "shape.*NoneType"),
        "complex numbers": (torch.zeros(shape, dtype=torch.complex64), "complex64"),
        "texts": (np.full(shape, "far"), "<U3"),
        "objects": (np.full(shape, None), "object"),
        "another device": (torch.zeros(shape, device="meta"), "device 'meta'"),
    }
    if kind == "termination":
        found["numbers for booleans"] = (torch.zeros(shape), "booleans.*float32")
    else:
        odd = torch.ones(shape)
        odd.view(4, -1)[2, -1] = NOT_A_NUMBER
        found["NaN in one world"] = (odd, r"nan in world 2")
    return found


CASES = [(kind, mistake) for kind in KINDS for mistake in bad_values(kind)]


def slots(env):
    return {name: values.clone() for name, values in env.snapshot().slots.items()}


@pytest.mark.parametrize(("kind", "mistake"), CASES)
def test_a_bad_term_is_named_and_worlds_stay(
    make_env, given, monkeypatch, kind, mistake
):
    env = make_env(4, **parts(kind))
    actions = given(env, 3)
    env.step(actions[0])
    before = slots(env)
    bad, _ = bad_values(kind)[mistake]
    monkeypatch.setitem(BAD, kind, bad)
    where = "policy/" if kind == "observation" else ""
    with raises(SimStateError, name=f"{where}odd"):
        env.step(actions[1])
    after = slots(env)
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert torch.equal(values, after[name]), name
    monkeypatch.delitem(BAD, kind)
    env.step(actions[2])  # and the worlds go on


class WithoutReset:
    def __init__(self, cfg, env):
        self.value = env.memory("value", ())

    def __call__(self, env):
        return self.value


class EventWithoutReset(WithoutReset):
    def __call__(self, env, env_ids):
        pass


@pytest.mark.parametrize(
    "parts",
    [
        {"rewards": {"odd": RewardTermCfg(WithoutReset, weight=1.0)}},
        {"metrics": {"odd": MetricTermCfg(WithoutReset)}},
        {"terminations": {"odd": TerminationTermCfg(WithoutReset)}},
        {"events": {"odd": EventTermCfg(EventWithoutReset, mode="step")}},
    ],
)
def test_a_class_without_reset_is_named(make_env, parts):
    with raises(InvalidInputError, name="reset"):
        make_env(**parts)


def test_unknown_metrics_and_reductions_are_named(make_env, given):
    with raises(UnknownNameError, name="upright_"):
        make_env(metrics={"odd": MetricTermCfg("upright_")})
    with raises(UnknownNameError, name="median"):
        make_env(metrics={"odd": MetricTermCfg("is_alive", reduction="median")})
    env = make_env(metrics={"alive": MetricTermCfg("is_alive")})
    before = slots(env)
    with raises(UnknownNameError, name="alife"):
        env.metrics.value("alife")
    after = slots(env)
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("task", ["simstate/Ant-v5", "simstate/Quadruped-Velocity-v0"])
def test_unknown_keywords_of_make_vec_are_named(task):
    for make in (
        gymnasium.make,
        lambda *a, **k: gymnasium.make_vec(*a, num_envs=3, **k),
    ):
        with raises(SimStateError, name="ctrl_cost_wait"):
            make(task, ctrl_cost_wait=0.1)
