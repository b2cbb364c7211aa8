"""Memory of a user's own: asked for at any time, checked, saved, never hidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.world.test_transactions import make

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, SimStateError, SnapshotError
from simstate.env import Env, RewardTermCfg, tasks
from simstate.env.actions import Action, ActionCfg


def cartpole(num_envs=2, **rewards) -> Env:
    cfg = tasks.make_cfg("Cartpole-Balance")
    for name, func in rewards.items():
        cfg.rewards[name] = RewardTermCfg(func=func, weight=1.0)
    return Env(cfg, num_envs, seed=3)


def still(env: Env) -> torch.Tensor:
    return torch.zeros(env.num_envs, env.action_dim)


def counting(env):
    """A function that asks for its memory in every step."""
    count = env.memory("count", reset=2.0)
    level = env.memory("level", (3,), dtype=torch.int64, shared=True)
    count += 1
    level += 1
    return count * level.sum()


def test_memory_that_a_function_asks_for_is_restored_before_it_asks():
    one = cartpole(counts=counting)
    early = one.snapshot()
    for _ in range(4):
        one.step(still(one))
    saved = one.snapshot()
    other = cartpole(counts=counting)
    other.restore(saved)
    other.reset(env_ids=[1])
    one.reset(env_ids=[1])
    for _ in range(3):
        assert torch.equal(one.step(still(one))[1], other.step(still(other))[1])
    one.restore(early)
    fresh = cartpole(counts=counting)
    assert torch.equal(one.step(still(one))[1], fresh.step(still(fresh))[1])


@pytest.mark.parametrize("value", [2.5, None, [4.0, 5.0]])
def test_memory_that_a_snapshot_brought_is_reset_as_its_owner_says(value):
    """The owner asks for it after the restore, and before the reset."""

    def kept(env):
        return env.memory("kept", reset=value).add_(1.0).clone()

    one, other = cartpole(counts=kept), cartpole(counts=kept)
    one.step(still(one))
    other.restore(one.snapshot())
    for env in (one, other):
        env.step(still(env))
        env.reset(env_ids=[1])
    got, want = (env.step(still(env))[1] for env in (other, one))
    assert torch.equal(got, want)
    name = "env/reward/counts/kept"
    assert torch.equal(*(env.snapshot().slots[name] for env in (one, other)))


def test_each_world_is_reset_to_its_own_row():
    sim = Simulation(SceneCfg(entities={"c": EntityCfg(model="cube")}), 3)
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    own = sim.memory("own", (2,), dtype=torch.float32, reset=rows)
    own += 10.0
    sim.reset(env_ids=[2, 0])
    assert own.tolist() == [[1.0, 2.0], [13.0, 14.0], [5.0, 6.0]]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("reset", "start"), [(None, [0, 0]), (2.5, [2.5, 2.5]), ([3.0, -1.0], [3, -1])]
)
def test_memory_starts_at_its_value_at_reset_or_zero(shared, reset, start):
    sim = Simulation(SceneCfg(entities={"c": EntityCfg(model="cube")}), 2)
    own = sim.memory("own", (2,), reset=reset, shared=shared)
    assert own.tolist() == (start if shared else [start, start])
    own += 1.0
    kept = own.tolist()
    sim.reset()
    is_kept = shared or reset is None
    assert own.tolist() == (kept if is_kept else [start, start])


@pytest.mark.parametrize("shared", [False, True])
def test_memory_may_hold_what_is_no_number(shared):
    """Of a world that waits for its first measurement, for instance."""
    sim = Simulation(SceneCfg(entities={"c": EntityCfg(model="cube")}), 3)
    own = sim.memory("own", (3,), shared=shared)
    own[1] = torch.nan
    saved, want = sim.snapshot(), own.clone()
    own.fill_(7.0)
    sim.restore(saved)
    assert torch.equal(own.isnan(), want.isnan())
    assert torch.equal(own.nan_to_num(8.0), want.nan_to_num(8.0))


def test_memory_of_a_term_that_is_not_there_is_refused():
    one = cartpole(counts=counting)
    one.step(still(one))
    with raises(SnapshotError, name="env/reward/counts/count"):
        cartpole().restore(one.snapshot())


def test_a_graph_of_a_term_does_no_harm():
    weight = torch.ones(1, requires_grad=True)
    env = cartpole(net=lambda env: env.scene["robot"].data.joint_pos[:, 0] * weight)
    for _ in range(3):
        reward = env.step(still(env))[1]
    assert not reward.requires_grad
    mine = env.memory("mine")
    mine[:] = weight
    env.memory("mine")
    env.memory("other")[:] = 1.0
    env.step(still(env))
    assert env.snapshot().slots["env/memory/mine"].tolist() == [1.0, 1.0]


def test_a_graph_in_one_slot_stays_out_of_the_others():
    sim = make()
    mine = sim.memory("watched", stage="acceleration")
    mine[:] = torch.ones(1, requires_grad=True)
    sim.step()
    mine[:] = 0.5
    sim.scene["robot"].data.default_joint_pos[:] += 0.1
    sim.step()
    assert not mine.requires_grad


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"shape": (-2,)}, "shape"),
        ({"shape": (2.5,)}, "shape"),
        ({"shape": 3}, "shape"),
        ({"dtype": torch.bfloat16}, "dtype"),
        ({"dtype": "float"}, "dtype"),
        ({"stage": "foo"}, "foo"),
        ({"stage": "state"}, "state"),
        ({"dtype": torch.int64, "reset": 0.7}, "memory/bad"),
        ({"name": ""}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": None}, "name"),
        ({"shared": True, "reset": lambda ids: ids}, "reset"),
    ],
)
def test_what_cannot_be_a_memory_is_refused_and_changes_nothing(arguments, name):
    sim = make()
    before = sim.memory("before", (3,))
    with raises(SimStateError, name=name):
        sim.memory(**{"name": "bad", **arguments})
    sim.memory("after", (3,)).fill_(7.0)
    assert not before.any()
    sim.step()


def test_ids_that_a_reset_function_gets_are_its_own():
    sim = make()
    sim.memory("drawn", reset=lambda ids: ids.add_(1).to(torch.float64) * 0.0)
    sim.step(3)
    time = sim.time.clone()
    sim.reset(torch.tensor([0, 1]))
    assert sim.time.tolist() == [0.0, 0.0, float(time[2])]
    sim.reset(torch.tensor([1, 2]))
    assert sim.time.tolist() == [0.0, 0.0, 0.0]


class Hidden:
    """Remembers something in a way that no snapshot sees."""

    def __init__(self, cfg, env):
        self.tensors = [torch.zeros(2)]
        self.level = 0.0
        self.array = np.zeros(3)
        self.by_name = {"deep": [torch.zeros(5, 2)]}
        self.net = torch.nn.BatchNorm1d(1)
        self.constant = torch.arange(4.0)

    def reset(self, env_ids):
        pass

    def __call__(self, env, how="level"):
        if how == "level":
            self.level += 1
        elif how == "list":
            self.tensors[0] += 1
        elif how == "array":
            self.array += 1
        elif how == "deep":
            self.by_name["deep"][0] += 1
        elif how == "new":
            self.fresh = torch.zeros(3)
        elif how == "net":
            self.net(torch.randn(4, 1))
        return torch.zeros(env.num_envs) + self.constant[0]


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ("level", "level"),
        ("list", "tensors[0]"),
        ("array", "array"),
        ("deep", "by_name['deep'][0]"),
        ("new", "fresh"),
        ("net", "net.num_batches_tracked"),
    ],
)
def test_what_a_term_hides_is_found(how, name):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.rewards["hidden"] = RewardTermCfg(Hidden, weight=1.0, params={"how": how})
    env = Env(cfg, num_envs=2)
    env.snapshot()
    env.step(still(env))
    with raises(SnapshotError, name=name):
        env.snapshot()


def test_tensors_do_not_hang_off_the_environment():
    class Puts:
        def __init__(self, cfg, env):
            env.buffer = torch.zeros(2)

        def reset(self, env_ids):
            pass

        def __call__(self, env):
            return env.buffer

    with raises(InvalidInputError, name="buffer"):
        cartpole(puts=Puts)
    env = cartpole()
    with raises(InvalidInputError, name="action"):
        env.action = torch.zeros(2, 1)
    env.action[:] = 0.5


class BufferCfg(ActionCfg):
    """An action that keeps what it got, under a name that others use as well."""

    def make(self, name, env):
        return Buffer(name, env)


class Buffer(Action):
    names = ("one",)

    def __init__(self, name, env):
        self.seen = env.memory("buffer", (1,))
        self.resets = env.memory("resets", dtype=torch.int64, reset=None)

    def apply(self, action):
        self.seen.copy_(action)

    def reset(self, env_ids):
        self.resets[env_ids] += 1


def test_actions_have_memory_and_resets_of_their_own():
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.actions = {"first": BufferCfg(), "second": BufferCfg()}
    env = Env(cfg, num_envs=3)
    env.step(torch.tensor([[0.1, 0.2]] * 3))
    first, second = env.actions["first"], env.actions["second"]
    assert first.seen[:, 0].tolist() == pytest.approx([0.1] * 3)
    assert second.seen[:, 0].tolist() == pytest.approx([0.2] * 3)
    env.reset(env_ids=[2])
    assert second.resets.tolist() == [1, 1, 2]
    assert float(second.seen[2]) == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 1, 2)])
def test_memory_of_any_shape_is_restored_before_it_is_asked_for(shape, dtype):
    """Each number of each world counts the steps from a value of its own."""

    def kept(env):
        memory = env.memory("kept", shape, dtype=dtype, reset=None)
        first = env.memory("first", dtype=torch.bool, reset=None)
        numbers = torch.arange(memory.numel()).view_as(memory)
        memory[~first] = (numbers % 3).to(dtype)[~first]
        first |= True
        memory.copy_((memory.double() + 1).to(dtype))
        return memory.double().flatten(1).sum(dim=1)

    one, other = cartpole(3, counts=kept), cartpole(3, counts=kept)
    for _ in range(2):
        one.step(still(one))
    saved = one.snapshot()
    other.restore(saved)
    name = "env/reward/counts/kept"
    assert tuple(saved.slots[name].shape) == (3, *shape)
    assert torch.equal(other.snapshot().slots[name], saved.slots[name])
    assert other.snapshot().slots[name].dtype == dtype
    assert torch.equal(one.step(still(one))[1], other.step(still(other))[1])
