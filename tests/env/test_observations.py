"""Observation terms against MuJoCo's own functions, and what is done to them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy import stats

from simstate import EntityCfg, SceneCfg
from simstate.env import (
    Env,
    EventTermCfg,
    GaussianNoise,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    UniformNoise,
    VelocityCommandCfg,
    events,
    observations,
)

FOOT = SceneEntityCfg("robot", sensor_names="foot", site_names="foot")


def plain_worlds(env: Env) -> list[mujoco.MjData]:
    """Every world in an MjData of its own, evaluated by plain MuJoCo."""
    worlds = []
    for state in env.sim.state:
        data = mujoco.MjData(env.sim.model)
        spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
        mujoco.mj_setState(env.sim.model, data, state.double().numpy(), spec)
        mujoco.mj_forward(env.sim.model, data)
        worlds.append(data)
    return worlds


def body_velocity(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Angular then linear velocity of the trunk's origin in its own axes."""
    velocity = np.zeros(6)
    body = mujoco.mjtObj.mjOBJ_XBODY.value
    mujoco.mj_objectVelocity(model, data, body, 1, velocity, 1)
    return velocity


EXPECTED = {
    "joint_pos": lambda m, d: d.qpos[7:] - [0.0, 0.3],
    "joint_vel": lambda m, d: d.qvel[6:],
    "cos_sin": lambda m, d: [f(q) for q in d.qpos[7:] for f in (np.cos, np.sin)],
    "base_lin_vel": lambda m, d: body_velocity(m, d)[3:],
    "base_ang_vel": lambda m, d: body_velocity(m, d)[:3],
    "gravity": lambda m, d: d.xmat[1].reshape(3, 3).T @ [0.0, 0.0, -1.0],
    "height": lambda m, d: d.xpos[1][2:],
    "foot": lambda m, d: d.site_xpos[0],
    "gyro": lambda m, d: d.sensor("robot/gyro").data,
}


def test_terms_are_what_mujoco_computes(make_env, given, engine):
    terms = {
        "joint_pos": ObservationTermCfg(observations.joint_pos_rel),
        "joint_vel": ObservationTermCfg(observations.joint_vel_rel),
        "cos_sin": ObservationTermCfg(observations.joint_pos_cos_sin),
        "base_lin_vel": ObservationTermCfg(observations.base_lin_vel),
        "base_ang_vel": ObservationTermCfg(observations.base_ang_vel),
        "gravity": ObservationTermCfg(observations.projected_gravity),
        "height": ObservationTermCfg(observations.base_height),
        "foot": ObservationTermCfg(observations.site_pos, params={"asset_cfg": FOOT}),
        "gyro": ObservationTermCfg(
            observations.sensors,
            params={"asset_cfg": SceneEntityCfg("robot", sensor_names="gyro")},
        ),
    }
    env = make_env(
        3, engine=engine, observations={"policy": ObservationGroupCfg(terms)}
    )
    for action in given(env, 12, scale=2.0):
        seen, *_ = env.step(action)
    model = env.sim.model
    for row, data in zip(seen["policy"], plain_worlds(env), strict=True):
        parts = [np.atleast_1d(EXPECTED[name](model, data)) for name in terms]
        np.testing.assert_allclose(row, np.concatenate(parts), atol=2e-5)
    names = env.observation_names["policy"]
    assert len(names) == env.observation_dims["policy"] == seen["policy"].shape[1]
    assert names[:4] == [
        "joint_pos/hip",
        "joint_pos/knee",
        "joint_vel/hip",
        "joint_vel/knee",
    ]
    assert names[4:6] == ["cos_sin/hip.cos", "cos_sin/hip.sin"]
    assert names[-4:] == ["foot/foot.z", *(f"gyro/gyro[{i}]" for i in range(3))]


def normal_force(model: mujoco.MjModel, data: mujoco.MjData, geom: str) -> float:
    """The sum of the normal forces on a geom."""
    force, total = np.zeros(6), 0.0
    for i in range(data.ncon):
        if model.geom(geom).id in data.contact[i].geom:
            mujoco.mj_contactForce(model, data, i, force)
            total += force[0]
    return total


def test_contacts_are_the_contact_forces_of_the_last_evaluation(
    make_env, given, engine
):
    terms = {
        "force": ObservationTermCfg(observations.sensors, params={"asset_cfg": FOOT}),
        "touch": ObservationTermCfg(
            observations.contacts, params={"asset_cfg": FOOT, "threshold": 0.5}
        ),
    }
    env = make_env(
        3, engine=engine, observations={"policy": ObservationGroupCfg(terms)}
    )
    env.cfg.decimation = 1
    forces = []
    for action in given(env, 90, scale=0.3):
        before = plain_worlds(env)
        seen, *_ = env.step(action)
        now = env.sim.data.ctrl.double().numpy()
        for row, data, ctrl in zip(seen["policy"], before, now, strict=True):
            data.ctrl[:] = ctrl
            mujoco.mj_forward(env.sim.model, data)
            normal = normal_force(env.sim.model, data, "robot/foot")
            forces.append((float(row[0]), normal, float(row[1])))
    measured, expected, touch = (np.array(part) for part in zip(*forces, strict=True))
    assert expected.max() > 5.0
    assert (expected == 0.0).any()
    np.testing.assert_allclose(measured, expected, atol=2e-2 * expected.max())
    if engine == "native":
        np.testing.assert_allclose(measured, expected, atol=1e-4)
    np.testing.assert_array_equal(touch, measured > 0.5)


def test_joints_can_be_chosen_and_ordered(make_env, observed):
    backwards = SceneEntityCfg(
        "robot", joint_names=("knee", "hip"), preserve_order=True
    )
    env = make_env(
        observations=observed(
            observations.joint_pos_rel, params={"asset_cfg": backwards}
        )
    )
    assert env.observation_names["policy"] == ["term/knee", "term/hip"]
    position = env.sim.data.qpos[:, [8, 7]] - torch.tensor([0.3, 0.0])
    torch.testing.assert_close(env.observations["policy"], position.float())
    model_order = SceneEntityCfg("robot", joint_names=("knee", "hip"))
    assert model_order.resolve(env.scene).names_of("joint") == ("hip", "knee")


def test_a_biased_encoder_is_seen_where_it_is_asked_for(make_env):
    cfg = {
        "events": {
            "bias": EventTermCfg(
                events.randomize_encoder_bias,
                params={"bias_range": (0.01, 0.2)},
                mode="startup",
            )
        },
        "observations": {
            "policy": ObservationGroupCfg(
                {
                    "true": ObservationTermCfg(observations.joint_pos_rel),
                    "read": ObservationTermCfg(
                        observations.joint_pos_rel, params={"biased": True}
                    ),
                }
            )
        },
    }
    env = make_env(**cfg)
    true, read = env.observations["policy"].chunk(2, dim=1)
    bias = env.scene["robot"].data.encoder_bias
    assert float(bias.min()) >= 0.01
    assert bias.unique().numel() == bias.numel()
    torch.testing.assert_close(read - true, bias.float())


def test_the_last_action_and_the_command_are_seen(make_env, given):
    env = make_env(
        commands={
            "velocity": VelocityCommandCfg(
                resampling_time_s=(9.0, 9.0), lin_vel_x=(0.1, 1.0)
            )
        },
        observations={
            "policy": ObservationGroupCfg(
                {
                    "action": ObservationTermCfg(observations.last_action),
                    "command": ObservationTermCfg(
                        observations.generated_commands,
                        params={"command_name": "velocity"},
                    ),
                }
            )
        },
        episode_length_s=0.08,
    )
    assert not env.observations["policy"][:, :2].any()
    for k, action in enumerate(given(env, 4)):
        seen, *_ = env.step(action)
        wanted = action if k < 3 else torch.zeros_like(action)
        assert torch.equal(seen["policy"][:, :2], wanted)
        assert torch.equal(seen["policy"][:, 2:], env.commands["velocity"].command)


def test_the_phase_runs_with_the_episode(make_env, observed, given):
    env = make_env(observations=observed(observations.phase, params={"period_s": 0.16}))
    for k, action in enumerate(given(env, 8), start=1):
        seen, *_ = env.step(action)
        angle = 2.0 * np.pi * k / 8
        expected = torch.tensor([[np.cos(angle), np.sin(angle)]]).float()
        torch.testing.assert_close(
            seen["policy"], expected.expand(4, 2), atol=1e-5, rtol=0
        )


def ramp(env: Env) -> torch.Tensor:
    """A number that tells world and step: 100 world + step, and its negative."""
    value = 100.0 * env.all_ids + env.episode_length_buf
    return torch.stack([value, -value], dim=-1)


def test_noise_is_added_before_clip_and_scale(make_env, observed):
    def zero(env: Env) -> torch.Tensor:
        return torch.zeros(env.num_envs, 2)

    plain = make_env(
        2000, observations=observed(zero, noise=UniformNoise(-0.5, 1.5))
    ).observations["policy"]
    assert stats.kstest(plain.flatten(), "uniform", args=(-0.5, 2.0)).pvalue > 1e-3
    gauss = make_env(
        2000, observations=observed(zero, noise=GaussianNoise(0.5, mean=1.0))
    ).observations["policy"]
    assert stats.kstest(gauss.flatten(), "norm", args=(1.0, 0.5)).pvalue > 1e-3
    both = make_env(
        2000,
        observations=observed(
            zero, noise=UniformNoise(-0.5, 1.5), clip=(0.0, 1.0), scale=(10.0, -1.0)
        ),
    ).observations["policy"]
    factors = torch.tensor([10.0, -1.0])
    torch.testing.assert_close(both, plain.clamp(0.0, 1.0) * factors)
    group = observed(zero, noise=GaussianNoise(1.0))
    group["policy"].noise = False
    assert not make_env(4, observations=group).observations["policy"].any()


def test_history_gives_the_last_values_oldest_first(make_env, observed, given):
    env = make_env(2, observations=observed(ramp, history=3), episode_length_s=0.1)
    assert env.observation_names["policy"] == [
        "term/0@-2", "term/1@-2", "term/0@-1", "term/1@-1", "term/0", "term/1",
    ]  # fmt: skip
    steps: list[list[float]] = []
    for action in given(env, 6):
        seen, _, _, _, extras = env.step(action)
        steps.append(seen["policy"][1, ::2].tolist())
        last = extras["final_observation"]["policy"][1, ::2].tolist()
    assert steps == [
        [100, 100, 101], [100, 101, 102], [101, 102, 103], [102, 103, 104],
        [100, 100, 100], [100, 100, 101],
    ]  # fmt: skip
    assert last == [100, 100, 101]


def test_delay_shows_what_was_some_steps_ago(make_env, observed, given):
    env = make_env(2, observations=observed(ramp, delay=2, history=2))
    steps = [env.step(action)[0]["policy"][1, ::2].tolist() for action in given(env, 5)]
    assert steps == [[100, 100], [100, 100], [100, 101], [101, 102], [102, 103]]


def test_each_world_draws_its_delay_at_reset(make_env, observed, given):
    env = make_env(300, observations=observed(ramp, delay=(1, 3)))
    lags = set()
    for _ in range(2):
        for action in given(env, 6):
            seen, *_ = env.step(action)
        lag = ramp(env)[:, 0] - seen["policy"][:, 0]
        counts = [int((lag == k).sum()) for k in range(5)]
        assert counts[0] == counts[4] == 0
        assert min(counts[1:4]) > 60
        lags.add(tuple(lag.tolist()))
        env.reset()
    assert len(lags) == 2


def test_a_critic_sees_the_same_without_noise(make_env, given):
    term = ObservationTermCfg(observations.base_height, noise=GaussianNoise(0.1))
    env = make_env(
        observations={
            "policy": ObservationGroupCfg({"height": term}),
            "critic": ObservationGroupCfg({"height": term}, noise=False),
        }
    )
    for action in given(env, 3):
        seen, *_ = env.step(action)
    height = env.scene["robot"].data.root_link_pos_w[:, 2:3].float()
    assert torch.equal(seen["critic"], height)
    assert not torch.equal(seen["policy"], height)


@pytest.mark.parametrize("model", ["cartpole"])
def test_functions_can_be_given_by_name(make_env, model):
    env = make_env(
        scene=SceneCfg(
            entities={
                "cart": EntityCfg(model=model),
                "robot": EntityCfg(model="quadruped"),
            }
        ),
        observations={
            "policy": ObservationGroupCfg(
                {
                    "q": ObservationTermCfg(
                        "joint_pos_rel", params={"asset_cfg": SceneEntityCfg("cart")}
                    )
                }
            )
        },
    )
    assert env.observation_names["policy"] == ["q/slider", "q/pole"]


class ByTerm(UniformNoise):
    """Noise that a group does not know, so that its terms are processed one by one."""


@pytest.mark.parametrize("last", [UniformNoise, ByTerm])
def test_columns_that_are_processed_together(make_env, last):
    """The same numbers as term by term: noise, clip and scale, resets included."""
    envs = [
        processed_env(make_env, *kinds)
        for kinds in [(UniformNoise, last), 2 * (ByTerm,)]
    ]
    ended = 0
    for _ in range(12):
        seen = [env.step(torch.zeros(3, env.action_dim)) for env in envs]
        for kind in (0, 4):
            together, apart = (
                values["policy"] if kind == 0 else values["final_observation"]["policy"]
                for values in (result[kind] for result in seen)
            )
            assert torch.equal(together, apart)
        ended += int(seen[0][3].sum())
    assert ended
    together, apart = (env.rng.bits(slice(None), 2) for env in envs)
    assert torch.equal(together, apart)


def processed_env(make_env, first, last):
    """An environment whose terms have noise of these classes, clip and scale."""
    terms = {
        "gravity": ObservationTermCfg(
            observations.projected_gravity, noise=first(-0.2, 0.3), scale=0.7
        ),
        "joint_pos": ObservationTermCfg(
            observations.joint_pos_rel, noise=first(-2.0, 2.0), clip=(-0.9, 0.6)
        ),
        "height": ObservationTermCfg(observations.base_height, scale=(-3.0,)),
        "joint_vel": ObservationTermCfg(
            observations.joint_vel_rel, noise=last(0.5, 0.8), scale=(2.0, 0.3)
        ),
        "cos_sin": ObservationTermCfg(observations.joint_pos_cos_sin),
    }
    env = make_env(
        num_envs=3,
        observations={"policy": ObservationGroupCfg(terms)},
        episode_length_s=0.15,
    )
    env.episode_length_buf = torch.tensor([0, 3, 1])
    return env
