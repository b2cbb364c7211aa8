"""iLQR: Newton-like steps on the controls, with derivatives of the dynamics.

Li and Todorov, "Iterative Linear Quadratic Regulator Design", 2004; with the line
search and the damping of Tassa et al., 2012. The cost is ½ Σ ‖r‖² over the horizon.

1. Shift the last plan by the time that has passed: controls u and their states x.
2. Differentiate next states and residuals by x and u at every point: A, B, r_x, r_u.
3. Backward, from V = 0: with Q_x = r_xᵀr + AᵀV_x, Q_uu = r_uᵀr_u + BᵀV_xx B + μ I and
   so on (Gauss-Newton: without derivatives of second order), the change of the controls
   is k = −Q_uu⁻¹ Q_u and the feedback K = −Q_uu⁻¹ Q_ux.
4. Forward: run the futures u + α k + K (x − x_before), clipped to the bounds, for
   α = 1, ½, ¼, … at once, and take the best. If none is better, multiply μ by 10,
   else divide it by 3.
5. Repeat 2 to 4 `iterations` times.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simstate.base.checks import check_called_as, number, whole_number
from simstate.base.errors import InvalidInputError
from simstate.study.planners.control_space import Bounds, ControlSpace
from simstate.study.planners.controlled_path import ControlledPath, Residual, Shooting
from simstate.study.scratch_worlds import Make, is_env, sim_of

_linalg: Any = torch.linalg
"""Torch declares no types for it."""


class iLQR:  # noqa: N801 - the name in the literature
    """Improves controls by local quadratic models, separately in each world.

    It is for simulations with a smooth cost: use a sampling planner for intermittent
    contacts and for environments.

    Args:
        horizon: number of controls of a plan.
        residual: `residual(sim)` after each control, (num_envs, m); the cost is half
            the sum of its squares. It may read `sim.data.ctrl`.
        hold: time steps for which each control is held.
        iterations: number of optimisation steps for each plan.
        damping: μ at the start of a plan.
        bounds: minimum and maximum controls; None: the actuators' ranges.
        make: builds scratch worlds, which simulations with force models, events or
            tasks need; see `study.futures`. Processes are not supported.
    """

    def __init__(
        self,
        horizon: int,
        *,
        residual: Residual,
        hold: int = 1,
        iterations: int = 5,
        damping: float = 1e-4,
        bounds: Bounds | None = None,
        make: Make | None = None,
    ) -> None:
        self.horizon = whole_number("horizon", horizon, 1)
        self.hold = whole_number("hold", hold, 1)
        self.iterations = whole_number("iterations", iterations, 1)
        self.damping = number("damping", damping, more_than=0)
        check_called_as("residual", residual, "sim", name="residual")
        self.residual, self.bounds, self.make = residual, bounds, make
        self.best: Tensor | None = None
        """Cost of the last plan in each world; (num_envs,)."""
        self._controls: Tensor | None = None
        self._time: Tensor | None = None

    def plan(self, target: Any) -> Tensor:
        """Return controls of each world that lower the cost; the worlds are unchanged.

        One control per time step; shape (num_envs, horizon × hold, nu).
        """
        if is_env(target):
            raise InvalidInputError(
                "iLQR needs derivatives of a simulation: use it with env.sim and a "
                "residual, or a sampling planner with the environment.",
                name="derivatives",
            )
        space = ControlSpace(target, self.bounds, finite=False)
        shooting = Shooting(target, self.residual, self.hold, self.make)
        controls = self._shifted(target, space)
        damping = torch.full((space.num_envs, 1, 1), self.damping, dtype=torch.float64)
        found = shooting.run(controls, space)
        for _ in range(self.iterations):
            change, feedback = _backward(shooting, found, damping)
            tried = shooting.run(found.controls, space, found, change, feedback)
            better = tried.cost < found.cost
            found = found.where(better, tried)
            shift = torch.where(better, 1 / 3, 10.0)[:, None, None]
            damping = (damping * shift).clamp(1e-8, 1e8)
        self.best = found.cost
        self._controls = found.controls
        self._time = sim_of(target).time.double().clone()
        return found.controls.repeat_interleave(self.hold, dim=1)

    def reset(self) -> None:
        """Discard the last plan: the next one starts with the current controls."""
        self._controls = self._time = self.best = None

    def _shifted(self, target: Any, space: ControlSpace) -> Tensor:
        """Return the last plan, shifted to the current time; (N, horizon, nu)."""
        start = space.now(target)[:, None].expand(-1, self.horizon, -1)
        last = self._controls
        if last is None or self._time is None or last.shape != start.shape:
            return start
        passed = sim_of(target).time.double() - self._time
        steps = (passed / (space.step_dt * self.hold)).round().long()
        index = torch.arange(self.horizon) + steps.clamp(min=0)[:, None]
        index = index.clamp(max=self.horizon - 1)[..., None].expand_as(last)
        return torch.where((passed >= 0)[:, None, None], last.gather(1, index), start)


def _backward(
    shooting: Shooting, at: ControlledPath, damping: Tensor
) -> tuple[Tensor, Tensor]:
    """Return changes (N, H, nu) and feedback (N, H, nu, nx) of the controls."""
    a, b, r_x, r_u = shooting.derivatives(at)
    count, horizon, nx, nu = b.shape
    v_x = b.new_zeros(count, nx, 1)
    v_xx = b.new_zeros(count, nx, nx)
    change, feedback = b.new_zeros(count, horizon, nu), b.new_zeros(*b.mT.shape)
    eye = damping * torch.eye(nu, dtype=b.dtype)
    for h in reversed(range(horizon)):
        f_x, f_u, g_x, g_u = a[:, h], b[:, h], r_x[:, h], r_u[:, h]
        r = at.residual[:, h, :, None]
        q_x, q_u = g_x.mT @ r + f_x.mT @ v_x, g_u.mT @ r + f_u.mT @ v_x
        q_xx = g_x.mT @ g_x + f_x.mT @ v_xx @ f_x
        q_ux = g_u.mT @ g_x + f_u.mT @ v_xx @ f_x
        q_uu = g_u.mT @ g_u + f_u.mT @ v_xx @ f_u
        solved: Tensor = -_linalg.solve(q_uu + eye, torch.cat([q_u, q_ux], dim=2))
        k, gain = solved[..., :1], solved[..., 1:]
        change[:, h], feedback[:, h] = k[..., 0], gain
        v_x = q_x + gain.mT @ (q_uu @ k + q_u) + q_ux.mT @ k
        v_xx = q_xx + gain.mT @ q_uu @ gain + gain.mT @ q_ux + q_ux.mT @ gain
        v_xx = (v_xx + v_xx.mT) / 2
    return change, feedback
