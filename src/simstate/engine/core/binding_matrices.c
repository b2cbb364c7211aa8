/* Functions of the module: matrices of joint space. */
#include "binding.h"
#include "matrices.h"

/* Views on several arrays, released together. */
typedef struct {
  Py_buffer view[8];
  int count;
} views;

static void* take(views* v, PyObject* array, char format, size_t count, int writable,
                  const char* name) {
  Py_buffer* view = v->view + v->count;
  if (!core_view(array, view, format, (Py_ssize_t)count, writable, name)) return NULL;
  return v->view[v->count++].buf;
}

static void release(views* v) {
  while (v->count) PyBuffer_Release(v->view + --v->count);
}

static int is_within(const int* ids, size_t count, size_t limit, const char* name) {
  for (size_t i = 0; i < count; i++) {
    if (ids[i] < 0 || (size_t)ids[i] >= limit) {
      PyErr_Format(PyExc_ValueError, "%s has the id %d; there are %zu.", name, ids[i],
                   limit);
      return 0;
    }
  }
  return 1;
}

PyObject* core_py_jacobians(PyObject* module, PyObject* args) {
  PyObject *cdof, *pos, *com, *moves, *elements, *bodies, *roots, *out;
  core_points p;
  double* to;
  (void)module;
  if (!PyArg_ParseTuple(args, "(nnnnn)OOOOOOOO", &p.num_worlds, &p.num_points,
                        &p.num_dofs, &p.num_elements, &p.num_bodies, &cdof, &pos, &com,
                        &moves, &elements, &bodies, &roots, &out)) {
    return NULL;
  }
  views v = {.count = 0};
  size_t n = p.num_worlds, k = p.num_points;
  int fine =
      (p.cdof = take(&v, cdof, 'd', n * p.num_dofs * 6, 0, "cdof")) &&
      (p.pos = take(&v, pos, 'd', n * p.num_elements * 3, 0, "pos")) &&
      (p.com = take(&v, com, 'd', n * p.num_bodies * 3, 0, "subtree_com")) &&
      (p.moves = take(&v, moves, 'd', p.num_bodies * p.num_dofs, 0, "moves")) &&
      (p.element = take(&v, elements, 'i', k, 0, "elements")) &&
      (p.body = take(&v, bodies, 'i', k, 0, "bodies")) &&
      (p.root = take(&v, roots, 'i', k, 0, "roots")) &&
      (to = take(&v, out, 'd', n * k * 6 * p.num_dofs, 1, "out")) &&
      is_within(p.element, k, p.num_elements, "elements") &&
      is_within(p.body, k, p.num_bodies, "bodies") &&
      is_within(p.root, k, p.num_bodies, "roots");
  if (fine) core_jacobians(&p, to);
  release(&v);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}

PyObject* core_py_entries(PyObject* module, PyObject* args) {
  PyObject *rows, *places, *out;
  size_t worlds, width, entries;
  const double* from = NULL;
  const int* place = NULL;
  double* to = NULL;
  (void)module;
  if (!PyArg_ParseTuple(args, "(nnn)OOO", &worlds, &width, &entries, &rows, &places,
                        &out)) {
    return NULL;
  }
  views v = {.count = 0};
  int fine = (from = take(&v, rows, 'd', worlds * width, 0, "rows")) &&
             (place = take(&v, places, 'i', entries, 0, "places")) &&
             (to = take(&v, out, 'd', worlds * entries, 1, "out"));
  for (size_t k = 0; fine && k < entries; k++) {
    fine = place[k] >= -1 && place[k] < (int)width;
    if (!fine) PyErr_Format(PyExc_ValueError, "There is no place %d.", place[k]);
  }
  if (fine) core_entries(from, place, worlds, width, entries, to);
  release(&v);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}
