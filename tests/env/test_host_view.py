"""Terms on NumPy arrays: `env.host`, `either`, and the plan that calls them."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest
import torch
from tests.inside import share_in_step
from tests.raised import raises

from simstate import EntityCfg, SceneCfg
from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    SimStateError,
    SnapshotError,
    ThreadError,
    UnknownNameError,
)
from simstate.env import (
    Env,
    JointEffortActionCfg,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    VelocityCommandCfg,
    either,
    observations,
    rewards,
    tasks,
)
from simstate.env.actions import JointAction
from simstate.env.commands import VelocityCommand


def actions(env, scale=0.4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(env.num_envs, env.action_dim, generator=generator) * scale


def as_tensor(env):
    return env.scene["robot"].data.root_link_lin_vel_b[:, :2].square().sum(-1)


def on_host(env):
    velocity = env.host.scene["robot"].data.root_link_lin_vel_b[:, :2]
    assert isinstance(velocity, np.ndarray)
    return (velocity**2).sum(-1)


@either
def as_either(env):
    velocity = env.scene["robot"].data.root_link_lin_vel_b[:, :2]
    return (velocity**2).sum(-1)


def test_three_ways_to_write_a_term(make_env):
    ways = (as_tensor, on_host, as_either)
    terms = {way.__name__: RewardTermCfg(way, weight=-1.7) for way in ways}
    env = make_env(3, rewards=terms)
    for k in range(4):
        env.step(actions(env, seed=k))
    sums = [env.rewards.episode_sum(name) for name in terms]
    assert sums[0].abs().min() > 0
    torch.testing.assert_close(sums[1], sums[0], rtol=1e-6, atol=0)
    assert torch.equal(sums[2], sums[1])


def test_terms_get_arrays_on_the_host_and_tensors_elsewhere(make_env, engine):
    seen = []

    @either
    def watched(env):
        seen.append((env.xp, type(env.sim.data.qpos), type(env.action)))
        return env.action[:, 0] * 0.5

    make_env(2, engine=engine, rewards={"w": RewardTermCfg(watched, weight=1.0)}).step(
        torch.zeros(2, 2)
    )
    host, device = (np, np.ndarray, np.ndarray), (torch, torch.Tensor, torch.Tensor)
    assert seen == [host if engine == "native" else device]


def test_there_is_no_host_view_of_warp(make_env):
    env = make_env(2, engine="warp")
    with raises(InvalidInputError, name="host"):
        env.host  # noqa: B018


def test_a_decorated_or_derived_term_is_not_marked(make_env):
    """Code around a marked term was written for tensors."""
    kinds = []

    @functools.wraps(rewards.joint_vel_l2)
    def wrapped(env, **params):
        value = rewards.joint_vel_l2(env, **params)
        kinds.append(type(value))
        return value.square()

    class Slower(VelocityCommand):
        def error(self):
            kinds.append(type(self.command))
            return super().error().square()

    class SlowerCfg(VelocityCommandCfg):
        def make(self, name, env):
            return Slower(name, self, env)

    env = make_env(
        2,
        rewards={"w": RewardTermCfg(wrapped, weight=1.0)},
        commands={"v": SlowerCfg(resampling_time_s=(1.0, 2.0), lin_vel_x=(0.3, 0.7))},
    )
    kinds.clear()
    env.step(actions(env))
    assert kinds == [torch.Tensor, torch.Tensor]


def test_a_marked_class_term_has_arrays_and_memory(make_env):
    @either
    class Change:
        """Change of the height since the last step [m]."""

        def __init__(self, cfg, env):
            self.last = env.memory("last", reset=0.5)
            self.is_array = isinstance(self.last, np.ndarray)

        def reset(self, env_ids):
            pass

        def __call__(self, env):
            assert self.is_array
            now = env.sim.data.qpos[:, 2]
            change = now - self.last
            self.last[:] = now
            return change

    env = make_env(3, rewards={"c": RewardTermCfg(Change, weight=1.0)})
    env.step(actions(env))
    saved, before = env.snapshot(), env.sim.data.qpos[:, 2].clone()
    first = env.step(actions(env, seed=1))[1]
    change = (env.sim.data.qpos[:, 2] - before) * env.step_dt
    torch.testing.assert_close(first.double(), change, rtol=1e-4, atol=1e-9)
    env.restore(saved)
    assert torch.equal(env.step(actions(env, seed=1))[1], first)
    env.reset(env_ids=[1])
    last = env.snapshot().slots["env/reward/c/last"]
    assert last[1] == 0.5
    assert last[0] != 0.5


def test_an_action_on_the_host_that_remembers_something_is_found(make_env):
    @either
    class Counting(JointAction):
        calls = 0

        def apply(self, action):
            self.calls += 1
            super().apply(action)

    class CountingCfg(JointPositionActionCfg):
        def make(self, name, env):
            return Counting(name, self, env)

    env = make_env(2, actions={"counting": CountingCfg(scale=0.3)})
    env.snapshot()
    env.step(actions(env))
    with raises(SnapshotError, name="calls"):
        env.snapshot()


def test_memory_after_an_action_that_raised_belongs_to_the_environment(make_env):
    class Raising(JointAction):
        def apply(self, action):
            raise RuntimeError("of the action")

    class RaisingCfg(JointPositionActionCfg):
        def make(self, name, env):
            return Raising(name, self, env)

    env = make_env(2, actions={"raising": RaisingCfg()})
    with pytest.raises(RuntimeError, match="of the action"):
        env.step(actions(env))
    env.memory("mine", (3,))
    assert "env/memory/mine" in env.snapshot().slots


def test_arrays_cannot_be_written(make_env):
    data = make_env(2).host.scene["robot"].data
    for array in (data.joint_pos, data.root_link_lin_vel_b, data.projected_gravity_b):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1.0
    with raises(InvalidInputError, name="joint_pos"):
        data.joint_pos = 1.0


def test_arrays_are_those_of_the_current_state(make_env):
    env = make_env(3)
    robot, host = env.scene["robot"], env.host.scene["robot"]
    names = ("joint_pos", "root_link_lin_vel_b", "body_link_pos_w", "heading_w")
    for _ in range(3):
        env.step(actions(env))
        env.sim.data.qvel[1] += 0.3  # by hand, which torch counts
        moved = robot.data.joint_pos[[0, 2]] + 0.1
        robot.write_joint_position_to_sim(moved, env_ids=[0, 2])
        for name in names:
            found = getattr(host.data, name).copy()
            assert np.array_equal(found, host.data.read(name))
            assert np.array_equal(found, robot.data.read(name).numpy()), name
    with raises(UnknownNameError, name="joint_poss"):
        host.data.read("joint_poss")
    with raises(UnknownNameError, name="robt"):
        env.host.scene["robt"]


def test_a_write_of_one_term_is_seen_by_the_next(make_env):
    """Marked terms do not look for writes; those after an unmarked one do again."""
    seen = []

    def writes(env):
        env.sim.data.qvel[:, 0] += 2.0
        return env.sim.time

    @either
    def reads(env):
        seen.append(env.scene["robot"].data.root_link_lin_vel_w[:, 0].copy())
        return seen[-1]

    terms = {"before": reads, "writes": writes, "after": reads, "again": reads}
    env = make_env(
        2, rewards={n: RewardTermCfg(f, weight=1.0) for n, f in terms.items()}
    )
    env.step(actions(env))
    before, after, again = seen
    np.testing.assert_allclose(after, before + 2.0, atol=1e-12)
    assert np.array_equal(after, again)


def test_another_thread_cannot_read_arrays_within_a_step(make_env):
    errors = []

    @either
    def shares(env):
        def read():
            try:
                env.scene["robot"].data.root_link_lin_vel_b  # noqa: B018
            except ThreadError as error:
                errors.append(error)

        env.scene["robot"].data.root_link_lin_vel_b  # noqa: B018
        other = threading.Thread(target=read)
        other.start()
        other.join()
        return env.sim.data.time

    env = make_env(2, rewards={"s": RewardTermCfg(shares, weight=1.0)})
    env.step(actions(env))
    assert len(errors) == 1


def test_writes_are_detected_after_a_step_that_was_interrupted(make_env):
    is_due = []

    @either
    def interrupts(env):
        if is_due:
            raise KeyboardInterrupt
        return env.sim.data.time

    env = make_env(2, rewards={"i": RewardTermCfg(interrupts, weight=1.0)})
    env.step(actions(env))
    is_due.append(True)
    with pytest.raises(KeyboardInterrupt):
        env.step(actions(env))
    data = env.host.scene["robot"].data
    before = data.root_link_lin_vel_w.copy()
    env.sim.data.qvel[:, :3] += 1.5
    np.testing.assert_allclose(data.root_link_lin_vel_w, before + 1.5, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (lambda env: env.action, (3, 2)),
        (lambda env: env.action[:2, 0], (2,)),
        (lambda env: 1.0, None),
        (lambda env: [1.0, 2.0, 3.0], None),
    ],
)
def test_a_wrong_shape_names_the_term(make_env, value, shape):
    is_wrong = []

    @either
    def term(env):
        return value(env) if is_wrong else env.action[:, 0]

    env = make_env(3, rewards={"mine": RewardTermCfg(term, weight=1.0)})
    env.step(actions(env))
    saved = env.snapshot().slots
    is_wrong.append(True)
    with raises(ShapeError, name="mine") as caught:
        env.step(actions(env))
    assert caught.value.shape == shape
    now = env.snapshot().slots
    assert all(torch.equal(now[name], saved[name]) for name in saved)


@pytest.mark.parametrize("marked", [True, False])
def test_a_nan_names_term_and_world(make_env, marked):
    def bad(env):
        values = env.sim.data.qpos[:, :2] * 1.0
        values[2, 1] = np.nan
        return values

    terms = {
        "good": ObservationTermCfg("joint_pos_rel"),
        "bad": ObservationTermCfg(either(bad) if marked else bad),
    }
    with raises(InvalidInputError, name="policy/bad", worlds=[2]):
        make_env(4, observations={"policy": ObservationGroupCfg(terms)})


def test_terminations_are_conditions(make_env):
    wrong = either(lambda env: env.action[:, 0])
    env = make_env(2, terminations={"w": TerminationTermCfg(wrong)})
    with raises(InvalidInputError, name="w"):
        env.step(actions(env))


ARM = """
<mujoco>
  <worldbody>
    <body name="base" pos="0.1 0.2 0.5" quat="0.9 0.1 0.2 0.3">
      <freejoint/>
      <geom size="0.1" pos="0.02 0.01 0.03"/>
      {bodies}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>
"""


def many_joints() -> str:
    """A body with twelve hinges, of which a task may choose some."""
    bodies = "".join(
        f'<body pos="{0.1 * k} 0 0.1">'
        f'<joint name="j{k}" axis="0 1 0" damping="{k + 1}"/>'
        f'<geom size="0.02" pos="0.1 0 {0.01 * k}"/></body>'
        for k in range(12)
    )
    motors = "".join(f'<motor joint="j{k}" gear="{1.5 + k}"/>' for k in range(12))
    return ARM.format(bodies=bodies, motors=motors)


def test_sums_over_chosen_joints_do_not_depend_on_the_number_of_worlds(make_cfg):
    names = [f"j{k}" for k in (0, 2, 3, 5, 6, 7, 9, 10, 11)]
    some = SceneEntityCfg("robot", joint_names=names)
    params = {"asset_cfg": some}
    cfg = make_cfg(
        scene=SceneCfg(entities={"robot": EntityCfg(model=many_joints())}),
        actions={"joints": JointEffortActionCfg(scale=0.7)},
        events={},
        rewards={
            "velocity": RewardTermCfg(rewards.joint_vel_l2, params=params, weight=0.3),
            "power": RewardTermCfg(rewards.joint_power, params=params, weight=0.7),
        },
    )
    one, five = Env(cfg, 1), Env(cfg, 5)
    generator = torch.Generator().manual_seed(2)
    for _ in range(30):
        action = torch.randn(5, 12, generator=generator)
        alone, together = one.step(action[:1])[1], five.step(action)[1]
        assert torch.equal(alone, together[:1])
        assert together[1] != together[0]


def test_ties_of_a_gait_do_not_depend_on_the_dtype(engine):
    """A stride has 25 steps and a foot stands for 15 of them: each tie is exact."""
    cfg = tasks.make_cfg("Quadruped-Velocity")
    env = Env(cfg, 30, engine=engine, auto_reset=False)
    env.episode_length_buf = torch.arange(30) + 50 * torch.arange(30)
    steps = env.episode_length_buf.tolist()
    env.commands["velocity"].command[:] = 0.4
    touching = env.sim.data.sensordata.new_zeros(30, 4, dtype=torch.bool)
    found = share_in_step(env, touching, (0.0, 0.5, 0.52, 0.96), 0.5, 0.6, "velocity")
    ahead = [0, 12.5, 13, 24]  # of 25 steps
    swings = [sum((n + a) % 25 >= 15 for a in ahead) / 4 for n in steps]
    assert found.tolist() == swings


@pytest.mark.parametrize("engine_name", ["native", "warp"])
def test_float64(make_env, engine_name):
    seen = []

    def third(env):
        seen.append(env.sim.time.double() / 3.0)
        return seen[-1]

    env = make_env(
        2,
        engine=engine_name,
        dtype="float64",
        rewards={"third": RewardTermCfg(third, weight=0.7)},
        observations={
            "policy": ObservationGroupCfg(
                {
                    "third": ObservationTermCfg(
                        lambda env: env.sim.time.double()[:, None] / 3.0, scale=0.1
                    ),
                    "past": ObservationTermCfg(
                        "last_action", history=2, scale=(2.0, 0.3)
                    ),
                }
            )
        },
    )
    action = actions(env).double() / 7.0
    observed, reward, *_ = env.step(action)
    assert reward.dtype == observed["policy"].dtype == env.action.dtype == torch.float64
    assert torch.equal(reward, seen[0] * (0.7 * env.step_dt))
    assert torch.equal(env.action, action)
    expected = torch.cat(
        [
            seen[0][:, None] * 0.1,
            0 * action,
            action * torch.tensor([2.0, 0.3], dtype=torch.float64),
        ],
        dim=1,
    )
    torch.testing.assert_close(observed["policy"], expected, rtol=1e-15, atol=0)
    assert torch.equal(env.observations["policy"], observed["policy"])
    assert env.rewards.episode_sum("third").dtype == torch.float64
    with raises(UnknownNameError, name="float16"):
        make_env(dtype="float16")


def test_memory_has_the_shape_that_it_was_first_given(make_env):
    env = make_env(3)
    first = env.host.memory("mine", (2,), reset=0.5)
    assert first.shape == (3, 2)
    assert (first == 0.5).all()
    assert env.host.memory("mine") is first
    assert np.shares_memory(env.host.memory("mine", (2,), reset=0.5), first)
    with pytest.raises(SimStateError):
        env.host.memory("mine", (4,))
    assert np.shares_memory(env.host.memory("mine"), first)


def test_heights_above_a_terrain_are_the_same_in_both_views():
    """Each compared with the root's z less the height of the ground below it."""
    env = Env(tasks.make_cfg("Quadruped-Velocity-Rough"), 3, seed=4)
    position = env.scene["robot"].data.root_link_pos_w
    expected = position[:, 2] - env.terrain.terrain.height_at(position)
    assert not torch.allclose(expected, position[:, 2])
    for view in (env, env.host):
        found = torch.as_tensor(observations.base_height(view))
        torch.testing.assert_close(found, expected[:, None])
