"""Steps with prescribed noise against the published formulas, written out again.

The noise is given as StochasticDiffEq.jl gives it to its schemes: dW and dZ, two
independent increments of each source. The coefficients are typed here once more, from
the authors' tables.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
import torch
from tests.step.stochastic_problems import Given, make

from simstate import integrate
from simstate.integrate import brownian_integrals

H = 0.2


# ------------------------------------------------ the formulas, one world at a time


def three_point(dw, h):
    """±√(3h), each with a probability of one sixth, by where dW is."""
    p = NormalDist(0, sqrt(h)).cdf(dw)
    return -sqrt(3 * h) if p < 1 / 6 else sqrt(3 * h) if p > 5 / 6 else 0.0


def two_point(dz, h):
    return sqrt(h) if dz > 0 else -sqrt(h)


def milstein(t, x, h, f, g, dw, dz, _):
    out = x + h * f(t, x)
    for k in range(len(dw)):
        gk = g(t, x)[k]
        support = g(t, x + h * f(t, x) + sqrt(h) * gk)[k]
        out = out + gk * dw[k] + (support - gk) / sqrt(h) * (dw[k] ** 2 - h) / 2
    return out


def maruyama(t, x, h, f, g, dw, dz, _):
    return x + h * f(t, x) + dw @ g(t, x)


def heun(t, x, h, f, g, dw, dz, _):
    tilde = x + h * f(t, x) + dw @ g(t, x)
    drift = (f(t, x) + f(t + h, tilde)) / 2
    return x + h * drift + dw @ (g(t, x) + g(t + h, tilde)) / 2


def sra(t, x, h, f, g, dw, dz, c):
    """Rößler's SRA: I_(1,0)/h = (dW + dZ/√3)/2, diffusion at t + c1 h."""
    chi = (dw + dz / sqrt(3)) / 2
    ks = []
    for i, (a, b, c0) in enumerate(zip(c["A0"], c["B0"], c["c0"], strict=True)):
        at = x + sum((h * a[j] * ks[j] for j in range(i)), 0.0)
        at = at + sum((b[j] * chi @ g(t + c["c1"][j] * h, x) for j in range(i)), 0.0)
        ks.append(f(t + c0 * h, at))
    out = x + h * sum(a * k for a, k in zip(c["alpha"], ks, strict=True))
    for i, c1 in enumerate(c["c1"]):
        out = out + (c["beta1"][i] * dw + c["beta2"][i] * chi) @ g(t + c1 * h, x)
    return out


def sri(t, x, h, f, g, dw, dz, c):
    """Rößler's SRI, with χ1 = I_11/√h, χ2 = I_10/h, χ3 = I_111/h of each source."""
    m, s = len(dw), len(c["alpha"])
    chi1 = (dw**2 - h) / (2 * sqrt(h))
    chi2 = (dw + dz / sqrt(3)) / 2
    chi3 = (dw**3 - 3 * h * dw) / (6 * h)
    fs, gs = [], []
    for i in range(s):
        h0 = x + h * sum((c["A0"][i][j] * fs[j] for j in range(i)), 0.0)
        for k in range(m):
            h0 = h0 + chi2[k] * sum((c["B0"][i][j] * gs[j][k] for j in range(i)), 0.0)
        hk = []
        for k in range(m):
            at = x + h * sum((c["A1"][i][j] * fs[j] for j in range(i)), 0.0)
            own = sum((c["B1"][i][j] * gs[j][k] for j in range(i)), 0.0)
            hk.append(at + sqrt(h) * own)
        c0, c1 = sum(c["A0"][i][:i]), sum(c["A1"][i][:i])
        fs.append(f(t + c0 * h, h0))
        gs.append([g(t + c1 * h, hk[k])[k] for k in range(m)])
    out = x + h * sum(c["alpha"][i] * fs[i] for i in range(s))
    for i in range(s):
        for k in range(m):
            weight = c["beta1"][i] * dw[k] + c["beta2"][i] * chi1[k]
            weight += c["beta3"][i] * chi2[k] + c["beta4"][i] * chi3[k]
            out = out + weight * gs[i][k]
    return out


def ri(t, x, h, f, g, dw, dz, c):
    """Debrabant and Rößler's form, with the variables of their equation (3)."""
    m, root = len(dw), sqrt(h)
    ik = np.array([three_point(w, h) for w in dw])
    tilde = [two_point(z, h) for z in dz]

    def double(k, other):
        if k < other:
            return (ik[k] * ik[other] - root * tilde[k]) / 2
        return (ik[k] * ik[other] + root * tilde[other]) / 2

    f1, g1 = f(t, x), g(t, x)
    noise = ik @ g1
    f2 = f(t + c["a021"] * h, x + c["a021"] * h * f1 + c["b021"] * noise)
    at = x + h * (c["a031"] * f1 + c["a032"] * f2) + c["b031"] * noise
    f3 = f(t + (c["a031"] + c["a032"]) * h, at)
    drift = c["alpha"][0] * f1 + c["alpha"][1] * f2 + c["alpha"][2] * f3
    out = x + h * drift
    late, side = c["a121"], c["b121"]
    g2 = [g(t + late * h, x + late * h * f1 + side * root * g1[k])[k] for k in range(m)]
    g3 = [g(t + late * h, x + late * h * f1 - side * root * g1[k])[k] for k in range(m)]
    for k in range(m):
        chi = (ik[k] ** 2 - h) / 2 / root
        for beta1, beta2, value in zip(
            c["beta1"], c["beta2"], (g1[k], g2[k], g3[k]), strict=True
        ):
            out = out + (beta1 * ik[k] + beta2 * chi) * value
    if c["beta3"] is None:
        return out
    for other in range(m):
        b2 = c["b22"]
        lead = root * (b2[0] * g1[other] + b2[1] * g2[other] + b2[2] * g3[other])
        places = (g1, g(t, x + lead), g(t, x - lead))
        for k in range(m):
            if k != other:
                for beta3, beta4, there in zip(
                    c["beta3"], c["beta4"], places, strict=True
                ):
                    weight = beta3 * ik[k] + beta4 * double(k, other) / root
                    out = out + weight * there[k]
    return out


def rdi1wm(t, x, h, f, g, dw, dz, _):
    noise = np.array([three_point(w, h) for w in dw]) @ g(t, x)
    f1 = f(t, x)
    f2 = f(t + 2 * h / 3, x + 2 / 3 * h * f1 + 2 / 3 * noise)
    return x + h * (f1 + 3 * f2) / 4 + noise


def rs(t, x, h, f, g, dw, dz, c):
    """Rößler's form for Stratonovich, equations (5.1) and (5.2) of 2007."""
    m, root = len(dw), sqrt(h)
    ik = np.array([three_point(w, h) for w in dw])
    tilde = [two_point(z, h) for z in dz]

    def double(k, other):
        return ik[k] * tilde[other] if other < k else -ik[other] * tilde[k]

    f1, g1 = f(t, x), g(t, x)
    a21, a31, a32 = c["a0"]
    f2 = f(t + a21 * h, x + a21 * h * f1)
    g2 = [g(t, x + 2 / 3 * ik[k] * g1[k])[k] for k in range(m)]
    quarters = [ik[k] * (g1[k] + 3 * g2[k]) / 4 for k in range(m)]
    f3 = f(t + (a31 + a32) * h, x + h * (a31 * f1 + a32 * f2) + sum(quarters))
    g3, g4 = [], []
    for k in range(m):
        rest = sum((quarters[j] for j in range(m) if j != k), 0.0)
        at = x + h * f1 + rest + ik[k] * (g1[k] / 12 + g2[k] / 4)
        g3.append(g(t + h, at)[k])
        own = -5 / 4 * g1[k] + g2[k] / 4 + 2 * g3[k]
        g4.append(g(t + h, x + h * f1 + rest + ik[k] * own)[k])
    drifts = (f1, f2, f3, f1)
    out = x + h * sum(a * v for a, v in zip(c["alpha"], drifts, strict=True))
    for k in range(m):
        out = out + ik[k] * (g1[k] + 3 * g2[k] + 3 * g3[k] + g4[k]) / 8
        lead = sum((g1[j] * double(k, j) / root for j in range(m) if j != k), 0.0)
        out = out + root * (g(t, x - lead)[k] - g(t, x + lead)[k]) / 4
    return out


def w2ito(t, x, h, f, g, dw, dz, c):
    """Tang and Xiao's form, equation (3.1), at the times of the row sums."""
    m, s = len(dw), len(c["alpha"])
    ik = np.array([three_point(w, h) for w in dw])
    xi = two_point(dz[0], h)
    eta = np.sign(two_point(dz[1], h)) if m > 1 else 1.0
    fs, gs = [], []
    for i in range(s):
        h0 = x + h * sum((c["A0"][i][j] * fs[j] for j in range(i)), 0.0)
        for k in range(m):
            h0 = h0 + ik[k] * sum((c["B0"][i][j] * gs[j][k] for j in range(i)), 0.0)
        places = []
        for k in range(m):
            at = x + h * sum((c["A1"][i][j] * fs[j] for j in range(i)), 0.0)
            at = at + xi * sum((c["B1"][i][j] * gs[j][k] for j in range(i)), 0.0)
            for other in range(m):
                if other != k:
                    double = ik[other] * (1 - eta if k < other else 1 + eta) / 2
                    moved = (c["B2"][i][j] * gs[j][other] for j in range(i))
                    at = at + double * sum(moved, 0.0)
            places.append(at)
        fs.append(f(t + sum(c["A0"][i]) * h, h0))
        gs.append([g(t + sum(c["A1"][i]) * h, places[k])[k] for k in range(m)])
    out = x + h * sum(c["alpha"][i] * fs[i] for i in range(s))
    for i in range(s):
        for k in range(m):
            double = (ik[k] ** 2 / xi - xi) / 2
            weight = c["beta0"][i] * ik[k] + c["beta1"][i] * double
            out = out + weight * gs[i][k]
    return out


def sie(t, x, h, f, g, dw, dz, c):
    """Tocino and Vigo-Aguiar's form, with Greek letters as theirs."""
    root, f0, g0 = sqrt(h), f(t, x), g(t, x)
    q = c["nu1"] * dw + c["nu2"] * dw**3 / h
    late = f(t + c["lambda0"] * h, x + c["lambda0"] * h * f0 + q @ g0)
    out = x + h * (c["alpha1"] * f0 + c["alpha2"] * late)
    bar = c["lambdabar0"]
    for k, w in enumerate(dw):
        square = w**2 / root
        out = out + c["gamma1"] * w * g0[k]
        for weights, move in (("lambda", "beta"), ("mu", "delta")):
            by = c[move + "2"] * root + c[move + "3"] * square
            there = g(t + bar * h, x + bar * h * f0 + by * g0[k])[k]
            one, two, three = (c[f"{weights}{n}"] for n in (1, 2, 3))
            out = out + (one * w + two * root + three * square) * there
    return out


# ---------------------------------------------------------------- their coefficients


def lower(*rows):
    """Rows below the diagonal, filled with zeros."""
    return [list(map(float, row)) + [0.0] * (len(rows) - len(row)) for row in rows]


SRA1 = {
    "alpha": [1 / 3, 2 / 3],
    "A0": lower((), (3 / 4,)),
    "B0": lower((), (3 / 2,)),
    "c0": [0, 3 / 4],
    "c1": [1, 0],
    "beta1": [1, 0],
    "beta2": [-1, 1],
}
SOSRA = {
    "alpha": [0.2889874966892885, 0.6859880440839937, 0.025024459226717772],
    "A0": lower((), (0.6923962376159507,), (-3.1609142252828395, 4.1609142252828395)),
    "B0": lower((), (1.3371632704399763,), (1.442371048468624, 1.8632741501139225)),
    "c0": [0, 0.6923962376159507, 1],
    "c1": [0, 0.041248171110700504, 1],
    "beta1": [-16.792534242221663, 17.514995785380226, 0.27753845684143835],
    "beta2": [0.4237535769069274, 0.6010381474428539, -1.0247917243497813],
}
SRIW1 = {
    "alpha": [1 / 3, 2 / 3, 0, 0],
    "A0": lower((), (3 / 4,), (), ()),
    "A1": lower((), (1 / 4,), (1,), (0, 0, 1 / 4)),
    "B0": lower((), (3 / 2,), (), ()),
    "B1": lower((), (1 / 2,), (-1,), (-5, 3, 1 / 2)),
    "beta1": [-1, 4 / 3, 2 / 3, 0],
    "beta2": [-1, 4 / 3, -1 / 3, 0],
    "beta3": [2, -4 / 3, -2 / 3, 0],
    "beta4": [-2, 5 / 3, -2 / 3, 1],
}
SOSRI = {
    "alpha": [
        1.140099274172029,
        -0.6401334255743456,
        0.4736296532772559,
        0.026404498125060714,
    ],
    "A0": lower(
        (),
        (-0.04199224421316468,),
        (2.842612915017106, -2.0527723684000727),
        (4.338237071435815, -2.8895936137439793, 2.3017575594644466),
    ),
    "A1": lower(
        (),
        (0.26204282091330466,),
        (0.20903646383505375, -0.1502377115150361),
        (0.05836595312746999, 0.6149440396332373, 0.08535117634046772),
    ),
    "B0": lower(
        (),
        (-0.21641093549612528,),
        (1.5336352863679572, 0.26066223492647056),
        (-1.0536037558179159, 1.7015284721089472, -0.20725685784180017),
    ),
    "B1": lower(
        (),
        (-0.5119011827621657,),
        (2.67767339866713, -4.9395031322250995),
        (0.15580956238299215, 3.2361551006624674, -1.4223118283355949),
    ),
    "beta1": [
        -1.8453464565104432,
        2.688764531100726,
        -0.2523866501071323,
        0.40896857551684956,
    ],
    "beta2": [
        0.4969658141589478,
        -0.5771202869753592,
        -0.12919702470322217,
        0.2093514975196336,
    ],
    "beta3": [
        2.8453464565104425,
        -2.688764531100725,
        0.2523866501071322,
        -0.40896857551684945,
    ],
    "beta4": [
        0.11522663875443433,
        -0.57877086147738,
        0.2857851028163886,
        0.17775911990655704,
    ],
}


def ri_table(a021, a031, a032, b021, b031, alpha, a121=1, b121=1, **other):
    """The numbers of an RI scheme; those that most of them share are left out."""
    table = {
        "beta1": ("1/2", "1/4", "1/4"),
        "beta2": (0, "1/2", "-1/2"),
        "beta3": ("-1/2", "1/4", "1/4"),
        "beta4": (0, "1/2", "-1/2"),
        "b22": (1, 0, 0),
    }
    numbers = {"a021": a021, "a031": a031, "a032": a032, "b021": b021, "b031": b031}
    table |= {**numbers, "alpha": alpha, "a121": a121, "b121": b121, **other}

    def number(value):
        if isinstance(value, tuple):
            return [number(x) for x in value]
        return value if value is None else float(Fraction(value))

    return {name: number(value) for name, value in table.items()}


DRI1 = ri_table(
    *("1/2", -1, 2, (6 - sqrt(6)) / 10, (3 + 2 * sqrt(6)) / 5, ("1/6", "2/3", "1/6")),
    a121="342/491",
    b121=3 * sqrt(38 / 491),
    beta1=("193/684", "491/1368", "491/1368"),
    beta2=(0, sqrt(491 / 38) / 6, -sqrt(491 / 38) / 6),
    beta3=("-4955/7072", "4955/14144", "4955/14144"),
    beta4=(0, -sqrt(4955 / 221) / 8, sqrt(4955 / 221) / 8),
    b22=(-214 / 513 * sqrt(1105 / 991), *2 * (-491 / 513 * sqrt(221 / 4955),)),
)
RI = {
    "DRI1": DRI1,
    "DRI1NM": {**DRI1, "beta3": None},
    "RI1": ri_table("2/3", "-1/3", 1, 1, 0, ("1/4", "1/2", "1/4")),
    "RI3": ri_table(
        *(1, "1/4", "1/4", (3 - 2 * sqrt(6)) / 5, (6 + sqrt(6)) / 10),
        ("1/6", "1/6", "2/3"),
    ),
    "RI5": ri_table(
        *(1, "25/144", "35/144", "1/3", "-5/6", ("1/10", "3/14", "24/35")),
        a121="1/4",
        b121="1/2",
        beta1=(1, -1, -1),
        beta2=(0, 1, -1),
        beta3=("1/2", "-1/4", "-1/4"),
    ),
    "RI6": ri_table(1, 0, 0, 1, 0, ("1/2", "1/2", 0)),
}
RS = {
    "RS1": {"alpha": [0, 0, 1 / 2, 1 / 2], "a0": (0, 1, 0)},
    "RS2": {"alpha": [1 / 4, 1 / 4, 1 / 2, 0], "a0": (2 / 3, 1 / 6, 1 / 2)},
}
W2ITO = {
    "W2Ito1": {
        "alpha": [1 / 6, 2 / 3, 1 / 6],
        "beta0": [-1, 1, 1],
        "beta1": [2, 0, -2],
        "A0": lower((), (1 / 2,), (-1, 2)),
        "B0": lower((), ((6 - sqrt(6)) / 10,), ((3 + 2 * sqrt(6)) / 5,)),
        "A1": lower((), (1 / 4,), (1 / 4,)),
        "B1": lower((), (1 / 2,), (-1 / 2,)),
        "B2": lower((), (1,), ()),
    },
    "W2Ito2": {
        "alpha": [1 / 6, 1 / 3, 1 / 3, 1 / 6],
        "beta0": [0, -1, 1, 1],
        "beta1": [0, 2, 0, -2],
        "A0": lower((), (1 / 2,), (0, 1 / 2), (0, 0, 1)),
        "B0": lower((), (), (0, 1), (0, 1)),
        "A1": lower((), (1 / 2,), (1 / 2,), (1 / 2,)),
        "B1": lower((), (), (0, 1 / 2), (0, -1 / 2)),
        "B2": lower((), (), (0, 1), ()),
    },
}
IMPROVED = {"alpha1": 1 / 2, "alpha2": 1 / 2, "lambda0": 1.0, "nu1": 1.0, "nu2": 0.0}
MODIFIED = {"alpha1": 0, "alpha2": 1, "lambda0": 1 / 2}
MODIFIED |= {"nu1": (2 - sqrt(6)) / 4, "nu2": sqrt(6) / 12}
A = {"gamma1": 1 / 2, "lambdabar0": 1, "beta2": 1, "beta3": 0, "delta2": -1}
A |= {"delta3": 0, "lambda1": 1 / 4, "lambda2": -1 / 4, "lambda3": 1 / 4}
A |= {"mu1": 1 / 4, "mu2": 1 / 4, "mu3": -1 / 4}
B = {"gamma1": -1 / 5, "lambdabar0": 5 / 12, "beta2": 0, "beta3": -1 / 6, "delta2": 0}
B |= {"delta3": 1 / 6, "lambda1": 3 / 5, "lambda2": 3 / 2, "lambda3": -1 / 2}
B |= {"mu1": 3 / 5, "mu2": -3 / 2, "mu3": 1 / 2}

PUBLISHED = {
    "EulerMaruyama": (maruyama, None),
    "EulerHeun": (heun, None),
    "RKMilstein": (milstein, None),
    "SRA1": (sra, SRA1),
    "SOSRA": (sra, SOSRA),
    "SRIW1": (sri, SRIW1),
    "SOSRI": (sri, SOSRI),
    "RDI1WM": (rdi1wm, None),
    **{name: (ri, table) for name, table in RI.items()},
    **{name: (rs, table) for name, table in RS.items()},
    **{name: (w2ito, table) for name, table in W2ITO.items()},
    "SIEA": (sie, IMPROVED | A),
    "SMEA": (sie, MODIFIED | A),
    "SIEB": (sie, IMPROVED | B),
    "SMEB": (sie, MODIFIED | B),
}


# --------------------------------------------------------------------- the equations


def drift(t, x):
    """Two numbers, coupled, all of it timed; x of any number of rows."""
    t = np.asarray(t)[..., None]
    u, v = x[..., :1], x[..., 1:]
    return np.concatenate([np.sin(t) - u * v, np.cos(u) + t * v], -1)


def diffusion(kind, m):
    """g of (t, x); shape (…, sources, 2)."""

    def g(t, x):
        t = np.asarray(t)
        u, v = x[..., 0], x[..., 1]
        zero = 0 * u
        if kind == "scalar":
            rows = [(0.4 * np.cos(t) + 0.3 * np.sin(u), 0.5 + 0.2 * u * v + t)]
        elif kind == "additive":
            rows = [(np.cos(t), 1 + t), (0.3 - t, 0.7 + zero)]
        elif kind == "diagonal":
            rows = [(np.cos(t) + 0.3 * np.sin(u), zero), (zero, 0.8 + t + 0.4 * v**2)]
        else:
            rows = [
                (0.5 + 0.3 * np.sin(v + t), 0.4 * u),
                (0.2 * u * v, 0.6 - 0.3 * np.cos(u) * (1 + t)),
                (0.3 * v + 0.1 * t, 0.2 * u**2 - 0.4),
            ]
        rows = [np.stack(np.broadcast_arrays(*row, u)[:2], -1) for row in rows[:m]]
        return np.stack(rows, -2)

    return g


CASES = [
    (name, kind, m)
    for name in PUBLISHED
    for kind, m in (
        ("scalar", 1),
        ("additive", 2),
        ("diagonal", 2),
        ("mixing", 2),
        ("mixing", 3),
    )
    if {"diagonal": kind != "mixing", "additive": kind == "additive"}.get(
        getattr(integrate, name).noise, True
    )
]


@pytest.mark.filterwarnings("ignore:.*attains its order for two sources:RuntimeWarning")
@pytest.mark.parametrize(("name", "kind", "m"), CASES)
def test_two_steps_are_the_published_ones(name, kind, m):
    """Seven worlds, each with its own start and noise, exact to rounding."""
    step, table = PUBLISHED[name]
    rng = np.random.default_rng(m)
    n = 7
    dw, dz = rng.normal(size=(2, 2, n, m)) * sqrt(H)
    start = rng.normal(size=(n, 2))
    g = diffusion(kind, m)
    process = Given(start, drift, g, m)
    sim = make(getattr(integrate, name)(), H, n, process)
    w, z = torch.tensor(dw), torch.tensor(dz)
    sim.integration.prescribe_noise(w, brownian_integrals(w, z, H))
    x = start
    for n_step in range(2):
        sim.step()
        x = np.array(
            [
                step(n_step * H, x[i], H, drift, g, dw[n_step, i], dz[n_step, i], table)
                for i in range(n)
            ]
        )
        np.testing.assert_allclose(process.value.numpy(), x, rtol=1e-12, atol=1e-12)


def test_platen_is_ri6_with_normal_increments():
    """One source, by the formula of Kloeden and Platen, (15.1.1)."""
    rng = np.random.default_rng(5)
    n, g = 5, diffusion("scalar", 1)
    dw, start = rng.normal(size=(1, n, 1)) * sqrt(H), rng.normal(size=(n, 2))
    process = Given(start, drift, g, 1)
    sim = make(integrate.PlatenWeak2(), H, n, process)
    sim.integration.prescribe_noise(torch.tensor(dw))
    sim.step()
    for x, w, got in zip(start, dw[0, :, 0], process.value.numpy(), strict=True):
        f0, g0 = drift(0.0, x), g(0.0, x)[0]
        end = drift(H, x + H * f0 + w * g0)
        plus = g(H, x + H * f0 + sqrt(H) * g0)[0]
        minus = g(H, x + H * f0 - sqrt(H) * g0)[0]
        want = x + H * (f0 + end) / 2 + w * (plus + minus + 2 * g0) / 4
        want = want + (plus - minus) * (w**2 - H) / (4 * sqrt(H))
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


def test_integrals_are_those_of_the_two_increments():
    """Cov(W, ∫W) = h²/2 and Var ∫W = h³/3, from unit variances of dW and dZ alone."""
    h = 0.3
    unit = torch.eye(2, dtype=torch.float64) * sqrt(h)  # dW alone, then dZ alone
    parts = brownian_integrals(unit[:, 0], unit[:, 1], h)
    assert float(unit[:, 0] @ parts) == pytest.approx(h**2 / 2, rel=1e-14)
    assert float(parts @ parts) == pytest.approx(h**3 / 3, rel=1e-14)
