"""The compiled module. Addresses are those of libmujoco's memory."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = tuple[Array | None, ...]

SYMBOLS: tuple[str, ...]
MUJOCO_VERSION: int
REVISION: int

def connect(
    addresses: tuple[int, ...],
    check_callbacks: Callable[[], object],
    own_timer: int,
    /,
) -> None:
    """Take the addresses of SYMBOLS, a check of callbacks, and libmujoco's timer."""

def jacobians(sizes: tuple[int, int, int, int, int], arrays: Arrays, /) -> None:
    """Jacobians of points; sizes are worlds, points, dofs, elements, bodies.

    Arrays are cdof, positions, subtree_com, moves, elements, bodies, roots, the result.
    """

def entries(sizes: tuple[int, int, int], arrays: Arrays, /) -> None:
    """Entries of rows; sizes are worlds, numbers in a row, entries.

    Arrays are rows, places and the result.
    """

def uniform(
    seed: Array,
    world: Array,
    count: Array,
    rows: Array | None,
    columns: int,
    scale: float,
    low: float,
    out: Array,
    /,
) -> None:
    """The next numbers of some streams: 53 bits times scale, plus low."""

def free_bodies(num_worlds: int, arrays: Arrays, /) -> None:
    """18 numbers of each world: centre of mass, its velocity, rates, attitude.

    Arrays are qpos, qvel, com and the result.
    """

def body_loads(num_worlds: int, turned: bool, arrays: Arrays, /) -> bool:
    """6 numbers of each world: force and moment along the world's axes.

    Arrays are qpos, force, moment and the result.
    """

def field_offset(name: str, /) -> tuple[int, int] | None:
    """Offset in mjData of a field's pointer; 1 if it is that of the number itself."""

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
    def keep(self, name: str, array: Array, after_constraints: bool, /) -> None: ...
    def evaluate_kept(self, ids: Array | None, after_constraints: bool, /) -> int: ...
    def watched_step(
        self, ids: Array | None, n: int, contacts: tuple[Contacts, ...], /
    ) -> int: ...
    def rollout(
        self,
        ids: Array | None,
        n: int,
        controls: Array | None,
        samples: Array,
        fields: tuple[tuple[str, Array], ...],
        /,
    ) -> int:
        """Controls are (worlds or 1, n, nu), fields (samples, worlds, …)."""
    def watch(self, limit: float, arrays: Arrays, /) -> None:
        """Arrays are columns, counts, bad and risen; see `StepWatch`."""
    def fused_step(
        self, ids: Array | None, n: int, contacts: tuple[Contacts, ...], /
    ) -> int: ...
    def forward(self, ids: Array | None, stage: int, /) -> int: ...
    def set_const(self, ids: Array | None, /) -> int: ...
    def count_warnings(self) -> None: ...
    def has_warned(self) -> bool: ...
    def find_bad(self) -> tuple[int, int]: ...
    def differentiate(
        self,
        width: float,
        num_widths: int,
        num_steps: int,
        by_state: bool,
        by_ctrl: bool,
        arrays: Arrays,
        /,
    ) -> int:
        """Out is (worlds, widths, columns, rows), switched (worlds, columns)."""
    def signatures(self, out: Array, /) -> int: ...
    def ray(
        self, ids: Array | None, num_rays: int, flg_static: bool, arrays: Arrays, /
    ) -> int:
        """Arrays are pnt, vec, geomgroup, bodyexclude, dist, geomid and normal."""
    def carried_rays(
        self,
        sizes: tuple[int, int, int, int],
        pos: tuple[float, float, float],
        max_distance: float,
        arrays: Arrays,
        /,
    ) -> int:
        """Sizes are the numbers of parents and rays, their kind, the alignment.

        Arrays are parents, origins, directions, geom_group, distance, geom, height and
        normal.
        """
    def get_model(self, world: int, model: int, /) -> None: ...

Calls = tuple[Callable[[int, int, int], None], int, int, int]
"""What is called before each evaluation, first input, number of inputs, of calls."""

class Integrator:
    def __new__(cls, batch: Batch, description: dict[str, Any]) -> Integrator: ...
    def step(
        self, ids: Array | None, n: int, h: float, refresh: bool, calls: Calls | None, /
    ) -> int: ...
    def run(
        self,
        ids: Array | None,
        span: float,
        sizes: Array | None,
        budget: int,
        refresh: bool,
        calls: Calls | None,
        /,
    ) -> int:
        """One step of these sizes, or, with a budget, adaptive steps over a span."""

class Reads:
    def __new__(
        cls, num_worlds: int, numbers: tuple[int, ...], sources: Arrays, ids: Arrays
    ) -> Reads: ...
    def run(self, out: Array, /) -> None: ...

class Contacts:
    def __new__(
        cls,
        batch: Batch,
        sizes: tuple[int, ...],
        every_step: bool,
        threshold: float,
        arrays: Arrays,
    ) -> Contacts: ...
