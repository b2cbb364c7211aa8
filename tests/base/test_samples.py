"""Tables and plots of samples, by what is in the table and on the axes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base import samples as drawing
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.base.extras import library, library_folder
from simstate.base.samples import full_column_name
from simstate.record import Recording


class Kept:
    """Two worlds of three; the second starts again after its third sample."""

    names = ("pos", "speed")
    units = {"pos": "m", "speed": "m/s"}  # noqa: RUF012
    time = torch.tensor(
        [[0.0, 0.0], [0.1, 0.1], [0.2, 0.2], [0.3, 0.0], [math.nan, 0.1]]
    )
    values = {  # noqa: RUF012
        "pos": torch.arange(30.0).reshape(5, 2, 3),
        "speed": torch.arange(10.0).reshape(5, 2) + 0.5,
    }

    def __getitem__(self, name):
        return self.values[name]


@pytest.fixture
def figure(monkeypatch):
    """What is drawn, instead of a file."""
    drawn = []
    monkeypatch.setattr(
        drawing, "save_figure", lambda figure, path: drawn.append(figure)
    )
    return drawn


def lines(axes):
    return [np.array(line.get_xydata()) for line in axes.get_lines()]


def legend(figure):
    (found,) = figure.legends
    return [text.get_text() for text in found.texts]


def test_a_table_has_a_row_for_each_sample():
    both = drawing.table_of(Kept(), {4: 0, 7: 1}, whole=True)
    assert list(both.columns) == ["pos[0]", "pos[1]", "pos[2]", "speed"]
    assert both.index.names == ["world", "time"]
    assert len(both.loc[4]) == 4  # of the last there is no time
    assert both.loc[7]["pos[1]"].tolist() == [4.0, 10.0, 16.0, 22.0, 28.0]
    one = drawing.table_of(Kept(), {7: 1}, whole=False)
    assert one.index.name == "time"
    assert one["speed"].tolist() == [1.5, 3.5, 5.5, 7.5, 9.5]
    assert one.attrs["units"] == {"pos": "m", "speed": "m/s"}


def test_a_line_is_broken_where_time_starts_again(figure, tmp_path):
    elapsed = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4])
    drawing.draw(Kept(), tmp_path / "a.png", {4: 0, 7: 1}, ["speed"], None, elapsed)
    (axes,) = figure[0].axes
    first, second = lines(axes)
    np.testing.assert_allclose(first[:, 0], elapsed)
    np.testing.assert_allclose(first[:, 1], [0.5, 2.5, 4.5, 6.5, 8.5])
    np.testing.assert_allclose(second[:, 0], [0.0, 0.1, 0.2, math.nan, 0.3, 0.4])
    np.testing.assert_allclose(second[:, 1], [1.5, 3.5, 5.5, math.nan, 7.5, 9.5])
    assert figure[0].get_supxlabel() == "time since the first sample [s]"
    assert axes.get_title(loc="left") == "speed [m/s]"
    assert figure[0].get_suptitle() == "worlds 4, 7, from dark to light"
    dark, light = axes.get_lines()
    assert dark.get_color() == light.get_color() == "C0"
    assert dark.get_alpha() > light.get_alpha() > 0.0


def test_a_world_whose_time_goes_on_is_drawn_over_it(figure, tmp_path):
    given = {"pos": ["x", "y", "z"]}
    names = ["pos", "speed"]
    drawing.draw(Kept(), tmp_path / "a.png", {4: 0}, names, given, torch.arange(5.0))
    above, below = figure[0].axes
    assert len(lines(above)) == 3
    for k, line in enumerate(lines(above)):
        np.testing.assert_allclose(line[:, 0], Kept.time[:, 0])
        np.testing.assert_allclose(line[:, 1], Kept.values["pos"][:, 0, k])
    assert legend(figure[0]) == ["x", "y", "z"]  # none for the one curve below
    assert [line.get_color() for line in above.get_lines()] == ["C0", "C1", "C2"]
    assert below.get_title(loc="left") == "speed [m/s]"
    assert figure[0].get_supxlabel() == "time [s]"
    drawing.draw(Kept(), tmp_path / "a.png", {4: 0}, ["pos"])
    assert legend(figure[1]) == ["[0]", "[1]", "[2]"]


@pytest.mark.parametrize("width", [12, 25, 45])
def test_many_curves_have_styles_and_few_have_names(figure, tmp_path, width):
    class Wide(Kept):
        values = {"pos": torch.zeros(5, 2, width)}  # noqa: RUF012

    drawing.draw(Wide(), tmp_path / "a.png", {4: 0}, ["pos"])
    (axes,) = figure[0].axes
    shown = {(one.get_color(), one.get_linestyle()) for one in axes.get_lines()}
    assert len(shown) == min(width, 40)
    assert bool(figure[0].legends) == (width <= 2 * drawing.MOST_NAMED)


def test_a_figure_is_refused_before_it_is_drawn(tmp_path):
    with raises(InvalidInputError, file="a.mp3"):
        drawing.draw(Kept(), tmp_path / "a.mp3", {4: 0}, ["pos"])
    with raises(InvalidInputError, name="plot"):
        drawing.draw(Kept(), tmp_path / "none" / "a.png", {4: 0}, ["pos"])


def test_libraries_that_are_missing_are_named_with_their_extra():
    for call in (library, library_folder):
        with raises(InvalidInputError, name="no_such_library"):  # fmt: skip
            call("no_such_library", "view", "Pictures")
    assert library("json", "x", "y").dumps(1) == "1"
    assert (library_folder("mujoco", "x", "y") / "__init__.py").is_file()


def test_a_column_is_found_without_its_entity():
    known = ("a.pos", "b.pos", "b.vel", "qpos")
    assert full_column_name("vel", known, "column") == "b.vel"
    assert full_column_name("qpos", known, "column") == "qpos"
    for name in ("pos", "acc"):
        with raises(UnknownNameError, name=name):
            full_column_name(name, known, "column")


def test_all_samples_are_read_without_their_entity(tmp_path):
    """A history in memory and a recording."""
    sim = Simulation(SceneCfg(entities={"cart": EntityCfg(model="cartpole")}))
    history = sim.record(quantities=["cart.joint_pos"], every=0.01)
    with sim.record(tmp_path / "a.simrec", quantities=["cart.joint_pos"]):
        sim.step(2)
    recording = Recording(tmp_path / "a.simrec")
    assert torch.equal(history["joint_pos"][-1], recording["joint_pos"][-1])
