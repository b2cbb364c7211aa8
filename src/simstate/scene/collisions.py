"""CollisionCfg: contact parameters of geoms, declared in a scene's configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from simstate.base.checks import number, whole_number
from simstate.base.errors import InvalidInputError

_CONDIM = (1, 3, 4, 6)
_LARGEST_MASK = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class CollisionCfg:
    """Contact parameters of the geoms whose names match `geoms` in full.

    None keeps the model's value. If several configurations match a geom, the last one
    that sets a parameter is used.
    """

    geoms: str | Sequence[str]
    """A regular expression, or several, matched in full against the geoms' names."""
    contype: int | None = None
    """Collision bits of the geom."""
    conaffinity: int | None = None
    """Bits that it collides with; 0 in both masks: it never collides."""
    condim: int | None = None
    """Dimensions of a contact: 1 (no friction), 3 (sliding), 4 (and torsional) or 6
    (and rolling)."""
    priority: int | None = None
    """Priority: the geom with the higher one determines friction and solref."""
    friction: Sequence[float] | None = None
    """Sliding [1], torsional [m] and rolling [m] friction; one to three values, the
    others are unchanged."""
    solref: Sequence[float] | None = None
    """Time constant [s] and damping ratio of contacts; if both are negative,
    −stiffness and −damping."""

    def __post_init__(self) -> None:
        for name in ("contype", "conaffinity"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 0, _LARGEST_MASK)
        if self.priority is not None:
            whole_number("priority", self.priority, -_LARGEST_MASK, _LARGEST_MASK)
        if self.condim is not None and self.condim not in _CONDIM:
            raise InvalidInputError(
                f"condim must be one of {_CONDIM}, got {self.condim!r}.", name="condim"
            )
        if self.friction is not None:
            _check_numbers("friction", self.friction, (1, 3))
            for value in self.friction:
                number("friction", value, at_least=0)
        if self.solref is not None:
            _check_numbers("solref", self.solref, (2, 2))
            signs = {value > 0 for value in self.solref}
            if 0 in self.solref or len(signs) != 1:
                raise InvalidInputError(
                    "solref must be two positive or two negative numbers, got "
                    f"{tuple(self.solref)}.",
                    name="solref",
                )

    @property
    def stated(self) -> dict[str, Any]:
        """The parameters that are not None, by their names in MuJoCo."""
        values = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return {name: value for name, value in values.items() if value is not None}

    def write_to(self, geom: Any) -> None:
        """Write the stated parameters to a geom of a specification."""
        for name, value in self.stated.items():
            if name in ("friction", "solref"):
                value = [*value, *getattr(geom, name)[len(value) :]]
            setattr(geom, name, value)


def _check_numbers(name: str, values: Sequence[float], counts: tuple[int, int]) -> None:
    """Raise unless these are finite numbers, as many as `counts` allow."""
    least, most = counts
    wanted = str(least) if least == most else f"{least} to {most}"
    is_sequence = isinstance(values, Sequence)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_sequence or not least <= len(values) <= most:
        raise InvalidInputError(
            f"{name} must be {wanted} numbers, got {values!r}.", name=name
        )
    for value in values:
        number(name, value)
