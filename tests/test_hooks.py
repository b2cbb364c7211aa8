"""No module reaches into another's objects: what they do is set by constructors.

A function that is assigned to an attribute of another object is a hook: whoever reads
the class that calls it cannot tell what runs. Parts get functions as arguments of their
constructors, or call methods of a declared protocol.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "simstate"
CORE = ("world", "step", "engine", "simulation.py")
"""Where objects of other modules are not changed at all, except as listed."""

HOOKS = {
    "cli/console.py: warnings.showwarning": "Python's own way to show warnings",
    "cli/train.py: run.after_step": "a field of a run that its user may set",
    "env/contracts.py: term.contract": "a decorator marks what it decorates",
    "env/entity_cfg.py: called.resolving": "likewise",
    "flight/free_flight.py: turbulence.conditions": "a process gets its environment",
    "view/server.py: module.serve": "viser offers no other way to check a token",
    "view/server.py: server.request_share_url": "viser would open a tunnel",
}
"""Functions that are assigned to attributes of other objects, and the reasons."""

CHANGES = {
    "engine/native.py: model.opt.disableflags": "a copy of the user's model",
    "engine/native.py: model.opt.enableflags": "likewise",
    "engine/warp.py: owner.…": "arrays of the Warp model, which the engine has created",
    "engine/warp_start.py: wp.config.log_level": "Warp's setting for the process",
    "engine/warp_on_demand.py: model.geom_group": "a copy of the model",
    "step/world_assembly.py: slot.initial": "known when all slots are there",
    "simulation.py: self.divergence.mode": "a property that delegates",
    "step/conservation.py: kept.opt.density": "a copy of the user's model",
    "step/conservation.py: kept.opt.viscosity": "likewise",
    "step/conservation.py: kept.opt.disableflags": "likewise",
    "step/conservation.py: stepper.timestep": "measuring an order needs other steps",
    "step/core_steps.py: self._ledger.open[-1].evaluating": "a flag of the open call",
    "step/forcing.py: ledger.open[-1].evaluating": "likewise",
    "step/mass.py: slot.initial": "masses become state when they first flow",
    "step/mass.py: slot.reset": "likewise",
    "step/mass.py: slot.companion": "likewise",
    "step/mass.py: self._flow.empty": "a block and its mass flow are of one module",
    "step/rollout_stepper.py: self._engine.kept_writes": "as a step of the core",
    "world/calls.py: call.failed": "a flag of the open call",
    "world/memory.py: self.chunk.memory": "a chunk and its arena are of one module",
    "world/registry.py: self._registry.scope": "a registry and its scope, one module",
    "world/registry.py: call.added": "what a rollback removes",
    "world/registry.py: slot.moves": "a registry's own slots",
    "world/registry.py: self._chunk_of[name].moving": "likewise",
    "engine/warp.py: self.warp_model.opt.run_rne_postconstraint": "Warp's option",
    "world/row_backup.py: found._rows": "an object of the same class",
    "world/user_memory.py: slot.from_snapshot": "a slot that a snapshot had before",
    "world/user_memory.py: slot.unit": "likewise",
    "world/user_memory.py: slot.axes": "likewise",
    "world/user_memory.py: slot.initial": "likewise",
    "world/user_memory.py: slot.reset": "likewise",
}
"""Attributes of other objects that the core changes, and the reasons."""


@dataclass(frozen=True)
class Assignment:
    """An assignment to an attribute of an object that is not `self`."""

    file: str
    line: int
    target: str
    is_function: bool
    """True if the value is a function, as far as the text tells."""
    is_in_constructor: bool

    @property
    def key(self) -> str:
        """The file and the target."""
        return f"{self.file}: {self.target}"


def pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield the targets of an assignment, each with its value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            parts, value = getattr(target, "elts", None), node.value
            if parts is None:
                yield target, value
            elif isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
                yield from zip(parts, value.elts, strict=True)
            else:
                yield from ((part, None) for part in parts)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target, node.value
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
        owner, name, value = node.args
        text = name.value if isinstance(name, ast.Constant) else "…"
        yield ast.Attribute(owner, str(text), ast.Store()), value


def is_method(node: ast.AST) -> bool:
    """Return True for a function that is not read as an attribute."""
    return isinstance(node, ast.FunctionDef) and not any(
        "property" in ast.unparse(decorator) for decorator in node.decorator_list
    )


class Visitor(ast.NodeVisitor):
    """Collects assignments, with the function and the objects that it creates."""

    def __init__(self, file: str, tree: ast.Module, methods: frozenset[str]) -> None:
        self.found: list[Assignment] = []
        self._file, self._methods = file, methods
        self._functions = {x.name for x in ast.walk(tree) if is_method(x)}  # pyright: ignore
        self._within: list[ast.FunctionDef] = []
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._within.append(node)
        self.generic_visit(node)
        self._within.pop()

    def generic_visit(self, node: ast.AST) -> None:
        for target, value in pairs(node):
            if isinstance(target, ast.Attribute) and not self._is_own(target.value):
                self._add(node, target, value)
        super().generic_visit(node)

    def _add(self, node: ast.AST, target: ast.Attribute, value: ast.AST | None) -> None:
        name = self._within[-1].name if self._within else ""
        self.found.append(
            Assignment(
                self._file,
                getattr(node, "lineno", 0),
                ast.unparse(target),
                self._is_function(value),
                name in ("__init__", "__post_init__"),
            )
        )

    def _is_own(self, owner: ast.expr) -> bool:
        """Return True for `self`, and for what the function has just constructed."""
        if not isinstance(owner, ast.Name):
            text = ast.unparse(owner)
            return text.endswith(".flags")  # of NumPy's arrays
        if owner.id in ("self", "cls"):
            return True
        if not self._within:
            return False
        return any(
            isinstance(value, ast.Call)
            and ast.unparse(value.func).rpartition(".")[2][:1].isupper()
            for node in ast.walk(self._within[-1])
            for target, value in pairs(node)
            if isinstance(target, ast.Name) and target.id == owner.id
        )

    def _is_function(self, value: ast.AST | None) -> bool:
        if isinstance(value, ast.Lambda):
            return True
        if isinstance(value, ast.Name):
            return value.id in self._functions
        if isinstance(value, ast.Attribute):
            return value.attr in self._methods
        if isinstance(value, ast.Call):
            return ast.unparse(value.func).rpartition(".")[2] in (
                "partial",
                "Declaration",
            )
        if isinstance(value, ast.Tuple):
            return any(self._is_function(part) for part in value.elts)
        return False


@cache
def assignments() -> tuple[Assignment, ...]:
    """Return all assignments in simstate to attributes of other objects."""
    trees = {file: ast.parse(file.read_text()) for file in SOURCE.rglob("*.py")}
    methods: set[str] = set()
    others: set[str] = set()
    for tree in trees.values():
        for owner in ast.walk(tree):
            if isinstance(owner, ast.ClassDef):
                methods |= {x.name for x in owner.body if is_method(x)}  # pyright: ignore
                others |= {
                    x.target.id
                    for x in owner.body
                    if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name)
                }
    found = []
    for file, tree in sorted(trees.items()):
        name = str(file.relative_to(SOURCE))
        found += Visitor(name, tree, frozenset(methods - others)).found
    return tuple(found)


def in_core(file: str) -> bool:
    """Return True for files of the core."""
    return file.split("/")[0] in CORE


def test_no_hooks():
    found = [x for x in assignments() if x.is_function and not x.is_in_constructor]
    assert [f"{x.key} (line {x.line})" for x in found if x.key not in HOOKS] == []


def test_the_core_changes_no_objects_of_others():
    found = [x for x in assignments() if in_core(x.file) and not x.is_in_constructor]
    assert [f"{x.key} (line {x.line})" for x in found if x.key not in CHANGES] == []


def test_the_exceptions_are_needed():
    there = {x.key for x in assignments() if not x.is_in_constructor}
    hooks = {x.key for x in assignments() if x.is_function}
    assert sorted(HOOKS.keys() - hooks) == []
    assert sorted(CHANGES.keys() - there) == []


# The tests themselves.


@pytest.mark.parametrize(
    ("text", "is_function"),
    [
        ("def f(sim):\n    sim.advance = lambda: 0", True),
        ("def f(sim):\n    def g(): ...\n    sim.advance = g", True),
        ("def f(sim):\n    sim.n, sim.advance = 1, partial(f, 2)", True),
        ("class A:\n  def g(self): ...\n  def f(self, o):\n    o.x = self.g", True),
        ("def f(sim):\n    setattr(sim, 'advance', f)", True),
        ("def f(sim):\n    sim.inner.advance += 2", False),
        ("class A:\n  def f(self, other):\n    self.part.x: int = 3", False),
    ],
)
def test_assignments_of_every_kind_are_found(text, is_function):
    found = Visitor("x.py", ast.parse(text), frozenset({"g"})).found
    assert [x.is_function for x in found][-1:] == [is_function]


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n  def f(self):\n    self.x = lambda: 0",
        "def f():\n    new = Thing(3)\n    new.x = f",
        "def f(array):\n    array.flags.writeable = False",
    ],
)
def test_own_objects_may_be_changed(text):
    assert Visitor("x.py", ast.parse(text), frozenset({"f"})).found == []
