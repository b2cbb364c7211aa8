"""SymmetricNetworks: perceptrons that map mirrored observations to mirrored outputs.

Hidden unit i + H/2 is the mirror image of unit i. If the weights are symmetric and
every gradient is averaged with its mirror image, Adam, which works element by element,
keeps them symmetric: the policy is exactly symmetric at no extra cost, and is exported
as an ordinary network.
"""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from rsl_rl.models import MLPModel
from torch import Tensor, nn

from simstate.base.errors import InvalidInputError, SnapshotError
from simstate.entity.mirror import SignedPermutation

SAME = 1e-4
"""Maximum relative difference of weights that are mirror images of each other."""


@dataclass(frozen=True)
class MirroredParameters:
    """Permutation and signs that map a network's weights to their mirror images."""

    index: Tensor
    sign: Tensor

    def __call__(self, flat: Tensor) -> Tensor:
        """Return the mirror image of all weights in one row."""
        return flat[self.index] * self.sign


class SymmetricNetworks:
    """Actor and critic whose weights remain symmetric."""

    def __init__(
        self,
        actor: MLPModel,
        critic: MLPModel,
        seen: SignedPermutation,
        privileged: SignedPermutation,
        action: SignedPermutation,
    ) -> None:
        same = SignedPermutation.identity(1)
        self._networks = [
            (actor, seen, _mirrored(actor, seen, action)),
            (critic, privileged, _mirrored(critic, privileged, same)),
        ]

    def average(self, network: int, gradient: Tensor) -> None:
        """Average the gradient of actor (0) or critic (1) with its mirror image."""
        mirrored = self._networks[network][2]
        gradient.add_(mirrored(gradient)).mul_(0.5)

    def initialise(self) -> None:
        """Make random weights symmetric: one half of each layer mirrors the other."""
        for network, seen, mirrored in self._networks:
            device = mirrored.sign.device
            index, sign = seen.tensors(device)
            for layer in _hidden(network):
                half = len(layer.weight) // 2
                layer.weight.data[half:] = layer.weight.data[:half][:, index] * sign
                layer.bias.data[half:] = layer.bias.data[:half]
                index = torch.arange(2 * half, device=device).roll(half)
                sign = torch.ones(2 * half, device=device)
            last = _layers(network)[-1]
            _project(network, mirrored)
            last.weight.data.mul_(math.sqrt(2.0))  # the mean of two is smaller

    def project(self) -> None:
        """Remove asymmetry due to rounding, and symmetrise the normalisers."""
        for network, seen, mirrored in self._networks:
            _project(network, mirrored)
            normaliser: Any = network.obs_normalizer
            if not isinstance(normaliser, nn.Identity):
                index, sign = seen.tensors(mirrored.sign.device)
                mean, var = normaliser._mean, normaliser._var
                other = mean[:, index] * sign
                # The variance of the values together with their mirror images.
                spread = 0.25 * (mean - other).square()
                var.copy_(0.5 * (var + var[:, index]) + spread)
                mean.copy_(0.5 * (mean + other))
                normaliser._std.copy_(var.sqrt())

    def check(self, source: str) -> None:
        """Raise unless the current weights are symmetric."""
        for network, _, mirrored in self._networks:
            flat = nn.utils.parameters_to_vector(network.parameters()).detach()
            gap = float((flat - mirrored(flat)).abs().max())
            if gap > SAME * max(1.0, float(flat.abs().max())):
                raise SnapshotError(
                    f"{source} has networks that are not symmetric (a weight differs "
                    f"from its mirror image by {gap:.2g}), but this run has "
                    "train.symmetric, which keeps networks symmetric but does not make "
                    "them so. Start a new run, or omit symmetric.",
                    name="symmetric",
                )


def _layers(network: MLPModel) -> list[nn.Linear]:
    return [x for x in network.mlp if isinstance(x, nn.Linear)]


def _hidden(network: MLPModel) -> list[nn.Linear]:
    return _layers(network)[:-1]


def _project(network: MLPModel, mirrored: MirroredParameters) -> None:
    parameters = list(network.parameters())
    flat = nn.utils.parameters_to_vector(parameters).detach()
    both = flat.add(mirrored(flat)).mul_(0.5)
    for parameter, part in zip(
        parameters, both.split([p.numel() for p in parameters]), strict=True
    ):
        parameter.data.copy_(part.view_as(parameter))


def _mirrored(
    network: MLPModel, seen: SignedPermutation, done: SignedPermutation
) -> MirroredParameters:
    """Return the mirror images of a network's weights, in the order of parameters."""
    maps: dict[int, tuple[Tensor, Tensor]] = {}
    before, sign_before = seen.tensors()
    layers = _layers(network)
    for layer in layers:
        count = len(layer.weight)
        after, sign = done.tensors()
        if layer is not layers[-1]:
            if count % 2:
                raise InvalidInputError(
                    f"Symmetric networks need an even number of hidden units, got "
                    f"{count}: choose even hidden_sizes.",
                    name="hidden_sizes",
                )
            after, sign = torch.arange(count).roll(count // 2), torch.ones(count)
        index = torch.arange(layer.weight.numel()).view_as(layer.weight)
        maps[id(layer.weight)] = (
            index[after][:, before].reshape(-1),
            (sign[:, None] * sign_before).reshape(-1),
        )
        maps[id(layer.bias)] = after, sign
        before, sign_before = after, sign
    indices, signs, first = list[Tensor](), list[Tensor](), 0
    for parameter in network.parameters():
        # The noise of an action is that of its mirror image.
        pair = maps.get(id(parameter), (done.tensors()[0], torch.ones(len(parameter))))
        indices.append(first + pair[0])
        signs.append(pair[1])
        first += parameter.numel()
    device = next(network.parameters()).device
    return MirroredParameters(
        torch.cat(indices).to(device), torch.cat(signs).to(device)
    )
