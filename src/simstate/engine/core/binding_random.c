/* A function of the module: the worlds' random numbers, as simstate.world.random has them. */
#include "binding.h"

static uint64_t mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
  return bits ^ (bits >> 31);
}

/* One number of each world, which lie among other columns. */
typedef struct {
  Py_buffer view;
  char* at;
  Py_ssize_t stride;
} column;

static int hold(column* c, PyObject* array, Py_ssize_t* num_worlds, int writable) {
  int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array, &c->view, flags)) return 0;
  const Py_buffer* view = &c->view;
  const char kind = view->format ? view->format[0] : 0;
  if (view->ndim == 1 && view->itemsize == 8 && (kind == 'l' || kind == 'q') &&
      (*num_worlds < 0 || view->shape[0] == *num_worlds)) {
    *num_worlds = view->shape[0];
    c->at = view->buf;
    c->stride = view->strides[0];
    return 1;
  }
  PyBuffer_Release(&c->view);
  PyErr_SetString(PyExc_ValueError, "Streams are int64 of shape (num_worlds,).");
  return 0;
}

static uint64_t* number(const column* c, Py_ssize_t world) {
  return (uint64_t*)(c->at + world * c->stride);
}

/* The next numbers of a world's stream, spread over [low, low + scale · 2⁵³). */
static void draw(const column* stream, Py_ssize_t world, Py_ssize_t columns,
                 double scale, double low, double* out) {
  const uint64_t gamma = UINT64_C(0x9E3779B97F4A7C15);
  uint64_t *seed = number(stream, world), *id = number(stream + 1, world);
  uint64_t* count = number(stream + 2, world);
  uint64_t at = mix(mix(*seed) + (*id + 1) * gamma) + *count * gamma;
  *count += (uint64_t)columns;
  for (Py_ssize_t k = 0; k < columns; k++) {
    at += gamma;
    out[k] = (double)(mix(at) >> 11) * scale + low;
  }
}

static int draw_all(const column* stream, Py_ssize_t num_worlds, PyObject* rows,
                    Py_ssize_t columns, double scale, double low, PyObject* out) {
  Py_buffer ids = {0}, to;
  Py_ssize_t count = num_worlds;
  if (!Py_IsNone(rows)) {
    if (!core_view(rows, &ids, 'q', -1, 0, "rows")) return 0;
    count = ids.len / 8;
  }
  int fine = 1;
  for (Py_ssize_t i = 0; ids.buf && i < count; i++) {
    int64_t world = ((const int64_t*)ids.buf)[i];
    fine = fine && world >= 0 && world < num_worlds;
  }
  if (!fine) PyErr_Format(PyExc_ValueError, "rows are from 0 to %zd.", num_worlds - 1);
  fine = fine && core_view(out, &to, 'd', count * columns, 1, "out");
  if (fine) {
    for (Py_ssize_t i = 0; i < count; i++) {
      Py_ssize_t world = ids.buf ? (Py_ssize_t)((const int64_t*)ids.buf)[i] : i;
      draw(stream, world, columns, scale, low, (double*)to.buf + i * columns);
    }
    PyBuffer_Release(&to);
  }
  PyBuffer_Release(&ids);
  return fine;
}

PyObject* core_py_uniform(PyObject* module, PyObject* args) {
  PyObject *array[3], *rows, *out;
  Py_ssize_t columns, num_worlds = -1;
  double scale, low;
  (void)module;
  if (!PyArg_ParseTuple(args, "OOOOnddO", array, array + 1, array + 2, &rows, &columns,
                        &scale, &low, &out)) {
    return NULL;
  }
  column stream[3];
  int held = 0;
  while (held < 3 && hold(stream + held, array[held], &num_worlds, held == 2)) held++;
  int fine = held == 3 && columns >= 0 &&
             draw_all(stream, num_worlds, rows, columns, scale, low, out);
  while (held) PyBuffer_Release(&stream[--held].view);
  if (!fine) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "columns must be >= 0.");
    return NULL;
  }
  Py_RETURN_NONE;
}
