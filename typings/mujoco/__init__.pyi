"""What simstate uses of MuJoCo 3.17.0; written by typings/generate.py."""

from collections.abc import Callable
from typing import Any

import numpy as np
from mujoco import batch as batch

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]
Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Array = np.ndarray[Any, np.dtype[Any]]

__version__: str
__file__: str
mjx: Any

class FatalError(Exception): ...

class MjOption:
    ccd_iterations: int
    ccd_tolerance: float
    cone: int
    density: float
    disableactuator: int
    disableflags: int
    enableflags: int
    gravity: Floats
    impratio: float
    integrator: int
    iterations: int
    jacobian: int
    ls_iterations: int
    ls_tolerance: float
    magnetic: Floats
    noslip_iterations: int
    noslip_tolerance: float
    o_friction: Floats
    o_margin: float
    o_solimp: Floats
    o_solref: Floats
    sdf_initpoints: int
    sdf_iterations: int
    sleep_tolerance: float
    solver: int
    timestep: float
    tolerance: float
    viscosity: float
    wind: Floats

class MjStatistic:
    center: Floats
    extent: float
    meaninertia: float
    meanmass: float
    meansize: float

class MjModel:
    opt: MjOption
    stat: MjStatistic
    vis: Any
    @staticmethod
    def from_xml_path(filename: str) -> MjModel: ...
    @staticmethod
    def from_binary_path(filename: str, assets: dict[str, bytes]) -> MjModel: ...
    @staticmethod
    def from_xml_string(xml: str, assets: dict[str, bytes] | None = ...) -> MjModel: ...
    _address: int
    _setconst_inputs: tuple[str, ...]
    _setconst_outputs: tuple[str, ...]
    B_colind: Ints
    B_rowadr: Ints
    B_rownnz: Ints
    D_colind: Ints
    D_diag: Ints
    D_rowadr: Ints
    D_rownnz: Ints
    M_colind: Ints
    M_rowadr: Ints
    M_rownnz: Ints
    def actuator(self, *args: Any) -> Any: ...
    actuator_acc0: Floats
    actuator_actadr: Ints
    actuator_actearly: Bools
    actuator_actlimited: Bools
    actuator_actnum: Ints
    actuator_actrange: Floats
    actuator_armature: Floats
    actuator_biasprm: Floats
    actuator_biastype: Ints
    actuator_cranklength: Floats
    actuator_ctrladr: Ints
    actuator_ctrllimited: Bools
    actuator_ctrlnum: Ints
    actuator_ctrlrange: Floats
    actuator_ctrlspec: Ints
    actuator_damping: Floats
    actuator_dampingpoly: Floats
    actuator_delay: Floats
    actuator_dynprm: Floats
    actuator_dyntype: Ints
    actuator_forcelimited: Bools
    actuator_forcerange: Floats
    actuator_gainprm: Floats
    actuator_gaintype: Ints
    actuator_gear: Floats
    actuator_group: Ints
    actuator_history: Ints
    actuator_historyadr: Ints
    actuator_length0: Floats
    actuator_lengthrange: Floats
    actuator_outadr: Ints
    actuator_outnum: Ints
    actuator_plugin: Ints
    actuator_trnid: Ints
    actuator_trntype: Ints
    actuator_user: Floats
    def bind(self, *args: Any) -> Any: ...
    def bind_scalar(self, *args: Any) -> Any: ...
    def body(self, *args: Any) -> Any: ...
    body_bvhadr: Ints
    body_bvhnum: Ints
    body_conaffinity: Ints
    body_contype: Ints
    body_dofadr: Ints
    body_dofnum: Ints
    body_geomadr: Ints
    body_geomnum: Ints
    body_gravcomp: Floats
    body_inertia: Floats
    body_invweight0: Floats
    body_ipos: Floats
    body_iquat: Floats
    body_jntadr: Ints
    body_jntnum: Ints
    body_margin: Floats
    body_mass: Floats
    body_mocapid: Ints
    body_parentid: Ints
    body_plugin: Ints
    body_pos: Floats
    body_quat: Floats
    body_rootid: Ints
    body_sameframe: Ints
    body_simple: Ints
    body_subtreemass: Floats
    body_treeid: Ints
    body_user: Floats
    body_weldid: Ints
    bvh_aabb: Floats
    bvh_child: Ints
    bvh_depth: Ints
    bvh_nodeid: Ints
    def cam(self, *args: Any) -> Any: ...
    cam_bodyid: Ints
    cam_fovy: Floats
    cam_intrinsic: Floats
    cam_ipd: Floats
    cam_mat0: Floats
    cam_mode: Ints
    cam_output: Ints
    cam_pos: Floats
    cam_pos0: Floats
    cam_poscom0: Floats
    cam_projection: Ints
    cam_quat: Floats
    cam_resolution: Ints
    cam_sensorsize: Floats
    cam_targetbodyid: Ints
    cam_user: Floats
    def camera(self, *args: Any) -> Any: ...
    dof_M0: Floats
    dof_Madr: Ints
    dof_armature: Floats
    dof_bodyid: Ints
    dof_damping: Floats
    dof_dampingpoly: Floats
    dof_frictionloss: Floats
    dof_invweight0: Floats
    dof_jntid: Ints
    dof_length: Floats
    dof_parentid: Ints
    dof_simplenum: Ints
    dof_solimp: Floats
    dof_solref: Floats
    dof_treeid: Ints
    efm0_L: Floats
    efm0_L_colind: Ints
    efm0_L_rowadr: Ints
    efm0_L_rownnz: Ints
    efm0_dofid: Ints
    efmC_perm: Ints
    def eq(self, *args: Any) -> Any: ...
    eq_active0: Bools
    eq_data: Floats
    eq_obj1id: Ints
    eq_obj2id: Ints
    eq_objtype: Ints
    eq_solimp: Floats
    eq_solref: Floats
    eq_type: Ints
    def equality(self, *args: Any) -> Any: ...
    def exclude(self, *args: Any) -> Any: ...
    exclude_signature: Ints
    flex_activelayers: Ints
    flex_bending: Floats
    flex_bendingadr: Ints
    flex_bvhadr: Ints
    flex_bvhnum: Ints
    flex_cellnum: Ints
    flex_centered: Bools
    flex_conaffinity: Ints
    flex_condim: Ints
    flex_contype: Ints
    flex_damping: Floats
    flex_dim: Ints
    flex_edge: Ints
    flex_edgeadr: Ints
    flex_edgedamping: Floats
    flex_edgeequality: Ints
    flex_edgeflap: Ints
    flex_edgenum: Ints
    flex_edgestiffness: Floats
    flex_elem: Ints
    flex_elemadr: Ints
    flex_elemdataadr: Ints
    flex_elemedge: Ints
    flex_elemedgeadr: Ints
    flex_elemlayer: Ints
    flex_elemnum: Ints
    flex_elemtexcoord: Ints
    flex_flatskin: Bools
    flex_friction: Floats
    flex_gap: Floats
    flex_group: Ints
    flex_interp: Ints
    flex_margin: Floats
    flex_matid: Ints
    flex_node: Floats
    flex_node0: Floats
    flex_nodeadr: Ints
    flex_nodebodyid: Ints
    flex_nodenum: Ints
    flex_passive: Ints
    flex_priority: Ints
    flex_radius: Floats
    flex_rgba: Floats
    flex_rigid: Bools
    flex_selfcollide: Ints
    flex_shell: Ints
    flex_shelldataadr: Ints
    flex_shellnum: Ints
    flex_size: Floats
    flex_solimp: Floats
    flex_solmix: Floats
    flex_solref: Floats
    flex_stiffness: Floats
    flex_stiffnessadr: Ints
    flex_texcoord: Floats
    flex_texcoordadr: Ints
    flex_vert: Floats
    flex_vert0: Floats
    flex_vertadr: Ints
    flex_vertbodyid: Ints
    flex_vertedge: Ints
    flex_vertedgeadr: Ints
    flex_vertedgenum: Ints
    flex_vertmetric: Floats
    flex_vertnum: Ints
    flexedge_J_colind: Ints
    flexedge_J_rowadr: Ints
    flexedge_J_rownnz: Ints
    flexedge_invweight0: Floats
    flexedge_length0: Floats
    flexedge_rigid: Bools
    flexvert_J_colind: Ints
    flexvert_J_rowadr: Ints
    flexvert_J_rownnz: Ints
    flg_adhesion: bool
    flg_gravcomp: bool
    flg_surfacevel: bool
    def geom(self, *args: Any) -> Any: ...
    geom_aabb: Floats
    geom_adhesion: Floats
    geom_bodyid: Ints
    geom_conaffinity: Ints
    geom_condim: Ints
    geom_contype: Ints
    geom_dataid: Ints
    geom_fluid: Floats
    geom_friction: Floats
    geom_gap: Floats
    geom_group: Ints
    geom_margin: Floats
    geom_matid: Ints
    geom_plugin: Ints
    geom_pos: Floats
    geom_priority: Ints
    geom_quat: Floats
    geom_rbound: Floats
    geom_rgba: Floats
    geom_sameframe: Ints
    geom_size: Floats
    geom_solimp: Floats
    geom_solmix: Floats
    geom_solref: Floats
    geom_surfacevel: Floats
    geom_type: Ints
    geom_user: Floats
    def hfield(self, *args: Any) -> Any: ...
    hfield_adr: Ints
    hfield_data: Floats
    hfield_ncol: Ints
    hfield_nrow: Ints
    hfield_pathadr: Ints
    hfield_size: Floats
    def jnt(self, *args: Any) -> Any: ...
    jnt_actfrclimited: Bools
    jnt_actfrcrange: Floats
    jnt_actgravcomp: Bools
    jnt_actuatorid: Ints
    jnt_axis: Floats
    jnt_bodyid: Ints
    jnt_dofadr: Ints
    jnt_group: Ints
    jnt_limited: Bools
    jnt_margin: Floats
    jnt_pos: Floats
    jnt_qposadr: Ints
    jnt_range: Floats
    jnt_solimp: Floats
    jnt_solref: Floats
    jnt_stiffness: Floats
    jnt_stiffnesspoly: Floats
    jnt_type: Ints
    jnt_user: Floats
    def joint(self, *args: Any) -> Any: ...
    def key(self, *args: Any) -> Any: ...
    key_act: Floats
    key_ctrl: Floats
    key_mpos: Floats
    key_mquat: Floats
    key_qpos: Floats
    key_qvel: Floats
    key_time: Floats
    def keyframe(self, *args: Any) -> Any: ...
    def light(self, *args: Any) -> Any: ...
    light_active: Bools
    light_ambient: Floats
    light_attenuation: Floats
    light_bodyid: Ints
    light_bulbradius: Floats
    light_castshadow: Bools
    light_cutoff: Floats
    light_diffuse: Floats
    light_dir: Floats
    light_dir0: Floats
    light_exponent: Floats
    light_intensity: Floats
    light_mode: Ints
    light_pos: Floats
    light_pos0: Floats
    light_poscom0: Floats
    light_range: Floats
    light_softness: Floats
    light_specular: Floats
    light_targetbodyid: Ints
    light_texid: Ints
    light_type: Ints
    mapD2M: Ints
    mapM2D: Ints
    mapM2M: Ints
    def mat(self, *args: Any) -> Any: ...
    mat_emission: Floats
    mat_metallic: Floats
    mat_reflectance: Floats
    mat_rgba: Floats
    mat_roughness: Floats
    mat_shininess: Floats
    mat_specular: Floats
    mat_texid: Ints
    mat_texrepeat: Floats
    mat_texuniform: Bools
    def material(self, *args: Any) -> Any: ...
    def mesh(self, *args: Any) -> Any: ...
    mesh_bvhadr: Ints
    mesh_bvhnum: Ints
    mesh_extrema: Ints
    mesh_face: Ints
    mesh_faceadr: Ints
    mesh_facenormal: Ints
    mesh_facenum: Ints
    mesh_facetexcoord: Ints
    mesh_graph: Ints
    mesh_graphadr: Ints
    mesh_normal: Floats
    mesh_normaladr: Ints
    mesh_normalnum: Ints
    mesh_octadr: Ints
    mesh_octnum: Ints
    mesh_pathadr: Ints
    mesh_polyadr: Ints
    mesh_polymap: Ints
    mesh_polymapadr: Ints
    mesh_polymapnum: Ints
    mesh_polynormal: Floats
    mesh_polynum: Ints
    mesh_polyvert: Ints
    mesh_polyvertadr: Ints
    mesh_polyvertnum: Ints
    mesh_pos: Floats
    mesh_quat: Floats
    mesh_scale: Floats
    mesh_texcoord: Floats
    mesh_texcoordadr: Ints
    mesh_texcoordnum: Ints
    mesh_vert: Floats
    mesh_vertadr: Ints
    mesh_vertnum: Ints
    nB: int
    nC: int
    nD: int
    nJfe: int
    nJfv: int
    nJmom: int
    nJten: int
    nM: int
    na: int
    nactuator: int
    name_actuatoradr: Ints
    name_bodyadr: Ints
    name_camadr: Ints
    name_eqadr: Ints
    name_excludeadr: Ints
    name_flexadr: Ints
    name_geomadr: Ints
    name_hfieldadr: Ints
    name_jntadr: Ints
    name_keyadr: Ints
    name_lightadr: Ints
    name_matadr: Ints
    name_meshadr: Ints
    name_numericadr: Ints
    name_pairadr: Ints
    name_pluginadr: Ints
    name_sensoradr: Ints
    name_siteadr: Ints
    name_skinadr: Ints
    name_tendonadr: Ints
    name_texadr: Ints
    name_textadr: Ints
    name_tupleadr: Ints
    names: bytes
    names_map: Ints
    narena: int
    nbody: int
    nbuffer: int
    nbvh: int
    nbvhdynamic: int
    nbvhstatic: int
    ncam: int
    nconmax: int
    nefm0L: int
    nefm0dof: int
    nefmCvert: int
    nemax: int
    neq: int
    nexclude: int
    nflex: int
    nflexbending: int
    nflexedge: int
    nflexelem: int
    nflexelemdata: int
    nflexelemedge: int
    nflexnode: int
    nflexshelldata: int
    nflexstiffness: int
    nflextexcoord: int
    nflexvert: int
    ngeom: int
    ngravcomp: int
    nhfield: int
    nhfielddata: int
    nhistory: int
    njmax: int
    njnt: int
    nkey: int
    nlight: int
    nmat: int
    nmesh: int
    nmeshdegmax: int
    nmeshface: int
    nmeshgraph: int
    nmeshnormal: int
    nmeshpoly: int
    nmeshpolymap: int
    nmeshpolyvert: int
    nmeshtexcoord: int
    nmeshvert: int
    nmocap: int
    nnames: int
    nnames_map: int
    nnumeric: int
    nnumericdata: int
    noct: int
    nout: int
    npair: int
    npaths: int
    nplugin: int
    npluginattr: int
    npluginstate: int
    npolygonmax: int
    nq: int
    nsensor: int
    nsensordata: int
    nsite: int
    nskin: int
    nskinbone: int
    nskinbonevert: int
    nskinface: int
    nskintexvert: int
    nskinvert: int
    ntendon: int
    ntex: int
    ntexdata: int
    ntext: int
    ntextdata: int
    ntree: int
    ntuple: int
    ntupledata: int
    nu: int
    def numeric(self, *args: Any) -> Any: ...
    numeric_adr: Ints
    numeric_data: Floats
    numeric_size: Ints
    nuser_actuator: int
    nuser_body: int
    nuser_cam: int
    nuser_geom: int
    nuser_jnt: int
    nuser_sensor: int
    nuser_site: int
    nuser_tendon: int
    nuserdata: int
    nv: int
    nwrap: int
    oct_aabb: Floats
    oct_child: Ints
    oct_coeff: Floats
    oct_depth: Ints
    def pair(self, *args: Any) -> Any: ...
    pair_adhesion: Floats
    pair_dim: Ints
    pair_friction: Floats
    pair_gap: Floats
    pair_geom1: Ints
    pair_geom2: Ints
    pair_margin: Floats
    pair_signature: Ints
    pair_solimp: Floats
    pair_solref: Floats
    pair_solreffriction: Floats
    paths: bytes
    plugin: Ints
    plugin_attr: Ints
    plugin_attradr: Ints
    plugin_stateadr: Ints
    plugin_statenum: Ints
    qpos0: Floats
    qpos_spring: Floats
    def sensor(self, *args: Any) -> Any: ...
    sensor_adr: Ints
    sensor_cutoff: Floats
    sensor_datatype: Ints
    sensor_delay: Floats
    sensor_dim: Ints
    sensor_history: Ints
    sensor_historyadr: Ints
    sensor_interval: Floats
    sensor_intprm: Ints
    sensor_needstage: Ints
    sensor_noise: Floats
    sensor_objid: Ints
    sensor_objtype: Ints
    sensor_plugin: Ints
    sensor_refid: Ints
    sensor_reftype: Ints
    sensor_type: Ints
    sensor_user: Floats
    signature: int
    def site(self, *args: Any) -> Any: ...
    site_bodyid: Ints
    site_dataid: Ints
    site_group: Ints
    site_matid: Ints
    site_pos: Floats
    site_quat: Floats
    site_rgba: Floats
    site_sameframe: Ints
    site_size: Floats
    site_type: Ints
    site_user: Floats
    def skin(self, *args: Any) -> Any: ...
    skin_boneadr: Ints
    skin_bonebindpos: Floats
    skin_bonebindquat: Floats
    skin_bonebodyid: Ints
    skin_bonenum: Ints
    skin_bonevertadr: Ints
    skin_bonevertid: Ints
    skin_bonevertnum: Ints
    skin_bonevertweight: Floats
    skin_face: Ints
    skin_faceadr: Ints
    skin_facenum: Ints
    skin_group: Ints
    skin_inflate: Floats
    skin_matid: Ints
    skin_pathadr: Ints
    skin_rgba: Floats
    skin_texcoord: Floats
    skin_texcoordadr: Ints
    skin_vert: Floats
    skin_vertadr: Ints
    skin_vertnum: Ints
    ten_J_colind: Ints
    ten_J_rowadr: Ints
    ten_J_rownnz: Ints
    def tendon(self, *args: Any) -> Any: ...
    tendon_actfrclimited: Bools
    tendon_actfrcrange: Floats
    tendon_actuatorid: Ints
    tendon_adr: Ints
    tendon_armature: Floats
    tendon_damping: Floats
    tendon_dampingpoly: Floats
    tendon_frictionloss: Floats
    tendon_group: Ints
    tendon_invweight0: Floats
    tendon_length0: Floats
    tendon_lengthspring: Floats
    tendon_limited: Bools
    tendon_margin: Floats
    tendon_matid: Ints
    tendon_num: Ints
    tendon_range: Floats
    tendon_rgba: Floats
    tendon_solimp_fri: Floats
    tendon_solimp_lim: Floats
    tendon_solref_fri: Floats
    tendon_solref_lim: Floats
    tendon_stiffness: Floats
    tendon_stiffnesspoly: Floats
    tendon_treeid: Ints
    tendon_treenum: Ints
    tendon_user: Floats
    tendon_width: Floats
    def tex(self, *args: Any) -> Any: ...
    tex_adr: Ints
    tex_colorspace: Ints
    tex_contenttypeadr: Ints
    tex_data: Ints
    tex_height: Ints
    tex_nchannel: Ints
    tex_pathadr: Ints
    tex_type: Ints
    tex_width: Ints
    text_adr: Ints
    text_data: bytes
    text_size: Ints
    def texture(self, *args: Any) -> Any: ...
    tree_bodyadr: Ints
    tree_bodynum: Ints
    tree_dofadr: Ints
    tree_dofnum: Ints
    tree_sleep_policy: Ints
    def tuple(self, *args: Any) -> Any: ...
    tuple_adr: Ints
    tuple_objid: Ints
    tuple_objprm: Floats
    tuple_objtype: Ints
    tuple_size: Ints
    wrap_objid: Ints
    wrap_prm: Floats
    wrap_type: Ints

class MjData:
    contact: Any
    warning: Any
    _address: int
    def __init__(self, model: MjModel) -> None: ...
    M: Floats
    act: Floats
    act_dot: Floats
    def actuator(self, *args: Any) -> Any: ...
    actuator_force: Floats
    actuator_length: Floats
    actuator_moment: Floats
    actuator_velocity: Floats
    def bind(self, *args: Any) -> Any: ...
    def bind_scalar(self, *args: Any) -> Any: ...
    def body(self, *args: Any) -> Any: ...
    body_awake: Ints
    body_awake_ind: Ints
    bvh_aabb_dyn: Floats
    bvh_active: Bools
    cacc: Floats
    def cam(self, *args: Any) -> Any: ...
    cam_xmat: Floats
    cam_xpos: Floats
    def camera(self, *args: Any) -> Any: ...
    cdof: Floats
    cdof_dot: Floats
    cfrc_ext: Floats
    cfrc_int: Floats
    cinert: Floats
    crb: Floats
    ctrl: Floats
    cvel: Floats
    dof_awake_ind: Ints
    dof_island: Ints
    efc_AR: Floats
    efc_AR_colind: Ints
    efc_AR_rowadr: Ints
    efc_AR_rownnz: Ints
    efc_D: Floats
    efc_J: Floats
    efc_J_colind: Ints
    efc_J_rowadr: Ints
    efc_J_rownnz: Ints
    efc_J_rowsuper: Ints
    efc_KBIP: Floats
    efc_R: Floats
    efc_Y: Floats
    efc_Y_colind: Ints
    efc_Y_rowadr: Ints
    efc_Y_rownnz: Ints
    efc_aref: Floats
    efc_b: Floats
    efc_diagA: Floats
    efc_force: Floats
    efc_frictionloss: Floats
    efc_id: Ints
    efc_island: Ints
    efc_margin: Floats
    efc_pos: Floats
    efc_state: Ints
    efc_type: Ints
    efc_vel: Floats
    efm_K_colind: Ints
    efm_K_rowadr: Ints
    efm_K_rownnz: Ints
    efm_K_val: Floats
    efm_L: Floats
    efm_active: int
    efm_aid: Ints
    efm_ak: Floats
    efm_as: Floats
    efm_c: Floats
    efm_ca: Floats
    efm_ck: Floats
    efm_con_ind: Ints
    efm_con_val: Floats
    efm_diag: Floats
    efm_dofid: Ints
    efm_fluid: Floats
    efm_sdiag: Floats
    efm_tid: Ints
    efm_tk: Floats
    efm_ts: Floats
    energy: Floats
    eq_active: Bools
    flex_hessian_valid: Bools
    flexedge_J: Floats
    flexedge_hessian: Floats
    flexedge_length: Floats
    flexedge_velocity: Floats
    flexelem_aabb: Floats
    flexelem_krot: Floats
    flexvert_J: Floats
    flexvert_conage: Ints
    flexvert_hessian: Floats
    flexvert_lambda: Floats
    flexvert_length: Floats
    flexvert_xpos: Floats
    flg_energypos: bool
    flg_energyvel: bool
    flg_rnepost: bool
    flg_subtreevel: bool
    def geom(self, *args: Any) -> Any: ...
    geom_xmat: Floats
    geom_xpos: Floats
    history: Floats
    iacc: Floats
    iacc_smooth: Floats
    iefc_D: Floats
    iefc_R: Floats
    iefc_aref: Floats
    iefc_force: Floats
    iefc_frictionloss: Floats
    iefc_id: Ints
    iefc_state: Ints
    iefc_type: Ints
    ifrc_constraint: Floats
    ifrc_smooth: Floats
    island_dofadr: Ints
    island_idofadr: Ints
    island_iefcadr: Ints
    island_itreeadr: Ints
    island_ne: Ints
    island_nefc: Ints
    island_nf: Ints
    island_ntree: Ints
    island_nv: Ints
    def jnt(self, *args: Any) -> Any: ...
    def joint(self, *args: Any) -> Any: ...
    def light(self, *args: Any) -> Any: ...
    light_xdir: Floats
    light_xpos: Floats
    map_dof2idof: Ints
    map_efc2iefc: Ints
    map_idof2dof: Ints
    map_iefc2efc: Ints
    map_itree2tree: Ints
    maxuse_arena: int
    maxuse_con: int
    maxuse_efc: int
    maxuse_stack: int
    mocap_pos: Floats
    mocap_quat: Floats
    moment_colind: Ints
    moment_rowadr: Ints
    moment_rownnz: Ints
    nA: int
    nJ: int
    nY: int
    narena: int
    nbody_awake: int
    nbuffer: int
    ncon: int
    ne: int
    nefc: int
    nefmA: int
    nefmK: int
    nefmL: int
    nefmT: int
    nefmcon: int
    nefmdof: int
    nf: int
    nidof: int
    nisland: int
    nl: int
    nparent_awake: int
    nplugin: int
    ntree_awake: int
    nv_awake: int
    parena: int
    parent_awake_ind: Ints
    pbase: int
    plugin: Ints
    plugin_data: Ints
    plugin_state: Floats
    pstack: int
    qDeriv: Floats
    qH: Floats
    qHDiagInv: Floats
    qLD: Floats
    qLDiagInv: Floats
    qLU: Floats
    qacc: Floats
    qacc_smooth: Floats
    qacc_warmstart: Floats
    qfrc_actuator: Floats
    qfrc_adhesion: Floats
    qfrc_applied: Floats
    qfrc_bias: Floats
    qfrc_constraint: Floats
    qfrc_damper: Floats
    qfrc_fluid: Floats
    qfrc_gravcomp: Floats
    qfrc_inverse: Floats
    qfrc_passive: Floats
    qfrc_smooth: Floats
    qfrc_spring: Floats
    qpos: Floats
    qvel: Floats
    def sensor(self, *args: Any) -> Any: ...
    sensordata: Floats
    signature: int
    def site(self, *args: Any) -> Any: ...
    site_xmat: Floats
    site_xpos: Floats
    solver_fwdinv: Floats
    solver_niter: Ints
    solver_nnz: Ints
    subtree_angmom: Floats
    subtree_com: Floats
    subtree_linvel: Floats
    def ten(self, *args: Any) -> Any: ...
    ten_J: Floats
    ten_length: Floats
    ten_velocity: Floats
    ten_wrapadr: Ints
    ten_wrapnum: Ints
    def tendon(self, *args: Any) -> Any: ...
    tendon_efcadr: Ints
    threadpool: int
    time: float
    tree_asleep: Ints
    tree_awake: Ints
    tree_island: Ints
    userdata: Floats
    wrap_obj: Ints
    wrap_xpos: Floats
    xanchor: Floats
    xaxis: Floats
    xfrc_applied: Floats
    ximat: Floats
    xipos: Floats
    xmat: Floats
    xpos: Floats
    xquat: Floats

class MjSpec:
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    @staticmethod
    def from_file(filename: str) -> MjSpec: ...
    @staticmethod
    def from_string(xml: str, assets: dict[str, bytes] | None = ...) -> MjSpec: ...
    def compile(self) -> MjModel: ...
    def copy(self) -> MjSpec: ...

class MjrContext:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class MjrRect:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class MjvCamera:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class MjvGeom:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class MjvOption:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class MjvPerturb:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class MjvScene:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class mjtBias:
    __members__: dict[str, mjtBias]
    mjBIAS_NONE: mjtBias
    mjBIAS_AFFINE: mjtBias
    mjBIAS_MUSCLE: mjtBias
    mjBIAS_DCMOTOR: mjtBias
    mjBIAS_SO3: mjtBias
    mjBIAS_USER: mjtBias
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtBuiltin:
    __members__: dict[str, mjtBuiltin]
    mjBUILTIN_NONE: mjtBuiltin
    mjBUILTIN_GRADIENT: mjtBuiltin
    mjBUILTIN_CHECKER: mjtBuiltin
    mjBUILTIN_FLAT: mjtBuiltin
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtCamLight:
    __members__: dict[str, mjtCamLight]
    mjCAMLIGHT_FIXED: mjtCamLight
    mjCAMLIGHT_TRACK: mjtCamLight
    mjCAMLIGHT_TRACKCOM: mjtCamLight
    mjCAMLIGHT_TARGETBODY: mjtCamLight
    mjCAMLIGHT_TARGETBODYCOM: mjtCamLight
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtCamera:
    __members__: dict[str, mjtCamera]
    mjCAMERA_FREE: mjtCamera
    mjCAMERA_TRACKING: mjtCamera
    mjCAMERA_FIXED: mjtCamera
    mjCAMERA_USER: mjtCamera
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtCatBit:
    __members__: dict[str, mjtCatBit]
    mjCAT_STATIC: mjtCatBit
    mjCAT_DYNAMIC: mjtCatBit
    mjCAT_DECOR: mjtCatBit
    mjCAT_ALL: mjtCatBit
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtConDataField:
    __members__: dict[str, mjtConDataField]
    mjCONDATA_FOUND: mjtConDataField
    mjCONDATA_FORCE: mjtConDataField
    mjCONDATA_TORQUE: mjtConDataField
    mjCONDATA_DIST: mjtConDataField
    mjCONDATA_POS: mjtConDataField
    mjCONDATA_NORMAL: mjtConDataField
    mjCONDATA_TANGENT: mjtConDataField
    mjCONDATA_LINVEL: mjtConDataField
    mjCONDATA_ANGVEL: mjtConDataField
    mjNCONDATA: mjtConDataField
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtCone:
    __members__: dict[str, mjtCone]
    mjCONE_PYRAMIDAL: mjtCone
    mjCONE_ELLIPTIC: mjtCone
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtCtrlInput:
    __members__: dict[str, mjtCtrlInput]
    mjINPUT_POS: mjtCtrlInput
    mjINPUT_VEL: mjtCtrlInput
    mjINPUT_FF: mjtCtrlInput
    mjINPUT_VOLTAGE: mjtCtrlInput
    mjINPUT_NONE: mjtCtrlInput
    mjINPUT_PRESSURE: mjtCtrlInput
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtDisableBit:
    __members__: dict[str, mjtDisableBit]
    mjDSBL_CONSTRAINT: mjtDisableBit
    mjDSBL_EQUALITY: mjtDisableBit
    mjDSBL_FRICTIONLOSS: mjtDisableBit
    mjDSBL_LIMIT: mjtDisableBit
    mjDSBL_CONTACT: mjtDisableBit
    mjDSBL_SPRING: mjtDisableBit
    mjDSBL_DAMPER: mjtDisableBit
    mjDSBL_GRAVITY: mjtDisableBit
    mjDSBL_CLAMPCTRL: mjtDisableBit
    mjDSBL_WARMSTART: mjtDisableBit
    mjDSBL_FILTERPARENT: mjtDisableBit
    mjDSBL_ACTUATION: mjtDisableBit
    mjDSBL_REFSAFE: mjtDisableBit
    mjDSBL_SENSOR: mjtDisableBit
    mjDSBL_MIDPHASE: mjtDisableBit
    mjDSBL_EULERDAMP: mjtDisableBit
    mjDSBL_AUTORESET: mjtDisableBit
    mjDSBL_NATIVECCD: mjtDisableBit
    mjDSBL_ISLAND: mjtDisableBit
    mjDSBL_MULTICCD: mjtDisableBit
    mjNDISABLE: mjtDisableBit
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtDyn:
    __members__: dict[str, mjtDyn]
    mjDYN_NONE: mjtDyn
    mjDYN_INTEGRATOR: mjtDyn
    mjDYN_FILTER: mjtDyn
    mjDYN_FILTEREXACT: mjtDyn
    mjDYN_MUSCLE: mjtDyn
    mjDYN_DCMOTOR: mjtDyn
    mjDYN_PID: mjtDyn
    mjDYN_USER: mjtDyn
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtEnableBit:
    __members__: dict[str, mjtEnableBit]
    mjENBL_OVERRIDE: mjtEnableBit
    mjENBL_ENERGY: mjtEnableBit
    mjENBL_FWDINV: mjtEnableBit
    mjENBL_INVDISCRETE: mjtEnableBit
    mjENBL_SLEEP: mjtEnableBit
    mjENBL_DIAGEXACT: mjtEnableBit
    mjENBL_IPC: mjtEnableBit
    mjNENABLE: mjtEnableBit
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtEq:
    __members__: dict[str, mjtEq]
    mjEQ_CONNECT: mjtEq
    mjEQ_WELD: mjtEq
    mjEQ_JOINT: mjtEq
    mjEQ_TENDON: mjtEq
    mjEQ_FLEX: mjtEq
    mjEQ_FLEXVERT: mjtEq
    mjEQ_FLEXSTRAIN: mjtEq
    mjEQ_DISTANCE: mjtEq
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtFramebuffer:
    __members__: dict[str, mjtFramebuffer]
    mjFB_WINDOW: mjtFramebuffer
    mjFB_OFFSCREEN: mjtFramebuffer
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtGain:
    __members__: dict[str, mjtGain]
    mjGAIN_FIXED: mjtGain
    mjGAIN_AFFINE: mjtGain
    mjGAIN_MUSCLE: mjtGain
    mjGAIN_DCMOTOR: mjtGain
    mjGAIN_SO3: mjtGain
    mjGAIN_PID: mjtGain
    mjGAIN_USER: mjtGain
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtGeom:
    __members__: dict[str, mjtGeom]
    mjGEOM_PLANE: mjtGeom
    mjGEOM_HFIELD: mjtGeom
    mjGEOM_SPHERE: mjtGeom
    mjGEOM_CAPSULE: mjtGeom
    mjGEOM_ELLIPSOID: mjtGeom
    mjGEOM_CYLINDER: mjtGeom
    mjGEOM_BOX: mjtGeom
    mjGEOM_MESH: mjtGeom
    mjGEOM_SDF: mjtGeom
    mjNGEOMTYPES: mjtGeom
    mjGEOM_ARROW: mjtGeom
    mjGEOM_ARROW1: mjtGeom
    mjGEOM_ARROW2: mjtGeom
    mjGEOM_LINE: mjtGeom
    mjGEOM_LINEBOX: mjtGeom
    mjGEOM_FLEX: mjtGeom
    mjGEOM_SKIN: mjtGeom
    mjGEOM_LABEL: mjtGeom
    mjGEOM_TRIANGLE: mjtGeom
    mjGEOM_NONE: mjtGeom
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtInertiaFromGeom:
    __members__: dict[str, mjtInertiaFromGeom]
    mjINERTIAFROMGEOM_FALSE: mjtInertiaFromGeom
    mjINERTIAFROMGEOM_TRUE: mjtInertiaFromGeom
    mjINERTIAFROMGEOM_AUTO: mjtInertiaFromGeom
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtIntegrator:
    __members__: dict[str, mjtIntegrator]
    mjINT_EULER: mjtIntegrator
    mjINT_RK4: mjtIntegrator
    mjINT_IMPLICIT: mjtIntegrator
    mjINT_IMPLICITFAST: mjtIntegrator
    mjINT_DISCRETE: mjtIntegrator
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtJacobian:
    __members__: dict[str, mjtJacobian]
    mjJAC_DENSE: mjtJacobian
    mjJAC_SPARSE: mjtJacobian
    mjJAC_AUTO: mjtJacobian
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtJoint:
    __members__: dict[str, mjtJoint]
    mjJNT_FREE: mjtJoint
    mjJNT_BALL: mjtJoint
    mjJNT_SLIDE: mjtJoint
    mjJNT_HINGE: mjtJoint
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtLightType:
    __members__: dict[str, mjtLightType]
    mjLIGHT_SPOT: mjtLightType
    mjLIGHT_DIRECTIONAL: mjtLightType
    mjLIGHT_POINT: mjtLightType
    mjLIGHT_IMAGE: mjtLightType
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtLimited:
    __members__: dict[str, mjtLimited]
    mjLIMITED_FALSE: mjtLimited
    mjLIMITED_TRUE: mjtLimited
    mjLIMITED_AUTO: mjtLimited
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtObj:
    __members__: dict[str, mjtObj]
    mjOBJ_UNKNOWN: mjtObj
    mjOBJ_BODY: mjtObj
    mjOBJ_XBODY: mjtObj
    mjOBJ_JOINT: mjtObj
    mjOBJ_DOF: mjtObj
    mjOBJ_GEOM: mjtObj
    mjOBJ_SITE: mjtObj
    mjOBJ_CAMERA: mjtObj
    mjOBJ_LIGHT: mjtObj
    mjOBJ_FLEX: mjtObj
    mjOBJ_MESH: mjtObj
    mjOBJ_SKIN: mjtObj
    mjOBJ_HFIELD: mjtObj
    mjOBJ_TEXTURE: mjtObj
    mjOBJ_MATERIAL: mjtObj
    mjOBJ_PAIR: mjtObj
    mjOBJ_EXCLUDE: mjtObj
    mjOBJ_EQUALITY: mjtObj
    mjOBJ_TENDON: mjtObj
    mjOBJ_ACTUATOR: mjtObj
    mjOBJ_SENSOR: mjtObj
    mjOBJ_NUMERIC: mjtObj
    mjOBJ_TEXT: mjtObj
    mjOBJ_TUPLE: mjtObj
    mjOBJ_KEY: mjtObj
    mjOBJ_PLUGIN: mjtObj
    mjNOBJECT: mjtObj
    mjOBJ_FRAME: mjtObj
    mjOBJ_DEFAULT: mjtObj
    mjOBJ_MODEL: mjtObj
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtRndFlag:
    __members__: dict[str, mjtRndFlag]
    mjRND_SHADOW: mjtRndFlag
    mjRND_WIREFRAME: mjtRndFlag
    mjRND_REFLECTION: mjtRndFlag
    mjRND_ADDITIVE: mjtRndFlag
    mjRND_SKYBOX: mjtRndFlag
    mjRND_FOG: mjtRndFlag
    mjRND_HAZE: mjtRndFlag
    mjRND_DEPTH: mjtRndFlag
    mjRND_SEGMENT: mjtRndFlag
    mjRND_IDCOLOR: mjtRndFlag
    mjRND_CULL_FACE: mjtRndFlag
    mjNRNDFLAG: mjtRndFlag
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtSameFrame:
    __members__: dict[str, mjtSameFrame]
    mjSAMEFRAME_NONE: mjtSameFrame
    mjSAMEFRAME_BODY: mjtSameFrame
    mjSAMEFRAME_INERTIA: mjtSameFrame
    mjSAMEFRAME_BODYROT: mjtSameFrame
    mjSAMEFRAME_INERTIAROT: mjtSameFrame
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtSensor:
    __members__: dict[str, mjtSensor]
    mjSENS_TOUCH: mjtSensor
    mjSENS_ACCELEROMETER: mjtSensor
    mjSENS_VELOCIMETER: mjtSensor
    mjSENS_GYRO: mjtSensor
    mjSENS_FORCE: mjtSensor
    mjSENS_TORQUE: mjtSensor
    mjSENS_MAGNETOMETER: mjtSensor
    mjSENS_RANGEFINDER: mjtSensor
    mjSENS_CAMPROJECTION: mjtSensor
    mjSENS_JOINTPOS: mjtSensor
    mjSENS_JOINTVEL: mjtSensor
    mjSENS_TENDONPOS: mjtSensor
    mjSENS_TENDONVEL: mjtSensor
    mjSENS_ACTUATORPOS: mjtSensor
    mjSENS_ACTUATORVEL: mjtSensor
    mjSENS_ACTUATORFRC: mjtSensor
    mjSENS_JOINTACTFRC: mjtSensor
    mjSENS_TENDONACTFRC: mjtSensor
    mjSENS_BALLQUAT: mjtSensor
    mjSENS_BALLANGVEL: mjtSensor
    mjSENS_JOINTLIMITPOS: mjtSensor
    mjSENS_JOINTLIMITVEL: mjtSensor
    mjSENS_JOINTLIMITFRC: mjtSensor
    mjSENS_TENDONLIMITPOS: mjtSensor
    mjSENS_TENDONLIMITVEL: mjtSensor
    mjSENS_TENDONLIMITFRC: mjtSensor
    mjSENS_FRAMEPOS: mjtSensor
    mjSENS_FRAMEQUAT: mjtSensor
    mjSENS_FRAMEXAXIS: mjtSensor
    mjSENS_FRAMEYAXIS: mjtSensor
    mjSENS_FRAMEZAXIS: mjtSensor
    mjSENS_FRAMELINVEL: mjtSensor
    mjSENS_FRAMEANGVEL: mjtSensor
    mjSENS_FRAMELINACC: mjtSensor
    mjSENS_FRAMEANGACC: mjtSensor
    mjSENS_SUBTREECOM: mjtSensor
    mjSENS_SUBTREELINVEL: mjtSensor
    mjSENS_SUBTREEANGMOM: mjtSensor
    mjSENS_INSIDESITE: mjtSensor
    mjSENS_GEOMDIST: mjtSensor
    mjSENS_GEOMNORMAL: mjtSensor
    mjSENS_GEOMFROMTO: mjtSensor
    mjSENS_CONTACT: mjtSensor
    mjSENS_E_POTENTIAL: mjtSensor
    mjSENS_E_KINETIC: mjtSensor
    mjSENS_CLOCK: mjtSensor
    mjSENS_TACTILE: mjtSensor
    mjSENS_PLUGIN: mjtSensor
    mjSENS_USER: mjtSensor
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtSolver:
    __members__: dict[str, mjtSolver]
    mjSOL_PGS: mjtSolver
    mjSOL_CG: mjtSolver
    mjSOL_NEWTON: mjtSolver
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtStage:
    __members__: dict[str, mjtStage]
    mjSTAGE_NONE: mjtStage
    mjSTAGE_POS: mjtStage
    mjSTAGE_VEL: mjtStage
    mjSTAGE_ACC: mjtStage
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtState:
    __members__: dict[str, mjtState]
    mjSTATE_TIME: mjtState
    mjSTATE_QPOS: mjtState
    mjSTATE_QVEL: mjtState
    mjSTATE_ACT: mjtState
    mjSTATE_HISTORY: mjtState
    mjSTATE_WARMSTART: mjtState
    mjSTATE_CTRL: mjtState
    mjSTATE_QFRC_APPLIED: mjtState
    mjSTATE_XFRC_APPLIED: mjtState
    mjSTATE_EQ_ACTIVE: mjtState
    mjSTATE_MOCAP_POS: mjtState
    mjSTATE_MOCAP_QUAT: mjtState
    mjSTATE_USERDATA: mjtState
    mjSTATE_PLUGIN: mjtState
    mjNSTATE: mjtState
    mjSTATE_PHYSICS: mjtState
    mjSTATE_FULLPHYSICS: mjtState
    mjSTATE_USER: mjtState
    mjSTATE_INTEGRATION: mjtState
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtTexture:
    __members__: dict[str, mjtTexture]
    mjTEXTURE_2D: mjtTexture
    mjTEXTURE_CUBE: mjtTexture
    mjTEXTURE_SKYBOX: mjtTexture
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtTextureRole:
    __members__: dict[str, mjtTextureRole]
    mjTEXROLE_USER: mjtTextureRole
    mjTEXROLE_RGB: mjtTextureRole
    mjTEXROLE_OCCLUSION: mjtTextureRole
    mjTEXROLE_ROUGHNESS: mjtTextureRole
    mjTEXROLE_METALLIC: mjtTextureRole
    mjTEXROLE_NORMAL: mjtTextureRole
    mjTEXROLE_OPACITY: mjtTextureRole
    mjTEXROLE_EMISSIVE: mjtTextureRole
    mjTEXROLE_RGBA: mjtTextureRole
    mjTEXROLE_ORM: mjtTextureRole
    mjNTEXROLE: mjtTextureRole
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtTrn:
    __members__: dict[str, mjtTrn]
    mjTRN_JOINT: mjtTrn
    mjTRN_JOINTINPARENT: mjtTrn
    mjTRN_SLIDERCRANK: mjtTrn
    mjTRN_TENDON: mjtTrn
    mjTRN_SITE: mjtTrn
    mjTRN_BODY: mjtTrn
    mjTRN_SO3: mjtTrn
    mjTRN_UNDEFINED: mjtTrn
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtWarning:
    __members__: dict[str, mjtWarning]
    mjWARN_INERTIA: mjtWarning
    mjWARN_CONTACTFULL: mjtWarning
    mjWARN_CNSTRFULL: mjtWarning
    mjWARN_BADQPOS: mjtWarning
    mjWARN_BADQVEL: mjtWarning
    mjWARN_BADQACC: mjtWarning
    mjWARN_BADCTRL: mjtWarning
    mjNWARNING: mjtWarning
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

class mjtWrap:
    __members__: dict[str, mjtWrap]
    mjWRAP_NONE: mjtWrap
    mjWRAP_JOINT: mjtWrap
    mjWRAP_PULLEY: mjtWrap
    mjWRAP_SITE: mjtWrap
    mjWRAP_SPHERE: mjtWrap
    mjWRAP_CYLINDER: mjtWrap
    value: int
    name: str
    def __init__(self, value: int | np.integer[Any]) -> None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __rand__(self, other: int) -> int: ...

def get_mjcb_time() -> Any: ...
def get_mju_user_warning() -> Any: ...
def mj_actuatorInputName(m: MjModel, id: int | np.integer[Any], input: int | np.integer[Any]) -> str: ...
def mj_applyFT(m: MjModel, d: MjData, force: Array, torque: Array, point: Array, body: int | np.integer[Any], qfrc_target: Array) -> None: ...
def mj_camlight(m: MjModel, d: MjData) -> None: ...
def mj_comPos(m: MjModel, d: MjData) -> None: ...
def mj_comVel(m: MjModel, d: MjData) -> None: ...
def mj_contactForce(m: MjModel, d: MjData, id: int | np.integer[Any], result: Array) -> None: ...
def mj_differentiatePos(m: MjModel, qvel: Array, dt: float, qpos1: Array, qpos2: Array) -> None: ...
def mj_energyPos(m: MjModel, d: MjData) -> None: ...
def mj_energyVel(m: MjModel, d: MjData) -> None: ...
def mj_flex(m: MjModel, d: MjData) -> None: ...
def mj_forward(m: MjModel, d: MjData) -> None: ...
def mj_fullM(m: MjModel, d: MjData, dst: Array) -> None: ...
def mj_fwdPosition(m: MjModel, d: MjData) -> None: ...
def mj_fwdVelocity(m: MjModel, d: MjData) -> None: ...
def mj_getState(m: MjModel, d: MjData, state: Array, sig: int | np.integer[Any]) -> None: ...
def mj_id2name(m: MjModel, type: int | np.integer[Any], id: int | np.integer[Any]) -> str | None: ...
def mj_initCtrlHistory(m: MjModel, d: MjData, id: int | np.integer[Any], times: Array | None, values: Array) -> None: ...
def mj_integratePos(m: MjModel, qpos: Array, qvel: Array, dt: float) -> None: ...
def mj_inverse(m: MjModel, d: MjData) -> None: ...
def mj_jac(m: MjModel, d: MjData, jacp: Array | None, jacr: Array | None, point: Array, body: int | np.integer[Any]) -> None: ...
def mj_jacBody(m: MjModel, d: MjData, jacp: Array | None, jacr: Array | None, body: int | np.integer[Any]) -> None: ...
def mj_kinematics(m: MjModel, d: MjData) -> None: ...
def mj_loadPluginLibrary(path: str) -> None: ...
def mj_mulM(m: MjModel, d: MjData, res: Array, vec: Array) -> None: ...
def mj_name2id(m: MjModel, type: int | np.integer[Any], name: str) -> int: ...
def mj_normalizeQuat(m: MjModel, qpos: Array) -> None: ...
def mj_objectAcceleration(m: MjModel, d: MjData, objtype: int | np.integer[Any], objid: int | np.integer[Any], res: Array, flg_local: int | np.integer[Any]) -> None: ...
def mj_objectVelocity(m: MjModel, d: MjData, objtype: int | np.integer[Any], objid: int | np.integer[Any], res: Array, flg_local: int | np.integer[Any]) -> None: ...
def mj_rnePostConstraint(m: MjModel, d: MjData) -> None: ...
def mj_saveModel(m: MjModel, filename: str | None = None, buffer: Array | None = None) -> None: ...
def mj_setConst(m: MjModel, d: MjData) -> None: ...
def mj_setState(m: MjModel, d: MjData, state: Array, sig: int | np.integer[Any]) -> None: ...
def mj_sizeModel(m: MjModel) -> int: ...
def mj_stateSize(m: MjModel, sig: int | np.integer[Any]) -> int: ...
def mj_step(m: MjModel, d: MjData, nstep: int | np.integer[Any] = 1) -> None: ...
def mj_step2(m: MjModel, d: MjData) -> None: ...
def mj_subtreeVel(m: MjModel, d: MjData) -> None: ...
def mj_tendon(m: MjModel, d: MjData) -> None: ...
def mj_version() -> int: ...
def mj_versionString() -> str: ...
def mjr_render(viewport: MjrRect, scn: MjvScene, con: mujoco._render.MjrContext) -> None: ...
def mjr_setBuffer(framebuffer: int | np.integer[Any], con: mujoco._render.MjrContext) -> None: ...
def mju_mat2Quat(quat: Array, mat: Array) -> None: ...
def mju_mulQuat(res: Array, quat1: Array, quat2: Array) -> None: ...
def mju_negQuat(res: Array, quat: Array) -> None: ...
def mju_quat2Mat(res: Array, quat: Array) -> None: ...
def mju_quatZ2Vec(quat: Array, vec: Array) -> None: ...
def mju_rotVecQuat(res: Array, vec: Array, quat: Array) -> None: ...
def mju_warningText(warning: int | np.integer[Any], info: int | np.integer[Any]) -> str: ...
def mjv_addGeoms(m: MjModel, d: MjData, opt: MjvOption, pert: MjvPerturb, catmask: int | np.integer[Any], scn: MjvScene) -> None: ...
def mjv_connector(geom: MjvGeom, type: int | np.integer[Any], width: float, from_: Array, to: Array) -> None: ...
def mjv_initGeom(geom: MjvGeom, type: int | np.integer[Any], size: Array, pos: Array, mat: Array, rgba: Array) -> None: ...
def mjv_updateScene(m: MjModel, d: MjData, opt: MjvOption, pert: MjvPerturb | None, cam: MjvCamera, catmask: int | np.integer[Any], scn: MjvScene) -> None: ...
def set_mju_user_warning(arg0: object) -> None: ...
