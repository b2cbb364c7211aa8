"""Entities of the kinds that other libraries get wrong, as small MJCF models."""

SECOND_TREE = """
<mujoco model="second_tree">
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="base" type="box" size=".1 .2 .05" pos=".05 0 0" mass="2"/>
      <body name="arm" pos="0 0 .1">
        <joint name="shoulder" axis="0 1 0"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 0 .4" mass=".5"/>
        <site name="hand" pos="0 0 .4" euler="10 20 30"/>
      </body>
    </body>
    <body name="other" pos="1 1 1">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <joint name="hinge" axis="0 0 1" pos=".1 0 0"/>
      <geom name="other" type="box" size=".1 .1 .1" pos=".2 .1 0" mass="1"/>
      <body name="tip" pos=".3 0 0">
        <joint name="tip" axis="0 1 0"/>
        <geom type="sphere" size=".05" pos=".1 0 0" mass=".2"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

MOCAP_ROOT = """
<mujoco model="mocap_root">
  <worldbody>
    <body name="handle" mocap="true" pos="0 0 1">
      <geom name="handle" type="sphere" size=".05" contype="0" conaffinity="0"/>
    </body>
    <body name="tool" pos=".5 0 1">
      <freejoint name="tool"/>
      <geom type="box" size=".1 .05 .02" pos=".05 .02 0" mass=".4"/>
      <site name="edge" pos=".1 0 0"/>
    </body>
  </worldbody>
</mujoco>
"""

FREE_NOT_FIRST = """
<mujoco model="free_not_first">
  <worldbody>
    <body name="lever" pos="0 0 .5">
      <joint name="lever" axis="0 1 0" range="-60 60"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".3"/>
    </body>
    <body name="ball" pos="0 .5 1">
      <freejoint name="ball"/>
      <geom type="ellipsoid" size=".1 .06 .04" pos=".02 0 .01" mass=".6"/>
      <body name="fin" pos=".1 0 0">
        <joint name="fin" axis="1 0 0"/>
        <geom type="box" size=".05 .01 .05" pos=".05 0 0" mass=".1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="fin" joint="fin" kp="3" kv=".1"/>
    <motor name="lever" joint="lever" gear="2"/>
  </actuator>
</mujoco>
"""

BALLS = """
<mujoco model="balls">
  <worldbody>
    <body name="post" pos="0 0 1">
      <geom type="box" size=".05 .05 .05" mass="1" contype="0" conaffinity="0"/>
      <body name="upper">
        <joint name="before" axis="0 0 1" armature=".01"/>
        <geom type="sphere" size=".02" mass=".1"/>
        <body name="swing">
          <joint name="shoulder" type="ball" damping=".05" armature=".01"/>
          <geom type="capsule" size=".03" fromto="0 0 0 0 .1 -.3" mass=".5"/>
          <body name="lower" pos="0 .1 -.3">
            <joint name="after" axis="1 0 0" armature=".01"/>
            <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2" mass=".2"/>
            <body name="end" pos="0 0 -.2">
              <joint name="wrist" type="ball" damping=".05" armature=".01"/>
              <geom type="box" size=".03 .02 .05" pos=".02 0 -.05" mass=".1"/>
              <site name="tip" pos="0 0 -.1"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

UNNAMED = """
<mujoco>
  <worldbody>
    <geom type="box" size=".1 .1 .1" pos="2 2 0"/>
    <site pos="0 0 2"/>
    <body pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .1 .05" mass="1"/>
      <body pos=".2 0 0">
        <joint axis="0 1 0"/>
        <joint axis="0 0 1"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".3"/>
        <site pos=".3 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

NESTED = """
<mujoco model="nested">
  <worldbody>
    <body name="left/arm" pos="0 .2 1">
      <joint name="left/arm/j1" axis="0 1 0"/>
      <geom name="left/arm/g" type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/>
    </body>
    <body name="right/arm" pos="0 -.2 1">
      <joint name="right/arm/j1" axis="0 1 0"/>
      <geom name="right/arm/g" type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/>
    </body>
  </worldbody>
</mujoco>
"""

TENDONS = """
<mujoco model="tendons">
  <worldbody>
    <site name="anchor" pos="0 .1 1"/>
    <body name="link" pos="0 0 1">
      <joint name="bend" axis="0 1 0"/>
      <geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3" mass=".3"/>
      <site name="end" pos=".05 .02 -.25"/>
      <body name="link2" pos="0 0 -.3">
        <joint name="bend2" axis="1 0 0"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3" mass=".2"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope"><site site="anchor"/><site site="end"/></spatial>
    <fixed name="sum"><joint joint="bend" coef="1"/><joint joint="bend2" coef="-2"/>
    </fixed>
  </tendon>
  <actuator>
    <position name="rope" tendon="rope" kp="20"/>
    <general name="lag" joint="bend2" dyntype="filter" dynprm=".1" gainprm="2"/>
  </actuator>
</mujoco>
"""

NEARLY_ALIGNED = """
<mujoco model="nearly_aligned">
  <worldbody>
    <body name="block" pos="0 0 1" quat=".8 .2 .1 .3">
      <joint name="turn" axis="0 1 .2"/>
      <inertial pos=".1 .02 0" quat="1 4e-7 0 0" mass="1" diaginertia=".01 .02 .03"/>
      <geom name="as_body" type="box" size=".1 .2 .3" quat="1 0 5e-7 0" mass="0"/>
      <geom name="as_turned" type="box" size=".1 .2 .3" quat="1 6e-7 0 0" pos="1 0 0"/>
      <site name="as_body" quat="1 0 0 3e-7"/>
      <body name="tip" pos=".5 0 0">
        <joint name="tip" axis="1 0 0"/>
        <inertial pos=".1 .02 .3" quat=".9 .1 .2 .3" mass="1"
                  diaginertia=".01 .02 .025"/>
        <geom name="as_inertia" type="box" size=".1 .2 .3" pos=".1 .02 .3"
              quat=".9 .1000004 .2 .3"/>
        <site name="as_inertia" pos=".2 0 0" quat=".9 .1 .2000004 .3"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
"""Turned from their body's axes, or its inertial ones, by less than MuJoCo notices."""

ENTITIES = {
    "second_tree": SECOND_TREE,
    "mocap_root": MOCAP_ROOT,
    "free_not_first": FREE_NOT_FIRST,
    "balls": BALLS,
    "unnamed": UNNAMED,
    "nested": NESTED,
    "tendons": TENDONS,
    "nearly_aligned": NEARLY_ALIGNED,
}
