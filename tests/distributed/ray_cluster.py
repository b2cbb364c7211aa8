"""A Ray cluster of two nodes on this machine, one of which is lost: the same bits.

Run by `make test-ray`, in an environment of its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import ray
import torch
from ray.cluster_utils import Cluster as Nodes
from tests.distributed.test_over import STUDY, zeros

from simstate.datasets import collect
from simstate.distributed import Cluster
from simstate.env import tasks


def same_over_any_number_of_workers() -> None:
    here = STUDY.run(24, batch=24)
    for workers in (1, 2, 4):
        begun = time.monotonic()
        with Cluster(workers=workers) as cluster:
            there = STUDY.run(24, batch=5, over=cluster.map)
        assert torch.equal(here.results["angle"], there.results["angle"])
        took = time.monotonic() - begun
        print(f"{workers} workers: the same bits, {took:.0f} s with Ray's start")


def dies_once(marker: str, item: int) -> int:
    """Kills its worker when it is first called for item 2."""
    if item == 2 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), 9)
    return 10 * item


def a_killed_worker_is_replaced() -> None:
    with tempfile.TemporaryDirectory() as folder, Cluster(workers=2) as cluster:
        marker = str(Path(folder) / "died")
        found = list(cluster.map(lambda item: dies_once(marker, item), range(6)))
        assert found == [0, 10, 20, 30, 40, 50]
        assert Path(marker).exists()
    print("a killed worker: its item was done again")


def a_lost_node_changes_nothing() -> None:
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 2.0
    options = {"episodes": 40, "envs": 4, "seed": 4}
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    second = nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, logging_level="ERROR", log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            here = collect(cfg, zeros, Path(folder) / "a", **options)
            cluster = Cluster(workers=2)
            counts: list[int] = []

            def told(found: int, tried: int) -> None:
                counts.append(found)
                if len(counts) == 2:
                    lost = threading.Thread(target=nodes.remove_node, args=(second,))
                    lost.start()

            there = collect(
                cfg, zeros, Path(folder) / "b", **options, over=cluster.map, told=told
            )
            assert len(here.parts) == len(there.parts)
            pairs = zip(here.episodes(), there.episodes(), strict=True)
            for one, other in pairs:
                for name, values in one.columns.items():
                    np.testing.assert_array_equal(values, other.columns[name])
        print(f"two nodes, one lost after {counts[1]} episodes: the same bits")
    finally:
        ray.shutdown()
        nodes.shutdown()


if __name__ == "__main__":
    same_over_any_number_of_workers()
    a_killed_worker_is_replaced()
    a_lost_node_changes_nothing()
