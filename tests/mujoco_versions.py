"""What MuJoCo 4 does otherwise than 3.17, for which the tests were written."""

from __future__ import annotations

import mujoco
import pytest

IS_4 = mujoco.mj_version() >= 4000000
its_rk4_is_ours = pytest.mark.skipif(
    IS_4, reason="MuJoCo 4's RK4 advances attitudes by another scheme, of order 4"
)
"""For tests that compare RK4(attitude="manifold") with mj_step."""
