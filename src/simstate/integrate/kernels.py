"""The arithmetic of a stage, for all worlds at once, as Warp kernels.

One thread per world; float64 and float32. `h` is the step of each world, and a world
with h = 0 keeps its value: it is finished, or has diverged.

The state's coordinates and its rates are not the same numbers: an orientation has four
coordinates and three rates, or, in high-order mode, four rates.
"""

# Warp reads these annotations itself, and its types are not Python's.
# pyright: basic, reportMissingTypeStubs=false, reportInvalidTypeForm=false
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from typing import Any

import warp as wp

# Nobody differentiates a step by Warp: half the compilation.
wp.set_module_options({"enable_backward": False})

MANIFOLD = wp.constant(0)
HIGH_ORDER = wp.constant(1)
LIE = wp.constant(2)


@wp.struct
class Layout:
    """Where the coordinates and rates of a position are; the same for all worlds."""

    mode: int
    flat_qpos: wp.array(dtype=int)
    flat_rate: wp.array(dtype=int)
    flat_qvel: wp.array(dtype=int)
    quat_qpos: wp.array(dtype=int)
    quat_rate: wp.array(dtype=int)
    quat_qvel: wp.array(dtype=int)


@wp.func
def combined(
    rates: wp.array3d(dtype=Any), weights: wp.array(dtype=Any), world: int, k: int
):
    """The weighted sum of one rate over the stages so far."""
    total = weights.dtype(0.0)
    for j in range(weights.shape[0]):
        total += weights[j] * rates[j, world, k]
    return total


@wp.func
def displace_flat_world(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    step: Any,
    value: wp.array2d(dtype=Any),
    world: int,
):
    """value = origin + step Σ weights · rates, in one world."""
    if step != type(step)(0.0):
        for k in range(origin.shape[1]):
            move = step * combined(rates, weights, world, k)
            value[world, k] = origin[world, k] + move


@wp.kernel
def displace_flat(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    value: wp.array2d(dtype=Any),
):
    """value = origin + h Σ weights · rates."""
    world = wp.tid()
    displace_flat_world(origin, rates, weights, h[world], value, world)


@wp.kernel
def advance_flat(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    value: wp.array2d(dtype=Any),
    source: wp.array2d(dtype=Any),
    rate: wp.array2d(dtype=Any),
):
    """rate = source, one of the rates; then the displacement to the next stage."""
    world = wp.tid()
    for k in range(source.shape[1]):
        rate[world, k] = source[world, k]
    displace_flat_world(origin, rates, weights, h[world], value, world)


@wp.func
def displace_position_world(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    layout: Layout,
    rotation: wp.array2d(dtype=Any),
    value: wp.array2d(dtype=Any),
    world: int,
):
    """value = origin ⊕ h Σ weights · rates; keeps the rotation vectors of the move."""
    step = h[world]
    if step == h.dtype(0.0):
        return
    for n in range(layout.flat_qpos.shape[0]):
        k = layout.flat_qpos[n]
        move = step * combined(rates, weights, world, layout.flat_rate[n])
        value[world, k] = origin[world, k] + move
    for n in range(layout.quat_qpos.shape[0]):
        q = layout.quat_qpos[n]
        r = layout.quat_rate[n]
        qw = origin[world, q]
        qx = origin[world, q + 1]
        qy = origin[world, q + 2]
        qz = origin[world, q + 3]
        # Where MuJoCo does it, with its threshold: rounding must not add up over steps.
        norm = wp.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
        if wp.abs(norm - h.dtype(1.0)) > h.dtype(1e-15):
            scale = h.dtype(1.0) / norm
            qw = qw * scale
            qx = qx * scale
            qy = qy * scale
            qz = qz * scale
        if layout.mode == HIGH_ORDER:
            w = qw + step * combined(rates, weights, world, r)
            x = qx + step * combined(rates, weights, world, r + 1)
            y = qy + step * combined(rates, weights, world, r + 2)
            z = qz + step * combined(rates, weights, world, r + 3)
            norm = wp.sqrt(w * w + x * x + y * y + z * z)
            value[world, q] = w / norm
            value[world, q + 1] = x / norm
            value[world, q + 2] = y / norm
            value[world, q + 3] = z / norm
        else:
            ux = combined(rates, weights, world, r)
            uy = combined(rates, weights, world, r + 1)
            uz = combined(rates, weights, world, r + 2)
            rotation[world, 3 * n] = step * ux
            rotation[world, 3 * n + 1] = step * uy
            rotation[world, 3 * n + 2] = step * uz
            # In MuJoCo's order of operations (mju_quatIntegrate): the same bits.
            speed = wp.sqrt(ux * ux + uy * uy + uz * uz)
            half = step * speed * h.dtype(0.5)
            ew = wp.cos(half)
            s = wp.sin(half)
            inverse = h.dtype(0.0)
            if speed > h.dtype(0.0):
                inverse = h.dtype(1.0) / speed
            ex = ux * inverse * s
            ey = uy * inverse * s
            ez = uz * inverse * s
            value[world, q] = qw * ew - qx * ex - qy * ey - qz * ez
            value[world, q + 1] = qw * ex + qx * ew + qy * ez - qz * ey
            value[world, q + 2] = qw * ey - qx * ez + qy * ew + qz * ex
            value[world, q + 3] = qw * ez + qx * ey - qy * ex + qz * ew


@wp.func
def dexp_inverse_factor(angle2: Any):
    """(1 − (θ/2) cot(θ/2)) / θ², which is 1/12 at θ = 0."""
    one = type(angle2)(1.0)
    if angle2 < type(angle2)(1e-2):
        # The series' next term is below 2e-16 here.
        series = one / type(angle2)(30240.0) + angle2 / type(angle2)(1209600.0)
        series = one / type(angle2)(720.0) + angle2 * series
        return one / type(angle2)(12.0) + angle2 * series
    half = wp.sqrt(angle2) * type(angle2)(0.5)
    return (one - half * wp.cos(half) / wp.sin(half)) / angle2


@wp.func
def record_position_world(
    qvel: wp.array2d(dtype=Any),
    qpos: wp.array2d(dtype=Any),
    rotation: wp.array2d(dtype=Any),
    layout: Layout,
    rate: wp.array2d(dtype=Any),
    world: int,
):
    """The rates of the position's coordinates at a displaced state, from qvel."""
    for n in range(layout.flat_rate.shape[0]):
        rate[world, layout.flat_rate[n]] = qvel[world, layout.flat_qvel[n]]
    for n in range(layout.quat_qpos.shape[0]):
        r = layout.quat_rate[n]
        x = qvel[world, layout.quat_qvel[n]]
        y = qvel[world, layout.quat_qvel[n] + 1]
        z = qvel[world, layout.quat_qvel[n] + 2]
        if layout.mode == MANIFOLD:
            rate[world, r] = x
            rate[world, r + 1] = y
            rate[world, r + 2] = z
        elif layout.mode == HIGH_ORDER:
            q = layout.quat_qpos[n]
            half = qvel.dtype(0.5)
            qw = qpos[world, q]
            qx = qpos[world, q + 1]
            qy = qpos[world, q + 2]
            qz = qpos[world, q + 3]
            half = half / wp.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
            qw = half * qw
            qx = half * qx
            qy = half * qy
            qz = half * qz
            rate[world, r] = -qx * x - qy * y - qz * z
            rate[world, r + 1] = qw * x + qy * z - qz * y
            rate[world, r + 2] = qw * y - qx * z + qz * x
            rate[world, r + 3] = qw * z + qx * y - qy * x
        else:
            # The rotation vector u of q = q0 exp(u) moves with
            # u' = ω + u × ω / 2 + factor · u × (u × ω), for ω in body axes.
            ux = rotation[world, 3 * n]
            uy = rotation[world, 3 * n + 1]
            uz = rotation[world, 3 * n + 2]
            cx = uy * z - uz * y
            cy = uz * x - ux * z
            cz = ux * y - uy * x
            half = qvel.dtype(0.5)
            angle2 = ux * ux + uy * uy + uz * uz
            spin2 = x * x + y * y + z * z
            factor = qvel.dtype(0.0)
            # Along one axis nothing is to correct, also where the factor is singular.
            if cx * cx + cy * cy + cz * cz > qvel.dtype(1e-28) * angle2 * spin2:
                factor = dexp_inverse_factor(angle2)
            rate[world, r] = x + half * cx + factor * (uy * cz - uz * cy)
            rate[world, r + 1] = y + half * cy + factor * (uz * cx - ux * cz)
            rate[world, r + 2] = z + half * cz + factor * (ux * cy - uy * cx)


@wp.kernel
def displace_position(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    layout: Layout,
    rotation: wp.array2d(dtype=Any),
    value: wp.array2d(dtype=Any),
):
    """Move every world to a stage."""
    world = wp.tid()
    displace_position_world(origin, rates, weights, h, layout, rotation, value, world)


@wp.kernel
def record_position(
    qvel: wp.array2d(dtype=Any),
    qpos: wp.array2d(dtype=Any),
    rotation: wp.array2d(dtype=Any),
    layout: Layout,
    chosen: wp.array(dtype=wp.bool),
    rate: wp.array2d(dtype=Any),
):
    """Take the rates of the chosen worlds."""
    world = wp.tid()
    if chosen[world]:
        record_position_world(qvel, qpos, rotation, layout, rate, world)


@wp.kernel
def advance_position(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    layout: Layout,
    rotation: wp.array2d(dtype=Any),
    value: wp.array2d(dtype=Any),
    qvel: wp.array2d(dtype=Any),
    rate: wp.array2d(dtype=Any),
):
    """Take every world's rates, one of `rates`, and move on to the next stage."""
    world = wp.tid()
    record_position_world(qvel, value, rotation, layout, rate, world)
    displace_position_world(origin, rates, weights, h, layout, rotation, value, world)


def _overloads(real: Any) -> None:
    one, two, three = (
        wp.array(dtype=real),
        wp.array2d(dtype=real),
        wp.array3d(dtype=real),
    )
    wp.overload(displace_flat, [two, three, one, one, two])
    wp.overload(advance_flat, [two, three, one, one, two, two, two])
    wp.overload(
        displace_position,
        [two, three, one, one, Layout, two, two],
    )
    wp.overload(
        advance_position,
        [two, three, one, one, Layout, two, two, two, two],
    )
    wp.overload(
        record_position,
        [two, two, two, Layout, wp.array(dtype=wp.bool), two],
    )


# Both precisions from the start: the kernels are compiled once and stay cached.
_overloads(wp.float64)
_overloads(wp.float32)
