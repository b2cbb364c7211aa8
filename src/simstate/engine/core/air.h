/* A planet's air by altitude: exponential, or the layers of a standard atmosphere. */
#ifndef SIMSTATE_CORE_AIR_H_
#define SIMSTATE_CORE_AIR_H_

#include "library.h"

#define CORE_AIR_HEAD 8      /* numbers before the arrays of a table */
#define CORE_AIR_NUMBERS 3   /* parameters of a world */

/* A table is one row of numbers, the same for all worlds:
 *
 *   equatorial radius [m], flattening, rate of rotation of the air about z [rad/s],
 *   whether heights are geopotential, number of layers, number of points above them,
 *   g₀ M₀ / R* [K/m] and M₀ / R* [kg·K/J];
 *   layers (n, 4): base, geopotential [m], temperature [K], gradient [K/m], pressure [Pa];
 *   points above (m, 2): geometric altitude [m], logarithm of the density [kg/m³].
 *
 * Parameters of a world: without layers density [kg/m³], scale height and base [m]; with
 * layers a factor of the density, and two that are not used. */

/* True if a table of this length is well formed. */
int core_is_air(const double* table, size_t count);

/* The density at a place from the planet's centre [kg/m³]. */
double core_air_density(const double* table, const double* parameter,
                        const double pos[3]);

/* The velocity of the air there [m/s], added to what is given. */
void core_add_air_velocity(const double* table, const double pos[3], double vel[3]);

#endif
