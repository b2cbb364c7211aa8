"""The compiled core of the native engine: C that runs on the worlds of a batch.

It is optional. If it was not built, or was built for another MuJoCo, or with
`SIMSTATE_CORE=0` in the environment, the engine runs on `mujoco.batch` instead: the
same bits, but slower. `simstate --version` states which of the two is used.

The core writes into arrays without changing the counters that freshness relies on; each
function here states which arrays it writes.
"""

from __future__ import annotations

from simstate.base.compiled_core import description, is_available
from simstate.engine.core import draws, free_bodies, matrices, reads
from simstate.engine.core.batch import CoreBatch
from simstate.engine.core.core_contacts import make_contacts
from simstate.engine.core.core_rays import CarriedRays
from simstate.engine.core.integrator import (
    AdaptiveIntegrator,
    EvaluationCalls,
    Failure,
    Integrator,
)
from simstate.engine.core.load_tables import (
    CoreLoad,
    CoreProcess,
    FieldSamples,
    LoadKind,
)
from simstate.engine.core.planet_tables import (
    EarthAngle,
    Field,
    Harmonics,
    PlanetAirTable,
    Polynomials,
)
from simstate.engine.core.scheme import MassArrays
from simstate.engine.core.step_watch import StepWatch

__all__ = [
    "AdaptiveIntegrator",
    "CarriedRays",
    "CoreBatch",
    "CoreLoad",
    "CoreProcess",
    "EarthAngle",
    "EvaluationCalls",
    "Failure",
    "Field",
    "FieldSamples",
    "Harmonics",
    "Integrator",
    "LoadKind",
    "MassArrays",
    "PlanetAirTable",
    "Polynomials",
    "StepWatch",
    "description",
    "draws",
    "free_bodies",
    "is_available",
    "make_contacts",
    "matrices",
    "reads",
]
