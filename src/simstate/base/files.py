"""Files and folders that are written atomically."""

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

    If the block raises, or the process dies in it, the old file is unchanged. A
    symbolic link is kept, and the file that it points to is replaced. A new file gets
    its mode from the umask, an existing one keeps its mode. Temporary files that killed
    processes left behind for this target are removed.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(_part_name(target))
    try:  # before the file exists: Ctrl-C may come at any time
        if target.exists() and not target.is_file():
            raise FileError(
                f"Cannot write {str(path)!r}: not a regular file.", name=str(path)
            )
        _remove_abandoned(target, target.parent)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        if target.exists():
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        yield part
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
    except FileError:  # also one of the block, for another file
        raise
    except OSError as error:
        raise FileError(
            f"Cannot write {str(path)!r}: {reason_of(error)}. The previous content is "
            "unchanged.",
            name=str(path),
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


@contextlib.contextmanager
def filling(path: Path) -> Generator[Path]:
    """Yield a temporary folder to fill, whose content then becomes the target's.

    The target must be empty or absent. If the block raises, it stays so. Temporary
    folders that killed processes left behind are removed.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise InvalidInputError(
            f"{str(path)!r} already exists and is not a folder.", name=str(path)
        )
    place = target if target.exists() else target.parent
    part = place / _part_name(target)
    try:
        place.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target, place)
        if place is target and any(place.iterdir()):
            raise InvalidInputError(
                f"{str(path)!r} already exists and is not empty: name another folder.",
                name=str(path),
            )
        part.mkdir()
        yield part
        if place is not target:
            os.replace(part, target)
        else:  # it may be a mount point or a working directory
            _move_all(part, target)
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"Cannot write {str(path)!r}: {reason_of(error)}. Nothing was written.",
            name=str(path),
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _move_all(source: Path, target: Path) -> None:
    """Move the content of a folder into another one; undo all moves on an error."""
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
    """Turn an OSError of the block into a FileError that names the file.

    Args:
        path: the file or folder.
        verb: the operation, "read" or "write".
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
    """Return the reason of an error in the operating system's words.

    Libraries that write files wrap it in longer messages.
    """
    return os.strerror(error.errno) if error.errno else str(error)


def _part_name(target: Path) -> str:
    """Return the name of a temporary file or folder of this process for the target."""
    return f"{_prefix(target)}{os.getpid()}-{uuid.uuid4().hex}{_ENDING}"


def _prefix(target: Path) -> str:
    """Return the prefix of temporary names for a file, at most 255 bytes long."""
    return f".{os.fsencode(target.name)[:80].decode(errors='ignore')}."


def _remove_abandoned(target: Path, place: Path) -> None:
    """Remove the temporary files of processes that no longer exist."""
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
    except OSError:  # it belongs to another user
        return True
    return True


def check_text(path: Path) -> None:
    """Raise if a file is not text, as Python code is."""
    if b"\0" in path.read_bytes():
        raise InvalidInputError(
            f"{str(path)!r} is not a text file: it has zero bytes.", name=str(path)
        )
