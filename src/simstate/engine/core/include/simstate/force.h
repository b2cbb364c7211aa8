/* Force models as C functions.
 *
 * Give sim.add_force() an object whose `address` is that of such a function, and
 * optionally `parameters`, an array of float64 and shape (num_envs, k) that stays live.
 */
#ifndef SIMSTATE_FORCE_H_
#define SIMSTATE_FORCE_H_

#include <mujoco/mujoco.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Positions and velocities of d are current (mj_fwdPosition, mj_fwdVelocity).
 *
 * Add to d->xfrc_applied, d->qfrc_applied or d->ctrl, and change nothing else. Called for
 * each world at every evaluation of the dynamics, by any thread, several at a time,
 * without Python's lock: keep no state, and do not raise. `parameters` is the row of this
 * world; it is not NULL. */
typedef void (*simstate_force)(const mjModel* m, mjData* d, const double* parameters,
                               int world);

#ifdef __cplusplus
}
#endif

#endif
