"""Give every world masses of its own, as for training that must carry to hardware.

`sim.expand` makes a model parameter differ from world to world. Masses and inertias are
scaled together; what MuJoCo derives from them follows by itself. The
same force F pushes a floating cube in every world, and moves it by ½ (F/m) t².
"""

import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation, integrate

FORCE = 0.3  # N
SECONDS = 2.0


def main() -> None:
    """Push 256 cubes of different masses, without gravity."""
    start = InitialStateCfg(pos=(0.0, 0.0, 1.0))
    scene = SceneCfg(
        entities={"cube": EntityCfg(model="cube", init_state=start)},
        ground=False,
        gravity=(0.0, 0.0, 0.0),
        timestep=0.02,
    )
    sim = Simulation(scene, num_envs=256, integrator=integrate.RK4(), seed=7)
    cube = sim.scene["cube"]
    body = cube.index.root_body_id

    scale = sim.rng.uniform(slice(None), 1, 0.5, 1.5)
    sim.expand("body_mass")[:, body] *= scale[:, 0]
    sim.expand("body_inertia")[:, body] *= scale
    mass = cube.data.body_mass[:, 0]
    print(
        f"masses from {float(mass.min()):.4f} to {float(mass.max()):.4f} kg, "
        f"mean {float(mass.mean()):.4f} kg"
    )

    push = torch.zeros(sim.num_envs, 1, 3, dtype=sim.dtype)
    push[..., 0] = FORCE
    cube.write_external_wrench_to_sim(push, torch.zeros_like(push))
    sim.step(round(SECONDS / sim.timestep))

    moved = cube.data.root_com_pos_w[:, 0]
    expected = 0.5 * FORCE / mass * SECONDS**2
    light, heavy = int(mass.argmin()), int(mass.argmax())
    for name, world in (("lightest", light), ("heaviest", heavy)):
        print(
            f"{name}: {float(mass[world]):.4f} kg moved {float(moved[world]):.4f} m, "
            f"½ F/m t² = {float(expected[world]):.4f} m"
        )
    print(
        f"largest error over all worlds: {float((moved - expected).abs().max()):.1e} m"
    )


if __name__ == "__main__":
    main()
