"""Check, on import, that simstate can run on the installed MuJoCo."""

from __future__ import annotations

import mujoco

from simstate.base.mujoco_version import check_installation

check_installation(mujoco.mj_version(), mujoco.__version__)
