"""Silent initialisation of Warp, and its errors. Importing this loads Warp."""

# Warp comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import sys

import mujoco
import torch
import warp as wp

from simstate.base.errors import ModelError
from simstate.base.mujoco_version import check_warp

check_warp(mujoco.mj_version())  # before mujoco_warp, which imports this MuJoCo
wp.config.log_level = wp.LOG_WARNING  # before it is initialised: no banner

_OPTIONS = {
    "mjSOL_": "'solver': 'Newton'",
    "mjINT_": "'integrator': 'implicitfast'",
    "mjCONE_": "'cone': 'pyramidal'",
    "mjDSBL_": "'disableflags': …",
    "mjENBL_": "'enableflags': …",
    "Dense ": "'jacobian': 'sparse'",
    "noslip ": "'noslip_iterations': 0",
}
"""Prefixes of its messages about physics options, and entries of SceneCfg.options."""


def initialise(device: torch.device) -> None:
    """Initialise Warp; on the CPU, hide its message about a missing CUDA driver.

    Warp's C code writes it to standard error at any log level.
    """
    if device.type != "cpu":
        wp.init()
        return
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            wp.init()
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def refusal(error: Exception) -> ModelError:
    """Return the error for a model that MuJoCo Warp rejects, with the remedy."""
    text = str(error).rstrip(".")
    remedy = "use engine='native', which supports all models"
    for start, option in _OPTIONS.items():
        if text.startswith(start):
            remedy = (
                f"override it in the scene, SceneCfg(options={{{option}}}), or use "
                "engine='native'"
            )
    return ModelError(
        f"MuJoCo Warp does not support this model: {text}. Remedy: {remedy}.",
        name="warp",
    )
