"""The mirror image of a task: mirrored worlds give mirrored observations."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ModelError, SimStateError
from simstate.entity import EntityData
from simstate.entity.mirror import SignedPermutation
from simstate.entity.model_mirror import ModelMirror
from simstate.env import (
    Env,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    contract,
    mirrors,
    observations,
    tasks,
)
from simstate.scene import EntityCfg, InitialStateCfg, models

ROBOT = SceneEntityCfg("robot")
TASKS = ("Quadruped-Velocity", "Humanoid-Velocity", "Cartpole-Balance")


def quiet_cfg(task: str):
    """The task without noise and events, whose random numbers differ by world."""
    cfg = tasks.make_cfg(task)
    cfg.events.clear()
    for group in cfg.observations.values():
        group.noise = False
    return cfg


def mirrored_pair(cfg) -> tuple[Env, ModelMirror]:
    """An Env whose world 1 is the mirror image of world 0, in a random state."""
    env = Env(cfg, 2, seed=4, auto_reset=False)
    symmetry = env.symmetry()
    mirror = ModelMirror(env.sim.model, [symmetry.of(name) for name in env.scene])
    generator = torch.Generator().manual_seed(2)
    qpos = env.sim.data.qpos[0].clone()
    qpos[3:] += 0.1 * torch.randn(len(qpos[3:]), generator=generator).double()
    if len(qpos) > 7:
        qpos[3:7] /= qpos[3:7].norm()
        qpos[1] = 0.3
    qvel = 0.4 * torch.randn(env.sim.data.qvel.shape[1], generator=generator).double()
    for field, value, image in (
        (env.sim.data.qpos, qpos, mirror.qpos),
        (env.sim.data.qvel, qvel, mirror.qvel),
    ):
        field[0] = value
        field[1] = torch.as_tensor(image(value.numpy()))
    for command in env.commands.values():
        command.command[0] = torch.tensor([0.4, -0.2, 0.3])
        command.is_standing[:] = False
        command.command[1] = command.mirror(symmetry)(command.command[0])
        command.time_left[:] = 100.0
    if env.commands:
        # The clock of a mirrored gait is half a period ahead.
        period = cfg.observations["policy"].terms["phase"].params["period_s"]
        half = round(0.5 * period / env.step_dt)
        assert 0.5 * period == pytest.approx(half * env.step_dt, abs=env.step_dt / 1.9)
        env.episode_length_buf[1] = half
    return env, mirror


@pytest.mark.parametrize("task", TASKS)
def test_mirrored_worlds_see_and_do_what_the_mirror_shows(task):
    cfg = quiet_cfg(task)
    if "phase" in cfg.observations["policy"].terms:
        for group in cfg.observations.values():
            group.terms["phase"].params["period_s"] = 0.48  # a whole number of steps
    env, _ = mirrored_pair(cfg)
    symmetry = env.symmetry()
    generator = torch.Generator().manual_seed(1)
    action = torch.zeros(2, env.action_dim)
    for _ in range(5):
        action[0] = 0.3 * torch.randn(env.action_dim, generator=generator)
        action[1] = symmetry.action(action[0])
        seen, *_ = env.step(action)
        for name, values in seen.items():
            image = symmetry.observations[name](values[0])
            assert values[0].abs().max() > 0.1
            torch.testing.assert_close(values[1], image, rtol=1e-5, atol=2e-6)


def test_terms_of_other_tasks_are_mirrored_too():
    """Of the quadruped: angles as cosines and sines, momenta, sites and contacts."""
    cfg = quiet_cfg("Quadruped-Velocity")
    feet = SceneEntityCfg("robot", sensor_names=".*_foot")
    imu = SceneEntityCfg("robot", site_names="imu")
    terms = {
        "angles": (observations.joint_pos_cos_sin, {}),
        "height": (observations.base_height, {}),
        "momentum": (observations.momentum, {}),
        "contacts": (observations.contacts, {"asset_cfg": feet, "threshold": 0.1}),
        "touch": (observations.sensors, {"asset_cfg": feet}),
        "here": (observations.site_offset, {"asset_cfg": imu, "target_cfg": imu}),
        "found": (observations.contact_found, {"sensor_name": "feet"}),
        "air": (observations.contact_air_time, {"sensor_name": "feet"}),
        "forces": (observations.contact_force, {"sensor_name": "feet"}),
        "command": (observations.generated_commands, {"command_name": "velocity"}),
    }
    for group in cfg.observations.values():
        group.terms["phase"].params["period_s"] = 0.48
    cfg.observations["more"] = ObservationGroupCfg(
        {
            name: ObservationTermCfg(function, params=params)
            for name, (function, params) in terms.items()
        }
    )
    env, _ = mirrored_pair(cfg)
    symmetry, generator = env.symmetry(), torch.Generator().manual_seed(3)
    env.sim.data.qpos[:, 2] = 0.25
    action, touched = torch.zeros(2, env.action_dim), 0
    for _ in range(25):
        action[0] = 0.3 * torch.randn(env.action_dim, generator=generator)
        action[1] = symmetry.action(action[0])
        seen, *_ = env.step(action)
        values = seen["more"]
        image = symmetry.observations["more"](values[0])
        torch.testing.assert_close(values[1], image, rtol=1e-4, atol=1e-4)
        touched += int(env.scene["robot"].sensor("FL_foot")[0, 0] > 0.0)
    assert touched > 0


def test_a_symmetric_task_has_an_involution_for_each_group():
    symmetry = Env(quiet_cfg("Quadruped-Velocity-Rough"), 1).symmetry()
    for each in (symmetry.action, *symmetry.observations.values()):
        values = torch.randn(3, len(each))
        assert not torch.equal(each(values), values)
        torch.testing.assert_close(each(each(values)), values)


def test_a_scan_of_the_ground_is_mirrored_row_by_row():
    cfg = quiet_cfg("Quadruped-Velocity-Rough")
    cfg.observations = {"policy": cfg.observations["policy"]}
    symmetry = Env(cfg, 1).symmetry()
    names = list(cfg.observations["policy"].terms)
    assert names[-1] == "scan"
    across, along = 5, 7  # 0.8 m and 1.2 m by 0.2 m
    first = len(symmetry.observations["policy"]) - across * along
    index = torch.tensor(symmetry.observations["policy"].index[first:]) - first
    rows = torch.arange(across * along).view(along, across).flip(1)
    assert torch.equal(index.view(along, across), rows)


def test_a_term_that_does_not_state_its_mirror_image_is_named():
    def odd(env):
        return torch.zeros(env.num_envs, 2)

    cfg = quiet_cfg("Cartpole-Balance")
    cfg.observations["policy"].terms["odd"] = ObservationTermCfg(odd)
    with raises(InvalidInputError, name="policy/odd"):
        Env(cfg, 1).symmetry()


def test_terms_of_users_are_mirrored_by_contract_or_declaration():
    @contract(EntityData.root_link_ang_vel_b)
    def turn(env, asset_cfg=ROBOT):
        return env.scene["robot"].data.root_link_ang_vel_b

    @mirrors(lambda symmetry: SignedPermutation((1, 0), (1.0, 1.0)))
    def sides(env):
        return torch.zeros(env.num_envs, 2)

    cfg = quiet_cfg("Quadruped-Velocity")
    cfg.observations["own"] = type(cfg.observations["policy"])(
        {
            "turn": ObservationTermCfg(turn, history=2),
            "sides": ObservationTermCfg(sides),
            "feet": ObservationTermCfg(
                observations.contact_force, params={"sensor_name": "feet"}
            ),
        }
    )
    found = Env(cfg, 1).symmetry().observations["own"]
    assert found.sign[:6] == (-1.0, 1.0, -1.0) * 2
    assert found.index[:8] == (0, 1, 2, 3, 4, 5, 7, 6)
    assert found.index[8:14] == (11, 12, 13, 8, 9, 10)
    assert found.sign[8:11] == (1.0, -1.0, 1.0)


def test_a_clock_needs_the_shift_of_the_gait():
    cfg = quiet_cfg("Quadruped-Velocity")
    cfg.symmetry.phase_shift = None
    with raises(InvalidInputError, name="policy/phase"):
        Env(cfg, 1).symmetry()
    cfg.symmetry.phase_shift = 0.25
    with raises(InvalidInputError, name="phase_shift"):
        Env(cfg, 1)


def quadruped(change) -> EntityCfg:
    spec = models.spec("quadruped")
    change(spec)
    return EntityCfg(model=spec, init_state=InitialStateCfg(keyframe="home"))


def heavy_foot(spec) -> None:
    # The same mass and centre of mass as on the other side, another inertia.
    spec.geom("FL_hip").size = (0.06, 0.0, 0.0)


def stiff_hip(spec) -> None:
    spec.actuator("RR_hip").gainprm[0] = 61.0


@pytest.mark.parametrize(
    ("change", "name"), [(heavy_foot, "robot/root"), (stiff_hip, "robot/RR_hip")]
)
def test_physics_without_the_symmetry_is_an_error(change, name):
    cfg = quiet_cfg("Quadruped-Velocity")
    cfg.scene = dataclasses.replace(cfg.scene, entities={"robot": quadruped(change)})
    with raises(ModelError, name=name):
        Env(cfg, 1).symmetry()


def test_a_default_pose_on_one_side_is_an_error():
    cfg = quiet_cfg("Quadruped-Velocity")
    start = InitialStateCfg(keyframe="home", joint_pos={"FL_hip": 0.2})
    robot = EntityCfg(model="quadruped", init_state=start)
    cfg.scene = dataclasses.replace(cfg.scene, entities={"robot": robot})
    with raises(SimStateError, name="joints"):
        Env(cfg, 1).symmetry()


def test_scales_and_clips_of_one_side_are_errors():
    cfg = quiet_cfg("Quadruped-Velocity")
    cfg.actions["joints"].scale = {".*": 0.3, "FL_thigh": 0.2}
    with raises(InvalidInputError, name="joints"):
        Env(cfg, 1).symmetry()
    cfg = quiet_cfg("Quadruped-Velocity")
    cfg.observations["policy"].terms["base_lin_vel"].clip = (-1.0, 2.0)
    with raises(InvalidInputError, name="clip"):
        Env(cfg, 1).symmetry()
