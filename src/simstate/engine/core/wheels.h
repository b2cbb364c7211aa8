/* Reaction wheels: motors that fade at their greatest speed, and friction. */
#ifndef SIMSTATE_CORE_WHEELS_H_
#define SIMSTATE_CORE_WHEELS_H_

#include "library.h"

/* A table is the number of wheels, then the dof and the control of each. Parameters of a
 * world: greatest speed [rad/s], viscous [N·m·s] and Coulomb friction [N·m] of each. */

/* True if a table of this length fits a model and this many parameters. */
int core_is_wheels(const double* table, size_t count, int num_parameters,
                   const mjModel* m);

/* Changes the wheels' controls, and adds their friction to qfrc_applied. */
void core_turn_wheels(const double* table, const double* parameter, mjData* d);

#endif
