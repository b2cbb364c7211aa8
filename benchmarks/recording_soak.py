"""A long recording: is memory flat, and is the file whole?

    python benchmarks/recording_soak.py --gigabytes 10

Worlds are stepped with a column that no compression makes smaller, until the file has
the size; memory and threads are compared after a fifth of the run and at its
end (Linux). Then the file is opened, and samples from all of it are compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.record import Recording
from soak import take_note, verdict

WORLDS, WIDTH = 1024, 512
"""4 MB for each sample."""


def noise(sample: int) -> torch.Tensor:
    """What is recorded as a sample; (worlds, width) random bits."""
    generator = torch.Generator().manual_seed(sample)
    shape, most = (WORLDS, WIDTH), torch.iinfo(torch.int64).max
    return torch.randint(most, shape, generator=generator, dtype=torch.int64)


def write(path: Path, size: float) -> int:
    """Record until the file has a size [bytes]; how many samples that took."""
    scene = SceneCfg(entities={"robot": EntityCfg(model="cartpole")})
    sim, sample = Simulation(scene, WORLDS, seed=1), 0
    quantities = {"noise": lambda sim: noise(sample), "q": "robot.joint_pos"}
    with sim.record(path, quantities=quantities, snapshot_every=0.5):
        while path.stat().st_size < size:
            sim.data.ctrl[:] = sim.rng.normal(slice(None), 1)
            sample += 1
            sim.step()
            take_note()
    return sample + 1


def check(path: Path, samples: int) -> None:
    """Read some samples of the file, and compare them with what was recorded."""
    with Recording(path) as recording:
        assert recording.is_whole
        assert recording.num_samples == samples
        for k in {0, samples // 3, samples // 2, samples - 1}:
            assert torch.equal(recording.read("noise", k, k + 1)[0], noise(k)), k


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, help="where there is room for it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "long.simrec"
        begun = time.monotonic()
        samples = write(path, args.gigabytes * 1e9)
        seconds, size = time.monotonic() - begun, path.stat().st_size
        fine = verdict("recording")
        check(path, samples)
        print(
            f"{size / 1e9:.2f} GB in {samples} samples, {size / seconds / 1e6:.0f} MB/s"
        )
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
