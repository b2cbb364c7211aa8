"""Events that draw masses, centres of mass and inertias of links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.observations import ROBOT
from simstate.env.parameter_events import (
    Distribution,
    Operation,
    about,
    model_ids,
    nominal,
)
from simstate.env.random_poses import DIRECTIONS, NO_RANGE, drawn_vectors, spans_of
from simstate.env.scene_needs import moves_com
from simstate.math import quaternion
from simstate.math.vector import principal_axes

if TYPE_CHECKING:
    from simstate.env.env import Env

_PLANES = ("xy", "xz", "yz")


@resolves_entities
def randomize_mass(
    env: Env,
    env_ids: Tensor,
    mass_range: Range,
    operation: Operation = "scale",
    distribution: Distribution = "uniform",
    shared: bool = False,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the mass of each chosen link [kg]; its inertia is scaled accordingly.

    `distribution` and `shared` (one draw for all links of a world) are as in
    `randomize_parameter`.
    """
    bodies = model_ids(env, asset_cfg, "body")
    mass = about(
        env, env_ids, "body_mass", bodies, mass_range, operation, distribution, shared
    )
    if not bool((mass > 0.0).all()):
        raise InvalidInputError(
            f"mass_range {mass_range} with operation {operation!r} makes a mass of "
            f"{float(mass.min())} kg: it must stay > 0.",
            name="mass_range",
        )
    ratio = mass / nominal(env, "body_mass", bodies)
    inertia = nominal(env, "body_inertia", bodies) * ratio[..., None]
    env.sim.write_parameter("body_mass", mass, bodies, env_ids)
    env.sim.write_parameter("body_inertia", inertia, bodies, env_ids)


@moves_com
@resolves_entities
def randomize_com(
    env: Env,
    env_ids: Tensor,
    com_range: Mapping[str, Range],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Move the centre of mass of each chosen link, in the link's axes [m].

    Ranges by "x", "y", "z".
    """
    bodies = model_ids(env, asset_cfg, "body")
    shift = drawn_vectors(env, env_ids, len(bodies), com_range)
    position = nominal(env, "body_ipos", bodies) + shift
    env.sim.write_parameter("body_ipos", position, bodies, env_ids)


@moves_com
@resolves_entities
def randomize_pseudo_inertia(
    env: Env,
    env_ids: Tensor,
    density_range: Range = (0.0, 0.0),
    stretch_range: Mapping[str, Range] = NO_RANGE,
    shear_range: Mapping[str, Range] = NO_RANGE,
    com_range: Mapping[str, Range] = NO_RANGE,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw mass, COM and inertia of each chosen link, physically consistent.

    The mass distribution is transformed: points x about the COM move to U·x + shift,
    link axes, with U = [[eᵈˣ, s_xy, s_xz], [0, eᵈʸ, s_yz], [0, 0, eᵈᶻ]], and the
    density is scaled by e²ᵃ. These are the ten parameters of the log-Cholesky form of
    the 4×4 pseudo-inertia (Rucker and Wensing 2022), so every draw is realisable.

    Args:
        env: the environment.
        env_ids: the worlds.
        density_range: a; the mass is scaled by e²ᵃ.
        stretch_range: d by "x", "y", "z".
        shear_range: s by "xy", "xz", "yz".
        com_range: the shift of the COM by "x", "y", "z" [m].
        asset_cfg: the entity and its links.
    """
    bodies = model_ids(env, asset_cfg, "body")
    mass = nominal(env, "body_mass", bodies)
    if not bool((mass > 0.0).all()):
        names = asset_cfg.names_of("body")
        empty = [n for n, m in zip(names, mass[0], strict=True) if float(m) <= 0.0]
        raise InvalidInputError(
            f"The links {listed(empty)} have no mass that could be distributed "
            "differently: choose others with body_names.",
            name="mass",
        )
    spans = torch.cat(
        [
            torch.tensor([density_range], dtype=mass.dtype, device=mass.device),
            spans_of(env, stretch_range, DIRECTIONS[:3]),
            spans_of(env, shear_range, _PLANES),
            spans_of(env, com_range, DIRECTIONS[:3]),
        ]
    )
    shares = env.rng.uniform(env_ids, 10 * len(bodies)).reshape(-1, len(bodies), 10)
    drawn = spans[:, 0] + (spans[:, 1] - spans[:, 0]) * shares
    density = (2.0 * drawn[..., 0]).exp()
    moment, rot = _second_moment(env, bodies)
    moved = _upper(drawn[..., 1:4].exp(), drawn[..., 4:7]) @ rot
    moved = (moved * moment[..., None, :]) @ moved.mT
    principal, axes = principal_axes(density[..., None, None] * moved)
    inertia = principal.sum(-1, keepdim=True) - principal
    position = nominal(env, "body_ipos", bodies) + drawn[..., 7:]
    for field, values in {
        "body_mass": density * mass,
        "body_ipos": position,
        "body_iquat": quaternion.from_matrix(axes),
        "body_inertia": inertia,
    }.items():
        env.sim.write_parameter(field, values, bodies, env_ids)


def _second_moment(env: Env, bodies: list[int]) -> tuple[Tensor, Tensor]:
    """Integrals of x², y², z² over the mass about the COM, principal axes; (1, E, 3).

    With the rotation from principal to link axes; (1, E, 3, 3).
    """
    inertia = nominal(env, "body_inertia", bodies)
    moment = 0.5 * inertia.sum(-1, keepdim=True) - inertia
    return moment.clamp(min=0.0), quaternion.to_matrix(
        nominal(env, "body_iquat", bodies)
    )


def _upper(diagonal: Tensor, above: Tensor) -> Tensor:
    """Upper triangular matrices; (…, 3) and (…, 3) → (…, 3, 3)."""
    (xx, yy, zz), (xy, xz, yz) = diagonal.unbind(-1), above.unbind(-1)
    zero = torch.zeros_like(xx)
    rows = [(xx, xy, xz), (zero, yy, yz), (zero, zero, zz)]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)
