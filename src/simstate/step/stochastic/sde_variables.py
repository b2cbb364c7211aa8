"""The random variables of one step, from the increments of two Brownian motions.

Each source k has the increment W_k of its own Brownian motion over the step, and Z_k,
that of an independent one with the same variance h. All other variables of a scheme
follow from the two: ∫(W(s) − W(0)) ds = h/2 (W_k + Z_k/√3), signs, three-point values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from simstate.base.checks import instance_of, number

_ONE_SIXTH = 0.9674215661017014
"""A standard normal variable exceeds this value with a probability of 1/6."""


def brownian_integrals(
    increments: Tensor, second_increments: Tensor, timestep: float
) -> Tensor:
    """Return ∫(W(s) − W(0)) ds over each step [s^1.5], from independent increments.

    StochasticDiffEq.jl calls the two arguments dW and dZ; the result is the argument
    `integrals` of `prescribe_noise`.

    Args:
        increments: W over each step [√s], of any shape.
        second_increments: those of the second Brownian motion [√s], likewise.
        timestep: the length of a step [s].
    """
    instance_of("increments", increments, Tensor)
    instance_of("second_increments", second_increments, Tensor)
    number("timestep", timestep, more_than=0, unit="s")
    return timestep / 2 * (increments + second_increments / math.sqrt(3.0))


@dataclass(frozen=True)
class RandomVariables:
    """The random variables of one step by name, all in √s."""

    own: dict[str, Tensor]
    """Variables of each source; shape (num_envs, sources)."""
    pair: dict[str, Tensor]
    """Variables of sources k and l; (num_envs, sources, sources), [:, k, l]."""


Draw = Callable[[int], Tensor]
"""Function of a count that returns standard normal values; shape (num_envs, count)."""


def gaussian(w: Tensor, z: Tensor, h: float, draw: Draw) -> RandomVariables:
    """Return iterated integrals of each path: I, I_kk/√h, I_k0/h, I_kkk/h, powers."""
    del draw
    root = math.sqrt(h)
    own = {
        "root_h": torch.full_like(w, root),
        "I": w,
        "II": (w**2 - h) / (2 * root),
        "I0": (w + z / math.sqrt(3.0)) / 2,
        "III": (w**3 - 3 * h * w) / (6 * h),
        "I^2": w**2 / root,
        "I^3": w**3 / h,
    }
    return RandomVariables(own, {"I": _of_source(w)})


def platen(w: Tensor, z: Tensor, h: float, draw: Draw) -> RandomVariables:
    """Return normal increments, and a random sign for each pair."""
    num_envs, sources = w.shape
    found = gaussian(w, z, h, draw)
    signs = draw(sources**2).sign().reshape(num_envs, sources, sources).triu(1)
    mixed = _products(w) + h * (signs - signs.transpose(1, 2))
    found.pair["IJ"] = mixed / (2 * math.sqrt(h))
    return found


def three_point(w: Tensor, z: Tensor, h: float, draw: Draw) -> RandomVariables:
    """Return Debrabant and Rößler's variables: Î is 0 or ±√(3h), pairs use Z's sign.

    Î_(k,l) = (Î_k Î_l ∓ √h Z̃)/2, with − and Z̃_k for k < l, + and Z̃_l for l < k, where
    Z̃ = ±√h.
    """
    del draw
    root, i = math.sqrt(h), _thirds(w, h)
    own = {"root_h": torch.full_like(w, root), "I": i, "II": (i**2 - h) / (2 * root)}
    sign = _signs(z)[:, :, None].expand(-1, -1, w.shape[1]).triu(1)  # of k < l
    integral = (_products(i) - h * (sign - sign.transpose(1, 2))) / 2
    # Î_(k,l) multiplies source k at the state of source l.
    pair = {"I": _of_source(i), "IJ": integral.transpose(1, 2) / root}
    return RandomVariables(own, pair)


def stratonovich(w: Tensor, z: Tensor, h: float, draw: Draw) -> RandomVariables:
    """Return Rößler's variables: Î_(k,l) is Î_k Z̃_l for l < k, −Î_l Z̃_k for k < l."""
    del draw
    root, i = math.sqrt(h), _thirds(w, h)
    area = (i[:, :, None] * root * _signs(z)[:, None, :]).tril(-1)
    pair = {"I": _of_source(i), "IJ": (area - area.transpose(1, 2)) / root}
    return RandomVariables({"root_h": torch.full_like(w, root), "I": i}, pair)


def tang_xiao(w: Tensor, z: Tensor, h: float, draw: Draw) -> RandomVariables:
    """Return Tang and Xiao's variables: ξ = ±√h has the first Z's sign, η the second's.

    Î_(k,k) = (Î_k²/ξ − ξ)/2, and Î_(k,l) is Î_l or 0: (1 ∓ η)/2 Î_l for k ≶ l.
    """
    del draw
    i, sources, signs = _thirds(w, h), w.shape[1], _signs(z)
    xi = math.sqrt(h) * signs[:, :1].expand(-1, sources)
    own = {"I": i, "xi": xi, "II": (i**2 / xi - xi) / 2}
    pair = {"I": _of_source(i)}
    if sources > 1:
        eta = signs[:, 1, None, None] * torch.ones_like(_products(i))
        pair["IJ"] = (1 - eta.triu(1) + eta.tril(-1)) / 2 * _of_source(i)
    return RandomVariables(own, pair)


VARIABLES: dict[str, Callable[[Tensor, Tensor, float, Draw], RandomVariables]] = {
    "gaussian": gaussian,
    "platen": platen,
    "three-point": three_point,
    "stratonovich": stratonovich,
    "tang-xiao": tang_xiao,
}
"""Functions that compute the variables of each kind from W, Z, h and further draws."""


def _thirds(w: Tensor, h: float) -> Tensor:
    """Return ±√(3h) where W is in an outer sixth of its distribution, else 0; as w."""
    outer = (w / math.sqrt(h)).abs() > _ONE_SIXTH
    return math.sqrt(3 * h) * w.sign() * outer


def _signs(z: Tensor) -> Tensor:
    """Return 1 where Z > 0, else −1; as z."""
    return 2.0 * (z > 0).to(z.dtype) - 1.0


def _of_source(values: Tensor) -> Tensor:
    """Return the values of l at [:, k, l]; (num_envs, sources, sources)."""
    return values[:, None, :].expand(-1, values.shape[1], -1)


def _products(values: Tensor) -> Tensor:
    """Return the products of k and l at [:, k, l]; (num_envs, sources, sources)."""
    return values[:, :, None] * values[:, None, :]
