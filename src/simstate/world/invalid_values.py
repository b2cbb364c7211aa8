"""Invalid values: NaN, infinite or huge numbers of a world, named down to the joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import torch
from torch import Tensor

from simstate.base.errors import DivergenceError, listed, warn
from simstate.base.ids import int_list
from simstate.engine import MAX_VALUE, Engine

_SHOWN = 8


@dataclass(frozen=True)
class Found:
    """Worlds that diverged in one step; their state was restored."""

    env_ids: list[int]
    """The worlds, in ascending order."""
    elements: list[str]
    """Description of the first invalid value, for the first few of these worlds."""
    after: Tensor
    """The invalid state that the step led to; shape (n, nstate)."""


DESCRIBED_FIELDS = (
    "ctrl",
    "qfrc_applied",
    "xfrc_applied",
    "mocap_pos",
    "mocap_quat",
    "qpos",
    "qvel",
    "act",
    "qacc_warmstart",
    "time",
)
"""The fields whose elements have names. Inputs come first: a bad input is the cause of
a bad position, not the other way."""


def first_bad_element(
    engine: Engine,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    world: int,
    processes: Mapping[str, Tensor],
) -> str:
    """Return the first invalid value of a world: field, index, value, joint's name.

    Values that were invalid before the step come first, then what was dropped on its
    way, then what MuJoCo's own warning blames, then invalid values after it: of
    MuJoCo's state, then of processes by their names.
    """
    found = _first_bad(engine, before, world) or engine.loss(world)
    if found:
        return found
    blame = engine.cause(world)
    if blame is not None:
        name, i = blame
        where = describe_element(engine.model, name, i)
        return f"{name}[{i}] was NaN, infinite or above {MAX_VALUE:g} ({where})"
    return (
        _first_bad(engine, after, world)
        or _first_of_process(processes, world)
        or "no single element"
    )


def _first_bad(engine: Engine, fields: Mapping[str, Tensor], world: int) -> str:
    """Return the first bad number of a world's state; "" if there is none."""
    for name in DESCRIBED_FIELDS:
        values = fields[name][world].to(torch.float64).flatten()
        bad = (~(values.abs() <= MAX_VALUE)).nonzero().flatten()
        if bad.numel():
            i = int(bad[0])
            where = describe_element(engine.model, name, i)
            return f"{name}[{i}] = {float(values[i]):g} ({where})"
    return ""


def _first_of_process(processes: Mapping[str, Tensor], world: int) -> str:
    """Return the first invalid value of a world's processes; "" if there is none."""
    for name, values in processes.items():
        row = values[world].flatten()
        bad = (~(row.abs() <= MAX_VALUE)).nonzero().flatten()
        if bad.numel():
            i = int(bad[0])
            return f"process {name!r}: value[{i}] = {float(row[i]):g}"
    return ""


def describe_element(model: mujoco.MjModel, field: str, i: int) -> str:
    """Return the name of the element that owns entry i of a flat state field."""
    if field == "time":
        return "the simulation time [s]"
    if field == "qpos":
        joint = int((model.jnt_qposadr <= i).sum()) - 1
        return _joint(model, joint)
    if field in ("qvel", "qacc", "qacc_warmstart", "qfrc_applied"):
        return _joint(model, int(model.dof_jntid[i]))
    if field == "ctrl":
        actuator = int((model.actuator_ctrladr <= i).sum()) - 1
        name = _name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, actuator)
        if model.actuator_ctrlnum[actuator] > 1:
            k = i - int(model.actuator_ctrladr[actuator])
            label = mujoco.mj_actuatorInputName(model, actuator, k)
            name = name[:-1] + f":{label}'" if name.endswith("'") else f"{name}:{label}"
        return f"actuator {name}"
    if field == "act":
        first = model.actuator_actadr
        (owner,) = ((first <= i) & (i < first + model.actuator_actnum)).nonzero()[0]
        return f"actuator {_name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, int(owner))}"
    if field == "xfrc_applied":
        return f"body {_name(model, mujoco.mjtObj.mjOBJ_BODY, i // 6)}"
    width = 3 if field == "mocap_pos" else 4
    body = int((model.body_mocapid == i // width).nonzero()[0][0])
    return f"body {_name(model, mujoco.mjtObj.mjOBJ_BODY, body)}"


def divergence_error(
    engine: Engine, found: Found, before: Mapping[str, Tensor], n: int
) -> DivergenceError:
    """Return the error for worlds that diverged in a step of n substeps."""
    ids = found.env_ids
    times = before["time"]
    written = all(_first_bad(engine, before, i) for i in ids[:_SHOWN])
    remedy = (
        "These values are from before the step: correct what wrote them, or use"
        if written
        else "Use a smaller timestep, or"
    )
    lines = [
        f"  world {i}, from t = {float(times[i]):g} s: {element}"
        for i, element in zip(ids, found.elements, strict=False)
    ]
    if len(ids) > len(lines):
        lines.append(f"  … and {len(ids) - len(lines)} more")
    message = (
        f"{len(ids)} of {engine.num_envs} worlds diverged within {n} step"
        f"{'s' if n > 1 else ''} of {engine.model.opt.timestep:g} s:\n"
        + "\n".join(lines)
        + "\nThey keep the state from before this call; the others have advanced. "
        f'{remedy} on_divergence="mask" to continue with the others.'
    )
    return DivergenceError(message, ids)


def report_invalid(engine: Engine, diverged: Tensor, env_ids: Tensor | None) -> None:
    """Warn of worlds that were evaluated with invalid values; None: of all.

    MuJoCo treats an invalid control as 0, and Warp normalises an invalid quaternion, so
    the accelerations need not show it. Worlds in `diverged` were reported before.
    """
    bad = engine.find_bad()
    if bad is None:
        return
    known = set(int_list(diverged.nonzero().flatten()))
    chosen = None if env_ids is None else set(int_list(env_ids))
    worlds = [
        i
        for i in int_list(bad.nonzero().flatten())
        if i not in known and (chosen is None or i in chosen) and not engine.loss(i)
    ]
    if worlds:
        fields = engine.split(engine.state)
        warn(
            f"In {len(worlds)} of {engine.num_envs} worlds ({listed(worlds, 10)}): "
            f"{first_bad_element(engine, fields, fields, worlds[0], {})}. What was "
            "evaluated there means nothing."
        )


def bad_elements(
    engine: Engine,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    env_ids: Tensor,
    processes: Mapping[str, Tensor],
) -> list[str]:
    """Return the first invalid value of each of the first few of these worlds."""
    return [
        first_bad_element(engine, before, after, int(i), processes)
        for i in env_ids[:_SHOWN]
    ]


def _joint(model: mujoco.MjModel, joint: int) -> str:
    kinds = {0: "free joint", 1: "ball joint", 2: "slide joint", 3: "hinge"}
    kind = kinds[int(model.jnt_type[joint])]
    return f"{kind} {_name(model, mujoco.mjtObj.mjOBJ_JOINT, joint)}"


def _name(model: mujoco.MjModel, kind: mujoco.mjtObj, i: int) -> str:
    """Return the element's name; for a nameless joint its body's, else its id."""
    name = mujoco.mj_id2name(model, kind.value, i)
    if name:
        return repr(name)
    if kind == mujoco.mjtObj.mjOBJ_JOINT:
        body = int(model.jnt_bodyid[i])
        return f"{i} of body {_name(model, mujoco.mjtObj.mjOBJ_BODY, body)}"
    return str(i)
