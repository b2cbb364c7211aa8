/* Rays that elements of the model carry, at the present positions. */
#include <math.h>
#include <string.h>

#include "binding.h"

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

PyObject* core_carried_rays(batch_object* self, PyObject* args) {
  PyObject* arrays;
  carried c = {0};
  if (!PyArg_ParseTuple(args, "(iiii)(ddd)dO", &c.num_parents, &c.num_rays, &c.kind,
                        &c.alignment, c.pos, c.pos + 1, c.pos + 2, &c.max_distance,
                        &arrays)) {
    return NULL;
  }
  const mjModel* m = lib.mjb_model(self->batch);
  if (c.num_rays < 0 || c.num_parents < 0 || c.kind < 0 || c.kind > 2) {
    PyErr_SetString(PyExc_ValueError, "Sizes must be ≥ 0, and the kind 0, 1 or 2.");
    return NULL;
  }
  static const mjtByte first_group[mjNGROUP] = {1};
  Py_ssize_t most = c.kind == 0 ? m->nbody : c.kind == 1 ? m->nsite : m->ngeom;
  Py_ssize_t own = (Py_ssize_t)3 * c.num_rays;
  Py_ssize_t all = (Py_ssize_t)self->num_worlds * c.num_parents * c.num_rays;
  const core_entry entry[] = {
      CORE_IDS("parents", c.num_parents, 0, &c.parent, most, NULL),
      CORE_IN("origins", 'd', own, &c.origin),
      CORE_IN("directions", 'd', own, &c.direction),
      CORE_IF("geom_group", 'i', m->ngeom, 0, &c.geom_group),
      CORE_OUT("distance", 'd', all, &c.distance),
      CORE_OUT("geom", 'i', all, &c.geom),
      CORE_OUT("height", 'd', all, &c.height),
      CORE_IF("normal", 'd', 3 * all, CORE_WRITTEN, &c.normal),
  };
  core_views v = {.count = 0};
  int failed = -1;
  if (CORE_TAKE_ALL(&v, arrays, entry)) {
    if (c.geom_group) c.group = first_group;
    core_call call = {.kind = CORE_APPLY,
                      .count = self->num_worlds,
                      .function = carried_world,
                      .argument = &c};
    failed = core_run(self, &call);
  }
  core_release(&v);
  return core_number(failed);
}
