"""Makes mistakes in simstate on purpose, one at a time: does a test notice each?

    python -m tests.mutants                          slips of people, each by its test
    python -m tests.mutants --random 200             random ones in all packages
    python -m tests.mutants --random 20 flight base/files.py

A mistake is made in a copy of the package, in Python or in the core's C. The tests that
run its line, by the map of `tests.line_map`, run on that copy until the first one
fails. Each mistake is printed with its line and with the test that noticed it. One in C
that does not compile is not counted. Run again what survives with a greater --limit.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.line_map import LineMap
from tests.mistakes import Mutant, mistakes
from tests.mutant_compiler import Compiler
from tests.mutant_session import Collected, Watch, replace, use_library

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "simstate"
SLIPS, ENV = "tests/test_slips.py", "tests/env/test_slips.py"


SLIPS_OF_PEOPLE = (
    Mutant("flight/aircraft.py", "(0, 1), (0, 2), (1, 2))", "(0, 2), (0, 1), (1, 2))",
           f"{SLIPS}::test_products_of_inertia_stay_where_they_are"),
    Mutant("interop/rsl_rl.py", '["time_outs"] = truncated',
           '["time_outs"] = terminated | truncated',
           f"{ENV}::test_a_fall_is_no_time_out"),
    Mutant("world/worlds.py", "torch.equal(known, env_ids)", "True",
           f"{SLIPS}::test_a_selection_that_is_changed_in_place_counts_again"),
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
           'euler.to_quaternion(pose[:, 3:], "izyx"), state[:, 3:7]',
           'state[:, 3:7], euler.to_quaternion(pose[:, 3:], "izyx")',
           f"{ENV}::test_the_turn_of_a_reset_is_about_world_axes"),
    Mutant("env/events.py", "torch.where(is_position, stiffness, damping)", "stiffness",
           f"{ENV}::test_a_velocity_servos_gain_is_its_damping"),
    Mutant("env/curricula.py", "env.episode_length_buf[env_ids].clamp(min=1)",
           "env.max_episode_length",
           f"{ENV}::test_a_curriculum_counts_the_steps_that_were_taken"),
    Mutant("env/commands.py", 'self.memory("error_sum", reset=0.0)',
           'self.memory("error_sum")',
           f"{ENV}::test_the_error_of_a_second_episode_is_its_own"),
    Mutant("world/freshness.py", "self.evaluated_now = evaluated and rows is None",
           "self.evaluated_now = evaluated",
           f"{SLIPS}::test_the_others_accelerations_are_not_current_after_a_forward_of_one"),
    Mutant("engine/native.py", "np.sort(env_ids.numpy()).astype",
           "env_ids.numpy().astype",
           f"{SLIPS}::test_ids_in_any_order_step_the_worlds_that_they_name"),
    Mutant("step/adaptive_stepper.py", '"integrator/step_size", dtype=torch.float64,',
           '"integrator/step_size", dtype=torch.float64, reset=None,',
           f"{SLIPS}::test_an_adaptive_integrator_restarts_after_a_reset"),
    Mutant("train/onnx_export.py", "_floats(-bias[:, 1] * gear**2)",
           "_floats(-bias[:, 1])", f"{ENV}::test_gains_are_reported_at_the_joint"),
    Mutant("entity/explanation/joint_meanings.py", "names.model.jnt_dofadr[joint]) + 3",
           "names.model.jnt_qposadr[joint]) + 3",
           f"{SLIPS}::test_an_explanation_names_the_slice_of_its_own_joint"),
    Mutant("env/drivers.py", 'self._env.dtype, owner="env"',
           'self._env.dtype, None, owner="env"',
           f"{ENV}::test_the_previous_action_is_zero_after_a_reset"),
)  # fmt: skip

ELSEWHERE = re.compile(
    r"engine/(warp|zero_quats)|step/(.*warp|kernels)|simulators/(drake|mjx|newton)"
    r"|interop/(skrl|torchrl|ptera)|data/ray/cluster"
    r"|study/oracles/(pinocchio_reading|attribution)"
)
"""Files whose tests need other libraries (Drake, Ray, …), or minutes for kernels."""


FRONTS = {
    r"calls": "world/calls",
    r"flight": "flight/aerodynamics flight/free_flight",
    r"binding_bodies": "flight/free_flight",
    r"air": "space/planet_drag flight/aerodynamics",
    r"gravity": "space/harmonic_gravity step/forces/gravity_sources",
    r"wheels": "space/wheels",
    r"loads": "step/forces/gravity_sources step/forces/thrust_and_drag",
    r".*contact.*": "sensors/contact_sensor engine/core/core_contacts",
    r"(binding_)?matrices": "entity/dynamics/dynamics engine/core/matrices",
    r"binding_rays": "sensors/ray_sensor engine/core/core_rays",
    r"(binding_)?reads": "entity/compiled_reads engine/core/reads",
    r"(binding_)?derivatives": "study/derivative_estimates",
    r"binding_random": "world/random engine/core/draws",
    r"adaptive|fixed|state|touch|attitude|integrate|binding_(integrator|rounds|run)":
        "step/runge_kutta_stepper step/adaptive_stepper step/touches",
    r".*": "engine/native engine/core/step_watch engine/core/batch",
}  # fmt: skip
"""Modules that use a C file, by its name: their tests are those of the file."""


UNMAPPED = {"world/calls": "tests/world/test_calls.py tests/world/test_signals.py"}
"""Tests that hang while lines are recorded, by the start of files that they test."""


def sources(names: list[str]) -> list[str]:
    """Return the source files of packages or files; all of them if none is named."""
    found: list[str] = []
    for name in names or ["."]:
        path = PACKAGE / name.removeprefix("simstate/")
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        found += [
            str(file.relative_to(PACKAGE))
            for file in files
            if file.suffix in (".py", ".c", ".h")
        ]
    return [file for file in found if not ELSEWHERE.match(file)]


def sample(files: list[str], count: int, least: int, seed: int) -> list[Mutant]:
    """Return random mistakes: the share of a package and of a file is its lines'.

    A package has at least `least` of them.
    """
    texts = {file: (PACKAGE / file).read_text() for file in files}
    left = {file: list(mistakes(file, texts[file], "")) for file in files}
    lines = {file: texts[file].count("\n") for file in files}
    draw, chosen = random.Random(seed), list[Mutant]()
    for package in sorted({package_of(file) for file in files}):
        ours = [file for file in files if package_of(file) == package]
        share = sum(lines[file] for file in ours) / sum(lines.values())
        for _ in range(max(least, round(count * share))):
            if names := [file for file in ours if left[file]]:
                (file,) = draw.choices(names, [lines[file] for file in names])
                chosen.append(left[file].pop(draw.randrange(len(left[file]))))
    return chosen


def package_of(file: str) -> str:
    """Return the package that a file is counted to."""
    return file.partition("/")[0] if "/" in file else "simulation.py"


def nearest(lines: LineMap, mutant: Mutant, limit: float) -> list[str]:
    """Return the tests to run on a mistake, with those that are in no map."""
    found = [t for start, t in UNMAPPED.items() if mutant.file.startswith(start)]
    return [*" ".join(found).split(), *mapped(lines, mutant, limit)]


def mapped(lines: LineMap, mutant: Mutant, limit: float) -> list[str]:
    """Return the tests that run a mistake.

    For C that no test of the map runs, those of the modules next to it.
    """
    line = line_number(mutant)
    rows = range(line, line + 1 + mutant.old.count("\n"))
    if not mutant.file.endswith(".py"):
        if tests := lines.of_lines(mutant.file, rows):
            return lines.spread(mutant.file, tests, limit)
        stem = Path(mutant.file).stem
        used = next(
            fronts for name, fronts in FRONTS.items() if re.fullmatch(name, stem)
        )
        fronts = [f"{front}.py" for front in used.split()]
        tests = {test for front in fronts for test in lines.of_file(front)}
        return lines.spread(fronts[0], tests, limit)
    if not in_function(mutant, line):
        tests = lines.of_file(mutant.file)
        return ["tests/test_defaults.py", *lines.spread(mutant.file, tests, limit)]
    tests = lines.of_lines(mutant.file, rows) or lines.of_file(mutant.file)
    return lines.spread(mutant.file, tests, limit)


def in_function(mutant: Mutant, line: int) -> bool:
    """Return True if a line runs when a function is called, not on import."""
    source = (PACKAGE / mutant.file).read_text()
    return any(
        isinstance(node, ast.FunctionDef)
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
    )


def load(file: str) -> None:
    """Import a module of the package now, not later with a mistake in it."""
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if file.endswith(".py"):
        with contextlib.suppress(ImportError):  # of a library that is not installed
            importlib.import_module(f"simstate.{name}")


class Copy:
    """A copy of the package, with its compiled core, that mistakes are put into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(
            PACKAGE,
            folder / "src" / "simstate",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder / name)
        self._built = {path: path.read_bytes() for path in folder.rglob("*.so")}
        self._compiler: Compiler | None = None

    def noticed_by(
        self, mutant: Mutant, tests: list[str], seconds: float, collected: Collected
    ) -> str | None:
        """Return the test that fails with the mistake, "" if none does.

        None means that the mistake does not compile, or to the same code. Tests that
        are collected already run first; others may use this CPU time in all.
        """
        path = self.folder / "src" / "simstate" / mutant.file
        if path.suffix != ".py" and self._compiler is None:
            self._compiler = Compiler(self.folder)
        good = path.read_text()
        altered = mutant.applied(good)
        load(mutant.file)
        self._write(path, altered)
        try:
            tests = collected.known(tests)
            change: Callable[[], None] | None = None
            if self._compiler is not None and path.suffix != ".py":
                library = self._compiler.library(path)
                if library is None:
                    return None
                self._put(library.name, library.read_bytes())
                if library.name.startswith("_core"):
                    change = partial(use_library, library)
            elif in_function(mutant, line_number(mutant)):
                change = partial(replace, path, good, altered)
            if change is None:
                return self.first_failure(tests, seconds)
            found = collected.first_failure(change, tests)
            return found or self.first_failure(collected.again(tests), seconds)
        finally:
            self._write(path, good)
            for built, content in self._built.items() if path.suffix != ".py" else ():
                self._put(built.name, content)

    def _put(self, name: str, content: bytes) -> None:
        """Replace a library; this process keeps the one that it has loaded."""
        (built,) = (path for path in self._built if path.name == name)
        built.unlink(missing_ok=True)
        built.write_bytes(content)

    def _write(self, path: Path, text: str) -> None:
        """Write a module without its bytecode, whose time stamp has whole seconds."""
        path.write_text(text)
        for old in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            old.unlink()

    def first_failure(self, tests: list[str], seconds: float) -> str:
        """Return the first test that fails, "" if all pass within a CPU time."""
        if not tests:
            return ""
        options = ["-q", "-x", "-p", "no:cacheprovider", "-k", "not warp"]
        output = self.folder / "output"
        with output.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=ROOT, stdout=file, stderr=file, start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
            )  # fmt: skip
            watch = Watch(process.pid)
            while (status := watch.status()) is None:
                if verdict := watch.verdict("", seconds):
                    watch.end()
                    return f"{verdict} {tests[0]}"
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", output.read_text(), re.MULTILINE)
        code = os.waitstatus_to_exitcode(status)
        is_fine = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        return found[1] if found else "" if is_fine else f"exit {code}"


def line_number(mutant: Mutant) -> int:
    """Return the line of a mistake."""
    source = (PACKAGE / mutant.file).read_text()
    place = mutant.place if mutant.place >= 0 else source.index(mutant.old)
    return source.count("\n", 0, place) + 1


def report(mutant: Mutant, test: str | None) -> str:
    """Return one line: verdict, position, change, and the test that noticed it."""
    verdict = "invalid " if test is None else "noticed " if test else "SURVIVED"
    verdict = "HUNG    " if is_unclear(test) else verdict
    number = line_number(mutant)
    line = (PACKAGE / mutant.file).read_text().splitlines()[number - 1].strip()
    change = f"{mutant.old.strip()!r} → {mutant.new.strip()!r}"
    return f"{verdict} {mutant.file}:{number}: {line}: {change} | {test or ''}"


def is_unclear(test: str | None) -> bool:
    """Return True if a process waited for something, which may not be the mistake."""
    return bool(test) and test.startswith("hung ")


def print_rates(counts: Counter[tuple[str, bool]]) -> float:
    """Print how many mistakes of each package were noticed; return the total rate."""
    for package in sorted({package for package, _ in counts}):
        noticed, missed = counts[package, True], counts[package, False]
        print(f"{noticed:4} of {noticed + missed:4} {package}")
    noticed = sum(count for (_, known), count in counts.items() if known)
    rate = noticed / max(1, counts.total())
    print(f"{noticed} of {counts.total()} noticed ({rate:.1%})")
    return rate


def main() -> int:
    """Make the mistakes, and print how many were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="packages or files; all of them")
    parser.add_argument("--random", type=int, default=0, help="how many random ones")
    parser.add_argument("--least", type=int, default=1, help="of them in a package")
    parser.add_argument("--map", type=Path, default=ROOT / "build" / "lines")
    parser.add_argument("--limit", type=float, default=60, help="seconds of tests each")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = list(SLIPS_OF_PEOPLE)
    lines = LineMap(options.map)
    if options.random:
        files = sources(options.modules)
        chosen = sample(files, options.random, options.least, options.seed)
    with tempfile.TemporaryDirectory() as name:
        copy = Copy(Path(name))
        run = Run(copy, lines, chosen, options.limit)
        run.collect()
        print(f"{run.num_endless} by the CPU time of a test")
        return int(print_rates(run.counts) < 0.95)


class Run:
    """Mistakes that are made one after the other, and the tests that noticed them."""

    def __init__(
        self, copy: Copy, lines: LineMap, chosen: list[Mutant], limit: float
    ) -> None:
        self._copy, self._chosen, self._limit = copy, chosen, limit
        self._tests = [m.tests.split() or nearest(lines, m, limit) for m in chosen]
        self.counts = Counter[tuple[str, bool]]()
        self.num_endless = 0
        """Mistakes that were noticed by the CPU time of a test."""

    def collect(self) -> None:
        """Collect all tests that are needed, and run them with each mistake."""
        sys.path.insert(0, str(self._copy.folder / "src"))
        os.environ["PYTHONPATH"] = str(self._copy.folder / "src")
        files = {test.partition("::")[0] for tests in self._tests for test in tests}
        options = ["-qq", "-s", "-p", "no:cacheprovider", "-k", "not warp"]
        options += ["--basetemp", str(self._copy.folder / "temporary")]
        plugin = Collected(self._copy.folder, self._make_all)
        pytest.main([*options, *sorted(files)], [plugin])

    def _make_all(self, collected: Collected) -> None:
        for k, (mutant, tests) in enumerate(
            zip(self._chosen, self._tests, strict=True), 1
        ):
            test = self._copy.noticed_by(mutant, tests, 60 + 5 * self._limit, collected)
            print(f"{k:3}/{len(self._chosen)} {report(mutant, test)}", flush=True)
            if test is not None:
                is_noticed = bool(test) and not is_unclear(test)
                self.counts[package_of(mutant.file), is_noticed] += 1
                self.num_endless += test.startswith("time ")


if __name__ == "__main__":
    sys.exit(main())
