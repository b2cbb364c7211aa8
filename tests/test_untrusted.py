"""What files of others can make the program do: the lines of SECURITY.md."""

from __future__ import annotations

import copy
import itertools
import math

import mujoco
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from tests.raised import raises

from simstate import (
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    SimStateError,
    Simulation,
    SnapshotError,
)
from simstate.base.archive import write_archive
from simstate.base.onnx_file import onnx_session
from simstate.env import Env, TrainCfg, tasks
from simstate.env.actuator_network import load_network
from simstate.train.checkpoint import (
    FORMAT,
    find_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from simstate.train.policy_file import load_played
from simstate.train.run_cfg import RunCfg
from simstate.train.training_run import TrainingRun


def run_of(**changes) -> dict:
    run = {"task": "Cartpole-Balance", "train": {}, "seed": 0}
    return {"run": run | changes, "iteration": 1, "algorithm": {}, "env": {}}


@pytest.mark.parametrize("task", ["os:system", "tests.env.conftest", "../evil.py", 7])
def test_a_checkpoint_names_no_code(tmp_path, task):
    write_checkpoint(tmp_path / "model_1.npz", run_of(task=task))
    with raises(SimStateError, name=str(task)):
        TrainingRun.resume(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        {"env": {}},
        {"env": {}, "run": 3},
        {"env": {}, "run": {"task": "Cartpole-Balance"}},
        run_of(evil=1),
        run_of(train={"num_envs": "many"}),
    ],
)
def test_a_checkpoint_that_makes_no_sense_is_refused(tmp_path, content):
    write_checkpoint(tmp_path / "model_1.npz", content)
    with raises(SnapshotError, name="run"):
        TrainingRun.resume(tmp_path)


@pytest.mark.parametrize(
    "content", [5, [1, 2], None, "text", {"list": [1]}, {"items": [[[1], 2]]}, {"a": 1}]
)
def test_a_checkpoint_that_is_no_dictionary_is_refused(tmp_path, content):
    path = tmp_path / "model_1.npz"
    write_archive(path, {"format": FORMAT, "content": content}, {})
    with raises(SnapshotError, file="model_1.npz"):
        TrainingRun.resume(tmp_path)


def test_a_checkpoint_that_is_too_deep_is_refused(tmp_path):
    content = {"list": []}
    for _ in range(400):
        content = {"list": [content]}
    path = tmp_path / "model_1.npz"
    write_archive(path, {"format": FORMAT, "content": content}, {})
    with raises(SnapshotError, file="model_1.npz"):
        TrainingRun.resume(tmp_path)


@pytest.fixture(scope="module")
def whole_checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train = TrainCfg(num_envs=3, iterations=1, steps_per_env=4)
    run = TrainingRun(RunCfg(task="Cartpole-Balance", train=train), folder)
    run.learn(1, lambda progress: None)
    return read_checkpoint(find_checkpoint(folder))


PARTS = (
    ("iteration",), ("algorithm",), ("algorithm", "actor_state_dict"), ("env",),
    ("env", "header"), ("env", "slots"), ("env", "slots", "qpos"), ("episodes",),
    ("episodes", "sum"), ("episodes", "returns"), ("rng",),
)  # fmt: skip
RUN_PARTS = (("run", "settings"), ("run", "without"))


def owner_of(content, path):
    for key in path[:-1]:
        content = content[key]
    return content


VALUES = itertools.cycle([-7.5, torch.zeros(2, 2), None])


@pytest.mark.parametrize(
    ("path", "value"), [(path, next(VALUES)) for path in PARTS + RUN_PARTS], ids=str
)
def test_a_checkpoint_with_a_part_of_another_kind_is_refused(
    tmp_path, whole_checkpoint, path, value
):
    """Its checksum fits: somebody wrote it so."""
    content = copy.deepcopy(whole_checkpoint)
    owner_of(content, path)[path[-1]] = value
    write_checkpoint(tmp_path / "model_1.npz", content)
    with pytest.raises(SimStateError):
        TrainingRun.resume(tmp_path)


@pytest.mark.parametrize("path", PARTS[::2], ids="/".join)
def test_a_checkpoint_without_a_part_is_refused(tmp_path, whole_checkpoint, path):
    content = copy.deepcopy(whole_checkpoint)
    del owner_of(content, path)[path[-1]]
    write_checkpoint(tmp_path / "model_1.npz", content)
    with pytest.raises(SimStateError):
        TrainingRun.resume(tmp_path)


BAD_SETTINGS = [
    ("hidden_sizes", ("x",)), ("hidden_sizes", (True,)), ("hidden_sizes", (0,)),
    ("hidden_sizes", (8.5,)), ("hidden_sizes", ()), ("hidden_sizes", None),
    ("hidden_sizes", 8), ("hidden_sizes", (10**9,)), ("activation", 1.5),
    ("init_noise_std", None), ("init_noise_std", 0.0),
    ("init_noise_std", torch.zeros(3)), ("normalize_observations", "yes"),
    ("learning_rate", -1e-3), ("learning_rate", math.nan), ("desired_kl", 0.0),
    ("entropy_coef", math.inf), ("gamma", 1.01), ("gamma", -0.1), ("lam", "0.9"),
    ("lam", 2), ("clip_param", 0), ("num_learning_epochs", 0),
    ("num_mini_batches", 2.5), ("num_mini_batches", 13), ("value_loss_coef", -1),
    ("max_grad_norm", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS, ids=str)
def test_a_checkpoint_whose_run_could_not_be_is_refused(name, value):
    """3 worlds of 4 steps are 12 samples: too few for 13 mini-batches."""
    train = {"num_envs": 3, "steps_per_env": 4}
    assert RunCfg.of(run_of(train=train)).train.num_envs == 3
    with pytest.raises(SimStateError):
        RunCfg.of(run_of(train={**train, name: value}))


def test_an_activation_is_one_that_there_is(tmp_path, whole_checkpoint):
    content = copy.deepcopy(whole_checkpoint)
    content["run"]["train"]["activation"] = "no such"
    write_checkpoint(tmp_path / "model_1.npz", content)
    with raises(InvalidInputError, name="activation"):
        TrainingRun.resume(tmp_path)
    with raises(InvalidInputError, name="activation"):
        load_played(tmp_path).act_in(Env(tasks.make_cfg("Cartpole-Balance"), 1))


@pytest.mark.parametrize(
    "changes",
    [{"hidden_sizes": (1,)}, {"gamma": 0}, {"gamma": 1.0}, {"lam": 1}, {"lam": 0.0},
     {"desired_kl": None}, {"num_mini_batches": 12}, {"entropy_coef": -0.1},
     {"value_loss_coef": 0}],
    ids=str,
)  # fmt: skip
def test_settings_at_their_limits_will_do(changes):
    TrainCfg(**{"num_envs": 3, "steps_per_env": 4, **changes}).check()


@pytest.mark.parametrize("seed", ["x", [], -1, 2**64, 1.5, None, True], ids=str)
def test_a_run_has_a_seed_that_torch_takes(seed):
    with raises(InvalidInputError, name="seed"):
        RunCfg(task="Cartpole-Balance", train=TrainCfg(), seed=seed)


def test_a_checkpoint_cannot_ask_for_all_memory(tmp_path):
    write_checkpoint(tmp_path / "model_1.npz", run_of(train={"num_envs": 10**12}))
    with raises(SimStateError, name="num_envs"):
        TrainingRun.resume(tmp_path)


def onnx_file(path, external: str | None, nested: bool = False) -> None:
    """y = x + b; b may be in another file, and in a branch of y = x + b or x."""
    values = np.ones(3, np.float32)
    b = helper.make_tensor("b", TensorProto.FLOAT, [3], values.tobytes(), raw=True)
    if external is not None:
        b.ClearField("raw_data")
        b.data_location = TensorProto.EXTERNAL
        b.external_data.add(key="location", value=external)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy"]
    nodes, own = [helper.make_node("Add", ["x", "b"], ["y"])], [b]
    if nested:  # ONNX Runtime reads these later than those of the graph itself
        z = [helper.make_tensor_value_info("z", TensorProto.FLOAT, [3])]
        add, same = (
            helper.make_graph([helper.make_node(*node, ["z"])], "branch", [], z, there)
            for node, there in ((("Max", ["x", "b"]), [b]), (("Identity", ["x"]), []))
        )
        own = [helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])]
        nodes = [
            helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["is_positive"]),
            helper.make_node(
                "If", ["is_positive"], ["y"], then_branch=add, else_branch=same
            ),
        ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], own)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made.ir_version = 9
    path.write_bytes(made.SerializeToString())


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("there", ["../secret.bin", "secret.bin", "/etc/hostname"])
def test_a_policy_reads_no_other_file(tmp_path, monkeypatch, there, nested):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    for folder in (tmp_path, tmp_path / "run"):
        (folder / "secret.bin").write_bytes(np.full(3, 7.0, np.float32).tobytes())
    path = tmp_path / "run" / "policy.onnx"
    onnx_file(path, there, nested)
    for read in (onnx_session, lambda path: load_network(path, "cpu")):
        with raises(SimStateError, file="policy.onnx"):
            read(path)
    onnx_file(path, None, nested)
    assert onnx.load(str(path)).graph.name == "g"
    assert onnx_session(path).get_inputs()[0].name == "x"


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x08\x07" * 50])
def test_what_is_no_onnx_is_refused(tmp_path, content):
    (tmp_path / "p.onnx").write_bytes(content)
    with raises(SimStateError, file="p.onnx"):
        onnx_session(tmp_path / "p.onnx")


def test_mujoco_follows_includes_out_of_the_folder(tmp_path):
    """As SECURITY.md says: a model file of somebody else can read what you can."""
    (tmp_path / "models").mkdir()
    part = '<mujoco><worldbody><body name="far"><freejoint/><geom size=".1"/></body>'
    (tmp_path / "outside.xml").write_text(f"{part}</worldbody></mujoco>")
    path = tmp_path / "models" / "it.xml"
    path.write_text('<mujoco><include file="../outside.xml"/></mujoco>')
    scene = SceneCfg(entities={"it": EntityCfg(model=str(path))}, timestep=None)
    sim = Simulation(scene, 2)
    assert sim.scene["it"].body_names == ("far",)


def test_entities_of_xml_are_not_expanded(tmp_path):
    """The bomb of a billion laughs is a name like any other."""
    laughs = '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    path = tmp_path / "it.xml"
    path.write_text(
        f"<!DOCTYPE m [{laughs}]><mujoco model='&b;'><worldbody>"
        "<body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError:
        return
    assert "haha" not in spec.modelname
