"""The oracle suite: compare every quantity of a model with MuJoCo's functions.

report = oracles.check(SceneCfg(entities={"robot": EntityCfg(model="robot.xml")}))
print(report)
assert report.passed
"""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import torch

from simstate.engine import EngineCfg, NativeCfg
from simstate.scene import SceneCfg
from simstate.scene.build import BuiltScene, build_scene
from simstate.simulation import Simulation
from simstate.study.oracles.attribution import attributed
from simstate.study.oracles.laws import LAWS, Finding, Law
from simstate.study.oracles.pinocchio_reading import pinocchio_findings
from simstate.study.oracles.random_states import randomize
from simstate.study.oracles.verdicts import Check, Report, relative_error
from simstate.world.worlds import worlds_of

__all__ = ["LAWS", "Check", "Law", "Report", "check", "randomize", "relative_error"]


def check(
    scene: SceneCfg | mujoco.MjModel,
    engine: EngineCfg = "native",
    num_envs: int = 4,
    seed: int = 0,
    device: str = "cpu",
) -> Report:
    """Check every law on a model in random states, and return a report."""
    built = build_scene(scene)
    sim = _randomized(built, engine, num_envs, seed, device)
    report = Report(sim.engine_name)
    for name, match in built.matches.items():  # a difference would have raised
        law = f"the scene matches its file: {match.arrays} arrays, 0 differ"
        report.checks.append(Check(law, name, "model", 0.0, 0.0))
    if isinstance(scene, SceneCfg):
        for name, cfg in scene.entities.items():
            found = pinocchio_findings(name, cfg.model, built.model)
            if isinstance(found, str):
                report.unchecked.append(found)
            else:
                report.checks += found
    for law in LAWS:
        randomize(sim, seed)
        tolerance = law.tolerance(sim)
        if tolerance is not None:
            for entity, quantity, error in law.find(sim):
                check = Check(law.name, entity, quantity, error, tolerance)
                report.checks.append(check if check.passed else attributed(sim, check))
    if worlds_of(sim).engine.is_exact:
        for law, other in _other_batches(built, engine, num_envs):
            for entity, quantity, error in _same_run(
                built, engine, num_envs, seed, other
            ):
                report.checks.append(Check(law, entity, quantity, error, 0.0))
    return report


def _randomized(
    scene: BuiltScene,
    engine: EngineCfg,
    num_envs: int,
    seed: int,
    device: str,
) -> Simulation:
    """Return a simulation with random worlds whose engine has room for all contacts.

    The engine's default is for ordinary states; in random ones, bodies may overlap.
    """
    sim = Simulation(scene, num_envs, engine=engine, device=device)
    randomize(sim, seed)
    bare = worlds_of(sim).engine.bare_forward()
    if bare is None or bare.roomier is None:
        return sim
    return _randomized(scene, bare.roomier, num_envs, seed, device)


def _other_batches(
    scene: BuiltScene, engine: EngineCfg, num_envs: int
) -> Iterator[tuple[str, Simulation]]:
    """Yield simulations whose worlds must have the same bits as those of `check`."""
    one = Simulation(scene, 1, engine=engine, on_divergence="mask")
    yield "a batch of one = a batch of many", one
    for threads in (1, 3):
        cfg = NativeCfg(num_threads=threads)
        sim = Simulation(scene, num_envs, engine=cfg, on_divergence="mask")
        yield "the number of threads changes nothing", sim


def _same_run(
    scene: BuiltScene,
    engine: EngineCfg,
    num_envs: int,
    seed: int,
    other: Simulation,
    steps: int = 20,
) -> Iterator[Finding]:
    """Run the same worlds in both simulations; any difference is an error."""
    sim = Simulation(scene, num_envs, engine=engine, on_divergence="mask")
    randomize(sim, seed)
    other.write_state(sim.state[: other.num_envs])
    for _ in range(steps):
        sim.step()
        other.step()
    compared = {("scene", "state"): (other.state, sim.state)}
    for name, entity in sim.scene.items():
        for quantity in ("body_link_pose_w", "body_link_vel_w"):
            mine = other.scene[name].data.read(quantity)
            compared[name, quantity] = mine, entity.data.read(quantity)
    for (name, quantity), (value, reference) in compared.items():
        reference = reference[: other.num_envs]
        is_same = torch.equal(value, reference)
        error = 0.0 if is_same else max(relative_error(value, reference), 1e-300)
        yield name, quantity, error
