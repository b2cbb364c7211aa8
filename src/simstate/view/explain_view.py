"""Description of a clicked element and its values, as text."""

from __future__ import annotations

import numpy as np

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine import FIELDS as RAW_FIELDS
from simstate.entity import EntityData
from simstate.entity.explanation import FIELDS, Explanation
from simstate.view.one_world import OneWorld, vector_text

_OF_A_BODY = (
    "body_link_pos_w",
    "body_link_lin_vel_w",
    "body_link_ang_vel_w",
    "body_com_pos_w",
    "body_com_lin_vel_w",
    "body_external_wrench",
)


def body_text(seen: OneWorld, explanation: Explanation, body: int) -> str:
    """Describe a body, its quantities with point, axes and unit, and its joints."""
    model = seen.model
    for entity in seen.entities.values():
        if body not in entity.index.bodies.ids:
            continue
        k = entity.index.bodies.ids.index(body)
        lines = [
            f"**{entity.name}/{entity.body_names[k]}**, world {seen.world}",
            "",
            "| quantity | value | point | axes |",
            "|---|---|---|---|",
        ]
        for name in _OF_A_BODY:
            about = EntityData.quantities[name]
            value = vector_text(seen.quantity(entity.name, name)[k])
            point, axes = about.point_text, about.axes_text
            lines.append(f"| {name} | {value} {about.unit} | {point} | {axes} |")
        lines += ["", *_joint_lines(seen, explanation, body)]
        return "\n".join(lines)
    name = model.body(body).name or f"body {body}"
    return f"**{name}**: fixed in the world, of no entity"


def element_text(seen: OneWorld, explanation: Explanation, name: str) -> str:
    """Describe an entry such as qvel[4], and its value in the world shown."""
    field = name.split("[")[0].strip().removeprefix("data.")
    if field not in FIELDS:
        if field in RAW_FIELDS:
            about = RAW_FIELDS[field]
            return f"**{field}**: {about.unit}, {about.axes or 'no'} axes"
        raise unknown_name("field", field, RAW_FIELDS)
    found = explanation.select(name)
    if len(found) > 12:
        raise InvalidInputError(
            f"{name} has {len(found)} elements: select at most 12.", name=name
        )
    return "\n\n".join(_element_line(seen, one.name, explanation) for one in found)


def _element_line(seen: OneWorld, name: str, explanation: Explanation) -> str:
    one = explanation[name]
    value = float(np.asarray(seen.field(one.field))[one.index])
    text = f"**{one.name}** = {value:.6g} {one.unit}: {one.element}, {one.meaning}"
    if one.point != "–":
        text += f"; at {one.point}"
    if one.axes != "–":
        text += f"; {one.axes} axes"
    return f"{text}. *{one.mistake}*" if one.mistake else f"{text}."


def _joint_lines(seen: OneWorld, explanation: Explanation, body: int) -> list[str]:
    """Return the elements of qpos and qvel that belong to the joints of a body."""
    model = seen.model
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    lines: list[str] = []
    for j in range(first, first + count):
        widths = {0: (7, 6), 1: (4, 3)}.get(int(model.jnt_type[j]), (1, 1))
        starts = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        for field, at, width in zip(("qpos", "qvel"), starts, widths, strict=True):
            for i in range(at, at + width):
                one = explanation[f"{field}[{i}]"]
                value = float(seen.field(field)[i])
                lines.append(f"- {one.name} = {value:.4g} {one.unit}: {one.meaning}")
    return lines
