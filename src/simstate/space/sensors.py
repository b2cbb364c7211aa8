"""A spacecraft's sensors with noise: gyro with a random-walk bias, star tracker.

Their noise is a Wiener process that is integrated with the mechanics. It is part of
snapshots, does not depend on the batch, and has the correct strength at any sampling
rate. It needs a stochastic integrator.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
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
        quat = numbers(rot, "rot")
        length = norm(quat)
        if bool((length < 1e-9).any()):
            raise InvalidInputError(
                f"rot must be a quaternion (w, x, y, z) that is not zero, got {rot}.",
                name="rot",
            )
        self.parameters.declare("rot", quat / length, 4)
        self.num_sources = 3

    def attach(self, sim: SteppingHost) -> None:
        """Find the body."""
        self._link = link_id(sim, self.entity, self.body)
        super().attach(sim)

    def rate(self, t: Tensor, sim: SteppingHost) -> Tensor:
        """Return zero, because there is no drift; (num_envs, width)."""
        del t, sim
        return torch.zeros_like(self.value)

    def diffusion(self, t: Tensor, sim: SteppingHost) -> Mapping[str, Tensor]:
        """Return a source of unit strength for each axis of the white noise."""
        del t, sim
        moved = self.value.new_zeros(
            self.value.shape[0], self.num_sources, self.value.shape[1]
        )
        for k in range(3):
            moved[:, k, k] = 1.0
        return {self.name: moved}

    def _white(self, sim: SteppingHost) -> tuple[Tensor, Tensor]:
        """Return standard normal values, (num_envs, 3), and the sampling interval [s].

        Further calls at the same instant return the same values.
        """
        value = self.value
        now = sim.time.double()
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
        """Return the rotation from sensor axes to world axes; (num_envs, 4)."""
        quat = sim.scene[self.entity].data.body_link_quat_w[:, self._link].double()
        return quaternion.multiply(quat, self.parameters["rot"])

    @abstractmethod
    def sample(self, sim: SteppingHost) -> Tensor:
        """Return a measurement at the present time."""


class Gyro(NoisySensor):
    """Angular velocity in the sensor's axes, with white noise and a random-walk bias.

    Values are in `parameters`; each may differ by world.

    Args:
        name: the process's name.
        entity: the entity's name.
        body: the name of the body that it is fixed to.
        noise_density: angle random walk [rad/s/√Hz = rad/√s].
        bias_walk: rate random walk of the bias [rad/s/√s].
        bias: bias at reset [rad/s]; (3,) or (num_envs, 3).
        scale_factor: relative error of the scale, such as 0.01; a number.
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
        """Return the sources of the white noise and of the bias."""
        moved = dict(super().diffusion(t, sim))[self.name]
        for k in range(3):
            moved[:, 3 + k, 10 + k] = self.parameters["bias_walk"]
        return {self.name: moved}

    def sample(self, sim: SteppingHost) -> Tensor:
        """Return the measured angular velocity, sensor axes [rad/s]; (num_envs, 3).

        The white noise is averaged since the last sample: over an interval T its
        deviation is noise_density / √T. A sample at the time of reset has none.
        """
        noise, interval = self._white(sim)
        data = sim.scene[self.entity].data
        spin = data.body_link_ang_vel_w[:, self._link].double()
        rate = quaternion.rotate_inverse(self._quat(sim), spin)
        # A second sample at the same instant has the interval of the first.
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
        body: the name of the body that it is fixed to.
        noise: standard deviations about the sensor's x, y and z axes [rad], where z is
            the line of sight; (3,) or (num_envs, 3).
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
        """Return the measured attitude quat_ws, (w, x, y, z) with w ≥ 0; (num_envs, 4).

        A sample at the time of reset has no noise.
        """
        white, _ = self._white(sim)
        error = quaternion.from_rotation_vector(self.parameters["noise"] * white)
        return quaternion.canonical(quaternion.multiply(self._quat(sim), error))
