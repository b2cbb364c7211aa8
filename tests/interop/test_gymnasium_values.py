"""Values that Gymnasium's interface takes and returns: seeds, masks, spaces, infos."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np

from simstate.interop.gymnasium import GymnasiumVectorEnv

CARTPOLE = "Cartpole-Balance"


def test_zero_is_a_seed_and_a_mask_may_be_read_only():
    envs = GymnasiumVectorEnv(CARTPOLE, 3, autoreset_mode="Disabled")
    first, _ = envs.reset(seed=[0, 3, 0])
    mask = np.array([True, False, True])
    mask.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, _ = envs.reset(seed=[0, 9, 0], options={"reset_mask": mask})
    np.testing.assert_array_equal(again, first)
    assert not np.array_equal(first[0], first[1])


def test_actions_without_limits_span_one():
    space = GymnasiumVectorEnv(CARTPOLE, 2).single_action_space
    assert space.low.tolist() == [-1.0]
    assert space.high.tolist() == [1.0]


def test_infos_of_a_task_are_those_of_each_world():
    one = gymnasium.make("simstate/Hopper-v5").unwrapped
    envs = gymnasium.make_vec("simstate/Hopper-v5", num_envs=3)
    _, start = one.reset(seed=4)
    _, starts = envs.reset(seed=[4, 5, 6])
    action = np.array([0.3, -0.2, 0.5])
    *_, info = one.step(action)
    *_, infos = envs.step(np.stack([action, -0.7 * action, 0.1 * action]))
    for found, wanted in ((starts, start), (infos, info)):
        assert {name for name in found if not name.startswith("_")} == set(wanted)
        for name, value in wanted.items():
            assert found[name][0] == value
            assert found[f"_{name}"].all()
        assert any(found[name][0] != found[name][1] for name in wanted)
