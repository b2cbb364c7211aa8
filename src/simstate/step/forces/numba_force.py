"""Force models compiled by numba from Python functions of one world's arrays.

def damp(t, qvel, qfrc_applied, gain):
    qfrc_applied[3:6] -= gain * qvel[3:6]

force = compile_force(
    damp, sim, reads=("qvel",), writes=("qfrc_applied",), parameters={"gain": 0.5}
)
sim.add_force(force)
force.parameters["gain"][2] = 0.7
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from simstate.base import compiled_core
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.extras import library
from simstate.engine import FIELDS
from simstate.step.force_views import WRITABLE, check_read
from simstate.step.forces.force_parameters import Numbers
from simstate.step.forces.function_force import CompiledFunction

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

_SIGNATURE = "void(voidptr, voidptr, CPointer(float64), int32)"


def compile_force(
    function: Callable[..., None],
    sim: SteppingHost,
    *,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    parameters: Mapping[str, Numbers] | None = None,
) -> CompiledFunction:
    """Compile a function of one world's arrays to a force model with numba.

    It is called as `function(t, *reads, *writes, *parameters)` for each world, in the
    core's threads and without Python's GIL: t is the time [s], fields are arrays of
    this world, parameters are scalars. Needs the extra `compiled`.

    Args:
        function: a function that numba can compile in nopython mode.
        sim: the simulation that it will be added to.
        reads: raw fields of `sim.data` up to the velocity stage, float64.
        writes: inputs: "ctrl", "qfrc_applied", "xfrc_applied".
        parameters: values by name, each a number or (num_envs,).
    """
    numba = library("numba", "compiled", "Forces compiled from Python functions")
    if not compiled_core.is_available():
        raise InvalidInputError(
            "Forces compiled from Python functions need the compiled core: "
            f"{compiled_core.description()}. Use sim.add_force(model, reads=…, "
            "writes=…)."
        )
    if not callable(function):
        raise InvalidInputError(
            "compile_force needs a Python function that numba can compile, got "
            f"{function!r}."
        )
    if not isinstance(getattr(sim, "model", None), mujoco.MjModel):
        raise InvalidInputError(
            f"compile_force needs the simulation that the force is for, got {sim!r}."
        )
    for name in reads:
        check_read(name)
    for name in writes:
        if name not in WRITABLE:
            raise unknown_name("input that a force model may write", name, WRITABLE)
    fields = {name: _place(sim.model, name) for name in (*reads, *writes)}
    names = list(parameters or {})
    try:
        wrapper = _wrapper(numba, function, fields, len(names))
        compiled = numba.cfunc(_SIGNATURE)(wrapper)
    except numba.core.errors.NumbaError as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidInputError(
            f"numba cannot compile the force {function.__qualname__!r}: {reason} It is "
            "called as function(t, *reads, *writes, *parameters) with arrays of one "
            "world.",
            name=function.__qualname__,
        ) from error
    return CompiledFunction(compiled, parameters)


def _place(model: mujoco.MjModel, name: str) -> tuple[int, tuple[int, ...]]:
    """Return the offset of a field's pointer in mjData, and its shape."""
    found = compiled_core.module().field_offset(name)
    # None: not of this version of MuJoCo.
    values = np.asarray(getattr(mujoco.MjData(model), name, None))
    if found is None or found[1] or values.dtype != np.float64:
        known = [x for x in FIELDS if x not in ("time",)]
        raise unknown_name("field of float64 that a force may read", name, known)
    return found[0], values.shape


def _wrapper(
    numba: Any,
    function: Callable[..., None],
    fields: Mapping[str, tuple[int, tuple[int, ...]]],
    num_parameters: int,
) -> Callable[..., None]:
    """Return a function of the C type that calls the user's with arrays."""
    time = compiled_core.module().field_offset("time")
    assert time is not None
    lines = [f"t = _load(d, {time[0]}, 1)[0]"]
    arguments = ["t"]
    for k, (offset, shape) in enumerate(fields.values()):
        size = int(np.prod(shape))
        lines.append(f"a{k} = _load_at(d, {offset}, {size}).reshape({shape!r})")
        arguments.append(f"a{k}")
    lines += [f"p{k} = p[{k}]" for k in range(num_parameters)]
    arguments += [f"p{k}" for k in range(num_parameters)]
    lines.append(f"_call({', '.join(arguments)})")
    name = function.__name__  # names the parameters, and the force in errors
    name = name if name.isidentifier() else "compiled_force"
    source = f"def {name}(m, d, p, world):\n    " + "\n    ".join(lines)
    load, load_at = _loaders(numba)
    scope: dict[str, Any] = {
        "_call": numba.njit(function), "_load": load, "_load_at": load_at,
    }  # fmt: skip
    exec(source, scope)
    return scope[name]


def _loaders(numba: Any) -> tuple[Any, Any]:
    """Return numba functions that view arrays at an address, or at a pointer there."""
    types, intrinsic = numba.types, numba.extending.intrinsic

    @intrinsic
    def number_at(context: Any, base: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            place = builder.gep(values[0], [values[1]])
            return builder.bitcast(place, context.get_value_type(signature.return_type))

        return types.CPointer(types.float64)(base, types.int64), generate

    @intrinsic
    def pointer_at(context: Any, base: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = context.get_value_type(signature.return_type)
            place = builder.gep(values[0], [values[1]])
            return builder.load(builder.bitcast(place, kind.as_pointer()))

        return types.CPointer(types.float64)(base, types.int64), generate

    carray = numba.carray

    @numba.njit
    def load(base: Any, offset: int, size: int) -> Any:
        return carray(number_at(base, offset), size)

    @numba.njit
    def load_at(base: Any, offset: int, size: int) -> Any:
        return carray(pointer_at(base, offset), size)

    return load, load_at
