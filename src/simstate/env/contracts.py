"""Contracts of a term's values, declared at the term or by the quantity it returns."""

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

ContractLike: TypeAlias = Contract | Quantity | Reading
"""A contract, or what has one."""
ContractFunction: TypeAlias = Callable[..., "ContractLike | Sequence[ContractLike]"]
"""`function(env, **params)`: a contract that depends on the environment."""
Declared = TypeVar("Declared", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declaration:
    """Declaration that `contract` attaches to a function or a class."""

    value: Any
    """A contract, several, or a function that returns them. It is Any, since for a type
    checker a quantity has the type of its value."""


def contract(
    declared: str | ContractLike | Sequence[ContractLike] | ContractFunction,
    axes: str = UNDECLARED,
    point: str = UNDECLARED,
) -> Callable[[Declared], Declared]:
    """Declare the unit, axes and point of the values that an observation term returns.

    Recordings, data sets and the viewer show them; "not declared" is the default. A
    class term may have an attribute `contract` instead: a Contract, or a method that
    returns one.

    Args:
        declared: the unit, with `axes` and `point`; or the quantity or the reading that
            the term returns; or one of these for each component; or a function
            `(env, **params)` that returns one of these.
        axes: the axes of the components; "–": none.
        point: the reference point; "–": none.
    """
    whole = Contract(declared, axes, point) if isinstance(declared, str) else declared

    def mark(term: Declared) -> Declared:
        term.contract = Declaration(whole)  # pyright: ignore[reportFunctionMemberAccess]
        return term

    return mark


def contracts_of(
    label: str, term: object, env: Env, params: Mapping[str, Any], count: int
) -> list[Contract]:
    """Return the contract of each column that a term returns."""
    declared: Any = getattr(term, "contract", UNSAID)
    if isinstance(declared, Declaration):
        declared = declared.value
    if callable(declared):
        declared = declared(env, **params)
    chosen = next((p for p in params.values() if isinstance(p, SceneEntityCfg)), None)
    if isinstance(declared, Quantity) and chosen is not None:
        declared = quantity_contracts(
            env.scene[chosen.name], declared, chosen.names_of("joint")
        )
    return checked(label, declared, count)


def checked(label: str, declared: Any, count: int) -> list[Contract]:
    """Return the contracts, if there is one for each of `count` values."""
    each: list[Any] = [declared]
    if isinstance(declared, list | tuple) and not isinstance(declared, Contract):
        each = list(cast("Sequence[Any]", declared))
    found = spread([_contract_of(label, one) for one in each], count)
    if found is None:
        raise ShapeError(
            f"The {label} has {count} columns, but contracts for {len(each)}.",
            name="contract",
            shape=[count],
        )
    return found


def quantity_contracts(
    entity: Entity, quantity: Quantity, joints: Sequence[str]
) -> list[Contract]:
    """Return the contracts of a quantity's components, for the chosen joints."""
    whole = _contract_of("", quantity)
    units = component_units(
        worlds_of(entity).model, entity, quantity.unit, quantity.shape
    )
    if units and quantity.shape[:1] == ("num_joints",):
        each = len(units) // len(entity.joint_names)
        first = [each * entity.joint_names.index(name) for name in joints]
        units = [units[k + j] for k in first for j in range(each)]
    return [whole._replace(unit=unit) for unit in units] or [whole]


def _contract_of(label: str, declared: object) -> Contract:
    if isinstance(declared, Contract):
        return declared
    if isinstance(declared, Quantity):
        return Contract(declared.unit, declared.axes_text, declared.point_text)
    if isinstance(declared, Reading):
        return Contract(declared.unit, declared.axes, declared.point)
    raise InvalidInputError(
        f"The {label} has {declared!r} as its contract: it must be a Contract(unit, "
        "axes, point), a quantity or a reading, or one for each component.",
        name="contract",
    )
