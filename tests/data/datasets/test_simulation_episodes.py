"""Data sets of a Simulation's recording: an episode is a world up to its reset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import (
    ContactCfg,
    EntityCfg,
    InvalidInputError,
    RecordingError,
    SceneCfg,
    Simulation,
    UnknownNameError,
)
from simstate.data import datasets
from simstate.record import Recording


def make() -> Simulation:
    scene = SceneCfg(
        entities={"arm": EntityCfg(model="arm"), "cube": EntityCfg(model="cube")},
        contacts={"box": ContactCfg(of="cube/.*")},
    )
    return Simulation(scene, num_envs=3)


def record(path: Path, fields: tuple[str, ...] = ("ctrl",)) -> list[torch.Tensor]:
    """Write 12 calls of three worlds, of which world 1 is reset after the fifth.

    World 2 is not stepped in the eighth. The controls of each call are returned.
    """
    sim, controls = make(), []
    names = ["arm.joint_pos", "contacts/box.force_w"]
    generator = torch.Generator().manual_seed(1)
    with sim.record(path, quantities=names, fields=fields):
        for k in range(12):
            size = tuple(sim.data.ctrl.shape)
            controls.append(torch.rand(size, generator=generator, dtype=torch.double))
            sim.data.ctrl[:] = controls[-1]
            sim.step(2, env_ids=[0, 1] if k == 7 else None)
            if k == 4:
                sim.reset([1])
    return controls


def test_hdf5_has_an_episode_for_each_world_and_reset(tmp_path: Path) -> None:
    path = tmp_path / "run.simrec"
    controls = record(path)
    assert datasets.write_hdf5(path, tmp_path / "run.hdf5") == 4
    found = datasets.read_hdf5(tmp_path / "run.hdf5")
    assert [len(one) for one in found] == [12, 5, 6, 11]
    assert [one.attributes["world"] for one in found] == [0, 1, 1, 2]
    # The action of a row is what was applied from it to the next.
    np.testing.assert_array_equal(found[0].actions, [c[0] for c in controls])
    np.testing.assert_array_equal(found[1].actions, [c[1] for c in controls[:5]])
    np.testing.assert_array_equal(found[2].actions, [c[1] for c in controls[6:]])
    others = [c[2] for k, c in enumerate(controls) if k != 7]
    np.testing.assert_array_equal(found[3].actions, others)
    assert all("rewards" not in one.arrays for one in found)
    assert found[0].arrays["obs/contacts/box.force_w"].shape == (12, 1, 3)
    recording = Recording(path)
    joints = recording["arm.joint_pos"].numpy()
    place = "states/articulation/arm/joint_position"
    np.testing.assert_array_equal(found[0].arrays[place], joints[:12, 0])
    assert recording.contract("contacts/box.force_w")["unit"] == "N"


def test_a_reset_cuts_an_episode_whatever_the_time_after_it(tmp_path: Path) -> None:
    path, sim, controls = tmp_path / "run.simrec", make(), []
    with sim.record(path, quantities=["arm.joint_pos"], fields=["ctrl"]):
        for k in range(6):
            if k == 1:
                sim.reset([1])  # its time is the same after this call and the last
            if k == 3:
                sim.reset([2])
            controls.append(torch.full_like(sim.data.ctrl, 0.1 * (k + 1)))
            sim.data.ctrl[:] = controls[-1]
            sim.step(9 if k == 3 else 1)  # world 2's time rises
    found = [
        (episode.world, len(episode), episode.columns["action"][:, 0].round(3).tolist())
        for episode in datasets.episodes_of(path)
    ]
    assert found == [
        (0, 6, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        (1, 1, [0.1]),
        (1, 4, [0.3, 0.4, 0.5, 0.6]),
        (2, 3, [0.1, 0.2, 0.3]),
        (2, 2, [0.5, 0.6]),
    ]


def test_lerobot_has_the_same_episodes(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    record(tmp_path / "run.simrec")
    count = datasets.write_lerobot(
        tmp_path / "run.simrec", tmp_path / "set", state="joint_pos"
    )
    assert count == 4
    (file,) = (tmp_path / "set/data").rglob("*.parquet")
    table = parquet.read_table(file).to_pydict()
    assert np.bincount(table["episode_index"]).tolist() == [12, 5, 6, 11]
    joints = Recording(tmp_path / "run.simrec")["arm.joint_pos"].numpy()
    np.testing.assert_allclose(
        table["observation.state"][:12], joints[:12, 0], atol=1e-6
    )
    assert "next.reward" not in table
    name = "contacts/box.force_w"
    datasets.write_lerobot(tmp_path / "run.simrec", tmp_path / "forces", state=name)
    (file,) = (tmp_path / "forces/data").rglob("*.parquet")
    forces = np.array(parquet.read_table(file)["observation.state"].to_pylist()[:12])
    want = Recording(tmp_path / "run.simrec")[name][:12, 0, 0]
    np.testing.assert_allclose(forces, want, rtol=1e-6)


def test_a_recording_without_controls_says_what_to_record(tmp_path: Path) -> None:
    record(tmp_path / "run.simrec", fields=())
    with raises(RecordingError, name="ctrl"):
        datasets.write_hdf5(tmp_path / "run.simrec", tmp_path / "run.hdf5")
    assert not (tmp_path / "run.hdf5").exists()


def test_samples_of_several_rates_are_no_lerobot_set(tmp_path: Path) -> None:
    sim = make()
    with sim.record(tmp_path / "a.simrec", quantities=["cube.root_link_pos_w"],
                    fields=["ctrl"]):  # fmt: skip
        for n in (1, 1, 1, 3, 1):
            sim.step(n)
    with raises(InvalidInputError, name="every"):
        datasets.write_lerobot(tmp_path / "a.simrec", tmp_path / "set")


def test_readings_in_memory_and_their_names() -> None:
    sim = make()
    history = sim.record(quantities=["contacts/box.force_w"])
    sim.step(3)
    assert history["contacts/box.force_w"].shape == (4, 3, 1, 3)
    assert history.units["contacts/box.force_w"] == "N"
    with raises(UnknownNameError, name="bax"):
        sim.record(quantities=["contacts/bax.force_w"])
    with raises(UnknownNameError, name="force"):
        sim.record(quantities=["contacts/box.force"])
    with raises(InvalidInputError, name="contacts/box"):
        sim.record(quantities=["contacts/box"])


def test_worlds_that_were_not_stepped_have_no_episode(tmp_path: Path) -> None:
    path = tmp_path / "still.simrec"
    with make().record(path, quantities=["arm.joint_pos"], fields=("ctrl",)):
        pass
    with raises(InvalidInputError, name="episodes"):
        datasets.write_lerobot(path, tmp_path / "none")
