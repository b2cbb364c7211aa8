"""Pictures of worlds whose parameters differ: MuJoCo's own rays hit the same things."""

from __future__ import annotations

import copy
import dataclasses

import mujoco
import numpy as np
import torch
from tests.inside import engine_of

from simstate import CameraCfg, EntityCfg, SceneCfg, Simulation
from simstate.engine.engine import model_value
from simstate.env import Env, EventTermCfg, SceneEntityCfg, events, tasks

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION.value

THINGS = """<mujoco><compiler angle="radian"/><worldbody>
  <light pos="0 0 3" dir="0 0 -1"/>
  <camera name="eye" pos="0 -1.5 0.4" xyaxes="1 0.1 0 0 0.2 1"/>
  <body name="ball" pos="0.3 0.1 0.4"><freejoint/>
    <geom name="ball" size=".15" mass="1" rgba="1 0 0 1"/></body>
  <body name="box" pos="-0.3 0.2 0.4" quat="0.8 0.2 0.4 0.4"><freejoint/>
    <geom name="box" type="box" size=".1 .15 .2" mass="2" rgba="0 1 0 1"/>
    <geom name="pin" type="capsule" size=".03 .1" pos="0 0 .3" mass="0.3"/></body>
  <body name="rod" pos="0 0.5 0.7"><joint axis="0 1 0"/>
    <geom name="rod" type="cylinder" size=".04 .3" mass="0.5"/></body>
</worldbody></mujoco>"""
GROUPS = np.array([1, 1, 1, 0, 0, 0], dtype=np.uint8)
"""The groups of geoms that cameras show."""
HORIZON = 20.0
"""Where MuJoCo Warp's endless planes may end [m]."""
EYE = CameraCfg(camera="things/eye", width=64, height=48)


def things(engine, num_envs=3):
    entity = EntityCfg(model=THINGS, com_varies=True)
    scene = SceneCfg(
        entities={"things": entity}, cameras={"eye": EYE}, ground=False, timestep=None
    )
    return Simulation(scene, num_envs, engine=engine)


def world_of(sim, world):
    """Plain MuJoCo's model and data with the parameters and state of a world."""
    model = copy.copy(sim.model)
    for name, values in engine_of(sim).expanded.items():
        if name not in mujoco.MjModel._setconst_outputs or name in ("geom_size",):
            own = model_value(model, name)
            own[...] = values[world].numpy().reshape(np.shape(own))
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    row = sim.state[world].double().numpy().copy()
    mujoco.mj_setState(model, data, row, INTEGRATION)
    mujoco.mj_forward(model, data)
    return model, data


def rays(model, data, camera, width, height):
    """The geom and the depth that MuJoCo's rays find in each pixel."""
    fovy = np.deg2rad(model.cam_fovy[camera])
    focal = 0.5 * height / np.tan(0.5 * fovy)
    u, v = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    local = np.stack(
        [(u - width / 2) / focal, -(v - height / 2) / focal, -np.ones_like(u)], axis=-1
    )
    ids, depth = np.full((height, width), -1), np.zeros((height, width))
    found = np.zeros(1, dtype=np.int32)
    for y in range(height):
        for x in range(width):
            way = data.cam_xmat[camera].reshape(3, 3) @ local[y, x]
            distance = mujoco.mj_ray(
                model, data, data.cam_xpos[camera], way, GROUPS, 1, -1, found, None
            )
            if 0 <= distance < HORIZON:
                ids[y, x], depth[y, x] = found[0], distance
    return ids, depth


def assert_shows_what_rays_hit(sim, name, camera):
    shown = sim.cameras[name]
    for world in range(sim.num_envs):
        model, data = world_of(sim, world)
        ids, depth = rays(model, data, camera, shown.width, shown.height)
        near = shown.depth[world].numpy() < HORIZON
        same = np.where(near, shown.segmentation[world].numpy(), -1) == ids
        assert same.mean() > 0.985, f"world {world}: {1 - same.mean():.3f}"
        off = np.abs(shown.depth[world].numpy() - depth)[same & (ids >= 0)]
        assert np.quantile(off, 0.98) < 2e-3


def test_sizes_places_colours_and_views_are_shown(engine):
    sim = things(engine)
    sim.cameras["eye"].rgb  # noqa: B018
    geom = {
        name: sim.model.geom(f"things/{name}").id for name in ("ball", "box", "pin")
    }
    plain = sim.cameras["eye"].segmentation.clone()
    sim.expand("body_mass")[1] *= 2.0
    assert_shows_what_rays_hit(sim, "eye", 0)
    assert torch.equal(sim.cameras["eye"].segmentation, plain)
    sim.expand("geom_size")[1, geom["ball"], 0] = 0.25
    sim.write_parameter("geom_size", [[[0.05, 0.2, 0.1]]], [geom["box"]], [2])
    sim.write_parameter("geom_pos", [[[0.1, 0.0, 0.4]]], [geom["pin"]], [0])
    sim.write_parameter("geom_quat", [[[0.9, 0.1, 0.3, 0.1]]], [geom["pin"]], [2])
    sim.expand("body_pos")[0, 3, 2] += 0.2
    sim.expand("cam_fovy")[2] = 70.0
    sim.write_parameter("cam_pos", [[[0.3, -1.2, 0.5]]], [0], [1])
    assert_shows_what_rays_hit(sim, "eye", 0)
    assert not torch.equal(sim.cameras["eye"].segmentation[0], plain[0])
    sim.expand("geom_rgba")[1, geom["ball"]] = torch.tensor([0.0, 0.0, 1.0, 1.0])
    ball = sim.cameras["eye"].segmentation == geom["ball"]
    seen = [sim.cameras["eye"].rgb[w][ball[w]].float().mean(0) for w in range(3)]
    assert seen[0].argmax() == seen[2].argmax() == 0
    assert seen[1].argmax() == 2
    sim.step(5)
    assert_shows_what_rays_hit(sim, "eye", 0)


EVENTS = {
    "reset_root_state": {"pose_range": {"x": (-0.2, 0.2), "yaw": (-1.0, 1.0)}},
    "reset_joints": {"position_range": (-0.3, 0.3)},
    "push_by_setting_velocity": {"velocity_range": {"x": (-0.5, 0.5)}},
    "randomize_mass": {"mass_range": (0.5, 2.0)},
    "randomize_com": {"com_range": {"x": (-0.02, 0.02)}},
    "randomize_friction": {
        "friction_range": (1.5, 2.0),
        "asset_cfg": SceneEntityCfg("robot", geom_names=".*foot"),
    },
    "randomize_gains": {"stiffness_range": (0.5, 1.5), "damping_range": (0.5, 1.5)},
    "randomize_joints": {"parameter": "armature", "value_range": (0.5, 2.0)},
    "randomize_encoder_bias": {"bias_range": (-0.1, 0.1)},
    "apply_external_wrench": {"force_range": {"z": (1.0, 5.0)}},
    "randomize_parameter": {"field": "geom_rgba", "value_range": (0.5, 1.0)},
    "randomize_orientation": {
        "field": "body_quat",
        "angle_range": {"roll": (-0.3, 0.3)},
        "names": "FL_hip",
    },
}


def test_every_event_that_ships_is_here():
    # A delay, inertias, efforts, tendons and fitted parameters show in nothing but
    # motion; tiles need a terrain; impulses are events of every step; a headlight needs
    # a camera that carries it (tests/sensors/test_headlight.py).
    others = {
        "randomize_delay", "place_on_tile", "Impulses", "randomize_pseudo_inertia",
        "randomize_effort_limits", "randomize_tendons", "draw_fitted_parameters",
        "randomize_headlight",
    }  # fmt: skip
    assert set(events.__all__) - others == set(EVENTS)


def test_a_task_with_every_event_is_shown(engine):
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.events = {
        name: EventTermCfg(name, params=params, mode="reset")
        for name, params in EVENTS.items()
    }
    pose = {"pos": (1.0, -1.0, 0.6), "look_at": (0.0, 0.0, 0.25)}
    camera = CameraCfg(width=48, height=36, fovy=60.0, **pose)
    cfg.scene = dataclasses.replace(cfg.scene, cameras={"side": camera})
    env = Env(cfg, 2, engine=engine)
    env.step(torch.zeros(2, env.action.shape[1]))
    env.reset()
    assert_shows_what_rays_hit(env.sim, "side", env.sim.model.camera("side").id)
