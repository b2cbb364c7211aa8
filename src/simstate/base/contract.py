"""Contract: the unit, axes and reference point of a value, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

UNDECLARED = "not declared"
"""Text for a property that was not declared."""
NO = "–"
"""Text for axes or a point that do not apply."""


class Contract(NamedTuple):
    """Unit, axes and reference point of a recorded, observed or commanded value."""

    unit: str = UNDECLARED
    """Unit; "1" for a dimensionless value."""
    axes: str = UNDECLARED
    """Axes along which it is a component; "–" if not applicable."""
    point: str = UNDECLARED
    """Point that it refers to; "–" if not applicable."""
    scale: float = 1.0
    """Factor that converts the value to `unit`."""

    def scaled(self, scale: float) -> Contract:
        """Return the contract of a value that is `scale` times smaller."""
        return self._replace(scale=self.scale * scale)

    @property
    def unit_text(self) -> str:
        """Unit of the unscaled value, such as "0.25 rad"."""
        if self.unit == UNDECLARED or f"{self.scale:g}" == "1":
            return self.unit
        if self.unit == "1":
            return f"{self.scale:g}"
        several = ", " in self.unit or " or " in self.unit
        return f"{self.scale:g} {f'({self.unit})' if several else self.unit}"


PURE = Contract("1", NO, NO)
"""Contract of dimensionless values."""
UNSAID = Contract()
"""Contract of values that declare nothing."""


def spread(each: Sequence[Contract], count: int) -> list[Contract] | None:
    """Return contracts for `count` values by repeating `each`; None if it does not fit.

    An empty `each` leaves all values undeclared.
    """
    times, rest = divmod(count, len(each) or 1)
    return None if rest else list(each or [UNSAID]) * times


def joined(texts: Iterable[str]) -> str:
    """Return the texts of several values as one: each text once, in order."""
    return ", ".join(dict.fromkeys(texts))
