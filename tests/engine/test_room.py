"""Contacts or constraints that MuJoCo Warp has no room for: reported and isolated."""

from __future__ import annotations

import re
import warnings

import mujoco
import pytest
import torch
from tests.inside import set_unread_steps
from tests.raised import raises

from simstate import DivergenceError, ModelError, Simulation, WarpCfg, integrate

BALLS = """
<mujoco model="balls">
  <option timestep="0.003"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    {bodies}
  </worldbody>
</mujoco>
""".format(
    bodies="".join(
        f'<body name="b{i}" pos="{i} 0 1"><freejoint/>'
        f'<geom type="sphere" size="{0.1 + 0.02 * i}" pos="0.01 0 0"/></body>'
        for i in range(5)
    )
)
ON_THE_GROUND = {1: 5, 4: 4}
"""How many balls touch the ground, in the worlds where some do."""
ROOMY = WarpCfg(contacts_per_world=20, constraints_per_world=80)
TIGHT = [
    WarpCfg(contacts_per_world=1, constraints_per_world=80),
    WarpCfg(contacts_per_world=20, constraints_per_world=12),
]


def make(cfg: WarpCfg, **options) -> Simulation:
    model = mujoco.MjModel.from_xml_string(BALLS)
    sim = Simulation(model, 6, engine=cfg, **options)
    qpos = sim.data.qpos.clone().view(6, 5, 7)
    for world in range(6):
        for ball in range(5):
            down = ball < ON_THE_GROUND.get(world, 0)
            height = 0.1 + 0.02 * ball - 0.004 if down else 0.9 + 0.1 * world
            qpos[world, ball, 2] = height
    sim.data.qpos[:] = qpos.view(6, -1)
    sim.data.qvel[:, 1] = torch.linspace(-1, 1, 6)
    return sim


def reported(caught: list[warnings.WarningMessage]) -> list[list[int]]:
    """The worlds that each warning names."""
    found = [re.search(r"of 6 worlds \(([\d, ]+)\)", str(w.message)) for w in caught]
    return [[int(i) for i in match[1].split(",")] for match in found if match]


def test_the_scene_is_as_described():
    sim = make(ROOMY)
    model = mujoco.MjModel.from_xml_string(BALLS)
    for world in range(6):
        data = mujoco.MjData(model)
        data.qpos[:] = sim.data.qpos[world]
        mujoco.mj_forward(model, data)
        assert data.ncon == ON_THE_GROUND.get(world, 0)


@pytest.mark.parametrize("cfg", TIGHT, ids=["contacts", "constraints"])
def test_each_forward_names_the_worlds(cfg):
    sim = make(cfg)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sim.forward()
        (worlds,) = reported(caught)
        assert worlds
        assert set(worlds) <= set(ON_THE_GROUND)
        assert "WarpCfg(contacts_per_world=" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.forward([5, 0])


def test_room_for_constraints_is_counted_by_world():
    sim = make(TIGHT[1])  # four balls need 16 rows, or 12 with condim 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sim.forward()
    assert reported(caught) == [[1, 4]]


def test_a_read_that_evaluates_warns():
    sim = make(TIGHT[1])
    with pytest.warns(RuntimeWarning, match=r"2 of 6 worlds \(1, 4\)"):
        _ = sim.scene["model"].data.body_link_acc_w


@pytest.mark.parametrize("integrator", [None, integrate.RK4()], ids=["own", "RK4"])
@pytest.mark.parametrize("cfg", TIGHT, ids=["contacts", "constraints"])
def test_raise_names_them_and_the_others_move_as_with_room(cfg, integrator):
    sim, twin = (make(c, integrator=integrator) for c in (cfg, ROOMY))
    before = sim.state.clone()
    with (
        pytest.warns(RuntimeWarning, match="dropped contacts or constraints"),
        pytest.raises(DivergenceError) as caught,
    ):
        sim.step(3)
    twin.step(3)
    bad = caught.value.env_ids
    assert bad
    assert set(bad) <= set(ON_THE_GROUND)
    others = [world for world in range(6) if world not in bad]
    torch.testing.assert_close(sim.state[others], twin.state[others], rtol=0, atol=0)
    torch.testing.assert_close(sim.state[bad], before[bad], rtol=0, atol=0)


@pytest.mark.parametrize("cfg", TIGHT, ids=["contacts", "constraints"])
def test_mask_counts_them_each_time(cfg):
    sim, twin = make(cfg, on_divergence="mask"), make(ROOMY)
    with pytest.warns(RuntimeWarning, match="dropped contacts or constraints"):
        sim.step(2)
    assert sim.divergence.cause is not None
    assert "dropped contacts" in sim.divergence.cause.elements[0]
    bad = sim.diverged.nonzero().flatten().tolist()
    assert bad
    assert set(bad) <= set(ON_THE_GROUND)
    others = [world for world in range(6) if world not in bad]
    twin.step(2)
    torch.testing.assert_close(sim.state[others], twin.state[others], rtol=0, atol=0)
    sim.reset(bad)
    assert not sim.diverged.any()


@pytest.mark.parametrize("unread", [1, 3, 16])
def test_contacts_that_come_within_a_call_are_seen(unread, monkeypatch):
    """The second of the ten steps of a call is the first that drops any.

    Whenever the host looks at what was kept of them.
    """
    set_unread_steps(monkeypatch, unread)
    sim = make(WarpCfg(contacts_per_world=1, constraints_per_world=80))
    qpos = sim.data.qpos.view(6, 5, 7)
    qpos[:, :, 2] += 1.0
    for ball in range(5):
        qpos[3, ball, 2] = 0.1 + 0.02 * ball + 0.001
        qpos[2, ball, 2] = 0.1 + 0.02 * ball + 0.003
    sim.data.qvel.view(6, 5, 6)[2:4, :, 2] = -0.5
    with (
        pytest.warns(RuntimeWarning, match="dropped contacts or constraints"),
        pytest.raises(DivergenceError) as caught,
    ):
        sim.step(10)
    assert caught.value.env_ids in ([2, 3], [2], [3])


def test_native_refuses_and_keeps_what_was():
    model = mujoco.MjModel.from_xml_string(
        BALLS.replace("<worldbody>", '<size memory="18K"/><worldbody>')
    )
    sim = Simulation(model, 3)
    sim.step()
    sim.data.qpos[1] = make(ROOMY).data.qpos[1].double()
    before = sim.state.clone()
    with raises(ModelError, worlds=[1]):
        sim.step()
    assert torch.equal(sim.state, before)
    sim.step(env_ids=[0, 2])


def test_native_names_the_worlds_whose_contacts_it_drops():
    boxes = "".join(
        f'<body pos="{i % 9} {i // 9} {2 + 0.01 * i}"><freejoint/>'
        '<geom type="box" size=".1 .2 .1"/></body>'
        for i in range(40)
    )
    xml = (
        '<mujoco><size memory="100K"/><worldbody><geom type="plane" size="9 9 1"/>'
        f"{boxes}</worldbody></mujoco>"
    )
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 3, on_divergence="mask")
    twin = Simulation(mujoco.MjModel.from_xml_string(xml), 3)
    for each in (sim, twin):
        each.data.qvel[:, 1] = torch.tensor([0.1, 0.2, 0.3])
    sim.data.qpos.view(3, 40, 7)[1, :, 2] = 0.09
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=r"1 of 3 worlds \(1\): .*contacts"):
            sim.forward()
    with pytest.warns(RuntimeWarning, match=r"1 of 3 worlds \(1\): .*contacts"):
        sim.step(4)
    assert sim.diverged.tolist() == [False, True, False]
    assert sim.divergence.cause is not None
    assert "Too many contacts" in sim.divergence.cause.elements[0]
    twin.step(4)
    assert torch.equal(sim.state[[0, 2]], twin.state[[0, 2]])
