"""More than one machine: batches of worlds on a Ray cluster, with the same bits.

with Cluster() as cluster:
    outcome = study.run(100_000, over=cluster.map)
    collect(cfg, make_act, "data", episodes=10_000, over=cluster.map)
    env = RemoteEnv(cluster, cfg, num_envs=4096)
"""

from simstate.distributed.cluster import Cluster
from simstate.distributed.remote_env import RemoteEnv
from simstate.distributed.workers import Workers

__all__ = ["Cluster", "RemoteEnv", "Workers"]
