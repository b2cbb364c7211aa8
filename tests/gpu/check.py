"""Everything that only a GPU can tell, in one report to paste: `make gpu-check`.

Laws and parity with the native engine, steps without a wait of the host, snapshots, a
training of seconds, and rates. Without a GPU it says what is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.mujoco_version import LIBRARIES, installed_versions
from simstate.cli import main as command
from simstate.cli.report import machine
from simstate.env import Env, tasks
from simstate.study import oracles

PARITY = 2e-4
"""The greatest difference that float32 may make in a few steps, of the size or 1."""


@dataclass(frozen=True)
class Case:
    """What the parts run on."""

    device: str
    models: tuple[str, ...]
    worlds: tuple[int, ...]

    def scene(self, model: str) -> SceneCfg:
        """The model on a floor, at its own time step."""
        return SceneCfg(entities={"robot": EntityCfg(model=model)})

    def sim(self, model: str, num_envs: int, engine: str = "warp") -> Simulation:
        """Worlds of the model; those of native are on the host."""
        return Simulation(
            self.scene(model),
            num_envs,
            engine=engine,
            device=self.device if engine == "warp" else "cpu",
            on_divergence="mask",
            seed=3,
        )


def laws(case: Case) -> Iterator[tuple[str, bool]]:
    """Every law on every model, in random states."""
    for model in case.models:
        found = oracles.check(case.scene(model), "warp", device=case.device)
        worst = max(found.checks, key=lambda each: each.error)
        yield (
            f"{model}: {len(found.checks)} checks, {len(found.failures)} failed, "
            f"greatest error {worst.error:.1e} ({worst.law}, {worst.quantity})",
            found.passed,
        )


def parity(case: Case) -> Iterator[tuple[str, bool]]:
    """The same random states in the air on native and on warp: the same steps."""
    for model in case.models:
        native, warp = case.sim(model, 6, "native"), case.sim(model, 6)
        oracles.randomize(native, 5)
        native.data.qpos[:, 2] += 2.0
        warp.write_state(native.state.to(warp.device, warp.dtype))
        native.step(10)
        warp.step(10)
        for name in ("qpos", "qvel", "xpos", "cvel"):
            ours = getattr(warp.data, name).cpu()
            error = oracles.relative_error(ours, getattr(native.data, name))
            yield f"{model}.{name} after 10 steps: {error:.1e}", error <= PARITY


def waits(case: Case) -> Iterator[tuple[str, bool]]:
    """How often the host waits for the GPU in a step; torch tells on CUDA alone."""
    if not case.device.startswith("cuda"):
        yield "left out: torch tells of waits on CUDA alone", True
        return
    env = Env(
        tasks.make_cfg("Quadruped-Velocity"), 64, engine="warp", device=case.device
    )
    action = torch.zeros(64, env.action_dim, device=case.device)
    for name, most, step in (
        ("sim.step(4)", 1, lambda: env.sim.step(4)),
        ("env.step", 2, lambda: env.step(action)),
    ):
        for _ in range(3):
            step()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                step()
            finally:
                torch.cuda.set_sync_debug_mode("default")
        places = sorted({f"{Path(w.filename).name}:{w.lineno}" for w in told})
        said = f"{name}: torch waits {len(told)} times, {most} at most"
        yield f"{said} {', '.join(places)}".rstrip(), len(told) <= most


def snapshots(case: Case) -> Iterator[tuple[str, bool]]:
    """A snapshot on the device goes on as the simulation did."""
    for model in case.models:
        sim = case.sim(model, 5)
        oracles.randomize(sim, 8)
        sim.step(3)
        kept = sim.snapshot()
        sim.step(4)
        first = sim.state.cpu()
        sim.restore(kept)
        sim.step(4)
        error = oracles.relative_error(sim.state.cpu(), first)
        yield f"{model}: again after restore: {error:.1e}", error <= PARITY


def training(case: Case) -> Iterator[tuple[str, bool]]:
    """A training of two updates, and the policy played."""
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder, "run"))
        where = ("--engine", "warp", "--device", case.device)
        for name, args in (
            ("train", ("train", "Cartpole-Balance", "--run-dir", run, "--envs", "64",
                       "--iterations", "2", "--logger", "none", *where)),
            ("play", ("play", run, "--envs", "8", "--seconds", "0.5", *where)),
        ):  # fmt: skip
            said = io.StringIO()
            start = time.perf_counter()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = command(list(args))
            seconds = time.perf_counter() - start
            last = "" if code == 0 else said.getvalue().strip().splitlines()[-1]
            yield f"simstate {name}: {seconds:.0f} s {last}".rstrip(), code == 0


def rates(case: Case) -> Iterator[tuple[str, bool]]:
    """World-steps per second, of the physics and of a task."""
    for model in case.models:
        for worlds in case.worlds:
            sim = case.sim(model, worlds)
            rate = 4 * worlds / _seconds(case, lambda sim=sim: sim.step(4))
            yield f"{model}, {worlds} worlds: {rate:,.0f} world-steps/s", rate > 0
    for worlds in case.worlds:
        cfg = tasks.make_cfg("Quadruped-Velocity")
        env = Env(cfg, worlds, engine="warp", device=case.device)
        action = torch.zeros(worlds, env.action_dim, device=case.device)
        rate = worlds / _seconds(case, lambda env=env, a=action: env.step(a))
        yield f"Quadruped-Velocity, {worlds} worlds: {rate:,.0f} env-steps/s", rate > 0


def _seconds(case: Case, call: Callable[[], object], repeats: int = 20) -> float:
    """The time of one call, after some to warm up."""
    wait = torch.cuda.synchronize if case.device.startswith("cuda") else lambda: None
    for _ in range(3):
        call()
    wait()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    wait()
    return (time.perf_counter() - start) / repeats


PARTS = {
    part.__name__: part for part in (laws, parity, snapshots, waits, training, rates)
}


def missing(device: str) -> str | None:
    """What hinders the check on this machine, in one line."""
    if not device.startswith("cuda"):
        return None
    if torch.version.cuda is None:
        return (
            f"torch {torch.__version__} was built without CUDA: install the build for "
            "your driver from pytorch.org"
        )
    if not torch.cuda.is_available():
        return "torch sees no GPU: look whether nvidia-smi does"
    import warp

    if not warp.is_cuda_available():
        return "torch sees a GPU and Warp does not: its driver may be too old"
    return None


def check(case: Case, parts: list[str]) -> bool:
    """Run the parts and print the report; whether all is well."""
    print("## simstate gpu-check\n")
    versions = installed_versions((*LIBRARIES, "warp-lang", "rsl-rl-lib"))
    for name, value in (machine() | versions).items():
        print(f"- {name}: {value}")
    good = True
    for name in parts:
        print(f"\n### {name}\n")
        try:
            for line, holds in PARTS[name](case):
                print(f"- {'ok' if holds else '**FAILED**'}: {line}", flush=True)
                good &= holds
        except Exception:  # the report goes on with the other parts
            print(f"- **FAILED**\n```\n{traceback.format_exc(limit=-3).strip()}\n```")
            good = False
    print(f"\n{'All of it holds.' if good else 'Something FAILED.'}")
    return good


def main(args: list[str] | None = None) -> int:
    """Check, and print the report; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["quadruped", "humanoid"])
    parser.add_argument("--worlds", nargs="+", type=int, default=[1024, 4096, 16384])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    given = parser.parse_args(args)
    reason = missing(given.device)
    if reason is not None:
        print(f"gpu-check: {reason}.", file=sys.stderr)
        return 1
    case = Case(given.device, tuple(given.models), tuple(given.worlds))
    return 0 if check(case, given.parts) else 1


if __name__ == "__main__":
    sys.exit(main())
