"""align: agreement of simulators with MuJoCo on a scene, and causes of differences."""

from __future__ import annotations

import mujoco

from simstate.base.checks import number, whole_number
from simstate.base.errors import ModelError
from simstate.scene import SceneCfg, build_scene
from simstate.simulators.align.causes import Matcher
from simstate.simulators.align.compare import QUESTIONS, compare
from simstate.simulators.align.findings import (
    Alignment,
    Cause,
    Comparison,
    RunGap,
    SimulatorAlignment,
)
from simstate.simulators.align.sample_states import SampleStates, sample_states
from simstate.simulators.align.trajectories import (
    compared,
    mujoco_run,
    sample_steps,
    simulator_run,
)
from simstate.simulators.catalog import info
from simstate.simulators.makers import make, make_mechanics
from simstate.simulators.mechanics import MechanicalState, MujocoMechanics
from simstate.simulators.parameters import compare_parameters
from simstate.simulators.plain_model import ALL_TERMS

__all__ = [
    "Alignment",
    "Cause",
    "Comparison",
    "RunGap",
    "SimulatorAlignment",
    "align",
]

Scene = SceneCfg | mujoco.MjModel


def align(
    scene: Scene,
    *simulators: str,
    theirs: Scene | None = None,
    model: str = "the scene",
    states: int = 3,
    seconds: float = 1.0,
    seed: int = 0,
) -> Alignment:
    """Compare simulators with MuJoCo's C functions on a scene.

    Compared are parameters by name, then kinematics, forces and single steps at random
    states, then a run. For each difference, MuJoCo's parameters are set to the
    simulator's until it disappears; only parameters necessary for that are its causes.

    Args:
        scene: the scene in MuJoCo.
        *simulators: names of other simulators, as `simulators.make` accepts them.
        theirs: the scene in the others, if it is another version with the same joints
            and bodies.
        model: name of the scene in the report.
        states: number of random states.
        seconds: duration of the runs [s]; 0: none.
        seed: seed of the states.
    """
    whole_number("states", states, 1)
    number("seconds", seconds, at_least=0)
    for name in simulators:
        info(name).require()
    built = build_scene(scene)
    start = MechanicalState(
        built.default.qpos.copy(), built.default.qvel.copy(), built.default.ctrl.copy()
    )
    samples = sample_states(built.model, start, states, seed)
    other = scene if theirs is None else theirs
    _check_same(built.model, build_scene(other).model)
    found: list[SimulatorAlignment] = []
    skipped: dict[str, str] = {}
    for name in simulators:
        try:
            found.append(_align_one(name, built.model, other, start, samples, seconds))
        except ModelError as error:
            skipped[name] = str(error)
    return Alignment(model, tuple(found), seed, skipped)


def _check_same(ours: mujoco.MjModel, theirs: mujoco.MjModel) -> None:
    """Raise unless two versions of a scene have the same joints and bodies."""
    sizes = ("nq", "nv", "nbody", "njnt", "nu")
    different = [
        f"{size} is {getattr(ours, size)} here and {getattr(theirs, size)} there"
        for size in sizes
        if getattr(ours, size) != getattr(theirs, size)
    ]
    if different:
        raise ModelError(
            "The two versions of the scene must have the same bodies, joints and "
            f"actuators: {'; '.join(different)}.",
            name="scene",
        )


def _align_one(
    name: str,
    model: mujoco.MjModel,
    scene: Scene,
    start: MechanicalState,
    states: SampleStates,
    seconds: float,
) -> SimulatorAlignment:
    entry = info(name)
    ours, theirs = MujocoMechanics(model), make_mechanics(name, scene)
    our_parameters, their_parameters = ours.parameters(), theirs.parameters()
    width = 1e-5 if theirs.single else 1e-12
    differences = compare_parameters(our_parameters, their_parameters, width)
    matcher = Matcher(model, differences)
    comparisons = [compare(q, ours, theirs, matcher, states) for q in QUESTIONS]
    trajectory, matched = None, None
    if seconds:
        steps = sample_steps(model, seconds)
        run = simulator_run(make(name, scene), start, steps)
        trajectory = compared(model, mujoco_run(model, start, steps), run, steps)
        best = matcher.matched(frozenset(matcher.kinds))
        if best is not None:
            own = mujoco_run(best.stepping_model(ALL_TERMS), start, steps)
            matched = compared(best.model, own, run, steps)
    return SimulatorAlignment(
        simulator=name,
        title=entry.title,
        parameters=tuple(differences),
        not_reported=tuple(k for k in our_parameters if k not in their_parameters),
        missing=entry.capabilities.missing(model),
        comparisons=tuple(comparisons),
        trajectory=trajectory,
        matched=matched,
        notes=theirs.notes(),
    )
