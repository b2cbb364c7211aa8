/* The Python type Integrator: a scheme with the arrays that it reads and writes. */
#include "binding.h"

static PyObject* integrator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *batch, *dict;
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "OO", &batch, &dict)) return NULL;
  if (!PyObject_IsInstance(batch, core_batch_type) || !PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "Integrator takes a Batch and a dictionary.");
    return NULL;
  }
  integrator_object* self = core_new(type);
  if (!self) return NULL;
  Py_INCREF(batch);
  self->batch = (batch_object*)batch;
  const mjModel* m = lib.mjb_model(self->batch->batch);
  self->in.shared = m;
  self->in.num_worlds = self->batch->num_worlds;
  self->in.nq = (int)m->nq;
  self->in.nv = (int)m->nv;
  self->in.na = (int)m->na;
  self->in.nbody = (int)m->nbody;
  self->in.nstate = lib.mjb_nstate(self->batch->batch);
  if (core_read_description(self, dict)) return (PyObject*)self;
  Py_DECREF(self);
  return NULL;
}

static void integrator_dealloc(integrator_object* self) {
  core_release_description(self);
  Py_XDECREF((PyObject*)self->batch);
  core_free(self);
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
static int run_on(integrator_object* self, core_integrator* in, PyObject* ids,
                  PyObject* calls) {
  if (!Py_IsNone(calls)) return core_run_called(self, in, ids, calls);
  fixed_argument argument = {.in = *in, .outputs = in->outputs};
  core_call call = {.kind = CORE_APPLY,
                    .function = core_integrate_world,
                    .argument = &argument,
                    .save = 1};
  Py_buffer view;
  if (!core_view_ids(ids, &view, self->in.num_worlds, &call.ids, &call.count)) {
    return -1;
  }
  int is_many = in->method == &core_fixed && !in->own_step;
  int failed = is_many ? core_run_steps(self->batch, &call, in->num_steps, prepare_fixed)
                       : core_run(self->batch, &call);
  PyBuffer_Release(&view);
  return failed;
}

/* step(ids, n, h, calls): flags, as watched_step. */
static PyObject* step(integrator_object* self, PyObject* args) {
  PyObject *ids, *calls;
  core_integrator in = self->in;
  long long num_steps;
  if (!PyArg_ParseTuple(args, "OLdO", &ids, &num_steps, &in.step, &calls)) {
    return NULL;
  }
  in.num_steps = num_steps;
  in.method = &core_fixed;
  in.outputs = &self->batch->outputs;
  core_begin_watch(self->batch);
  int failed = in.num_steps < 1 ? 0 : run_on(self, &in, ids, calls);
  if (failed < 0) return NULL;
  return PyLong_FromLong(core_end_watch(self->batch) | (failed != 0) << 2);
}

/* run(ids, span, sizes, budget, calls): steps of each world's choice over a span,
 * or, with sizes, one step of each: of that size if the budget is 0, whatever its error,
 * else at most of that size, so that it meets its tolerance. */
static PyObject* run(integrator_object* self, PyObject* args) {
  PyObject *ids, *sizes, *calls;
  core_integrator in = self->in;
  long long budget;
  if (!PyArg_ParseTuple(args, "OdOLO", &ids, &in.span, &sizes, &budget, &calls)) {
    return NULL;
  }
  if (budget && !in.scheme.b_error) {
    PyErr_SetString(PyExc_ValueError, "The scheme has no error estimate.");
    return NULL;
  }
  core_views v = {.count = 0};
  in.method = budget ? &core_adaptive : &core_fixed;
  in.budget = budget;
  in.outputs = &self->batch->outputs;
  int fine = core_take_one(
      &v, sizes, (core_entry)CORE_IF("sizes", 'd', in.num_worlds, 0, &in.own_step));
  int failed = fine ? run_on(self, &in, ids, calls) : -1;
  core_release(&v);
  return core_number(failed);
}

static PyMethodDef methods[] = {
    {"step", (PyCFunction)step, METH_VARARGS, NULL},
    {"run", (PyCFunction)run, METH_VARARGS, NULL},
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
