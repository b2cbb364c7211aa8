"""What a user's own terms remember has the same guarantees as what ships."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch
from tests.env.stateful import run, stateful_env
from tests.raised import raises

from simstate import InvalidInputError, SnapshotError
from simstate.env import Env, ObservationTermCfg, RewardTermCfg, tasks
from simstate.env.groups import flat
from simstate.env.terms import columns, fixed_columns

OTHER_PROCESS = """
import sys
import torch
from simstate.state import Snapshot
from tests.env.stateful import run, stateful_env

env = stateful_env(seed=7)
env.restore(Snapshot.load(sys.argv[1]))
torch.save(run(env, int(sys.argv[3]), 5), sys.argv[2])
"""


def test_another_process_goes_on_bit_for_bit(tmp_path):
    """Class terms, a delayed action, a curriculum, a stochastic integrator."""
    env = stateful_env()
    run(env, 40, 3)
    env.snapshot().save(tmp_path / "it.npz")
    want = run(env, 500, 5)
    paths = [tmp_path / "it.npz", tmp_path / "other.pt"]
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, *paths, "500"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    got = torch.load(paths[1], weights_only=True)
    assert len(got) == len(want)
    for k, (one, other) in enumerate(zip(want, got, strict=True)):
        assert torch.equal(one, other), k
    assert sum(int(row.sum()) for row in want if row.dtype == torch.bool) > 20


def test_memory_is_named_after_its_term_and_in_the_snapshot():
    env = stateful_env()
    run(env, 35, 3)
    slots = env.snapshot().slots
    one, other = slots["env/reward/air/air_time"], slots["env/reward/air_2/air_time"]
    assert one.shape == other.shape == (4, 4)
    assert float(slots["env/reward/air/resets"].min()) >= 2  # the start is one
    for name in ("observation/policy/speed/mean", "event/drift/drift",
                 "curriculum/harder/ended", "action/late/delayed"):  # fmt: skip
        assert f"env/{name}" in slots, sorted(slots)


def test_memory_is_reset_with_its_world():
    env = stateful_env()
    run(env, 9, 3)
    names = ("env/action/late/delayed", "env/observation/policy/speed/mean")
    before = {name: env.snapshot().slots[name] for name in names}
    drift = env.snapshot().slots["env/event/drift/drift"]
    env.reset(env_ids=[2])
    after = env.snapshot().slots
    assert float(after["env/action/late/delayed"][2].abs().max()) == 0.0
    for name in names:
        rest = [0, 1, 3]
        assert torch.equal(after[name][rest], before[name][rest])
        assert not torch.equal(after[name][2], before[name][2])
    moved = (after["env/event/drift/drift"] != drift).any(1)
    assert moved.tolist() == [False, False, True, False]


def cartpole(**terms) -> Env:
    cfg = tasks.make_cfg("Cartpole-Balance")
    for name, term in terms.items():
        cfg.rewards[name] = RewardTermCfg(term, weight=1.0)
    return Env(cfg, num_envs=3)


class KeepsItself:
    """A class term with a tensor of its own, which changes in place."""

    def __init__(self, cfg, env):
        self.weights = torch.ones(env.num_envs)
        self.total = torch.zeros(env.num_envs)

    def reset(self, env_ids):
        pass

    def __call__(self, env):
        self.total += self.weights
        return self.total.clone()


class Replaces(KeepsItself):
    """The same with a new tensor in each step."""

    def __call__(self, env):
        self.total = self.total + self.weights
        return self.total


class MadeBefore:
    """An object as a term: made by the user, before there is an environment."""

    def __init__(self):
        self.total = None

    def __call__(self, env):
        if self.total is None:
            self.total = torch.zeros(env.num_envs)
        self.total += 1.0
        return self.total.clone()


@pytest.mark.parametrize("make", [lambda: KeepsItself, lambda: Replaces, MadeBefore])
def test_a_term_that_keeps_its_own_tensors_cannot_be_saved(make):
    env = cartpole(mine=make())
    env.step(torch.zeros(3, 1))
    with raises(SnapshotError, name="total"):
        env.snapshot()


@pytest.mark.parametrize("inference", [False, True])
def test_a_tensor_that_is_replaced_in_every_step_is_noticed_after_any_step(inference):
    """Torch's new tensors take the addresses, and thus the ids, of freed ones."""
    env = cartpole(mine=Replaces)
    for _ in range(10):
        with torch.inference_mode(inference):
            env.step(torch.zeros(3, 1))
        with raises(SnapshotError, name="total"):
            env.snapshot()


def test_constants_of_a_term_do_no_harm():
    class Weighted:
        def __init__(self, cfg, env):
            self.weights = torch.linspace(0, 1, env.num_envs)
            self.weights *= 2

        def reset(self, env_ids):
            pass

        def __call__(self, env):
            return self.weights.clone()

    env = cartpole(mine=Weighted)
    env.step(torch.zeros(3, 1))
    env.snapshot()


def test_a_tensor_put_on_the_environment_is_refused():
    env = cartpole()
    with raises(InvalidInputError, name="buffer"):
        env.buffer = torch.zeros(3)
    env.note = "whatever is no tensor"
    assert env.note


def test_a_class_that_cannot_be_called_is_refused():
    class Silent:
        def __init__(self, cfg, env):
            pass

    with raises(InvalidInputError, name="__call__"):
        cartpole(mine=Silent)


def test_wrong_parameters_of_a_class_term_are_reported():
    class Scaled:
        def __init__(self, cfg, env):
            self.scale = cfg.params["scale"]

        def reset(self, env_ids):
            pass

        def __call__(self, env, scale=2.0):
            return torch.full((env.num_envs,), self.scale * scale)

    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.rewards = {"mine": RewardTermCfg(Scaled, params={"scale": 3.0}, weight=1.0)}
    env = Env(cfg, num_envs=2)
    reward = env.step(torch.zeros(2, 1))[1]
    assert reward.tolist() == pytest.approx([9.0 * env.step_dt] * 2)
    cfg.rewards["mine"].params = {"scales": 3.0}
    with raises(Exception, name="scales"):
        Env(cfg, num_envs=2)


def test_rewards_do_not_depend_on_the_number_of_worlds():
    for name in tasks.NAMES:
        envs = [Env(tasks.make_cfg(name), num_envs=n, seed=3) for n in (3, 6, 17)]
        generator = torch.Generator().manual_seed(0)
        for _ in range(12):
            actions = torch.randn(17, envs[0].action_dim, generator=generator)
            parts = [env.step(actions[: env.num_envs]) for env in envs]
            few, *more = (flat(part[0]) for part in parts)
            for group, values in few.items():
                for seen in more:
                    assert torch.equal(seen[group][:3], values), name
            for k in (1, 2):
                assert torch.equal(parts[k][1][:3], parts[0][1]), name


def test_a_worlds_numbers_do_not_depend_on_its_batch():
    """World 5 alone, by its global id, is world 5 of eight."""
    cfg = tasks.make_cfg("Quadruped-Velocity")
    whole = Env(cfg, num_envs=8, seed=2)
    part = Env(cfg, num_envs=3, seed=2, first_world=4)
    action = torch.linspace(-1, 1, 8 * whole.action_dim).reshape(8, -1)
    for _ in range(20):
        want, reward, *_ = whole.step(action)
        got, some, *_ = part.step(action[4:7])
        assert torch.equal(got["policy"], want["policy"][4:7])
        assert torch.equal(some, reward[4:7])


def test_an_observation_of_a_class_term_names_its_columns():
    class Both:
        def __init__(self, cfg, env):
            pass

        def reset(self, env_ids):
            pass

        def __call__(self, env):
            return env.scene["robot"].data.joint_pos.float()

        def column_names(self, env):
            return ["cart", "pole"]

    @columns(fixed_columns("wagon", "mast"))
    class Marked(Both):
        pass

    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.observations["policy"].terms["mine"] = ObservationTermCfg(Both)
    cfg.observations["policy"].terms["marked"] = ObservationTermCfg(Marked)
    names = Env(cfg, num_envs=2).observation_names["policy"]
    assert names[-4:-2] == ["mine/cart", "mine/pole"]
    assert names[-2:] == ["marked/wagon", "marked/mast"]


class Cyclic:
    """A term with containers that contain themselves, and numbers at depths 3 and 4."""

    def __init__(self, cfg, env):
        self.cycle, self.names = [1.0], {"a": 2.0}
        self.cycle.append(self.cycle)
        self.names["self"] = self.names
        self.nested = [[[1.0, [1.0]]]]

    def __call__(self, env):
        return torch.zeros(env.num_envs)

    def reset(self, env_ids):
        pass


def test_containers_of_a_term_are_compared_to_a_depth_of_three(make_env):
    env = make_env(2, rewards={"odd": RewardTermCfg(Cyclic, weight=1.0)})
    term = env.terms[0].instance
    env.snapshot()
    term.nested[0][0][1][0] = 2.0
    env.snapshot()
    for change, name in (
        (lambda: term.nested[0][0].__setitem__(0, 2.0), "nested[0][0][0]"),
        (lambda: term.cycle.__setitem__(0, 3.0), "cycle[0]"),
    ):
        before = copy.deepcopy(vars(term))
        change()
        with raises(SnapshotError, name=name):
            env.snapshot()
        vars(term).update(before)
        env.snapshot()
