"""Plain MJCF: a compiled model as a document that all parsers read the same way.

MuJoCo's own writer keeps six digits and uses default classes, which other simulators'
parsers support in part. Here every attribute is explicit, such as the inertia of a body
and the axis of a joint, and numbers keep all their digits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from simstate.scene.physics_options import OPTION_WORDS, option_word
from simstate.simulators.mjcf_actuators import add_actuators
from simstate.simulators.mjcf_parts import (
    SOLIMP,
    ModelNames,
    add_equalities,
    add_pairs,
    add_tendons,
    numbers,
    set_differing,
    set_powers,
)

Element = ElementTree.Element

_JOINTS = {0: "free", 1: "ball", 2: "slide", 3: "hinge"}
_GEOMS = {
    0: "plane",
    1: "hfield",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}
_OPTIONS = (
    *("density", "viscosity", "wind", "magnetic", "impratio", "tolerance"),
    *("iterations", "ls_tolerance", "ls_iterations", "noslip_tolerance"),
    *("noslip_iterations", "ccd_tolerance", "ccd_iterations", "sleep_tolerance"),
    *("sdf_iterations", "sdf_initpoints"),
    *("o_margin", "o_solref", "o_solimp", "o_friction"),
)
"""Options that are written if they differ from MuJoCo's defaults."""
_SIZES = {
    "plane": 3,
    "sphere": 1,
    "capsule": 2,
    "ellipsoid": 3,
    "cylinder": 2,
    "box": 3,
}


@dataclass(frozen=True)
class PlainMjcf:
    """Result of `plain_mjcf`."""

    text: str
    """The document."""
    left_out: tuple[str, ...]
    """Descriptions of the elements of the model that are not in the document."""


def plain_mjcf(
    model: mujoco.MjModel,
    mesh_dir: Path | None = None,
    skip: Collection[str] = (),
    split: Collection[int] = (),
    everything: bool = False,
) -> PlainMjcf:
    """Write a compiled model as plain MJCF; see the module.

    Args:
        model: the compiled model. Elements without a name get one, `<kind>_<id>`.
        mesh_dir: folder for its meshes as OBJ files; None: geoms that are meshes are
            left out.
        skip: sections to leave out: "actuator", "tendon", "equality", "contact".
        split: bodies to write as a chain with one link for each joint. The last link is
            the body itself; the others, `<name>#<number>`, have no mass, which MuJoCo
            rejects. For parsers that do not support several joints of a body.
        everything: whether to write also elements that other parsers reject or
            misread: actuators that are neither servos nor motors, higher powers of
            springs and dampers, contact pairs and height fields.
    """
    return _Writer(model, mesh_dir, skip, split, everything).write()


def link_name(body: str, number: int) -> str:
    """Return the name of a massless link of a body that was split."""
    return f"{body}#{number}"


class _Writer:
    """Writer of one document."""

    def __init__(
        self,
        model: mujoco.MjModel,
        mesh_dir: Path | None,
        skip: Collection[str],
        split: Collection[int],
        everything: bool,
    ) -> None:
        self.left_out: list[str] = []
        self.names = ModelNames(model)
        self._model = model
        self._mesh_dir = mesh_dir
        self._skip = skip
        self._split = split
        self._everything = everything
        self._root = ElementTree.Element("mujoco", model="scene")
        self._bodies: list[Element] = []

    def write(self) -> PlainMjcf:
        """Write the document; call this once."""
        model, root, names = self._model, self._root, self.names
        # auto: the inertia is that of the body's element; without one it is massless.
        compiler = {"angle": "radian", "autolimits": "false", "inertiafromgeom": "auto"}
        ElementTree.SubElement(root, "compiler", compiler)
        self._add_options()
        assets = ElementTree.SubElement(root, "asset")
        self._add_meshes(assets)
        if self._everything:
            self._add_height_fields(assets)
        self._bodies = [ElementTree.SubElement(root, "worldbody")]
        for body in range(1, model.nbody):
            self._bodies.append(self._body(body))
        for geom in range(model.ngeom):
            self._add_geom(geom)
        for site in range(model.nsite):
            self._add_site(site)
        if "contact" not in self._skip:
            self._add_contacts()
        if "tendon" not in self._skip:
            self.left_out += add_tendons(root, model, names, self._everything)
        if "equality" not in self._skip:
            self.left_out += add_equalities(root, model, names)
        if "actuator" not in self._skip:
            self.left_out += add_actuators(root, model, names, self._everything)
        self._list_left_out()
        ElementTree.indent(root)
        text = ElementTree.tostring(root, encoding="unicode")
        return PlainMjcf(text, tuple(self.left_out))

    def _add_options(self) -> None:
        """Physics options and flags."""
        opt, defaults = self._model.opt, mujoco.MjSpec().option
        option = ElementTree.SubElement(
            self._root,
            "option",
            timestep=numbers(opt.timestep),
            gravity=numbers(opt.gravity),
            **{name: option_word(name, getattr(opt, name)) for name in OPTION_WORDS},
        )
        for name in _OPTIONS:
            set_differing(option, name, getattr(opt, name), getattr(defaults, name))
        flags = {
            name.removeprefix("mjDSBL_").lower(): "disable"
            for name, bit in mujoco.mjtDisableBit.__members__.items()
            if name.startswith("mjDSBL_") and opt.disableflags & bit.value
        }
        flags |= {
            name.removeprefix("mjENBL_").lower(): "enable"
            for name, bit in mujoco.mjtEnableBit.__members__.items()
            if name.startswith("mjENBL_") and opt.enableflags & bit.value
        }
        if flags:
            ElementTree.SubElement(option, "flag", flags)

    def _body(self, body: int) -> Element:
        """Add a body with its inertia and its joints below its parent."""
        model = self._model
        name = self.names.body[body]
        parent = self._bodies[int(model.body_parentid[body])]
        pose = {
            "pos": numbers(model.body_pos[body]),
            "quat": numbers(model.body_quat[body]),
        }
        first = model.body_jntadr[body]
        joints = list(range(first, first + model.body_jntnum[body]))
        while body in self._split and len(joints) > 1:
            link = link_name(name, model.body_jntnum[body] - len(joints))
            parent = ElementTree.SubElement(parent, "body", {"name": link, **pose})
            self._add_joint(parent, joints.pop(0))
            pose = {}
        attributes = {"name": name, **pose}
        if model.body_gravcomp[body]:
            attributes["gravcomp"] = numbers(model.body_gravcomp[body])
        if model.body_mocapid[body] >= 0:
            attributes["mocap"] = "true"
        element = ElementTree.SubElement(parent, "body", attributes)
        if model.body_mass[body] > 0:
            ElementTree.SubElement(
                element,
                "inertial",
                pos=numbers(model.body_ipos[body]),
                quat=numbers(model.body_iquat[body]),
                mass=numbers(model.body_mass[body]),
                diaginertia=numbers(model.body_inertia[body]),
            )
        for joint in joints:
            self._add_joint(element, joint)
        return element

    def _add_joint(self, body: Element, joint: int) -> None:
        model = self._model
        kind = _JOINTS[int(model.jnt_type[joint])]
        dof, adr = model.jnt_dofadr[joint], model.jnt_qposadr[joint]
        element = ElementTree.SubElement(
            body, "joint", name=self.names.joint[joint], type=kind
        )
        for name, array in (
            ("armature", model.dof_armature),
            ("frictionloss", model.dof_frictionloss),
        ):
            set_differing(element, name, array[dof], 0.0)
        for name, value, higher in (
            ("damping", float(model.dof_damping[dof]), model.dof_dampingpoly[dof]),
            (
                "stiffness",
                float(model.jnt_stiffness[joint]),
                model.jnt_stiffnesspoly[joint],
            ),
        ):
            if not set_powers(element, name, value, higher, self._everything):
                self.left_out.append(
                    f"higher powers of the {name} of joint {element.get('name')!r}"
                )
        if kind == "free":
            return
        element.set("pos", numbers(model.jnt_pos[joint]))
        if model.jnt_limited[joint]:
            element.set("limited", "true")
            element.set("range", numbers(model.jnt_range[joint]))
        set_differing(element, "margin", model.jnt_margin[joint], 0.0)
        set_differing(element, "solreflimit", model.jnt_solref[joint], (0.02, 1.0))
        set_differing(element, "solimplimit", model.jnt_solimp[joint], SOLIMP)
        set_differing(element, "solreffriction", model.dof_solref[dof], (0.02, 1.0))
        set_differing(element, "solimpfriction", model.dof_solimp[dof], SOLIMP)
        if model.jnt_actfrclimited[joint]:
            element.set("actuatorfrclimited", "true")
            element.set("actuatorfrcrange", numbers(model.jnt_actfrcrange[joint]))
        if model.jnt_actgravcomp[joint]:
            element.set("actuatorgravcomp", "true")
        if kind == "ball":
            return
        element.set("axis", numbers(model.jnt_axis[joint]))
        set_differing(element, "ref", model.qpos0[adr], 0.0)
        set_differing(element, "springref", model.qpos_spring[adr], 0.0)

    def _add_geom(self, geom: int) -> None:
        model = self._model
        kind = _GEOMS.get(int(model.geom_type[geom]))
        name = self.names.geom[geom]
        attributes: dict[str, str] = {}
        if kind == "mesh":
            if self._mesh_dir is None:
                kind = None
            else:
                attributes["mesh"] = f"mesh_{model.geom_dataid[geom]}"
        elif kind == "hfield":
            if not self._everything:
                kind = None
            else:
                attributes["hfield"] = f"hfield_{model.geom_dataid[geom]}"
        elif kind is not None:
            attributes["size"] = numbers(model.geom_size[geom, : _SIZES[kind]])
        if kind is None:
            self.left_out.append(f"geom {name!r}, a mesh or height field")
            return
        element = ElementTree.SubElement(
            self._bodies[int(model.geom_bodyid[geom])],
            "geom",
            {
                "name": name,
                "type": kind,
                "pos": numbers(model.geom_pos[geom]),
                "quat": numbers(model.geom_quat[geom]),
                "mass": "0",
                "friction": numbers(model.geom_friction[geom]),
                **attributes,
            },
        )
        for attribute, value, default in (
            ("contype", model.geom_contype[geom], 1),
            ("conaffinity", model.geom_conaffinity[geom], 1),
            ("condim", model.geom_condim[geom], 3),
            ("group", model.geom_group[geom], 0),
            ("priority", model.geom_priority[geom], 0),
            ("solmix", model.geom_solmix[geom], 1.0),
            ("solref", model.geom_solref[geom], (0.02, 1.0)),
            ("solimp", model.geom_solimp[geom], SOLIMP),
            ("margin", model.geom_margin[geom], 0.0),
            ("gap", model.geom_gap[geom], 0.0),
        ):
            set_differing(element, attribute, value, default)
        if model.geom_fluid[geom, 0]:
            element.set("fluidshape", "ellipsoid")
            element.set("fluidcoef", numbers(model.geom_fluid[geom, 1:6]))

    def _add_site(self, site: int) -> None:
        model = self._model
        ElementTree.SubElement(
            self._bodies[int(model.site_bodyid[site])],
            "site",
            name=self.names.site[site],
            pos=numbers(model.site_pos[site]),
            quat=numbers(model.site_quat[site]),
            size="0.01",
        )

    def _add_meshes(self, assets: Element) -> None:
        """The meshes of geoms, each as an OBJ file."""
        model = self._model
        if self._mesh_dir is None:
            return
        used = {
            int(model.geom_dataid[geom])
            for geom in range(model.ngeom)
            if _GEOMS.get(int(model.geom_type[geom])) == "mesh"
        }
        for mesh in sorted(used):
            path = self._mesh_dir / f"mesh_{mesh}.obj"
            _write_obj(path, *_mesh_arrays(model, mesh))
            ElementTree.SubElement(assets, "mesh", name=f"mesh_{mesh}", file=str(path))

    def _add_height_fields(self, assets: Element) -> None:
        """Every height field; MJCF orders the rows from high to low y."""
        model = self._model
        for field in range(model.nhfield):
            rows, columns = (
                int(sizes[field]) for sizes in (model.hfield_nrow, model.hfield_ncol)
            )
            first = int(model.hfield_adr[field])
            heights = model.hfield_data[first : first + rows * columns]
            ElementTree.SubElement(
                assets,
                "hfield",
                name=f"hfield_{field}",
                nrow=str(rows),
                ncol=str(columns),
                size=numbers(model.hfield_size[field]),
                elevation=numbers(heights.reshape(rows, columns)[::-1].ravel()),
            )

    def _add_contacts(self) -> None:
        """Excluded pairs of bodies, and contact pairs of geoms."""
        model = self._model
        if model.nexclude:
            contact = ElementTree.SubElement(self._root, "contact")
            for signature in model.exclude_signature:
                one, two = int(signature) >> 16, int(signature) & 0xFFFF
                ElementTree.SubElement(
                    contact,
                    "exclude",
                    body1=self.names.body[one],
                    body2=self.names.body[two],
                )
        if model.npair and self._everything:
            add_pairs(self._root, model, self.names)
        elif model.npair:
            self.left_out.append(f"{model.npair} explicit contact pairs")

    def _list_left_out(self) -> None:
        model = self._model
        counts = {
            "sensors": model.nsensor,
            "keyframes": model.nkey,
            "cameras": model.ncam,
            "lights": model.nlight,
            "flexible bodies": model.nflex,
            "plugins": model.nplugin,
        }
        self.left_out += [f"{count} {what}" for what, count in counts.items() if count]


def _mesh_arrays(model: mujoco.MjModel, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) [m] and faces (m, 3) of a mesh, in the geom's own frame."""
    first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    start, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    return (
        model.mesh_vert[first : first + count],
        model.mesh_face[start : start + faces],
    )


def _write_obj(path: Path, vertices: np.ndarray, faces: np.ndarray) -> None:
    lines = [f"v {numbers(vertex)}" for vertex in vertices]
    lines += ["f " + " ".join(str(int(i) + 1) for i in face) for face in faces]
    path.write_text("\n".join(lines) + "\n")
