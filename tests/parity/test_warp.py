"""Warp against native: the same numbers at the same state, the same motion."""

from __future__ import annotations

import pytest
import torch

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.engine import FIELDS, Stage

QUADRUPED = SceneCfg(entities={"robot": EntityCfg(model="quadruped")})


@pytest.fixture(params=["small", "quadruped"])
def pair(request, small_model, random_rows):
    """The two engines at the same random states, out of the ground's reach."""
    scene = small_model if request.param == "small" else QUADRUPED
    sims = [Simulation(scene, 4, engine=name) for name in ("native", "warp")]
    rows = random_rows(sims[0].model, 4, seed=21, height=1.0).float()
    for sim in sims:
        sim.write_state(rows)
    return sims


def assert_close(warp, native, accuracy, name):
    """Equal to a fraction of the field's own size."""
    size = max(1.0, float(native.abs().max())) if native.numel() else 1.0
    torch.testing.assert_close(
        warp.double(), native.double(), rtol=0, atol=accuracy * size, msg=name
    )


def assert_quantities_close(warp, native, name):
    """The same, where NaN and infinity say that there is no such number."""
    assert warp.shape == native.shape, name
    finite = native.isfinite()
    torch.testing.assert_close(
        warp[~finite].double(), native[~finite].double(), equal_nan=True, msg=name
    )
    assert_close(warp[finite], native[finite], 1e-4, name)


def test_fields_agree_at_the_same_state(pair):
    native, warp = pair
    for name, field in FIELDS.items():
        if field.stage != Stage.ACCELERATION or field.is_state:
            assert_close(
                getattr(warp.data, name), getattr(native.data, name), 2e-5, name
            )


def test_evaluations_agree_at_the_same_state(pair):
    native, warp = pair
    native.forward()
    warp.forward()
    for name, field in FIELDS.items():
        if field.stage == Stage.ACCELERATION:
            assert_close(
                getattr(warp.data, name), getattr(native.data, name), 1e-4, name
            )


def test_quantities_agree_at_the_same_state(pair):
    native, warp = pair
    for name, entity in native.scene.items():
        other = warp.scene[name].data
        for quantity in entity.data.quantities:
            got, want = other.read(quantity), entity.data.read(quantity)
            assert_quantities_close(got, want, quantity)


def test_motion_without_contact_agrees(pair):
    native, warp = pair
    start = native.data.qpos.clone()
    native.step(20)
    warp.step(20)
    assert float((native.data.qpos - start).abs().max()) > 0.05
    for name in ("time", "qpos", "qvel", "act", "xpos", "cvel", "sensordata"):
        assert_close(getattr(warp.data, name), getattr(native.data, name), 2e-4, name)


def test_a_batch_of_one_is_a_world_of_many(make_sim, random_rows):
    many, one = make_sim("warp", 3), make_sim("warp", 1)
    rows = random_rows(many.model, 3, seed=22, height=-0.35)
    many.write_state(rows)
    one.write_state(rows[1:2])
    many.step(5)
    one.step(5)
    torch.testing.assert_close(one.state[0], many.state[1], rtol=1e-4, atol=1e-4)
    data, all_data = one.scene["model"].data, many.scene["model"].data
    for name in data.quantities:
        assert_quantities_close(data.read(name), all_data.read(name)[1:2], name)
