/* Explicit Runge-Kutta pairs with steps of each world's own. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "integrate.h"

static const double SAFETY = 0.85;
static const double LEAST = 0.2, MOST = 10.0; /* how much a step may shrink or grow */

/* What has a tolerance: the blocks, with each moving frame for itself. */
typedef struct {
  core_world w;
  core_touch* touch; /* NULL: no contact or limit can begin */
  mjtNum *error, *size; /* of one part, by dof */
  double worst;
  int worst_part, worst_element;
} trial;

static double greater(double a, double b) { /* NaN wins */
  return isnan(a) || a > b ? a : b;
}

static int num_parts(const core_world* w) { return CORE_FRAMES + w->in->num_frames; }

static int num_dofs(const core_world* w, int part) {
  if (part == CORE_QPOS) return w->in->nv;
  return part >= CORE_FRAMES ? 6 : w->size[part];
}

/* 2 · vector part of conj(q) ⊗ r: a change of q as a rotation vector. */
static void as_rotation(const mjtNum q[4], const mjtNum r[4], mjtNum out[3]) {
  out[0] = 2 * (q[0] * r[1] - q[1] * r[0] - q[2] * r[3] + q[3] * r[2]);
  out[1] = 2 * (q[0] * r[2] + q[1] * r[3] - q[2] * r[0] - q[3] * r[1]);
  out[2] = 2 * (q[0] * r[3] - q[1] * r[2] + q[2] * r[1] - q[3] * r[0]);
}

/* A combination of the rates by dof: attitudes as rotation vectors [rad/s]. */
static void combine_by_dof(trial* t, int part, const double* weights, int count) {
  core_world* w = &t->w;
  const core_integrator* in = w->in;
  const mjtNum* sum =
      core_combine(w, part < CORE_FRAMES ? part : CORE_FRAMES, weights, count);
  if (part != CORE_QPOS || in->scheme.attitude != CORE_HIGH_ORDER) {
    int first = part > CORE_FRAMES ? 6 * (part - CORE_FRAMES) : 0;
    memcpy(t->error, sum + first, sizeof(mjtNum) * num_dofs(w, part));
    return;
  }
  for (int i = 0; i < in->num_flat; i++) {
    t->error[in->flat_qvel[i]] = sum[in->flat_qpos[i]];
  }
  for (int i = 0; i < in->num_quats; i++) {
    int k = in->quat_qpos[i];
    as_rotation(w->origin[CORE_QPOS] + k, sum + k, t->error + in->quat_qvel[i]);
  }
}

/* What a relative tolerance is relative to, by dof: 1 rad for attitudes. */
static void measure_sizes(trial* t, int part) {
  core_world* w = &t->w;
  const core_integrator* in = w->in;
  int block = part < CORE_FRAMES ? part : CORE_FRAMES;
  const mjtNum *origin = w->origin[block], *value = w->value[block];
  if (part == CORE_QPOS) {
    for (int i = 0; i < in->nv; i++) t->size[i] = 1;
    for (int i = 0; i < in->num_flat; i++) {
      int k = in->flat_qpos[i];
      t->size[in->flat_qvel[i]] = greater(fabs(origin[k]), fabs(value[k]));
    }
    return;
  }
  int first = part > CORE_FRAMES ? 6 * (part - CORE_FRAMES) : 0;
  for (int i = 0; i < num_dofs(w, part); i++) {
    t->size[i] = greater(fabs(origin[first + i]), fabs(value[first + i]));
  }
}

static double tolerance(const trial* t, int part, int k) {
  const core_integrator* in = t->w.in;
  const int first[] = {0, in->nv, 2 * in->nv, 2 * in->nv + in->na};
  int at = k + (part < CORE_FRAMES
                    ? first[part]
                    : first[CORE_MASS] + in->nbody + 6 * (part - CORE_FRAMES));
  return in->control.atol[at] + in->control.rtol[at] * t->size[k];
}

/* The greatest |error · h| of a part over its tolerance, and where it is. */
static double greatest_error(const trial* t, int part, double h, int* where) {
  double greatest = 0;
  for (int k = 0; k < num_dofs(&t->w, part); k++) {
    double error = fabs(t->error[k] * h / tolerance(t, part, k));
    if (error > greatest || (isnan(error) && !isnan(greatest))) {
      greatest = error;
      *where = k;
    }
  }
  return greatest;
}

/* The error of a trial step in units of the tolerance; NaN is bad. */
static double trial_error(trial* t, double h) {
  core_world* w = &t->w;
  const core_scheme* s = &w->in->scheme;
  double error = 0;
  t->worst = -1;
  for (int part = 0; part < num_parts(w); part++) {
    int where = 0, unused = 0;
    measure_sizes(t, part);
    combine_by_dof(t, part, s->b_error, s->num_stages);
    double own = greatest_error(t, part, h, &where);
    if (s->b_error_low) { /* DOP853 damps its fifth-order estimate by the third */
      combine_by_dof(t, part, s->b_error_low, s->num_stages);
      double low = greatest_error(t, part, h, &unused);
      double damping = own / sqrt(own * own + 0.01 * (low * low));
      own *= isnan(damping) ? 1 : damping;
    }
    error = greater(own, error);
    if ((isnan(own) ? INFINITY : own) > t->worst) {
      t->worst = isnan(own) ? INFINITY : own;
      t->worst_part = part;
      t->worst_element = where;
    }
  }
  return w->is_empty ? INFINITY : error; /* a step that empties a tank is too long */
}

/* A first step from the state's and the rates' size (Hairer's first guess). */
static double first_step(trial* t, double span) {
  const double one = 1;
  double size = 0, speed = 0;
  for (int part = 0; part < num_parts(&t->w); part++) {
    int unused;
    measure_sizes(t, part);
    combine_by_dof(t, part, &one, 1);
    for (int k = 0; k < num_dofs(&t->w, part); k++) {
      size = greater(t->size[k] / tolerance(t, part, k), size);
    }
    speed = greater(greatest_error(t, part, 1, &unused), speed);
  }
  /* At rest, or at zero, nothing tells: begin with a thousandth of the span. */
  double guess = speed > 0 && size > 0 ? 0.01 * size / speed : 1e-3 * span;
  double least = fmin(fmax(1e-6 * span, t->w.in->control.min_step), span);
  return fmin(fmax(guess, least), span);
}

/* The next step: longer after a good one, shorter after a bad one. */
static double next_step(const trial* t, double step_size, double h, double error,
                        int good) {
  double power = 1.0 / (t->w.in->scheme.control_order + 1);
  error = isnan(error) ? INFINITY : fmax(error, 1e-10);
  double factor = fmin(fmax(SAFETY * pow(error, -power), LEAST), MOST);
  if (!good) return h * fmin(factor, SAFETY);
  /* A step that was cut short to end on time says little: keep what was meant. */
  return h < step_size ? fmax(h * factor, step_size) : h * factor;
}

/* The positions and velocities at the end of a trial step, with its contacts. */
static void evaluate_end(trial* t, double time) {
  core_world* w = &t->w;
  w->d->time = time;
  if (w->in->scheme.first_same_as_last && !w->in->act_low) return; /* the last stage's */
  lib.mj_fwdPosition(w->m, w->d);
  lib.mj_fwdVelocity(w->m, w->d);
}

/* Runs the stages after the first, and moves to the end of the step.
 *
 * Returns 1 if a contact begins on the way, at once where `is_located` is set: its time
 * is then passed on. */
static int try_step(trial* t, double start, double h, int is_located) {
  core_world* w = &t->w;
  double ago;
  const core_scheme* s = &w->in->scheme;
  w->is_empty = 0;
  if (w->mass_rate) {
    memset(w->in->empty + (size_t)w->world * w->in->nbody, 0, w->in->nbody);
  }
  for (int stage = 1; stage < s->num_stages; stage++) {
    core_displace(w, s->a + stage * s->num_stages, stage, h);
    w->d->time = start + s->c[stage] * h;
    core_evaluate(w, stage + 1 == s->num_stages);
    core_record(w, stage, 1);
    if (is_located && core_touch_enters(t->touch, &ago)) {
      core_touch_locate(t->touch, start, s->c[stage] * h, ago);
      return 1;
    }
  }
  core_displace(w, s->b, s->num_stages, h);
  if (!t->touch) return 0;
  evaluate_end(t, start + h);
  int enters = core_touch_enters(t->touch, &ago);
  if (enters && is_located) core_touch_locate(t->touch, start, h, ago);
  return enters;
}

/* Lets a world whose step was good begin the next one. */
static void start_next(trial* t) {
  core_world* w = &t->w;
  const core_integrator* in = w->in;
  /* Clamped activations are not those that the last stage was evaluated with. */
  if (!in->scheme.first_same_as_last || in->act_low) core_evaluate(w, 0);
  core_record(w, 0, 1);
  core_touch_begin(t->touch);
}

static void note_failure(const trial* t, double time, double h) {
  const core_control* c = &t->w.in->control;
  size_t world = t->w.world;
  c->stuck[world] = 1;
  c->failure[3 * world] = time;
  c->failure[3 * world + 1] = h;
  c->failure[3 * world + 2] = t->worst;
  c->failure_at[2 * world] = t->worst_part;
  c->failure_at[2 * world + 1] = t->worst_element;
}

void core_adaptive_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_integrator* in = argument;
  const core_control* c = &in->control;
  int is_single = in->own_step != NULL;
  double start = c->start[world], elapsed = c->elapsed[world];
  double span = is_single ? in->own_step[world] : in->span;
  double step_size = c->step_size[world], last = 0;
  int64_t accepted = 0, rejected = 0;
  int finished = 0, is_stuck = 0, good = 1;
  trial t;
  core_world* w = &t.w;
  core_world_open(w, in, m, d, world);
  int widest = in->nv > in->na ? in->nv : in->na;
  widest = widest > in->nbody ? widest : in->nbody;
  t.error = lib.mj_stackAllocNum(d, widest + 6);
  t.size = lib.mj_stackAllocNum(d, widest + 6);
  t.touch = in->touch ? in->touch + world : NULL;
  core_touch_open(t.touch, m, d);

  core_begin(w);
  core_evaluate(w, 0);
  core_record(w, 0, 1);
  core_touch_begin(t.touch);
  if (c->unfinished[world]) w->evaluations--; /* it is the one before the break again */
  if (step_size <= 0) step_size = first_step(&t, span);
  while (!finished && !is_stuck && w->evaluations < in->budget) {
    double now = start + elapsed, finest = core_touch_resolution(now, c->min_step);
    double h = fmin(fmin(step_size, span - elapsed), c->max_step);
    h = core_touch_limit(t.touch, now, h, finest);
    int is_located = t.touch && h > finest;
    int enters = try_step(&t, now, h, is_located);
    if (enters && is_located) { /* again, up to the touch */
      rejected++;
      continue;
    }
    double error = trial_error(&t, h), travel = core_touch_travel(t.touch, h);
    good = enters ? isfinite(error) : error <= 1 && travel <= 1;
    step_size = next_step(&t, step_size, h, error, good);
    step_size = fmin(step_size, h * fmax(SAFETY / travel, LEAST));
    core_clamp_activations(w);
    if (good) elapsed += h;
    accepted += good;
    rejected += !good;
    finished = good && (is_single || span - elapsed <= 1e-12 * span);
    double least = fmax(4 * DBL_EPSILON * fabs(start + elapsed), c->min_step);
    is_stuck = !finished && !(good && enters) && step_size < least;
    if (is_stuck) last = h;
    d->time = start + elapsed;
    if (good) core_begin(w);
    if (good && !finished && !is_stuck) start_next(&t);
    if (good && enters && !finished) step_size = first_step(&t, span);
    if (good) core_touch_end(t.touch, start + elapsed, h, enters);
  }
  if (finished || is_stuck) {
    core_finish(w);
  } else {
    core_go_back(w);
  }
  if (finished) d->time = start + (is_single ? elapsed : span);
  core_world_close(w);

  c->unfinished[world] = !finished && !is_stuck;
  c->elapsed[world] = elapsed;
  c->step_size[world] = step_size;
  c->accepted[world] += accepted;
  c->rejected[world] += rejected;
  if (is_stuck) note_failure(&t, start + elapsed, last);
  if (finished && in->mass_rate) {
    memset(in->empty + (size_t)world * in->nbody, 0, in->nbody);
  }
}
