"""Events that rotate elements, change the headlight, and place worlds on a terrain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import mujoco
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.observations import ROBOT
from simstate.env.parameter_events import elements_of, nominal
from simstate.env.random_poses import DIRECTIONS, drawn_vectors
from simstate.math import euler, quaternion
from simstate.scene.cameras import HEADLIGHT

if TYPE_CHECKING:
    from simstate.env.env import Env


@resolves_entities
def randomize_orientation(
    env: Env,
    env_ids: Tensor,
    field: str,
    angle_range: Mapping[str, Range],
    names: str | Sequence[str] = ".*",
    asset_cfg: SceneEntityCfg | None = ROBOT,
) -> None:
    """Rotate elements of an entity from the model's attitude, about their own axes.

    `field` is "site_quat", "cam_quat", "geom_quat" or "body_quat", `names` are regular
    expressions; ranges by "roll", "pitch", "yaw" [rad]: yaw, then pitch, then roll,
    about the rotated axes. With `asset_cfg=None` they are elements of the scene itself.
    """
    if not field.endswith("quat"):
        raise InvalidInputError(
            f"randomize_orientation turns quaternions such as 'site_quat', got "
            f"{field!r}: use randomize_parameter for it.",
            name=field,
        )
    owner = None if asset_cfg is None else asset_cfg.name
    elements = elements_of(env, owner, field, names)
    angles = drawn_vectors(env, env_ids, len(elements), angle_range, DIRECTIONS[3:])
    turn = euler.to_quaternion(angles, "izyx")
    turned = quaternion.multiply(nominal(env, field, elements), turn)
    env.sim.write_parameter(field, turned, elements, env_ids)


def randomize_headlight(
    env: Env,
    env_ids: Tensor,
    ambient_range: Range = (1.0, 1.0),
    diffuse_range: Range = (1.0, 1.0),
    specular_range: Range = (1.0, 1.0),
) -> None:
    """Scale the headlight of a camera that is declared with `headlight=True`.

    One number for each of its three parts scales red, green and blue alike.
    """
    model = env.sim.model
    light = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_LIGHT.value, HEADLIGHT)
    if light < 0:
        raise InvalidInputError(
            "MuJoCo's headlight is common to all worlds: declare a camera of the scene "
            "with CameraCfg(headlight=True), which makes it a light of the scene.",
            name="headlight",
        )
    spans = {"ambient": ambient_range, "diffuse": diffuse_range,
             "specular": specular_range}  # fmt: skip
    for part, span in spans.items():
        own = nominal(env, f"light_{part}", [light])
        values = own * env.rng.uniform(env_ids, 1, *span)[..., None]
        env.sim.write_parameter(f"light_{part}", values, [light], env_ids)


def place_on_tile(
    env: Env, env_ids: Tensor, levels: tuple[int, int] | None = None
) -> None:
    """Draw the column and the level of the terrain tile of worlds.

    `levels` is (first, last), both included; None: all. An event that places the robot,
    such as `reset_root_state`, must follow it.
    """
    places = env.terrain
    if places is None:
        raise InvalidInputError(
            "place_on_tile needs a scene with a terrain.", name="terrain"
        )
    cfg = places.terrain.cfg
    first, last = levels or (0, cfg.levels - 1)
    if not 0 <= first <= last < cfg.levels:
        raise InvalidInputError(
            f"levels must be (first, last) of the terrain's 0 to {cfg.levels - 1}, got "
            f"{levels}."
        )
    shares = env.rng.uniform(env_ids, 2)
    counts = torch.tensor([last - first + 1, cfg.columns], device=shares.device)
    drawn = (shares * counts).long()
    places.level[env_ids] = (first + drawn[:, 0]).clamp(max=last)
    places.column[env_ids] = drawn[:, 1].clamp(max=cfg.columns - 1)
