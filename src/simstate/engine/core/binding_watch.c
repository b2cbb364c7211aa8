/* Methods of Batch that keep what a step changes, and find what went wrong in it. */
#include <math.h>
#include <string.h>

#include "binding.h"

/* Copies the first columns of all rows, and the numbers of warnings. */
PyObject* core_remember(batch_object* self, PyObject* args) {
  PyObject *before, *counts;
  if (!PyArg_ParseTuple(args, "OO", &before, &counts)) return NULL;
  Py_buffer to, numbers;
  int n = self->num_worlds, nstate = lib.mjb_nstate(self->batch);
  if (!core_view(before, &to, 'd', -1, 1, "before")) return NULL;
  if (!core_view(counts, &numbers, 'i', (Py_ssize_t)n * mjNWARNING, 1, "counts")) {
    PyBuffer_Release(&to);
    return NULL;
  }
  Py_ssize_t columns = to.len / (Py_ssize_t)sizeof(double) / n;
  int fine = columns <= nstate && columns * n * (Py_ssize_t)sizeof(double) == to.len;
  const mjtNum* state = lib.mjb_state(self->batch);
  for (int i = 0; fine && i < n; i++) {
    memcpy((double*)to.buf + i * columns, state + (size_t)i * nstate,
           sizeof(double) * (size_t)columns);
  }
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  for (int i = 0; i < n * mjNWARNING; i++) ((int*)numbers.buf)[i] = warning[i].number;
  PyBuffer_Release(&to);
  PyBuffer_Release(&numbers);
  if (fine) Py_RETURN_NONE;
  PyErr_Format(PyExc_ValueError, "before must have shape (%d, k), k at most %d.", n,
               nstate);
  return NULL;
}

static int is_bad(const mjtNum* x, int first, int stop, double limit) {
  for (int k = first; k < stop; k++) {
    if (!(fabs(x[k]) <= limit)) return 1;
  }
  return 0;
}

/* Marks worlds whose numbers are beyond a limit in two ranges of columns, or that have
 * more warnings of bad states than `counts`, and warnings of any kind in `risen`.
 * Returns whether there are such worlds, and such warnings. */
PyObject* core_find_bad(batch_object* self, PyObject* args) {
  PyObject *counts, *bad, *risen;
  int stop, second, second_stop;
  double limit;
  if (!PyArg_ParseTuple(args, "OOOdiii", &counts, &bad, &risen, &limit, &stop, &second,
                        &second_stop)) {
    return NULL;
  }
  int n = self->num_worlds, nstate = lib.mjb_nstate(self->batch), found = 0, rose = 0;
  if (stop < 0 || stop > nstate || second < 0 || second_stop > nstate) {
    PyErr_Format(PyExc_ValueError, "Columns must be from 0 to %d.", nstate);
    return NULL;
  }
  Py_buffer before, mask, kinds;
  if (!core_view(counts, &before, 'i', (Py_ssize_t)n * mjNWARNING, 0, "counts")) {
    return NULL;
  }
  if (!core_view(bad, &mask, 'B', n, 1, "bad")) {
    PyBuffer_Release(&before);
    return NULL;
  }
  if (!core_view(risen, &kinds, 'B', (Py_ssize_t)n * mjNWARNING, 1, "risen")) {
    PyBuffer_Release(&before);
    PyBuffer_Release(&mask);
    return NULL;
  }
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  const mjtNum* row = lib.mjb_state(self->batch);
  for (int i = 0; i < n; i++, row += nstate) {
    int world = is_bad(row, 0, stop, limit) || is_bad(row, second, second_stop, limit);
    for (int k = 0; k < mjNWARNING; k++) {
      int at = i * mjNWARNING + k;
      int more = warning[at].number != ((const int*)before.buf)[at];
      ((uint8_t*)kinds.buf)[at] = (uint8_t)more;
      rose |= more;
      world |= more && k >= mjWARN_BADQPOS;
    }
    ((uint8_t*)mask.buf)[i] = (uint8_t)world;
    found |= world;
  }
  PyBuffer_Release(&before);
  PyBuffer_Release(&mask);
  PyBuffer_Release(&kinds);
  return Py_BuildValue("ii", found, rose);
}
