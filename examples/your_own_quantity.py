"""Declare a quantity of your own, with its unit, and read it like the others.

A quantity is declared once: what it is computed from, its unit and its shape. It is
then computed when it is first read in a state, kept until the state moves on, and never
stale. Here it is the kinetic energy of an entity. A thrown, spinning cube trades height
for it: E_kin(t) = E_kin(0) + m g (z(0) − z(t)).
"""

import torch

from simstate import (
    EntityCfg,
    EntityData,
    InitialStateCfg,
    Quantity,
    SceneCfg,
    Simulation,
    integrate,
)
from simstate.math import quaternion


def kinetic_energy(data):
    """½ m v² of each link's centre of mass and ½ ω·I·ω about it, summed [J]."""
    vel = data.read("body_com_lin_vel_w")
    # body_inertia is along the axes of body_com_quat_w, so turn ω into them.
    spin = quaternion.rotate_inverse(
        data.read("body_com_quat_w"), data.read("body_com_ang_vel_w")
    )
    moving = data.read("body_mass") * vel.square().sum(-1)
    turning = (data.read("body_inertia") * spin.square()).sum(-1)
    return 0.5 * (moving + turning).sum(-1)


class EnergyData(EntityData):
    """All quantities of an entity, and its kinetic energy."""

    kinetic_energy = Quantity(
        kinetic_energy,
        kind="kinetic_energy",
        unit="J",
        shape=(),
        reads=("xquat", "xipos", "subtree_com", "cvel"),
        parameters=("body_mass", "body_inertia"),
    )
    """Kinetic energy of all links [J]; (num_envs,)."""


def main() -> None:
    """Throw the cube in eight worlds, each at another speed."""
    start = InitialStateCfg(pos=(0, 0, 5), ang_vel=(3, 5, 7))
    cube = EntityCfg(model="cube", init_state=start, data=EnergyData)
    scene = SceneCfg(entities={"cube": cube}, ground=False, timestep=0.005)
    sim = Simulation(scene, num_envs=8, integrator=integrate.RK4(attitude="lie"))
    data = sim.scene["cube"].data
    sim.data.qvel[:, 2] = torch.linspace(0, 7, 8, dtype=sim.dtype)

    energy = data.read("kinetic_energy").clone()
    height = data.root_com_pos_w[:, 2].clone()
    print(f"at the start: {energy[0]:.4f} J to {energy[-1]:.4f} J")
    sim.step(160)
    gained = data.read("kinetic_energy") - energy
    expected = 0.1 * 9.81 * (height - data.root_com_pos_w[:, 2])
    print(f"gained in 0.8 s: {gained[0]:.4f} J, m g Δz = {expected[0]:.4f} J")
    print(f"largest error over all worlds: {(gained - expected).abs().max():.1e} J")

    contract = EnergyData.quantities["kinetic_energy"]
    print(f"contract: {contract.name} [{contract.unit}], shape {contract.shape_text}")


if __name__ == "__main__":
    main()
