"""More than one machine: batches of worlds on a Ray cluster, with the same bits.

with Cluster() as cluster:
    outcome = study.run(100_000, over=cluster.map)
    collect(cfg, make_act, "data", episodes=10_000, over=cluster.map)
"""

from simstate.distributed.cluster import Cluster

__all__ = ["Cluster"]
