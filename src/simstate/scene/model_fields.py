"""The arrays of mjModel: the elements of their rows, and those that values refer to.

MuJoCo names the elements of an array by a size, such as "ngeom" or "nmeshvert". The
sizes of arrays are MuJoCo's own; the tables here state which elements the values of an
integer array identify, and where the rows of elements without names are stored.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np


def names_in(text: str) -> frozenset[str]:
    """Return the names that a text lists, separated by spaces."""
    return frozenset(text.split())


KINDS: dict[str, str] = {
    "nbody": "body", "njnt": "joint", "ngeom": "geom", "nsite": "site",
    "ncam": "camera", "nlight": "light", "nflex": "flex", "nmesh": "mesh",
    "nskin": "skin", "nhfield": "hfield", "ntex": "texture", "nmat": "material",
    "npair": "pair", "nexclude": "exclude", "neq": "equality", "ntendon": "tendon",
    "nactuator": "actuator", "nsensor": "sensor", "nnumeric": "numeric",
    "ntext": "text", "ntuple": "tuple", "nkey": "key", "nplugin": "plugin",
}  # fmt: skip
"""The kinds of elements that have names, by size, in the order of `mjModel.names`."""


class ModelArray(NamedTuple):
    """One array of mjModel."""

    name: str
    rows: str
    """The size of its first axis."""
    columns: str
    """The size of its second axis if that counts elements too, else ""."""
    width: int
    """Number of columns for each element of the second axis."""


class RowBlock(NamedTuple):
    """Consecutive rows that belong to one element of another kind."""

    owner: str
    """The size of the elements that own the rows."""
    address: str
    """The array of first rows; negative where an element has none."""
    length: str | None
    """The array of the numbers of rows; None: up to the next block."""


BLOCKS: dict[str, tuple[RowBlock, ...]] = {
    "nu": (RowBlock("nactuator", "actuator_ctrladr", "actuator_ctrlnum"),),
    "nout": (RowBlock("nactuator", "actuator_outadr", "actuator_outnum"),),
    "na": (RowBlock("nactuator", "actuator_actadr", "actuator_actnum"),),
    "nbvh": (
        RowBlock("nbody", "body_bvhadr", "body_bvhnum"),
        RowBlock("nmesh", "mesh_bvhadr", "mesh_bvhnum"),
        RowBlock("nflex", "flex_bvhadr", "flex_bvhnum"),
    ),
    "nbvhstatic": (
        RowBlock("nbody", "body_bvhadr", "body_bvhnum"),
        RowBlock("nmesh", "mesh_bvhadr", "mesh_bvhnum"),
    ),
    "noct": (RowBlock("nmesh", "mesh_octadr", "mesh_octnum"),),
    "nflexnode": (RowBlock("nflex", "flex_nodeadr", "flex_nodenum"),),
    "nflexvert": (RowBlock("nflex", "flex_vertadr", "flex_vertnum"),),
    "nflexedge": (RowBlock("nflex", "flex_edgeadr", "flex_edgenum"),),
    "nflexelem": (RowBlock("nflex", "flex_elemadr", "flex_elemnum"),),
    "nflexelemdata": (RowBlock("nflex", "flex_elemdataadr", None),),
    "nflexelemedge": (RowBlock("nflex", "flex_elemedgeadr", None),),
    "nflexstiffness": (RowBlock("nflex", "flex_stiffnessadr", None),),
    "nflexbending": (RowBlock("nflex", "flex_bendingadr", None),),
    "nflexshelldata": (RowBlock("nflex", "flex_shelldataadr", None),),
    "nflextexcoord": (RowBlock("nflex", "flex_texcoordadr", None),),
    "nJfe": (RowBlock("nflexedge", "flexedge_J_rowadr", "flexedge_J_rownnz"),),
    "nmeshvert": (RowBlock("nmesh", "mesh_vertadr", "mesh_vertnum"),),
    "nmeshnormal": (RowBlock("nmesh", "mesh_normaladr", "mesh_normalnum"),),
    "nmeshtexcoord": (RowBlock("nmesh", "mesh_texcoordadr", "mesh_texcoordnum"),),
    "nmeshface": (RowBlock("nmesh", "mesh_faceadr", "mesh_facenum"),),
    "nmeshgraph": (RowBlock("nmesh", "mesh_graphadr", None),),
    "nmeshpoly": (RowBlock("nmesh", "mesh_polyadr", "mesh_polynum"),),
    "nmeshpolyvert": (RowBlock("nmeshpoly", "mesh_polyvertadr", "mesh_polyvertnum"),),
    "nmeshpolymap": (RowBlock("nmeshvert", "mesh_polymapadr", "mesh_polymapnum"),),
    "nskinvert": (RowBlock("nskin", "skin_vertadr", "skin_vertnum"),),
    "nskintexvert": (RowBlock("nskin", "skin_texcoordadr", None),),
    "nskinface": (RowBlock("nskin", "skin_faceadr", "skin_facenum"),),
    "nskinbone": (RowBlock("nskin", "skin_boneadr", "skin_bonenum"),),
    "nskinbonevert": (RowBlock("nskinbone", "skin_bonevertadr", "skin_bonevertnum"),),
    "nhfielddata": (RowBlock("nhfield", "hfield_adr", None),),
    "ntexdata": (RowBlock("ntex", "tex_adr", None),),
    "nwrap": (RowBlock("ntendon", "tendon_adr", "tendon_num"),),
    "nJten": (RowBlock("ntendon", "ten_J_rowadr", "ten_J_rownnz"),),
    "nnumericdata": (RowBlock("nnumeric", "numeric_adr", "numeric_size"),),
    "ntextdata": (RowBlock("ntext", "text_adr", "text_size"),),
    "ntupledata": (RowBlock("ntuple", "tuple_adr", "tuple_size"),),
    # Joints, then tendons, then flexes: each kind ends where the next starts.
    "nplastic": (
        RowBlock("njnt", "jnt_plasticadr", None),
        RowBlock("ntendon", "tendon_plasticadr", None),
        RowBlock("nflex", "flex_plasticadr", None),
    ),
    "npluginattr": (RowBlock("nplugin", "plugin_attradr", None),),
    "nB": (RowBlock("nbody", "B_rowadr", "B_rownnz"),),
    "nC": (RowBlock("nv", "M_rowadr", "M_rownnz"),),
    "nD": (RowBlock("nv", "D_rowadr", "D_rownnz"),),
}  # fmt: skip
"""The rows of elements without names. Those of joints and bodies (nq, nv, ntree,
nmocap) follow from the joints' types and the bodies' ids."""

_BODY_IDS = (
    "body_parentid body_rootid body_weldid jnt_bodyid dof_bodyid geom_bodyid "
    "site_bodyid cam_bodyid cam_targetbodyid light_bodyid light_targetbodyid "
    "flex_nodebodyid flex_vertbodyid skin_bonebodyid tree_bodyadr"
)
_IDS = {
    "nbody": _BODY_IDS,
    "njnt": "body_jntadr dof_jntid",
    "nq": "jnt_qposadr",
    "nv": "body_dofadr jnt_dofadr dof_parentid tree_dofadr flexedge_J_colind "
    "ten_J_colind B_colind M_colind D_colind",
    "ntree": "body_treeid dof_treeid tendon_treeid",
    "nmocap": "body_mocapid",
    "ngeom": "body_geomadr pair_geom1 pair_geom2",
    "nmesh": "site_dataid",
    "ntex": "light_texid mat_texid",
    "nmat": "geom_matid site_matid flex_matid skin_matid tendon_matid",
    "nactuator": "jnt_actuatorid tendon_actuatorid",
    "nplugin": "body_plugin geom_plugin actuator_plugin sensor_plugin",
    "nC": "mapM2D",
    "nD": "mapD2M",
}
IDS: dict[str, str] = {
    field: size for size, fields in _IDS.items() for field in fields.split()
}
"""The size whose elements the values of an integer array identify; negative: none."""

_OBJECTS: dict[int, str] = {
    **{
        getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}").value: size
        for size, kind in KINDS.items()
    },
    mujoco.mjtObj.mjOBJ_XBODY.value: "nbody",
    mujoco.mjtObj.mjOBJ_DOF.value: "nv",
}
_EQUALITIES: dict[int, str] = {
    **{-kind: size for kind, size in _OBJECTS.items()},
    mujoco.mjtEq.mjEQ_JOINT.value: "njnt",
    mujoco.mjtEq.mjEQ_TENDON.value: "ntendon",
    mujoco.mjtEq.mjEQ_FLEX.value: "nflex",
    mujoco.mjtEq.mjEQ_FLEXVERT.value: "nflex",
    mujoco.mjtEq.mjEQ_FLEXSTRAIN.value: "nflex",
}
_CONNECT, _WELD = mujoco.mjtEq.mjEQ_CONNECT.value, mujoco.mjtEq.mjEQ_WELD.value
_JOINT, _SITE = mujoco.mjtTrn.mjTRN_JOINT.value, mujoco.mjtTrn.mjTRN_SITE.value
_TRANSMISSIONS: dict[int, str] = {
    _JOINT: "njnt",
    mujoco.mjtTrn.mjTRN_JOINTINPARENT.value: "njnt",
    mujoco.mjtTrn.mjTRN_SLIDERCRANK.value: "nsite",
    mujoco.mjtTrn.mjTRN_TENDON.value: "ntendon",
    _SITE: "nsite",
    mujoco.mjtTrn.mjTRN_BODY.value: "nbody",
}
_WRAPS: dict[int, str] = {
    mujoco.mjtWrap.mjWRAP_JOINT.value: "njnt",
    mujoco.mjtWrap.mjWRAP_SITE.value: "nsite",
    mujoco.mjtWrap.mjWRAP_SPHERE.value: "ngeom",
    mujoco.mjtWrap.mjWRAP_CYLINDER.value: "ngeom",
}
_SIDE_SITES: dict[int, str] = {
    mujoco.mjtWrap.mjWRAP_SPHERE.value: "nsite",
    mujoco.mjtWrap.mjWRAP_CYLINDER.value: "nsite",
}
_GEOM_DATA: dict[int, str] = {
    kind.value: "nhfield" if kind == mujoco.mjtGeom.mjGEOM_HFIELD else "nmesh"
    for kind in mujoco.mjtGeom.__members__.values()
}


def _equality_kinds(model: Any) -> np.ndarray:
    """Return the types of equalities; those between objects by −mjtObj."""
    between = np.isin(model.eq_type, (_CONNECT, _WELD))
    return np.where(between, -np.asarray(model.eq_objtype), model.eq_type)


def _transmission_kinds(model: Any) -> np.ndarray:
    """Return the types of transmissions; one between orientations by its objects."""
    kinds, second = np.asarray(model.actuator_trntype), model.actuator_trnid[:, 1]
    objects = np.where(second < 0, _JOINT, _SITE)
    return np.where(kinds == mujoco.mjtTrn.mjTRN_SO3.value, objects, kinds)


TYPED_IDS: dict[str, tuple[str | Callable[[Any], np.ndarray], Mapping[int, str]]] = {
    "eq_obj1id": (_equality_kinds, _EQUALITIES),
    "eq_obj2id": (_equality_kinds, _EQUALITIES),
    "sensor_objid": ("sensor_objtype", _OBJECTS),
    "sensor_refid": ("sensor_reftype", _OBJECTS),
    "tuple_objid": ("tuple_objtype", _OBJECTS),
    "actuator_trnid": (_transmission_kinds, _TRANSMISSIONS),
    "wrap_objid": ("wrap_type", _WRAPS),
    "wrap_prm": ("wrap_type", _SIDE_SITES),
    "geom_dataid": ("geom_type", _GEOM_DATA),
}
"""Arrays whose values identify elements of several kinds: the array or function that
gives the kinds, and the size of each kind. A value of another kind is not an id."""

SIGNATURES = ("pair_signature", "exclude_signature")
"""Arrays that store two body ids in one integer."""

ADDRESSES = names_in(
    "flex_nodeadr flex_vertadr flex_edgeadr flex_elemadr flex_elemdataadr "
    "flex_stiffnessadr flex_elemedgeadr flex_bendingadr flex_shelldataadr "
    "flex_texcoordadr flex_bvhadr flexedge_J_rowadr "
    "mesh_vertadr mesh_faceadr mesh_bvhadr mesh_octadr mesh_normaladr "
    "mesh_texcoordadr mesh_graphadr mesh_polyadr mesh_polyvertadr mesh_polymapadr "
    "skin_vertadr skin_texcoordadr skin_faceadr skin_boneadr skin_bonevertadr "
    "hfield_adr tex_adr tendon_adr ten_J_rowadr body_bvhadr "
    "actuator_ctrladr actuator_outadr actuator_actadr actuator_historyadr "
    "sensor_adr sensor_historyadr plugin_stateadr plugin_attradr numeric_adr text_adr "
    "tuple_adr dof_Madr B_rowadr M_rowadr D_rowadr flexvert_J_rowadr "
    "jnt_plasticadr flex_plasticadr tendon_plasticadr"
)
"""Arrays of addresses of blocks. The blocks are compared, but addresses only for being
present: where a block is stored depends on all entities of a scene."""

WORLD_TOTALS = names_in(
    "body_geomnum body_geomadr body_contype body_conaffinity body_margin "
    "body_bvhnum body_bvhadr body_subtreemass B_rownnz B_colind bvh_depth bvh_child "
    "bvh_nodeid bvh_aabb cam_poscom0 light_poscom0"
)
"""Arrays whose rows of the world body depend on everything attached to it."""

AT_START = names_in(
    "body_invweight0 dof_invweight0 tendon_invweight0 flexedge_invweight0 actuator_acc0"
)
"""Arrays that MuJoCo computes from the inertia matrix of the complete scene, in an
order of summation that depends on where the entity is stored. They are compared to
rounding, unless the scene consists of a single file."""

SCENE_STRUCTURES = names_in(
    "dof_simplenum mapM2M efm0_dofid efm0_L_rownnz efm0_L_rowadr efm0_L_colind efm0_L "
    "efmC_perm flexvert_J_rownnz flexvert_J_rowadr flexvert_J_colind"
)
"""Arrays that MuJoCo derives for the complete model from arrays that are compared. They
are compared only if the scene consists of a single file."""


@cache
def model_fields() -> tuple[ModelArray, ...]:
    """Return the arrays of mjModel in the installed version of MuJoCo.

    The arrays of names and paths are left out: a scene adds prefixes to names.
    """
    structs: Any = importlib.import_module("mujoco.introspect.structs")
    fields: list[ModelArray] = []
    for field in structs.STRUCTS["mjModel"].fields:
        extent = getattr(field, "array_extent", None)
        if extent and not _names(field.name):
            second = str(extent[1]) if len(extent) > 1 else ""
            columns, _, width = second.partition("*")
            columns = columns if columns in _COLUMNS else ""
            fields.append(ModelArray(field.name, extent[0], columns, int(width or 1)))
    return tuple(fields)


_COLUMNS = ("nq", "nv", "na", "nu", "nmocap", "nplastic")


def _names(field: str) -> bool:
    """Return True if an array contains names or file paths, or their addresses."""
    names = field.startswith("name_") or field in ("names", "names_map", "paths")
    return names or field.endswith(("pathadr", "contenttypeadr"))
