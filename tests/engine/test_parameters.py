"""Per-world model parameters: live, of one world alone, and seen at the next read."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, StaleReadError, UnknownNameError

ACCURACY = {"native": 1e-12, "warp": 1e-4}


def assert_close(got, want, engine):
    if not isinstance(want, torch.Tensor):
        want = torch.as_tensor(np.array(want), dtype=got.dtype)
    limit = ACCURACY[engine]
    torch.testing.assert_close(got, want, rtol=limit, atol=limit)


def com_height(sim, trunk):
    return sim.data.subtree_com[:, trunk, 2].clone()


def lifted(sim):
    """Put the trunk out of the ground's reach, with its arm bent."""
    sim.data.qpos[:, 2] += 2.0
    sim.data.qpos[:, 7] = 0.4


@pytest.mark.parametrize(
    "name", ["body_mass", "body_ipos", "jnt_range", "geom_friction", "actuator_gainprm"]
)
def test_expand_gives_each_world_the_model_values(make_sim, engine, name):
    sim = make_sim(engine, num_envs=3)
    tensor = sim.expand(name)
    want = np.asarray(getattr(sim.model, name))
    assert tensor.shape == (3, *want.shape)
    assert tensor.dtype == sim.dtype
    for world in range(3):
        assert_close(tensor[world], want, engine)
    assert sim.expand(name).data_ptr() == tensor.data_ptr()


def test_expand_alone_changes_nothing(make_sim, engine, random_rows):
    plain, expanded = make_sim(engine, num_envs=2), make_sim(engine, num_envs=2)
    rows = random_rows(plain.model, 2, height=-0.35)
    for name in ("body_mass", "opt.gravity", "geom_friction", "jnt_range"):
        expanded.expand(name)
    for sim in (plain, expanded):
        sim.write_state(rows)
        sim.step(5)
    assert torch.equal(plain.state, expanded.state)


def test_an_unknown_parameter_is_refused_with_a_suggestion(make_sim, engine):
    sim = make_sim(engine)
    with raises(UnknownNameError, name="body_mas"):
        sim.expand("body_mas")
    with raises(UnknownNameError, name="opt.gravitty"):
        sim.expand("opt.gravitty")


def test_masses_of_one_world_move_it_alone(make_sim, engine):
    """Under a force F on a tree of mass M its COM accelerates at F/M − g."""
    sim, still = make_sim(engine, num_envs=3), make_sim(engine, num_envs=3)
    trunk = sim.model.body("trunk").id
    tree = [sim.model.body(name).id for name in ("trunk", "upper", "lower")]
    sim.expand("body_mass")[1, tree] *= 2.0
    sim.expand("body_inertia")[1, tree] *= 2.0
    sim.set_const()
    for each in (sim, still):
        lifted(each)
        each.data.xfrc_applied[:, trunk, 2] = 40.0
    start = com_height(sim, trunk)
    n, dt = 25, sim.timestep
    sim.step(n)
    still.step(n)
    mass = sim.model.body_subtreemass[trunk] * torch.tensor([1.0, 2.0, 1.0])
    rise = (40.0 / mass - 9.81) * dt**2 * n * (n + 1) / 2
    got = com_height(sim, trunk) - start
    torch.testing.assert_close(got, rise.to(sim.dtype), rtol=2e-3, atol=1e-5)
    assert torch.equal(sim.state[[0, 2]], still.state[[0, 2]])


def test_changed_masses_are_plain_mujoco(make_sim, random_rows, load_row):
    sim = make_sim(num_envs=3)
    rows = random_rows(sim.model, 3, height=-0.35)
    changed = copy.copy(sim.model)
    changed.body_mass[1] *= 3.0
    changed.body_ipos[2] += 0.02
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    sim.expand("body_mass")[2, 1] *= 3.0
    sim.expand("body_ipos")[2, 2] += 0.02
    sim.set_const([2])
    sim.write_state(rows)
    sim.step(10)
    for world, model in enumerate((sim.model, sim.model, changed)):
        data = load_row(model, rows[world])
        for _ in range(10):
            mujoco.mj_step(model, data)
        np.testing.assert_array_equal(sim.data.qpos[world], data.qpos)
        np.testing.assert_array_equal(sim.data.qvel[world], data.qvel)


@pytest.mark.parametrize("when", ["before", "after"])
def test_set_const_is_mj_setconst_in_the_selected_worlds(
    make_sim, engine, random_rows, when
):
    names = ("body_subtreemass", "dof_invweight0", "body_invweight0", "actuator_acc0")
    sim = make_sim(engine, num_envs=4)
    sim.write_state(random_rows(sim.model, 4))
    sim.step(2)
    before = sim.state.clone()
    old = {name: np.array(getattr(sim.model, name)) for name in names}
    changed = copy.copy(sim.model)
    changed.body_mass[1:3] *= (3.0, 0.5)
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    if when == "before":
        for name in names:
            sim.expand(name)
    mass = sim.expand("body_mass")
    mass[[1, 3], 1] *= 3.0
    mass[[1, 3], 2] *= 0.5
    sim.set_const([1, 3])
    assert torch.equal(sim.state, before)
    for name in names:
        got, new = sim.expand(name), getattr(changed, name)
        assert not np.allclose(old[name], new), name
        assert_close(got[[1, 3]], [new, new], engine)
        assert_close(got[[0, 2]], [old[name], old[name]], engine)


def test_set_const_keeps_derived_quantities_right(make_sim, engine, random_rows):
    sim = make_sim(engine, num_envs=3)
    sim.write_state(random_rows(sim.model, 3))
    before = {
        name: getattr(sim.data, name).clone() for name in ("xpos", "cvel", "ten_length")
    }
    sim.set_const([1])
    for name, want in before.items():
        got = getattr(sim.data, name)
        torch.testing.assert_close(got, want, rtol=0, atol=1e-5, msg=name)


def test_gravity_of_one_world(make_sim, engine):
    sim, still = make_sim(engine, num_envs=3), make_sim(engine, num_envs=3)
    data = sim.scene["model"].data
    for each in (sim, still):
        lifted(each)
    down = data.projected_gravity_b.clone()
    assert_close(down, [[0.0, 0.0, -1.0]] * 3, engine)
    sim.expand("opt.gravity")[1] = torch.tensor([0.0, 3.0, 4.0], dtype=sim.dtype)
    got = data.projected_gravity_b
    assert_close(got[1], [0.0, 0.6, 0.8], engine)
    assert torch.equal(got[[0, 2]], down[[0, 2]])
    trunk = sim.model.body("trunk").id
    start = sim.data.subtree_com[1, trunk].clone()
    sim.step(10)
    still.step(10)
    fall = sim.timestep**2 * 10 * 11 / 2
    moved = sim.data.subtree_com[1, trunk] - start
    want = torch.tensor([0.0, 3.0 * fall, 4.0 * fall], dtype=sim.dtype)
    torch.testing.assert_close(moved, want, rtol=0, atol=1e-4)
    assert torch.equal(sim.state[[0, 2]], still.state[[0, 2]])


def test_joint_range_of_one_world(make_sim, engine):
    sim = make_sim(engine, num_envs=2)
    data = sim.scene["model"].data
    elbow = sim.model.joint("elbow").id
    assert_close(data.joint_pos_limits[:, 0], [[-1.0, 1.2]] * 2, engine)
    limits = torch.tensor([-0.1, 0.3], dtype=sim.dtype)
    sim.expand("jnt_range")[1, elbow] = limits
    assert_close(data.joint_pos_limits[:, 0], [[-1.0, 1.2], [-0.1, 0.3]], engine)
    lifted(sim)
    sim.data.ctrl[:, 1] = 0.0
    sim.data.ctrl[:, 2] = 10.0  # pushes at 5 N·m against a 4 N·m/rad servo
    sim.step(60)
    elbow_pos = data.joint_pos[:, 0]
    assert 0.8 < float(elbow_pos[0]) < 1.4
    assert 0.2 < float(elbow_pos[1]) < 0.5


def test_friction_of_one_world(make_sim, engine):
    sim = make_sim(engine, num_envs=2)
    geoms = [sim.model.geom(name).id for name in ("ground", "trunk", "lower", "upper")]
    sim.expand("geom_friction")[1, geoms, 0] = 0.02
    sim.data.qpos[:, 2] = 0.06
    sim.data.qvel[:, 1] = 1.0
    sim.step(75)
    drift = sim.data.subtree_com[:, sim.model.body("trunk").id, 1]
    assert float(drift[1]) > 0.25  # at 1 m/s for 0.3 s, hardly slowed
    assert float(drift[0]) < 0.8 * float(drift[1])


def test_gain_of_one_world(make_sim, engine):
    sim = make_sim(engine, num_envs=2)
    push = sim.model.actuator("push").id
    sim.expand("actuator_gainprm")[1, push, 0] *= 3.0
    sim.data.ctrl[:, push] = 0.2
    sim.step()
    assert_close(sim.scene["model"].data.actuator_force[:, push], [0.2, 0.6], engine)


def test_a_write_to_a_parameter_is_seen_at_the_next_read(make_sim, engine):
    sim = make_sim(engine, num_envs=3)
    data = sim.scene["model"].data
    before = data.root_com_pos_w.clone()
    ipos = sim.expand("body_ipos")
    ipos[1, sim.model.body("trunk").id, 0] += 0.1
    moved = data.root_com_pos_w - before
    assert_close(moved, [[0, 0, 0], [0.1, 0, 0], [0, 0, 0]], engine)
    link = data.body_link_pos_w[:, 1].clone()
    sim.expand("body_pos")[2, sim.model.body("upper").id, 2] += 0.2
    moved = data.body_link_pos_w[:, 1] - link
    assert_close(moved, [[0, 0, 0], [0, 0, 0], [0, 0, 0.2]], engine)


def test_entity_mass_follows_the_parameter(make_sim, engine):
    sim = make_sim(engine, num_envs=2)
    data = sim.scene["model"].data
    before = data.body_mass.clone()
    sim.expand("body_mass")[1] *= 2.0
    assert_close(data.body_mass[0], before[0], engine)
    assert_close(data.body_mass[1], 2.0 * before[1], engine)


@pytest.mark.parametrize("after_set_const", [False, True])
def test_strict_names_the_parameter_that_was_written(make_sim, engine, after_set_const):
    sim = make_sim(engine, num_envs=2, freshness="strict")
    if after_set_const:
        sim.set_const()
    invweight = sim.expand("dof_invweight0")
    sim.forward()
    assert sim.data.qacc.isfinite().all()
    invweight[1] *= 2.0
    with raises(StaleReadError, name="qacc"):
        sim.data.qacc  # noqa: B018


def test_write_parameter_changes_some_worlds_and_leaves_the_rest_fresh(
    make_sim, engine, random_rows
):
    sim = make_sim(engine, freshness="strict")
    sim.expand("body_mass")
    sim.write_state(random_rows(sim.model, 4, seed=2))
    sim.step(2)
    force = sim.data.actuator_force.clone()
    sim.write_parameter("body_mass", [[1.0], [2.0]], [2], [3, 1])
    with raises(StaleReadError, name="xpos"):
        _ = sim.data.xpos
    mass = sim.expand("body_mass")
    assert mass[:, 2].tolist() == [
        pytest.approx(sim.model.body_mass[2]), 2.0,
        pytest.approx(sim.model.body_mass[2]), 1.0,
    ]  # fmt: skip
    assert_close(mass[:, 1], [sim.model.body_mass[1]] * 4, engine)
    sim.forward([1, 3])
    assert torch.equal(sim.data.actuator_force[[0, 2]], force[[0, 2]])


def test_set_const_of_some_worlds_leaves_the_rest_fresh(make_sim, engine, random_rows):
    sim = make_sim(engine)
    sim.write_state(random_rows(sim.model, 4, seed=2))
    sim.step(2)
    forces = sim.data.actuator_force.clone(), sim.data.qacc.clone()
    sim.write_parameter("body_mass", [[5.0]], [1], [2])
    sim.set_const([2])
    for now, before in zip(
        (sim.data.actuator_force, sim.data.qacc), forces, strict=True
    ):
        assert torch.equal(now[[0, 1, 3]], before[[0, 1, 3]])
    assert not torch.equal(sim.data.qacc[2], forces[1][2])


def test_bad_parameter_values_are_refused(make_sim):
    sim = make_sim()
    before = sim.expand("body_mass").clone()
    for values, elements, worlds, name in (
        ([[1.0, 2.0]], [1], [0], "body_mass"),
        ([[float("nan")]], [1], [0], "body_mass"),
        ([[1.0]], [99], [0], "element_ids"),
        ([[1.0]], [1], [4], "env_ids"),
    ):
        with raises(InvalidInputError, name=name):
            sim.write_parameter("body_mass", values, elements, worlds)
    assert torch.equal(sim.expand("body_mass"), before)


def test_a_parameter_without_elements_is_one_number_for_each_world(make_sim):
    """Drag by the density of the medium, in one world of two."""
    sim = make_sim("native", num_envs=2)
    with raises(InvalidInputError, name="opt.density"):
        sim.write_parameter("opt.density", torch.tensor([900.0]), [0], [1])
    assert "model/opt.density" not in sim.snapshot().slots
    sim.write_parameter("opt.density", torch.tensor([900.0]), None, [1])
    assert sim.expand("opt.density").tolist() == [0.0, 900.0]
    sim.data.qvel[:, 2] = -3.0
    sim.forward()
    passive = sim.data.qfrc_passive[:, 2]
    assert float(passive[0]) == 0.0
    assert float(passive[1]) > 0.0
