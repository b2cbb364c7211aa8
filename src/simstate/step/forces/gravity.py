"""Gravity: one field accelerates bodies and the frames that they are in.

A gravity model defines the acceleration at a point. Everything else follows from that
function: the weight of each body, the torque of the field's gradient, the motion of a
`MovingFrame`, and the loads on bodies in that frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, warn
from simstate.base.ids import Values
from simstate.engine import core
from simstate.math.vector import apply, greatest, norm
from simstate.step.forces.compiled_force import CompiledForce
from simstate.step.forces.scene_force import SceneForce, body_ids
from simstate.step.schemes.schemes import Adaptive
from simstate.step.stepping_host import forcing_of
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step.forces.frame import MovingFrame
    from simstate.step.stepping_host import SteppingHost

_FAST = 1000.0
"""Above this speed [m/s] rounding in MuJoCo's dynamics limits adaptive steps."""
_FAR32 = 1e5
"""Beyond this distance [m] float32 does not resolve a centimetre."""


@dataclass(frozen=True, eq=False)
class CompiledField:
    """A field about the origin as the compiled core evaluates it."""

    field: core.Field
    """The part shared by all worlds."""
    mu: Tensor
    """Gravitational parameter of the central body, live [m³/s²]."""
    radius: Tensor | float = 1.0
    """Reference radius of the harmonics [m]."""
    rate: Tensor | float = 0.0
    """Rate of a uniform rotation [rad/s]."""
    angle: Tensor | float = 0.0
    """Angle of that rotation at t = 0 [rad]."""
    bodies: Sequence[Tensor | float] = ()
    """μ [m³/s²] and position [m] of each other body: four columns."""

    def force(
        self, gravity: Gravity, frame: MovingFrame | None
    ) -> CompiledForce | None:
        """Return the force on bodies, or None if the core cannot evaluate the field."""
        if not self.field.is_small_enough:
            return None
        flag = float(gravity.gradient_torque)
        return CompiledForce(
            core.LoadKind.FIELD_GRAVITY,
            gravity.bodies,
            [self.mu, self.radius, self.rate, self.angle, flag, *self.bodies],
            table=self.field.row(),
            frame=frame,
            field=self.field,
        )

    @property
    def central(self) -> CompiledField | None:
        """The field of a central body; None if its source is not at the origin."""
        return self


class CompiledGravity(Protocol):
    """The form in which a `Gravity` runs in the core."""

    def force(
        self, gravity: Gravity, frame: MovingFrame | None
    ) -> CompiledForce | None:
        """Return the force on the bodies of a gravity."""
        ...

    @property
    def central(self) -> CompiledField | None:
        """The field of a central body; None if its source is not at the origin."""
        ...


class Gravity(SceneForce, ABC):
    """A field of accelerations, which acts at the COM of every body.

    Subclass it and define `acceleration`. World axes, which must not rotate. The
    scene's own gravity must be zero.

    Args:
        entity: the entity whose bodies it acts on; None: all bodies of the scene.
        gradient_torque: True to apply the torque of the field's gradient, too.
    """

    _inherits_form = True

    def __init__(
        self, entity: str | None = None, *, gradient_torque: bool = True
    ) -> None:
        self.entity = entity
        self.gradient_torque = gradient_torque

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A class that defines only the acceleration must not inherit the difference
        # or the gradient of another field.
        if "acceleration" in vars(cls):
            for name in ("difference", "gradient"):
                if name not in vars(cls):
                    setattr(cls, name, getattr(Gravity, name))
        if "compiled_form" not in vars(cls):  # it may compute anything
            cls.compiled_form = Gravity.compiled_form

    @abstractmethod
    def acceleration(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return the acceleration at points, world axes [m/s²]; (num_envs, k, 3).

        Args:
            t: time [s]; (num_envs,).
            pos: the points, world axes [m], float64; (num_envs, k, 3).
        """

    def difference(self, t: Tensor, pos: Tensor, offset: Tensor) -> Tensor:
        """Return the acceleration at `pos + offset` less that at `pos` [m/s²].

        The default has the rounding error of the accelerations themselves: 1e-15 m/s²
        in low orbits. Point masses and harmonics avoid it. Shape (num_envs, k, 3).
        """
        return self.acceleration(t, pos + offset) - self.acceleration(t, pos)

    def gradient(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return ∂acceleration/∂position, world axes [1/s²]; (num_envs, k, 3, 3).

        The default uses central differences, with a relative error of about 1e-9.
        """
        step = (2e-5 * norm(pos)).clamp(min=1e-6)[..., None]
        eye = torch.eye(3, dtype=pos.dtype, device=pos.device)
        behind, apart = pos[..., None, :] - step * eye, 2 * step * eye
        change = self.difference(t, behind.flatten(1, 2), apart.flatten(1, 2))
        return (change.view(apart.shape) / (2 * step)).mT

    def compiled_form(self, start: float, end: float) -> CompiledGravity | None:
        """Return the field for the core between two times [s]; None: only in Python.

        Subclasses do not inherit it.
        """
        del start, end

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the weights for the core; with adaptive schemes, check the speed."""
        force = self.force_in(None, start, end)
        integration = None if self._sim is None else self._sim.integration
        if force is None or integration is None:
            return None
        is_adaptive = isinstance(integration.scheme, Adaptive)
        return replace(force, check=self._check_speed if is_adaptive else None)

    def force_in(
        self, frame: MovingFrame | None, start: float, end: float
    ) -> CompiledForce | None:
        """Return the force on its bodies for the core; None: Python computes it.

        Args:
            frame: the frame that the bodies are in; None: the world.
            start: the earliest time [s].
            end: the latest time [s].
        """
        form = self.compiled_form(start, end)
        if form is not None:
            return form.force(self, frame)
        own, base = type(self), Gravity
        follows = ("difference", "gradient", "__call__", "add_loads")
        if any(getattr(own, name) is not getattr(base, name) for name in follows):
            return None  # more than the acceleration is computed in Python
        flag = float(self.gradient_torque)
        return CompiledForce(
            *(core.LoadKind.SAMPLED_GRAVITY, self.bodies, [flag]),
            table=np.array([flag]),
            frame=frame,
            sampled=self,
        )

    def attach(self, sim: SteppingHost) -> None:
        """Find the bodies; raise if another gravity acts on them."""
        if sim.model.opt.gravity.any():
            raise InvalidInputError(
                f"The scene has its own gravity {sim.model.opt.gravity.tolist()} m/s², "
                "which would act as well: set it to zero (SceneCfg(gravity=(0, 0, 0)), "
                "or <option gravity> in MJCF).",
                name="gravity",
            )
        self._bodies = body_ids(sim, self.entity)
        _refuse_another(sim, self._bodies)
        super().attach(sim)
        self._warned = False
        self.prepare(sim)

    def prepare(self, sim: SteppingHost) -> None:
        """Prepare data besides the parameters for a simulation; for subclasses."""
        del sim

    @property
    def bodies(self) -> list[int]:
        """Ids of the bodies that it acts on."""
        return self._bodies

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Add the weights and the torques of the gradient to the loads."""
        place = sim.data.xipos[:, self._bodies].double()
        self._check_speed_and_distance(sim, place)
        self.add_loads(sim, self.acceleration(t, place), t, place)

    def add_loads(
        self, sim: SteppingHost, acceleration: Tensor, t: Tensor, place: Tensor
    ) -> None:
        """Add mass times acceleration at the COMs, and the torque of the gradient.

        Accelerations [m/s²] and positions [m] in world axes, (num_envs, bodies, 3).
        """
        loads = sim.data.xfrc_applied
        mass = worlds_of(sim).engine.parameter("body_mass")[:, self._bodies, None]
        loads[:, self._bodies, :3] += (mass * acceleration).to(loads.dtype)
        if self.gradient_torque:
            inertia = (
                worlds_of(sim)
                .engine.parameter("body_inertia")[:, self._bodies]
                .double()
            )
            axes = sim.data.ximat[:, self._bodies].double()
            torque = gradient_torque(self.gradient(t, place), inertia, axes)
            loads[:, self._bodies, 3:] += torque.to(loads.dtype)

    def _check_speed_and_distance(self, sim: SteppingHost, place: Tensor) -> None:
        """Raise or warn if a moving frame is needed for precision."""
        if sim.dtype == torch.float32 and greatest(place) > _FAR32:
            raise InvalidInputError(
                f"A body is {greatest(place):.3g} m from the origin, where float32 "
                "resolves centimetres at best: give this gravity to a MovingFrame, so "
                'that positions are relative to an orbit, or use engine="native".',
                name="dtype",
            )
        integration = sim.integration
        if integration is not None and isinstance(integration.scheme, Adaptive):
            self._check_speed()

    def _check_speed(self) -> None:
        """Warn once if rounding limits the steps of an adaptive scheme."""
        sim = self._sim
        if self._warned or sim is None or greatest(sim.data.qvel) < _FAST:
            return
        self._warned = True
        warn(
            f"A body moves at {greatest(sim.data.qvel):.3g} m/s in an inertial frame. "
            "MuJoCo's dynamics lose m·v²·ε to rounding, and an adaptive scheme takes "
            "ever smaller steps to meet its tolerance: give this gravity to a "
            "MovingFrame."
        )


def gradient_torque(gradient: Tensor, inertia: Tensor, axes: Tensor) -> Tensor:
    """Return the torque of a field's gradient about the COM, world axes [N·m].

    Args:
        gradient: ∂acceleration/∂position, world axes [1/s²]; (..., 3, 3).
        inertia: principal moments [kg·m²]; (..., 3).
        axes: rotation from the principal axes to the world's; (..., 3, 3).
    """
    own = axes.mT @ gradient @ axes
    ix, iy, iz = inertia.unbind(-1)
    turned = [
        (iz - iy) * own[..., 1, 2],
        (ix - iz) * own[..., 2, 0],
        (iy - ix) * own[..., 0, 1],
    ]
    return apply(axes, torch.stack(turned, dim=-1))


class UniformGravity(SceneForce):
    """A uniform acceleration at the COM of every body of an entity.

    Args:
        acceleration: world axes [m/s²]; shape (3,) or (num_envs, 3).
        entity: the entity whose bodies it acts on; None: all bodies of the scene.
    """

    def __init__(self, acceleration: Values, entity: str | None = None) -> None:
        self.parameters.declare("acceleration", acceleration, 3, unit="m/s²")
        self.entity = entity

    def attach(self, sim: SteppingHost) -> None:
        """Find the bodies."""
        super().attach(sim)
        self._bodies = body_ids(sim, self.entity)

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the weights for the core."""
        del start, end
        numbers = [self.parameters["acceleration"]]
        return CompiledForce(core.LoadKind.UNIFORM_GRAVITY, self._bodies, numbers)

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Add the weights to the loads."""
        mass = worlds_of(sim).engine.parameter("body_mass")[:, self._bodies, None]
        acceleration = self.parameters["acceleration"].to(sim.dtype)
        sim.data.xfrc_applied[:, self._bodies, :3] += mass * acceleration[:, None]


def _refuse_another(sim: SteppingHost, bodies: list[int]) -> None:
    """Raise if another gravity already acts on some of these bodies."""
    for model in forcing_of(sim).models:
        other = getattr(model, "gravity", model)
        if isinstance(other, Gravity) and set(other.bodies) & set(bodies):
            names = [sim.model.body(b).name for b in set(other.bodies) & set(bodies)]
            raise InvalidInputError(
                f"A {type(other).__name__} already acts on body {min(names)!r}. Use "
                "one model for both: PointMassGravity([mu, …], positions) for an "
                "inertial sum, CentralGravity(central, [ThirdBody(mu, position)]) for "
                "a central body that others perturb.",
                name=min(names),
            )
