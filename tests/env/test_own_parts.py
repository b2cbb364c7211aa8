"""Class terms, actions and commands that a user writes, with mistakes in them."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tests.raised import raises
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.env import (
    Env,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    either,
)
from simstate.env.actions import Action, ActionCfg, JointPositionActionCfg
from simstate.env.commands import Command, CommandCfg

pytestmark = pytest.mark.fast


def cfg_of(made: Any, base: type) -> Any:
    """A configuration whose `make` calls `made(name, cfg, env)`."""

    @dataclasses.dataclass(kw_only=True)
    class Mine(base):
        def make(self, name: str, env: Env) -> Any:
            return made(name, self, env)

    return Mine


def with_action(made: Any) -> dict[str, Any]:
    return {"actions": {"mine": cfg_of(made, ActionCfg)()}}


def with_command(made: Any) -> dict[str, Any]:
    cfg = cfg_of(made, CommandCfg)(resampling_time_s=(0.02, 0.03))
    return {"commands": {"mine": cfg}}


def observed(*functions: Any) -> dict[str, Any]:
    terms = {f"mine{k}": ObservationTermCfg(f) for k, f in enumerate(functions)}
    return {"observations": {"policy": ObservationGroupCfg(terms)}}


class Smoothed(Action):
    """Joint targets by a first-order lag, whose memory is the environment's."""

    names = ("hip", "knee")

    def __init__(self, name: str, cfg: ActionCfg, env: Env) -> None:
        self.entity = env.scene[cfg.asset_name]
        self.lagged = env.memory("lagged", (2,), dtype=env.sim.dtype)

    def apply(self, action: Tensor) -> None:
        self.lagged += 0.25 * (action - self.lagged)
        self.entity.set_joint_position_target(self.lagged)


class Height(Command):
    """A height of the root link [m]."""

    names = ("height",)

    def __init__(self, name: str, cfg: CommandCfg, env: Env) -> None:
        super().__init__(name, cfg, env)

    @property
    def offset(self) -> Tensor:
        return self.command - self.entity.data.root_link_pos_w[:, 2:]

    def sample(self, env_ids: Tensor) -> None:
        self.command[env_ids] = self.uniform(env_ids, (0.4, 0.7))


class SlowVelocity:
    """A class term: joint velocities by a first-order lag."""

    def __init__(self, cfg: ObservationTermCfg, env: Env) -> None:
        self.slow = env.memory("slow", (2,), dtype=env.sim.dtype)

    def __call__(self, env: Env, rate: float = 0.5) -> Tensor:
        self.slow += rate * (env.scene["robot"].data.joint_vel - self.slow)
        return self.slow

    def reset(self, env_ids: Tensor) -> None:
        pass


def test_own_parts_compute_what_they_say(make_env, given):
    parts = with_action(Smoothed) | with_command(Height) | observed(SlowVelocity)
    env = make_env(3, **parts)
    lagged, slow = torch.zeros(3, 2).double(), torch.zeros(3, 2).double()
    error_sum = torch.zeros(3)
    robot, height = env.scene["robot"], env.commands["mine"]
    for action in given(env, 6):
        asked = height.command.clone()
        found = env.step(action)[0]["policy"]
        lagged += 0.25 * (action.double() - lagged)
        slow += 0.5 * (robot.data.joint_vel - slow)
        error_sum += (asked - robot.data.root_link_pos_w[:, 2:]).abs()[:, 0].float()
        torch.testing.assert_close(robot.data.joint_pos_target, lagged)
        torch.testing.assert_close(found.double(), slow, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(height.error_sum, error_sum, rtol=1e-5, atol=1e-5)
    assert len(set(height.command[:, 0].tolist())) == 3
    env.reset(env_ids=[2, 0])
    kept = [name for name, x in (("a", lagged), ("b", slow)) if x[1].abs().min() > 0]
    assert kept == ["a", "b"]
    torch.testing.assert_close(env.actions["mine"].lagged[1], lagged[1])
    assert not env.actions["mine"].lagged[[0, 2]].any()


@pytest.mark.parametrize("names", [None, "height", ["height", 2], 1.0])
def test_names_of_columns_are_a_sequence_of_texts(make_env, names):
    action = type("Mine", (Smoothed,), {"names": names})
    command = type("Mine", (Height,), {"names": names})
    for parts in (with_action(action), with_command(command)):
        with raises(InvalidInputError, name="names"):
            make_env(2, **parts)


def test_make_returns_the_part(make_env):
    for parts in (with_action(lambda *given: None), with_command(lambda *given: None)):
        with raises(InvalidInputError, name="make"):
            make_env(2, **parts)


def test_a_command_calls_the_constructor_of_its_base(make_env):
    incomplete = type("Mine", (Height,), {"__init__": lambda self, *given: None})
    with raises(InvalidInputError, name="mine"):
        make_env(2, **with_command(incomplete))


@pytest.mark.parametrize("shape", [(3,), (1, 1)])
def test_an_offset_has_a_row_for_each_world(make_env, shape):
    offset = property(lambda self: torch.zeros(shape))
    with raises(ShapeError, name="mine"):
        make_env(3, **with_command(type("Mine", (Height,), {"offset": offset})))


WRONG: dict[str, bool] = {}
"""Methods that raise while their name is here."""


def failing(base: type, method: str) -> type:
    def fail(self: Any, *given: Any) -> Any:
        if method in WRONG:
            raise RuntimeError("mistake")
        return getattr(base, method)(self, *given)

    return type("Mine", (base,), {method: fail})


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("action", "apply"),
        ("action", "reset"),
        ("command", "sample"),
        ("command", "reset"),
    ],
)
def test_an_error_in_a_part_names_it(make_env, given, monkeypatch, kind, method):
    made = with_action if kind == "action" else with_command
    parts = made(failing(Smoothed if kind == "action" else Height, method))
    env = make_env(2, **parts)
    actions = given(env, 3)
    env.step(actions[0])
    before = env.snapshot()
    monkeypatch.setitem(WRONG, method, True)
    call = env.reset if "reset" in method else partial(env.step, actions[1])
    with pytest.raises(RuntimeError) as raised:
        call()
    assert raised.value.__notes__ == [f"It was raised in the {kind} term 'mine'."]
    WRONG.clear()
    env.restore(before)
    env.step(actions[2])


class WithoutCfg(SlowVelocity):
    def __init__(self, env: Env) -> None:
        pass


class WithoutIds(SlowVelocity):
    def reset(self) -> None:
        pass


class WithoutConstructor:
    def __call__(self, env: Env) -> Tensor:
        return torch.zeros(env.num_envs, 1)

    def reset(self, env_ids: Tensor) -> None:
        pass


def test_a_class_term_is_called_with_its_configuration_and_ids(make_env):
    for kind, name in (
        (WithoutCfg, "WithoutCfg"), (WithoutConstructor, "WithoutConstructor"),
        (WithoutIds, "reset"),
    ):  # fmt: skip
        with raises(InvalidInputError, name=name):
            make_env(2, **observed(kind))


class StaticReset(WithoutIds):
    @staticmethod
    def reset(env_ids: Tensor) -> None:
        pass


def of_either(env: Env, asset: SceneEntityCfg | str = "robot") -> Tensor:
    return env.scene[str(asset)].data.joint_pos


def test_a_static_reset_and_a_text_for_an_entity_are_allowed(make_env, given):
    env = make_env(2, **observed(of_either))
    assert env.step(given(env, 1)[0])[0]["policy"].shape == (2, 2)
    env = make_env(2, **observed(StaticReset))
    env.reset(env_ids=[1])


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def unprintable(env: Env) -> Tensor:
    raise UnprintableError


def test_an_error_that_cannot_be_printed_is_raised_unchanged(make_env):
    with pytest.raises(UnprintableError):
        make_env(2, **observed(unprintable))


def shortened(env: Env) -> Tensor:
    env.max_episode_length = 5
    return torch.zeros(env.num_envs, 1)


def test_a_term_sets_no_setting_of_the_environment(make_env):
    with raises(InvalidInputError, name="max_episode_length"):
        make_env(2, **observed(shortened))


def test_ranges_and_scales_may_be_arrays(make_env):
    cfg = JointPositionActionCfg(
        scale=torch.tensor(2.0), clip=np.array([-1.0, 0.5]), joint_names=[".*"]
    )
    action = make_env(2, actions={"mine": cfg}).actions["mine"]
    assert action.scale.unique().tolist() == [2.0]
    assert float(action.targets(torch.ones(2, len(action.names))).max()) == 0.5


def counted(env: Env) -> Tensor:
    env.counter = getattr(env, "counter", 0) + 1
    return torch.zeros(env.num_envs, 1)


def counted_arrays(env: Env) -> Tensor:
    env.counts = env.episode_length_buf.numpy() + 1
    return torch.zeros(env.num_envs, 1)


@either
def counted_on_host(env: Any) -> Any:
    env.counter = 1
    return env.xp.zeros((env.num_envs, 1))


@pytest.mark.parametrize("function", [counted, counted_arrays, counted_on_host])
def test_a_term_keeps_no_number_on_the_environment(make_env, function):
    name = "counts" if function is counted_arrays else "counter"
    with raises(SimStateError, name=name):
        make_env(2, **observed(function))


def test_outside_of_terms_an_environment_takes_numbers(make_env, given):
    env = make_env(2)
    env.episodes = 3
    env.auto_reset = False
    env.step(given(env, 1)[0])
    assert env.episodes == 3
