"""Simulation: a scene in many worlds, stepped together, read in any state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import mujoco
import numpy as np
import torch

from simstate.checks import one_of
from simstate.dynamics import SceneDynamics
from simstate.engine import EngineCfg
from simstate.entity.relative import Relative
from simstate.errors import InvalidInputError
from simstate.freshness import Mode
from simstate.ids import Ids
from simstate.integrate.history import History, Recorded
from simstate.integrate.integration import Integrator
from simstate.integrate.worlds import IntegratedWorlds
from simstate.record import SimRecorder
from simstate.scene import SceneCfg, build_scene
from simstate.scene.build import BuiltScene
from simstate.sensors import SceneCameras, SceneContacts, SceneRays
from simstate.sensors.contact_table import ContactTable, contact_table
from simstate.state import (
    Snapshot,
    StateList,
    TensorState,
    read_states,
    restore_snapshot,
    take_snapshot,
    write_states,
)
from simstate.state.apply import States
from simstate.variants import write_variant
from simstate.view import Course, start_offscreen, start_viewer
from simstate.worlds import OnDivergence

if TYPE_CHECKING:
    from simstate.view.viewer import Viewer


class Simulation(IntegratedWorlds):
    """`num_envs` worlds of one scene, stepped together.

    `sim.scene["robot"].data` has the quantities of an entity, `sim.data` MuJoCo's own
    fields for all worlds, `sim.state` everything that physics needs to go on. Tensors
    have a row for each world, the engine's dtype (float64 on native, float32 on warp)
    and its device.

    **Worlds** do not know of each other: a world of a batch has the bits that it would
    have alone, on native with any number of threads. `env_ids` selects some of them
    (None, an int, a slice, ids or a mask); the others are not touched.

    **Reads** are of the present state. A write, also `sim.data.qpos[3] = …` by hand,
    makes what is derived from it stale, and the next read of that computes it first
    (`freshness`). After `step` positions and velocities are those of the new state. As
    with mj_step, accelerations and forces are then those of the last evaluation, at the
    state before the last time step; `forward` evaluates them at the present one. Views
    of the engine's memory are live: `clone()` keeps one.

    **Everything that a world is** lies in slots of one ledger: MuJoCo's state, inputs,
    expanded parameters, targets, defaults, processes, sensors' clocks, random streams,
    and numbers of your own (`memory`). `reset`, `snapshot` and `restore` are about all
    of them; what lies elsewhere is not part of a world.

    **Calls are transactions.** Each has happened wholly or not at all: one that raises
    or is interrupted leaves the worlds as they were before it, at the latest when the
    next call begins. A simulation belongs to one thread at a time.

    **A world that diverges** (NaN, or numbers beyond what MuJoCo takes) gets back the
    state from before the step; `on_divergence` says what then. The others have taken
    the step.

    Args:
        scene: what to simulate; or a compiled MjModel, as one entity "model".
        num_envs: the number of worlds.
        engine: "native" (CPU, float64) or "warp" (CUDA or CPU, float32), or a
            NativeCfg or WarpCfg with options.
        device: where the tensors are; "cuda" needs the warp engine.
        integrator: what advances the state: None for MuJoCo's own stepper, as the
            model's options say, or a scheme of `simstate.integrate`, such as
            RK4(attitude="lie"); the options' integrator is then not used.
        freshness: what a read of a quantity does that a write left behind: "auto"
            computes it first, "strict" raises StaleReadError, "off" returns what is
            there.
        on_divergence: "raise" raises DivergenceError in the step in which a world goes
            bad; "mask" marks the world in `diverged` and goes on with the others.
        seed: seeds `sim.rng`, the worlds' random numbers, and the noise of stochastic
            integrators.
        first_world: the global id of the first world. World 7 of a run has the same
            random numbers in any batch, process or machine.
    """

    def __init__(
        self,
        scene: SceneCfg | mujoco.MjModel | BuiltScene,
        num_envs: int = 1,
        *,
        engine: EngineCfg = "native",
        device: str | torch.device = "cpu",
        integrator: Integrator | None = None,
        freshness: Mode = "auto",
        on_divergence: OnDivergence = "raise",
        seed: int = 0,
        first_world: int = 0,
    ) -> None:
        super().__init__(
            scene, num_envs, engine, device, integrator, freshness, on_divergence,
            seed, first_world,
        )  # fmt: skip
        self.cameras = SceneCameras(self, self._built.cameras)
        """The scene's cameras by name, rendered when they are read."""
        self.contacts = SceneContacts(self.internals, self._built.contacts)
        """The scene's contact sensors by name."""
        self.rays = SceneRays(self.internals, self._built.rays)
        """The scene's rays by name, cast when they are read."""
        self.dynamics = SceneDynamics(self.internals)
        """Mass matrix, forces, momenta and energies of the whole scene."""

    def contact_table(self, env_ids: Ids = None) -> ContactTable:
        """All contacts of some worlds at the present state, one in a row, with names.

        For debugging and analysis: the native engine computes it one world after the
        other. What is read in every step is a contact sensor, `sim.contacts`.
        """
        self._recover()
        return contact_table(self.internals, env_ids)

    def relative(self, of: str, to: str = "world", axes: str | None = None) -> Relative:
        """How the frame `of` moves as seen from the frame `to`, along a third's axes.

        Frames are "entity/body", "entity/site", "entity/geom" or "world"; `axes` None:
        those of `to`. The result has pos, quat, lin_vel, ang_vel, lin_acc, ang_acc and
        the jacobian that takes qvel to the velocities.
        """
        self._recover()
        return Relative(self.internals, self.scene, of, to, axes)

    @overload
    def get_states(
        self,
        env_ids: Ids = None,
        mode: Literal["dict"] = "dict",
        cameras: bool = True,
    ) -> StateList: ...
    @overload
    def get_states(
        self, env_ids: Ids = None, *, mode: Literal["tensor"], cameras: bool = True
    ) -> TensorState: ...
    def get_states(
        self,
        env_ids: Ids = None,
        mode: Literal["dict", "tensor"] = "dict",
        cameras: bool = True,
    ) -> StateList | TensorState:
        """A copy of the unified state: a list of dictionaries, or tensors with names.

        Positions and velocities are those of link origins along world axes; see
        `simstate.state.types`. `cameras=False` leaves the images out.
        """
        one_of("mode", mode, ("dict", "tensor"))
        tensors = read_states(
            self, self._select(env_ids), self.cameras if cameras else {}
        )
        return StateList(tensors) if mode == "dict" else tensors

    def set_states(self, states: States, env_ids: Ids = None) -> None:
        """Write unified states, whole or in part; what is not given stays.

        One state for each selected world, or a single one for all of them. Everything
        is checked before anything is written.
        """
        write_states(self, states, self._select(env_ids))

    def write_variant(
        self, variant: SceneCfg | mujoco.MjModel, env_ids: Ids = None
    ) -> None:
        """Give worlds other objects: the same scene with a choice of its own.

        A variant has the same elements and the same assets, compiled with other meshes
        or heightfields in its geoms, other sizes, masses, places or colours. What
        differs becomes parameters of these worlds.
        """
        rows = self._select(env_ids)
        write_variant(self.internals, build_scene(variant).model, rows)

    @overload
    def record(
        self, path: None = None, *, quantities: Recorded, every: float | None = None
    ) -> History: ...
    @overload
    def record(
        self,
        path: str | Path,
        *,
        quantities: Recorded = (),
        fields: Sequence[str] = (),
        every: float | None = None,
        worlds: Ids = None,
        inputs: bool = True,
        snapshot_every: float | None = 10.0,
    ) -> SimRecorder: ...
    def record(
        self,
        path: str | Path | None = None,
        *,
        quantities: Recorded = (),
        fields: Sequence[str] = (),
        every: float | None = None,
        worlds: Ids = None,
        inputs: bool = True,
        snapshot_every: float | None = 10.0,
    ) -> History | SimRecorder:
        """Keep quantities over time from now on: in memory, or in a file.

        In memory samples are taken at any time, also within a step, and those within a
        step are of the scheme's full order. In a file they are taken after calls of
        `step`; it also holds what is needed to take the steps again. End it with
        `close()`, or with a `with` block.

        Args:
            path: the file; None: in memory.
            quantities: names (`"robot.root_link_pos_w"`, `"qpos"`, a process's), or
                names of your own with such a name, with a function of the simulation
                that gives (num_envs, …), or with a function and its unit.
            fields: raw fields of `sim.data`, in a file.
            every: the time between two samples [s]; None: in memory at the end of each
                step of the scheme and at crossings of events, in a file after each
                call of `step`.
            worlds: those whose quantities are kept in a file; None: all.
            inputs: whether a file holds what a replay needs: snapshots, each call of
                `step`, and what was written in between, of all worlds.
            snapshot_every: simulated time between two snapshots in a file [s], from
                which a replay can begin; None: only the first.
        """
        if path is not None:
            self._recover()
            return SimRecorder(
                self, path, quantities, fields, every, worlds, inputs, snapshot_every
            )
        if fields or worlds is not None:
            raise InvalidInputError(
                "fields= and worlds= are for a recording in a file: name its path."
            )
        return super().record(quantities=quantities, every=every)

    def snapshot(self, env_ids: Ids = None) -> Snapshot:
        """Everything that the worlds need to go on exactly as they would have."""
        return take_snapshot(self.internals, self._select(env_ids))

    def restore(self, snapshot: Snapshot, env_ids: Ids = None) -> None:
        """Bring worlds to the state of a snapshot; one of one world fits all of them.

        All of it is checked before anything is written. What worlds have in common is
        restored together with all of them.
        """
        restore_snapshot(self.internals, snapshot, self._select(env_ids))

    def view(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        token: str | None = None,
        worlds: int | None = None,
        playing: bool = True,
    ) -> Viewer:
        """Show the worlds in a browser, at the viewer's `url`; needs the extra `view`.

        `viewer.run()` plays them. A script that steps them itself calls `viewer.sync()`
        after each step. In a notebook the viewer shows itself.

        Args:
            host: the interface to listen on; one that others reach needs a token.
            port: the first port to try; 0: any that is free.
            token: what the address must contain; None: nothing, "": one is made.
            worlds: how many are shown side by side at first; None: up to 16.
            playing: whether `run` plays at first, and `sync` goes on.
        """
        return start_viewer(Course(self, self.rays), host, port, token, worlds, playing)

    def render(
        self,
        worlds: int | Sequence[int] = 0,
        *,
        overlays: Sequence[str] = (),
        width: int = 640,
        height: int = 480,
        camera: str | tuple[Sequence[float], Sequence[float]] = "corner",
        values: bool = True,
    ) -> np.ndarray:
        """A picture of the present state, uint8; (height, width, 3).

        Needs the extra `view`, but neither a browser nor a display. For pictures that a
        policy sees, and for many worlds, there are cameras: `SceneCfg(cameras=…)`.

        Args:
            worlds: one or more, side by side; the first has the overlays.
            overlays: what else is drawn, as the viewer lists it: "contacts", "link
                frames", "COM velocities", …
            width: [px].
            height: [px].
            camera: from where: "corner", "front", "side" or "above"; or where it stands
                and what it looks at, world axes [m].
            values: whether the values of forces are written at their arrows.
        """
        ids = [worlds] if isinstance(worlds, int) else list(worlds)
        course = Course(self, self.rays)
        drawing = start_offscreen(
            course, ids, overlays, (width, height), camera, values=values
        )
        return drawing.picture()
