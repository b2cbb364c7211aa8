"""Columns: the recorded values, each with its contract and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeGuard, cast

import mujoco
from torch import Tensor

from simstate.base.checks import check_called_as
from simstate.base.contract import (
    NO,
    PURE,
    UNDECLARED,
    UNSAID,
    Contract,
    joined,
    spread,
)
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.engine import FIELDS
from simstate.entity import Entity
from simstate.sensors import SceneCameras
from simstate.step.history import Read, Recorded
from simstate.step.stepping_host import SteppingHost
from simstate.world.declared import Readings
from simstate.world.invalid_values import DESCRIBED_FIELDS, describe_element
from simstate.world.worlds import worlds_of

CAMERA = "camera/"
"""Prefix of the names of a camera's pictures."""
SENSORS = ("contacts/", "rays/")
"""Prefixes of the names of sensors' readings."""
IMAGE = "image"
"""The axes of a picture."""
_AXES: dict[int, Sequence[str]] = {
    3: ("x", "y", "z"),
    4: ("w", "x", "y", "z"),
    6: ("x", "y", "z", "rx", "ry", "rz"),
    7: ("x", "y", "z", "qw", "qx", "qy", "qz"),
    13: ("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"),
}
"""Names of components by size, where they are not elements by name."""
_SINGULAR = {"bodies": "body", "equalities": "equality", "mocap_bodies": "mocap_body"}
_NAMED_SIZES = {
    "nbody": mujoco.mjtObj.mjOBJ_BODY,
    "njnt": mujoco.mjtObj.mjOBJ_JOINT,
    "ngeom": mujoco.mjtObj.mjOBJ_GEOM,
    "nsite": mujoco.mjtObj.mjOBJ_SITE,
    "ntendon": mujoco.mjtObj.mjOBJ_TENDON,
}


EACH = {"unit": "units", "axes": "each_axes", "point": "points"}
"""Keys of the lists with a value for each component, where they differ."""


def component_contracts(about: Mapping[str, Any], width: int) -> list[Contract]:
    """Return the contract of each of `width` components, as JSON describes them."""
    texts: list[list[str]] = []
    for one, many in EACH.items():
        given = about.get(many)
        each = cast("list[Any]", given) if isinstance(given, list) else []
        same = [about.get(one, UNDECLARED)] * width
        texts.append([str(text) for text in (each if len(each) == width else same)])
    return [Contract(*row) for row in zip(*texts, strict=True)]


@dataclass(frozen=True)
class Column:
    """A recorded value: the function that reads it, and its contract."""

    name: str
    read: Callable[[], Tensor]
    """Returns the current values; shape (num_envs, …)."""
    contract: Contract = UNSAID
    """Contract of all of its values."""
    names: Sequence[str] = ()
    """Names of the components of one world, in C order; empty if they have none."""
    doc: str = ""
    source: str = ""
    """The quantity or field to read in a replay; "": a function of the user."""
    each: Sequence[Contract] = ()
    """Contract of each component, or of those that repeat; empty: all have
    `contract`."""

    def checked(self, num_envs: int) -> Tensor:
        """Return the current values; raise unless they have a row for each world."""
        values = self.read()
        if not isinstance(values, Tensor) or values.shape[:1] != (num_envs,):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ShapeError(
                f"What is recorded as {self.name!r} must give a tensor of shape "
                f"({num_envs}, …).",
                name=self.name,
                shape=getattr(values, "shape", None),
            )
        return values

    def describe(self, values: Tensor) -> dict[str, Any]:
        """Return the contract, for JSON."""
        width = values[0].numel()
        each = spread(self.each, width) if self.each else None
        known = each or [self.contract]
        texts = {
            "unit": (self.contract.unit_text, [one.unit_text for one in known]),
            "axes": (self.contract.axes, [one.axes for one in known]),
            "point": (self.contract.point, [one.point for one in known]),
        }
        return {
            **{key: _whole(*texts[key]) for key in texts},
            **{EACH[key]: _unlike(texts[key][1]) for key in texts},
            "names": list(self.names) if len(self.names) == width else [],
            "doc": self.doc,
            "source": self.source,
            "dtype": str(values.dtype).removeprefix("torch."),
            "shape": list(values.shape[1:]),
        }


def reads_of(
    sim: SteppingHost, quantities: Recorded, what: str = "quantities"
) -> dict[str, tuple[Read, str]]:
    """Return a function that reads each of the quantities by name, and its unit."""
    columns = columns_of(sim, quantities, (), what)
    return {
        name: (lambda _, read=column.read: read(), column.contract.unit)
        for name, column in zip(quantities, columns, strict=True)
    }


def columns_of(
    sim: SteppingHost,
    quantities: Recorded,
    fields: Iterable[str],
    what: str = "quantities",
) -> list[Column]:
    """Return the columns of the quantities and raw fields that a user names."""
    fits = isinstance(quantities, Sequence | Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not fits or isinstance(quantities, str):
        given = str(quantities)[:60]
        raise InvalidInputError(
            f"{what} must be a list of names or a dictionary, such as [{given!r}]; got "
            f"{given!r}.",
            name=what,
        )
    named = quantities if isinstance(quantities, Mapping) else None
    found = [
        _column(sim, name, name if named is None else named[name])
        for name in quantities
    ]
    found += [_field(sim, name, name) for name in fields]
    for column in found:
        if sum(other.name == column.name for other in found) > 1:
            raise InvalidInputError(
                f"{column.name!r} would be recorded twice: names must differ.",
                name=column.name,
            )
    return found


def _column(
    sim: SteppingHost, name: str, given: str | Read | tuple[Read, str]
) -> Column:
    if isinstance(given, str):
        return _named(sim, name, given)
    read, unit = given if is_pair(given) else (given, UNDECLARED)
    if not callable(read):
        raise InvalidInputError(
            f"{name!r} must be the name of a quantity, a function of the simulation, "
            f"or a function and its unit; got {given!r}.",
            name=str(name),
        )
    check_called_as(repr(name), read, "sim", name=str(name))
    return Column(name, lambda: read(sim), Contract(unit or UNDECLARED))


def is_pair(given: Any) -> TypeGuard[tuple[Read, str]]:
    """Return True for a tuple of two, such as a function and its unit."""
    return isinstance(given, tuple) and len(cast("tuple[object, ...]", given)) == 2


def _named(sim: SteppingHost, name: str, given: str) -> Column:
    """Return the column of a quantity, a sensor, a process or a raw field."""
    if given.startswith(CAMERA):
        return _camera(sim, name, given)
    if given.startswith(SENSORS):
        return _sensor(sim, name, given)
    entity_name, _, quantity = given.partition(".")
    if quantity:
        return _quantity(sim, sim.scene[entity_name], name, quantity)
    for process in [] if sim.integration is None else sim.integration.processes:
        if process.name == given:
            read = partial(getattr, process, "value")
            return Column(name, read, source=given)
    if len(sim.scene) == 1 and given not in FIELDS:
        (entity,) = sim.scene.values()
        if given in entity.data.quantities:
            return _quantity(sim, entity, f"{entity.name}.{name}", given)
    return _field(sim, name, given)


def _quantity(sim: SteppingHost, entity: Entity, name: str, quantity: str) -> Column:
    contracts = entity.data.quantities
    if quantity not in contracts:
        raise unknown_name(f"quantity of {entity.name!r}", quantity, contracts)
    known = contracts[quantity]
    contract = Contract(known.unit, known.axes_text, known.point_text)
    units = component_units(sim.model, entity, known.unit, known.shape)
    return Column(
        name,
        lambda: entity.data.read(quantity),
        contract,
        _labels([_of_entity(entity, size) for size in known.shape]),
        known.doc,
        f"{entity.name}.{quantity}",
        [contract._replace(unit=unit) for unit in units],
    )


def _camera(sim: SteppingHost, name: str, given: str) -> Column:
    cameras = getattr(sim, "cameras", None)
    camera = given.removeprefix(CAMERA)
    if not isinstance(cameras, SceneCameras) or camera not in cameras:
        raise unknown_name("camera of the scene", camera, sim.camera_names)
    return Column(
        name,
        lambda: cameras[camera].rgb,
        PURE._replace(axes=IMAGE),
        doc="Colours 0 … 255 of the pixels, rows from above.",
        source=given,
    )


def _sensor(sim: SteppingHost, name: str, given: str) -> Column:
    """Return the column of a reading of a contact sensor or of rays."""
    kind, _, path = given.partition("/")
    sensor_name, _, reading = path.rpartition(".")
    sensors: Mapping[str, Readings] = getattr(sim, kind)
    if not sensor_name:
        raise InvalidInputError(
            f"{given!r} names no reading: give one after a dot, such as "
            f"{kind}/{path or 'name'}."
            f"{'force_w' if kind == 'contacts' else 'distance'}.",
            name=given,
        )
    sensor = sensors[sensor_name]
    if reading not in sensor.readings:
        raise unknown_name(f"reading of {kind}/{sensor_name}", reading, sensor.readings)
    known = sensor.readings[reading]
    elements = getattr(sensor, "element_names", ())
    named = [elements if size == "elements" else _of_size(size) for size in known.shape]
    return Column(
        name,
        lambda: sensor.read(reading),
        Contract(known.unit, known.axes, known.point),
        _labels(named),
        known.doc,
        given,
    )


def _field(sim: SteppingHost, name: str, field: str) -> Column:
    if field not in FIELDS:
        raise unknown_name(
            "quantity to record, such as 'robot.root_link_pos_w',",
            field,
            [*FIELDS, *_quantity_names(sim)],
        )
    contract = FIELDS[field]
    if field in DESCRIBED_FIELDS:
        width = worlds_of(sim).engine.columns[field]
        count = width.stop - width.start
        names = [describe_element(sim.model, field, i) for i in range(count)]
    else:
        names = _labels([_of_model(sim.model, size) for size in contract.shape])
    return Column(
        name,
        lambda: getattr(sim.data, field),
        Contract(contract.unit, contract.axes or NO),
        names,
        contract.doc,
        field,
    )


def _quantity_names(sim: SteppingHost) -> list[str]:
    """Return the names of quantities; of a single entity also without its name."""
    names = [f"{e.name}.{q}" for e in sim.scene.values() for q in e.data.quantities]
    if len(sim.scene) == 1:
        names += [name.partition(".")[2] for name in names]
    return names


def _whole(known: str, each: Sequence[str]) -> str:
    """Return the property of all components, the most exact if they agree."""
    if len(set(each)) == 1:
        return each[0]
    return known if known != UNDECLARED else joined(each)


def _unlike(each: Sequence[str]) -> list[str]:
    """Return the property of each component, where they differ."""
    return list(each) if len(set(each)) > 1 else []


def _labels(sizes: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each component, from those along each dimension."""
    return [".".join(parts) for parts in product(*sizes)]


def _of_size(size: str | int) -> Sequence[str]:
    """Return names along a dimension whose elements have none."""
    if isinstance(size, str):
        return ()
    return _AXES.get(size, [str(k) for k in range(size)])


def _of_entity(entity: Entity, size: str | int) -> Sequence[str]:
    """Return the names along one dimension of a quantity."""
    if isinstance(size, int):
        return _of_size(size)
    plural = size.removeprefix("num_")
    names = getattr(entity, f"{_SINGULAR.get(plural, plural[:-1])}_names", ())
    return names or ()


def _of_model(model: mujoco.MjModel, size: str | int) -> Sequence[str]:
    if isinstance(size, int):
        return _of_size(size)
    if size not in _NAMED_SIZES:
        return ()
    kind = _NAMED_SIZES[size].value
    names = (mujoco.mj_id2name(model, kind, i) for i in range(getattr(model, size)))
    return [name or str(i) for i, name in enumerate(names)]


_PARTS: dict[tuple[int, str | int], tuple[int, ...]] = {
    (2, 6): (3, 3),
    (2, 7): (3, 4),
    (4, 13): (3, 4, 3, 3),
}
"""Numbers of components of each unit in "m, 1", by the counts of units and
components."""


def component_units(
    model: mujoco.MjModel, entity: Entity, unit: str, shape: Sequence[str | int]
) -> list[str]:
    """Return the units of one world's components, in C order; none if all have `unit`.

    "rad or m" is one of the two for each joint, "m, 1" of a pose one after the other;
    what they are for one pose repeats for the next.
    """
    if " or " in unit and shape[:1] == ("num_joints",):
        types = model.jnt_type[list(entity.index.joints.ids)]
        each = [_of_joint(unit, int(kind)) for kind in types]
        of_one = math.prod(n for n in shape[1:] if isinstance(n, int))
        return [mine for mine in each for _ in range(of_one)]
    units = unit.split(", ")
    width = shape[-1] if shape else 1
    counts = _PARTS.get((len(units), width), ())
    return [one for one, n in zip(units, counts, strict=False) for _ in range(n)]


def _of_joint(unit: str, kind: int) -> str:
    """Return the unit of a joint: of two, that of an angle or moment, or the other."""
    one, other = unit.split(" or ")
    turning, sliding = (one, other) if "rad" in one or "·m" in one else (other, one)
    return turning if kind == mujoco.mjtJoint.mjJNT_HINGE.value else sliding
