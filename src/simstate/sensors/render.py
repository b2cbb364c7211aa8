"""Rendering all worlds by MuJoCo Warp's ray tracer, which needs no OpenGL."""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import torch
import warp as wp
from torch import Tensor

from simstate.engine.warp import WarpEngine, mjw
from simstate.engine.warp_start import initialise
from simstate.worlds import Worlds

_SHOWN = (
    "geom_xpos",
    "geom_xmat",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
)
"""The fields that a picture depends on."""


class Renderer:
    """Renders one camera in all worlds.

    On the warp engine it reads the engine's own arrays; on native, positions are
    copied to a model of MuJoCo Warp that is there for drawing alone.
    """

    def __init__(self, sim: Worlds, camera: int, resolution: tuple[int, int]) -> None:
        self._sim = sim
        self._width, self._height = resolution
        initialise(sim.device)
        self._device = wp.device_from_torch(sim.device)
        engine = sim.internals.engine
        with wp.ScopedDevice(self._device):
            if isinstance(engine, WarpEngine):
                self._model, self._data = engine.warp_model, engine.warp_data
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
        is_own = isinstance(physics.engine, WarpEngine)
        for name in _SHOWN:
            values = physics.read_field(name)
            if not is_own and values.numel():
                target = wp.to_torch(getattr(self._data, name))
                target.copy_(values.reshape(target.shape))
        if is_own:
            return
        for name, values in physics.engine.expanded.items():
            shared = getattr(self._model, name, None)
            if isinstance(shared, wp.array) and values.numel():
                looks = wp.to_torch(shared)
                if looks[:1].numel() != values[:1].numel():
                    continue  # what the drawing model does not keep in that form
                rows = values.to(looks.dtype).reshape(values.shape[0], *looks.shape[1:])
                array = wp.from_torch(rows.contiguous(), dtype=shared.dtype)
                setattr(self._model, name, array)
