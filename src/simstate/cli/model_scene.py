"""The scene of a model that is named on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simstate.base.errors import ModelError

if TYPE_CHECKING:
    from simstate.engine import EngineCfg
    from simstate.scene import SceneCfg
    from simstate.simulation import Simulation
    from simstate.state import Snapshot
    from simstate.step import Explicit

ENTITY = "robot"
"""The name of the model's entity."""


def scene_of(source: str) -> SceneCfg:
    """Return a scene with the model at its first keyframe and with its physics."""
    from simstate.scene import EntityCfg, InitialStateCfg, SceneCfg
    from simstate.scene.load import load_spec

    spec = load_spec(source)
    named = [key.name for key in spec.keys if key.name]
    state = InitialStateCfg(keyframe=named[0] if named else None)
    return SceneCfg(
        entities={ENTITY: EntityCfg(model=source, init_state=state)},
        ground=None,
        timestep=None,
    )


def check_moves(scene: SceneCfg) -> None:
    """Raise if the command's model has neither joints nor mocap bodies."""
    from simstate.scene.build import NOTHING_MOVES
    from simstate.scene.load import load_spec

    spec = load_spec(scene.entities[ENTITY].model)
    if not spec.joints and not any(body.mocap for body in spec.bodies):
        raise ModelError(NOTHING_MOVES)


def disturb(sim: Simulation, spread: float, seed: int) -> None:
    """Add random joint velocities [rad/s or m/s], which differ between worlds."""
    sim.rng.seed(seed)
    robot = sim.scene[ENTITY]
    vel = robot.data.joint_vel
    noise = sim.rng.normal(slice(None), vel.shape[1]).to(vel)
    robot.write_joint_velocity_to_sim(vel + spread * noise)


def moving_worlds(
    scene: SceneCfg,
    envs: int,
    engine: EngineCfg,
    device: str,
    noise: float,
    seed: int,
    first_world: int = 0,
    integrator: Explicit | None = None,
    start: Snapshot | None = None,
) -> Simulation:
    """Return worlds of a model, each with different random joint velocities.

    They start at the model's first keyframe, or in the states of a snapshot.
    """
    from simstate.simulation import Simulation

    check_moves(scene)
    sim = Simulation(
        scene, envs, engine=engine, device=device, on_divergence="mask", seed=seed,
        first_world=first_world, integrator=integrator,
    )  # fmt: skip
    if start is not None:
        sim.restore(start)
    if start is None or noise:
        disturb(sim, noise, seed)
    return sim
