/* Jacobians of points and rays, from the worlds' present positions. */
#include <string.h>

#include "binding.h"

/* Where the results of each world are: its place among the chosen ones. */
typedef struct {
  int nv, num_rays;
  const int* row;  /* NULL: worlds are rows */
  const int *body, *exclude;
  const double *point, *direction;
  const mjtByte* group;
  mjtBool with_static;
  double *jacp, *jacr, *distance, *normal;
  int* geom;
} points;

static void jac_world(const mjModel* m, mjData* d, int world, void* argument) {
  const points* p = argument;
  size_t row = p->row ? p->row[world] : world, size = (size_t)3 * p->nv;
  lib.mj_kinematics(m, d);
  lib.mj_comPos(m, d);
  lib.mj_jac(m, d, p->jacp + row * size, p->jacr + row * size, p->point + 3 * row,
             p->body[row]);
}

static void ray_world(const mjModel* m, mjData* d, int world, void* argument) {
  const points* p = argument;
  size_t row = p->row ? p->row[world] : world;
  lib.mj_kinematics(m, d);
  if (m->nflex) lib.mj_flex(m, d);
  for (int i = 0; i < p->num_rays; i++) {
    size_t k = row * p->num_rays + i;
    p->distance[k] =
        lib.mj_ray(m, d, p->point + 3 * k, p->direction + 3 * k, p->group,
                   p->with_static, p->exclude[k], p->geom + k,
                   p->normal ? p->normal + 3 * k : NULL);
  }
}

/* Runs one of them on the worlds of `ids`, each with its row. */
static PyObject* run_rows(batch_object* self, const int* ids, int count,
                          mjfBatchFunc function, points* p) {
  int* row = NULL;
  if (ids) {
    row = PyMem_Calloc((size_t)self->num_worlds, sizeof *row);
    if (!row) return PyErr_NoMemory();
    for (int i = 0; i < count; i++) row[ids[i]] = i;
  }
  p->row = row;
  core_call call = {.kind = CORE_APPLY,
                    .ids = ids,
                    .count = count,
                    .function = function,
                    .argument = p};
  int failed = core_run(self, &call);
  PyMem_Free(row);
  return failed < 0 ? NULL : PyLong_FromLong(failed);
}

/* Views on several arrays, released together. */
typedef struct {
  Py_buffer view[10];
  int count;
} views;

static void* take(views* v, PyObject* array, char format, Py_ssize_t count, int writable,
                  const char* name) {
  if (!core_view(array, v->view + v->count, format, count, writable, name)) return NULL;
  return v->view[v->count++].buf;
}

static void release(views* v) {
  while (v->count) PyBuffer_Release(v->view + --v->count);
}

PyObject* core_jac(batch_object* self, PyObject* args) {
  PyObject *ids, *body, *point, *jacp, *jacr, *failed = NULL;
  if (!PyArg_ParseTuple(args, "OOOOO", &ids, &body, &point, &jacp, &jacr)) return NULL;
  Py_buffer view;
  const int* id;
  int n;
  if (!core_view_ids(ids, &view, self->num_worlds, &id, &n)) return NULL;
  const mjModel* m = lib.mjb_model(self->batch);
  points p = {.nv = m->nv};
  views v = {.count = 0};
  if ((p.body = take(&v, body, 'i', n, 0, "body")) &&
      (p.point = take(&v, point, 'd', 3 * n, 0, "point")) &&
      (p.jacp = take(&v, jacp, 'd', (Py_ssize_t)3 * n * m->nv, 1, "jacp")) &&
      (p.jacr = take(&v, jacr, 'd', (Py_ssize_t)3 * n * m->nv, 1, "jacr"))) {
    failed = run_rows(self, id, n, jac_world, &p);
  }
  release(&v);
  PyBuffer_Release(&view);
  return failed;
}

PyObject* core_ray(batch_object* self, PyObject* args) {
  PyObject *ids, *point, *direction, *group, *exclude, *distance, *geom, *normal;
  PyObject* failed = NULL;
  int num_rays, with_static;
  if (!PyArg_ParseTuple(args, "OiOOOpOOOO", &ids, &num_rays, &point, &direction, &group,
                        &with_static, &exclude, &distance, &geom, &normal)) {
    return NULL;
  }
  Py_buffer view;
  const int* id;
  int n;
  if (!core_view_ids(ids, &view, self->num_worlds, &id, &n)) return NULL;
  Py_ssize_t rays = (Py_ssize_t)n * num_rays;
  points p = {.num_rays = num_rays, .with_static = (mjtBool)with_static};
  views v = {.count = 0};
  int fine = (p.point = take(&v, point, 'd', 3 * rays, 0, "pnt")) &&
             (p.direction = take(&v, direction, 'd', 3 * rays, 0, "vec")) &&
             (p.exclude = take(&v, exclude, 'i', rays, 0, "bodyexclude")) &&
             (p.distance = take(&v, distance, 'd', rays, 1, "dist")) &&
             (p.geom = take(&v, geom, 'i', rays, 1, "geomid"));
  if (fine && !Py_IsNone(group)) {
    fine = (p.group = take(&v, group, 'B', mjNGROUP, 0, "geomgroup")) != NULL;
  }
  if (fine && !Py_IsNone(normal)) {
    fine = (p.normal = take(&v, normal, 'd', 3 * rays, 1, "normal")) != NULL;
  }
  if (fine) failed = run_rows(self, id, n, ray_world, &p);
  release(&v);
  PyBuffer_Release(&view);
  return failed;
}
