"""Push and turn a satellite, and find the impulse again in its momentum.

A force at the hub's centre of mass and a torque act for two seconds, world axes. Panels
swing and the wheel spins, but nothing is attached to the world: the momentum of all
links together must be force × time, and the angular momentum about the place where the
system's centre of mass started, torque × time (the force's line passes through that
place).
"""

import torch

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.math import quaternion

FORCE = (4.0, 0.0, 0.0)  # N, world axes
TORQUE = (0.0, 0.0, 3.0)  # N·m, world axes
SECONDS = 2.0


def momentum(data) -> torch.Tensor:
    """Linear momentum of all links, world axes [kg·m/s]; (num_envs, 3)."""
    return (data.body_mass[..., None] * data.body_com_lin_vel_w).sum(1)


def angular_momentum(data, about: torch.Tensor) -> torch.Tensor:
    """Angular momentum of all links about a point, world axes [kg·m²/s]."""
    turn = data.body_com_quat_w
    spin = quaternion.rotate_inverse(turn, data.body_com_ang_vel_w)
    own = quaternion.rotate(turn, data.body_inertia * spin)
    arm = data.body_com_pos_w - about[:, None]
    linear = data.body_mass[..., None] * data.body_com_lin_vel_w
    return (own + torch.linalg.cross(arm, linear)).sum(1)


def main() -> None:
    """Apply the wrench, step, and compare."""
    scene = SceneCfg(entities={"sat": EntityCfg(model="satellite")}, ground=False)
    sim = Simulation(scene, integrator=integrate.RK4(attitude="lie"))
    sat = sim.scene["sat"]
    mass = sat.data.body_mass[..., None]
    start = (mass * sat.data.body_com_pos_w).sum(1) / mass.sum(1)

    sat.write_external_wrench_to_sim([[FORCE]], [[TORQUE]], body_ids=[0])
    sim.step(round(SECONDS / sim.timestep))

    shown = [f"{x:.6f}" for x in momentum(sat.data)[0].tolist()]
    print(f"momentum         ({', '.join(shown)}) kg·m/s")
    print(f"force × time     ({FORCE[0] * SECONDS:.6f}, 0, 0) N·s")
    shown = [f"{x:.6f}" for x in angular_momentum(sat.data, start)[0].tolist()]
    print(f"angular momentum ({', '.join(shown)}) kg·m²/s")
    print(f"torque × time    (0, 0, {TORQUE[2] * SECONDS:.6f}) N·m·s")
    rate = sat.data.root_link_ang_vel_b[0, 2]
    print(f"hub turns at {float(rate):.4f} rad/s about its own z")


if __name__ == "__main__":
    main()
