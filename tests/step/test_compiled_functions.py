"""C functions of numba, cffi and ctypes as forces: signatures, parameters, bits."""

from __future__ import annotations

import ctypes
import sys

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import compiled_models_of, slot_of
from tests.raised import raises
from tests.step.test_called_forces import BODY, DOF, NUM, make, moved

import simstate
from simstate import InvalidInputError, ModelError, UnknownNameError, integrate
from simstate.engine import core
from simstate.integrate import DP54, RK4, CompiledFunction, compile_force

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)
GAIN = np.linspace(0.2, 0.9, NUM)
POINTERS = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)]


HAS_PLASTIC = hasattr(mujoco.MjData, "plastic")
"""Of MuJoCo 4 and later."""


def damp(t, qvel, xipos, qfrc_applied, xfrc_applied, gain, bias):
    """Push by time, state and derived fields of one world."""
    qfrc_applied[7] -= gain * qvel[7]
    qfrc_applied[6] += t - bias * qvel[6]
    for k in range(3):
        xfrc_applied[2, k] -= gain * xipos[2, k]


READS, WRITES = ("qvel", "xipos"), ("qfrc_applied", "xfrc_applied")


def damp_on_views(gain):
    def model(t, qvel, xipos, qfrc_applied, xfrc_applied):
        qfrc_applied[:, 7] -= gain * qvel[:, 7]
        qfrc_applied[:, 6] += t - 0.3 * qvel[:, 6]
        xfrc_applied[:, 2, :3] -= gain[:, None] * xipos[:, 2]

    return model


def compiled(sim, **parameters):
    pytest.importorskip("numba")
    given = {"gain": GAIN, "bias": 0.3, **parameters}
    return compile_force(damp, sim, reads=READS, writes=WRITES, parameters=given)


@pytest.mark.parametrize("scheme", [RK4(), DP54()], ids=["RK4", "DP54"])
@pytest.mark.parametrize("num", [1, NUM])
def test_numba_has_the_bits_of_numpy(scheme, num):
    assert (BODY, DOF) == (2, 7)  # of damp
    ours, views = make(scheme, num), make(scheme, num)
    ours.add_force(compiled(ours, gain=GAIN[:num]))
    views.add_force(damp_on_views(GAIN[:num]), reads=READS, writes=WRITES)
    assert torch.equal(moved(ours), moved(views))
    assert compiled_models_of(ours) is not None
    assert compiled_models_of(views) is None


def test_parameters_are_slots_of_each_world():
    """Written at any time, saved and restored; two forces have their own."""
    sim, views = make(), make()
    force = compiled(sim)
    sim.add_force(force)
    gain = GAIN.copy()
    views.add_force(damp_on_views(gain), reads=READS, writes=WRITES)
    sim.step(2)
    views.step(2)
    before = sim.snapshot()
    force.parameters["gain"][3] = 5.0
    gain[3] = 5.0
    sim.step(2)
    views.step(2)
    assert torch.equal(sim.state, views.state)
    name = next(x for x in before.slots if x.endswith("/gain"))
    assert slot_of(sim, name)[3] == 5.0
    sim.restore(before)
    np.testing.assert_array_equal(force.parameters["gain"], GAIN)
    with raises(simstate.ShapeError, name="gain"):
        make().add_force(compiled(make(), gain=[0.1, 0.2]))


@pytest.mark.parametrize("name", ["qpos", "qvel"])
@pytest.mark.parametrize("scheme", [RK4(), DP54()], ids=["RK4", "DP54"])
@pytest.mark.parametrize("is_called", [False, True])
def test_a_function_that_writes_state_raises(scheme, name, is_called):
    pytest.importorskip("numba")

    def greedy(t, state, gain):
        if t > 0.01:
            state[1] += gain

    sim = make(scheme)
    gain = np.zeros(NUM)
    gain[2] = 0.3
    sim.add_force(compile_force(greedy, sim, reads=(name,), parameters={"gain": gain}))
    if is_called:
        sim.add_force(lambda t, sim: None)
    before = sim.snapshot()
    with raises(ModelError, worlds=[2]) as caught:
        sim.step(4)
    assert name in str(caught.value)
    for slot, values in before.slots.items():
        np.testing.assert_array_equal(sim.snapshot().slots[slot], values, slot)


def test_errors_and_slots_have_the_name_of_the_function():
    pytest.importorskip("numba")

    def spoil(t, xfrc_applied, gain):
        xfrc_applied[1, 2] = gain

    sim = make(None)  # steps of MuJoCo, which the models are called for in Python
    gain = np.arange(NUM) + 0.5
    gain[1] = np.nan
    force = compile_force(
        spoil, sim, writes=("xfrc_applied",), parameters={"gain": 0.5}
    )
    sim.add_force(force)
    assert "parameter/spoil/gain" in sim.snapshot().slots
    sim.step()
    force.parameters["gain"][:] = torch.as_tensor(gain)
    with raises(InvalidInputError, name="xfrc_applied"):
        sim.step()


@pytest.mark.parametrize(
    "signature",
    [
        "void(voidptr, voidptr, CPointer(float64))",
        "void(voidptr, voidptr, CPointer(float32), int32)",
        "void(voidptr, voidptr, CPointer(float64), int64)",
        "int32(voidptr, voidptr, CPointer(float64), int32)",
        "void(voidptr, int64, CPointer(float64), int32)",
    ],
)
def test_a_cfunc_of_another_type_is_refused(signature):
    numba = pytest.importorskip("numba")
    body = "lambda m, d, p: None" if signature.count(",") == 2 else ""
    function = eval(body or "lambda m, d, p, world: None")
    if signature.startswith("int32"):
        function = eval("lambda m, d, p, world: 3")
    wrong, sim = numba.cfunc(signature)(function), make()
    with raises(InvalidInputError, name="function"):
        sim.add_force(wrong)
    right = numba.cfunc("void(voidptr, voidptr, CPointer(float64), int32)")
    sim.add_force(right(lambda m, d, p, world: None))
    sim.step()


@pytest.mark.parametrize(
    ("types", "result"),
    [
        (None, None),
        (POINTERS, None),
        ([*POINTERS, ctypes.c_double], None),
        ([*POINTERS, ctypes.c_int], ctypes.c_int),
        ([*POINTERS[:2], ctypes.c_double, ctypes.c_int], None),
    ],
)
def test_a_ctypes_function_of_another_type_is_refused(types, result):
    function = ctypes.CFUNCTYPE(None)(lambda *args: None)
    if types is not None:
        function.argtypes, function.restype = types, result
    else:
        function = ctypes.CDLL(None).getpid
    with raises(InvalidInputError, name="function"):
        make().add_force(function)


def test_a_ctypes_function_is_called_with_named_parameters():
    kind, seen = ctypes.CFUNCTYPE(None, *POINTERS, ctypes.c_int), []
    function = kind(lambda m, d, p, world: seen.append((world, p[0], p[1])))
    sim = make()
    sim.add_force(CompiledFunction(function, {"one": GAIN, "two": 4.0}))
    sim.step()
    assert set(seen) == {(k, GAIN[k], 4.0) for k in range(NUM)}


def test_a_cffi_function_has_the_bits_of_numpy(tmp_path, monkeypatch):
    cffi = pytest.importorskip("cffi")
    builder = cffi.FFI()
    builder.cdef("""
        extern void damp(void* m, void* d, double* parameters, int world);
        extern void short_one(void* m, void* d, double* parameters);
        extern double wrong_result(void* m, void* d, double* parameters, int world);
    """)
    from pathlib import Path

    import mujoco

    builder.set_source(
        "_damping_under_test",
        """
        #include <simstate/force.h>
        static void damp(void* m, void* data, double* p, int world) {
          mjData* d = data;
          d->qfrc_applied[7] -= p[0] * d->qvel[7];
          d->qfrc_applied[6] += d->time - p[1] * d->qvel[6];
          for (int k = 0; k < 3; k++) d->xfrc_applied[12 + k] -= p[0] * d->xipos[6 + k];
        }
        static void short_one(void* m, void* d, double* p) {}
        static double wrong_result(void* m, void* d, double* p, int world) { return 0; }
        """,
        include_dirs=[
            simstate.get_include(), str(Path(mujoco.__file__).parent / "include"),
        ],
        extra_compile_args=["-ffp-contract=off"],
    )  # fmt: skip
    try:
        builder.compile(tmpdir=str(tmp_path))
    except Exception as error:  # the compiler's own
        pytest.skip(f"there is no C compiler: {error}")
    monkeypatch.syspath_prepend(str(tmp_path))
    import _damping_under_test as damping

    get = damping.ffi.addressof
    ours, views = make(), make()
    ours.add_force(
        CompiledFunction(get(damping.lib, "damp"), {"gain": GAIN, "bias": 0.3})
    )
    views.add_force(damp_on_views(GAIN), reads=READS, writes=WRITES)
    assert torch.equal(moved(ours), moved(views))
    assert compiled_models_of(ours) is not None
    for name in ("short_one", "wrong_result"):
        with raises(InvalidInputError, name="function"):
            ours.add_force(get(damping.lib, name))
    with raises(InvalidInputError, name="function"):
        ours.add_force(damping.ffi.new("double[3]"))


def test_without_numba_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with raises(InvalidInputError, name="numba"):
        compile_force(damp, make(), reads=READS, writes=WRITES)


def test_wrong_fields_are_refused():
    pytest.importorskip("numba")
    for options, name in (
        ({"reads": ("qpoz",)}, "qpoz"),
        ({"writes": ("qvel",)}, "qvel"),
        ({"reads": ("qacc",)}, "qacc"),
        ({"reads": ("qvel",)}, "damp"),
        ({"reads": ("time",)}, "time"),
        ({"reads": ("eq_active",)}, "eq_active"),
        ({"reads": ("plastic",)}, "damp" if HAS_PLASTIC else "plastic"),
    ):
        with raises((InvalidInputError, UnknownNameError), name=name):
            compile_force(damp, make(), **options)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.bool])
def test_parameters_are_real_numbers(dtype):
    function = ctypes.CFUNCTYPE(None, *POINTERS, ctypes.c_int)(lambda *_: None)
    given = {"gain": torch.ones(3, dtype=dtype)}
    with raises(InvalidInputError, name="gain"):
        CompiledFunction(function, given)


def test_the_header_is_there():
    from pathlib import Path

    for folder in (simstate.get_include(), integrate.get_include()):
        assert "simstate_force" in Path(folder, "simstate", "force.h").read_text()


def test_warp_refuses_it_warp():
    pytest.importorskip("mujoco_warp")
    sim = make(engine="warp", num=3)
    with raises(InvalidInputError, name="engine"):
        sim.add_force(CompiledFunction(8))
