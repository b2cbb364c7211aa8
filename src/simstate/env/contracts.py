"""Contracts of a term's values: declared at the term, or by what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from simstate.base.contract import UNDECLARED, UNSAID, Contract, spread
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.entity import Entity, Quantity
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.record.columns import component_units
from simstate.world.declared import Reading
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

Told: TypeAlias = Contract | Quantity | Reading
"""A contract, or what has one."""
Tells: TypeAlias = Callable[..., "Told | Sequence[Told]"]
"""`tells(env, **params)` returns it where it depends on the environment."""
Declared = TypeVar("Declared", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declaration:
    """Declaration that `contract` attaches to a function or a class."""

    told: Any
    """A contract, several, or a function that returns them; a type checker takes a
    quantity here for the number that it is in an entity's data."""


def contract(
    told: str | Told | Sequence[Told] | Tells,
    axes: str = UNDECLARED,
    point: str = UNDECLARED,
) -> Callable[[Declared], Declared]:
    """Say what the numbers are that an observation term returns.

    Recordings, data sets and the viewer carry it along. What nobody says is "not
    declared" there. A class term may have an attribute `contract`, which is a
    Contract, or a method of that name instead.

    Args:
        told: the unit, with `axes` and `point`; or the quantity or the reading that the
            term returns, whose contract it then has; or one of them for each number; or
            a function `(env, **params)` that gives this.
        axes: the axes that the numbers are components along; "–": none.
        point: the point that they belong to; "–": none.
    """
    whole = Contract(told, axes, point) if isinstance(told, str) else told

    def mark(term: Declared) -> Declared:
        term.contract = Declaration(whole)  # pyright: ignore[reportFunctionMemberAccess]
        return term

    return mark


def contracts_of(
    label: str, term: object, env: Env, params: Mapping[str, Any], count: int
) -> list[Contract]:
    """The contract of each of the numbers that a term returns."""
    told: Any = getattr(term, "contract", UNSAID)
    if isinstance(told, Declaration):
        told = told.told
    if callable(told):
        told = told(env, **params)
    chosen = next((p for p in params.values() if isinstance(p, SceneEntityCfg)), None)
    if isinstance(told, Quantity) and chosen is not None:
        told = quantity_contracts(
            env.scene[chosen.name], told, chosen.names_of("joint")
        )
    return checked(label, told, count)


def checked(label: str, told: Any, count: int) -> list[Contract]:
    """Return the contracts, if there is one for each of `count` values."""
    each: list[Any] = [told]
    if isinstance(told, list | tuple) and not isinstance(told, Contract):
        each = list(cast("Sequence[Any]", told))
    found = spread([_contract_of(label, one) for one in each], count)
    if found is None:
        raise ShapeError(
            f"The {label} has {count} columns, but contracts for {len(each)}.",
            name=label,
            shape=[count],
        )
    return found


def quantity_contracts(
    entity: Entity, quantity: Quantity, joints: Sequence[str]
) -> list[Contract]:
    """The contracts of a quantity's numbers, those of joints for some of them."""
    whole = _contract_of("", quantity)
    units = component_units(
        worlds_of(entity).model, entity, quantity.unit, quantity.shape
    )
    if units and quantity.shape[:1] == ("num_joints",):
        each = len(units) // len(entity.joint_names)
        first = [each * entity.joint_names.index(name) for name in joints]
        units = [units[k + j] for k in first for j in range(each)]
    return [whole._replace(unit=unit) for unit in units] or [whole]


def _contract_of(label: str, told: object) -> Contract:
    if isinstance(told, Contract):
        return told
    if isinstance(told, Quantity):
        return Contract(told.unit, told.axes_text, told.point_text)
    if isinstance(told, Reading):
        return Contract(told.unit, told.axes, told.point)
    raise InvalidInputError(
        f"The {label} has {told!r} as its contract: it must be a Contract(unit, axes, "
        "point), a quantity or a reading, or one for each number."
    )
