"""Equations to measure stochastic schemes by: a world is a path, or an outcome."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from simstate import Simulation
from simstate.integrate import Process

SLIDE = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""


class Given(Process):
    """dx = f(t, x) dt + Σ_k g_k(t, x) dW_k, from functions of numpy arrays.

    `f` gives (n, width), `g` (n, sources, width).
    """

    def __init__(self, initial, f, g, num_sources):
        super().__init__("given", initial)
        self.f, self.g, self.num_sources = f, g, num_sources

    def rate(self, t, sim):
        return torch.as_tensor(self.f(t.double().numpy(), self.value.numpy()))

    def diffusion(self, t, sim):
        g = self.g(t.double().numpy(), self.value.numpy())
        return {"given": torch.as_tensor(g)}


def make(scheme, h, num_envs, *processes, xml=SLIDE, seed=0):
    """A simulation with these processes, in steps of h."""
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep = h
    sim = Simulation(model, num_envs, integrator=scheme, seed=seed)
    for process in processes:
        sim.add_process(process)
    return sim


def slope(steps, errors):
    """The order that errors have in the steps."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]
