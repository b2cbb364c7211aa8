/* A function of the module: free bodies as flight dynamics describe them. */
#include <math.h>

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

PyObject* core_py_free_bodies(PyObject* module, PyObject* args) {
  PyObject* array[4];
  int num_worlds;
  (void)module;
  if (!PyArg_ParseTuple(args, "iOOOO", &num_worlds, array, array + 1, array + 2,
                        array + 3)) {
    return NULL;
  }
  static const char* const name[] = {"qpos", "qvel", "com", "out"};
  static const Py_ssize_t width[] = {7, 6, 3, 18};
  Py_buffer view[4];
  size_t stride[4];
  Py_ssize_t columns;
  int held = 0, fine = num_worlds >= 1;
  for (; fine && held < 4; held++) {
    fine = core_view_rows(array[held], view + held, num_worlds, held == 3,
                          stride + held, &columns, name[held]);
    if (!fine) break;
    if (columns != width[held]) {
      PyErr_Format(PyExc_ValueError, "%s must have %zd numbers in each world, got %zd.",
                   name[held], width[held], columns);
      fine = 0;
    }
  }
  for (int i = 0; fine && i < num_worlds; i++) {
    describe((double*)view[0].buf + i * stride[0], (double*)view[1].buf + i * stride[1],
             (double*)view[2].buf + i * stride[2], (double*)view[3].buf + i * stride[3]);
  }
  while (held) PyBuffer_Release(view + --held);
  if (!fine) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "There are no worlds.");
    return NULL;
  }
  Py_RETURN_NONE;
}
