"""Pictures in data sets: those of each episode, as ffmpeg, h5py and mcap read them."""

from __future__ import annotations

import base64
import json

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from mcap.reader import make_reader
from tests.films import read_film
from tests.raised import raises

from simstate import InvalidInputError, UnknownNameError
from simstate.data.datasets import (
    episodes_of,
    lerobot_films,
    write_foxglove,
    write_hdf5,
    write_lerobot,
)
from simstate.data.datasets.collection import with_cameras
from simstate.env import Env, ObservationGroupCfg, ObservationTermCfg, tasks

FEATURE, HEIGHT, WIDTH = "observation.images.front", 20, 32


def painted(sim):
    """A picture that tells world and step apart: no camera is needed for it."""
    time = (sim.time * 50).round().long()
    across = torch.arange(WIDTH) * 5
    red = (across[None] + 6 * time[:, None]) % 256
    green = (40 * torch.arange(sim.num_envs)[:, None] + 30).expand(-1, WIDTH)
    blue = (255 - across)[None].expand(sim.num_envs, -1)
    row = torch.stack([red, green, blue], -1)
    return row[:, None].expand(-1, HEIGHT, -1, -1).to(torch.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "cart.simrec"
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.3
    env = Env(cfg, 3, seed=2)
    env.episode_length_buf = torch.tensor([0, 5, 9])
    with env.record(path, quantities={"camera/front": painted}):
        for _ in range(32):
            env.step(torch.zeros(3, env.action_dim))
    return path


def test_films_have_the_pictures_of_each_episode(run, tmp_path, monkeypatch):
    frame = HEIGHT * WIDTH * 3
    monkeypatch.setattr(lerobot_films, "MOST_BYTES", 30 * frame)
    count = write_lerobot(run, tmp_path / "set")
    episodes = list(episodes_of(run))
    assert count == len(episodes) > 4
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    feature = info["features"][FEATURE]
    assert (feature["dtype"], feature["shape"]) == ("video", [HEIGHT, WIDTH, 3])
    rows = pq.read_table(tmp_path / "set/meta/episodes/chunk-000/file-000.parquet")
    films = {}
    for episode, row in zip(episodes, rows.to_pylist(), strict=True):
        file = {k: row[f"videos/{FEATURE}/{k}"] for k in ("chunk_index", "file_index")}
        path = tmp_path / "set" / info["video_path"].format(video_key=FEATURE, **file)
        if path not in films:
            films[path] = read_film(path)
        frames, fps = films[path]
        assert fps == info["fps"] == 50
        first, last = (
            row[f"videos/{FEATURE}/{k}_timestamp"] * 50 for k in ("from", "to")
        )
        mine = frames[round(first) : round(last)].astype(int)
        want = episode.columns["camera/front"].astype(int)
        assert mine.shape == want.shape
        # What H.264 makes of colours is off by a few shades; a step is 6, a world 40.
        np.testing.assert_allclose(mine.mean((1, 2)), want.mean((1, 2)), atol=2.5)
    assert len(films) == 2
    assert sum(len(film.frames) for film in films.values()) == sum(map(len, episodes))


def test_statistics_of_pictures(run, tmp_path):
    write_lerobot(run, tmp_path / "set")
    every = np.concatenate([e.columns["camera/front"] for e in episodes_of(run)]) / 255
    stats = json.loads((tmp_path / "set/meta/stats.json").read_text())[FEATURE]
    for name, want in (
        ("min", every.min((0, 1, 2))), ("max", every.max((0, 1, 2))),
        ("mean", every.mean((0, 1, 2))), ("std", every.std((0, 1, 2))),
    ):  # fmt: skip
        assert np.shape(stats[name]) == (3, 1, 1)
        np.testing.assert_allclose(np.ravel(stats[name]), want, rtol=1e-9)
    assert stats["count"] == [len(every)]


@pytest.mark.parametrize("seen", ["columns and a picture", "a picture"])
def test_the_state_of_a_policy_that_observes_pictures(seen, tmp_path):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.1
    columns = cfg.observations["policy"]
    picture = ObservationTermCfg(lambda env: painted(env.sim))
    mixed = {"eye": picture, **columns.terms}
    terms = mixed if seen == "columns and a picture" else {"eye": picture}
    cfg.observations = {"policy": ObservationGroupCfg(terms), "critic": columns}
    with (env := Env(cfg, 2, seed=2)).record(tmp_path / "run.simrec"):
        for _ in range(6):
            env.step(torch.zeros(2, env.action_dim))
    assert write_lerobot(tmp_path / "run.simrec", tmp_path / "set") == 2
    table = pq.read_table(tmp_path / "set/data/chunk-000/file-000.parquet").to_pandas()
    first = next(episodes_of(tmp_path / "run.simrec")).columns
    name = next(iter(columns.terms))
    name = f"policy/{name}" if len(terms) > 1 else "critic"
    np.testing.assert_array_equal(
        np.stack(table["observation.state"])[:5], first[f"observation/{name}"]
    )
    pictures = "policy" if len(terms) == 1 else "policy/eye"
    write_lerobot(tmp_path / "run.simrec", tmp_path / "flat", state=pictures)
    table = pq.read_table(tmp_path / "flat/data/chunk-000/file-000.parquet").to_pandas()
    want = first[f"observation/{pictures}"].reshape(5, -1)
    np.testing.assert_array_equal(np.stack(table["observation.state"])[:5], want)


def test_other_formats_have_them_too(run, tmp_path):
    first = next(episodes_of(run))
    write_hdf5(run, tmp_path / "demos.hdf5")
    with h5py.File(tmp_path / "demos.hdf5") as file:
        pictures = file["data/demo_0/obs/front_image"][:]
    np.testing.assert_array_equal(pictures, first.columns["camera/front"])
    write_foxglove(run, tmp_path / "log.mcap", worlds=[1], names=["camera/front"])
    with open(tmp_path / "log.mcap", "rb") as file:
        messages = list(make_reader(file).iter_messages())
    schema, channel, message = messages[3]
    assert (schema.name, channel.topic) == (
        "foxglove.RawImage",
        "/world_1/camera/front",
    )
    told = json.loads(message.data)
    assert (told["width"], told["height"], told["encoding"]) == (WIDTH, HEIGHT, "rgb8")
    data = np.frombuffer(base64.b64decode(told["data"]), np.uint8)
    mine = next(e for e in episodes_of(run) if e.world == 1).columns
    at = int(np.abs(mine["time"] * 1e9 - message.log_time).argmin())  # sorted by time
    np.testing.assert_array_equal(data, mine["camera/front"][at].ravel())


def test_what_cannot_be_is_said(run, tmp_path):
    cfg = tasks.make_cfg("Cartpole-Balance")
    with raises(UnknownNameError, name="sight"):
        with_cameras(cfg, ["sight"], None)
    small = with_cameras(cfg, ["view"], (34, 18)).scene.cameras["view"]
    assert (small.width, small.height) == (34, 18)
    films = lerobot_films.Films(tmp_path, FEATURE, 50.0)
    with raises(InvalidInputError, name="observation.images.front"):
        films.add(np.zeros((2, 18, 33, 3), np.uint8))
