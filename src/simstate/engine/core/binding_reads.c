/* The Python type Reads: a quantity of all worlds. */
#include "binding.h"

typedef struct {
  PyObject_HEAD
  int num_worlds;
  core_read read;
  core_views views;
} reads_object;

static int is_complete(const core_read* r, const Py_ssize_t columns[5]) {
  int has_pos = r->source.at && r->element, has_quat = r->quat.at && r->body;
  int has_vel = has_pos && r->com.at && r->root && r->cvel.at && r->body;
  int has_base = r->quat.at && r->base >= 0 && 4 * (r->base + 1) <= columns[1];
  switch (r->kind) {
    case CORE_TAKE:
      return has_pos && r->each > 0 && r->first >= 0 && r->first + r->width <= r->each;
    case CORE_QUAT:
      return has_quat && (!r->local.at || r->element) && r->width == 4;
    case CORE_POSE:
      return has_pos && has_quat && r->width == 7;
    case CORE_VEL:
      return has_vel && r->width == 6;
    case CORE_LIN_VEL_B:
      return has_vel && has_base && r->width == 3 && r->count == 1;
    case CORE_ANG_VEL_B:
      return r->cvel.at && r->body && has_base && r->width == 3 && r->count == 1;
    case CORE_DIRECTION_B:
      return r->source.at && columns[0] == 3 && has_base && r->width == 3 &&
             r->count == 1;
    default:
      return 0;
  }
}

/* The arrays of a read, in the order of reads.py. */
static int take_arrays(reads_object* self, PyObject* sources, PyObject* ids) {
  core_read* r = &self->read;
  Py_ssize_t n[5] = {0}, each = r->kind == CORE_TAKE && r->each > 0 ? r->each : 3;
#define SOURCE(name, k) \
  CORE_ROWS("A source", -1, CORE_OPTIONAL, &r->name.at, self->num_worlds, \
            &r->name.stride, n + (k))
  const core_entry source[] = {SOURCE(source, 0), SOURCE(quat, 1), SOURCE(com, 2),
                               SOURCE(cvel, 3), SOURCE(local, 4)};
  if (!CORE_TAKE_ALL(&self->views, sources, source)) return 0;
  Py_ssize_t bodies = r->quat.at ? n[1] / 4 : n[3] / 6;
  if (r->quat.at && r->cvel.at && n[3] / 6 < bodies) bodies = n[3] / 6;
  Py_ssize_t elements = r->source.at ? n[0] / each : n[4] / 4;
  if (r->source.at && r->local.at && n[4] / 4 < elements) elements = n[4] / 4;
  const core_entry id[] = {
      CORE_IDS("elements", r->count, CORE_OPTIONAL, &r->element, elements, NULL),
      CORE_IDS("bodies", r->count, CORE_OPTIONAL, &r->body, bodies, NULL),
      CORE_IDS("roots", r->count, CORE_OPTIONAL, &r->root, n[2] / 3, NULL),
  };
  if (!CORE_TAKE_ALL(&self->views, ids, id)) return 0;
  if (is_complete(r, n)) return 1;
  PyErr_Format(PyExc_ValueError, "A read of kind %d lacks a source or ids.", r->kind);
  return 0;
}

static PyObject* reads_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *sources, *ids;
  int num_worlds, kind;
  core_read r = {0};
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "i(iiiiii)OO", &num_worlds, &kind, &r.count, &r.width,
                        &r.each, &r.first, &r.base, &sources, &ids)) {
    return NULL;
  }
  if (r.count < 0) {
    PyErr_SetString(PyExc_ValueError, "A read has at least no elements.");
    return NULL;
  }
  reads_object* self = core_new(type);
  if (!self) return NULL;
  r.kind = (core_read_kind)kind;
  self->num_worlds = num_worlds;
  self->read = r;
  if (take_arrays(self, sources, ids)) return (PyObject*)self;
  Py_DECREF(self);
  return NULL;
}

static void reads_dealloc(reads_object* self) {
  core_release(&self->views);
  core_free(self);
}

static PyObject* run(reads_object* self, PyObject* array) {
  Py_buffer out;
  Py_ssize_t size = (Py_ssize_t)self->num_worlds * self->read.count * self->read.width;
  if (!core_view(array, &out, 'd', size, 1, "out")) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  core_run_read(&self->read, self->num_worlds, out.buf);
  Py_END_ALLOW_THREADS;
  PyBuffer_Release(&out);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)run, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, reads_new},
    {Py_tp_dealloc, reads_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_reads_spec = {
    .name = "simstate.engine.core._core.Reads",
    .basicsize = sizeof(reads_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
