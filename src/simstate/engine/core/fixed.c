/* Explicit Runge-Kutta schemes with a fixed step. */
#include "integrate.h"

static void step_once(core_world* w, mjtNum h) {
  const core_integrator* in = w->in;
  const core_scheme* s = &in->scheme;
  mjtNum start = w->d->time;
  int limited = s->b_error != NULL; /* as adaptive steps are */
  core_begin(w);
  for (int stage = 0; stage < s->num_stages; stage++) {
    int last = stage + 1 == s->num_stages;
    if (core_has_readers(in)) w->d->time = start + h * s->c[stage];
    core_evaluate(w, last);
    core_record(w, stage, limited);
    const double* weights = last ? s->b : s->a + (stage + 1) * s->num_stages;
    core_displace(w, weights, stage + 1, h);
  }
  w->d->time = start + h;
  core_finish(w);
}

void core_fixed_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_integrator* in = argument;
  core_world w;
  core_world_open(&w, in, m, d, world);
  if (in->own_step) {
    step_once(&w, in->own_step[world]);
  } else {
    for (int i = 0; i < in->num_steps; i++) step_once(&w, in->step);
  }
  core_world_close(&w);
}

void core_stage_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_stage* a = argument;
  const core_integrator* in = &a->in;
  const core_scheme* s = &in->scheme;
  core_world w;
  core_world_reopen(&w, in, m, d, world, a->memory + (size_t)world * a->numbers);
  int stage = a->stage, last = stage + 1 == s->num_stages;
  if (!stage) {
    core_begin(&w);
    *w.start = d->time;
  }
  d->time = *w.start + in->step * s->c[stage];
  core_evaluate_inputs(&w, last);
  core_record(&w, stage, s->b_error != NULL);
  core_displace(&w, last ? s->b : s->a + (stage + 1) * s->num_stages, stage + 1,
                in->step);
  d->time = *w.start + in->step * (last ? 1.0 : s->c[stage + 1]);
  if (!last) return;
  in->evaluations[world] += s->num_stages;
  core_finish(&w);
  if (a->is_end && in->outputs) {
    core_refresh(m, d, in->outputs->needs);
    core_copy_out(in->outputs, d, world, CORE_EVALUATED | CORE_REFRESHED);
  }
}
