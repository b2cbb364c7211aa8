"""The environment as a whole: the order of a step, determinism, resets, bad actions."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises
from torch import Tensor

from simstate import NativeCfg, Simulation
from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.env import (
    Env,
    EventTermCfg,
    GaussianNoise,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
    VelocityCommandCfg,
    events,
    observations,
    tasks,
    terminations,
)
from simstate.env.curricula import reward_weight
from simstate.env.env_cfg import CurriculumTermCfg
from simstate.integrate import RK4, EulerHeun


def run(env: Env, given: Tensor) -> list[Tensor]:
    """All that comes out of a run, and the state after every step, world by world."""
    out: list[Tensor] = []
    for action in given:
        seen, reward, terminated, truncated, extras = env.step(action)
        out += [*seen.values(), *extras["final_observation"].values()]
        out += [reward, terminated, truncated, env.sim.state.clone()]
    return out


def same(left: list[Tensor], right: list[Tensor], worlds: list[int]) -> bool:
    """Whether two runs are equal bit for bit in some worlds."""
    pairs = zip(left, right, strict=True)
    return all(torch.equal(a[worlds], b[worlds]) for a, b in pairs)


def busy(**parts: object) -> dict[str, object]:
    """Everything that is random: noise, delay, pushes, commands, parameters."""
    terms = {
        "joints": ObservationTermCfg(
            observations.joint_pos_rel,
            noise=GaussianNoise(0.1),
            delay=(0, 3),
            history=2,
        ),
        "command": ObservationTermCfg(
            observations.generated_commands, params={"command_name": "velocity"}
        ),
    }
    return {
        "observations": {"policy": ObservationGroupCfg(terms)},
        "commands": {
            "velocity": VelocityCommandCfg(
                resampling_time_s=(0.05, 0.2), lin_vel_x=(-1.0, 1.0), heading=(-3, 3)
            )
        },
        "terminations": {
            "low": TerminationTermCfg(
                terminations.base_height_below, params={"height": 0.3}
            ),
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
        },
        "events": {
            "mass": EventTermCfg(
                events.randomize_mass, params={"mass_range": (0.8, 1.2)}, mode="reset"
            ),
            "joints": EventTermCfg(
                events.reset_joints,
                params={"position_range": (-0.2, 0.2)},
                mode="reset",
            ),
            "push": EventTermCfg(
                events.push_by_setting_velocity,
                params={"velocity_range": {"x": (-1, 1)}},
                mode="interval",
                interval_s=(0.1, 0.3),
            ),
        },
        "episode_length_s": 0.5,
        **parts,
    }


@pytest.mark.parametrize("threads", [1, 3])
def test_one_seed_gives_one_trajectory_at_any_thread_count(make_env, given, threads):
    first = make_env(7, seed=3, engine=NativeCfg(num_threads=2), **busy())
    second = make_env(7, seed=3, engine=NativeCfg(num_threads=threads), **busy())
    actions = given(first, 60)
    everywhere = list(range(7))
    once = run(first, actions)
    assert same(once, run(second, actions), everywhere)
    assert not same(once, run(make_env(7, seed=4, **busy()), actions), everywhere)


def test_the_quadruped_task_repeats_bit_for_bit(given):
    cfg = tasks.make_cfg("Quadruped-Velocity")
    first = Env(cfg, 5, seed=1)
    second = Env(cfg, 5, seed=1, engine=NativeCfg(num_threads=1))
    actions = given(first, 40, scale=2.0)
    assert same(run(first, actions), run(second, actions), list(range(5)))


def test_what_happens_in_a_world_does_not_depend_on_how_many_there_are(make_env, given):
    many, few = make_env(9, seed=3, **busy()), make_env(4, seed=3, **busy())
    actions = given(many, 40)
    left, right = run(many, actions), run(few, actions[:, :4])
    assert same([part[:4] for part in left], right, list(range(4)))


def test_a_reset_of_some_worlds_leaves_the_rest_bit_identical(make_env, given, engine):
    first = make_env(5, seed=3, engine=engine, **busy())
    second = make_env(5, seed=3, engine=engine, **busy())
    actions = given(first, 30)
    assert same(run(first, actions[:7]), run(second, actions[:7]), [0, 1, 2, 3, 4])
    before = {name: seen.clone() for name, seen in second.observations.items()}
    state = second.sim.state.clone()
    seen, _ = second.reset(env_ids=[1, 3])
    others = [0, 2, 4]
    assert torch.equal(second.sim.state[others], state[others])
    assert torch.equal(seen["policy"][others], before["policy"][others])
    assert not torch.equal(seen["policy"][[1, 3]], before["policy"][[1, 3]])
    # Long enough for worlds to end by themselves, and to draw again.
    left, right = run(first, actions[7:]), run(second, actions[7:])
    assert same(left, right, others)
    assert not same(left, right, [1, 3])


def test_all_worlds_can_be_reset_in_any_order(make_env):
    first, second = make_env(3, seed=2), make_env(3, seed=2)
    seen, _ = first.reset(env_ids=[2, 0, 1])
    assert torch.equal(seen["policy"], second.reset()[0]["policy"])


def test_a_seed_alone_decides_what_follows_a_reset(make_env, given):
    startup = {
        "mass": EventTermCfg(
            events.randomize_mass, params={"mass_range": (0.5, 2.0)}, mode="startup"
        )
    }
    first = make_env(3, seed=1, events=startup)
    second = make_env(3, seed=2, events=startup)
    actions = given(first, 10)
    run(second, actions)  # whatever has happened before
    mass = second.scene["robot"].data.body_mass.clone()
    for env in (first, second):
        env.reset(seed=11)
    assert not torch.equal(second.scene["robot"].data.body_mass, mass)
    assert same(run(first, actions), run(second, actions), [0, 1, 2])
    first.reset(seed=12)
    second.reset(seed=13)
    assert not same(run(first, actions), run(second, actions), [0, 1, 2])


def test_a_step_happens_in_the_documented_order(make_env, given):
    calls: list[tuple[str, float]] = []

    def note(name: str, env: Env) -> Tensor:
        calls.append((name, round(float(env.sim.time[0]), 6)))
        return torch.zeros(env.num_envs, dtype=torch.bool)

    env = make_env(
        2,
        observations={
            "policy": ObservationGroupCfg(
                {
                    "seen": ObservationTermCfg(
                        lambda env: note("observe", env)[:, None].float()
                    )
                }
            )
        },
        rewards={
            "r": RewardTermCfg(lambda env: note("reward", env).float(), weight=1.0)
        },
        terminations={
            "end": TerminationTermCfg(lambda env: note("end", env)),
            "now": TerminationTermCfg(
                lambda env: env.episode_length_buf >= 2, time_out=True
            ),
        },
        curricula={"c": CurriculumTermCfg(lambda env, ids: note("curriculum", env)[0])},
        events={
            "reset": EventTermCfg(lambda env, ids: note("reset", env), mode="reset"),
            "push": EventTermCfg(
                lambda env, ids: note("push", env),
                mode="interval",
                interval_s=(0.02, 0.02),
            ),
        },
    )
    (action,) = given(env, 1)
    calls.clear()
    env.step(action)
    assert calls == [
        ("end", 0.02), ("reward", 0.02), ("push", 0.02), ("observe", 0.02)
    ]  # fmt: skip
    calls.clear()
    env.step(action)
    assert calls == [
        ("end", 0.04), ("reward", 0.04), ("push", 0.04), ("observe", 0.04),
        ("curriculum", 0.04), ("reset", 0.0), ("observe", 0.0),
    ]  # fmt: skip


def test_terms_never_read_new_joints_with_old_bodies(make_env, given):
    """The defect of a peer: bodies and velocities one substep behind the joints."""
    errors: list[float] = []

    def check(env: Env) -> Tensor:
        model, data = env.sim.model, mujoco.MjData(env.sim.model)
        robot = env.scene["robot"].data
        for world in range(env.num_envs):
            data.qpos[:] = env.sim.data.qpos[world].numpy()
            data.qvel[:] = env.sim.data.qvel[world].numpy()
            mujoco.mj_forward(model, data)
            off = robot.body_link_pos_w[world].numpy() - data.xpos[1:]
            errors.append(float(np.abs(off).max()))
            velocity = np.zeros(6)
            kind = mujoco.mjtObj.mjOBJ_XBODY.value
            mujoco.mj_objectVelocity(model, data, kind, 1, velocity, 1)
            off = robot.root_link_lin_vel_b[world].numpy() - velocity[3:]
            errors.append(float(np.abs(off).max()))
        return torch.zeros(env.num_envs)

    env = make_env(
        3,
        rewards={"check": RewardTermCfg(check, weight=1.0)},
        terminations={
            "check": TerminationTermCfg(lambda env: check(env) > 0),
            "end": TerminationTermCfg(lambda env: env.episode_length_buf % 3 == 2),
        },
        observations={
            "policy": ObservationGroupCfg(
                {"check": ObservationTermCfg(lambda env: check(env)[:, None])}
            )
        },
        events=busy()["events"],
    )
    for action in given(env, 8, scale=3.0):
        env.step(action)
    assert len(errors) > 100
    assert max(errors) < 1e-12


def test_the_last_observation_of_an_episode_is_kept(make_env, given):
    env = make_env(3, auto_reset=True)
    twin = make_env(3, auto_reset=False)
    env.episode_length_buf = torch.tensor([0, 98, 0])
    twin.episode_length_buf = torch.tensor([0, 98, 0])
    for k, action in enumerate(given(env, 3)):
        seen, _, terminated, truncated, extras = env.step(action)
        final = extras["final_observation"]["policy"]
        there, *_ = twin.step(action)
        if k < 1:
            assert not extras["final_mask"].any()
            assert torch.equal(final, seen["policy"])
        if k == 1:
            assert extras["final_mask"].tolist() == [False, True, False]
            assert truncated.tolist() == [False, True, False]
            assert not terminated.any()
            assert torch.equal(final, there["policy"])
            assert not torch.equal(final[1], seen["policy"][1])
            assert torch.equal(final[[0, 2]], seen["policy"][[0, 2]])
            assert env.episode_length_buf.tolist() == [2, 0, 2]
            assert float(env.sim.time[1]) == 0.0
            assert float(twin.sim.time[1]) > 0.0
    assert torch.equal(seen["policy"], env.observations["policy"])


def test_without_auto_reset_an_ended_world_goes_on_until_it_is_reset(make_env, given):
    env = make_env(2, auto_reset=False, episode_length_s=0.04)
    actions = given(env, 4)
    for k, action in enumerate(actions):
        _, _, _, truncated, extras = env.step(action)
        assert truncated.tolist() == [k >= 1] * 2
        assert extras["log"] == {}
    _, extras = env.reset(env_ids=[1])
    assert extras["log"]["Episode_Termination/time_out"] == 1
    assert env.episode_length_buf.tolist() == [4, 0]


def test_a_terminated_world_is_not_truncated_as_well(make_env, given):
    both = {
        "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
        "fell": TerminationTermCfg(
            lambda env: (env.all_ids == 0) & (env.episode_length_buf == 2)
        ),
    }
    env = make_env(2, terminations=both, episode_length_s=0.04)
    for action in given(env, 2):
        _, _, terminated, truncated, extras = env.step(action)
    assert terminated.tolist() == [True, False]
    assert truncated.tolist() == [False, True]
    assert extras["log"]["Episode_Termination/time_out"] == 2
    assert extras["log"]["Episode_Termination/fell"] == 1
    assert extras["log"]["Episode_Termination/diverged"] == 0


def test_reset_takes_unified_states(make_env):
    env = make_env(3)
    state = {
        "robots": {
            "robot": {
                "pos": [0.1, 0.2, 0.9],
                "rot": [1.0, 0.0, 0.0, 0.0],
                "dof_pos": {"hip": 0.25, "knee": 0.5},
            }
        }
    }
    seen, _ = env.reset(env_ids=[0, 2], init_states=[state, state])
    expected = torch.tensor([0.25 - 0.0, 0.5 - 0.3])
    for world in (0, 2):
        torch.testing.assert_close(seen["policy"][world, :2], expected)
        position = env.scene["robot"].data.root_link_pos_w[world]
        assert position.tolist() == [0.1, 0.2, 0.9]
    assert float(env.scene["robot"].data.root_link_pos_w[1, 2]) == 0.6


def test_bad_states_leave_the_environment_as_it_was(make_env, given):
    env = make_env(2)
    for action in given(env, 3):
        env.step(action)
    before = env.sim.state.clone(), env.episode_length_buf.clone()
    for wrong in (
        [{"robots": {"nobody": {}}}],
        [{"robots": {"robot": {"dof_pos": {"hip": float("nan")}}}}],
        [{}, {}, {}],
    ):
        with pytest.raises(SimStateError):
            env.reset(init_states=wrong)
    for seed in (-1, 0.5, True):
        with raises(InvalidInputError, name="seed"):
            env.reset(seed=seed)
    assert torch.equal(env.sim.state, before[0])
    assert torch.equal(env.episode_length_buf, before[1])


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        (torch.zeros(3, 3), ShapeError, "action"),
        (torch.zeros(2, 2), ShapeError, "action"),
        (torch.zeros(6), ShapeError, "action"),
        (torch.zeros(3, 2, dtype=torch.int64), InvalidInputError, "action"),
        (np.zeros((3, 2)), InvalidInputError, "action"),
        (
            torch.tensor([[0.0, 0.0], [0.0, float("nan")], [0.0, 0.0]]),
            InvalidInputError,
            "action",
        ),
        (torch.full((3, 2), float("inf")), InvalidInputError, "action"),
        (
            torch.full((3, 2), 1e300, dtype=torch.float64),
            InvalidInputError,
            "action",
        ),
    ],
)
def test_bad_actions_change_nothing(make_env, wrong, error, name):
    env = make_env(3)
    before = env.sim.state.clone()
    with raises(error, name=name):
        env.step(wrong)
    assert torch.equal(env.sim.state, before)
    assert env.common_step_counter == 0


def test_an_environment_lives_in_and_out_of_inference_mode(make_env, given):
    with torch.inference_mode():
        env = make_env(2, **busy())
    plain = make_env(2, **busy())
    actions = given(env, 12)
    left = run(env, actions[:6])
    with torch.inference_mode():
        left += run(env, actions[6:9])
    left += run(env, actions[9:])
    assert same(left, run(plain, actions), [0, 1])


def test_what_a_step_returned_is_not_overwritten_by_the_next(make_env, given):
    env = make_env(3, episode_length_s=0.06)
    kept, copies = [], []
    for action in given(env, 6):
        seen, reward, terminated, truncated, extras = env.step(action)
        parts = [*seen.values(), *extras["final_observation"].values()]
        parts += [reward, terminated, truncated, extras["final_mask"]]
        kept += parts
        copies += [part.clone() for part in parts]
    assert same(kept, copies, [0, 1, 2])


def test_curricula_change_weights_and_are_logged(make_env, given):
    stages = ((3, 5.0), (6, 7.0))
    term = CurriculumTermCfg(
        reward_weight, params={"term_name": "alive", "stages": stages}
    )
    env = make_env(2, curricula={"alive": term}, episode_length_s=0.04)
    logged: list[float] = []
    rewards: list[float] = []
    for action in given(env, 8):
        _, reward, _, _, extras = env.step(action)
        rewards.append(round(float(reward[0]) / env.step_dt, 4))
        if extras["log"]:
            logged.append(extras["log"]["Curriculum/alive"])
    assert logged == [1.0, 5.0, 7.0, 7.0]
    assert rewards == [1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 7.0, 7.0]


def test_episode_lengths_can_be_set_as_a_trainer_does(make_env):
    env = make_env(3)
    env.episode_length_buf = torch.tensor([5, 6, 7])
    assert env.episode_length_buf.tolist() == [5, 6, 7]
    for wrong in (torch.zeros(2, dtype=torch.int64), torch.zeros(3)):
        with raises(ShapeError, name="episode_length_buf"):
            env.episode_length_buf = wrong


def test_a_step_resets_worlds_on_demand(make_env, given):
    env, plain = make_env(auto_reset=False), make_env(auto_reset=False)
    first, second = given(env, 2)
    env.step(first)
    plain.step(first)
    seen, reward, *_, extras = env.step(second, reset_ids=[1, 2])
    expected, plain_reward, *_ = plain.step(second)
    for k in (0, 3):
        assert torch.equal(seen["policy"][k], expected["policy"][k])
        assert reward[k] == plain_reward[k]
    assert reward[1:3].tolist() == [0.0, 0.0]
    assert env.episode_length_buf.tolist() == [2, 0, 0, 2]
    assert env.sim.time[1:3].tolist() == [0.0, 0.0]
    assert extras["log"]["Episode_Reward/alive"] == pytest.approx(env.step_dt / 2.0)


def test_an_environment_that_resets_itself_takes_no_reset_ids(make_env):
    env = make_env()
    state = env.sim.state.clone()
    with raises(InvalidInputError, name="reset_ids"):
        env.step(torch.zeros(4, 2), reset_ids=[0])
    assert torch.equal(env.sim.state, state)


def test_an_integrator_steps_the_worlds(make_cfg, given):
    env = Env(make_cfg(), 4, seed=2, integrator=RK4())
    sim = Simulation(make_cfg().scene, 4, integrator=RK4())
    sim.write_state(env.sim.state)
    (action,) = given(env, 1)
    env.step(action)
    sim.data.ctrl[:] = env.sim.data.ctrl
    sim.step(4)
    assert torch.equal(env.sim.state, sim.state)
    plain = Env(make_cfg(), 4, seed=2)
    plain.step(action)
    assert not torch.equal(plain.sim.state, env.sim.state)


class Gusts:
    """Noise on the velocity of the trunk along x."""

    num_sources = 1

    def diffusion(self, t, sim):
        push = torch.zeros(sim.num_envs, 1, sim.model.nv, dtype=torch.float64)
        push[..., 0] = 0.3
        return {"qvel": push}


@pytest.mark.parametrize("seed", [7, 2**64 + 1])
def test_a_seed_fixes_the_noise_of_a_stochastic_integrator(make_cfg, given, seed):
    def moved(env: Env) -> Tensor:
        for action in given(env, 3):
            env.step(action)
        return env.sim.state.clone()

    def made(seed: int) -> Env:
        env = Env(make_cfg(), 2, seed=seed, integrator=EulerHeun())
        env.sim.add_noise(Gusts())
        return env

    env = made(seed)
    first = moved(env)
    env.reset()
    assert not torch.equal(moved(env), first)
    env.reset(seed=seed)
    assert torch.equal(moved(env), first)
    other = made(3)
    assert not torch.equal(moved(other), first)
    other.reset(seed=seed, env_ids=[1])
    assert torch.equal(moved(other)[1], first[1])
