/* Jacobians of points and rays, from the worlds' present positions. */
#include <math.h>
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
  size_t row = (size_t)(p->row ? p->row[world] : world), size = 3 * (size_t)p->nv;
  lib.mj_kinematics(m, d);
  lib.mj_comPos(m, d);
  lib.mj_jac(m, d, p->jacp + row * size, p->jacr + row * size, p->point + 3 * row,
             p->body[row]);
}

static void ray_world(const mjModel* m, mjData* d, int world, void* argument) {
  const points* p = argument;
  size_t row = (size_t)(p->row ? p->row[world] : world);
  lib.mj_kinematics(m, d);
  if (m->nflex) lib.mj_flex(m, d);
  for (int i = 0; i < p->num_rays; i++) {
    size_t k = row * (size_t)p->num_rays + (size_t)i;
    p->distance[k] =
        lib.mj_ray(m, d, p->point + 3 * k, p->direction + 3 * k, p->group,
                   p->with_static, p->exclude[k], p->geom + k,
                   p->normal ? p->normal + 3 * k : NULL);
  }
}

/* Rays that elements of the model carry: the same in their axes in all worlds. */
typedef struct {
  int num_rays, num_parents;
  int kind;       /* of the parents; 0: bodies; 1: sites; 2: geoms */
  int alignment;  /* 0: the parent's axes; 1: its heading; 2: the world's */
  const int* parent;
  double pos[3];                     /* of the sensor, in the parent's axes */
  const double *origin, *direction;  /* (rays, 3), in the sensor's axes */
  double max_distance;
  const mjtByte* group;
  int* geom_group;
  double *distance, *height, *normal;
  int* geom;
} carried;

/* Position and axes of a parent in the world. */
static const double* parent_pose(const carried* c, const mjData* d, int id,
                                 double axes[9]) {
  if (c->kind == 0) {
    lib.mju_quat2Mat(axes, d->xquat + 4 * id);
    return d->xpos + 3 * id;
  }
  const double* rot = c->kind == 1 ? d->site_xmat : d->geom_xmat;
  memcpy(axes, rot + 9 * id, 9 * sizeof *axes);
  return (c->kind == 1 ? d->site_xpos : d->geom_xpos) + 3 * id;
}

/* Turn a parent's axes into the sensor's, as simstate.sensors.ray_sensor does. */
static void align_axes(const carried* c, double axes[9]) {
  if (c->alignment == 0) return;
  double x = 1, y = 0;
  if (c->alignment == 1) {
    double length = hypot(axes[0], axes[3]);
    if (length > 1e-9) {
      x = axes[0] / length;
      y = axes[3] / length;
    }
  }
  const double turned[9] = {x, -y, 0, y, x, 0, 0, 0, 1};
  memcpy(axes, turned, sizeof turned);
}

/* The vector in the axes' components, in the world's. */
static void turn(const double axes[9], const double vec[3], double out[3]) {
  for (int j = 0; j < 3; j++) {
    const double* a = axes + 3 * j;
    out[j] = a[0] * vec[0] + a[1] * vec[1] + a[2] * vec[2];
  }
}

static void carried_world(const mjModel* m, mjData* d, int world, void* argument) {
  const carried* c = argument;
  double axes[9], shift[3], start[3], way[3];
  lib.mj_kinematics(m, d);
  if (m->nflex) lib.mj_flex(m, d);
  mjModel own = *m;
  if (c->geom_group) own.geom_group = c->geom_group;
  for (int p = 0; p < c->num_parents; p++) {
    const double* pos = parent_pose(c, d, c->parent[p], axes);
    turn(axes, c->pos, shift);
    align_axes(c, axes);
    for (int i = 0; i < c->num_rays; i++) {
      size_t k = ((size_t)world * (size_t)c->num_parents + (size_t)p) * (size_t)c->num_rays +
                 (size_t)i;
      turn(axes, c->origin + 3 * i, start);
      turn(axes, c->direction + 3 * i, way);
      for (int j = 0; j < 3; j++) start[j] += pos[j] + shift[j];
      double far = lib.mj_ray(&own, d, start, way, c->group, 1, -1, c->geom + k,
                              c->normal ? c->normal + 3 * k : NULL);
      c->distance[k] = far;
      int is_hit = far >= 0 && far <= c->max_distance;
      c->height[k] = pos[2] - start[2] - (is_hit ? far : c->max_distance) * way[2];
    }
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
  points p = {.nv = (int)m->nv};
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

PyObject* core_carried_rays(batch_object* self, PyObject* args) {
  PyObject *parent, *origin, *direction, *groups, *distance, *geom, *height, *normal;
  carried c = {0};
  if (!PyArg_ParseTuple(args, "(iiii)(ddd)dOOOOOOOO", &c.num_parents, &c.num_rays,
                        &c.kind, &c.alignment, c.pos, c.pos + 1, c.pos + 2,
                        &c.max_distance, &parent, &origin, &direction, &groups,
                        &distance, &geom, &height, &normal)) {
    return NULL;
  }
  const mjModel* m = lib.mjb_model(self->batch);
  if (c.num_rays < 0 || c.num_parents < 0 || c.kind < 0 || c.kind > 2) {
    PyErr_SetString(PyExc_ValueError, "Sizes must be ≥ 0, and the kind 0, 1 or 2.");
    return NULL;
  }
  static const mjtByte first_group[mjNGROUP] = {1};
  Py_ssize_t own = (Py_ssize_t)3 * c.num_rays;
  Py_ssize_t all = (Py_ssize_t)self->num_worlds * c.num_parents * c.num_rays;
  views v = {.count = 0};
  int fine = (c.parent = take(&v, parent, 'i', c.num_parents, 0, "parents")) &&
             (c.origin = take(&v, origin, 'd', own, 0, "origins")) &&
             (c.direction = take(&v, direction, 'd', own, 0, "directions")) &&
             (c.distance = take(&v, distance, 'd', all, 1, "distance")) &&
             (c.geom = take(&v, geom, 'i', all, 1, "geom")) &&
             (c.height = take(&v, height, 'd', all, 1, "height"));
  if (fine && !Py_IsNone(groups)) {
    c.group = first_group;
    fine = (c.geom_group = take(&v, groups, 'i', m->ngeom, 0, "geom_group")) != NULL;
  }
  if (fine && !Py_IsNone(normal)) {
    fine = (c.normal = take(&v, normal, 'd', 3 * all, 1, "normal")) != NULL;
  }
  int most = (int)(c.kind == 0 ? m->nbody : c.kind == 1 ? m->nsite : m->ngeom);
  for (int p = 0; fine && p < c.num_parents; p++) {
    if (c.parent[p] >= 0 && c.parent[p] < most) continue;
    PyErr_Format(PyExc_ValueError, "There is no parent %d.", c.parent[p]);
    fine = 0;
  }
  int failed = -1;
  if (fine) {
    core_call call = {.kind = CORE_APPLY,
                      .count = self->num_worlds,
                      .function = carried_world,
                      .argument = &c};
    failed = core_run(self, &call);
  }
  release(&v);
  return failed < 0 ? NULL : PyLong_FromLong(failed);
}
