"""What an alignment says: causes, verdicts, horizons, tables, JSON and suggestions."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import mujoco
import numpy as np
import pytest
from tests.raised import raises
from tests.simulators.looped import INFO, LoopedMechanics, LoopedSimulator
from tests.simulators.test_rich_model import rich

from simstate.base.errors import UnknownNameError
from simstate.simulators import align, register
from simstate.simulators.align.causes import Matcher
from simstate.simulators.align.compare import QUESTIONS, compare
from simstate.simulators.align.findings import (
    Alignment,
    Cause,
    Comparison,
    RunGap,
    SimulatorAlignment,
)
from simstate.simulators.align.sample_states import sample_states
from simstate.simulators.align.tables import trajectory_line
from simstate.simulators.align.trajectories import (
    SimulatorRun,
    compared,
    mujoco_run,
    sample_steps,
    simulator_run,
)
from simstate.simulators.capabilities import Missing
from simstate.simulators.drives import drive_inputs, drives
from simstate.simulators.mechanics import MechanicalState, MujocoMechanics
from simstate.simulators.parameters import ParameterDifference
from simstate.simulators.randomisation import suggestions

STANDING = """
<mujoco model="standing">
  <compiler angle="radian"/>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 0.1"/>
    <body name="trunk" pos="0.1 0.2 0.14" quat="0.99 0.02 0.05 0.1">
      <freejoint name="root"/>
      <inertial pos="0.02 0.01 -0.03" mass="2.1" diaginertia="0.03 0.04 0.05"/>
      <geom name="trunk" type="box" size="0.15 0.1 0.1"/>
      <body name="arm" pos="0.1 0.02 0.1">
        <joint name="shoulder" axis="0 1 0.4" range="-1 1.2" damping="0.1"
               frictionloss="0.2"/>
        <inertial pos="0.01 0.02 0.1" mass="0.6" diaginertia="0.006 0.005 0.003"/>
        <body name="hand" pos="0 0.03 0.25">
          <joint name="elbow" axis="0.1 1 0.2" range="-2 1.7" damping="0.15"/>
          <inertial pos="0.02 -0.01 0.08" mass="0.3" diaginertia="0.003 0.002 0.001"/>
        </body>
      </body>
    </body>
    <body name="post" pos="1 0 1"><joint name="post" axis="0 0 1" damping="0.3"/>
      <inertial pos="0.1 0 0" mass="0.4" diaginertia="0.01 0.02 0.03"/></body>
  </worldbody>
  <equality><joint joint1="elbow" joint2="post" polycoef="0.1 0.4 0 0 0"/></equality>
  <actuator>
    <position name="shoulder" joint="shoulder" kp="30" kv="1" gear="2"
              forcerange="-3 3"/>
    <velocity name="post" joint="post" kv="2" gear="-1.5"/>
  </actuator>
</mujoco>
"""


def standing() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(STANDING)


class OwnSolver(LoopedSimulator):
    """MuJoCo with a constant of the solver that no parameter tells."""

    name = "own-solver"
    changed = ""

    def build(self):
        super().build()
        field = getattr(self.own_model, self.changed)
        if self.changed == "actuator_forcerange":
            field *= 0.8
        else:
            field[..., 0] = 0.05
        self.worlds = [mujoco.MjData(self.own_model) for _ in range(self.num_envs)]


class OwnMechanics(LoopedMechanics):
    def __init__(self, scene):
        super().__init__(scene)
        self._make = lambda terms: OwnSolver(scene, terms=terms)


register(
    dataclasses.replace(
        INFO,
        name="own-solver",
        title="Solver of its own",
        simulator=(__name__, "OwnSolver"),
        mechanics=(__name__, "OwnMechanics"),
    )
)


class Turned(MujocoMechanics):
    """MuJoCo with wrong answers that no parameter explains."""

    def motion(self, state):
        found, turn = super().motion(state), np.zeros(4)
        mujoco.mju_axisAngle2Quat(turn, np.array([0.6, 0.0, -0.8]), 0.3)
        for quat in found.body_quat[0]:
            mujoco.mju_mulQuat(quat, quat.copy(), turn)
        return found

    def mass_matrix(self, state):
        return 1.1 * super().mass_matrix(state)


def test_what_no_parameter_explains_is_unexplained():
    model = standing()
    data = mujoco.MjData(model)
    start = MechanicalState(data.qpos.copy(), data.qvel.copy(), data.ctrl.copy())
    states, matcher = sample_states(model, start, 2, 3), Matcher(model, [])
    ours, theirs = MujocoMechanics(model), Turned(model)
    found = {q.quantity: compare(q, ours, theirs, matcher, states) for q in QUESTIONS}
    verdicts = {name: one.verdict for name, one in found.items()}
    wrong = ("body orientations", "mass matrix")
    assert {n for n, v in verdicts.items() if v == "unexplained"} == set(wrong)
    assert found["body orientations"].difference == pytest.approx(0.3, rel=1e-9)
    assert found["body orientations"].remainder == pytest.approx(0.3, rel=1e-9)
    largest = max(np.abs(ours.mass_matrix(s)).max() for s in states.smooth)
    assert found["mass matrix"].scale == pytest.approx(largest)
    assert found["mass matrix"].difference == pytest.approx(0.1 * largest)


@pytest.mark.parametrize(
    ("field", "question", "term"),
    [
        ("geom_solref", "step with contacts", "how contacts are found and solved"),
        ("jnt_solref", "step with joint limits", "how joint limits are solved"),
        ("eq_solref", "step with equalities", "how equalities are solved"),
        ("dof_solref", "step with dry friction", "how dry friction is solved"),
        (
            "actuator_forcerange",
            "step with actuators at their limits",
            "how force limits act on servos",
        ),
    ],
)
def test_a_term_that_is_solved_in_another_way_is_the_cause(
    monkeypatch, field, question, term
):
    monkeypatch.setattr(OwnSolver, "changed", field)
    found = align(standing(), "own-solver", states=6, seconds=0.0)["own-solver"]
    explained = {c.quantity: c for c in found.comparisons if c.verdict == "explained"}
    assert set(explained) == {question}
    assert not found.unexplained
    asked = explained[question]
    assert asked.difference > 1e-6 > asked.allowed >= asked.remainder
    (cause,) = asked.causes
    assert (cause.what, cause.elements) == (term, ())
    assert cause.left == asked.difference
    assert {c.verdict for c in found.comparisons} <= {
        "agrees",
        "explained",
        "not reported",
    }
    (only,) = suggestions(found)
    assert (only.what, only.low, only.high) == (term, None, None)
    assert {"dof_solref": "dof_frictionloss"}.get(field, field) in str(only)


def difference(kind: str, element: str, ours: float, theirs: float):
    return ParameterDifference(kind, element, (ours,), (theirs,), "kg", False)


def test_causes_that_undo_one_another_are_found_one_by_one():
    """Both matched is worse than either: the one that helps is taken alone."""
    model = rich()
    both = [
        difference("mass", "base", 2.1, 2.4),
        difference("mass", "upper", 0.8, 0.9),
        difference("armature", "shoulder", 0.03, 0.05),
        difference("dry friction", "shoulder", 0.04, 0.06),
    ]
    matcher = Matcher(model, both)
    assert matcher.kinds == ["mass", "armature", "dry friction"]
    dof = model.jnt_dofadr[1]

    def off(mechanics) -> float:
        m = mechanics.model
        heavy = m.body_mass[1] > 2.3
        inert = m.dof_armature[dof] > 0.04
        return abs(1.0 - 0.6 * heavy - 0.4 * (m.dof_frictionloss[dof] > 0.05)) + inert

    found = matcher.explain(off, 1e-9)
    assert [cause.what for cause in found.causes] == ["mass", "dry friction"]
    assert found.remainder == pytest.approx(0.0)
    assert found.causes[0].elements == ("base", "upper")
    assert found.causes[0].text.endswith("2.4 kg there; and 1 more")
    assert "more" not in found.causes[1].text
    assert [cause.left for cause in found.causes] == pytest.approx([0.6, 0.4])
    nothing = matcher.explain(lambda mechanics: 2.0 + off(mechanics), 1e-9)
    assert nothing.causes == ()
    assert nothing.remainder == pytest.approx(2.0)


def test_values_that_mujoco_does_not_take_explain_nothing():
    negative = difference("mass", "base", 2.1, -2.0)
    matcher = Matcher(rich(), [negative])
    assert matcher.matched(frozenset({"mass"})) is None
    found = matcher.explain(lambda mechanics: 0.5, 1e-9)
    assert (found.causes, found.remainder) == ((), 0.5)


RUN = RunGap(
    time=(0.0, 0.1, 0.2, 0.3),
    joints=(0.0, 0.02, 0.03, 0.25),
    bodies=(0.0, 1e-3, 2e-3, math.nan),
    energy=(1.0, 1.5, 1.75, 2.5),
    their_energy=(1.0, 1.25, 1.5, 3.5),
)


def test_a_horizon_is_when_a_bound_is_passed():
    assert RUN.horizon(0.5e-3) == 0.1
    assert RUN.horizon(1e-3) == 0.2  # at the bound is not beyond it
    assert RUN.horizon(2e-3) == 0.3  # and what is no number is
    assert dataclasses.replace(RUN, bodies=(0.0,) * 4).horizon(0.0) is None


def test_a_run_in_a_line():
    line = trajectory_line(dataclasses.replace(RUN, bodies=(0.0, 1e-3, 2e-3, 0.02)))
    assert line == (
        "after 0.3 s bodies 2.0e-02 m, joints 2.5e-01, energy 2.5 and 3.5 J; a body "
        "off by 0.001 m after 0.2 s, 0.01 m after 0.3 s, 0.1 m never"
    )
    assert trajectory_line(dataclasses.replace(RUN, ended="it fell")).endswith(
        "; it ended: it fell"
    )


def cause(what: str, left: float, *elements: str) -> Cause:
    return Cause(what, elements, f"{what} is other", left)


def alignment(**changes) -> Alignment:
    comparisons = (
        Comparison("step", "m/s²", "explained", 4.0, 0.25, (cause("mass", 1.0, "a"),)),
        Comparison("bias forces", "N", "explained", 5.0, 0.5, (cause("mass", 3.0, "b"),
                   cause("damping", 0.5, "a", "b", "c", "d"))),
        Comparison("passive forces", "N", "unexplained", 6.0, 0.75,
                   (cause("mass", 2.0, "c"),), 0.75, 1e-9),
        Comparison("Jacobians", "m", "not reported"),
    )  # fmt: skip
    one = SimulatorAlignment(
        "other", "Another", (), ("tendon",),
        {"tendons": Missing(("a", "b", "c", "d"), "they are [left] out")},
        comparisons, **{"trajectory": RUN, "matched": None, **changes},
    )  # fmt: skip
    return Alignment("arm", (one,), 3, {"third": "No [meshes]."})


def test_a_cause_is_reported_with_its_largest_effect():
    found = alignment()["other"].causes
    assert {name: one.left for name, one in found.items()} == {
        "mass": 3.0,
        "damping": 0.5,
    }


def test_the_tables_say_everything():
    text = str(alignment())
    for line in (
        "arm: MuJoCo and Another",
        "  tendons (a, b, c, … 4 in all): they are [left] out",
        "  cause: mass is other",
        "  UNEXPLAINED: passive forces differs by 0.75 N",
        "third: not compared. No [meshes].",
        "  original after 0.3 s bodies nan m",
    ):
        assert line in text
    assert "  matched " not in text
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    rows = {first: others for first, *others in cells}
    assert rows["step"] == ["4", "2.5e-01", "0.0e+00", "0e+00", "explained: mass"]
    assert rows["Jacobians"] == ["not reported"]
    assert rows["bias forces"][-1] == "explained: mass, damping"
    both = str(alignment(matched=RUN))
    assert "  matched  after 0.3 s" in both
    neither = str(alignment(trajectory=None))
    assert "A run" not in neither
    three = Missing(("a", "b", "c"), "why")
    one = dataclasses.replace(alignment()["other"], missing={"tendons": three})
    text = str(dataclasses.replace(alignment(), simulators=(one,)))
    assert "  tendons (a, b, c): why" in text


def test_unknown_names_are_refused():
    with raises(UnknownNameError, name="another"):
        alignment()["another"]
    with raises(UnknownNameError, name="steps"):
        alignment()["other"].comparison("steps")


def test_json_has_numbers_that_are_finite_and_words_for_the_others():
    bodies = (0.0, math.inf, -math.inf, math.nan)
    found = alignment(trajectory=dataclasses.replace(RUN, bodies=bodies)).to_dict()
    again = json.loads(json.dumps(found, allow_nan=False))
    (one,) = again["simulators"]
    assert one["trajectory"]["bodies"] == [0.0, "inf", "-inf", "nan"]
    assert one["trajectory"]["joints"] == [0.0, 0.02, 0.03, 0.25]
    assert one["missing"]["tendons"]["elements"] == ["a", "b", "c", "d"]
    assert (again["seed"], again["skipped"]) == (3, {"third": "No [meshes]."})


def test_suggestions_name_three_elements_and_count_the_rest():
    four, three = (
        dataclasses.replace(
            alignment()["other"],
            comparisons=(Comparison("step", "", "explained", causes=(one,)),),
        )
        for one in (cause("damping", 1.0, *"abcd"), cause("damping", 1.0, *"abc"))
    )
    assert str(suggestions(four)[0]).startswith("damping of a, b, c, … 4 in all: vary")
    assert str(suggestions(three)[0]).startswith("damping of a, b, c: vary")


def test_the_one_with_most_effect_is_suggested_first():
    assert [one.what for one in suggestions(alignment()["other"])] == [
        "mass",
        "damping",
    ]


@pytest.mark.parametrize(
    ("seconds", "count", "last"),
    [(0.001, 2, 1), (0.4, 101, 100), (0.8, 101, 200), (0.7, 176, 175)],
)
def test_runs_are_compared_from_the_start_to_the_end(seconds, count, last):
    """Steps of 4 ms, and about a hundred samples."""
    steps = sample_steps(standing(), seconds)
    assert (len(steps), steps[0], steps[-1]) == (count, 0, last)
    assert len(set(np.diff(steps))) == 1


def test_runs_differ_by_joints_bodies_and_energies():
    """Energies are MuJoCo's; a floating base is no joint."""
    model = standing()
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY.value
    rng, runs, truth = np.random.default_rng(4), [], []
    steps = [0, 3, 6, 9]
    for _ in range(2):
        qpos = model.qpos0.copy()
        mujoco.mj_integratePos(model, qpos, rng.normal(size=model.nv), 0.1)
        start = MechanicalState(qpos, rng.normal(size=model.nv), np.zeros(model.nu))
        runs.append(mujoco_run(model, start, steps))
        data, found = mujoco.MjData(model), []
        data.qpos[:], data.qvel[:] = start.qpos, start.qvel
        for k in range(10):
            if k in steps:
                mujoco.mj_forward(model, data)
                found.append((data.qpos.copy(), data.xpos.copy(), data.energy.sum()))
            mujoco.mj_step(model, data)
        truth.append(found)
    shorter = SimulatorRun(*(part[:3] for part in list(vars(runs[1]).values())[:3]))
    for one, count in ((runs[1], 4), (shorter, 3)):
        gap = compared(model, runs[0], one, steps)
        np.testing.assert_allclose(gap.time, 0.004 * np.array(steps[:count]))
        for mine, found in zip((gap.energy, gap.their_energy), truth, strict=True):
            wanted = [energy for _, _, energy in found[:count]]
            np.testing.assert_allclose(mine, wanted, rtol=1e-9)
        pairs = list(zip(*truth, strict=True))[:count]
        joints = [np.abs(a[0] - b[0])[7:].max() for a, b in pairs]
        bodies = [np.linalg.norm(a[1] - b[1], axis=1).max() for a, b in pairs]
        np.testing.assert_allclose(gap.joints, joints)
        np.testing.assert_allclose(gap.bodies, bodies)


def test_a_run_that_diverges_ends_with_its_error():
    model = standing()
    simulator = LoopedSimulator(model)
    qvel = np.zeros(model.nv)
    start = MechanicalState(model.qpos0.copy(), qvel, np.zeros(model.nu))
    whole = simulator_run(simulator, start, [0, 2, 4])
    assert (len(whole.qpos), whole.ended) == (3, "")
    own = mujoco_run(model, start, [0, 2, 4])
    np.testing.assert_allclose(whole.qpos, own.qpos, atol=1e-12)
    np.testing.assert_allclose(whole.bodies, own.bodies, atol=1e-12)
    fast = MechanicalState(start.qpos, qvel + 2e9, start.ctrl)
    run = simulator_run(simulator, fast, [0, 2, 4])
    assert len(run.qpos) == len(run.bodies) == 1
    assert "it is too fast" in run.ended
    gap = compared(model, own, run, [0, 2, 4])
    assert (gap.time, gap.ended) == ((0.0,), run.ended)


def test_states_keep_servos_within_their_forces():
    """By the drives' law: less than half of the limit; then three times the limit."""
    model = standing()
    start = MechanicalState(model.qpos0.copy(), np.zeros(model.nv), np.zeros(model.nu))
    states = sample_states(model, start, 6, seed=1)
    shoulder, post = drives(model)
    assert (shoulder.limit, post.limit) == (6.0, np.inf)
    for state in states.smooth:
        assert abs(force(model, state)[0]) <= 0.4 * 6.0 + 1e-9
        rate = -1.5 * state.qvel[model.jnt_dofadr[3]]
        assert 0.5 <= state.ctrl[1] / rate <= 1.5
        low, high = model.jnt_range[1]
        share = (state.qpos[model.jnt_qposadr[1]] - low) / (high - low)
        assert 0.3 <= share <= 0.7
        assert np.all(np.abs(state.qpos[:3]) <= 0.3)
    for state in states.saturated:
        assert 2.5 * 6.0 < abs(force(model, state)[0]) < 3.5 * 6.0
    beyond = [
        [
            not low <= state.qpos[model.jnt_qposadr[j]] <= high
            for j, (low, high) in ((1, model.jnt_range[1]), (2, model.jnt_range[2]))
        ]
        for state in states.beyond_limits
    ]
    assert all(sum(one) == 1 for one in beyond)  # every other joint
    for state in states.beyond_limits:
        for j in (1, 2):
            low, high = model.jnt_range[j]
            past = 0.006 * (high - low)
            assert low - past < state.qpos[model.jnt_qposadr[j]] < high + past


def force(model: mujoco.MjModel, state: MechanicalState) -> np.ndarray:
    """Forces of the drives without limits."""
    found = drives(model)
    inputs = drive_inputs(model, found, state.ctrl)
    q = state.qpos[[model.jnt_qposadr[d.joint] for d in found]]
    v = state.qvel[[model.jnt_dofadr[d.joint] for d in found]]
    stiffness = np.array([d.stiffness for d in found])
    damping = np.array([d.damping for d in found])
    return (
        stiffness * (inputs.position - q) + damping * (inputs.rate - v) + inputs.effort
    )
