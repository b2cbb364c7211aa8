"""Terrain: heights as MuJoCo's rays find them, feet that stand on them."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import ContactCfg, EntityCfg, SceneCfg, Simulation
from simstate.base.errors import ModelError, SimStateError
from simstate.env import (
    CurriculumTermCfg,
    EventTermCfg,
    TerminationTermCfg,
    curricula,
    events,
    observations,
    tasks,
    terminations,
)
from simstate.env.env import Env
from simstate.env.env_cfg import ObservationTermCfg
from simstate.scene.terrain import (
    BOX_GENERATORS,
    GENERATORS,
    Boxes,
    Terrain,
    TerrainCfg,
)

pytestmark = pytest.mark.fast

KINDS = tuple(GENERATORS)
CFG = TerrainCfg(kinds=KINDS, columns=9, levels=3, size=4.0, border=1.0, seed=3)


@pytest.fixture(scope="module")
def terrain():
    return Terrain(CFG)


def alone(terrain):
    """The terrain without anything on it, as MuJoCo has it."""
    spec = mujoco.MjSpec()
    terrain.add_to(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def ray(model, data, x, y):
    """The height that a ray from above finds."""
    start, down = np.array([x, y, 5.0]), np.array([0.0, 0.0, -1.0])
    hit = np.zeros(1, np.int32)
    return 5.0 - mujoco.mj_ray(model, data, start, down, None, 1, -1, hit)


def test_heights_are_those_that_rays_find_everywhere(terrain):
    model, data = alone(terrain)
    rng = np.random.default_rng(1)
    x, y = terrain.half_size
    assert (x, y) == pytest.approx((7.0, 19.0))
    points = rng.uniform([-x, -y], [x, y], (2000, 2)) * 0.999
    found = [ray(model, data, *point) for point in points]
    heights = terrain.height_at(torch.as_tensor(points)).numpy()
    assert np.ptp(heights) > 1.0
    assert np.abs(heights - found).max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_tile_grows_harder_and_has_a_platform(terrain, kind):
    column, cells = KINDS.index(kind), 40
    tiles = [
        terrain.heights[
            10 + column * cells : 10 + (column + 1) * cells + 1,
            10 + level * cells : 10 + (level + 1) * cells + 1,
        ][1:-1, 1:-1]
        for level in range(3)
    ]
    rise = [np.ptp(tile) for tile in tiles]
    if kind == "gaps":
        rise = [(tile < -0.5).mean() for tile in tiles]
    if kind == "flat":
        assert rise == [0.0, 0.0, 0.0]
    else:
        assert rise[0] < rise[1] < rise[2]
    middle = tiles[2][14:25, 14:25]
    if kind not in ("rough", "waves"):
        assert np.ptp(middle) < 1e-9
    for level in range(3):
        x, y, z = terrain.origins[level, column]
        assert (x, y) == pytest.approx((4.0 * (level - 1), 4.0 * (column - 4)))
        assert z == pytest.approx(float(terrain.height_at(torch.tensor([x, y]))))


def test_tiles_meet_at_one_height_however_high_their_middles_are(terrain):
    cells, steep = 40, ("slope_up", "slope_down", "stairs_up", "stairs_down")
    for kind in KINDS:
        row = 10 + KINDS.index(kind) * cells
        tile = terrain.heights[row : row + cells + 1, 10 + 2 * cells :][:, : cells + 1]
        edge = tile[1:-1, -1]  # the end of the last level, which no other tile shares
        beside = terrain.heights[row + 1 : row + cells, 10 + 3 * cells + 1]
        assert beside == pytest.approx(0.0)
        size = {"rough": 0.09, "waves": 0.25, "boxes": 0.2}.get(kind, 1e-9)
        assert np.abs(edge).max() <= size
        middle = abs(terrain.origins[2, KINDS.index(kind), 2])
        assert (middle > 0.4) == (kind in steep)


def test_a_world_that_comes_to_the_end_of_the_terrain_is_reported(terrain):
    ends = TerminationTermCfg(
        terminations.terrain_out_of_bounds, params={"margin": 0.5}, time_out=True
    )
    env = Env(on_terrain(terminations={"away": ends}), num_envs=5)
    robot = env.scene["robot"]
    pose = robot.data.root_link_pose_w.clone()
    x, y = terrain.half_size
    pose[1:, :2] = torch.tensor(
        [[x - 0.6, 0.0], [0.4 - x, 0.0], [0.0, y - 0.4], [0.0, 0.6 - y]]
    )
    pose[1:, 2] = 0.3
    robot.write_root_link_pose_to_sim(pose)
    _, _, terminated, truncated, _ = env.step(torch.zeros(5, env.action_dim))
    assert truncated.tolist() == [False, False, True, True, False]
    assert not bool(terminated.any())
    flat = tasks.make_cfg("Quadruped-Velocity")
    flat.terminations["away"] = ends
    with raises(SimStateError, name="terrain"):
        Env(flat).step(torch.zeros(1, 12))


def towers(size, difficulty, rng):
    """Two boxes of one's own, of which one hangs in the air over the other."""
    high = 0.3 + difficulty
    return np.array(
        [[0.5, -0.4, 0.1, 0.4, 0.6, 0.1], [0.8, -0.2, high, 0.3, 0.2, 0.05]]
    )


BOXES = TerrainCfg(
    kinds=(*BOX_GENERATORS, "waves", Boxes(towers)),
    columns=5, levels=2, size=4.0, border=1.0, difficulty=(0.2, 0.9), seed=4,
)  # fmt: skip


@pytest.mark.parametrize(("difficulty", "highest"), [(0.0, 0.02), (1.0, 0.15)])
def test_boxes_of_a_field_are_as_high_as_documented(difficulty, highest):
    """Among some 400 boxes, the highest one is within 2 % of the limit."""
    boxes = BOX_GENERATORS["box_field"](10.0, difficulty, np.random.default_rng(5))
    top = boxes[:, 2] + boxes[:, 5]
    assert 0.98 * highest < top.max() <= highest
    assert top.min() < 0.15 * highest
    np.testing.assert_allclose(boxes[:, 2], boxes[:, 5])  # on the ground


@pytest.mark.parametrize(("difficulty", "rise"), [(0.0, 0.03), (1.0, 0.2)])
@pytest.mark.parametrize("kind", ["box_stairs_up", "box_stairs_down"])
def test_steps_of_boxes_are_as_high_as_documented(kind, difficulty, rise):
    boxes = BOX_GENERATORS[kind](6.0, difficulty, np.random.default_rng(5))
    tops = np.unique(np.round(boxes[:, 2] + boxes[:, 5], 9))
    assert len(tops) > 2
    np.testing.assert_allclose(tops, rise * np.arange(1, len(tops) + 1))


def tops(boxes, points):
    """The highest box over each point; 0 on level ground."""
    away = np.abs(points[:, None] - boxes[:, :2])
    under = (away <= boxes[:, 3:5] + 1e-9).all(-1)
    return np.where(under, boxes[:, 2] + boxes[:, 5], 0.0).max(axis=1)


@pytest.mark.parametrize(("kind", "sign"), [("up", 1), ("down", -1)])
def test_steps_of_boxes_are_squares_about_the_platform(kind, sign):
    """Nine steps of 0.3 m from the platform, 0.8 m from the middle, to the edge."""
    size, rise = 7.0, 0.03 + 0.17 * 0.5
    boxes = BOX_GENERATORS[f"box_stairs_{kind}"](size, 0.5, np.random.default_rng(0))
    points = np.random.default_rng(6).uniform(-size / 2, size / 2, (4000, 2))
    out = np.abs(points).max(axis=1)
    step = np.clip(np.ceil((out - 0.8) / 0.3), 0, None)
    want = rise * (step if sign > 0 else 9 - step)
    np.testing.assert_allclose(tops(boxes, points), want, atol=1e-12)


def test_boxes_of_a_field_stand_in_a_grid_around_the_platform():
    boxes = BOX_GENERATORS["box_field"](6.0, 0.5, np.random.default_rng(3))
    side = 0.45 * (np.arange(13) - 6)  # 13 boxes of 0.45 m in 6 m
    want = [(x, y) for x in side for y in side if max(abs(x), abs(y)) > 0.8 + 0.225]
    np.testing.assert_allclose(boxes[:, :2], want, atol=1e-12)
    np.testing.assert_allclose(boxes[:, 3:5], 0.225)


def test_heights_on_boxes_are_those_that_rays_find():
    terrain = Terrain(BOXES)
    model, data = alone(terrain)
    kinds = np.asarray(model.geom_type)
    assert (kinds == mujoco.mjtGeom.mjGEOM_BOX.value).sum() == len(terrain.boxes) > 80
    rng = np.random.default_rng(2)
    x, y = terrain.half_size
    points = rng.uniform([-x, -y], [x, y], (3000, 2)) * 0.999
    found = np.array([ray(model, data, *point) for point in points])
    heights = terrain.height_at(torch.as_tensor(points)).numpy()
    assert np.abs(heights - found).max() < 1e-6
    assert (found > 0.5).mean() > 0.03  # on boxes, not next to them
    for level in range(2):
        for column in range(5):
            x, y, z = terrain.origins[level, column]
            assert z == pytest.approx(ray(model, data, x, y), abs=1e-6)
    tops = terrain.origins[:, list(BOX_GENERATORS).index("box_stairs_down"), 2]
    # 4 steps next to a platform of 0.8 m in a tile of 4 m, of 6.4 and 18.3 cm each.
    assert tops == pytest.approx([4 * 0.064, 4 * 0.183])


BALL = """<mujoco><option timestep="0.005"/><worldbody><body name="ball" pos="0 0 0.3">
<freejoint/><geom size="0.1" mass="1.3" friction="0.9"/></body></worldbody></mujoco>"""


def test_feet_walk_over_every_kind_where_rays_find_the_ground(engine, terrain):
    sole = ContactCfg(of="ball/ball", against="ground", strongest=4)
    scene = SceneCfg(
        entities={"ball": EntityCfg(model=BALL)}, terrain=CFG, contacts={"sole": sole}
    )
    sim = Simulation(scene, 2 * len(KINDS), engine=engine)
    ball, feet = sim.scene["ball"], sim.contacts["sole"]
    origins = torch.as_tensor(terrain.origins[1]).repeat(2, 1).to(sim.dtype)
    pose, velocity = torch.zeros(2, 2 * len(KINDS), 7).to(sim.dtype)
    pose[:, :3], pose[:, 3] = origins, 1.0
    pose[:, 2] += 0.12
    velocity[: len(KINDS), 0], velocity[len(KINDS) :, 1] = 2.0, -1.5
    ball.write_root_link_pose_to_sim(pose)
    ball.write_root_link_velocity_to_sim(velocity[:, :6])
    model, data = alone(terrain)
    touched, gone = torch.zeros(2, 2 * len(KINDS))
    for _ in range(60):
        sim.step(4)
        found = feet.strongest_found[:, 0].cpu()
        points = feet.strongest_pos_w[:, 0].double().cpu()
        inside = feet.strongest_distance[:, 0].double().cpu().abs() / 2.0
        upward = feet.strongest_normal_w[:, 0, :, 2].double().cpu()
        missed = (points[..., 2] - terrain.height_at(points)) * upward
        assert bool((missed.abs() < inside + 1e-3)[found].all())
        touched += found.any(-1)
        away = (ball.data.root_link_pos_w - origins)[:, :2].norm(dim=1)
        gone = gone.maximum(away.float().cpu())
    for point in points[found]:
        height = float(terrain.height_at(point))
        assert ray(model, data, *point[:2]) == pytest.approx(height, abs=1e-6)
    assert float(gone.min()) > 0.7
    assert int(touched.min()) > 20


def test_feet_stand_on_boxes(engine):
    terrain = Terrain(BOXES)
    scene = SceneCfg(entities={"ball": EntityCfg(model=BALL)}, terrain=BOXES)
    sim = Simulation(scene, 6, engine=engine)
    ball = sim.scene["ball"]
    at = torch.tensor([[-2.0, -4.0], [2.0, -4.0], [-2.0, -7.0], [2.0, -9.2],
                       [3.125, -1.125], [-3.125, 1.125]], dtype=sim.dtype)  # fmt: skip
    under = terrain.height_at(at)
    pose = torch.zeros(6, 7, dtype=sim.dtype)
    pose[:, :2], pose[:, 2], pose[:, 3] = at, under + 0.12, 1.0
    ball.write_root_link_pose_to_sim(pose)
    sim.step(20)
    position = ball.data.root_link_pos_w.double()
    above = position[:, 2] - terrain.height_at(position)
    assert float((above - 0.1).abs().max()) < 0.02


def on_terrain(**parts):
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.scene = dataclasses.replace(cfg.scene, ground=None, terrain=CFG)
    cfg.events = {"place": cfg.events["place"]}
    for name, value in parts.items():
        setattr(cfg, name, value)
    return cfg


def test_worlds_stand_on_tiles_of_their_own_as_high_as_on_level_ground(terrain):
    env = Env(on_terrain(), num_envs=20, first_world=5)
    position = env.scene["robot"].data.root_link_pos_w
    ids = np.arange(5, 25)
    expected = terrain.origins[ids // 9 % 3, ids % 9]
    assert position[:, :2].numpy() == pytest.approx(expected[:, :2])
    level = tasks.make_cfg("Quadruped-Velocity")
    height = float(Env(level).scene["robot"].data.root_link_pos_w[0, 2])
    above = observations.base_height(env)[:, 0]
    assert above.tolist() == pytest.approx([height] * 20)
    for _ in range(3):
        _, _, terminated, _, _ = env.step(torch.zeros(20, env.action_dim))
        assert not bool(terminated.any())


def test_the_scan_turns_with_the_robot(terrain):
    cfg = on_terrain(
        events={
            "place": EventTermCfg(
                events.reset_root_state,
                params={"pose_range": {"yaw": (-3.0, 3.0), "x": (-1.5, 1.5)}},
                mode="reset",
            )
        }
    )
    cfg.observations["policy"].terms["scan"] = ObservationTermCfg(
        observations.terrain_scan, params={"size": (0.8, 0.4), "spacing": 0.2}
    )
    env = Env(cfg, num_envs=9, seed=2)
    found = observations.terrain_scan(env, size=(0.8, 0.4), spacing=0.2)
    assert found.shape == (9, 15)
    model, data = alone(terrain)
    robot = env.scene["robot"].data
    for world in range(9):
        x, y, z = robot.root_link_pos_w[world].tolist()
        turn = float(robot.heading_w[world])
        cos, sin = np.cos(turn), np.sin(turn)
        expected = [
            z - ray(model, data, x + cos * u - sin * v, y + sin * u + cos * v)
            for u in (-0.4, -0.2, 0.0, 0.2, 0.4)
            for v in (-0.2, 0.0, 0.2)
        ]
        assert found[world].tolist() == pytest.approx(expected, abs=1e-5)


def test_levels_follow_how_far_a_world_has_come():
    cfg = on_terrain(curricula={"levels": CurriculumTermCfg(curricula.terrain_levels)})
    env = Env(cfg, num_envs=27, seed=1)
    assert env.terrain.level.tolist() == [k // 9 % 3 for k in range(27)]
    env.step(torch.zeros(27, env.action_dim))
    robot = env.scene["robot"]
    pose = robot.data.root_link_pose_w.clone()
    pose[9:18, 0] += 1.8  # 0.45 of a tile
    pose[1:3, 0] += 1.0  # neither far nor near
    pose[18:, 1] -= 1.8
    robot.write_root_link_pose_to_sim(pose)
    _, extras = env.reset(env_ids=range(27))
    level = env.terrain.level
    assert level[9:18].tolist() == [2] * 9
    assert level[:9].tolist() == [0] * 9
    assert all(0 <= k <= 2 for k in level[18:].tolist())  # the last: drawn
    assert len(set(level[18:].tolist())) > 1
    assert extras["log"]["Curriculum/levels"] == pytest.approx(
        float(level.double().mean())
    )
    kept = env.snapshot()
    env.terrain.level[:] = 0
    env.restore(kept)
    assert env.terrain.level[9:18].tolist() == [2] * 9
    x = env.scene["robot"].data.root_link_pos_w[9:18, 0]
    assert x.tolist() == pytest.approx([4.0] * 9)


def flat(reach, difficulty, rng):
    return np.zeros(3)


def test_boxes_of_a_stored_array_are_the_same_in_each_tile():
    """The function returns one array each time, which must not be written to."""
    rows = np.array([[0.5, -0.3, 0.2, 0.4, 0.3, 0.2]])
    cfg = TerrainCfg(kinds=(Boxes(lambda *_: rows),), columns=2, levels=3, size=4.0)
    terrain = Terrain(cfg)
    centres = terrain.boxes[:, :2].reshape(2, 3, 2)  # column by column
    along = np.array([-4.0, 0.0, 4.0]) + 0.5
    assert np.allclose(centres[..., 0], along)
    assert np.allclose(centres[0, :, 1], -2.3)
    assert rows.tolist() == [[0.5, -0.3, 0.2, 0.4, 0.3, 0.2]]


NARROW = Boxes(lambda *_: np.ones((2, 5)))
FAR = Boxes(lambda *_: np.full((1, 6), 3.5))
LOW = Boxes(lambda *_: [[0, 0, -2, 1, 1, 1]])


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"kinds": ("flta",)}, "flta"),
        ({"levels": 0}, "levels"),
        ({"columns": 0}, "columns"),
        ({"resolution": 3.0}, "resolution"),
        ({"resolution": 2.001}, "resolution"),
        ({"resolution": 0.0}, "resolution"),
        ({"border": -0.1}, "border"),
        ({"border": float("nan")}, "border"),
        ({"border": float("inf")}, "border"),
        ({"kinds": ()}, "kinds"),
        ({"kinds": (flat,)}, flat),
        ({"kinds": (NARROW,)}, NARROW),
        ({"kinds": (FAR,)}, FAR),
        ({"kinds": (LOW,)}, LOW),
    ],
)
def test_bad_terrain_is_refused(changes, name):
    with raises(SimStateError, name=str(name)):
        Terrain(TerrainCfg(**changes))


def test_a_plane_and_a_terrain_are_too_much():
    scene = SceneCfg(entities={"ball": EntityCfg(model=BALL)}, ground=True, terrain=CFG)
    with raises(ModelError, name="ground"):
        Simulation(scene, 1)


def test_a_terrain_at_its_limits_is_taken():
    for changes in ({"border": 0.0}, {"border": 0.4}, {"resolution": 2.0}):
        Terrain(TerrainCfg(kinds=("flat", "waves"), levels=1, columns=2, **changes))


def heights(kind: str, difficulty: float) -> tuple[np.ndarray, np.ndarray]:
    """Heights of a tile of 8 m, points 5 cm apart, and the larger distance [m]."""
    points = np.linspace(-4.0, 4.0, 161)
    reach = np.stack(np.meshgrid(points, points, indexing="ij"))
    rng = np.random.default_rng(3)
    return GENERATORS[kind](reach, difficulty, rng), np.abs(reach).max(axis=0)


@pytest.mark.parametrize(("difficulty", "size"), [(0.0, 0.0), (1.0, 1.0)])
def test_heights_are_as_large_as_documented(difficulty, size):
    """Each kind at its least and at its greatest, by the numbers of its docstring."""

    def between(low: float, high: float) -> float:
        return low + (high - low) * size

    found, away = heights("rough", difficulty)
    assert np.abs(found).max() == pytest.approx(between(0.01, 0.08), rel=0.02)
    assert found.min() == pytest.approx(-between(0.01, 0.08), rel=0.02)
    inner = np.abs(np.diff(found[::4, ::4], axis=0)).max()  # points 0.2 m apart
    assert inner > 5 * np.abs(np.diff(found[:5, 0], n=2)).max()
    found, away = heights("waves", difficulty)
    assert found.max() == found[80, 80] == pytest.approx(between(0.03, 0.2))
    assert found.min() == pytest.approx(-between(0.03, 0.2))
    np.testing.assert_allclose(found[80, 40:], found[80, :121], atol=1e-12)  # 2 m
    found, away = heights("slope_up", difficulty)
    slope = np.tan(np.deg2rad(between(0.0, 22.918)))
    np.testing.assert_allclose(found, -slope * np.maximum(away - 0.8, 0), atol=1e-4)
    np.testing.assert_array_equal(heights("slope_down", difficulty)[0], -found)
    found, away = heights("stairs_up", difficulty)
    rise = between(0.03, 0.2)
    assert set(found[away <= 0.8]) == {0.0}
    np.testing.assert_allclose(found[(away > 0.82) & (away < 1.08)], rise)
    np.testing.assert_allclose(found[(away > 1.12) & (away < 1.38)], 2 * rise)
    np.testing.assert_array_equal(heights("stairs_down", difficulty)[0], -found)
    found, away = heights("boxes", difficulty)
    assert not found[away <= 0.8].any()
    highest = between(0.02, 0.15)
    assert 0.97 * highest < np.abs(found).max() <= highest
    squares = np.unique(np.floor(np.linspace(1.7, 4.0, 47) / 0.45))  # of 0.45 m
    assert len(np.unique(found[114:, 114:])) == len(squares) ** 2
    found, away = heights("gaps", difficulty)
    width = between(0.1, 0.7)
    edge = np.minimum(np.abs(away - 0.8), np.abs(away - 0.8 - width)) < 1e-9
    ditch = (away > 0.8) & (away < 0.8 + width)
    assert set(found[ditch & ~edge]) == {-1.0}
    assert not found[~ditch & ~edge].any()
    assert not heights("flat", difficulty)[0].any()
