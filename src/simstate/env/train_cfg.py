"""TrainCfg: how a task is trained with PPO, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class TrainCfg:
    """Settings of proximal policy optimisation (PPO) for one task."""

    num_envs: int = 1024
    """Worlds that gather experience together."""
    iterations: int = 300
    """Updates of the policy."""
    steps_per_env: int = 24
    """Environment steps in each world before an update."""
    hidden_sizes: tuple[int, ...] = (128, 128, 128)
    """Units of each hidden layer, of actor and critic alike."""
    activation: str = "elu"
    """Of the hidden layers: "elu", "relu", "tanh" or another that rsl-rl knows."""
    init_noise_std: float = 1.0
    """Standard deviation of the actions at first."""
    normalize_observations: bool = True
    """Whether observations are scaled by their running mean and deviation."""
    learning_rate: float = 1e-3
    """Step of the optimiser, at first if `desired_kl` adapts it."""
    desired_kl: float | None = 0.01
    """The learning rate adapts to this divergence per update; None: it is fixed."""
    entropy_coef: float = 0.005
    """Weight of the policy's entropy in the loss: more of it explores more."""
    gamma: float = 0.99
    """Discount of rewards per step."""
    lam: float = 0.95
    """λ of the generalised advantage estimate: 0 trusts the critic, 1 the returns."""
    clip_param: float = 0.2
    """How far an update may change the probability of an action, as a share."""
    num_learning_epochs: int = 5
    """How often an update goes through the experience."""
    num_mini_batches: int = 4
    """Into how many parts it cuts the experience."""
    value_loss_coef: float = 1.0
    """Weight of the critic's error in the loss."""
    max_grad_norm: float = 1.0
    """Longer gradients are shortened to this norm."""
