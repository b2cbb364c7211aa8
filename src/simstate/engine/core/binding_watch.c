/* Methods of Batch that find what went wrong in a step. */
#include <math.h>

#include "binding.h"

/* Keeps the numbers of warnings. */
PyObject* core_count_warnings(batch_object* self, PyObject* array) {
  Py_buffer counts;
  int n = self->num_worlds * mjNWARNING;
  if (!core_view(array, &counts, 'i', n, 1, "counts")) return NULL;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  for (int i = 0; i < n; i++) ((int*)counts.buf)[i] = warning[i].number;
  PyBuffer_Release(&counts);
  Py_RETURN_NONE;
}

/* Whether there are other numbers of warnings than those that were kept. */
PyObject* core_has_warned(batch_object* self, PyObject* array) {
  Py_buffer counts;
  int n = self->num_worlds * mjNWARNING, rose = 0;
  if (!core_view(array, &counts, 'i', n, 0, "counts")) return NULL;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  const int* before = counts.buf;
  for (int i = 0; i < n; i++) rose |= warning[i].number != before[i];
  PyBuffer_Release(&counts);
  return PyBool_FromLong(rose);
}

static int is_bad(const mjtNum* row, const int* range, int num_ranges, double limit) {
  for (int i = 0; i < num_ranges; i++) {
    for (int k = range[2 * i]; k < range[2 * i + 1]; k++) {
      if (!(fabs(row[k]) <= limit)) return 1;
    }
  }
  return 0;
}

/* What `find_bad` works on; all but the first two are written. */
typedef struct {
  const int *range, *before;
  uint8_t *bad, *risen;
  int num_ranges;
} arrays;

static int are_columns(const batch_object* self, const arrays* a) {
  int nstate = lib.mjb_nstate(self->batch);
  for (int i = 0; i < 2 * a->num_ranges; i++) {
    if (a->range[i] < 0 || a->range[i] > nstate) {
      PyErr_Format(PyExc_ValueError, "Columns must be from 0 to %d.", nstate);
      return 0;
    }
  }
  return 1;
}

/* 1: a world is bad, 2: there are more warnings. */
static int look(const batch_object* self, const arrays* a, double limit) {
  int nstate = lib.mjb_nstate(self->batch), found = 0, rose = 0;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  const mjtNum* row = lib.mjb_state(self->batch);
  for (int i = 0; i < self->num_worlds; i++, row += nstate) {
    int world = is_bad(row, a->range, a->num_ranges, limit);
    for (int k = 0; k < mjNWARNING; k++) {
      int at = i * mjNWARNING + k, more = warning[at].number != a->before[at];
      a->risen[at] = (uint8_t)more;
      rose |= more;
      world |= more && k >= mjWARN_CONTACTFULL; /* contacts lost, or bad states */
    }
    a->bad[i] = (uint8_t)world;
    found |= world;
  }
  return found | rose << 1;
}

/* Marks worlds whose numbers are beyond a limit in ranges of columns, or that have more
 * warnings of lost contacts or bad states than `counts`; `risen` has those of any kind.
 * Returns whether there are such worlds, and such warnings. */
PyObject* core_find_bad(batch_object* self, PyObject* args) {
  PyObject *ranges, *counts, *bad, *risen, *found = NULL;
  double limit;
  if (!PyArg_ParseTuple(args, "OOOOd", &ranges, &counts, &bad, &risen, &limit)) {
    return NULL;
  }
  Py_buffer view[4];
  int held = 0, n = self->num_worlds;
  if (core_view(ranges, view, 'i', -1, 0, "columns") && ++held &&
      core_view(counts, view + 1, 'i', (Py_ssize_t)n * mjNWARNING, 0, "counts") &&
      ++held && core_view(bad, view + 2, 'B', n, 1, "bad") && ++held &&
      core_view(risen, view + 3, 'B', (Py_ssize_t)n * mjNWARNING, 1, "risen") &&
      ++held) {
    arrays a = {view[0].buf, view[1].buf, view[2].buf, view[3].buf,
                (int)(view[0].len / 8)};
    if (are_columns(self, &a)) {
      int seen = look(self, &a, limit);
      found = Py_BuildValue("ii", seen & 1, seen >> 1);
    }
  }
  while (held) PyBuffer_Release(view + --held);
  return found;
}

/* watch(columns, counts, bad, risen, limit): what every step looks at from now on. */
PyObject* core_set_watch(batch_object* self, PyObject* args) {
  PyObject *ranges, *counts, *bad, *risen;
  core_watch* w = &self->watch;
  int n = self->num_worlds;
  if (!PyArg_ParseTuple(args, "OOOOd", &ranges, &counts, &bad, &risen, &w->limit)) {
    return NULL;
  }
  while (w->num_views) PyBuffer_Release(w->view + --w->num_views);
  if (core_view(ranges, w->view, 'i', -1, 0, "columns") && ++w->num_views &&
      core_view(counts, w->view + 1, 'i', (Py_ssize_t)n * mjNWARNING, 1, "counts") &&
      ++w->num_views && core_view(bad, w->view + 2, 'B', n, 1, "bad") &&
      ++w->num_views &&
      core_view(risen, w->view + 3, 'B', (Py_ssize_t)n * mjNWARNING, 1, "risen") &&
      ++w->num_views) {
    w->num_ranges = (int)(w->view[0].len / 8);
    arrays a = {w->view[0].buf, NULL, NULL, NULL, w->num_ranges};
    if (are_columns(self, &a)) Py_RETURN_NONE;
  }
  while (w->num_views) PyBuffer_Release(w->view + --w->num_views);
  return NULL;
}

void core_begin_watch(batch_object* self) {
  if (!self->watch.num_views) return;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  int *counts = self->watch.view[1].buf, n = self->num_worlds * mjNWARNING;
  for (int i = 0; i < n; i++) counts[i] = warning[i].number;
}

int core_end_watch(batch_object* self) {
  const core_watch* w = &self->watch;
  if (!w->num_views) return 0;
  arrays a = {w->view[0].buf, w->view[1].buf, w->view[2].buf, w->view[3].buf,
              w->num_ranges};
  return look(self, &a, w->limit);
}
