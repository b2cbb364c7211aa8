"""Draws the figures of the pages on flight and space, each beside its truth.

make docs        # or, with matplotlib and scipy, python docs/flight_charts.py

The code is that of the pages; the truths are written here, apart from it.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from figures import COLOURS, FOLDER, STYLE, save
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from simstate import Simulation, space
from simstate.study.planners.spline import spline_weights


def page(name: str, count: int) -> dict[str, Any]:
    """What the first blocks of a page define."""
    source = (Path(__file__).parent / f"{name}.md").read_text()
    blocks = [part.split("```")[0] for part in source.split("```python\n")[1:]]
    names: dict[str, Any] = {"__name__": name}
    exec(compile("\n".join(blocks[:count]), f"{name}.md", "exec"), names)
    return names


def orbit_truth(
    position: np.ndarray, velocity: np.ndarray, area: float, times: np.ndarray
) -> np.ndarray:
    """J2 and drag in air that turns, by scipy's DOP853 at 1e-12."""
    earth = space.EARTH
    air = space.PlanetAir()

    def rate(t: float, y: np.ndarray) -> list[float]:
        r, v = y[:3], y[3:]
        n = math.sqrt(r @ r)
        s = r[2] / n
        k = 1.5 * earth.j2 * earth.mu * earth.radius**2 / n**5
        pull = -earth.mu * r / n**3 + k * r * (5 * s * s - 1)
        pull[2] -= 2 * k * r[2]
        seen = v - np.cross([0, 0, earth.rotation_rate], r)
        rho = float(air.density(torch.as_tensor(r)[None]))
        drag = 0.5 * rho * area / 120 * np.linalg.norm(seen) * seen
        return [*v, *(pull - drag)]

    span, start = (0, times[-1]), [*position, *velocity]
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-6, "t_eval": times}
    return solve_ivp(rate, span, start, **options).y[:3].T


def low_orbit() -> Figure:
    """The node over a day, and the distance to the truth."""
    names = page("low-orbit", 1)
    sim, frame, orbit = names["sim"], names["frame"], names["orbit"]
    craft = sim.scene["satellite"]
    com = frame.body_com_pos_w(craft)[0, 0].numpy().copy()
    speed = frame.body_com_lin_vel_w(craft)[0, 0].numpy().copy()
    steps = round(86400 / sim.timestep)
    times, nodes, places = [0.0], [float(orbit.node[0])], [com]
    for _ in range(steps):
        sim.step()
        times.append(float(sim.time[0]))
        found = space.elements_from_state(frame.position[:1], frame.velocity[:1])
        nodes.append(float(found.node[0]))
        places.append(frame.body_com_pos_w(craft)[0, 0].numpy().copy())
    hours = np.array(times) / 3600
    truth = orbit_truth(com, speed, float(names["area"][0]), np.array(times))
    apart = np.linalg.norm(np.array(places) - truth, axis=1)
    rate = float(space.j2_rates(orbit).node[0])
    figure, grid = plt.subplots(1, 2, figsize=(8.4, 3.0))
    unwrapped = np.degrees(np.unwrap(nodes))
    grid[0].plot(hours, unwrapped, color=COLOURS[2], label="simulated, osculating")
    grid[0].plot(
        hours, np.degrees(rate * np.array(times)), "--", color=COLOURS[0],
        label="closed form, secular",
    )  # fmt: skip
    grid[0].set_ylabel("longitude of the node [deg]")
    grid[0].legend(frameon=False)
    grid[1].semilogy(hours[1:], apart[1:].clip(1e-6), color=COLOURS[1])
    grid[1].set_ylabel("distance to scipy's DOP853 [m]")
    for axes in grid:
        axes.set_xlabel("time [h]")
        axes.grid(visible=True, alpha=0.3)
    return figure


def momentum(sim: Simulation) -> np.ndarray:
    """Total angular momentum about the COM, world axes, of each world; (n, 3)."""
    import mujoco

    data = mujoco.MjData(sim.model)
    found = []
    for qpos, qvel in zip(sim.data.qpos.numpy(), sim.data.qvel.numpy(), strict=True):
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_forward(sim.model, data)
        mujoco.mj_subtreeVel(sim.model, data)
        found.append(data.subtree_angmom[0].copy())
    return np.array(found)


def slew() -> Figure:
    """The angle to the target, and what should not change."""
    names = page("slew", 1)
    sim, robot = names["sim"], names["robot"]
    sim.data.qvel[:, 3:6] = 0.02  # something to conserve
    source = (Path(__file__).parent / "slew.md").read_text()
    second = source.split("```python\n")[2].split("```")[0].split("history = []")[0]
    exec(compile(second, "slew.md", "exec"), names)
    start = momentum(sim)
    angles, drift = [], []
    for _ in range(300):
        robot.write_ctrl_to_sim(names["control"]())
        sim.step(4)
        quat = robot.data.root_link_quat_w
        angles.append(names["quaternion"].angle_between(quat, names["target"]).numpy())
        drift.append(np.linalg.norm(momentum(sim) - start, axis=1).max())
    times = 0.2 * np.arange(1, 301)
    figure, grid = plt.subplots(1, 2, figsize=(8.4, 3.0))
    grid[0].semilogy(times, np.degrees(angles), color=COLOURS[2], linewidth=1.0)
    grid[0].set_ylabel("angle to the target [deg]")
    grid[1].semilogy(times, np.array(drift).clip(1e-16), color=COLOURS[0])
    grid[1].set_ylabel("change of momentum [kg·m²/s]")
    for axes in grid:
        axes.set_xlabel("time [s]")
        axes.grid(visible=True, alpha=0.3)
    return figure


def glider_theory(speed: float, density: float) -> np.ndarray:
    """Poles of the longitudinal motion by the textbook's matrix in stability axes."""
    mass, gravity, area, chord, induced = 1.5, 9.80665, 0.3, 0.19, 0.04
    path = 0.0
    for _ in range(50):
        lift = mass * gravity * math.cos(path) / (0.5 * density * speed**2 * area)
        drag = 0.025 + induced * lift**2
        path = -math.atan2(drag, lift)
    k = density * speed * area
    along = [-k * drag, 0.5 * k * (lift - 2 * induced * lift * 4.8),
             -0.25 * k * chord * 2 * induced * lift * 5.0]  # fmt: skip
    down = [-k * lift, -0.5 * k * (4.8 + drag), -0.25 * k * chord * 5.0]
    pitch = [0.0, 0.5 * k * chord * -0.7, 0.25 * k * chord**2 * -11.0]
    matrix = np.zeros((4, 4))
    matrix[0, :3], matrix[1, :3] = np.array(along) / mass, np.array(down) / mass
    matrix[2, :3] = np.array(pitch) / 0.1
    matrix[1, 2] += speed
    matrix[:2, 3] = -gravity * math.cos(path), -gravity * math.sin(path)
    matrix[3, 2] = 1.0
    return np.linalg.eigvals(matrix)


def glider_modes() -> Figure:
    """Poles by theory and by the model; the phugoid flown and by the model."""
    names = page("glider-modes", 3)
    glide, model = names["glide"], names["model"]
    density = float(glide.get_state().density[0])
    figure, grid = plt.subplots(1, 2, figsize=(8.4, 3.2))
    part = model.part(("u", "w", "q", "theta"))
    for k, speed in enumerate(names["speeds"].tolist()):
        own = np.linalg.eigvals(part.a[k].numpy())
        theory = glider_theory(speed, density)
        colour, label = COLOURS[k], f"{speed:.0f} m/s"
        grid[0].plot(
            own.real, own.imag, "o", color=colour, fillstyle="none", label=label
        )
        grid[0].plot(theory.real, theory.imag, "x", color=colour)
    grid[0].set_xlabel("real part [1/s]")
    grid[0].set_ylabel("imaginary part [rad/s]")
    grid[0].legend(frameon=False)
    before, saved = glide.get_state(), glide.save_state()
    push, body = 0.01, before.velocity_BP1__E[1].numpy()
    steady = glide.fly(1000, every=10)  # it sinks into denser air, and slows a little
    glide.restore_state(saved)
    glide.set_state(velocity_E__E=(1 + push) * before.velocity_E__E)
    pushed = glide.fly(1000, every=10)
    times = steady.time[:, 1].numpy()
    flown = (pushed.airspeed - steady.airspeed)[:, 1].numpy()
    start = np.zeros(12)
    start[:3] = push * body
    states = np.array([expm(model.a[1].numpy() * t) @ start for t in times])
    linear = states[:, :3] @ body / np.linalg.norm(body)
    grid[1].plot(times, flown, color=COLOURS[2], label="flown")
    grid[1].plot(times, linear, "--", color=COLOURS[0], label="linear model")
    grid[1].set_xlabel("time [s]")
    grid[1].set_ylabel("airspeed beyond steady flight [m/s]")
    grid[1].legend(frameon=False)
    for axes in grid:
        axes.grid(visible=True, alpha=0.3)
    return figure


def touch_down() -> Figure:
    """Height and mass of the rockets; apogee and ground in closed form."""
    names = page("touch-down", 2)
    history, gravity = names["history"], 9.80665
    figure, grid = plt.subplots(1, 2, figsize=(8.4, 3.0))
    for k, flow in enumerate(names["flow"].tolist()):
        times = history.time[:, k].numpy()
        height = history["height"][:, k].numpy()
        grid[0].plot(times, height / 1e3, color=COLOURS[k], label=f"{flow:g} kg/s")
        grid[1].plot(times, history["mass"][:, k].numpy(), color=COLOURS[k])
        time, speed, place = 0.0, 0.0, 0.0
        for thrust, full, empty in ((2000, 30, 18), (900, 12, 7)):
            burn, jet = (full - empty) / flow, thrust / flow
            ratio = math.log(full / empty)
            place += speed * burn - gravity / 2 * burn**2
            place += jet * (burn - empty / flow * ratio)
            speed += jet * ratio - gravity * burn
            time += burn
        top = place + speed**2 / (2 * gravity)
        apogee = time + speed / gravity
        ground = apogee + math.sqrt(2 * top / gravity)
        grid[0].plot([apogee, ground], [top / 1e3, 0], "x", color=COLOURS[k])
    grid[0].set_ylabel("height [km]")
    grid[0].legend(frameon=False)
    grid[1].set_ylabel("mass [kg]")
    grid[1].set_xlim(0, 12)
    for axes in grid:
        axes.set_xlabel("time [s]")
        axes.grid(visible=True, alpha=0.3)
    return figure


def launch() -> Figure:
    """Height, speed and mass of the rockets; scipy's end of each flight."""
    names = page("launch", 6)
    history, radius = names["history"], space.EARTH.radius
    figure, grid = plt.subplots(1, 3, figsize=(8.8, 3.0), layout="constrained")
    for k, pitch in enumerate(names["PITCH"].tolist()):
        times = history.time[:, k].numpy()
        height = history["position"][:, k].norm(dim=-1).numpy() - radius
        speed = history["velocity"][:, k].norm(dim=-1).numpy()
        label = f"{math.degrees(pitch):.2f}°/s"
        for axes, values in zip(
            grid, (height / 1e3, speed / 1e3, history["mass"][:, k] / 1e3), strict=True
        ):
            axes.plot(times, values, color=COLOURS[k], label=label)
        end = names["truth"](pitch)
        top = (np.linalg.norm(end) - radius) / 1e3
        grid[0].plot([sum(names["burn"])], [top], "x", color=COLOURS[k])
    grid[0].set_ylabel("height [km]")
    grid[1].set_ylabel("speed [km/s]")
    grid[2].set_ylabel("mass [t]")
    grid[0].legend(frameon=False)
    for axes in grid:
        axes.set_xlabel("time [s]")
        axes.grid(visible=True, alpha=0.3)
    return figure


def quadrotor() -> Figure:
    """Offsets over time; their distribution beside that of the closed form."""
    source = (Path(__file__).parent / "quadrotor-monte-carlo.md").read_text()
    text = source.split('```python title="quadrotor.py"\n')[1].split("```")[0]
    names: dict[str, Any] = {"__name__": "quadrotor"}
    exec(compile(text, "quadrotor.py", "exec"), names)
    outcome = names["study"]().run(64, seed=5)
    assert outcome.times is not None
    times, worst = outcome.times.numpy(), outcome.worst_world
    offsets = outcome.histories["offset"].numpy()
    figure, grid = plt.subplots(1, 2, figsize=(8.4, 3.0))
    grid[0].plot(times, offsets, color=COLOURS[2], linewidth=0.6, alpha=0.5)
    label = f"world {worst}, the worst"
    grid[0].plot(times, offsets[:, worst], color=COLOURS[0], label=label)
    grid[0].set_xlabel("time [s]")
    grid[0].set_ylabel("offset [m]")
    z = np.random.default_rng(1).standard_normal((1_000_000, 3))
    wind = np.hypot(2.0 + z[:, 0], z[:, 1])
    true = np.sort(0.25 * wind / (1.2 * (1 + 0.03 * z[:, 2]) * 4.0))
    found = np.sort(outcome.results["offset"].numpy())
    share = np.arange(1, len(found) + 1) / len(found)
    grid[1].step(found, share, where="post", color=COLOURS[2], label="64 worlds")
    every = np.linspace(0, 1, 500)
    grid[1].plot(np.quantile(true, every), every, "--", color=COLOURS[0],
                 label="closed form")  # fmt: skip
    grid[1].set_xlabel("offset at the end [m]")
    grid[1].set_ylabel("share of the worlds")
    grid[1].set_xlim(0, 0.35)
    for axes in grid:
        axes.legend(frameon=False)
        axes.grid(visible=True, alpha=0.3)
    return figure


def plan() -> Figure:
    """Futures of the first decision by their cost, and the run of plan.md."""
    names = page("plan", 1)
    sim, planner = names["sim"], names["planner"]
    history = names["history"]
    sim.restore(names["start"])
    noise = torch.randn(1, 48, 8, 1, generator=torch.Generator().manual_seed(0))
    weights = spline_weights(torch.arange(80) * (7 / 79), 8, "linear")
    controls = (0.6 * weights @ noise).clamp(-1, 1)
    found = names["study"].futures(
        sim, controls, read={"pole": "cart.joint_pos"}, cost=planner.cost
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.0))
    times = 0.01 * np.arange(1, 81)
    order = found.cost[0].argsort(descending=True)
    for place, k in enumerate(order.tolist()):
        shade = 0.15 + 0.85 * place / (len(order) - 1)
        angles = np.degrees(found.pole[0, k, :, 1].numpy())
        left.plot(times, angles, color=COLOURS[2], alpha=shade**3, linewidth=1.0)
    left.set_xlabel("time ahead [s]")
    left.set_ylabel("angle of the pole [deg]")
    left.set_title("48 futures")
    seen = history["pole"][:, 0].numpy()
    right.plot(history.time[:, 0], np.degrees(seen[:, 1]), color=COLOURS[0])
    right.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    right.set_xlabel("time [s]")
    right.set_title("swing-up: angle [deg] and cart [cm]")
    right.plot(history.time[:, 0], 100 * seen[:, 0], color=COLOURS[1], linewidth=1.0)
    return figure


CHARTS = (low_orbit, slew, glider_modes, touch_down, launch, quadrotor, plan)


def main() -> None:
    """Draw all of them, or those that are named."""
    matplotlib.use("svg")
    FOLDER.mkdir(exist_ok=True)
    with plt.rc_context(STYLE):
        for chart in CHARTS:
            if chart.__name__ in (sys.argv[1:] or [chart.__name__]):
                save(chart(), chart.__name__)


if __name__ == "__main__":
    main()
