"""Overlays sit where MuJoCo's own functions say, in the world that is shown."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.view.scenes import REACH, ROBOT, host, make_sim

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.view.body_overlays import box_of_inertia
from simstate.view.one_world import OneWorld
from simstate.view.overlays import OVERLAYS
from simstate.view.shapes import (
    MOST_LABELS,
    ORANGE,
    RED,
    Arrow,
    Axes,
    Box,
    Label,
    Path,
    Point,
    Shape,
    labels_of,
)

WORLD = 2
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value
BODIES = ("robot/trunk", "robot/arm", "robot/hand")


@pytest.fixture(scope="module")
def sim() -> Simulation:
    sim = make_sim()
    sim.step(150)
    mass = sim.expand("body_mass")
    mass[WORLD] *= 1.7  # a parameter that the other worlds do not have
    sim.expand("body_inertia")[WORLD] *= 2.1
    return sim


@pytest.fixture(scope="module")
def truth(sim: Simulation) -> tuple[Any, Any]:
    """The world shown, computed by MuJoCo alone from its state and parameters."""
    model = copy.copy(sim.model)
    model.body_mass[:] = host(sim.expand("body_mass")[WORLD])
    model.body_inertia[:] = host(sim.expand("body_inertia")[WORLD])
    kept = mujoco.MjData(model)
    mujoco.mj_setConst(model, kept)
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, host(sim.state[WORLD]), _STATE)
    mujoco.mj_forward(model, data)
    return model, data


def shapes(sim: Simulation, name: str, kind: type[Any]) -> list[Any]:
    seen = OneWorld(sim, sim.rays, WORLD, 0.5)
    drawn: list[Shape] = OVERLAYS[name].draw(seen)
    return [one for one in drawn if isinstance(one, kind)]


def ids(model: Any) -> list[int]:
    return [model.body(name).id for name in BODIES]


def test_link_frames_are_where_the_bodies_are(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    axes = shapes(sim, "link frames", Axes)
    assert len(axes) == 3
    for one, body, name in zip(axes, ids(model), BODIES, strict=True):
        np.testing.assert_allclose(one.pos, data.xpos[body], atol=1e-12)
        assert abs(one.quat @ data.xquat[body]) == pytest.approx(1.0, abs=1e-12)
        assert name in one.text


def test_com_frames_are_the_principal_axes(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    for one, body in zip(shapes(sim, "COM frames", Axes), ids(model), strict=True):
        np.testing.assert_allclose(one.pos, data.xipos[body], atol=1e-12)
        turned = np.zeros(9)
        mujoco.mju_quat2Mat(turned, one.quat)
        np.testing.assert_allclose(turned, data.ximat[body], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "at", "moves_with_com"),
    [("link velocities", "xpos", False), ("COM velocities", "xipos", True)],
)
def test_velocity_arrows_are_at_their_points(
    sim: Simulation, truth: tuple[Any, Any], name: str, at: str, moves_with_com: bool
) -> None:
    model, data = truth
    arrows = shapes(sim, name, Arrow)
    kind = mujoco.mjtObj.mjOBJ_BODY if moves_with_com else mujoco.mjtObj.mjOBJ_XBODY
    for one, body in zip(arrows, ids(model), strict=True):
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, kind.value, body, velocity, 0)
        np.testing.assert_allclose(one.start, getattr(data, at)[body], atol=1e-12)
        np.testing.assert_allclose(one.vector, 0.3 * velocity[3:], atol=1e-9)


def test_angular_velocity_arrows(sim: Simulation, truth: tuple[Any, Any]) -> None:
    model, data = truth
    kind = mujoco.mjtObj.mjOBJ_XBODY.value
    for one, body in zip(
        shapes(sim, "angular velocities", Arrow), ids(model), strict=True
    ):
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, kind, body, velocity, 0)
        np.testing.assert_allclose(one.vector, 0.1 * 0.5 * velocity[:3], atol=1e-9)


def test_contacts_have_the_forces_of_this_world(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    points = shapes(sim, "contacts", Point)
    arrows = [a for a in shapes(sim, "contacts", Arrow) if "force" in a.text]
    assert len(points) == data.ncon > 1
    found = {tuple(np.round(a.start, 9)): a.vector for a in arrows}
    weight = model.body_mass[ids(model)].sum() * 9.81
    for k in range(data.ncon):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, force)
        force_w = data.contact[k].frame.reshape(3, 3).T @ force[:3]
        drawn = found[tuple(np.round(data.contact[k].pos, 9))]
        np.testing.assert_allclose(drawn, force_w * 0.5 / weight, rtol=1e-5)


def test_contact_forces_have_their_values_at_their_tips(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    labels = shapes(sim, "contacts", Label)
    arrows = [a for a in shapes(sim, "contacts", Arrow) if "force" in a.text]
    assert len(labels) == len(arrows) > 1
    sizes: list[float] = []
    for k in range(data.ncon):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, force)
        sizes.append(float(np.linalg.norm(force[:3])))
    assert sorted(one.text for one in labels) == sorted(f"{x:.3g} N" for x in sizes)
    for label, arrow in zip(labels, arrows, strict=True):
        np.testing.assert_allclose(label.pos, arrow.start + arrow.vector, atol=1e-12)


def test_of_many_values_the_greatest_are_written() -> None:
    sizes = np.random.default_rng(2).permutation(3 * MOST_LABELS).astype(float)
    many = [Label(np.ones(3), size, f"{size:g} N") for size in sizes]
    drawn = labels_of([*many, Label(np.full(3, np.nan), 1e9, "bad")])
    assert len(drawn) == MOST_LABELS
    assert {one.weight for one in drawn} == set(sorted(sizes)[-MOST_LABELS:])


def test_wrenches_have_their_values(sim: Simulation, truth: tuple[Any, Any]) -> None:
    model, data = truth
    found = {one.text for one in shapes(sim, "external wrenches", Label)}
    for body in ids(model):
        force, torque = data.xfrc_applied[body, :3], data.xfrc_applied[body, 3:]
        assert f"{np.linalg.norm(force):.3g} N" in found
        assert f"{np.linalg.norm(torque):.3g} N·m" in found


def test_wrenches_are_at_the_centres_of_mass(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    arrows = [a for a in shapes(sim, "external wrenches", Arrow) if "force" in a.text]
    for one, body in zip(arrows, ids(model), strict=True):
        np.testing.assert_allclose(one.start, data.xipos[body], atol=1e-12)
        force = data.xfrc_applied[body, :3]
        cosine = one.vector @ force / np.linalg.norm(one.vector) / np.linalg.norm(force)
        assert cosine == pytest.approx(1.0)


def test_joints_turn_red_at_their_limits(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    shown = {a.text.split(":")[0]: a for a in shapes(sim, "joints", Arrow)}
    for name in ("robot/shoulder", "robot/wrist"):
        joint = model.joint(name).id
        np.testing.assert_allclose(shown[name].start, data.xanchor[joint], atol=1e-12)
        along = shown[name].vector / np.linalg.norm(shown[name].vector)
        np.testing.assert_allclose(along, data.xaxis[joint], atol=1e-9)
    robot = sim.scene["robot"]
    before = sim.snapshot()
    robot.write_joint_position_to_sim([[0.0, 0.0]], env_ids=[WORLD])
    inside = {a.text.split(":")[0]: a.colour for a in shapes(sim, "joints", Arrow)}
    robot.write_joint_position_to_sim([[0.899, 0.0]], env_ids=[WORLD])
    outside = {a.text.split(":")[0]: a.colour for a in shapes(sim, "joints", Arrow)}
    sim.restore(before)
    assert inside["robot/shoulder"] != outside["robot/shoulder"]
    assert inside["robot/wrist"] == outside["robot/wrist"]
    assert inside["robot/shoulder"] == ORANGE
    assert outside["robot/shoulder"] == RED


def test_the_range_of_a_joint_ends_where_its_limits_bring_it(sim: Simulation) -> None:
    """The mark on a hinge's arc is at its ends when the joint is at its limits."""
    robot = sim.scene["robot"]
    before = sim.snapshot()
    names = ("robot/shoulder", "robot/wrist")
    limits = sim.model.jnt_range[[sim.model.joint(name).id for name in names]]

    def mark(name: str) -> np.ndarray:
        drawn = shapes(sim, "joints", Point)
        own = [p for p in drawn if p.text.startswith(name) and "limit" not in p.text]
        return own[0].pos

    robot.write_joint_position_to_sim([[0.3, 0.02]], env_ids=[WORLD])
    shoulder, wrist = shapes(sim, "joints", Path)
    for k in (0, -1):
        robot.write_joint_position_to_sim(limits[None, :, k], env_ids=[WORLD])
        np.testing.assert_allclose(
            shoulder.points[k], mark("robot/shoulder"), atol=1e-9
        )
    length = np.linalg.norm(wrist.points[1] - wrist.points[0])
    assert length == pytest.approx(0.13)
    assert np.linalg.norm(shoulder.points[0] - shoulder.points[-1]) > 1e-4
    sim.restore(before)


def test_targets_are_where_the_joint_would_bring_the_link(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    (way,) = shapes(sim, "targets", Path)  # the wrist has a motor, and no target
    (end,) = shapes(sim, "targets", Point)
    assert "robot/shoulder" in way.text
    arm = model.body("robot/arm").id
    np.testing.assert_allclose(way.points[0], data.xipos[arm], atol=1e-12)
    there = mujoco.MjData(model)
    there.qpos[:] = data.qpos
    joint = model.joint("robot/shoulder")
    there.qpos[joint.qposadr[0]] = data.ctrl[model.actuator("robot/shoulder").id]
    assert abs(there.qpos - data.qpos).max() > 0.1
    mujoco.mj_kinematics(model, there)
    np.testing.assert_allclose(way.points[-1], there.xipos[arm], atol=1e-9)
    np.testing.assert_allclose(end.pos, way.points[-1])


def test_the_target_of_a_slide_is_along_it() -> None:
    text = ROBOT.replace(
        '<motor name="wrist" joint="wrist" gear="3"',
        '<position name="wrist" joint="wrist" kp="9"',
    )
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model=text)}), 3)
    sim.scene["robot"].write_joint_position_to_sim([[0.3, 0.02]], env_ids=[WORLD])
    sim.scene["robot"].set_joint_position_target([[0.3, 0.07]], env_ids=[WORLD])
    (way,) = [p for p in shapes(sim, "targets", Path) if "wrist" in p.text]
    sim.scene["robot"].write_joint_position_to_sim([[0.3, 0.07]], env_ids=[WORLD])
    hand = host(sim.scene["robot"].data.body_com_pos_w[WORLD, 2])
    np.testing.assert_allclose(way.points[-1], hand, atol=1e-9)


def test_rays_end_where_they_hit(sim: Simulation, truth: tuple[Any, Any]) -> None:
    model, data = truth
    paths = shapes(sim, "rays", Path)
    hits = shapes(sim, "rays", Point)
    assert len(paths) == sim.rays["down"].num_rays > len(hits) > 0
    for one in paths:
        way = one.points[1] - one.points[0]
        length = float(np.linalg.norm(way))
        start = one.points[0]  # within the robot, whose own geoms are left out
        floor = model.geom("place/floor").id
        distance = mujoco.mju_rayGeom(
            data.geom_xpos[floor], data.geom_xmat[floor], model.geom_size[floor],
            start, way / length, mujoco.mjtGeom.mjGEOM_PLANE.value,
        )  # fmt: skip
        expected = distance if 0 <= distance <= REACH else REACH
        assert length == pytest.approx(expected, abs=1e-9)


def test_tendons_go_from_site_to_site(sim: Simulation, truth: tuple[Any, Any]) -> None:
    model, data = truth
    (cord,) = shapes(sim, "tendons", Path)
    ends = data.site_xpos[[model.site("robot/mount").id, model.site("robot/tip").id]]
    np.testing.assert_allclose(cord.points, ends, atol=1e-12)


def test_tendons_without_a_path_are_not_drawn() -> None:
    text = ROBOT.replace(
        "</tendon>",
        '<fixed name="sum"><joint joint="shoulder" coef="1"/></fixed></tendon>',
    )
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model=text)}), 3)
    (cord,) = shapes(sim, "tendons", Path)
    assert "robot/cord" in cord.text
    length = float(sim.data.ten_length[WORLD, sim.model.tendon("robot/cord").id])
    assert f"{length:.4g} m long" in cord.text


def test_inertia_boxes_are_of_this_world(
    sim: Simulation, truth: tuple[Any, Any]
) -> None:
    model, data = truth
    for one, body in zip(shapes(sim, "inertia", Box), ids(model), strict=True):
        np.testing.assert_allclose(one.pos, data.xipos[body], atol=1e-12)
        x, y, z = 2.0 * one.half
        mass = model.body_mass[body]
        moments = mass / 12.0 * np.array([y**2 + z**2, x**2 + z**2, x**2 + y**2])
        np.testing.assert_allclose(moments, model.body_inertia[body], rtol=1e-9)


def test_the_box_of_a_box_is_the_box() -> None:
    half = np.array([0.3, 0.1, 0.2])
    x, y, z = 2.0 * half
    moments = 4.0 / 12.0 * np.array([y**2 + z**2, x**2 + z**2, x**2 + y**2])
    np.testing.assert_allclose(box_of_inertia(4.0, moments), half)


def test_an_overlay_of_another_world_differs(sim: Simulation) -> None:
    for name, overlay in OVERLAYS.items():
        here = overlay.draw(OneWorld(sim, sim.rays, WORLD, 0.5))
        there = overlay.draw(OneWorld(sim, sim.rays, 1, 0.5))
        assert [one.text for one in here] != [one.text for one in there] or any(
            not np.allclose(value, vars(other)[key])
            for one, other in zip(here, there, strict=True)
            for key, value in vars(one).items()
            if isinstance(value, np.ndarray)
        ), name


def test_targets_far_away_or_without_a_number_are_drawn_in_bounds():
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model="arm")}))
    robot = sim.scene["robot"]
    robot.set_joint_position_target(torch.full((1, robot.num_joints), 1e7).double())
    assert sim.render(0, overlays=["targets"], width=64, height=48).any()
    sim.data.qpos[0, 0] = float("nan")
    assert sim.render(0, overlays=["targets"], width=64, height=48).shape == (48, 64, 3)
