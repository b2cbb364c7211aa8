"""PictureNetwork: rsl-rl's CNN model for pictures of an Env."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

import contextlib
import copy
import io
from typing import Any

import torch
from rsl_rl.models import CNNModel
from rsl_rl.modules import CNN
from tensordict import TensorDict
from torch import Tensor, nn


class PictureCNN(CNN):
    """Convolutions over pictures (n, C, H, W).

    Channels of uint8 are normalised to mean 0 and deviation 1 over the picture, which
    removes the effect of its brightness.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of pictures; shape (n, k)."""
        values = x.float()
        if x.dtype == torch.uint8:
            values = values - values.mean(dim=(2, 3), keepdim=True)
            deviation = values.square().mean(dim=(2, 3), keepdim=True).sqrt()
            values = values / (deviation + 1.0)
        return super().forward(values)


class PictureNetwork(CNNModel):
    """rsl-rl's CNNModel, with convolutions that take pictures of any dtype.

    Pictures of uint8 are stored as such, in a quarter of the memory of float32.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        *,
        cnn_cfg: dict[str, Any],
        **settings: Any,
    ) -> None:
        self._get_obs_dim(obs, obs_groups, obs_set)
        sizes = zip(
            self.obs_groups_2d, self.obs_dims_2d, self.obs_channels_2d, strict=True
        )
        cnns: dict[str, nn.Module] = {
            name: PictureCNN(input_dim=dim, input_channels=channels, **cnn_cfg)
            for name, dim, channels in sizes
        }
        with contextlib.redirect_stdout(io.StringIO()):  # a message on `cnns`
            super().__init__(
                obs, obs_groups, obs_set, output_dim, cnns=cnns, **settings
            )

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """Return the module that is exported: see `ExportedNetwork`."""
        del verbose
        return ExportedNetwork(self)


class ExportedNetwork(nn.Module):
    """A policy of columns, if there are any, and pictures (n, H, W, C)."""

    def __init__(self, network: PictureNetwork) -> None:
        super().__init__()
        made: Any = copy.deepcopy(network).cpu()
        self._normaliser, self._mlp = made.obs_normalizer, made.mlp
        self._cnns = nn.ModuleList(made.cnns[name] for name in made.obs_groups_2d)
        self._output = made.distribution.as_deterministic_output_module()
        self.has_columns = bool(made.obs_groups)
        """True if the first input is columns."""

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the actions; shape (n, actions)."""
        latent = list[Tensor]()
        pictures = inputs
        if self.has_columns:
            latent, pictures = [self._normaliser(inputs[0])], inputs[1:]
        for cnn, picture in zip(self._cnns, pictures, strict=True):
            latent.append(cnn(picture.permute(0, 3, 1, 2)))
        return self._output(self._mlp(torch.cat(latent, dim=-1)))
