"""Workers of the stand-in are in this process, whose threads they change."""

from __future__ import annotations

import pytest
from tests.data.ray.ray_here import same_threads


@pytest.fixture(autouse=True)
def threads():
    with same_threads():
        yield
