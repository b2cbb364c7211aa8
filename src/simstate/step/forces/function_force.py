"""Force models that are C functions, called by the compiled core without Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import has_shape
from simstate.base.errors import InvalidInputError
from simstate.engine import core
from simstate.step.forces.compiled_force import CompiledForce
from simstate.step.forces.force_parameters import Numbers, Parameters
from simstate.step.forces.function_signature import address_of, check_signature
from simstate.step.forces.scene_force import SceneForce
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost


@runtime_checkable
class CFunction(Protocol):
    """A C function of the type `simstate_force` in simstate/force.h.

    Numba's `cfunc` objects have an address; for ctypes and cffi any object with the
    attribute will do. `parameters`, a float64 array or tensor of shape (num_envs, k),
    is optional and stays live: the function receives the row of its world.
    """

    @property
    def address(self) -> int:
        """The function's address."""
        ...


class CompiledFunction:
    """A C function with named parameters for each world.

    Once it is in a simulation, `parameters` has a row for every world. The rows may be
    written at any time, and are saved, restored and compared with the worlds.

    Args:
        function: a numba `cfunc`, a ctypes or cffi function pointer, or an address.
            Unless it is an address, its type must be `simstate_force`.
        parameters: values by name, each a number or (num_envs,); the function receives
            them in this order.
    """

    def __init__(
        self, function: Any, parameters: Mapping[str, Numbers] | None = None
    ) -> None:
        self.function = function  # whose code must stay in memory
        self.address = function if isinstance(function, int) else address_of(function)
        """The function's address."""
        self.parameters = Parameters(function_name(self))
        """The parameters by name."""
        for key, values in (parameters or {}).items():
            self.parameters.declare(key, values)


def function_name(function: object) -> str:
    """Return the name of a C function, or of the object's class."""
    inner = getattr(function, "function", function)
    return str(getattr(inner, "__name__", type(function).__name__))


class FunctionForce(SceneForce):
    """A C function as a force model, created by `sim.add_force(function)`.

    The core calls it in its threads, without Python's GIL. If the core does not take
    the steps, it is called for one world after the other, which is slow.
    """

    def __init__(self, function: CFunction) -> None:
        self.function = function  # whose code must stay in memory
        check_signature(function)
        address = function.address
        if isinstance(address, bool) or not isinstance(address, int) or address <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                "The address of a C function must be a positive integer, got "
                f"{address!r}: for ctypes it is ctypes.cast(function, "
                "ctypes.c_void_p).value, for cffi int(ffi.cast('intptr_t', function)).",
                name="address",
            )
        self._address = address
        self.__qualname__ = function_name(function)

    def attach(self, sim: SteppingHost) -> None:
        """Check the parameters; raise for engines without MuJoCo's mjData."""
        if not worlds_of(sim).engine.on_demand.can_call_functions:
            raise InvalidInputError(
                f"A C function needs mjData of MuJoCo itself, which the engine "
                f'{sim.engine_name!r} does not have: use engine="native", or write '
                "the force as model(t, sim).",
                name="engine",
            )
        given: Any = getattr(self.function, "parameters", None)
        if isinstance(given, Parameters):
            given.attach(sim)
            self._numbers = [given[name] for name in given]
        else:
            self._numbers = [_live(given, sim.num_envs)]
        if not self._numbers:
            self._numbers = [_live(None, sim.num_envs)]
        super().attach(sim)

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the function for the core."""
        del start, end
        table = np.array([self._address], np.uint64).view(np.float64)
        return CompiledForce(core.LoadKind.FUNCTION, [0], self._numbers, table=table)

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Call the function for one world after the other."""
        del t
        columns = [part.reshape(sim.num_envs, -1) for part in self._numbers]
        found = worlds_of(sim).engine.on_demand.call_function(
            self._address, torch.cat(columns, dim=1).numpy()
        )
        for name, values in found.items():
            getattr(sim.data, name).copy_(values)


def _live(values: Any, num_envs: int) -> Tensor:
    """Return parameters as a tensor of the same memory; one zero if there are none."""
    if values is None:
        return torch.zeros((num_envs, 1), dtype=torch.float64)
    is_array = isinstance(values, Tensor | np.ndarray)
    tensor = torch.as_tensor(values) if is_array else None
    if tensor is None or tensor.dtype != torch.float64 or tensor.device.type != "cpu":
        raise InvalidInputError(
            "The parameters of a C function must be a float64 tensor or array on the "
            f"host, of shape (num_envs, k), got {values!r}.",
            name="parameters",
        )
    if tensor.ndim != 2 or not tensor.shape[1]:
        has_shape("parameters", tensor, (num_envs, 1))
    has_shape("parameters", tensor, (num_envs, tensor.shape[1]))
    return tensor
