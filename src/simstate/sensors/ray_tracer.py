"""Rendering all worlds by MuJoCo Warp's ray tracer, which needs no OpenGL."""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import torch
import warp as wp
from torch import Tensor

from simstate.engine.threads import available_cpus
from simstate.engine.warp_start import initialise  # before mujoco_warp: no banner
from simstate.step.stepping_host import SteppingHost

import mujoco_warp as mjw  # isort: skip
from mujoco_warp._src.bvh import build_hfield_bvh  # isort: skip  # after Warp's start
from simstate.world.worlds import worlds_of

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
    copied to models of MuJoCo Warp that are there for drawing alone. There is one for
    each CPU, with a share of the worlds: Warp's kernels for the CPU run on one thread,
    and let others run meanwhile. How worlds are shared out changes no pixel.
    """

    def __init__(
        self, sim: SteppingHost, camera: int, resolution: tuple[int, int]
    ) -> None:
        self._sim = sim
        initialise(sim.device)
        self._device = wp.device_from_torch(sim.device)
        with wp.ScopedDevice(self._device):
            own = worlds_of(sim).engine.warp_arrays()
            if own is not None:
                every = slice(0, sim.num_envs)
                self._shares = [_Share(sim.model, every, camera, resolution, own)]
            else:
                self._shares = [
                    _Share(sim.model, worlds, camera, resolution)
                    for worlds in shared_out(sim.num_envs, available_cpus())
                ]
        self._is_own = own is not None
        self._is_loaded = False
        """True once Warp has loaded its kernels, which one thread must do."""

    def render(self) -> tuple[Tensor, Tensor, Tensor]:
        """Colour (N, H, W, 3), depth [m] and geom ids (N, H, W), as things are now."""
        self._copy_positions()
        with wp.ScopedDevice(self._device):  # that of all threads
            first, *others = self._shares
            if not others or not self._is_loaded:
                drawn = [share.draw() for share in self._shares]
            else:
                with ThreadPoolExecutor(len(others)) as pool:
                    pending = [pool.submit(share.draw) for share in others]
                    drawn = [first.draw(), *(each.result() for each in pending)]
        self._is_loaded = True
        rgb, depth, geoms = (torch.cat(parts) for parts in zip(*drawn, strict=True))
        return rgb, depth.to(self._sim.dtype), geoms

    def _copy_positions(self) -> None:
        """Update positions and appearance of the drawing models."""
        parts = worlds_of(self._sim)
        for name in _SHOWN:
            values = parts.read_field(name)
            if not self._is_own and values.numel():
                for share in self._shares:
                    share.show(name, values)
        if self._is_own:
            return
        for name in _LOOKS:
            values = parts.engine.expanded.get(name)
            if values is not None and values.numel():
                for share in self._shares:
                    share.look(name, values)


def shared_out(num_envs: int, shares: int) -> list[slice]:
    """Return the worlds in parts whose sizes differ by one at most; none is empty."""
    shares = min(shares, num_envs)
    ends = [num_envs * k // shares for k in range(shares + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


class _Share:
    """Some of the worlds, drawn by one thread.

    Args:
        model: the compiled scene.
        worlds: which ones, out of all.
        camera: id of the camera.
        resolution: width and height [px].
        own: MuJoCo Warp's model and data if the engine has them; else they are made.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        worlds: slice,
        camera: int,
        resolution: tuple[int, int],
        own: tuple[Any, Any] | None = None,
    ) -> None:
        self._worlds = worlds
        num_envs = worlds.stop - worlds.start
        self._shape = (num_envs, resolution[1], resolution[0])
        self._looks: dict[str, Tensor] = {}
        """Parameters of the drawing model that differ by world."""
        if own is not None:
            self._model, self._data = own
        else:
            self._model = mjw.put_model(model)
            self._data = mjw.make_data(model, nworld=num_envs, nconmax=1, njmax=1)
        self._context: Any = mjw.create_render_context(
            model,
            nworld=num_envs,
            cam_res=resolution,
            render_rgb=True,
            render_depth=True,
            render_seg=True,
            cam_active=[camera],
            background_color=(0.6, 0.75, 0.9, 1.0),
            use_precomputed_rays=False,  # fields of view may differ by world
        )
        self._add_heightfields(model)

    def _add_heightfields(self, model: mujoco.MjModel) -> None:
        """Draw heightfields that no geom has as compiled.

        SteppingHost may choose them by `geom_dataid`.
        """
        ids = wp.to_torch(self._context.hfield_bvh_id)
        bounds = wp.to_torch(self._context.hfield_bounds_size)
        for k in range(model.nhfield):
            if not int(ids[k]):
                mesh, half = build_hfield_bvh(model, k, constructor="cubql")
                self._context.hfield_registry[mesh.id] = mesh
                ids[k] = int(mesh.id)
                bounds[k] = torch.tensor([*half])

    def show(self, name: str, values: Tensor) -> None:
        """Take a field of these worlds from that of all of them."""
        target = wp.to_torch(getattr(self._data, name))
        target.copy_(values[self._worlds].reshape(target.shape))

    def look(self, name: str, values: Tensor) -> None:
        """Take a parameter that differs by world."""
        if name not in self._looks:
            shared = getattr(self._model, name)
            row = wp.to_torch(shared)
            rows = row.expand(self._shape[0], *row.shape[1:]).contiguous()
            setattr(self._model, name, wp.from_torch(rows, dtype=shared.dtype))
            self._looks[name] = rows
        looks = self._looks[name]
        looks.copy_(values[self._worlds].reshape(looks.shape))

    def draw(self) -> tuple[Tensor, Tensor, Tensor]:
        """Colour, depth and geom ids of these worlds; memory of their own."""
        mjw.refit_bvh(self._model, self._data, self._context)
        mjw.render(self._model, self._data, self._context)
        colour: Any = wp.zeros(self._shape, dtype=wp.vec3)
        mjw.get_rgb(self._context, 0, colour)
        depth = wp.to_torch(self._context.depth_data).reshape(self._shape)
        seg = wp.to_torch(self._context.seg_data).reshape(*self._shape, 2)
        return (
            (wp.to_torch(colour) * 255.0).round().clamp(0, 255).to(torch.uint8),
            depth.clone(),
            seg[..., 0].to(torch.int64),
        )
