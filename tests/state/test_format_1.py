"""Snapshots that the first version wrote still load and restore.

`data/` has files of simstate 0.1.0 with MuJoCo 3.17.0, of the scene below: per-world
masses, encoder bias, targets; an adaptive integrator with a process; noise.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from tests.inside import stepper_of

from simstate import EntityCfg, SceneCfg, Simulation, SnapshotError, integrate
from simstate.state import Snapshot

DATA = Path(__file__).parent / "data"
MODEL = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint/>
      <geom size=".1 .2 .3" type="box" mass="2" pos=".01 .02 .03"/>
      <body name="arm" pos=".3 0 0">
        <joint name="hinge" axis="0 1 0" damping=".1"/>
        <geom size=".05" mass=".5" pos=".1 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="hinge" kp="3"/></actuator>
</mujoco>
"""
pytestmark = pytest.mark.skipif(
    mujoco.__version__ != "3.17.0",
    reason="another MuJoCo compiles other arrays, so the files are of another model",
)


def make(**options) -> Simulation:
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=MODEL)}, ground=False, timestep=None
    )
    return Simulation(scene, 3, **options)


class Decay(integrate.Process):
    """dx/dt = −2x."""

    def rate(self, t, sim):
        return -2.0 * self.value


def test_everything_comes_back():
    with np.load(DATA / "format_1_native.npz") as file:
        arrays = {name: file[name] for name in file}
    sim = make()
    sim.restore(Snapshot.load(DATA / "format_1_native.npz"))
    robot = sim.scene["robot"]
    np.testing.assert_array_equal(sim.state, arrays["state"])
    assert sim.time.tolist() == pytest.approx([0.028] * 3)
    assert robot.data.body_mass[:, 1].tolist() == pytest.approx([0.5, 0.75, 1.0])
    assert robot.data.encoder_bias[:, 0].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert robot.data.joint_pos_target[:, 0].tolist() == pytest.approx([0.2, 0.4, 0.6])
    for name in ("body_subtreemass", "dof_invweight0"):  # they follow from the masses
        np.testing.assert_array_equal(sim.expand(name), arrays[f"parameters/{name}"])
    assert not sim.diverged.any()


def test_an_integrators_memory_comes_back():
    sim = make(integrator=integrate.DP54(atol=1e-6))
    process = Decay("decay", [1.0, 2.0])
    sim.add_process(process)
    sim.restore(Snapshot.load(DATA / "format_1_adaptive.npz"))
    decay = np.exp(-2 * 0.028)
    for row in process.value.tolist():
        assert row == pytest.approx([decay, 2 * decay], rel=1e-6)
    assert (stepper_of(sim).step_size > 0).all()
    sim.step(5)
    # As simstate 0.1.0 went on from there.
    want = [-0.047411095774670134, -0.01290436253426877, 0.02257437054897998]
    assert sim.data.qpos[:, 0].tolist() == pytest.approx(want, rel=1e-12)


def test_noise_starts_anew_and_says_so():
    sim = make(integrator=integrate.EulerMaruyama(), seed=3)
    gust = integrate.OrnsteinUhlenbeck("gust", [0.1], 1.0, 0.2)
    sim.add_process(gust)
    sim.step(2)
    with pytest.warns(RuntimeWarning, match="noise.*starts anew"):
        snapshot = Snapshot.load(DATA / "format_1_noise.npz")
    sim.restore(snapshot)
    assert len(set(gust.value[:, 0].tolist())) == 3
    slots = sim.snapshot().slots
    assert slots["random/count"].tolist() == [0, 0, 0]
    assert slots["random/world"].tolist() == [0, 1, 2]
    assert slots["random/seed"].tolist() == [3, 3, 3]


def test_it_is_checked_as_any_other():
    snapshot = Snapshot.load(DATA / "format_1_adaptive.npz")
    with pytest.raises(SnapshotError, match="process/decay"):
        make(integrator=integrate.DP54()).restore(snapshot)
