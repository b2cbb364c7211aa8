"""The renderers that work on this machine."""

from __future__ import annotations

import pytest

from simstate.view import opengl


@pytest.fixture(params=["software", "opengl"])
def renderer(request: pytest.FixtureRequest) -> str:
    """The name of a renderer; OpenGL's is skipped where no library works."""
    if request.param == "opengl" and opengl.context() is None:
        pytest.skip(f"no OpenGL library works here ({opengl.REMEDY})")
    return str(request.param)
