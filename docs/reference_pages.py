"""The pages of the reference: one for each public module, from its docstrings."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

MODULES = {
    "simstate": "Simulation, scenes, entities, errors",
    "simstate.scene": "Scenes and what is in them",
    "simstate.state": "Unified states and snapshots",
    "simstate.sensors": "Cameras, contacts, rays",
    "simstate.dynamics": "Mass matrices, forces, momenta",
    "simstate.env": "Environments and their terms",
    "simstate.train": "Training",
    "simstate.integrate": "Integrators, force models, processes",
    "simstate.flight": "Aircraft",
    "simstate.space": "Spacecraft",
    "simstate.linear": "Trim and linear models",
    "simstate.dispersions": "Monte Carlo studies",
    "simstate.conventions": "How states are written",
    "simstate.math": "Rotations, transforms, inertia",
    "simstate.record": "Recordings",
    "simstate.replay": "Replays",
    "simstate.datasets": "Data sets",
    "simstate.distributed": "Clusters",
    "simstate.view": "The viewer, pictures, films",
    "simstate.simulators": "Other simulators",
    "simstate.interop": "Adapters",
    "simstate.terrain": "Terrain",
    "simstate.oracles": "The laws",
    "simstate.explanation": "What a number means",
}
"""What is public, and a few words on each."""


def file_of(module: str) -> str:
    """The file of a module's page, within `reference/`."""
    return f"{module.removeprefix('simstate.')}.md"


def public_names(module: str) -> list[str]:
    """The names that a page shows: what the module exports, else what it defines."""
    found = importlib.import_module(module)
    exported: list[str] = getattr(found, "__all__", [])
    names = exported or [
        name
        for name, thing in vars(found).items()
        if not name.startswith("_") and getattr(thing, "__module__", "") == module
    ]
    return [name for name in names if not inspect.ismodule(getattr(found, name))]


def submodules(module: str) -> list[str]:
    """The modules in a package that exports modules, or nothing at all."""
    found = importlib.import_module(module)
    exported: list[str] = getattr(found, "__all__", [])
    inside = [one.name for one in pkgutil.iter_modules(getattr(found, "__path__", ()))]
    if module == "simstate":
        return []  # each has a page of its own
    return [
        f"{module}.{name}"
        for name in inside
        if not name.startswith("_") and (name in exported or not exported)
    ]


def page(module: str) -> str:
    """The page of a module, in Markdown, for mkdocstrings."""
    parts = [
        f"# `{module}`\n\n<!-- Written by docs/generate.py. -->\n\n{MODULES[module]}."
    ]
    for name in (module, *submodules(module)):
        names = public_names(name)
        if not names:
            continue
        if name != module:
            parts.append(f"## `{name}`")
        listed = "".join(f"        - {one}\n" for one in sorted(names))
        parts.append(f"::: {name}\n    options:\n      members:\n{listed}".rstrip())
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """All pages by their files, within the docs."""
    return {f"reference/{file_of(module)}": page(module) for module in MODULES}
