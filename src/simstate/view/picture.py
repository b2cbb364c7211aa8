"""Picture: the drawing of a course, with worlds side by side, and overlays of one."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import viser

from simstate.view.answer_label import Asked
from simstate.view.body_overlays import Draw
from simstate.view.companion import Companion
from simstate.view.course import Course
from simstate.view.divergence_marks import DivergenceMarks
from simstate.view.eye import DIRECTIONS
from simstate.view.geometry import VISIBLE, Geometry, Mesh
from simstate.view.grid import (
    bounds,
    offsets,
    shares_ground,
    shown_worlds,
    size_of,
)
from simstate.view.one_world import OneWorld, current
from simstate.view.overlays import OVERLAYS
from simstate.view.paint import OnClick, Painting
from simstate.view.shapes import PURPLE, Path, Shape, shifted
from simstate.view.soft import SoftThings
from simstate.view.surroundings import Surroundings
from simstate.world.worlds import worlds_of

NOTHING = "nothing"
"""Entry for following no body."""
ROOT = "/shown"
"""Root of all nodes; it moves when a body is followed."""
TRAIL = "trail"
DIVERGED = "divergence"
MOST_WORLDS = 64
_TRAIL_LENGTH = 300

OnMesh = Callable[[Mesh], None]


class Picture:
    """The worlds shown, and the overlays of one of them.

    Args:
        server: the server whose scene it is drawn in.
        course: the course to draw.
        count: initial number of worlds.
        on_mesh: called with every mesh, to listen to the mouse.
        on_click: called with the text of a clicked shape.
        always: further overlays, which cannot be hidden.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        course: Course,
        count: int,
        on_mesh: OnMesh,
        on_click: OnClick,
        always: Mapping[str, Draw],
    ) -> None:
        self._server, self.course = server, course
        self._on_mesh, self._on_click = on_mesh, on_click
        self.world = 0
        """The world of overlays, plots and inputs."""
        self.scale = 1.0
        """Scale of arrows."""
        self.values = True
        """True if forces are labelled with their values."""
        self.everywhere = False
        """True if overlays are drawn in every world shown."""
        self.marks = DivergenceMarks()
        self._draws: dict[str, Draw] = {name: o.draw for name, o in OVERLAYS.items()}
        self._draws |= {name: draw for name, (_, draw) in course.overlays().items()}
        self._draws |= {TRAIL: self._trail_shapes, DIVERGED: self.marks.shapes}
        self._draws |= always
        self._always = tuple(always)
        self._paintings: dict[str, Painting] = {}
        self.overlays = {DIVERGED, *always}
        """The overlays that are shown."""
        self._trail: deque[np.ndarray] = deque(maxlen=_TRAIL_LENGTH)
        self._follow: int | None = None
        first = OneWorld(course.worlds, course.rays, 0, 1.0)
        low, high = bounds(first)
        self.middle = (low + high) / 2.0
        self.size = size_of(low, high)
        """Size of the moving parts [m]."""
        self.count = min(count, course.worlds.num_envs, MOST_WORLDS)
        on_one_ground = shares_ground(course.worlds.model)
        self.spacing = 0.0 if on_one_ground else float(f"{1.6 * self.size:.1g}")
        self.asked = Asked(server, f"{ROOT}/asked")
        """Label with the answer to a question."""
        self._root: Any = server.scene.add_frame(ROOT, show_axes=False)
        self._surroundings = Surroundings(server, course.worlds.model, self.size)
        self._geometry: Geometry | None = None
        self._soft: SoftThings | None = None
        self._companion: Companion | None = None
        self.over = on_one_ground
        """True if the companion is drawn over the worlds, else next to them."""
        self.place_worlds()

    # What is shown.

    def place_worlds(self) -> None:
        """Create the meshes of the worlds to show."""
        if self._geometry is not None:
            self._geometry.remove()
        parts = worlds_of(self.course.worlds)
        self.shown = shown_worlds(self.world, self.count, parts.num_envs)
        """The ids of the worlds that are shown."""
        self.offsets = offsets(len(self.shown), self.spacing)
        """Offset of each of them, world axes [m]; (shown, 3)."""
        shared = len(self.shown) == 1 or self.spacing == 0.0
        self._geometry = Geometry(
            self._server, parts, self.shown, shared, self.size, self._on_mesh
        )
        self._geometry.set_dark(self._surroundings.dark)
        if self._soft is not None:
            self._soft.remove()
        self._soft = SoftThings(
            self._server, parts.model, VISIBLE, self.shown, self._on_click
        )
        if self._companion is not None:
            self._companion.remove()
        if self.course.companion is not None:
            self.offsets *= (1.0, 2.0, 1.0)
            self._companion = Companion(
                self._server, parts, worlds_of(self.course.companion.worlds),
                self.shown, self.size, self.course.label, self._on_click,
            )  # fmt: skip

    def look_at(self, world: int) -> None:
        """Select the world of the overlays."""
        self.world = world
        self._trail.clear()
        if world not in self.shown:
            self.place_worlds()

    def show_overlay(self, name: str, shown: bool) -> None:
        """Show or hide an overlay."""
        if shown:
            self.overlays.add(name)
        else:
            self.overlays.discard(name)
            if name in self._paintings:
                self._paintings[name].clear()

    def set_dark(self, dark: bool) -> None:
        """Show everything in dark mode, or in light mode."""
        assert self._geometry is not None
        self._surroundings.set_dark(dark)
        self._geometry.set_dark(dark)

    def show_group(self, group: int, is_site: bool, shown: bool) -> None:
        """Show or hide a group of geoms or sites."""
        assert self._geometry is not None
        self._geometry.show_group(group, is_site, shown)

    @property
    def offset(self) -> np.ndarray:
        """Offset of the world with the overlays, world axes [m]; (3,)."""
        return self.offsets[self.shown.index(self.world)]

    @property
    def moved(self) -> np.ndarray:
        """Translation due to the followed body [m]; (3,)."""
        return np.array(self._root.position, dtype=np.float64)

    def seen(self) -> OneWorld:
        """Return the world with the overlays, at the current state."""
        course = self.course
        return OneWorld(course.worlds, course.rays, self.world, self.size, self.scale)

    def is_seen_by(self, client: viser.ClientHandle) -> bool:
        """Return True if a client is still connected."""
        return client.client_id in self._server.get_clients()

    # Drawing.

    def update(self) -> None:
        """Draw the current state."""
        assert self._geometry is not None
        seen = self.seen()
        with self._server.atomic():
            self._follow_body(seen)
            self._geometry.update(self.offsets)
            self._update_soft()
            self._update_companion()
            for name in self._draws:
                if name in self.overlays:
                    self._draw(name, seen)
            self.asked.update(seen, self.offset)

    def _update_soft(self) -> None:
        if self._soft:
            worlds, rays = self.course.worlds, self.course.rays
            seen = [OneWorld(worlds, rays, world, self.size) for world in self.shown]
            self._soft.update(seen, self.offsets)

    def _update_companion(self) -> None:
        if self._companion is not None and self.course.companion is not None:
            aside = 0.0 if self.over else self.spacing
            with current(worlds_of(self.course.companion.worlds)):
                self._companion.update(self.offsets + np.array([0.0, aside, 0.0]))

    def _draw(self, name: str, seen: OneWorld) -> None:
        if name not in self._paintings:
            self._paintings[name] = Painting(
                self._server, f"{ROOT}/overlays/{name}", self.size, self._on_click
            )
        written = self.values or name == DIVERGED
        worlds = [(seen, self.offset)]
        if self.everywhere and name not in (TRAIL, *self._always):
            course = self.course
            worlds = [
                (OneWorld(course.worlds, course.rays, w, self.size, self.scale), at)
                for w, at in zip(self.shown, self.offsets, strict=True)
            ]
        shapes = [
            shifted(shape, offset)
            for world, offset in worlds
            for shape in self._draws[name](world)
        ]
        self._paintings[name].draw(shapes, written)

    def _trail_shapes(self, seen: OneWorld) -> list[Shape]:
        """Return the trail of the followed body, else of the first that moves."""
        body = self._follow
        if body is None:
            moving = np.flatnonzero(seen.model.body_weldid)
            body = int(moving[0]) if len(moving) else 0
        place = seen.field("xpos")[body].copy()
        if not self._trail or np.linalg.norm(place - self._trail[-1]) > 1e-6:
            self._trail.append(place)
        if len(self._trail) < 2:
            return []
        name = seen.model.body(body).name
        return [Path(np.array(self._trail), PURPLE, f"path of {name}'s link origin")]

    # Cameras.

    def follow(self, body: int | None) -> None:
        """Keep a body at its position on the screen; None: no body."""
        self._follow = body
        self._trail.clear()
        before = self.moved
        self._follow_body(self.seen())
        step = self.moved - before
        for client in self._server.get_clients().values():
            client.camera.position = client.camera.position + step
            client.camera.look_at = client.camera.look_at + step

    def _follow_body(self, seen: OneWorld) -> None:
        if self._follow is None:
            self._root.position = (0.0, 0.0, 0.0)
            return
        place = seen.field("xpos")[self._follow] - self.middle
        if np.isfinite(place).all():
            self._root.position = -(place + self.offset)

    def camera(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Return position and target of a camera in a direction, world axes [m]."""
        count = len(self.shown) * (1 if self.course.companion is None else 3)
        whole = self.size + 0.7 * self.spacing * (np.sqrt(count) - 1.0)
        goal = self.middle + self.moved
        return goal + 1.5 * whole * np.array(DIRECTIONS[direction]), goal

    def look_from(self, direction: str) -> None:
        """Set the direction of view of all clients."""
        position, goal = self.camera(direction)
        for client in self._server.get_clients().values():
            client.camera.position, client.camera.look_at = position, goal
