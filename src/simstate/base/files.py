"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import uuid
from collections.abc import Generator
from pathlib import Path

from simstate.base.errors import FileError, InvalidInputError

_ENDING = ".simstate-part"


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write a file's bytes as `replacing` does: a crash leaves the old file."""
    with replacing(path) as part, open(part, "wb") as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a temporary file to write, which then replaces the target.

    If the block raises, or the process dies in it, the old file is there as it was. A
    symbolic link stays one, and what it points to is replaced. A new file has the mode
    that the umask says, an old one keeps its own. What killed processes have left of
    earlier attempts to write this file is removed.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(_part_name(target))
    try:  # from before it is there: Ctrl-C may come at once
        if target.exists() and not target.is_file():
            raise FileError(
                f"Cannot write {str(path)!r}: it is no regular file.", name=str(path)
            )
        _remove_abandoned(target, target.parent)
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
        raise FileError(
            f"Cannot write {str(path)!r}: {reason_of(error)}. What was there before is "
            "untouched.",
            name=str(path),
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


@contextlib.contextmanager
def filling(path: Path) -> Generator[Path]:
    """A folder to be filled, whose content then is that of the target.

    The target must be empty or not there. If the block raises it stays so, and what a
    killed process has left of an earlier attempt is removed.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise InvalidInputError(
            f"{str(path)!r} exists already and is no folder.", name=str(path)
        )
    place = target if target.exists() else target.parent
    part = place / _part_name(target)
    try:
        place.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target, place)
        if place is target and any(place.iterdir()):
            raise InvalidInputError(
                f"{str(path)!r} exists already and is not empty: name another folder.",
                name=str(path),
            )
        part.mkdir()
        yield part
        if place is not target:
            os.replace(part, target)
        else:  # which may be where a disk is mounted, or where a shell is
            _move_all(part, target)
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"Cannot write {str(path)!r}: {reason_of(error)}. Nothing is left of it.",
            name=str(path),
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _move_all(source: Path, target: Path) -> None:
    """Move what is in a folder into another one; all of it, or nothing."""
    moved: list[Path] = []
    try:
        for item in list(source.iterdir()):
            moved.append(target / item.name)
            os.replace(item, moved[-1])
    except BaseException:
        for item in moved:
            if item.exists():
                os.replace(item, source / item.name)
        raise


@contextlib.contextmanager
def naming_errors(path: Path, verb: str) -> Generator[None]:
    """Raise a FileError that names the file where the block raises an OSError.

    Args:
        path: the file or folder.
        verb: what is done with it, "read" or "write".
    """
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"Cannot {verb} {str(path)!r}: {reason_of(error)}.", name=str(path)
        ) from error


def reason_of(error: OSError) -> str:
    """Why a file could not be written, as the system says it.

    Libraries that write files add paragraphs around it.
    """
    return os.strerror(error.errno) if error.errno else str(error)


def _part_name(target: Path) -> str:
    """Return the name of a temporary file or folder of this process for the target."""
    return f"{_prefix(target)}{os.getpid()}-{uuid.uuid4().hex}{_ENDING}"


def _prefix(target: Path) -> str:
    """Return the prefix of temporary names for a file, at most 255 bytes long."""
    return f".{os.fsencode(target.name)[:80].decode(errors='ignore')}."


def _remove_abandoned(target: Path, place: Path) -> None:
    """Remove the parts in a folder that processes have begun which are no more."""
    prefix = _prefix(target)
    for file in place.iterdir():
        if not (file.name.startswith(prefix) and file.name.endswith(_ENDING)):
            continue
        owner = file.name.removeprefix(prefix).partition("-")[0]
        if not owner.isdecimal() or _is_alive(int(owner)):
            continue
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    """Return True if a process with this id exists, of any user."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another process
        return True
    return True


def check_text(path: Path) -> None:
    """Raise if a file is no text, as one of Python code is."""
    if b"\0" in path.read_bytes():
        raise InvalidInputError(
            f"{str(path)!r} is no text: it has zero bytes.", name=str(path)
        )
