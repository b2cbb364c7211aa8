"""Engines: raw fields and steps behind one interface."""

from __future__ import annotations

import mujoco
import torch

# First: it rejects versions of MuJoCo with which the imports below would fail.
from simstate.base import checked_mujoco  # noqa: F401 # pyright: ignore
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine.engine import CONSTANT_INPUTS, MAX_VALUE, Engine
from simstate.engine.engine_cfg import EngineCfg, NativeCfg, WarpCfg
from simstate.engine.fields import (
    EVOLVING_FIELDS,
    FIELDS,
    KEPT_FIELDS,
    STATE_FIELDS,
    LastEvaluated,
    RawData,
    RawField,
)
from simstate.engine.memory_budget import (
    check_memory,
    collect_garbage,
    native_bytes,
    warp_bytes,
)
from simstate.engine.native import NativeEngine
from simstate.engine.on_demand import ContactRows, OnDemand, RayFilter, RayHits
from simstate.engine.stage import Seen, Stage
from simstate.engine.threads import OneTorchThread, lasting

__all__ = [
    "CONSTANT_INPUTS",
    "EVOLVING_FIELDS",
    "FIELDS",
    "KEPT_FIELDS",
    "MAX_VALUE",
    "STATE_FIELDS",
    "ContactRows",
    "Engine",
    "EngineCfg",
    "LastEvaluated",
    "NativeCfg",
    "OnDemand",
    "OneTorchThread",
    "RawData",
    "RawField",
    "RayFilter",
    "RayHits",
    "Seen",
    "Stage",
    "WarpCfg",
    "lasting",
    "make_engine",
]


def make_engine(
    model: mujoco.MjModel,
    num_envs: int,
    cfg: EngineCfg,
    device: torch.device,
    timestep: float | None = None,
) -> Engine:
    """Return an engine by name or configuration, with `num_envs` worlds of the model.

    Args:
        model: the compiled scene.
        num_envs: number of worlds.
        cfg: the engine and its options.
        device: the device of the tensors.
        timestep: the time step that evaluations of the dynamics use [s], for example
            in contacts; None: the model's, which steps of the engine need.
    """
    if cfg == "native":
        cfg = NativeCfg()
    if cfg == "warp":
        cfg = WarpCfg()
    if isinstance(cfg, NativeCfg):
        if device.type != "cpu":
            raise InvalidInputError(
                f"The native engine runs on the CPU, got device={str(device)!r}: use "
                "engine='warp' for a GPU."
            )
        collect_garbage(model, num_envs * native_bytes(model))
        check_memory(num_envs, native_bytes(model), device)
        return NativeEngine(model, num_envs, cfg, timestep)
    if isinstance(cfg, WarpCfg):  # pyright: ignore[reportUnnecessaryIsInstance]
        from simstate.engine.warp import WarpEngine  # loads Warp

        collect_garbage(model, num_envs * warp_bytes(model))
        check_memory(num_envs, warp_bytes(model), device)
        return WarpEngine(model, num_envs, device, cfg, timestep)
    raise unknown_name("engine", str(cfg), ("native", "warp"))
