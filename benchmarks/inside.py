"""Access to simstate's internals, by the functions that the tests use."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.inside import batch_of, engine_of, fresh_of

__all__ = ["batch_of", "engine_of", "fresh_of"]
