/* Loads on an aircraft by its motion against the air; Earth axes are north, east, down. */
#ifndef SIMSTATE_CORE_FLIGHT_H_
#define SIMSTATE_CORE_FLIGHT_H_

#include "library.h"

/* A table is one row of numbers, the same for all worlds. It begins with
 *
 *   its size; the number of parameters of a world; the kind of the atmosphere, 0
 *   exponential or 1 standard; the number of controls; then where these start in it: the
 *   standard atmosphere, the wind field (0: the wind is steady), the controls, the model.
 *
 *   Standard atmosphere: whether altitudes are geopotential; number of layers and of
 *   points above; g₀ M₀ / R* [K/m]; M₀ / R* [kg·K/J]; layers (n, 4): base, geopotential
 *   [m], temperature [K], gradient [K/m], pressure [Pa]; points from its top on (m, 3):
 *   altitude [m], logarithms of pressure [Pa] and density [kg/m³]; 13 ratios of molar
 *   masses from 80 to 86 km.
 *
 *   Grid: its size; numbers of axes and of values at a point; whether it extends beyond
 *   its ends; whether each world has its own values; the variable that it is multiplied
 *   by, -1: none; of each axis the variable, the number of breakpoints, and these; then
 *   the values. A wind field is a grid of three values over time, north, east, height.
 *
 *   Control: address in act, -1: none; index in ctrl; range (2); lag [s].
 *
 *   Aerodynamics: axes of the forces, 0 wind, 1 stability or 2 body; the point, 0 COM, 1
 *   origin or 2 parameters; then of each coefficient, three forces and three moments: the
 *   number of derivatives, the variable of each (-1: a constant); the number of grids,
 *   and these.
 *
 *   Rotor: control, direction; whether it is a propeller, with grids of C_T and C_P.
 *
 * Variables: alpha, beta, mach, airspeed, altitude, p_hat, q_hat, r_hat, the controls.
 *
 * Parameters of a world: elevation [m]; of the atmosphere density [kg/m³], scale height
 * [m], base [m] and temperature [K], or temperature offset [K], density factor and two
 * that are not used; wind (3) [m/s]; then of the model:
 *   aerodynamics: area, span, chord, induced drag, point (3), derivatives in their order;
 *   rotors: position (3), axis (3), inertia, thrust and torque coefficients; propellers:
 *   the diameter and one that is not used instead of these. */
#define CORE_FLIGHT_HEAD 8
#define CORE_FLIGHT_NUMBERS 8 /* parameters before those of the model */

/* True if a table of this length is one of these, for one body of a model. */
int core_is_flight(const double* table, size_t count, int num_parameters,
                   const mjModel* m);

/* Adds the loads to xfrc_applied of a body; positions and velocities are current. */
void core_add_aerodynamics(const double* table, const double* parameter,
                           const mjModel* m, mjData* d, int body, int world);
void core_add_rotor(const double* table, const double* parameter, const mjModel* m,
                    mjData* d, int body, int world);

#endif
