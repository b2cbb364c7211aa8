"""Replay: re-run recorded steps, compare them, and branch from them.

found = replay("run.simrec")
print(found)  # the same bit for bit, or the first difference by world and joint
sim = branch("run.simrec", time=1.5)  # continue from there
"""

from simstate.data.replay.comparison import Replay, ReplayDifference
from simstate.data.replay.demonstrations import collect_from
from simstate.data.replay.playback import branch, replay
from simstate.data.replay.recorded_worlds import made_by

__all__ = ["Replay", "ReplayDifference", "branch", "collect_from", "made_by", "replay"]
