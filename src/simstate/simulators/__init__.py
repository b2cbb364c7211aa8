"""Other simulators behind the unified state, and how far they agree with MuJoCo.

    drake = simulators.make("drake", scene, num_envs=4)
    drake.set_states(sim.get_states(mode="tensor"))
    drake.step(10)
    print(simulators.align(scene, "drake"))

Importing this loads none of them; each is loaded when it is made.
"""

from __future__ import annotations

from simstate.simulators.adapted_simulator import AdaptedSimulator
from simstate.simulators.align import Alignment, SimulatorAlignment, align
from simstate.simulators.capabilities import Capabilities, Missing, features
from simstate.simulators.catalog import (
    SIMULATORS,
    MissingSimulatorError,
    SimulatorInfo,
    info,
    register,
)
from simstate.simulators.makers import make
from simstate.simulators.mechanics import AdaptedMechanics
from simstate.simulators.mjcf import PlainMjcf, plain_mjcf
from simstate.simulators.protocol import EntityNames, Simulator
from simstate.simulators.state_file import load_states, save_states
from simstate.simulators.transfer import JointMap, carry, follow, joint_maps, replay

__all__ = [
    "SIMULATORS",
    "AdaptedMechanics",
    "AdaptedSimulator",
    "Alignment",
    "Capabilities",
    "EntityNames",
    "JointMap",
    "Missing",
    "MissingSimulatorError",
    "PlainMjcf",
    "Simulator",
    "SimulatorAlignment",
    "SimulatorInfo",
    "align",
    "carry",
    "features",
    "follow",
    "info",
    "joint_maps",
    "load_states",
    "make",
    "plain_mjcf",
    "register",
    "replay",
    "save_states",
]
