"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from simstate.errors import FileError, InvalidInputError

_ENDING = ".simstate-part"


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write beside the target, then take its place: a crash leaves the old file.

    A symbolic link stays one, and what it points to is replaced. A new file has the
    mode that the umask says, an old one keeps its own. What killed processes have left
    of earlier attempts to write this file is removed.
    """
    target = Path(os.path.realpath(path))
    try:
        _remove_abandoned(target)
        _write(target, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"Cannot write {str(path)!r}: {reason}. What was there before is untouched."
        ) from error


def _write(target: Path, data: bytes | memoryview) -> None:
    part = target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}")
    part = part.with_name(part.name + _ENDING)
    try:  # from before it is there: Ctrl-C may come at once
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            if target.exists():
                os.chmod(part, stat.S_IMODE(target.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _prefix(target: Path) -> str:
    """How the names of parts of this file begin; names are limited in length."""
    return f".{target.name[:80]}."


def _remove_abandoned(target: Path) -> None:
    """Remove the parts that processes have begun which are no more."""
    prefix = _prefix(target)
    for file in target.parent.iterdir():
        if not (file.name.startswith(prefix) and file.name.endswith(_ENDING)):
            continue
        owner = file.name.removeprefix(prefix).partition("-")[0]
        if owner.isdecimal() and not _is_alive(int(owner)):
            file.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    """Whether there is such a process, of anybody."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def check_text(path: Path) -> None:
    """Raise if a file is no text, as one of Python code is."""
    if b"\0" in path.read_bytes():
        raise InvalidInputError(f"{str(path)!r} is no text: it has zero bytes.")
