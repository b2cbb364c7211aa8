"""What models state for the whole world: one decides, different ones raise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from tests.foreign_models import FOREIGN
from tests.inside import keep_sizes
from tests.raised import raises

from simstate import EntityCfg, InitialStateCfg, ModelError, SceneCfg, UnknownNameError
from simstate.base.errors import InvalidInputError
from simstate.scene import build_scene

BALL = """<mujoco>{}<worldbody><body name="ball" pos=".1 .2 1"><freejoint/>
<geom size=".1" pos=".01 0 0" mass="1.3"/></body></worldbody>{}</mujoco>"""
FLOOR = '<geom name="floor" type="plane" size="1 1 .1"/>'
HILLS = """<mujoco><asset><hfield name="hills" nrow="2" ncol="3" size="1 1 .1 .1"/>
</asset><worldbody><geom type="hfield" hfield="hills"/></worldbody></mujoco>"""
HANDLE = """<mujoco><worldbody><body mocap="true"><geom size=".1"/></body></worldbody>
</mujoco>"""
GHOST = """<mujoco><option timestep=".005"/><worldbody><body><joint/><geom size=".1"
contype="0" conaffinity="0"/></body></worldbody></mujoco>"""

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("error")]


def ball(head: str = "", tail: str = "") -> str:
    return BALL.format(head, tail)


def model_of(*models: Any, **scene: Any) -> Any:
    """The compiled scene of these models."""
    entities = {f"e{k}": EntityCfg(model=xml) for k, xml in enumerate(models)}
    settings: dict[str, Any] = {"ground": None, "timestep": None} | scene
    return build_scene(SceneCfg(entities=entities, **settings)).model


# Options

STATED = {
    "timestep": "0.007",
    "impratio": "3",
    "tolerance": "1e-5",
    "ls_tolerance": "0.03",
    "noslip_tolerance": "1e-4",
    "ccd_tolerance": "1e-5",
    "sleep_tolerance": "0.01",
    "gravity": "1 2 3",
    "wind": "4 5 6",
    "magnetic": "7 8 9",
    "density": "1.2",
    "viscosity": "0.1",
    "o_margin": "0.02",
    "o_solref": "0.03 0.9",
    "o_solimp": "0.8 0.9 0.01 0.4 3",
    "o_friction": "0.7 0.6 0.01 0.002 0.003",
    "integrator": "implicit",
    "cone": "elliptic",
    "jacobian": "sparse",
    "solver": "CG",
    "iterations": "23",
    "ls_iterations": "17",
    "noslip_iterations": "3",
    "ccd_iterations": "29",
    "sdf_initpoints": "13",
    "sdf_iterations": "11",
}
"""An attribute of <option> for each field of mjOption, away from its default."""

FLAGS = {"disableflags", "enableflags", "disableactuator"}


def test_every_option_of_mujoco_is_tried() -> None:
    names = {n for n in dir(mujoco.MjSpec().option) if not n.startswith("_")}
    assert names == {*STATED, *FLAGS}


@pytest.mark.parametrize("name", STATED)
def test_an_option_that_one_file_states_is_the_scenes(name: str) -> None:
    stated = ball(f'<option {name}="{STATED[name]}"/>')
    own: Any = mujoco.MjModel.from_xml_string(stated)
    plain: Any = mujoco.MjModel.from_xml_string(ball())
    assert not np.array_equal(getattr(own.opt, name), getattr(plain.opt, name))
    for models in ((stated,), (ball(), stated), (stated, ball(), stated)):
        got = getattr(model_of(*models).opt, name)
        np.testing.assert_array_equal(got, getattr(own.opt, name))


@pytest.mark.parametrize("name", STATED)
def test_a_file_that_states_the_default_has_said_so(name: str) -> None:
    """Another one that states something else is not agreed with in silence."""
    default = {"integrator": "Euler", "cone": "pyramidal", "jacobian": "auto"}
    default |= {"solver": "Newton"}
    value = getattr(mujoco.MjSpec().option, name)
    usual = default.get(name, " ".join(map(str, np.atleast_1d(value))))
    two = [ball(f'<option {name}="{text}"/>') for text in (STATED[name], usual)]
    with raises(ModelError, name=name) as caught:
        model_of(*two)
    remedy = f"{name}=…" if name in ("timestep", "gravity") else f"'{name}': …"
    assert remedy in str(caught.value)


CHOICES = {
    "integrator": ("Euler", "RK4", "implicit", "implicitfast"),
    "cone": ("pyramidal", "elliptic"),
    "jacobian": ("dense", "sparse", "auto"),
    "solver": ("PGS", "CG", "Newton"),
}


@pytest.mark.parametrize(
    ("name", "word"), [(name, word) for name in CHOICES for word in CHOICES[name]]
)
def test_a_choice_is_the_word_of_mjcf_or_its_number(name: str, word: str) -> None:
    own = mujoco.MjModel.from_xml_string(ball(f'<option {name}="{word}"/>'))
    number = getattr(own.opt, name)
    for given in (word, number):
        assert getattr(model_of(ball(), options={name: given}).opt, name) == number


def test_choices_that_differ_are_reported_by_their_words() -> None:
    two = [ball(f'<option integrator="{word}"/>') for word in ("RK4", "implicitfast")]
    with raises(ModelError, name="integrator"):
        model_of(*two)


def test_a_word_that_is_none_says_which_there_are() -> None:
    with raises(UnknownNameError, name="eliptic"):
        model_of(ball(), options={"cone": "eliptic"})
    with raises(InvalidInputError, name="iterations"):
        model_of(ball(), options={"iterations": "many"})


def test_flags_are_stated_one_by_one() -> None:
    first = ball('<option><flag contact="disable" energy="enable"/></option>')
    second = ball('<option><flag gravity="disable" contact="disable"/></option>')
    opt = model_of(first, second).opt
    disable = mujoco.mjtDisableBit
    assert opt.disableflags == disable.mjDSBL_CONTACT | disable.mjDSBL_GRAVITY
    assert opt.enableflags == mujoco.mjtEnableBit.mjENBL_ENERGY


@pytest.mark.parametrize(
    ("off", "on", "says"),
    [
        ('<flag gravity="disable"/>', '<flag gravity="enable"/>', "the flag gravity"),
        ('<flag energy="disable"/>', '<flag energy="enable"/>', "the flag energy"),
    ],
)
def test_flags_that_differ_are_refused(off: str, on: str, says: str) -> None:
    two = [ball(f"<option>{flag}</option>") for flag in (on, off)]
    with pytest.raises(ModelError) as caught:
        model_of(*two)
    for text in (says, "e0: enable, e1: disable", "flags'"):
        assert text in str(caught.value)
    model_of(*two, options={"disableflags": 0, "enableflags": 0})


def test_groups_of_actuators_that_one_file_switches_off_stay_off() -> None:
    opt = model_of(ball(), ball('<option actuatorgroupdisable="2 5"/>')).opt
    assert opt.disableactuator == 1 << 2 | 1 << 5


def test_groups_of_actuators_that_differ_are_refused_by_their_number() -> None:
    specs = [mujoco.MjSpec.from_string(ball('<option actuatorgroupdisable="2 5"/>'))
             for _ in range(2)]  # fmt: skip
    specs[1].option.disableactuator = 1 << 2
    with raises(ModelError, name="actuator group 5"):
        model_of(*specs)
    assert model_of(specs[1], specs[1]).opt.disableactuator == 1 << 2


@pytest.mark.parametrize("timestep", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_time_step_is_positive_and_finite(timestep: float) -> None:
    with raises(InvalidInputError, name="timestep"):
        model_of(ball(), timestep=timestep)


# Sizes

SIZED = {
    "memory": 3_000_000,
    "nuserdata": 3,
    "nuser_body": 2,
    "nuser_geom": 4,
    "nuser_sensor": 5,
    "njmax": 300,
    "nconmax": 70,
    "nstack": 20_000,
}


@pytest.mark.parametrize("name", SIZED)
def test_a_size_that_one_file_states_is_the_scenes(name: str, capfd: Any) -> None:
    stated = ball(f'<size {name}="{SIZED[name]}"/>')
    own = mujoco.MjModel.from_xml_string(stated)
    capfd.readouterr()
    for models in ((stated,), (ball(), stated)):
        model = model_of(*models)
        assert capfd.readouterr().err == ""
        for field in ("nuserdata", "nuser_body", "nuser_geom", "nuser_sensor"):
            assert getattr(model, field) == getattr(own, field)
        if len(models) == 1:
            assert model.narena == own.narena


def test_sizes_that_differ_are_refused_and_settled() -> None:
    two = [ball(f'<size nuserdata="{n}"/>') for n in (2, 5)]
    with raises(ModelError, name="nuserdata") as caught:
        model_of(*two)
    assert "SceneCfg(sizes={'nuserdata': …})" in str(caught.value)
    assert model_of(*two, sizes={"nuserdata": 7}).nuserdata == 7


def test_keyframes_are_counted_not_sized(capfd: Any) -> None:
    key = '<keyframe><key name="up" qpos="0 0 2 1 0 0 0"/></keyframe>'
    model = model_of(ball('<size nkey="3"/>', key), ball("", key))
    assert [model.key(k).name for k in range(2)] == ["e0/up", "e0/key_1"]
    assert model.key("e1/up").qpos[7 + 2] == 2.0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("sizes", "error", "name"),
    [
        ({"nuserdat": 1}, UnknownNameError, "nuserdat"),
        ({"nkey": 1}, UnknownNameError, "nkey"),
        ({"nuserdata": "two"}, InvalidInputError, "nuserdata"),
        ({"nuserdata": 1.5}, InvalidInputError, "nuserdata"),
    ],
)
def test_sizes_that_are_none(sizes: Any, error: type, name: str) -> None:
    with raises(error, name=name):
        model_of(ball(), sizes=sizes)


# Looks, statistics, masses


def test_looks_come_from_the_models_and_nothing_is_printed(capfd: Any) -> None:
    looks = (
        '<visual><map znear="0.003" zfar="40"/><headlight ambient=".1 .2 .3"/></visual>'
    )
    model = model_of(ball(), ball(looks))
    assert model.vis.map.znear == pytest.approx(0.003)
    assert model.vis.map.zfar == 40.0
    np.testing.assert_allclose(model.vis.headlight.ambient, [0.1, 0.2, 0.3])
    assert capfd.readouterr().err == ""


def test_looks_that_differ_are_one_warning_of_ours(capfd: Any) -> None:
    two = [
        ball(f'<visual><map znear="{z}"/><scale com="{z}"/></visual>')
        for z in (0.5, 0.25)
    ]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = model_of(*two)
    assert model.vis.map.znear == 0.5
    (warning,) = said
    assert "map.znear (e0: 0.5, e1: 0.25)" in str(warning.message)
    assert "scale.com (e0: 0.5, e1: 0.25)" in str(warning.message)
    assert warning.filename == __file__
    assert capfd.readouterr().err == ""


def test_a_conflict_that_only_mujoco_sees_is_a_warning_too(
    monkeypatch: Any, capfd: Any
) -> None:
    keep_sizes(monkeypatch)
    with pytest.warns(UserWarning, match="nuserdata: parent has 0") as said:
        model_of(ball('<size nuserdata="3"/>'))
    assert len(said) == 1
    assert capfd.readouterr().err == ""


def test_a_file_that_attaches_another_one_is_one_warning_at_the_callers_line(
    tmp_path: Path, capfd: Any
) -> None:
    (tmp_path / "finger.xml").write_text(GHOST.replace("<body>", '<body name="f">'))
    attach = '<attach model="finger" body="f" prefix="{}"/>'
    hand = tmp_path / "hand.xml"
    hand.write_text(
        '<mujoco><option timestep=".004"/><asset><model name="finger" '
        f'file="finger.xml"/></asset><worldbody><body>{attach.format("l")}'
        f"{attach.format('r')}</body></worldbody></mujoco>"
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = model_of(str(hand))
    assert model.opt.timestep == 0.004
    (warning,) = said
    assert "parent has 0.004, child has 0.005" in str(warning.message)
    assert warning.filename == __file__
    assert capfd.readouterr() == ("", "")


def test_statistics_are_those_of_a_file_alone() -> None:
    stated = ball('<statistic extent="7" meaninertia="0.5" center="1 2 3"/>')
    alone = model_of(stated, ground=False).stat
    assert (alone.extent, alone.meaninertia) == (7.0, 0.5)
    assert alone.center.tolist() == [1, 2, 3]
    assert model_of(stated, ball()).stat.extent != 7.0


def test_masses_scaled_to_a_total_stay_those_of_the_file() -> None:
    text = '<compiler settotalmass="5" inertiafromgeom="true"/>'
    model = model_of(ball(text), ball(), ball(text.replace("5", "0.25")))
    assert model.body("e0/ball").mass == pytest.approx(5.0)
    assert model.body("e1/ball").mass == pytest.approx(1.3)
    assert model.body("e2/ball").mass == pytest.approx(0.25)
    ratio = model.body("e0/ball").inertia / model.body("e1/ball").inertia
    np.testing.assert_allclose(ratio, 5.0 / 1.3)


# Ground


@pytest.mark.parametrize(
    ("models", "added"),
    [
        ((ball(),), True),
        ((ball().replace("<worldbody>", f"<worldbody>{FLOOR}"),), False),
        ((ball(), HILLS), False),
        ((HANDLE,), False),
        (("arm",), False),
        (("arm", "cube"), True),
        (("cartpole", HILLS), False),
    ],
)
def test_a_ground_is_added_where_something_floats_over_nothing(
    models: tuple[str, ...], added: bool
) -> None:
    model = model_of(*models)
    assert ("ground" in {model.geom(i).name for i in range(model.ngeom)}) == added


@pytest.mark.parametrize("name", ["walker2d", "hopper", "half_cheetah", "pusher"])
def test_foreign_models_get_no_second_floor(name: str) -> None:
    path = FOREIGN[f"gymnasium/{name}"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scene = SceneCfg(entities={"robot": EntityCfg(model=path)})
        assert build_scene(scene).model.ngeom == own_ngeom(path)


def own_ngeom(path: Any) -> int:
    model: Any = mujoco.MjModel.from_xml_path(str(path))
    return model.ngeom


# What changed since 0.1


# Placement


def test_a_model_that_is_not_placed_stays_where_it_is_to_the_bit() -> None:
    quat = "0.1 -0.7 0.3 0.64"
    xml = f"""<mujoco><worldbody><body pos="0.1 0.2 0.7" quat="{quat}"><joint/>
      <geom size=".1 .2 .3" type="box"/></body></worldbody></mujoco>"""
    own: Any = mujoco.MjModel.from_xml_string(xml)
    model = model_of(xml)
    np.testing.assert_array_equal(model.body_quat, own.body_quat)
    np.testing.assert_array_equal(model.body_pos, own.body_pos)
    state = InitialStateCfg(pos=(1, 2, 3))
    moved: Any = build_scene(
        SceneCfg(
            entities={"e": EntityCfg(model=xml, init_state=state)},
            ground=False,
            timestep=None,
        )
    ).model
    np.testing.assert_allclose(moved.body_pos[1], [1, 2, 3], rtol=1e-12)
    np.testing.assert_allclose(moved.body_quat[1], own.body_quat[1], atol=1e-12)
