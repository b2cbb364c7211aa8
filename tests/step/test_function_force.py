"""C functions as force models: the bits of the same force written in NumPy."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import compiled_models_of
from tests.raised import raises

from simstate import Simulation, integrate
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.engine import core

NUM = 5
BODY, DOF, MOTOR = 2, 7, 1
MODEL = """
<mujoco><option timestep="0.02" gravity="0.3 -0.2 -4"/><worldbody>
  <body name="bus" pos="0.3 -0.1 0.2" quat="0.8 0.1 0.5 0.3"><freejoint/>
    <inertial pos="0.2 -0.1 0.05" quat="0.9 0.3 0.1 0.2" mass="12" diaginertia="2 3 4"/>
    <body name="panel" pos="1 0.2 0"><joint name="hinge" axis="0 1 0.2" damping="0.3"/>
      <inertial pos="0.4 0.1 0" mass="3" diaginertia="0.2 0.5 0.6"/>
      <body name="wheel" pos="0.1 0 0.3"><joint name="spin" axis="1 0 0.1"/>
        <inertial pos="0.01 0 0" mass="0.7" diaginertia="0.02 0.03 0.04"/>
      </body>
    </body>
  </body>
</worldbody><actuator>
  <motor name="turn" joint="hinge" gear="1.7"/>
  <motor name="run" joint="spin" gear="0.6"/>
</actuator></mujoco>
"""
SOURCE = f"""
#include <simstate/force.h>
#include <math.h>

void push(const mjModel* m, mjData* d, const double* p, int world) {{
  const mjtNum* v = d->cvel + 6 * {BODY} + 3;
  double speed = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  double factor = -p[0] * m->body_mass[{BODY}] * speed;
  for (int k = 0; k < 3; k++) {{
    d->xfrc_applied[6 * {BODY} + k] += factor * v[k];
    d->xfrc_applied[6 * {BODY} + 3 + k] += p[1] * d->xipos[3 * {BODY} + k];
  }}
  d->qfrc_applied[{DOF}] += p[1] * d->qpos[{DOF}] + world;
  d->ctrl[{MOTOR}] *= p[0];
}}
simstate_force check = push; /* the type is that of the header */
"""
SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
)
SCHEMES = [integrate.RK4("lie"), integrate.DP54(atol=1e-9, rtol=1e-9)]


@dataclass
class Function:
    address: Any
    parameters: Any = None
    keep: Any = None


def numbers():
    return 0.2 + np.arange(2.0 * NUM).reshape(NUM, 2) / 7


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler (cc, gcc, clang)")
    folder = tmp_path_factory.mktemp("force")
    source, library = folder / "push.c", folder / "push.so"
    source.write_text(SOURCE)
    headers = [integrate.get_include(), Path(mujoco.__file__).parent / "include"]
    paths = [f"-I{path}" for path in headers]
    options = ["-O2", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Werror"]
    command = [compiler, *options, *paths, source, "-o", library, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.cast(ctypes.CDLL(str(library)).push, ctypes.c_void_p).value


class NumpyForce:
    """The same force on all worlds at once, in the same order of operations."""

    def __init__(self, sim):
        self.p = numbers()
        self.mass = sim.model.body_mass[BODY]

    def __call__(self, t, sim):
        p, data = self.p, sim.data
        v = data.cvel[:, BODY, 3:].numpy()
        speed = np.sqrt(v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1] + v[:, 2] * v[:, 2])
        factor = -p[:, 0] * self.mass * speed
        force = torch.as_tensor(factor[:, None] * v)
        torque = torch.as_tensor(p[:, 1, None] * data.xipos[:, BODY].numpy())
        data.xfrc_applied[:, BODY, :3] += force
        data.xfrc_applied[:, BODY, 3:] += torque
        bend = p[:, 1] * data.qpos[:, DOF].numpy() + np.arange(NUM)
        data.qfrc_applied[:, DOF] += torch.as_tensor(bend)
        data.ctrl[:, MOTOR] *= torch.as_tensor(p[:, 0])


def offsets(model):
    """Where the pointers to arrays are in an mjData, found by their values."""
    data = mujoco.MjData(model)
    found = {}
    for name in ("qpos", "cvel", "xipos", "xfrc_applied", "qfrc_applied", "ctrl"):
        value, at = getattr(data, name).ctypes.data, 0
        while ctypes.c_void_p.from_address(data._address + at).value != value:
            at += 8
        found[name] = (at, getattr(data, name).shape)
    return found


def callback(model):
    """The same force in Python, which C calls with pointers."""
    places, mass = offsets(model), model.body_mass[BODY]

    def push(m, d, parameters, world):
        def array(name):
            at, shape = places[name]
            pointer = ctypes.POINTER(ctypes.c_double).from_address(d + at)
            return np.ctypeslib.as_array(pointer, shape)

        p = np.ctypeslib.as_array((ctypes.c_double * 2).from_address(parameters))
        v = array("cvel")[BODY, 3:]
        speed = np.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
        array("xfrc_applied")[BODY, :3] += -p[0] * mass * speed * v
        array("xfrc_applied")[BODY, 3:] += p[1] * array("xipos")[BODY]
        array("qfrc_applied")[DOF] += p[1] * array("qpos")[DOF] + world
        array("ctrl")[MOTOR] *= p[0]

    function = SIGNATURE(push)
    return Function(
        ctypes.cast(function, ctypes.c_void_p).value, numbers(), keep=function
    )


def make(scheme):
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM, integrator=scheme)
    rng = np.random.default_rng(6)
    sim.data.qvel[:] = torch.as_tensor(0.3 * rng.standard_normal((NUM, 8)))
    sim.data.ctrl[:] = torch.as_tensor(rng.standard_normal((NUM, 2)))
    sim.data.xfrc_applied[:, 1] = torch.as_tensor(rng.standard_normal((NUM, 6)))
    return sim


def fly(sim, model):
    """Steps of all worlds and of some, with parameters that change between them."""
    parameters = model.p if isinstance(model, NumpyForce) else model.parameters
    sim.add_force(model)
    sim.step(4)
    parameters[[3, 1]] *= -0.7
    sim.step(2, env_ids=[4, 3, 0])
    return sim.state.clone()


def in_the_core(sim):
    return compiled_models_of(sim) is not None


@pytest.mark.skipif(not core.is_available(), reason="the compiled core is not there")
def test_the_core_calls_it_with_the_bits_of_numpy_and_ctypes(address):
    sims = [make(SCHEMES[0]) for _ in range(3)]
    models = [
        Function(address, torch.as_tensor(numbers())),
        NumpyForce(sims[1]),
        callback(sims[2].model),
    ]
    ours, numpy, python = (fly(*pair) for pair in zip(sims, models, strict=True))
    assert [in_the_core(sim) for sim in sims] == [True, False, True]
    assert torch.equal(ours, numpy)
    assert torch.equal(ours, python)
    assert not torch.equal(
        ours, fly(make(SCHEMES[0]), Function(address, numbers() + 1))
    )


@pytest.mark.parametrize("scheme", [*SCHEMES, None], ids=["rk4", "dp54", "mujoco"])
@pytest.mark.parametrize("has_core", ["1", "0"])
def test_python_calls_it_where_the_core_does_not(
    address, scheme, has_core, monkeypatch
):
    monkeypatch.setenv("SIMSTATE_CORE", has_core)
    states = []
    for kind in (Function, NumpyForce):
        sim = make(scheme)
        sim.expand("body_mass")[2, BODY] = 2.5
        sim.add_force(lambda t, sim: None)  # which is Python's
        model = kind(sim) if kind is NumpyForce else kind(address, numbers())
        if kind is NumpyForce:
            model.mass = sim.expand("body_mass")[:, BODY].numpy()
        states.append(fly(sim, model))
    assert torch.equal(*states)


def test_parameters_are_optional_and_kept_alive():
    count = []
    function = SIGNATURE(lambda m, d, p, world: count.append(world))
    sim = make(SCHEMES[0])
    place = ctypes.cast(function, ctypes.c_void_p).value
    sim.add_force(Function(place, keep=function))
    sim.step()
    assert sorted(count) == sorted([*range(NUM)] * 4)


@pytest.mark.parametrize("wrong", [0, -8, 3.5, None, "push", True])
def test_a_wrong_address_is_refused(wrong):
    with raises(InvalidInputError, name="address"):
        make(SCHEMES[0]).add_force(Function(wrong))


def test_wrong_parameters_are_refused():
    sim = make(SCHEMES[0])
    for values in ([1.0], numbers().astype(np.float32), torch.ones(NUM, 2).int()):
        with raises(InvalidInputError, name="parameters"):
            sim.add_force(Function(8, values))
    for values in (np.ones(NUM), np.ones((NUM, 0)), np.ones((NUM + 1, 2))):
        with raises(ShapeError, name="parameters"):
            sim.add_force(Function(8, values))
    sim.step()
    if core.is_available():
        assert in_the_core(sim)


def test_parameters_that_are_not_finite_are_python_to_see_to(address):
    sim = make(SCHEMES[0])
    function = Function(address, numbers())
    sim.add_force(function)
    sim.step()
    function.parameters[3, 0] = np.nan
    before = sim.state.clone()
    with raises(InvalidInputError, name="ctrl"):
        sim.step()
    assert torch.equal(sim.state, before)


def test_worlds_without_an_mjdata_refuse_it_warp():
    pytest.importorskip("mujoco_warp")
    model = mujoco.MjModel.from_xml_string(MODEL)
    sim = Simulation(model, NUM, integrator=SCHEMES[0], engine="warp")
    with raises(InvalidInputError, name="engine"):
        sim.add_force(Function(8))
