"""Drawn inertias, effort limits and tendons, against bodies that MuJoCo compiles."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, SceneCfg
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    ControlActionCfg,
    Env,
    EventTermCfg,
    SceneEntityCfg,
    events,
    tasks,
)

ACTIONS = {"all": ControlActionCfg()}
POINTS = np.array(
    [[0.3, 0.1, -0.2], [-0.2, 0.25, 0.1], [0.0, -0.3, 0.3], [0.1, 0, 0.4]]
)
MASSES = np.array([0.7, 1.1, 0.4, 0.9])
LINKS = {"first": 1.0, "second": 0.6}
"""Two links of point masses, the second's nearer to each other."""

XML = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.004"/>
  <worldbody>
    <body name="first" pos="0 0 1">
      <freejoint/>
      {first}
      <site name="a" pos="0.2 0 0"/>
      <body name="second" pos="0 0.5 0.2">
        <joint name="hinge" axis="0 1 0" damping="0.4"/>
        <joint name="slide" type="slide" axis="1 0 0" actuatorfrcrange="-7 5"/>
        {second}
        <site name="b" pos="0 0.1 0.3"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cord" stiffness="12" damping="0.6" springlength="0.1">
      <site site="a"/><site site="b"/>
    </spatial>
    <fixed name="belt" stiffness="3" frictionloss="0.2" armature="0.05">
      <joint joint="hinge" coef="0.7"/><joint joint="slide" coef="-0.4"/>
    </fixed>
  </tendon>
  <actuator>
    <motor name="swing" joint="hinge" gear="3" forcerange="-2 4"/>
    <motor name="push" joint="slide" gear="2"/>
    <motor name="free" tendon="belt"/>
  </actuator>
</mujoco>
"""


def points(places, masses):
    return "".join(
        f'<geom size="1e-3" pos="{x} {y} {z}" mass="{m}" contype="0" conaffinity="0"/>'
        for (x, y, z), m in zip(places, masses, strict=True)
    )


def xml(change=lambda places, masses: (places, masses)):
    bodies = {n: points(*change(s * POINTS, MASSES)) for n, s in LINKS.items()}
    return XML.format(**bodies)


@pytest.fixture
def env(make_env):
    return drawn(make_env, {})


def drawn(make_env, happens, num_envs=3, engine="native"):
    robot = EntityCfg(model=xml())
    scene = SceneCfg(entities={"robot": robot}, ground=False)
    return make_env(
        num_envs, engine=engine, scene=scene, events=happens, actions=ACTIONS,
        decimation=1,
    )  # fmt: skip


STARTED = {"none": EventTermCfg(events.randomize_pseudo_inertia, mode="startup")}
"""Compiles the links so that their COMs may move."""


def full_inertia(mass, ipos, iquat, inertia):
    """Mass, COM and inertia about it in the link's axes, from MuJoCo's fields."""
    rot = np.zeros(9)
    mujoco.mju_quat2Mat(rot, np.asarray(iquat, float))
    rot = rot.reshape(3, 3)
    return np.array([mass, *ipos, *(rot @ np.diag(inertia) @ rot.T).ravel()])


FIELDS = ("body_mass", "body_ipos", "body_iquat", "body_inertia")


def test_pseudo_inertia_is_that_of_the_moved_points(make_env):
    env = drawn(make_env, STARTED)
    shifts = {0: (0.1, -0.05, 0.03), 2: (-0.2, 0.15, 0.07)}
    for world, shift in shifts.items():
        grow, stretch, shear = 0.2 - 0.3 * world, (0.3, -0.4, 0.2), (0.5, -0.2, 0.35)
        events.randomize_pseudo_inertia(
            env, torch.tensor([world]), density_range=(grow, grow),
            stretch_range={k: (d, d) for k, d in zip("xyz", stretch, strict=True)},
            shear_range={
                k: (s, s) for k, s in zip(("xy", "xz", "yz"), shear, strict=True)
            },
            com_range={k: (c, c) for k, c in zip("xyz", shift, strict=True)},
        )  # fmt: skip
        upper = np.diag(np.exp(stretch))
        upper[0, 1], upper[0, 2], upper[1, 2] = shear

        def change(places, masses, upper=upper, shift=shift, grow=grow):
            com = masses @ places / masses.sum()
            moved = com + (places - com) @ upper.T + shift
            return moved, np.exp(2 * grow) * masses

        plain = mujoco.MjModel.from_xml_string(xml(change))
        for body in (1, 2):
            found = [env.sim.expand(f)[world, body].numpy() for f in FIELDS]
            wanted = [getattr(plain, f)[body] for f in FIELDS]
            np.testing.assert_allclose(
                full_inertia(*found), full_inertia(*wanted), rtol=1e-5, atol=3e-6
            )
    for field in FIELDS:  # the world in between is as it was
        own = getattr(env.sim.model, field)[1:]
        np.testing.assert_allclose(
            abs(env.sim.expand(field)[1, 1:]), abs(own), atol=1e-12
        )


def test_wide_draws_stay_physical(make_env):
    wide = {"x": (-2.0, 2.0), "y": (-2.0, 2.0), "z": (-2.0, 2.0)}
    event = EventTermCfg(
        events.randomize_pseudo_inertia, mode="startup",
        params={
            "density_range": (-1.0, 1.0), "stretch_range": wide, "com_range": wide,
            "shear_range": {"xy": (-3, 3), "xz": (-3, 3), "yz": (-3, 3)},
        },
    )  # fmt: skip
    env = drawn(make_env, {"wide": event}, num_envs=50)
    a, b, c = env.sim.expand("body_inertia")[:, 1:].unbind(-1)
    for one, two, three in ((a, b, c), (b, c, a), (c, a, b)):
        assert bool((one + two >= three * (1 - 1e-12)).all())
    mass = env.sim.expand("body_mass")[:, 1:]
    assert len(set(mass.flatten().tolist())) == 100
    alone = drawn(make_env, {"wide": event}, num_envs=2)
    for field in FIELDS:  # bits do not depend on the number of worlds
        assert torch.equal(alone.sim.expand(field), env.sim.expand(field)[:2]), field


def test_links_without_mass_are_named(make_env):
    text = xml().replace('<site name="a"', '<body name="hollow"/><site name="a"')
    scene = SceneCfg(entities={"robot": EntityCfg(model=text)}, ground=False)
    with raises(InvalidInputError, name="mass"):
        make_env(2, scene=scene, events=STARTED, actions=ACTIONS)


@pytest.mark.parametrize("parameter", ["stiffness", "damping", "frictionloss"])
def test_tendons_pull_as_in_a_model_with_the_drawn_values(make_env, parameter):
    event = EventTermCfg(
        events.randomize_tendons, mode="startup",
        params={"parameter": parameter, "value_range": (0.5, 3.0), "operation": "add",
                "asset_cfg": SceneEntityCfg("robot", tendon_names="cord|belt")},
    )  # fmt: skip
    env = drawn(make_env, {"tendons": event})
    values = env.sim.expand(f"tendon_{parameter}")
    assert len(set(values.flatten().tolist())) == 6
    env.sim.step(25)
    for world in range(3):
        plain = mujoco.MjModel.from_xml_string(xml())
        getattr(plain, f"tendon_{parameter}")[:] = values[world]
        data = mujoco.MjData(plain)
        mujoco.mj_step(plain, data, 25)
        np.testing.assert_allclose(env.sim.data.qvel[world], data.qvel, atol=1e-12)


def test_effort_limits_of_an_actuator_after_one_with_three_outputs(make_env):
    text = """<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint/>
      <geom size=".1"/><body name="a"><joint name="ball" type="ball"/>
      <geom size=".1" pos=".1 0 0"/></body><body name="b"><joint name="hinge"/>
      <geom size=".1" pos="0 .2 0"/></body></body></worldbody><actuator>
      <orientation name="aim" joint="ball" input="quat" kp="2"/>
      <motor name="swing" joint="hinge" gear="3" forcerange="-2 4"/></actuator>
      </mujoco>"""
    scene = SceneCfg(entities={"robot": EntityCfg(model=text)}, ground=False)
    env = make_env(2, scene=scene, actions=ACTIONS)
    chosen = SceneEntityCfg("robot", actuator_names="swing")
    events.randomize_effort_limits(
        env, torch.tensor([1]), (6.0, 6.0), operation="set", asset_cfg=chosen
    )
    force = env.sim.expand("actuator_forcerange")
    assert force[:, 1].tolist() == [[-2.0, 4.0], [-2.0, 2.0]]  # before a gear of 3


def test_effort_limits_are_those_of_the_joint(env):
    chosen = SceneEntityCfg("robot", actuator_names=("swing", "push"))
    ids = torch.tensor([2, 0])
    events.randomize_effort_limits(env, ids, (0.5, 0.5), asset_cfg=chosen)
    force, joint = (
        env.sim.expand("actuator_forcerange"),
        env.sim.expand("jnt_actfrcrange"),
    )
    for world in range(3):
        share = 1.0 if world == 1 else 0.5
        assert force[world, 0].tolist() == [-2 * share, 4 * share]
        assert joint[world, 2].tolist() == [-7 * share, 5 * share]
    events.randomize_effort_limits(
        env, torch.tensor([1]), (6.0, 6.0), operation="set", asset_cfg=chosen
    )
    assert force[1, 0].tolist() == [-2.0, 2.0]  # before a gear of 3
    assert joint[1, 2].tolist() == [-6.0, 6.0]
    env.scene["robot"].write_ctrl_to_sim(torch.full((3, 3), 50.0))
    env.sim.forward()
    found = env.scene["robot"].data.qfrc_actuator
    belt = 0.7 * 50.0  # what the belt adds to the hinge, which has no limit
    assert (found[:, 0] - belt).tolist() == pytest.approx([6.0, 6.0, 6.0])
    assert found[:, 1].tolist() == pytest.approx([2.5, 6.0, 2.5])
    with raises(InvalidInputError, name="effort_limit"):
        events.randomize_effort_limits(env, ids, (0.5, 2.0))
    with raises(InvalidInputError, name="limit_range"):
        events.randomize_effort_limits(
            env, ids, (-9.0, -9.0), operation="add", asset_cfg=chosen
        )
    before = force.clone(), joint.clone()
    with raises(InvalidInputError, name="limit_range"):  # of the slide alone
        events.randomize_effort_limits(
            env, ids, (-5.5, -5.5), operation="add", asset_cfg=chosen
        )
    assert torch.equal(before[0], force)
    assert torch.equal(before[1], joint)
    with raises(UnknownNameError, name="colour"):
        events.randomize_tendons(env, ids, "colour", (0.5, 2.0))
    bare = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=2)
    with raises(InvalidInputError, name="randomize_tendons"):
        events.randomize_tendons(bare, bare.all_ids, "stiffness", (0.5, 2.0))


def test_all_of_them_are_read_back_from_both_engines(make_env, engine):
    happens = STARTED | {
        "tendons": EventTermCfg(
            events.randomize_tendons, mode="startup",
            params={"parameter": "stiffness", "value_range": (2.0, 3.0)},
        ),
        "limits": EventTermCfg(
            events.randomize_effort_limits, mode="startup",
            params={"limit_range": (0.2, 0.8), "asset_cfg": SceneEntityCfg(
                "robot", actuator_names=("swing", "push"))},
        ),
    }  # fmt: skip
    env = drawn(make_env, happens, engine=engine)
    stiffness = env.sim.expand("tendon_stiffness")
    assert bool((stiffness / torch.tensor([12.0, 3.0]) > 1.99).all())
    assert float(env.sim.expand("actuator_forcerange")[:, 0, 1].max()) < 3.3


def test_a_mass_of_zero_is_no_draw(make_env):
    event = EventTermCfg(
        events.randomize_mass, mode="startup", params={"mass_range": (0.0, 0.0)}
    )
    with raises(InvalidInputError, name="mass_range"):
        drawn(make_env, {"empty": event})
