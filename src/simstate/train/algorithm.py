"""The learner of a run: networks and update, according to its settings."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import io
import math
from pathlib import Path
from typing import Any

from rsl_rl.runners import OnPolicyRunner
from rsl_rl.utils import resolve_class
from torch import nn

from simstate.base.errors import InvalidInputError, SnapshotError
from simstate.env import Env, TrainCfg
from simstate.interop.rsl_rl import RslRlVecEnv, policy_part, runner_cfg
from simstate.train import explicit_ppo
from simstate.train.checkpoint import Content, find_policy, read_checkpoint
from simstate.train.explicit_ppo import ExplicitPPO
from simstate.train.run_cfg import RunCfg
from simstate.train.sac import SoftActorCritic
from simstate.train.symmetric_networks import SymmetricNetworks

_KINDS = {
    "algorithm": "the learner differs",
    "symmetric": "symmetric weights and moments remain symmetric only if all gradients "
    "are averaged with their mirror images, and others never become symmetric",
    "noise_std_type": "the noise has another parameter",
    "activation": "the same weights give another function",
    "network": "the weights are of another kind of network",
    "hidden_sizes": "the sizes of the networks differ",
    "critic_hidden_sizes": "the sizes of the critic differ",
    "actor_group": "the observations of the policy differ",
    "rsl_rl": "the networks or the update differ",
}
"""Settings that cannot be changed when a run is resumed, and the reasons."""
_NETWORKS = ("actor", "critic", "student")
"""Networks of a learner that may have a memory."""


def make_algorithm(
    worlds: RslRlVecEnv,
    cfg: TrainCfg,
    example: Env,
    device: str,
    teacher: TrainCfg | None = None,
) -> Any:
    """Create the learner of a run; PPO of perceptrons uses explicit gradients.

    `worlds` are stepped; `example` is an Env of the task in this process; `teacher` has
    the settings of the run whose policy is imitated.
    """
    settings = runner_cfg(cfg, worlds.env, teacher)
    if cfg.algorithm == "sac":
        return SoftActorCritic(worlds, cfg, settings, device)
    is_explicit = cfg.algorithm == "ppo" and explicit_ppo.fits(settings)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its networks
            runner = OnPolicyRunner(worlds, settings, log_dir=None, device=device)
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:
        if not cfg.rsl_rl:
            raise
        raise InvalidInputError(
            f"rsl-rl rejects train.rsl_rl = {dict(cfg.rsl_rl)!r}: {error}",
            name="rsl_rl",
        ) from error
    made: Any = runner.alg
    if cfg.weight_init == "orthogonal":
        for name in _NETWORKS:
            if hasattr(made, name):
                last = 1.0 if name == "critic" else 0.01
                initialise_orthogonally(getattr(made, name), last)
    if not is_explicit:
        if cfg.symmetric:
            raise InvalidInputError(
                "train.symmetric needs perceptrons with the activation "
                f"{', '.join(explicit_ppo.ACTIVATIONS)}: omit it, or change the "
                "networks.",
                name="symmetric",
            )
        return made
    symmetry = _symmetry(cfg, example, settings, made) if cfg.symmetric else None
    _, arguments = resolve_class(settings["algorithm"])
    return ExplicitPPO(
        made.actor, made.critic, made.storage, symmetry=symmetry, device=device,
        activations=tuple(settings[k]["activation"] for k in ("actor", "critic")),
        **arguments,
    )  # fmt: skip


def load_networks(algorithm: Any, cfg: TrainCfg, path: Path) -> None:
    """Load the networks of another run into a learner, and nothing else."""
    is_student = cfg.algorithm == "distillation"
    networks = dict.fromkeys(("student",) if is_student else ("actor", "critic"), 1)
    try:
        saved = read_checkpoint(find_policy(path))["algorithm"]
        algorithm.load(saved, networks, strict=True)
        check_symmetry(algorithm, repr(str(path)))
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise SnapshotError(
            f"The networks of {str(path)!r} do not fit this run: sizes, observations "
            f"and actions must be the same. {error}",
            name=str(path),
        ) from error


def find_teacher(cfg: RunCfg, checkpoint: Content | None) -> Content | None:
    """Return the run of the teacher, with its policy if the run is new."""
    if (cfg.train.algorithm == "distillation") != (cfg.teacher is not None):
        raise InvalidInputError(
            f"train.algorithm is {cfg.train.algorithm!r} and the teacher is "
            f"{cfg.teacher!r}: distillation needs a teacher's run (--teacher RUN), and "
            "other algorithms accept none.",
            name="teacher",
        )
    if cfg.teacher is None:
        return None
    if checkpoint is None:
        return read_checkpoint(find_policy(Path(cfg.teacher)))
    try:
        return {"run": checkpoint["teacher"]}
    except KeyError as error:
        raise SnapshotError(
            "The checkpoint lacks the settings of its teacher: start a new run."
        ) from error


def load_teacher(algorithm: Any, teacher: Content, name: str) -> None:
    """Load the policy of another run, the `teacher`, into a distillation."""
    cfg = RunCfg.of(teacher).train
    try:
        saved = teacher["algorithm"][f"{policy_part(cfg)}_state_dict"]
        algorithm.teacher.load_state_dict(saved)
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise SnapshotError(
            f"The teacher {name!r} does not fit this task: its group "
            f"{cfg.actor_group!r} and the actions must be those of its own task. "
            f"{error}",
            name="teacher",
        ) from error


def learner_memory(algorithm: Any) -> Content:
    """Return the state of a learner that its `save` does not include."""
    memory: Content = {
        name: getattr(algorithm, name).get_hidden_state()
        for name in _NETWORKS
        if hasattr(algorithm, name)
    }
    if hasattr(algorithm, "save_experience"):
        memory["experience"] = algorithm.save_experience()
    if getattr(algorithm, "rnd", None) is not None:
        memory["rnd_steps"] = algorithm.rnd.update_counter
        if algorithm.rnd.reward_normalization:
            memory["rnd_average"] = algorithm.rnd.reward_normalizer.disc_avg.avg
    return memory


def restore_memory(algorithm: Any, memory: Content) -> None:
    """Restore the state that `learner_memory` returned."""
    for name in _NETWORKS:
        if memory.get(name) is not None:
            getattr(algorithm, name).reset(hidden_state=memory[name])
    if memory.get("student") is not None:  # the next update starts from it
        algorithm.last_hidden_states = (memory["student"], None)
    if "experience" in memory:
        algorithm.load_experience(memory["experience"])
    if getattr(algorithm, "rnd", None) is not None:
        algorithm.rnd.update_counter = memory["rnd_steps"]
        if algorithm.rnd.reward_normalization:
            algorithm.rnd.reward_normalizer.disc_avg.avg = memory["rnd_average"]


def check_kind(saved: TrainCfg, now: TrainCfg) -> None:
    """Raise unless the learner of a checkpoint's run is of the same kind."""
    for name, reason in _KINDS.items():
        had, has = getattr(saved, name), getattr(now, name)
        if had != has:
            raise SnapshotError(
                f"The checkpoint's run has train.{name} = {had!r}, but this one has "
                f"{has!r}: {reason}. Resume it unchanged, or start a new run.",
                name=name,
            )


def check_symmetry(algorithm: Any, source: str) -> None:
    """Raise if a learner of symmetric networks has loaded asymmetric ones."""
    if isinstance(algorithm, ExplicitPPO):
        algorithm.check_symmetry(source)


def initialise_orthogonally(network: Any, last: float) -> None:
    """Draw orthogonal weights of gain √2, or `last` for the outputs; zero biases."""
    layers = [x for x in network.mlp if isinstance(x, nn.Linear)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, last if layer is layers[-1] else math.sqrt(2))
        nn.init.zeros_(layer.bias)


def _symmetry(
    cfg: TrainCfg, example: Env, settings: dict[str, Any], made: Any
) -> SymmetricNetworks:
    """Make the weights of new networks symmetric; return the symmetry."""
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
