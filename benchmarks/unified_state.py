"""Speed of unified states: 1024 worlds with 19 joints, 20 bodies and a cube."""

from __future__ import annotations

from rich.table import Table

from inside import fresh_of
from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.engine import Stage
from timing import interleaved

JOINTS = 19
REFERENCE_MS = {"out": 2100, "back": 2850}
"""MetaSim's conversions of the same size, measured elsewhere on 2 cores, [ms]."""


def chain() -> str:
    """A chain of 20 links with 19 driven hinges."""
    body = f'<body name="link{JOINTS}" pos="0 0 .05">{_joint(JOINTS)}</body>'
    for k in range(JOINTS - 1, 0, -1):
        body = f'<body name="link{k}" pos="0 0 .05">{_joint(k)}{body}</body>'
    drives = "".join(
        f'<position name="j{k}" joint="j{k}" kp="5"/>' for k in range(1, JOINTS + 1)
    )
    return (
        '<mujoco><worldbody><body name="link0" pos="0 0 .5"><freejoint name="root"/>'
        f'<geom type="sphere" size=".03" mass=".5"/>{body}</body></worldbody>'
        f"<actuator>{drives}</actuator></mujoco>"
    )


def _joint(k: int) -> str:
    axis = "1 0 0" if k % 2 else "0 1 0"
    return (
        f'<joint name="j{k}" axis="{axis}" damping=".05" armature=".01"/>'
        '<geom type="capsule" size=".01" fromto="0 0 0 0 0 .05" mass=".05" '
        'contype="0" conaffinity="0"/>'
    )


def converting(table: Table, results: dict[str, float]) -> None:
    """Tensors out, all dictionaries out, and all dictionaries back in."""
    cube = EntityCfg(model="cube", init_state=InitialStateCfg(pos=(1.0, 0.0, 0.1)))
    entities = {"robot": EntityCfg(model=chain()), "cube": cube}
    scene = SceneCfg(entities=entities, ground=True, timestep=0.005)
    sim = Simulation(scene, num_envs=1024)
    sim.step(10)
    built = sim.get_states()
    quadrupeds = Simulation(
        SceneCfg(entities={"robot": EntityCfg(model="quadruped")}), num_envs=1024
    )

    def tensors() -> None:
        # As a step does: every quantity is computed again.
        fresh_of(sim).mark_current(Stage.ACCELERATION, None, evaluated=False)
        sim.get_states(mode="tensor")

    calls = {
        "get_states, tensor mode": (tensors, None),
        "get_states, all dictionaries built": (sim.get_states, "out"),
        "get_states, dictionaries of quadrupeds": (quadrupeds.get_states, None),
        "set_states from those dictionaries": (lambda: sim.set_states(built), "back"),
    }
    timing = interleaved({name: call for name, (call, _) in calls.items()}, 15)
    for name, (_, peer) in calls.items():
        taken = timing[name].median * 1e3
        results[f"{name} [ms]"] = taken
        reference = REFERENCE_MS[peer] if peer else None
        table.add_row(
            f"{name}, 1024 worlds",
            f"{taken:.1f} ms",
            f"{reference} ms (MetaSim, measured elsewhere)" if reference else "",
            "",
            timing[name].spread_text,
        )
