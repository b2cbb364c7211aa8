"""Entity: one model of a scene, its names, its quantities and its writers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from simstate.base.by_name import Named
from simstate.base.errors import (
    InvalidInputError,
    UnknownNameError,
    listed,
    unknown_name,
)
from simstate.base.ids import as_index
from simstate.base.notebook import html_summary
from simstate.engine import Stage
from simstate.entity.data import EntityData
from simstate.entity.dynamics import Dynamics
from simstate.entity.kinematics import EntityKinematics
from simstate.entity.links import Links
from simstate.entity.model_sensors import SensorContract, sensor_contract
from simstate.entity.reader import EntityReader
from simstate.math import quaternion
from simstate.scene import EntityCfg, EntityIndex
from simstate.scene.index import Elements
from simstate.scene.load import matching
from simstate.world.worlds import Worlds

Patterns = str | Sequence[str]


class Entity(EntityKinematics):
    """One entity of the scene, in all worlds.

    Names are those of the entity's own model, without the scene's prefix; ids count
    within the entity, in the order of the names.
    """

    def __init__(
        self, index: EntityIndex, worlds: Worlds, cfg: EntityCfg | None
    ) -> None:
        self.index = index
        self._worlds = worlds
        """Engine, ledger and freshness, for simstate's modules."""
        self._kind = None if cfg is None else cfg.kind
        factor = 1.0 if cfg is None else cfg.soft_joint_pos_limit_factor
        self._reader = EntityReader(index, worlds, factor)
        self._links = Links([index], worlds)
        self._all_targets = {}
        self._warned_targets = set()
        self.data = _data_class(index.name, cfg)(self._reader)
        """The entity's quantities."""
        label = f"{index.name}.dynamics"
        self.dynamics = Dynamics(worlds, label, index.bodies.ids)
        """Mass matrix, forces, momenta and energies of the entity's bodies."""
        self._add_slots()

    def __repr__(self) -> str:
        return (
            f"Entity({self.name!r}, base={self.index.base!r}, "
            f"bodies={self.num_bodies}, joints={self.num_joints}, "
            f"actuators={self.num_actuators})"
        )

    def _repr_html_(self) -> str:
        kinds = {
            "bodies": self.body_names, "joints": self.joint_names,
            "ball joints": self.ball_joint_names, "actuators": self.actuator_names,
            "sites": self.site_names, "geoms": self.geom_names,
            "tendons": self.tendon_names, "sensors": self.sensor_names,
        }  # fmt: skip
        rows = [(k, len(names), listed(names)) for k, names in kinds.items() if names]
        return html_summary(repr(self), ("elements", "count", "names"), rows)

    @property
    def name(self) -> str:
        """The entity's name in the scene."""
        return self.index.name

    @property
    def is_fixed_base(self) -> bool:
        """True if the root link has no free joint and is not mocap."""
        return self.index.base == "fixed"

    @property
    def is_robot(self) -> bool:
        """True if it counts as a robot: as configured, or if it has driven joints."""
        if self._kind is not None:
            return self._kind == "robot"
        jointed = self.num_joints + self.num_ball_joints > 0
        return jointed and self.num_actuators > 0

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the links, root first."""
        return self.index.bodies.names

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the 1-DoF joints, in the order of `joint_pos`."""
        return self.index.joints.names

    @property
    def ball_joint_names(self) -> tuple[str, ...]:
        """Names of the ball joints, in the order of `ball_joint_quat`."""
        return self.index.ball_joints.names

    @property
    def free_joint_names(self) -> tuple[str, ...]:
        """Names of the free joints."""
        return self.index.free_joints.names

    @property
    def geom_names(self) -> tuple[str, ...]:
        """Names of the geoms."""
        return self.index.geoms.names

    @property
    def site_names(self) -> tuple[str, ...]:
        """Names of the sites."""
        return self.index.sites.names

    @property
    def tendon_names(self) -> tuple[str, ...]:
        """Names of the tendons."""
        return self.index.tendons.names

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the actuators, in the order of `actuator_force`."""
        return self.index.actuators.names

    @property
    def control_names(self) -> tuple[str, ...]:
        """Names of the controls, in the order of `ctrl`."""
        return self.index.controls.names

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """Names of the sensors."""
        return self.index.sensors.names

    @property
    def equality_names(self) -> tuple[str, ...]:
        """Names of the equality constraints."""
        return self.index.equalities.names

    @property
    def mocap_body_names(self) -> tuple[str, ...]:
        """Names of the mocap bodies, in the order of `mocap_pose_w`."""
        return self.index.mocap_bodies.names

    @property
    def num_bodies(self) -> int:
        """The number of links."""
        return len(self.index.bodies)

    @property
    def num_joints(self) -> int:
        """The number of 1-DoF joints."""
        return len(self.index.joints)

    @property
    def num_ball_joints(self) -> int:
        """The number of ball joints."""
        return len(self.index.ball_joints)

    @property
    def num_actuators(self) -> int:
        """The number of actuators."""
        return len(self.index.actuators)

    @property
    def num_controls(self) -> int:
        """The number of controls: of actuators, but for those with several inputs."""
        return len(self.index.controls)

    @property
    def num_geoms(self) -> int:
        """The number of geoms."""
        return len(self.index.geoms)

    @property
    def num_sites(self) -> int:
        """The number of sites."""
        return len(self.index.sites)

    @property
    def num_tendons(self) -> int:
        """The number of tendons."""
        return len(self.index.tendons)

    @property
    def _sizes(self) -> dict[str, int]:
        """The numbers behind the symbolic shapes of the quantities."""
        return {
            "num_envs": self._worlds.num_envs,
            "num_bodies": self.num_bodies,
            "num_joints": self.num_joints,
            "num_ball_joints": self.num_ball_joints,
            "num_free_dofs": 6 * len(self.index.free_joints),
            "num_geoms": self.num_geoms,
            "num_sites": self.num_sites,
            "num_tendons": self.num_tendons,
            "num_actuators": self.num_actuators,
            "num_controls": self.num_controls,
            "num_activations": len(self.index.activations),
            "num_mocap_bodies": len(self.index.mocap_bodies),
            "num_equalities": len(self.index.equalities),
        }

    def find_bodies(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the links that match in full; see `find_joints`."""
        return _find(names, self.index, self.index.bodies, "body", preserve_order)

    def find_joints(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the 1-DoF joints that match a regular expression in full.

        In the entity's order, or in that of the expressions if `preserve_order`. An
        expression that matches nothing raises.
        """
        return _find(names, self.index, self.index.joints, "joint", preserve_order)

    def find_ball_joints(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the ball joints that match in full; see `find_joints`."""
        return _find(
            names, self.index, self.index.ball_joints, "ball joint", preserve_order
        )

    def find_geoms(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the geoms that match in full; see `find_joints`."""
        return _find(names, self.index, self.index.geoms, "geom", preserve_order)

    def find_sites(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the sites that match in full; see `find_joints`."""
        return _find(names, self.index, self.index.sites, "site", preserve_order)

    def find_tendons(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the tendons that match in full; see `find_joints`."""
        return _find(names, self.index, self.index.tendons, "tendon", preserve_order)

    def find_actuators(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the actuators that match in full; see `find_joints`."""
        return _find(
            names, self.index, self.index.actuators, "actuator", preserve_order
        )

    def find_controls(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the controls that match in full; see `find_joints`."""
        return _find(names, self.index, self.index.controls, "control", preserve_order)

    def find_sensors(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Ids and names of the sensors that match in full; see `find_joints`."""
        return _find(names, self.index, self.index.sensors, "sensor", preserve_order)

    def sensor(self, name: str) -> Tensor:
        """The readings of one sensor of the model, live; (num_envs, dim).

        `sensor_contract(name)` says their unit, axes and point.
        """
        first, last = self.sensor_contract(name).columns
        return self._worlds.read_field("sensordata")[:, first:last]

    def sensor_contract(self, name: str) -> SensorContract:
        """Return the contract of a model's sensor: type, unit, axes, point, shape."""
        sensors = self.index.sensors
        if name not in sensors.names:
            raise unknown_name("sensor", name, sensors.names)
        sensor = sensors.ids[sensors.places[name]]
        return sensor_contract(self._worlds.model, sensor, name)

    def sensor_fields(self, name: str) -> dict[str, Tensor]:
        """Readings of a contact sensor or a rangefinder by name, as MuJoCo has them.

        Shapes (num_envs, slots, 3), or (num_envs, slots) for what is one number. A
        contact sensor gives the force of its first side ON the other; `sim.contacts`
        has those on the named side.
        """
        contract = self.sensor_contract(name)
        if not contract.fields:
            raise InvalidInputError(
                f"Sensor {name!r} is of type {contract.type} and has no fields: read "
                f"{self.name}.sensor({name!r}).",
                name=name,
            )
        whole = self.sensor(name).view(self._worlds.num_envs, contract.slots, -1)
        found: dict[str, Tensor] = {}
        first = 0
        for field, width in contract.fields:
            part = whole[..., first : first + width]
            found[field] = part[..., 0] if width == 1 else part
            first += width
        return found

    def _add_slots(self) -> None:
        """Register the state at reset, the encoder bias and targets, per world."""
        index, worlds = self.index, self._worlds
        ledger = worlds.ledger
        row = {
            name: ledger[name].initial_row for name in ("qpos", "qvel", "mocap_pos",
                                                        "mocap_quat")
        }  # fmt: skip
        joint_pos = row["qpos"][as_index(index.qpos_adr, worlds.device)]
        settings = {
            "default_joint_pos": (joint_pos, "rad or m", ""),
            "default_joint_vel": (
                row["qvel"][as_index(index.dof_adr, worlds.device)],
                "rad/s or m/s",
                "",
            ),
            "default_root_state": (
                self._default_root_state(row),
                "m, wxyz, m/s, rad/s",
                "world",
            ),
            "encoder_bias": (torch.zeros_like(joint_pos), "rad or m", ""),
        }
        targets = {
            "joint_pos_target": (joint_pos, "rad or m"),
            "joint_vel_target": (torch.zeros_like(joint_pos), "rad/s or m/s"),
            "joint_effort_target": (torch.zeros_like(joint_pos), "N·m or N"),
        }
        for name, (value, unit, axes) in settings.items():
            ledger.memory(
                f"entity/{self.name}/{name}", tuple(value.shape), worlds.dtype,
                reset=None, initial=value, kind="setting", stage=Stage.STATE,
                unit=unit, axes=axes,
            )  # fmt: skip
        for name, (value, unit) in targets.items():
            ledger.memory(
                f"entity/{self.name}/{name}", tuple(value.shape), worlds.dtype,
                reset=value, kind="input", stage=Stage.STATE, optional=True, unit=unit,
            )  # fmt: skip

    def _default_root_state(self, row: dict[str, Tensor]) -> Tensor:
        """Pose and velocity of the root link at reset, world axes; shape (13,)."""
        index, model = self.index, self._worlds.model
        pose, vel = row["qpos"].new_zeros(7), row["qpos"].new_zeros(6)
        pose[3] = 1.0
        if index.base == "free":
            k = index.free_body_ids.index(index.root_body_id)
            q, v = index.free_qpos_adr[k], index.free_dof_adr[k]
            pose = row["qpos"][q : q + 7]
            vel = row["qvel"][v : v + 6].clone()
            vel[3:] = quaternion.rotate(pose[3:], vel[3:])
        elif index.base == "mocap":
            mocap = model.body_mocapid[index.root_body_id]
            pose = torch.cat([row["mocap_pos"][mocap], row["mocap_quat"][mocap]])
        elif index.base == "fixed":
            body = index.root_body_id
            where = [*model.body_pos[body], *model.body_quat[body]]
            pose = pose.new_tensor(where)
        return torch.cat([pose, vel])


def _data_class(name: str, cfg: EntityCfg | None) -> type[EntityData]:
    """The class of an entity's quantities, as configured."""
    data = EntityData if cfg is None or cfg.data is None else cfg.data
    if not (isinstance(data, type) and issubclass(data, EntityData)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            f"EntityCfg.data of entity {name!r} must be a subclass of "
            f"simstate.EntityData, got {data!r}.",
            name="data",
        )
    return data


def sizes_of(entity: Entity) -> dict[str, int]:
    """Return the numbers behind the symbolic shapes of an entity's quantities."""
    return entity._sizes  # pyright: ignore[reportPrivateUsage]


class SceneEntities(Named[Entity]):
    """The entities of a scene by name."""

    kind = "entity"


def _find(
    patterns: Patterns,
    index: EntityIndex,
    elements: Elements,
    kind: str,
    preserve_order: bool,
) -> tuple[list[int], list[str]]:
    """Return positions and names of what matches, each once."""
    names = elements.names
    if not isinstance(patterns, str | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise unknown_name(f"{kind} (a name or a regex)", str(patterns), names)
    try:
        found = matching(patterns, names, kind, preserve_order)
    except UnknownNameError as error:
        name = error.name or ""
        others = _kinds_with(index, name)
        if not others:
            raise
        hint = f" It is the name of {' and '.join(others)}."
        raise unknown_name(kind, name, names, hint) from None
    places = elements.places
    return [places[name] for name in found], found


def _kinds_with(index: EntityIndex, name: str) -> list[str]:
    """Return the kinds of element that have a name, each with its method."""
    kinds = {
        "a body (find_bodies)": index.bodies,
        "a joint (find_joints)": index.joints,
        "a ball joint (find_ball_joints)": index.ball_joints,
        "a free joint": index.free_joints,
        "a geom (find_geoms)": index.geoms,
        "a site (find_sites)": index.sites,
        "a tendon (find_tendons)": index.tendons,
        "an actuator (find_actuators)": index.actuators,
        "a sensor (find_sensors)": index.sensors,
    }
    return [kind for kind, elements in kinds.items() if name in elements.names]
