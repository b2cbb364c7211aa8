"""`--ray`: the cluster on which a command runs."""

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
        help='A Ray cluster to run on, such as "auto" or 10.0.0.1:6379; "local" starts '
        "one worker for each processor of this machine. Results are bitwise the same, "
        "except for a curriculum that depends on all worlds.",
    ),
]


@contextmanager
def cluster_of(address: str | None) -> Generator[Cluster | None]:
    """Context manager that yields the cluster of an address; None without one."""
    if address is None:
        yield None
        return
    from simstate.data.ray import Cluster

    with Cluster(None if address == "local" else address) as cluster:
        yield cluster


@contextmanager
def workers(address: str | None) -> Generator[Over | None]:
    """Context manager that yields a function to distribute work; None: run it here."""
    with cluster_of(address) as cluster:
        yield None if cluster is None else cluster.map


def remote_worlds(cluster: Cluster, env_cfg: EnvCfg, cfg: RunCfg) -> RemoteEnv:
    """Return the worlds of a run on the workers of a cluster."""
    from simstate.data.ray import RemoteEnv

    if cfg.device != "cpu":
        raise InvalidInputError(
            f"--ray keeps the worlds on the workers' CPUs, but the run uses the device "
            f"{cfg.device!r}: omit --ray, or train with --device cpu."
        )
    count, seed = cfg.train.num_envs, cfg.seed
    return RemoteEnv(cluster, env_cfg, count, seed=seed, engine=cfg.engine)
