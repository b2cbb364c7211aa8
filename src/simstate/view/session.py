"""Session: plays a course in real time, step by step and back, on request."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Sequence

from simstate.base.errors import InvalidInputError, SimStateError
from simstate.state import Snapshot
from simstate.view.course import Course

MOST_BACK = 600
"""Maximum number of steps to go back."""
MOST_BYTES = 256 * 2**20
"""Maximum memory of the states to go back to [bytes]."""
LONGEST = 0.1
"""Longest time that worlds are stepped, or requests answered, without a break [s]."""
MOST_REQUESTS = 256
"""Largest number of pending requests: later ones are dropped until some are done."""


class Session:
    """Playback of a course: its position, its speed and the pending requests.

    A simulation belongs to one thread. Other threads submit requests with `ask`; the
    thread of the simulation carries them out in `answer`.

    Args:
        course: the course to play.
        take_step: advances the course by one step.
        playing: True to start playing at once, False to start paused.
    """

    def __init__(
        self, course: Course, take_step: Callable[[], None], playing: bool
    ) -> None:
        self.course = course
        self.playing = playing
        self.is_scripted = False
        """True if a script takes the steps; playback can then only delay the script."""
        self._take_step = take_step
        self._passes = 0
        """Number of steps that a paused script may take."""
        self.speed = 1.0
        """Requested speed: simulated seconds per second."""
        self.reached = 0.0
        """Measured speed, averaged over recent steps."""
        self.problem = ""
        """Message of the last error; "" if there was none."""
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._past: deque[list[Snapshot]] = deque(maxlen=MOST_BACK)
        self._due: float = 0.0
        """Simulated time by which the worlds are behind [s]."""
        self._last = time.perf_counter()

    @property
    def is_at_end(self) -> bool:
        """True if all steps of a timeline have been taken."""
        timeline = self.course.timeline
        return timeline is not None and self.course.at == timeline.num_steps

    @property
    def goes_on(self) -> bool:
        """True while playing with no pending requests."""
        return self.playing and self._requests.empty()

    def ask(self, request: Callable[[], None], is_kept: bool = False) -> None:
        """Submit a request to the thread of the simulation, from any thread.

        With `MOST_REQUESTS` pending it is dropped, unless `is_kept`: a client that
        sends more than the simulation can handle would stall it.
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
        """Call a function; an error is kept and pauses. Return True on success."""
        try:
            action()
        except SimStateError as error:
            self.playing = False
            self.problem = str(error)
            return False
        return True

    def report(self, problem: str) -> None:
        """Record an error without pausing."""
        self.problem = problem

    def play(self, playing: bool = True) -> None:
        """Play or pause; while playing, the time that is due is kept."""
        if playing and not self.playing:
            self._last, self._due = time.perf_counter(), 0.0
        self.playing = playing
        if playing:
            self.problem = ""

    def step(self) -> None:
        """Take one step and pause."""
        self.playing = False
        self.problem = ""
        if self.is_scripted:
            self._passes += 1
            return
        self._remember()
        self._take_step()

    def back(self) -> None:
        """Return to the state before the steps that were played last, and pause."""
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
            raise InvalidInputError("No earlier state is stored.", name="back")
        self.course.recall(self._past.pop())

    def go_to(self, step: int) -> None:
        """Move to a step of the timeline; playback continues from there."""
        self.course.go_to(step)
        self.problem = ""

    def reset(self, env_ids: Sequence[int]) -> None:
        """Reset the given worlds."""
        if not self.is_scripted:
            self._remember()
        self.course.reset(env_ids)
        self.problem = ""

    def lets_pass(self) -> bool:
        """Return True if a script may take one more step."""
        if self.playing:
            return True
        allowed = self._passes > 0
        self._passes = max(self._passes - 1, 0)
        return allowed

    def restart(self, course: Course) -> None:
        """Play another course from its start."""
        self.course = course
        self._past.clear()
        self.problem = ""

    def advance(self) -> None:
        """Advance by the elapsed time, as far as the machine keeps up.

        Playback pauses at the end of a timeline.
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
        """Return True if the next step is due."""
        return self._due > self.course.step_dt * (1.0 - 1e-9)

    def _pauses_at_end(self) -> bool:
        """Pause at the end of a timeline with a message; return True if it is there."""
        if not self.is_at_end:
            return False
        self.playing = False
        self.problem = f"The {self.course.name} ends here."
        return True

    def _remember(self) -> None:
        """Store the current state for `back`, unless there is a timeline."""
        if self.course.timeline is not None:
            return
        kept = self.course.remember()
        size = sum(value.nbytes for one in kept for value in one.slots.values())
        while self._past and (len(self._past) + 1) * size > MOST_BYTES:
            self._past.popleft()
        self._past.append(kept)
