/* Positions and velocities at a new state, without masses, contacts and forces. */
#include <string.h>

#include "step.h"

/* The whole velocity stage, in the order of mjb_step. */
static void whole_stage(const mjModel* m, mjData* d) {
  int energy = m->opt.enableflags & mjENBL_ENERGY;
  lib.mj_fwdPosition(m, d);
  lib.mj_sensorPos(m, d);
  if (!d->flg_energypos) {
    if (energy) {
      lib.mj_energyPos(m, d);
    } else {
      d->energy[0] = d->energy[1] = 0;
    }
  }
  lib.mj_fwdVelocity(m, d);
  lib.mj_sensorVel(m, d);
  if (energy && !d->flg_energyvel) lib.mj_energyVel(m, d);
}

void core_refresh(const mjModel* m, mjData* d, int needs) {
  lib.mj_checkPos(m, d);
  lib.mj_checkVel(m, d);
  if (needs & CORE_ALL) {
    whole_stage(m, d);
    return;
  }
  /* What mj_fwdPosition and mj_fwdVelocity clear: sensors compute these when needed,
   * and would take those of the state before. */
  d->flg_energypos = d->flg_energyvel = d->flg_subtreevel = 0;
  if (needs & CORE_KINEMATICS) lib.mj_fwdKinematics(m, d);
  if (needs & CORE_TRANSMISSION) lib.mj_transmission(m, d);
  if (needs & CORE_SENSORS) lib.mj_sensorPos(m, d);
  if (needs & CORE_TENDON_VELOCITY) {
    lib.mju_mulMatVecSparse(d->ten_velocity, d->ten_J, d->qvel, (int)m->ntendon,
                            m->ten_J_rownnz, m->ten_J_rowadr, m->ten_J_colind, NULL);
  }
  if (needs & CORE_ACTUATOR_VELOCITY) {
    if (m->opt.disableflags & mjDSBL_ACTUATION) {
      memset(d->actuator_velocity, 0, sizeof(mjtNum) * (size_t)m->nout);
    } else {
      lib.mju_mulMatVecSparse(d->actuator_velocity, d->actuator_moment, d->qvel,
                              (int)m->nout, d->moment_rownnz, d->moment_rowadr,
                              d->moment_colind, NULL);
    }
  }
  if (needs & CORE_VELOCITY) lib.mj_comVel(m, d);
  if (needs & CORE_SENSORS) lib.mj_sensorVel(m, d);
}

void core_copy_out(const core_outputs* outputs, const mjData* d, int world, int kinds) {
  for (int i = 0; i < outputs->num_outputs; i++) {
    const core_output* o = outputs->output + i;
    if (!(o->kind & kinds)) continue;
    const char* at = (const char*)d + o->offset;
    memcpy(o->to + (size_t)world * o->bytes, o->is_scalar ? at : *(char* const*)at,
           o->bytes);
  }
}
