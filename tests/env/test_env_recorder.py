"""Columns of a recording of an environment: what the steps took and returned."""

from __future__ import annotations

import torch

from simstate.env import EventTermCfg, TerminationTermCfg, terminations
from simstate.record import Recording


def late(env):
    return env.episode_length_buf == env.all_ids + 2


def test_a_recording_has_all_that_a_step_takes_and_returns(make_env, given, tmp_path):
    ends = {
        "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
        "late": TerminationTermCfg(late),
    }  # fmt: skip
    events = {
        name: EventTermCfg(lambda env, ids: None, mode="interval", interval_s=(s, s))
        for name, s in (("often", 0.03), ("seldom", 0.05))
    }
    env = make_env(
        3, terminations=ends, events=events, auto_reset=False, episode_length_s=0.06
    )
    wanted = {name: [] for name in ("action", "reward", "terminated", "truncated",
                                    "ended", "event", "time", "policy")}  # fmt: skip
    with env.record(tmp_path / "run.ssr", worlds=[2, 0]):
        for action in given(env, 6):
            wanted["policy"].append(env.observations["policy"])
            wanted["time"].append(env.sim.time.clone())
            _, reward, terminated, truncated, _ = env.step(action)
            found = {
                "action": action, "reward": reward, "terminated": terminated,
                "truncated": truncated, "ended": env.ends.reasons.clone(),
                "event": env.events.happened.clone(),
            }  # fmt: skip
            for name, values in found.items():
                wanted[name].append(values)
    assert all(bool(torch.stack(wanted[n]).any()) for n in ("truncated", "terminated"))
    with Recording(tmp_path / "run.ssr") as recording:
        assert set(recording.names) == {
            "observation/policy", *(n for n in wanted if n not in ("time", "policy")),
        }  # fmt: skip
        for name, values in wanted.items():
            column = "observation/policy" if name == "policy" else name
            expected = torch.stack(values)[:, recording.worlds]
            assert torch.equal(recording[column], expected), name
        assert recording.contract("action")["names"] == env.action_names
        assert recording.contract("ended")["names"] == ["time_out", "late", "diverged"]
        assert recording.contract("event")["names"] == ["often", "seldom"]
