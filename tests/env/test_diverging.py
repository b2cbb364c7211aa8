"""Worlds that diverge in training: ended, counted, kept, and reset."""

from __future__ import annotations

import pytest
import torch
from tests.inside import columns_of

from simstate import Simulation
from simstate.env import Env, RewardTermCfg, rewards
from simstate.state import Snapshot


def explode(env: Env, worlds: list[int]) -> None:
    """Throw worlds so hard that the next step leaves all bounds."""
    env.sim.data.qvel[worlds, 6] = 1e9


def test_a_diverged_world_is_ended_with_a_finite_reward(
    make_env, given, engine, tmp_path
):
    env = make_env(
        4,
        engine=engine,
        divergence_dump_dir=tmp_path / "dumps",
        rewards={
            "torque": RewardTermCfg(rewards.joint_torques_l2, weight=-1e-3),
            "acc": RewardTermCfg(rewards.joint_acc_l2, weight=-1e-6),
            "vel": RewardTermCfg(rewards.joint_vel_l2, weight=-1e-4),
        },
    )
    twin = make_env(4, engine=engine)
    actions = given(env, 6)
    for action in actions[:2]:
        env.step(action)
        twin.step(action)
    explode(env, [1, 3])
    before = env.sim.state.clone()
    seen, reward, terminated, truncated, extras = env.step(actions[2])
    assert terminated.tolist() == [False, True, False, True]
    assert not truncated.any()
    assert bool(reward.isfinite().all())
    assert bool(seen["policy"].isfinite().all())
    assert bool(extras["final_observation"]["policy"].isfinite().all())
    assert extras["log"]["Episode_Termination/diverged"] == 2
    assert extras["log"]["Divergence/count"] == 2
    assert env.divergence.count == 2
    # They were reset; the others are unaffected.
    assert not env.sim.diverged.any()
    assert env.sim.time[[1, 3]].tolist() == [0.0, 0.0]
    twin.step(actions[2])
    assert torch.equal(env.sim.state[[0, 2]], twin.sim.state[[0, 2]])
    for action in actions[3:]:
        _, _, terminated, _, _ = env.step(action)
    assert not terminated.any()
    _replay(env, tmp_path, before)


def _replay(env: Env, folder: object, before: torch.Tensor) -> None:
    """The snapshots show it again, in a simulation that knows nothing of it."""
    assert [path.name for path in env.divergence.paths] == [
        "diverged_1_world_1_before.npz",
        "diverged_2_world_3_before.npz",
    ]
    for path, world in zip(env.divergence.paths, (1, 3), strict=True):
        snapshot = Snapshot.load(path)
        qvel = columns_of(env.sim)["qvel"]
        assert torch.equal(snapshot.state[0, qvel], before[world, qvel].cpu())
        again = Simulation(
            env.cfg.scene, 1, engine=env.sim.engine_name, on_divergence="mask"
        )
        again.restore(snapshot)
        assert not again.diverged.any()
        again.step(env.cfg.decimation)
        assert again.diverged.tolist() == [True]
        after = Snapshot.load(str(path).replace("_before", "_after"))
        assert again.divergence.cause is not None
        torch.testing.assert_close(
            again.divergence.cause.after, after.state, rtol=0, atol=0, equal_nan=True
        )
        assert not bool((after.state[0, qvel].abs() < 1e9).all())


def test_snapshots_are_capped_and_counted_on(make_env, given, tmp_path):
    env = make_env(3, divergence_dump_dir=str(tmp_path), max_divergence_dumps=2)
    actions = given(env, 3)
    for action in actions:  # the same world again in the step after its reset
        explode(env, [0, 2])
        _, _, terminated, _, extras = env.step(action)
        assert terminated.tolist() == [True, False, True]
    assert env.divergence.count == extras["log"]["Divergence/count"] == 6
    assert len(list(tmp_path.glob("*_before.npz"))) == 2
    assert len(list(tmp_path.glob("*_after.npz"))) == 2


def test_snapshots_of_an_earlier_run_are_kept(make_env, given, tmp_path):
    for _ in range(2):
        env = make_env(2, divergence_dump_dir=tmp_path)
        explode(env, [1])
        env.step(given(env, 1)[0])
    names = sorted(path.name for path in tmp_path.glob("*_before.npz"))
    assert names == ["diverged_1_world_1_before.npz", "diverged_2_world_1_before.npz"]


def test_no_folder_no_files(make_env, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = make_env(2)
    explode(env, [0])
    env.step(given(env, 1)[0])
    assert env.divergence.count == 1
    assert list(tmp_path.iterdir()) == []


def test_without_auto_reset_a_diverged_world_waits(make_env, given):
    env = make_env(2, auto_reset=False)
    explode(env, [0])
    actions = given(env, 3)
    for action in actions:
        _, reward, terminated, _, _ = env.step(action)
        assert terminated.tolist() == [True, False]
        assert bool(reward.isfinite().all())
    assert env.divergence.count == 1
    assert float(env.sim.time[0]) == 0.0
    env.reset(env_ids=[0])
    _, _, terminated, _, _ = env.step(actions[0])
    assert not terminated.any()


def test_a_bad_number_of_a_diverged_world_alone_is_excused(make_env, given):
    def broken(env: Env) -> torch.Tensor:
        return torch.where(env.sim.diverged, torch.nan, 1.0)

    env = make_env(2, rewards={"broken": RewardTermCfg(broken, weight=1.0)})
    explode(env, [1])
    _, reward, _, _, _ = env.step(given(env, 1)[0])
    assert reward.tolist() == pytest.approx([0.02, 0.0])
