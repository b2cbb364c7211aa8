"""Contact sensors against mj_contactForce, Newton's laws and plain stepping."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.sensors.heap import CONTACTS, ROCK, heap, mujoco_at, stir

from simstate import (
    ContactCfg,
    EntityCfg,
    InvalidInputError,
    ModelError,
    SceneCfg,
    Simulation,
    UnknownNameError,
)
from simstate.integrate import RK4


def _bodies_of(model: mujoco.MjModel, name: str) -> set[int]:
    """The ids of the bodies that hang on a body, with itself."""
    top = model.body(name).id
    found = {top}
    for body in range(top + 1, model.nbody):
        if model.body_parentid[body] in found:
            found.add(body)
    return found


def _expected(
    sim: Simulation, world: int, sensor: str, element: str
) -> list[tuple[np.ndarray, ...]]:
    """Force, torque, point, normal and distance of each contact, by MuJoCo's C.

    On the element, world axes, the strongest first.
    """
    model, data = sim.model, mujoco_at(sim, world)
    cfg = CONTACTS[sensor]

    def is_own(geom: int) -> bool:
        if cfg.kind == "geom":
            return model.geom(geom).name == element
        body = int(model.geom_bodyid[geom])
        if cfg.kind == "subtree":
            return body in _bodies_of(model, element)
        return model.body(body).name == element

    def is_other(geom: int) -> bool:
        body = model.body(int(model.geom_bodyid[geom])).name
        if cfg.against is None:
            return not is_own(geom)
        if sensor == "feet_on_ground":
            return body == "world"
        if sensor == "geoms":
            return body in ("two/rock", "world")
        return body.startswith("walker/") or body in ("one/rock", "two/rock")

    rows: list[tuple[np.ndarray, ...]] = []
    if sim.engine_name == "warp":  # finds other contacts, and has functions of its own
        rows = _warp_contacts(sim, world, is_own, is_other)
        return sorted(rows, key=lambda row: -np.linalg.norm(row[0]))
    for k, contact in enumerate(data.contact):
        wrench = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, wrench)
        axes = contact.frame.reshape(3, 3)
        for own, other, sign in ((1, 0, 1.0), (0, 1, -1.0)):
            geoms = contact.geom
            if is_own(geoms[own]) and is_other(geoms[other]):
                rows.append(
                    (sign * axes.T @ wrench[:3], sign * axes.T @ wrench[3:],
                     contact.pos.copy(), sign * axes[0], np.array(contact.dist))
                )  # fmt: skip
    return sorted(rows, key=lambda row: -np.linalg.norm(row[0]))


def _warp_contacts(sim: Simulation, world: int, is_own, is_other):
    """The same by MuJoCo Warp's contact_force."""
    table = sim.contact_table([world])
    rows: list[tuple[np.ndarray, ...]] = []
    for k, (first, second) in enumerate(table.geom_ids.tolist()):
        force, torque, pos, normal = (
            part[k].double().numpy()
            for part in (
                table.force_w,
                table.torque_w,
                table.pos_w,
                table.frame_w[:, 0],
            )
        )
        distance = table.distance[k].double().numpy()
        for own, other, sign in ((second, first, 1.0), (first, second, -1.0)):
            if is_own(own) and is_other(other):
                rows.append((sign * force, sign * torque, pos, sign * normal, distance))
    return rows


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_forces_are_those_of_mj_contact_force(engine: str) -> None:
    """Net wrench, count and the strongest contacts of every kind of sensor."""
    source, sim = heap(3), heap(3, engine)
    stir(source, 1)
    tol = 1e-10 if engine == "native" else 2e-3
    seen = dict.fromkeys(CONTACTS, 0)
    for _ in range(4):
        source.step(40)
        sim.write_state(source.state)
        for name, sensor in sim.contacts.items():
            k = CONTACTS[name].strongest
            for e, element in enumerate(sensor.element_names):
                for w in range(3):
                    rows = _expected(sim, w, name, element)
                    seen[name] += len(rows)
                    assert sensor.count[w, e] == len(rows)
                    force = sum((r[0] for r in rows), np.zeros(3))
                    size = 1 + np.linalg.norm(force)
                    got = sensor.force_w[w, e].double().numpy()
                    assert np.abs(got - force).max() < tol * size
                    pos = sensor.pos_w[w, e].double().numpy()
                    torque = sum(
                        (r[1] + np.cross(r[2] - pos, r[0]) for r in rows), np.zeros(3)
                    )
                    got = sensor.torque_w[w, e].double().numpy()
                    assert np.abs(got - torque).max() < tol * size
                    found = sensor.strongest_found[w, e]
                    assert int(found.sum()) == min(k, len(rows))
                    normals = sensor.strongest_normal_force[w, e].double().numpy()
                    for j, row in enumerate(rows[:k]):
                        _compare_strongest(sensor, w, e, j, row, tol * size)
                        assert abs(normals[j] - row[0] @ row[3]) < tol * size
    assert min(seen.values()) > 5


def _compare_strongest(sensor, w, e, j, row, tol) -> None:
    """One contact; where two are equally strong, sizes alone can be compared."""
    force = sensor.strongest_force_w[w, e, j].double().numpy()
    assert abs(np.linalg.norm(force) - np.linalg.norm(row[0])) < tol
    pos = sensor.strongest_pos_w[w, e, j].double().numpy()
    if np.abs(pos - row[2]).max() > 1e-4:
        sizes = sensor.strongest_force_w[w, e].norm(dim=-1)
        assert ((sizes - sizes[j]).abs() < 10 * tol).sum() > 1 or tol > 1e-6
        return
    assert np.abs(force - row[0]).max() < tol
    for name, value in (("torque_w", row[1]), ("normal_w", row[3])):
        got = sensor.read(f"strongest_{name}")[w, e, j].double().numpy()
        assert np.abs(got - value).max() < tol
    distance = float(sensor.strongest_distance[w, e, j])
    assert abs(distance - float(row[4])) < tol
    tangential = np.linalg.norm(row[0] - (row[0] @ row[3]) * row[3])
    got = float(sensor.strongest_tangential_force[w, e, j])
    assert abs(got - tangential) < tol


def test_a_resting_robot_is_carried_by_its_weight(engine: str) -> None:
    """The sign of the force, in a contact that everyone knows."""
    sim = Simulation(
        SceneCfg(
            entities={"box": EntityCfg(model=ROCK), "other": EntityCfg(model=ROCK)},
            contacts={"box": ContactCfg(of="(box|other)/rock", against="ground")},
            ground=True,
            timestep=0.004,
        ),
        num_envs=2,
        engine=engine,
    )
    place = torch.tensor([[0.4, 0.1, 0.061], [-0.3, 0.2, 0.062]])
    for k, entity in enumerate(sim.scene.values()):
        pose = entity.data.root_link_pose_w.clone()
        pose[:, :3] = place + torch.tensor([0.0, 1.5 * k, 0.0])
        entity.write_root_link_pose_to_sim(pose)
    sim.step(350)
    sensor = sim.contacts["box"]
    weight = 1.3 * 9.81
    up = torch.tensor([0.0, 0.0, weight]).to(sensor.force_w)
    assert torch.allclose(sensor.force_w, up.expand(2, 2, 3), atol=2e-3)
    assert torch.allclose(sensor.normal_force, up[2].expand(2, 2), atol=2e-3)
    assert torch.allclose(sensor.normal_w[..., 2], torch.ones(2, 2).to(up))
    assert (sensor.tangential_force < 2e-3).all()
    assert sensor.found.all()
    assert (sensor.distance < 0).all()


PLANK = """<mujoco><worldbody><body name="plank" pos="0 0 0.31"><freejoint/>
<inertial pos="0.21 0 0" mass="2" diaginertia="0.01 0.3 0.3"/>
<geom type="box" size="0.6 0.1 0.02"/></body></worldbody></mujoco>"""
POSTS = """<mujoco><worldbody><body name="near" pos="-0.4 0 0.15">
<geom type="box" size="0.05 0.2 0.14"/></body><body name="far" pos="0.45 0 0.15">
<geom type="box" size="0.05 0.2 0.14"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("against", ["posts/.*", ["posts/near", "posts/far"], None])
def test_the_forces_of_posts_act_below_the_centre_of_mass(against) -> None:
    """Moments balance, whether the posts are one other side or two."""
    scene = SceneCfg(
        entities={"plank": EntityCfg(model=PLANK), "posts": EntityCfg(model=POSTS)},
        contacts={
            "plank": ContactCfg(of="plank/plank", against=against),
            "far": ContactCfg(of="plank/plank", against="posts/far"),
        },
        ground=False, timestep=0.002,
    )  # fmt: skip
    sim = Simulation(scene, 2)
    pose = sim.scene["plank"].data.root_link_pose_w.clone()
    pose[1, 0] += 0.05
    sim.scene["plank"].write_root_link_pose_to_sim(pose)
    sim.step(1500)
    sensor, com = sim.contacts["plank"], sim.scene["plank"].data.body_com_pos_w[:, 0]
    torch.testing.assert_close(sensor.pos_w[:, 0, :2], com[:, :2], atol=1e-3, rtol=0)
    torch.testing.assert_close(sensor.force_w[:, 0, 2], com[:, 2] * 0 + 2 * 9.81)
    assert float(sensor.torque_w.abs().max()) < 0.02
    share = (com[:, 0] + 0.4) / 0.85  # by the lever, between the middles of the posts
    far = sim.contacts["far"].force_w[:, 0, 2] / (2 * 9.81)
    torch.testing.assert_close(far, share, atol=0.06, rtol=0)
    assert float(far[1] - far[0]) > 0.04


def test_action_equals_reaction() -> None:
    """What a rock does to the walker is what the walker does to the rocks."""
    sim = Simulation(
        SceneCfg(
            entities={
                "one": EntityCfg(model=ROCK), "two": EntityCfg(model=ROCK)
            },
            contacts={
                "of_one": ContactCfg(of="one/rock", against="two/.*"),
                "of_two": ContactCfg(of="two/rock", against="one/rock"),
            },
            ground=False,
            timestep=0.002,
            gravity=(0, 0, 0),
        ),
        num_envs=3,
    )  # fmt: skip
    pose = sim.scene["two"].data.root_link_pose_w.clone()
    pose[:, 0] += torch.tensor([0.17, 0.165, 0.175])
    pose[:, 1] += 0.01
    sim.scene["two"].write_root_link_pose_to_sim(pose)
    one, two = sim.contacts["of_one"], sim.contacts["of_two"]
    assert (one.count == 1).all()
    assert (one.force_w.norm(dim=-1) > 1).all()
    assert torch.allclose(one.force_w, -two.force_w, rtol=1e-12)
    assert torch.allclose(one.normal_w, -two.normal_w, rtol=1e-12)
    assert torch.allclose(one.pos_w, two.pos_w, rtol=1e-12)


def test_clocks_history_and_the_greatest_force_see_every_time_step(
    engine: str,
) -> None:
    """As a loop of single steps that looks at the force after each of them."""
    many, single = heap(3, engine), heap(3, engine)
    for sim in (many, single):
        stir(sim, 5)
        sim.data.qvel[:, 2] -= 0.5
    dt = many.timestep
    feet, seen = many.contacts["feet"], single.contacts["feet"]
    air = np.zeros((3, 2))
    contact, last_air, last_contact = air.copy(), air.copy(), air.copy()
    touched_between = 0
    for _ in range(20):
        many.step(6)
        forces: list[np.ndarray] = []
        for _ in range(6):
            single.step()
            forces.append(seen.force_w.double().numpy().copy())
            touches = np.linalg.norm(forces[-1], axis=-1) > 0
            last_air = np.where(touches & (air > 0), air, last_air)
            last_contact = np.where(~touches & (contact > 0), contact, last_contact)
            air = np.where(touches, 0, air + dt)
            contact = np.where(touches, contact + dt, 0)
        greatest = np.linalg.norm(forces, axis=-1).max(axis=0)
        touched_between += ((greatest > 0) & (contact == 0)).sum()
        close = {"rtol": 1e-4, "atol": 1e-5}
        np.testing.assert_allclose(feet.greatest_force.double(), greatest, **close)
        np.testing.assert_allclose(feet.air_time.double(), air, **close)
        np.testing.assert_allclose(feet.contact_time.double(), contact, **close)
        np.testing.assert_allclose(feet.last_air_time.double(), last_air, **close)
        np.testing.assert_allclose(
            feet.last_contact_time.double(), last_contact, **close
        )
        past = np.stack(forces[:-4:-1], axis=1)
        np.testing.assert_allclose(feet.force_history_w.double(), past, **close)
        began = (contact > 0) & (contact < 6.5 * dt)
        assert (feet.first_contact(6 * dt).numpy() == began).all()
        left = (air > 0) & (air < 6.5 * dt)
        assert (feet.first_air(6 * dt).numpy() == left).all()
    assert torch.equal(many.state, single.state)
    assert touched_between > 0
    assert (last_air > 0).all()


def test_only_the_worlds_that_step_remember() -> None:
    """The others' clocks stand still."""
    sim = heap(4)
    stir(sim, 2)
    feet = sim.contacts["feet"]
    sim.step(30)
    before = {n: feet.read(n).clone() for n in feet.readings if "time" in n}
    before["greatest_force"] = feet.greatest_force.clone()
    sim.step(7, env_ids=[3, 1])
    for name, value in before.items():
        assert torch.equal(feet.read(name)[[0, 2]], value[[0, 2]])
    moved = (feet.air_time + feet.contact_time) - (
        before["air_time"] + before["contact_time"]
    )
    assert (moved[[1, 3]] != 0).all()


def test_memory_is_part_of_the_world() -> None:
    """Reset, snapshot, a step that is undone and a world that diverges."""
    sim = heap(3, on_divergence="mask")
    stir(sim, 3)
    feet = sim.contacts["feet"]
    names = [n for n, reading in feet.readings.items() if reading.live]
    assert len(names) == 6
    sim.step(50)
    snapshot = sim.snapshot()
    kept = {n: feet.read(n).clone() for n in names}
    sim.step(9)
    after = {n: feet.read(n).clone() for n in names}
    sim.restore(snapshot)
    for name in names:
        assert torch.equal(feet.read(name), kept[name])
    sim.step(9)
    for name in names:
        assert torch.equal(feet.read(name), after[name])
    sim.reset([2])
    for name in names:
        assert (feet.read(name)[2] == 0).all()
        assert torch.equal(feet.read(name)[:2], after[name][:2])
    sim.data.qvel[1, 3] = float("nan")
    sim.step(2)
    assert sim.diverged.tolist() == [False, True, False]
    for name in names:
        assert torch.equal(feet.read(name)[1], after[name][1])


def test_forces_are_of_the_state_that_the_contract_names() -> None:
    """After a step: of the state before it; after a write: of the present one."""
    sim = heap(2)
    stir(sim, 4)
    sim.step(45)
    feet = sim.contacts["feet"]
    sim.forward()
    now = feet.force_w.clone()
    sim.step()
    assert torch.equal(feet.force_w, now)
    stir(sim, 5)
    assert not torch.allclose(feet.force_w, now)
    expected = np.zeros((2, 2, 3))
    for w in range(2):
        for e, name in enumerate(feet.element_names):
            expected[w, e] = sum(r[0] for r in _expected(sim, w, "feet", name))
    np.testing.assert_allclose(feet.force_w, expected, atol=1e-9)


def test_reading_changes_nothing_that_is_remembered() -> None:
    """An evaluation outside of a step is not one of the step's."""
    one, two = heap(2), heap(2)
    for sim in (one, two):
        stir(sim, 6)
        sim.step(40)
    stir(one, 7)
    one.forward()
    _ = one.contacts["feet"].force_w
    greatest = one.contacts["feet"].greatest_force
    assert torch.equal(greatest, two.contacts["feet"].greatest_force)
    assert torch.equal(
        one.contacts["feet"].contact_time, two.contacts["feet"].contact_time
    )


def test_an_integrator_of_our_own_has_clocks_too() -> None:
    """RK4: the clocks go on once in a time step, whatever the stages."""
    scene = SceneCfg(
        entities={"rock": EntityCfg(model=ROCK)},
        contacts={"rock": ContactCfg(of="rock/rock", against="ground")},
        ground=True,
        timestep=0.001,
    )
    sim = Simulation(scene, num_envs=2, integrator=RK4())
    sim.data.qpos[:, 2] = torch.tensor([0.062, 0.066])
    rock = sim.contacts["rock"]
    for _ in range(6):
        sim.step(8)
    fall = torch.sqrt(2 * torch.tensor([[0.002], [0.006]]).double() / 9.81)
    assert (rock.contact_time > 0).all()
    assert (rock.greatest_force > 1).all()
    assert (rock.last_air_time - fall).abs().max() < 1.5e-3
    whole = rock.last_air_time + rock.contact_time
    assert torch.allclose(whole, torch.full((2, 1), 0.048).double())


def test_the_first_contact_is_in_the_time_steps_of_each_world() -> None:
    """13 time steps of 0.1 ms are longer than 1 ms, whatever the model's own are."""
    scene = SceneCfg(
        entities={"rock": EntityCfg(model=ROCK)},
        contacts={"rock": ContactCfg(of="rock/rock")},
        ground=True,
        timestep=0.002,
    )
    sim = Simulation(scene, num_envs=3)
    sim.data.qpos[:, 2] = 0.059
    sim.expand("opt.timestep")[:] = torch.tensor([0.0001, 0.002, 0.00005])
    sim.step(13)
    rock = sim.contacts["rock"]
    assert rock.found.all()
    assert rock.first_contact(0.001).flatten().tolist() == [False, False, True]
    assert rock.first_contact(0.0013).flatten().tolist() == [True, False, True]
    assert rock.first_contact(0.026).all()
    assert not rock.first_air(0.026).any()


def test_every_step_false_looks_at_the_last_time_step_alone() -> None:
    """The same forces and bits of the state; the clocks go on by n steps at once."""
    sims = []
    for every_step in (True, False):
        cfg = ContactCfg(of="rock/rock", every_step=every_step)
        scene = SceneCfg(
            entities={"rock": EntityCfg(model=ROCK)}, contacts={"rock": cfg},
            ground=True, timestep=0.004,
        )  # fmt: skip
        sims.append(Simulation(scene, num_envs=2))
    for sim in sims:
        sim.data.qpos[:, 2] = torch.tensor([0.3, 0.4])
        for _ in range(12):
            sim.step(5)
    assert torch.equal(sims[0].state, sims[1].state)
    one, two = (sim.contacts["rock"] for sim in sims)
    assert torch.equal(one.force_w, two.force_w)
    assert ((two.air_time / 0.02).round() * 0.02 - two.air_time).abs().max() < 1e-12


def test_what_cannot_be_measured_says_what_to_do() -> None:
    """Unknown names, a subtree against its own part, numbers that make no sense."""
    sim = heap(1)
    with raises(UnknownNameError, name="foot"):
        _ = sim.contacts["foot"]
    plain = Simulation(sim.model)
    with raises(UnknownNameError, name="feet"):
        _ = plain.contacts["feet"]
    with raises(InvalidInputError, name="force_w"):
        sim.contacts["feet"].force_w = 1.0
    sim.contacts["feet"].force_w[:] = 0.0
    with raises(InvalidInputError, name="force_w"):
        _ = sim.contacts["feet"].force_w
    for wrong in (0.0, -0.1, "soon", float("nan"), float("inf"), None, True):
        with raises(InvalidInputError, name="dt"):
            sim.contacts["feet"].first_contact(wrong)
    for cfg, error, name in (
        (ContactCfg(of="rock/rok"), UnknownNameError, "rock/rok"),
        (ContactCfg(of="rock/rock", against="rook/.*"), UnknownNameError, "rook/.*"),
        (
            ContactCfg(of="rock/rock", strongest=0),
            InvalidInputError,
            "strongest",
        ),
        (
            ContactCfg(of="rock/rock", threshold=-1.0),
            InvalidInputError,
            "threshold",
        ),
        (ContactCfg(of="rock/rock", kind="site"), UnknownNameError, "site"),  # pyright: ignore
        (
            ContactCfg(of="rock/rock", kind="subtree", against="rock/.*"),
            ModelError,
            "c",
        ),
    ):
        scene = SceneCfg(
            entities={"rock": EntityCfg(model=ROCK)}, contacts={"c": cfg}, ground=True,
            timestep=0.002,
        )  # fmt: skip
        with raises(error, name=name):
            Simulation(scene)
