"""Makes mistakes in simstate on purpose, one at a time: does a test notice each?

    python tests/mutants.py                      slips of people, each by its test
    python tests/mutants.py --random 40          random ones in the modules below
    python tests/mutants.py --random 20 base/files.py=tests/base/test_files.py

A mistake is made in a copy of the package, and the tests named for its module run on
that copy until the first one fails. Each is printed with its line.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SLIPS, ENV = "tests/test_slips.py", "tests/env/test_slips.py"


@dataclass(frozen=True)
class Mutant:
    """One mistake: `old` becomes `new` in a file of the package."""

    file: str
    old: str
    new: str
    tests: str
    """What pytest is given."""
    place: int = -1
    """Where `old` stands; −1: there is only one."""


SLIPS_OF_PEOPLE = (
    Mutant("flight/aircraft.py", "(0, 1), (0, 2), (1, 2))", "(0, 2), (0, 1), (1, 2))",
           f"{SLIPS}::test_products_of_inertia_stay_where_they_are"),
    Mutant("interop/rsl_rl.py", '["time_outs"] = truncated',
           '["time_outs"] = terminated | truncated',
           f"{ENV}::test_a_fall_is_no_time_out"),
    Mutant("world/worlds.py", "torch.equal(known, env_ids)", "True",
           f"{SLIPS}::test_a_selection_that_is_changed_in_place_counts_anew"),
    Mutant("step/stochastic/sde_variables.py",
           "timestep / 2 * (increments + second_increments / math.sqrt(3.0))",
           "timestep / 2 * (increments + second_increments / 3.0)",
           f"{SLIPS}::test_the_time_integral_of_noise_has_its_variance"),
    Mutant("step/forces/thrust_and_drag.py", "arm = point - sim.data.xipos[:, body]",
           "arm = point - sim.data.xpos[:, body]",
           f"{SLIPS}::test_a_thruster_turns_about_the_centre_of_mass"),
    Mutant("step/forces/frame.py", "vel + frame.velocity", "vel - frame.velocity",
           f"{SLIPS}::test_drag_is_of_the_velocity_against_the_world"),
    Mutant("world/random.py", "self._seed[rows] = _signed", "self._seed[:] = _signed",
           f"{SLIPS}::test_seeding_some_worlds_leaves_the_others_alone"),
    Mutant("flight/free_flight.py", "part[rows.index] if value",
           "part[: rows.count] if value",
           f"{SLIPS}::test_parts_of_a_state_are_kept_world_by_world"),
    Mutant("entity/targets.py", "return scale[rows.index] if",
           "return scale[: rows.count] if",
           f"{SLIPS}::test_targets_are_scaled_by_each_worlds_own_gear"),
    Mutant("interop/metasim.py", "{name: first + k for k", "{name: k for k",
           f"{ENV}::test_columns_of_a_second_term_come_after_the_first"),
    Mutant("env/actions.py", "target = target - self.offset\n        zero",
           "zero", f"{ENV}::test_an_action_undoes_the_offset"),
    Mutant("env/state_events.py",
           "quaternion.multiply(from_euler(pose[:, 3:]), state[:, 3:7])",
           "quaternion.multiply(state[:, 3:7], from_euler(pose[:, 3:]))",
           f"{ENV}::test_the_turn_of_a_reset_is_about_world_axes"),
    Mutant("env/events.py", "torch.where(is_position, stiffness, damping)", "stiffness",
           f"{ENV}::test_a_velocity_servos_gain_is_its_damping"),
    Mutant("env/curricula.py", "env.episode_length_buf[env_ids].clamp(min=1)",
           "env.max_episode_length",
           f"{ENV}::test_a_curriculum_counts_the_steps_that_were_taken"),
    Mutant("env/commands.py", 'self._memory("error_sum", reset=0.0)',
           'self._memory("error_sum")',
           f"{ENV}::test_the_error_of_a_second_episode_is_its_own"),
    Mutant("world/freshness.py", "self.evaluated_now = evaluated and rows is None",
           "self.evaluated_now = evaluated",
           f"{SLIPS}::test_the_others_accelerations_are_not_current_after_a_forward_of_one"),
    Mutant("engine/native.py", "np.sort(env_ids.numpy()).astype",
           "env_ids.numpy().astype",
           f"{SLIPS}::test_ids_in_any_order_step_the_worlds_that_they_name"),
    Mutant("step/adaptive_stepper.py", '"integrator/step_size", dtype=torch.float64,',
           '"integrator/step_size", dtype=torch.float64, reset=None,',
           f"{SLIPS}::test_an_adaptive_integrator_starts_anew_after_a_reset"),
    Mutant("train/onnx_export.py", "_floats(-bias[:, 1] * gear**2)",
           "_floats(-bias[:, 1])", f"{ENV}::test_gains_are_told_at_the_joint"),
    Mutant("entity/explanation/joint_meanings.py", "names.model.jnt_dofadr[joint]) + 3",
           "names.model.jnt_qposadr[joint]) + 3",
           f"{SLIPS}::test_an_explanation_names_the_slice_of_its_own_joint"),
    Mutant("env/drivers.py", 'self._env.dtype, owner="env"',
           'self._env.dtype, None, owner="env"',
           f"{ENV}::test_the_previous_action_is_zero_after_a_reset"),
)  # fmt: skip

MODULES = {
    "base/files.py": "tests/base/test_files.py",
    "base/archive.py": "tests/base/test_files.py tests/test_untrusted.py "
    "tests/state/test_snapshot.py",
    "base/ids.py": "tests/base/test_ids.py",
    "world/random.py": "tests/world/test_random.py",
    "math/quaternion.py": "tests/math",
    "math/euler.py": "tests/math",
    "math/spatial.py": "tests/math",
    "world/freshness.py": f"tests/world/test_freshness.py "
    f"tests/step/test_partial_step.py "
    f"tests/engine/test_constants.py {SLIPS}",
    "base/checks.py": "tests/base/test_checks.py",
    "base/by_name.py": "tests/test_bad_calls.py",
    "engine/choices.py": "tests/engine/test_choices.py",
}
"""Modules that random mistakes are made in, and the tests that should notice."""

_SWAPS: dict[type[ast.AST], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Lt: "<=",
    ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.And: "or", ast.Or: "and", ast.Is: "is not", ast.IsNot: "is",
    ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or", ast.Is: "is", ast.IsNot: "is not",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


_LOST = ("clone", "copy", "clamp", "abs", "sort")
"""Methods whose call is forgotten."""


def mistakes(file: str, source: str, tests: str) -> Iterator[Mutant]:
    """Every mistake of the usual kinds that can be made in a module.

    A sign or comparison is another, a number is off by one, a copy is missing, a check
    or a statement is removed, a condition is turned round.
    """
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        return len(data[: starts[line - 1] + column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            at(node.lineno, node.col_offset),
            at(node.end_lineno, node.end_col_offset),
        )

    def change(start: int, stop: int, new: str) -> Mutant:
        return Mutant(file, source[start:stop], new, tests, start)

    for node in ast.walk(ast.parse(source)):
        pairs: list[tuple[ast.expr, type[ast.AST], ast.expr]] = []
        if isinstance(node, ast.BinOp):
            pairs = [(node.left, type(node.op), node.right)]
        elif isinstance(node, ast.Compare):
            lefts = [node.left, *node.comparators]
            pairs = [
                (lefts[k], type(op), lefts[k + 1]) for k, op in enumerate(node.ops)
            ]
        elif isinstance(node, ast.BoolOp):
            pairs = [
                (a, type(node.op), b)
                for a, b in zip(node.values, node.values[1:], strict=False)
            ]
        for left, kind, right in pairs:
            start, stop = span(left)[1], span(right)[0]
            if kind in _SWAPS and _SIGNS[kind] in source[start:stop]:
                new = source[start:stop].replace(_SIGNS[kind], _SWAPS[kind], 1)
                yield change(start, stop, new)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield change(*span(node), repr(node.value + 1))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield change(span(node)[0], span(node.operand)[0], "")
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr in _LOST:
            assert isinstance(node, ast.Call)
            yield change(*span(node), source[slice(*span(method.value))])
        if isinstance(node, ast.If):
            yield change(*span(node.test), f"not ({source[slice(*span(node.test))]})")
        if isinstance(node, ast.Raise | ast.AugAssign):
            yield change(*span(node), "pass")


def in_prose(mutant: Mutant, source: str) -> bool:
    """Whether a mistake is in an error's text or a type, which no test should pin."""
    line = source[source.rfind("\n", 0, mutant.place) + 1 :].split("\n", 1)[0].strip()
    return line.startswith(('f"', '"', "f'", "@", "from ", "import ")) or (
        "TypeAlias" in line or '"""' in line
    )


def run_tests(tests: str, folder: Path, seconds: float = 600.0) -> int:
    """What pytest returns on the package in a folder; 0: all tests pass."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
         *tests.split()],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=seconds,
        check=False,
    )  # fmt: skip
    return run.returncode


def is_noticed(mutant: Mutant, folder: Path) -> bool:
    """Whether a test fails on a copy of the package that has the mistake."""
    path = folder / "simstate" / mutant.file
    good = path.read_text()
    if mutant.place < 0:
        assert good.count(mutant.old) == 1, (
            f"{mutant.file} has no single {mutant.old!r}"
        )
        bad = good.replace(mutant.old, mutant.new)
    else:
        end = mutant.place + len(mutant.old)
        bad = good[: mutant.place] + mutant.new + good[end:]
    path.write_text(bad)
    try:
        return run_tests(mutant.tests, folder) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(good)


def line_of(mutant: Mutant) -> str:
    """Where a random mistake is: ":line: the line as it was"."""
    if mutant.place < 0:
        return ":"
    source = (ROOT / "src" / "simstate" / mutant.file).read_text()
    number = source.count("\n", 0, mutant.place)
    return f":{number + 1}: {source.splitlines()[number].strip()}:"


def main() -> int:
    """Make the mistakes, and print how many were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="module=tests, instead of ours")
    parser.add_argument("--random", type=int, default=0, help="how many random ones")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = list(SLIPS_OF_PEOPLE)
    if options.random:
        given = dict(module.split("=", 1) for module in options.modules) or MODULES
        found: list[Mutant] = []
        for file, tests in given.items():
            file = file.removeprefix("simstate/")
            source = (ROOT / "src" / "simstate" / file).read_text()
            found += [
                one
                for one in mistakes(file, source, tests)
                if not in_prose(one, source)
            ]
        chosen = random.Random(options.seed).sample(
            found, min(options.random, len(found))
        )
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src" / "simstate", folder / "simstate")
        every = " ".join(dict.fromkeys(m.tests for m in chosen))
        if run_tests(" ".join(dict.fromkeys(every.split())), folder, 7200.0):
            print("The tests fail without any mistake: mend that first.")
            return 1
        for k, mutant in enumerate(chosen, 1):
            noticed = is_noticed(mutant, folder)
            survivors += not noticed
            print(f"{k:3}/{len(chosen)} {'noticed ' if noticed else 'SURVIVED'} "
                  f"{mutant.file}{line_of(mutant)} {mutant.old.strip()!r} → "
                  f"{mutant.new.strip()!r}", flush=True)  # fmt: skip
    rate = 1 - survivors / max(1, len(chosen))
    print(f"{len(chosen) - survivors} of {len(chosen)} noticed ({rate:.1%})")
    return int(rate < 0.95)


if __name__ == "__main__":
    sys.exit(main())
