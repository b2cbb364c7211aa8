"""Entity: one model of a scene, its names, its quantities and its writers."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.base.by_name import Named
from simstate.base.errors import InvalidInputError, listed, unknown_name
from simstate.base.ids import as_index
from simstate.base.notebook import html_summary
from simstate.engine import Stage
from simstate.entity.data import EntityData
from simstate.entity.dynamics import Dynamics
from simstate.entity.elements import Finder, count_of, finder_of, names_of
from simstate.entity.kinematics import EntityKinematics
from simstate.entity.links import Links
from simstate.entity.model_sensors import SensorContract, sensor_contract
from simstate.entity.reader import EntityReader
from simstate.math import quaternion
from simstate.scene import EntityCfg, EntityIndex
from simstate.world.worlds import Worlds, worlds_of


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

    body_names: tuple[str, ...] = names_of("bodies")
    """Names of the links, root first."""
    joint_names: tuple[str, ...] = names_of("joints")
    """Names of the 1-DoF joints, in the order of `joint_pos`."""
    ball_joint_names: tuple[str, ...] = names_of("ball_joints")
    """Names of the ball joints, in the order of `ball_joint_quat`."""
    free_joint_names: tuple[str, ...] = names_of("free_joints")
    """Names of the free joints."""
    geom_names: tuple[str, ...] = names_of("geoms")
    """Names of the geoms."""
    site_names: tuple[str, ...] = names_of("sites")
    """Names of the sites."""
    tendon_names: tuple[str, ...] = names_of("tendons")
    """Names of the tendons."""
    actuator_names: tuple[str, ...] = names_of("actuators")
    """Names of the actuators, in the order of `actuator_force`."""
    control_names: tuple[str, ...] = names_of("controls")
    """Names of the controls, in the order of `ctrl`."""
    sensor_names: tuple[str, ...] = names_of("sensors")
    """Names of the sensors."""
    equality_names: tuple[str, ...] = names_of("equalities")
    """Names of the equality constraints."""
    mocap_body_names: tuple[str, ...] = names_of("mocap_bodies")
    """Names of the mocap bodies, in the order of `mocap_pose_w`."""
    num_bodies: int = count_of("bodies")
    """The number of links."""
    num_joints: int = count_of("joints")
    """The number of 1-DoF joints."""
    num_ball_joints: int = count_of("ball_joints")
    """The number of ball joints."""
    num_actuators: int = count_of("actuators")
    """The number of actuators."""
    num_controls: int = count_of("controls")
    """The number of controls: of actuators, but for those with several inputs."""
    num_geoms: int = count_of("geoms")
    """The number of geoms."""
    num_sites: int = count_of("sites")
    """The number of sites."""
    num_tendons: int = count_of("tendons")
    """The number of tendons."""
    find_bodies: Finder = finder_of("bodies", "body")
    """Ids and names of the links that match in full; see `find_joints`."""
    find_joints: Finder = finder_of("joints", "joint")
    """Ids and names of the 1-DoF joints that match a regular expression in full.

    In the entity's order, or in that of the expressions if `preserve_order`. An
    expression that matches nothing raises.
    """
    find_ball_joints: Finder = finder_of("ball_joints", "ball joint")
    """Ids and names of the ball joints that match in full; see `find_joints`."""
    find_geoms: Finder = finder_of("geoms", "geom")
    """Ids and names of the geoms that match in full; see `find_joints`."""
    find_sites: Finder = finder_of("sites", "site")
    """Ids and names of the sites that match in full; see `find_joints`."""
    find_tendons: Finder = finder_of("tendons", "tendon")
    """Ids and names of the tendons that match in full; see `find_joints`."""
    find_actuators: Finder = finder_of("actuators", "actuator")
    """Ids and names of the actuators that match in full; see `find_joints`."""
    find_controls: Finder = finder_of("controls", "control")
    """Ids and names of the controls that match in full; see `find_joints`."""
    find_sensors: Finder = finder_of("sensors", "sensor")
    """Ids and names of the sensors that match in full; see `find_joints`."""

    def sensor(self, name: str) -> Tensor:
        """Return the readings of one sensor of the model, live; (num_envs, dim).

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
    """Return the class of an entity's quantities, as configured."""
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
    index = entity.index
    counted = (
        "bodies", "joints", "ball_joints", "geoms", "sites", "tendons", "actuators",
        "controls", "activations", "mocap_bodies", "equalities",
    )  # fmt: skip
    return {
        "num_envs": worlds_of(entity).num_envs,
        "num_free_dofs": 6 * len(index.free_joints),
        **{f"num_{kind}": len(getattr(index, kind)) for kind in counted},
    }


class SceneEntities(Named[Entity]):
    """The entities of a scene by name."""

    kind = "entity"
