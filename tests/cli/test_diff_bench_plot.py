"""`simstate diff`, `simstate bench`, and the files that `simstate run` writes."""

import json
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.cli import main
from simstate.cli.model_scene import disturb, scene_of
from simstate.cli.plain_loop import STEPS, PlainLoop
from simstate.simulators.state_file import save_states
from simstate.state import Snapshot, diff


@pytest.fixture
def saved(tmp_path):
    """Saves the cart and pole as a command has it, changed: saved(name, change)."""

    def save(name, change=None, num_envs=3, **options):
        cart = EntityCfg(model="cartpole")
        sim = Simulation(SceneCfg(entities={"robot": cart}), num_envs, **options)
        if change is not None:
            change(sim)
        path = tmp_path / f"{name}.npz"
        sim.snapshot().save(path)
        return str(path)

    return save


def test_run_saves_what_diff_reads(tmp_path, capsys):
    files = []
    for seed in (0, 0, 1):
        path = tmp_path / f"{len(files)}.npz"
        args = ["run", "cartpole", "--envs", "2", "--seconds", "0.05", "--no-check"]
        assert main([*args, "--seed", str(seed), "--save", str(path)]) == 0
        files.append(str(path))
    assert Snapshot.load(files[0]).time.tolist() == pytest.approx([0.05, 0.05])
    assert main(["diff", files[0], files[1]]) == 0
    assert main(["diff", files[0], files[2]]) == 1
    assert "'robot/slider'" in capsys.readouterr().out


def test_diff_names_the_element_with_its_unit(saved, capsys):
    def nudge(sim):
        sim.data.qvel[1, 1] += 0.25
        sim.data.qvel[2, 1] -= 0.125

    args = ["diff", saved("a"), saved("b", nudge)]
    assert main([*args, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is False
    assert found["max_error"] == 0.25
    (line,) = found["differences"]
    assert line["quantity"] == "qvel"
    assert line["element"] == "[1] (hinge 'robot/pole')"
    assert (line["world"], line["worlds"], line["unit"]) == (1, 2, "m/s or rad/s")
    assert main([*args, "--tolerance", "0.2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["num_differences"] == 1
    assert main([*args, "--tolerance", "0.25"]) == 0


def test_diff_shows_the_greatest_first_and_says_what_it_leaves_out(saved, capsys):
    def spread(sim):
        sim.data.qpos[0] += torch.tensor([0.1, 0.3], dtype=sim.dtype)

    args = ["diff", saved("a"), saved("b", spread), "--rows", "1"]
    assert main(args) == 1
    out = capsys.readouterr().out
    assert "robot/pole" in out
    assert "robot/slider" not in out
    assert "the first 1 of 2 lines" in out


def test_diff_says_infinite_as_null(saved, capsys):
    assert main(["diff", saved("a"), saved("b", num_envs=4), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)  # no Infinity, which is not JSON
    assert found["max_error"] is None
    assert "missing on the left" in {line["reason"] for line in found["differences"]}


def test_diff_notes_how_they_were_made(saved, tmp_path, capsys):
    cart = EntityCfg(model="cartpole")
    other = Simulation(SceneCfg(entities={"robot": cart}, timestep=0.002), 3)
    path = tmp_path / "fine.npz"
    other.snapshot().save(path)
    assert main(["diff", saved("a"), str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "timestep is 0.005 on the left, 0.002 on the right" in out
    assert "opt.timestep" in out


def test_diff_sees_what_an_integrator_keeps():
    def at(value):
        sim = Simulation(
            SceneCfg(entities={"robot": EntityCfg(model="cartpole")}),
            integrator=integrate.RK4(),
        )
        sim.mass_rate[:, 1] = value
        return sim.snapshot()

    assert not diff(at(1.0), at(1.0))
    (found,) = diff(at(1.0), at(1.5))
    assert (found.entity, found.error) == ("integrator", 0.5)


def test_diff_refuses_files_that_it_cannot_read(saved, tmp_path, capsys):
    good = saved("a")
    cut = tmp_path / "cut.npz"
    cut.write_bytes((tmp_path / "a.npz").read_bytes()[:3000])
    text = tmp_path / "text.npz"
    text.write_text("hello")
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, x=np.zeros(3))
    for bad, expected in (
        (cut, "is not a complete simstate file"),
        (text, "it is not an .npz archive"),
        (foreign, "is not a complete simstate file"),
        (tmp_path / "nothing.npz", "There is no file"),
        (tmp_path, "There is no file"),
    ):
        for pair in ((good, str(bad)), (str(bad), good)):
            assert main(["diff", *pair]) == 1
            message = " ".join(capsys.readouterr().err.split())
            assert expected in message
            assert "pickle" not in message


def test_diff_refuses_a_snapshot_and_unified_states(saved, tmp_path, capsys):
    whole, states = saved("a"), tmp_path / "states.npz"
    cart = SceneCfg(entities={"robot": EntityCfg(model="cartpole")})
    save_states(Simulation(cart, 3).get_states(mode="tensor"), states)
    for pair in ((whole, str(states)), (str(states), whole)):
        assert main(["diff", *pair]) == 1
        message = " ".join(capsys.readouterr().err.split())
        assert f"{str(states)!r} has the format 'simstate states 1'" in message


def test_diff_refuses_two_models(saved, tmp_path, capsys):
    cube = Simulation(SceneCfg(entities={"robot": EntityCfg(model="cube")}))
    path = tmp_path / "cube.npz"
    cube.snapshot().save(path)
    assert main(["diff", saved("a"), str(path)]) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert "are of different models" in message
    assert "nq is 2 here, 7 there" in message


@pytest.mark.parametrize("option", [["--tolerance", "-1"], ["--rows", "-1"]])
def test_diff_refuses_bad_options(option, saved, capsys):
    assert main(["diff", saved("a"), saved("b"), *option]) == 1
    assert f"{option[0]} must be" in capsys.readouterr().err


def test_bench_measures_both_in_world_steps(capsys):
    args = ["bench", "cartpole", "--envs", "1", "8", "--seconds", "0.1", "--json"]
    assert main(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unit"] == "world-steps/s"
    assert [one["worlds"] for one in found["results"]] == [1, 8]
    for one in found["results"]:
        assert one["rounds"] >= 5
        for who in ("simstate", "loop"):
            assert 0 < one[who]["low"] <= one[who]["median"] <= one[who]["high"]
        ratio = one["simstate"]["median"] / one["loop"]["median"]
        assert one["ratio"] == pytest.approx(ratio)


def test_bench_loop_does_the_same_steps():
    """Both measure the same motion: the loop ends where the simulation does."""
    sim = Simulation(scene_of("quadruped"), 3)
    disturb(sim, 0.1, 0)
    loop = PlainLoop(sim.model, sim.state.clone().numpy())
    loop.run()  # from another state than the start, which rewind must bring back
    loop.rewind()
    loop.run()
    sim.step(STEPS)
    for world, data in enumerate(loop.datas):
        np.testing.assert_array_equal(data.qpos, sim.data.qpos[world].numpy())


def test_bench_loop_leaves_warnings_of_diverging_worlds_out(tmp_path, monkeypatch):
    """MuJoCo would print them, and write them into a file of the working folder."""
    monkeypatch.chdir(tmp_path)
    sim = Simulation(scene_of("quadruped"), 2)
    sim.data.qvel[:] = 1e9
    loop = PlainLoop(sim.model, sim.state.clone().numpy())
    loop.rewind()
    loop.run()
    assert any(data.warning.number.any() for data in loop.datas)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["bench", "cube", "--seconds", "0"], "--seconds must be > 0"),
        (["bench", "cube", "--envs"], "--envs needs at least one"),
        (["bench", "cube", "--envs", "0"], "num_envs must be an integer ≥ 1"),
        (["run", "cube", "--plot", "x.nothing"], "supported image format"),
        (["run", "cube", "--plot", "no/folder/x.png"], "does not exist"),
        (["run", "cube", "--save", "no/folder/x.npz"], "does not exist"),
        (["run", "cube", "--save", "."], "is a folder"),
        (["run", "cube", "--film", "x.png"], ".gif or .mp4"),
        (["plot", "cube.simrec", "--out", "no/folder/x.png"], "does not exist"),
    ],
)
def test_bad_options_are_reported_before_the_work(args, expected, capsys):
    assert main(args) == 1
    captured = capsys.readouterr()
    assert expected in " ".join(captured.err.split())
    assert not captured.out


def test_plots_need_matplotlib(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["run", "cube", "--plot", str(tmp_path / "x.png")]) == 1
    assert "simstate[plot]" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["humanoid", "mocap_target"])
def test_run_draws_an_image(model, tmp_path):
    path = tmp_path / "run.png"
    args = ["run", model, "--envs", "2", "--seconds", "0.1", "--no-check"]
    assert main([*args, "--plot", str(path)]) == 0
    pixels = np.asarray(Image.open(path).convert("RGB"))
    assert min(pixels.shape[:2]) > 200
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20  # lines, not a blank


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Runs a model for a tenth of a second, and gives its figure."""

    def draw(*args):
        figures = []
        monkeypatch.setattr(
            "simstate.base.samples.save_figure",
            lambda figure, path: figures.append(figure),
        )
        plot = str(tmp_path / "x.png")
        args = ["run", *args, "--seconds", "0.1", "--no-check", "--plot", plot]
        assert main(args) == 0
        return figures[0]

    return draw


def test_the_plot_has_a_panel_for_each_kind_of_joint_with_its_unit(drawn):
    figure = drawn("quadruped", "--envs", "3", "--world", "2")
    assert figure.get_suptitle() == "quadruped, world 2"
    assert figure.get_supxlabel() == "time [s]"
    axes = {one.get_title(loc="left"): one for one in figure.get_axes()}
    shown = [f"joint_pos, {kind} [rad]" for kind in ("hip", "thigh", "calf")]
    shown += ["root_link_pos_w [m]", "root_link_lin_vel_w [m/s]"]
    assert set(shown) <= set(axes)
    assert len(figure.legends) == 1
    time, height = axes["root_link_pos_w [m]"].get_lines()[2].get_data()
    assert (time[0], time[-1]) == pytest.approx((0.0, 0.1))
    # MuJoCo alone, from the same start: the third world's trunk.
    sim = Simulation(scene_of("quadruped"), 3)
    disturb(sim, 0.1, 0)
    loop = PlainLoop(sim.model, sim.state.clone().numpy())
    loop.rewind()
    loop.run()
    assert height[-1] == pytest.approx(loop.datas[2].qpos[2], abs=1e-12)


def test_the_plot_of_joints_of_two_kinds_names_each_unit(drawn):
    figure = drawn("cartpole", "--envs", "1")
    labels = [line.get_label() for line in figure.get_axes()[0].get_lines()]
    assert labels == ["slider [m]", "pole [rad]"]


def test_the_plot_of_an_integrator_has_the_drifts_of_the_scheme_alone(drawn):
    figure = drawn("cartpole", "--envs", "2", "--integrator", "rk4", "--noise", "2")
    axes = {one.get_title(loc="left"): one for one in figure.get_axes()}
    time, drift = axes["scheme alone: energy [J]"].get_lines()[0].get_data()
    assert time[-1] == pytest.approx(0.1)
    assert 0.0 < max(drift) < 1e-8  # without damping and limits
