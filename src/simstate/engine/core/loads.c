/* Force models that are evaluated with the dynamics: gravity, thrust, drag.
 *
 * All forces act at the bodies' centres of mass, in world axes, as xfrc_applied does.
 * In a moving frame positions and velocities are relative to the frame's, and gravity
 * is what it does to the body beyond what it does to the frame.
 */
#include <math.h>

#include "loads.h"

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
    double to[3] = {mass[1] - pos[0], mass[2] - pos[1], mass[3] - pos[2]};
    double norm = sqrt(to[0] * to[0] + to[1] * to[1] + to[2] * to[2]);
    for (int k = 0; k < 3; k++) acc[k] += mass[0] * to[k] / (norm * norm * norm);
  }
}

/* What point masses do at `offset` from `frame` beyond what they do at `frame`.
 *
 * |r + d|⁻³ − |r|⁻³ comes from q = (|r + d|² − |r|²) / |r|², without a difference of
 * two nearly equal numbers. */
static void point_difference(const double* mass, int num_masses, const mjtNum frame[3],
                             const mjtNum offset[3], double acc[3]) {
  for (int k = 0; k < 3; k++) acc[k] = 0;
  for (int i = 0; i < num_masses; i++, mass += 4) {
    double r[3], square = 0, product = 0;
    for (int k = 0; k < 3; k++) {
      r[k] = frame[k] - mass[1 + k];
      square += r[k] * r[k];
      product += offset[k] * (offset[k] + 2 * r[k]);
    }
    double change = expm1(-1.5 * log1p(product / square));
    double scale = -mass[0] / (square * sqrt(square));
    for (int k = 0; k < 3; k++) {
      acc[k] += scale * (offset[k] + (r[k] + offset[k]) * change);
    }
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
  const double* mass = parameters(load, world);
  int has_torque = mass[4 * num_masses] != 0;
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

/* −½ ρ (C_d A) |v| v, for the velocity v of the COM against the air. */
static void drag(const core_load* load, const mjModel* m, mjData* d, int world,
                 const mjtNum* frame) {
  const double *p = parameters(load, world), *wind = p + 2;
  for (int i = 0; i < load->num_bodies; i++) {
    int body = load->body[i];
    const mjtNum *spin = d->cvel + 6 * body, *pos = d->xipos + 3 * body;
    const mjtNum* centre = d->subtree_com + 3 * m->body_rootid[body];
    mjtNum r[3] = {centre[0] - pos[0], centre[1] - pos[1], centre[2] - pos[2]};
    mjtNum vel[3] = {spin[3] - (spin[1] * r[2] - spin[2] * r[1]),
                     spin[4] - (spin[2] * r[0] - spin[0] * r[2]),
                     spin[5] - (spin[0] * r[1] - spin[1] * r[0])};
    for (int k = 0; k < 3; k++) {
      if (frame) vel[k] += frame[3 + k];
      vel[k] -= wind[k];
    }
    mjtNum speed = sqrt(vel[0] * vel[0] + vel[1] * vel[1] + vel[2] * vel[2]);
    mjtNum factor = -0.5 * p[0] * p[1] * speed;
    for (int k = 0; k < 3; k++) d->xfrc_applied[6 * body + k] += factor * vel[k];
  }
}

void core_add_loads(const core_load* load, int num_loads, const mjModel* m, mjData* d,
                    int world, const mjtNum* frame, mjtNum* mass_rate) {
  for (int i = 0; i < num_loads; i++, load++) {
    const mjtNum* own = load->frame < 0 ? NULL : frame + 6 * load->frame;
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
      default:
        break;
    }
  }
}

void core_frame_rate(const core_load* load, int num_loads, int frame, int world,
                     const mjtNum value[6], mjtNum rate[6]) {
  for (int k = 0; k < 3; k++) {
    rate[k] = value[3 + k];
    rate[3 + k] = 0;
  }
  for (int i = 0; i < num_loads; i++, load++) {
    if (load->kind != CORE_POINT_GRAVITY || load->frame != frame) continue;
    double acc[3];
    point_acceleration(parameters(load, world), (load->num_parameters - 1) / 4, value,
                       acc);
    for (int k = 0; k < 3; k++) rate[3 + k] += acc[k];
  }
}
