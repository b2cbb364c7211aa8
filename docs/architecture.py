"""Draw the figures of architecture.md: the tree, and the calls of a step.

make docs        # or, with matplotlib, python docs/architecture.py

The first comes from CONTRIBUTING's table and the imports of the files, the second from
a traced step.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import matplotlib
import torch
from figures import COLOURS, STYLE, save
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import simstate
from simstate.env import Env, tasks

SOURCE = Path(simstate.__file__).parent
ROOT = SOURCE.parents[1]
DEPTHS = {"Env._advance": 6}
"""Depth to which calls below a function are shown; elsewhere 3 below the root."""
HIDDEN = (
    "_recover", "_select", "array", "cast", "check", "check_finite", "copy", "dim",
    "due", "empty", "forget", "ids", "is_evaluating", "is_stepping", "naming",
    "ordered_sum", "settle", "tensor", "terminated", "truncated", "unsettle",
    "worlds_of",
)  # fmt: skip
"""Small functions that would hide the path."""


def rows() -> list[tuple[list[str], str]]:
    """The lines of CONTRIBUTING's table: names of parts, and what they hold."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (table,) = re.findall(r"\| in `src/simstate` \|[^\n]*\n(.*?)\n\n", text, re.DOTALL)
    cells = [line.split("|")[1:3] for line in table.splitlines()[1:]]
    return [(re.findall(r"`([^`]+)`", names), holds.strip()) for names, holds in cells]


def importers() -> dict[str, set[str]]:
    """Of each part of the tree, the parts that import it."""
    found: dict[str, set[str]] = {}
    for file in SOURCE.rglob("*.py"):
        part = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = node.module.split(".")
                if names[0] == "simstate" and len(names) > 1 and names[1] != part:
                    found.setdefault(names[1], set()).add(part)
    return found


def draw_tree() -> Figure:
    """Draw the parts from the base to the top, with the number of their importers."""
    table, used = rows(), importers()
    cells = [
        (
            textwrap.wrap(" ".join(names), 36),
            textwrap.wrap(holds.replace("`", ""), 90),
            max(len(used.get(_part(name), ())) for name in names),
        )
        for names, holds in table
    ]
    height = sum(_lines(*texts) for *texts, _ in cells)
    figure, axes = plt.subplots(figsize=(11, 0.18 * height + 0.6))
    axes.axis("off")
    most = max(map(len, used.values()))
    top = 0.0
    for names, holds, count in cells:
        y = top - _lines(names, holds) / 2
        top -= _lines(names, holds)
        axes.barh(y, count / most * 1.4, left=-1.6, height=1.2, color=COLOURS[0],
                  alpha=0.35)  # fmt: skip
        axes.text(-1.55, y, f"{count}", va="center", fontsize=8)
        axes.text(0, y, "\n".join(names), va="center", family="monospace",
                  fontsize=8)  # fmt: skip
        axes.text(3.9, y, "\n".join(holds), va="center", fontsize=8)
    axes.text(-1.6, 1, "imported by", fontsize=8, style="italic")
    axes.text(0, 1, "in src/simstate, each may import those above it", fontsize=8,
              style="italic")  # fmt: skip
    axes.set_xlim(-1.7, 11)
    axes.set_ylim(-height, 1.6)
    return figure


def _lines(names: list[str], holds: list[str]) -> float:
    """Return the height of a part in the figure, in lines, with the space below it."""
    return max(len(names), len(holds)) + 0.7


def _part(name: str) -> str:
    return name.removesuffix("/").removesuffix(".py")


@dataclass
class Call:
    """A function of simstate that ran, and those that it called."""

    name: str
    file: str
    calls: list[Call] = field(default_factory=list)


def traced_step() -> Call:
    """Return the calls of one `Env.step` in which a world is reset."""
    env = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=4, seed=1)
    action = torch.zeros(4, env.action_dim)
    env.step(action)  # later steps have the memory that this one allocates
    env.episode_length_buf[2] = env.max_episode_length - 1
    root = Call("you", "")
    stack: list[Call | None] = [root]

    def follow(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            above = next(call for call in reversed(stack) if call is not None)
            if not path.is_relative_to(SOURCE):
                stack.append(None)
                return
            call = Call(frame.f_code.co_qualname, str(path.relative_to(SOURCE)))
            above.calls.append(call)
            stack.append(call)
        elif event == "return" and len(stack) > 1:
            stack.pop()

    sys.setprofile(follow)
    try:
        env.step(action)
    finally:
        sys.setprofile(None)
    return root.calls[0]


def way(call: Call, depth: int = 0, left: int = 3) -> list[tuple[int, str, str, int]]:
    """Return the calls as lines: depth, name, file, number of calls in a row."""
    lines = [(depth, call.name, call.file, 1)]
    left = max(left, DEPTHS.get(call.name, 0))
    if not left and not any(inner.name in DEPTHS for inner in call.calls):
        return lines
    for inner in call.calls:
        if _is_detail(inner):
            continue
        if not left and inner.name not in DEPTHS:
            continue
        found = way(inner, depth + 1, max(left - 1, 0))
        last = lines[-1]
        if len(found) == 1 and found[0][:3] == last[:3]:
            lines[-1] = (*last[:3], last[3] + 1)
        else:
            lines += found
    return lines


def _is_detail(call: Call) -> bool:
    """Return True for checks, properties and small functions."""
    name = call.name.split(".")[-1]
    is_basic = call.file.startswith("base/") or call.file == "world/declared.py"
    return name in HIDDEN or is_basic or name.startswith(("<", "__"))


def draw_step() -> Figure:
    """Draw the calls of a step, from the first to the last."""
    lines = way(traced_step())
    figure, axes = plt.subplots(figsize=(11, 0.2 * len(lines) + 0.4))
    axes.axis("off")
    for k, (depth, name, file, count) in enumerate(lines):
        colour = COLOURS[depth % len(COLOURS)]
        axes.plot([depth * 0.45 - 0.15] * 2, [-k - 0.35, -k + 0.35], color=colour, lw=2)
        times = f"  × {count}" if count > 1 else ""
        axes.text(depth * 0.45, -k, name + times, va="center", fontsize=8,
                  family="monospace")  # fmt: skip
        axes.text(7.2, -k, file, va="center", fontsize=8, family="monospace",
                  alpha=0.7)  # fmt: skip
    axes.set_xlim(-0.3, 11)
    axes.set_ylim(-len(lines), 0.8)
    return figure


def main() -> None:
    """Draw both figures."""
    with matplotlib.rc_context(STYLE):
        save(draw_tree(), "tree")
        save(draw_step(), "step")


if __name__ == "__main__":
    main()
