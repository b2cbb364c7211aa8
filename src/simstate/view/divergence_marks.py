"""Marks at diverged worlds: the joint or body of the first invalid value."""

from __future__ import annotations

import re

import mujoco
import numpy as np

from simstate.step.stepping_host import SteppingHost
from simstate.view.one_world import OneWorld
from simstate.view.shapes import RED, Label, Point, Shape

_OF_DOFS = ("qvel", "qacc", "qacc_warmstart", "qfrc_applied")


class DivergenceMarks:
    """The worlds that diverged, each with its first invalid value."""

    def __init__(self) -> None:
        self.elements: dict[int, str] = {}
        """Description of the first invalid value, by world."""

    def note(self, worlds: SteppingHost) -> None:
        """Record the worlds that diverged in the last step."""
        found = worlds.divergence.cause
        if found is not None:
            self.elements |= dict(zip(found.env_ids, found.elements, strict=False))

    def forget(self, env_ids: list[int] | None = None) -> None:
        """Remove the marks of worlds that were reset; None: all."""
        for world in list(self.elements) if env_ids is None else env_ids:
            self.elements.pop(world, None)

    def shapes(self, seen: OneWorld) -> list[Shape]:
        """Return a red ball at the element of the first invalid value, and its name."""
        element = self.elements.get(seen.world)
        if element is None:
            return []
        place = place_of_element(seen, element)
        if place is None:
            return []
        text = f"world {seen.world} diverged: {element}. Its last valid step is shown."
        named = re.search(r"\((.*)\)", element)
        label = f"✖ {element.split()[0]}{f', {named[1]}' if named else ''}"
        return [Point(place, 0.08 * seen.size, RED, text), Label(place, 1.0, label)]


def place_of_element(seen: OneWorld, element: str) -> np.ndarray | None:
    """Return the position of the element that a text names, world axes [m]; (3,)."""
    match = re.match(r"(\w+)\[(\d+)\]", element)
    if match is None:
        return None
    model, field, i = seen.model, match[1], int(match[2])
    if field == "qpos":
        return seen.field("xanchor")[int((model.jnt_qposadr <= i).sum()) - 1]
    if field in _OF_DOFS:
        return seen.field("xanchor")[int(model.dof_jntid[i])]
    if field == "xfrc_applied":
        return seen.field("xipos")[i // 6]
    if field == "ctrl":
        owner = int((model.actuator_ctrladr <= i).sum()) - 1
        joint = int(model.actuator_trnid[owner, 0])
        if model.actuator_trntype[owner] == mujoco.mjtTrn.mjTRN_JOINT.value:
            return seen.field("xanchor")[joint]
    return None
