"""What MuJoCo says by flags or in actuators, said by parameters: it moves the same."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from tests.foreign_models import FOREIGN
from tests.raised import raises
from tests.simulators.scenes import OTHERS, only

from simstate.base.errors import ModelError
from simstate.simulators import align, info, make, plain_mjcf
from simstate.simulators.capabilities import features
from simstate.simulators.drives import drives
from simstate.simulators.mechanics import MechanicalState, MujocoMechanics
from simstate.simulators.parameters import parameters_of, recompiled
from simstate.simulators.plain_model import plain_model

LINKS = """
<mujoco>
  <option density="100" viscosity="1" integrator="{integrator}"
          actuatorgroupdisable="{group}"><flag {flag}/></option>
  <worldbody>
    <geom type="plane" size="1 1 1" pos="0 0 -0.1"/>
    <body name="b" gravcomp="0.5">
      <joint name="j" axis="0 1 0" damping="1 0.5 0.2" stiffness="3 0.4 0.3"
             frictionloss="0.1" limited="true" range="40 60"/>
      <geom size="0.1" pos="0.3 0 0"/>
    </body>
    <body name="c" pos="0 1 0">
      <joint name="k" axis="0 1 0" damping="1"/>
      <geom size="0.1" pos="0.3 0 0"/>
      <site name="s" pos="0.2 0 0"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t" stiffness="0.4 0.1 0.2" damping="0.1 0.2 0.3">
      <joint joint="j" coef="1"/><joint joint="k" coef="-0.4"/>
    </fixed>
  </tendon>
  <equality><joint joint1="j" joint2="k"/></equality>
  <actuator>
    <position joint="j" kp="2" kv="1" armature="0.7" damping="0.6 0.3" gear="3"
              ctrllimited="true" ctrlrange="-0.1 0.1"/>
    <motor tendon="t" gear="2" armature="0.3" damping="0.2 0.1 0.4" group="2"/>
    <general joint="k" gainprm="3" biastype="affine" biasprm="0.4 -2 -0.1"/>
    <general joint="k" dyntype="filter" dynprm="0.2" gainprm="3"/>
    <motor site="s" gear="0 0 1 0 0 0"/>
  </actuator>
</mujoco>
"""
FLAGS = (
    *("constraint", "equality", "frictionloss", "limit", "contact", "gravity"),
    *("spring", "damper", "clampctrl", "actuation"),
)


def links(flag: str = "", integrator: str = "Euler", group: str = "5"):
    text = LINKS.format(flag=flag, integrator=integrator, group=group)
    return mujoco.MjModel.from_xml_string(text)


def step_of(model: mujoco.MjModel) -> np.ndarray:
    """qvel after a step from a state that is not at rest."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.3)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:] = rng.uniform(-0.5, 0.5, size=model.nu)
    data.act[:] = 0.1
    mujoco.mj_step(model, data)
    return data.qvel.copy()


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("off", ["", *FLAGS, "spring damper", "group"])
def test_it_moves_as_the_model_does_without_the_flags(off, integrator):
    flag = " ".join(f'{name}="disable"' for name in off.split() if name != "group")
    model = links(flag, integrator, "2" if off == "group" else "5")
    plain = plain_model(model)
    assert not plain.actuator_armature.any()
    plain.opt.disableflags = 0
    plain.opt.disableactuator = 0
    assert np.allclose(step_of(plain), step_of(model), rtol=0, atol=1e-13)
    if off:
        kept = plain_model(links("", integrator))
        assert np.abs(step_of(kept) - step_of(model)).max() > 1e-8


@pytest.mark.parametrize("off", ["", "gravity", "actuation", "spring"])
def test_it_compiles_again_to_the_same_motion(off):
    model = links(f'{off}="disable"' if off else "", "implicitfast")
    assert np.allclose(
        step_of(recompiled(plain_model(model))), step_of(model), rtol=0, atol=1e-12
    )


def test_an_actuator_that_is_switched_off_keeps_its_inertia_and_damping():
    model = links(integrator="implicitfast")
    off = MujocoMechanics(model)  # asked without actuators
    rng = np.random.default_rng(5)
    state = MechanicalState(rng.normal(size=2), rng.normal(size=2), np.zeros(5))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = state.qpos, state.qvel
    mujoco.mj_forward(model, data)
    full = np.zeros((2, 2))
    mujoco.mj_fullM(model, data, full)
    assert np.allclose(off.mass_matrix(state), full, rtol=0, atol=1e-14)
    assert np.allclose(off.passive(state), data.qfrc_passive, rtol=0, atol=1e-14)
    assert full[0, 0] > 6.3


SUITE = sorted(
    name
    for name in FOREIGN
    if name.startswith(("gymnasium/", "dm_control/suite/"))
    and not name.endswith(("/lqr", "/dog"))
    and "/common/" not in name
)
"""The suite's but for parts of models, and the dog, whose meshes take long."""


@pytest.mark.parametrize("name", SUITE)
def test_models_of_others_compile_again_to_the_same_motion(name):
    """Flags, filtered and muscle-like actuators, sites, tendons, couplings."""
    model = mujoco.MjModel.from_xml_path(str(FOREIGN[name]))
    again = recompiled(plain_model(model))
    wanted = step_of(model)
    size = max(1.0, float(np.abs(wanted).max()))
    assert np.allclose(step_of(again), wanted, rtol=0, atol=1e-10 * size)


PAIR = """
<mujoco>
  <option><flag {flag}/></option>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" contype="0" conaffinity="0"/>
    <body name="a" pos="0 0 0.099"><freejoint/>
      <geom name="a" size="0.1" contype="0" conaffinity="0"/></body>
  </worldbody>
  <contact>
    <pair geom1="floor" geom2="a" condim="4" margin="0.02" solref="0.03 0.9"
          friction="0.7 0.6 0.01 0.002 0.001"/>
  </contact>
</mujoco>
"""


def test_contact_pairs_are_compiled_again():
    model = mujoco.MjModel.from_xml_string(PAIR.format(flag=""))
    assert features(model)["contact pairs"] == ("floor and a",)
    again = recompiled(model)
    assert np.array_equal(step_of(again), step_of(model))
    for field in ("dim", "friction", "solref", "solimp", "margin", "gap"):
        ours, theirs = (getattr(m, f"pair_{field}") for m in (model, again))
        assert np.array_equal(ours, theirs), field


def test_what_is_switched_off_is_no_feature_and_no_parameter():
    found = features(links('actuation="disable" spring="disable" contact="disable"'))
    for feature in ("position servos", "motors", "actuators on tendons", "contacts"):
        assert feature not in found
    assert "springs of 1-DoF joints" not in found
    assert "dry friction in joints" in found
    values = parameters_of(links('gravity="disable"'))
    assert not values["gravity"]["gravity"].any()
    assert values["armature"]["j"][0] == pytest.approx(0.7 * 3**2)


def test_actuators_are_declared_by_what_others_cannot_do_with_them():
    found = features(links())
    assert found["actuators other than servos and motors"] == ("actuator_2",)
    assert found["actuators with state"] == ("actuator_3",)
    assert found["actuators on sites, bodies and cranks"] == ("actuator_4",)
    assert found["higher powers of springs and dampers"] == ("j", "t")


SHARED = """
<mujoco><worldbody><body><joint name="j" axis="0 1 0" {limit}/><geom size="0.1"/></body>
</worldbody><actuator>
  <position name="p" joint="j" kp="3" forcelimited="true" forcerange="-2 2"/>
  <motor name="m" joint="j" gear="2"/>
</actuator></mujoco>"""


def test_force_limits_of_actuators_that_share_a_joint_are_declared():
    feature = "force limits of actuators that share a joint"
    alone = mujoco.MjModel.from_xml_string(SHARED.format(limit=""))
    assert features(alone)[feature] == ("p",)
    assert info("drake").capabilities.missing(alone)[feature].elements == ("p",)
    assert drives(alone)[0].limit == np.inf
    limit = 'actuatorfrclimited="true" actuatorfrcrange="-3 3"'
    both = mujoco.MjModel.from_xml_string(SHARED.format(limit=limit))
    assert drives(both)[0].limit == 3.0  # of the two together


AFTER_THREE_OUTPUTS = """
<mujoco><worldbody><body name="a"><joint name="ball" type="ball"/><geom size="0.1"/>
  </body><body name="b"><joint name="j" axis="0 1 0"/><geom size="0.1"/></body>
</worldbody><actuator>
  <orientation name="aim" joint="ball" input="quat" kp="2"/>
  <position name="p" joint="j" kp="3" gear="4" forcerange="-2 3"/>{more}
</actuator></mujoco>"""


def test_force_limits_are_those_of_the_actuator_after_one_with_three_outputs():
    model = mujoco.MjModel.from_xml_string(AFTER_THREE_OUTPUTS.format(more=""))
    assert features(model)["force limits"] == ("p",)
    assert features(model)["unequal force limits"] == ("p",)
    assert drives(model)[0].limit == 3.0 * 4.0
    again = mujoco.MjModel.from_xml_string(plain_mjcf(model).text)
    assert again.actuator("p").forcerange.tolist() == [-2.0, 3.0]
    more = AFTER_THREE_OUTPUTS.format(more='<motor name="m" joint="j" gear="5"/>')
    shared = features(mujoco.MjModel.from_xml_string(more))
    assert shared["force limits of actuators that share a joint"] == ("p",)


PENDULUM = """
<mujoco>
  <option timestep="0.002" density="{density}"><flag {flag}/></option>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1" pos="0 0 -0.45"/>
    <body name="upper" pos="0 0 0">
      <joint name="hip" axis="0 1 0" damping="0.3" stiffness="5" springref="0.4"/>
      <geom name="upper" type="capsule" size="0.03" fromto="0 0 0 0.3 0 0" mass="0.8"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="knee" axis="0 1 0" damping="0.2" limited="true" range="10 60"/>
        <geom name="lower" type="capsule" size="0.03" fromto="0 0 0 0.2 0 -0.2"
              mass="0.5"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <general joint="knee" dyntype="filter" dynprm="0.1" gainprm="30"/>
    <position name="hip" joint="hip" kp="20" kv="1" ctrllimited="true"
              ctrlrange="-0.1 0.1"/>
    <motor name="knee" joint="knee" gear="2" armature="0.05" damping="0.04"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize("key", [key for key in OTHERS if key != "mjx"])
@pytest.mark.parametrize("flag", ["gravity", "contact", "limit", "actuation", "spring"])
def test_a_simulator_without_flags_does_as_the_flags_say(flag, key):
    """By plain MuJoCo, in which the others have none of what is switched off."""
    text = PENDULUM.format(flag=f'{flag}="disable"', density="0")
    model = mujoco.MjModel.from_xml_string(text)
    found = align(model, key, states=2, seconds=0.0)[key]
    assert not found.unexplained
    kinds = {d.kind for d in found.parameters}
    assert "gravity" not in kinds
    if flag == "contact":
        assert "how contacts are found and solved" not in found.causes
    if flag == "limit":
        assert "how joint limits are solved" not in found.causes
    if flag == "actuation":
        assert "other actuator" not in kinds


@pytest.mark.parametrize("key", OTHERS)
def test_controls_go_to_the_actuators_that_a_simulator_has(key):
    """The first column is of an actuator that some do not have."""
    text = PENDULUM.format(flag='contact="disable"', density="0")
    model = mujoco.MjModel.from_xml_string(text)
    model.jnt_stiffness[:] = 0.0  # some have no springs
    simulator = make(key, model, num_envs=1)
    data = mujoco.MjData(model)
    data.ctrl[:] = (0.0, 0.3, -0.4)
    simulator.ctrl[0] = simulator.ctrl.new_tensor(data.ctrl)
    data.qpos[:] = (0.1, 0.6)
    simulator.write(data.qpos[None], data.qvel[None], [0])
    simulator.step(10)
    mujoco.mj_step(model, data, 10)
    moved = simulator.read([0]).qvel[0]
    assert np.allclose(moved, data.qvel, atol=0.03 * np.abs(data.qvel).max())
    if "actuators with state" in simulator.capabilities.lacks:
        assert "actuators with state" in simulator.missing


@pytest.mark.parametrize("key", only("newton"))
def test_newton_refuses_a_tendon_from_which_it_would_leave_joints_out(key):
    text = """
    <mujoco><worldbody><body name="b">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/><geom size="0.1"/></body></worldbody>
    <tendon><fixed name="sum"><joint joint="x" coef="1"/><joint joint="y" coef="2"/>
    </fixed></tendon>{}</mujoco>"""
    idle = mujoco.MjModel.from_xml_string(text.format(""))
    assert not align(idle, key, seconds=0.0)[key].unexplained
    motor = '<actuator><motor tendon="sum"/></actuator>'
    driven = mujoco.MjModel.from_xml_string(text.format(motor))
    with raises(ModelError, name="sum"):
        make(key, driven)
    assert "'sum'" in align(driven, key, seconds=0.0).skipped[key]


@pytest.mark.parametrize("key", only("drake"))
@pytest.mark.parametrize("flag", ["", 'contact="disable"'])
def test_a_contact_pair_touches_in_drake(flag, key):
    model = mujoco.MjModel.from_xml_string(PAIR.format(flag=flag))
    simulator = make(key, model)
    simulator.step(300)
    height = simulator.read([0]).qpos[0, 2]
    assert height < -1.0 if flag else height == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("key", OTHERS)
def test_any_name_will_do(key):
    text = """
    <mujoco><worldbody><body name="a b::c/é&quot;" pos="0 0 1">
      <joint name="j j::/" axis="0 1 0"/><geom name="g g::x" size="0.1" pos="0.3 0 0"/>
    </body></worldbody>
    <actuator><motor name="m m" joint="j j::/"/></actuator></mujoco>"""
    found = align(mujoco.MjModel.from_xml_string(text), key, states=1, seconds=0.0)
    assert not found.skipped
    assert not found[key].unexplained
    assert {d.kind for d in found[key].parameters} <= {"integrator"}


UNMOVED = """
<mujoco>
  <option><flag {flag}/></option>
  <worldbody>
    <body name="a" pos="0 0 1"><freejoint/>
      <geom name="a" type="ellipsoid" size="0.1 0.2 0.1"/></body>
    <body name="b"><joint name="j" axis="0 1 0"/>
      <geom name="b" type="{shape}" size="0.1 0.1 0.1"/></body>
  </worldbody>
  <sensor>
    <contact body1="a" body2="b" data="force"/>
    <jointpos joint="j"/>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize("key", only("mjx"))
def test_mjx_is_not_stopped_by_what_moves_nothing(key):
    """Contact sensors, energies, and shapes that it cannot let touch, nor need."""
    from simstate.simulators.mjx import put_model

    for flag, shape in (('energy="enable"', "sphere"), ('contact="disable"', "box")):
        text = UNMOVED.format(flag=flag, shape=shape)
        put_model(mujoco.MjModel.from_xml_string(text))
    touching = mujoco.MjModel.from_xml_string(UNMOVED.format(flag="", shape="box"))
    with raises(ModelError, name="mjx"):
        put_model(touching)


def test_a_height_field_compiles_again_to_the_same_ground():
    """A ball that rolls on it does the same, and rays hit the same heights."""
    rng = np.random.default_rng(3)
    heights = " ".join(f"{x:.6f}" for x in rng.random(63))
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset>
        <hfield name="ground" nrow="7" ncol="9" size="2 3 0.4 0.1"
        elevation="{heights}"/>
        </asset><worldbody><geom type="hfield" hfield="ground"/>
        <body pos="0.3 0.2 0.8"><freejoint/><geom size="0.1"/></body>
        </worldbody></mujoco>"""
    )
    again = recompiled(model)
    places = []
    for one in (model, again):
        data = mujoco.MjData(one)
        for _ in range(400):
            mujoco.mj_step(one, data)
        places.append(data.qpos.copy())
    assert places[0][2] > 0.05
    assert np.allclose(places[0], places[1], atol=1e-6)


def test_a_mesh_with_a_hollow_compiles_again_to_the_same_faces():
    """Four corners of a square and two points above and within it."""
    vertices = "0 0 0  1 0 0  1 1 0  0 1 0  .4 .5 1  .5 .4 .3"
    faces = "0 2 1  0 3 2  0 1 5  1 4 5  4 0 5  1 2 4  2 3 4  3 0 4"
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset><mesh name="it" inertia="exact" vertex="{vertices}"
        face="{faces}"/></asset><worldbody><body pos="0 0 2"><freejoint/>
        <geom type="mesh" mesh="it"/></body></worldbody></mujoco>"""
    )
    again = recompiled(model)
    assert again.nmeshface == model.nmeshface == 8
    assert again.body_mass == pytest.approx(model.body_mass)


SWITCHED = """
<mujoco><option><flag {flag}="disable"/></option><worldbody>
<body name="a" gravcomp="0.5"><joint name="j"/><geom name="one" size="0.1"/></body>
<body name="b" pos="1 0 0"><joint/><geom name="two" size="0.1"/></body>
</worldbody><contact><pair geom1="one" geom2="two"/></contact>
<equality><weld body1="a" body2="b"/></equality></mujoco>
"""


@pytest.mark.parametrize(
    ("flag", "gone"),
    [
        ("contact", "contact pairs"),
        ("constraint", "contact pairs"),
        ("equality", "connects and welds"),
        ("constraint", "connects and welds"),
        ("gravity", "gravity compensation"),
    ],
)
def test_pairs_equalities_and_compensation_that_are_off_are_no_features(flag, gone):
    on = mujoco.MjModel.from_xml_string(SWITCHED.format(flag="autoreset"))
    off = mujoco.MjModel.from_xml_string(SWITCHED.format(flag=flag))
    assert gone in features(on)
    assert gone not in features(off)


def test_armature_and_damping_of_an_actuator_on_a_ball_joint_stay():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><joint name="j" type="ball"/><geom size="0.1"
        pos="0.2 0 0"/></body></worldbody><actuator><general joint="j" gear="3 0 0"
        armature="0.2" damping="0.4"/></actuator></mujoco>"""
    )
    assert np.allclose(step_of(recompiled(model)), step_of(model), rtol=0, atol=1e-12)


def test_an_actuator_that_is_off_leaves_its_neighbour_its_force_limit():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option actuatorgroupdisable="2"/><worldbody><body>
        <joint name="j"/><geom size="0.1"/></body></worldbody><actuator>
        <position joint="j" kp="5" forcelimited="true" forcerange="-2 2"/>
        <motor joint="j" group="2"/></actuator></mujoco>"""
    )
    (drive,) = drives(plain_model(model))
    assert drive.limit == 2.0
    assert len(drive.inputs) == 1
