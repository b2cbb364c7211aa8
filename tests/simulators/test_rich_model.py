"""A model with one of everything: written again, compared, overwritten, declared."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from tests.raised import raises

from simstate.base.errors import ModelError
from simstate.simulators import plain_mjcf
from simstate.simulators.capabilities import features
from simstate.simulators.drives import drive_inputs, drives
from simstate.simulators.mechanics import MechanicalState, MujocoMechanics
from simstate.simulators.parameters import (
    ParameterDifference,
    compare_parameters,
    overwritten,
    parameters_of,
    recompiled,
)
from simstate.simulators.parameters.scene_parameters import (
    EXPLICIT_EULER,
    EXPLICIT_GYROSCOPIC,
    IMPLICIT_SERVOS,
)
from simstate.simulators.plain_model import plain_model

RICH = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.003" gravity="0.3 -0.2 -9.5" integrator="implicitfast"
          cone="elliptic" solver="CG" density="{density}" viscosity="0.002"
          wind="0.5 0.1 0" impratio="2" tolerance="1e-9" iterations="60">
    <flag energy="enable" refsafe="disable"/>
  </option>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 0.1" pos="0 0 -2"
          friction="0.9 0.01 0.002"/>
    <site name="anchor" pos="0.1 0.2 1.5" quat="0.9 0.1 0.2 0.3"/>
    <site name="far" pos="-0.4 0.3 1.2"/>
    <body name="base" pos="0.1 -0.1 0.4" quat="0.9 0.1 0.2 -0.1">
      <freejoint name="root"/>
      <inertial pos="0.02 0.01 -0.03" mass="{mass}" fullinertia="{inertia}"/>
      <geom name="shell" type="ellipsoid" size="0.1 0.2 0.15" fluidshape="ellipsoid"
            fluidcoef="0.4 0.2 1.3 0.9 1.1" group="2" priority="1" solmix="1.5"
            margin="0.01" gap="0.004" condim="4" solref="0.03 0.8"
            solimp="0.8 0.9 0.002 0.4 3" friction="{slide} 0.02 0.001"/>
      <site name="nose" pos="0.1 0.05 0.02" quat="0.7 0.1 0.2 0.3"/>
      <body name="upper" pos="{place}" quat="{turn}" gravcomp="{gravcomp}">
        <joint name="shoulder" axis="0 1 0.4" pos="{anchor}" damping="{damping}"
               armature="{armature}" frictionloss="{friction}" range="{range}"
               limited="true" stiffness="{stiffness}" springref="{rest}" ref="0.1"
               solreflimit="0.03 0.9" solimplimit="0.8 0.9 0.01 0.5 2"
               solreffriction="0.04 0.7" solimpfriction="0.7 0.9 0.01 0.5 2"
               margin="0.05" actuatorfrclimited="true" actuatorfrcrange="-9 9"
               actuatorgravcomp="true"/>
        <inertial pos="0.01 0.02 -0.1" mass="0.8" diaginertia="0.006 0.005 0.003"/>
        <geom name="arm" type="capsule" size="{size}" fromto="0 0 0 0.1 0 -0.2"
              contype="2" conaffinity="3"/>
        <site name="hook" pos="0.05 0.02 -0.1"/>
        <body name="lower" pos="0 0.03 -0.25">
          <joint name="elbow" axis="0.1 1 0.2" range="-2 2" limited="true"/>
          <joint name="slider" type="slide" axis="0 0.2 1" pos="0.01 0 0.02"
                 stiffness="7" springref="0.05"/>
          <inertial pos="0.02 -0.01 -0.08" mass="0.4" diaginertia="0.003 0.002 0.001"/>
          <geom name="drum" type="cylinder" size="0.05 0.1"/>
          <site name="crank" pos="0.02 0.03 -0.1" quat="0.8 0.3 0.1 0.2"/>
          <site name="side" pos="0.09 0.02 0"/>
          <site name="end" pos="0.03 0.12 -0.2"/>
        </body>
      </body>
    </body>
    <body name="post" pos="1 0 1">
      <body name="bob" pos="0.1 0.1 0">
        <joint name="ball" type="ball" range="0 1.1" limited="true" damping="0.01"
               stiffness="0.2"/>
        <geom name="bob" type="box" size="0.05 0.06 0.07" pos="0 0 -0.4" mass="0.5"/>
        <site name="tip" pos="0.01 0 -0.5"/>
      </body>
    </body>
    <body name="twin" pos="-1 0 1" quat="0.6 0.4 0.2 0.1">
      <joint name="twin" axis="0 0 1" damping="0.2"/>
      <geom name="twin" size="0.1" pos="0.2 0 0.1"/>
    </body>
    <body name="target" mocap="true" pos="1 0 0.6" quat="0.6 0.4 0.3 0.1">
      <geom name="target" size="0.02" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <contact>
    <exclude body1="bob" body2="upper"/>
    <pair geom1="floor" geom2="bob" condim="6" margin="0.02" gap="0.003"
          solref="0.03 0.9" solreffriction="0.04 1" solimp="0.8 0.9 0.002 0.4 3"
          friction="0.7 0.6 0.01 0.002 0.001"/>
  </contact>
  <tendon>
    <fixed name="sum" frictionloss="0.1" armature="0.02" springlength="0.1 0.2"
           range="-1 3" limited="true" margin="0.01" {tendon}>
      <joint joint="elbow" coef="1.5"/><joint joint="twin" coef="-0.5"/>
    </fixed>
    <spatial name="cord" springlength="0.2" stiffness="3" range="0.1 2" limited="true"
             actuatorfrclimited="true" actuatorfrcrange="-4 5" solreflimit="0.03 0.9"
             solimplimit="0.8 0.9 0.01 0.5 2" solreffriction="0.04 0.7"
             solimpfriction="0.7 0.9 0.01 0.5 2">
      <site site="anchor"/><geom geom="drum" sidesite="side"/><site site="end"/>
      <pulley divisor="2.5"/><site site="far"/><geom geom="twin"/><site site="tip"/>
    </spatial>
  </tendon>
  <equality>
    <connect name="leash" body1="bob" body2="target" anchor="0.01 0 -0.4"
             active="{active}" solref="0.03 0.9"/>
    <weld name="weld" body1="upper" body2="twin" anchor="0.1 0.2 0.3"
          relpose="0.4 0.5 0.6 0.5 0.5 0.5 0.5" torquescale="0.3" active="false"
          solimp="0.8 0.9 0.002 0.4 3"/>
    <weld name="sites" site1="hook" site2="far" torquescale="0.6" active="false"/>
    <joint name="line" joint1="elbow" joint2="twin" polycoef="0.1 0.5 0 0 0"/>
    <joint name="curve" joint1="elbow" joint2="slider" polycoef="0.1 0.5 0.2 0 0"/>
    <joint name="hold" joint1="slider" polycoef="0.05 0 0 0 0"/>
    <tendon name="tie" tendon1="sum" tendon2="cord" polycoef="0 0.3 0 0 0"
            active="false"/>
  </equality>
  <actuator>
    <position name="servo" joint="shoulder" kp="{kp}" kv="{kv}" gear="-2"
              ctrlrange="-0.4 0.3" ctrllimited="true" forcerange="{force}"
              forcelimited="true"/>
    <velocity name="speed" joint="twin" kv="{speed}" gear="3"/>
    <motor name="motor" joint="elbow" gear="{gear}"/>
    <motor name="pull" tendon="cord" gear="0.5" damping="0.1"/>
    <general name="filter" joint="slider" dyntype="filterexact" dynprm="0.05"
             gainprm="3" actlimited="true" actrange="-0.3 0.4" actearly="true"/>
    <general name="wind" joint="twin" dyntype="integrator" gaintype="affine"
             gainprm="1 0.2 0.1" biastype="affine" biasprm="0.3 -1 -0.2"/>
    <motor name="thrust" site="nose" gear="0 0 1 0 0.1 0"/>
    <motor name="reach" site="tip" refsite="anchor" gear="1 0.5 0 0 0 0.2"/>
    <general name="crank" cranksite="crank" slidersite="hook" cranklength="0.4"
             gainprm="2"/>
    <adhesion name="stick" body="bob" ctrlrange="0 1" gain="0.7"/>
    <motor name="twist" joint="ball" gear="0.1 0.2 0.3"/>
    <motor name="parent" jointinparent="ball" gear="0.3 0.2 0.1"/>
    <muscle name="muscle" tendon="sum" lengthrange="0.1 1.5"/>
  </actuator>
</mujoco>
"""
HERE = {
    "density": "1.2", "mass": "2.1", "slide": "0.8", "gravcomp": "0.4",
    "inertia": "0.03 0.04 0.05 0.002 -0.003 0.001", "place": "0.1 0.02 0",
    "turn": "0.8 0.3 0.2 0.1", "anchor": "0.01 0.02 0.03", "armature": "0.03",
    "damping": "0.25 0.1 0.02", "friction": "0.04", "range": "-0.5 1.2",
    "stiffness": "3 0.4 0.3", "rest": "0.2", "size": "0.03", "active": "true",
    "tendon": 'stiffness="0.4 0.1 0.2" damping="0.1 0.2 0.3"', "kp": "5", "kv": "0.4",
    "force": "-2 2", "speed": "1.5", "gear": "4",
}  # fmt: skip
THERE = {
    "density": ("2.5", "fluid", "density"),
    "mass": ("2.4", "mass", "base"),
    "slide": ("0.6", "sliding friction", "shell"),
    "gravcomp": ("0.7", "gravity compensation", "upper"),
    "inertia": ("0.035 0.045 0.055 -0.003 0.002 0.004", "inertia", "base"),
    "place": ("0.12 0.03 0.01", "position in parent", "upper"),
    "turn": ("-0.7 0.4 0.3 0.2", "orientation in parent", "upper"),
    "anchor": ("0.02 0.01 0.04", "joint anchor", "shoulder"),
    "armature": ("0.05", "armature", "shoulder"),
    "damping": ("0.35 0.2 0.03", "damping", "shoulder"),
    "friction": ("0.06", "dry friction", "shoulder"),
    "range": ("-0.6 1.4", "joint range", "shoulder"),
    "stiffness": ("4 0.5 0.2", "spring stiffness", "shoulder"),
    "rest": ("0.3", "spring rest position", "shoulder"),
    "size": ("0.04", "geom size", "arm"),
    "active": ("false", "equality", "leash"),
    "tendon": ('stiffness="0.5 0.2 0.3" damping="0.2 0.3 0.4"', "tendon", "sum"),
    "kp": ("6", "servo stiffness", "shoulder"),
    "kv": ("0.5", "servo damping", "shoulder"),
    "force": ("-3 3", "force limit", "shoulder"),
    "speed": ("1.8", "servo damping", "twin"),
    "gear": ("5", "force per control", "elbow"),
}
"""For each value another one, with the kind and the element that it is of."""
UNUSED = ("geom_rgba", "geom_matid", "site_rgba", "site_size", "site_group")
UNUSED += ("tendon_rgba", "tendon_width", "tendon_group", "site_type", "site_matid")
UNUSED += ("geom_rbound", "geom_aabb", "body_bvhadr", "body_bvhnum", "tendon_matid")


def rich(**changes: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(RICH.format(**{**HERE, **changes}))


def differing(one: mujoco.MjModel, two: mujoco.MjModel) -> list[str]:
    """Names of the fields of physics that differ by more than rounding."""
    kinds = ("body_", "jnt_", "dof_", "geom_", "site_", "tendon_", "wrap_", "pair_")
    kinds += ("actuator_", "eq_", "exclude_", "qpos0", "qpos_spring")
    found = []
    for field in dir(one):
        ours = getattr(one, field)
        if field.startswith(kinds) and field not in UNUSED:
            theirs = getattr(two, field)
            same = ours.shape == theirs.shape
            if not (same and np.allclose(ours, theirs, rtol=1e-12, atol=1e-14)):
                found.append(field)
    for option in dir(one.opt):
        ours = getattr(one.opt, option)
        known = option[0] != "_" and isinstance(ours, int | float | np.ndarray)
        if known and not np.array_equal(ours, getattr(two.opt, option)):
            found.append(f"opt.{option}")
    return found


def moving(model: mujoco.MjModel, seed: int = 3) -> mujoco.MjData:
    """A state in which nothing is at rest or zero."""
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.3)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:] = rng.uniform(-0.5, 0.5, size=model.nu)
    data.act[:] = rng.uniform(0.1, 0.3, size=model.na)
    return data


def test_written_again_it_is_the_same_model():
    model = rich()
    again = recompiled(model)
    assert differing(model, again) == []
    one, two = moving(model), moving(again)
    mujoco.mj_step(model, one, 5)
    mujoco.mj_step(again, two, 5)
    np.testing.assert_allclose(one.qvel, two.qvel, rtol=0, atol=1e-11)


@pytest.mark.parametrize("what", THERE)
def test_each_parameter_is_found_and_overwritten(what):
    """The one that differs is named; written, the model is the one that has it."""
    value, kind, element = THERE[what]
    ours, theirs = rich(), rich(**{what: value})
    found = compare_parameters(parameters_of(ours), parameters_of(theirs), 1e-9)
    more = {
        "damping": {"higher powers of damping"},
        "stiffness": {"higher powers of stiffness"},
    }
    assert {d.kind for d in found} == {kind} | more.get(what, set())
    assert {d.element for d in found} == {element}
    assert any(d.dropped for d in found) == (what == "active")
    wanted, got = recompiled(plain_model(theirs)), overwritten(ours, found)
    known = {
        "force": {"jnt_actfrclimited", "jnt_actfrcrange"},  # written as the actuator's
        "inertia": {"body_inertia", "body_iquat"},  # axes in another order
        "turn": {"body_quat"},  # of two quaternions the other one
    }
    assert set(differing(wanted, got)) <= known.get(what, set())
    assert differing(recompiled(plain_model(ours)), got)
    one, two = moving(wanted), moving(got)
    mujoco.mj_step(wanted, one, 5)
    mujoco.mj_step(got, two, 5)
    np.testing.assert_allclose(one.qvel, two.qvel, rtol=0, atol=1e-9)


def test_features_are_those_that_the_model_has():
    found = features(rich())
    assert found == {
        "free joints": ("root",),
        "ball joints": ("ball",),
        "mocap bodies": ("target",),
        "joint limits": ("shoulder", "elbow"),
        "limits of ball joints": ("ball",),
        "springs of 1-DoF joints": ("shoulder", "slider"),
        "springs of ball joints": ("ball",),
        "higher powers of springs and dampers": ("shoulder", "sum"),
        "dry friction in joints": ("shoulder",),
        "gravity compensation": ("upper",),
        "fluid forces": ("density", "viscosity"),
        "position servos": ("servo",),
        "velocity servos": ("speed",),
        "motors": (
            "motor", "pull", "thrust", "reach", "twist", "parent",
        ),
        "actuators on ball joints": ("twist", "parent"),
        "actuators on tendons": ("pull", "muscle"),
        "actuators on sites, bodies and cranks": (
            "thrust", "reach", "crank", "stick",
        ),
        "actuators other than servos and motors": ("crank", "stick"),
        "actuators with state": ("filter", "wind", "muscle"),
        "force limits": ("servo",),
        "tendons": ("sum", "cord"),
        "linear couplings": ("line",),
        "couplings other than linear": ("curve", "hold", "tie"),
        "connects and welds": ("leash", "weld", "sites"),
        "contacts": ("floor", "shell", "arm", "drum", "bob", "twin"),
        "contact pairs": ("floor and bob",),
    }  # fmt: skip
    uneven = rich(force="-2 3", armature="0")
    assert features(uneven)["unequal force limits"] == ("servo",)


def test_drives_give_the_forces_of_mujocos_actuators():
    """At the joint: gears, both kinds of servos, motors, ranges of controls."""
    model = rich(force="-200 200")
    model.jnt_actfrcrange[1] = (-300, 300)
    found = drives(model)
    joints = [mujoco.mj_id2name(model, 3, d.joint) for d in found]
    assert joints == ["shoulder", "twin", "elbow"]
    assert [d.limit for d in found] == [300.0, np.inf, np.inf]
    for actuator in range(model.nactuator):
        if actuator not in (0, 1, 2):
            model.actuator_gear[actuator] = 0.0
    model.body_gravcomp[:] = 0.0
    for seed in range(3):
        data = moving(model, seed)
        data.ctrl[0] = (-0.9, 0.2, 0.9)[seed]
        mujoco.mj_forward(model, data)
        inputs = drive_inputs(model, found, data.ctrl.copy())
        for k, drive in enumerate(found):
            adr, dof = model.jnt_qposadr[drive.joint], model.jnt_dofadr[drive.joint]
            force = (
                drive.stiffness * (inputs.position[k] - data.qpos[adr])
                + drive.damping * (inputs.rate[k] - data.qvel[dof])
                + inputs.effort[k]
            )
            assert force == pytest.approx(data.qfrc_actuator[dof], rel=1e-12)
    assert drives(rich())[0].limit == 4.0


def test_a_document_for_others_says_what_it_leaves_out():
    found = plain_mjcf(rich()).left_out
    assert "higher powers of the damping of joint 'shoulder'" in found
    assert "higher powers of the stiffness of tendon 'sum'" in found
    assert "1 explicit contact pairs" in found
    left = [text for text in found if text.startswith("actuator")]
    names = ("thrust", "reach", "filter", "wind", "crank", "stick", "muscle")
    assert len(left) == len(names)
    assert all(any(repr(name) in text for text in left) for name in names)
    without = plain_mjcf(rich(), skip=("actuator", "tendon", "equality", "contact"))
    for tag in ("<actuator", "<tendon", "<equality", "<contact"):
        assert tag not in without.text


SERVO = """
<mujoco><option timestep="0.01" gravity="0 0 0" integrator="implicitfast"/>
<worldbody><body><joint name="j" axis="0 0 1" damping="0.3"/>
<inertial pos="0 0 0" mass="1" diaginertia="0.5 0.6 0.7"/></body>{body}</worldbody>
<actuator><position joint="j" kp="20" kv="0.4" gear="3"/></actuator></mujoco>"""
LOOSE = """<body pos="1 0 0"><freejoint/>
<inertial pos="0 0 0" mass="1" diaginertia="0.5 0.8 1.1"/></body>"""


@pytest.mark.parametrize("body", ["", LOOSE], ids=["alone", "with a free body"])
@pytest.mark.parametrize(
    "number", [EXPLICIT_EULER, IMPLICIT_SERVOS, EXPLICIT_GYROSCOPIC]
)
def test_integrators_of_others_by_hand(number, body):
    """One joint with a damper and a servo, whose step is a division."""
    model = mujoco.MjModel.from_xml_string(SERVO.format(body=body))
    h, inertia, damper = 0.01, 0.7, 0.3
    stiff, servo = 20 * 9, 0.4 * 9
    q, v, ctrl = 0.2, -0.5, 0.1
    force = 3 * 20 * (ctrl - 3 * q) - (servo + damper) * v
    mass = {
        EXPLICIT_EULER: inertia,
        IMPLICIT_SERVOS: inertia + h * (damper + servo) + h * h * stiff,
        EXPLICIT_GYROSCOPIC: inertia + h * (damper + servo),
    }[number]
    if number == IMPLICIT_SERVOS:
        force -= h * stiff * v
    scene = {"the scene": np.array([3.0])}
    other = {"the scene": np.array([number])}
    found = compare_parameters({"integrator": scene}, {"integrator": other}, 1e-9)
    matched = overwritten(model, found)
    qpos, qvel = np.array(matched.qpos0), np.zeros(matched.nv)
    qpos[0], qvel[0] = q, v
    spin = np.array([0.3, -0.7, 0.9])
    if body:
        qvel[4:] = spin
    state = MechanicalState(qpos, qvel, np.array([ctrl]))
    got = MujocoMechanics(matched, number).step(state, frozenset({"actuators"}))
    assert got[0] == pytest.approx(force / mass, rel=1e-9)
    if body:
        moments = np.array([0.5, 0.8, 1.1])
        explicit = -np.cross(spin, moments * spin) / moments
        np.testing.assert_allclose(got[4:], explicit, rtol=1e-9)


def test_differences_say_what_they_are():
    ours, theirs = rich(), rich(mass="2.4")
    (mass,) = compare_parameters(parameters_of(ours), parameters_of(theirs), 1e-9)
    assert mass.error == pytest.approx(0.3)
    assert str(mass) == "mass of base: 2.1 in MuJoCo, 2.4 kg there"
    values = parameters_of(ours)
    others = {kind: {} for kind in values if kind != "gravity"}
    found = compare_parameters(values, others, 1e-9)
    gone = {(d.kind, d.element): d for d in found}
    assert all(d.dropped for d in found)
    # A place or an axis has no value for nothing, and gravity is not reported.
    assert not {"joint axis", "time step", "gravity"} & {d.kind for d in found}
    limits = gone["joint range", "shoulder"]
    assert limits.theirs == (-np.inf, np.inf)
    assert limits.error == np.inf
    assert str(limits) == "joint range of shoulder: (-0.5, 1.2) in MuJoCo, none there"
    assert gone["force limit", "shoulder"].theirs == (np.inf,)
    some = [d for d in found if d.kind not in ("mass", "inertia")]
    without = overwritten(ours, some)
    assert not without.jnt_limited.any()
    assert not without.body_gravcomp.any()
    assert not without.tendon_stiffness.any()
    names = ("filter", "thrust", "muscle")
    ids = [mujoco.mj_name2id(without, mujoco.mjtObj.mjOBJ_ACTUATOR, n) for n in names]
    assert not without.actuator_gear[ids].any()


def test_small_values_are_compared_by_their_own_size():
    def differ(ours: float, theirs: float) -> bool:
        one, two = ({"mass": {"a": np.array([x])}} for x in (ours, theirs))
        return bool(compare_parameters(one, two, 1e-3))

    assert differ(2e-4, 2.01e-4)
    assert not differ(2e-4, 2.0001e-4)
    assert differ(500.0, 501.0)
    assert not differ(500.0, 500.1)


def test_values_that_mujoco_does_not_take_are_refused():
    wrong = ParameterDifference("mass", "base", (2.1,), (-1.0,), "kg", False)
    with raises(ModelError, name="model"):
        overwritten(rich(), [wrong])
    order = ParameterDifference(
        "joint range", "shoulder", (-0.5, 1.2), (1.0, -1.0), "rad", False
    )
    with raises(ModelError, name="model"):
        overwritten(rich(), [order])


def test_the_jacobian_gives_the_velocities():
    model = rich()
    data = moving(model)
    state = MechanicalState(data.qpos.copy(), data.qvel.copy(), data.ctrl.copy())
    mechanics = MujocoMechanics(model)
    jacobian, motion = mechanics.jacobian(state), mechanics.motion(state)
    np.testing.assert_allclose(
        jacobian @ state.qvel,
        np.concatenate([motion.body_vel[0], motion.body_ang_vel[0]], axis=1),
        atol=1e-12,
    )
