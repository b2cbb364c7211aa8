"""How long the tests run that get better with time: SIMSTATE_SOAK times their usual."""

from __future__ import annotations

import os

SOAK = int(os.environ.get("SIMSTATE_SOAK", "1"))
