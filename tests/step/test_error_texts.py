"""The wording of the errors of `step`: what went wrong where and when, what to do."""

import pytest
import torch
from tests.raised import says

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.base.errors import InvalidInputError, SimStateError
from simstate.engine.tableau import Tableau


def make(**options) -> Simulation:
    scene = SceneCfg(entities={"cube": EntityCfg(model="cube")}, ground=False)
    return Simulation(scene, 3, **{"integrator": integrate.RK4(), **options})


def bad_wind(t, sim):
    late = t[2] > 2.5 * sim.timestep
    sim.data.xfrc_applied[2, 1, 0] = torch.nan if late else 0.0


def greedy(t, sim):
    sim.data.qpos[1, 0] += 0.25


def losing_mass() -> None:
    sim = make()
    mass = float(sim.model.body_mass[1])
    sim.mass_rate[1, 1] = -mass / (10.5 * sim.timestep)
    sim.step(20)


def with_force(model) -> None:
    sim = make()
    sim.add_force(model)
    sim.step(4)


class Lag(integrate.Process):
    """A process with noise."""

    num_sources = 1

    def rate(self, t, sim):
        return torch.zeros_like(self.value)

    def diffusion(self, t, sim):
        return {}


@pytest.mark.parametrize(
    ("call", "error", "fragments"),
    [
        (
            losing_mass,
            InvalidInputError,
            ["'cube/cube' of world 1 would run out of mass at about t = 0.021 s",
             "Stop the flow before (sim.mass_rate", "before the step was restored"],
        ),
        (
            lambda: with_force(bad_wind),
            InvalidInputError,
            ["'bad_wind' wrote a non-finite value to xfrc_applied",
             "first in world 2 at t = 0.006 s"],
        ),
        (
            lambda: with_force(greedy),
            InvalidInputError,
            ["wrote to sim.data.qpos", "inputs"],
        ),
        (
            lambda: with_force(lambda t, sim: sim.data.qacc.sum()),
            InvalidInputError,
            ["read an acceleration or a force", "only positions and velocities"],
        ),
        (
            lambda: make(integrator="RK4"),
            InvalidInputError,
            ["integrator must be a scheme of simstate.integrate, such as RK4()",
             "got 'RK4'"],
        ),
        (
            lambda: make().run(until=-1.0),
            InvalidInputError,
            ["is in the past of world 0", "until=sim.time + duration"],
        ),
        (
            lambda: Tableau("mine", a=((), (1.0,)), b=(0.5, 0.4), order=1),
            InvalidInputError,
            ["'mine' is not of order 1", "Σ b", "is 0.9 and must be 1"],
        ),
        (
            lambda: Tableau("mine", a=((0.5,),), b=(1.0,), order=1),
            InvalidInputError,
            ["'mine': row i of a must have i weights", "the scheme is explicit"],
        ),
        (
            lambda: make(integrator=None).add_process(Lag("lag", [0.0])),
            SimStateError,
            ["Process 'lag' is stochastic", "integrate.SRIW1()"],
        ),
    ],
)  # fmt: skip
def test_texts(call, error, fragments):
    with says(error, *fragments):
        call()
