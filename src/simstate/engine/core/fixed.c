/* Explicit Runge-Kutta schemes with a fixed step. */
#include "integrate.h"

static void begin_step(core_world* w) {
  w->at->start = w->d->time;
  w->at->stage = 0;
  core_begin(w);
}

static void begin(core_world* w) {
  const core_integrator* in = w->in;
  w->at->num_steps = in->own_step ? 1 : in->num_steps;
  w->at->h = in->own_step ? in->own_step[w->world] : in->step;
  w->at->is_done = w->at->num_steps < 1;
  begin_step(w);
}

static void next(core_world* w) {
  const core_scheme* s = &w->in->scheme;
  core_progress* at = w->at;
  int last = at->stage + 1 == s->num_stages;
  const double* weights = last ? s->b : s->a + (at->stage + 1) * s->num_stages;
  core_displace(w, weights, at->stage + 1, at->h);
  at->stage++;
  if (!last) {
    w->d->time = at->start + at->h * s->c[at->stage];
    return;
  }
  w->d->time = at->start + at->h;
  core_finish(w);
  core_note_step(w, at->h);
  at->is_done = --at->num_steps < 1;
  if (!at->is_done) begin_step(w);
}

static void end(core_world* w) { (void)w; }

const core_method core_fixed = {begin, next, end};
