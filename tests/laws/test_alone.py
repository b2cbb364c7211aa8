"""A world of a batch has the bits that it would have alone."""

import pytest
import torch

from simstate import EntityCfg, SceneCfg, Simulation, integrate

WORLDS = 11  # some of them at once, the rest one by one


def scene(model):
    ground = None if model == "quadruped" else False
    return SceneCfg(entities={"robot": EntityCfg(model=model)}, ground=ground)


def stirred(model, num_envs, seed=3, **options):
    """Worlds in the states of a larger batch's first ones."""
    many = Simulation(scene(model), WORLDS)
    drawn = torch.Generator().manual_seed(seed)
    qpos, qvel = many.data.qpos, many.data.qvel
    qpos += 0.3 * torch.randn(qpos.shape, generator=drawn, dtype=qpos.dtype)
    qvel += 2.0 * torch.randn(qvel.shape, generator=drawn, dtype=qvel.dtype)
    sim = Simulation(scene(model), num_envs, **options)
    sim.write_state(many.state[:num_envs])
    return sim


@pytest.mark.parametrize("model", ["quadruped", "satellite", "arm"])
def test_every_quantity_of_a_world_is_the_same_alone(model):
    differing = set()
    for seed in range(3, 20):
        batch, alone = stirred(model, WORLDS, seed), stirred(model, 1, seed)
        for sim in (batch, alone):
            sim.step(2)
        one, of_many = (sim.scene["robot"].data for sim in (alone, batch))
        for name in one.quantities:
            first = of_many.read(name)[:1]
            if not torch.equal(one.read(name).nan_to_num(), first.nan_to_num()):
                differing.add(name)
    assert not differing


def test_adaptive_steps_with_a_force_of_ones_own_are_the_same_alone():
    ends = []
    for num_envs in (WORLDS, 1):
        sim = stirred(
            "satellite", num_envs, integrator=integrate.DP54(rtol=1e-9, atol=1e-11)
        )
        body = sim.scene["robot"]

        def pull(t, sim, body=body):
            sim.data.xfrc_applied[:, 1, :3] -= 3.0 * body.data.root_link_pos_w

        sim.add_force(pull)
        for _ in range(5):
            sim.step(100)
        ends.append(sim.state[:1].clone())
    assert torch.equal(*ends)
