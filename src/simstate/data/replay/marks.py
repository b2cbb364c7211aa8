"""Marks of a recording: resets, divergences, events and writes, by step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simstate.env.env_recorder import ENDED, EVENT
from simstate.record import Recording
from simstate.record.changes import Step
from simstate.view.recorded_timeline import Kind, Mark, RecordedTimeline

_NO_MARK = ("ctrl", "time")
"""Slots whose writing is not worth a mark: inputs, and what a reset writes, too."""


def timeline_of(recording: Recording) -> RecordedTimeline:
    """The steps of a recording; reads all of it once, a block at a time."""
    times, marks = [0.0], list[Mark]()
    for number, step in enumerate(recording.steps()):
        times.append(times[-1] + recording.span(step))
        marks += _marks_of(recording, step, number)
    if recording.kind == "env":
        marks += _of_terms(recording)
    marks.sort(key=lambda mark: mark.step)
    return RecordedTimeline(np.array(times), marks)


def _marks_of(recording: Recording, step: Step, number: int) -> Iterator[Mark]:
    """Yield the marks of a step, before which `number` were taken."""
    everyone = range(recording.header["simulation"]["num_envs"])
    if step.call.get("restore"):
        for world in everyone:
            yield Mark(number, "write", world, "memory was added or worlds restored")
    began: set[int] = set()
    for change in step.changes:
        if change.slot == "time":
            began |= set(everyone if change.rows is None else change.rows.tolist())
    for world in sorted(began):
        yield Mark(number, "reset", world, "the world was reset")
    for change in step.changes if recording.kind == "sim" else ():
        rows = everyone if change.rows is None else change.rows.tolist()
        for world in rows:
            if change.slot not in _NO_MARK and world not in began:
                yield Mark(number, "write", world, f"{change.slot} was written")
    for world in step.arrays.get("final_ids", np.zeros(0, int)).tolist():
        if world not in recording.worlds:  # else the term that ended it is known
            yield Mark(number + 1, "reset", world, "an episode ended, another began")
    for world in step.arrays.get("reset_ids", np.zeros(0, int)).tolist():
        yield Mark(number + 1, "reset", world, "an episode began")
    for world, element in step.call.get("diverged", {}).items():
        yield Mark(number + 1, "divergence", int(world), str(element))


def _of_terms(recording: Recording) -> Iterator[Mark]:
    """Yield the events of a task, and the terms that ended its episodes."""
    kinds: tuple[tuple[str, Kind, str], ...]
    kinds = ((EVENT, "event", ""), (ENDED, "reset", "ended by "))
    if not recording.header["auto_reset"]:
        kinds = ((EVENT, "event", ""), (ENDED, "event", "ended by "))
    for block in recording.blocks:
        samples = recording.read_block(block, ["step", ENDED, EVENT])
        for column, kind, verb in kinds:
            names = recording.contract(column)["names"]
            for k, place, term in np.argwhere(samples[column]).tolist():
                step, world = int(samples["step"][k]) + 1, recording.worlds[place]
                yield Mark(step, kind, world, f"{verb}{names[term]}")
