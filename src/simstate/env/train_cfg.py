"""TrainCfg: settings of the training of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from simstate.base.checks import all_of, instance_of, number, one_of, whole_number
from simstate.base.errors import InvalidInputError


@dataclass(kw_only=True)
class TrainCfg:
    """Settings of networks and learner for one task."""

    algorithm: Literal["ppo", "sac", "distillation"] = "ppo"
    """Learner: proximal policy optimisation, soft actor-critic, or imitation of a
    `--teacher`."""
    num_envs: int = 1024
    """Worlds that gather experience together."""
    iterations: int = 300
    """Updates of the policy."""
    steps_per_env: int = 24
    """Environment steps in each world before an update."""
    actor_group: str = "policy"
    """Observation group of the actor. The critic gets the group "critic" or, without
    one, that of the actor."""
    network: Literal["mlp", "cnn", "gru", "lstm"] = "mlp"
    """Kind of the networks: perceptrons, convolutions before them where a network sees
    pictures, or a recurrent layer before them."""
    hidden_sizes: tuple[int, ...] = (128, 128, 128)
    """Units of each hidden layer."""
    critic_hidden_sizes: tuple[int, ...] | None = None
    """Units of each hidden layer of the critic; None: as `hidden_sizes`."""
    rnn_size: int = 64
    """Units of each recurrent layer of a "gru" or "lstm"."""
    rnn_layers: int = 1
    """Number of recurrent layers."""
    conv_channels: tuple[int, ...] = (16, 32)
    """Channels of each convolution of a "cnn"."""
    conv_kernels: tuple[int, ...] = (8, 4)
    """Width and height of the kernel of each convolution [px]."""
    conv_strides: tuple[int, ...] = (4, 2)
    """Stride of each convolution [px]."""
    activation: str = "elu"
    """Activation of the hidden layers: "elu", "relu", "tanh" or another of rsl-rl's."""
    weight_init: Literal["default", "orthogonal"] = "default"
    """Initial weights: torch's, or orthogonal with small outputs of the actor."""
    symmetric: bool = False
    """Make the networks exactly equivariant under the mirror image of the task
    (`EnvCfg.symmetry`). The policy is still an ordinary network of the same cost."""
    init_noise_std: float = 1.0
    """Initial standard deviation of the actions."""
    noise_std_type: Literal["scalar", "log"] = "scalar"
    """Learnt parameter: the standard deviation or its logarithm."""
    normalize_observations: bool = True
    """Scale observations by their running mean and deviation."""
    learning_rate: float = 1e-3
    """Learning rate of the optimiser; the initial one if `desired_kl` adapts it."""
    desired_kl: float | None = 0.01
    """KL divergence per update to which the learning rate adapts; None: it is fixed."""
    final_kl: float | None = None
    """KL divergence at the end: `desired_kl` changes to it linearly over the second
    half of `iterations`; None: it is constant."""
    entropy_coef: float = 0.005
    """Weight of the policy's entropy in the loss: larger values explore more."""
    gamma: float = 0.99
    """Discount of rewards per step."""
    lam: float = 0.95
    """λ of the generalised advantage estimate: 0 trusts the critic, 1 the returns."""
    clip_param: float = 0.2
    """Maximum relative change of the probability of an action in an update."""
    num_learning_epochs: int = 5
    """Number of passes over the experience in an update."""
    num_mini_batches: int = 4
    """Number of mini-batches in each pass."""
    value_loss_coef: float = 1.0
    """Weight of the critic's error in the loss."""
    clip_value_loss: bool = True
    """Also limit the change of the critic's values to `clip_param`. Disable it if
    rewards of single events are larger than that."""
    max_grad_norm: float = 1.0
    """Maximum norm of gradients, to which longer ones are scaled."""
    rnd_weight: float = 0.0
    """Weight of the reward for novel observations per second (random network
    distillation); 0: none. RND observes the group "rnd" or, without one, what the
    critic observes."""
    replay_size: int = 200_000
    """Number of steps of single worlds in the replay buffer of "sac"."""
    batch_size: int = 512
    """Number of them in a batch of "sac"."""
    action_limit: float = 3.0
    """Largest magnitude of an action of "sac"."""
    patience: int | None = None
    """Updates without a higher mean return after which the run ends. The best policy is
    saved as best.npz; None: the run takes all `iterations`."""
    physics_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """MuJoCo's options in training, such as {"solver": "PGS", "iterations": 4};
    evaluations use those of the task."""
    training_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the environment in training, by path, such as
    {"env.commands.velocity.resampling_time_s": (1.0, 4.0)}."""
    rsl_rl: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further settings of rsl-rl's classes by part, such as {"algorithm": {"optimizer":
    "adamw"}, "critic": {"activation": "relu"}}."""

    @property
    def is_recurrent(self) -> bool:
        """True if the networks have a memory."""
        return self.network in ("gru", "lstm")

    def kl_target(self, iteration: int) -> float | None:
        """Return the target KL divergence after this number of updates."""
        if self.desired_kl is None or self.final_kl is None:
            return self.desired_kl
        half = self.iterations / 2.0
        share = min(max((iteration - half) / half, 0.0), 1.0)
        return self.desired_kl + share * (self.final_kl - self.desired_kl)

    def check(self) -> None:
        """Raise unless every setting is valid."""
        for name in (
            "num_envs", "iterations", "steps_per_env", "num_learning_epochs",
            "num_mini_batches",
        ):  # fmt: skip
            whole_number(name, getattr(self, name), 1)
        if self.num_envs * self.steps_per_env < self.num_mini_batches:
            raise InvalidInputError(
                f"{self.num_envs} worlds × {self.steps_per_env} steps are too few "
                f"for {self.num_mini_batches} mini-batches: use more worlds.",
                name="num_mini_batches",
            )
        _check_sizes("hidden_sizes", self.hidden_sizes)
        if self.critic_hidden_sizes is not None:
            _check_sizes("critic_hidden_sizes", self.critic_hidden_sizes)
        one_of("algorithm", self.algorithm, ("ppo", "sac", "distillation"))
        whole_number("replay_size", self.replay_size, 1)
        whole_number("batch_size", self.batch_size, 1)
        number("action_limit", self.action_limit, more_than=0)
        if self.patience is not None:
            whole_number("patience", self.patience, 1)
        instance_of("actor_group", self.actor_group, str)
        one_of("network", self.network, ("mlp", "cnn", "gru", "lstm"))
        whole_number("rnn_size", self.rnn_size, 1, 2**12)
        whole_number("rnn_layers", self.rnn_layers, 1, 16)
        for name in ("conv_channels", "conv_kernels", "conv_strides"):
            sizes = _sizes(name, getattr(self, name))
            if len(sizes) != len(self.conv_channels):
                raise InvalidInputError(
                    f"{name} has {len(sizes)} values for {len(self.conv_channels)} "
                    "convolutions (conv_channels): give one for each.",
                    name=name,
                )
            for size in sizes:
                whole_number(name, size, 1, 2**12)
        instance_of("activation", self.activation, str)
        instance_of("normalize_observations", self.normalize_observations, bool)
        for name in ("init_noise_std", "learning_rate", "clip_param", "max_grad_norm"):
            number(name, getattr(self, name), more_than=0)
        if self.desired_kl is not None:
            number("desired_kl", self.desired_kl, more_than=0)
        if self.final_kl is not None:
            number("final_kl", self.final_kl, more_than=0)
            if self.desired_kl is None:
                raise InvalidInputError(
                    f"final_kl is {self.final_kl}, and desired_kl is None: give both.",
                    name="final_kl",
                )
        one_of("weight_init", self.weight_init, ("default", "orthogonal"))
        one_of("noise_std_type", self.noise_std_type, ("scalar", "log"))
        instance_of("symmetric", self.symmetric, bool)
        instance_of("clip_value_loss", self.clip_value_loss, bool)
        instance_of("physics_options", self.physics_options, Mapping)
        instance_of("training_settings", self.training_settings, Mapping)
        for path in all_of("training_settings", list(self.training_settings), str):
            if not path.startswith("env."):
                raise InvalidInputError(
                    f"training_settings has the path {path!r}: those of the "
                    'environment begin with "env.".',
                    name="training_settings",
                )
        if "timestep" in self.physics_options:
            raise InvalidInputError(
                "physics_options has a timestep, on which the task's clock depends: "
                "change the task's.",
                name="physics_options",
            )
        instance_of("rsl_rl", self.rsl_rl, Mapping)
        number("rnd_weight", self.rnd_weight, at_least=0)
        number("entropy_coef", self.entropy_coef)
        number("value_loss_coef", self.value_loss_coef, at_least=0)
        number("gamma", self.gamma, at_least=0, at_most=1)
        number("lam", self.lam, at_least=0, at_most=1)
        self._check_combinations()

    def _check_combinations(self) -> None:
        """Raise if settings exclude each other."""
        rules: tuple[tuple[object, str, dict[str, object]], ...] = (
            (
                self.symmetric,
                "symmetric=True",
                {"algorithm": "ppo", "network": "mlp", "rnd_weight": 0.0},
            ),
            (self.rnd_weight, "rnd_weight above 0", {"algorithm": "ppo"}),
            (
                self.algorithm == "sac",
                "algorithm='sac'",
                {"network": "mlp", "rsl_rl": {}, "weight_init": "default"},
            ),
        )
        for applies, setting, needed in rules:
            for name, value in needed.items():
                has = getattr(self, name)
                if applies and has != value:
                    raise InvalidInputError(
                        f"{setting} needs {name}={value!r}, and the run has {has!r}. "
                        "Change one of them.",
                        name=name,
                    )
        if self.is_recurrent and self.num_envs < self.num_mini_batches:
            raise InvalidInputError(
                f"A recurrent network needs a world for each mini-batch: num_envs is "
                f"{self.num_envs}, num_mini_batches {self.num_mini_batches}. Use more "
                "worlds or fewer mini-batches.",
                name="num_mini_batches",
            )


def _sizes(name: str, sizes: object) -> list[int]:
    """Return sizes, which a run's file must be able to hold: no arrays."""
    return all_of(name, instance_of(name, sizes, tuple | list), int)


def _check_sizes(name: str, sizes: object) -> None:
    """Raise unless these are the units of one hidden layer or more."""
    found = _sizes(name, sizes)
    if not found:
        raise InvalidInputError(f"{name} must name one layer or more.", name=name)
    for size in found:
        whole_number(name, size, 1, 2**16)
