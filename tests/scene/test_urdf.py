"""URDF runs as MuJoCo runs it, and its meshes are found; other files say why not."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from tests.raised import raises

from simstate import (
    EntityCfg,
    ModelError,
    PositionActuatorCfg,
    SceneCfg,
    Simulation,
)
from simstate.cli import main
from simstate.scene import build_scene

pytestmark = pytest.mark.fast

ROBOT = """<?xml version="1.0"?>
<!-- <mujoco> is not what this is -->
<robot name="arm">
  {extension}
  <link name="base">
    <inertial><mass value="2"/>
      <inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0.1 1" rpy="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1.5" effort="5" velocity="1"/>
  </joint>
  <link name="upper">
    <inertial><origin xyz=".1 0 .02"/><mass value="1.5"/>
      <inertia ixx=".02" ixy="0" ixz="0" iyy=".03" iyz="0" izz=".04"/></inertial>
    <visual><geometry><mesh filename="{visual}"/></geometry></visual>
    <collision><geometry><mesh filename="{collision}"/></geometry></collision>
  </link>
  <joint name="tool" type="fixed">
    <parent link="upper"/><child link="hand"/><origin xyz=".3 0 0"/>
  </joint>
  <link name="hand">
    <inertial><mass value=".2"/>
      <inertia ixx=".01" ixy="0" ixz="0" iyy=".01" iyz="0" izz=".01"/></inertial>
  </link>
</robot>
"""
PACKAGE = "package://arm_description/meshes/"


def write_mesh(path: Path, size: float) -> Path:
    """A box as a binary STL file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
    faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
    data = bytes(80) + struct.pack("<I", len(faces))
    for face in faces:
        data += struct.pack("<3f", 0, 0, 0)
        data += b"".join(
            struct.pack("<3f", *np.multiply(corners[i], size)) for i in face
        )
        data += bytes(2)
    path.write_bytes(data)
    return path


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    """A package's folder, under another name than the package's."""
    folder = tmp_path / "somewhere"
    write_mesh(folder / "meshes" / "visual" / "upper.stl", 0.1)
    write_mesh(folder / "meshes" / "collision" / "upper_box.stl", 0.05)
    return folder


def urdf(
    visual: str = PACKAGE + "visual/upper.stl",
    collision: str = PACKAGE + "collision/upper_box.stl",
    extension: str = "",
) -> str:
    return ROBOT.format(visual=visual, collision=collision, extension=extension)


def saved(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "arm.urdf"
    path.write_text(text)
    return path


def scene(model: Any, **entity: Any) -> SceneCfg:
    arm = EntityCfg(model=model, **entity)
    return SceneCfg(entities={"arm": arm}, ground=None, timestep=None)


def test_packages_are_found_by_a_map_of_folders(tmp_path: Path, meshes: Path) -> None:
    path = saved(tmp_path / "robot", urdf())
    for folder in (meshes, str(meshes)):
        model: Any = build_scene(
            scene(path, packages={"arm_description": folder})
        ).model
        assert (model.nmesh, model.ngeom) == (1, 1)
        assert model.mesh(0).name == "arm/upper_box"
        np.testing.assert_allclose(model.geom_aabb[0, 3:], 0.05, rtol=1e-6)


def test_a_scene_of_a_urdf_is_mujocos(tmp_path: Path, meshes: Path) -> None:
    box = meshes / "meshes" / "collision" / "upper_box.stl"
    plain = saved(tmp_path / "plain", urdf("visual is left out", str(box)))
    own = mujoco.MjModel.from_xml_path(str(plain))
    data = mujoco.MjData(own)
    path = saved(tmp_path / "robot", urdf())
    sim = Simulation(scene(path, packages={"arm_description": meshes}), 2)
    sim.data.qpos[1] = 0.4
    mujoco.mj_step(own, data, 300)
    sim.step(300)
    np.testing.assert_array_equal(sim.data.qpos[0], data.qpos)
    np.testing.assert_array_equal(sim.data.qvel[0], data.qvel)
    assert sim.data.qpos[0] != sim.data.qpos[1]
    arm = sim.scene["arm"]
    assert arm.joint_names == ("shoulder",)
    np.testing.assert_allclose(arm.data.joint_pos_limits[0], [[-1.0, 1.5]])


def test_an_actuator_can_be_added_to_a_urdf(tmp_path: Path, meshes: Path) -> None:
    path = saved(tmp_path / "robot", urdf())
    drive = PositionActuatorCfg(joints="shoulder", stiffness=400.0, damping=40.0)
    cfg = scene(path, packages={"arm_description": meshes}, actuators=(drive,))
    sim = Simulation(cfg, 3)
    sim.scene["arm"].set_joint_position_target([[0.2], [-0.3], [0.7]])
    sim.step(1000)
    # The joint's effort limit of the file, 5 N·m, holds the arm against its weight.
    assert sim.data.qfrc_actuator.abs().max() <= 5.0
    assert len(set(sim.data.qpos[:, 0].tolist())) == 3


@pytest.mark.parametrize("inside", ["urdf", "urdf/deep/er", ""])
def test_a_folder_of_the_packages_name_above_the_file_is_found(
    tmp_path: Path, meshes: Path, inside: str
) -> None:
    package = meshes.rename(tmp_path / "arm_description")
    path = saved(package / inside, urdf())
    assert build_scene(scene(path)).model.nmesh == 1


def test_a_package_next_to_it_is_found_by_its_package_xml(
    tmp_path: Path, meshes: Path
) -> None:
    path = saved(tmp_path / "arm_bringup" / "urdf", urdf())
    package = meshes.rename(tmp_path / "arm_description")
    with raises(ModelError, name="arm_description"):
        build_scene(scene(path))
    (package / "package.xml").write_text("<package/>")
    assert build_scene(scene(path)).model.nmesh == 1


def test_paths_next_to_the_file_and_file_urls(tmp_path: Path, meshes: Path) -> None:
    box = meshes / "meshes" / "collision" / "upper_box.stl"
    show = meshes / "meshes" / "visual" / "upper.stl"
    for visual, collision in (
        ("../somewhere/meshes/visual/upper.stl", f"file://{box}"),
        (str(show), "../somewhere/meshes/collision/upper_box.stl"),
    ):
        path = saved(tmp_path / "robot", urdf(visual, collision))
        assert build_scene(scene(path)).model.nmesh == 1


def test_a_mesh_folder_that_the_urdf_names(tmp_path: Path, meshes: Path) -> None:
    extension = """<mujoco><compiler meshdir="../somewhere/meshes/collision"
      strippath="true" discardvisual="true"/></mujoco>"""
    names = "package://nowhere/upper_box.stl"
    path = saved(tmp_path / "robot", urdf(names, names, extension))
    assert build_scene(scene(path)).model.nmesh == 1


@pytest.mark.parametrize("which", ["visual", "collision"])
def test_a_missing_mesh_is_an_error(tmp_path: Path, meshes: Path, which: str) -> None:
    path = saved(tmp_path / "robot", urdf(**{which: PACKAGE + "not_there.stl"}))
    with pytest.raises(ModelError) as caught:
        build_scene(scene(path, packages={"arm_description": meshes}))
    assert f"{PACKAGE}not_there.stl" in str(caught.value)
    assert str(meshes / "meshes" / "not_there.stl") in str(caught.value)


def test_an_unknown_package_says_how_to_name_it(tmp_path: Path, meshes: Path) -> None:
    path = saved(tmp_path / "robot", urdf())
    with pytest.raises(ModelError) as caught:
        build_scene(scene(path, packages={"arm_descriptio": meshes}))
    remedies = ("packages={'arm_description': folder}", "folder, named 'arm_descr")
    for text in (*remedies, "Did you mean"):
        assert text in str(caught.value)


def test_a_string_of_urdf(meshes: Path) -> None:
    cfg = scene(urdf(), packages={"arm_description": meshes})
    assert build_scene(cfg).model.nmesh == 1


def test_packages_of_what_is_no_urdf_are_refused(meshes: Path) -> None:
    with raises(ModelError, name="packages"):
        build_scene(scene("cube", packages={"arm_description": meshes}))


def test_the_command_line_takes_urdf(tmp_path: Path, meshes: Path, capsys: Any) -> None:
    package = meshes.rename(tmp_path / "arm_description")
    path = saved(package / "urdf", urdf())
    assert main(["inspect", str(path)]) == 0
    assert "shoulder" in capsys.readouterr().out


# Other files


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("robot.usd", "Convert it"),
        ("robot.usda", "Convert it"),
        ("robot.sdf", "Convert it"),
        ("robot.txt", "not .txt."),
        ("robot.mjb", "MjModel.from_binary_path"),
        ("robot.urdf.xacro", "xacro"),
        ("robot.XML", "not .XML"),
        ("robot", "without a suffix"),
    ],
)
def test_other_files_are_refused_with_what_is_read(
    tmp_path: Path, name: str, says: str, capsys: Any
) -> None:
    path = tmp_path / name
    path.write_text("<mujoco><worldbody/></mujoco>")
    with pytest.raises(ModelError) as caught:
        build_scene(scene(path))
    for text in (str(path), "MJCF (.xml) or URDF (.urdf)", says):
        assert text in str(caught.value)
    assert main(["run", str(path)]) == 1
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("content", [b"", b"hello", bytes(range(256)), b"<mujoco>"])
def test_an_xml_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "robot.xml"
    path.write_bytes(content)
    with raises(ModelError, file="robot.xml"):
        build_scene(scene(path))


# Nothing to simulate


EMPTY = {
    "nothing": "<mujoco/>",
    "a floor": """<mujoco><worldbody><geom type="plane" size="1 1 1"/></worldbody>
      </mujoco>""",
    "a table": """<mujoco><worldbody><body name="table"><geom size=".1"/></body>
      </worldbody></mujoco>""",
}


@pytest.mark.parametrize("what", EMPTY)
def test_what_cannot_move_says_so(what: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "empty.xml"
    path.write_text(EMPTY[what])
    for given in (scene(path), mujoco.MjModel.from_xml_path(str(path))):
        with pytest.warns(UserWarning, match="nothing to simulate"):
            Simulation(given, 2)
    for command in ("run", "bench"):
        assert main([command, str(path)]) == 1
        assert "error: There is nothing to simulate" in capsys.readouterr().err
    assert main(["check", str(path)]) == 0
    err = capsys.readouterr().err
    assert err.count("warning: There is nothing to simulate") == 1


def test_a_mocap_body_moves(recwarn: Any) -> None:
    Simulation(scene("mocap_target"))
    assert not recwarn.list
