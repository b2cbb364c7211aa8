"""Cluster: calls a function with many items on the machines of a Ray cluster."""

# Ray is loaded when a cluster is created.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from importlib import import_module
from typing import Any, TypeVar

from simstate.base.checks import whole_number
from simstate.base.closeable import Closing
from simstate.base.errors import InvalidInputError, SimStateError, warn
from simstate.base.extras import library
from simstate.base.python_file import file_modules
from simstate.engine.threads import available_cpus

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 3
"""Number of retries of an item whose worker was lost."""
_ENDING_S = 10.0
"""Time after which processes of a closed cluster are killed [s]."""
_AUTH_MODE = "RAY_AUTH_MODE"
_BUSY = (
    " Ray allows its servers half a minute to start, which is too short on a very busy "
    'machine: run `ray start --head` first, and use the address "auto".'
)


_TOKEN = (
    " A connection needs the cluster's token: start its head with RAY_AUTH_MODE=token, "
    "and set RAY_AUTH_TOKEN here to the output of `ray get-auth-token` there."
)


class Cluster(Closing):
    """Workers on this machine, or on all machines of a Ray cluster.

    Worlds have global ids that seed them, so that a batch gives bitwise the same
    results on any machine, and when it is repeated after its worker was lost.

    Anyone who can reach the ports of a Ray cluster can run code on it. A cluster that
    is started here listens on loopback only, and requires a token. A connection to a
    running one needs its token (`RAY_AUTH_TOKEN`, or `~/.ray/auth_token`), unless you
    set `RAY_AUTH_MODE=disabled`.

    Args:
        address: address of a cluster ("auto", "10.0.0.1:6379", "ray://…"); None: start
            one on this machine, and end it on `close`.
        workers: number of items that run at once; None: the number of processors.
        patience: time without a result after which a warning is issued [s].
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        patience: float = 120.0,
    ) -> None:
        if workers is not None:
            whole_number("workers", workers, 1)
        if not patience > 0:
            raise InvalidInputError(f"patience must be > 0 [s], got {patience}.")
        self.ray: Any = library("ray", "ray", "Clusters")
        """Ray itself."""
        self._patience = patience
        self._is_ours = not self.ray.is_initialized()
        if self._is_ours:
            self._start(address, workers)
        cpus = int(self.ray.cluster_resources().get("CPU", 1))
        self.workers = workers or max(1, cpus)
        """Number of items that run at once."""

    def _start(self, address: str | None, workers: int | None) -> None:
        options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        if address is None:
            options |= {"include_dashboard": False}
            options |= {"num_cpus": workers or available_cpus()}
        is_here = _on_loopback() if address is None else contextlib.nullcontext()
        try:
            _use_token()
            with is_here:
                self.ray.init(address=address, **options)
        except Exception as error:  # Ray raises many types
            raise SimStateError(
                f"The Ray cluster {address or 'of this machine'} cannot be reached: "
                f"{error}" + (_TOKEN if address else _BUSY)
            ) from error
        if address is None:
            self._check_loopback()

    def _check_loopback(self) -> None:
        """Raise unless the cluster that was started is on loopback."""
        at = str(self.ray.util.get_node_ip_address())
        if at not in ("127.0.0.1", "::1"):
            self.close()
            raise SimStateError(
                f"Ray {self.ray.__version__} listens on {at}, which others can reach, "
                "and was stopped: install the version in `constraints.txt`."
            )

    def put(self, value: object) -> Any:
        """Send a value to the cluster once; return the reference to it.

        Functions of Python files that simstate has run, such as tasks and policies, are
        sent as code, since workers cannot import them.
        """
        for module in file_modules():
            self.ray.cloudpickle.register_pickle_by_value(module)
        return self.ray.put(value)

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[Result]:
        """Call a function with each item; yield the results in the order of the items.

        The function is sent once. At most twice as many items as workers are pending;
        the next one is sent when a result is consumed. Closing the generator cancels
        the pending items.
        """
        ray = self.ray
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_call)
        shared, waiting = self.put(function), deque[tuple[Item, Any]]()
        source = iter(items)
        try:
            while True:
                while len(waiting) < 2 * self.workers:
                    try:
                        item = next(source)
                    except StopIteration:
                        break
                    waiting.append((item, remote.remote(shared, item)))
                if not waiting:
                    return
                item, result = waiting[0]
                yield self._taken(item, result)
                waiting.popleft()
        finally:
            for _, result in waiting:
                ray.cancel(result, force=True)

    def wait_for(self, result: Any, what: str) -> Any:
        """Wait for a result and return it; raise the error of the worker, if any."""
        ray = self.ray
        while not ray.wait([result], timeout=self._patience)[0]:
            warn(
                f"{what} has not responded for {self._patience:g} s: it is busy, "
                "blocked, or waiting for a processor."
            )
        try:
            return ray.get(result)
        except ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None

    def _taken(self, item: object, result: Any) -> Any:
        try:
            return self.wait_for(result, f"The worker of item {item!r}")
        except self.ray.exceptions.RayError as error:
            raise SimStateError(
                f"Item {item!r} was lost {RETRIES + 1} times: {error}"
            ) from error

    def close(self) -> None:
        """End a cluster that was started here, and wait for its processes to exit."""
        if self._is_ours and self.ray.is_initialized():
            psutil, started = _started_processes()
            self.ray.shutdown()  # returns before workers and agents have ended
            for process in psutil.wait_procs(started, timeout=_ENDING_S)[1]:
                process.kill()


def _started_processes() -> tuple[Any, list[Any]]:
    """Return `psutil` and the processes that Ray has started from this one."""
    psutil: Any = import_module("psutil")  # a dependency of Ray
    node: Any = import_module("ray._private.worker")._global_node
    parts: list[list[Any]] = [] if node is None else [*node.all_processes.values()]
    found: list[Any] = []
    for info in itertools.chain(*parts):
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(info.process.pid)
            found += [first, *first.children(recursive=True)]
    return psutil, found


@contextlib.contextmanager
def _on_loopback() -> Generator[None]:
    """Context manager that restricts Ray to loopback, as on macOS and Windows."""
    constants: Any = import_module("ray._private.ray_constants")
    name = constants.ENABLE_RAY_CLUSTERS_ENV_VAR
    before, allowed = os.environ.get(name), constants.ENABLE_RAY_CLUSTER
    try:
        os.environ[name], constants.ENABLE_RAY_CLUSTER = "0", False
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = allowed
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _use_token() -> None:
    """Use Ray's token authentication, unless a mode was chosen."""
    if _AUTH_MODE not in os.environ:
        os.environ[_AUTH_MODE] = "token"  # kept, because workers inherit it
        import_module("ray._raylet").Config.initialize("")  # reload the configuration


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    """Call the function on a worker."""
    one_thread()
    return function(item)


def one_thread() -> None:
    """Restrict torch to one thread, leaving the other cores to other workers."""
    import torch

    torch.set_num_threads(1)
