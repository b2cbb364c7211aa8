"""What the viewer costs: a frame of many worlds, and a script that is looked at.

python benchmarks/viewer.py [worlds]     # needs the extra `view`

A client that speaks the page's websocket and reads as fast as it can stands for a
browser, one that reads nothing for a slow one. Times are of this thread's and the
server's own work, so that a busy machine counts less.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.view.client import Client

from simstate import Simulation
from simstate.cli.model_scene import disturb, scene_of
from simstate.view.viewer import Viewer

FRAMES = 60
WORK = 3.0
"""Of how much work of steps `sync` is a share [s]: many frames."""


def drained(client: Client, stop: threading.Event) -> threading.Thread:
    """A thread that reads whatever comes."""

    def work() -> None:
        while not stop.is_set():
            try:
                client._socket.recv(timeout=0.2)
            except TimeoutError:
                continue
            except Exception:
                return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def frame_cost(viewer: Viewer, sim: Simulation) -> tuple[float, float]:
    """Median work of a frame here and in the server's thread [ms]."""
    here: list[float] = []
    begin_server = viewer._served()
    for _ in range(FRAMES):
        sim.step(4)
        begin = time.thread_time()
        viewer.show()
        here.append(time.thread_time() - begin)
        time.sleep(0.02)  # for the server to send it
    served = (viewer._served() - begin_server) / FRAMES
    return 1e3 * statistics.median(here), 1e3 * served


def share_of_sync(viewer: Viewer, sim: Simulation) -> float:
    """The work of `sync` and of the server, as a share of that of the steps."""
    physics = shown = 0.0
    begin_server = viewer._served()
    while physics < WORK:
        begin = time.process_time()
        sim.step()
        physics += time.process_time() - begin
        begin = time.thread_time()
        viewer.sync()
        shown += time.thread_time() - begin
    served = viewer._served() - begin_server
    return (shown + served) / (physics - served)


def main(worlds: int) -> None:
    sim = Simulation(scene_of("quadruped"), worlds)
    disturb(sim, 0.5, 0)
    with sim.view(port=0, worlds=worlds) as viewer:
        client = Client(viewer.url)
        stop = threading.Event()
        reader = drained(client, stop)
        end = time.monotonic() + 60.0
        while not viewer.num_clients and time.monotonic() < end:
            viewer.run(0.05)
        print(f"{worlds} quadrupeds, {len(viewer.picture._geometry.meshes)} meshes")
        here, served = frame_cost(viewer, sim)
        print(f"a frame: {here:.1f} ms here, {served:.1f} ms in the server's thread")
        for name in ("contacts", "link frames", "COM velocities"):
            viewer.picture.show_overlay(name, True)
        here, served = frame_cost(viewer, sim)
        print(f"with three overlays: {here:.1f} ms here, {served:.1f} ms there")
        report_share(viewer, sim, "a client that reads")
        stop.set()
        reader.join(5.0)
        client.close()
        slow = Client(viewer.url)
        while viewer.num_clients != 1 and time.monotonic() < end + 60.0:
            viewer.run(0.05)
        report_share(viewer, sim, "a client that reads nothing")
        slow.close()


def report_share(viewer: Viewer, sim: Simulation, whom: str) -> None:
    share = share_of_sync(viewer, sim)
    print(f"sync() after each step takes {100 * share:.1f} % of theirs, with {whom}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
