"""HDF5 files of Isaac Lab and robomimic: `data/demo_0/{actions,obs,states,…}`.

Quaternions of `root_pose` are (x, y, z, w) in files of format version 1, which is
written, and (w, x, y, z) in older ones; readers always return (w, x, y, z).
"""

# h5py comes without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import mujoco
import numpy as np

from simstate.base.contract import UNDECLARED
from simstate.base.errors import InvalidInputError, SimStateError
from simstate.base.extras import library
from simstate.base.files import replacing
from simstate.data.datasets.recorded_episodes import (
    NO_EPISODE,
    OBSERVATION,
    Episode,
    Keep,
    Source,
    check_target,
    contracts_of,
    episodes_of,
    paths_of,
    recordings_of,
    step_of,
    success_of,
)
from simstate.record.columns import CAMERA, EACH

_T = TypeVar("_T")

MAX_BYTES = 4 << 30
"""Maximum size of an array to read [bytes]."""
FORMAT_VERSION = 1
"""Version of Isaac Lab's files: quaternions (x, y, z, w)."""
_STATES = {
    "root_link_pose_w": "root_pose",
    "root_com_vel_w": "root_velocity",
    "joint_pos": "joint_position",
    "joint_vel": "joint_velocity",
}
"""Names of an entity's quantities in `states/articulation/ENTITY`, or without joints in
`states/rigid_object/ENTITY`: the pose of the root link's origin and the velocity of its
COM, both in world axes."""

_XYZW, _WXYZ = [0, 1, 2, 4, 5, 6, 3], [0, 1, 2, 6, 3, 4, 5]
"""Permutations of a pose (x, y, z, qw, qx, qy, qz) to the order of the file, and
back."""
_LISTS = ("names", *EACH.values())
"""Properties of each component, as lists in JSON."""
_OWN = ("time", "action", "reward", "terminated", "truncated", "ended", "event")
"""Columns of every recording of an Env that are written elsewhere or not at all."""


@dataclass(frozen=True)
class Demonstration:
    """One episode of an HDF5 file, as arrays with a row for each step."""

    name: str
    """Name in the file, such as "demo_0"."""
    actions: np.ndarray
    arrays: dict[str, np.ndarray]
    """All other arrays, by path within the episode ("obs/policy")."""
    attributes: dict[str, Any]
    """Attributes of the episode: num_samples, success, seed, …"""
    contracts: dict[str, dict[str, Any]]
    """Declared unit, axes, point and names of the arrays."""

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        size = f"{len(self)} steps of {len(self.arrays) + 1} arrays"
        return f"Demonstration({self.name!r}, {size})"


def write_hdf5(
    source: Source,
    path: str | Path,
    *,
    success: str | None = None,
    keep: Keep | None = None,
) -> int:
    """Write the episodes of recordings; return their number.

    `obs/GROUP` holds the observations before each step, `obs/QUANTITY` other recorded
    quantities, `obs/CAMERA_image` pictures (uint8, steps × H × W × 3); poses and joints
    of entities are in `states/articulation/ENTITY`, poses of those without joints in
    `states/rigid_object/ENTITY`. Units, axes, points and names of components are
    attributes of each array, and `units` if those of the components differ.

    Args:
        source: recordings of an Env, or of a Simulation with `fields=["ctrl"]`: an
            episode is then a world from one reset to the next, without rewards.
        path: the file, which is replaced.
        success: the term that counts as success ("time_out"); other episodes are
            written and marked as failures. None: success is not stated.
        keep: returns True for the episodes to write; None: all complete ones.
    """
    h5py = library("h5py", "data", "HDF5 files")
    check_target(path, *paths_of(source))
    contracts, about, kinds = _about(source)
    succeeds = None if success is None else success_of(source, success)
    count = total = 0
    with replacing(Path(path)) as part, _Output(part, "w+b") as output:
        with h5py.File(output, "w") as file:
            file.attrs["format_version"] = FORMAT_VERSION
            data = file.create_group("data")
            for episode in episodes_of(source, keep=keep):
                group = data.create_group(f"demo_{count}")
                _write_episode(group, episode, contracts, kinds)
                if succeeds is not None:
                    group.attrs["success"] = succeeds(episode)
                group.attrs["seed"] = about["seed"]
                count, total = count + 1, total + len(episode)
                output.check()
            if not count:
                raise InvalidInputError(NO_EPISODE, name="episodes")
            data.attrs["total"] = total
            data.attrs["env_args"] = json.dumps(
                {"env_name": about["task"], "type": 2, "env_kwargs": about}
            )
        output.check()
    return count


class _Output(io.FileIO):
    """A file for the HDF5 library, which keeps the first error instead of raising it.

    The library crashes when it closes a file that it could not write.
    """

    _error: OSError | None = None

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self._error is not None:
            raise self._error

    def write(self, data: Any) -> int:
        """Write all bytes; after an error, none."""
        rest = memoryview(data)
        try:
            while self._error is None and len(rest):
                rest = rest[super().write(rest) or 0 :]
        except OSError as error:
            self._error = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file; after an error, do nothing."""
        if self._error is None:
            try:
                return super().truncate(size)
            except OSError as error:
                self._error = error
        return 0 if size is None else size


def read_hdf5(path: str | Path) -> list[Demonstration]:
    """Return the demonstrations of a file of Isaac Lab, robomimic or simstate.

    The HDF5 library can loop forever on a damaged file and cannot be interrupted: read
    files of unknown origin in a process that you can kill.
    """
    return _read_file(path, _read_all)


def read_hdf5_arrays(path: str | Path) -> Demonstration | None:
    """Return the arrays of a file as one demonstration; None if it has "data"."""

    def read(
        h5py: Any, path: str | Path, file: Any, place: list[str]
    ) -> Demonstration | None:
        if "data" in file:
            return None
        return _read_episode(h5py, str(path), "", file, False, place)

    return _read_file(path, read)


def _read_file(
    path: str | Path, read: Callable[[Any, str | Path, Any, list[str]], _T]
) -> _T:
    """Open and read a file; an error names the file and the item that was read."""
    h5py = library("h5py", "data", "HDF5 files")
    place = [""]
    try:
        with h5py.File(path, "r") as file:
            return read(h5py, path, file, place)
    except SimStateError:
        raise
    except Exception as error:  # a damaged file may raise anything
        where = f" at {place[0]!r}" if place[0] else ""
        raise InvalidInputError(
            f"{str(path)!r} is not an HDF5 file of demonstrations, or is damaged"
            f"{where}: {error}.",
            name=str(path),
        ) from error


def _read_all(
    h5py: Any, path: str | Path, file: Any, place: list[str]
) -> list[Demonstration]:
    """Return the demonstrations; `place` is set to the name of the current item."""
    is_here = isinstance(file.get("data", getlink=True), h5py.HardLink)
    if not is_here or not isinstance(file.get("data"), h5py.Group):
        raise InvalidInputError(
            f"{str(path)!r} has no group 'data': it is not a file of demonstrations."
        )
    is_xyzw = int(file.attrs.get("format_version", 0)) >= FORMAT_VERSION
    found: list[Demonstration] = []
    for name in sorted(file["data"], key=_number):
        place[0] = f"data/{name}"
        # A soft link may point to an external one, and so to another file.
        if not isinstance(file["data"].get(name, getlink=True), h5py.HardLink):
            raise InvalidInputError(
                f"{place[0]!r} of {str(path)!r} is a link, perhaps to another file: "
                "links are not followed. Store the episode in the file itself.",
                name=str(path),
            )
        found.append(
            _read_episode(h5py, str(path), name, file["data"][name], is_xyzw, place)
        )
    return found


def _about(source: Source) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return contracts of columns, facts about the environment, and kinds of entities.

    The kind of an entity is Isaac Lab's: "articulation", or "rigid_object".
    """
    opened = recordings_of(source)  # keeps the recording open
    recording = next(opened)
    header = recording.header
    about = {
        "task": header.get("task") or "",
        "settings": header.get("settings", {}),
        "step_dt": step_of(recording),
        "seed": header["simulation"]["seed"],
        "versions": header["versions"],
    }
    jointed = _jointed(recording.model)
    kinds = {
        entity: "articulation" if entity in jointed else "rigid_object"
        for entity in header["simulation"]["entities"]
    }
    return contracts_of(recording), about, kinds


def _jointed(model: mujoco.MjModel) -> set[str]:
    """Return the entities that have joints other than a free one."""
    free = mujoco.mjtJoint.mjJNT_FREE.value
    bodies = model.jnt_bodyid[model.jnt_type != free]
    return {str(model.body(body).name).partition("/")[0] for body in bodies}


def _write_episode(
    group: Any, episode: Episode, contracts: dict[str, Any], kinds: dict[str, str]
) -> None:
    columns = episode.columns
    group.attrs["num_samples"] = len(episode)
    group.attrs["ends"] = json.dumps(episode.ends)
    group.attrs["world"] = episode.world
    done = columns["terminated"] | columns["truncated"]
    arrays: dict[str, tuple[np.ndarray, str]] = {
        "actions": (columns["action"], "action"),
        "dones": (done.astype(np.int64), "terminated"),
        "time": (columns["time"], "time"),
    }
    if "reward" in columns:
        arrays["rewards"] = (columns["reward"], "reward")
    for name, values in columns.items():
        if name in _OWN:
            continue
        where = _place(name, kinds)
        if where in arrays:
            raise InvalidInputError(
                f"{name!r} and {arrays[where][1]!r} would both be {where!r} in the "
                "data set: record one of them under another name."
            )
        arrays[where] = (values, name)
    for where, (values, column) in arrays.items():
        contract = contracts[column]
        lists = {key: contract.get(key, []) for key in _LISTS}
        if _is_root_pose(where):
            values = values[..., _XYZW]
            lists = {key: [x[k] for k in _XYZW if x] for key, x in lists.items()}
        made = group.create_dataset(where, data=values, compression="gzip")
        for key in EACH:
            made.attrs[key] = contract.get(key, UNDECLARED)
        for key, attributes in lists.items():
            if attributes or key == "names":
                made.attrs[key] = json.dumps(attributes, ensure_ascii=False)


def _place(column: str, kinds: dict[str, str]) -> str:
    """Return the path of a recorded column within an episode."""
    if column.startswith(OBSERVATION):
        return f"obs/{column.removeprefix(OBSERVATION)}"
    if column.startswith(CAMERA):
        return f"obs/{column.removeprefix(CAMERA)}_image"
    entity, _, quantity = column.rpartition(".")
    if entity in kinds and quantity in _STATES:
        return f"states/{kinds[entity]}/{entity}/{_STATES[quantity]}"
    return f"obs/{column}"


def _is_root_pose(where: str) -> bool:
    """Return True if an array has poses in the order of the file; `obs` has not."""
    return where.endswith("/root_pose") and not where.startswith("obs/")


def _read_episode(
    h5py: Any, path: str, name: str, group: Any, is_xyzw: bool, place: list[str]
) -> Demonstration:
    arrays: dict[str, np.ndarray] = {}
    contracts: dict[str, dict[str, Any]] = {}

    def visit(where: str, item: Any) -> None:
        place[0] = f"data/{name}/{where}"
        if not isinstance(item, h5py.Dataset):
            return
        if item.dtype.hasobject:
            raise InvalidInputError(
                f"{place[0]!r} of {path!r} is not numeric: {item.dtype}."
            )
        _check_size(path, place[0], item)
        values = np.asarray(item)
        attributes = {key: item.attrs[key] for key in item.attrs}
        lists = {key: _list_of(attributes.get(key)) for key in _LISTS}
        if is_xyzw and _is_root_pose(where) and values.shape[-1:] == (7,):
            values = values[..., _WXYZ]
            for key, found in lists.items():
                if found is not None and len(found) == 7:
                    lists[key] = [found[k] for k in _WXYZ]
        attributes |= {key: found for key, found in lists.items() if found is not None}
        arrays[where] = values
        contracts[where] = attributes

    group.visititems(visit)
    actions = arrays.pop("actions", np.zeros((0, 0)))
    attributes = {key: group.attrs[key] for key in group.attrs}
    return Demonstration(name, actions, arrays, attributes, contracts)


def _check_size(path: str, where: str, item: Any) -> None:
    """Raise if an array is too large, or stored in another file."""
    size = math.prod(item.shape) * item.dtype.itemsize
    if item.external or item.is_virtual or size > MAX_BYTES:
        raise InvalidInputError(
            f"{where!r} of {path!r} has {size:,} bytes or is in another file: only "
            f"arrays of at most {MAX_BYTES:,} bytes in the file itself are read.",
            name=path,
        )


def _list_of(attribute: object) -> list[Any] | None:
    """Return the list that an attribute holds as JSON; None if it does not."""
    try:
        found: Any = json.loads(attribute) if isinstance(attribute, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None  # pyright: ignore[reportUnknownVariableType]


def _number(name: str) -> tuple[int, str]:
    digits = name.rpartition("_")[2]
    return (int(digits) if digits.isdigit() else 0, name)
