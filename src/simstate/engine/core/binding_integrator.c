/* The Python type Integrator: a scheme with the arrays that it reads and writes. */
#include <string.h>

#include "binding.h"

static PyObject* integrator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *batch, *dict;
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "OO", &batch, &dict)) return NULL;
  if (!PyObject_IsInstance(batch, core_batch_type) || !PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "Integrator takes a Batch and a dictionary.");
    return NULL;
  }
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  integrator_object* self = (integrator_object*)allocate(type, 0);
  if (!self) return NULL;
  Py_INCREF(batch);
  self->batch = (batch_object*)batch;
  const mjModel* m = lib.mjb_model(self->batch->batch);
  self->in.shared = m;
  self->in.num_worlds = self->batch->num_worlds;
  self->in.nq = m->nq;
  self->in.nv = m->nv;
  self->in.na = m->na;
  self->in.nbody = m->nbody;
  self->in.nstate = lib.mjb_nstate(self->batch->batch);
  if (core_read_description(self, dict)) return (PyObject*)self;
  Py_DECREF(self);
  return NULL;
}

static void integrator_dealloc(integrator_object* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  core_release_description(self);
  Py_XDECREF((PyObject*)self->batch);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

typedef struct {
  core_integrator in;
  const core_outputs* outputs;
} fixed_argument;

static void prepare_fixed(void* argument, int num_steps, int is_last) {
  fixed_argument* a = argument;
  a->in.num_steps = num_steps;
  a->in.outputs = is_last ? a->outputs : NULL;
}

/* Runs on the worlds of `ids`; many steps are several calls, so that one can break. */
static PyObject* run_on(integrator_object* self, PyObject* ids, mjfBatchFunc function,
                        void* argument, int64_t num_steps) {
  core_call call = {
      .kind = CORE_APPLY, .function = function, .argument = argument, .save = 1};
  Py_buffer view;
  if (!core_view_ids(ids, &view, self->in.num_worlds, &call.ids, &call.count)) {
    return NULL;
  }
  int failed = num_steps < 0 ? core_run(self->batch, &call)
                             : core_run_steps(self->batch, &call, num_steps,
                                              prepare_fixed);
  PyBuffer_Release(&view);
  return failed < 0 ? NULL : PyLong_FromLong(failed);
}

/* step(ids, n, h, refresh): flags, as watched_step. */
static PyObject* step(integrator_object* self, PyObject* args) {
  PyObject* ids;
  long long num_steps;
  fixed_argument argument = {.in = self->in};
  int refresh;
  if (!PyArg_ParseTuple(args, "OLdp", &ids, &num_steps, &argument.in.step, &refresh)) {
    return NULL;
  }
  argument.outputs = refresh ? &self->batch->outputs : NULL;
  core_begin_watch(self->batch);
  PyObject* failed =
      run_on(self, ids, core_fixed_world, &argument, num_steps < 0 ? 0 : num_steps);
  if (!failed) return NULL;
  int has_failed = PyLong_AsLong(failed) != 0;
  Py_DECREF(failed);
  return PyLong_FromLong(core_end_watch(self->batch) | has_failed << 2);
}

static int is_finite(const mjtNum* x, int count) {
  for (int i = 0; i < count; i++) {
    if (!(x[i] - x[i] == 0)) return 0;
  }
  return 1;
}

static int call_back(PyObject* call, int world) {
  PyObject* done = PyObject_CallFunction(call, "i", world);
  Py_XDECREF(done);
  return done != NULL;
}

/* Copies the inputs of all worlds out of the rows, or restores them. */
static void copy_inputs(const integrator_object* self, core_stage* a, mjtNum* copies,
                        int is_restore) {
  mjtNum* row = lib.mjb_state(self->batch->batch) + a->first_input;
  for (int i = 0; i < self->in.num_worlds; i++, row += self->in.nstate) {
    mjtNum* copy = copies + (size_t)i * a->num_inputs;
    memcpy(is_restore ? row : copy, is_restore ? copy : row,
           sizeof *row * (size_t)a->num_inputs);
  }
}

/* 1 + the first world whose inputs are not finite though the user's were; 0: none. */
static int has_bad_input(const integrator_object* self, const core_stage* a) {
  const mjtNum* row = lib.mjb_state(self->batch->batch) + a->first_input;
  for (int i = 0; i < self->in.num_worlds; i++, row += self->in.nstate) {
    if (!is_finite(row, a->num_inputs) &&
        is_finite(a->inputs + (size_t)i * a->num_inputs, a->num_inputs)) return i + 1;
  }
  return 0;
}

/* step_with(ids, n, h, first_input, num_inputs, call): as `step`, but before each
 * evaluation call(-1) writes the inputs of all worlds. They are restored afterwards.
 * Where those of a world are not finite, though the user's were, call(world) is called
 * again, and should raise. Returns flags, as watched_step. */
static PyObject* step_with(integrator_object* self, PyObject* args) {
  long long num_steps;
  PyObject *call, *ids;
  Py_buffer view;
  core_stage a = {.in = self->in};
  core_call run = {
      .kind = CORE_APPLY, .function = core_stage_world, .argument = &a, .save = 1};
  if (!PyArg_ParseTuple(args, "OLdiiO", &ids, &num_steps, &a.in.step, &a.first_input,
                        &a.num_inputs, &call)) {
    return NULL;
  }
  if (a.first_input < 0 || a.num_inputs < 0 ||
      a.first_input + a.num_inputs > self->in.nstate) {
    PyErr_SetString(PyExc_ValueError, "The inputs must be columns of the state.");
    return NULL;
  }
  if (!core_view_ids(ids, &view, self->in.num_worlds, &run.ids, &run.count)) return NULL;
  size_t worlds = (size_t)self->in.num_worlds;
  a.numbers = core_world_numbers(&self->in);
  a.memory = PyMem_Malloc(sizeof(mjtNum) * worlds * (a.numbers + (size_t)a.num_inputs));
  if (!a.memory) {
    PyBuffer_Release(&view);
    return PyErr_NoMemory();
  }
  mjtNum* own = a.memory + worlds * a.numbers;
  a.inputs = own;
  int failed = 0, world;
  core_begin_watch(self->batch);
  copy_inputs(self, &a, own, 0);
  for (long long i = 0; !failed && i < num_steps; i++) {
    a.is_end = i + 1 == num_steps;
    a.in.outputs = a.is_end ? &self->batch->outputs : NULL;
    for (a.stage = 0; !failed && a.stage < a.in.scheme.num_stages; a.stage++) {
      failed = call_back(call, -1) ? 0 : -1;
      if (!failed && (world = has_bad_input(self, &a))) {
        copy_inputs(self, &a, own, 1);
        failed = call_back(call, world - 1) ? 0 : -1;
      }
      if (!failed) failed = core_run(self->batch, &run);
      copy_inputs(self, &a, own, 1);
    }
  }
  PyMem_Free(a.memory);
  PyBuffer_Release(&view);
  if (failed < 0) return NULL;
  return PyLong_FromLong(core_end_watch(self->batch) | (failed != 0) << 2);
}

static int has_estimate(const integrator_object* self) {
  if (self->in.scheme.b_error) return 1;
  PyErr_SetString(PyExc_ValueError, "The scheme has no error estimate.");
  return 0;
}

static PyObject* advance(integrator_object* self, PyObject* args) {
  PyObject* ids;
  core_integrator in = self->in;
  long long budget;
  int refresh;
  if (!PyArg_ParseTuple(args, "OdLp", &ids, &in.span, &budget, &refresh)) return NULL;
  if (!has_estimate(self)) return NULL;
  in.budget = budget;
  in.outputs = refresh ? &self->batch->outputs : NULL;
  return run_on(self, ids, core_adaptive_world, &in, -1);
}

/* One step of a size of each world's own, whatever its error. */
static PyObject* move(integrator_object* self, PyObject* args) {
  PyObject *ids, *sizes, *done;
  core_integrator in = self->in;
  Py_buffer view;
  int refresh;
  if (!PyArg_ParseTuple(args, "OOp", &ids, &sizes, &refresh) ||
      !core_view(sizes, &view, 'd', in.num_worlds, 0, "steps")) {
    return NULL;
  }
  in.own_step = view.buf;
  in.outputs = refresh ? &self->batch->outputs : NULL;
  done = run_on(self, ids, core_fixed_world, &in, -1);
  PyBuffer_Release(&view);
  return done;
}

/* One step of each world that meets its tolerance, at most so long. */
static PyObject* attempt(integrator_object* self, PyObject* args) {
  PyObject *ids, *limits, *done;
  core_integrator in = self->in;
  Py_buffer view;
  long long budget;
  int refresh;
  if (!has_estimate(self) ||
      !PyArg_ParseTuple(args, "OOLp", &ids, &limits, &budget, &refresh) ||
      !core_view(limits, &view, 'd', in.num_worlds, 0, "limits")) {
    return NULL;
  }
  in.own_step = view.buf;
  in.budget = budget;
  in.outputs = refresh ? &self->batch->outputs : NULL;
  done = run_on(self, ids, core_adaptive_world, &in, -1);
  PyBuffer_Release(&view);
  return done;
}

static PyMethodDef methods[] = {
    {"step", (PyCFunction)step, METH_VARARGS, NULL},
    {"step_with", (PyCFunction)step_with, METH_VARARGS, NULL},
    {"move", (PyCFunction)move, METH_VARARGS, NULL},
    {"advance", (PyCFunction)advance, METH_VARARGS, NULL},
    {"attempt", (PyCFunction)attempt, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, integrator_new},
    {Py_tp_dealloc, integrator_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_integrator_spec = {
    .name = "simstate.engine.core._core.Integrator",
    .basicsize = sizeof(integrator_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
