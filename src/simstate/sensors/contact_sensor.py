"""Contact sensors: forces on named elements, by what touches them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from simstate.base.by_name import Named
from simstate.base.checks import number
from simstate.engine import Stage
from simstate.math.vector import apply, cross, dot, norm
from simstate.scene.contact_sensors import BuiltContacts
from simstate.sensors.contact_layout import ContactLayout
from simstate.sensors.contact_memory import ContactMemory
from simstate.world.declared import LAST_EVALUATION, Reading, Readings
from simstate.world.worlds import Worlds

T = TypeVar("T")


class _Acting(NamedTuple):
    """Points at which all contacts of each element act; (num_envs, E, 3) each."""

    torque: Tensor
    pos: Tensor


class _Single(NamedTuple):
    """The strongest contacts of each element; shapes (num_envs, E, k, …)."""

    found: Tensor
    force: Tensor
    torque: Tensor
    pos: Tensor
    normal: Tensor
    distance: Tensor


def _reading(
    compute: Callable[[Any], Tensor], unit: str, *shape: int, point: str = "–"
) -> Reading:
    """Declare a number of each element."""
    return Reading(
        compute, unit=unit, shape=("elements", *shape), stage=Stage.ACCELERATION,
        point=point, axes="world" if shape else "–", when=LAST_EVALUATION,
    )  # fmt: skip


def _single(
    compute: Callable[[Any], Tensor], unit: str, *shape: int, point: str = "–"
) -> Reading:
    """Declare a number of each of the strongest contacts of each element."""
    return Reading(
        compute, unit=unit, shape=("elements", "strongest", *shape), point=point,
        stage=Stage.ACCELERATION, axes="world" if shape else "–", when=LAST_EVALUATION,
    )  # fmt: skip


def _remembered(name: str, unit: str, *shape: str | int) -> Reading:
    """Declare a number that is memory of the ledger."""
    before, after = shape[:1], shape[1:]
    return Reading(
        lambda sensor: sensor._memory.slots[name], unit=unit, live=True,
        shape=(*before, "elements", *after), stage=Stage.STATE,
        axes="world" if after else "–",
    )  # fmt: skip


def _along(force: Tensor, normal: Tensor) -> Tensor:
    return dot(force, normal)[..., 0]


def _across(force: Tensor, normal: Tensor) -> Tensor:
    return norm(force - dot(force, normal) * normal)[..., 0]


class ContactSensor(Readings):
    """The contacts of some elements in all worlds; engine's dtype, world axes.

    Forces and torques are those **on** the named element, by what touches it: a foot
    that stands on the ground reads a force that points up. Normals point the same way,
    out of the other side's surface.

    All of it is of the last dynamics evaluation: after `sim.step` that is the state
    before the last time step, as for `joint_acc`; after a write, or `sim.forward()`, it
    is the present state. What nothing touches reads zero.
    """

    def __init__(self, worlds: Worlds, name: str, built: BuiltContacts) -> None:
        super().__init__(worlds, f"sim.contacts[{name!r}]")
        self.name = name
        self.element_names = built.names
        """The named elements, as "entity/name", in the order of the readings."""
        self._threshold = built.cfg.threshold
        self._layout = ContactLayout(worlds.model, built, worlds.device)
        self._memory = ContactMemory(
            worlds, name, self._layout, built.cfg.threshold, built.cfg.history,
            built.cfg.every_step,
        )  # fmt: skip
        worlds.engine.observers.append(self._memory)

    @property
    def num_elements(self) -> int:
        """The number of named elements."""
        return len(self.element_names)

    def first_contact(self, dt: float) -> Tensor:
        """Return True for elements that touched down in the last dt [s]; (num_envs, E).

        In an environment dt is `env.step_dt`.
        """
        return self._began(self.contact_time, dt)

    def first_air(self, dt: float) -> Tensor:
        """Return True for elements that lifted off in the last dt [s]; (N, E)."""
        return self._began(self.air_time, dt)

    def _began(self, clock: Any, dt: float) -> Tensor:
        if type(dt) is not float or not 0.0 < dt < math.inf:
            number("dt", dt, more_than=0, unit="s")
        # Sums of time steps are not exact: half of one is between two of them.
        timestep: Any = self._reader.worlds.engine.parameter("opt.timestep")
        if not isinstance(clock, Tensor):  # on the host it may be an array
            timestep = timestep.numpy()
        half = 0.5 * timestep[:, None]
        return (clock > 0.0) & (clock < dt + half)

    # All contacts of an element together.
    found = _reading(lambda sensor: sensor._touches(), "1")
    """True if the element is in contact: the net force on it is above the threshold;
    bool, (num_envs, E)."""
    count = _reading(lambda sensor: sensor._count(), "1")
    """Number of contact points, those without a force included; int64, (num_envs,
    E)."""
    force_w = _reading(lambda sensor: sensor._force(), "N", 3)
    """Net contact force on the element, by the other side, world axes [N]; (num_envs,
    E, 3)."""
    torque_w = _reading(lambda sensor: sensor._acting().torque, "N·m", 3, point="pos_w")
    """Net contact torque on the element about pos_w, by the other side, world axes
    [N·m]; (num_envs, E, 3)."""
    pos_w = _reading(lambda sensor: sensor._acting().pos, "m", 3)
    """Point at which the net force acts: the mean of the contact points, weighted by
    their forces, or that of several other sides, weighted by their net forces, zero
    without a force, world axes [m]; (num_envs, E, 3)."""
    normal_w = _reading(lambda sensor: sensor._single().normal[:, :, 0], "1", 3)
    """Unit normal of the strongest contact, from the other side to the element, world
    axes; (num_envs, E, 3)."""
    distance = _reading(lambda sensor: sensor._single().distance[:, :, 0], "m")
    """Distance of the surfaces at the strongest contact, negative where they are inside
    one another [m]; (num_envs, E)."""
    normal_force = _reading(lambda s: _along(s.force_w, s.normal_w), "N")
    """Net force along normal_w, positive where the sides press on each other [N];
    (num_envs, E)."""
    tangential_force = _reading(lambda s: _across(s.force_w, s.normal_w), "N")
    """Magnitude of the net force across normal_w: friction, where all normals are alike
    [N]; (num_envs, E)."""

    # The strongest contacts of an element, one by one.
    strongest_found = _single(lambda sensor: sensor._single().found, "1")
    """True if there is such a contact; bool, (num_envs, E, k)."""
    strongest_force_w = _single(lambda sensor: sensor._single().force, "N", 3)
    """Force of each contact on the element, world axes [N]; (num_envs, E, k, 3)."""
    strongest_torque_w = _single(
        lambda sensor: sensor._single().torque, "N·m", 3, point="strongest_pos_w"
    )
    """Torque of each contact on the element about its point: torsional and rolling
    friction, world axes [N·m]; (num_envs, E, k, 3)."""
    strongest_pos_w = _single(lambda sensor: sensor._single().pos, "m", 3)
    """Point of each contact, midway between the surfaces, world axes [m]; (num_envs, E,
    k, 3)."""
    strongest_normal_w = _single(lambda sensor: sensor._single().normal, "1", 3)
    """Unit normal of each contact, from the other side to the element, world axes;
    (num_envs, E, k, 3)."""
    strongest_distance = _single(lambda sensor: sensor._single().distance, "m")
    """Distance of the surfaces at each contact, negative inside [m]; (num_envs, E,
    k)."""
    strongest_normal_force = _single(
        lambda s: _along(s.strongest_force_w, s.strongest_normal_w), "N"
    )
    """Force of each contact along its normal, not negative [N]; (num_envs, E, k)."""
    strongest_tangential_force = _single(
        lambda s: _across(s.strongest_force_w, s.strongest_normal_w), "N"
    )
    """Friction force of each contact, magnitude [N]; (num_envs, E, k)."""

    # Memory.
    air_time = _remembered("air_time", "s")
    """Time for which the element has been off, 0 in contact [s]; (num_envs, E)."""
    contact_time = _remembered("contact_time", "s")
    """Time for which the element has been in contact, 0 while off [s]; (num_envs,
    E)."""
    last_air_time = _remembered("last_air_time", "s")
    """Duration of the last phase without contact [s]; (num_envs, E)."""
    last_contact_time = _remembered("last_contact_time", "s")
    """Duration of the last phase of contact [s]; (num_envs, E)."""
    greatest_force = _remembered("greatest_force", "N")
    """Largest magnitude of the net force in any time step of the last `sim.step(n)`
    [N]; (num_envs, E)."""
    force_history_w = _remembered("force_history_w", "N", "history", 3)
    """Net force on the element in the last time steps, the latest first, world axes
    [N]; (num_envs, history, E, 3)."""

    def _touches(self) -> Tensor:
        return norm(self.force_w)[..., 0] > self._threshold

    def _net(self) -> dict[str, Tensor]:
        """Views of the net forces: each reading takes from them what it needs."""
        return self._layout.net(self._reader.worlds.engine.field("sensordata"))

    def _count(self) -> Tensor:
        return self._over_others(self._net()["count"]).round().to(torch.int64)

    def _force(self) -> Tensor:
        return -self._over_others(self._net()["force"])

    def _over_others(self, values: Tensor) -> Tensor:
        return values[:, :, 0] if self._layout.others == 1 else values.sum(dim=2)

    def _acting(self) -> _Acting:
        return self._shared("net contact", self._compute_acting)

    def _single(self) -> _Single:
        return self._shared("contacts one by one", self._compute_single)

    def _shared(self, name: str, compute: Callable[[], T]) -> T:
        return self._reader.shared(name, Stage.ACCELERATION, compute)

    def _compute_acting(self) -> _Acting:
        net = self._net()
        if self._layout.others == 1:
            return _Acting(-net["torque"][:, :, 0], net["pos"][:, :, 0].clone())
        weight = norm(net["force"])
        weight = weight / weight.sum(dim=2, keepdim=True).clamp(min=1e-30)
        pos = (weight * net["pos"]).sum(dim=2)
        arm = net["pos"] - pos[:, :, None]
        torque = -(net["torque"] + cross(arm, net["force"])).sum(dim=2)
        return _Acting(torque, pos)

    def _compute_single(self) -> _Single:
        field = self._reader.worlds.engine.field("sensordata")
        single = self._layout.single(field)
        normal, tangent = single["normal"], single["tangent"]
        axes = torch.stack([normal, tangent, cross(normal, tangent)], dim=-1)
        return _Single(
            found=single["found"] > 0,
            force=-apply(axes, single["force"]),
            torque=-apply(axes, single["torque"]),
            pos=single["pos"].clone(),
            normal=-normal,
            distance=single["dist"].clone(),
        )


class SceneContacts(Named[ContactSensor]):
    """The contact sensors of a scene by name."""

    kind = "contact sensor"
    how_to_declare = "declare it with SceneCfg(contacts={{{name}: ContactCfg(of=…)}})."

    def __init__(self, worlds: Worlds, built: Mapping[str, BuiltContacts]) -> None:
        super().__init__({n: ContactSensor(worlds, n, one) for n, one in built.items()})
