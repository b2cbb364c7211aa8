/* Orientations in a Runge-Kutta step: rates of their coordinates, displacements.
 *
 * The one source of these formulas. The core includes it with REAL = mjtNum; Warp kernels
 * take its text as C++, in float and double (step/forces/formulas.py). So it is plain C
 * without types of MuJoCo, preprocessor lines and names of Warp; FORMULA declares a
 * function, and constants are cast to REAL. */

enum { ATTITUDE_MANIFOLD = 0, ATTITUDE_HIGH_ORDER = 1, ATTITUDE_LIE = 2 };

/* (1 − (θ/2) cot(θ/2)) / θ², which is 1/12 at θ = 0. */
FORMULA REAL dexp_inverse_factor(REAL angle2) {
  const REAL one = 1;
  if (angle2 < (REAL)1e-2) { /* the series' next term is below 2e-16 here */
    REAL series = one / (REAL)30240 + angle2 / (REAL)1209600;
    series = one / (REAL)720 + angle2 * series;
    return one / (REAL)12 + angle2 * series;
  }
  REAL half = sqrt(angle2) * (REAL)0.5;
  return (one - half * cos(half) / sin(half)) / angle2;
}

FORMULA REAL quaternion_norm(const REAL* q) {
  return sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
}

/* q̇ = ½ q ⊗ (0, ω) for the unit quaternion along q. */
FORMULA void quaternion_rate(const REAL* q, const REAL* w, REAL* rate) {
  REAL half = (REAL)0.5 / quaternion_norm(q);
  REAL qw = half * q[0], qx = half * q[1], qy = half * q[2], qz = half * q[3];
  rate[0] = -qx * w[0] - qy * w[1] - qz * w[2];
  rate[1] = qw * w[0] + qy * w[2] - qz * w[1];
  rate[2] = qw * w[1] - qx * w[2] + qz * w[0];
  rate[3] = qw * w[2] + qx * w[1] - qy * w[0];
}

/* The rotation vector u of q = q0 exp(u) moves with
 * u' = ω + u × ω / 2 + factor · u × (u × ω), for ω in body axes. */
FORMULA void turn_rate(const REAL* u, const REAL* w, REAL* rate) {
  const REAL half = (REAL)0.5;
  REAL c[3] = {u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2],
               u[0] * w[1] - u[1] * w[0]};
  REAL angle2 = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
  REAL spin2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
  REAL factor = 0;
  /* Along one axis nothing is to correct, also where the factor is singular. */
  if (c[0] * c[0] + c[1] * c[1] + c[2] * c[2] > (REAL)1e-28 * angle2 * spin2) {
    factor = dexp_inverse_factor(angle2);
  }
  rate[0] = w[0] + half * c[0] + factor * (u[1] * c[2] - u[2] * c[1]);
  rate[1] = w[1] + half * c[1] + factor * (u[2] * c[0] - u[0] * c[2]);
  rate[2] = w[2] + half * c[2] + factor * (u[0] * c[1] - u[1] * c[0]);
}

/* quat = q exp(h · u), in mju_quatIntegrate's order of operations: its bits. */
FORMULA void turn_by(const REAL* q, const REAL* u, REAL h, REAL* quat) {
  REAL speed = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
  REAL half = h * speed * (REAL)0.5;
  REAL ew = cos(half), s = sin(half);
  REAL inverse = speed > (REAL)0 ? (REAL)1 / speed : (REAL)0;
  REAL ex = u[0] * inverse * s, ey = u[1] * inverse * s, ez = u[2] * inverse * s;
  quat[0] = q[0] * ew - q[1] * ex - q[2] * ey - q[3] * ez;
  quat[1] = q[0] * ex + q[1] * ew + q[2] * ez - q[3] * ey;
  quat[2] = q[0] * ey - q[1] * ez + q[2] * ew + q[3] * ex;
  quat[3] = q[0] * ez + q[1] * ey - q[2] * ex + q[3] * ew;
}

/* The rate of an orientation's coordinates for an angular velocity in body axes: three
 * numbers, four in high-order mode. `turn` is the rotation vector since the step began. */
FORMULA void attitude_rate(int mode, const REAL* quat, const REAL* turn,
                           const REAL* angvel, REAL* rate) {
  if (mode == ATTITUDE_HIGH_ORDER) {
    quaternion_rate(quat, angvel, rate);
  } else if (mode == ATTITUDE_LIE) {
    turn_rate(turn, angvel, rate);
  } else {
    for (int k = 0; k < 3; k++) rate[k] = angvel[k];
  }
}

/* quat = origin ⊕ h · move; keeps the rotation vector, except in high-order mode. */
FORMULA void attitude_displace(int mode, const REAL* origin, const REAL* move, REAL h,
                               REAL* turn, REAL* quat) {
  const REAL one = 1;
  REAL q[4] = {origin[0], origin[1], origin[2], origin[3]};
  /* Where MuJoCo does it, with its threshold: rounding must not add up over steps. */
  REAL norm = quaternion_norm(q);
  if (norm - one > (REAL)1e-15 || one - norm > (REAL)1e-15) {
    REAL scale = one / norm;
    for (int k = 0; k < 4; k++) q[k] *= scale;
  }
  if (mode == ATTITUDE_HIGH_ORDER) {
    for (int k = 0; k < 4; k++) q[k] += h * move[k];
    norm = quaternion_norm(q);
    for (int k = 0; k < 4; k++) quat[k] = q[k] / norm;
  } else {
    for (int k = 0; k < 3; k++) turn[k] = h * move[k];
    turn_by(q, move, h, quat);
  }
}
