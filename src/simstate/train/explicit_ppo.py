"""ExplicitPPO: rsl-rl's PPO for perceptrons, with explicit gradients.

Results are those of `rsl_rl.algorithms.PPO.update`, up to rounding. Without the graph
of automatic differentiation an update of a small network takes about two thirds of the
time.
"""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.modules.distribution import GaussianDistribution
from torch import Tensor, nn

from simstate.engine import OneTorchThread
from simstate.train.symmetric_networks import SymmetricNetworks

aten: Any = torch.ops.aten
_Call = Callable[[Tensor], Tensor]
_Backward = Callable[[Tensor, Tensor], Tensor]
ACTIVATIONS: dict[str, tuple[_Call, _Backward]] = {
    "elu": (
        nn.functional.elu_,
        lambda d, y: aten.elu_backward(d, 1.0, 1.0, 1.0, True, y),
    ),
    "relu": (torch.relu_, lambda d, y: aten.threshold_backward(d, y, 0.0)),
    "tanh": (torch.tanh_, aten.tanh_backward),
}
"""In-place activations, and the gradients of their inputs given their outputs."""


_SETTINGS = {
    "class_name", "learning_rate", "schedule", "desired_kl", "num_learning_epochs",
    "num_mini_batches", "clip_param", "gamma", "lam", "value_loss_coef",
    "use_clipped_value_loss", "entropy_coef", "max_grad_norm",
}  # fmt: skip
"""Settings of rsl-rl's PPO that the explicit update supports."""


def fits(settings: Mapping[str, Any]) -> bool:
    """Return True if the settings of rsl-rl's runner can be trained by ExplicitPPO."""
    networks = settings["actor"], settings["critic"]
    noise = settings["actor"]["distribution_cfg"]
    return (
        settings["algorithm"]["class_name"] == "PPO"
        and settings["algorithm"].keys() <= _SETTINGS
        and all(network["class_name"] == "MLPModel" for network in networks)
        and all(network["activation"] in ACTIVATIONS for network in networks)
        and noise["class_name"] == "GaussianDistribution"
        and noise.get("learn_std", True)
    )


class Perceptron:
    """The layers of an MLPModel; `forward` stores the inputs for `backward`."""

    def __init__(self, model: MLPModel, activation: str) -> None:
        self._layers = [x for x in model.mlp if isinstance(x, nn.Linear)]
        self._activate, self._differentiate = ACTIVATIONS[activation]
        self._inputs: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for normalised observations; shape (n, outputs)."""
        self._inputs = [x]
        for layer in self._layers[:-1]:
            x = self._activate(torch.addmm(layer.bias, x, layer.weight.T))
            self._inputs.append(x)
        last = self._layers[-1]
        return torch.addmm(last.bias, x, last.weight.T)

    def backward(self, d: Tensor) -> None:
        """Write the gradients of all weights, given those of the outputs."""
        for k in range(len(self._layers) - 1, -1, -1):
            layer, x = self._layers[k], self._inputs[k]
            torch.mm(d.T, x, out=layer.weight.grad)
            torch.sum(d, 0, out=layer.bias.grad)
            if k:
                d = self._differentiate(d @ layer.weight, x)


class ExplicitPPO(PPO):
    """PPO of two perceptrons with normally distributed actions."""

    def __init__(
        self,
        actor: MLPModel,
        critic: MLPModel,
        storage: Any,
        *,
        activations: tuple[str, str] = ("elu", "elu"),
        symmetry: SymmetricNetworks | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(actor, critic, storage, **settings)
        each = [list(net.parameters()) for net in (actor, critic)]
        self._gradients = [
            torch.zeros(sum(p.numel() for p in net), device=self.device) for net in each
        ]
        for parameters, flat in zip(each, self._gradients, strict=True):
            views = flat.split([p.numel() for p in parameters])
            for parameter, view in zip(parameters, views, strict=True):
                parameter.grad = view.view_as(parameter)
        for group in self.optimizer.param_groups:
            group["fused"] = True
        self._actor = Perceptron(actor, activations[0])
        self._critic = Perceptron(critic, activations[1])
        self._noise: Any = actor.distribution
        self._seen: dict[str, Any] = dict(self.storage.observations.items())
        self._time_outs = torch.zeros_like(self.storage.rewards)
        like = self.storage.actions
        self._means, self._stds = torch.zeros_like(like), torch.zeros_like(like)
        self.storage.distribution_params = self._means, self._stds
        self._second: ThreadPoolExecutor | None = None
        """A thread for the critic, if there are at least two cores."""
        self._symmetry = symmetry

    def check_symmetry(self, source: str) -> None:
        """Raise if weights from a source should be symmetric and are not."""
        if self._symmetry is not None:
            self._symmetry.check(source)

    def act(self, obs: Any) -> Tensor:
        """Draw actions, and store them with their observations.

        Values are computed later, in one batch by `compute_returns`.
        """
        step = self.storage.step
        for name, kept in self._seen.items():
            kept[step] = obs[name]
        mean = self._actor.forward(self.actor.get_latent(obs))
        std = _std_of(self._noise)
        z = torch.randn_like(mean)
        log_prob = z.square().sum(1, keepdim=True).mul_(-0.5)
        log_prob -= std.log().sum() + 0.5 * len(std) * _LOG_2_PI
        self.storage.actions_log_prob[step] = log_prob
        self._means[step], self._stds[step] = mean, std
        action = torch.addcmul(mean, z, std, out=self.storage.actions[step])
        return action.clone()

    def process_env_step(
        self, obs: Any, rewards: Tensor, dones: Tensor, extras: dict[str, Any]
    ) -> None:
        """Store the result of a step of the worlds."""
        del obs  # stored by the next `act`
        step = self.storage.step
        self.storage.rewards[step, :, 0] = rewards
        self.storage.dones[step, :, 0] = dones
        self._time_outs[step, :, 0] = extras.get("time_outs", 0.0)
        self.storage.step = step + 1

    def compute_returns(self, obs: Any) -> None:
        """Compute values, returns and advantages of the stored experience."""
        st: Any = self.storage
        seen = self.critic.get_latent(st.observations.flatten(0, 1))
        st.values.copy_(self._critic.forward(seen).view_as(st.values))
        st.rewards.addcmul_(st.values, self._time_outs, value=self.gamma)
        super().compute_returns(obs)

    @torch.no_grad()
    def update(self) -> dict[str, float]:
        """Run all epochs over the stored experience; return the mean losses."""
        st: Any = self.storage
        count = self.num_mini_batches
        size = st.num_envs * st.num_transitions_per_env // count
        order = torch.randperm(count * size, device=self.device)
        seen = st.observations.flatten(0, 1)
        columns = [
            self.actor.get_latent(seen), self.critic.get_latent(seen),
            *(
                x.flatten(0, 1)
                for x in (
                    st.actions, st.actions_log_prob, st.advantages, st.values,
                    st.returns, st.distribution_params[0],
                )
            ),
        ]  # fmt: skip
        shuffled = [column[order] for column in columns]
        batches = list(zip(*(x.split(size) for x in shuffled), strict=True))
        old_std = st.distribution_params[1][0, 0]
        losses = torch.zeros(3)
        if torch.get_num_threads() > 1 and self._second is None:
            self._second = ThreadPoolExecutor(1, initializer=_use_one_thread)
        with OneTorchThread():
            for _ in range(self.num_learning_epochs):
                for batch in batches:
                    losses += self._learn(old_std, *batch)
        self._noise.update(self._means[-1])
        self.actor.update_normalization(seen)
        self.critic.update_normalization(seen)
        if self._symmetry is not None:
            self._symmetry.project()
        st.clear()
        mean = (losses / (self.num_learning_epochs * count)).tolist()
        return dict(zip(("value", "surrogate", "entropy"), mean, strict=True))

    def _learn(
        self, old_std: Tensor, seen: Tensor, privileged: Tensor, action: Tensor,
        old_log_prob: Tensor, advantage: Tensor, old_value: Tensor, target: Tensor,
        old_mean: Tensor,
    ) -> Tensor:  # fmt: skip
        """Take one step of the optimiser; return value loss, surrogate and entropy.

        The critic's gradient is computed in a second thread, if there is one; the
        result is the same.
        """
        critic = privileged, old_value, target
        found = self._second and self._second.submit(self._value_gradient, *critic)
        mean = self._actor.forward(seen)
        std = _std_of(self._noise)
        if self.schedule == "adaptive":
            self._adapt(old_mean, old_std, mean, std)
        z = (action - mean) / std
        log_std, squares = std.log().sum(), z * z
        entropy = log_std + 0.5 * len(std) * (1.0 + _LOG_2_PI)
        log_prob = -0.5 * squares.sum(1) - (log_std + 0.5 * len(std) * _LOG_2_PI)
        ratio = (log_prob - old_log_prob[:, 0]).exp_()
        gain, clip = ratio * advantage[:, 0], self.clip_param
        clipped = ratio.clamp(1.0 - clip, 1.0 + clip) * advantage[:, 0]
        # Where the clipped objective is smaller, it does not depend on the weights.
        weight = torch.where(gain <= clipped, gain, 0.0).mul_(-1.0 / len(gain))[:, None]
        self._actor.backward(z / std * weight)
        self._std_gradient(std, ((squares - 1.0) * weight).sum(0) - self.entropy_coef)
        value = found.result() if found else self._value_gradient(*critic)
        self._step()
        surrogate = -torch.minimum(gain, clipped).mean()
        return torch.stack([value, surrogate, entropy]).cpu()

    @torch.no_grad()
    def _value_gradient(self, seen: Tensor, old: Tensor, target: Tensor) -> Tensor:
        """Write the gradient of the critic; return its loss."""
        value = self._critic.forward(seen)
        error = value - target
        loss, slope = error.square(), error
        if self.use_clipped_value_loss:
            change = value - old
            moved = change.clamp(-self.clip_param, self.clip_param)
            clipped = (old + moved - target).square_()
            is_flat = (clipped > loss) & (change != moved)
            slope = torch.where(is_flat, 0.0, error)
            loss = torch.maximum(loss, clipped)
        self._critic.backward(slope * (2.0 * self.value_loss_coef / len(error)))
        return loss.mean()

    def _std_gradient(self, std: Tensor, by_log: Tensor) -> None:
        """Write the gradient of the noise, given that of its logarithm."""
        by = by_log if self._noise.std_type == "log" else by_log / std
        _noise_of(self._noise).grad.copy_(by)

    def _adapt(
        self, old_mean: Tensor, old_std: Tensor, mean: Tensor, std: Tensor
    ) -> None:
        """Adapt the learning rate to the divergence from the old policy."""
        apart = old_std.square() + (mean - old_mean).square_().mean(0)
        each = (std / old_std).log() + apart / (2.0 * std.square()) - 0.5
        divergence = float(each.sum())
        if divergence > 2.0 * self.desired_kl:
            self.learning_rate = max(1e-5, self.learning_rate / 1.5)
        elif 0.0 < divergence < 0.5 * self.desired_kl:
            self.learning_rate = min(1e-2, self.learning_rate * 1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _step(self) -> None:
        """Symmetrise, clip and apply the gradients."""
        for k, gradient in enumerate(self._gradients):
            if self._symmetry is not None:
                self._symmetry.average(k, gradient)
            norm = torch.linalg.vector_norm(gradient)
            gradient.mul_((self.max_grad_norm / (norm + 1e-6)).clamp_(max=1.0))
        self.optimizer.step()


_LOG_2_PI = 1.8378770664093453


def _use_one_thread() -> None:
    torch.set_num_threads(1)


def _noise_of(distribution: GaussianDistribution) -> Any:
    is_log = distribution.std_type == "log"
    return distribution.log_std_param if is_log else distribution.std_param


def _std_of(distribution: GaussianDistribution) -> Tensor:
    parameter: Tensor = _noise_of(distribution).detach()
    if distribution.std_type == "log":
        return parameter.clamp(*distribution.log_std_range).exp()
    return parameter.clamp(*distribution.std_range)
