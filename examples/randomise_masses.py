"""Give every world masses of its own, as for training that must carry to hardware.

`sim.expand` makes a model parameter differ from world to world. Masses and inertias are
scaled together, then `set_const` brings what MuJoCo derives from them up to date. Each
world's cart is pushed by the same force F on a frictionless rail with its pole hanging;
a free body of mass m instead moves by ½ (F/m) t², which is what the cube shows.
"""

import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation, integrate

FORCE = 0.3  # N
SECONDS = 2.0


def main() -> None:
    """Push 1024 cubes of different masses in free fall's absence."""
    start = InitialStateCfg(pos=(0.0, 0.0, 1.0))
    scene = SceneCfg(
        entities={"cube": EntityCfg(model="cube", init_state=start)},
        ground=False,
        gravity=(0.0, 0.0, 0.0),
    )
    sim = Simulation(scene, num_envs=1024, integrator=integrate.RK4(), seed=7)
    cube = sim.scene["cube"]
    body = cube.index.root_body_id

    scale = 0.5 + torch.rand(
        sim.num_envs, generator=sim.rng, dtype=sim.dtype, device=sim.device
    )
    sim.expand("body_mass")[:, body] *= scale
    sim.expand("body_inertia")[:, body] *= scale[:, None]
    sim.set_const()
    mass = cube.data.body_mass[:, 0]
    print(f"masses from {float(mass.min()):.4f} to {float(mass.max()):.4f} kg, "
          f"mean {float(mass.mean()):.4f} kg")  # fmt: skip

    push = torch.zeros(sim.num_envs, 1, 3, dtype=sim.dtype)
    push[..., 0] = FORCE
    cube.write_external_wrench_to_sim(push, torch.zeros_like(push))
    sim.step(round(SECONDS / sim.timestep))

    moved = cube.data.root_com_pos_w[:, 0]
    expected = 0.5 * FORCE / mass * SECONDS**2
    light, heavy = int(mass.argmin()), int(mass.argmax())
    for name, world in (("lightest", light), ("heaviest", heavy)):
        print(f"{name}: {float(mass[world]):.4f} kg moved {float(moved[world]):.4f} m, "
              f"½ F/m t² = {float(expected[world]):.4f} m")  # fmt: skip
    print(f"largest error over 1024 worlds: {float((moved - expected).abs().max()):.1e} m")


if __name__ == "__main__":
    main()
