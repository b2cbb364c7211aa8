"""The scene that a command makes of a model on the command line."""

from __future__ import annotations

import mujoco

from simstate.scene import EntityCfg, InitialStateCfg, SceneCfg
from simstate.scene.load import load_spec
from simstate.simulation import Simulation

ENTITY = "robot"
"""The name of the model's entity."""


def scene_of(source: str) -> SceneCfg:
    """The model alone, at its first keyframe, on a ground unless it has one."""
    spec = load_spec(source)
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    has_plane = any(geom.type == plane for geom in spec.worldbody.geoms)
    named = [key.name for key in spec.keys if key.name]
    state = InitialStateCfg(keyframe=named[0] if named else None)
    return SceneCfg(
        entities={ENTITY: EntityCfg(model=spec, init_state=state)},
        ground=not has_plane,
        timestep=None,
    )


def disturb(sim: Simulation, spread: float, seed: int) -> None:
    """Give every world random joint velocities of its own [rad/s or m/s]."""
    sim.rng.seed(seed)
    robot = sim.scene[ENTITY]
    vel = robot.data.joint_vel
    noise = sim.rng.normal(slice(None), vel.shape[1]).to(vel)
    robot.write_joint_velocity_to_sim(vel + spread * noise)
