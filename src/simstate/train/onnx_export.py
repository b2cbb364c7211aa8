"""Export of a policy as an ONNX file that describes its inputs and outputs."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor

from simstate.base.files import write_atomically
from simstate.engine import OneTorchThread
from simstate.env import Env
from simstate.env.actions import Action, BodyWrenchAction, JointAction
from simstate.env.control_action import ControlAction
from simstate.env.groups import flat
from simstate.env.joint_pd_action import JointPdAction
from simstate.interop.picture_network import ExportedNetwork
from simstate.scene.index import TargetInputs
from simstate.train.checkpoint_policy import Policy
from simstate.train.passport_writer import make_passport
from simstate.train.policy_passport import KEY


def export_onnx(policy: Policy, env: Env, path: Path) -> None:
    """Write the network: input "obs" (batch, k), output "actions" (batch, n).

    Pictures (batch, H, W, C) are further inputs, named as `env.observation_specs` names
    them ("policy", or "policy/term"). The memory of a recurrent network is a further
    input "h_in" and output "h_out" (layers, batch, size), for an LSTM also "c_in" and
    "c_out"; it is zero at the start of an episode. The normalisation of observations is
    part of the network. The metadata has JSON under "task", "run" (its settings, with
    the number of updates), "step_dt" [s], "observation_names", "action_names",
    "actions", the result of `describe_actions`, and "passport", the contract of each
    column and a proof (see `Passport`).
    """
    network: Any = policy.network.as_onnx(verbose=False).to("cpu").eval()
    columns, inputs = _inputs(env, policy.run.train.actor_group)
    batch = tuple({0: torch.export.Dim("batch")} for _ in inputs)
    outputs = ["actions"]
    if policy.network.is_recurrent:
        _, *memory = network.get_dummy_inputs()
        names = network.input_names[1:]
        inputs |= {n: x.repeat(1, 2, 1) for n, x in zip(names, memory, strict=True)}
        batch += tuple({1: torch.export.Dim("batch")} for _ in memory)
        outputs = network.output_names
    # Modules with *inputs have one parameter, a tuple of them.
    shapes = (batch,) if isinstance(network, ExportedNetwork) else batch
    buffer = io.BytesIO()
    with OneTorchThread(), _quiet():
        torch.onnx.export(
            network,
            tuple(inputs.values()),
            buffer,  # pyright: ignore[reportArgumentType]
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes=shapes,
            opset_version=18,
            verbose=False,
        )
    model = onnx.load_from_string(buffer.getvalue())
    run = {k: v for k, v in policy.run.as_dict().items() if k != "output"}
    run["train"]["iterations"] = policy.iterations  # including resumed runs
    facts = {
        "task": policy.run.task,
        "run": run,
        "step_dt": env.step_dt,
        "observation_names": columns,
        "action_names": env.action_names,
        "actions": describe_actions(env),
        KEY: make_passport(policy, env).to_json(),
    }
    text = {key: json.dumps(value) for key, value in facts.items()}
    onnx.helper.set_model_props(model, text)
    write_atomically(path, model.SerializeToString())


def _inputs(env: Env, group: str) -> tuple[list[str], dict[str, Tensor]]:
    """Return the names of the policy's columns, and examples of its inputs."""
    specs = flat({group: env.observation_specs[group]})
    columns = [name for key in specs for name in env.observation_names.get(key, ())]
    inputs = {"obs": torch.zeros(2, len(columns))} if columns else {}
    for key, spec in specs.items():
        if key not in env.observation_names:
            inputs[key] = torch.zeros(2, *spec.shape, dtype=spec.dtype)
    return columns, inputs


def describe_actions(env: Env) -> dict[str, dict[str, Any]]:
    """Return a description of an action's columns, by term.

    For joints, target = target_at_zero + scale × action, clamped to "clip" if there is
    one, with a value for each of "joint_names"; a servo then applies
    stiffness × (target − position) − damping × velocity. For a wrench on a body it is
    scale × action, with the action clamped to ± "limit", along the body's axes
    [N, N·m]. For controls, scale × action from −1 to 1 spans "range", and is clamped to
    it; if the range is infinite, scale × action is the control.
    """
    return {name: _describe(env, term) for name, term in env.actions.items()}


def _describe(env: Env, term: Action) -> dict[str, Any]:
    if isinstance(term, BodyWrenchAction):
        return {
            "kind": "body wrench",
            "body_name": term.entity.body_names[term.body],
            "names": list(term.names),
            "scale": _floats(term.scale),
            "limit": term.cfg.limit,
        }
    if isinstance(term, ControlAction):
        return {
            "kind": "controls",
            "names": list(term.names),
            "scale": term.cfg.scale,
            "range": list(zip(_floats(term.low), _floats(term.high), strict=True)),
        }
    if not isinstance(term, JointAction):
        return {"kind": type(term).__name__, "names": list(term.names)}
    data = term.entity.data
    zero = term.targets(torch.zeros_like(data.default_joint_pos[:, : term.dim]))
    ids = term.joints.joint_ids
    kind = f"joint {term.cfg.kind}"
    if isinstance(term, JointPdAction):
        kind = type(term.cfg).__name__.removesuffix("ActionCfg")
        stiffness, damping = _floats(term.stiffness[0]), _floats(term.damping[0])
    else:
        stiffness, damping = _gains(env, term)
    return {
        "kind": kind,
        "joint_names": list(term.names),
        "default_joint_pos": _floats(data.default_joint_pos[0, ids]),
        "target_at_zero": _floats(zero[0]),
        "scale": _floats(term.scale.expand(1, term.dim)[0]),
        "clip": term.cfg.clip,
        "stiffness": stiffness,
        "damping": damping,
    }


def _gains(env: Env, term: JointAction) -> tuple[list[float], list[float]]:
    """Return the stiffness and damping of each joint's actuator, at the joint."""
    model = env.sim.model
    inputs: TargetInputs = getattr(term.entity.index, f"{term.cfg.kind}_inputs")
    row_of = {
        term.entity.joint_names[joint]: k for k, joint in enumerate(inputs.joints)
    }
    rows = [row_of[name] for name in term.names]
    gear = model.actuator_gear[[inputs.outputs[k] for k in rows], 0]
    bias = model.actuator_biasprm[[inputs.actuators[k] for k in rows]]
    return _floats(-bias[:, 1] * gear**2), _floats(-bias[:, 2] * gear**2)


def _floats(values: Iterable[Any]) -> list[float]:
    return [float(value) for value in values]


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Context manager that suppresses the output and the warnings of the exporter."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
