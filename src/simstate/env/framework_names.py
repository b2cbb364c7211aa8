"""Names of Isaac Lab's and mjlab's environments that `Env` does not have."""

from __future__ import annotations

from simstate.base.errors import UnknownNameError

_OTHER_NAMES = {
    "action_manager": "env.action, env.previous_action and the terms env.actions",
    "command_manager": "env.commands: env.commands[name].command",
    "curriculum_manager": "EnvCfg.curricula",
    "event_manager": "env.events",
    "metrics_manager": "env.metrics",
    "observation_manager": "env.observations and env.observation_names",
    "recorder_manager": "env.record(path)",
    "reward_manager": "env.rewards: weight(name), set_weight(name, weight)",
    "termination_manager": "env.ends: terminated, truncated, reasons",
    "extras": "the last value that env.step returns",
    "max_episode_length_s": "env.cfg.episode_length_s",
    "obs_buf": "env.observations",
    "get_observations": "env.observations",
    "physics_dt": "env.sim.timestep",
    "reset_buf": "env.terminated | env.truncated",
    "reset_terminated": "env.terminated",
    "reset_time_outs": "env.truncated",
    "reward_buf": "the second value that env.step returns",
    "seed": "env.reset(seed=…)",
    "render": "env.sim.render",
    "action_space": "that of simstate.interop.gymnasium.GymnasiumVectorEnv",
    "observation_space": "that of simstate.interop.gymnasium.GymnasiumVectorEnv",
}


def unknown_attribute(name: str, env: object) -> AttributeError:
    """Return the error for an attribute that an environment does not have."""
    text = f"{type(env).__name__!r} object has no attribute {name!r}"
    if name not in _OTHER_NAMES:
        return AttributeError(text, name=name, obj=env)
    return UnknownNameError(f"{text}: here it is {_OTHER_NAMES[name]}.", name=name)
