"""Renderers: the choice between MuJoCo's own, by OpenGL, and the one by NumPy."""

from __future__ import annotations

from typing import get_args
from weakref import WeakKeyDictionary

from simstate.base.errors import InvalidInputError, unknown_name, warn
from simstate.view import opengl
from simstate.view.gl_renderer import GlRenderer
from simstate.view.raster_renderer import RasterRenderer
from simstate.view.shot import RendererName, Shot
from simstate.world.worlds import Worlds, worlds_of

NOTE = (
    "Pictures are drawn without OpenGL, more slowly and without the model's lights and "
    f"reflections. MuJoCo's own renderer needs EGL or OSMesa ({opengl.REMEDY})."
)
_kept: WeakKeyDictionary[Worlds, GlRenderer | RasterRenderer] = WeakKeyDictionary()
_noted: set[str] = set()


def check_renderer(name: str) -> None:
    """Raise unless a renderer of this name can be used here."""
    if name not in get_args(RendererName):
        raise unknown_name("renderer", name, get_args(RendererName))
    if name == "opengl" and opengl.context() is None:
        raise InvalidInputError(
            f"No OpenGL library works here. {opengl.REMEDY}; or use renderer='auto'.",
            name="renderer",
        )


def renderer_for(name: RendererName, shot: Shot) -> GlRenderer | RasterRenderer:
    """A renderer of a shot: the last one of its worlds if it fits, else a new one."""
    worlds = worlds_of(shot.worlds[0].world.worlds)
    context = None if name == "software" else opengl.context()
    kind = RasterRenderer if context is None else GlRenderer
    kept = _kept.get(worlds)
    if isinstance(kept, kind) and kept.fits(shot):
        return kept
    if context is not None:
        made = GlRenderer(context, worlds.model, shot)
    else:
        if name == "auto" and NOTE not in _noted:
            _noted.add(NOTE)
            warn(NOTE)
        made = RasterRenderer(shot)
    _kept[worlds] = made
    return made
