"""What is drawn is where the bodies are, at the world's place in the grid."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pytest
import torch
from mjviser.conversions import merge_geoms
from tests.inside import (
    actions_of,
    draw_now,
    grounds_of,
    handles_of,
    labels_of,
    meshes_of,
    status_of,
    turns_from_z,
)
from tests.view.scenes import ROBOT, host, make_sim

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.entity.explanation import explain
from simstate.view.answer_label import element_label
from simstate.view.explain_view import body_text
from simstate.view.glb import to_glb
from simstate.view.grid import bounds, offsets, shown_worlds
from simstate.view.one_world import OneWorld
from simstate.view.shot import Sky
from simstate.view.surroundings import gradient
from simstate.view.viewer import Viewer


@pytest.fixture
def sim() -> Simulation:
    return make_sim(5)


@pytest.fixture
def viewer(sim: Simulation) -> Viewer:
    viewer = sim.view(port=0, worlds=4, playing=False)
    yield viewer
    viewer.close()


def meshes(viewer: Viewer) -> dict[tuple[int, int], list[np.ndarray]]:
    """Where each body of each world shown is drawn."""
    places: dict[tuple[int, int], list[np.ndarray]] = {}
    for mesh in meshes_of(viewer):
        if mesh.is_site:
            continue
        for k, one in enumerate(mesh.instances):
            world = viewer.picture.shown[one.row]
            pose = np.concatenate(
                [mesh.handle.batched_positions[k], mesh.handle.batched_wxyzs[k]]
            )
            places.setdefault((world, one.body), []).append(pose)
    return places


def test_bodies_are_drawn_at_their_places_in_the_grid(
    sim: Simulation, viewer: Viewer
) -> None:
    sim.step(7)
    draw_now(viewer)
    places = meshes(viewer)
    assert {world for world, _ in places} == {0, 1, 2, 3}
    for world in range(4):
        data = mujoco.MjData(sim.model)
        data.qpos[:] = host(sim.data.qpos[world])
        mujoco.mj_kinematics(sim.model, data)
        offset = viewer.picture.offsets[world]
        for name in ("robot/trunk", "robot/arm", "robot/hand"):
            body = sim.model.body(name).id
            (pose,) = places[world, body]
            np.testing.assert_allclose(pose[:3], data.xpos[body] + offset, atol=1e-5)
            assert abs(pose[3:] @ data.xquat[body]) == pytest.approx(1.0, abs=1e-6)
        (post,) = places[world, 0]  # what is fixed stands in every world
        np.testing.assert_allclose(post[:3], offset, atol=1e-6)


def test_values_of_forces_are_written_in_the_grid_unless_hidden(
    sim: Simulation, viewer: Viewer
) -> None:
    viewer.picture.look_at(2)
    viewer.picture.show_overlay("external wrenches", True)

    def written() -> list[tuple[str, tuple[float, ...]]]:
        draw_now(viewer)
        labels = labels_of(viewer, "external wrenches")
        return [(one.text, tuple(one.position)) for one in labels if one.visible]

    sizes = sim.scene["robot"].data.body_external_wrench[2, :, :3].norm(dim=1)
    texts = [text for text, _ in written()]
    assert len(texts) == 6  # a force and a torque of each body
    assert texts[::2] == [f"{size:.3g} N" for size in sizes.tolist()]
    pos = host(sim.scene["robot"].data.body_com_pos_w[2, 0])
    drawn = viewer.picture.seen().length_of_force(
        host(sim.scene["robot"].data.body_external_wrench[2, 0, :3])
    )
    tip = pos + drawn
    label = np.array(written()[0][1]) - viewer.picture.offsets[2]
    assert label[2] == pytest.approx(tip[2])
    assert 0.0 < np.linalg.norm(label - tip) < 0.5 * viewer.picture.size
    assert not is_in_trunk(sim, 2, label)
    assert is_in_trunk(sim, 2, tip)
    actions_of(viewer).write_values(False)
    assert written() == []
    actions_of(viewer).write_values(True)
    viewer.picture.show_overlay("external wrenches", False)
    assert written() == []


def is_in_trunk(sim: Simulation, world: int, place: np.ndarray) -> bool:
    """True if a place is within the trunk's box, as MuJoCo has it."""
    data = mujoco.MjData(sim.model)
    data.qpos[:] = host(sim.data.qpos[world])
    mujoco.mj_kinematics(sim.model, data)
    geom = sim.model.geom("robot/trunk").id
    local = data.geom_xmat[geom].reshape(3, 3).T @ (place - data.geom_xpos[geom])
    return bool((np.abs(local) < sim.model.geom_size[geom]).all())


def test_overlays_are_drawn_in_every_world_on_request(
    sim: Simulation, viewer: Viewer
) -> None:
    picture = viewer.picture
    picture.look_at(1)
    picture.show_overlay("link frames", True)

    def origins() -> np.ndarray:
        draw_now(viewer)
        return handles_of(viewer, "link frames")["axes"].batched_positions

    body = sim.scene["robot"].data.body_link_pos_w
    there = host(body[1]) + picture.offset
    np.testing.assert_allclose(origins(), there, atol=1e-6)
    actions_of(viewer).draw_everywhere(True)
    there = host(body[[0, 1, 2, 3]]) + picture.offsets[:, None]
    np.testing.assert_allclose(origins(), there.reshape(-1, 3), atol=1e-6)


def test_dark_mode_darkens_sky_and_floor(sim: Simulation, viewer: Viewer) -> None:
    (ground, _), *_ = grounds_of(viewer)
    bright = np.array(ground.plane_color)
    # Lines are darker on a bright floor, and brighter on a dark one.
    np.testing.assert_allclose(bright, 127.5, atol=1)
    np.testing.assert_allclose(ground.cell_color, 0.92 * bright, atol=1)
    np.testing.assert_allclose(ground.section_color, 0.8 * bright, atol=1)
    actions_of(viewer).set_dark(True)
    dim = np.array(ground.plane_color)
    np.testing.assert_allclose(dim, 0.44 * bright, atol=1)
    np.testing.assert_allclose(ground.cell_color, dim + 0.08 * (255 - dim), atol=1)
    np.testing.assert_allclose(ground.section_color, dim + 0.2 * (255 - dim), atol=1)
    assert gradient(Sky(), True).mean() < 0.4 * gradient(Sky(), False).mean()
    actions_of(viewer).show_worlds(2, 0.8)  # which makes new floors
    (ground, _), *_ = grounds_of(viewer)
    assert (np.array(ground.plane_color) < 0.6 * bright).all()


def test_the_grid_of_a_floor_has_cells_of_its_scene() -> None:
    """Half of the moving parts' size, as a power of ten; the floor's own sides."""
    for scale, cell, spacing in ((0.3, 0.1, 0.9), (3.0, 1.0, 9.0), (0.02, 0.01, 0.06)):
        text = f"""
        <mujoco><worldbody><geom type="plane" size="2 3 1" pos="0.1 0 -{scale}"
        quat="1 0.1 0 0"/><body><freejoint/><geom size="{scale}"/></body>
        </worldbody></mujoco>"""
        sim = Simulation(mujoco.MjModel.from_xml_string(text), 2)
        with sim.view(port=0, worlds=1, playing=False) as viewer:
            ((ground, _),) = grounds_of(viewer)
            size = viewer.picture.size
            assert size == pytest.approx(2 * np.sqrt(3) * scale / 1.8)
            assert viewer.picture.spacing == spacing  # 1.6 sizes, rounded
            assert ground.cell_size == pytest.approx(cell)
            assert ground.section_size == pytest.approx(5 * cell)
            assert (ground.width, ground.height) == (4.0, 6.0)
            assert not ground.infinite_grid
            np.testing.assert_allclose(ground.position, [0.1, 0.0, -scale])
            wanted = np.array([1.0, 0.1, 0.0, 0.0]) / np.sqrt(1.01)
            np.testing.assert_allclose(ground.wxyz, wanted, atol=1e-6)
            actions_of(viewer).show_worlds(2, 9.0 * scale)
            ((ground, _),) = grounds_of(viewer)
            assert ground.infinite_grid


def test_the_status_says_how_it_plays(viewer: Viewer) -> None:
    session = viewer.session
    assert "world 0, paused" in status_of(viewer)
    session.playing, session.reached = True, 0.62
    assert "world 0, playing, 0.62 × real time" in status_of(viewer)
    assert "speed" not in status_of(viewer)
    session.is_scripted, session.speed = True, 0.5
    assert status_of(viewer).endswith("playing, speed 0.5×")
    session.problem = "It ends."
    assert status_of(viewer).endswith("\n\n**It ends.**")


def test_a_trail_is_the_way_of_the_followed_body(
    sim: Simulation, viewer: Viewer
) -> None:
    viewer.picture.look_at(1)
    viewer.picture.show_overlay("trail", True)
    for followed, name in ((None, "robot/trunk"), ("robot/hand", "robot/hand")):
        body = sim.model.body(name).id
        viewer.picture.follow(None if followed is None else body)
        places = [host(sim.data.xpos[1, body])]
        for _ in range(3):
            sim.step(5)
            draw_now(viewer)
            draw_now(viewer)  # which adds nothing
            places.append(host(sim.data.xpos[1, body]))
        points = handles_of(viewer, "trail")["paths"].points
        wanted = np.array(places if len(points) == 3 else places[1:])
        wanted = wanted + viewer.picture.offset
        np.testing.assert_allclose(points[:, 0], wanted[:-1], atol=1e-6)
        np.testing.assert_allclose(points[:, 1], wanted[1:], atol=1e-6)


def test_the_camera_is_farther_off_for_more_worlds(viewer: Viewer) -> None:
    """Half as far again as the scene is large, whose sides grow by the spacing."""
    picture = viewer.picture
    for count, more in ((1, 0.0), (4, 0.7)):
        actions_of(viewer).show_worlds(count, 2.0)
        position, goal = picture.camera("corner")
        length = 1.5 * (picture.size + more * 2.0)
        direction = np.array([0.7, -0.7, 0.34])
        np.testing.assert_allclose(position - goal, length * direction)
        np.testing.assert_allclose(goal, picture.middle)


def test_meshes_are_dull_and_have_the_colours_of_their_geoms() -> None:
    """As they stand in the file that a page gets: linear light, no metal."""
    text = (
        "<mujoco><worldbody><body><freejoint/>"
        '<geom size="0.1" rgba="0.8 0.5 0.2 1"/>'
        '<geom size="0.1" pos="1 0 0" rgba="0.02 0.5 0.9 0.4"/>'
        "</body></worldbody></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(text)
    # From the definition of sRGB, by hand.
    wanted = {0: [154, 55, 8, 255], 1: [0, 55, 201, 102]}
    for geom, colour in wanted.items():
        data = to_glb(merge_geoms(model, [geom]))
        size = int.from_bytes(data[12:16], "little")
        tree = json.loads(data[20 : 20 + size])
        (primitive,) = tree["meshes"][0]["primitives"]
        material = tree["materials"][primitive["material"]]
        assert material["pbrMetallicRoughness"]["metallicFactor"] == 0.0
        assert (material.get("alphaMode") == "BLEND") == (geom == 1)

        accessor = tree["accessors"][primitive["attributes"]["COLOR_0"]]
        view = tree["bufferViews"][accessor["bufferView"]]
        begin = 20 + size + 8 + view.get("byteOffset", 0)
        rgba = np.frombuffer(data[begin : begin + 4], np.uint8)
        np.testing.assert_allclose(rgba.astype(int), colour, atol=2)


def test_worlds_in_one_place_share_what_is_fixed(
    sim: Simulation, viewer: Viewer
) -> None:
    viewer.picture.spacing = 0.0
    viewer.picture.place_worlds()
    fixed = [key for key in meshes(viewer) if key[1] == 0]
    assert fixed == [(0, 0)]


def test_a_world_with_its_own_looks_has_its_own_mesh(sim: Simulation) -> None:
    trunk = sim.model.geom("robot/trunk").id
    sim.expand("geom_size")[1, trunk] = torch.tensor([0.4, 0.3, 0.2]).to(sim.dtype)
    with sim.view(port=0, worlds=4, playing=False) as viewer:
        body = sim.model.body("robot/trunk").id
        drawn = [
            mesh
            for mesh in meshes_of(viewer)
            if not mesh.is_site and body in mesh.bodies
        ]
        rows = sorted(sorted(mesh.rows.tolist()) for mesh in drawn)
    assert rows == [[0, 2, 3], [1]]


def test_overlays_are_drawn_in_the_grid(sim: Simulation, viewer: Viewer) -> None:
    viewer.picture.look_at(2)
    viewer.picture.show_overlay("link frames", True)
    draw_now(viewer)
    handle = handles_of(viewer, "link frames")["axes"]
    expected = host(sim.scene["robot"].data.body_link_pos_w[2])
    np.testing.assert_allclose(
        handle.batched_positions, expected + viewer.picture.offsets[2], atol=1e-5
    )
    viewer.picture.show_overlay("link frames", False)
    assert not handle.visible


def test_a_world_beyond_those_shown_brings_its_own_block(
    sim: Simulation, viewer: Viewer
) -> None:
    viewer.picture.look_at(4)
    assert viewer.picture.shown == [1, 2, 3, 4]
    assert viewer.picture.offset.tolist() == viewer.picture.offsets[3].tolist()


def test_what_is_followed_stays_in_place(sim: Simulation, viewer: Viewer) -> None:
    viewer.picture.look_at(3)
    hand = sim.model.body("robot/hand").id
    viewer.picture.follow(hand)
    seen = []
    for _ in range(2):
        sim.step(5)
        draw_now(viewer)
        place = host(sim.data.xpos[3, hand]) + viewer.picture.offset
        seen.append(place + viewer.picture.moved)
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-9)
    viewer.picture.follow(None)
    assert viewer.picture.moved.tolist() == [0.0, 0.0, 0.0]


def test_the_model_of_the_simulation_is_not_touched(sim: Simulation) -> None:
    before = np.zeros(mujoco.mj_sizeModel(sim.model), np.uint8)
    after = np.zeros_like(before)
    mujoco.mj_saveModel(sim.model, None, before)
    state = sim.state.clone()
    with sim.view(port=0, playing=False) as viewer:
        viewer.run(0.05)
    mujoco.mj_saveModel(sim.model, None, after)
    assert bytes(before) == bytes(after)
    assert torch.equal(state, sim.state)


def test_the_grid_is_about_the_origin() -> None:
    places = offsets(6, 2.0)
    np.testing.assert_allclose(places.mean(0), 0.0, atol=1e-12)
    assert np.unique(places, axis=0).shape == (6, 3)
    assert sorted(np.unique(places[:, 0])) == [-2.0, 0.0, 2.0]
    assert offsets(1, 5.0).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("world", "count", "total", "shown"),
    [(0, 4, 9, (0, 4)), (5, 4, 9, (4, 8)), (8, 4, 9, (5, 9)), (1, 8, 3, (0, 3))],
)
def test_worlds_are_shown_in_blocks(
    world: int, count: int, total: int, shown: tuple[int, int]
) -> None:
    assert shown_worlds(world, count, total) == list(range(*shown))


def test_the_bounds_are_of_what_moves(sim: Simulation) -> None:
    low, high = bounds(OneWorld(sim, {}, 0, 1.0))
    trunk = host(sim.data.geom_xpos[0, sim.model.geom("robot/trunk").id])
    assert (low < trunk).all()
    assert (trunk < high).all()
    assert np.linalg.norm(high - low) < 2.0  # the post, a metre off, is not in


def test_arrows_point_where_their_vectors_do() -> None:
    directions = np.random.default_rng(0).normal(size=(50, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    directions[0] = (0.0, 0.0, -1.0)
    for quat, direction in zip(turns_from_z(directions), directions, strict=True):
        turned = np.zeros(3)
        mujoco.mju_rotVecQuat(turned, np.array([0.0, 0.0, 1.0]), quat)
        np.testing.assert_allclose(turned, direction, atol=1e-9)


def test_a_label_is_at_the_place_of_its_number(sim: Simulation) -> None:
    seen, known = OneWorld(sim, sim.rays, 3, 0.5), explain(sim)
    data = mujoco.MjData(sim.model)
    data.qpos[:] = host(sim.data.qpos[3])
    mujoco.mj_kinematics(sim.model, data)
    mujoco.mj_comPos(sim.model, data)
    for name in ("robot/arm", "robot/hand"):
        body = sim.model.body(name).id
        found = element_label(known, f"xfrc_applied[{body}][4]")(seen)
        assert found is not None
        text, place = found
        wrench = float(sim.data.xfrc_applied[3, body, 4])
        assert text.startswith(f"xfrc_applied[{body}][4] = {wrench:.4g} ")
        np.testing.assert_allclose(place, data.xipos[body], atol=1e-9)
    found = element_label(known, "ctrl[1]")(seen)
    assert found is not None
    wrist = sim.model.joint("robot/wrist").id
    np.testing.assert_allclose(found[1], data.xanchor[wrist], atol=1e-9)


def test_a_body_is_described_with_the_numbers_of_its_joints(small_model) -> None:
    """Seven and six of a free joint, four and three of a ball, one of a hinge."""
    sim = Simulation(small_model, 2)
    sim.data.qpos[1] += 0.01 * torch.arange(sim.model.nq).double()
    sim.data.qvel[1] = 0.1 * torch.arange(sim.model.nv).double()
    seen, known = OneWorld(sim, sim.rays, 1, 0.5), explain(sim)
    for name, joint, widths in (
        ("trunk", "root", (7, 6)), ("bob", "ball", (4, 3)), ("upper", "elbow", (1, 1)),
    ):  # fmt: skip
        text = body_text(seen, known, sim.model.body(name).id)
        assert "world 1" in text.splitlines()[0]
        lines = [line for line in text.splitlines() if line.startswith("- ")]
        found = sim.model.joint(joint)
        starts = int(found.qposadr[0]), int(found.dofadr[0])
        wanted = [
            (f"{field}[{i}]", float(getattr(sim.data, field)[1, i]))
            for field, at, width in zip(("qpos", "qvel"), starts, widths, strict=True)
            for i in range(at, at + width)
        ]
        assert len(lines) == len(wanted)
        for line, (label, value) in zip(lines, wanted, strict=True):
            assert line.startswith(f"- {label} = {value:.4g} ")
    assert "fixed in the world" in body_text(seen, known, 0)


def test_a_number_of_a_tendon_has_no_label() -> None:
    model = ROBOT.replace('joint="wrist" gear', 'tendon="cord" gear')
    entities = {"robot": EntityCfg(model=model)}
    sim = Simulation(SceneCfg(entities=entities, ground=None, timestep=None), 2)
    seen = OneWorld(sim, sim.rays, 1, 0.5)
    assert element_label(explain(sim), "ctrl[0]")(seen) is not None
    assert element_label(explain(sim), "ctrl[1]")(seen) is None
