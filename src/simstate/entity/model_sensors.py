"""MuJoCo's sensors: what each type measures, in which unit, axes and at which point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import mujoco

from simstate.engine import Stage
from simstate.entity.sensor_words import (
    axes_of,
    subject_of,
    unit_of,
    units_of_fields,
)
from simstate.world.declared import LAST_EVALUATION

_WORLD, _OWN, _REF = "world", "own", "reference"


class _Kind(NamedTuple):
    """A type of sensor: what it measures, its unit and axes ("": a number)."""

    what: str
    unit: str
    axes: str = ""


_KINDS = {
    "touch": _Kind("sum of the normal forces on the site's volume", "N"),
    "accelerometer": _Kind("proper acceleration: at rest it points up", "m/s²", _OWN),
    "velocimeter": _Kind("velocity", "m/s", _OWN),
    "gyro": _Kind("angular velocity", "rad/s", _OWN),
    "force": _Kind("force on the site's body by its parent", "N", _OWN),
    "torque": _Kind("torque on the site's body by its parent", "N·m", _OWN),
    "magnetometer": _Kind("magnetic field", "the model's own", _OWN),
    "rangefinder": _Kind("distance to the nearest geom, −1 for none", "its fields'"),
    "camprojection": _Kind("pixel that shows the site", "px", "image"),
    "jointpos": _Kind("position", "rad or m"),
    "jointvel": _Kind("velocity", "rad/s or m/s"),
    "tendonpos": _Kind("length", "m or rad"),
    "tendonvel": _Kind("rate of the length", "m/s or rad/s"),
    "actuatorpos": _Kind("length of the transmission", "m or rad"),
    "actuatorvel": _Kind("rate of that length", "m/s or rad/s"),
    "actuatorfrc": _Kind("scalar force", "N or N·m"),
    "jointactfrc": _Kind("force of all actuators on the joint", "N or N·m"),
    "tendonactfrc": _Kind("force of all actuators on the tendon", "N or N·m"),
    "ballquat": _Kind("orientation, wxyz", "1", "parent"),
    "ballangvel": _Kind("angular velocity", "rad/s", _OWN),
    "jointlimitpos": _Kind("distance from the limit, less the margin", "rad or m"),
    "jointlimitvel": _Kind("velocity of the limit constraint", "rad/s or m/s"),
    "jointlimitfrc": _Kind("force of the limit constraint", "N·m or N"),
    "tendonlimitpos": _Kind("distance from the limit, less the margin", "m or rad"),
    "tendonlimitvel": _Kind("velocity of the limit constraint", "m/s or rad/s"),
    "tendonlimitfrc": _Kind("force of the limit constraint", "N or N·m"),
    "framepos": _Kind("position", "m", _REF),
    "framequat": _Kind("orientation, wxyz", "1", _REF),
    "framexaxis": _Kind("x axis, unit vector", "1", _REF),
    "frameyaxis": _Kind("y axis, unit vector", "1", _REF),
    "framezaxis": _Kind("z axis, unit vector", "1", _REF),
    "framelinvel": _Kind("velocity", "m/s", _REF),
    "frameangvel": _Kind("angular velocity", "rad/s", _REF),
    "framelinacc": _Kind(
        "acceleration, gravity added: at rest it is up", "m/s²", _WORLD
    ),
    "frameangacc": _Kind("angular acceleration", "rad/s²", _WORLD),
    "subtreecom": _Kind("centre of mass of the subtree", "m", _WORLD),
    "subtreelinvel": _Kind("velocity of that centre", "m/s", _WORLD),
    "subtreeangmom": _Kind("angular momentum about that centre", "kg·m²/s", _WORLD),
    "insidesite": _Kind("1 inside the site's volume, else 0", "1"),
    "geomdist": _Kind("distance of the nearest points, negative inside", "m"),
    "geomnormal": _Kind("unit vector from the first nearest point", "1", _WORLD),
    "geomfromto": _Kind("the two nearest points", "m, m", _WORLD),
    "contact": _Kind(
        "contacts, force of the first side ON the other, torque about pos",
        "its fields'",
    ),
    "e_potential": _Kind("potential energy", "J"),
    "e_kinetic": _Kind("kinetic energy", "J"),
    "clock": _Kind("time", "s"),
    "tactile": _Kind("pressure and slip at the points of a mesh", "Pa, m/s", _OWN),
    "plugin": _Kind("what the plugin measures", "the plugin's own"),
    "user": _Kind("what the user's callback measures", "the user's own"),
}

_CONTACT_FIELDS = (
    ("found", 1), ("force", 3), ("torque", 3), ("dist", 1), ("pos", 3), ("normal", 3),
    ("tangent", 3), ("linvel", 3), ("angvel", 3),
)  # fmt: skip
_RAY_FIELDS = (
    ("dist", 1), ("dir", 3), ("origin", 3), ("point", 3), ("normal", 3), ("depth", 1),
)  # fmt: skip
"""Fields that such sensors can have, in MuJoCo's order, by bit."""

_VECTORS = {name for name, width in (*_CONTACT_FIELDS, *_RAY_FIELDS) if width == 3}
_NET = 3
"""MuJoCo's number for the reduction to a net force."""


@dataclass(frozen=True)
class SensorContract:
    """Contract of a model's sensor; the shape is without num_envs."""

    name: str
    type: str
    what: str
    unit: str
    axes: str
    """The axes that its components are along, in words; "–" for none."""
    point: str
    """Description of its subject: a point, or the elements involved."""
    shape: tuple[int, ...]
    columns: tuple[int, int]
    """First and last column in `sim.data.sensordata`."""
    stage: Stage
    when: str
    fields: tuple[tuple[str, int], ...]
    """The numbers of a contact sensor or a rangefinder by name, in their order, each
    with its width; () for others."""
    slots: int
    """Number of repetitions of the fields: the contacts, or the rays of a camera."""
    cutoff: float
    """Readings are clamped to this size; 0: they are not."""


def sensor_contract(model: mujoco.MjModel, sensor: int, name: str) -> SensorContract:
    """Return the contract of one sensor of a compiled model."""
    kind_name = str(mujoco.mjtSensor(int(model.sensor_type[sensor])).name)
    kind_name = kind_name.removeprefix("mjSENS_").lower()
    kind = _KINDS[kind_name]
    first, width = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
    late = int(model.sensor_needstage[sensor]) == mujoco.mjtStage.mjSTAGE_ACC.value
    fields, slots = _fields(model, sensor, kind_name, width)
    names = [name for name, _ in fields]
    unit = units_of_fields(names) if fields else unit_of(
        model, sensor, kind_name, kind.unit
    )  # fmt: skip
    return SensorContract(
        name=name,
        type=kind_name,
        what=kind.what,
        unit=unit,
        axes=_axes(model, sensor, kind_name, kind.axes, names),
        point=subject_of(model, sensor, kind_name),
        shape=(width,),
        columns=(first, first + width),
        stage=Stage.ACCELERATION if late else Stage.VELOCITY,
        when=_when(model, sensor, late),
        fields=fields,
        slots=slots,
        cutoff=float(model.sensor_cutoff[sensor]),
    )


def _fields(
    model: mujoco.MjModel, sensor: int, kind: str, width: int
) -> tuple[tuple[tuple[str, int], ...], int]:
    table = {"contact": _CONTACT_FIELDS, "rangefinder": _RAY_FIELDS}.get(kind)
    if table is None:
        return (), 1
    bits = int(model.sensor_intprm[sensor, 0])
    fields = tuple(field for k, field in enumerate(table) if bits >> k & 1)
    return fields, width // sum(count for _, count in fields)


def _axes(
    model: mujoco.MjModel, sensor: int, kind: str, axes: str, fields: list[str]
) -> str:
    if axes == _OWN:
        return "its own"
    if axes == _REF:
        other, ref = model.sensor_reftype[sensor], int(model.sensor_refid[sensor])
        return _WORLD if ref < 0 else axes_of(model, other, ref)
    if not fields:
        return axes or "–"
    if not any(name in _VECTORS for name in fields):
        return "–"
    wrench = [name for name in fields if name in ("force", "torque")]
    if kind != "contact" or not wrench or model.sensor_intprm[sensor, 1] == _NET:
        return _WORLD
    along = f"{' and '.join(wrench)}: normal, tangent and their cross product"
    return f"{along}; the rest: world" if len(fields) > len(wrench) else along


def _when(model: mujoco.MjModel, sensor: int, late: bool) -> str:
    """Return the instant that it describes, in words."""
    when = LAST_EVALUATION if late else "now"
    delay, interval = model.sensor_delay[sensor], model.sensor_interval[sensor, 0]
    when += f", {delay:g} s late" if delay > 0 else ""
    return when + (f", every {interval:g} s" if interval > 0 else "")
