"""Differences on warp: MuJoCo Warp's is reported as such, ours is a failure."""

from __future__ import annotations

import numpy as np
import pytest
from tests.inside import after_warp_forward, engine_of
from tests.raised import raises

from simstate import EntityCfg, ModelError, SceneCfg, Simulation, WarpCfg
from simstate.study import oracles
from simstate.study.oracles import randomize

SUNK = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="box" pos="0 0 -.8">
      <joint name="lift" type="slide" axis="0 0 1" range="-.1 .1"/>
      <joint name="roll" axis="1 0 0"/>
      <joint name="pitch" axis="0 1 0"/>
      <geom type="box" size=".3 .2 .1" pos=".02 .03 0" mass="1.5"
            solref="-50 -2" solimp=".1 .2 1"/>
    </body>
  </worldbody>
</mujoco>
"""
"""A box well below a plane: all its corners touch, of which MuJoCo takes four."""

CROWD = "<mujoco><worldbody>{}</worldbody></mujoco>".format(
    "".join(
        f'<body name="b{k}"><joint type="slide" axis="{k % 3} 1 .5" range="-.1 .1"/>'
        f'<geom size="{0.5 + 0.01 * k}" pos="0 0 {0.02 * k}" mass="{0.2 + 0.1 * k}"/>'
        "</body>"
        for k in range(12)
    )
)
"""Twelve spheres in one another: 66 contacts, and MuJoCo Warp has room for 48."""


def scene(xml):
    robot = EntityCfg(model=xml)
    return SceneCfg(entities={"robot": robot}, ground=False, timestep=None)


def joint_acc(report):
    (found,) = [c for c in report.checks if c.quantity == "joint_acc"]
    return found


HELD = (
    """<equality><connect body1="box" anchor=".2 .1 .05" solref=".5 1"/></equality>"""
)


@pytest.mark.parametrize("more", ["", HELD], ids=["free", "held"])
def test_what_mujoco_warp_does_differently_is_reported_as_such(more):
    """Also where we mend what MuJoCo Warp gets wrong: the velocities of a connect."""
    report = oracles.check(scene(SUNK.replace("</mujoco>", f"{more}</mujoco>")), "warp")
    assert report.passed, str(report)
    (note,) = report.notes
    assert "MuJoCo Warp differs from MuJoCo here by " in note
    assert "contacts of box and plane: it has 8, MuJoCo has 4." in note
    assert joint_acc(report).note == note
    assert note in str(report)
    assert report.to_dict()["passed"]


def test_native_needs_no_such_note():
    report = oracles.check(scene(SUNK))
    assert report.passed
    assert report.notes == []
    assert engine_of(Simulation(scene(SUNK))).bare_forward() is None


def test_what_we_do_differently_fails(monkeypatch):
    def wrong(data):
        data.qacc.assign(data.qacc.numpy() * 1.01)

    after_warp_forward(monkeypatch, wrong)
    report = oracles.check(scene(SUNK), "warp")
    assert not report.passed
    assert not joint_acc(report).passed
    assert joint_acc(report).note == ""


def test_a_check_has_room_for_all_contacts():
    sim = Simulation(scene(CROWD), 4, engine="warp")
    randomize(sim, seed=0)
    roomier = engine_of(sim).bare_forward().roomier
    assert isinstance(roomier, WarpCfg)
    assert roomier.contacts_per_world >= 66
    assert roomier.constraints_per_world >= 66
    report = oracles.check(scene(CROWD), "warp")
    assert report.passed, str(report)
    enough = Simulation(scene(CROWD), 4, engine=WarpCfg(
        contacts_per_world=200, constraints_per_world=400
    ))  # fmt: skip
    randomize(enough, seed=0)
    assert engine_of(enough).bare_forward().roomier is None


@pytest.mark.parametrize("more", ["", HELD])
def test_the_bare_library_gives_our_bits(more):
    xml = SUNK.replace("</mujoco>", f"{more}</mujoco>")
    sim = Simulation(scene(xml), 3, engine="warp")
    randomize(sim, seed=2)
    bare = engine_of(sim).bare_forward()
    sim.forward()
    np.testing.assert_array_equal(sim.data.qacc, bare.qacc)
    assert set(bare.contact_world) <= {0, 1, 2}
    lengths = np.linalg.norm(bare.contact_frame, axis=2)
    np.testing.assert_allclose(lengths, 1.0, rtol=1e-5)


def test_worlds_with_parameters_of_their_own_are_not_run_bare():
    sim = Simulation(scene(SUNK), 2, engine="warp")
    sim.expand("body_mass")
    assert engine_of(sim).bare_forward() is None


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ('<option solver="PGS"/>', "mjSOL_PGS is unsupported"),
        ('<option><flag fwdinv="enable"/></option>', "mjENBL_FWDINV"),
    ],
)
def test_options_that_warp_lacks_are_refused_with_the_remedy(head, says):
    xml = SUNK.replace("<mujoco>", f"<mujoco>{head}")
    with pytest.raises(ModelError) as caught:
        Simulation(scene(xml), 1, engine="warp")
    assert says in str(caught.value)
    assert "SceneCfg(options={'" in str(caught.value)
    assert "engine='native'" in str(caught.value)
    Simulation(scene(xml), 1)


def test_the_remedy_for_a_solver_works():
    xml = SUNK.replace("<mujoco>", '<mujoco><option solver="PGS"/>')
    cfg = SceneCfg(
        entities={"robot": EntityCfg(model=xml)},
        ground=False,
        timestep=None,
        options={"solver": "Newton"},
    )
    Simulation(cfg, 1, engine="warp").step()


def test_other_things_that_warp_lacks_are_for_native():
    chain = "".join(
        f'<body pos="0 0 {k}"><joint axis="0 1 0"/><geom size=".1"/></body>'
        for k in range(61)
    )
    head = '<option jacobian="dense"/>'
    xml = f"<mujoco>{head}<worldbody>{chain}</worldbody></mujoco>"
    with raises(ModelError, name="warp"):
        Simulation(scene(xml), 1, engine="warp")
