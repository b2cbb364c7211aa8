"""One scene on both engines, side by side.

The engine is one argument; nothing else changes. `native` is MuJoCo's C code on all CPU
cores in float64, `warp` is MuJoCo Warp in float32, here on the CPU and elsewhere on a
GPU. Both start from the same states, carried over as one tensor, and are compared after
half a second in units, quantity by quantity. The cube is in free fall, where z = z₀ − ½
g t (t + h): MuJoCo's Euler steps of length h are half a step ahead.
"""

import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.state import diff

START = InitialStateCfg(pos=(0.0, 0.0, 3.0), ang_vel=(1.0, 2.0, 3.0))
SCENE = SceneCfg(
    entities={"cube": EntityCfg(model="cube", init_state=START)}, timestep=0.005
)


def main() -> None:
    """Run both and compare."""
    native = Simulation(SCENE, num_envs=4)
    warp = Simulation(SCENE, num_envs=4, engine="warp")
    native.data.qvel[:, 0] = torch.linspace(0.0, 3.0, 4, dtype=native.dtype)
    warp.write_state(native.state.to(warp.dtype))

    for sim in (native, warp):
        sim.step(100)
        z = sim.scene["cube"].data.root_link_pos_w[0, 2]
        print(f"{sim.engine_name:<6} {sim.dtype!s:<13} z = {float(z):.6f} m")
    t, h = 0.5, SCENE.timestep
    print(f"closed form          z = {3.0 - 0.5 * 9.81 * t * (t + h):.6f} m")

    found = diff(native.get_states(), warp.get_states(), tolerance=0.0)
    worst = found[0]
    print(
        f"largest difference: {worst.error:.1e} {worst.unit} in {worst.quantity}, "
        f"world {worst.world}"
    )
    same = not len(diff(native.get_states(), warp.get_states(), tolerance=1e-3))
    print(f"the same to 1e-3: {same}")


if __name__ == "__main__":
    main()
