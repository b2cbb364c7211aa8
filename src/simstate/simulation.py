"""Simulation: a compiled scene on an engine, whose numbers are never stale."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import mujoco
import torch
from torch import Tensor

from simstate.divergence import Divergence, bad_elements, divergence_error
from simstate.engine import (
    EVOLVING_FIELDS,
    FIELDS,
    EngineCfg,
    RawData,
    Stage,
    make_engine,
)
from simstate.entity import Entity, SceneEntities
from simstate.errors import InvalidInputError, unknown_name
from simstate.freshness import Freshness, Mode, assign
from simstate.ids import (
    Ids,
    Selection,
    Values,
    as_values,
    check_finite,
    everything,
    int_list,
    select,
)
from simstate.scene import SceneCfg, build_scene

if TYPE_CHECKING:  # these build on Simulation and are loaded when they are used
    from simstate.integrate import (
        DrivingNoise,
        ForceModel,
        Integration,
        Integrator,
        Process,
    )
    from simstate.sensors import SceneCameras
    from simstate.state import Snapshot, State, StateList, TensorState

OnDivergence = Literal["raise", "mask"]


class Simulation:
    """`num_envs` worlds of one scene, stepped together.

    `sim.scene["robot"].data` has the quantities of an entity, `sim.data` MuJoCo's own
    fields for all worlds, `sim.state` everything that physics needs to go on.

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
        seed: seeds `sim.rng`, the simulation's random generator.
    """

    def __init__(
        self,
        scene: SceneCfg | mujoco.MjModel,
        num_envs: int = 1,
        engine: EngineCfg = "native",
        device: str | torch.device = "cpu",
        integrator: Integrator | None = None,
        freshness: Mode = "auto",
        on_divergence: OnDivergence = "raise",
        seed: int = 0,
    ) -> None:
        num_envs = _positive("num_envs", num_envs)
        _one_of("freshness", freshness, ("auto", "strict", "off"))
        _one_of("on_divergence", on_divergence, ("raise", "mask"))
        built = build_scene(scene)
        self.model = built.model
        """The compiled scene, on the host. To change physics, use `expand`."""
        self.num_envs = num_envs
        self.on_divergence: OnDivergence = on_divergence
        self.engine = make_engine(built.model, num_envs, engine, _as_device(device))
        self.device = self.engine.device
        self.dtype = self.engine.dtype
        self.seed = seed
        self.rng = torch.Generator(device=self.device).manual_seed(seed)
        with torch.inference_mode(False):
            self.diverged = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
            """Worlds that diverged and wait for a reset; shape (num_envs,)."""
            self._some_diverged = False
            self._default_row = self._row_of(built.default)
            self.default_fields = self._fields_of(self._default_row[0])
            """The state fields at reset, of one world, without leading dimension."""
        self._last_selection: tuple[Tensor | None, int, Selection] = (
            None,
            0,
            everything(num_envs),
        )
        self.divergence: Divergence | None = None
        """What diverged in the last step; None: nothing did."""
        self.fresh = Freshness(self.engine, freshness)
        self.data = RawData(self)
        self.scene = SceneEntities(
            {
                name: Entity(index, self, built.configs[name])
                for name, index in built.entities.items()
            }
        )
        self._camera_cfgs = built.cameras
        self._cameras: SceneCameras | None = None
        self.integration: Integration | None = None
        """Force models, processes and the integrator, once there are any."""
        if integrator is not None:
            self._integration(integrator)
        self._write_first_state()
        self.forward()

    @property
    def cameras(self) -> SceneCameras:
        """The scene's cameras by name, rendered when they are read."""
        from simstate.sensors import SceneCameras

        if self._cameras is None:
            self._cameras = SceneCameras(self, self._camera_cfgs)
        return self._cameras

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (num_envs,)."""
        return self.data.time

    @property
    def timestep(self) -> float:
        """The physics time step [s]."""
        return float(self.model.opt.timestep)

    @property
    def freshness(self) -> Mode:
        """What a read of a stale quantity does: "auto", "strict" or "off"."""
        return self.fresh.mode

    @property
    def state(self) -> Tensor:
        """All that physics needs to go on, MuJoCo's order; (num_envs, nstate).

        On native it is the live state, which may be written; on warp a copy of it.
        """
        return self.engine.state

    def write_state(self, state: Values, env_ids: Ids = None) -> None:
        """Write rows of `sim.state` back; shape (n, nstate)."""
        rows = self.select_envs(env_ids)
        like = self.engine.field("qpos")
        values = as_values(state, "state", rows.count, (self.engine.nstate,), like)
        check_finite(values, "state")
        self.write_rows(values, rows)

    def write_rows(self, state: Tensor, rows: Selection) -> None:
        """Write rows of the state, unchecked, into its fields."""
        if self.engine.state_is_live:
            self.fresh.observe()
            self.engine.state[rows.index] = state
            self.fresh.written("sim.state", rows)
            return
        for name, columns in self.engine.columns.items():
            shape = self.engine.field_shape(name)[1:]
            part = state[:, columns].reshape(state.shape[0], *shape)
            if part.numel():
                self.fresh.write(name, rows, None, part)

    def step(self, n: int = 1, env_ids: Ids = None) -> None:
        """Advance worlds by n time steps, None: all; the others are not touched.

        Positions and velocities are fresh then.

        Accelerations and forces are then those of the last dynamics evaluation, at
        the state before the last of the n steps; with an `integrator` they are of the
        new state, too. Worlds in `diverged` do not move.
        """
        n = _positive("n", n)
        integration = self.integration
        moving = self._moving(self.select_envs(env_ids))
        self.divergence = None
        if integration is None:
            bad = self.engine.step(n, moving)
            self.fresh.stepped(moving)
        else:
            bad = integration.step(n, moving)
        if bad is not None and moving is not None:
            bad &= torch.zeros_like(bad).index_fill(0, moving, True)
        if bad is not None and bool(bad.any()):
            self._handle_divergence(bad, n)

    def add_force(self, model: ForceModel) -> None:
        """Call `model(t, sim)` at every evaluation of the dynamics, to write loads.

        It reads quantities and writes wrenches, controls, applied forces or mass rates
        for all worlds, and must give the same for the same time and state: see
        `simstate.integrate.forces`. With MuJoCo's own stepper (integrator=None) it is
        evaluated once a time step, and its loads are held.
        """
        self._integration().add_force(model)

    def add_process(self, process: Process) -> None:
        """Integrate extra numbers of each world with its mechanics."""
        self._integration().add_process(process)

    def add_noise(self, noise: DrivingNoise) -> None:
        """Let noise sources drive the state; needs a stochastic integrator."""
        self._integration().add_noise(noise)

    @property
    def mass_rate(self) -> Tensor:
        """How fast each body's mass changes [kg/s]; (num_envs, nbody), to be written.

        Inertias scale with the masses. The masses are `sim.expand("body_mass")`.
        """
        return self._integration().enable_mass_flow().rate

    def _integration(self, integrator: Integrator | None = None) -> Integration:
        from simstate.integrate import Integration

        if self.integration is None:
            self.integration = Integration(self, integrator)
        return self.integration

    def forward(self, env_ids: Ids = None) -> None:
        """Evaluate the dynamics at the present state: every field is current then."""
        rows = self.select_envs(env_ids)
        if rows.count:
            ids = None if rows.is_all else rows.tensor(self.device)
            self.fresh.forward(ids)

    def reset(self, env_ids: Ids = None) -> None:
        """Bring worlds back to the default state; the others are not touched.

        The default is the scene's initial state, with each entity's `default_…`
        quantities, which may differ from world to world.
        """
        rows = self.select_envs(env_ids)
        if not rows.count:
            return
        changed = [entity for entity in self.scene.values() if entity.defaults_changed]
        for entity in changed:
            entity.check_defaults(env_ids)
        self.write_rows(self._default_row, rows)
        if self.integration is not None:
            self.integration.reset(rows)
        if self._some_diverged:
            self.mark_diverged(torch.zeros_like(self.diverged[rows.index]), rows)
        for entity in changed:
            entity.write_defaults_to_sim(env_ids)

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
        from simstate.state import StateList, read_states

        _one_of("mode", mode, ("dict", "tensor"))
        tensors = read_states(self, self.select_envs(env_ids), cameras)
        return StateList(tensors) if mode == "dict" else tensors

    def set_states(
        self, states: Sequence[State] | TensorState, env_ids: Ids = None
    ) -> None:
        """Write unified states, whole or in part; what is not given stays.

        One state for each selected world, or a single one for all of them. Everything
        is checked before anything is written.
        """
        from simstate.state import write_states

        write_states(self, states, self.select_envs(env_ids))

    def snapshot(self, env_ids: Ids = None) -> Snapshot:
        """Everything that the worlds need to go on exactly as they would have."""
        from simstate.state import take_snapshot

        return take_snapshot(self, self.select_envs(env_ids))

    def restore(self, snapshot: Snapshot, env_ids: Ids = None) -> None:
        """Bring worlds to the state of a snapshot; one of one world fits all of them.

        The random generator goes back too, if all worlds are restored.
        """
        from simstate.state import restore_snapshot

        restore_snapshot(self, snapshot, self.select_envs(env_ids))

    def mark_diverged(self, diverged: Tensor, rows: Selection) -> None:
        """Say of the selected worlds whether they have diverged; shape (n,)."""
        self.diverged[rows.index] = diverged
        self._some_diverged = bool(self.diverged.any())

    def expand(self, name: str) -> Tensor:
        """Live per-world values of a model parameter; shape (num_envs, …).

        `name` is a field of MjModel ("body_mass") or of its options ("opt.gravity").
        Writes count at the next step or read. After a change of masses, inertias,
        sizes or positions call `set_const`.
        """
        tensor = self.engine.expand(name)
        label = f'sim.expand("{name}")'
        if not self.fresh.is_watched(label):
            self.fresh.watch(label, tensor, Stage.POSITION)
        return tensor

    def write_parameter(
        self, name: str, values: Values, element_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write a model parameter of some elements in some worlds; shape (n, E, …).

        As writing into `expand(name)`, but checked, and the other worlds stay fresh.
        """
        tensor = self.expand(name)
        rows = self.select_envs(env_ids)
        elements = select(element_ids, tensor.shape[1], f"{name} element", self.device)
        shape = (elements.count, *tensor.shape[2:])
        checked = as_values(values, name, rows.count, shape, tensor)
        check_finite(checked, name)
        if rows.count and elements.count:
            self.fresh.observe()
            assign(tensor, rows.index, elements.index, checked)
            self.fresh.written(f'sim.expand("{name}")', rows)

    def set_const(self, env_ids: Ids = None) -> None:
        """Recompute the constants that depend on changed parameters; state is kept."""
        rows = self.select_envs(env_ids)
        if rows.count:
            ids = None if rows.is_all else rows.tensor(self.device)
            self.fresh.observe()
            self.engine.set_const(ids)
            if self.integration is not None and self.integration.mass_flow is not None:
                self.integration.mass_flow.keep_defaults(rows.index)
            self.fresh.mark(Stage.POSITION, ids, "sim.set_const()")

    def read_field(self, name: str) -> Tensor:
        """The live tensor of a raw field, as fresh as `freshness` says."""
        tensor = self.fresh.live_field(name)
        field = FIELDS[name]
        stage = Stage.STATE if field.is_state else field.stage
        self.fresh.ensure(stage, f"sim.data.{name}")
        return tensor

    def select_envs(self, env_ids: Ids) -> Selection:
        """The validated selection of worlds that `env_ids` makes."""
        # The writes of a reset are all for the same worlds, given as the same tensor.
        if not isinstance(env_ids, Tensor) or env_ids.is_inference():
            return select(env_ids, self.num_envs, "env", self.device)
        known, version, rows = self._last_selection
        if env_ids is not known or env_ids._version != version:
            rows = select(env_ids, self.num_envs, "env", self.device)
            self._last_selection = (env_ids, env_ids._version, rows)
        return rows

    def _write_first_state(self) -> None:
        """Write the entities' defaults, and keep what they make of the state."""
        everywhere = everything(self.num_envs)
        self.write_rows(self._default_row, everywhere)
        for entity in self.scene.values():
            entity.write_defaults_to_sim()
        self._default_row = self.state[:1].clone()

    def _moving(self, rows: Selection) -> Tensor | None:
        """The ids of those worlds that have not diverged; None if that is all."""
        if rows.is_all and not self._some_diverged:
            return None
        ids = rows.tensor(self.device)
        return ids[~self.diverged[ids]]

    def _handle_divergence(self, bad: Tensor, n: int) -> None:
        """Give bad worlds their state back, then raise or mark them."""
        before = self.engine.before
        elements = bad_elements(self.engine, bad)
        rows = self.select_envs(bad)
        ids = rows.tensor(self.device)
        self.divergence = Divergence(int_list(ids), elements, self.state[ids])
        for name in EVOLVING_FIELDS:
            shape = self.engine.field_shape(name)[1:]
            values = before[bad, self.engine.columns[name]]
            self.fresh.write(name, rows, None, values.reshape(rows.count, *shape))
        if self.integration is not None:
            self.integration.put_back(rows.index)
        self.fresh.forward(ids)
        if self.on_divergence == "raise":
            raise divergence_error(self.engine, bad, before[:, 0], n, elements)
        self.diverged |= bad
        self._some_diverged = True

    def _row_of(self, data: mujoco.MjData) -> Tensor:
        """The state of an MjData as one row; shape (1, nstate)."""
        spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
        row = torch.zeros(mujoco.mj_stateSize(self.model, spec), dtype=torch.float64)
        mujoco.mj_getState(self.model, data, row.numpy(), spec)
        return row[None].to(device=self.device, dtype=self.dtype)

    def _fields_of(self, row: Tensor) -> dict[str, Tensor]:
        """A row of the state, split into its fields."""
        return {
            name: row[columns].reshape(self.engine.field_shape(name)[1:])
            for name, columns in self.engine.columns.items()
        }


def _one_of(what: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise unknown_name(what, str(value), allowed)


def _positive(what: str, value: object) -> int:
    """A whole number of at least 1."""
    try:
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise InvalidInputError(
            f"{what} must be ≥ 1 and a whole number, got {value!r}."
        )
    return number


def _as_device(device: str | torch.device) -> torch.device:
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidInputError(
            f"device must be 'cpu' or 'cuda', as torch names them, got {device!r}."
        ) from error
