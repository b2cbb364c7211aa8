"""The text of a new task file, from the elements of its model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from simstate.base.errors import ModelError
from simstate.cli.model_scene import check_moves, scene_of
from simstate.scene.build import build_scene

STEP_S = 0.02
"""Target duration of an environment step [s]."""


@dataclass(frozen=True)
class _Facts:
    """Facts about a model on which a task depends."""

    keyframe: str | None
    timestep: float
    floats: bool
    """True if its root link has a free joint."""
    height: float
    """Initial height of the root link's origin [m]."""
    joints: bool
    """True if it has 1-DoF joints."""
    position_servos: bool
    """True if it has controls that are positions of joints."""
    controls: tuple[str, ...]
    """Names of the other controls."""
    actuated: bool
    """True if it has controls of any kind."""


def task_text(file: str, source: str, model_code: str) -> str:
    """Return the text of a task file; `model_code` is its expression for the model."""
    facts = _facts(source)
    parts = [
        _HEAD.format(name=file.removesuffix(".py"), file=file),
        _imports(facts, model_code),
        f"MODEL = {model_code}\n",
        _functions(facts),
        _env_cfg(facts),
        _TRAIN,
    ]
    return "\n".join(parts)


def _facts(source: str) -> _Facts:
    scene = scene_of(source)
    check_moves(scene)
    built = build_scene(scene)
    ((_, cfg),) = scene.entities.items()
    (index,) = built.entities.values()
    has_joints = len(index.joints) > 0
    if not has_joints and not len(index.controls):
        raise ModelError(
            f"The model {source!r} has neither 1-DoF joints nor actuators, so a task "
            "cannot act on it: add actuators."
        )
    positions = index.position_inputs.ctrl
    floats = index.base == "free"
    height = float(built.default.qpos[2]) if floats else 0.0
    return _Facts(
        keyframe=cfg.init_state.keyframe,
        timestep=float(built.model.opt.timestep),
        floats=floats,
        height=height,
        joints=has_joints,
        position_servos=len(positions) > 0,
        controls=tuple(
            name
            for name, column in zip(
                index.controls.names, index.controls.ids, strict=True
            )
            if column not in positions
        ),
        actuated=len(index.controls) > 0,
    )


_HEAD = '''"""{name}: a summary of the task in one line.

    simstate train {file}        # trains, into runs/{name}/…
    simstate play runs/{name}/…        # evaluates the policy
"""
'''

_TRAIN = '''
def train_cfg() -> TrainCfg:
    """Return the training settings; all are options (--train.learning-rate 1e-4)."""
    return TrainCfg(num_envs=512, iterations=200, steps_per_env=24)
'''


def _imports(facts: _Facts, model_code: str) -> str:
    scene = ["EntityCfg", "SceneCfg"]
    if facts.keyframe:
        scene.append("InitialStateCfg")
    if not facts.actuated:
        scene.append("MotorActuatorCfg")
    names = [
        *_actions(facts),
        "Env",
        "EnvCfg",
        "ObservationGroupCfg",
        "ObservationTermCfg",
        "RewardTermCfg",
        "TerminationTermCfg",
        "TrainCfg",
        "observations",
        "rewards",
        "terminations",
        *(["EventTermCfg", "events"] if facts.joints or facts.floats else []),
    ]
    order = sorted(names, key=lambda name: (name.islower(), name))
    lines = ["from pathlib import Path\n"] if "Path(" in model_code else []
    lines += [
        "from torch import Tensor\n",
        f"from simstate import {', '.join(sorted(scene))}",
        "from simstate.env import (",
        *(f"    {name}," for name in order),
        ")\n",
    ]
    return "\n".join(lines)


def _functions(facts: _Facts) -> str:
    """Return the code of a user-defined term: a function of the environment."""
    if facts.floats:
        return '''
def forward(env: Env) -> Tensor:
    """Return the root link's velocity along its own x axis [m/s]; (num_envs,)."""
    return env.scene["robot"].data.root_link_lin_vel_b[:, 0]
'''
    return '''
def stillness(env: Env) -> Tensor:
    """Return 1 at rest, and less the faster the joints move; (num_envs,)."""
    speed = env.sim.data.qvel.square().sum(-1)
    return 1.0 / (1.0 + speed)
'''


def _actions(facts: _Facts) -> dict[str, list[str]]:
    """Return the classes of the actions, each with the code that creates one."""
    found: dict[str, list[str]] = {}
    if facts.position_servos:
        found["JointPositionActionCfg"] = [
            "# Joint positions about the default pose [rad or m].",
            '"joints": JointPositionActionCfg(scale=0.5),',
        ]
    if facts.controls:
        chosen = ["ControlActionCfg(),"]
        if facts.position_servos:
            names = (f"        {_quoted(re.escape(n))}," for n in facts.controls)
            chosen = ["ControlActionCfg(", "    control_names=[", *names, "    ]", "),"]
        found["ControlActionCfg"] = [
            "# −1 … 1 is the range of each control.",
            f'"controls": {chosen[0]}',
            *chosen[1:],
        ]
    if not facts.actuated:
        found["JointEffortActionCfg"] = [
            "# Efforts [N·m or N].",
            '"joints": JointEffortActionCfg(scale=1.0),',
        ]
    return found


def _quoted(text: str) -> str:
    """Return the code of a string, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _env_cfg(facts: _Facts) -> str:
    observed, events, ends = _observed(facts), _events(facts), _ends(facts)
    entity = ["model=MODEL"]
    if facts.keyframe:
        entity.append(f"init_state=InitialStateCfg(keyframe={_quoted(facts.keyframe)})")
    if not facts.actuated:
        entity.append('actuators=(MotorActuatorCfg(joints=".*"),)')
    reward = "forward" if facts.floats else "stillness"
    decimation = max(1, round(STEP_S / facts.timestep))
    lines = [
        "",
        "def env_cfg() -> EnvCfg:",
        '    """Return the task; all settings are options (--env.decimation 2)."""',
        "    return EnvCfg(",
        "        scene=SceneCfg(",
        "            entities={",
        '                "robot": EntityCfg(',
        *(f"                    {part}," for part in entity),
        "                )",
        "            },",
        "            ground=None,  # adds a plane if it floats and has no floor",
        f"            timestep={facts.timestep:g},  # of physics [s]",
        "        ),",
        f"        decimation={decimation},  # physics steps per environment step",
        "        episode_length_s=10.0,",
        "        actions={",
        *(f"            {x}" for code in _actions(facts).values() for x in code),
        "        },",
        "        observations={",
        '            "policy": ObservationGroupCfg(',
        "                {",
        *(f"                    {line}" for line in observed),
        "                }",
        "            )",
        "        },",
        "        rewards={  # per second, times their weight",
        f'            "{reward}": RewardTermCfg({reward}, weight=1.0),',
        '            "alive": RewardTermCfg(rewards.is_alive, weight=0.5),',
        '            "rate": RewardTermCfg(rewards.action_rate_l2, weight=-0.01),',
        "        },",
        "        terminations={",
        *(f"            {line}" for line in ends),
        "        },",
        *(["        events={", *(f"            {e}" for e in events), "        },"]
          if events else []),
        "    )",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _observed(facts: _Facts) -> list[str]:
    terms: dict[str, str] = {}
    if facts.floats:
        terms |= {"height": "base_height", "velocity": "base_lin_vel"}
        terms |= {"rates": "base_ang_vel", "gravity": "projected_gravity"}
    if facts.joints:
        terms |= {"joint_pos": "joint_pos_rel", "joint_vel": "joint_vel_rel"}
    terms["action"] = "last_action"
    return [
        f'"{name}": ObservationTermCfg(observations.{term}),'
        for name, term in terms.items()
    ]


def _ends(facts: _Facts) -> list[str]:
    lines = [
        '"time_out": TerminationTermCfg(terminations.time_out, time_out=True),',
    ]
    if facts.floats and facts.height > 0.0:
        lines += [
            '"low": TerminationTermCfg(',
            "    terminations.base_height_below,",
            f'    params={{"height": {0.4 * facts.height:.3g}}},  # of its origin [m]',
            "),",
        ]
    return lines


def _events(facts: _Facts) -> list[str]:
    """Return the code of the events at each reset."""
    lines: list[str] = []
    if facts.floats:
        lines += [
            '"place": EventTermCfg(',
            "    events.reset_root_state,",
            '    params={"pose_range": {"yaw": (-0.1, 0.1)}},',
            '    mode="reset",',
            "),",
        ]
    if facts.joints:
        lines += [
            '"bend": EventTermCfg(',
            "    events.reset_joints,",
            '    params={"position_range": (-0.1, 0.1)},',
            '    mode="reset",',
            "),",
        ]
    return lines
