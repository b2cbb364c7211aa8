"""Mirror images of observations that their contracts do not state.

Each function returns the signed permutation of a term's columns in the task's mirror
image, given the term's parameters; `@mirrors(…)` attaches it to the term.
"""

from __future__ import annotations

import torch

from simstate.base.errors import InvalidInputError
from simstate.entity.mirror import SignedPermutation
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.env.symmetry import Symmetry


def cos_sin(symmetry: Symmetry, asset_cfg: SceneEntityCfg) -> SignedPermutation:
    """Keep cosines; sines have the sign of their angle."""
    joints = symmetry.joints(asset_cfg)
    return SignedPermutation(
        tuple(2 * k + j for k in joints.index for j in (0, 1)),
        tuple(x for sign in joints.sign for x in (1.0, sign)),
    )


def scan(
    symmetry: Symmetry, size: tuple[float, float], spacing: float, **params: object
) -> SignedPermutation:
    """Reverse each row of points, which goes from right to left."""
    del params
    if symmetry.normal != "y":
        raise InvalidInputError("a scan is mirrored to the left and right only")
    across = len(torch.arange(-size[1] / 2.0, size[1] / 2.0 + 1e-9, spacing))
    along = len(torch.arange(-size[0] / 2.0, size[0] / 2.0 + 1e-9, spacing))
    row = SignedPermutation(tuple(range(across - 1, -1, -1)), (1.0,) * across)
    return row.repeated(along)


def between_sites(
    symmetry: Symmetry, asset_cfg: SceneEntityCfg, target_cfg: SceneEntityCfg
) -> SignedPermutation:
    """Mirror a vector between two sites that are their own mirror images."""
    for site in (asset_cfg, target_cfg):
        mirror = symmetry.of(site.name)
        mirror.columns_of(site.names_of("site"), mirror.site)
    return symmetry.vector("m")


def one_column_sensors(
    symmetry: Symmetry, asset_cfg: SceneEntityCfg, **params: object
) -> SignedPermutation:
    """Exchange sensors with one column, such as touch, with those of mirrored sites."""
    del params
    mirror = symmetry.of(asset_cfg.name)
    names = asset_cfg.names_of("sensor")
    if any(mirror.entity.sensor(name).shape[1] != 1 for name in names):
        raise InvalidInputError("it has sensors with several columns")
    return mirror.columns_of(names, mirror.sensor)


def contact_forces(symmetry: Symmetry, sensor_name: str) -> SignedPermutation:
    """Mirror forces on elements, which are polar vectors."""
    return symmetry.contacts(sensor_name, "N")


def momentum(symmetry: Symmetry, **params: object) -> SignedPermutation:
    """Mirror linear momentum as a polar vector, angular momentum as an axial one."""
    del params
    return symmetry.vector("kg·m/s").joined(symmetry.vector("kg·m²/s"))


def action(symmetry: Symmetry) -> SignedPermutation:
    """Return the mirror image of the action."""
    return symmetry.action


def command(symmetry: Symmetry, command_name: str) -> SignedPermutation:
    """Return the mirror image of the command."""
    return symmetry.env.commands[command_name].mirror(symmetry)


def command_offset(symmetry: Symmetry, command_name: str) -> SignedPermutation:
    """Return the mirror image of the command's offset."""
    return symmetry.env.commands[command_name].mirror_offset(symmetry)


def clock(symmetry: Symmetry, period_s: float) -> SignedPermutation:
    """Change the sign of both columns if a mirrored gait is half a period late."""
    del period_s
    shift = symmetry.cfg.phase_shift
    if shift is None:
        raise InvalidInputError(
            "EnvCfg.symmetry does not state the phase_shift of a mirrored gait: 0.5 "
            "if left and right alternate, 0 if they move together"
        )
    return SignedPermutation((0, 1), (1.0 - 4.0 * shift,) * 2)
