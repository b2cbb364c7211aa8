/* Functions of the module: matrices of joint space. */
#include "binding.h"
#include "matrices.h"

PyObject* core_py_jacobians(PyObject* module, PyObject* args) {
  PyObject* arrays;
  core_points p;
  double* to;
  (void)module;
  if (!PyArg_ParseTuple(args, "(nnnnn)O", &p.num_worlds, &p.num_points, &p.num_dofs,
                        &p.num_elements, &p.num_bodies, &arrays)) {
    return NULL;
  }
  Py_ssize_t n = (Py_ssize_t)p.num_worlds, k = (Py_ssize_t)p.num_points;
  Py_ssize_t dofs = (Py_ssize_t)p.num_dofs, bodies = (Py_ssize_t)p.num_bodies;
  Py_ssize_t elements = (Py_ssize_t)p.num_elements;
  const core_entry entry[] = {
      CORE_IN("cdof", 'd', n * dofs * 6, &p.cdof),
      CORE_IN("pos", 'd', n * elements * 3, &p.pos),
      CORE_IN("subtree_com", 'd', n * bodies * 3, &p.com),
      CORE_IN("moves", 'd', bodies * dofs, &p.moves),
      CORE_IDS("elements", k, 0, &p.element, elements, NULL),
      CORE_IDS("bodies", k, 0, &p.body, bodies, NULL),
      CORE_IDS("roots", k, 0, &p.root, bodies, NULL),
      CORE_OUT("out", 'd', n * k * 6 * dofs, &to),
  };
  core_views v = {.count = 0};
  int fine = CORE_TAKE_ALL(&v, arrays, entry);
  if (fine) core_jacobians(&p, to);
  core_release(&v);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}

PyObject* core_py_entries(PyObject* module, PyObject* args) {
  PyObject* arrays;
  Py_ssize_t worlds, width, entries;
  const double* from;
  const int* place;
  double* to;
  (void)module;
  if (!PyArg_ParseTuple(args, "(nnn)O", &worlds, &width, &entries, &arrays)) return NULL;
  const core_entry entry[] = {
      CORE_IN("rows", 'd', worlds * width, &from),
      CORE_IN("places", 'i', entries, &place),
      CORE_OUT("out", 'd', worlds * entries, &to),
  };
  core_views v = {.count = 0};
  int fine = CORE_TAKE_ALL(&v, arrays, entry);
  for (Py_ssize_t k = 0; fine && k < entries; k++) {
    fine = place[k] >= -1 && place[k] < (int)width;
    if (!fine) PyErr_Format(PyExc_ValueError, "There is no place %d.", place[k]);
  }
  if (fine) core_entries(from, place, (size_t)worlds, (size_t)width, (size_t)entries, to);
  core_release(&v);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}
