/* Orientations in a Runge-Kutta step: rates of their coordinates, displacements. */
#include <math.h>

#include "integrate.h"

/* (1 − (θ/2) cot(θ/2)) / θ², which is 1/12 at θ = 0. */
static mjtNum dexp_inverse_factor(mjtNum angle2) {
  if (angle2 < 1e-2) { /* the series' next term is below 2e-16 here */
    mjtNum series = 1.0 / 30240.0 + angle2 / 1209600.0;
    series = 1.0 / 720.0 + angle2 * series;
    return 1.0 / 12.0 + angle2 * series;
  }
  mjtNum half = sqrt(angle2) * 0.5;
  return (1.0 - half * cos(half) / sin(half)) / angle2;
}

/* q̇ = ½ q ⊗ (0, ω) for the unit quaternion along q. */
static void quaternion_rate(const mjtNum q[4], const mjtNum w[3], mjtNum rate[4]) {
  mjtNum half = 0.5 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  mjtNum qw = half * q[0], qx = half * q[1], qy = half * q[2], qz = half * q[3];
  rate[0] = -qx * w[0] - qy * w[1] - qz * w[2];
  rate[1] = qw * w[0] + qy * w[2] - qz * w[1];
  rate[2] = qw * w[1] - qx * w[2] + qz * w[0];
  rate[3] = qw * w[2] + qx * w[1] - qy * w[0];
}

/* The rotation vector u of q = q0 exp(u) moves with
 * u' = ω + u × ω / 2 + factor · u × (u × ω), for ω in body axes. */
static void turn_rate(const mjtNum u[3], const mjtNum w[3], mjtNum rate[3]) {
  mjtNum c[3] = {u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2],
                 u[0] * w[1] - u[1] * w[0]};
  mjtNum angle2 = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
  mjtNum spin2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
  mjtNum factor = 0;
  /* Along one axis nothing is to correct, also where the factor is singular. */
  if (c[0] * c[0] + c[1] * c[1] + c[2] * c[2] > 1e-28 * angle2 * spin2) {
    factor = dexp_inverse_factor(angle2);
  }
  rate[0] = w[0] + 0.5 * c[0] + factor * (u[1] * c[2] - u[2] * c[1]);
  rate[1] = w[1] + 0.5 * c[1] + factor * (u[2] * c[0] - u[0] * c[2]);
  rate[2] = w[2] + 0.5 * c[2] + factor * (u[0] * c[1] - u[1] * c[0]);
}

void core_attitude_rate(core_attitude mode, const mjtNum quat[4], const mjtNum turn[3],
                        const mjtNum angvel[3], mjtNum* rate) {
  switch (mode) {
    case CORE_HIGH_ORDER:
      quaternion_rate(quat, angvel, rate);
      break;
    case CORE_LIE:
      turn_rate(turn, angvel, rate);
      break;
    default:
      for (int k = 0; k < 3; k++) rate[k] = angvel[k];
  }
}

/* quat = q0 exp(h · u), in mju_quatIntegrate's order of operations: its bits. */
static void turn_by(const mjtNum q[4], const mjtNum u[3], mjtNum h, mjtNum quat[4]) {
  mjtNum speed = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
  mjtNum half = h * speed * 0.5;
  mjtNum ew = cos(half), s = sin(half);
  mjtNum inverse = speed > 0 ? 1.0 / speed : 0.0;
  mjtNum ex = u[0] * inverse * s, ey = u[1] * inverse * s, ez = u[2] * inverse * s;
  quat[0] = q[0] * ew - q[1] * ex - q[2] * ey - q[3] * ez;
  quat[1] = q[0] * ex + q[1] * ew + q[2] * ez - q[3] * ey;
  quat[2] = q[0] * ey - q[1] * ez + q[2] * ew + q[3] * ex;
  quat[3] = q[0] * ez + q[1] * ey - q[2] * ex + q[3] * ew;
}

void core_attitude_displace(core_attitude mode, const mjtNum origin[4],
                            const mjtNum* move, mjtNum h, mjtNum turn[3],
                            mjtNum quat[4]) {
  mjtNum q[4] = {origin[0], origin[1], origin[2], origin[3]};
  /* Where MuJoCo does it, with its threshold: rounding must not add up over steps. */
  mjtNum norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (fabs(norm - 1.0) > 1e-15) {
    mjtNum scale = 1.0 / norm;
    for (int k = 0; k < 4; k++) q[k] *= scale;
  }
  if (mode == CORE_HIGH_ORDER) {
    for (int k = 0; k < 4; k++) q[k] += h * move[k];
    norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int k = 0; k < 4; k++) quat[k] = q[k] / norm;
  } else {
    for (int k = 0; k < 3; k++) turn[k] = h * move[k];
    turn_by(q, move, h, quat);
  }
}
