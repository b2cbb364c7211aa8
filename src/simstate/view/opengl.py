"""OpenGL without a window: choice of the library, and the process's context."""

# MuJoCo's context modules and PyOpenGL come without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import atexit
import ctypes.util
import importlib
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

REMEDY = "Debian and Ubuntu: apt install libosmesa6"
"""Remedy if MuJoCo's renderer fails on a machine without a graphics card."""
_OFF = ("disable", "disabled", "off", "false", "0")
_LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
_PROBE = """
import importlib, sys
import mujoco
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(16, 16)
context.make_current()
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
)
drawing = mujoco.MjrContext(model, 150)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, drawing)
sys.exit(drawing.currentBuffer != mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value)
"""
_PROBE_SECONDS = 60.0


@cache
def backend() -> str | None:
    """Return the module of MuJoCo that can create a context, such as "egl", or None.

    A library may abort or hang if it finds no device, so each candidate is tried in a
    separate process first. `MUJOCO_GL` names the only candidate, or "disable".
    """
    return next((name for name in _candidates() if _works(name)), None)


def _candidates() -> list[str]:
    """Return the modules to try, the best first."""
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    if wanted in _OFF:
        return []
    if platform.system() == "Darwin":
        return ["cgl"]
    if platform.system() != "Linux":
        return ["glfw"]
    if wanted in _LIBRARIES:
        return [wanted]
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    window = ["glfw"] if has_display else []
    if wanted in ("glfw", "glx"):
        return window
    found = [n for n, file in _LIBRARIES.items() if ctypes.util.find_library(file)]
    return [name for name in found + window if _is_compatible(name)]


def _is_compatible(name: str) -> bool:
    """Return False if PyOpenGL, which binds one library only, has bound another."""
    requested = os.environ.get("PYOPENGL_PLATFORM", "").lower()
    loaded = getattr(sys.modules.get("OpenGL.platform"), "PLATFORM", None)
    kind = type(loaded).__name__.lower()
    fits = loaded is None or name == "glfw" or kind.startswith(name)
    return fits and (not requested or name in ("glfw", requested))


def _works(name: str) -> bool:
    """Return True if a separate process can create a framebuffer with a module."""
    if not sys.executable:
        return False
    env = {**os.environ, "MUJOCO_GL": name, "PYTHONWARNINGS": "ignore"}
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, name],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=_PROBE_SECONDS, check=False,
        )  # fmt: skip
        return done.returncode == 0
    return False


class Context:
    """The process's OpenGL context; threads use it one at a time.

    Args:
        name: the module of MuJoCo that creates it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._module: Any = importlib.import_module(f"mujoco.{name}")
        self._lock = threading.RLock()
        self._depth = 0
        self._discarded: list[Any] = []
        self._context: Any = self._module.GLContext(16, 16)
        with self.current():
            from OpenGL import GL

            self.is_software = _is_software(GL.glGetString(GL.GL_RENDERER))
            """True if OpenGL renders on the CPU."""
        atexit.register(self._close)  # before EGL's handler, which was registered first

    @contextmanager
    def current(self) -> Generator[None]:
        """Context manager that makes the context current in this thread."""
        with self._lock:
            if not self._depth:
                self._context.make_current()
            self._depth += 1
            try:
                while self._discarded:
                    self._discarded.pop().free()
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    _release(self.name, self._module, self._context)

    def discard(self, drawing: Any) -> None:
        """Free an `MjrContext` the next time this context is current.

        Garbage collection may run at any time, even while another thread draws.
        """
        self._discarded.append(drawing)

    def _close(self) -> None:
        with suppress(Exception), self.current():
            pass
        with suppress(Exception):
            self._context.free()


def _release(name: str, module: Any, context: Any) -> None:
    """Release the context of this thread, so that another one may use it."""
    if name == "egl":
        egl = module.EGL
        nothing = egl.EGL_NO_SURFACE, egl.EGL_NO_SURFACE, egl.EGL_NO_CONTEXT
        egl.eglMakeCurrent(module.EGL_DISPLAY, *nothing)
    elif name == "osmesa":
        module.osmesa.OSMesaMakeCurrent(None, None, module.GL.GL_FLOAT, 0, 0)
    elif name == "glfw":
        module.glfw.make_context_current(None)
    else:
        module.cgl.CGLUnlockContext(context._context)
        module.cgl.CGLSetCurrentContext(None)


def _is_software(renderer: bytes | None) -> bool:
    name = (renderer or b"").lower()
    return any(kind in name for kind in (b"llvmpipe", b"softpipe", b"swrast"))


_contexts: list[Context | None] = []


def context() -> Context | None:
    """Return the process's context, created on first use; None without OpenGL."""
    if not _contexts:
        name = backend()
        made: Context | None = None
        if name is not None:
            with suppress(Exception):  # it worked in the other process, not in this one
                made = Context(name)
        _contexts.append(made)
    return _contexts[0]


def _forget() -> None:
    """Disable OpenGL in a forked process, which has no copies of its threads."""
    if _contexts:
        _contexts[0] = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
