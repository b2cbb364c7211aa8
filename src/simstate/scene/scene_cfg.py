"""Configuration of a scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import mujoco

from simstate.base.places import Place, calling_place
from simstate.scene.actuators import ActuatorCfg
from simstate.scene.collisions import CollisionCfg
from simstate.scene.ray_cfg import RayCastCfg
from simstate.scene.terrain import TerrainCfg

ModelSource: TypeAlias = "str | Path | mujoco.MjSpec | Callable[[], mujoco.MjSpec]"
"""A path (MJCF or URDF), an XML string, a name, an MjSpec or a function returning one.

A name is that of a bundled model or, if these packages are installed, of MuJoCo
Menagerie ("unitree_go1") or robot_descriptions ("go1_mj_description").
"""

JointValue: TypeAlias = "float | Sequence[float]"
"""A number for a 1-DoF joint; a quaternion wxyz or three rates for a ball joint."""


@dataclass(frozen=True, kw_only=True)
class InitialStateCfg:
    """The initial state of an entity, to which a reset restores it.

    Position actuators start with controls that hold the pose, unless the keyframe
    states controls. The time starts at 0, also with a keyframe.
    """

    keyframe: str | None = None
    """Keyframe of the entity's model to start from; the other fields override it."""
    pos: Sequence[float] | None = None
    """Position of the root link's origin, world axes [m]; None: as in the model."""
    rot: Sequence[float] | None = None
    """Orientation of the root link, quaternion wxyz; None: as in the model."""
    lin_vel: Sequence[float] | None = None
    """Velocity of the root link's origin, world axes [m/s]; None: at rest."""
    ang_vel: Sequence[float] | None = None
    """Angular velocity of the root link, world axes [rad/s]; None: at rest."""
    joint_pos: Mapping[str, JointValue] = field(default_factory=dict[str, JointValue])
    """Joint positions [rad or m] by regular expression on joint names."""
    joint_vel: Mapping[str, JointValue] = field(default_factory=dict[str, JointValue])
    """Joint velocities [rad/s or m/s] by regular expression on joint names."""


@dataclass(frozen=True, kw_only=True)
class EntityCfg:
    """One entity of a scene: its model, initial state and actuators."""

    model: ModelSource
    """The entity's own model; it is attached to the scene under `name/`."""
    packages: Mapping[str, str | Path] = field(default_factory=dict[str, "str | Path"])
    """The folders of the packages that a URDF names as `package://name/…`. Other
    packages are searched for in the folders above the URDF."""
    init_state: InitialStateCfg = field(default_factory=InitialStateCfg)
    """Initial state; a fixed or mocap base is placed there."""
    actuators: Sequence[ActuatorCfg] = ()
    """Actuators to add to those of the model."""
    keep_model_actuators: bool = True
    """False removes the model's own actuators, so that all are declared here."""
    max_delay_s: float | None = None
    """Maximum delay of the model's own actuators that `events.randomize_delay` may draw
    [s]; None: as long as the model's histories. Those of `actuators` have their own."""
    collisions: Sequence[CollisionCfg] = ()
    """Contact parameters of geoms by name, which replace the model's."""
    soft_joint_pos_limit_factor: float = 1.0
    """Soft limits span this fraction of each joint's range, about its middle."""
    com_varies: bool = False
    """True if the centres of mass of its links may move or differ by world. Otherwise,
    `body_ipos` cannot be written for bodies with the COM at their origin, for which
    MuJoCo uses a shortcut. An event that moves COMs sets it."""
    kind: Literal["robot", "object"] | None = None
    """Category in unified states; None: a robot if it has joints and actuators."""
    data: type | None = None
    """The class of `entity.data`, a subclass of EntityData that declares additional
    quantities; None: EntityData itself."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", calling_place())

    @property
    def place(self) -> Place | None:
        """Source line that created it, for errors."""
        return self.__dict__.get("_place")


@dataclass(frozen=True, kw_only=True)
class CameraCfg:
    """A camera of a scene, which `sim.cameras` renders in all worlds.

    It is fixed in the world, mounted on a body, or a camera of a model.
    """

    body: str | None = None
    """The body that carries it, as "entity/body"; None: it is fixed in the world."""
    follow: bool = False
    """True if it moves with the body but does not rotate with it: pos and look_at are
    then in world axes, from the body's origin."""
    camera: str | None = None
    """Camera of an entity's model, as "entity/camera", used unchanged."""
    pos: Sequence[float] = (0.0, 0.0, 0.0)
    """Position in the axes of the body, or of the world [m]."""
    look_at: Sequence[float] | None = None
    """A point to look at, in the same axes [m]; up is +z."""
    rot: Sequence[float] | None = None
    """Orientation wxyz in the same axes, if no look_at is given: the camera looks along
    its −z axis, +x is to the right and +y up, as in MJCF."""
    width: int = 64
    """Width [pixels]."""
    height: int = 48
    """Height [pixels]."""
    fovy: float | None = None
    """Vertical field of view [deg]; None: 45, or that of the model's camera."""
    intrinsic: tuple[float, float, float, float] | None = None
    """fx, fy, cx, cy in pixels, instead of fovy; (0, 0) is the upper left corner."""
    headlight: bool = False
    """True to replace MuJoCo's headlight, which all worlds share, by a light of the
    scene, "headlight", which may differ by world. Only one camera of a scene can carry
    it; images of other cameras also show this light."""


@dataclass(frozen=True, kw_only=True)
class ContactCfg:
    """A contact sensor, read by `sim.contacts`: forces on some elements.

    Names are those of the scene, "entity/name", each a regular expression that matches
    in full.
    """

    of: str | Sequence[str]
    """The named side: the forces are those **on** these elements, each by itself."""
    kind: Literal["body", "subtree", "geom"] = "body"
    """Kind of the elements `of`: bodies, bodies with their descendants, or geoms."""
    against: str | Sequence[str] | None = None
    """The other side: bodies, or geoms if no body has such a name; "ground" is
    everything that belongs to the world body; None: anything. Contacts between bodies
    of one subtree never count. "self" is the named side itself: each element of the
    sensor is then a pair of the named ones, counted once, and forces are those on the
    first of the pair. Pairs that cannot collide in the model are omitted."""
    strongest: int = 1
    """Number of contacts of each element that are reported separately, the strongest
    first."""
    threshold: float = 0.0
    """An element is in contact while the force on it is larger than this [N]."""
    history: int = 0
    """Number of time steps for which forces are stored."""
    every_step: bool = True
    """True to update clocks, history and `greatest_force` in each of the n time steps
    of `sim.step(n)`; False uses only the last, and costs less."""


@dataclass(frozen=True, kw_only=True)
class SceneCfg:
    """A scene: entities in one world, compiled to one MuJoCo model."""

    entities: Mapping[str, EntityCfg]
    """The entities by name; a name must not contain "/"."""
    cameras: Mapping[str, CameraCfg] = field(default_factory=dict[str, CameraCfg])
    """Cameras by name."""
    contacts: Mapping[str, ContactCfg] = field(default_factory=dict[str, ContactCfg])
    """Contact sensors by name."""
    rays: Mapping[str, RayCastCfg] = field(default_factory=dict[str, RayCastCfg])
    """Rays by name."""
    ground: bool | None = None
    """True to add a ground plane at z = 0; None: if some body floats freely and no
    model has a plane or a heightfield."""
    terrain: TerrainCfg | None = None
    """Terrain instead of a ground plane; None: see `ground`."""
    timestep: float | None = None
    """Physics time step [s]; None: the one that the entities' models state."""
    gravity: Sequence[float] | None = None
    """Gravity, world axes [m/s²]; None: the entities' models', else (0, 0, −9.81)."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Other fields of MuJoCo's mjOption (integrator, cone, iterations, …) by name. A
    choice is given by its MJCF keyword ("implicitfast", "elliptic") or its number.

    Other options come from the entities' models; if two of them state different
    values, building the scene raises an error that names the option to set here.
    """
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Attributes of MJCF's <size> (memory, nuserdata, nuser_geom, …) by name; others
    come from the entities' models, as with options."""
