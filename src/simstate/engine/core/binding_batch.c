/* The Python type Batch: worlds of one model, and what runs on them. */
#include <string.h>

#include "binding.h"

PyObject* core_batch_type;

static PyObject* batch_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"model", "num_worlds", "num_threads", "persistent", NULL};
  unsigned long long model;
  int num_worlds, num_threads, persistent;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Kiip", names, &model, &num_worlds,
                                   &num_threads, &persistent)) {
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
  mjBatchConfig config = {num_threads, (mjtBool)persistent};
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

static PyObject* step(batch_object* self, PyObject* const* args, Py_ssize_t count) {
  if (!is_count(count, 3, "step")) return NULL;
  core_call call = {.kind = CORE_STEP,
                    .num_steps = (int)PyLong_AsLong(args[1]),
                    .stage = (int)PyLong_AsLong(args[2])};
  if (PyErr_Occurred()) return NULL;
  return call_on(self, args[0], call, 0, NULL);
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
    {"step", (PyCFunction)(void (*)(void))step, METH_FASTCALL, NULL},
    {"fused_step", (PyCFunction)(void (*)(void))fused_step, METH_FASTCALL, NULL},
    {"watched_step", (PyCFunction)(void (*)(void))watched_step, METH_FASTCALL, NULL},
    {"rollout", (PyCFunction)core_py_rollout, METH_VARARGS, NULL},
    {"watch", (PyCFunction)core_set_watch, METH_VARARGS, NULL},
    {"forward", (PyCFunction)(void (*)(void))forward, METH_FASTCALL, NULL},
    {"set_const", (PyCFunction)set_const, METH_O, NULL},
    {"keep", (PyCFunction)core_keep, METH_VARARGS, NULL},
    {"evaluate_kept", (PyCFunction)core_evaluate_kept, METH_VARARGS, NULL},
    {"count_warnings", (PyCFunction)core_count_warnings, METH_NOARGS, NULL},
    {"has_warned", (PyCFunction)core_has_warned, METH_NOARGS, NULL},
    {"find_bad", (PyCFunction)core_find_bad, METH_NOARGS, NULL},
    {"differentiate", (PyCFunction)core_differentiate, METH_VARARGS, NULL},
    {"signatures", (PyCFunction)core_signatures, METH_O, NULL},
    {"ray", (PyCFunction)core_ray, METH_VARARGS, NULL},
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
