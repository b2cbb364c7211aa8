"""`--ray`: where the work of a command is done."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from simstate.data.ray import Cluster
    from simstate.study.dispersions.study import Over

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
