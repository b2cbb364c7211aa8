"""Data sets: episodes of recordings in other formats, and readers of these.

write_hdf5("run.simrec", "demos.hdf5")  # Isaac Lab, robomimic
write_lerobot("run.simrec", "data/walk")  # LeRobot v3
write_foxglove("run.simrec", "run.mcap")  # Foxglove
read_hdf5, read_motion, read_metasim
"""

from simstate.data.datasets.collection import Collection, collect
from simstate.data.datasets.foxglove import write_foxglove
from simstate.data.datasets.hdf5 import Demonstration, read_hdf5, write_hdf5
from simstate.data.datasets.lerobot import write_lerobot
from simstate.data.datasets.metasim_files import MetaSimTrajectory, read_metasim
from simstate.data.datasets.recorded_episodes import Episode, episodes_of
from simstate.env.motion_files import MotionClip, read_motion

__all__ = [
    "Collection",
    "Demonstration",
    "Episode",
    "MetaSimTrajectory",
    "MotionClip",
    "collect",
    "episodes_of",
    "read_hdf5",
    "read_metasim",
    "read_motion",
    "write_foxglove",
    "write_hdf5",
    "write_lerobot",
]
