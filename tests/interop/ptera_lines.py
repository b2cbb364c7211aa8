"""The left column of docs/from-ptera.md on Ptera's own class, the right one on ours.

Run by `make test-ptera`, in an environment that has Ptera Software 5.1. Exit code 1
unless they agree.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from line_by_line import columns, run

LIMITS = {"place": 1e-9, "speed": 1e-9, "spin": 1e-7, "turn": 1e-9, "now": 1e-12}
"""m, m/s, deg/s, 1, s."""


def main() -> int:
    good = True
    for heading, sides in columns("from-ptera").items():
        theirs, ours = (run(code, heading) for code in sides)
        for name, limit in LIMITS.items():
            off = np.abs(np.asarray(ours[name]) - np.asarray(theirs[name])).max()
            good &= bool(off <= limit)
            print(f"{heading}: {name} differs by {off:.2e} (allowed {limit:.0e})")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
