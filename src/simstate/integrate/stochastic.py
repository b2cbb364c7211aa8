"""Stochastic schemes as data: dx = f dt + Σ_k g_k dW_k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from simstate.errors import unknown_name
from simstate.integrate.schemes import ATTITUDE_MODES, AttitudeMode

_Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class ItoTableau:
    """A stochastic Runge-Kutta scheme in Rößler's form, for each noise source k.

    Stages of the drift:     H⁰_i = x + Σ_j a0_ij f(H⁰_j) h + Σ_kj b0_ij g_k(Hᵏ_j) Z_k/h
    Stages of the diffusion: Hᵏ_i = x + Σ_j a1_ij f(H⁰_j) h + Σ_j b1_ij g_k(Hᵏ_j) √h
    The step: x + Σ_i α_i f(H⁰_i) h + Σ_ki (β1_i W_k + β2_i (W_k² − h)/(2√h)
    + β3_i Z_k/h + β4_i (W_k³ − 3 h W_k)/(6 h)) g_k(Hᵏ_i)

    with the increment W_k and its time integral Z_k over the step.
    """

    alpha: Sequence[float]
    beta1: Sequence[float]
    beta2: Sequence[float]
    beta3: Sequence[float]
    beta4: Sequence[float]
    a0: _Rows
    b0: _Rows
    a1: _Rows
    b1: _Rows
    c0: Sequence[float]
    c1: Sequence[float]


_EULER_MARUYAMA = ItoTableau(
    alpha=(1.0,),
    beta1=(1.0,),
    beta2=(0.0,),
    beta3=(0.0,),
    beta4=(0.0,),
    a0=((),),
    b0=((),),
    a1=((),),
    b1=((),),
    c0=(0.0,),
    c1=(0.0,),
)
_MILSTEIN = ItoTableau(
    alpha=(1.0, 0.0),
    beta1=(1.0, 0.0),
    beta2=(-1.0, 1.0),
    beta3=(0.0, 0.0),
    beta4=(0.0, 0.0),
    a0=((), (0.0,)),
    b0=((), (0.0,)),
    a1=((), (1.0,)),
    b1=((), (1.0,)),
    c0=(0.0, 0.0),
    c1=(0.0, 0.0),
)
_SRA1 = ItoTableau(
    alpha=(1 / 3, 2 / 3),
    beta1=(1.0, 0.0),
    beta2=(0.0, 0.0),
    beta3=(-1.0, 1.0),
    beta4=(0.0, 0.0),
    a0=((), (3 / 4,)),
    b0=((), (3 / 2,)),
    a1=((), (0.0,)),
    b1=((), (0.0,)),
    c0=(0.0, 3 / 4),
    c1=(1.0, 0.0),
)
_SRIW1 = ItoTableau(
    alpha=(1 / 3, 2 / 3, 0.0, 0.0),
    beta1=(-1.0, 4 / 3, 2 / 3, 0.0),
    beta2=(-1.0, 4 / 3, -1 / 3, 0.0),
    beta3=(2.0, -4 / 3, -2 / 3, 0.0),
    beta4=(-2.0, 5 / 3, -2 / 3, 1.0),
    a0=((), (3 / 4,), (0.0, 0.0), (0.0, 0.0, 0.0)),
    b0=((), (3 / 2,), (0.0, 0.0), (0.0, 0.0, 0.0)),
    a1=((), (1 / 4,), (1.0, 0.0), (0.0, 0.0, 1 / 4)),
    b1=((), (1 / 2,), (-1.0, 0.0), (-5.0, 3.0, 1 / 2)),
    c0=(0.0, 3 / 4, 0.0, 0.0),
    c1=(0.0, 1 / 4, 1.0, 1 / 4),
)


@dataclass(frozen=True)
class Stochastic:
    """A scheme with fixed steps for dynamics that noise drives.

    Orientations move by rotation vectors in body axes, noise included, so they keep
    unit length; see `Explicit` for the attitude modes. Noise that moves orientations
    directly (block "qpos") is meant as rotations exp(g dW) and has weak order 1 in
    every scheme. Without noise it is an ordinary scheme.
    """

    attitude: AttitudeMode = "lie"

    name: ClassVar[str]
    calculus: ClassVar[Literal["Itô", "Stratonovich"]] = "Itô"
    strong_order: ClassVar[float]
    """For scalar noise, or noise whose sources move states apart (diagonal)."""
    weak_order: ClassVar[float]
    tableau: ClassVar[ItoTableau | None] = None

    def __post_init__(self) -> None:
        if self.attitude not in ATTITUDE_MODES:
            raise unknown_name("attitude mode", str(self.attitude), ATTITUDE_MODES)


class EulerMaruyama(Stochastic):
    """Euler-Maruyama (Itô): strong order 0.5, 1 for additive noise; weak order 1."""

    name = "EulerMaruyama"
    strong_order = 0.5
    weak_order = 1.0
    tableau = _EULER_MARUYAMA


class EulerHeun(Stochastic):
    """Euler-Heun (Stratonovich): strong order 1 for commutative noise, weak order 1."""

    name = "EulerHeun"
    calculus = "Stratonovich"
    strong_order = 1.0
    weak_order = 1.0


class RKMilstein(Stochastic):
    """Milstein's scheme without derivatives (Itô): strong order 1, weak order 1."""

    name = "RKMilstein"
    strong_order = 1.0
    weak_order = 1.0
    tableau = _MILSTEIN


class SRA1(Stochastic):
    """Rößler's SRA1 (Itô): strong order 1.5 for additive noise, and only for it."""

    name = "SRA1"
    strong_order = 1.5
    weak_order = 1.5
    tableau = _SRA1


class SRIW1(Stochastic):
    """Rößler's SRIW1 (Itô): strong order 1.5 for scalar or diagonal noise."""

    name = "SRIW1"
    strong_order = 1.5
    weak_order = 1.5
    tableau = _SRIW1


class PlatenWeak2(Stochastic):
    """Platen's scheme of weak order 2 (Itô), for any noise: right in distribution."""

    name = "PlatenWeak2"
    strong_order = 0.5
    weak_order = 2.0
