"""Questions: quantities that are evaluated in MuJoCo and in another simulator."""

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
    """A quantity to evaluate on both sides at some states."""

    quantity: str
    unit: str
    ask: Ask
    states: Literal["smooth", "saturated", "beyond_limits", "touching"] = "smooth"
    needs: Literal["actuators", "equalities", "dry friction", ""] = ""
    """Elements that the model must have for the question to apply."""
    solved: bool = True
    """True if a solve or cancelling sums amplify rounding."""
    angle: bool = False
    """True if the values are quaternions, whose difference is an angle."""
    term: str = ""
    """Name of the effect that `without` does not have; the cause of a difference that
    parameters do not explain."""
    without: Ask | None = None
    """The same quantity with the term switched off on both sides."""
    without_states: Literal["smooth", ""] = ""
    """States at which to evaluate that, if different."""


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
"""From geometry to contacts; each adds one effect to an earlier one."""


def compare(
    question: Question,
    ours: MujocoMechanics,
    theirs: Mechanics,
    matcher: Matcher,
    states: SampleStates,
) -> Comparison:
    """Evaluate a question on both sides, and find the causes of a difference."""
    chosen: list[MechanicalState] = getattr(states, question.states)
    if not chosen or not _has(ours.model, question.needs):
        return Comparison(question.quantity, question.unit, "not applicable")
    answers = _answers(question.ask, theirs, chosen)
    if answers is None:
        return Comparison(question.quantity, question.unit, "not reported")
    scale = _scale([question.ask(ours, state) for state in chosen])
    width = _width(theirs.single, question.solved)
    allowed = _allowed(
        max(scale, _scale(answers), _cancelled(question, ours, chosen)), width
    )
    if theirs.single and question.quantity.startswith("step"):
        allowed = max(allowed, _rounded_rate(ours.model, chosen))

    def off(mechanics: MujocoMechanics) -> float:
        return _difference(question, mechanics, chosen, answers)

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
    """Return causes, remainder and tolerance without the question's term.

    None if the two do not agree without the term either.
    """
    ask = question.without
    assert ask is not None
    chosen: list[MechanicalState] = getattr(
        states, question.without_states or question.states
    )
    answers = _answers(ask, theirs, chosen)
    if answers is None:
        return None
    allowed = _allowed(_scale(answers), _width(theirs.single, question.solved))

    def off(mechanics: MujocoMechanics) -> float:
        return _difference(question, mechanics, chosen, answers, ask)

    found = matcher.explain(off, allowed)
    if not found.remainder <= allowed:
        return None
    text = f"{question.term} (without it the two agree)"
    cause = Cause(question.term, (), text, left)
    return (*found.causes, cause), found.remainder, allowed


def _answers(
    ask: Ask, mechanics: Mechanics, states: Sequence[MechanicalState]
) -> list[Array] | None:
    """Return the values at these states; None if one of them is not available."""
    found = [ask(mechanics, state) for state in states]
    known = [answer for answer in found if answer is not None]
    return known if len(known) == len(found) else None


def _scale(answers: Sequence[Array | None]) -> float:
    """Return the largest value."""
    sizes = [np.abs(a).max(initial=0.0) for a in answers if a is not None]
    return float(max(sizes, default=0.0))


def _cancelled(
    question: Question, ours: MujocoMechanics, states: Sequence[MechanicalState]
) -> float:
    """Return the largest value that cancels with the question's term.

    The accelerations of a standing robot are small differences of large ones, those of
    gravity and of contacts, whose rounding errors remain.
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
        largest = float(error.max(initial=0.0))
        worst = max(worst, largest if largest == largest else float("inf"))
    return worst


def _angles(one: Array, two: Array) -> Array:
    """Return the angles between quaternions wxyz [rad]; shape (n,).

    The vector part of their quotient resolves small angles.
    """
    one = one / np.linalg.norm(one, axis=-1, keepdims=True)
    two = two / np.linalg.norm(two, axis=-1, keepdims=True)
    vector = (
        one[:, :1] * two[:, 1:]
        - two[:, :1] * one[:, 1:]
        - np.cross(one[:, 1:], two[:, 1:])
    )
    return 2.0 * np.arcsin(np.clip(np.linalg.norm(vector, axis=-1), 0.0, 1.0))
