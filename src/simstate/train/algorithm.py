"""The learner of a run: which networks and which update its settings choose."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

from rsl_rl.runners import OnPolicyRunner
from rsl_rl.utils import resolve_class
from torch import nn

from simstate.base.errors import InvalidInputError, SnapshotError
from simstate.env import Env, TrainCfg
from simstate.interop.rsl_rl import RslRlVecEnv, runner_cfg
from simstate.train import explicit_ppo
from simstate.train.explicit_ppo import ExplicitPPO
from simstate.train.symmetric_networks import SymmetricNetworks

_KINDS = {
    "symmetric": "symmetric weights and moments stay so only if all gradients are "
    "averaged with their mirror images, and others never become so",
    "noise_std_type": "the noise has another parameter",
    "activation": "the same weights are another function",
    "network": "the weights are of another kind of network",
}
"""Settings that a run keeps when it is resumed, and the reasons."""


def make_algorithm(
    worlds: RslRlVecEnv, cfg: TrainCfg, example: Env, device: str
) -> Any:
    """Create the learner of a run: rsl-rl's PPO, explicit where the networks allow it.

    `worlds` are stepped; `example` is an Env of the task in this process.
    """
    settings = runner_cfg(cfg, worlds.env)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its networks
        made: Any = OnPolicyRunner(worlds, settings, log_dir=None, device=device).alg
    if cfg.weight_init == "orthogonal":
        for network, last in ((made.actor, 0.01), (made.critic, 1.0)):
            initialise_orthogonally(network, last)
    if not explicit_ppo.fits(settings):
        if cfg.symmetric:
            raise InvalidInputError(
                "train.symmetric needs perceptrons with the activation "
                f"{', '.join(explicit_ppo.ACTIVATIONS)}: leave it out, or change the "
                "networks.",
                name="symmetric",
            )
        return made
    symmetry = _symmetry(cfg, example, settings, made) if cfg.symmetric else None
    _, arguments = resolve_class(settings["algorithm"])
    return ExplicitPPO(
        made.actor, made.critic, made.storage, activation=cfg.activation,
        symmetry=symmetry, device=device, **arguments,
    )  # fmt: skip


def check_kind(saved: TrainCfg, now: TrainCfg) -> None:
    """Raise unless a checkpoint is of a run whose learner is of the same kind."""
    for name, reason in _KINDS.items():
        had, has = getattr(saved, name), getattr(now, name)
        if had != has:
            raise SnapshotError(
                f"The checkpoint is of a run with train.{name} = {had!r}, and this one "
                f"has {has!r}: {reason}. Resume it as it began, or start a new run."
            )


def check_symmetry(algorithm: Any, source: str) -> None:
    """Raise if a learner of symmetric networks has loaded others."""
    if isinstance(algorithm, ExplicitPPO):
        algorithm.check_symmetry(source)


def initialise_orthogonally(network: Any, last: float) -> None:
    """Draw orthogonal weights of gain √2, and `last` for the outputs; zero biases."""
    layers = [x for x in network.mlp if isinstance(x, nn.Linear)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, last if layer is layers[-1] else math.sqrt(2))
        nn.init.zeros_(layer.bias)


def _symmetry(
    cfg: TrainCfg, example: Env, settings: dict[str, Any], made: Any
) -> SymmetricNetworks:
    """Return the symmetry of new networks, whose weights are made symmetric."""
    mirror = example.symmetry()
    (seen,), (privileged,) = (
        settings["obs_groups"]["actor"],
        settings["obs_groups"]["critic"],
    )
    found = SymmetricNetworks(
        made.actor,
        made.critic,
        mirror.observations[seen],
        mirror.observations[privileged],
        mirror.action,
    )
    found.initialise()
    return found
