"""Surroundings of the worlds in the viewer: sky, lights and theme."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import viser

from simstate.view.shot import Sky, has_lights, sky_of, sun_of

DIM = 0.22
"""Brightness of sky and floor in dark mode."""
_HAZE = 0.86
"""Brightness of the horizon, against which a white robot is visible."""
_FULL = np.pi
"""Intensity of a light that renders a white surface facing it as white."""
_ROWS = 512
_SUN_AWAY = 20.0
"""Distance of the sun, in sizes of the scene; only its direction matters."""


class Surroundings:
    """Sky, lights and theme; those of the model if it has any.

    Args:
        server: the server whose scene they are drawn in.
        model: the compiled scene.
        size: size of the moving parts [m].
    """

    def __init__(
        self, server: viser.ViserServer, model: mujoco.MjModel, size: float
    ) -> None:
        self._server = server
        self._sky = sky_of(model)
        self.dark = False
        """True in dark mode."""
        scene: Any = server.scene
        scene.configure_default_lights(False)
        scene.configure_environment_map(None)
        scene.add_light_hemisphere(
            "/light/around", sky_color=(255, 255, 255), ground_color=(150, 150, 155),
            intensity=0.42 * _FULL,
        )  # fmt: skip
        away = -_SUN_AWAY * size * sun_of(model)
        scene.add_light_directional(
            "/light/sun", intensity=0.55 * _FULL, position=tuple(away), cast_shadow=True
        )
        if has_lights(model):
            self._add_lamps(model)
        self.set_dark(False)

    def _add_lamps(self, model: mujoco.MjModel) -> None:
        """Add the lights of the model that have a position."""
        scene: Any = self._server.scene
        directional = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL.value
        for k in range(model.nlight):
            fixed = model.body_weldid[model.light_bodyid[k]] == 0
            if model.light_type[k] == directional or not fixed:
                continue  # the sun, or a lamp on a moving body
            place = np.array(model.light_pos[k])
            reach = max(float(np.linalg.norm(place)), 0.1)
            colour = tuple(int(255 * x) for x in np.clip(model.light_diffuse[k], 0, 1))
            scene.add_light_point(
                f"/light/{k}", color=colour, intensity=0.25 * _FULL * reach**2,
                position=tuple(place),
            )  # fmt: skip

    def set_dark(self, dark: bool) -> None:
        """Show everything in dark mode, or in light mode."""
        self.dark = dark
        self._server.gui.configure_theme(
            dark_mode=dark, show_logo=False, show_share_button=False,
            brand_color=(11, 107, 203), control_width="large",
        )  # fmt: skip
        self._server.scene.set_background_image(gradient(self._sky, dark), "png")


def gradient(sky: Sky, dark: bool) -> np.ndarray:
    """Return a sky from top to bottom, uint8; (rows, 1, 3)."""
    down = np.linspace(0.0, 1.0, _ROWS)[:, None]
    share = np.clip(down / 0.75, 0.0, 1.0) ** 0.8
    colours = sky.high + (_HAZE * sky.low - sky.high) * share
    return np.round(colours * (DIM if dark else 1.0)).astype(np.uint8)[:, None]
