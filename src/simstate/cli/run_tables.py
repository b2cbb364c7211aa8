"""Tables of one world that `simstate run` prints at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from simstate.base.table_style import new_table

if TYPE_CHECKING:
    from torch import Tensor

    from simstate.entity import Entity, Quantity


def quantity_values(entity: Entity, world: int) -> dict[str, Any]:
    """Return the entity's quantities in one world as lists, by name."""
    return {
        name: entity.data.read(name)[world].cpu().numpy().tolist()
        for name, quantity in entity.data.quantities.items()
        if _is_shown(entity, quantity)
    }


def quantity_table(entity: Entity, world: int) -> Table:
    """Return a table of the entity's quantities in one world, with contracts."""
    from simstate.world.worlds import worlds_of  # loads torch

    time = float(worlds_of(entity).read_field("time")[world])
    table = new_table(f"{entity.name}, world {world}, t = {time:g} s")
    for header in ("quantity", "value", "point", "axes", "unit"):
        table.add_column(header, no_wrap=header != "value")
    for name, quantity in entity.data.quantities.items():
        if _is_shown(entity, quantity):
            value = format_value(entity.data.read(name)[world])
            table.add_row(
                name, value, quantity.point_text, quantity.axes_text, quantity.unit
            )
    return table


def joint_table(entity: Entity, world: int) -> Table:
    """Return a table of each joint's state, target and actuator force in one world."""
    columns = (
        "joint_pos",
        "joint_vel",
        "joint_acc",
        "joint_pos_target",
        "qfrc_actuator",
    )
    units = [entity.data.quantities[name].unit for name in columns]
    heads = [f">{name}\n[{unit}]" for name, unit in zip(columns, units, strict=True)]
    table = new_table("1-DoF joints", "joint", *heads)
    values = [entity.data.read(name)[world] for name in columns]
    for k, joint in enumerate(entity.joint_names):
        table.add_row(joint, *(format_value(column[k]) for column in values))
    return table


def format_value(value: Tensor) -> str:
    """Return up to seven values as text; of a matrix, the first row and the shape."""
    if value.ndim > 1:
        sizes = "×".join(str(size) for size in value.shape)
        return f"{format_value(value[0])}, … ({sizes})"
    if value.ndim == 0:
        return "–" if bool(value.isnan()) else f"{float(value):.4g}"
    shown = ", ".join(f"{float(number):.4g}" for number in value[:7])
    return shown if len(value) <= 7 else f"{shown}, … ({len(value)})"


def _is_shown(entity: Entity, quantity: Quantity) -> bool:
    """Return True if the entity has such elements and no finer quantity covers them."""
    from simstate.entity.entity import sizes_of  # loads torch

    if quantity.kind in ("pose", "vel", "acc") and quantity.axes == "w":
        return False
    if quantity.subject == "root" or quantity.kind in ("projected_gravity", "heading"):
        return entity.index.base != "none"
    per_joint = "num_joints" in quantity.shape
    counts = sizes_of(entity)
    sizes = [counts[size] for size in quantity.shape if isinstance(size, str)]
    return not per_joint and all(sizes)
