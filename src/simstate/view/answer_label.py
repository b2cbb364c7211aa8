"""Asked: a label in the picture at the element that a client asked about."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import viser

from simstate.entity.explanation import Explanation
from simstate.view.divergence_marks import place_of_element
from simstate.view.one_world import OneWorld, vector_text

LabelSource = Callable[[OneWorld], tuple[str, np.ndarray] | None]
"""Return a text about the current state and its position, world axes [m]; (3,)."""
LONGEST = 60
"""Maximum number of characters in a line of a label."""


class Asked:
    """A label that follows its subject while the worlds move.

    Args:
        server: the server whose scene it is drawn in.
        node: its name in the scene.
    """

    def __init__(self, server: viser.ViserServer, node: str) -> None:
        self._scene: Any = server.scene
        self._node = node
        self._source: LabelSource | None = None
        self._label: Any = None

    @property
    def text(self) -> str:
        """Text of the label; "" without one."""
        return "" if self._label is None else self._label.text

    def about(self, source: LabelSource | None) -> None:
        """Set the source of the label; None removes it."""
        self._source = source
        if self._label is not None:
            self._label.remove()
            self._label = None

    def update(self, seen: OneWorld, offset: np.ndarray) -> None:
        """Update the label; `offset` is the world's position in the grid [m]; (3,)."""
        found = None if self._source is None else self._source(seen)
        if found is None:
            self.about(None)
            return
        text, place = found
        if self._label is None:
            self._label = self._scene.add_label(
                self._node, text, position=place + offset, anchor="bottom-left"
            )
            return
        self._label.position = place + offset
        if self._label.text != text:
            self._label.text = text


def body_label(world: int, body: int) -> LabelSource:
    """Return a label at a body of a world, while that world is shown."""

    def source(seen: OneWorld) -> tuple[str, np.ndarray] | None:
        if seen.world != world:
            return None
        place, name = seen.field("xpos")[body], seen.model.body(body).name
        text = (
            f"{name or f'body {body}'}: {vector_text(place)} m\nlink origin, world axes"
        )
        return text, place

    return source


def element_label(explanation: Explanation, name: str) -> LabelSource:
    """Return a label at the first element that a name selects, if it has a position."""
    one = explanation.select(name)[0]

    def source(seen: OneWorld) -> tuple[str, np.ndarray] | None:
        values = np.asarray(seen.field(one.field))
        flat = int(np.ravel_multi_index(one.index, values.shape))
        place = place_of_element(seen, f"{one.field}[{flat}]")
        if place is None:
            return None
        value = float(values[one.index])
        return f"{one.name} = {value:.4g} {one.unit}\n{one.element}", place

    return source


def shape_label(text: str, place: np.ndarray, seen: OneWorld) -> LabelSource:
    """Return a label with the text of a shape, which is shown until time advances."""
    time = float(seen.worlds.time[seen.world])
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > LONGEST:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()

    def source(now: OneWorld) -> tuple[str, np.ndarray] | None:
        is_same = now.world == seen.world and float(now.worlds.time[now.world]) == time
        return ("\n".join(lines), place) if is_same else None

    return source
