"""Recordings: what worlds did, in a file that replays with proof.

with sim.record("run.simrec", quantities=["robot.joint_pos"]):
    …
recording = Recording("run.simrec")
recording["robot.joint_pos"]  # (samples, worlds, joints), with names and units
"""

from simstate.record.columns import Column, columns_of, reads_of
from simstate.record.log import Log, LogColumn
from simstate.record.recorder import Recorder
from simstate.record.recording_file import Recording
from simstate.record.sim_recorder import SimRecorder

__all__ = [
    "Column",
    "Log",
    "LogColumn",
    "Recorder",
    "Recording",
    "SimRecorder",
    "columns_of",
    "reads_of",
]
