"""Observations of any shape and dtype: pictures, their history, noise and mistakes."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict
from gymnasium.utils.env_checker import check_env
from PIL import Image
from tests.raised import raises

from simstate import (
    CameraCfg,
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    Simulation,
    UnknownNameError,
)
from simstate.env import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    UniformNoise,
    events,
    observations,
)
from simstate.interop.gymnasium import GymnasiumEnv, GymnasiumVectorEnv
from simstate.record import Recording

SHAPE = (3, 4, 2)


def picture(env, shift=0):
    """Bytes that differ in every pixel, world and step; (num_envs, 3, 4, 2)."""
    base = env.scene["robot"].data.joint_pos * 1e4 + shift
    places = torch.arange(24, device=env.device).reshape(1, *SHAPE)
    return ((base[:, None, None, :] + 7 * places) % 256).to(torch.uint8)


def depth(env):
    """Distances of the same height and width; (num_envs, 3, 4, 1)."""
    return 1.0 + picture(env)[..., :1].double() / 100


def terms(**named):
    return {
        name: term if isinstance(term, ObservationTermCfg) else ObservationTermCfg(term)
        for name, term in named.items()
    }


def grouped(**named):
    return {"policy": ObservationGroupCfg(terms(**named))}


# Groups.


def test_one_picture_is_the_group(make_env, given):
    env = make_env(observations=grouped(eye=picture))
    seen, *_ = env.step(given(env, 1)[0])
    assert seen["policy"].dtype == torch.uint8
    assert torch.equal(seen["policy"], picture(env))
    assert torch.equal(env.observations["policy"], picture(env))
    assert env.observation_specs["policy"] == (SHAPE, torch.uint8, 0, 255)
    assert env.observation_dims == {}


def test_pictures_of_one_kind_are_put_side_by_side(make_env):
    second = ObservationTermCfg(picture, params={"shift": 50})
    env = make_env(observations=grouped(left=picture, right=second))
    want = torch.cat([picture(env), picture(env, 50)], dim=-1)
    assert torch.equal(env.observations["policy"], want)
    assert env.observation_specs["policy"].shape == (3, 4, 4)


def test_what_does_not_fit_together_is_a_dictionary(make_env, given):
    joints = observations.joint_pos_rel
    env = make_env(observations=grouped(eye=picture, far=depth, joints=joints))
    seen, *_ = env.step(given(env, 1)[0])
    assert list(seen["policy"]) == ["eye", "far", "joints"]
    assert torch.equal(seen["policy"]["eye"], picture(env))
    assert torch.equal(seen["policy"]["far"], depth(env).float())
    data = env.scene["robot"].data
    want = (data.joint_pos - data.default_joint_pos).float()
    assert torch.equal(seen["policy"]["joints"], want)
    assert env.observation_dims == {"policy/joints": 2}
    assert env.observation_names["policy/joints"] == ["joints/hip", "joints/knee"]


def test_terms_whose_names_end_alike_are_distinguished(make_env):
    named = {"left/eye": picture, "right/eye": depth}
    env = make_env(observations=grouped(**named))
    assert list(env.observations["policy"]) == ["left/eye", "right/eye"]
    assert torch.equal(env.observations["policy"]["left/eye"], picture(env))


def test_a_reset_of_some_worlds_leaves_the_pictures_of_others(make_env, given):
    env = make_env(observations=grouped(eye=ObservationTermCfg(picture, history=3)))
    for action in given(env, 4):
        env.step(action)
    before = env.observations["policy"]
    after = env.reset(env_ids=[2, 0])[0]["policy"]
    assert torch.equal(after[[1, 3]], before[[1, 3]])
    want = picture(env)[[2, 0]].repeat(1, 1, 1, 3)
    assert torch.equal(after[[2, 0]], want)


# Noise, clip, scale, delay, history.


@pytest.mark.parametrize(("delay", "history"), [(0, 3), (2, 1), (1, 2)])
def test_delay_and_history_of_a_picture(make_env, given, delay, history):
    term = ObservationTermCfg(picture, delay=delay, history=history)
    env = make_env(observations=grouped(eye=term))
    length = delay + history
    past = deque([picture(env)] * length, maxlen=length)
    for action in given(env, 6):
        seen = env.step(action)[0]["policy"]
        past.append(picture(env))
        want = torch.cat(list(past)[:history], dim=-1)
        assert torch.equal(seen, want)
    assert seen.shape == (4, 3, 4, 2 * history)
    assert len(seen.unique()) > 10


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_history_and_delay_of_wide_unsigned_integers(make_env, given, dtype):
    """Such as depths in millimetres: the largest ones are not negative."""

    def wide(env):
        return (picture(env).to(torch.int64) * 257).to(dtype)

    term = ObservationTermCfg(wide, history=2, delay=1)
    plain = ObservationTermCfg(wide)
    env = make_env(observations=grouped(late=term, now=plain))
    seen = [env.observations["policy"].to(torch.int64)]
    for action in given(env, 4):
        seen.append(env.step(action)[0]["policy"].to(torch.int64))
    assert env.observations["policy"].dtype == dtype
    assert max(int(x.max()) for x in seen) > 2**15
    now = [x[..., 4:] for x in seen]
    assert torch.equal(seen[-1][..., :4], torch.cat([now[-3], now[-2]], dim=-1))
    before = env.observations["policy"].to(torch.int64)
    after = env.reset(env_ids=[2, 0])[0]["policy"].to(torch.int64)
    assert torch.equal(after[[1, 3]], before[[1, 3]])


def test_each_world_draws_its_delay(make_env, given):
    term = ObservationTermCfg(picture, delay=(0, 3))
    env = make_env(num_envs=16, observations=grouped(eye=term))
    past = [picture(env)] * 4
    for action in given(env, 5):
        seen = env.step(action)[0]["policy"]
        past = [*past[1:], picture(env)]
    late = [[torch.equal(past[k][w], seen[w]) for k in range(4)] for w in range(16)]
    assert all(sum(one) == 1 for one in late)
    assert len({one.index(True) for one in late}) == 4


def test_noise_is_added_to_bytes_and_saturates(make_env):
    term = ObservationTermCfg(picture, noise=UniformNoise(-40.0, 60.0))
    env = make_env(num_envs=64, observations=grouped(eye=term))
    seen, true = env.observations["policy"].int(), picture(env).int()
    assert env.observations["policy"].dtype == torch.uint8
    added = seen - true
    inner = (true > 40) & (true < 195)
    assert added.min() >= -40
    assert added.max() <= 60
    assert abs(added[inner].double().mean() - 10.0) < 2.0
    assert len(added[inner].unique()) > 90
    assert (seen[true > 240] == 255).any()
    assert not torch.equal(added[0], added[1])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint32])
def test_noise_of_wide_integers_saturates(make_env, dtype):
    largest = torch.iinfo(dtype).max

    def wide(env):
        ids = torch.tensor([2**24 + 1, largest, 5, 7], dtype=torch.int64)
        return ids.to(dtype).reshape(4, 1, 1, 1).repeat(1, 2, 3, 1)

    term = ObservationTermCfg(wide, noise=UniformNoise(0.0, 0.4))
    seen = make_env(observations=grouped(ids=term)).observations["policy"]
    found = seen[:, 0, 0, 0].to(torch.int64).tolist()
    assert found[0] == 2**24 + 1
    assert found[1] == pytest.approx(largest, rel=1e-15)
    assert found[2:] == [5, 7]


def test_a_scale_makes_fractions_of_bytes(make_env):
    term = ObservationTermCfg(picture, clip=(0.0, 200.0), scale=(1 / 255, 1 / 51))
    env = make_env(observations=grouped(eye=term))
    want = picture(env).float().clamp(max=200.0) * torch.tensor([1 / 255, 1 / 51])
    assert torch.equal(env.observations["policy"], want)


def test_noisy_pictures_resume_exactly(make_env, given):
    noisy = ObservationTermCfg(
        picture, noise=UniformNoise(-40.0, 60.0), delay=(0, 2), history=2
    )
    env = make_env(observations=grouped(eye=noisy, joints=observations.joint_pos_rel))
    actions = given(env, 6)
    for action in actions[:3]:
        env.step(action)
    saved = env.snapshot()
    first = [env.step(action)[0]["policy"]["eye"] for action in actions[3:]]
    env.restore(saved)
    again = [env.step(action)[0]["policy"]["eye"] for action in actions[3:]]
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], first[1])


def test_pictures_are_recorded(make_env, given, tmp_path):
    env = make_env(observations=grouped(eye=picture, joints=observations.joint_pos_rel))
    want = []
    with env.record(tmp_path / "run.ssr"):
        for action in given(env, 3):
            want.append(env.observations["policy"]["eye"])
            env.step(action)
    with Recording(tmp_path / "run.ssr") as recording:
        found = torch.as_tensor(recording["observation/policy/eye"])
    assert torch.equal(found.reshape(3, 4, *SHAPE), torch.stack(want))


# Spaces.


def test_gymnasiums_spaces_are_those_of_the_observations(make_cfg):
    far = ObservationTermCfg(depth, clip=(0.0, 2.5), scale=0.4)
    bare = ObservationTermCfg(depth, history=2)
    ids = ObservationTermCfg(lambda env: picture(env).to(torch.int32) - 1)
    flags = ObservationTermCfg(lambda env: picture(env) > 99)
    named = {"eye": picture, "far": far, "bare": bare, "ids": ids, "flags": flags}
    cfg = make_cfg(observations=grouped(**named, joints=observations.joint_pos_rel))
    envs = GymnasiumVectorEnv(cfg, 3)
    space = envs.single_observation_space
    assert isinstance(space, Dict)
    assert space["eye"] == Box(0, 255, SHAPE, np.uint8)
    assert space["far"] == Box(0.0, 1.0, (3, 4, 1), np.float32)
    assert space["bare"] == Box(-np.inf, np.inf, (3, 4, 2), np.float32)
    assert space["ids"].dtype == np.int32
    assert space["flags"].shape == SHAPE
    assert space["joints"] == Box(-np.inf, np.inf, (2,), np.float32)
    seen, _ = envs.reset(seed=3)
    assert seen in envs.observation_space
    for _ in range(3):
        seen, *_ = envs.step(envs.action_space.sample())
        assert seen in envs.observation_space


def test_the_last_pictures_of_an_episode_are_returned(make_cfg):
    cfg = make_cfg(
        observations=grouped(eye=picture, joints=observations.joint_pos_rel),
        episode_length_s=0.04,
    )
    envs = GymnasiumVectorEnv(cfg, 3, autoreset_mode="SameStep")
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    seen, _, _, truncated, infos = envs.step(envs.action_space.sample())
    assert truncated.all()
    for world in range(3):
        last = infos["final_obs"][world]
        assert last in envs.single_observation_space
        assert not np.array_equal(last["eye"], seen["eye"][world])


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_checks_an_environment_of_pictures(make_cfg):
    env = GymnasiumEnv(make_cfg(observations=grouped(eye=picture)))
    assert env.observation_space == Box(0, 255, SHAPE, np.uint8)
    check_env(env, skip_render_check=True)


# Mistakes.


def changing(good, wrong, after):
    """A term that returns `wrong(env)` from the step `after` on."""
    return lambda env: (wrong if env.common_step_counter >= after else good)(env)


def nan_in_one_world(env):
    values = depth(env)
    values[2, 1, 3] = torch.nan
    return values


@pytest.mark.parametrize(
    ("good", "wrong", "error", "name"),
    [
        (picture, lambda env: picture(env)[:, :2], ShapeError,
         "policy/eye"),
        (picture, lambda env: picture(env).int(), ShapeError,
         "policy/eye"),
        (picture, lambda env: picture(env)[:, :, 0, 0], ShapeError,
         "policy/eye"),
        (picture, lambda env: picture(env).to("meta"), InvalidInputError,
         "policy/eye"),
        (depth, nan_in_one_world, InvalidInputError, "policy/eye"),
        (picture, lambda env: picture(env)[:3], ShapeError,
         "policy/eye"),
    ],
)  # fmt: skip
def test_a_picture_that_changes_is_refused_and_nothing_has_happened(
    make_env, given, good, wrong, error, name
):
    term = ObservationTermCfg(changing(good, wrong, 3), history=2)
    env = make_env(observations=grouped(eye=term, joints=observations.joint_pos_rel))
    actions = given(env, 3)
    for action in actions[:2]:
        env.step(action)
    state, seen = env.sim.state.clone(), env.observations["policy"]["eye"]
    with raises(error, name=name) as raised:
        env.step(actions[2])
    assert "'policy/eye'" in str(raised.value)
    assert torch.equal(env.sim.state, state)
    assert torch.equal(env.observations["policy"]["eye"], seen)
    assert env.common_step_counter == 2


def test_values_that_are_no_numbers_are_refused(make_env):
    words = ObservationTermCfg(lambda env: np.full((4, 2, 2), "a"))
    with raises(InvalidInputError, name="policy/eye"):
        make_env(observations=grouped(eye=words))


# Cameras.


def camera_scene(cfg):
    """The hopper's scene with a camera of its own and one on the robot's trunk."""
    eye = CameraCfg(pos=(1.1, 0.3, 0.7), look_at=(0.0, 0.1, 0.4), width=24, height=16)
    mounted = CameraCfg(
        body="robot/trunk", pos=(0.2, 0.02, 0.1), look_at=(0.0, 0.03, -0.4),
        width=20, height=14,
    )  # fmt: skip
    return replace(cfg.scene, cameras={"eye": eye, "mounted": mounted})


def camera_terms(name):
    named = {
        "rgb": observations.camera_rgb, "grey": observations.camera_grey,
        "depth": observations.camera_depth, "ids": observations.camera_segmentation,
    }  # fmt: skip
    return {
        key: ObservationTermCfg(func, params={"camera": name})
        for key, func in named.items()
    }


@pytest.mark.parametrize("name", ["eye", "mounted"])
def test_camera_terms_show_what_the_camera_does(make_env, make_cfg, given, name):
    legs = SceneEntityCfg("robot", geom_names=("thigh", "shin"))
    mask = ObservationTermCfg(
        observations.camera_mask, params={"camera": name, "asset_cfg": legs}
    )
    near = ObservationTermCfg(
        observations.camera_depth, params={"camera": name, "far": 0.9}
    )
    group = ObservationGroupCfg({**camera_terms(name), "mask": mask, "near": near})
    env = make_env(scene=camera_scene(make_cfg()), observations={"policy": group})
    for action in given(env, 3):
        seen = env.step(action)[0]["policy"]
    camera, model = env.sim.cameras[name], env.sim.model
    assert torch.equal(seen["rgb"], camera.rgb)
    assert torch.equal(seen["depth"][..., 0], camera.depth.float())
    assert torch.equal(seen["ids"][..., 0], camera.segmentation.int())
    grey = [np.asarray(Image.fromarray(x.numpy()).convert("L")) for x in camera.rgb]
    assert (
        seen["grey"][..., 0].int() - torch.from_numpy(np.stack(grey))
    ).abs().max() < 2
    ids = [model.geom(f"robot/{part}").id for part in ("thigh", "shin")]
    shown = (camera.segmentation == ids[0]) | (camera.segmentation == ids[1])
    assert torch.equal(seen["mask"][..., 0] == 255, shown)
    assert 0.0 < shown.double().mean() < 1.0
    far = torch.where(camera.depth == 0, 0.9, camera.depth).clamp(max=0.9)
    assert torch.equal(seen["near"][..., 0], far.float())
    assert all(not torch.equal(x[0], x[1]) for x in (seen["rgb"], seen["depth"]))


def test_an_unknown_camera_is_named(make_env, make_cfg):
    term = ObservationTermCfg(observations.camera_rgb, params={"camera": "eyes"})
    with raises(UnknownNameError, name="eyes"):
        make_env(scene=camera_scene(make_cfg()), observations=grouped(a=term))


LIT = """
<mujoco>
  <visual><headlight ambient=".1 .1 .1" diffuse=".2 .2 .2"/></visual>
  <worldbody>
    <light name="lamp" pos="{light_pos}" dir="{light_dir}" diffuse="{light_diffuse}"/>
    <camera name="eye" pos="{cam_pos}" quat="{cam_quat}" fovy="{cam_fovy}"/>
    <geom name="floor" type="plane" size="3 3 .1" rgba=".5 .4 .3 1"/>
    <body name="ball" pos="0.1 0 0.4"><freejoint/>
      <geom name="ball" size=".2" mass="1" rgba=".9 .3 .2 1"/></body>
  </worldbody>
</mujoco>
"""
LOOKS = {
    "light_pos": "0.3 -0.4 2", "light_dir": "0.2 0.1 -1", "light_diffuse": ".7 .6 .5",
    "cam_pos": "0.2 -1.5 0.9", "cam_quat": "0.85 0.5 0.05 0.02", "cam_fovy": "50",
}  # fmt: skip
SPANS = {
    "light_pos": (-0.5, 0.5), "light_dir": (-0.3, 0.3), "light_diffuse": (-0.4, 0.2),
    "cam_pos": (-0.2, 0.2), "cam_quat": (-0.1, 0.1), "cam_fovy": (-10.0, 15.0),
}  # fmt: skip


def lit_scene(**looks):
    room = EntityCfg(model=LIT.format(**(LOOKS | looks)))
    eye = CameraCfg(camera="room/eye", width=24, height=18)
    return SceneCfg(entities={"room": room}, cameras={"eye": eye})


@pytest.mark.parametrize("field", list(LOOKS))
def test_a_world_shows_its_own_camera_and_light(field):
    """Its picture is that of a model compiled with the world's parameters."""
    sim = Simulation(lit_scene(), 3)
    plain = sim.cameras["eye"].rgb.clone()
    nominal = torch.tensor([float(x) for x in LOOKS[field].split()])
    low, high = SPANS[field]
    generator = torch.Generator().manual_seed(4)
    share = torch.rand(3, len(nominal), generator=generator)
    drawn = nominal + low + (high - low) * share
    if field == "cam_quat":
        drawn = drawn / drawn.norm(dim=1, keepdim=True)
    values = drawn[:, None] if len(nominal) > 1 else drawn
    sim.write_parameter(field, values.double(), [0])
    seen = sim.cameras["eye"].rgb
    for world in range(3):
        text = " ".join(repr(float(x)) for x in drawn[world])
        alone = Simulation(lit_scene(**{field: text}), 1).cameras["eye"].rgb[0]
        assert torch.equal(seen[world], alone)
        assert not torch.equal(seen[world], plain[world])


@pytest.mark.parametrize(
    ("field", "names"),
    [("cam_pos", "eye"), ("cam_quat", "eye"), ("cam_fovy", "eye"),
     ("light_dir", ".*"), ("light_diffuse", ".*")],
)  # fmt: skip
def test_events_draw_cameras_and_lights_of_the_scene(make_env, make_cfg, field, names):
    event = EventTermCfg(
        events.randomize_parameter, mode="reset",
        params={
            "field": field, "names": names, "asset_cfg": None, "operation": "add",
            "value_range": SPANS[field],
        },
    )  # fmt: skip
    scene = camera_scene(make_cfg())
    term = ObservationTermCfg(observations.camera_rgb, params={"camera": "eye"})
    env = make_env(scene=scene, observations=grouped(a=term), events={"look": event})
    seen = env.observations["policy"]
    assert len({bytes(one.numpy().tobytes()) for one in seen}) == env.num_envs
    sim = Simulation(scene, 4)
    sim.write_parameter(field, env.sim.expand(field))
    sim.set_states(env.sim.get_states(mode="tensor", cameras=False))
    assert torch.equal(sim.cameras["eye"].rgb, seen)
    again = env.reset(env_ids=[1])[0]["policy"]
    assert torch.equal(again[[0, 2, 3]], seen[[0, 2, 3]])
    assert not torch.equal(again[1], seen[1])


def test_a_camera_of_the_scene_is_turned(make_env, make_cfg):
    turn = {
        "field": "cam_quat", "names": "eye", "asset_cfg": None,
        "angle_range": {"roll": (0.1, 0.2), "yaw": (-0.3, 0.3)},
    }  # fmt: skip
    event = EventTermCfg(events.randomize_orientation, mode="reset", params=turn)
    env = make_env(scene=camera_scene(make_cfg()), events={"look": event})
    eye = env.sim.model.camera("eye").id
    found = env.sim.expand("cam_quat")[:, eye]
    own = torch.from_numpy(env.sim.model.cam_quat[eye].copy())
    angles = 2.0 * (found @ own).abs().clamp(max=1.0).acos()
    assert len(set(angles.tolist())) == env.num_envs
    assert bool((angles > 0.09).all())
