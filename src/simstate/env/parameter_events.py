"""Events for any parameter of the model, drawn by world.

`randomize_parameter` draws relative to the model's value and changes one field;
`draw_fitted_parameters` draws from a fitted distribution. The specific events of
`simstate.env.events` also change related fields (inertia with mass, damping with
stiffness).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import mujoco
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed, unknown_name, warn
from simstate.engine.engine import model_value
from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.env_cfg import EnvCfg, EventTermCfg
from simstate.env.observations import ROBOT
from simstate.env.scene_needs import moves_com
from simstate.math.elementwise import power
from simstate.scene.element_names import OBJECTS, OBJECTS_OF_FIELDS
from simstate.study.identification.fitted_parameters import FittedParameters

if TYPE_CHECKING:
    from simstate.env.env import Env

Operation = Literal["scale", "add", "set"]
Distribution = Literal["uniform", "log_uniform", "gaussian"]


@resolves_entities
def randomize_parameter(
    env: Env,
    env_ids: Tensor,
    field: str,
    value_range: Range,
    operation: Operation = "scale",
    distribution: Distribution = "uniform",
    names: str | Sequence[str] = ".*",
    columns: Sequence[int] | None = None,
    shared: bool = False,
    asset_cfg: SceneEntityCfg | None = ROBOT,
) -> None:
    """Draw a field of MjModel for elements of an entity, in the field's own unit.

    Examples of `field` are "geom_friction", "site_pos", "light_diffuse", "jnt_range",
    "mat_rgba", "pair_friction" and "opt.gravity". `names` are regular expressions on
    the names of its elements, `columns` are indices within an element. `value_range` is
    (minimum, maximum), for "gaussian" (mean, standard deviation). With `shared`, all
    elements of a world get the same draws. With `asset_cfg=None` they are elements of
    the scene itself: its ground, cameras and lights.
    """
    own, elements = nominal(env, field, None), None
    if not field.startswith("opt."):
        owner = None if asset_cfg is None else asset_cfg.name
        elements = elements_of(env, owner, field, names)
        if field == "geom_rgba":
            _refuse_hidden_colours(env.sim.model, elements)
        own = own[:, elements]
    values = own.expand(env_ids.shape[0], *own.shape[1:]).clone()
    flat = values.reshape(
        env_ids.shape[0], 1 if elements is None else len(elements), -1
    )
    chosen = list(range(flat.shape[2])) if columns is None else list(columns)
    count = len(chosen) * (1 if shared else flat.shape[1])
    drawn = drawn_numbers(env, env_ids, count, value_range, distribution)
    drawn = drawn.reshape(env_ids.shape[0], -1, len(chosen)).to(flat)
    flat[:, :, chosen] = combined(flat[:, :, chosen], drawn, operation)
    env.sim.write_parameter(field, flat.reshape(values.shape), elements, env_ids)


@moves_com
@resolves_entities
def draw_fitted_parameters(
    env: Env, env_ids: Tensor, file: str, asset_cfg: SceneEntityCfg = ROBOT
) -> None:
    """Draw parameters from the distribution that `simstate identify` has fitted.

    Parameters that the scene does not have (a delay of actuators without
    `max_delay_s`, the bias of an encoder) are left out with a warning. `file` is its
    fit.json, and the elements belong to `asset_cfg`.
    """
    fitted = FittedParameters.load(file)
    count = len(fitted.parameters)
    drawn = fitted.sample(env.rng.normal(env_ids, count).cpu())
    missing = fitted.write(env.sim, drawn, env_ids)
    if missing:
        warn(f"{file}: the task does not have {', '.join(missing)}: left out.")


def with_fitted(cfg: EnvCfg, file: str) -> EnvCfg:
    """Return a task whose worlds draw fitted parameters at the start."""
    event = EventTermCfg(draw_fitted_parameters, params={"file": file}, mode="startup")
    return dataclasses.replace(cfg, events={**cfg.events, "fitted_parameters": event})


def elements_of(
    env: Env, entity: str | None, field: str, names: str | Sequence[str]
) -> list[int]:
    """Return the rows of a field that belong to an entity's elements of such names.

    None: elements of the scene that belong to no entity.
    """
    kind = field.partition("_")[0]
    if kind not in OBJECTS_OF_FIELDS:
        raise unknown_name("kind of parameter", kind, [*OBJECTS_OF_FIELDS, "opt"])
    model, object_type = env.sim.model, OBJECTS_OF_FIELDS[kind].value
    prefix = "" if entity is None else env.scene[entity].index.prefix
    others = tuple(one.index.prefix for one in env.scene.values())
    count = model.nv if kind == "dof" else len(model_value(model, field))
    owners = model.dof_jntid if kind == "dof" else range(count)
    patterns = [names] if isinstance(names, str) else names
    found: list[int] = []
    known: list[str] = []
    for row, owner in enumerate(owners):
        name = mujoco.mj_id2name(model, object_type, int(owner)) or ""
        if not name.startswith(prefix) or (entity is None and name.startswith(others)):
            continue
        known.append(name.removeprefix(prefix))
        if any(re.fullmatch(pattern, known[-1]) for pattern in patterns):
            found.append(row)
    if not found:
        raise InvalidInputError(
            f"randomize_parameter: no element of {field!r} of "
            f"{'the scene' if entity is None else repr(entity)} is named "
            f"{listed(patterns)}. There are {listed(known)}.",
            name=field,
        )
    return found


def _refuse_hidden_colours(model: mujoco.MjModel, geoms: Sequence[int]) -> None:
    """Raise for colours of geoms that are hidden by a material."""
    for geom in geoms:
        material = int(model.geom_matid[geom])
        if material >= 0:
            raise InvalidInputError(
                f"The colour of geom {model.geom(geom).name or geom!r} has no effect: "
                f"its material {model.mat(material).name!r} is drawn instead. Draw "
                '"mat_rgba" of the material.',
                name="mat_rgba",
            )


def drawn_numbers(
    env: Env, env_ids: Tensor, count: int, span: Range, distribution: Distribution
) -> Tensor:
    """Numbers of a distribution, float64; shape (n, count)."""
    low, high = span
    if distribution == "gaussian":
        if high < 0.0:
            raise InvalidInputError(f"A standard deviation is ≥ 0, got {high}.")
        return low + high * env.rng.normal(env_ids, count)
    if low > high:
        raise InvalidInputError(f"value_range must be (least, greatest), got {span}.")
    if distribution == "uniform":
        return env.rng.uniform(env_ids, count, low, high)
    if distribution == "log_uniform":
        if low <= 0.0:
            raise InvalidInputError(
                f"log_uniform needs a range > 0, got {span}.", name="log_uniform"
            )
        share = env.rng.uniform(env_ids, count)
        return low * power(share.new_tensor(high / low), share)
    raise unknown_name(
        "distribution", distribution, ("uniform", "log_uniform", "gaussian")
    )


def combined(nominal: Tensor, drawn: Tensor, operation: Operation) -> Tensor:
    """Return the model's values, changed by those that were drawn."""
    if operation == "scale":
        return nominal * drawn
    if operation == "add":
        return nominal + drawn
    if operation == "set":
        return drawn.expand_as(nominal)
    raise unknown_name("operation", operation, ("scale", "add", "set"))


def about(
    env: Env,
    env_ids: Tensor,
    name: str,
    elements: list[int],
    span: Range,
    operation: Operation,
    distribution: Distribution,
    shared: bool,
) -> Tensor:
    """Return a parameter drawn relative to the model's value; shape (n, elements)."""
    count = len(elements)
    drawn = spread(env, env_ids, count, span, distribution, shared)
    own = nominal(env, name, elements).expand(env_ids.shape[0], count)
    return combined(own, drawn, operation)


def spread(
    env: Env,
    env_ids: Tensor,
    count: int,
    span: Range,
    distribution: Distribution,
    shared: bool,
) -> Tensor:
    """Return a number for each of a world's elements, or one for all; (n, count)."""
    drawn = drawn_numbers(env, env_ids, 1 if shared else count, span, distribution)
    return drawn.expand(-1, count)


def nominal(env: Env, name: str, elements: list[int] | None) -> Tensor:
    """Return the model's values of a parameter, float64; shape (1, elements, …).

    `elements` is None for a parameter that is not one of elements, such as an option.
    """
    values = torch.as_tensor(model_value(env.sim.model, name))
    values = values.to(dtype=torch.float64, device=env.device)
    return (values if elements is None else values[elements])[None]


def model_ids(env: Env, asset_cfg: SceneEntityCfg, kind: str) -> list[int]:
    """Return the ids of the chosen elements in the compiled scene."""
    prefix = env.scene[asset_cfg.name].index.prefix
    return [
        mujoco.mj_name2id(env.sim.model, OBJECTS[kind].value, prefix + name)
        for name in asset_cfg.names_of(kind)
    ]
