"""Learned actuators: a network from position errors and velocities to efforts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.base.errors import InvalidInputError, ModelError
from simstate.base.onnx_file import onnx_session
from simstate.env.actions import PerJoint
from simstate.env.joint_pd_action import JointPdAction, JointPdActionCfg

if TYPE_CHECKING:
    from simstate.env.env import Env

Network = Callable[[Tensor], Tensor]


@dataclass(kw_only=True)
class ActuatorNetworkActionCfg(JointPdActionCfg):
    """Position targets [rad or m] for joints whose efforts a network computes.

    Before every physics step, its input is a row for each joint of each world: the
    position errors q* − q at the steps of `history`, then the velocities at the same
    steps, or in the other `order`. Its output is one effort per row. All joints share
    the network. The limits of JointPdActionCfg apply; stiffness and damping do not.
    """

    stiffness: PerJoint = 0.0
    network: str | Path
    """A file with one input and one output, in the format of `network_format`."""
    network_format: Literal["onnx", "torchscript"] = "onnx"
    """"onnx" runs operators of ONNX Runtime only. "torchscript" (.pt) runs the code in
    the file: use it for files that you trust."""
    history: tuple[int, ...] = (0, 1, 2)
    """Ages of the inputs in physics steps, in the order of the network's columns."""
    order: Literal["position_velocity", "velocity_position"] = "position_velocity"
    position_scale: float = 1.0
    """Factor of the position errors in the network's input."""
    velocity_scale: float = 1.0
    """Factor of the velocities in its input."""
    effort_scale: float = 1.0
    """Factor of its output [N·m or N]."""

    def make(self, name: str, env: Env) -> ActuatorNetworkAction:
        """Return the term, resolved in the environment's scene."""
        return ActuatorNetworkAction(name, self, env)


class ActuatorNetworkAction(JointPdAction):
    """Computes efforts by a network in every physics step."""

    def __init__(self, name: str, cfg: ActuatorNetworkActionCfg, env: Env) -> None:
        super().__init__(name, cfg, env)
        if not cfg.history or min(cfg.history) < 0:
            raise InvalidInputError(
                f"The action term {name!r} has history {cfg.history}: it must be one "
                "or more numbers of steps ≥ 0, such as (0, 1, 2)."
            )
        self._network_cfg = cfg
        self._network = load_network(
            Path(cfg.network), str(env.device), cfg.network_format
        )
        shape = (max(cfg.history) + 1, self.dim)
        dtype = env.sim.dtype
        self.errors = env.memory("errors", shape, dtype=dtype)
        """Position errors of the last physics steps, the latest first."""
        self.velocities = env.memory("velocities", shape, dtype=dtype)
        """Velocities of the last physics steps, the latest first."""

    def efforts(self, action: Tensor) -> Tensor:
        """Return the network's present efforts for an action; shape (num_envs, dim)."""
        data, ids, cfg = self.entity.data, self.joints.joint_ids, self._network_cfg
        velocity = data.joint_vel[:, ids]
        error = self.targets(action) - data.joint_pos_biased[:, ids]
        _push(self.errors, error)
        _push(self.velocities, velocity)
        steps = list(cfg.history)
        parts = [
            self.errors[:, steps] * cfg.position_scale,
            self.velocities[:, steps] * cfg.velocity_scale,
        ]
        if cfg.order == "velocity_position":
            parts.reverse()
        rows = torch.cat(parts, dim=1).transpose(1, 2).flatten(0, 1)
        with torch.no_grad():
            effort = self._network(rows.float()).reshape(velocity.shape)
        return self.limited(effort.to(velocity) * cfg.effort_scale, velocity)


def load_network(path: Path, device: str, file_format: str = "onnx") -> Network:
    """Return the network of a file, which holds TorchScript only if that is stated."""
    one_of("network_format", file_format, ("onnx", "torchscript"))
    if not path.is_file():
        raise ModelError(f"There is no actuator network {str(path)!r}.")
    if file_format == "torchscript":
        return _load_torchscript(path, device)
    if path.suffix != ".onnx":
        raise ModelError(
            f"{str(path)!r} is not an .onnx file. Loading TorchScript runs the code in "
            'the file: if you trust it, set network_format="torchscript"; else export '
            "the network by torch.onnx.export.",
            name=str(path),
        )
    return _load_onnx(path)


def _load_torchscript(path: Path, device: str) -> Network:
    jit: Any = torch.jit
    try:
        return jit.load(path, map_location=device).eval()
    except RuntimeError as error:
        raise ModelError(
            f"{str(path)!r} cannot be read as TorchScript: save it with "
            "torch.jit.script(network).save(path), or export it to .onnx.",
            name=str(path),
        ) from error


def _load_onnx(path: Path) -> Network:
    try:
        session = onnx_session(path)
    except InvalidInputError as error:
        raise ModelError(
            f"The actuator network cannot be read: {error}", name=str(path)
        ) from error
    taken, given = session.get_inputs(), session.get_outputs()
    if len(taken) != 1 or len(given) != 1:
        raise ModelError(
            f"The actuator network {str(path)!r} must have one input and one output, "
            f"got {len(taken)} and {len(given)}."
        )

    def run(rows: Tensor) -> Tensor:
        (found,) = session.run(None, {taken[0].name: rows.cpu().numpy()})
        return torch.as_tensor(found, device=rows.device)

    return run


def _push(memory: Tensor, latest: Tensor) -> None:
    """Shift a history by one step, and insert the latest values."""
    memory[:, 1:] = memory[:, :-1].clone()
    memory[:, 0] = latest
