"""The page of a recording: its scene, plots, marks and provenance in one file."""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from simstate.base.checks import as_path, number
from simstate.base.errors import InvalidInputError
from simstate.base.files import replacing
from simstate.base.mujoco_version import installed_versions
from simstate.data.replay.playback import player_for
from simstate.data.replay.recorded_course import RecordedCourse
from simstate.env import Env
from simstate.record import Recording
from simstate.record.columns import IMAGE
from simstate.simulation import Simulation
from simstate.view.shared_page import PageData, PageScene, page_html

MOST_WORLDS = 4
"""Default number of worlds to show."""
MOST_FRAMES = 3000
MOST_VALUES = 1_000_000
"""Maximum number of plotted values; longer columns keep extremes of intervals."""
_FEWEST_SAMPLES, _MOST_SAMPLES = 100, 4000
"""Minimum and maximum number of samples of a plotted column."""
MOST_COMPONENTS = 256
"""Maximum number of components to plot of a column."""
MOST_MARKS = 2000
_MOST_TEXT = 200


def share_recording(
    recording: Recording,
    path: str | Path,
    *,
    worlds: Sequence[int] | Tensor | None = None,
    played_in: Simulation | Env | None = None,
    fps: float = 30.0,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> int:
    """Write a recording as one HTML file that needs no server; return its size [bytes].

    The steps are re-run for the scene, as by `replay`; plots show the recorded columns.

    Args:
        recording: the recording to share.
        path: the file to write, ending in .html.
        worlds: ids of the recorded worlds to show; None: the first `MOST_WORLDS`.
        played_in: worlds to re-run the steps in; None: create them, as by `replay`.
        fps: frames of the scene per second of simulated time.
        on_progress: called with the completed fraction.
    """
    target = as_path("path", path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(
            f"path must end in .html, got {str(path)!r}.", name=str(path)
        )
    number("fps", fps, more_than=0)
    shown = list(recording.places(worlds, MOST_WORLDS))
    with replacing(target) as part:  # first, since it raises if path is not writable
        course = RecordedCourse(player_for(recording, played_in, None, None, None))
        page = page_html(_packed(recording, course, shown, fps, on_progress))
        part.write_bytes(page)
    on_progress(1.0)
    return len(page)


def _packed(
    recording: Recording,
    course: RecordedCourse,
    shown: Sequence[int],
    fps: float,
    on_progress: Callable[[float], None],
) -> str:
    """Return the data of the page."""
    data = PageData()
    scene = PageScene(course, shown, data)
    timeline = course.timeline
    assert timeline is not None
    times = timeline.times
    steps = _sampled(times, fps)
    for step in steps:
        course.go_to(step)
        scene.sample()
        on_progress(0.9 * step / timeline.num_steps)
    marks = [
        [round(float(times[m.step]), 6), m.kind, m.world, m.text]
        for m in timeline.marks
        if m.world in shown
    ]
    return data.packed(
        {
            "title": recording.path.name,
            "about": _about(recording),
            "times": data.put(times[steps].astype(np.float32)),
            "scene": scene.described(),
            "columns": _columns(recording, [recording.place(w) for w in shown], data),
            "marks": marks[:MOST_MARKS],
            "left_out": max(len(marks) - MOST_MARKS, 0),
            "tables": _tables(recording),
            "command": _command(recording),
        }
    )


def _sampled(times: np.ndarray, fps: float) -> list[int]:
    """Return the steps nearest to frames at a rate, with the first and the last."""
    count = math.ceil(float(times[-1]) * fps - 1e-6) + 1
    wanted = np.linspace(0.0, float(times[-1]), min(max(count, 2), MOST_FRAMES))
    found = np.unique(np.searchsorted(times, wanted - 1e-9).clip(0, len(times) - 1))
    return found.tolist()


def _columns(
    recording: Recording, places: Sequence[int], data: PageData
) -> list[dict[str, Any]]:
    """Return the numeric columns, with contracts of their components."""
    widths = {
        name: min(math.prod(contract["shape"]), MOST_COMPONENTS)
        for name in recording.names
        for contract in [recording.contract(name)]
        if contract["axes"] != IMAGE
    }
    most = MOST_VALUES // max(sum(widths.values()) * len(places), 1)
    elapsed = recording.elapsed.numpy()
    keep = min(max(most, _FEWEST_SAMPLES), _MOST_SAMPLES)
    every = math.ceil(2 * len(elapsed) / keep) if len(elapsed) > keep else 1
    times = data.put(thinned(elapsed[:, None], every, True)[:, 0].astype(np.float32))
    found: list[dict[str, Any]] = []
    for name, width in widths.items():
        if not width:
            continue
        contract = recording.contract(name)
        each = recording.component_contracts(name)[:width]
        names = contract["names"][:width] or [f"[{k}]" for k in range(width)]
        values = _values(recording, name, places)[..., :width]
        flat = values.reshape(len(values), -1).astype(np.float64)
        kept = thinned(flat, every, False).astype(np.float32)
        found.append(
            {
                "name": name,
                "unit": contract["unit"],
                "names": names if width > 1 else [name],
                "contracts": [[one.unit, one.axes, one.point] for one in each],
                "left_out": math.prod(contract["shape"]) - width,
                "every": every,
                "times": times,
                "values": data.put(kept.T),  # (worlds × components, samples)
            }
        )
    return found


def _values(recording: Recording, name: str, places: Sequence[int]) -> np.ndarray:
    """Return a column of some worlds; (samples, worlds, components)."""
    parts = [
        recording.read_block(block, [name])[name][:, list(places)].reshape(
            block.samples, len(places), -1
        )
        for block in recording.blocks
    ]
    return np.concatenate(parts)


def thinned(values: np.ndarray, every: int, is_time: bool) -> np.ndarray:
    """Return the minimum and maximum of each interval of samples; times keep its ends.

    Args:
        values: (samples, components).
        every: number of samples of an interval; 1 returns all.
        is_time: True for times, which increase.
    """
    if every == 1:
        return values
    count = -(-len(values) // every)
    padded = np.concatenate(
        [values, np.repeat(values[-1:], count * every - len(values), 0)]
    )
    split = padded.reshape(count, every, -1)
    low, high = split[:, 0], split[:, every // 2]
    if not is_time:
        low, high = split.min(1), split.max(1)
    return np.stack([low, high], axis=1).reshape(2 * count, -1)


def _about(recording: Recording) -> str:
    sim = recording.header["simulation"]
    what = recording.header.get("task") or ", ".join(map(str, sim["entities"]))
    return (
        f"{what} · {len(recording.worlds)} of {sim['num_envs']} worlds recorded on "
        f"{sim['engine']}, seed {sim['seed']}, time step {sim['timestep']:g} s"
    )


def _tables(recording: Recording) -> dict[str, list[list[str]]]:
    """Return the tables of a page: rows of name and value."""
    header = recording.header
    digest = hashlib.sha256()
    with open(recording.path, "rb") as file:
        while piece := file.read(2**20):
            digest.update(piece)
    run = {
        "file": recording.path.name,
        "SHA-256": digest.hexdigest(),
        "size": f"{recording.path.stat().st_size:,} bytes",
        "complete": "yes" if recording.is_whole else recording.missing or "cut off",
        "kind": recording.kind,
        "task": header.get("task") or "none",
        "steps": recording.num_steps,
        "samples": recording.num_samples,
        "recorded worlds": recording.worlds,
        **header["simulation"],
    }
    versions = dict(header["versions"])
    shared = {f"{k} (page)": v for k, v in installed_versions().items()}
    rest = {k: v for k, v in shared.items() if versions.get(k[:-7]) != v}
    return {
        "Run": _rows(run),
        "Versions": _rows({**versions, **rest}),
        "Settings": _rows(dict(header.get("settings") or {})),
    }


def _rows(facts: dict[str, Any]) -> list[list[str]]:
    return [[str(name), _short(value)] for name, value in facts.items()]


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def _command(recording: Recording) -> str:
    """Return the command that replays the run."""
    sim = recording.header["simulation"]
    is_code = recording.kind == "sim" and (
        sim["code"] or sim["sensors"] or sim["integrator"] is not None
    )
    made = " --made-by FILE.py:FUNCTION" if is_code else ""
    return f"simstate replay {shlex.quote(recording.path.name)}{made}"
