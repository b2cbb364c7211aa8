"""Ptera Software's MuJoCoModel on simstate.

    import pterasoftware._mujoco_model
    from simstate.interop.ptera import MuJoCoModel

    pterasoftware._mujoco_model.MuJoCoModel = MuJoCoModel

Ptera's free-flight solver then runs on it unchanged. There are three differences from
Ptera's class: with every integrator, R_pas_E_to_BP1 belongs to the same instant as the
position and the velocities; loads that are not finite raise; and an initial position
can be given. Gravity is zero, because Ptera applies the weight with the loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import number
from simstate.base.errors import InvalidInputError, ModelError, unknown_name
from simstate.base.ids import Values
from simstate.flight.aircraft import EARTH, inertial_xml, numbers
from simstate.flight.free_flight import INTEGRATORS
from simstate.flight.free_root import FreeBody
from simstate.math.conventions import MUJOCO_QVEL, PTERA, RigidBodyState, convert
from simstate.math.conventions.checked_values import as_single
from simstate.math.conventions.points import check_inertia, check_mass
from simstate.simulation import Simulation
from simstate.world.worlds import worlds_of

_START = "start"
_EXTRA_XML_KEYS = ("default", "asset", "visual", "worldbody", "body")

_QVEL_E = replace(MUJOCO_QVEL, name="EARTH", world=EARTH.world, body=EARTH.body)
"""Convention of a free joint whose world axes are Earth axes."""

Array = np.ndarray[Any, Any]


class MuJoCoState(TypedDict):
    """Result of `MuJoCoModel.get_state`."""

    position_E_Eo: Array
    """Position of the Cg, Earth axes, from the Earth origin [m]; (3,)."""
    R_pas_E_to_BP1: Array
    """Attitude: r_B = R @ r_E; (3, 3)."""
    velocity_E__E: Array
    """Velocity of the Cg, Earth axes [m/s]; (3,)."""
    omegas_BP1__E: Array
    """Angular velocity, body axes [deg/s]; (3,)."""
    time: float
    """[s]."""


class MuJoCoModel:
    """One airplane in free flight: constructor, methods and attributes as in Ptera 5.1.

    Args:
        name: of the airplane and of its body.
        mass: [kg].
        omegas_BP1__E: angular velocity at the start, body axes [deg/s]; (3,).
        T_pas_BP1_CgP1_to_E_CgP1: attitude at the start, as a transform from body to
            Earth axes about the Cg; (4, 4).
        vCg_E__E: velocity of the Cg at the start, Earth axes [m/s]; (3,).
        I_BP1_CgP1: inertia about the Cg, body axes [kg·m²]; (3, 3).
        delta_time: the time step [s].
        integrator: "RK4", "Euler", "implicit" or "implicitfast".
        extra_xml: MJCF to insert, by place: "default", "asset" and "visual" are
            complete elements; "worldbody" and "body" are inserted into those elements.
        mujoco_assets: files that this MJCF refers to.
        position_E_Eo: initial position of the Cg, Earth axes [m]; (3,). Ptera's class
            starts at the origin.
    """

    def __init__(
        self,
        name: str,
        mass: float,
        omegas_BP1__E: Values,
        T_pas_BP1_CgP1_to_E_CgP1: Values,
        vCg_E__E: Values,
        I_BP1_CgP1: Values,
        delta_time: float,
        integrator: str = "RK4",
        extra_xml: Mapping[str, str] | None = None,
        mujoco_assets: Mapping[str, bytes] | None = None,
        *,
        position_E_Eo: Values = (0.0, 0.0, 0.0),
    ) -> None:
        start = _start(position_E_Eo, T_pas_BP1_CgP1_to_E_CgP1, vCg_E__E, omegas_BP1__E)
        if integrator not in INTEGRATORS:
            raise unknown_name("integrator", str(integrator), INTEGRATORS)
        for place in extra_xml or {}:
            if place not in _EXTRA_XML_KEYS:
                raise unknown_name("place in extra_xml", place, _EXTRA_XML_KEYS)
        step = float(as_single(delta_time, "delta_time"))
        number("delta_time", step, more_than=0)
        if not name:
            raise InvalidInputError(
                "name must not be empty: it is the name of the airplane's body.",
                name="name",
            )
        inertial = _inertial(mass, I_BP1_CgP1)
        header = f'timestep="{step!r}" integrator="{integrator}"'
        xml = _xml(name, header, inertial, extra_xml or {})
        assets = dict(mujoco_assets or {})
        keyframe = _keyframe(_compile(xml, assets), name, start)
        self._xml_str = xml.replace("</mujoco>", f"{keyframe}</mujoco>")
        self._assets = assets
        model = _compile(self._xml_str, assets)
        self._body_id = _body_id(model, name)
        joint = int(model.body_jntadr[self._body_id])
        self._q, self._v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY.value, _START)
        self._initial_key_frame_id = int(key)
        self._initial_qpos = _frozen(model.key_qpos[key])
        self._initial_qvel = _frozen(model.key_qvel[key])
        self._sim = Simulation(model)
        worlds = worlds_of(self._sim)
        core = worlds.engine.compiled
        self._body: FreeBody | None = None
        if core is not None:
            self._body = FreeBody(worlds, core, self._body_id, self._q, self._v)
        self.reset()

    @property
    def xml_str(self) -> str:
        """The model as MJCF, with the start as a keyframe."""
        return self._xml_str

    @property
    def body_id(self) -> int:
        """The id of the airplane's body in the model."""
        return self._body_id

    @property
    def initial_key_frame_id(self) -> int:
        """The id of the keyframe with the start."""
        return self._initial_key_frame_id

    @property
    def initial_qpos(self) -> Array:
        """qpos at the start, read-only."""
        return self._initial_qpos

    @property
    def initial_qvel(self) -> Array:
        """qvel at the start, read-only."""
        return self._initial_qvel

    @property
    def simulation(self) -> Simulation:
        """The simulation of one world that flies the airplane."""
        return self._sim

    def apply_loads(self, forces_E: Values, moments_E_CgP1: Values) -> None:
        """Set the force at the Cg [N] and the moment about it [N·m], Earth axes; (3,).

        They act until the next call. Values that are not finite raise.
        """
        if self._body is not None and self._body.hold(forces_E, moments_E_CgP1, False):
            return
        parts = [
            as_single(values, name, 3)
            for name, values in (
                ("forces_E", forces_E),
                ("moments_E_CgP1", moments_E_CgP1),
            )
        ]
        self._sim.data.xfrc_applied[0, self._body_id] = torch.cat(parts)

    def step(self) -> None:
        """Advance by one time step under the present loads."""
        self._sim.step()

    def get_state(self) -> MuJoCoState:
        """Return the state after the last step; all parts belong to one instant."""
        position, attitude, velocity, rates = self._motion()
        return {
            "position_E_Eo": position,
            "R_pas_E_to_BP1": attitude,
            "velocity_E__E": velocity,
            "omegas_BP1__E": rates,
            "time": self._time(),
        }

    def _time(self) -> float:
        if self._body is not None:
            return float(self._body.times()[0])
        return float(self._sim.time[0])

    def _motion(self) -> tuple[Array, Array, Array, Array]:
        """Return position, attitude, velocity and rates, by the core if available."""
        if self._body is not None:
            row = self._body.describe()[0]  # its memory is not shared
            return row[:3], row[9:].reshape(3, 3), row[3:6], row[6:9]
        q, v = self._q, self._v
        pos, vel = self._sim.data.qpos[0], self._sim.data.qvel[0]
        parts = (pos[q : q + 3], pos[q + 3 : q + 7], vel[v : v + 3], vel[v + 3 : v + 6])
        state = RigidBodyState.trusted(_QVEL_E, parts, pos.new_zeros(3))
        found = [_array(part) for part in convert(state, PTERA).parts]
        return found[0], found[1], found[2], found[3]

    def reset(self) -> None:
        """Reset to the initial state at time zero, without loads."""
        self._sim.reset()
        self._sim.data.qpos[0] = torch.tensor(self._initial_qpos)
        self._sim.data.qvel[0] = torch.tensor(self._initial_qvel)

    def save_state(self) -> Array:
        """Return the complete state of the flight as MuJoCo's integration state."""
        return _array(self._sim.state[0])

    def restore_state(self, state: Array) -> None:
        """Restore a state that `save_state` returned."""
        self._sim.write_state(np.asarray(state)[None])


def _start(
    position: Values, transform: Values, velocity: Values, rates: Values
) -> RigidBodyState:
    """Return the initial state in the convention of qpos and qvel."""
    matrix = as_single(transform, "T_pas_BP1_CgP1_to_E_CgP1", 4, 4)
    zero = torch.zeros(3, dtype=torch.float64)
    position, velocity, rates = (
        as_single(values, name, 3)
        for name, values in (
            ("position_E_Eo", position),
            ("vCg_E__E", velocity),
            ("omegas_BP1__E", rates),
        )
    )
    state = RigidBodyState(PTERA, position, matrix[:3, :3].mT, velocity, rates, zero)
    return convert(state, _QVEL_E)


def _inertial(mass: float, inertia: Values) -> str:
    """The inertial element, with the Cg at the body's origin."""
    matrix = check_inertia(as_single(inertia, "I_BP1_CgP1", 3, 3), "I_BP1_CgP1")
    zero = torch.zeros(3, dtype=torch.float64)
    return inertial_xml(float(check_mass(as_single(mass, "mass"))), matrix, zero)


def _xml(name: str, header: str, inertial: str, extra: Mapping[str, str]) -> str:
    """The model without its keyframe."""
    before = "".join(extra.get(place, "") for place in ("default", "asset", "visual"))
    return f"""<mujoco model={quoteattr(name)}>
  <option {header} gravity="0 0 0"/>
  {before}
  <worldbody>
    {extra.get("worldbody", "")}
    <body name={quoteattr(name)}>
      <freejoint align="false"/>
      {inertial}
      {extra.get("body", "")}
    </body>
  </worldbody>
</mujoco>"""


def _keyframe(model: mujoco.MjModel, name: str, start: RigidBodyState) -> str:
    """Return the initial state as a keyframe, also if other bodies have joints."""
    joint = int(model.body_jntadr[_body_id(model, name)])
    q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    qpos, qvel = torch.tensor(model.qpos0), torch.zeros(model.nv, dtype=torch.float64)
    flat = start.vector
    qpos[q : q + 7], qvel[v : v + 6] = flat[:7], flat[7:]
    values = f'qpos="{numbers(qpos)}" qvel="{numbers(qvel)}"'
    return f'  <keyframe><key name="{_START}" {values}/></keyframe>\n'


def _compile(xml: str, assets: dict[str, bytes]) -> mujoco.MjModel:
    try:
        return mujoco.MjModel.from_xml_string(xml, assets=assets)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"The airplane's model is not valid: {reason}") from error


def _body_id(model: mujoco.MjModel, name: str) -> int:
    return int(mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY.value, name))


def _frozen(values: Array) -> Array:
    copy = np.array(values)
    copy.flags.writeable = False
    return copy


def _array(tensor: Tensor) -> Array:
    return tensor.detach().cpu().numpy().copy()
