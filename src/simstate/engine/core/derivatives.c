/* Derivatives of MuJoCo's own steps by centred differences, world by world. */
#include <string.h>

#include "derivatives.h"

enum { SAVED = mjSTATE_FULLPHYSICS | mjSTATE_CTRL | mjSTATE_WARMSTART };

static uint64_t mix(uint64_t hash, int value) {
  hash = (hash ^ (uint64_t)(uint32_t)value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

static int side(double x, const mjtNum range[2]) {
  return x <= range[0] ? 1 : x >= range[1] ? 2 : 0;
}

/* Forces and activations of actuators that are at a limit. */
static uint64_t mix_actuators(uint64_t hash, const mjModel* m, const mjData* d) {
  for (int i = 0; i < m->nactuator; i++) {
    if (m->actuator_forcelimited[i]) {
      for (int k = 0; k < m->actuator_outnum[i]; k++) {
        double force = d->actuator_force[m->actuator_outadr[i] + k];
        hash = mix(hash, side(force, m->actuator_forcerange + 2 * i));
      }
    }
    if (m->actuator_actlimited[i] && m->actuator_actadr[i] >= 0) {
      double act = d->act[m->actuator_actadr[i] + m->actuator_actnum[i] - 1];
      hash = mix(hash, side(act, m->actuator_actrange + 2 * i));
    }
  }
  return hash;
}

/* Which contacts there are, and the state of every row: inactive, quadratic, beyond a
 * friction loss on either side, or within a cone. */
static uint64_t mix_constraints(uint64_t hash, const mjModel* m, const mjData* d) {
  for (int i = 0; i < d->ncon; i++) {
    const mjContact* c = d->contact + i;
    for (int k = 0; k < 2; k++) {
      hash = mix(mix(hash, c->geom[k]), c->flex[k]);
      hash = mix(mix(hash, c->elem[k]), c->vert[k]);
    }
    hash = mix(hash, c->exclude);
  }
  /* Solvers of islands in primal form leave the states in the order of islands; with
   * flexes it depends on more whether they run, and both arrays are taken. */
  int by_island = d->nisland > 0 && m->opt.solver != mjSOL_PGS;
  for (int i = 0; i < d->nefc; i++) {
    hash = mix(mix(hash, d->efc_type[i]), d->efc_id[i]);
    if (!by_island || m->nflex) hash = mix(hash, d->efc_state[i]);
    if (by_island) hash = mix(hash, d->iefc_state[i]);
  }
  return mix_actuators(mix(mix(hash, d->ncon), d->nefc), m, d);
}

/* One world, its state to return to, and room for results. */
typedef struct {
  const mjModel* m;
  mjData* d;
  const core_derivatives* what;
  mjtNum *start, *next, *ahead, *behind, *unit;
  uint64_t signature; /* of the undisturbed steps */
  int may_skip;       /* stages that a displacement does not change */
} trial;

/* Whether the matrix of an implicit scheme may be kept where positions or velocities
 * are. MuJoCo does so always; it is exact if damping and gains are constant. */
static int has_constant_damping(const mjModel* m) {
  for (int i = 0; i < m->nv * mjNPOLY; i++) {
    if (m->dof_dampingpoly[i]) return 0;
  }
  for (int i = 0; i < m->ntendon * mjNPOLY; i++) {
    if (m->tendon_dampingpoly[i]) return 0;
  }
  for (int i = 0; i < m->nactuator; i++) {
    const mjtNum* gain = m->actuator_gainprm + i * mjNGAIN;
    int kind = m->actuator_gaintype[i];
    if (kind != mjGAIN_FIXED && !(kind == mjGAIN_AFFINE && gain[2] == 0)) return 0;
    for (int k = 0; k < mjNPOLY; k++) {
      if (m->actuator_dampingpoly[i * mjNPOLY + k]) return 0;
    }
  }
  return 1;
}

static uint64_t take_steps(const trial* t, int skip) {
  const mjModel* m = t->m;
  uint64_t hash = 0;
  for (int i = 0; i < t->what->num_steps; i++) {
    if (m->opt.integrator == mjINT_RK4) {
      lib.mj_checkPos(m, t->d);
      lib.mj_checkVel(m, t->d);
      lib.mj_forwardSkip(m, t->d, mjSTAGE_NONE, 1);
      hash = mix_constraints(hash, m, t->d);
      lib.mj_checkAcc(m, t->d);
      lib.mj_RungeKutta(m, t->d, 4);
    } else {
      lib.mj_stepSkip(m, t->d, i || !t->may_skip ? mjSTAGE_NONE : skip, 1);
    }
    hash = mix_constraints(hash, m, t->d);
  }
  return hash;
}

/* Where the steps lead from the present state, which is then the first again. */
static int lead_to(const trial* t, int skip, mjtNum* to) {
  uint64_t signature = take_steps(t, skip);
  lib.mj_getState(t->m, t->d, to, mjSTATE_PHYSICS);
  lib.mj_setState(t->m, t->d, t->start, SAVED);
  return signature != t->signature;
}

static void difference(const mjModel* m, const mjtNum* from, const mjtNum* to, double h,
                       double* out) {
  lib.mj_differentiatePos(m, out, h, from, to);
  for (int i = 0; i < m->nv + m->na; i++) {
    out[m->nv + i] = (1 / h) * (to[m->nq + i] - from[m->nq + i]);
  }
}

typedef enum { POSITION, VELOCITY, ACTIVATION, CONTROL } kind;

static void displace(const trial* t, kind k, int index, double by) {
  mjData* d = t->d;
  if (k == POSITION) {
    t->unit[index] = 1;
    lib.mj_integratePos(t->m, d->qpos, t->unit, by);
    t->unit[index] = 0;
  } else {
    (k == VELOCITY ? d->qvel : k == ACTIVATION ? d->act : d->ctrl)[index] += by;
  }
}

/* Whether a control may be displaced: from within its range to within its range. */
static int may_move(const trial* t, kind k, int index, double by) {
  if (k != CONTROL || !t->m->actuator_ctrllimited[index]) return 1;
  if (t->m->opt.disableflags & mjDSBL_CLAMPCTRL) return 1;
  const mjtNum* range = t->m->actuator_ctrlrange + 2 * index;
  double x = t->d->ctrl[index], y = x + by;
  return x >= range[0] && x <= range[1] && y >= range[0] && y <= range[1];
}

/* One column: centred, or to one side at the limit of a control. */
static int column(const trial* t, kind k, int index, double h, double* out) {
  static const int skips[] = {mjSTAGE_NONE, mjSTAGE_POS, mjSTAGE_VEL, mjSTAGE_VEL};
  const mjtNum *to = t->next, *from = t->next;
  int switched = 0;
  if (may_move(t, k, index, h)) {
    displace(t, k, index, h);
    switched |= lead_to(t, skips[k], t->ahead);
    to = t->ahead;
  }
  if (may_move(t, k, index, -h)) {
    displace(t, k, index, -h);
    switched |= lead_to(t, skips[k], t->behind);
    from = t->behind;
  }
  size_t bytes = sizeof(mjtNum) * (size_t)(t->m->nq + t->m->nv + t->m->na);
  if (to == from || !memcmp(to, from, bytes)) { /* exactly 0, without rounding */
    memset(out, 0, sizeof(double) * (size_t)(2 * t->m->nv + t->m->na));
    return switched;
  }
  double width = to != t->next && from != t->next ? 2 * h : h;
  difference(t->m, from, to, width, out);
  return switched;
}

static void columns(const trial* t, kind k, int count, int num_columns, double* out,
                    unsigned char* switched) {
  size_t rows = 2 * (size_t)t->m->nv + (size_t)t->m->na;
  for (int i = 0; i < count; i++, out += rows) {
    switched[i] = 0;
    for (int w = 0; w < t->what->num_widths; w++) {
      double* to = out + (size_t)w * (size_t)num_columns * rows;
      switched[i] |= (unsigned char)column(t, k, i, (w + 1) * t->what->width, to);
    }
  }
}

void core_differentiate_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_derivatives* what = argument;
  int nv = (int)m->nv, na = (int)m->na, rows = 2 * nv + na, nx = (int)m->nq + nv + na;
  int num_state = what->by_state ? rows : 0, num_ctrl = what->by_ctrl ? (int)m->nu : 0;
  int count = num_state + num_ctrl;
  mjWarningStat warning[mjNWARNING];
  memcpy(warning, d->warning, sizeof warning);
  lib.mj_markStack(d);
  trial t = {.m = m, .d = d, .what = what};
  t.start = lib.mj_stackAllocNum(d, (size_t)lib.mj_stateSize(m, SAVED));
  t.next = lib.mj_stackAllocNum(d, 3 * (size_t)nx + (size_t)nv);
  t.ahead = t.next + nx;
  t.behind = t.ahead + nx;
  t.unit = t.behind + nx;
  memset(t.unit, 0, sizeof(mjtNum) * (size_t)nv);
  t.may_skip = what->num_steps == 1 && has_constant_damping(m);
  lib.mj_getState(m, d, t.start, SAVED);
  t.signature = take_steps(&t, mjSTAGE_NONE);
  lib.mj_getState(m, d, t.next, mjSTATE_PHYSICS);
  lib.mj_setState(m, d, t.start, SAVED);
  double* out = what->out + (size_t)world * (size_t)(what->num_widths * count * rows);
  unsigned char* switched = what->switched + (size_t)world * (size_t)count;
  /* The stages that were computed last are those of the first state until a column
   * displaces what they depend on: controls come first, positions last. */
  size_t after = (size_t)num_state * (size_t)rows;
  if (num_ctrl) columns(&t, CONTROL, num_ctrl, count, out + after, switched + num_state);
  if (num_state) {
    size_t size = (size_t)rows, v = (size_t)nv;
    columns(&t, ACTIVATION, na, count, out + 2 * v * size, switched + 2 * v);
    columns(&t, VELOCITY, nv, count, out + v * size, switched + v);
    columns(&t, POSITION, nv, count, out, switched);
  }
  lib.mj_freeStack(d);
  memcpy(d->warning, warning, sizeof warning);
}

void core_signature_world(const mjModel* m, mjData* d, int world, void* argument) {
  lib.mj_forwardSkip(m, d, mjSTAGE_NONE, 1);
  ((int64_t*)argument)[world] = (int64_t)mix_constraints(0, m, d);
}
