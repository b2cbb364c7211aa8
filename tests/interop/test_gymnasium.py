"""Gymnasium's interface: its own checker, autoreset modes, seeds, pictures."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from tests.raised import raises

from simstate.base.errors import SimStateError
from simstate.env import Env, tasks
from simstate.interop.gymnasium import GymnasiumVectorEnv

CARTPOLE = "simstate/Cartpole-Balance-v0"


def short_task():
    """Cartpole whose episodes end after five steps."""
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.1
    return cfg


def make(mode: str, num_envs: int = 4, **options: object) -> GymnasiumVectorEnv:
    return GymnasiumVectorEnv(short_task(), num_envs, autoreset_mode=mode, **options)


def stagger(env: Env) -> None:
    """Let the four worlds end one after the other: the last one first."""
    env.episode_length_buf = torch.arange(4)


IDLE = np.zeros((4, 1), dtype=np.float32)


@pytest.mark.parametrize("task", ["Cartpole-Balance", "Quadruped-Velocity"])
def test_gymnasium_checks_the_single_environment(task):
    env = gymnasium.make(f"simstate/{task}-v0").unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*Box observation space.*infinity.*")
        check_env(env, skip_render_check=task != "Cartpole-Balance")


@pytest.mark.parametrize("task", tasks.NAMES)
def test_every_task_is_registered_with_fitting_spaces(task):
    envs = gymnasium.make_vec(f"simstate/{task}-v0", num_envs=3)
    assert isinstance(envs, GymnasiumVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    seen, _ = envs.reset(seed=1)
    assert envs.observation_space.contains(seen)
    envs.action_space.seed(0)
    seen, reward, terminated, truncated, _ = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(seen)
    assert reward.shape == terminated.shape == truncated.shape == (3,)
    envs.close()


def test_a_seed_decides_the_whole_run():
    def run(seed):
        envs = gymnasium.make_vec("simstate/Quadruped-Velocity-v0", num_envs=3)
        envs.action_space.seed(0)
        out = [envs.reset(seed=seed)[0]]
        for _ in range(10):
            out.append(envs.step(envs.action_space.sample())[0])
        return np.stack(out)

    assert np.array_equal(run(5), run(5))
    assert not np.array_equal(run(5), run(6))


def test_a_reset_without_seed_differs_from_run_to_run_and_goes_on_after_a_seed():
    envs, others = (gymnasium.make_vec(CARTPOLE, num_envs=2) for _ in range(2))
    assert not np.array_equal(envs.reset()[0], others.reset()[0])
    envs.reset(seed=3)
    others.reset(seed=3)
    again = envs.reset()[0]
    assert np.array_equal(again, others.reset()[0])
    assert not np.array_equal(again, envs.reset(seed=3)[0])


def test_each_world_takes_a_seed_of_its_own():
    envs = GymnasiumVectorEnv("Cartpole-Balance", 3)
    alike, _ = envs.reset(seed=[7, 7, 8])
    whole, _ = envs.reset(seed=7)
    assert np.array_equal(alike[:2], whole[:2])
    assert not np.array_equal(alike[2], whole[2])
    with raises(SimStateError, name="seed"):
        envs.reset(seed=[1, 2])


def test_same_step_gives_the_last_observation_of_worlds_that_ended():
    envs, plain = make("SameStep"), Env(short_task(), 4, auto_reset=False)
    envs.reset(seed=2)
    plain.reset(seed=2)
    stagger(envs.env)
    stagger(plain)
    fresh = np.zeros(4, dtype=bool)
    for step in range(1, 6):
        seen, _, terminated, truncated, infos = envs.step(IDLE)
        last = plain.step(torch.from_numpy(IDLE))[0]["policy"].numpy()
        assert not terminated.any()
        assert truncated.tolist() == [world == 5 - step for world in range(4)]
        fresh |= truncated
        assert np.array_equal(seen[~fresh], last[~fresh])
        if not truncated.any():
            assert "final_obs" not in infos
            continue
        (world,) = np.flatnonzero(truncated)
        assert np.array_equal(infos["_final_obs"], truncated)
        assert np.array_equal(infos["_final_info"], truncated)
        assert np.array_equal(infos["final_obs"][world], last[world])
        assert not np.array_equal(seen[world], last[world])
        others = [infos["final_obs"][k] for k in range(4) if k != world]
        assert others == [None] * 3
        assert infos["episode_length"][world] == 0
        assert infos["final_info"]["episode_length"][world] == 5


def test_same_step_agrees_with_gymnasiums_own_vector_env():
    """The keys and the rows of `infos`, against SyncVectorEnv over single worlds."""
    ours = make("SameStep", 2)
    single = [
        lambda: gymnasium.make(CARTPOLE, task=short_task(), disable_env_checker=True)
        for _ in range(2)
    ]
    theirs = gymnasium.vector.SyncVectorEnv(
        single, autoreset_mode=AutoresetMode.SAME_STEP
    )
    ours.reset(seed=1)
    theirs.reset(seed=1)
    idle = np.zeros((2, 1), dtype=np.float32)
    for _ in range(5):
        one, other = ours.step(idle), theirs.step(idle)
        for ours_flags, their_flags in zip(one[2:4], other[2:4], strict=True):
            assert np.array_equal(ours_flags, their_flags)
    assert one[3].all()
    assert one[4].keys() == other[4].keys()
    for key in ("_final_obs", "_final_info", "episode_length"):
        assert np.array_equal(one[4][key], other[4][key])
    final, expected = one[4]["final_info"], other[4]["final_info"]
    assert final.keys() == expected.keys()
    assert np.array_equal(final["episode_length"], expected["episode_length"])
    same_infos(final["episode_end"], expected["episode_end"])


def same_infos(ours, theirs):
    """The same keys and values, also of nested infos."""
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        if isinstance(values, dict):
            same_infos(ours[name], values)
        else:
            assert ours[name].dtype == values.dtype
            assert ours[name].shape == values.shape
            # The second of their worlds has the stream of another first world.
            assert ours[name][0] == (
                pytest.approx(values[0]) if values.dtype.kind == "f" else values[0]
            )


MODES = ("NextStep", "SameStep", "Disabled")


@pytest.mark.parametrize("mode", MODES)
def test_infos_have_the_reason_and_the_rewards_of_an_end(mode):
    envs = make(mode)
    envs.reset(seed=3)
    stagger(envs.env)
    found = {}
    for step in range(5):
        *_, truncated, infos = envs.step(IDLE)
        ends = infos.get("final_info", infos) if mode == "SameStep" else infos
        if not truncated.any():
            assert "episode_end" not in ends
            continue
        (world,) = np.flatnonzero(truncated)
        assert ends["_episode_end"].tolist() == truncated.tolist()
        end = ends["episode_end"]
        found[step] = end["reason"][world], end["kind"][world]
        assert end["length"][world] == 5
        parts = sum(x[world] for n, x in end["rewards"].items() if n[0] != "_")
        assert end["return"][world] == pytest.approx(parts)
        assert end["rewards"]["alive"][world] > 0
        if mode == "Disabled":
            envs.reset(options={"reset_mask": truncated})
    assert found == dict.fromkeys((1, 2, 3, 4), ("time_out", "time_out"))


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_wrappers_count_whole_episodes(mode):
    """RecordEpisodeStatistics and others around our vector."""
    wrappers = gymnasium.wrappers.vector
    envs = wrappers.RecordEpisodeStatistics(make(mode))
    if mode == "NextStep":  # the only mode that this one takes
        envs = wrappers.NormalizeObservation(envs)
    envs = wrappers.ClipReward(envs, max_reward=1.0)
    seen, _ = envs.reset(seed=4)
    counted, lengths = 0, []
    for _ in range(17):
        seen, _, terminated, truncated, infos = envs.step(IDLE)
        assert np.isfinite(seen).all()
        ended = terminated | truncated
        if ended.any():
            counted += int(ended.sum())
            lengths += infos["episode"]["l"][ended].tolist()
            if mode == "Disabled":
                envs.reset(options={"reset_mask": ended})
    assert set(lengths) == {5}
    # After 5, 10 and 15 steps; with NextStep after 5, 11 and 17.
    assert counted == 4 * 3


def test_the_single_environment_tells_why_it_ended():
    env = gymnasium.make(CARTPOLE, task=short_task(), disable_env_checker=True)
    env = gymnasium.wrappers.RecordEpisodeStatistics(env)
    env.reset(seed=1)
    for _ in range(5):
        *_, truncated, info = env.step(np.zeros(1, dtype=np.float32))
    assert truncated
    assert info["episode_end"]["reason"] == "time_out"
    assert info["episode_end"]["length"] == info["episode"]["l"] == 5
    assert info["episode_end"]["return"] == pytest.approx(info["episode"]["r"])


def test_next_step_shows_the_end_and_resets_a_step_later():
    envs = make("NextStep")
    envs.reset(seed=2)
    for _ in range(5):
        last, reward, terminated, truncated, infos = envs.step(IDLE)
    assert truncated.all()
    assert not terminated.any()
    assert "final_obs" not in infos
    assert infos["episode_length"].tolist() == [5] * 4
    fresh, reward, terminated, truncated, infos = envs.step(IDLE + 100.0)
    assert reward.tolist() == [0.0] * 4
    assert not (terminated | truncated).any()
    assert infos["episode_length"].tolist() == [0] * 4
    assert not np.array_equal(fresh, last)
    # The push of that step did nothing: the carts are as a reset leaves them.
    assert np.abs(fresh[:, 2]).max() <= 0.3
    assert envs.step(IDLE)[4]["episode_length"].tolist() == [1] * 4


def test_next_step_leaves_worlds_that_go_on_alone():
    envs, plain = make("NextStep"), Env(short_task(), 4, auto_reset=False)
    envs.reset(seed=2)
    plain.reset(seed=2)
    stagger(envs.env)
    stagger(plain)
    resets = 0
    ended = np.zeros(4, dtype=bool)
    for _ in range(5):
        seen, reward, terminated, truncated, infos = envs.step(IDLE)
        expected, rewards, *_ = plain.step(torch.from_numpy(IDLE))
        old = infos["episode_length"] > 3  # not reset yet, or in this very step
        assert np.array_equal(seen[old], expected["policy"].numpy()[old])
        assert np.array_equal(reward[old], rewards.numpy()[old])
        assert (infos["episode_length"][ended] == 0).all()
        assert (reward[ended] == 0.0).all()
        resets += int(ended.sum())
        ended = terminated | truncated
    assert resets == 3


@pytest.mark.parametrize("ignored", [np.nan, 1e30])
def test_next_step_takes_no_unobserved_step(ignored):
    envs, plain = make("NextStep"), make("SameStep")
    for each in (envs, plain):
        each.reset(seed=2)
        stagger(each.env)
    ended = np.zeros(4, dtype=bool)
    logs, expected = [], []
    for _ in range(4):
        state = envs.env.sim.state.clone()
        actions = np.where(ended[:, None], ignored, IDLE)
        _, _, terminated, truncated, _ = envs.step(actions)
        plain.step(IDLE)
        if ended.any():
            logs.append(envs.log)
            assert envs.env.sim.time[ended].tolist() == [0.0]
            assert not torch.equal(envs.env.sim.state[ended], state[ended])
        ended = terminated | truncated
        if ended.any():
            expected.append(plain.log)
    # Episodes are logged as they were when they ended.
    assert len(logs) == 2
    assert logs == expected[:2]
    assert envs.env.divergence.count == 0


def test_disabled_waits_for_a_reset_of_the_ended_worlds():
    envs = make("Disabled")
    envs.reset(seed=2)
    for _ in range(5):
        last, _, _, truncated, _ = envs.step(IDLE)
    assert truncated.all()
    with raises(SimStateError, name="step"):
        envs.step(IDLE)
    mask = np.array([True, False, True, False])
    seen, infos = envs.reset(options={"reset_mask": mask})
    assert np.array_equal(seen[~mask], last[~mask])
    assert (seen[mask] != last[mask]).any()
    assert np.array_equal(infos["_episode_length"], mask)
    with raises(SimStateError, name="step"):
        envs.step(IDLE)
    envs.reset(options={"reset_mask": ~mask})
    envs.step(IDLE)


@pytest.mark.parametrize(
    "mask", [np.zeros(4, dtype=bool), np.ones(3, dtype=bool), np.ones(4), [True] * 4]
)
def test_a_bad_reset_mask_is_refused(mask):
    envs = make("Disabled")
    with raises(SimStateError, name="reset_mask"):
        envs.reset(options={"reset_mask": mask})


def test_gymnasiums_wrappers_understand_the_infos():
    envs = DictInfoToList(RecordEpisodeStatistics(make("SameStep")))
    envs.reset(seed=0)
    for _ in range(5):
        infos = envs.step(IDLE)[4]
    for info in infos:
        assert info["episode"]["l"] == 5
        assert info["final_obs"].shape == (4,)


def test_all_groups_make_a_dictionary():
    envs = GymnasiumVectorEnv("Quadruped-Velocity", 2, group=None)
    seen, _ = envs.reset(seed=0)
    assert set(seen) == {"policy", "critic"}
    assert envs.observation_space.contains(seen)


def test_returned_arrays_are_the_callers_own():
    envs = make("SameStep")
    seen, _ = envs.reset(seed=0)
    kept = envs.env.observations["policy"].clone()
    seen[:] = 99.0
    assert torch.equal(envs.env.observations["policy"], kept)


def test_pictures_show_each_world():
    envs = gymnasium.make_vec(
        CARTPOLE, num_envs=2, render_mode="rgb_array", render_size=(64, 48)
    )
    envs.reset(seed=0)
    pictures = envs.render()
    assert len(pictures) == 2
    for picture in pictures:
        assert picture.shape == (48, 64, 3)
        assert picture.dtype == np.uint8
        assert picture.std() > 1.0
    assert not np.array_equal(*pictures)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"autoreset_mode": "Sometimes"}, "Sometimes"),
        ({"render_mode": "human"}, "human"),
        ({"group": "polcy"}, "polcy"),
        ({"action_limit": 0.0}, "action_limit"),
    ],
)
def test_bad_options_say_what_is_allowed(options, name):
    with raises(SimStateError, name=name):
        GymnasiumVectorEnv("Cartpole-Balance", 2, **options)


@pytest.mark.parametrize("bad", [np.zeros((3, 1)), np.full((4, 1), np.nan)])
def test_bad_actions_change_nothing(bad):
    envs = make("SameStep")
    envs.reset(seed=0)
    before = envs.env.sim.state.clone()
    with raises(SimStateError, name="action"):
        envs.step(bad)
    assert torch.equal(envs.env.sim.state, before)


def test_a_bad_seed_among_several_changes_nothing():
    envs = make("SameStep")
    envs.reset(seed=1)
    envs.step(IDLE)
    before = envs.env.sim.state.clone()
    with raises(SimStateError, name="seed"):
        envs.reset(seed=[1, 2, 3, -4])
    assert torch.equal(envs.env.sim.state, before)
