/* Explicit Runge-Kutta pairs with steps of each world's own. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "integrate.h"

static const double SAFETY = 0.85;
static const double LEAST = 0.2, MOST = 10.0; /* how much a step may shrink or grow */

/* A part has tolerances: a block of the mechanics, or a process. */

static double greater(double a, double b) { /* NaN wins */
  return isnan(a) || a > b ? a : b;
}

static int num_parts(const core_world* w) {
  return CORE_PROCESSES + w->in->num_processes;
}

static const core_process* process_of(const core_world* w, int part) {
  return w->in->process + (part - CORE_PROCESSES);
}

static int block_of(int part) { return part < CORE_PROCESSES ? part : CORE_PROCESSES; }

/* The index of a part's first number in its block. */
static int first_of(const core_world* w, int part) {
  return part < CORE_PROCESSES ? 0 : process_of(w, part)->first;
}

static int num_dofs(const core_world* w, int part) {
  if (part == CORE_QPOS) return w->in->nv;
  return part >= CORE_PROCESSES ? process_of(w, part)->width : w->size[part];
}

/* 2 · vector part of conj(q) ⊗ r: a change of q as a rotation vector. */
static void as_rotation(const mjtNum q[4], const mjtNum r[4], mjtNum out[3]) {
  out[0] = 2 * (q[0] * r[1] - q[1] * r[0] - q[2] * r[3] + q[3] * r[2]);
  out[1] = 2 * (q[0] * r[2] + q[1] * r[3] - q[2] * r[0] - q[3] * r[1]);
  out[2] = 2 * (q[0] * r[3] - q[1] * r[2] + q[2] * r[1] - q[3] * r[0]);
}

/* A combination of the rates by dof: attitudes as rotation vectors [rad/s]. */
static void combine_by_dof(core_world* w, int part, const double* weights, int count) {
  const core_integrator* in = w->in;
  const mjtNum* sum = core_combine(w, block_of(part), weights, count);
  if (part != CORE_QPOS || in->scheme.attitude != CORE_HIGH_ORDER) {
    memcpy(w->error, sum + first_of(w, part), sizeof(mjtNum) * (size_t)num_dofs(w, part));
    return;
  }
  for (int i = 0; i < in->num_flat; i++) {
    w->error[in->flat_qvel[i]] = sum[in->flat_qpos[i]];
  }
  for (int i = 0; i < in->num_quats; i++) {
    int k = in->quat_qpos[i];
    as_rotation(w->origin[CORE_QPOS] + k, sum + k, w->error + in->quat_qvel[i]);
  }
}

/* What a relative tolerance is relative to, by dof: 1 rad for attitudes. */
static void measure_sizes(core_world* w, int part) {
  const core_integrator* in = w->in;
  int block = block_of(part), first = first_of(w, part);
  const mjtNum *origin = w->origin[block], *value = w->value[block];
  if (part == CORE_QPOS) {
    for (int i = 0; i < in->nv; i++) w->error_size[i] = 1;
    for (int i = 0; i < in->num_flat; i++) {
      int k = in->flat_qpos[i];
      w->error_size[in->flat_qvel[i]] = greater(fabs(origin[k]), fabs(value[k]));
    }
    return;
  }
  for (int i = 0; i < num_dofs(w, part); i++) {
    w->error_size[i] = greater(fabs(origin[first + i]), fabs(value[first + i]));
  }
}

static double tolerance(const core_world* w, int part, int k) {
  const core_integrator* in = w->in;
  const int first[] = {0, in->nv, 2 * in->nv, 2 * in->nv + in->na,
                       2 * in->nv + in->na + in->nbody};
  int at = k + first[block_of(part)] + first_of(w, part);
  return in->control.atol[at] + in->control.rtol[at] * w->error_size[k];
}

/* The greatest |error · h| of a part over its tolerance, and where it is. */
static double greatest_error(const core_world* w, int part, double h, int* where) {
  double greatest = 0;
  for (int k = 0; k < num_dofs(w, part); k++) {
    double error = fabs(w->error[k] * h / tolerance(w, part, k));
    if (error > greatest || (isnan(error) && !isnan(greatest))) {
      greatest = error;
      *where = k;
    }
  }
  return greatest;
}

/* The error of a trial step in units of the tolerance; NaN is bad. */
static double trial_error(core_world* w) {
  const core_scheme* s = &w->in->scheme;
  core_progress* at = w->at;
  double error = 0, h = at->h;
  at->worst = -1;
  for (int part = 0; part < num_parts(w); part++) {
    int where = 0, unused = 0;
    measure_sizes(w, part);
    combine_by_dof(w, part, s->b_error, s->num_stages);
    double own = greatest_error(w, part, h, &where);
    if (s->b_error_low) { /* DOP853 damps its fifth-order estimate by the third */
      combine_by_dof(w, part, s->b_error_low, s->num_stages);
      double low = greatest_error(w, part, h, &unused);
      double damping = own / sqrt(own * own + 0.01 * (low * low));
      own *= isnan(damping) ? 1 : damping;
    }
    error = greater(own, error);
    if ((isnan(own) ? INFINITY : own) > at->worst) {
      at->worst = isnan(own) ? INFINITY : own;
      at->worst_part = part;
      at->worst_element = where;
    }
  }
  return at->is_empty ? INFINITY : error; /* a step that empties a tank is too long */
}

/* A first step from the state's and the rates' size (Hairer's first guess). */
static double first_step(core_world* w, double span) {
  const double one = 1;
  double size = 0, speed = 0;
  for (int part = 0; part < num_parts(w); part++) {
    int unused;
    measure_sizes(w, part);
    combine_by_dof(w, part, &one, 1);
    for (int k = 0; k < num_dofs(w, part); k++) {
      size = greater(w->error_size[k] / tolerance(w, part, k), size);
    }
    speed = greater(greatest_error(w, part, 1, &unused), speed);
  }
  /* At rest, or at zero, nothing tells: begin with a thousandth of the span. */
  double guess = speed > 0 && size > 0 ? 0.01 * size / speed : 1e-3 * span;
  double least = fmin(fmax(1e-6 * span, w->in->control.min_step), span);
  return fmin(fmax(guess, least), span);
}

/* The next step: longer after a good one, shorter after a bad one. */
static double next_step(const core_world* w, double error, int good) {
  double power = 1.0 / (w->in->scheme.control_order + 1);
  double h = w->at->h, step_size = w->at->step_size;
  error = isnan(error) ? INFINITY : fmax(error, 1e-10);
  double factor = fmin(fmax(SAFETY * pow(error, -power), LEAST), MOST);
  if (!good) return h * fmin(factor, SAFETY);
  /* A step that was cut short to end on time says little: keep what was meant. */
  return h < step_size ? fmax(h * factor, step_size) : h * factor;
}

static void note_failure(const core_world* w) {
  const core_control* c = &w->in->control;
  const core_progress* at = w->at;
  size_t world = (size_t)w->world;
  c->stuck[world] = 1;
  c->failure[3 * world] = at->start + at->elapsed;
  c->failure[3 * world + 1] = at->h;
  c->failure[3 * world + 2] = at->worst;
  c->failure_at[2 * world] = at->worst_part;
  c->failure_at[2 * world + 1] = at->worst_element;
}

static void forget_empty(core_world* w) {
  w->at->is_empty = 0;
  if (!w->mass_rate) return;
  size_t nbody = (size_t)w->in->nbody;
  memset(w->in->empty + (size_t)w->world * nbody, 0, nbody);
}

static void move_to(core_world* w, int stage) {
  const core_scheme* s = &w->in->scheme;
  core_progress* at = w->at;
  at->stage = stage;
  core_displace(w, s->a + stage * s->num_stages, stage, at->h);
  w->d->time = (at->start + at->elapsed) + s->c[stage] * at->h;
}

/* Moves to the second stage of a step, whose first is recorded; or takes a break. */
static void begin_trial(core_world* w) {
  core_progress* at = w->at;
  if (at->evaluations >= w->in->budget) {
    at->is_done = 1;
    core_go_back(w);
    w->d->time = at->start + at->elapsed; /* a trial that is repeated was ahead */
    return;
  }
  at->h = fmin(fmin(at->step_size, at->span - at->elapsed), w->in->control.max_step);
  if (w->touch) {
    double now = at->start + at->elapsed;
    double finest = core_touch_resolution(now, w->in->control.min_step);
    at->h = core_touch_limit(w->touch, now, at->h, finest);
    at->is_located = at->h > finest;
  }
  forget_empty(w);
  move_to(w, 1);
}

/* Starts a step whose first stage is recorded. */
static void begin_step(core_world* w) {
  core_progress* at = w->at;
  core_touch_begin(w->touch, at->start + at->elapsed);
  if (at->step_size <= 0) at->step_size = first_step(w, at->span);
  begin_trial(w);
}

/* Clamped activations are not those that the last stage was evaluated with. */
static int is_last_at_end(const core_integrator* in) {
  return in->scheme.first_same_as_last && !in->act_low;
}

/* Starts the next step where the last one, which was good, has ended. */
static void start_next(core_world* w) {
  w->at->stage = 0;
  if (!is_last_at_end(w->in)) return;
  core_reuse_last(w);
  begin_step(w);
}

/* Repeats a trial that entered a contact after a time [s], up to the touch. */
static int is_repeated(core_world* w, double after) {
  core_progress* at = w->at;
  double ago;
  if (!at->is_located || !core_touch_enters(w->touch, &ago)) return 0;
  core_touch_locate(w->touch, at->start + at->elapsed, after, ago);
  at->rejected++;
  begin_trial(w);
  return 1;
}

/* Looks for contacts at the end of a trial, to which the state has moved. */
static void look_at_end(core_world* w) {
  if (!w->touch || is_last_at_end(w->in)) return;
  w->d->time = w->at->start + w->at->elapsed + w->at->h;
  lib.mj_fwdPosition(w->m, w->d);
  lib.mj_fwdVelocity(w->m, w->d);
  core_touch_look(w->touch, w->m, w->d, 1);
}

/* Decides on a step whose stages have all been evaluated. */
static void end_trial(core_world* w) {
  const core_scheme* s = &w->in->scheme;
  core_progress* at = w->at;
  double unused;
  core_displace(w, s->b, s->num_stages, at->h);
  look_at_end(w);
  if (is_repeated(w, at->h)) return;
  double error = trial_error(w), travel = core_touch_travel(w->touch, w->m, at->h);
  int enters = core_touch_enters(w->touch, &unused); /* within the resolution */
  int good = enters ? isfinite(error) : error <= 1 && travel <= 1;
  at->step_size = next_step(w, error, good);
  at->step_size = fmin(at->step_size, at->h * fmax(SAFETY / travel, LEAST));
  core_clamp_activations(w);
  if (good) at->elapsed += at->h;
  at->accepted += good;
  at->rejected += !good;
  at->is_finished =
      good && (at->is_single || at->span - at->elapsed <= 1e-12 * at->span);
  double now = at->start + at->elapsed;
  double least = fmax(4 * DBL_EPSILON * fabs(now), w->in->control.min_step);
  at->is_stuck = !at->is_finished && at->step_size < least && !(good && enters);
  w->d->time = now;
  at->is_done = at->is_finished || at->is_stuck;
  if (good) {
    core_touch_end(w->touch, now, at->h, enters);
    if (enters) at->step_size = 0; /* the motion has changed: guess again */
    core_begin(w);
  }
  if (at->is_done) {
    core_finish(w);
    if (at->is_finished && !at->is_single) w->d->time = at->start + at->span;
  } else if (good) {
    start_next(w);
  } else {
    begin_trial(w);
  }
}

static void begin(core_world* w) {
  const core_integrator* in = w->in;
  const core_control* c = &in->control;
  core_progress* at = w->at;
  at->is_single = in->own_step != NULL;
  at->start = c->start[w->world];
  at->elapsed = c->elapsed[w->world];
  at->span = at->is_single ? in->own_step[w->world] : in->span;
  at->step_size = c->step_size[w->world];
  at->stage = 0;
  /* The first evaluation after a break is the one before it again. */
  at->evaluations = c->unfinished[w->world] ? -1 : 0;
  core_touch_open(w->touch);
  core_begin(w);
}

static void next(core_world* w) {
  const core_scheme* s = &w->in->scheme;
  core_progress* at = w->at;
  if (at->stage == 0) {
    begin_step(w);
  } else if (is_repeated(w, s->c[at->stage] * at->h)) {
    return;
  } else if (at->stage + 1 < s->num_stages) {
    move_to(w, at->stage + 1);
  } else {
    end_trial(w);
  }
}

static void end(core_world* w) {
  const core_control* c = &w->in->control;
  const core_progress* at = w->at;
  size_t world = (size_t)w->world;
  c->unfinished[world] = !at->is_finished && !at->is_stuck;
  c->elapsed[world] = at->elapsed;
  c->step_size[world] = at->step_size;
  c->accepted[world] += at->accepted;
  c->rejected[world] += at->rejected;
  if (at->is_stuck) note_failure(w);
  if (!at->is_finished) return;
  forget_empty(w);
  core_note_step(w, at->is_single ? at->elapsed : at->span);
}

const core_method core_adaptive = {begin, next, end};
