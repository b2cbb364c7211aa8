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

int core_view_rows(PyObject* array, Py_buffer* view, int num_worlds, int writable,
                   size_t* stride, Py_ssize_t* columns, const char* name) {
  int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array, view, flags)) return 0;
  Py_ssize_t size = view->itemsize, inner = size;
  int is_one = view->ndim >= 1 && view->shape[0] == 1 && !writable;
  int fine = has_format(view, 'd') && view->ndim >= 1 && view->strides[0] >= 0 &&
             view->strides[0] % size == 0 &&
             (view->shape[0] == num_worlds || is_one);
  for (int i = view->ndim - 1; fine && i > 0; i--) {
    fine = view->shape[i] < 2 || view->strides[i] == inner;
    inner *= view->shape[i];
  }
  if (!fine) {
    PyErr_Format(PyExc_ValueError,
                 "%s must be float64 of shape (num_worlds%s, ...), each row contiguous.",
                 name, writable ? "" : " or 1");
    PyBuffer_Release(view);
    return 0;
  }
  *stride = is_one ? 0 : (size_t)(view->strides[0] / size);
  *columns = inner / size;
  return 1;
}

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
