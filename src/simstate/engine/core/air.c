/* A planet's air by altitude; the formulas are those of simstate.flight and .space. */
#include "air.h"

#include <math.h>

static const double STANDARD_RADIUS = 6356766.0; /* of geopotential altitudes [m] */

static int is_count(double x) { return x >= 0 && x <= 1e6 && x == floor(x); }

int core_is_air(const double* table, size_t count) {
  if (count < CORE_AIR_HEAD || !(table[0] > 0) || !is_count(table[4]) ||
      !is_count(table[5])) {
    return 0;
  }
  size_t layers = (size_t)table[4], points = (size_t)table[5];
  return (layers == 0 || points >= 2) &&
         count == CORE_AIR_HEAD + 4 * layers + 2 * points;
}

/* Height above the spheroid, by Bowring's iteration on the reduced latitude. */
static double geodetic_height(double radius, double flattening, const double pos[3]) {
  double out = hypot(pos[0], pos[1]), z = pos[2];
  double e2 = flattening * (2 - flattening), flat = 1 - flattening;
  double reduced = atan2(z, flat * out), lat = reduced;
  for (int i = 0; i < 5; i++) {
    double s = sin(reduced), c = cos(reduced);
    lat = atan2(z + e2 / flat * radius * s * s * s, out - e2 * radius * c * c * c);
    reduced = atan2(flat * sin(lat), cos(lat));
  }
  double sine = sin(lat);
  return out * cos(lat) + z * sine - radius * sqrt(1 - e2 * sine * sine);
}

/* How many of the first column's rising numbers are ≤ x. */
static int count_up_to(const double* rows, int count, int width, double x) {
  int found = 0;
  while (found < count && rows[found * width] <= x) found++;
  return found;
}

static double layer_density(const double* table, const double* layer, double height) {
  double x = STANDARD_RADIUS * height / (STANDARD_RADIUS + height);
  layer += 4 * count_up_to(layer + 4, (int)table[4] - 1, 4, x);
  double above = x - layer[0], relative = layer[2] * above / layer[1];
  double shape = relative == 0 ? 1 : log1p(relative) / relative;
  double pressure = layer[3] * exp(-table[6] * above / layer[1] * shape);
  return pressure * table[7] / (layer[1] + layer[2] * above);
}

double core_air_density(const double* table, const double* parameter,
                        const double pos[3]) {
  double height = geodetic_height(table[0], table[1], pos);
  int layers = (int)table[4], points = (int)table[5];
  if (!layers) return parameter[0] * exp(-((height - parameter[2]) / parameter[1]));
  if (table[3] != 0) height = STANDARD_RADIUS * height / (STANDARD_RADIUS - height);
  const double *layer = table + CORE_AIR_HEAD, *point = layer + 4 * layers;
  if (height <= point[0]) return parameter[0] * layer_density(table, layer, height);
  int right = count_up_to(point, points, 2, height);
  if (right > points - 1) right = points - 1;
  const double *low = point + 2 * (right - 1), *high = low + 2;
  double share = (height - low[0]) / (high[0] - low[0]);
  return parameter[0] * exp(low[1] + share * (high[1] - low[1]));
}

void core_add_air_velocity(const double* table, const double pos[3], double vel[3]) {
  vel[0] -= table[2] * pos[1];
  vel[1] += table[2] * pos[0];
}
