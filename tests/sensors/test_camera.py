"""Cameras: what they show is where their matrices say, and never stale."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import (
    CameraCfg,
    EntityCfg,
    InitialStateCfg,
    InvalidInputError,
    SceneCfg,
    SimStateError,
    Simulation,
    StaleReadError,
    UnknownNameError,
)
from simstate.data.replay import replay
from simstate.math import quaternion
from simstate.record import Recording
from simstate.sensors import ray_tracer
from simstate.sensors.ray_tracer import Renderer
from simstate.study import oracles

NUM_ENVS = 3
NUM_MARKS = 90
RADIUS = 0.06

RIG = """
<mujoco model="rig">
  <worldbody>
    <light pos="0 0 3" dir="0 0 -1"/>
    <body name="rig" pos="0 0 0.05">
      <freejoint name="root"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
      <camera name="eye" pos=".1 .02 .05" quat=".6 .5 -.4 .3" fovy="50"/>
      <camera name="lens" pos="-.1 0 .1" quat=".7 -.1 .6 .3" resolution="100 60"
              sensorsize=".010 .006" focal=".008 .007" principal=".001 -.0005"/>
    </body>
  </worldbody>
</mujoco>
"""

BALL = """
<mujoco model="ball">
  <worldbody>
    <body name="ball" pos="1.2 0 0">
      <freejoint name="root"/>
      <geom name="ball" size=".15" mass="1" rgba="1 0 0 1"/>
    </body>
  </worldbody>
</mujoco>
"""


def mark_places() -> np.ndarray:
    """Points all around the origin, at different distances; (marks, 3)."""
    k = np.arange(NUM_MARKS) + 0.5
    height = 1 - 2 * k / NUM_MARKS
    turn = np.pi * (1 + 5**0.5) * k
    side = np.sqrt(1 - height**2)
    directions = np.stack([side * np.cos(turn), side * np.sin(turn), height], axis=-1)
    return directions * (2.0 + 0.5 * np.sin(7.0 * k))[:, None]


def marks() -> str:
    geoms = "".join(
        f'<geom name="m{k}" type="sphere" size="{RADIUS}" pos="{x} {y} {z}" '
        'contype="0" conaffinity="0"/>'
        for k, (x, y, z) in enumerate(mark_places())
    )
    return f'<mujoco><worldbody><body name="sky">{geoms}</body></worldbody></mujoco>'


CAMERAS = {
    "front": CameraCfg(
        pos=(-0.1, 0.1, 0.05), look_at=(1.2, 0.0, 0.0), width=96, height=72
    ),
    "pinhole": CameraCfg(
        pos=(0.1, 0.0, 0.1), look_at=(-1.0, 2.0, 0.5),
        width=120, height=80, intrinsic=(90.0, 70.0, 35.0, 55.5),
    ),
    "tall": CameraCfg(
        pos=(0.0, -0.1, 0.0), rot=(0.3, 0.8, -0.4, 0.2),
        width=60, height=110, fovy=70.0,
    ),
    "mounted": CameraCfg(
        body="rig/rig", pos=(0.05, 0.1, 0.0), look_at=(1.0, 0.3, 0.4),
        width=90, height=70, fovy=60.0,
    ),
    "own": CameraCfg(camera="rig/eye", width=90, height=64),
    "lens": CameraCfg(camera="rig/lens", width=100, height=60),
    "along_y": CameraCfg(
        pos=(1.0, 2.0, 3.0), look_at=(1.0, 5.0, 3.0), width=8, height=6, fovy=90.0
    ),
}  # fmt: skip
SHOWN = ("front", "pinhole", "tall", "mounted", "own", "lens")


def scene(**changes) -> SceneCfg:
    parts = {
        "entities": {
            "rig": EntityCfg(model=RIG),
            "ball": EntityCfg(model=BALL),
            "marks": EntityCfg(model=marks()),
        },
        "cameras": CAMERAS,
        "ground": False,
        "gravity": (0.0, 0.0, 0.0),
    }
    return SceneCfg(**{**parts, **changes})


@pytest.fixture(scope="module")
def sims() -> dict[str, Simulation]:
    """One simulation per engine, made when asked for."""
    return {}


@pytest.fixture
def sim(engine, sims) -> Simulation:
    """Three worlds at rest, on both engines."""
    if engine not in sims:
        sims[engine] = Simulation(scene(), NUM_ENVS, engine=engine)
    sims[engine].reset()
    return sims[engine]


@pytest.fixture
def rendered(monkeypatch) -> list[Renderer]:
    """Every rendering from now on."""
    calls: list[Renderer] = []
    correct = Renderer.render

    def render(self, rgb):
        calls.append(self)
        return correct(self, rgb)

    monkeypatch.setattr(Renderer, "render", render)
    return calls


def scatter(sim: Simulation, seed: int) -> None:
    """Turn the rig at random near the middle, put the ball away behind the marks."""
    rng = np.random.default_rng(seed)
    pose = rng.normal(size=(sim.num_envs, 7))
    pose[:, :3] *= 0.05
    sim.scene["rig"].write_root_link_pose_to_sim(pose)
    place = [[0.0, 0.0, -9.0, 1.0, 0.0, 0.0, 0.0]]
    sim.scene["ball"].write_root_link_pose_to_sim(place)


def put_ball(sim: Simulation, *places: tuple[float, float, float]) -> None:
    """Put the ball of each world somewhere."""
    poses = [[*place, 1.0, 0.0, 0.0, 0.0] for place in places]
    sim.scene["ball"].write_root_link_pose_to_sim(poses)


def predictions(sim: Simulation, name: str, world: int):
    """Of each mark well within the image: its id, u, v, z and distance."""
    camera = sim.cameras[name]
    extrinsic = camera.extrinsic[world].double().numpy()
    intrinsic = camera.intrinsic[world].double().numpy()
    border = 6.0
    for k, place in enumerate(mark_places()):
        point = (extrinsic @ [*place, 1.0])[:3]
        if point[2] <= 0.1:
            continue
        u, v, one = intrinsic @ point / point[2]
        assert one == pytest.approx(1.0)
        if border < u < camera.width - border and border < v < camera.height - border:
            yield k, u, v, point[2], float(np.linalg.norm(point))


# Geometry against images.


@pytest.mark.parametrize("name", SHOWN)
def test_points_fall_on_the_predicted_pixels(sim, name):
    seen = 0
    for seed in (0, 1):
        scatter(sim, seed)
        segmentation = sim.cameras[name].segmentation
        for world in range(NUM_ENVS):
            for k, u, v, *_ in predictions(sim, name, world):
                geom = sim.model.geom(f"marks/m{k}").id
                rows, columns = np.nonzero(segmentation[world].numpy() == geom)
                assert len(rows), f"mark {k} should be at ({u:.1f}, {v:.1f})"
                centre = columns.mean() + 0.5, rows.mean() + 0.5
                assert abs(centre[0] - u) < 0.6, (k, centre, u, v)
                assert abs(centre[1] - v) < 0.6, (k, centre, u, v)
                seen += 1
    assert seen >= 12, f"{seen} marks are too few to tell"


@pytest.mark.parametrize("name", SHOWN)
def test_depth_is_metres_along_the_optical_axis(sim, name):
    slanted = 0
    for seed in (0, 1):
        scatter(sim, seed)
        depth = sim.cameras[name].depth
        for world in range(NUM_ENVS):
            for k, u, v, z, distance in predictions(sim, name, world):
                want = z * (1 - RADIUS / distance)
                got = float(depth[world, int(v), int(u)])
                assert got == pytest.approx(want, rel=0.01), k
                slanted += distance > 1.05 * z
    assert slanted >= 3, "nothing tells z from the distance"


def test_nothing_is_hit_where_nothing_is(sim):
    put_ball(sim, (0.0, 0.0, -9.0), (0.0, 0.0, -9.0), (0.0, 0.0, -9.0))
    camera = sim.cameras["along_y"]  # behind all of the marks, looking away
    assert (camera.segmentation == -1).all()
    assert (camera.depth == 0).all()
    sky = torch.tensor([0.6, 0.75, 0.9]) * 255
    assert float((camera.rgb.float() - sky).abs().max()) <= 1


def test_colours_are_where_the_points_are(sim):
    """The right colour at the right pixel: no mirroring, no exchanged channels."""
    camera = sim.cameras["front"]
    put_ball(sim, (1.2, 0.3, 0.2), (1.2, -0.3, 0.2), (1.2, 0.3, -0.2))
    for world, (x, y, z) in enumerate(sim.data.qpos[:, 7:10].tolist()):
        point = camera.extrinsic[world].double() @ torch.tensor([x, y, z, 1.0]).double()
        u, v, w = (camera.intrinsic[world].double() @ point[:3]).tolist()
        red, green, blue = camera.rgb[world, int(v / w), int(u / w)].tolist()
        assert red > 60
        assert red > 2 * max(green, blue)
        mirrored = camera.rgb[world, int(v / w), camera.width - 1 - int(u / w)]
        assert mirrored[0] <= 2 * int(mirrored[1:].max())


# Geometry by hand.


def test_the_extrinsic_by_hand(sim):
    """At (1, 2, 3), looking along +y with z up: right is +x, down is −z."""
    camera = sim.cameras["along_y"]
    want = torch.tensor(
        [
            [1.0, 0.0, 0.0, -1.0],
            [0.0, 0.0, -1.0, 3.0],
            [0.0, 1.0, 0.0, -2.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    ).to(sim.dtype)
    limit = {"rtol": 0.0, "atol": 1e-6}
    for world in range(NUM_ENVS):
        torch.testing.assert_close(camera.extrinsic[world], want, **limit)
    assert camera.pos.tolist() == [[1.0, 2.0, 3.0]] * NUM_ENVS
    look_at = torch.tensor([[1.0, 3.0, 3.0]]).to(sim.dtype).expand(NUM_ENVS, 3)
    torch.testing.assert_close(camera.look_at, look_at, **limit)


def test_the_intrinsics_by_hand(sim):
    focal = 3.0 / math.tan(math.radians(45.0))
    want = {
        "along_y": (focal, focal, 4.0, 3.0),
        "pinhole": (90.0, 70.0, 35.0, 55.5),
        "tall": (55 / math.tan(math.radians(35)), 55 / math.tan(math.radians(35)),
                 30.0, 55.0),
        "own": (32 / math.tan(math.radians(25)), 32 / math.tan(math.radians(25)),
                45.0, 32.0),
    }  # fmt: skip
    for name, (fx, fy, cx, cy) in want.items():
        matrix = torch.tensor([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
        got = sim.cameras[name].intrinsic
        assert tuple(got.shape) == (NUM_ENVS, 3, 3)
        for world in range(NUM_ENVS):
            torch.testing.assert_close(got[world].float(), matrix, rtol=1e-5, atol=1e-4)


def test_a_camera_looks_at_its_target(sim):
    for name in ("front", "pinhole"):
        camera, cfg = sim.cameras[name], CAMERAS[name]
        pos, target = torch.tensor(cfg.pos), torch.tensor(cfg.look_at)
        axis = camera.look_at[0].float() - pos
        torch.testing.assert_close(camera.pos[0].float(), pos)
        torch.testing.assert_close(axis, (target - pos) / (target - pos).norm())
        point = camera.extrinsic[0].float() @ torch.cat([target, torch.ones(1)])
        assert point[:2].abs().max() < 1e-5
        up = camera.extrinsic[0, 1, :3].float()  # the image's down, world axes
        assert up[2] < 0


@pytest.mark.parametrize("name", CAMERAS)
def test_the_extrinsic_is_a_rigid_transform(sim, name):
    scatter(sim, 4)
    camera = sim.cameras[name]
    matrix = camera.extrinsic.double()
    rot = matrix[:, :3, :3]
    unit = torch.eye(3).double().expand(NUM_ENVS, 3, 3)
    torch.testing.assert_close(rot @ rot.mT, unit, rtol=0.0, atol=1e-5)
    assert torch.linalg.det(rot).min() > 0.99
    homogeneous = torch.cat([camera.pos.double(), torch.ones(NUM_ENVS, 1)], dim=1)
    origin = matrix @ homogeneous[..., None].double()
    want = torch.tensor([0.0, 0.0, 0.0, 1.0]).double().expand(NUM_ENVS, 4)
    torch.testing.assert_close(origin[..., 0], want, rtol=0.0, atol=1e-5)
    forward = (
        matrix
        @ torch.cat([camera.look_at.double(), torch.ones(NUM_ENVS, 1)], dim=1)[
            ..., None
        ].double()
    )
    want = torch.tensor([0.0, 0.0, 1.0, 1.0]).double().expand(NUM_ENVS, 4)
    torch.testing.assert_close(forward[..., 0], want, rtol=0.0, atol=1e-5)


def test_a_mounted_camera_moves_with_its_body(sim):
    scatter(sim, 3)
    rig, cfg = sim.scene["rig"].data, CAMERAS["mounted"]
    offset = torch.tensor(cfg.pos).to(sim.dtype).expand(NUM_ENVS, 3)
    aim = torch.tensor(cfg.look_at).to(sim.dtype) - offset
    aim = aim / aim.norm(dim=-1, keepdim=True)
    quat = rig.root_link_quat_w
    pos = rig.root_link_pos_w + quaternion.rotate(quat, offset)
    limit = {"rtol": 0.0, "atol": 1e-5}
    torch.testing.assert_close(sim.cameras["mounted"].pos, pos, **limit)
    look_at = pos + quaternion.rotate(quat, aim)
    torch.testing.assert_close(sim.cameras["mounted"].look_at, look_at, **limit)


def test_straight_up_and_down_are_fine():
    cameras = {
        name: CameraCfg(pos=(0.0, 0.0, z), look_at=(0.0, 0.0, 1.0))
        for name, z in (("down", 3.0), ("up", -1.0))
    }
    sim = Simulation(scene(cameras=cameras))
    for name, forward in (("down", -1.0), ("up", 1.0)):
        matrix = sim.cameras[name].extrinsic[0]
        assert matrix[2, :3].tolist() == pytest.approx([0.0, 0.0, forward])
        assert float(torch.linalg.det(matrix[:3, :3])) == pytest.approx(1.0)


def test_shapes_and_types(sim):
    for name, cfg in CAMERAS.items():
        camera = sim.cameras[name]
        size = (NUM_ENVS, cfg.height, cfg.width)
        assert camera.rgb.shape == (*size, 3)
        assert camera.rgb.dtype == torch.uint8
        assert camera.depth.shape == size
        assert camera.depth.dtype == sim.dtype
        assert camera.segmentation.shape == size
        assert not camera.segmentation.dtype.is_floating_point
        assert camera.pos.shape == camera.look_at.shape == (NUM_ENVS, 3)
        assert camera.extrinsic.shape == (NUM_ENVS, 4, 4)


# Freshness.


def test_a_write_without_a_step_changes_the_image(sim):
    camera = sim.cameras["front"]
    ball = sim.model.geom("ball/ball").id
    put_ball(sim, (1.2, 0.0, 0.0), (1.2, 0.0, 0.0), (1.2, 0.0, 0.0))
    before = camera.segmentation.clone(), camera.rgb.clone(), camera.depth.clone()
    assert (before[0] == ball).any()
    put_ball(sim, (1.2, 0.4, 0.0), (1.2, 0.0, 0.3), (5.0, 0.0, 9.0))
    for old, new in zip(before, (camera.segmentation, camera.rgb, camera.depth),
                        strict=True):  # fmt: skip
        assert all(not torch.equal(old[w], new[w]) for w in range(NUM_ENVS))
    assert not (camera.segmentation[2] == ball).any()
    sim.data.qpos[2, 7:10] = torch.tensor([1.2, 0.0, 0.0])  # by hand
    assert torch.equal(camera.segmentation[2], before[0][2])
    sim.data.qvel[0, 7] = 40.0
    seen = camera.segmentation.clone()
    sim.step(4)
    assert not torch.equal(camera.segmentation[0], seen[0])


def test_an_image_is_kept_until_the_state_changes(sim, rendered):
    camera = sim.cameras["front"]
    put_ball(sim, (1.2, 0.1, 0.0), (1.2, 0.1, 0.0), (1.2, 0.1, 0.0))
    assert not rendered  # nothing was read yet
    for _ in range(2):
        assert camera.rgb.shape
        assert camera.depth.shape
        assert camera.segmentation.shape
    assert len(rendered) == 1
    sim.get_states(mode="tensor", cameras=False)
    sim.forward()
    sim.step(3)
    sim.step()
    assert camera.pos.shape == (NUM_ENVS, 3)
    assert camera.extrinsic.shape == (NUM_ENVS, 4, 4)
    assert camera.intrinsic.shape == (NUM_ENVS, 3, 3)
    assert len(rendered) == 1
    assert camera.depth.shape
    assert camera.rgb.shape
    assert len(rendered) == 2
    assert sim.cameras["tall"].rgb.shape
    assert len(rendered) == 3  # a camera of its own


def test_an_image_in_hand_does_not_change(sim):
    camera = sim.cameras["front"]
    put_ball(sim, (1.2, 0.1, 0.0), (1.2, 0.1, 0.0), (1.2, 0.1, 0.0))
    held = camera.rgb, camera.depth, camera.segmentation
    copies = [image.clone() for image in held]
    put_ball(sim, (1.2, -0.3, 0.0), (1.2, -0.3, 0.0), (1.2, -0.3, 0.0))
    assert not torch.equal(camera.rgb, copies[0])
    assert all(map(torch.equal, held, copies))


@pytest.mark.parametrize("name", ["rgb", "depth", "segmentation"])
def test_an_image_cannot_be_drawn_upon(sim, name):
    """As with every quantity: what was written must not be read as if it were true."""
    camera = sim.cameras["front"]
    want = getattr(camera, name).clone()
    assert want.unique().numel() > 1
    getattr(camera, name).fill_(7)
    with contextlib.suppress(InvalidInputError):
        assert torch.equal(getattr(camera, name), want)
    assert torch.equal(getattr(camera, name), want)


def test_strict_freshness_refuses_a_stale_image():
    sim = Simulation(scene(), freshness="strict")
    sim.forward()
    assert sim.cameras["front"].rgb.shape
    sim.data.qpos[:, 8] += 0.1
    for name in ("rgb", "depth", "segmentation", "pos", "extrinsic"):
        with pytest.raises(StaleReadError):
            getattr(sim.cameras["front"], name)
    sim.forward()
    assert sim.cameras["front"].rgb.shape


# Worlds.


def test_worlds_show_their_own_state(sim, engine):
    oracles.randomize(sim, 2)
    scatter(sim, 5)
    put_ball(sim, (1.2, 0.3, 0.0), (1.2, 0.0, 0.0), (1.0, -0.3, 0.0))
    images = {name: sim.cameras[name].rgb for name in ("front", "mounted")}
    for image in images.values():
        assert not torch.equal(image[0], image[1])
        assert not torch.equal(image[1], image[2])
    alone = Simulation(scene(), 1, engine=engine)
    for world in range(NUM_ENVS):
        alone.restore(sim.snapshot(world))
        for name, image in images.items():
            assert torch.equal(alone.cameras[name].rgb[0], image[world])


def test_each_world_may_have_its_own_colours(engine):
    sim = Simulation(scene(), NUM_ENVS, engine=engine)
    camera, ball = sim.cameras["front"], sim.model.geom("ball/ball").id
    before = camera.rgb.clone()
    hit = camera.segmentation[0] == ball
    assert int(hit.sum()) > 20
    sim.expand("geom_rgba")[1, ball] = torch.tensor([0.0, 1.0, 0.0, 1.0])
    after = camera.rgb
    assert torch.equal(after[0], before[0])
    assert torch.equal(after[2], before[2])
    red, green, blue = after[1][hit].float().mean(0).tolist()
    assert green > 2 * max(red, blue)
    red, green, blue = before[1][hit].float().mean(0).tolist()
    assert red > 2 * max(green, blue)
    sim.expand("geom_rgba")[1, ball] = torch.tensor([1.0, 0.0, 0.0, 1.0])
    assert torch.equal(camera.rgb, before)


LAMPS = """<mujoco><visual><headlight active="0"/></visual><worldbody>
<light name="lamp" type="spot" pos="0.3 0 2" dir="0 0 -1" cutoff="{cutoff}"
 attenuation="{attenuation}" diffuse="{diffuse}" exponent="{exponent}"/>
<geom type="plane" size="5 5 .1"/><body><joint/><geom size="0.2" pos="0 0 0.5"/></body>
</worldbody></mujoco>"""


def test_a_light_of_one_world_is_that_of_a_model_compiled_so():
    eye = CameraCfg(pos=(0, -0.4, 3), look_at=(0, 0, 0), width=32, height=24, fovy=70.0)
    names = ("cutoff", "attenuation", "diffuse", "exponent")
    sims = []
    for values in (
        ("45", "1 0 0", "1 .8 .9", "10"),
        ("25", "1 .1 .2", ".2 .9 .4", "4"),
    ):
        room = EntityCfg(model=LAMPS.format(**dict(zip(names, values, strict=True))))
        made = {"entities": {"room": room}, "cameras": {"eye": eye}, "ground": False}
        sims.append(Simulation(SceneCfg(**made), 2))
    sim, other = sims
    before, want = (one.cameras["eye"].rgb[0].int() for one in sims)
    for name in names:
        value = getattr(other.model, f"light_{name}")[0]
        sim.expand(f"light_{name}")[1, 0] = torch.as_tensor(value)
    found = sim.cameras["eye"].rgb.int()
    assert torch.equal(found[0], before)
    assert int((found[1] - want).abs().max()) <= 1
    assert int((found[1] - before).abs().max()) > 20


# In unified states.


def test_states_have_the_images(sim):
    put_ball(sim, (1.2, 0.3, 0.0), (1.2, 0.0, 0.0), (1.0, -0.3, 0.0))
    states = sim.get_states([2, 0])
    tensors = sim.get_states([2, 0], mode="tensor")
    assert set(states[0]["cameras"]) == set(tensors.cameras) == set(CAMERAS)
    for name, camera in sim.cameras.items():
        for k, world in enumerate((2, 0)):
            part = states[k]["cameras"][name]
            assert set(part) == {
                "rgb", "depth", "pos", "look_at", "intrinsic", "extrinsic",
            }  # fmt: skip
            for key, value in part.items():
                assert torch.equal(value, getattr(camera, key)[world])
                assert torch.equal(value, getattr(tensors.cameras[name], key)[k])


def test_images_can_be_left_out(sim, rendered):
    assert sim.get_states(cameras=False)[0]["cameras"] == {}
    assert sim.get_states(mode="tensor", cameras=False).cameras == {}
    sim.set_states(sim.get_states(cameras=False))
    assert not rendered


# Configurations.


@pytest.mark.parametrize(
    ("cfg", "named"),
    [
        ({"fovy": 45.0, "intrinsic": (50.0, 50.0, 32.0, 24.0)}, ["fovy", "intrinsic"]),
        ({"look_at": (1.0, 0.0, 0.0), "rot": (1.0, 0.0, 0.0, 0.0)}, ["look_at", "rot"]),
        ({"camera": "rig/eye", "body": "rig/rig"}, ["camera", "body"]),
        ({"pos": (1.0, 2.0, 3.0), "look_at": (1.0, 2.0, 3.0)}, ["look_at"]),
        ({"body": "rig/rgi"}, ["rig/rgi", "'rig/rig'"]),
        ({"body": "rig"}, ["'rig'", "rig/rig"]),
        ({"camera": "rig/eyes"}, ["rig/eyes", "'rig/eye'"]),
        ({"camera": "eye"}, ["'eye'", "rig/eye"]),
        ({"width": 0}, ["width", "0"]),
        ({"height": -3}, ["height", "-3"]),
        ({"fovy": 0.0}, ["fovy", "0"]),
        ({"fovy": 180.0}, ["fovy", "180"]),
        ({"fovy": float("nan")}, ["fovy", "nan"]),
        ({"intrinsic": (0.0, 50.0, 32.0, 24.0)}, ["intrinsic", "> 0"]),
        ({"intrinsic": (50.0, -50.0, 32.0, 24.0)}, ["intrinsic", "> 0"]),
        ({"intrinsic": (50.0, 50.0, float("nan"), 24.0)}, ["nan"]),
        ({"intrinsic": (50.0, 50.0, 32.0)}, ["intrinsic"]),
        ({"pos": (0.0, 0.0)}, ["pos", "bad"]),
        ({"pos": (0.0, 0.0, float("inf"))}, ["pos", "bad"]),
        ({"rot": (0.0, 0.0, 0.0, 0.0)}, ["rot", "bad"]),
        ({"look_at": (0.0, 0.0, 1.0, 0.0)}, ["look_at", "bad"]),
    ],
)
def test_a_bad_configuration_is_refused(cfg, named):
    with pytest.raises(SimStateError) as caught:
        Simulation(scene(cameras={"bad": CameraCfg(**cfg)}))
    for part in named:
        assert part in str(caught.value)


def test_an_unknown_camera_is_refused_with_a_suggestion(sim):
    with raises(UnknownNameError, name="frnt"):
        sim.cameras["frnt"]
    assert list(sim.cameras) == list(CAMERAS)
    assert "front" in sim.cameras
    assert "frnt" not in sim.cameras
    assert sim.cameras.get("frnt") is None


def test_a_scene_without_cameras_has_none():
    entities = {"cube": EntityCfg(model="cube", init_state=InitialStateCfg())}
    sim = Simulation(SceneCfg(entities=entities))
    assert dict(sim.cameras) == {}
    assert sim.get_states()[0]["cameras"] == {}


@pytest.mark.parametrize("geom", ["", '<geom size="0.1" group="3"/>'])
def test_a_camera_that_no_geom_is_visible_to_sees_the_background(geom):
    """As behind the camera, where the other scene has a ball."""
    camera = CameraCfg(pos=(0, -1, 0.3), look_at=(0, 0, 0.3), width=4, height=3)
    eyes = []
    for y, shown in ((0, geom), (-5, '<geom size="0.1"/>')):
        body = f"""<mujoco><worldbody><body pos="0 {y} 0"><joint/>{shown}
          <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>
          </mujoco>"""
        scene = SceneCfg(
            entities={"it": EntityCfg(model=body)},
            ground=False,
            cameras={"eye": camera},
        )
        sim = Simulation(scene, num_envs=2)
        sim.step()
        eyes.append(sim.cameras["eye"])
    bare, other = eyes
    assert torch.equal(bare.rgb, other.rgb)
    assert torch.equal(bare.depth, other.depth)
    assert torch.equal(bare.segmentation, other.segmentation)
    assert int(bare.segmentation.max()) == -1
    assert len(bare.rgb.unique()) == 3


def test_a_field_of_view_of_one_world_changes_its_image_and_matrix(engine):
    entities = {"cube": EntityCfg(model="cube", init_state=InitialStateCfg())}
    camera = CameraCfg(pos=(0.4, 0.0, 0.1), look_at=(0.0, 0.0, 0.025))
    scene = SceneCfg(entities=entities, cameras={"it": camera})
    sim = Simulation(scene, num_envs=2, engine=engine)
    cube = int(sim.model.body_geomadr[sim.model.body("cube/cube").id])
    it = sim.cameras["it"]
    before = (it.segmentation == cube).sum(dim=(1, 2))
    focal = it.intrinsic[0, 1, 1].item()
    sim.expand("cam_fovy")[1] = 15.0
    after = (it.segmentation == cube).sum(dim=(1, 2))
    assert after[0] == before[0]
    assert after[1] > 4 * before[1]
    assert it.intrinsic[0, 1, 1].item() == focal
    want = 24.0 / np.tan(np.deg2rad(7.5))
    assert it.intrinsic[1, 1, 1].item() == pytest.approx(want, rel=1e-5)


def test_pictures_are_recorded_and_come_again(sim, tmp_path):
    scatter(sim, 8)
    path, seen = tmp_path / "run.simrec", []
    with sim.record(path, quantities=["rig.root_link_pos_w", "camera/mounted"]):
        for turn in (0.0, 1.3, -2.1):
            sim.scene["rig"].write_root_link_velocity_to_sim([[0, 0, 0, turn, 0, 5.0]])
            seen.append(sim.cameras["mounted"].rgb.clone())
            sim.step(20)
    with Recording(path) as recording:
        pictures = recording["camera/mounted"]
        for k, picture in enumerate(seen[1:]):
            assert torch.equal(pictures[k + 1], picture.cpu())
        assert not torch.equal(pictures[1], pictures[2])
        assert replay(recording, sim).is_same
        if sim.engine_name == "native":  # a file does not bring cameras
            assert replay(recording).left_out == ["camera/mounted"]
    with raises(SimStateError, name="mountd"):
        sim.record(path, quantities=["camera/mountd"])


@pytest.mark.parametrize("cpus", [2, 3, 7])
def test_shares_of_worlds_draw_the_same_pixels(cpus, monkeypatch):
    """In threads, with parameters that differ by world; drawn twice, moved between."""

    def images(shares):
        monkeypatch.setattr(ray_tracer, "available_cpus", lambda: shares)
        entities = {"ball": EntityCfg(model=BALL)}
        eye = CameraCfg(
            pos=(0.1, -0.9, 0.5), look_at=(1.2, 0.1, 0.0), width=24, height=18
        )
        sim = Simulation(SceneCfg(entities=entities, cameras={"eye": eye}), 5)
        sim.expand("geom_rgba")[:, -1, 1] = torch.linspace(0.1, 0.9, 5)
        found = []
        for shift in (0.1, -0.07):
            sim.data.qpos[:, 1] += shift * torch.arange(5)
            camera = sim.cameras["eye"]
            found += [camera.rgb, camera.depth, camera.segmentation]
        return found

    alone, shared = images(1), images(cpus)
    assert all(torch.equal(a, b) for a, b in zip(alone, shared, strict=True))
    assert len({image.double().sum().item() for image in alone[0]}) == 5
    assert not torch.equal(alone[0], alone[3])


@pytest.mark.parametrize(("worlds", "cpus"), [(1, 8), (5, 3), (64, 64), (7, 1)])
def test_worlds_are_shared_out(worlds, cpus):
    shares = ray_tracer.shared_out(worlds, cpus)
    assert [i for share in shares for i in range(worlds)[share]] == list(range(worlds))
    sizes = {share.stop - share.start for share in shares}
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1
    assert len(shares) == min(worlds, cpus)


def test_worlds_that_did_not_change_are_shown_as_they_are():
    """After writes to some worlds, all show what a new simulation shows of them."""
    eye = CameraCfg(pos=(0.1, -0.9, 0.5), look_at=(1.2, 0.1, 0.0), width=24, height=18)
    scene = SceneCfg(entities={"ball": EntityCfg(model=BALL)}, cameras={"eye": eye})
    sim, rng = Simulation(scene, 5), np.random.default_rng(3)
    assert sim.cameras["eye"].depth.any()  # before any colours
    for turn in range(6):
        worlds = rng.choice(5, rng.integers(0, 4), replace=False)
        sim.data.qpos[worlds, :3] += torch.from_numpy(rng.normal(0, 0.1, 3))
        if turn == 2:
            sim.expand("geom_rgba")[3, -1, 1] = 0.8
        if turn == 4:
            sim.expand("cam_fovy")[1] += 9.0
        new = Simulation(scene, 5)
        for name in ("geom_rgba", "cam_fovy"):
            new.write_parameter(name, sim.expand(name).clone())
        new.data.qpos[:] = sim.data.qpos
        for name in ("segmentation", "rgb", "depth"):
            shown, want = (getattr(s.cameras["eye"], name) for s in (sim, new))
            assert torch.equal(shown, want)
