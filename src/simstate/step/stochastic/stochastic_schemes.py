"""All the stochastic schemes, by name."""

from __future__ import annotations

from simstate.step.stochastic.stochastic import (
    SOSRA,
    SOSRI,
    SRA1,
    SRIW1,
    EulerHeun,
    EulerMaruyama,
    RKMilstein,
    Stochastic,
)
from simstate.step.stochastic.weak_ito import (
    DRI1,
    DRI1NM,
    RDI1WM,
    RI1,
    RI3,
    RI5,
    RI6,
    PlatenWeak2,
    W2Ito1,
    W2Ito2,
)
from simstate.step.stochastic.weak_schemes import RS1, RS2, SIEA, SIEB, SMEA, SMEB

STOCHASTIC_SCHEMES: dict[str, type[Stochastic]] = {
    scheme.__name__.lower(): scheme
    for scheme in (
        *(EulerMaruyama, EulerHeun, RKMilstein, SRA1, SOSRA, SRIW1, SOSRI),
        *(PlatenWeak2, RDI1WM, DRI1, DRI1NM, RI1, RI3, RI5, RI6, RS1, RS2),
        *(W2Ito1, W2Ito2, SIEA, SMEA, SIEB, SMEB),
    )
}
"""The built-in stochastic schemes by name in lower case."""
