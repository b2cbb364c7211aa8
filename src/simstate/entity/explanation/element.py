"""Meaning of one value of MuJoCo's state or input, and how to read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import overload

import mujoco

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.scene import EntityIndex
from simstate.scene.element_names import OBJECTS
from simstate.scene.index import Elements

FIELDS = ("qpos", "qvel", "act", "ctrl", "xfrc_applied")
"""The fields whose elements are explained."""


@dataclass(frozen=True, kw_only=True)
class ElementInfo:
    """One element of a field: whose it is, and what its number means."""

    field: str
    index: tuple[int, ...]
    """Index in the field of one world."""
    entity: str
    """The entity of the scene; "" if it is the world's."""
    element: str
    """The joint, actuator or body, with its kind."""
    meaning: str
    point: str
    """The point that the number is about; "–" if it is about none."""
    axes: str
    """The axes that it is a component along; "–" if it is none."""
    unit: str
    mistake: str
    """The usual mistake with it."""

    @property
    def name(self) -> str:
        """Expression for the element in code: `qvel[4]`, `xfrc_applied[1][3]`."""
        return self.field + "".join(f"[{i}]" for i in self.index)

    def to_dict(self) -> dict[str, object]:
        """Return all of it, for JSON."""
        return {"name": self.name, **asdict(self), "index": list(self.index)}


class Explanation(Sequence[ElementInfo]):
    """All elements of a model; `explanation["qvel[4]"]` is one of them.

    A name may also select several, as a Sequence, with `select`: "qvel",
    "qvel[3:6]", "xfrc_applied[1]".
    """

    def __init__(self, elements: Sequence[ElementInfo]) -> None:
        self._elements = tuple(elements)

    @overload
    def __getitem__(self, key: int | str) -> ElementInfo: ...
    @overload
    def __getitem__(self, key: slice) -> Explanation: ...
    def __getitem__(self, key: int | str | slice) -> ElementInfo | Explanation:
        """Return one element by its name or place, or a slice of them."""
        if isinstance(key, str):
            found = self.select(key)
            if len(found) != 1:
                raise InvalidInputError(
                    f"{key!r} is {len(found)} elements: use select({key!r}), or name "
                    f"one, such as {found[0].name!r}."
                )
            return found[0]
        if isinstance(key, slice):
            return Explanation(self._elements[key])
        return self._elements[key]

    def __len__(self) -> int:
        return len(self._elements)

    def __iter__(self) -> Iterator[ElementInfo]:
        return iter(self._elements)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self._of(f))} of {f}" for f in FIELDS if self._of(f))
        return f"Explanation({counts})"

    def select(self, name: str) -> Explanation:
        """Return the elements that a field, an element or a slice of them names."""
        field, indices = _parse(name)
        of_field = self._of(field)
        if not of_field:
            raise InvalidInputError(f"The model has no {field}.")
        chosen = list(of_field)
        for level, index in enumerate(indices):
            sizes = [element.index[level] for element in chosen]
            wanted = set(range(max(sizes) + 1)[index]) if sizes else set[int]()
            chosen = [e for e in chosen if e.index[level] in wanted]
        if not chosen:
            last = of_field[-1].name
            raise InvalidInputError(f"{name} does not exist: the last is {last}.")
        return Explanation(chosen)

    def _of(self, field: str) -> list[ElementInfo]:
        return [element for element in self._elements if element.field == field]


def _parse(name: str) -> tuple[str, list[slice]]:
    """Return the field and the slices of a name such as "qvel[3:6]"."""
    match = re.fullmatch(r"\s*(?:data\.)?(\w+)\s*((?:\[[^\[\]]*\]\s*)*)", name)
    if match is None:
        raise InvalidInputError(
            f"{name!r} is not an element: write qvel, qvel[4], qvel[3:6] or "
            "xfrc_applied[1][3]."
        )
    field = match[1]
    if field not in FIELDS:
        raise unknown_name("field", field, FIELDS)
    texts = [t for group in re.findall(r"\[([^\]]*)\]", match[2])
             for t in group.split(",")]  # fmt: skip
    levels = 2 if field == "xfrc_applied" else 1
    if len(texts) > levels:
        count = "two indices" if levels == 2 else "one index"
        raise InvalidInputError(f"{field} has {count}, got {name!r}.")
    return field, [_slice(text.strip(), name) for text in texts]


def _slice(text: str, name: str) -> slice:
    if re.fullmatch(r"\d+", text):
        return slice(int(text), int(text) + 1)
    match = re.fullmatch(r"(\d*):(\d*)", text)
    if match is None:
        raise InvalidInputError(
            f"An index is a number or a range such as 3:6, got {text!r} in {name!r}."
        )
    return slice(int(match[1] or 0), int(match[2]) if match[2] else None)


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
        """Return the entity ("" for the world) and the quoted name of an element."""
        if (kind, i) in self._found:
            entity, name = self._found[kind, i]
            return entity, repr(name)
        raw = mujoco.mj_id2name(self.model, OBJECTS[kind].value, i) or f"{kind}_{i}"
        for prefix, entity in self._prefixes.items():
            # The world body belongs to no entity, even if one entity has every name.
            if raw.startswith(prefix) and not (kind == "body" and i == 0):
                return entity, repr(raw.removeprefix(prefix))
        return "", repr(raw)
