"""The warp engine: MuJoCo Warp on CUDA or the CPU, float32.

Importing this module loads Warp; the package does so only for `engine="warp"`.
"""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine.engine import MAX_VALUE, Engine, model_value
from simstate.engine.engine_cfg import BareForward, WarpCfg
from simstate.engine.fields import (
    AFTER_CONSTRAINTS,
    EVALUATED_FIELDS,
    EVOLVING_FIELDS,
    STATE_FIELDS,
)
from simstate.engine.model_repairs import PLACES, StaticGeoms, ZeroQuats
from simstate.engine.on_demand import OnDemand
from simstate.engine.stage import Seen, Stage
from simstate.engine.warp_passes import WarpPasses
from simstate.engine.warp_room import Room
from simstate.engine.warp_start import initialise, refusal  # before mujoco_warp

import mujoco_warp as mjw  # isort: skip

_COMPUTED = frozenset(
    (
        "body_subtreemass",
        "body_invweight0",
        "dof_invweight0",
        "tendon_length0",
        "tendon_invweight0",
        "actuator_acc0",
        "geom_aabb",
        "geom_rbound",
        "eq_data",
        "cam_pos0",
        "cam_poscom0",
        "cam_mat0",
        "light_pos0",
        "light_poscom0",
        "light_dir0",
    )
)
"""The constants that MuJoCo Warp's set_const computes."""


class WarpEngine(Engine):
    """Worlds in MuJoCo Warp's arrays; each state field is a separate array."""

    name = "warp"
    dtype = torch.float32
    state_is_live = False
    constants = _COMPUTED
    can_settle = True

    def __init__(
        self,
        model: mujoco.MjModel,
        num_envs: int,
        device: torch.device,
        cfg: WarpCfg,
        timestep: float | None = None,
    ) -> None:
        if device.type == "cuda" and not torch.cuda.is_available():
            raise InvalidInputError(
                "device='cuda' needs a CUDA device, but torch finds none: use 'cpu'.",
                name="device",
            )
        super().__init__(model, num_envs, device)
        self._cfg = cfg
        if timestep is not None:
            model = copy.copy(model)
            model.opt.timestep = timestep
        initialise(device)
        self.warp_device = wp.device_from_torch(device)
        try:
            with wp.ScopedDevice(self.warp_device):
                self.warp_model = mjw.put_model(model)
                self.warp_data = mjw.make_data(
                    model,
                    nworld=num_envs,
                    nconmax=cfg.contacts_per_world,
                    njmax=cfg.constraints_per_world,
                )
        except (NotImplementedError, ValueError) as error:
            raise refusal(error) from error
        self.warp_model.opt.warn_overflow = 0  # a Python warning reports it instead
        self._static_geoms = StaticGeoms(model, device)
        self._room = Room(model, self.warp_model, self.warp_data)
        self._unforced = wp.to_torch(self.warp_data.qacc_smooth, requires_grad=False)
        """Unconstrained accelerations; shape (num_envs, nv)."""
        for name in (*STATE_FIELDS, *EVALUATED_FIELDS):
            self.field(name)
        zero_quats = ZeroQuats(model, self._alias("qpos"), self._alias("mocap_quat"))
        self._passes = WarpPasses(model, self.warp_arrays(), device, zero_quats)
        self._went_bad = super().bad_worlds()
        """Worlds that were invalid at the start of a step or during it."""

    @property
    def state(self) -> Tensor:
        """A copy of the state of all worlds; shape (num_envs, nstate)."""
        return self.join(self.fields)

    def state_memory(self) -> list[tuple[tuple[str, ...], Tensor]]:
        """Return the array of each field."""
        return [((name,), self._alias(name)) for name in STATE_FIELDS]

    def is_bound(self, name: str) -> bool:
        """Return True; only the mass matrix must be bound to be kept up to date."""
        return name != "M" or name in self.fields

    def _bind(self, name: str) -> Tensor:
        array = getattr(self.warp_data, name, None)
        shape = self.field_shape(name)
        if array is None:  # plugin_state: Warp has no plugins
            return torch.zeros(shape, dtype=self.dtype, device=self.device)
        tensor = wp.to_torch(array, requires_grad=False).view(shape)
        if name == "M":
            self._passes.compute_mass_matrix()
        if name != "eq_active":
            return tensor
        self._switches = tensor  # boolean in Warp; see set_switches
        return tensor.to(self.dtype)

    def begin_evaluation(self) -> None:
        """Record the worlds that are already invalid.

        Warp normalises a quaternion with a NaN to another attitude, clips a NaN
        control, and treats any value as an active equality: a step would hide them.
        """
        self._went_bad = super().bad_worlds()
        self._room.clear()

    def _look(self, positions: dict[str, Tensor]) -> None:
        """Record problems of one evaluation of the dynamics.

        If a force is too large for float32, the solver fails and returns its initial
        accelerations; the unconstrained ones are a better estimate.
        """
        self._room.look(positions)
        huge = ~(self._unforced.abs() <= MAX_VALUE).all(dim=1)
        self._went_bad |= huge
        qacc = self._alias("qacc")
        qacc.copy_(torch.where(huge[:, None], self._unforced, qacc))

    def _make_on_demand(self) -> OnDemand:
        from simstate.engine.warp_on_demand import WarpOnDemand

        return WarpOnDemand(self)

    def step(
        self,
        n: int,
        env_ids: Tensor | None,
        settle: Callable[[], None] | None = None,
    ) -> int:
        """Advance by n steps; worlds not in `env_ids` are restored afterwards.

        With `settle`, the host does not read back which worlds diverged.
        """
        self.begin_step()
        self._take_steps(n, env_ids)
        if settle is None:
            self._refresh()
            return self.seen()
        settle()
        self._refresh()
        return Seen.WARNED.value

    def advance(self, n: int, env_ids: Tensor | None) -> None:
        """Advance by n steps; worlds not in `env_ids` are restored afterwards."""
        self._take_steps(n, env_ids)
        self._refresh()

    def _take_steps(self, n: int, env_ids: Tensor | None) -> None:
        others = self._others(env_ids)
        kept: dict[str, Tensor] = {}
        before: dict[str, Tensor] = {}
        if others is not None:
            kept = self.keep_accelerations(others)
            before = {name: self._alias(name)[others] for name in EVOLVING_FIELDS}
        self.set_switches()
        for _ in range(n):
            positions = self._room.positions()
            self._passes.step()
            self._look(positions)
            self.note_evaluation()
            self.note_steps(1, env_ids)
        if others is not None:
            for name, values in before.items():
                self._alias(name)[others] = values
            self.put_back(kept, others)
        self._copy_kept(env_ids)

    def keep(self, name: str, memory: Tensor) -> None:
        """Copy a field out of Warp's arrays after every step from now on."""
        self.kept[name] = memory
        self._passes.keep_fourth(name)
        if name in AFTER_CONSTRAINTS:
            self.warp_model.opt.run_rne_postconstraint = True
        self._passes.forget()  # they were captured without it

    def evaluate_kept(self, env_ids: Tensor | None, after_constraints: bool) -> None:
        """Evaluate all worlds, and copy the kept fields of these."""
        self.forward(env_ids, Stage.ACCELERATION)
        for name, array in self._passes.fourth.items():
            wp.copy(array, getattr(self.warp_data, name))
        self._copy_kept(env_ids)
        if not (after_constraints or self.warp_model.sensor_rne_postconstraint):
            for name in AFTER_CONSTRAINTS:
                if name in self.kept:
                    rows = slice(None) if env_ids is None else env_ids
                    self.kept[name].data[rows] = 0.0

    def _copy_kept(self, env_ids: Tensor | None) -> None:
        self.kept_writes += 1
        rows = slice(None) if env_ids is None else env_ids
        for name, memory in self.kept.items():
            found = self._alias(name)
            if name in self._passes.fourth:
                array = wp.to_torch(self._passes.fourth[name], requires_grad=False)
                found = array.view(memory.shape)
            memory.data[rows] = found[rows]

    def has_warned(self) -> bool:
        """Return True: only `report_warnings` reads the flags from the device."""
        return True

    def set_switches(self) -> None:
        """Copy the active flags of equality constraints to Warp."""
        if self.model.neq:
            self._switches.copy_(self.field("eq_active") != 0)

    def forward(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute derived fields up to `stage`; Warp runs all worlds.

        The other worlds keep the accelerations of their last evaluation.
        """
        if stage != Stage.ACCELERATION:
            self._refresh()
            return
        others = self._others(env_ids)
        kept = {} if others is None else self.keep_accelerations(others)
        self.set_switches()
        self._passes.forward()
        self._look(self._room.positions())
        if others is not None:
            self.put_back(kept, others)
        self.note_evaluation()

    def _others(self, env_ids: Tensor | None) -> Tensor | None:
        """Return the mask of worlds not in `env_ids`; None if there are none."""
        if env_ids is None:
            return None
        others = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        others[env_ids] = False
        return others

    def bad_worlds(self) -> Tensor:
        """Return the mask of worlds that are or were invalid, or that lost contacts."""
        return self._went_bad | super().bad_worlds() | self._room.lost

    def find_bad(self) -> Tensor | None:
        """Return `bad_worlds`, or None if there are none."""
        bad = self.bad_worlds()
        return bad if bool(bad.any()) else None

    def cause(self, world: int) -> tuple[str, int] | None:
        """Return the first acceleration that is too large."""
        huge = ~(self._unforced[world].abs() <= MAX_VALUE)
        return ("qacc", int(huge.nonzero()[0])) if bool(huge.any()) else None

    def loss(self, world: int) -> str:
        """Describe what was dropped because buffers were full, and the remedy."""
        return self._room.remedy() if bool(self._room.lost[world]) else ""

    def _refresh(self) -> None:
        """Compute positions, velocities and their sensors at the present state."""
        kept = {}
        if self.model.nsensordata:
            kept = {"sensordata": self.field("sensordata").clone()}
        self._passes.refresh()
        self.put_back(kept, slice(None))

    def report_warnings(self, env_ids: Tensor | None) -> bool:
        """Warn about dropped or inaccurate contacts since `begin_step`."""
        return self._room.report(env_ids)

    def warp_arrays(self) -> tuple[Any, Any]:
        """Return the engine's arrays."""
        return self.warp_model, self.warp_data

    def bare_forward(self) -> BareForward | None:
        """Evaluate the present state by MuJoCo Warp only; None if parameters differ."""
        if self.expanded:
            return None
        from simstate.engine.warp_bare import bare_forward

        fields = {name: self.field(name) for name in STATE_FIELDS}
        with wp.ScopedDevice(self.warp_device):
            return bare_forward(self.model, fields, self.num_envs, self._cfg)

    def _expand(self, name: str) -> Tensor:
        owner, attribute = self._owner(name)
        specs = {field.name: field.type for field in dataclasses.fields(owner)}
        spec_shape = getattr(specs.get(attribute), "shape", ())
        if not spec_shape or spec_shape[0] != "*":
            known = [
                prefix + field.name
                for prefix, part in (("", mjw.Model), ("opt.", mjw.Option))
                for field in dataclasses.fields(part)
                if getattr(field.type, "shape", ("",))[:1] == ("*",)
            ]
            raise unknown_name("model parameter per world on warp", name, known)
        shape = np.shape(model_value(self.model, name))
        shared = getattr(owner, attribute)
        tensor = wp.to_torch(shared, requires_grad=False)
        rows = tensor.expand(self.num_envs, *tensor.shape[1:]).contiguous()
        with wp.ScopedDevice(self.warp_device):
            array = wp.from_torch(rows, dtype=shared.dtype, requires_grad=False)
        setattr(owner, attribute, array)
        self._passes.forget()  # they hold the shared array's address
        return rows.view(self.num_envs, *shape)

    def _owner(self, name: str) -> tuple[Any, str]:
        """Return the Warp struct that holds a model parameter, and its name there."""
        if name.startswith("opt."):
            return self.warp_model.opt, name.removeprefix("opt.")
        return self.warp_model, name

    def set_const(self, env_ids: Tensor | None) -> None:
        """Recompute the constants, in these worlds; the state is kept."""
        computed = [
            name for name in _COMPUTED if np.size(model_value(self.model, name))
        ]
        kept = {name: self.expand(name).clone() for name in computed}
        self._constants_differ = True
        self._passes.set_const()
        others = self._others(env_ids)
        if others is not None:
            for name, values in kept.items():
                # An alias, so that it does not count as a write.
                self.expanded[name].data[others] = values[others]
        self._place_static_geoms()

    def _place_static_geoms(self) -> None:
        """Update geoms that no joint moves from their parameters; Warp does not."""
        if not len(self._static_geoms) or not PLACES & self.expanded.keys():
            return
        self._passes.kinematics()
        self._static_geoms.place(
            self._alias("xpos"),
            self._alias("xquat"),
            self.parameter("geom_pos"),
            self.parameter("geom_quat"),
            self._alias("geom_xpos"),
            self._alias("geom_xmat"),
        )
