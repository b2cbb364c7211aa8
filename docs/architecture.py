"""Draw the figure of architecture.md: the packages, and the path of a step.

make docs        # or, with matplotlib, python docs/architecture.py

A traced step must contain the calls that the figure shows, in their order.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import matplotlib
import torch
from figures import COLOURS, STYLE, save
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import simstate
from simstate.env import Env, tasks

SOURCE = Path(simstate.__file__).parent
BOXES = {
    "cli, train, data": (1.75, 4.0, "commands, learning, data sets"),
    "study, simulators, interop": (1.75, 5.0, "analyses, other libraries"),
    "flight, space": (1.75, 3.0, "aircraft, orbits, spacecraft"),
    "env": (0, 5.0, "tasks: terms and their plan"),
    "simulation": (0, 4.0, "Simulation, the public class"),
    "step": (0, 3.0, "what advances worlds"),
    "world": (0, 2.0, "slots, atomic calls, freshness"),
    "entity": (0, 1.0, "quantities and writers"),
    "engine": (0, 0.0, "MuJoCo in many worlds, in C"),
    "record, view": (1.75, 2.0, "recordings, pictures, viewer"),
    "sensors, state": (1.75, 1.0, "contacts, rays, snapshots"),
    "scene": (1.75, 0.0, "files → one compiled model"),
}
"""Packages of a box, its place, and what it holds. Below them are base and math."""

PATH = (
    ("env", "world", "Ledger.run", "the whole step is one atomic call"),
    ("world", "env", "Env._step", "its body"),
    ("env", "entity", "Targets.write", "actions become targets of joints"),
    ("env", "simulation", "Simulation.step", "n time steps"),
    ("simulation", "world", "Ledger.run", "a call within the first"),
    ("world", "simulation", "Simulation._step", "its body"),
    ("simulation", "step", "MujocoStepper.advance", "the stepper's turn"),
    ("step", "engine", "NativeEngine.step", "C, threads: mj_step"),
    ("step", "world", "Freshness.mark_current", "positions are current"),
    ("env", "world", "DeclaredArray.__get__", "terms read quantities"),
    ("env", "simulation", "Simulation.reset", "ended worlds start again"),
)
"""Calls of a step that go from one box to another, in order, and their purpose."""


def box_of(file: str) -> str | None:
    """Return the box that a file belongs to; None for base and math."""
    part = file.split("/")[0].removesuffix(".py")
    return next((name for name in BOXES if part in name.split(", ")), None)


def crossings(call: Call, above: str | None = None) -> list[tuple[str, str, str]]:
    """Return the calls that enter another box: from, to, function; in their order."""
    here = box_of(call.file) or above
    found = [(above, here, call.name)] if above and here and here != above else []
    for inner in call.calls:
        found += crossings(inner, here)
    return found


def check_path(call: Call) -> None:
    """Raise unless the calls of PATH occur in a traced step, in their order."""
    found = iter(crossings(call))
    for *wanted, _ in PATH:
        if tuple(wanted) not in found:
            raise SystemExit(f"A step does not call {wanted} at this point any more.")


def draw_boxes() -> Figure:
    """Draw the packages as boxes, and the path of one `Env.step` between them."""
    figure, axes = plt.subplots(figsize=(8, 5.6))
    axes.axis("off")
    on_path = {name for start, end, *_ in PATH for name in (start, end)}
    for name, (x, y, holds) in BOXES.items():
        colour, width = (COLOURS[0], 2.0) if name in on_path else ("gray", 1.0)
        axes.add_patch(FancyBboxPatch((x, y), WIDE, HIGH, boxstyle="round,pad=0.03",
                       fc="none", ec=colour, lw=width))  # fmt: skip
        axes.text(x + WIDE / 2, y + 0.4, name, ha="center", va="center", fontsize=10)
        axes.text(x + WIDE / 2, y + 0.14, holds, ha="center", va="center", fontsize=8)
    for number, (_, _, name, purpose) in enumerate(PATH, 1):
        axes.text(3.55, 5.75 - 0.53 * number, f"{number}", fontsize=9,
                  color=COLOURS[1], ha="right", weight="bold")  # fmt: skip
        axes.text(3.62, 5.75 - 0.53 * number, name, fontsize=8.5, family="monospace")
        axes.text(3.62, 5.57 - 0.53 * number, purpose, fontsize=8)
    axes.text(3.4, 5.62, "One Env.step", fontsize=11)
    _draw_arrows(axes)
    axes.text(
        -0.6, -0.4, "Below all: base (errors, checks, contracts) and math.", fontsize=8
    )
    axes.set_xlim(-1.2, 5.45)
    axes.set_ylim(-0.5, 5.85)
    return figure


WIDE, HIGH = 1.5, 0.56


def _draw_arrows(axes: Axes) -> None:
    """Draw a line for each pair of boxes on the path, with the numbers of its calls."""
    calls: dict[frozenset[str], list[int]] = {}
    for number, (start, end, *_) in enumerate(PATH, 1):
        calls.setdefault(frozenset((start, end)), []).append(number)
    lane = 0
    for numbers in calls.values():
        start, end, *_ = PATH[numbers[0] - 1]
        (_, first, _), (_, last, _) = BOXES[start], BOXES[end]
        back = any(PATH[number - 1][0] == end for number in numbers)
        text = ", ".join(map(str, numbers))
        if abs(first - last) == 1:
            x = [WIDE / 2] * 2
            y = [first, last + HIGH]
            label = (x[0] + 0.06, sum(y) / 2, "left")
        else:
            lane += 1
            level = (
                first + HIGH * (1.05 - 0.2 * lane),
                last + HIGH * (1.05 - 0.2 * lane),
            )
            x = [-0.04, -0.4 - 0.14 * lane, -0.4 - 0.14 * lane, -0.04]
            y = [level[0], level[0], level[1], level[1]]
            label = (-0.13, y[-1] + 0.1, "right")
        style = {"arrowstyle": "-|>", "color": COLOURS[1], "shrinkA": 0, "shrinkB": 0}
        axes.plot(x, y, color=COLOURS[1], lw=1.2)
        axes.annotate("", (x[-1], y[-1]), (x[-2], y[-2]), arrowprops=style)
        if back:
            axes.annotate("", (x[0], y[0]), (x[1], y[1]), arrowprops=style)
        axes.text(*label[:2], text, fontsize=9, color=COLOURS[1], weight="bold",
                  va="center", ha=label[2])  # fmt: skip


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


def main() -> None:
    """Draw the figure; fail if a step takes another path."""
    check_path(traced_step())
    with matplotlib.rc_context(STYLE):
        save(draw_boxes(), "architecture")


if __name__ == "__main__":
    main()
