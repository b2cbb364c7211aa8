"""SceneDynamics: what concerns the scene as a whole."""

from __future__ import annotations

from torch import Tensor

from simstate.base.checks import check_finite
from simstate.base.ids import Ids, Values, as_values
from simstate.engine import Stage
from simstate.entity.dynamics.dynamics import Dynamics
from simstate.world.declared import EVALUATED, Reading
from simstate.world.worlds import Worlds


class SceneDynamics(Dynamics):
    """The dynamics of all bodies of the scene; `num_dofs` is MuJoCo's nv."""

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds, "sim.dynamics", range(1, worlds.model.nbody))

    potential_energy = Reading(
        lambda own: own._potential(), unit="J", shape=(), stage=Stage.VELOCITY,
        when=EVALUATED, evaluates=True,
    )  # fmt: skip
    """Potential energy as MuJoCo's: gravity_energy, and that of the springs of joints,
    tendons and flexible bodies [J]; (num_envs,)."""

    def _potential(self) -> Tensor:
        worlds = self._reader.worlds
        return worlds.on_demand(lambda engine: engine.energies())[:, 0]

    def inverse_dynamics(self, acceleration: Values, env_ids: Ids = None) -> Tensor:
        """The forces in joint space that give accelerations, as mj_inverse; (n, nv).

        `acceleration` is qacc [m/s² or rad/s², qvel's axes], a row for each selected
        world. Contacts and other constraints are taken into account: it is
        mass_matrix @ qacc + bias_force − passive_force − constraint_force(qacc).

        The native engine has no batched call for it: MuJoCo runs one world after the
        other there, tens of microseconds each.
        """
        worlds = self._reader.worlds
        worlds.ledger.calls.recover()
        rows = worlds.select(env_ids)
        like = worlds.engine.field("qacc")
        checked = as_values(
            acceleration, "acceleration", rows.count, (like.shape[1],), like
        )
        check_finite(checked, "acceleration")
        values = checked.expand(rows.count, -1)
        ids = rows.tensor(worlds.device)
        return worlds.on_demand(lambda engine: engine.inverse(values, ids))
