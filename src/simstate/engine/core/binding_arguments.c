/* Arguments from Python: arrays through the buffer protocol, checked. */
#include <string.h>

#include "binding.h"

static const char* type_name(char format) {
  switch (format) {
    case 'd':
      return "float64";
    case 'i':
      return "int32";
    case 'q':
      return "int64";
    default:
      return "bool or uint8";
  }
}

static int has_format(const Py_buffer* view, char format) {
  const char* given = view->format ? view->format : "B";
  if (*given == '@' || *given == '=' || *given == '<') given++;
  if (given[0] == '\0' || given[1] != '\0') return 0;
  switch (format) {
    case 'd':
      return *given == 'd' && view->itemsize == 8;
    case 'i':
      return strchr("il", *given) && view->itemsize == 4;
    case 'q':
      return strchr("ql", *given) && view->itemsize == 8;
    default:
      return strchr("B?", *given) && view->itemsize == 1;
  }
}

int core_view(PyObject* array, Py_buffer* view, char format, Py_ssize_t count,
              int writable, const char* name) {
  int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array, view, flags)) return 0;
  Py_ssize_t given = view->itemsize ? view->len / view->itemsize : 0;
  if (has_format(view, format) && (count < 0 || given == count)) return 1;
  if (count < 0) {
    PyErr_Format(PyExc_ValueError, "%s must be an array of %s.", name,
                 type_name(format));
  } else {
    PyErr_Format(PyExc_ValueError, "%s must be an array of %zd %s, got %zd elements "
                 "of format '%s'.", name, count, type_name(format), given,
                 view->format ? view->format : "B");
  }
  PyBuffer_Release(view);
  return 0;
}

/* Rows of the worlds, with the stride from one to the next. */
static int view_rows(PyObject* array, Py_buffer* view, const core_entry* e) {
  int writable = e->flags & CORE_WRITTEN;
  int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array, view, flags)) return 0;
  Py_ssize_t size = view->itemsize, inner = size;
  int is_one = view->ndim >= 1 && view->shape[0] == 1 && !writable;
  int fine = has_format(view, 'd') && view->ndim >= 1 && view->strides[0] >= 0 &&
             view->strides[0] % size == 0 && (view->shape[0] == e->limit || is_one);
  for (int i = view->ndim - 1; fine && i > 0; i--) {
    fine = view->shape[i] < 2 || view->strides[i] == inner;
    inner *= view->shape[i];
  }
  if (!fine) {
    PyErr_Format(PyExc_ValueError,
                 "%s must be float64 of shape (num_worlds%s, ...), each row contiguous.",
                 e->name, writable ? "" : " or 1");
  } else if (e->count >= 0 && inner != e->count * size) {
    PyErr_Format(PyExc_ValueError, "%s must have %zd numbers in each world, got %zd.",
                 e->name, e->count, inner / size);
    fine = 0;
  }
  if (!fine) {
    PyBuffer_Release(view);
    return 0;
  }
  *e->stride = is_one ? 0 : (size_t)(view->strides[0] / size);
  if (e->given) *e->given = inner / size;
  return 1;
}

static int are_ids(const Py_buffer* view, const core_entry* e) {
  const int* id = view->buf;
  for (Py_ssize_t i = 0; i < view->len / (Py_ssize_t)sizeof *id; i++) {
    if (id[i] < 0 || id[i] >= e->limit) {
      PyErr_Format(PyExc_ValueError, "%s has the id %d; there are %zd.", e->name, id[i],
                   e->limit);
      return 0;
    }
  }
  return 1;
}

/* The next view; NULL with an exception set if there is no memory for it. */
static Py_buffer* next_view(core_views* v) {
  int place = v->count - CORE_FEW_VIEWS;
  if (place < 0) return v->few + v->count;
  if (place == v->capacity) {
    int capacity = 2 * v->capacity + 32;
    Py_buffer* more = PyMem_Realloc(v->more, sizeof *more * (size_t)capacity);
    if (!more) {
      PyErr_NoMemory();
      return NULL;
    }
    v->more = more;
    v->capacity = capacity;
  }
  return v->more + place;
}

int core_take_one(core_views* v, PyObject* array, core_entry e) {
  if (Py_IsNone(array) && e.flags & CORE_OPTIONAL) return 1;
  Py_buffer* view = next_view(v);
  if (!view) return 0;
  if (e.format == 'r') {
    if (!view_rows(array, view, &e)) return 0;
  } else {
    char format = e.format == 'I' ? 'i' : e.format;
    if (!core_view(array, view, format, e.count, e.flags & CORE_WRITTEN, e.name)) return 0;
    if (e.given) *e.given = view->len / view->itemsize;
  }
  v->count++;
  memcpy(e.to, &view->buf, sizeof view->buf);
  return e.format != 'I' || are_ids(view, &e);
}

int core_take(core_views* views, PyObject* arrays, const core_entry* entry, int count) {
  int is_dict = PyDict_Check(arrays);
  if (!is_dict && (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != count)) {
    PyErr_Format(PyExc_ValueError, "%d arrays are needed.", count);
    return 0;
  }
  for (int i = 0; i < count; i++) {
    PyObject* array = is_dict ? PyDict_GetItemString(arrays, entry[i].name)
                              : PyTuple_GetItem(arrays, i);
    if (!array) PyErr_Format(PyExc_KeyError, "%s is missing.", entry[i].name);
    if (!array || !core_take_one(views, array, entry[i])) return 0;
  }
  return 1;
}

void core_release(core_views* v) {
  for (int i = 0; i < v->count; i++) {
    PyBuffer_Release(i < CORE_FEW_VIEWS ? v->few + i : v->more + i - CORE_FEW_VIEWS);
  }
  PyMem_Free(v->more);
  v->more = NULL;
  v->count = v->capacity = 0;
}

void* core_new(PyTypeObject* type) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  return allocate(type, 0);
}

void core_free(void* object) {
  PyTypeObject* type = Py_TYPE((PyObject*)object);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

PyObject* core_number(int failed) { return failed < 0 ? NULL : PyLong_FromLong(failed); }

int core_view_ids(PyObject* object, Py_buffer* view, int num_worlds, const int** ids,
                  int* count) {
  memset(view, 0, sizeof *view);
  *ids = NULL;
  *count = num_worlds;
  if (Py_IsNone(object)) return 1;
  if (!core_view(object, view, 'i', -1, 0, "ids")) return 0;
  const int* id = view->buf;
  *count = (int)(view->len / (Py_ssize_t)sizeof(int));
  for (int i = 0; i < *count; i++) {
    if (id[i] < 0 || id[i] >= num_worlds || (i && id[i] <= id[i - 1])) {
      PyErr_Format(PyExc_ValueError,
                   "ids must rise and be from 0 to %d, got %d at place %d.",
                   num_worlds - 1, id[i], i);
      PyBuffer_Release(view);
      return 0;
    }
  }
  *ids = id;
  return 1;
}
