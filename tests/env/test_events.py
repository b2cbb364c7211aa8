"""Events: every effect is read back from the engine, world by world, on both engines.

A randomised parameter is not trusted because it was written: each test measures what it
does to the motion, or lets plain MuJoCo compute it with that parameter.
"""

from __future__ import annotations

import copy
from itertools import pairwise

import mujoco
import pytest
import torch
from tests.raised import raises

from simstate import CollisionCfg, EntityCfg, SceneCfg
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    Env,
    EventTermCfg,
    SceneEntityCfg,
    VelocityCommandCfg,
    events,
)

from .conftest import ROBOT

G = 9.81
INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION.value


def event(function: object, mode: str = "startup", **params: object) -> dict:
    """One event of some mode."""
    options = {"interval_s": (0.1, 0.2)} if mode == "interval" else {}
    return {"event": EventTermCfg(function, params=params, mode=mode, **options)}


def asset(**names: object) -> SceneEntityCfg:
    return SceneEntityCfg("robot", **names)


def all_differ(values: torch.Tensor) -> bool:
    """Whether no two worlds have the same values."""
    return values.flatten(1).unique(dim=0).shape[0] == values.shape[0]


def accelerations(env: Env) -> torch.Tensor:
    """The engine's accelerations at the present state."""
    env.sim.forward()
    return env.sim.data.qacc.double()


def plain_accelerations(env: Env, change: object) -> torch.Tensor:
    """Plain MuJoCo's, with a model that `change(model, world)` made for each world."""
    rows = []
    for world in range(env.num_envs):
        model = copy.copy(env.sim.model)
        change(model, world)
        data = mujoco.MjData(model)
        mujoco.mj_setConst(model, data)
        row = env.sim.state[world].double().numpy()
        mujoco.mj_setState(model, data, row, INTEGRATION)
        mujoco.mj_forward(model, data)
        rows.append(torch.tensor(data.qacc.copy()))
    return torch.stack(rows)


def assert_same_motion(env: Env, change: object, engine: str) -> None:
    """The engine moves as plain MuJoCo does with the changed models.

    Its error is a small part of what the change makes out, in every world.
    """
    torch.manual_seed(0)
    env.sim.data.qvel[:] = torch.randn(env.sim.data.qvel.shape).to(env.sim.dtype)
    env.sim.data.ctrl[:] = torch.randn(env.sim.data.ctrl.shape).to(env.sim.dtype)
    got, expected = accelerations(env), plain_accelerations(env, change)
    unchanged = plain_accelerations(env, lambda model, world: None)
    effect = (unchanged - expected).abs().amax(1)
    error = (got - expected).abs().amax(1)
    share = 1e-6 if engine == "native" else 0.05
    assert float(effect.min()) > 1e-3
    assert bool((error < share * effect).all()), (error, effect)


def test_masses_differ_by_world_with_their_inertias(make_env, engine):
    body = asset(body_names=["trunk", "shin"])
    env = make_env(
        engine=engine,
        events=event(events.randomize_mass, mass_range=(0.5, 1.5), asset_cfg=body),
    )
    data = env.scene["robot"].data
    nominal = torch.tensor(env.sim.model.body_mass[1:]).to(env.sim.dtype)
    ratio = data.body_mass / nominal
    assert all_differ(ratio[:, [0, 2]])
    assert bool(((ratio[:, [0, 2]] >= 0.5) & (ratio[:, [0, 2]] < 1.5)).all())
    torch.testing.assert_close(ratio[:, 1], torch.ones_like(ratio[:, 1]))

    def change(model: mujoco.MjModel, world: int) -> None:
        for body in (1, 3):
            factor = float(ratio[world, body - 1])
            model.body_mass[body] *= factor
            model.body_inertia[body] *= factor

    assert_same_motion(env, change, engine)


@pytest.mark.parametrize(
    ("operation", "span", "low", "high"),
    [("add", (0.5, 1.0), 2.5, 3.0), ("set", (4.0, 5.0), 4.0, 5.0)],
)
def test_masses_can_be_added_to_or_set(make_env, operation, span, low, high):
    env = make_env(
        events=event(
            events.randomize_mass,
            mass_range=span,
            operation=operation,
            asset_cfg=asset(body_names="trunk"),
        )
    )
    mass = env.scene["robot"].data.body_mass[:, 0]
    assert bool(((mass >= low) & (mass < high)).all())
    inertia = env.scene["robot"].data.body_inertia[:, 0]
    expected = torch.tensor(env.sim.model.body_inertia[1]) * (mass / 2.0)[:, None]
    torch.testing.assert_close(inertia, expected)


def test_centres_of_mass_differ_by_world(make_env, engine):
    env = make_env(
        engine=engine,
        events=event(
            events.randomize_com,
            com_range={"x": (-0.05, 0.05), "z": (0.02, 0.04)},
            asset_cfg=asset(body_names="trunk"),
        ),
    )
    placed = env.sim.expand("body_ipos")[:, 1].double()
    shift = placed - torch.tensor(env.sim.model.body_ipos[1])
    assert all_differ(shift)
    assert float(shift[:, 0].abs().max()) <= 0.05
    torch.testing.assert_close(shift[:, 1], torch.zeros(4).double(), atol=1e-7, rtol=0)
    assert float(shift[:, 2].min()) > 0.019
    # The engine's own centre of mass: where it is in the world, upright.
    data = env.scene["robot"].data
    offset = (data.root_com_pos_w - data.root_link_pos_w).double()
    torch.testing.assert_close(offset, placed, atol=1e-6, rtol=0)
    assert_same_motion(
        env,
        lambda model, world: model.body_ipos.__setitem__(1, placed[world].numpy()),
        engine,
    )


def test_friction_decides_how_far_a_foot_slides(make_env, engine):
    """A foot dragged over the ground is braked by friction times its weight."""
    foot = asset(geom_names="foot")
    env = make_env(
        engine=engine,
        events=event(
            events.randomize_friction, friction_range=(0.2, 0.6), asset_cfg=foot
        ),
    )
    geom = env.sim.model.geom("robot/foot").id
    friction = env.sim.expand("geom_friction")[:, geom].double()
    assert all_differ(friction)
    assert float(friction[:, 0].min()) >= 0.2
    assert float(friction[:, 0].max()) < 0.6
    # Torsional and rolling friction stay as they were.
    nominal = torch.tensor(env.sim.model.geom_friction[geom, 1:])
    torch.testing.assert_close(friction[:, 1:], nominal.expand(4, 2), atol=1e-7, rtol=0)
    # The foot presses on the ground while the whole slides along y.
    env.scene["robot"].write_root_link_pose_to_sim([[0, 0, 0.4788, 1, 0, 0, 0]])
    env.scene["robot"].write_joint_position_to_sim([[0.0, 0.0]])
    env.sim.data.qvel[:, 1] = 30.0
    env.sim.data.qvel[:, 2] = -0.2
    env.sim.forward()
    force = env.sim.data.qfrc_constraint.double()
    assert float(force[:, 2].min()) > 1.0
    slip = -force[:, 1] / force[:, 2]
    torch.testing.assert_close(slip, friction[:, 0], atol=0, rtol=2e-2)


def test_friction_that_would_have_no_effect_is_refused(make_env):
    """MuJoCo takes the greater of two frictions: the ground's would hide it."""
    trunk = asset(geom_names="trunk")
    low = event(events.randomize_friction, friction_range=(0.2, 2.0), asset_cfg=trunk)
    with raises(InvalidInputError, name="friction"):
        make_env(events=low)
    robot = EntityCfg(
        model=ROBOT, collisions=(CollisionCfg(geoms="trunk", priority=1),)
    )
    make_env(events=low, scene=SceneCfg(entities={"robot": robot}))
    make_env(
        events=event(
            events.randomize_friction, friction_range=(1.1, 2.0), asset_cfg=trunk
        )
    )


def test_gains_scale_the_servos_forces(make_env, engine):
    env = make_env(
        engine=engine,
        events=event(
            events.randomize_gains,
            stiffness_range=(0.5, 1.5),
            damping_range=(0.2, 0.4),
        ),
    )
    env.scene["robot"].write_joint_state_to_sim([[0.2, 0.6]], [[0.0, 0.0]])
    env.sim.data.ctrl[:] = 0.0
    env.sim.forward()
    pulled = env.scene["robot"].data.actuator_force.double()
    stiffness = -pulled / (torch.tensor([0.2, 0.6]) * torch.tensor([20.0, 15.0]))
    assert all_differ(stiffness)
    assert bool(((stiffness >= 0.5) & (stiffness < 1.5)).all())
    env.scene["robot"].write_joint_state_to_sim([[0.0, 0.0]], [[1.0, 2.0]])
    env.sim.forward()
    braked = env.scene["robot"].data.actuator_force.double()
    damping = -braked / (torch.tensor([1.0, 2.0]) * torch.tensor([1.0, 0.5]))
    assert all_differ(damping)
    assert bool(((damping >= 0.2) & (damping < 0.4)).all())
    # A target is still where it rests: gain and bias moved together.
    env.scene["robot"].set_joint_position_target([[0.3, 0.4]])
    env.scene["robot"].write_joint_state_to_sim([[0.3, 0.4]], [[0.0, 0.0]])
    env.sim.forward()
    force = env.scene["robot"].data.actuator_force
    assert float(force.abs().max()) < 1e-5


@pytest.mark.parametrize("parameter", ["damping", "armature", "frictionloss"])
def test_joint_parameters_differ_by_world(make_env, engine, parameter):
    operation = "add" if parameter == "frictionloss" else "scale"
    env = make_env(
        engine=engine,
        events=event(
            events.randomize_joints,
            parameter=parameter,
            value_range=(0.5, 2.0),
            operation=operation,
            asset_cfg=asset(joint_names="knee"),
        ),
    )
    field = f"dof_{parameter}"
    values = env.sim.expand(field)[:, 7].double()
    assert all_differ(values[:, None])
    nominal = getattr(env.sim.model, field)
    changed = values / nominal[7] if operation == "scale" else values - nominal[7]
    assert bool(((changed >= 0.499) & (changed < 2.001)).all())
    others = env.sim.expand(field)[:, :7].double()
    torch.testing.assert_close(
        others, torch.tensor(nominal[:7]).expand(4, 7), atol=1e-7, rtol=0
    )
    assert_same_motion(
        env,
        lambda model, world: getattr(model, field).__setitem__(7, float(values[world])),
        engine,
    )


def test_encoder_biases_differ_by_world(make_env, engine):
    env = make_env(
        engine=engine,
        events=event(
            events.randomize_encoder_bias,
            bias_range=(-0.05, 0.05),
            asset_cfg=asset(joint_names="knee"),
        ),
    )
    data = env.scene["robot"].data
    bias = data.joint_pos_biased - data.joint_pos
    assert all_differ(bias)
    assert not bias[:, 0].any()
    assert float(bias.abs().max()) <= 0.0501


def test_parameters_are_drawn_about_the_model_and_do_not_pile_up(make_env):
    mass_range = (1.5, 1.6)
    env = make_env(events=event(events.randomize_mass, "reset", mass_range=mass_range))
    for _ in range(6):
        env.reset()
    ratio = env.scene["robot"].data.body_mass / torch.tensor(
        env.sim.model.body_mass[1:]
    )
    assert bool(((ratio >= 1.5) & (ratio < 1.6)).all())


@pytest.mark.parametrize("engine", ["native"])
def test_parameters_change_in_the_reset_worlds_alone(make_env, given, engine):
    env = make_env(
        engine=engine,
        events=event(events.randomize_mass, "reset", mass_range=(0.5, 1.5)),
    )
    for action in given(env, 3):
        env.step(action)
    mass = env.scene["robot"].data.body_mass.clone()
    force = env.scene["robot"].data.actuator_force.clone()
    env.reset(env_ids=[2])
    now = env.scene["robot"].data.body_mass
    assert torch.equal(now[[0, 1, 3]], mass[[0, 1, 3]])
    assert not torch.equal(now[2], mass[2])
    # Forces of the last evaluation are not recomputed in the other worlds.
    assert torch.equal(
        env.scene["robot"].data.actuator_force[[0, 1, 3]], force[[0, 1, 3]]
    )


def test_root_and_joints_are_placed_about_their_defaults(make_env, engine):
    env = make_env(
        50,
        engine=engine,
        events={
            "root": EventTermCfg(
                events.reset_root_state,
                params={
                    "pose_range": {"x": (-1, 1), "z": (0.1, 0.2), "yaw": (-3, 3)},
                    "velocity_range": {"y": (0.5, 1.0), "yaw": (-2, -1)},
                },
                mode="reset",
            ),
            "joints": EventTermCfg(
                events.reset_joints,
                params={"position_range": (-0.8, 0.1), "velocity_range": (1.0, 2.0)},
                mode="reset",
            ),
        },
    )
    qpos, qvel = env.sim.data.qpos.double(), env.sim.data.qvel.double()
    assert all_differ(qpos[:, :7])
    assert float(qpos[:, 0].abs().max()) <= 1.0
    assert bool(((qpos[:, 2] >= 0.7) & (qpos[:, 2] < 0.8001)).all())
    assert not qpos[:, [1, 4, 5]].any()  # y, and what is not a turn about z
    yaw = 2.0 * torch.atan2(qpos[:, 6], qpos[:, 3])
    assert float(yaw.abs().max()) <= 3.0
    assert float(yaw.std()) > 1.0
    torch.testing.assert_close(env.scene["robot"].data.heading_w.double(), yaw)
    assert bool(((qvel[:, 1] >= 0.5) & (qvel[:, 1] < 1.0)).all())
    assert bool(((qvel[:, 5] > -2.0001) & (qvel[:, 5] < -1.0)).all())
    assert not qvel[:, [0, 2, 3, 4]].any()
    # Within the limits: the knee's are (−0.2, 1.5), its default 0.3.
    assert float(qpos[:, 8].min()) == pytest.approx(-0.2)
    assert float(qpos[:, 8].max()) > 0.2
    assert bool(((qvel[:, 6:] >= 1.0) & (qvel[:, 6:] < 2.0)).all())


def test_pushes_come_at_intervals_of_each_worlds_own(make_env, engine):
    pushed = event(
        events.push_by_setting_velocity, "interval",
        velocity_range={"x": (5.0, 6.0), "yaw": (1.0, 2.0)},
    )  # fmt: skip
    env = make_env(6, engine=engine, events=pushed, episode_length_s=10.0)
    env.sim.expand("opt.gravity")[:] = 0.0
    hits: list[list[bool]] = []
    velocity = env.sim.data.qvel.clone()
    for _ in range(30):
        env.step(torch.zeros(6, 2))
        change = (env.sim.data.qvel - velocity).double()
        hits.append((change[:, 0] > 4.0).tolist())
        for world in range(6):
            if hits[-1][world]:
                assert 4.0 < float(change[world, 0]) < 7.0
                assert float(change[world, 5].abs()) > 0.5
        velocity = env.sim.data.qvel.clone()
    gaps = set()
    for world in range(6):
        times = [k for k in range(30) if hits[k][world]]
        gaps |= {b - a for a, b in pairwise(times)}
        assert 2 <= len(times) <= 6
    assert gaps <= set(range(5, 11))  # 0.1 to 0.2 s are 5 to 10 steps
    assert len(gaps) > 2
    assert len({tuple(world) for world in zip(*hits, strict=True)}) > 1


@pytest.mark.parametrize("steps", [1, 10, 15, 50])
def test_a_time_of_whole_steps_lasts_that_many_steps(make_env, steps):
    """Clocks count down in float32: rounding errors do not add a step."""
    span, calls = (0.02 * steps, 0.02 * steps), []
    command = VelocityCommandCfg(resampling_time_s=span, lin_vel_x=(-1.0, 1.0))
    pushes = {"duration_s": span, "pause_s": span, "force_range": {"x": (3.0, 5.0)}}
    env = make_env(
        2,
        commands={"speed": command},
        events={
            "interval": EventTermCfg(
                lambda env, env_ids: calls.append(env.common_step_counter),
                mode="interval",
                interval_s=span,
            ),
            "impulses": EventTermCfg(events.Impulses, mode="step", params=pushes),
        },
    )
    commanded, pushed = env.commands["speed"].command, env.sim.data.xfrc_applied
    drawn, changes = commanded.clone(), ([], [])
    is_pushed = False
    for k in range(1, 3 * steps + 1):
        env.step(torch.zeros(2, 2))
        if not torch.equal(commanded, drawn):
            changes[0].append(k)
            drawn = commanded.clone()
        if bool(pushed.any()) != is_pushed:
            changes[1].append(k)
            is_pushed = not is_pushed
    want = [steps, 2 * steps, 3 * steps]
    assert (calls, *changes) == (want, want, want)


def test_modes_run_when_they_should(make_env, given):
    calls: list[tuple[str, list[int]]] = []

    def note(mode: str) -> object:
        return lambda env, env_ids: calls.append((mode, env_ids.tolist()))

    env = make_env(
        3,
        events={
            "a": EventTermCfg(note("startup"), mode="startup"),
            "b": EventTermCfg(note("reset"), mode="reset"),
        },
        episode_length_s=0.04,
    )
    assert calls == [("startup", [0, 1, 2]), ("reset", [0, 1, 2])]
    calls.clear()
    env.reset(env_ids=[1])
    for action in given(env, 2):
        env.step(action)
    assert calls == [("reset", [1]), ("reset", [0, 1, 2])]
    calls.clear()
    env.reset(seed=1, env_ids=[2])
    assert calls == [("startup", [2]), ("reset", [2])]


@pytest.mark.parametrize(
    ("function", "params", "error", "name"),
    [
        (events.randomize_mass, {"mass_range": (-1.0, 0.5)}, InvalidInputError,
         "mass_range"),
        (events.randomize_mass, {"mass_range": (1, 2), "operation": "times"},
         UnknownNameError, "times"),
        (events.randomize_com, {"com_range": {"roll": (0, 1)}}, UnknownNameError,
         "roll"),
        (events.reset_root_state, {"pose_range": {"w": (0, 1)}}, UnknownNameError,
         "w"),
        (events.randomize_joints, {"parameter": "mass", "value_range": (0, 1)},
         UnknownNameError, "mass"),
        (events.randomize_joints, {"parameter": "damping", "value_range": (-2, -1)},
         InvalidInputError, "value_range"),
    ],
)  # fmt: skip
def test_bad_ranges_are_refused(make_env, function, params, error, name):
    with raises(error, name=name):
        make_env(events=event(function, **params))


def test_gains_of_what_is_no_servo_are_refused():
    from simstate.env import tasks

    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.events["gains"] = EventTermCfg(events.randomize_gains, mode="startup")
    with raises(InvalidInputError, name="randomize_gains"):
        Env(cfg)
