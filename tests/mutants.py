"""Makes mistakes in simstate on purpose, one at a time: does a test notice each?

    python -m tests.mutants                      slips of people, each by its test
    python -m tests.mutants --random 40          random ones in the packages below
    python -m tests.mutants --random 20 flight base/files.py=tests/base/test_files.py

A mistake is made in a copy of the package, in Python or in the core's C, and the tests
nearest to its file run on that copy until the first one fails. Each is printed with its
line. A mistake in C that does not compile is not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mistakes import Mutant, mistakes

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

NEAREST = {
    "base/archive.py": "tests/base/test_files.py tests/test_untrusted.py "
    "tests/state/test_snapshot.py",
    "base/by_name.py": "tests/test_bad_calls.py",
    "base/checks.py": "tests/base/test_checks.py",
    "base/files.py": "tests/base/test_files.py",
    "base/ids.py": "tests/base/test_ids.py",
    "engine/choices.py": "tests/engine/test_choices.py",
    "engine/core/flight.c": "tests/flight/test_compiled_loads.py",
    "engine/core/touch.c": "tests/step/test_adaptive_contact.py",
    "env/groups.py": "tests/env/test_core.py tests/env/test_observations.py",
    "env/metrics.py": "tests/env/test_metrics.py",
    "env/plan.py": "tests/env/test_core.py tests/env/test_settings.py",
    "flight": "tests/flight tests/test_slips.py",
    "math": "tests/math",
    "record": "tests/record tests/data/replay/test_replay.py",
    "scene/terrain": "tests/scene/terrain",
    "simulators/align": "tests/simulators/test_align.py",
    "step/coupled_stepper.py": "tests/step/test_coupled.py",
    "study/linear": "tests/study/linear",
    "world/freshness.py": f"tests/world/test_freshness.py "
    f"tests/step/test_partial_step.py "
    f"tests/engine/test_constants.py {SLIPS}",
    "world/random.py": "tests/world/test_random.py",
}
"""Packages and files that random mistakes are made in, with the nearest tests."""


def sources(given: dict[str, str]) -> dict[str, str]:
    """Return the source files of packages or files, and the tests of each."""
    found: dict[str, str] = {}
    for name, tests in given.items():
        path = PACKAGE / name.removeprefix("simstate/")
        files = [path] if path.is_file() else sorted(path.rglob("*.[pch]*"))
        for file in files:
            if file.suffix in (".py", ".c", ".h"):
                found[str(file.relative_to(PACKAGE))] = tests
    return found


def sample(files: dict[str, str], count: int, seed: int) -> list[Mutant]:
    """Return random mistakes; a file's share is that of its lines."""
    texts = {file: (PACKAGE / file).read_text() for file in files}
    left = {file: list(mistakes(file, texts[file], files[file])) for file in files}
    draw, chosen = random.Random(seed), list[Mutant]()
    while len(chosen) < count and any(left.values()):
        names = [file for file in files if left[file]]
        lines = [texts[file].count("\n") for file in names]
        (file,) = draw.choices(names, lines)
        chosen.append(left[file].pop(draw.randrange(len(left[file]))))
    return chosen


class Copy:
    """A copy of the package, with its compiled core, that mistakes are put into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(PACKAGE, folder / "src" / "simstate")
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder / name)
        self._seconds: dict[str, float] = {}

    def passes(self, tests: str) -> bool:
        """Run tests without a mistake, and allow four times as long with one."""
        if tests not in self._seconds:
            start = time.monotonic()
            if not self._run(tests, 7200.0):
                return False
            self._seconds[tests] = 30.0 + 4 * (time.monotonic() - start)
        return True

    def notices(self, mutant: Mutant) -> bool | None:
        """Return True if a test fails with the mistake; None if it does not compile."""
        path = self.folder / "src" / "simstate" / mutant.file
        good = path.read_text()
        path.write_text(mutant.applied(good))
        try:
            if path.suffix != ".py" and not self._compiles():
                return None
            return not self._run(mutant.tests, self._seconds[mutant.tests])
        finally:
            path.write_text(good)
            if path.suffix != ".py":
                assert self._compiles()

    def _compiles(self) -> bool:
        """Build the core; an optional extension that fails leaves no file."""
        for old in self.folder.rglob("*.so"):
            old.unlink()
        shutil.rmtree(self.folder / "build", ignore_errors=True)
        subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
            cwd=self.folder, capture_output=True, check=False,
        )  # fmt: skip
        return len(list((self.folder / "src").rglob("*.so"))) == 2

    def _run(self, tests: str, seconds: float) -> bool:
        """Return True if all tests pass within a time."""
        changed = {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                 "-k", "not warp", *tests.split()],
                cwd=ROOT, env=os.environ | changed, capture_output=True,
                timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0


def line_of(mutant: Mutant) -> str:
    """Return the position of a random mistake: ":line: the line as it was"."""
    if mutant.place < 0:
        return ":"
    source = (PACKAGE / mutant.file).read_text()
    number = source.count("\n", 0, mutant.place)
    return f":{number + 1}: {source.splitlines()[number].strip()}:"


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
    parser.add_argument("modules", nargs="*", help="package or file, or file=tests")
    parser.add_argument("--random", type=int, default=0, help="how many random ones")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = list(SLIPS_OF_PEOPLE)
    if options.random:
        given = [name.partition("=") for name in options.modules]
        nearest = {name: tests or NEAREST[name] for name, _, tests in given} or NEAREST
        chosen = sample(sources(nearest), options.random, options.seed)
    counts = Counter[tuple[str, bool]]()
    with tempfile.TemporaryDirectory() as name:
        copy = Copy(Path(name))
        for k, mutant in enumerate(chosen, 1):
            if not copy.passes(mutant.tests):
                print(f"{mutant.tests} fail without any mistake: mend that first.")
                return 1
            noticed = copy.notices(mutant)
            verdict = {True: "noticed ", False: "SURVIVED", None: "invalid "}[noticed]
            print(f"{k:3}/{len(chosen)} {verdict} "
                  f"{mutant.file}{line_of(mutant)} {mutant.old.strip()!r} → "
                  f"{mutant.new.strip()!r}", flush=True)  # fmt: skip
            if noticed is not None:
                counts[str(Path(mutant.file).parent), noticed] += 1
    return int(print_rates(counts) < 0.95)


if __name__ == "__main__":
    sys.exit(main())
