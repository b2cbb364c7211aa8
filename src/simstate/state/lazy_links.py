"""The links of one world by name, whose tensors are made when one is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from torch import Tensor
from torch.utils import _pytree

from simstate.state.tensors import EntityTensors
from simstate.state.types import BodyState


class _NotMade:
    """What stands for a link in the memory of a dictionary that is not filled yet."""

    def __repr__(self) -> str:
        return "<link that is not made yet>"


_NOT_MADE = cast("BodyState", _NotMade())


def poses(
    pos: tuple[Tensor, ...],
    rot: tuple[Tensor, ...],
    vel: tuple[Tensor, ...],
    ang_vel: tuple[Tensor, ...],
) -> list[BodyState]:
    """Dictionaries of poses and velocities that are given one by one."""
    return [
        {"pos": p, "rot": r, "vel": v, "ang_vel": w}
        for p, r, v, w in zip(pos, rot, vel, ang_vel, strict=True)
    ]


class LazyLinks(dict[str, BodyState]):
    """A dictionary of links that makes their tensors when one of them is looked at.

    Most of what is read from states are roots and joints, and a link has four tensors.
    It has its keys from the start. Copied or pickled it is a plain dictionary.
    """

    __slots__ = ("source",)

    def __init__(self, tensors: EntityTensors, world: int) -> None:
        super().__init__(dict.fromkeys(tensors.body_names, _NOT_MADE))
        self.source: tuple[EntityTensors, int] | None = (tensors, world)
        """Where the numbers are, and in which row; None: the links have been made."""

    def fill(self) -> None:
        """Make the links, if nobody has looked at them yet."""
        if self.source is None:
            return
        tensors, i = self.source
        parts = (
            tensors.body_pos, tensors.body_rot, tensors.body_vel, tensors.body_ang_vel
        )  # fmt: skip
        links = poses(*(part[i].unbind(0) for part in parts))
        super().update(zip(tensors.body_names, links, strict=True))
        self.source = None

    def __iter__(self) -> Iterator[str]:
        # With an iterator of its own, dict(…) and {**…} ask for items one by one.
        return super().__iter__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _filled(name: str) -> Callable[..., Any]:
    """A method of dict that comes to see the links."""
    method = getattr(dict, name)

    def called(self: LazyLinks, *args: Any, **kwargs: Any) -> Any:
        for links in (self, *args):
            if isinstance(links, LazyLinks):
                links.fill()
        return method(self, *args, **kwargs)

    called.__name__ = name
    called.__doc__ = method.__doc__
    return called


for _name in (
    "__getitem__", "__setitem__", "__delitem__", "__eq__", "__ne__", "__or__",
    "__ror__", "__ior__", "__repr__", "get", "values", "items", "copy", "pop",
    "popitem", "setdefault", "update", "clear",
):  # fmt: skip
    setattr(LazyLinks, _name, _filled(_name))

# To torch's functions on trees it is a dictionary, too.
_pytree.register_pytree_node(  # pyright: ignore[reportUnknownMemberType]
    LazyLinks,
    lambda links: (list(links.values()), list(links)),
    lambda values, names: dict(zip(cast("list[str]", names), values, strict=True)),
)
