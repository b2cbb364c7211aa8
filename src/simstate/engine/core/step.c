/* Steps of MuJoCo's own, then what is read after them, in one pass over the worlds. */
#include <math.h>

#include "step.h"

static void keep_maxima(const core_maxima* maxima, const mjData* d, int world) {
  double* greatest = maxima->greatest + (size_t)world * maxima->num_groups;
  for (int i = 0; i < maxima->num_groups; i++) {
    const core_group* g = maxima->group + i;
    const mjtNum* x = *(mjtNum* const*)((const char*)d + g->offset) + g->start;
    double square = 0;
    for (int k = 0; k < g->width; k++) square += x[k] * x[k];
    double norm = sqrt(square);
    if (norm > greatest[i] || isnan(norm)) greatest[i] = norm;
  }
}

/* Whether a step may leave its sensors out: nobody reads them, and they move nothing. */
static int may_skip_sensors(const mjModel* m) {
  return m->nsensor && !m->nhistory && !m->nplugin && !core_has_callbacks() &&
         m->opt.integrator <= mjINT_IMPLICITFAST &&
         !(m->opt.enableflags & (mjENBL_SLEEP | mjENBL_IPC | mjENBL_FWDINV));
}

/* mj_step without the sensors; the state has the same bits. */
static void step_without_sensors(const mjModel* m, mjData* d) {
  lib.mj_checkPos(m, d);
  lib.mj_checkVel(m, d);
  lib.mj_forwardSkip(m, d, mjSTAGE_NONE, 1);
  lib.mj_checkAcc(m, d);
  switch (m->opt.integrator) {
    case mjINT_EULER:
      lib.mj_Euler(m, d);
      break;
    case mjINT_RK4:
      lib.mj_RungeKutta(m, d, 4);
      break;
    default:
      lib.mj_implicit(m, d);
  }
}

void core_step_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_step* step = argument;
  int may_skip = !step->maxima && may_skip_sensors(m);
  for (int i = 0; i < step->num_steps; i++) {
    if (may_skip && !(step->is_last && i + 1 == step->num_steps)) {
      step_without_sensors(m, d);
    } else {
      lib.mj_step(m, d);
    }
    if (step->maxima) keep_maxima(step->maxima, d, world);
  }
  if (step->outputs) {
    core_refresh(m, d, step->outputs->needs);
    core_copy_out(step->outputs, d, world);
  }
}
