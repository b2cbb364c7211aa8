"""Signals: the columns of a log that a model predicts, and those that drive it.

Names, units, axes, order and sign are compared before anything is fitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from simstate.base.checks import all_of
from simstate.base.contract import NO, UNDECLARED, Contract
from simstate.base.errors import (
    InvalidInputError,
    UnknownNameError,
    listed,
    unknown_name,
)
from simstate.record import Log, LogColumn, columns_of
from simstate.scene.element_names import OBJECTS
from simstate.simulation import Simulation
from simstate.study.identification.rate_checks import check_rates
from simstate.world.invalid_values import describe_element

Array = NDArray[np.float64]

CTRL = "ctrl"
_QUOTED = re.compile(r"\w+ '(?P<name>.+)'.*")
"""A component of a raw field, such as "hinge 'robot/hip'"."""
_PREDICTED = re.compile(
    r"joint_pos|joint_vel|qpos|qvel|ball_joint_quat|"
    r"(root|body)_(link|com)_(pos|quat|pose|lin_vel|ang_vel|vel)_[wb]"
)
"""Quantities and fields of the state that are fitted by default."""


@dataclass(frozen=True)
class Signal:
    """A column of a log, and its prediction by a simulation."""

    column: LogColumn
    """Components in the order of `picked`."""
    read: Callable[[], torch.Tensor]
    """Predicted values of all worlds; shape (num_envs, …)."""
    picked: tuple[int, ...]
    """Index of each component in the predicted values."""
    addresses: tuple[tuple[str, int], ...]
    """Field and index in the state of each component; ("", 0) if there is none."""
    is_sensor: bool = False
    """True if `picked` are indices of sensordata."""

    @property
    def source(self) -> tuple[str, tuple[int, ...]] | None:
        """The field that contains the values, and their columns; None if none does."""
        if self.is_sensor:
            return "sensordata", self.picked
        fields = {field for field, _ in self.addresses}
        if len(fields) > 1 or "" in fields:
            return None
        return fields.pop(), tuple(address for _, address in self.addresses)

    @property
    def is_quaternion(self) -> bool:
        """True if the components are a quaternion, whose sign is arbitrary."""
        return "quat" in self.column.name and self.column.width == 4

    def noise(self) -> Array:
        """Return the white noise of each component, estimated by third differences."""
        values = self.column.values
        spread = values.std(axis=0)
        floor = 1e-5 * spread + 1e-9
        if len(values) < 8:
            return np.maximum(0.01 * spread, floor)
        third = np.diff(values, 3, axis=0)
        return np.maximum(np.sqrt((third**2).mean(axis=0) / 20.0), floor)


@dataclass(frozen=True)
class Signals:
    """Measurements and commands of one log."""

    outputs: tuple[Signal, ...]
    control: LogColumn | None
    """Commands of all actuators in the model's order; None: the model has none."""
    notes: tuple[str, ...]
    """Sentences about assumptions and unused columns."""


def match_signals(
    sim: Simulation, log: Log, outputs: Sequence[str] | None = None
) -> Signals:
    """Return the columns of a log that a simulation predicts and those that drive it.

    A column has the name of a quantity ("robot.joint_pos"), of a raw field ("qpos") or
    of a sensor; its components are matched by name.

    Args:
        sim: worlds of the model.
        log: the log.
        outputs: names of the columns to predict; None: all positions, velocities and
            sensors.
    """
    notes = [f"{log.source}: {text}" for text in log.notes]
    if outputs is not None:
        names = all_of("outputs", outputs, str)
    else:
        names = _default_outputs(sim, log)
        unused = [n for n in log.columns if n not in (*names, CTRL, "time")]
        notes += [f"{name}: not used." for name in unused]
    found: list[Signal] = []
    for name in names:
        found.append(_signal(sim, log[name], notes))
        if not np.isfinite(found[-1].column.values).all():
            raise InvalidInputError(
                f"Column {name!r} of {log.source} has NaN or infinite values: remove "
                "them, or exclude the column (outputs=…).",
                name=name,
            )
    if not found:
        raise InvalidInputError(
            f"{log.source} has no column that the model predicts: it has "
            f"{listed(log.columns)}. Give columns the names of quantities "
            "('robot.joint_pos'), of raw fields ('qpos') or of sensors with "
            "log.declare(column, name=…)."
        )
    check_rates(found)
    return Signals(tuple(found), _control(sim, log, notes), tuple(notes))


def _default_outputs(sim: Simulation, log: Log) -> list[str]:
    sensors = [name.rpartition("/")[2] for name in _sensors(sim.model)]
    names: list[str] = []
    for name in log.columns:
        quantity = name.rpartition(".")[2]
        if _PREDICTED.fullmatch(quantity) or name in (*sensors, "sensordata"):
            names.append(name)
    ends = [name.rpartition(".")[2] for name in names]
    doubled = {"qpos": "joint_pos", "qvel": "joint_vel"}
    return [name for name in names if doubled.get(name, "") not in ends]


def _signal(sim: Simulation, column: LogColumn, notes: list[str]) -> Signal:
    """Return a column with the values that predict it, in its order."""
    sensors = _sensors(sim.model)
    short = {name.rpartition("/")[2]: name for name in sensors}
    if column.name in short:
        places = sensors[short[column.name]]
        picked = _by_order(column, places)
        addresses = _sensor_addresses(sim.model, short[column.name])
        chosen = tuple(addresses[k] for k in range(len(picked)))
        return Signal(column, lambda: sim.data.sensordata, picked, chosen, True)
    try:
        (mine,) = columns_of(sim, [column.name], [])
    except UnknownNameError as error:
        known = [*short, *_known(sim)]
        raise unknown_name("quantity, raw field or sensor", column.name, known) from (
            error
        )
    names = [_plain(name) for name in mine.names]
    if column.name == "sensordata":
        names = [n for name, at in sensors.items() for n in [_plain(name)] * len(at)]
    each = list(mine.each) or [mine.contract] * len(names)
    picked = _by_name(column, names, notes)
    for k, place in enumerate(picked):
        wanted = each[place % len(each)] if each else Contract()
        _check_contract(column, k, names[place], wanted, notes)
    addresses = _addresses(sim, mine.source, names)
    chosen = tuple(addresses[place] for place in picked)
    is_sensor = mine.source == "sensordata"
    return Signal(column, mine.read, picked, chosen, is_sensor)


def _known(sim: Simulation) -> list[str]:
    quantities = [
        f"{e.name}.{q}" for e in sim.scene.values() for q in e.data.quantities
    ]
    return ["qpos", "qvel", *(q for q in quantities if _PREDICTED.fullmatch(q))]


def _sensors(model: mujoco.MjModel) -> dict[str, list[int]]:
    """Return the indices of each named sensor in sensordata."""
    found: dict[str, list[int]] = {}
    for k in range(model.nsensor):
        name = mujoco.mj_id2name(model, OBJECTS["sensor"].value, k)
        if name:
            first = int(model.sensor_adr[k])
            found[name] = list(range(first, first + int(model.sensor_dim[k])))
    return found


def _plain(name: str) -> str:
    """Return a component's name without the kind of element and the entity."""
    quoted = _QUOTED.fullmatch(name)
    return (quoted["name"] if quoted else name).rpartition("/")[2]


def _by_order(column: LogColumn, places: Sequence[int]) -> tuple[int, ...]:
    if column.width != len(places):
        raise InvalidInputError(
            f"Column {column.name!r} has {column.width} components, and the model's "
            f"sensor has {len(places)}."
        )
    return tuple(places)


def _by_name(
    column: LogColumn, names: Sequence[str], notes: list[str]
) -> tuple[int, ...]:
    """Return the model's index of each component, by name or number where given."""
    given = [_plain(name) for name in column.names]
    numbers = [str(k) for k in range(len(names))]  # as in ctrl[0], ctrl[1]
    if given and set(given) <= set(numbers) - set(names):
        names = numbers
    is_named = given and given != [column.name.rpartition(".")[2]]
    if is_named and len(set(names)) == len(names):
        for name in given:
            if name not in names:
                raise unknown_name(f"component of column {column.name!r}", name, names)
        return tuple(names.index(name) for name in given)
    if column.width != len(names):
        raise InvalidInputError(
            f"Column {column.name!r} has {column.width} components without names, and "
            f"the model has {len(names)}: {listed(names)}. Name them with "
            f"log.declare({column.name!r}, names=[…])."
        )
    if not is_named and len(names) > 1:
        notes.append(
            f"{column.name}: order of the components not declared; assumed to be the "
            f"model's ({listed(names, 6)})."
        )
    return tuple(range(len(names)))


def _check_contract(
    column: LogColumn, k: int, name: str, wanted: Contract, notes: list[str]
) -> None:
    """Raise if a component is in another unit or along other axes than the model's."""
    mine = column.contracts[k] if column.contracts else Contract()
    units = mine.unit_text, wanted.unit_text
    if UNDECLARED in units:
        note = f"{column.name}: unit not declared; assumed to be the model's."
        if mine.unit == UNDECLARED and note not in notes:
            notes.append(note)
    elif units[0] != units[1] and " or " not in units[1] and "own" not in units[1]:
        fix = "scale=math.pi / 180, " if "deg" in units[0] else "scale=…, "
        raise InvalidInputError(
            f"{name!r} of column {column.name!r} is in {units[0]}, and the model's in "
            f"{units[1]}: convert it with log.declare({column.name!r}, {fix}"
            f"unit={units[1]!r}).",
            name=column.name,
        )
    axes = mine.axes, wanted.axes
    if not {UNDECLARED, NO, ""} & set(axes) and axes[0] != axes[1]:
        raise InvalidInputError(
            f"{name!r} of column {column.name!r} is along {axes[0]} axes, and the "
            f"model's along {axes[1]} axes: name the quantity that was logged, or "
            "rotate the values.",
            name=column.name,
        )


def _control(sim: Simulation, log: Log, notes: list[str]) -> LogColumn | None:
    """Return the commands of all controls, in the model's order."""
    model = sim.model
    if not model.nu:
        return None
    names = [_plain(describe_element(model, CTRL, k)) for k in range(model.nu)]
    if CTRL not in log.columns:
        raise unknown_name(
            f"column of {log.source}", CTRL, log.columns,
            " The commands of the actuators are a column 'ctrl': rename the log's with "
            "log.declare(column, name='ctrl', names=[…]).",
        )  # fmt: skip
    column = log.columns[CTRL]
    picked = _by_name(column, names, notes)
    missing = [name for k, name in enumerate(names) if k not in picked]
    if missing:
        raise InvalidInputError(
            f"Column 'ctrl' of {log.source} has no commands of {listed(missing)}: all "
            f"{model.nu} controls need them."
        )
    values = np.empty_like(column.values)
    values[:, list(picked)] = column.values
    if not np.isfinite(values).all():
        where = np.argwhere(~np.isfinite(values))[0]
        raise InvalidInputError(
            f"Column 'ctrl' of {log.source} has NaN or infinite values, the first of "
            f"{names[where[1]]!r} at {column.time[where[0]]:g} s: cut the log there, "
            "or fill them in.",
            name=CTRL,
        )
    return replace(column, values=values, names=tuple(names), contracts=())


def _addresses(
    sim: Simulation, source: str, names: Sequence[str]
) -> list[tuple[str, int]]:
    """Return the field and index of the state that each component of a column is."""
    model = sim.model
    if source in ("qpos", "qvel", "act"):
        return [(source, k) for k in range(len(names))]
    entity_name, _, quantity = source.partition(".")
    nowhere = [("", 0)] * len(names)
    if quantity in ("joint_pos", "joint_vel"):
        prefix = sim.scene[entity_name].index.prefix
        joints = [model.joint(prefix + name).id for name in names]
        if quantity == "joint_pos":
            return [("qpos", int(model.jnt_qposadr[k])) for k in joints]
        return [("qvel", int(model.jnt_dofadr[k])) for k in joints]
    first = {"root_link_pos_w": 0, "root_link_pose_w": 0, "root_link_quat_w": 3}
    if quantity in first:
        prefix = sim.scene[entity_name].index.prefix
        free = mujoco.mjtJoint.mjJNT_FREE.value
        for k in np.flatnonzero(model.jnt_type == free):
            if model.joint(int(k)).name.startswith(prefix):
                start = int(model.jnt_qposadr[k]) + first[quantity]
                return [("qpos", start + i) for i in range(len(names))]
    return nowhere


def _sensor_addresses(model: mujoco.MjModel, name: str) -> list[tuple[str, int]]:
    sensor = model.sensor(name)
    kind, joint = int(sensor.type[0]), int(sensor.objid[0])
    if kind == mujoco.mjtSensor.mjSENS_JOINTPOS.value:
        return [("qpos", int(model.jnt_qposadr[joint]))]
    if kind == mujoco.mjtSensor.mjSENS_JOINTVEL.value:
        return [("qvel", int(model.jnt_dofadr[joint]))]
    return [("", 0)] * int(sensor.dim[0])
