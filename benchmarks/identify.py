"""Identification next to mujoco.sysid: CPU time, and the shares of models and rollouts.

Both fit the armatures of the arm in mujoco.sysid's own tests, and those of a model with
meshes, whose compilation dominates; one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # idle threads of BLAS wait busily

import mujoco
import numpy as np
from mujoco import rollout, sysid
from mujoco.sysid._src import residual as sysid_residual
from mujoco.sysid.tests.test_integration import ARM_XML

from simstate import study
from simstate.record import Log, LogColumn

JOINTS = [f"joint{k}" for k in range(1, 6)]
TRUTH = (0.5, 0.4, 0.3, 0.2, 0.1)


def with_mesh(xml: str) -> str:
    """The arm with a mesh of 4,000 vertices, as a scanned link has."""
    points = np.random.default_rng(0).normal(size=(4000, 3))
    points *= 0.02 / np.linalg.norm(points, axis=1, keepdims=True)
    text = " ".join(f"{x:.5f}" for x in points.ravel())
    mesh = f'<asset><mesh name="scan" vertex="{text}"/></asset><worldbody>'
    xml = xml.replace("<worldbody>", mesh, 1)
    geom = '<geom type="mesh" mesh="scan" contype="0" conaffinity="0" mass="0"/>'
    return xml.replace("</worldbody>", f"{geom}</worldbody>")


def make_data(xml: str):
    spec = mujoco.MjSpec.from_string(xml)
    model = spec.compile()
    data = mujoco.MjData(model)
    t = np.arange(1000) * model.opt.timestep
    rates, phases = (0.5, 0.7, 0.4, 0.9, 0.6), (0, 0.5, 1.0, 1.5, 2.0)
    control = np.stack(
        [
            (5 - k) * np.sin(2 * np.pi * rate * t + phase)
            for k, (rate, phase) in enumerate(zip(rates, phases, strict=True))
        ],
        axis=1,
    )
    start = sysid.create_initial_state(model, data.qpos, data.qvel, data.act)
    state, sensors = rollout.rollout(model, data, start, control[:-1])
    noise = np.random.default_rng(1).normal(size=sensors[0].shape)
    sensors = sensors[0] + noise * np.repeat([1e-4, 1e-3], 5)
    return spec, start, t, control, state[0][:, 0], sensors


def run_sysid(spec, start, t, control, times, sensors):
    shares = {"models": 0.0, "rollouts": 0.0}

    def timed(function, share):
        def call(*args, **options):
            begin = time.process_time()
            try:
                return function(*args, **options)
            finally:
                shares[share] += time.process_time() - begin

        return call

    params = sysid.ParameterDict()
    for name, truth in zip(JOINTS, TRUTH, strict=True):
        modifier = lambda s, p, n=name: setattr(s.joint(n), "armature", p.value[0])  # noqa: E731
        params.add(sysid.Parameter(name, truth, 0.001, 1.0, modifier=modifier))
        params[name].value[:] = 0.01
    measured = sysid.TimeSeries.from_names(times, sensors, spec.compile())
    series = sysid.ModelSequences(
        "arm", spec, "log", start, sysid.TimeSeries(t, control), measured
    )
    weights = {
        f"{n}_{kind}": w for n in JOINTS for kind, w in (("pos", 1e4), ("vel", 1e3))
    }
    build = timed(lambda p, s: sysid.apply_param_modifiers(p, s), "models")
    residual = sysid.build_residual_fn(
        models_sequences=[series],
        build_model=build,
        sensor_weights=weights,
        n_threads=1,
    )
    original = sysid_residual.sysid_rollout
    sysid_residual.sysid_rollout = timed(original, "rollouts")
    begin = time.process_time()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found, _ = sysid.optimize(params, residual, verbose=False)
    finally:
        sysid_residual.sysid_rollout = original
    total = time.process_time() - begin
    return np.array([found[n].value[0] for n in JOINTS]), total, shares


def run_simstate(model, t, control, times, sensors):
    step = model.opt.timestep
    positions = LogColumn(
        "model.joint_pos", times - step, sensors[:, :5], tuple(JOINTS)
    )
    speeds = LogColumn("model.joint_vel", times - step, sensors[:, 5:], tuple(JOINTS))
    log = Log([positions, speeds, LogColumn("ctrl", t, control)])
    model.dof_armature[:] = 0.01
    fit = study.identify(
        model, log, "joints: armature 0.001 .. 1", held_out=0.01, num_threads=1
    )
    found = np.array([one.value for one in fit.estimates])
    costs = fit.cpu_seconds
    return (
        found,
        costs["all"],
        {"models": costs["parameters"], "rollouts": costs["rollouts"]},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    for label, xml in (
        ("arm of sysid's tests", ARM_XML),
        ("with a mesh", with_mesh(ARM_XML)),
    ):
        spec, start, *data = make_data(xml)
        ours, theirs = [], []
        for _ in range(repeats):
            theirs.append(run_sysid(spec, start, *data))
            ours.append(run_simstate(mujoco.MjSpec.from_string(xml).compile(), *data))
        print(f"{label}: CPU seconds, median (least) of {repeats}")
        for name, runs in (("mujoco.sysid", theirs), ("simstate", ours)):
            totals = [run[1] for run in runs]
            middle = sorted(runs, key=lambda run: run[1])[len(runs) // 2]
            shares = ", ".join(
                f"{k} {100 * v / middle[1]:.0f} %" for k, v in middle[2].items()
            )
            print(f"  {name:13} {np.median(totals):.2f} ({min(totals):.2f})  {shares}")
            print(f"  {'':13} largest error {np.abs(runs[0][0] - TRUTH).max():.1e}")
        ratio = min(r[1] for r in theirs) / min(r[1] for r in ours)
        print(f"  mujoco.sysid / simstate: {ratio:.1f}")


if __name__ == "__main__":
    main()
