"""Drivers: the actions, commands and events of an environment, as a step calls them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.checks import check_range
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.base.places import written_at
from simstate.env.actions import Action, ActionCfg
from simstate.env.backend import backend_of
from simstate.env.commands import Command, CommandCfg
from simstate.env.contracts import checked
from simstate.env.env_cfg import EventTermCfg
from simstate.env.host_view import ByName, CommandArrays, HostView, is_either, view_of
from simstate.env.terms import Term, annotate, made
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

MODES = ("startup", "reset", "interval", "step")


class ActionTerms(dict[str, Action]):
    """The action terms by name, and the last two actions."""

    def __init__(self, env: Env, cfgs: Mapping[str, ActionCfg]) -> None:
        super().__init__(
            {name: made("action", name, cfg, env, Action) for name, cfg in cfgs.items()}
        )
        self._env, self._cfgs = env, cfgs
        self._ledger = worlds_of(env.sim).ledger
        self.columns = [
            f"{term}/{name}" for term, action in self.items() for name in action.names
        ]
        """Name of what each column of an action drives, as "term/joint"."""
        self.contracts = [
            contract
            for term, action in self.items()
            for contract in checked(
                f"action term {term!r}", action.contracts, action.dim
            )
        ]
        """Unit, axes and point of each column of an action."""
        self.last = self._memory("action")
        """The last action as given; zero after a reset."""
        self.previous = self._memory("previous_action")
        """The one before; zero after a reset."""
        self.acting = [
            name for name, action in self.items() if action.acts_every_substep
        ]
        """The terms that act in every substep."""
        self._backend = backend = backend_of(env)
        self._arrays = backend.array(self.last), backend.array(self.previous)
        self.mirrors: dict[str, Action] = {}
        """Terms that compute with arrays, by name."""
        self._applied = {
            name: self._apply_of(name, term) for name, term in self.items()
        }
        """The call that applies each term's columns, given as an array."""

    def _memory(self, name: str) -> Tensor:
        return self._ledger.memory(
            f"env/{name}", (len(self.columns),), self._env.dtype, owner="env"
        ).tensor

    def _apply_of(self, name: str, term: Action) -> Callable[[Any], None]:
        view, backend = view_of(self._env), self._backend
        if view is self._env:
            return term.apply
        if is_either(type(term)):
            self.mirrors[name] = view.mirror(term)
            return self.mirrors[name].apply
        return lambda values: term.apply(backend.tensor(values))

    def apply(self, action: Any) -> None:
        """Store the action, an array, and write each term's columns."""
        last, previous = self._arrays
        previous[:] = last
        last[:] = action
        self.write(action, self)

    def write(self, action: Any, names: Iterable[str]) -> None:
        """Write the columns of an action that belong to the named terms."""
        cast = self._backend.cast(action, self._env.sim.dtype)
        ledger, first, name = self._ledger, 0, ""
        try:
            for name, term in self.items():
                stop = first + len(term.names)
                if name in names:
                    ledger.scope = f"action/{name}"
                    values = action if term.keeps_dtype else cast
                    self._applied[name](values[:, first:stop])
                first = stop
        except Exception as error:
            _annotate(error, "action", name, self._cfgs)
            raise
        ledger.scope = ""

    def reset(self, env_ids: Tensor) -> None:
        """Reset the terms of worlds that start an episode."""
        for name, term in self.items():
            with self._ledger.naming(f"action/{name}"):
                try:
                    term.reset(env_ids)
                except Exception as error:
                    _annotate(error, "action", name, self._cfgs)
                    raise

    def check(self, action: object, ignored: Tensor | None) -> Any:
        """Return the action as an array, if it is one finite row for each world.

        In the `ignored` worlds it is set to zero.
        """
        backend = self._backend
        rows = action_rows(action, self.columns, self.last)
        if ignored is not None:
            rows = rows.index_fill(0, ignored, 0.0)
        values = backend.array(rows)
        backend.check_finite(values, None, lambda _: not_finite(rows, self.columns))
        backend.check()
        return values


def action_rows(action: object, columns: Sequence[str], like: Tensor) -> Tensor:
    """Return the action, if it has the shape of `like` and is on its device.

    It is float32, or has the dtype of `like`.
    """
    want = tuple(like.shape)
    if not isinstance(action, Tensor):
        raise InvalidInputError(
            f"action must be a tensor of shape {want}, got "
            f"{type(action).__name__}: pass torch.as_tensor(action).",
            name="action",
        )
    if action.shape != like.shape:
        raise ShapeError(
            f"action must have shape {want}, a row for each world and a column "
            f"for each of {', '.join(columns)}; got "
            f"{tuple(action.shape)}. Nothing was done.",
            name="action",
            shape=action.shape,
        )
    fits = action.device == like.device and action.dtype.is_floating_point
    if not fits or action.layout != torch.strided:
        raise InvalidInputError(
            f"action must be a dense floating-point tensor on {like.device}, got "
            f"{action.dtype} on {action.device}, {action.layout}: pass "
            "action.to(env.device, env.dtype). Nothing was done.",
            name="action",
        )
    if action.dtype == torch.float32:  # terms with `keeps_dtype` need this dtype
        return action.detach()
    return action.detach().to(like.dtype)


def not_finite(action: Tensor, columns: Sequence[str]) -> InvalidInputError:
    """Return the error for the first value of an action that is not finite."""
    world, column = (int(i) for i in (~torch.isfinite(action)).nonzero()[0])
    return InvalidInputError(
        f"action must be finite, got {float(action[world, column])} for "
        f"{columns[column]} in world {world}. Nothing was done.",
        name="action",
        worlds=[world],
    )


class CommandTerms(dict[str, Command]):
    """The commands by name; an unknown name raises with suggestions."""

    def __init__(self, env: Env, cfgs: Mapping[str, CommandCfg]) -> None:
        super().__init__(
            {
                name: made("command", name, cfg, env, Command)
                for name, cfg in cfgs.items()
            }
        )
        self._cfgs, self._num_envs = cfgs, env.num_envs
        for name, command in self.items():
            if not hasattr(command, "error_sum"):
                kind = type(command).__name__
                raise InvalidInputError(
                    f"The command term {name!r} was not created completely: "
                    f"{kind}.__init__ must call super().__init__(name, cfg, env).",
                    name=name,
                )
        self._ledger = worlds_of(env.sim).ledger
        self._array = backend_of(env).array
        self.views: Mapping[str, Any] = self
        """The commands as terms with the `either` mark read them."""
        self.mirrors: dict[str, Command] = {}
        """Commands that compute with arrays, by name."""
        self._stepped: Mapping[str, Any] = self
        """The objects that a step calls."""
        if view_of(env) is not env:
            self._stepped = {n: self._stepping(view_of(env), n) for n in self}
            views = {
                name: CommandArrays(part) if part is self[name] else part
                for name, part in self._stepped.items()
            }
            self.views = ByName(self, views)

    def _stepping(self, view: HostView, name: str) -> Command:
        """Return a mirror that computes with arrays, or the command itself."""
        command = self[name]
        if not is_either(type(command)):
            return command
        # Draws use tensors.
        self.mirrors[name] = view.mirror(command, draw=command.draw)
        return self.mirrors[name]

    def _mask(self, mask: Any) -> Any:
        """Return a mask as an array of the backend."""
        return self._array(mask) if isinstance(mask, Tensor) else mask

    def __missing__(self, name: str) -> Command:
        raise unknown_name("command", name, self)

    def due(self, step_dt: float) -> dict[str, Any]:
        """Return the worlds whose time is up, by name as in `advance`; (num_envs,)."""
        found: dict[str, Any] = {}
        for name, command in self._stepped.items():
            found[f"command/{name}"] = self._mask(command.due(step_dt))
        return found

    def advance(self, due: dict[str, Tensor]) -> None:
        """Measure the errors of the commands, and redraw those that are due."""
        name = ""
        try:
            for name, command in self._stepped.items():
                self._ledger.scope = f"command/{name}"
                command.measure()
                command.advance(due[f"command/{name}"])
        except Exception as error:
            _annotate(error, "command", name, self._cfgs)
            raise
        self._ledger.scope = ""

    def reset(self, env_ids: Tensor) -> None:
        """Draw for worlds that start an episode."""
        for name, command in self.items():
            with self._ledger.naming(f"command/{name}"):
                try:
                    command.reset(env_ids)
                except Exception as error:
                    _annotate(error, "command", name, self._cfgs)
                    raise

    def check_errors(self) -> None:
        """Raise unless each command has an error for each world."""
        for name, command in self.items():
            shape = tuple(command.error().shape)
            if shape != (self._num_envs,):
                raise ShapeError(
                    f"The error of the command term {name!r} must have shape "
                    f"({self._num_envs},), got {shape}: its offset must have shape "
                    f"({self._num_envs}, k).",
                    name=name,
                    shape=shape,
                )

    def end(self, env_ids: Tensor, steps: Tensor) -> dict[str, float]:
        """End episodes in these worlds; return their mean errors over `steps`."""
        for command in self.values():
            command.end(env_ids)
        return {
            name: float((command.error_sum[env_ids] / steps).mean())
            for name, command in self.items()
        }


def _annotate(
    error: Exception, kind: str, name: str, cfgs: Mapping[str, object]
) -> None:
    """Add the action or command that raised an error to it."""
    place = getattr(cfgs.get(name), "place", None)
    annotate(error, f"{kind} term {name!r}", place)


class EventSchedule:
    """The events by mode, and for "interval" the time that each world has left."""

    def __init__(
        self, env: Env, cfgs: dict[str, EventTermCfg], shipped: ModuleType
    ) -> None:
        self._terms: dict[str, list[Term]] = {mode: [] for mode in MODES}
        self._intervals: list[tuple[float, float]] = []
        self._shared: set[str] = set()
        for name, cfg in cfgs.items():
            with written_at(cfg.place):
                _check_event(name, cfg)
            term = Term("event", name, cfg, shipped, env, leading=2)
            self._shared |= {name} if cfg.shared else set()
            self._terms[cfg.mode].append(term)
            if cfg.mode == "interval":
                self._intervals.append(cfg.interval_s or (0.0, 0.0))
        self._time_left = worlds_of(env.sim).ledger.memory(
            "env/event/time_left", (len(self._intervals),), torch.float32, reset=None,
            owner="env", unit="s",
        ).tensor  # fmt: skip
        """Time until the next event of each kind; shape (num_envs, intervals)."""
        self.happened = worlds_of(env.sim).ledger.memory(
            "env/event/happened", (len(self._intervals),), torch.bool, reset=None,
            owner="env", optional=True,
        ).tensor  # fmt: skip
        """Interval events of the last step; bool, (num_envs, intervals)."""
        array = backend_of(env).array
        self._arrays = array(self._time_left), array(self.happened)

    @property
    def interval_names(self) -> list[str]:
        """The names of the interval events."""
        return [term.name for term in self._terms["interval"]]

    @property
    def terms(self) -> list[Term]:
        """All events."""
        return [term for terms in self._terms.values() for term in terms]

    def startup(self, env: Env, env_ids: Tensor) -> None:
        """Run the events that happen once in a world."""
        for term in self._terms["startup"]:
            shared = term.name in self._shared
            with env.rng.alike() if shared else contextlib.nullcontext():
                term(env_ids)

    def reset(self, env: Env, env_ids: Tensor) -> None:
        """Run the events of a reset, and set the clocks of the others."""
        for term in self._terms["reset"]:
            term(env_ids)
        for k in range(len(self._intervals)):
            self._set_clock(env, k, env_ids)

    def due(self, dt: float) -> dict[str, Any]:
        """Advance the clocks [s]; return the masks of worlds that are due, by event."""
        if not self._intervals:
            return {}
        left, happened = self._arrays
        left -= dt
        happened[:] = left <= dt / 2.0  # the nearest step
        return {
            term.scope: happened[:, k] for k, term in enumerate(self._terms["interval"])
        }

    def interval(self, env: Env, due: Mapping[str, Tensor]) -> None:
        """Run the events of every step, and the others in the worlds that are due."""
        for term in self._terms["step"]:
            term(env.all_ids)
        for k, term in enumerate(self._terms["interval"]):
            env_ids = due[term.scope]
            if env_ids.numel():
                term(env_ids)
                self._set_clock(env, k, env_ids)

    def _set_clock(self, env: Env, k: int, env_ids: Tensor) -> None:
        left = env.rng.uniform(env_ids, 1, *self._intervals[k])[:, 0]
        self._time_left[env_ids, k] = left.to(torch.float32)


def _check_event(name: str, cfg: EventTermCfg) -> None:
    if cfg.mode not in MODES:
        raise unknown_name(f"mode of event {name!r}:", str(cfg.mode), MODES)
    if cfg.shared and cfg.mode != "startup":
        raise InvalidInputError(
            f"The event {name!r} is shared by all worlds, which are only started "
            "together: its mode must be 'startup'.",
            name=name,
        )
    check_range(f"event {name!r}", "interval_s", cfg.interval_s)
    if cfg.mode == "interval" and not (cfg.interval_s and cfg.interval_s[0] > 0.0):
        raise InvalidInputError(
            f"The event {name!r} of mode 'interval' needs interval_s=(minimum, "
            f"maximum) time between two of them [s], > 0; got {cfg.interval_s}.",
            name="interval_s",
        )
