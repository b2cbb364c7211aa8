"""Constants of a model follow their parameters, and hand-written ones are kept."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import torch
from tests.raised import raises
from tests.tracer import lines_of, traced

from simstate import EntityCfg, InvalidInputError, SceneCfg, Simulation, StaleReadError


def expected(sim, world: int) -> mujoco.MjModel:
    """What plain MuJoCo makes of the parameters of a world."""
    model = copy.copy(sim.model)
    for name in ("body_mass", "body_ipos", "dof_armature"):
        getattr(model, name)[:] = sim.expand(name)[world]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def close(engine: str, got, want) -> None:
    tolerance = 1e-12 if engine == "native" else 2e-4
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_constants_follow_by_the_next_read_or_step(make_sim, engine):
    sim, twin = make_sim(engine, num_envs=3), make_sim(engine, num_envs=3)
    sim.expand("body_mass")[1, 2] *= 2.5
    sim.write_parameter("body_ipos", [[[0.03, -0.02, 0.01]]], [2], [2])
    sim.expand("dof_armature")[:, 4] += 0.1
    for world in range(3):
        model = expected(sim, world)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        close(engine, sim.data.subtree_com[world], data.subtree_com)
        for name in ("body_subtreemass", "dof_invweight0", "body_invweight0"):
            close(engine, sim.expand(name)[world], getattr(model, name))
    for name in ("body_mass", "body_ipos", "dof_armature"):
        twin.expand(name)[:] = sim.expand(name)
    twin.set_const()
    sim.step(5)
    twin.step(5)
    assert torch.equal(sim.state, twin.state)


def test_a_raw_write_in_one_world_leaves_the_others_alone(engine):
    """Their constants, which nothing changed, keep their bits."""
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")}, ground=True)
    sims = [
        Simulation(scene, num_envs=3, engine=engine, on_divergence="mask")
        for _ in range(2)
    ]
    for sim in sims:
        rows = torch.arange(sim.data.qvel.numel()).reshape(sim.data.qvel.shape)
        sim.data.qvel[:] = 0.3 * torch.sin(1.7 * rows.to(sim.dtype))
        sim.expand("body_mass")
    sims[1].expand("body_mass")[1, 2] = 3.0
    for sim in sims:
        for _ in range(15):
            sim.step(4)
    others = [0, 2]
    assert torch.equal(sims[0].state[others], sims[1].state[others])
    assert not sims[1].diverged.any()
    close(engine, sims[1].expand("dof_invweight0")[1],
          expected(sims[1], 1).dof_invweight0)  # fmt: skip
    sims[1].expand("body_mass")[1, 2] = float("nan")
    with raises(InvalidInputError, name="body_mass", worlds=[1]):
        sims[1].step()


def test_constants_are_computed_when_asked_to(make_sim):
    """Also where no input differs, by sim.set_const."""
    sim = make_sim("warp", num_envs=3)
    compiled = sim.expand("dof_invweight0").clone()
    sim.set_const(env_ids=[1])
    assert torch.equal(sim.expand("dof_invweight0")[[0, 2]], compiled[[0, 2]])
    computed = sim.expand("dof_invweight0")[1].clone()
    sim.set_const()
    assert torch.equal(sim.expand("dof_invweight0"), computed.expand(3, -1))
    assert not torch.equal(computed, compiled[1])


def test_a_constant_written_by_hand_is_kept(make_sim, engine):
    sim = make_sim(engine, num_envs=3)
    sim.write_parameter("dof_invweight0", [[7.5]], [3], [1])
    before = sim.expand("dof_invweight0").clone()
    sim.expand("body_mass")[:, 2] *= 1.5
    sim.step()
    after = sim.expand("dof_invweight0")
    assert torch.equal(after[1], before[1])
    for world in (0, 2):
        close(engine, after[world], expected(sim, world).dof_invweight0)
        assert not torch.equal(after[world], before[world])
    other = make_sim(engine, num_envs=3)
    other.restore(sim.snapshot())
    other.expand("body_mass")[:, 2] *= 1.1  # also after a restore
    other.step()
    assert torch.equal(other.expand("dof_invweight0")[1], before[1])


def test_strict_says_that_a_constant_is_stale(make_sim, engine):
    sim = make_sim(engine, num_envs=3, freshness="strict")
    sim.write_parameter("body_mass", [[3.0]], [2], [1])
    with raises(StaleReadError, name="body_subtreemass"):
        sim.expand("body_subtreemass")
    with raises(StaleReadError, name="subtree_com"):
        _ = sim.data.subtree_com
    sim.forward()
    close(engine, sim.expand("body_subtreemass")[1], expected(sim, 1).body_subtreemass)


def test_off_leaves_them_until_asked(make_sim):
    sim = make_sim("native", num_envs=2, freshness="off")
    before = sim.expand("body_subtreemass").clone()
    sim.expand("body_mass")[0, 2] *= 2.0
    sim.step()
    assert torch.equal(sim.expand("body_subtreemass"), before)
    sim.set_const()
    assert not torch.equal(sim.expand("body_subtreemass")[0], before[0])


def test_an_interruption_loses_no_constant(make_sim):
    sim = make_sim("native", num_envs=3)
    sim.write_parameter("dof_invweight0", [[7.5]], [3], [1])

    def change() -> None:
        sim.expand("body_mass")[:, 2] *= 1.01
        sim.forward()

    for line in range(0, lines_of(change), 2):
        traced(change, line)
        assert float(sim.expand("dof_invweight0")[1, 3]) == 7.5
        sim.forward()
        want = expected(sim, 2).dof_invweight0
        np.testing.assert_allclose(sim.expand("dof_invweight0")[2], want, rtol=1e-12)
