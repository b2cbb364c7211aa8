/* A function of the module: free bodies as flight dynamics describe them. */
#include <math.h>
#include <string.h>

#include "binding.h"

static const double degrees = 180 / 3.14159265358979323846;

/* The matrix that takes body components to world components. */
static void turn(const double given[4], double rot[9]) {
  double w = given[0], x = given[1], y = given[2], z = given[3];
  double length = sqrt(w * w + x * x + y * y + z * z);
  if (length < 1e-15) { /* no turn, as in MuJoCo */
    w = 1;
    x = y = z = 0;
  } else {
    w /= length;
    x /= length;
    y /= length;
    z /= length;
  }
  const double own[9] = {
      1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
      2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
      2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)};
  for (int i = 0; i < 9; i++) rot[i] = own[i];
}

static void times(const double rot[9], const double v[3], double out[3]) {
  for (int i = 0; i < 3; i++) {
    out[i] = rot[3 * i] * v[0] + rot[3 * i + 1] * v[1] + rot[3 * i + 2] * v[2];
  }
}

/* Position and velocity of the centre of mass, world axes; the world's components along
 * body axes; angular velocity, body axes [deg/s]: 18 numbers. */
static void describe(const double* qpos, const double* qvel, const double* com,
                     double* out) {
  double rot[9], arm[3], moved[3];
  const double* w = qvel + 3;
  turn(qpos + 3, rot);
  times(rot, com, arm);
  const double speed[3] = {w[1] * com[2] - w[2] * com[1], w[2] * com[0] - w[0] * com[2],
                           w[0] * com[1] - w[1] * com[0]};
  times(rot, speed, moved);
  for (int i = 0; i < 3; i++) {
    out[i] = qpos[i] + arm[i];
    out[3 + i] = qvel[i] + moved[i];
    out[6 + i] = w[i] * degrees;
    for (int j = 0; j < 3; j++) out[9 + 3 * i + j] = rot[3 * j + i];
  }
}

/* Arrays with a row for each world, the last of which is written. */
typedef struct {
  core_views views;
  double* at[4];
  size_t stride[4];
} rows;

/* Takes four arrays of such widths; 0 with an exception set if one does not fit. */
static int take(PyObject* arrays, rows* r, int num_worlds, const char* const name[4],
                const Py_ssize_t width[4]) {
  core_entry entry[4];
  if (num_worlds < 1) {
    PyErr_SetString(PyExc_ValueError, "There are no worlds.");
    return 0;
  }
  for (int i = 0; i < 4; i++) {
    entry[i] = (core_entry)CORE_ROWS(name[i], width[i], i == 3 ? CORE_WRITTEN : 0,
                                     r->at + i, num_worlds, r->stride + i, NULL);
  }
  return CORE_TAKE_ALL(&r->views, arrays, entry);
}

static double* row(const rows* r, int array, int world) {
  return r->at[array] + (size_t)world * r->stride[array];
}

PyObject* core_py_free_bodies(PyObject* module, PyObject* args) {
  static const char* const name[] = {"qpos", "qvel", "com", "out"};
  static const Py_ssize_t width[] = {7, 6, 3, 18};
  PyObject* arrays;
  int num_worlds;
  rows r = {.views = {.count = 0}};
  (void)module;
  if (!PyArg_ParseTuple(args, "iO", &num_worlds, &arrays)) return NULL;
  int fine = take(arrays, &r, num_worlds, name, width);
  for (int i = 0; fine && i < num_worlds; i++) {
    describe(row(&r, 0, i), row(&r, 1, i), row(&r, 2, i), row(&r, 3, i));
  }
  core_release(&r.views);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}

/* Forces and moments along the axes of free bodies, or of the world, in those of the
 * world: 6 numbers. Returns whether all of them are finite. */
PyObject* core_py_body_loads(PyObject* module, PyObject* args) {
  static const char* const name[] = {"qpos", "force", "moment", "out"};
  static const Py_ssize_t width[] = {7, 3, 3, 6};
  PyObject* arrays;
  int num_worlds, turned, is_finite = 1;
  rows r = {.views = {.count = 0}};
  (void)module;
  if (!PyArg_ParseTuple(args, "ipO", &num_worlds, &turned, &arrays)) return NULL;
  int fine = take(arrays, &r, num_worlds, name, width);
  for (int i = 0; fine && i < num_worlds; i++) {
    double rot[9], *out = row(&r, 3, i);
    const double *force = row(&r, 1, i), *moment = row(&r, 2, i);
    if (turned) {
      turn(row(&r, 0, i) + 3, rot);
      times(rot, force, out);
      times(rot, moment, out + 3);
    } else {
      memcpy(out, force, 3 * sizeof(double));
      memcpy(out + 3, moment, 3 * sizeof(double));
    }
    for (int k = 0; k < 6; k++) is_finite &= isfinite(out[k]) != 0;
  }
  core_release(&r.views);
  return fine ? PyBool_FromLong(is_finite) : NULL;
}
