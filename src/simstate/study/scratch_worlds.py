"""Scratch worlds: a simulation or an environment in which futures run.

It is built like the original, with more worlds, and is kept between calls. Rows of the
original's ledger are copied into it slot by slot, so that a scratch world continues
exactly as the original would. If force models, processes, events or tasks were added to
the original, no such copy can be built. Futures then run in the original's worlds,
within a call that is rolled back at its end (`run_ahead`).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed, warn
from simstate.simulation import Simulation
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.stepping_host import forcing_of, steppers_of
from simstate.study.rollout import hold
from simstate.world import Ledger, Owner, Slot
from simstate.world.worlds import worlds_of

T = TypeVar("T")
Make = Callable[[int], Any]
"""`make(num_envs)` builds the same simulation or environment with that many worlds."""
Rows = Mapping[str, Tensor]
"""Values of slots by name; shape (num_envs, …), or that of a shared slot."""


class _Done(Exception):  # noqa: N818 - it carries a result
    """Ends a call, so that it is rolled back, with its result."""

    def __init__(self, value: Any) -> None:
        self.value = value


def sim_of(target: Any) -> Simulation:
    """Return the simulation of a simulation or an environment."""
    found = target if isinstance(target, Simulation) else getattr(target, "sim", None)
    if not isinstance(found, Simulation):
        raise InvalidInputError(
            f"study.futures takes a Simulation or an Env, got {type(target).__name__}.",
            name="target",
        )
    return found


def is_env(target: Any) -> bool:
    """Return True for an environment."""
    return not isinstance(target, Simulation) and hasattr(target, "action_dim")


def owners_of(target: Any) -> tuple[Owner, ...]:
    """Return the owners of the slots that futures branch from."""
    return ("sim", "env") if is_env(target) else ("sim",)


def ledger_of(target: Any) -> Ledger:
    """Return the ledger of a simulation or an environment."""
    return worlds_of(sim_of(target)).ledger


def first_world(target: Any) -> int:
    """Return the global id of the first world."""
    sim: Any = sim_of(target)
    return sim._first_world


def split_state(sim: Simulation, rows: Tensor) -> dict[str, Tensor]:
    """Return the fields of rows of `sim.state`, by name."""
    return worlds_of(sim).engine.split(rows)


@contextmanager
def quiet() -> Generator[None]:
    """Ignore warnings of futures that diverge, which are marked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def copy_rows(target: Any) -> dict[str, Tensor]:
    """Return a copy of all slots of all worlds."""
    ledger = ledger_of(target)
    ledger.observe()
    slots = ledger.of(owners_of(target))
    return {slot.name: slot.tensor.detach().clone() for slot in slots}


def branch(host: Any, start: Rows, worlds: Tensor, target: Any) -> None:
    """Write worlds of `start` into all rows of the host; `worlds` has the ids.

    Args:
        host: the scratch worlds, or the target itself.
        start: the slots of the target.
        worlds: the world of each row; int64, shape (rows,).
        target: the origin of `start`, whose slots also define the values at reset.
    """
    ledger, source = ledger_of(host), ledger_of(target).slots
    if host is not target:
        for name in start:
            _share_reset(source[name], ledger[name], worlds)
    whole = worlds_of(sim_of(host)).everywhere
    shared = {name for name in start if source[name].shared}
    is_one = len(source["qpos"].tensor) == 1
    rows = {
        name: value if is_one or name in shared else value[worlds]
        for name, value in start.items()
    }
    ledger.copies.put(rows, whole, owners_of(host), True)


def _share_reset(slot: Slot, mine: Slot, worlds: Tensor) -> None:
    """Set the value at reset of a slot of scratch worlds to that of the original."""
    initial = slot.initial
    if initial is None or slot.shared or slot.reset == "keep":
        return
    mine.initial = initial if len(initial) == 1 else initial[worlds]


def run_ahead(target: Any, call: Callable[[], T], what: str = "study.futures()") -> T:
    """Return `call()`, which may step the worlds; they are rolled back afterwards.

    Calls on a simulation may be nested: each depth has its own backup.
    """
    sim: Any = sim_of(target)
    ledger = ledger_of(target)

    def finish() -> None:
        raise _Done(call())

    recorders = sim._recorders
    sim._recorders = ()
    try:
        if is_env(target):
            ledger.run("env", what, finish)
        else:
            ledger.observe()  # a rollback reverts only what follows
            saved = ledger.backup("sim", f"ahead {len(ledger.open)}").saved
            ledger.calls.run("sim", what, saved, finish)
    except _Done as done:
        return done.value
    finally:
        sim._recorders = recorders
    raise AssertionError("finish() always raises")


# Scratch worlds, which are kept between calls.


@dataclass
class _Kept:
    rows: int
    acting: tuple[int, ...]
    """Result of `_acting` for the original when they were built."""
    made: Any
    """The scratch worlds; None: futures run in the original's worlds."""


_scratch: weakref.WeakKeyDictionary[Any, list[_Kept]] = weakref.WeakKeyDictionary()
_MOST = 2
"""Maximum number of scratch simulations kept for one original, by number of rows."""


def scratch_of(target: Any, rows: int, make: Make | None, first: Tensor) -> Any:
    """Return scratch worlds, or the target itself if none can be built.

    Args:
        target: the original.
        rows: number of scratch worlds.
        make: builds them; None: they are built as the original was.
        first: controls or actions of a trial step after they are built; (num_envs, k).
    """
    if make is None and not _is_plain(sim_of(target)):
        return target
    acting = _acting(sim_of(target))
    known = [one for one in _scratch.get(target, ()) if one.acting == acting]
    kept = next((one for one in known if one.rows == rows), None)
    if kept is None:
        with torch.inference_mode(False):
            kept = _Kept(rows, acting, _build(target, rows, make, first))
        _scratch[target] = [kept, *known[: _MOST - 1]]
    if kept.made is None or not _mirror(target, kept.made):
        return target
    return kept.made


def _is_plain(sim: Any) -> bool:
    """Return True if nothing was added to a simulation after its construction."""
    steppers = steppers_of(sim)
    is_own = steppers.top in (steppers.timeline, steppers.integration)
    is_own = is_own or isinstance(steppers.top, MujocoStepper)
    return is_own and not _acting(sim)


def _acting(sim: Any) -> tuple[int, ...]:
    """Return ids of force models, processes, noises, events and tasks that were added.

    References would keep the simulation from being collected.
    """
    forcing, steppers = forcing_of(sim), steppers_of(sim)
    added = [*forcing.models, *forcing.processes, *forcing.noises]
    added += [forcing.mass_flow, steppers.coupled]
    if steppers.timeline is not None:
        added += [*steppers.timeline.events, *steppers.timeline.tasks]
    return tuple(id(one) for one in added if one is not None)


def _build(target: Any, rows: int, make: Make | None, first: Tensor) -> Any:
    """Return new scratch worlds; None if they do not continue like the original."""
    made: Any = target._alike(rows) if make is None else make(rows)
    if sim_of(made).num_envs != rows or is_env(made) != is_env(target):
        kind = "Env" if is_env(target) else "Simulation"
        raise InvalidInputError(
            f"make({rows}) must return {kind}(…) with {rows} worlds, got {made!r}.",
            name="make",
        )
    sim_of(made).on_divergence = "mask"
    if isinstance(target, Simulation) and make is None:
        return made
    different = _differences(target, made, first)
    if not different:
        return made
    if make is not None:
        raise InvalidInputError(
            f"make({rows}) built worlds that do not continue like the original ones: "
            f"after one step {listed(different)} differ. Build the same scene, "
            "integrator, forces, events and memory, in the same order.",
            name="make",
        )
    warn(
        "Scratch worlds of this task do not continue like its worlds: after one step "
        f"{listed(different)} differ. A term may depend on the index or the number of "
        "worlds. Futures run in the task's worlds, which is slower."
    )
    return None


def _differences(target: Any, made: Any, first: Tensor) -> list[str]:
    """Return the slots that differ after one step of scratch and original worlds."""
    if not _mirror(target, made):
        return ["slots that a function resets"]
    count = sim_of(target).num_envs
    start = copy_rows(target)
    worlds = torch.arange(sim_of(made).num_envs, device=first.device).flip(0) % count
    branch(made, start, worlds, target)

    def original() -> dict[str, Tensor]:
        step(target, first)
        return copy_rows(target)

    with quiet():
        step(made, first[worlds])
        found = copy_rows(made)
        wanted = run_ahead(target, original)
    slots = ledger_of(target).slots
    return [
        name
        for name, value in wanted.items()
        if not slots[name].shared and not _is_same(found[name], value[worlds])
    ]


def _is_same(one: Tensor, two: Tensor) -> bool:
    """Return True for the same bits; NaN equals NaN."""
    return one.cpu().numpy().tobytes() == two.cpu().numpy().tobytes()


def step(host: Any, controls: Tensor) -> Any:
    """Take a step under controls or actions; shape (rows, k).

    The result is that of an environment's step, or None.
    """
    if not is_env(host):
        return hold(host, controls, 1)
    if ledger_of(host).open:
        return host._step_ahead(controls)
    return host.step(controls)


def _mirror(target: Any, made: Any) -> bool:
    """Add the original's slots to scratch worlds; return False if not possible."""
    source, ledger, sim = ledger_of(target), ledger_of(made), sim_of(made)
    for slot in source.of(owners_of(target)):
        name = slot.name
        group, _, rest = name.partition("/")
        if name in ledger:
            continue
        if group in ("model", "by_hand"):
            sim.expand(rest)
        elif group == "evaluated":
            sim.keep_evaluated(rest)
        elif name == "random/pcg64":
            _ = sim.numpy_rng
        elif slot.shared:
            ledger.shared(
                name, slot.tensor, owner=slot.owner, moves=slot.moves, optional=True,
                users_own=slot.users_own, unit=slot.unit,
            )  # fmt: skip
        elif callable(slot.reset):
            return False
        else:
            initial = slot.initial
            row = 0.0 if initial is None else initial[0]
            ledger.memory(
                name, slot.shape, slot.tensor.dtype,
                None if slot.reset == "keep" else row, initial=row, owner=slot.owner,
                kind=slot.kind, stage=slot.stage, moves=slot.moves, optional=True,
                users_own=slot.users_own, unit=slot.unit, axes=slot.axes,
            )  # fmt: skip
    return True
