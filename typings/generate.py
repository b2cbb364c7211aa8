"""Writes typings/mujoco/__init__.pyi from the MuJoCo that is installed.

    .venv/bin/python typings/generate.py

MuJoCo's compiled modules come without types. Models and data get an attribute for each
of their fields; of enums, functions and constants the stub has what simstate uses, so
that a name which MuJoCo does not have, or a missing argument, is a type error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

HERE = Path(__file__).parent
SOURCES = (HERE.parent / "src").rglob("*.py")
ARRAYS = {"f": "Floats", "i": "Ints", "u": "Ints", "b": "Bools"}
HEAD = '''"""What simstate uses of MuJoCo {version}; written by typings/generate.py."""

from collections.abc import Callable
from typing import Any

import numpy as np
from mujoco import batch as batch

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]
Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Array = np.ndarray[Any, np.dtype[Any]]

__version__: str
__file__: str
mjx: Any

class FatalError(Exception): ...
'''
SPEC = """
class MjSpec:
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    @staticmethod
    def from_file(filename: str) -> MjSpec: ...
    @staticmethod
    def from_string(xml: str, assets: dict[str, bytes] | None = ...) -> MjSpec: ...
    def compile(self) -> MjModel: ...
    def copy(self) -> MjSpec: ...
"""
DRAWN = "".join(
    f"""
class {name}:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
"""
    for name in (
        "MjrContext", "MjrRect", "MjvCamera", "MjvGeom", "MjvOption", "MjvPerturb",
        "MjvScene",
    )
)  # fmt: skip
OF_MODEL = """    opt: MjOption
    stat: MjStatistic
    vis: Any
    @staticmethod
    def from_xml_path(filename: str) -> MjModel: ...
    @staticmethod
    def from_binary_path(filename: str, assets: dict[str, bytes]) -> MjModel: ...
    @staticmethod
    def from_xml_string(xml: str, assets: dict[str, bytes] | None = ...) -> MjModel: ...
    _address: int
    _setconst_inputs: tuple[str, ...]
    _setconst_outputs: tuple[str, ...]
"""
OF_DATA = """    contact: Any
    warning: Any
    _address: int
    def __init__(self, model: MjModel) -> None: ...
"""


def fields(thing: Any) -> str:
    """The attributes of a struct that are numbers, arrays, text or methods."""
    lines: list[str] = []
    for name in dir(thing):
        value = getattr(thing, name)
        if name.startswith("_"):
            continue
        if isinstance(value, np.ndarray):
            kind = ARRAYS.get(value.dtype.kind, "Array")
        elif isinstance(value, bool | int | float | bytes):
            kind = type(value).__name__
        else:
            if callable(value) and not name.startswith("from_"):
                lines.append(f"    def {name}(self, *args: Any) -> Any: ...\n")
            continue
        lines.append(f"    {name}: {kind}\n")
    return "".join(lines)


def enum(name: str) -> str:
    """An enum of MuJoCo with its members; each has a value."""
    kind = getattr(mujoco, name)
    members = "".join(f"    {member}: {name}\n" for member in kind.__members__)
    return (
        f"\nclass {name}:\n    __members__: dict[str, {name}]\n{members}"
        "    value: int\n    name: str\n"
        "    def __init__(self, value: int | np.integer[Any]) -> None: ...\n"
        "    def __int__(self) -> int: ...\n    def __index__(self) -> int: ...\n"
        "    def __rand__(self, other: int) -> int: ...\n"
    )


def function(name: str) -> str:
    """A function's declaration, from what it says of itself."""
    text = (getattr(mujoco, name).__doc__ or "").split("\n")[0]
    found = re.match(rf"{name}\((.*)\) -> (.*)$", text)
    if found is None or "*args" in text:
        return f"def {name}(*args: Any) -> Any: ...\n"
    given = re.sub(r"typing\.Annotated\[(?:[^\[\]]|\[[^\[\]]*\])*\]", "Array", found[1])
    for theirs, ours in (
        (r"mujoco\._structs\.", ""),
        (r"typing\.SupportsInt \| typing\.SupportsIndex", "int | np.integer[Any]"),
        (r"typing\.SupportsFloat \| typing\.SupportsIndex", "float"),
        (r"(collections\.abc|typing)\.\S+?(\[.*\])?(?=,|$)", "Any"),
    ):
        given = re.sub(theirs, ours, given)
    back = found[2] if found[2] in ("None", "int", "float", "str", "bool") else "Any"
    if name == "mj_id2name":
        back = "str | None"
    return f"def {name}({given}) -> {back}: ...\n"


def used() -> set[str]:
    """The names of the module that the sources use."""
    pattern = re.compile(r"\bmujoco\.(mj\w+|[gs]et_mj\w+)")
    return {name for path in SOURCES for name in pattern.findall(path.read_text())}


def main() -> None:
    """Write the stub."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    names = sorted(name for name in used() if hasattr(mujoco, name))
    parts = [HEAD.format(version=mujoco.__version__)]
    for kind, thing in (("MjOption", model.opt), ("MjStatistic", model.stat)):
        parts.append(f"\nclass {kind}:\n{fields(thing)}")
    parts.append(f"\nclass MjModel:\n{OF_MODEL}{fields(model)}")
    parts.append(f"\nclass MjData:\n{OF_DATA}{fields(mujoco.MjData(model))}")
    parts += [SPEC, DRAWN]
    parts += [enum(name) for name in names if name.startswith("mjt")]
    parts.append("\n")
    for name in names:
        value = getattr(mujoco, name)
        if isinstance(value, int | float):
            parts.append(f"{name}: {type(value).__name__}\n")
        elif callable(value) and not name.startswith("mjt"):
            parts.append(function(name))
    (HERE / "mujoco" / "__init__.pyi").write_text("".join(parts))


if __name__ == "__main__":
    main()
