"""Stochastic schemes as data: dx = f dt + Σ_k g_k dW_k, along the given path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from simstate.base.errors import unknown_name
from simstate.step.schemes.schemes import ATTITUDE_MODES, AttitudeMode, Explicit
from simstate.step.stochastic.sde_tableau import StochasticTableau

NoiseKind = Literal["any", "paired", "diagonal", "additive"]
"""Kinds of noise for which a scheme attains its order.

"additive": g depends only on time. "diagonal": one source, or several that do not mix:
g_l does not change along g_k for l ≠ k. "paired": one or two sources, or more that do
not mix. "any": all noise.
"""


@dataclass(frozen=True)
class Stochastic:
    """A scheme with fixed steps for dynamics driven by noise.

    Orientations move by rotation vectors in body axes, noise included, so they keep
    unit norm; see `Explicit` for the attitude modes. Noise that acts on orientations
    directly (block "qpos") is interpreted as rotations exp(g dW) and has weak order 1
    in every scheme. Without noise the scheme has its `deterministic_order`.

    The first step warns if the noise is not of the scheme's kind: it then converges
    with strong order 0.5 and weak order 1.
    """

    attitude: AttitudeMode = "lie"

    name: ClassVar[str]
    """The name of the class, unless a scheme has another one."""
    calculus: ClassVar[Literal["Itô", "Stratonovich"]] = "Itô"
    noise: ClassVar[NoiseKind] = "any"
    """The kind of noise for which it attains its orders."""
    strong_order: ClassVar[float]
    """Order of the path's error, for that noise; 0 if it does not follow the path."""
    weak_order: ClassVar[float]
    """Order of the error of expectations, for that noise."""
    deterministic_order: ClassVar[int]
    """Order without noise."""
    also_called: ClassVar[str] = ""
    """Its name in other libraries."""
    tableau: ClassVar[StochasticTableau]

    def __init_subclass__(cls) -> None:
        cls.name = vars(cls).get("name", cls.__name__)

    def __post_init__(self) -> None:
        if self.attitude not in ATTITUDE_MODES:
            raise unknown_name("attitude mode", str(self.attitude), ATTITUDE_MODES)


Integrator = Explicit | Stochastic
"""Schemes that `Simulation(integrator=…)` accepts."""


class EulerMaruyama(Stochastic):
    """Euler-Maruyama (Itô), for any noise: strong order 0.5, weak order 1.

    Strong order 1 for additive noise. One evaluation of f and of g. Known as EM; in
    StochasticDiffEq.jl that is EM(false), as EM() there has g after the drift. Choose
    it for the cheapest step, and for paths with noise that no other scheme covers.
    """

    strong_order = 0.5
    weak_order = 1.0
    deterministic_order = 1
    also_called = "EM"
    tableau = StochasticTableau(
        name="EulerMaruyama",
        variables="gaussian",
        conditions="SRI",
        order=0.5,
        alpha=(1.0,),
        a0=((),),
        a1=((),),
        beta={"I": (1.0,)},
    )


class EulerHeun(Stochastic):
    """Euler-Heun (Stratonovich), for any noise: strong order 1, weak order 1.

    Strong order 1 if the sources commute (one source, diagonal or additive noise),
    else 0.5. Two evaluations of f and of g. Choose it for paths of Stratonovich
    equations, such as limits of noise with a short correlation time.
    """

    calculus = "Stratonovich"
    strong_order = 1.0
    weak_order = 1.0
    deterministic_order = 2
    tableau = StochasticTableau(
        name="EulerHeun",
        variables="gaussian",
        conditions="RS",
        order=1,
        alpha=(1 / 2, 1 / 2),
        a0=((), (1.0,)),
        b0={"I": ((), (1.0,))},
        a1=((), (1.0,)),
        b1={"I": ((), (1.0,))},
        b1_other={"I": ((), (1.0,))},
        beta={"I": (1 / 2, 1 / 2)},
    )


class RKMilstein(Stochastic):
    """Milstein's scheme without derivatives (Itô), diagonal noise: strong order 1.

    Also for one source. Weak order 1. One evaluation of f, 1 + 1 of g for each source:
    the support value g(t, x + f h + g √h) is at the step's start in time. Known as
    RKMil. Choose it if strong order 1 is enough for multiplicative noise.
    """

    noise = "diagonal"
    strong_order = 1.0
    weak_order = 1.0
    deterministic_order = 1
    also_called = "RKMil"
    tableau = StochasticTableau(
        name="RKMilstein",
        variables="gaussian",
        conditions="SRI",
        order=1,
        alpha=(1.0, 0.0),
        a0=((), ()),
        a1=((), (1.0,)),
        b1={"root_h": ((), (1.0,))},
        beta={"I": (1.0, 0.0), "II": (-1.0, 1.0)},
        c1_given=(0.0, 0.0),
    )


class SRA1(Stochastic):
    """Rößler's SRA1 (Itô and Stratonovich), additive noise: strong order 1.5.

    Weak order 2. Two evaluations of f and of g. Uses the time integral of the path.
    Choose it for additive noise: gusts, thermal forces.
    """

    noise = "additive"
    strong_order = 1.5
    weak_order = 2.0
    deterministic_order = 2
    tableau = StochasticTableau(
        name="SRA1",
        variables="gaussian",
        conditions="SRA",
        order=1.5,
        alpha=(1 / 3, 2 / 3),
        a0=((), (3 / 4,)),
        b0={"I0": ((), (3 / 2,))},
        a1=((), ()),
        beta={"I": (1.0, 0.0), "I0": (-1.0, 1.0)},
        c1_given=(1.0, 0.0),
    )


class SOSRA(Stochastic):
    """Rackauckas and Nie's SOSRA (Itô and Stratonovich), additive noise: strong 1.5.

    SRA with a large region of stability; weak order 2. Three evaluations of f and of g.
    Uses the time integral of the path. Choose it over SRA1 if the drift is stiff or the
    step long.
    """

    noise = "additive"
    strong_order = 1.5
    weak_order = 2.0
    deterministic_order = 2
    tableau = StochasticTableau(
        name="SOSRA",
        variables="gaussian",
        conditions="SRA",
        order=1.5,
        alpha=(0.2889874966892885, 0.6859880440839937, 0.025024459226717772),
        a0=((), (0.6923962376159507,), (-3.1609142252828395, 4.1609142252828395)),
        b0={"I0": ((), (1.3371632704399763,), (1.442371048468624, 1.8632741501139225))},
        a1=((), (), ()),
        beta={
            "I": (-16.792534242221663, 17.514995785380226, 0.27753845684143835),
            "I0": (0.4237535769069274, 0.6010381474428539, -1.0247917243497813),
        },
        c1_given=(0.0, 0.041248171110700504, 1.0),
    )


class SRIW1(Stochastic):
    """Rößler's SRIW1 (Itô), one source or diagonal noise: strong order 1.5.

    Weak order 1.5. Two evaluations of f, 1 + 3 of g for each source. Uses the time
    integral of the path. Choose it for accurate paths with multiplicative noise.
    """

    noise = "diagonal"
    strong_order = 1.5
    weak_order = 1.5
    deterministic_order = 2
    tableau = StochasticTableau(
        name="SRIW1",
        variables="gaussian",
        conditions="SRI",
        order=1.5,
        alpha=(1 / 3, 2 / 3, 0.0, 0.0),
        a0=((), (3 / 4,), (), ()),
        b0={"I0": ((), (3 / 2,), (), ())},
        a1=((), (1 / 4,), (1.0,), (0.0, 0.0, 1 / 4)),
        b1={"root_h": ((), (1 / 2,), (-1.0,), (-5.0, 3.0, 1 / 2))},
        beta={
            "I": (-1.0, 4 / 3, 2 / 3, 0.0),
            "II": (-1.0, 4 / 3, -1 / 3, 0.0),
            "I0": (2.0, -4 / 3, -2 / 3, 0.0),
            "III": (-2.0, 5 / 3, -2 / 3, 1.0),
        },
    )


class SOSRI(Stochastic):
    """Rackauckas and Nie's SOSRI (Itô), one source or diagonal noise: strong order 1.5.

    SRI with a large region of stability; weak order 1.5. Four evaluations of f, 1 + 3
    of g for each source. Uses the time integral of the path. Choose it over SRIW1 if
    the drift is stiff or the step long. Its last drift stage is 3.75 steps ahead in
    time: forces must be defined there.
    """

    noise = "diagonal"
    strong_order = 1.5
    weak_order = 1.5
    deterministic_order = 2
    tableau = StochasticTableau(
        name="SOSRI",
        variables="gaussian",
        conditions="SRI",
        order=1.5,
        alpha=(
            1.140099274172029,
            -0.6401334255743456,
            0.4736296532772559,
            0.026404498125060714,
        ),
        a0=(
            (),
            (-0.04199224421316468,),
            (2.842612915017106, -2.0527723684000727),
            (4.338237071435815, -2.8895936137439793, 2.3017575594644466),
        ),
        b0={
            "I0": (
                (),
                (-0.21641093549612528,),
                (1.5336352863679572, 0.26066223492647056),
                (-1.0536037558179159, 1.7015284721089472, -0.20725685784180017),
            )
        },
        a1=(
            (),
            (0.26204282091330466,),
            (0.20903646383505375, -0.1502377115150361),
            (0.05836595312746999, 0.6149440396332373, 0.08535117634046772),
        ),
        b1={
            "root_h": (
                (),
                (-0.5119011827621657,),
                (2.67767339866713, -4.9395031322250995),
                (0.15580956238299215, 3.2361551006624674, -1.4223118283355949),
            )
        },
        beta={
            "I": (
                -1.8453464565104432,
                2.688764531100726,
                -0.2523866501071323,
                0.40896857551684956,
            ),
            "II": (
                0.4969658141589478,
                -0.5771202869753592,
                -0.12919702470322217,
                0.2093514975196336,
            ),
            "I0": (
                2.8453464565104425,
                -2.688764531100725,
                0.2523866501071322,
                -0.40896857551684945,
            ),
            "III": (
                0.11522663875443433,
                -0.57877086147738,
                0.2857851028163886,
                0.17775911990655704,
            ),
        },
    )
