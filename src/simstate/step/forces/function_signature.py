"""Addresses and types of C functions of ctypes, cffi and numba."""

from __future__ import annotations

import ctypes
from typing import Any, cast

from simstate.base.errors import InvalidInputError

_TYPE = "void (const mjModel*, mjData*, const double*, int)"


def is_function_pointer(model: object) -> bool:
    """Return True for function pointers of ctypes and cffi."""
    is_ctypes = isinstance(model, ctypes._CFuncPtr)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]
    return is_ctypes or _is_cffi(model)


def address_of(function: object) -> int:
    """Return the address of a function pointer of ctypes or cffi, or of a `cfunc`."""
    check_signature(function)
    if _is_cffi(function):
        backend = __import__("_cffi_backend")
        integer = backend.new_primitive_type("intptr_t")
        return int(backend.cast(integer, function))
    if is_function_pointer(function):
        return ctypes.cast(cast("Any", function), ctypes.c_void_p).value or 0
    address: object = getattr(function, "address", None)
    if not isinstance(address, int):
        raise InvalidInputError(
            "A compiled force is a numba cfunc, a function pointer of ctypes or cffi, "
            f"or its address; got {function!r}."
        )
    return address


def check_signature(function: object) -> None:
    """Raise if a function is known to have another type than `simstate_force`."""
    if _is_cffi(function):
        _check_cffi(function)
    elif is_function_pointer(function):
        _check_ctypes(cast("Any", function))
    elif type(function).__module__.startswith("numba.") and hasattr(function, "_sig"):
        _check_numba(cast("Any", function))


def _is_cffi(model: object) -> bool:
    return type(model).__module__ == "_cffi_backend"


def _refuse(given: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(
        f"A compiled force has the type {_TYPE} of simstate/force.h, got {given}: "
        f"{remedy}.",
        name="function",
    )


def _check_ctypes(function: Any) -> None:
    types = function.argtypes
    pointers, sizes = (ctypes.c_void_p, ctypes._Pointer), ctypes.sizeof(ctypes.c_int)  # pyright: ignore[reportPrivateUsage]
    fits = (
        types is not None
        and len(types) == 4
        and function.restype is None
        and all(issubclass(kind, pointers) for kind in types[:3])
        and issubclass(types[3], ctypes.c_int)
        and ctypes.sizeof(types[3]) == sizes
    )
    if not fits:
        names = None if types is None else [kind.__name__ for kind in types]
        raise _refuse(
            f"argtypes {names} and restype {function.restype}",
            "set function.restype = None and function.argtypes = [ctypes.c_void_p, "
            "ctypes.c_void_p, ctypes.POINTER(ctypes.c_double), ctypes.c_int]",
        )


def _check_cffi(function: object) -> None:
    kind = __import__("_cffi_backend").typeof(function)
    if kind.kind != "function":
        raise _refuse(f"cffi's {kind.cname!r}", "pass a function")
    names = [arg.cname for arg in kind.args]
    fits = (
        len(names) == 4
        and kind.result.kind == "void"
        and all(arg.kind == "pointer" for arg in kind.args[:3])
        and names[2] in ("double *", "void *")
        and names[3] == "int"
        and not kind.ellipsis
    )
    if not fits:
        raise _refuse(
            f"cffi's {kind.cname!r}",
            "declare it as void f(void* m, void* d, double* parameters, int world)",
        )


def _check_numba(function: Any) -> None:
    signature = function._sig
    names = [str(arg) for arg in signature.args]
    fits = (
        len(names) == 4
        and str(signature.return_type) in ("none", "void")
        and all(name == "void*" or name.endswith("*") for name in names[:3])
        and names[2] in ("float64*", "void*")
        and names[3] == "int32"
    )
    if not fits:
        raise _refuse(
            f"numba's {signature}",
            'use numba.cfunc("void(voidptr, voidptr, CPointer(float64), int32)"), or '
            "integrate.compile_force",
        )
