"""Ptera Software's glider in free flight, on its own MuJoCoModel and on simstate's.

Run by `make test-ptera`, in a virtual environment of its own that has Ptera Software
5.1. Exit code 1 unless the two trajectories agree within 4e-6 m and 5e-5 deg/s.

The airframe is the glider of Ptera's free-flight example: a cambered wing of 10 m, a
tailplane at −5° and a fin, trimmed at 12.9 m/s and 3.3°, 5 prescribed steps and 195
free ones of 12.92 ms. Ptera's solver is strongly coupled: it restores the state and
takes each step several times, until loads and motion agree.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import pterasoftware as ps
from pterasoftware import _mujoco_model

from simstate.interop.ptera import MuJoCoModel

POSITION_TOLERANCE, RATE_TOLERANCE = 4e-6, 5e-5
SPEED, ALPHA, WEIGHT, GRAVITY = 12.9, 3.3, 420.0, 9.80665
INERTIA = ((155.614, 0, -45.658), (0, 398.513, 0), (-45.658, 0, 508.699))


def wing(name, airfoil, span, columns, rows, place, angles=(0.0, 0.0, 0.0), fin=False):
    """A rectangular wing of chord 1 m; both halves unless it is a fin."""
    sections = [
        ps.geometry.wing_cross_section.WingCrossSection(
            airfoil=ps.geometry.airfoil.Airfoil(name=airfoil),
            num_spanwise_panels=panels,
            spanwise_spacing="cosine" if panels else None,
            chord=1.0,
            Lp_Wcsp_Lpp=(0.0, y, 0.0),
            control_surface_symmetry_type=None if fin else "symmetric",
        )
        for y, panels in ((0.0, columns), (span, None))
    ]
    return ps.geometry.wing.Wing(
        wing_cross_sections=sections,
        name=name,
        Ler_Gs_Cgs=place,
        angles_Gs_to_Wn_ixyz=angles,
        symmetric=not fin,
        symmetryNormal_G=None if fin else (0.0, 1.0, 0.0),
        symmetryPoint_G_Cg=None if fin else (0.0, 0.0, 0.0),
        num_chordwise_panels=rows,
        chordwise_spacing="uniform",
    )


def glider(rows):
    """The glider, and the movement of its parts: none."""
    wings = [
        wing("Main Wing", "naca2412", 5.0, 10, rows, (0.0, 0.0, 0.0)),
        wing("Tailplane", "naca0012", 1.0, 6, rows, (5.0, 0.0, 0.5), (0.0, -5.0, 0.0)),
        wing("Fin", "naca0012", 2.0, 6, rows, (5.0, 0.0, 1.0), (90.0, 0.0, 0.0), True),
    ]
    airplane = ps.geometry.airplane.Airplane(wings=wings, name="Glider", weight=WEIGHT)
    movements = ps.movements
    still = [
        movements.wing_movement.WingMovement(
            base_wing=one,
            wing_cross_section_movements=[
                movements.wing_cross_section_movement.WingCrossSectionMovement(
                    base_wing_cross_section=section
                )
                for section in one.wing_cross_sections
            ],
        )
        for one in airplane.wings
    ]
    return movements.airplane_movement.AirplaneMovement(
        base_airplane=airplane, wing_movements=still
    )


def counting(model):
    """A subclass that counts the states it restores, as Ptera's iteration does."""

    class Counting(model):
        restored = 0

        def restore_state(self, state):
            Counting.restored += 1
            super().restore_state(state)

    Counting.__module__ = model.__module__
    return Counting


def fly(model, steps, rows, integrator):
    """Positions [m], angles [deg] and rates [deg/s] after each step on this class."""
    _mujoco_model.MuJoCoModel = model
    point = ps.operating_point.OperatingPoint(
        rho=1.225,
        vCg__E=SPEED,
        alpha=ALPHA,
        angles_E_to_BP1_izyx=(0.0, ALPHA, 0.0),
        nu=15.06e-6,
        g_E=(0.0, 0.0, GRAVITY),
    )
    movements = ps.movements
    points = movements.free_flight_operating_point_movement
    path = points.FreeFlightOperatingPointMovement(base_operating_point=point)
    movement = movements.free_flight_movement.FreeFlightMovement(
        airplane_movements=[glider(rows)],
        operating_point_movement=path,
        delta_time=0.01292,
        prescribed_num_steps=5,
        free_num_steps=steps,
    )
    problem = ps.problems.FreeFlightUnsteadyProblem(
        movement=movement,
        mass=WEIGHT / GRAVITY,
        I_BP1_CgP1=INERTIA,
        integrator=integrator,
    )
    assert type(problem._mujoco_model) is model
    solvers = ps.free_flight_unsteady_ring_vortex_lattice_method
    solver = solvers.FreeFlightUnsteadyRingVortexLatticeMethodSolver(
        free_flight_unsteady_problem=problem
    )
    start = time.perf_counter()
    solver.run(prescribed_wake=False, show_progress=False)
    print(f"  {model.__module__}: {time.perf_counter() - start:.0f} s", flush=True)
    return tuple(
        np.array([getattr(point, name) for point in path.operating_points])
        for name in ("CgP1_E_Eo", "angles_E_to_BP1_izyx", "omegas_BP1__E")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=195, help="free steps")
    parser.add_argument("--rows", type=int, default=4, help="panels along the chord")
    parser.add_argument("--integrator", default="RK4")
    args = parser.parse_args()
    given = (args.steps, args.rows, args.integrator)
    print(f"{args.steps} free steps, {args.integrator}", flush=True)
    models = counting(_mujoco_model.MuJoCoModel), counting(MuJoCoModel)
    theirs, ours = (fly(model, *given) for model in models)
    trials = [model.restored for model in models]
    gaps = [np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True)]
    travelled = np.linalg.norm(ours[0][-1] - ours[0][0])
    print(f"  flown {travelled:.3f} m; rates up to {np.abs(ours[2]).max():.3f} deg/s")
    print(f"  position differs by {gaps[0]:.2e} m (allowed {POSITION_TOLERANCE:.0e})")
    print(f"  angles differ by {gaps[1]:.2e} deg")
    print(f"  rates differ by {gaps[2]:.2e} deg/s (allowed {RATE_TOLERANCE:.0e})")
    print(f"  trials of its coupled steps: {trials[0]} on Ptera's, {trials[1]} on ours")
    agree = gaps[0] <= POSITION_TOLERANCE and gaps[2] <= RATE_TOLERANCE
    agree = agree and args.steps <= trials[0] == trials[1]
    print("agree" if agree and travelled > 1e-3 else "DIFFER")
    return 0 if agree and travelled > 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
