/* A method of Batch: steps under controls of each step, with samples of the state. */
#include <limits.h>
#include <string.h>

#include "binding.h"
#include "rollout.h"

#define MAX_RECORDED 4

static void prepare(void* argument, int num_steps, int is_last) {
  core_rollout* r = argument;
  r->first_step += r->num_steps;
  r->num_steps = num_steps;
  r->is_last = is_last;
  while (r->first_sample < r->num_samples &&
         r->sample[r->first_sample] <= r->first_step) {
    r->first_sample++;
  }
}

/* The number of elements of a field that may be recorded; -1: it may not. */
static Py_ssize_t size_of(const mjModel* m, const char* name) {
  if (!strcmp(name, "qpos")) return m->nq;
  if (!strcmp(name, "qvel")) return m->nv;
  if (!strcmp(name, "act")) return m->na;
  if (!strcmp(name, "sensordata")) return m->nsensordata;
  return -1;
}

/* Adds a tuple (name, array) to the fields that are recorded. */
static int add_field(const batch_object* self, core_rollout* r, PyObject* tuple,
                     core_views* held) {
  const char* name;
  PyObject* array;
  core_field field;
  void* to;
  if (!PyArg_ParseTuple(tuple, "sO", &name, &array)) return 0;
  Py_ssize_t size = size_of(lib.mjb_model(self->batch), name);
  if (size < 0 || !core_find_field(name, &field)) {
    PyErr_Format(PyExc_ValueError, "%s cannot be recorded.", name);
    return 0;
  }
  Py_ssize_t count = (Py_ssize_t)r->num_samples * self->num_worlds * size;
  if (!core_take_one(held, array, (core_entry)CORE_OUT(name, 'd', count, &to))) return 0;
  r->recorded.output[r->recorded.num_outputs++] =
      (core_output){field.offset, 0, (size_t)size * sizeof(double), to, CORE_REFRESHED};
  if (field.needs == CORE_SENSORS) r->recorded.needs |= self->sensor_needs;
  return 1;
}

static int are_samples(const int* sample, int count, long long num_steps) {
  for (int i = 0; i < count; i++) {
    if (sample[i] <= (i ? sample[i - 1] : 0) || sample[i] > num_steps) {
      PyErr_Format(PyExc_ValueError, "samples must rise and be from 1 to %lld.",
                   num_steps);
      return 0;
    }
  }
  return 1;
}

static int take_arrays(const batch_object* self, core_rollout* r, PyObject* controls,
                       PyObject* samples, long long num_steps, core_views* held) {
  Py_ssize_t count, wanted = (Py_ssize_t)num_steps * lib.mjb_model(self->batch)->nu;
  const core_entry sample = CORE_ANY("samples", 'i', &r->sample, &count);
  const core_entry control = CORE_ROWS("controls", wanted, CORE_OPTIONAL, &r->ctrl,
                                       self->num_worlds, &r->stride, NULL);
  if (!core_take_one(held, samples, sample)) return 0;
  if (num_steps < 1 || count > INT_MAX / self->num_worlds) {
    PyErr_SetString(PyExc_ValueError,
                    "A rollout has at least one step, and fewer than 2^31 rows.");
    return 0;
  }
  r->num_samples = (int)count;
  return are_samples(r->sample, r->num_samples, num_steps) &&
         core_take_one(held, controls, control);
}

static int take_fields(const batch_object* self, core_rollout* r, PyObject* fields,
                       core_views* held) {
  Py_ssize_t count = PyTuple_Size(fields);
  if (count > MAX_RECORDED) {
    PyErr_SetString(PyExc_ValueError, "Too many fields are recorded.");
    return 0;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!add_field(self, r, PyTuple_GetItem(fields, i), held)) return 0;
  }
  return 1;
}

/* rollout(ids, num_steps, controls, samples, fields): advances worlds under controls,
 * (num_worlds or 1, num_steps, nu) or None, and writes fields, tuples of a name and an
 * array (samples, num_worlds, ...), after some of the steps. The result is that of
 * watched_step: 1 a bad world, 2 a warning, 4 an error. */
PyObject* core_py_rollout(batch_object* self, PyObject* args) {
  PyObject *ids, *controls, *samples, *fields;
  long long num_steps;
  if (!PyArg_ParseTuple(args, "OLOOO!", &ids, &num_steps, &controls, &samples,
                        &PyTuple_Type, &fields)) {
    return NULL;
  }
  core_output recorded[MAX_RECORDED];
  core_rollout r = {.num_worlds = self->num_worlds,
                    .recorded = {0, recorded, self->outputs.needs & CORE_ALL},
                    .outputs = &self->outputs,
                    .kept = self->kept.outputs.num_outputs ? &self->kept : NULL};
  core_call call = {
      .kind = CORE_APPLY, .function = core_rollout_world, .argument = &r, .save = 1};
  core_views held = {.count = 0};
  Py_buffer view;
  if (!core_view_ids(ids, &view, self->num_worlds, &call.ids, &call.count)) return NULL;
  int failed = -1;
  if (take_arrays(self, &r, controls, samples, num_steps, &held) &&
      take_fields(self, &r, fields, &held)) {
    core_begin_watch(self);
    failed = core_run_steps(self, &call, num_steps, prepare);
  }
  core_release(&held);
  PyBuffer_Release(&view);
  return failed < 0 ? NULL : PyLong_FromLong(core_end_watch(self) | (failed > 0) << 2);
}
