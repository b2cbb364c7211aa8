"""Loads of the core, with numbers for all worlds or for each."""

from __future__ import annotations

import numpy as np

from simstate.engine.core import CoreLoad, LoadKind


def row(*parts):
    """Columns side by side: each a number, a vector, or rows by world."""
    columns = [np.asarray(part, float) for part in parts]
    columns = [x[:, None] if x.ndim == 1 and x.size != 3 else x for x in columns]
    columns = [np.atleast_2d(x) for x in columns]
    count = max(len(x) for x in columns)
    return np.hstack([np.broadcast_to(x, (count, x.shape[1])) for x in columns])


def load(kind, bodies, numbers, frame=-1, table=(0.0,)):
    numbers = np.ascontiguousarray(numbers)
    return CoreLoad(kind, np.array(bodies, np.int32), numbers, frame, np.array(table))


def uniform_gravity(bodies, acceleration):
    return load(LoadKind.UNIFORM_GRAVITY, bodies, row(acceleration))


def point_mass_gravity(bodies, mu, position, frame=-1, gradient_torque=False):
    masses = np.column_stack([np.ravel(mu), np.reshape(position, (-1, 3))])
    numbers = [[float(gradient_torque), *masses.flat]]
    return load(LoadKind.POINT_GRAVITY, bodies, numbers, frame)


def thruster(body, force, position, mass_flow=0.0, throttle=1.0, dry_mass=0.0):
    numbers = row(force, position, mass_flow, throttle, dry_mass)
    return load(LoadKind.THRUSTER, [body], numbers)


def drag(body, area, density, wind=(0.0, 0.0, 0.0), frame=-1):
    return load(LoadKind.DRAG, [body], row(area, density, wind), frame)
