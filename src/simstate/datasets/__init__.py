"""Data sets: episodes of recordings in the formats of others, and theirs read.

write_hdf5("run.simrec", "demos.hdf5")  # Isaac Lab, robomimic
write_lerobot("run.simrec", "data/walk")  # LeRobot v3
write_foxglove("run.simrec", "run.mcap")  # Foxglove
read_hdf5, read_motion, read_metasim
"""

from simstate.datasets.collect import Collection, collect
from simstate.datasets.episodes import Episode, episodes_of
from simstate.datasets.foxglove import write_foxglove
from simstate.datasets.hdf5 import Demonstration, read_hdf5, write_hdf5
from simstate.datasets.lerobot import write_lerobot
from simstate.datasets.metasim import Trajectory, read_metasim
from simstate.motions import Motion, read_motion

__all__ = [
    "Collection",
    "Demonstration",
    "Episode",
    "Motion",
    "Trajectory",
    "collect",
    "episodes_of",
    "read_hdf5",
    "read_metasim",
    "read_motion",
    "write_foxglove",
    "write_hdf5",
    "write_lerobot",
]
