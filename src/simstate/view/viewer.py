"""Viewer: a page in the browser that shows and controls a simulation."""

# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

from __future__ import annotations

import contextlib
import html
import io
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from simstate.base.closeable import Closing
from simstate.entity.explanation import explain
from simstate.view.answer_label import body_label, shape_label
from simstate.view.course import Course
from simstate.view.demonstration import HandDemonstration
from simstate.view.explain_view import body_text
from simstate.view.geometry import Mesh
from simstate.view.mouse_drag import MouseDrag, Pull, on_body
from simstate.view.one_world import OneWorld, current
from simstate.view.overlays import OVERLAYS
from simstate.view.panel import Panel
from simstate.view.picture import TRAIL, Picture
from simstate.view.server import start_server
from simstate.view.session import Session
from simstate.view.viewer_actions import Acting, writable_quantities
from simstate.world.worlds import worlds_of

FPS = 30.0
"""Maximum number of frames per second."""
SHARE = 0.035
"""Maximum fraction of a script's time for frames of `sync`, including sending."""
PAUSE = 0.02
"""Waiting time when idle [s]."""


class Viewer(Closing):
    """A page in the browser with worlds of a simulation, at `url`.

    `run()` plays the simulation until the viewer is closed. A script that takes the
    steps itself calls `sync()` after each of them. Call both in the thread of the
    simulation, which also carries out the requests of clients.

    Args:
        course: the course to show.
        host: address of the interface to listen on.
        port: the first port to try; 0: any free port.
        token: the token that the address must contain, of letters, digits, "-" and
            "_"; None: a random one.
        worlds: initial number of worlds shown.
        playing: True to start playing, False to start paused.
        controls: True if clients can pause, step and reset.
        reload: returns the course of the reloaded model; None: reloading is disabled.
    """

    def __init__(
        self,
        course: Course,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        token: str | None = None,
        worlds: int = 1,
        playing: bool = True,
        controls: bool = True,
        reload: Callable[[], Course] | None = None,
    ) -> None:
        self._server, self.url = start_server(host, port, token, "simstate")
        self.session = Session(course, self._take_step, playing)
        """The session that is played."""
        self._worlds_at_first, self._controls, self._reload = worlds, controls, reload
        self._closed = False
        self._next = 0.0
        self._served_before = 0.0
        self._frames = 0
        self._live: tuple[int, Callable[[OneWorld], str]] | None = None
        """The world and the answer that is updated with it."""
        self.demonstration: HandDemonstration | None = None
        self._puller: int | None = None
        """The client that drags something."""
        self._open(course)

        async def left(client: Any) -> None:
            self.session.ask(lambda: self._left(client.client_id), is_kept=True)

        self._server.on_client_disconnect(left)

    # For the user.

    @property
    def is_closed(self) -> bool:
        """True if `close` was called."""
        return self._closed

    @property
    def num_clients(self) -> int:
        """Number of connected browsers."""
        return len(self._server.get_clients())

    def run(self, seconds: float | None = None) -> None:
        """Play until the viewer is closed, or for a time [s]."""
        self.session.is_scripted = False
        end = None if seconds is None else time.perf_counter() + seconds
        while not self._closed and (end is None or time.perf_counter() < end):
            asked = self._answer()
            self.session.advance()
            if asked or time.perf_counter() >= self._next:
                self._next = time.perf_counter() + 1.0 / FPS
                self.show()
            time.sleep(max(0.0, min(PAUSE, self._next - time.perf_counter())))

    def sync(self) -> None:
        """Show the current state if a frame is due; block while a client has paused.

        A script continues when the last client disconnects. Frames take less than a
        twentieth of the time, and none without clients.
        """
        session, pull = self.session, self.drag.pull
        session.is_scripted = True
        self.picture.marks.note(session.course.worlds)
        if time.perf_counter() < self._next and session.goes_on and pull is None:
            return
        self._answer()
        while not self._closed and not session.lets_pass():
            if self._answer() or time.perf_counter() >= self._next:
                self._next = time.perf_counter() + 0.2
                self.show()
            time.sleep(PAUSE)
        if time.perf_counter() >= self._next:
            # The server sends a frame after `show`: its time is counted with the next
            # frame.
            begin, served = time.perf_counter(), self._served()
            self.show()
            cost = time.perf_counter() - begin + served - self._served_before
            self._served_before = served
            self._next = time.perf_counter() + max(1.0 / FPS, cost / SHARE)
        self.drag.apply(self.picture.seen())

    def show(self) -> None:
        """Draw the current state now."""
        if self._closed or (self._frames and not self.num_clients):
            return
        self._frames += 1
        worlds = self.session.course.worlds
        with current(worlds_of(worlds)), self._server.atomic():
            self.picture.update()
            now = self.session.course.now(self.picture.world)
            for plot in self.panel.plots:
                plot.sample(self.picture.world, now)
                if self._frames % 3 == 0:
                    plot.draw()
            if self._frames % 3 == 1:
                self.panel.show_state(
                    self._status(now), self.picture.world, self.session.course.at
                )
                self._refresh()
        self._server.flush()

    def close(self) -> None:
        """Stop the server; the simulation is unchanged."""
        if not self._closed:
            self._closed = True
            self.drag.set(None)
            self._end_demonstration()
            with contextlib.redirect_stdout(io.StringIO()):
                self._server.stop()

    def __repr__(self) -> str:
        return f"Viewer({self.url!r})"

    def _repr_html_(self) -> str:
        """Return the page as an iframe, for a notebook."""
        src = html.escape(self.url, quote=True)
        return (
            f'<iframe src="{src}" width="100%" height="600" style="border:0"></iframe>'
        )

    # Inner parts.

    def _open(self, course: Course) -> None:
        """Show a course instead of the previous one."""
        server = self._server
        self._end_demonstration()
        server.scene.reset()
        server.gui.reset()
        server.scene.set_up_direction("+z")
        self.drag = MouseDrag(course.worlds)
        """The current mouse drag."""
        with current(worlds_of(course.worlds)):
            self.picture = Picture(
                server, course, self._worlds_at_first, self._listen,
                self._clicked,
                {"pull": self.drag.shapes},
            )  # fmt: skip
        """The picture."""
        self._explanation = explain(course.worlds)
        hand = self.demonstration = HandDemonstration(course)
        """The demonstration by hand."""
        acting = Acting(
            self.session, self.picture, hand, self._explanation, self._tell,
            self._fill,
            self._read_again if self._reload is not None else None,
        )  # fmt: skip
        self.panel = Panel(server, self.session.ask, acting, self._controls)
        """The controls."""
        self._add_tabs(course, hand)
        camera, goal = self.picture.camera("corner")
        server.initial_camera.position = camera
        server.initial_camera.look_at = goal
        self._frames = 0
        self.show()

    def _end_demonstration(self) -> None:
        if self.demonstration is not None:
            self.demonstration.discard()
            self.panel.remove_keys()

    def _add_tabs(self, course: Course, hand: HandDemonstration) -> None:
        panel, worlds = self.panel, course.worlds
        panel.add_run(
            worlds.num_envs, self.picture.count, self.picture.spacing,
            self._reload is not None, course.timeline,
        )  # fmt: skip
        about = {name: overlay.about for name, overlay in OVERLAYS.items()}
        about |= {name: text for name, (text, _) in course.overlays().items()}
        about[TRAIL] = "path of the followed body, or of the first moving body"
        bodies = [worlds.model.body(b).name for b in range(1, worlds.model.nbody)]
        panel.add_show(about, [name for name in bodies if name])
        if course.companion is not None:
            panel.add_compare(course.label, course.timeline is None)
        panel.add_inputs({"actuators": course.inputs(), "joints": course.positions()})
        if course.timeline is None and course.companion is None and self._controls:
            panel.add_demonstration(hand.drives)
        sources = course.sources()
        panel.add_plots(sources, list(sources)[:1])
        writable = [
            f"{entity.name}.{quantity.name}"
            for entity in worlds.scene.values()
            for quantity in writable_quantities(entity)
        ]
        panel.add_ask(writable if course.timeline is None else [])

    def _read_again(self) -> None:
        assert self._reload is not None
        course = self._reload()
        self.session.restart(course)
        self._open(course)

    def _take_step(self) -> None:
        worlds = self.session.course.worlds
        self.drag.apply(self.picture.seen())
        try:
            self.session.course.advance()
        finally:
            self.picture.marks.note(worlds)

    def _answer(self) -> bool:
        with current(worlds_of(self.session.course.worlds)):
            return self.session.answer()

    def _status(self, now: float) -> str:
        session, world = self.session, self.picture.world
        state = "playing" if session.playing else "paused"
        text = f"**t = {now:.3f} s**, world {world}, {state}"
        timeline = session.course.timeline
        if timeline is not None:
            text += f", step {session.course.at} of {timeline.num_steps}"
        if session.playing and not session.is_scripted:
            text += f", {session.reached:.2f} × real time"
        if session.speed != 1.0:
            text += f", speed {session.speed:g}×"
        if self.demonstration is not None and self.demonstration.is_recording:
            text += ", **recording a demonstration**"
        remark = session.course.remark(world)
        if remark:
            text += f"\n\n{remark}"
        element = self.picture.marks.elements.get(world)
        if element is not None:
            text += f"\n\n**diverged**: {element}; this is its last valid step"
        elif session.problem:
            text += f"\n\n**{session.problem}**"
        return text

    def _served(self) -> float:
        """Return the CPU time of the server's thread so far [s]."""
        thread = self._server._websock_server._server_thread
        if thread is None or thread.ident is None or not thread.is_alive():
            return 0.0
        try:
            return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        except (AttributeError, OSError):  # not on this system
            return 0.0

    def _tell(self, text: str | Callable[[OneWorld], str]) -> None:
        """Show an answer; a function is called again while its world is shown."""
        seen = self.picture.seen()
        self._live = None
        if not isinstance(text, str):
            self._live, text = (seen.world, text), text(seen)
        for place in self.panel.answers:
            place.content = text

    def _refresh(self) -> None:
        """Update the answer that follows the state of the world shown."""
        if self._live is not None and self._live[0] == self.picture.world:
            self._tell(self._live[1])

    def _fill(self, text: str) -> None:
        self.panel.values.value = text

    def _clicked(self, text: str, place: np.ndarray) -> None:
        """Describe a clicked shape; called by a thread of the server."""

        def tell() -> None:
            self._tell(text)
            at, seen = place - self.picture.offset, self.picture.seen()
            self.picture.asked.about(shape_label(text, at, seen))

        self.session.ask(tell)

    def _listen(self, mesh: Mesh) -> None:
        """Describe clicked bodies, and pull dragged ones."""

        async def clicked(event: Any) -> None:
            k = event.instance_index
            if k is not None and 0 <= k < len(mesh.instances):
                self.session.ask(lambda: self._describe(mesh, k))

        async def dragged(event: Any) -> None:
            k = event.instance_index
            places = (*event.start_position, *event.end_position)
            somewhere = all(map(math.isfinite, places))
            if somewhere and k is not None and 0 <= k < len(mesh.instances):
                self.session.ask(lambda: self._pull(mesh, k, event))

        mesh.handle.on_click(clicked)
        if self.session.course.timeline is None:
            mesh.handle.on_drag("left", modifier="cmd/ctrl")(dragged)

    def _describe(self, mesh: Mesh, k: int) -> None:
        instance = mesh.instances[k]
        self.picture.look_at(self.picture.shown[instance.row])
        seen = self.picture.seen()
        self._tell(lambda now: body_text(now, self._explanation, instance.body))
        self.picture.asked.about(body_label(seen.world, instance.body))

    def _pull(self, mesh: Mesh, k: int, event: Any) -> None:
        if event.phase == "end":
            self._let_go(event.client_id)
            return
        self._puller = event.client_id
        row, body = mesh.instances[k].row, mesh.instances[k].body
        self.picture.look_at(self.picture.shown[row])
        place = self.picture.moved + self.picture.offsets[row]
        goal = np.array(event.end_position) - place
        known = self.drag.pull
        if event.phase == "start" or known is None:
            seen = self.picture.seen()
            rot_wb = seen.field("xmat")[body].reshape(3, 3)
            origin = seen.field("xpos")[body]
            point = rot_wb.T @ (np.array(event.start_position) - place - origin)
            taken = on_body(seen, body, point)
            self.drag.set(Pull(seen.world, body, taken, goal))
        else:
            self.drag.set(Pull(known.world, known.body, known.point_b, goal))

    def _left(self, client_id: int) -> None:
        """Release a client's pull; without clients, let a script continue."""
        self._let_go(client_id)
        if self.session.is_scripted and not self.num_clients:
            self.session.play()

    def _let_go(self, client_id: int) -> None:
        """Release a client's pull: its mouse was released, or it disconnected."""
        if self._puller == client_id:
            self._puller = None
            self.drag.set(None)
