"""Small models, one for each MJCF element or attribute that can name a body, or that
applies to a whole model.

TIES maps names to files with an element that names the world body. SETTINGS maps the
attributes that apply to a whole model to two files: with the attribute, and without it.
"""

from __future__ import annotations

import struct
from pathlib import Path

_BODIES = """
<body name="arm" pos=".3 .1 .6" quat=".8 .6 0 0">
  <joint name="hinge" axis="0 1 .5" damping=".2"/>
  <geom name="rod" type="capsule" size=".04" fromto="0 0 0 .3 .1 0" mass="1.5"/>
  <site name="tip" pos=".3 .1 0"/>
  <body name="hand" pos=".3 .1 .05"><joint name="wrist" axis="1 0 0" range="-1 1"/>
    <geom name="palm" type="box" size=".05 .03 .02" pos=".02 0 .01" mass=".4"/></body>
</body>
<body name="box" pos="-.4 .2 .5" quat=".6 0 .8 0"><freejoint name="free"/>
  <geom name="cube" type="box" size=".1 .08 .06" pos=".01 .02 0" mass="2"/></body>
<geom name="post" type="box" size=".05 .05 .2" pos="1 1 .2"/>
<site name="mark" pos=".1 .2 .3" quat=".6 .8 0 0"/>
"""


def _model(
    extra: str = "", worldbody: str = "", head: str = "", bodies: str = _BODIES
) -> str:
    return (
        f"<mujoco>{head}<worldbody>{bodies}{worldbody}</worldbody>{extra}"
        "<actuator><position name='servo' joint='hinge' kp='7' gear='3'/></actuator>"
        "</mujoco>"
    )


def _equality(text: str) -> str:
    return _model(f"<equality>{text}</equality>")


def _sensor(text: str) -> str:
    return _model(f"<sensor>{text}<jointpos joint='wrist'/></sensor>")


def _frame_sensor(kind: str, first: str, reference: str = "") -> str:
    return _sensor(f"<{kind} objtype='body' objname='{first}' {reference}/>")


_TO_WORLD = "reftype='xbody' refname='world'"
_CLOTH = """<flexcomp name="cloth" type="grid" dim="2" count="5 4 1" spacing=".1 .1 .1"
  pos="0 .3 1" radius=".01" mass=".5">{}<edge equality="true" damping=".1"/>
  </flexcomp>"""
_JELLY = """<flexcomp name="jelly" type="grid" dim="3" count="4 4 3"
  spacing=".05 .05 .05" pos="0 -1 1" mass="1" dof="trilinear">
  <pin id="0 1"/><elasticity young="5e3" poisson=".2" damping=".01"/></flexcomp>"""
_SKIN = """<skin name="sleeve" vertex="0 0 0  .1 0 0  0 .1 0  .1 .1 .1"
  face="0 1 2 1 3 2">
  <bone body="world" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1"
    vertweight="1 .5"/>
  <bone body="hand" bindpos=".6 .2 .6" bindquat=".8 .6 0 0" vertid="1 2 3"
    vertweight=".5 1 1"/></skin>"""

TIES: dict[str, str] = {
    "weld body2": _equality("<weld name='w' body1='box' body2='world'/>"),
    "weld body1": _equality("<weld name='w' body1='world' body2='box'/>"),
    "weld body2 left out": _equality("<weld name='w' body1='box'/>"),
    "weld relpose": _equality(
        "<weld body1='world' body2='box' relpose='-.3 .2 .6 .6 .8 0 0' "
        "anchor='.1 0 .2'/>"
    ),
    "weld relpose of the same attitude": _equality(
        "<weld body1='world' body2='box' relpose='-.3 .2 .6 1 0 0 0'/>"
    ),
    "weld relpose of world": _equality(
        "<weld body1='box' body2='world' relpose='.1 .2 -.5 .6 0 .8 0' "
        "anchor='.1 0 .2' torquescale='.7'/>"
    ),
    "connect body2": _equality("<connect body1='box' body2='world' anchor='.1 0 .2'/>"),
    "connect body1": _equality("<connect body1='world' body2='box' anchor='.1 0 .2'/>"),
    "weld site": _equality("<weld site1='mark' site2='tip'/>"),
    "camera target": _model(
        worldbody="<camera name='eye' pos='2 1 1' mode='targetbody' target='world'/>"
    ),
    "light target": _model(
        worldbody="<light name='lamp' pos='2 1 3' mode='targetbodycom' target='world'/>"
    ),
    "exclude": _model("<contact><exclude body1='box' body2='world'/></contact>"),
    "pair": _model("<contact><pair geom1='post' geom2='cube' gap='.01'/></contact>"),
    "tuple": _model(
        "<custom><tuple name='t'><element objtype='xbody' objname='world' prm='.3'/>"
        "<element objtype='body' objname='hand' prm='.7'/>"
        "<element objtype='geom' objname='post'/></tuple></custom>"
    ),
    "adhesion": _model(
        "<actuator><adhesion name='glue' body='world' ctrlrange='0 2' gain='3'/>"
        "<motor name='motor' joint='wrist' gear='4'/></actuator>"
    ),
    "slider crank": _model(
        "<actuator><general cranksite='tip' slidersite='mark' cranklength='.9' "
        "gear='2'/></actuator>"
    ),
    "reference site": _model(
        "<actuator><position site='tip' refsite='mark' gear='1 .2 0 0 0 .3' kp='5'/>"
        "</actuator>"
    ),
    "tendon": _model(
        "<tendon><spatial name='rope' limited='true' range='0 2'><site site='mark'/>"
        "<site site='tip'/></spatial></tendon>"
    ),
    "flex pinned": _model(worldbody=_CLOTH.format('<pin id="0 3 16 19"/>')),
    "flex pinned grid": _model(worldbody=_CLOTH.format('<pin gridrange="0 0 0 3"/>')),
    "flex rigid": _model(
        worldbody="""<flexcomp name="plate" type="grid" dim="2" count="3 3 1"
          spacing=".1 .1 .1" pos="2 0 1" rigid="true" radius=".01"/>"""
    ),
    "flex node": _model(
        worldbody=_JELLY, head='<option integrator="discrete" timestep=".001"/>'
    ),
    "skin bone": _model(f"<deformable>{_SKIN}</deformable>"),
    "subtreecom": _sensor("<subtreecom body='world'/>"),
    "subtreelinvel": _sensor("<subtreelinvel body='world'/>"),
    "subtreeangmom": _sensor("<subtreeangmom body='world'/>"),
    "contact of world": _sensor("<contact body1='world' reduce='maxforce' num='2'/>"),
    "contact with world": _sensor(
        "<contact body1='box' body2='world' data='found force'/>"
    ),
    "contact subtrees": _sensor(
        "<contact subtree1='world' subtree2='box' reduce='netforce'/>"
    ),
    "distance": _sensor("<distance body1='world' body2='box' cutoff='3'/>"),
    "normal": _sensor("<normal body1='box' body2='world' cutoff='3'/>"),
    "fromto": _sensor("<fromto geom1='cube' body2='world' cutoff='3'/>"),
    **{
        f"{kind} of world": _frame_sensor(kind, "world")
        for kind in ("framepos", "framequat", "framexaxis", "framelinvel",
                     "frameangvel")
    },
    **{
        f"{kind} from world": _frame_sensor(kind, "hand", _TO_WORLD)
        for kind in (
            "framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis",
            "framelinvel", "frameangvel",
        )
    },
    "framelinacc of world": _frame_sensor("framelinacc", "world"),
    "frameangacc of world": _frame_sensor("frameangacc", "world"),
}  # fmt: skip
"""Models with an element that names the world body or is attached to it."""

_TETRA = """<asset><mesh name="wedge" vertex="0 0 0 .3 0 0 0 .2 0 0 0 .1 .25 .15 .02"/>
</asset>"""
_FITTED = """<body name="lump" pos=".3 .1 .6"><joint name="hinge" axis="0 1 .5"/>
<joint name="wrist" axis="1 0 0"/><geom type="box" mesh="wedge"/></body>"""
_MUSCLE = """<tendon><spatial name="m" width=".01"><site site="mark"/><site site="tip"/>
</spatial></tendon><actuator><muscle name="biceps" tendon="m" force="20"/></actuator>"""
_LIMITED = _MUSCLE.replace('width=".01"', 'width=".01" range=".2 .9"')
_LIMB = """<site name="mark" pos=".1 .2 .3"/><body name="arm" pos=".3 .1 .6">
<joint name="hinge" axis="0 1 .5" range="-60 80" damping="3" armature=".02"/>
<geom name="rod" type="capsule" size=".04" fromto="0 0 0 .3 .1 0" mass="1.5"/>
<site name="tip" pos=".3 .1 0"/></body>"""


def _compiler(attribute: str, **parts: str) -> tuple[str, str]:
    """Return the model with an attribute of <compiler>, and without it."""
    head = parts.pop("head", "")
    return (
        _model(head=f"<compiler {attribute}/>{head}", **parts),
        _model(head=head, **parts),
    )


def _length_range(attribute: str) -> tuple[str, str]:
    """Return the model with an attribute of <lengthrange>, and without it."""
    stated = f"<compiler><lengthrange {attribute}/></compiler>"
    return (
        _model(_MUSCLE, head=stated, bodies=_LIMB),
        _model(_MUSCLE, bodies=_LIMB),
    )


def _head(text: str) -> tuple[str, str]:
    return _model(head=text), _model()


def _odd(inertia: str) -> str:
    """Return the bodies, and one whose moments of inertia are stated."""
    return f"""{_BODIES}<body name="odd" pos="3 0 1"><joint/><inertial mass="1"
      pos="0 .1 0" diaginertia="{inertia}"/></body>"""


SETTINGS: dict[str, tuple[str, str]] = {
    "boundmass": _compiler('boundmass=".9"'),
    "boundinertia": _compiler('boundinertia=".02"'),
    "settotalmass": _compiler('settotalmass="7"'),
    "balanceinertia": (
        _model(head='<compiler balanceinertia="true"/>', bodies=_odd(".1 .1 .5")),
        _model(bodies=_odd(".1 .1 .1")),
    ),
    "angle": _compiler('angle="radian"'),
    "fitaabb": _compiler('fitaabb="true"', head=_TETRA, bodies=_FITTED),
    "eulerseq": _compiler(
        'eulerseq="zyx"',
        worldbody="<geom size='.1 .2 .3' type='box' euler='20 30 40'/>",
    ),
    "discardvisual": _compiler(
        'discardvisual="true"',
        bodies=_BODIES.replace('name="post"', "contype='0' conaffinity='0'"),
    ),
    "fusestatic": _compiler(
        'fusestatic="true"',
        worldbody="""<body pos="2 1 0"><geom size=".2" pos=".1 0 0"/>
          <body pos=".1 .1 .5"><geom size=".1"/></body></body>""",
    ),
    "inertiafromgeom": _compiler(
        'inertiafromgeom="true"',
        worldbody="""<body name="odd" pos="3 0 1"><joint/><inertial mass="1"
          pos="0 .1 0" diaginertia=".1 .1 .1"/><geom size=".2"/></body>""",
    ),
    "inertiagrouprange": _compiler(
        'inertiagrouprange="0 2"',
        worldbody="""<body name="odd" pos="3 0 1"><joint/><geom size=".2" group="1"/>
          <geom size=".1" pos=".4 0 0" group="3"/></body>""",
    ),
    "alignfree": _compiler('alignfree="true"'),
    "lengthrange mode": (
        _model(head="<compiler><lengthrange mode='all' uselimit='true'/></compiler>",
               bodies=_LIMB),
        _model(bodies=_LIMB),
    ),
    "lengthrange mode none": _length_range('mode="none"'),
    "lengthrange uselimit": (
        _model(_LIMITED, head="<compiler><lengthrange uselimit='true'/></compiler>",
               bodies=_LIMB),
        _model(_LIMITED, bodies=_LIMB),
    ),
    "lengthrange accel": _length_range('accel="35"'),
    "lengthrange maxforce": _length_range('maxforce=".4" tolrange=".5"'),
    "lengthrange timeconst": _length_range('timeconst=".6"'),
    "lengthrange timestep": _length_range('timestep=".004"'),
    "lengthrange inttotal": _length_range('inttotal="7" interval="1.5"'),
    "timestep": _head('<option timestep=".003"/>'),
    "gravity": _head('<option gravity="1 2 -3"/>'),
    "wind": _head('<option wind="1 2 3" density="1.2" viscosity=".01"/>'),
    "magnetic": _head('<option magnetic=".1 .2 .3"/>'),
    "integrator": _head('<option integrator="implicitfast"/>'),
    "cone": _head('<option cone="elliptic" impratio="4"/>'),
    "solver": _head('<option solver="CG" iterations="7" tolerance="1e-6"/>'),
    "override": _head('<option o_margin=".02" o_solref=".03 .9"/>'),
    "flag": _head('<option><flag gravity="disable" energy="enable"/></option>'),
    "actuatorgroupdisable": _head('<option actuatorgroupdisable="2 5"/>'),
    "memory": _head('<size memory="3M"/>'),
    "nuserdata": _head('<size nuserdata="5"/>'),
    "nuser": _head('<size nuser_body="2" nuser_geom="3" nuser_sensor="1"/>'),
    "statistic": _head('<statistic meansize=".3" extent="4" center="1 2 3"/>'),
    "visual": _head('<visual><map znear=".02"/><global offwidth="800"/></visual>'),
    "default": _head('<default><geom density="700" friction=".7"/></default>'),
    "numeric": _head('<custom><numeric name="n" data="1 2 3"/></custom>'),
    "text": _head('<custom><text name="t" data="written"/></custom>'),
    "keyframe": (
        _model("<keyframe><key name='k' qpos='.1 .2 1 2 3 .6 .8 0 0' ctrl='.4'/>"
               "<key name='l' qvel='1 2 3 4 5 6 7 8'/></keyframe>"),
        _model(),
    ),
    "texture": _head(
        '<asset><texture type="skybox" builtin="gradient" rgb1=".1 .2 .3" width="16" '
        'height="16"/></asset>'
    ),
}  # fmt: skip
"""Models with an attribute that applies to a whole model, and the same without it."""


def write_skin(path: Path) -> str:
    """Write a skin with a bone on the world to a .skn file; return a model of it."""
    vertices = [0, 0, 0, 0.1, 0, 0, 0, 0.1, 0, 0.1, 0.1, 0.1]
    data = struct.pack("4i12f", 4, 0, 2, 2, *vertices)
    data += struct.pack("6i", 0, 1, 2, 1, 3, 2)
    data += struct.pack("40s7fi", b"hand", 0.6, 0.2, 0.6, 0.8, 0.6, 0, 0, 3)
    data += struct.pack("3i3f", 1, 2, 3, 0.3, 1, 1)
    data += struct.pack("40s7fi", b"world", 0, 0, 0, 1, 0, 0, 0, 2)
    data += struct.pack("2i2f", 0, 1, 1, 0.7)
    path.write_bytes(data)
    return _model(f"<deformable><skin name='sleeve' file='{path}'/></deformable>")
