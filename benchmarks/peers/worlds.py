"""A Go1 on the CPU: the model that mjlab compiles, by mjlab, MJX and simstate.

mjlab's side leaves its model in the folder for the others, where there is one; MJX
takes simstate's own quadruped. The third argument is the peer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from job import cpu_rate, one_thread, report

GO1 = Path("go1.mjb")


def mjlab(worlds: int) -> float:
    """World-steps per CPU second of its simulation, without a task."""
    import mujoco
    from mjlab.asset_zoo.robots import get_go1_robot_cfg
    from mjlab.scene import Scene, SceneCfg
    from mjlab.sim import Simulation, SimulationCfg

    cfg = SceneCfg(num_envs=worlds, entities={"robot": get_go1_robot_cfg()})
    scene = Scene(cfg, "cpu")
    model = scene.compile()
    mujoco.mj_saveModel(model, str(GO1))
    sim = Simulation(num_envs=worlds, cfg=SimulationCfg(), model=model, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return cpu_rate(sim.step, worlds)


def mjx(worlds: int) -> float:
    """World-steps per CPU second of MJX's own implementation."""
    import jax
    from mujoco import mjx

    model = mjx.put_model(_model())
    data = jax.vmap(lambda _: mjx.make_data(model))(jax.numpy.arange(worlds))
    step = jax.jit(jax.vmap(lambda each: mjx.step(model, each)))

    def run() -> None:
        nonlocal data
        data = jax.block_until_ready(step(data))

    run()
    return cpu_rate(run, worlds)


def simstate(worlds: int) -> float:
    """World-steps per CPU second."""
    from simstate import Simulation

    sim = Simulation(_model(), worlds, engine=one_thread(), on_divergence="mask")
    return cpu_rate(sim.step, worlds)


def _model():
    """The Go1 of mjlab if it was here, else simstate's quadruped on a plane."""
    import mujoco

    if GO1.exists():
        return mujoco.MjModel.from_binary_path(str(GO1))
    from simstate.scene import models

    spec = models.spec("quadruped")
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    return spec.compile()


peer = sys.argv[3]
package = {"mjlab": "mjlab", "mjx": "mujoco-mjx"}[peer]
report(package, {"peer": {"mjlab": mjlab, "mjx": mjx}[peer], "simstate": simstate})
