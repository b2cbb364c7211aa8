"""Distances, speeds and contacts of pairs of geoms, against MuJoCo's own functions."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import known_touches, measures_of, pairs_of, thickness_of, touches_in

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.step.touches import Touches, make_touches
from simstate.world.worlds import worlds_of

MODEL = """
<mujoco>
  <worldbody>
    <geom name="slope" type="plane" size="4 4 0.1" zaxis="0.2 -0.1 1" margin="0.01"/>
    <body name="ball" pos="0.1 0.2 0.6"><freejoint/>
      <geom name="ball" size="0.12" pos="0.05 -0.03 0.02" mass="1.3"/></body>
    <body name="box" pos="-0.5 0.3 0.7"><freejoint/>
      <geom name="box" type="box" size="0.2 0.1 0.05" pos="0.04 0 -0.02"
            euler="20 30 10" mass="2" margin="0.02"/></body>
    <body name="arm" pos="1 0 1.2"><joint name="hinge" axis="0 1 0" limited="true"
        range="-0.3 0.4"/>
      <geom name="arm" type="capsule" size="0.04" fromto="0 0 0 0.5 0 0.1" mass="0.7"/>
      <body name="tip" pos="0.5 0 0.1">
        <joint name="slide" type="slide" axis="1 0 0.3" limited="true"
          range="-0.1 0.1"/>
        <geom name="tip" type="ellipsoid" size="0.08 0.05 0.03" mass="0.2"/></body>
    </body>
  </worldbody>
  <tendon><fixed name="sum" limited="true" range="-0.35 0.35">
    <joint joint="hinge" coef="1"/><joint joint="slide" coef="2"/></fixed></tendon>
</mujoco>
"""
WORLDS = 5


@pytest.fixture(scope="module")
def sim() -> Simulation:
    entities = {"it": EntityCfg(model=MODEL)}
    made = Simulation(SceneCfg(entities=entities, ground=False), WORLDS)
    rng = np.random.default_rng(4)

    def drawn(size: float, *shape: int) -> torch.Tensor:
        return size * torch.as_tensor(rng.normal(size=shape))

    made.data.qpos[:] += drawn(0.15, *made.data.qpos.shape)
    made.data.qpos[:, [3, 10]] += 1.0
    for first in (3, 10):
        quat = made.data.qpos[:, first : first + 4]
        quat /= quat.norm(dim=1, keepdim=True)
    made.data.qvel[:] = drawn(1.0, *made.data.qvel.shape)
    made.data.qpos[0, 2] = 0.05  # in the slope
    made.data.qpos[1, 14] = 0.5  # beyond a limit
    made.data.qpos[2, 15] = -0.2
    return made


@pytest.fixture(scope="module")
def touches(sim: Simulation) -> Touches:
    found = make_touches(worlds_of(sim), 0.002)
    assert found is not None
    sim.forward()
    return found


def at(sim: Simulation, world: int) -> mujoco.MjData:
    data = mujoco.MjData(sim.model)
    data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
    mujoco.mj_forward(sim.model, data)
    return data


def test_distances_are_lower_bounds_and_exact_for_a_sphere_on_a_plane(sim, touches):
    gap, speed, turn = measures_of(touches)
    model, exact = sim.model, 0
    assert len(pairs_of(touches)) > 5
    for world in range(WORLDS):
        data = at(sim, world)
        for k, (a, b) in enumerate(pairs_of(touches).tolist()):
            names = {model.geom(a).name, model.geom(b).name}
            margin = max(model.geom_margin[a], model.geom_margin[b])
            distance = mujoco.mj_geomDistance(model, data, a, b, 10.0, None)
            assert float(gap[world, k]) <= distance - margin + 1e-6
            radii = model.geom_rbound[[a, b]].sum()
            assert float(gap[world, k]) >= distance - margin - 2 * radii
            if names == {"it/ball", "it/slope"}:
                exact += 1
                assert float(gap[world, k]) == pytest.approx(distance - margin)
                vel = velocity(model, data, model.geom("it/ball").id)
                normal = data.geom("it/slope").xmat.reshape(3, 3)[:, 2]
                assert float(speed[world, k]) == pytest.approx(abs(vel[3:] @ normal))
                assert float(turn[world, k]) == 0.0
            if names == {"it/box", "it/slope"}:
                vel = velocity(model, data, model.geom("it/box").id)
                size = np.linalg.norm(vel[:3]) * model.geom("it/box").rbound[0]
                assert float(turn[world, k]) == pytest.approx(size)
    assert exact == WORLDS


def velocity(model, data, geom: int) -> np.ndarray:
    """Angular, then linear velocity of a geom, world axes, by MuJoCo."""
    found, kind = np.zeros(6), mujoco.mjtObj.mjOBJ_GEOM.value
    mujoco.mj_objectVelocity(model, data, kind, geom, found, 0)
    return found


def test_speeds_of_two_bodies_are_relative(sim, touches):
    """Rate of the offset of one geom as another that turns observes it."""
    _, speed, turn = measures_of(touches)
    model, seen = sim.model, 0
    for k, (a, b) in enumerate(pairs_of(touches).tolist()):
        if "it/slope" in (model.geom(a).name, model.geom(b).name):
            continue
        for world in range(WORLDS):
            data = at(sim, world)
            one, other = velocity(model, data, a), velocity(model, data, b)
            offset = data.geom_xpos[a] - data.geom_xpos[b]
            moving = one[3:] - other[3:] - np.cross(other[:3], offset)
            assert float(speed[world, k]) == pytest.approx(np.linalg.norm(moving))
            spin = np.linalg.norm(one[:3] - other[:3]) * model.geom_rbound[a]
            is_ball = model.geom_type[a] == mujoco.mjtGeom.mjGEOM_SPHERE.value
            assert float(turn[world, k]) == pytest.approx(0.0 if is_ball else spin)
            seen += 1
    assert seen >= 3 * WORLDS


def test_contacts_and_limits_are_mujocos(sim, touches):
    model = sim.model
    found = touches_in(touches, [4, 0, 1, 2])
    assert list(found) == [4, 0, 1, 2]
    kinds = set()
    for world, keys in found.items():
        data, wanted = at(sim, world), {}
        for geoms in data.contact.geom[data.contact.exclude == 0].tolist():
            key = tuple(sorted(geoms))
            wanted[key] = wanted.get(key, 0) + 1
        types = mujoco.mjtConstraint
        for kind, label in (
            (types.mjCNSTR_LIMIT_JOINT, -1), (types.mjCNSTR_LIMIT_TENDON, -2),
        ):  # fmt: skip
            for element in data.efc_id[data.efc_type == kind.value].tolist():
                first = 0 if label == -2 else model.joint("it/hinge").id
                wanted[label, element - first] = 1
        kinds |= {min(key[0], 0) for key in wanted}
        assert dict(keys) == wanted, world
    assert kinds == {-2, -1, 0}


def test_steps_are_limited_by_the_way_of_the_fastest_pair(sim, touches):
    touches.begin(torch.ones(WORLDS, dtype=torch.bool))
    h = torch.full((WORLDS,), 0.5, dtype=torch.float64)
    share = touches.travel(h)
    gap, speed, turn = measures_of(touches)
    thickness = thickness_of(touches)
    model = sim.model
    half = {
        "it/slope": 0.0, "it/ball": 0.12, "it/box": 0.05, "it/arm": 0.04,
        "it/tip": 0.03,
    }  # fmt: skip
    for k, pair in enumerate(pairs_of(touches).tolist()):
        size = sum(half[model.geom(geom).name] for geom in pair)
        assert float(thickness[0, k]) == pytest.approx(size)
    for world in range(WORLDS):
        known, most = known_touches(touches)[world], 0.0
        for k, pair in enumerate(pairs_of(touches).tolist()):
            way = 2 * max(float(gap[world, k]), 0.0)
            v, w = float(speed[world, k]), float(turn[world, k])
            if tuple(sorted(pair)) in known or v * 0.5 < way:
                continue
            most = max(most, (v + w) * 0.5 / (way + 0.5 * float(thickness[0, k])))
        assert float(share[world]) == pytest.approx(most)
    assert float(share.max()) > 0.0
    assert float(touches.travel(0 * h).max()) == 0.0
