"""Draws that worlds or elements share, turned elements, wrenches and tiles."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate import EntityCfg, SceneCfg
from simstate.base.errors import InvalidInputError
from simstate.env import Env, EventTermCfg, SceneEntityCfg, events
from simstate.scene.terrain import TerrainCfg

from .conftest import ROBOT
from .test_parameter_events import XML

TURNED = XML.replace('name="eye" pos', 'name="eye" quat="0.9 0.1 0.3 0.2" pos').replace(
    '<site name="foot"', '<site name="foot" quat="0.8 0.2 0.4 0.4"'
)


def event(function, mode="startup", shared=False, **params):
    return {"draw": EventTermCfg(function, mode=mode, shared=shared, params=params)}


def masses(env):
    return env.sim.expand("body_mass")[:, 1:] / torch.as_tensor(
        env.sim.model.body_mass[1:]
    )


def test_worlds_share_a_draw_in_any_batch(make_env, make_cfg):
    given = event(events.randomize_mass, shared=True, mass_range=(0.5, 1.5))
    env = make_env(5, seed=3, events=given)
    share = masses(env)
    assert torch.equal(share, share[:1].expand(5, 3))
    assert len(set(share[0].tolist())) == 3  # links do not share it
    later = Env(make_cfg(events=given), 3, seed=3, first_world=70)
    torch.testing.assert_close(masses(later)[0], share[0])
    assert not torch.allclose(masses(make_env(1, seed=4, events=given)), share[:1])
    own = make_env(
        5, seed=3, events=event(events.randomize_mass, mass_range=(0.5, 1.5))
    )
    assert len(set(masses(own)[:, 0].tolist())) == 5
    env.reset(seed=3, env_ids=[1, 4])  # draws again, and the same
    torch.testing.assert_close(masses(env), share)
    # What comes after is each world's own again.
    assert len(set(env.rng.uniform(slice(None), 1)[:, 0].tolist())) == 5


def test_only_what_happens_to_all_worlds_at_once_is_shared(make_env):
    given = event(events.randomize_mass, "reset", True, mass_range=(0.5, 1.5))
    with raises(InvalidInputError, name="draw"):
        make_env(2, events=given)


@pytest.mark.parametrize(
    ("function", "params", "read"),
    [
        (events.randomize_mass, {"mass_range": (0.5, 1.5)}, masses),
        (
            events.randomize_joints,
            {"parameter": "damping", "value_range": (0.5, 1.5)},
            lambda env: (
                env.sim.expand("dof_damping")[:, 6:]
                / torch.as_tensor(env.sim.model.dof_damping[6:])
            ),
        ),
        (
            events.randomize_gains,
            {"stiffness_range": (0.5, 1.5)},
            lambda env: (
                env.sim.expand("actuator_gainprm")[:, :, 0]
                / torch.as_tensor(env.sim.model.actuator_gainprm[:, 0])
            ),
        ),
        (
            events.randomize_encoder_bias,
            {"bias_range": (-0.5, 0.5)},
            lambda env: env.scene["robot"].data.encoder_bias,
        ),
    ],
)
def test_elements_of_a_world_share_a_draw(make_env, function, params, read):
    found = read(make_env(6, events=event(function, shared=False, **params)))
    assert bool((found[:, 0] - found[:, 1]).abs().gt(1e-6).all())
    chosen = {
        "draw": EventTermCfg(function, mode="reset", params={**params, "shared": True})
    }
    found = read(make_env(6, events=chosen))
    torch.testing.assert_close(found, found[:, :1].expand_as(found))
    assert len(set(found[:, 0].tolist())) == 6


def test_named_events_know_distributions(make_env):
    given = event(events.randomize_mass, mass_range=(1.0, 0.1), distribution="gaussian")
    share = masses(make_env(400, seed=2, events=given))
    assert float(share.mean()) == pytest.approx(1.0, abs=0.02)
    assert float(share.std()) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("field", ["cam_quat", "site_quat"])
def test_elements_are_turned_about_their_own_axes(make_env, engine, field):
    given = event(
        events.randomize_orientation, "reset", field=field,
        angle_range={"yaw": (0.2, 0.6), "roll": (-0.3, 0.3)},
    )  # fmt: skip
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=TURNED)}, ground=True, timestep=0.005
    )
    env = make_env(4, engine=engine, scene=scene, events=given)
    found = env.sim.expand(field)[:, 0].double().cpu().numpy()
    nominal = Rotation.from_quat(getattr(env.sim.model, field)[0], scalar_first=True)
    turn = nominal.inv() * Rotation.from_quat(found, scalar_first=True)
    yaw, pitch, roll = turn.as_euler("ZYX").T
    assert ((yaw > 0.2 - 1e-5) & (yaw < 0.6 + 1e-5)).all()
    assert np.abs(roll).max() < 0.3 + 1e-5
    np.testing.assert_allclose(pitch, 0.0, atol=1e-6)
    assert len({round(float(angle), 6) for angle in yaw}) == 4
    if field == "site_quat":  # and so the engine has them in the world
        world = env.scene["robot"].data.site_quat_w[:, 0].double().cpu().numpy()
        for k in range(4):
            model = env.sim.model.__copy__()
            model.site_quat[0] = found[k]
            data = mujoco.MjData(model)
            data.qpos[:] = env.sim.data.qpos[k].double().cpu()
            mujoco.mj_kinematics(model, data)
            plain = Rotation.from_matrix(data.site_xmat[0].reshape(3, 3))
            gap = plain.inv() * Rotation.from_quat(world[k], scalar_first=True)
            assert gap.magnitude() < 1e-5


def test_wrenches_act_until_the_next(make_env, engine):
    given = event(
        events.apply_external_wrench, "reset", force_range={"x": (2.0, 5.0)},
        torque_range={"y": (-0.1, -0.05)},
        asset_cfg=SceneEntityCfg("robot", body_names="shin"),
    )  # fmt: skip
    env = make_env(4, engine=engine, events=given)
    wrench = env.sim.data.xfrc_applied.double().cpu()
    assert torch.equal(wrench[:, :3], torch.zeros(4, 3, 6).double())
    drawn = wrench[:, 3]
    assert bool(((drawn[:, 0] >= 2.0) & (drawn[:, 0] < 5.0)).all())
    assert bool(((drawn[:, 4] >= -0.1) & (drawn[:, 4] < -0.049)).all())
    assert torch.equal(drawn[:, [1, 2, 3, 5]], torch.zeros(4, 4).double())
    assert len(set(drawn[:, 0].tolist())) == 4
    for _ in range(3):
        env.step(torch.zeros(4, env.action_dim))
    torch.testing.assert_close(env.sim.data.xfrc_applied.double().cpu(), wrench)


def test_a_tile_is_drawn_before_the_robot_is_placed(make_env, engine):
    terrain = TerrainCfg(kinds=("flat", "slope_up"), levels=4, columns=3, size=4.0)
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=ROBOT)}, terrain=terrain, timestep=0.005
    )
    given = {
        "tile": EventTermCfg(
            events.place_on_tile, mode="reset", params={"levels": (1, 2)}
        ),
        "place": EventTermCfg(events.reset_root_state, mode="reset", params={}),
    }
    env = make_env(60, engine=engine, seed=1, scene=scene, events=given)
    assert set(env.terrain.level.tolist()) == {1, 2}
    assert set(env.terrain.column.tolist()) == {0, 1, 2}
    place = env.scene["robot"].data.root_link_pos_w.double().cpu()
    origins = torch.as_tensor(env.terrain.terrain.origins)
    expected = origins[env.terrain.level.cpu(), env.terrain.column.cpu()]
    assert float(expected[:, 2].max()) > 0.2  # on top of a pyramid
    expected[:, 2] += 0.6  # where its model has it
    torch.testing.assert_close(place, expected, atol=1e-6, rtol=0.0)


@pytest.mark.parametrize(
    ("function", "params", "name"),
    [
        (events.place_on_tile, {}, "terrain"),
        (
            events.randomize_orientation,
            {"field": "site_pos", "angle_range": {}},
            "site_pos",
        ),
        (
            events.randomize_orientation,
            {"field": "site_quat", "angle_range": {"x": (0.0, 1.0)}},
            "x",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make_env, function, params, name):
    with raises(Exception, name=name):
        make_env(2, events=event(function, **params))
