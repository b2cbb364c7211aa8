/* Force models that are evaluated with the dynamics: gravity, thrust, drag.
 *
 * All forces act at the bodies' centres of mass, in world axes, as xfrc_applied does.
 * In a moving frame positions and velocities are relative to the frame's, and gravity
 * is what it does to the body beyond what it does to the frame.
 */
#include "loads.h"

#include <math.h>
#include <string.h>

#include "air.h"
#include "flight.h"
#include "gravity.h"
#include "wheels.h"

static const double* parameters(const core_load* load, int world) {
  return load->parameter + (size_t)world * load->stride;
}

static void add_weight(const mjModel* m, mjData* d, int body, const double acc[3]) {
  for (int k = 0; k < 3; k++) {
    d->xfrc_applied[6 * body + k] += m->body_mass[body] * acc[k];
  }
}

static void uniform_gravity(const core_load* load, const mjModel* m, mjData* d,
                            int world) {
  for (int i = 0; i < load->num_bodies; i++) {
    add_weight(m, d, load->body[i], parameters(load, world));
  }
}

/* The acceleration at a point from point masses (mu, x, y, z). */
static void point_acceleration(const double* mass, int num_masses, const mjtNum pos[3],
                               double acc[3]) {
  for (int k = 0; k < 3; k++) acc[k] = 0;
  for (int i = 0; i < num_masses; i++, mass += 4) {
    double r[3] = {pos[0] - mass[1], pos[1] - mass[2], pos[2] - mass[3]};
    core_point_acceleration(mass[0], r, acc);
  }
}

/* What point masses do at `offset` from `frame` beyond what they do at `frame`. */
static void point_difference(const double* mass, int num_masses, const mjtNum frame[3],
                             const mjtNum offset[3], double acc[3]) {
  for (int k = 0; k < 3; k++) acc[k] = 0;
  for (int i = 0; i < num_masses; i++, mass += 4) {
    double r[3] = {frame[0] - mass[1], frame[1] - mass[2], frame[2] - mass[3]};
    core_point_difference(mass[0], r, offset, acc);
  }
}

/* The torque of the field's gradient about a body's COM, world axes.
 *
 * The gradient is Σ mu/r³ (3 u uᵀ − 1) for unit vectors u from the masses; along the
 * principal axes only the products of u's components turn the body. */
static void add_gradient_torque(const double* mass, int num_masses, const mjModel* m,
                                mjData* d, int body, const mjtNum* frame) {
  const mjtNum *axes = d->ximat + 9 * body, *inertia = m->body_inertia + 3 * body;
  double turned[3] = {0, 0, 0};
  for (int i = 0; i < num_masses; i++, mass += 4) {
    double r[3], u[3], square = 0;
    for (int k = 0; k < 3; k++) {
      r[k] = d->xipos[3 * body + k] - mass[1 + k];
      if (frame) r[k] += frame[k];
      square += r[k] * r[k];
    }
    for (int k = 0; k < 3; k++) {
      u[k] = axes[k] * r[0] + axes[3 + k] * r[1] + axes[6 + k] * r[2];
    }
    double scale = 3 * mass[0] / (square * square * sqrt(square));
    turned[0] += scale * (inertia[2] - inertia[1]) * u[1] * u[2];
    turned[1] += scale * (inertia[0] - inertia[2]) * u[2] * u[0];
    turned[2] += scale * (inertia[1] - inertia[0]) * u[0] * u[1];
  }
  for (int k = 0; k < 3; k++) {
    const mjtNum* row = axes + 3 * k;
    d->xfrc_applied[6 * body + 3 + k] +=
        row[0] * turned[0] + row[1] * turned[1] + row[2] * turned[2];
  }
}

static void point_gravity(const core_load* load, const mjModel* m, mjData* d, int world,
                          const mjtNum* frame) {
  int num_masses = (load->num_parameters - 1) / 4;
  const double *p = parameters(load, world), *mass = p + 1;
  int has_torque = p[0] != 0;
  for (int i = 0; i < load->num_bodies; i++) {
    int body = load->body[i];
    double acc[3];
    if (frame) {
      point_difference(mass, num_masses, frame, d->xipos + 3 * body, acc);
    } else {
      point_acceleration(mass, num_masses, d->xipos + 3 * body, acc);
    }
    add_weight(m, d, body, acc);
    if (has_torque) add_gradient_torque(mass, num_masses, m, d, body, frame);
  }
}

static void field_gravity(const core_load* load, const mjModel* m, mjData* d, int world,
                          const mjtNum* frame) {
  const double* p = parameters(load, world);
  for (int i = 0; i < load->num_bodies; i++) {
    int body = load->body[i];
    const mjtNum* com = d->xipos + 3 * body;
    double acc[3], torque[3], pos[3] = {com[0], com[1], com[2]};
    if (frame) {
      core_field_difference(load->table, p, d->time, frame, com, acc);
      for (int k = 0; k < 3; k++) pos[k] += frame[k];
    } else {
      core_field_acceleration(load->table, p, d->time, com, acc);
    }
    add_weight(m, d, body, acc);
    if (p[4] == 0) continue;
    core_field_torque(load->table, p, d->time, pos, m->body_inertia + 3 * body,
                      d->ximat + 9 * body, torque);
    for (int k = 0; k < 3; k++) d->xfrc_applied[6 * body + 3 + k] += torque[k];
  }
}

static void thruster(const core_load* load, const mjModel* m, mjData* d, int world,
                     mjtNum* mass_rate) {
  const double *p = parameters(load, world), *point = p + 3;
  for (int i = 0; i < load->num_bodies; i++) {
    int body = load->body[i];
    double throttle = m->body_mass[body] > p[8] ? p[7] : 0; /* else nothing is left */
    const mjtNum* rot = d->xmat + 9 * body;
    mjtNum *load_at = d->xfrc_applied + 6 * body, force[3], arm[3];
    for (int k = 0; k < 3; k++) {
      const mjtNum* row = rot + 3 * k;
      force[k] = throttle * (row[0] * p[0] + row[1] * p[1] + row[2] * p[2]);
      arm[k] = d->xpos[3 * body + k] +
               (row[0] * point[0] + row[1] * point[1] + row[2] * point[2]) -
               d->xipos[3 * body + k];
    }
    for (int k = 0; k < 3; k++) load_at[k] += force[k];
    load_at[3] += arm[1] * force[2] - arm[2] * force[1];
    load_at[4] += arm[2] * force[0] - arm[0] * force[2];
    load_at[5] += arm[0] * force[1] - arm[1] * force[0];
    if (mass_rate) mass_rate[body] -= p[6] * throttle;
  }
}

/* The velocity of a body's COM against the world. */
static void com_velocity(const mjModel* m, const mjData* d, int body,
                         const mjtNum* frame, mjtNum vel[3]) {
  const mjtNum *spin = d->cvel + 6 * body, *pos = d->xipos + 3 * body;
  const mjtNum* centre = d->subtree_com + 3 * m->body_rootid[body];
  mjtNum r[3] = {centre[0] - pos[0], centre[1] - pos[1], centre[2] - pos[2]};
  vel[0] = spin[3] - (spin[1] * r[2] - spin[2] * r[1]);
  vel[1] = spin[4] - (spin[2] * r[0] - spin[0] * r[2]);
  vel[2] = spin[5] - (spin[0] * r[1] - spin[1] * r[0]);
  for (int k = 0; frame && k < 3; k++) vel[k] += frame[3 + k];
}

/* −½ ρ (C_d A) |v| v, for the velocity v of the COM against the air. */
static void add_drag(mjData* d, int body, double area, double density,
                     const mjtNum vel[3]) {
  mjtNum speed = sqrt(vel[0] * vel[0] + vel[1] * vel[1] + vel[2] * vel[2]);
  mjtNum factor = -0.5 * area * density * speed;
  for (int k = 0; k < 3; k++) d->xfrc_applied[6 * body + k] += factor * vel[k];
}

static void drag(const core_load* load, const mjModel* m, mjData* d, int world,
                 const mjtNum* frame) {
  const double *p = parameters(load, world), *wind = p + 2;
  for (int i = 0; i < load->num_bodies; i++) {
    mjtNum vel[3];
    com_velocity(m, d, load->body[i], frame, vel);
    for (int k = 0; k < 3; k++) vel[k] -= wind[k];
    add_drag(d, load->body[i], p[0], p[1], vel);
  }
}

static void air_drag(const core_load* load, const mjModel* m, mjData* d, int world,
                     const mjtNum* frame) {
  const double* p = parameters(load, world);
  for (int i = 0; i < load->num_bodies; i++) {
    int body = load->body[i];
    mjtNum vel[3], pos[3], wind[3] = {p[1], p[2], p[3]};
    com_velocity(m, d, body, frame, vel);
    for (int k = 0; k < 3; k++) {
      pos[k] = d->xipos[3 * body + k] + (frame ? frame[k] : 0);
    }
    core_add_air_velocity(load->table, pos, wind);
    for (int k = 0; k < 3; k++) vel[k] -= wind[k];
    add_drag(d, body, p[0], core_air_density(load->table, p + 4, pos), vel);
  }
}

/* out = rot · vec, for a matrix by rows. */
static void rotate(const mjtNum rot[9], const double vec[3], double out[3]) {
  for (int k = 0; k < 3; k++) {
    const mjtNum* row = rot + 3 * k;
    out[k] = row[0] * vec[0] + row[1] * vec[1] + row[2] * vec[2];
  }
}

static void add_cross(const double a[3], const double b[3], mjtNum out[3]) {
  out[0] += a[1] * b[2] - a[2] * b[1];
  out[1] += a[2] * b[0] - a[0] * b[2];
  out[2] += a[0] * b[1] - a[1] * b[0];
}

/* Σ −½ ρ C_d A max(0, n · v) v at the centres of panels, for their velocities v against
 * the air. */
static void panels(const core_load* load, const mjModel* m, mjData* d, int world,
                   const mjtNum* frame) {
  const double *p = parameters(load, world), *end = p + load->num_parameters;
  int body = load->body[0];
  const mjtNum *rot = d->xmat + 9 * body, *spin = d->cvel + 6 * body;
  mjtNum vel[3], pos[3], wind[3] = {0, 0, 0}, *load_at = d->xfrc_applied + 6 * body;
  com_velocity(m, d, body, frame, vel);
  for (int k = 0; k < 3; k++) {
    pos[k] = d->xipos[3 * body + k] + (frame ? frame[k] : 0);
  }
  core_add_air_velocity(load->table, pos, wind);
  double density = core_air_density(load->table, p, pos);
  for (p += CORE_AIR_NUMBERS; p < end; p += CORE_PANEL_NUMBERS) {
    double normal[3], arm[3], stream[3], force[3], inflow = 0;
    rotate(rot, p, normal);
    rotate(rot, p + 5, arm);
    for (int k = 0; k < 3; k++) {
      arm[k] += d->xpos[3 * body + k] - d->xipos[3 * body + k];
      stream[k] = vel[k] - wind[k];
    }
    add_cross(spin, arm, stream);
    for (int k = 0; k < 3; k++) inflow += normal[k] * stream[k];
    if (!(inflow > 0)) continue;
    for (int k = 0; k < 3; k++) {
      force[k] = -0.5 * p[4] * p[3] * density * inflow * stream[k];
      load_at[k] += force[k];
    }
    add_cross(arm, force, load_at + 3);
  }
}

/* Half the distance of two points between which a gradient is measured. */
static double sample_step(const mjtNum pos[3]) {
  double r = sqrt(pos[0] * pos[0] + pos[1] * pos[1] + pos[2] * pos[2]);
  return fmax(2e-5 * r, 1e-6);
}

int core_num_samples(const core_load* load) {
  return (load->frame >= 0) + load->num_bodies * (load->table[0] != 0 ? 7 : 1);
}

static void sample_points(const core_load* load, const mjData* d, int world,
                          const mjtNum* frame) {
  double* to = load->point + (ptrdiff_t)world * load->num_points * 3;
  int has_torque = load->table[0] != 0;
  if (frame) {
    memcpy(to, frame, 3 * sizeof *to);
    to += 3;
  }
  for (int i = 0; i < load->num_bodies; i++) {
    const mjtNum* com = d->xipos + 3 * load->body[i];
    double pos[3];
    for (int k = 0; k < 3; k++) pos[k] = frame ? frame[k] + com[k] : com[k];
    memcpy(to, pos, sizeof pos);
    to += 3;
    double step = sample_step(pos);
    for (int j = 0; has_torque && j < 3; j++, to += 6) {
      memcpy(to, pos, sizeof pos);
      to[j] -= step;
      memcpy(to + 3, to, sizeof pos);
      to[3 + j] += 2 * step;
    }
  }
}

void core_write_samples(const core_load* load, int num_loads, int segment,
                        const mjData* d, int world, const mjtNum* process) {
  for (int i = 0; i < num_loads; i++, load++) {
    if (load->kind != CORE_SAMPLED_GRAVITY || load->segment != segment) continue;
    sample_points(load, d, world, load->frame < 0 ? NULL : process + load->frame);
  }
}

/* The torque about a body's COM of a gradient that was measured around it. */
static void add_sampled_torque(const double* around, double step, const mjModel* m,
                               mjData* d, int body) {
  const mjtNum *axes = d->ximat + 9 * body, *inertia = m->body_inertia + 3 * body;
  double gradient[9], own[9] = {0}, turned[3];
  for (int j = 0; j < 3; j++, around += 6) {
    for (int i = 0; i < 3; i++) {
      gradient[3 * i + j] = (around[3 + i] - around[i]) / (2 * step);
    }
  }
  for (int i = 0; i < 9; i++) { /* axesᵀ · gradient · axes */
    for (int k = 0; k < 9; k++) {
      own[i] += axes[3 * (k / 3) + i / 3] * gradient[k] * axes[3 * (k % 3) + i % 3];
    }
  }
  turned[0] = (inertia[2] - inertia[1]) * own[5];
  turned[1] = (inertia[0] - inertia[2]) * own[6];
  turned[2] = (inertia[1] - inertia[0]) * own[1];
  for (int k = 0; k < 3; k++) {
    const mjtNum* row = axes + 3 * k;
    d->xfrc_applied[6 * body + 3 + k] +=
        row[0] * turned[0] + row[1] * turned[1] + row[2] * turned[2];
  }
}

static void sampled_gravity(const core_load* load, const mjModel* m, mjData* d, int world,
                            const mjtNum* frame) {
  ptrdiff_t first = (ptrdiff_t)world * load->num_points * 3;
  const double *sample = load->sample + first, *point = load->point + first;
  int has_torque = load->table[0] != 0;
  double fall[3] = {0, 0, 0};
  if (frame) {
    memcpy(fall, sample, sizeof fall);
    sample += 3;
    point += 3;
  }
  for (int i = 0; i < load->num_bodies; i++) {
    double acc[3];
    for (int k = 0; k < 3; k++) acc[k] = frame ? sample[k] - fall[k] : sample[k];
    add_weight(m, d, load->body[i], acc);
    if (has_torque) {
      add_sampled_torque(sample + 3, sample_step(point), m, d, load->body[i]);
    }
    sample += has_torque ? 21 : 3;
    point += has_torque ? 21 : 3;
  }
}

/* Calls a user's function; one that changes the state ends the call of this world. */
static void call_function(const core_load* load, const mjModel* m, mjData* d,
                          int world) {
  const mjtNum* const state[] = {&d->time, d->qpos, d->qvel, d->act};
  const int size[] = {1, (int)m->nq, (int)m->nv, (int)m->na};
  static const char* const name[] = {"time", "qpos", "qvel", "act"};
  const char* written = NULL;
  simstate_force force;
  memcpy(&force, load->table, sizeof force);
  lib.mj_markStack(d);
  mjtNum* before = lib.mj_stackAllocNum(d, (size_t)(size[0] + size[1] + size[2] + size[3]));
  mjtNum* at = before;
  for (int i = 0; i < 4; at += size[i++]) {
    memcpy(at, state[i], sizeof *at * (size_t)size[i]);
  }
  force(m, d, parameters(load, world), world);
  at = before;
  for (int i = 0; i < 4; at += size[i++]) {
    if (memcmp(at, state[i], sizeof *at * (size_t)size[i])) written = name[i];
  }
  lib.mj_freeStack(d);
  if (written) {
    lib.mju_error("A compiled force wrote to %s: it may write ctrl, qfrc_applied and "
                  "xfrc_applied only", written);
  }
}

void core_add_loads(const core_load* load, int num_loads, int first_segment,
                    int last_segment, const mjModel* m, mjData* d, int world,
                    const mjtNum* process, mjtNum* mass_rate) {
  for (int i = 0; i < num_loads; i++, load++) {
    if (load->segment < first_segment || load->segment > last_segment) continue;
    const mjtNum* own = load->frame < 0 ? NULL : process + load->frame;
    switch (load->kind) {
      case CORE_UNIFORM_GRAVITY:
        uniform_gravity(load, m, d, world);
        break;
      case CORE_POINT_GRAVITY:
        point_gravity(load, m, d, world, own);
        break;
      case CORE_THRUSTER:
        thruster(load, m, d, world, mass_rate);
        break;
      case CORE_DRAG:
        drag(load, m, d, world, own);
        break;
      case CORE_FIELD_GRAVITY:
        field_gravity(load, m, d, world, own);
        break;
      case CORE_AIR_DRAG:
        air_drag(load, m, d, world, own);
        break;
      case CORE_WHEELS:
        core_turn_wheels(load->table, parameters(load, world), d);
        break;
      case CORE_PANELS:
        panels(load, m, d, world, own);
        break;
      case CORE_SAMPLED_GRAVITY:
        sampled_gravity(load, m, d, world, own);
        break;
      case CORE_AERODYNAMICS:
        core_add_aerodynamics(load->table, parameters(load, world), m, d,
                              load->body[0], world);
        break;
      case CORE_ROTOR:
        core_add_rotor(load->table, parameters(load, world), m, d, load->body[0], world);
        break;
      case CORE_FUNCTION:
        call_function(load, m, d, world);
        break;
      default:
        break;
    }
  }
}

void core_frame_rate(const core_load* load, int num_loads, int frame, int world,
                     mjtNum time, const mjtNum value[6], mjtNum rate[6]) {
  for (int k = 0; k < 3; k++) {
    rate[k] = value[3 + k];
    rate[3 + k] = 0;
  }
  for (int i = 0; i < num_loads; i++, load++) {
    double acc[3] = {0, 0, 0};
    if (load->frame != frame) continue;
    if (load->kind == CORE_POINT_GRAVITY) {
      point_acceleration(parameters(load, world) + 1, (load->num_parameters - 1) / 4,
                         value, acc);
    } else if (load->kind == CORE_FIELD_GRAVITY) {
      core_field_acceleration(load->table, parameters(load, world), time, value, acc);
    } else if (load->kind == CORE_SAMPLED_GRAVITY) {
      memcpy(acc, load->sample + (ptrdiff_t)world * load->num_points * 3, sizeof acc);
    }
    for (int k = 0; k < 3; k++) rate[3 + k] += acc[k];
  }
}
