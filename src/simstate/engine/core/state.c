/* One world's state in a Runge-Kutta step: positions, velocities, activations, masses,
 * moving frames. */
#include <math.h>
#include <string.h>

#include "integrate.h"

#define BYTES(count) (sizeof(mjtNum) * (size_t)(count))

/* On mjData's stack, or, where a step takes several calls, in memory that outlives one. */
static mjtNum* allocate(core_world* w, int count) {
  if (count < 1) count = 1;
  if (!w->memory) return lib.mj_stackAllocNum(w->d, count);
  mjtNum* found = w->memory;
  w->memory += count;
  return found;
}

size_t core_world_numbers(const core_integrator* in) {
  int stages = in->scheme.num_stages, greatest = in->nq + in->nv + in->na;
  return (size_t)(1 + stages) * (in->nq + in->nv + in->na + 8) + greatest +
         3 * in->num_quats + 32;
}

/* Without masses and frames; the inputs are those that the caller wrote. */
void core_world_reopen(core_world* w, const core_integrator* in, const mjModel* m,
                       mjData* d, int world, mjtNum* memory) {
  int stages = in->scheme.num_stages;
  int high = in->scheme.attitude == CORE_HIGH_ORDER;
  *w = (core_world){.in = in, .m = m, .d = d, .world = world, .memory = memory};
  const int width[] = {high ? in->nq : in->nv, in->nv, in->na, 0, 0};
  const int size[] = {in->nq, in->nv, in->na, 0, 0};
  mjtNum* const value[] = {d->qpos, d->qvel, d->act, m->body_mass, NULL};
  w->start = allocate(w, 1);
  for (int i = 0; i < CORE_NUM_BLOCKS; i++) {
    w->width[i] = width[i];
    w->size[i] = size[i];
    w->value[i] = value[i];
    w->origin[i] = allocate(w, size[i]);
    w->rates[i] = allocate(w, stages * width[i]);
  }
  w->sum = allocate(w, in->nq + in->nv + in->na);
  w->turn = allocate(w, 3 * in->num_quats);
}

void core_world_open(core_world* w, const core_integrator* in, const mjModel* m,
                     mjData* d, int world) {
  int stages = in->scheme.num_stages, has_mass = in->mass_rate != NULL;
  *w = (core_world){.in = in, .m = m, .d = d, .world = world};
  lib.mj_markStack(d);
  w->frame = allocate(w, 6 * in->num_frames);
  for (int i = 0; i < in->num_frames; i++) {
    memcpy(w->frame + 6 * i, in->frame[i] + (size_t)6 * world, BYTES(6));
  }
  int high = in->scheme.attitude == CORE_HIGH_ORDER;
  const int width[] = {high ? in->nq : in->nv, in->nv, in->na,
                       has_mass ? in->nbody : 0, 6 * in->num_frames};
  const int size[] = {in->nq, in->nv, in->na, width[CORE_MASS], width[CORE_FRAMES]};
  mjtNum* const value[] = {d->qpos, d->qvel, d->act, m->body_mass, w->frame};
  int greatest = 0;
  for (int i = 0; i < CORE_NUM_BLOCKS; i++) {
    w->width[i] = width[i];
    w->size[i] = size[i];
    w->value[i] = value[i];
    w->origin[i] = allocate(w, size[i]);
    w->rates[i] = allocate(w, stages * width[i]);
    if (width[i] > greatest) greatest = width[i];
  }
  w->sum = allocate(w, greatest);
  w->turn = allocate(w, 3 * in->num_quats);
  w->xfrc = allocate(w, 6 * in->nbody);
  memcpy(w->xfrc, d->xfrc_applied, BYTES(6 * in->nbody));
  if (in->changes_inputs) {
    w->ctrl = allocate(w, m->nu);
    w->qfrc = allocate(w, in->nv);
    memcpy(w->ctrl, d->ctrl, BYTES(m->nu));
    memcpy(w->qfrc, d->qfrc_applied, BYTES(in->nv));
  }
  if (has_mass) {
    w->mass_rate = allocate(w, in->nbody);
    w->inertia = allocate(w, 3 * in->nbody);
    w->mass_before = allocate(w, in->nbody);
    w->state = allocate(w, in->nstate);
  }
}

/* Brings back the loads and controls that the user set. */
static void restore_inputs(const core_world* w) {
  memcpy(w->d->xfrc_applied, w->xfrc, BYTES(6 * w->in->nbody));
  if (!w->ctrl) return;
  memcpy(w->d->ctrl, w->ctrl, BYTES(w->m->nu));
  memcpy(w->d->qfrc_applied, w->qfrc, BYTES(w->in->nv));
}

/* Keeps the parameters of this world, and gives the thread's model the others back. */
static void keep_constants(const core_world* w) {
  const core_integrator* in = w->in;
  for (int i = 0; i < in->num_constants; i++) {
    const core_constant* c = in->constant + i;
    char* own = *(char* const*)((const char*)w->m + c->offset);
    if (c->to) {
      memcpy(c->to + (size_t)w->world * c->bytes, own, c->bytes);
    } else {
      const char* shared = *(char* const*)((const char*)in->shared + c->offset);
      if (own != shared) memcpy(own, shared, c->bytes);
    }
  }
}

void core_world_close(core_world* w) {
  const core_integrator* in = w->in;
  size_t world = w->world;
  if (in->outputs) core_refresh(w->m, w->d, in->outputs->needs);
  restore_inputs(w);
  for (int i = 0; i < in->num_frames; i++) {
    memcpy(in->frame[i] + 6 * world, w->frame + 6 * i, BYTES(6));
  }
  if (in->mass_rate) {
    memcpy(in->total_mass_rate + world * in->nbody, w->mass_rate, BYTES(in->nbody));
    keep_constants(w);
  }
  in->evaluations[world] += w->evaluations;
  if (in->outputs) core_copy_out(in->outputs, w->d, w->world, CORE_EVALUATED | CORE_REFRESHED);
  lib.mj_freeStack(w->d);
}

void core_begin(core_world* w) {
  for (int i = 0; i < CORE_NUM_BLOCKS; i++) memcpy(w->origin[i], w->value[i], BYTES(w->size[i]));
  memset(w->turn, 0, BYTES(3 * w->in->num_quats));
  if (w->inertia) memcpy(w->inertia, w->m->body_inertia, BYTES(3 * w->in->nbody));
}

void core_evaluate(core_world* w, int with_sensors) {
  const core_integrator* in = w->in;
  w->evaluations++;
  if (w->mass_rate) {
    memcpy(w->mass_rate, in->mass_rate + (size_t)w->world * in->nbody,
           BYTES(in->nbody));
  }
  if (in->num_loads) restore_inputs(w);
  core_evaluate_inputs(w, with_sensors);
}

void core_evaluate_inputs(core_world* w, int with_sensors) {
  const core_integrator* in = w->in;
  const mjModel* m = w->m;
  mjData* d = w->d;
  lib.mj_checkPos(m, d);
  lib.mj_checkVel(m, d);
  if (!in->num_loads) {
    lib.mj_forwardSkip(m, d, mjSTAGE_NONE, !with_sensors);
    return;
  }
  lib.mj_fwdPosition(m, d);
  if (with_sensors) lib.mj_sensorPos(m, d);
  lib.mj_fwdVelocity(m, d);
  if (with_sensors) lib.mj_sensorVel(m, d);
  core_add_loads(in->load, in->num_loads, m, d, w->world, w->frame, w->mass_rate);
  lib.mj_forwardSkip(m, d, mjSTAGE_VEL, !with_sensors);
}

static void record_position(core_world* w, mjtNum* rate) {
  const core_integrator* in = w->in;
  const mjtNum* qvel = w->d->qvel;
  core_attitude mode = in->scheme.attitude;
  const int* flat_rate = mode == CORE_HIGH_ORDER ? in->flat_qpos : in->flat_qvel;
  const int* quat_rate = mode == CORE_HIGH_ORDER ? in->quat_qpos : in->quat_qvel;
  for (int i = 0; i < in->num_flat; i++) rate[flat_rate[i]] = qvel[in->flat_qvel[i]];
  for (int i = 0; i < in->num_quats; i++) {
    core_attitude_rate(mode, w->d->qpos + in->quat_qpos[i], w->turn + 3 * i,
                       qvel + in->quat_qvel[i], rate + quat_rate[i]);
  }
}

/* act_dot, but none that would push an activation out of its range. */
static void record_limited(core_world* w, mjtNum* rate) {
  const core_integrator* in = w->in;
  for (int i = 0; i < in->na; i++) {
    mjtNum act = w->d->act[i], dot = w->d->act_dot[i];
    int stuck = (act >= in->act_high[i] && dot > 0) ||
                (act <= in->act_low[i] && dot < 0);
    rate[i] = stuck ? 0 : dot;
  }
}

void core_record(core_world* w, int stage, int limited) {
  const core_integrator* in = w->in;
  mjtNum* rate[CORE_NUM_BLOCKS];
  for (int i = 0; i < CORE_NUM_BLOCKS; i++) rate[i] = w->rates[i] + (size_t)stage * w->width[i];
  record_position(w, rate[CORE_QPOS]);
  memcpy(rate[CORE_QVEL], w->d->qacc, BYTES(in->nv));
  if (limited && in->act_low) {
    record_limited(w, rate[CORE_ACT]);
  } else {
    memcpy(rate[CORE_ACT], w->d->act_dot, BYTES(in->na));
  }
  if (w->mass_rate) memcpy(rate[CORE_MASS], w->mass_rate, BYTES(in->nbody));
  for (int i = 0; i < in->num_frames; i++) {
    core_frame_rate(in->load, in->num_loads, i, w->world, w->d->time, w->frame + 6 * i,
                    rate[CORE_FRAMES] + 6 * i);
  }
}

const mjtNum* core_combine(core_world* w, int block, const double* weights, int count) {
  int width = w->width[block];
  memset(w->sum, 0, BYTES(width));
  for (int j = 0; j < count; j++) {
    const mjtNum* rate = w->rates[block] + (size_t)j * width;
    if (weights[j] == 0) continue;
    for (int k = 0; k < width; k++) w->sum[k] += weights[j] * rate[k];
  }
  return w->sum;
}

static void displace_position(core_world* w, const mjtNum* sum, mjtNum h) {
  const core_integrator* in = w->in;
  core_attitude mode = in->scheme.attitude;
  const int* flat_rate = mode == CORE_HIGH_ORDER ? in->flat_qpos : in->flat_qvel;
  const int* quat_rate = mode == CORE_HIGH_ORDER ? in->quat_qpos : in->quat_qvel;
  mjtNum *qpos = w->value[CORE_QPOS], *origin = w->origin[CORE_QPOS];
  for (int i = 0; i < in->num_flat; i++) {
    int k = in->flat_qpos[i];
    qpos[k] = origin[k] + h * sum[flat_rate[i]];
  }
  for (int i = 0; i < in->num_quats; i++) {
    int k = in->quat_qpos[i];
    core_attitude_displace(mode, origin + k, sum + quat_rate[i], h, w->turn + 3 * i,
                           qpos + k);
  }
}

/* Scales the inertias and recomputes the constants after the masses have changed.
 *
 * A mass that ran out stays at its origin, and the world is noted. */
static void follow_masses(core_world* w) {
  const core_integrator* in = w->in;
  mjModel* m = (mjModel*)w->m; /* the thread's own: mass is a field of each world */
  const mjtNum* origin = w->origin[CORE_MASS];
  if (!memcmp(w->mass_before, m->body_mass, BYTES(in->nbody))) return;
  for (int i = 0; i < in->nbody; i++) {
    mjtNum mass = m->body_mass[i];
    size_t at = (size_t)w->world * in->nbody + i;
    if ((mass < in->least_mass[at] || mass <= 0) && mass < origin[i]) {
      in->empty[at] = 1;
      w->is_empty = 1;
      m->body_mass[i] = mass = origin[i];
    }
    mjtNum ratio = mass / origin[i];
    if (isnan(ratio) || (isinf(ratio) && ratio > 0)) ratio = 1; /* it has no inertia */
    for (int k = 0; k < 3; k++) {
      m->body_inertia[3 * i + k] = w->inertia[3 * i + k] * ratio;
    }
  }
  lib.mj_getState(m, w->d, w->state, mjSTATE_INTEGRATION);
  lib.mj_setConst(m, w->d); /* moves qpos */
  lib.mj_setState(m, w->d, w->state, mjSTATE_INTEGRATION);
}

void core_displace(core_world* w, const double* weights, int count, mjtNum h) {
  if (w->mass_rate) memcpy(w->mass_before, w->m->body_mass, BYTES(w->in->nbody));
  displace_position(w, core_combine(w, CORE_QPOS, weights, count), h);
  for (int i = CORE_QVEL; i < CORE_NUM_BLOCKS; i++) {
    const mjtNum* sum = core_combine(w, i, weights, count);
    for (int k = 0; k < w->size[i]; k++) {
      w->value[i][k] = w->origin[i][k] + h * sum[k];
    }
  }
  if (w->mass_rate) follow_masses(w);
}

void core_go_back(core_world* w) {
  if (w->mass_rate) memcpy(w->mass_before, w->m->body_mass, BYTES(w->in->nbody));
  for (int i = 0; i < CORE_NUM_BLOCKS; i++) {
    memcpy(w->value[i], w->origin[i], BYTES(w->size[i]));
  }
  if (w->mass_rate) follow_masses(w);
}

void core_clamp_activations(core_world* w) {
  const core_integrator* in = w->in;
  if (!in->act_low) return;
  for (int i = 0; i < in->na; i++) {
    mjtNum act = w->d->act[i];
    if (act < in->act_low[i]) w->d->act[i] = in->act_low[i];
    if (act > in->act_high[i]) w->d->act[i] = in->act_high[i];
  }
}

void core_finish(core_world* w) {
  core_clamp_activations(w);
  memcpy(w->d->qacc_warmstart, w->d->qacc, BYTES(w->in->nv));
}

int core_has_readers(const core_integrator* in) {
  return in->num_loads || in->num_frames || in->mass_rate;
}
