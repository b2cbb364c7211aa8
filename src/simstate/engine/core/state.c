/* One world's state in a Runge-Kutta step: positions, velocities, activations, masses,
 * moving frames. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "integrate.h"

#define BYTES(count) (sizeof(mjtNum) * (size_t)(count))

/* On mjData's stack, or, where a step takes several calls, in memory that outlives one. */
static mjtNum* allocate(core_world* w, int count) {
  if (count < 1) count = 1;
  w->numbers += (size_t)count;
  if (w->memory) return w->memory + (w->numbers - (size_t)count);
  return w->d ? lib.mj_stackAllocNum(w->d, (size_t)count) : NULL;
}

static int greater(int a, int b) { return a > b ? a : b; }

/* Gives a world its memory: on the stack, in w->memory, or, without mjData, none. */
static void lay_out(core_world* w) {
  const core_integrator* in = w->in;
  int stages = in->scheme.num_stages, has_mass = in->mass_rate != NULL;
  int high = in->scheme.attitude == CORE_HIGH_ORDER;
  const int width[] = {high ? in->nq : in->nv, in->nv, in->na,
                       has_mass ? in->nbody : 0, in->process_width};
  const int size[] = {in->nq, in->nv, in->na, width[CORE_MASS], in->process_width};
  int widest = in->nv;
  w->process = allocate(w, in->process_width);
  for (int i = 0; i < CORE_NUM_BLOCKS; i++) {
    w->width[i] = width[i];
    w->size[i] = size[i];
    w->origin[i] = allocate(w, size[i]);
    w->rates[i] = allocate(w, stages * width[i]);
    widest = greater(widest, width[i]);
  }
  w->sum = allocate(w, widest);
  w->turn = allocate(w, 3 * in->num_quats);
  if (has_mass) {
    w->mass_rate = allocate(w, in->nbody);
    w->inertia = allocate(w, 3 * in->nbody);
    w->mass_before = allocate(w, in->nbody);
    w->state = allocate(w, in->nstate);
  }
  if (in->scheme.b_error) {
    w->error = allocate(w, widest);
    w->error_size = allocate(w, widest);
  }
}

size_t core_world_numbers(const core_integrator* in) {
  core_world w = {.in = in};
  lay_out(&w);
  return w.numbers;
}

/* Keeps the loads and controls that the user set. */
static void keep_inputs(core_world* w) {
  const core_integrator* in = w->in;
  mjData* d = w->d;
  w->xfrc = allocate(w, 6 * in->nbody);
  memcpy(w->xfrc, d->xfrc_applied, BYTES(6 * in->nbody));
  if (!in->changes_inputs) return;
  w->ctrl = allocate(w, (int)w->m->nu);
  w->qfrc = allocate(w, in->nv);
  memcpy(w->ctrl, d->ctrl, BYTES(w->m->nu));
  memcpy(w->qfrc, d->qfrc_applied, BYTES(in->nv));
}

void core_world_open(core_world* w, const core_integrator* in, const mjModel* m,
                     mjData* d, int world, core_progress* at, mjtNum* memory) {
  *w = (core_world){
      .in = in, .m = m, .d = d, .world = world, .at = at, .memory = memory};
  if (in->touch && in->method == &core_adaptive) w->touch = in->touch + world;
  lay_out(w);
  mjtNum* const value[] = {d->qpos, d->qvel, d->act, m->body_mass, w->process};
  memcpy(w->value, value, sizeof value);
  for (int i = 0; i < in->num_processes; i++) {
    const core_process* p = in->process + i;
    memcpy(w->process + p->first, p->value + (size_t)world * p->stride,
           BYTES(p->width));
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

void core_world_store(core_world* w) {
  const core_integrator* in = w->in;
  size_t world = (size_t)w->world;
  for (int i = 0; i < in->num_processes; i++) {
    const core_process* p = in->process + i;
    memcpy(p->value + world * p->stride, w->process + p->first, BYTES(p->width));
  }
  if (in->mass_rate) keep_constants(w);
}

static void set_mass_rate(core_world* w) {
  const core_integrator* in = w->in;
  if (!w->mass_rate) return;
  memcpy(w->mass_rate, in->mass_rate + (size_t)w->world * in->mass_rate_stride,
         BYTES(in->nbody));
}

static void keep_mass_rate(const core_world* w) {
  const core_integrator* in = w->in;
  if (!w->mass_rate) return;
  memcpy(in->total_mass_rate + (ptrdiff_t)w->world * in->nbody, w->mass_rate,
         BYTES(in->nbody));
}

/* All evaluations of a call in one. Until the end nothing outside of mjData is written,
 * so that a world in which MuJoCo raises keeps all it had. */
void core_integrate_world(const mjModel* m, mjData* d, int world, void* integrator) {
  const core_integrator* in = integrator;
  core_progress at = {0};
  core_world w;
  lib.mj_markStack(d);
  core_world_open(&w, in, m, d, world, &at, NULL);
  keep_inputs(&w);
  in->method->begin(&w);
  while (!at.is_done) {
    if (in->num_loads) restore_inputs(&w);
    set_mass_rate(&w);
    core_evaluate(&w, 0);
    core_record_processes(&w);
    in->method->next(&w);
  }
  if (in->outputs) core_refresh(m, d, in->outputs->needs);
  restore_inputs(&w);
  keep_mass_rate(&w);
  core_world_store(&w);
  in->evaluations[world] += at.evaluations;
  if (in->outputs) {
    core_copy_out(in->outputs, d, world, CORE_EVALUATED | CORE_REFRESHED);
  }
  in->method->end(&w);
  lib.mj_freeStack(d);
}

static void open_round(core_world* w, const core_round* r, const mjModel* m, mjData* d,
                       int world) {
  core_world_open(w, &r->in, m, d, world, r->progress + world,
                  r->memory + (size_t)world * r->numbers);
  if (w->at->is_open) return;
  w->at->is_open = 1;
  r->in.method->begin(w);
}

void core_round_prepare(const mjModel* m, mjData* d, int world, void* argument) {
  const core_round* r = argument;
  const core_integrator* in = &r->in;
  core_world w;
  open_round(&w, r, m, d, world);
  core_refresh(m, d, r->needs | r->outputs->needs);
  double* rate = in->mass_rate ? in->mass_rate + (size_t)world * in->mass_rate_stride
                               : NULL;
  core_add_loads(in->load, in->num_loads, r->segment, r->segment, m, d, world,
                 w.process, rate);
  core_write_samples(in->load, in->num_loads, r->segment + 1, d, world, w.process);
  core_copy_out(r->outputs, d, world, CORE_REFRESHED);
}

static void move_on(core_world* w) {
  const core_integrator* in = w->in;
  core_record_processes(w);
  in->method->next(w);
  core_world_store(w);
  if (!w->at->is_done) return;
  in->evaluations[w->world] += w->at->evaluations;
  in->method->end(w);
}

void core_round_evaluate(const mjModel* m, mjData* d, int world, void* argument) {
  const core_round* r = argument;
  core_world w;
  open_round(&w, r, m, d, world);
  set_mass_rate(&w);
  core_evaluate(&w, r->segment);
  keep_mass_rate(&w);
  if (!core_has_called_rates(&r->in)) {
    move_on(&w);
    if (!w.at->is_done) return;
    core_refresh(m, d, r->outputs->needs);
  }
  core_copy_out(r->outputs, d, world, CORE_EVALUATED | CORE_REFRESHED);
}

void core_round_move(const mjModel* m, mjData* d, int world, void* argument) {
  const core_round* r = argument;
  core_world w;
  open_round(&w, r, m, d, world);
  move_on(&w);
}

void core_begin(core_world* w) {
  for (int i = 0; i < CORE_NUM_BLOCKS; i++) memcpy(w->origin[i], w->value[i], BYTES(w->size[i]));
  memset(w->turn, 0, BYTES(3 * w->in->num_quats));
  if (w->inertia) memcpy(w->inertia, w->m->body_inertia, BYTES(3 * w->in->nbody));
}

/* Where MuJoCo's sensors were left out, the net forces alone are written. */
static void look_at_contacts(const core_world* w, int skip_sensors) {
  const core_integrator* in = w->in;
  int is_on = !(w->m->opt.disableflags & mjDSBL_SENSOR);
  for (int i = 0; i < in->num_contacts; i++) {
    if (skip_sensors && is_on) core_net_forces(in->contacts[i], w->m, w->d);
    core_look_at_contacts(in->contacts[i], w->d, w->world);
  }
}

void core_note_step(core_world* w, double passed) {
  for (int i = 0; i < w->in->num_contacts; i++) {
    core_note_shown(w->in->contacts[i], w->world, passed);
  }
}

void core_evaluate(core_world* w, int segment) {
  const core_integrator* in = w->in;
  const mjModel* m = w->m;
  mjData* d = w->d;
  int skip_sensors =
      w->at->stage + 1 != in->scheme.num_stages && !core_has_called_rates(in);
  w->at->evaluations++;
  lib.mj_checkPos(m, d);
  lib.mj_checkVel(m, d);
  if (!in->num_loads) {
    lib.mj_forwardSkip(m, d, mjSTAGE_NONE, skip_sensors);
  } else {
    lib.mj_fwdPosition(m, d);
    if (!skip_sensors) lib.mj_sensorPos(m, d);
    lib.mj_fwdVelocity(m, d);
    if (!skip_sensors) lib.mj_sensorVel(m, d);
    core_add_loads(in->load, in->num_loads, segment, INT_MAX, m, d, w->world,
                   w->process, w->mass_rate);
    lib.mj_forwardSkip(m, d, mjSTAGE_VEL, skip_sensors);
  }
  look_at_contacts(w, skip_sensors);
  int stage = w->at->stage;
  core_touch_look(w->touch, m, d, !stage || stage + 1 == in->scheme.num_stages);
  core_record_mechanics(w);
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

/* The rates of a stage of a block. */
static mjtNum* rates_at(const core_world* w, int block, int stage) {
  return w->rates[block] + (ptrdiff_t)stage * w->width[block];
}

void core_record_mechanics(core_world* w) {
  const core_integrator* in = w->in;
  int stage = w->at->stage;
  record_position(w, rates_at(w, CORE_QPOS, stage));
  memcpy(rates_at(w, CORE_QVEL, stage), w->d->qacc, BYTES(in->nv));
  if (in->scheme.b_error && in->act_low) { /* as adaptive steps are */
    record_limited(w, rates_at(w, CORE_ACT, stage));
  } else {
    memcpy(rates_at(w, CORE_ACT, stage), w->d->act_dot, BYTES(in->na));
  }
  if (!w->mass_rate) return;
  memcpy(rates_at(w, CORE_MASS, stage), w->mass_rate, BYTES(in->nbody));
}

void core_record_processes(core_world* w) {
  const core_integrator* in = w->in;
  mjtNum* rates = rates_at(w, CORE_PROCESSES, w->at->stage);
  for (int i = 0; i < in->num_processes; i++) {
    const core_process* p = in->process + i;
    if (p->rate) {
      memcpy(rates + p->first, p->rate + (ptrdiff_t)w->world * p->width, BYTES(p->width));
    } else {
      core_frame_rate(in->load, in->num_loads, p->first, w->world, w->d->time,
                      w->process + p->first, rates + p->first);
    }
  }
}

void core_reuse_last(core_world* w) {
  int last = w->in->scheme.num_stages - 1;
  for (int i = CORE_QVEL; i < CORE_PROCESSES; i++) {
    memcpy(rates_at(w, i, 0), rates_at(w, i, last), BYTES(w->width[i]));
  }
  record_position(w, rates_at(w, CORE_QPOS, 0));
  core_record_processes(w);
}

int core_has_called_rates(const core_integrator* in) {
  for (int i = 0; i < in->num_processes; i++) {
    if (in->process[i].rate) return 1;
  }
  return 0;
}

const mjtNum* core_combine(core_world* w, int block, const double* weights, int count) {
  int width = w->width[block];
  memset(w->sum, 0, BYTES(width));
  for (int j = 0; j < count; j++) {
    const mjtNum* rate = w->rates[block] + (ptrdiff_t)j * width;
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
    ptrdiff_t at = (ptrdiff_t)w->world * in->nbody + i;
    if ((mass < in->least_mass[at] || mass <= 0) && mass < origin[i]) {
      in->empty[at] = 1;
      w->at->is_empty = 1;
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
  memcpy(w->d->qacc_warmstart,
         rates_at(w, CORE_QVEL, w->in->scheme.num_stages - 1), BYTES(w->in->nv));
}
