"""`--ray`: where the work of a command is done."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import tyro

from simstate.base.errors import InvalidInputError

if TYPE_CHECKING:
    from simstate.data.ray import Cluster, RemoteEnv
    from simstate.env import EnvCfg
    from simstate.study.dispersions.study import Over
    from simstate.train.run_cfg import RunCfg

Ray = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="ADDRESS",
        help='A Ray cluster to work on, such as "auto" or 10.0.0.1:6379; "local" is '
        "one worker for each processor of this machine. The bits are the same, but "
        "for a curriculum that looks at all worlds.",
    ),
]


@contextmanager
def cluster_of(address: str | None) -> Generator[Cluster | None]:
    """The cluster of an address, while it is entered; None: there is none."""
    if address is None:
        yield None
        return
    from simstate.data.ray import Cluster

    with Cluster(None if address == "local" else address) as cluster:
        yield cluster


@contextmanager
def workers(address: str | None) -> Generator[Over | None]:
    """Yield a function that distributes work; None: it is done in this process."""
    with cluster_of(address) as cluster:
        yield None if cluster is None else cluster.map


def remote_worlds(cluster: Cluster, env_cfg: EnvCfg, cfg: RunCfg) -> RemoteEnv:
    """The worlds of a run on the workers of a cluster."""
    from simstate.data.ray import RemoteEnv

    if cfg.device != "cpu":
        raise InvalidInputError(
            f"--ray keeps the worlds on the workers' CPUs, the run asks for the device "
            f"{cfg.device!r}: leave out --ray, or train with --device cpu."
        )
    count, seed = cfg.train.num_envs, cfg.seed
    return RemoteEnv(cluster, env_cfg, count, seed=seed, engine=cfg.engine)
