"""What MuJoCo 4 does otherwise than 3.17, for which the tests were written."""

from __future__ import annotations

from importlib.metadata import version

import mujoco
import pytest

IS_4 = mujoco.mj_version() >= 4000000
its_rk4_is_ours = pytest.mark.skipif(
    IS_4, reason="MuJoCo 4's RK4 advances attitudes by another scheme, of order 4"
)
"""For tests that compare RK4(attitude="manifold") with mj_step."""


def require_dm_control() -> None:
    """Skip a file of tests unless dm_control is installed and reads MuJoCo's models."""
    physics = pytest.importorskip("dm_control.mujoco").Physics
    try:
        physics.from_xml_string("<mujoco/>")
    except AttributeError as error:
        pytest.skip(
            f"dm_control {version('dm_control')} does not support MuJoCo "
            f"{mujoco.__version__}: {error}",
            allow_module_level=True,
        )
