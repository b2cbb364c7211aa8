/* The Python type Batch: worlds of one model, and what runs on them. */
#include <math.h>
#include <string.h>

#include "binding.h"

PyObject* core_batch_type;

static PyObject* batch_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"model", "num_worlds", "num_threads", NULL};
  unsigned long long model;
  int num_worlds, num_threads;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Kii", names, &model, &num_worlds,
                                   &num_threads)) {
    return NULL;
  }
  if (num_worlds < 1) {
    PyErr_Format(PyExc_ValueError, "num_worlds must be at least 1, got %d.", num_worlds);
    return NULL;
  }
  if (core_has_callbacks()) { /* making mjData may run them */
    PyObject* fine = PyObject_CallNoArgs(core_check_callbacks);
    if (!fine) return NULL;
    Py_DECREF(fine);
  }
  batch_object* self = core_new(type);
  if (!self) return NULL;
  char error[1000] = "";
  mjBatchConfig config = {num_threads, 0};
  const mjModel* m = (const mjModel*)(uintptr_t)model;
  Py_BEGIN_ALLOW_THREADS;
  self->batch = lib.mjb_makeBatch(m, num_worlds, &config, error, sizeof error);
  Py_END_ALLOW_THREADS;
  if (!self->batch) {
    Py_DECREF(self);
    PyErr_SetString(PyExc_ValueError, error);
    return NULL;
  }
  const int stateful = mjENBL_SLEEP | mjENBL_IPC;
  self->num_worlds = num_worlds;
  self->num_forks = core_num_forks;
  self->sensor_needs = core_sensor_needs(m);
  self->outputs.output = self->output;
  self->kept.outputs.output = self->kept_output;
  self->outputs.needs = m->opt.enableflags & stateful ? CORE_ALL : 0;
  return (PyObject*)self;
}

static void batch_dealloc(batch_object* self) {
  core_release(&self->watch.views);
  int* kept = &self->kept.outputs.num_outputs;
  while (*kept) PyBuffer_Release(self->kept_view + --*kept);
  if (self->batch) lib.mjb_deleteBatch(self->batch);
  core_free(self);
}

static PyObject* describe(batch_object* self, PyObject* unused) {
  (void)unused;
  mjBatch* b = self->batch;
  return Py_BuildValue("{s:i,s:i,s:K,s:K,s:K}", "num_threads", lib.mjb_nthread(b),
                       "nstate", lib.mjb_nstate(b), "state",
                       (unsigned long long)(uintptr_t)lib.mjb_state(b), "warning",
                       (unsigned long long)(uintptr_t)lib.mjb_warning(b), "status",
                       (unsigned long long)(uintptr_t)lib.mjb_status(b));
}

static PyObject* storage(const void* address, int size, int elemsize) {
  return Py_BuildValue("Kn", (unsigned long long)(uintptr_t)address,
                       (Py_ssize_t)size * elemsize);
}

static PyObject* output(batch_object* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!text) return NULL;
  int size, elemsize;
  core_field field;
  void* to = lib.mjb_output(self->batch, text, &size, &elemsize);
  if (!to || !core_find_field(text, &field)) Py_RETURN_NONE;
  core_outputs* outputs = &self->outputs;
  for (int i = 0; i < outputs->num_outputs; i++) {
    if (outputs->output[i].to == to) return storage(to, size, elemsize);
  }
  if (outputs->num_outputs == CORE_MAX_OUTPUTS) {
    PyErr_SetString(PyExc_ValueError, "Too many fields are bound.");
    return NULL;
  }
  outputs->output[outputs->num_outputs++] = (core_output){
      field.offset, field.is_scalar, (size_t)size * (size_t)elemsize, to,
      field.needs ? CORE_REFRESHED : CORE_EVALUATED};
  outputs->needs |= field.needs == CORE_SENSORS ? self->sensor_needs : field.needs;
  return storage(to, size, elemsize);
}

static PyObject* expand(batch_object* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!text) return NULL;
  int size, elemsize;
  void* values = lib.mjb_expand(self->batch, text, &size, &elemsize);
  if (!values) Py_RETURN_NONE;
  /* Which sensors there are may then differ from world to world. */
  if (!strncmp(text, "sensor_", 7)) self->outputs.needs |= CORE_ALL;
  return storage(values, size, elemsize);
}

static PyObject* needs_everything(batch_object* self, PyObject* unused) {
  (void)unused;
  return PyBool_FromLong(self->outputs.needs & CORE_ALL);
}

static PyObject* error_of(batch_object* self, PyObject* world) {
  long k = PyLong_AsLong(world);
  if (k == -1 && PyErr_Occurred()) return NULL;
  if (k < 0 || k >= self->num_worlds) {
    PyErr_Format(PyExc_IndexError, "world must be from 0 to %d, got %ld.",
                 self->num_worlds - 1, k);
    return NULL;
  }
  return PyUnicode_FromString(lib.mjb_error(self->batch, (int)k));
}

/* Runs a call on the worlds that `ids` selects; the number that failed. */
static PyObject* call_on(batch_object* self, PyObject* ids, core_call call,
                         int64_t num_steps, void (*prepare)(void*, int, int)) {
  Py_buffer view;
  if (!core_view_ids(ids, &view, self->num_worlds, &call.ids, &call.count)) return NULL;
  int failed = prepare ? core_run_steps(self, &call, num_steps, prepare)
                       : core_run(self, &call);
  PyBuffer_Release(&view);
  return core_number(failed);
}

/* keep(name, array, after_constraints): copies a field into (num_worlds, ...) float64
 * after every step from now on, before positions and velocities are brought up to date.
 * mj_rnePostConstraint runs first if `after_constraints` is true for one of them. */
static PyObject* keep(batch_object* self, PyObject* args) {
  const char* name;
  PyObject* array;
  int after_constraints;
  if (!PyArg_ParseTuple(args, "sOp", &name, &array, &after_constraints)) return NULL;
  core_field field;
  int i = self->kept.outputs.num_outputs;
  if (i == CORE_MAX_KEPT || !core_find_field(name, &field) || field.is_scalar) {
    PyErr_Format(PyExc_ValueError, "%s cannot be kept.", name);
    return NULL;
  }
  Py_buffer* view = self->kept_view + i;
  if (!core_view(array, view, 'd', -1, 1, name)) return NULL;
  self->kept_output[i] =
      (core_output){field.offset, 0, (size_t)(view->len / self->num_worlds), view->buf,
                    CORE_REFRESHED};
  self->kept.after_constraints |= after_constraints;
  self->kept.outputs.num_outputs++;
  Py_RETURN_NONE;
}

/* evaluate_kept(ids, after_constraints): mj_forward at the present state, which fills
 * the kept fields alone. Returns the number of worlds that failed. */
static PyObject* evaluate_kept(batch_object* self, PyObject* args) {
  PyObject* ids;
  core_evaluation evaluation = {.kept = &self->kept};
  if (!PyArg_ParseTuple(args, "Op", &ids, &evaluation.after_constraints)) return NULL;
  core_call call = {
      .kind = CORE_APPLY, .function = core_evaluate_world, .argument = &evaluation};
  return call_on(self, ids, call, 0, NULL);
}

static int is_count(Py_ssize_t given, Py_ssize_t wanted, const char* name) {
  if (given == wanted) return 1;
  PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, got %zd.", name, wanted, given);
  return 0;
}

static PyObject* forward(batch_object* self, PyObject* const* args, Py_ssize_t count) {
  if (!is_count(count, 2, "forward")) return NULL;
  core_call call = {.kind = CORE_FORWARD, .stage = (int)PyLong_AsLong(args[1])};
  if (PyErr_Occurred()) return NULL;
  return call_on(self, args[0], call, 0, NULL);
}

static PyObject* set_const(batch_object* self, PyObject* ids) {
  return call_on(self, ids, (core_call){.kind = CORE_SET_CONST}, 0, NULL);
}

typedef struct {
  core_step step;
  const core_outputs* outputs;
  const core_kept* kept;
  int64_t done;
} step_argument;

static void prepare_step(void* argument, int num_steps, int is_last) {
  step_argument* a = argument;
  a->step.num_steps = num_steps;
  a->step.is_first = a->done == 0;
  a->step.is_last = is_last;
  a->step.outputs = is_last ? a->outputs : NULL;
  a->step.kept = a->kept;
  a->done += num_steps;
}

/* How many sensors come before those of contacts, if the core can sense all of these and
 * they are the last ones; -1: not so. */
static int num_other_sensors(const batch_object* self, const core_contacts** contacts,
                             int num_contacts) {
  int nsensor = (int)lib.mjb_model(self->batch)->nsensor, first = nsensor, count = 0;
  for (int i = 0; i < num_contacts; i++) {
    const core_contacts* c = contacts[i];
    if (c->num_sensors && c->first_sensor < first) first = c->first_sensor;
    count += c->num_sensors;
  }
  return count && first + count == nsensor ? first : -1;
}

static PyObject* run_steps(batch_object* self, PyObject* const* args, int is_watched) {
  long long num_steps = PyLong_AsLongLong(args[1]);
  if (PyErr_Occurred()) return NULL;
  const core_contacts** contacts;
  int num_contacts = core_read_contacts(args[2], self->num_worlds, &contacts);
  if (num_contacts < 0) return NULL;
  step_argument argument = {.outputs = &self->outputs};
  if (self->kept.outputs.num_outputs) argument.kept = &self->kept;
  argument.step.all_steps = num_steps;
  argument.step.num_contacts = num_contacts;
  argument.step.contacts = contacts;
  argument.step.num_other_sensors = num_other_sensors(self, contacts, num_contacts);
  core_call call = {
      .kind = CORE_APPLY, .function = core_step_world, .argument = &argument, .save = 1};
  if (is_watched) core_begin_watch(self);
  PyObject* failed = call_on(self, args[0], call, num_steps, prepare_step);
  PyMem_Free(contacts);
  if (!is_watched || !failed) return failed;
  int has_failed = PyLong_AsLong(failed) != 0;
  Py_DECREF(failed);
  return PyLong_FromLong(core_end_watch(self) | has_failed << 2);
}

static PyObject* fused_step(batch_object* self, PyObject* const* args,
                            Py_ssize_t count) {
  return is_count(count, 3, "fused_step") ? run_steps(self, args, 0) : NULL;
}

/* The same, with a look at what it led to: 1 a bad world, 2 a warning, 4 an error. */
static PyObject* watched_step(batch_object* self, PyObject* const* args,
                              Py_ssize_t count) {
  return is_count(count, 3, "watched_step") ? run_steps(self, args, 1) : NULL;
}

/* What goes wrong in a step. */

static int is_bad(const mjtNum* row, const int* range, int num_ranges, double limit) {
  for (int i = 0; i < num_ranges; i++) {
    for (int k = range[2 * i]; k < range[2 * i + 1]; k++) {
      if (!(fabs(row[k]) <= limit)) return 1;
    }
  }
  return 0;
}

/* Marks worlds whose numbers are beyond the limit in ranges of columns, or that have more
 * warnings of lost contacts or bad states than counted. 1: a world is bad, 2: there are
 * more warnings of any kind. */
static int look(const batch_object* self) {
  const core_watch* w = &self->watch;
  int nstate = lib.mjb_nstate(self->batch), found = 0, rose = 0;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  const mjtNum* row = lib.mjb_state(self->batch);
  for (int i = 0; i < self->num_worlds; i++, row += nstate) {
    int world = is_bad(row, w->range, w->num_ranges, w->limit);
    for (int k = 0; k < mjNWARNING; k++) {
      int at = i * mjNWARNING + k, more = warning[at].number != w->counts[at];
      rose |= more;
      world |= more && k >= mjWARN_CONTACTFULL; /* contacts lost, or bad states */
    }
    w->bad[i] = (uint8_t)world;
    found |= world;
  }
  return found | rose << 1;
}

/* watch(limit, (columns, counts, bad)): what every step looks at from now on. */
static PyObject* set_watch(batch_object* self, PyObject* args) {
  PyObject* arrays;
  core_watch w = {0};
  Py_ssize_t n = self->num_worlds, sides;
  Py_ssize_t nstate = lib.mjb_nstate(self->batch);
  if (!PyArg_ParseTuple(args, "dO", &w.limit, &arrays)) return NULL;
  const core_entry entry[] = {
      CORE_IDS("columns", -1, 0, &w.range, nstate + 1, &sides),
      CORE_OUT("counts", 'i', n * mjNWARNING, &w.counts),
      CORE_OUT("bad", 'B', n, &w.bad),
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
static PyObject* count_warnings(batch_object* self, PyObject* unused) {
  (void)unused;
  core_begin_watch(self);
  Py_RETURN_NONE;
}

/* Whether there are other numbers of warnings than were counted. */
static PyObject* has_warned(batch_object* self, PyObject* unused) {
  int n = self->watch.views.count ? self->num_worlds * mjNWARNING : 0, rose = 0;
  const mjWarningStat* warning = lib.mjb_warning(self->batch);
  (void)unused;
  for (int i = 0; i < n; i++) rose |= warning[i].number != self->watch.counts[i];
  return PyBool_FromLong(rose);
}

/* Whether there are bad worlds, and more warnings than were counted. */
static PyObject* find_bad(batch_object* self, PyObject* unused) {
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

static PyObject* get_model(batch_object* self, PyObject* args) {
  int world;
  unsigned long long model;
  if (!PyArg_ParseTuple(args, "iK", &world, &model)) return NULL;
  lib.mjb_getModel(self->batch, world, (mjModel*)(uintptr_t)model);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"describe", (PyCFunction)describe, METH_NOARGS, NULL},
    {"output", (PyCFunction)output, METH_O, NULL},
    {"expand", (PyCFunction)expand, METH_O, NULL},
    {"needs_everything", (PyCFunction)needs_everything, METH_NOARGS, NULL},
    {"error", (PyCFunction)error_of, METH_O, NULL},
    {"fused_step", (PyCFunction)(void (*)(void))fused_step, METH_FASTCALL, NULL},
    {"watched_step", (PyCFunction)(void (*)(void))watched_step, METH_FASTCALL, NULL},
    {"rollout", (PyCFunction)core_py_rollout, METH_VARARGS, NULL},
    {"watch", (PyCFunction)set_watch, METH_VARARGS, NULL},
    {"forward", (PyCFunction)(void (*)(void))forward, METH_FASTCALL, NULL},
    {"set_const", (PyCFunction)set_const, METH_O, NULL},
    {"keep", (PyCFunction)keep, METH_VARARGS, NULL},
    {"evaluate_kept", (PyCFunction)evaluate_kept, METH_VARARGS, NULL},
    {"count_warnings", (PyCFunction)count_warnings, METH_NOARGS, NULL},
    {"has_warned", (PyCFunction)has_warned, METH_NOARGS, NULL},
    {"find_bad", (PyCFunction)find_bad, METH_NOARGS, NULL},
    {"differentiate", (PyCFunction)core_differentiate, METH_VARARGS, NULL},
    {"signatures", (PyCFunction)core_signatures, METH_O, NULL},
    {"carried_rays", (PyCFunction)core_carried_rays, METH_VARARGS, NULL},
    {"get_model", (PyCFunction)get_model, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, batch_new},
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_batch_spec = {
    .name = "simstate.engine.core._core.Batch",
    .basicsize = sizeof(batch_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
