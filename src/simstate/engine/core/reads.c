/* Quantities of frames from the bound fields, many of them in one pass over worlds. */
#include "reads.h"

#include <string.h>

static void cross(const double a[3], const double b[3], double out[3]) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

/* left ⊗ right: the rotation `right` in the axes of `left`. */
static void multiply(const double l[4], const double r[4], double out[4]) {
  double c[3];
  cross(l + 1, r + 1, c);
  out[0] = l[0] * r[0] - (l[1] * r[1] + l[2] * r[2] + l[3] * r[3]);
  for (int k = 0; k < 3; k++) out[k + 1] = l[0] * r[k + 1] + r[0] * l[k + 1] + c[k];
}

/* The components of a vector along the axes of a frame. */
static void rotate_inverse(const double q[4], const double v[3], double out[3]) {
  double inner[3], turned[3];
  cross(q + 1, v, inner);
  for (int k = 0; k < 3; k++) inner[k] -= q[0] * v[k];
  cross(q + 1, inner, turned);
  for (int k = 0; k < 3; k++) out[k] = v[k] + 2.0 * turned[k];
}

/* The velocity of a point that moves with a body. */
static void point_velocity(const double pos[3], const double com[3],
                           const double cvel[6], double out[3]) {
  double offset[3] = {pos[0] - com[0], pos[1] - com[1], pos[2] - com[2]}, moved[3];
  cross(cvel, offset, moved);
  for (int k = 0; k < 3; k++) out[k] = cvel[3 + k] + moved[k];
}

/* A world's rows of all sources of a read. */
typedef struct {
  const double *source, *quat, *com, *cvel, *local;
} rows;

static const double* row_of(const core_source* s, int world) {
  return s->at ? s->at + (size_t)world * s->stride : NULL;
}

static void take(const core_read* r, const rows* x, double* restrict out) {
  const double* first = x->source + r->first;
  int width = r->width, each = r->each;
  if (width == 1 && each == 1) {
    for (int i = 0; i < r->count; i++) out[i] = first[r->element[i]];
    return;
  }
  for (int i = 0; i < r->count; i++, out += width) {
    const double* from = first + (ptrdiff_t)r->element[i] * each;
    for (int k = 0; k < width; k++) out[k] = from[k];
  }
}

static void orientations(const core_read* r, const rows* x, double* out) {
  for (int i = 0; i < r->count; i++, out += r->width) {
    const double* quat = x->quat + 4 * r->body[i];
    if (x->local) {
      multiply(quat, x->local + 4 * r->element[i], out);
    } else {
      for (int k = 0; k < 4; k++) out[k] = quat[k];
    }
  }
}

static void poses(const core_read* r, const rows* x, double* restrict out) {
  if (x->local) {
    for (int i = 0; i < r->count; i++) {
      memcpy(out + 7 * i, x->source + 3 * r->element[i], 3 * sizeof(double));
    }
    orientations(r, x, out + 3);
    return;
  }
  for (int i = 0; i < r->count; i++, out += 7) {
    memcpy(out, x->source + 3 * r->element[i], 3 * sizeof(double));
    memcpy(out + 3, x->quat + 4 * r->body[i], 4 * sizeof(double));
  }
}

static void velocities(const core_read* r, const rows* x, double* restrict out) {
  int width = r->width;
  for (int i = 0; i < r->count; i++, out += width) {
    const double* cvel = x->cvel + 6 * r->body[i];
    point_velocity(x->source + 3 * r->element[i], x->com + 3 * r->root[i], cvel, out);
    if (width == 6) memcpy(out + 3, cvel, 3 * sizeof(double));
  }
}

static void run_read(const core_read* r, int world, double* out) {
  rows x = {row_of(&r->source, world), row_of(&r->quat, world), row_of(&r->com, world),
            row_of(&r->cvel, world), row_of(&r->local, world)};
  double vector[3];
  switch (r->kind) {
    case CORE_TAKE:
      take(r, &x, out);
      break;
    case CORE_QUAT:
      orientations(r, &x, out);
      break;
    case CORE_POSE:
      poses(r, &x, out);
      break;
    case CORE_VEL:
      velocities(r, &x, out);
      break;
    case CORE_LIN_VEL_B:
      velocities(r, &x, vector);
      rotate_inverse(x.quat + 4 * r->base, vector, out);
      break;
    case CORE_ANG_VEL_B:
      rotate_inverse(x.quat + 4 * r->base, x.cvel + 6 * r->body[0], out);
      break;
    default: /* CORE_DIRECTION_B */
      rotate_inverse(x.quat + 4 * r->base, x.source, out);
  }
}

void core_run_read(const core_read* read, int num_worlds, double* out) {
  size_t size = (size_t)read->count * (size_t)read->width;
  for (int world = 0; world < num_worlds; world++) {
    run_read(read, world, out + (size_t)world * size);
  }
}
