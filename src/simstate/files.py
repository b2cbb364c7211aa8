"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Generator
from pathlib import Path

from simstate.errors import FileError, InvalidInputError

_ENDING = ".simstate-part"


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write a file's bytes as `replacing` does: a crash leaves the old file."""
    with replacing(path) as part, open(part, "wb") as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A file beside the target, to be written, that then takes the target's place.

    If the block raises, or the process dies in it, the old file is there as it was. A
    symbolic link stays one, and what it points to is replaced. A new file has the mode
    that the umask says, an old one keeps its own. What killed processes have left of
    earlier attempts to write this file is removed.
    """
    target = Path(os.path.realpath(path))
    name = f"{_prefix(target)}{os.getpid()}-{uuid.uuid4().hex}{_ENDING}"
    part = target.with_name(name)
    try:  # from before it is there: Ctrl-C may come at once
        if target.exists() and not target.is_file():
            raise FileError(f"Cannot write {str(path)!r}: it is no regular file.")
        _remove_abandoned(target)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        if target.exists():
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        yield part
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
    except FileError:  # also the block's own, of another file
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"Cannot write {str(path)!r}: {reason}. What was there before is untouched."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _prefix(target: Path) -> str:
    """How the names of parts of this file begin; names have 255 bytes at most."""
    return f".{os.fsencode(target.name)[:80].decode(errors='ignore')}."


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
