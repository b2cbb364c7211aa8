"""Meanings of the elements of xfrc_applied."""

from __future__ import annotations

from simstate.entity.explanation.element import ElementInfo
from simstate.entity.explanation.names import ElementNames

_FORCE = (
    "taken for a force at the body's origin, or along body axes; it acts until it is "
    "overwritten"
)
_TORQUE = (
    "taken for body axes, as the angular velocity in qvel is; a force at another point "
    "adds (point − COM) × force"
)


def explain_body(names: ElementNames, body: int) -> list[ElementInfo]:
    """The six elements of xfrc_applied of one body."""
    entity, label = names.of("body", body)
    found: list[ElementInfo] = []
    for k in range(6):
        is_force = k < 3
        what = "force on" if is_force else "torque on"
        mistake = _FORCE if is_force else _TORQUE
        if body == 0:
            mistake = "expected to move something: the world does not"
        found.append(
            ElementInfo(
                field="xfrc_applied",
                index=(body, k),
                entity=entity,
                element=f"body {label}",
                meaning=f"{'xyz'[k % 3]} of the {what} body {label}",
                point="centre of mass" if is_force else "any",
                axes="world",
                unit="N" if is_force else "N·m",
                mistake=mistake,
            )
        )
    return found
