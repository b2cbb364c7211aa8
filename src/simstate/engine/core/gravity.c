/* The gravity of a central body: harmonics that turn with it, and other bodies.
 *
 * The formulas are those of simstate.space: Cunningham's recursion of the normalised
 * functions, with derivatives in the weights; Chebyshev's polynomials in segments. */
#include "gravity.h"

#include <math.h>
#include <string.h>

/* Where the arrays of a table are. */
typedef struct {
  int degree, num_bodies;
  core_rotation rotation;
  const double* angle;
  const double *a, *b, *d, *acceleration, *gradient;
  const double* pole;
  const double* body[CORE_MAX_BODIES];
} field;

/* The numbers that polynomials take, −1 if they are not well formed. */
static ptrdiff_t polynomials_size(const double* p, size_t left) {
  if (left < 4) return -1;
  double segments = p[2], degree = p[3];
  if (!(p[1] > 0) || !(segments >= 0 && segments <= 1e7) ||
      !(degree >= 0 && degree <= 100) || segments != floor(segments) ||
      degree != floor(degree)) {
    return -1;
  }
  double size = 4 + segments * (degree + 1) * 3;
  return size <= (double)left ? (ptrdiff_t)size : -1;
}

static const double* next_polynomials(const double** at) {
  const double* own = *at;
  *at += 4 + (ptrdiff_t)own[2] * ((ptrdiff_t)own[3] + 1) * 3;
  return own;
}

static ptrdiff_t harmonics_size(int degree) {
  ptrdiff_t size = degree + 1, functions = size * (size + 1) / 2;
  return degree ? 2 * size * size + size + 2 * functions * (3 + 6) : 0;
}

int core_is_field(const double* table, size_t count, int num_parameters) {
  if (count < CORE_FIELD_HEAD) return 0;
  double degree = table[0], rotation = table[1], bodies = table[2];
  if (!(degree >= 0 && degree <= CORE_MAX_DEGREE) || degree != floor(degree) ||
      !(rotation == 0 || rotation == 1 || rotation == 2) ||
      !(bodies >= 0 && bodies <= CORE_MAX_BODIES) || bodies != floor(bodies)) {
    return 0;
  }
  size_t at = CORE_FIELD_HEAD + (size_t)harmonics_size((int)degree);
  int others = (int)bodies + (rotation == CORE_EARTH_ROTATION);
  for (int i = 0; i < others; i++) {
    ptrdiff_t size = at <= count ? polynomials_size(table + at, count - at) : -1;
    if (size < 0) return 0;
    at += (size_t)size;
  }
  return at == count && num_parameters == CORE_FIELD_NUMBERS + 4 * (int)bodies;
}

static field open_table(const double* table) {
  field f = {.degree = (int)table[0],
             .rotation = (core_rotation)(int)table[1],
             .num_bodies = (int)table[2],
             .angle = table + 3};
  ptrdiff_t size = f.degree + 1, functions = size * (size + 1) / 2;
  const double* at = table + CORE_FIELD_HEAD;
  if (f.degree) {
    f.a = at;
    f.b = f.a + size * size;
    f.d = f.b + size * size;
    f.acceleration = f.d + size;
    f.gradient = f.acceleration + 2 * functions * 3;
    at = f.gradient + 2 * functions * 6;
  }
  if (f.rotation == CORE_EARTH_ROTATION) f.pole = next_polynomials(&at);
  for (int i = 0; i < f.num_bodies; i++) f.body[i] = next_polynomials(&at);
  return f;
}

/* A vector at a time, by Clenshaw's recursion. */
static void evaluate(const double* p, double t, double value[3]) {
  int segments = (int)p[2], degree = (int)p[3];
  double place = (t - p[0]) / p[1], index = floor(place);
  if (!(index > 0)) index = 0;
  if (index > segments - 1) index = segments - 1;
  double x = fmin(1, fmax(-1, 2 * (place - index) - 1));
  const double* c = p + 4 + (ptrdiff_t)index * (degree + 1) * 3;
  for (int k = 0; k < 3; k++) {
    double one = 0, two = 0;
    for (int j = degree; j > 0; j--) {
      double next = 2 * x * one - two + c[3 * j + k];
      two = one;
      one = next;
    }
    value[k] = x * one - two + c[k];
  }
}

/* ------------------------------------------------------------------ point masses */

void core_point_acceleration(double mu, const double from_mass[3], double acc[3]) {
  double norm = sqrt(from_mass[0] * from_mass[0] + from_mass[1] * from_mass[1] +
                     from_mass[2] * from_mass[2]);
  for (int k = 0; k < 3; k++) acc[k] -= mu * from_mass[k] / (norm * norm * norm);
}

void core_point_difference(double mu, const double from_mass[3], const double offset[3],
                           double acc[3]) {
  double square = 0, product = 0;
  for (int k = 0; k < 3; k++) {
    square += from_mass[k] * from_mass[k];
    product += offset[k] * (offset[k] + 2 * from_mass[k]);
  }
  double change = expm1(-1.5 * log1p(product / square));
  double scale = -mu / (square * sqrt(square));
  for (int k = 0; k < 3; k++) {
    acc[k] += scale * (offset[k] + (from_mass[k] + offset[k]) * change);
  }
}

static void add_point_gradient(double mu, const double from_mass[3],
                               double gradient[3][3]) {
  double square = 0;
  for (int k = 0; k < 3; k++) square += from_mass[k] * from_mass[k];
  double scale = mu / (square * sqrt(square));
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      gradient[i][j] += scale * (3 * from_mass[i] * from_mass[j] / square - (i == j));
    }
  }
}

/* ---------------------------------------------------------------------- rotation */

static void about_z(double angle, double m[3][3]) {
  double c = cos(angle), s = sin(angle);
  const double rows[3][3] = {{c, s, 0}, {-s, c, 0}, {0, 0, 1}};
  memcpy(m, rows, sizeof rows);
}

static void multiply(const double a[3][3], const double b[3][3], double out[3][3]) {
  double made[3][3];
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      made[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    }
  }
  memcpy(out, made, sizeof made);
}

/* Precession and nutation by the pole, then the Earth rotation angle. */
static void earth_rotation(const field* f, double t, double rot[3][3]) {
  double pole[3], turn[3][3], tilt[3][3], node[3][3];
  evaluate(f->pole, t, pole);
  double x = pole[0], y = pole[1], e = atan2(y, x);
  double d = atan2(hypot(x, y), sqrt(1 - x * x - y * y));
  double c = cos(d), s = sin(d);
  const double rows[3][3] = {{c, 0, -s}, {0, 1, 0}, {s, 0, c}};
  memcpy(tilt, rows, sizeof rows);
  double seconds = t + f->angle[0], days = seconds / 86400.0;
  double turns = 0.7790572732640 + 0.00273781191135448 * (f->angle[1] + days) +
                 f->angle[2] + days;
  about_z(-(e + pole[2]), turn);
  about_z(e, node);
  multiply(turn, tilt, rot);
  multiply(rot, node, rot);
  about_z(2 * mjPI * (turns - floor(turns)), turn);
  multiply(turn, rot, rot);
}

/* From inertial axes to axes fixed in the planet. */
static void find_rotation(const field* f, const double* parameter, double t,
                          double rot[3][3]) {
  if (f->rotation == CORE_EARTH_ROTATION) {
    earth_rotation(f, t, rot);
  } else {
    about_z(f->rotation ? parameter[3] + parameter[2] * t : 0, rot);
  }
}

/* --------------------------------------------------------------------- harmonics */

/* The sums of a field's functions with their weights: 3 of the acceleration, or 6 of
 * the gradient, along fixed axes. */
static void sum_functions(const field* f, double radius, const double pos[3],
                          const double* weights, int width, double* sum) {
  double kept[3][2][CORE_MAX_DEGREE + 1];
  double(*before)[CORE_MAX_DEGREE + 1] = kept[0], (*now)[CORE_MAX_DEGREE + 1] = kept[1],
        (*after)[CORE_MAX_DEGREE + 1] = kept[2];
  int size = f->degree + 1, last = width == 3 ? f->degree - 1 : f->degree;
  ptrdiff_t functions = (ptrdiff_t)size * (size + 1) / 2, at = 0;
  double square = pos[0] * pos[0] + pos[1] * pos[1] + pos[2] * pos[2];
  double scale = radius / square, ratio = radius * scale;
  double x = pos[0] * scale, y = pos[1] * scale, z = pos[2] * scale;
  for (int k = 0; k < width; k++) sum[k] = 0;
  for (int n = 0; n <= last; n++) {
    if (n == 0) {
      after[0][0] = radius / sqrt(square);
      after[1][0] = 0;
    } else {
      const double *a = f->a + n * size, *b = f->b + n * size;
      for (int part = 0; part < 2; part++) {
        for (int m = 0; m < n - 1; m++) {
          after[part][m] = a[m] * z * now[part][m] - b[m] * ratio * before[part][m];
        }
        after[part][n - 1] = a[n - 1] * z * now[part][n - 1];
      }
      double v = now[0][n - 1], w = now[1][n - 1];
      after[0][n] = f->d[n] * (x * v - y * w);
      after[1][n] = f->d[n] * (y * v + x * w);
    }
    for (int m = 0; m <= n; m++, at++) {
      const double *real = weights + width * at, *other = real + width * functions;
      for (int k = 0; k < width; k++) {
        sum[k] += real[k] * after[0][m] + other[k] * after[1][m];
      }
    }
    double(*free)[CORE_MAX_DEGREE + 1] = before;
    before = now;
    now = after;
    after = free;
  }
}

/* What the harmonics add to the central term at a place, inertial axes. */
static void disturbance(const field* f, const double* parameter,
                        const double rot[3][3], const double pos[3], double acc[3]) {
  double fixed[3], own[3], scale = parameter[0] / (parameter[1] * parameter[1]);
  for (int i = 0; i < 3; i++) {
    fixed[i] = rot[i][0] * pos[0] + rot[i][1] * pos[1] + rot[i][2] * pos[2];
  }
  sum_functions(f, parameter[1], fixed, f->acceleration, 3, own);
  for (int i = 0; i < 3; i++) {
    acc[i] = scale * (rot[0][i] * own[0] + rot[1][i] * own[1] + rot[2][i] * own[2]);
  }
}

static void add_harmonic_gradient(const field* f, const double* parameter,
                                  const double rot[3][3], const double pos[3],
                                  double gradient[3][3]) {
  static const int entry[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
  double fixed[3], six[6], own[3][3], transposed[3][3];
  double scale = parameter[0] / (parameter[1] * parameter[1] * parameter[1]);
  for (int i = 0; i < 3; i++) {
    fixed[i] = rot[i][0] * pos[0] + rot[i][1] * pos[1] + rot[i][2] * pos[2];
    for (int j = 0; j < 3; j++) transposed[i][j] = rot[j][i];
  }
  sum_functions(f, parameter[1], fixed, f->gradient, 6, six);
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) own[i][j] = scale * six[entry[i][j]];
  }
  multiply(transposed, own, own);
  multiply(own, rot, own);
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) gradient[i][j] += own[i][j];
  }
}

/* ------------------------------------------------------------------------- fields */

/* Where another body is from the central one. */
static void find_body(const field* f, const double* parameter, int i, double t,
                      double place[3]) {
  if (f->body[i][2] > 0) {
    evaluate(f->body[i], t, place);
  } else {
    memcpy(place, parameter + CORE_FIELD_NUMBERS + 4 * i + 1, 3 * sizeof(double));
  }
}

void core_field_acceleration(const double* table, const double* parameter, double t,
                             const double pos[3], double acc[3]) {
  field f = open_table(table);
  double rot[3][3], place[3];
  for (int k = 0; k < 3; k++) acc[k] = 0;
  if (f.degree) {
    find_rotation(&f, parameter, t, rot);
    disturbance(&f, parameter, rot, pos, acc);
  }
  core_point_acceleration(parameter[0], pos, acc);
  for (int i = 0; i < f.num_bodies; i++) {
    find_body(&f, parameter, i, t, place);
    const double from_body[3] = {-place[0], -place[1], -place[2]};
    core_point_difference(parameter[CORE_FIELD_NUMBERS + 4 * i], from_body, pos, acc);
  }
}

void core_field_difference(const double* table, const double* parameter, double t,
                           const double pos[3], const double offset[3], double acc[3]) {
  field f = open_table(table);
  double rot[3][3], place[3], here[3], there[3];
  for (int k = 0; k < 3; k++) acc[k] = 0;
  if (f.degree) {
    const double beyond[3] = {pos[0] + offset[0], pos[1] + offset[1],
                              pos[2] + offset[2]};
    find_rotation(&f, parameter, t, rot);
    disturbance(&f, parameter, rot, pos, here);
    disturbance(&f, parameter, rot, beyond, there);
    for (int k = 0; k < 3; k++) acc[k] = there[k] - here[k];
  }
  core_point_difference(parameter[0], pos, offset, acc);
  for (int i = 0; i < f.num_bodies; i++) {
    find_body(&f, parameter, i, t, place);
    const double from_body[3] = {pos[0] - place[0], pos[1] - place[1],
                                 pos[2] - place[2]};
    core_point_difference(parameter[CORE_FIELD_NUMBERS + 4 * i], from_body, offset, acc);
  }
}

void core_field_torque(const double* table, const double* parameter, double t,
                       const double pos[3], const mjtNum inertia[3],
                       const mjtNum axes[9], double torque[3]) {
  field f = open_table(table);
  double gradient[3][3] = {{0}}, rot[3][3], place[3], turned[3];
  add_point_gradient(parameter[0], pos, gradient);
  if (f.degree) {
    find_rotation(&f, parameter, t, rot);
    add_harmonic_gradient(&f, parameter, rot, pos, gradient);
  }
  for (int i = 0; i < f.num_bodies; i++) {
    find_body(&f, parameter, i, t, place);
    const double from_body[3] = {pos[0] - place[0], pos[1] - place[1],
                                 pos[2] - place[2]};
    add_point_gradient(parameter[CORE_FIELD_NUMBERS + 4 * i], from_body, gradient);
  }
  for (int k = 0; k < 3; k++) { /* axes' transpose · gradient · axes, entry (i, j) */
    int i = (k + 1) % 3, j = (k + 2) % 3;
    double entry = 0;
    for (int a = 0; a < 3; a++) {
      for (int b = 0; b < 3; b++) {
        entry += axes[3 * a + i] * gradient[a][b] * axes[3 * b + j];
      }
    }
    turned[k] = (inertia[j] - inertia[i]) * entry;
  }
  for (int k = 0; k < 3; k++) {
    const mjtNum* row = axes + 3 * k;
    torque[k] = row[0] * turned[0] + row[1] * turned[1] + row[2] * turned[2];
  }
}
