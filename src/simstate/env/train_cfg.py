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
    init_noise_std: float = 1.0
    """Standard deviation of the actions at first."""
    normalize_observations: bool = True
    """Whether observations are scaled by their running mean and deviation."""
    learning_rate: float = 1e-3
    desired_kl: float | None = 0.01
    """The learning rate adapts to this divergence per update; None: it is fixed."""
    entropy_coef: float = 0.005
    gamma: float = 0.99
    lam: float = 0.95
    clip_param: float = 0.2
    num_learning_epochs: int = 5
    num_mini_batches: int = 4
    value_loss_coef: float = 1.0
    max_grad_norm: float = 1.0
