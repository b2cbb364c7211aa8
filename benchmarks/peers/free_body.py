"""One free body under loads: Ptera Software's MuJoCoModel, and simstate's in its place.

Prints steps per second; the first argument is "peer" or "simstate".
"""

from __future__ import annotations

import sys
import time

import numpy as np

STEPS = 4000

if sys.argv[1] == "peer":
    from pterasoftware._mujoco_model import MuJoCoModel
else:
    from simstate.interop.ptera import MuJoCoModel

model = MuJoCoModel(
    name="glider",
    mass=1.5,
    omegas_BP1__E=np.array([1.0, 5.0, 2.0]),
    T_pas_BP1_CgP1_to_E_CgP1=np.eye(4),
    vCg_E__E=np.array([12.0, 0.0, 0.0]),
    I_BP1_CgP1=np.diag([0.13, 0.10, 0.22]),
    delta_time=0.005,
    integrator="RK4",
)
force, moment = np.array([0.1, 0.0, -1.0]), np.array([0.0, 0.01, 0.0])
begun = time.perf_counter()
for _ in range(STEPS):
    model.apply_loads(force, moment)
    model.step()
    model.get_state()
print(STEPS / (time.perf_counter() - begun))
