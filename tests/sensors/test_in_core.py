"""Rays, Jacobians and the mass matrix in the compiled core, as the formulas have it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.inside import compiled_of
from tests.sensors.heap import ROCK, SLOPE, WALKER

from simstate import (
    EntityCfg,
    GridPattern,
    LidarPattern,
    RayCastCfg,
    SceneCfg,
    Simulation,
)
from simstate.engine import core
from simstate.engine.core import matrices

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

RAYS = {
    "scan": RayCastCfg(
        body="walker/trunk", pos=(0.02, 0.03, -0.04), offset=(0.1, 0.0, 0.7),
        alignment="yaw",
        pattern=GridPattern(size=(0.4, 0.3), direction=(0.1, 0.0, -2.0)),
        max_distance=1.05,
    ),
    "lidar": RayCastCfg(body="two/rock", pos=(0.0, 0.02, 0.1), exclude=(),
                        pattern=LidarPattern(channels=4, count=9)),
    "fixed": RayCastCfg(body="walker/left", alignment="world", exclude="walker/.*",
                        pattern=LidarPattern(channels=3, count=5)),
    "standing": RayCastCfg(pos=(0.213, 0.107, 1.5), groups=(0, 2)),
}  # fmt: skip


def make(seed: int) -> Simulation:
    sim = Simulation(
        SceneCfg(
            entities={
                "slope": EntityCfg(model=SLOPE),
                "walker": EntityCfg(model=WALKER),
                "two": EntityCfg(model=ROCK),
            },
            rays=RAYS,
            ground=False,
            timestep=0.003,
        ),
        num_envs=4,
    )
    rng = np.random.default_rng(seed)
    sim.data.qvel[:] += torch.as_tensor(rng.normal(size=sim.data.qvel.shape))
    sim.step(30)
    return sim


@pytest.fixture(scope="module")
def pair():
    """The same worlds in the core and without it."""
    with pytest.MonkeyPatch.context() as patch:
        ours = make(3)
        patch.setenv("SIMSTATE_CORE", "0")
        plain = make(3)
    assert compiled_of(ours) is not None
    assert compiled_of(plain) is None
    return ours, plain


@pytest.mark.parametrize("name", RAYS)
def test_rays(pair, name):
    ours, plain = (sim.rays[name] for sim in pair)
    assert ours.hit.any()
    for reading in ("height", "distance", "hit", "geom_id", "hit_pos_w", "normal_w"):
        got, want = ours.read(reading), plain.read(reading)
        np.testing.assert_allclose(got, want, 1e-12, 1e-13, err_msg=reading)
    if name == "scan":
        assert not ours.hit.all()  # what ends without a hit has a height, too


@pytest.mark.parametrize("at", ["link", "com", (0.1, -0.2, 0.05)])
@pytest.mark.parametrize("axes", ["w", "b", "own"])
def test_jacobians(pair, at, axes):
    for names in (["right_foot", "left", "trunk"], ["flap", "right_heel"], "left_foot"):
        got, want = (
            sim.scene["walker"].jacobian(names, at=at, axes=axes) for sim in pair
        )
        np.testing.assert_allclose(got, want, 1e-12, 1e-13)


def test_what_is_read_in_inference_mode_outlives_it(pair):
    for sim in pair:
        sim.forward()
        with torch.inference_mode():
            matrix = sim.scene["walker"].jacobian("left", axes="own")
            scan = sim.rays["scan"].distance
        for values in (matrix, scan):
            assert not values.is_inference()


def test_the_mass_matrix(pair):
    for name in ("walker", "two"):
        got, want = (sim.scene[name].dynamics.mass_matrix for sim in pair)
        assert torch.equal(got, want)


def test_many_dofs_are_in_blocks():
    """More than are taken at a time; against the sum that defines a Jacobian."""
    rng = np.random.default_rng(4)
    cdof = rng.normal(size=(3, 150, 6))
    pos, com = rng.normal(size=(3, 7, 3)), rng.normal(size=(3, 5, 3))
    moves = (rng.random((5, 150)) < 0.5).astype(float)
    points = matrices.Points.of([6, 2], [4, 1], [3, 0])
    got = matrices.jacobians(points, pos, cdof, com, moves)
    for j, (element, body, root) in enumerate(((6, 4, 3), (2, 1, 0))):
        arm = (pos[:, element] - com[:, root])[:, None]
        linear = cdof[..., 3:] + np.cross(cdof[..., :3], arm)
        want = np.concatenate([linear, cdof[..., :3]], axis=-1) * moves[body][:, None]
        np.testing.assert_allclose(got[:, j], want.transpose(0, 2, 1), 1e-13, 1e-13)


def test_what_does_not_fit_is_refused():
    cdof, pos = np.zeros((2, 3, 6)), np.zeros((2, 4, 3))
    com, moves = np.zeros((2, 5, 3)), np.zeros((5, 3))
    of = matrices.Points.of
    with pytest.raises(ValueError, match="elements has the id 4; there are 4"):
        matrices.jacobians(of([4], [1], [1]), pos, cdof, com, moves)
    with pytest.raises(ValueError, match="roots has the id -1"):
        matrices.jacobians(of([0], [1], [-1]), pos, cdof, com, moves)
    with pytest.raises(ValueError, match="moves must be an array of 15 float64"):
        matrices.jacobians(of([0], [1], [1]), pos, cdof, com, moves[:4])
    with pytest.raises(ValueError, match="There is no place 7"):
        matrices.entries(np.zeros((2, 7)), np.array([7, 0], np.int32))
