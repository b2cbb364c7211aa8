"""Reading a model from a file, a string, a name, a specification or a function."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import mujoco

from simstate.base.checks import argument
from simstate.base.errors import ModelError, listed, suggestion, warn
from simstate.base.mujoco_warnings import silenced
from simstate.scene import models
from simstate.scene.element_names import NAMED_KINDS
from simstate.scene.model_libraries import install_hint, library_names, library_spec
from simstate.scene.scene_cfg import ModelSource
from simstate.scene.urdf import find_meshes, is_urdf

LARGEST_XML = 64_000_000
"""Largest size of a model's XML [bytes]."""

_READABLE = (".xml", ".urdf")
_WHAT_CAN_BE_READ = (
    ". A model file is MJCF, with root element <mujoco>, or URDF, with root element "
    "<robot>."
)
_NO_PLUGIN = re.compile(r"plugin .* not found")
_LOAD_PLUGIN = ". Load its library first: mujoco.mj_loadPluginLibrary(path)."
_OTHER_FORMAT = ("XML parse error", "XML Error: Unrecognized XML model", "ParseXML:")
_REMEDIES = {
    ".mjb": "Pass a compiled model to Simulation directly: "
    "Simulation(mujoco.MjModel.from_binary_path(path)).",
    ".xacro": "Convert it to URDF first, with ROS's xacro.",
    **dict.fromkeys(
        (".usd", ".usda", ".usdc", ".usdz", ".sdf"),
        "Convert it to MJCF or URDF first.",
    ),
}
"""Remedies for other kinds of files."""


def load_spec(
    source: ModelSource, packages: Mapping[str, str | Path] | None = None
) -> mujoco.MjSpec:
    """Return a new specification, which the caller may change, from any source.

    `packages` maps the packages that a URDF names to their folders.
    """
    spec, text, folder = _read(source)
    if is_urdf(text):
        find_meshes(spec, text, folder, packages or {})
    elif packages:
        raise ModelError(
            "`packages` is for the meshes of a URDF, but this model is not a URDF file "
            "or string.",
            name="packages",
        )
    return spec


def _read(source: ModelSource) -> tuple[mujoco.MjSpec, str, Path]:
    """Return the specification, its XML text if it has one, and its folder."""
    if isinstance(source, mujoco.MjSpec):
        return source.copy(), "", Path()
    if callable(source):
        made = source()
        if not isinstance(made, mujoco.MjSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"The model function must return an MjSpec, got {type(made).__name__}."
            )
        return made.copy(), "", Path()
    if isinstance(source, str) and source.lstrip().startswith("<"):
        _check_size("The XML string", len(source))
        with explained("The XML string"):
            return mujoco.MjSpec.from_string(source), source, Path()
    if isinstance(source, str) and source in models.NAMES:
        return models.spec(source), "", Path()
    if not isinstance(source, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            "A model must be a path, an XML string, a known name, an MjSpec or a "
            f"function that returns one, got {type(source).__name__}."
        )
    path = Path(source)
    if os.path.isfile(path):  # Path.is_file raises if the name is too long
        text = _checked_text(path)
        return _from_file(path), text, path.parent
    if str(source) and os.path.isdir(path):
        files = sorted(each.name for each in path.iterdir() if each.suffix in _READABLE)
        raise ModelError(
            f"{str(path)!r} is a folder, but a model is a file. Models in it: "
            f"{listed(files)}.",
            name=str(path),
        )
    found = library_spec(str(source))
    if found is None:
        known = suggestion(str(source), [*models.NAMES, *library_names()])
        raise ModelError(
            f"There is no model {str(source)[:200]!r}: it is not a file, nor an XML "
            f"string, nor a known model.{known}{install_hint()}",
            name=str(source)[:200],
        )
    return found, "", Path()


def _checked_text(path: Path) -> str:
    """Return the text of a file; raise if it is too large, not UTF-8 or no model."""
    if path.suffix not in _READABLE:
        ending = path.suffix or "a file without a suffix"
        remedy = _REMEDIES.get(path.suffix.lower(), "")
        raise ModelError(
            f"{str(path)!r} cannot be read: a model file is MJCF (.xml) or URDF "
            f"(.urdf), not {ending}. {remedy}".rstrip()
        )
    _check_size(str(path), path.stat().st_size)
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError(
            f"{path} is not a valid MuJoCo model: byte {content[error.start]:#04x} in "
            f"line {line} is not UTF-8. Save the file with the encoding UTF-8.",
            name=str(path),
        ) from error


def _from_file(path: Path) -> mujoco.MjSpec:
    with explained(str(path)):
        spec = mujoco.MjSpec.from_file(str(path))
    _check_names(path, spec)
    return spec


def _check_names(path: Path, spec: mujoco.MjSpec) -> None:
    """Raise if a name is not UTF-8, which Python could not read later."""
    for kind in (*NAMED_KINDS.values(), "frames"):
        for k, element in enumerate(getattr(spec, kind, ())):
            try:
                element.name  # noqa: B018 (decodes it)
            except UnicodeDecodeError as error:
                raise ModelError(
                    f"{str(path)!r} or a file that it includes has a name that is not "
                    f"UTF-8, of element {k} of its {kind}: save it as UTF-8.",
                    name=str(path),
                ) from error


def _check_size(what: str, size: int) -> None:
    """Raise for XML that would take minutes and gigabytes to parse."""
    if size > LARGEST_XML:
        raise ModelError(
            f"{what} has {size / 1e6:.0f} MB of XML; at most "
            f"{LARGEST_XML / 1e6:.0f} MB are read. Put meshes, height fields and skins "
            "into separate files.",
            name=argument(what),
        )


def compile_spec(spec: mujoco.MjSpec, what: str) -> mujoco.MjModel:
    """Return the compiled model; raise a ModelError that names `what` if it fails."""
    with explained(what):
        return spec.compile()


@contextmanager
def explained(what: str) -> Generator[None]:
    """Turn MuJoCo's errors about a model into a ModelError that names `what`.

    Of its warnings, only attachment conflicts are reported, between entities or between
    a file and a model that it attaches.
    """
    try:
        with (
            silenced(),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always", UserWarning)
            yield
    except (ValueError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        hint = _WHAT_CAN_BE_READ if reason.startswith(_OTHER_FORMAT) else ""
        hint = _LOAD_PLUGIN if _NO_PLUGIN.search(reason) else hint
        if isinstance(error, UnicodeDecodeError):
            hint = ". Save the file and those that it includes with the encoding UTF-8."
        raise ModelError(
            f"{what} is not a valid MuJoCo model: {reason}{hint}", name=argument(what)
        ) from error
    for text in dict.fromkeys(str(warning.message) for warning in said):
        if text.startswith("Attach conflict"):
            warn(f"{what}: {' '.join(text.split())}.", UserWarning)
