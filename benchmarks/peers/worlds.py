"""A quadruped in 64 worlds on the CPU: mjlab's Go1 on MuJoCo Warp, ours on native.

Prints world-steps per second; the first argument is "peer" or "simstate".
"""

from __future__ import annotations

import sys
import time

WORLDS, STEPS = 64, 50


def mjlab() -> float:
    """World-steps per second of its simulation, without a task."""
    from mjlab.asset_zoo.robots import get_go1_robot_cfg
    from mjlab.scene import Scene, SceneCfg
    from mjlab.sim import Simulation, SimulationCfg

    scene = Scene(
        SceneCfg(num_envs=WORLDS, entities={"robot": get_go1_robot_cfg()}), "cpu"
    )
    sim = Simulation(
        num_envs=WORLDS, cfg=SimulationCfg(), model=scene.compile(), device="cpu"
    )
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return _rate(sim.step)


def simstate() -> float:
    """World-steps per second of our quadruped, of the same size."""
    from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation

    state = InitialStateCfg(keyframe="home")
    robot = EntityCfg(model="quadruped", init_state=state)
    scene = SceneCfg(entities={"robot": robot}, ground=True, timestep=0.005)
    return _rate(Simulation(scene, WORLDS).step)


def _rate(step) -> float:
    for _ in range(3):
        step()
    begun = time.perf_counter()
    for _ in range(STEPS):
        step()
    return WORLDS * STEPS / (time.perf_counter() - begun)


print(mjlab() if sys.argv[1] == "peer" else simstate())
