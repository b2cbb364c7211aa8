"""Python files of users, run as modules."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from simstate.base.files import check_text

_PREFIX, _DIGEST = "simstate_file_", 8
"""The name of the module of a file is the prefix, its stem, "_" and a digest."""

_loaded: dict[Path, tuple[tuple[int, int], ModuleType]] = {}
"""Files that have been run, with the time and size that they had."""


class _Source(SourceFileLoader):
    """Compiles the file each time: bytecode of a file changed within a second is old.

    It also leaves no `__pycache__` next to the file.
    """

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def run_file(path: Path) -> ModuleType:
    """Return a file as a module; it is run again when it has changed.

    Files next to it can be imported, as for a script.
    """
    file = path.resolve()
    check_text(path)
    stat = file.stat()
    stamp = (stat.st_mtime_ns, stat.st_size)
    known = _loaded.get(file)
    if known is not None and known[0] == stamp:
        return known[1]
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:_DIGEST]
    name = f"{_PREFIX}{file.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(
        name, file, loader=_Source(name, str(file))
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    sys.modules[name] = module  # where dataclasses and pickle look
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        if known is not None:
            sys.modules[name] = known[1]  # where pickle looks for its functions
        raise
    _loaded[file] = (stamp, module)
    return module


def file_modules() -> list[ModuleType]:
    """Return the modules of the files that have been run."""
    return [module for _, module in _loaded.values()]


def file_name(module: str) -> str:
    """Return the name of the file of a module, "task.py"; "" if it is of no file.

    The module may be that of a function from another process, which is not loaded here.
    """
    is_file = module.startswith(_PREFIX)
    return f"{module[len(_PREFIX) : -_DIGEST - 1]}.py" if is_file else ""
