"""Access to simstate's internals, for tests and benchmarks that need it.

No other test file knows how a Simulation is composed. When the composition changes,
the bodies of these functions change and the tests stay. A test uses a public interface
wherever one exists.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from torch import Tensor

from simstate import Simulation
from simstate.base import compiled_core
from simstate.base.ids import Selection
from simstate.engine import Engine, Stage, field_layout
from simstate.engine.core import integrator
from simstate.entity import Entity
from simstate.entity.data import EntityData
from simstate.integrate import Process
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.stepping_host import StepRecorder, forcing_of
from simstate.step.stepping_host import stepper_of as advancing_stepper_of
from simstate.world import Ledger, calls
from simstate.world.freshness import Freshness
from simstate.world.random import WorldRandom
from simstate.world.watch import WriteWatch as WriteWatch
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    import pytest  # benchmarks run without it

    from simstate.flight import FreeFlight

# Components.


def engine_of(sim: Simulation) -> Engine:
    """Return the engine that runs the worlds."""
    return worlds_of(sim).engine


def ledger_of(sim: Simulation) -> Ledger:
    """Return the ledger that holds every slot."""
    return worlds_of(sim).ledger


def fresh_of(sim: Simulation) -> Freshness:
    """Return the record of which stages are current."""
    return worlds_of(sim).fresh


def stepper_of(sim: Simulation) -> Any:
    """Return the scheme that advances the worlds, with its counts and options."""
    assert sim.integration is not None
    return sim.integration


def processes_of(sim: Simulation) -> Sequence[Process]:
    """Return the processes in the order in which they were added."""
    return forcing_of(sim).processes


def force_models_of(sim: Simulation) -> Sequence[object]:
    """Return the force models in the order in which they were added."""
    return forcing_of(sim).models


def mass_flow_of(sim: Simulation) -> Any:
    """Return the flow of the bodies' masses."""
    return forcing_of(sim).mass_flow


def is_bracket_compiled() -> bool:
    """Return True if calls are made atomic by the compiled bracket."""
    return calls._bracket is not None  # pyright: ignore[reportPrivateUsage]


# Memory.


def columns_of(sim: Simulation) -> Mapping[str, slice]:
    """Return the columns of each field in a row of `sim.state`."""
    return engine_of(sim).columns


def slot_of(sim: Simulation, name: str) -> Tensor:
    """Return the live memory of a slot."""
    return ledger_of(sim)[name].tensor


def all_slots(sim: Simulation) -> dict[str, Tensor]:
    """Return copies of all slots, without completing an interrupted call first."""
    slots = ledger_of(sim).slots
    return {name: slot.tensor.detach().clone() for name, slot in slots.items()}


def field_of(sim: Simulation, name: str) -> Tensor:
    """Return a raw field of any kind of worlds, up to date."""
    return worlds_of(sim).read_field(name)


def acceleration_of(sim: Simulation) -> Tensor:
    """Return qacc at the current state; shape (num_envs, nv)."""
    return worlds_of(sim).acceleration_now()


def root_of(flight: FreeFlight, aircraft: str) -> Any:
    """The airframe of an aircraft in all worlds; `compiled` is the same by the core."""
    return flight._fleet[aircraft].root


def model_of(entity: Entity) -> mujoco.MjModel:
    """Return the compiled model that an entity is part of."""
    return worlds_of(entity).model


def reader_of(data: EntityData) -> Any:
    """Return the object that computes an entity's quantities."""
    return data._reader  # pyright: ignore[reportPrivateUsage]


def is_read_by_core(data: EntityData, name: str) -> bool:
    """Return True if the compiled core computes a quantity of this entity."""
    reader = reader_of(data)
    return reader._compiled_read(reader.quantities[name]) is not None


def forget_reads(data: EntityData) -> None:
    """Forget how an entity's quantities are read, so that the next read resolves it."""
    reader_of(data)._compiled.clear()
    reader_of(data).memo.clear()
    data.__dict__.pop("_shared_gravity_direction", None)


# The native engine.


def batch_of(sim: Simulation) -> Any:
    """Return the native engine's batch: CoreBatch, or Batch of mujoco.batch."""
    return engine_of(sim).batch  # pyright: ignore


def compiled_of(sim: Simulation) -> Any:
    """Return the compiled core's batch; None without the core."""
    return engine_of(sim).compiled  # pyright: ignore


def compiled_models_of(sim: Simulation) -> Any:
    """Return the force models as the compiled core evaluates them; None: it cannot.

    It cannot if it has to call Python for one of them.
    """
    plan = stepper_of(sim)._plan(0.0)
    return plan if plan is not None and plan.is_closed else None


def take_blocks(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an integrator take its steps by blocks, as it does without the core."""
    stepper = stepper_of(sim)
    monkeypatch.setattr(stepper, "_plan", lambda span: None)
    monkeypatch.setattr(stepper, "_is_refreshed", False)


def has_called_from_core(sim: Simulation) -> bool:
    """Return True if the core has run stages that call force models in Python."""
    stepper = stepper_of(sim)
    made = stepper._core_steps or getattr(stepper, "_core_adaptive", None)
    return made is not None and not made.plan.is_closed


def steps_in_core(sim: Simulation) -> bool:
    """Return True if the last steps of an integrator were taken in the core."""
    stepper = stepper_of(sim)
    return bool(stepper._core_steps or getattr(stepper, "_core_adaptive", None))


def forget_core() -> None:
    """Forget if the compiled core is available, so that it is looked up again."""
    compiled_core._joined.cache_clear()  # pyright: ignore[reportPrivateUsage]


def library_path() -> Path:
    """Return the path of the libmujoco that is loaded."""
    return compiled_core._library_path()  # pyright: ignore[reportPrivateUsage]


def find_bad_by_numpy(engine: Any) -> Tensor | None:
    """Return the mask of diverged worlds as found without the compiled core."""
    kept, engine._watch = engine._watch, None
    try:
        return engine.find_bad()
    finally:
        engine._watch = kept


def risen_warnings(engine: Any) -> np.ndarray:
    """Return which of MuJoCo's warnings were raised in this step; (worlds, kinds)."""
    return engine._counts != engine._counts_before


def set_integrator_budget(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    """Set the work that the core's integrator does between two checks for signals."""
    monkeypatch.setattr(integrator, "_BUDGET", budget)


def set_unread_steps(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Set the number of warp steps between two checks for dropped contacts."""
    from simstate.engine import warp_room  # loads Warp

    monkeypatch.setattr(warp_room, "_UNREAD", steps)


def set_state_component(
    monkeypatch: pytest.MonkeyPatch, name: str, component: mujoco.mjtState
) -> None:
    """Declare a component of MuJoCo's state as another one."""
    components = field_layout._COMPONENTS  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(field_layout, "_COMPONENTS", {**components, name: component})


def draw_as_on_a_device(monkeypatch: pytest.MonkeyPatch, rng: WorldRandom) -> None:
    """Make random streams on the host take the path of those on a device."""
    monkeypatch.setattr(rng, "_on_host", False)
    monkeypatch.setattr(rng, "_in_core", False)


# Behaviour.


def draw_noise_from(sim: Simulation, stream: object) -> None:
    """Let a stochastic scheme draw its noise from another stream."""
    stepper_of(sim)._stream = stream


def takes_plain_steps(sim: Simulation) -> bool:
    """Return True if nothing but the engine advances the worlds."""
    stepper = advancing_stepper_of(sim)
    return isinstance(stepper, MujocoStepper) and not forcing_of(sim).models


def with_loads_of(
    sim: Simulation, models: Sequence[Any], call: Callable[[], None]
) -> None:
    """Call a function while the inputs have the loads of these force models only."""
    forces = forcing_of(sim)
    own = forces.models[:]
    forces.models[:] = models
    try:
        forces.with_loads(call)
    finally:
        forces.models[:] = own


@contextmanager
def failing_undo(
    error: type[BaseException], times: int | None = None
) -> Generator[None]:
    """Raise `error` whenever an interrupted call is rolled back, or some times only."""
    left = -1 if times is None else times

    def fail(watch: WriteWatch, storages: frozenset[int]) -> None:
        nonlocal left
        if left == 0:
            own(watch, storages)
        else:
            left -= 1
            raise error

    own, WriteWatch.acknowledge = WriteWatch.acknowledge, fail  # pyright: ignore
    try:
        yield
    finally:
        WriteWatch.acknowledge = own


def record_forwards(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[list[int] | None, int]]:
    """Return a list that grows with each forward pass requested by Python code.

    Each item has the ids of the worlds (None: all) and the last stage.
    """
    engine = engine_of(sim)
    forward = engine.forward
    forwards: list[tuple[list[int] | None, int]] = []

    def recorded(env_ids: Tensor | None, stage: Stage) -> None:
        ids = None if env_ids is None else [int(k) for k in env_ids]
        forwards.append((ids, stage))
        forward(env_ids, stage)

    monkeypatch.setattr(engine, "forward", recorded)
    return forwards


@contextmanager
def failing_step(sim: Simulation, error: type[BaseException]) -> Generator[None]:
    """Raise `error` in each step, in place of advancing the worlds."""

    class Failing(MujocoStepper):
        def advance(self, n: int, rows: Tensor | None) -> int:
            raise error

    with sim.stepping(Failing(worlds_of(sim), forcing_of(sim), sim.divergence)):
        yield


class AtStepEnd:
    """A recorder that calls a function at the end of each step."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def begin(self, n: int, rows: Selection, until: Tensor | None) -> None:
        """Do nothing before a step."""

    def end(self) -> None:
        """Call the function."""
        self._function()


def take_recorder_turns(
    wake: type, thread: type, sleep: Callable[[float], None],
    written: Callable[[str], None],
) -> None:  # fmt: skip
    """Make recorders use another queue, thread and sleep, in this process.

    `written` is called with the name of each attachment that was written.
    """
    from simstate.record import container_writer  # loads mcap

    attach = container_writer.ContainerWriter._attach  # pyright: ignore

    def attach_and_count(self: Any, name: str, data: bytes) -> None:
        attach(self, name, data)
        written(name)

    container_writer.ContainerWriter._attach = attach_and_count  # pyright: ignore
    own_queue = SimpleNamespace(SimpleQueue=wake, Empty=queue.Empty)
    container_writer.queue = own_queue  # pyright: ignore
    container_writer.threading = SimpleNamespace(Thread=thread)  # pyright: ignore
    own_time = SimpleNamespace(sleep=sleep, time_ns=lambda: time.time_ns())
    container_writer.time = own_time  # pyright: ignore


@contextmanager
def attached(sim: Simulation, recorder: StepRecorder) -> Generator[None]:
    """Attach a recorder of steps."""
    sim.attach(recorder)
    try:
        yield
    finally:
        sim.detach(recorder)
