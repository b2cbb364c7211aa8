"""Free parameters of every kind: bounds, units, and where their values go."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, SimStateError, Simulation
from simstate.study.identification.fit import Fit
from simstate.study.identification.fitted_model import fitted_model
from simstate.study.identification.fitted_parameters import FittedParameters
from simstate.study.identification.free_parameters import parse_free

MODEL = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 1"><freejoint name="root"/>
      <inertial pos="0.1 -0.2 0.3" quat="0.9 0.1 0.3 0.2" mass="2.5"
                diaginertia="0.05 0.04 0.03"/>
      <geom name="foot" size="0.1" friction="0.7 0.02 0.003"/>
      <body name="arm" pos="0.3 0 0">
        <joint name="hinge" axis="0 1 0" damping="0.4" armature="0.02" stiffness="3"
               frictionloss="0.05"/>
        <geom name="arm" type="box" size="0.2 0.1 0.05" pos="0.1 0.02 0" mass="0.8"/>
        <body name="bob" pos="0.3 0 0">
          <joint name="ball" type="ball" damping="0.3" armature="0.01"/>
          <geom name="bob" type="box" size="0.1 0.05 0.07" mass="0.4"/>
        </body>
        <body name="slider" pos="0 0.2 0">
          <joint name="slide" type="slide" axis="1 0 0" damping="0.7"/>
          <geom name="slider" size="0.06" mass="0.3"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="sum" damping="0.3" stiffness="2" frictionloss="0.1">
    <joint joint="hinge" coef="0.5"/><joint joint="slide" coef="2"/>
  </fixed></tendon>
  <actuator>
    <position name="servo" joint="hinge" kp="5" kv="0.6" gear="3"/>
    <velocity name="drive" joint="slide" kv="0.9" gear="-2"/>
    <motor name="motor" joint="hinge" gear="1.5"/>
  </actuator>
</mujoco>
"""
FREE = (
    "robot joints hinge slide: damping, armature, frictionloss; joint ball: damping;"
    "joint hinge: stiffness 1 .. 7; body arm base: mass, com, inertia;"
    "geom foot: friction; actuators servo drive: kv; actuator servo: kp, gear;"
    "actuator motor: gear; tendon sum: damping, stiffness, frictionloss;"
    "joint slide: bias; delay 0 .. 0.03"
)


@pytest.fixture(scope="module")
def sim() -> Simulation:
    entities = {"robot": EntityCfg(model=MODEL)}
    return Simulation(SceneCfg(entities=entities, ground=False), 3)


def test_nominal_values_are_the_models_and_bounds_are_about_them(sim):
    found = {one.name: one for one in parse_free(sim, FREE)}
    nominal = {
        "joint hinge damping": (0.4, "N·m·s/rad"),
        "joint slide damping": (0.7, "N·s/m"),
        "joint hinge armature": (0.02, "kg·m²"),
        "joint slide armature": (0.0, "kg"),
        "joint hinge frictionloss": (0.05, "N·m"),
        "joint ball damping": (0.3, "N·m·s/rad"),
        "joint hinge stiffness": (3.0, "N·m/rad"),
        "body base mass": (2.5, "kg"),
        "body base com x": (0.1, "m"),
        "body base com y": (-0.2, "m"),
        "body base com z": (0.3, "m"),
        "body arm inertia d1": (np.log(0.2 / 3**0.5), "1"),
        "body arm inertia d3": (np.log(0.05 / 3**0.5), "1"),
        "body arm inertia s12": (0.0, "m"),
        "geom foot friction": (0.7, "1"),
        "actuator servo kp": (5.0, None),
        "actuator servo kv": (0.6, None),
        "actuator drive kv": (0.9, None),
        "actuator servo gear": (3.0, None),
        "actuator motor gear": (1.5, None),
        "tendon sum damping": (0.3, None),
        "tendon sum stiffness": (2.0, None),
        "tendon sum frictionloss": (0.1, None),
        "joint slide bias": (0.0, "m"),
        "delay": (0.0, "s"),
    }
    for name, (value, unit) in nominal.items():
        assert found[name].nominal == pytest.approx(value), name
        assert unit in (None, found[name].unit), (name, found[name].unit)
    for one in found.values():
        assert one.low <= one.nominal <= one.high
        assert one.low < one.start < one.high
        assert abs(one.start - one.nominal) <= 1.001e-3 * (one.high - one.low)
        assert 0 < one.scale <= one.high - one.low
    bounds = {name: (one.low, one.high) for name, one in found.items()}
    assert bounds["joint hinge stiffness"] == (1.0, 7.0)
    assert bounds["delay"] == (0.0, 0.03)
    assert bounds["joint slide bias"] == (-0.5, 0.5)
    assert bounds["body base mass"] == pytest.approx((0.25, 25.0))
    assert bounds["geom foot friction"] == pytest.approx((0.035, 14.0))
    radius = np.sqrt(0.05 / 2.5)  # of gyration
    reach = 2 * radius + 0.02
    assert bounds["body base com y"] == pytest.approx((-0.2 - reach, -0.2 + reach))
    mass = sim.model.dof_M0[sim.model.joint("robot/slide").dofadr[0]]
    assert bounds["joint slide armature"] == pytest.approx((0.0, mass))
    assert bounds["joint slide damping"][1] == pytest.approx(max(7.0, 10 * mass))
    assert found["body base mass"].scale == 2.5
    assert found["body base com x"].scale == pytest.approx(0.2 * reach)


def test_a_gear_is_that_of_the_actuator_after_one_with_three_outputs():
    text = MODEL.replace(
        "<actuator>",
        '<actuator><orientation name="aim" joint="ball" input="quat" kp="2"/>',
    )
    model = mujoco.MjModel.from_xml_string(text)
    (found,) = parse_free(Simulation(model), "actuator motor: gear")
    assert found.nominal == 1.5
    changed = fitted_model(model, [found], np.array([2.5]))
    assert changed.actuator("motor").gear[0] == 2.5
    others = changed.actuator_gear[:, 0] != model.actuator_gear[:, 0]
    assert others.sum() == 1


def test_estimates_are_those_of_the_changed_specification(sim):
    """The compiler's arrays of changed MJCF are those of the changed model."""
    parameters = parse_free(sim, FREE)
    values = np.array([0.3 * one.low + 0.7 * one.high for one in parameters])
    values = np.minimum(values, [3 * abs(one.nominal) + 0.5 for one in parameters])
    model = fitted_model(sim.model, parameters, values)
    known = FittedParameters(tuple(parameters), values, np.eye(len(values)))
    fit = Fit((), (), (), (), (), (), 0.9, known, model, {}, {})
    spec = mujoco.MjSpec.from_string(MODEL)
    fit.change_spec(spec)
    compiled = spec.compile()
    names = (
        "dof_damping", "dof_armature", "dof_frictionloss", "jnt_stiffness", "body_mass",
        "body_ipos", "body_inertia", "geom_friction", "actuator_gear",
        "actuator_gainprm", "actuator_biasprm", "tendon_damping", "tendon_stiffness",
        "tendon_frictionloss",
    )  # fmt: skip
    for name in names:
        wanted, found = getattr(model, name), getattr(compiled, name)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9, err_msg=name)
        changed = np.abs(wanted - getattr(sim.model, name)).max() > 1e-3
        assert changed, name
    text = "\n".join(fit.mjcf_changes())
    friction = " ".join(f"{x:.10g}" for x in model.geom("robot/foot").friction)
    assert f'<geom name="foot" friction="{friction}"/>' in text
    assert f'stiffness="{model.joint("robot/hinge").stiffness[0]:.10g}"' in text
    gear = " ".join(f"{x:.10g}" for x in model.actuator("robot/motor").gear)
    assert f'<motor name="motor" gear="{gear}"/>' in text


def test_draws_are_written_to_the_worlds_that_are_named(sim):
    parameters = tuple(parse_free(sim, FREE))
    middle = torch.tensor([0.5 * (one.low + one.high) for one in parameters])
    values = middle.double() * torch.tensor([[0.9], [1.1]])
    known = FittedParameters(parameters, middle.numpy(), np.eye(len(parameters)))
    before = sim.expand("body_mass").clone()
    missing = known.write(sim, values, env_ids=[2, 0])
    assert missing == ["joint slide bias", "delay"]
    inside = known.within_bounds(values)
    for p, one in enumerate(parameters):
        for field, index, factor in one.targets if one.kind == "field" else ():
            found = sim.expand(field)[[2, 0], *index]
            torch.testing.assert_close(found, factor * inside[:, p])
    assert torch.equal(sim.expand("body_mass")[1], before[1])
    drawn = dict(zip((one.name for one in parameters), inside.T, strict=True))
    for name in ("arm", "base"):  # the moments' sum is twice that of the second moments
        body = sim.model.body(f"robot/{name}").id
        stretch = [torch.exp(drawn[f"body {name} inertia d{k}"]) for k in (1, 2, 3)]
        shear = [drawn[f"body {name} inertia s{k}"] for k in (12, 13, 23)]
        square = (torch.stack([*stretch, *shear]) ** 2).sum(dim=0)
        found = sim.expand("body_inertia")[[2, 0], body].sum(dim=1)
        torch.testing.assert_close(found, 2 * drawn[f"body {name} mass"] * square)
    outside = known.within_bounds(torch.full((1, len(parameters)), 1e9))
    assert outside[0].tolist() == [one.high for one in parameters]
    sample = known.sample(torch.zeros(2, len(parameters)))
    torch.testing.assert_close(sample[1], known.within_bounds(middle[None])[0])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "free"),
        ("joint hinge: damping; joint .*e: damping", "joint hinge damping"),
        ("joint hinge: damping 2 .. 1", "joint hinge damping"),
        ("joint hinge: damping 1 .. 1", "joint hinge damping"),
        ("joint hinge: damping 1 .. 1e999", "joint hinge damping"),
        ("joint hinge: damping 1 .. 2 .. 3", "damping 1 .. 2 .. 3"),
        ("joint hinge: damping 1 .. .", "damping 1 .. ."),
        ("joint hinge: damping.x", "joint hinge damping"),
        ("joint hinge: mass", "mass"),
        ("joint hinges: damping", "hinges"),
        ("joint (: damping", "("),
        ("joint root: damping", "root"),
        ("wheel: damping", "wheel"),
        ("delays", "delays"),
        ("delay, delay", "delay, delay"),
        ("delay 0.2 .. 0.1", "delay"),
        ("actuator motor: kp", "robot/motor"),
        ("actuator drive: kp", "robot/drive"),
    ],
)
def test_texts_that_free_nothing_are_named(sim, text, name):
    with raises(SimStateError, name=name):
        parse_free(sim, text)


def test_a_component_and_several_entities_are_named(sim):
    (only,) = parse_free(sim, "bodies base: com.y")
    assert (only.name, only.nominal, only.component) == ("body base com y", -0.2, 1)
    entities = {"one": EntityCfg(model=MODEL), "two": EntityCfg(model=MODEL)}
    both = Simulation(SceneCfg(entities=entities, ground=False))
    (there,) = parse_free(both, "two joint hinge: damping")
    assert there.name == "two joint hinge damping"
    assert there.element == ("joint", "two/hinge")
    dof = int(both.model.joint("two/hinge").dofadr[0])
    assert there.targets == (("dof_damping", (dof,), 1.0),)
    with raises(SimStateError, name="joint"):
        parse_free(both, "joint hinge: damping")
