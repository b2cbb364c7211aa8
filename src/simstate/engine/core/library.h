/* The functions of libmujoco, by address.
 *
 * The core runs C functions on the worlds of a batch through libmujoco's mjb_apply.
 * It is not linked with libmujoco: Python hands over the addresses of the functions
 * that MuJoCo's own package has loaded, so that both work on one library.
 */
#ifndef SIMSTATE_CORE_LIBRARY_H_
#define SIMSTATE_CORE_LIBRARY_H_

#include <stddef.h>
#include <stdint.h>

#include <mujoco/mjbatch.h>
#include <mujoco/mujoco.h>

_Static_assert(sizeof(mjtNum) == sizeof(double), "MuJoCo in double precision");

/* Exported by libmujoco, but in no public header: y = A x in compressed rows. */
void mju_mulMatVecSparse(mjtNum* res, const mjtNum* mat, const mjtNum* vec, int nr,
                         const int* rownnz, const int* rowadr, const int* colind,
                         const int* rowsuper);

/* Likewise: mj_step without the stages up to `skipstage`, and without sensors. */
void mj_stepSkip(const mjModel* m, mjData* d, int skipstage, int skipsensor);

#define CORE_FUNCTIONS(X)                                                            \
  X(mj_version) X(mj_step) X(mj_forwardSkip) X(mj_checkPos) X(mj_checkVel)           \
  X(mj_checkAcc) X(mj_Euler) X(mj_RungeKutta) X(mj_implicit) X(mj_contactForce)      \
  X(mj_fwdKinematics) X(mj_transmission) X(mj_comVel) X(mj_fwdPosition)              \
  X(mj_fwdVelocity) X(mj_sensorPos) X(mj_sensorVel) X(mj_energyPos) X(mj_energyVel)  \
  X(mju_mulMatVecSparse) X(mju_mulMatTVec3) X(mj_setConst) X(mj_getState)            \
  X(mj_setState) X(mju_quat2Mat) X(mj_rnePostConstraint) X(mju_error)                \
  X(mj_markStack) X(mj_freeStack) X(mj_stackAllocNum) X(mj_kinematics) X(mj_flex)    \
  X(mj_ray) X(mjb_makeBatch) X(mjb_deleteBatch) X(mjb_nstate) X(mjb_state)           \
  X(mjb_warning) X(mjb_status) X(mjb_error) X(mjb_output) X(mjb_expand)              \
  X(mjb_setConst) X(mjb_forward) X(mjb_apply) X(mjb_getModel)            \
  X(mjb_nthread) X(mjb_model) X(mj_stepSkip) X(mj_differentiatePos)                  \
  X(mj_integratePos) X(mj_stateSize)

/* Variables of libmujoco that hold functions of the user. */
#define CORE_CALLBACKS(X)                                                            \
  X(mjcb_passive) X(mjcb_control) X(mjcb_contactfilter) X(mjcb_sensor) X(mjcb_time)  \
  X(mjcb_act_dyn) X(mjcb_act_gain) X(mjcb_act_bias)

typedef struct {
#define X(name) __typeof__(&name) name;
  CORE_FUNCTIONS(X)
#undef X
#define X(name) void** name;
  CORE_CALLBACKS(X)
#undef X
  void (**mju_user_warning)(const char*);
  const void* own_timer;  /* what mjcb_time holds when the user has set nothing */
} core_library;

extern core_library lib;

extern const char* const core_symbols[]; /* in the order of core_connect; NULL ends */

/* Takes the addresses of core_symbols, and the timer that is libmujoco's own. */
void core_connect(void* const* address, const void* own_timer);

/* Whether the user has installed a physics callback of any kind. */
int core_has_callbacks(void);

#endif
