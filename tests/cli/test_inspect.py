"""`simstate inspect` and `simstate quantities` against the model and declarations."""

import json
import re

import mujoco
import numpy as np
import pytest

from simstate import EntityCfg, EntityData, SceneCfg, Simulation
from simstate.cli import main
from simstate.scene import models


def inspected(name, capsys):
    assert main(["inspect", name, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", models.NAMES)
def test_the_columns_are_those_of_the_state(name, capsys):
    """What is written to the columns of one joint is what MuJoCo has in its qpos."""
    facts = inspected(name, capsys)
    scene = SceneCfg(entities={"robot": EntityCfg(model=name)}, timestep=None)
    sim = Simulation(scene)
    assert facts["nstate"] == sim.state.shape[1]
    for joint in facts["joints"]:
        theirs = sim.model.joint(f"robot/{joint['joint']}")
        for key, field, address in (
            ("position_columns", "qpos", theirs.qposadr[0]),
            ("velocity_columns", "qvel", theirs.dofadr[0]),
        ):
            start, stop = joint[key]
            sim.state[0, start:stop] = 7.5
            there = sim.data.qpos[0] if field == "qpos" else sim.data.qvel[0]
            assert (there[address : address + stop - start] == 7.5).all()
            assert (there == 7.5).sum() == stop - start
            sim.reset()
    for k, control in enumerate(facts["controls"]):
        sim.state[0, control["columns"][0]] = 0.25
        assert sim.scene["robot"].data.ctrl[0, k] == 0.25
        assert sim.scene["robot"].control_names[k] == control["control"]


@pytest.mark.parametrize("name", ["humanoid", "satellite", "finger"])
def test_facts_are_those_of_the_compiled_file(name, capsys):
    facts = inspected(name, capsys)
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    assert facts["mass"] == pytest.approx(model.body_mass.sum())
    assert [link["link"] for link in facts["links"]] == [
        model.body(i).name for i in range(1, model.nbody)
    ]
    for link in facts["links"][1:]:
        body = model.body(link["link"])
        assert link["parent"] == model.body(body.parentid[0]).name
        np.testing.assert_allclose(link["com"], body.ipos)
    limited = {joint["joint"]: joint["range"] for joint in facts["joints"]}
    for i in range(model.njnt):
        joint = model.joint(i)
        if model.jnt_limited[i]:
            np.testing.assert_allclose(limited[joint.name], joint.range)
        else:
            assert limited[joint.name] is None
    assert facts["keyframes"] == [model.key(i).name for i in range(model.nkey)]
    assert facts["options"]["timestep"] == model.opt.timestep


def test_inspect_takes_a_file_and_prints_tables(tmp_path, capsys):
    path = tmp_path / "own.xml"
    path.write_text(
        """<mujoco><worldbody><body name="arm[1]"><joint name="bend" range="-10 20"/>
        <geom size=".1"/><body><joint type="slide"/><geom size=".1"/></body></body>
        </worldbody><actuator><motor joint="bend"/></actuator>
        <sensor><jointpos joint="bend"/></sensor></mujoco>"""
    )
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    for word in ("arm[1]", "bend", "hinge", "slide", "-0.1745, 0.3491", "rad",
                 "jointpos", "qacc_warmstart", "mass [kg]"):  # fmt: skip
        assert word in out


def test_quantities_lists_all_with_their_contract(capsys):
    assert main(["quantities", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == list(EntityData.quantities)
    by_name = {one["name"]: one for one in listed}
    assert by_name["root_com_lin_vel_b"]["point"] == "centre of mass"
    assert by_name["joint_pos"]["writer"] == "write_joint_position_to_sim"
    assert all(one["doc"] for one in listed)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--subject", "tendon"], {"tendon_len", "tendon_vel"}),
        (
            ["--subject", "root", "--frame", "b", "--unit", "m/s"],
            {"root_link_lin_vel_b", "root_com_lin_vel_b"},
        ),
        (
            ["--subject", "root", "--point", "com", "--unit", "rad/s"],
            {"root_com_ang_vel_w", "root_com_ang_vel_b", "root_com_vel_w"},
        ),
        (["--unit", "kg*m^2"], {"body_inertia"}),
        (["--unit", "kg·m²"], {"body_inertia"}),
        (["--search", "encoders"], {"joint_pos_biased", "encoder_bias"}),
        (["--subject", "tendon", "--frame", "w"], set()),
    ],
)
def test_quantities_filters(filters, expected, capsys):
    assert main(["quantities", *filters, "--json"]) == 0
    assert {one["name"] for one in json.loads(capsys.readouterr().out)} == expected


def test_quantities_none_selects_what_has_no_axes(capsys):
    assert main(["quantities", "--frame", "none", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {one["axes"] for one in listed} == {"–"}
    assert any(one["name"] == "joint_pos" for one in listed)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--subject", "rot"], "Unknown subject 'rot'. Did you mean 'root'?"),
        (["--unit", "m/h"], "Unknown unit 'm/h'. Did you mean 'm/s'?"),
        (["--frame", "q"], "Unknown frame 'q'."),
    ],
)
def test_quantities_refuses_what_nothing_has(filters, expected, capsys):
    assert main(["quantities", *filters]) == 1
    assert expected in " ".join(capsys.readouterr().err.split())


def test_an_actuator_after_one_with_four_controls(tmp_path, capsys):
    path = tmp_path / "rig.xml"
    path.write_text(
        """<mujoco><worldbody><body><joint name="ball" type="ball"/><geom size=".1"/>
          </body><body><joint name="knee"/><geom size=".1"/></body></worldbody>
        <actuator><orientation name="aim" joint="ball" input="quat" ctrlrange="-1 1"/>
          <motor name="push" joint="knee" ctrlrange="-3 2" forcerange="-5 4"/>
        </actuator></mujoco>"""
    )
    assert main(["inspect", str(path), "push", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["elements"]
    assert facts["control range"] == [-3.0, 2.0]
    assert facts["force range"] == [-5.0, 4.0]
    assert main(["inspect", str(path), "aim", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["elements"]
    assert facts["control range, qw"] == [-1.0, 1.0]
    assert facts["force range"] == "free"


def test_a_derived_field_is_described_in_the_error(capsys):
    assert main(["inspect", "quadruped", "cvel"]) == 1
    text = " ".join(capsys.readouterr().err.split())
    assert text == (
        "error: 'cvel' is a field of sim.data, without entries to list: Velocity "
        "(angular, linear) at subtree_com[body_rootid[body]], world axes."
    )


def test_targets_say_which_control_takes_them(tmp_path, capsys):
    path = tmp_path / "rig.xml"
    path.write_text(
        """<mujoco><worldbody><body><joint name="hip"/><geom size=".1"/>
          <body><joint name="knee" axis="0 1 0"/><geom size=".1"/>
          <body><joint name="toe" axis="1 0 0"/><geom size=".1"/></body></body></body>
        </worldbody><actuator><motor name="push" joint="knee" gear="2"/>
          <position name="aim" joint="hip" kp="3"/>
          <velocity name="spin" joint="hip" kv="2"/></actuator></mujoco>"""
    )
    facts = inspected(str(path), capsys)
    assert facts["targets"] == [
        {"joint": "hip", "position": "aim", "velocity": "spin", "effort": None},
        {"joint": "knee", "position": None, "velocity": None, "effort": "push"},
        {"joint": "toe", "position": None, "velocity": None, "effort": None},
    ]
    assert main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "Joint targets" in printed
    assert re.search(r"(?m)^toe( +–){3} *$", printed)
