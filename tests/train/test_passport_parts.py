"""Passports of networks that are written down here, and logs by closed forms."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy.spatial.transform import Rotation

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.record import Log, LogColumn
from simstate.train.deploy import PolicyRunner
from simstate.train.log_repairs import Repair, repairs_of
from simstate.train.passport_check import compare_log
from simstate.train.passport_log import (
    LogSignals,
    down_of,
    signals_of,
    to_body,
    turns_of,
)
from simstate.train.policy_passport import (
    Passport,
    PassportColumn,
    PassportPolicy,
    read_passport,
)

JOINTS = ("hip", "knee")
DT = 0.02


def column(source: str, component: str, **changes) -> PassportColumn:
    """An observation column, whose numbers are neither 0 nor 1."""
    given = {
        "name": f"{source.rpartition('.')[2]}/{component}", "term": source,
        "source": source, "component": component, "unit": "rad", "axes": "none",
        "point": "none", "sign": "about (0, 1, 0) of leg", "scale": 0.5,
        "offset": 0.25, "clip": None, "delay": (0, 0), "low": -2.0, "high": 3.0,
        "mean": 0.1, "std": 0.7,
    }  # fmt: skip
    return PassportColumn(**{**given, **changes})


def columns_of_a_robot() -> tuple[PassportColumn, ...]:
    """Two joints, gyro and gravity, a command, the last action and a clock."""
    found = [
        column("robot.joint_pos", name, scale=0.5 + k, offset=0.2 - 0.5 * k,
               clip=(-0.3, 0.35), low=-1.0 - k, high=1.5 + k)
        for k, name in enumerate(JOINTS)
    ]  # fmt: skip
    found += [
        column("robot.joint_vel", name, scale=0.1, offset=0.0, noise_std=0.2 + 0.1 * k,
               delay=(1, 3), low=-4.0, high=6.0)
        for k, name in enumerate(JOINTS)
    ]  # fmt: skip
    found += [
        column("robot.root_link_ang_vel_b", name, scale=0.25, offset=0.0, low=-3.0,
               high=2.0 + k, noise_std=0.05)
        for k, name in enumerate("xyz")
    ]  # fmt: skip
    found += [
        column("robot.projected_gravity_b", name, scale=2.0, offset=0.0, low=-1.0,
               high=1.0)
        for name in "xyz"
    ]  # fmt: skip
    found += [column("command.go", "x", scale=3.0, offset=0.0, low=0.0, high=0.8)]
    for age in (1, 0):
        found += [
            column("action", name, name=f"action/{name}[{age}]", scale=0.7, offset=0.0,
                   age=age)
            for name in ("move/hip", "move/knee")
        ]  # fmt: skip
    found += [
        column("clock", name, scale=1.5, offset=0.0, period_s=0.2)
        for name in ("cos", "sin")
    ]
    return tuple(found)


def actions_of_a_robot() -> tuple[PassportColumn, ...]:
    return tuple(
        column("robot.joint_pos_target", name, name=f"move/{name}", is_action=True,
               scale=(0.4, -0.8)[k], offset=(0.3, -0.2)[k], low=-3.0 + k, high=2.5)
        for k, name in enumerate(JOINTS)
    )  # fmt: skip


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(5)
    count = len(columns_of_a_robot())
    return rng.normal(0.0, 0.3, (count, 2)).astype(np.float32), np.float32([0.1, -0.3])


def passport_with(**changes) -> Passport:
    given = {
        "task": "walk.py", "seed": 7, "iterations": 30, "engine": "native",
        "step_dt": DT, "ranges_from": "training",
        "observations": columns_of_a_robot(), "actions": actions_of_a_robot(),
        "pictures": {}, "joints": {"robot": JOINTS}, "versions": {"mujoco": "3.7.0"},
        "proof": {},
    }  # fmt: skip
    return Passport(**{**given, **changes})


def proof_of(weights, steps: int = 5) -> dict[str, np.ndarray]:
    matrix, bias = weights
    seen = np.random.default_rng(2).normal(size=(steps, len(matrix))).astype("f4")
    return {"obs": seen, "actions": seen @ matrix + bias}


def write(path, passport: Passport, weights, nodes=None, inputs=(), outputs=()):
    """Write a network with a passport: by default actions = obs · matrix + bias."""
    matrix, bias = weights
    nodes = nodes or [helper.make_node("Gemm", ["obs", "matrix", "bias"], ["actions"])]
    made = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "policy",
        [made("obs", TensorProto.FLOAT, [None, len(matrix)]), *inputs],
        [made("actions", TensorProto.FLOAT, [None, matrix.shape[1]]), *outputs],
        [
            numpy_helper.from_array(matrix, "matrix"),
            numpy_helper.from_array(bias, "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    helper.set_model_props(model, {"passport": json.dumps(passport.to_json())})
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def policy(weights, tmp_path_factory):
    passport = passport_with(proof=proof_of(weights))
    path = tmp_path_factory.mktemp("policy") / "policy.onnx"
    return PassportPolicy(write(path, passport, weights))


def test_a_passport_survives_its_file(policy, weights):
    wanted = passport_with(
        pictures={"camera": (4, 6, 3)}, proof=proof_of(weights),
        observations=(column("a", "b", clip=(-1.5, 2.5), delay=(1, 4), age=2,
                             noise_std=0.3, period_s=0.8),),
    )  # fmt: skip
    found = Passport.from_json(json.loads(json.dumps(wanted.to_json())))
    for field in dataclasses.fields(Passport):
        if field.name != "proof":
            theirs, ours = getattr(found, field.name), getattr(wanted, field.name)
            assert theirs == ours, field.name
            assert type(theirs) is type(ours)
    assert found.proof.keys() == wanted.proof.keys()
    for name, values in wanted.proof.items():
        np.testing.assert_array_equal(found.proof[name], values)
        assert found.proof[name].dtype == values.dtype
    assert found.rate == pytest.approx(50.0)
    assert read_passport(policy.path).task == "walk.py"


def test_values_of_the_network_are_converted_to_units():
    seen = np.array([0.5, -2.0])
    one = column("q", "x", scale=0.5, offset=0.25)
    np.testing.assert_allclose(one.value_of(seen), [1.25, -3.75])
    constant = column("q", "x", scale=0.0, offset=0.25)
    np.testing.assert_allclose(constant.value_of(seen), [0.75, -1.75])
    acted = column("q", "x", scale=0.5, offset=0.25, is_action=True)
    np.testing.assert_allclose(acted.value_of(seen), [0.5, -0.75])


@pytest.mark.parametrize(
    "change",
    [
        {"format": "simstate passport 2"}, {"actions": []}, {"step_dt": 0.0},
        {"step_dt": -0.02},
    ],
)  # fmt: skip
def test_facts_that_no_passport_has_are_rejected(change, weights):
    facts = passport_with(proof=proof_of(weights)).to_json()
    Passport.from_json(facts)
    with pytest.raises(ValueError):
        Passport.from_json({**facts, **change})


def test_a_proof_has_steps_of_known_types(weights):
    facts = passport_with(proof=proof_of(weights, 0)).to_json()
    with pytest.raises(ValueError):
        Passport.from_json(facts)
    wide = {k: x.astype(np.float64) for k, x in proof_of(weights).items()}
    with pytest.raises(ValueError):
        Passport.from_json(passport_with(proof=wide).to_json())
    small = {**proof_of(weights), "image": np.arange(6, dtype=np.uint8).reshape(3, 2)}
    found = Passport.from_json(passport_with(proof=small).to_json())
    np.testing.assert_array_equal(found.proof["image"], [[0, 1], [2, 3], [4, 5]])


def test_a_proof_is_reproduced_up_to_rounding(policy, weights, tmp_path):
    assert policy.proof_error() < 1e-6
    for error, is_accepted in ((9e-5, True), (1.2e-4, False)):
        proof = proof_of(weights)
        proof["actions"][3, 1] -= error
        other = PassportPolicy(
            write(tmp_path / "a.onnx", passport_with(proof=proof), weights)
        )
        if is_accepted:
            assert other.proof_error() == pytest.approx(error, rel=0.05)
        else:
            with pytest.raises(InvalidInputError):
                other.proof_error()
    proof["actions"][3, 1] = np.nan
    unknown = write(tmp_path / "b.onnx", passport_with(proof=proof), weights)
    with pytest.raises(InvalidInputError):
        PassportPolicy(unknown).proof_error()


def test_a_network_carries_its_memory_from_step_to_step(weights, tmp_path):
    nodes = [
        helper.make_node("Gemm", ["obs", "matrix", "bias"], ["now"]),
        helper.make_node("Add", ["now", "h_in"], ["actions"]),
        helper.make_node("Identity", ["actions"], ["h_out"]),
    ]
    memory = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 2])
        for name in ("h_in", "h_out")
    ]
    proof = proof_of(weights)
    sums = np.cumsum(proof["actions"], axis=0)
    passport = passport_with(proof={**proof, "actions": sums})
    path = tmp_path / "memory.onnx"
    found = PassportPolicy(
        write(path, passport, weights, nodes, memory[:1], memory[1:])
    )
    assert found.states.keys() == {"h_in"}
    np.testing.assert_array_equal(found.states["h_in"], np.zeros((1, 2)))
    np.testing.assert_allclose(found.actions({"obs": proof["obs"]}), sums, atol=1e-5)
    assert found.proof_error() < 1e-5
    wrong = tmp_path / "wrong.onnx"
    write(wrong, passport, weights, nodes[:2], memory[:1])  # nothing returns the memory
    with pytest.raises(InvalidInputError):
        PassportPolicy(wrong)


def test_the_runner_passes_pictures_on(weights, tmp_path):
    """A network that adds the mean of a picture to its actions."""
    nodes = [
        helper.make_node("Gemm", ["obs", "matrix", "bias"], ["now"]),
        helper.make_node("Cast", ["eye"], ["light"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["light"], ["mean"], axes=[1, 2, 3]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Add", ["now", "flat"], ["actions"]),
    ]
    shape = [None, 2, 3, 1]
    eye = helper.make_tensor_value_info("eye", TensorProto.UINT8, shape)
    passport = passport_with(pictures={"eye": (2, 3, 1)}, proof=proof_of(weights))
    path = write(tmp_path / "a.onnx", passport, weights, nodes, [eye])
    sensors = {name: x[0] for name, x in motion().items()}
    found = []
    for level in (0, 70):
        picture = np.full((2, 3, 1), level, np.uint8)
        found.append(PolicyRunner(path).act({**sensors, "eye": picture}))
    np.testing.assert_allclose(found[1] - found[0], 70.0, rtol=1e-5)
    plain = onnx.load(path)
    del plain.metadata_props[:]
    onnx.save(plain, path)
    with pytest.raises(ValueError, match="no passport"):
        PolicyRunner(path)


def test_a_network_has_the_columns_of_its_passport(weights, tmp_path):
    proof, path = proof_of(weights), tmp_path / "a.onnx"
    write(path, passport_with(proof=proof), weights)
    PassportPolicy(path)
    for changed in (
        {"observations": columns_of_a_robot()[1:]},
        {"actions": actions_of_a_robot()[1:]},
        {"pictures": {"camera": (4, 6, 3)}},
    ):
        write(path, passport_with(proof=proof, **changed), weights)
        with pytest.raises(InvalidInputError):
            PassportPolicy(path)


# Attitudes.


def attitudes(count: int) -> tuple[np.ndarray, Rotation]:
    found = Rotation.random(count, random_state=3)
    return found.as_quat()[:, [3, 0, 1, 2]], found


def test_vectors_and_gravity_along_body_axes():
    quat, rotation = attitudes(9)
    vector = np.random.default_rng(0).normal(size=(9, 3))
    wanted = rotation.inv().apply(vector)
    np.testing.assert_allclose(to_body(2.5 * quat, vector), wanted, atol=1e-9)
    down = rotation.inv().apply([0.0, 0.0, -1.0])
    np.testing.assert_allclose(down_of(quat), down, atol=1e-9)


def test_turns_between_attitudes():
    quat, rotation = attitudes(9)
    quat[4] *= -1.0  # the same attitude
    wanted = (rotation[:-1].inv() * rotation[1:]).as_rotvec()
    np.testing.assert_allclose(turns_of(1.5 * quat), wanted, atol=1e-9)


# Logs.


def motion(count: int = 60) -> dict[str, np.ndarray]:
    """Signals of a robot that swings, with attitudes by SciPy."""
    time = np.arange(count) * DT
    q = np.stack([0.3 + 0.4 * np.sin(5 * time), -0.2 + 0.3 * np.cos(7 * time)], 1)
    v = np.stack([2.0 * np.cos(5 * time), -2.1 * np.sin(7 * time)], 1)
    gyro = np.stack([np.sin(3 * time), 0.6 * np.cos(4 * time), 0.3 + 0 * time], 1)
    attitude = [Rotation.from_rotvec([0.3, -0.5, 0.2])]
    for k in range(count - 1):
        turn = Rotation.from_rotvec(DT * (gyro[k] + gyro[k + 1]) / 2.0)
        attitude.append(attitude[-1] * turn)
    quat = np.stack([one.as_quat()[[3, 0, 1, 2]] for one in attitude])
    down = np.stack([one.inv().apply([0.0, 0.0, -1.0]) for one in attitude])
    command = 0.4 + 0.2 * np.sin(time)[:, None]
    return {
        "robot.joint_pos": q, "robot.joint_vel": v,
        "robot.root_link_ang_vel_b": gyro, "robot.projected_gravity_b": down,
        "command.go": command, "root_link_quat_w": quat,
    }  # fmt: skip


def network_inputs(signals: dict[str, np.ndarray], actions: list[np.ndarray], k: int):
    """The inputs of the network at a step, column by column."""
    found = []
    for one in columns_of_a_robot():
        if one.source == "clock":
            wave = np.cos if one.component == "cos" else np.sin
            value = wave(2.0 * np.pi * (k * DT / 0.2))
        elif one.source == "action":
            late = k - 1 - one.age
            j = ("move/hip", "move/knee").index(one.component)
            value = actions[late][j] if late >= 0 else 0.0
        else:
            parts = [
                c.component for c in columns_of_a_robot() if c.source == one.source
            ]
            late = max(0, k - sum(one.delay) // 2)
            value = signals[one.source][late, parts.index(one.component)]
        value = value - one.offset
        if one.clip is not None:
            value = min(max(value, one.clip[0]), one.clip[1])
        found.append(one.scale * value)
    return np.array(found, np.float32)


def acted(signals, weights) -> np.ndarray:
    matrix, bias = weights
    actions: list[np.ndarray] = []
    for k in range(len(signals["robot.joint_pos"])):
        actions.append(network_inputs(signals, actions, k) @ matrix + bias)
    return np.array(actions, np.float64)


def log_of(signals: dict[str, np.ndarray], times=None) -> Log:
    names = {
        "robot.joint_pos": JOINTS, "robot.joint_vel": JOINTS, "command.go": ("x",),
        "root_link_quat_w": tuple("wxyz"), "action": ("move/hip", "move/knee"),
        "robot.joint_pos_target": JOINTS,
    }  # fmt: skip
    return Log(
        LogColumn(
            name,
            np.arange(len(x)) * DT if times is None else times[name],
            x,
            names.get(name, tuple("xyz")),
        )
        for name, x in signals.items()
    )


def test_a_log_of_the_policy_fits(policy, weights):
    signals = motion()
    signals["action"] = acted(signals, weights)
    report = compare_log(policy, log_of(signals))
    assert report.faults == ()
    assert report.notes == ()
    policy_misfits = [x for n, x in report.misfits.items() if "policy's action" in n]
    assert len(policy_misfits) == 2
    assert max(policy_misfits) < 1e-9


def spoilt() -> dict[str, np.ndarray]:
    """Signals that satisfy no relation exactly, and leave their ranges at times."""
    rng, signals = np.random.default_rng(8), motion()
    for name, values in signals.items():
        signals[name] = values * 1.1 + rng.normal(0.0, 0.05, values.shape)
    signals["action"] = rng.normal(0.0, 0.5, (60, 2))
    signals["robot.joint_pos"][3, 0] += 9.0
    return signals


def apart(one, other, noise):
    power = (one**2).mean(0) + (other**2).mean(0) + noise**2 + 1e-6
    return ((one - other) ** 2).mean(0) / power


def expected_misfits(signals, weights, phase: float) -> dict[str, float]:
    """Misfits of all relations; the last four rows are for lags."""
    rows = {name: x[:-4] for name, x in signals.items()}
    q, v = rows["robot.joint_pos"], rows["robot.joint_vel"]
    gyro, down = rows["robot.root_link_ang_vel_b"], rows["robot.projected_gravity_b"]
    quat = rows["root_link_quat_w"]

    def half(x):
        return (x[1:] + x[:-1]) / 2.0

    found = dict(
        zip([f"d joint_pos/dt = joint_vel: {n}" for n in JOINTS],
            apart(np.diff(q, axis=0) / DT, half(v), 0.3), strict=True)
    )  # fmt: skip
    turned = Rotation.from_quat(quat[:, [1, 2, 3, 0]])
    turns = (turned[:-1].inv() * turned[1:]).as_rotvec() / DT
    sizes = apart(turns, half(gyro), 0.05)
    found |= {f"d quaternion/dt = angular velocity: {n}": x
              for n, x in zip("xyz", sizes, strict=True)}  # fmt: skip
    found["length of gravity"] = ((np.linalg.norm(down, axis=1) - 1.0) ** 2).mean()
    gap = down - turned.inv().apply([0.0, 0.0, -1.0])
    found |= {f"gravity of the quaternion: {n}": x
              for n, x in zip("xyz", (gap**2).mean(0), strict=True)}  # fmt: skip
    limits = {
        f"{c.source}/{c.component}": (c.low, c.high) for c in columns_of_a_robot()
    }
    for c in actions_of_a_robot():
        ends = sorted(((c.low - c.offset) / c.scale, (c.high - c.offset) / c.scale))
        limits[f"action/{c.name}"] = ends[0], ends[1]
    parts = {"robot.joint_pos": JOINTS, "robot.joint_vel": JOINTS, "command.go": "x",
             "action": ("move/hip", "move/knee")}  # fmt: skip
    for name, values in rows.items():
        for k, part in enumerate(parts.get(name, "xyz")):
            if name == "root_link_quat_w":
                continue
            low, high = limits[f"{name}/{part}"]
            margin = 0.15 * (high - low) + 1e-3
            width = high - low + 2.0 * margin
            x = values[:, k]
            out = np.maximum(low - margin - x, x - high - margin).clip(0.0) / width
            found[f"training range: {name}/{part}"] = (out.clip(0, 10) ** 2).mean()
    matrix, bias = weights
    first, count = 2, len(q)
    table = []
    for k in range(first, count):
        inputs = network_inputs(rows, list(rows["action"]), k)
        inputs[-2:] = [1.5 * f(2.0 * np.pi * (k * DT / 0.2 + phase))
                       for f in (np.cos, np.sin)]  # fmt: skip
        table.append(inputs @ matrix + bias)
    wanted = rows["action"][first:]
    gap = ((np.array(table) - wanted) ** 2).mean(0) / (wanted.var(axis=0) + 1e-4)
    found |= {f"the policy's action: {n.rpartition('/')[2]}": x
              for n, x in zip(("hip", "knee"), gap, strict=True)}  # fmt: skip
    return found


def test_misfits_of_all_relations(policy, weights, monkeypatch):
    monkeypatch.setattr("simstate.train.passport_check.MAX_FAULTS", 0)
    signals = spoilt()
    report = compare_log(policy, log_of(signals))
    expected = expected_misfits(signals, weights, 0.0)
    assert report.misfits.keys() == expected.keys()
    for name, value in expected.items():
        assert report.misfits[name] == pytest.approx(value, rel=1e-4, abs=1e-9), name


FLOORS = {
    "d joint_pos": 0.03, "d quaternion": 0.03, "length of": 0.01, "gravity of": 1e-3,
    "training range": 0.02, "the policy": 0.01,
}  # fmt: skip
"""Misfits below which a relation holds, by the start of its name."""


def score_of(signals, weights) -> float:
    found = expected_misfits(signals, weights, 0.0)
    floors = [f for n in found for start, f in FLOORS.items() if n.startswith(start)]
    return float(np.log(np.array(list(found.values())) + floors).sum())


@pytest.mark.parametrize(
    ("name", "parts", "kind", "columns"),
    [
        ("robot.joint_vel", [1], "sign", ("robot.joint_vel/knee",)),
        ("root_link_quat_w", [1, 2, 3], "frame", ("root_link_quat_w",)),
        ("robot.projected_gravity_b", [0, 1, 2], "frame",
         ("robot.projected_gravity_b",)),
        ("action", [0], "sign", ("action/move/hip",)),
        ("command.go", None, "range", ("command.go/x",)),
    ],
)  # fmt: skip
def test_a_repair_lowers_the_logs_of_misfits(
    weights, monkeypatch, tmp_path, name, parts, kind, columns
):
    """It is a fault if their sum, with floors, falls by more than GAIN and its cost."""
    matrix, bias = weights
    weights = matrix * (np.arange(len(matrix)) < len(matrix) - 2)[:, None], bias
    passport = passport_with(proof=proof_of(weights))  # which ignores the clock
    policy = PassportPolicy(write(tmp_path / "a.onnx", passport, weights))
    rng, good = np.random.default_rng(8), motion()
    good["robot.joint_vel"] = good["robot.joint_vel"] + rng.normal(0.0, 0.1, (60, 2))
    good["robot.projected_gravity_b"] = good["robot.projected_gravity_b"] * 1.05
    good["action"] = acted(good, weights) + rng.normal(0.0, 0.1, (60, 2))
    faulty, cost = dict(good), 0.0
    if parts is None:  # a shift, repaired to the mean of training, 0.1
        faulty[name] = good[name] + 1.2
        good[name] = good[name] - np.median(good[name]) + 0.1
        cost = 0.3
    else:
        signs = np.ones(good[name].shape[1])
        signs[parts] = -1.0
        faulty[name] = good[name] * signs
    gain = score_of(faulty, weights) - score_of(good, weights) - cost
    assert gain > 1.5
    monkeypatch.setattr("simstate.train.passport_check.MAX_FAULTS", 1)
    for least, is_fault in ((gain * 0.999, True), (gain * 1.001, False)):
        monkeypatch.setattr("simstate.train.passport_check.GAIN", least)
        faults = compare_log(policy, log_of(faulty)).faults
        found = [(one.kind, one.columns) for one in faults if "%" not in one.evidence]
        assert ((kind, columns) in found) is is_fault, found


def test_without_a_quaternion_the_gyro_turns_gravity(policy, weights, monkeypatch):
    monkeypatch.setattr("simstate.train.passport_check.MAX_FAULTS", 0)
    signals = spoilt()
    del signals["root_link_quat_w"]
    report = compare_log(policy, log_of(signals))
    gyro, down = (signals[f"robot.{n}"][:-4]
                  for n in ("root_link_ang_vel_b", "projected_gravity_b"))  # fmt: skip
    turned = np.cross((down[1:] + down[:-1]) / 2, (gyro[1:] + gyro[:-1]) / 2)
    sizes = apart(np.diff(down, axis=0) / DT, turned, 0.05)
    for part, size in zip("xyz", sizes, strict=True):
        name = f"d gravity/dt = gravity × angular velocity: {part}"
        assert report.misfits[name] == pytest.approx(size, rel=1e-6)
    assert "gravity of the quaternion: x" not in report.misfits


def test_gravity_is_computed_of_the_quaternion(policy, weights):
    signals = motion()
    signals["action"] = acted(signals, weights)
    del signals["robot.projected_gravity_b"]
    report = compare_log(policy, log_of(signals))
    assert report.faults == ()
    assert report.notes == ()
    assert max(x for n, x in report.misfits.items() if "policy" in n) < 1e-9


def test_the_phase_of_a_clock_is_found(policy, weights):
    """A log that starts three steps into the clock's period of ten."""
    signals = motion()
    signals["action"] = acted(signals, weights)
    late = {name: x[3:] for name, x in signals.items()}
    report = compare_log(policy, log_of(late))
    assert report.faults == ()
    assert max(x for n, x in report.misfits.items() if "policy" in n) < 1e-9


@pytest.mark.parametrize(
    ("factor", "names"),
    [(1.04, ()), (0.96, ()), (1.06, ("action",)), (0.94, ("action",))],
)
def test_actions_come_at_the_rate_of_the_passport(policy, weights, factor, names):
    signals = motion()
    signals["action"] = acted(signals, weights)
    times = {name: np.arange(60) * DT * factor for name in signals}
    faults = compare_log(policy, log_of(signals, times)).faults
    assert [f.columns[0] for f in faults if f.kind == "rate"] == list(names)


def test_a_slow_sensor_is_a_fault(policy, weights):
    signals = motion()
    signals["action"] = acted(signals, weights)
    times = {name: np.arange(60) * DT for name in signals}
    signals["command.go"] = signals["command.go"][::3]
    times["command.go"] = times["command.go"][::3]
    (fault,) = compare_log(policy, log_of(signals, times)).faults
    assert (fault.kind, fault.columns) == ("rate", ("command.go",))
    assert "16.67 Hz" in fault.detail
    assert "60 ms" in fault.evidence
    assert "20 ms" in fault.evidence


def test_values_outside_of_training_are_a_fault_from_a_share_on(policy, weights):
    for count, is_fault in ((3, False), (4, True)):  # of 60: 5 % may be
        signals = motion()
        signals["command.go"][10 : 10 + count] += 5.0
        signals["action"] = acted(signals, weights)
        faults = compare_log(policy, log_of(signals)).faults
        ranges = [f for f in faults if f.columns == ("command.go/x",)]
        assert bool(ranges) is is_fault
        for fault in ranges:
            assert fault.kind == "range"
            assert f"{100 * count / 60:.0f} % of the samples" in fault.evidence
            assert "in training -0.121 … 0.921" in fault.evidence


def test_what_no_repair_explains_is_reported(policy, weights):
    for count, is_fault in ((60, True), (49, False)):  # short logs are noisy
        signals = motion(count)
        rng = np.random.default_rng(4)
        signals["action"] = rng.normal(0.3, 0.6, (count, 2)).clip(-1.5, 1.5)
        faults = [
            f for f in compare_log(policy, log_of(signals)).faults
            if f.kind == "unexplained"
        ]  # fmt: skip
        assert bool(faults) is is_fault
        for fault in faults:
            assert set(fault.columns) == {"the policy's action: hip",
                                          "the policy's action: knee"}  # fmt: skip


# Signals at control steps.


def test_signals_have_the_latest_sample_of_each_step(policy):
    rng, passport = np.random.default_rng(1), policy.passport
    times = {
        "robot.joint_pos": 0.003 + np.arange(200) * 0.005,
        "robot.joint_vel": np.arange(90) * 0.01,
        "action": 0.105 + np.arange(30) * DT,
    }
    signals = {name: rng.normal(size=(len(t), 2)) for name, t in times.items()}
    found = signals_of(log_of(signals, times), passport)
    grid = times["action"]
    assert found.table.shape == (30, 6)
    assert found.dt == pytest.approx(DT)
    for name, at in found.places.items():
        assert found.rates[name] == pytest.approx(1.0 / np.diff(times[name])[0])
        for row, now in enumerate(grid):
            (past,) = np.nonzero(times[name] <= now + 1e-9)
            np.testing.assert_array_equal(found.table[row, at], signals[name][past[-1]])
    assert found.names[:2] == ["robot.joint_pos/hip", "robot.joint_pos/knee"]
    assert set(found.missing) == {"robot.root_link_ang_vel_b", "command.go",
                                  "robot.projected_gravity_b"}  # fmt: skip


def test_rows_are_where_all_signals_are(policy):
    times = {
        "robot.joint_pos": 0.41 + np.arange(100) * 0.005,
        "robot.joint_vel": np.arange(200) * 0.01,
        "action": np.arange(90) * DT,
    }
    signals = {name: np.stack([t, -t], 1) for name, t in times.items()}
    found = signals_of(log_of(signals, times), policy.passport)
    acted = found.table[:, found.places["action"][0]]
    # From the first action at or after 0.41 s to the last one until 0.905 s.
    np.testing.assert_allclose(acted, DT * np.arange(21, 46))
    ends = {**times, "action": 0.41 + np.arange(34) * 0.015}
    found = signals_of(log_of(signals | {"action": signals["action"][:34]}, ends),
                       policy.passport)  # fmt: skip
    assert len(found.table) == 34  # with both ends, which are those of the positions


def test_without_actions_rows_are_at_the_rate_of_the_passport(policy):
    times = {"joint_pos": 0.5 + np.arange(1500) * 0.01}
    values = {"joint_pos": np.arange(3000.0).reshape(-1, 2)}
    log = Log([LogColumn("joint_pos", times["joint_pos"], values["joint_pos"], JOINTS)])
    found = signals_of(log, policy.passport)
    assert len(found.table) == 400  # at most
    np.testing.assert_array_equal(found.table[:, 0], 4.0 * np.arange(400))
    assert found.missing[-1] == "action"

    def cut(count):
        part = times["joint_pos"][:count], values["joint_pos"][:count]
        return signals_of(Log([LogColumn("joint_pos", *part, JOINTS)]), policy.passport)

    assert len(cut(19).table) == 10
    with pytest.raises(InvalidInputError):
        cut(18)


def test_components_are_taken_by_name_or_in_order(policy):
    time, passport = np.arange(40) * DT, policy.passport
    values = np.random.default_rng(0).normal(size=(40, 3))

    def table(*names, columns=3, name="joint_pos"):
        column = LogColumn(name, time, values[:, :columns], names)
        return signals_of(Log([column]), passport).table

    np.testing.assert_array_equal(table("knee", "toe", "hip"), values[:, [2, 0]])
    other = table("leg/knee", "leg/toe", "leg/hip", name="mine.joint_pos")
    np.testing.assert_array_equal(other, values[:, [2, 0]])
    np.testing.assert_array_equal(table(columns=2), values[:, :2])
    with pytest.raises(InvalidInputError):
        table()
    with pytest.raises(UnknownNameError) as error:
        table("knee", "toe", "hop")
    assert error.value.name == "hip"


def test_targets_are_converted_to_actions(policy):
    time = np.arange(40) * DT
    wanted = np.random.default_rng(0).normal(size=(40, 2))
    values = wanted * [0.4, -0.8] + [0.3, -0.2]
    log = Log([LogColumn("robot.joint_pos_target", time, values, JOINTS)])
    found = signals_of(log, policy.passport)
    assert list(found.places) == ["action"]
    np.testing.assert_allclose(found.table, wanted)
    target = LogColumn("robot.joint_pos_target", time, values, JOINTS)
    acted = LogColumn("actions", time, 2 * wanted, ("move/hip", "move/knee"))
    both = Log([target, acted])
    np.testing.assert_allclose(signals_of(both, policy.passport).table, 2 * wanted)


@pytest.fixture(scope="module")
def idle(weights, tmp_path_factory):
    """A policy whose second action has no effect, since its scale is 0."""
    hip, knee = actions_of_a_robot()
    knee = dataclasses.replace(knee, scale=0.0, low=-0.2, high=-0.2)
    passport = passport_with(actions=(hip, knee), proof=proof_of(weights))
    path = tmp_path_factory.mktemp("idle") / "policy.onnx"
    return PassportPolicy(write(path, passport, weights))


def test_an_action_without_effect_has_the_range_of_its_observation(idle, weights):
    signals = motion()
    signals["action"] = acted(signals, weights)
    report = compare_log(idle, log_of(signals))
    assert report.faults == ()
    signals["action"][:, 1] += 9.0
    log = log_of({"action": signals["action"], "command.go": signals["command.go"]})
    (fault,) = compare_log(idle, log).faults
    assert fault.kind == "range"
    assert fault.columns == ("action/move/knee",)


def test_targets_of_an_action_without_effect_are_no_actions(idle):
    log = log_of({**motion(), "robot.joint_pos_target": np.full((60, 2), 0.3)})
    found = signals_of(log, idle.passport)
    assert found.missing == ["action"]
    assert np.isfinite(found.table).all()


def test_observations_of_a_recording_are_converted_to_signals(policy):
    time = np.arange(40) * DT
    columns = {c.name: c for c in policy.passport.observations if c.source != "clock"}
    seen = np.random.default_rng(0).normal(size=(40, len(columns)))
    log = Log([LogColumn("observation/policy", time, seen, tuple(columns))])
    found = signals_of(log, policy.passport)
    names = list(columns)
    for signal, at in found.places.items():
        for k in at:
            part = found.names[k].rpartition("/")[2]
            (name,) = [n for n, c in columns.items()
                       if (c.source, c.component) == (signal, part)]  # fmt: skip
            c, raw = columns[name], seen[:, names.index(name)]
            np.testing.assert_allclose(found.table[:, k], raw / c.scale + c.offset)
    assert "robot.joint_pos" in found.places


def test_values_that_cannot_be_compared_are_rejected(policy):
    time = np.arange(40) * DT
    for bad in (np.nan, np.inf, -1e101):
        values = np.ones((40, 2))
        values[7, 1] = bad
        with pytest.raises(InvalidInputError) as error:
            signals_of(Log([LogColumn("joint_pos", time, values, JOINTS)]),
                       policy.passport)  # fmt: skip
        assert error.value.name == "joint_pos"
    values[7, 1] = -1e99
    signals_of(Log([LogColumn("joint_pos", time, values, JOINTS)]), policy.passport)


def test_nearly_a_name_is_an_error_and_another_is_not(policy):
    time, values = np.arange(40) * DT, np.ones((40, 2))
    good = LogColumn("joint_pos", time, values, JOINTS)
    other = LogColumn("temperature", time, values)
    signals_of(Log([good, other]), policy.passport)
    with pytest.raises(InvalidInputError) as error:
        signals_of(Log([good, LogColumn("r.joint_vels", time, values)]),
                   policy.passport)  # fmt: skip
    assert error.value.name == "r.joint_vels"
    with pytest.raises(InvalidInputError):
        signals_of(Log([other]), policy.passport)


# Repairs.


def signals_with(**widths: int) -> LogSignals:
    """Random signals by their numbers of components."""
    rng, found = np.random.default_rng(6), LogSignals(np.empty((12, 0)), dt=DT)
    for name, width in widths.items():
        name = name.replace("_of_", ".")
        first = len(found.names)
        found.places[name] = list(range(first, first + width))
        parts = {2: JOINTS, 3: "xyz", 4: "wxyz", 1: "x"}[width]
        found.names += [f"{name}/{part}" for part in parts]
    found.table = rng.normal(size=(12, len(found.names)))
    return found


ROBOT = {
    "robot_of_joint_pos": 2, "robot_of_joint_vel": 2, "action": 2,
    "robot_of_root_link_ang_vel_b": 3, "robot_of_projected_gravity_b": 3,
    "command_of_go": 3, "root_link_quat_w": 4,
}  # fmt: skip


def found_repairs(signals, columns=(), runs_policy=True) -> list[Repair]:
    return list(repairs_of(signals, columns, runs_policy))


def changed_columns(repair: Repair, table) -> set[int]:
    changed = np.abs(repair.apply(table) - table).max(0) > 0.0
    return set(np.nonzero(changed)[0].tolist())


def test_swaps_and_signs_of_joints():
    signals = signals_with(**ROBOT)
    table, repairs = signals.table, found_repairs(signals)
    swaps = [r for r in repairs if r.kind == "swapped"]
    groups = [(0, 2), (2, 4), (0, 4), (4, 6), (0, 6)]
    assert [r.columns for r in swaps] == [
        ("robot.joint_pos",), ("robot.joint_vel",),
        ("robot.joint_pos", "robot.joint_vel"), ("action",),
        ("robot.joint_pos", "robot.joint_vel", "action"),
    ]  # fmt: skip
    for one, (first, last) in zip(swaps, groups, strict=True):
        wanted = table.copy()
        for k in range(first, last, 2):
            wanted[:, [k, k + 1]] = table[:, [k + 1, k]]
        np.testing.assert_array_equal(one.apply(table), wanted)
        assert one.detail == "has hip and knee swapped"
        assert one.cost == 0.0
    signs = [r for r in repairs if r.kind == "sign"]
    at = [(0,), (1,), (2,), (3,), (0, 2), (1, 3), (4,), (5,),
          *((k,) for k in range(6, 15))]  # fmt: skip
    assert len(signs) == len(at)
    for one, columns in zip(signs, at, strict=True):
        wanted = table.copy()
        wanted[:, columns] *= -1.0
        np.testing.assert_array_equal(one.apply(table), wanted)
        assert one.columns == tuple(signals.names[k] for k in columns)


def described(repairs: list[Repair], detail: str, name: str) -> list[Repair]:
    return [r for r in repairs if (r.detail, r.columns) == (detail, (name,))]


def test_units_orders_and_axes():
    signals = signals_with(**ROBOT)
    table, repairs = signals.table, found_repairs(signals)
    degrees = [changed_columns(r, table) for r in repairs if r.kind == "degrees"]
    assert degrees == [{0, 1}, {2, 3}, {0, 1, 2, 3}, {6, 7, 8}, {0, 1, 2, 3, 6, 7, 8}]
    (first, *_) = [r for r in repairs if r.kind == "degrees"]
    np.testing.assert_allclose(first.apply(table)[:, :2], np.radians(table[:, :2]))
    (order,) = [r for r in repairs if r.kind == "quaternion order"]
    quat = table[:, 15:]
    np.testing.assert_array_equal(order.apply(table)[:, 15:], quat[:, [3, 0, 1, 2]])
    frames = [r for r in repairs if r.kind == "frame"]
    vectors = ("robot.root_link_ang_vel_b", "robot.projected_gravity_b")
    for name, at in zip(vectors, ([6, 7, 8], [9, 10, 11]), strict=True):
        (other,) = described(frames, "points the opposite way", name)
        np.testing.assert_array_equal(other.apply(table)[:, at], -table[:, at])
        (world,) = described(frames, "is along world axes", name)
        rotation = Rotation.from_quat(quat[:, [1, 2, 3, 0]])
        np.testing.assert_allclose(
            world.apply(table)[:, at], rotation.inv().apply(table[:, at])
        )
    (inverse,) = [r for r in frames if r.columns == ("root_link_quat_w",)]
    np.testing.assert_array_equal(inverse.apply(table)[:, 15:], quat * [1, -1, -1, -1])
    assert not [r for r in frames if r.columns == ("command.go",)]


def test_turned_axes_are_all_rotations_by_right_angles():
    signals = signals_with(**ROBOT)
    table = signals.table
    turns = [r for r in found_repairs(signals) if "has its x, y, z" in r.detail]
    rotations = [
        matrix
        for order in itertools.permutations(range(3))
        for signs in itertools.product((1.0, -1.0), repeat=3)
        if np.linalg.det(matrix := np.eye(3)[list(order)] * signs) > 0
    ]
    assert len(rotations) == 24
    assert len(turns) == 3 * 23  # of gyro, gravity, and both together
    for at in ([6, 7, 8], [9, 10, 11]):
        alone = [r for r in turns if changed_columns(r, table) <= set(at)]
        made = {r.apply(table)[:, at].round(9).tobytes() for r in alone}
        wanted = {(table[:, at] @ m).round(9).tobytes() for m in rotations}
        assert len(made) == 23
        assert made < wanted
    both = [r for r in turns if len(r.columns) == 2]
    for one in both:
        after = one.apply(table)
        (matrix,) = [m for m in rotations
                     if np.allclose(table[:, 6:9] @ m, after[:, 6:9])]  # fmt: skip
        np.testing.assert_allclose(table[:, 9:12] @ matrix, after[:, 9:12])
        x, y, z = one.detail.partition("along ")[2].split(" of ")[0].split(", ")
        for row, text in enumerate((x, y, z)):
            sign = -1.0 if text[0] == "-" else 1.0
            assert matrix[row, "xyz".index(text[1])] == sign
        assert one.cost == 0.5


def test_lags_of_each_signal_and_of_all_together():
    signals = signals_with(**ROBOT)
    table = signals.table
    for runs_policy in (True, False):
        lags = [
            r for r in found_repairs(signals, (), runs_policy) if r.kind == "lag"
        ]  # fmt: skip
        sensors = [{0, 1}, {2, 3}, {6, 7, 8}, {9, 10, 11}, {12, 13, 14},
                   {15, 16, 17, 18}]  # fmt: skip
        if runs_policy:
            sensors += [{0, 1, 2, 3}, set(range(19)) - {4, 5}]
        assert [changed_columns(r, table) for r in lags[::4]] == sensors
        for k, one in enumerate(lags):
            late = k % 4 + 1
            at = sorted(changed_columns(one, table))
            after = one.apply(table)
            np.testing.assert_array_equal(after[:-late, at], table[late:, at])
            np.testing.assert_array_equal(after[-late:], table[-late:])
            assert one.cost == pytest.approx(0.1 * late)
            assert f"late by {late} steps ({late * DT:.3g} s)" in one.detail


def test_joints_of_one_kind_have_their_own_repairs():
    signals = signals_with(robot_of_joint_vel=2, action=2)
    repairs = found_repairs(signals)
    swaps = [changed_columns(r, signals.table) for r in repairs if r.kind == "swapped"]
    assert swaps == [{0, 1}, {2, 3}, {0, 1, 2, 3}]
    alone = found_repairs(signals_with(robot_of_root_link_ang_vel_b=3))
    assert len([r for r in alone if r.cost == 0.5]) == 23  # rotations of the gyro only
    none = found_repairs(signals_with(command_of_go=3, action=2))
    assert not [r for r in none if r.kind in ("swapped", "degrees", "frame")]


def test_a_column_far_from_the_trained_mean_is_shifted():
    signals = signals_with(robot_of_joint_pos=2)
    signals.table[:, 0] += 2.0
    middle = float(np.median(signals.table[:, 0]))
    wide = {"low": -50.0, "high": 50.0}

    def offsets(**changes) -> list[Repair]:
        one = column("robot.joint_pos", "hip", **{**wide, **changes})
        repairs = found_repairs(signals, [one])
        return [r for r in repairs if r.kind in ("offset", "range")]

    distance = abs(middle - 0.1)
    assert not offsets(mean=0.1, std=1.01 * distance / 4.0)
    (one,) = offsets(mean=0.1, std=0.99 * distance / 4.0)
    assert (one.kind, one.columns, one.cost) == (
        "offset",
        ("robot.joint_pos/hip",),
        0.3,
    )
    np.testing.assert_allclose(
        one.apply(signals.table)[:, 0], signals.table[:, 0] - (middle - 0.1)
    )
    np.testing.assert_array_equal(one.apply(signals.table)[:, 1], signals.table[:, 1])
    assert f"{middle - 0.1:+.3g} rad" in one.detail
    values = np.sort(signals.table[:, 0])
    for k, is_outside in ((6, False), (7, True)):  # more than half of twelve
        found = offsets(mean=middle, std=10.0, low=(values[k - 1] + values[k]) / 2)
        assert bool(found) is is_outside
        assert all(r.kind == "range" for r in found)
        high = (values[-k] + values[-k - 1]) / 2
        assert bool(offsets(mean=middle, std=10.0, high=high)) is is_outside
    assert not offsets(mean=0.1, std=0.0, age=1)


def test_names_of_columns_are_those_of_signals_where_all_are_meant():
    signals = signals_with(**ROBOT)
    assert signals.named([1, 0]) == ("robot.joint_pos",)
    assert signals.named([1]) == ("robot.joint_pos/knee",)
    assert signals.named([3, 6, 7]) == (
        "robot.joint_vel/knee", "robot.root_link_ang_vel_b/x",
        "robot.root_link_ang_vel_b/y",
    )  # fmt: skip
    assert signals_with(command_of_go=1).named([0]) == ("command.go/x",)
    assert signals.place("root_link_quat_w") == [15, 16, 17, 18]
    assert signals.place("nothing") == []


def test_joints_are_those_that_have_both_position_and_velocity():
    signals = signals_with(robot_of_joint_pos=2, robot_of_joint_vel=2)
    signals.names[2] = "robot.joint_vel/toe"
    assert signals.joints() == ([1], [3])
    signals.names[3] = "robot.joint_vel/hip"
    assert signals.joints() == ([0], [3])
    assert signals_with(robot_of_joint_vel=2).joints() == ([], [0, 1])
