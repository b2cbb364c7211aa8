"""Classic: the interface of an environment that reads mjData as mj_step leaves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import mujoco
import numpy as np
import torch
from numpy.random import Generator

from simstate.base.checks import whole_number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.extras import library
from simstate.simulation import Simulation

Array: TypeAlias = "np.ndarray[Any, Any]"
Infos: TypeAlias = "dict[str, Array]"
Range: TypeAlias = tuple[float, float]
INF = float("inf")


class ClassicWorlds:
    """Arrays that a classic reads of all worlds: NumPy arrays on live host memory.

    Args:
        sim: the simulation, with one entity.
        kept: the fields of `sim.last_evaluated` that are read.
        frame_skip: time steps in a step of the environment.
    """

    def __init__(self, sim: Simulation, kept: tuple[str, ...], frame_skip: int) -> None:
        sim.keep_evaluated(*kept)
        _ = sim.numpy_rng  # a slot, which is added before the first step
        self.model = model = sim.model
        """The compiled model, with the parameters that all worlds start with."""
        self._sim = sim
        self.qpos = sim.data.qpos.numpy()
        self.qvel = sim.data.qvel.numpy()
        self.ctrl = sim.data.ctrl.numpy()
        self.kept = {name: getattr(sim.last_evaluated, name).numpy() for name in kept}
        """Fields as the last evaluation left them; shape (num_envs, …)."""
        self.init_qpos, self.init_qvel = model.qpos0.copy(), np.zeros(model.nv)
        self.masses = model.body_mass.copy()
        self.timestep = float(model.opt.timestep)
        self.dt = self.timestep * frame_skip
        (entity,) = sim.scene.values()
        self._bodies = {name: k for k, name in enumerate(entity.body_names, start=1)}
        numbers = sim.memory("classic", (4,), dtype=torch.float64).numpy()
        self.before, self._squares, self._is_single = np.split(numbers, (2, 3), axis=1)
        """`before`: the position that velocities are measured from; (num_envs, 2)."""
        self.first_sensors = sim.memory(
            "first_sensors", (model.nsensordata,), dtype=torch.float64
        ).numpy()
        """Sensor readings at the start of an episode, where a task states them."""

    def data(self, name: str) -> Array:
        """Return a field of `sim.data` at the current state; shape (num_envs, …)."""
        return getattr(self._sim.data, name).numpy()

    def sensors(self, *names: str) -> Array:
        """Return the readings of sensors, side by side; shape (num_envs, k)."""
        return self._readings([self._id("SENSOR", name) for name in names])

    def sensors_of(self, *kinds: mujoco.mjtSensor) -> Array:
        """Return the readings of all sensors of some kinds; shape (num_envs, k)."""
        types = [kind.value for kind in kinds]
        return self._readings(np.flatnonzero(np.isin(self.model.sensor_type, types)))

    def _readings(self, sensors: Sequence[int] | Array) -> Array:
        model = self.model
        columns: list[int] = []
        for k in sensors:
            first, count = int(model.sensor_adr[k]), int(model.sensor_dim[k])
            columns += range(first, first + count)
        is_first = self.data("time")[:, None] == 0
        start, now = self.first_sensors[:, columns], self.data("sensordata")[:, columns]
        return np.where(is_first, start, now)

    def site(self, name: str) -> int:
        """Return the index of a site."""
        return self._id("SITE", name)

    def geom(self, name: str) -> int:
        """Return the index of a geom."""
        return self._id("GEOM", name)

    def _id(self, kind: str, name: str) -> int:
        (entity,) = self._sim.scene
        kind_of = getattr(mujoco.mjtObj, f"mjOBJ_{kind}")
        return mujoco.mj_name2id(self.model, kind_of, f"{entity}/{name}")

    def body(self, body: int | str) -> int:
        """Return the index of a body, by name or index."""
        if isinstance(body, int):
            return whole_number("body", body, 0, len(self._bodies))
        if body not in self._bodies:
            raise unknown_name("body", body, self._bodies)
        return self._bodies[body]

    def begin_step(self, action: Array, before: Array) -> None:
        """Record what a reward depends on besides the state after the step."""
        self.before[:] = before
        self._squares[:, 0] = np.add.reduce(np.square(action), 1)
        self._is_single[:] = action.dtype == np.float32

    def action_squares(self) -> Array:
        """Return the sum of the squared action, in the action's dtype; (num_envs,)."""
        is_single = bool(self._is_single.all())
        return self._squares[:, 0].astype(np.float32 if is_single else np.float64)


@dataclass(frozen=True, kw_only=True)
class Classic(ABC):
    """An environment: its options, and functions of all worlds at once.

    Fields are the options; rows of arrays are worlds.
    """

    xml_file: str
    frame_skip: int
    limit: ClassVar[int] = 1000
    """Steps of an episode."""
    kept: ClassVar[tuple[str, ...]] = ()
    """Fields that are read as the last evaluation left them."""
    has_normal_noise: ClassVar[bool] = False
    """True if velocities at reset have normally distributed noise."""

    @abstractmethod
    def model(self) -> Path | Callable[[], mujoco.MjSpec]:
        """Return the model: a file, or a function that makes it."""

    @abstractmethod
    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return the parts of the observation; shape (num_envs, …) each."""

    @abstractmethod
    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return the reward of a step, and infos about it; (num_envs,) each."""

    def position(self, w: ClassicWorlds) -> Array:
        """Return the position whose rate is the velocity; shape (num_envs, 2)."""
        return w.qpos[:, :2]

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the infos of a reset, which a step has, too."""
        del w
        return {}

    def is_healthy(self, w: ClassicWorlds) -> Array | None:
        """Return the worlds that are healthy; None: there is no such condition."""
        del w
        return None

    def is_over(self, w: ClassicWorlds) -> Array:
        """Return the worlds that are terminated; shape (num_envs,)."""
        healthy = self.is_healthy(w)
        if healthy is None or not getattr(self, "terminate_when_unhealthy", True):
            return np.zeros(len(w.qpos), bool)
        return ~healthy

    def draw_parameters(
        self, rng: Generator, w: ClassicWorlds
    ) -> dict[str, tuple[int, Array]]:
        """Return parameters of one world at reset: for each, an element's values."""
        del rng, w
        return {}

    def sensors_at_reset(
        self, w: ClassicWorlds, qpos: Array, qvel: Array
    ) -> Array | None:
        """Return the first sensor readings of one world; None: the task has none."""
        del w, qpos, qvel
        return None

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return qpos and qvel of one world at reset; quaternions have any length."""
        noise: float = getattr(self, "reset_noise_scale")  # noqa: B009
        nq, nv = len(w.init_qpos), len(w.init_qvel)
        qpos = w.init_qpos + rng.uniform(low=-noise, high=noise, size=nq)
        if self.has_normal_noise:
            return qpos, w.init_qvel + noise * rng.standard_normal(nv)
        return qpos, w.init_qvel + rng.uniform(low=-noise, high=noise, size=nv)


@dataclass(frozen=True, kw_only=True)
class GymnasiumTask(Classic):
    """An environment whose model is among Gymnasium's assets, or a separate file."""

    def model(self) -> Path:
        """Return the path of `xml_file`, which may be a name among the assets."""
        if self.xml_file.startswith((".", "/", "~")):
            path = Path(self.xml_file).expanduser()
        else:
            what = "Gymnasium's environments"
            folder = Path(library("gymnasium", "gym", what).__file__).parent
            path = folder / "envs/mujoco/assets" / self.xml_file
        if not path.exists():
            raise InvalidInputError(
                f"The model {str(path)!r} (xml_file) is missing.", name="xml_file"
            )
        return path


def by_row(function: Any, values: Array) -> Array:
    """Return what a function of one row gives, for each row; shape (num_envs, …)."""
    return np.array([function(row) for row in values])


def sum_of_squares(values: Array) -> Array:
    """Return the sum over all but the first dimension; shape (num_envs,)."""
    return np.sum(np.square(values).reshape(len(values), -1), axis=1)


def squares(values: Array) -> Array:
    """Return each number squared by C's pow, as NumPy squares scalars."""
    return np.array([float(value) ** 2 for value in values])


def is_within(values: Array, limits: Range) -> Array:
    """Return True where a value is strictly between two limits."""
    low, high = limits
    return (low < values) & (values < high)


def is_finite(w: ClassicWorlds) -> Array:
    """Return True where all of qpos and qvel is finite; shape (num_envs,)."""
    state = np.concatenate([w.qpos, w.qvel], axis=1)
    return np.all(np.isfinite(state), axis=1)


_SIGMOIDS: dict[str, Callable[[Array, float], Array]] = {
    "gaussian": lambda x, edge: np.exp(np.log(edge) * x**2),
    "linear": lambda x, edge: np.clip(1 - x * (1 - edge), 0.0, None),
    "quadratic": lambda x, edge: np.clip(1 - x**2 * (1 - edge), 0.0, None),
}
"""Decline of a reward from 1 at x = 0 to `edge` at x = 1."""


def tolerance(
    values: Array,
    bounds: Range = (0.0, 0.0),
    margin: float = 0.0,
    sigmoid: str = "gaussian",
    edge: float = 0.1,
) -> Array:
    """Return 1 within bounds, declining to `edge` at a distance of `margin` from them.

    The result has the shape of `values`; without a margin it is 0 outside.
    """
    low, high = bounds
    outside = np.maximum(np.maximum(low - values, values - high), 0.0)
    if margin == 0:
        return (outside == 0).astype(np.float64)
    found = _SIGMOIDS[sigmoid](outside / margin, edge)
    return np.where(outside == 0, 1.0, found)
