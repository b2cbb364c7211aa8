"""The same worlds by simstate, mujoco.batch, mujoco.rollout, a loop, mujoco_warp."""

from __future__ import annotations

import os

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp
from mujoco import rollout
from rich.table import Table

from entity_data import KEYFRAMES, SUBSTEPS, bare, make
from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from timing import interleaved, rest

WORLDS = 1024
WARP_WORLDS = 64
FULL = mujoco.mjtState.mjSTATE_INTEGRATION.value
VEL = mujoco.mjtStage.mjSTAGE_VEL.value


def one_process(table: Table, results: dict[str, float]) -> None:
    """Four ways to advance 1024 worlds by four steps, from one state, interleaved."""
    for model in KEYFRAMES:
        sim = make(model, WORLDS)
        start = sim.state.numpy().copy()
        calls = {
            "simstate": lambda sim=sim, start=start: _simstate(sim, start),
            "mujoco.batch": _Batch(sim, start),
            "mujoco.rollout": _Rollout(sim.model, start),
            "a Python loop": _Loop(sim.model, start),
        }
        for call in calls.values():
            call()
        _same_end(sim, calls)
        timing = interleaved(calls, 15, dict.fromkeys(calls, rest))
        ours = WORLDS * SUBSTEPS / timing["simstate"].median
        for name in list(calls)[1:]:
            rate = WORLDS * SUBSTEPS / timing[name].median
            results[f"{model} {WORLDS}: simstate / {name}"] = ours / rate
            table.add_row(
                f"{model}, {WORLDS} worlds, 4 substeps",
                f"{ours / 1e3:,.1f} k world-steps/s",
                f"{rate / 1e3:,.1f} k world-steps/s",
                f"{ours / rate:.2f} × {name}",
                timing[name].spread_text,
            )


def on_warp(table: Table, results: dict[str, float]) -> None:
    """The warp engine against bare mujoco_warp, both on the CPU, where it has one core.

    simstate's step ends with positions and velocities of the new state, and with a
    look for worlds that diverged; mujoco_warp's does neither.
    """
    model = "quadruped"
    state = InitialStateCfg(keyframe=KEYFRAMES[model])
    scene = SceneCfg(entities={"robot": EntityCfg(model=model, init_state=state)})
    sim = Simulation(scene, WARP_WORLDS, engine="warp")
    start = sim.state.clone()
    other = mjw.put_model(sim.model)
    data = mjw.put_data(sim.model, mujoco.MjData(sim.model), nworld=WARP_WORLDS)
    qpos, qvel = (wp.to_torch(getattr(data, name)) for name in ("qpos", "qvel"))
    nq, nv = sim.model.nq, sim.model.nv

    def ours() -> None:
        sim.write_state(start)
        sim.step(SUBSTEPS)

    def theirs() -> None:
        qpos.copy_(start[:, 1 : 1 + nq])  # after the time
        qvel.copy_(start[:, 1 + nq : 1 + nq + nv])
        for _ in range(SUBSTEPS):
            mjw.step(other, data)

    timing = interleaved({"ours": ours, "bare": theirs}, 9)
    work = WARP_WORLDS * SUBSTEPS
    ratio = timing["bare"].median / timing["ours"].median
    results[f"{model} {WARP_WORLDS}, warp on the CPU: simstate / mujoco_warp"] = ratio
    table.add_row(
        f"{model}, {WARP_WORLDS} worlds, 4 substeps, warp on the CPU",
        f"{work / timing['ours'].median / 1e3:,.2f} k world-steps/s",
        f"{work / timing['bare'].median / 1e3:,.2f} k world-steps/s",
        f"{ratio:.2f} × mujoco_warp",
        timing["ours"].spread_text,
    )


def _simstate(sim: Simulation, start: np.ndarray) -> None:
    sim.state.copy_(torch.from_numpy(start))
    sim.step(SUBSTEPS)


class _Batch:
    """mujoco.batch with the fields bound that simstate has bound."""

    def __init__(self, sim: Simulation, start: np.ndarray) -> None:
        self.batch, self.start = bare(sim), start

    def __call__(self) -> None:
        np.copyto(self.batch.state, self.start)
        self.batch.step(nstep=SUBSTEPS, stage=VEL)

    @property
    def end(self) -> np.ndarray:
        """The state after a call."""
        return self.batch.state


class _Rollout:
    """mujoco.rollout with its pool of threads; states alone, no derived fields."""

    def __init__(self, model: mujoco.MjModel, start: np.ndarray) -> None:
        self.model = model
        threads = len(os.sched_getaffinity(0))
        self.data = [mujoco.MjData(model) for _ in range(threads)]
        self.pool = rollout.Rollout(nthread=threads)
        self.row = mujoco.MjData(model)
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
        self.start = np.stack([self._rewritten(row, full) for row in start])
        warm = mujoco.mjtState.mjSTATE_WARMSTART.value
        self.warm = np.stack([self._rewritten(row, warm) for row in start])
        control = np.stack(
            [self._rewritten(row, mujoco.mjtState.mjSTATE_CTRL.value) for row in start]
        )
        self.control = np.repeat(control[:, None], SUBSTEPS, axis=1)

    def _rewritten(self, row: np.ndarray, spec: int) -> np.ndarray:
        """Another part of the state that a row holds."""
        mujoco.mj_setState(self.model, self.row, row, FULL)
        values = np.zeros(mujoco.mj_stateSize(self.model, spec))
        mujoco.mj_getState(self.model, self.row, values, spec)
        return values

    def __call__(self) -> None:
        self.states, _ = self.pool.rollout(
            self.model,
            self.data,
            self.start,
            self.control,
            nstep=SUBSTEPS,
            initial_warmstart=self.warm,
        )

    @property
    def end(self) -> np.ndarray:
        """Time, qpos, qvel, … after a call."""
        return self.states[:, -1]


class _Loop:
    """One MjData, world after world, as a plain script does it."""

    def __init__(self, model: mujoco.MjModel, start: np.ndarray) -> None:
        self.model, self.start, self.end = model, start, start.copy()
        self.data = mujoco.MjData(model)

    def __call__(self) -> None:
        for k in range(len(self.start)):
            mujoco.mj_setState(self.model, self.data, self.start[k], FULL)
            mujoco.mj_step(self.model, self.data, nstep=SUBSTEPS)
            mujoco.mj_getState(self.model, self.data, self.end[k], FULL)


def _same_end(sim: Simulation, calls: dict[str, object]) -> None:
    """All end in the same qpos, bit for bit; otherwise the ratios mean nothing."""
    columns = slice(1, 1 + sim.model.nq)  # both layouts begin with time and qpos
    want = sim.state[:, columns].numpy()
    for name, call in calls.items():
        if name != "simstate":
            gap = np.abs(call.end[:, columns] - want).max()
            if gap:
                raise SystemExit(f"simstate and {name} differ by {gap:.2e}.")
