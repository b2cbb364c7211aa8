"""Rendering all worlds by MuJoCo Warp's ray tracer, which needs no OpenGL."""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp
from torch import Tensor

from simstate.engine.threads import available_cpus
from simstate.engine.warp_start import initialise  # before mujoco_warp: no banner
from simstate.step.stepping_host import SteppingHost

import mujoco_warp as mjw  # isort: skip
from mujoco_warp._src.bvh import build_hfield_bvh  # isort: skip  # after Warp's start
from mujoco_warp._src.types import ObjType  # isort: skip
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
    "light_castshadow", "light_active", "light_attenuation", "light_cutoff",
    "light_exponent", "light_ambient", "light_diffuse", "light_specular", "mat_texid",
    "mat_texrepeat", "mat_emission", "mat_specular", "mat_shininess", "mat_rgba",
)  # fmt: skip
"""The model parameters that a picture depends on, and that may differ by world."""


_VARIANTS = {"cam_fovy", "cam_intrinsic", "light_attenuation"}
"""Parameters whose values the kernel may assume, unless they differ by world."""


class Renderer:
    """Renders one camera in all worlds.

    On the warp engine it reads the engine's own arrays; on native, positions are
    copied to models of MuJoCo Warp that are there for drawing alone. There is one for
    each CPU, with a share of the worlds: Warp's kernels for the CPU run on one thread,
    and let others run meanwhile. Only worlds that look different since the last time
    are drawn. Neither changes a pixel.
    """

    def __init__(
        self, sim: SteppingHost, camera: int, resolution: tuple[int, int]
    ) -> None:
        self._sim, self._camera, self._resolution = sim, camera, resolution
        initialise(sim.device)
        self._device = wp.device_from_torch(sim.device)
        self._shares: list[_Share] = []
        self._variants: set[str] | None = None
        """Those of `_VARIANTS` that differ by world in the shares' kernels."""
        self._is_loaded = False
        """True once Warp has loaded its kernels, which one thread must do."""

    def render(self, rgb: bool = True) -> None:
        """Draw what has changed; without `rgb`, depth and geoms only."""
        parts = worlds_of(self._sim)
        looks = {name: x for name, x in parts.engine.expanded.items() if name in _LOOKS}
        shown = {name: parts.read_field(name) for name in _SHOWN} | looks
        shown = {name: values for name, values in shown.items() if values.numel()}
        with wp.ScopedDevice(self._device):  # that of all threads
            if self._variants != _VARIANTS & looks.keys():
                self._make_shares(_VARIANTS & looks.keys())
            first, *others = self._shares
            if not others or not self._is_loaded:
                for share in self._shares:
                    share.draw(shown, rgb)
            else:
                with ThreadPoolExecutor(len(others)) as pool:
                    pending = [pool.submit(x.draw, shown, rgb) for x in others]
                    first.draw(shown, rgb)
                    for each in pending:
                        each.result()
        self._is_loaded = True

    def _make_shares(self, variants: set[str]) -> None:
        own = worlds_of(self._sim).engine.warp_arrays()
        count = 1 if own is not None else available_cpus()
        self._shares = [
            _Share(self._sim.model, worlds, self._camera, self._resolution, variants,
                   own)
            for worlds in shared_out(self._sim.num_envs, count)
        ]  # fmt: skip
        self._variants, self._is_loaded = variants, False

    def rgb(self) -> Tensor:
        """Colours as they were drawn, uint8; shape (num_envs, H, W, 3)."""
        packed = torch.cat([share.rgb for share in self._shares])
        bgra = packed.view(torch.uint8).reshape(*packed.shape, 4)
        return bgra[..., :3].flip(-1)

    def depth(self) -> Tensor:
        """Distances along the optical axis as they were drawn [m]; (num_envs, H, W)."""
        found = torch.cat([share.depth for share in self._shares])
        return found.to(self._sim.dtype)

    def geoms(self) -> Tensor:
        """Geom ids as they were drawn, int64, −1 for none; (num_envs, H, W)."""
        found = torch.cat([share.seg for share in self._shares])
        is_geom = found[..., 1] == int(ObjType.GEOM)
        return torch.where(is_geom, found[..., 0], -1).to(torch.int64)


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
        variants: parameters of `_VARIANTS` that differ by world.
        own: MuJoCo Warp's model and data if the engine has them; else they are made.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        worlds: slice,
        camera: int,
        resolution: tuple[int, int],
        variants: set[str],
        own: tuple[Any, Any] | None,
    ) -> None:
        self._worlds, self._is_own = worlds, own is not None
        self._count = num_envs = worlds.stop - worlds.start
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
            use_textures=model.ntex > 0,
            use_precomputed_rays=not variants & {"cam_fovy", "cam_intrinsic"},
        )
        if "light_attenuation" in variants:
            self._context.light_attenuation_is_default = False
        self._add_heightfields(model)
        self._may_skip = model.nflex == 0  # their kernels draw all worlds
        self._all = torch.arange(num_envs)
        self._drawn: dict[str, Tensor] = {}
        """The fields and parameters of the worlds as they were drawn."""
        self._has_rgb = False
        shape = (num_envs, resolution[1], resolution[0])
        context = self._context
        self._buffers = [
            wp.to_torch(context.rgb_data.view(wp.int32)).reshape(shape),
            wp.to_torch(context.depth_data).reshape(shape),
            wp.to_torch(context.seg_data).reshape(*shape, 2),
        ]
        """Output buffers of the kernel, for the worlds that it drew last."""
        self.rgb, self.depth, self.seg = map(torch.zeros_like, self._buffers)
        self._is_empty = not context.bvh_ngeom + context.bvh_nflexgeom
        if self._is_empty:
            self.rgb.fill_(int(np.uint32(context.background_color).view(np.int32)))

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

    def draw(self, shown: dict[str, Tensor], rgb: bool) -> None:
        """Draw its worlds where one of the fields and parameters has changed."""
        if self._is_empty:  # Warp ends the process in a search among no geoms
            return
        rows = self._all
        if not self._is_own:
            own = {name: values[self._worlds] for name, values in shown.items()}
            rows = self._changed(own, rgb)
            if not len(rows):
                return
            for name, values in own.items():
                self._put(name, values[rows])
            self._drawn = {name: values.clone() for name, values in own.items()}
            self._data.nworld = len(rows)
        self._context.render_rgb.fill_(rgb)
        mjw.refit_bvh(self._model, self._data, self._context)
        mjw.render(self._model, self._data, self._context)
        kept = (self.rgb, self.depth, self.seg)
        for values, buffer in zip(kept, self._buffers, strict=True):
            values[rows] = buffer[: len(rows)]
        self._has_rgb = rgb

    def _changed(self, own: dict[str, Tensor], rgb: bool) -> Tensor:
        """Return the rows of worlds that differ from how they were drawn."""
        is_new = not self._may_skip or own.keys() != self._drawn.keys()
        if is_new or rgb > self._has_rgb:
            return self._all
        changed = torch.zeros(self._count, dtype=torch.bool)
        for name, values in own.items():
            changed |= (values != self._drawn[name]).flatten(1).any(1)
        return torch.from_numpy(np.flatnonzero(changed.numpy()))  # of the host

    def _put(self, name: str, values: Tensor) -> None:
        """Put values into the first worlds of the drawing model or data."""
        if name in _SHOWN:
            target = wp.to_torch(getattr(self._data, name))
        else:
            target = self._looks(name)
        target[: len(values)].copy_(values.reshape(len(values), *target.shape[1:]))

    def _looks(self, name: str) -> Tensor:
        """Return a parameter of the drawing model, with a row for each world."""
        shared = getattr(self._model, name)
        rows = wp.to_torch(shared)
        if len(rows) != self._count:
            rows = rows.expand(self._count, *rows.shape[1:]).contiguous()
            setattr(self._model, name, wp.from_torch(rows, dtype=shared.dtype))
        return rows
