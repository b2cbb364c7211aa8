"""The pages of the reference: one for each public module, from its docstrings.

Names are ordered by subject (docs/reference_subjects.py), and each appears once: a name
that two modules export is on the page of the outer one.
"""

from __future__ import annotations

import ast
from pathlib import Path

from reference_subjects import ELSEWHERE, EXAMPLES, FIRST, INTERNAL, SUBJECTS

SOURCE = Path(__file__).parents[1] / "src" / "simstate"

MODULES = {
    "simstate": "Simulation, scenes, entities, errors",
    "simstate.scene": "Scenes and their contents, terrain, bundled models",
    "simstate.entity": "Entities and their quantities",
    "simstate.entity.dynamics": "Mass matrices, forces, momenta",
    "simstate.entity.explanation": "The meaning of each number",
    "simstate.state": "Unified states and snapshots",
    "simstate.sensors": "Cameras, contacts, rays",
    "simstate.integrate": "Integrators, force models, processes",
    "simstate.env": "Environments and their terms",
    "simstate.train": "Training",
    "simstate.flight": "Aircraft",
    "simstate.space": "Spacecraft",
    "simstate.study": "Laws, linear models, derivatives, dispersions, futures",
    "simstate.math": "Rotations, transforms, inertia, conventions",
    "simstate.record": "Recordings",
    "simstate.data": "Data sets, replays, clusters",
    "simstate.view": "The viewer, pictures, films",
    "simstate.simulators": "Other simulators",
    "simstate.interop": "Adapters",
}
"""What is public, and a few words on each."""

HOMES = {"simstate.integrate": "simstate.step"}
"""Modules whose source is that of another one."""


def file_of(module: str) -> str:
    """The file of a module's page, within `reference/`."""
    return f"{module.removeprefix('simstate.')}.md"


def _source(module: str) -> Path:
    """The file of a module; libraries that it needs may not be there."""
    place = SOURCE.joinpath(*HOMES.get(module, module).split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def exports(module: str) -> list[str]:
    """What a module lists in `__all__`; empty: it has none."""
    for node in ast.parse(_source(module).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def exported_modules(module: str) -> list[str]:
    """The exported names that are modules: those imported from the package itself."""
    found = [
        alias.asname or alias.name
        for node in ast.walk(ast.parse(_source(module).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == HOMES.get(module, module)
        for alias in node.names
    ]
    return [name for name in exports(module) if name in found]


def public_names(module: str) -> list[str]:
    """The names that a page shows: what the module exports, else what it defines."""
    modules = exported_modules(module)
    found = exports(module) or [
        node.name
        for node in ast.parse(_source(module).read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    ]
    return [x for x in found if not x.startswith("_") and x not in modules]


def submodules(module: str) -> list[str]:
    """The modules in a package that exports modules, or nothing at all."""
    file = _source(module)
    if module == "simstate" or file.name != "__init__.py":
        return []  # each has a separate page, or there are none
    inside = sorted(one.stem for one in file.parent.glob("[!_]*.py"))
    names = exported_modules(module) if exports(module) else inside
    first = FIRST.get(module, "").split()
    others = [name for name in names if name not in first]
    hidden = INTERNAL.get(module, "").split()
    return [f"{module}.{name}" for name in (*first, *others) if name not in hidden]


def subjects(module: str) -> dict[str, list[str]]:
    """The names of a module by heading; those that "simstate" exports are there."""
    outer = set(public_names("simstate")) - {"get_include"}
    if "." in module.removeprefix("simstate."):
        outer |= set(public_names(module.rpartition(".")[0]))
    names = [x for x in public_names(module) if module == "simstate" or x not in outer]
    return SUBJECTS.get(module, {"": names} if names else {})


def page(module: str) -> str:
    """The page of a module, in Markdown, for mkdocstrings."""
    parts = [
        f"# `{module}`\n\n<!-- Written by docs/generate.py. -->\n\n{MODULES[module]}.",
        f"```python\n{EXAMPLES[module]}```",
    ]
    listed = [x for x in submodules(module) if x in ELSEWHERE]
    if listed:
        links = ", ".join(f"[`{x}`]({ELSEWHERE[x]})" for x in listed)
        parts.append(f"Bundled terms are on the page of terms: {links}.")
    for name in (module, *submodules(module)):
        if name not in ELSEWHERE:
            parts += _sections(name, name == module)
    return "\n\n".join(parts) + "\n"


def _sections(name: str, is_page: bool) -> list[str]:
    """The headings and names of one module."""
    parts: list[str] = []
    for k, (heading, names) in enumerate(subjects(name).items()):
        title = heading if is_page or len(SUBJECTS.get(name, {})) > 1 else ""
        if not is_page and k == 0:
            parts.append(f"## `{name}`")
        if title:
            parts.append(f"{'##' if is_page else '###'} {title}")
        parts += [f"::: {HOMES.get(name, name)}.{one}" for one in names]
    return parts


def pages() -> dict[str, str]:
    """All pages by their files, within the docs."""
    return {f"reference/{file_of(module)}": page(module) for module in MODULES}
