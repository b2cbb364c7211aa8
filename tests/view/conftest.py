"""The renderers and the browser that work on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.view.chromium import MISSING, Chromium, find_chromium

from simstate.view import opengl

HAS_WEBGL = "!!document.createElement('canvas').getContext('webgl2')"


@pytest.fixture(params=["software", "opengl"])
def renderer(request: pytest.FixtureRequest) -> str:
    """The name of a renderer; OpenGL's is skipped where no library works."""
    if request.param == "opengl" and opengl.context() is None:
        pytest.skip(f"no OpenGL library works here ({opengl.REMEDY})")
    return str(request.param)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """A headless Chromium; skipped where there is none, or no WebGL."""
    if find_chromium() is None:
        pytest.skip(MISSING)
    try:
        browser = Chromium()
    except (OSError, TimeoutError) as error:
        pytest.skip(f"Chromium does not start here: {error}")
    try:
        if not browser.evaluate(HAS_WEBGL):
            pytest.skip("Chromium has no WebGL here, not even by software.")
        yield browser
    finally:
        browser.close()
