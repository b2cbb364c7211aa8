"""The scenes on which simulators are compared, and states of them by plain MuJoCo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from tests.laws import zoo
from tests.simulators import looped
from tests.state.conftest import document_scene

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.scene import models
from simstate.scene.element_names import name_elements
from simstate.scene.load import load_spec
from simstate.simulators import SIMULATORS, info, register

GYMNASIUM = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def asked_for() -> list[str]:
    """The simulators other than ours that the tests run on.

    SIMSTATE_SIMULATORS names those that must be there (`make test-simulators` sets it);
    without it, it is those that happen to be installed.
    """
    named = os.environ.get("SIMSTATE_SIMULATORS", "").split()
    for name in named:
        info(name).require()
    present = [n for n, s in SIMULATORS.items() if s.package and s.installed]
    return named or present


WORLDS = 3
"""How many worlds tests have where it does not matter: MJX compiles again for another
number, which takes minutes."""
register(looped.INFO)
OTHERS = [looped.NAME, *asked_for()]
"""Those behind an adapter; the first one is always there."""
ALL = ["native", "warp", *OTHERS]


def only(*names: str) -> list[Any]:
    """Parameters for a test of these simulators; those that are not there say so."""
    return [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                name not in OTHERS,
                reason=f"{name} is not installed; make test-simulators brings it",
            ),
        )
        for name in names
    ]


def off_centre(source: str) -> mujoco.MjSpec:
    """A model whose bodies all have their COM away from their origin."""
    spec = load_spec(source)
    model = spec.compile()
    name_elements(spec)
    for body in spec.bodies:
        if body.name == "world" or not model.body_mass[body.id]:
            continue
        k = body.id
        body.explicitinertial = True
        body.mass, body.inertia = model.body_mass[k], model.body_inertia[k]
        body.ipos = model.body_ipos[k] + (0.011, -0.017 - 0.001 * k, 0.023)
        body.iquat = model.body_iquat[k]
    return spec


def scene_of(name: str) -> SceneCfg:
    """One of the scenes by name."""
    if name == "document":
        return document_scene()
    if name == "second_tree":
        source = zoo.SECOND_TREE
    elif name.startswith("gymnasium/"):
        source = str(GYMNASIUM / f"{name.removeprefix('gymnasium/')}.xml")
    else:
        source = str(models.path(name))
    entity = EntityCfg(model=off_centre(source))
    return SceneCfg(entities={"robot": entity}, ground=False, timestep=None)


IDENTITY_SCENES = (
    *("arm", "quadruped", "cube", "humanoid", "finger", "document", "second_tree"),
    *("gymnasium/ant", "gymnasium/hopper", "gymnasium/walker2d_v5"),
)


def random_motion(
    model: mujoco.MjModel, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """qpos (count, nq) and qvel (count, nv), no two worlds alike, nothing at rest."""
    rng = np.random.default_rng(seed)
    qpos = np.tile(model.qpos0, (count, 1))
    for row in qpos:
        mujoco.mj_integratePos(model, row, rng.normal(size=model.nv), 0.4)
    return qpos, rng.normal(size=(count, model.nv))


def body_motion(
    model: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Position, quaternion, velocity of the origin and angular velocity of each body.

    By MuJoCo's own mj_objectVelocity, world axes; shape (nbody, k).
    """
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    vel = np.zeros((model.nbody, 6))
    for body in range(model.nbody):
        kind = mujoco.mjtObj.mjOBJ_XBODY
        mujoco.mj_objectVelocity(model, data, kind, body, vel[body], 0)
    return data.xpos.copy(), data.xquat.copy(), vel[:, 3:], vel[:, :3]


def place(sim: Simulation, qpos: np.ndarray, qvel: np.ndarray) -> None:
    """Put a simulation's worlds at generalised positions and velocities."""
    import torch

    sim.data.qpos[:] = torch.as_tensor(qpos)
    sim.data.qvel[:] = torch.as_tensor(qvel)
