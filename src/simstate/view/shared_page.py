"""A run as one HTML file, which needs neither a server nor a network.

Everything from the recording is data in one compressed block: none of its text is part
of the markup, and the page's script writes text nodes only. The content security policy
allows only that script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import mujoco
import numpy as np

from simstate.view.course import Course
from simstate.view.floor import floor_colour
from simstate.view.geometry import poses
from simstate.view.grid import bounds, offsets, shares_ground, size_of
from simstate.view.one_world import OneWorld, current, model_of_world
from simstate.view.page_meshes import PageMeshes
from simstate.view.shot import floors, rgba_of, sky_of, sun_of
from simstate.view.soft import soft_of
from simstate.world.worlds import worlds_of

_ALIGNED = 8
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src blob:; base-uri 'none'; form-action 'none'"
)


class PageData:
    """The data of a page: a description, and arrays that it refers to."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def put(self, values: np.ndarray) -> dict[str, Any]:
        """Store an array; return its reference for the description."""
        data = np.ascontiguousarray(values).tobytes()
        place = {"at": self._size, "type": values.dtype.str[1:], "size": values.size}
        data += bytes(-len(data) % _ALIGNED)
        self._parts.append(data)
        self._size += len(data)
        return place

    def packed(self, description: Mapping[str, Any]) -> str:
        """Return length of the description, description and arrays, as base64."""
        text = json.dumps(description, separators=(",", ":")).encode()
        text += b" " * (-len(text) % _ALIGNED)
        head = len(text).to_bytes(_ALIGNED, "little")
        data = zlib.compress(b"".join([head, text, *self._parts]), 9)
        return base64.b64encode(data).decode()


def page_html(packed: str) -> bytes:
    """Return the page with its data, as UTF-8."""
    folder = files("simstate.view")
    parts = {
        kind: folder.joinpath(f"shared_page.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "css", "js")
    }
    script, style = (
        base64.b64encode(hashlib.sha256(parts[kind].encode()).digest()).decode()
        for kind in ("js", "css")
    )
    page = parts["html"].replace("@POLICY", _POLICY.format(script=script, style=style))
    page = page.replace("@STYLE", parts["css"]).replace("@SCRIPT", parts["js"])
    return page.replace("@DATA", packed).encode()


class PageScene:
    """The scene of a page: meshes, and a frame for each `sample`.

    Args:
        course: the worlds.
        shown: ids of the worlds to draw.
        data: storage of the arrays.
    """

    def __init__(self, course: Course, shown: Sequence[int], data: PageData) -> None:
        self._parts, self._shown, self._data = (
            worlds_of(course.worlds),
            list(shown),
            data,
        )
        self._pos: list[np.ndarray] = []
        self._quat: list[np.ndarray] = []
        model = self._parts.model
        with current(self._parts):
            first = OneWorld(course.worlds, course.rays, self._shown[0], 1.0)
            low, high = bounds(first)
            self._floors = [
                _floor(model, int(geom), first) for geom in self._visible_floors()
            ]
        self._centre = (low + high) / 2.0
        self._size = size_of(low, high)
        on_one_ground = shares_ground(model)
        spacing = 0.0 if on_one_ground else 1.6 * self._size
        self._offsets = offsets(len(self._shown), spacing)
        meshes = PageMeshes(data.put)
        fixed = np.flatnonzero(model.body_weldid == 0).tolist()
        differ = bool(self._parts.engine.expanded)
        self._draws = [
            meshes.draws(
                model_of_world(self._parts, world) if differ else model,
                fixed if row and on_one_ground else [],
            )
            for row, world in enumerate(self._shown)
        ]
        self._meshes = meshes.meshes

    def _visible_floors(self) -> list[int]:
        model = self._parts.model
        return [int(geom) for geom in floors(model) if rgba_of(model, int(geom))[3]]

    def sample(self) -> None:
        """Add the current poses of all bodies."""
        with current(self._parts):
            pos, quat = poses(self._parts, self._shown)
        self._pos.append(pos)
        self._quat.append(quat)

    def described(self) -> dict[str, Any]:
        """Return the scene for the description of the page."""
        model = self._parts.model
        sky = sky_of(model)
        moving = np.flatnonzero(model.body_weldid)
        return {
            "bodies": [model.body(k).name or f"body {k}" for k in range(model.nbody)],
            "followed": int(moving[0]) if len(moving) else 0,
            "worlds": self._shown,
            "offsets": self._offsets.tolist(),
            "pos": self._data.put(np.array(self._pos, np.float32)),
            "quat": self._data.put(
                (32767.0 * np.array(self._quat)).round().astype(np.int16)
            ),
            "meshes": self._meshes,
            "draws": self._draws,
            "floors": self._floors,
            "sky": [sky.low.tolist(), sky.high.tolist()],
            "sun": sun_of(model).tolist(),
            "centre": self._centre.tolist(),
            "size": self._size,
            "soft": len(soft_of(model)),
        }


def _floor(model: mujoco.MjModel, geom: int, first: OneWorld) -> dict[str, Any]:
    """Return a plane of the model: its pose, sides and mean colour."""
    pos, rot = first.field("geom_xpos")[geom], first.field("geom_xmat")[geom]
    return {
        "pos": pos.tolist(),
        "rot": rot.reshape(-1).tolist(),
        "half": model.geom_size[geom, :2].tolist(),
        "rgb": (floor_colour(model, geom) / 255.0).tolist(),
    }
