"""Pictures of a simulation: in a browser, or as an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simstate.view import Course, start_offscreen, start_viewer

if TYPE_CHECKING:
    from simstate.view.eye import Camera
    from simstate.view.shot import RendererName
    from simstate.view.viewer import Viewer


class SimulationViews:
    """The methods of `simstate.Simulation` that show its worlds."""

    def view(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        token: str | None = None,
        worlds: int | None = None,
        playing: bool = True,
    ) -> Viewer:
        """Show the worlds in a browser, at the viewer's `url`; needs the extra `view`.

        `viewer.run()` plays them. A script that steps them itself calls `viewer.sync()`
        after each step. In a notebook the viewer shows itself.

        Args:
            host: the interface to listen on.
            port: the first port to try; 0: any that is free.
            token: what the address must contain, since whoever has it can change
                the worlds; None: one is made, and is part of `url`.
            worlds: how many are shown side by side at first; None: up to 16.
            playing: True if `run` starts playing and `sync` continues.
        """
        return start_viewer(self._course(), host, port, token, worlds, playing)

    def render(
        self,
        worlds: int | Sequence[int] = 0,
        *,
        overlays: Sequence[str] = (),
        width: int = 640,
        height: int = 480,
        camera: Camera = "corner",
        values: bool = True,
        renderer: RendererName = "auto",
        transparent: bool = False,
        supersampling: int = 1,
        sheet: bool = False,
    ) -> np.ndarray:
        """Return a picture of the present state, uint8; (height, width, 3).

        Needs the extra `view`, but neither a browser nor a display. For images that a
        policy observes, and for many worlds at once, see `SceneCfg(cameras=…)`.

        Args:
            worlds: one or more, side by side.
            overlays: names as the viewer lists them, such as "contacts", "link frames"
                and "COM velocities".
            width: [px].
            height: [px].
            camera: "corner", "front", "side" or "above"; a camera of the model by name;
                a `simstate.view.Orbit`; or the camera's position and the point it looks
                at, world axes [m].
            values: True to write the values of forces at their arrows.
            renderer: "opengl" is MuJoCo's own and needs EGL, OSMesa or a window;
                "software" needs no library; "auto" takes the first that works.
            transparent: leave out floor and sky and add an alpha channel: shape
                (height, width, 4).
            supersampling: samples per pixel: 1, 4, 9 or 16.
            sheet: draw each world in a separate picture, width × height each, in
                rows.
        """
        ids = [worlds] if isinstance(worlds, int) else list(worlds)
        drawing = start_offscreen(
            self._course(), ids, overlays=overlays, size=(width, height),
            camera=camera, values=values, renderer=renderer, transparent=transparent,
            supersampling=supersampling, sheet=sheet,
        )  # fmt: skip
        return drawing.picture()

    def _course(self) -> Course:
        """Return the worlds as a course to show."""
        raise NotImplementedError
