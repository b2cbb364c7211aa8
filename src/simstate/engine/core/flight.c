/* Aircraft: the air about them, tables, aerodynamic coefficients, rotors, propellers.
 *
 * The formulas are those of simstate.flight, in the same order of operations. */
#include "flight.h"

#include <math.h>
#include <string.h>

enum { SIZE, NUM_PARAMETERS, AIR_KIND, NUM_CONTROLS, AIR, WIND, CONTROLS, MODEL };
enum { ELEVATION = 0, AIR_NUMBERS = 1, WIND_NUMBERS = 5, OWN = CORE_FLIGHT_NUMBERS };
enum { ALPHA, BETA, MACH, AIRSPEED, ALTITUDE, P_HAT, Q_HAT, R_HAT, FIRST_CONTROL };
enum { GRID_SIZE, GRID_AXES, GRID_TAIL, GRID_EXTRAPOLATES, GRID_BY_WORLD, GRID_TIMES,
       GRID_HEAD };

#define MAX_CONTROLS 64
#define MAX_AXES 6
#define CONTROL_NUMBERS 5

static const double STANDARD_RADIUS = 6356766.0; /* of geopotential altitudes [m] */
static const double TOP = 86e3;                  /* of the layers [m] */
static const double HEAT_RATIO = 1.4;
static const double SPECIFIC_GAS = 8314.32 / 28.9644; /* [J/(kg·K)] */
static const double SEA_LEVEL_DENSITY = 1.225;
static const double PI = 3.14159265358979323846;

/* An aircraft and the air about it at one instant, body axes. */
typedef struct {
  const double *table, *parameter;
  const mjtNum* rot;   /* from body to Earth axes */
  double air_vel[3];   /* of the Cg against the air [m/s] */
  double ang_vel[3];   /* [rad/s] */
  double density, pressure;
  double variable[FIRST_CONTROL + MAX_CONTROLS];
  double control_rate[MAX_CONTROLS];
} flight;

int core_is_flight(const double* table, size_t count, int num_parameters,
                   const mjModel* m) {
  if (count < CORE_FLIGHT_HEAD || table[SIZE] != (double)count ||
      table[NUM_PARAMETERS] != num_parameters || num_parameters < OWN) {
    return 0;
  }
  int n = (int)table[NUM_CONTROLS];
  if (n < 0 || n > MAX_CONTROLS) return 0;
  for (int i = AIR; i <= MODEL; i++) {
    if (!(table[i] >= 0 && table[i] <= (double)count)) return 0;
  }
  if (table[CONTROLS] + CONTROL_NUMBERS * n > (double)count) return 0;
  const double* control = table + (int)table[CONTROLS];
  for (int i = 0; i < n; i++, control += CONTROL_NUMBERS) {
    if (control[0] >= m->na || control[1] < 0 || control[1] >= m->nu) return 0;
  }
  return 1;
}

/* How many of the first column's rising numbers are ≤ x. */
static int count_up_to(const double* rows, int count, int width, double x) {
  int found = 0;
  while (found < count && rows[found * width] <= x) found++;
  return found;
}

static double clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x; /* NaN stays */
}

/* The kinetic temperature [K] from 86 km on, by the altitude [km]. */
static double high_temperature(double z) {
  if (z < 91.0) return 186.8673;
  if (z < 110.0) {
    double x = (z - 91.0) / 19.9429;
    return 263.1905 - 76.3232 * sqrt(fmax(1 - x * x, 0));
  }
  if (z < 120.0) return 240.0 + 12.0 * (z - 110.0);
  double radius = STANDARD_RADIUS / 1e3;
  double lifted = (z - 120.0) * (radius + 120.0) / (radius + z);
  return 1000.0 - 640.0 * exp(-0.01875 * lifted);
}

static double mass_ratio(const double* ratio, double geometric) {
  double place = clamp((geometric - 80e3) / 500.0, 0.0, 12.0);
  double left = fmin(floor(place), 11.0);
  int k = (int)left;
  return ratio[k] + (place - left) * (ratio[k + 1] - ratio[k]);
}

/* Temperature, pressure and density by the layers, up to 86 km geometric altitude. */
static void low_air(const double* air, double geometric, double out[3]) {
  int layers = (int)air[1], points = (int)air[2];
  const double* layer = air + 5;
  double x = STANDARD_RADIUS * geometric / (STANDARD_RADIUS + geometric);
  const double* ratio = layer + 4 * layers + 3 * points;
  layer += 4 * count_up_to(layer + 4, layers - 1, 4, x);
  double above = x - layer[0], relative = layer[2] * above / layer[1];
  double molecular = layer[1] + layer[2] * above;
  double shape = relative == 0 ? 1 : log1p(relative) / relative;
  out[0] = molecular * mass_ratio(ratio, geometric);
  out[1] = layer[3] * exp(-air[3] * above / layer[1] * shape);
  out[2] = out[1] * air[4] / molecular;
}

static void high_air(const double* air, double geometric, double out[3]) {
  int layers = (int)air[1], points = (int)air[2];
  const double* point = air + 5 + 4 * layers;
  int right = count_up_to(point, points, 3, geometric);
  right = right > points - 1 ? points - 1 : right < 1 ? 1 : right;
  const double *low = point + 3 * (right - 1), *high = low + 3;
  double share = (geometric - low[0]) / (high[0] - low[0]);
  out[0] = high_temperature(geometric / 1e3);
  for (int k = 1; k < 3; k++) out[k] = exp(low[k] + share * (high[k] - low[k]));
}

static void set_air(flight* f, double altitude) {
  const double* p = f->parameter + AIR_NUMBERS;
  if (f->table[AIR_KIND] == 0) {
    f->density = p[0] * exp(-((altitude - p[2]) / p[1]));
    f->pressure = f->density * SPECIFIC_GAS * p[3];
    return;
  }
  const double* air = f->table + (int)f->table[AIR];
  double found[3];
  if (air[0] != 0) altitude = STANDARD_RADIUS * altitude / (STANDARD_RADIUS - altitude);
  if (altitude > TOP) {
    high_air(air, altitude, found);
  } else {
    low_air(air, altitude, found);
  }
  f->pressure = found[1];
  f->density = found[2] * p[1] * found[0] / (found[0] + p[0]);
}

/* The breakpoint to the left, and how far it is to the next one. */
static int find_left(const double* points, int count, int extrapolates, double x,
                     double* share) {
  *share = 0;
  if (!extrapolates) x = clamp(x, points[0], points[count - 1]);
  if (count == 1) return 0;
  int left = count_up_to(points, count, 1, x);
  left = (left < 1 ? 1 : left > count - 1 ? count - 1 : left) - 1;
  *share = (x - points[left]) / (points[left + 1] - points[left]);
  return left;
}

/* Multilinear interpolation: the sum over the corners of a cell. */
static void interpolate(const double* grid, const double* variable, int world,
                        double* out) {
  int axes = (int)grid[GRID_AXES], tail = (int)grid[GRID_TAIL];
  int left[MAX_AXES], size[MAX_AXES];
  double share[MAX_AXES];
  const double* at = grid + GRID_HEAD;
  size_t start = grid[GRID_BY_WORLD] != 0 ? (size_t)world : 0;
  for (int i = 0; i < axes; i++) {
    size[i] = (int)at[1];
    left[i] = find_left(at + 2, size[i], grid[GRID_EXTRAPOLATES] != 0,
                        variable[(int)at[0]], share + i);
    at += 2 + size[i];
  }
  for (int k = 0; k < tail; k++) out[k] = 0;
  for (int corner = 0; corner < 1 << axes; corner++) {
    size_t index = start;
    double weight = 1;
    for (int i = 0; i < axes; i++) {
      int bit = corner >> (axes - 1 - i) & 1, place = left[i] + bit;
      if (place > size[i] - 1) place = size[i] - 1;
      index = index * (size_t)size[i] + (size_t)place;
      weight *= bit ? share[i] : 1 - share[i];
    }
    for (int k = 0; k < tail; k++) out[k] += weight * at[index * (size_t)tail + (size_t)k];
  }
  int times = (int)grid[GRID_TIMES];
  for (int k = 0; times >= 0 && k < tail; k++) out[k] *= variable[times];
}

static void set_controls(flight* f, const mjData* d) {
  int count = (int)f->table[NUM_CONTROLS];
  const double* c = f->table + (int)f->table[CONTROLS];
  for (int i = 0; i < count; i++, c += CONTROL_NUMBERS) {
    double command = clamp(d->ctrl[(int)c[1]], c[2], c[3]);
    double place = c[0] < 0 ? command : d->act[(int)c[0]];
    f->variable[FIRST_CONTROL + i] = place;
    f->control_rate[i] = c[0] < 0 ? 0 : (command - place) / c[4];
  }
}

static void cross(const double a[3], const double b[3], double out[3]) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

/* Components of a vector along body axes, from those along Earth axes, or back. */
static void to_body(const mjtNum rot[9], const double v[3], double out[3]) {
  for (int k = 0; k < 3; k++) {
    out[k] = rot[k] * v[0] + rot[3 + k] * v[1] + rot[6 + k] * v[2];
  }
}

static void to_earth(const mjtNum rot[9], const double v[3], double out[3]) {
  for (int k = 0; k < 3; k++) {
    const mjtNum* row = rot + 3 * k;
    out[k] = row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
  }
}

static void set_motion(flight* f, const mjModel* m, const mjData* d, int body,
                       int world) {
  const mjtNum *spin = d->cvel + 6 * body, *pos = d->xipos + 3 * body;
  const mjtNum* centre = d->subtree_com + 3 * m->body_rootid[body];
  const double arm[3] = {centre[0] - pos[0], centre[1] - pos[1], centre[2] - pos[2]};
  double turned[3], vel[3], wind[3];
  memcpy(wind, f->parameter + WIND_NUMBERS, sizeof wind);
  if (f->table[WIND] != 0) {
    const double place[4] = {d->time, pos[0], pos[1], -pos[2]};
    interpolate(f->table + (int)f->table[WIND], place, world, wind);
  }
  cross(spin, arm, turned);
  for (int k = 0; k < 3; k++) vel[k] = spin[3 + k] - turned[k] - wind[k];
  to_body(f->rot, vel, f->air_vel);
  to_body(f->rot, spin, f->ang_vel);
}

static void observe(flight* f, const double* table, const double* parameter,
                    const mjModel* m, const mjData* d, int body, int world) {
  f->table = table;
  f->parameter = parameter;
  f->rot = d->xmat + 9 * body;
  set_motion(f, m, d, body, world);
  double altitude = parameter[ELEVATION] - d->xipos[3 * body + 2];
  set_air(f, altitude);
  const double* v = f->air_vel;
  double speed = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  f->variable[ALPHA] = atan2(v[2] + 0.0, v[0] + 0.0); /* −0 is 0 */
  f->variable[BETA] = atan2(v[1] + 0.0, hypot(v[0], v[2]));
  f->variable[MACH] = speed / sqrt(HEAT_RATIO * f->pressure / f->density);
  f->variable[AIRSPEED] = speed;
  f->variable[ALTITUDE] = altitude;
  set_controls(f, d);
}

/* Adds a force at a point and a moment about it, body axes; the point is from the
 * origin, NULL: the centre of mass. */
static void add_load(const flight* f, const mjModel* m, mjData* d, int body,
                     const double force[3], const double moment[3],
                     const double* point) {
  double about[3], part[3];
  memcpy(about, moment, sizeof about);
  if (point) {
    double arm[3];
    for (int k = 0; k < 3; k++) arm[k] = point[k] - m->body_ipos[3 * body + k];
    cross(arm, force, part);
    for (int k = 0; k < 3; k++) about[k] += part[k];
  }
  mjtNum* load = d->xfrc_applied + 6 * body;
  to_earth(f->rot, force, part);
  for (int k = 0; k < 3; k++) load[k] += part[k];
  to_earth(f->rot, about, part);
  for (int k = 0; k < 3; k++) load[3 + k] += part[k];
}

/* The sum of a coefficient's derivatives and grids; both pointers move on. */
static double coefficient(const flight* f, const double** at, const double** value,
                          int world) {
  double total = 0;
  int derivatives = (int)*(*at)++;
  for (int i = 0; i < derivatives; i++) {
    int variable = (int)*(*at)++;
    double derivative = *(*value)++;
    total += variable < 0 ? derivative : derivative * f->variable[variable];
  }
  int grids = (int)*(*at)++;
  for (int i = 0; i < grids; i++) {
    double found;
    interpolate(*at, f->variable, world, &found);
    total += found;
    *at += (size_t)(*at)[GRID_SIZE];
  }
  return total;
}

/* Turns forces along wind or stability axes to body axes. */
static void from_wind(const flight* f, int is_stability, double force[3]) {
  double alpha = f->variable[ALPHA], beta = is_stability ? 0 : f->variable[BETA];
  double ca = cos(alpha), sa = sin(alpha), cb = cos(beta), sb = sin(beta);
  const double x = force[0], y = force[1], z = force[2];
  force[0] = ca * cb * x - ca * sb * y - sa * z;
  force[1] = sb * x + cb * y;
  force[2] = sa * cb * x - sa * sb * y + ca * z;
}

void core_add_aerodynamics(const double* table, const double* parameter,
                           const mjModel* m, mjData* d, int body, int world) {
  flight f;
  observe(&f, table, parameter, m, d, body, world);
  const double *own = parameter + OWN, *value = own + 7;
  const double* at = table + (int)table[MODEL];
  int axes = (int)at[0], point = (int)at[1];
  double area = own[0], span = own[1], chord = own[2];
  double per_length = 0.5 / fmax(f.variable[AIRSPEED], 1e-3);
  f.variable[P_HAT] = f.ang_vel[0] * per_length * span;
  f.variable[Q_HAT] = f.ang_vel[1] * per_length * chord;
  f.variable[R_HAT] = f.ang_vel[2] * per_length * span;
  double found[6];
  at += 2;
  for (int i = 0; i < 6; i++) found[i] = coefficient(&f, &at, &value, world);
  double speed = f.variable[AIRSPEED];
  double pressure = 0.5 * f.density * (speed * speed) * area;
  double force[3] = {found[0], found[1], found[2]};
  if (axes != 2) { /* drag is aft and lift is up, against the axes */
    force[0] = -(found[0] + own[3] * (found[2] * found[2]));
    force[2] = -found[2];
    from_wind(&f, axes == 1, force);
  }
  double moment[3] = {found[3] * span, found[4] * chord, found[5] * span};
  for (int k = 0; k < 3; k++) {
    force[k] *= pressure;
    moment[k] *= pressure;
  }
  static const double origin[3] = {0, 0, 0};
  add_load(&f, m, d, body, force, moment,
           point == 0 ? NULL : point == 1 ? origin : own + 4);
}

/* Thrust [N], and the air's torque against the rotation [N·m]. */
static void thrust_and_torque(const flight* f, const double* model, const double* own,
                              const double axis[3], double speed, int world,
                              double out[2]) {
  if (model[2] == 0) {
    double square = speed * fabs(speed) * f->density / SEA_LEVEL_DENSITY;
    out[0] = own[7] * square;
    out[1] = own[8] * square;
    return;
  }
  double diameter = own[7], turns = speed / (2 * PI);
  double along = f->air_vel[0] * axis[0] + f->air_vel[1] * axis[1] +
                 f->air_vel[2] * axis[2];
  /* Standing still it has no advance ratio, and no thrust whatever it is. */
  double ratio = along / fmax(turns * diameter, 1e-6), thrust, power;
  const double* grid = model + 3;
  interpolate(grid, &ratio, world, &thrust);
  interpolate(grid + (size_t)grid[GRID_SIZE], &ratio, world, &power);
  double scale = f->density * (turns * turns) * pow(diameter, 4);
  out[0] = thrust * scale;
  out[1] = power * scale * diameter / (2 * PI);
}

void core_add_rotor(const double* table, const double* parameter, const mjModel* m,
                    mjData* d, int body, int world) {
  flight f;
  observe(&f, table, parameter, m, d, body, world);
  const double *own = parameter + OWN, *model = table + (int)table[MODEL];
  int control = (int)model[0];
  double direction = model[1], inertia = own[6], found[2];
  double length = sqrt(own[3] * own[3] + own[4] * own[4] + own[5] * own[5]);
  const double axis[3] = {own[3] / length, own[4] / length, own[5] / length};
  double speed = f.variable[FIRST_CONTROL + control];
  thrust_and_torque(&f, model, own, axis, speed, world, found);
  double force[3], moment[3], momentum[3], gyro[3];
  for (int k = 0; k < 3; k++) momentum[k] = direction * inertia * axis[k] * speed;
  cross(f.ang_vel, momentum, gyro);
  for (int k = 0; k < 3; k++) {
    double gain = direction * inertia * axis[k] * f.control_rate[control];
    force[k] = found[0] * axis[k];
    moment[k] = -direction * found[1] * axis[k] - gain - gyro[k];
  }
  add_load(&f, m, d, body, force, moment, own);
}
