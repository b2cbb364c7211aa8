"""Slips that people make and that special values hide: each is caught here once.

No two worlds are alike, no attitude is the identity, no COM at the origin, no gear 1,
no ids in order. `make mutants` makes these slips, and looks whether a test notices.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
import torch

from simstate import Simulation, explain, integrate
from simstate.flight import FreeFlight
from simstate.flight.aircraft import aircraft_xml
from simstate.step.stochastic.sde_variables import brownian_integrals

BODY = """
<mujoco>
  <option timestep="0.004" gravity="0 0 0"/>
  <worldbody>
    <body name="craft" pos="0.3 -0.2 1" quat="0.5 -0.5 0.5 0.5">
      <freejoint/>
      <inertial pos="0.2 0.1 -0.3" mass="2" diaginertia="0.3 0.4 0.5"/>
    </body>
  </worldbody>
</mujoco>
"""


def turned(num_envs: int, **options) -> Simulation:
    """Worlds of one body, each with another attitude and velocity."""
    sim = Simulation(mujoco.MjModel.from_xml_string(BODY), num_envs, **options)
    generator = torch.Generator().manual_seed(3)
    quat = torch.randn(num_envs, 4, generator=generator, dtype=sim.dtype)
    sim.data.qpos[:, 3:] = quat / quat.norm(dim=1, keepdim=True)
    sim.data.qvel[:] = torch.randn(num_envs, 6, generator=generator, dtype=sim.dtype)
    return sim


def test_products_of_inertia_stay_where_they_are():
    inertia = torch.tensor(
        [[2.0, 0.1, -0.2], [0.1, 2.5, 0.3], [-0.2, 0.3, 3.0]], dtype=torch.float64
    )
    com = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    model = mujoco.MjModel.from_xml_string(aircraft_xml("a", 4.0, inertia, com))
    rot = np.zeros(9)
    mujoco.mju_quat2Mat(rot, model.body_iquat[1])
    rot = rot.reshape(3, 3)
    found = rot @ np.diag(model.body_inertia[1]) @ rot.T
    np.testing.assert_allclose(found, inertia.numpy(), atol=1e-12)


def test_a_selection_that_is_changed_in_place_counts_again():
    sim, twin = turned(4), turned(4)
    ids = np.array([2, 0])
    chosen = torch.from_numpy(ids)
    sim.step(1, env_ids=chosen)
    ids[:] = [3, 1]  # past torch's counter
    sim.step(2, env_ids=chosen)
    twin.step(1, env_ids=[0, 2])
    twin.step(2, env_ids=[1, 3])
    assert torch.equal(sim.state, twin.state)
    mask = torch.tensor([True, False, False, True])
    sim.step(1, env_ids=mask)
    mask[1] = True
    sim.step(1, env_ids=mask)
    np.testing.assert_allclose(
        sim.time.numpy(), 0.004 * np.array([3.0, 3.0, 1.0, 4.0]), atol=1e-12
    )


def test_the_time_integral_of_noise_has_its_variance():
    """Var ∫W = h³/3, Cov(W, ∫W) = h²/2: closed forms."""
    h, count = 0.3, 400_000
    generator = torch.Generator().manual_seed(1)
    w, z = math.sqrt(h) * torch.randn(2, count, generator=generator).double()
    integral = brownian_integrals(w, z, h)
    assert abs(float(integral.var()) / (h**3 / 3) - 1) < 0.01
    assert abs(float((integral * w).mean()) / (h**2 / 2) - 1) < 0.01


def test_a_thruster_turns_about_the_centre_of_mass():
    sim = turned(3, integrator=integrate.RK4())
    push, place = [1.0, -2.0, 0.5], [0.4, 0.3, 0.2]
    sim.add_force(integrate.Thruster("model", "craft", push, place))
    sim.forward()
    for world in range(3):
        data = mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(sim.model, data)
        rot = data.xmat[1].reshape(3, 3)
        force, point = rot @ push, data.xpos[1] + rot @ place
        mujoco.mj_applyFT(
            sim.model, data, force, np.zeros(3), point, 1, data.qfrc_applied
        )
        mujoco.mj_forward(sim.model, data)
        np.testing.assert_allclose(sim.data.qacc[world], data.qacc, atol=1e-12)


def test_drag_is_of_the_velocity_against_the_world():
    """A body at rest in a frame that moves at 4 m/s, in a wind of 1 m/s."""
    sim = Simulation(
        mujoco.MjModel.from_xml_string(BODY), 2, integrator=integrate.RK4()
    )
    gravity = integrate.PointMassGravity(mu=1e-9, position=(1e6, 0.0, 0.0))
    frame = integrate.MovingFrame(gravity, (9.0, 8.0, 7.0), (4.0, 0.0, 0.0))
    drag = integrate.Drag("model", "craft", 0.7, density=1.1, wind=(1.0, 0.0, 0.0))
    sim.add_process(frame)
    sim.add_force(drag)
    sim.forward()
    expected = -0.5 * 1.1 * 0.7 * 3.0**2 / 2.0  # m = 2 kg
    acc = sim.scene["model"].data.body_com_lin_acc_w[:, 0, 0]
    np.testing.assert_allclose(acc.numpy(), [expected] * 2, rtol=1e-9)


def test_seeding_some_worlds_leaves_the_others_alone():
    sim, twin = turned(3), turned(3)
    sim.rng.seed(99, torch.tensor([1]))
    mine, other = (each.rng.normal(slice(None), 4) for each in (sim, twin))
    assert torch.equal(mine[[0, 2]], other[[0, 2]])
    assert not torch.equal(mine[1], other[1])


def test_parts_of_a_state_are_kept_world_by_world():
    flight = FreeFlight(
        mass=3.0, inertia=np.diag([1.0, 2.0, 2.5]), com=(0.1, 0.0, 0.2), num_envs=3
    )
    places = torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]).double()
    speeds = torch.tensor([[10.0, 1, 0], [20, 2, 1], [30, 3, 2]]).double()
    flight.set_state(position_E_Eo=places, velocity_E__E=speeds)
    flight.set_state(velocity_E__E=[[5.0, 5, 5], [6, 6, 6]], env_ids=[2, 1])
    now = flight.get_state()
    torch.testing.assert_close(now.position_E_Eo, places)
    expected = torch.tensor([[10.0, 1, 0], [6, 6, 6], [5, 5, 5]]).double()
    torch.testing.assert_close(now.velocity_E__E, expected)


SERVO = """
<mujoco>
  <worldbody>
    <body pos="0 0 1">
      <joint name="a" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0.1"/>
    </body>
    <body pos="1 0 1">
      <joint name="b" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0.3"/>
    </body>
  </worldbody>
  <actuator>
    <position name="a" joint="a" kp="5" gear="3"/>
    <position name="b" joint="b" kp="7" gear="2"/>
  </actuator>
</mujoco>
"""


def test_targets_are_scaled_by_each_worlds_own_gear():
    sim = Simulation(mujoco.MjModel.from_xml_string(SERVO), 4)
    gears = torch.tensor([[1.0, 5.0], [2, 6], [3, 7], [4, 8]]).double()
    sim.expand("actuator_gear")[:, :, 0] = gears
    entity = sim.scene["model"]
    entity.set_joint_position_target([[0.1, 0.2], [0.3, 0.4]], env_ids=[3, 1])
    expected = torch.zeros(4, 2).double()
    expected[3] = torch.tensor([0.1, 0.2]).double() * gears[3]
    expected[1] = torch.tensor([0.3, 0.4]).double() * gears[1]
    torch.testing.assert_close(sim.data.ctrl[[3, 1]], expected[[3, 1]])


def test_the_others_accelerations_are_not_current_after_a_forward_of_one():
    sim, twin = turned(3), turned(3)
    for each in (sim, twin):
        each.step(2)
        each.data.qfrc_applied[:, 4] = torch.tensor([0.1, 0.2, 0.3]).double()
    sim.forward([0])
    data, other = sim.scene["model"].data, twin.scene["model"].data
    assert torch.equal(data.body_link_acc_w, other.body_link_acc_w)


def test_ids_in_any_order_step_the_worlds_that_they_name():
    sim, twin = turned(3), turned(3)
    sim.step(2, env_ids=[2, 0])
    twin.step(2)
    assert torch.equal(sim.state[[0, 2]], twin.state[[0, 2]])
    np.testing.assert_allclose(sim.time.numpy(), [0.008, 0.0, 0.008])


def test_an_adaptive_integrator_restarts_after_a_reset():
    def run(sim: Simulation) -> torch.Tensor:
        sim.data.qvel[:, 3:] = torch.tensor([[9.0, 1, 2], [3, 8, 1]]).double()
        for _ in range(5):
            sim.step()
        return sim.state.clone()

    model = mujoco.MjModel.from_xml_string(BODY)
    scheme = integrate.DP54(rtol=1e-9, atol=1e-9)
    sim, new = (Simulation(model, 2, integrator=scheme) for _ in range(2))
    sim.data.qvel[:, 3:] = 40.0
    sim.step(7)
    sim.reset()
    assert torch.equal(run(sim), run(new))


def test_an_explanation_names_the_slice_of_its_own_joint():
    two = "".join(
        f'<body name="{n}"><freejoint/><geom size="0.1"/></body>' for n in "pq"
    )
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{two}</worldbody></mujoco>"
    )
    text = str(vars(explain(model)["qvel[9]"]))
    assert "qvel[9:12]" in text
