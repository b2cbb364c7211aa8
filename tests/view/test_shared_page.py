"""A run as one page: what is in the file, and what Chromium does with it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import zlib
from html import escape
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import set_fewest_samples
from tests.raised import raises
from tests.view.chromium import Chromium, wait_until

from simstate import EntityCfg, InvalidInputError, SceneCfg, Simulation
from simstate.base.errors import FileError
from simstate.cli import main
from simstate.data.replay import recording_page
from simstate.env import Env, tasks
from simstate.record import Recording
from simstate.view.page_meshes import PageMeshes, welded
from simstate.view.shared_page import PageData

HOSTILE = "</script><img src=x onerror=window.hacked=1>\"'<script>window.hacked=2//"
ROBOT = """
<mujoco>
  <option timestep="0.01"/>
  <asset>
    <texture name="check" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1"
      width="64" height="64"/>
    <material name="check" texture="check" rgba="0.9 0.9 0.9 1"/>
    <mesh name="wedge" vertex="0 0 0  .2 0 0  0 .3 0  0 0 .1"
      texcoord="0 0  1 0  0 1  1 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="4 3 1" pos="0 0 -0.2" quat="1 0.02 0.01 0"/>
    <body name="ARM" pos="0.1 0.2 0.9" quat="0.9 0.1 0.3 0.2">
      <joint name="WILD" axis="0.1 1 0.2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0.02 0" size="0.03" mass="0.4"
        rgba="0.2 0.8 0.3 1"/>
      <body name="hand" pos="0.3 0.02 0">
        <joint name="slide" type="slide" axis="1 0 0.2"/>
        <geom type="box" size="0.05 0.03 0.02" pos="0.02 0.01 0" mass="0.2"
          rgba="0.8 0.2 0.3 0.5"/>
        <geom type="mesh" mesh="wedge" material="check" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="m" joint="WILD" gear="2"/><motor name="n" joint="slide" gear="3"/>
  </actuator>
</mujoco>
"""


def record(path: Path, name: str = "wild", steps: int = 60) -> None:
    """Three worlds, none alike, one of which is reset, one written, one diverges."""
    text = ROBOT.replace("WILD", escape(name)).replace("ARM", escape(name))
    scene = SceneCfg(
        entities={"arm": EntityCfg(model=text)}, ground=None, timestep=None
    )
    sim = Simulation(scene, 3, seed=7, on_divergence="mask")
    generator = torch.Generator().manual_seed(2)
    sim.data.qvel[:] = torch.randn(3, 2, generator=generator, dtype=sim.dtype)
    quantities = ["joint_pos", "body_link_pos_w", "body_link_quat_w"]
    with sim.record(path, quantities=quantities, worlds=[2, 0]):
        for k in range(steps):
            sim.data.ctrl[:] = torch.randn(3, 2, generator=generator, dtype=sim.dtype)
            if k == 20:
                sim.reset([0])
            if k == 40:
                sim.data.qvel[2, 0] = 1e12
            sim.step()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "run.simrec"
    record(path)
    return path


def read_page(page: Path) -> tuple[str, dict[str, Any], Any]:
    """Return the markup without the data, the description, and a reader of arrays."""
    text = page.read_text(encoding="utf-8")
    (packed,) = re.findall(r'id="data">([A-Za-z0-9+/=]*)</script>', text)
    data = zlib.decompress(base64.b64decode(packed))
    size = int.from_bytes(data[:8], "little")
    run = json.loads(data[8 : 8 + size])

    def array(ref: dict[str, Any]) -> np.ndarray:
        return np.frombuffer(data, "<" + ref["type"], ref["size"], 8 + size + ref["at"])

    return text.replace(packed, ""), run, array


@pytest.fixture(scope="module")
def shared(path: Path) -> Path:
    page = path.with_suffix(".html")
    with Recording(path) as recording:
        recording.share(page)
    return page


def test_the_bodies_are_where_they_were_recorded(path: Path, shared: Path) -> None:
    _, run, array = read_page(shared)
    scene = run["scene"]
    assert scene["worlds"] == [2, 0]
    times = array(run["times"])
    frames = len(times)
    pos = array(scene["pos"]).reshape(frames, 2, len(scene["bodies"]), 3)
    quat = array(scene["quat"]).reshape(frames, 2, len(scene["bodies"]), 4) / 32767
    with Recording(path) as recording:
        samples = np.searchsorted(recording.elapsed.numpy(), times - 1e-4)
        assert times[-1] == pytest.approx(0.6)
        assert frames == 19  # 0.6 s at 30 frames per second, with both ends
        bodies = [scene["bodies"].index(f"arm/{n}") for n in ("wild", "hand")]
        link = recording["body_link_pos_w"].numpy()[samples]
        turn = recording["body_link_quat_w"].numpy()[samples]
    np.testing.assert_allclose(pos[:, :, bodies], link[:, :, -2:], atol=1e-6)
    np.testing.assert_allclose(quat[:, :, bodies], turn[:, :, -2:], atol=2e-5)


def test_meshes_are_those_of_the_model(shared: Path) -> None:
    _, run, array = read_page(shared)
    for row in run["scene"]["draws"]:
        colours = [one["rgba"] for one in row]
        assert [0.2, 0.8, 0.3, 1.0] in [np.round(c, 1).tolist() for c in colours]
        assert any(c[3] == 0.75 for c in colours)  # drawn twice: 1 − (1 − 0.5)²
    (image,) = [one for one in run["scene"]["meshes"] if "image" in one]
    place = run["scene"]["meshes"].index(image)
    for row in run["scene"]["draws"]:  # its colours are those of the image
        (one,) = [one for one in row if one["mesh"] == place]
        assert one["rgba"] == [1.0, 1.0, 1.0, 1.0]
    assert bytes(array(image["image"])[1:4]) == b"PNG"
    boxed = run["scene"]["draws"][0][1]["mesh"]
    told = run["scene"]["meshes"][boxed]
    places = array(told["places"]).reshape(-1, 3) * told["step"] + told["low"]
    np.testing.assert_allclose(np.abs(places).max(0), [0.05, 0.03, 0.02], atol=1e-5)
    (floor,) = run["scene"]["floors"]
    assert floor["half"] == [4.0, 3.0]
    assert floor["pos"] == [0.0, 0.0, -0.2]


def test_worlds_are_spaced_by_the_size_of_what_moves(shared: Path) -> None:
    """Bounds are those of the corners of all boxes about the moving geoms."""
    _, run, _ = read_page(shared)
    model = mujoco.MjModel.from_xml_string(
        ROBOT.replace("WILD", "wild").replace("ARM", "wild")
    )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    moving = np.flatnonzero(model.geom_bodyid)
    corners = np.concatenate([
        data.geom_xpos[k] + (model.geom_aabb[k, :3] + signs * model.geom_aabb[k, 3:])
        @ data.geom_xmat[k].reshape(3, 3).T
        for k in moving
    ])  # fmt: skip
    low, high = corners.min(0), corners.max(0)
    scene, size = run["scene"], np.linalg.norm(high - low) / 1.8
    assert scene["size"] == pytest.approx(size, rel=1e-6)
    np.testing.assert_allclose(scene["centre"], (low + high) / 2.0, atol=1e-6)
    expected = [[-0.8 * size, 0.0, 0.0], [0.8 * size, 0.0, 0.0]]
    np.testing.assert_allclose(scene["offsets"], expected, atol=1e-6)
    rot = np.reshape(scene["floors"][0]["rot"], (3, 3))
    np.testing.assert_allclose(rot, data.geom_xmat[0].reshape(3, 3), atol=1e-9)
    assert scene["followed"] == scene["bodies"].index("arm/wild")


def test_columns_have_their_values_and_contracts(path: Path, shared: Path) -> None:
    _, run, array = read_page(shared)
    column = run["columns"][0]
    assert column["name"] == "arm.joint_pos"
    assert [c[0] for c in column["contracts"]] == ["rad", "m"]
    with Recording(path) as recording:
        then = recording["joint_pos"].numpy()
        now = array(column["values"]).reshape(2, 2, -1).transpose(2, 0, 1)
        np.testing.assert_allclose(now, then, rtol=1e-6)
        np.testing.assert_allclose(
            array(column["times"]), recording.elapsed.numpy(), atol=1e-6
        )
        contract = recording.contract("body_link_pos_w")
    told = next(c for c in run["columns"] if c["name"] == "arm.body_link_pos_w")
    assert told["contracts"][0] == ["m", contract["axes"], contract["point"]]


def test_marks_seeds_versions_and_the_checksum(path: Path, shared: Path) -> None:
    _, run, _ = read_page(shared)
    kinds = {(mark[1], mark[2]): mark[0] for mark in run["marks"]}
    assert kinds["reset", 0] == pytest.approx(0.2)
    assert kinds["divergence", 2] > 0.4
    rows = dict(run["tables"]["Run"])
    assert rows["SHA-256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert rows["seed"] == "7"
    assert "mujoco" in dict(run["tables"]["Versions"])
    assert run["command"] == "simstate replay run.simrec"


def test_long_columns_keep_their_extremes(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_page, "MOST_VALUES", 100)
    page = tmp_path / "thin.html"
    with Recording(path) as recording:
        set_fewest_samples(monkeypatch, 10)
        recording.share(page, [0])
        then = recording["joint_pos"].numpy()[:, 1]
    _, run, array = read_page(page)
    column = run["columns"][0]
    values = array(column["values"]).reshape(2, -1)
    assert values.shape[1] <= 12
    np.testing.assert_allclose(values.max(1), then.max(0), rtol=1e-6)
    np.testing.assert_allclose(values.min(1), then.min(0), rtol=1e-6)
    times = array(column["times"])
    assert (np.diff(times) >= 0.0).all()


def test_no_text_of_a_recording_is_markup(tmp_path: Path, shared: Path) -> None:
    path = tmp_path / "x'\"<script>hacked=3<!-- &amp;.simrec"
    record(path, HOSTILE, 5)
    page = tmp_path / "page.html"
    with Recording(path) as recording:
        recording.share(page)
    markup, run, _ = read_page(page)
    assert any(HOSTILE in name for name in run["scene"]["bodies"])
    assert run["title"] == path.name
    assert markup == read_page(shared)[0]
    assert "hacked" not in markup
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', markup)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    (script,) = re.findall(r"<script>(.*?)</script>", markup, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    for call in ("innerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert call not in script
    assert not re.search(r"(?:src|href)=|https?:", markup)


def test_what_cannot_be_written_is_rejected_before_the_work(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_page, "RecordedCourse", None)  # used first
    (tmp_path / "folder.html").mkdir()
    with Recording(path) as recording:
        for name in ("no/folder/page.html", "folder.html"):
            with raises(FileError, name=str(tmp_path / name)):
                recording.share(tmp_path / name)
        with raises(InvalidInputError, file="page.pdf"):
            recording.share(tmp_path / "page.pdf")
        with raises(InvalidInputError, name="world"):
            recording.share(tmp_path / "page.html", [1])
        with raises(InvalidInputError, name="fps"):
            recording.share(tmp_path / "page.html", fps=0.0)
    assert [one.name for one in tmp_path.iterdir()] == ["folder.html"]


def test_the_command_writes_a_page_of_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = Env(tasks.find("Cartpole-Balance").env_cfg(), 3)
    path = tmp_path / "task run.simrec"
    with env.record(path, task="Cartpole-Balance"):
        env.reset()
        for _ in range(4):
            env.step(torch.zeros(3, 1))
    assert main(["share", str(path), "--worlds", "1", "--fps", "100"]) == 0
    assert "task run.html" in capsys.readouterr().out
    _, run, _ = read_page(path.with_suffix(".html"))
    assert run["command"] == "simstate replay 'task run.simrec'"
    assert run["scene"]["worlds"] == [1]
    assert len(run["tables"]["Settings"]) > 10
    assert main(["share", str(path), "--out", str(tmp_path / "no" / "x.html")]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_welded_triangles_keep_edges_and_smooth_curves() -> None:
    import trimesh

    box: Any = trimesh.creation.box(extents=(0.4, 0.2, 0.6))
    box.apply_translation([0.3, -0.1, 0.2])
    found = welded(box.triangles, np.zeros((12, 3, 0)))
    assert len(found.places) == 24  # three normals at each of eight corners
    np.testing.assert_allclose(found.low, box.bounds[0])
    np.testing.assert_allclose(found.step * 65535, [0.4, 0.2, 0.6])
    normals = found.normals / 127.0
    assert np.isclose(np.abs(normals).max(1), 1.0, atol=0.01).all()
    places = found.low + found.places * found.step
    faces = places[found.faces]
    np.testing.assert_allclose(faces, box.triangles, atol=1e-5)
    ball: Any = trimesh.creation.icosphere(subdivisions=3, radius=0.7)
    found = welded(ball.triangles, np.zeros((len(ball.faces), 3, 0)))
    assert len(found.places) == len(ball.vertices)
    places = found.low + found.places * found.step
    np.testing.assert_allclose(found.normals / 127.0, places / 0.7, atol=0.02)


def test_corners_of_other_colours_are_not_welded_and_flat_triangles_are_gone() -> None:
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 0]])
    corners = square[[[0, 1, 2], [0, 2, 3], [1, 1, 2]]]
    same = np.tile([7.0, 8.0], (3, 3, 1))
    found = welded(corners, same)
    assert (len(found.places), len(found.faces)) == (4, 2)
    assert found.extra.tolist() == [[7.0, 8.0]] * 4
    np.testing.assert_array_equal(found.normals, [[0, 0, 127]] * 4)
    other = same.copy()
    other[1, :, 1] = 9.0
    found = welded(corners, other)
    assert len(found.places) == 6
    places = found.low + found.places * found.step
    np.testing.assert_allclose(places[found.faces], corners[:2], atol=1e-4)
    np.testing.assert_array_equal(found.extra[found.faces], other[:2])
    along = np.arange(7501.0)[:, None, None, None] * [1.0, 0.0, 0.0]
    many = (corners[:2] + along).reshape(-1, 3, 3)
    coarse = welded(many, np.zeros((len(many), 3, 0)))
    np.testing.assert_allclose(coarse.step[:2] * 8191, [7501.0, 2.0])
    fine = welded(many[2:], np.zeros((len(many) - 2, 3, 0)))
    np.testing.assert_allclose(fine.step[:2] * 65535, [7500.0, 2.0])


def test_geoms_that_look_alike_share_a_mesh() -> None:
    text = """
    <mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 1"><freejoint/>
        <geom type="box" size="0.1 0.2 0.3" pos="0.5 0 0" quat="0.8 0.6 0 0"
          rgba="0.2 0.4 0.6 0.5"/>
        <geom type="box" size="0.1 0.2 0.3" pos="0 0.7 0" rgba="0.2 0.4 0.6 0.5"/>
      </body>
      <body pos="3 0 1"><freejoint/><geom size="0.2" rgba="1 0 0 1" group="2"/>
        <geom size="0.9" group="3"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    made = PageMeshes(lambda array: {"array": array})
    one, two, ball = made.draws(model, [])
    assert (one["mesh"], two["mesh"], ball["mesh"]) == (0, 0, 1)
    assert (one["body"], ball["body"]) == (1, 2)
    assert one["pos"] == [0.5, 0.0, 0.0]
    np.testing.assert_allclose(one["quat"], [0.8, 0.6, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(one["rgba"], [0.2, 0.4, 0.6, 0.75], atol=3e-3)
    for mesh, size in zip(made.meshes, ([0.1, 0.2, 0.3], [0.2] * 3), strict=True):
        places = mesh["places"]["array"] * mesh["step"] + mesh["low"]
        np.testing.assert_allclose(np.abs(places).max(0), size, rtol=0.02)
        assert mesh["faces"]["array"].dtype == np.uint16
        assert mesh["normals"]["array"].dtype == np.int8
        assert "colours" not in mesh
    assert [found["mesh"] for found in made.draws(model, [1])] == [1]
    assert len(made.meshes) == 2


def test_meshes_of_several_colours_have_one_for_each_vertex() -> None:
    text = """
    <mujoco><asset><texture name="c" type="cube" builtin="gradient" rgb1="1 0 0"
      rgb2="0 0 1" width="8" height="8"/><material name="c" texture="c"/>
      <mesh name="m" builtin="sphere" params="2"/></asset><worldbody><body><freejoint/>
      <geom type="mesh" mesh="m" material="c"/></body></worldbody></mujoco>"""
    made = PageMeshes(lambda array: {"array": array})
    (ball,) = made.draws(mujoco.MjModel.from_xml_string(text), [])
    assert ball["rgba"] == [1.0, 1.0, 1.0, 1.0]
    (mesh,) = made.meshes
    colours = mesh["colours"]["array"]
    assert (colours.shape, colours.dtype) == (mesh["places"]["array"].shape, np.uint8)
    red, _, blue = colours.astype(int).T
    assert (red > blue + 50).any()
    assert (blue > red + 50).any()


def test_arrays_begin_at_multiples_of_eight_bytes() -> None:
    """As the page's views of numbers of eight bytes need it."""
    data, arrays = PageData(), []
    for count, kind in ((3, np.uint8), (5, np.float64), (7, np.int16), (1, np.uint8)):
        arrays.append(np.arange(count).astype(kind))
    places = [data.put(array) for array in arrays]
    content = zlib.decompress(base64.b64decode(data.packed({"name": "é"})))
    size = int.from_bytes(content[:8], "little")
    assert size % 8 == 0
    assert json.loads(content[8 : 8 + size]) == {"name": "é"}
    for array, place in zip(arrays, places, strict=True):
        assert place["at"] % 8 == 0
        begin = 8 + size + place["at"]
        found = np.frombuffer(content, "<" + place["type"], place["size"], begin)
        np.testing.assert_array_equal(found, array)


# In Chromium.


def opened(browser: Chromium, page: Path) -> None:
    browser.errors.clear()
    browser.open(page.as_uri())
    wait_until(lambda: browser.evaluate("document.body?.dataset.opened"), "the page")


def go_to(browser: Chromium, time: float) -> None:
    """Move the slider, as a hand does."""
    browser.evaluate(
        f"(() => {{ const s = document.getElementById('time'); s.value = {time};"
        "s.dispatchEvent(new Event('input')); })()"
    )
    shown = f"document.getElementById('clock').textContent.startsWith('{time:.2f} ')"
    wait_until(lambda: browser.evaluate(shown), "the time")


def text(browser: Chromium, name: str) -> str:
    return browser.evaluate(f"document.getElementById('{name}').textContent")


@pytest.mark.browser
def test_the_page_scrubs_plots_and_tells_contracts(
    browser: Chromium, shared: Path, tmp_path: Path
) -> None:
    opened(browser, shared)
    first = browser.screenshot()
    assert text(browser, "title") == "run.simrec"
    go_to(browser, 0.5)
    assert browser.evaluate("document.body.dataset.frame") == "15"
    assert "✖" in text(browser, "happened")
    assert browser.screenshot() != first
    place = browser.evaluate(
        "(() => { const c = document.querySelector('figure canvas');"
        "c.scrollIntoView(); const b = c.getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    where = {"x": place[0], "y": place[1]}
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", **where)
    told = wait_until(lambda: text(browser, "tip"), "the contract")
    assert re.search(r"(wild|slide): \S+ (rad|m)\nat 0\.\d+ s, world 2", told)
    assert "axes:" in told
    assert "point:" in told
    for kind in ("mousePressed", "mouseReleased"):  # a plot scrubs, too
        browser.call(
            "Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where
        )
    near = "Math.abs(document.getElementById('time').value - 0.3) < 0.05"
    wait_until(lambda: browser.evaluate(near), "the time of the plot")
    browser.evaluate(
        "(() => { const w = document.getElementById('world'); w.selectedIndex = 1;"
        "w.dispatchEvent(new Event('change')); })()"
    )
    signs = "document.querySelector('#marks .reset')?.title || ''"
    assert "0.200 s" in browser.evaluate(signs)
    assert browser.errors == []


@pytest.mark.browser
def test_a_crafted_recording_runs_no_script(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "x'\"<script>hacked=3<!-- &amp;.simrec"
    record(path, HOSTILE, 5)
    with Recording(path) as recording:
        recording.share(tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    assert text(browser, "title") == path.name
    assert HOSTILE in browser.evaluate("document.body.innerText")
    assert browser.evaluate("typeof window.hacked") == "undefined"
    assert browser.evaluate("document.images.length") == 0
    assert browser.errors == []
    # Neither would markup that did get in: the policy is in force.
    browser.evaluate(
        "(() => { const s = document.createElement('script');"
        "s.textContent = 'window.hacked = 4'; document.body.append(s); })()"
    )
    assert browser.evaluate("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in error for error in browser.errors)
    got = browser.evaluate("fetch('https://example.org').then(() => 1, () => 0)")
    assert got == 0
