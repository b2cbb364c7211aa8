"""What recordings and logs cannot be: each case has one fault, and no other."""

from __future__ import annotations

import copy
import json
import math

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import InvalidInputError, RecordingError, ShapeError, UnknownNameError
from simstate.record import Log, LogColumn, Recording
from simstate.record.changes import Step, steps_from_bytes, steps_to_bytes
from simstate.record.columns import component_contracts
from simstate.record.compression import LARGEST, shuffled, size_of, unshuffled
from simstate.record.header import FORMAT, model_bytes, model_from, read_header

pytestmark = pytest.mark.fast

COLUMN = {"shape": [2], "dtype": "float32", "unit": "m", "names": ["a", "b"]}
HEADER = {
    "format": FORMAT, "kind": "env", "worlds": [2, 0], "versions": {},
    "simulation": {"num_envs": 3},
    "columns": {"time": COLUMN, "step": COLUMN, "q": COLUMN},
}  # fmt: skip
WRONG_HEADERS = {
    "format": "simstate recording 2", "kind": "task", "versions": 3,
    "simulation/num_envs": [0, -1, 3.0, "3", True, None],
    "worlds": [[2, 2], [3], [-1], [0.0], [True], None],
    "columns/q/dtype": ["object", "complex64"],
    "columns/q/shape": [[-1], [-1, -1], [2.0], ["2"]],
    "columns/q/unit": [3, None], "columns/q/names": [["a", 2]],
    "columns/q/axes": [3], "columns/q/point": [3], "columns/q/source": [3],
}  # fmt: skip


def changed(path: str, value: object) -> bytes:
    """The header with another value; "-" removes it."""
    content = copy.deepcopy(HEADER)
    *folders, name = path.split("/")
    part = content
    for folder in folders:
        part = part[folder]
    part[name] = value
    if value == "-":
        del part[name]
    return json.dumps(content).encode()


@pytest.mark.parametrize("path", WRONG_HEADERS)
def test_a_header_has_what_a_reader_relies_on(path):
    wrong = WRONG_HEADERS[path]
    for value in wrong if isinstance(wrong, list) else [wrong]:
        with pytest.raises(RecordingError):
            read_header(changed(path, value), "'a file'")


def test_a_header_without_a_part_is_refused():
    for path in ("worlds", "simulation", "columns/time", "columns/step", "versions"):
        with pytest.raises(RecordingError):
            read_header(changed(path, "-"), "'a file'")


def test_headers_that_are_allowed():
    for path, value in (
        ("kind", "sim"), ("worlds", []), ("worlds", [0, 1, 2]),
        ("simulation/num_envs", 4), ("columns/q/shape", []), ("columns/q/shape", [0]),
        ("columns/q/axes", "world"),
    ):  # fmt: skip
        assert read_header(changed(path, value), "'a file'") == json.loads(
            changed(path, value)
        )


def test_the_size_of_an_array():
    assert size_of("float32", [3, 5]) == 60
    assert size_of("int16", [0, 5]) == 0
    assert size_of("uint8", [LARGEST]) == LARGEST
    for dtype, shape, name in (
        ("float32", [3, -1], "dtype"), ("uint64", [3], "dtype"),
        ("uint8", [LARGEST + 1], "size"), ("float64", [LARGEST // 8 + 1], "size"),
    ):  # fmt: skip
        with raises(RecordingError, name=name):
            size_of(dtype, shape)


TIME = np.array([0.0, 0.1, 0.2, 0.35])


@pytest.mark.parametrize(
    ("time", "values", "error"),
    [
        (TIME[:, None], np.zeros(4), ShapeError),
        (TIME, np.zeros((4, 2, 1)), ShapeError),
        (TIME, np.zeros((3, 2)), ShapeError),
        (TIME[:1], np.zeros(1), InvalidInputError),
        (np.array([0.0, math.nan, 0.2]), np.zeros(3), InvalidInputError),
        (np.array([0.0, 0.1, math.inf]), np.zeros(3), InvalidInputError),
        (np.array([0.0, 0.1, 0.1]), np.zeros(3), InvalidInputError),
        (np.array([0.0, 0.2, 0.1]), np.zeros(3), InvalidInputError),
        (np.array([0.0, 1.0, 2.0, 4.75, 5.75]), np.zeros(5), InvalidInputError),
    ],
    ids=["times of two axes", "values of three axes", "fewer values", "one sample",
         "NaN", "infinity", "equal times", "falling times", "gap"],
)  # fmt: skip
def test_samples_that_are_no_signal_are_refused(time, values, error):
    name = "q" if error is ShapeError else "time"
    with raises(error, name=name):
        Log([LogColumn("q", time, values)])


def test_signals_that_are_allowed():
    Log([LogColumn("q", TIME[:2], np.zeros(2))])
    gap = np.array([0.0, 1.0, 2.0, 4.5, 5.5])  # of 2.5 intervals
    log = Log([LogColumn("q", gap, np.arange(5.0))])
    assert log["q"].rate == 1.0
    assert log["q"].values.shape == (5, 1)
    with raises(ShapeError, name="q"):
        Log([LogColumn("q", TIME, np.zeros((4, 2)), (), log["q"].contracts or (1,))])
    with pytest.raises(InvalidInputError):
        Log([log["q"], log["q"]])
    with pytest.raises(InvalidInputError):
        Log([])


def test_a_cut_has_both_of_its_ends():
    log = Log([LogColumn("q", TIME, 10 * TIME), LogColumn("u", TIME[1:3], TIME[1:3])])
    assert (log.start, log.end) == (0.1, 0.2)
    np.testing.assert_array_equal(log.cut(0.1, 0.2)["q"].values[:, 0], [1, 2])
    with raises(InvalidInputError, name="q"):
        log.cut(0.11, 0.34)
    twice = log.declare("u", name="v", scale=-2.0, unit="rad", names=["w"])
    np.testing.assert_array_equal(twice["v"].values[:, 0], [-0.2, -0.4])
    assert (twice["v"].unit, twice["v"].names, twice["q"].names) == ("rad", ("w",), ())


def test_a_name_without_its_entity_must_be_the_only_one():
    columns = [LogColumn(name, TIME, TIME) for name in ("a.q", "b.q", "b.v")]
    log = Log(columns)
    assert log["v"] is log["b.v"]
    with raises(UnknownNameError, name="q"):
        log["q"]


def test_component_contracts_need_one_for_each():
    about = {"unit": "m", "units": ["m", "rad"], "axes": "world", "points": ["a"]}
    first, second = component_contracts(about, 2)
    assert (first.unit, second.unit) == ("m", "rad")
    assert (first.axes, second.axes) == ("world", "world")
    assert first.point == second.point != "a"


def test_a_recorder_refuses_what_it_cannot_keep(make_sim, tmp_path):
    sim = make_sim(2)
    path = tmp_path / "a.simrec"
    for every in (0.0, -0.1, math.inf, math.nan):
        with raises(InvalidInputError, name="every"):
            sim.record(path, fields=["qpos"], every=every)
    for snapshot_every in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInputError):
            sim.record(path, fields=["qpos"], snapshot_every=snapshot_every)
    for quantities in ("arm.joint_pos", 3):
        with raises(InvalidInputError, name="quantities"):
            sim.record(path, quantities=quantities)
    for read in (lambda _: [1.0, 2.0], lambda _: torch.ones(3, 1)):
        with raises(ShapeError, name="x"):
            sim.record(path, quantities={"x": read})
    for given in (3, (lambda _: 1, "m", "world"), (3, "m")):
        with raises(InvalidInputError, name="x"):
            sim.record(path, quantities={"x": given})
    with raises(UnknownNameError, name="eye"):
        sim.record(path, quantities=["camera/eye"])
    assert not path.exists()


def test_samples_from_first_to_last(make_sim, tmp_path):
    sim = make_sim(2)
    path = tmp_path / "a.simrec"
    with sim.record(path, fields=["qpos"]):
        for _ in range(4):
            sim.step()
    with Recording(path) as found:
        whole = found["qpos"]
        count = len(whole)
        assert torch.equal(found.read("qpos", 1, 3), whole[1:3])
        assert torch.equal(found.read("qpos", 2, count + 5), whole[2:])
        assert len(found.read("qpos", 2, 2)) == 0
        for first, last in ((-1, 2), (3, 2)):
            with pytest.raises(InvalidInputError):
                found.read("qpos", first, last)


def test_bytes_of_steps_that_make_no_sense():
    good = steps_to_bytes([Step(call={"n": 3}, arrays={"a": np.arange(4.0)})])
    (found,) = steps_from_bytes(good)
    assert found.call == {"n": 3}
    np.testing.assert_array_equal(found.arrays["a"], np.arange(4.0))
    large = (LARGEST + 1).to_bytes(8, "little") + good[8:]
    for wrong in (b"", good[:5], good[:-3], large, good[:8] + b"no archive"):
        with pytest.raises(RecordingError):
            steps_from_bytes(wrong)


def test_bytes_that_are_no_model():
    with raises(RecordingError, name="model"):
        model_from(b"no model", {})
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    assert model_from(model_bytes(model), {}).nbody == 1


def test_an_array_has_its_bytes():
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    data = shuffled(values)
    assert data == bytes([0, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(unshuffled(data, "int16", [2, 3]), values)
    for wrong in (data[:-1], data + b"0"):
        with pytest.raises(RecordingError):
            unshuffled(wrong, "int16", [2, 3])
