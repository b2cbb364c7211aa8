/* Steps of MuJoCo's own under controls of each step, with samples of the state. */
#ifndef SIMSTATE_CORE_ROLLOUT_H_
#define SIMSTATE_CORE_ROLLOUT_H_

#include "step.h"

typedef struct {
  const double* ctrl;          /* of world 0, (steps, nu); NULL: they stay */
  size_t stride;               /* to the controls of the next world; 0: the same */
  int num_worlds;
  int num_samples;
  const int* sample;           /* numbers of steps after which a sample is taken; rising */
  core_outputs recorded;       /* (num_samples, num_worlds, bytes) each */
  const core_outputs* outputs; /* refreshed and copied after the last step */
  const core_kept* kept;
  int64_t first_step;          /* of this round */
  int num_steps, first_sample, is_last;
} core_rollout;

/* mjfBatchFunc: as many steps as calls of core_step_world with one step each. */
void core_rollout_world(const mjModel* m, mjData* d, int world, void* rollout);

#endif
