"""Every kind of network and learner: exact resume, play, export, bad settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside import explicit_critic_of, gather
from tests.raised import raises

from simstate import InvalidInputError, SimStateError, UnknownNameError
from simstate.base.errors import SnapshotError
from simstate.env import Env, tasks
from simstate.interop.rsl_rl import grouped
from simstate.train import algorithm
from simstate.train.checkpoint import find_checkpoint, find_policy, read_checkpoint
from simstate.train.checkpoint_policy import Policy
from simstate.train.explicit_ppo import ExplicitPPO
from simstate.train.onnx_export import export_onnx
from simstate.train.policy_file import load_played
from simstate.train.run_cfg import RunCfg
from simstate.train.training_run import TrainingRun

pytestmark = pytest.mark.long

TASK = str(Path(__file__).parents[2] / "examples" / "hidden_velocity.py")
FEW = {
    "num_envs": 6, "steps_per_env": 7, "iterations": 4, "num_mini_batches": 2,
    "hidden_sizes": (8,), "rnn_size": 5,
}  # fmt: skip
ADAMW = {"algorithm": {"optimizer": "adamw"}, "critic": {"activation": "relu"}}
TEACHER = ""
KINDS: dict[str, dict[str, Any]] = {
    "sizes": {"hidden_sizes": (8, 6), "critic_hidden_sizes": (12, 10, 4)},
    "group": {"actor_group": "full"},
    "gru": {"network": "gru"},
    "lstm": {"network": "lstm", "rnn_layers": 2},
    "gru and perceptron": {
        "network": "gru",
        "rsl_rl": {"critic": {"class_name": "MLPModel"}},
    },
    "rnd": {"rnd_weight": 2.0},
    "rsl_rl": {"rsl_rl": ADAMW},
    "student": {"algorithm": "distillation"},
    "recurrent student": {"algorithm": "distillation", "network": "gru"},
    "patient": {"patience": 1},
    "sac": {"algorithm": "sac", "batch_size": 16, "replay_size": 100},
}
SAME_ACTOR = [
    KINDS[name] for name in ("gru and perceptron", "rnd", "rsl_rl", "patient")
]
"""Kinds whose actors are networks of another kind: to export them takes seconds."""


def run_cfg(**changes: Any) -> RunCfg:
    train = dataclasses.replace(tasks.find(TASK).train_cfg(), **{**FEW, **changes})
    # Episodes of 10 steps, so that every world starts again within an update.
    settings = {"env.episode_length_s": 0.2}
    cfg = RunCfg(task=TASK, train=train, seed=3, settings=settings)
    is_student = train.algorithm == "distillation"
    return dataclasses.replace(cfg, teacher=TEACHER) if is_student else cfg


@pytest.fixture(scope="module", autouse=True)
def teacher(tmp_path_factory):
    """The folder of a run that sees velocities."""
    global TEACHER
    folder = tmp_path_factory.mktemp("teacher")
    TrainingRun(run_cfg(actor_group="full", hidden_sizes=(7,)), folder).learn(2)
    TEACHER = str(folder)
    return folder


@pytest.fixture(scope="module", params=list(KINDS))
def trained(request, tmp_path_factory):
    """A run after four updates, and the settings of its kind."""
    run = TrainingRun(run_cfg(**KINDS[request.param]), tmp_path_factory.mktemp("run"))
    run.learn(4)
    return run, KINDS[request.param]


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """All tensors and values of a checkpoint, by path."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        return {path: value}
    return {
        k: v for key, each in items for k, v in leaves(each, f"{path}/{key}").items()
    }


def test_a_resumed_run_has_the_same_bits(trained, tmp_path):
    whole, kind = trained
    first = TrainingRun(run_cfg(**kind), tmp_path)
    start = leaves(first.algorithm.save())
    start = {k: torch.clone(v) for k, v in start.items() if "_state_dict/mlp" in k}
    first.learn(3)
    assert first.iteration == 3
    again = TrainingRun.resume(tmp_path)
    again.learn(4)
    parts = ("algorithm", "memory", "rng", "env", "stopping")
    expected, found = (
        leaves({k: read_checkpoint(find_checkpoint(x))[k] for k in parts})
        for x in (whole.run_dir, tmp_path)
    )
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        same = torch.equal(value, found[name]) if torch.is_tensor(value) else (
            value == found[name]
        )  # fmt: skip
        assert same, name
    assert start
    for name, value in start.items():
        is_fixed = name.startswith("/teacher")
        assert torch.equal(expected[f"/algorithm{name}"], value) == is_fixed


def test_a_policy_is_played_and_exported(trained, tmp_path):
    run, kind = trained
    content = read_checkpoint(find_policy(run.run_dir))
    env = Env(run_cfg(**kind).env_cfg(), 5, auto_reset=False, seed=7)
    policy = Policy(env, content)
    file = run.run_dir
    if kind not in SAME_ACTOR:
        file = tmp_path / "policy.onnx"
        export_onnx(policy, env, file)
    exported = load_played(file).act_in(env)
    seen, actions = env.observations, []
    for _ in range(4):
        actions.append(policy(seen))
        assert (exported(seen) - actions[-1]).abs().max() < 1e-5
        seen, *_ = env.step(actions[-1])
    assert actions[-1].std() > 1e-5
    # A world that was reset acts as a new policy does; the others remember.
    seen, _ = env.reset(env_ids=[1, 3])
    fresh, kept = Policy(env, content)(seen), policy(seen)
    assert (exported(seen) - kept).abs().max() < 1e-5
    assert torch.allclose(fresh[[1, 3]], kept[[1, 3]], atol=1e-7)
    remembers = (fresh - kept)[[0, 2, 4]].abs().max() > 1e-5
    assert bool(remembers) == (kind.get("network") in ("gru", "lstm"))


def test_actor_and_critic_have_their_sizes(tmp_path):
    algorithm = TrainingRun(run_cfg(**KINDS["sizes"]), tmp_path).algorithm
    sizes = [
        [x.out_features for x in net.mlp if isinstance(x, torch.nn.Linear)]
        for net in (algorithm.actor, algorithm.critic)
    ]
    assert sizes == [[8, 6, 1], [12, 10, 4, 1]]
    assert isinstance(algorithm, ExplicitPPO)


def test_a_recurrent_network_is_that_of_torch(tmp_path):
    """The gates by hand, as torch documents them, against the exported policy."""
    run = TrainingRun(run_cfg(network="gru"), tmp_path)
    run.learn(2)
    env = Env(run.cfg.env_cfg(), 3, auto_reset=False, seed=8)
    policy = Policy(env, read_checkpoint(find_checkpoint(tmp_path)))
    state = {k: v.double().numpy() for k, v in policy.network.state_dict().items()}
    w, u, b, c = (
        state[f"rnn.rnn.{name}_l0"]
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    seen, memory = env.observations, np.zeros((3, 5))
    for _ in range(3):
        x = seen["policy"].double().numpy() - state["obs_normalizer._mean"]
        x = x / (state["obs_normalizer._std"] + 0.01)
        (ri, zi, ni), (rh, zh, nh) = (
            np.split(v, 3, axis=1) for v in (x @ w.T + b, memory @ u.T + c)
        )
        r, z = (1.0 / (1.0 + np.exp(-v)) for v in (ri + rh, zi + zh))
        memory = (1.0 - z) * np.tanh(ni + r * nh) + z * memory
        hidden = memory @ state["mlp.0.weight"].T + state["mlp.0.bias"]
        hidden = np.where(hidden > 0, hidden, np.expm1(np.minimum(hidden, 0.0)))
        action = hidden @ state["mlp.2.weight"].T + state["mlp.2.bias"]
        found = policy(seen)
        np.testing.assert_allclose(found, action, atol=1e-5)
        seen, *_ = env.step(found)


def test_novelty_is_rewarded(tmp_path):
    """Rewards of an update are those of the worlds plus the weighted novelty."""
    runs = [
        TrainingRun(run_cfg(**kind), tmp_path / str(k))
        for k, kind in enumerate(({"rnd_weight": 50.0}, {"rsl_rl": ADAMW}))
    ]
    found = []
    for run in runs:
        algorithm, given = run.algorithm, []
        algorithm.train_mode()
        inner = algorithm.storage.add_transition
        algorithm.storage.add_transition = lambda x, given=given, inner=inner: (
            given.append(x.rewards.clone()),
            inner(x),
        )
        torch.manual_seed(1)
        gather(run)
        found.append(torch.stack(given))
    assert (found[0] - found[1]).min() > 0.0
    assert runs[0].algorithm.rnd.weight == pytest.approx(50.0 * 0.02)


def test_settings_of_rsl_rl_reach_its_classes(tmp_path):
    algorithm = TrainingRun(run_cfg(rsl_rl=ADAMW), tmp_path).algorithm
    assert isinstance(algorithm.optimizer, torch.optim.AdamW)
    assert not isinstance(algorithm, ExplicitPPO)
    assert isinstance(algorithm.critic.mlp[1], torch.nn.ReLU)
    assert isinstance(algorithm.actor.mlp[1], torch.nn.ELU)
    noise = {"actor": {"distribution_cfg": {"class_name": "BetaDistribution"}}}
    beta = TrainingRun(run_cfg(rsl_rl=noise), tmp_path).algorithm
    assert type(beta.actor.distribution).__name__ == "BetaDistribution"


def test_activations_of_actor_and_critic_may_differ_in_an_explicit_update(tmp_path):
    changes = {"critic": {"activation": "tanh"}}
    algorithm = TrainingRun(run_cfg(rsl_rl=changes), tmp_path).algorithm
    assert isinstance(algorithm, ExplicitPPO)
    x = torch.randn(4, 2)
    expected = algorithm.critic.mlp(x)
    torch.testing.assert_close(
        explicit_critic_of(algorithm).forward(x.clone()), expected
    )


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"algorithm": {"optimiser": "sgd"}}, "optimiser"),
        ({"algorithms": {}}, "algorithms"),
        ({"actor": {"rnn_size": 3}}, "rnn_size"),
        ({"critic": {"class_name": "os:system"}}, "os:system"),
        ({"critic": {"class_name": "RNModel"}}, "RNModel"),
        ({"algorithm": {"gamma": 0.9}}, "rsl_rl"),
        ({"algorithm": {"schedule": "fixed"}}, "rsl_rl"),
        ({"algorithm": {"class_name": "PPO"}}, "rsl_rl"),
        ({"algorithm": {"optimizer": 3}}, "rsl_rl"),
        ({"algorithm": {"rnd_cfg": {"weight": 1.0}}}, "rsl_rl"),
        ({"actor": {"distribution_cfg": {"init": 1}}}, "init"),
        ({"algorithm": {"symmetry_cfg": {}}}, "symmetry_cfg"),
        ({"algorithm": {"optimizer": "adan"}}, "rsl_rl"),
        ({"critic": {"hidden_dims": "wide"}}, "rsl_rl"),
        ({"critic": 3}, "rsl_rl['critic']"),
    ],
)  # fmt: skip
def test_unknown_settings_of_rsl_rl_are_rejected(changes, name, tmp_path):
    with raises(SimStateError, name=name):
        TrainingRun(run_cfg(rsl_rl=changes), tmp_path)


def test_errors_of_rsl_rl_are_unchanged_without_settings_of_it(monkeypatch, tmp_path):
    fault = RuntimeError("CUDA error")

    def fail(*_args, **_options):
        raise fault

    monkeypatch.setattr(algorithm, "OnPolicyRunner", fail)
    with pytest.raises(RuntimeError) as caught:
        TrainingRun(run_cfg(), tmp_path)
    assert caught.value is fault


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"network": "transformer"}, "transformer"),
        ({"network": "gru", "symmetric": True}, "network"),
        ({"rnd_weight": 1.0, "symmetric": True}, "rnd_weight"),
        ({"network": "gru", "num_envs": 1}, "num_mini_batches"),
        ({"algorithm": "sac", "network": "gru"}, "network"),
        ({"algorithm": "sac", "rsl_rl": ADAMW}, "rsl_rl"),
        ({"algorithm": "sac", "batch_size": 0}, "batch_size"),
        ({"algorithm": "sac", "weight_init": "orthogonal"}, "weight_init"),
        ({"critic_hidden_sizes": ()}, "critic_hidden_sizes"),
        ({"rnd_weight": -1.0}, "rnd_weight"),
        ({"rnn_size": 0}, "rnn_size"),
        ({"actor_group": "ful"}, "ful"),
    ],
)
def test_impossible_settings_are_rejected(changes, name, tmp_path):
    with raises((InvalidInputError, UnknownNameError), name=name):
        TrainingRun(run_cfg(**changes), tmp_path)


def test_a_run_of_another_kind_is_not_resumed(tmp_path):
    TrainingRun(run_cfg(network="gru"), tmp_path).learn(1)
    content = read_checkpoint(find_checkpoint(tmp_path))
    for changes, name in (
        ({"network": "lstm"}, "network"),
        ({"hidden_sizes": (9,), "network": "gru"}, "hidden_sizes"),
    ):
        with raises(SnapshotError, name=name):
            TrainingRun(run_cfg(**changes), tmp_path, content)


def test_a_student_learns_the_actions_of_its_teacher(tmp_path):
    """The loss falls, and only the student's weights change."""
    cfg = run_cfg(algorithm="distillation", actor_group="full", learning_rate=0.01)
    run, told = TrainingRun(cfg, tmp_path), []
    before = leaves(run.algorithm.teacher.state_dict())
    before = {k: v.clone() for k, v in before.items()}
    run.learn(40, told.append)
    losses = [x.values["Loss/behavior"] for x in told]
    assert losses[-1] < 0.1 * losses[0]
    after = leaves(run.algorithm.teacher.state_dict())
    assert all(torch.equal(v, after[k]) for k, v in before.items())
    env = Env(cfg.env_cfg(), 4, seed=2)
    taught = Policy(env, read_checkpoint(find_checkpoint(Path(TEACHER))))
    with torch.inference_mode():
        asked = run.algorithm.teacher(grouped(env.observations, 4))
    assert torch.equal(asked, taught(env.observations))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"teacher": None}, "teacher"),
        ({"train": {"algorithm": "ppo"}}, "teacher"),
        ({"train": {"symmetric": True}}, "algorithm"),
        ({"train": {"rnd_weight": 1.0}}, "algorithm"),
        ({"teacher": "nowhere"}, "nowhere"),
        ({"train": {"rsl_rl": {"critic": {}}}}, "critic"),
        ({"train": {"algorithm": "dagger"}}, "dagger"),
    ],
)
def test_impossible_distillations_are_rejected(changes, name, tmp_path):
    cfg = run_cfg(algorithm="distillation")
    changes = dict(changes)
    changes["train"] = dataclasses.replace(cfg.train, **changes.get("train", {}))
    with raises(SimStateError, name=name):
        TrainingRun(dataclasses.replace(cfg, **changes), tmp_path)


def test_teachers_that_do_not_fit_are_rejected(tmp_path):
    for name, kind in {"gru": {"network": "gru"}, "wide": {}}.items():
        TrainingRun(run_cfg(**kind), tmp_path / name).learn(1)
    cfg = run_cfg(algorithm="distillation")
    with raises(InvalidInputError, name="teacher"):
        TrainingRun(
            dataclasses.replace(cfg, teacher=str(tmp_path / "gru")), tmp_path / "a"
        )
    arm = dataclasses.replace(
        cfg, task="Arm-Reach", settings={}, teacher=str(tmp_path / "wide")
    )
    with raises(SnapshotError, name="teacher"):
        TrainingRun(arm, tmp_path / "b")


def test_a_run_ends_when_its_return_no_longer_rises(tmp_path):
    """The best policy is kept, played, and not that of the end."""
    run, told = TrainingRun(run_cfg(patience=3, iterations=60), tmp_path), []
    kept = {}

    def keep(progress):
        told.append(progress)
        weights = run.algorithm.actor.state_dict()
        kept[progress.iteration] = {k: v.clone() for k, v in weights.items()}

    assert run.learn(60, keep)
    assert run.iteration < 60
    counted = {x.iteration: x.reward for x in told if x.iteration * 7 >= 10}
    best = max(counted, key=lambda k: (counted[k], -k))
    assert (run.stopping.best, run.stopping.iteration) == (counted[best], best)
    assert run.iteration == best + 3
    saved = read_checkpoint(tmp_path / "best.npz")
    assert saved["iteration"] == best
    found = saved["algorithm"]["actor_state_dict"]
    assert all(torch.equal(v, found[k]) for k, v in kept[best].items())
    assert find_policy(tmp_path).name == "best.npz"
    again = TrainingRun.resume(tmp_path)
    assert again.learn(60)
    assert again.iteration == run.iteration
