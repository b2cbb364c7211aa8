"""Requirements of a task's events on the scene before it is compiled."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from simstate.env.entity_cfg import SceneEntityCfg
from simstate.env.env_cfg import EnvCfg
from simstate.env.terms import term_function
from simstate.scene import SceneCfg

Function = TypeVar("Function", bound=Callable[..., Any])


def moves_com(function: Function) -> Function:
    """Mark an event that moves the COMs of the entities that it is given.

    Their links are compiled so that this is possible: `EntityCfg.com_varies`.
    """
    function.moves_com = True  # pyright: ignore[reportFunctionMemberAccess]
    return function


def scene_for_events(cfg: EnvCfg, shipped: ModuleType) -> SceneCfg:
    """Return the task's scene, with what its events need of it.

    `shipped` is the module of the events that a configuration may name.
    """
    entities = dict(cfg.scene.entities)
    for name, event in cfg.events.items():
        function = term_function("event", name, event.func, shipped)
        if not getattr(function, "moves_com", False):
            continue
        for entity in _entities_of(function, event.params):
            if entity in entities and not entities[entity].com_varies:
                entities[entity] = dataclasses.replace(
                    entities[entity], com_varies=True
                )
    if entities == cfg.scene.entities:
        return cfg.scene
    return dataclasses.replace(cfg.scene, entities=entities)


def _entities_of(function: Callable[..., Any], params: dict[str, Any]) -> set[str]:
    """The names of the entities that a term is given, by parameter or default."""
    call = function.__call__ if isinstance(function, type) else function
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(call).parameters.items()
    }
    given = (defaults | params).values()
    return {value.name for value in given if isinstance(value, SceneEntityCfg)}
