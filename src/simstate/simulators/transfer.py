"""States and recordings taken from one simulator to another.

    carry(sim.get_states(mode="tensor"), drake)
    for state in replay(recording, newton): …

Poses and velocities need no conversion: their contract is the same for all simulators.
Joints are matched by name. A `JointMap` describes joints that have other names on the
other side, opposite axes, other units or another zero.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.simulators.align.findings import SimulatorAlignment
from simstate.simulators.protocol import Simulator
from simstate.state import EntityTensors, TensorState

_POSITIONS = ("dof_pos", "dof_pos_target")
_VELOCITIES = ("dof_vel", "dof_vel_target")


@dataclass(frozen=True)
class JointMap:
    """The other side's representation of the 1-DoF joints of one entity.

    Their position = scale × our position + offset; their velocity = scale × ours.
    """

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Our name → theirs, for joints whose names differ."""
    scale: Mapping[str, float] = field(default_factory=dict[str, float])
    """Our name → factor: −1 for an opposite axis, 180/π for degrees."""
    offset: Mapping[str, float] = field(default_factory=dict[str, float])
    """Our name → their position where ours is zero, in their unit."""

    def to_theirs(self, state: EntityTensors) -> EntityTensors:
        """Convert our state of the entity to the other side's."""
        scale, offset = self._scale_and_offset(state.joint_names, state.dof_pos)
        names = tuple(self.names.get(name, name) for name in state.joint_names)
        return _converted(state, names, lambda q: q * scale + offset, scale)

    def to_ours(self, state: EntityTensors) -> EntityTensors:
        """Convert the other side's state of the entity to ours."""
        back = {theirs: ours for ours, theirs in self.names.items()}
        names = tuple(back.get(name, name) for name in state.joint_names)
        scale, offset = self._scale_and_offset(names, state.dof_pos)
        return _converted(state, names, lambda q: (q - offset) / scale, 1.0 / scale)

    def _scale_and_offset(
        self, names: tuple[str, ...], like: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return scale and offset of the joints in this order; shape (joints,)."""
        for table in (self.names, self.scale, self.offset):
            for name in table:
                if name not in names:
                    raise unknown_name("joint of a JointMap", name, names)
        for name, factor in self.scale.items():
            if factor == 0.0:
                raise InvalidInputError(
                    f"The scale of joint {name!r} must not be 0.", name=name
                )
        return (
            like.new_tensor([self.scale.get(name, 1.0) for name in names]),
            like.new_tensor([self.offset.get(name, 0.0) for name in names]),
        )


def _converted(
    state: EntityTensors,
    names: tuple[str, ...],
    position: Callable[[Tensor], Tensor],
    factor: Tensor,
) -> EntityTensors:
    """Return a state with its joints renamed and rescaled."""
    changed = {key: position(getattr(state, key)) for key in _POSITIONS}
    changed |= {key: getattr(state, key) * factor for key in _VELOCITIES}
    if state.dof_effort_target is not None:  # power = effort × velocity is the same
        changed["dof_effort_target"] = state.dof_effort_target / factor
    return dataclasses.replace(state, joint_names=names, **changed)


def mapped(
    state: TensorState, maps: Mapping[str, JointMap] | None, back: bool = False
) -> TensorState:
    """Convert the joints of some entities to the other side's representation.

    Args:
        state: of any number of worlds.
        maps: representation of the joints, by entity; None: the same as ours.
        back: whether to convert from the other side's representation to ours.
    """
    if not maps:
        return state
    for name in maps:
        if name not in state.entities:
            raise unknown_name("entity of a JointMap", name, state.entities)

    def convert(name: str, part: EntityTensors) -> EntityTensors:
        if name not in maps:
            return part
        return maps[name].to_ours(part) if back else maps[name].to_theirs(part)

    return state.converted(convert)


def carry(
    state: TensorState, to: Simulator, maps: Mapping[str, JointMap] | None = None
) -> None:
    """Set a simulator to the state of another one."""
    to.set_states(mapped(state, maps))


def replay(
    recording: Iterable[TensorState],
    to: Simulator,
    maps: Mapping[str, JointMap] | None = None,
) -> Iterator[TensorState]:
    """Write the states of a recording to a simulator; yield each as read back.

    Joints are converted back to ours, so that `diff` can compare the two.
    """
    for state in recording:
        carry(state, to, maps)
        seen = to.get_states(mode="tensor", cameras=False)
        yield mapped(seen, maps, back=True)


def follow(
    recording: Iterable[TensorState],
    to: Simulator,
    steps: int = 1,
    maps: Mapping[str, JointMap] | None = None,
) -> Iterator[TensorState]:
    """Run a simulator on the targets of a recording; yield its states.

    It starts at the first state. The targets of each state act for `steps` steps, the
    time until the next state, of which only the targets are used.
    """
    started = False
    for state in recording:
        wanted = mapped(state, maps)
        if started:
            to.step(steps)
            present = to.get_states(mode="tensor", cameras=False)
            wanted = _with_targets(present, wanted)
        to.set_states(wanted)
        started = True
        seen = to.get_states(mode="tensor", cameras=False)
        yield mapped(seen, maps, back=True)


def _with_targets(present: TensorState, wanted: TensorState) -> TensorState:
    """Return a state with the targets of another."""

    def aim(name: str, part: EntityTensors) -> EntityTensors:
        source = wanted.entities[name].reorder(part.joint_names)
        return dataclasses.replace(
            part,
            dof_pos_target=source.dof_pos_target,
            dof_vel_target=source.dof_vel_target,
        )

    return present.converted(aim)


def joint_maps(alignment: SimulatorAlignment) -> dict[str, JointMap]:
    """Return maps of the joints whose axes an alignment found to be opposite.

    An axis that is neither the same nor the opposite one raises InvalidInputError.
    """
    scales: dict[str, dict[str, float]] = {}
    for difference in alignment.parameters:
        if difference.kind != "joint axis":
            continue
        if not np.allclose(difference.ours, -np.array(difference.theirs), atol=1e-5):
            raise InvalidInputError(
                f"{difference}: the axes are not opposite, so no JointMap converts the "
                "joint's position.",
                name="axis",
            )
        entity, _, joint = difference.element.rpartition("/")
        scales.setdefault(entity, {})[joint] = -1.0
    return {entity: JointMap(scale=scale) for entity, scale in scales.items()}
