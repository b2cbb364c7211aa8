"""A tumbling free body by RK4: one in Basilisk's MJScene, 1024 in simstate.

Prints (world-)steps per second; the first argument is "peer" or "simstate".
"""

from __future__ import annotations

import sys
import time

XML = """
<mujoco><option gravity="0 0 0"/><worldbody><body name="body">
  <freejoint/><geom type="box" size=".1 .2 .3" mass="1"/>
</body></worldbody></mujoco>
"""
STEP = 0.1


def basilisk(steps: int = 20_000) -> float:
    """Steps of one body per second."""
    from Basilisk.simulation import mujoco, svIntegrators
    from Basilisk.utilities import SimulationBaseClass, macros

    sim = SimulationBaseClass.SimBaseClass()
    process = sim.CreateNewProcess("process")
    process.addTask(sim.CreateNewTask("task", macros.sec2nano(STEP)))
    scene = mujoco.MJScene(XML)
    scene.extraEoMCall = False
    scene.setIntegrator(svIntegrators.svIntegratorRK4(scene))
    sim.AddModelToTask("task", scene)
    sim.InitializeSimulation()
    scene.getBody("body").setAttitudeRate([0.1, 3.0, 0.1])
    sim.ConfigureStopTime(macros.sec2nano(STEP * steps))
    begun = time.perf_counter()
    sim.ExecuteSimulation()
    return steps / (time.perf_counter() - begun)


def simstate(num_envs: int = 1024, steps: int = 50) -> float:
    """World-steps per second."""
    import mujoco

    from simstate import Simulation, integrate

    model = mujoco.MjModel.from_xml_string(XML)
    model.opt.timestep = STEP
    sim = Simulation(model, num_envs, integrator=integrate.RK4(attitude="manifold"))
    sim.data.qvel[:, 4] = 3.0
    sim.step(5)
    begun = time.perf_counter()
    sim.step(steps)
    return num_envs * steps / (time.perf_counter() - begun)


print(basilisk() if sys.argv[1] == "peer" else simstate())
