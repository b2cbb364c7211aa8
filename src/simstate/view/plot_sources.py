"""Sources: the values of a simulation that can be plotted, with component names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from simstate.engine import FIELDS
from simstate.entity import Entity, Quantity
from simstate.sensors import RaySensor
from simstate.step.stepping_host import SteppingHost
from simstate.view.one_world import on_host
from simstate.world.worlds import worlds_of

_PARTS: dict[int, tuple[str, ...]] = {
    2: ("lower", "upper"),
    3: ("x", "y", "z"),
    4: ("w", "x", "y", "z"),
    6: ("x", "y", "z", "about x", "about y", "about z"),
    7: ("x", "y", "z", "quat w", "quat x", "quat y", "quat z"),
    13: (
        "x", "y", "z", "quat w", "quat x", "quat y", "quat z", "velocity x",
        "velocity y", "velocity z", "about x", "about y", "about z",
    ),
}  # fmt: skip
"""Names of the components of a quantity, by the number of components."""


@dataclass(frozen=True)
class Source:
    """Values of each world that can be plotted."""

    unit: str
    about: str
    """Description, in words."""
    names: tuple[str, ...]
    """Names of its components, flattened."""
    tensor: Callable[[], Tensor]
    """Its values in all worlds; (num_envs, …)."""
    history: Callable[[int], np.ndarray] | None = None
    """Past values in a world, if known: time [s], then the components; (samples, 1 +
    components)."""

    def read(self, world: int) -> np.ndarray:
        """Return the components of one world; (components,)."""
        return on_host(self.tensor()[world]).astype(np.float64).reshape(-1)


def sources_of(
    worlds: SteppingHost, rays: Mapping[str, RaySensor]
) -> dict[str, Source]:
    """Return all quantities of all entities, all raw fields and ray distances."""
    found: dict[str, Source] = {}
    for entity in worlds.scene.values():
        for name, quantity in type(entity.data).quantities.items():
            names = quantity_names(entity, quantity)
            if names and not quantity.evaluates:
                found[f"{entity.name}.{name}"] = _of_quantity(entity, quantity, names)
    for name, field in FIELDS.items():
        shape = worlds_of(worlds).engine.field_shape(name)[1:]
        names = tuple(
            name + "".join(f"[{i}]" for i in place)
            for place in itertools.product(*map(range, shape))
        )
        if names:
            found[name] = Source(
                field.unit, f"MuJoCo's {name}, {field.axes or 'no'} axes", names,
                lambda name=name: worlds_of(worlds).read_field(name),
            )  # fmt: skip
    for name, sensor in rays.items():
        found[f"rays {name}.distance"] = Source(
            "m", "distance along each ray",
            tuple(f"[{k}]" for k in range(sensor.num_rays)),
            lambda sensor=sensor: sensor.distance,
        )  # fmt: skip
    return found


def _of_quantity(entity: Entity, quantity: Quantity, names: Sequence[str]) -> Source:
    about = f"at the {quantity.point_text}, " if quantity.point_text != "–" else ""
    about += f"{quantity.axes_text} axes" if quantity.axes_text != "–" else ""
    return Source(
        quantity.unit, about.rstrip(", "), tuple(names),
        lambda: entity.data.read(quantity.name),
    )  # fmt: skip


def quantity_names(entity: Entity, quantity: Quantity) -> list[str]:
    """Return names of a quantity's components, in the order of its flattened tensor.

    Empty if the entity does not have the quantity, such as a root without bodies.
    """
    of_elements = any(isinstance(size, str) for size in quantity.shape)
    if not entity.num_bodies and not of_elements:
        return []
    if not quantity.shape:
        return [quantity.name]
    axes: list[Sequence[str]] = []
    for k, size in enumerate(quantity.shape):
        if isinstance(size, str):
            elements = _elements(entity, size)
            if elements is None:
                return []
            axes.append(elements)
        else:
            last = k == len(quantity.shape) - 1
            numbered = [str(i) for i in range(size)]
            axes.append(_PARTS.get(size, numbered) if last else numbered)
    return [" ".join(parts) for parts in itertools.product(*axes)]


def _elements(entity: Entity, size: str) -> Sequence[str] | None:
    """Return the names of the elements of a symbolic size; None if it has no names."""
    index = entity.index
    known: dict[str, Sequence[str]] = {
        "num_bodies": index.bodies.names,
        "num_joints": index.joints.names,
        "num_ball_joints": index.ball_joints.names,
        "num_geoms": index.geoms.names,
        "num_sites": index.sites.names,
        "num_tendons": index.tendons.names,
        "num_actuators": index.actuators.names,
        "num_controls": index.controls.names,
        "num_activations": index.activations.names,
        "num_mocap_bodies": index.mocap_bodies.names,
        "num_equalities": index.equalities.names,
        "num_free_dofs": [
            f"{name} {part}"
            for name in index.free_joints.names
            for part in _PARTS[6]
        ],
    }  # fmt: skip
    return known.get(size)
