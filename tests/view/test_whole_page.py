"""Everything that a page is sent of fixed scenes: positions, sizes, colours, controls.

The positions, arrows and values of single overlays are compared with MuJoCo in other
files. Sizes, distances and colours of a picture have no other reference than the
picture itself: these tests hold them to tests/view/page.json. After a change that is
meant, `python -m tests.view.test_whole_page` writes it again. Of texts only the
numbers in them are compared.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.record.conftest import drive, scene
from tests.view.client import Client
from tests.view.scenes import make_sim, run_until
from tests.view.test_soft import MODEL

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.data.replay.recorded_course import RecordedCourse
from simstate.env import Env, tasks
from simstate.scene import models
from simstate.view import ComparedCourse, Course, start_viewer
from simstate.view.overlays import OVERLAYS
from simstate.view.viewer import Viewer

FILE = Path(__file__).with_name("page.json")
UNSTABLE = (
    "uuid", "container_uuid", "_tab_container_ids", "counter", "run_id", "type", "name",
    "owner", "label", "hint",
)  # fmt: skip
"""Parts of a message that name it, or that differ from run to run."""


@contextmanager
def all_overlays() -> Iterator[Viewer]:
    """Five worlds with all overlays of the third."""
    sim = make_sim(5)
    with sim.view(port=0, worlds=4, playing=False) as viewer:
        viewer.picture.look_at(2)
        for name in OVERLAYS:
            viewer.picture.show_overlay(name, True)
        yield viewer


@contextmanager
def dark_and_everywhere() -> Iterator[Viewer]:
    """Overlays of all worlds shown, in dark mode, with a trail behind one body."""
    sim = make_sim(5)
    with sim.view(port=0, worlds=3, playing=False) as viewer:
        picture = viewer.picture
        picture.everywhere, picture.scale, picture.spacing = True, 1.7, 0.9
        picture.place_worlds()
        picture.set_dark(True)
        picture.look_at(1)
        for name in ("link velocities", "contacts", "inertia", "trail"):
            picture.show_overlay(name, True)
        picture.follow(sim.model.body("robot/arm").id)
        for group in range(6):
            picture.show_group(group, True, group % 2 == 1)
        viewer.show()
        sim.step(5)
        yield viewer


@contextmanager
def quadrupeds() -> Iterator[Viewer]:
    """A task, with its commands drawn."""
    env = Env(tasks.find("Quadruped-Velocity").env_cfg(), 3, seed=4)
    with env.view(port=0, worlds=2, playing=False) as viewer:
        viewer.picture.look_at(1)
        for name in ("commands", "contacts"):
            viewer.picture.show_overlay(name, True)
        yield viewer


@contextmanager
def recording() -> Iterator[Viewer]:
    """A recording at its twelfth step."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder) / "run.simrec"
        sim = Simulation(scene(), 4, seed=3)
        with sim.record(path, fields=["qpos"], worlds=[3, 1], snapshot_every=0.1):
            drive(sim, 30, torch.Generator().manual_seed(0))
        course = stack.enter_context(RecordedCourse.open(path))
        course.go_to(12)
        yield stack.enter_context(
            start_viewer(course, "127.0.0.1", 0, None, None, False)
        )


@contextmanager
def comparison() -> Iterator[Viewer]:
    """Two simulations next to each other."""
    first, second = make_sim(), make_sim()
    second.data.qvel[:, 3] += 0.4
    second.scene["robot"].write_joint_position_to_sim(torch.tensor([[0.2, 0.01]] * 3))
    course = ComparedCourse(
        Course(first, first.rays), Course(second, second.rays), "other"
    )
    with start_viewer(course, "127.0.0.1", 0, None, 2, False) as viewer:
        viewer.picture.over = False
        yield viewer


LAMPS = MODEL.replace(
    "<worldbody>",
    """<worldbody>
  <light type="directional" dir="0.3 0.5 -1"/>
  <light pos="0.4 0.3 2" diffuse="0.5 0.7 0.9"/>
  <geom name="ground" type="plane" size="3 2 0.1" pos="0.1 0 -0.3" group="1"/>""",
)


@contextmanager
def lamps_and_soft_bodies() -> Iterator[Viewer]:
    """Lights of a model, a floor with edges, a skin and flexible bodies."""
    entity = EntityCfg(model=LAMPS)
    sim = Simulation(SceneCfg(entities={"it": entity}, ground=None, timestep=None), 2)
    with sim.view(port=0, worlds=2, playing=False) as viewer:
        viewer.picture.look_at(1)
        yield viewer


@contextmanager
def model_with_a_floor() -> Iterator[Viewer]:
    """A model of which one world is shown on its own ground."""
    sim = Simulation(models.spec("humanoid").compile(), 2, seed=1)
    with sim.view(port=0, playing=False) as viewer:
        viewer.picture.show_overlay("joints", True)
        yield viewer


SCENES: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        all_overlays, dark_and_everywhere, quadrupeds, recording, comparison,
        model_with_a_floor, lamps_and_soft_bodies,
    )
}  # fmt: skip


def page_of(viewer: Viewer) -> dict[str, list[float]]:
    """The numbers of all messages that a new client is sent, by message."""
    first = Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 1)
    for _ in range(3):
        viewer.show()
    client = Client(viewer.url)
    client.receive(
        lambda: client.messages[-1:] and "ReplayDone" in str(client.messages)
    )
    first.close()
    client.close()
    found: dict[str, list[float]] = {}
    seen: Counter[str] = Counter()
    labels: dict[str, str] = {}
    for message in client.messages:
        uuid = message.get("uuid", "")
        props = message.get("props") or {}
        label = labels.setdefault(uuid, props.get("label", f"control {len(labels)}"))
        name = message.get("name", label if uuid else "")
        key = f"{message['type']} {name}"
        seen[key] += 1
        parts = {k: v for k, v in message.items() if k not in UNSTABLE}
        numbers = [x for values in flat(parts) for x in values]
        if numbers:
            found[f"{key} #{seen[key]}"] = numbers
    return found


def flat(part: Any) -> Iterator[list[float]]:
    """The numbers in the parts of a message, in the order of their names."""
    if isinstance(part, dict):
        for name in sorted(part):
            if name not in UNSTABLE:
                yield from flat(part[name])
    elif isinstance(part, bytes):
        yield numbers_of_file(part)
    elif isinstance(part, str):
        yield [float(x) for x in re.findall(r"(?<!\w)-?\d+\.?\d*", part)]
    elif isinstance(part, list) and any(not isinstance(x, int | float) for x in part):
        for value in part:
            yield from flat(value)
    elif part is not None:
        yield shortened(np.asarray(part, np.float64).ravel())


def shortened(values: np.ndarray) -> list[float]:
    """A few numbers, or figures of many."""
    if len(values) > 24:
        size = np.abs(values)
        turns = values @ np.cos(np.arange(len(values)))
        values = [len(values), values.mean(), size.mean(), values.min(), values.max(),
                  turns, *values[:6], *values[-6:]]  # fmt: skip
    return [float(f"{x:.5g}") for x in values]


def numbers_of_file(content: bytes) -> list[float]:
    """Figures of a picture, or the bounds of a glTF file's arrays."""
    if content[:4] == b"glTF":
        size = int.from_bytes(content[12:16], "little")
        arrays = json.loads(content[20 : 20 + size])["accessors"]
        ends = [
            x for one in arrays for side in ("min", "max") for x in one.get(side, ())
        ]
        return shortened(np.array([len(arrays), *(a["count"] for a in arrays), *ends]))
    return shortened(np.asarray(Image.open(io.BytesIO(content)), np.float64).ravel())


@pytest.mark.parametrize("name", SCENES)
def test_a_page_shows_what_it_did(name):
    with SCENES[name]() as viewer:
        found = page_of(viewer)
    wanted = json.loads(FILE.read_text())[name]
    assert found.keys() == wanted.keys()
    wrong = {
        key: (found[key], values)
        for key, values in wanted.items()
        if len(found[key]) != len(values)
        or not np.allclose(found[key], values, rtol=2e-3, atol=2e-4)
    }
    assert not wrong


if __name__ == "__main__":
    pages = {}
    for name, made in SCENES.items():
        with made() as shown:
            pages[name] = page_of(shown)
    FILE.write_text(json.dumps(pages, indent=0, sort_keys=True) + "\n")
