"""align: what is altered is found and named, and causes are proven."""

from __future__ import annotations

import dataclasses
import json

import mujoco
import numpy as np
import pytest
from tests.raised import raises
from tests.simulators.scenes import ALL, GYMNASIUM, OTHERS, only, scene_of

from simstate import EntityCfg, SceneCfg, cli
from simstate.base.errors import InvalidInputError, ModelError
from simstate.scene.load import load_spec
from simstate.simulators import align
from simstate.simulators.align.sample_states import sample_states
from simstate.simulators.mechanics import MechanicalState, MujocoMechanics
from simstate.simulators.parameters import (
    compare_parameters,
    overwritten,
    parameters_of,
)
from simstate.simulators.randomisation import suggestions

ROBOT = """
<mujoco model="robot">
  <option timestep="0.002" integrator="implicitfast" gravity="0.2 0.1 -9.6"/>
  <worldbody>
    <body name="base" pos="0.1 -0.1 0.4" quat="0.9 0.1 0.2 -0.1">
      <freejoint name="root"/>
      <inertial pos="0.02 0.01 -0.03" mass="2.1" fullinertia="0.03 0.04 0.05
                0.002 -0.003 0.001"/>
      <body name="upper" pos="0.1 0.02 0">
        <joint name="shoulder" axis="{axis}" damping="{damping}" armature="0.03"/>
        <inertial pos="0.01 0.02 -0.1" mass="{mass}" fullinertia="0.006 0.005 0.003
                  0.0002 0.0003 -0.0004"/>
        <body name="lower" pos="0 0.03 -0.25">
          <joint name="elbow" axis="0.1 1 0.2" damping="0.15" armature="0.01"
                 range="-2 2" limited="true"/>
          <inertial pos="0.02 -0.01 -0.08" mass="0.4" diaginertia="0.003 0.002 0.001"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="elbow" joint="elbow" kp="5" kv="0.4" gear="2"/>
    <motor name="shoulder" joint="shoulder" gear="3"/>
  </actuator>
</mujoco>
"""
AS_IT_IS = {"mass": "0.8", "damping": "0.25", "axis": "0 1 0.4"}
ALTERED = {
    "mass": ({"mass": "0.9"}, "mass", "robot/upper"),
    "damping": ({"damping": "0.35"}, "damping", "robot/shoulder"),
    "joint sign": ({"axis": "0 -1 -0.4"}, "joint axis", "robot/shoulder"),
}


def scene(**changes: str) -> SceneCfg:
    model = ROBOT.format(**{**AS_IT_IS, **changes})
    return SceneCfg(
        entities={"robot": EntityCfg(model=model)}, ground=False, timestep=None
    )


@pytest.mark.parametrize("key", ALL)
@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_model_is_found_and_named(what, key):
    changes, kind, element = ALTERED[what]
    found = align(scene(), key, theirs=scene(**changes), states=2, seconds=0.0)[key]
    named = {(d.kind, d.element) for d in found.parameters if d.kind != "integrator"}
    assert named == {(kind, element)}
    assert kind in found.causes
    assert found.causes[kind].elements == (element,)
    assert not found.unexplained
    for comparison in found.comparisons:
        if comparison.verdict in ("agrees", "explained"):
            wide = key in ("native", "drake", "mjx")
            width = 1e-9 if wide else 2e-5 * max(comparison.scale, 1.0)
            assert comparison.remainder <= width
    sees = {
        "mass": ("mass matrix", "bias forces", "step"),
        "damping": ("passive forces", "step"),
        "joint sign": ("body orientations", "body velocities", "step"),
    }
    for quantity in sees[what]:
        comparison = found.comparison(quantity)
        if comparison.verdict == "not reported":
            continue
        assert comparison.verdict == "explained", quantity
        assert kind in [cause.what for cause in comparison.causes]
        for cause in comparison.causes:
            assert cause.left > comparison.allowed


@pytest.mark.parametrize("key", ALL)
def test_the_same_model_is_explained_in_each(key):
    found = align(scene(), key, states=2, seconds=0.1)[key]
    assert not found.unexplained
    kinds = {d.kind for d in found.parameters}
    assert kinds <= {"integrator"}
    assert found.comparison("body velocities").verdict == "agrees"
    assert found.trajectory.time[-1] == pytest.approx(0.1)
    assert found.matched.bodies[-1] < 1e-4
    if key == "native":
        assert found.trajectory.bodies[-1] == 0.0


@pytest.mark.parametrize("key", only("drake"))
def test_drake_on_the_arm_lacks_what_it_is_known_to_lack(key):
    found = align(scene_of("arm"), key, seconds=0.2)[key]
    assert not found.unexplained
    assert set(found.missing) == {
        "gravity compensation",
        "armature of joints without an actuator",
    }
    by_quantity = {c.quantity: [x.what for x in c.causes] for c in found.comparisons}
    assert by_quantity["mass matrix"] == ["armature"]
    assert by_quantity["passive forces"] == ["gravity compensation"]
    assert by_quantity["acceleration"] == ["gravity compensation", "armature"]
    assert found.causes["armature"].elements == ("robot/right_finger",)
    told = [c for c in found.comparisons if c.verdict in ("agrees", "explained")]
    assert len(told) >= 12
    assert max(c.remainder for c in told) < 1e-9


SPINNING = """
<mujoco model="plate">
  <worldbody>
    <body name="plate" pos="0.1 0.2 0.5" quat="0.8 0.1 0.5 0.2">
      <freejoint name="root"/>
      <inertial pos="0.02 0.01 0.03" mass="0.4" diaginertia="0.002 0.004 0.003"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("key", OTHERS)
def test_a_free_body_next_to_a_servo_is_explained(key):
    """MuJoCo's implicitfast has gyroscopic forces of such a body implicitly."""
    robot = scene().entities["robot"]
    plate = EntityCfg(model=SPINNING)
    both = SceneCfg(
        entities={"robot": robot, "plate": plate}, ground=False, timestep=None
    )
    found = align(both, key, states=2, seconds=0.0)[key]
    assert not found.unexplained
    wide = key in ("drake", "mjx")
    for comparison in found.comparisons:
        if comparison.verdict in ("agrees", "explained"):
            assert comparison.remainder <= (1e-9 if wide else comparison.allowed)


@pytest.mark.parametrize("key", only("newton", "newton-featherstone"))
@pytest.mark.parametrize("name", ["quadruped", "humanoid", "gymnasium/hopper"])
def test_newton_is_explained_to_the_width_of_its_numbers(name, key):
    found = align(scene_of(name), key, states=2, seconds=0.0)[key]
    assert not found.unexplained
    for comparison in found.comparisons:
        if comparison.verdict in ("agrees", "explained"):
            assert comparison.remainder <= comparison.allowed
            # Contacts work against the accelerations of a step without them.
            size = max(comparison.scale, comparison.difference)
            size = max(size, found.comparison("step").scale)
            assert comparison.allowed <= max(1e-6, 4e-4 * size)


def test_several_versions_of_a_parameter_are_not_confused():
    changed = scene(mass="0.9", damping="0.35")
    found = align(scene(), "native", theirs=changed, seconds=0.0)["native"]
    assert set(found.causes) == {"mass", "damping"}
    by_quantity = {c.quantity: {x.what for x in c.causes} for c in found.comparisons}
    assert by_quantity["bias forces"] == {"mass"}
    assert by_quantity["passive forces"] == {"damping"}
    assert by_quantity["step"] == {"mass", "damping"}


def test_overwriting_gives_mujoco_the_others_model():
    """MuJoCo's own forces, of a model compiled from the altered text."""
    ours = SceneModel(scene())
    theirs = SceneModel(scene(mass="0.9", damping="0.35", axis="0.3 0.2 1"))
    found = compare_parameters(parameters_of(ours), parameters_of(theirs), 1e-12)
    matched = overwritten(ours, found)
    start = MechanicalState(ours.qpos0.copy(), np.zeros(ours.nv), np.zeros(ours.nu))
    for state in sample_states(ours, start, 3, seed=4).smooth:
        wanted = MujocoMechanics(theirs).step(state, frozenset({"actuators"}))
        got = MujocoMechanics(matched).step(state, frozenset({"actuators"}))
        assert np.allclose(wanted, got, rtol=0, atol=1e-11)


def SceneModel(scene: SceneCfg) -> mujoco.MjModel:  # noqa: N802
    from simstate.scene import build_scene

    return build_scene(scene).model


def test_what_cannot_be_explained_is_said(monkeypatch):
    """A simulator that is wrong without a parameter to blame."""
    from simstate.simulators import simulation_mechanics

    def crooked(self, state):
        right = original(self, state)
        return right + 0.01 * np.arange(len(right))

    original = simulation_mechanics.NativeMechanics.bias
    monkeypatch.setattr(simulation_mechanics.NativeMechanics, "bias", crooked)
    found = align(scene(), "native", seconds=0.0)
    assert [c.quantity for c in found["native"].unexplained] == ["bias forces"]
    assert found["native"].comparison("bias forces").difference == pytest.approx(0.07)
    assert not found.explained
    assert "UNEXPLAINED: bias forces" in str(found)


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        (("no skin",), "Its message on the model: no skin\n"),
        (("no skin", "no cable"), "no skin … and 1 more, in --json"),
        (("no skin", "no cable", "no sleep"), "no skin … and 2 more, in --json"),
    ],
)
def test_notes_are_counted(notes, text):
    found = align(scene(), "native", seconds=0.0)
    noted = dataclasses.replace(found["native"], notes=notes)
    report = str(dataclasses.replace(found, simulators=(noted,)))
    lines = "\n".join(line.rstrip() for line in report.splitlines())
    assert text in f"{lines}\n"


@pytest.mark.parametrize(("count", "more"), [(20, 0), (21, 1), (22, 2)])
def test_parameters_beyond_the_table_are_counted(count, more):
    found = align(scene(), "native", theirs=scene(mass="0.95"), states=2, seconds=0.0)
    (mass,) = [p for p in found["native"].parameters if p.kind == "mass"]
    many = dataclasses.replace(found["native"], parameters=(mass,) * count)
    report = str(dataclasses.replace(found, simulators=(many,)))
    rows = [line for line in report.splitlines() if line.startswith("mass ")]
    assert len([row for row in rows if "robot/upper" in row]) == 20
    assert (f"… and {more} more" in report) == (more > 0)


def test_report_as_json_and_text(capsys, tmp_path):
    path = tmp_path / "altered.xml"
    path.write_text(ROBOT.format(**{**AS_IT_IS, "mass": "0.95"}))
    model = tmp_path / "model.xml"
    model.write_text(ROBOT.format(**AS_IT_IS))
    plot = tmp_path / "runs.png"
    args = ["align", str(model), "--with", "native", "--theirs", str(path)]
    assert cli.main([*args, "--seconds", "0.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (native,) = found["simulators"]
    (mass,) = [p for p in native["parameters"] if p["kind"] == "mass"]
    assert mass["element"] == "robot/upper"
    assert mass["theirs"] == [0.95]
    assert len(native["trajectory"]["time"]) == len(native["trajectory"]["bodies"])
    assert cli.main([*args, "--seconds", "0.1", "--plot", str(plot)]) == 0
    text = capsys.readouterr().out
    assert "mass of robot/upper: 0.8 in MuJoCo, 0.95 kg there" in text
    assert "vary body_mass over [0.8, 0.95]" in text
    assert plot.stat().st_size > 5000


def test_bad_calls_are_reported():
    with raises(InvalidInputError, name="states"):
        align(scene(), "native", states=0)
    with raises(InvalidInputError, name="seconds"):
        align(scene(), "native", seconds=float("nan"))
    with raises(ModelError, name="scene"):
        align(scene(), "native", theirs=scene_of("cube"))


def test_suggestions_cover_both_values():
    altered = scene(damping="0.35")
    found = align(scene(), "native", theirs=altered, seconds=0.0)["native"]
    (only,) = suggestions(found)
    assert (only.low, only.high) == (0.25, 0.35)
    assert only.how == "dof_damping"
    assert only.elements == ("robot/shoulder",)


def test_elements_with_values_of_their_own_have_no_common_range():
    ours = load_spec(ROBOT.format(**AS_IT_IS))
    theirs = load_spec(ROBOT.format(**{**AS_IT_IS, "damping": "0.35"}))
    theirs.joint("elbow").damping[0] = 0.9
    here, there = (
        SceneCfg(entities={"robot": EntityCfg(model=s)}, ground=False)
        for s in (ours, theirs)
    )
    found = align(here, "native", theirs=there, seconds=0.0)["native"]
    (only,) = suggestions(found)
    assert only.elements == ("robot/shoulder", "robot/elbow")
    assert only.low is only.high is None
    assert str(only).endswith("vary dof_damping, each from MuJoCo's value to theirs")


def test_states_are_what_they_are_for():
    model = SceneModel(scene_of("quadruped"))
    start = MechanicalState(model.qpos0.copy(), np.zeros(model.nv), np.zeros(model.nu))
    states = sample_states(model, start, 4, seed=2)
    for state in states.smooth:
        force = _actuator_force(model, state)
        assert np.all(np.abs(force) < 0.9 * model.actuator_forcerange[:, 1])
    for state in states.saturated:
        force = _actuator_force(model, state)
        full = np.isclose(np.abs(force), model.actuator_forcerange[:, 1])
        assert full.sum() >= 3  # controls have ranges too: not all can get there
    for state in states.beyond_limits:
        data = mujoco.MjData(model)
        data.qpos[:] = state.qpos
        mujoco.mj_forward(model, data)
        kinds = data.efc_type[: data.nefc]
        assert (kinds == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT).sum() >= 3
    assert len({state.qpos.tobytes() for state in states.smooth}) == 4
    replaced = dataclasses.replace(states, touching=[])
    assert replaced.touching == []


def _actuator_force(model, state):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = state.qpos, state.qvel, state.ctrl
    mujoco.mj_forward(model, data)
    return data.actuator_force.copy()


def test_contacts_of_what_leaps_when_it_should_have_settled_are_compared():
    """The ant is in the air half a second after it began to fall."""
    model = load_spec(str(GYMNASIUM / "ant.xml")).compile()
    data = mujoco.MjData(model)
    start = MechanicalState(data.qpos.copy(), data.qvel.copy(), data.ctrl.copy())
    mujoco.mj_step(model, data, 50)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0
    (state,) = sample_states(model, start, 1, seed=0).touching
    data.qpos[:], data.qvel[:] = state.qpos, state.qvel
    mujoco.mj_forward(model, data)
    assert data.ncon
    assert np.abs(data.qfrc_constraint).max() > 1.0
