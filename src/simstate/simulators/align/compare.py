"""The questions that are asked of MuJoCo and of a simulator, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.align.causes import Matcher
from simstate.simulators.align.findings import Cause, Comparison
from simstate.simulators.align.sample_states import SampleStates
from simstate.simulators.mechanics import MechanicalState, Mechanics, MujocoMechanics
from simstate.simulators.plain_model import Term, Terms

Ask = Callable[[Mechanics, MechanicalState], Array | None]


@dataclass(frozen=True)
class Question:
    """Something to ask of both sides at some states."""

    quantity: str
    unit: str
    ask: Ask
    states: Literal["smooth", "saturated", "beyond_limits", "touching"] = "smooth"
    needs: Literal["actuators", "equalities", "dry friction", ""] = ""
    """Elements that the model must have for the question to apply."""
    solved: bool = True
    """True if a solve or cancelling sums amplify rounding."""
    angle: bool = False
    """True if the answers are quaternions, which differ by an angle."""
    term: str = ""
    """The cause if parameters do not explain it: what the question has and `without`
    has not."""
    without: Ask | None = None
    """The same question with the term switched off in both."""
    without_states: Literal["smooth", ""] = ""
    """States at which to ask that, if not the same."""


def _motion(field: str) -> Ask:
    def ask(mechanics: Mechanics, state: MechanicalState) -> Array:
        return getattr(mechanics.motion(state), field)[0]

    return ask


def _value(method: str) -> Ask:
    return lambda mechanics, state: getattr(mechanics, method)(state)


def _step(*terms: Term) -> Ask:
    chosen: Terms = frozenset(terms)
    return lambda mechanics, state: mechanics.step(state, chosen)


_ACCELERATION = "m/s² or rad/s²"

QUESTIONS: tuple[Question, ...] = (
    Question("body positions", "m", _motion("body_pos"), solved=False),
    Question(
        "body orientations", "rad", _motion("body_quat"), angle=True, solved=False
    ),
    Question("body velocities", "m/s", _motion("body_vel"), solved=False),
    Question("body angular velocities", "rad/s", _motion("body_ang_vel"), solved=False),
    Question("centres of mass", "m", _value("com"), solved=False),
    Question("Jacobians", "m or 1", _value("jacobian"), solved=False),
    Question("mass matrix", "kg, kg·m, kg·m²", _value("mass_matrix")),
    Question("bias forces", "N or N·m", _value("bias")),
    Question("passive forces", "N or N·m", _value("passive")),
    Question("acceleration", _ACCELERATION, _value("acceleration")),
    Question("step", _ACCELERATION, _step()),
    Question(
        "step with actuators", _ACCELERATION, _step("actuators"), needs="actuators"
    ),
    Question(
        "step with actuators at their limits",
        _ACCELERATION,
        _step("actuators"),
        states="saturated",
        term="how force limits act on servos",
        without=_step("actuators"),
        without_states="smooth",
    ),
    Question(
        "step with equalities",
        _ACCELERATION,
        _step("actuators", "equalities"),
        needs="equalities",
        term="how equalities are solved",
        without=_step("actuators"),
    ),
    Question(
        "step with joint limits",
        _ACCELERATION,
        _step("actuators", "joint limits"),
        states="beyond_limits",
        term="how joint limits are solved",
        without=_step("actuators"),
    ),
    Question(
        "step with dry friction",
        _ACCELERATION,
        _step("actuators", "dry friction"),
        needs="dry friction",
        term="how dry friction is solved",
        without=_step("actuators"),
    ),
    Question(
        "step with contacts",
        _ACCELERATION,
        _step("actuators", "contacts"),
        states="touching",
        term="how contacts are found and solved",
        without=_step("actuators"),
    ),
)
"""From geometry to contacts; each has little more in it than the one before."""


def compare(
    question: Question,
    ours: MujocoMechanics,
    theirs: Mechanics,
    matcher: Matcher,
    states: SampleStates,
) -> Comparison:
    """Ask both sides a question, and find why the answers differ."""
    chosen: list[MechanicalState] = getattr(states, question.states)
    if not chosen or not _has(ours.model, question.needs):
        return Comparison(question.quantity, question.unit, "not applicable")
    answers = [question.ask(theirs, state) for state in chosen]
    if any(answer is None for answer in answers):
        return Comparison(question.quantity, question.unit, "not reported")
    known = [answer for answer in answers if answer is not None]
    scale = _scale([question.ask(ours, state) for state in chosen])
    width = _width(theirs.single, question.solved)
    allowed = _allowed(
        max(scale, _scale(known), _cancelled(question, ours, chosen)), width
    )
    if theirs.single and question.quantity.startswith("step"):
        allowed = max(allowed, _rounded_rate(ours.model, chosen))

    def off(mechanics: MujocoMechanics) -> float:
        return _difference(question, mechanics, chosen, known)

    difference = off(ours)
    agrees = difference <= allowed
    causes: tuple[Cause, ...] = ()
    remainder = difference
    if not agrees:
        explained = matcher.explain(off, allowed)
        causes, remainder = explained.causes, explained.remainder
        if not causes and question.without is not None:
            found = _explain_without(question, theirs, matcher, states, remainder)
            if found is not None:
                causes, remainder, allowed = found
    verdict = "agrees" if agrees else "explained" if causes else "unexplained"
    return Comparison(
        question.quantity,
        question.unit,
        verdict,
        scale,
        difference,
        causes,
        remainder,
        allowed,
    )


def _has(model: mujoco.MjModel, needs: str) -> bool:
    """Return True if a model has the elements that a question is about."""
    counts = {
        "": 1,
        "actuators": model.nactuator,
        "equalities": int(model.eq_active0.sum()),
        "dry friction": int(np.count_nonzero(model.dof_frictionloss)),
    }
    return counts[needs] > 0


def _explain_without(
    question: Question,
    theirs: Mechanics,
    matcher: Matcher,
    states: SampleStates,
    left: float,
) -> tuple[tuple[Cause, ...], float, float] | None:
    """Causes, remainder and what is allowed with the question's term off in both.

    None if the two do not agree then either.
    """
    ask = question.without
    assert ask is not None
    chosen: list[MechanicalState] = getattr(
        states, question.without_states or question.states
    )
    answers = [ask(theirs, state) for state in chosen]
    if any(answer is None for answer in answers):
        return None
    known = [answer for answer in answers if answer is not None]
    allowed = _allowed(_scale(known), _width(theirs.single, question.solved))

    def off(mechanics: MujocoMechanics) -> float:
        return _difference(question, mechanics, chosen, known, ask)

    found = matcher.explain(off, allowed)
    if not found.remainder <= allowed:
        return None
    cause = Cause(question.term, (), f"{question.term} (off in both, they agree)", left)
    return (*found.causes, cause), found.remainder, allowed


def _scale(answers: Sequence[Array | None]) -> float:
    """Return the largest value."""
    sizes = [np.abs(a).max(initial=0.0) for a in answers if a is not None]
    return float(max(sizes, default=0.0))


def _cancelled(
    question: Question, ours: MujocoMechanics, states: Sequence[MechanicalState]
) -> float:
    """Return the largest value that cancels with the question's term.

    A robot that stands has small accelerations, the difference of great ones: gravity's
    and its contacts'. They are rounded at their own size.
    """
    if question.without is None or question.without_states:
        return 0.0
    return _scale([question.without(ours, state) for state in states])


def _rounded_rate(model: mujoco.MjModel, states: Sequence[MechanicalState]) -> float:
    """Return the effect of rounding velocities to float32 on (v⁺ − v) / time step."""
    speed = _scale([state.qvel for state in states])
    return float(2 * np.finfo(np.float32).eps * speed / model.opt.timestep)


def _width(single: bool, solved: bool) -> tuple[float, float]:
    """Return the allowed rounding: absolute, and relative to an answer's magnitude."""
    if not single:
        return 1e-9, 1e-12
    return (1e-6, 1e-4) if solved else (1e-6, 5e-6)


def _allowed(scale: float, width: tuple[float, float]) -> float:
    """Return the allowed rounding of answers of this magnitude."""
    return max(width[0], width[1] * scale)


def _difference(
    question: Question,
    mechanics: MujocoMechanics,
    states: Sequence[MechanicalState],
    answers: Sequence[Array],
    ask: Ask | None = None,
) -> float:
    """Return the largest difference between MuJoCo's answers and these."""
    ask = question.ask if ask is None else ask
    worst = 0.0
    for state, answer in zip(states, answers, strict=True):
        ours = ask(mechanics, state)
        assert ours is not None
        error = _angles(ours, answer) if question.angle else np.abs(ours - answer)
        greatest = float(error.max(initial=0.0))
        worst = max(worst, greatest if greatest == greatest else float("inf"))
    return worst


def _angles(one: Array, two: Array) -> Array:
    """The angles between quaternions wxyz [rad]; shape (n,).

    By the vector part of their quotient, which keeps small angles.
    """
    one = one / np.linalg.norm(one, axis=-1, keepdims=True)
    two = two / np.linalg.norm(two, axis=-1, keepdims=True)
    vector = (
        one[:, :1] * two[:, 1:]
        - two[:, :1] * one[:, 1:]
        - np.cross(one[:, 1:], two[:, 1:])
    )
    return 2.0 * np.arcsin(np.clip(np.linalg.norm(vector, axis=-1), 0.0, 1.0))
