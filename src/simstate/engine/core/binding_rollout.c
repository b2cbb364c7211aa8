/* A method of Batch: steps under controls of each step, with samples of the state. */
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
                     Py_buffer* view) {
  const char* name;
  PyObject* array;
  core_field field;
  if (!PyArg_ParseTuple(tuple, "sO", &name, &array)) return 0;
  Py_ssize_t size = size_of(lib.mjb_model(self->batch), name);
  if (size < 0 || !core_find_field(name, &field)) {
    PyErr_Format(PyExc_ValueError, "%s cannot be recorded.", name);
    return 0;
  }
  Py_ssize_t count = (Py_ssize_t)r->num_samples * self->num_worlds * size;
  if (!core_view(array, view, 'd', count, 1, name)) return 0;
  r->recorded.output[r->recorded.num_outputs++] =
      (core_output){field.offset, 0, (size_t)size * sizeof(double), view->buf,
                    CORE_REFRESHED};
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

/* Views on the arrays of a call. */
typedef struct {
  Py_buffer view[3 + MAX_RECORDED];
  int count;
} arrays;

static int read_controls(const batch_object* self, core_rollout* r, PyObject* controls,
                         long long num_steps, arrays* held) {
  if (Py_IsNone(controls)) return 1;
  Py_buffer* view = held->view + held->count;
  Py_ssize_t columns, wanted = (Py_ssize_t)num_steps * lib.mjb_model(self->batch)->nu;
  if (!core_view_rows(controls, view, self->num_worlds, 0, &r->stride, &columns,
                      "controls")) {
    return 0;
  }
  held->count++;
  r->ctrl = view->buf;
  if (columns == wanted) return 1;
  PyErr_Format(PyExc_ValueError, "controls must have %zd columns, got %zd.", wanted,
               columns);
  return 0;
}

static int read_samples(core_rollout* r, PyObject* samples, long long num_steps,
                        arrays* held) {
  Py_buffer* view = held->view + held->count;
  if (!core_view(samples, view, 'i', -1, 0, "samples")) return 0;
  held->count++;
  r->sample = view->buf;
  r->num_samples = (int)(view->len / (Py_ssize_t)sizeof(int));
  return are_samples(r->sample, r->num_samples, num_steps);
}

static int read_fields(const batch_object* self, core_rollout* r, PyObject* fields,
                       arrays* held) {
  Py_ssize_t count = PyTuple_Size(fields);
  if (count > MAX_RECORDED) {
    PyErr_SetString(PyExc_ValueError, "Too many fields are recorded.");
    return 0;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* field = PyTuple_GetItem(fields, i);
    if (!add_field(self, r, field, held->view + held->count)) return 0;
    held->count++;
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
  arrays held = {.count = 1};
  if (!core_view_ids(ids, held.view, self->num_worlds, &call.ids, &call.count)) {
    return NULL;
  }
  int failed = -1;
  if (read_samples(&r, samples, num_steps, &held) &&
      read_controls(self, &r, controls, num_steps, &held) &&
      read_fields(self, &r, fields, &held)) {
    core_begin_watch(self);
    failed = core_run_steps(self, &call, num_steps, prepare);
  }
  while (held.count) PyBuffer_Release(held.view + --held.count);
  return failed < 0 ? NULL : PyLong_FromLong(core_end_watch(self) | (failed > 0) << 2);
}
