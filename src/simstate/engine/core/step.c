/* Steps of MuJoCo's own, then what is read after them, in one pass over the worlds. */
#include <string.h>

#include "step.h"

/* Whether sensors may be left out of a step: they are not read, or the core computes them. */
static int may_skip_sensors(const mjModel* m) {
  return m->nsensor && !m->nhistory && !m->nplugin && !core_has_callbacks() &&
         m->opt.integrator <= mjINT_IMPLICITFAST &&
         !(m->opt.disableflags & mjDSBL_SENSOR) &&
         !(m->opt.enableflags & (mjENBL_SLEEP | mjENBL_IPC | mjENBL_FWDINV));
}

/* Whether accelerations and forces are copied out between the evaluation at the state
 * before the step and the other stages of MuJoCo's RK4: sensors are of that evaluation,
 * and mjData's accelerations afterwards of the fourth stage. */
static int evaluates_first(const mjModel* m) {
  return m->opt.integrator == mjINT_RK4 &&
         !(m->opt.enableflags & (mjENBL_SLEEP | mjENBL_IPC | mjENBL_FWDINV));
}

/* The dynamics, with the net forces that are looked at in every step. */
static void evaluate_without_sensors(const core_step* step, const mjModel* m, mjData* d) {
  lib.mj_forwardSkip(m, d, mjSTAGE_NONE, 1);
  for (int i = 0; i < step->num_contacts; i++) {
    if (step->contacts[i]->every_step) core_net_forces(step->contacts[i], m, d);
  }
}

/* The dynamics with all sensors: MuJoCo's, then those of contacts, which are last. */
static void evaluate(const core_step* step, const mjModel* m, mjData* d, int may_sense) {
  if (step->num_other_sensors < 0 || !may_sense) {
    lib.mj_forwardSkip(m, d, mjSTAGE_NONE, 0);
    return;
  }
  mjModel others = *m;
  others.nsensor = step->num_other_sensors;
  lib.mj_forwardSkip(&others, d, mjSTAGE_NONE, 0);
  for (int i = 0; i < step->num_contacts; i++) {
    core_sense_contacts(step->contacts[i], m, d);
  }
}

/* mj_step in its parts; the state has the same bits, and what is read of sensors. */
static void step_in_parts(const core_step* step, const mjModel* m, mjData* d, int world,
                          int with_sensors, int may_sense) {
  lib.mj_checkPos(m, d);
  lib.mj_checkVel(m, d);
  if (with_sensors) {
    evaluate(step, m, d, may_sense);
  } else {
    evaluate_without_sensors(step, m, d);
  }
  lib.mj_checkAcc(m, d);
  switch (m->opt.integrator) {
    case mjINT_EULER:
      lib.mj_Euler(m, d);
      break;
    case mjINT_RK4:
      if (with_sensors && step->outputs) {
        core_copy_out(step->outputs, d, world, CORE_EVALUATED);
      }
      lib.mj_RungeKutta(m, d, 4);
      break;
    default:
      lib.mj_implicit(m, d);
  }
}

static void note_contacts(const core_step* step, const mjModel* m, const mjData* d,
                          int world, int is_first, int is_last) {
  for (int i = 0; i < step->num_contacts; i++) {
    const core_contacts* c = step->contacts[i];
    if (c->every_step) {
      core_note_contacts(c, d, world, m->opt.timestep, is_first);
    } else if (is_last) {
      core_note_contacts(c, d, world, m->opt.timestep * (double)step->all_steps, 1);
    }
  }
}

/* Copies the kept fields; `after_constraints`: those of mj_rnePostConstraint as well. */
static void keep(const core_kept* kept, const mjModel* m, mjData* d, int world,
                 int after_constraints) {
  if (kept->after_constraints && after_constraints) lib.mj_rnePostConstraint(m, d);
  core_copy_out(&kept->outputs, d, world, CORE_EVALUATED | CORE_REFRESHED);
}

void core_step_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_step* step = argument;
  int may_skip = may_skip_sensors(m), is_first = evaluates_first(m);
  for (int i = 0; i < step->num_steps; i++) {
    int is_last = step->is_last && i + 1 == step->num_steps;
    if ((may_skip && (!is_last || step->num_other_sensors >= 0)) ||
        (is_first && is_last)) {
      step_in_parts(step, m, d, world, is_last, may_skip);
    } else {
      lib.mj_step(m, d);
    }
    note_contacts(step, m, d, world, step->is_first && i == 0, is_last);
  }
  if (!step->outputs) return;
  if (step->kept) keep(step->kept, m, d, world, 1);
  core_refresh(m, d, step->outputs->needs);
  core_copy_out(step->outputs, d, world,
                is_first ? CORE_REFRESHED : CORE_EVALUATED | CORE_REFRESHED);
}

void core_evaluate_world(const mjModel* m, mjData* d, int world, void* argument) {
  const core_evaluation* evaluation = argument;
  size_t bytes = sizeof(mjtNum) * 6 * (size_t)m->nbody;
  memset(d->cacc, 0, bytes); /* as mj_resetData does; sensors may compute them */
  memset(d->cfrc_int, 0, bytes);
  memset(d->cfrc_ext, 0, bytes);
  lib.mj_forwardSkip(m, d, mjSTAGE_NONE, 0);
  keep(evaluation->kept, m, d, world, evaluation->after_constraints);
}
