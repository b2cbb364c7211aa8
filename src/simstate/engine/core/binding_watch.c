/* Methods of Batch that find what went wrong in a step. */
#include <math.h>

#include "binding.h"

static int is_bad(const mjtNum* row, const int* range, int num_ranges, double limit) {
  for (int i = 0; i < num_ranges; i++) {
    for (int k = range[2 * i]; k < range[2 * i + 1]; k++) {
      if (!(fabs(row[k]) <= limit)) return 1;
    }
  }
  return 0;
}

/* Marks worlds whose numbers are beyond the limit in ranges of columns, or that have more
 * warnings of lost contacts or bad states than counted; `risen` has those of any kind.
 * 1: a world is bad, 2: there are more warnings. */
static int look(const batch_object* self) {
  const core_watch* w = &self->watch;
  int nstate = lib.mjb_nstate(self->batch), found = 0, rose = 0;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  const mjtNum* row = lib.mjb_state(self->batch);
  for (int i = 0; i < self->num_worlds; i++, row += nstate) {
    int world = is_bad(row, w->range, w->num_ranges, w->limit);
    for (int k = 0; k < mjNWARNING; k++) {
      int at = i * mjNWARNING + k, more = warning[at].number != w->counts[at];
      w->risen[at] = (uint8_t)more;
      rose |= more;
      world |= more && k >= mjWARN_CONTACTFULL; /* contacts lost, or bad states */
    }
    w->bad[i] = (uint8_t)world;
    found |= world;
  }
  return found | rose << 1;
}

/* watch(limit, (columns, counts, bad, risen)): what every step looks at from now on. */
PyObject* core_set_watch(batch_object* self, PyObject* args) {
  PyObject* arrays;
  core_watch w = {0};
  Py_ssize_t n = self->num_worlds, sides;
  Py_ssize_t nstate = lib.mjb_nstate(self->batch);
  if (!PyArg_ParseTuple(args, "dO", &w.limit, &arrays)) return NULL;
  const core_entry entry[] = {
      CORE_IDS("columns", -1, 0, &w.range, nstate + 1, &sides),
      CORE_OUT("counts", 'i', n * mjNWARNING, &w.counts),
      CORE_OUT("bad", 'B', n, &w.bad),
      CORE_OUT("risen", 'B', n * mjNWARNING, &w.risen),
  };
  if (!CORE_TAKE_ALL(&w.views, arrays, entry)) {
    core_release(&w.views); /* the earlier watch stays */
    return NULL;
  }
  w.num_ranges = (int)(sides / 2);
  core_release(&self->watch.views);
  self->watch = w;
  Py_RETURN_NONE;
}

/* Counts the warnings so far. */
PyObject* core_count_warnings(batch_object* self, PyObject* unused) {
  (void)unused;
  core_begin_watch(self);
  Py_RETURN_NONE;
}

/* Whether there are other numbers of warnings than were counted. */
PyObject* core_has_warned(batch_object* self, PyObject* unused) {
  int n = self->watch.views.count ? self->num_worlds * mjNWARNING : 0, rose = 0;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  (void)unused;
  for (int i = 0; i < n; i++) rose |= warning[i].number != self->watch.counts[i];
  return PyBool_FromLong(rose);
}

/* Whether there are bad worlds, and more warnings than were counted. */
PyObject* core_find_bad(batch_object* self, PyObject* unused) {
  (void)unused;
  int seen = core_end_watch(self);
  return Py_BuildValue("ii", seen & 1, seen >> 1);
}

void core_begin_watch(batch_object* self) {
  if (!self->watch.views.count) return;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  int n = self->num_worlds * mjNWARNING;
  for (int i = 0; i < n; i++) self->watch.counts[i] = warning[i].number;
}

int core_end_watch(batch_object* self) {
  return self->watch.views.count ? look(self) : 0;
}
