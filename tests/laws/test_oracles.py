"""The oracle suite on every shipped model, on awkward entities, and on broken code."""

import mujoco
import pytest
import torch
from tests.laws import zoo

from simstate import EntityCfg, InitialStateCfg, SceneCfg
from simstate.entity import data as entity_data
from simstate.entity import frame_quantities
from simstate.scene import models
from simstate.study import oracles

SIDEWAYS = (3.0, -4.0, 1.0)


def alone(source: str) -> SceneCfg:
    return SceneCfg(entities={"robot": EntityCfg(model=source)}, timestep=None)


def everything() -> SceneCfg:
    """All awkward entities in one scene, one of them twice, gravity to the side."""
    entities = {
        name: EntityCfg(model=xml, init_state=InitialStateCfg(pos=(3.0 * k, 0.0, 1.0)))
        for k, (name, xml) in enumerate(zoo.ENTITIES.items())
    }
    entities["again"] = EntityCfg(
        model=zoo.SECOND_TREE,
        init_state=InitialStateCfg(pos=(0.0, 5.0, 1.0), rot=(0.5, 0.5, -0.5, 0.5)),
    )
    return SceneCfg(entities=entities, gravity=SIDEWAYS, ground=False)


@pytest.mark.parametrize("name", models.NAMES)
def test_laws_hold_on_shipped_models(name, engine):
    report = oracles.check(alone(name), engine)
    assert report.passed, str(report)


@pytest.mark.parametrize("name", zoo.ENTITIES)
def test_laws_hold_on_awkward_entities(name):
    report = oracles.check(alone(zoo.ENTITIES[name]), num_envs=8, seed=3)
    assert report.passed, str(report)


def test_mujoco_takes_nearly_aligned_frames_for_aligned_ones():
    """Else the entity of that name would test nothing."""
    model = mujoco.MjModel.from_xml_string(zoo.NEARLY_ALIGNED)
    same = mujoco.mjtSameFrame
    assert model.body("block").sameframe == same.mjSAMEFRAME_BODYROT
    assert model.geom("as_body").sameframe == same.mjSAMEFRAME_BODY
    assert model.geom("as_turned").sameframe == same.mjSAMEFRAME_BODYROT
    assert model.geom("as_inertia").sameframe == same.mjSAMEFRAME_INERTIA
    assert model.site("as_body").sameframe == same.mjSAMEFRAME_BODY
    assert model.site("as_inertia").sameframe == same.mjSAMEFRAME_INERTIAROT


def test_laws_hold_on_all_of_them_in_one_scene(engine):
    report = oracles.check(everything(), engine)
    assert report.passed, str(report)
    assert {check.entity for check in report.checks} >= {*zoo.ENTITIES, "again"}


def test_a_compiled_model_can_be_checked():
    model = models.spec("quadruped").compile()
    report = oracles.check(model)
    assert report.passed
    assert {check.entity for check in report.checks} == {"model", "scene"}


def test_the_entity_roots_subtree_com_is_caught(monkeypatch):
    """The field's commonest bug: the root's point used for every tree."""
    correct = frame_quantities.Picks.resolve

    def wrong(frame, index, model, device):
        picks = correct(frame, index, model, device)
        roots = (
            picks.roots
            if isinstance(picks.roots, int)
            else slice(index.root_body_id, index.root_body_id + 1)
        )
        return frame_quantities.Picks(picks.elements, picks.bodies, roots)

    monkeypatch.setattr(frame_quantities.Picks, "resolve", staticmethod(wrong))
    report = oracles.check(alone(zoo.SECOND_TREE))
    failed = {(check.law, check.quantity) for check in report.failures}
    assert ("mj_objectVelocity", "body_link_vel_w") in failed
    assert ("Δpose/Δt = velocity", "body_com_vel_w") in failed
    assert oracles.check(alone("quadruped")).passed  # one tree: nothing to get wrong


def test_a_dropped_coriolis_term_is_caught(monkeypatch):
    def without(pos, subtree_com, cvel, cacc):
        linear = cacc[..., 3:] + torch.linalg.cross(cacc[..., :3], pos - subtree_com)
        return torch.cat([linear, cacc[..., :3].expand_as(linear)], dim=-1)

    monkeypatch.setattr(frame_quantities, "acceleration_from_cacc", without)
    report = oracles.check(alone("quadruped"))
    laws = {check.law for check in report.failures}
    assert laws == {"mj_objectAcceleration", "Δvelocity/Δt = acceleration"}


def test_a_nan_fails_a_law(monkeypatch):
    def broken(data):
        return data.raw("xipos")[:, data.columns("body_ids")] * torch.nan

    quantity = entity_data.EntityData.quantities["body_com_pos_w"]
    monkeypatch.setattr(quantity, "compute", broken)
    failed = oracles.check(alone("cartpole"), num_envs=1)
    assert not failed.passed
    assert "body_com_pos_w" in str(failed)


def test_report_as_data():
    report = oracles.check(alone("cube"), num_envs=2)
    plain = report.to_dict()
    assert plain["passed"] is True
    assert plain["engine"] == "native"
    assert len(plain["checks"]) == len(report.checks) > 50


def test_every_quantity_is_in_a_law_but_a_few():
    names = ("humanoid", "finger", "arm", "mocap_target")
    reports = [oracles.check(alone(name), num_envs=2) for name in names]
    covered = {check.quantity for report in reports for check in report.checks}
    left = set(entity_data.EntityData.quantities) - covered
    assert left == {
        # kept by the entity itself, or by rule from what is covered
        "default_root_state",
        "default_joint_pos",
        "default_joint_vel",
        "encoder_bias",
        "joint_pos_biased",
        "soft_joint_pos_limits",
        # views of what is covered
        "body_external_force",
        "body_external_torque",
        "body_com_pose_w",
        "geom_pose_w",
        "site_pose_w",
        "act",
    }
