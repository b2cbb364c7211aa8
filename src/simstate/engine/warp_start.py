"""Silent initialisation of Warp. Importing this module loads Warp."""

# Warp comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import sys

import mujoco
import torch
import warp as wp

from simstate.base.mujoco_version import check_warp

check_warp(mujoco.mj_version())  # before mujoco_warp, which imports this MuJoCo
wp.config.log_level = wp.LOG_WARNING  # before it is initialised: no banner


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
