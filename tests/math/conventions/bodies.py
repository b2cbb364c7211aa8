"""Random rigid bodies, and what they are in world axes, without the library."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from simstate.math.conventions import MUJOCO, RigidBodyState


@dataclass(frozen=True)
class Bodies:
    """Rigid bodies in a z-up world with forward-left-up axes, as NumPy arrays."""

    position: np.ndarray
    rotation: Rotation
    velocity: np.ndarray
    rates: np.ndarray
    com: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray

    @property
    def state(self) -> RigidBodyState:
        quat = self.rotation.as_quat(scalar_first=True)
        return RigidBodyState(
            MUJOCO, self.position, quat, self.velocity, self.rates, self.com
        )


def random_bodies(seed: int, n: int = 6) -> Bodies:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 3, 3))
    second_moments = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(3)
    trace = np.trace(second_moments, axis1=1, axis2=2)
    return Bodies(
        position=rng.normal(size=(n, 3)) * 3,
        rotation=Rotation.random(n, random_state=rng),
        velocity=rng.normal(size=(n, 3)) * 2,
        rates=rng.normal(size=(n, 3)) * 2,
        com=rng.normal(size=(n, 3)) * 0.3,
        mass=rng.uniform(0.5, 5, size=n),
        inertia=trace[:, None, None] * np.eye(3) - second_moments,
    )


def tensor(array: object) -> torch.Tensor:
    return torch.as_tensor(np.asarray(array, dtype=np.float64))
