"""Results of the oracle suite: one line for each law and quantity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Check:
    """The largest error of one quantity under one law, over all worlds."""

    law: str
    entity: str
    quantity: str
    error: float
    """Largest difference, relative to the largest value or to 1; NaN is a failure."""
    tolerance: float
    note: str = ""
    """Remark, such as that a difference is due to the library of the engine."""

    @property
    def passed(self) -> bool:
        """True if the error is within the tolerance."""
        return self.error <= self.tolerance


@dataclass
class Report:
    """The checks of one model on one engine."""

    engine: str
    checks: list[Check] = field(default_factory=list["Check"])
    unchecked: list[str] = field(default_factory=list[str])
    """Laws that were not checked, each with the reason."""

    @property
    def passed(self) -> bool:
        """True if there are checks and all of them passed."""
        return bool(self.checks) and not self.failures

    @property
    def failures(self) -> list[Check]:
        """The checks that did not pass."""
        return [check for check in self.checks if not check.passed]

    @property
    def notes(self) -> list[str]:
        """Notes of the checks and reasons for laws not checked, without duplicates."""
        noted = [check.note for check in self.checks if check.note]
        return list(dict.fromkeys([*noted, *self.unchecked]))

    def worst(self) -> list[Check]:
        """Return the check of each law with the largest ratio of error to tolerance."""
        worst: dict[str, Check] = {}
        for check in self.checks:
            known = worst.get(check.law)
            if known is None or _strain(check) > _strain(known):
                worst[check.law] = check
        return list(worst.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as data for JSON."""
        lines = [{**asdict(check), "passed": check.passed} for check in self.checks]
        return {"engine": self.engine, "passed": self.passed, "checks": lines}

    def __str__(self) -> str:
        return "\n".join([*_lines(self.worst(), self.failures), *self.notes])


def relative_error(value: Tensor, reference: Tensor) -> float:
    """Return the largest difference, relative to the largest reference or to 1."""
    value, reference = value.to(torch.float64), reference.to(torch.float64)
    if value.shape != reference.shape:
        return float("nan")
    if not value.numel():
        return 0.0
    scale = max(1.0, float(reference.abs().max()))
    return float((value - reference).abs().max()) / scale


def _strain(check: Check) -> float:
    """Return the ratio of error to tolerance; infinite for NaN."""
    if check.error != check.error:
        return float("inf")
    return check.error / check.tolerance if check.tolerance else check.error


def _lines(worst: Iterable[Check], failures: Iterable[Check]) -> list[str]:
    lines = [f"{'law':<34} {'worst quantity':<36} {'error':>9} {'allowed':>9}"]
    for check in worst:
        name = f"{check.entity}.{check.quantity}"
        verdict = "ok" if check.passed else "FAILED"
        lines.append(
            f"{check.law:<34} {name:<36} {check.error:>9.1e} {check.tolerance:>9.0e} "
            f"{verdict}"
        )
    lines += [
        f"FAILED {check.law}: {check.entity}.{check.quantity}, error {check.error:.3e} "
        f"> {check.tolerance:.0e}"
        for check in failures
    ]
    return lines
