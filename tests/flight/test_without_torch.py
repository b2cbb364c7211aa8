"""The cycle of one aircraft calls no function of torch until a tensor is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode, resolve_name

from simstate.engine import core
from simstate.flight import Aerodynamics, Air, ControlCfg, FreeFlight

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

WATCH = {"torch.Tensor._version.__get__", "torch.Tensor.data_ptr"}
"""By these writes of users are noticed; they compute and create nothing."""


class Calls(TorchFunctionMode):
    """Records the calls of torch's functions, and of methods of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Record the name, and call it."""
        del types
        name = str(resolve_name(func) or func)
        if name not in WATCH:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def fly(**options: Any) -> FreeFlight:
    """An aircraft with two controls in a wind, away from identity."""
    controls = {
        "elevator": ControlCfg(range=(-0.3, 0.4), time_constant=0.1),
        "throttle": ControlCfg(range=(0.0, 1.0)),
    }
    return FreeFlight(
        1.4, np.diag([0.2, 0.3, 0.4]), controls=controls,
        air=Air(wind=(1.0, -2.0, 0.3)),
        velocity_E__E=(25.0, 1.0, 1.5), **options,
    )  # fmt: skip


def watch_factories(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what creates tensors from something else, which no mode sees."""
    made: list[str] = []
    for name in ("from_numpy", "as_tensor", "tensor"):

        def make(*args: Any, _name: str = name, **kwargs: Any) -> Any:
            made.append(_name)
            return own[_name](*args, **kwargs)

        own[name] = getattr(torch, name)
        monkeypatch.setattr(torch, name, make)
    return made


own: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("options", "loaded"),
    [({}, False), ({}, True), ({"integrator": "implicitfast"}, False)],
)
def test_a_cycle_needs_no_torch(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], loaded: bool
) -> None:
    flight = fly(**options)
    if loaded:
        coefficients = {"CL": {"0": 0.3, "alpha": 4.5, "elevator": 0.4}, "CD": 0.03}
        flight.add_load(Aerodynamics(0.5, 2.2, 0.27, coefficients))
    force, moment = np.array([1.0, 0.2, -0.4]), np.array([0.02, 0.01, -0.03])

    def cycle() -> Any:
        flight.apply_loads(force, moment)
        flight.step()
        return flight.get_state()

    made = watch_factories(monkeypatch)
    cycle()  # what is made once
    made.clear()
    with Calls() as calls:
        states = [cycle() for _ in range(3)]
    assert calls.names == []
    assert made == []
    speed = states[-1].velocity_E__E
    assert made == ["from_numpy"]
    assert isinstance(speed, torch.Tensor)
    assert float(speed[0, 0]) != float(states[0].velocity_E__E[0, 0])
    assert float(states[-1].time[0]) == pytest.approx(4 * flight.sim.timestep)
