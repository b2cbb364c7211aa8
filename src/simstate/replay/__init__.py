"""Replay with proof: recorded steps taken again, compared, and branched from.

found = replay("run.simrec")
print(found)  # the same bit for bit, or the first difference by world and joint
sim = branch("run.simrec", time=1.5)  # go on from there
"""

from simstate.replay.demonstrations import collect_from
from simstate.replay.replay import branch, replay
from simstate.replay.report import Difference, Replay
from simstate.replay.sources import made_by

__all__ = ["Difference", "Replay", "branch", "collect_from", "made_by", "replay"]
