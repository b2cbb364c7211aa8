"""The explicit update has the gradients, and takes the steps, of rsl-rl's."""

from __future__ import annotations

import copy

import pytest
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from simstate.train.explicit_ppo import ExplicitPPO

WORLDS, STEPS, SEEN, PRIVILEGED, ACTIONS = 12, 5, 7, 9, 3
GROUPS = {"actor": ["policy"], "critic": ["critic"]}
SETTINGS = {
    "num_learning_epochs": 3,
    "num_mini_batches": 4,
    "learning_rate": 3e-3,
    "desired_kl": 0.02,
    "entropy_coef": 0.03,
    "value_loss_coef": 0.7,
    "max_grad_norm": 0.4,
    "gamma": 0.9,
}


def networks(activation: str, std_type: str) -> tuple[MLPModel, MLPModel]:
    seen = observations(0)
    noise = {
        "class_name": "GaussianDistribution",
        "init_std": 0.6,
        "std_type": std_type,
    }
    layers = {
        "hidden_dims": [10, 6],
        "activation": activation,
        "obs_normalization": True,
    }
    actor = MLPModel(seen, GROUPS, "actor", ACTIONS, distribution_cfg=noise, **layers)
    return actor, MLPModel(seen, GROUPS, "critic", 1, **layers)


def observations(step: int) -> TensorDict:
    generator = torch.Generator().manual_seed(step)
    seen = {
        name: torch.randn(WORLDS, size, generator=generator) * 2.0 + 0.5
        for name, size in (("policy", SEEN), ("critic", PRIVILEGED))
    }
    return TensorDict(seen, batch_size=[WORLDS])


def learners(activation: str = "elu", std_type: str = "scalar", **settings):
    """Two learners with the same networks: rsl-rl's, and the explicit one."""
    torch.manual_seed(3)
    actor, critic = networks(activation, std_type)
    found = []
    for kind, more in (
        (PPO, {}),
        (ExplicitPPO, {"activations": (activation, activation)}),
    ):
        storage = RolloutStorage("rl", WORLDS, STEPS, observations(0), [ACTIONS])
        nets = copy.deepcopy(actor), copy.deepcopy(critic)
        learner = kind(*nets, storage, **{**SETTINGS, **settings}, **more)
        learner.train_mode()
        found.append(learner)
    return found


def gather(learner, first: int) -> None:
    """Fill the storage; worlds end at different times, some by a time-out."""
    generator = torch.Generator().manual_seed(100 + first)
    torch.manual_seed(50 + first)
    with torch.inference_mode():
        for step in range(STEPS):
            learner.act(observations(first + step))
            done = torch.rand(WORLDS, generator=generator) < 0.2
            late = done & (torch.rand(WORLDS, generator=generator) < 0.5)
            reward = torch.randn(WORLDS, generator=generator)
            following = observations(first + step + 1)
            learner.process_env_step(
                following, reward, done.long(), {"time_outs": late}
            )
        learner.compute_returns(observations(first + STEPS))


@pytest.mark.parametrize("activation", ["elu", "relu", "tanh"])
@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_updates_are_those_of_rsl_rl(activation, std_type):
    ours = losses = None
    states = []
    for learner in learners(activation, std_type):
        rates = []
        for update in range(2):
            gather(learner, 10 * update)
            torch.manual_seed(update)
            losses = learner.update()
            rates.append(learner.learning_rate)
        states.append((learner, losses, rates))
    (theirs, their_losses, their_rates), (ours, our_losses, our_rates) = states
    assert our_rates == their_rates
    assert len(set(our_rates)) > 1  # the rate has been adapted
    assert our_losses == pytest.approx(their_losses, rel=1e-4, abs=1e-5)
    for name in ("actor", "critic"):
        expected = getattr(theirs, name).state_dict()
        for key, value in getattr(ours, name).state_dict().items():
            torch.testing.assert_close(value, expected[key], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("clipped", [True, False])
def test_gradients_are_those_of_autograd(clipped):
    """One mini-batch far from the old policy, so that both clips act."""
    theirs, ours = learners(use_clipped_value_loss=clipped, num_mini_batches=1)
    for learner in (theirs, ours):
        learner.num_learning_epochs = 1
        learner.schedule = "fixed"
        gather(learner, 0)
        generator = torch.Generator().manual_seed(9)
        for parameter in (*learner.actor.parameters(), *learner.critic.parameters()):
            step = torch.randn(parameter.shape, generator=generator)
            parameter.data += 0.2 * step
        torch.manual_seed(1)
        learner.update()
    for name in ("actor", "critic"):
        expected = dict(getattr(theirs, name).named_parameters())
        for key, parameter in getattr(ours, name).named_parameters():
            want = expected[key].grad
            assert want.abs().max() > 0.0
            torch.testing.assert_close(parameter.grad, want, rtol=1e-4, atol=1e-6)


def test_checkpoints_of_rsl_rl_are_continued():
    theirs, ours = learners()
    gather(theirs, 0)
    theirs.update()
    ours.load(copy.deepcopy(theirs.save()), None, strict=True)
    for learner in (theirs, ours):
        gather(learner, 20)
        torch.manual_seed(5)
        learner.update()
    for a, b in zip(theirs.actor.parameters(), ours.actor.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_a_second_thread_changes_no_bit():
    states = []
    for threads in (1, 2):
        _, learner = learners()
        gather(learner, 0)
        torch.manual_seed(2)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            learner.update()
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
        states.append([*learner.actor.parameters(), *learner.critic.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def test_actions_values_and_returns_are_those_of_rsl_rl():
    theirs, ours = learners()
    for learner in (theirs, ours):
        gather(learner, 30)
    for name in ("actions", "actions_log_prob", "values", "returns", "advantages"):
        expected, found = (getattr(x.storage, name) for x in (theirs, ours))
        assert expected.abs().max() > 0.1
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
