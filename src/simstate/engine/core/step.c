/* Steps of MuJoCo's own, then what is read after them, in one pass over the worlds. */
#include <math.h>

#include "core.h"

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

void core_step_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_step* step = argument;
  for (int i = 0; i < step->num_steps; i++) {
    lib.mj_step(m, d);
    if (step->maxima) keep_maxima(step->maxima, d, world);
  }
  if (step->outputs) {
    core_refresh(m, d, step->outputs->needs);
    core_copy_out(step->outputs, d, world);
  }
}
