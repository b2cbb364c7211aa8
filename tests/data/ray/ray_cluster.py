"""A Ray cluster of two nodes on this machine, one of which is lost: the same bits.

Run by `make test-ray`, in an environment of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np
import ray
import torch
from ray.cluster_utils import Cluster as Nodes
from tests.data.ray.test_over import STUDY, zeros

from simstate.cli import main
from simstate.data.datasets import collect
from simstate.data.ray import Cluster, RemoteEnv
from simstate.env import Env, tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint


def same_over_any_number_of_workers() -> None:
    here = STUDY.run(24, batch=24)
    for workers in (1, 2, 4):
        begun = time.monotonic()
        with Cluster(workers=workers) as cluster:
            there = STUDY.run(24, batch=5, over=cluster.map)
        assert torch.equal(here.results["angle"], there.results["angle"])
        took = time.monotonic() - begun
        print(f"{workers} workers: the same bits, {took:.0f} s with Ray's start")


def a_local_cluster_listens_on_loopback_alone() -> None:
    name, value = "SIMSTATE_RAY_TEST", uuid.uuid4().hex
    os.environ[name] = value
    with Cluster(workers=2) as cluster:
        assert list(cluster.map(lambda item: item + 1, range(3))) == [1, 2, 3]
        found = listening([os.getpid(), *marked(f"{name}={value}")])
        assert len(found) > 3, found
        assert all(address.is_loopback for address, _ in found), found
        gcs = ray.get_runtime_context().gcs_address
        code = f"import ray; ray.init({gcs!r}, log_to_driver=False); print('in')"
        here = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # looks for it on loopback
        assert connects(code, **here)
        assert not connects(code, **here, RAY_AUTH_TOKEN="0" * 64)
    assert set(marked(f"{name}={value}")) <= {os.getpid()}  # all others have ended
    assert not listening([os.getpid()])
    print(f"{len(found)} listening sockets, all on loopback; another token is refused")


def connects(code: str, **more: str) -> bool:
    """Whether a process prints "in"; Ray's client retries for long before it fails."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **more},
            capture_output=True, text=True, timeout=40,
        )  # fmt: skip
        return done.stdout.strip() == "in"
    return False


def another_cluster_needs_a_token() -> None:
    code = "from simstate.data.ray import Cluster; Cluster('127.0.0.1:9')"
    with tempfile.TemporaryDirectory() as home:
        names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
        env = {name: x for name, x in os.environ.items() if name not in names}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**env, "HOME": home},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert "SimStateError" in done.stderr
    assert "no authentication token was found" in done.stderr, done.stderr
    assert "RAY_AUTH_TOKEN" in done.stderr
    print("a cluster elsewhere: refused without a token")


def listening(pids: list[int]) -> list[tuple[IPv4Address | IPv6Address, int]]:
    """Addresses and ports on which processes listen."""
    inodes: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(os.readlink(file))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[k] for k in (1, 3, 9))
            if state == "0A" and f"socket:[{inode}]" in inodes:
                found.append(address_of(*local.split(":")))
    return found


def address_of(address: str, port: str) -> tuple[IPv4Address | IPv6Address, int]:
    """An address as the kernel writes it: words of four bytes, the last one first."""
    data = bytes.fromhex(address)
    data = b"".join(data[k : k + 4][::-1] for k in range(0, len(data), 4))
    found = ip_address(data)
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found, int(port, 16)


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

            def on_progress(found: int, tried: int) -> None:
                counts.append(found)
                if len(counts) == 2:
                    lost = threading.Thread(target=nodes.remove_node, args=(second,))
                    lost.start()

            there = collect(
                cfg,
                zeros,
                Path(folder) / "b",
                **options,
                over=cluster.map,
                on_progress=on_progress,
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


def remote_worlds_go_on_from_their_last_snapshot() -> None:
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.episode_length_s = 0.5
    here = Env(cfg, 12, seed=4)
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 3})
    second = nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, logging_level="ERROR", log_to_driver=False)
    try:
        there = RemoteEnv(Cluster(workers=4), cfg, 12, seed=4, save_every=10)
        generator = torch.Generator().manual_seed(1)
        for k in range(40):
            if k == 13:
                os.kill(there.workers.ask("pid")[2], 9)
            if k == 27:
                nodes.add_node(num_cpus=1)  # where what is lost with the next can go
                nodes.remove_node(second)
            action = torch.randn(12, here.action_dim, generator=generator)
            seen, reward, *_ = there.step(action)
            wanted, expected, *_ = here.step(action)
            assert torch.equal(reward, expected)
            assert all(torch.equal(seen[name], x) for name, x in wanted.items())
        assert there.workers.replaced >= 2
        print("remote worlds, a worker killed and a node lost: the same bits")
    finally:
        ray.shutdown()
        nodes.shutdown()


def a_stuck_worker_is_reported() -> None:
    def slow(item: int) -> int:
        time.sleep(6 if item == 1 else 0)
        return item

    with (
        Cluster(workers=2, patience=2.0) as cluster,
        warnings.catch_warnings(record=True) as on_progress,
    ):
        warnings.simplefilter("always")
        assert list(cluster.map(slow, range(3))) == [0, 1, 2]
    assert any("item 1 has not responded" in str(w.message) for w in on_progress)
    print("a stuck worker: a warning names what it has not done")


def training_gives_the_same_policy(folder: Path) -> None:
    common = ["train", "Quadruped-Velocity", "--envs", "24", "--iterations", "2"]
    common += ["--logger", "none", "--no-export", "--seed", "5"]
    for name, more in (("here", []), ("there", ["--ray", "local"])):
        assert main([*common, "--run-dir", str(folder / name), *more]) == 0
    ours, theirs = (
        read_checkpoint(find_checkpoint(folder / name))["algorithm"]["actor_state_dict"]
        for name in ("here", "there")
    )
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    print("train --ray: the same policy, bit for bit")


def ctrl_c_ends_all_of_it(folder: Path) -> None:
    """A command with its own process group, as a terminal has it, and Ctrl-C."""
    mark = f"SIMSTATE_RAY_TEST={uuid.uuid4().hex}"
    script = folder / "policy.py"
    script.write_text(
        "import torch\n"
        "def zeros(env):\n"
        "    return lambda seen: torch.zeros(env.num_envs, env.action_dim)\n"
    )
    command = [sys.executable, "-m", "simstate", "collect", "Cartpole-Balance"]
    command += ["--policy", f"{script}:zeros", "--episodes", "1000000", "--envs", "4"]
    command += ["--out", str(folder / "data"), "--ray", "local"]
    name, _, value = mark.partition("=")
    child = subprocess.Popen(
        command, env={**os.environ, name: value}, start_new_session=True
    )
    try:
        within(300, lambda: (folder / "data/part-00002.simrec").exists())
        assert len(marked(mark)) > 3  # Ray's servers and workers
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=300) == 130
        within(120, lambda: not marked(mark))
    finally:
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
    print("Ctrl-C: the command and all that it started have ended")


def marked(mark: str) -> list[int]:
    """The processes whose environment has a mark."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def within(seconds: float, holds: Callable[[], bool]) -> None:
    """Wait until something holds; an error after so long."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.5)


if __name__ == "__main__":
    # A shell in the background starts its commands with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    a_local_cluster_listens_on_loopback_alone()
    another_cluster_needs_a_token()
    same_over_any_number_of_workers()
    a_killed_worker_is_replaced()
    a_lost_node_changes_nothing()
    remote_worlds_go_on_from_their_last_snapshot()
    a_stuck_worker_is_reported()
    with tempfile.TemporaryDirectory() as name:
        training_gives_the_same_policy(Path(name))
        ctrl_c_ends_all_of_it(Path(name))
    assert (
        main(["bench", "cartpole", "--envs", "64", "--seconds", "2", "--ray", "local"])
        == 0
    )
