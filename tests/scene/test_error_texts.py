"""Files that cannot be a model: the error names file and line, nothing is built."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from tests.raised import raises

from simstate import EntityCfg, ModelError, SceneCfg, Simulation

pytestmark = pytest.mark.fast

BAD: dict[str, tuple[bytes, str]] = {
    "unknown attribute": (
        b'<mujoco>\n<worldbody>\n<geom sze=".1"/></worldbody></mujoco>',
        r"model\.xml is not a valid.*'sze'.*line 3",
    ),
    "missing mesh": (
        b'<mujoco><asset>\n<mesh name="m" file="gone.stl"/></asset><worldbody>\n'
        b'<geom type="mesh" mesh="m"/></worldbody></mujoco>',
        r"entity 'robot' \(.*model\.xml\) is not a valid.*'.*gone\.stl'",
    ),
    "cyclic include": (
        b'<mujoco>\n<include file="model.xml"/></mujoco>',
        r"model\.xml is not a valid.*already included.*'include', line",
    ),
    "UTF-16": (
        "<mujoco/>".encode("utf-16"),
        r"model\.xml is not a valid.*byte 0xff in line 1 is not UTF-8\. Save",
    ),
    "Latin-1": (
        '<mujoco><worldbody>\n<body name="käfig"/></worldbody></mujoco>'.encode(
            "latin-1"
        ),
        r"model\.xml is not a valid.*byte 0xe4 in line 2 is not UTF-8\. Save",
    ),
    "empty": (b"", r"model\.xml is not a valid MuJoCo model.*empty file"),
    "100 MB of elements": (
        b"<mujoco><worldbody>"
        + b'<geom size=".1" pos="1 2 3"/>' * 3_500_000
        + b"</worldbody></mujoco>",
        r"model\.xml has 10\d MB of XML; at most 64 MB",
    ),
}


def load(path: Path) -> None:
    """Build worlds of a model."""
    entities = {"robot": EntityCfg(model=path)}
    Simulation(SceneCfg(entities=entities, timestep=None), 512)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_and_allocates_nothing(name: str, tmp_path: Path) -> None:
    content, expected = BAD[name]
    path = tmp_path / "model.xml"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=expected):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_an_included_file_of_another_encoding_raises(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_bytes(
        '<mujoco><worldbody><body name="käfig"><joint/><geom size=".1"/></body>'
        "</worldbody></mujoco>".encode("latin-1")
    )
    path = tmp_path / "model.xml"
    path.write_text('<mujoco><include file="part.xml"/></mujoco>')
    with raises(ModelError, file="model.xml"):
        load(path)


def test_a_folder_raises_and_lists_its_models(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    (tmp_path / "notes.txt").write_text("")
    with raises(ModelError, file="test_a_folder_raises_and_lists0"):
        load(tmp_path)
