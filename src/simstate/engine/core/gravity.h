/* The gravity of a central body: harmonics that turn with it, and other bodies. */
#ifndef SIMSTATE_CORE_GRAVITY_H_
#define SIMSTATE_CORE_GRAVITY_H_

#include "library.h"

#define CORE_MAX_DEGREE 362    /* of the functions: two more than the field's */
#define CORE_MAX_BODIES 32     /* that disturb the central one */
#define CORE_FIELD_HEAD 6      /* numbers before the arrays of a table */
#define CORE_FIELD_NUMBERS 5   /* parameters before those of the other bodies */

/* A table is one row of numbers, the same for all worlds:
 *
 *   degree of the functions (0: a point mass), kind of rotation, number of other bodies,
 *   three numbers of the Earth's rotation angle: UT1 − TT [s], and the days since J2000
 *   at t = 0, of which the second has no whole days;
 *   if there are harmonics: a, b (degree + 1, degree + 1), d (degree + 1), weights of the
 *   acceleration (2·K, 3) and of the gradient (2·K, 6), K = (degree + 1)(degree + 2)/2;
 *   if the rotation is the Earth's: polynomials of the pole's X, Y and s [rad];
 *   for each other body: polynomials of its place from the central one [m].
 *
 * Polynomials are the start [s], the length of a segment [s], the number of segments, the
 * degree, and Chebyshev's coefficients (segments, degree + 1, 3); without segments the
 * body stays where the parameters say.
 *
 * Parameters of a world: mu [m³/s²], reference radius [m], rate of rotation [rad/s] and
 * angle at t = 0 [rad], whether the gradient turns bodies; then (mu, x, y, z) of each
 * other body. */
typedef enum {
  CORE_NO_ROTATION = 0, CORE_UNIFORM_ROTATION = 1, CORE_EARTH_ROTATION = 2
} core_rotation;

/* True if a table of this length is well formed for this many parameters. */
int core_is_field(const double* table, size_t count, int num_parameters);

/* The acceleration at a place from the central body [m/s²]. */
void core_field_acceleration(const double* table, const double* parameter, double t,
                             const double pos[3], double acc[3]);

/* The acceleration at `pos + offset` beyond that at `pos`. */
void core_field_difference(const double* table, const double* parameter, double t,
                           const double pos[3], const double offset[3], double acc[3]);

/* The torque of the gradient about the COM of a body at a place, world axes [N·m]:
 * principal moments, and the matrix from the principal axes to the world's. */
void core_field_torque(const double* table, const double* parameter, double t,
                       const double pos[3], const mjtNum inertia[3],
                       const mjtNum axes[9], double torque[3]);

/* The same of a point mass, which `difference` gives without a difference of two
 * nearly equal numbers. */
void core_point_acceleration(double mu, const double from_mass[3], double acc[3]);
void core_point_difference(double mu, const double from_mass[3], const double offset[3],
                           double acc[3]);

#endif
