"""A compiled model as a Drake plant: parsed from plain MJCF, then completed.

Drake's parser reads bodies, inertias, joints and geoms. Elements that it ignores
although Drake supports them are added here: servos and motors with their limits,
springs of 1-DoF joints, linear couplings and collision filters.
"""

# pydrake comes without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportUnknownParameterType=false, reportMissingModuleSource=false

from __future__ import annotations

import copy
import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mujoco
import numpy as np
from pydrake.geometry import CollisionFilterDeclaration, GeometrySet, Role
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    MultibodyPlant,
)
from pydrake.multibody.tree import (
    PdControllerGains,
    PrismaticSpring,
    RevoluteSpring,
)
from pydrake.systems.framework import DiagramBuilder

from simstate.base.errors import ModelError
from simstate.simulators.capabilities import is_linear_coupling
from simstate.simulators.drives import Drive, drives
from simstate.simulators.mjcf import link_name, plain_mjcf
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.plain_model import ALL_TERMS, Terms, may_touch, plain_model

_HINGE = mujoco.mjtJoint.mjJNT_HINGE.value
_ADDED_HERE = ("actuator", "tendon", "equality", "contact")


class DrakeModel:
    """A finalised plant, with an index of MuJoCo's joints and bodies.

    Args:
        model: the compiled model.
        time_step: of the discrete plant [s]; 0: a continuous one, without geometry.
        terms: effects in addition to the smooth dynamics of the bodies.
    """

    def __init__(
        self, model: mujoco.MjModel, time_step: float, terms: Terms = ALL_TERMS
    ) -> None:
        self.names, self.terms = ModelNames(model), terms
        self.model = model = plain_model(model)
        """The model as a plain one, because Drake has no flags."""
        self.messages: list[str] = []
        """Elements that Drake's parser reports as ignored."""
        with self.listening():
            self._make(time_step)

    def _make(self, time_step: float) -> None:
        """Parse, complete and finalise the plant."""
        model = self.model
        builder = DiagramBuilder()
        self.scene_graph: Any = None
        if time_step:
            self.plant, self.scene_graph = AddMultibodyPlantSceneGraph(
                builder, time_step
            )
            # A step is then one discrete update, a function of the state only.
            self.plant.SetUseSampledOutputPorts(False)
        else:
            self.plant = builder.AddSystem(MultibodyPlant(0.0))
        self.instance: Any = self._parse()
        self.plant.mutable_gravity_field().set_gravity_vector(model.opt.gravity)
        self.drives = drives(model)
        self.actuators = [self._add_actuator(drive) for drive in self.drives]
        self.springs: dict[int, Any] = {}
        """Drake's springs, by MuJoCo's joint."""
        self._add_springs()
        if time_step and "equalities" in self.terms:
            self._add_couplings()
        if self.scene_graph is not None:
            self._filter_collisions()
        self.plant.Finalize()
        self.diagram: Any = builder.Build()
        bodies = [self.plant.GetBodyByName(name) for name in self.names.body[1:]]
        self.bodies: list[Any] = [self.plant.world_body(), *bodies]
        """Drake's body for each of MuJoCo's."""
        self.joints = [self._joint_into(self._link(j)) for j in range(model.njnt)]
        """Drake's joint for each of MuJoCo's."""

    def _parse(self) -> Any:
        """Parse the scene by Drake; return its model instance."""
        model = self._simplified()
        with TemporaryDirectory() as folder:
            # Drake's parser applies the pose of a body with several joints at the last.
            bodies = range(model.nbody)
            text = plain_mjcf(model, Path(folder), skip=_ADDED_HERE, split=bodies).text
            try:
                instances = Parser(self.plant).AddModelsFromString(text, "xml")
            except RuntimeError as error:
                raise ModelError(f"Drake rejects this model: {error}") from error
        return instances[0]

    def _simplified(self) -> mujoco.MjModel:
        """The model without the terms that are switched off."""
        model = copy.copy(self.model)
        if "joint limits" not in self.terms:
            model.jnt_limited[:] = 0
        if "contacts" not in self.terms or self.scene_graph is None:
            model.geom_contype[:] = 0
            model.geom_conaffinity[:] = 0
        else:  # geoms of contact pairs must be geometries, too
            model.geom_contype[[*model.pair_geom1, *model.pair_geom2]] = 1
        return model

    @contextmanager
    def listening(self) -> Generator[None]:
        """Collect the messages that Drake logs instead of printing them."""
        logger, messages = logging.getLogger("drake"), self.messages

        class Keep(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                messages.append(record.getMessage().split("warning: ")[-1].strip())

        handler, propagate, level = Keep(), logger.propagate, logger.level
        others = list(logger.handlers)
        for other in others:
            logger.removeHandler(other)
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            for other in others:
                logger.addHandler(other)
            logger.propagate = propagate
            logger.setLevel(level)

    def _joint_into(self, link: str) -> Any:
        """Return the joint to a link; names of joints may not be unique."""
        indices = self.plant.GetJointIndices()
        joints = [self.plant.get_joint(index) for index in indices]
        return next(joint for joint in joints if joint.child_body().name() == link)

    def _link(self, joint: int) -> str:
        """Return the name of the link that a joint moves; bodies are split."""
        model = self.model
        body = int(model.jnt_bodyid[joint])
        number = joint - int(model.body_jntadr[body])
        last = number == int(model.body_jntnum[body]) - 1
        name = self.names.body[body]
        return name if last else link_name(name, number)

    def _add_actuator(self, drive: Drive) -> Any:
        name = self.names.joint[drive.joint]
        joint = self._joint_into(self._link(drive.joint))
        actuator = self.plant.AddJointActuator(name, joint, drive.limit)
        dof = self.model.jnt_dofadr[drive.joint]
        actuator.set_default_rotor_inertia(float(self.model.dof_armature[dof]))
        actuator.set_default_gear_ratio(1.0)
        if drive.stiffness or drive.damping:
            actuator.set_controller_gains(
                PdControllerGains(p=drive.stiffness, d=drive.damping)
            )
        return actuator

    def _add_springs(self) -> None:
        model = self.model
        for joint in np.flatnonzero(model.jnt_stiffness):
            kind = model.jnt_type[joint]
            if kind not in (_HINGE, mujoco.mjtJoint.mjJNT_SLIDE.value):
                continue
            rest = float(model.qpos_spring[model.jnt_qposadr[joint]])
            spring = RevoluteSpring if kind == _HINGE else PrismaticSpring
            self.springs[int(joint)] = self.plant.AddForceElement(
                spring(
                    self._joint_into(self._link(int(joint))),
                    rest,
                    float(model.jnt_stiffness[joint]),
                )
            )

    def _add_couplings(self) -> None:
        """Linear couplings of two joints: q₁ − q₁⁰ = a₀ + a₁ (q₂ − q₂⁰)."""
        model = self.model
        for e in range(model.neq):
            if not model.eq_active0[e] or not is_linear_coupling(model, e):
                continue
            one, two = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
            rest = model.qpos0[model.jnt_qposadr[[one, two]]]
            offset, slope = model.eq_data[e, :2]
            self.plant.AddCouplerConstraint(
                self._joint_into(self._link(one)),
                self._joint_into(self._link(two)),
                float(slope),
                float(rest[0] + offset - slope * rest[1]),
            )

    def _filter_collisions(self) -> None:
        """Allow collisions of exactly those pairs of geoms that collide in MuJoCo."""
        model, inspector = self.model, self.scene_graph.model_inspector()
        ids: dict[int, Any] = {}
        by_name = {name: geom for geom, name in enumerate(self.names.geom)}
        for body in range(model.nbody):
            drake_body = (
                self.plant.GetBodyByName(self.names.body[body])
                if body
                else self.plant.world_body()
            )
            frame = self.plant.GetBodyFrameIdOrThrow(drake_body.index())
            for geometry in inspector.GetGeometries(frame, Role.kProximity):
                ids[by_name[geom_name(inspector, geometry)]] = geometry
        filters = self.scene_graph.collision_filter_manager()
        for one in ids:
            for two in ids:
                if one < two and not may_touch(model, one, two):
                    filters.Apply(
                        CollisionFilterDeclaration().ExcludeBetween(
                            GeometrySet(ids[one]), GeometrySet(ids[two])
                        )
                    )


def geom_name(inspector: Any, geometry: Any) -> str:
    """Return MuJoCo's name of a geometry; Drake prefixes it with the model's."""
    name = inspector.GetName(geometry)
    return name.partition("::")[2] or name
