"""Rendering all worlds by MuJoCo Warp's ray tracer, which needs no OpenGL."""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import torch
import warp as wp
from torch import Tensor

from simstate.engine.warp_start import initialise  # before mujoco_warp: no banner
from simstate.worlds import Worlds

import mujoco_warp as mjw  # isort: skip

_SHOWN = (
    "geom_xpos",
    "geom_xmat",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
)
"""The fields that a picture depends on."""

_LOOKS = (
    "geom_dataid", "geom_matid", "geom_size", "geom_rgba", "cam_fovy", "cam_intrinsic",
    "light_type", "light_castshadow", "light_active", "light_attenuation",
    "light_cutoff", "light_exponent", "light_ambient", "light_diffuse",
    "light_specular", "mat_texid", "mat_texuniform", "mat_texrepeat", "mat_emission",
    "mat_specular", "mat_shininess", "mat_rgba",
)  # fmt: skip
"""The model parameters that a picture depends on, and that may differ by world."""


class Renderer:
    """Renders one camera in all worlds.

    On the warp engine it reads the engine's own arrays; on native, positions are
    copied to a model of MuJoCo Warp that is there for drawing alone.
    """

    def __init__(self, sim: Worlds, camera: int, resolution: tuple[int, int]) -> None:
        self._sim = sim
        self._width, self._height = resolution
        self._looks: dict[str, Tensor] = {}
        """Parameters of the drawing model that differ by world."""
        initialise(sim.device)
        self._device = wp.device_from_torch(sim.device)
        engine = sim.internals.engine
        with wp.ScopedDevice(self._device):
            own = engine.warp_arrays()
            self._is_own = own is not None
            if own is not None:
                self._model, self._data = own
            else:
                self._model = mjw.put_model(sim.model)
                self._data = mjw.make_data(
                    sim.model, nworld=sim.num_envs, nconmax=1, njmax=1
                )
            self._context: Any = mjw.create_render_context(
                sim.model,
                nworld=sim.num_envs,
                cam_res=resolution,
                render_rgb=True,
                render_depth=True,
                render_seg=True,
                cam_active=[camera],
                background_color=(0.6, 0.75, 0.9, 1.0),
                use_precomputed_rays=False,  # fields of view may differ by world
            )

    def render(self) -> tuple[Tensor, Tensor, Tensor]:
        """Colour (N, H, W, 3), depth [m] and geom ids (N, H, W), as things are now."""
        shape = (self._sim.num_envs, self._height, self._width)
        self._copy_positions()
        with wp.ScopedDevice(self._device):
            mjw.refit_bvh(self._model, self._data, self._context)
            mjw.render(self._model, self._data, self._context)
            colour: Any = wp.zeros(shape, dtype=wp.vec3)
            mjw.get_rgb(self._context, 0, colour)
            rgb = wp.to_torch(colour)
            depth = wp.to_torch(self._context.depth_data).reshape(shape)
            seg = wp.to_torch(self._context.seg_data).reshape(*shape, 2)
        return (
            (rgb * 255.0).round().clamp(0, 255).to(torch.uint8),
            depth.to(self._sim.dtype, copy=True),
            seg[..., 0].to(torch.int64),
        )

    def _copy_positions(self) -> None:
        """Bring the drawing model's positions and looks up to date."""
        physics = self._sim.internals
        for name in _SHOWN:
            values = physics.read_field(name)
            if not self._is_own and values.numel():
                target = wp.to_torch(getattr(self._data, name))
                target.copy_(values.reshape(target.shape))
        if self._is_own:
            return
        for name in _LOOKS:
            values = physics.engine.expanded.get(name)
            if values is not None and values.numel():
                looks = self._looks_by_world(name)
                looks.copy_(values.reshape(looks.shape))

    def _looks_by_world(self, name: str) -> Tensor:
        """A parameter of the drawing model, with a row for each world."""
        if name not in self._looks:
            shared = getattr(self._model, name)
            row = wp.to_torch(shared)
            rows = row.expand(self._sim.num_envs, *row.shape[1:]).contiguous()
            setattr(self._model, name, wp.from_torch(rows, dtype=shared.dtype))
            self._looks[name] = rows
        return self._looks[name]
