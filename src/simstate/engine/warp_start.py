"""Starting Warp quietly. Importing this module loads Warp."""

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
    """Start Warp; that there is no CUDA driver is no news to a user of the CPU.

    Warp's C code writes that to standard error whatever the log level is.
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
