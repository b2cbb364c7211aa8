"""What once slipped between the places where a world's numbers were kept."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest
import torch
import warp as wp
from tests.inside import columns_of
from tests.raised import raises

from simstate import (
    DivergenceError,
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    SimStateError,
    Simulation,
    SnapshotError,
    StaleReadError,
    integrate,
)
from simstate.base.errors import IntegrationError

ROBOT = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <body name="base" pos="0.2 -0.1 1.5" quat="0.8 0.2 -0.4 0.4">
      <freejoint/>
      <geom type="box" size=".1 .2 .3" mass="2" pos=".03 -.02 .05"/>
      <body name="arm" pos=".3 0 0">
        <joint name="hinge" axis="0 1 0" damping=".1"/>
        <geom size=".05" mass=".5" pos=".1 .02 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="hinge" kp="3" gear="2"/></actuator>
</mujoco>
"""
SCENE = SceneCfg(
    entities={"robot": EntityCfg(model=ROBOT)}, ground=False, timestep=0.004
)


def make(num_envs: int = 3, **options) -> Simulation:
    sim = Simulation(SCENE, num_envs, **options)
    spread = torch.linspace(-1.0, 1.0, num_envs * 7, dtype=sim.dtype)
    sim.data.qvel[:] = spread.reshape(num_envs, 7)
    return sim


# Writes that torch does not count.


def by_numpy(field: torch.Tensor) -> None:
    field.numpy()[1] += 0.25


def by_data(field: torch.Tensor) -> None:
    field.data[1] += 0.25


def by_dlpack(field: torch.Tensor) -> None:
    torch.from_dlpack(field)[1] += 0.25


def by_apply(field: torch.Tensor) -> None:
    field.apply_(lambda value: value + 0.25)


def by_map(field: torch.Tensor) -> None:
    field.map_(field.clone(), lambda value, _: value + 0.25)


def by_warp(field: torch.Tensor) -> None:
    wp.init()
    alias = wp.to_torch(wp.from_torch(field, requires_grad=False))
    alias.data[1] += 0.25


@pytest.mark.parametrize(
    "write", [by_numpy, by_data, by_dlpack, by_apply, by_map, by_warp]
)
def test_forward_is_the_remedy_for_uncounted_writes(engine, write):
    sim = make(engine=engine)
    data = sim.scene["robot"].data
    names = (
        "joint_pos",
        "joint_pos_biased",
        "joint_pos_target",
        "body_link_pos_w",
        "body_link_vel_w",
        "body_link_lin_acc_w",
        "body_com_ang_acc_w",
    )
    for name in names:
        data.read(name)
    for field in ("qpos", "ctrl", "qvel"):
        write(getattr(sim.data, field))
    sim.forward()
    twin = make(engine=engine)
    twin.write_state(sim.state)
    for name in names:
        got, want = data.read(name), twin.scene["robot"].data.read(name)
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


def test_other_memory_in_a_field_is_refused():
    sim = make()
    sim.data.ctrl.set_(torch.ones(3, 1, dtype=sim.dtype))
    with raises(InvalidInputError, name="sim.data.ctrl"):
        sim.step()


# Processes.


class Decay(integrate.Process):
    """dx/dt = −2x."""

    def rate(self, t, sim):
        return -2.0 * self.value


def with_process(**options) -> tuple[Simulation, Decay]:
    sim = make(integrator=integrate.RK4(), **options)
    process = Decay("push", [1.0, 2.0])
    sim.add_process(process)

    def push(t, sim):
        sim.data.xfrc_applied[:, 1, 0] += process.value[:, 1]

    sim.add_force(push)
    return sim, process


def test_a_write_to_a_process_is_seen():
    sim, process = with_process()
    before = sim.data.qacc.clone()
    process.value[2, 1] = 7.0
    now = sim.data.qacc
    assert torch.equal(now[:2], before[:2])
    assert not torch.equal(now[2], before[2])


def test_a_write_to_a_process_is_stale_in_strict_mode():
    sim, process = with_process(freshness="strict")
    sim.forward()
    process.value += 1.0
    with raises(StaleReadError, name="qacc"):
        _ = sim.data.qacc


def test_a_process_that_is_assigned_keeps_its_memory():
    sim, process = with_process()
    memory = process.value
    process.value = torch.full_like(memory, 0.25)
    assert process.value is memory
    saved = sim.snapshot().slots[f"process/{process.name}"]
    assert bool((saved == 0.25).all())


# Selections.


def test_ids_that_numpy_changed_select_other_worlds():
    sim = make()
    array = np.array([0, 1])
    ids = torch.from_numpy(array)
    robot = sim.scene["robot"]
    robot.write_joint_position_to_sim([[0.1], [0.2]], env_ids=ids)
    array[:] = [2, 0]
    robot.write_joint_position_to_sim([[0.3], [0.4]], env_ids=ids)
    assert robot.data.joint_pos[:, 0].tolist() == [0.4, 0.2, 0.3]
    array[:] = [7, 0]
    with raises(InvalidInputError, name="env_ids"):
        robot.write_joint_position_to_sim([[0.3], [0.4]], env_ids=ids)
    mask = torch.tensor([True, False, False])
    robot.write_joint_position_to_sim([[0.5]], env_ids=mask)
    mask.numpy()[:] = [False, False, True]
    robot.write_joint_position_to_sim([[0.6]], env_ids=mask)
    assert robot.data.joint_pos[:, 0].tolist() == [0.5, 0.2, 0.6]


def test_a_partial_step_in_inference_mode_does_no_harm():
    sim, twin = make(), make()
    for each in (sim, twin):
        each.data.qpos[:, 2] += 0.5
    with torch.inference_mode():
        sim.step(env_ids=[2, 0])
    twin.step(env_ids=[2, 0])
    for each in (sim, twin):
        each.step(2, env_ids=[1])
        each.step()
    assert torch.equal(sim.state, twin.state)
    assert torch.equal(
        sim.scene["robot"].data.body_link_vel_w,
        twin.scene["robot"].data.body_link_vel_w,
    )


def test_parameters_that_are_first_asked_for_in_inference_mode(engine):
    sim, twin = make(engine=engine), make(engine=engine)
    with torch.inference_mode():
        sim.expand("body_mass")[1, 1] = 3.0
        sim.expand("dof_invweight0")
        sim.step()
        saved = sim.snapshot()
    twin.expand("body_mass")[1, 1] = 3.0
    twin.step()
    for each in (sim, twin):
        each.expand("body_mass")[0, 1] = 2.0
        each.step(2, env_ids=[0, 2])
        each.expand("dof_invweight0")[2] *= 1.5
        each.step()
    assert torch.equal(sim.state, twin.state)
    sim.restore(saved)
    twin.restore(saved)
    sim.step()
    twin.step()
    assert torch.equal(sim.state, twin.state)


# Restoring.


def everything(sim: Simulation) -> dict[str, torch.Tensor]:
    return sim.snapshot().slots


def altered(snapshot, name, value):
    slots = {key: tensor.clone() for key, tensor in snapshot.slots.items()}
    header = {**snapshot.header, "slots": dict(snapshot.header["slots"])}
    if value is None:
        del slots[name]
        del header["slots"][name]
    else:
        slots[name] = value
        header["slots"].setdefault(name, {"owner": "sim"})
    return type(snapshot)(header, slots)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("entity/ghost/encoder_bias", torch.zeros(3, 1), "entity/ghost/encoder_bias"),
        ("entity/robot/colour", torch.zeros(3, 1), "entity/robot/colour"),
        ("model/body_colour", torch.zeros(3, 3), "body_colour"),
        ("model/body_mass", torch.ones(3, 2), "model/body_mass"),
        ("qpos", torch.zeros(3, 7, dtype=torch.float64), "slots"),
        ("qpos", torch.zeros(3, 8, dtype=torch.int64), "qpos"),
        ("qvel", torch.full((3, 7), torch.nan), "qvel"),
        ("ctrl", torch.full((3, 1), torch.inf), "ctrl"),
        ("random/count", torch.zeros(2, dtype=torch.int64), "slots"),
        ("entity/robot/encoder_bias", None, "entity/robot/encoder_bias"),
        ("diverged", torch.zeros(3), "diverged"),
    ],
)
def test_a_snapshot_that_does_not_fit_changes_nothing(engine, name, value, match):
    sim = make(engine=engine)
    sim.step(2)
    snapshot = sim.snapshot()
    sim.step(3)
    before = everything(sim)
    with raises(SnapshotError, name=match) as caught:
        sim.restore(altered(snapshot, name, value))
    assert "Nothing was written" in str(caught.value)
    after = everything(sim)
    assert after.keys() >= before.keys()
    for key, kept in before.items():
        assert torch.equal(after[key], kept), key


def test_a_number_that_is_not_finite_is_taken_of_a_diverged_world():
    sim = make(on_divergence="mask")
    snapshot = sim.snapshot()
    qvel = snapshot.slots["qvel"].clone()
    qvel[1, 2] = torch.nan
    bad = altered(snapshot, "qvel", qvel)
    with raises(SnapshotError, name="qvel"):
        sim.restore(bad)
    bad.slots["diverged"][1] = True
    sim.restore(bad)
    assert bool(sim.data.qvel[1, 2].isnan())
    sim.step()
    assert sim.time.tolist() == [0.004, 0.0, 0.004]


# Force models.


@pytest.mark.parametrize("integrator", [None, integrate.RK4(), integrate.DP54()])
@pytest.mark.parametrize("way", ["raw", "writer", "memory"])
def test_a_force_model_that_writes_the_state_is_refused(integrator, way):
    sim = make(integrator=integrator)
    mine = sim.memory("mine", (2,), stage="acceleration")

    def teleport(t, sim):
        if way == "raw":
            sim.data.qpos[:, 2] += 0.1
        elif way == "writer":
            sim.scene["robot"].write_joint_position_to_sim([[0.3]])
        else:
            mine[:] += 1.0

    sim.add_force(teleport)
    before = everything(sim)
    names = {"raw": "qpos", "writer": "qpos", "memory": "mine"}
    with pytest.raises(InvalidInputError) as caught:
        sim.step()
    assert names[way] in caught.value.name
    for key, kept in everything(sim).items():
        assert torch.equal(kept, before[key]), key


# The whole state as one tensor.


def test_the_state_can_be_written_on_every_engine(engine):
    sim = make(engine=engine)
    columns = columns_of(sim)
    sim.state[1, columns["qpos"].start + 2] = 7.0
    assert sim.data.qpos[:, 2].tolist() == pytest.approx([1.5, 7.0, 1.5])
    assert float(sim.scene["robot"].data.root_link_pos_w[1, 2]) == 7.0
    rows = sim.state
    sim.step()
    rows[2, columns["ctrl"].start] = 0.5  # an old copy on warp: the rest is not undone
    assert sim.data.ctrl[:, 0].tolist() == [0.0, 0.0, 0.5]
    assert float(sim.time[2]) == pytest.approx(0.004)
    sim.state[:] += 0.125
    assert float(sim.data.ctrl[2, 0]) == 0.625


def test_switches_of_equalities_have_the_engines_dtype(engine):
    xml = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body>
    <body name="b"><joint/><geom size=".1"/></body></worldbody>
    <equality><weld body1="a" body2="b"/></equality></mujoco>"""
    scene = SceneCfg(entities={"it": EntityCfg(model=xml)}, ground=False)
    sim = Simulation(scene, 3, engine=engine)
    assert sim.data.eq_active.dtype == sim.dtype
    sim.data.qpos[:, 0] = 1.0
    sim.data.eq_active[1] = 0.0
    sim.step(5)
    pulled = sim.data.qvel[:, :3].abs().sum(1) - sim.data.qvel[1, :3].abs().sum()
    assert float(pulled[0]) > 0.1
    assert float(pulled[2]) > 0.1
    snapshot = sim.snapshot()
    sim.reset()
    assert sim.data.eq_active[:, 0].tolist() == [1.0, 1.0, 1.0]
    sim.restore(snapshot)
    assert sim.data.eq_active[:, 0].tolist() == [1.0, 0.0, 1.0]


def test_a_network_writes_numbers_not_its_graph(engine):
    sim = make(engine=engine)
    net = torch.nn.Linear(7, 1, dtype=sim.dtype)
    for _ in range(3):
        out = net(sim.data.qvel)
        sim.data.ctrl[:] = out
        sim.step()
        assert not sim.data.ctrl.requires_grad
        assert torch.equal(sim.data.ctrl, out.detach())
    assert not sim.state.requires_grad


# What diverged is named.


@pytest.mark.parametrize("value", [torch.inf, torch.nan, 1e20])
def test_a_bad_control_is_named(engine, value):
    sim = make(engine=engine)
    sim.data.ctrl[1, 0] = value
    with raises(DivergenceError, worlds=[1]) as caught:
        sim.step()
    assert caught.value.env_ids == [1]
    assert sim.time.tolist()[1] == 0.0
    assert sim.time.tolist()[2] > 0.0


def test_a_bad_time_is_named(engine):
    sim = make(engine=engine)
    sim.data.time[2] = torch.nan
    with raises(DivergenceError, worlds=[2]):
        sim.step()


def test_a_tolerance_that_cannot_be_met_is_a_divergence():
    sim = make(integrator=integrate.DP54(atol=1e-12, rtol=1e-12, min_step=1e-3))
    before = sim.state.clone()
    with pytest.raises(DivergenceError) as caught:
        sim.step(20)
    assert isinstance(caught.value, IntegrationError)
    assert caught.value.env_ids
    assert set(caught.value.env_ids) <= {0, 1, 2}
    assert torch.equal(sim.state, before)


# Warnings.


def crowded() -> mujoco.MjModel:
    """A model with too little memory for its contacts, about which MuJoCo warns."""
    boxes = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for x, y, z in ((0, 0, 0.09), (0.05, 0, 0.28), (0.02, 0.03, 0.47))
    )
    for kilobytes in range(16, 40):
        model = mujoco.MjModel.from_xml_string(
            f'<mujoco><size memory="{kilobytes}K"/><worldbody>'
            f'<geom type="plane" size="5 5 1"/>{boxes}</worldbody></mujoco>'
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                Simulation(model, 2).step(3)
            except RuntimeWarning:
                return model
            except SimStateError:
                continue  # too little even for the solver
    pytest.fail("no size of memory makes MuJoCo warn")


def test_a_warning_that_is_an_error_undoes_the_step():
    model = crowded()
    sim = Simulation(model, 2)
    before = everything(sim)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="memory"):
            sim.step(3)
    for key, kept in everything(sim).items():
        assert torch.equal(kept, before[key]), key
    want = Simulation(model, 2).scene["model"].data.body_link_pos_w
    assert torch.equal(sim.scene["model"].data.body_link_pos_w, want)
