"""A low orbit in Basilisk: J2, drag in an exponential atmosphere, gravity gradient.

Runs in the peers' environment and prints JSON: position and attitude at the end.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
from Basilisk.simulation import (
    GravityGradientEffector,
    dragDynamicEffector,
    exponentialAtmosphere,
    gravityEffector,
    spacecraft,
)
from Basilisk.utilities import SimulationBaseClass, macros
from Basilisk.utilities.RigidBodyKinematics import EP2MRP, MRP2EP


def gravity(case: dict) -> gravityEffector.GravBodyData:
    """The Earth with J2 alone, from a file in the format that Basilisk reads."""
    body = gravityEffector.GravBodyData()
    body.planetName = "earth"
    body.mu, body.radEquator = case["mu"], case["radius"]
    body.isCentralBody = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j2.csv"
        head = f"{case['radius']!r},{case['mu']!r},0,2,2,1,0,0\n"
        rows = [(0, 0, 1.0), (1, 0, 0.0), (1, 1, 0.0)]
        rows += [(2, 0, -case["j2"] / math.sqrt(5)), (2, 1, 0.0), (2, 2, 0.0)]
        path.write_text(head + "".join(f"{n},{m},{c!r},0.0,0,0\n" for n, m, c in rows))
        body.useSphericalHarmonicsGravityModel(str(path), 2)
    return body


def run(case: dict) -> dict:
    """Fly the case; positions from the Earth's centre [m], quaternion body to world."""
    sim = SimulationBaseClass.SimBaseClass()
    step = macros.sec2nano(case["step"])
    sim.CreateNewProcess("process").addTask(sim.CreateNewTask("task", step))
    craft = spacecraft.Spacecraft()
    craft.ModelTag = "craft"
    craft.hub.mHub = case["mass"]
    craft.hub.r_BcB_B = [[0.0], [0.0], [0.0]]
    craft.hub.IHubPntBc_B = case["inertia"]
    craft.hub.r_CN_NInit = np.reshape(case["position"], (3, 1)).tolist()
    craft.hub.v_CN_NInit = np.reshape(case["velocity"], (3, 1)).tolist()
    # Basilisk's attitude is the passive one of the body against the inertial axes,
    # which is the same rotation as our active quaternion body to world.
    craft.hub.sigma_BNInit = np.reshape(EP2MRP(case["quat"]), (3, 1)).tolist()
    craft.hub.omega_BN_BInit = np.reshape(case["ang_vel_b"], (3, 1)).tolist()
    sim.AddModelToTask("task", craft)
    earth = gravity(case)
    craft.gravField.gravBodies = spacecraft.GravBodyVector([earth])
    air = exponentialAtmosphere.ExponentialAtmosphere()
    air.baseDensity, air.scaleHeight = case["density"], case["scale_height"]
    air.planetRadius = case["radius"]
    air.addSpacecraftToModel(craft.scStateOutMsg)
    sim.AddModelToTask("task", air, 100)
    drag = dragDynamicEffector.DragDynamicEffector()
    drag.coreParams.projectedArea, drag.coreParams.dragCoeff = case["area"], 1.0
    drag.coreParams.comOffset = [0.0, 0.0, 0.0]
    drag.atmoDensInMsg.subscribeTo(air.envOutMsgs[0])
    craft.addDynamicEffector(drag)
    sim.AddModelToTask("task", drag, 50)
    torque = GravityGradientEffector.GravityGradientEffector()
    torque.addPlanetName("earth")
    craft.addDynamicEffector(torque)
    sim.AddModelToTask("task", torque)
    logged = craft.scStateOutMsg.recorder(macros.sec2nano(case["every"]))
    sim.AddModelToTask("task", logged)
    sim.InitializeSimulation()
    sim.ConfigureStopTime(macros.sec2nano(case["seconds"]))
    sim.ExecuteSimulation()
    quats = [MRP2EP(sigma).tolist() for sigma in logged.sigma_BN]
    return {
        "time": (logged.times() * 1e-9).tolist(),
        "position": logged.r_CN_N.tolist(),
        "quat": quats,
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.stdin.read()))))
