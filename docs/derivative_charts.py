"""Draws the figure of the page on derivatives from the page's own code.

make docs        # or, with matplotlib, python docs/derivative_charts.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import mujoco
import numpy as np
import torch
from figures import COLOURS, STYLE, save
from flight_charts import page
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from simstate import Simulation, study


def differentiate() -> Figure:
    """A swing-up before and after, and a derivative across a contact."""
    names: dict[str, Any] = page("differentiate", 4)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.0))
    rollout, time = names["rollout"], names["time"].numpy() + 0.03
    runs = {"first guess": names["first"], "optimised": names["plan"].detach()}
    for (label, plan), colour in zip(runs.items(), COLOURS[1:], strict=True):
        states = rollout(rollout.state, torch.tanh(plan)).detach()
        left.plot(time, states[0, :, 1], color=colour, label=f"pole, {label}")
        force = torch.tanh(plan)[0, :, 0]
        left.step(time, force, color=colour, linewidth=0.8, alpha=0.6)
    left.axhline(0, color="#888888", linewidth=0.8)
    left.set_xlabel("time [s]")
    left.set_ylabel("angle [rad]; control (thin)")
    left.legend(frameon=False)
    count = 81
    balls = Simulation(mujoco.MjModel.from_xml_string(names["ball"]), num_envs=count)
    heights = torch.linspace(-4e-5, 4e-5, count, dtype=torch.float64)
    balls.data.qpos[:, 0] = 0.1 + heights
    found = study.derivatives(balls, by="state", step=4e-6)
    slope = found.A[:, 1, 0]
    micro = 1e6 * heights.numpy()
    right.plot(micro, slope, "-", color=COLOURS[2], linewidth=1.4)
    flagged = found.switched[:, 0].numpy()
    low, high = float(slope.min()), float(slope.max())
    right.fill_between(
        micro,
        low,
        high,
        where=np.asarray(flagged),
        color="#bbbbbb",
        alpha=0.6,
        step="mid",
    )
    right.set_xlabel("height above contact [µm]")
    right.set_ylabel("∂ velocity / ∂ height [1/s]")
    for axes in (left, right):
        axes.grid(visible=True, alpha=0.3)
    return figure


if __name__ == "__main__":
    matplotlib.use("svg")
    Path("docs/figures").mkdir(exist_ok=True)
    with plt.rc_context(STYLE):
        save(differentiate(), "differentiate")
