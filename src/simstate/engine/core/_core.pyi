"""The compiled module. Addresses are those of libmujoco's memory."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

SYMBOLS: tuple[str, ...]
MUJOCO_VERSION: int

def connect(
    addresses: tuple[int, ...],
    check_callbacks: Callable[[], object],
    own_timer: int,
    /,
) -> None:
    """Take the addresses of SYMBOLS, a check of callbacks, and libmujoco's timer."""

class Batch:
    def __new__(
        cls, model: int, num_worlds: int, num_threads: int, persistent: bool
    ) -> Batch: ...
    def describe(self) -> dict[str, int]: ...
    def output(self, name: str) -> tuple[int, int] | None:
        """Address and bytes a world; the field is then copied out of each call."""
    def expand(self, name: str) -> tuple[int, int] | None: ...
    def needs_everything(self) -> bool: ...
    def error(self, world: int) -> str: ...
    def step(self, ids: Array | None, n: int, stage: int, /) -> int: ...
    def fused_step(
        self,
        ids: Array | None,
        n: int,
        groups: tuple[tuple[str, int, int], ...] | None,
        greatest: Array | None,
        /,
    ) -> int: ...
    def forward(self, ids: Array | None, stage: int, /) -> int: ...
    def set_const(self, ids: Array | None, /) -> int: ...
    def count_warnings(self, counts: Array, /) -> None: ...
    def find_bad(
        self, columns: Array, counts: Array, bad: Array, risen: Array, limit: float, /
    ) -> tuple[int, int]: ...
    def jac(
        self, ids: Array | None, body: Array, point: Array, jacp: Array, jacr: Array, /
    ) -> int: ...
    def ray(
        self,
        ids: Array | None,
        num_rays: int,
        pnt: Array,
        vec: Array,
        geomgroup: Array | None,
        flg_static: bool,
        bodyexclude: Array,
        dist: Array,
        geomid: Array,
        normal: Array | None,
        /,
    ) -> int: ...
    def get_model(self, world: int, model: int, /) -> None: ...
    def get_data(self, world: int, data: int, /) -> None: ...

class Integrator:
    def __new__(cls, batch: Batch, description: dict[str, Any]) -> Integrator: ...
    def step(self, ids: Array | None, n: int, h: float, refresh: bool, /) -> int: ...
    def move(self, ids: Array | None, steps: Array, refresh: bool, /) -> int: ...
    def advance(
        self, ids: Array | None, span: float, budget: int, refresh: bool, /
    ) -> int: ...
    def attempt(
        self, ids: Array | None, limits: Array, budget: int, refresh: bool, /
    ) -> int: ...

class Reads:
    def __new__(cls, num_worlds: int, reads: tuple[tuple[Any, ...], ...]) -> Reads: ...
    def run(self, out: Array, /) -> None: ...
