"""The page of robots, from docs/robots.json, which `make robots` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markdown_tables import note, table

ROBOTS = Path(__file__).parent / "robots.json"

ROBOTS_TEXT = """# Robots: what works

<!-- Written by docs/generate.py from robots.json, which `make robots` measures. -->

Each robot below is a model of a public wheel. It was loaded into a scene and compared
with the same file compiled by MuJoCo alone: every array of the model, and the state
after {steps} steps with random controls. *Identical* means that no bit differs. Then
[every law](verification.md) was checked on it in random states: quantities against
MuJoCo's C functions, velocities against finite differences, writers against reads. The
last column is the largest error as a share of the tolerance. Robots without actuators
in their file get them with `EntityCfg(actuators=…)` ([Actuators](actuators.md)).

Measured on {date} with simstate {simstate} and MuJoCo {mujoco}. To try your own model:

```bash
simstate check my_robot.xml
simstate inspect my_robot.xml
```

"""
"""First part of the page of robots."""


def robots_page() -> str:
    """The page of robots, from what `make robots` measured."""
    kept = json.loads(ROBOTS.read_text())
    parts = [ROBOTS_TEXT.format(**kept["versions"], **kept)]
    for group, robots in kept["robots"].items():
        rows = [_robot_row(name, found) for name, found in robots.items()]
        headers = ("robot", "dofs", "actuators", "against MuJoCo")
        headers += ("laws", "largest error")
        parts.append(f"## {group}\n\n{table(headers, rows)}\n")
    return "".join([*parts, _wheels(kept["wheels"])])


def _robot_row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    name += note(f"`{found['wheel']}`")
    sizes = (str(found.get("nv", "–")), str(found.get("nu", "–")))
    if found["kind"] != "identical":
        text = f"{found['kind']}: {found['text']}".replace("|", "/")
        return (name, *sizes, text, "–", "–")
    failed = found["failures"]
    laws = f"{found['laws'] - len(failed)} of {found['laws']} hold"
    laws += f" (not: {', '.join(failed)})" if failed else ""
    return (name, *sizes, "identical", laws, f"{found['share']:.1%}")


def _wheels(wheels: dict[str, Any]) -> str:
    """Counts over all files of the wheels, and the files that were rejected."""
    rows = [
        (
            f"`{name}` {found['version']}",
            *(str(found["counts"].get(kind, 0)) for kind in _KINDS),
        )
        for name, found in wheels.items()
    ]
    text = (
        "## All files of these wheels\n\nEvery XML and URDF file of each wheel. Files "
        "that MuJoCo does not compile by itself (parts of models, schemas) are *not a "
        "model*. A rejected file raises an error that names the reason.\n\n"
        + table(("wheel", *(kind.lower() for kind in _KINDS)), rows)
    )
    reasons = [
        (f"`{path.rpartition('/')[2]}`{note(name)}", reason.replace("|", "/"))
        for name, found in wheels.items()
        for path, reason in found["reasons"].items()
    ]
    return text + ("\n" + table(("file", "reason"), reasons) if reasons else "")


_KINDS = ("identical", "rejected", "DIFFERS", "CRASHED", "not a model")
