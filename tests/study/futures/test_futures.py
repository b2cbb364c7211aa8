"""Futures have the bits of a restore followed by the same calls."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from mujoco import rollout
from tests.inside import ledger_of, scratch_of
from tests.raised import raises
from torch import Tensor

from simstate import Simulation, integrate, study
from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.engine import NativeCfg
from simstate.env import Env, EventTermCfg, events, tasks
from simstate.scene import EntityCfg, SceneCfg

WORLDS, EACH, HORIZON = 3, 4, 6

LEGGED = SceneCfg(entities={"robot": EntityCfg(model="quadruped")}, timestep=0.004)
DELAYED = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body pos="0.1 0.2 1" euler="20 30 40">
      <freejoint/>
      <geom type="box" size=".1 .2 .3" pos=".03 .02 .01"/>
      <body pos="0.3 0 0">
        <joint name="a" axis="0 1 0"/>
        <geom type="capsule" size=".05 .2" pos=".1 0 .05"/>
        <body pos="0.3 0.1 0">
          <joint name="b" axis="1 0.5 0"/>
          <geom type="capsule" size=".04 .2" pos="0 .1 .05"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <general joint="a" dyntype="filter" dynprm="0.05" gear="2"/>
    <motor joint="b" gear="3" delay="0.02" nsample="3"/>
  </actuator>
</mujoco>
"""


def delayed(num_envs: int = WORLDS, **options: Any) -> Simulation:
    """A floating arm with a filtered and a delayed motor."""
    model = DELAYED
    if options.get("integrator") is not None:  # which have no delays
        model = model.replace('delay="0.02" nsample="3"', "")
    scene = SceneCfg(entities={"arm": EntityCfg(model=model)}, ground=False)
    return Simulation(scene, num_envs, **options)


def stirred(sim: Simulation) -> Simulation:
    """The simulation after steps in which all worlds became different."""
    generator = torch.Generator().manual_seed(5)
    spread = torch.rand(sim.data.qvel.shape, generator=generator, dtype=torch.float64)
    sim.data.qvel += spread - 0.4
    for _ in range(3):
        draws = torch.rand(sim.data.ctrl.shape, generator=generator, dtype=sim.dtype)
        sim.data.ctrl[:] = draws - 0.3
        sim.step()
    sim.rng.uniform(slice(None), 2, 0.0, 1.0)
    return sim


def some_controls(sim: Simulation, worlds: int = WORLDS, each: int = EACH) -> Tensor:
    generator = torch.Generator().manual_seed(9)
    shape = (worlds, each, HORIZON, sim.model.nu)
    return torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5


def slots_of(sim: Simulation) -> dict[str, bytes]:
    slots = ledger_of(sim).slots
    return {name: slot.tensor.numpy().tobytes() for name, slot in slots.items()}


def check_against_restore(
    sim: Simulation, controls: Tensor, read: str = "qpos", **options: Any
) -> study.Futures:
    """Compare every future with a restore of its world and the same calls."""
    before = slots_of(sim)
    found = study.futures(sim, controls, read={"seen": read}, **options)
    assert slots_of(sim) == before
    start = sim.snapshot()
    worlds, each = found.diverged.shape
    for k in range(each):
        sim.restore(start)
        for h in range(controls.shape[2]):
            sim.data.ctrl[:] = controls[:, k, h]
            sim.step()
            assert torch.equal(found.seen[:, k, h], sim.data.qpos)
        for n in range(worlds):
            end, here = found.state(n, k), sim.snapshot([n])
            assert set(end.slots) == set(here.slots)
            for name, value in here.slots.items():
                assert end.slots[name].numpy().tobytes() == value.numpy().tobytes(), (
                    name
                )
    sim.restore(start)
    return found


def wind(t: Tensor, sim: Any) -> None:
    sim.data.xfrc_applied[:, 1, 1] += torch.sin(3 * t) + sim.data.qvel[:, 0]


class Leak(integrate.Process):
    def rate(self, t: Tensor, sim: Any) -> Tensor:
        return -0.3 * self.value + sim.data.qvel[:, :1]


def with_memory(sim: Simulation) -> Simulation:
    kept = sim.memory("kept", (2,), stage="acceleration", reset=0.5)
    kept[:] = torch.arange(2 * sim.num_envs).reshape(sim.num_envs, 2)
    sim.memory("common", (2,), dtype=torch.int64, shared=True).copy_(
        torch.tensor([3, 4])
    )
    _ = sim.numpy_rng
    sim.keep_evaluated("qacc")
    return sim


def with_parameters(sim: Simulation) -> Simulation:
    masses = sim.expand("body_mass")
    masses *= torch.linspace(0.8, 1.3, sim.num_envs, dtype=masses.dtype)[:, None]
    sim.expand("opt.gravity")[:, 0] = torch.linspace(0.1, 1.0, sim.num_envs)
    return sim


def with_force(sim: Simulation) -> Simulation:
    sim.add_force(wind)
    return sim


def with_process(sim: Simulation) -> Simulation:
    sim.add_process(Leak("leak", [0.3]))
    sim.mass_rate[:, 1] = -0.01
    return sim


def with_gusts(sim: Simulation) -> Simulation:
    gusts = integrate.OrnsteinUhlenbeck("gusts", [0.1, 0.2], 0.3, [0.5, 0.7])
    sim.add_process(gusts)
    sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1, :2].add_(gusts.value))
    return sim


def with_event(sim: Simulation) -> Simulation:
    def push(sim: Any, ids: Tensor) -> None:
        sim.data.qvel[ids, 0] += 0.1 * sim.rng.uniform(ids, 1, 0.0, 1.0)[:, 0]

    sim.add_event(lambda sim: sim.data.qpos[:, 2] - 0.99, action=push, name="low")
    sim.add_task(lambda sim, ids: sim.data.ctrl[ids].add_(0.1), 0.02, name="tick")
    return sim


def with_history(sim: Simulation) -> Simulation:
    sim.record(quantities=["qpos"], every=0.004)
    return sim


CASES: dict[str, Callable[[], Simulation]] = {
    "mujoco": delayed,
    "threads": lambda: delayed(engine=NativeCfg(num_threads=3)),
    "rk4": lambda: delayed(integrator=integrate.RK4(attitude="lie")),
    "adaptive": lambda: delayed(integrator=integrate.DP54()),
    "memory": lambda: with_memory(delayed()),
    "parameters": lambda: with_parameters(delayed()),
    "force": lambda: with_force(delayed()),
    "force in rk4": lambda: with_force(delayed(integrator=integrate.RK4())),
    "process": lambda: with_process(delayed(integrator=integrate.RK4())),
    "noise": lambda: with_gusts(delayed(integrator=integrate.SRIW1())),
    "event": lambda: with_event(delayed(integrator=integrate.RK4())),
    "history": lambda: with_history(delayed()),
    "legs": lambda: Simulation(LEGGED, WORLDS),
}


@pytest.mark.parametrize("case", CASES)
def test_a_future_is_a_restore_and_the_same_calls(case: str):
    sim = stirred(CASES[case]())
    check_against_restore(sim, some_controls(sim))


@pytest.mark.parametrize("chunk", [1, 5, 12])
def test_the_chunk_changes_no_bit(chunk: int):
    sim = stirred(delayed())
    check_against_restore(sim, some_controls(sim), chunk=chunk)


def test_controls_of_one_world_are_for_all():
    sim = stirred(delayed())
    controls = some_controls(sim, 1)
    found = study.futures(sim, controls, read=["qpos"])
    same = study.futures(sim, controls.expand(WORLDS, -1, -1, -1), read=["qpos"])
    assert torch.equal(found.qpos, same.qpos)
    assert not torch.equal(found.qpos[0], found.qpos[1])


def test_a_forced_simulation_in_scratch_worlds():
    """With `make`, futures of a simulation with forces run in more worlds at once."""
    made: list[int] = []

    def make(num_envs: int) -> Simulation:
        made.append(num_envs)
        return with_event(with_force(delayed(num_envs, integrator=integrate.RK4())))

    sim = stirred(make(WORLDS))
    check_against_restore(sim, some_controls(sim), make=make)
    study.futures(sim, some_controls(sim), make=make)
    assert made == [WORLDS, WORLDS * EACH]


def test_make_must_build_the_same_simulation():
    sim = stirred(with_force(delayed()))
    with raises(InvalidInputError, name="make"):
        study.futures(sim, some_controls(sim), make=delayed)
    with raises(InvalidInputError, name="make"):
        study.futures(sim, some_controls(sim), make=lambda n: delayed(n + 1))


def test_samples_between_which_controls_are_held_or_change():
    sim = stirred(delayed())
    held = some_controls(sim)[:, :, :2].repeat_interleave(3, dim=2)
    for controls in (held, some_controls(sim)):
        every = study.futures(sim, controls, read=["qpos"]).qpos
        third = study.futures(sim, controls, read=["qpos"], every=3).qpos
        assert torch.equal(third, every[:, :, 2::3])


@pytest.mark.parametrize("control", [1e14, 0.4])
def test_a_huge_control_diverges_also_where_its_range_clamps_it(control: float):
    sim = stirred(Simulation(LEGGED, WORLDS))
    controls = some_controls(sim)
    controls[1, 2, 1, 0] = control
    for every in (1, 3):
        found = study.futures(sim, controls, read=["qpos"], every=every)
        diverged = [[1, 2]] if control > 1 else []
        assert found.diverged.nonzero().tolist() == diverged


def test_mujoco_rollout_agrees():
    sim = stirred(Simulation(LEGGED, 2))
    controls = some_controls(sim, 2)
    found = study.futures(sim, controls, read=["qpos"])
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    data = mujoco.MjData(sim.model)
    for n in range(2):
        mujoco.mj_setState(
            sim.model, data, sim.state[n].numpy(), mujoco.mjtState.mjSTATE_INTEGRATION
        )
        start = np.zeros(mujoco.mj_stateSize(sim.model, spec))
        mujoco.mj_getState(sim.model, data, start, spec)
        states, _ = rollout.rollout(
            sim.model,
            mujoco.MjData(sim.model),
            np.repeat(start[None], EACH, axis=0),
            controls[n].numpy(),
            initial_warmstart=np.repeat(data.qacc_warmstart[None], EACH, axis=0),
        )
        qpos = torch.from_numpy(states[:, :, 1 : 1 + sim.model.nq])
        assert torch.equal(found.qpos[n], qpos)


# Random numbers.


def noisy(sim: Any) -> Tensor:
    return sim.rng.uniform(slice(None), 3, 0.0, 1.0)


def test_futures_draw_their_worlds_next_numbers():
    sim = stirred(delayed())
    _ = sim.numpy_rng
    read = {"drawn": noisy, "numpy": lambda s: _numpy(s)}
    found = study.futures(sim, some_controls(sim), read=read)
    assert torch.equal(found.drawn[:, :1].expand_as(found.drawn), found.drawn)
    assert len({tuple(row) for row in found.drawn[:, 0, 0].tolist()}) == WORLDS
    start = sim.snapshot()
    sim.data.ctrl[:] = 0.0
    sim.step()
    assert torch.equal(found.drawn[:, 2, 0], noisy(sim))
    assert torch.equal(found.numpy[:, 2, 0], _numpy(sim))
    sim.restore(start)


def _numpy(sim: Any) -> Tensor:
    return torch.from_numpy(sim.numpy_rng.draw(lambda rng: rng.random(2)))


@pytest.mark.parametrize("with_own_worlds", [False, True])
def test_seeds_make_futures_independent(with_own_worlds: bool):
    sim = stirred(delayed(first_world=7))
    if with_own_worlds:
        sim.add_force(wind)
    _ = sim.numpy_rng
    seeds = [11, 5, 11, 80]
    read = {"drawn": noisy, "numpy": _numpy}
    found = study.futures(sim, some_controls(sim), read=read, seeds=seeds)
    assert torch.equal(found.drawn[:, 0], found.drawn[:, 2])
    assert not torch.equal(found.drawn[:, 0], found.drawn[:, 1])
    assert torch.equal(found.seeds, torch.tensor(seeds).expand(WORLDS, EACH))
    sim.rng.seed(5)
    sim.numpy_rng.seed(5)
    sim.step()
    assert torch.equal(found.drawn[:, 1, 0], noisy(sim))
    assert torch.equal(found.numpy[:, 1, 0], _numpy(sim))


# Divergence and costs.


@pytest.mark.parametrize("with_own_worlds", [False, True])
def test_a_diverging_future_is_marked_and_the_others_continue(with_own_worlds: bool):
    sim = stirred(delayed())
    if with_own_worlds:
        sim.add_force(wind)
    controls = some_controls(sim)
    controls[1, 2, 3:, 0] = 1e14
    before = slots_of(sim)
    found = study.futures(
        sim, controls, read=["qpos"], cost=lambda s: s.data.qpos[:, 2] ** 2
    )
    assert slots_of(sim) == before
    assert found.diverged.nonzero().tolist() == [[1, 2]]
    assert found.cost[1, 2] == math.inf
    fine = ~found.diverged
    wanted = (found.qpos[..., 2] ** 2).sum(dim=2)
    assert torch.allclose(found.cost[fine], wanted[fine], rtol=1e-15)
    assert sim.on_divergence == "raise"


# Environments.


def slew(num_envs: int = WORLDS) -> Env:
    cfg = tasks.make_cfg("Satellite-Slew")
    cfg.events["kick"] = EventTermCfg(
        events.push_by_setting_velocity,
        params={"velocity_range": {"roll": (-0.1, 0.1), "x": (-0.1, 0.1)}},
        mode="interval",
        interval_s=(0.3, 0.5),
    )
    cfg.episode_length_s = 1.6
    return Env(cfg, num_envs, seed=3)


def some_actions(env: Env) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    shape = (env.num_envs, EACH, HORIZON, env.action_dim)
    return 2 * torch.rand(shape, generator=generator) - 1


@pytest.mark.parametrize("case", ["plain", "force", "chunk"])
def test_futures_of_a_task(case: str):
    """Rewards, ends, resets and events, some of them random; an episode ends."""
    env = slew()
    if case == "force":
        env.sim.add_force(wind)
    for _ in range(4):
        env.step(some_actions(env)[:, 1, 0])
    actions = some_actions(env)
    before = slots_of(env.sim)
    chunk = 5 if case == "chunk" else None
    found = study.futures(
        env, actions, read={"w": "robot.root_link_ang_vel_w"}, chunk=chunk
    )
    assert slots_of(env.sim) == before
    start = env.snapshot()
    for k in range(EACH):
        env.restore(start)
        for h in range(HORIZON):
            _, reward, terminated, truncated, _ = env.step(actions[:, k, h])
            assert torch.equal(found.reward[:, k, h], reward)
            assert torch.equal(found.terminated[:, k, h], terminated)
            assert torch.equal(found.truncated[:, k, h], truncated)
            seen = env.scene["robot"].data.root_link_ang_vel_w
            assert torch.equal(found.w[:, k, h], seen)
        end = found.state(1, k)
        for name, value in env.snapshot([1]).slots.items():
            if name != "env/step_count":
                assert torch.equal(end.slots[name].nan_to_num(), value.nan_to_num()), (
                    name
                )
    assert bool(found.truncated.any())
    ended = found.truncated.int().argmax(dim=2)
    sums = found.reward.cumsum(dim=2).gather(2, ended[..., None])[..., 0]
    assert torch.allclose(found.returns[..., -1], sums)
    assert torch.allclose(found.cost, -sums.double(), atol=1e-6)


def by_number(env: Any) -> Tensor:
    return torch.arange(env.num_envs) * 1.0


def test_a_term_that_depends_on_the_number_of_a_world():
    """Scratch worlds would give another reward, so the task's own ones are used."""
    cfg = tasks.make_cfg("Satellite-Slew")
    cfg.rewards["number"] = type(cfg.rewards["angle"])(by_number, weight=1.0)
    env = Env(cfg, WORLDS)
    actions = some_actions(env)
    with pytest.warns(RuntimeWarning, match="differ"):
        found = study.futures(env, actions)
    _, reward, *_ = env.step(actions[:, 3, 0])
    assert torch.equal(found.reward[:, 3, 0], reward)


# Interruptions, memory and mistakes.


@pytest.mark.parametrize("add", [with_memory, with_force])
def test_an_interrupted_call_has_no_effect(add: Callable[[Simulation], Simulation]):
    sim = stirred(add(delayed()))
    before, calls = slots_of(sim), 0

    def read(sim: Any) -> Tensor:
        nonlocal calls
        calls += 1
        if calls > 6:
            raise KeyboardInterrupt
        return sim.time

    with pytest.raises(KeyboardInterrupt):
        study.futures(sim, some_controls(sim), read={"t": read})
    assert slots_of(sim) == before
    calls = -1000
    check_against_restore(sim, some_controls(sim))


def test_recorders_see_no_future(tmp_path: Any):
    sim = stirred(with_force(delayed()))
    with sim.record(tmp_path / "a.simrec", quantities=["qpos"]) as recorder:
        sim.step()
        study.futures(sim, some_controls(sim))
        sim.step()
    assert recorder.samples == 3


def test_scratch_worlds_are_kept_and_end_with_the_simulation():
    sim = stirred(delayed())
    gone = weakref.ref(sim)
    study.futures(sim, some_controls(sim))
    scratch = weakref.ref(scratch_of(sim))
    study.futures(sim, some_controls(sim))
    assert scratch_of(sim) is scratch()
    del sim
    gc.collect()
    gc.collect()  # what its end has released
    assert gone() is None
    assert scratch() is None


def test_parameters_and_memory_that_are_added_later():
    sim = stirred(delayed())
    study.futures(sim, some_controls(sim))
    with_parameters(with_memory(sim))
    check_against_restore(sim, some_controls(sim))


def test_a_force_that_is_added_later_needs_other_scratch_worlds():
    """Those that were built before it would run without it."""
    sim = stirred(delayed())
    study.futures(sim, some_controls(sim))
    with_force(sim)
    check_against_restore(
        sim, some_controls(sim), make=lambda n: with_force(delayed(n))
    )


def test_a_function_that_draws_leaves_the_streams():
    sim = stirred(delayed())
    before = slots_of(sim)

    def noisy(sim: Any) -> Tensor:
        return sim.data.qpos[:, :2] + sim.rng.uniform(slice(None), 2, 0.0, 1.0)

    study.futures(sim, some_controls(sim), read={"noisy": noisy})
    assert slots_of(sim) == before
    study.derivatives(sim, of={"noisy": noisy}, by="ctrl")
    assert slots_of(sim) == before


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "shape": ({"controls": torch.zeros(WORLDS, 2, 3)}, "controls"),
    "worlds": ({"controls": torch.zeros(2, 2, 3, 2)}, "controls"),
    "no futures": ({"controls": torch.zeros(1, 0, 3, 2)}, "controls"),
    "no steps": ({"controls": torch.zeros(1, 2, 0, 2)}, "controls"),
    "nan": ({"controls": torch.full((1, 2, 3, 2), math.nan)}, "controls"),
    "every": ({"every": 4}, "every"),
    "zero every": ({"every": 0}, "every"),
    "unknown": ({"read": ["arm.root_link_position"]}, "root_link_position"),
    "reserved": ({"read": {"cost": "qpos"}}, "cost"),
    "a field": ({"read": {"values": "qpos"}}, "values"),
    "name": ({"read": ["arm.root_link_pos_w"]}, "arm.root_link_pos_w"),
    "read": ({"read": {"x": lambda sim: torch.zeros(2)}}, "x"),
    "cost": ({"cost": 3}, "cost"),
    "cost shape": ({"cost": lambda sim: sim.data.qpos}, "the cost"),
    "cost call": ({"cost": lambda: 3.0}, "cost"),
    "read call": ({"read": {"x": lambda: 3.0}}, "x"),
    "text": ({"controls": "left"}, "controls"),
    "rows": ({"controls": [[1.0, 2.0], [3.0]]}, "controls"),
    "make": ({"make": 3}, "make"),
    "seed texts": ({"seeds": "abcd"}, "seeds"),
    "flags": ({"seeds": [True, False, True, True]}, "seeds"),
    "large": ({"seeds": [1, 2, 2**70, 4]}, "seeds"),
    "seeds": ({"seeds": [1, 2]}, "seeds"),
    "negative": ({"seeds": [1, 2, -3, 4]}, "seeds"),
    "chunk": ({"chunk": 0}, "chunk"),
    "memory": (
        {"controls": torch.zeros(1, 1, 1, 2).expand(1, 2**24, 2**20, 2)},
        "memory",
    ),
    "target": ({"target": 3}, "target"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str):
    options, wanted = BAD[case]
    sim = stirred(delayed())
    before = slots_of(sim)
    given: dict[str, Any] = {"target": sim, "controls": some_controls(sim), **options}
    with raises(SimStateError, name=wanted):
        study.futures(given.pop("target"), given.pop("controls"), **given)
    assert slots_of(sim) == before


def test_states_of_futures_are_copies():
    sim = stirred(delayed())
    found = study.futures(sim, some_controls(sim))
    first = found.state(2, 1)
    kept = {name: value.clone() for name, value in first.slots.items()}
    for value in first.slots.values():
        value.zero_()
    again = found.state(2, 1).slots
    assert all(torch.equal(again[name], value) for name, value in kept.items())


def test_unknown_attributes_of_futures():
    sim = delayed()
    found = study.futures(sim, some_controls(sim), read={"height": "qpos"})
    with raises(SimStateError, name="heigth") as caught:
        _ = found.heigth
    assert "height" in caught.value.known
    with raises(SimStateError, name="k"):
        found.state(0, EACH)
    assert isinstance(ShapeError("x"), SimStateError)


def test_a_force_model_cannot_run_futures():
    sim = delayed()
    controls = some_controls(sim)
    sim.add_force(lambda t, sim: study.futures(sim, controls))
    with raises(InvalidInputError, name="futures"):
        sim.step()
