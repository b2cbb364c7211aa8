"""FreeFlight: aircraft in Earth axes, with loads that depend on their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.checks import check_called_as, instance_of, number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import Ids, Values
from simstate.engine import EngineCfg
from simstate.entity import Entity
from simstate.entity.host import attach
from simstate.flight.air import Air
from simstate.flight.aircraft import (
    EARTH,
    AircraftCfg,
    aircraft_entity,
    fleet_of,
    only_one,
)
from simstate.flight.aircraft_worlds import AircraftForce, AircraftWorlds
from simstate.flight.controls import Controls
from simstate.flight.flight_state import FlightState, record
from simstate.flight.loads import DEFAULT_AXES, Load, LoadModel, NamedPoint, resolve
from simstate.flight.turbulence import Turbulence
from simstate.math.conventions import PTERA, RigidBodyState
from simstate.math.conventions.checked_values import as_tensor
from simstate.math.vector import norm
from simstate.scene import EntityCfg, SceneCfg
from simstate.scene.physics_options import OPTION_WORDS
from simstate.simulation import Simulation
from simstate.step import RK4, Integrator, Strong
from simstate.step.coupled_stepper import CoupledStepper
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.math.conventions.wind_angles import Definition, FlightAxes
    from simstate.state import Snapshot
    from simstate.step.divergence import OnDivergence

STANDARD_GRAVITY = 9.80665
"""Standard gravity [m/s²]."""

INTEGRATORS = OPTION_WORDS["integrator"]
"""MuJoCo's own integrators by their names in MJCF."""

TRUE_RK4 = RK4(attitude="lie")
"""Default integrator: fourth order, including the attitude."""

_PLAIN = (("body", "com", "stevens"), ("earth", "com", "stevens"))
"""Axes, point and definition of the loads that the compiled core supports."""

_GROUND = """<mujoco><worldbody>
<geom name="ground" type="plane" size="0 0 1" quat="0 1 0 0"/>
</worldbody></mujoco>"""
"""A plane at z = 0 that faces up, which is −z."""


class FreeFlight:
    """One aircraft, or several in one world, in `num_envs` worlds.

    MuJoCo's world is Earth axes E: north, east, down. Gravity is applied once, by
    MuJoCo itself, as (0, 0, +gravity) in E: loads must not include the weight. If they
    do, as in Ptera Software, pass `gravity=0`.

    Cg and body axes are those of the airframe; moving parts have their own.

    Args:
        mass: mass of the airframe [kg].
        inertia: inertia about its centre of mass, body axes [kg·m²]; (3, 3).
        num_envs: the number of worlds.
        fleet: several aircraft by name, instead of the one of mass and inertia.
        timestep: the time step [s].
        integrator: a scheme of `simstate.integrate`, which evaluates load models at
            each of its stages; or the name of one of MuJoCo's ("RK4", "Euler",
            "implicit", "implicitfast"), which hold the loads of the start of a step,
            and whose RK4 is of second order in attitude.
        gravity: along E's +z [m/s²].
        coupling: iterates the loads of `add_load`, which are held over each step, until
            they agree with the motion at its end: for wings and hulls that are light
            compared with the moved air or water. None: loads are evaluated as above.
        air: the atmosphere and its wind; None: the US Standard Atmosphere 1976, still.
        ground: True for a plane at z = 0 to land on.
        engine: as in Simulation, as are the next four.
        device: the device of the tensors.
        on_divergence: "raise" or "mask" worlds that diverge.
        seed: the seed of the worlds' random numbers.
        first_world: the global id of the first world.
        aircraft: further arguments of the single aircraft; see `AircraftCfg`.
    """

    def __init__(
        self,
        mass: float | None = None,
        inertia: Values | None = None,
        num_envs: int = 1,
        *,
        fleet: Mapping[str, AircraftCfg] | None = None,
        timestep: float = 0.005,
        integrator: str | Integrator = TRUE_RK4,
        gravity: float = STANDARD_GRAVITY,
        coupling: Strong | None = None,
        air: Air | None = None,
        ground: bool = False,
        engine: EngineCfg = "native",
        device: str | torch.device = "cpu",
        on_divergence: OnDivergence = "raise",
        seed: int = 0,
        first_world: int = 0,
        **aircraft: Any,
    ) -> None:
        configs = fleet_of(mass, inertia, fleet, aircraft)
        if air is not None:
            instance_of("air", air, Air, " Pass Air(atmosphere=…, wind=…).")
        options: dict[str, Any] = {}
        if isinstance(integrator, str):
            if integrator not in INTEGRATORS:
                raise unknown_name("integrator of MuJoCo", integrator, INTEGRATORS)
            options["integrator"] = INTEGRATORS[integrator]
        elif not isinstance(integrator, Integrator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"integrator must be one of MuJoCo's ({', '.join(INTEGRATORS)}) or a "
                f"scheme of simstate.integrate, such as RK4(), got {integrator!r}."
            )
        entities = {name: aircraft_entity(cfg) for name, cfg in configs.items()}
        if ground:
            if "ground" in entities:
                raise InvalidInputError(
                    "The name 'ground' is reserved for the ground plane: give the "
                    "aircraft another name."
                )
            entities["ground"] = EntityCfg(model=_GROUND)
        scene = SceneCfg(
            entities=entities,
            ground=False,
            timestep=timestep,
            gravity=(0.0, 0.0, number("gravity", gravity, unit="m/s²")),
            options=options,
        )
        scheme = None if isinstance(integrator, str) else integrator
        self.sim = Simulation(
            scene, num_envs, engine=engine, device=device, integrator=scheme,
            on_divergence=on_divergence, seed=seed, first_world=first_world,
        )  # fmt: skip
        """The simulation, whose world axes are Earth axes."""
        self.aircraft: dict[str, Entity] = {n: self.sim.scene[n] for n in configs}
        """The entity of each aircraft."""
        self._air = Air() if air is None else air
        self._air.attach(self.sim)
        self._fleet: dict[str, AircraftWorlds] = {}
        for name, cfg in configs.items():
            entity = self.aircraft[name]
            controls = Controls(self.sim, entity, list(cfg.controls))
            self._fleet[name] = AircraftWorlds(entity, controls, self._air)
        if coupling is not None:
            instance_of("coupling", coupling, Strong)
        self._strong = coupling
        self.coupling: CoupledStepper | None = None
        """Iterations and residual of the last step; None if no load is coupled."""

    @property
    def air(self) -> Air:
        """The air of all aircraft; its parameters may be written."""
        return self._air

    def get_state(self, aircraft: str | None = None) -> FlightState:
        """Return an aircraft's state in all worlds, all of it at the same instant."""
        return self._flown(aircraft).state()

    def set_state(
        self,
        position_E_Eo: Values | None = None,
        R_pas_E_to_BP1: Values | None = None,
        velocity_E__E: Values | None = None,
        omegas_BP1__E: Values | None = None,
        *,
        ang_vel_b: Values | None = None,
        aircraft: str | None = None,
        env_ids: Ids = None,
    ) -> None:
        """Write an aircraft's state, or parts of it; shapes (n, …), or one for all.

        The angular velocity, in body axes, is omegas_BP1__E [deg/s] or ang_vel_b
        [rad/s].
        """
        if ang_vel_b is not None:
            ang_vel_b = torch.rad2deg(as_tensor(ang_vel_b, "ang_vel_b", 3))
        rates = only_one(
            "angular velocity", omegas_BP1__E=omegas_BP1__E, ang_vel_b=ang_vel_b
        )
        entity = self._flown(aircraft).entity
        rows = worlds_of(self.sim).select(env_ids)
        now = entity.state_in(PTERA, EARTH)
        given = (position_E_Eo, R_pas_E_to_BP1, velocity_E__E, rates)
        parts = [
            part[rows.index] if value is None else value
            for part, value in zip(now.parts, given, strict=True)
        ]
        state = RigidBodyState(PTERA, *parts)
        entity.write_state_in(PTERA, state, rows.index, EARTH)

    def apply_loads(
        self,
        forces: Values,
        moments: Values,
        axes: FlightAxes = DEFAULT_AXES,
        point: NamedPoint | Values = "com",
        *,
        aircraft: str | None = None,
        body: str | None = None,
        definition: Definition = "stevens",
    ) -> None:
        """Set the held load on a link: forces [N] at `point`, moments about it [N·m].

        Shapes (num_envs, 3), or (3,) for all worlds. The load is converted to Earth
        axes at the current attitude and held until it is overwritten or the world is
        reset; for a load that rotates with the aircraft use `add_load`. The default
        axes are the body's, as in `Load`; `definition` is that of the wind axes.
        """
        flown = self._flown(aircraft)
        entity, root = flown.entity, flown.root.compiled
        link = entity.body_names[0] if body is None else body
        is_plain = body is None and _is_plain(axes, point, definition)
        if is_plain and root is not None and root.hold(forces, moments, axes == "body"):
            return  # else `resolve` checks and converts the load
        load = Load(
            force=forces, moment=moments, axes=axes, point=point, body=link,
            definition=definition,
        )  # fmt: skip
        wrench = resolve(load, entity, flown.state())
        entity.write_external_wrench_to_sim(
            wrench.force_E[:, None], wrench.moment_E_com[:, None], wrench.link
        )

    def add_load(self, model: LoadModel, aircraft: str | None = None) -> None:
        """Add loads as a function of time and state: `model(t, state) -> Load(s)`.

        With a scheme of `simstate.integrate` it is evaluated at each stage, at the
        stage's own time and state. MuJoCo's integrators evaluate it once for a step, at
        its start. With `coupling` it is evaluated at the end of each step, which is
        repeated until the loads agree. It adds to the loads held by `apply_loads`.
        """
        what = "A load model (a constant load: apply_loads)"
        check_called_as(what, model, "t", "state", name="model")
        flown = self._flown(aircraft)
        attach(model, self.sim)
        force = AircraftForce(flown, model)
        if self._strong is None:
            self.sim.add_force(force)
        else:
            self.coupling = self.sim.add_coupled_force(force, self._strong)

    def mean_acceleration(self, aircraft: str | None = None) -> tuple[Tensor, Tensor]:
        """Return the mean linear and angular acceleration over a coupled step.

        Of the airframe's origin, Earth axes [m/s²], and body axes [rad/s²], over the
        current or the last coupled step; (num_envs, 3) each. Load models of added mass
        read it.
        """
        entity = self._flown(aircraft).entity
        if self.coupling is None:
            raise InvalidInputError(
                "mean_acceleration needs a coupled step: create the FreeFlight with "
                "coupling=Strong() and add a load."
            )
        dof = int(self.sim.model.body_dofadr[entity.index.bodies.ids[0]])
        mean = self.coupling.mean_acc
        return mean[:, dof : dof + 3].clone(), mean[:, dof + 3 : dof + 6].clone()

    def add_turbulence(
        self, turbulence: Turbulence, aircraft: str | None = None
    ) -> None:
        """Add turbulence around an aircraft; needs a stochastic integrator.

        Its velocity is added to the wind, its angular velocity is in `air_ang_vel_b`.
        """
        flown = self._flown(aircraft)
        entity = flown.entity
        if flown.turbulence is not None:
            raise InvalidInputError(
                f"{entity.name!r} already has a turbulence.", name=entity.name
            )

        def conditions() -> tuple[Tensor, Tensor]:
            state = entity.state_in(PTERA, EARTH)
            position, velocity = state.parts[0], state.parts[2]
            seen = velocity - self.air.wind(self.sim.time, position)
            return norm(seen)[..., 0], -position[..., 2]

        turbulence.conditions = conditions
        self.sim.add_process(turbulence)
        flown.turbulence = turbulence

    def set_controls(
        self,
        commands: Mapping[str, Values | float],
        *,
        aircraft: str | None = None,
        env_ids: Ids = None,
        settled: bool = False,
    ) -> None:
        """Command controls by name, each in its own unit; a number, or shape (n,).

        Positions follow with each control's lag; with `settled` they are set at once.
        """
        self._flown(aircraft).controls.write(commands, env_ids, settled)

    def control_range(
        self, name: str, aircraft: str | None = None
    ) -> tuple[float, float]:
        """Return the minimum and maximum position of a control, in its unit."""
        return self._flown(aircraft).controls.range(name)

    def control_column(self, name: str, aircraft: str | None = None) -> int:
        """Return the column of a control's command in `sim.data.ctrl`."""
        return self._flown(aircraft).controls.column(name)

    def step(self, n: int = 1) -> None:
        """Advance every world by n time steps."""
        self.sim.step(n)

    def fly(self, n: int, every: int = 1, aircraft: str | None = None) -> FlightState:
        """Step n times and return the states in between, including the first.

        A state is kept after `every` steps: shapes (1 + n // every, num_envs, …).
        """
        if n < 1 or every < 1 or n % every:
            raise InvalidInputError(
                f"n and every must be ≥ 1 and every must divide n, got {n} and {every}."
            )
        states = [self.get_state(aircraft)]
        for _ in range(n // every):
            self.step(every)
            states.append(self.get_state(aircraft))
        return record(states)

    def reset(self, env_ids: Ids = None) -> None:
        """Reset worlds to their initial state, with no held loads."""
        self.sim.reset(env_ids)

    def save_state(self) -> Snapshot:
        """Return the complete state of all worlds, to continue exactly."""
        return self.sim.snapshot()

    def restore_state(self, saved: Snapshot) -> None:
        """Restore a saved state; it may be restored any number of times."""
        self.sim.restore(saved)

    def resolve_name(self, aircraft: str | None) -> str:
        """Return the checked name of an aircraft; None: the only one."""
        if aircraft is None and len(self.aircraft) == 1:
            return next(iter(self.aircraft))
        if aircraft is None:
            raise InvalidInputError(
                f"There are {len(self.aircraft)} aircraft: name one, such as "
                f"aircraft={next(iter(self.aircraft))!r}. Known: "
                f"{', '.join(self.aircraft)}.",
                name="aircraft",
            )
        if aircraft not in self.aircraft:
            raise unknown_name("aircraft", str(aircraft), self.aircraft)
        return aircraft

    def _flown(self, aircraft: str | None) -> AircraftWorlds:
        """Return an aircraft in all worlds; None: the only one."""
        return self._fleet[self.resolve_name(aircraft)]


def _is_plain(axes: object, point: object, definition: object) -> bool:
    """Return True if a load acts at the centre of mass in axes that need no air."""
    given = (axes, point, definition)
    return all(isinstance(one, str) for one in given) and given in _PLAIN
