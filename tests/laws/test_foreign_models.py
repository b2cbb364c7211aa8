"""Models of Gymnasium and dm_control: each runs as its file says, and the laws hold."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest
import torch
from tests.foreign_models import (
    FILES,
    FOREIGN,
    NOT_MODELS,
    WARP,
    WARP_SOAK,
    foreign_scene,
)

from simstate import Simulation
from simstate.study import oracles

pytestmark = pytest.mark.long

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION.value
STEPS, CHUNK, WORLDS = 300, 50, 2


@pytest.fixture(scope="module", params=FOREIGN)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def own(name):
    """The file, as MuJoCo reads and compiles it."""
    return plain(name)


@pytest.fixture(scope="module")
def sim(name):
    """The file in a scene of its own; nothing on standard error, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "There is nothing to simulate")
        return Simulation(foreign_scene(name), WORLDS)


def plain(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is deprecated
        return mujoco.MjModel.from_xml_path(str(FILES[name]))


@pytest.mark.skipif(not set(FILES) >= NOT_MODELS, reason="dm_control is not installed")
@pytest.mark.parametrize("name", sorted(NOT_MODELS))
def test_what_is_left_out_is_refused_by_mujoco_itself(name):
    with pytest.raises(ValueError, match=r"\S"):
        plain(name)


@pytest.mark.skipif(not set(FILES) >= NOT_MODELS, reason="dm_control is not installed")
def test_there_are_as_many_as_the_packages_have():
    assert len(FOREIGN) == 69
    assert sum(name.startswith("gymnasium/") for name in FOREIGN) == 14


@pytest.mark.parametrize(
    "name", ["gymnasium/humanoid", "gymnasium/hopper", "gymnasium/half_cheetah"]
)
def test_nothing_is_printed(name, capfd):
    """Files that state sizes, looks and a total mass, on which MuJoCo remarks."""
    Simulation(foreign_scene(name))
    assert capfd.readouterr() == ("", "")


def test_the_scene_compiles_to_the_files_own_numbers(own, sim):
    for field in numeric_fields(own):
        theirs, ours = getattr(own, field), getattr(sim.model, field)
        np.testing.assert_array_equal(ours, theirs, err_msg=field)
    for part in ("opt", "stat", "vis.map"):
        same_struct(_part(own, part), _part(sim.model, part), part)


def test_300_steps_are_those_of_mj_step(own, sim):
    rng = np.random.default_rng(7)
    sim.reset()
    rows = sim.state.numpy().copy()
    datas = [mujoco.MjData(own) for _ in range(WORLDS)]
    np.testing.assert_array_equal(rows[0], state_of(own, datas[0]))
    # The first world starts as the file says, the second one moves.
    datas[1].qvel[:] = 0.1 * rng.normal(size=own.nv)
    sim.data.qvel[1] = torch.as_tensor(datas[1].qvel)
    for _ in range(STEPS // CHUNK):
        ctrl = controls(own, rng)
        sim.data.ctrl[:] = torch.as_tensor(ctrl)
        sim.step(CHUNK)
        for data, row in zip(datas, ctrl, strict=True):
            data.ctrl[:] = row
            mujoco.mj_step(own, data, CHUNK)
    for world, data in enumerate(datas):
        np.testing.assert_array_equal(sim.state[world], state_of(own, data))
    assert not any(w.number for w in datas[0].warning), "choose a gentler motion"


def test_states_go_round(sim):
    check_states_go_round(sim, 1e-12)


def check_states_go_round(sim, tolerance):
    sim.reset()
    oracles.randomize(sim, seed=3)
    wanted = {f: getattr(sim.data, f).clone() for f in ("qpos", "qvel", "mocap_pos")}
    for mode in ("dict", "tensor"):
        states = sim.get_states(mode=mode, cameras=False)
        sim.reset()
        sim.set_states(states)
        for field, values in wanted.items():
            got = getattr(sim.data, field)
            torch.testing.assert_close(got, values, rtol=0, atol=tolerance, msg=field)


@pytest.mark.filterwarnings("ignore:There is nothing to simulate")
def test_the_laws_hold(name):
    report = oracles.check(foreign_scene(name), num_envs=2)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    "name", [*WARP, *(pytest.param(n, marks=pytest.mark.soak) for n in WARP_SOAK)]
)
def test_on_warp_the_laws_hold_and_states_go_round(name):
    if name not in FOREIGN:
        pytest.skip("dm_control is not installed")
    report = oracles.check(foreign_scene(name), "warp")
    assert report.passed, str(report)
    check_states_go_round(Simulation(foreign_scene(name), WORLDS, engine="warp"), 1e-5)


def controls(model, rng):
    """Gentle controls within their ranges, other ones in each world."""
    low, high = model.actuator_ctrlrange.T
    free = low >= high
    low, high = np.where(free, -0.1, low), np.where(free, 0.1, high)
    middle, half = (low + high) / 2, (high - low) / 2
    return middle + 0.1 * half * rng.uniform(-1, 1, size=(WORLDS, model.nu))


def state_of(model, data):
    row = np.zeros(mujoco.mj_stateSize(model, INTEGRATION))
    mujoco.mj_getState(model, data, row, INTEGRATION)
    return row


def numeric_fields(model):
    """All arrays of a model but those of names, which have the entity's prefix."""
    names = [n for n in dir(model) if not n.startswith(("_", "name"))]
    arrays = [n for n in names if isinstance(getattr(model, n), np.ndarray)]
    return [n for n in arrays if n not in ("paths", "text_data")]


def same_struct(theirs, ours, part):
    for field in [n for n in dir(theirs) if not n.startswith("_")]:
        if not callable(getattr(theirs, field)):
            want, got = getattr(theirs, field), getattr(ours, field)
            np.testing.assert_array_equal(got, want, err_msg=f"{part}.{field}")


def _part(model, path):
    for name in path.split("."):
        model = getattr(model, name)
    return model
