"""The same results on both engines, MuJoCo's bits, and the satellite's orders."""

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from tests.mujoco_versions import its_rk4_is_ours

from simstate import Simulation, integrate
from simstate.scene import models

TUMBLING = """
<mujoco>
  <option gravity="0 0 0" timestep="0.01" integrator="RK4"/>
  <worldbody>
    <body name="body"><freejoint/>
      <inertial pos="0.1 0 0" mass="2" diaginertia="1 2 3"/>
    </body>
  </worldbody>
</mujoco>
"""


def shipped(name, integrator=mujoco.mjtIntegrator.mjINT_RK4):
    if name == "tumbling":
        return mujoco.MjModel.from_xml_string(TUMBLING)
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    model.opt.integrator = integrator
    return model


@its_rk4_is_ours
@pytest.mark.parametrize(
    "name", ["tumbling", "satellite", "glider", "arm", "quadruped", "humanoid"]
)
def test_manifold_rk4_has_mujocos_bits(name):
    model = shipped(name)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.5 * np.random.default_rng(0).standard_normal(model.nv)
    sim = Simulation(model, integrator=integrate.RK4(attitude="manifold"))
    for field in ("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "time"):
        getattr(sim.data, field)[0] = torch.as_tensor(getattr(data, field))
    for _ in range(10):
        mujoco.mj_step(model, data, nstep=100)
        sim.step(100)
        assert sim.data.qpos[0].tolist() == data.qpos.tolist()
        assert sim.data.qvel[0].tolist() == data.qvel.tolist()
    assert sim.time[0].item() == data.time


def satellite_end(integrator, timestep, seconds):
    model = shipped("satellite")
    model.opt.timestep = timestep
    sim = Simulation(model, integrator=integrator)
    spin = 0.5 * np.random.default_rng(1).standard_normal(model.nv)
    sim.data.qvel[0] = torch.as_tensor(spin)
    start = sim.data.qpos[0].clone().numpy(), sim.data.qvel[0].clone().numpy()
    sim.step(round(seconds / timestep))
    return start, sim.data.qpos[0].clone().numpy(), sim.data.qvel[0].clone().numpy()


@pytest.fixture(scope="module")
def satellite_reference():
    """Positions and velocities at 1 s by scipy, from mj_forward's accelerations."""
    model = shipped("satellite")
    data = mujoco.MjData(model)
    (qpos, qvel), _, _ = satellite_end(integrate.RK4(), 0.05, 0.05)

    def rate(t, y):
        data.qpos[:], data.qvel[:] = y[: model.nq], y[model.nq :]
        mujoco.mj_forward(model, data)
        w, x, y_, z = y[3:7]
        wx, wy, wz = data.qvel[3:6]
        turn = [
            -x * wx - y_ * wy - z * wz,
            w * wx + y_ * wz - z * wy,
            w * wy - x * wz + z * wx,
            w * wz + x * wy - y_ * wx,
        ]
        moves = [data.qvel[:3], 0.5 * np.array(turn), data.qvel[6:], data.qacc]
        return np.concatenate(moves)

    start = np.concatenate([qpos, qvel])
    found = solve_ivp(rate, (0, 1.0), start, "DOP853", rtol=1e-13, atol=1e-13)
    return found.y[: model.nq, -1], found.y[model.nq :, -1]


def angle(one, other):
    return 2 * np.arccos(min(1.0, abs(float(np.dot(one, other)))))


def errors(reference, integrator, timestep):
    _, qpos, qvel = satellite_end(integrator, timestep, 1.0)
    want_pos, want_vel = reference
    gap = qpos[3:7] * np.sign(np.dot(qpos[3:7], want_pos[3:7])) - want_pos[3:7]
    return 2 * np.linalg.norm(gap), np.abs(qvel - want_vel).max()


@pytest.mark.parametrize(
    ("scheme", "steps", "attitude_order", "velocity_order"),
    [
        (integrate.RK4(attitude="manifold"), (0.05, 0.025), 2, 2),
        (integrate.RK4(attitude="high_order"), (0.05, 0.025), 4, 4),
        (integrate.RK4(attitude="lie"), (0.05, 0.025), 4, 4),
        (integrate.Explicit(integrate.DP54().tableau), (0.05, 0.025), 5, 5),
        (integrate.Explicit(integrate.DOP853().tableau), (0.25, 0.125), 7, 7),
    ],
)
def test_orders_on_the_satellite(
    satellite_reference, scheme, steps, attitude_order, velocity_order
):
    coarse, fine = (errors(satellite_reference, scheme, h) for h in steps)
    attitude, velocity = np.log2(np.divide(coarse, fine))
    assert attitude > attitude_order - 0.35
    assert velocity > velocity_order - 0.35
    if scheme.attitude == "manifold":
        assert attitude < 2.4


@pytest.mark.parametrize("attitude", ["lie", "high_order", "manifold"])
def test_engines_agree(engine, attitude):
    def run(kind):
        sim = Simulation(
            shipped("tumbling"),
            3,
            engine=kind,
            integrator=integrate.RK4(attitude=attitude),
        )
        sim.add_force(integrate.Thruster("model", "body", (0.3, 0.1, 0.0)))
        sim.add_force(integrate.UniformGravity((0.0, 0.0, -1.0)))
        spin = torch.tensor([[0.1, 3.0, 0.1], [0, 0, 0], [1, 1, 1]], dtype=sim.dtype)
        sim.data.qvel[:, 3:] = spin
        sim.step(50)
        return sim.data.qpos.double(), sim.data.qvel.double()

    for got, want in zip(run(engine), run("native"), strict=True):
        torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5)


def test_adaptive_steps_and_mass_on_both_engines(engine):
    scheme = integrate.DP54(atol=1e-5, rtol=1e-5)
    sim = Simulation(shipped("tumbling"), 2, engine=engine, integrator=scheme)
    burn = integrate.Thruster(
        "model", "body", (1.0, 0.0, 0.0), (0.1, 0.0, 0.0), mass_flow=1.0
    )
    sim.add_force(burn)
    sim.step(100)
    want = torch.full((2,), float(np.log(2.0)), dtype=sim.dtype)
    torch.testing.assert_close(sim.data.qvel[:, 0], want, rtol=1e-4, atol=1e-4)
    mass = sim.expand("body_mass")[:, 1]
    torch.testing.assert_close(mass, torch.ones_like(mass), rtol=1e-5, atol=1e-5)


def test_a_moving_frame_keeps_float32_usable():
    mu, radius = 3.986004418e14, 7e6
    speed = float(np.sqrt(mu / radius))
    sim = Simulation(
        shipped("tumbling"), engine="warp", integrator=integrate.RK4(attitude="lie")
    )
    earth = integrate.PointMassGravity(mu)
    frame = integrate.MovingFrame(earth, (radius, 0.0, 0.0), (0.0, speed, 0.0))
    sim.add_process(frame)
    sim.data.qvel[0, 3:] = torch.tensor([0.1, 3.0, 0.1])
    still = Simulation(shipped("tumbling"), integrator=integrate.RK4(attitude="lie"))
    still.data.qvel[0, 3:] = torch.tensor([0.1, 3.0, 0.1], dtype=torch.float64)
    for one in (sim, still):
        one.step(100)
    quat = sim.data.qpos[0, 3:].double().numpy()
    assert angle(quat, still.data.qpos[0, 3:].numpy()) < 2e-3
    phase = 1.0 * speed / radius
    want = radius * torch.tensor([np.cos(phase), np.sin(phase), 0.0])
    torch.testing.assert_close(frame.position[0], want, rtol=0, atol=1e-2)


def test_joint_targets_act_at_the_time_of_each_stage():
    xml = """
    <mujoco>
      <option gravity="0 0 0" timestep="0.01"/>
      <worldbody><body><joint name="j" type="slide" axis="1 0 0"/>
        <geom size="0.1" mass="1" contype="0" conaffinity="0"/></body></worldbody>
      <actuator><position name="servo" joint="j" kp="40" kv="5"/></actuator>
    </mujoco>
    """
    model = mujoco.MjModel.from_xml_string(xml)
    sim = Simulation(model, 2, integrator=integrate.RK4())
    pace = torch.tensor([3.0, 5.0], dtype=torch.float64)
    sim.add_force(
        integrate.JointTargets(
            "model", "j", position=lambda t: (pace * t).sin()[:, None]
        )
    )
    sim.step(100)
    for world, w in enumerate(pace.tolist()):
        found = solve_ivp(
            lambda t, y, w=w: [y[1], 40 * (np.sin(w * t) - y[0]) - 5 * y[1]],
            (0, 1),
            [0, 0],
            rtol=1e-12,
            atol=1e-12,
        )
        got = [sim.data.qpos[world, 0].item(), sim.data.qvel[world, 0].item()]
        np.testing.assert_allclose(got, found.y[:, -1], atol=2e-6)
    assert sim.data.ctrl.abs().max() == 0  # the user's own control is as it was
