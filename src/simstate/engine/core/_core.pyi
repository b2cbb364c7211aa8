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
    """Compute Jacobians of points, of sizes worlds, points, dofs, elements, bodies.

    Arrays are cdof, positions, subtree_com, moves, elements, bodies, roots, the result.
    """

def entries(sizes: tuple[int, int, int], arrays: Arrays, /) -> None:
    """Copy entries of rows, of sizes worlds, components of a row, entries.

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
    """Draw the next numbers of some streams: 53 bits times scale, plus low.

    Rows select streams, None: all. Counts rise by `columns`; out is (streams, columns).
    """

def free_bodies(num_worlds: int, arrays: Arrays, /) -> None:
    """Compute 18 values per world: centre of mass, its velocity, rates, attitude.

    Arrays are qpos, qvel, com and the result.
    """

def body_loads(num_worlds: int, turned: bool, arrays: Arrays, /) -> bool:
    """Write force and moment along world axes, 6 values per world.

    Arrays are qpos, force, moment and the result; `turned` loads are along body axes.
    Return True if all values are finite.
    """

def field_offset(name: str, /) -> tuple[int, int] | None:
    """Return the offset of a field's pointer in mjData, and 0.

    Of a scalar it is the offset of the number itself, and 1; None: no such field.
    """

class Batch:
    def __new__(cls, model: int, num_worlds: int, num_threads: int) -> Batch: ...
    def describe(self) -> dict[str, int]: ...
    def output(self, name: str) -> tuple[int, int] | None:
        """Copy a field out of each call from now on; return address and bytes a world.

        None: no such field.
        """
    def expand(self, name: str) -> tuple[int, int] | None: ...
    def needs_everything(self) -> bool: ...
    def error(self, world: int) -> str: ...
    def keep(self, name: str, array: Array, after_constraints: bool, /) -> None: ...
    def evaluate_kept(self, ids: Array | None, after_constraints: bool, /) -> int: ...
    def watched_step(
        self, ids: Array | None, n: int, contacts: tuple[Contacts, ...], /
    ) -> int:
        """Return the flags 1 (an invalid world), 2 (a warning) and 4 (an error)."""
    def rollout(
        self,
        ids: Array | None,
        n: int,
        controls: Array | None,
        samples: Array,
        fields: tuple[tuple[str, Array], ...],
        /,
    ) -> int:
        """Advance by n steps under controls; return flags as `watched_step` does.

        Controls are (worlds or 1, n, nu) or None, samples the steps after which fields,
        names with arrays (samples, worlds, …), are recorded.
        """
    def watch(self, limit: float, arrays: Arrays, /) -> None:
        """Set what each step is checked for; see `StepWatch`.

        Arrays are the first and last column of each range, counts and bad.
        """
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
        """Differentiate steps of all worlds; return the number of worlds that failed.

        Arrays are out (worlds, widths, columns, rows) and switched (worlds, columns).
        """
    def signatures(self, out: Array, /) -> int: ...
    def carried_rays(
        self,
        sizes: tuple[int, int, int, int],
        pos: tuple[float, float, float],
        max_distance: float,
        arrays: Arrays,
        /,
    ) -> int:
        """Cast rays of parents; return the number of worlds that failed.

        Sizes are the number of parents, the number of rays of each, the kind of the
        parents and the alignment; `pos` is the origin of the rays in a parent.
        Arrays are parents, origins, directions, geom_group, distance, geom, height and
        normal.
        """
    def get_model(self, world: int, model: int, /) -> None: ...

Calls = tuple[Callable[[int, int, int], None], int, int, int]
"""What is called before each evaluation, first input, number of inputs, of calls."""

class Integrator:
    def __new__(cls, batch: Batch, description: dict[str, Any]) -> Integrator: ...
    def step(self, ids: Array | None, n: int, h: float, calls: Calls | None, /) -> int:
        """Take n steps of size h [s]; return flags as `Batch.watched_step` does."""
    def run(
        self,
        ids: Array | None,
        span: float,
        sizes: Array | None,
        budget: int,
        calls: Calls | None,
        /,
    ) -> int:
        """Advance worlds; return the number of worlds that failed.

        Args:
            ids: the worlds; None: all.
            span: time to cover by adaptive steps [s]; ignored if there are sizes.
            sizes: size of one step of each world [s], (num_worlds,); None: `span`.
            budget: most evaluations of a world. 0: one step of exactly `sizes`, with
                any error; otherwise steps meet their tolerances, and sizes are limits.
            calls: what is called before each evaluation; None: nothing.
        """

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
