"""Tab completion shows what a user may call, and nothing that only simstate calls."""

import pytest

from simstate.env import Env, tasks

INTERNAL = {
    "can_place", "control_writer", "default_writes", "defaults_changed", "internals",
    "sizes", "state_writes", "target_writer", "wrench_writer",
}  # fmt: skip


@pytest.fixture(scope="module")
def env():
    return Env(tasks.make_cfg("Quadruped-Velocity"), 2)


def test_internals_are_not_completed(env):
    for shown in (env, env.sim, env.scene["robot"], env.scene["robot"].data):
        names = {name for name in dir(shown) if not name.startswith("_")}
        assert not names & INTERNAL, type(shown).__name__


def test_every_completed_name_is_documented(env):
    """A property or method without a docstring is not meant for users."""
    for shown in (env, env.sim, env.scene["robot"]):
        kind = type(shown)
        for name in dir(shown):
            member = getattr(kind, name, None)
            if not name.startswith("_") and (callable(member) or
                                             isinstance(member, property)):  # fmt: skip
                assert member.__doc__, f"{kind.__name__}.{name}"
