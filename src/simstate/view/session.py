"""Session: plays a course in real time, step by step and back, at others' request."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Sequence

from simstate.base.errors import InvalidInputError, SimStateError
from simstate.state import Snapshot
from simstate.view.course import Course

MOST_BACK = 600
"""How many steps back can be remembered."""
MOST_BYTES = 256 * 2**20
"""How much memory they may take."""
LONGEST = 0.1
"""Longest time that worlds are stepped, or requests answered, without a break [s]."""
MOST_REQUESTS = 256
"""Largest number of pending requests: later ones are dropped until some are done."""


class Session:
    """What is played, and how far.

    A simulation belongs to one thread. Others put requests in by `ask`; the thread of
    the simulation answers them in `answer`.

    Args:
        course: what is played.
        take_step: takes one step of it.
        playing: whether it goes on at first.
    """

    def __init__(
        self, course: Course, take_step: Callable[[], None], playing: bool
    ) -> None:
        self.course = course
        self.playing = playing
        self.is_scripted = False
        """Whether a script takes the steps, so that only it can be held up."""
        self._take_step = take_step
        self._passes = 0
        """How many steps a script that is held up may take."""
        self.speed = 1.0
        """Simulated seconds in a second."""
        self.reached = 0.0
        """The speed that was reached of late."""
        self.problem = ""
        """What went wrong last, in words; "": nothing."""
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._past: deque[list[Snapshot]] = deque(maxlen=MOST_BACK)
        self._due: float = 0.0
        """How much the worlds should go on [s]."""
        self._last = time.perf_counter()

    @property
    def is_at_end(self) -> bool:
        """Whether all steps of a timeline have been taken."""
        timeline = self.course.timeline
        return timeline is not None and self.course.at == timeline.num_steps

    @property
    def goes_on(self) -> bool:
        """Whether it plays, and nobody has asked for anything."""
        return self.playing and self._requests.empty()

    def ask(self, request: Callable[[], None], is_kept: bool = False) -> None:
        """Have something done by the thread of the simulation; from any thread.

        With `MOST_REQUESTS` pending it is dropped, unless `is_kept`: a client that
        sends more than the simulation can do would stall it.
        """
        if is_kept or self._requests.qsize() < MOST_REQUESTS:
            self._requests.put(request)

    def answer(self) -> bool:
        """Carry out requests, for a limited time; True if there were any."""
        if self._requests.empty():
            return False
        end = time.perf_counter() + LONGEST
        while not self._requests.empty() and time.perf_counter() < end:
            self.attempt(self._requests.get())
        return True

    def attempt(self, action: Callable[[], None]) -> bool:
        """Do something; if it raises, pause and say so. Whether it went well."""
        try:
            action()
        except SimStateError as error:
            self.playing = False
            self.problem = str(error)
            return False
        return True

    def report(self, problem: str) -> None:
        """Say what went wrong, and go on."""
        self.problem = problem

    def play(self, playing: bool = True) -> None:
        """Go on, or pause; what plays already keeps the time that it is due."""
        if playing and not self.playing:
            self._last, self._due = time.perf_counter(), 0.0
        self.playing = playing
        if playing:
            self.problem = ""

    def step(self) -> None:
        """Take one step, and stay there."""
        self.playing = False
        self.problem = ""
        if self.is_scripted:
            self._passes += 1
            return
        self._remember()
        self._take_step()

    def back(self) -> None:
        """Go back to before what was played last, and stay there."""
        self.playing = False
        if self.is_scripted:
            raise InvalidInputError(
                "A script takes the steps: the viewer cannot go back."
            )
        self.problem = ""
        if self.course.timeline is not None:
            self.course.go_to(self.course.at - 1)
            return
        if not self._past:
            raise InvalidInputError("There is nothing to go back to.")
        self.course.recall(self._past.pop())

    def go_to(self, step: int) -> None:
        """Be at a step of the timeline; if it was playing, it goes on from there."""
        self.course.go_to(step)
        self.problem = ""

    def reset(self, env_ids: Sequence[int]) -> None:
        """Let worlds begin anew."""
        if not self.is_scripted:
            self._remember()
        self.course.reset(env_ids)
        self.problem = ""

    def lets_pass(self) -> bool:
        """Whether a script may go on by one step."""
        if self.playing:
            return True
        allowed = self._passes > 0
        self._passes = max(self._passes - 1, 0)
        return allowed

    def restart(self, course: Course) -> None:
        """Play another course, from its begin."""
        self.course = course
        self._past.clear()
        self.problem = ""

    def advance(self) -> None:
        """Go on by the time that has passed, as far as the machine keeps up.

        At the end of a timeline it pauses.
        """
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        if not self.playing or self._pauses_at_end():
            return
        most = LONGEST * self.speed + self.course.step_dt
        self._due = min(self._due + passed * self.speed, most)
        if not self._is_due():
            return
        self._remember()
        done = 0.0
        while self._is_due():
            dt = self.course.step_dt  # those of a recording differ in length
            if not self.attempt(self._take_step):
                break
            self._due, done = self._due - dt, done + dt
            if self._pauses_at_end() or time.perf_counter() - now > LONGEST:
                break
        if self._is_due():
            self._due = 0.0
        spent = max(passed, time.perf_counter() - now, 1e-9)
        self.reached += 0.1 * (done / spent - self.reached)

    def _is_due(self) -> bool:
        """Whether the time of the next step has passed."""
        return self._due > self.course.step_dt * (1.0 - 1e-9)

    def _pauses_at_end(self) -> bool:
        """Pause where a timeline ends, and say so; whether it does here."""
        if not self.is_at_end:
            return False
        self.playing = False
        self.problem = f"The {self.course.name} ends here."
        return True

    def _remember(self) -> None:
        """Keep the present state to go back to, where no timeline has it."""
        if self.course.timeline is not None:
            return
        kept = self.course.remember()
        size = sum(value.nbytes for one in kept for value in one.slots.values())
        while self._past and (len(self._past) + 1) * size > MOST_BYTES:
            self._past.popleft()
        self._past.append(kept)
