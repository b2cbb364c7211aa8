"""Costs of a call: one world next to mj_step or a loop by hand, then many worlds.

`python benchmarks/one_world.py [--rows TEXT] [--json FILE]` prints every row in one
run, in CPU time. This file has the rows of one world, many_worlds.py the others. The
atomicity of interrupted steps is a matter of tests, not of this table.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

import mujoco
import numpy as np

import simstate
from by_hand import FULL, Load, RungeKutta
from entity_data import make
from rows import Call, Result, Timed, difference, main, row
from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation, integrate
from simstate.base.errors import SimStateError

STEPS = 100
"""Steps of one repeat."""
DRAG = 0.1
"""Force against the velocity of the free body [N·s/m]."""
RK4 = mujoco.mjtIntegrator.mjINT_RK4
ROOT = str(Path(simstate.__file__).parent)
C_FORCE = """
#include <mujoco/mujoco.h>
void force(const mjModel* m, mjData* d, const double* parameters, int world) {
  (void)m; (void)parameters; (void)world;
  for (int k = 0; k < 3; k++) d->xfrc_applied[6 + k] -= DRAG * d->qvel[k];
}
"""


def free_body(scheme: integrate.RK4 | None = None) -> Simulation:
    """Return one cube in flight that moves and turns, without a ground."""
    state = InitialStateCfg(
        pos=(0.1, 0.2, 3), rot=(0.8, 0, 0.6, 0), lin_vel=(1, 2, 3), ang_vel=(3, 2, 1)
    )
    cube = EntityCfg(model="cube", init_state=state)
    scene = SceneCfg(entities={"cube": cube}, ground=False)
    return Simulation(scene, integrator=scheme)


def rk4() -> Simulation:
    """Return the free body with Runge–Kutta steps of full order in the attitude."""
    return free_body(integrate.RK4(attitude="lie"))


def stepping(sim: Simulation, call: Call | None = None, loops: int = STEPS) -> Timed:
    """Time a call of `sim`, each repeat from the present state of its world."""
    start = sim.state.clone()

    def prepare() -> None:
        sim.write_state(start)
        sim.step()

    return Timed(call or sim.step, prepare, loops)


def by_mujoco(sim: Simulation, scheme: mujoco.mjtIntegrator | None = None) -> Timed:
    """Time mj_step with the model and from the present state of `sim`."""
    model = sim.model if scheme is None else copy.copy(sim.model)
    if scheme is not None:
        model.opt.integrator = scheme
    data = mujoco.MjData(model)
    start = sim.state[0].numpy().copy()

    def prepare() -> None:
        mujoco.mj_setState(model, data, start, FULL)
        mujoco.mj_step(model, data)

    return Timed(partial(mujoco.mj_step, model, data), prepare, STEPS)


@row("sim.step(), free body", "≤ mj_step + 4")
def _step_free() -> Result:
    sim = free_body()
    return difference(ours=stepping(sim), hand=by_mujoco(sim))


@row("sim.step(), quadruped", "≤ mj_step + 6")
def _step_quadruped() -> Result:
    sim = make("quadruped", 1)
    return difference(ours=stepping(sim), hand=by_mujoco(sim))


@row("sim.data.ctrl[:] = …; sim.step(), quadruped", "≤ mj_step + 10")
def _step_ctrl() -> Result:
    sim = make("quadruped", 1)
    ctrl = sim.data.ctrl.clone()

    def call() -> None:
        sim.data.ctrl[:] = ctrl
        sim.step()

    return difference(ours=stepping(sim, call), hand=by_mujoco(sim))


@row("set_joint_position_target(t); sim.step(), quadruped", "≤ mj_step + 16")
def _step_target() -> Result:
    sim = make("quadruped", 1)
    robot = sim.scene["robot"]
    target = robot.data.joint_pos_target.clone()
    robot.set_joint_position_target(target)

    def call() -> None:
        robot.set_joint_position_target(target)
        sim.step()

    return difference(ours=stepping(sim, call), hand=by_mujoco(sim))


@row("RK4(lie) step(); by hand mj_step RK4", "≤ mj_step RK4 + 5")
def _rk4_one() -> Result:
    sim = rk4()
    return difference(ours=stepping(sim), hand=by_mujoco(sim, RK4))


@row("RK4(lie) step(200) / 200; by hand mj_step RK4", "")
def _rk4_many() -> Result:
    sim = rk4()
    ours = replace(stepping(sim, partial(sim.step, 200), 1), steps=200)
    return difference(ours=ours, hand=by_mujoco(sim, RK4))


def drag_by_hand(data: mujoco.MjData) -> None:
    """Set the drag of the free body."""
    data.xfrc_applied[1, :3] = -DRAG * data.qvel[:3]


def push_by_hand(data: mujoco.MjData) -> None:
    """Set a constant force."""
    data.xfrc_applied[1, 0] = 1.0


def forced(add: Callable[[Simulation], object], load: Load = drag_by_hand) -> Result:
    """Return the row of RK4 steps with the load that `add` adds to a simulation."""
    sim = rk4()
    by_hand = RungeKutta(sim, load)
    try:
        add(sim)
    except (SimStateError, TypeError, NotImplementedError) as error:
        print(f"not available: {error}", file=sys.stderr)
        return Result("not available")
    result = difference(
        ours=stepping(sim), hand=Timed(by_hand.step, by_hand.prepare, STEPS)
    )
    if not np.allclose(sim.data.qvel[0].numpy()[:3], by_hand.data.qvel[:3], rtol=1e-9):
        raise AssertionError("The force acts otherwise than by hand.")
    return result


@row("RK4, force on NumPy views that the model holds", "≤ 45")
def _force_held() -> Result:
    def add(sim: Simulation) -> None:
        wrench, qvel = sim.data.xfrc_applied.numpy(), sim.data.qvel.numpy()

        def drag(*_: object) -> None:
            wrench[:, 1, :3] -= DRAG * qvel[:, :3]

        sim.add_force(drag)

    return forced(add)


@row("RK4, force on views: add_force(…, reads, writes)", "≤ 45")
def _force_on_views() -> Result:
    def drag(_: object, qvel: np.ndarray, wrench: np.ndarray) -> None:
        wrench[:, 1, :3] -= DRAG * qvel[:, :3]

    def add(sim: Simulation) -> None:
        views = {"reads": ("qvel",), "writes": ("xfrc_applied",)}
        sim.add_force(drag, **views)

    return forced(add)


def push(_: object, sim: Simulation) -> None:
    """Add a constant force."""
    sim.data.xfrc_applied[:, 1, 0].add_(1.0)


@row("RK4, force in torch", "≤ 65")
def _force_constant() -> Result:
    return forced(lambda sim: sim.add_force(push), push_by_hand)


@row("RK4, force in torch that reads a quantity", "≤ 150")
def _force_quantity() -> Result:
    def drag(_: object, sim: Simulation) -> None:
        velocity = sim.scene["cube"].data.root_link_lin_vel_w
        sim.data.xfrc_applied[:, 1, :3] -= DRAG * velocity

    return forced(lambda sim: sim.add_force(drag))


@dataclass(frozen=True)
class Compiled:
    """A force by the address of its C function, and what keeps that loaded."""

    address: int
    library: ctypes.CDLL = field(repr=False)


def compiled() -> Compiled | None:
    """Return the drag as a C function, or None without a compiler."""
    cc = shutil.which("cc")
    if cc is None:
        return None
    include = Path(mujoco.__file__).parent / "include"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "force.c"), Path(folder, "force.so")
        source.write_text(C_FORCE)
        options = ["-O2", "-shared", "-fPIC", f"-DDRAG={DRAG}", f"-I{include}"]
        subprocess.run([cc, *options, str(source), "-o", str(target)], check=True)
        library = ctypes.CDLL(str(target))
    return Compiled(ctypes.cast(library.force, ctypes.c_void_p).value or 0, library)


@row("RK4, force as a C address", "≤ 33")
def _force_address() -> Result:
    force = compiled()
    if force is None:
        return Result("not available: no C compiler")
    return forced(lambda sim: sim.add_force(force))


def path(call: Call) -> Result:
    """Return the row of a call path: Python calls and files of simstate."""
    files: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT):
            files.append(name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    calls, places = len(files), len(set(files))
    return Result(f"{calls}/{places}", figures={"calls": calls, "files": places})


@row("call path, calls/files: sim.step", "≤ 12/7")
def _path_step() -> Result:
    sim = make("quadruped", 4)
    sim.step()
    return path(sim.step)


@row("call path, calls/files: stale read", "≤ 25/8")
def _path_read() -> Result:
    sim = make("quadruped", 4)
    sim.step()
    sim.data.qpos[0, 7] += 0.1
    data = sim.scene["robot"].data
    return path(lambda: data.root_link_lin_vel_b)


@row("call path, calls/files: RK4 with a force", "≤ 80/13")
def _path_force() -> Result:
    sim = rk4()
    sim.add_force(push)
    sim.step()
    return path(sim.step)


@row("garbage after 1,000 steps [objects]", "0")
def _garbage() -> Result:
    sim = free_body()
    sim.step()
    gc.collect()
    gc.disable()
    try:
        for _ in range(1000):
            sim.step()
        left = gc.collect()
    finally:
        gc.enable()
    return Result(f"{left:,}", figures={"objects": left})


if __name__ == "__main__":
    import many_worlds  # noqa: F401  its rows follow those of this file

    main(__doc__)
