"""Draws the figures of the job pages and of performance.md, each from a run.

make docs        # or, with matplotlib and scipy, python docs/charts.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import generate
from figures import COLOURS, FOLDER, STYLE, save

import integrators  # benchmarks/integrators.py: the tumbling body and its truth
from simstate import Simulation, integrate

SCHEMES = {
    "RK4, manifold (MuJoCo's)": integrate.RK4(attitude="manifold"),
    "RK4, high order": integrate.RK4(attitude="high_order"),
    "RK4, lie": integrate.RK4(attitude="lie"),
    "DP54, lie": integrate.Explicit(integrate.DP54().tableau, "lie"),
}
STEPS = (0.2, 0.1, 0.05, 0.025, 0.0125)
SECONDS = 10.0


def tumbling(scheme: integrate.Explicit, timestep: float) -> Simulation:
    """The free body, inertia diag(1, 2, 3), spinning about its middle axis."""
    model = integrators.free_body()
    model.opt.timestep = timestep
    sim = Simulation(model, integrator=scheme)
    sim.data.qvel[0, 3:] = torch.tensor(integrators.SPIN)
    return sim


def convergence() -> Figure:
    """Attitude error after 10 s against the step, with the slopes."""
    truth = integrators.tumbling_attitude(SECONDS)
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    colours = (*COLOURS, "#7a4b9b")
    for (name, scheme), colour in zip(SCHEMES.items(), colours, strict=True):
        errors = []
        for timestep in STEPS:
            sim = tumbling(scheme, timestep)
            sim.step(round(SECONDS / timestep))
            got = sim.data.qpos[0, 3:].numpy()
            errors.append(integrators.angle(got, truth))
        slope = np.polyfit(np.log(STEPS[2:]), np.log(errors[2:]), 1)[0]
        label = f"{name}: slope {slope:.1f}"
        axes.loglog(STEPS, errors, "o-", color=colour, label=label, markersize=4)
    axes.set_xticks(STEPS, [f"{step:g}" for step in STEPS])
    axes.minorticks_off()
    axes.set_xlabel("time step [s]")
    axes.set_ylabel("attitude error after 10 s [rad]")
    axes.set_title("Torque-free body, body to world, against DOP853 at 1e-13")
    axes.legend(frameon=False)
    axes.grid(visible=True, alpha=0.3)
    return figure


def energy_drift() -> Figure:
    """Relative change of energy and angular momentum over a minute."""
    figure, grid = plt.subplots(1, 2, figsize=(8.4, 3.2), sharex=True)
    for name, colour in zip(("RK4, manifold (MuJoCo's)", "RK4, lie", "DP54, lie"),
                            COLOURS, strict=True):  # fmt: skip
        found = integrate.report(tumbling(SCHEMES[name], 0.1), 60.0)
        energy = np.abs(found.energy / found.energy[0] - 1)
        momentum = found.angular_momentum
        change = np.linalg.norm(momentum - momentum[0], axis=1)
        change /= np.linalg.norm(momentum[0])
        for axes, values in zip(grid, (energy, change), strict=True):
            axes.semilogy(found.time[1:], values[1:], color=colour, label=name)
    grid[0].set_ylabel("|ΔE / E| [1]")
    grid[0].set_title("kinetic energy")
    grid[1].set_ylabel("|ΔL| / |L| [1]")
    grid[1].set_title("angular momentum, world axes")
    for axes in grid:
        axes.set_xlabel("time [s]")
        axes.grid(visible=True, alpha=0.3)
    grid[1].legend(frameon=False)
    return figure


def trajectory() -> Figure:
    """The glider of docs/free-flight.md, as its page flies it."""
    source = (Path(__file__).parent / "free-flight.md").read_text()
    first = source.split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(compile(first, "free-flight.md", "exec"), names)
    path = names["path"]
    place = path.position_E_Eo[:, 0].numpy()
    speed = path.velocity_E__E[:, 0].norm(dim=-1).numpy()
    time = path.time[:, 0].numpy()
    figure, grid = plt.subplots(1, 2, figsize=(8.4, 3.0))
    _line(grid[0], place[:, 0], -place[:, 2], "north, Earth axes [m]",
          "height, −down [m]", COLOURS[2])  # fmt: skip
    _line(grid[1], time, speed, "time [s]", "speed, seen from Earth [m/s]", COLOURS[0])
    return figure


def throughput() -> Figure:
    """World-steps per second over the number of worlds, of the last benchmark."""
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    for model, colour in zip(("quadruped", "humanoid"), COLOURS[::2], strict=True):
        found = generate.throughput(model)
        rates = [rate / 1e3 for rate in found.values()]
        axes.semilogx(list(found), rates, "o-", color=colour, label=model, base=2)
        for count, rate in zip(found, rates, strict=True):
            axes.annotate(f"{rate:.1f}", (count, rate), xytext=(0, 6), color=colour,
                          textcoords="offset points", ha="center")  # fmt: skip
        axes.set_xticks(list(found), [str(count) for count in found])
    axes.set_xlabel("worlds")
    axes.set_ylabel("thousand world-steps per second")
    axes.set_ylim(bottom=0)
    axes.set_title("native, sim.step(4)")
    axes.legend(frameon=False)
    axes.grid(visible=True, alpha=0.3)
    return figure


def _line(
    axes: Axes, x: np.ndarray, y: np.ndarray, across: str, up: str, colour: str
) -> None:
    axes.plot(x, y, color=colour, linewidth=1.6)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(visible=True, alpha=0.3)


CHARTS = (convergence, energy_drift, trajectory, throughput)


def main() -> None:
    """Draw all of them."""
    matplotlib.use("svg")
    FOLDER.mkdir(exist_ok=True)
    with plt.rc_context(STYLE):
        for chart in CHARTS:
            save(chart(), chart.__name__)


if __name__ == "__main__":
    main()
