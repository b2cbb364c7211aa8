"""Reading an entity's model and making it ready to be attached to a scene."""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from simstate.base.checks import instance_of, number
from simstate.base.errors import ModelError, listed, suggestion, unknown_name, warn
from simstate.base.mujoco_warnings import silenced
from simstate.scene import models
from simstate.scene.actuators import ActuatorCfg, delay_samples
from simstate.scene.collisions import CollisionCfg
from simstate.scene.model_fields import KINDS
from simstate.scene.model_libraries import install_hint, library_names, library_spec
from simstate.scene.model_rows import Names, element_names
from simstate.scene.scene_cfg import EntityCfg, ModelSource
from simstate.scene.urdf import find_meshes, is_urdf

NAMED_KINDS = {
    "body": "bodies",
    "joint": "joints",
    "geom": "geoms",
    "site": "sites",
    "camera": "cameras",
    "light": "lights",
    "tendon": "tendons",
    "actuator": "actuators",
    "sensor": "sensors",
    "equality": "equalities",
    "pair": "pairs",
    "exclude": "excludes",
    "key": "keys",
    "flex": "flexes",
    "mesh": "meshes",
    "skin": "skins",
    "hfield": "hfields",
    "texture": "textures",
    "material": "materials",
    "numeric": "numerics",
    "text": "texts",
    "tuple": "tuples",
}
"""Kinds of elements that get a name if they have none, and their lists in MjSpec."""


LARGEST_XML = 64_000_000
"""Largest size of a model's XML [bytes]."""

_READABLE = (".xml", ".urdf")
_WHAT_CAN_BE_READ = (
    ". A model file is MJCF, whose outermost element is <mujoco>, or URDF, whose is "
    "<robot>."
)
_NO_PLUGIN = re.compile(r"plugin .* not found")
_LOAD_PLUGIN = (
    ". Load the library that has it first: mujoco.mj_loadPluginLibrary(path)."
)
_OTHER_FORMAT = ("XML parse error", "XML Error: Unrecognized XML model", "ParseXML:")
_REMEDIES = {
    ".mjb": "A compiled model goes to Simulation itself: "
    "Simulation(mujoco.MjModel.from_binary_path(path)).",
    ".xacro": "Make a URDF of it first, with ROS's xacro.",
    **dict.fromkeys(
        (".usd", ".usda", ".usdc", ".usdz", ".sdf"),
        "Convert it to MJCF or URDF first.",
    ),
}
"""Remedies for other kinds of files."""


def load_spec(
    source: ModelSource, packages: Mapping[str, str | Path] | None = None
) -> mujoco.MjSpec:
    """Return a separate specification, which the caller may change, from any source.

    `packages` are the folders of packages that a URDF names.
    """
    spec, text, folder = _read(source)
    if is_urdf(text):
        find_meshes(spec, text, folder, packages or {})
    elif packages:
        raise ModelError(
            "`packages` says where the meshes of a URDF are, and this model is not a "
            "URDF file or string.",
            name="packages",
        )
    return spec


def _read(source: ModelSource) -> tuple[mujoco.MjSpec, str, Path]:
    """The specification, its XML if that was given, and the folder that it is in."""
    if isinstance(source, mujoco.MjSpec):
        return source.copy(), "", Path()
    if callable(source):
        made = source()
        if not isinstance(made, mujoco.MjSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"The model function must return an MjSpec, got {type(made).__name__}."
            )
        return made.copy(), "", Path()
    if isinstance(source, str) and source.lstrip().startswith("<"):
        _check_size("The XML string", len(source))
        with _explained("The XML string"):
            return mujoco.MjSpec.from_string(source), source, Path()
    if isinstance(source, str) and source in models.NAMES:
        return models.spec(source), "", Path()
    if not isinstance(source, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            "A model is a path, an XML string, a known name, an MjSpec or a function "
            f"that makes one, got {type(source).__name__}."
        )
    path = Path(source)
    if _is_file(path):
        text = _checked_text(path)
        return _from_file(path), text, path.parent
    if str(source) and _is_folder(path):
        files = sorted(each.name for each in path.iterdir() if each.suffix in _READABLE)
        raise ModelError(
            f"{str(path)!r} is a folder, and a model is a file. Models in it: "
            f"{listed(files)}.",
            name=str(path),
        )
    found = library_spec(str(source))
    if found is None:
        known = suggestion(str(source), [*models.NAMES, *library_names()])
        raise ModelError(
            f"There is no model {str(source)[:200]!r}: it is not a file, nor an XML "
            f"string, nor a known model.{known}{install_hint()}",
            name=str(source)[:200],
        )
    return found, "", Path()


def _checked_text(path: Path) -> str:
    """Return the text of a file; one of another kind, too large or not UTF-8 raises."""
    if path.suffix not in _READABLE:
        ending = path.suffix or "a file without an ending"
        remedy = _REMEDIES.get(path.suffix.lower(), "")
        raise ModelError(
            f"{str(path)!r} cannot be read: a model file is MJCF (.xml) or URDF "
            f"(.urdf), not {ending}. {remedy}".rstrip()
        )
    _check_size(str(path), path.stat().st_size)
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError(
            f"{path} is not a valid MuJoCo model: byte {content[error.start]:#04x} in "
            f"line {line} is not UTF-8. Save the file with the encoding UTF-8.",
            name=str(path),
        ) from error


def _from_file(path: Path) -> mujoco.MjSpec:
    with _explained(str(path)):
        spec = mujoco.MjSpec.from_file(str(path))
    _check_names(path, spec)
    return spec


_NAMED = (
    "bodies", "joints", "geoms", "sites", "cameras", "lights", "frames", "meshes",
    "hfields", "textures", "materials", "actuators", "sensors", "tendons", "equalities",
    "keys", "pairs", "excludes", "flexes", "skins", "numerics", "texts", "tuples",
)  # fmt: skip
"""The lists of a specification whose elements have names."""


def _check_names(path: Path, spec: mujoco.MjSpec) -> None:
    """Raise if a name is no UTF-8, which Python could not read later."""
    for kind in _NAMED:
        for k, element in enumerate(getattr(spec, kind, ())):
            try:
                element.name  # noqa: B018 (decodes it)
            except UnicodeDecodeError as error:
                raise ModelError(
                    f"{str(path)!r} or a file that it includes has a name that is not "
                    f"UTF-8, of element {k} of its {kind}: save it as UTF-8.",
                    name=str(path),
                ) from error


def _check_size(what: str, size: int) -> None:
    """Raise for XML that would take minutes and gigabytes to parse."""
    if size > LARGEST_XML:
        raise ModelError(
            f"{what} has {size / 1e6:.0f} MB of XML; at most "
            f"{LARGEST_XML / 1e6:.0f} MB are read. Put meshes, height fields and skins "
            "into files of their formats.",
            name=what,
        )


def _is_file(path: Path) -> bool:
    """Return whether there is such a file; a name too long for one is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    """Return whether there is such a folder; a name too long for one is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def compile_spec(spec: mujoco.MjSpec, what: str) -> mujoco.MjModel:
    """The compiled model; a compiler error becomes ours and names `what`."""
    with _explained(what):
        return spec.compile()


@contextmanager
def _explained(what: str) -> Generator[None]:
    """Turn what MuJoCo says of a model that it refuses into a ModelError.

    Of its warnings, one remains: that models do not fit together, be they entities or
    one that a file attaches to its own.
    """
    try:
        with (
            silenced(),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always", UserWarning)
            yield
    except (ValueError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        hint = _WHAT_CAN_BE_READ if reason.startswith(_OTHER_FORMAT) else ""
        hint = _LOAD_PLUGIN if _NO_PLUGIN.search(reason) else hint
        if isinstance(error, UnicodeDecodeError):
            hint = ". Save the file and those that it includes with the encoding UTF-8."
        raise ModelError(
            f"{what} is not a valid MuJoCo model: {reason}{hint}", name=what
        ) from error
    for text in dict.fromkeys(str(warning.message) for warning in said):
        if text.startswith("Attach conflict"):
            warn(f"{what}: {' '.join(text.split())}.", UserWarning)


@dataclass(frozen=True, eq=False)
class EntityModel:
    """An entity's model, prepared for attachment and as loaded."""

    spec: mujoco.MjSpec
    """Every element named, actuators added."""
    own: mujoco.MjModel
    """The model compiled by itself, as it was given."""
    names: Names
    """The names of its elements in the specification."""
    configured: mujoco.MjModel
    """The model compiled by itself with the changes that the configuration requests;
    `own` if it requests none."""


def prepare_entity(name: str, cfg: EntityCfg) -> EntityModel:
    """The entity's model, read and made ready to be attached."""
    spec = load_spec(cfg.model, cfg.packages)
    what = f"The model of entity {name!r}{_file_name(cfg.model)}"
    own = compile_spec(spec, what)
    with _explained(what):
        names = name_elements(spec)
    _keep_total_mass(spec, own)
    if cfg.com_varies:
        for body in spec.bodies[1:]:
            body.simple = 0
    if not cfg.keep_model_actuators:
        # First: MuJoCo 4 keeps the keyframes that it finds at a deletion, and fills the
        # controls of theirs with zeros when it compiles again.
        for key in spec.keys:
            key.ctrl, key.act = [], []
        for actuator in list(spec.actuators):
            spec.delete(actuator)
    _make_room_for_delays(name, spec, cfg)
    _add_actuators(name, spec, own, cfg)
    _set_collisions(name, spec, cfg)
    configured = own
    if changes_model(cfg):
        # Attaching needs the number of controls that a compiled specification has.
        configured = compile_spec(spec, what)
    names["nplugin"] = element_names(own)["nplugin"]
    return EntityModel(spec, own, names, configured)


def changes_model(cfg: EntityCfg) -> bool:
    """Return True if a configuration changes the model that it is given."""
    return bool(
        cfg.actuators
        or not cfg.keep_model_actuators
        or cfg.com_varies
        or cfg.max_delay_s
        or cfg.collisions
    )


def _make_room_for_delays(name: str, spec: mujoco.MjSpec, cfg: EntityCfg) -> None:
    """Extend the control history of the model's actuators to the longest delay."""
    if cfg.max_delay_s is None:
        return
    longest = number(f"max_delay_s of {name!r}", cfg.max_delay_s, at_least=0, unit="s")
    for actuator in spec.actuators:
        if actuator.delay > longest:
            raise ModelError(
                f"max_delay_s of {name!r} is {longest:g} s, less than the "
                f"{actuator.delay:g} s that the model's actuator {actuator.name!r} "
                "has.",
                name="max_delay_s",
            )
        actuator.nsample = max(actuator.nsample, delay_samples(spec, longest))


def _set_collisions(name: str, spec: mujoco.MjSpec, cfg: EntityCfg) -> None:
    """Write the contact parameters of the configuration."""
    instance_of(f"collisions of {name!r}", cfg.collisions, tuple | list)
    geoms = {geom.name: geom for geom in spec.geoms}
    for collision in cfg.collisions:
        instance_of(f"A collision of {name!r}", collision, CollisionCfg)
        for geom in matching(collision.geoms, list(geoms), f"geom of {name!r}"):
            collision.write_to(geoms[geom])


def _file_name(source: ModelSource) -> str:
    """Return the file of a model in brackets; "" if it is not from a file."""
    is_xml = isinstance(source, str) and source.lstrip().startswith("<")
    if is_xml or not isinstance(source, str | Path) or source in models.NAMES:
        return ""
    return f" ({source})"


def _keep_total_mass(spec: mujoco.MjSpec, own: Any) -> None:
    """Write masses that were scaled to a total into the bodies.

    MuJoCo scales all bodies of what it compiles, which would be the scene's.
    """
    if spec.compiler.settotalmass <= 0:
        return
    for body in spec.bodies:
        if body.id:
            body.mass = own.body_mass[body.id]
            body.inertia = own.body_inertia[body.id]
            body.ipos, body.iquat = own.body_ipos[body.id], own.body_iquat[body.id]
            body.explicitinertial = True
    spec.compiler.settotalmass = -1
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE


def name_elements(spec: mujoco.MjSpec) -> dict[str, list[str]]:
    """Name each unnamed element of a compiled specification `<kind>_<id>`.

    Returns the names of the elements in the order of their ids.
    """
    names: dict[str, list[str]] = {}
    for size, kind in KINDS.items():
        if kind not in NAMED_KINDS:
            continue
        elements: list[Any] = list(getattr(spec, NAMED_KINDS[kind]))
        named = {element.id: element.name for element in elements}
        taken = set(named.values())
        for element in elements:
            if not element.name:
                name = unused_name(f"{kind}_{element.id}", taken)
                taken.add(name)
                named[element.id] = element.name = name
        names[size] = [named[k] for k in sorted(named)]
    return names


def unused_name(name: str, taken: set[str]) -> str:
    """The name, with underscores added until it is not among those taken."""
    while name in taken:
        name += "_"
    return name


def matching(
    patterns: str | Sequence[str],
    names: Sequence[str],
    kind: str,
    preserve_order: bool = False,
) -> list[str]:
    """Return the names that match a pattern in full, each once.

    They are in the order of `names`, or of the patterns if `preserve_order`. A pattern
    that matches nothing raises.
    """
    if not isinstance(patterns, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise unknown_name(f"{kind} (a name or a regex)", patterns, names)
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in patterns:
        if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise unknown_name(f"{kind} (a name or a regex)", str(pattern), names)
    known = frozenset(names)
    found: dict[str, None] = {}
    for pattern in patterns:
        # An exact name has precedence: names may contain characters special in a regex.
        hits = [pattern] if pattern in known else _hits(pattern, names, kind)
        if not hits:
            raise unknown_name(kind, pattern, names)
        found.update(dict.fromkeys(hits))
    if preserve_order:
        return list(found)
    return [name for name in names if name in found]


def _hits(pattern: str, names: Sequence[str], kind: str) -> list[str]:
    """Return the names that a regular expression matches in full."""
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise unknown_name(f"{kind} (bad regex: {error})", pattern, names) from None
    return [name for name in names if matches(name)]


def _add_actuators(
    name: str, spec: mujoco.MjSpec, own: mujoco.MjModel, cfg: EntityCfg
) -> None:
    """Add the actuators of the configuration, and their controls to the keyframes."""
    single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    joints = {joint.name: joint for joint in spec.joints if joint.type in single}
    addresses = {joint.name: int(own.jnt_qposadr[joint.id]) for joint in spec.joints}
    driven = {actuator.target for actuator in spec.actuators}
    names = {actuator.name for actuator in spec.actuators}
    instance_of(f"actuators of {name!r}", cfg.actuators, tuple | list)
    for actuator_cfg in cfg.actuators:
        instance_of(f"An actuator of {name!r}", actuator_cfg, ActuatorCfg)
        for joint_name in matching(actuator_cfg.joints, list(joints), "joint"):
            if joint_name in driven or joint_name in names:
                raise ModelError(
                    f"Joint {joint_name!r} of entity {name!r} has an actuator already. "
                    "Leave it out of `actuators`, or set keep_model_actuators=False "
                    "to drop the model's own.",
                    name=joint_name,
                )
            driven.add(joint_name)
            actuator_cfg.add_to(spec, joints[joint_name])
            _extend_keyframes(spec, own, addresses[joint_name], actuator_cfg)


def _extend_keyframes(
    spec: mujoco.MjSpec, own: mujoco.MjModel, qpos_adr: int, cfg: ActuatorCfg
) -> None:
    """Extend keyframes that state controls so that the new actuator holds the pose."""
    for key in spec.keys:
        if len(key.ctrl):
            held = float(own.key_qpos[key.id, qpos_adr])
            key.ctrl = [*key.ctrl, *cfg.holding_controls(held)]
