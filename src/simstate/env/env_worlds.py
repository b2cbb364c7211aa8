"""EnvWorlds: the worlds of a task: simulation, clocks and memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from numbers import Number
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import has_shape, instance_of, whole_number
from simstate.base.errors import InvalidInputError, ShapeError, not_copied
from simstate.base.ids import Ids
from simstate.engine import EngineCfg
from simstate.entity import SceneEntities
from simstate.env import events
from simstate.env.backend import Backend, HostBackend
from simstate.env.env_cfg import EnvCfg, check_cfg
from simstate.env.env_recorder import EnvRecorder
from simstate.env.host_view import HostView, phase
from simstate.env.scene_needs import scene_for_events
from simstate.scene.terrain import Terrain, TerrainCfg
from simstate.simulation import Simulation
from simstate.step import Integrator
from simstate.world import Ledger, Reset, user_memory
from simstate.world.random import WorldRandom
from simstate.world.worlds import worlds_of

_COUNTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class EnvWorlds:
    """Configuration and memory of an environment, apart from its terms and its step.

    All of it is in the ledger of its simulation. A new attribute that is a tensor would
    be in no snapshot, and is refused; so is a number that a term keeps as one.
    """

    def __init__(
        self,
        cfg: EnvCfg,
        num_envs: int,
        engine: EngineCfg,
        device: str | torch.device,
        seed: int,
        integrator: Integrator | None,
        first_world: int,
        auto_reset: bool,
    ) -> None:
        whole_number("seed", seed, 0)
        instance_of("auto_reset", auto_reset, bool)
        check_cfg(cfg)
        self.cfg = cfg
        self.auto_reset = auto_reset
        self.sim = Simulation(
            scene_for_events(cfg, events),
            num_envs,
            engine=engine,
            device=device,
            integrator=integrator,
            on_divergence="mask",
            seed=seed,
            first_world=first_world,
        )
        self._options: dict[str, Any] = {
            "engine": engine,
            "device": device,
            "seed": seed,
            "auto_reset": auto_reset,
            "integrator": integrator,
            "first_world": first_world,
        }
        self._ledger = worlds_of(self.sim).ledger
        self._recorders: tuple[EnvRecorder, ...] = ()
        self.rng: WorldRandom = self.sim.rng
        """Random numbers for terms, from the stream of each world."""
        self.num_envs = self.sim.num_envs
        self.device = self.sim.device
        self.step_dt = self.sim.timestep * cfg.decimation
        """Duration of an environment step [s]."""
        self.max_episode_length = round(cfg.episode_length_s / self.step_dt)
        """Number of environment steps in a full episode."""
        self.dtype: torch.dtype = getattr(torch, cfg.dtype)
        """The dtype of observations, rewards and actions."""
        is_host = worlds_of(self.sim).engine.state_is_live
        self._backend: Backend = HostBackend() if is_host else Backend(self.device)
        if self.max_episode_length < 1:
            raise InvalidInputError(
                f"episode_length_s is {cfg.episode_length_s}, less than the "
                f"{self.step_dt:g} s of one step (decimation × timestep).",
                name="episode_length_s",
            )
        with torch.inference_mode(False):  # they are written to later on
            self._make_clocks(first_world)
        self._view: Any = HostView(self) if is_host else self
        """First argument of terms that are marked with `either`."""

    def _make_clocks(self, first_world: int) -> None:
        """Create the environment's memory of each world."""
        self.all_ids = torch.arange(self.num_envs, device=self.device)
        """The ids of all worlds; shape (num_envs,)."""
        self._episode_length: Tensor = self._ledger.memory(
            "env/episode_length", (), torch.int64, owner="env", unit="steps"
        ).tensor
        self._step_count: Tensor = self._ledger.shared(
            "env/step_count", torch.zeros(1, dtype=torch.int64)
        ).tensor
        self.terrain: TerrainPlaces | None = None
        """Positions of the worlds on the terrain; None: the scene has none."""
        if self.cfg.scene.terrain is not None:
            self.terrain = TerrainPlaces(
                self.cfg.scene.terrain, self._ledger, first_world, self.sim.dtype
            )

    def __setattr__(self, name: str, value: object) -> None:
        is_tensor = isinstance(value, Tensor) and value is not vars(self).get(name)
        if is_tensor or (self._is_in_term and isinstance(value, np.ndarray | Number)):
            self._check_attribute(name)
        object.__setattr__(self, name, value)

    @property
    def _is_in_term(self) -> bool:
        return "_ledger" in vars(self) and bool(self._ledger.scope)

    def _check_attribute(self, name: str) -> None:
        """Raise if a tensor or a number of this name would be in no slot."""
        mine = self.__dict__
        if isinstance(getattr(type(self), name, None), property):
            return
        if isinstance(mine.get(name), Tensor):
            raise InvalidInputError(
                f"env.{name} is a slot and cannot be replaced: write into it with "
                f"env.{name}[:] = ….",
                name=name,
            )
        if name in mine and self._is_in_term:
            raise InvalidInputError(
                f"env.{name} was set by a term: a step changes slots only, which a "
                "snapshot holds and a reset restores. Set it outside of steps.",
                name=name,
            )
        if mine.get("_is_made") or self._is_in_term:
            raise InvalidInputError(
                f"env.{name} = … would be in no snapshot and would not be reset with "
                f"its world. Use {name} = env.memory({name!r}, shape), which returns "
                "the same tensor at every call.",
                name=name,
            )

    def memory(
        self,
        name: str,
        shape: Sequence[int] = (),
        *,
        dtype: torch.dtype = torch.float32,
        reset: Reset = 0.0,
        unit: str = "",
        axes: str = "",
        shared: bool = False,
    ) -> Tensor:
        """Return memory of your own for each world; live, shape (num_envs, *shape).

        A term keeps all its state here: it is reset with its world, saved in every
        snapshot and checkpoint, and rolled back with an interrupted step. A second call
        with the same name returns the same tensor. Within a term, names are local to
        the term; terms that share memory use `env.sim.memory`.

        Args:
            name: the name in snapshots.
            shape: the shape of one world's values.
            dtype: the dtype.
            reset: the initial values, which a reset writes: a number, one row, a row
                for each world, or a function of the ids that are reset (the initial
                values are then 0); None: a reset keeps the values, initially 0.
            unit: the unit, for readers of a snapshot.
            axes: the axes, for readers of a snapshot.
            shared: True for one value of all worlds, such as a level or a counter. Its
                shape is then `shape`, on the host; its initial value is `reset`, which
                no reset writes, and it is restored only together with all worlds.
        """
        return user_memory(
            self._ledger, "env", f"env/{self._ledger.scope or 'memory'}", name, shape,
            dtype, reset, None, unit, axes, shared,
        )  # fmt: skip

    xp: Any = torch
    """The module with functions of the tensors; `env.host` has NumPy."""

    @property
    def host(self) -> HostView:
        """The environment as NumPy arrays, with the same names: for terms on the host.

        A term that is marked with `either` gets it instead of `env`.
        """
        if self._view is self:
            raise InvalidInputError(
                "env.host is for the native engine, whose memory is the host's. Mark "
                "the term with @either, and use its argument: on this engine it gets "
                "tensors.",
                name="host",
            )
        return self._view

    @property
    def common_step_counter(self) -> int:
        """Number of calls of `step`."""
        return int(self._step_count)

    @property
    def scene(self) -> SceneEntities:
        """The entities of the scene by name."""
        return self.sim.scene

    @property
    def episode_length_buf(self) -> Tensor:
        """Environment steps since the last reset; int64, writable, (num_envs,)."""
        self._recover()
        return self._episode_length

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        check_lengths(steps, self.num_envs)
        self._recover()
        self._episode_length.copy_(steps)

    def phase(self, period_s: float) -> Tensor:
        """Return the phase of a clock that starts with the episode; (num_envs,).

        It is the elapsed fraction of the period, in [0, 1); float64.
        """
        return phase(self, period_s)

    def close(self) -> None:
        """Do nothing: an environment has no resources to release."""

    def _begin_call(self) -> None:
        """Roll back an interrupted call; raise if a term calls the environment."""
        self._backend.forget()
        self._recover()
        if self._ledger.open:
            raise InvalidInputError(
                "env.step, reset, snapshot and restore cannot be called by a term or a "
                "force model: a step is running.",
                name="step",
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise not_copied("An Env", "Env(…)", "env")

    def _alike(self, num_envs: int) -> Any:
        """Return an environment of the same task with another number of worlds."""
        cfg = dataclasses.replace(self.cfg, divergence_dump_dir=None)
        make: Any = type(self)
        return make(cfg, num_envs, **self._options)

    def attach(self, recorder: EnvRecorder) -> None:
        """Record every step from now on."""
        self._recorders = (*self._recorders, recorder)

    def detach(self, recorder: EnvRecorder) -> None:
        """Stop recording steps by `attach`."""
        self._recorders = tuple(x for x in self._recorders if x is not recorder)

    def _recover(self) -> None:
        if self._ledger.open:
            self._ledger.calls.recover()

    def _others(self, env_ids: Tensor | None) -> Tensor | None:
        """Return the worlds other than these; None: all."""
        if env_ids is None:
            return None
        return self.all_ids[torch.isin(self.all_ids, env_ids, invert=True)]

    def _check_reset_ids(self, reset_ids: Ids) -> Tensor | None:
        """Return the ids of the worlds that are reset in a step; None: no world."""
        if isinstance(reset_ids, tuple) and reset_ids == ():
            return None
        rows = worlds_of(self.sim).select(reset_ids)
        if not rows.count:
            return None
        if self.auto_reset:
            raise InvalidInputError(
                "reset_ids needs an Env created with auto_reset=False: this one resets "
                "its worlds itself. Nothing was done.",
                name="reset_ids",
            )
        return rows.tensor(self.device)


def check_lengths(steps: Tensor, num_envs: int) -> None:
    """Raise unless these can be the steps since the last reset of n worlds."""
    has_shape("episode_length_buf", steps, (num_envs,))
    if steps.dtype not in _COUNTS:
        raise ShapeError(
            f"episode_length_buf must be integers, got {steps.dtype}.",
            name="episode_length_buf",
            shape=steps.shape,
        )


class TerrainPlaces:
    """Level and column of each world on the terrain, which curricula may change.

    Initially, worlds are distributed over columns, then levels.
    """

    def __init__(
        self, cfg: TerrainCfg, ledger: Ledger, first_world: int, dtype: torch.dtype
    ) -> None:
        self.terrain = Terrain(cfg)
        """The ground: heights and origins."""
        ids = torch.arange(first_world, first_world + ledger.num_envs)
        self.column = _slot(ledger, "column", ids % cfg.columns)
        """The column of each world; int64, shape (num_envs,)."""
        self.level = _slot(ledger, "level", ids // cfg.columns % cfg.levels)
        """The level of each world, 0 is the easiest; int64, shape (num_envs,)."""
        self._origins = torch.as_tensor(
            self.terrain.origins, dtype=dtype, device=ledger.device
        )

    def origins(self, env_ids: Tensor) -> Tensor:
        """Return the middle of these worlds' tiles, on the ground [m]; shape (n, 3)."""
        return self._origins[self.level[env_ids], self.column[env_ids]]


def _slot(ledger: Ledger, name: str, values: Tensor) -> Tensor:
    return ledger.memory(
        f"env/terrain/{name}", (), torch.int64, reset=None, initial=values, owner="env"
    ).tensor
