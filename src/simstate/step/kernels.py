"""The arithmetic of a stage, for all worlds at once, as Warp kernels.

One thread per world; float64 and float32. `h` is the step of each world, and a world
with h = 0 keeps its value: it is finished, or has diverged.

Coordinates and rates differ in number: an orientation has four coordinates and three
rates, or, in high-order mode, four rates.
"""

# Warp evaluates these annotations, and its types are not Python's.
# pyright: basic, reportMissingTypeStubs=false, reportInvalidTypeForm=false
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from typing import Any

import warp as wp

from simstate.step.forces.formulas import native

# Steps are not differentiated by Warp: this halves the compilation time.
wp.set_module_options({"enable_backward": False})

MANIFOLD = wp.constant(0)
HIGH_ORDER = wp.constant(1)
LIE = wp.constant(2)


@wp.struct
class StateLayout:
    """Columns of the coordinates and rates of a position; the same for all worlds."""

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
    """Return the weighted sum of one rate over the stages so far."""
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
    """Set value = origin + step Σ weights · rates, in one world."""
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
    """Set value = origin + h Σ weights · rates."""
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
    """Set rate, one of the rates, to source; then displace to the next stage."""
    world = wp.tid()
    for k in range(source.shape[1]):
        rate[world, k] = source[world, k]
    displace_flat_world(origin, rates, weights, h[world], value, world)


@wp.func_native(
    native(
        "attitude",
        "h",
        """
        const REAL move[4] = {a, b, c, d};
        REAL start[4], vec[3], quat[4];
        for (int k = 0; k < 4; k++) start[k] = *wp::address(origin, q + k);
        formula::attitude_displace(mode, start, move, h, vec, quat);
        for (int k = 0; k < 4; k++) *wp::address(value, q + k) = quat[k];
        if (mode == formula::ATTITUDE_HIGH_ORDER) return;
        for (int k = 0; k < 3; k++) *wp::address(turn, u + k) = vec[k];
        """,
    )
)
def displace_attitude(
    mode: int,
    q: int,
    origin: wp.array(dtype=Any),
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    h: Any,
    u: int,
    turn: wp.array(dtype=Any),
    value: wp.array(dtype=Any),
):
    """Displace a quaternion of a world by h times a rate (a, b, c, d)."""
    ...


@wp.func_native(
    native(
        "attitude",
        "+qpos.data[0]",
        """
        REAL quat[4], vec[3] = {0, 0, 0}, spin[3], out[4] = {0, 0, 0, 0};
        for (int k = 0; k < 4; k++) quat[k] = *wp::address(qpos, q + k);
        for (int k = 0; k < 3; k++) spin[k] = *wp::address(qvel, v + k);
        if (mode == formula::ATTITUDE_LIE) {
          for (int k = 0; k < 3; k++) vec[k] = *wp::address(turn, u + k);
        }
        formula::attitude_rate(mode, quat, vec, spin, out);
        int width = mode == formula::ATTITUDE_HIGH_ORDER ? 4 : 3;
        for (int k = 0; k < width; k++) *wp::address(rate, r + k) = out[k];
        """,
    )
)
def record_attitude(
    mode: int,
    q: int,
    qpos: wp.array(dtype=Any),
    u: int,
    turn: wp.array(dtype=Any),
    v: int,
    qvel: wp.array(dtype=Any),
    r: int,
    rate: wp.array(dtype=Any),
):
    """Record the rate of a quaternion's coordinates in a world."""
    ...


@wp.func
def displace_position_world(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    layout: StateLayout,
    rotation: wp.array2d(dtype=Any),
    value: wp.array2d(dtype=Any),
    world: int,
):
    """Set value = origin ⊕ h Σ weights · rates; keep the rotation vectors."""
    step = h[world]
    if step == h.dtype(0.0):
        return
    for n in range(layout.flat_qpos.shape[0]):
        k = layout.flat_qpos[n]
        move = step * combined(rates, weights, world, layout.flat_rate[n])
        value[world, k] = origin[world, k] + move
    for n in range(layout.quat_qpos.shape[0]):
        r = layout.quat_rate[n]
        last = h.dtype(0.0)
        if layout.mode == HIGH_ORDER:
            last = combined(rates, weights, world, r + 3)
        displace_attitude(
            layout.mode,
            layout.quat_qpos[n],
            origin[world],
            combined(rates, weights, world, r),
            combined(rates, weights, world, r + 1),
            combined(rates, weights, world, r + 2),
            last,
            step,
            3 * n,
            rotation[world],
            value[world],
        )


@wp.func
def record_position_world(
    qvel: wp.array2d(dtype=Any),
    qpos: wp.array2d(dtype=Any),
    rotation: wp.array2d(dtype=Any),
    layout: StateLayout,
    rate: wp.array2d(dtype=Any),
    world: int,
):
    """Record the rates of the position's coordinates at a displaced state."""
    for n in range(layout.flat_rate.shape[0]):
        rate[world, layout.flat_rate[n]] = qvel[world, layout.flat_qvel[n]]
    for n in range(layout.quat_qpos.shape[0]):
        record_attitude(
            layout.mode,
            layout.quat_qpos[n],
            qpos[world],
            3 * n,
            rotation[world],
            layout.quat_qvel[n],
            qvel[world],
            layout.quat_rate[n],
            rate[world],
        )


@wp.kernel
def displace_position(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    layout: StateLayout,
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
    layout: StateLayout,
    chosen: wp.array(dtype=wp.bool),
    rate: wp.array2d(dtype=Any),
):
    """Record the rates of the chosen worlds."""
    world = wp.tid()
    if chosen[world]:
        record_position_world(qvel, qpos, rotation, layout, rate, world)


@wp.kernel
def advance_position(
    origin: wp.array2d(dtype=Any),
    rates: wp.array3d(dtype=Any),
    weights: wp.array(dtype=Any),
    h: wp.array(dtype=Any),
    layout: StateLayout,
    rotation: wp.array2d(dtype=Any),
    value: wp.array2d(dtype=Any),
    qvel: wp.array2d(dtype=Any),
    rate: wp.array2d(dtype=Any),
):
    """Record the rates of every world, one of `rates`, and move to the next stage."""
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
        [two, three, one, one, StateLayout, two, two],
    )
    wp.overload(
        advance_position,
        [two, three, one, one, StateLayout, two, two, two, two],
    )
    wp.overload(
        record_position,
        [two, two, two, StateLayout, wp.array(dtype=wp.bool), two],
    )


# Both precisions from the start: the kernels are compiled once and stay cached.
_overloads(wp.float64)
_overloads(wp.float32)
