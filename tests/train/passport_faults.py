"""Logs of a policy in other engines, and faults planted in them.

    python -m tests.train.passport_faults runs/walk/policy.onnx --in drake mjx warp

prints how many of 100 faults `compare_log` identifies (column and kind), and how many
of 20 healthy logs it flags.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch

from simstate.env import Env
from simstate.record import Log, LogColumn
from simstate.simulators.borrowed_stepper import borrowed_stepper
from simstate.train.onnx_policy import OnnxPolicy
from simstate.train.passport_check import compare_log
from simstate.train.policy_file import load_played
from simstate.train.policy_passport import PassportPolicy

QUANTITIES = (
    "joint_pos",
    "joint_vel",
    "root_link_quat_w",
    "root_link_ang_vel_b",
    "root_link_lin_vel_b",
    "projected_gravity_b",
)
JOINTS = (("joint_pos",), ("joint_vel",), ("joint_pos", "joint_vel"))
VELOCITIES = ("root_link_ang_vel_b", "root_link_lin_vel_b")
KINDS = ("swapped", "sign", "degrees", "quaternion order", "frame", "rate", "lag",
         "range")  # fmt: skip


def healthy_logs(path, engine, worlds, seconds=6.0, seed=0, noise=True):
    """Logs of worlds that walk in an engine: signals before each step, and actions."""
    cfg = load_played(path).run.env_cfg()
    if not noise:
        for term in cfg.observations["policy"].terms.values():
            term.noise = None
    # A robot that stands does not show what is late: all are asked to walk.
    command = dataclasses.replace(cfg.commands["velocity"], standing_share=0.0)
    cfg.commands = {**cfg.commands, "velocity": command}
    if engine == "fine":  # MuJoCo with other steps and contacts
        cfg.scene = dataclasses.replace(
            cfg.scene, timestep=0.002, options={"cone": "elliptic"}
        )
        cfg.decimation = 10
    own = engine if engine == "warp" else "native"
    env = Env(cfg, num_envs=worlds, engine=own, seed=seed, auto_reset=False)
    policy = OnnxPolicy(path, env)
    seen, _ = env.reset(seed=seed)
    robot = env.scene["robot"]
    rows = {name: [] for name in (*QUANTITIES, "command.velocity", "action")}
    other = (
        nullcontext() if engine in ("warp", "fine") else borrowed_stepper(env, engine)
    )
    with other:
        for _ in range(round(seconds / env.step_dt)):
            for name in QUANTITIES:
                rows[name].append(getattr(robot.data, name).double().clone())
            rows["command.velocity"].append(env.commands["velocity"].command.clone())
            action = policy(seen)
            rows["action"].append(action.clone())
            seen, *_ = env.step(action)
    names = {
        "joint_pos": robot.joint_names,
        "joint_vel": robot.joint_names,
        "root_link_quat_w": tuple("wxyz"),
        "command.velocity": env.commands["velocity"].names,
        "action": tuple(env.action_names),
    }
    arrays = {name: torch.stack(x).numpy() for name, x in rows.items()}
    time = np.arange(len(arrays["action"])) * env.step_dt
    return [
        {n: (time, x[:, w].astype(float), names.get(n, tuple("xyz")))
         for n, x in arrays.items()}
        for w in range(worlds)
    ]  # fmt: skip


def log_of(columns, source="planted"):
    """The log of a dictionary of columns."""
    return Log(
        [LogColumn(n, t, x, tuple(p)) for n, (t, x, p) in columns.items()], source
    )


def to_world(quat, vector):
    """Body vectors along world axes, by SciPy's convention of rotations."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(quat[:, [1, 2, 3, 0]]).apply(vector)


def planted(columns, kind, rng):
    """A copy of a log with one fault, and the columns that it concerns."""
    log = {name: (t.copy(), x.copy(), p) for name, (t, x, p) in columns.items()}
    joints = log["joint_pos"][2]

    def changed(name, function):
        time, values, parts = log[name]
        log[name] = (time, function(values), parts)

    if kind in ("swapped", "sign"):
        names = JOINTS[rng.integers(3)]
        if kind == "swapped":
            pair = rng.choice(12, 2, replace=False)
            order = np.arange(12)
            order[pair] = order[pair[::-1]]
            for name in names:
                changed(name, lambda x: x[:, order])
            return log, {f"{n}/{joints[k]}" for n in names for k in pair}
        if rng.random() < 0.3:
            names, k = (VELOCITIES[rng.integers(2)],), rng.integers(3)
        else:
            k = rng.integers(12)
        for name in names:
            changed(name, lambda x: x * np.where(np.arange(x.shape[1]) == k, -1.0, 1.0))
        return log, {f"{n}/{log[n][2][k]}" for n in names}
    if kind == "degrees":
        choices = [("joint_pos",), ("joint_vel",), ("joint_pos", "joint_vel"),
                   ("root_link_ang_vel_b",)]  # fmt: skip
        names = choices[rng.integers(4)]
        for name in names:
            changed(name, np.degrees)
        return log, set(names)
    if kind == "quaternion order":
        if rng.random() < 0.5:
            del log["projected_gravity_b"]
        changed("root_link_quat_w", lambda q: q[:, [1, 2, 3, 0]])
        return log, {"root_link_quat_w"}
    if kind == "frame":
        case = rng.integers(4)
        if case == 0:
            changed("root_link_quat_w", lambda q: q * [1, -1, -1, -1])
            return log, {"root_link_quat_w"}
        if case == 1:
            changed("projected_gravity_b", np.negative)
            return log, {"projected_gravity_b"}
        if case == 2:  # an IMU that is turned by a right angle
            changed("root_link_ang_vel_b", lambda x: x[:, [1, 0, 2]] * [1, -1, 1])
            return log, {"root_link_ang_vel_b"}
        name = ("root_link_ang_vel_b", "root_link_lin_vel_b")[rng.integers(2)]
        quat = log["root_link_quat_w"][1]
        changed(name, lambda x: to_world(quat, x))
        return log, {name}
    if kind == "rate":
        factor = (0.5, 2.0, 0.8, 1.25, 1e3)[rng.integers(5)]
        log = {n: (t * factor, x, p) for n, (t, x, p) in log.items()}
        return log, {"action"}
    if kind == "lag":
        choices = [("joint_pos",), ("joint_vel",), ("joint_pos", "joint_vel"),
                   ("root_link_ang_vel_b",), ("root_link_lin_vel_b",)]  # fmt: skip
        names, k = choices[rng.integers(5)], int(rng.integers(1, 5))
        for name in names:
            changed(name, lambda x: np.concatenate([x[:1].repeat(k, 0), x[:-k]]))
        return log, set(names)
    if rng.random() < 0.4:  # a command that was never trained
        changed("command.velocity", lambda x: x + np.array([2.5, 0.0, 0.0]))
        return log, {"command.velocity/lin_vel_x"}
    k = rng.integers(12)  # an encoder with another zero
    off = float(rng.choice([-4.0, 4.0]))  # more than any joint's range in training
    changed("joint_pos", lambda x: x + off * (np.arange(12) == k))
    return log, {f"joint_pos/{joints[k]}"}


def verdict(policy, columns):
    """Kind and columns of the first fault that is found, and a text of all."""
    report = compare_log(policy, log_of(columns))
    text = "; ".join(f"{f.kind} {f.columns}: {f.evidence}" for f in report.faults)
    if not report.faults:
        return "healthy", set(), text
    first = report.faults[0]
    return first.kind, {n.removeprefix("robot.") for n in first.columns}, text


def run(policy, logs, faults, seed=0):
    """Counts of (planted kind, found kind, right columns); of healthy logs flagged."""
    rng, flagged, table = np.random.default_rng(seed), 0, Counter()
    for k, log in enumerate(logs):
        kind, _, text = verdict(policy, log)
        if kind != "healthy":
            flagged += 1
            print(f"healthy log {k}: {text}")
    for k in range(faults):
        kind = KINDS[k % len(KINDS)]
        log, wanted = planted(logs[k % len(logs)], kind, rng)
        found, columns, text = verdict(policy, log)
        table[kind, found, found == kind and columns == wanted] += 1
        if (found, columns) != (kind, wanted):
            print(f"{k}: {kind} {sorted(wanted)} found as {text}")
    return table, flagged


def main(args=None) -> int:
    """Print the confusion table; 0 if at least 95 % are right and none is flagged."""
    parser = argparse.ArgumentParser()
    parser.add_argument("policy", type=Path)
    parser.add_argument("--in", dest="engines", nargs="+", default=["warp", "fine"])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--healthy", type=int, default=20)
    given = parser.parse_args(args)
    half = -(-given.healthy // (2 * len(given.engines)))
    logs = [
        log
        for k, engine in enumerate(given.engines)
        for noise in (False, True)
        for log in healthy_logs(given.policy, engine, half, seed=k, noise=noise)
    ][: given.healthy]
    table, flagged = run(PassportPolicy(given.policy), logs, given.faults)
    right = sum(n for (_, _, is_right), n in table.items() if is_right)
    print(f"{'planted':<18}{'found as':<18}{'right columns':<15}count")
    for (kind, found, is_right), n in sorted(table.items()):
        print(f"{kind:<18}{found:<18}{'yes' if is_right else 'no':<15}{n}")
    print(f"{right} of {given.faults} faults identified")
    print(f"{flagged} of {len(logs)} healthy logs flagged")
    return 0 if right >= 0.95 * given.faults and not flagged else 1


if __name__ == "__main__":
    sys.exit(main())
