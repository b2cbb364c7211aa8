"""A tumbling free body by RK4: Basilisk's MJScene, which holds one, and simstate."""

from __future__ import annotations

import time

from job import cpu_rate, one_thread, report

XML = """
<mujoco><option gravity="0 0 0"/><worldbody><body name="body">
  <freejoint/><geom type="box" size=".1 .2 .3" mass="1"/>
</body></worldbody></mujoco>
"""
STEP = 0.1


def basilisk(worlds: int, steps: int = 20_000) -> float:
    """Steps of one body per CPU second, however many are asked for."""
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
    begun = time.process_time()
    sim.ExecuteSimulation()
    return steps / (time.process_time() - begun)


def simstate(worlds: int, steps: int = 50) -> float:
    """World-steps per CPU second."""
    import mujoco

    from simstate import Simulation, integrate

    model = mujoco.MjModel.from_xml_string(XML)
    model.opt.timestep = STEP
    scheme = integrate.RK4(attitude="manifold")
    sim = Simulation(model, worlds, engine=one_thread(), integrator=scheme)
    sim.data.qvel[:, 4] = 3.0
    return cpu_rate(lambda: sim.step(steps), worlds * steps)


report("bsk", {"peer": basilisk, "simstate": simstate})
