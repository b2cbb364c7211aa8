"""A small scene in which nothing is at the origin, level, or alike in two worlds."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from simstate import EntityCfg, GridPattern, RayCastCfg, SceneCfg, Simulation
from simstate.view.viewer import Viewer

ROBOT = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <body name="trunk" pos="0.2 -0.3 0.28">
      <freejoint name="root"/>
      <geom name="trunk" type="box" size="0.2 0.1 0.05" pos="0.03 0.01 0.02" mass="3"/>
      <site name="mount" pos="0.1 0.02 0.06" group="3"/>
      <body name="arm" pos="0.2 0.05 0.02" quat="0.9 0.1 0.3 0.2">
        <joint name="shoulder" axis="0 1 0.2" range="-1.2 0.9" limited="true"/>
        <geom name="arm" type="capsule" fromto="0 0 0 0.25 0.02 0" size="0.02" mass="0.4"/>
        <body name="hand" pos="0.25 0.02 0">
          <joint name="wrist" type="slide" axis="1 0 0" range="-0.05 0.08" limited="true"/>
          <geom name="hand" type="sphere" size="0.03" pos="0.01 0 0" mass="0.1"/>
          <site name="tip" pos="0.04 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cord"><site site="mount"/><site site="tip"/></spatial>
  </tendon>
  <actuator>
    <position name="shoulder" joint="shoulder" kp="4" ctrlrange="-1 0.8" ctrllimited="true"/>
    <motor name="wrist" joint="wrist" gear="3" ctrlrange="-2 2" ctrllimited="true"/>
  </actuator>
</mujoco>
"""  # noqa: E501
REACH = 0.065
"""How far the rays go [m]: some hit the floor, some do not."""
FLOOR = """
<mujoco><worldbody>
  <geom name="floor" type="plane" size="0 0 1" pos="0 0 0.02"/>
  <geom name="post" type="cylinder" size="0.05 0.3" pos="1 1 0.3"/>
</worldbody></mujoco>
"""


def make_sim(num_envs: int = 3, **options: object) -> Simulation:
    """Worlds that differ in pose, velocity, control and load."""
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=ROBOT), "place": EntityCfg(model=FLOOR)},
        ground=None,
        timestep=None,
        rays={
            "down": RayCastCfg(
                pattern=GridPattern(size=(0.3, 0.2), resolution=0.1),
                body="robot/trunk", pos=(0.02, 0.01, 0.0), max_distance=REACH,
            )
        },
    )  # fmt: skip
    sim = Simulation(scene, num_envs, **options)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(3)

    def drawn(*shape: int) -> torch.Tensor:
        return 2.0 * torch.rand(*shape, generator=generator, dtype=sim.dtype) - 1.0

    robot = sim.scene["robot"]
    root = robot.data.root_link_pose_w.clone()
    root[:, :2] += 0.3 * drawn(num_envs, 2)
    root[:, 3:] += 0.1 * drawn(num_envs, 4)
    root[:, 3:] /= root[:, 3:].norm(dim=1, keepdim=True)
    robot.write_root_link_pose_to_sim(root)
    robot.write_root_link_velocity_to_sim(drawn(num_envs, 6))
    robot.write_joint_position_to_sim(drawn(num_envs, 2) * torch.tensor([0.7, 0.04]))
    robot.write_joint_velocity_to_sim(drawn(num_envs, 2))
    robot.write_ctrl_to_sim(0.5 * drawn(num_envs, 2))
    robot.write_external_wrench_to_sim(
        drawn(num_envs, 3, 3) * 5.0, drawn(num_envs, 3, 3)
    )
    return sim


def run_until(
    viewer: Viewer, condition: Callable[[], object], what: str = "it"
) -> None:
    """Let the viewer run until something holds; fails after a minute."""
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within a minute"
        viewer.run(0.1)


class SlowClock:
    """The time of a machine on which nothing but drawing and waiting takes any."""

    def __init__(self) -> None:
        self.now = 70.0

    def perf_counter(self) -> float:
        """The time [s]."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass [s]."""
        self.now += seconds


def slow_down(viewer: Viewer, seconds: float, patch: pytest.MonkeyPatch) -> None:
    """Let the viewer draw for so long each time [s]."""
    clock = SlowClock()
    patch.setattr("simstate.view.viewer.time", clock)
    patch.setattr("simstate.view.session.time", clock)
    patch.setattr(viewer, "show", lambda: clock.sleep(seconds))


def run_on(viewer: Viewer, turns: int = 3) -> None:
    """Let the viewer run for a few turns."""
    for _ in range(turns):
        viewer.run(0.02)


def host(values: torch.Tensor) -> np.ndarray:
    """A tensor as an array of its own."""
    return values.detach().cpu().numpy().copy()
