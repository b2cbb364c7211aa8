"""Any parameter of the model is drawn by world, and read back from both engines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, SceneCfg
from simstate.base.errors import InvalidInputError, SimStateError
from simstate.env import EventTermCfg, events

from .conftest import ROBOT

XML = ROBOT.replace(
    '<site name="foot"',
    '<camera name="eye" pos="0.1 0 0.2"/><light name="lamp" pos="0 0.2 1"/>'
    '<site name="foot"',
).replace(
    "<actuator>",
    '<contact><pair name="own" geom1="thigh" geom2="foot" friction="0.7 0.6 0.01 0.001 '
    '0.001"/></contact><actuator>',
)
FIELDS = {
    "body_mass": {},
    "geom_friction": {"columns": [0, 1], "names": ["foot", "shin"]},
    "geom_rgba": {"columns": [0, 1, 2], "names": "trunk"},
    "site_pos": {"operation": "add"},
    "cam_pos": {"operation": "add"},
    "light_pos": {"operation": "add"},
    "light_diffuse": {},
    "cam_fovy": {},
    "body_pos": {"operation": "add", "names": "shin"},
    "actuator_ctrlrange": {"operation": "add"},
    "jnt_range": {"names": "hip|knee"},
    "dof_armature": {"names": "hip|knee"},
    "dof_damping": {"names": "knee"},
    "actuator_gainprm": {"columns": [0]},
    "pair_friction": {"columns": [0]},
    "opt.gravity": {"columns": [2]},
}


def drawing(make_env, engine, field, **params):
    given = {"field": field, "value_range": (0.8, 1.3), **params}
    event = EventTermCfg(events.randomize_parameter, params=given, mode="reset")
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=XML)}, ground=True, timestep=0.005
    )
    return make_env(4, engine=engine, scene=scene, events={"draw": event})


@pytest.mark.parametrize("field", FIELDS)
def test_every_kind_of_parameter_is_drawn_and_read_back(make_env, engine, field):
    params = FIELDS[field]
    env = drawing(make_env, engine, field, **params)
    found = env.sim.expand(field).double().cpu()
    nominal = env.sim.model.opt.gravity if field == "opt.gravity" else getattr(
        env.sim.model, field
    )  # fmt: skip
    nominal = torch.as_tensor(np.asarray(nominal).copy()).double()
    change = found - nominal
    if params.get("operation") != "add":
        change = (found / nominal).where(nominal != 0.0, 1.0)
        changed = (change - 1.0).abs() > 1e-6
    else:
        changed = change.abs() > 1e-6
    assert bool(changed.any())
    same = changed.all(dim=0)
    assert torch.equal(changed.any(dim=0), same)  # the same elements in each world
    drawn = change[:, same]
    assert float(drawn.min()) >= 0.8 - 1e-5
    assert float(drawn.max()) <= 1.3 + 1e-5
    assert len({round(float(v), 9) for v in drawn[:, 0]}) == 4
    if "columns" in params and found.ndim == 3:
        elsewhere = [k for k in range(found.shape[2]) if k not in params["columns"]]
        assert not bool(changed[:, :, elsewhere].any())


def test_draws_are_about_the_model_and_do_not_pile_up(make_env):
    env = drawing(make_env, "native", "body_mass", shared=True)
    for _ in range(5):
        env.reset()
    share = env.sim.expand("body_mass")[:, 1:] / torch.as_tensor(
        env.sim.model.body_mass[1:]
    )
    assert 0.8 <= float(share.min()) <= float(share.max()) <= 1.3
    torch.testing.assert_close(share, share[:, :1].expand_as(share))
    assert float(share.std(dim=0)[0]) > 0.01


def test_a_range_over_decades_is_drawn_by_its_logarithm(make_env):
    env = drawing(
        make_env, "native", "dof_frictionloss", names="knee", operation="set",
        value_range=(1e-3, 1.0), distribution="log_uniform",
    )  # fmt: skip
    drawn = []
    for seed in range(60):
        env.reset(seed=seed)
        drawn.append(env.sim.expand("dof_frictionloss")[:, -1].clone())
    logs = torch.cat(drawn).log10()
    assert -3.0 <= float(logs.min()) < -2.7
    assert -0.3 < float(logs.max()) <= 0.0
    assert float(logs.mean()) == pytest.approx(-1.5, abs=0.2)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"field": "nothing_mass"}, "nothing_mass"),
        ({"field": "geom_friction", "names": "hand"}, "geom_friction"),
        ({"field": "body_mass", "value_range": (2.0, 1.0)}, "value_range"),
        ({"field": "body_mass", "operation": "times"}, "times"),
        ({"field": "body_mass", "distribution": "normal"}, "normal"),
        ({"field": "body_mass", "value_range": (0.0, 1.0),
          "distribution": "log_uniform"}, "log_uniform"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make_env, params, name):
    with raises((SimStateError, InvalidInputError), name=name):
        drawing(make_env, "native", **params)
