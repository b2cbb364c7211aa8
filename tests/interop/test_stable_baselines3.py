"""Stable-Baselines3's VecEnv: a real PPO run, ends of episodes, seeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize
from tests.raised import raises

from simstate import CameraCfg
from simstate.base.errors import SimStateError
from simstate.env import (
    Env,
    ObservationGroupCfg,
    ObservationTermCfg,
    observations,
    tasks,
)
from simstate.interop.gymnasium import GymnasiumEnv, GymnasiumVectorEnv
from simstate.interop.stable_baselines3 import StableBaselines3VecEnv


def short_task():
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.1
    return cfg


def test_ppo_learns_through_the_usual_wrappers():
    envs = VecNormalize(VecMonitor(StableBaselines3VecEnv("Cartpole-Balance", 8)))
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=128, n_epochs=2, seed=0)
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(512)
    after = list(model.policy.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert model.ep_info_buffer
    assert all(0 < episode["l"] <= 500 for episode in model.ep_info_buffer)


def test_the_single_environment_passes_sb3s_checker():
    check_env(GymnasiumEnv("Cartpole-Balance"))


def test_an_end_by_time_keeps_the_last_observation():
    envs = StableBaselines3VecEnv(short_task(), 3)
    plain = Env(short_task(), 3, auto_reset=False)
    envs.seed(4)
    envs.reset()
    plain.reset(seed=4)
    idle = np.zeros((3, 1), dtype=np.float32)
    for step in range(5):
        seen, rewards, dones, infos = envs.step(idle)
        last = plain.step(torch.from_numpy(idle))[0]["policy"].numpy()
        assert rewards.dtype == np.float32
        assert dones.tolist() == [step == 4] * 3
    for world, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is True
        assert np.array_equal(info["terminal_observation"], last[world])
        assert not np.array_equal(seen[world], last[world])


@pytest.mark.parametrize("task", ["Cartpole-Balance", "Ant-v5"])
def test_infos_are_those_of_sb3s_own_vector_of_single_environments(task):
    cfg = tasks.make_cfg(task)
    cfg.episode_length_s = 0.2
    ours = StableBaselines3VecEnv(cfg, 1)
    theirs = DummyVecEnv([lambda: GymnasiumEnv(cfg)])
    for envs in (ours, theirs):
        envs.seed(3)
        envs.reset()
    num_ends = 0
    action = np.full((1, *ours.action_space.shape), 0.3, dtype=np.float32)
    for _ in range(12):
        (*_, done, infos), (*_, expected) = ours.step(action), theirs.step(action)
        np.testing.assert_equal(infos[0], expected[0])
        np.testing.assert_equal(ours.reset_infos, theirs.reset_infos)
        num_ends += int(done[0])
    assert num_ends


def test_each_world_has_its_infos():
    cfg = tasks.make_cfg("Ant-v5")
    ours, plain = StableBaselines3VecEnv(cfg, 3), GymnasiumVectorEnv(cfg, 3)
    ours.seed(4)
    ours.reset()
    plain.reset(seed=4)
    action = np.random.default_rng(0).uniform(-1, 1, (3, 8)).astype(np.float32)
    infos, (*_, expected) = ours.step(action)[3], plain.step(action)
    assert {"x_position", "reward_forward"} <= set(infos[0])
    for name in infos[0].keys() - {"TimeLimit.truncated"}:
        assert [info[name] for info in infos] == pytest.approx(expected[name].tolist())


def test_a_time_limit_that_belongs_to_the_task_is_an_end():
    cfg = short_task()
    cfg.is_finite_horizon = True
    envs = StableBaselines3VecEnv(cfg, 2)
    envs.reset()
    for _ in range(5):
        _, _, dones, infos = envs.step(np.zeros((2, 1), dtype=np.float32))
    assert dones.all()
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]


def test_a_fall_is_no_time_limit():
    envs = StableBaselines3VecEnv("Cartpole-Balance", 2)
    envs.seed(0)
    envs.reset()
    push = np.array([[100.0], [0.0]], dtype=np.float32)
    for _ in range(100):
        _, _, dones, infos = envs.step(push)
        if dones[0]:
            break
    assert infos[0]["TimeLimit.truncated"] is False
    assert abs(infos[0]["terminal_observation"][1]) > 1.2


def test_the_seed_counts_for_the_next_reset_alone():
    envs, others = (StableBaselines3VecEnv("Cartpole-Balance", 2) for _ in range(2))
    envs.seed(1)
    others.seed(1)
    first = envs.reset()
    assert np.array_equal(first, others.reset())
    again = envs.reset()
    assert np.array_equal(again, others.reset())
    assert not np.array_equal(first, again)


def test_attributes_belong_to_all_worlds():
    envs = StableBaselines3VecEnv("Cartpole-Balance", 3)
    assert envs.get_attr("num_envs") == [3, 3, 3]
    assert envs.get_attr("render_mode", indices=[0, 2]) == [None, None]
    envs.set_attr("mark", 5, indices=[2, 0, 1])
    assert envs.get_attr("mark") == [5, 5, 5]
    for indices in ([0, 2], 1):
        with raises(SimStateError, name="indices"):
            envs.set_attr("mark", 7, indices=indices)
    assert envs.get_attr("mark") == [5, 5, 5]
    assert envs.env_is_wrapped(VecMonitor) == [False] * 3
    assert not envs.has_attr("no_such_thing")
    assert envs.env_method("render") == [None] * 3
    with raises(SimStateError, name="step_async"):
        envs.step_wait()


def test_a_seed_that_is_not_given_is_drawn_from_31_bits():
    envs = StableBaselines3VecEnv(short_task(), 2)
    drawn = [envs.seed()[0] for _ in range(100)]
    assert all(0 <= seed < 2**31 for seed in drawn)
    assert max(drawn) > 2**29
    assert len(set(drawn)) > 90


@pytest.mark.parametrize("policy", ["MultiInputPolicy", "CnnPolicy"])
def test_policies_of_pictures_train(policy):
    """SB3 finds the pictures by their space, and puts channels first by itself."""
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.scene.cameras["eye"] = CameraCfg(
        pos=(0.0, -2.4, 1.3), look_at=(0.0, 0.0, 1.3), width=40, height=36
    )
    eye = ObservationTermCfg(
        observations.camera_rgb, params={"camera": "eye"}, history=2
    )
    terms = {"eye": eye}
    if policy == "MultiInputPolicy":
        terms |= cfg.observations["policy"].terms
    cfg.observations["policy"] = ObservationGroupCfg(terms)
    envs = StableBaselines3VecEnv(cfg, num_envs=4)
    model = PPO(policy, envs, n_steps=8, batch_size=16, n_epochs=1, device="cpu")
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(32)
    kind = type(model.policy.features_extractor).__name__
    assert kind == ("CombinedExtractor" if len(terms) > 1 else "NatureCNN")
    changed = [
        not torch.equal(a, b)
        for a, b in zip(before, model.policy.parameters(), strict=True)
    ]
    assert sum(changed) > 0.9 * len(changed)
    action, _ = model.predict(envs.reset())
    assert action.shape == (4, 1)


def test_without_a_camera_there_is_no_picture_of_any_world():
    assert list(StableBaselines3VecEnv(short_task(), 3).get_images()) == [None] * 3
