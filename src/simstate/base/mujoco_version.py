"""Whether this MuJoCo will do: importing this module refuses one that will not."""

from __future__ import annotations

import mujoco

from simstate.base.errors import SimStateError

OLDEST = 3017000
"""The first with `mujoco.batch`, as `mj_version` says it: 3.17.0."""
WRONG = {4000000: "its sparse Cholesky factorisation is wrong"}
"""What must not be used, and why."""


def check_mujoco(version: int, name: str) -> None:
    """Raise if simstate cannot run on this version, or should not."""
    if version < OLDEST:
        reason = "it has no mujoco.batch"
    elif version in WRONG:
        reason = WRONG[version]
    else:
        return
    raise SimStateError(
        f"MuJoCo {name} cannot be used: {reason}. Install the tested one, pip install "
        "mujoco==3.17.0, or the core of 4.0.1: pip uninstall mujoco, then pip install "
        "mujoco-core==4.0.1."
    )


check_mujoco(mujoco.mj_version(), mujoco.__version__)
