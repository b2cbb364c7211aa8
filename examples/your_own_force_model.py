"""Add a force of your own: drag that grows with the square of the speed.

A force model is a function of time and state. It is evaluated at every stage of the
integrator, so a fourth-order scheme stays of fourth order. A body that falls from rest
with drag k v² has v(t) = v∞ tanh(g t / v∞), where v∞ = √(m g / k) is its terminal
speed.
"""

import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation, integrate

MASS, GRAVITY = 0.1, 9.81  # kg, m/s²
DRAG = torch.tensor([0.001, 0.004, 0.016], dtype=torch.float64)  # kg/m, per world


def air_drag(t, sim) -> None:
    """−k |v| v at the cube's centre of mass, world axes [N]."""
    cube = sim.scene["cube"]
    velocity = cube.data.root_com_lin_vel_w
    speed = velocity.norm(dim=-1, keepdim=True)
    body = cube.index.root_body_id
    sim.data.xfrc_applied[:, body, :3] -= DRAG[:, None] * speed * velocity


def fall(timestep: float) -> torch.Tensor:
    """Speed after three seconds [m/s]; one world for each drag."""
    start = InitialStateCfg(pos=(0.0, 0.0, 1000.0))
    scene = SceneCfg(
        entities={"cube": EntityCfg(model="cube", init_state=start)},
        ground=False,
        timestep=timestep,
    )
    sim = Simulation(scene, num_envs=len(DRAG), integrator=integrate.RK4())
    sim.add_force(air_drag)
    sim.step(round(3.0 / timestep))
    return -sim.scene["cube"].data.root_com_lin_vel_w[:, 2]


def main() -> None:
    """Compare with the closed form at two time steps."""
    terminal = (MASS * GRAVITY / DRAG).sqrt()
    exact = terminal * torch.tanh(GRAVITY * 3.0 / terminal)
    coarse, fine = fall(0.1), fall(0.05)
    for k, drag in enumerate(DRAG.tolist()):
        print(
            f"k = {drag:.3f} kg/m: {float(fine[k]):.6f} m/s, v∞ tanh(g t/v∞) = "
            f"{float(exact[k]):.6f} m/s, v∞ = {float(terminal[k]):.2f} m/s"
        )
    ratio = (coarse - exact).abs() / (fine - exact).abs()
    order = float(torch.log2(ratio).mean())
    print(
        f"largest error {float((fine - exact).abs().max()):.1e} m/s; "
        f"half the step makes it smaller by 2^{order:.1f}"
    )


if __name__ == "__main__":
    main()
