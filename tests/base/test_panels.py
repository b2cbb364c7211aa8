"""Figures of samples: a panel for each kind of joint, one legend, worlds as shades."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from simstate.base.samples import draw, split_name


@pytest.mark.parametrize(
    ("name", "member", "kind"),
    [
        ("FL_hip", "FL", "hip"),
        ("left_hip_pitch", "left", "hip_pitch"),
        ("joint3", "3", "joint"),
        ("RR_calf [rad]", "RR", "calf [rad]"),
        ("slider", "slider", ""),
        ("x", "x", ""),
    ],
)
def test_names_of_joints_have_a_side_and_a_kind(
    name: str, member: str, kind: str
) -> None:
    assert split_name(name) == (member, kind)


class Kept:
    """Twelve samples of two worlds."""

    names = ("robot.joint_pos", "robot.height")
    units = {"robot.joint_pos": "rad", "robot.height": "m"}  # noqa: RUF012
    time = torch.linspace(0.0, 1.1, 12)[:, None].expand(12, 2)

    def __getitem__(self, name: str) -> torch.Tensor:
        shape = (12, 2, 4) if name == "robot.joint_pos" else (12, 2)
        return torch.rand(shape, generator=torch.Generator().manual_seed(2))


def test_a_figure_has_a_panel_for_each_kind_and_one_legend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    joints = {"robot.joint_pos": ["FL_hip", "FL_calf", "RR_hip", "RR_calf"]}
    path = tmp_path / "a.svg"
    draw(Kept(), path, {3: 0, 7: 1}, Kept.names, joints)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
    for title in ("robot.joint_pos, hip [rad]", "robot.joint_pos, calf [rad]"):
        assert texts.count(title) == 1
    assert texts.count("robot.height [m]") == 1
    assert texts.count("worlds 3, 7, from dark to light") == 1
    assert (texts.count("FL"), texts.count("RR")) == (1, 1)  # one legend for all
    draw(Kept(), tmp_path / "a.pdf", {7: 1}, Kept.names)
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
