"""Header of a recording: the worlds, their columns, seeds and versions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

import mujoco
import numpy as np

from simstate.base.errors import RecordingError
from simstate.base.mujoco_version import installed_versions
from simstate.base.printable import printable_values
from simstate.record.changes import WRONG
from simstate.record.compression import DTYPES
from simstate.step.stepping_host import SteppingHost, forcing_of, steppers_of
from simstate.world.worlds import worlds_of

FORMAT = "simstate recording 1"
HEADER, MODEL, END = "header", "model.mjb", "end"
"""The names of attachments; snapshots are `snapshot/STEP`."""
STEPS = "steps"
"""The topic of the steps, in addition to one for each column."""
TIME, STEP = "time", "step"
"""The columns that every recording has: simulation time, and steps before a sample."""


def describe_worlds(sim: SteppingHost) -> dict[str, Any]:
    """Return a description of the worlds, for JSON."""
    integration = sim.integration
    scheme = None if integration is None else integration.scheme
    forcing, timeline = forcing_of(sim), steppers_of(sim).timeline
    code = [_name(model) for model in forcing.models]
    code += [process.name for process in forcing.processes]
    code += [_name(noise) for noise in forcing.noises]
    code += [] if forcing.mass_flow is None else ["mass flow"]
    if timeline is not None:
        code += [f"event {event.name}" for event in timeline.events]
        code += [f"task {task.name}" for task in timeline.tasks]
    return {
        "num_envs": sim.num_envs,
        "first_world": int(worlds_of(sim).ledger["random/world"].tensor[0]),
        "seed": sim.seed,
        "engine": sim.engine_name,
        "dtype": str(sim.dtype).removeprefix("torch."),
        "device": str(sim.device),
        "timestep": sim.timestep,
        "on_divergence": sim.on_divergence,
        "entities": list(sim.scene),
        "sensors": sim.sensor_names,
        "integrator": None if scheme is None else repr(scheme),
        "code": code,
    }


def header_bytes(
    kind: str,
    worlds: Mapping[str, Any],
    columns: Mapping[str, Any],
    recorded: list[int],
    about: Mapping[str, Any],
) -> bytes:
    """Return the header of a recording."""
    content = {
        "format": FORMAT,
        "kind": kind,
        "worlds": recorded,
        "columns": columns,
        "simulation": worlds,
        "versions": installed_versions(),
        **about,
    }
    return json.dumps(content, ensure_ascii=False).encode()


def read_header(data: bytes, path: str) -> dict[str, Any]:
    """Return the header of a file; raise if an entry that readers need is missing.

    Its texts are printable.
    """
    try:
        content: Any = printable_values(json.loads(data))
        if content["format"] != FORMAT:
            raise RecordingError(
                f"{path!r} has the format {content['format']!r}; this version reads "
                f"{FORMAT!r}.",
                name=path,
            )
        count = content["simulation"]["num_envs"]
        worlds = cast("list[Any]", content["worlds"])
        if not _is_int(count) or count < 1 or content["kind"] not in ("sim", "env"):
            raise ValueError(f"{count!r} worlds of {content['kind']!r}")
        dict(content["versions"])
        sound = all(_is_int(world) and 0 <= world < count for world in worlds)
        if not sound or len(set(worlds)) < len(worlds):
            raise ValueError(f"of {count} worlds, {str(worlds)[:60]} were recorded")
        for contract in content["columns"].values():
            shape = cast("list[Any]", contract["shape"])
            sound &= contract["dtype"] in DTYPES and all(
                isinstance(n, int) and n >= 0 for n in shape
            )
            sound &= math.prod(shape) >= 0
            texts = [contract["unit"], *contract["names"]]
            texts += [contract.get(key, "") for key in ("axes", "point", "source")]
            sound &= all(isinstance(text, str) for text in texts)
        if not sound or not {TIME, STEP} <= set(content["columns"]):
            raise ValueError("a column's contract")
    except WRONG as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(
            f"{path!r} has no header of simstate: {error!r}.", name=path
        ) from None
    return content


def model_bytes(model: mujoco.MjModel) -> bytes:
    """Return the compiled model in MuJoCo's binary format."""
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def model_from(data: bytes, versions: Mapping[str, str]) -> mujoco.MjModel:
    """Return the model of `model_bytes`, read by MuJoCo's binary loader.

    `versions` are those that the model was saved with.
    """
    try:
        model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": data})
        bytes(model.names).decode()
        return model
    except (ValueError, mujoco.FatalError) as error:
        core = versions.get("mujoco-core")
        saved = core or versions.get("mujoco", "an unknown version")
        here = mujoco.__version__
        remedy = "" if saved == here else f" Open it with MuJoCo {saved}."
        raise RecordingError(
            f"Its model, compiled by MuJoCo {saved}, cannot be loaded by {here}: "
            f"{error}.{remedy}",
            name="model",
        ) from error


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _name(thing: object) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__))
