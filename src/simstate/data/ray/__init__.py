"""Batches of worlds on a Ray cluster, with bitwise the same results.

with Cluster() as cluster:
    outcome = study.run(100_000, over=cluster.map)
    collect(cfg, make_act, "data", episodes=10_000, over=cluster.map)
    env = RemoteEnv(cluster, cfg, num_envs=4096)
"""

from simstate.data.ray.cluster import Cluster
from simstate.data.ray.remote_env import RemoteEnv
from simstate.data.ray.worker_pool import Workers

__all__ = ["Cluster", "RemoteEnv", "Workers"]
