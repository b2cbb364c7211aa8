"""Access to simstate's internals, for tests and benchmarks that need it.

No other test file knows how a Simulation is composed. When the composition changes,
the bodies of these functions change and the tests stay. A test uses a public interface
wherever one exists.
"""

from __future__ import annotations

import dataclasses
import queue
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate import Simulation
from simstate.base import archive, compiled_core, files, mujoco_version
from simstate.base.ids import Selection
from simstate.engine import Engine, Stage, field_layout, forks, memory_budget, native
from simstate.engine.core import draws, integrator
from simstate.entity import Entity, other_names
from simstate.entity.data import EntityData
from simstate.env import framework_names
from simstate.integrate import Process
from simstate.scene import physics_options
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.stepping_host import StepRecorder, forcing_of
from simstate.step.stepping_host import stepper_of as advancing_stepper_of
from simstate.step.stochastic import sde_conditions
from simstate.world import Ledger, calls
from simstate.world.freshness import Freshness
from simstate.world.random import WorldRandom
from simstate.world.watch import WriteWatch as WriteWatch
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    import pytest  # benchmarks run without it

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


def compiled_saved(pieces: list[tuple[np.ndarray, np.ndarray, bool]]) -> Any:
    """Return memory of a call as the compiled bracket saves it."""
    return calls._bracket.Saved(pieces, frozenset())  # pyright: ignore


def undo_in_children(made: object) -> None:
    """Undo the open calls of `made` in forked processes, as those of a simulation."""
    calls._known.add(made)  # pyright: ignore[reportPrivateUsage]


def defer_interrupts() -> None:
    """Defer Ctrl-C within calls, as simulations without the compiled bracket do."""
    calls._interrupts.install()  # pyright: ignore[reportPrivateUsage]


@contextmanager
def new_interrupts() -> Generator[Any]:
    """Use a new handler of SIGINT, which is not installed yet, for calls in Python."""
    kept, handler = calls._interrupts, signal.getsignal(signal.SIGINT)  # pyright: ignore
    signal.signal(signal.SIGINT, signal.default_int_handler)
    calls._interrupts = made = calls._Interrupts()  # pyright: ignore
    try:
        yield made
    finally:
        calls._interrupts = kept  # pyright: ignore[reportPrivateUsage]
        signal.signal(signal.SIGINT, handler)


def write_detectors() -> set[Callable[..., bool]]:
    """Return the functions that detect writes to tensors: compiled and in Python."""
    return {calls.changed, calls._compare}  # pyright: ignore[reportPrivateUsage]


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
    compiled_core._link_failure.cache_clear()  # pyright: ignore[reportPrivateUsage]


def library_path() -> Path:
    """Return the path of the libmujoco that is loaded."""
    return compiled_core._library_path()  # pyright: ignore[reportPrivateUsage]


def watch_of(engine: Any) -> Any:
    """Return what looks at the steps of a native engine in the compiled core."""
    return engine._watch


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


def advance_within(integrator_: Any, span: float, budget: int) -> None:
    """Advance the worlds of an adaptive integrator up to its first break."""
    integrator_._core.run(None, span, None, budget, None)


def after_warp_forward(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None]
) -> None:
    """Call a function with warp's data after each forward pass."""
    from simstate.engine.warp_passes import WarpPasses  # loads Warp

    own = WarpPasses._forward  # pyright: ignore[reportPrivateUsage]

    def changed(passes: Any) -> None:
        own(passes)
        change(passes._data)

    monkeypatch.setattr(WarpPasses, "_forward", changed)


def set_free_memory(
    monkeypatch: pytest.MonkeyPatch, of_machine: int, of_container: int
) -> None:
    """Set the free memory that is found [bytes]."""
    monkeypatch.setattr(memory_budget, "_free_of_machine", lambda: of_machine)
    monkeypatch.setattr(memory_budget, "_free_of_container", lambda: of_container)


def set_installed(
    monkeypatch: pytest.MonkeyPatch, version_of: Callable[[str], str | None]
) -> None:
    """Set the versions of packages that are found installed."""
    monkeypatch.setattr(mujoco_version, "_installed", version_of)


def set_install_folder(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> None:
    """Set the folder in which MuJoCo's library is looked up."""
    monkeypatch.setattr(mujoco_version, "_folder", lambda: folder)


def set_late_worlds(monkeypatch: pytest.MonkeyPatch, num_envs: int) -> None:
    """Set the worlds in which a field that is bound late is computed at a time."""
    monkeypatch.setattr(native, "_LATE_WORLDS", num_envs)


def compute_defaults_always(monkeypatch: pytest.MonkeyPatch, entity: Entity) -> None:
    """Compute the state at reset each time, as after a change of the defaults."""
    monkeypatch.setattr(type(entity), "_defaults_changed", lambda self, rows: True)


def keep_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the sizes of a scene's models as their files state them."""
    monkeypatch.setattr(physics_options, "_settle_sizes", lambda *_: None)


# Formulas and parts of modules.


def array_from(data: bytes) -> np.ndarray:
    """Return an array of an archive."""
    return archive._array(data)  # pyright: ignore[reportPrivateUsage]


def part_prefix(target: Path) -> str:
    """Return the start of the names of a file's unfinished parts."""
    return files._prefix(target)  # pyright: ignore[reportPrivateUsage]


def names_of_others() -> Mapping[str, str]:
    """Return the names of quantities in other libraries, and their names here."""
    return other_names._OTHER_NAMES  # pyright: ignore[reportPrivateUsage]


def names_of_other_environments() -> Mapping[str, str]:
    """Return the attributes of other environments, and what there is here."""
    return framework_names._OTHER_NAMES  # pyright: ignore[reportPrivateUsage]


def sensor_kinds() -> Mapping[str, object]:
    """Return the contracts of MuJoCo's types of sensors, by type."""
    from simstate.entity import model_sensors

    return model_sensors._KINDS  # pyright: ignore[reportPrivateUsage]


def share_in_step(env: Any, touching: Tensor, *gait: Any) -> Tensor:
    """Return the share of the feet that touch when a gait requires it."""
    from simstate.env import rewards

    return rewards._in_step(env, touching, *gait)  # pyright: ignore


def forget_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the tasks that were registered."""
    from simstate.env import tasks

    monkeypatch.setattr(tasks, "_registered", {})


def tables_of(model: Any) -> Sequence[Any]:
    """Return the tables of a propeller."""
    return model._tables


def root_of(flight: Any, name: str) -> Any:
    """Return the free root of an aircraft."""
    return flight._fleet[name].root


def degree_of(path: Path, text: str) -> int:
    """Return the degree of a gravity field, as its file states it."""
    from simstate.space import coefficients

    return coefficients._degree(path, text)  # pyright: ignore


def set_pole(
    monkeypatch: pytest.MonkeyPatch, at: Callable[[Any, np.ndarray], np.ndarray]
) -> None:
    """Set the motion of the Earth's pole."""
    from simstate.space.rotation import EarthRotation

    monkeypatch.setattr(EarthRotation, "_pole_at", at)


def measures_of(touches: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return gaps, speeds and turns of the pairs that may touch."""
    return touches._measure()


def pairs_of(touches: Any) -> Tensor:
    """Return the pairs of geoms that may touch; shape (pairs, 2)."""
    return touches._pairs


def thickness_of(touches: Any) -> Tensor:
    """Return the half thickness of the pairs that may touch [m]."""
    return touches._thickness()


def touches_in(touches: Any, worlds: list[int]) -> Mapping[int, Any]:
    """Return the touches of worlds, as they are now."""
    return touches._find(torch.tensor(worlds))


def known_touches(touches: Any) -> Sequence[Any]:
    """Return the touches of each world at the start of the step."""
    return touches._known


def scratch_of(sim: Simulation) -> Simulation:
    """Return the scratch worlds in which the futures of a simulation were run."""
    from simstate.study import scratch_worlds

    return scratch_worlds._scratch[sim][0].made  # pyright: ignore


# Training.


def gather(run: Any) -> None:
    """Collect the steps of one update of a training run."""
    run._gather(run._worlds.get_observations())


def explicit_critic_of(algorithm: Any) -> Any:
    """Return the critic as the explicit update evaluates it."""
    return algorithm._critic


def set_losses(monkeypatch, learner, value, actor):
    """Make each step of a SoftActorCritic, which learns nothing, have these losses."""
    monkeypatch.setattr(learner, "_learn_values", lambda *_: value)
    monkeypatch.setattr(learner, "_learn_actor", lambda *_: actor)
    monkeypatch.setattr(learner, "_normalise", lambda: None)


def learn_from(sac: Any, buffer: object, fresh: object, **changes: Any) -> None:
    """Let a soft actor-critic learn from given steps, and change its settings."""
    sac._replay = buffer
    sac._fresh.append(fresh)
    sac._cfg = dataclasses.replace(sac._cfg, **changes)


def set_draws(monkeypatch: Any, sac: Any, log_prob: float) -> None:
    """Let a learner draw zeros of a log-probability, and not learn to act."""

    def draw(seen: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(seen), 1), torch.full((len(seen),), log_prob)

    monkeypatch.setattr(sac, "_draw", draw)
    monkeypatch.setattr(sac, "_learn_actor", lambda *_: torch.zeros(2))


def set_log_temperature(sac: Any, value: float) -> None:
    """Set the logarithm of a soft actor-critic's temperature."""
    sac._log_temperature.data.fill_(value)


def worker_env(held: Any) -> Any:
    """Return the environment that a worker of Ray holds."""
    return held._held._env


# The command line.


def dispersion_table(command: Any, rows: Sequence[object]) -> Any:
    """Return the table that `simstate dispersions` prints."""
    return command._table(rows)


def display_on(stream: Any) -> Any:
    """Return the display of a command in progress."""
    from simstate.cli.console import _Display  # pyright: ignore[reportPrivateUsage]

    return _Display(stream)


def shown_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[str, float | None, str]]:
    """Return a list that grows with each update of the display of a command."""
    module = import_module("simstate.cli.console")  # which a function hides

    class Kept(list[tuple[str, float | None, str]]):
        def update(self, title: str, fraction: float | None, note: str = "") -> None:
            self.append((title, fraction, note))

        def hide(self) -> None:
            pass

    kept = Kept()
    monkeypatch.setattr(module, "_displays", [kept])
    return kept


def spread(values: list[float]) -> str:
    """Return mean and spread of the runs of a sweep, as they are printed."""
    from simstate.cli import sweep

    return sweep._spread(values)  # pyright: ignore[reportPrivateUsage]


def profile_table(spent: dict[str, float]) -> Any:
    """Return the table of core-seconds that `simstate train --profile` prints."""
    from simstate.cli import train

    return train._profile(spent)  # pyright: ignore[reportPrivateUsage]


def placeholder_of(hint: Any) -> str | None:
    """Return what the help shows in place of a setting's value."""
    from simstate.cli import task_options

    return task_options._metavar(hint)  # pyright: ignore[reportPrivateUsage]


def names_policy(viewed: Any) -> bool:
    """Return True if what the command names is a policy."""
    return viewed._is_policy()


def joint_labels(trajectory: Any, per: str) -> list[str]:
    """Return the labels of a trajectory's joints, with units."""
    return trajectory._joint_labels(per)


# Recordings.


def replace_attach(
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Callable[[str, bytes], None], str, bytes], None],
) -> None:
    """Call `change(attach, name, data)` in place of attaching data to a recording."""
    from simstate.record.container_writer import ContainerWriter  # loads mcap

    own = ContainerWriter._attach  # pyright: ignore[reportPrivateUsage]

    def attach(self: Any, name: str, data: bytes) -> None:
        change(partial(own, self), name, data)

    monkeypatch.setattr(ContainerWriter, "_attach", attach)


def delay_writes(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], bool]) -> None:
    """Wait before each block of a recording is written."""
    from simstate.record.container_writer import ContainerWriter  # loads mcap

    own = ContainerWriter._write  # pyright: ignore[reportPrivateUsage]

    def slow(self: Any, *args: Any) -> None:
        assert wait()
        own(self, *args)

    monkeypatch.setattr(ContainerWriter, "_write", slow)


def writer_of(recorder: Any) -> Any:
    """Return the writer of a recorder's file."""
    return recorder._writer


def file_of(recorder: Any) -> Any:
    """Return the open file of a recorder."""
    return recorder._writer._file


def has_finished(recorder: Any) -> bool:
    """Return True if the thread that writes a recording has ended."""
    return recorder._writer._finished


def write_block(recorder: Any) -> None:
    """Pass what is buffered to the thread that writes a recording."""
    recorder._write_block()


def is_closed(recording: Any) -> bool:
    """Return True if the file of a recording that was read is closed."""
    return recording._file._file.closed


def kept_steps(course: Any) -> Mapping[int, Any]:
    """Return the states that a recorded course keeps, by step."""
    return course._kept


def is_same_array(one: np.ndarray, other: np.ndarray) -> bool:
    """Return True if a replayed array is the recorded one."""
    from simstate.data.replay import demonstrations

    return demonstrations._is_same(one, other)  # pyright: ignore


def set_fewest_samples(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Set the fewest samples that a shared page has."""
    from simstate.data.replay import recording_page

    monkeypatch.setattr(recording_page, "_FEWEST_SAMPLES", number)


def set_most_samples(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Set the most samples that a shared page has."""
    from simstate.data.replay import recording_page

    monkeypatch.setattr(recording_page, "_MOST_SAMPLES", number)


def set_longest_text(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Set the most characters of a value in a table of a shared page."""
    from simstate.data.replay import recording_page

    monkeypatch.setattr(recording_page, "_MOST_TEXT", number)


# The viewer.


def draw_now(viewer: Any) -> None:
    """Draw a frame, although no client is connected."""
    viewer._frames = 0
    viewer.show()


def let_draw(viewer: Any) -> None:
    """Let the next `sync` draw, although the last frame was just drawn."""
    viewer._next = 0.0


def status_of(viewer: Any) -> str:
    """Return the line on the state of the viewer's worlds."""
    return viewer._status(0.0)


def actions_of(viewer: Any) -> Any:
    """Return the actions that the controls of a viewer call."""
    return viewer.panel._actions


def num_requests(session: Any) -> int:
    """Return the number of requests that a session has not answered."""
    return session._requests.qsize()


def demonstration_path(viewer: Any) -> Path:
    """Return the temporary file of a demonstration."""
    return viewer.demonstration._path


def meshes_of(viewer: Any) -> Sequence[Any]:
    """Return the meshes of the bodies that a viewer shows."""
    return viewer.picture._geometry.meshes


def grounds_of(viewer: Any) -> Sequence[Any]:
    """Return the floors that a viewer shows, each with its geom."""
    return viewer.picture._geometry._grounds


def is_painted(viewer: Any, overlay: str) -> bool:
    """Return True if an overlay has been drawn."""
    return overlay in viewer.picture._paintings


def handles_of(viewer: Any, overlay: str) -> Mapping[str, Any]:
    """Return the parts of an overlay as viser holds them, by name."""
    return viewer.picture._paintings[overlay]._handles


def labels_of(viewer: Any, overlay: str) -> Sequence[Any]:
    """Return the labels of an overlay."""
    return viewer.picture._paintings[overlay]._labels


def set_overlay(viewer: Any, overlay: str, draw: Callable[[Any], Any]) -> None:
    """Draw an overlay by another function."""
    viewer.picture._draws[overlay] = draw


def asked_label(viewer: Any) -> Any:
    """Return the label at the element that a client asked about."""
    return viewer.picture.asked._label


def companion_parts(viewer: Any) -> Sequence[tuple[Any, int]]:
    """Return the meshes of the worlds that are compared, each with its body."""
    return viewer.picture._companion._parts


def soft_parts(viewer: Any) -> Sequence[tuple[int, Any, Any]]:
    """Return row, surface and handle of the soft bodies that a viewer shows."""
    return viewer.picture._soft._parts


def turns_from_z(directions: np.ndarray) -> np.ndarray:
    """Return the quaternions that turn the z axis to directions."""
    from simstate.view import paint

    return paint._from_z(directions)  # pyright: ignore[reportPrivateUsage]


def server_of(viewer: Any) -> Any:
    """Return viser's server."""
    return viewer._server


def server_thread(viewer: Any) -> Any:
    """Return the thread of viser's server."""
    return viewer._server._websock_server._server_thread


def handled_messages(viewer: Any) -> Sequence[type]:
    """Return the kinds of messages that viser's server handles."""
    return list(viewer._server._websock_server._incoming_handlers)


def num_waiting_messages(viewer: Any) -> int:
    """Return the number of messages that wait for slow clients."""
    buffer = viewer._server._websock_server._broadcast_buffer
    return len(buffer.message_from_id)


def controls_of(viewer: Any) -> dict[str, Any]:
    """Return the controls of a viewer, by viser's id."""
    return dict(viewer._server.gui._gui_input_handle_from_uuid)


def callbacks_of(control: Any) -> Any:
    """Return the functions that a control calls on a change of its value."""
    return control._impl.update_cb


def size_of(drawing: Any) -> float:
    """Return the size of the scene that an offscreen drawing found [m]."""
    return drawing._size


def forget_renderers() -> None:
    """Forget the renderers of all worlds."""
    from simstate.view import offscreen

    offscreen._kept.clear()  # pyright: ignore[reportPrivateUsage]


def remove_opengl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as where no OpenGL library works, before the user was informed."""
    from simstate.view import offscreen, opengl

    monkeypatch.setattr(opengl, "_contexts", [None])
    monkeypatch.setattr(offscreen, "_noted", set())


def opengl_candidates() -> list[str]:
    """Return the OpenGL libraries that are tried."""
    from simstate.view import opengl

    return opengl._candidates()  # pyright: ignore[reportPrivateUsage]


def opengl_backend(
    monkeypatch: pytest.MonkeyPatch, probe: str, candidates: list[str]
) -> str | None:
    """Return the library that a probe of at most a second finds."""
    from simstate.view import opengl

    monkeypatch.setattr(opengl, "_PROBE", probe)
    monkeypatch.setattr(opengl, "_PROBE_SECONDS", 1.0)
    monkeypatch.setattr(opengl, "_candidates", lambda: candidates)
    return opengl.backend.__wrapped__()


# Behaviour.


def draw_noise_from(sim: Simulation, stream: Any) -> None:
    """Let a stochastic scheme draw its noise from another stream."""
    stepper_of(sim)._draw = stream.draw


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


def use_core(path: Path) -> None:
    """Use another compiled core from here on; no simulation may exist yet."""
    name = compiled_core.module_name()
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    core = module_from_spec(spec)
    spec.loader.exec_module(core)
    sys.modules[name] = core
    compiled_core._link_failure.cache_clear()
    draws._compiled.cache_clear()
    compiled_core.module().refuse_by(forks.refusal)


def order_conditions_of(tableau: Any) -> Sequence[tuple[float, str, Any, float]]:
    """Return the order conditions of a stochastic tableau: order, text, value, goal."""
    return sde_conditions._CONDITIONS[tableau.conditions](tableau)
