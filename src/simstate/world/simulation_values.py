"""The values of a simulation's worlds: state, parameters, memory, random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import mujoco
import torch
from torch import Tensor

from simstate.base.ids import Ids, Selection, Values
from simstate.scene import SceneCfg, build_scene
from simstate.world.freshness import Mode
from simstate.world.last_evaluation import LastEvaluation
from simstate.world.numpy_streams import NumpyStreams
from simstate.world.random import WorldRandom
from simstate.world.slot import Reset
from simstate.world.user_memory import StageName, user_memory
from simstate.world.variants import write_variant
from simstate.world.worlds import Worlds


class SimulationValues:
    """The methods of `simstate.Simulation` that read and write slots of its worlds."""

    dtype: torch.dtype
    _worlds: Worlds
    _evaluated: LastEvaluation
    _first_world: int

    @property
    def rng(self) -> WorldRandom:
        """The worlds' random numbers: a stream for each, in the ledger."""
        return self._worlds.rng

    @cached_property
    def numpy_rng(self) -> NumpyStreams:
        """The worlds' NumPy streams, bit-identical with NumPy's PCG64.

        World i starts as `numpy.random.default_rng(seed + i)`. The first use adds the
        slot that holds them, so it is not within a step.
        """
        self._recover()
        return NumpyStreams(self._worlds.ledger, self.rng, self._first_world)

    @property
    def engine_name(self) -> str:
        """The engine that runs the worlds: "native" or "warp"."""
        return self._worlds.engine.name

    @property
    def freshness(self) -> Mode:
        """The effect of reading a stale quantity: "auto", "strict" or "off"."""
        return self._worlds.fresh.mode

    @property
    def state(self) -> Tensor:
        """The complete physics state in MuJoCo's order; shape (num_envs, nstate).

        It may be written. On native it is the live state; on warp it is brought up to
        date when it is read.
        """
        self._recover()
        return self._worlds.rows.read()

    def write_state(self, state: Values, env_ids: Ids = None) -> None:
        """Write rows of `sim.state`; shape (n, nstate)."""
        self._worlds.write_state(state, self._select(env_ids))

    def write_field(self, name: str, values: Values, env_ids: Ids = None) -> None:
        """Write a field of the state as given, in some worlds; shape (n, …).

        The same as writing into `sim.data.<name>`, but checked, and the other worlds
        stay fresh. Quaternions are not normalised, unlike by an entity's writers:
        physics takes one of any length as its direction, and `sim.data.qpos` returns
        what was written.

        Args:
            name: a field of the state, such as "qpos" or "qacc_warmstart".
            values: finite numbers.
            env_ids: the worlds; None: all.
        """
        self._worlds.write_field(name, values, self._select(env_ids))

    def memory(
        self,
        name: str,
        shape: Sequence[int] = (),
        *,
        dtype: torch.dtype | None = None,
        reset: Reset = 0.0,
        stage: StageName | None = None,
        unit: str = "",
        axes: str = "",
        shared: bool = False,
    ) -> Tensor:
        """Return your own live values for each world; shape (num_envs, *shape).

        They are part of the world: reset with it, in every snapshot, undone with an
        interrupted step. A second call with the same name returns the same tensor.

        Args:
            name: the name in snapshots.
            shape: of one world's values.
            dtype: None: the engine's.
            reset: the value that a reset writes, and the initial value: a number, one
                row, a row for each world, or a function of the ids that are reset (the
                initial value is then 0); None: a reset keeps the values.
            stage: the first stage that depends on it ("acceleration" for what a force
                model reads); None: nothing does.
            unit: stored in snapshots.
            axes: likewise.
            shared: True if all worlds share it: a level, a counter. Its shape is then
                `shape`, on the host; no reset writes it, and it is restored together
                with all worlds.
        """
        return user_memory(
            self._worlds.ledger, "sim", "memory", name, shape,
            self.dtype if dtype is None else dtype, reset, stage, unit, axes, shared,
        )  # fmt: skip

    def keep_evaluated(self, *names: str) -> None:
        """Keep fields as the last evaluation leaves them, in `sim.last_evaluated`.

        `sim.data.xpos` is that of the current state; `sim.last_evaluated.xpos` is what
        mjData has after mj_step: that of the last evaluation, at the state before the
        last time step, or with MuJoCo's RK4 at its fourth stage. All kept fields are of
        the same evaluation. With an integrator of `simstate.integrate` they are those
        of an evaluation at the new state. `sim.forward` and a reset evaluate them, too;
        after a reset, `cfrc_ext`, `cfrc_int` and `cacc` are zero.

        The fields become slots: saved, restored and undone with the world. Declare
        them before the steps after which they are read.

        Args:
            names: fields of `sim.data` that are computed from the state, except
                sensordata, and "cacc", "cfrc_int", "cfrc_ext" as mj_rnePostConstraint
                computes them after the last time step.
        """
        self._recover()
        self._evaluated.keep(names)

    def expand(self, name: str) -> Tensor:
        """Return live per-world values of a model parameter; shape (num_envs, …).

        `name` is a field of MjModel ("body_mass") or of its options ("opt.gravity").
        Writes take effect at the next step or read, and the constants of the model that
        depend on them follow; one that you write by hand ("dof_invweight0") keeps what
        you wrote.
        """
        self._recover()
        return self._worlds.expand(name)

    def write_parameter(
        self, name: str, values: Values, element_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write a model parameter of some elements in some worlds; shape (n, E, …).

        The same as writing into `expand(name)`, but checked, and the other worlds stay
        fresh.
        """
        rows = self._select(env_ids)
        self._worlds.parameters.write(name, values, element_ids, rows)

    def set_const(self, env_ids: Ids = None) -> None:
        """Recompute the constants that depend on parameters now; the state is kept.

        The next read or step would do it, where parameters have changed.
        """
        rows = self._select(env_ids)
        if rows.count:
            self._worlds.set_const(rows)

    def write_variant(
        self, variant: SceneCfg | mujoco.MjModel, env_ids: Ids = None
    ) -> None:
        """Give worlds other objects: the same scene with another choice of them.

        A variant has the same elements and the same assets, compiled with other meshes
        or heightfields in its geoms, other sizes, masses, positions or colours. The
        differences become parameters of these worlds.
        """
        rows = self._select(env_ids)
        write_variant(self._worlds, build_scene(variant).model, rows)

    def _recover(self) -> None:
        if self._worlds.ledger.open:
            self._worlds.ledger.calls.recover()

    def _select(self, env_ids: Ids) -> Selection:
        """Return the worlds of a public call, after finishing a rollback."""
        self._recover()
        return self._worlds.select(env_ids)
