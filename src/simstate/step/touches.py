"""Contacts that start within an adaptive step, without the compiled core.

The counterpart of `engine/core/touch.c` for the loop over blocks: on warp, without the
core, and with contact sensors. A touch is located by bisection.
"""

# Torch's signatures are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import int_list
from simstate.engine import Stage
from simstate.math.vector import cross
from simstate.step.touchable_geoms import can_touch, touching_geoms
from simstate.world.worlds import Worlds

_WINDOW = 0.1
"""Fraction of the contact time step within which a second touch is not located."""
_FINEST = 1e-10
"""Shortest interval of the bisection [s]."""
_PLANE = mujoco.mjtGeom.mjGEOM_PLANE.value
_SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE.value
_SIMPLE = (mujoco.mjtJoint.mjJNT_HINGE.value, mujoco.mjtJoint.mjJNT_SLIDE.value)


def make_touches(worlds: Worlds, contact_timestep: float) -> Touches | None:
    """Return the touches of the worlds; None if there can be no contact or limit."""
    return Touches(worlds, contact_timestep) if can_touch(worlds.model) else None


class Touches:
    """The contacts and limits of each world at the start of a step and within it.

    Args:
        worlds: the worlds.
        contact_timestep: the time step that limits the stiffness of contacts [s].
    """

    def __init__(self, worlds: Worlds, contact_timestep: float) -> None:
        self._engine = engine = worlds.engine
        self._window = _WINDOW * contact_timestep
        model, device = worlds.model, worlds.device
        order = _ordered(model, touching_geoms(model).tolist())
        self._pairs = torch.tensor(order, device=device).reshape(-1, 2).long()
        limited = [
            joint
            for joint in range(model.njnt)
            if model.jnt_limited[joint] and model.jnt_type[joint] in _SIMPLE
        ]
        self._limited = torch.tensor(limited, device=device).long()
        tendons = np.flatnonzero(model.tendon_limited)
        self._tendons = torch.as_tensor(tendons, device=device).long()
        self._has_others = bool(limited) or len(tendons) > 0 or model.nflex > 0
        at = [int(model.jnt_qposadr[joint]) for joint in limited]
        self._limited_qpos = torch.tensor(at, device=device).long()
        for name in ("geom_xpos", "geom_xmat", "cvel", "subtree_com"):
            engine.field(name)
        if len(tendons):
            engine.field("ten_length")
        self._known: list[Counter[tuple[int, int]]] = [
            Counter() for _ in range(worlds.num_envs)
        ]
        zeros = torch.zeros(worlds.num_envs, dtype=torch.float64, device=device)
        self._upper = torch.full_like(zeros, torch.inf)
        """Upper bound of the time of the touch that is being located [s]."""
        self._last = torch.full_like(zeros, -torch.inf)
        """Time of the last touch that was located [s]."""
        self._after = zeros
        """Time from the start of the trial to the first touch [s]; 0 if none."""
        self._may_locate = zeros > 0
        self._start = self._measure()
        self._fine = 16 * torch.finfo(engine.dtype).eps

    def open(self) -> None:
        """Start a call, which may be at an earlier time than the last one."""
        self._upper.fill_(torch.inf)
        self._last.fill_(-torch.inf)

    def begin(self, chosen: Tensor) -> None:
        """Start a step of these worlds at the state that was evaluated last."""
        ids = chosen.nonzero().flatten()
        for world, found in self._find(ids).items():
            self._known[world] = found
        for kept, new in zip(self._start, self._measure(), strict=True):
            kept[ids] = new[ids]

    def limit(self, time: Tensor, h: Tensor) -> Tensor:
        """Return the steps of a trial from a time [s], at most half way to a touch."""
        finest = (self._fine * time.abs()).clamp(min=_FINEST)
        half = torch.maximum(0.5 * (self._upper - time), finest)
        h = torch.minimum(h, half)
        self._after = torch.zeros_like(h)
        self._may_locate = (h > finest) & (time - self._last > self._window)
        return h

    def look(self, after: Tensor, active: Tensor) -> None:
        """Find new contacts at the current state, `after` the trial's start [s]."""
        unseen = active & (self._after == 0)
        if not self._has_others:  # bounding volumes that are apart do not touch
            unseen = unseen & (self._measure()[0] <= 0).any(dim=1)
        for world, found in self._find(unseen.nonzero().flatten()).items():
            if found - self._known[world]:
                self._after[world] = after[world]

    @property
    def entered(self) -> Tensor:
        """The worlds whose trial has entered a contact; bool, (num_envs,)."""
        return self._after > 0

    @property
    def located(self) -> Tensor:
        """The worlds whose trial is repeated up to the contact; bool, (num_envs,)."""
        return self.entered & self._may_locate

    def end(self, time: Tensor, h: Tensor, good: Tensor, located: Tensor) -> None:
        """Record the results of trials of h from a time [s]."""
        self._upper = torch.where(located, time + self._after, self._upper)
        passed = good & (self.entered | (time + h >= self._upper))
        self._last = torch.where(good & self.entered, time + h, self._last)
        self._upper = torch.where(passed, torch.inf, self._upper)

    def compute_end(self, active: Tensor) -> None:
        """Compute positions and velocities at the end of the trial."""
        engine = self._engine
        kept = engine.keep_accelerations(slice(None))
        engine.forward(active.nonzero().flatten(), Stage.VELOCITY)
        engine.put_back(kept, slice(None))

    def travel(self, h: Tensor) -> Tensor:
        """Return the largest motion of a pair, relative to its limit; (num_envs,).

        If it is at most 1, no geom has passed through another.
        """
        if not len(self._pairs):
            return torch.zeros_like(h)
        (gap0, speed0, turn0), (gap1, speed1, turn1) = self._start, self._measure()
        gaps = gap0.clamp(min=0) + gap1.clamp(min=0)
        speed, turn = torch.maximum(speed0, speed1), torch.maximum(turn0, turn1)
        step = h[:, None].to(gaps.dtype)
        share = (speed + turn) * step / (gaps + 0.5 * self._thickness())
        far = speed * step < gaps
        return torch.where(far | self._is_known(), 0.0, share).amax(dim=1).double()

    def _find(self, ids: Tensor) -> dict[int, Counter[tuple[int, int]]]:
        """Return the contacts and limits of some worlds at the current state."""
        found = {world: Counter[tuple[int, int]]() for world in int_list(ids)}
        if not found:
            return found
        engine = self._engine
        rows = engine.on_demand.contacts(ids)
        margin = engine.parameter("geom_margin")
        for world, geoms, dist in zip(
            rows.world.tolist(), rows.geom.tolist(), rows.dist.tolist(), strict=True
        ):
            own = margin[world if len(margin) > 1 else 0]
            if min(geoms) < 0 or dist < float(own[geoms].max()):
                found[world][min(geoms), max(geoms)] += 1
        if len(self._limited):
            low, high = engine.parameter("jnt_range")[:, self._limited].unbind(-1)
            value = engine.field("qpos").data[:, self._limited_qpos]
            for world, joint in ((value < low) | (value > high)).nonzero().tolist():
                if world in found:
                    found[world][-1, joint] += 1
        if len(self._tendons):
            low, high = engine.parameter("tendon_range")[:, self._tendons].unbind(-1)
            value = engine.field("ten_length").data[:, self._tendons]
            for world, tendon in ((value < low) | (value > high)).nonzero().tolist():
                if world in found:
                    found[world][-2, tendon] += 1
        return found

    def _is_known(self) -> Tensor:
        """Return the pairs that touch at the start; (num_envs, pairs)."""
        pairs = [(min(a, b), max(a, b)) for a, b in self._pairs.tolist()]
        rows = [[pair in known for pair in pairs] for known in self._known]
        return torch.tensor(rows, device=self._pairs.device)

    def _thickness(self) -> Tensor:
        engine = self._engine
        half = engine.parameter("geom_aabb").unflatten(-1, (2, 3))[..., 1, :].amin(-1)
        half = torch.maximum(half, 1e-3 * engine.parameter("geom_rbound"))
        kinds = engine.parameter("geom_type")
        return torch.where(kinds == _PLANE, 0.0, half)[:, self._pairs].sum(-1)

    def _measure(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return distance [m], speed and turning speed [m/s]; (num_envs, pairs) each.

        The distance is a lower bound: a sphere around one geom, a box around the other.
        """
        engine = self._engine
        a, b = self._pairs.unbind(-1)
        pos = engine.field("geom_xpos").data
        rot = engine.field("geom_xmat").data
        velocity, turning = self._velocities(pos)
        radius, box = engine.parameter("geom_rbound"), engine.parameter("geom_aabb")
        kinds = engine.parameter("geom_type")
        offset = pos[:, a] - pos[:, b]
        swept = cross(turning[:, b], offset)
        moving = velocity[:, a] - velocity[:, b] - swept
        is_plane = (kinds == _PLANE)[:, b]
        normal = rot[:, b, :, 2]
        to_plane = (offset * normal).sum(-1) - radius[:, a]
        to_box = torch.maximum(
            _to_box(offset, rot[:, b], box[:, b]) - radius[:, a],
            _to_box(-offset, rot[:, a], box[:, a]) - radius[:, b],
        )
        margin = engine.parameter("geom_margin")[:, self._pairs].amax(-1)
        gap = torch.where(is_plane, to_plane, to_box) - margin
        along = (moving * normal).sum(-1).abs()
        speed = torch.where(is_plane, along, moving.norm(dim=-1))
        turn = (turning[:, a] - turning[:, b]).norm(dim=-1) * radius[:, a]
        return gap, speed, torch.where((kinds == _SPHERE)[:, a], 0.0, turn)

    def _velocities(self, pos: Tensor) -> tuple[Tensor, Tensor]:
        """Return velocity and angular velocity of all geoms, world axes."""
        engine, model = self._engine, self._engine.model
        body = torch.as_tensor(model.geom_bodyid, device=pos.device).long()
        root = torch.as_tensor(model.body_rootid, device=pos.device).long()[body]
        cvel = engine.field("cvel").data[:, body]
        arm = pos - engine.field("subtree_com").data[:, root]
        turning = cvel[..., :3]
        swept = cross(turning, arm)
        return cvel[..., 3:] + swept, turning


def _ordered(model: mujoco.MjModel, pairs: list[list[int]]) -> list[list[int]]:
    """Sort each pair: no plane first, then a sphere, then the smaller geom."""

    def rank(geom: int) -> tuple[bool, bool, float]:
        kind = int(model.geom_type[geom])
        return kind == _PLANE, kind != _SPHERE, float(model.geom_rbound[geom])

    return [sorted(pair, key=rank) for pair in pairs]


def _to_box(offset: Tensor, rot: Tensor, box: Tensor) -> Tensor:
    """Return the distance of a point from a geom's box [m]; (num_envs, pairs)."""
    local = (rot.transpose(-1, -2) @ offset[..., None])[..., 0]
    centre, half = box.unflatten(-1, (2, 3)).unbind(-2)
    return ((local - centre).abs() - half).clamp(min=0).norm(dim=-1)
