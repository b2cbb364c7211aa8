"""Thrusters, drag and processes: parameters of each world, and clear errors else."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import slot_of
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.integrate import (
    RK4,
    Drag,
    EulerMaruyama,
    GeometricBrownian,
    MovingFrame,
    OrnsteinUhlenbeck,
    PointMassGravity,
    Thruster,
    UniformGravity,
)

BODY = """
<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body name="body">
  <freejoint/><inertial pos="0.1 -0.2 0.3" mass="2" diaginertia="1 2 2.5"/>
</body></worldbody></mujoco>
"""
F64 = torch.float64


def body(num_envs=3, integrator=None, **options):
    model = mujoco.MjModel.from_xml_string(BODY)
    sim = Simulation(model, num_envs, integrator=integrator or RK4(), **options)
    turn = torch.tensor([0.8, 0.2, -0.4, 0.4], dtype=sim.dtype)
    sim.data.qpos[:, 3:7] = turn / turn.norm()
    return sim


def com_acc(sim):
    sim.forward()
    return sim.scene["model"].data.body_com_lin_acc_w[:, 0]


def test_a_thruster_of_each_world():
    sim = body()
    force = torch.tensor([[1.0, 2, 3], [4, 5, 6], [-7, 8, 9]], dtype=F64)
    place = torch.tensor([[0.1, -0.2, 0.3]] * 3, dtype=F64) + force.flip(0)
    share = torch.tensor([0.2, 1.0, 0.5], dtype=F64)
    flow = [0.1, 0.2, 0.0]
    thruster = Thruster("model", "body", force, place, flow, share)
    sim.add_force(thruster)
    rot = sim.data.xmat[:, 1]
    pushed = (rot @ (share[:, None] * force)[..., None])[..., 0]
    torch.testing.assert_close(com_acc(sim), pushed / 2)
    arm = place - torch.tensor([0.1, -0.2, 0.3], dtype=F64)
    moment = torch.linalg.cross(arm, share[:, None] * force)
    inertia = torch.tensor([1, 2, 2.5], dtype=F64)
    torch.testing.assert_close(sim.data.qacc[:, 3:6], moment / inertia)
    assert set(thruster.parameters) >= {"force", "position", "mass_flow", "throttle"}
    thruster.parameters["throttle"][1] = 0.0  # plain numbers, which may be written
    assert com_acc(sim)[1].abs().max() == 0
    sim.step(5)
    got = sim.expand("body_mass")[:, 1]
    torch.testing.assert_close(got, 2 - 0.5 * torch.tensor([0.02, 0.0, 0.0]).double())


def test_a_throttle_out_of_range_is_refused_and_gains_no_mass():
    sim = body()

    def gap(t):
        return torch.where(t > 0.15, -1.0, 1.0) * torch.tensor([0, 0.5, 0.5]).double()

    sim.add_force(Thruster("model", "body", (3, 0, 0), mass_flow=0.1, throttle=gap))
    sim.step()
    before = sim.state.clone()
    with raises(InvalidInputError, name="throttle"):
        sim.step()
    assert torch.equal(sim.state, before)
    for wrong in (-0.1, 1.1, [0.2, 0.3, float("nan")]):
        with raises(InvalidInputError, name="throttle"):
            Thruster("model", "body", (3, 0, 0), throttle=wrong)


def test_propellant_ends_at_the_dry_mass():
    sim = body()
    dry = [1.5, 1.9, 0.0]
    sim.add_force(Thruster("model", "body", (2, 0, 0), mass_flow=0.5, dry_mass=dry))
    sim.step(15)
    mass = sim.expand("body_mass")[:, 1].numpy()
    assert mass == pytest.approx([1.5, 1.9, 1.25], abs=0.05 + 1e-12)
    assert com_acc(sim)[:2].abs().max() < 1e-12


def test_a_body_never_becomes_a_speck():
    sim = body(num_envs=2)
    # After 19.99999999 steps of 0.1 kg nothing is left.
    sim.add_force(Thruster("model", "body", (2, 0, 0), mass_flow=[1 - 5e-10, 0.1]))
    with raises(InvalidInputError, name="body"):
        sim.step(20)


def test_drag_of_each_world_in_wind_that_depends_on_place_and_time():
    sim = body()
    area, density = torch.tensor([0.2, 0.4, 0.8]).double(), [1.0, 0.5, 1.2]

    def wind(t, pos):
        return torch.stack([2 * t, pos[:, 2], 0 * t - 1], dim=-1)

    sim.add_force(Drag("model", "body", area, density, wind))
    sim.data.qvel[:, :3] = torch.tensor([[3.0, 1, 2], [5, 0, 1], [-2, 2, 2]]).double()
    sim.data.time[:] = 0.7
    height = sim.data.xipos[:, 1, 2]
    air = torch.stack([torch.full_like(height, 1.4), height, 0 * height - 1], -1)
    seen = sim.data.qvel[:, :3] - air
    size = 0.5 * area * torch.tensor(density).double() / 2
    want = -size[:, None] * seen.norm(dim=-1, keepdim=True) * seen
    torch.testing.assert_close(com_acc(sim), want)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 3)])
def test_a_wind_is_one_vector_or_that_of_each_world(shape):
    sim = body()  # three worlds
    sim.add_force(Drag("model", "body", 1.0, 1.0, lambda t, pos: torch.zeros(shape)))
    with raises(ShapeError, name="wind(t, position)"):
        sim.forward()


def test_drag_is_against_the_world_in_every_frame():
    body_xml = BODY.replace('timestep="0.1"', "").replace("option ", "option ")
    scene = SceneCfg(
        entities={name: EntityCfg(model=body_xml) for name in ("one", "two")},
        ground=False, gravity=(0, 0, 0),
    )  # fmt: skip
    sim = Simulation(scene, 2, integrator=RK4())
    places = {"one": (7e6, 1e5, 0.0), "two": (0.0, 7.2e6, 3e5)}
    speeds = {"one": (0.0, 7500.0, 100.0), "two": (-7300.0, 50.0, 20.0)}
    for name in places:
        gravity = PointMassGravity(3.986e14, entity=name, gradient_torque=False)
        sim.add_process(MovingFrame(gravity, places[name], speeds[name]))
        thin = Drag(name, "body", 2.0, lambda pos: 1e-12 * pos.norm(dim=-1) / 7e6)
        sim.add_force(thin)
    sim.forward()
    for k, name in enumerate(places):
        v = np.array(speeds[name])
        com = np.array(places[name]) + sim.data.xipos[1, k + 1].numpy()
        rho = 1e-12 * np.linalg.norm(com) / 7e6
        want = -rho * np.linalg.norm(v) * v / 2
        r, d = np.array(places[name]), sim.data.xipos[1, k + 1].numpy()
        n2 = r @ r
        tide = -3.986e14 / n2**1.5 * (d - 3 * (d @ r) / n2 * r)
        got = sim.scene[name].data.body_com_lin_acc_w[1, 0].numpy()
        np.testing.assert_allclose(got, want + tide, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Drag("model", "body", [0.2, 0.3]), "area"),
        (lambda: Drag("model", "body", 1.0, density=[[1.0]]), "density"),
        (lambda: Drag("model", "body", 1.0, wind=[1.0, 2.0]), "wind"),
        (lambda: Drag("model", "body", 0.0), "area"),
        (lambda: Drag("model", "body", 1.0, density="air"), "density"),
        (lambda: Thruster("model", "body", 3.0), "force"),
        (lambda: Thruster("model", "body", (1, 0, 0), mass_flow=-1),
         "mass_flow"),
        (lambda: Thruster("model", "body", [[1, 0, 0]] * 2), "force"),
        (lambda: UniformGravity([[0, 0, 1]] * 2), "acceleration"),
        (lambda: UniformGravity((0, 0)), "acceleration"),
        (lambda: UniformGravity((0, 0, np.inf)), "acceleration"),
    ],
)  # fmt: skip
def test_wrong_numbers_say_which(make, name):
    with raises((ShapeError, InvalidInputError), name=name):
        body().add_force(make())


def test_processes_of_each_world():
    sim = body(2, EulerMaruyama())
    tau = [[1.0, 2.0], [4.0, 0.5]]
    mean = torch.tensor([[3.0, -1.0], [0.5, 2.0]], dtype=F64)
    gust = OrnsteinUhlenbeck("gust", [0.2, 0.4], tau, std=[0.3, 0.6], mean=mean)
    sim.add_process(gust)
    want = (mean - torch.tensor([0.2, 0.4]).double()) / torch.tensor(tau).double()
    torch.testing.assert_close(gust.rate(sim.time, sim), want)
    spread = gust.diffusion(sim.time, sim)["gust"]
    sigma = torch.tensor([0.3, 0.6]).double() * (2 / torch.tensor(tau).double()).sqrt()
    torch.testing.assert_close(spread, torch.diag_embed(sigma))
    price = GeometricBrownian("price", [2.0], [[0.1], [0.3]], 0.2)
    sim.add_process(price)
    assert price.rate(sim.time, sim).flatten().tolist() == pytest.approx([0.2, 0.6])
    for wrong, name in (
        ({"time_constant": -1.0, "std": 1.0}, "time_constant"),
        ({"time_constant": 1.0, "std": [1.0, 2.0, 3.0]}, "std"),
        ({"time_constant": "long", "std": 1.0}, "time_constant"),
        ({"time_constant": torch.ones(3, 2), "std": 1.0}, "time_constant"),
    ):
        with raises((ShapeError, InvalidInputError), name=name):
            sim.add_process(OrnsteinUhlenbeck("x", [0.0, 0.0], **wrong))


def test_parameters_are_written_as_they_are_given():
    """In place, as a whole or a row for each world; what is refused leaves them."""
    sim = body(3)
    push = Thruster("model", "body", (1.0, 0, 0), throttle=0.5)
    push.parameters["force"] = [2.0, 0, 4.0]
    sim.add_force(push)
    push.parameters["force"] *= 1.5
    assert push.parameters["force"].tolist() == [[3.0, 0, 6.0]] * 3
    rows = torch.arange(9.0).reshape(3, 3)
    push.parameters["force"] = rows
    push.parameters["throttle"] = 0.25
    assert slot_of(sim, "parameter/Thruster/force").equal(rows.double())
    for parameter, wrong, name in (
        ("throttle", 1.5, "throttle"),
        ("throttle", [0.1, 0.2], "throttle"),
        ("force", [1.0, 2.0], "force"),
        ("force", torch.ones(2, 3), "force"),
        ("dry_mas", 1.0, "dry_mas"),
    ):
        with raises(SimStateError, name=name):
            push.parameters[parameter] = wrong
    assert push.parameters["force"].equal(rows.double())
    assert push.parameters["throttle"].tolist() == [0.25] * 3


def test_parameters_are_part_of_the_worlds():
    sim = body(3)
    one = Thruster("model", "body", force=[[1.0, 0, 0], [2.0, 0, 0], [3.0, 0, 0]])
    two = Thruster("model", "body", force=(0.0, 5.0, 0))
    sim.add_force(one)
    sim.add_force(two)
    kept = sim.snapshot([2, 0])
    one.parameters["force"][:] = 9.0
    two.parameters["force"][1] = 7.0
    sim.restore(kept, [2, 0])
    assert one.parameters["force"].tolist() == [[1.0, 0, 0], [9.0] * 3, [3.0, 0, 0]]
    assert two.parameters["force"][:, 1].tolist() == [5.0, 7.0, 5.0]
    before = sim.data.qacc.clone()
    one.parameters["force"][:, 2] += 4.0
    assert not torch.equal(sim.data.qacc, before)
    air = Drag("model", "body", 1.0)
    air.parameters.attach(sim)
    with raises(InvalidInputError, name="parameters"):
        air.parameters.attach(body(3))
