"""Mesh files of a URDF, in ROS packages or next to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import mujoco

from simstate.base.errors import ModelError, suggestion

_PACKAGE = re.compile(r"(?:package|model)://([^/]+)/(.*)")


def find_meshes(
    spec: mujoco.MjSpec, text: str, folder: Path, packages: Mapping[str, str | Path]
) -> None:
    """Set the paths of the mesh files of a URDF; raise if one is missing.

    All meshes of the text must exist, including visual ones, which MuJoCo omits from
    the model.
    """
    folders = (folder, folder / str(spec.meshdir))

    def resolve(name: str) -> Path:
        if spec.strippath:  # requested by the URDF
            name = name.rsplit("/", 1)[-1]
        return _resolve(name, folders, packages)

    wanted = {name: resolve(name) for name in _mesh_names(text)}
    missing = [
        f"{name} (searched for as {path})"
        for name, path in wanted.items()
        if not path.is_file()
    ]
    if missing:
        raise ModelError(
            f"The URDF names meshes that do not exist: {'; '.join(missing[:5])}"
            f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}."
        )
    for mesh in spec.meshes:
        if mesh.file:
            mesh.file = str(resolve(mesh.file).absolute())


def is_urdf(text: str) -> bool:
    """Return True if an XML text is a URDF <robot>, not a <mujoco>."""
    found = re.search(r"<([A-Za-z_][\w.-]*)", _without_comments(text))
    return found is not None and found.group(1) == "robot"


def _without_comments(text: str) -> str:
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def _mesh_names(text: str) -> Iterable[str]:
    for element in re.findall(r"<mesh\b[^>]*>", _without_comments(text)):
        found = re.search(r"""\bfilename\s*=\s*(["'])(.*?)\1""", element)
        if found:
            yield found.group(2)


def _resolve(
    name: str, folders: tuple[Path, ...], packages: Mapping[str, str | Path]
) -> Path:
    """Return the file that a mesh's name refers to, which may not exist."""
    found = _PACKAGE.fullmatch(name)
    if found:
        return _package(found.group(1), folders[0], packages) / found.group(2)
    files = [folder / name.removeprefix("file://") for folder in folders]
    return next((file for file in files if file.is_file()), files[0])


def _package(name: str, folder: Path, packages: Mapping[str, str | Path]) -> Path:
    """Return the folder of a package, as given or with that name above the URDF."""
    if name in packages:
        return Path(packages[name])
    for above in (folder.absolute(), *folder.absolute().parents):
        if above.name == name:
            return above
        if (above / name / "package.xml").is_file():
            return above / name
    raise ModelError(
        f"The URDF names the package {name!r}, whose folder is unknown. Specify it, "
        f"EntityCfg(model=…, packages={{{name!r}: folder}}), or place the URDF "
        f"within the package's folder, named {name!r}."
        f"{suggestion(name, packages) if packages else ''}",
        name=name,
    )
