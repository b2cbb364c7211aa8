"""Measures how far other simulators agree with MuJoCo, for the page on them.

    make align                                      # everything, which takes an hour
    python docs/alignment.py --with drake --models arm
    python docs/alignment.py --policy policy.onnx   # a policy in every simulator
    python docs/alignment.py --figure               # the page's figure of runs

What was measured is kept in docs/alignment.json, an entry for each model and simulator;
`make docs` makes the tables of `other-simulators.md` from it.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium

from simstate import EntityCfg, InitialStateCfg, SceneCfg
from simstate.base.files import write_atomically
from simstate.scene import models
from simstate.scene.load import load_spec
from simstate.simulators import SIMULATORS, align, info
from simstate.simulators.align.findings import RunGap, SimulatorAlignment
from simstate.simulators.align.tables import BOUNDS, draw
from simstate.simulators.randomisation import suggestions

FILE = Path(__file__).with_name("alignment.json")
PACKAGES = {
    "warp": ("mujoco-warp", "warp-lang"),
    "drake": ("drake",),
    "mjx": ("mujoco-mjx", "jax"),
    "newton": ("newton", "warp-lang"),
    "newton-featherstone": ("newton", "warp-lang"),
}
DRAWN = ("drake", "newton", "newton-featherstone")
GYMNASIUM = ("ant", "hopper", "walker2d_v5")
KINEMATIC = ("body ", "centres of mass", "Jacobians")
SECONDS = 1.0


def scene_of(name: str) -> SceneCfg:
    """A shipped model on the ground at its first keyframe, or one of Gymnasium's."""
    if name in models.NAMES:
        source, ground = str(models.path(name)), True
    else:
        assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
        source, ground = str(assets / f"{name.split()[-1]}.xml"), False
    keys = [key.name for key in load_spec(source).keys if key.name]
    start = InitialStateCfg(keyframe=keys[0] if keys else None)
    entity = EntityCfg(model=source, init_state=start)
    return SceneCfg(entities={"robot": entity}, ground=ground, timestep=None)


def measure(model: str, simulator: str) -> dict[str, Any]:
    """The entry of one model in one simulator."""
    begun = time.monotonic()
    found = align(scene_of(model), simulator, model=model, seconds=SECONDS)
    entry: dict[str, Any] = {
        "packages": {p: version(p) for p in PACKAGES.get(simulator, ())},
        "mujoco": version("mujoco"),
        "measured_in_s": round(time.monotonic() - begun, 1),
    }
    if simulator in found.skipped:
        return {**entry, "skipped": found.skipped[simulator]}
    return {**entry, **summary(found[simulator])}


def summary(found: SimulatorAlignment) -> dict[str, Any]:
    """What the page says of an alignment."""
    told = [c for c in found.comparisons if c.verdict in ("agrees", "explained")]
    told += found.unexplained
    kinematic = [c for c in told if c.quantity.startswith(KINEMATIC)]
    return {
        "kinematics": max(c.difference for c in kinematic),
        "rows": {
            c.quantity: {
                "size": c.scale,
                "difference": c.difference,
                "remainder": c.remainder,
                "allowed": c.allowed,
                "verdict": c.verdict,
                "causes": [cause.what for cause in c.causes],
            }
            for c in told
        },
        "causes": {c.what: c.text for c in found.causes.values()},
        "suggestions": [str(line) for line in suggestions(found)],
        "run": None if found.trajectory is None else run_of(found.trajectory),
        "matched": None if found.matched is None else run_of(found.matched),
    }


def run_of(run: RunGap) -> dict[str, Any]:
    """The end of a run, and when a body was off by each bound."""
    return {
        "seconds": run.time[-1],
        "bodies": run.bodies[-1],
        "ended": run.ended,
        "horizons": {f"{bound:g}": run.horizon(bound) for bound in BOUNDS},
    }


def play(policy: Path, simulator: str, num_envs: int, seconds: float) -> dict[str, Any]:
    """Falls and errors of a policy in a simulator; "native" is where it was trained."""
    from contextlib import nullcontext

    from simstate.env import Env, tasks
    from simstate.simulators.borrowed_stepper import borrowed_stepper
    from simstate.train.evaluate import evaluate
    from simstate.train.onnx_policy import OnnxPolicy, task_of

    task = task_of(policy)
    engine = simulator if simulator in ("native", "warp") else "native"
    env = Env(tasks.make_cfg(task), num_envs, engine=engine, seed=1, auto_reset=False)
    own = simulator in ("native", "warp")
    with nullcontext() if own else borrowed_stepper(env, simulator):
        found = evaluate(env, OnnxPolicy(policy, env), seconds)
    return {
        "task": task,
        "num_envs": num_envs,
        "seconds": seconds,
        "falls": found.failures,
        "diverged": env.divergence.count,
        "errors": found.errors,
        "reward": found.reward,
    }


def main() -> None:
    names = [*models.NAMES, *(f"Gymnasium {name}" for name in GYMNASIUM)]
    others = [name for name in SIMULATORS if name != "native"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with", dest="simulators", nargs="+", default=others)
    parser.add_argument("--models", nargs="+", default=names)
    parser.add_argument("--policy", type=Path, help="an ONNX policy to play as well")
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--missing", action="store_true", help="only what is not there")
    parser.add_argument("--figure", action="store_true", help="draw, measure nothing")
    args = parser.parse_args()
    if args.figure:
        draw_figure()
        return
    for simulator in args.simulators:
        info(simulator).require()
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    kept.setdefault("models", {})
    kept["python"] = platform.python_version()
    for simulator in args.simulators:
        for model in args.models if args.policy is None else ():
            place = kept["models"].setdefault(model, {})
            if args.missing and simulator in place:
                continue
            place[simulator] = measure(model, simulator)
            print(model, simulator, place[simulator]["measured_in_s"], "s", flush=True)
            write(kept)
        if args.policy is not None:
            figures = play(args.policy, simulator, args.envs, args.seconds)
            kept.setdefault("policy", {})[simulator] = figures
            print(simulator, figures, flush=True)
            write(kept)


def draw_figure() -> None:
    """How runs of the arm part, in those that do not compile for long."""
    import matplotlib

    matplotlib.rcParams.update({"svg.hashsalt": "simstate", "svg.fonttype": "none"})
    found = align(scene_of("arm"), *DRAWN, model="arm", seconds=SECONDS)
    draw(found, FILE.parent / "figures" / "alignment.svg")


def write(kept: dict[str, Any]) -> None:
    """Replace the file as a whole."""
    text = json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    write_atomically(FILE, text.encode())


if __name__ == "__main__":
    main()
