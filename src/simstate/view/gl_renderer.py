"""MuJoCo's own renderer: the model's lights, materials, textures, floor and sky."""

# PyOpenGL comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
import weakref
from typing import Any

import mujoco
import numpy as np

from simstate.view.geometry import VISIBLE
from simstate.view.gl_shapes import add_shapes, add_surface
from simstate.view.one_world import on_host, write_parameters
from simstate.view.opengl import Context
from simstate.view.shot import SUN, Placed, Shot, Sky, floors, has_lights
from simstate.view.soft import soft_of
from simstate.world.worlds import worlds_of

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value
_STATIC = mujoco.mjtCatBit.mjCAT_STATIC.value
_DYNAMIC = mujoco.mjtCatBit.mjCAT_DYNAMIC.value
_DECOR = mujoco.mjtCatBit.mjCAT_DECOR.value
_DIRECTIONAL = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL.value
_SKYBOX = mujoco.mjtTexture.mjTEXTURE_SKYBOX.value
_GEOM = mujoco.mjtObj.mjOBJ_GEOM.value
_OFFSCREEN = mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value
_SKY = Sky()
"""Sky of models without a skybox."""
_FOG = np.array([*(_SKY.low / 255.0), 1.0], np.float32)
_HIDDEN = 5
_MOVED = ("xpos", "xipos", "geom_xpos", "site_xpos", "flexvert_xpos", "wrap_xpos")
"""Positions in MjData that MuJoCo draws from."""


class GlRenderer:
    """Renderer that uses OpenGL.

    Args:
        context: the OpenGL context.
        model: the compiled scene.
        shot: the first picture, which sets the size of the framebuffer and the floor.
    """

    name = "opengl"

    def __init__(self, context: Context, model: mujoco.MjModel, shot: Shot) -> None:
        self._context = context
        self._model = copy.copy(model)
        """A copy that holds the parameters of one world at a time."""
        self._data = mujoco.MjData(self._model)
        self._groups = model.geom_group.copy()
        self._floors = floors(model)
        self._radius = shot.radius
        self._several = len(shot.worlds) > 1 and not shot.on_one_ground
        self._has_sky = bool((model.tex_type == _SKYBOX).any())
        self._has_lights = has_lights(model)
        self._size = shot.eye.width, shot.eye.height
        self._prepare(shot)
        self._scene = mujoco.MjvScene(self._model, maxgeom=self._most(shot))
        self._soft = [soft for soft in soft_of(model) if soft.group in VISIBLE]
        self._first, self._rest = mujoco.MjvOption(), mujoco.MjvOption()
        for option in (self._first, self._rest):
            option.sitegroup[:] = 0
        # A scene holds the corners of one world's soft bodies; others add triangles.
        self._rest.flexgroup[:] = 0
        self._rest.skingroup[:] = 0
        self._nothing = mujoco.MjvPerturb()
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_USER
        with context.current():
            self._drawing: Any = mujoco.MjrContext(self._model, 150)
        weakref.finalize(self, context.discard, self._drawing)

    def fits(self, shot: Shot) -> bool:
        """Return True if this renderer can draw a shot as well as a new one."""
        several = len(shot.worlds) > 1 and not shot.on_one_ground
        return (
            self._size == (shot.eye.width, shot.eye.height)
            and self._several == several
            and 0.5 < shot.radius / self._radius < 2.0
            and self._scene.maxgeom >= self._most(shot)
        )

    def draw(self, shot: Shot) -> np.ndarray:
        """Return a picture with straight alpha, uint8; (height, width, 4)."""
        self._look(shot)
        for placed in shot.worlds:
            self._add(shot, placed, placed is shot.worlds[0])
        self._light(shot)
        colours = self._pixels(shot)
        if not shot.transparent and self._has_sky:
            colours[..., 3] = 255
            return colours
        exact = self._alpha(shot, colours)
        flat = colours.reshape(-1, 4)
        if shot.transparent:
            flat[:, :3] = np.minimum(flat[:, :3] / np.maximum(exact, 1e-3), 255.0)
            flat[:, 3] = np.round(255.0 * exact[:, 0])
            return colours
        behind = np.flatnonzero(exact[:, 0] < 1.0)
        seen = _SKY.at(shot.eye.rays(behind))
        flat[behind, :3] = np.minimum(
            flat[behind, :3] + (1.0 - exact[behind]) * seen + 0.5, 255.0
        )
        flat[:, 3] = 255
        return colours

    def _prepare(self, shot: Shot) -> None:
        """Set the options of the model that determine the framebuffer and the floor."""
        model = self._model
        width, height = self._size
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        model.stat.extent = shot.radius
        model.stat.center[:] = shot.centre
        model.vis.map.zfar = 50.0
        self._lay_floors()
        if self._context.is_software:
            is_small = max(width, height) <= 1024 and len(shot.worlds) == 1
            quality = model.vis.quality
            quality.shadowsize = min(quality.shadowsize, 1024 if is_small else 2048)

    def _lay_floors(self) -> None:
        """Make floors infinite under several worlds, with fewer squares.

        MuJoCo draws an infinite plane as 40,000 squares, because lights are computed at
        their corners; a sun lights all of them alike. The display list has the size of
        the plane when the context is created. The plane is infinite afterwards, so it
        moves with the camera, and its texture repeats more often, with equal period.
        """
        model = self._model
        self._endless: list[int] = []
        self._repeats: dict[int, np.ndarray] = {}
        for geom in self._floors.tolist():
            if not self._several and model.geom_size[geom, :2].all():
                continue
            self._endless.append(geom)
            model.geom_size[geom, :2] = 0.0
            if not self._has_lights:
                material = int(model.geom_matid[geom])
                repeat = np.ones(2) if material < 0 else model.mat_texrepeat[material]
                period = 2.0 / np.maximum(repeat, 1e-3)
                half = period * np.ceil(1.05 * 50.0 * self._radius / period)
                model.geom_size[geom] = [*half, half.max() / 16.0]
                self._repeats[geom] = half * repeat

    @staticmethod
    def _most(shot: Shot) -> int:
        model = shot.worlds[0].world.model
        faces = model.nskinface + model.nflexelem + model.nflexshelldata
        worlds = len(shot.worlds)
        shapes = sum(max(len(one.shapes), 1) for one in shot.worlds)
        return worlds * (model.ngeom + faces + 100 * model.ntendon) + 400 * shapes + 100

    def _look(self, shot: Shot) -> None:
        """Move both of the scene's cameras to the camera of the shot."""
        eye, scene = shot.eye, self._scene
        rot_wc = eye.rot_wc
        near = 0.01 * self._radius
        far = max(50.0 * self._radius, 2.0 * float(np.linalg.norm(eye.position)))
        top = near * np.tan(eye.fovy / 2.0)
        for camera in scene.camera:
            camera.pos[:] = eye.position
            camera.forward[:], camera.up[:] = rot_wc[:, 2], -rot_wc[:, 1]
            camera.frustum_near, camera.frustum_far = near, far
            camera.frustum_bottom, camera.frustum_top = -top, top
            camera.frustum_center = camera.frustum_width = 0.0

    def _add(self, shot: Shot, placed: Placed, first: bool) -> None:
        """Add the geoms of a world and its overlays."""
        self._load(placed, floor=first and not shot.transparent)
        model, data, scene = self._model, self._data, self._scene
        if first:
            everything = _STATIC | _DYNAMIC
            mujoco.mjv_updateScene(
                model, data, self._first, None, self._camera, everything, scene
            )
            self._repeat_textures()
        else:
            kinds = _DYNAMIC if shot.on_one_ground else _STATIC | _DYNAMIC
            mujoco.mjv_addGeoms(model, data, self._rest, self._nothing, kinds, scene)
            for soft in self._soft:
                corners = soft.corners(placed.world)[soft.faces] + placed.offset
                add_surface(scene, corners, soft.colour)
        add_shapes(scene, placed.shapes, placed.offset, shot.size)

    def _repeat_textures(self) -> None:
        scene = self._scene
        for k in range(scene.ngeom):
            geom = scene.geoms[k]
            if geom.objtype == _GEOM and geom.objid in self._repeats:
                geom.texrepeat[:] = self._repeats[geom.objid]

    def _load(self, placed: Placed, floor: bool) -> None:
        """Set the scratch model and data to the state of a world."""
        model, data = self._model, self._data
        parts = worlds_of(placed.world.worlds)
        write_parameters(model, parts, placed.world.world)
        model.geom_group[:] = self._groups
        model.geom_size[self._endless, :2] = 0.0
        if not floor:
            model.geom_group[self._floors] = _HIDDEN
        row = np.ascontiguousarray(on_host(parts.rows.read()[placed.world.world]))
        mujoco.mj_setState(model, data, row, _STATE)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        mujoco.mj_flex(model, data)
        mujoco.mj_tendon(model, data)
        for name in _MOVED:
            values = getattr(data, name)
            if values.size:
                values.reshape(-1, 3)[:] += placed.offset

    def _light(self, shot: Shot) -> None:
        """Add lights if the model has none, and centre shadow maps on the scene."""
        scene = self._scene
        if not self._has_lights:
            self._add_sun()
        reach = 1.3 * shot.radius
        self._drawing.shadowClip = reach
        for k in range(scene.nlight):
            light = scene.lights[k]
            if light.type == _DIRECTIONAL and not light.headlight:
                light.pos[:] = shot.centre - 2.0 * reach * np.asarray(light.dir)

    def _add_sun(self) -> None:
        """Light the scene from above, with some ambient light."""
        scene = self._scene
        head, sun = scene.lights[0], scene.lights[1]
        scene.nlight = 2
        for light in (head, sun):
            light.id, light.texid, light.type = -1, -1, _DIRECTIONAL
        head.headlight, head.castshadow = 1, 0
        head.ambient[:], head.diffuse[:], head.specular[:] = 0.3, 0.3, 0.0
        head.pos[:], head.dir[:] = scene.camera[0].pos, scene.camera[0].forward
        sun.headlight, sun.castshadow = 0, 1
        sun.ambient[:], sun.diffuse[:], sun.specular[:] = 0.0, 0.6, 0.3
        sun.dir[:] = SUN

    def _pixels(self, shot: Shot) -> np.ndarray:
        """Render the scene with premultiplied alpha, uint8; (height, width, 4)."""
        from OpenGL import GL

        width, height = self._size
        drawing, scene = self._drawing, self._scene
        has_fog = not (self._has_sky or shot.transparent)
        scene.flags[mujoco.mjtRndFlag.mjRND_FOG] = has_fog
        scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = not shot.transparent
        with self._context.current():
            mujoco.mjr_setBuffer(_OFFSCREEN, drawing)
            GL.glFogf(GL.GL_FOG_START, 6.0 * shot.radius)
            GL.glFogf(GL.GL_FOG_END, 30.0 * shot.radius)
            drawing.fogRGBA[:] = _FOG
            GL.glFogfv(GL.GL_FOG_COLOR, _FOG)
            area = mujoco.MjrRect(0, 0, width, height)
            mujoco.mjr_render(area, scene, drawing)
            if drawing.offSamples:
                GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, drawing.offFBO)
                GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, drawing.offFBO_r)
                box = 0, 0, width, height
                GL.glBlitFramebuffer(*box, *box, GL.GL_COLOR_BUFFER_BIT, GL.GL_NEAREST)
                GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, drawing.offFBO_r)
            GL.glPixelStorei(GL.GL_PACK_ALIGNMENT, 1)
            colours = np.empty((height, width, 4), np.uint8)
            GL.glReadPixels(
                0, 0, width, height, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, colours
            )
        return np.ascontiguousarray(colours[::-1])

    def _alpha(self, shot: Shot, colours: np.ndarray) -> np.ndarray:
        """Return the opacity of the pixels of a picture, 0 … 1; (height · width, 1).

        OpenGL's alpha is wrong where a translucent surface has nothing behind it. The
        same scene in front of a white wall shows how much of the wall is visible.
        """
        scene = self._scene
        geoms = scene.geoms
        if all(geoms[k].rgba[3] >= 0.995 for k in range(scene.ngeom)):
            return colours.reshape(-1, 4)[:, 3:] / 255.0
        eye = shot.eye
        wall = geoms[scene.ngeom]
        away = 0.9 * scene.camera[0].frustum_far
        across = np.full(3, away)
        position = eye.position + away * eye.rot_wc[:, 2]
        towards = np.stack([eye.rot_wc[:, 0], -eye.rot_wc[:, 1], -eye.rot_wc[:, 2]], 1)
        kind = mujoco.mjtGeom.mjGEOM_PLANE.value
        white = np.ones(4, np.float32)
        mujoco.mjv_initGeom(wall, kind, across, position, towards.reshape(9), white)
        wall.category, wall.emission, wall.dataid = _DECOR, 1.0, -1
        scene.ngeom += 1
        on_white = self._pixels(shot)
        scene.ngeom -= 1
        extra = on_white[..., :3].astype(np.float64) - colours[..., :3]
        return np.clip(1.0 - extra.mean(2) / 255.0, 0.0, 1.0).reshape(-1, 1)
