/* Steps of MuJoCo's own under controls of each step, with samples of the state. */
#include "rollout.h"

#include <string.h>

static void take_sample(const core_rollout* r, const mjModel* m, mjData* d, int world,
                        int sample) {
  if (r->recorded.needs) core_refresh(m, d, r->recorded.needs);
  core_copy_out(&r->recorded, d, sample * r->num_worlds + world,
                CORE_EVALUATED | CORE_REFRESHED);
}

void core_rollout_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_rollout* r = argument;
  size_t nu = (size_t)m->nu;
  const double* ctrl = r->ctrl;
  if (ctrl) ctrl += (size_t)world * r->stride + (size_t)r->first_step * nu;
  core_step step = {.all_steps = 1,
                    .num_steps = 1,
                    .is_first = 1,
                    .kept = r->kept,
                    .num_other_sensors = -1};
  int sample = r->first_sample;
  for (int i = 0; i < r->num_steps; i++) {
    int is_sample = sample < r->num_samples && r->sample[sample] == r->first_step + i + 1;
    int is_end = r->is_last && i + 1 == r->num_steps;
    if (ctrl) memcpy(d->ctrl, ctrl + (size_t)i * nu, nu * sizeof(double));
    step.is_last = is_end || is_sample;
    step.outputs = is_end ? r->outputs : NULL;
    core_step_world(m, d, world, &step);
    if (is_sample) take_sample(r, m, d, world, sample++);
  }
}
