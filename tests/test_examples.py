"""Every example runs, and what it prints is checked against its closed form."""

import re
import runpy
from pathlib import Path

import pytest

from simstate.env import Env, tasks

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(capsys):
    """Runs an example as a script, and gives what it printed."""

    def run_example(name):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def numbers(text):
    return [float(x) for x in re.findall(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", text)]


def line(out, start):
    (found,) = [text for text in out.splitlines() if text.startswith(start)]
    return found.removeprefix(start)


def test_every_example_is_run_here():
    tested = {name.removeprefix("test_") for name in globals()}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested
    assert len(list(EXAMPLES.glob("*.py"))) == 13


def test_behaviour_cloning(run):
    out = run("behaviour_cloning")
    (before,) = numbers(line(out, "pole up before [s]: "))
    (after,) = numbers(line(out, "pole up after [s]: "))
    assert before < 1.5
    assert after > 1.9  # of 2 s, as the teacher


def test_two_robots_and_a_cube(run):
    out = run("two_robots_and_a_cube")
    fell, _, closed = re.search(r"fell (\S+) m in (\S+) s, .* is (\S+) m", out).groups()
    assert float(fell) == pytest.approx(float(closed), abs=1e-4)
    assert numbers(line(out, "cube rests at"))[0] == pytest.approx(0.025, abs=5e-4)
    for robot in ("left", "right"):
        assert numbers(line(out, f"{robot} robot"))[-1] > 0.99


def test_wrench_on_a_satellite(run):
    out = run("wrench_on_a_satellite")
    momentum = numbers(line(out, "momentum"))
    angular = numbers(line(out, "angular momentum"))
    assert momentum == pytest.approx([8.0, 0.0, 0.0], abs=1e-6)
    assert angular[:3] == pytest.approx([0.0, 0.0, 6.0], abs=1e-6)


def test_glider_phugoid(run):
    found = re.findall(
        r"trim +(\S+) m/s: period (\S+) s, .*= (\S+) s", run("glider_phugoid")
    )
    assert len(found) == 4
    for speed, period, closed in found:
        lanchester = 3.14159265 * 2**0.5 * float(speed) / 9.80665
        assert float(closed) == pytest.approx(lanchester, abs=1e-3)
        assert float(period) == pytest.approx(lanchester, rel=2e-3)


def test_checkpoint_and_branch(run):
    out = run("checkpoint_and_branch")
    assert "largest difference 0\n" in out
    sideways = [float(x) for x in re.findall(r"m/s: (\S+) m sideways", out)]
    assert sideways == sorted(sideways)
    assert sideways[-1] > sideways[0] + 0.1


def test_joint_order_sim_to_sim(run):
    out = run("joint_order_sim_to_sim")
    assert numbers(line(out, "observation in the policy's order [rad]"))[:2] == [0.2, 0]
    assert numbers(line(out, "target of RR_calf"))[0] == pytest.approx(-1.9)
    assert "there and back again: largest difference 0 rad" in out
    assert "RR_ankle" in line(out, "a joint that is not there")


def test_camera_batch(run):
    out = run("camera_batch")
    assert "rgb (8, 129, 129, 3) torch.uint8" in out
    assert numbers(line(out, "largest error in depth"))[0] < 1e-5
    edges = re.findall(r"edge of (\S+) pixels \(expected (\S+)\)", out)
    assert len(edges) == 3
    for seen, expected in edges:
        assert float(seen) == pytest.approx(float(expected), abs=1.0)


def test_your_own_quantity(run):
    out = run("your_own_quantity")
    gained, closed = re.search(r"0.8 s: (\S+) J, m g Δz = (\S+) J", out).groups()
    assert float(gained) == float(closed) > 3.0
    assert numbers(line(out, "largest error over all worlds"))[0] < 1e-12
    assert "kinetic_energy [J], shape (num_envs,)" in out


def test_your_own_force_model(run):
    out = run("your_own_force_model")
    for speed, closed in re.findall(r": (\S+) m/s, .*?= (\S+) m/s, v∞", out):
        assert float(speed) == pytest.approx(float(closed), abs=1e-6)
    assert float(re.search(r"2\^(\S+)", out).group(1)) == pytest.approx(4.0, abs=0.3)


def test_randomise_masses(run):
    out = run("randomise_masses")
    assert numbers(line(out, "largest error over all worlds"))[0] < 1e-12
    light, heavy = (numbers(line(out, name))[0] for name in ("lightest", "heaviest"))
    assert 0.05 <= light < 0.06
    assert 0.14 < heavy <= 0.15


def test_native_and_warp(run):
    out = run("native_and_warp")
    heights = [float(z) for z in re.findall(r"z = (\S+) m", out)]
    assert len(heights) == 3
    assert heights == pytest.approx([heights[-1]] * 3, abs=1e-5)
    assert numbers(line(out, "largest difference"))[0] > 0
    assert "the same to 1e-3: True" in out


def test_inverse_kinematics(run):
    pytest.importorskip(
        "mink", reason="mink is a library of its own: make test-dynamics"
    )
    out = run("inverse_kinematics")
    assert numbers(line(out, "Jacobians differ by"))[0] < 1e-10
    assert numbers(line(out, "hands are within"))[0] < 5.0


def test_hidden_velocity():
    task = tasks.find(str(EXAMPLES / "hidden_velocity.py"))
    env = Env(task.env_cfg(), 2)
    assert env.observation_names["policy"] == ["joint_pos/slider", "joint_pos/pole"]
    assert env.observation_dims == {"policy": 2, "full": 4}
    task.train_cfg().check()
