"""The table of all contacts against MuJoCo's own, and the command that prints it."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pytest
from tests.inside import worlds_of
from tests.raised import raises
from tests.sensors.heap import ROCK, heap, mujoco_at, stir

from simstate import EntityCfg, SceneCfg, Simulation, UnknownNameError
from simstate.cli import main
from simstate.sensors.contact_table import weight_of


def test_rows_are_those_of_mujoco(engine: str) -> None:
    sim = heap(3, engine)
    stir(sim, 9)
    sim.step(60)
    tol = 1e-9 if engine == "native" else 5e-2
    table = sim.contact_table([2, 0])
    assert set(table.world.tolist()) == {0, 2}
    worlds = table.world.tolist()
    assert list(dict.fromkeys(worlds)) == [2, 0]
    assert worlds == sorted(worlds, reverse=True)
    for world in (2, 0):
        data = mujoco_at(sim, world)
        rows = [row for row in table if row["world"] == world]
        assert len(rows) == data.ncon > 1
        theirs = {}
        for k, contact in enumerate(data.contact):
            wrench = np.zeros(6)
            mujoco.mj_contactForce(sim.model, data, k, wrench)
            names = tuple(sim.model.geom(g).name for g in contact.geom)
            axes = contact.frame.reshape(3, 3)
            theirs.setdefault(names, []).append(
                (contact.pos.copy(), axes.T @ wrench[:3], axes.T @ wrench[3:],
                 axes[0], contact.dist, contact.friction.copy(), wrench[0])
            )  # fmt: skip
        for row in rows:
            known = theirs[tuple(row["geoms"])]
            pos, force, torque, normal, dist, friction, along = min(
                known, key=lambda one: np.abs(one[0] - row["pos_w"]).max()
            )
            size = 1 + np.linalg.norm(force)
            np.testing.assert_allclose(row["pos_w"], pos, atol=1e-4)
            np.testing.assert_allclose(row["force_w"], force, atol=tol * size)
            np.testing.assert_allclose(row["torque_w"], torque, atol=tol * size)
            np.testing.assert_allclose(row["normal_w"], normal, atol=1e-3)
            np.testing.assert_allclose(row["distance"], dist, atol=1e-5)
            np.testing.assert_allclose(row["friction"], friction, rtol=1e-5)
            assert abs(row["normal_force"] - along) < tol * size
            bodies = [sim.model.geom(g).bodyid[0] for g in row["geoms"]]
            assert row["bodies"] == [sim.model.body(b).name for b in bodies]


def test_flexible_bodies_have_names_and_no_geom() -> None:
    cloth = """<mujoco><worldbody><geom name="post" type="box" size=".2 .2 .1"/>
      <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".02"
      pos="0 0 .11" dim="2" mass="0.2"><contact selfcollide="none"/></flexcomp>
      </worldbody></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(cloth), 2)
    sim.step(5)
    table, contacts = sim.contact_table([1]), mujoco_at(sim, 1).contact
    assert len(table) == len(contacts.dist) > 4
    for names, bodies, geoms, flexes in zip(
        table.geom_names, table.body_names, contacts.geom, contacts.flex, strict=True
    ):
        known = ["post" if g >= 0 else "cloth" for g in geoms]
        assert list(names) == known
        assert list(bodies) == ["world" if g >= 0 else "" for g in geoms]
        assert set(flexes) == {-1, 0}
    assert table.geom_ids.tolist() == contacts.geom.tolist()


def test_sums_are_the_sensors(engine: str) -> None:
    sim = heap(2, engine)
    stir(sim, 5)
    sim.step(80)
    sim.forward()
    table, feet = sim.contact_table(), sim.contacts["feet"]
    for world in range(2):
        for e, name in enumerate(feet.element_names):
            got = table.net_force_on(name, world).double().numpy()
            force = feet.force_w[world, e].double().numpy()
            np.testing.assert_allclose(
                got, force, atol=1e-3 * (1 + np.abs(force).max())
            )
    assert float((feet.force_w[0] - feet.force_w[1]).norm()) > 1.0


def test_the_command_says_what_carries_the_weight(capsys) -> None:
    assert main(["contacts", "quadruped", "--seconds", "2"]) == 0
    out = capsys.readouterr().out
    assert "pushes this" in out
    assert "% of it is supported" in " ".join(out.split())
    assert main(["contacts", "quadruped", "--seconds", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["force_of_the_world"][2] == pytest.approx(
        -facts["weight"][2], rel=1e-3
    )
    assert len(facts["contacts"]) >= 4
    assert all("ground" in row["geoms"] for row in facts["contacts"])
    assert main(["contacts", "quadruped", "--seconds=-1"]) == 1
    assert "--seconds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("contact", "sim.contact_table"), ("qM", "mass_matrix"),
        ("efc_force", "constraint_force"), ("cfrc_int", "incoming_wrench_w"),
        ("qfrc_inverse", "inverse_dynamics"), ("energy", "potential_energy"),
        ("contacts", "sim.contact_table"), ("efc_vel", "constraint_force"),
        ("ncon", "count"), ("subtree_angmom", "angular_momentum_w"),
    ],
)  # fmt: skip
def test_what_is_not_in_sim_data_names_what_gives_it(make_sim, name, says) -> None:
    sim = make_sim("native", 1)
    with raises(UnknownNameError, name=name) as caught:
        getattr(sim.data, name)
    assert says in str(caught.value)
    named = says.removeprefix("sim.")
    owners = (sim, sim.dynamics, type(heap(1).contacts["feet"]))
    assert any(hasattr(owner, named) for owner in owners)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("contact_forces", "contact_forces"),
        ("air_time", "air_time"),
        ("height_scan", "height_scan"),
    ],
)
def test_what_is_not_in_entity_data_names_what_gives_it(make_sim, name, says) -> None:
    sim = make_sim("native", 1)
    entity = next(iter(sim.scene.values()))
    with raises(UnknownNameError, name=says):
        getattr(entity.data, name)


def test_nothing_has_a_weight_without_gravity() -> None:
    scene = SceneCfg(
        entities={"rock": EntityCfg(model=ROCK)},
        ground=True,
        timestep=0.002,
        options={"disableflags": mujoco.mjtDisableBit.mjDSBL_GRAVITY.value},
    )
    assert (weight_of(worlds_of(Simulation(scene))) == 0).all()
    assert weight_of(worlds_of(heap(1)))[0, 2] == pytest.approx(-9.81 * 7.35)
