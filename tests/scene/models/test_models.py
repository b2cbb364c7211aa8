"""The shipped models: what they hold, and that they rest, fall and spin rightly."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import pytest
from tests.raised import raises

from simstate.base.errors import UnknownNameError
from simstate.scene import models

pytestmark = pytest.mark.fast

FREE = mujoco.mjtJoint.mjJNT_FREE
BALL = mujoco.mjtJoint.mjJNT_BALL
SLIDE = mujoco.mjtJoint.mjJNT_SLIDE
HINGE = mujoco.mjtJoint.mjJNT_HINGE

# Those that come to rest on a plane under gravity from their first keyframe.
RESTING = ("arm", "cube", "finger", "glider", "humanoid", "quadruped")


def compiled(name: str, *, ground: bool = False) -> mujoco.MjModel:
    """The shipped model, over a plane at z = 0 if `ground`."""
    spec = models.spec(name)
    if ground:
        spec.worldbody.add_geom(
            name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1]
        )
    return spec.compile()


@pytest.mark.parametrize("name", models.NAMES)
def test_no_two_surfaces_of_other_colours_are_the_same(name: str) -> None:
    """Where two are, a picture of them flickers."""
    model = compiled(name)
    data = started(model)
    capsules = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE)
    balls = [
        (geom, data.geom_xpos[geom] + sign * model.geom_size[geom, 1] * along)
        for geom in capsules
        for along in [data.geom_xmat[geom].reshape(3, 3)[:, 2]]
        for sign in (-1.0, 1.0)
    ]
    for i, (one, place) in enumerate(balls):
        for other, there in balls[:i]:
            same = np.allclose(place, there, atol=1e-4) and np.isclose(
                model.geom_size[one, 0], model.geom_size[other, 0], atol=1e-4
            )
            if same:
                np.testing.assert_array_equal(
                    model.geom_rgba[one], model.geom_rgba[other],
                    f"{model.geom(one).name} and {model.geom(other).name}",
                )  # fmt: skip


def started(model: mujoco.MjModel, key: str | None = None) -> mujoco.MjData:
    """Data at the keyframe `key`, else at the first one, else at qpos0."""
    data = mujoco.MjData(model)
    if key is not None:
        mujoco.mj_resetDataKeyframe(model, data, model.key(key).id)
    elif model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return data


def run(model: mujoco.MjModel, data: mujoco.MjData, seconds: float) -> None:
    """Steps for `seconds` and refuses any warning or non-finite state."""
    for _ in range(round(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)
    assert [warning.number for warning in data.warning] == [0] * len(data.warning)
    assert np.isfinite(data.qpos).all()
    assert np.isfinite(data.qvel).all()


def joint_counts(model: mujoco.MjModel) -> dict[int, int]:
    """How many joints the model has of each type that it has."""
    types, counts = np.unique(model.jnt_type, return_counts=True)
    return dict(zip(types.tolist(), counts.tolist(), strict=True))


def names(model: mujoco.MjModel, kind: mujoco.mjtObj, count: int) -> list[str | None]:
    """The names of all `count` objects of one kind; None for one without."""
    return [mujoco.mj_id2name(model, kind, i) for i in range(count)]


# What every model keeps to


def test_names_are_the_files_in_alphabetical_order() -> None:
    folder = models.path("cube").parent
    assert list(models.NAMES) == sorted(file.stem for file in folder.glob("*.xml"))


@pytest.mark.parametrize("lookup", [models.path, models.spec])
def test_unknown_name_is_refused_with_a_suggestion(
    lookup: Callable[[str], object],
) -> None:
    with raises(UnknownNameError, name="quadrupd"):
        lookup("quadrupd")


def test_spec_is_a_new_one_each_time() -> None:
    models.spec("cube").worldbody.add_body(name="extra")
    assert models.spec("cube").body("extra") is None


@pytest.mark.parametrize("name", models.NAMES)
def test_model_bears_its_name_and_names_all_it_has(name: str) -> None:
    spec = models.spec(name)
    model = spec.compile()
    assert spec.modelname == name
    for kind, count in (
        (mujoco.mjtObj.mjOBJ_BODY, model.nbody),
        (mujoco.mjtObj.mjOBJ_JOINT, model.njnt),
        (mujoco.mjtObj.mjOBJ_GEOM, model.ngeom),
        (mujoco.mjtObj.mjOBJ_SITE, model.nsite),
        (mujoco.mjtObj.mjOBJ_ACTUATOR, model.nu),
        (mujoco.mjtObj.mjOBJ_SENSOR, model.nsensor),
        (mujoco.mjtObj.mjOBJ_TENDON, model.ntendon),
        (mujoco.mjtObj.mjOBJ_EQUALITY, model.neq),
        (mujoco.mjtObj.mjOBJ_KEY, model.nkey),
    ):
        assert all(names(model, kind, count)), kind


@pytest.mark.parametrize("name", models.NAMES)
def test_model_brings_one_root_body_and_no_ground_or_light(name: str) -> None:
    world = models.spec(name).worldbody
    assert (len(world.bodies), len(world.geoms), len(world.lights)) == (1, 0, 0)


@pytest.mark.parametrize("name", models.NAMES)
def test_main_default_is_mujocos_own(name: str) -> None:
    # A ground that is added to the spec would else take over the model's contype.
    own, plain = models.spec(name).default, mujoco.MjSpec().default
    assert own.geom.contype == plain.geom.contype == 1
    assert own.geom.conaffinity == plain.geom.conaffinity == 1
    assert own.geom.type == plain.geom.type
    assert own.joint.damping[0] == plain.joint.damping[0]
    assert own.joint.armature == plain.joint.armature


@pytest.mark.parametrize("name", models.NAMES)
def test_masses_and_inertias_are_physical(name: str) -> None:
    model = compiled(name)
    assert (model.body_mass[1:] > 0).all()
    inertia = np.sort(model.body_inertia[1:], axis=1)
    assert (inertia[:, 0] > 0).all()
    # Equality is a thin plate's.
    assert (inertia[:, 0] + inertia[:, 1] >= inertia[:, 2] * (1 - 1e-9)).all()


@pytest.mark.parametrize("name", models.NAMES)
def test_qpos0_and_keyframes_break_no_limit_and_touch_at_most(name: str) -> None:
    model = compiled(name, ground=True)
    scalar = model.jnt_limited.astype(bool) & np.isin(model.jnt_type, [SLIDE, HINGE])
    low, high = model.jnt_range[scalar].T
    for qpos in (model.qpos0, *model.key_qpos):
        data = mujoco.MjData(model)
        data.qpos[:] = qpos
        mujoco.mj_forward(model, data)
        angles = qpos[model.jnt_qposadr[scalar]]
        assert ((low <= angles) & (angles <= high)).all()
        assert min((contact.dist for contact in data.contact), default=0.0) > -1e-5


@pytest.mark.parametrize("name", models.NAMES)
def test_every_control_is_limited_and_keyframes_respect_it(name: str) -> None:
    model = compiled(name)
    assert model.actuator_ctrllimited.all()
    low, high = model.actuator_ctrlrange.T
    assert ((low <= model.key_ctrl) & (model.key_ctrl <= high)).all()


@pytest.mark.parametrize("name", models.NAMES)
def test_five_seconds_over_a_plane_stay_finite(name: str) -> None:
    model = compiled(name, ground=True)
    data = started(model)
    run(model, data, 5)
    if name in RESTING:
        assert np.abs(data.qvel).max() < 0.05


@pytest.mark.parametrize("name", models.NAMES)
def test_random_controls_over_a_plane_stay_finite(name: str) -> None:
    model = compiled(name, ground=True)
    data = started(model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        data.ctrl[:] = rng.uniform(*model.actuator_ctrlrange.T)
        run(model, data, 0.1)
        assert np.abs(data.qvel).max(initial=0) < 100


# What each one is


def test_arm_is_a_fixed_base_seven_hinges_and_a_gripper() -> None:
    model = compiled("arm")
    assert joint_counts(model) == {HINGE: 7, SLIDE: 2}
    assert model.body_weldid[model.body("base").id] == 0
    assert model.neq == 1
    assert model.eq_type[0] == mujoco.mjtEq.mjEQ_JOINT
    assert model.nu == 8
    assert model.site("tcp").bodyid == model.body("link7").id


def test_arm_holds_home_with_its_gripper_down() -> None:
    model = compiled("arm")
    data = started(model, "home")
    home = data.qpos.copy()
    run(model, data, 5)
    np.testing.assert_allclose(data.qpos, home, atol=1e-3)
    axes = data.site("tcp").xmat.reshape(3, 3)
    np.testing.assert_allclose(axes[:, 2], [0, 0, -1], atol=1e-3)


def test_arm_reaches_the_targets_of_its_servos() -> None:
    model = compiled("arm")
    data = started(model, "home")
    data.ctrl[:7] += [0.5, -0.4, 0.3, 0.3, -0.5, 0.4, 0.6]
    run(model, data, 2)
    np.testing.assert_allclose(data.qpos[:7], data.ctrl[:7], atol=5e-3)


def test_arm_fingers_close_together() -> None:
    model = compiled("arm")
    data = started(model, "home")
    data.actuator("gripper").ctrl = 0.01
    run(model, data, 2)
    for finger in ("left_finger", "right_finger"):
        assert data.joint(finger).qpos[0] == pytest.approx(0.01, abs=1e-3)


def test_cartpole_has_a_limited_slide_a_hinge_and_a_motor() -> None:
    model = compiled("cartpole")
    assert model.jnt_type.tolist() == [SLIDE, HINGE]
    assert model.jnt_limited.tolist() == [1, 0]
    assert model.nu == 1
    assert model.actuator_trnid[0, 0] == model.joint("slider").id


def test_cartpole_keyframes_point_the_pole_up_and_down() -> None:
    model = compiled("cartpole")
    for key, height in (("upright", 1.6), ("hanging", 0.4)):
        data = started(model, key)
        assert data.site("tip").xpos[2] == pytest.approx(height)


def test_cartpole_falls_from_upright_and_settles_hanging() -> None:
    model = compiled("cartpole")
    data = started(model, "upright")
    data.joint("pole").qpos = 0.05
    run(model, data, 60)
    assert np.cos(data.joint("pole").qpos[0]) == pytest.approx(-1, abs=1e-3)
    assert np.abs(data.qvel).max() < 0.01


def test_cube_is_free_and_comes_to_rest_after_a_drop() -> None:
    model = compiled("cube", ground=True)
    assert joint_counts(model) == {FREE: 1}
    assert model.body("cube").mass[0] == pytest.approx(0.1)
    np.testing.assert_allclose(model.geom("cube").size, 0.025)
    data = started(model)
    data.qpos[:] = [0, 0, 0.2, 0.8, 0.4, 0.2, 0.4]
    run(model, data, 5)
    assert np.abs(data.qvel).max() < 1e-3
    assert data.qpos[2] == pytest.approx(0.025, abs=1e-3)


def test_finger_is_three_hinges_pulled_by_two_tendons() -> None:
    model = compiled("finger")
    assert joint_counts(model) == {HINGE: 3}
    assert (model.jnt_stiffness > 0).all()
    assert model.ntendon == 2
    assert model.nu == 2
    assert (model.actuator_trntype == mujoco.mjtTrn.mjTRN_TENDON).all()
    assert (model.wrap_type == mujoco.mjtWrap.mjWRAP_SITE).all()


@pytest.mark.parametrize(("tendon", "sign"), [("flexor", 1), ("extensor", -1)])
def test_finger_tendon_moves_every_joint_its_way(tendon: str, sign: int) -> None:
    model = compiled("finger")
    data = started(model, "open")
    rest = data.qpos.copy()
    data.actuator(tendon).ctrl = 3
    run(model, data, 3)
    assert (sign * (data.qpos - rest) > 0.1).all()


def test_finger_tendons_keep_their_sign_over_the_whole_range() -> None:
    model = compiled("finger")
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(200):
        data.qpos[:] = rng.uniform(*model.jnt_range.T)
        data.ctrl[:] = [1, 0]
        mujoco.mj_forward(model, data)
        assert (data.qfrc_actuator > 1e-3).all()
        data.ctrl[:] = [0, 1]
        mujoco.mj_forward(model, data)
        assert (data.qfrc_actuator < -1e-3).all()


@pytest.mark.parametrize("key", ["open", "curled"])
def test_finger_rests_in_its_keyframes(key: str) -> None:
    model = compiled("finger", ground=True)
    data = started(model, key)
    start = data.qpos.copy()
    run(model, data, 5)
    np.testing.assert_allclose(data.qpos, start, atol=1e-3)


def test_glider_is_one_free_body_with_its_com_away_from_its_origin() -> None:
    model = compiled("glider")
    assert joint_counts(model) == {FREE: 1}
    assert model.nbody == 2
    body = model.body("glider")
    assert body.ipos[0] < -0.3
    assert body.ipos[2] > 0.005
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    # An inertia that is diagonal in the body's axes has a signed permutation here.
    assert np.abs(np.abs(axes) - np.round(np.abs(axes))).max() > 0.01
    assert {model.site(i).name for i in range(model.nsite)} == {
        "nose",
        "left_wing_tip",
        "right_wing_tip",
    }


def test_glider_is_symmetric_about_its_middle_plane() -> None:
    """Mirrored at y = 0 its mass is where it was, and so are its shapes."""
    model = compiled("glider")
    assert model.body("glider").ipos[1] == 0
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body("glider").iquat)
    axes = axes.reshape(3, 3)
    inertia = axes @ np.diag(model.body("glider").inertia) @ axes.T
    np.testing.assert_allclose(inertia[[0, 1], [1, 2]], 0, atol=1e-12)
    np.testing.assert_allclose(model.geom_pos[:, 1], 0, atol=1e-12)


def test_glider_keeps_its_com_and_axes_under_alignfree() -> None:
    spec = models.spec("glider")
    spec.compiler.alignfree = True
    np.testing.assert_array_equal(
        spec.compile().body("glider").ipos, compiled("glider").body("glider").ipos
    )


def test_glider_falls_as_a_projectile_while_it_tumbles() -> None:
    model = compiled("glider")
    data = started(model)
    data.qvel[:] = [8, 1, 3, 0.5, -0.7, 0.3]
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    com, vel = data.subtree_com[1].copy(), data.subtree_linvel[1].copy()
    run(model, data, 1)
    mujoco.mj_forward(model, data)
    # Semi-implicit Euler falls by g t (t + dt) / 2.
    fall = model.opt.gravity * data.time * (data.time + model.opt.timestep) / 2
    np.testing.assert_allclose(
        data.subtree_com[1], com + vel * data.time + fall, atol=2e-3
    )
    # The origin turns about the centre of mass, so it does not follow the parabola.
    start, origin_vel = np.array([0, 0, 1]), np.array([8, 1, 3])
    parabola = start + origin_vel * data.time + model.opt.gravity * data.time**2 / 2
    assert np.linalg.norm(data.xpos[1] - parabola) > 0.1


def test_humanoid_has_ball_shoulders_and_twenty_more_dofs() -> None:
    model = compiled("humanoid")
    assert joint_counts(model) == {FREE: 1, BALL: 2, HINGE: 17}
    assert model.nv == 6 + 23
    assert model.nu == 23
    assert 35 < model.body("pelvis").subtreemass[0] < 60
    for side in ("left", "right"):
        assert model.joint(f"{side}_shoulder").type[0] == BALL
        assert model.geom(f"{side}_foot") is not None
        assert model.site(f"{side}_foot") is not None
        assert model.site(f"{side}_hand") is not None


def test_humanoid_motors_turn_the_shoulder_about_each_of_its_axes() -> None:
    model = compiled("humanoid")
    for side in ("left", "right"):
        dofs = model.joint(f"{side}_shoulder").dofadr[0] + np.arange(3)
        torques = []
        for axis in "xyz":
            data = started(model, "stand")
            data.actuator(f"{side}_shoulder_{axis}").ctrl = 2
            mujoco.mj_forward(model, data)
            torques.append(data.qfrc_actuator[dofs].copy())
        np.testing.assert_allclose(torques, 2 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "key", "root"),
    [("quadruped", "home", "trunk"), ("humanoid", "stand", "pelvis")],
)
def test_legged_robot_stands_by_its_servos(name: str, key: str, root: str) -> None:
    model = compiled(name, ground=True)
    data = started(model, key)
    feet = [i for i in range(model.ngeom) if model.geom(i).name.endswith("_foot")]
    gap = np.empty(6)
    for foot in feet:
        ground = model.geom("ground").id
        dist = mujoco.mj_geomDistance(model, data, ground, foot, 1.0, gap)
        assert abs(dist) < 1e-5
    height = data.body(root).xpos[2]
    run(model, data, 5)
    assert data.body(root).xpos[2] == pytest.approx(height, rel=0.15)
    upright = data.body(root).xmat[8]
    assert np.degrees(np.arccos(min(upright, 1.0))) < 10
    assert np.abs(data.qvel).max() < 0.05


def test_mocap_target_is_one_mocap_body_that_touches_nothing() -> None:
    model = compiled("mocap_target")
    assert (model.nmocap, model.nbody, model.nq) == (1, 2, 0)
    assert model.body("target").mocapid[0] == 0
    geom = model.geom("target")
    assert geom.contype[0] == geom.conaffinity[0] == 0
    data = started(model)
    data.mocap_pos[0] = [1, 2, 3]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.site("target").xpos, [1, 2, 3])


def test_quadruped_has_twelve_hinges_with_servos_feet_and_an_imu() -> None:
    model = compiled("quadruped")
    assert joint_counts(model) == {FREE: 1, HINGE: 12}
    expected = [
        f"{leg}_{joint}"
        for leg in ("FL", "FR", "RL", "RR")
        for joint in ("hip", "thigh", "calf")
    ]
    assert names(model, mujoco.mjtObj.mjOBJ_JOINT, model.njnt)[1:] == expected
    assert names(model, mujoco.mjtObj.mjOBJ_ACTUATOR, model.nu) == expected
    np.testing.assert_array_equal(model.actuator_trnid[:, 0], np.arange(1, 13))
    assert 11 < model.body("trunk").subtreemass[0] < 13.5
    for leg in ("FL", "FR", "RL", "RR"):
        assert model.geom(f"{leg}_foot").type[0] == mujoco.mjtGeom.mjGEOM_SPHERE
        assert model.site(f"{leg}_foot").bodyid == model.body(f"{leg}_calf").id
        assert model.sensor(f"{leg}_foot").type[0] == mujoco.mjtSensor.mjSENS_TOUCH
    assert model.sensor("imu_gyro").type[0] == mujoco.mjtSensor.mjSENS_GYRO
    assert model.nsensordata == 6 + 4


def test_the_feet_of_the_standing_quadruped_feel_its_weight() -> None:
    spec = models.spec("quadruped")
    # The feet's friction counts even on ice.
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], friction=[0, 0, 0]
    )
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_step(model, data, 600)
    felt = [data.sensor(f"{leg}_foot").data[0] for leg in ("FL", "FR", "RL", "RR")]
    weight = model.body("trunk").subtreemass[0] * 9.81
    assert min(felt) > 0.1 * weight
    assert sum(felt) == pytest.approx(weight, rel=1e-3)
    np.testing.assert_allclose(data.contact.friction[:, 0], 0.9)


def test_quadruped_touches_the_ground_but_never_itself() -> None:
    model = compiled("quadruped")
    data = started(model)
    rng = np.random.default_rng(0)
    scalar = model.jnt_type == HINGE
    for _ in range(50):
        data.qpos[7:] = rng.uniform(*model.jnt_range[scalar].T)
        mujoco.mj_forward(model, data)
        assert data.ncon == 0
    for part in ("trunk", "FL_calf", "FL_foot"):
        assert compiled("quadruped").geom(part).conaffinity[0] == 1


def test_satellite_is_a_free_hub_with_two_panels_and_a_wheel() -> None:
    model = compiled("satellite")
    assert joint_counts(model) == {FREE: 1, HINGE: 3}
    assert model.joint("root").type[0] == FREE
    assert model.body("hub").jntadr[0] == model.joint("root").id
    for panel in ("left_panel", "right_panel"):
        assert model.joint(panel).stiffness[0] > 0
        assert model.joint(panel).damping[0] > 0
    np.testing.assert_allclose(model.joint("wheel").axis, [0, 0, 1])
    assert model.actuator_trnid[:, 0].tolist() == [model.joint("wheel").id]
    np.testing.assert_array_equal(model.opt.gravity, 0)


def test_satellite_keeps_its_angular_momentum_while_the_wheel_spins_up() -> None:
    model = compiled("satellite")
    data = started(model, "deployed")
    data.qvel[3:] = [0.3, -0.2, 0.5, 0.1, -0.2, 20]
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    before = data.subtree_angmom[0].copy()
    data.actuator("wheel").ctrl = 0.5
    run(model, data, 5)
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    assert data.joint("wheel").qvel[0] > 30
    error = np.linalg.norm(data.subtree_angmom[0] - before)
    assert error < 1e-3 * np.linalg.norm(before)
