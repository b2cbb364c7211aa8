/* The Python type Reads: quantities that are computed together. */
#include "binding.h"

#define MAX_VIEWS 9 /* of one read: five sources, four lists of ids */

typedef struct {
  PyObject_HEAD
  int num_worlds, num_reads, num_views;
  core_read* read;
  Py_buffer* view;
  Py_ssize_t total;
} reads_object;

/* Holds rows of float64: contiguous but for the step from world to world. */
static int hold_source(reads_object* self, PyObject* array, core_source* source,
                       Py_ssize_t* columns) {
  *columns = 0;
  if (Py_IsNone(array)) return 1;
  Py_buffer* view = self->view + self->num_views;
  if (!core_view_rows(array, view, self->num_worlds, 0, &source->stride, columns,
                      "A source")) {
    return 0;
  }
  self->num_views++;
  source->at = view->buf;
  return 1;
}

/* Holds ids, all of which must be within the columns of a source. */
static int hold_ids(reads_object* self, PyObject* array, const int** ids,
                    Py_ssize_t count, Py_ssize_t limit, const char* name) {
  if (Py_IsNone(array)) return 1;
  Py_buffer* view = self->view + self->num_views;
  if (!core_view(array, view, 'i', count, 0, name)) return 0;
  self->num_views++;
  *ids = view->buf;
  for (Py_ssize_t i = 0; i < count; i++) {
    if ((*ids)[i] < 0 || (*ids)[i] >= limit) {
      PyErr_Format(PyExc_ValueError, "%s has the id %d; there are %zd.", name,
                   (*ids)[i], limit);
      return 0;
    }
  }
  return 1;
}

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
    case CORE_LIN_VEL:
      return has_vel && r->width == 3;
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

/* A read as the tuple that reads.py makes. */
static int take_read(reads_object* self, PyObject* tuple, core_read* r) {
  PyObject *source, *quat, *com, *cvel, *local, *element, *body, *root;
  int kind;
  if (!PyArg_ParseTuple(tuple, "iiiiiiOOOOOOOO", &kind, &r->count, &r->width, &r->each,
                        &r->first, &r->base, &source, &quat, &com, &cvel, &local,
                        &element, &body, &root)) {
    return 0;
  }
  r->kind = (core_read_kind)kind;
  Py_ssize_t n[5], each = r->kind == CORE_TAKE && r->each > 0 ? r->each : 3;
  if (r->count < 0 || !hold_source(self, source, &r->source, n) ||
      !hold_source(self, quat, &r->quat, n + 1) ||
      !hold_source(self, com, &r->com, n + 2) ||
      !hold_source(self, cvel, &r->cvel, n + 3) ||
      !hold_source(self, local, &r->local, n + 4)) {
    return 0;
  }
  Py_ssize_t bodies = r->quat.at ? n[1] / 4 : n[3] / 6;
  if (r->quat.at && r->cvel.at && n[3] / 6 < bodies) bodies = n[3] / 6;
  Py_ssize_t elements = r->source.at ? n[0] / each : n[4] / 4;
  if (r->source.at && r->local.at && n[4] / 4 < elements) elements = n[4] / 4;
  if (!hold_ids(self, element, &r->element, r->count, elements, "elements") ||
      !hold_ids(self, body, &r->body, r->count, bodies, "bodies") ||
      !hold_ids(self, root, &r->root, r->count, n[2] / 3, "roots")) {
    return 0;
  }
  if (is_complete(r, n)) return 1;
  PyErr_Format(PyExc_ValueError, "A read of kind %d lacks a source or ids.", kind);
  return 0;
}

static PyObject* reads_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* tuple;
  int num_worlds;
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "iO", &num_worlds, &tuple)) return NULL;
  Py_ssize_t count = PyTuple_Size(tuple);
  if (count < 0) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  reads_object* self = (reads_object*)allocate(type, 0);
  if (!self) return NULL;
  self->num_worlds = num_worlds;
  self->num_reads = (int)count;
  self->read = PyMem_Calloc((size_t)count + 1, sizeof *self->read);
  self->view = PyMem_Calloc((size_t)count * MAX_VIEWS + 1, sizeof *self->view);
  int fine = self->read && self->view;
  if (!fine) PyErr_NoMemory();
  for (Py_ssize_t i = 0; fine && i < count; i++) {
    fine = take_read(self, PyTuple_GetItem(tuple, i), self->read + i);
    self->total += (Py_ssize_t)num_worlds * self->read[i].count * self->read[i].width;
  }
  if (fine) return (PyObject*)self;
  Py_DECREF(self);
  return NULL;
}

static void reads_dealloc(reads_object* self) {
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  while (self->num_views) PyBuffer_Release(self->view + --self->num_views);
  PyMem_Free(self->view);
  PyMem_Free(self->read);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyObject* run(reads_object* self, PyObject* array) {
  Py_buffer out;
  if (!core_view(array, &out, 'd', self->total, 1, "out")) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  core_run_reads(self->read, self->num_reads, self->num_worlds, out.buf);
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
