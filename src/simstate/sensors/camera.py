"""Cameras: images of all worlds, and the geometry that goes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.by_name import Named
from simstate.base.ids import Index
from simstate.engine import Stage
from simstate.scene import CameraCfg
from simstate.state.tensors import CameraTensors
from simstate.step.stepping_host import SteppingHost
from simstate.world.declared import Reading, ReadingReader, Readings
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.sensors.ray_tracer import Renderer


def _image(compute: Callable[[Any], Tensor], unit: str, *shape: int) -> Reading:
    """Declare an image."""
    return Reading(
        compute, unit=unit, shape=("H", "W", *shape), stage=Stage.POSITION,
        refusal="An image of {label} was written to: it is rendered from the state. "
        "Draw on a copy, such as camera.rgb.clone().",
    )  # fmt: skip


class _CameraReader(ReadingReader):
    """The images of one camera, which errors name as a whole."""

    def label_of(self, name: str) -> str:
        """Return the name of the camera in error messages."""
        return self.name


class Camera(Readings):
    """One camera in all worlds; rendered when an image is read, once for each state.

    Pixel (u, v) covers [u, u + 1) × [v, v + 1), and (0, 0) is the upper left corner of
    the image. The optical axes are OpenCV's: x right, y down, z forward.
    """

    def __init__(self, sim: SteppingHost, name: str, cfg: CameraCfg) -> None:
        self._reader = _CameraReader(worlds_of(sim), f"camera {name!r}", self)
        self.name = name
        self.width, self.height = cfg.width, cfg.height
        self._sim = sim
        self._camera = int(sim.model.camera(cfg.camera or name).id)
        self._renderer: Renderer | None = None
        self._has_rgb = False

    rgb = _image(lambda camera: camera._render(rgb=True).rgb(), "1", 3)
    """Colour, 0 … 255, uint8; shape (num_envs, H, W, 3)."""
    depth = _image(lambda camera: camera._render().depth(), "m")
    """Distance along the optical axis [m], 0 for no hit; (num_envs, H, W)."""
    segmentation = _image(lambda camera: camera._render().geoms(), "1")
    """Id of the geom that each pixel shows, −1 for none; (num_envs, H, W)."""

    @property
    def pos(self) -> Tensor:
        """Position of the camera, world axes [m]; shape (num_envs, 3)."""
        return self._sim.data.cam_xpos[:, self._camera]

    @property
    def look_at(self) -> Tensor:
        """The point 1 m in front of the camera, world axes [m]; (num_envs, 3)."""
        return self.pos - self._sim.data.cam_xmat[:, self._camera, :, 2]

    @property
    def extrinsic(self) -> Tensor:
        """World to camera, OpenCV's axes; shape (num_envs, 4, 4).

        (x, y, z, 1) in the camera's axes = extrinsic @ (x, y, z, 1) in world axes.
        """
        flip = torch.tensor([1.0, -1.0, -1.0], dtype=self._sim.dtype)
        rot_wc = self._sim.data.cam_xmat[:, self._camera] * flip.to(self._sim.device)
        rot_cw = rot_wc.transpose(1, 2)
        matrix = torch.zeros_like(rot_cw.new_empty(self._sim.num_envs, 4, 4))
        matrix[:, :3, :3] = rot_cw
        matrix[:, :3, 3] = -(rot_cw @ self.pos[..., None])[..., 0]
        matrix[:, 3, 3] = 1.0
        return matrix

    @property
    def intrinsic(self) -> Tensor:
        """Pinhole matrix [px]: (u, v, 1) ~ intrinsic @ (x, y, z); (num_envs, 3, 3)."""
        fx, fy, cx, cy = self._pinhole()
        matrix = fx.new_zeros(self._sim.num_envs, 3, 3)
        matrix[:, 0, 0], matrix[:, 1, 1], matrix[:, 2, 2] = fx, fy, 1.0
        matrix[:, 0, 2], matrix[:, 1, 2] = cx, cy
        return matrix

    def tensors(self, index: Index) -> CameraTensors:
        """Return a copy of images and geometry in some worlds."""
        return CameraTensors(
            rgb=self.rgb[index].clone(),
            depth=self.depth[index].clone(),
            pos=self.pos[index].clone(),
            look_at=self.look_at[index].clone(),
            intrinsic=self.intrinsic[index],
            extrinsic=self.extrinsic[index],
        )

    def _pinhole(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Focal lengths and principal point [px], as MuJoCo's frustum has them."""
        sensor = self._sim.model.cam_sensorsize[self._camera]
        width, height = float(sensor[0]), float(sensor[1])
        parameter = worlds_of(self._sim).engine.parameter
        if height == 0.0:
            fovy = torch.deg2rad(parameter("cam_fovy")[:, self._camera])
            focal = 0.5 * self.height / torch.tan(0.5 * fovy)
            middle = torch.ones_like(focal)
            return focal, focal, 0.5 * self.width * middle, 0.5 * self.height * middle
        # An image of another shape than the sensor shows the middle part of it.
        aspect = self.width / self.height
        if aspect > width / height:
            height = width / aspect
        else:
            width = height * aspect
        fx, fy, cx, cy = parameter("cam_intrinsic")[:, self._camera].unbind(-1)
        return (
            fx * self.width / width,
            fy * self.height / height,
            self.width * (0.5 - cx / width),
            self.height * (0.5 - cy / height),
        )

    def _render(self, rgb: bool = False) -> Renderer:
        """Return the renderer after it has drawn the present state.

        Colours cost the most, and are drawn once they have been read for the first
        time.
        """
        if rgb and not self._has_rgb:
            self._has_rgb = True
            self._reader.memo.pop("drawn", None)
        return self._reader.shared("drawn", Stage.POSITION, self._drawn)

    def _drawn(self) -> Renderer:
        if self._renderer is None:
            from simstate.sensors.ray_tracer import Renderer  # loads Warp

            resolution = (self.width, self.height)
            self._renderer = Renderer(self._sim, self._camera, resolution)
        self._renderer.render(self._has_rgb)
        return self._renderer


class SceneCameras(Named[Camera]):
    """The cameras of a scene by name."""

    kind = "camera"
    how_to_declare = "declare it with SceneCfg(cameras={{{name}: CameraCfg(…)}})."

    def __init__(self, sim: SteppingHost, cfgs: Mapping[str, CameraCfg]) -> None:
        super().__init__({name: Camera(sim, name, cfg) for name, cfg in cfgs.items()})
