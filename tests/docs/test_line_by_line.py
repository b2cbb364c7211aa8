"""Each line of ours next to another library's lines runs, in order."""

import re

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.docs.line_by_line import columns, run, statements

PAGES = {
    page: columns(page)
    for page in ("from-basilisk", "from-ptera", "from-mjlab", "from-isaac-lab")
}


def ours(page, heading):
    return run(PAGES[page][heading][1], page)


def test_there_are_lines_on_both_sides():
    for page, found in PAGES.items():
        for heading, sides in found.items():
            for side in sides:
                assert len(statements(side)) > 8, f"{page}: {heading}"
    every = [sides for found in PAGES.values() for sides in found.values()]
    assert sum(len(statements(side)) for sides in every for side in sides) > 200


@pytest.mark.parametrize("page", PAGES)
def test_columns_fit_next_to_each_other(page):
    for sides in PAGES[page].values():
        for line in "".join(sides).splitlines():
            assert len(line) <= 88, line


def test_an_orbit_of_basilisks():
    """It ends where it did in Basilisk itself; `make test-peers` runs both."""
    names = ours("from-basilisk", "An orbit, line by line")
    np.testing.assert_allclose(names["times"][-1], 3000.0)
    assert len(names["times"]) == 51
    apart = names["place"].norm() - 6778e3
    assert abs(float(apart)) < 2e4


def test_an_mjscene_of_basilisks():
    """A body that tumbles freely keeps its angular momentum, and goes straight on."""
    names = ours("from-basilisk", "An MJScene, line by line")
    np.testing.assert_allclose(names["place"], [2.0, 2.0, 1.0], atol=1e-9)
    turn = Rotation.from_quat(names["quat"].numpy(), scalar_first=True)
    inertia = np.array([1.0, 2.0, 3.0])
    momentum = turn.apply(inertia * names["rate"].numpy())
    np.testing.assert_allclose(momentum, inertia * [0.1, 3.0, 0.1], atol=5e-3)


def test_a_free_flight_of_pteras():
    """Theirs on our class with their calls, ours on FreeFlight; `make test-ptera` runs
    theirs on theirs.
    """
    left, _ = PAGES["from-ptera"]["A free flight, line by line"]
    left = left.replace("pterasoftware._mujoco_model", "simstate.interop.ptera")
    theirs = run(left, "from-ptera")
    names = ours("from-ptera", "A free flight, line by line")
    for name in ("place", "speed", "spin", "turn", "now"):
        np.testing.assert_allclose(names[name], theirs[name], rtol=1e-12, atol=1e-13)
    assert abs(float(names["now"]) - 0.5) < 1e-12
    assert float(names["place"][0]) > 5


GO1 = "Go1 on flat ground, line by line"


def named(text, what):
    """The names under which code puts terms into a dictionary."""
    first = re.findall(rf'{what} = {{\s*"(\w+)": \w+TermCfg', text)
    return [*first, *re.findall(rf'{what}\["(\w+)"\]', text)]


@pytest.mark.parametrize("what", ["seen", "more", "happens", "earns", "ends", "grows"])
def test_the_terms_of_mjlabs_go1_are_all_there(what):
    theirs, mine = (named(side, what) for side in PAGES["from-mjlab"][GO1])
    assert theirs == mine
    assert len(theirs) >= (1 if what == "grows" else 2)


def test_a_task_of_mjlabs():
    """Its terms, of a state that is none of rest, by mjlab's formulas in numpy."""
    names = ours("from-mjlab", GO1)
    env, earns = names["env"], names["earns"]
    assert env.observation_dims == {"policy": 48, "critic": 72}
    generator = torch.Generator().manual_seed(1)
    for _ in range(12):
        env.step(0.4 * torch.randn(64, 12, generator=generator))
    data = env.scene["robot"].data
    command = env.commands["twist"].command.numpy()
    lin, ang = data.root_link_lin_vel_b.numpy(), data.root_link_ang_vel_b.numpy()
    missing = np.sum((command[:, :2] - lin[:, :2]) ** 2, axis=1) + lin[:, 2] ** 2
    turning = (command[:, 2] - ang[:, 2]) ** 2 + np.sum(ang[:, :2] ** 2, axis=1)
    active = np.linalg.norm(command[:, :2], axis=1) + np.abs(command[:, 2]) > 0.05
    assert 0 < active.sum() < 64
    std = np.where(active[:, None], [0.3, 0.3, 0.6] * 4, [0.05, 0.05, 0.1] * 4)
    away = (data.joint_pos - data.default_joint_pos).numpy()
    expected = {
        "track_linear_velocity": np.exp(-missing / 0.25),
        "track_angular_velocity": np.exp(-turning / 0.5),
        "pose": np.exp(-np.mean((away / std) ** 2, axis=1)),
    }
    for name, values in expected.items():
        found = earns[name].func(env).numpy()
        np.testing.assert_allclose(found, values, rtol=1e-5, err_msg=name)


def test_a_task_of_isaac_labs():
    names = ours("from-isaac-lab", "A task, line by line")
    env = names["env"]
    assert names["obs"]["policy"].shape == (64, 3 + 3 + 12)
    assert set(env.cfg.rewards) == {"track_lin_vel", "air_time", "torques"}
    trunk = env.scene["robot"].body_names.index("trunk")
    mass = env.scene["robot"].data.body_mass[:, trunk]
    assert float(mass.std()) > 0.3  # drawn over 2 kg
