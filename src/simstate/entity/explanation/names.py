"""Which entity an element of the compiled model belongs to, and what it is called."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco

from simstate.scene import EntityIndex
from simstate.scene.index import Elements
from simstate.scene.objects import OBJECTS


class ElementNames:
    """Entity and name of each element of a compiled model."""

    def __init__(
        self, model: mujoco.MjModel, entities: Mapping[str, EntityIndex]
    ) -> None:
        self.model = model
        self._found: dict[tuple[str, int], tuple[str, str]] = {}
        for entity, index in entities.items():
            groups: dict[str, list[Elements]] = {
                "body": [index.bodies],
                "joint": [index.joints, index.ball_joints, index.free_joints],
                "tendon": [index.tendons],
                "site": [index.sites],
            }
            for kind, members in groups.items():
                for elements in members:
                    for name, i in zip(elements.names, elements.ids, strict=True):
                        self._found[kind, i] = (entity, name)
        self._prefixes = {index.prefix: entity for entity, index in entities.items()}

    def of(self, kind: str, i: int) -> tuple[str, str]:
        """The entity ("" for the world) and the quoted name of an element."""
        if (kind, i) in self._found:
            entity, name = self._found[kind, i]
            return entity, repr(name)
        raw = mujoco.mj_id2name(self.model, OBJECTS[kind].value, i) or f"{kind}_{i}"
        for prefix, entity in self._prefixes.items():
            # The world body belongs to no entity, even if one entity has every name.
            if raw.startswith(prefix) and not (kind == "body" and i == 0):
                return entity, repr(raw.removeprefix(prefix))
        return "", repr(raw)
