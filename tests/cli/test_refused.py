"""Command lines that cannot be carried out: one message, code 1, nothing written."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from simstate import Simulation
from simstate.cli import main
from simstate.scene import models

STUDY = """
from simstate import Simulation
from simstate.scene import models
from simstate.study.dispersions import Study, uniform
def study():
    def make(draws, **options):
        return Simulation(models.spec("cartpole").compile(), **options)
    draws = {"a": uniform(0, 1)}
    return Study(make, draws, 0.01, {"x": lambda sim: sim.data.qpos[:, 0]})
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files to name: a recording, a study, a snapshot, a model without joints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.py").write_text(STUDY)
    (tmp_path / "file.txt").write_text("nothing")
    (tmp_path / "still.xml").write_text(
        "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
    )
    (tmp_path / "one.xml").write_text(
        "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    sim = Simulation(models.spec("cartpole").compile(), 2)
    sim.snapshot().save(tmp_path / "now.npz")
    with sim.record(tmp_path / "run.simrec"):
        sim.step()
    return tmp_path


REFUSED = {
    "align cartpole --with native --plot a.png --seconds 0": "--seconds must be > 0",
    "align cartpole --with native --seconds -1": "seconds",
    "contacts cartpole --seconds -0.1": "--seconds must be",
    "dispersions study.py --out file.txt": "is a file, not a folder",
    "dispersions study.py --confidence 1": "--confidence must be",
    "dispersions study.py --confidence 0": "--confidence must be",
    "export --to hdf5 --out a.hdf5": "Name a recording to export",
    "export run.simrec run.simrec --to foxglove --out a.mcap": "one recording, got 2",
    "export run.simrec --to hdf5 --out a.hdf5 --worlds 0": "--worlds is for --to",
    "export run.simrec --to foxglove --out a.mcap --success a": "--success is for --to",
    "view cartpole --made-by study.py": "--made-by is for recordings",
    "view cartpole --policy p.onnx": "'cartpole' is a model",
    "view now.npz": "simstate view MODEL --snapshot now.npz",
    "view run.simrec --envs 3": "a recording determines its worlds",
    "view run.simrec --noise 0.1": "a recording determines its worlds",
    "view run.simrec --snapshot now.npz": "a recording determines its worlds",
    "view Cartpole-Balance --noise 0.1": "'Cartpole-Balance' is a task or a policy",
    "view Cartpole-Balance --snapshot now.npz": "for models",
    "view cartpole --envs 0": "--envs must be an integer ≥ 1",
    "new-task file.txt cartpole": "ends in .py",
    "new-task study.py cartpole": "study.py' exists",
    "new-task none/a.py cartpole": "does not exist",
    "run cartpole --record a.simrec --seconds 0": "--seconds must be > 0",
    "run cartpole --envs 0": "--envs must be an integer ≥ 1",
    "run cartpole --attitude lie": "need --integrator",
    "run cartpole --tolerance 1e-3": "need --integrator",
    "run cartpole --gravity": "need --integrator",
    "run run.simrec": "is a recording",
    "run cartpole --picture a.jpg": "--picture writes a .png file",
    "run cartpole --transparent": "needs --picture",
    "run cartpole --transparent --film a.mp4": "needs --picture",
    "run cartpole --film a.mp4 --seconds 0.039": "too short for a film",
    "run still.xml": "nothing to simulate",
    "new-task a.py still.xml": "nothing to simulate",
    "play": "Name one policy",
    "play Cartpole-Balance": "name the policy to play",
    "play study.py": "name the policy to play",
    "train Cartpole-Balance --ray local --view": "omit --seeds",
    "train Cartpole-Balance --ray local --grid train.gamma=0.9,0.99": "omit",
    "train Cartpole-Balance --grid train.gamma": "a setting and its values",
    "train Cartpole-Balance --grid train.gamma=": "a setting and its values",
    "train Cartpole-Balance --grid gamma=0.9,0.8": "a setting and its values",
    "train --resume": "--resume needs a task, or a run's --run-dir",
    "train Cartpole-Balance --ray local --seeds 1 2": "omit --seeds",
    "train Cartpole-Balance --seed 1 --seeds 1 2": "--seed is for one run",
    "train Cartpole-Balance --resume --seeds 1 2": "needs its folder, --run-dir",
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_it_is_refused_with_the_reason(folder, line, capsys):
    before = sorted(path.name for path in folder.iterdir())
    assert main(line.split()) == 1
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert said.startswith("error: ")
    assert REFUSED[line] in said
    assert sorted(path.name for path in folder.iterdir()) == before


def test_contacts_at_the_start_and_later(folder, capsys):
    (folder / "ball.xml").write_text(
        "<mujoco><option timestep='0.002'/><worldbody><geom type='plane' size='1 1 1'/>"
        "<body pos='0.1 0 0.0999'><freejoint/><geom size='0.1' mass='2'/></body>"
        "</worldbody></mujoco>"
    )
    for time, steps in (("0", 0), ("0.5", 250)):
        assert main(["contacts", "ball.xml", "--seconds", time, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["time"] == pytest.approx(0.002 * steps)
        assert len(found["contacts"]) == 1
        np.testing.assert_allclose(found["weight"], [0, 0, -19.62], atol=1e-9)
    np.testing.assert_allclose(found["force_of_the_world"], [0, 0, 19.62], rtol=1e-3)
    assert main(["contacts", "ball.xml", "--seconds", "0.5"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"all moving bodies is 0.00 0.00 -19.62 N: (99.9|100.0) % "
                     r"of it is supported", said)  # fmt: skip
    (folder / "afloat.xml").write_text(
        "<mujoco><option gravity='0 0 0'/><worldbody><body><freejoint/>"
        "<geom size='0.1'/></body></worldbody></mujoco>"
    )
    assert main(["contacts", "afloat.xml"]) == 0
    assert "supported" not in capsys.readouterr().out


def test_a_new_task_names_a_model_by_the_way_to_it(folder):
    near, far = folder / "a" / "b", folder / "a" / "b" / "c" / "d"
    far.mkdir(parents=True)
    for where, code in (
        (near / "t.py", 'Path(__file__).parent / "../../one.xml"'),
        (far / "t.py", f"Path({json.dumps(str(folder / 'one.xml'))})"),
    ):
        assert main(["new-task", str(where), "one.xml"]) == 0
        assert code in where.read_text()
    text = near / "t.py"
    text.write_text("mine")
    assert main(["new-task", str(text), "one.xml", "--force"]) == 0
    assert text.read_text() != "mine"


def test_export_writes_each_format(folder, capsys):
    assert main(["run", "Cartpole-Balance", "--record", "t.simrec",
                 "--envs", "4", "--seconds", "12"]) == 0  # fmt: skip
    capsys.readouterr()
    for kind, out in (("hdf5", "a.hdf5"), ("lerobot", "set"), ("foxglove", "a.mcap")):
        assert main(["export", "t.simrec", "--to", kind, "--out", out]) == 0
        said = capsys.readouterr().out
        assert re.match(rf"{out}: \d+ (episodes|messages)\.", said)
        assert (folder / out).exists()
