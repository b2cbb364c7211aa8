"""The left columns of docs/from-basilisk.md, run in Basilisk.

Runs in the peers' environment and prints JSON: numbers by table and name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from line_by_line import columns, run

WANTED = ("place", "sigma", "quat", "rate", "times")


def found() -> dict:
    """The numbers that each table ends with."""
    said = {}
    for heading, (left, _) in columns("from-basilisk").items():
        names = run(left, heading)
        said[heading] = {
            name: np.asarray(names[name], dtype=float).reshape(-1).tolist()
            for name in WANTED
            if name in names
        }
    return said


if __name__ == "__main__":
    print(json.dumps(found()))
