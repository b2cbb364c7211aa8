"""A spacecraft's sensors with noise: gyro with a bias that walks, star tracker.

Their noise is a Wiener process that is integrated with the mechanics, so it is part of
snapshots, is the same for a world in any batch, and has the right strength at any
sampling rate. A stochastic integrator is needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.ids import Values
from simstate.math import quaternion
from simstate.math.vector import norm
from simstate.step.forces.force_parameters import Numbers, numbers
from simstate.step.forces.scene_force import link_id
from simstate.step.processes import Process

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

_WALK, _KEPT, _NOISE, _TIME = slice(0, 3), slice(3, 6), slice(6, 9), 9
_BIAS = slice(10, 13)


class NoisySensor(Process):
    """A sensor on a body, whose white noise is the increment of a Wiener process."""

    def __init__(
        self, name: str, entity: str, body: str, rot: Values, width: int
    ) -> None:
        super().__init__(name, torch.zeros(width))
        self.entity, self.body = entity, body
        given = numbers(rot, "rot")
        self.parameters.declare("rot", given / norm(given), 4)
        self.num_sources = 3

    def attach(self, sim: SteppingHost) -> None:
        """Find the body."""
        self._link = link_id(sim, self.entity, self.body)
        super().attach(sim)

    def rate(self, t: Tensor, sim: SteppingHost) -> Tensor:
        """Nothing drifts: all is noise and memory; (num_envs, width)."""
        del t, sim
        return torch.zeros_like(self.value)

    def diffusion(self, t: Tensor, sim: SteppingHost) -> Mapping[str, Tensor]:
        """A source of unit strength for each axis of the white noise."""
        del t, sim
        moved = self.value.new_zeros(
            self.value.shape[0], self.num_sources, self.value.shape[1]
        )
        for k in range(3):
            moved[:, k, k] = 1.0
        return {self.name: moved}

    def _white(self, sim: SteppingHost) -> tuple[Tensor, Tensor]:
        """Standard normal numbers of this sample, (num_envs, 3), and its interval [s].

        Asked again at the same instant they are the same.
        """
        now = sim.time.double()
        value = self.value
        interval = now - value[:, _TIME]
        is_new = (interval > 0)[:, None]
        fresh = value[:, _WALK] - value[:, _KEPT]
        noise = fresh / interval.clamp(min=1e-30).sqrt()[:, None]
        noise = torch.where(is_new, noise, value[:, _NOISE])
        value[:, _KEPT] = torch.where(is_new, value[:, _WALK], value[:, _KEPT])
        value[:, _NOISE] = noise
        value[:, _TIME] = now
        return noise, interval

    def _quat(self, sim: SteppingHost) -> Tensor:
        """From the sensor's axes to the world's; (num_envs, 4)."""
        quat = sim.scene[self.entity].data.body_link_quat_w[:, self._link].double()
        return quaternion.multiply(quat, self.parameters["rot"])

    @abstractmethod
    def sample(self, sim: SteppingHost) -> Tensor:
        """Take a reading now."""


class Gyro(NoisySensor):
    """Angular velocity in the sensor's axes, with white noise and a bias that walks.

    Numbers are in `parameters`; each may differ from world to world.

    Args:
        name: the process's name.
        entity: the entity's name.
        body: the body that it is fixed to.
        noise_density: angle random walk [rad/s/√Hz = rad/√s].
        bias_walk: rate random walk of the bias [rad/s/√s].
        bias: at reset [rad/s]; (3,) or (num_envs, 3).
        scale_factor: error of the scale, 0.01 is one per cent; a number.
        rot: the sensor's axes in the body, (w, x, y, z).
    """

    def __init__(
        self,
        name: str,
        entity: str,
        body: str,
        *,
        noise_density: Numbers,
        bias_walk: Numbers = 0.0,
        bias: Values = (0.0, 0.0, 0.0),
        scale_factor: Numbers = 0.0,
        rot: Values = (1.0, 0.0, 0.0, 0.0),
    ) -> None:
        super().__init__(name, entity, body, rot, 14)
        self.num_sources = 6
        declare = self.parameters.declare
        declare("noise_density", noise_density, unit="rad/√s", at_least=0)
        declare("bias_walk", bias_walk, unit="rad/s/√s", at_least=0)
        declare("scale_factor", scale_factor)
        start = declare("bias", bias, 3, unit="rad/s")
        rows = self.initial.expand(*start.shape[:-1], 14).clone()
        rows[..., _BIAS] = start
        self.initial = rows

    @property
    def bias(self) -> Tensor:
        """The present bias, sensor axes [rad/s]; (num_envs, 3)."""
        return self.value[:, _BIAS]

    def diffusion(self, t: Tensor, sim: SteppingHost) -> Mapping[str, Tensor]:
        """Sources of the white noise, and of the bias."""
        moved = dict(super().diffusion(t, sim))[self.name]
        for k in range(3):
            moved[:, 3 + k, 10 + k] = self.parameters["bias_walk"]
        return {self.name: moved}

    def sample(self, sim: SteppingHost) -> Tensor:
        """The present rate as the gyro gives it, sensor axes [rad/s]; (num_envs, 3).

        Its white noise is the mean of that since the last sample: over an interval T
        it has the deviation noise_density / √T. A sample at the time of reset has none.
        """
        data = sim.scene[self.entity].data
        spin = data.body_link_ang_vel_w[:, self._link].double()
        rate = quaternion.rotate_inverse(self._quat(sim), spin)
        noise, interval = self._white(sim)
        # Asked twice at once, the interval is that of the first time.
        kept = torch.where(interval > 0, interval, self.value[:, 13])
        self.value[:, 13] = kept
        spread = torch.where(kept > 0, kept.clamp(min=1e-30) ** -0.5, 0.0)
        white = (self.parameters["noise_density"] * spread)[:, None] * noise
        factor = 1 + self.parameters["scale_factor"][:, None]
        return factor * rate + self.bias + white


class StarTracker(NoisySensor):
    """Attitude of the sensor against the stars, with noise about its three axes.

    Args:
        name: the process's name.
        entity: the entity's name.
        body: the body that it is fixed to.
        noise: standard deviation of a reading about the sensor's x, y and z axis, which
            is the line of sight [rad]; (3,) or (num_envs, 3).
        rot: the sensor's axes in the body, (w, x, y, z).
    """

    def __init__(
        self,
        name: str,
        entity: str,
        body: str,
        *,
        noise: Values,
        rot: Values = (1.0, 0.0, 0.0, 0.0),
    ) -> None:
        super().__init__(name, entity, body, rot, 10)
        self.parameters.declare("noise", noise, 3, unit="rad", at_least=0)

    def sample(self, sim: SteppingHost) -> Tensor:
        """The attitude quat_ws, (w, x, y, z) with w ≥ 0, as measured; (num_envs, 4).

        A sample at the time of reset has no noise.
        """
        white, _ = self._white(sim)
        error = quaternion.from_rotation_vector(self.parameters["noise"] * white)
        return quaternion.canonical(quaternion.multiply(self._quat(sim), error))
