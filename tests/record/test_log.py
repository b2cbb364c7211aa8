"""Logs in memory: contracts of columns, parts of them, and what is not known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.raised import raises

from simstate import InvalidInputError, ShapeError, UnknownNameError
from simstate.base.contract import NO, PURE, UNDECLARED, Contract
from simstate.record import Log, LogColumn

pytestmark = pytest.mark.fast

TIME = np.array([0.0, 0.1, 0.2, 0.4])
POSE = LogColumn(
    "arm.pose", TIME + 1.0, np.arange(12.0).reshape(4, 3), ("x", "y", "turn"),
    (Contract("m", "world", "tip"), Contract("m", "world", "tip"),
     Contract("rad", NO, NO)),
)  # fmt: skip


@pytest.fixture
def log() -> Log:
    bare = LogColumn("arm.u", TIME[:3] + 0.9, np.array([3.0, 2.0, 1.0]))
    return Log([POSE, bare], "'run.csv'", ["half of it is missing."])


def test_a_column_states_its_width_rate_units_and_axes(log):
    pose, bare = log["pose"], log["arm.u"]
    assert (pose.width, bare.width) == (3, 1)
    # Medians of the intervals 0.1, 0.1 and 0.2 s.
    assert (pose.rate, bare.rate) == pytest.approx((10.0, 10.0))
    slow = LogColumn("q", TIME[[0, 2, 3]], np.zeros(3))
    assert slow.rate == pytest.approx(1 / 0.2)
    assert (pose.unit, pose.axes) == ("m, rad", f"world, {NO}")
    assert (bare.unit, bare.axes) == (UNDECLARED, UNDECLARED)
    assert pose.component("turn").tolist() == [2.0, 5.0, 8.0, 11.0]
    with raises(UnknownNameError, name="z"):
        pose.component("z")


def test_values_of_a_log_are_float64_with_a_column_for_each_component(log):
    whole = Log([LogColumn("n", [0, 1, 2], [[1, 2], [3, 4], [5, 6]])])["n"]
    assert whole.time.dtype == whole.values.dtype == np.float64
    assert whole.values.shape == (3, 2)
    assert log["arm.u"].values.shape == (3, 1)


def test_what_is_not_known_of_a_log(log):
    assert log["pose"].undetermined == ()
    assert log["u"].undetermined == ("unit", "axes")
    two = LogColumn(
        "v", TIME, np.zeros((4, 2)), (), (PURE, Contract(UNDECLARED, NO, NO))
    )
    assert two.undetermined == ("unit", "order")
    assert LogColumn("v", TIME, np.zeros((4, 1)), (), (PURE,)).undetermined == ()
    first, second = log.undetermined
    assert first == "half of it is missing."
    assert "arm.u" in second
    assert "unit, axes" in second


def test_a_log_lasts_while_all_of_its_columns_do(log):
    assert (log.start, log.end) == pytest.approx((1.0, 1.1))
    assert "arm.pose" in log
    assert "pose" not in log
    assert log.describe() == {
        "arm.pose": {"unit": "m, rad", "axes": f"world, {NO}",
                     "order": ["x", "y", "turn"], "rate": 10.0, "samples": 4},
        "arm.u": {"unit": UNDECLARED, "axes": UNDECLARED, "order": [], "rate": 10.0,
                  "samples": 3},
    }  # fmt: skip
    third = Log([LogColumn("q", TIME[:3] * 30, TIME[:3])]).describe()["q"]
    assert third["rate"] == 0.333333


def test_a_declaration_changes_one_column_only(log):
    new = log.declare("u", unit="N", axes="world")
    assert new["u"].contracts == (Contract("N", "world", UNDECLARED),)
    assert new["u"].values[:, 0].tolist() == [3.0, 2.0, 1.0]
    assert (new.source, new.notes) == (log.source, log.notes)
    assert new["pose"].contracts == POSE.contracts
    assert log["u"].contracts == ()  # the log itself stays
    turned = log.declare("pose", name="back", names=("a", "b", "c"), scale=-0.5)
    assert list(turned.columns) == ["back", "arm.u"]
    np.testing.assert_array_equal(turned["back"].values, -0.5 * POSE.values)
    assert turned["back"].names == ("a", "b", "c")
    assert turned["back"].contracts == POSE.contracts


def test_a_cut_keeps_samples_at_its_limits(log):
    late = log.cut(start=1.0)
    np.testing.assert_allclose(late["u"].time, [1.0, 1.1])
    np.testing.assert_allclose(late["pose"].time, POSE.time)
    early = log.cut(end=1.1)
    np.testing.assert_allclose(early["pose"].time, [1.0, 1.1])
    assert early["pose"].values[:, 0].tolist() == [0.0, 3.0]
    assert early["u"].values[:, 0].tolist() == [3.0, 2.0, 1.0]
    assert (early.source, early.notes) == (log.source, log.notes)


@pytest.mark.parametrize("part", ["names", "contracts"])
def test_there_is_one_name_and_one_contract_for_each_component(part):
    given = {"names": ("a", "b"), "contracts": (PURE, PURE)}[part]
    with raises(ShapeError, name="q"):
        Log([LogColumn("q", TIME, np.zeros((4, 3)), **{part: given})])
    Log([LogColumn("q", TIME, np.zeros((4, 2)), **{part: given})])


def test_a_gap_is_measured_by_the_median_interval():
    """One long interval among many does not count as usual."""
    for late, fits in ((0.75, True), (0.76, False)):
        time = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, late])
        if fits:
            Log([LogColumn("q", time, time)])
        else:
            with raises(InvalidInputError, name="time"):
                Log([LogColumn("q", time, time)])
