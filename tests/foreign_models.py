"""Models that we did not write: all MJCF files of Gymnasium and dm_control.

from tests.foreign_models import FOREIGN, foreign_scene

FOREIGN maps names ("gymnasium/ant", "dm_control/suite/dog") to files; nothing is read
or compiled before a test asks for it. Without dm_control, one of whose dependencies has
no wheel for Python 3.13, there are those of Gymnasium alone.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from simstate import EntityCfg, SceneCfg

_FOLDERS = {"gymnasium": "envs/mujoco/assets", "dm_control": ""}

NOT_MODELS = {
    "dm_control/locomotion/walkers/assets/build_fruitfly/assets/drosophila",
    "dm_control/locomotion/walkers/assets/build_fruitfly/floor",
    "dm_control/locomotion/walkers/assets/build_fruitfly/fruitfly",
    "dm_control/locomotion/walkers/assets/dog_v2/scene",
    "dm_control/mjcf/schema",
    "dm_control/mjcf/test_assets/attribute_test_schema",
    "dm_control/mjcf/test_assets/included_with_invalid_filenames",
    "dm_control/mjcf/test_assets/model_with_invalid_filenames",
    "dm_control/mjcf/test_assets/test_model",
    "dm_control/mujoco/testing/assets/model_with_assets",
}
"""Files that MuJoCo itself refuses: schemas, parts of models, tests of errors."""


def _found() -> dict[str, Path]:
    files: dict[str, Path] = {}
    for package, folder in _FOLDERS.items():
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parent / folder
        for path in sorted(root.rglob("*.xml")):
            name = path.relative_to(root).with_suffix("")
            files[f"{package}/{name.as_posix()}"] = path
    return files


FILES = _found()
"""Every XML file of the packages, by name."""

FOREIGN = {name: path for name, path in FILES.items() if name not in NOT_MODELS}
"""Those that are models."""

WARP = ("dm_control/suite/reacher", "dm_control/mujoco/testing/assets/arm")
"""Few enough for every run of the suite: warp compiles kernels for each model."""

WARP_SOAK = (
    "dm_control/suite/acrobot",
    "dm_control/suite/ball_in_cup",
    "dm_control/suite/finger",
    "dm_control/suite/humanoid_CMU",
    "dm_control/suite/manipulator",
    "dm_control/suite/quadruped",
    "dm_control/suite/stacker",
    "dm_control/suite/walker",
    "gymnasium/ant",
    "gymnasium/half_cheetah",
    "gymnasium/pusher",
    "gymnasium/reacher",
    "gymnasium/swimmer",
)
"""Some more, for `make soak`."""


def foreign_scene(name: str, **scene: Any) -> SceneCfg:
    """A scene of one foreign model and nothing else, with the physics of its file."""
    settings: dict[str, Any] = {"ground": False, "timestep": None} | scene
    robot = EntityCfg(model=FOREIGN[name])
    return SceneCfg(entities={"robot": robot}, **settings)
