"""Drake's mechanics: matrices and forces of a continuous plant."""

# pydrake comes without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from pydrake.geometry import Box, Capsule, Cylinder, Ellipsoid, Role, Sphere
from pydrake.multibody.tree import (
    JacobianWrtVariable,
    MultibodyForces,
    RevoluteSpring,
)

from simstate.scene import SceneCfg
from simstate.simulators.adapted_simulator import Array
from simstate.simulators.capabilities import is_linear_coupling
from simstate.simulators.drake import DrakeSimulator
from simstate.simulators.drake_coordinates import DrakeCoordinates
from simstate.simulators.drake_model import DrakeModel, geom_name
from simstate.simulators.mechanics import AdaptedMechanics, MechanicalState, of_masses
from simstate.simulators.parameters import Parameters
from simstate.simulators.parameters.body_parameters import canonical, inertia_numbers
from simstate.simulators.parameters.scene_parameters import IMPLICIT_SERVOS
from simstate.simulators.plain_model import ALL_TERMS, NO_TERMS, Terms

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value


_ABSENT: Parameters = {
    kind: {}
    for kind in (
        "gravity compensation", "dry friction", "higher powers of damping",
        "higher powers of stiffness", "other actuator", "tendon", "fluid",
    )
}  # fmt: skip
"""The kinds of parameters that Drake does not support."""


class DrakeMechanics(AdaptedMechanics[DrakeSimulator]):
    """Drake's mechanics, along MuJoCo's qvel."""

    name = "drake"

    def __init__(self, scene: SceneCfg | mujoco.MjModel) -> None:
        super().__init__(lambda terms: DrakeSimulator(scene, terms=terms))
        self._model = self.simulator(NO_TERMS).model
        self._drake = DrakeModel(self._model, 0.0, NO_TERMS)
        self._coordinates = DrakeCoordinates(self._drake)
        root = self._drake.diagram.CreateDefaultContext()
        self._context: Any = self._drake.plant.GetMyMutableContextFromRoot(root)

    def _at(self, state: MechanicalState) -> tuple[Any, Any, Array]:
        """Return plant and context at a state, and the map of velocities."""
        self._coordinates.write(self._context, state.qpos, state.qvel)
        turn = self._coordinates.velocity_map(state.qpos)
        return self._drake.plant, self._context, turn

    def notes(self) -> tuple[str, ...]:
        """Return the elements that Drake's parser reports as ignored."""
        return tuple(dict.fromkeys(self.simulator(ALL_TERMS).drake.messages))

    def com(self, state: MechanicalState) -> Array:
        """By CalcCenterOfMassInBodyFrame."""
        plant, context, _ = self._at(state)
        found = np.zeros((self._model.nbody, 3))
        for b, body in enumerate(self._drake.bodies[1:], start=1):
            pose = plant.EvalBodyPoseInWorld(context, body)
            found[b] = pose @ body.CalcCenterOfMassInBodyFrame(context)
        return of_masses(self._model, found)

    def jacobian(self, state: MechanicalState) -> Array:
        """By CalcJacobianSpatialVelocity at the bodies' origins."""
        plant, context, turn = self._at(state)
        world = plant.world_frame()
        found = np.zeros((self._model.nbody, 6, self._model.nv))
        for b, body in enumerate(self._drake.bodies[1:], start=1):
            jacobian = plant.CalcJacobianSpatialVelocity(
                context,
                JacobianWrtVariable.kV,
                body.body_frame(),
                np.zeros(3),
                world,
                world,
            )
            mapped = jacobian @ turn
            found[b, :3], found[b, 3:] = mapped[3:], mapped[:3]
        return found

    def mass_matrix(self, state: MechanicalState) -> Array:
        """By CalcMassMatrix."""
        plant, context, turn = self._at(state)
        return turn.T @ plant.CalcMassMatrix(context) @ turn

    def bias(self, state: MechanicalState) -> Array:
        """By CalcBiasTerm, less gravity."""
        plant, context, turn = self._at(state)
        gravity = plant.CalcGravityGeneralizedForces(context)
        return turn.T @ (plant.CalcBiasTerm(context) - gravity)

    def passive(self, state: MechanicalState) -> Array:
        """Return the forces of force elements but gravity, and of damping."""
        plant, context, turn = self._at(state)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        total = plant.CalcGeneralizedForces(context, forces)
        return turn.T @ (total - plant.CalcGravityGeneralizedForces(context))

    def acceleration(self, state: MechanicalState) -> Array:
        """By the plant's own forward dynamics."""
        plant, context, turn = self._at(state)
        if self._drake.drives:
            nothing = np.zeros(len(self._drake.drives))
            plant.get_actuation_input_port(self._drake.instance).FixValue(
                context, nothing
            )
        rates = plant.get_generalized_acceleration_output_port().Eval(context)
        return turn.T @ rates  # the map is orthogonal, and its rate times qvel is zero

    def step(self, state: MechanicalState, terms: Terms) -> Array | None:
        """By one discrete step; velocities before and after along the same axes."""
        if super().step(state, terms) is None:
            return None
        drake = self.simulator(terms)
        turn = self._coordinates.velocity_map(state.qpos)
        after = turn.T @ drake.drake.plant.GetVelocities(drake.contexts[0])
        return (after - state.qvel) / drake.timestep

    def parameters(self) -> Parameters:
        """Return the parameters of the plant."""
        full = self.simulator(ALL_TERMS).drake
        return _Reader(full, self._drake, self._context).read()


class _Reader:
    """Reads the parameters of a plant in MuJoCo's frames."""

    def __init__(self, full: DrakeModel, smooth: DrakeModel, context: Any) -> None:
        self.full, self.drake, self.context = full, smooth, context
        self.model, self.names = smooth.model, smooth.names

    def read(self) -> Parameters:
        """Return all parameters that Drake reports."""
        return {
            **_ABSENT,
            **self._bodies(),
            **self._joints(),
            **self._drives(),
            "equality": self._equalities(),
            "gravity": {"gravity": self.drake.plant.gravity_field().gravity_vector()},
            "time step": {"timestep": np.array([self.full.plant.time_step()])},
            "integrator": {"the scene": np.array([IMPLICIT_SERVOS])},
            **self._geoms(),
        }

    def _bodies(self) -> dict[str, dict[str, Array]]:
        found: dict[str, dict[str, Array]] = {
            kind: {}
            for kind in (
                *("mass", "centre of mass", "inertia"),
                *("position in parent", "orientation in parent"),
            )
        }
        for b, body in enumerate(self.drake.bodies[1:], start=1):
            name, context = self.names.body[b], self.context
            found["mass"][name] = np.array([body.get_mass(context)])
            com = body.CalcCenterOfMassInBodyFrame(context)
            found["centre of mass"][name] = com
            inertia = body.CalcSpatialInertiaInBodyFrame(context)
            about = inertia.Shift(com) if inertia.get_mass() > 0 else inertia
            matrix = about.CalcRotationalInertia().CopyToFullMatrix3()
            found["inertia"][name] = inertia_numbers(matrix)
            pose = self._pose_in_parent(b)
            if pose is not None:
                found["position in parent"][name] = pose.translation()
                quat = pose.rotation().ToQuaternion().wxyz()
                found["orientation in parent"][name] = canonical(quat)
        return found

    def _pose_in_parent(self, body: int) -> Any:
        """The pose of a body in its parent with all joints at MuJoCo's qpos0."""
        first = self.model.body_jntadr[body]
        if first >= 0 and self.model.jnt_type[first] == _FREE:
            return None
        plant, bodies = self.drake.plant, self.drake.bodies
        rest = plant.CreateDefaultContext()
        DrakeCoordinates(self.drake).write(
            rest, self.model.qpos0, np.zeros(self.model.nv)
        )
        parent = bodies[self.model.body_parentid[body]]
        return plant.CalcRelativeTransform(
            rest, parent.body_frame(), bodies[body].body_frame()
        )

    def _joints(self) -> dict[str, dict[str, Array]]:
        found: dict[str, dict[str, Array]] = {
            kind: {}
            for kind in (
                *("joint axis", "joint anchor", "joint range", "armature", "damping"),
                *("spring stiffness", "spring rest position"),
            )
        }
        for j, joint in enumerate(self.drake.joints):
            name, kind = self.names.joint[j], self.model.jnt_type[j]
            found["damping"][name] = np.array(joint.GetDampingVector(self.context))
            if kind == _FREE:
                continue
            on_child = joint.frame_on_child().GetFixedPoseInBodyFrame()
            found["joint anchor"][name] = on_child.translation()
            if kind != _BALL:
                axis = (
                    joint.revolute_axis()
                    if kind == mujoco.mjtJoint.mjJNT_HINGE.value
                    else joint.translation_axis()
                )
                found["joint axis"][name] = on_child.rotation() @ axis
                limited = self.full.joints[j]
                found["joint range"][name] = np.concatenate(
                    [limited.position_lower_limits(), limited.position_upper_limits()]
                )
        for drive, actuator in zip(
            self.drake.drives, self.drake.actuators, strict=True
        ):
            inertia = actuator.calc_reflected_inertia(self.context)
            found["armature"][self.names.joint[drive.joint]] = np.array([inertia])
        self._add_springs(found)
        return found

    def _add_springs(self, found: dict[str, dict[str, Array]]) -> None:
        for joint, spring in self.drake.springs.items():
            name, turning = self.names.joint[joint], isinstance(spring, RevoluteSpring)
            rest = spring.default_nominal_angle if turning else spring.nominal_position
            stiffness = spring.default_stiffness if turning else spring.stiffness
            found["spring stiffness"][name] = np.array([stiffness()])
            found["spring rest position"][name] = np.array([rest()])

    def _drives(self) -> dict[str, dict[str, Array]]:
        found: dict[str, dict[str, Array]] = {
            kind: {}
            for kind in (
                *("servo stiffness", "servo damping"),
                *("force per control", "force limit"),
            )
        }
        for drive, actuator in zip(self.full.drives, self.full.actuators, strict=True):
            name = self.names.joint[drive.joint]
            gains = (
                actuator.get_controller_gains() if actuator.has_controller() else None
            )
            found["servo stiffness"][name] = np.array([gains.p if gains else 0.0])
            found["servo damping"][name] = np.array([gains.d if gains else 0.0])
            found["force limit"][name] = np.array([actuator.effort_limit()])
            efforts = [i.factor for i in drive.inputs if i.kind == "effort"]
            if efforts:
                found["force per control"][name] = np.array(efforts)
        return found

    def _equalities(self) -> dict[str, Array]:
        return {
            self.names.equality[e]: np.array([float(self.model.eq_active0[e])])
            for e in range(self.model.neq)
            if is_linear_coupling(self.model, e)
        }

    def _geoms(self) -> dict[str, dict[str, Array]]:
        sizes: dict[str, Array] = {}
        frictions: dict[str, Array] = {}
        inspector = self.full.scene_graph.model_inspector()
        for geometry in inspector.GetAllGeometryIds(Role.kProximity):
            name = geom_name(inspector, geometry)
            size = _size(inspector.GetShape(geometry))
            if size is not None:
                sizes[name] = size
            properties = inspector.GetProximityProperties(geometry)
            friction = properties.GetProperty("material", "coulomb_friction")
            frictions[name] = np.array([friction.dynamic_friction()])
        return {"geom size": sizes, "sliding friction": frictions}


def _size(shape: Any) -> Array | None:
    """Return MuJoCo's size of a shape; None for a plane or a mesh."""
    if isinstance(shape, Sphere):
        return np.array([shape.radius()])
    if isinstance(shape, Capsule | Cylinder):
        return np.array([shape.radius(), shape.length() / 2])
    if isinstance(shape, Box):
        return np.array(shape.size()) / 2
    if isinstance(shape, Ellipsoid):
        return np.array([shape.a(), shape.b(), shape.c()])
    return None
