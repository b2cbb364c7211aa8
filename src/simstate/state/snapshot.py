"""Snapshot: everything that worlds need to go on exactly as they would have."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import torch
from torch import Tensor

from simstate.divergence import DESCRIBED_FIELDS, describe_element
from simstate.engine.base import COMMON_CONSTANTS, model_value
from simstate.engine.native import NATIVE_CONSTANTS
from simstate.errors import ShapeError, SnapshotError
from simstate.ids import Selection
from simstate.integrate.integration import OPTIONAL_MEMORY
from simstate.simulation import Simulation
from simstate.state.fingerprint import differences, fingerprint
from simstate.state.snapshot_file import read_file, write_file

FORMAT = "simstate snapshot 1"


@dataclass(frozen=True)
class Snapshot:
    """The full state of n worlds, on the host, with a header that says what it is."""

    header: dict[str, Any]
    """Format, engine, versions, time step, fields of the state with units, the model's
    fingerprint."""
    state: Tensor
    """Rows of `sim.state`; shape (n, nstate)."""
    parameters: dict[str, Tensor]
    """Model parameters that were expanded, by name; shape (n, …)."""
    entities: dict[str, dict[str, Tensor]]
    """Per entity what it keeps itself: encoder bias, defaults; shape (n, …)."""
    diverged: Tensor
    """Which worlds had diverged; shape (n,)."""
    rng: Tensor
    """State of the simulation's random generator, uint8."""
    integration: dict[str, Tensor]
    """What an integrator keeps: processes, mass rates, step sizes; shape (n, …)."""

    @property
    def num_envs(self) -> int:
        """The number of worlds."""
        return self.state.shape[0]

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (n,)."""
        return self.state[:, 0]

    def save(self, path: str | Path) -> None:
        """Write one file, as a whole or not at all: a crash leaves the old one."""
        arrays = {"state": self.state, "diverged": self.diverged, "rng": self.rng}
        for name, tensor in self.parameters.items():
            arrays[f"parameters/{name}"] = tensor
        for entity, kept in self.entities.items():
            for name, tensor in kept.items():
                arrays[f"entities/{entity}/{name}"] = tensor
        for name, tensor in self.integration.items():
            arrays[f"integration/{name}"] = tensor
        write_file(Path(path), self.header, arrays)

    @staticmethod
    def load(path: str | Path) -> Snapshot:
        """Read a file that `save` wrote; one that is cut or altered is refused."""
        header, arrays = read_file(Path(path), FORMAT)
        parameters: dict[str, Tensor] = {}
        integration: dict[str, Tensor] = {}
        entities: dict[str, dict[str, Tensor]] = {
            name: {} for name in header["entities"]
        }
        for key, tensor in arrays.items():
            part, _, rest = key.partition("/")
            if part == "parameters":
                parameters[rest] = tensor
            elif part == "integration":
                integration[rest] = tensor
            elif part == "entities":
                entity, _, name = rest.rpartition("/")
                entities[entity][name] = tensor
        return Snapshot(
            header,
            arrays["state"],
            parameters,
            entities,
            arrays["diverged"],
            arrays["rng"],
            integration,
        )


def take_snapshot(sim: Simulation, rows: Selection) -> Snapshot:
    """A snapshot of the selected worlds."""
    index = rows.index
    return Snapshot(
        header={
            "format": FORMAT,
            "engine": sim.engine.name,
            "dtype": str(sim.dtype).removeprefix("torch."),
            "mujoco": mujoco.__version__,
            "timestep": sim.timestep,
            "fields": describe_fields(sim),
            "velocity": "linear velocities: link origin, world axes [m/s]; qvel of a "
            "free joint: linear world axes, angular body axes [rad/s]",
            "labels": _labels(sim),
            "entities": list(sim.scene),
            "model": fingerprint(sim.model),
        },
        state=sim.state[index].clone().cpu(),
        parameters={
            name: tensor[index].clone().cpu()
            for name, tensor in sim.engine.expanded.items()
        },
        entities={
            name: {
                key: tensor[index].clone().cpu()
                for key, tensor in entity.data.stored.items()
            }
            for name, entity in sim.scene.items()
        },
        diverged=sim.diverged[index].clone().cpu(),
        rng=sim.rng.get_state(),
        integration={
            name: tensor[index].cpu() for name, tensor in _integration(sim).items()
        },
    )


def _integration(sim: Simulation) -> dict[str, Tensor]:
    """A copy of what the simulation's integrator keeps; empty if it has none."""
    return {} if sim.integration is None else sim.integration.own_state()


def restore_snapshot(sim: Simulation, snapshot: Snapshot, rows: Selection) -> None:
    """Bring the selected worlds to the state of a snapshot of the same model."""
    _check(sim, snapshot, rows)
    # Constants that the other engine computes for itself alone are left to it.
    computed = {*COMMON_CONSTANTS, *NATIVE_CONSTANTS} - {
        *sim.engine.derived_constants()
    }
    parameters = {
        name: tensor
        for name, tensor in snapshot.parameters.items()
        if name not in computed
    }
    for name in parameters:
        sim.expand(name)
    for name, tensor in parameters.items():
        sim.expand(name)[rows.index] = tensor.to(sim.engine.expand(name))
    for name, tensor in sim.engine.expanded.items():
        if name not in snapshot.parameters:
            shared = torch.as_tensor(model_value(sim.model, name))
            # bvh_aabb holds the bodies' boxes alone, the first of the model's.
            shared = shared[: tensor.shape[1]] if tensor.ndim > 1 else shared
            tensor[rows.index] = shared.to(tensor)
    foreign = snapshot.header["engine"] != sim.engine.name
    if foreign and not parameters.keys().isdisjoint(COMMON_CONSTANTS):
        sim.set_const(rows.index)  # for the constants that the other engine has not
    state = snapshot.state.to(device=sim.device, dtype=sim.dtype)
    sim.write_rows(state, rows)
    for name, kept in snapshot.entities.items():
        for key, tensor in kept.items():
            stored = sim.scene[name].data.stored[key]
            stored[rows.index] = tensor.to(stored)
    if sim.integration is not None:
        sim.integration.restore_own(snapshot.integration, rows)
    sim.mark_diverged(snapshot.diverged.to(sim.device), rows)
    if (
        rows.count == sim.num_envs
        and snapshot.rng.numel() == sim.rng.get_state().numel()
    ):
        sim.rng.set_state(snapshot.rng)


def _check(sim: Simulation, snapshot: Snapshot, rows: Selection) -> None:
    """Raise unless the snapshot is one of this model, for as many worlds."""
    different = differences(fingerprint(sim.model), snapshot.header["model"])
    if different:
        raise SnapshotError(
            "The snapshot is of another model. What differs: "
            + "; ".join(different)
            + ". Nothing was written."
        )
    missing = [
        name
        for name in snapshot.integration
        if name not in _integration(sim) and name not in OPTIONAL_MEMORY
    ]
    if missing:
        raise SnapshotError(
            f"The snapshot has {', '.join(missing)}, which this simulation has not: "
            "use the same integrator, and add the same processes and mass flow first. "
            "Nothing was written."
        )
    own = _integration(sim)
    for name, tensor in snapshot.integration.items():
        if name in own and tensor.shape[1:] != own[name].shape[1:]:
            raise SnapshotError(
                f"The snapshot's {name} has {tuple(tensor.shape[1:])} numbers a world, "
                f"here it has {tuple(own[name].shape[1:])}. Nothing was written."
            )
    if snapshot.num_envs not in (rows.count, 1):
        raise ShapeError(
            f"The snapshot has {snapshot.num_envs} worlds, {rows.count} are selected: "
            "select as many, or restore a snapshot of one world into all of them. "
            "Nothing was written."
        )
    if snapshot.header["mujoco"] != mujoco.__version__:
        warnings.warn(
            f"The snapshot was taken with MuJoCo {snapshot.header['mujoco']}, this is "
            f"{mujoco.__version__}: what follows may differ in the last bits.",
            RuntimeWarning,
            stacklevel=4,
        )


_UNITS = {
    "time": "s",
    "qpos": "m, rad or quaternion wxyz",
    "qvel": "m/s or rad/s",
    "qacc_warmstart": "m/s² or rad/s²",
    "qfrc_applied": "N or N·m",
    "xfrc_applied": "N, N·m at the COM, world axes",
    "mocap_pos": "m, world axes",
    "mocap_quat": "quaternion wxyz",
}


def _labels(sim: Simulation) -> dict[str, list[str]]:
    """What each column of the state belongs to, by the names of the model."""
    return {
        name: [
            describe_element(sim.model, name, i)
            for i in range(columns.stop - columns.start)
        ]
        for name, columns in sim.engine.columns.items()
        if name in DESCRIBED_FIELDS
    }


def describe_fields(sim: Simulation) -> dict[str, dict[str, Any]]:
    """First column, number of columns and unit of each field of the state."""
    return {
        name: {
            "start": columns.start,
            "count": columns.stop - columns.start,
            "unit": _UNITS.get(name, "its own"),
        }
        for name, columns in sim.engine.columns.items()
    }
