"""Snapshots of format 1, which kept a simulation's numbers in seven places."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from simstate.base.errors import warn
from simstate.engine import CONSTANT_INPUTS, Engine

FORMAT_1 = "simstate snapshot 1"
FORMAT_2 = "simstate snapshot 2"

_INTEGRATION = {
    "mass": "model/body_mass",
    "inertia": "model/body_inertia",
    "mass_rate": "integrator/mass_rate",
    "step_size": "integrator/step_size",
}


def slots_of_format_1(
    header: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and slots as format 2 has them.

    Random streams start anew: those of the old format are of another kind.
    """
    slots: dict[str, Tensor] = {"diverged": arrays["diverged"]}
    for name, place in header["fields"].items():
        first, count = int(place["start"]), int(place["count"])
        part = arrays["state"][:, first : first + count]
        slots[name] = part.reshape(part.shape[0], *_shape(name, count))
    for key, tensor in arrays.items():
        group, _, rest = key.partition("/")
        if group == "parameters":
            # Constants follow from the other parameters by themselves.
            if rest not in Engine.all_constants - CONSTANT_INPUTS:
                slots[f"model/{rest}"] = tensor
        elif group == "entities":
            slots[f"entity/{rest}"] = tensor
        elif group == "integration" and rest.startswith("process "):
            slots[f"process/{rest.removeprefix('process ')}"] = tensor
        elif group == "integration" and rest in _INTEGRATION:
            slots[_INTEGRATION[rest]] = tensor
        elif group == "integration" and rest == "noise_draws":
            warn(
                "The snapshot is of format 1, whose random numbers this version does "
                "not have: the noise of stochastic integrators starts anew."
            )
    contracts = {name: {"owner": "sim"} for name in slots}
    kept = {key: header[key] for key in ("engine", "dtype", "mujoco", "timestep")}
    converted = {"format": FORMAT_2, **kept, "slots": contracts}
    return {**converted, "model": header["model"]}, slots


def _shape(name: str, count: int) -> tuple[int, ...]:
    """The shape of a field in one world."""
    width = {"xfrc_applied": 6, "mocap_pos": 3, "mocap_quat": 4}.get(name)
    if name == "time":
        return ()
    return (count,) if width is None else (count // width, width)
