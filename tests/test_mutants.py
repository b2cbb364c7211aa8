"""Mistakes that `make mutants` makes: where they are, and where none is made."""

import ctypes
import gc
import importlib.util
import subprocess
import sys

import pytest
from tests.mistakes import mistakes
from tests.mutant_compiler import Compiler
from tests.mutant_session import Watch, replace
from tests.mutants import FRONTS, PACKAGE, ROOT, SLIPS_OF_PEOPLE


@pytest.mark.parametrize("mutant", SLIPS_OF_PEOPLE, ids=lambda mutant: mutant.file)
def test_each_slip_has_one_place_and_its_test(mutant):
    text = (ROOT / "src" / "simstate" / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    file, _, test = mutant.tests.partition("::")
    assert f"def {test}(" in (ROOT / file).read_text()


SOURCE = """
import matplotlib
MOST_SHOWN = 24
LIMIT = 25
def check(value: tuple[int, 2], axis=3):
    if value < 1e-9 and LIMIT > axis:
        raise ValueError(f"{value - 1} is too small")
    if value is None:
        raise AssertionError("never")
    return value.reshape(-1).sum(dim=-1, alpha=0.5) + 4, lambda: value * LIMIT
"""


def test_no_mistake_is_made_in_texts_annotations_and_looks():
    found = {(m.old.strip(), m.new.strip()) for m in mistakes("a.py", SOURCE, "")}
    assert ("25", "26") in found
    assert ("3", "4") in found  # a default
    assert ("<", ">") in found  # of a tolerance
    assert (">", ">=") in found
    assert ("*", "/") in found
    assert not {("24", "25"), ("2", "3"), ("0.5", "1.5"), ("1", "2")} & found
    changed = [m.new for m in mistakes("a.py", SOURCE, "") if m.old.startswith("raise")]
    assert changed == ["pass"]


@pytest.mark.parametrize("file", ["train/run_cfg.py", "world/worlds.py"])
def test_every_mistake_is_python(file):
    source = (PACKAGE / file).read_text()
    for mutant in mistakes(file, source, ""):
        compile(mutant.applied(source), file, "exec")


def test_a_loaded_module_gets_the_code_of_another_text(tmp_path):
    good = (
        "def twice(x):\n    return 2 * x\n\n"
        "class A:\n    value = property(lambda self: twice(3) + 1)\n"
    )
    path = tmp_path / "loaded.py"
    path.write_text(good)
    spec = importlib.util.spec_from_file_location("loaded_for_mutants", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["loaded_for_mutants"] = module
    try:
        spec.loader.exec_module(module)
        twice, one = module.twice, module.A()
        assert (twice(5), one.value) == (10, 7)
        replace(path, good, good.replace("2 * x", "2 / x"))
        assert twice(5) == 0.4
        gc.freeze()  # as before each session of tests
        replace(path, good, good.replace("+ 1", "- 1"))
        assert one.value == pytest.approx(2 / 3 - 1)
    finally:
        del sys.modules["loaded_for_mutants"]
        gc.freeze()


def test_modules_that_use_c_are_there():
    for fronts in FRONTS.values():
        for front in fronts.split():
            assert (PACKAGE / f"{front}.py").is_file(), front


C_SOURCE = """
static void add(int count) {
  double rot[9], arm[3], moved[4];
  int first[5];
  use(rot, arm[2], moved[1]);
}
static PyMethodDef methods[] = {{"add", add, 7, NULL}, {NULL, NULL, 0, NULL}};
"""


def test_no_mistake_is_made_in_lengths_of_arrays_and_the_end_of_a_table():
    found = sorted(int(m.old) for m in mistakes("a.c", C_SOURCE, "") if m.old.isdigit())
    assert found == [1, 2, 7]


def test_a_change_of_c_compiles_again_what_it_changes(tmp_path):
    """A stand-in for setup.py that prints the commands that it runs."""
    (tmp_path / "a.c").write_text("int twice(int x) { return 2 * x; }\n")
    (tmp_path / "b.c").write_text("int one(void) { return 1; }\n")
    (tmp_path / "setup.py").write_text(
        "import subprocess\n"
        "for command in ('gcc -fPIC -c a.c -o a.o', 'gcc -fPIC -c b.c -o b.o',\n"
        "                'gcc -shared a.o b.o -o ab.so'):\n"
        "    print(command)\n"
        "    subprocess.run(command.split(), check=True)\n"
    )
    compiler, path = Compiler(tmp_path), tmp_path / "a.c"
    assert ctypes.CDLL(str(tmp_path / "ab.so")).twice(5) == 10
    path.write_text("int twice(int x) { return 3 * x; }\n")
    library = compiler.library(path)
    assert library.name == "ab.so"
    changed = ctypes.CDLL(str(library))
    assert (changed.twice(5), changed.one()) == (15, 1)
    path.write_text("int twice(int x) { return 2 * (x); }\n")
    assert compiler.library(path) is None  # the same code
    path.write_text("int twice(int x) { return 2 * y; }\n")
    assert compiler.library(path) is None  # no code


@pytest.mark.parametrize(
    ("code", "expected"),
    [("while True: pass", "time"), ("import time; time.sleep(1.5)", "")],
)
def test_a_process_runs_out_of_cpu_time_not_of_time(code, expected):
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    watch, verdict = Watch(process.pid), ""
    while watch.status() is None and not verdict:
        verdict = watch.verdict("", 0.4)
    if verdict:
        watch.end()
    assert verdict == expected
